//! Tokenizer design: few tokens a block, always the same number; all else as it was.

use std::collections::BTreeMap;
use std::path::Path;

use drift::corpus::{EmbeddedConformers, Files, ReadOptions};
use drift::design::{Aim, ExtensionPlan, Range, SchemeKind, TrainedTokenizer, train};
use drift::encoding::{Encoding, Reading, TrailingZeros};
use drift::job::Job;
use drift::placeholder::{EncodingChoice, FitPlan, Objective, fit};
use drift::report::card::model_card;
use drift::report::design_page::design_page;
use drift::text::{self, skeleton};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokenizers::Tokenizer as HfTokenizer;

use crate::support::{First, batches, drift, shared, shared_texts, words};

fn base(name: &Path) -> (Tokenizer, Value) {
    let (tokenizer, json) = Tokenizer::load_with_json(name).unwrap();
    (tokenizer, serde_json::from_slice(&json).unwrap())
}

/// A design of numbers below 15 Å, every number run in one context.
fn plan(name: &Path, kind: SchemeKind, aim: Aim) -> ExtensionPlan {
    let (base, base_json) = base(name);
    ExtensionPlan { contexts: 1, ..ExtensionPlan::new(base, base_json, kind, Encoding::FIXED, aim) }
}

/// What is made does not depend on what it is measured on.
fn run(plan: &ExtensionPlan) -> TrainedTokenizer {
    train(plan, &First(600), &Job::default()).unwrap()
}

/// The message with which a plan is refused.
fn refused(plan: &ExtensionPlan) -> String {
    match train(plan, &First(600), &Job::default()) {
        Err(error @ (drift::Error::Input { .. } | drift::Error::Parameter { .. })) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn embedded_texts(encoding: Encoding) -> Vec<(String, usize)> {
    let batches = batches(&EmbeddedConformers::default());
    let some = batches.iter().flat_map(|batch| batch.iter().step_by(10));
    some.map(|conformer| {
        let text = text::write(&conformer.skeleton, &conformer.coordinates, encoding);
        (text::tagged(&text), conformer.coordinates.len())
    })
    .collect()
}

/// Tokens that touch each block, brackets included, straight from `tokenizers`.
fn block_tokens(tokenizer: &HfTokenizer, text: &str) -> Vec<usize> {
    let encoding = tokenizer.encode(text, false).unwrap();
    let opens = text.match_indices('<').map(|(at, _)| at);
    opens
        .map(|open| {
            let close = open + text[open..].find('>').unwrap();
            encoding.get_offsets().iter().filter(|(start, end)| *start <= close && *end > open).count()
        })
        .collect()
}

/// What must hold of every extension, by means of our own: JSON and `tokenizers` alone.
fn check(plan: &ExtensionPlan, trained: &TrainedTokenizer, texts: &[(String, usize)]) {
    let report = &trained.report;
    let json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
    // The JSON differs in the vocabulary's end, the pre-tokenizer and one flag.
    let mut undone = json.clone();
    undone["pre_tokenizer"] = plan.base_json["pre_tokenizer"].clone();
    undone["model"]["ignore_merges"] = plan.base_json["model"]["ignore_merges"].clone();
    let old = plan.base_json["model"]["vocab"].as_object().unwrap();
    undone["model"]["vocab"].as_object_mut().unwrap().retain(|text, _| old.contains_key(text));
    assert_eq!(undone, plan.base_json);
    let before = HfTokenizer::from_bytes(serde_json::to_vec(&plan.base_json).unwrap()).unwrap();
    let after = HfTokenizer::from_bytes(&trained.tokenizer_json).unwrap();
    let (vocab_before, vocab_after) = (before.get_vocab(true), after.get_vocab(true));
    let last = *vocab_before.values().max().unwrap();
    assert!(vocab_before.iter().all(|(text, id)| vocab_after[text] == *id));
    let new: BTreeMap<u32, &String> = vocab_after
        .iter()
        .filter(|(text, _)| !vocab_before.contains_key(*text))
        .map(|(t, i)| (*i, t))
        .collect();
    assert_eq!(new.len() as u64, report.new_tokens);
    assert!(new.keys().copied().eq(last + 1..=last + new.len() as u32));
    for (token, (id, text)) in trained.new_tokens.new_tokens.iter().zip(&new) {
        assert_eq!((token.id, &token.text), (*id, *text));
        assert_eq!(token.base_ids, before.encode(text.as_str(), false).unwrap().get_ids());
    }
    // Real texts: the same number for each block, and decoded to themselves.
    let mut tokens = 0;
    for (text, blocks) in texts {
        let counts = block_tokens(&after, text);
        assert_eq!(counts.len(), *blocks);
        let inside = |block: &str| {
            block.split(',').all(|number| {
                let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
                number.parse::<f64>().unwrap().abs() < 15.0 && decimals as u64 >= report.fewest_decimals
            })
        };
        for (count, block) in counts.iter().zip(text.split('<').skip(1)) {
            if inside(&block[..block.find('>').unwrap()]) {
                assert_eq!(*count as u64, report.tokens_per_block, "{text}");
            }
        }
        let ids = after.encode(text.as_str(), false).unwrap();
        assert_eq!(after.decode(ids.get_ids(), false).unwrap(), *text);
        tokens += ids.len();
    }
    assert!(tokens > 0);
    // Texts without blocks.
    let smiles = texts.iter().map(|(text, _)| {
        let bare = text.trim_start_matches(text::CONFORMER_OPEN).trim_end_matches(text::CONFORMER_CLOSE);
        skeleton::smiles(&text::parse(bare, Default::default()).unwrap().skeleton)
    });
    let documents = [
        include_str!("../../src/tune/design/scheme/fixed_space.rs"),
        include_str!("architecture.rs"),
        PROSE,
        "23",
        "<-1.",
        "34>",
        "",
    ];
    for text in smiles.chain(documents.iter().flat_map(|d| d.split_inclusive("\n\n")).map(String::from)) {
        let ids = |tokenizer: &HfTokenizer| tokenizer.encode(&*text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids(&before), ids(&after), "{text:?}");
    }
}

const PROSE: &str = "Das Gewicht ist -1.2345 kg, 12 < 13 > 11.\n\nЭто 42 строки, 3.1415 и ещё 2,71.\n\n三十二 1234 個、\
                     <1.5,2.5>。\n\nσ = 0.5000, τ > 14.9999\n\nعدد ١٢٣٤ <-1.0000>\n\n# 1.0000,2.0000,3.0000\n\n";

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn embedded_tokenizers_are_extended_with_constant_blocks() {
    let texts = embedded_texts(Encoding::FIXED);
    let cases = [
        ("qwen-like", SchemeKind::Fused, 9, 260),
        ("qwen-like", SchemeKind::Separate, 11, 160),
        ("llama-like", SchemeKind::Fused, 9, 70),
        ("llama-like", SchemeKind::Separate, 11, 40),
    ];
    for (name, kind, tokens, new) in cases {
        let plan = plan(Path::new(name), kind, Aim::TokensPerBlock(tokens));
        let trained = run(&plan);
        let report = &trained.report;
        assert_eq!((report.tokens_per_block, report.new_tokens), (tokens as u64, new), "{name}");
        assert_eq!((report.drift, report.least_in_space), (0, new));
        assert!(report.lower_bound <= new && report.search.reached_least, "{report:?}");
        let vocabulary = &report.vocabulary;
        assert!(vocabulary.coverage > 0.999);
        assert!(Some(vocabulary.tokens_per_conformer) < vocabulary.base_tokens_per_conformer);
        let proved = &report.guarantees;
        assert_eq!(
            (proved.numbers, proved.blocks, proved.shapes, proved.reached_tokens),
            (300_000, 300_000, 64, new)
        );
        check(&plan, &trained, &texts);
        if (name, tokens) == ("llama-like", 11) {
            let (base, base_json) = extended(&trained);
            let again = run(&ExtensionPlan { base, base_json, ..plan });
            assert!(again.unchanged && !trained.unchanged && again.tokenizer_json == trained.tokenizer_json);
            assert_eq!(again.new_tokens.new_tokens, trained.new_tokens.new_tokens);
        }
    }
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn blocks_of_the_stripped_encoding_take_as_many_tokens_whatever_their_decimals() {
    let texts = embedded_texts(Encoding::STRIPPED);
    let cases = [
        ("qwen-like", SchemeKind::Fused, 9, 1, 259),
        ("qwen-like", SchemeKind::Separate, 11, 1, 180),
        ("llama-like", SchemeKind::Fused, 7, 0, 660),
    ];
    for (name, kind, tokens, fewest, new) in cases {
        let plan = ExtensionPlan {
            encoding: Encoding::STRIPPED,
            ..plan(Path::new(name), kind, Aim::TokensPerBlock(tokens))
        };
        let trained = run(&plan);
        let report = &trained.report;
        assert!(report.tokens_per_block == tokens as u64 && report.new_tokens <= new, "{name}");
        assert_eq!((report.drift, report.fewest_decimals), (0, fewest));
        assert!(report.lower_bound <= report.new_tokens && report.vocabulary.coverage > 0.97, "{report:?}");
        let (shapes, numbers) = if fewest == 0 { (8_000, 300_000) } else { (4_096, 299_970) };
        let run = &report.guarantees;
        assert_eq!((run.numbers, run.blocks, run.shapes), (numbers, numbers + shapes, shapes));
        let said = ["at most four decimals", "1 to 4 decimals"][fewest as usize];
        let (card, page) = (model_card(report), design_page(report).render());
        assert!(card.contains(said), "{card}");
        let made = format!("--range 15 --dialect stripped --fewest-decimals {fewest} -o DIR");
        assert!(card.contains(&made), "{card}");
        assert!(page.contains("of the stripped dialect") && page.contains("<svg"), "{name}");
        assert!(
            report.front.designs.iter().any(|point| point.written && point.new_tokens == report.new_tokens)
        );
        check(&plan, &trained, &texts);
    }
}

/// A result as a base.
fn extended(trained: &TrainedTokenizer) -> (Tokenizer, Value) {
    let source = drift::io::hash_bytes("tokenizer.json", &trained.tokenizer_json);
    let tokenizer = Tokenizer::from_bytes("extended", source, &trained.tokenizer_json).unwrap();
    (tokenizer, serde_json::from_slice(&trained.tokenizer_json).unwrap())
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn fit_finds_no_drift_in_the_separate_kind() {
    let plan = plan(Path::new("qwen-like"), SchemeKind::Separate, Aim::TokensPerBlock(11));
    // The embedded corpus has a block beyond 15 Å.
    let plan = ExtensionPlan { range: Range::new(20).unwrap(), ..plan };
    let trained = run(&plan);
    assert!(trained.report.vocabulary.coverage == 1.0 && trained.report.free_tokens_per_block == 9);
    let fitted = FitPlan {
        tokenizers: vec![extended(&trained).0],
        encodings: EncodingChoice::Only(Encoding::FIXED),
        candidates: Vec::new(),
        objective: Objective::default(),
        seed: 0,
        classes: false,
    };
    let report = fit(&fitted, &EmbeddedConformers::default(), &Job::default()).unwrap();
    let result = &report.results[0];
    assert!(result.exact && result.counted_by.starts_with("encoding every text"), "{}", result.counted_by);
    assert_eq!((result.placeholder.as_str(), result.free_tokens), ("0.0000,0.0000,0.0000", 9));
    let chosen = result.candidates.iter().find(|c| c.placeholder == result.placeholder).unwrap();
    let measures = &chosen.measures;
    assert_eq!(
        (measures.junk_blocks, measures.truncated_blocks, measures.unparsable_blocks),
        (0.0, 0.0, 0.0)
    );
    assert_eq!((measures.rmsd_angstrom, result.token_distribution.len()), (Some(0.0), 1));
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn the_command_writes_a_folder_that_other_verbs_read() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("small");
    // Rows of another run would not belong to it.
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("embedding_rows.safetensors"), "of another run").unwrap();
    let arguments = ["train-tokenizer", "--base", "llama-like", "--kind", "separate", "--range", "1"];
    let aim = ["--budget", "1", "--quiet", "--json", "-o", out.to_str().unwrap()];
    let report = drift(&[&arguments[..], &aim].concat()).good().json();
    assert_eq!(report["schema"], "drift.train-tokenizer/1");
    assert_eq!(report["guarantees"]["contexts"], 18);
    let fields = ["new_tokens", "drift", "range_angstrom"];
    assert_eq!(fields.map(|field| report[field].as_u64()), [Some(1), Some(0), Some(1)]);
    assert!(report["lower_bound"].as_u64() <= Some(1));
    for field in ["coverage", "tokens_per_conformer", "base_tokens_per_conformer"] {
        assert!(report[field].as_f64().unwrap() > 0.0, "{field}");
    }
    let files = ["tokenizer.json", "new_tokens.json", "tokenizer_config.json", "report.json", "report.html"];
    for name in files.into_iter().chain(["MODEL_CARD.md"]) {
        assert!(out.join(name).is_file(), "{name}");
    }
    assert!(!out.join("embedding_rows.safetensors").exists());
    assert!(report["embedding"]["fits"].is_null() && report["rows"].is_null());
    assert_eq!(report["guarantees"]["plain_text"], "proved");
    assert!(report["guarantees"]["plain_bytes"].as_u64().unwrap() > 1_000_000);
    let config: Value =
        serde_json::from_slice(&std::fs::read(out.join("tokenizer_config.json")).unwrap()).unwrap();
    assert_eq!(config["tokenizer_class"], "PreTrainedTokenizerFast");
    // The embedded base's own configuration.
    assert_eq!(config["eos_token"], "<|end_of_text|>");
    let block = "[C]<0.1234,-0.5678,0.9000>";
    let inspected = drift(&["inspect", "--json", "--tokenizer", out.to_str().unwrap(), block]).good().json();
    assert_eq!(inspected[0]["free"].as_u64().unwrap() + 2, report["tokens_per_block"].as_u64().unwrap());
}

/// Random blocks of numbers below 15 Å with as many decimals as `written` says, in texts of ten.
fn random_texts(
    written: &mut dyn FnMut(&mut ChaCha8Rng, u32) -> String,
    random: &mut ChaCha8Rng,
) -> Vec<String> {
    let atoms = ["[C]", "[nH]", "[C@@H]", "=[O]", "([N+]", ")[O-]"];
    let mut number = |random: &mut ChaCha8Rng| {
        let sign = if random.random_bool(0.5) { "-" } else { "" };
        let (integer, fraction) = (random.random_range(0..15), random.random_range(0..1_000));
        format!("{sign}{integer}{}", written(random, fraction))
    };
    let mut block = |random: &mut ChaCha8Rng| {
        let atom = atoms[random.random_range(0..atoms.len())];
        format!("{atom}<{},{},{}>", number(random), number(random), number(random))
    };
    (0..2_000).map(|_| (0..10).map(|_| block(random)).collect()).collect()
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn the_command_makes_constant_blocks_of_three_decimals() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("three");
    let arguments = ["train-tokenizer", "--base", "qwen-like", "--tokens-per-block", "9", "--decimals", "3"];
    let report = drift(&[&arguments[..], &["--quiet", "--json", "-o", out.to_str().unwrap()]].concat());
    let report = report.good().json();
    assert_eq!((&report["dialect"], &report["fewest_decimals"]), (&json!("fixed-3"), &json!(3)));
    assert_eq!((&report["drift"], &report["guarantees"]["numbers"]), (&json!(0), &json!(30_000)));
    assert!(report["coverage"].as_f64().unwrap() > 0.999 && report["new_tokens"].as_u64() < Some(200));
    let bytes = std::fs::read(out.join("tokenizer.json")).unwrap();
    let tokenizer = HfTokenizer::from_bytes(&bytes).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    for text in random_texts(&mut |_, fraction| format!(".{fraction:03}"), &mut random) {
        assert_eq!(block_tokens(&tokenizer, &text), [9; 10], "{text}");
        let ids = tokenizer.encode(text.as_str(), false).unwrap();
        assert_eq!(tokenizer.decode(ids.get_ids(), false).unwrap(), text);
    }
    // Blocks of four decimals are other text now.
    let before =
        HfTokenizer::from_bytes(serde_json::to_vec(&base(Path::new("qwen-like")).1).unwrap()).unwrap();
    for text in embedded_texts(Encoding::FIXED).iter().step_by(50).map(|(text, _)| text.as_str()) {
        let ids = |tokenizer: &HfTokenizer| tokenizer.encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids(&tokenizer), ids(&before));
    }
    let card = std::fs::read_to_string(out.join("MODEL_CARD.md")).unwrap();
    assert!(card.contains("exactly three decimals") && card.contains("--range 15 --decimals 3 -o DIR"));
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn stripped_blocks_of_three_decimals_are_constant_too() {
    let reading = Reading::new("fixed-3".parse().unwrap()).cutting(true);
    let corpus = EmbeddedConformers { reading, ..EmbeddedConformers::default() };
    let plan = ExtensionPlan {
        encoding: reading.written(TrailingZeros::Removed),
        fewest_decimals: Some(1),
        ..plan(Path::new("qwen-like"), SchemeKind::Fused, Aim::TokensPerBlock(9))
    };
    let trained = train(&plan, &corpus, &Job::default()).unwrap();
    assert_eq!((trained.report.drift, trained.report.fewest_decimals), (0, 1));
    let tokenizer = HfTokenizer::from_bytes(&trained.tokenizer_json).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut stripped = |random: &mut ChaCha8Rng, fraction: u32| {
        let digits = format!("{fraction:03}");
        let digits = digits[..random.random_range(1..4)].trim_end_matches('0');
        if digits.is_empty() { ".5".to_owned() } else { format!(".{digits}") }
    };
    for text in random_texts(&mut stripped, &mut random) {
        assert_eq!(block_tokens(&tokenizer, &text), [9; 10], "{text}");
    }
    // A corpus that is read with other decimals would be measured in the wrong units.
    let message = match train(&plan, &EmbeddedConformers::default(), &Job::default()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("was trained"),
    };
    assert!(message.contains("is read with four decimals, not three decimals"), "{message}");
}

#[test]
fn what_cannot_be_made_is_refused() {
    let fused = |aim| plan(Path::new("qwen-like"), SchemeKind::Fused, aim);
    let message = refused(&fused(Aim::TokensPerBlock(4)));
    assert!(message.contains("no scheme with at most 40000 new tokens"), "{message}");
    let message = refused(&fused(Aim::TokensPerBlock(23)));
    assert!(message.contains("give 3 to 22"), "{message}");
    let stripped = |kind, tokens| ExtensionPlan {
        encoding: Encoding::STRIPPED,
        ..plan(Path::new("qwen-like"), kind, Aim::TokensPerBlock(tokens))
    };
    // The integer 0 is one character, so that one number at least would be one token.
    let message = refused(&stripped(SchemeKind::Separate, 7));
    assert!(message.contains("no scheme with at most 40000 new tokens"), "{message}");
    let message = refused(&ExtensionPlan { fewest_decimals: Some(1), ..stripped(SchemeKind::Fused, 14) });
    assert!(message.contains("give 3 to 13"), "{message}");
    let message = refused(&ExtensionPlan { fewest_decimals: Some(5), ..stripped(SchemeKind::Fused, 9) });
    assert!(message.contains("no number has 5 decimals"), "{message}");
    let message = refused(&ExtensionPlan { fewest_decimals: Some(1), ..fused(Aim::TokensPerBlock(9)) });
    assert!(message.contains("‘dialect’ stripped"), "{message}");
    let message = refused(&fused(Aim::Budget(1)));
    assert!(message.contains("the fewest are 5 new tokens"), "{message}");
    // It was made for 9 tokens and another range.
    let (base, base_json) = Tokenizer::load_with_json(Path::new("qwen-like-fused")).unwrap();
    let base_json = serde_json::from_slice(&base_json).unwrap();
    let range = Range::new(1).unwrap();
    let message = refused(&ExtensionPlan { base, base_json, range, ..fused(Aim::TokensPerBlock(12)) });
    assert!(message.contains("was already extended by drift, in another way"), "{message}");
    for range in ["0", "101"] {
        let line = format!("train-tokenizer --base qwen-like --tokens-per-block 9 --range {range} -o /x");
        let ran = drift(&words(&line));
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("cannot hold a range"), "{}", ran.stderr);
    }
    let mistaken = |change: &dyn Fn(&mut Value)| {
        let mut plan = fused(Aim::TokensPerBlock(9));
        change(&mut plan.base_json);
        let bytes = serde_json::to_vec(&plan.base_json).unwrap();
        plan.base =
            Tokenizer::from_bytes("changed", drift::io::hash_bytes("changed", &bytes), &bytes).unwrap();
        refused(&plan)
    };
    let digits = json!({"type": "Replace", "pattern": {"String": "7"}, "content": "seven"});
    let message = mistaken(&|json| json["normalizer"] = digits.clone());
    assert!(message.contains("cannot write") && message.contains('7'), "{message}");
    assert!(mistaken(&|json| json["pre_tokenizer"] = Value::Null).contains("has no pre-tokenizer"));
    let cut = json!({"type": "UnicodeScripts"});
    assert!(
        mistaken(&|json| json["pre_tokenizer"] = cut.clone()).contains("UnicodeScripts, that may cut blocks")
    );
    let lost = |json: &mut Value| {
        let model = json["model"].as_object_mut().unwrap();
        model["vocab"].as_object_mut().unwrap().retain(|text, _| !text.contains('$'));
        model["merges"].as_array_mut().unwrap().retain(|merge| !merge.to_string().contains('$'));
    };
    assert!(!mistaken(&lost).is_empty());
    let unreachable = |json: &mut Value| {
        json["model"]["merges"].as_array_mut().unwrap().pop();
    };
    assert!(mistaken(&unreachable).contains("never make its own token"));
}

#[test]
fn a_corpus_in_the_stripped_encoding_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stripped.jsonl");
    std::fs::write(&path, "{\"embedded_smiles\": \"[C]<0.5,1.25,-2>[O]<1,0.1234,3.1>\"}\n").unwrap();
    let corpus = Files { inputs: vec![path], options: ReadOptions::default() };
    let plan = plan(Path::new("qwen-like"), SchemeKind::Fused, Aim::TokensPerBlock(9));
    let plan = ExtensionPlan { range: Range::new(1).unwrap(), ..plan };
    let error = train(&plan, &corpus, &Job::default()).unwrap_err().to_string();
    assert!(error.contains("stripped dialect"), "{error}");
}

#[test]
#[cfg_attr(not(all(has_shared, all_tests)), ignore = "needs ../shared, takes long: DRIFT_ALL=1")]
fn real_tokenizers_keep_within_their_spare_rows() {
    let shared = shared();
    let texts: Vec<(String, usize)> = shared_texts(&shared, "embedded_smiles")
        .iter()
        .step_by(20)
        .map(|text| (text::tagged(text), text.matches('<').count()))
        .collect();
    let cases = [
        ("qwen3-custom", SchemeKind::Fused, 9, 263),
        ("qwen3-custom", SchemeKind::Separate, 11, 263),
        ("qwen3-custom", SchemeKind::Fused, 6, 2_900),
        ("llama-3.2-chem", SchemeKind::Fused, 9, 100),
        ("llama-3.2-chem", SchemeKind::Separate, 11, 100),
        ("llama-3.2-chem", SchemeKind::Fused, 6, 1_700),
    ];
    for (name, kind, tokens, most) in cases {
        let plan = plan(&shared.join("tokenizers").join(name), kind, Aim::TokensPerBlock(tokens));
        let trained = run(&plan);
        let report = &trained.report;
        eprintln!("{name} {} {tokens}: {} new, bound {}", kind.name(), report.new_tokens, report.lower_bound);
        assert!(report.tokens_per_block == tokens as u64 && report.new_tokens <= most, "{report:?}");
        check(&plan, &trained, &texts);
    }
}
