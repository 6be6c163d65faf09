//! Finite languages as minimal deterministic automata: sets of byte strings, or of token sequences.
//!
//! A language is represented by a state. Equal languages share one state, so an automaton that is built backwards from its end is
//! minimal (Daciuk et al., *Incremental Construction of Minimal Acyclic Finite-State Automata*, 2000). All automata here are
//! acyclic, because their languages are finite.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// The number of a state. It stands for the language of all strings that lead from the state to an end.
pub type StateId = u32;

/// The edges of a state, and whether a string may end there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node<L, E> {
    /// By label, ascending.
    pub edges: Vec<(L, StateId)>,
    /// How a string may end here; `None` if none may.
    pub end: Option<E>,
}

/// A sequence of labels, and the state that it leads to.
pub type Path<L> = (Vec<L>, StateId);

/// The states of languages over the labels `L`. Each string ends in one of the kinds `E`.
#[derive(Debug)]
pub struct Languages<L, E = ()> {
    nodes: Vec<Node<L, E>>,
    known: HashMap<Node<L, E>, StateId>,
    unions: HashMap<(StateId, StateId), Option<StateId>>,
    concatenations: HashMap<(StateId, StateId), Option<StateId>>,
    differences: HashMap<(StateId, StateId), Option<StateId>>,
}

impl<L, E> Default for Languages<L, E> {
    fn default() -> Self {
        Languages {
            nodes: Vec::new(),
            known: HashMap::new(),
            unions: HashMap::new(),
            concatenations: HashMap::new(),
            differences: HashMap::new(),
        }
    }
}

impl<L: Copy + Ord + Hash, E: Copy + Eq + Hash> Languages<L, E> {
    /// Returns a state by its number.
    pub fn node(&self, id: StateId) -> &Node<L, E> {
        &self.nodes[id as usize]
    }

    /// Returns the state that equals `node`, which is created if needed. The node's edges must ascend.
    pub(crate) fn intern(&mut self, node: Node<L, E>) -> StateId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = self.nodes.len() as StateId;
        self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }

    /// Returns the language of only the empty string, with this kind of end.
    pub fn end(&mut self, end: E) -> StateId {
        self.intern(Node { edges: Vec::new(), end: Some(end) })
    }

    /// Returns the language of all `paths`; `None` if one string would have two kinds of end.
    pub(crate) fn trie(&mut self, mut paths: Vec<Path<L>>) -> Option<StateId> {
        paths.sort();
        self.trie_below(&paths, 0)
    }

    /// [`Languages::trie`] for sorted paths that agree in their first `depth` labels.
    fn trie_below(&mut self, paths: &[Path<L>], depth: usize) -> Option<StateId> {
        let ended = paths.iter().take_while(|(labels, _)| labels.len() == depth).count();
        let mut edges = Vec::new();
        let mut rest = &paths[ended..];
        while let Some((labels, _)) = rest.first() {
            let label = labels[depth];
            let same = rest.iter().take_while(|(labels, _)| labels[depth] == label).count();
            edges.push((label, self.trie_below(&rest[..same], depth + 1)?));
            rest = &rest[same..];
        }
        let mut all = self.intern(Node { edges, end: None });
        // A path that ends here continues as its state does.
        for (_, then) in &paths[..ended] {
            all = self.union(all, *then)?;
        }
        Some(all)
    }

    /// Returns the strings of either language; `None` if one string would have two kinds of end.
    pub fn union(&mut self, a: StateId, b: StateId) -> Option<StateId> {
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
        let end = match (a.end, b.end) {
            (Some(x), Some(y)) if x != y => return None,
            (x, y) => x.or(y),
        };
        let mut edges: BTreeMap<L, StateId> = a.edges.into_iter().collect();
        for (label, target) in b.edges {
            let merged = match edges.get(&label) {
                Some(&other) => self.union(other, target)?,
                None => target,
            };
            edges.insert(label, merged);
        }
        Some(self.intern(Node { edges: edges.into_iter().collect(), end }))
    }

    /// Returns the strings of `a`, each followed by a string of `b`; `None` if one string would have two kinds of end.
    pub(crate) fn concatenation(&mut self, a: StateId, b: StateId) -> Option<StateId> {
        if let Some(known) = self.concatenations.get(&(a, b)) {
            return *known;
        }
        let head = self.node(a).clone();
        let mut edges = Vec::with_capacity(head.edges.len());
        let mut all = Some(());
        for (label, target) in head.edges {
            match self.concatenation(target, b) {
                Some(then) => edges.push((label, then)),
                None => all = None,
            }
        }
        let goes_on = self.intern(Node { edges, end: None });
        let joined = match (all, head.end) {
            (None, _) => None,
            (_, None) => Some(goes_on),
            (_, Some(_)) => self.union(goes_on, b),
        };
        self.concatenations.insert((a, b), joined);
        joined
    }

    /// Returns the strings of `a` that are not in `b`; `None` if there are none.
    pub fn difference(&mut self, a: StateId, b: StateId) -> Option<StateId> {
        let (left, right) = (self.node(a).clone(), self.node(b).clone());
        let mut edges = Vec::with_capacity(left.edges.len());
        for (label, target) in left.edges {
            let other =
                right.edges.binary_search_by_key(&label, |edge| edge.0).ok().map(|at| right.edges[at].1);
            let rest = match other {
                Some(other) if other == target => None,
                Some(other) => match self.differences.get(&(target, other)) {
                    Some(known) => *known,
                    None => {
                        let rest = self.difference(target, other);
                        self.differences.insert((target, other), rest);
                        rest
                    }
                },
                None => Some(target),
            };
            edges.extend(rest.map(|rest| (label, rest)));
        }
        let end = left.end.filter(|_| right.end.is_none());
        (end.is_some() || !edges.is_empty()).then(|| self.intern(Node { edges, end }))
    }

    /// Returns the strings of a language without the suffix `last`; `None` if some string does not end with it.
    pub(crate) fn without_last(&mut self, root: StateId, last: &[L]) -> Option<StateId>
    where
        E: Default,
    {
        let Some((first, rest)) = last.split_first() else { return Some(root) };
        let end = self.end(E::default());
        let tail = rest
            .iter()
            .rev()
            .fold(end, |then, label| self.intern(Node { edges: vec![(*label, then)], end: None }));
        let mut made: HashMap<StateId, StateId> = HashMap::new();
        let mut order = self.reachable(root);
        // A state is created after its successors, so its number is larger.
        order.sort_unstable();
        for id in order {
            let mut node = self.node(id).clone();
            if node.edges.contains(&(*first, tail)) {
                node.edges.retain(|edge| *edge != (*first, tail));
                node.end = Some(E::default());
            }
            for (_, target) in &mut node.edges {
                *target = *made.get(target)?;
            }
            let new = self.intern(node);
            made.insert(id, new);
        }
        made.get(&root).copied()
    }

    /// Returns the states that can be reached from `root`, which comes first.
    pub fn reachable(&self, root: StateId) -> Vec<StateId> {
        let mut order = vec![root];
        let mut seen = std::collections::HashSet::from([root]);
        let mut at = 0;
        while at < order.len() {
            for (_, target) in &self.node(order[at]).edges {
                if seen.insert(*target) {
                    order.push(*target);
                }
            }
            at += 1;
        }
        order
    }

    /// Returns the number of strings in a language.
    pub fn count(&self, root: StateId) -> u128 {
        let mut counts: HashMap<StateId, u128> = HashMap::new();
        // A state is created after its successors, so its number is larger.
        let mut order = self.reachable(root);
        order.sort_unstable();
        for id in order {
            let node = self.node(id);
            let below: u128 = node.edges.iter().map(|(_, target)| counts[target]).sum();
            counts.insert(id, below + u128::from(node.end.is_some()));
        }
        counts[&root]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_languages_are_one_and_prefixes_are_followed() {
        let mut states: Languages<u32, u8> = Languages::default();
        let end = states.end(0);
        let a = states.trie(vec![(vec![1, 2], end), (vec![3, 2], end), (vec![1], end)]).unwrap();
        let node = states.node(a).clone();
        assert_eq!(node.edges.iter().map(|(label, _)| *label).collect::<Vec<_>>(), [1, 3]);
        // Behind 1 a string may end or go on, behind 3 it must go on.
        assert_eq!(states.node(node.edges[0].1).end, Some(0));
        assert_eq!(states.node(node.edges[1].1).end, None);
        let b = states.trie(vec![(vec![3, 2], end), (vec![1], end), (vec![1, 2], end)]).unwrap();
        assert_eq!(a, b);
        assert_eq!(states.count(a), 3);
        let twice = states.concatenation(a, a).unwrap();
        // 1·1, 1·12, 1·32, 12·1, 12·12, 12·32, 32·…: all differ.
        assert_eq!(states.count(twice), 9);
        let one = states.trie(vec![(vec![1], end), (vec![4], end)]).unwrap();
        let rest = states.difference(a, one).unwrap();
        assert_eq!(states.count(rest), 2);
        assert_eq!((states.difference(a, a), states.difference(rest, a)), (None, None));
    }

    #[test]
    fn one_string_cannot_end_in_two_ways() {
        let mut states: Languages<u32, u8> = Languages::default();
        let (plain, isolated) = (states.end(0), states.end(1));
        assert_eq!(states.trie(vec![(vec![1], plain), (vec![1], isolated)]), None);
        assert!(states.trie(vec![(vec![1], plain), (vec![2], isolated)]).is_some());
    }
}
