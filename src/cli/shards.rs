//! `--shard`: one shard of a verb's work.

use std::path::{Path, PathBuf};

use super::help::RUNNING;
use super::invocation::Invocation;
use super::output::Output;
use super::values::is_stdout;
use crate::report::format::{counted, thousands};
use drift_core::{Error, Job};
use drift_data::shard::Shard;
use drift_data::shard::files::{FilesDone, FilesShard};

/// The option for one shard of the work of a verb that reads files.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = RUNNING)]
pub(super) struct ShardArgs {
    /// Shard I of N, kept in -o; `slurm` takes both from Slurm
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "output")]
    pub shard: Option<Shard>,
}

/// Parses `I/N`, or `slurm`, which takes I and N from the task of a Slurm array.
pub(super) fn shard(text: &str) -> Result<Shard, String> {
    match text {
        "slurm" => Shard::of_slurm(|name| std::env::var(name).ok()),
        _ => text.parse(),
    }
}

/// A shard of the work on some files.
pub(super) struct ShardOf<'s> {
    /// The shard.
    pub shard: Shard,
    /// The command.
    pub invocation: &'s Invocation,
    /// The folder of `-o`.
    pub folder: Option<&'s Path>,
    /// The input files and folders.
    pub inputs: &'s [PathBuf],
}

impl ShardOf<'_> {
    /// Does the remaining work of the shard.
    pub(super) fn run(
        &self,
        job: &Job,
        output: &Output,
        each: impl FnOnce(&mut FilesShard, &Job) -> Result<FilesDone, Error>,
    ) -> anyhow::Result<()> {
        let ShardOf { shard, inputs, .. } = *self;
        let folder = self.folder.filter(|folder| !is_stdout(folder)).ok_or_else(|| {
            Error::input("-o -", "a shard is kept in a folder", "give the name of a folder")
        })?;
        if folder.is_file() {
            let problem = "is a file, but a shard is kept in a folder";
            return Err(Error::input(folder.display(), problem, "give another name").into());
        }
        self.invocation.files().writes_folder("-o", folder)?.check()?;
        let manifest = self.invocation.manifest(Some(shard))?;
        let mut files = FilesShard::begin(&manifest, shard, folder, inputs)?;
        let (before, all) = files.progress();
        if before > 0 {
            output.note(&format!(
                "continues after {} of {} files",
                thousands(before as u64),
                thousands(all as u64)
            ));
        }
        let done = match each(&mut files, job) {
            Err(Error::Interrupted) => {
                let (done, all) = files.progress();
                let kept = format!("{done} of {all} files are kept; the same command goes on");
                return Err(Error::Stopped { kept }.into());
            }
            done => done?,
        };
        match output.json {
            true => output.document(&done),
            false => output.text(&format!(
                "shard {shard}: {} of {}, {} skipped",
                counted(done.records, "record"),
                counted(done.files as u64, "file"),
                thousands(done.skipped)
            )),
        }
    }
}
