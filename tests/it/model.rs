//! Decoders: the logits of transformers, rows that do not depend on their batch, and
//! checkpoints that are refused.

use std::path::{Path, PathBuf};

use candle_core::Tensor;
use drift::model::{
    Cache, Config, Decoder, Device, Feed, HiddenStates, Room, Synthetic, check_cache_fits, end_of_text,
};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};

use crate::common::fixture;
use crate::support::Folder;

/// Made by `tests/fixtures/make_models.py`.
pub(crate) const MODELS: [&str; 4] = ["qwen3-tied", "qwen3-untied", "llama-scaled", "llama-tied"];

pub(crate) fn model(name: &str) -> PathBuf {
    fixture("models").join(name)
}

pub(crate) fn load(name: &str) -> Decoder {
    Decoder::load(&model(name), &Device::cpu()).unwrap()
}

/// A text and its logits by transformers, `[tokens][vocab]`.
pub(crate) fn golden(name: &str) -> (Vec<u32>, Vec<Vec<f32>>) {
    let bytes = std::fs::read(model(name).join("golden.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let words = |name: &str| -> Vec<[u8; 4]> {
        file.tensor(name).unwrap().data().chunks_exact(4).map(|b| b.try_into().unwrap()).collect()
    };
    let tokens: Vec<u32> = words("tokens").into_iter().map(u32::from_le_bytes).collect();
    let logits: Vec<f32> = words("logits").into_iter().map(f32::from_le_bytes).collect();
    let vocab = logits.len() / tokens.len();
    (tokens, logits.chunks(vocab).map(<[f32]>::to_vec).collect())
}

fn rows(tensor: &Tensor) -> Vec<Vec<f32>> {
    tensor.to_vec2().unwrap()
}

/// Logits of every token, fed in pieces of these lengths.
fn logits_in_pieces(decoder: &Decoder, tokens: &[u32], pieces: &[usize], room: Room) -> Vec<Vec<f32>> {
    let mut cache = decoder.cache(1, tokens.len(), room).unwrap();
    let (mut logits, mut at) = (Vec::new(), 0);
    for piece in pieces {
        let feed = [Feed { row: 0, tokens: &tokens[at..at + piece] }];
        logits.extend(rows(
            &decoder.logits(&decoder.forward(&feed, &mut cache, HiddenStates::All).unwrap()).unwrap(),
        ));
        at += piece;
    }
    assert_eq!(at, tokens.len());
    logits
}

fn largest_difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn logits_are_those_of_transformers() {
    for name in MODELS {
        let (tokens, expected) = golden(name);
        let decoder = load(name);
        let found = logits_in_pieces(&decoder, &tokens, &[tokens.len()], Room::Static);
        let spread = expected.iter().flatten().fold(0f32, |most, x| most.max(x.abs()));
        let error = largest_difference(&found, &expected);
        assert!(spread > 1.0 && error < 1e-4, "{name}: error {error}, largest logit {spread}");
    }
}

#[test]
fn kernels_and_candle_operations_agree() {
    for name in MODELS {
        let (tokens, _) = golden(name);
        let decoder = load(name);
        let by_operations = Decoder::load(&model(name), &Device::cpu().without_kernels()).unwrap();
        let mut caches: Vec<Cache> = (0..2).map(|_| decoder.cache(3, 60, Room::Static).unwrap()).collect();
        // Rows in order, padded; rows out of order; one token each.
        let passes: [&[(usize, &[u32])]; 4] = [
            &[(0, &tokens[..7]), (1, &tokens[5..6]), (2, &tokens[..12])],
            &[(2, &tokens[12..20]), (0, &tokens[7..9])],
            &[(0, &tokens[9..10]), (1, &tokens[6..7]), (2, &tokens[20..21])],
            &[(1, &tokens[7..9]), (2, &tokens[21..22])],
        ];
        for pass in passes {
            let feeds: Vec<Feed<'_>> = pass.iter().map(|(row, tokens)| Feed { row: *row, tokens }).collect();
            let by_kernels = decoder.forward(&feeds, &mut caches[0], HiddenStates::All).unwrap();
            let by_candle = by_operations.forward(&feeds, &mut caches[1], HiddenStates::All).unwrap();
            let error = largest_difference(&rows(&by_kernels), &rows(&by_candle));
            assert!(error < 1e-5, "{name}: {error}");
            assert_eq!(caches[0].lengths(), caches[1].lengths());
        }
    }
}

/// Runs `work` on so many threads.
pub(crate) fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn a_batch_equals_its_rows_alone_bit_for_bit() {
    for name in MODELS {
        let (tokens, _) = golden(name);
        let decoder = load(name);
        let alone: Vec<Vec<Vec<f32>>> = (0..11)
            .map(|row| logits_in_pieces(&decoder, &tokens[row..row + 30], &[30], Room::Static))
            .collect();
        for (threads, room) in [(1, Room::Static), (2, Room::Growing)] {
            let mut random = ChaCha8Rng::seed_from_u64(threads as u64);
            let mut cache = decoder.cache(11, 30, room).unwrap();
            let mut found = vec![Vec::new(); 11];
            // Each row gets none to nine tokens in each pass.
            while found.iter().any(|row: &Vec<Vec<f32>>| row.len() < 30) {
                let mut feeds = Vec::new();
                for row in 0..11 {
                    let at = cache.lengths()[row];
                    let length = random.random_range(0..10).min(30 - at);
                    if length > 0 {
                        feeds.push(Feed { row, tokens: &tokens[row + at..row + at + length] });
                    }
                }
                if feeds.is_empty() {
                    continue;
                }
                let pass = || {
                    decoder.logits(&decoder.forward(&feeds, &mut cache, HiddenStates::All).unwrap()).unwrap()
                };
                let mut logits = rows(&on_threads(threads, pass)).into_iter();
                for feed in &feeds {
                    found[feed.row].extend(logits.by_ref().take(feed.tokens.len()));
                }
            }
            assert!(found == alone, "{name}, {threads} threads");
        }
        assert!(alone[0] == logits_in_pieces(&decoder, &tokens[..30], &[1; 30], Room::Growing), "{name}");
    }
}

/// A shape whose products `gemm` would compute in other ways for few rows: narrow ones, and long sums.
fn awkward_config() -> Config {
    let config = json!({"model_type": "llama", "vocab_size": 700, "hidden_size": 36, "intermediate_size": 1100,
        "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 300,
        "max_position_embeddings": 200});
    serde_json::from_value(config).unwrap()
}

#[test]
fn rows_of_awkward_products_do_not_depend_on_their_number() {
    for device in [Device::cpu(), Device::cpu().in_bf16()] {
        let decoder = Decoder::random(awkward_config(), 3, &device).unwrap();
        let tokens: Vec<u32> = (0..150).map(|i| i * 7 % 700).collect();
        let whole = logits_in_pieces(&decoder, &tokens, &[150], Room::Static);
        for pieces in [vec![1; 150], vec![2; 75], vec![64, 64, 22], vec![65, 80, 5], vec![9, 100, 41]] {
            for room in Room::ALL {
                let found = logits_in_pieces(&decoder, &tokens, &pieces, room);
                assert!(found == whole, "{} {pieces:?} {}", device.type_name(), room.name());
            }
        }
    }
}

#[test]
fn bf16_changes_logits_by_its_rounding_alone() {
    let logits = |device: &Device| {
        let decoder = Decoder::random(awkward_config(), 5, device).unwrap();
        assert!(decoder.has_kernels());
        logits_in_pieces(&decoder, &[3, 600, 41, 8], &[4], Room::Static)
    };
    let (exact, rounded) = (logits(&Device::cpu()), logits(&Device::cpu().in_bf16()));
    let flat = |logits: &[Vec<f32>]| logits.concat();
    let (exact, rounded) = (flat(&exact), flat(&rounded));
    let square = |x: f32| f64::from(x) * f64::from(x);
    let size: f64 = exact.iter().copied().map(square).sum();
    let error: f64 = exact.iter().zip(&rounded).map(|(a, b)| square(a - b)).sum();
    // Eight bits of a weight, a key and a value: each is off by 2^-9 at most.
    assert!(error > 0.0 && (error / size).sqrt() < 6e-3, "{}", (error / size).sqrt());
}

#[test]
fn some_rows_of_the_head_equal_those_of_all() {
    let types = [Device::cpu(), Device::cpu().in_bf16()];
    let decoders = types.map(|device| Decoder::random(awkward_config(), 4, &device).unwrap());
    for (decoder, count) in decoders.iter().flat_map(|decoder| [1, 2, 33].map(|count| (decoder, count))) {
        let mut cache = decoder.cache(count, 1, Room::Static).unwrap();
        let tokens: Vec<[u32; 1]> = (0..count as u32).map(|i| [i]).collect();
        let feeds: Vec<Feed<'_>> =
            tokens.iter().enumerate().map(|(row, tokens)| Feed { row, tokens }).collect();
        let hidden = decoder.forward(&feeds, &mut cache, HiddenStates::Last).unwrap();
        let all = rows(&decoder.logits(&hidden).unwrap());
        for ids in [vec![0], vec![3, 4, 699], (0..100).collect(), (5..305).collect::<Vec<u32>>()] {
            let expected: Vec<Vec<f32>> =
                all.iter().map(|row| ids.iter().map(|id| row[*id as usize]).collect()).collect();
            assert!(rows(&decoder.logits_of(&hidden, &ids).unwrap()) == expected, "{count} rows, {ids:?}");
        }
        assert!(decoder.logits_of(&hidden, &[3, 700]).is_err());
    }
}

#[test]
fn a_prefix_put_into_other_rows_is_as_good_as_read_there() {
    let (tokens, _) = golden("qwen3-tied");
    for device in [Device::cpu(), Device::cpu().in_bf16()] {
        let decoder = Decoder::load(&model("qwen3-tied"), &device).unwrap();
        let mut cache = decoder.cache(3, 40, Room::Growing).unwrap();
        decoder.forward(&[Feed { row: 1, tokens: &tokens[..9] }], &mut cache, HiddenStates::None).unwrap();
        let prefix = cache.prefix(1).unwrap();
        assert_eq!(prefix.length(), 9);
        cache.restore(2, &prefix).unwrap();
        cache.move_row(1, 0).unwrap();
        assert_eq!(cache.lengths(), [9, 0, 9]);
        // Rows may come in any order.
        let feeds = [2, 0].map(|row| Feed { row, tokens: &tokens[9..30] });
        let found = rows(&decoder.forward(&feeds, &mut cache, HiddenStates::Last).unwrap());
        let mut cache = decoder.cache(1, 30, Room::Static).unwrap();
        let feed = [Feed { row: 0, tokens: &tokens[..30] }];
        let expected = rows(&decoder.forward(&feed, &mut cache, HiddenStates::Last).unwrap());
        assert!(found == [expected[0].clone(), expected[0].clone()], "{}", device.type_name());
    }
}

#[test]
fn configs_are_read_in_both_forms_and_written_so_that_they_are_read_again() {
    for name in MODELS {
        let config = Config::load(&model(name)).unwrap();
        let again: Config = serde_json::from_str(&config.to_json()).unwrap();
        assert_eq!(config, again, "{name}");
    }
    let scaled = Config::load(&model("llama-scaled")).unwrap();
    let written: Value = serde_json::from_str(&scaled.to_json()).unwrap();
    assert_eq!(written["rope_scaling"]["rope_type"], "llama3");
    assert_eq!(written["rope_theta"], 500_000.0);
    assert_eq!(
        (written["eos_token_id"].as_u64(), &written["architectures"][0]),
        (Some(2), &json!("LlamaForCausalLM"))
    );
    // transformers 5 keeps the base beside the scaling.
    let mut newer = written.clone();
    let rope = newer.as_object_mut().unwrap().remove("rope_scaling").unwrap();
    newer.as_object_mut().unwrap().remove("rope_theta");
    newer["rope_parameters"] = rope;
    newer["rope_parameters"]["rope_theta"] = json!(500_000.0);
    assert_eq!(serde_json::from_value::<Config>(newer).unwrap(), scaled);
}

/// Each form means what transformers 5.24 makes of it.
#[test]
fn the_scaling_of_positions_is_found_where_transformers_finds_it() {
    let scaled = Config::load(&model("llama-scaled")).unwrap();
    let written: Value = serde_json::from_str(&scaled.to_json()).unwrap();
    let read = |change: fn(&mut Value)| {
        let mut config = written.clone();
        change(&mut config);
        serde_json::from_value::<Config>(config)
    };
    let original = |config: Config| config.rope_scaling.unwrap().original_max_position_embeddings;
    // Beside the parameters that transformers 5 writes, a scaling goes first, with the base of the config.
    let beside =
        read(|config| config["rope_parameters"] = json!({"rope_type": "default", "rope_theta": 7.0}));
    assert_eq!(beside.unwrap(), scaled);
    let empty = read(|config| {
        config["rope_parameters"] = config["rope_scaling"].clone();
        config["rope_scaling"] = json!({});
    });
    assert_eq!(empty.unwrap(), scaled);
    let yarn = read(|config| {
        config["rope_parameters"] = config["rope_scaling"].clone();
        config["rope_scaling"] = json!({"type": "yarn", "factor": 4.0});
    });
    assert!(yarn.unwrap_err().to_string().contains("`yarn` is not supported"));
    assert_eq!(read(|config| config["rope_scaling"]["type"] = "llama3".into()).unwrap(), scaled);
    let above = read(|config| config["original_max_position_embeddings"] = 24.into());
    assert_eq!(original(above.unwrap()), 24);
    let lacking = read(|config| {
        config["rope_scaling"]["original_max_position_embeddings"] = Value::Null;
        config["max_position_embeddings"] = 96.into();
    });
    assert_eq!(original(lacking.unwrap()), 96);
    let partial = read(|config| config["partial_rotary_factor"] = json!(0.5));
    assert!(partial.unwrap_err().to_string().contains("partial_rotary_factor is not supported"));
}

#[test]
fn configs_that_would_give_other_logits_are_refused() {
    let good: Value = serde_json::from_str(&Config::load(&model("qwen3-tied")).unwrap().to_json()).unwrap();
    let cases = [
        ("model_type", json!("gpt2"), "gpt2"),
        ("hidden_act", json!("gelu"), "gelu"),
        ("attention_bias", json!(true), "attention_bias"),
        ("use_sliding_window", json!(true), "use_sliding_window"),
        ("rope_scaling", json!({"rope_type": "yarn", "factor": 4.0}), "yarn"),
        ("rope_scaling", json!({"rope_type": "llama3", "factor": 4.0}), "low_freq_factor"),
        ("quantization_config", json!({"bits": 4}), "quantization_config"),
        ("num_key_value_heads", json!(3), "num_key_value_heads 3"),
        ("head_dim", json!(9), "head_dim 9"),
        ("hidden_size", json!(0), "hidden_size is 0"),
        ("hidden_size", json!(-1), "integer `-1`"),
    ];
    for (field, value, complaint) in cases {
        let mut config = good.clone();
        config[field] = value;
        let folder = Folder::new();
        folder.file("config.json", config.to_string());
        let error = Config::load(&folder.path()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("config.json") && text.contains(complaint), "{text}");
        assert_eq!((error.exit_code(), text.lines().count()), (2, 1));
    }
}

/// A copy of a model to be damaged.
fn copy_of(name: &str) -> Folder {
    let folder = Folder::new();
    for entry in std::fs::read_dir(model(name)).unwrap() {
        let path = entry.unwrap().path();
        folder.file(path.file_name().unwrap().to_str().unwrap(), std::fs::read(&path).unwrap());
    }
    folder
}

/// Why a checkpoint is refused.
fn refusal(folder: &Folder) -> String {
    let Err(error) = Decoder::load(&folder.path(), &Device::cpu()) else { panic!("loaded") };
    assert_eq!((error.exit_code(), error.to_string().lines().count()), (2, 1), "{error}");
    error.to_string()
}

fn set(folder: &Folder, field: &str, value: Value) {
    let mut config: Value = serde_json::from_slice(&folder.read("config.json")).unwrap();
    config[field] = value;
    folder.file("config.json", config.to_string());
}

/// The weights of a checkpoint with one more tensor, of this name and the numbers of the embedding, the first of them changed.
fn with_head(folder: &Folder, change: u8) {
    let bytes = folder.read("model.safetensors");
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let embedding = file.tensor("model.embed_tokens.weight").unwrap();
    let mut numbers = embedding.data().to_vec();
    numbers[0] ^= change;
    let head = TensorView::new(embedding.dtype(), embedding.shape().to_vec(), &numbers).unwrap();
    let tensors = file.tensors().into_iter().chain([("lm_head.weight".to_owned(), head)]);
    folder.file("model.safetensors", safetensors::serialize(tensors, None).unwrap());
}

/// transformers 4 would generate with the embedding, transformers 5 with the head.
#[test]
fn a_tied_head_that_is_another_matrix_is_refused() {
    let folder = copy_of("qwen3-tied");
    with_head(&folder, 0);
    assert!(Decoder::load(&folder.path(), &Device::cpu()).is_ok());
    let folder = copy_of("qwen3-tied");
    with_head(&folder, 1);
    assert!(refusal(&folder).contains("`lm_head.weight` differs from the embedding"));
}

#[test]
fn missing_and_truncated_shards_are_named() {
    let shard = "model-00002-of-00004.safetensors";
    let folder = copy_of("qwen3-untied");
    std::fs::remove_file(folder.path().join(shard)).unwrap();
    let text = refusal(&folder);
    assert!(text.contains(shard) && text.contains("missing"), "{text}");

    let whole = std::fs::read(model("qwen3-untied").join(shard)).unwrap();
    for length in [0, 7, 100, whole.len() - 1] {
        folder.file(shard, &whole[..length]);
        let text = refusal(&folder);
        assert!(text.contains(shard) && text.contains("truncated"), "{length}: {text}");
    }
    std::fs::remove_file(folder.path().join("model.safetensors.index.json")).unwrap();
    assert!(refusal(&folder).contains("neither model.safetensors nor"));
    std::fs::remove_file(folder.path().join("config.json")).unwrap();
    assert!(refusal(&folder).contains("config.json"));
    folder.file("config.json", "{");
    assert!(refusal(&folder).contains("config.json"));
}

#[test]
fn config_and_weights_that_disagree_are_told_apart_by_the_tensor() {
    let cases = [
        (
            "intermediate_size",
            json!(36),
            "`model.layers.0.mlp.gate_proj.weight` is [37, 26] in the weights and [36, 26]",
        ),
        ("num_hidden_layers", json!(3), "no `model.layers.2.self_attn.q_proj.weight`"),
        ("num_hidden_layers", json!(1), "contain `model.layers.1."),
        ("tie_word_embeddings", json!(false), "no `lm_head.weight`"),
        ("vocab_size", json!(62), "`model.embed_tokens.weight` is [61, 26] in the weights and [62, 26]"),
        ("model_type", json!("llama"), "`model.layers.0.self_attn.k_norm.weight`"),
    ];
    for (field, value, complaint) in cases {
        let folder = copy_of("qwen3-tied");
        set(&folder, field, value);
        let text = refusal(&folder);
        assert!(text.contains(complaint), "{text}");
    }
}

#[test]
fn weights_that_are_not_numbers_are_named() {
    for bad in [half_bits(f32::NAN), half_bits(f32::NEG_INFINITY)] {
        let folder = copy_of("llama-tied");
        let mut bytes = folder.read("model.safetensors");
        let at = bytes.len() - 10;
        bytes[at..at + 2].copy_from_slice(&bad);
        folder.file("model.safetensors", bytes);
        let text = refusal(&folder);
        assert!(text.contains("model.safetensors") && text.contains("is not finite"), "{text}");
    }
}

/// bf16 is the upper half of f32.
fn half_bits(number: f32) -> [u8; 2] {
    let bytes = number.to_le_bytes();
    [bytes[2], bytes[3]]
}

#[test]
fn a_tokenizer_with_more_ids_than_rows_is_refused() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let text = load("qwen3-tied").config().check_vocabulary(&tokenizer).unwrap_err().to_string();
    assert!(text.contains("the model 61 rows"), "{text}");
    let mut config = awkward_config();
    config.vocab_size = tokenizer.vocabulary().len() + 3;
    config.check_vocabulary(&tokenizer).unwrap();
}

#[test]
fn the_end_of_text_is_looked_up_in_order() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let vocabulary = tokenizer.vocabulary();
    let mut config = Config::load(&model("qwen3-tied")).unwrap();
    let folder = Folder::new();
    let ends = |config: &Config| end_of_text(&folder.path(), config, &tokenizer);
    // The tokenizer's own.
    let named = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>"];
    let own = named.iter().find_map(|name| vocabulary.get(*name)).copied();
    assert_eq!(ends(&config).ok().map(|ids| ids[0]), own);
    folder.file("tokenizer_config.json", json!({"eos_token": {"content": "[/CONFORMER]"}}).to_string());
    assert_eq!(ends(&config).unwrap(), [vocabulary["[/CONFORMER]"]]);
    config.eos_token_ids = vec![5];
    assert_eq!(ends(&config).unwrap(), [5]);
    folder.file("generation_config.json", r#"{"eos_token_id": [7, 8], "top_k": 20}"#);
    assert_eq!(ends(&config).unwrap(), [7, 8]);
    folder.file("generation_config.json", r#"{"eos_token_id": 4000000}"#);
    assert!(ends(&config).unwrap_err().to_string().contains("4000000 is not a token"));
    folder.file("generation_config.json", "[");
    assert!(ends(&config).unwrap_err().to_string().contains("generation_config.json"));
}

#[test]
fn a_tokenizer_without_an_end_of_text_is_refused() {
    let (_, json) = Tokenizer::load_with_json(Path::new("qwen-like")).unwrap();
    let text = String::from_utf8(json).unwrap();
    let text = ["<|endoftext|>", "<|im_end|>", "</s>", "<eos>", "<|end_of_text|>"]
        .iter()
        .fold(text, |text, name| text.replace(name, "<|other|>"));
    let folder = Folder::new();
    let tokenizer = Tokenizer::load(&folder.file("tokenizer.json", text)).unwrap();
    let config = Config::load(&model("qwen3-tied")).unwrap();
    let error = end_of_text(&folder.path(), &config, &tokenizer).unwrap_err().to_string();
    assert!(error.contains("no file says which token ends a text"), "{error}");
}

#[test]
fn a_cache_that_does_not_fit_is_refused_with_the_batch_that_would() {
    let config = Config::load(&model("qwen3-tied")).unwrap();
    // 2 layers, keys and values, 2 heads of 10 numbers of 4 bytes: 320 bytes a token, and a spare one for each row.
    check_cache_fits(&config, 4, 32, 50, 32 * 51 * 320).unwrap();
    let text = check_cache_fits(&config, 4, 32, 50, 32 * 51 * 320 - 1).unwrap_err().to_string();
    assert!(text.contains("a batch of 31 would fit"), "{text}");
    let text = check_cache_fits(&config, 4, 32, 50, 10).unwrap_err().to_string();
    assert!(text.contains("not even a batch of 1"), "{text}");
    let decoder = load("qwen3-tied");
    let text = decoder.cache(1 << 40, 50, Room::Static).unwrap_err().to_string();
    assert!(text.contains("would fit"), "{text}");
    assert!(decoder.cache(1, 97, Room::Static).unwrap_err().to_string().contains("context of 96"));
}

#[test]
fn devices_that_are_not_there_are_refused() {
    assert_eq!(Device::parse("cpu").unwrap().type_name(), "f32");
    assert_eq!(Device::cpu().in_bf16().type_name(), "bf16");
    assert_eq!(Device::cpu().in_bf16().in_f32().type_name(), "f32");
    for name in ["gpu", "cuda", "cuda:x"] {
        assert!(Device::parse(name).unwrap_err().to_string().contains("‘device’"));
    }
    if !cfg!(feature = "cuda") {
        assert!(Device::parse("cuda:0").unwrap_err().to_string().contains("--features cuda"));
    }
}

#[test]
fn synthetic_shapes_have_the_sizes_of_their_names() {
    let parameters = |shape: Synthetic| {
        let config = Config::synthetic(shape);
        let heads = 2 * config.num_attention_heads + 2 * config.num_key_value_heads;
        let layer = config.hidden_size * (heads * config.head_dim + 3 * config.intermediate_size);
        (config.vocab_size * config.hidden_size + config.num_hidden_layers * layer) as f64
    };
    assert!((parameters(Synthetic::Qwen3Small) / 0.596e9 - 1.0).abs() < 0.01);
    let llama = parameters(Synthetic::Llama380M);
    assert!((llama / 380e6 - 1.0).abs() < 0.03, "{llama}");
}
