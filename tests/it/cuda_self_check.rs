//! The self-check of a device, on the emulated one: what is sound passes and its verdict is kept; with a planted fault, a wrong kernel, or
//! a call that fails, texts are those of candle's operations, and a reason is given.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use candle_core::Tensor;
use drift::constraint::{LogitProcessor, Placeholder, ProcessorKind};
use drift::encoding::Encoding;
use drift::error::Error;
use drift::generate::{
    Engine, GenerationResult, Options, Prompt, Sampling, SelfCheck, SelfChecking, Verdict,
};
use drift::job::Job;
use drift::model::cuda::{Gpu, GpuIdentity, KernelShape, Product};
use drift::model::{Config, KernelSteps};
use drift::tokenizer::Tokenizer;
use rayon::prelude::*;

use crate::cuda_checks::FAULTY;
use crate::cuda_emulator::{Checks, Emulator, argument};
use crate::cuda_generate::{EmulatedGpu, Planted, config, engine, processor, prompts_of, vocab};
use crate::support::{Folder, sized};

/// What happens on a device.
#[derive(Default)]
struct Told {
    /// How often each call was used.
    uses: Mutex<BTreeMap<String, usize>>,
    /// The call that fails, and at which use; whether all that follow fail, too.
    fails: Option<(String, usize, bool)>,
    has_failed: Mutex<bool>,
    identity: Option<GpuIdentity>,
}

/// The emulator, with calls that are counted and may fail.
struct Watched {
    inner: EmulatedGpu,
    told: Arc<Told>,
}

impl Told {
    fn failing(call: &str, number: usize, for_good: bool) -> Self {
        Told { fails: Some((call.to_owned(), number, for_good)), ..Told::default() }
    }

    fn call(&self, name: &str) -> drift::Result<()> {
        let mut uses = self.uses.lock().unwrap();
        let count = uses.entry(name.to_owned()).or_default();
        *count += 1;
        let mut has_failed = self.has_failed.lock().unwrap();
        let fails = self.fails.as_ref().is_some_and(|(call, number, for_good)| {
            (call == name && *number == *count) || (*has_failed && *for_good)
        });
        *has_failed |= fails;
        match fails {
            true => Err(Error::input("cuda:0", format!("{name} failed: CUDA_ERROR_UNKNOWN"), "")),
            false => Ok(()),
        }
    }
}

impl Gpu for Watched {
    fn identity(&self) -> Option<GpuIdentity> {
        self.told.identity.clone()
    }

    fn allocate(&mut self, bytes: usize) -> drift::Result<u64> {
        self.told.call("allocate")?;
        self.inner.allocate(bytes)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> drift::Result<()> {
        self.told.call("write")?;
        self.inner.write(address, bytes)
    }

    fn read(&mut self, address: u64, bytes: usize) -> drift::Result<Vec<u8>> {
        self.told.call("read")?;
        self.inner.read(address, bytes)
    }

    fn address(&mut self, tensor: &Tensor) -> drift::Result<u64> {
        self.told.call("address")?;
        self.inner.address(tensor)
    }

    fn refresh(&mut self, tensor: &Tensor, written: Range<usize>) -> drift::Result<()> {
        self.told.call("refresh")?;
        self.inner.refresh(tensor, written)
    }

    fn launch(
        &mut self,
        kernel: &'static str,
        grid: [u32; 3],
        threads: u32,
        arguments: &[Vec<u8>],
    ) -> drift::Result<()> {
        self.told.call(&format!("launch {kernel}"))?;
        self.inner.launch(kernel, grid, threads, arguments)
    }

    fn product(&mut self, product: &Product) -> drift::Result<()> {
        self.told.call("product")?;
        self.inner.product(product)
    }

    fn record(&mut self) -> drift::Result<bool> {
        self.told.call("record")?;
        self.inner.record()
    }

    fn recorded(&mut self) -> drift::Result<usize> {
        self.told.call("recorded")?;
        self.inner.recorded()
    }

    fn replay(&mut self, recording: usize) -> drift::Result<()> {
        self.told.call("replay")?;
        self.inner.replay(recording)
    }
}

/// A small model with what it is to write.
struct Case {
    config: Config,
    prompts: Vec<Prompt>,
    options: Options,
    expected: GenerationResult,
}

impl Case {
    fn new(kind: ProcessorKind, tokenizer: &str, head_dim: usize, batch: usize, most: usize) -> Self {
        let vocab = if kind == ProcessorKind::None { 300 } else { vocab(tokenizer) };
        let config = config(tokenizer == "qwen-like", head_dim, vocab);
        let prompts = prompts_of(&processor(kind, tokenizer), most, [2, 7, 12]);
        Case::of(config, prompts, batch)
    }

    fn of(config: Config, prompts: Vec<Prompt>, batch: usize) -> Self {
        let options = Options { batch, sampling: Sampling::QWEN3, seed: 3, ..Options::default() };
        let expected = engine(&config).generate(&prompts, &options, &Job::default()).unwrap();
        assert_eq!(expected.self_check, None);
        Case { config, prompts, options, expected }
    }

    /// The run on a device; texts are those of candle's operations, whatever it does.
    fn run(
        &self,
        start: &(dyn Fn() -> drift::Result<Box<dyn Gpu>> + Sync),
        check: &SelfChecking,
    ) -> (GenerationResult, Engine) {
        let mut engine = engine(&self.config);
        let options = Options { self_check: check.clone(), ..self.options.clone() };
        let how = (&*self.prompts, &options);
        let found = engine.generate_on(start, how, KernelSteps::default(), &Job::default()).unwrap();
        assert_eq!(found.samples, self.expected.samples);
        (found, engine)
    }

    /// The run on a device that has a fault: a reason is given, and nothing is the device's.
    fn falls_back(
        &self,
        start: &(dyn Fn() -> drift::Result<Box<dyn Gpu>> + Sync),
        verdict: Verdict,
        what: &str,
    ) -> SelfCheck {
        let (found, engine) = self.run(start, &SelfChecking::default());
        let check = found.self_check.unwrap();
        assert_eq!(check.verdict, verdict, "{what}: {check:?}");
        assert_eq!((found.counts, check.insisted), (self.expected.counts, false), "{what}");
        assert!(engine.note().is_some() && check.problem.is_some(), "{what}");
        check
    }
}

/// The emulator of a case.
fn emulated(config: &Config, can_record: bool) -> EmulatedGpu {
    let emulator = Emulator::start(KernelShape::from_config(config, false).unwrap());
    EmulatedGpu::of(emulator, can_record)
}

fn identity(kernels: &str) -> GpuIdentity {
    let [gpu, driver] = ["an emulator, 9.0", "CUDA 13.0"].map(str::to_owned);
    GpuIdentity { gpu, driver, kernels: kernels.to_owned() }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn what_is_sound_passes_and_is_checked_once() {
    let template = {
        let placeholder = Placeholder::new("0.0000,0.0000,0.0000").unwrap();
        let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
        let processor =
            LogitProcessor::new(ProcessorKind::Allowlist, tokenizer, Encoding::FIXED, Some(&placeholder), 7);
        let config = config(true, 64, vocab("qwen-like"));
        Case::of(config, prompts_of(&processor.unwrap(), 40, [2, 7, 300]), 16)
    };
    let (batch, most) = sized((16, 60), (4, 20));
    let cases = [
        ("automaton, few ids", Case::new(ProcessorKind::Automaton, "qwen-like", 48, batch, most)),
        ("automaton, many ids", Case::new(ProcessorKind::Automaton, "llama-like", 128, 4, 24)),
        ("none", Case::new(ProcessorKind::None, "qwen-like", 64, 3, 24)),
        ("draws under masks", template),
    ];
    // The others take a minute of emulation.
    for (name, case) in cases.into_iter().take(sized(4, 1)) {
        let folder = Folder::new();
        let verdicts = folder.path().join("verdicts");
        let checking = SelfChecking { verdicts: Some(verdicts.clone()), ..SelfChecking::default() };
        let told = |kernels: &str| Told { identity: Some(identity(kernels)), ..Told::default() };
        let begun = |told: Told, checking: &SelfChecking| {
            let told = Arc::new(told);
            let start = || -> drift::Result<Box<dyn Gpu>> {
                Ok(Box::new(Watched { inner: emulated(&case.config, true), told: told.clone() }))
            };
            let (found, engine) = case.run(&start, checking);
            assert_eq!(engine.note(), None, "{name}");
            let uses = told.uses.lock().unwrap().clone();
            (found.self_check, uses)
        };
        let checked = |kernels: &str| {
            let (check, uses) = begun(told(kernels), &checking);
            let check = check.unwrap();
            assert_eq!((check.verdict, &check.problem), (Verdict::Passed, &None), "{name}");
            (check, uses)
        };
        let (first, with_check) = checked("a");
        eprintln!(
            "{name}: {} rows, {} choices, {} drawn; differences of {:.1e} at most, {:.1e} by mean, {:.1e} allowed; {:.2} s",
            first.rows,
            first.choices,
            first.drawn,
            first.largest_difference,
            first.mean_difference,
            first.bound,
            first.seconds
        );
        assert!(
            !first.kept && first.choices > 8 * first.rows && first.drawn > 0 && first.rows >= 3,
            "{first:?}"
        );
        assert!(first.largest_difference < first.bound / 4.0, "{first:?}");
        // A kept verdict uses the device as often as a run without a check, and a check uses it more often.
        let (again, with_kept) = checked("a");
        assert_eq!(SelfCheck { kept: true, seconds: again.seconds, ..first.clone() }, again);
        let (none, without_check) = begun(told("a"), &SelfChecking::OFF);
        assert_eq!(none, None);
        assert_eq!(with_kept, without_check);
        let calls = |uses: &BTreeMap<String, usize>| uses.values().sum::<usize>();
        assert!(calls(&with_check) > calls(&without_check), "{with_check:?} {without_check:?}");
        if name != "none" {
            continue;
        }
        // Of other kernels, and where the file is not whole, it is asked anew.
        assert!(!checked("b").0.kept);
        for file in std::fs::read_dir(&verdicts).unwrap() {
            let path = file.unwrap().path();
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        }
        assert!(!checked("a").0.kept);
        assert!(checked("a").0.kept);
    }
}

/// Each kind of fault that `faults.cu` has, behind a launch of a kernel of the self-check; on a device that tells them.
#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn planted_faults_end_in_texts_of_candle() {
    let case = Case::new(ProcessorKind::Automaton, "qwen-like", 64, 3, 16);
    let shape = KernelShape::from_config(&case.config, false).unwrap();
    let names: Vec<String> = FAULTY.iter().map(|(name, ..)| format!("each({name})")).collect();
    let own = "product_16 product_32 embed add_norm last_norm gated gather head append_all attend enter choose choose_any pack";
    let own: Vec<String> = own.split(' ').map(|name| format!("each({name})")).collect();
    let kernels = format!("-DKERNELS_OF_PROGRAM(each)={} {}", own.join(" "), names.join(" "));
    let options = [&shape.options()[..], &["-Wno-unused".to_owned(), kernels]].concat();
    let source = format!("{}#line 1 \"faults.cu\"\n{}", KernelShape::source(), crate::cuda_checks::FAULTS);
    macro_rules! planted {
        ($($at:literal)*) => {
            [$(|emulator: &mut Emulator| plant(emulator, $at)),*]
        };
    }
    type Plant = fn(&mut Emulator) -> Result<(), String>;
    let all: [Plant; 16] = planted!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let behind = ["attend", "choose", "add_norm", "pack"];
    let done: Vec<()> = (0..all.len())
        .into_par_iter()
        .map(|at| {
            let (name, .., said) = FAULTY[at];
            let start = || -> drift::Result<Box<dyn Gpu>> {
                let emulator = Emulator::of(&source, &options, Checks::All);
                let planted =
                    Planted { behind: behind[at % behind.len()], use_number: 2 + at % 5, what: all[at] };
                Ok(Box::new(EmulatedGpu::of(emulator, at % 2 == 0).planting(planted)))
            };
            let check = case.falls_back(&start, Verdict::Failed, name);
            let problem = check.problem.unwrap();
            assert!(said.split(" … ").all(|part| problem.contains(part)), "{name}: {problem}");
        })
        .collect();
    assert_eq!(done.len(), 16);
}

/// Launches a kernel with a fault on memory of its own.
fn plant(emulator: &mut Emulator, at: usize) -> Result<(), String> {
    const COUNT: usize = 256;
    let (name, blocks, threads, _) = FAULTY[at];
    let data = emulator.allocate(4 * COUNT);
    emulator.write(data, &[0u32; COUNT - 32]);
    let arguments = |is_sound: u32| [argument(data), argument(COUNT as u32), argument(is_sound)];
    emulator.try_launch("strays", [1, 1, 1], 64, &arguments(1))?;
    emulator.try_launch(name, [blocks, 1, 1], threads, &arguments(0))
}

/// What is wrong in the text of kernels: in which file, what stands there, and what is written in its place. None of it fails; what comes
/// out is wrong.
const WRONG: [(&str, &str, &str); 26] = [
    (
        "product.cu",
        "const uint4 *tile = rows + i % HALF_BLOCKS * TILES * 2 * LANES;",
        "const uint4 *tile = rows + i % (HALF_BLOCKS / 2) * TILES * 2 * LANES;",
    ),
    (
        "product.cu",
        "out + (u64)row * of.columns + i % 2 * 8)",
        "out + (u64)row * of.columns + (1 - i % 2) * 8)",
    ),
    (
        "layer.cu",
        "block_sum(squares) / columns + epsilon",
        "block_sum(squares) / columns + 2.0f * epsilon + 1e-3f",
    ),
    ("layer.cu", "times(x, scale, by)", "times(x, scale, x)"),
    ("layer.cu", "sum.x[j] = rounded(sum.x[j] + more.x[j])", "sum.x[j] = rounded(more.x[j])"),
    ("layer.cu", "(1.0f + expf(-x.a.x[j])) * x.b.x[j]", "(1.0f + expf(x.a.x[j])) * x.b.x[j]"),
    (
        "layer.cu",
        "u64 row = blockIdx.x, slot = lasts[row];",
        "u64 row = blockIdx.x, slot = lasts[row] == NONE ? NONE : row;",
    ),
    (
        "layer.cu",
        "if (lane == 0) logits[row * stride + at] = sum;",
        "if (lane == 0 && at != 3) logits[row * stride + at] = sum;",
    ),
    ("append.cu", "layer.cosines + at * HALF,", "layer.cosines + (at + 1) * HALF,"),
    (
        "append.cu",
        "a[j] = (x * cosine[j] - y * sine[j]) * scale;",
        "a[j] = (x * cosine[j] + y * sine[j]) * scale;",
    ),
    (
        "append.cu",
        "write_same(layer.values + place + i, narrowed(x[j]));",
        "write_same(layer.values + place + i, narrowed(y[j]));",
    ),
    ("append.cu", "warp_sum(squares) / HEAD_DIM + epsilon", "warp_sum(squares) / HALF + epsilon"),
    ("attend.cu", "length = at + 1,", "length = at > 8 ? at : at + 1,"),
    ("attend.cu", "u32 row = owners[slot];\n", "u32 row = owners[slot] == NONE ? NONE : 0;\n"),
    ("attend.cu", "float before = expf(seen.most[query] - top);", "float before = 1.0f;"),
    ("attend.cu", "is_there ? expf(scores[query] - top) : 0.0f", "expf(scores[query] - top)"),
    ("attend.cu", "scale = 1.0f / sqrtf((float)HEAD_DIM)", "scale = 1.0f / HEAD_DIM"),
    ("attend.cu", "all += weight * shared.sum[warp][query];", "all += shared.sum[warp][query];"),
    ("noise.cu", "start[14] = (u32)stream;", "start[14] = (u32)stream + 1;"),
    ("sample.cu", "kept.floor = kept.best + sampling.log_min_p;", "kept.floor = kept.best - 0.05;"),
    (
        "sample.cu",
        "standing.drawn = (u32)best & ((1u << SLOT_BITS) - 1);",
        "standing.drawn = (u32)best & ((1u << SLOT_BITS) - 2);",
    ),
    ("automaton.cu", "row.place = target;", "row.place = target > 2 ? target - 1 : target;"),
    (
        "automaton.cu",
        "if (row.count < row.most) return false;",
        "if (row.count + 1 < row.most) return false;",
    ),
    ("automaton.cu", "| FORCED)) return;", ")) return;"),
    ("pack.cu", "atomicAdd(batch.work + 2, position + count);", "atomicAdd(batch.work + 2, position);"),
    (
        "pack.cu",
        "Run run = {first, count, row.base + row.read, 0};",
        "Run run = {first, count, row.base + row.read + (row.read > 20), 0};",
    ),
];

#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn kernels_that_compute_something_else_end_in_texts_of_candle() {
    // As long as texts may be here, attention goes over positions more than once.
    let case = Case::new(ProcessorKind::Automaton, "qwen-like", 64, 4, 300);
    let shape = KernelShape::from_config(&case.config, false).unwrap();
    let found: Vec<String> = WRONG
        .into_par_iter()
        .map(|(file, from, to)| {
            let source = KernelShape::source();
            let begin = source.find(&format!("#line 1 \"{file}\"")).unwrap();
            assert_eq!(source[begin..].matches(from).count().min(1), 1, "{file}: {from}");
            let source = format!("{}{}", &source[..begin], source[begin..].replacen(from, to, 1));
            let options = [&shape.options()[..], &["-Wno-unused".to_owned()]].concat();
            let start = || -> drift::Result<Box<dyn Gpu>> {
                Ok(Box::new(EmulatedGpu::of(Emulator::of(&source, &options, Checks::None), true)))
            };
            let (found, engine) = case.run(&start, &SelfChecking::default());
            let check = found.self_check.unwrap();
            assert_ne!(check.verdict, Verdict::Passed, "{file}: {from}");
            assert!(engine.note().is_some() && found.counts == case.expected.counts, "{file}: {from}");
            format!("{file}, {to:.50}: {}", check.problem.unwrap())
        })
        .collect();
    eprintln!("{}", found.join("\n"));
}

#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn every_call_that_fails_ends_in_texts_of_candle() {
    // A prompt that candle reads, and one that does not fit into a step.
    let config = config(true, 64, vocab("qwen-like"));
    let case =
        Case::of(config, prompts_of(&processor(ProcessorKind::Automaton, "qwen-like"), 12, [2, 260, 12]), 2);
    let run = |told: &Arc<Told>, check: &SelfChecking| {
        let start = || -> drift::Result<Box<dyn Gpu>> {
            told.call("start")?;
            Ok(Box::new(Watched { inner: emulated(&case.config, true), told: told.clone() }))
        };
        let (found, engine) = case.run(&start, check);
        (found, engine.note().map(str::to_owned))
    };
    for check in [SelfChecking::default(), SelfChecking::OFF] {
        let whole = Arc::new(Told::default());
        let (found, note) = run(&whole, &check);
        assert!(note.is_none() && found.counts.kernel_steps == found.counts.decode_steps);
        let uses = whole.uses.lock().unwrap().clone();
        assert!(uses.len() >= 16, "{uses:?}");
        let mut all: Vec<(String, usize, bool)> = Vec::new();
        for (call, count) in uses {
            for (at, number) in [1, count.div_ceil(2), count].into_iter().enumerate() {
                all.push((call.clone(), number, at % 2 == 1));
            }
        }
        all.sort();
        all.dedup();
        let count = all.len();
        let failed: usize = all
            .into_par_iter()
            .map(|(call, number, for_good)| {
                let told = Arc::new(Told::failing(&call, number, for_good));
                let (found, note) = run(&told, &check);
                // A run may end before the call comes, where another one was recorded.
                if !*told.has_failed.lock().unwrap() {
                    return 0;
                }
                let note = note.unwrap_or_else(|| panic!("{call}, {number}: no reason"));
                assert!(note.contains(&format!("{call} failed")), "{call}, {number}: {note}");
                let checked = found.self_check.is_none_or(|check| check.verdict != Verdict::Passed);
                assert!(checked || found.counts.kernel_steps <= found.counts.decode_steps);
                1
            })
            .sum();
        eprintln!(
            "{failed} of {count} failures with a reason, texts of candle; checked: {}",
            check.is_wanted
        );
        assert!(failed * 10 >= count * 9);
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn who_insists_has_the_kernels_or_an_error_and_evidence_is_kept() {
    let case = Case::new(ProcessorKind::Automaton, "qwen-like", 64, 3, 24);
    let shape = KernelShape::from_config(&case.config, false).unwrap();
    let source = KernelShape::source().replacen("position + count);", "position);", 1);
    let options = [&shape.options()[..], &["-Wno-unused".to_owned()]].concat();
    // A wrong counter changes no text.
    let start = || -> drift::Result<Box<dyn Gpu>> {
        Ok(Box::new(EmulatedGpu::of(Emulator::of(&source, &options, Checks::None), true)))
    };
    let folder = Folder::new();
    let evidence = folder.path().join("evidence");
    let insisting =
        SelfChecking { insists: true, evidence: Some(evidence.clone()), ..SelfChecking::default() };
    let (found, engine) = case.run(&start, &insisting);
    let check = found.self_check.unwrap();
    assert_eq!((check.verdict, check.insisted, engine.note()), (Verdict::Differs, true, None));
    assert_eq!(found.counts.kernel_steps, found.counts.decode_steps);
    let bytes: u64 =
        std::fs::read_dir(&evidence).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes > 10_000 && bytes < 10 << 20, "{bytes}");
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(evidence.join("check.json")).unwrap()).unwrap();
    assert_eq!(kept["prompts"].as_array().unwrap().len(), 3);
    assert!(kept["check"]["problem"].as_str().unwrap().contains("counted"), "{kept}");
    // What fails is an error then.
    let broken = || -> drift::Result<Box<dyn Gpu>> { Err(Error::input("NVRTC", "is not there", "")) };
    let options = Options { self_check: insisting, ..case.options.clone() };
    let mut drift = crate::cuda_generate::engine(&case.config);
    let error = drift
        .generate_on(&broken, (&case.prompts, &options), KernelSteps::default(), &Job::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("NVRTC: is not there") && error.contains("insists on"), "{error}");
}
