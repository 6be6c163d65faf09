//! The strings of a slot as a table: which byte may come next, what may end, and what completes what was begun.

use std::collections::BTreeSet;

use super::language::{Languages, StateId};

/// A state of a [`Dfa`].
pub type DfaState = u16;

/// A minimal deterministic automaton over bytes. From every state an end can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dfa {
    /// By state, then by byte; [`Dfa::DEAD`] where nothing goes on.
    next: Vec<[DfaState; 256]>,
    accepts: Vec<bool>,
}

impl Dfa {
    /// Where nothing goes on.
    const DEAD: DfaState = DfaState::MAX;

    /// The automaton of a language; its start is state 0.
    pub(super) fn new(languages: &Languages<u8>, root: StateId) -> Self {
        let order = languages.reachable(root);
        let number = |id: StateId| order.iter().position(|other| *other == id).unwrap_or(0) as DfaState;
        let mut next = vec![[Dfa::DEAD; 256]; order.len()];
        for (state, id) in order.iter().enumerate() {
            for (byte, target) in &languages.node(*id).edges {
                next[state][usize::from(*byte)] = number(*target);
            }
        }
        let accepts = order.iter().map(|id| languages.node(*id).end.is_some()).collect();
        Dfa { next, accepts }
    }

    /// The state before the first byte.
    pub fn start(&self) -> DfaState {
        0
    }

    /// How many states there are.
    pub fn len(&self) -> usize {
        self.next.len()
    }

    /// Whether there are none; there is always one.
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// The state behind a byte; `None` where no string goes on so.
    #[inline]
    pub fn next(&self, state: DfaState, byte: u8) -> Option<DfaState> {
        Some(self.next[usize::from(state)][usize::from(byte)]).filter(|next| *next != Dfa::DEAD)
    }

    /// The state behind some bytes; `None` where no string goes on so.
    pub fn run(&self, state: DfaState, bytes: &[u8]) -> Option<DfaState> {
        bytes.iter().try_fold(state, |state, byte| self.next(state, *byte))
    }

    /// Whether a string may end here.
    pub fn accepts(&self, state: DfaState) -> bool {
        self.accepts[usize::from(state)]
    }

    /// Whether a text is a string of the language.
    pub fn matches(&self, text: &[u8]) -> bool {
        self.run(self.start(), text).is_some_and(|state| self.accepts(state))
    }

    /// How many of the bytes go on from the start, and where they lead.
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

    /// The strings that do not begin with a byte.
    pub fn without_first(mut self, byte: u8) -> Self {
        // The start is led back to from nowhere, since the language is finite.
        self.next[0][usize::from(byte)] = Dfa::DEAD;
        self
    }

    /// The bytes that may come next, ascending.
    pub fn bytes(&self, state: DfaState) -> impl Iterator<Item = u8> + '_ {
        (0..=255).filter(move |byte| self.next(state, *byte).is_some())
    }

    /// All bytes that strings hold.
    pub fn alphabet(&self) -> BTreeSet<u8> {
        (0..self.len()).flat_map(|state| self.bytes(state as DfaState)).collect()
    }

    /// The shortest bytes that end a string from here, the smallest of these.
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
                    // The byte is one of those that go on.
                    let Some(next) = self.next(state, byte) else { continue };
                    // Bytes ascend and layers grow, so the first way to a state is the least of the shortest.
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
