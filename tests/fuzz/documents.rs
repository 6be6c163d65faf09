//! Documents that drift reads whole: tokenizers, audited texts, records and traces, models, fitted placeholders, states of
//! training, lists of SMILES.

use std::path::{Path, PathBuf};

use drift::audit::ensemble::EnsembleMeasures;
use drift::audit::read::TextReading;
use drift::audit::{self, AuditPlan, AuditRequest};
use drift::checkpoint::{Header, WeightFiles};
use drift::compare::compare;
use drift::corpus::RowFilter;
use drift::encoding::{Encoding, EncodingRequest};
use drift::job::Job;
use drift::model::{Architecture, Config, Decoder, Device};
use drift::placeholder::FittedFile;
use drift::prompts::Molecules;
use drift::tokenizer::{Counter, Tokenizer};
use drift::train::documents::Loss;
use drift::train::optimizer::FlatWeights;
use drift::train::state::{FILE, Origin, TrainingHistory, TrainingState};
use drift::train::{Augmentation, Optimizer, Recipe, Schedule, Shape};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::announced;
use crate::corpus::{LINE, ROW, fixture};
use crate::harness::{Outcome, Target, Verdict};
use crate::mutate::{binary, gunzip, json, pick, text};
use crate::scene::{Scene, check_line, refused};

/// Turns what a reader returned into a verdict.
fn verdict<T>(scene: &Scene, outcome: drift::Result<T>) -> Verdict {
    match outcome {
        Ok(_) => Ok(Outcome::Accepted),
        Err(error) => refused(scene, &error),
    }
}

/// A file of the project.
fn file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// A tokenizer with a vocabulary of single characters, and these parts.
fn small_tokenizer(parts: &str) -> Vec<u8> {
    let characters: Vec<String> =
        (0x21..0x7f_u8).map(|b| serde_json::to_string(&char::from(b)).unwrap()).collect();
    let vocabulary: Vec<String> = characters.iter().enumerate().map(|(id, c)| format!("{c}: {id}")).collect();
    format!(
        r#"{{"version": "1.0", "added_tokens": [{{"id": 100, "content": "<eos>", "special": true, "single_word": false,
        "lstrip": false, "rstrip": false, "normalized": false}}], {parts},
        "model": {{"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
        "vocab": {{{}, "00": 94, "0.": 95}}, "merges": [["0", "0"], ["0", "."]]}}}}"#,
        vocabulary.join(", ")
    )
    .into_bytes()
}

pub(crate) fn tokenizers() -> Vec<Vec<u8>> {
    let names = ["unigram-digits-like", "border-open-minus", "gpt2-like", "llama-2-like"];
    let mut seeds: Vec<Vec<u8>> = names
        .iter()
        .map(|name| gunzip(&fixture(&format!("tokenizers/{name}/tokenizer.json.gz"))).unwrap())
        .collect();
    let parts = [
        r#""normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}, "decoder": {"type": "ByteLevel"}"#,
        r#""normalizer": {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": " "}, "content": "_"}, {"type": "Prepend", "prepend": "_"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {"type": "FixedLength", "length": 5}]},
        "post_processor": null, "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "}, {"type": "Fuse"}]}"#,
        r#""normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": false},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "split": true},
        "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<eos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<eos>": {"id": "<eos>", "ids": [100], "tokens": ["<eos>"]}}}, "decoder": {"type": "Metaspace", "replacement": "_"}"#,
        r#""truncation": {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0},
        "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "<eos>"},
        "normalizer": {"type": "NFKC"}, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\d{1,3}|."}, "behavior": "Isolated", "invert": false},
        "post_processor": {"type": "RobertaProcessing", "sep": ["<eos>", 100], "cls": ["<eos>", 100], "trim_offsets": true, "add_prefix_space": true}, "decoder": {"type": "BPEDecoder", "suffix": "</w>"}"#,
    ];
    seeds.extend(parts.map(small_tokenizer));
    seeds
}

/// Parts of a tokenizer, and strings that its fields take.
pub(crate) const TOKENIZER_WORDS: [&str; 30] = [
    r#"{"type": "FixedLength", "length": 0}"#,
    r#"{"type": "FixedLength", "length": 18446744073709551615}"#,
    r#"{"type": "Precompiled", "precompiled_charsmap": ""}"#,
    r#"{"type": "Precompiled", "precompiled_charsmap": "AAAA"}"#,
    r#"{"type": "Precompiled", "precompiled_charsmap": "BAAAAP////8AAAAA"}"#,
    r#"{"type": "Replace", "pattern": {"String": ""}, "content": ""}"#,
    r#"{"type": "Replace", "pattern": {"Regex": ""}, "content": "x"}"#,
    r#"{"type": "Replace", "pattern": {"Regex": "(a*)*b|$"}, "content": "aaaaaaaaaaaaaaaaaaaa"}"#,
    r#"{"type": "Split", "pattern": {"Regex": "(.+)+\\d$"}, "behavior": "Removed", "invert": true}"#,
    r#"{"type": "Split", "pattern": {"Regex": "(?=a)|(?<=\\d)"}, "behavior": "MergedWithPrevious", "invert": false}"#,
    r#"{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}"#,
    r#"{"type": "UnicodeScripts"}"#,
    r#"{"type": "CharDelimiterSplit", "delimiter": "."}"#,
    r#"{"type": "BertPreTokenizer"}"#,
    r#"{"type": "Punctuation", "behavior": "Contiguous"}"#,
    r#"{"type": "Strip", "strip_left": true, "strip_right": true}"#,
    r#"{"type": "Strip", "content": " ", "start": 18446744073709551615, "stop": 3}"#,
    r#"{"type": "StripAccents"}"#,
    r#"{"type": "Prepend", "prepend": ""}"#,
    r#"{"type": "Metaspace", "replacement": "", "prepend_scheme": "first", "split": false}"#,
    r#"{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "", "max_input_chars_per_word": 0, "vocab": {}}"#,
    r#"{"type": "WordLevel", "vocab": {"a": 4294967295}, "unk_token": "x"}"#,
    r#"{"type": "Unigram", "unk_id": 7, "vocab": [["a", -1e999], ["", 0.0]], "byte_fallback": true}"#,
    r#"{"type": "Unigram", "unk_id": null, "vocab": []}"#,
    r#"{"type": "BPE", "vocab": {}, "merges": ["a b"]}"#,
    r#"{"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}"#,
    r#"{"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": true}"#,
    "0.5",
    "[\"\", \"\"]",
    r#"{"id": 2000000000, "content": "", "special": true, "single_word": true, "lstrip": true, "rstrip": true, "normalized": true}"#,
];

/// Texts that a tokenizer that was accepted must bear.
const TEXTS: [&str; 6] = [
    LINE,
    "",
    "<0.0000,-1.5000,12.1234>",
    "é😀\u{202e}\0 \n",
    "   ",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 1234567890 ]<-0.",
];

/// A part of the tokenizer is exchanged, mostly.
fn tokenizer_case(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    // The small ones, which are last, are quick.
    let seed =
        if random.random_bool(0.8) { pick(random, &seeds[seeds.len() - 4..]) } else { pick(random, seeds) };
    let mut document: Value = serde_json::from_slice(seed).unwrap();
    if random.random_bool(0.7) {
        let part = *pick(
            random,
            &["normalizer", "pre_tokenizer", "post_processor", "decoder", "model", "padding", "truncation"],
        );
        let word = *pick(random, &TOKENIZER_WORDS);
        document[part] = serde_json::from_str(word).unwrap_or(Value::Null);
    }
    let changed = document.to_string().into_bytes();
    if random.random_bool(0.5) { changed } else { json(random, &[changed], &TOKENIZER_WORDS) }
}

fn check_tokenizer(scene: &Scene, _: &[u8]) -> Verdict {
    let tokenizer = match Tokenizer::load(scene.path()) {
        Ok(tokenizer) => tokenizer,
        // Some is said of the tokenizer by its name, which is that of its folder.
        Err(error) if error.to_string().starts_with("here") => {
            return check_line(&error.to_string()).map(|()| Outcome::Refused);
        }
        Err(error) => return refused(scene, &error),
    };
    // What does not fit a text is refused with the tokenizer's name.
    let named = |error: drift::Error| match error.exit_code() {
        2 => check_line(&error.to_string()),
        code => Err(format!("exit code {code}: {error}")),
    };
    for text in TEXTS {
        let _ = tokenizer.tokens(text).map_err(named).or_else(|verdict| verdict.map(|()| Vec::new()))?;
        let _ = tokenizer.free_ends(text).map_err(named).or_else(|verdict| verdict.map(|()| Vec::new()))?;
        let ids =
            tokenizer.answer_ids(text).map_err(named).or_else(|verdict| verdict.map(|()| Vec::new()))?;
        tokenizer.answer_text(&ids).map_err(named).or_else(|verdict| verdict.map(|()| String::new()))?;
    }
    Counter::new(&tokenizer, ["[C]<>[O]<>"]).map(drop).map_err(named).or_else(|verdict| verdict)?;
    Ok(Outcome::Accepted)
}

pub(crate) fn audited() -> Vec<Vec<u8>> {
    let smoke = r#"{"metadata": {"version": "v3", "processor_type": "qwen"}, "num_passed": 1, "num_failed": 1, "summary": {"parse_failures": 0},
        "passes": [{"prompt_smiles": "C=O", "decoded_text": "LINE", "all_generations": ["LINE", {"decoded_text": "[C]<1,2"}]}],
        "failures": [{"prompt_smiles": "CO", "decoded_text": "[SMILES]CO[/SMILES][CONFORMER][C]<1,,3>[O]<x>"}]}"#;
    let texts = [
        smoke.replace("LINE", LINE),
        format!("[{ROW}, {{\"text\": \"{LINE}\"}}]"),
        format!("{ROW}\n{{\"completion\": \"{LINE}\", \"smiles\": \"C=O\", \"lp\": \"none\"}}\n"),
        format!("{LINE}\n{LINE}\n"),
    ];
    texts.map(String::into_bytes).to_vec()
}

/// Now and then a text of very many atoms.
fn audit_case(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    if random.random_bool(0.002) {
        let count = *pick(random, &[1_500, 20_000, 100_000]);
        let (smiles, text) = ("C".repeat(count), "[C]<0,0,0>".repeat(count));
        return format!("{{\"smiles\": \"{smiles}\", \"embedded_smiles\": \"{text}\"}}\n").into_bytes();
    }
    json(random, seeds, &[])
}

fn check_audit(scene: &Scene, _: &[u8]) -> Verdict {
    let request = || AuditRequest {
        files: vec![PathBuf::from(scene.file)],
        rows: RowFilter::default(),
        zeros: None,
        blocks: EncodingRequest::default(),
        model: None,
        tokenizer: None,
        tokenizer_path: None,
        placeholder: None,
        references: Vec::new(),
        thresholds: vec![0.75],
        ensembles: EnsembleMeasures { clusters: vec![0.5], ..EnsembleMeasures::default() },
        as_3dmolgen: true,
        missing: drift::audit::MissingPolicy::Zero,
        pool: false,
        all_conformers: true,
        by_text: true,
        max_atoms: drift::chem::AtomLimit::default(),
        isotopes: drift::chem::Isotopes::Ignore,
        row_field: drift::audit::RowField::default(),
        against_row: None,
    };
    let plan = |encoding| AuditPlan {
        request: request(),
        encoding,
        recipe: None,
        like: Encoding::FIXED,
        energy: None,
    };
    if let Err(error) = audit::read::read(scene.path(), &TextReading::default(), &Job::default()) {
        return refused(scene, &error);
    }
    let report = match drift::audit(&plan(Some(Encoding::FIXED)), &Job::default()) {
        Ok(report) => report,
        Err(error) => return refused(scene, &error),
    };
    for record in &report.skipped_records {
        check_line(&format!("{}: {}: {}", record.file, record.record, record.reason))
            .map_err(|what| format!("skipped record: {what}"))?;
    }
    // Where nothing tells the encoding, that is refused.
    verdict(scene, drift::audit(&plan(None), &Job::default()))?;
    Ok(Outcome::Accepted)
}

pub(crate) fn records() -> Vec<Vec<u8>> {
    let trace = r#"{"traceEvents": [{"name": "prefill", "cat": "none", "ph": "X", "ts": 1.5, "dur": 3, "pid": 1, "tid": 1},
        {"name": "decode", "cat": "none", "ph": "B", "ts": 7, "pid": 1, "tid": 1}, {"name": "decode", "cat": "none", "ph": "E", "ts": 9.25, "pid": 1, "tid": 1}]}"#;
    vec![file("eval/records/2026-11-20-reference-speed/record.json"), trace.as_bytes().to_vec()]
}

fn check_record(scene: &Scene, _: &[u8]) -> Verdict {
    verdict(scene, compare([scene.path(), scene.path()], &Job::default()))
}

/// A model folder without the case's file.
fn model(scene: &Scene, name: &str) {
    scene.add_folder(&format!("tests/fixtures/models/{name}"), "model");
}

fn configs() -> Vec<Vec<u8>> {
    let names = ["llama-scaled", "llama-tied", "qwen3-tied", "qwen3-untied"];
    names.iter().map(|name| fixture(&format!("models/{name}/config.json"))).collect()
}

/// What is wrong with a model is said of one of its files.
fn check_model(scene: &Scene, _: &[u8]) -> Verdict {
    let outcome =
        Config::load(Path::new("model")).and_then(|_| Decoder::load(Path::new("model"), &Device::cpu()));
    match outcome {
        Ok(_) => Ok(Outcome::Accepted),
        Err(error) if error.to_string().starts_with("model") => refused(scene, &error)
            .or_else(|what| if what.starts_with("does not name") { Ok(Outcome::Refused) } else { Err(what) }),
        Err(error) => refused(scene, &error),
    }
}

fn check_weights(scene: &Scene, bytes: &[u8]) -> Verdict {
    let outcome = check_model(scene, bytes)?;
    let header = Header::read(scene.path());
    let own = safetensors::SafeTensors::deserialize(bytes).is_ok();
    match header {
        Ok(_) if !own => Err("a header that the crate safetensors refuses was read".to_owned()),
        Ok(_) => Ok(outcome),
        Err(error) => refused(scene, &error),
    }
}

fn check_index(scene: &Scene, bytes: &[u8]) -> Verdict {
    let index = Path::new("model/model.safetensors.index.json");
    let files = match WeightFiles::find(index, "give another") {
        Ok(files) => files,
        Err(error) => return refused(scene, &error),
    };
    if let Some(outside) = files.files().iter().find(|file| file.parent() != Some(Path::new("model"))) {
        return Err(format!("the index leads to {}", outside.display()));
    }
    check_model(scene, bytes)
}

fn recipe() -> Recipe {
    Recipe {
        shape: Shape {
            architecture: Architecture::Qwen3,
            hidden: 8,
            layers: 1,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            intermediate: 8,
            context: 64,
        },
        schedule: Schedule {
            optimizer: Optimizer::AdamW,
            steps: 10,
            batch_tokens: 64,
            learning_rate: 0.002,
            warmup_steps: 2,
            final_share: 0.1,
            weight_decay: 0.1,
            clip: 1.0,
            outline_steps: 0,
            shortest_first: false,
            new_rows_steps: 0,
        },
        loss: Loss::default(),
        augmentation: Augmentation::default(),
        encoding: Encoding::FIXED,
        seed: 0,
        init: None,
        tokenizer: "small".to_owned(),
        end_of_text: "<|endoftext|>".into(),
        beginning_of_text: None,
        inputs: Vec::new(),
    }
}

/// Weights of a state.
const STATE_SIZE: usize = 32;

fn states() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let past = TrainingHistory { tokens: 77, curve: Vec::new(), validation: Vec::new(), pending: [0.1, 2.0] };
    let state = TrainingState { weighted: FlatWeights::new(vec![0.5; STATE_SIZE]), past };
    state.save(folder.path(), Origin { recipe: &recipe(), documents: "0" }).unwrap();
    vec![std::fs::read(folder.path().join(FILE)).unwrap()]
}

fn check_state(scene: &Scene, _: &[u8]) -> Verdict {
    verdict(
        scene,
        TrainingState::load(Path::new("."), Origin { recipe: &recipe(), documents: "0" }, STATE_SIZE),
    )
}

fn check_molecules(scene: &Scene, bytes: &[u8]) -> Verdict {
    let molecules = match Molecules::of_file(scene.path(), None, &Job::default()) {
        Ok(molecules) => molecules,
        Err(error) => return refused(scene, &error),
    };
    for record in &molecules.skipped_records {
        check_line(&format!("{}: {}: {}", record.file, record.record, record.reason))
            .map_err(|what| format!("skipped record: {what}"))?;
    }
    let content = gunzip(bytes).unwrap_or_else(|| bytes.to_vec());
    let announced = announced::smiles(&String::from_utf8_lossy(&content));
    let found = molecules.molecules.len() as u64 + molecules.skipped;
    if found != announced {
        return Err(format!(
            "another number of molecules than lines | {announced} lines, {} molecules and {} skipped",
            molecules.molecules.len(),
            molecules.skipped
        ));
    }
    Ok(Outcome::Accepted)
}

/// SMILES of many kinds, for other files too.
pub(crate) const SMILES: [&str; 12] = [
    "CCO",
    "C1CC1C(=O)[O-]",
    "c1ccccc1-c1cc[nH]c1",
    "N[C@@H](C)C(=O)O",
    "F/C=C\\F",
    "[13CH4]",
    "C%10CC%10",
    "[Na+].[Cl-]",
    "CC(C)(C)c1ccc2c(c1)OCO2",
    "O=S(=O)(N)c1ccc(cc1)C#N",
    "[H][H]",
    "C1CC2CCC1CC2",
];

pub(crate) const SMILES_WORDS: [&str; 18] = [
    "(",
    ")",
    "[",
    "]",
    "=",
    "#",
    "%99",
    "1",
    "c1",
    "@@",
    "/",
    "\\",
    ".",
    "[CH0]",
    "[999Xx+99]",
    "C(",
    "C1",
    "*",
];

fn smiles_files() -> Vec<Vec<u8>> {
    let lines = SMILES.map(|smiles| format!("{smiles} a name"));
    vec![SMILES.join("\n").into_bytes(), format!("# molecules\n{}\n", lines.join("\r\n")).into_bytes()]
}

/// Changes of the header alone, mostly.
fn binary_header(random: &mut ChaCha8Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let words =
        ["\"dtype\":\"F64\"", "\"shape\":[]", "\"data_offsets\":[0,0]", "__metadata__", "{", "}", "BF16"];
    if random.random_bool(0.2) {
        return binary(random, seeds, &words);
    }
    let whole = &seeds[0];
    let length = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let (head, data) = whole.split_at(8 + length);
    let mut head = text(random, &[head[8..].to_vec()], &words);
    let announced = if random.random_bool(0.9) { head.len() } else { length };
    head.splice(..0, (announced as u64).to_le_bytes());
    [&head, data].concat()
}

fn weights() -> Vec<Vec<u8>> {
    vec![fixture("models/qwen3-tied/model.safetensors")]
}

/// The targets of this file.
pub(crate) fn targets() -> Vec<Target> {
    let base = Target { make: |r, s| json(r, s, &[]), cases: 250, ..Target::BASE };
    let mut targets = vec![
        Target {
            name: "tokenizer",
            file: "tokenizer.json",
            seeds: tokenizers,
            make: tokenizer_case,
            check: check_tokenizer,
            cases: 100,
            ..base
        },
        Target { name: "audit", seeds: audited, make: audit_case, check: check_audit, ..base },
        Target { name: "record", seeds: records, check: check_record, ..base },
        Target {
            name: "fitted",
            seeds: || vec![file("placeholders/qwen-like.json")],
            check: |scene, _| verdict(scene, FittedFile::read(scene.path(), &Job::default())),
            ..base
        },
        Target { name: "state", file: FILE, seeds: states, make: binary_header, check: check_state, ..base },
        Target {
            name: "smiles-file",
            seeds: smiles_files,
            make: |r, s| text(r, s, &SMILES_WORDS),
            check: check_molecules,
            ..base
        },
    ];
    targets.extend(models());
    targets
}

/// The files of a model.
fn models() -> Vec<Target> {
    let base = Target { make: |r, s| json(r, s, &[]), cases: 250, ..Target::BASE };
    vec![
        Target {
            name: "config",
            file: "model/config.json",
            seeds: configs,
            prepare: |s| model(s, "qwen3-tied"),
            check: check_model,
            ..base
        },
        Target {
            name: "weights",
            file: "model/model.safetensors",
            seeds: weights,
            make: binary_header,
            prepare: |s| model(s, "qwen3-tied"),
            check: check_weights,
            ..base
        },
        Target {
            name: "index",
            file: "model/model.safetensors.index.json",
            seeds: || vec![fixture("models/qwen3-untied/model.safetensors.index.json")],
            make: |r, s| {
                json(
                    r,
                    s,
                    &["\"../x.bin\"", "\"/etc/passwd\"", "\"..\"", "\"model-00001-of-00004.safetensors\""],
                )
            },
            prepare: |s| model(s, "qwen3-untied"),
            check: check_index,
            ..base
        },
    ]
}
