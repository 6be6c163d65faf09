//! Judges the texts of a run.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::checkpoint::Checkpoint;
use super::plan::EvalPlan;
use super::subject::Subject;
use super::written::{WrittenText, token_texts};
use crate::generate::{End, Generated, GeneratedText};
use drift_core::chem::Isotopes;
use drift_core::constraint::{Placeholder, strip_junk};
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::text::skeleton::placed;
use drift_core::text::write;
use drift_core::tokenizer::Tokenizer;
use drift_data::audit::geometry::Conformation;
use drift_data::audit::{self, DriftHistogram, Mark, Outcome};

/// One judged text.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// The index of the molecule.
    pub subject: usize,
    /// The index of the first molecule of the group whose texts are measured together.
    pub group: usize,
    /// The index of the text among the molecule's texts.
    pub generation: usize,
    /// The text after the prompt, completed with surrounding tags that were not written.
    pub text: String,
    /// The number of bytes at its start that belong to the prompt.
    pub of_prompt: usize,
    /// The verdict on the text.
    pub verdict: audit::TextVerdict,
    /// The flaws, as byte ranges of the text.
    pub marks: Vec<Mark>,
    /// Whether the skeleton equals the prompt's skeleton, character by character.
    pub copied: bool,
    /// The positions in Å, with atoms in the prompt's order, if the text is usable.
    pub points: Option<Conformation>,
    /// The positions in the atom order of the pool's SMILES; `None` if the molecule is in no pool.
    pub pooled_points: Option<Conformation>,
    /// The number of tokens that are only junk or invented digits.
    pub wasted_tokens: u64,
    /// The drift of the readable blocks, with a position template.
    pub drift: DriftHistogram,
}

impl Judged {
    /// Whether the text is the prompt's molecule with three numbers in every block.
    pub(super) fn passed(&self) -> bool {
        self.verdict.outcome == Outcome::Pass
    }

    /// The positions in the atom order in which the text is measured.
    pub(super) fn measured_points(&self, subject: &Subject) -> Option<&Conformation> {
        if subject.pool.is_some() { self.pooled_points.as_ref() } else { self.points.as_ref() }
    }
}

/// Judges all texts, ordered by molecule, then by generation, given the placeholder of the logit processor, if it takes one. Strips
/// junk first if requested.
pub(super) fn judge_all(
    of_run: (&EvalPlan, Option<&Placeholder>),
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    generated: &Generated,
) -> Result<Vec<Judged>> {
    let one = |sample: &GeneratedText| judged(of_run, checkpoint, &subjects[sample.prompt], sample);
    generated.samples.par_iter().map(one).collect()
}

fn judged(
    (plan, placeholder): (&EvalPlan, Option<&Placeholder>),
    checkpoint: &Checkpoint,
    subject: &Subject,
    sample: &GeneratedText,
) -> Result<Judged> {
    let max_atoms = plan.max_atoms;
    let written = WrittenText::new(checkpoint, plan.generate.form, sample)?;
    let wasted_tokens = written.wasted_tokens(checkpoint, sample);
    let WrittenText { text: written, of_prompt } = written;
    let text = if plan.strip_junk { strip_junk(&written, checkpoint.encoding) } else { written };
    let prompt = Some(&*subject.molecule.smiles);
    let (ended, encoding, isotopes) = (sample.end == End::Eos, checkpoint.encoding, Isotopes::Ignore);
    let judged = audit::TextSample { prompt, answer: &text, ended, encoding, max_atoms, isotopes };
    let mut verdict = audit::judge(&judged);
    if encoding.is_stripped() {
        let cut = cut_off(&checkpoint.tokenizer, sample, encoding);
        for (at, block) in verdict.blocks.iter_mut().enumerate() {
            block.truncated = Some(cut.contains(&at));
        }
    }
    let copied = verdict.skeleton == subject.molecule.skeleton;
    let skeleton = &subject.molecule.skeleton;
    let points = audit::usable_points(audit::split(&text).answer, &verdict, skeleton, encoding, max_atoms);
    let pooled_points = subject
        .pool
        .as_ref()
        .and_then(|pool| audit::reordered(points.clone()?, skeleton, &pool.molecule.skeleton, max_atoms));
    let marks = audit::marks(&text, encoding);
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

/// Adds F - T for each readable block: the number of FREE tokens of the placeholder minus the number of tokens of the block in
/// canonical form, which is the block without junk and with missing decimals filled with zeros.
fn add_drift(
    checkpoint: &Checkpoint,
    placeholder: &Placeholder,
    text: &str,
    skeleton: &str,
    drift: &mut DriftHistogram,
) -> Result<()> {
    let blocks = audit::readable(text, checkpoint.encoding);
    let coordinates: Vec<_> = blocks.iter().map(|block| block.unwrap_or_default()).collect();
    let mended = write(&placed(skeleton, checkpoint.encoding.slots()), &coordinates, checkpoint.encoding);
    let template = placeholder.fill(skeleton, checkpoint.encoding);
    drift.add((&checkpoint.tokenizer, checkpoint.encoding), &mended, &template, |block| {
        blocks.get(block).is_some_and(Option::is_some)
    })
}

/// The blocks that were closed by force although the model would have continued the number.
fn cut_off(tokenizer: &Tokenizer, sample: &GeneratedText, encoding: Encoding) -> BTreeSet<usize> {
    if sample.preferred.is_empty() {
        return BTreeSet::new();
    }
    let texts = token_texts(tokenizer, &sample.tokens);
    let text = texts.concat();
    let blocks = encoding.slot_ranges(&text);
    let is_cut = |(place, token): &(usize, u32)| {
        let at = texts[..*place].iter().map(String::len).sum::<usize>();
        let block = blocks.iter().position(|block| block.start <= at && at <= block.end)?;
        let next = tokenizer.decode(&[*token]).unwrap_or_default();
        audit::goes_on(&text[blocks[block].start..at], &next, encoding).then_some(block)
    };
    sample.preferred.iter().filter_map(is_cut).collect()
}
