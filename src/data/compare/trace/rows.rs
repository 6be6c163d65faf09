//! Numbers the rows of a trace: threads of processes, and streams of devices.

use std::collections::HashMap;

use crate::compare::figure::RetainedSize;

/// Pairs of texts, numbered in the order of their first appearance.
#[derive(Default)]
pub(super) struct Rows {
    ids: HashMap<String, HashMap<String, u32>>,
    count: u32,
    /// The row of the previous event, which is mostly also the row of the next.
    last: Option<([String; 2], u32)>,
}

impl Rows {
    /// Returns the number of a row.
    pub(super) fn id<E: serde::de::Error>(
        &mut self,
        [process, thread]: [&str; 2],
        kept: &mut RetainedSize,
    ) -> Result<u32, E> {
        if let Some(([last_process, last_thread], id)) = &self.last
            && last_process == process
            && last_thread == thread
        {
            return Ok(*id);
        }
        let known = self.ids.get(process).and_then(|threads| threads.get(thread));
        let id = match known {
            Some(id) => *id,
            None => {
                // The memory of a row's intervals counts as a text, generously estimated.
                kept.add(&[process, thread, "and what is kept of the row beside its texts, in any table"])?;
                self.ids.entry(process.to_owned()).or_default().insert(thread.to_owned(), self.count);
                self.count += 1;
                self.count - 1
            }
        };
        self.last = Some(([process.to_owned(), thread.to_owned()], id));
        Ok(id)
    }
}
