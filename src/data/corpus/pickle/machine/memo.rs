use std::collections::HashMap;

use crate::corpus::pickle::NodeId;

/// The memo. Python numbers its entries 0, 1, 2, …, so a vector holds them; any other key goes to the map.
#[derive(Default)]
pub(super) struct Memo {
    dense: Vec<NodeId>,
    sparse: HashMap<u64, NodeId>,
}

impl Memo {
    pub(super) fn put(&mut self, key: u64, id: NodeId) {
        if !self.sparse.is_empty() {
            // The vector may be about to take over a key that the map holds.
            self.sparse.remove(&key);
        }
        match usize::try_from(key) {
            Ok(index) if index < self.dense.len() => self.dense[index] = id,
            Ok(index) if index == self.dense.len() => self.dense.push(id),
            _ => {
                self.sparse.insert(key, id);
            }
        }
    }

    pub(super) fn get(&self, key: u64) -> Option<NodeId> {
        let dense = usize::try_from(key).ok().and_then(|index| self.dense.get(index));
        dense.or_else(|| self.sparse.get(&key)).copied()
    }

    pub(super) fn memoize(&mut self, id: NodeId) {
        let key = (self.dense.len() + self.sparse.len()) as u64;
        self.put(key, id);
    }
}
