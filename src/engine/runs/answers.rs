//! Builds prompts with worked examples before the molecule, and splits answers of several conformers so that each conformer is
//! judged as its own text.
//!
//! Users write several conformers into one completion, `[CONFORMER]…[/CONFORMER][CONFORMER]…[/CONFORMER]`. They give prompts that
//! end in `[CONFORMER]`, and put worked examples before the molecule, each of the form `[SMILES]…[/SMILES][CONFORMER]…[/CONFORMER]`
//! followed by a line break.

use super::checkpoint::Checkpoint;
use super::plan::GeneratePlan;
use crate::generate::{End, GeneratedText};
use crate::parameter;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::text::{self, CONFORMER_CLOSE, CONFORMER_OPEN, tagged, write};
use drift_core::{Error, Result, Tokenizer};
use drift_data::corpus::frame::rewritten;
use drift_data::prompts::PromptMolecule;

/// The largest number of worked examples in a prompt, which is what users give.
pub const MOST_EXAMPLES: usize = 10;

/// Returns the prompt for a molecule: the worked examples, its SMILES, and the tag that opens its answer if prompts end with it.
fn prompt(plan: &GeneratePlan, examples: &str, smiles: &str) -> String {
    let opened = if plan.form.opened { CONFORMER_OPEN } else { "" };
    [examples, &text::prompt(smiles), opened].concat()
}

/// Returns the ids of the prompt of a molecule before its text, which begins with a tag unless the prompt ends in it.
///
/// # Errors
/// If the tokenizer cannot encode it.
pub(crate) fn prompt_ids(
    plan: &GeneratePlan,
    tokenizer: &Tokenizer,
    examples: &str,
    smiles: &str,
) -> Result<Vec<u32>> {
    let prompt = prompt(plan, examples, smiles);
    match plan.form.opened {
        true => tokenizer.prompt_ids_before(&prompt, "[C]<"),
        false => tokenizer.prompt_ids(&prompt),
    }
}

/// Returns the worked examples, which precede the molecule in every prompt.
///
/// # Errors
/// If a coordinate of an example cannot be written in the model's encoding.
pub(crate) fn examples(plan: &GeneratePlan, checkpoint: &Checkpoint) -> Result<String> {
    plan.examples.iter().map(|example| worked(example, checkpoint)).collect()
}

/// Returns a worked example: a molecule with its conformers in the model's frame, followed by a line break.
fn worked(example: &PromptMolecule, checkpoint: &Checkpoint) -> Result<String> {
    let encoding = checkpoint.encoding;
    let skeleton = drift_core::text::skeleton::placed(&example.skeleton, encoding.slots());
    let mut out = text::prompt(&example.smiles);
    for conformer in &example.conformers {
        let encodings = (example.encoding, encoding);
        let converted =
            rewritten(&example.skeleton, conformer, checkpoint.frame, encodings).map_err(|problem| {
                let remedy = format!("give examples that {encoding} can write");
                Error::parameter(parameter::EXAMPLES, format!("{}: {problem}", example.smiles), remedy)
            })?;
        out.push_str(&tagged(&write(&skeleton, &converted, encoding)));
    }
    out.push('\n');
    Ok(out)
}

/// Refuses a form whose conformers cannot be separated by tokens.
///
/// # Errors
/// If the tag that closes a conformer is not a token of the tokenizer.
pub(crate) fn check_form(tokenizer: &Tokenizer, form: AnswerForm) -> Result<()> {
    if form.conformers > 1 && tokenizer.vocabulary_id(CONFORMER_CLOSE).is_none() {
        let problem = format!("{CONFORMER_CLOSE} is not a token of {}", tokenizer.name);
        let remedy = "add the four tags to the tokenizer, or ask for one conformer per text";
        return Err(Error::parameter(parameter::CONFORMERS, problem, remedy));
    }
    Ok(())
}

/// Splits texts of several conformers after each closing tag. Conformer `p` of generation `g` becomes generation
/// `g · conformers + p`. If a text has fewer conformers, empty texts follow, which fail. The last part contains any excess.
pub(crate) fn apart(
    tokenizer: &Tokenizer,
    form: AnswerForm,
    samples: Vec<GeneratedText>,
) -> Vec<GeneratedText> {
    match tokenizer.vocabulary_id(CONFORMER_CLOSE) {
        Some(close) if form.conformers > 1 => {
            samples.iter().flat_map(|sample| parts(sample, form.conformers, close)).collect()
        }
        _ => samples,
    }
}

fn parts(sample: &GeneratedText, conformers: usize, close: u32) -> Vec<GeneratedText> {
    let closed = (0..sample.tokens.len()).filter(|at| sample.tokens[*at] == close).map(|at| at + 1);
    let mut ends: Vec<usize> = closed.take(conformers - 1).filter(|end| *end < sample.tokens.len()).collect();
    ends.push(sample.tokens.len());
    let mut start = 0;
    let part = |place: usize| {
        let last = place + 1 == ends.len();
        let end = ends.get(place).copied().unwrap_or(start);
        let range = start..end;
        start = end;
        // The log values after the last token belong to the end of the whole text.
        let logged = |logs: &Option<Vec<f32>>| {
            let all = logs.as_ref()?;
            let end = if last { all.len() } else { range.end.min(all.len()) };
            Some(all.get(range.start..end).unwrap_or_default().to_vec())
        };
        let preferred = sample.preferred.iter().filter(|(at, _)| range.contains(at));
        GeneratedText {
            prompt: sample.prompt,
            generation: sample.generation * conformers + place,
            tokens: sample.tokens[range.clone()].to_vec(),
            forced: sample.forced[range.clone()].to_vec(),
            end: match place < ends.len() {
                true if last => sample.end,
                true => End::Eos,
                false => End::Length,
            },
            log_probabilities: logged(&sample.log_probabilities),
            log_allowed: logged(&sample.log_allowed),
            preferred: preferred.map(|(at, token)| (at - range.start, *token)).collect(),
            // Of the whole text.
            dead_ends: sample.dead_ends,
        }
    };
    (0..conformers).map(part).collect()
}

/// Returns the opening tag, if the prompt contains it for this conformer and something was written after it; otherwise empty.
pub(crate) fn tag_of_prompt(written: &str, form: AnswerForm, generation: usize) -> &'static str {
    let opened = form.opened && generation.is_multiple_of(form.conformers.max(1));
    if opened && !written.is_empty() { CONFORMER_OPEN } else { "" }
}

/// Returns the full text of a conformer: with the opening tag if the prompt contains it, and with the closing tag if the tag ended the
/// text.
pub(crate) fn with_tags(written: String, form: AnswerForm, (generation, ended): (usize, bool)) -> String {
    let open = tag_of_prompt(&written, form, generation);
    let close = if ended && !written.contains(CONFORMER_CLOSE) { CONFORMER_CLOSE } else { "" };
    if open.is_empty() && close.is_empty() { written } else { format!("{open}{written}{close}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tokens: &[u32], end: End) -> GeneratedText {
        let logs: Vec<f32> = (0..=tokens.len()).map(|n| n as f32).collect();
        GeneratedText {
            prompt: 3,
            generation: 1,
            tokens: tokens.to_vec(),
            forced: vec![false; tokens.len()],
            end,
            log_probabilities: Some(logs),
            log_allowed: None,
            preferred: vec![(1, 5), (4, 6)],
            dead_ends: None,
        }
    }

    #[test]
    fn conformers_are_cut_apart_behind_their_tags() {
        let cut = parts(&text(&[1, 2, 9, 1, 3, 9], End::Eos), 2, 9);
        let shown: Vec<_> = cut.iter().map(|part| (part.generation, &part.tokens[..], part.end)).collect();
        assert_eq!(shown, [(2, &[1, 2, 9][..], End::Eos), (3, &[1, 3, 9][..], End::Eos)]);
        assert_eq!((&cut[0].preferred[..], &cut[1].preferred[..]), (&[(1, 5)][..], &[(1, 6)][..]));
        let logs: Vec<_> =
            cut.iter().map(|part| part.log_probabilities.clone().unwrap_or_default()).collect();
        assert_eq!(logs, [vec![0.0, 1.0, 2.0], vec![3.0, 4.0, 5.0, 6.0]]);
    }

    #[test]
    fn missing_conformers_are_empty_and_more_stay_in_the_last() {
        let few = parts(&text(&[1, 2, 9], End::Eos), 3, 9);
        let shown: Vec<_> = few.iter().map(|part| (part.tokens.len(), part.end)).collect();
        assert_eq!(shown, [(3, End::Eos), (0, End::Length), (0, End::Length)]);
        let many = parts(&text(&[1, 9, 2, 9, 3, 9], End::Length), 2, 9);
        assert_eq!((many.len(), &many[1].tokens[..], many[1].end), (2, &[2, 9, 3, 9][..], End::Length));
    }
}
