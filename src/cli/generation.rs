//! What `drift generate` and `drift eval` share: the plan of the generation, its molecules, and shards.

use std::path::{Path, PathBuf};

use super::corpus::Corpus;
use super::eval_molecules::{named, reference_note};
use super::generate_args::{
    DtypeArg, GenerateArgs, LpArg, ModelArgs, MoleculeArgs, ProcessorArgs, RunningArgs, processors,
};
use super::lost_gpu::given_up;
use super::output::Output;
use super::skipped;
use super::values::found;
use crate::report::format::counted;
use drift_core::checkpoint::RequiredFiles;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::constraint::{Placeholder, ProcessorKind, USUAL_PLACEHOLDER};
use drift_core::encoding::Reading;
use drift_core::geometry::GeometryStrength;
use drift_core::{Error, Job};
use drift_data::corpus::{EmbeddedConformers, EmbeddedCorpus, ReadOptions};
use drift_data::prompts::{CorpusChoice, Molecules};
use drift_data::shard::Shard;
use drift_engine::device::with_engine;
use drift_engine::generate::{BACKTRACK, Sampling, SelfChecking};
use drift_engine::model::Device;
use drift_engine::model::cuda::device_folder;
use drift_engine::parameter;
use drift_engine::runs::plan::{
    EngineChoice, GeneratePlan, GeometrySettings, ModelChoice, PlaceholderChoice,
};
use drift_engine::runs::{MOST_EXAMPLES, ShardDone, TextStore, trained_on, with_geometry};
use drift_tune::placeholder::FittedFile;

/// The number of molecules if neither `--samples`, `--corpus` nor `--smiles` is given.
const EMBEDDED_SAMPLES: usize = 64;

/// Locates models and tokenizers that are given by name.
pub(super) fn find(args: &mut ModelArgs) -> Result<(), Error> {
    let wanted = if args.tokenizer.is_some() { RequiredFiles::Weights } else { RequiredFiles::Model };
    found(&mut args.model, wanted)?;
    found(&mut args.tokenizer, RequiredFiles::Tokenizer)
}

/// Returns the plan of the command line. A failed self-check writes what it compared to `evidence`.
pub(super) fn generate_plan(
    args: &GenerateArgs,
    running: &RunningArgs,
    evidence: Option<PathBuf>,
    open: impl Fn(&str) -> Result<Device, Error>,
    job: &Job,
    output: &Output,
) -> anyhow::Result<GeneratePlan> {
    let GenerateArgs { model, sampling, .. } = args;
    let processors = processors(&args.processors.lp, is_built_in(args));
    let takes_placeholder = processors.iter().any(|kind| kind.takes_placeholder());
    if !args.processors.placeholder.is_empty() && !takes_placeholder {
        let problem = "no logit processor that was asked for has one";
        return Err(Error::input("--placeholder", problem, "leave it out, or give --lp allowlist too").into());
    }
    let examples = examples(args, job)?;
    tell(&examples, output);
    let models = match model.synthetic {
        Some(shape) => vec![ModelChoice::Synthetic(shape)],
        None if model.model.is_empty() => vec![ModelChoice::Embedded],
        None => model.model.iter().cloned().map(ModelChoice::Folder).collect(),
    };
    let resample = sampling.resample.map(|draws| draws as usize);
    Ok(GeneratePlan {
        models,
        tokenizer: model.tokenizer.clone(),
        processors,
        placeholders: placeholders(&args.processors, job)?,
        encoding: model.blocks.asked(model.dialect),
        generations: sampling.generations.at_least(resample.unwrap_or(1)),
        batch: running.batch as usize,
        preset: sampling.preset.clone(),
        sampling: Sampling::preset(&sampling.preset)?,
        seed: sampling.seed,
        device: device(running, open(&running.device)?)?,
        engine: running.engine(),
        self_check: self_check(running, evidence),
        given_up: given_up(),
        room: running.kv_cache,
        form: AnswerForm { conformers: sampling.conformers.into(), opened: sampling.opened },
        examples: examples.molecules,
        example_inputs: examples.inputs,
        eos: sampling.eos.clone(),
        max_new_tokens: sampling.max_new_tokens.map(|most| most as usize),
        log_probabilities: sampling.probabilities,
        resample,
        geometry: geometry(&args.processors)?,
        trace: running.trace.is_some(),
    })
}

/// Returns how the logit processor `geometry` masks. Its options are refused where it is not asked for.
fn geometry(args: &ProcessorArgs) -> Result<GeometrySettings, Error> {
    let given = [
        ("--bounds", args.bounds.is_some()),
        ("--no-signs", args.no_signs),
        ("--no-planes", args.no_planes),
        ("--backtrack", args.backtrack.is_some()),
    ];
    let useless = given.into_iter().find(|(_, is_given)| *is_given);
    if let (Some((option, _)), false) = (useless, args.lp.contains(&LpArg::One(ProcessorKind::Geometry))) {
        return Err(Error::input(option, "no other logit processor has it", "give --lp geometry"));
    }
    let usual = GeometryStrength::default();
    let strength = GeometryStrength {
        bounds: args.bounds.unwrap_or(usual.bounds),
        signs: !args.no_signs,
        planes: !args.no_planes,
    };
    strength.check()?;
    Ok(GeometrySettings { strength, backtrack: args.backtrack.unwrap_or(BACKTRACK) })
}

/// Returns whether model, prompts and molecules are those of a run without options.
fn is_built_in(args: &GenerateArgs) -> bool {
    let GenerateArgs { model, molecules, sampling, .. } = args;
    let own_model = model.model.is_empty() && model.synthetic.is_none() && model.tokenizer.is_none();
    let own_prompts =
        molecules.smiles.is_none() && molecules.corpus.is_empty() && sampling.examples.is_empty();
    own_model && own_prompts
}

/// Returns the worked examples of prompts.
fn examples(args: &GenerateArgs, job: &Job) -> Result<Molecules, Error> {
    let asked = &args.sampling.examples;
    if asked.is_empty() {
        return Ok(Molecules::default());
    }
    // Examples must not lose precision before the model's encoding writes them.
    let corpus = Corpus::new(asked, read_options(args, job)?);
    let read = Molecules::of_corpus(&corpus, &named(asked), &CorpusChoice::default(), job)?;
    let conformers: usize = read.molecules.iter().map(|molecule| molecule.conformers.len()).sum();
    if conformers > MOST_EXAMPLES {
        let problem = format!("{} contain {conformers} conformers", named(asked));
        return Err(Error::parameter(parameter::EXAMPLES, problem, format!("give at most {MOST_EXAMPLES}")));
    }
    Ok(read)
}

/// Returns how to read conformers.
fn read_options(args: &GenerateArgs, job: &Job) -> Result<ReadOptions, Error> {
    args.molecules.smiles_source.options(compared(args), job)
}

/// Returns how to read conformers that texts are compared with: they keep the precision that the model's encoding cannot write.
fn compared(args: &GenerateArgs) -> Reading {
    let own = args.model.blocks.reading();
    let reading = if own.encoding.is_decimal() { own } else { Reading::default().cutting(true) };
    Reading { rewrites: true, ..reading }
}

/// Returns the placeholders that were asked for. The default is [`USUAL_PLACEHOLDER`]; without `--lp`, it is 3DMolGen's and the fitted
/// one.
fn placeholders(args: &ProcessorArgs, job: &Job) -> Result<Vec<PlaceholderChoice>, Error> {
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

/// Refuses an engine of a GPU on the CPU.
pub(super) fn check_engine(engine: EngineChoice, device: &Device) -> Result<(), Error> {
    if engine.is_of_a_gpu() && device.name() == "cpu" {
        let problem = format!("{} needs a GPU", engine.name());
        return Err(Error::input("--engine", problem, "leave it out, or give --device cuda:0"));
    }
    Ok(())
}

/// Returns the device with the type and the engine that were asked for.
fn device(args: &RunningArgs, device: Device) -> anyhow::Result<Device> {
    let engine = args.engine();
    check_engine(engine, &device)?;
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

/// Returns how a GPU is checked. Verdicts are kept beside the compiled kernels for later runs.
fn self_check(args: &RunningArgs, evidence: Option<PathBuf>) -> SelfChecking {
    let own = device_folder().map(|folder| folder.join("self-check"));
    let evidence = evidence.or_else(|| own.as_ref().map(|folder| folder.join("evidence")));
    SelfChecking { insists: args.engine.is_some(), verdicts: own, evidence, ..SelfChecking::default() }
}

/// Reads the molecules, and notes which inputs could not be used.
pub(super) fn told_molecules(
    args: &GenerateArgs,
    plan: &GeneratePlan,
    job: &Job,
    output: &Output,
) -> anyhow::Result<Molecules> {
    let molecules = with_geometry(plan, molecules(args, plan, job)?)?;
    tell(&molecules, output);
    Ok(molecules)
}

/// Notes which of their inputs could not be used.
fn tell(molecules: &Molecules, output: &Output) {
    skipped::tell_prompts(molecules, output);
    if let Some(note) = reference_note(&molecules.references) {
        output.note(&note);
    }
}

fn molecules(args: &GenerateArgs, plan: &GeneratePlan, job: &Job) -> anyhow::Result<Molecules> {
    let given = &args.molecules;
    let own = own_corpus(given, plan);
    let reads_none = if given.smiles.is_some() { given.references.is_empty() } else { own.is_some() };
    if let (true, true, Some(option)) =
        (reads_none, args.sampling.examples.is_empty(), given.smiles_source.given())
    {
        let problem = "is for files of conformers, and none is read";
        return Err(Error::input(option, problem, "leave it out, or give --corpus or --references").into());
    }
    let most = given.samples.map(|most| most as usize);
    let options = read_options(args, job)?;
    let corpus = |inputs: &[PathBuf]| Corpus::new(inputs, options.clone());
    if let Some(path) = &given.smiles {
        let molecules = Molecules::of_file(path, most, job)?;
        return Ok(match given.references.as_slice() {
            [] => molecules,
            inputs => molecules.with_references(&corpus(inputs), &named(inputs), job)?,
        });
    }
    let most = most.or(given.corpus.is_empty().then_some(EMBEDDED_SAMPLES));
    let Some(own) = own else {
        let trained_on = trained_on(&plan.models)?;
        let choice = CorpusChoice { part: given.split, trained_on, most, pools: given.pool };
        return Ok(Molecules::of_corpus(&corpus(&given.corpus), &named(&given.corpus), &choice, job)?);
    };
    if given.pool {
        let remedy = "give a pickle of 3DMolGen with --corpus, or leave it out";
        return Err(Error::input("--pool", "the built-in corpora pool no isomers", remedy).into());
    }
    let own = EmbeddedConformers { corpus: own, reading: compared(args), ..EmbeddedConformers::default() };
    Ok(Molecules::of_embedded(own, given.split, most, job)?)
}

/// Returns the built-in corpus that `--corpus` names. Without `--corpus`, the small one if all models have it as their default, else the
/// drug-like one.
fn own_corpus(args: &MoleculeArgs, plan: &GeneratePlan) -> Option<EmbeddedCorpus> {
    let is_of_small = |model: &ModelChoice| model.corpus() == EmbeddedCorpus::Small;
    match args.corpus.as_slice() {
        [] if plan.models.iter().all(is_of_small) => Some(EmbeddedCorpus::Small),
        [] => Some(EmbeddedCorpus::DrugLike),
        [one] => EmbeddedCorpus::by_name(one),
        _ => None,
    }
}

/// Refuses more shards than there are molecules.
pub(super) fn check_shards(place: String, shards: u32, molecules: &Molecules) -> Result<(), Error> {
    let count = molecules.molecules.len();
    if shards as usize <= count {
        return Ok(());
    }
    let are = if count == 1 { "is" } else { "are" };
    let problem = format!("there {are} only {}", counted(count as u64, "molecule"));
    Err(Error::input(place, problem, "give fewer shards"))
}

/// Shows what a shard finished, or says how it continues.
pub(super) fn show_shard(shard: Shard, done: &ShardDone, output: &Output) -> anyhow::Result<()> {
    let texts = counted(done.texts as u64, "text");
    if done.interrupted {
        let kept = format!("kept {texts}; the same command goes on");
        return Err(Error::Stopped { kept }.into());
    }
    match output.json {
        true => output.document(done),
        false => output.text(&format!("shard {shard}: {texts}")),
    }
}

/// Notes how many texts were finished before.
pub(super) fn tell_kept(kept: &TextStore, output: &Output) {
    if kept.texts() > 0 {
        output.note(&format!("continues after {}", counted(kept.texts() as u64, "finished text")));
    }
}
