//! `drift train-model`: trains or fine-tunes a small decoder that writes conformers.

use std::path::PathBuf;

use anyhow::Context;

use super::corpus::Corpus;
use super::help::{CONFORMERS, MODEL, NUMBERS, OUTPUT, RUNNING};
use super::invocation::Invocation;
use super::output::Output;
use super::values::{Choice, DIALECTS, EncodingArgs, FRAMES, SmilesOfArgs, choice, folder_alone, found};
use crate::report::train_view::train_table;
use drift_core::checkpoint::{ModelFolder, RequiredFiles};
use drift_core::encoding::{Reading, TrailingZeros};
use drift_core::tokenizer::{config_beside, encoding_beside};
use drift_core::{Encoding, Error, Job, Tokenizer};
use drift_data::corpus::{Frame, ReadOptions};
use drift_engine::model::{Architecture, Device};
use drift_engine::train::documents::Loss;
use drift_engine::train::export;
use drift_engine::train::{
    Augmentation, Gradients, InitCheckpoint, Optimizer, Schedule, Shape, Start, TrainPlan, train,
};
use drift_tune::design::extension::config::with_real_ids;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 4] = [
    "drift train-model --arch qwen3 --tokenizer qwen-like -o model",
    "drift train-model --arch llama --tokenizer extended --corpus corpus.jsonl --steps 20000 -o model",
    "drift train-model --init path/to/model --corpus conformers.jsonl --learning-rate 2e-4 -o further",
    "drift train-model --init path/to/model --tokenizer extended --new-rows-warmup 100 -o further",
];

/// The command line of `drift train-model`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tokenizer: a file, a model folder, qwen-like or llama-like [default: that of --init]
    #[arg(long, value_name = "TOKENIZER", required_unless_present = "init", help_heading = MODEL)]
    tokenizer: Option<PathBuf>,
    /// The architecture of the decoder
    #[arg(long, value_parser = choice(&ARCHITECTURES), value_name = "qwen3|llama", hide_possible_values = true, required_unless_present = "init", conflicts_with = "init", help_heading = MODEL)]
    arch: Option<Architecture>,
    /// The checkpoint to fine-tune [default: random weights]
    #[arg(long, value_name = "CHECKPOINT", help_heading = MODEL)]
    init: Option<PathBuf>,
    /// The tokenizer that the checkpoint was trained with, if it was extended since
    #[arg(long, value_name = "TOKENIZER", requires = "init", conflicts_with_all = ["arch", "hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate"], help_heading = MODEL)]
    new_tokens_of: Option<PathBuf>,
    /// The conformers to train on, in any format that `drift mine` reads [default: the built-in corpus]
    #[arg(long, value_name = "INPUT", num_args = 1.., help_heading = CONFORMERS)]
    corpus: Vec<PathBuf>,
    #[command(flatten, next_help_heading = CONFORMERS)]
    smiles: SmilesOfArgs,
    /// The frame to turn conformers into: keep, principal or first-atoms [default: that of --init, else keep]
    #[arg(long, value_name = "FRAME", hide_possible_values = true, value_parser = choice(&FRAMES), help_heading = CONFORMERS)]
    frame: Option<Frame>,
    /// How decimals are written [default: as the tokenizer or --init has coordinates, else fixed]
    #[arg(long, conflicts_with = "encoding", value_parser = choice(&DIALECTS), value_name = "fixed|stripped", hide_possible_values = true, help_heading = NUMBERS)]
    dialect: Option<TrailingZeros>,
    #[command(flatten, next_help_heading = NUMBERS)]
    blocks: EncodingArgs,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    schedule: ScheduleArgs,
    /// The device: cpu or cuda:N
    #[arg(long, default_value = "cpu", help_heading = RUNNING)]
    device: String,
    /// The seed of initial weights and of the order of documents
    #[arg(long, default_value_t = 0, help_heading = RUNNING)]
    seed: u64,
    /// Steps between two saves of the state and the checkpoint
    #[arg(long, value_name = "STEPS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..), help_heading = RUNNING)]
    save_every: u64,
    /// Continue from the state in the output folder
    #[arg(long, help_heading = RUNNING)]
    resume: bool,
    /// Write the checkpoint and its recipe to this folder
    #[arg(short, long, value_name = "DIR", help_heading = OUTPUT)]
    output: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Shape")]
struct ShapeArgs {
    /// The width of the residual stream
    #[arg(long, value_name = "N", default_value_t = 256, conflicts_with = "init")]
    hidden: usize,
    /// Decoder layers
    #[arg(long, value_name = "N", default_value_t = 5, conflicts_with = "init")]
    layers: usize,
    /// Query heads
    #[arg(long, value_name = "N", default_value_t = 4, conflicts_with = "init")]
    heads: usize,
    /// Key and value heads
    #[arg(long, value_name = "N", default_value_t = 2, conflicts_with = "init")]
    kv_heads: usize,
    /// The size of a head
    #[arg(long, value_name = "N", default_value_t = 64, conflicts_with = "init")]
    head_dim: usize,
    /// The width inside the MLP
    #[arg(long, value_name = "N", default_value_t = 512, conflicts_with = "init")]
    intermediate: usize,
    /// The longest document, in tokens [default: 4096, or the context of --init]
    #[arg(long, value_name = "N")]
    context: Option<usize>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Schedule")]
struct ScheduleArgs {
    /// Updates of the weights
    #[arg(long, value_name = "N", default_value_t = 1000)]
    steps: u64,
    /// The fewest tokens of an update
    #[arg(long, value_name = "N", default_value_t = 8192)]
    batch_tokens: usize,
    /// The highest learning rate
    #[arg(long, value_name = "X", default_value_t = 2e-3)]
    learning_rate: f64,
    /// Updates until the highest learning rate
    #[arg(long, value_name = "N", default_value_t = 100)]
    warmup: u64,
    /// The optimizer; muon is for the matrices of layers, AdamW for the rest
    #[arg(long, value_name = "adamw|muon", hide_possible_values = true, value_parser = choice(&OPTIMIZERS), default_value = "adamw")]
    optimizer: Optimizer,
    /// Weight decay of matrices
    #[arg(long, value_name = "X", default_value_t = 0.1)]
    weight_decay: f64,
    /// Clip gradients to this norm
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    clip: f64,
    /// The loss weight of a prompt token
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    prompt_weight: f32,
    /// The loss weight of a token outside blocks
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    copy_weight: f32,
    /// The loss weight of digits from the third decimal on
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    fine_weight: f32,
    /// Turn each conformer by 180° about a random axis each time
    #[arg(long)]
    turn: bool,
    /// The standard deviation of noise on coordinates, in Å
    #[arg(long, value_name = "ANGSTROM", default_value_t = 0.0)]
    noise: f64,
    /// Updates in which coordinates come in bit by bit
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    outline_steps: u64,
    /// Order the first epoch from short to long documents
    #[arg(long)]
    shortest_first: bool,
    /// Updates that train only the rows of new tokens, before --warmup
    #[arg(long, value_name = "STEPS", default_value_t = 0, requires = "init", conflicts_with_all = ["arch", "hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate"])]
    new_rows_warmup: u64,
}

const OPTIMIZERS: [Choice<Optimizer>; 2] = [("adamw", Optimizer::AdamW, ""), ("muon", Optimizer::Muon, "")];

const ARCHITECTURES: [Choice<Architecture>; 2] =
    [("qwen3", Architecture::Qwen3, ""), ("llama", Architecture::Llama, "")];

/// Trains the model, writes the checkpoint and shows the report.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    found(&mut args.tokenizer, RequiredFiles::Tokenizer)?;
    found(&mut args.new_tokens_of, RequiredFiles::Tokenizer)?;
    found(&mut args.init, RequiredFiles::Model)?;
    let written = written(&args)?;
    args.smiles.check_for(&args.corpus)?;
    let options = ReadOptions { frame: written.frame, ..args.smiles.options(written.reading, job)? };
    let corpus = Corpus::new(&args.corpus, options);
    let folder = folder_alone("-o", &args.output)?;
    invocation.files().writes_in("-o", folder, &export::WRITTEN)?.check()?;
    let plan = plan(args, &written, job)?;
    let report = train(&plan, &corpus, job)?;
    corpus.tell(output);
    if output.json {
        return output.document(&report);
    }
    output.text(&train_table(&report, output.terminal()))?;
    output.note(&format!("wrote {}", plan.output.display()));
    Ok(())
}

/// Returns the complete plan of the command line.
fn plan(args: Args, written: &WrittenForm, job: &Job) -> anyhow::Result<TrainPlan> {
    let start = start(&args, job)?;
    // clap requires one of them.
    let tokenizer = args.tokenizer.as_ref().or(args.init.as_ref()).context("--tokenizer is missing")?;
    let tokenizer_config = config_beside(tokenizer)?;
    let (tokenizer, tokenizer_json) = Tokenizer::load_for(tokenizer, job)?;
    let tokenizer_config = tokenizer_config.map(|config| with_real_ids(config, &tokenizer));
    let device = Device::parse(&args.device)?;
    let gradients = match device.inner().is_cpu() {
        true => Gradients::ByHand,
        false => Gradients::Autograd(device.inner().clone()),
    };
    let schedule = Schedule {
        optimizer: args.schedule.optimizer,
        steps: args.schedule.steps,
        batch_tokens: args.schedule.batch_tokens,
        learning_rate: args.schedule.learning_rate,
        warmup_steps: args.schedule.warmup,
        final_share: 0.05,
        weight_decay: args.schedule.weight_decay,
        clip: args.schedule.clip,
        outline_steps: args.schedule.outline_steps,
        shortest_first: args.schedule.shortest_first,
        new_rows_steps: args.schedule.new_rows_warmup,
    };
    let loss = loss(&args.schedule)?;
    let augmentation = Augmentation {
        turned: args.schedule.turn,
        noise_angstrom: args.schedule.noise,
        frame: written.frame,
    };
    if augmentation.turned && augmentation.frame == Frame::FirstAtoms {
        let problem = match args.frame {
            Some(_) => "turns conformers out of the frame of --frame first-atoms",
            None => "turns conformers out of the frame of the first atoms, in which --init was trained",
        };
        return Err(Error::input("--turn", problem, "leave it out, or give --frame principal").into());
    }
    if !(0.0..=1.0).contains(&augmentation.noise_angstrom) {
        let problem = format!("is {}", augmentation.noise_angstrom);
        return Err(Error::input("--noise", problem, "give 0 to 1 Å").into());
    }
    Ok(TrainPlan {
        start,
        gradients,
        schedule,
        loss,
        augmentation,
        encoding: written.encoding,
        seed: args.seed,
        tokenizer,
        tokenizer_json,
        tokenizer_config,
        output: args.output,
        resume: args.resume,
        save_steps: args.save_every,
    })
}

/// How conformers are written.
struct WrittenForm {
    encoding: Encoding,
    /// How the corpus is read for it.
    reading: Reading,
    frame: Frame,
}

/// Returns how conformers are written: as asked for, else as the files beside the tokenizer or the checkpoint say.
fn written(args: &Args) -> Result<WrittenForm, Error> {
    let asked = args.blocks.asked(args.dialect);
    let known = if asked.is_empty() { encoding_of_files(args)? } else { None };
    let reading = known.map(|known| Reading::new(known).cutting(!Encoding::ALL.contains(&known)));
    let frame = match (args.frame, &args.init) {
        (Some(frame), _) => frame,
        (None, Some(init)) => {
            ModelFolder::around(init).recipe("/recipe/augmentation/frame")?.unwrap_or_default()
        }
        (None, None) => Frame::default(),
    };
    Ok(WrittenForm {
        encoding: known.unwrap_or_else(|| asked.over(Encoding::FIXED)),
        reading: reading.unwrap_or_else(|| args.blocks.reading()),
        frame,
    })
}

/// Returns the encoding that the files beside the tokenizer state, or those beside the checkpoint.
fn encoding_of_files(args: &Args) -> Result<Option<Encoding>, Error> {
    for path in [&args.tokenizer, &args.init].into_iter().flatten() {
        if let Some(encoding) = encoding_beside(path)? {
            return Ok(Some(encoding));
        }
    }
    Ok(None)
}

/// Returns the start of training: random weights or a checkpoint.
fn start(args: &Args, job: &Job) -> anyhow::Result<Start> {
    let ShapeArgs { hidden, layers, heads, kv_heads, head_dim, intermediate, context } = args.shape;
    if let Some(init) = &args.init {
        let mut base = InitCheckpoint::open(init, context)?;
        let known = args.new_tokens_of.as_ref().map(|known| Tokenizer::load_for(known, job));
        base.known = known.transpose()?.map(|(known, _)| known);
        return Ok(Start::Checkpoint(Box::new(base)));
    }
    let context = context.unwrap_or(4096);
    Ok(Start::Random(Shape {
        architecture: args.arch.context("--arch is missing")?,
        hidden,
        layers,
        heads,
        kv_heads,
        head_dim,
        intermediate,
        context,
    }))
}

/// Returns the loss weight of each kind of token.
fn loss(args: &ScheduleArgs) -> anyhow::Result<Loss> {
    let loss = Loss { prompt: args.prompt_weight, copy: args.copy_weight, fine: args.fine_weight };
    let fine = |weight: f32| weight.is_finite() && weight >= 0.0;
    if fine(loss.prompt) && fine(loss.fine) && fine(loss.copy) && loss.copy > 0.0 {
        return Ok(loss);
    }
    let flags = "--prompt-weight, --copy-weight, --fine-weight";
    let problem = "a loss weight is negative or not a number";
    Err(Error::input(flags, problem, "give 0 or more, and for COPY tokens more than 0").into())
}
