//! Compares the texts of this run with those of another run on another device or version.

use super::texts::{OtherTexts, SameTexts, TextDifference};
use crate::generate::GeneratedText;
use crate::runs::answers;
use crate::runs::checkpoint::Checkpoint;
use crate::runs::plan::GeneratePlan;
use crate::runs::run::{Run, RunProcessor, logit_processor};
use crate::runs::written::{WrittenText, token_texts};
use drift_core::Result;
use drift_core::constraint::LogitProcessor;
use drift_data::prompts::PromptMolecule;

/// Only this many differences are examined in detail; the others are only counted.
const LOOKED_INTO: usize = 100;

impl SameTexts {
    /// Returns an empty comparison with the texts of `other`.
    pub(super) fn beside(other: &OtherTexts) -> Self {
        SameTexts { file: other.file.clone(), ..SameTexts::default() }
    }

    /// Compares the texts of a run.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn add(
        &mut self,
        (plan, other): (&GeneratePlan, &OtherTexts),
        checkpoint: &mut Checkpoint,
        molecules: &[PromptMolecule],
        (processor, run): (RunProcessor<'_>, &Run),
    ) -> Result<()> {
        let made = logit_processor(checkpoint, processor)?.answering(plan.form);
        for (written, sample) in run.written.iter().zip(&run.generated.samples) {
            let molecule = &molecules[sample.prompt];
            let (placeholder, smiles) = (run.placeholder.clone(), molecule.smiles.clone());
            let key = (checkpoint.name.clone(), run.processor, placeholder, smiles, sample.generation);
            let Some(theirs) = other.texts.get(&key) else {
                self.missing += 1;
                continue;
            };
            self.compared += 1;
            if *theirs == written.text {
                self.equal += 1;
            } else if self.differences.len() < LOOKED_INTO {
                let texts = (written, sample, &**theirs);
                self.differences.push(difference(plan, checkpoint, molecule, &made, texts)?);
            }
        }
        Ok(())
    }
}

/// Returns the first difference between a text and the other text.
fn difference(
    plan: &GeneratePlan,
    checkpoint: &mut Checkpoint,
    molecule: &PromptMolecule,
    processor: &LogitProcessor,
    (own, sample, theirs): (&WrittenText, &GeneratedText, &str),
) -> Result<TextDifference> {
    let texts = token_texts(&checkpoint.tokenizer, &sample.tokens);
    let (tokens, place) = parting(&texts, (&own.text, own.of_prompt), theirs);
    let written = theirs.get(own.of_prompt..).unwrap_or_default();
    // If this tokenizer cannot encode the other text, the texts are compared only by characters.
    let their_ids = checkpoint.tokenizer.ids(written).unwrap_or_default();
    let their_texts = token_texts(&checkpoint.tokenizer, &their_ids);
    let (tokens, place) = longer_token(&texts, (tokens, place), &their_texts, own.of_prompt);
    let rest = theirs.get(place..).unwrap_or_default();
    // For a later conformer of a text the preceding text is not available, because texts were cut apart.
    let is_first = sample.generation.is_multiple_of(plan.form.conformers.max(1));
    let lead = match is_first {
        true => lead(plan, checkpoint, molecule, processor, &sample.tokens[..tokens])?,
        false => None,
    };
    Ok(TextDifference {
        model: checkpoint.name.clone(),
        lp: processor.kind(),
        smiles: molecule.smiles.clone(),
        generation: sample.generation,
        tokens,
        ours: texts.get(tokens).cloned().unwrap_or_default(),
        theirs: rest.chars().take(12).collect(),
        lead,
    })
}

/// Returns the number of tokens before the first token in which a text differs from another, and the byte of the other text at which that
/// token begins. The first bytes of the text belong to the prompt, and the text may lack junk that the tokens contain.
fn parting(tokens: &[String], (text, of_prompt): (&str, usize), theirs: &str) -> (usize, usize) {
    let common = text.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count();
    let mut wanted = text.as_bytes()[..common].iter().skip(of_prompt).peekable();
    let mut place = of_prompt.min(common);
    for (number, token) in tokens.iter().enumerate() {
        let begin = place;
        for byte in token.bytes() {
            if wanted.next_if(|next| **next == byte).is_some() {
                place += 1;
            } else if wanted.peek().is_none() {
                // The common part ends here, so this is the token that differs.
                return (number, begin);
            }
        }
    }
    (tokens.len(), place)
}

/// Returns the place at which the texts differ. If a token of the other text covers this place and begins before it, this is the
/// beginning of that token: `,-` differs from `,` and `0` where it begins, not after the comma.
fn longer_token(
    tokens: &[String],
    (number, place): (usize, usize),
    theirs: &[String],
    of_prompt: usize,
) -> (usize, usize) {
    let mut end = of_prompt;
    let over = theirs.iter().find_map(|token| {
        let begin = end;
        end += token.len();
        (end > place).then_some(begin)
    });
    let mut begins = place;
    // The tokens of this text that the other text contains completely, from the last one on.
    for before in (0..number).rev() {
        if over.is_none_or(|over| over >= begins) {
            break;
        }
        begins = begins.saturating_sub(tokens[before].len());
        if over == Some(begins) {
            return (before, begins);
        }
    }
    (number, place)
}

/// By how much the best of the allowed logits after `written` exceeds the second best.
fn lead(
    plan: &GeneratePlan,
    checkpoint: &mut Checkpoint,
    molecule: &PromptMolecule,
    processor: &LogitProcessor,
    written: &[u32],
) -> Result<Option<f32>> {
    let constraint = processor.constraint(&molecule.skeleton)?;
    let mut state = constraint.start();
    written.iter().for_each(|token| constraint.advance(&mut state, *token));
    let examples = answers::examples(plan, checkpoint)?;
    let mut text = answers::prompt_ids(plan, &checkpoint.tokenizer, &examples, &molecule.smiles)?;
    text.extend_from_slice(written);
    checkpoint.engine()?.lead(&text, constraint.mask(&state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_part_at_the_token_that_differs() {
        let tokens = ["[C]", "<", "1.5", ",", "2.25", "x", ",", "3", ">"].map(str::to_owned);
        let text = tokens.concat();
        let at = |(text, of_prompt): (&str, usize), theirs: &str| {
            let (tokens, place) = parting(&tokens, (text, of_prompt), theirs);
            (tokens, theirs[place..].to_owned())
        };
        assert_eq!(at((&text, 0), "[C]<1.5,2.26,3>"), (4, "2.26,3>".to_owned()));
        assert_eq!(at((&text, 0), "[C]<1.7"), (2, "1.7".to_owned()));
        assert_eq!(at((&text, 0), &format!("{text}[O]")), (9, "[O]".to_owned()));
        assert_eq!(at((&text, 0), "[C]<"), (2, String::new()));
        // A token of the other text begins before the difference.
        let longer = |theirs: &[&str]| {
            let whole: String = theirs.concat();
            let theirs: Vec<String> = theirs.iter().map(|token| (*token).to_owned()).collect();
            longer_token(&tokens, parting(&tokens, (&text, 0), &whole), &theirs, 0)
        };
        assert_eq!(longer(&["[C]", "<", "1.5", ",-", "2"]), (3, 7));
        assert_eq!(longer(&["[C]", "<", "1.5,-", "2"]), (2, 4));
        // No token of the other text begins where one of this text does.
        assert_eq!(longer(&["[C", "]<1.", "5,-"]), (4, 8));
        assert_eq!(longer(&["[C]", "<", "1.5", ",", "7"]), (4, 8));
        // The prompt's tag is not one of the tokens, and junk was removed.
        let opened = format!("[CONFORMER]{text}");
        assert_eq!(at((&opened, 11), "[CONFORMER][C]<1.5,2.26,3>"), (4, "2.26,3>".to_owned()));
        let stripped = opened.replace('x', "");
        assert_eq!(at((&stripped, 11), "[CONFORMER][C]<1.5,2.25,4>"), (7, "4>".to_owned()));
    }
}
