//! Counts equal the reference, `tokenizers` `encode` with offsets, on real text.

use std::path::Path;

use drift::corpus::EmbeddedConformers;
use drift::encoding::Encoding;
use drift::io::hash_bytes;
use drift::text::{tagged, write};
use drift::tokenizer::{Counter, Method, TokenRole, Tokenizer};
use rayon::prelude::*;
use tokenizers::TokenizerBuilder;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::common::fixture;
use crate::support::{SHARED_TOKENIZERS, conformers, more, shared, shared_texts};

/// Compares fast and reference counts and ends on texts; returns the number of blocks.
fn compare(tokenizer: &Tokenizer, counter: &Counter, texts: &[String]) -> usize {
    texts
        .par_iter()
        .map(|text| {
            let text = tagged(text);
            let expected = tokenizer.free_ends(&text).unwrap();
            let (mut counts, mut tokens) = (Vec::new(), Vec::new());
            counter.count(&text, &mut counts).unwrap();
            counter.tokens(&text, &mut tokens).unwrap();
            assert_eq!(counts.len(), expected.len());
            for ((ends, count), block) in expected.iter().zip(&counts).zip(&tokens) {
                assert_eq!(ends.len(), usize::from(*count), "{}: {text}", tokenizer.name);
                let found: Vec<usize> =
                    block.ends[..usize::from(block.free)].iter().map(|e| usize::from(*e)).collect();
                assert_eq!(*ends, found, "{}: {text}", tokenizer.name);
            }
            counts.len()
        })
        .sum()
}

#[test]
#[cfg_attr(not(all(has_shared, all_tests)), ignore = "needs ../shared, takes long: DRIFT_ALL=1")]
fn equals_tokenizers_on_all_shared_conformers() {
    let shared = shared();
    let mut blocks = 0;
    for name in SHARED_TOKENIZERS {
        let tokenizer = Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let counter = Counter::new(&tokenizer, []).unwrap();
        assert!(matches!(counter.method(), Method::Tables { .. }), "{name}: {:?}", counter.method());
        for field in ["embedded_smiles", "embedded_smiles_stripped"] {
            blocks += compare(&tokenizer, &counter, &shared_texts(&shared, field));
        }
    }
    eprintln!("{blocks} block counts compared, 0 differences");
    assert!(blocks > 800_000);
}

/// Embedded texts, fixed and stripped, tagged by the caller.
pub(crate) fn embedded_texts(limit: usize) -> Vec<String> {
    let conformers = conformers(&EmbeddedConformers::default());
    let both = conformers.iter().flat_map(|c| Encoding::ALL.map(|d| write(&c.skeleton, &c.coordinates, d)));
    both.take(limit).collect()
}

fn from_json(name: &str, json: &str) -> Tokenizer {
    Tokenizer::from_bytes(name, hash_bytes(name, json.as_bytes()), json.as_bytes()).unwrap()
}

/// BPE trained on the texts, cut into words by GPT-2's expression or not at all.
pub(crate) fn trained(texts: &[String], words: bool) -> Tokenizer {
    let byte_level = || ByteLevel::new(false, true, words);
    let mut tokenizer = TokenizerBuilder::<BPE, NFC, ByteLevel, ByteLevel, ByteLevel>::new()
        .with_model(BPE::default())
        .with_normalizer(Some(NFC))
        .with_pre_tokenizer(Some(byte_level()))
        .with_post_processor(Some(byte_level()))
        .with_decoder(Some(byte_level()))
        .build()
        .unwrap();
    let mut trainer = BpeTrainerBuilder::new()
        .vocab_size(1_200)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    tokenizer.train(&mut trainer, texts.iter().map(String::as_str)).unwrap();
    from_json("trained", &tokenizer.to_string(false).unwrap())
}

#[test]
fn digit_runs_that_merge_by_content_are_counted_by_tables() {
    // Runs of any length in one word: `1234` may be two tokens where `5678` is three.
    let texts = embedded_texts(400);
    let tokenizer = trained(&texts, true);
    let counter = Counter::new(&tokenizer, []).unwrap();
    assert!(matches!(counter.method(), Method::Tables { .. }), "{:?}", counter.method());
    let ends = |text: &str| tokenizer.free_ends(text).unwrap().concat().len();
    let counts: std::collections::BTreeSet<usize> =
        (0..10_000).step_by(37).map(|n| ends(&format!("[C]<0.{n:04},0,0>"))).collect();
    assert!(counts.len() > 1, "all four-digit runs are alike: the test shows nothing");
    compare(&tokenizer, &counter, &texts);
}

#[test]
fn digits_that_merge_with_punctuation_are_counted_by_encoding() {
    let texts = embedded_texts(200);
    let tokenizer = trained(&texts, false);
    let counter = Counter::new(&tokenizer, []).unwrap();
    assert!(matches!(counter.method(), Method::Encode { .. }), "{:?}", counter.method());
    compare(&tokenizer, &counter, &texts);
}

/// A Unigram model of the characters, some pairs of digits and a few pieces more.
fn unigram(pairs: impl Fn(u32) -> bool) -> Tokenizer {
    let mut vocabulary = vec![serde_json::json!(["<unk>", 0.0])];
    vocabulary.extend((33..127u8).map(|b| serde_json::json!([char::from(b).to_string(), -5.0])));
    vocabulary.extend(
        (0..100)
            .filter(|n| pairs(*n))
            .map(|n| serde_json::json!([format!("{n:02}"), -7.0 - f64::from(n).sqrt() / 7.0])),
    );
    for (piece, score) in [("]<", -6.0), (",-", -6.5), ("[C", -6.0), ("]<-", -7.0), ("123", -8.0)] {
        vocabulary.push(serde_json::json!([piece, score]));
    }
    let json = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary, "byte_fallback": false},
    });
    from_json("unigram", &json.to_string())
}

#[test]
fn unigram_models_are_counted_by_tables_unless_two_ways_score_alike() {
    let texts = embedded_texts(400);
    let tokenizer = unigram(|n| n % 3 == 0 && n % 11 != 0);
    let counter = Counter::new(&tokenizer, []).unwrap();
    assert!(matches!(counter.method(), Method::Tables { .. }), "{:?}", counter.method());
    compare(&tokenizer, &counter, &texts);
    // `00|0` and `0|00`: which sum is the larger is a matter of rounding, and so of what stands before.
    let tokenizer = unigram(|n| n % 3 == 0);
    assert_eq!(reason(&tokenizer), "two ways to cut `000` are equally likely");
    compare(&tokenizer, &Counter::new(&tokenizer, []).unwrap(), &texts[..60]);
}

/// The tokenizers of `tests/fixtures/make_tokenizers.py`, one of every kind.
pub(crate) const FIXTURES: [&str; 10] = [
    "gpt2-like",
    "o200k-like",
    "llama-2-like",
    "llama-2-like-untagged",
    "mistral-v3-like",
    "gemma-like",
    "unigram-like",
    "unigram-digits-like",
    "border-bracket-minus",
    "border-open-minus",
];

/// A tokenizer of [`FIXTURES`].
pub(crate) fn fixture_tokenizer(name: &str) -> Tokenizer {
    Tokenizer::load(&fixture("tokenizers").join(name)).unwrap()
}

#[test]
fn copy_tokens_with_parts_of_coordinates_are_named() {
    let text = tagged("[C]<-1.5,-2.5,3>=[O]<0.25,1,-7>[O-]<-0.5,1,2>");
    let copied = |tokenizer: &Tokenizer| -> Vec<String> {
        let found = tokenizer.in_blocks(&text).unwrap().copied;
        // Again, from the text alone: a token is one if some character strictly inside a block is in it, but not all of it.
        let inside: Vec<bool> = (0..text.len())
            .map(|at| {
                let open = text[..at].rfind('<');
                open > text[..at].rfind('>') && !matches!(text.as_bytes()[at], b'<' | b'>')
            })
            .collect();
        let all = tokenizer.tokens(&text).unwrap();
        let expected = all.into_iter().filter(|token| {
            let inside = &inside[token.start..token.end];
            inside.iter().any(|is| *is) && !inside.iter().all(|is| *is)
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{}", tokenizer.name);
        assert!(found.iter().all(|token| token.class == TokenRole::Copy));
        found.into_iter().map(|token| token.text).collect()
    };
    let embedded = |name: &str| copied(&Tokenizer::load(std::path::Path::new(name)).unwrap());
    assert!(embedded("qwen-like").is_empty() && embedded("llama-like-separate").is_empty());
    assert_eq!(copied(&fixture_tokenizer("border-bracket-minus")), ["]<-", "]<-"]);
    assert_eq!(copied(&fixture_tokenizer("border-open-minus")), ["<-", "<-"]);
    assert!(copied(&fixture_tokenizer("gpt2-like")).is_empty());
    let fused = Tokenizer::load(std::path::Path::new("qwen-like-fused")).unwrap();
    let found = fused.in_blocks("[C]<-1.2345,-0.5000,3.0000>").unwrap().copied;
    assert_eq!(found.iter().map(|token| &*token.text).collect::<Vec<_>>(), ["<-1.", "00>"]);
}

/// Whether everything is compared: `DRIFT_WHOLE` asks for it, with `1` or the names of tokenizers.
pub(crate) fn whole() -> bool {
    std::env::var_os("DRIFT_WHOLE").is_some()
}

/// Whether a tokenizer is one of those that `DRIFT_WHOLE` names, if it names any.
pub(crate) fn is_asked_for(name: &str) -> bool {
    let names = std::env::var("DRIFT_WHOLE").unwrap_or_default();
    matches!(&*names, "" | "1") || names.split(',').any(|asked| asked == name)
}

/// Why a tokenizer's tokens are counted by encoding.
fn reason(tokenizer: &Tokenizer) -> String {
    match Counter::new(tokenizer, []).unwrap().method() {
        Method::Encode { reason } => reason.clone(),
        tables => panic!("{}: {tables:?}", tokenizer.name),
    }
}

#[test]
fn every_kind_is_counted_and_equals_tokenizers() {
    let mut texts = embedded_texts(if whole() { usize::MAX } else { 500 });
    if whole()
        && let Some(shared) = more()
    {
        for field in ["embedded_smiles", "embedded_smiles_stripped"] {
            texts.extend(shared_texts(&shared, field));
        }
    }
    for name in FIXTURES.into_iter().filter(|name| is_asked_for(name)) {
        let tokenizer = fixture_tokenizer(name);
        let counter = Counter::new(&tokenizer, []).unwrap();
        if name == "unigram-like" {
            assert_eq!(reason(&tokenizer), "two ways to cut `111` are equally likely");
        } else {
            assert!(matches!(counter.method(), Method::Tables { .. }), "{name}: {:?}", counter.method());
        }
        let blocks = compare(&tokenizer, &counter, &texts);
        eprintln!("{name}: {blocks} block counts compared, 0 differences");
        let reaches_in = |text: &String| !tokenizer.in_blocks(&tagged(text)).unwrap().copied.is_empty();
        assert_eq!(texts.par_iter().any(reaches_in), name.starts_with("border-"), "{name}");
        // Longer runs of digits than the tables hold are encoded.
        compare(&tokenizer, &counter, &["[C]<12345.6789,0.12345,-1>[N+]<0,1,2>".to_owned()]);
    }
}

#[test]
fn more_tokens_than_can_be_counted_are_an_error() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let counter = Counter::reference(&tokenizer);
    let count = |digits: usize| {
        let mut counts = Vec::new();
        counter.count(&format!("[C]<{},0,0>", "1".repeat(digits)), &mut counts).map(|()| counts)
    };
    assert_eq!(count(60_000).unwrap(), [60_004]);
    let error = count(70_000).unwrap_err().to_string();
    assert!(error.contains("a block takes 70004 tokens") && error.contains("65535"), "{error}");
}

/// A fixture after a change to its JSON.
fn changed(name: &str, change: impl FnOnce(&mut serde_json::Value)) -> Tokenizer {
    let (_, json) = Tokenizer::load_with_json(&fixture("tokenizers").join(name)).unwrap();
    let mut json = serde_json::from_slice(&json).unwrap();
    change(&mut json);
    from_json(name, &json.to_string())
}

#[test]
fn what_is_not_proved_is_counted_by_encoding_and_says_why() {
    let holds = |name: &str, token: &str| fixture_tokenizer(name).vocabulary().contains_key(token);
    // Tokens that no legal text can hold, or that cross no border of a number, prove nothing.
    assert!(holds("gpt2-like", "Ġ100") && holds("mistral-v3-like", "[control_135]"));
    assert!(
        holds("gemma-like", "<h1>")
            && holds("gemma-like", "<unused7>")
            && holds("gemma-like", "[multimodal]")
    );
    let texts = embedded_texts(40);
    let check = |tokenizer: &Tokenizer, why: &str| {
        assert_eq!(reason(tokenizer), why);
        compare(tokenizer, &Counter::new(tokenizer, []).unwrap(), &texts);
    };
    let with_token = changed("gpt2-like", |json| {
        let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
        let id = vocabulary.len() + 100;
        vocabulary.insert("1.".into(), id.into());
    });
    check(&with_token, "token `1.` joins a digit with another character");
    let lowercase =
        changed("gpt2-like", |json| json["normalizer"] = serde_json::json!({"type": "Lowercase"}));
    check(&lowercase, "its normalizer changes characters of the format");
    let added = |content: &str| {
        changed("gpt2-like", |json| {
            let list = json["added_tokens"].as_array_mut().unwrap();
            let mut token = list[1].clone();
            token["id"] = (list.len() + 3400).into();
            token["content"] = content.into();
            list.push(token);
        })
    };
    check(&added("[C]"), "added token `[C]` may stand in a text");
    // Three capitals and digits are a tag's name or an atom.
    for atom in ["[NH3]", "[CH2]", "[13C]", "[SH2]"] {
        let holding = added(atom);
        assert_eq!(reason(&holding), format!("added token `{atom}` may stand in a text"));
        compare(&holding, &Counter::new(&holding, []).unwrap(), &[format!("[C]<-1,2,3>{atom}<-1.5,2,3>")]);
    }
    for tag in ["[CLS]", "[PAD]", "[MASK]", "[/INST]", "[CONTROL_1]"] {
        let tagged = added(tag);
        assert!(matches!(Counter::new(&tagged, []).unwrap().method(), Method::Tables { .. }), "{tag}");
    }
    // An added token that is no atom is no reason, but texts with it are encoded.
    let strange = added("[carbon]");
    let counter = Counter::new(&strange, []).unwrap();
    assert!(matches!(counter.method(), Method::Tables { .. }), "{:?}", counter.method());
    compare(&strange, &counter, &["[carbon]<-1.5,2,3>[C]<-1,2,3>".to_owned(), texts[0].clone()]);
}
