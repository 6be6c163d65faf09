//! Examines a device: the self-check and the speed of each engine, on models of known shapes.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::eval::evaluate;
use crate::eval::plan::EvalPlan;
use crate::generate::SelfCheck;
use crate::model::cuda::{CudaLibrary, cuda_libraries, install_line};
use crate::model::{Device, KernelSteps};
use crate::runs::TextStore;
use crate::runs::environment::here;
use crate::runs::plan::{EngineChoice, GeneratePlan, ModelChoice};
use drift_core::constraint::ProcessorKind;
use drift_core::job::Provenance;
use drift_core::{Error, Job, Result};
use drift_data::corpus::EmbeddedConformers;
use drift_data::generation::Environment;
use drift_data::prompts::Molecules;

/// The schema of [`DeviceReport`].
const SCHEMA: &str = "drift.device/1";

/// What to run on a device.
#[derive(Debug, Clone)]
pub struct DevicePlan {
    /// The plan of each run except for its model and engine; the device is the same for all.
    pub run: EvalPlan,
    /// The engines, run one after the other for each model.
    pub engines: Vec<EngineChoice>,
    /// No run starts after this many seconds.
    pub most_seconds: f64,
}

/// The properties of a device, and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// `drift.device/1`
    pub schema: String,
    /// The program that made the report.
    pub provenance: Provenance,
    /// The date and the machine.
    pub environment: Environment,
    /// The device's name, such as `cuda:0`.
    pub device: String,
    /// The reason why it cannot be used; `None` if it can.
    pub problem: Option<String>,
    /// Whether this drift was built with CUDA.
    pub has_cuda: bool,
    /// The libraries that drift needs for CUDA.
    pub libraries: Vec<CudaLibrary>,
    /// The commands that install missing libraries.
    pub install: Option<String>,
    /// The free memory of the device in bytes.
    pub free_bytes: Option<u64>,
    /// One entry for each model, engine and logit processor.
    pub runs: Vec<DeviceSpeed>,
    /// The total time in seconds.
    pub seconds: f64,
    /// The most important findings, in words.
    pub advice: Vec<String>,
}

/// The result of a run on a device; by default of one that did nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceSpeed {
    /// The model's name.
    pub model: String,
    /// The requested engine.
    pub engine: EngineChoice,
    /// The logit processor; `None` if the run failed.
    pub lp: Option<ProcessorKind>,
    /// The reason why it failed.
    pub problem: Option<String>,
    /// Tokens per second of writing. The start and the building of the molecules' automata on the host are not included.
    pub tokens_per_second: f64,
    /// The number of decode steps.
    pub steps: u64,
    /// The number of these steps that drift's kernels did.
    pub kernel_steps: u64,
    /// The seconds before the first step, for compiling and checking kernels and allocating memory.
    pub start_seconds: f64,
    /// The device's memory bandwidth in bytes per second.
    pub bytes_per_second: Option<f64>,
    /// The ratio of the least possible time, given by the memory bandwidth, to the time taken.
    pub floor_share: Option<f64>,
    /// The result of the self-check, if there was one.
    pub self_check: Option<SelfCheck>,
}

impl DeviceReport {
    /// Returns a report on the device before any run.
    fn of_machine(device: &str) -> Self {
        let libraries = cuda_libraries();
        DeviceReport {
            schema: SCHEMA.to_owned(),
            provenance: Provenance::from_inputs(Vec::new()),
            environment: here(),
            device: device.to_owned(),
            problem: None,
            has_cuda: cfg!(feature = "cuda"),
            install: install_line(&libraries).filter(|_| device != "cpu"),
            libraries,
            free_bytes: None,
            runs: Vec::new(),
            seconds: 0.0,
            advice: Vec::new(),
        }
    }
}

/// Returns the report on a device that cannot be used: its libraries and the problem.
pub fn unusable_device(device: &str, problem: &Error) -> DeviceReport {
    DeviceReport { problem: Some(problem.to_string()), ..DeviceReport::of_machine(device) }
}

/// Runs each engine on each model of the plan and reports the results. A failed run is part of the report.
///
/// # Errors
/// If the job was cancelled, or the embedded corpus cannot be read.
pub fn examine_device(plan: &DevicePlan, job: &Job) -> Result<DeviceReport> {
    let began = Instant::now();
    let device = &plan.run.generate.device;
    let mut report =
        DeviceReport { free_bytes: device.free_bytes(), ..DeviceReport::of_machine(device.name()) };
    'all: for model in &plan.run.generate.models {
        let corpus = EmbeddedConformers { corpus: model.corpus(), ..EmbeddedConformers::default() };
        let molecules = Molecules::of_embedded(corpus, None, Some(plan.run.generate.batch), job)?;
        for engine in &plan.engines {
            job.check()?;
            if began.elapsed().as_secs_f64() > plan.most_seconds {
                report.advice.push(format!("after {} seconds no further run was started", plan.most_seconds));
                break 'all;
            }
            match speeds(plan, (model, *engine), &molecules, job) {
                Ok((runs, advice)) => {
                    report.runs.extend(runs);
                    report.advice.extend(advice);
                }
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    report.runs.push(failed(model, *engine, &error));
                    report.advice.push(format!("{}, {}: {error}", name_of(model), engine.name()));
                    if matches!(error, Error::DeviceLost { .. }) {
                        break 'all;
                    }
                }
            }
        }
    }
    report.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

/// Returns the runs of a model with an engine, and the advice about the device.
fn speeds(
    plan: &DevicePlan,
    (model, engine): (&ModelChoice, EngineChoice),
    molecules: &Molecules,
    job: &Job,
) -> Result<(Vec<DeviceSpeed>, Vec<String>)> {
    let device = with_engine(plan.run.generate.device.clone(), engine);
    let own = &plan.run;
    let generate = GeneratePlan { models: vec![model.clone()], engine, device, ..own.generate.clone() };
    let run = EvalPlan { generate, ..own.clone() };
    let mut kept = TextStore::new(run.generate.inputs(molecules), None, None)?;
    let evaluation = evaluate(&run, molecules, &mut kept, job)?;
    if evaluation.report.interrupted {
        return Err(Error::Interrupted);
    }
    let speed = |run: crate::eval::record::RunReport| DeviceSpeed {
        model: run.model,
        engine,
        lp: Some(run.lp),
        problem: None,
        tokens_per_second: run.cost.generated_tokens as f64
            / run.cost.seconds.writing().max(f64::MIN_POSITIVE),
        steps: run.cost.decode_steps,
        kernel_steps: run.cost.kernel_steps,
        start_seconds: run.cost.seconds.start,
        bytes_per_second: run.cost.floor.and_then(|floor| floor.bytes_per_second),
        floor_share: run.cost.floor.and_then(|floor| floor.floor_share),
        self_check: run.self_check,
    };
    let of_the_device = |line: &String| line.contains("GPU");
    let advice = evaluation.report.advice.into_iter().filter(of_the_device).collect();
    Ok((evaluation.report.runs.into_iter().map(speed).collect(), advice))
}

/// Returns a device configured for an engine.
pub fn with_engine(device: Device, engine: EngineChoice) -> Device {
    let usual = KernelSteps::default();
    match engine {
        EngineChoice::DriftWithoutGraphs => device.with_steps(usual.without_graphs()),
        EngineChoice::DriftCublas => device.with_steps(usual.with_cublas()),
        EngineChoice::Candle => device.without_kernels(),
        EngineChoice::Drift => device,
    }
}

fn name_of(model: &ModelChoice) -> String {
    match model {
        ModelChoice::Embedded => "the built-in model".to_owned(),
        ModelChoice::Folder(folder) => drift_core::checkpoint::folder_name(folder),
        ModelChoice::Synthetic(shape) => shape.name().to_owned(),
    }
}

fn failed(model: &ModelChoice, engine: EngineChoice, error: &Error) -> DeviceSpeed {
    DeviceSpeed { model: name_of(model), engine, problem: Some(error.to_string()), ..DeviceSpeed::default() }
}
