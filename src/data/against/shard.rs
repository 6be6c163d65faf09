//! Compares corpora in shards. The output of each part is its lines of the list, followed by a line with its results.

use std::io::{BufRead, BufReader};

use serde::{Deserialize, Serialize};

use super::compare::Comparison;
use super::found::FoundInOther;
use super::other::OtherSummary;
use super::plan::AgainstPlan;
use super::report::AgainstReport;
use super::run::PutList;
use crate::shard::files::{FilesDone, FilesShard, FilesSummary, MergedFiles, check_part};
use drift_core::error::{Error, Result};
use drift_core::io::{AtomicFile, file_name, open};
use drift_core::job::Job;

/// The results of one part: the last line of its output.
#[derive(Debug, Serialize, Deserialize)]
struct PartFound {
    found: FoundInOther,
    other: OtherSummary,
}

/// Compares the files of one shard.
///
/// # Errors
/// As [`against`](super::against()).
pub fn against_shard(plan: &AgainstPlan, shard: &mut FilesShard, job: &Job) -> Result<FilesDone> {
    let other = plan.other(job)?;
    shard.run("jsonl", job, &mut |listing, files, path| {
        let mut comparison = Comparison::new(&other, true);
        let mut file = AtomicFile::create(path)?;
        let summary =
            listing.read(files, &plan.options, job, &mut |batch| file.put(&comparison.add(&batch)?))?;
        let part = PartFound { found: comparison.found, other: other.summary.clone() };
        let line = serde_json::to_vec(&part).map_err(|e| Error::internal("what was found", e))?;
        file.put(&line)?;
        file.put(b"\n")?;
        let beside = other.summary.inputs.clone();
        let beside =
            beside.into_iter().chain(plan.options.smiles.names.iter().map(|names| names.source.clone()));
        let came = FilesSummary {
            records: summary.conformers,
            beside: beside.collect(),
            summary,
            ..FilesSummary::default()
        };
        Ok((came, file))
    })
}

/// Merges the results of all shards, and passes on their lists.
///
/// # Errors
/// If the output of a part is not what its shard wrote, or nothing was read; also the errors of `put`.
pub fn merge_against(
    plan: &AgainstPlan,
    parts: &MergedFiles,
    job: &Job,
    put: &mut PutList<'_>,
) -> Result<AgainstReport> {
    let (mut found, mut other) = (FoundInOther::default(), OtherSummary::default());
    for (path, part) in &parts.parts {
        let fail = |e| job.check().err().unwrap_or_else(|| Error::io(path, e));
        let mut opened = open(path, job);
        let mut reader = BufReader::new(&mut opened.reader);
        let (mut line, mut next) = (Vec::new(), Vec::new());
        reader.read_until(b'\n', &mut line).map_err(fail)?;
        // The last line does not belong to the list.
        while reader.read_until(b'\n', &mut next).map_err(fail)? > 0 {
            put(&line)?;
            std::mem::swap(&mut line, &mut next);
            next.clear();
        }
        check_part(path, &opened.finish(file_name(path)).map_err(fail)?, part)?;
        let kept: PartFound =
            serde_json::from_slice(&line).map_err(|e| Error::internal(path.display(), e))?;
        found.merge(&kept.found);
        other = kept.other;
    }
    let mut came = parts.came();
    let names = plan.options.smiles.names.iter().map(|names| names.source.clone());
    came.summary.inputs.extend(names);
    let folders: Vec<_> = parts.parts.iter().map(|(path, _)| path.clone()).collect();
    came.summary.refuse_if_empty(&folders)?;
    Ok(AgainstReport::new(plan, came.summary, &found, other))
}
