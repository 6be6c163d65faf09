//! `drift extend-model`: what stays, bit for bit, what is new, by arithmetic of our own, and what is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use drift::corpus::Conformer;
use drift::encoding::Encoding;
use drift::model::{Decoder, Device, Feed, HiddenStates, Room};
use drift::text;
use drift::tokenizer::Tokenizer;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

use crate::rows::{
    EMBEDDING, HEAD, HIDDEN, Tensor, base, decoded, expected, needed, norm, safetensors, safetensors_with,
    step, tensor,
};
use crate::support::{First, Folder, Ran, conformers, program};

/// A small model: its tables, a norm, and a tensor of odd length.
#[derive(Clone, Copy)]
struct Small {
    dtype: Dtype,
    /// Rows beyond those of the base.
    spare: usize,
    tied: bool,
    /// Whether a head is stored.
    head: bool,
    shards: bool,
}

const TIED: Small = Small { dtype: Dtype::BF16, spare: 0, tied: true, head: false, shards: false };
const UNTIED: Small = Small { dtype: Dtype::F32, spare: 7, tied: false, head: true, shards: true };

impl Small {
    fn tensors(self) -> Vec<Tensor> {
        let rows = needed(&base()) + self.spare;
        let flags = ("model.flags", Dtype::U8, vec![3], vec![1, 2, 3]);
        let mut tensors = vec![tensor(EMBEDDING, self.dtype, rows, 1), norm(), flags];
        let salt = if self.tied { 1 } else { 2 };
        tensors.extend(self.head.then(|| tensor(HEAD, self.dtype, rows, salt)));
        tensors
    }

    fn config(self) -> Value {
        json!({
            "vocab_size": needed(&base()) + self.spare,
            "model_type": "of our own",
            "rms_norm_eps": 1e-6,
            "hidden_size": HIDDEN,
            "eos_token_id": 1542,
            "tie_word_embeddings": self.tied,
            "architectures": ["A"],
        })
    }

    /// Puts it into a folder, with the base's tokenizer.
    fn put(self, folder: &Folder, name: &str) {
        let tensors = self.tensors();
        if self.shards {
            let mut map = serde_json::Map::new();
            for (at, tensor) in tensors.iter().enumerate() {
                let shard = format!("model-{:05}-of-00004.safetensors", at + 1);
                folder.file(&format!("{name}/{shard}"), safetensors(std::slice::from_ref(tensor)));
                map.insert(tensor.0.to_owned(), shard.into());
            }
            let index = json!({"metadata": {"total_size": 1, "total_parameters": 10}, "weight_map": map});
            folder.file(&format!("{name}/model.safetensors.index.json"), index.to_string());
        } else {
            folder.file(&format!("{name}/model.safetensors"), with_metadata(&tensors));
        }
        let base = Tokenizer::embedded_by_name(Path::new("qwen-like")).unwrap();
        folder.file(&format!("{name}/tokenizer.json"), base.json);
        folder.file(&format!("{name}/tokenizer_config.json"), base.config);
        folder.file(&format!("{name}/config.json"), self.config().to_string());
        folder.file(&format!("{name}/generation_config.json"), r#"{"eos_token_id": [1542], "top_k": 20}"#);
    }
}

fn with_metadata(tensors: &[Tensor]) -> Vec<u8> {
    safetensors_with(tensors, Some([("format".to_owned(), "pt".to_owned())].into()))
}

/// Extends `m`; what is not given is as usual.
fn extend(folder: &Folder, more: &[&str]) -> Ran {
    let mut words = vec!["extend-model", "-q"];
    for pair in [["--model", "m"], ["--tokenizer", "qwen-like-separate"], ["-o", "out"]] {
        words.extend(pair.iter().filter(|_| !more.contains(&pair[0])));
    }
    folder.drift(&[&words, more].concat())
}

/// All tensors of a folder: type, shape, bytes.
fn tensors(folder: &Path) -> BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "safetensors") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        assert_eq!(header % 8, 0);
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            let offset = view.data().as_ptr() as usize - bytes.as_ptr() as usize - header;
            assert_eq!(offset % view.dtype().bitsize().div_ceil(8), 0, "{name} is not aligned");
            let one = (view.dtype(), view.shape().to_vec(), view.data().to_vec());
            assert!(found.insert(name, one).is_none());
        }
    }
    found
}

/// New tokens of the extension: id and text.
fn new_tokens() -> Vec<(usize, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tokenizers/qwen-like-separate/new_tokens.json");
    let list: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let token =
        |token: &Value| (token["id"].as_u64().unwrap() as usize, token["text"].as_str().unwrap().into());
    list["new_tokens"].as_array().unwrap().iter().map(token).collect()
}

/// Compares a table with what it should be, row by row.
fn check_table(
    small: Small,
    before: &Tensor,
    after: &(Dtype, Vec<usize>, Vec<u8>),
    (init, rows): (&str, usize),
) {
    let base = base();
    let (old_rows, ids) = (needed(&base) + small.spare, needed(&base));
    assert_eq!((after.0, &after.1), (small.dtype, &vec![rows, HIDDEN]));
    let width = before.3.len() / old_rows;
    let numbers = decoded(&before.3, small.dtype);
    let way = match (init, before.0 == HEAD || small.tied) {
        ("ends", true) => "first",
        ("ends", false) => "last",
        (init, _) => init,
    };
    let new: BTreeMap<usize, String> = new_tokens().into_iter().collect();
    let mut unused = vec![0.0; HIDDEN];
    for (at, number) in numbers[..ids * HIDDEN].iter().enumerate() {
        unused[at % HIDDEN] += number / ids as f64;
    }
    for row in 0..rows {
        let bytes = &after.2[row * width..(row + 1) * width];
        let wanted = match new.get(&row) {
            Some(text) => expected(&base, &numbers, text, way),
            None if row < old_rows => {
                assert!(bytes == &before.3[row * width..(row + 1) * width], "row {row} has changed");
                continue;
            }
            None => unused.clone(),
        };
        for (got, want) in decoded(bytes, small.dtype).into_iter().zip(wanted) {
            assert!((got - want).abs() <= want.abs() * step(small.dtype) + 1e-7, "row {row}: {got} {want}");
        }
    }
}

#[test]
fn everything_old_stays_and_new_rows_are_what_their_definition_says() {
    let (old, new) = (needed(&base()), new_tokens().len());
    let shared = Small { dtype: Dtype::F16, spare: new + 9, tied: true, head: true, shards: true };
    let odd = Small { dtype: Dtype::F16, spare: 1, tied: false, head: true, shards: false };
    for (small, init, multiple, rows) in [
        (TIED, "digits", None, old + new),
        (UNTIED, "ends", Some(64), (old + new).next_multiple_of(64)),
        // Spare rows suffice; a head that is stored twice stays so.
        (shared, "mean", None, old + new + 9),
        (odd, "digits", Some(128), (old + new).next_multiple_of(128)),
    ] {
        let folder = Folder::new();
        small.put(&folder, "m");
        let mut arguments = vec!["--init", init, "--json"];
        let text = multiple.unwrap_or(0).to_string();
        arguments.extend(multiple.iter().flat_map(|_| ["--pad-to-multiple-of", &text]));
        let report = extend(&folder, &arguments).good().json();
        assert_eq!((&report["vocab_size"], &report["new_tokens"]), (&json!(rows), &json!(new)));
        let after = tensors(&folder.path().join("out"));
        assert_eq!(after.len(), small.tensors().len());
        for tensor in small.tensors() {
            match tensor.0 {
                EMBEDDING | HEAD => check_table(small, &tensor, &after[tensor.0], (init, rows)),
                name => assert_eq!(after[name], (tensor.1, tensor.2, tensor.3)),
            }
        }
        check_settings(&folder, small, rows, &report);
    }
}

/// Settings, index and tokenizer of an extended model.
fn check_settings(folder: &Folder, small: Small, rows: usize, report: &Value) {
    let json = |name: &str| -> Value { serde_json::from_slice(&folder.read(name)).unwrap() };
    let mut config = small.config();
    config["vocab_size"] = rows.into();
    // Keys in their order, too.
    assert_eq!(json("out/config.json").to_string(), config.to_string());
    assert_eq!(folder.read("out/generation_config.json"), folder.read("m/generation_config.json"));
    let extended = Tokenizer::embedded_by_name(Path::new("qwen-like-separate")).unwrap();
    assert!(folder.read("out/tokenizer.json") == extended.json);
    assert_eq!(json("out/tokenizer_config.json")["tokenizer_class"], "PreTrainedTokenizerFast");
    let mut said = json("out/extension.json");
    said["files"] = report["files"].clone();
    assert_eq!(&said, report);
    if small.shards {
        let index = json("out/model.safetensors.index.json");
        let all = tensors(&folder.path().join("out"));
        let bytes: usize = all.values().map(|(.., bytes)| bytes.len()).sum();
        let tables = 1 + usize::from(small.head);
        let more = (rows - needed(&base()) - small.spare) * HIDDEN * tables;
        assert_eq!(index["metadata"], json!({"total_size": bytes, "total_parameters": 10 + more}));
        assert_eq!(index["weight_map"], json("m/model.safetensors.index.json")["weight_map"]);
        assert!(!folder.path().join("out/model.safetensors").exists());
    } else {
        let bytes = folder.read("out/model.safetensors");
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
    }
}

#[test]
fn files_beside_the_weights_come_along_or_stay() {
    let folder = Folder::new();
    TIED.put(&folder, "m");
    for name in ["LICENSE", "README.md", "modeling_own.py", "preprocessor_config.json", "chat_template.jinja"]
    {
        folder.file(&format!("m/{name}"), name);
    }
    for name in
        ["vocab.json", "merges.txt", "pytorch_model.bin", "optimizer.pt", ".gitattributes", "original/x.json"]
    {
        folder.file(&format!("m/{name}"), name);
    }
    folder.file("m/recipe.json", r#"{"recipe": {"tokenizer": "qwen-like", "dialect": "fixed"}}"#);
    // What another run left.
    folder.file("out/model.safetensors.index.json", "{}");
    folder.file("out/model-00001-of-00002.safetensors", "");
    folder.file("out/mine.txt", "kept");
    let report = extend(&folder, &["--json"]).good().json();
    let mut names: Vec<String> = std::fs::read_dir(folder.path().join("out"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = [
        "LICENSE",
        "README.md",
        "chat_template.jinja",
        "config.json",
        "extension.json",
        "generation_config.json",
        "mine.txt",
        "model.safetensors",
        "modeling_own.py",
        "preprocessor_config.json",
        "recipe.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        report["left_out"],
        json!(["merges.txt", "optimizer.pt", "original", "pytorch_model.bin", "vocab.json"])
    );
    let recipe: Value = serde_json::from_slice(&folder.read("out/recipe.json")).unwrap();
    assert_eq!(recipe["recipe"], json!({"tokenizer": "qwen-like-separate", "dialect": "fixed"}));
    // The same again is the same bytes.
    let before = tensors(&folder.path().join("out"));
    let shown = extend(&folder, &[]);
    assert!(
        shown.text().contains("rows of new tokens, behind the old ones")
            && shown.stderr.contains("not copied")
    );
    assert_eq!(tensors(&folder.path().join("out")), before);
}

/// Logits of every token of a text, as bits, `[tokens][rows]`.
fn logits(folder: &Path, tokens: &[u32]) -> Vec<Vec<u32>> {
    let decoder = Decoder::load(folder, &Device::cpu()).unwrap();
    let mut cache = decoder.cache(1, tokens.len(), Room::Static).unwrap();
    let hidden = decoder.forward(&[Feed { row: 0, tokens }], &mut cache, HiddenStates::All).unwrap();
    let rows: Vec<Vec<f32>> = decoder.logits(&hidden).unwrap().to_vec2().unwrap();
    rows.into_iter().map(|row| row.into_iter().map(f32::to_bits).collect()).collect()
}

/// A checkpoint that comes with drift, with an LM head of its own.
fn untied(name: &str, folder: &Folder) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval").join(name);
    let bytes = std::fs::read(from.join("model.safetensors")).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let mut all = read.tensors();
    let embedding = read.tensor(EMBEDDING).unwrap();
    // Backwards: another head than the embedding.
    let head: Vec<u8> = embedding.data().chunks(2).rev().flatten().copied().collect();
    all.push((
        HEAD.to_owned(),
        TensorView::new(embedding.dtype(), embedding.shape().to_vec(), &head).unwrap(),
    ));
    folder.file("untied/model.safetensors", serialize(all, None).unwrap());
    for name in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"] {
        let text = std::fs::read_to_string(from.join(name)).unwrap();
        folder.file(
            &format!("untied/{name}"),
            text.replace("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false"),
        );
    }
    folder.path().join("untied")
}

#[test]
fn old_logits_on_old_text_are_the_same_bits() {
    let some = conformers(&First(2));
    let write = |c: &Conformer| text::tagged(&text::write(&c.skeleton, &c.coordinates, Encoding::FIXED));
    let texts: Vec<String> = some.iter().map(write).collect();
    for (name, extension) in [("qwen-like", "qwen-like-fused"), ("llama-like", "llama-like-separate")] {
        let folder = Folder::new();
        let tied = Path::new(env!("CARGO_MANIFEST_DIR")).join("eval").join(name);
        let base = Tokenizer::load(&tied).unwrap();
        for model in [tied, untied(name, &folder)] {
            let words =
                ["extend-model", "--tokenizer", extension, "-o", "out", "-q", "--pad-to-multiple-of", "64"];
            let words = [&words[..], &["--model", model.to_str().unwrap()]].concat();
            folder.drift(&words).done();
            for text in &texts {
                let tokens = base.ids(text).unwrap();
                let [old, new] =
                    [model.clone(), folder.path().join("out")].map(|model| logits(&model, &tokens));
                assert!(new[0].len() > old[0].len() && new[0].len().is_multiple_of(64));
                for (old, new) in old.iter().zip(&new) {
                    assert!(*old == new[..old.len()], "{name}: logits have changed");
                }
            }
        }
    }
}

/// The line of a run that must be refused and leave nothing.
#[track_caller]
fn refused(folder: &Folder, more: &[&str]) -> String {
    let before = folder.listing();
    let ran = extend(folder, more);
    assert_eq!(folder.listing(), before, "something is left: {}", ran.stderr);
    ran.refused()
}

#[test]
fn tokenizers_that_are_no_extension_are_refused() {
    let folder = Folder::new();
    TIED.put(&folder, "m");
    let says = |more: &[&str], parts: &[&str]| {
        let line = refused(&folder, more);
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    };
    says(
        &["--tokenizer", "llama-like-separate"],
        &["is not an extension of m: ", "tokens differ, first ", "train-tokenizer --base"],
    );
    let extended = Tokenizer::embedded_by_name(Path::new("qwen-like-separate")).unwrap();
    let json: Value = serde_json::from_slice(extended.json).unwrap();
    // An added token is called otherwise: the model still lists the old one, but no text is encoded to it.
    let mut other = json.clone();
    let added = other["added_tokens"].as_array_mut().unwrap();
    added.iter_mut().find(|token| token["id"] == 1542).unwrap()["content"] = "<|another|>".into();
    folder.file("other/tokenizer.json", other.to_string());
    says(
        &["--tokenizer", "other"],
        &["1 of its 1549 tokens differ, first \"<|endoftext|>\", which is no added token"],
    );
    // Two tokens have changed places.
    let mut other = json.clone();
    let vocabulary = other["model"]["vocab"].as_object_mut().unwrap();
    let (a, b) = (vocabulary["A"].clone(), vocabulary["B"].clone());
    (vocabulary["A"], vocabulary["B"]) = (b.clone(), a.clone());
    folder.file("other/tokenizer.json", other.to_string());
    let why = format!("2 of its 1549 tokens differ, first \"A\", which has id {b}, not {a}");
    says(&["--tokenizer", "other"], &[&why]);
    folder.file("eos/tokenizer.json", extended.json);
    folder.file("eos/tokenizer_config.json", r#"{"eos_token": "<|im_end|>"}"#);
    says(&["--tokenizer", "eos"], &["eos_token is \"<|im_end|>\", but \"<|endoftext|>\" in the model's"]);
    folder.file("m/generation_config.json", r#"{"eos_token_id": [1542, 1600]}"#);
    says(
        &[],
        &["generation_config.json: eos_token_id 1600 is not a token of the model's", "the new token \""],
    );
    std::fs::remove_file(folder.path().join("m/tokenizer.json")).unwrap();
    says(&[], &["m: contains no tokenizer.json", "put the model's own"]);
}

#[test]
fn models_that_are_not_whole_are_refused() {
    let folder = Folder::new();
    let says = |more: &[&str], parts: &[&str]| {
        let line = refused(&folder, more);
        assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    };
    let rows = needed(&base());
    TIED.put(&folder, "m");
    says(&["-o", "m"], &["m: is the folder of the model"]);
    says(&["--pad-to-multiple-of", "7", "--model", "nowhere"], &["nowhere"]);
    let weights = |tensors: &[Tensor]| {
        folder.file("m/model.safetensors", safetensors(tensors));
    };
    let config = |change: &dyn Fn(&mut Value)| {
        let mut config = TIED.config();
        change(&mut config);
        folder.file("m/config.json", config.to_string());
    };
    // An embedding smaller than the tokenizer.
    weights(&[tensor(EMBEDDING, Dtype::F32, rows - 9, 1)]);
    config(&|config| config["vocab_size"] = (rows - 9).into());
    says(&[], &["has 1540 rows, but m has 1549 ids"]);
    config(&|_| {});
    says(&[], &["embed_tokens.weight: ", "1540", "vocab_size in config.json is 1549"]);
    weights(&[norm()]);
    says(&[], &["has no tensor whose name ends in embed_tokens.weight"]);
    let quantised = (EMBEDDING, Dtype::F8_E4M3, vec![rows, HIDDEN], vec![0; rows * HIDDEN]);
    weights(&[quantised]);
    says(&[], &["contains F8_E4M3, not F32, F16 or BF16"]);
    weights(&[tensor(EMBEDDING, Dtype::F32, rows, 1)]);
    config(&|config| config["hidden_size"] = 25.into());
    says(&[], &["hidden_size in config.json is 25"]);
    config(&|config| config["tie_word_embeddings"] = false.into());
    says(&[], &["has no tensor whose name ends in lm_head.weight"]);
    // Layers.
    let matrix = |name, rows| tensor(name, Dtype::F32, rows, 3);
    let layers = [matrix("model.layers.0.mlp.up.weight", 4), matrix("model.layers.1.mlp.up.weight", 5)];
    let decoder = |config: &mut Value| {
        config["model_type"] = "qwen3".into();
        config["num_hidden_layers"] = 2.into();
    };
    config(&decoder);
    let embedding = tensor(EMBEDDING, Dtype::F32, rows, 1);
    weights(&[embedding.clone(), layers[0].clone()]);
    says(&[], &["has no tensor model.layers.1.mlp.up.weight, as other layers have", "fetch the whole model"]);
    weights(&[embedding.clone(), layers[0].clone(), layers[1].clone()]);
    says(&[], &["model.layers.1.mlp.up.weight is [5, 24], in other layers [4, 24]"]);
    weights(&[embedding]);
    says(&[], &["has no tensors of its 2 decoder layers"]);
    std::fs::remove_file(folder.path().join("m/config.json")).unwrap();
    says(&[], &["m: contains no config.json"]);
    std::fs::remove_file(folder.path().join("m/model.safetensors")).unwrap();
    folder.file("m/__0_0.distcp", "");
    says(&[], &["m: contains a checkpoint of torch.distributed", "docs/extend.md"]);
}

#[test]
fn shards_that_do_not_hold_what_the_index_says_are_refused() {
    let folder = Folder::new();
    UNTIED.put(&folder, "m");
    let shard = folder.path().join("m/model-00002-of-00004.safetensors");
    folder.file("m/model-00002-of-00004.safetensors", safetensors(&[tensor("x", Dtype::F32, 1, 1)]));
    let line = refused(&folder, &[]);
    assert!(
        line.contains("has no tensor model.norm.weight, though model.safetensors.index.json says so"),
        "{line}"
    );
    let whole = safetensors(&[norm()]);
    folder.file("m/model-00002-of-00004.safetensors", &whole[..whole.len() - 1]);
    let line = refused(&folder, &[]);
    assert!(line.contains("bytes, but its header speaks of"), "{line}");
    std::fs::remove_file(shard).unwrap();
    let line = refused(&folder, &[]);
    assert!(line.contains("lists model-00002-of-00004.safetensors, which is missing; fetch it"), "{line}");
}

/// A limit on the size of files is what a full disk looks like to a program.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_leaves_nothing_new() {
    let folder = Folder::new();
    TIED.put(&folder, "m");
    folder.file("out/model.safetensors", "old");
    let before = folder.listing();
    // In blocks of 512 bytes: nothing, small files alone, half of the weights.
    for blocks in [0, 30, 140] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let words = ["extend-model", "--model", "m", "--tokenizer", "qwen-like-separate", "-q", "-o"];
        for out in ["out", "new/deep"] {
            let mut command = Command::new("sh");
            command.args(["-c", &script]).arg(program().get_program()).args(words).arg(out);
            // Through a pipe, which has no size.
            let ran: Ran = command.current_dir(folder.path()).output().unwrap().into();
            assert_eq!(ran.code, Some(2), "{blocks} {out}: {}", ran.stderr);
            assert!(ran.stderr.contains("File too large; make room"), "{}", ran.stderr);
            assert_eq!(folder.listing(), before, "{blocks} {out}");
        }
    }
    assert_eq!(folder.read("out/model.safetensors"), b"old");
}
