//! How fast texts are generated, beside candle-transformers and Hugging Face transformers on the same checkpoint,
//! prompts and logit processor.
//!
//! `cargo bench --profile peers -p drift-peer` makes a random Qwen3 checkpoint of 4.9M parameters and prints ratios;
//! `-- --peer PYTHON` adds transformers (`generate_peer.py`; needs torch and transformers), `--threads 2`, `--molecules
//! 4`, `--generations 32` and `--batch 32` set the size, `--only drift` leaves the others out, `--reference` takes the
//! reference checkpoint instead of random weights. The logit processor is the position template of
//! `0.0000,0.0000,0.0000` with an allowlist: every engine writes texts of the same lengths. On a machine that others use
//! too, CPU seconds (Linux) tell more than the clock.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "prints what it measures"
)]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use candle_core::{DType, Device as CandleDevice, Tensor};
use drift::constraint::{Constraint, Mask, State};
use drift::corpus::{Conformers, EmbeddedConformers};
use drift::generate::{Engine, GenerationResult, Options, Prompt, Sampling};
use drift::job::Job;
use drift::model::{Config, Device};
use drift::runs::cpu_seconds;
use drift::text::{skeleton, tagged};
use drift::tokenizer::{TokenRole, Tokenizer};
use drift_peer::CandleTransformers;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

/// The bars: this many times as many conformers per second.
const BAR_CANDLE: f64 = 2.0;
const BAR_TRANSFORMERS: f64 = 3.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| {
        arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).map(String::as_str)
    };
    let number =
        |name: &str, default| given(name).map_or(default, |text| text.parse().expect("a whole number"));
    let (threads, molecules, batch) =
        (number("--threads", 2), number("--molecules", 4), number("--batch", 32));
    let only = given("--only");
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("a thread pool");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).expect("the embedded tokenizer");
    if arguments.iter().any(|a| a == "--reference") {
        copy_reference(folder.path());
    } else {
        write_checkpoint(folder.path(), tokenizer.vocabulary().len());
    }
    let work = Work::new(&tokenizer, molecules, number("--generations", 32));
    let options = Options { batch, sampling: Sampling::QWEN3, ..Options::default() };

    let prompts = work.prompts();
    let mut drift = Engine::load(folder.path(), &Device::cpu()).expect("loads");
    let generate = || drift.generate(&prompts, &options, &Job::default()).expect("generates");
    let ours = measure("drift", generate);
    if only != Some("drift") {
        let mut candle = CandleTransformers::load(folder.path()).expect("loads");
        let theirs =
            measure("candle-transformers", || candle.generate(&prompts, &options).expect("generates"));
        println!("drift / candle-transformers: {} (bar {BAR_CANDLE})", ours.ratio(theirs));
    }
    if let Some(python) = given("--peer") {
        std::fs::write(folder.path().join("work.json"), work.json().to_string()).expect("writes");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/generate_peer.py");
        let run = Command::new(python)
            .arg(script)
            .arg(folder.path())
            .args([threads.to_string(), batch.to_string()])
            .output()
            .expect("the peer runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let peer: Value = serde_json::from_slice(&run.stdout).expect("the peer prints JSON");
        let field = |name: &str| peer[name].as_f64().expect("a number");
        let theirs = Speed { clock: field("conformers_per_second"), cpu: field("conformers_per_cpu_second") };
        println!("{:<20} {:7.2} conformers/s  {peer}", "transformers", theirs.clock);
        println!("drift / transformers: {} (bar {BAR_TRANSFORMERS})", ours.ratio(theirs));
    }
}

/// Conformers per second, and per CPU second.
#[derive(Clone, Copy)]
struct Speed {
    clock: f64,
    cpu: f64,
}

impl Speed {
    fn ratio(self, other: Speed) -> String {
        format!("{:.2}, by CPU seconds {:.2}", self.clock / other.clock, self.cpu / other.cpu)
    }
}

/// Runs once.
fn measure(name: &str, generate: impl FnOnce() -> GenerationResult) -> Speed {
    // Not a number where the system doesn't tell: then the clock alone counts.
    let cpu_now = || cpu_seconds().unwrap_or(f64::NAN);
    let cpu = cpu_now();
    let done = generate();
    let cpu = cpu_now() - cpu;
    let (timing, counts) = (done.timing, done.counts);
    let texts = done.samples.len() as f64;
    let speed = Speed { clock: texts / timing.total(), cpu: texts / cpu };
    println!(
        "{name:<20} {:7.2} conformers/s  {:7.2} conformers/CPU s  {:.0} tokens/s  {} steps  {:.2} ms/step",
        speed.clock,
        speed.cpu,
        counts.generated_tokens as f64 / timing.total(),
        counts.decode_steps,
        1e3 * timing.total() / counts.decode_steps as f64
    );
    let share = |part: f64| 100.0 * part / timing.total();
    println!(
        "{:<20} prefill {:.1} %  forward {:.1} %  LP {:.1} %  sampling {:.1} %  other {:.1} %  wasted positions {}",
        "",
        share(timing.prefill),
        share(timing.forward),
        share(timing.logit_processor),
        share(timing.sampling),
        share(timing.other),
        counts.wasted_positions
    );
    speed
}

/// The checkpoint that comes with drift.
fn copy_reference(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/qwen-like");
    for name in ["config.json", "generation_config.json", "model.safetensors"] {
        std::fs::copy(source.join(name), folder.join(name)).expect("the reference checkpoint");
    }
}

/// A random checkpoint of the shape of the reference models.
fn write_checkpoint(folder: &Path, vocab: usize) {
    let config = json!({"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": vocab,
        "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 64, "max_position_embeddings": 2048, "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu", "eos_token_id": 0,
        "torch_dtype": "float32"});
    let config: Config = serde_json::from_value(config).expect("a config");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut tensors = HashMap::new();
    let mut add = |name: String, shape: &[usize]| {
        let tensor = match shape {
            [size] => Tensor::ones(*size, DType::F32, &CandleDevice::Cpu),
            _ => {
                let numbers: Vec<f32> =
                    (0..shape.iter().product()).map(|_| random.random_range(-0.06..0.06)).collect();
                Tensor::from_vec(numbers, shape, &CandleDevice::Cpu)
            }
        };
        tensors.insert(name, tensor.expect("a tensor"));
    };
    add("model.embed_tokens.weight".into(), &[vocab, 256]);
    add("model.norm.weight".into(), &[256]);
    let layer: [(&str, &[usize]); 11] = [
        ("input_layernorm", &[256]),
        ("self_attn.q_proj", &[256, 256]),
        ("self_attn.k_proj", &[128, 256]),
        ("self_attn.v_proj", &[128, 256]),
        ("self_attn.o_proj", &[256, 256]),
        ("self_attn.q_norm", &[64]),
        ("self_attn.k_norm", &[64]),
        ("post_attention_layernorm", &[256]),
        ("mlp.gate_proj", &[768, 256]),
        ("mlp.up_proj", &[768, 256]),
        ("mlp.down_proj", &[256, 768]),
    ];
    for index in 0..config.num_hidden_layers {
        for (name, shape) in layer {
            add(format!("model.layers.{index}.{name}.weight"), shape);
        }
    }
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).expect("writes");
    std::fs::write(folder.join("config.json"), config.to_json()).expect("writes");
}

/// What every engine gets.
struct Work {
    generations: usize,
    prompts: Vec<Vec<u32>>,
    /// Forced tokens; `None` where the model chooses.
    templates: Vec<Vec<Option<u32>>>,
    allowed: Vec<u32>,
    end: u32,
}

impl Work {
    fn new(tokenizer: &Tokenizer, molecules: usize, generations: usize) -> Self {
        let mut skeletons = Vec::new();
        EmbeddedConformers::default()
            .read(&Job::default(), &mut |batch| {
                skeletons.extend(batch.conformers.into_iter().map(|conformer| conformer.skeleton));
                Ok(())
            })
            .expect("the embedded corpus reads");
        skeletons.dedup();
        // Spread over the corpus, so that sizes are mixed.
        let step = (skeletons.len() / molecules).max(1);
        let skeletons: Vec<Arc<str>> = skeletons.into_iter().step_by(step).take(molecules).collect();
        let prompt = |text: &Arc<str>| {
            tokenizer.ids(&format!("[SMILES]{}[/SMILES]", skeleton::smiles(text))).expect("encodes")
        };
        let template = |text: &Arc<str>| {
            let text = tagged(&skeleton::fill(text, "0.0000,0.0000,0.0000", drift::Encoding::FIXED));
            let tokens = tokenizer.tokens(&text).expect("encodes");
            tokens.iter().map(|token| (token.class == TokenRole::Copy).then_some(token.id)).collect()
        };
        let vocabulary = tokenizer.vocabulary();
        let number = |text: &str| text.bytes().all(|byte| b"0123456789.,-".contains(&byte));
        let mut allowed: Vec<u32> =
            vocabulary.iter().filter(|(text, _)| number(text)).map(|(_, id)| *id).collect();
        allowed.sort_unstable();
        Work {
            generations,
            prompts: skeletons.iter().map(prompt).collect(),
            templates: skeletons.iter().map(template).collect(),
            allowed,
            end: vocabulary["<|endoftext|>"],
        }
    }

    fn prompts(&self) -> Vec<Prompt> {
        let prompt = |(number, (tokens, template)): (usize, (&Vec<u32>, &Vec<Option<u32>>))| {
            let (positions, allowed) = (template.clone(), self.allowed.clone());
            Prompt {
                number,
                done: [].into(),
                tokens: tokens.clone(),
                generations: self.generations,
                expected_tokens: positions.len(),
                most_tokens: positions.len() + 1,
                constraint: Arc::new(Template { positions, allowed, end: self.end }),
            }
        };
        self.prompts.iter().zip(&self.templates).enumerate().map(prompt).collect()
    }

    fn json(&self) -> Value {
        json!({"prompts": self.prompts, "templates": self.templates, "generations": self.generations,
            "allowed": self.allowed, "end": self.end})
    }
}

/// A position template.
struct Template {
    positions: Vec<Option<u32>>,
    allowed: Vec<u32>,
    end: u32,
}

impl Constraint for Template {
    fn start(&self) -> State {
        State::default()
    }

    fn mask(&self, state: &State) -> Mask<'_> {
        match self.positions.get(state.at as usize) {
            None => Mask::Forced(self.end),
            Some(Some(token)) => Mask::Forced(*token),
            Some(None) => Mask::Only(&self.allowed),
        }
    }

    fn advance(&self, state: &mut State, _: u32) {
        state.at += 1;
    }

    fn is_over(&self, _: &State, token: u32) -> bool {
        token == self.end
    }
}
