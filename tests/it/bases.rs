//! Tokenizer design on every kind of base: GPT-2's, o200k, SentencePiece BPE of three ways to mark spaces; Unigram is refused.

use std::path::{Path, PathBuf};

use drift::corpus::EmbeddedConformers;
use drift::design::extension::config::tokenizer_config;
use drift::design::extension::extend::as_read;
use drift::design::extension::guard::GUARD_MARK;
use drift::design::extension::layout::{BaseLayout, GPT2};
use drift::design::extension::mixed::mixed_text;
use drift::design::extension::strip::strip_extension;
use drift::design::extension::texts::PLAIN;
use drift::design::{Aim, ExtensionPlan, Range, SchemeKind, TrainedTokenizer, train, train_merges};
use drift::encoding::Encoding;
use drift::job::Job;
use drift::placeholder::{EncodingChoice, FitPlan, Objective, fit};
use drift::text;
use drift::tokenizer::Tokenizer;
use rayon::prelude::*;
use serde_json::{Value, json};
use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizer};
use tokenizers::{PreTokenizedString, PreTokenizerWrapper, Tokenizer as HfTokenizer};

use crate::support::{First, Folder, batches, python_program, sized};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers").join(name)
}

/// Numbers below 2 Å, every number run in one context.
fn plan(base: &str, kind: SchemeKind, encoding: Encoding, tokens: usize) -> ExtensionPlan {
    let (base, json) = Tokenizer::load_with_json(&fixture(base)).unwrap();
    let base_json = serde_json::from_slice(&json).unwrap();
    let (range, aim) = (Range::new(2).unwrap(), Aim::TokensPerBlock(tokens));
    ExtensionPlan { range, contexts: 1, ..ExtensionPlan::new(base, base_json, kind, encoding, aim) }
}

fn run(plan: &ExtensionPlan) -> TrainedTokenizer {
    train(plan, &First(50), &Job::default()).unwrap()
}

/// The message with which a plan is refused.
fn refused(plan: &ExtensionPlan) -> String {
    train(plan, &First(50), &Job::default()).unwrap_err().to_string()
}

/// The same plan for a base that was changed.
fn changed(mut plan: ExtensionPlan, change: &dyn Fn(&mut Value)) -> ExtensionPlan {
    change(&mut plan.base_json);
    let bytes = serde_json::to_vec(&plan.base_json).unwrap();
    plan.base = Tokenizer::from_bytes("changed", drift::io::hash_bytes("changed", &bytes), &bytes).unwrap();
    plan
}

fn loaded(json: &Value) -> HfTokenizer {
    HfTokenizer::from_bytes(serde_json::to_vec(json).unwrap()).unwrap()
}

fn ids(tokenizer: &HfTokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, false).unwrap().get_ids().to_vec()
}

/// Tagged texts of the embedded corpus with every coordinate brought below 2 Å.
fn texts(encoding: Encoding) -> Vec<String> {
    let batches = batches(&EmbeddedConformers::default());
    let some = batches.iter().flat_map(|batch| batch.iter().step_by(40));
    some.map(|conformer| {
        let near: Vec<_> = conformer.coordinates.iter().map(|c| c.map(|x| x % 20_000)).collect();
        text::tagged(&text::write(&conformer.skeleton, &near, encoding))
    })
    .collect()
}

/// Tokens of every block from `<` to `>`, none of which may reach out of it, straight from `tokenizers`.
fn block_tokens(tokenizer: &HfTokenizer, text: &str) -> Vec<usize> {
    let encoding = tokenizer.encode(text, false).unwrap();
    let opens = text.match_indices('<').map(|(at, _)| at);
    opens
        .map(|open| {
            let close = open + text[open..].find('>').unwrap() + 1;
            let touch = |(start, end): &&(usize, usize)| *start < close && *end > open;
            let touching: Vec<_> = encoding.get_offsets().iter().filter(touch).collect();
            assert!(touching.iter().all(|(start, end)| *start >= open && *end <= close), "{text}");
            touching.len()
        })
        .collect()
}

/// What holds of every extension, by JSON and `tokenizers` alone.
fn check(plan: &ExtensionPlan, trained: &TrainedTokenizer) {
    let json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
    let mut undone = json.clone();
    undone["pre_tokenizer"] = plan.base_json["pre_tokenizer"].clone();
    undone["model"]["ignore_merges"] = plan.base_json["model"]["ignore_merges"].clone();
    let (before, after) = (loaded(&plan.base_json), loaded(&json));
    let old = before.get_vocab(true);
    undone["model"]["vocab"]
        .as_object_mut()
        .unwrap()
        .retain(|text, _| plan.base_json["model"]["vocab"].get(text).is_some());
    assert_eq!(undone, plan.base_json);
    let new = after.get_vocab(true);
    assert!(old.iter().all(|(text, id)| new[text] == *id));
    assert_eq!(new.len(), old.len() + trained.new_tokens.new_tokens.len());
    let texts = texts(plan.encoding);
    let inside = |block: &str| {
        let decimals = |n: &str| n.split_once('.').map_or(0, |(_, d)| d.len() as u64);
        block.split(',').all(|n| decimals(n) >= trained.report.fewest_decimals)
    };
    let mut taken = std::collections::HashSet::new();
    for text in &texts {
        let blocks: Vec<&str> = text.split('<').skip(1).map(|b| &b[..b.find('>').unwrap()]).collect();
        for (count, block) in block_tokens_where(&after, text, &blocks, &inside) {
            assert_eq!(count as u64, trained.report.tokens_per_block, "{block}");
        }
        let encoded = |text: &str| ids(&before, text);
        let ids = ids(&after, text);
        taken.extend(ids.iter().copied().filter(|id| *id >= old.len() as u32));
        // Where a base decodes a space after each tag, it does so with the blocks too.
        let decoded = after.decode(&ids, false).unwrap();
        assert!(decoded == *text || decoded == before.decode(&encoded(text), false).unwrap());
        assert_eq!(decoded.replace(' ', ""), *text);
    }
    assert!(!taken.is_empty());
    let mut plain: Vec<String> = PLAIN.iter().map(|text| text.to_string()).collect();
    plain.extend((0..200).map(mixed_text));
    // A new token by itself, after a tag, and as the end of a word: what a lookup of whole pieces could take it for.
    for token in &trained.new_tokens.new_tokens {
        plain.extend(["", "[CONFORMER]", "</s>", " ", "a"].map(|before| format!("{before}{}", token.text)));
    }
    for text in ["<0x0A>", "<0x37>", "[control_8]", "<unused3>", "<|endoftext|>", "▁", "▁▁▁▁", "1", "12", ""]
    {
        plain.push(text.into());
    }
    for text in plain {
        assert_eq!(ids(&before, &text), ids(&after, &text), "{text:?}");
    }
}

/// The blocks that a test is about, with their tokens.
fn block_tokens_where<'t>(
    tokenizer: &HfTokenizer,
    text: &str,
    blocks: &[&'t str],
    wanted: &dyn Fn(&str) -> bool,
) -> Vec<(usize, &'t str)> {
    if blocks.iter().all(|block| wanted(block)) {
        let counts = block_tokens(tokenizer, text);
        assert_eq!(counts.len(), blocks.len());
        return counts.into_iter().zip(blocks.iter().copied()).collect();
    }
    Vec::new()
}

/// Bases, kinds, encodings, tokens a block; new tokens; whether the same is asked of the result.
const CASES: [(&str, SchemeKind, Encoding, usize, u64, bool); 6] = [
    ("gpt2-like", SchemeKind::Fused, Encoding::FIXED, 9, 54, true),
    ("gpt2-like", SchemeKind::Separate, Encoding::STRIPPED, 11, 10, false),
    ("o200k-like", SchemeKind::Separate, Encoding::FIXED, 11, 8, false),
    ("llama-2-like", SchemeKind::Fused, Encoding::STRIPPED, 9, 156, true),
    ("gemma-like", SchemeKind::Fused, Encoding::FIXED, 9, 154, false),
    ("mistral-v3-like", SchemeKind::Separate, Encoding::FIXED, 11, 108, true),
];

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn every_kind_of_base_is_extended_with_constant_blocks() {
    for (name, kind, encoding, tokens, new, twice) in CASES {
        let plan = plan(name, kind, encoding, tokens);
        let trained = run(&plan);
        let report = &trained.report;
        check(&plan, &trained);
        assert_eq!((report.drift, report.tokens_per_block), (0, tokens as u64), "{name}");
        assert_eq!((report.new_tokens, report.least_in_space), (new, new), "{name}");
        assert!(report.lower_bound <= report.new_tokens, "{name}");
        assert_eq!(json!(report.guarantees.plain_text), "proved", "{name}");
        // What was put in is taken out again: all that the base holds is there, and no token more.
        let base_json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
        let undone = strip_extension(&base_json, drift::Encoding::FIXED).unwrap();
        let mut vocabulary = plan.base_json["model"]["vocab"].as_object().unwrap().clone();
        for token in plan.base_json["added_tokens"].as_array().unwrap() {
            vocabulary.insert(token["content"].as_str().unwrap().to_owned(), token["id"].clone());
        }
        assert_eq!(undone["model"]["vocab"], Value::Object(vocabulary), "{name}");
        assert!(strip_extension(&plan.base_json, plan.encoding).is_none());
        if twice {
            // The same request of the result changes nothing.
            let source = drift::io::hash_bytes("tokenizer.json", &trained.tokenizer_json);
            let base = Tokenizer::from_bytes("extended", source, &trained.tokenizer_json).unwrap();
            let again = run(&ExtensionPlan { base, base_json, ..plan });
            assert!(again.unchanged && !trained.unchanged);
            assert!(again.tokenizer_json == trained.tokenizer_json, "{name}");
            assert_eq!(again.new_tokens.new_tokens, trained.new_tokens.new_tokens, "{name}");
        }
    }
}

#[test]
fn tokens_that_merges_do_not_make_are_kept_out_of_plain_text() {
    let plan = plan("gemma-like", SchemeKind::Fused, Encoding::FIXED, 12);
    let trained = run(&plan);
    let json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
    let mut without = json.clone();
    let guard =
        |split: &Value| split["pattern"]["Regex"].as_str().is_some_and(|regex| regex.starts_with(GUARD_MARK));
    without["pre_tokenizer"]["pretokenizers"].as_array_mut().unwrap().retain(|split| !guard(split));
    assert_ne!(json, without);
    let [before, after, without] = [&plan.base_json, &json, &without].map(loaded);
    // A text that a lookup of whole pieces takes for a token: of a byte, and of a block.
    let new = &trained.new_tokens.new_tokens;
    let new = new.iter().map(|token| token.text.as_str());
    for text in new.chain(["<0x0A>", "<0x37>"]) {
        assert_eq!(ids(&before, text), ids(&after, text), "{text}");
        assert_ne!(ids(&before, text), ids(&without, text), "{text}");
        // Nor is it one where it is all that follows a block.
        let block = "[C]<0.1234,-1.5678,1.0000>";
        let follows = ids(&after, &format!("{block}{text}")).split_off(ids(&after, block).len());
        assert_eq!(follows, ids(&before, text), "{text}");
    }
}

#[test]
fn digits_that_merge_before_one_another_are_listed_one_by_one() {
    // A base with a token of two digits, so that what a text is cut into depends on which digits it has.
    let with_pair = |json: &mut Value| {
        let added = json["added_tokens"].as_array().unwrap().clone();
        let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
        for token in added {
            vocabulary.insert(token["content"].as_str().unwrap().to_owned(), token["id"].clone());
        }
        let id = vocabulary.len();
        vocabulary.insert("10".to_owned(), id.into());
        json["model"]["merges"].as_array_mut().unwrap().insert(0, json!(["1", "0"]));
    };
    let plan = changed(plan("gemma-like", SchemeKind::Fused, Encoding::FIXED, 12), &with_pair);
    let trained = run(&plan);
    check(&plan, &trained);
    let json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
    let splits = json["pre_tokenizer"]["pretokenizers"].as_array().unwrap();
    let mut patterns = splits.iter().filter_map(|split| split["pattern"]["Regex"].as_str());
    let guard = patterns.find(|pattern| pattern.starts_with(GUARD_MARK)).unwrap();
    assert!(guard.contains("1(?=(?:") && !guard.contains("[0-9]"), "{guard}");
}

/// The pieces of a pre-tokenizer.
fn pieces(pre_tokenizer: &PreTokenizerWrapper, text: &str) -> Vec<String> {
    let mut pieces = PreTokenizedString::from(text);
    pre_tokenizer.pre_tokenize(&mut pieces).unwrap();
    let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(piece, ..)| piece.to_owned()).collect()
}

/// Pre-tokenizers and models as makers distribute them, in place of GPT-2's.
pub(crate) fn makers() -> Vec<(&'static str, Value)> {
    let level = |regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex });
    let digits = |each: bool| json!({ "type": "Digits", "individual_digits": each });
    let split = |pattern: Value, behavior: &str, invert: bool| json!({ "type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert });
    let signs = r#"[\(\)\[\]\{\}]|([!"\#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*"#;
    let sequence = |members: Vec<Value>| json!({ "type": "Sequence", "pretokenizers": members });
    vec![
        (
            "falcon",
            sequence(vec![
                json!({ "type": "Punctuation", "behavior": "Contiguous" }),
                level(true),
                digits(false),
                split(json!({ "Regex": "[0-9][0-9][0-9]" }), "Isolated", false),
            ]),
        ),
        (
            "galactica",
            sequence(vec![
                split(json!({ "String": "SPL1T-TH1S-Pl3A5E" }), "Removed", false),
                digits(true),
                split(json!({ "Regex": signs }), "Isolated", false),
                split(json!({ "String": "\n" }), "Isolated", false),
                level(true),
            ]),
        ),
        ("command-r", sequence(vec![digits(true), level(true)])),
        ("olmo-2", sequence(vec![split(json!({ "Regex": GPT2 }), "Removed", true), level(false)])),
        ("nested", sequence(vec![sequence(vec![digits(true)]), sequence(vec![level(true)])])),
    ]
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn bases_are_extended_as_their_makers_distribute_them() {
    for (at, (name, pre_tokenizer)) in makers().into_iter().enumerate() {
        let (kind, tokens) = [(SchemeKind::Fused, 9), (SchemeKind::Separate, 11)][at % 2];
        let change = |json: &mut Value| {
            json["pre_tokenizer"] = pre_tokenizer.clone();
            // Falcon's, which no text of a molecule holds; RoBERTa's, which names no kind.
            json["model"].as_object_mut().unwrap().remove("type");
            let id = json["model"]["vocab"].as_object().unwrap().len()
                + json["added_tokens"].as_array().unwrap().len();
            let title = json!({ "id": id, "content": ">>TITLE<<", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false });
            json["added_tokens"].as_array_mut().unwrap().push(title);
        };
        let plan = changed(plan("gpt2-like", kind, Encoding::FIXED, tokens), &change);
        let trained = run(&plan);
        check(&plan, &trained);
        assert_eq!((trained.report.drift, trained.report.tokens_per_block), (0, tokens as u64), "{name}");
        let base_json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
        let source = drift::io::hash_bytes("tokenizer.json", &trained.tokenizer_json);
        let base = Tokenizer::from_bytes("extended", source, &trained.tokenizer_json).unwrap();
        let again = run(&ExtensionPlan { base, base_json, ..plan });
        assert!(again.unchanged && again.tokenizer_json == trained.tokenizer_json, "{name}");
    }
}

#[test]
fn splits_by_classes_of_characters_do_what_digits_and_punctuation_do() {
    let level =
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false });
    for member in [
        json!({ "type": "Digits", "individual_digits": true }),
        json!({ "type": "Digits", "individual_digits": false }),
        json!({ "type": "Punctuation", "behavior": "Contiguous" }),
        json!({ "type": "Punctuation", "behavior": "Isolated" }),
        json!({ "type": "Punctuation" }),
    ] {
        let document = json!({ "pre_tokenizer": { "type": "Sequence", "pretokenizers": [member.clone(), level.clone()] } });
        let layout = BaseLayout::from_json(&document).unwrap();
        let [own, rewritten]: [PreTokenizerWrapper; 2] =
            [member.clone(), layout.own[0].clone()].map(|json| serde_json::from_value(json).unwrap());
        let same = |text: &str| assert_eq!(pieces(&own, text), pieces(&rewritten, text), "{member} {text:?}");
        PLAIN.iter().for_each(|text| same(text));
        texts(Encoding::STRIPPED).iter().step_by(10).for_each(|text| same(text));
        (0..200u64).into_par_iter().for_each(|index| same(&mixed_text(index)));
        // Every fifth character, beside a letter, a digit, a sign and spaces.
        (0..=0x10_ffff / 5u32).into_par_iter().filter_map(|n| char::from_u32(n * 5)).for_each(|c| {
            same(&format!("a{c}1{c}.{c}{c}a "));
        });
    }
}

#[test]
fn added_tokens_are_no_pieces_however_many_there_are() {
    // As Gemma 3: six thousand tokens for later use, which are in the model's vocabulary too.
    let many = |json: &mut Value| {
        let first = json["model"]["vocab"].as_object().unwrap().len();
        // The tags, which are not in it, stand behind.
        for added in json["added_tokens"].as_array_mut().unwrap() {
            let id = added["id"].as_u64().unwrap() as usize;
            added["id"] = json!(if id < first { id } else { id + 6_000 });
        }
        for n in 0..6_000 {
            let content = format!("<later{n}>");
            json["model"]["vocab"][&content] = json!(first + n);
            json["added_tokens"].as_array_mut().unwrap().push(json!({
                "id": first + n, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": false,
            }));
        }
    };
    let plan = changed(plan("gemma-like", SchemeKind::Fused, Encoding::FIXED, 9), &many);
    let trained = run(&plan);
    check(&plan, &trained);
    assert_eq!(json!(trained.report.guarantees.plain_text), "proved");
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn separate_extensions_take_templates_on_a_base_that_joins_a_sign_with_a_bracket() {
    let base = plan("border-open-minus", SchemeKind::Separate, Encoding::FIXED, 11);
    let plan = ExtensionPlan { range: Range::new(15).unwrap(), ..base };
    let refused = |tokenizer: Tokenizer, encoding| {
        let plan = FitPlan {
            tokenizers: vec![tokenizer],
            encodings: EncodingChoice::Only(encoding),
            candidates: Vec::new(),
            objective: Objective::default(),
            seed: 0,
            classes: false,
        };
        fit(&plan, &First(50), &Job::default()).unwrap()
    };
    let report = refused(plan.base.clone(), Encoding::FIXED);
    // No template agrees with the blocks of both signs.
    let (all, some) = (report.refused[0].looked_at_blocks, report.refused[0].agreeing_blocks);
    assert!(all > 500 && some < all * 6 / 10 && some > all * 4 / 10, "{some} of {all}");
    let extended = run(&plan);
    let source = drift::io::hash_bytes("tokenizer.json", &extended.tokenizer_json);
    let extended = Tokenizer::from_bytes("extended", source, &extended.tokenizer_json).unwrap();
    let report = refused(extended, Encoding::FIXED);
    let result = &report.results[0];
    assert_eq!((result.free_tokens, result.crossed_blocks), (9, 0), "{}", result.statement);
    let harm = result.certificate.as_ref().unwrap().objective;
    assert_eq!(harm, [0.0, 0.0, 0.0], "{}", result.statement);
    // Numbers out of its range are no blocks of it: none that begins with a sign is offered.
    let forces =
        |placeholder: &str| placeholder.starts_with('-') && placeholder.find('.').is_some_and(|at| at > 3);
    assert!(result.front.iter().all(|one| !forces(&one.placeholder)), "{:?}", result.front);
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn the_end_of_a_text_is_not_a_plain_entry_of_another_model() {
    // RoBERTa has GPT-2's `<|endoftext|>` among its plain tokens; Whisper an empty one.
    let roberta = |json: &mut Value| {
        let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
        let id = vocabulary.len();
        for (place, text) in ["<|endoftext|>", "<s>", "</s>", ""].into_iter().enumerate() {
            vocabulary.insert(text.to_owned(), (id + place).into());
        }
        let added = [(id + 1, "<s>"), (id + 2, "</s>")].map(|(id, content)| {
            json!({ "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": true })
        });
        json["added_tokens"] = added.to_vec().into();
        json["post_processor"] = json!({
            "type": "RobertaProcessing", "sep": ["</s>", id + 2], "cls": ["<s>", id + 1], "trim_offsets": true,
            "add_prefix_space": false,
        });
    };
    let plan = changed(plan("gpt2-like", SchemeKind::Fused, Encoding::FIXED, 9), &roberta);
    assert_eq!(plan.base.likely_end(None).unwrap().text, "</s>");
    check(&plan, &run(&plan));
}

#[test]
fn what_a_tokenizer_cannot_write_is_named() {
    let without = |json: &mut Value| {
        let is_special = |text: &str| ["<pad>", "</s>", "<unk>"].contains(&text);
        let keeps = |text: &str| is_special(text) || !text.contains('<');
        json["model"]["vocab"].as_array_mut().unwrap().retain(|piece| keeps(piece[0].as_str().unwrap()));
        json["added_tokens"].as_array_mut().unwrap().clear();
    };
    let plan = changed(plan("unigram-digits-like", SchemeKind::Fused, Encoding::FIXED, 9), &without);
    let message = refused(&plan);
    assert!(
        message.contains("cannot write `<`, which texts of fixed contain: it does not know them"),
        "{message}"
    );
    let tokenizer = std::sync::Arc::new(plan.base);
    let automaton = |encoding| drift::constraint::automaton::Automaton::new(&tokenizer, encoding).err();
    assert_eq!(automaton(Encoding::FIXED).unwrap().to_string(), message);
    // Bins need no brackets.
    assert!(tokenizer.writes("binned-v2:-13,13,0.104".parse().unwrap(), ["[C]<>"]).is_ok());
    // Their tokens are not counted either.
    let folder = Folder::new();
    folder.file("base/tokenizer.json", plan.base_json.to_string());
    folder.file("one.txt", "[C]<1.0000,-2.0000,3.0000>[O]<0.0000,0.0000,0.0000>\n");
    let compare =
        ["encodings", "--corpus", "one.txt", "--tokenizer", "base", "--no-extensions", "--encoding"];
    let said = folder.drift(&[&compare[..], &["fixed"]].concat()).refused();
    assert!(said.contains("cannot write `<`, which texts of fixed contain"), "{said}");
    folder.drift(&[&compare[..], &["binned-v2:-13,13,0.104"]].concat()).good();
}

#[test]
fn an_extended_tokenizer_knows_its_encoding_by_the_files_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenizer.json");
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tokenizers/qwen-like/tokenizer.json"), &file)
        .unwrap();
    let beside = || drift::tokenizer::encoding_beside(&file).unwrap();
    assert_eq!(beside(), None);
    let write = |name: &str, json: Value| std::fs::write(folder.path().join(name), json.to_string()).unwrap();
    write("report.json", json!({ "schema": "drift.audit/1", "dialect": "stripped" }));
    assert_eq!(beside(), None);
    write("report.json", json!({ "schema": "drift.train-tokenizer/1", "dialect": "stripped" }));
    assert_eq!(beside(), Some(Encoding::STRIPPED));
    write("recipe.json", json!({ "recipe": { "dialect": "fixed-3" } }));
    assert_eq!(beside().unwrap().name(), "fixed-3");
    // A recipe that is there and says nothing readable is not taken for one that is missing.
    for (recipe, said) in [
        ("{ \"seconds\": Infinity }", "expected value"),
        (r#"{ "recipe": { "dialect": "fixed-99" } }"#, "/recipe/dialect"),
    ] {
        std::fs::write(folder.path().join("recipe.json"), recipe).unwrap();
        let refused = drift::tokenizer::encoding_beside(&file).unwrap_err().to_string();
        assert!(refused.contains("recipe.json") && refused.contains(said), "{refused}");
    }
    // An extended model has the recipe of the model before.
    write(
        "extension.json",
        json!({ "schema": "drift.extend-model/1", "encoding": "binned-v2:-13,13,0.104" }),
    );
    assert_eq!(beside().unwrap().name(), "binned-v2:-13,13,0.104");
    // Beside a tokenizer of another name they may be those of another one.
    let other = folder.path().join("other.json");
    std::fs::copy(&file, &other).unwrap();
    assert_eq!(drift::tokenizer::encoding_beside(&other).unwrap(), None);
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn the_expression_of_byte_level_is_the_same_as_a_split() {
    let bytes = |regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex });
    let split =
        json!({ "type": "Split", "pattern": { "Regex": GPT2 }, "behavior": "Isolated", "invert": false });
    let sequence = json!({ "type": "Sequence", "pretokenizers": [split, bytes(false)] });
    let [own, rewritten]: [PreTokenizerWrapper; 2] =
        [bytes(true), sequence].map(|json| serde_json::from_value(json).unwrap());
    let same = |text: &str| assert_eq!(pieces(&own, text), pieces(&rewritten, text), "{text:?}");
    PLAIN.iter().for_each(|text| same(text));
    texts(Encoding::STRIPPED).iter().for_each(|text| same(text));
    (0..2_000u64).into_par_iter().for_each(|index| same(&mixed_text(index)));
    // Every fifth character, beside a letter, a digit, a sign and spaces.
    (0..=0x10_ffff / 5u32).into_par_iter().filter_map(|n| char::from_u32(n * 5)).for_each(|c| {
        same(&format!("a{c}1{c}.{c}  {c}{c}\n{c}'s"));
    });
}

#[test]
fn added_tokens_keep_the_ids_that_they_are_read_with() {
    // As cl100k's: the file leaves an id out before the added tokens, which `tokenizers` does not.
    let later = |json: &mut Value| {
        let listed = json["model"]["vocab"].as_object().unwrap().clone();
        json["added_tokens"].as_array_mut().unwrap().iter_mut().for_each(|token| {
            if !listed.contains_key(token["content"].as_str().unwrap()) {
                token["id"] = (token["id"].as_u64().unwrap() + 1).into();
            }
        });
    };
    let mut plan = changed(plan("o200k-like", SchemeKind::Separate, Encoding::FIXED, 12), &later);
    assert!(refused(&plan).contains("would change"));
    plan.base_json = as_read(&plan.base, plan.base_json);
    check(&plan, &run(&plan));
}

#[test]
fn what_cannot_be_extended_is_refused_with_the_reason() {
    let fused = |base: &str| plan(base, SchemeKind::Fused, Encoding::FIXED, 9);
    for unigram in ["unigram-like", "unigram-digits-like"] {
        let message = refused(&fused(unigram));
        assert!(message.contains("Unigram model, which takes a new token in every text"), "{message}");
    }
    let pre_tokenizer =
        |base: &str, pre: Value| refused(&changed(fused(base), &|json| json["pre_tokenizer"] = pre.clone()));
    let roberta =
        json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true });
    let message = pre_tokenizer("gpt2-like", roberta);
    assert!(message.contains("puts a space before every piece"), "{message}");
    let split =
        json!({ "type": "Split", "pattern": { "Regex": "[0-9]" }, "behavior": "Isolated", "invert": false });
    let message = pre_tokenizer("gemma-like", split);
    assert!(message.contains("but no tokens of bytes"), "{message}");
    let message = pre_tokenizer("llama-2-like", json!({ "type": "Punctuation", "behavior": "Isolated" }));
    assert!(message.contains("Punctuation, that may cut blocks"), "{message}");
    let lowercase = json!({ "type": "Replace", "pattern": { "String": "7" }, "content": "seven" });
    let message = refused(&changed(fused("gemma-like"), &|json| json["normalizer"] = lowercase.clone()));
    assert!(message.contains("cannot write `7`") && message.contains("its normalizer"), "{message}");
    for (option, value) in [("--merges", Some("40")), ("--compare", None)] {
        let folder = Folder::new();
        let base = fixture("mistral-v3-like");
        let aim: Vec<&str> = match value {
            Some(value) => vec![option, value],
            None => vec![option, "--tokens-per-block", "9"],
        };
        let all = [&["train-tokenizer", "--base", base.to_str().unwrap(), "-o", "out"], &aim[..]].concat();
        let ran = folder.drift(&all);
        assert_eq!(ran.code, Some(2));
        assert!(
            ran.stderr.contains(&format!("{option} learns merges, which would act on every text")),
            "{}",
            ran.stderr
        );
        assert!(folder.listing().is_empty());
    }
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn automata_of_extended_tokenizers_are_proved() {
    for (name, kind, encoding, tokens) in [
        ("gpt2-like", SchemeKind::Separate, Encoding::STRIPPED, 11),
        ("llama-2-like", SchemeKind::Fused, Encoding::FIXED, 9),
        ("gemma-like", SchemeKind::Fused, Encoding::STRIPPED, 9),
        ("mistral-v3-like", SchemeKind::Separate, Encoding::FIXED, 11),
    ] {
        let trained = run(&plan(name, kind, encoding, tokens));
        let source = drift::io::hash_bytes("tokenizer.json", &trained.tokenizer_json);
        let tokenizer = Tokenizer::from_bytes(name, source, &trained.tokenizer_json).unwrap();
        let refused = crate::automaton::check(&tokenizer, encoding, 20);
        assert_eq!(refused, 0, "{name}");
    }
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn merges_are_learned_on_gpt2() {
    let plan = plan("gpt2-like", SchemeKind::Fused, Encoding::FIXED, 9);
    let trained = train_merges(&plan, 30, &First(50), &Job::default()).unwrap();
    let report = &trained.report;
    assert!((1..=30).contains(&report.new_tokens) && report.drift == 0, "{report:?}");
    assert_eq!(json!(report.guarantees)["plain_text"], "proved");
    let after = loaded(&serde_json::from_slice(&trained.tokenizer_json).unwrap());
    let before = loaded(&plan.base_json);
    for text in PLAIN.iter().map(|text| text.to_string()).chain((0..500).map(mixed_text)) {
        assert_eq!(ids(&before, &text), ids(&after, &text), "{text:?}");
    }
    let most = report.most_tokens_per_block as usize;
    let fewest = report.fewest_tokens_per_block as usize;
    for text in texts(Encoding::FIXED) {
        assert!(block_tokens(&after, &text).iter().all(|tokens| (fewest..=most).contains(tokens)), "{text}");
    }
}

#[test]
#[cfg_attr(not(has_transformers), ignore = "needs a Python with tokenizers and transformers")]
fn python_gives_the_same_ids() {
    let python = python_program();
    let folder = Folder::new();
    let mut all = texts(Encoding::FIXED);
    all.extend(texts(Encoding::STRIPPED));
    all.extend((0..400).map(mixed_text));
    let mut all: Vec<String> = all.into_iter().step_by(sized(1, 5)).collect();
    all.extend(["<0x0A>", "12", "1234", " 1.", "a  b", ""].map(String::from));
    let lines = |lines: Vec<String>| lines.join("\n") + "\n";
    let json = lines(all.iter().map(|text| Value::from(text.as_str()).to_string()).collect());
    folder.file("texts", json);
    let mut arguments = Vec::new();
    for name in ["gpt2-like", "llama-2-like-untagged", "mistral-v3-like"] {
        let trained = run(&plan(name, SchemeKind::Fused, Encoding::FIXED, 9));
        let config = std::fs::read(fixture(name).join("tokenizer_config.json")).unwrap();
        let config = tokenizer_config(Some(&serde_json::from_slice(&config).unwrap()));
        folder.file(&format!("{name}/tokenizer_config.json"), config.to_string());
        folder.file(&format!("{name}/tokenizer.json"), &trained.tokenizer_json);
        let tokenizer = Tokenizer::load(&folder.path().join(name)).unwrap();
        let ids = all.par_iter().map(|text| format!("{:?}", tokenizer.ids(text).unwrap())).collect();
        folder.file(&format!("{name}-ids"), lines(ids));
        arguments.extend([name.to_owned(), "texts".into(), format!("{name}-ids")]);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/ids.py");
    let output =
        std::process::Command::new(python).arg(script).args(&arguments).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().filter(|line| line.contains(" texts agree")).count(), 3, "{said}");
}
