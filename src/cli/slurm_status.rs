//! `drift slurm status`: shows the progress of the shards in a folder.

use std::path::PathBuf;

use super::output::Output;
use crate::report::shards_view::shards_table;
use drift_core::Error;
use drift_data::shard::ShardSet;
use drift_data::shard::progress::{ShardsProgress, shard_folders};
use drift_engine::runs::JournalEntry;

/// The command line of `drift slurm status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folder that `drift slurm eval` or `drift slurm generate` wrote to
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Reads the files of the shards, and shows their progress.
pub(super) fn run(args: &Args, output: &Output) -> anyhow::Result<()> {
    let shards = args.folder.join("shards");
    if !shards.is_dir() {
        let remedy = "give the folder that drift slurm eval wrote to with -o";
        return Err(Error::input(args.folder.display(), "contains no shards", remedy).into());
    }
    let progress = ShardsProgress::read::<JournalEntry>(&ShardSet::open(&shard_folders(&shards)?)?)?;
    match output.json {
        true => output.document(&progress),
        false => output.text(&shards_table(&progress, output.terminal())),
    }
}
