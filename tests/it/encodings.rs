//! Encodings: what is derived from one definition says the same, and every verb takes any of them.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use drift::constraint::automaton::{AnswerForm, AutomatonProcessor};
use drift::corpus::{Files, ReadOptions};
use drift::design::{Aim, ExtensionPlan, SchemeKind, TrainedTokenizer, train};
use drift::encoding::parts::{PartRow, SlotPart, count, expression};
use drift::encoding::{ENCODING_FORMS, Encoding, Fixed, IntegersBelow, Reading};
use drift::text::{tagged, write};
use drift::{Constraint, Mask, Tokenizer};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::Value;

use crate::bases::{fixture, makers};
use crate::support::{Folder, more, python, sized, words};

/// The encodings that users train on, and one of each kind that a file can say.
const NAMES: [&str; 7] = [
    "binned-v1:-21,21,0.05",
    "binned-v1:-21,21,0.042,3",
    "binned-v2:-13,13,0.104",
    "fsq:512",
    "fixed-2",
    "integers:10,4,399",
    "lines",
];

/// The files below a folder of the repository with one of the extensions.
fn files_below(folder: &str, extensions: &[&str]) -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| extensions.iter().any(|one| end == *one)))
        .collect()
}

/// How the list of the page of options, which a test writes, is changed.
const OF_OPTIONS: &str =
    " in docs/options.txt, then run DRIFT_UPDATE_PAGES=1 cargo test --release -p drift --lib options_page";

/// Pages, docstrings and stubs that list the encodings list all of them: an entry of a docstring, a table, or a paragraph.
#[test]
fn every_list_of_encodings_is_complete() {
    let mut lists = 0;
    let pages = files_below("docs", &["md"]).into_iter().chain(files_below("python", &["md"]));
    for path in pages.chain(files_below("python/moldrift", &["py", "pyi"])) {
        let text = std::fs::read_to_string(&path).unwrap();
        for paragraph in text.split("\n\n") {
            // The entries of a docstring are lines of one paragraph.
            let entries: Vec<&str> = paragraph.split("\n        encoding: ").skip(1).collect();
            let entries = if entries.is_empty() { vec![paragraph] } else { entries };
            for entry in entries.into_iter().filter(|entry| entry.contains("binned-v1:LOW,HIGH,STEP")) {
                let missing = ENCODING_FORMS.iter().map(|form| form.form).filter(|form| !names(entry, form));
                let missing: Vec<&str> = missing.collect();
                assert!(
                    missing.is_empty(),
                    "{}: add {missing:?} to this list{}: {entry}",
                    path.display(),
                    if path.ends_with("options.md") { OF_OPTIONS } else { "" }
                );
                lists += 1;
            }
        }
    }
    // Both pages of options, and three docstrings.
    assert!(lists >= 5, "{lists}");
}

/// Whether a text names a form of encodings, in quotes as code, alone or with an example's values.
fn names(text: &str, form: &str) -> bool {
    let kind = form.split(':').next().unwrap_or(form);
    // In a table a number may stand for N.
    let forms = [format!("`{form}`"), format!("`{kind}:")];
    forms[..1 + usize::from(kind != form)].iter().any(|form| text.contains(form.as_str()))
}

fn matches(expression: &str, text: &str) -> bool {
    fancy_regex::Regex::new(&format!("^(?:{expression})$")).unwrap().is_match(text).unwrap()
}

#[test]
fn expressions_are_the_strings_and_nothing_else() {
    for below in [1, 2, 9, 10, 11, 15, 99, 100, 101, 250, 841, 977, 1_000, 1_001, 1_234] {
        for part in [
            SlotPart::Integer { below },
            SlotPart::Padded { below, width: 3 },
            SlotPart::Padded { below, width: 4 },
        ] {
            let expression = part.expression();
            let strings = part.strings();
            assert_eq!(strings.len() as u64, part.count());
            assert!(strings.iter().all(|text| matches(&expression, text)), "{part:?} {expression}");
            let others = (below..below + 1_100).map(|value| format!("{value:03}"));
            let others = others.chain(["00".into(), "007".into(), "0007".into(), String::new()]);
            for other in others.filter(|other| !strings.contains(other)) {
                assert!(!matches(&expression, &other), "{part:?} {expression} {other}");
            }
        }
    }
    let row =
        [SlotPart::Optional("-".into()), SlotPart::Integer { below: 100 }, SlotPart::Literal(".".into())];
    let row: PartRow = row.into_iter().chain(vec![SlotPart::Digit { least: 0 }; 4]).collect();
    assert_eq!(expression(&row), "-?(?:[1-8][0-9]|9[0-9]|[0-9])\\.[0-9]{4}");
    assert_eq!(count(&row), 2 * 100 * 10_000);
}

#[test]
fn what_is_written_is_of_the_language_and_what_is_not_is_not() {
    let limit = IntegersBelow::GENERATED;
    for name in ["fixed", "stripped", "fixed-2-spaces", "binned-v1:-2,2,0.05", "binned-v2:-13,13,0.104"] {
        let encoding: Encoding = name.parse().unwrap();
        let dfa = encoding.dfa(limit);
        let expression = fancy_regex::Regex::new(&format!("^(?:{})$", encoding.expression(limit))).unwrap();
        for step in 0..400 {
            let x = f64::from(step) * 0.37 - 70.0;
            let values = encoding.quantize([x, -x / 3.0, x / 100.0]).unwrap();
            let mut text = String::new();
            encoding.write_slot(&values, &mut text);
            assert!(dfa.matches(text.as_bytes()) && expression.is_match(&text).unwrap(), "{name} {text}");
            // Another byte anywhere is another slot or none, for both alike.
            for at in 0..text.len() {
                for other in ["0", "9", "-", ".", ",", ""] {
                    let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                    let matched = expression.is_match(&changed).unwrap();
                    assert_eq!(dfa.matches(changed.as_bytes()), matched, "{name} {changed}");
                }
            }
        }
    }
}

/// The first conformers of the embedded corpus as a file of decimals.
fn corpus(folder: &Folder, conformers: usize) {
    let text = drift::io::open(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpora/default.jsonl.gz")),
        &drift::Job::default(),
    );
    let lines: Vec<String> =
        std::io::BufRead::lines(text.reader).take(conformers).map(Result::unwrap).collect();
    folder.file("corpus.jsonl", lines.join("\n") + "\n");
}

/// `--encoding fixed-2` is another spelling of `--decimals 2`: more decimals are cut. Where nobody names any, they are refused.
#[test]
fn an_encoding_that_is_named_cuts_decimals_as_the_option_does() {
    let folder = Folder::new();
    corpus(&folder, 20);
    folder.drift(&["mine", "corpus.jsonl", "-o", "corpus.h5", "-q"]).done();
    for input in ["corpus.jsonl", "corpus.h5"] {
        let encoded = |more: [&str; 2]| {
            let words = [&["encode", input, "-o", "-", "-q"], &more[..]].concat();
            folder.drift(&words).done().text().to_owned()
        };
        let two = encoded(["--decimals", "2"]);
        assert_eq!(encoded(["--encoding", "fixed-2"]), two);
        // Rows hold both ways of writing decimals, and state the one that was asked for.
        assert_eq!(encoded(["--encoding", "stripped-2"]), two.replace("fixed-2", "stripped-2"));
    }
    folder.drift(&["encode", "corpus.jsonl", "--encoding", "fixed-6", "-o", "six.jsonl", "-q"]).done();
    folder.drift(&["encode", "six.jsonl", "-o", "-", "-q"]).refused_for("more than four decimals");
    let four = folder.drift(&["encode", "six.jsonl", "--encoding", "fixed", "-o", "-", "-q"]).done();
    assert_eq!(four.text(), folder.drift(&["encode", "corpus.jsonl", "-o", "-", "-q"]).done().text());
    for (verb, field) in
        [("mine corpus.jsonl", "axes"), ("fit --tokenizer qwen-like --corpus corpus.jsonl", "results")]
    {
        let said = |more: &str| {
            let words: Vec<&str> = verb.split(' ').chain(more.split(' ')).chain(["--json", "-q"]).collect();
            folder.drift(&words).done().json()[field].clone()
        };
        let zeros = if verb.starts_with("fit") { " --dialect fixed" } else { "" };
        assert_eq!(said("--encoding fixed-2"), said(&format!("--decimals 2{zeros}")));
    }
}

/// Trains a model of one layer on `corpus.jsonl`.
#[track_caller]
fn train_small(folder: &Folder, more: &str) {
    let shape = "--tokenizer qwen-like --arch qwen3 --hidden 32 --layers 1 --heads 2 --kv-heads 1";
    let rest = "--batch-tokens 512 -o model --quiet --corpus corpus.jsonl";
    folder.line(&format!("train-model {shape} {rest} {more}")).done();
}

/// Runs `tests/python/encodings.py`.
#[track_caller]
fn by_numpy(folder: &Folder, arguments: &[&str]) -> String {
    python("python/encodings.py", &folder.path(), arguments)
}

#[test]
#[cfg_attr(not(has_numpy), ignore = "needs numpy in DRIFT_PYTHON")]
fn what_is_encoded_and_read_back_is_what_numpy_says() {
    let folder = Folder::new();
    corpus(&folder, sized(600, 200));
    let geom = more().map_or(Vec::new(), |shared| {
        let files = ["geom_conformers.jsonl", "xtb_moses_aq.jsonl.gz", "etkdg_drugs_test.jsonl.gz"];
        files.map(|file| shared.join("geom").join(file).display().to_string()).to_vec()
    });
    for mode in ["uniform", "quantile"] {
        by_numpy(&folder, &["bins", "corpus.jsonl", &format!("{mode}.json"), mode]);
    }
    let encodings = [
        "v1:-21,21,0.05",
        "v1:-21,21,0.042",
        "v1:-21,21,0.042,3",
        "v1:-11,11,0.05",
        "v2:-13,13,0.104",
        "uniform.json",
        "quantile.json",
        "integers:10,4,399",
    ];
    for (at, encoding) in encodings.into_iter().enumerate() {
        by_numpy(&folder, &["edges", encoding, "edges.xyz"]);
        let name = if encoding.starts_with('v') { format!("binned-{encoding}") } else { encoding.to_owned() };
        // One of its files with each of the first encodings.
        let geom = if cfg!(all_tests) { &geom[..] } else { geom.get(at..=at).unwrap_or_default() };
        for input in geom.iter().map(String::as_str).chain(["corpus.jsonl", "edges.xyz"]) {
            let out =
                folder.drift(&["encode", input, "--encoding", &name, "-o", "out.jsonl", "--json"]).done();
            let back = format!("--input-encoding {name} --encoding fixed-6 -o back.jsonl --json");
            folder.line(&format!("encode out.jsonl {back}")).done();
            let checked = by_numpy(&folder, &["check", encoding, input, "out.jsonl", "back.jsonl"]);
            let tails = out.json()["out_of_range"].as_u64().unwrap();
            let conformers = out.json()["conformers"].as_u64().unwrap();
            assert_eq!(
                checked,
                format!("{conformers} conformers, {tails} with a tail"),
                "{encoding} {input}"
            );
        }
    }
}

/// Values that an encoding can write, of every magnitude.
fn values(encoding: Encoding, random: &mut ChaCha8Rng) -> [Fixed; 3] {
    std::array::from_fn(|axis| match encoding.is_decimal() {
        true => random.random_range(-2_000..2_000),
        false => {
            let (low, high) = encoding.number().limits(axis);
            random.random_range(low..=high)
        }
    })
}

/// Every random text in its own tokens, and every random walk is encoded as it was walked.
#[track_caller]
fn followed_both_ways(tokenizer: &Arc<Tokenizer>, encoding: Encoding, rounds: usize) {
    let eos = u32::MAX;
    let processor = AutomatonProcessor::new(tokenizer.clone(), encoding, eos).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    for skeleton in drift::tokenizer::BUILT_IN_SKELETONS {
        let skeleton = drift::text::skeleton::placed(skeleton, encoding.slots());
        let follow = processor.molecule(&skeleton).unwrap();
        for _ in 0..rounds {
            let slots = (0..skeleton.matches("<>").count())
                .map(|_| values(encoding, &mut random))
                .collect::<Vec<_>>();
            let text = tagged(&write(&skeleton, &slots, encoding));
            let mut state = follow.start();
            for id in tokenizer.answer_ids(&text).unwrap() {
                assert!(follow.mask(&state).allows(id), "{}: {text}", tokenizer.name);
                follow.advance(&mut state, id);
            }
            assert!(follow.is_over(&state, eos), "{}: {text}", tokenizer.name);
            let (mut state, mut walked) = (follow.start(), Vec::new());
            while !follow.is_over(&state, eos) {
                let id = match follow.mask(&state) {
                    Mask::Forced(id) => id,
                    Mask::Only(ids) => ids[random.random_range(0..ids.len())],
                    other => panic!("{other:?}"),
                };
                walked.push(id);
                follow.advance(&mut state, id);
            }
            // A space that the tokenizer itself puts behind a tag is read back as one.
            let text = tokenizer.answer_text(&walked).unwrap();
            let bare = text.trim().replace("] ", "]");
            let is_so = |text: &str| tokenizer.answer_ids(text).unwrap() == walked;
            assert!(is_so(&text) || is_so(&bare), "{}: {text}", tokenizer.name);
        }
    }
}

/// GPT-2's model, which has a token for some numbers and several for others, behind the pre-tokenizers of makers: Falcon's cuts digits in
/// threes, so `9570` is `957` and `0`, and `95|7|0` is legal although `7` and `0` merge elsewhere.
#[test]
fn pre_tokenizers_of_makers_are_followed() {
    let (_, json) = Tokenizer::load_with_json(&fixture("gpt2-like")).unwrap();
    // All of them take a minute.
    for (name, pre_tokenizer) in makers().into_iter().filter(|(name, _)| cfg!(all_tests) || *name == "falcon")
    {
        let mut json: Value = serde_json::from_slice(&json).unwrap();
        json["pre_tokenizer"] = pre_tokenizer;
        let bytes = serde_json::to_vec(&json).unwrap();
        let source = drift::io::hash_bytes(name, &bytes);
        let tokenizer = Arc::new(Tokenizer::from_bytes(name, source, &bytes).unwrap());
        let encodings =
            ["fixed", "binned-v2:-13,13,0.104", "stripped", "fixed-6", "binned-v1:-21,21,0.042,3"];
        for encoding in &encodings[..sized(5, 2)] {
            followed_both_ways(&tokenizer, encoding.parse().unwrap(), 10);
        }
        let mut threes = (0..1_000).map(|number| tokenizer.model_ids(&format!("{number:03}")).unwrap());
        assert!(threes.any(|ids| ids.len() > 1), "some numbers of three digits have to be several tokens");
    }
}

/// The embedded tokenizers, and the shared ones where they are.
fn tokenizers() -> Vec<Arc<Tokenizer>> {
    let mut all = Tokenizer::embedded().unwrap();
    if let Some(shared) = more() {
        let names = ["qwen3-custom", "llama-3.2-chem", "mistral-v1"];
        all.extend(names.map(|name| Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap()));
    }
    all.into_iter().map(Arc::new).collect()
}

#[test]
fn every_encoding_is_followed_by_every_tokenizer_both_ways() {
    for tokenizer in tokenizers() {
        for name in NAMES {
            followed_both_ways(&tokenizer, name.parse().unwrap(), 20);
        }
    }
}

#[test]
fn texts_of_lines_say_what_they_are() {
    let folder = Folder::new();
    corpus(&folder, 20);
    let encode = |input: &str, encoding: &str, out: &str| {
        folder.drift(&["encode", input, "--encoding", encoding, "-o", out]).done();
    };
    encode("corpus.jsonl", "lines", "lines.jsonl");
    let rows = String::from_utf8(folder.read("lines.jsonl")).unwrap();
    assert!(rows.lines().all(|row| row.contains(r#""encoding":"lines""#)), "{rows}");
    encode("lines.jsonl", "fixed", "back.jsonl");
    encode("corpus.jsonl", "fixed", "given.jsonl");
    assert_eq!(folder.read("back.jsonl"), folder.read("given.jsonl"));
}

/// The texts of all shared conformers in an encoding; none of codes, or where they are not.
fn shared_texts(folder: &Folder, name: &str) -> Vec<String> {
    let Some(shared) = more().filter(|_| !name.starts_with("fsq")) else { return Vec::new() };
    let files = ["geom_conformers.jsonl", "xtb_moses_aq.jsonl.gz", "etkdg_drugs_test.jsonl.gz"];
    let texts = |file: &str| {
        let input = shared.join("geom").join(file).display().to_string();
        folder.drift(&["encode", &input, "--encoding", name, "-o", "shared.jsonl"]).done();
        let lines = String::from_utf8(folder.read("shared.jsonl")).unwrap();
        let text = |line: &str| {
            let row: Value = serde_json::from_str(line).unwrap();
            row["embedded_smiles"].as_str().unwrap().to_owned()
        };
        lines.lines().map(text).collect::<Vec<String>>()
    };
    files.into_iter().flat_map(texts).collect()
}

/// The one tokenizer of [`every_encoding_is_followed_at_length`] that cannot be followed, and its encoding: its token ` 0` joins a digit
/// with the separator.
const REFUSED: (&str, &str) = ("roberta", "lines");

/// `.ci/run --all` runs it: 10,000 random texts and walks, and every shared text, of each encoding by each tokenizer.
#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn every_encoding_is_followed_at_length() {
    let folder = Folder::new();
    let mut all = tokenizers();
    if let Some(shared) = more() {
        let names = [
            "qwen3",
            "llama-3.2",
            "cl100k",
            "dolma2",
            "gemma3",
            "roberta",
            "galactica",
            "falcon",
            "chemllama2",
        ];
        let load = |name| Arc::new(Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap());
        all.extend(names.map(load));
    }
    let bins = |base: &Tokenizer, special: bool| {
        with_added(&folder, base, (0..251).map(|bin| format!("{bin:03}")), special)
    };
    let with_bins: Vec<_> = [false, true].map(|special| bins(&all[0], special)).into();
    let rounds = 10_000 / drift::tokenizer::BUILT_IN_SKELETONS.len();
    for name in NAMES {
        let encoding: Encoding = name.parse().unwrap();
        let texts = shared_texts(&folder, name);
        let with_bins = with_bins.iter().filter(|_| name.starts_with("binned-v2"));
        let tokenizers: Vec<&Arc<Tokenizer>> = all.iter().chain(with_bins).collect();
        let pass = |tokenizer: &&Arc<Tokenizer>| {
            let processor = AutomatonProcessor::new((*tokenizer).clone(), encoding, u32::MAX);
            assert_eq!(processor.is_err(), (&*tokenizer.name, name) == REFUSED, "{:?}", processor.err());
            let Ok(processor) = processor else { return };
            followed_both_ways(tokenizer, encoding, rounds);
            for text in &texts {
                let parsed = drift::text::parse(text, Reading::new(encoding)).unwrap();
                let follow = processor.molecule(&parsed.skeleton).unwrap();
                let mut state = follow.start();
                for id in tokenizer.answer_ids(&tagged(text)).unwrap() {
                    assert!(follow.mask(&state).allows(id), "{}: {text}", tokenizer.name);
                    follow.advance(&mut state, id);
                }
                assert!(follow.is_over(&state, u32::MAX), "{}: {text}", tokenizer.name);
            }
            println!("{name}, {}: {} shared texts", tokenizer.name, texts.len());
        };
        tokenizers.par_iter().for_each(pass);
    }
}

/// A tokenizer with more added tokens.
pub(crate) fn with_added(
    folder: &Folder,
    base: &Tokenizer,
    texts: impl Iterator<Item = String>,
    special: bool,
) -> Arc<Tokenizer> {
    let mut inner = base.inner().clone();
    let tokens: Vec<_> =
        texts.map(|text| tokenizers::AddedToken::from(text, special).normalized(false)).collect();
    if special {
        inner.add_special_tokens(tokens).unwrap()
    } else {
        inner.add_tokens(tokens).unwrap()
    };
    let path = folder.path().join("added.json");
    inner.save(&path, false).unwrap();
    Arc::new(Tokenizer::load(&path).unwrap())
}

#[test]
fn bins_and_codes_as_tokens_are_forced_where_nothing_else_is_canonical() {
    let folder = Folder::new();
    let base = Tokenizer::embedded().unwrap().remove(0);
    let encoding: Encoding = "binned-v2:-13,13,0.104".parse().unwrap();
    for special in [false, true] {
        let all = with_added(&folder, &base, (0..251).map(|bin| format!("{bin:03}")), special);
        followed_both_ways(&all, encoding, 20);
        let automaton = AutomatonProcessor::new(all.clone(), encoding, 0).unwrap();
        assert_eq!(automaton.automaton().alphabet(), 251);
        // The last bins have no token, and are written in digits.
        let short = with_added(&folder, &base, (0..240).map(|bin| format!("{bin:03}")), special);
        followed_both_ways(&short, encoding, 20);
    }
    let codes = with_added(&folder, &base, (0..512).map(|code| format!("<{code}>")), false);
    let fsq: Encoding = "fsq:512".parse().unwrap();
    followed_both_ways(&codes, fsq, 20);
    let ids: HashSet<u32> = (0..512).map(|code| codes.vocabulary()[&format!("<{code}>")]).collect();
    let answer = codes.answer_ids("[CONFORMER][C]<7>=<511>[O]<0>[/CONFORMER]").unwrap();
    assert_eq!(answer.iter().filter(|id| ids.contains(id)).count(), 3);
}

/// A base extended for the slots of an encoding, every number run in one context.
fn extended(
    folder: &Folder,
    base: &Path,
    kind: SchemeKind,
    encoding: Encoding,
    tokens: usize,
) -> TrainedTokenizer {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let texts = drift::tokenizer::BUILT_IN_SKELETONS.map(|skeleton| {
        let skeleton = drift::text::skeleton::placed(skeleton, encoding.slots());
        let slots: Vec<_> =
            (0..skeleton.matches("<>").count()).map(|_| values(encoding, &mut random)).collect();
        let text = write(&skeleton, &slots, encoding);
        serde_json::json!({ "canonical_smiles": "C", "embedded_smiles": text }).to_string()
    });
    folder.file("texts.jsonl", texts.join("\n"));
    let options = ReadOptions { reading: Reading::new(encoding), ..ReadOptions::default() };
    let corpus = Files { inputs: vec![folder.path().join("texts.jsonl")], options };
    let (base, json) = Tokenizer::load_with_json(base).unwrap();
    let (base_json, aim) = (serde_json::from_slice(&json).unwrap(), Aim::TokensPerBlock(tokens));
    let plan = ExtensionPlan { contexts: 1, ..ExtensionPlan::new(base, base_json, kind, encoding, aim) };
    let trained = train(&plan, &corpus, &drift::Job::default()).unwrap();
    let source = drift::io::hash_bytes("tokenizer.json", &trained.tokenizer_json);
    let again = ExtensionPlan {
        base: Tokenizer::from_bytes("extended", source, &trained.tokenizer_json).unwrap(),
        base_json: serde_json::from_slice(&trained.tokenizer_json).unwrap(),
        ..plan
    };
    assert!(train(&again, &corpus, &drift::Job::default()).unwrap().unchanged, "{encoding}");
    trained
}

#[test]
#[cfg_attr(not(all_tests), ignore = "takes long: DRIFT_ALL=1")]
fn tokenizers_are_extended_for_every_encoding_of_one_length() {
    use SchemeKind::{Fused, Separate};
    let folder = Folder::new();
    folder.file(
        "integers.json",
        r#"{"schema":"drift.encoding/1","name":"integers","open":"<","separator":",","close":">","numbers":3,
            "number":{"kind":"integer","scale":100,"width":4,"most":1500,"signed":true,"rounding":"truncate"}}"#,
    );
    folder.file(
        "axes.json",
        r#"{"schema":"drift.encoding/1","name":"axes","separator":",","close":";","numbers":3,"number":{"kind":"index","width":2,
            "axes":[{"low":-4,"high":4,"step":0.1},{"low":-3,"high":3,"step":0.1},{"low":-2,"high":2,"step":0.1}]}}"#,
    );
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (v1, v2, fsq) = ("binned-v1:-21,21,0.05", "binned-v2:-13,13,0.104", "fsq:512");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers");
    // Where numbers have bins of their own, those of the axis with the most are tokens.
    for (base, encoding, kind, tokens, new) in [
        ("qwen-like", v1.to_owned(), Separate, 7, 841),
        ("qwen-like", v1.to_owned(), Fused, 3, 3 * 841),
        ("qwen-like", v2.to_owned(), Separate, 4, 251),
        ("qwen-like", v2.to_owned(), Fused, 3, 2 * 251),
        // What was asked for may mix brackets with digits, but need not.
        ("qwen-like", v2.to_owned(), Fused, 4, 251),
        ("llama-like", v2.to_owned(), Separate, 4, 0),
        ("qwen-like", fsq.to_owned(), Fused, 1, 512),
        ("qwen-like", fsq.to_owned(), Separate, 3, 512 - 10),
        ("qwen-like", path("integers.json"), Separate, 7, 2 * 1_501),
        ("qwen-like", path("axes.json"), Separate, 6, 81),
        ("llama-2-like", v2.to_owned(), Separate, 4, 251),
        ("gemma-like", v1.to_owned(), Separate, 7, 841),
        ("mistral-v3-like", v1.to_owned(), Fused, 5, 2 * 841),
        ("gpt2-like", v1.to_owned(), Fused, 4, 2 * 841),
    ] {
        let encoding: Encoding = encoding.parse().unwrap();
        let place = fixtures.join(base);
        let place = if place.exists() { place } else { base.into() };
        let trained = extended(&folder, &place, kind, encoding, tokens);
        let report = &trained.report;
        assert_eq!((report.tokens_per_block, report.drift), (tokens as u64, 0), "{base} {encoding}");
        let borders = [encoding.open(), encoding.close()].concat();
        let mixes = |piece: &str| piece.chars().count() > 1 && piece.contains(|c| borders.contains(c));
        let is_mixed = report.examples.iter().flat_map(|block| block.split('|')).any(mixes);
        assert_eq!(report.kind == Fused, is_mixed, "{base} {encoding}: {:?}", report.examples);
        assert_eq!(report.new_tokens, new, "{base} {encoding}");
        assert!(report.lower_bound <= new && report.search.new_tokens >= Some(new), "{base} {encoding}");
        let source = drift::io::hash_bytes("tokenizer.json", &trained.tokenizer_json);
        let tokenizer = Tokenizer::from_bytes(base, source, &trained.tokenizer_json).unwrap();
        followed_both_ways(&Arc::new(tokenizer), encoding, 20);
    }
}

#[test]
fn numbers_that_are_added_tokens_already_are_left_alone() {
    let folder = Folder::new();
    let base = Tokenizer::embedded().unwrap().remove(0);
    for (special, part) in [(true, "drops coordinates"), (false, "as added tokens already")] {
        with_added(&folder, &base, (0..251).map(|bin| format!("{bin:03}")), special);
        let encoding = "binned-v2:-13,13,0.104";
        let options = format!("--encoding {encoding} --tokens-per-block 4 -o x");
        let ran = folder.line(&format!("train-tokenizer --base added.json {options}"));
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

#[test]
fn new_tokens_take_ids_of_old_ones_that_nothing_uses() {
    let folder = Folder::new();
    corpus(&folder, 40);
    let name = "binned-v2:-13,13,0.104";
    let run = |arguments: &[&str]| folder.drift(arguments).done().json();
    let design =
        ["--encoding", name, "--tokens-per-block", "4", "--kind", "separate", "--corpus", "corpus.jsonl"];
    let tokenizer = |more: &[&str]| {
        let ran = ["train-tokenizer", "--base", "qwen-like", "--quiet", "--json"];
        run(&[&ran[..], &design, more].concat())
    };
    let report = tokenizer(&["--reuse", "unused", "-o", "extended"]);
    let base = Tokenizer::embedded().unwrap().remove(0);
    let rows = u64::from(base.rows());
    let of = |report: &Value, name: &str| report[name].as_u64();
    assert_eq!((of(&report, "new_tokens"), of(&report, "reused_ids")), (Some(251), Some(251)));
    assert_eq!(of(&report, "embedding_rows"), Some(rows));
    for file in ["tokenizer.json", "new_tokens.json", "tokenizer_config.json", "report.json", "report.html"] {
        assert!(!folder.read(&format!("extended/{file}")).is_empty(), "{file}");
    }
    // What is no block keeps its tokens in the texts of the corpus.
    let extended = Tokenizer::load(&folder.path().join("extended")).unwrap();
    let text = String::from_utf8(folder.read("corpus.jsonl")).unwrap();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let smiles = row["canonical_smiles"].as_str().unwrap();
        assert_eq!(extended.prompt_ids(smiles).unwrap(), base.prompt_ids(smiles).unwrap(), "{smiles}");
    }
    followed_both_ways(&Arc::new(extended), name.parse().unwrap(), sized(20, 5));
    // Named ones go if they can; the same file of new tokens tells extend-model which rows are others now.
    let listed: Value = serde_json::from_slice(&folder.read("extended/new_tokens.json")).unwrap();
    let replaced: Vec<&str> = listed["new_tokens"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|token| token["replaces"].as_str())
        .collect();
    folder.file("names.txt", replaced[..7].join("\n"));
    let card_says = |folder_of: &str, asked: &str| {
        let card = String::from_utf8(folder.read(&format!("{folder_of}/MODEL_CARD.md"))).unwrap();
        assert!(card.contains(&format!("--encoding {name} {asked} -o DIR")), "{card}");
    };
    // The card says so, beside the encoding that is asked for.
    card_says("extended", "--reuse unused");
    if cfg!(all_tests) {
        let named = tokenizer(&["--reuse", "names.txt", "-o", "named"]);
        card_says("named", "--reuse FILE");
        assert_eq!((of(&named, "reused_ids"), of(&named, "embedding_rows")), (Some(7), Some(rows + 251 - 7)));
    }
    let card = String::from_utf8(folder.read("extended/MODEL_CARD.md")).unwrap();
    assert!(
        card.contains("Text without blocks and without the 251 tokens that were removed takes"),
        "{card}"
    );
    // `0` is a token's text and another one's id.
    let neither = "made by no merge";
    for (line, expected) in [("0", "0 is the text of token"), ("id:0", neither), ("\"0\"", neither)] {
        folder.file("names.txt", format!("{line}\n"));
        let of_file = ["train-tokenizer", "--base", "qwen-like", "--reuse", "names.txt", "-o", "y"];
        let refused = folder.drift(&[&of_file, &design[..]].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(expected), "{}", refused.stderr);
    }
    let again = ["train-tokenizer", "--base", "extended", "--reuse", "unused", "-o", "y"];
    folder.drift(&[&again, &design[..]].concat()).refused_for("give the tokenizer that it was made from");
    train_small(&folder, "--steps 2");
    let grown =
        run(&["extend-model", "--model", "model", "--tokenizer", "extended", "-o", "grown", "--json"]);
    let table = &grown["tables"][0];
    assert_eq!((of(table, "overwritten"), of(table, "appended")), (Some(251), Some(0)), "{grown:#}");
    assert_eq!(grown["vocab_size"], grown["vocab_size_before"]);
    let lp = ["--lp", "automaton", "--corpus", "corpus.jsonl", "--samples", "4", "--json"];
    let eval = run(&[&["eval", "--model", "grown", "--encoding", name], &lp[..]].concat());
    assert_eq!(eval["runs"][0]["passed"], eval["runs"][0]["samples"]);
}

#[test]
fn answers_of_several_conformers_and_opened_prompts_are_followed() {
    let tokenizer = Arc::new(Tokenizer::embedded().unwrap().remove(0));
    let encoding = Encoding::FIXED;
    let new = || AutomatonProcessor::new(tokenizer.clone(), encoding, u32::MAX).unwrap();
    let one = "[C]<1.0000,2.0000,-3.0000>=[O]<0.5000,0.2500,-0.1250>";
    let three = new().answering(AnswerForm { conformers: 3, opened: false });
    let follow = three.molecule("[C]<>=[O]<>").unwrap();
    let accepted = |follow: &drift::constraint::automaton::MoleculeAutomaton, ids: &[u32]| {
        let mut state = follow.start();
        for id in ids {
            assert!(follow.mask(&state).allows(*id));
            follow.advance(&mut state, *id);
        }
        follow.is_over(&state, u32::MAX)
    };
    let ids = |count: usize| tokenizer.answer_ids(&tagged(one).repeat(count)).unwrap();
    assert!(accepted(&follow, &ids(3)) && !accepted(&follow, &ids(2)));
    let opened = new().answering(AnswerForm { conformers: 2, opened: true });
    let follow = opened.molecule("[C]<>=[O]<>").unwrap();
    let open = tokenizer.ids("[CONFORMER]").unwrap().len();
    assert!(accepted(&follow, &ids(2)[open..]));
    // The tag that closes a conformer may be what ends the text.
    let close = tokenizer.ids("[/CONFORMER]").unwrap();
    if let [close] = close[..] {
        let ended = AutomatonProcessor::new(tokenizer.clone(), encoding, close).unwrap();
        let follow = ended.molecule("[C]<>=[O]<>").unwrap();
        let mut state = follow.start();
        let answer = ids(1);
        for id in &answer[..answer.len() - 1] {
            assert!(follow.mask(&state).allows(*id));
            follow.advance(&mut state, *id);
        }
        assert_eq!(follow.mask(&state), Mask::Forced(close));
        assert!(follow.is_over(&state, close));
    }
}

#[test]
fn encodings_are_set_side_by_side() {
    let folder = Folder::new();
    corpus(&folder, 60);
    let (v2, names) = ("binned-v2:-13,13,0.104", ["fixed", "binned-v2:-13,13,0.104", "fsq:512"]);
    let options =
        ["encodings", "--corpus", "corpus.jsonl", "--tokenizer", "qwen-like", "--tokens-per-block", "9,4,1"];
    let ran = folder
        .drift(&[&options[..], &["--html", "page.html", "--json", "--encoding"], &names].concat())
        .done();
    let report = ran.json();
    let rows = report["rows"].as_array().unwrap();
    let row = |name: &str, new: u64| {
        rows.iter()
            .find(|row| row["encoding"] == name && row["new_tokens"] == new)
            .unwrap_or_else(|| panic!("{report:#}"))
    };
    // As many tokens as the texts take, by the tokenizer alone.
    let base = Tokenizer::embedded().unwrap().remove(0);
    let text = String::from_utf8(folder.read("corpus.jsonl")).unwrap();
    let mut tokens = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (smiles, text) =
            (line["canonical_smiles"].as_str().unwrap(), line["embedded_smiles"].as_str().unwrap());
        tokens += base.ids(&format!("[SMILES]{smiles}[/SMILES][CONFORMER]{text}[/CONFORMER]")).unwrap().len();
    }
    let fixed = row("fixed", 0);
    assert_eq!(fixed["tokens_per_conformer"], tokens as f64 / text.lines().count() as f64);
    assert!(fixed["rmsd_angstrom"].as_f64() < Some(1e-12) && fixed["valid_share"] == 1.0, "{fixed:#}");
    assert_eq!(
        (&fixed["constant"], &row("fixed", 260)["tokens_per_block"]["max"]),
        (&false.into(), &9.into())
    );
    // Extended, every number is a token; then the automaton leaves three of a block to the model.
    let (plain, bins) = (row(v2, 0), row(v2, 251));
    assert_eq!(
        (&plain["tokens_per_block"]["min"], &bins["tokens_per_block"]["mean"]),
        (&10.into(), &4.0.into())
    );
    let passes = |row: &Value| row["passes_per_conformer"].as_f64().unwrap();
    assert!((passes(plain) / passes(bins) - 3.0).abs() < 1e-9, "{} {}", passes(plain), passes(bins));
    let codes = row("fsq:512", 512);
    assert_eq!((&codes["tokens_per_block"]["max"], &codes["rmsd_angstrom"]), (&1.into(), &Value::Null));
    assert_eq!(report["recommended"][0]["encoding"], v2);
    // What is left out is told, and a page has no place on stdout.
    folder.file("half.jsonl", r#"{"canonical_smiles":"C","embedded_smiles":"[C]<1,2>"}"#);
    let some = words("encodings --corpus corpus.jsonl half.jsonl --tokenizer qwen-like --no-extensions");
    let told = folder.drift(&some);
    assert!(told.code == Some(0) && told.stderr.contains("skipped: half.jsonl: line 1"), "{}", told.stderr);
    let refused = folder.drift(&[&some[..], &["--html", "-"]].concat());
    assert!(
        refused.code == Some(2) && refused.stderr.contains("write the page to a file"),
        "{}",
        refused.stderr
    );
    let page = String::from_utf8(folder.read("page.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Which encoding"));
}

#[test]
#[cfg_attr(not(has_numpy), ignore = "needs numpy in DRIFT_PYTHON")]
fn what_a_text_loses_is_what_numpy_says() {
    let folder = Folder::new();
    corpus(&folder, 400);
    by_numpy(&folder, &["bins", "corpus.jsonl", "quantile.json", "quantile"]);
    for encoding in ["v1:-21,21,0.05", "v2:-4,4,0.3", "quantile.json"] {
        let expected: Value =
            serde_json::from_str(&by_numpy(&folder, &["loss", encoding, "corpus.jsonl"])).unwrap();
        let name = if encoding.starts_with('v') { format!("binned-{encoding}") } else { encoding.to_owned() };
        let options =
            ["encodings", "--corpus", "corpus.jsonl", "--tokenizer", "qwen-like", "--no-extensions"];
        let ran = folder.drift(&[&options[..], &["--json", "--encoding", &name]].concat()).done();
        let row = &ran.json()["rows"][0];
        assert_eq!(row["out_of_range_conformers"], expected["out_of_range"], "{encoding}");
        for (own, theirs) in
            [("rmsd_angstrom", "rmsd"), ("worst_atom_angstrom", "worst"), ("cell_nats", "nats")]
        {
            let (own, theirs) = (row[own].as_f64().unwrap(), expected[theirs].as_f64().unwrap());
            assert!(
                (own - theirs).abs() <= 1e-7 * theirs.abs().max(1.0),
                "{encoding}: {own} is not {theirs}"
            );
        }
    }
}

#[test]
fn every_verb_takes_bins() {
    let folder = Folder::new();
    corpus(&folder, 60);
    let name = "binned-v2:-13,13,0.104";
    let run =
        |arguments: &[&str]| -> Value { folder.drift(&[arguments, &["--json"]].concat()).done().json() };
    run(&["encode", "corpus.jsonl", "--encoding", name, "-o", "bins.jsonl"]);
    let row: Value =
        serde_json::from_slice(folder.read("bins.jsonl").split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!(row["encoding"], name);
    let decimals = run(&["mine", "corpus.jsonl"]);
    let mined = run(&["mine", "bins.jsonl", "--encoding", name, "-o", "bins.h5"]);
    assert_eq!(
        (&mined["encoding"], &mined["out_of_range"], &mined["blocks"]),
        (&name.into(), &0.into(), &decimals["blocks"])
    );
    // What bins stand for is half a bin off at most.
    let mean = |report: &Value| report["axes"][0]["summary"]["mean"].as_f64().unwrap();
    assert!((mean(&mined) - mean(&decimals)).abs() < 0.052, "{mined:#}");
    // The store says how its values are written, and gives them back.
    assert_eq!(run(&["mine", "bins.h5", "--encoding", name])["axes"], mined["axes"]);
    folder.drift(&["mine", "bins.h5"]).refused_for("are written as binned-v2:-13,13,0.104, not as fixed");
    run(&["encode", "bins.h5", "--encoding", "fixed", "-o", "back.jsonl"]);
    let audited = run(&["audit", "bins.jsonl", "--encoding", name]);
    let total = &audited["total"];
    assert_eq!((&total["passed"], &total["junk_blocks_strict"]), (&60.into(), &0.into()));
    let fitted = run(&["fit", "--encoding", name, "--corpus", "corpus.jsonl", "--no-classes"]);
    let result = &fitted["results"][0];
    assert_eq!((&result["placeholder"], &result["constant_tokens"]), (&"000000000".into(), &9.into()));
    assert_eq!(result["certificate"]["objective"], serde_json::json!([0.0, 0.0, 0.0]));
    let inspected = {
        let texts = ["inspect", "--json", "--encoding", name, "[C]166156135;[O]175145137;"];
        folder.drift(&texts).good().json()
    };
    let free = |block: usize| inspected[0]["blocks"][block]["free"].as_u64();
    assert_eq!((free(0), free(1)), (Some(9), Some(9)));
    let exported = run(&["export-grammar", "CCO", "--encoding", name, "-o", "grammar.jsonl"]);
    assert_eq!(exported["dialect"], name);
}

#[test]
fn a_model_is_trained_on_bins_and_held_to_them() {
    let folder = Folder::new();
    corpus(&folder, 40);
    let name = "binned-v2:-13,13,0.104";
    train_small(&folder, &format!("--encoding {name} --steps 3"));
    let recipe: Value = serde_json::from_slice(&folder.read("model/recipe.json")).unwrap();
    assert_eq!(recipe["recipe"]["dialect"], name);
    // The model's recipe says how it writes.
    let ran =
        folder.line("eval --model model --lp automaton --corpus corpus.jsonl --samples 4 --json").done();
    let run = &ran.json()["runs"][0];
    assert!(run["samples"].as_u64() > Some(0) && run["passed"] == run["samples"], "{run:#}");
    let flaws = ["junk_blocks_strict", "truncated_blocks", "no_eos", "graph_mismatch", "parse_failures"];
    assert!(flaws.iter().all(|name| run[*name] == 0), "{run:#}");
}

#[test]
fn bad_encodings_are_refused_in_a_line() {
    let folder = Folder::new();
    corpus(&folder, 5);
    folder.file("falling.json", r#"{"mode": "uniform", "L": 0, "H": 2, "n_bins": 2, "edges": [0, 2, 1]}"#);
    folder.file("without.json", r#"{"mode": "uniform", "L": 0, "H": 2, "n_bins": 2}"#);
    folder.file("half.json", r#"{"mode": "uniform""#);
    for (encoding, problem) in [
        ("falling.json", "edge 2 (1) is not above the one before it"),
        ("without.json", "no edges"),
        ("half.json", "no JSON"),
        ("binned-v1:1,2", "give LOW,HIGH,STEP"),
        ("binned-v2:-21,21,0.042,3", "1000 does not fit into 3 digits"),
        ("binned-v2:3,1,0.1", "give low < high"),
        ("fsq:0", "give 1 to 1,000,000"),
        ("nope", "neither an encoding nor a file"),
    ] {
        let ran = folder.drift(&["encode", "corpus.jsonl", "--encoding", encoding, "-o", "out.jsonl"]);
        assert!(ran.code == Some(2) && ran.stderr.contains(problem), "{encoding}: {}", ran.stderr);
        assert!(!folder.path().join("out.jsonl").exists());
    }
}

#[test]
fn texts_of_another_encoding_are_told() {
    let folder = Folder::new();
    let v1 = "binned-v1:-21,21,0.05";
    folder.file("v1.txt", "[C]<586,563,511>[O]<609,537,518>\n");
    folder.file("decimals.txt", "[C]<1.5000,0.0000,-2.0000>\n");
    folder.file("both.txt", "[C]<586,563,511>[O]<609,537,518>\n[C]<1.5000,0.0000,-2.0000>\n");
    folder.file("wide.txt", "[C]<586,563,1000>\n");
    // Bins of unknown widths are not guessed.
    folder.drift(&["mine", "v1.txt"]).refused_for("look like bins");
    folder.drift(&["fit", "--corpus", "v1.txt"]).refused_for("look like bins");
    let v2 = folder.drift(&["mine", "v1.txt", "--encoding", "binned-v2:-13,13,0.104"]);
    v2.refused_for("it looks like bins of another encoding");
    folder.drift(&["mine", "wide.txt", "--encoding", v1]).refused_for("number `1000`: beyond 0 to 840");
    let ran = folder.drift(&["mine", "both.txt", "--encoding", v1, "--json"]);
    let report = ran.json();
    assert_eq!((report["conformers"].as_u64(), report["skipped"].as_u64()), (Some(1), Some(1)), "{report:#}");
    let reason = report["skipped_records"][0]["reason"].as_str().unwrap();
    assert!(reason.ends_with("it is written in decimals"), "{reason}");
    let strict =
        ["encode", "both.txt", "--input-encoding", v1, "--encoding", "fixed", "-o", "out.jsonl", "--json"];
    let report = folder.drift(&strict).json();
    assert_eq!((report["conformers"].as_u64(), report["skipped"].as_u64()), (Some(1), Some(1)));
    let skipped = report["skipped_records"][0]["reason"].as_str().unwrap();
    assert!(skipped.contains("number `1.5000`: not a whole number of 3 digits"), "{skipped}");
}

#[test]
fn conformers_out_of_range_are_counted_or_skipped() {
    let folder = Folder::new();
    folder.file("far.txt", "[C]<1.5000,0.0000,-2.0000>\n[C]<1.5000,14.0000,-2.0000>\n");
    let encode = |more: &[&str]| {
        let arguments =
            ["encode", "far.txt", "--encoding", "binned-v2:-13,13,0.104", "-o", "out.jsonl", "--json"];
        let ran = folder.drift(&[&arguments[..], more].concat());
        let report = ran.json();
        ["conformers", "out_of_range", "skipped"].map(|count| report[count].as_u64().unwrap())
    };
    assert_eq!(encode(&[]), [2, 1, 0]);
    assert_eq!(encode(&["--out-of-range", "skip"]), [1, 0, 1]);
    let mined = folder.drift(&["mine", "out.jsonl", "--encoding", "binned-v2:-13,13,0.104", "--json"]).json();
    assert_eq!(mined["out_of_range_conformers"], 0);
}

/// The rows of a run, as they are shown while it goes on.
#[derive(Default)]
struct Shown {
    rows: std::sync::Mutex<Vec<String>>,
    sizes: std::sync::Mutex<[u64; 2]>,
}

impl drift::job::Observer for Shown {
    fn begin(&self, phase: &str, total: Option<u64>, _: drift::job::Unit) {
        if phase == "encodings" {
            *self.sizes.lock().unwrap() = [0, total.unwrap()];
        }
    }

    fn advance(&self, n: u64) {
        self.sizes.lock().unwrap()[0] += n;
    }

    fn ready(&self, line: &str) {
        self.rows.lock().unwrap().push(line.to_owned());
    }

    fn end(&self) {}
}

#[test]
fn rows_are_shown_when_they_are_ready() {
    let shown = Arc::new(Shown::default());
    let job = drift::job::Job::new(shown.clone(), Arc::default());
    let plan = drift::encodings::EncodingsPlan {
        tokenizers: vec![drift::design::Base::load(Path::new("llama-like"), &job).unwrap()],
        encodings: vec![Encoding::FIXED, "binned-v1:-21,21,0.05".parse().unwrap()],
        // No extension has one token a block.
        tokens_per_block: vec![1, 9],
        kind: SchemeKind::Fused,
        seed: 0,
    };
    let report = drift::encodings::compare_encodings(&plan, &crate::support::First(20), &job).unwrap();
    let rows = shown.rows.lock().unwrap().clone();
    assert_eq!(rows.len(), report.rows.len());
    assert!(rows.len() >= 3 && rows.iter().all(|row| row.contains(", llama-like, ")), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("fixed, llama-like, 0 new tokens: 1")), "{rows:?}");
    // What is done is what was announced.
    let [done, total] = *shown.sizes.lock().unwrap();
    assert_eq!((done, total), (6, 6));
}
