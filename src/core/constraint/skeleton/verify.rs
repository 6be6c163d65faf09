//! Compares a constraint with the encoder: a random text is accepted in its own tokens, and a random sequence of legal tokens is what
//! the encoder writes. Pre-tokenizers are expressions, of which it is not proved that they cut a part in a text as they do alone.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::border::{ANOTHER, UNFOLLOWED, refuse};
use super::{Element, SkeletonConstraint, SkeletonRow};
use crate::encoding::Dfa;
use crate::error::Result;

/// The most tokens that are compared. The texts of large prompts are compared as far as this.
const MOST_TOKENS: usize = 256;

/// The tokens at the end of a cut text that are not compared, because they depend on what follows: those of a slot, which the
/// tokenizer may cut out of the text only as a whole.
const UNSURE: usize = 32;

/// Compares a constraint with the encoder. `prompt` is the text before the answer, if both are one text.
///
/// # Errors
/// If they differ.
pub(super) fn verify(constraint: &SkeletonConstraint, prompt: &str) -> Result<()> {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut compared = ConstraintCheck { constraint, prompt, reach: 0 };
    let text = compared.random_text(&mut random)?;
    let ids = compared.ids(&text)?;
    if !prompt.is_empty() {
        compared.reach = constraint.processor.spellings.text(&ids).len().saturating_sub(text.text.len());
    }
    let cut = if text.is_over { ids.len() } else { ids.len().saturating_sub(UNSURE) };
    // A vocabulary of words may lack some numbers, which then cannot be written.
    let is_known = !ids.iter().any(|id| constraint.processor.spellings.is_unknown(*id));
    if is_known && let Some(row) = constraint.refusal(&ids[..cut], text.is_over) {
        let error = || compared.differs(&text, "the encoder's tokens are not allowed");
        return Err(compared.problem(&row).unwrap_or_else(error));
    }
    let walked = compared.walk(&ids, &mut random)?;
    let ids = compared.ids(&walked.text)?;
    let cut = if walked.text.is_over { walked.ids.len() } else { walked.ids.len().saturating_sub(UNSURE) };
    let is_same = ids.starts_with(&walked.ids[..cut]) && (!walked.text.is_over || ids.len() == cut);
    if !is_same {
        return Err(compared.differs(&walked.text, "it was written in other tokens than the encoder's"));
    }
    Ok(())
}

/// A constraint that is compared.
struct ConstraintCheck<'c> {
    constraint: &'c SkeletonConstraint,
    prompt: &'c str,
    /// How many bytes of the prompt belong to the answer's first token.
    reach: usize,
}

/// A text of the skeleton, without what stands before its marker.
struct SampleText {
    text: String,
    is_over: bool,
}

/// The tokens of a text.
struct TokenWalk {
    text: SampleText,
    ids: Vec<u32>,
}

impl ConstraintCheck<'_> {
    /// Returns the tokens of a text behind the prompt or the marker.
    fn ids(&self, text: &SampleText) -> Result<Vec<u32>> {
        let processor = &self.constraint.processor;
        let free = self.free();
        let answer = format!("{free}{}", text.text);
        let mut whole = processor.tokenizer.ids(&format!("{}{answer}", self.prompt))?;
        // Counted from the end, because the prompt may hold characters without a token. The first token may begin in the prompt.
        let offsets = processor.spellings.offsets(&whole);
        let from = offsets[whole.len()].saturating_sub(answer.len());
        let first = offsets[1..].iter().position(|end| *end > from).unwrap_or(whole.len());
        let mut ids = if self.prompt.is_empty() { whole } else { whole.split_off(first) };
        // The last tag of a text may be the token that ends it.
        ids.pop_if(|last| *last == processor.eos);
        Ok(ids)
    }

    /// Returns what stands before the described text.
    fn free(&self) -> String {
        let marker = self.constraint.processor.skeleton.marker.as_deref();
        marker.map_or_else(String::new, |marker| format!("\n{marker}"))
    }

    fn random_text(&self, random: &mut ChaCha8Rng) -> Result<SampleText> {
        let Self { constraint, .. } = self;
        let (program, name) = (&constraint.program, &constraint.processor.tokenizer.name);
        let (mut text, mut at) = (String::new(), program.start());
        while !program.is_over(&at) && text.len() < 4 * MOST_TOKENS {
            let mut all = program.continuations(&at, "").map_err(|why| refuse(name, why))?;
            if all.is_empty() {
                return Err(refuse(name, "no text of the skeleton goes on in it"));
            }
            let next = all.swap_remove(random.random_range(0..all.len()));
            for element in &next.elements {
                match element {
                    Element::Text(part) => text.push_str(part),
                    Element::Slot(slot) => {
                        text.push_str(&random_slot(&program.slot(*slot).dfa, random));
                    }
                }
            }
            at = next.to;
        }
        Ok(SampleText { is_over: program.is_over(&at), text })
    }

    /// Returns a walk over legal tokens. It begins with the free text of `sample`, the tokens of a text.
    fn walk(&self, sample: &[u32], random: &mut ChaCha8Rng) -> Result<TokenWalk> {
        let Self { constraint, .. } = self;
        let mut row = constraint.row();
        let mut ids = Vec::new();
        let free = self.free();
        // The free text and the marker in the tokens of another text.
        for id in sample {
            if !row.is_free() {
                break;
            }
            if !row.mask().allows(*id) {
                return Err(self.stuck(&row, &ids));
            }
            row.advance(constraint, *id);
            ids.push(*id);
        }
        let mut is_over = false;
        while ids.len() < MOST_TOKENS && !is_over {
            let Some(id) = row.mask().drawn(random) else { return Err(self.stuck(&row, &ids)) };
            is_over = id == constraint.eos();
            if !is_over {
                ids.push(id);
                row.advance(constraint, id);
            }
        }
        let bytes = constraint.processor.spellings.text(&ids);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let added = usize::from(constraint.processor.spellings.adds_space && self.prompt.is_empty());
        let from = (added + free.len() + self.reach).min(text.len());
        Ok(TokenWalk { text: SampleText { text: text[from..].to_owned(), is_over }, ids })
    }

    fn stuck(&self, row: &SkeletonRow, ids: &[u32]) -> crate::Error {
        let bytes = self.constraint.processor.spellings.text(ids);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let error = || format!("behind `{}` no token can follow", text.escape_debug());
        self.problem(row).unwrap_or_else(|| refuse(&self.constraint.processor.tokenizer.name, error()))
    }

    /// Returns why a row ends, if its ways could not be found.
    fn problem(&self, row: &SkeletonRow) -> Option<crate::Error> {
        let why = row.problem()?;
        let why = why.split_once(UNFOLLOWED).map_or(why, |parts| parts.1);
        let why = why.split_once(ANOTHER).map_or(why, |parts| parts.0);
        Some(refuse(&self.constraint.processor.tokenizer.name, why.trim_end_matches("; ")))
    }

    fn differs(&self, text: &SampleText, problem: &str) -> crate::Error {
        let shown = crate::error::excerpt(text.text.as_bytes());
        refuse(&self.constraint.processor.tokenizer.name, format!("{shown}: {problem}"))
    }
}

/// Returns a random text of a slot.
fn random_slot(dfa: &Dfa, random: &mut ChaCha8Rng) -> String {
    let (mut state, mut bytes) = (dfa.start(), Vec::new());
    loop {
        let next: Vec<u8> = dfa.bytes(state).collect();
        if next.is_empty() || (dfa.accepts(state) && random.random_range(0..4) == 0) {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        let byte = next[random.random_range(0..next.len())];
        bytes.push(byte);
        // Always found, because the byte goes on.
        state = dfa.next(state, byte).unwrap_or(state);
    }
}

impl SkeletonConstraint {
    /// Follows tokens up to the first that is not legal or ends the text. Returns the row there, and whether it followed all.
    pub(super) fn followed(&self, ids: &[u32]) -> (SkeletonRow, bool) {
        let mut row = self.row();
        let is_legal = ids.iter().all(|id| {
            let is_legal = *id != self.eos() && row.mask().allows(*id);
            if is_legal {
                row.advance(self, *id);
            }
            is_legal
        });
        (row, is_legal)
    }

    /// Returns the row that does not go on, unless the tokens of a text are legal, and complete it if it is over.
    fn refusal(&self, ids: &[u32], is_over: bool) -> Option<SkeletonRow> {
        let (row, is_legal) = self.followed(ids);
        let ends = !is_over || row.mask().allows(self.eos());
        (!is_legal || !ends).then_some(row)
    }

    /// Returns whether the tokens of a text are legal, and complete it if it is over.
    #[cfg(test)]
    pub(super) fn accepts(&self, ids: &[u32], is_over: bool) -> bool {
        self.refusal(ids, is_over).is_none()
    }
}
