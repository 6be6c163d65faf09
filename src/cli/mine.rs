//! `drift mine`: conformers in, statistics and a store out.

use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use super::blocks::BlockArgs;
use super::output::Output;
use crate::corpus::store::StoreWriter;
use crate::corpus::{Conformers, Files, Frame, ReadOptions, Skipped};
use crate::io::AtomicFile;
use crate::job::{Job, Provenance};
use crate::report::format::thousands;
use crate::report::stats_view::{stats_page, stats_table};
use crate::stats::{CoordinateStats, StatsReport, TextReport, TextStats};

/// The command line of `drift mine`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files and folders, known by content: JSONL, enriched text, SDF, XYZ, GEOM msgpack, RDKit pickles, HDF5; each
    /// also gzipped or in a .tar(.gz)
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The store to write, HDF5; `-` for stdout. Without it only statistics are printed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The frame of coordinates: as in the file, or centre of mass at the origin and principal axes on x, y, z
    #[arg(long, value_enum, default_value = "keep")]
    frame: FrameArg,
    #[command(flatten)]
    blocks: BlockArgs,
    /// A page with the statistics, readable offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum FrameArg {
    Keep,
    Principal,
}

/// What `drift mine` found.
#[derive(Debug, Serialize)]
struct MineReport {
    #[serde(flatten)]
    stats: StatsReport,
    texts: TextReport,
    skipped: u64,
    skipped_records: Vec<Skipped>,
    provenance: Provenance,
}

/// Conformers that one task counts.
const CHUNK: usize = 512;

/// Reads, counts, stores.
pub fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let frame = match args.frame {
        FrameArg::Keep => Frame::Keep,
        FrameArg::Principal => Frame::Principal,
    };
    let files = Files { inputs: args.inputs, options: ReadOptions { frame, reading: args.blocks.reading() } };
    let precision = files.reading().precision;
    let to_stdout = args.output.as_deref().is_some_and(|path| path.as_os_str() == "-");
    let spool = if to_stdout { Some(tempfile::tempdir()?) } else { None };
    let target = spool.as_ref().map(|folder| folder.path().join("corpus.h5")).or(args.output);
    let mut writer = target.as_deref().map(|path| StoreWriter::create(path, precision)).transpose()?;
    let mut page = args.html.as_deref().map(AtomicFile::create).transpose()?;
    let (mut stats, mut texts) = (CoordinateStats::new(precision), TextStats::default());
    let summary = files.read(job, &mut |batch| {
        let parts: Vec<(CoordinateStats, TextStats)> = batch
            .conformers
            .par_chunks(CHUNK)
            .map(|chunk| {
                let mut part = (CoordinateStats::new(precision), TextStats::default());
                for conformer in chunk {
                    part.0.add(conformer);
                    part.1.add(conformer);
                }
                part
            })
            .collect();
        for part in &parts {
            stats.merge(&part.0);
            texts.merge(&part.1);
        }
        writer.as_mut().map_or(Ok(()), |writer| writer.push(&batch.conformers))
    })?;
    let report = MineReport {
        stats: stats.report(),
        texts: texts.report(),
        skipped: summary.skipped,
        skipped_records: summary.skipped_records,
        provenance: Provenance::of(summary.inputs.clone()),
    };
    if let Some(page) = &mut page {
        page.put(stats_page(&report.stats, &report.provenance).render().as_bytes())?;
    }
    if let Some(writer) = writer {
        writer.finish(summary.inputs, summary.skipped)?;
    }
    page.map_or(Ok(()), AtomicFile::commit)?;
    for skipped in report.skipped_records.iter().take(SHOWN).filter(|_| !output.json) {
        output.note(&format!("skipped: {}: {}: {}", skipped.file, skipped.record, skipped.reason));
    }
    if report.skipped > SHOWN as u64 && !output.json {
        output.note(&format!(
            "skipped: {} records in all; --json lists the first 1,000",
            thousands(report.skipped)
        ));
    }
    for warning in report.texts.warnings().iter().filter(|_| !output.json) {
        output.note(&format!("note: {warning}"));
    }
    match target.filter(|_| to_stdout) {
        Some(path) => output.file(&path),
        None if output.json => output.document(&report),
        None => output.text(&stats_table(&report.stats, output.terminal())),
    }
}

/// Skipped records that a terminal shows.
const SHOWN: usize = 10;
