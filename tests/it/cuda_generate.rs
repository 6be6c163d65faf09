//! Whole generations with the steps on a device, as `drift eval` runs them on a GPU, beside the CPU: admissions, shared
//! prompts, recordings, ends and counts. The device is the emulator.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use candle_core::{Tensor, TensorId};
use drift::constraint::{LogitProcessor, Placeholder, ProcessorKind};
use drift::encoding::Encoding;
use drift::error::Error;
use drift::generate::{Engine, GenerationResult, Options, Prompt, Resampling, Sampling, SelfChecking};
use drift::job::Job;
use drift::model::cuda::{Gpu, KernelShape, Product};
use drift::model::{Config, Decoder, Device, KernelSteps, Room};
use drift::tokenizer::Tokenizer;
use serde_json::json;

use crate::automaton::{EOS, SKELETONS};
use crate::cuda_emulator::{Emulator, MIXED, ORDERS};
use crate::encodings::with_added;
use crate::support::{Folder, sized};

/// The emulator as the host of a GPU asks it. Tensors of candle are copied to it, since it is another program.
pub(crate) struct EmulatedGpu {
    pub(crate) emulator: Emulator,
    tensors: HashMap<TensorId, u64>,
    /// What lies where for good, so that products need not fetch it.
    known: HashMap<u64, Vec<f32>>,
    recordings: Vec<Vec<Command>>,
    recording: Option<Vec<Command>>,
    can_record: bool,
    planted: Option<(Planted, usize)>,
}

/// What a device does behind a launch, beside what it was told.
#[derive(Clone, Copy)]
pub(crate) struct Planted {
    pub(crate) behind: &'static str,
    pub(crate) use_number: usize,
    pub(crate) what: fn(&mut Emulator) -> Result<(), String>,
}

#[derive(Clone)]
enum Command {
    Launch(&'static str, [u32; 3], u32, Vec<Vec<u8>>),
    Product(Product),
}

/// How a run is done.
#[derive(Clone, Copy, Default)]
pub(crate) struct How {
    /// Products of few rows by kernels; else by a library.
    pub(crate) own_products: bool,
    pub(crate) can_record: bool,
    pub(crate) order: u32,
    pub(crate) is_checked: bool,
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

impl EmulatedGpu {
    fn start(config: &Config, how: How) -> Self {
        let shape = KernelShape::from_config(config, false).unwrap();
        let mut emulator = match how.is_checked {
            true => Emulator::checked(shape),
            false => Emulator::start(shape),
        };
        emulator.order(how.order);
        EmulatedGpu::of(emulator, how.can_record)
    }

    /// One of other kernels.
    pub(crate) fn of(emulator: Emulator, can_record: bool) -> Self {
        let (tensors, known, recordings) = Default::default();
        EmulatedGpu { emulator, tensors, known, recordings, recording: None, can_record, planted: None }
    }

    /// The same that does something else behind the `use_number`-th launch of a kernel, counted from 0.
    pub(crate) fn planting(mut self, planted: Planted) -> Self {
        self.planted = Some((planted, 0));
        self
    }

    fn run(&mut self, command: Command) -> drift::Result<()> {
        match command {
            Command::Launch(kernel, grid, threads, arguments) => {
                let grid = grid.map(|size| size as usize);
                // As a driver says it of a kernel that failed; behind it nothing succeeds.
                let failed = |why: String| Error::input("cuda:0", format!("`{kernel}` failed: {why}"), "");
                self.emulator.try_launch(kernel, grid, threads, &arguments).map_err(failed)?;
                if let Some((planted, seen)) = &mut self.planted
                    && planted.behind == kernel
                {
                    *seen += 1;
                    if *seen == planted.use_number + 1 {
                        return (planted.what)(&mut self.emulator).map_err(failed);
                    }
                }
                Ok(())
            }
            Command::Product(product) => {
                self.multiply(&product);
                Ok(())
            }
        }
    }

    fn take(&mut self, command: Command) -> drift::Result<()> {
        match &mut self.recording {
            Some(recording) => {
                recording.push(command);
                Ok(())
            }
            None => self.run(command),
        }
    }

    /// As a library: `[rows, terms]` by `[terms, columns]`, or by `[columns, terms]`.
    fn multiply(&mut self, product: &Product) {
        let Product { rows, terms, columns, .. } = *product;
        let x = self.emulator.read::<f32>(product.x, rows * terms);
        if !self.known.contains_key(&product.weight) {
            let weight = self.emulator.read::<f32>(product.weight, terms * columns);
            self.known.insert(product.weight, weight);
        }
        let weight = &self.known[&product.weight];
        let at = |column: usize, term: usize| match product.transposed {
            true => weight[column * terms + term],
            false => weight[term * columns + column],
        };
        let dot = |row: usize, column: usize| {
            (0..terms).map(|term| f64::from(x[row * terms + term]) * f64::from(at(column, term))).sum::<f64>()
        };
        let out: Vec<f32> = (0..rows * columns).map(|i| dot(i / columns, i % columns) as f32).collect();
        self.emulator.write(product.out, &out);
    }
}

impl Gpu for EmulatedGpu {
    fn allocate(&mut self, bytes: usize) -> drift::Result<u64> {
        let address = self.emulator.allocate(bytes);
        self.emulator.write(address, &vec![0u8; bytes]);
        Ok(address)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> drift::Result<()> {
        self.emulator.write(address, bytes);
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: usize) -> drift::Result<Vec<u8>> {
        Ok(self.emulator.read(address, bytes))
    }

    fn address(&mut self, tensor: &Tensor) -> drift::Result<u64> {
        assert!(tensor.is_contiguous());
        if let Some(address) = self.tensors.get(&tensor.id()) {
            return Ok(*address);
        }
        let address = self.emulator.upload(&numbers(tensor));
        self.tensors.insert(tensor.id(), address);
        Ok(address)
    }

    fn refresh(&mut self, tensor: &Tensor, written: Range<usize>) -> drift::Result<()> {
        let at = self.tensors[&tensor.id()] + 4 * written.start as u64;
        self.emulator.write(at, &numbers(tensor)[written]);
        Ok(())
    }

    fn launch(
        &mut self,
        kernel: &'static str,
        grid: [u32; 3],
        threads: u32,
        arguments: &[Vec<u8>],
    ) -> drift::Result<()> {
        self.take(Command::Launch(kernel, grid, threads, arguments.to_vec()))
    }

    fn product(&mut self, product: &Product) -> drift::Result<()> {
        self.take(Command::Product(*product))
    }

    fn record(&mut self) -> drift::Result<bool> {
        assert!(self.recording.is_none());
        self.recording = self.can_record.then(Vec::new);
        Ok(self.can_record)
    }

    fn recorded(&mut self) -> drift::Result<usize> {
        self.recordings.push(self.recording.take().unwrap());
        Ok(self.recordings.len() - 1)
    }

    fn replay(&mut self, recording: usize) -> drift::Result<()> {
        assert!(self.recording.is_none());
        for command in self.recordings[recording].clone() {
            self.run(command)?;
        }
        Ok(())
    }
}

/// A small model of random numbers for a tokenizer.
pub(crate) fn config(qwen3: bool, head_dim: usize, vocab: usize) -> Config {
    let json = json!({
        "architectures": [if qwen3 { "Qwen3ForCausalLM" } else { "LlamaForCausalLM" }],
        "model_type": if qwen3 { "qwen3" } else { "llama" },
        "vocab_size": vocab, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": if qwen3 { 2 } else { 1 }, "head_dim": head_dim,
        "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
        "tie_word_embeddings": qwen3, "hidden_act": "silu",
    });
    serde_json::from_value(json).unwrap()
}

pub(crate) fn engine(config: &Config) -> Engine {
    Decoder::random(config.clone(), 4, &Device::cpu()).unwrap().into()
}

/// Small molecules with prompts of several lengths, one to three texts each, some cut off.
pub(crate) fn prompts(processor: &LogitProcessor, most: usize) -> Vec<Prompt> {
    prompts_of(processor, most, [2, 7, 12])
}

/// The same with prompts of so many tokens.
pub(crate) fn prompts_of(processor: &LogitProcessor, most: usize, lengths: [usize; 3]) -> Vec<Prompt> {
    prompts_in(processor, most, lengths, Encoding::FIXED)
}

/// The same of skeletons with slots where an encoding has them.
fn prompts_in(
    processor: &LogitProcessor,
    most: usize,
    lengths: [usize; 3],
    encoding: Encoding,
) -> Vec<Prompt> {
    let placed = |skeleton: &str| drift::text::skeleton::placed(skeleton, encoding.slots()).into_owned();
    let mut small: Vec<&String> = SKELETONS.iter().collect();
    small.sort_by_key(|skeleton| skeleton.matches("<>").count());
    let prompt = |(number, skeleton): (usize, &&String)| Prompt {
        number,
        tokens: (0..lengths[number]).map(|at| 3 + (number * 31 + at * 7) as u32 % 55).collect(),
        generations: 1 + number % 3,
        done: [].into(),
        constraint: processor.constraint(&placed(skeleton)).unwrap(),
        most_tokens: if number == 1 { 17 } else { most },
        expected_tokens: number * 17 % 29,
    };
    let prompts: Vec<Prompt> = small.iter().take(3).enumerate().map(prompt).collect();
    assert_eq!(prompts.len(), 3);
    prompts
}

pub(crate) fn processor(kind: ProcessorKind, tokenizer: &str) -> LogitProcessor {
    let tokenizer = Tokenizer::load(Path::new(tokenizer)).unwrap();
    // The end of text is a token of the model where texts end by drawing it.
    let eos = if kind == ProcessorKind::None { 7 } else { EOS };
    LogitProcessor::new(kind, tokenizer, Encoding::STRIPPED, None, eos).unwrap()
}

pub(crate) fn vocab(tokenizer: &str) -> usize {
    let tokenizer = Tokenizer::load(Path::new(tokenizer)).unwrap();
    tokenizer.rows() as usize
}

/// The same run on the device; none without a compiler.
fn on_the_device(
    engine: &mut Engine,
    config: &Config,
    prompts: &[Prompt],
    options: &Options,
    how: How,
) -> GenerationResult {
    let start = || -> drift::Result<Box<dyn Gpu>> { Ok(Box::new(EmulatedGpu::start(config, how))) };
    // A device that cannot record says so when it is asked.
    let steps = KernelSteps::default();
    let steps = if how.own_products { steps } else { steps.with_cublas() };
    // What is compared here need not be checked before.
    let options = Options { self_check: SelfChecking::OFF, ..options.clone() };
    engine.generate_on(&start, (prompts, &options), steps, &Job::default()).unwrap()
}

#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn texts_under_the_automaton_are_those_of_the_cpu() {
    for (tokenizer, qwen3, head_dim) in [("qwen-like", true, 48), ("llama-like", false, 128)] {
        let config = config(qwen3, head_dim, vocab(tokenizer));
        let processor = processor(ProcessorKind::Automaton, tokenizer);
        let mut engine = engine(&config);
        let backwards = How { own_products: true, can_record: true, order: ORDERS[1], is_checked: false };
        for (sampling, batch, how, lengths, most) in [
            (Sampling::GREEDY, 32, How::default(), [2, 7, 260], 60),
            (Sampling::QWEN3, 3, How { own_products: false, ..backwards }, [1, 60, 12], 400),
            (Sampling::QWEN3, 12, backwards, [1, 60, 12], 90),
        ] {
            let prompts = prompts_of(&processor, most, lengths);
            let options = Options { batch, sampling, seed: 3, ..Options::default() };
            let expected = engine.generate(&prompts, &options, &Job::default()).unwrap();
            let found = on_the_device(&mut engine, &config, &prompts, &options, how);
            assert_eq!(engine.note(), None);
            assert_eq!(found.samples, expected.samples, "{tokenizer}, {batch}");
            let (found, expected) = (found.counts, expected.counts);
            // Everything was done on the device, and counted there as here.
            assert_eq!((found.kernel_steps, expected.kernel_steps), (found.decode_steps, 0));
            assert!(found.decode_steps > 10, "{found:?}");
            assert_eq!(found.generated_tokens, expected.generated_tokens);
            assert_eq!(found.forced_tokens, expected.forced_tokens);
            // The CPU reads a prompt once for all texts of a molecule. So does a device with a long one, but for the last token; a
            // short one it reads in its steps for each text.
            let bodies = lengths.map(|length| length as u64 - 1);
            assert_eq!(expected.prompt_tokens, bodies.iter().sum::<u64>());
            let again = |(prompt, body): (&Prompt, &u64)| (prompt.generations as u64 - 1, *body);
            let again = prompts.iter().zip(&bodies).map(again).filter(|(_, body)| *body < 256);
            let again: Vec<(u64, u64)> = again.collect();
            let tokens: u64 = again.iter().map(|(times, body)| times * body).sum();
            let pairs: u64 = again.iter().map(|(times, body)| times * body * (body + 1) / 2).sum();
            assert_eq!(found.prompt_tokens, expected.prompt_tokens + tokens);
            assert_eq!(found.shared_prompt_tokens + tokens, expected.shared_prompt_tokens);
            assert_eq!(found.positions, expected.positions + tokens);
            assert_eq!(found.keys_seen, expected.keys_seen + pairs);
        }
    }
}

/// Bins and codes as tokens: runs of forced tokens between them, by the slots that decimals have.
#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn texts_in_bins_and_codes_are_those_of_the_cpu() {
    let folder = Folder::new();
    let base = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let bins = with_added(&folder, &base, (0..251).map(|bin| format!("{bin:03}")), false);
    let codes = with_added(&folder, &base, (0..512).map(|code| format!("<{code}>")), true);
    let both = [(bins, "binned-v2:-13,13,0.104"), (codes, "fsq:512")];
    for (tokenizer, encoding) in both.into_iter().take(sized(2, 1)) {
        let encoding: Encoding = encoding.parse().unwrap();
        let vocab = tokenizer.rows() as usize;
        let config = config(true, 48, vocab);
        let processor =
            LogitProcessor::new(ProcessorKind::Automaton, tokenizer, encoding, None, EOS).unwrap();
        let mut engine = engine(&config);
        let prompts = prompts_in(&processor, 400, [1, sized(30, 9), 5], encoding);
        for (sampling, batch) in [(Sampling::GREEDY, 8), (Sampling::QWEN3, 3)] {
            let options = Options { batch, sampling, seed: 3, ..Options::default() };
            let expected = engine.generate(&prompts, &options, &Job::default()).unwrap();
            let how = How { can_record: true, ..How::default() };
            let found = on_the_device(&mut engine, &config, &prompts, &options, how);
            assert_eq!(found.samples, expected.samples, "{encoding:?}");
            let counts = found.counts;
            assert_eq!(
                (counts.kernel_steps, counts.forced_tokens),
                (counts.decode_steps, expected.counts.forced_tokens)
            );
            let share = counts.forced_tokens as f64 / counts.generated_tokens as f64;
            eprintln!("{}: {:.0} % of the tokens forced", encoding.name(), 100.0 * share);
            assert!(share > 0.4, "{share}");
        }
    }
}

#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn texts_without_a_logit_processor_are_those_of_the_cpu() {
    let config = config(true, 64, 300);
    let prompts = prompts(&processor(ProcessorKind::None, "qwen-like"), 30);
    let mut engine = engine(&config);
    for sampling in [Sampling::GREEDY, Sampling::QWEN3, Sampling::preset("top-p-0.8-t1.2").unwrap()] {
        let options = Options { batch: 4, sampling, seed: 3, ..Options::default() };
        let expected = engine.generate(&prompts, &options, &Job::default()).unwrap();
        for own_products in [false, true] {
            let how = How { own_products, can_record: true, ..How::default() };
            let found = on_the_device(&mut engine, &config, &prompts, &options, how);
            assert_eq!(found.samples, expected.samples);
            assert_eq!(found.counts.kernel_steps, found.counts.decode_steps);
            assert_eq!(found.counts.head_rows % config.vocab_size as u64, 0);
        }
    }
}

/// Whole generations without a fault of any kernel, whatever shows in their texts.
#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn generations_neither_stray_nor_race() {
    for (kind, qwen3, head_dim) in [(ProcessorKind::Automaton, true, 48), (ProcessorKind::None, false, 64)] {
        let config =
            config(qwen3, head_dim, if kind == ProcessorKind::None { 300 } else { vocab("qwen-like") });
        let prompts = prompts_of(&processor(kind, "qwen-like"), 16, [1, 9, 5]);
        let mut engine = engine(&config);
        let options = Options { batch: 3, sampling: Sampling::QWEN3, seed: 3, ..Options::default() };
        let expected = engine.generate(&prompts, &options, &Job::default()).unwrap();
        for own_products in [false, true] {
            let how = How { own_products, can_record: true, order: MIXED, is_checked: true };
            let found = on_the_device(&mut engine, &config, &prompts, &options, how);
            assert_eq!(found.samples, expected.samples);
        }
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn draws_under_masks_of_the_host_are_those_of_the_cpu() {
    let (config, tokenizer) =
        (config(true, 64, vocab("qwen-like")), Tokenizer::load(Path::new("qwen-like")).unwrap());
    let placeholder = Placeholder::new("0.0000,0.0000,0.0000").unwrap();
    let template = ProcessorKind::ALL.into_iter().filter(|kind| kind.takes_placeholder());
    let mut engine = engine(&config);
    for kind in template {
        let processor =
            LogitProcessor::new(kind, tokenizer.clone(), Encoding::FIXED, Some(&placeholder), 7).unwrap();
        let prompts = prompts(&processor, 40);
        let options = Options { batch: 3, sampling: Sampling::QWEN3, seed: 3, ..Options::default() };
        let expected = engine.generate(&prompts, &options, &Job::default()).unwrap();
        let how = How { can_record: true, ..How::default() };
        let found = on_the_device(&mut engine, &config, &prompts, &options, how);
        assert_eq!(found.samples, expected.samples, "{kind:?}");
        assert_eq!(found.counts, expected.counts, "{kind:?}");
        assert_eq!(engine.note(), None);
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn runs_that_no_device_takes_are_computed_all_the_same() {
    let config = config(true, 64, vocab("qwen-like"));
    let prompts = prompts(&processor(ProcessorKind::Automaton, "qwen-like"), 60);
    let mut engine = engine(&config);
    let options = Options { batch: 4, sampling: Sampling::QWEN3, ..Options::default() };
    let resampling = Resampling { draws: 2, block_ends: [].into() };
    for options in [
        Options { room: Room::Growing, ..options.clone() },
        Options { log_probabilities: true, ..options.clone() },
        Options { watched: [3].into(), ..options.clone() },
        Options { resampling: Some(resampling), ..options.clone() },
    ] {
        let start = || -> drift::Result<Box<dyn Gpu>> { panic!("no device is wanted") };
        let found = engine
            .generate_on(&start, (&prompts, &options), KernelSteps::default(), &Job::default())
            .unwrap();
        assert_eq!((found.counts.kernel_steps, engine.note()), (0, None));
    }
    // A device that cannot be started, and one that takes no batch of this size.
    let expected = engine.generate(&prompts, &options, &Job::default()).unwrap();
    let start = || -> drift::Result<Box<dyn Gpu>> {
        Err(KernelShape::from_config(&Config { head_dim: 36, ..config.clone() }, false).unwrap_err())
    };
    let found =
        engine.generate_on(&start, (&prompts, &options), KernelSteps::default(), &Job::default()).unwrap();
    assert_eq!((found.samples, found.counts), (expected.samples, expected.counts));
    let note = engine.note().unwrap();
    assert!(note.contains("there are no kernels for heads of 36"), "{note}");
    assert!(!note.contains("candle"), "{note}");
}
