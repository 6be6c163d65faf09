//! Parses blocks of text in parallel and passes on the results in file order. The bytes in flight are bounded.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};

use super::{Batch, BatchSink};
use drift_core::Result;

const IN_FLIGHT_BYTES: usize = 8 << 20;

/// Tasks in file order, with the number of bytes that each holds.
#[derive(Default)]
pub(super) struct Queue {
    tasks: VecDeque<(usize, Receiver<Result<Batch>>)>,
    bytes: usize,
}

impl Queue {
    /// Adds a task that holds this many bytes, and emits the results of the oldest tasks while too many bytes are in flight.
    pub(super) fn push(
        &mut self,
        bytes: usize,
        task: impl FnOnce() -> Result<Batch> + Send + 'static,
        emit: &mut BatchSink<'_>,
    ) -> Result<()> {
        // A record that was too long has no bytes, but still counts as a block.
        let bytes = bytes.max(1);
        let (send, receive) = sync_channel(1);
        let run = move || {
            // If reading failed, the receiver is gone and nobody needs the batch.
            let _ = send.send(task());
        };
        if rayon::current_thread_index().is_some() {
            // On a thread of the pool, waiting for the pool could be waiting for this same thread.
            run();
        } else {
            rayon::spawn_fifo(run);
        }
        self.bytes += bytes;
        self.tasks.push_back((bytes, receive));
        // Waiting for the oldest block bounds the memory and keeps the file order.
        while self.bytes > IN_FLIGHT_BYTES {
            self.pop(emit)?;
        }
        Ok(())
    }

    /// Emits the results of all tasks.
    pub(super) fn finish(mut self, emit: &mut BatchSink<'_>) -> Result<()> {
        while !self.tasks.is_empty() {
            self.pop(emit)?;
        }
        Ok(())
    }

    fn pop(&mut self, emit: &mut BatchSink<'_>) -> Result<()> {
        if let Some((bytes, batch)) = self.tasks.pop_front() {
            self.bytes -= bytes;
            // A task always sends its batch: it could end without sending only by a panic, which aborts the process.
            emit(batch.recv().unwrap_or_else(|_| Ok(Batch::default()))?)?;
        }
        Ok(())
    }
}
