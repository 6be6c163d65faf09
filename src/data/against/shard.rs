//! Compares corpora in shards. The output of each part has its lines of the list, the rows that stay, and its results.

use super::compare::Comparison;
use super::found::FoundInOther;
use super::frames::{self, FrameKind, PartResult};
use super::layouts::Layouts;
use super::other::OtherSummary;
use super::plan::AgainstPlan;
use super::report::AgainstReport;
use super::run::AgainstOutput;
use crate::corpus::RowLayout;
use crate::shard::files::{FilesDone, FilesShard, FilesSummary, MergedFiles, check_part};
use drift_core::io::{AtomicFile, file_name, open, unpack};
use drift_core::{Error, Job, Result};

/// Compares the files of one shard.
///
/// # Errors
/// As [`against`](super::against()).
pub fn against_shard(plan: &AgainstPlan, shard: &mut FilesShard, job: &Job) -> Result<FilesDone> {
    let other = plan.other(job)?;
    let plan = AgainstPlan { is_listed: true, ..plan.clone() };
    let options = plan.row_options();
    shard.run("part", job, &mut |listing, files, path| {
        let mut comparison = Comparison::new(&other, &plan);
        let mut file = AtomicFile::create(path)?;
        let mut layouts = Layouts::default();
        let summary = listing.read(files, &options, job, &mut |batch| {
            if let Some(layout) = &batch.rows.layout
                && layouts.begin(layout, &batch.file)?.is_some()
            {
                frames::put_layout(&mut file, layout)?;
            }
            let compared = comparison.add(&batch)?;
            frames::put_list(&mut file, &compared.lines)?;
            frames::put_rows(&mut file, &compared.kept)
        })?;
        let results = PartResult { found: comparison.found, other: other.summary.clone() };
        frames::put_results(&mut file, &results)?;
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

/// Merges the results of all shards, and passes on their lists and rows.
///
/// # Errors
/// If the output of a part is not what its shard wrote, tables of different shards have different headers, or nothing was read; also
/// the errors of `out`.
pub fn merge_against(
    plan: &AgainstPlan,
    parts: &MergedFiles,
    job: &Job,
    out: &mut AgainstOutput<'_, '_>,
) -> Result<AgainstReport> {
    let (mut found, mut other) = (FoundInOther::default(), OtherSummary::default());
    let mut layouts = Layouts::default();
    for (path, part) in &parts.parts {
        let fail = |e| job.check().err().unwrap_or_else(|| Error::io(path, e));
        let mut opened = open(path, job);
        while let Some((kind, content)) = frames::next(&mut opened.reader).map_err(fail)? {
            let broken = |e| Error::internal(path.display(), e);
            match kind {
                FrameKind::List => (out.list)(&content)?,
                FrameKind::Layout => {
                    let layout: RowLayout = serde_json::from_slice(&content).map_err(broken)?;
                    let header = layouts.begin(&layout, &file_name(path))?;
                    (out.rows)(header.unwrap_or_default().as_bytes())?;
                }
                FrameKind::Rows => {
                    let mut rows = Vec::new();
                    unpack(&content, &mut rows).map_err(fail)?;
                    (out.rows)(&rows)?;
                }
                FrameKind::Results => {
                    let results: PartResult = serde_json::from_slice(&content).map_err(broken)?;
                    found.merge(&results.found);
                    other = results.other;
                }
            }
        }
        check_part(path, &opened.finish(file_name(path)).map_err(fail)?, part)?;
    }
    let mut came = parts.came();
    let names = plan.options.smiles.names.iter().map(|names| names.source.clone());
    came.summary.inputs.extend(names);
    let folders: Vec<_> = parts.parts.iter().map(|(path, _)| path.clone()).collect();
    came.summary.refuse_if_empty(&folders)?;
    Ok(AgainstReport::new(plan, came.summary, &found, other))
}
