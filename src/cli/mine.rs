//! `drift mine`: reads conformers, and writes statistics and a store.

use std::path::PathBuf;

use super::against::{self, AgainstArgs, AgainstFiles};
use super::help::{CONFORMERS, NUMBERS, OUTPUT};
use super::invocation::Invocation;
use super::output::Output;
use super::shards::{ShardArgs, ShardOf};
use super::skipped;
use super::values::{EncodingArgs, FrameArgs, SmilesOfArgs, files_alone, is_stdout, not_stdout};
use crate::report::flaws_view::flaws_text;
use crate::report::stats_view::{faults_line, range_line, stats_page, stats_table};
use drift_core::io::{AtomicFile, OutputSet};
use drift_core::run_files::RunFiles;
use drift_core::{Error, Job};
use drift_data::against::against_shard;
use drift_data::corpus::{Conformers, Files, ReadOptions};
use drift_data::flaws::{CheckedParts, check_shard, needing_columns};
use drift_data::mine::{MinePlan, PutFlaws, StoredParts, mine_of, mine_shard};
use drift_data::shard::Manifest;
use drift_data::shard::files::MergedFiles;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 6] = [
    "drift mine conformers.sdf",
    "drift mine train.csv.zst --check --list flaws.jsonl",
    "drift mine rdkit_folder.tar.gz -o geom.h5",
    "drift mine train.csv.zst --where dataset=GEOM --html statistics.html",
    "drift mine train.jsonl --against test.pickle -o pairs.jsonl",
    "drift mine rdkit_folder --shard 1/8 -o shards/1",
];

/// The command line of `drift mine`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files and folders, recognised by content: JSONL, CSV, TSV, text, SDF, XYZ, msgpack, pickles, HDF5; also compressed or in archives
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Write the conformers to this store (HDF5); `-` for stdout. With --against the list of pairs, with --shard a folder
    #[arg(short, long, value_name = "FILE", help_heading = OUTPUT)]
    output: Option<PathBuf>,
    /// Also count duplicates, impossible geometry, fragments and wrong stereo marks; reads INPUT twice
    #[arg(long, conflicts_with = "against", help_heading = CONFORMERS)]
    check: bool,
    /// Write a line of JSON for each conformer and kind that --check finds
    #[arg(long, value_name = "FILE.jsonl", requires = "check", conflicts_with_all = ["shard", "against", "within", "isotopes", "shared_by", "drop_shared"], help_heading = OUTPUT)]
    list: Option<PathBuf>,
    /// Write a page of the statistics
    #[arg(long, value_name = "FILE", conflicts_with = "shard", help_heading = OUTPUT)]
    html: Option<PathBuf>,
    #[command(flatten, next_help_heading = CONFORMERS)]
    frame: FrameArgs,
    #[command(flatten, next_help_heading = CONFORMERS)]
    smiles: SmilesOfArgs,
    #[command(flatten, next_help_heading = NUMBERS)]
    blocks: EncodingArgs,
    #[command(flatten)]
    other: AgainstArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// Reads and counts the conformers, writes the store and shows the statistics.
pub(super) fn run(args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let options = args.options(job)?;
    if args.other.is_asked() {
        return compared(&args, options, invocation, job, output);
    }
    if let Some(shard) = args.shard.shard {
        let plan = MinePlan { inputs: args.inputs, options, store: None };
        let (folder, inputs) = (args.output.as_deref(), &*plan.inputs);
        let shard = ShardOf { shard, invocation, folder, inputs };
        return shard.run(job, output, |files, job| match args.check {
            true => check_shard(&plan.options, files, job),
            false => mine_shard(&plan, files, job),
        });
    }
    let options = if args.check { needing_columns(&options) } else { options };
    let source = Files { inputs: args.inputs.clone(), options };
    mined(&args, &source, invocation.files(), job, output)
}

impl Args {
    /// Returns how files are read.
    fn options(&self, job: &Job) -> Result<ReadOptions, Error> {
        let reading = self.blocks.reading().of_texts();
        Ok(ReadOptions { frame: self.frame.frame, ..self.smiles.options(reading, job)? })
    }
}

/// Compares the inputs, or one shard of them, with another corpus.
fn compared(
    args: &Args,
    options: ReadOptions,
    invocation: &Invocation,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let plan = args.other.plan(&args.inputs, options, args.output.is_some());
    let Some(shard) = args.shard.shard else {
        let to = AgainstFiles { list: args.output.clone(), kept: args.other.drop_shared.clone() };
        return against::run(&plan, &to, invocation.files(), job, output);
    };
    let (folder, inputs) = (args.output.as_deref(), &*args.inputs);
    let shard = ShardOf { shard, invocation, folder, inputs };
    shard.run(job, output, |files, job| against_shard(&plan, files, job))
}

/// Where a merge writes its results.
pub(super) struct MineOutputs {
    /// The store, or the list of pairs.
    pub to: Option<PathBuf>,
    /// The page of the statistics.
    pub page: Option<PathBuf>,
    /// The list of what a check finds.
    pub list: Option<PathBuf>,
    /// The rows that share nothing.
    pub kept: Option<PathBuf>,
}

/// Finishes the command with the results of its shards.
pub(super) fn merge(
    manifest: &Manifest,
    parts: MergedFiles,
    outputs: MineOutputs,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let mut args: Args = Invocation::parsed(manifest)?;
    if args.other.is_asked() {
        for (option, path) in [("--html", &outputs.page), ("--list", &outputs.list)] {
            if path.is_some() {
                let problem = "has no meaning for shards of mine --against";
                return Err(Error::input(option, problem, "leave it out").into());
            }
        }
        let options = args.options(job)?;
        let plan = args.other.plan(&args.inputs, options, true);
        let to = AgainstFiles { list: outputs.to, kept: outputs.kept };
        return against::merge(&plan, &parts, (&to, files), job, output);
    }
    if outputs.kept.is_some() {
        return Err(against::nothing_kept().into());
    }
    if outputs.list.is_some() && !args.check {
        let problem = "the shards were not checked";
        let remedy = "give --check to the command of the shards";
        return Err(Error::input("--list", problem, remedy).into());
    }
    (args.output, args.html, args.list) = (outputs.to, outputs.page, outputs.list);
    let reading = args.blocks.reading().of_texts();
    if args.check {
        return mined(&args, &CheckedParts { parts, reading }, files, job, output);
    }
    mined(&args, &StoredParts { parts, reading }, files, job, output)
}

/// Counts and stores the conformers of a source, and shows the statistics.
fn mined(
    args: &Args,
    source: &dyn Conformers,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let (store, page) = (not_stdout(args.output.as_deref()), not_stdout(args.html.as_deref()));
    let list = not_stdout(args.list.as_deref());
    files.writes("-o", store)?.writes("--html", page)?.writes("--list", list)?.check()?;
    output.refuse_stdout(args.output.as_deref(), "store")?;
    let others = [("--html", &args.html), ("--list", &args.list)];
    files_alone(&others, "stdout takes either the table or the store")?;
    let to_stdout = args.output.as_deref().is_some_and(is_stdout);
    let spool = if to_stdout { Some(tempfile::tempdir()?) } else { None };
    let path = spool.as_ref().map(|folder| folder.path().join("corpus.h5")).or(args.output.clone());
    let mut list = list.map(AtomicFile::create).transpose()?;
    let mut put = |lines: &[u8]| list.as_mut().map_or(Ok(()), |list| list.put(lines));
    let flaws: Option<&mut PutFlaws<'_>> = if args.check { Some(&mut put) } else { None };
    let (report, store) = mine_of(source, path.as_deref(), flaws, job)?;
    let mut files = OutputSet::new();
    list.into_iter().for_each(|list| files.add(list));
    store.into_iter().for_each(|store| files.add(store));
    if let Some(page) = &args.html {
        files.put(page, stats_page(&report).render().as_bytes())?;
    }
    files.commit()?;
    if !output.json {
        skipped::tell(report.skipped, &report.skipped_records, output);
        skipped::tell_file_order(report.in_file_order, &report.in_file_order_records, output);
        skipped::tell_left_out(report.left_out, output);
    }
    for warning in report.texts.warnings().iter().filter(|_| !output.json) {
        output.note(&format!("note: {warning}"));
    }
    match path.filter(|_| to_stdout) {
        Some(path) => output.file(&path),
        None if output.json => output.document(&report),
        None => output.text(&format!(
            "{}{}{}{}",
            stats_table(&report.stats, output.terminal()),
            range_line(&report),
            faults_line(&report.faults),
            report.check.as_ref().map_or_else(String::new, |check| flaws_text(check, output.terminal()))
        )),
    }
}
