//! Texts of another run of the same order, of another device or version, set beside those of this one.

use super::checkpoint::Checkpoint;
use super::judged::{Judged, token_texts};
use super::run::{Processor, Run, logit_processor};
use super::subject::Subject;
use super::texts::{OtherTexts, SameTexts, TextDifference};
use crate::generate::GeneratedText;
use crate::train;
use drift_core::constraint::LogitProcessor;
use drift_core::error::Result;

/// So many differences are looked into; the others are only counted.
const LOOKED_INTO: usize = 100;

impl SameTexts {
    /// Beside the texts of `other`.
    pub(super) fn beside(other: &OtherTexts) -> Self {
        SameTexts { file: other.file.clone(), ..SameTexts::default() }
    }

    /// Compares the texts of a run.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn add(
        &mut self,
        other: &OtherTexts,
        checkpoint: &mut Checkpoint,
        subjects: &[Subject],
        (processor, run): (Processor<'_>, &Run),
    ) -> Result<()> {
        let made = logit_processor(checkpoint, processor)?;
        for (judged, sample) in run.judged.iter().zip(&run.generated.samples) {
            let smiles = &subjects[judged.subject].molecule.smiles;
            let (placeholder, generation) = (run.placeholder.clone(), judged.generation);
            let key = (checkpoint.name.clone(), run.processor, placeholder, smiles.clone(), generation);
            let Some(theirs) = other.texts.get(&key) else {
                self.missing += 1;
                continue;
            };
            self.compared += 1;
            if *theirs == judged.text {
                self.equal += 1;
            } else if self.differences.len() < LOOKED_INTO {
                let subject = &subjects[judged.subject];
                self.differences.push(difference(checkpoint, subject, &made, (judged, sample), theirs)?);
            }
        }
        Ok(())
    }
}

/// Where a text parts from another.
fn difference(
    checkpoint: &mut Checkpoint,
    subject: &Subject,
    processor: &LogitProcessor,
    (judged, sample): (&Judged, &GeneratedText),
    theirs: &str,
) -> Result<TextDifference> {
    let texts = token_texts(&checkpoint.tokenizer, &sample.tokens);
    let common = judged.text.bytes().zip(theirs.bytes()).take_while(|(a, b)| a == b).count();
    let mut end = 0;
    let parts = |text: &String| {
        end += text.len();
        end > common
    };
    // The first token that ends behind the common text is the one that differs.
    let tokens = texts.iter().position(parts).unwrap_or(texts.len());
    let before: usize = texts[..tokens].iter().map(String::len).sum();
    let rest = theirs.get(before..).unwrap_or_default();
    Ok(TextDifference {
        model: checkpoint.name.clone(),
        lp: processor.kind(),
        smiles: subject.molecule.smiles.clone(),
        generation: judged.generation,
        tokens,
        ours: texts.get(tokens).cloned().unwrap_or_default(),
        theirs: rest.chars().take(12).collect(),
        lead: lead(checkpoint, subject, processor, &sample.tokens[..tokens])?,
    })
}

/// By how much the best of the logits that are allowed after `written` leads the second.
fn lead(
    checkpoint: &mut Checkpoint,
    subject: &Subject,
    processor: &LogitProcessor,
    written: &[u32],
) -> Result<Option<f32>> {
    let constraint = processor.constraint(&subject.molecule.skeleton)?;
    let mut state = constraint.start();
    written.iter().for_each(|token| constraint.advance(&mut state, *token));
    let mut text = checkpoint.tokenizer.prompt_ids(&train::prompt(&subject.molecule.smiles))?;
    text.extend_from_slice(written);
    checkpoint.engine()?.lead(&text, constraint.mask(&state))
}
