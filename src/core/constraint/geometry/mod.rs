//! The automaton, and on top of it the geometry of the molecule: a coordinate is legal if the positions written before it leave a
//! place for the atom ([`crate::geometry`]).
//!
//! The mask of a row depends on the coordinates that the row has written, so a row has a [`GeometryRow`] beside its [`State`]. A token
//! is legal if the automaton allows it and some continuation of its number has an allowed value: bins are whole tokens or digits,
//! decimals are followed token by token, however the tokenizer cuts them. Everything that stays legal keeps its logit, so a text
//! whose numbers are all allowed comes out as under the automaton alone.

mod cursor;
mod row;

use std::sync::Arc;

pub use row::{AtomPlace, GeometryRow};

use self::cursor::{Cursor, SlotText};
use self::row::holds;
use super::automaton::{AutomatonProcessor, MoleculeAutomaton};
use super::{Constraint, Mask, State};
use crate::encoding::{Encoding, Slots};
use crate::error::{Error, Result};
use crate::geometry::{GeometryRules, GeometryStrength, Intervals};
use crate::parameter;
use crate::tokenizer::Tokenizer;
use crate::tokenizer::boundaries::with_white_space;

/// The texts of all tokens.
#[derive(Debug)]
struct TokenTexts {
    /// The end of the text of each id in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl TokenTexts {
    fn from_tokenizer(tokenizer: &Tokenizer) -> Self {
        let mut texts = vec![String::new(); tokenizer.rows() as usize];
        for (text, id) in tokenizer.vocabulary() {
            texts[id as usize] = text;
        }
        let (mut ends, mut bytes) = (Vec::with_capacity(texts.len()), Vec::new());
        for text in texts {
            bytes.extend_from_slice(with_white_space(&text).as_bytes());
            ends.push(bytes.len() as u32);
        }
        TokenTexts { ends, bytes }
    }

    /// Returns the text of a token; empty for an id without token.
    fn bytes(&self, token: u32) -> &[u8] {
        let at = token as usize;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(at).copied().unwrap_or(start);
        &self.bytes[start as usize..end as usize]
    }
}

/// Makes the constraints of molecules, for one tokenizer and encoding.
pub(crate) struct GeometryProcessor {
    pub(super) automaton: AutomatonProcessor,
    encoding: Encoding,
    texts: Arc<TokenTexts>,
    pub(super) strength: GeometryStrength,
}

impl GeometryProcessor {
    /// Returns a processor of the default strength on top of an automaton.
    ///
    /// # Errors
    /// If slots of the encoding have no coordinates of atoms.
    pub(crate) fn new(
        automaton: AutomatonProcessor,
        tokenizer: &Tokenizer,
        encoding: Encoding,
    ) -> Result<Self> {
        if !encoding.has_coordinates() || encoding.numbers() != 3 || encoding.slots() != Slots::Atoms {
            let problem = format!("the encoding `{encoding}` writes no x, y and z behind each atom");
            return Err(Error::parameter(parameter::LP, problem, "give automaton"));
        }
        let texts = Arc::new(TokenTexts::from_tokenizer(tokenizer));
        Ok(GeometryProcessor { automaton, encoding, texts, strength: GeometryStrength::default() })
    }

    /// Returns the constraint of a molecule.
    ///
    /// # Errors
    /// If the skeleton has no known tokenisation, or RDKit would refuse the SMILES.
    pub(crate) fn molecule(&self, skeleton: &str, smiles: &str) -> Result<GeometryConstraint> {
        let automaton = self.automaton.molecule(skeleton)?;
        let form = self.automaton.form();
        let text = SlotText::new(skeleton, self.encoding, form.conformers.max(1), form.opened);
        let rules = GeometryRules::from_smiles(smiles, self.strength).map_err(|why| {
            Error::input(
                crate::error::excerpt(smiles.as_bytes()),
                format!("has no known geometry: {}", why.reason),
                "leave this molecule out, or give the logit processor automaton",
            )
        })?;
        if rules.atoms() != text.atoms {
            let problem = format!("has {} atoms, its skeleton {}", rules.atoms(), text.atoms);
            let place = crate::error::excerpt(smiles.as_bytes());
            return Err(Error::input(place, problem, "give the SMILES of the skeleton"));
        }
        Ok(GeometryConstraint { automaton, rules, text, texts: self.texts.clone() })
    }
}

/// The automaton and the geometry of one molecule. Its [`Constraint::mask`] is that of the automaton; a [`GeometryRow`] narrows it.
pub struct GeometryConstraint {
    automaton: MoleculeAutomaton,
    rules: GeometryRules,
    text: SlotText,
    texts: Arc<TokenTexts>,
}

impl GeometryConstraint {
    /// Returns a row that has written nothing.
    pub fn row(&self) -> GeometryRow {
        GeometryRow::new()
    }

    /// Returns the limits on the positions of the atoms.
    pub fn rules(&self) -> &GeometryRules {
        &self.rules
    }

    /// Returns whether the number at a place can still get a value of a set. The state is that of the automaton at the place.
    fn completes(&self, cursor: Cursor, state: &State, set: &Intervals) -> bool {
        let (axis, format) = (cursor.axis, self.text.encoding.number());
        let ranges = format.completions(cursor.prefix(), axis);
        if !ranges.iter().any(|range| holds(self, set, axis, *range)) {
            return false;
        }
        let at = |value| format.angstrom(value, axis).unwrap_or(f64::NAN);
        let is_inside = |[low, high]: &[i32; 2]| {
            // Between two values of one interval there is no other one, unless one of them is a tail.
            let inside = |part: &&[f64; 2]| part[0] <= at(*low) && at(*high) <= part[1];
            !format.is_tail(*low, axis)
                && !format.is_tail(*high, axis)
                && set.parts().iter().any(|p| inside(&p))
        };
        if ranges.iter().all(is_inside) {
            return true;
        }
        // Not every text that begins like this can be written in canonical tokens from here, so the tokens are tried.
        let one;
        let ids = match self.automaton.mask(state) {
            Mask::Forced(id) => {
                one = [id];
                &one[..]
            }
            Mask::Only(ids) => ids,
            Mask::Any | Mask::Except(_) => return true,
        };
        ids.iter().any(|id| self.completes_with(*id, cursor, state, set))
    }

    /// Returns whether the number can get a value of the set if this token follows.
    fn completes_with(&self, token: u32, mut cursor: Cursor, state: &State, set: &Intervals) -> bool {
        let (slot, axis, before) = (cursor.slot, cursor.axis, cursor);
        for byte in self.texts.bytes(token) {
            let ended = cursor.step(*byte, &self.text);
            if (cursor.slot, cursor.axis) != (slot, axis) {
                return ended.is_some_and(|number| holds(self, set, axis, [number.value; 2]));
            }
        }
        let mut then = *state;
        self.automaton.advance(&mut then, token);
        // A token that writes nothing of the text would repeat the question.
        !cursor.is_at(&before) && self.completes(cursor, &then, set)
    }
}

impl Constraint for GeometryConstraint {
    fn start(&self) -> State {
        self.automaton.start()
    }

    fn mask(&self, state: &State) -> Mask<'_> {
        self.automaton.mask(state)
    }

    fn advance(&self, state: &mut State, token: u32) {
        self.automaton.advance(state, token);
    }

    fn is_over(&self, state: &State, token: u32) -> bool {
        self.automaton.is_over(state, token)
    }

    fn geometry(&self) -> Option<&GeometryConstraint> {
        Some(self)
    }
}
