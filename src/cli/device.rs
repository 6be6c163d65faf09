//! `drift device`: shows what a device has, checks drift's kernels on it and times them.

use std::path::PathBuf;

use super::eval;
use super::generation::check_engine;
use super::invocation::Invocation;
use super::output::Output;
use super::values::{in_flags, not_stdout, one_of};
use crate::report::fields::Fields;
use crate::report::format::{bytes, number, or_dash, percent, seconds, thousands};
use drift_core::constraint::ProcessorKind;
use drift_core::{Error, Job};
use drift_engine::device::{DevicePlan, DeviceReport, DeviceSpeed, examine_device, unusable_device};
use drift_engine::generate::{SelfCheck, SelfChecking, Verdict};
use drift_engine::model::{Device, Synthetic};
use drift_engine::runs::plan::{EngineChoice, GeneratePlan, ModelChoice};

/// The name of the built-in model in `--model`.
const BUILT_IN: &str = "built-in";

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 3] = [
    "drift device",
    "drift device --device cuda:1 --engine drift candle --batch 256",
    "drift device --device cpu --model built-in",
];

/// The command line of `drift device`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The device to check: cuda:N, or cpu for the same figures of the CPU
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// Models to run: built-in, qwen3-0.6b, llama-380m [default: all]
    #[arg(long, hide_possible_values = true, value_name = "NAME", num_args = 1.., value_parser = [BUILT_IN, "qwen3-0.6b", "llama-380m"])]
    model: Vec<String>,
    /// Engines to time: drift, drift-without-graphs, drift-cublas, candle [default: all of a GPU; drift and candle on the CPU]
    #[arg(long, value_name = "ENGINE", hide_possible_values = true, num_args = 1.., value_parser = one_of(&EngineChoice::ALL, EngineChoice::name))]
    engine: Vec<EngineChoice>,
    /// Compute in f32, so that the texts can be compared with the CPU's
    #[arg(long)]
    f32: bool,
    /// Texts, which are written in one batch
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// The most tokens of a text
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    tokens: u32,
    /// Start no further run after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 240, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Write the report as JSON, which is the file to send; `-` prints it
    #[arg(short, long, value_name = "FILE", default_value = "drift-device.json")]
    output: PathBuf,
}

/// Examines the device, writes the report and shows it.
pub(super) fn run(args: &Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    invocation.files().writes("-o", not_stdout(Some(&args.output)))?.check()?;
    // A name that no device can have is a typing error, and gets no report.
    Device::elsewhere(&args.device)?;
    let report = match Device::parse(&args.device) {
        Ok(device) => examine_device(&plan(args, device, job, output)?, job)?,
        Err(problem) => unusable_device(&args.device, &problem),
    };
    match output.record(Some(&args.output), &report)? {
        true => output.document(&report)?,
        false => output.text(&render(args, &report, output))?,
    }
    match report.problem {
        Some(_) => {
            let remedy = "the report says what is there, what is missing, and how to install it";
            Err(Error::input(&args.device, "it cannot be used", remedy).into())
        }
        None => Ok(()),
    }
}

/// Returns what is run: on each model what `drift eval` runs, with the automaton and without a logit processor.
fn plan(args: &Args, device: Device, job: &Job, output: &Output) -> anyhow::Result<DevicePlan> {
    let of_name = |name: &str| match Synthetic::ALL.into_iter().find(|shape| shape.name() == name) {
        Some(shape) => ModelChoice::Synthetic(shape),
        None => ModelChoice::Embedded,
    };
    let all = [ModelChoice::Embedded].into_iter().chain(Synthetic::ALL.map(ModelChoice::Synthetic));
    let models = match args.model.as_slice() {
        [] => all.collect(),
        names => names.iter().map(|name| of_name(name)).collect(),
    };
    let is_cpu = device.name() == "cpu";
    let engines: Vec<EngineChoice> = match args.engine.as_slice() {
        [] if is_cpu => vec![EngineChoice::Drift, EngineChoice::Candle],
        [] => EngineChoice::ALL.to_vec(),
        engines => engines.to_vec(),
    };
    engines.iter().try_for_each(|engine| check_engine(*engine, &device))?;
    let evidence = not_stdout(Some(&args.output)).map(|file| file.with_extension("self-check"));
    let numbers = [("--batch", args.batch), ("--max-new-tokens", args.tokens)];
    let mut command = vec!["eval".to_owned(), "--preset=qwen3".to_owned()];
    command.extend(numbers.map(|(option, number)| format!("{option}={number}")));
    command.extend(args.f32.then(|| "--dtype=f32".to_owned()));
    let mut run = eval::plan(&Invocation::parse(command)?, |_| Ok(device.clone()), job, output)?;
    run.thresholds = Vec::new();
    run.generate = GeneratePlan {
        models,
        processors: vec![ProcessorKind::Automaton, ProcessorKind::None],
        placeholders: Vec::new(),
        // No stored verdicts: the self-check runs again.
        self_check: SelfChecking { evidence, ..SelfChecking::default() },
        given_up: None,
        ..run.generate
    };
    Ok(DevicePlan { run, engines, most_seconds: f64::from(args.seconds) })
}

/// Returns the device, its libraries, and a line for each run.
fn render(args: &Args, report: &DeviceReport, output: &Output) -> String {
    let mut lines = Vec::new();
    let identity = report.runs.iter().find_map(|run| run.self_check.as_ref()?.device.as_ref());
    let known = identity.map(|known| format!(": {}; {}; kernels {}", known.gpu, known.driver, known.kernels));
    let free = report.free_bytes.map(|free| format!(", {} free", bytes(free)));
    lines.push(format!("{}{}{}", report.device, known.unwrap_or_default(), free.unwrap_or_default()));
    if report.device != "cpu" {
        for library in &report.libraries {
            let place = library.folder.as_deref().unwrap_or("missing");
            lines.push(format!("  {:<26}{place}", library.name));
        }
        if !report.has_cuda {
            lines.push(
                "  this drift was built without CUDA; with it: cargo build --release --features cuda"
                    .to_owned(),
            );
        }
        lines.extend(report.install.as_ref().map(|line| format!("  to install what is missing: {line}")));
    }
    let problem = report.problem.as_deref().map(in_flags);
    lines.extend(problem.into_iter().chain(report.advice.iter().cloned()));
    if !report.runs.is_empty() {
        let table = Fields::new("what each engine does")
            .text("model", |run: &DeviceSpeed| run.model.clone())
            .code("engine", |run| run.engine.name().to_owned())
            .code("logit processor", |run| or_dash(run.lp, |lp| lp.name().to_owned()))
            .text("self-check", |run| or_dash(run.self_check.as_ref(), verdict))
            .number("tokens/s", |run| or_dash(run.lp, |_| number(run.tokens_per_second)))
            .number("steps by\nkernels", |run| {
                format!("{} of {}", thousands(run.kernel_steps), thousands(run.steps))
            })
            .number("start", |run| seconds(run.start_seconds))
            .number("memory,\nGB/s", |run| or_dash(run.bytes_per_second, |rate| number(rate / 1e9)))
            .number("share of the\nleast time", |run| or_dash(run.floor_share, percent))
            .table(&report.runs);
        lines.push(table.render(output.terminal()));
    }
    if let Some(file) = not_stdout(Some(&args.output)) {
        lines.push(format!("{}: the file to keep, or to send ({})", file.display(), seconds(report.seconds)));
    }
    lines.join("\n")
}

fn verdict(check: &SelfCheck) -> String {
    match check.verdict {
        Verdict::Passed => format!("passed, {}", seconds(check.seconds)),
        Verdict::Differs => "differs".to_owned(),
        Verdict::Failed => "failed".to_owned(),
    }
}
