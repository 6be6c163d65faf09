//! `drift merge`: merges shards into what a single run would have written.

use std::path::{Path, PathBuf};

use super::invocation::Invocation;
use super::output::Output;
use super::values::is_stdout;
use super::{audit, encode, mine};
use crate::report::shards_view::shards_table;
use drift_core::io::absolute;
use drift_core::run_files::RunFiles;
use drift_core::{Error, Job};
use drift_data::shard::files::{FilesEntry, MergedFiles};
use drift_data::shard::progress::{FinishedPiece, ShardsProgress};
use drift_data::shard::{Manifest, Shard, ShardSet};

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 3] = [
    "drift merge shards/* -o record --texts texts.jsonl",
    "drift merge shards/* --dry-run",
    "drift merge shards/* -o geom.h5 --partial",
];

/// The command line of `drift merge`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The folders that shards were written to with -o
    #[arg(required = true, value_name = "DIR")]
    shards: Vec<PathBuf>,
    /// The result: a folder for `drift eval`, a file for the other commands
    #[arg(short, long, value_name = "PATH", required_unless_present = "dry_run")]
    output: Option<PathBuf>,
    /// Merge the finished part even if shards are missing or incomplete
    #[arg(long)]
    partial: bool,
    /// Show the progress of the shards, and merge nothing
    #[arg(long)]
    dry_run: bool,
    /// Write every text, as `drift eval --texts` does
    #[arg(long, value_name = "FILE.jsonl")]
    texts: Option<PathBuf>,
    /// Write a line for each molecule, as `--molecules` does
    #[arg(long, value_name = "FILE")]
    molecules: Option<PathBuf>,
    /// Write the verdict on each text, as `--verdicts` does
    #[arg(long, value_name = "FILE.jsonl")]
    verdicts: Option<PathBuf>,
    /// Write the RMSD of every text to every reference, as `--matrix` does
    #[arg(long, value_name = "FILE")]
    matrix: Option<PathBuf>,
    /// Write coverage and matching, as `drift audit --summary` does
    #[arg(long, value_name = "FILE.txt")]
    summary: Option<PathBuf>,
    /// Write a page, as `--html` of `drift audit` and `drift mine` does
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the rows that share nothing with the other corpus, as `drift mine --against --drop-shared` does
    #[arg(long, value_name = "FILE")]
    drop_shared: Option<PathBuf>,
    /// Write what the check found, as `drift mine --check --list` does
    #[arg(long, value_name = "FILE.jsonl")]
    list: Option<PathBuf>,
}

/// Reads the shards and finishes their command.
pub(super) fn run(args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let mut set = ShardSet::open(&args.shards)?;
    args.check(&set.manifest.verb)?;
    if args.dry_run {
        let progress = progress(&set)?;
        return match output.json {
            true => output.document(&progress),
            false => output.text(&shards_table(&progress, output.terminal())),
        };
    }
    // Paths in the shards' command are relative to the folder where it ran; paths of this command are relative to the current folder.
    let args = args.absolute()?;
    for folder in set.folders.values_mut() {
        *folder = absolute(folder)?;
    }
    let shards = match &*set.manifest.verb {
        "eval" | "generate" => Shards::Texts(args.finished(&set)?),
        "audit" | "encode" | "mine" => {
            let FinishedShards { shards, is_partial } = args.finished::<FilesEntry>(&set)?;
            if is_partial {
                output.note("note: some of the work is missing");
            }
            let shards = shards.into_iter().map(|(_, folder, pieces)| (folder, pieces)).collect();
            Shards::Files(MergedFiles::from_shards(shards, is_partial)?)
        }
        verb => return Err(unknown(&set, verb).into()),
    };
    let manifest = &set.manifest;
    std::env::set_current_dir(&manifest.folder).map_err(|e| Error::io(&manifest.folder, e))?;
    // Not only the shards: what a single run would have refused to overwrite.
    let files = invocation.files().reads_as(&Invocation::files_of(manifest)?);
    args.write(manifest, shards, files, job, output)
}

impl Args {
    /// Finishes the command of the shards. `files` has the inputs.
    fn write(
        self,
        manifest: &Manifest,
        shards: Shards,
        files: RunFiles,
        job: &Job,
        output: &Output,
    ) -> anyhow::Result<()> {
        let file = self.output.as_deref().unwrap_or(Path::new("-"));
        match (shards, &*manifest.verb) {
            (Shards::Texts(finished), "generate") => {
                super::generate::merge(manifest, finished.of_texts(), (file, files), job, output)
            }
            (Shards::Texts(finished), _) => {
                let targets = super::eval_output::Targets {
                    folder: self.output,
                    texts: self.texts,
                    molecules: self.molecules,
                    trace: None,
                    verdicts: self.verdicts,
                    matrix: self.matrix,
                    energies: None,
                    cache: None,
                };
                super::eval::merge(manifest, finished.of_texts(), &targets, files, job, output)
            }
            (Shards::Files(parts), "mine") => {
                let outputs = mine::MineOutputs {
                    to: self.output,
                    page: self.html,
                    list: self.list,
                    kept: self.drop_shared,
                };
                mine::merge(manifest, parts, outputs, files, job, output)
            }
            (Shards::Files(parts), "audit") => {
                let of_texts = audit::TextFiles {
                    verdicts: self.verdicts,
                    matrix: self.matrix,
                    molecules: self.molecules,
                    html: self.html,
                    summary: self.summary,
                };
                audit::merge(manifest, &parts, (self.output.as_deref(), of_texts), files, job, output)
            }
            (Shards::Files(parts), _) => encode::merge(manifest, &parts, (file, files), job, output),
        }
    }
}

/// The finished work of the shards.
enum Shards {
    Texts(FinishedShards<drift_engine::runs::JournalEntry>),
    Files(MergedFiles),
}

/// The finished pieces of each shard, and whether something is missing.
struct FinishedShards<P> {
    shards: Vec<(Shard, PathBuf, Vec<P>)>,
    is_partial: bool,
}

impl<P> FinishedShards<P> {
    /// Returns the pieces of each shard, and whether something is missing.
    fn of_texts(self) -> (Vec<(Shard, Vec<P>)>, bool) {
        let shards = self.shards.into_iter().map(|(shard, _, pieces)| (shard, pieces)).collect();
        (shards, self.is_partial)
    }
}

/// Returns the progress of the shards.
fn progress(set: &ShardSet) -> Result<ShardsProgress, Error> {
    match &*set.manifest.verb {
        "eval" | "generate" => ShardsProgress::read::<drift_engine::runs::JournalEntry>(set),
        "audit" | "encode" | "mine" => ShardsProgress::read::<FilesEntry>(set),
        verb => Err(unknown(set, verb)),
    }
}

fn unknown(set: &ShardSet, verb: &str) -> Error {
    let place = set.folders.values().next().map_or_else(String::new, |path| path.display().to_string());
    let problem = format!("is of `drift {verb}`, whose shards cannot be merged");
    Error::input(place, problem, "use the drift that made it")
}

impl Args {
    /// Returns the arguments with absolute paths; `-` stands for stdout.
    fn absolute(mut self) -> Result<Self, Error> {
        let paths = [
            &mut self.output,
            &mut self.texts,
            &mut self.molecules,
            &mut self.verdicts,
            &mut self.matrix,
            &mut self.summary,
            &mut self.html,
            &mut self.drop_shared,
            &mut self.list,
        ];
        for path in paths.into_iter().flatten().filter(|path| !is_stdout(path)) {
            *path = absolute(path)?;
        }
        Ok(self)
    }

    /// Refuses options for files that the shards' verb does not write.
    fn check(&self, verb: &str) -> Result<(), Error> {
        let others: [(_, _, &[&str]); 8] = [
            ("--texts", &self.texts, &["eval"]),
            ("--molecules", &self.molecules, &["audit", "eval"]),
            ("--verdicts", &self.verdicts, &["audit", "eval"]),
            ("--matrix", &self.matrix, &["audit", "eval"]),
            ("--summary", &self.summary, &["audit"]),
            ("--html", &self.html, &["audit", "mine"]),
            ("--drop-shared", &self.drop_shared, &["mine"]),
            ("--list", &self.list, &["mine"]),
        ];
        for (option, given, of) in others {
            if given.is_some() && !of.contains(&verb) {
                let of = of.join(" and ");
                let problem = format!("is of drift {of}, and these are shards of drift {verb}");
                return Err(Error::input(option, problem, "leave it out"));
            }
        }
        Ok(())
    }

    /// Returns the finished pieces of the shards. Without `--partial` all shards must be there and finished.
    fn finished<P: FinishedPiece>(&self, set: &ShardSet) -> Result<FinishedShards<P>, Error> {
        let missing = set.missing();
        if !missing.is_empty() && !self.partial {
            let (noun, verb) = if missing.len() == 1 { ("shard", "is") } else { ("shards", "are") };
            let problem = format!("{noun} {} {verb} missing, of {}", listed(&missing), set.of);
            let remedy = "give their folders too, or --partial to merge what is there";
            return Err(Error::input("the shards", problem, remedy));
        }
        let mut finished = FinishedShards { shards: Vec::new(), is_partial: !missing.is_empty() };
        for (shard, folder) in &set.folders {
            let pieces: Vec<P> = Manifest::finished(folder)?;
            let is_done = pieces.iter().any(FinishedPiece::is_done);
            finished.is_partial |= !is_done;
            if !is_done && !self.partial {
                let problem = format!("contains shard {shard}, which is not finished");
                let remedy = "run its command again, or give --partial to merge what is there";
                return Err(Error::input(folder.display(), problem, remedy));
            }
            finished.shards.push((*shard, folder.clone(), pieces));
        }
        Ok(finished)
    }
}

/// Numbers in the way people write them: `2, 5 to 7`.
fn listed(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [one, .., last] => format!("{one} to {last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(", ")
}
