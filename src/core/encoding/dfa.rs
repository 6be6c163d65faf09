//! The strings of a slot as a table: which byte may come next, where a string may end, and how an incomplete string is completed.

use std::collections::{BTreeSet, HashMap};

use super::language::{Languages, Node, StateId};

/// A state of a [`Dfa`].
pub type DfaState = u16;

/// A minimal deterministic automaton over bytes. From every state an accepting state can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dfa {
    /// By state, then by byte; [`Dfa::DEAD`] if no string continues with this byte.
    next: Vec<[DfaState; 256]>,
    accepts: Vec<bool>,
}

impl Dfa {
    /// Marks a byte with which no string continues.
    const DEAD: DfaState = DfaState::MAX;

    /// Returns the automaton of a language; its start is state 0.
    pub(crate) fn new(languages: &Languages<u8>, root: StateId) -> Self {
        let order = languages.reachable(root);
        let numbers: HashMap<StateId, DfaState> =
            order.iter().enumerate().map(|(state, id)| (*id, state as DfaState)).collect();
        let mut next = vec![[Dfa::DEAD; 256]; order.len()];
        for (state, id) in order.iter().enumerate() {
            for (byte, target) in &languages.node(*id).edges {
                next[state][usize::from(*byte)] = numbers[target];
            }
        }
        let accepts = order.iter().map(|id| languages.node(*id).end.is_some()).collect();
        Dfa { next, accepts }
    }

    /// Returns the language of the automaton.
    pub(crate) fn language(&self, languages: &mut Languages<u8>) -> StateId {
        self.language_from(self.start(), languages, &mut HashMap::new())
    }

    fn language_from(
        &self,
        state: DfaState,
        languages: &mut Languages<u8>,
        known: &mut HashMap<DfaState, StateId>,
    ) -> StateId {
        if let Some(known) = known.get(&state) {
            return *known;
        }
        let next = |byte: u8| Some((byte, self.next(state, byte)?));
        let targets: Vec<(u8, DfaState)> = (0..=255).filter_map(next).collect();
        let edges =
            targets.into_iter().map(|(byte, then)| (byte, self.language_from(then, languages, known)));
        let edges = edges.collect();
        let id = languages.intern(Node { edges, end: self.accepts(state).then_some(()) });
        known.insert(state, id);
        id
    }

    /// Returns the state before the first byte.
    pub fn start(&self) -> DfaState {
        0
    }

    /// Returns the number of states.
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// Always false: there is at least one state.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Returns the state after a byte; `None` if no string continues with it.
    #[inline]
    pub fn next(&self, state: DfaState, byte: u8) -> Option<DfaState> {
        Some(self.next[usize::from(state)][usize::from(byte)]).filter(|next| *next != Dfa::DEAD)
    }

    /// Returns the state after some bytes; `None` if no string continues with them.
    pub fn run(&self, state: DfaState, bytes: &[u8]) -> Option<DfaState> {
        bytes.iter().try_fold(state, |state, byte| self.next(state, *byte))
    }

    /// Returns whether a string may hold these bytes.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        (0..self.len() as DfaState).any(|state| self.run(state, bytes).is_some())
    }

    /// Returns whether a string may end here.
    pub(crate) fn accepts(&self, state: DfaState) -> bool {
        self.accepts[usize::from(state)]
    }

    /// Returns whether a text is a string of the language.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.run(self.start(), text).is_some_and(|state| self.accepts(state))
    }

    /// Returns the length of the longest prefix of `bytes` that a string can begin with, and the state behind it.
    pub fn longest(&self, bytes: &[u8]) -> (usize, DfaState) {
        let mut state = self.start();
        for (at, byte) in bytes.iter().enumerate() {
            match self.next(state, *byte) {
                Some(next) => state = next,
                None => return (at, state),
            }
        }
        (bytes.len(), state)
    }

    /// Returns the automaton without the strings that begin with `byte`.
    pub fn without_first(mut self, byte: u8) -> Self {
        // The language is finite, so no edge leads back to the start state.
        self.next[0][usize::from(byte)] = Dfa::DEAD;
        self
    }

    /// Returns the bytes that may come next, ascending.
    pub fn bytes(&self, state: DfaState) -> impl Iterator<Item = u8> + '_ {
        (0..=255).filter(move |byte| self.next(state, *byte).is_some())
    }

    /// Returns all bytes that occur in strings.
    pub fn alphabet(&self) -> BTreeSet<u8> {
        (0..self.len()).flat_map(|state| self.bytes(state as DfaState)).collect()
    }

    /// Returns the characters of its texts.
    pub(crate) fn characters(&self) -> BTreeSet<char> {
        let mut all = BTreeSet::new();
        for state in 0..self.len() as DfaState {
            let mut begun: Vec<(Vec<u8>, DfaState)> = vec![(Vec::new(), state)];
            while let Some((bytes, at)) = begun.pop() {
                for byte in self.bytes(at) {
                    let longer = [&bytes[..], &[byte]].concat();
                    match (std::str::from_utf8(&longer), self.next(at, byte)) {
                        (Ok(text), _) => all.extend(text.chars()),
                        // A character has four bytes at most, and none begins within another.
                        (Err(_), Some(next)) if longer.len() < 4 && longer[0] >= 0xC0 => {
                            begun.push((longer, next))
                        }
                        _ => {}
                    }
                }
            }
        }
        all
    }

    /// Returns the bytes with which strings may end.
    pub(crate) fn last_bytes(&self) -> BTreeSet<u8> {
        let states = 0..self.len() as DfaState;
        let ends =
            |state: DfaState, byte: &u8| self.next(state, *byte).is_some_and(|then| self.accepts(then));
        states.flat_map(|state| self.bytes(state).filter(move |byte| ends(state, byte))).collect()
    }

    /// Returns all strings in their order; `None` if they are more than `most`.
    pub fn strings(&self, most: usize) -> Option<Vec<String>> {
        let (mut found, mut waiting) = (Vec::new(), vec![(self.start(), String::new())]);
        while let Some((state, text)) = waiting.pop().filter(|_| found.len() <= most) {
            for byte in (0..=255).rev() {
                let then = self.next(state, byte);
                waiting.extend(then.map(|then| (then, format!("{text}{}", char::from(byte)))));
            }
            if self.accepts(state) {
                found.push(text);
            }
        }
        (found.len() <= most).then_some(found)
    }

    /// Returns the shortest byte sequence that completes a string from here; of several, the smallest.
    pub fn completion(&self, state: DfaState) -> Vec<u8> {
        let mut layer = vec![(state, Vec::new())];
        let mut seen = BTreeSet::from([state]);
        while !layer.is_empty() {
            if let Some((_, bytes)) = layer.iter().find(|(state, _)| self.accepts(*state)) {
                return bytes.clone();
            }
            let mut below = Vec::new();
            for (state, bytes) in layer {
                for byte in self.bytes(state) {
                    // Always found, because `bytes` lists only bytes that continue.
                    let Some(next) = self.next(state, byte) else { continue };
                    // Bytes ascend and layers grow, so the first path to a state is the smallest of the shortest ones.
                    if seen.insert(next) {
                        below.push((next, [&bytes[..], &[byte]].concat()));
                    }
                }
            }
            layer = below;
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parts::{SlotPart, language};
    use super::*;

    #[test]
    fn a_table_says_what_the_language_says() {
        let mut languages = Languages::default();
        let row = [
            SlotPart::Optional("-".into()),
            SlotPart::Padded { below: 250, width: 3 },
            SlotPart::Literal(";".into()),
        ];
        let root = language(&row, &mut languages);
        let dfa = Dfa::new(&languages, root);
        assert!(dfa.matches(b"-249;") && dfa.matches(b"007;"));
        for other in ["250;", "07;", "0007;", "-249", "--249;", ""] {
            assert!(!dfa.matches(other.as_bytes()), "{other}");
        }
        assert_eq!(dfa.completion(dfa.run(0, b"24").unwrap()), b"0;");
        assert_eq!(dfa.completion(dfa.run(0, b"249;").unwrap()), b"");
        // No number below 250 begins with 25.
        assert_eq!(dfa.longest(b"25;"), (1, dfa.run(0, b"2").unwrap()));
        assert_eq!(dfa.alphabet().into_iter().collect::<Vec<_>>(), b"-0123456789;");
    }
}
