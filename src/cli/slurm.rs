//! `drift slurm`: writes a job array of shards and a job that merges them, and shows their progress.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{CommandFactory, Subcommand};

use super::eval_args;
use super::generate;
use super::help;
use super::invocation::Invocation;
use super::output::Output;
use super::slurm_status;
use drift_core::command::quoted;
use drift_core::io::{OutputSet, absolute};
use drift_core::{Error, Job};
use drift_data::shard::Shard;
use drift_data::shard::slurm::{Jobs, SlurmOptions, time_limit_seconds};

/// The files in the folder of `-o`.
const ARRAY: &str = "array.sbatch";
const MERGE: &str = "merge.sbatch";
const TEXTS: &str = "texts.jsonl";

/// Options that belong to the jobs or the merge, and not to a shard.
const NOT_OF_A_SHARD: [&str; 14] = [
    "array",
    "partition",
    "gres",
    "time",
    "account",
    "qos",
    "cpus-per-task",
    "mem",
    "sbatch",
    "merge-sbatch",
    "grace",
    "submit",
    "texts",
    "molecules",
];

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 3] = [EVAL_EXAMPLE, GENERATE_EXAMPLE, STATUS_EXAMPLE];

const EVAL_EXAMPLE: &str =
    "drift slurm eval --model org/name --corpus test.h5 --array 8 --gres gpu:h100:1 --submit -o run";
const GENERATE_EXAMPLE: &str = "drift slurm generate MODEL --lp automaton --array 8 -o run";
const STATUS_EXAMPLE: &str = "drift slurm status run";

/// The command line of `drift slurm`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write, and with --submit start, a job array of `drift eval` and a job that merges its shards
    #[command(after_help = help::end("slurm", &[EVAL_EXAMPLE]))]
    Eval(Box<EvalArgs>),
    /// Write, and with --submit start, a job array of `drift generate` and a job that merges its shards into texts.jsonl
    #[command(after_help = help::end("slurm", &[GENERATE_EXAMPLE]))]
    Generate(Box<GenerateJobArgs>),
    /// Show the progress of the shards in a folder
    #[command(after_help = help::end("slurm", &[STATUS_EXAMPLE]))]
    Status(slurm_status::Args),
}

/// The command line of `drift slurm eval`.
#[derive(Debug, clap::Args)]
struct EvalArgs {
    #[command(flatten)]
    jobs: JobArgs,
    #[command(flatten)]
    eval: eval_args::Args,
}

/// The command line of `drift slurm generate`.
#[derive(Debug, clap::Args)]
struct GenerateJobArgs {
    #[command(flatten)]
    jobs: JobArgs,
    #[command(flatten)]
    generate: generate::Args,
}

/// The options of the Slurm jobs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Slurm")]
struct JobArgs {
    /// Tasks in the array, each for one shard
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    array: u32,
    /// The partition of both jobs
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// Generic resources of each task, such as gpu:h100:1
    #[arg(long, value_name = "LIST")]
    gres: Option<String>,
    /// The time limit of a task, which is then requeued and continues
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
    /// The account of both jobs
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// The quality of service of both jobs
    #[arg(long, value_name = "NAME")]
    qos: Option<String>,
    /// Cores of a task, and of the merge
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cpus_per_task: Option<u32>,
    /// Memory of a task, and of the merge
    #[arg(long, value_name = "SIZE")]
    mem: Option<String>,
    /// Another sbatch option for the tasks, such as constraint=a100
    #[arg(long, value_name = "OPTION")]
    sbatch: Vec<String>,
    /// Another sbatch option for the merge
    #[arg(long, value_name = "OPTION")]
    merge_sbatch: Vec<String>,
    /// How long before its time limit a task stops
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    grace: u32,
    /// Also submit both jobs
    #[arg(long)]
    submit: bool,
}

impl JobArgs {
    /// Refuses options with which the tasks would not be the shards, or would never get to work.
    fn check(&self) -> Result<(), Error> {
        let values = [&self.partition, &self.gres, &self.time, &self.account, &self.qos, &self.mem];
        let mut all = values.into_iter().flatten().chain(&self.sbatch).chain(&self.merge_sbatch);
        if all.any(|value| value.is_empty() || value.contains('\n')) {
            let problem = "an option of sbatch is empty, or has several lines";
            return Err(Error::input("a script of Slurm", problem, "leave it out, or give its value"));
        }
        for (name, options) in [("--sbatch", &self.sbatch), ("--merge-sbatch", &self.merge_sbatch)] {
            if let Some(option) = options.iter().find(|option| option.starts_with('-')) {
                let problem = "the script writes the dashes";
                return Err(Error::input(format!("{name} {option}"), problem, "give NAME=VALUE"));
            }
        }
        if self.sbatch.iter().any(|option| option.split('=').next() == Some("array")) {
            let problem = "each task of the array is one shard";
            return Err(Error::input("--sbatch array", problem, "give --array N"));
        }
        match &self.time {
            Some(time) if time_limit_seconds(time).is_some_and(|limit| limit <= u64::from(self.grace)) => {
                let problem = format!(
                    "a task of --time {time} would be stopped as soon as it starts, and requeued without end"
                );
                let remedy = "give a longer --time, or a shorter --grace";
                Err(Error::input(format!("--grace {}", self.grace), problem, remedy))
            }
            _ => Ok(()),
        }
    }
}

/// Runs the subcommand.
pub(super) fn run(args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    match args.verb {
        Verb::Eval(args) => eval(*args, invocation, job, output),
        Verb::Generate(args) => generate(*args, invocation, job, output),
        Verb::Status(args) => slurm_status::run(&args, output),
    }
}

fn eval(args: EvalArgs, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let EvalArgs { eval, jobs } = args;
    let folder = folder(eval.running.shard, eval.output.as_deref())?;
    let merge = [("texts", &eval.texts), ("molecules", &eval.molecules)];
    let mut to_merge = Vec::new();
    for (name, path) in merge {
        if let Some(path) = path {
            if super::values::is_stdout(path) {
                let problem = "the merge is a job, whose output is its log";
                return Err(Error::input(format!("--{name} -"), problem, "give a file").into());
            }
            to_merge.push(format!("--{name}={}", text(&absolute(path)?)?));
        }
    }
    let files = invocation.files().writes_in("-o", Some(&folder), &[ARRAY, MERGE])?;
    super::eval::check_array(eval, jobs.array, files, job, output)?;
    let array = Array { jobs, merged: text(&folder)?, folder, to_merge };
    array.write(invocation, output)
}

fn generate(
    args: GenerateJobArgs,
    invocation: &Invocation,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let GenerateJobArgs { generate, jobs } = args;
    let folder = folder(generate.shard(), Some(generate.output()))?;
    let files = invocation.files().writes_in("-o", Some(&folder), &[ARRAY, MERGE, TEXTS])?;
    super::generate::check_array(generate, jobs.array, files, job, output)?;
    let array = Array { jobs, merged: text(&folder.join(TEXTS))?, folder, to_merge: Vec::new() };
    array.write(invocation, output)
}

/// A job array and the job that merges its shards.
struct Array {
    jobs: JobArgs,
    /// The folder for all files.
    folder: PathBuf,
    /// What the merge writes.
    merged: String,
    /// Further options of the merge.
    to_merge: Vec<String>,
}

impl Array {
    /// Writes the scripts, and submits them if that was asked for.
    fn write(&self, invocation: &Invocation, output: &Output) -> anyhow::Result<()> {
        let Array { jobs, folder, merged, to_merge } = self;
        jobs.check()?;
        if jobs.submit {
            // Checked before anything is written.
            sbatch(&["--version".to_owned()])?;
        }
        let folder_text = text(folder)?;
        let manifest = invocation.without(&NOT_OF_A_SHARD).manifest(None)?;
        let mut command = followed(Invocation::arguments(&manifest));
        // It changes no result, so manifests lack it.
        if let Some(threads) = invocation.value("threads") {
            command.insert(1, format!("--threads={}", threads.display()));
        }
        // What a task would refuse is refused here: with `--shard` some options have no meaning.
        let task = ["drift".to_owned()]
            .into_iter()
            .chain(command.clone())
            .chain(["--shard=1/1".into(), "-o=shard".into()]);
        if let Err(refused) = super::Cli::command().try_get_matches_from(task) {
            let text = refused.to_string();
            let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            return Err(Error::input("a task of the array", line, "leave the option out").into());
        }
        let program = std::env::current_exe().map_err(|e| Error::io(Path::new("drift"), e))?;
        let written = Jobs {
            program: &text(&program)?,
            command: &command,
            merge: to_merge,
            merged,
            shards: jobs.array,
            folder: &folder_text,
            start: &text(&manifest.folder)?,
            asked: &asked(jobs),
        };
        let mut files = OutputSet::new();
        // Slurm writes logs to this folder, and fails without it.
        files.folder(&folder.join("logs"))?;
        files.folder(&folder.join("shards"))?;
        files.put(&folder.join(ARRAY), written.array().as_bytes())?;
        files.put(&folder.join(MERGE), written.merging().as_bytes())?;
        files.commit()?;
        self.submit(&folder_text, output)
    }

    /// Submits both jobs, or says how to.
    fn submit(&self, folder_text: &str, output: &Output) -> anyhow::Result<()> {
        let Array { jobs, folder, .. } = self;
        if !jobs.submit {
            let [array, merge] = [ARRAY, MERGE].map(|name| quoted(&format!("{folder_text}/{name}")));
            return output.text(&format!(
                "wrote {array} and {merge}; submit them with\n    \
                 sbatch --dependency=afterok:$(sbatch --parsable {array}) {merge}"
            ));
        }
        let array = submitted(&[], &folder.join(ARRAY))?;
        let merge = submitted(&[format!("--dependency=afterok:{array}")], &folder.join(MERGE))?;
        output.text(&format!(
            "submitted job {array}, an array of {} shards, and job {merge}, which merges them\n\
             drift slurm status {} shows how far they are",
            jobs.array,
            quoted(folder_text)
        ))
    }
}

/// Returns arguments that further options may follow: without the `--` before models, which would make models of all that follows.
fn followed(mut arguments: Vec<String>) -> Vec<String> {
    if let Some(marker) = arguments.iter().position(|argument| argument == "--") {
        arguments.remove(marker);
        for path in arguments[marker..].iter_mut().filter(|path| path.starts_with('-')) {
            path.insert_str(0, "./");
        }
    }
    arguments
}

/// Returns the folder for all files. `to` is the value of `-o`.
fn folder(shard: Option<Shard>, to: Option<&Path>) -> Result<PathBuf, Error> {
    if shard.is_some() {
        return Err(Error::input("--shard", "each task of the array has its own", "leave it out"));
    }
    match to {
        Some(folder) if !super::values::is_stdout(folder) => absolute(folder),
        _ => Err(Error::input("-o", "is missing", "give a folder that all nodes see")),
    }
}

/// Returns the options of both jobs, in the form of sbatch.
fn asked(jobs: &JobArgs) -> SlurmOptions {
    let option = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={value}"));
    let cores = jobs.cpus_per_task.map(|cores| cores.to_string());
    let both = [
        option("partition", &jobs.partition),
        option("account", &jobs.account),
        option("qos", &jobs.qos),
        option("cpus-per-task", &cores),
        option("mem", &jobs.mem),
    ];
    let both = both.into_iter().flatten();
    let own = [option("gres", &jobs.gres), option("time", &jobs.time)].into_iter().flatten();
    SlurmOptions {
        options: both.clone().chain(own).chain(jobs.sbatch.iter().cloned()).collect(),
        merge_options: both.chain(jobs.merge_sbatch.iter().cloned()).collect(),
        grace_seconds: jobs.grace,
    }
}

/// Runs sbatch.
fn sbatch(arguments: &[String]) -> Result<std::process::Output, Error> {
    Command::new("sbatch").args(arguments).output().map_err(|e| {
        let remedy = "submit on a machine of the cluster, or leave --submit out";
        Error::input("sbatch", format!("cannot be run: {e}"), remedy)
    })
}

/// Submits a job and returns its id.
fn submitted(options: &[String], script: &Path) -> Result<String, Error> {
    let script_name = text(script)?;
    let arguments = ["--parsable".to_owned()].into_iter().chain(options.iter().cloned()).chain([script_name]);
    let ran = sbatch(&arguments.collect::<Vec<_>>())?;
    let said = String::from_utf8_lossy(if ran.status.success() { &ran.stdout } else { &ran.stderr });
    let said = said.trim();
    if !ran.status.success() {
        let remedy = format!("change {}, and submit it with sbatch", script.display());
        return Err(Error::input("sbatch", format!("refuses: {said}"), remedy));
    }
    // `123`, or `123;cluster`.
    Ok(said.split(';').next().unwrap_or(said).to_owned())
}

/// Returns the path as text, if the scripts can contain it.
fn text(path: &Path) -> Result<String, Error> {
    let is_sound = |text: &&str| !text.contains(['"', '\n', '\\', '%']);
    let text = path.to_str().filter(is_sound);
    text.map(str::to_owned)
        .ok_or_else(|| Error::input(path.display(), "cannot be written into a Slurm script", "rename it"))
}
