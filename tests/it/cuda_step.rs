//! Whole steps on the device beside the decoder on the CPU: pack, layers, LM head and greedy choice, with products in place of
//! those of libraries.

use std::collections::HashMap;

use drift::model::cuda::{
    ATTEND_THREADS, AttentionArguments, BatchArguments, DeviceRow, DrawArguments, KernelShape, RowPrompt,
    SumsArguments,
};
use drift::model::{Architecture, Config, Decoder, Device, Feed, HiddenStates, Room, rotary_tables};
use drift::sampling::{Noise, Sampling};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

use crate::cuda_emulator::{Emulator, ORDERS, argument};
use crate::support::Folder;

const NONE: u32 = u32::MAX;
const ROWS: usize = 3;
/// More than rows, fewer than the longest prompt.
const SLOTS: usize = 7;
const CAPACITY: usize = 48;
const STRIDE: usize = 48;
const SPLITS: usize = 3;

/// A model of random numbers: its settings, and its weights by name.
struct Model {
    config: Config,
    json: Value,
    weights: HashMap<String, (Vec<usize>, Vec<f32>)>,
}

impl Model {
    fn new(qwen3: bool, head_dim: usize, kv_heads: usize) -> Self {
        let (vocab, hidden, inner, heads) = (50, 72, 96, 4);
        let json = json!({
            "architectures": [if qwen3 { "Qwen3ForCausalLM" } else { "LlamaForCausalLM" }],
            "model_type": if qwen3 { "qwen3" } else { "llama" },
            "vocab_size": vocab, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": 2,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim,
            "max_position_embeddings": CAPACITY, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
            "tie_word_embeddings": false, "hidden_act": "silu",
        });
        let config: Config = serde_json::from_value(json.clone()).unwrap();
        let (queries, keys) = (heads * head_dim, kv_heads * head_dim);
        let mut shapes = vec![
            ("model.embed_tokens".to_owned(), vec![vocab, hidden]),
            ("model.norm".to_owned(), vec![hidden]),
            ("lm_head".to_owned(), vec![vocab, hidden]),
        ];
        for layer in 0..2 {
            let parts = [
                ("input_layernorm", vec![hidden]),
                ("post_attention_layernorm", vec![hidden]),
                ("self_attn.q_proj", vec![queries, hidden]),
                ("self_attn.k_proj", vec![keys, hidden]),
                ("self_attn.v_proj", vec![keys, hidden]),
                ("self_attn.o_proj", vec![hidden, queries]),
                ("mlp.gate_proj", vec![inner, hidden]),
                ("mlp.up_proj", vec![inner, hidden]),
                ("mlp.down_proj", vec![hidden, inner]),
                ("self_attn.q_norm", vec![head_dim]),
                ("self_attn.k_norm", vec![head_dim]),
            ];
            let parts = parts.into_iter().filter(|(name, _)| qwen3 || !name.contains("attn.q_norm"));
            let parts = parts.filter(|(name, _)| qwen3 || !name.contains("attn.k_norm"));
            shapes.extend(parts.map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)));
        }
        let mut random = ChaCha8Rng::seed_from_u64(9);
        let weights = shapes.into_iter().map(|(name, shape)| {
            let size = shape.iter().product();
            let most = if shape.len() == 1 { 1.5 } else { 0.3 };
            let numbers = (0..size).map(|_| random.random_range(-most..most)).collect();
            (format!("{name}.weight"), (shape, numbers))
        });
        Model { config, json, weights: weights.collect() }
    }

    fn weight(&self, name: &str) -> &[f32] {
        &self.weights[&format!("{name}.weight")].1
    }

    /// Of a layer, some matrices one above the other.
    fn stacked(&self, layer: usize, names: &[&str]) -> Vec<f32> {
        names.iter().flat_map(|name| self.weight(&format!("model.layers.{layer}.{name}"))).copied().collect()
    }

    /// The same on the CPU.
    fn decoder(&self) -> Decoder {
        let folder = Folder::new();
        folder.file("config.json", self.json.to_string());
        let bytes: HashMap<&String, Vec<u8>> = (self.weights.iter())
            .map(|(name, (_, numbers))| (name, numbers.iter().flat_map(|x| x.to_le_bytes()).collect()))
            .collect();
        let views = self.weights.iter().map(|(name, (shape, _))| {
            (name.clone(), TensorView::new(Dtype::F32, shape.clone(), &bytes[name]).unwrap())
        });
        let views: HashMap<String, TensorView<'_>> = views.collect();
        folder.file("model.safetensors", serialize(views, None).unwrap());
        Decoder::load(&folder.path(), &Device::cpu()).unwrap()
    }
}

/// The device with the model's memory.
struct Steps<'m> {
    emulator: Emulator,
    model: &'m Model,
    batch: BatchArguments,
    /// Keys and values by layer.
    cache: Vec<[u64; 2]>,
    turns: [u64; 2],
    tickets: u64,
    tokens: u64,
    owners: u64,
    runs: u64,
    lasts: u64,
    logits: u64,
    /// Whether keys and values are written by a launch of their own.
    appends_before: bool,
}

impl<'m> Steps<'m> {
    fn new(mut emulator: Emulator, model: &'m Model, prompts: &[Vec<u32>], appends_before: bool) -> Self {
        let config = &model.config;
        let mut texts = vec![0u32; ROWS * STRIDE];
        let mut rows = Vec::new();
        for (at, prompt) in prompts.iter().enumerate() {
            texts[at * STRIDE..][..prompt.len()].copy_from_slice(prompt);
            let unread = prompt.len() as u32;
            let prompt = RowPrompt { read: 0, unread };
            let row = DeviceRow::new(&Noise::new(1, 2, at), 0, 0, prompt, STRIDE as u32 - unread);
            rows.extend(row.words());
        }
        let batch = BatchArguments {
            rows: emulator.upload(&rows),
            texts: emulator.upload(&texts),
            ends: emulator.upload(&[0u32; ROWS]),
            ended: emulator.upload(&[0u32]),
            work: emulator.upload(&[0u64; 5]),
            count: ROWS as u32,
            stride: STRIDE as u32,
        };
        let side = 4 * ROWS * config.num_key_value_heads * CAPACITY * config.head_dim;
        let turns = rotary_tables(config, CAPACITY);
        Steps {
            batch,
            cache: (0..2).map(|_| [emulator.allocate(side), emulator.allocate(side)]).collect(),
            turns: turns.map(|table| emulator.upload(&table)),
            tickets: emulator.upload(&vec![0u32; SLOTS * config.num_key_value_heads]),
            tokens: emulator.allocate(4 * SLOTS),
            owners: emulator.allocate(4 * SLOTS),
            runs: emulator.allocate(16 * ROWS),
            lasts: emulator.allocate(4 * ROWS),
            logits: emulator.allocate(4 * ROWS * config.vocab_size),
            emulator,
            model,
            appends_before,
        }
    }

    /// `x · weightᵀ` for `[SLOTS, in]` and `[out, in]`, as a library computes it.
    fn product(&mut self, x: u64, weight: &[f32], columns: usize) -> u64 {
        let x = self.emulator.read::<f32>(x, SLOTS * columns);
        let dot = |a: &[f32], b: &[f32]| -> f32 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>() as f32
        };
        let out = x.chunks(columns).flat_map(|x| weight.chunks(columns).map(move |row| dot(x, row)));
        let out: Vec<f32> = out.collect();
        self.emulator.upload(&out)
    }

    fn attend(&mut self, layer: usize, qkv: u64) -> u64 {
        let config = &self.model.config;
        let (dim, kv_heads, heads) =
            (config.head_dim, config.num_key_value_heads, config.num_attention_heads);
        let norms = match config.architecture {
            Architecture::Qwen3 => ["self_attn.q_norm", "self_attn.k_norm"]
                .map(|name| self.emulator.upload(&self.model.stacked(layer, &[name]))),
            Architecture::Llama => [0; 2],
        };
        let arguments = AttentionArguments {
            qkv: SumsArguments::whole(qkv),
            keys: self.cache[layer][0],
            values: self.cache[layer][1],
            cosines: self.turns[0],
            sines: self.turns[1],
            query_norm: norms[0],
            key_norm: norms[1],
            parts: self.emulator.allocate(4 * SLOTS * heads * SPLITS * (dim + 2)),
            tickets: self.tickets,
            kv_heads: kv_heads as u32,
            capacity: CAPACITY as u32,
            positions: CAPACITY as u32,
            epsilon: config.rms_norm_eps as f32,
        };
        let out = self.emulator.allocate(4 * SLOTS * heads * dim);
        let [layer, runs] = [arguments.bytes(), argument(self.runs)];
        if self.appends_before {
            let arguments = [layer.clone(), runs.clone()];
            self.emulator.launch("append_all", [1, kv_heads, ROWS], ATTEND_THREADS, &arguments);
        }
        let appends = argument(u32::from(!self.appends_before));
        let arguments = [layer, runs, argument(self.owners), argument(out), appends];
        self.emulator.launch("attend", [SPLITS, kv_heads, SLOTS], ATTEND_THREADS, &arguments);
        out
    }

    /// The layers: the normed states of the last tokens, `[ROWS, hidden]`.
    fn layers(&mut self) -> u64 {
        let model = self.model;
        let (columns, inner) = (model.config.hidden_size, model.config.intermediate_size);
        let tail = [argument(columns as u32), argument(model.config.rms_norm_eps as f32)];
        let [hidden, normed, rows, act] =
            [columns, columns, columns, inner].map(|size| self.emulator.allocate(4 * SLOTS * size));
        let table = self.emulator.upload(model.weight("model.embed_tokens"));
        let weight = self.emulator.upload(&model.stacked(0, &["input_layernorm"]));
        let head = [table, self.tokens, weight, hidden, normed].map(argument);
        let vocab = [argument(model.config.vocab_size as u32)];
        self.emulator.launch("embed", [SLOTS, 1, 1], 64, &[&head[..], &vocab, &tail].concat());
        for layer in 0..2 {
            let qkv = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"];
            let qkv = self.product(normed, &model.stacked(layer, &qkv), columns);
            let mixed = self.attend(layer, qkv);
            let queries = model.config.num_attention_heads * model.config.head_dim;
            let added = self.product(mixed, &model.stacked(layer, &["self_attn.o_proj"]), queries);
            let weight = self.emulator.upload(&model.stacked(layer, &["post_attention_layernorm"]));
            let arguments = added_to(hidden, added, &[weight, normed], &tail);
            self.emulator.launch("add_norm", [SLOTS, 1, 1], 64, &arguments);
            let gate_up = model.stacked(layer, &["mlp.gate_proj", "mlp.up_proj"]);
            let gate_up = self.product(normed, &gate_up, columns);
            let arguments = [SumsArguments::whole(gate_up).bytes(), argument(act), argument(inner as u32)];
            self.emulator.launch("gated", [1, SLOTS, 1], 64, &arguments);
            let added = self.product(act, &model.stacked(layer, &["mlp.down_proj"]), inner);
            if layer == 0 {
                let weight = self.emulator.upload(&model.stacked(1, &["input_layernorm"]));
                let arguments = added_to(hidden, added, &[weight, normed], &tail);
                self.emulator.launch("add_norm", [SLOTS, 1, 1], 64, &arguments);
            } else {
                let weight = self.emulator.upload(model.weight("model.norm"));
                let arguments = added_to(hidden, added, &[weight, self.lasts, rows], &tail);
                self.emulator.launch("last_norm", [ROWS, 1, 1], 64, &arguments);
            }
        }
        rows
    }

    /// One step; the logits of rows that choose, and the tokens that they have then.
    fn step(&mut self) -> Vec<(usize, Vec<f32>, Vec<u32>)> {
        let vocab = self.model.config.vocab_size;
        let arguments = [
            self.batch.bytes(),
            argument(SLOTS as u32),
            argument(self.tokens),
            argument(self.owners),
            argument(self.runs),
            argument(self.lasts),
        ];
        self.emulator.launch("pack", [1, 1, 1], 32, &arguments);
        let rows = self.layers();
        let weight = self.emulator.upload(self.model.weight("lm_head"));
        let head = [rows, weight, self.lasts, self.logits].map(argument);
        let sizes = [self.model.config.hidden_size, vocab, vocab].map(|size| argument(size as u32));
        self.emulator.launch("head", [4, ROWS, 1], 64, &[&head[..], &sizes].concat());
        let lasts = self.emulator.read::<u32>(self.lasts, ROWS);
        let logits = self.emulator.read::<f32>(self.logits, ROWS * vocab);
        let mut arguments = vec![self.batch.bytes(), DrawArguments::from(&Sampling::GREEDY).bytes()];
        arguments.extend([self.lasts, self.logits].map(argument));
        arguments.extend([vocab, vocab].map(|size| argument(size as u32)));
        arguments.extend([argument(0u64), argument(0u32), argument(0u64), argument(0u32)]);
        self.emulator.launch("choose_any", [ROWS, 1, 1], 64, &arguments);
        let words = self.emulator.read::<u32>(self.batch.rows, 16 * ROWS);
        let texts = self.emulator.read::<u32>(self.batch.texts, ROWS * STRIDE);
        let chose = (0..ROWS).filter(|row| lasts[*row] != NONE);
        let chosen = |row: usize| {
            let text = texts[row * STRIDE..][..words[16 * row + 11] as usize].to_vec();
            (row, logits[row * vocab..][..vocab].to_vec(), text)
        };
        chose.map(chosen).collect()
    }
}

/// Arguments of a norm of what is added to the hidden states.
fn added_to(hidden: u64, added: u64, arrays: &[u64], tail: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let arrays: Vec<Vec<u8>> = arrays.iter().map(|address| argument(*address)).collect();
    [&[argument(hidden), SumsArguments::whole(added).bytes()][..], &arrays, tail].concat()
}

/// Writes greedily behind prompts of different lengths; logits to 1e-5 of the largest, and the same tokens.
fn compare(model: &Model, order: u32, appends_before: bool) {
    let shape = KernelShape::from_config(&model.config, false).unwrap();
    let mut emulator = Emulator::start(shape);
    emulator.order(order);
    let prompts = [vec![3], vec![5, 9, 1, 40, 2], (0..17).map(|i| i * 3 % 50).collect()];
    let mut steps = Steps::new(emulator, model, &prompts, appends_before);
    let decoder = model.decoder();
    let mut cache = decoder.cache(ROWS, CAPACITY, Room::Static).unwrap();
    let (mut worst, mut compared) = (0f32, [0; ROWS]);
    for _ in 0..14 {
        for (row, found, text) in steps.step() {
            let read = &text[cache.lengths()[row]..text.len() - 1];
            let hidden =
                decoder.forward(&[Feed { row, tokens: read }], &mut cache, HiddenStates::Last).unwrap();
            let expected: Vec<f32> =
                decoder.logits(&hidden).unwrap().flatten_all().unwrap().to_vec1().unwrap();
            let scale = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
            for (x, y) in found.iter().zip(&expected) {
                worst = worst.max((x - y).abs() / scale);
            }
            let best = (0..expected.len()).max_by(|a, b| expected[*a].total_cmp(&expected[*b])).unwrap();
            assert_eq!(text[text.len() - 1], best as u32);
            compared[row] += 1;
        }
    }
    eprintln!("{shape:?}, order {order}: {compared:?} steps, {worst:e}");
    assert!(worst <= 1e-5, "{worst}");
    assert!(compared.iter().all(|steps| *steps >= 10), "{compared:?}");
}

#[test]
#[cfg_attr(not(has_cxx), ignore = "needs a C++ compiler: c++, g++ or $CXX")]
fn steps_are_those_of_the_decoder() {
    for (qwen3, head_dim, kv_heads) in [(true, 64, 2), (false, 64, 1), (true, 128, 4), (true, 48, 2)] {
        let model = Model::new(qwen3, head_dim, kv_heads);
        for (order, appends_before) in ORDERS.into_iter().zip([false, true]) {
            compare(&model, order, appends_before);
        }
    }
}
