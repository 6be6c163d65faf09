//! Determines how a model writes its numbers if neither the user nor a recipe states it: from the encoding of the given conformers,
//! and from what the model writes by itself.

use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::plan::GeneratePlan;
use crate::generate::{Options, Prompt};
use crate::parameter;
use drift_core::constraint::{LogitProcessor, ProcessorKind};
use drift_core::encoding::{DecimalForms, TrailingZeros};
use drift_core::text::prompt;
use drift_core::{Encoding, Error, Job, Result};
use drift_data::audit::{EncodingCounts, split};
use drift_data::generation::EncodingEvidence;
use drift_data::prompts::Molecules;

/// The number of texts that are generated at a time, each for another molecule.
const TEXTS: usize = 4;

/// The largest number of rounds.
const ROUNDS: usize = 3;

/// The number of tokens of each text.
const TOKENS: usize = 160;

/// The number of blocks of only one encoding that are sufficient evidence. A model without skill may write one by chance.
const LEAST_EVIDENCE: u64 = 3;

/// Determines the encoding of a checkpoint.
///
/// # Errors
/// If the conformers and the model's own text disagree, or neither determines the encoding; and the errors of
/// [`crate::generate::Engine::generate`].
pub(crate) fn settle(
    plan: &GeneratePlan,
    checkpoint: &mut Checkpoint,
    molecules: &Molecules,
    job: &Job,
) -> Result<()> {
    if checkpoint.encoding_from.is_some() {
        return Ok(());
    }
    let given = of_conformers(molecules.written, checkpoint.encoding);
    let own = own_text(plan, checkpoint, molecules, job)?;
    let (encoding, from) = decided(&checkpoint.name, molecules, given, own)?;
    (checkpoint.encoding, checkpoint.encoding_from) = (encoding, Some(from));
    Ok(())
}

/// Returns the encoding on which both sources agree, or that of the only source that determines one.
fn decided(
    name: &str,
    molecules: &Molecules,
    given: Option<Encoding>,
    own: Option<Encoding>,
) -> Result<(Encoding, EncodingEvidence)> {
    let parameter = parameter::DIALECT;
    let place = format!("model {name}");
    let conformers = molecules.references.from.as_deref().unwrap_or(&molecules.source);
    match (given, own) {
        (Some(given), Some(own)) if given == own => Ok((own, EncodingEvidence::Both)),
        (Some(given), Some(own)) => {
            let problem = format!("writes {} text by itself, {conformers} is {}", own.name(), given.name());
            let remedy = format!("say with {parameter} which one the model was trained on");
            Err(Error::input(place, problem, remedy))
        }
        (Some(given), None) => Ok((given, EncodingEvidence::Conformers)),
        (None, Some(own)) => Ok((own, EncodingEvidence::OwnText)),
        (None, None) => {
            let problem = "has no recipe, and neither its own text nor the conformers given tell fixed from stripped numbers";
            let other = parameter::ENCODING;
            let remedy =
                format!("give {parameter} fixed, {parameter} stripped or {other}, as it was trained");
            Err(Error::input(place, problem, remedy))
        }
    }
}

/// Returns the encoding of the conformers' texts; `None` if both fixed and stripped fit, or neither.
fn of_conformers(written: DecimalForms, like: Encoding) -> Option<Encoding> {
    match written {
        DecimalForms { fixed: true, stripped: false } => Some(like.with_zeros(TrailingZeros::Kept)),
        DecimalForms { fixed: false, stripped: true } => Some(like.with_zeros(TrailingZeros::Removed)),
        _ => None,
    }
}

/// Returns the encoding in which the model writes without a logit processor; `None` if there is not enough evidence.
fn own_text(
    plan: &GeneratePlan,
    checkpoint: &mut Checkpoint,
    molecules: &Molecules,
    job: &Job,
) -> Result<Option<Encoding>> {
    let none = LogitProcessor::new(
        ProcessorKind::None,
        checkpoint.tokenizer.clone(),
        checkpoint.encoding,
        None,
        checkpoint.specials.clone(),
    )?;
    let options = Options {
        batch: TEXTS,
        sampling: plan.sampling,
        seed: plan.seed,
        watched: Arc::default(),
        self_check: plan.self_check.clone(),
        ..Options::default()
    };
    let mut found = EncodingCounts::default();
    for some in molecules.molecules.chunks(TEXTS).take(ROUNDS) {
        let prompt = |(number, molecule): (usize, &drift_data::prompts::PromptMolecule)| {
            Ok(Prompt {
                number,
                tokens: checkpoint.tokenizer.prompt_ids(&prompt(&molecule.smiles))?,
                generations: 1,
                done: [].into(),
                constraint: none.constraint(&molecule.skeleton)?,
                most_tokens: TOKENS,
                expected_tokens: TOKENS,
            })
        };
        let prompts = some.iter().enumerate().map(prompt).collect::<Result<Vec<Prompt>>>()?;
        let generated = checkpoint.engine()?.generate(&prompts, &options, job)?;
        if generated.interrupted {
            return Err(Error::Interrupted);
        }
        for text in &generated.samples {
            let text = checkpoint.tokenizer.answer_text(&text.tokens)?;
            found = found.join(evidence(&text, checkpoint.encoding));
        }
        if let Some(encoding) = enough(found, checkpoint.encoding) {
            return Ok(Some(encoding));
        }
    }
    Ok(None)
}

fn evidence(text: &str, like: Encoding) -> EncodingCounts {
    let answer = split(text).answer;
    EncodingCounts::from_blocks(like.slot_ranges(answer).into_iter().map(|range| &answer[range]), like)
}

fn enough(found: EncodingCounts, like: Encoding) -> Option<Encoding> {
    found.encoding(like).filter(|_| found.fixed.max(found.stripped) >= LEAST_EVIDENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: Option<Encoding> = Some(Encoding::FIXED);
    const STRIPPED: Option<Encoding> = Some(Encoding::STRIPPED);

    #[test]
    fn evidence_that_agrees_or_stands_alone_decides() {
        let molecules = Molecules { source: "some.jsonl".to_owned(), ..Molecules::default() };
        let decide = |given, own| decided("m", &molecules, given, own);
        assert_eq!(decide(FIXED, FIXED).unwrap(), (Encoding::FIXED, EncodingEvidence::Both));
        assert_eq!(decide(STRIPPED, None).unwrap(), (Encoding::STRIPPED, EncodingEvidence::Conformers));
        assert_eq!(decide(None, STRIPPED).unwrap(), (Encoding::STRIPPED, EncodingEvidence::OwnText));
        let error = decide(FIXED, STRIPPED).unwrap_err().to_string();
        assert_eq!(
            error,
            "model m: writes stripped text by itself, some.jsonl is fixed; say with ‘dialect’ which one the model was trained on"
        );
        assert!(decide(None, None).unwrap_err().to_string().ends_with("as it was trained"));
    }

    #[test]
    fn a_few_blocks_are_no_evidence() {
        let of = |text: &str| enough(evidence(text, Encoding::FIXED), Encoding::FIXED);
        assert_eq!(of("[CONFORMER][C]<1.2340,0.1111,0.1234>"), None);
        assert_eq!(of(&format!("[CONFORMER]{}", "[C]<1.2340,0.1111,0.1234>".repeat(3))), FIXED);
        assert_eq!(of(&"[C]<1.234,0.1111,0.1234>".repeat(3)), STRIPPED);
        assert_eq!(of(&"[C]<1.2345,0.1111,0.1234>".repeat(9)), None);
    }

    #[test]
    fn texts_of_conformers_tell_unless_both_encodings_fit() {
        let of = |fixed, stripped| of_conformers(DecimalForms { fixed, stripped }, Encoding::STRIPPED);
        assert_eq!((of(true, false), of(false, true)), (FIXED, STRIPPED));
        assert_eq!((of(true, true), of(false, false)), (None, None));
    }
}
