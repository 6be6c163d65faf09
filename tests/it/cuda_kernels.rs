//! Each kernel beside formulas in f64, in both types, several sizes of heads, and two orders of threads; that none strays or races; and
//! that a barrier which is left out shows.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use drift::model::cuda::{
    ATTEND_THREADS, AttentionArguments, BatchArguments, DeviceRow, DrawArguments, KernelShape, RowEnd,
    RowPrompt, SumsArguments,
};
use drift::sampling::{Candidates, Noise, Sampling, draw};
use half::bf16;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::cuda_emulator::{Emulator, MIXED, ORDERS, argument};
use crate::cuda_texts::Sample;

/// No slot.
const NONE: u32 = u32::MAX;

const SHAPES: [KernelShape; 7] = [
    KernelShape { bf16: false, head_dim: 64, group: 2 },
    KernelShape { bf16: false, head_dim: 128, group: 1 },
    KernelShape { bf16: true, head_dim: 64, group: 4 },
    KernelShape { bf16: true, head_dim: 128, group: 2 },
    KernelShape { bf16: false, head_dim: 48, group: 2 },
    KernelShape { bf16: true, head_dim: 80, group: 3 },
    KernelShape { bf16: true, head_dim: 8, group: 8 },
];

/// A device with a model's type of numbers.
struct Bench {
    emulator: Emulator,
    shape: KernelShape,
    random: ChaCha8Rng,
    /// The largest error of each kernel, relative to the largest number of its row.
    errors: BTreeMap<&'static str, f64>,
}

impl Bench {
    fn start(shape: KernelShape) -> Self {
        Bench::of(Emulator::start(shape), shape)
    }

    /// One that ends with the first fault of a kernel.
    fn checked(shape: KernelShape) -> Self {
        Bench::of(Emulator::checked(shape), shape)
    }

    fn of(emulator: Emulator, shape: KernelShape) -> Self {
        Bench { emulator, shape, random: ChaCha8Rng::seed_from_u64(5), errors: BTreeMap::new() }
    }

    fn rounded(&self, x: f32) -> f32 {
        if self.shape.bf16 { bf16::from_f32(x).to_f32() } else { x }
    }

    fn size(&self) -> usize {
        if self.shape.bf16 { 2 } else { 4 }
    }

    /// Numbers as they are in the model's type.
    fn numbers(&mut self, count: usize, most: f32) -> Vec<f32> {
        let drawn: Vec<f32> = (0..count).map(|_| self.random.random_range(-most..most)).collect();
        drawn.into_iter().map(|x| self.rounded(x)).collect()
    }

    fn upload(&mut self, numbers: &[f32]) -> u64 {
        match self.shape.bf16 {
            true => {
                let bits: Vec<u16> = numbers.iter().map(|x| bf16::from_f32(*x).to_bits()).collect();
                self.emulator.upload(&bits)
            }
            false => self.emulator.upload(numbers),
        }
    }

    /// What a product came to, in so many parts; these add up without an error.
    fn sums(&mut self, numbers: &[f32], parts: usize) -> SumsArguments {
        if parts == 0 {
            return SumsArguments::whole(self.upload(numbers));
        }
        let even: &[f32] = if parts.is_multiple_of(2) { &[2.0, -1.0] } else { &[] };
        let factors = even.iter().copied().chain([1.0, -1.0].into_iter().cycle()).take(parts);
        let all: Vec<f32> = factors.flat_map(|by| numbers.iter().map(move |x| by * x)).collect();
        let (from, stride) = (self.emulator.upload(&all), numbers.len() as u32);
        SumsArguments { from, parts: parts as u32, stride }
    }

    fn allocate(&mut self, count: usize) -> u64 {
        self.emulator.allocate(count * self.size())
    }

    fn read(&mut self, address: u64, count: usize) -> Vec<f32> {
        match self.shape.bf16 {
            true => {
                let bits = self.emulator.read::<u16>(address, count);
                bits.into_iter().map(|bits| bf16::from_bits(bits).to_f32()).collect()
            }
            false => self.emulator.read(address, count),
        }
    }

    /// Compares rows of `columns` numbers with what they are in f64: to 1e-6 of the largest number of the row, and bf16 to what
    /// such a number rounds to.
    fn check(&mut self, kernel: &'static str, found: &[f32], expected: &[f64], columns: usize) {
        self.check_as(self.shape.bf16, kernel, found, expected, columns);
    }

    fn check_as(
        &mut self,
        bf16: bool,
        kernel: &'static str,
        found: &[f32],
        expected: &[f64],
        columns: usize,
    ) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.chunks(columns).zip(expected.chunks(columns)) {
            let scale = expected.iter().fold(0f64, |most, x| most.max(x.abs()));
            let slack = 1e-6 * scale;
            for (x, y) in found.iter().zip(expected) {
                let (x, error) = (f64::from(*x), (f64::from(*x) - y).abs() / scale);
                let holds = match bf16 {
                    true => {
                        let rounded = |y: f64| f64::from(half::bf16::from_f32(y as f32).to_f32());
                        (rounded(y - slack)..=rounded(y + slack)).contains(&x)
                    }
                    false => error <= 1e-6,
                };
                assert!(holds, "{kernel}: {x} instead of {y}, {error:e} of {scale}");
                let worst = self.errors.entry(kernel).or_default();
                *worst = worst.max(error);
            }
        }
    }
}

/// Runs `test` for every shape in every order, and says how far off the kernels were.
fn each_shape(test: impl Fn(&mut Bench)) {
    for shape in SHAPES {
        let mut bench = Bench::start(shape);
        for order in ORDERS.into_iter().chain([MIXED]) {
            bench.emulator.order(order);
            test(&mut bench);
        }
        eprintln!("{shape:?}: {:?}", bench.errors);
    }
}

/// `x / √(Σx²/n + ε) · weight`
fn normed(x: &[f64], weight: &[f32], epsilon: f32) -> Vec<f64> {
    let squares = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (squares + f64::from(epsilon)).sqrt();
    x.iter().zip(weight).map(|(x, weight)| x * scale * f64::from(*weight)).collect()
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|x| f64::from(*x)).collect()
}

const EPSILON: f32 = 1e-6;

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn layers_but_for_attention_equal_their_formulas() {
    each_shape(|bench| {
        for (slots, columns, threads, parts) in
            [(3, 96, 32, 0), (2, 1024, 256, 4), (5, 76, 64, 11), (1, 1100, 128, 2), (2, 40, 32, 6)]
        {
            embedding_and_norms(bench, (slots, columns), threads, parts);
            gate_and_head(bench, (slots, columns), threads, parts);
        }
    });
}

fn embedding_and_norms(bench: &mut Bench, (slots, columns): (usize, usize), threads: u32, parts: usize) {
    let vocab = 11;
    let (table, weight) = (bench.numbers(vocab * columns, 2.0), bench.numbers(columns, 1.5));
    let added = bench.numbers(slots * columns, 3.0);
    let tokens: Vec<u32> = (0..slots as u32).map(|slot| slot * 3 % vocab as u32).collect();
    let (table_at, weight_at) = (bench.upload(&table), bench.upload(&weight));
    let added_at = bench.sums(&added, parts).bytes();
    let tokens_at = bench.emulator.upload(&tokens);
    let (hidden, out) = (bench.allocate(slots * columns), bench.allocate(slots * columns));
    let tail = [argument(columns as u32), argument(EPSILON)];
    let head = [table_at, tokens_at, weight_at, hidden, out].map(argument);
    let arguments = [&head[..], &[argument(vocab as u32)], &tail].concat();
    bench.emulator.launch("embed", [slots, 1, 1], threads, &arguments);
    let x: Vec<f32> =
        tokens.iter().flat_map(|token| &table[*token as usize * columns..][..columns]).copied().collect();
    assert_eq!(bench.read(hidden, slots * columns), x);
    let expected: Vec<f64> = wide(&x).chunks(columns).flat_map(|x| normed(x, &weight, EPSILON)).collect();
    let found = bench.read(out, slots * columns);
    bench.check("embed", &found, &expected, columns);

    // The last token of row 1 is in slot 0; row 0 has none.
    let lasts = bench.emulator.upload(&[NONE, 0, slots as u32 - 1]);
    let rows = bench.allocate(3 * columns);
    let arguments =
        [&[argument(hidden), added_at.clone()][..], &[weight_at, lasts, rows].map(argument), &tail].concat();
    bench.emulator.launch("last_norm", [3, 1, 1], threads, &arguments);
    let arguments = [&[argument(hidden), added_at][..], &[weight_at, out].map(argument), &tail].concat();
    bench.emulator.launch("add_norm", [slots, 1, 1], threads, &arguments);
    let sum: Vec<f32> = x.iter().zip(&added).map(|(a, b)| bench.rounded(a + b)).collect();
    assert_eq!(bench.read(hidden, slots * columns), sum);
    let expected: Vec<f64> = wide(&sum).chunks(columns).flat_map(|x| normed(x, &weight, EPSILON)).collect();
    let found = bench.read(out, slots * columns);
    bench.check("add_norm", &found, &expected, columns);
    let found = bench.read(rows, 3 * columns);
    assert!(found[..columns].iter().all(|x| x.is_nan()), "a row without a token was written");
    let last = [&expected[..columns], &expected[(slots - 1) * columns..]].concat();
    bench.check("last_norm", &found[columns..], &last, columns);
}

fn gate_and_head(bench: &mut Bench, (slots, columns): (usize, usize), threads: u32, parts: usize) {
    let gate_up = bench.numbers(slots * 2 * columns, 6.0);
    let (gate_up_at, out) = (bench.sums(&gate_up, parts), bench.allocate(slots * columns));
    let arguments = [gate_up_at.bytes(), argument(out), argument(columns as u32)];
    bench.emulator.launch("gated", [2, slots, 1], threads, &arguments);
    let gated = |both: &[f64]| -> Vec<f64> {
        let (gate, up) = both.split_at(columns);
        gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect()
    };
    let expected: Vec<f64> = wide(&gate_up).chunks(2 * columns).flat_map(gated).collect();
    let found = bench.read(out, slots * columns);
    bench.check("gated", &found, &expected, columns);

    let table = bench.numbers(9 * columns, 1.0);
    let ids: [u32; 5] = [7, 0, 8, 3, 3];
    let (table_at, ids_at) = (bench.upload(&table), bench.emulator.upload(&ids));
    let picked = bench.allocate(5 * columns);
    let arguments =
        [argument(table_at), argument(ids_at), argument(picked), argument(9u32), argument(columns as u32)];
    bench.emulator.launch("gather", [5, 1, 1], threads, &arguments);
    let rows: Vec<f32> =
        ids.iter().flat_map(|id| &table[*id as usize * columns..][..columns]).copied().collect();
    assert_eq!(bench.read(picked, 5 * columns), rows);

    let x = bench.numbers(2 * columns, 2.0);
    let x_at = bench.upload(&x);
    let (lasts, logits) = (bench.emulator.upload(&[4, NONE]), bench.emulator.allocate(4 * 2 * 8));
    let head = [x_at, picked, lasts, logits].map(argument);
    let tail = [columns as u32, 5, 8].map(argument);
    bench.emulator.launch("head", [2, 2, 1], threads, &[&head[..], &tail].concat());
    let found = bench.emulator.read::<f32>(logits, 16);
    let dot = |row: &[f32]| -> f64 { wide(row).iter().zip(wide(&x)).map(|(a, b)| a * b).sum() };
    let expected: Vec<f64> = rows.chunks(columns).map(dot).collect();
    // Logits are f32 in either type.
    bench.check_as(false, "head", &found[..5], &expected, 5);
    assert!(found[5..].iter().all(|x| x.is_nan()), "what is no logit was written");
}

/// A product of few rows, of so many blocks of 64 bytes of terms, by parts of them, beside the sums in f64.
fn check_product(bench: &mut Bench, rows: usize, blocks: usize, columns: usize) {
    let terms = blocks * 64 / bench.size();
    let part = 16 * 64 / bench.size();
    let parts = terms.div_ceil(part);
    let (x, weight) = (bench.numbers(rows * terms, 2.0), bench.numbers(columns * terms, 1.5));
    let arguments = drift::model::cuda::ProductArguments {
        x: bench.upload(&x),
        weight: bench.upload(&weight),
        out: bench.emulator.allocate(4 * parts * rows * columns),
        rows: rows as u32,
        terms: terms as u32,
        columns: columns as u32,
        unused: 0,
    };
    let kernel = match rows {
        ..=16 => "product_16",
        _ => "product_32",
    };
    bench.emulator.launch(kernel, [columns.div_ceil(64), parts, 1], 256, &[arguments.bytes()]);
    let found = bench.emulator.read::<f32>(arguments.out, parts * rows * columns);
    let (x, weight) = (wide(&x), wide(&weight));
    let sum = |at: usize, column: usize| -> f64 {
        let (start, row) = (at / rows * part, at % rows);
        let terms_of = start..(start + part).min(terms);
        terms_of.map(|term| x[row * terms + term] * weight[column * terms + term]).sum()
    };
    let sum = &sum;
    let expected = (0..parts * rows).flat_map(|at| (0..columns).map(move |column| sum(at, column)));
    let expected: Vec<f64> = expected.collect();
    bench.check_as(false, kernel, &found, &expected, columns);
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn products_of_few_rows_equal_their_sums() {
    each_shape(|bench| {
        // Terms of one block, of a half and more, of one range and more, of a part and more.
        for (rows, blocks, columns) in [
            (1, 1, 16),
            (8, 3, 64),
            (5, 13, 80),
            (9, 4, 48),
            (16, 5, 128),
            (30, 16, 64),
            (17, 17, 96),
            (32, 25, 64),
        ] {
            check_product(bench, rows, blocks, columns);
        }
    });
}

/// Sizes of an attention, and what lies in device memory.
struct Attention {
    kv_heads: usize,
    capacity: usize,
    splits: usize,
    /// Of queries, keys and values, before they are added.
    parts: usize,
    /// Position and number of new tokens of each row.
    rows: Vec<(usize, usize)>,
    qkv: Vec<f32>,
    norms: Option<[Vec<f32>; 2]>,
    /// `[positions, dim / 2]`
    turns: [Vec<f32>; 2],
    /// `[rows, kv heads, capacity, dim]`: keys and values.
    cache: [Vec<f32>; 2],
}

impl Attention {
    fn new(
        bench: &mut Bench,
        (splits, parts): (usize, usize),
        rows: &[(usize, usize)],
        normed: bool,
    ) -> Self {
        let (dim, kv_heads, capacity) = (bench.shape.head_dim, 2, 200);
        let columns = (bench.shape.group + 2) * kv_heads * dim;
        let slots: usize = rows.iter().map(|row| row.1).sum();
        let qkv = bench.numbers(slots * columns, 2.0);
        let norms = normed.then(|| [bench.numbers(dim, 1.5), bench.numbers(dim, 1.5)]);
        let angles: Vec<f32> = (0..capacity * dim / 2).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
        let turns = [angles.iter().map(|x| x.cos()).collect(), angles.iter().map(|x| x.sin()).collect()];
        let cached = rows.len() * kv_heads * capacity * dim;
        let cache = [bench.numbers(cached, 1.5), bench.numbers(cached, 2.0)];
        Attention { kv_heads, capacity, splits, parts, rows: rows.to_vec(), qkv, norms, turns, cache }
    }

    fn slots(&self) -> usize {
        self.rows.iter().map(|row| row.1).sum()
    }

    /// Normed and turned to a position.
    fn turned(&self, head: &[f32], norm: Option<usize>, at: usize) -> Vec<f64> {
        let x = match (norm, &self.norms) {
            (Some(which), Some(norms)) => normed(&wide(head), &norms[which], EPSILON),
            _ => wide(head),
        };
        let half = x.len() / 2;
        let turn = |which: usize, i: usize| f64::from(self.turns[which][at * half + i % half]);
        let turned = |i: usize| match i < half {
            true => x[i] * turn(0, i) - x[i + half] * turn(1, i),
            false => x[i - half] * turn(1, i) + x[i] * turn(0, i),
        };
        (0..x.len()).map(turned).collect()
    }

    /// The cache behind the step. Keys are not rounded.
    fn appended(&self, bench: &Bench) -> [Vec<f64>; 2] {
        let (dim, group, kv_heads) = (bench.shape.head_dim, bench.shape.group, self.kv_heads);
        let columns = (group + 2) * kv_heads * dim;
        let mut cache = self.cache.clone().map(|side| wide(&side));
        let places = self.rows.iter().enumerate();
        let places = places
            .flat_map(|(row, (position, count))| (*position..position + count).map(move |at| (row, at)));
        for (token, (row, at)) in self.qkv.chunks(columns).zip(places) {
            let head_of = |number: usize| &token[number * dim..][..dim];
            for head in 0..kv_heads {
                let place = ((row * kv_heads + head) * self.capacity + at) * dim;
                let key = self.turned(head_of(group * kv_heads + head), Some(1), at);
                cache[0][place..place + dim].copy_from_slice(&key);
                cache[1][place..place + dim].copy_from_slice(&wide(head_of((group + 1) * kv_heads + head)));
            }
        }
        cache
    }

    /// What comes out, `[slots, queries, dim]`, of the cache as it is behind the step.
    fn expected(&self, bench: &Bench) -> Vec<f64> {
        let (dim, group, kv_heads) = (bench.shape.head_dim, bench.shape.group, self.kv_heads);
        let columns = (group + 2) * kv_heads * dim;
        let mut out = Vec::new();
        let mut slot = 0;
        for (row, (position, count)) in self.rows.iter().enumerate() {
            for at in *position..position + count {
                let token = &self.qkv[slot * columns..][..columns];
                let head_of = |number: usize| &token[number * dim..][..dim];
                for query in 0..group * kv_heads {
                    let turned = self.turned(head_of(query), Some(0), at);
                    out.extend(self.attended(&turned, row, query / group, at));
                }
                slot += 1;
            }
        }
        out
    }

    /// Softmax over the positions up to `at`.
    fn attended(&self, query: &[f64], row: usize, head: usize, at: usize) -> Vec<f64> {
        let dim = query.len();
        let start = (row * self.kv_heads + head) * self.capacity * dim;
        let of = |which: usize, at: usize| wide(&self.cache[which][start + at * dim..][..dim]);
        let score =
            |at: usize| of(0, at).iter().zip(query).map(|(a, b)| a * b).sum::<f64>() / (dim as f64).sqrt();
        let scores: Vec<f64> = (0..=at).map(score).collect();
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let mut mixed = vec![0.0; dim];
        for (at, weight) in weights.iter().enumerate() {
            mixed.iter_mut().zip(of(1, at)).for_each(|(x, value)| *x += weight / sum * value);
        }
        mixed
    }

    /// Launches the kernel, where there are no splits behind the one of prompts; what comes out. The cache is as they leave it.
    fn run(&mut self, bench: &mut Bench) -> Vec<f32> {
        let (dim, queries, slots) = (bench.shape.head_dim, bench.shape.group * self.kv_heads, self.slots());
        let mut first = 0;
        let runs = self.rows.iter().flat_map(|(position, count)| {
            first += *count as u32;
            [first - *count as u32, *count as u32, *position as u32, 0]
        });
        let runs = runs.collect::<Vec<u32>>();
        let runs = bench.emulator.upload(&runs);
        let tickets = slots * self.kv_heads;
        let [query_norm, key_norm] = match &self.norms {
            Some([query, key]) => [bench.upload(query), bench.upload(key)],
            None => [0; 2],
        };
        let layer = AttentionArguments {
            qkv: bench.sums(&self.qkv, self.parts),
            keys: bench.upload(&self.cache[0]),
            values: bench.upload(&self.cache[1]),
            cosines: bench.emulator.upload(&self.turns[0]),
            sines: bench.emulator.upload(&self.turns[1]),
            query_norm,
            key_norm,
            parts: bench.emulator.allocate(4 * slots * queries * self.splits.max(1) * (dim + 2)),
            tickets: bench.emulator.upload(&vec![0u32; tickets]),
            kv_heads: self.kv_heads as u32,
            capacity: self.capacity as u32,
            positions: self.capacity as u32,
            epsilon: EPSILON,
        };
        let out = bench.allocate(slots * queries * dim);
        // The last slot is nobody's.
        let owners = self.rows.iter().enumerate().flat_map(|(row, (_, count))| vec![row as u32; *count]);
        let owners: Vec<u32> = owners.chain([NONE]).collect();
        let owners = bench.emulator.upload(&owners);
        if self.splits == 0 {
            let arguments = [layer.bytes(), argument(runs)];
            let grid = [2, self.kv_heads, self.rows.len()];
            bench.emulator.launch("append_all", grid, ATTEND_THREADS, &arguments);
        }
        let appends = argument(u32::from(self.splits > 0));
        let arguments = [layer.bytes(), argument(runs), argument(owners), argument(out), appends];
        let grid = [self.splits.max(1), self.kv_heads, slots + 1];
        bench.emulator.launch("attend", grid, ATTEND_THREADS, &arguments);
        assert!(bench.emulator.read::<u32>(layer.tickets, tickets).iter().all(|ticket| *ticket == 0));
        let size = self.cache[0].len();
        self.cache = [bench.read(layer.keys, size), bench.read(layer.values, size)];
        bench.read(out, slots * queries * dim)
    }
}

/// Runs of rows, `(length, tokens)`, beside the formula: new keys and values are there, and all else is as it was. Without splits
/// they are appended before.
fn check_attention(bench: &mut Bench, splits: (usize, usize), rows: &[(usize, usize)], normed: bool) {
    let mut attention = Attention::new(bench, splits, rows, normed);
    let [keys, values] = attention.appended(bench);
    let out = attention.run(bench);
    bench.check("keys", &attention.cache[0], &keys, bench.shape.head_dim);
    assert_eq!(wide(&attention.cache[1]), values);
    let expected = attention.expected(bench);
    bench.check("attend", &out, &expected, bench.shape.head_dim);
}

#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn attention_equals_its_formula() {
    // Runs of none, one and five tokens, from the start and behind others, and a row of the whole cache, of which each warp sees more
    // than 32 positions.
    let rows = [(0, 1), (40, 5), (7, 0), (95, 1), (0, 5), (63, 1), (130, 5), (199, 1)];
    each_shape(|bench| {
        for (splits, normed) in [((1, 0), true), ((4, 3), false), ((7, 0), true), ((0, 2), true)] {
            check_attention(bench, splits, &rows, normed);
        }
    });
}

/// A batch of rows whose texts have so many tokens of which so many were read, and whether they run.
fn batch_of(bench: &mut Bench, rows: &[(u32, u32, bool)]) -> BatchArguments {
    let stride = 40;
    let row = |(at, (count, read, _)): (usize, &(u32, u32, bool))| {
        let prompt = RowPrompt { read: 10 * at as u32, unread: 1 };
        let row = DeviceRow::new(&Noise::new(3, 4, at), 0, 0, prompt, stride - 1);
        DeviceRow { count: *count, read: *read, ..row }.words()
    };
    let words: Vec<u32> = rows.iter().enumerate().flat_map(row).collect();
    let texts: Vec<u32> = (0..rows.len() as u32 * stride).map(|i| i | (i % 3 / 2) << 31).collect();
    let ends: Vec<u32> = rows.iter().map(|(_, _, runs)| u32::from(!runs)).collect();
    BatchArguments {
        rows: bench.emulator.upload(&words),
        texts: bench.emulator.upload(&texts),
        ends: bench.emulator.upload(&ends),
        ended: bench.emulator.upload(&[0u32]),
        work: bench.emulator.upload(&[0u64; 5]),
        count: rows.len() as u32,
        stride,
    }
}

/// Lays out random rows, and compares with a loop.
fn check_pack(bench: &mut Bench, count: usize, slots: usize, seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let rows: Vec<(u32, u32, bool)> = (0..count)
        .map(|_| {
            let read = random.random_range(0..20);
            let longest = [1, 2, 12][random.random_range(0..3)];
            (read + random.random_range(1..=longest), read, random.random_range(0..5) > 0)
        })
        .collect();
    let batch = batch_of(bench, &rows);
    let (tokens, owners, runs, lasts) = (
        bench.emulator.allocate(4 * slots),
        bench.emulator.allocate(4 * slots),
        bench.emulator.allocate(16 * count),
        bench.emulator.allocate(4 * count),
    );
    let arrays = [tokens, owners, runs, lasts].map(argument);
    let arguments = [&[batch.bytes(), argument(slots as u32)][..], &arrays].concat();
    // As many threads as rows, or some more.
    let threads = count.max(slots * (seed % 2) as usize).next_multiple_of(32) as u32;
    bench.emulator.launch("pack", [1, 1, 1], threads, &arguments);
    let mut left = slots - rows.iter().filter(|row| row.2).count();
    let (mut expected_tokens, mut expected_runs, mut expected_lasts) = (Vec::new(), Vec::new(), Vec::new());
    let mut expected_owners = Vec::new();
    let mut reads = Vec::new();
    for (at, (count, read, runs)) in rows.into_iter().enumerate() {
        let more = if runs { (count - read - 1).min(left as u32) } else { 0 };
        left -= more as usize;
        let taken = u32::from(runs) + more;
        expected_runs.extend([expected_tokens.len() as u32, taken, 10 * at as u32 + read, 0]);
        expected_tokens.extend((0..taken).map(|i| at as u32 * 40 + read + i));
        expected_owners.extend((0..taken).map(|_| at as u32));
        let whole = taken > 0 && read + taken == count;
        expected_lasts.push(if whole { expected_tokens.len() as u32 - 1 } else { NONE });
        reads.push(read + taken);
    }
    expected_tokens.resize(slots, 0);
    expected_owners.resize(slots, NONE);
    assert_eq!(bench.emulator.read::<u32>(owners, slots), expected_owners);
    assert_eq!(bench.emulator.read::<u32>(tokens, slots), expected_tokens);
    assert_eq!(bench.emulator.read::<u32>(runs, 4 * count), expected_runs);
    assert_eq!(bench.emulator.read::<u32>(lasts, count), expected_lasts);
    let words = bench.emulator.read::<u32>(batch.rows, 16 * count);
    assert_eq!(words.chunks(16).map(|row| row[12]).collect::<Vec<_>>(), reads);
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn slots_are_laid_out_as_by_a_loop() {
    let mut bench = Bench::start(SHAPES[0]);
    for order in ORDERS.into_iter().chain([MIXED]) {
        bench.emulator.order(order);
        for (seed, (rows, slots)) in
            [(1, 2), (1, 1), (7, 9), (32, 64), (33, 34), (200, 300)].into_iter().enumerate()
        {
            for round in 0..4 {
                check_pack(&mut bench, rows, slots, 100 * seed as u64 + round);
            }
        }
    }
}

/// Draws from whole vocabularies, each row at its own position; compares with the CPU.
fn check_any(bench: &mut Bench, known: usize, sampling: &Sampling, excluded: &[u32], threads: u32) {
    let rows = 6;
    let lengths: Vec<(u32, u32, bool)> =
        (0..rows as u32).map(|row| (1 + 5 * row, 1 + 5 * row, row != 2)).collect();
    let batch = batch_of(bench, &lengths);
    let random = &mut bench.random;
    // Smooth and coarse ones, peaked and flat ones, and equal ones.
    let logits: Vec<f32> = (0..rows * known)
        .map(|i| match i / known {
            0 => random.random_range(-10.0f32..10.0),
            1 => random.random_range(-4i8..4).into(),
            3 => random.random_range(-0.01f32..0.01),
            4 => [0.0f32, -0.0, -20.0][random.random_range(0..3)],
            _ => random.random_range(-60.0f32..0.0),
        })
        .collect();
    let eos: Vec<u32> = (0..known as u32).filter(|id| id % 7 == 0).collect();
    let lasts: Vec<u32> = (0..rows as u32).map(|row| if row == 3 { NONE } else { row }).collect();
    let (logits_at, excluded_at) = (bench.emulator.upload(&logits), bench.emulator.upload(excluded));
    let (eos_at, lasts_at) = (bench.emulator.upload(&eos), bench.emulator.upload(&lasts));
    let arguments = [
        batch.bytes(),
        DrawArguments::from(sampling).bytes(),
        argument(lasts_at),
        argument(logits_at),
        argument(known as u32),
        argument(known as u32),
        argument(excluded_at),
        argument(excluded.len() as u32),
        argument(eos_at),
        argument(eos.len() as u32),
    ];
    bench.emulator.launch("choose_any", [rows, 1, 1], threads, &arguments);
    let (texts, words) = (
        bench.emulator.read::<u32>(batch.texts, rows * 40),
        bench.emulator.read::<u32>(batch.rows, rows * 16),
    );
    let ends = bench.emulator.read::<u32>(batch.ends, rows);
    for (at, (count, _, _)) in lengths.into_iter().enumerate() {
        let found = (words[16 * at + 11], RowEnd::from_number(ends[at]));
        if at == 2 || at == 3 {
            assert_eq!(found, (count, (at == 2).then_some(RowEnd::Eos)), "a row that does not choose");
            continue;
        }
        let candidates = Candidates::Except(&logits[at * known..][..known], excluded);
        let mut noise = Noise::new(3, 4, at);
        let token = draw(candidates, sampling, &mut noise, count as usize - 1).unwrap();
        if token.is_multiple_of(7) {
            assert_eq!(found, (count, Some(RowEnd::Eos)), "row {at}, {sampling:?}");
        } else {
            assert_eq!(
                (found, texts[at * 40 + count as usize]),
                ((count + 1, None), token),
                "row {at}, {sampling:?}"
            );
        }
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn draws_from_whole_vocabularies_are_those_of_the_cpu() {
    let mut bench = Bench::start(SHAPES[0]);
    let presets =
        ["greedy", "qwen3", "top-p-0.8-t1.2", "top-p-0.4-t1.0", "min-p-0.05-t0.8", "top-p-1.0-t1.4"];
    let sampling = |name: &&str| Sampling::preset(name).unwrap();
    let all = Sampling { temperature: Some(0.9), top_k: Some(200), top_p: Some(0.95), min_p: Some(0.02) };
    for order in ORDERS {
        bench.emulator.order(order);
        for sampling in presets.iter().map(sampling).chain([all]) {
            for (known, threads) in [(1, 32), (30, 32), (3_000, 64), (2_001, 256), (5_000, 512)] {
                let excluded: Vec<u32> = (0..known as u32).filter(|id| id % 5 == 3).collect();
                check_any(&mut bench, known, &sampling, &[], threads);
                check_any(&mut bench, known, &sampling, &excluded, threads);
            }
        }
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn logits_that_are_no_numbers_end_a_row() {
    let mut bench = Bench::start(SHAPES[0]);
    for (logits, expected) in [
        ([f32::NAN, 1.0], RowEnd::NotFinite),
        ([f32::NEG_INFINITY, f32::NEG_INFINITY], RowEnd::NotFinite),
        ([f32::INFINITY, 1.0], RowEnd::NotFinite),
    ] {
        for sampling in [Sampling::GREEDY, Sampling::QWEN3] {
            let batch = batch_of(&mut bench, &[(1, 1, true)]);
            let (logits, lasts) = (bench.emulator.upload(&logits), bench.emulator.upload(&[0u32]));
            let numbers = [
                argument(2u32),
                argument(2u32),
                argument(0u64),
                argument(0u32),
                argument(0u64),
                argument(0u32),
            ];
            let head =
                [batch.bytes(), DrawArguments::from(&sampling).bytes(), argument(lasts), argument(logits)];
            bench.emulator.launch("choose_any", [1, 1, 1], 32, &[&head[..], &numbers].concat());
            assert_eq!(RowEnd::from_number(bench.emulator.read::<u32>(batch.ends, 1)[0]), Some(expected));
        }
    }
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn launches_that_a_kernel_does_not_take_trap() {
    let mut bench = Bench::start(SHAPES[0]);
    let batch = batch_of(&mut bench, &[(1, 0, true), (1, 0, true)]);
    let out = bench.emulator.allocate(64);
    // One slot for two rows that run.
    let arguments = [&[batch.bytes(), argument(1u32)][..], &[out; 4].map(argument)].concat();
    let refused = bench.emulator.try_launch("pack", [1, 1, 1], 32, &arguments).unwrap_err();
    assert!(refused.contains("does not take"), "{refused}");
}

/// Everything once, small.
fn everything(bench: &mut Bench, texts: &Sample) {
    embedding_and_norms(bench, (3, 96), 64, 2);
    gate_and_head(bench, (3, 96), 64, 0);
    for (rows, blocks, columns) in [(3, 14, 48), (21, 4, 80)] {
        check_product(bench, rows, blocks, columns);
    }
    for splits in [(1, 0), (3, 2), (0, 0)] {
        check_attention(bench, splits, &[(20, 3), (0, 1), (7, 0)], true);
    }
    check_pack(bench, 70, 90, 3);
    let excluded: Vec<u32> = (0..300).filter(|id| id % 5 < 3).collect();
    for (temperature, top_k, top_p) in
        [(None, None, None), (Some(0.9), Some(60), Some(0.9)), (Some(2.0), None, Some(0.7))]
    {
        check_any(bench, 300, &Sampling { temperature, top_k, top_p, min_p: None }, &excluded, 96);
    }
    texts.check(&mut bench.emulator);
}

/// Nothing is read or written outside of what was given, or read before it was written, and no two threads race, as far as each
/// kernel is gone through here.
#[test]
#[cfg_attr(not(all(has_cxx, all_tests)), ignore = "needs a C++ compiler, takes long: DRIFT_ALL=1")]
fn kernels_neither_stray_nor_race() {
    let texts = Sample::new();
    for shape in [SHAPES[0], SHAPES[3], SHAPES[4], SHAPES[6]] {
        let mut bench = Bench::checked(shape);
        bench.emulator.order(MIXED);
        everything(&mut bench, &texts);
    }
}

/// Each barrier in turn is left out: that is a race, in whatever order threads run.
#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn a_barrier_that_is_left_out_shows() {
    let texts = Sample::new();
    let mut bench = Bench::checked(SHAPES[0]);
    everything(&mut bench, &texts);
    let barriers = bench.emulator.barriers();
    let shows = |barrier: &&String| {
        let mut bench = Bench::checked(SHAPES[0]);
        bench.emulator.leave_out(barrier);
        catch_unwind(AssertUnwindSafe(|| everything(&mut bench, &texts))).is_err()
    };
    let missed: Vec<&String> = barriers.iter().filter(|barrier| !shows(barrier)).collect();
    eprintln!("{} barriers", barriers.len());
    assert!(barriers.len() >= 30 && missed.is_empty(), "of {} barriers: {missed:?}", barriers.len());
}
