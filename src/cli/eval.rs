//! `drift eval`: generation under each logit processor, measured.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::corpus::Corpus;
use super::eval_molecules::{named, reference_note, skipped, threshold, thresholds};
use super::eval_output::{Targets, render, texts};
use super::invocation::Invocation;
use super::output::Output;
use super::values::{BlockArgs, DialectArg, SmilesOfArgs, found, is_stdout, not_stdout, one_of, shard};
use crate::checkpoint::Wanted;
use crate::constraint::{LpKind, Placeholder};
use crate::error::Error;
use crate::eval::molecules::{CorpusChoice, Molecules};
use crate::eval::plan::{EngineChoice, EvalPart, EvalPlan, Generations, ModelChoice, PlaceholderChoice};
use crate::eval::{Finished, Kept, evaluate, evaluate_shard, trained_on};
use crate::generate::Sampling;
use crate::job::Job;
use crate::model::{Device, Room, Synthetic};
use crate::placeholder::FittedFile;
use crate::report::format::thousands;
use crate::report::trace::chrome_trace;
use crate::shard::{FILE, Manifest, Shard};
use crate::text::smiles::{AtomLimit, MAX_HEAVY_ATOMS};

/// The placeholder of the users' version 3, and the one that `drift fit` finds for most tokenizers.
const PLACEHOLDER: &str = "0.0000,0.0000,0.0000";

/// Molecules of the embedded corpus that are taken unless it is said how many.
const EMBEDDED_SAMPLES: usize = 64;

/// The command line of `drift eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A model folder (config.json, safetensors, tokenizer.json), or org/name in the cache of Hugging Face; the embedded reference
    /// checkpoint by default
    #[arg(long, value_name = "DIR")]
    model: Vec<PathBuf>,
    /// Random weights of a known shape instead of a model: for throughput alone
    #[arg(long, value_parser = one_of(&Synthetic::ALL, Synthetic::name), conflicts_with = "model")]
    synthetic: Option<Synthetic>,
    /// The tokenizer, if it is not beside the model: a tokenizer.json, plain or gzipped, or a model folder
    #[arg(long, value_name = "TOKENIZER")]
    tokenizer: Option<PathBuf>,
    /// Logit processors; all of them by default
    #[arg(long, value_parser = lp_arg(), value_delimiter = ',')]
    lp: Vec<LpArg>,
    /// What position templates hold in their blocks, such as 0.0000,0.0000,0.0000; `fitted`; or a file that `drift fit
    /// -o` wrote for the tokenizer: one placeholder for each class of block where that gains something, else one for all
    #[arg(long, value_name = "P", allow_hyphen_values = true, default_value = PLACEHOLDER)]
    placeholder: Vec<String>,
    /// How numbers are written; by default as the model's recipe says, else as the conformers given and the model's own text
    /// are; where these disagree, or nothing tells, it has to be given
    #[arg(long, value_enum)]
    dialect: Option<DialectArg>,
    #[command(flatten)]
    blocks: BlockArgs,
    /// A file with one SMILES a line, all of which are generated for
    #[arg(long, value_name = "FILE")]
    smiles: Option<PathBuf>,
    /// Conformers of the molecules of --smiles: anything that `mine` reads with text
    #[arg(long, value_name = "INPUT", num_args = 1.., requires = "smiles")]
    references: Vec<PathBuf>,
    /// A corpus whose molecules are taken, with all their conformers as reference; the test part of the embedded one by default
    #[arg(long, value_name = "INPUT", num_args = 1.., conflicts_with = "smiles")]
    corpus: Vec<PathBuf>,
    #[command(flatten)]
    smiles_source: SmilesOfArgs,
    /// Which molecules of the corpus: all, or the tenth that drift's training never sees. By default test where drift trained the
    /// models on this corpus, and of the embedded one; else all
    #[arg(long, value_parser = one_of(&EvalPart::ALL, EvalPart::name), conflicts_with = "smiles")]
    split: Option<EvalPart>,
    /// At most so many molecules: of a corpus spread evenly, of --smiles the first ones. By default 64 of the embedded corpus, else
    /// all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    samples: Option<u32>,
    /// Texts for each molecule; 2k for twice the number of its reference conformers, as the field has it
    #[arg(long, value_name = "K", default_value = "1")]
    generations: Generations,
    /// A threshold of coverage in Å; can be repeated [default: 0.75]
    #[arg(long, value_name = "ANGSTROM", value_parser = threshold)]
    threshold: Vec<f64>,
    /// Rows of a batch
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// How tokens are drawn: greedy, qwen3, top-p-P-tT or min-p-P-tT
    #[arg(long, value_name = "NAME", default_value = "qwen3")]
    preset: String,
    /// The seed of all draws
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// cpu or cuda:N
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Type of weights and cache; f32 on the CPU, bf16 on a GPU by default
    #[arg(long, value_enum)]
    dtype: Option<DtypeArg>,
    /// Whose decoders compute
    #[arg(long, value_parser = one_of(&EngineChoice::ALL, EngineChoice::name), default_value = "drift")]
    engine: EngineChoice,
    /// How the KV cache takes its memory
    #[arg(long, value_parser = one_of(&Room::ALL, Room::name), default_value = "static")]
    kv_cache: Room,
    /// The most tokens of a text; by default half more than the molecule's longest text takes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_new_tokens: Option<u32>,
    /// Take junk off numbers before the texts are judged: what is no number, and digits beyond the format
    #[arg(long)]
    strip_junk: bool,
    /// The heavy atoms of the largest molecule that is compared; a text of a larger one is another molecule than its prompt
    #[arg(long, value_name = "N", default_value_t = MAX_HEAVY_ATOMS)]
    max_atoms: usize,
    /// Log how likely the model held each token; costs the whole LM head at each
    #[arg(long)]
    probabilities: bool,
    /// Draw so many texts of a molecule together, weighted by the probability that the mask left, and resample them at the ends
    /// of blocks: the model given that its text is legal, where a mask alone is not. Writes at least so many texts for each
    /// molecule; costs what --probabilities does
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..))]
    resample: Option<u32>,
    /// Also score the reference conformers: nats a conformer, summed over its tokens, so that tokenizers compare
    #[arg(long)]
    likelihood: bool,
    /// A file for every text: {smiles, generation, lp, placeholder, model, text} a line; `-` prints them instead of tables
    #[arg(long, value_name = "FILE.jsonl")]
    texts: Option<PathBuf>,
    /// A file with a line for each molecule of each run, .csv or .jsonl: counts, coverage, matching
    #[arg(long, value_name = "FILE")]
    molecules: Option<PathBuf>,
    /// A file for a Chrome trace of the phases; opens in Perfetto; `-` prints it instead of tables
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,
    /// Do one shard of the work, every N-th molecule from the I-th on, and keep its texts in the folder of -o: `drift merge`
    /// makes of all shards what one run would have written. `slurm`: the task of a job array says which. A shard that was
    /// stopped goes on by the same command
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "output",
        conflicts_with_all = ["texts", "molecules", "trace"])]
    shard: Option<Shard>,
    /// A folder for record.json and eval.html; `-` prints the JSON. Texts are kept there while others are written, so that a run
    /// that was stopped goes on by the same command
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// What `--lp` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LpArg {
    All,
    One(LpKind),
}

/// Parses `all`, or the name of a logit processor.
fn lp_arg() -> impl TypedValueParser<Value = LpArg> {
    let names = ["all"].into_iter().chain(LpKind::ALL.map(LpKind::name));
    PossibleValuesParser::new(names).try_map(|given| match &*given {
        "all" => Ok(LpArg::All),
        name => name.parse().map(LpArg::One),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DtypeArg {
    F32,
    Bf16,
}

/// Reads, generates, judges, writes, shows.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let wanted = if args.tokenizer.is_some() { Wanted::Weights } else { Wanted::Model };
    args.model.iter_mut().try_for_each(|path| found(path, wanted))?;
    args.tokenizer.iter_mut().try_for_each(|path| found(path, Wanted::Tokenizer))?;
    let plan = plan(&args, Device::parse, job)?;
    let printed = Printed::of(&args, output)?;
    let targets = targets(&args);
    targets.check(&inputs(&args))?;
    let folder = not_stdout(args.output.as_deref());
    let molecules = told_molecules(&args, &plan, job, output)?;
    let manifest = folder.map(|_| invocation.manifest(args.shard)).transpose()?;
    let begun =
        folder.zip(manifest).map(|(folder, manifest)| manifest.begin::<Finished>(folder)).transpose()?;
    let (work, finished) = begun.unzip();
    let mut kept = Kept::new(work, args.shard, finished.unwrap_or_default())?;
    if kept.texts() > 0 {
        output.note(&format!("goes on from {} texts that are finished", thousands(kept.texts() as u64)));
    }
    if let Some(shard) = args.shard {
        return shard_of(&plan, shard, &molecules, &mut kept, job, output);
    }
    let evaluation = evaluate(&plan, &molecules, &mut kept, job)?;
    if evaluation.report.interrupted && evaluation.texts.is_empty() {
        return Err(Error::Interrupted.into());
    }
    let journal = folder.map(|folder| folder.join(FILE)).filter(|_| !evaluation.report.interrupted);
    targets.write(&plan, &evaluation, journal.as_deref())?;
    match printed {
        Printed::Tables => output.text(&render(&evaluation.report, output))?,
        Printed::Record => output.document(&evaluation.report)?,
        Printed::Texts => output.text(&texts(&evaluation)?)?,
        Printed::Trace => output.text(&chrome_trace(&evaluation.spans).to_string())?,
    }
    if evaluation.report.interrupted {
        let goes_on = if folder.is_some() { "; the same command goes on" } else { "" };
        let kept = format!("the record holds what was finished{goes_on}");
        return Err(Error::Stopped { kept }.into());
    }
    Ok(())
}

/// Does one shard.
fn shard_of(
    plan: &EvalPlan,
    shard: Shard,
    molecules: &Molecules,
    kept: &mut Kept,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    if shard.of() as usize > molecules.molecules.len() {
        let problem = format!("there are only {} molecules", molecules.molecules.len());
        return Err(Error::input(format!("--shard {shard}"), problem, "cut them into fewer shards").into());
    }
    let done = evaluate_shard(plan, molecules, kept, job)?;
    if done.interrupted {
        let kept = format!("{} texts are kept; the same command goes on", thousands(done.texts as u64));
        return Err(Error::Stopped { kept }.into());
    }
    match output.json {
        true => output.document(&done),
        false => output.text(&format!("shard {shard}: {} texts", thousands(done.texts as u64))),
    }
}

/// Runs what is left of a command once all its shards are there.
pub(super) fn merge(
    manifest: &Manifest,
    (shards, is_partial): (Vec<(Shard, Vec<Finished>)>, bool),
    targets: &Targets,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let command = <Args as clap::Args>::augment_args(clap::Command::new("drift eval"));
    let matches = command.try_get_matches_from(Invocation::arguments(manifest))?;
    let mut args = <Args as clap::FromArgMatches>::from_arg_matches(&matches)?;
    let wanted = if args.tokenizer.is_some() { Wanted::Weights } else { Wanted::Model };
    args.model.iter_mut().try_for_each(|path| found(path, wanted))?;
    args.tokenizer.iter_mut().try_for_each(|path| found(path, Wanted::Tokenizer))?;
    let plan = plan(&args, Device::elsewhere, job)?;
    targets.check(&inputs(&args))?;
    let molecules = told_molecules(&args, &plan, job, output)?;
    let mut kept = Kept::merged(shards, is_partial)?;
    let evaluation = evaluate(&plan, &molecules, &mut kept, job)?;
    targets.write(&plan, &evaluation, None)?;
    match output.json {
        true => output.document(&evaluation.report),
        false => output.text(&render(&evaluation.report, output)),
    }
}

/// The files that were asked for.
fn targets(args: &Args) -> Targets {
    Targets {
        folder: args.output.clone(),
        texts: args.texts.clone(),
        molecules: args.molecules.clone(),
        trace: args.trace.clone(),
    }
}

/// Every file that is read under a name of its own.
fn inputs(args: &Args) -> Vec<PathBuf> {
    let mut inputs = args.corpus.clone();
    inputs.extend_from_slice(&args.references);
    inputs.extend(args.smiles.iter().chain(&args.tokenizer).chain(&args.smiles_source.smiles_of).cloned());
    inputs.extend(args.placeholder.iter().map(PathBuf::from));
    inputs
}

/// What goes to stdout.
enum Printed {
    Tables,
    Record,
    Texts,
    Trace,
}

impl Printed {
    /// What was asked for; the tables unless anything else was.
    fn of(args: &Args, output: &Output) -> Result<Self, Error> {
        let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
        let asked = [
            (output.json, "--json", Printed::Record),
            (!output.json && to_stdout(&args.output), "-o -", Printed::Record),
            (to_stdout(&args.texts), "--texts -", Printed::Texts),
            (to_stdout(&args.trace), "--trace -", Printed::Trace),
        ];
        let mut asked = asked.into_iter().filter(|(is_asked, ..)| *is_asked);
        let Some((_, first, printed)) = asked.next() else { return Ok(Printed::Tables) };
        match asked.next() {
            None => Ok(printed),
            Some((_, second, _)) => {
                let problem = format!("stdout is for {first} already");
                Err(Error::input(second, problem, "give one of them a file"))
            }
        }
    }
}

/// What the user wrote, complete and checked.
fn plan(args: &Args, open: impl Fn(&str) -> Result<Device, Error>, job: &Job) -> anyhow::Result<EvalPlan> {
    let models = match args.synthetic {
        Some(shape) => vec![ModelChoice::Synthetic(shape)],
        None if args.model.is_empty() => vec![ModelChoice::Embedded],
        None => args.model.iter().cloned().map(ModelChoice::Folder).collect(),
    };
    Ok(EvalPlan {
        models,
        tokenizer: args.tokenizer.clone(),
        processors: processors(&args.lp),
        placeholders: args.placeholder.iter().map(|text| placeholder(text, job)).collect::<Result<_, _>>()?,
        dialect: args.blocks.asked(args.dialect.map(Into::into)),
        generations: args.generations.at_least(args.resample.map_or(1, |draws| draws as usize)),
        thresholds: thresholds(&args.threshold),
        batch: args.batch as usize,
        preset: args.preset.clone(),
        sampling: Sampling::preset(&args.preset)?,
        seed: args.seed,
        device: device(args, open(&args.device)?)?,
        engine: args.engine,
        room: args.kv_cache,
        max_new_tokens: args.max_new_tokens.map(|most| most as usize),
        strip_junk: args.strip_junk,
        max_atoms: AtomLimit(args.max_atoms),
        log_probabilities: args.probabilities,
        resample: args.resample.map(|draws| draws as usize),
        likelihood: args.likelihood,
        trace: args.trace.is_some(),
    })
}

/// `fitted`, three numbers, or a file of `drift fit -o`.
fn placeholder(text: &str, job: &Job) -> Result<PlaceholderChoice, Error> {
    if text == "fitted" {
        return Ok(PlaceholderChoice::Fitted);
    }
    match Placeholder::new(text) {
        Ok(_) => Ok(PlaceholderChoice::Text(text.to_owned())),
        Err(_) if Path::new(text).exists() || text.ends_with(".json") => {
            Ok(PlaceholderChoice::File(FittedFile::read(Path::new(text), job)?))
        }
        Err(Error::Input { problem, .. }) => {
            let remedy =
                "give three numbers, for example 0.0000,0.0000,0.0000, or a file that `drift fit -o` wrote";
            Err(Error::input("--placeholder", problem, remedy))
        }
        Err(error) => Err(error),
    }
}

/// The device, in the type that was asked for.
fn device(args: &Args, device: Device) -> anyhow::Result<Device> {
    match args.dtype {
        Some(DtypeArg::F32) => Ok(device.in_f32()),
        Some(DtypeArg::Bf16) if device.name() == "cpu" => {
            let remedy = "leave it out, or give --device cuda:0";
            Err(Error::input("--dtype", "the CPU computes in f32", remedy).into())
        }
        _ => Ok(device),
    }
}

/// Each processor once, in the order of reports.
fn processors(asked: &[LpArg]) -> Vec<LpKind> {
    let all = asked.is_empty() || asked.contains(&LpArg::All);
    let is_asked = |kind: &LpKind| all || asked.contains(&LpArg::One(*kind));
    LpKind::ALL.into_iter().filter(is_asked).collect()
}

/// The molecules; says what could not be used.
fn told_molecules(args: &Args, plan: &EvalPlan, job: &Job, output: &Output) -> anyhow::Result<Molecules> {
    let molecules = molecules(args, plan, job)?;
    if molecules.skipped > 0 {
        output.note(&skipped(&molecules));
    }
    if let Some(note) = reference_note(&molecules.references) {
        output.note(&note);
    }
    Ok(molecules)
}

fn molecules(args: &Args, plan: &EvalPlan, job: &Job) -> anyhow::Result<Molecules> {
    let most = args.samples.map(|most| most as usize);
    let source = args.smiles_source.source(job)?;
    let corpus = |inputs: &[PathBuf]| Corpus::new(inputs, args.blocks.reading(), source.clone());
    if let Some(path) = &args.smiles {
        let molecules = Molecules::of_file(path, most, job)?;
        return Ok(match args.references.as_slice() {
            [] => molecules,
            inputs => molecules.with_references(&corpus(inputs), &named(inputs), job)?,
        });
    }
    let choice = match args.corpus.as_slice() {
        [] => CorpusChoice {
            part: args.split.or(Some(EvalPart::Test)),
            most: most.or(Some(EMBEDDED_SAMPLES)),
            ..CorpusChoice::default()
        },
        _ => CorpusChoice { part: args.split, trained_on: trained_on(&plan.models), most },
    };
    Ok(Molecules::of_corpus(&corpus(&args.corpus), &named(&args.corpus), &choice, job)?)
}
