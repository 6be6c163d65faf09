//! `drift generate`: writes texts under each logit processor, without judging them.

use std::path::{Path, PathBuf};

use super::generate_args::{GenerateArgs, OUTPUT, RunningArgs};
use super::generation::{check_shards, find, generate_plan, show_shard, tell_kept, told_molecules};
use super::invocation::Invocation;
use super::output::Output;
use super::values::{is_stdout, not_stdout};
use crate::report::format::thousands;
use crate::report::generate_view::generate_tables;
use crate::report::trace::chrome_trace;
use drift_core::io::OutputSet;
use drift_core::run_files::RunFiles;
use drift_core::{Error, Job};
use drift_data::shard::{FILE, Manifest, Shard};
use drift_engine::model::{Config, Device};
use drift_engine::runs::{GeneratedTexts, JournalEntry, TextStore, generate_shard, generate_texts};

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 5] = [
    "drift generate -o texts.jsonl",
    "drift generate MODEL --smiles prompts.smi --generations 10 --lp automaton -o texts.jsonl",
    "drift generate MODEL --lp none,automaton --preset top-p-0.8-t1.0 --seed 7 -o - | head",
    "drift generate MODEL --corpus test.h5 --device cuda:0 --shard 1/2 -o shard1",
    "drift merge shard1 shard2 -o texts.jsonl",
];

/// What is added to the name of a file for the texts that are finished before the file is.
const JOURNAL: &str = ".unfinished";

/// The command line of `drift generate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The models, as with --model
    #[arg(value_name = "MODEL", conflicts_with = "synthetic")]
    models: Vec<PathBuf>,
    #[command(flatten)]
    generate: GenerateArgs,
    /// Write a header and the texts as JSON Lines; `-` prints them. A folder with --shard
    #[arg(short, long, value_name = "FILE.jsonl", help_heading = OUTPUT)]
    output: PathBuf,
    #[command(flatten)]
    running: RunningArgs,
}

impl Args {
    /// Locates the models that are given by name.
    fn find_models(&mut self) -> Result<(), Error> {
        let mut models = std::mem::take(&mut self.models);
        models.append(&mut self.generate.model.model);
        self.generate.model.model = models;
        find(&mut self.generate.model)
    }

    /// Returns the shard that was asked for.
    pub(super) fn shard(&self) -> Option<Shard> {
        self.running.shard
    }

    /// Returns the value of `-o`.
    pub(super) fn output(&self) -> &Path {
        &self.output
    }

    /// Returns the folder of `-o`, in which a task of `--shard` keeps its texts.
    fn shard_folder(&self) -> Result<&Path, Error> {
        if is_stdout(&self.output) {
            let remedy = "give the name of a folder";
            return Err(Error::input("-o -", "a shard is kept in a folder", remedy));
        }
        if self.output.is_file() {
            let problem = "is a file, but a shard is kept in a folder";
            return Err(Error::input(self.output.display(), problem, "give another name"));
        }
        Ok(&self.output)
    }
}

/// Reads the molecules, generates their texts and writes the file.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    args.find_models()?;
    let trace = args.running.trace.clone();
    let targets = Targets { to: &args.output, trace: trace.as_deref() };
    if args.running.shard.is_some() {
        let folder = args.shard_folder()?;
        invocation.files().writes_in("-o", Some(folder), &[FILE])?.check()?;
    } else {
        targets.check(invocation.files(), output)?;
    }
    let evidence = not_stdout(Some(&args.output)).map(|to| added(to, ".self-check"));
    let plan = generate_plan(&args.generate, &args.running, evidence, Device::parse, job, output)?;
    let molecules = told_molecules(&args.generate, &plan, job, output)?;
    let shard = args.running.shard;
    let manifest = invocation.manifest(shard)?;
    let begun = match (shard, targets.journal()) {
        (Some(_), _) => Some(manifest.begin::<JournalEntry>(&args.output)?),
        (None, Some(journal)) => Some(manifest.begin_at::<JournalEntry>(&journal)?),
        (None, None) => None,
    };
    let mut kept = TextStore::new(plan.inputs(&molecules), begun, shard)?;
    tell_kept(&kept, output);
    if let Some(shard) = shard {
        check_shards(format!("--shard {shard}"), shard.of(), &molecules)?;
        return show_shard(shard, &generate_shard(&plan, &molecules, &mut kept, job)?, output);
    }
    let texts = generate_texts(&plan, &molecules, &mut kept, job)?;
    if texts.header.interrupted {
        return Err(targets.stopped(&texts, output)?.into());
    }
    targets.write(&texts, output)
}

/// Finishes the command with the texts of its shards.
pub(super) fn merge(
    manifest: &Manifest,
    (shards, is_partial): (Vec<(Shard, Vec<JournalEntry>)>, bool),
    (to, files): (&Path, RunFiles),
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let mut args: Args = Invocation::parsed_writing(manifest, to)?;
    args.find_models()?;
    let targets = Targets { to, trace: None };
    targets.check(files, output)?;
    let plan = generate_plan(&args.generate, &args.running, None, Device::elsewhere, job, output)?;
    let molecules = told_molecules(&args.generate, &plan, job, output)?;
    let mut kept = TextStore::merged(plan.inputs(&molecules), shards, is_partial)?;
    targets.write(&generate_texts(&plan, &molecules, &mut kept, job)?, output)
}

/// Checks a command for shards as [`run`] would, as far as possible without weights. `files`: its inputs and the files of its jobs.
pub(super) fn check_array(
    mut args: Args,
    shards: u32,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    files.check()?;
    args.find_models()?;
    for folder in &args.generate.model.model {
        Config::load(folder)?;
    }
    let plan = generate_plan(&args.generate, &args.running, None, Device::elsewhere, job, output)?;
    let molecules = told_molecules(&args.generate, &plan, job, output)?;
    Ok(check_shards(format!("--array {shards}"), shards, &molecules)?)
}

/// Returns the path with something added to the file's name.
fn added(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The files that were asked for. `-` means stdout.
struct Targets<'a> {
    /// The file of texts.
    to: &'a Path,
    /// The trace of the phases.
    trace: Option<&'a Path>,
}

impl Targets<'_> {
    /// Returns the file that keeps finished texts until the file of texts is complete; `None` if this goes to stdout.
    fn journal(&self) -> Option<PathBuf> {
        not_stdout(Some(self.to)).map(|to| added(to, JOURNAL))
    }

    /// Refuses files that cannot be written, or that would overwrite an input, and two results on stdout. `files` has the inputs.
    fn check(&self, files: RunFiles, output: &Output) -> Result<(), Error> {
        output.refuse_stdout(Some(self.to), "texts")?;
        let taken = [(output.json, "--json"), (is_stdout(self.to), "-o -")];
        let taken = taken.iter().find(|(is_taken, _)| *is_taken);
        if let (Some((_, first)), true) = (taken, self.trace.is_some_and(is_stdout)) {
            let problem = format!("{first} already writes to stdout");
            return Err(Error::input("--trace -", problem, "write one of them to a file"));
        }
        files
            .writes("-o", not_stdout(Some(self.to)))?
            .writes("-o", self.journal().as_deref())?
            .writes("--trace", not_stdout(self.trace))?
            .check()
    }

    /// Shows what an interrupted run finished, unless its journal keeps that. Returns the error to end with.
    fn stopped(&self, texts: &GeneratedTexts, output: &Output) -> anyhow::Result<Error> {
        if texts.lines.is_empty() {
            return Ok(Error::Interrupted);
        }
        let count = thousands(texts.lines.len() as u64);
        if is_stdout(self.to) {
            output.text(&lines(texts)?)?;
            return Ok(Error::Stopped { kept: format!("{count} texts were finished") });
        }
        Ok(Error::Stopped { kept: format!("{count} texts are kept; the same command goes on") })
    }

    /// Writes the files and shows the runs. If one of the files cannot be written, nothing changes.
    fn write(&self, texts: &GeneratedTexts, output: &Output) -> anyhow::Result<()> {
        texts.header.notes.iter().for_each(|note| output.note(&format!("note: {note}")));
        let mut files = OutputSet::new();
        if let Some(path) = not_stdout(Some(self.to)) {
            files.put(path, lines(texts)?.as_bytes())?;
        }
        if let Some(path) = not_stdout(self.trace) {
            files.put(path, chrome_trace(&texts.spans).to_string().as_bytes())?;
        }
        self.journal().iter().for_each(|path| files.remove(path));
        files.commit()?;
        if is_stdout(self.to) {
            return output.text(&lines(texts)?);
        }
        if self.trace.is_some_and(is_stdout) {
            return output.text(&chrome_trace(&texts.spans).to_string());
        }
        match output.json {
            true => output.document(&texts.header),
            false => output.text(&generate_tables(&texts.header, output.terminal())),
        }
    }
}

/// Returns the header and a line for each text.
fn lines(texts: &GeneratedTexts) -> serde_json::Result<String> {
    let mut out = serde_json::to_string(&texts.header)? + "\n";
    for line in &texts.lines {
        out += &serde_json::to_string(line)?;
        out.push('\n');
    }
    Ok(out)
}
