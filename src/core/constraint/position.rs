//! Position templates: the users' logit processors. The position since the end of the prompt indexes the template. COPY forces its
//! token, FREE masks part of the vocabulary, and past the end EOS is forced.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::mask::Mask;
use super::template::{Slot, Template};
use super::vocabulary::{Vocabulary, is_comma, is_number_token, is_separator, is_well_formed, tags};
use super::{Constraint, ProcessorKind, Specials, State};
use crate::error::Result;
use crate::tokenizer::Tokenizer;

/// A set of legal tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Set {
    Only(Vec<u32>),
    Except(Vec<u32>),
}

impl Set {
    /// Returns the set without `ids`.
    fn without(&self, ids: &[u32]) -> Set {
        match self {
            Set::Only(legal) => Set::Only(legal.iter().copied().filter(|id| !ids.contains(id)).collect()),
            Set::Except(blocked) => {
                // Masks are searched by bisection, so ids must ascend and be distinct.
                let all: BTreeSet<u32> = blocked.iter().chain(ids).copied().collect();
                Set::Except(all.into_iter().collect())
            }
        }
    }

    fn mask(&self) -> Mask<'_> {
        match self {
            Set::Only(ids) => Mask::only(ids),
            Set::Except(ids) => Mask::Except(ids),
        }
    }
}

/// The legal tokens at FREE positions under one variant: a function of the vocabulary, shared by all molecules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FreeSets {
    /// The number of FREE positions before `>` that are restricted further.
    pub lookahead: usize,
    /// Indexed by whether the position is the first of its run, and by whether the close is near: `sets[first][before_close]`.
    sets: [[Set; 2]; 2],
}

impl FreeSets {
    /// Returns the sets of a variant; `None` for processors without position templates.
    ///
    /// # Errors
    /// If the tokenizer cannot encode a tag.
    pub(super) fn new(
        kind: ProcessorKind,
        tokenizer: &Tokenizer,
        specials: &Specials,
    ) -> Result<Option<Self>> {
        let vocabulary = Vocabulary::from_tokenizer(tokenizer);
        let malformed = || vocabulary.ids(|token| is_number_token(token) && !is_well_formed(token));
        let blocked = |characters: &[char]| -> Result<Set> {
            let mut ids = tags(tokenizer)?;
            ids.extend(vocabulary.holding(characters));
            ids.extend(specials.all());
            Ok(Set::Except(ids.into_iter().collect()))
        };
        // Lookaheads and blocked characters match the users' own versions, whose masks must be reproduced.
        let (lookahead, base) = match kind {
            ProcessorKind::None | ProcessorKind::Automaton | ProcessorKind::Geometry => return Ok(None),
            ProcessorKind::Generic => (1, blocked(&['<', '>'])?),
            ProcessorKind::Qwen38 => (4, blocked(&['<', '>'])?.without(&malformed())),
            ProcessorKind::Qwen39 => (2, blocked(&['<', '>'])?.without(&malformed())),
            ProcessorKind::Targeted => (2, blocked(&['<', '>', '[', ']', '@', '+'])?.without(&malformed())),
            ProcessorKind::Allowlist | ProcessorKind::Truncating => {
                (2, Set::Only(vocabulary.ids(is_well_formed)))
            }
        };
        // No block ends in a comma or a sign. Version 2.1 does not include `.,` and `,.`.
        let trailing = vocabulary.ids(|token| {
            is_separator(token) || (kind != ProcessorKind::Generic && matches!(token, ".," | ",."))
        });
        // As in the users' code, only the allowlist keeps a block from beginning with a comma.
        let commas = match kind {
            ProcessorKind::Allowlist | ProcessorKind::Truncating => vocabulary.ids(is_comma),
            _ => Vec::new(),
        };
        let first = base.without(&commas);
        let sets = [[base.clone(), base.without(&trailing)], [first.clone(), first.without(&trailing)]];
        Ok(Some(FreeSets { lookahead, sets }))
    }

    /// Returns the mask of a position; without a slot, of one past the end, where `eos` is forced.
    pub(super) fn mask(&self, slot: Option<&Slot>, eos: u32) -> Mask<'_> {
        match slot {
            None => Mask::Forced(eos),
            Some(Slot::Copy(id)) => Mask::Forced(*id),
            Some(Slot::Free { first, before_close }) => {
                self.sets[usize::from(*first)][usize::from(*before_close)].mask()
            }
        }
    }
}

/// The position template of one molecule. `State::at` is the position; `State::inner` is unused.
pub(super) struct PositionTemplate {
    pub(super) template: Template,
    pub(super) sets: Arc<FreeSets>,
    pub(super) eos: u32,
}

impl Constraint for PositionTemplate {
    fn start(&self) -> State {
        State::default()
    }

    fn mask(&self, state: &State) -> Mask<'_> {
        self.sets.mask(self.template.slots.get(state.at as usize), self.eos)
    }

    fn advance(&self, state: &mut State, _token: u32) {
        state.at += 1;
    }

    fn is_over(&self, state: &State, _token: u32) -> bool {
        state.at as usize >= self.template.slots.len()
    }
}
