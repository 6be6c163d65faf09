//! `drift merge`: shards in, what one process would have written out.

use std::path::{Path, PathBuf};

use super::eval;
use super::eval_output::Targets;
use super::output::Output;
use crate::error::Error;
use crate::eval::Finished;
use crate::job::Job;
use crate::shard::{Manifest, ShardSet};

/// The command line of `drift merge`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folders that shards were written to with -o
    #[arg(required = true, value_name = "DIR")]
    shards: Vec<PathBuf>,
    /// The folder to write to
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Merge what there is, though shards are missing or not finished
    #[arg(long)]
    partial: bool,
    /// As of drift eval: a file for every text
    #[arg(long, value_name = "FILE.jsonl")]
    texts: Option<PathBuf>,
    /// As of drift eval: a file with a line for each molecule of each run, .csv or .jsonl
    #[arg(long, value_name = "FILE")]
    molecules: Option<PathBuf>,
}

/// Reads shards, and runs the rest of their command.
pub(super) fn run(args: &Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let set = ShardSet::of(&args.shards)?;
    let missing = set.missing();
    if !missing.is_empty() && !args.partial {
        let problem = format!("shards are missing: {} of {}", listed(&missing), set.of);
        let remedy = "give their folders too, or --partial to merge what there is";
        return Err(Error::input("the shards", problem, remedy).into());
    }
    let mut is_partial = !missing.is_empty();
    let mut shards = Vec::new();
    for folder in set.folders.values() {
        let Manifest { shard: Some(shard), .. } = Manifest::of(folder)? else { continue };
        let pieces: Vec<Finished> = Manifest::finished(folder)?;
        let is_done = pieces.contains(&Finished::Done);
        is_partial |= !is_done;
        if !is_done && !args.partial {
            let problem = format!("holds shard {shard}, which is not finished");
            let remedy = "run its command again, or give --partial to merge what there is";
            return Err(Error::input(folder.display(), problem, remedy).into());
        }
        shards.push((shard, pieces));
    }
    // Names in the shards' command start where it ran, those of this one here.
    let targets = Targets {
        folder: Some(absolute(&args.output)?),
        texts: args.texts.as_deref().map(absolute).transpose()?,
        molecules: args.molecules.as_deref().map(absolute).transpose()?,
        trace: None,
    };
    let folder = &set.manifest.folder;
    std::env::set_current_dir(folder).map_err(|e| Error::io(folder, e))?;
    match &*set.manifest.verb {
        "eval" => eval::merge(&set.manifest, (shards, is_partial), &targets, job, output),
        verb => {
            let problem = format!("is of the verb {verb}, which this drift does not merge");
            Err(Error::input(args.shards[0].display(), problem, "use the drift that made it").into())
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|e| Error::io(path, e))
}

/// Numbers as people write them: `2, 5 to 7`.
fn listed(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [one, .., last] => format!("{one} to {last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(", ")
}
