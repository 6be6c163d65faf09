//! The extended tokenizers that come with drift: made again, on text without blocks, and read by Python.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use drift::corpus::{EmbeddedConformers, Files, ReadOptions};
use drift::design::extension::config::tokenizer_config;
use drift::design::extension::mixed::{MIXED_TEXTS, mixed_text};
use drift::design::{Aim, ExtensionPlan, Range, SchemeKind, train};
use drift::encoding::Encoding;
use drift::job::Job;
use drift::text::{self, skeleton};
use drift::tokenizer::{EXTENDED, Tokenizer, block_ranges};
use rayon::prelude::*;
use serde_json::Value;
use tokenizers::Tokenizer as HfTokenizer;

use crate::support::{self, Folder, python_program, sized};

const READY_MADE: [(&str, &str, SchemeKind, usize); 4] = [
    ("qwen-like-separate", "qwen-like", SchemeKind::Separate, 11),
    ("qwen-like-fused", "qwen-like", SchemeKind::Fused, 9),
    ("llama-like-separate", "llama-like", SchemeKind::Separate, 11),
    ("llama-like-fused", "llama-like", SchemeKind::Fused, 9),
];

/// A folder of `tokenizers`.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tokenizers").join(name)
}

/// JSON as the program writes it.
fn lines(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap() + "\n"
}

#[test]
fn they_are_what_the_program_makes() {
    // What is made does not depend on the conformers that it is measured on.
    let work = Folder::new();
    let inputs = vec![work.file("one.txt", "[C]<0.5000,-1.2000,0.0000>[O]<-0.0712,0.9000,1.2345>\n")];
    let corpus = Files { inputs, options: ReadOptions::default() };
    // Each takes as long as a user waits for one, and `.ci/run --all` makes all four.
    let made = sized(READY_MADE.len(), 1);
    for (embedded, (name, base, kind, tokens)) in EXTENDED.iter().zip(READY_MADE).take(made) {
        let config = Tokenizer::embedded_by_name(Path::new(base)).unwrap().config;
        let (base, json) = Tokenizer::load_with_json(Path::new(base)).unwrap();
        let base_json = serde_json::from_slice(&json).unwrap();
        let (range, aim) = (Range::new(20).unwrap(), Aim::TokensPerBlock(tokens));
        let plan = ExtensionPlan {
            range,
            contexts: 1,
            ..ExtensionPlan::new(base, base_json, kind, Encoding::FIXED, aim)
        };
        let trained = train(&plan, &corpus, &Job::default()).unwrap();
        let file = |file: &str| std::fs::read_to_string(folder(name).join(file)).unwrap();
        assert_eq!(embedded.name, name);
        assert!(trained.tokenizer_json == embedded.json, "{name}/tokenizer.json");
        assert_eq!(lines(&trained.new_tokens), file("new_tokens.json"), "{name}");
        let config: Value = serde_json::from_str(config).unwrap();
        assert_eq!(lines(&tokenizer_config(Some(&config))), file("tokenizer_config.json"), "{name}");
    }
}

/// The embedded corpus' conformers as text, in tags.
fn conformers(encoding: Encoding) -> Vec<String> {
    let all = support::conformers(&EmbeddedConformers::default());
    all.iter().map(|c| text::tagged(&text::write(&c.skeleton, &c.coordinates, encoding))).collect()
}

/// Whether a text between brackets is a block of decimals, fixed or stripped: three numbers, each with up to four decimals.
fn is_block(inside: &str) -> bool {
    let number = |number: &str| {
        let number = number.strip_prefix('-').unwrap_or(number);
        let (whole, decimals) = number.split_once('.').map_or((number, None), |(w, d)| (w, Some(d)));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let whole_is_good = digits(whole) && (whole == "0" || !whole.starts_with('0'));
        let decimals_are_good = |d: &str| digits(d) && (d.len() == 4 || d.len() < 4 && !d.ends_with('0'));
        whole_is_good && decimals.is_none_or(decimals_are_good)
    };
    inside.split(',').count() == 3 && inside.split(',').all(number)
}

#[test]
fn mixed_text_is_mixed_and_holds_no_block() {
    let texts: Vec<String> = (0..MIXED_TEXTS).into_par_iter().map(mixed_text).collect();
    assert!(texts.iter().map(String::len).sum::<usize>() >= 10_000_000);
    assert_eq!(texts[7], mixed_text(7));
    for text in &texts {
        let block = block_ranges(text).into_iter().find(|range| is_block(&text[range.clone()]));
        assert_eq!(block.map(|range| text[range].to_owned()), None);
    }
    assert!(is_block("1.5,-0.25,10") && is_block("0.0000,-1.0000,12.3456") && !is_block("1.50,2,3"));
    let all = texts.concat();
    for sign in ['ß', 'λ', 'Ж', 'ש', 'م', 'ऋ', 'ก', '漢', 'か', '한', '😀', '٣', '\t', '\u{301}']
    {
        assert!(all.contains(sign), "{sign:?}");
    }
    for part in ["<1.0,2>", "<a,b,c>", "[C@@H]", "%12", " < ", "->", "</", "[SMILES]", "\r\n"] {
        assert!(all.contains(part), "{part:?}");
    }
}

#[test]
fn ten_megabytes_of_text_without_blocks_take_the_tokens_of_the_base() {
    let smiles: Vec<String> = conformers(Encoding::FIXED)
        .iter()
        .map(|text| {
            let bare = text.trim_start_matches(text::CONFORMER_OPEN).trim_end_matches(text::CONFORMER_CLOSE);
            skeleton::smiles(&text::parse(bare, Default::default()).unwrap().skeleton)
        })
        .collect();
    // All of it with one of them, a part with another; without `DRIFT_ALL` parts of both, since `train-tokenizer` compares all of it itself.
    let whole = sized(MIXED_TEXTS, MIXED_TEXTS / 8);
    for (name, base, texts) in
        [("qwen-like-separate", "qwen-like", whole), ("llama-like-fused", "llama-like", MIXED_TEXTS / 8)]
    {
        let load = |name: &str| HfTokenizer::from_file(folder(name).join("tokenizer.json")).unwrap();
        let (before, after) = (load(base), load(name));
        let same = |text: &str| {
            let ids =
                |tokenizer: &HfTokenizer| tokenizer.encode_fast(text, false).unwrap().get_ids().to_vec();
            assert!(ids(&before) == ids(&after), "{name}: {text:?}");
        };
        (0..texts).into_par_iter().for_each(|index| same(&mixed_text(index)));
        smiles.par_iter().for_each(|text| same(text));
    }
}

#[test]
#[cfg_attr(not(has_transformers), ignore = "needs a Python with tokenizers and transformers")]
fn python_gives_the_same_ids_to_thousands_of_texts() {
    let python = python_program();
    let mut texts = conformers(Encoding::FIXED);
    texts.extend(conformers(Encoding::STRIPPED).into_iter().step_by(2));
    let missing = 10_000usize.saturating_sub(texts.len()).max(500);
    texts.extend((0..missing as u64).map(mixed_text));
    let texts: Vec<String> = texts.into_iter().step_by(sized(1, 5)).collect();
    assert!(texts.len() >= sized(10_000, 2_000));
    let work = tempfile::tempdir().unwrap();
    let write = |name: &str, lines: Vec<String>| {
        let path = work.path().join(name);
        std::fs::write(
            &path,
            lines.iter().fold(String::new(), |mut all, line| {
                writeln!(all, "{line}").unwrap();
                all
            }),
        )
        .unwrap();
        path
    };
    let mut arguments = Vec::new();
    // All of them with one tokenizer, some with another.
    for (name, step) in [("qwen-like-separate", 1), ("llama-like-fused", 10)] {
        let tokenizer = Tokenizer::load(&folder(name)).unwrap();
        let texts: Vec<&String> = texts.iter().step_by(step).collect();
        let json = texts.iter().map(|text| Value::from(text.as_str()).to_string()).collect();
        let ids = texts.par_iter().map(|text| format!("{:?}", tokenizer.ids(text).unwrap())).collect();
        let (texts, ids) = (write(&format!("{name}-texts"), json), write(&format!("{name}-ids"), ids));
        arguments.extend([folder(name), texts, ids]);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/ids.py");
    let output = Command::new(python).arg(script).args(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.lines().count() == 2 && said.lines().all(|line| line.contains(" texts agree")), "{said}");
    assert!(said.starts_with(&format!("qwen-like-separate: {} texts", texts.len())), "{said}");
    eprint!("{said}");
}
