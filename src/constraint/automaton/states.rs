//! States of a finite, acyclic language of token sequences, each held once: equal states are one state, so that what is
//! built from the end backwards is minimal.

use std::collections::{BTreeMap, HashMap};

/// How the brackets of a block are tokenised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Mode {
    /// `<` and `>` belong to the text around the block.
    Plain = 0,
    /// The block is cut out of the text with its brackets, as drift's extended tokenizers do.
    Isolated = 1,
}

/// The number of a state.
pub(super) type StateId = u32;

/// A state: which tokens lead where, and whether the block may end here.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Node {
    /// By token.
    pub edges: Vec<(u32, StateId)>,
    /// The block may end here, in this mode.
    pub exit: Option<Mode>,
}

/// A sequence of tokens, and the state that it leads to.
pub(super) type Path = (Vec<u32>, StateId);

/// The states of a language.
#[derive(Default)]
pub(super) struct States {
    nodes: Vec<Node>,
    known: HashMap<Node, StateId>,
    unions: HashMap<(StateId, StateId), Option<StateId>>,
}

impl States {
    /// A state by its number.
    pub(super) fn node(&self, id: StateId) -> &Node {
        &self.nodes[id as usize]
    }

    /// The one state that is equal to `node`.
    pub(super) fn intern(&mut self, node: Node) -> StateId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.len() as StateId;
        self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// The state where a block ends.
    pub(super) fn exit(&mut self, mode: Mode) -> StateId {
        self.intern(Node { edges: Vec::new(), exit: Some(mode) })
    }

    /// The state that begins all `paths`; `None` if the same tokens would end a block in two modes.
    pub(super) fn trie(&mut self, mut paths: Vec<Path>) -> Option<StateId> {
        paths.sort();
        self.trie_below(&paths, 0)
    }

    /// As [`States::trie`], of sorted paths that agree in their first `depth` tokens.
    fn trie_below(&mut self, paths: &[Path], depth: usize) -> Option<StateId> {
        let ended = paths.iter().take_while(|(tokens, _)| tokens.len() == depth).count();
        let mut edges = Vec::new();
        let mut rest = &paths[ended..];
        while let Some((tokens, _)) = rest.first() {
            let token = tokens[depth];
            let same = rest.iter().take_while(|(tokens, _)| tokens[depth] == token).count();
            edges.push((token, self.trie_below(&rest[..same], depth + 1)?));
            rest = &rest[same..];
        }
        let mut all = self.intern(Node { edges, exit: None });
        for (_, then) in &paths[..ended] {
            all = self.union(all, *then)?;
        }
        Some(all)
    }

    /// The state that allows what either allows; `None` if the same tokens would end a block in two modes.
    pub(super) fn union(&mut self, a: StateId, b: StateId) -> Option<StateId> {
        if a == b {
            return Some(a);
        }
        if let Some(known) = self.unions.get(&(a, b)) {
            return *known;
        }
        let union = self.union_of(a, b);
        self.unions.insert((a, b), union);
        union
    }

    fn union_of(&mut self, a: StateId, b: StateId) -> Option<StateId> {
        let (a, b) = (self.node(a).clone(), self.node(b).clone());
        let exit = match (a.exit, b.exit) {
            (Some(x), Some(y)) if x != y => return None,
            (x, y) => x.or(y),
        };
        let mut edges: BTreeMap<u32, StateId> = a.edges.into_iter().collect();
        for (token, target) in b.edges {
            let merged = match edges.get(&token) {
                Some(&other) => self.union(other, target)?,
                None => target,
            };
            edges.insert(token, merged);
        }
        Some(self.intern(Node { edges: edges.into_iter().collect(), exit }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_states_are_one_and_prefixes_are_followed() {
        let mut states = States::default();
        let end = states.exit(Mode::Plain);
        let a = states.trie(vec![(vec![1, 2], end), (vec![3, 2], end), (vec![1], end)]).unwrap();
        let node = states.node(a).clone();
        assert_eq!(node.edges.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [1, 3]);
        // After 1 the block may end or go on, after 3 it must go on.
        assert_eq!(states.node(node.edges[0].1).exit, Some(Mode::Plain));
        assert_eq!(states.node(node.edges[1].1).exit, None);
        let b = states.trie(vec![(vec![3, 2], end), (vec![1], end), (vec![1, 2], end)]).unwrap();
        assert_eq!(a, b);
    }

    #[test]
    fn one_spelling_cannot_end_in_two_modes() {
        let mut states = States::default();
        let (plain, isolated) = (states.exit(Mode::Plain), states.exit(Mode::Isolated));
        assert_eq!(states.trie(vec![(vec![1], plain), (vec![1], isolated)]), None);
        assert!(states.trie(vec![(vec![1], plain), (vec![2], isolated)]).is_some());
    }
}
