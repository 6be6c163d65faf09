//! Training that starts at a checkpoint: read as transformers reads it, carried on, written back as it came.

use std::collections::HashMap;
use std::path::Path;

use candle_core::Device;
use drift::job::Job;
use drift::model::{Architecture, Config, Llama3Scaling, load_numbers};
use drift::tokenizer::{Tokenizer, config_beside};
use drift::train::autograd::Autograd;
use drift::train::batches::Batches;
use drift::train::documents::{Document, Loss, Writer, pack};
use drift::train::network::{Network, Pack, Target};
use drift::train::parameters::ParameterLayout;
use drift::train::{Gradients, InitCheckpoint, Schedule, Start, TrainPlan, train};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde_json::{Value, json};

use super::model::{MODELS, golden, model};
use super::support::{Folder, Ran};
use super::train::{cancelled_after, config, plan, random_pack, small_corpus, weights};

/// A config that differs from those of random starts in all that a checkpoint may.
fn unusual(architecture: Architecture) -> Config {
    Config {
        rms_norm_eps: 1e-3,
        rope_theta: 700.0,
        rope_scaling: Some(Llama3Scaling {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 16,
        }),
        tie_word_embeddings: false,
        ..config(architecture)
    }
}

#[test]
fn recorded_gradients_are_those_written_out_by_hand() {
    for architecture in [Architecture::Qwen3, Architecture::Llama] {
        for config in [config(architecture), unusual(architecture)] {
            let packs = [random_pack(&[9, 150, 2, 33], 1), random_pack(&[40], 2)];
            let network = Network::new(&config, 150);
            let recorded = Autograd::new(&config, 150, &Device::Cpu).unwrap();
            let flat = weights(&network, 2);
            let tensors = network.weights(&flat).unwrap();
            let [(a, mut ours), (b, more)] = [0, 1].map(|n| network.gradient(&tensors, &packs[n]).unwrap());
            ours.iter_mut().zip(&more).for_each(|(sum, more)| *sum += more);
            let vars = recorded.weights(&flat).unwrap();
            let (loss, theirs) = recorded.gradient(&vars, &packs).unwrap();
            assert!((loss - (a + b)).abs() < 1e-5 * loss, "{loss} {a} {b}");
            for parameter in &network.layout.parameters {
                let [ours, theirs] = [&ours, &theirs].map(|all| &all[parameter.range.clone()]);
                let error =
                    ours.iter().zip(theirs).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
                let size = ours.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>().sqrt();
                assert!(size > 1e-3, "{architecture:?} {} receives no gradient", parameter.name);
                assert!(error < 1e-4 * size, "{architecture:?} {}: {error} of {size}", parameter.name);
            }
            let [ours, theirs] =
                [network.predict(&tensors, &packs[0]).unwrap(), recorded.predict(&vars, &packs[0]).unwrap()];
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert!((ours.nats - theirs.nats).abs() < 1e-3 && ours.right == theirs.right);
            }
        }
    }
}

#[test]
fn a_whole_training_of_recorded_gradients_goes_the_same_way() {
    let corpus = small_corpus();
    let curve = |gradients: Gradients| {
        let out = Folder::new();
        let mut plan = plan(Architecture::Qwen3, 10, out.path());
        plan.gradients = gradients;
        train(&plan, &corpus.files(), &Job::default()).unwrap()
    };
    let (ours, theirs) = (curve(Gradients::ByHand), curve(Gradients::Autograd(Device::Cpu)));
    assert_eq!(ours.recipe, theirs.recipe, "a state can be carried from one to the other");
    for (ours, theirs) in ours.curve.iter().zip(&theirs.curve) {
        assert!((ours.loss - theirs.loss).abs() < 1e-3 * ours.loss, "{ours:?} {theirs:?}");
        assert!((ours.gradient_norm - theirs.gradient_norm).abs() < 1e-2 * ours.gradient_norm);
    }
    let [ours, theirs] = [ours.stored.unwrap(), theirs.stored.unwrap()];
    let [own, other] = [ours, theirs].map(|stored| stored.nats_per_token.unwrap());
    assert!((own - other).abs() < 1e-2, "{ours:?} {theirs:?}");
    assert_eq!(ours.conformers, theirs.conformers);
}

#[test]
fn the_first_loss_is_the_one_that_transformers_computes() {
    for name in MODELS {
        let (folder, (tokens, logits)) = (model(name), golden(name));
        let config = Config::load(&folder).unwrap();
        let layout = ParameterLayout::new(&config);
        let (flat, files) = load_numbers(&folder, layout.tensors()).unwrap();
        assert_eq!((flat.len(), files.len()), (layout.size(), if name == "qwen3-untied" { 4 } else { 1 }));
        let expected: f64 = (1..tokens.len())
            .map(|at| {
                let row = &logits[at - 1];
                let sum: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
                sum.ln() - f64::from(row[tokens[at] as usize])
            })
            .sum();
        let targets = (1..tokens.len()).map(|at| Target { row: at - 1, token: tokens[at], weight: 1.0 });
        let documents = std::iter::once(0..tokens.len()).collect();
        let pack = Pack { targets: targets.collect(), documents, tokens };
        let network = Network::new(&config, pack.tokens.len());
        let (loss, _) = network.gradient(&network.weights(&flat).unwrap(), &pack).unwrap();
        assert!((loss - expected).abs() < 1e-5 * expected, "{name}: {loss} {expected}");
        let recorded = Autograd::new(&config, pack.tokens.len(), &Device::Cpu).unwrap();
        let (loss, _) = recorded.gradient(&recorded.weights(&flat).unwrap(), &[pack]).unwrap();
        assert!((loss - expected).abs() < 1e-5 * expected, "{name}, recorded: {loss} {expected}");
    }
}

/// The numbers of a tensor in a type.
fn numbers(values: &[f32], dtype: Dtype) -> Vec<u8> {
    match dtype {
        Dtype::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Dtype::F16 => values.iter().flat_map(|&v| half::f16::from_f32(v).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|&v| half::bf16::from_f32(v).to_le_bytes()).collect(),
    }
}

/// Writes a checkpoint with random weights for qwen-like, with spare rows, in two shards.
fn checkpoint(folder: &Folder, name: &str, architecture: Architecture, dtype: Dtype) -> Config {
    let mut config = unusual(architecture);
    config.vocab_size = 2048;
    config.eos_token_ids = vec![0, 1];
    config.torch_dtype = None;
    let mut written: Value = serde_json::from_str(&config.to_json()).unwrap();
    written["initializer_range"] = json!(0.02);
    written["transformers_version"] = "5.0.0".into();
    folder.file(&format!("{name}/config.json"), written.to_string());
    let layout = ParameterLayout::new(&config);
    let flat = layout.initial(3);
    let stored: Vec<(String, Vec<usize>, Vec<u8>)> = layout
        .parameters
        .iter()
        .map(|p| (p.name.clone(), p.shape.clone(), numbers(&flat[p.range.clone()], dtype)))
        .collect();
    let mut map = serde_json::Map::new();
    for (n, part) in stored.chunks(stored.len().div_ceil(2)).enumerate() {
        let shard = format!("model-{n}.safetensors");
        let view = |(name, shape, bytes)| (name, TensorView::new(dtype, shape, bytes).unwrap());
        let views = part.iter().map(|(name, shape, bytes)| view((name.clone(), shape.clone(), &bytes[..])));
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        folder
            .file(&format!("{name}/{shard}"), serialize(views.collect::<Vec<_>>(), Some(metadata)).unwrap());
        map.extend(part.iter().map(|(name, ..)| (name.clone(), shard.clone().into())));
    }
    folder.file(&format!("{name}/model.safetensors.index.json"), json!({ "weight_map": map }).to_string());
    let (_, tokenizer) = Tokenizer::load_with_json("qwen-like".as_ref()).unwrap();
    folder.file(&format!("{name}/tokenizer.json"), tokenizer);
    let beside = config_beside("qwen-like".as_ref()).unwrap().unwrap();
    folder.file(&format!("{name}/tokenizer_config.json"), beside.to_string());
    config
}

/// A plan that carries `init` on with its own tokenizer.
fn carried_on(init: &Path, steps: u64, output: std::path::PathBuf) -> TrainPlan {
    let mut plan = plan(Architecture::Qwen3, steps, output);
    plan.start = Start::Checkpoint(Box::new(InitCheckpoint::open(init, Some(256)).unwrap()));
    plan
}

/// The tensors of all files of a checkpoint.
fn tensors(folder: &Path) -> Vec<(String, Dtype, Vec<usize>, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "safetensors") {
            let bytes = std::fs::read(path).unwrap();
            let file = SafeTensors::deserialize(&bytes).unwrap();
            all.extend(
                file.tensors()
                    .into_iter()
                    .map(|(name, t)| (name, t.dtype(), t.shape().to_vec(), t.data().to_vec())),
            );
        }
    }
    all.sort();
    all
}

#[test]
fn a_checkpoint_that_learns_nothing_is_written_as_it_came() {
    let corpus = small_corpus();
    for (architecture, dtype) in [
        (Architecture::Qwen3, Dtype::BF16),
        (Architecture::Llama, Dtype::F16),
        (Architecture::Llama, Dtype::F32),
    ] {
        let folder = Folder::new();
        let config = checkpoint(&folder, "base", architecture, dtype);
        let (base, out) = (folder.path().join("base"), folder.path().join("out"));
        let mut plan = carried_on(&base, 1, out.clone());
        plan.schedule.learning_rate = 1e-30;
        plan.schedule.weight_decay = 0.0;
        let report = train(&plan, &corpus.files(), &Job::default()).unwrap();
        assert!(tensors(&base) == tensors(&out), "{dtype:?}");
        assert_eq!(Config::load(&out).unwrap().vocab_size, 2048, "spare rows stay");
        let [before, mut after] = ["base", "out"].map(|name| -> Value {
            serde_json::from_slice(&folder.read(&format!("{name}/config.json"))).unwrap()
        });
        let end = plan.tokenizer.end_of_text(plan.tokenizer_config.as_ref()).unwrap();
        assert_eq!(after["eos_token_id"], end.id, "the documents' end is the model's");
        after["eos_token_id"] = before["eos_token_id"].clone();
        assert_eq!(before, after);
        let init = report.recipe.init.as_ref().unwrap();
        assert_eq!((init.files.len(), init.new_tokens, init.by_drift), (3, 0, false));
        // What goes on from a checkpoint of drift's own has seen no test molecule; what went on from another may have.
        for (recipe, by_drift) in
            [(json!({"inputs": []}), true), (serde_json::to_value(&report.recipe).unwrap(), false)]
        {
            folder.file("base/recipe.json", json!({ "recipe": recipe }).to_string());
            let report = train(&plan, &corpus.files(), &Job::default()).unwrap();
            assert_eq!(report.recipe.init.unwrap().by_drift, by_drift);
        }
        assert_eq!(report.recipe.shape.hidden, config.hidden_size);

        // The loss of the first update is that of the checkpoint.
        let layout = ParameterLayout::new(&config);
        let (flat, _) = load_numbers(&base, layout.tensors()).unwrap();
        let network = Network::new(&config, 256);
        let loss = report.curve[0].loss;
        assert!((loss - first_loss(&plan, &network, &flat)).abs() < 1e-6 * loss, "{loss}");
    }
}

/// The mean loss over the documents of the first update, by `network` alone.
fn first_loss(plan: &TrainPlan, network: &Network, flat: &[f32]) -> f64 {
    let end = plan.tokenizer.end_of_text(plan.tokenizer_config.as_ref()).unwrap();
    let writer =
        Writer { tokenizer: &plan.tokenizer, end: &end, encoding: plan.encoding, context: 256, keep: false };
    let documents = writer.documents(&small_corpus().files(), &Job::default()).unwrap().train;
    let Schedule { batch_tokens, shortest_first, .. } = plan.schedule;
    let lengths = documents.iter().map(|document| document.tokens.len()).collect();
    let first = Batches::new(lengths, batch_tokens, plan.seed, shortest_first).next().unwrap();
    let batch: Vec<Document> = first.into_iter().map(|at| documents[at].clone()).collect();
    let pack = pack(&batch, Loss::default());
    let (loss, _) = network.gradient(&network.weights(flat).unwrap(), &pack).unwrap();
    loss / pack.targets.iter().map(|target| f64::from(target.weight)).sum::<f64>()
}

#[test]
fn carrying_on_ends_in_the_same_bytes_for_any_number_of_threads_and_over_interruptions() {
    let (corpus, folder) = (small_corpus(), Folder::new());
    checkpoint(&folder, "base", Architecture::Qwen3, Dtype::BF16);
    let base = folder.path().join("base");
    let threads = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let whole = carried_on(&base, 9, folder.path().join("whole"));
    threads(1).install(|| train(&whole, &corpus.files(), &Job::default())).unwrap();
    let mut parts = carried_on(&base, 9, folder.path().join("parts"));
    for steps in [2, 3] {
        threads(2).install(|| train(&parts, &corpus.files(), &cancelled_after(steps))).unwrap_err();
        parts.resume = true;
    }
    threads(2).install(|| train(&parts, &corpus.files(), &Job::default())).unwrap();
    for name in ["recipe.json", "model.safetensors", "config.json", "generation_config.json"] {
        assert!(folder.read(&format!("whole/{name}")) == folder.read(&format!("parts/{name}")), "{name}");
    }
    assert!(tensors(&base) != tensors(&folder.path().join("whole")), "it learned");

    // The state of another checkpoint is refused.
    parts.resume = false;
    train(&parts, &corpus.files(), &cancelled_after(2)).unwrap_err();
    let shard = folder.path().join("base/model-0.safetensors");
    let mut bytes = std::fs::read(&shard).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let mut parts = carried_on(&base, 9, folder.path().join("parts"));
    parts.resume = true;
    let refused = train(&parts, &corpus.files(), &Job::default()).unwrap_err().to_string();
    assert!(refused.contains("another recipe: init.files.sha256 was"), "{refused}");
}

#[test]
fn rows_of_new_tokens_are_trained_alone_at_first() {
    let (corpus, folder) = (small_corpus(), Folder::new());
    let config = checkpoint(&folder, "base", Architecture::Qwen3, Dtype::F32);
    let layout = ParameterLayout::new(&config);
    let (before, _) = load_numbers(&folder.path().join("base"), layout.tensors()).unwrap();
    let known = Tokenizer::load("qwen-like".as_ref()).unwrap().vocabulary();
    let extended = Tokenizer::load("qwen-like-separate".as_ref()).unwrap();
    let new: Vec<u32> = extended
        .vocabulary()
        .into_iter()
        .filter(|(token, _)| !known.contains_key(token))
        .map(|(_, id)| id)
        .collect();
    let changed = |steps: u64| {
        let mut plan = carried_on(&folder.path().join("base"), 8, folder.path().join("out"));
        let (tokenizer, json) = Tokenizer::load_with_json("qwen-like-separate".as_ref()).unwrap();
        (plan.tokenizer, plan.tokenizer_json) = (tokenizer, json);
        plan.schedule.new_rows_steps = 3;
        plan.schedule.warmup_steps = 2;
        train(&plan, &corpus.files(), &cancelled_after(steps)).unwrap_err();
        let bytes = folder.read("out/training.safetensors");
        let state = SafeTensors::deserialize(&bytes).unwrap();
        let after = state.tensor("weights").unwrap();
        let after = after.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let [mut rows, mut others] = [0, 0];
        for (at, (before, after)) in before.iter().zip(after).enumerate() {
            let table = layout.parameters.iter().find(|p| p.range.contains(&at)).unwrap();
            let row = (at - table.range.start) / config.hidden_size;
            let is_table = ["model.embed_tokens.weight", "lm_head.weight"].contains(&&*table.name);
            let counter = if is_table && new.contains(&(row as u32)) { &mut rows } else { &mut others };
            *counter += usize::from(*before != after);
        }
        (rows, others)
    };
    let (rows, others) = changed(3);
    assert!(rows > new.len() * config.hidden_size && others == 0, "{rows} {others}");
    let (_, others) = changed(4);
    assert!(others > before.len() / 2, "{others}");
}

#[test]
fn the_learning_rate_warms_up_once_for_new_rows_and_once_for_all() {
    let mut schedule = plan(Architecture::Qwen3, 100, "out".into()).schedule;
    schedule.new_rows_steps = 20;
    let rates: Vec<f64> = (0..100).map(|step| schedule.rate(step)).collect();
    assert_eq!((rates[0], rates[4], rates[19]), (2e-3, 1e-2, 1e-2));
    assert_eq!((rates[20], rates[24]), (2e-3, 1e-2));
    assert!(rates[25..].is_sorted_by(|a, b| a >= b) && rates[99] < 1.1e-3);
    schedule.new_rows_steps = 100;
    assert!(schedule.check().unwrap_err().to_string().contains("‘new rows warmup’"));
}

#[test]
fn checkpoints_that_cannot_be_carried_on_are_refused_in_one_line() {
    let folder = Folder::new();
    let corpus = small_corpus();
    folder.file("small.txt", corpus.0.read("small.txt"));
    let run = |options: &str| {
        let default = |option: &'static str, value: &'static str| match options.contains(option) {
            true => vec![],
            false => vec![option, value],
        };
        let begin = ["train-model", "--corpus", "small.txt"].into_iter();
        let begin = begin.chain(default("--steps", "1")).chain(default("-o", "out"));
        folder.drift(&begin.chain(options.split_whitespace()).collect::<Vec<_>>())
    };
    let change = |name: &str, pointer: &str, value: Value| {
        checkpoint(&folder, name, Architecture::Qwen3, Dtype::BF16);
        let mut config: Value = serde_json::from_slice(&folder.read(&format!("{name}/config.json"))).unwrap();
        config[pointer] = value;
        folder.file(&format!("{name}/config.json"), config.to_string());
        run(&format!("--init {name}")).refused()
    };
    for other in ["gemma3_text", "mixtral", "qwen2"] {
        let line = change("other", "model_type", other.into());
        let said =
            [&*format!("model_type `{other}` is not supported"), "; drift runs Qwen3 and Llama decoders"];
        assert!(said.iter().all(|part| line.contains(part)), "{line}");
    }
    assert!(change("biased", "attention_bias", true.into()).contains("attention_bias is not supported"));
    let line = change("narrow", "hidden_size", 24.into());
    assert!(
        line.contains("`model.embed_tokens.weight` is [2048, 20] in the weights and [2048, 24]"),
        "{line}"
    );
    let line = change("deeper", "num_hidden_layers", 3.into());
    assert!(line.contains("the weights have no `model.layers.2."), "{line}");
    let line = change("shallow", "num_hidden_layers", 1.into());
    assert!(line.contains("`model.layers.1."), "{line}");
    std::fs::remove_file(folder.path().join("narrow/model-0.safetensors")).unwrap();
    let line = run("--init narrow").refused();
    assert!(line.contains("model-0.safetensors") && line.contains("which is missing"), "{line}");
    assert!(run("--init nowhere").refused().contains("nowhere/config.json"));

    let mut small = checkpoint(&folder, "base", Architecture::Llama, Dtype::BF16);
    let line = run("--init base --tokenizer llama-like").refused();
    assert!(
        line.contains("is not an extension of") && line.contains("give the model's own tokenizer"),
        "{line}"
    );
    let line = run("--init base --new-rows-warmup 1").refused();
    assert!(line.contains("--new-rows-warmup"), "{line}");
    let line = run("--init base --steps 2 --new-rows-warmup 1").refused();
    assert!(line.contains("has no new tokens for --new-rows-warmup; say with --new-tokens-of"), "{line}");
    let line = run("--init base --context 600").refused();
    assert!(line.contains("600 tokens are more than the model's 512"), "{line}");
    assert!(run("--init base -o base").refused().contains("is an input, which -o would overwrite"));
    for options in ["--arch qwen3", "--hidden 8", "--layers 2", "--kv-heads 1"] {
        assert!(run(&format!("--init base {options}")).stderr.contains("cannot be used with"), "{options}");
    }
    small.vocab_size = 1549;
    folder.file("base/config.json", small.to_json());
    let line = run("--init base --tokenizer qwen-like-separate").refused();
    assert!(line.contains("1549 rows; add rows for them first, with drift extend-model"), "{line}");
    assert!(!folder.path().join("out").exists(), "nothing was written");
}

#[test]
fn test_molecules_are_unseen_only_where_drift_trained_the_first_checkpoint() {
    let folder = Folder::new();
    folder.reference_checkpoint("model");
    let unseen = |by_drift: Option<bool>| {
        let mut recipe: Value = serde_json::from_slice(&folder.read("model/recipe.json")).unwrap();
        recipe["recipe"]["init"] = by_drift.map_or(Value::Null, |by_drift| json!({ "by_drift": by_drift }));
        folder.file("model/recipe.json", recipe.to_string());
        let short = "eval --model model --lp none --max-new-tokens 4 --corpus small --samples 3 --json -q";
        let report = folder.drift(&short.split(' ').collect::<Vec<_>>()).good().json();
        report["runs"][0]["unseen"].clone()
    };
    assert_eq!([None, Some(true), Some(false)].map(unseen), ["yes", "yes", "unknown"]);
}

/// A limit on the size of files, which is what a full disk looks like to a program.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_leaves_the_checkpoint_that_was_there() {
    let folder = Folder::new();
    checkpoint(&folder, "base", Architecture::Qwen3, Dtype::F32);
    folder.file("small.txt", small_corpus().0.read("small.txt"));
    for name in ["model.safetensors", "config.json", "tokenizer.json"] {
        folder.file(&format!("out/{name}"), "old");
    }
    let before = folder.listing();
    // The tokenizer can be written, the weights cannot.
    let blocks = folder.read("base/tokenizer.json").len().div_ceil(512) + 1;
    let train = "train-model --init base --corpus small.txt --steps 1 -o out";
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" {train}");
    let output = std::process::Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_drift")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let line = Ran::from(output).refused();
    assert!(
        line.contains("out/model.safetensors: File too large; make room, or write to another place"),
        "{line}"
    );
    assert_eq!(folder.listing(), before);
    assert_eq!(folder.read("out/model.safetensors"), b"old");
}
