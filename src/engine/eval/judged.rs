//! The texts of a run, judged.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::answers::{tag_of_prompt, with_tags};
use super::checkpoint::Checkpoint;
use super::subject::Subject;
use crate::generate::{End, Generated, GeneratedText};
use drift_core::chem::AtomLimit;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::constraint::{Placeholder, strip_junk};
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::text::skeleton::placed;
use drift_core::text::write;
use drift_core::tokenizer::Tokenizer;
use drift_data::audit::geometry::Conformation;
use drift_data::audit::{self, DriftHistogram, Mark, MarkKind, Outcome};

/// One text.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// Index of the molecule.
    pub subject: usize,
    /// Index of the first molecule whose texts are measured with its own.
    pub group: usize,
    /// Which of its texts.
    pub generation: usize,
    /// What was written after the prompt, with the tags around it that were not.
    pub text: String,
    /// Bytes that it begins with and that the prompt holds.
    pub of_prompt: usize,
    /// What became of it.
    pub verdict: audit::TextVerdict,
    /// What is wrong, by bytes of the text.
    pub marks: Vec<Mark>,
    /// Whether the skeleton is that of the prompt, character by character.
    pub copied: bool,
    /// Positions in Å, of a text that passed, atoms in the prompt's order.
    pub points: Option<Conformation>,
    /// The same in the order of the SMILES that pools it; none of a molecule that stands for itself.
    pub pooled_points: Option<Conformation>,
    /// Tokens that are nothing but junk or invented digits.
    pub wasted_tokens: u64,
    /// Drift of the blocks that can be read, under a position template.
    pub drift: DriftHistogram,
}

impl Judged {
    /// Whether it is the prompt's molecule with three numbers in every block.
    pub(super) fn passed(&self) -> bool {
        self.verdict.outcome == Outcome::Pass
    }

    /// Where its atoms lie in the order in which it is measured.
    pub(super) fn measured_points(&self, subject: &Subject) -> Option<&Conformation> {
        if subject.pool.is_some() { self.pooled_points.as_ref() } else { self.points.as_ref() }
    }
}

/// How texts are judged.
#[derive(Clone, Copy)]
pub(super) struct Judging<'p> {
    /// Of the logit processor, if it takes one.
    pub placeholder: Option<&'p Placeholder>,
    /// Whether junk is taken off first.
    pub strips_junk: bool,
    /// The largest molecule that is compared.
    pub max_atoms: AtomLimit,
    /// What an answer holds.
    pub form: AnswerForm,
    /// Whether the tag that closes a conformer is what ends a text.
    pub ends_in_tag: bool,
}

/// Judges all texts; by molecule, then by generation. Junk is taken off first where that is asked for.
pub(super) fn judge_all(
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    judging: Judging<'_>,
    generated: &Generated,
) -> Result<Vec<Judged>> {
    let one = |sample: &GeneratedText| judged(checkpoint, &subjects[sample.prompt], judging, sample);
    generated.samples.par_iter().map(one).collect()
}

fn judged(
    checkpoint: &Checkpoint,
    subject: &Subject,
    judging: Judging<'_>,
    sample: &GeneratedText,
) -> Result<Judged> {
    let Judging { placeholder, strips_junk, max_atoms, form, ends_in_tag } = judging;
    let written = checkpoint.tokenizer.answer_text(&sample.tokens)?;
    let closed = ends_in_tag && sample.end == End::Eos;
    let of_prompt = tag_of_prompt(&written, form, sample.generation).len();
    let written = with_tags(written, form, (sample.generation, closed));
    // Of the text as it was written: what is stripped below was generated all the same.
    let written_marks = audit::marks(&written, checkpoint.dialect);
    let flawed = written_marks.iter().any(|mark| mark.flaw != MarkKind::Lost);
    // Most texts have no flaw, and need no token decoded.
    let tokens = if flawed { token_texts(&checkpoint.tokenizer, &sample.tokens) } else { Vec::new() };
    let wasted_tokens = wasted(&tokens, of_prompt, &written_marks);
    let text = if strips_junk { strip_junk(&written, checkpoint.dialect) } else { written };
    let prompt = Some(&*subject.molecule.smiles);
    let (ended, dialect) = (sample.end == End::Eos, checkpoint.dialect);
    let mut verdict = audit::judge(&audit::TextSample { prompt, answer: &text, ended, dialect, max_atoms });
    if dialect.is_stripped() {
        let cut = cut_off(&checkpoint.tokenizer, sample, dialect);
        for (at, block) in verdict.blocks.iter_mut().enumerate() {
            block.truncated = Some(cut.contains(&at));
        }
    }
    let copied = verdict.skeleton == subject.molecule.skeleton;
    let skeleton = &subject.molecule.skeleton;
    let points = audit::usable_points(audit::split(&text).answer, &verdict, skeleton, dialect, max_atoms);
    let pooled_points = subject
        .pool
        .as_ref()
        .and_then(|pool| audit::reordered(points.clone()?, skeleton, &pool.molecule.skeleton, max_atoms));
    let marks = audit::marks(&text, dialect);
    let mut drift = DriftHistogram::default();
    if let Some(placeholder) = placeholder.filter(|_| copied) {
        add_drift(checkpoint, placeholder, &text, &verdict.skeleton, &mut drift)?;
    }
    Ok(Judged {
        subject: sample.prompt,
        group: subject.group,
        generation: sample.generation,
        wasted_tokens,
        text,
        of_prompt,
        verdict,
        marks,
        copied,
        points,
        pooled_points,
        drift,
    })
}

/// F - T of each block that can be read: FREE tokens of the placeholder less those of the block in the dialect's form, junk
/// cut off and missing decimals filled with zeros.
fn add_drift(
    checkpoint: &Checkpoint,
    placeholder: &Placeholder,
    text: &str,
    skeleton: &str,
    drift: &mut DriftHistogram,
) -> Result<()> {
    let blocks = audit::readable(text, checkpoint.dialect);
    let coordinates: Vec<_> = blocks.iter().map(|block| block.unwrap_or_default()).collect();
    let mended = write(&placed(skeleton, checkpoint.dialect.slots()), &coordinates, checkpoint.dialect);
    let template = placeholder.fill(skeleton, checkpoint.dialect);
    drift.add((&checkpoint.tokenizer, checkpoint.dialect), &mended, &template, |block| {
        blocks.get(block).is_some_and(Option::is_some)
    })
}

/// The blocks that were closed by force where the model would have written on.
fn cut_off(tokenizer: &Tokenizer, sample: &GeneratedText, dialect: Encoding) -> BTreeSet<usize> {
    if sample.preferred.is_empty() {
        return BTreeSet::new();
    }
    let texts = token_texts(tokenizer, &sample.tokens);
    let text = texts.concat();
    let blocks = dialect.slot_ranges(&text);
    let is_cut = |(place, token): &(usize, u32)| {
        let at = texts[..*place].iter().map(String::len).sum::<usize>();
        let block = blocks.iter().position(|block| block.start <= at && at <= block.end)?;
        let next = tokenizer.decode(&[*token]).unwrap_or_default();
        audit::goes_on(&text[blocks[block].start..at], &next, dialect).then_some(block)
    };
    sample.preferred.iter().filter_map(is_cut).collect()
}

/// How many of the tokens of a text, the first of which begins at byte `begin`, lie inside what is junk or invented.
fn wasted(tokens: &[String], begin: usize, marks: &[Mark]) -> u64 {
    let mut at = begin;
    let mut is_wasted = |text: &String| {
        let (start, end) = (at, at + text.len());
        at = end;
        let mut flawed = marks.iter().filter(|mark| mark.flaw != MarkKind::Lost);
        flawed.any(|mark| mark.range.start <= start && end <= mark.range.end)
    };
    tokens.iter().map(|text| u64::from(is_wasted(text))).sum()
}

/// The text of each token.
pub(super) fn token_texts(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<String> {
    // A token that is part of a character shows as a replacement character: such text is junk anyway.
    tokens.iter().map(|token| tokenizer.decode(&[*token]).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_core::text::CONFORMER_OPEN;

    /// The same tokens are wasted whether the opening tag is one of them or the prompt's.
    #[test]
    fn tokens_of_opened_prompts_are_where_the_marks_are() {
        let tokens = ["[C]", "<", "1.0000", ",", "2.0000", ",", "3.0000", "ab", "ra", ">"].map(str::to_owned);
        let (opened, plain) = (AnswerForm { conformers: 2, opened: true }, AnswerForm::default());
        let of = |tokens: &[String], form: AnswerForm, generation: usize| {
            let written = tokens.concat();
            let begin = tag_of_prompt(&written, form, generation).len();
            let text = with_tags(written, form, (generation, true));
            (wasted(tokens, begin, &audit::marks(&text, Encoding::FIXED)), text)
        };
        let with_tag = [&[CONFORMER_OPEN.to_owned()], &tokens[..]].concat();
        let (own, text) = of(&with_tag, plain, 0);
        assert_eq!((own, of(&tokens, opened, 2)), (2, (2, text)));
        // Only the first conformer of a text is opened by its prompt.
        assert_eq!(of(&with_tag, opened, 3).0, 2);
    }
}
