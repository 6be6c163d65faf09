//! `drift eval`: generates texts under each logit processor and measures the results.

use std::path::{Path, PathBuf};

use super::corpus::Corpus;
use super::device::given_up;
use super::energy::EnergyArgs;
use super::eval_args::{Args, DtypeArg, processors};
use super::eval_molecules::{named, reference_note, skipped};
use super::eval_output::{Targets, render, texts};
use super::invocation::Invocation;
use super::output::Output;
use super::values::{found, is_stdout, not_stdout, thresholds};
use crate::report::format::thousands;
use crate::report::trace::chrome_trace;
use drift_core::checkpoint::Wanted;
use drift_core::chem::AtomLimit;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::constraint::{Placeholder, USUAL_PLACEHOLDER};
use drift_core::encoding::Reading;
use drift_core::error::Error;
use drift_core::job::Job;
use drift_core::run_files::RunFiles;
use drift_data::corpus::{Embedded, EmbeddedCorpus, ReadOptions};
use drift_data::shard::{FILE, Manifest, Shard};
use drift_engine::eval::device::with_engine;
use drift_engine::eval::molecules::{CorpusChoice, Molecules, PromptMolecule};
use drift_engine::eval::plan::{EngineChoice, EvalPlan, ModelChoice, PlaceholderChoice};
use drift_engine::eval::{
    Finished, Kept, MOST_EXAMPLES, OtherTexts, check, evaluate, evaluate_shard, trained_on,
};
use drift_engine::generate::{Sampling, SelfChecking};
use drift_engine::model::cuda::device_folder;
use drift_engine::model::{Config, Device};
use drift_engine::parameter;
use drift_tune::placeholder::FittedFile;

/// The number of molecules if neither `--samples`, `--corpus` nor `--smiles` is given.
const EMBEDDED_SAMPLES: usize = 64;

/// Reads the molecules, generates and judges texts, writes the files and shows the tables.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    find(&mut args)?;
    let targets = targets(&args)?;
    targets.check(invocation.files())?;
    let plan = plan(&args, Device::parse, job)?;
    one_run(&args, &plan)?;
    kept_for_energies(&args)?;
    let printed = Printed::of(&args, output)?;
    let folder = not_stdout(args.output.as_deref());
    let molecules = told_molecules(&args, &plan, job, output)?;
    let manifest = folder.map(|_| manifest(&args, invocation)).transpose()?;
    let begun =
        folder.zip(manifest).map(|(folder, manifest)| manifest.begin::<Finished>(folder)).transpose()?;
    let (work, finished) = begun.unzip();
    let mut kept = Kept::new(work, args.shard, finished.unwrap_or_default())?;
    check(&plan, &molecules, &mut kept)?;
    if kept.texts() > 0 {
        output.note(&format!("continues after {} finished texts", thousands(kept.texts() as u64)));
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
        Printed::Tables => output.text(&render(&evaluation.report, args.verbose, output))?,
        Printed::Record => output.document(&evaluation.report)?,
        Printed::Texts => output.text(&texts(&evaluation)?)?,
        Printed::Trace => output.text(&chrome_trace(&evaluation.spans).to_string())?,
    }
    if evaluation.report.interrupted {
        let goes_on = if folder.is_some() { "; the same command goes on" } else { "" };
        let kept = format!("the record contains what was finished{goes_on}");
        return Err(Error::Stopped { kept }.into());
    }
    Ok(())
}

/// The manifest that identifies the kept texts. Without `--shard` it leaves out the energy options: energies are computed after all
/// texts are written, so a program that failed may be replaced. A shard keeps them, since a merge takes the program from the shards.
fn manifest(args: &Args, invocation: &Invocation) -> Result<Manifest, Error> {
    match args.shard {
        Some(shard) => invocation.manifest(Some(shard)),
        None => invocation.without(&EnergyArgs::OPTIONS).manifest(None),
    }
}

/// Generates the texts of one shard.
fn shard_of(
    plan: &EvalPlan,
    shard: Shard,
    molecules: &Molecules,
    kept: &mut Kept,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    check_shards(format!("--shard {shard}"), shard.of(), molecules)?;
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

/// Finishes the command with the texts of its shards.
pub(super) fn merge(
    manifest: &Manifest,
    (shards, is_partial): (Vec<(Shard, Vec<Finished>)>, bool),
    targets: &Targets,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let mut args: Args = Invocation::parsed(manifest)?;
    find(&mut args)?;
    // Files that the merge names take precedence over the files that the shards' command names.
    args.verdicts = targets.verdicts.clone().or(args.verdicts);
    args.matrix = targets.matrix.clone().or(args.matrix);
    let (verdicts, matrix) = (args.verdicts.clone(), args.matrix.clone());
    let cache = args.energy.cache().map(Path::to_owned);
    let targets = &Targets { verdicts, matrix, cache, ..targets.clone() };
    targets.check(files)?;
    let plan = plan(&args, Device::elsewhere, job)?;
    one_run(&args, &plan)?;
    let molecules = told_molecules(&args, &plan, job, output)?;
    let mut kept = Kept::merged(shards, is_partial)?;
    let evaluation = evaluate(&plan, &molecules, &mut kept, job)?;
    targets.write(&plan, &evaluation, None)?;
    match output.json || targets.folder.as_deref().is_some_and(is_stdout) {
        true => output.document(&evaluation.report),
        false => output.text(&render(&evaluation.report, args.verbose, output)),
    }
}

/// Refuses more shards than there are molecules.
fn check_shards(place: String, shards: u32, molecules: &Molecules) -> Result<(), Error> {
    let count = molecules.molecules.len();
    if shards as usize <= count {
        return Ok(());
    }
    Err(Error::input(place, format!("there are only {count} molecules"), "give fewer shards"))
}

/// Checks a command for shards as [`run`] would, as far as possible without weights. `files`: its inputs and the files of its jobs.
pub(super) fn check_array(
    mut args: Args,
    shards: u32,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    find(&mut args)?;
    targets(&args)?.check(files)?;
    for folder in &args.model {
        Config::load(folder)?;
    }
    let plan = plan(&args, Device::elsewhere, job)?;
    let molecules = told_molecules(&args, &plan, job, output)?;
    Ok(check_shards(format!("--array {shards}"), shards, &molecules)?)
}

/// Locates models and tokenizers that are given by name.
fn find(args: &mut Args) -> Result<(), Error> {
    let wanted = if args.tokenizer.is_some() { Wanted::Weights } else { Wanted::Model };
    found(&mut args.model, wanted)?;
    found(&mut args.tokenizer, Wanted::Tokenizer)
}

/// The files that were asked for.
fn targets(args: &Args) -> Result<Targets, Error> {
    Ok(Targets {
        folder: args.output.clone(),
        texts: args.texts.clone(),
        molecules: args.molecules.clone(),
        trace: args.trace.clone(),
        verdicts: args.verdicts.clone(),
        matrix: args.matrix.clone(),
        energies: args.energy.list()?,
        cache: args.energy.cache().map(Path::to_owned),
    })
}

/// Requires `-o DIR` with `--energy`, so that texts that took hours are not lost if the energy program fails.
fn kept_for_energies(args: &Args) -> Result<(), Error> {
    if args.energy.is_asked() && not_stdout(args.output.as_deref()).is_none() {
        let problem = "the texts would be lost if the program failed";
        return Err(Error::input("--energy", problem, "give -o DIR, which keeps them"));
    }
    Ok(())
}

/// Refuses `--matrix` if there is more than one run, since a matrix holds the texts of one run.
fn one_run(args: &Args, plan: &EvalPlan) -> Result<(), Error> {
    let runs = plan.models.len() * plan.processors.len().max(plan.placeholders.len());
    match &args.matrix {
        Some(_) if runs > 1 => {
            let problem =
                format!("takes one model, logit processor and placeholder, but there are {runs} runs");
            Err(Error::input("--matrix", problem, "give one --model and one --lp"))
        }
        _ => Ok(()),
    }
}

/// The result that goes to stdout.
enum Printed {
    Tables,
    Record,
    Texts,
    Trace,
}

impl Printed {
    /// The result that was asked for; the tables by default.
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
                let problem = format!("{first} already writes to stdout");
                Err(Error::input(second, problem, "write one of them to a file"))
            }
        }
    }
}

/// The complete, checked plan of the command line.
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
        placeholders: placeholders(args, job)?,
        encoding: args.blocks.asked(args.dialect.map(Into::into)),
        generations: args.generations.at_least(args.resample.map_or(1, |draws| draws as usize)),
        thresholds: thresholds(&args.threshold),
        missing: args.missing,
        by_text: args.verdicts.is_some() || args.matrix.is_some(),
        batch: args.batch as usize,
        preset: args.preset.clone(),
        sampling: Sampling::preset(&args.preset)?,
        seed: args.seed,
        device: device(args, open(&args.device)?)?,
        engine: args.engine(),
        self_check: self_check(args),
        given_up: given_up(),
        room: args.kv_cache,
        form: AnswerForm { conformers: args.conformers.into(), opened: args.opened },
        examples: examples(args, job)?,
        eos: args.eos.clone(),
        max_new_tokens: args.max_new_tokens.map(|most| most as usize),
        strip_junk: args.strip_junk,
        max_atoms: AtomLimit(args.max_atoms),
        log_probabilities: args.probabilities,
        resample: args.resample.map(|draws| draws as usize),
        likelihood: args.likelihood,
        trace: args.trace.is_some(),
        same_as: args.same_as.as_deref().map(|path| OtherTexts::read(path, job)).transpose()?.map(Into::into),
        // Shards only write texts, so that they do not share a cache of energies. The merge computes the energies.
        energy: if args.shard.is_some() { None } else { args.energy.energies()?.map(Into::into) },
    })
}

/// The worked examples of prompts.
fn examples(args: &Args, job: &Job) -> Result<Vec<PromptMolecule>, Error> {
    if args.examples.is_empty() {
        return Ok(Vec::new());
    }
    // Examples must not lose precision before the model's encoding writes them.
    let corpus = Corpus::new(&args.examples, read_options(args, job)?);
    let read = Molecules::of_corpus(&corpus, &named(&args.examples), &CorpusChoice::default(), job)?;
    let conformers: usize = read.molecules.iter().map(|molecule| molecule.conformers.len()).sum();
    if conformers > MOST_EXAMPLES {
        let problem = format!("{} contain {conformers} conformers", named(&args.examples));
        return Err(Error::parameter(parameter::EXAMPLES, problem, format!("give at most {MOST_EXAMPLES}")));
    }
    Ok(read.molecules)
}

/// How to read conformers.
fn read_options(args: &Args, job: &Job) -> Result<ReadOptions, Error> {
    let smiles = args.smiles_source.source(job)?;
    Ok(ReadOptions { rows: args.smiles_source.rows()?, ..ReadOptions::new(compared(args), smiles) })
}

/// How to read conformers that texts are compared with: they keep the precision that the model's encoding cannot write.
fn compared(args: &Args) -> Reading {
    let own = args.blocks.reading();
    let reading = if own.encoding.is_decimal() { own } else { Reading::default().cutting(true) };
    Reading { rewrites: true, ..reading }
}

/// The placeholders that were asked for. The default is [`USUAL_PLACEHOLDER`]; without `--lp`, it is 3DMolGen's and the fitted one.
fn placeholders(args: &Args, job: &Job) -> Result<Vec<PlaceholderChoice>, Error> {
    match args.placeholder.as_slice() {
        [] if args.lp.is_empty() => Ok(vec![PlaceholderChoice::Usual]),
        [] => Ok(vec![PlaceholderChoice::Text(USUAL_PLACEHOLDER.to_owned())]),
        asked => asked.iter().map(|text| placeholder(text, job)).collect(),
    }
}

/// Reads `fitted`, three numbers, or the name of a file that `drift fit -o` wrote.
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

/// The device with the type and the engine that were asked for.
fn device(args: &Args, device: Device) -> anyhow::Result<Device> {
    let engine = args.engine();
    if engine.is_of_a_gpu() && device.name() == "cpu" {
        let problem = format!("{} needs a GPU", engine.name());
        return Err(Error::input("--engine", problem, "leave it out, or give --device cuda:0").into());
    }
    let device = match given_up() {
        Some(_) => device.without_kernels(),
        None => with_engine(device, engine),
    };
    match args.dtype {
        Some(DtypeArg::F32) => Ok(device.in_f32()),
        Some(DtypeArg::Bf16) if device.name() == "cpu" && engine != EngineChoice::Drift => {
            let remedy = "leave it out, or give --engine drift";
            Err(Error::input("--dtype", "on the CPU only drift's decoders read bf16", remedy).into())
        }
        Some(DtypeArg::Bf16) => Ok(device.in_bf16()),
        _ => Ok(device),
    }
}

/// How a GPU is checked. Verdicts are kept beside the compiled kernels for later runs; differences are written beside the record.
fn self_check(args: &Args) -> SelfChecking {
    let own = device_folder().map(|folder| folder.join("self-check"));
    let beside = not_stdout(args.output.as_deref()).map(|folder| folder.join("self-check"));
    let evidence = beside.or_else(|| own.as_ref().map(|folder| folder.join("evidence")));
    SelfChecking { insists: args.engine.is_some(), verdicts: own, evidence, ..SelfChecking::default() }
}

/// Reads the molecules, and notes which inputs could not be used.
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
    let options = read_options(args, job)?;
    let corpus = |inputs: &[PathBuf]| Corpus::new(inputs, options.clone());
    if let Some(path) = &args.smiles {
        let molecules = Molecules::of_file(path, most, job)?;
        return Ok(match args.references.as_slice() {
            [] => molecules,
            inputs => molecules.with_references(&corpus(inputs), &named(inputs), job)?,
        });
    }
    let most = most.or(args.corpus.is_empty().then_some(EMBEDDED_SAMPLES));
    let Some(own) = own_corpus(args, plan) else {
        let trained_on = trained_on(&plan.models)?;
        let choice = CorpusChoice { part: args.split, trained_on, most, pools: args.pool };
        return Ok(Molecules::of_corpus(&corpus(&args.corpus), &named(&args.corpus), &choice, job)?);
    };
    if args.pool {
        let remedy = "give a pickle of 3DMolGen with --corpus, or leave it out";
        return Err(Error::input("--pool", "the built-in corpora pool no isomers", remedy).into());
    }
    let own = Embedded { corpus: own, reading: compared(args), ..Embedded::default() };
    Ok(Molecules::of_embedded(own, args.split, most, job)?)
}

/// The built-in corpus that `--corpus` names. Without `--corpus`, the small one if all models have it as their default, else the
/// drug-like one.
fn own_corpus(args: &Args, plan: &EvalPlan) -> Option<EmbeddedCorpus> {
    let is_of_small = |model: &ModelChoice| model.corpus() == EmbeddedCorpus::Small;
    match args.corpus.as_slice() {
        [] if plan.models.iter().all(is_of_small) => Some(EmbeddedCorpus::Small),
        [] => Some(EmbeddedCorpus::DrugLike),
        [one] => EmbeddedCorpus::by_name(one),
        _ => None,
    }
}
