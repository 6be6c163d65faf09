//! Tokenizers learned from a corpus: continued BPE in blocks, BPE from nothing, and both beside their peers.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use drift::corpus::{Conformers, Files, ReadOptions};
use drift::design::compare::compare;
use drift::design::learned::scratch::scratch;
use drift::design::measured::sample::{LearningSample, whole_text};
use drift::design::report::comparison::TrainingMethod;
use drift::design::{
    Aim, ExtensionPlan, LearnedReport, Range, SchemeKind, ScratchPlan, TrainedTokenizer, train, train_merges,
    train_scratch,
};
use drift::encoding::{Encoding, Precision};
use drift::job::Job;
use drift::text::{self};
use drift::tokenizer::Tokenizer;
use drift::tokenizer::learn::learn_plain;
use serde_json::Value;
use tokenizers::Tokenizer as HfTokenizer;

use crate::support::{First, conformers, drift, sized};

fn plan(name: &str, kind: SchemeKind, angstrom: u32, budget: u64) -> ExtensionPlan {
    let (base, json) = Tokenizer::load_with_json(Path::new(name)).unwrap();
    let base_json = serde_json::from_slice(&json).unwrap();
    let range = Range::new(angstrom).unwrap();
    ExtensionPlan {
        range,
        contexts: 1,
        ..ExtensionPlan::new(base, base_json, kind, Encoding::FIXED, Aim::Budget(budget))
    }
}

fn merges(
    plan: &ExtensionPlan,
    tokens: u64,
    corpus: &dyn Conformers,
) -> drift::Result<TrainedTokenizer<LearnedReport>> {
    train_merges(plan, tokens, corpus, &Job::default())
}

/// A number of the range, spelled.
fn number(index: u64, angstrom: u64) -> String {
    let (sign, magnitude) = (if index % 2 == 1 { "-" } else { "" }, index / 2 % (angstrom * 10_000));
    format!("{sign}{}.{:04}", magnitude / 10_000, magnitude % 10_000)
}

/// Texts that hold every number of a range in every position.
fn every_number(angstrom: u64) -> impl Iterator<Item = String> {
    let count = 20_000 * angstrom;
    (0..count).step_by(100).map(move |first| {
        let block = |i: u64| {
            let numbers =
                [i, (i * 7_919 + 3) % count, (i * 104_729 + 8) % count].map(|i| number(i, angstrom));
            format!("=[N+]<{}>", numbers.join(","))
        };
        (first..first + 100).map(block).collect()
    })
}

fn ids(tokenizer: &HfTokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, false).unwrap().get_ids().to_vec()
}

/// Tokens that touch each block.
fn block_tokens(tokenizer: &HfTokenizer, text: &str) -> Vec<u64> {
    let encoding = tokenizer.encode(text, false).unwrap();
    let blocks = text.match_indices('<').map(|(open, _)| (open, open + text[open..].find('>').unwrap()));
    let touching = |(open, close): (usize, usize)| {
        encoding.get_offsets().iter().filter(|(start, end)| *start <= close && *end > open).count() as u64
    };
    blocks.map(touching).collect()
}

/// What holds of every tokenizer with learned merges, by means of our own: JSON and `tokenizers` alone.
fn check_merges(plan: &ExtensionPlan, trained: &TrainedTokenizer<LearnedReport>) {
    let report = &trained.report;
    let json: Value = serde_json::from_slice(&trained.tokenizer_json).unwrap();
    let (old, new) = (&plan.base_json["model"], &json["model"]);
    let (old_merges, new_merges) = (old["merges"].as_array().unwrap(), new["merges"].as_array().unwrap());
    assert_eq!(old_merges[..], new_merges[..old_merges.len()]);
    assert_eq!((new_merges.len() - old_merges.len()) as u64, report.merges);
    let before = HfTokenizer::from_bytes(serde_json::to_vec(&plan.base_json).unwrap()).unwrap();
    let after = HfTokenizer::from_bytes(&trained.tokenizer_json).unwrap();
    let (old, new) = (before.get_vocab(true), after.get_vocab(true));
    assert!(old.iter().all(|(text, id)| new[text] == *id));
    assert_eq!((new.len() - old.len()) as u64, report.new_tokens);
    // Every new token is produced, and every block takes as many tokens as was said.
    let mut reached = BTreeSet::new();
    for text in every_number(report.range_angstrom.angstrom().into()) {
        let counts = block_tokens(&after, &text);
        let said = report.fewest_tokens_per_block..=report.most_tokens_per_block;
        assert!(counts.iter().all(|count| said.contains(count)), "{text}");
        let ids = ids(&after, &text);
        assert_eq!(after.decode(&ids, false).unwrap(), text);
        reached.extend(ids);
    }
    for token in &trained.new_tokens.new_tokens {
        assert!(reached.contains(&token.id), "{token:?}");
        assert_eq!(token.base_ids, ids(&before, &token.text));
    }
    let documents = [
        include_str!("architecture.rs"),
        include_str!("../../tokenizers/README.md"),
        "<-1.",
        "23",
        "<1.5,2>",
    ];
    for text in documents.iter().flat_map(|document| document.split_inclusive("\n\n")) {
        assert_eq!(ids(&before, text), ids(&after, text), "{text:?}");
    }
}

#[test]
fn merges_act_in_blocks_alone_and_each_token_is_reached() {
    let cases = [
        ("qwen-like", SchemeKind::Fused, 130),
        ("qwen-like", SchemeKind::Separate, 60),
        ("llama-like", SchemeKind::Fused, 40),
    ];
    for (name, kind, tokens) in cases.into_iter().take(sized(3, 1)) {
        let plan = plan(name, kind, 2, 0);
        let trained = merges(&plan, tokens, &First(300)).unwrap();
        let report = &trained.report;
        assert_eq!(report.guarantees_blocks(), 40_000, "{name}");
        assert!(report.new_tokens <= tokens, "{name}");
        assert!(
            report.vocabulary.base_tokens_per_conformer.unwrap() > report.vocabulary.tokens_per_conformer
        );
        assert!(report.lower_bound <= report.new_tokens);
        assert_eq!(report.gap, report.new_tokens - report.lower_bound);
        check_merges(&plan, &trained);
        let again = merges(&plan, tokens, &First(300)).unwrap();
        assert!(again == trained, "{name}: not the same twice");
        // More tokens never cost tokens.
        let more = merges(&plan, 2 * tokens, &First(300)).unwrap();
        assert!(more.report.blocks.mean <= report.blocks.mean, "{name}");
        // Fewer than asked for only where nothing is left to merge: each piece of every block is one token.
        let pieces = report.example.split('|').count() as u64;
        let whole = [report.fewest_tokens_per_block, report.most_tokens_per_block] == [pieces; 2];
        assert!(report.new_tokens == tokens || whole, "{name}");
    }
}

/// Blocks run by the checks.
trait GuaranteesBlocks {
    fn guarantees_blocks(&self) -> u64;
}

impl GuaranteesBlocks for LearnedReport {
    fn guarantees_blocks(&self) -> u64 {
        serde_json::to_value(self).unwrap()["guarantees"]["blocks"].as_u64().unwrap()
    }
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn enough_merges_make_every_block_alike() {
    let plan = plan("qwen-like", SchemeKind::Fused, 2, 0);
    // As many as the 9-token design of this range needs.
    let design =
        ExtensionPlan { aim: Aim::TokensPerBlock(9), ..self::plan("qwen-like", SchemeKind::Fused, 2, 0) };
    let design = train(&design, &First(50), &Job::default()).unwrap();
    let trained = merges(&plan, design.report.new_tokens, &First(50)).unwrap();
    assert!(trained.report.most_tokens_per_block <= 9, "{:?}", trained.report);
}

#[test]
fn ways_to_add_tokens_are_compared() {
    let plan = plan("qwen-like", SchemeKind::Fused, 15, 260);
    let designed = train(&plan, &First(200), &Job::default()).unwrap();
    let tokens = designed.report.new_tokens;
    let comparison = compare(&plan, tokens, Some(&designed), &First(200), &Job::default()).unwrap();
    let rows: HashMap<&str, _> = comparison
        .rows
        .iter()
        .map(|row| {
            (serde_json::to_value(row.method).unwrap().as_str().unwrap().to_owned().leak() as &str, row)
        })
        .collect();
    assert_eq!(rows.len(), 6);
    let base = rows["base"];
    // Qwen's blocks: 22 tokens, and one more for a negative x.
    assert_eq!((base.blocks.min, base.new_tokens, base.other_texts_changed), (22, 0, Some(0)));
    assert!(
        (base.tokens_per_conformer - designed.report.vocabulary.base_tokens_per_conformer.unwrap()).abs()
            < 1e-9
    );
    let design = rows["designed"];
    assert_eq!((design.spread, design.lower_bound), (Some(0), Some(designed.report.lower_bound)));
    assert!((design.tokens_per_conformer - designed.report.vocabulary.tokens_per_conformer).abs() < 1e-9);
    assert_eq!(design.blocks.usual, designed.report.tokens_per_block);
    // As published: the base's splits leave digits alone, and other texts change.
    let published = rows["continued"];
    // It may run out of pairs.
    assert!((1..=designed.report.new_tokens).contains(&published.new_tokens));
    assert_eq!(published.multi_digit, 0);
    assert!(published.other_texts_changed.unwrap() > 0);
    assert!(published.tokens_per_conformer < base.tokens_per_conformer);
    // With whole blocks as words: shorter, but which digits are joined depends on the numbers.
    let blocks = rows["continued-in-blocks"];
    assert!(blocks.multi_digit > 0 && blocks.blocks.off_share > base.blocks.off_share, "{blocks:?}");
    assert!(blocks.blocks.mean < base.blocks.mean && blocks.blocks.mean > design.blocks.mean);
    assert_eq!((blocks.other_texts_changed, rows["merges"].other_texts_changed), (Some(0), Some(0)));
    assert!(
        rows["merges"].blocks.mean < blocks.blocks.mean && rows["merges"].unused == 0
            || rows["merges"].new_tokens > 0
    );
    assert_eq!(
        (rows["plain"].method, rows["plain"].new_tokens),
        (TrainingMethod::Plain, designed.report.new_tokens)
    );
}

#[test]
fn bpe_from_nothing_takes_no_more_tokens_than_the_plain_trainer() {
    let sample = LearningSample::read(&First(400), Encoding::FIXED, &Job::default()).unwrap();
    let texts: Vec<String> =
        sample.conformers.iter().map(|conformer| whole_text(conformer, Encoding::FIXED)).collect();
    for (vocab_size, kind) in [
        (300, SchemeKind::Fused),
        (600, SchemeKind::Fused),
        (2_000, SchemeKind::Fused),
        (600, SchemeKind::Separate),
    ] {
        let range = Range::new(15).unwrap();
        let plan =
            ScratchPlan { vocab_size, kind, range, precision: Precision::FOUR, contexts: 1, compare: false };
        let made = scratch(plan, &sample, &Job::default()).unwrap();
        assert!(made.json == scratch(plan, &sample, &Job::default()).unwrap().json, "not the same twice");
        let own = HfTokenizer::from_bytes(&made.json).unwrap();
        assert_eq!(own.get_vocab_size(true), vocab_size);
        let special = drift::design::learned::scratch::SPECIAL;
        let plain = learn_plain(texts.iter().map(String::as_str), &special, vocab_size).unwrap();
        let plain = HfTokenizer::from_bytes(plain).unwrap();
        assert_eq!(plain.get_vocab_size(true), vocab_size);
        let tokens =
            |tokenizer: &HfTokenizer| texts.iter().map(|text| ids(tokenizer, text).len()).sum::<usize>();
        let (own_tokens, plain_tokens) = (tokens(&own), tokens(&plain));
        eprintln!("{vocab_size} {}: {own_tokens} tokens, plain {plain_tokens}", kind.name());
        assert!(
            own_tokens <= plain_tokens || kind == SchemeKind::Separate,
            "{vocab_size}: {own_tokens} > {plain_tokens}"
        );
        for text in texts.iter().take(50) {
            assert_eq!(own.decode(&ids(&own, text), false).unwrap(), *text);
        }
    }
}

#[test]
fn from_nothing_every_block_is_run_and_reported() {
    let range = Range::new(1).unwrap();
    let plan = ScratchPlan {
        vocab_size: 900,
        kind: SchemeKind::Fused,
        range,
        precision: Precision::FOUR,
        contexts: 1,
        compare: true,
    };
    let trained = train_scratch(plan, &First(100), &Job::default()).unwrap();
    let report = &trained.report;
    assert_eq!(
        (report.new_tokens, report.vocabulary.embedding_rows, report.guarantees_blocks()),
        (639, 900, 20_000)
    );
    let tokenizer = HfTokenizer::from_bytes(&trained.tokenizer_json).unwrap();
    let (mut fewest, mut most) = (u64::MAX, 0);
    for text in every_number(1) {
        for count in block_tokens(&tokenizer, &text) {
            (fewest, most) = (fewest.min(count), most.max(count));
        }
    }
    // Sums over pieces are met by some block, though not by one of these.
    assert!(report.fewest_tokens_per_block <= fewest && most <= report.most_tokens_per_block);
    let rows = &report.comparison.as_ref().unwrap().rows;
    assert_eq!(
        rows.iter().map(|row| row.method).collect::<Vec<_>>(),
        [TrainingMethod::Plain, TrainingMethod::VocabSize]
    );
    assert!(rows[1].tokens_per_conformer < rows[0].tokens_per_conformer);
}

#[test]
fn the_learning_command_writes_and_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("own");
    let out = out.to_str().unwrap();
    let corpus = folder.path().join("small.jsonl");
    let stripped = folder.path().join("stripped.jsonl");
    let mut lines = String::new();
    for conformer in conformers(&First(60)) {
        let text = text::write(&conformer.skeleton, &conformer.coordinates, Encoding::FIXED);
        lines += &format!("{{\"embedded_smiles\": {}}}\n", serde_json::to_string(&text).unwrap());
    }
    std::fs::write(&corpus, lines).unwrap();
    std::fs::write(&stripped, "{\"embedded_smiles\": \"[C]<0.5,1.25,-2>[O]<1,0.1234,3.1>\"}\n").unwrap();
    let (corpus, stripped) = (corpus.to_str().unwrap(), stripped.to_str().unwrap());
    let run = |more: &[&str]| drift(&[&["train-tokenizer", "-q", "-o", out], more].concat());
    let report = run(&["--vocab-size", "400", "--range", "1", "--json", "--corpus", corpus]).good().json();
    assert_eq!((&report["way"], &report["new_tokens"]), (&"vocab-size".into(), &139.into()));
    for field in ["tokens_per_block", "drift", "range_angstrom", "lower_bound"] {
        assert!(report[field].is_u64(), "{field}");
    }
    assert!(report["coverage"].is_f64() && report["base_tokens_per_conformer"].is_null());
    for name in ["tokenizer.json", "new_tokens.json", "tokenizer_config.json", "report.json"] {
        assert!(Path::new(out).join(name).is_file(), "{name}");
    }
    drift(&["inspect", "--tokenizer", out, "[C]<0.1234,-0.5678,0.9000>"]).good();
    let refused = |more: &[&str], message: &str| {
        let ran = run(more);
        assert!(ran.code == Some(2) && ran.stderr.contains(message), "{}", ran.stderr);
    };
    refused(&["--vocab-size", "260"], "give at least 261");
    refused(&["--vocab-size", "500", "--base", "qwen-like"], "cannot be used with");
    refused(&["--merges", "50"], "--base");
    refused(&["--merges", "0", "--base", "qwen-like"], "0 is not in");
    refused(&["--vocab-size", "500", "--corpus", stripped], "stripped dialect");
    refused(&["--merges", "50", "--base", "qwen-like", "--corpus", stripped], "stripped dialect");
    refused(&["--base", "qwen-like", "--merges", "3", "--budget", "3"], "cannot be used with");
    // Learning is of the fixed encoding, on bases that were not extended.
    let fixed = "learns in the fixed dialect alone";
    refused(&["--merges", "50", "--base", "qwen-like", "--dialect", "stripped"], fixed);
    refused(&["--merges", "50", "--base", "qwen-like", "--fewest-decimals", "1"], fixed);
    refused(&["--vocab-size", "500", "--dialect", "stripped"], fixed);
    for other in ["fixed-spaces", "fixed-3-spaces", "lines"] {
        refused(
            &["--merges", "50", "--base", "qwen-like", "--encoding", other],
            &format!("cannot go with {other}"),
        );
        refused(&["--vocab-size", "500", "--encoding", other], &format!("cannot go with {other}"));
    }
    refused(
        &["--budget", "300", "--base", "qwen-like", "--dialect", "stripped", "--compare"],
        "--compare: compares in the fixed dialect alone",
    );
    refused(
        &["--merges", "50", "--base", "qwen-like-fused", "--corpus", corpus],
        "was already extended by drift",
    );
}

#[test]
fn merges_of_a_corpus_without_conformers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.jsonl");
    std::fs::write(&path, "\n").unwrap();
    let corpus = Files { inputs: vec![path], options: ReadOptions::default() };
    let plan = plan("qwen-like", SchemeKind::Fused, 2, 0);
    assert!(merges(&plan, 10, &corpus).is_err());
}
