//! Determines how the texts of an audit are written: by the user, by the rows that state it, by the model's recipe, by the texts
//! themselves, or by the references. If it cannot be determined, or two of these contradict each other, the audit is refused.

use serde::{Deserialize, Serialize};

use super::encoding::EncodingCounts;
use super::read::{FileRecords, Record};
use super::request::AuditPlan;
use super::sample::split;
use crate::corpus::looks_like_bins;
use crate::parameter;
use drift_core::encoding::{DecimalForms, TrailingZeros};
use drift_core::{Encoding, Error, Job, Result};

/// The source of the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodingFrom {
    /// The user.
    Given,
    /// The rows of the texts.
    Rows,
    /// The recipe of the model.
    Recipe,
    /// Blocks that are possible in only one encoding.
    Texts,
    /// The reference conformers, if the texts are not conclusive.
    References,
}

/// The encoding of all texts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextEncoding {
    pub encoding: Encoding,
    /// How it was determined.
    pub from: EncodingFrom,
}

/// What the texts of some files say of their encoding.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Evidence {
    /// The encoding that their rows state.
    stated: Option<StatedEncoding>,
    /// The first row that states none.
    unstated: Option<String>,
    /// The blocks of either way of writing decimals.
    blocks: EncodingCounts,
    /// The number of texts, and of those whose numbers look like bins.
    texts: u64,
    bins: u64,
}

/// An encoding, and the first row that states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StatedEncoding {
    encoding: Encoding,
    place: String,
}

impl Evidence {
    /// Returns the evidence of files.
    ///
    /// # Errors
    /// If a row contradicts the user or another row.
    pub(super) fn of_files(plan: &AuditPlan, files: &[FileRecords]) -> Result<Self> {
        let mut all = Evidence::default();
        for file in files {
            for record in &file.records {
                let one =
                    Evidence::of_record(plan, record, format!("{}: {}", file.input.name, record.place))?;
                all = all.join(one)?;
            }
        }
        Ok(all)
    }

    fn of_record(plan: &AuditPlan, record: &Record, place: String) -> Result<Self> {
        // Without an encoding, decimals and a separator may be asked for.
        let asked = plan.asked().or(record.encoding.map(|stated| plan.request.blocks.over(stated)));
        if let Some(asked) = asked {
            check_agrees(plan, record, asked, &place)?;
        }
        if let Some(encoding) = record.encoding {
            return Ok(Evidence { stated: Some(StatedEncoding { encoding, place }), ..Evidence::default() });
        }
        let unstated = Some(place);
        if plan.asked().is_some() {
            return Ok(Evidence { unstated, ..Evidence::default() });
        }
        let (answer, like) = (split(&record.text).answer, plan.like);
        let contents = like.slot_ranges(answer);
        let contents: Vec<&str> = contents.into_iter().map(|range| &answer[range]).collect();
        let blocks = EncodingCounts::from_blocks(contents.iter().copied(), like);
        let bins = looks_like_bins(&contents, like).into();
        Ok(Evidence { stated: None, unstated, blocks, texts: 1, bins })
    }

    /// Returns the evidence of both.
    ///
    /// # Errors
    /// If a row of one contradicts a row of the other.
    pub(super) fn join(self, other: Evidence) -> Result<Self> {
        if let (Some(first), Some(second)) = (&self.stated, &other.stated)
            && first.encoding != second.encoding
        {
            let problem = format!(
                "states that it is written as {}, but {} as {}",
                second.encoding, first.place, first.encoding
            );
            return Err(Error::input(&second.place, problem, "audit texts of one encoding at a time"));
        }
        Ok(Evidence {
            stated: self.stated.or(other.stated),
            unstated: self.unstated.or(other.unstated),
            blocks: self.blocks.join(other.blocks),
            texts: self.texts + other.texts,
            bins: self.bins + other.bins,
        })
    }

    /// Returns the encoding that the rows state.
    ///
    /// # Errors
    /// If other rows state none, and so are written in decimals.
    fn stated(&self, plan: &AuditPlan) -> Result<Option<Encoding>> {
        let Some(StatedEncoding { encoding, place }) = &self.stated else { return Ok(None) };
        match &self.unstated {
            Some(unstated) if plan.asked().is_none() && !encoding.is_decimal_blocks() => {
                let problem = format!("does not state its encoding, while {place} states {encoding}");
                let remedy = format!("give {} {encoding} if all texts are so", parameter::ENCODING);
                Err(Error::input(unstated, problem, remedy))
            }
            _ => Ok(Some(*encoding)),
        }
    }
}

/// Refuses a record whose row, or the field of whose text, states another encoding than the one that texts should have.
fn check_agrees(plan: &AuditPlan, record: &Record, asked: Encoding, place: &str) -> Result<()> {
    let stated = match (record.encoding, record.zeros) {
        (Some(stated), _) => stated,
        (None, Some(zeros)) => asked.with_zeros(zeros),
        (None, None) => return Ok(()),
    };
    if stated == asked {
        return Ok(());
    }
    let problem = format!("states that it is written as {stated}, not as {asked}");
    let (encoding, dialect) = (parameter::ENCODING, parameter::DIALECT);
    let remedy = if plan.encoding.is_none() && plan.recipe.is_some() {
        format!("that is the recipe's; give texts of this model, or {encoding} {stated}")
    } else {
        let decimals = parameter::DECIMALS;
        format!("leave {encoding}, {dialect} and {decimals} out, or give texts that are written so")
    };
    Err(Error::input(place, problem, remedy))
}

impl TextEncoding {
    /// Returns the encoding of a run, given what its texts say.
    ///
    /// # Errors
    /// If it cannot be determined, or the user's placeholder is not written in it.
    pub(super) fn decide(plan: &AuditPlan, found: &Evidence, job: &Job) -> Result<Self> {
        let decided = TextEncoding::found(plan, found, job)?;
        plan.placeholder(decided.encoding)?;
        Ok(decided)
    }

    fn found(plan: &AuditPlan, found: &Evidence, job: &Job) -> Result<Self> {
        let so = |encoding, from| Ok(TextEncoding { encoding, from });
        if let Some(encoding) = plan.encoding {
            return so(encoding, EncodingFrom::Given);
        }
        if let Some(encoding) = found.stated(plan)? {
            return so(encoding, EncodingFrom::Rows);
        }
        if let Some(encoding) = plan.recipe {
            return so(encoding, EncodingFrom::Recipe);
        }
        if 2 * found.bins > found.texts {
            let place = found.unstated.as_deref().unwrap_or("the texts");
            let problem = "its numbers look like bins, and it does not state their encoding";
            return Err(Error::input(place, problem, format!("give {}", parameter::ENCODING)));
        }
        if let Some(encoding) = found.blocks.encoding(plan.like) {
            return so(encoding, EncodingFrom::Texts);
        }
        if !plan.request.references.is_empty()
            && let Some(encoding) = references_encoding(plan, job)?
        {
            return so(encoding, EncodingFrom::References);
        }
        Err(undecided(found.blocks))
    }
}

/// Returns the error for texts that do not determine their encoding. A guess would count faults that nobody made.
fn undecided(found: EncodingCounts) -> Error {
    let problem = match found {
        EncodingCounts { fixed: 0, stripped: 0 } => {
            "the texts do not tell fixed from stripped: no whole block is of one dialect alone".to_owned()
        }
        EncodingCounts { fixed, stripped } => {
            format!("the texts tell both dialects: {fixed} blocks are fixed alone, {stripped} stripped alone")
        }
    };
    let option = parameter::DIALECT;
    let remedy = format!(
        "give {option} fixed or {option} stripped, as the model was trained; files of both, one after the other"
    );
    Error::input(format!("{option} auto"), problem, remedy)
}

/// Returns the encoding in which the references are written; `None` if both fit, or neither.
fn references_encoding(plan: &AuditPlan, job: &Job) -> Result<Option<Encoding>> {
    let mut written = DecimalForms::ANY;
    plan.references().read(job, &mut |batch| {
        written = batch.conformers.iter().fold(written, |written, conformer| written.join(conformer.written));
        Ok(())
    })?;
    Ok(match written {
        DecimalForms { fixed: true, stripped: false } => Some(plan.like.with_zeros(TrailingZeros::Kept)),
        DecimalForms { fixed: false, stripped: true } => Some(plan.like.with_zeros(TrailingZeros::Removed)),
        _ => None,
    })
}
