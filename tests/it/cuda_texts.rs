//! Sampler and automaton of the device beside those of the CPU: the same tokens, bit for bit, over whole texts.
//!
//! The logits are drawn, so no model is needed. The host of the test is what a host will be: it packs, gives logits to the
//! rows that choose, and puts a new text where one has ended.

use std::path::Path;
use std::sync::Arc;

use drift::constraint::automaton::{AutomatonProcessor, DeviceTable, MoleculeAutomaton};
use drift::constraint::{Constraint, LogitProcessor, Mask, ProcessorKind};
use drift::encoding::Encoding;
use drift::model::cuda::{
    BatchArguments, DeviceRow, DrawArguments, KernelShape, RowEnd, RowPrompt, TableArguments,
};
use drift::sampling::{Candidates, Noise, Sampling, draw};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::automaton::{EOS, SKELETONS, shared_tokenizers};
use crate::counting::fixture_tokenizer;
use crate::cuda_emulator::{Emulator, MIXED, ORDERS, argument};
use crate::encodings::with_added;
use crate::support::{Folder, sized};

/// What the kernels of this file do not depend on.
pub(crate) const SHAPE: KernelShape = KernelShape { bf16: false, head_dim: 64, group: 2 };

/// No slot.
const NONE: u32 = u32::MAX;

/// A way to draw of each kind.
const PRESETS: [&str; 5] = ["greedy", "qwen3", "top-p-0.8-t1.2", "min-p-0.1-t1.0", "top-p-1.0-t1.4"];

/// A text to write.
#[derive(Debug, Clone)]
struct Job {
    molecule: usize,
    generation: usize,
    most: usize,
    /// Tokens of the prompt that were read.
    base: usize,
    /// And those behind them.
    unread: usize,
    /// Logits are multiples of this: coarse ones are often equal.
    step: f32,
    /// Whether the device follows the forced run behind the prompt, or the first step does.
    enters: bool,
}

impl Job {
    /// What the row's text begins with.
    fn unread(&self) -> Vec<u32> {
        (7..).take(self.unread).collect()
    }
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
struct DecimalForms {
    tokens: Vec<u32>,
    forced: Vec<bool>,
    end: Option<RowEnd>,
}

const SEED: u64 = 11;

/// More than the slots of a step.
const MOST_UNREAD: usize = 20;

/// Logits of ids at a position of a text, from a hash: with some far below the others.
fn logits(job: &Job, position: usize, ids: &[u32], out: &mut Vec<f32>) {
    let text = (job.molecule as u64) << 40 | (job.generation as u64) << 24 | position as u64;
    out.extend(ids.iter().map(|id| {
        let mut x =
            text.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(*id).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x = (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11;
        let uniform = (x % 4096) as f32 / 4096.0;
        ((16.0 * uniform - 8.0) / job.step).round() * job.step
    }));
}

/// As `generate/row.rs` and `generate/decode.rs` write a text, one token at a time.
fn on_the_cpu(
    follow: &MoleculeAutomaton,
    job: &Job,
    table: &DeviceTable,
    sampling: &Sampling,
) -> DecimalForms {
    let mut noise = Noise::new(SEED, job.molecule, job.generation);
    let mut state = follow.start();
    let mut written = DecimalForms { tokens: Vec::new(), forced: Vec::new(), end: None };
    let mut numbers = Vec::new();
    while written.tokens.len() < job.most {
        let position = written.tokens.len();
        let (token, forced) = match follow.mask(&state) {
            Mask::Forced(token) => (token, true),
            Mask::Only(ids) => {
                numbers.clear();
                logits(job, position, table.head_ids(), &mut numbers);
                let candidates = Candidates::Listed { logits: &numbers, known: table.head_ids(), ids };
                (draw(candidates, sampling, &mut noise, position).unwrap(), false)
            }
            other => panic!("{other:?}"),
        };
        if follow.is_over(&state, token) {
            // What ends a text is all that may stand there.
            assert!(forced);
            written.end = Some(RowEnd::Eos);
            return written;
        }
        follow.advance(&mut state, token);
        written.tokens.push(token);
        written.forced.push(forced);
    }
    written.end = Some(RowEnd::Length);
    written
}

/// A batch on the device.
struct Device<'a> {
    emulator: &'a mut Emulator,
    table: &'a DeviceTable,
    tables: TableArguments,
    batch: BatchArguments,
    slots: usize,
    /// `[slots]`, `[rows]` runs, `[rows]`, `[rows, known]`
    tokens: u64,
    owners: u64,
    runs: u64,
    lasts: u64,
    logits: u64,
    entered: u64,
    /// Threads of `choose`.
    threads: u32,
}

impl<'a> Device<'a> {
    fn new(
        emulator: &'a mut Emulator,
        table: &'a DeviceTable,
        rows: usize,
        longest: usize,
        threads: u32,
    ) -> Self {
        let tables = TableArguments::new(table, |array| Ok::<_, ()>(emulator.upload(array))).unwrap();
        let (slots, stride) = (rows + rows / 2 + 1, longest + MOST_UNREAD);
        let batch = BatchArguments {
            rows: emulator.allocate(64 * rows),
            texts: emulator.allocate(4 * rows * stride),
            // Until a row enters it takes no part.
            ends: emulator.upload(&vec![RowEnd::Eos as u32 + 1; rows]),
            ended: emulator.upload(&[0u32]),
            work: emulator.upload(&[0u64; 5]),
            count: rows as u32,
            stride: stride as u32,
        };
        Device {
            tables,
            batch,
            slots,
            tokens: emulator.allocate(4 * slots),
            owners: emulator.allocate(4 * slots),
            runs: emulator.allocate(16 * rows),
            lasts: emulator.allocate(4 * rows),
            logits: emulator.allocate(4 * rows * table.known as usize),
            entered: emulator.allocate(4 * rows),
            threads,
            emulator,
            table,
        }
    }

    /// Puts a text into a row.
    fn enter(&mut self, row: usize, job: &Job) {
        let noise = Noise::new(SEED, job.molecule, job.generation);
        let place = self.table.start(job.molecule);
        let prompt = RowPrompt { read: job.base as u32, unread: job.unread().len() as u32 };
        let state = DeviceRow::new(&noise, job.molecule as u32, place, prompt, job.most as u32);
        self.emulator.write(self.batch.rows + 64 * row as u64, &state.words());
        let text = self.batch.texts + 4 * (row * self.batch.stride as usize) as u64;
        self.emulator.write(text, &job.unread());
        self.emulator.write(self.batch.ends + 4 * row as u64, &[0u32]);
        if job.enters || job.most == 0 {
            self.emulator.write(self.entered, &[row as u32]);
            let arguments = [self.tables.bytes(), self.batch.bytes(), argument(self.entered), argument(1u32)];
            self.emulator.launch("enter", [1, 1, 1], 32, &arguments);
        }
    }

    /// One step; the tokens that each row read, with their positions.
    fn step(&mut self, jobs: &[Option<Job>], sampling: &Sampling) -> Vec<Vec<(u32, usize)>> {
        let rows = self.batch.count as usize;
        let arguments = [
            self.batch.bytes(),
            argument(self.slots as u32),
            argument(self.tokens),
            argument(self.owners),
            argument(self.runs),
            argument(self.lasts),
        ];
        self.emulator.launch("pack", [1, 1, 1], rows.next_multiple_of(32) as u32, &arguments);
        let tokens = self.emulator.read::<u32>(self.tokens, self.slots);
        let runs = self.emulator.read::<u32>(self.runs, 4 * rows);
        let lasts = self.emulator.read::<u32>(self.lasts, rows);
        let states = self.emulator.read::<u32>(self.batch.rows, 16 * rows);
        let read = runs.chunks(4).map(|run| {
            let slots = &tokens[run[0] as usize..][..run[1] as usize];
            slots.iter().enumerate().map(|(i, token)| (*token, run[2] as usize + i)).collect()
        });
        let read = read.collect();
        let mut numbers = Vec::new();
        for (row, job) in jobs.iter().enumerate() {
            match job {
                Some(job) if lasts[row] != NONE => {
                    let run = &runs[4 * row..][..2];
                    assert_eq!(lasts[row], run[0] + run[1] - 1);
                    let count = states[16 * row + 11] as usize;
                    logits(job, count - job.unread().len(), self.table.head_ids(), &mut numbers);
                }
                // No number: it must not be read.
                _ => numbers.extend(vec![f32::NAN; self.table.known as usize]),
            }
        }
        self.emulator.write(self.logits, &numbers);
        let arguments = [
            self.tables.bytes(),
            self.batch.bytes(),
            DrawArguments::from(sampling).bytes(),
            argument(self.lasts),
            argument(self.logits),
            argument(self.table.known),
        ];
        self.emulator.launch("choose", [rows, 1, 1], self.threads, &arguments);
        read
    }

    fn ends(&mut self) -> Vec<Option<RowEnd>> {
        let ends = self.emulator.read::<u32>(self.batch.ends, self.batch.count as usize);
        ends.into_iter().map(RowEnd::from_number).collect()
    }

    /// The text of a row that ended.
    fn written(&mut self, row: usize, job: &Job, end: Option<RowEnd>) -> DecimalForms {
        let prompt = job.unread().len();
        let count = self.emulator.read::<u32>(self.batch.rows + 64 * row as u64, 16)[11] as usize;
        let text = self.batch.texts + 4 * (row * self.batch.stride as usize + prompt) as u64;
        let text = self.emulator.read::<u32>(text, count - prompt);
        let tokens = text.iter().map(|token| token & !DeviceRow::FORCED).collect();
        DecimalForms {
            tokens,
            forced: text.iter().map(|token| token & DeviceRow::FORCED != 0).collect(),
            end,
        }
    }
}

/// Writes all texts in a batch of `rows`; a row that ends takes the next text.
fn on_the_device(device: &mut Device<'_>, jobs: &[Job], sampling: &Sampling) -> Vec<DecimalForms> {
    let rows = device.batch.count as usize;
    let mut places: Vec<Option<usize>> = vec![None; rows];
    let mut read: Vec<Vec<(u32, usize)>> = vec![Vec::new(); jobs.len()];
    let mut written: Vec<Option<DecimalForms>> = vec![None; jobs.len()];
    let mut next = 0;
    // Every running row reads a token in each step.
    let most_steps = jobs.iter().map(|job| job.most + 1 + MOST_UNREAD).sum::<usize>();
    for step in 0.. {
        assert!(step <= most_steps, "rows do not come to an end");
        for (row, end) in device.ends().into_iter().enumerate() {
            if let Some(text) = places[row].filter(|_| end.is_some()) {
                written[text] = Some(device.written(row, &jobs[text], end));
                places[row] = None;
            }
            if places[row].is_none() && next < jobs.len() {
                device.enter(row, &jobs[next]);
                places[row] = Some(next);
                next += 1;
            }
        }
        if places.iter().all(Option::is_none) {
            break;
        }
        let running: Vec<Option<Job>> =
            places.iter().map(|text| text.map(|text| jobs[text].clone())).collect();
        for (row, tokens) in device.step(&running, sampling).into_iter().enumerate() {
            if let Some(text) = places[row] {
                read[text].extend(tokens);
            }
        }
    }
    let ended = device.emulator.read::<u32>(device.batch.ended, 1)[0] as usize;
    assert_eq!(ended, jobs.len());
    let written: Vec<DecimalForms> = written.into_iter().map(Option::unwrap).collect();
    for ((job, read), written) in jobs.iter().zip(read).zip(&written) {
        // The model read the text from the prompt's unread tokens on, each token at its own position.
        let text = job.unread().into_iter().chain(written.tokens.iter().copied());
        let whole: Vec<(u32, usize)> = text.zip(job.base..).collect();
        assert!(whole.starts_with(&read), "{job:?}");
    }
    written
}

/// Texts of small molecules, every third one cut off somewhere.
fn jobs(count: usize, molecules: usize, seed: u64) -> Vec<Job> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let job = |generation| Job {
        molecule: random.random_range(0..molecules),
        generation,
        most: if generation % 3 == 0 { random.random_range(0..150) } else { 1_000 },
        base: random.random_range(0..60),
        unread: [1, 1, 3, MOST_UNREAD][random.random_range(0..4)],
        step: [1.0, 1.0 / 256.0][generation % 2],
        enters: generation % 5 != 0,
    };
    (0..count).map(job).collect()
}

/// Compares `count` texts under each preset. How many tokens were drawn, and how many texts ended in which way.
fn compare(
    tokenizer: impl Into<Arc<Tokenizer>>,
    (encoding, eos): (Encoding, u32),
    count: usize,
    orders: &[u32],
) -> (usize, [usize; 2]) {
    let mut emulator = Emulator::start(SHAPE);
    let tokenizer: Arc<Tokenizer> = tokenizer.into();
    let name = tokenizer.name.clone();
    let vocab = tokenizer.rows() as usize;
    let processor = LogitProcessor::new(ProcessorKind::Automaton, tokenizer, encoding, None, eos).unwrap();
    let processor: &AutomatonProcessor = processor.automaton().unwrap();
    let small = SKELETONS.iter().filter(|skeleton| skeleton.matches("<>").count() <= 8);
    let placed = |skeleton: &String| drift::text::skeleton::placed(skeleton, encoding.slots()).into_owned();
    let follows: Vec<MoleculeAutomaton> =
        small.take(40).map(|skeleton| processor.molecule(&placed(skeleton)).unwrap()).collect();
    let table = DeviceTable::new(&follows.iter().collect::<Vec<_>>(), vocab, false).unwrap();
    let (mut drawn, mut ends) = (0, [0; 2]);
    for (number, preset) in PRESETS.into_iter().enumerate() {
        let sampling = Sampling::preset(preset).unwrap();
        let jobs = jobs(count, follows.len(), number as u64);
        let expected: Vec<DecimalForms> =
            jobs.par_iter().map(|job| on_the_cpu(&follows[job.molecule], job, &table, &sampling)).collect();
        for (round, &order) in orders.iter().enumerate() {
            emulator.order(order);
            let threads = [32, 64, 96][(number + round) % 3];
            let mut device = Device::new(&mut emulator, &table, 7, 1_000, threads);
            let written = on_the_device(&mut device, &jobs, &sampling);
            for ((job, expected), written) in jobs.iter().zip(&expected).zip(written) {
                assert_eq!(&written, expected, "{name}, {preset}, order {order}: {job:?}");
            }
        }
        for text in &expected {
            drawn += text.forced.iter().filter(|forced| !**forced).count();
            ends[usize::from(text.end == Some(RowEnd::Length))] += 1;
        }
    }
    (drawn, ends)
}

/// A few texts, to be written again and again.
pub(crate) struct Sample {
    table: DeviceTable,
    jobs: Vec<Job>,
    expected: Vec<DecimalForms>,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
        let processor =
            LogitProcessor::new(ProcessorKind::Automaton, tokenizer, Encoding::STRIPPED, None, EOS).unwrap();
        let follow = processor.automaton().unwrap().molecule(&SKELETONS[0]).unwrap();
        let table = DeviceTable::new(&[&follow], 100_000, false).unwrap();
        let jobs: Vec<Job> =
            jobs(10, 1, 0).into_iter().map(|job| Job { most: job.most.min(30), ..job }).collect();
        let written = |job: &Job| on_the_cpu(&follow, job, &table, &Sampling::QWEN3);
        let expected = jobs.iter().map(written).collect();
        Sample { table, jobs, expected }
    }

    /// Writes them on a device, and compares.
    pub(crate) fn check(&self, emulator: &mut Emulator) {
        let mut device = Device::new(emulator, &self.table, 4, 1_000, 64);
        assert_eq!(on_the_device(&mut device, &self.jobs, &Sampling::QWEN3), self.expected);
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn texts_are_those_of_the_cpu() {
    let mut tokenizers: Vec<Tokenizer> = ["qwen-like", "llama-like", "qwen-like-fused"]
        .into_iter()
        .map(|name| Tokenizer::load(Path::new(name)).unwrap())
        .collect();
    tokenizers.extend(["gpt2-like", "mistral-v3-like"].map(fixture_tokenizer));
    let encodings = Encoding::ALL.into_iter().cycle();
    let both: Vec<_> = tokenizers.into_iter().zip(encodings).collect();
    let texts = sized(40, 8);
    both.into_par_iter().for_each(|(tokenizer, encoding)| {
        let name = tokenizer.name.clone();
        let began = std::time::Instant::now();
        let (drawn, [eos, length]) = compare(tokenizer, (encoding, EOS), texts, &ORDERS);
        assert!(eos > 0 && length > 0);
        let seconds = began.elapsed().as_secs_f64();
        eprintln!(
            "{name}, {}: {} texts, {drawn} draws, {length} cut off, {seconds:.1} s",
            encoding.name(),
            eos + length
        );
    });
}

/// Bins and codes: as digits of the tokenizer, and as tokens of their own, where most tokens between the slots are forced.
#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn texts_in_bins_and_codes_are_those_of_the_cpu() {
    let folder = Folder::new();
    let base = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let bins = with_added(&folder, &base, (0..251).map(|bin| format!("{bin:03}")), false);
    let codes = with_added(&folder, &base, (0..512).map(|code| format!("<{code}>")), true);
    let plain = |name: &str| Arc::new(Tokenizer::load(Path::new(name)).unwrap());
    let all = [
        (bins, "binned-v2:-13,13,0.104"),
        (codes, "fsq:512"),
        (plain("qwen-like"), "binned-v1:-21,21,0.05"),
        (plain("llama-like"), "fsq:512"),
        (plain("qwen-like"), "fixed-2"),
    ];
    all.into_par_iter().for_each(|(tokenizer, encoding)| {
        let name = tokenizer.name.clone();
        let (drawn, [eos, length]) =
            compare(tokenizer, (encoding.parse().unwrap(), EOS), sized(24, 10), &ORDERS);
        assert!(eos > 0 && length > 0 && drawn > sized(1_000, 400));
        eprintln!("{name}, {encoding}: {} texts, {drawn} draws, {length} cut off", eos + length);
    });
}

/// Of a tokenizer that cuts out whole slots nothing stands behind the last one then.
#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn and_so_where_the_closing_tag_ends_the_text() {
    for name in ["qwen-like-fused", "qwen-like"] {
        let tokenizer = Tokenizer::load(Path::new(name)).unwrap();
        let eos = tokenizer.vocabulary_id("[/CONFORMER]").unwrap();
        let (drawn, ends) = compare(tokenizer, (Encoding::FIXED, eos), sized(10, 6), &ORDERS[..1]);
        assert!(drawn > 0 && ends.iter().all(|count| *count > 0), "{name}: {ends:?}");
    }
}

#[test]
#[cfg_attr(not(all(has_cxx, has_shared)), ignore = "needs a C++ compiler, and ../shared")]
fn texts_of_the_shared_tokenizers_are_those_of_the_cpu() {
    for tokenizer in shared_tokenizers() {
        compare(tokenizer, (Encoding::FIXED, EOS), sized(10, 2), &[MIXED]);
    }
}
