//! Rows to begin with: what is in them, by arithmetic of our own; which models are refused.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use drift::corpus::{Files, ReadOptions};
use drift::design::extension::new_tokens::{NewToken, NewTokens};
use drift::design::rows::initial::{Rows, rows};
use drift::design::rows::weights::Model;
use drift::design::{Aim, ExtensionPlan, Range, SchemeKind, TrainedTokenizer, train};
use drift::encoding::Encoding;
use drift::job::Job;
use drift::report::card::model_card;
use drift::tokenizer::Tokenizer;
use half::{bf16, f16};
use proptest::prelude::*;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};

use crate::support::{Folder, python_program};

pub(crate) const HIDDEN: usize = 24;

pub(crate) fn base() -> Tokenizer {
    Tokenizer::load(Path::new("qwen-like")).unwrap()
}

/// Rows that the base's ids need.
pub(crate) fn needed(base: &Tokenizer) -> usize {
    base.rows() as usize
}

/// A table that looks random, of a scale as embeddings have.
fn values(rows: usize, hidden: usize, salt: u64) -> Vec<f32> {
    let mut state = salt.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 0.05
    };
    (0..rows * hidden).map(|_| next()).collect()
}

fn encoded(values: &[f32], dtype: Dtype) -> Vec<u8> {
    let bytes = |value: &f32| match dtype {
        Dtype::F16 => f16::from_f32(*value).to_le_bytes().to_vec(),
        Dtype::BF16 => bf16::from_f32(*value).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    };
    values.iter().flat_map(bytes).collect()
}

pub(crate) fn decoded(bytes: &[u8], dtype: Dtype) -> Vec<f64> {
    match dtype {
        Dtype::F16 => bytes.chunks(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64()).collect(),
        Dtype::BF16 => bytes.chunks(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f64()).collect(),
        _ => bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect(),
    }
}

/// One step of a type.
pub(crate) fn step(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => 2f64.powi(-23),
        Dtype::F16 => 2f64.powi(-11),
        _ => 2f64.powi(-8),
    }
}

/// Name, type, shape and bytes.
pub(crate) type Tensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

/// A safetensors file.
pub(crate) fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    safetensors_with(tensors, None)
}

/// The same with metadata.
pub(crate) fn safetensors_with(tensors: &[Tensor], metadata: Option<HashMap<String, String>>) -> Vec<u8> {
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, bytes)| (*name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    serialize(views, metadata).unwrap()
}

pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
pub(crate) const HEAD: &str = "lm_head.weight";

/// A tensor of a model beside the tables.
pub(crate) fn norm() -> Tensor {
    ("model.norm.weight", Dtype::F32, vec![HIDDEN], encoded(&values(1, HIDDEN, 9), Dtype::F32))
}

pub(crate) fn tensor(name: &'static str, dtype: Dtype, rows: usize, salt: u64) -> Tensor {
    (name, dtype, vec![rows, HIDDEN], encoded(&values(rows, HIDDEN, salt), dtype))
}

fn new_tokens(base: &Tokenizer, texts: &[String]) -> NewTokens {
    let first = needed(base) as u32;
    let token = |(id, text): (u32, &String)| NewToken {
        id,
        text: text.clone(),
        base_ids: base.ids(text).unwrap(),
        replaces: None,
    };
    NewTokens {
        schema: "drift.new-tokens/1",
        base: base.name.clone(),
        new_tokens: (first..).zip(texts).map(token).collect(),
    }
}

/// The base's pieces of a text: characters, but `,-` is one.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if last == "," && c == '-' => last.push(c),
            _ => pieces.push(c.into()),
        }
    }
    pieces
}

/// The weights of old tokens, by text, as the documentation defines them.
fn weights(text: &str, variant: &str) -> Vec<(String, f64)> {
    let pieces = pieces(text);
    let n = pieces.len() as f64;
    let m = text.bytes().filter(u8::is_ascii_digit).count() as i32;
    if let "first" | "last" = variant {
        // By the first piece or the last: each weighs twice the one behind or before it.
        let count = pieces.len() as i32;
        let place = |at: usize| if variant == "first" { count - 1 - at as i32 } else { at as i32 };
        let weight = |at: usize| 2f64.powi(place(at)) / (2f64.powi(count) - 1.0);
        return pieces.into_iter().enumerate().map(|(at, piece)| (piece, weight(at))).collect();
    }
    let mut place = 0;
    let weigh = |piece: String| {
        if variant == "mean" || piece.parse::<u8>().is_err() {
            return (piece, 1.0 / n);
        }
        place += 1;
        (piece, f64::from(m) / n * 2f64.powi(m - place) / (2f64.powi(m) - 1.0))
    };
    pieces.into_iter().map(weigh).collect()
}

pub(crate) fn length(row: &[f64]) -> f64 {
    row.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// A row by its definition.
pub(crate) fn expected(base: &Tokenizer, table: &[f64], text: &str, variant: &str) -> Vec<f64> {
    let mut sum = vec![0.0; HIDDEN];
    let mut target = 0.0;
    for (piece, weight) in weights(text, variant) {
        let &[id] = base.ids(&piece).unwrap().as_slice() else { panic!("{piece}") };
        let row = &table[id as usize * HIDDEN..][..HIDDEN];
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
        target += weight * length(row);
    }
    let scale = target / length(&sum);
    sum.into_iter().map(|x| x * scale).collect()
}

fn made(model: &Path, texts: &[String]) -> Rows {
    let base = base();
    rows(&Model::open(model).unwrap(), &base, &new_tokens(&base, texts)).unwrap()
}

fn texts() -> Vec<String> {
    ["45", "54", "4", "07", "70", ",-1.", "12.", ",13.", "9>", "001", "010", "100"].map(String::from).to_vec()
}

#[test]
fn rows_are_what_their_definition_says() {
    let (base, folder) = (base(), Folder::new());
    let rows = needed(&base) + 5;
    for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
        let tensors = [norm(), tensor(EMBEDDING, dtype, rows, 1), tensor(HEAD, dtype, rows, 2)];
        let file = folder.file("mine.safetensors", safetensors(&tensors));
        let made = made(&file, &texts());
        assert_eq!(made.report.model, "mine");
        let read = SafeTensors::deserialize(&made.safetensors).unwrap();
        let ids = read.tensor("ids").unwrap();
        let first = needed(&base) as i64;
        let listed: Vec<i64> =
            ids.data().chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!((ids.dtype(), listed), (Dtype::I64, (first..first + 12).collect()));
        for (name, (_, _, _, bytes)) in ["embed_tokens", "lm_head"].into_iter().zip(&tensors[1..]) {
            let table = decoded(bytes, dtype);
            for variant in ["mean", "digits"] {
                let tensor = read.tensor(&format!("{name}.{variant}")).unwrap();
                assert_eq!((tensor.dtype(), tensor.shape()), (dtype, &[12, HIDDEN][..]));
                let step = step(dtype);
                for (text, row) in texts().iter().zip(decoded(tensor.data(), dtype).chunks(HIDDEN)) {
                    for (got, want) in row.iter().zip(expected(&base, &table, text, variant)) {
                        // Half a step, and the subnormal end of F16.
                        assert!(
                            (got - want).abs() <= want.abs() * step + 1e-7,
                            "{name} {variant} {text}: {got} {want}"
                        );
                    }
                }
            }
        }
        // 45 and 54, 07 and 70, 001, 010 and 100 share; order tells the digits variant apart.
        let shared: Vec<(&str, u64)> = made.report.variants.iter().map(|v| (v.name, v.shared_rows)).collect();
        assert_eq!(shared, [("mean", 7), ("digits", 0)]);
    }
}

#[test]
fn digits_keep_numbers_apart_and_near_ones_near() {
    let folder = Folder::new();
    let base = base();
    let tensors = [tensor(EMBEDDING, Dtype::F32, needed(&base), 3)];
    let file = folder.file("model.safetensors", safetensors(&tensors));
    let texts: Vec<String> = (0..1_000).map(|number| format!("{number:03}")).collect();
    let made = made(&file, &texts);
    let read = SafeTensors::deserialize(&made.safetensors).unwrap();
    assert!(read.tensor("lm_head.mean").is_err(), "a tied model has no head of its own");
    let rows = decoded(read.tensor("embed_tokens.digits").unwrap().data(), Dtype::F32);
    let row = |number: usize| &rows[number * HIDDEN..][..HIDDEN];
    let distance = |a: usize, b: usize| -> f64 {
        row(a).iter().zip(row(b)).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
    };
    let nearest = (0..1_000).flat_map(|a| (0..a).map(move |b| (a, b))).map(|(a, b)| distance(a, b));
    assert!(nearest.fold(f64::INFINITY, f64::min) > 1e-3);
    // On average over all numbers, a change of a more significant digit moves a row more.
    let moved = |step: usize| (0..1_000).map(|n| distance(n, (n + step) % 1_000)).sum::<f64>() / 1_000.0;
    assert!(
        moved(100) > 1.5 * moved(10).min(moved(1)) && moved(10) > moved(1),
        "{} {} {}",
        moved(100),
        moved(10),
        moved(1)
    );
    assert_eq!(made.report.variants[0].shared_rows, 990);
}

#[test]
fn shards_and_files_give_the_same_bytes() {
    let folder = Folder::new();
    let rows = needed(&base());
    let (embedding, head) = (tensor(EMBEDDING, Dtype::BF16, rows, 1), tensor(HEAD, Dtype::BF16, rows, 2));
    let whole = folder.file("whole.safetensors", safetensors(&[norm(), embedding.clone(), head.clone()]));
    folder.file("sharded/one.safetensors", safetensors(&[norm(), embedding]));
    folder.file("sharded/two.safetensors", safetensors(&[head]));
    let map = json!({EMBEDDING: "one.safetensors", "model.norm.weight": "one.safetensors", HEAD: "two.safetensors"});
    let index = json!({"metadata": {"total_size": 1}, "weight_map": map}).to_string();
    let index = folder.file("sharded/model.safetensors.index.json", index);
    let whole = made(&whole, &texts());
    for path in [index.parent().unwrap(), &index] {
        let sharded = made(path, &texts());
        assert_eq!(sharded.report.model, "sharded");
        let tensors = |rows: &Rows| -> HashMap<String, Vec<u8>> {
            let read = SafeTensors::deserialize(&rows.safetensors).unwrap();
            read.tensors().into_iter().map(|(name, view)| (name, view.data().to_vec())).collect()
        };
        assert_eq!(tensors(&sharded), tensors(&whole));
    }
    // A head that is stored although the configuration ties it has to be the embedding.
    folder.file("sharded/config.json", "{\"tie_word_embeddings\": true}");
    assert!(refused(&index).contains("`lm_head.weight` differs from the embedding"));
    folder.file("sharded/two.safetensors", safetensors(&[tensor(HEAD, Dtype::BF16, rows, 1)]));
    assert_eq!(Model::open(&index).unwrap().head, None);
}

/// The message with which a model is refused.
fn refused(path: &Path) -> String {
    let base = base();
    let outcome = Model::open(path).and_then(|model| rows(&model, &base, &new_tokens(&base, &texts())));
    match outcome {
        Err(error @ (drift::Error::Input { .. } | drift::Error::Io { .. })) => {
            let message = error.to_string();
            assert!(message.contains(path.to_str().unwrap()) && !message.contains('\n'), "{message}");
            message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn models_that_do_not_match_are_refused() {
    let folder = Folder::new();
    let rows = needed(&base());
    let good = || tensor(EMBEDDING, Dtype::F32, rows, 1);
    let of = |tensors: &[_]| folder.file("m.safetensors", safetensors(tensors));
    let message = refused(&of(&[tensor(EMBEDDING, Dtype::F32, rows - 1, 1)]));
    for part in
        [EMBEDDING, "1548 rows, but qwen-like has 1549 ids", "the model that the base tokenizer belongs to"]
    {
        assert!(message.contains(part), "{message}");
    }
    let narrow = (HEAD, Dtype::F32, vec![rows, 8], encoded(&values(rows, 8, 2), Dtype::F32));
    let message = refused(&of(&[good(), narrow]));
    assert!(
        message.contains("lm_head.weight: is [1549, 8], but model.embed_tokens.weight is [1549, 24]"),
        "{message}"
    );
    assert!(
        refused(&of(&[good(), tensor(HEAD, Dtype::F32, rows + 64, 2)])).contains("whose two tables agree")
    );
    assert!(refused(&of(&[norm()])).contains("no tensor whose name ends in embed_tokens.weight"));
    let second = tensor("vision.embed_tokens.weight", Dtype::F32, rows, 2);
    assert!(refused(&of(&[good(), second])).contains("two tensors that end in embed_tokens.weight"));
    let whole = (EMBEDDING, Dtype::I8, vec![rows, HIDDEN], vec![0; rows * HIDDEN]);
    assert!(
        refused(&of(&[whole]))
            .contains("contains I8, not F32, F16 or BF16; give weights that are not quantised")
    );
    let cube = (EMBEDDING, Dtype::F32, vec![rows, HIDDEN, 1], good().3);
    assert!(refused(&of(&[cube])).contains("not [rows, hidden]"));
    let mut damaged = good();
    damaged.3[..4 * HIDDEN * rows].chunks_mut(4).for_each(|x| x.copy_from_slice(&f32::NAN.to_le_bytes()));
    assert!(refused(&of(&[damaged])).contains("contains NaN at column 0; the checkpoint is damaged"));
    folder.file("untied/model.safetensors", safetensors(&[good()]));
    folder.file("untied/config.json", "{\"tie_word_embeddings\": false}");
    assert!(refused(&folder.path().join("untied")).contains("no tensor whose name ends in lm_head.weight"));
    assert!(refused(&folder.path().join("nowhere")).contains("nowhere"));
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    assert!(refused(&folder.path().join("empty")).contains("contains neither model.safetensors nor"));
    let index = |map: Value| {
        folder.file("index/model.safetensors.index.json", json!({"weight_map": map}).to_string())
    };
    assert!(refused(&index(json!({EMBEDDING: "../m.safetensors"}))).contains("which is not a file name"));
    assert!(refused(&index(json!(3))).contains("has no weight_map"));
    index(json!({EMBEDDING: "m.safetensors"}));
    folder.file("index/m.safetensors", safetensors(&[norm()]));
    assert!(refused(&folder.path().join("index")).contains("is not in the file, though the index says so"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_files_are_read_or_refused(cut in 0usize..4_000, at in 0usize..400, byte: u8) {
        let folder = Folder::new();
        let mut bytes = safetensors(&[norm(), tensor(EMBEDDING, Dtype::F16, 60, 1)]);
        bytes.truncate(bytes.len().saturating_sub(cut / 2));
        let at = at % bytes.len();
        bytes[at] = byte;
        let file = folder.file("m.safetensors", bytes);
        if let Err(error) = Model::open(&file) {
            let message = error.to_string();
            prop_assert!(message.contains("m.safetensors") && !message.contains('\n'), "{}", message);
        }
    }
}

/// A small extension of the base, measured on one conformer.
fn trained() -> TrainedTokenizer {
    let (base, json) = Tokenizer::load_with_json(Path::new("qwen-like")).unwrap();
    let base_json = serde_json::from_slice(&json).unwrap();
    let (kind, range, aim) = (SchemeKind::Separate, Range::new(1).unwrap(), Aim::TokensPerBlock(11));
    let plan = ExtensionPlan {
        range,
        contexts: 1,
        ..ExtensionPlan::new(base, base_json, kind, Encoding::FIXED, aim)
    };
    let folder = Folder::new();
    let corpus = Files { inputs: vec![folder.file("one.txt", ONE)], options: ReadOptions::default() };
    train(&plan, &corpus, &Job::default()).unwrap()
}

const ONE: &str = "[C]<0.5000,-0.2000,0.0000>[O]<-0.0712,0.9000,0.2345>\n";

#[test]
fn the_card_says_what_to_do() {
    check_card(None);
}

#[test]
#[cfg_attr(not(has_safetensors), ignore = "needs a Python with numpy and safetensors")]
fn the_script_of_the_card_does_what_it_says() {
    check_card(Some(python_program()));
}

fn check_card(python: Option<String>) {
    let folder = Folder::new();
    let (base, mut trained) = (base(), trained());
    let new = trained.report.new_tokens;
    for (spare, tables) in [(400, 1), (3, 2)] {
        let rows_of_model = needed(&base) + spare;
        let tensors =
            [tensor(EMBEDDING, Dtype::F32, rows_of_model, 1), tensor(HEAD, Dtype::F32, rows_of_model, 2)];
        let file = folder.file("model.safetensors", safetensors(&tensors[..tables]));
        let model = Model::open(&file).unwrap();
        let made = rows(&model, &base, &trained.new_tokens).unwrap();
        trained.report.vocabulary.for_model(Some(model.embedding.rows), Some(made.report.clone()));
        let embedding = trained.report.vocabulary.embedding;
        assert_eq!((embedding.spare_rows, embedding.fits), (Some(spare as u64), Some(spare as u64 >= new)));
        assert_eq!(embedding.resize_to.multiple_of_64, (needed(&base) as u64 + new).next_multiple_of(64));
        let card = model_card(&trained.report);
        let resize = match spare {
            400 => "do not resize it".to_owned(),
            _ => format!("`model.resize_token_embeddings({})`", embedding.resize_to.multiple_of_64),
        };
        for part in [
            &*resize,
            "position template",
            "--kind separate --tokens-per-block 11 --range 1 --model",
            "0.0000,0.0000",
        ] {
            assert!(card.contains(part), "{part}: {card}");
        }
        let Some(python) = &python else { continue };
        let out = folder.file("out/MODEL_CARD.md", card).parent().unwrap().to_owned();
        folder.file("out/embedding_rows.safetensors", &made.safetensors);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/rows.py");
        let output = Command::new(python).arg(script).args([&file, &out]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(&format!("{new} rows loaded into {tables} tables")), "{said}");
        eprint!("{said}");
    }
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn the_command_takes_a_model_and_hands_on_what_lies_beside_the_base() {
    let folder = Folder::new();
    let (json, rows) = (Tokenizer::embedded_by_name(Path::new("qwen-like")).unwrap().json, needed(&base()));
    folder.file("base/tokenizer.json", json);
    folder.file(
        "base/tokenizer_config.json",
        "{\"tokenizer_class\": \"Qwen2Tokenizer\", \"eos_token\": \"<|im_end|>\"}",
    );
    folder.file("base/generation_config.json", "{\"eos_token_id\": 3}");
    folder.file("base/vocab.json", "{}");
    folder.file("one.txt", ONE);
    folder.file("small.safetensors", safetensors(&[tensor(EMBEDDING, Dtype::F32, 7, 1)]));
    let tensors = [tensor(EMBEDDING, Dtype::BF16, rows + 400, 1), tensor(HEAD, Dtype::BF16, rows + 400, 2)];
    folder.file("model/model.safetensors", safetensors(&tensors));
    let run = |model: &str, out: &str| {
        let all =
            "train-tokenizer --base base --range 1 --tokens-per-block 11 --quiet --json --corpus one.txt";
        folder.line(&format!("{all} --model {model} -o {out}"))
    };
    let before = folder.listing();
    for (model, problem) in
        [("small.safetensors", "model.embed_tokens.weight: has 7 rows"), ("model", "the folder of the model")]
    {
        let ran = run(model, "model");
        assert!(ran.code == Some(2) && ran.stderr.contains(problem), "{}", ran.stderr);
    }
    assert_eq!(folder.listing(), before);
    let report = run("model", "out").good().json();
    let new = report["new_tokens"].as_u64().unwrap();
    assert_eq!(
        (&report["embedding"]["fits"], &report["embedding"]["spare_rows"]),
        (&json!(true), &json!(400))
    );
    assert_eq!(report["rows"]["tables"][1]["dtype"], "BF16");
    let bytes = folder.read("out/embedding_rows.safetensors");
    let read = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.tensor("lm_head.digits").unwrap().shape(), [new as usize, HIDDEN]);
    assert_eq!(folder.read("out/generation_config.json"), folder.read("base/generation_config.json"));
    let config: Value = serde_json::from_slice(&folder.read("out/tokenizer_config.json")).unwrap();
    assert_eq!(config, json!({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>"}));
    assert!(
        !folder.path().join("out/vocab.json").exists() && folder.path().join("out/MODEL_CARD.md").exists()
    );
}
