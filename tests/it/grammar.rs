//! `drift export-grammar`: what it writes allows in every state what the automaton allows, by readers that share no code with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drift::constraint::automaton::AutomatonProcessor;
use drift::constraint::grammar::{GrammarFormat, grammar};
use drift::constraint::{Constraint, Mask};
use drift::encoding::Encoding;
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::Value;

use crate::automaton::{EOS, SKELETONS, automaton, shared_tokenizers, tokenizers};
use crate::bases::fixture;
use crate::counting::{fixture_tokenizer, whole};
use crate::support::{Folder, Ran, drift, rows, sized};

/// A reader of an exported grammar: where a text stands, what may come next.
trait Reader {
    /// Sorted ids; nothing once the text is over.
    fn legal(&self) -> BTreeSet<u32>;
    fn take(&mut self, id: u32);
}

/// The tables, read as their documentation says.
struct Tables {
    document: Value,
    at: usize,
    place: i64,
}

impl Tables {
    fn new(json: &str, eos: u32) -> Self {
        let document: Value = serde_json::from_str(json).unwrap();
        assert_eq!((&document["schema"], &document["eos"]), (&"drift.automaton/1".into(), &eos.into()));
        let mut tables = Tables { document, at: 0, place: 0 };
        tables.place = tables.root(0, 0);
        tables
    }

    fn segment(&self, at: usize) -> &Value {
        let segment = self.document["order"][at].as_u64().unwrap();
        &self.document["segments"][segment as usize]
    }

    fn root(&self, at: usize, mode: usize) -> i64 {
        self.segment(at)["roots"][mode].as_i64().unwrap()
    }

    /// Ids with the entry and place that they lead to; no place behind the text.
    fn edges(&self) -> BTreeMap<u32, (usize, Option<i64>)> {
        let (block, number) = (&self.document["block"], |value: &Value| value.as_i64().unwrap());
        let states = block["offsets"].as_array().unwrap().len() as i64 - 1;
        let row = |edges: &Value, row: i64| -> Vec<(u32, i64)> {
            let range = number(&edges["offsets"][row as usize])..number(&edges["offsets"][row as usize + 1]);
            range
                .map(|n| (number(&edges["ids"][n as usize]) as u32, number(&edges["targets"][n as usize])))
                .collect()
        };
        let of_segment = |at: usize, place: i64| {
            let edges = row(self.segment(at), place - states);
            edges.into_iter().map(move |(id, to)| (id, (at, if to == -3 { None } else { Some(to) })))
        };
        if self.place >= states {
            return of_segment(self.at, self.place).collect();
        }
        let mut edges = BTreeMap::new();
        for (id, to) in row(block, self.place) {
            let to = match to {
                -1 | -2 => (self.at + 1, Some(self.root(self.at + 1, (-1 - to) as usize))),
                to => (self.at, Some(to)),
            };
            assert_eq!(edges.insert(id, to), None);
        }
        let exit = number(&block["exits"][self.place as usize]);
        if exit >= 0 {
            for (id, to) in of_segment(self.at + 1, self.root(self.at + 1, exit as usize)) {
                assert_eq!(edges.insert(id, to), None, "{id} is legal twice");
            }
        }
        edges
    }
}

impl Reader for Tables {
    fn legal(&self) -> BTreeSet<u32> {
        if self.place < 0 { BTreeSet::new() } else { self.edges().into_keys().collect() }
    }

    fn take(&mut self, id: u32) {
        let (at, place) = self.edges()[&id];
        (self.at, self.place) = (at, place.unwrap_or(-1));
    }
}

/// A symbol of a grammar: ranges of ids, the token of a character, or a rule by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    Tokens(Vec<(u32, u32)>),
    Character(u32),
    Rule(Arc<str>),
}

/// Lark or EBNF, read as rules; every way to have read a text so far is a stack of what is still to come.
struct Rules {
    rules: Arc<BTreeMap<Arc<str>, Vec<Vec<Symbol>>>>,
    stacks: BTreeSet<Vec<Symbol>>,
    /// Tokens that may not stand by their ids where they are the only legal ones.
    mistaken: BTreeMap<char, u32>,
}

/// The tokens of characters whose byte has a token with a smaller id, which llguidance finds in their place.
fn mistaken(tokenizer: &Tokenizer) -> BTreeMap<char, u32> {
    let ids = tokenizer.vocabulary();
    let own = |c: char| {
        let spelled = if c == ' ' { "▁".to_owned() } else { c.to_string() };
        Some((ids.get(&spelled)?, ids.get(&format!("<0x{:02X}>", u32::from(c)))?))
    };
    ('\0'..='~').filter_map(|c| own(c).filter(|(own, byte)| byte < own).map(|(own, _)| (c, *own))).collect()
}

impl Rules {
    fn new(
        text: &str,
        start: &str,
        derives: &str,
        tokens: (&str, &str),
        mistaken: BTreeMap<char, u32>,
    ) -> Self {
        let symbol = |word: &str| match word.strip_prefix(tokens.0) {
            None if word.starts_with('"') => {
                let character: String = serde_json::from_str(word).unwrap();
                Symbol::Character(mistaken[&character.parse().unwrap()])
            }
            None => Symbol::Rule(word.into()),
            Some(ids) => {
                let ids = ids.strip_suffix(tokens.1).unwrap().split(',').map(|ids| {
                    let (first, last) = ids.split_once('-').unwrap_or((ids, ids));
                    (first.parse().unwrap(), last.parse().unwrap())
                });
                Symbol::Tokens(ids.collect())
            }
        };
        let mut rules: BTreeMap<Arc<str>, Vec<Vec<Symbol>>> = BTreeMap::new();
        for line in text.lines() {
            let (name, ways) = line.split_once(derives).unwrap();
            let ways = ways.split(" | ").map(|way| {
                way.split(' ').filter(|word| *word != "\"\"").map(symbol).collect::<Vec<Symbol>>()
            });
            assert!(rules.insert(name.into(), ways.collect()).is_none(), "{name} twice");
        }
        without_nothing(&mut rules);
        let used: BTreeSet<&Symbol> = rules.values().flatten().flatten().collect();
        for symbol in used {
            assert!(!matches!(symbol, Symbol::Rule(name) if !rules.contains_key(name)), "no {symbol:?}");
        }
        let mut read = Rules { rules: rules.into(), stacks: BTreeSet::new(), mistaken };
        read.stacks = read.expanded(vec![Symbol::Rule(start.into())]);
        read
    }

    /// The stacks that a stack stands for, with tokens on top, or empty.
    fn expanded(&self, stack: Vec<Symbol>) -> BTreeSet<Vec<Symbol>> {
        let mut done = BTreeSet::new();
        let mut waiting = vec![stack];
        while let Some(mut stack) = waiting.pop() {
            match stack.pop() {
                Some(Symbol::Rule(name)) => waiting.extend(self.rules[&name].iter().map(|way| {
                    let mut longer = stack.clone();
                    longer.extend(way.iter().rev().cloned());
                    longer
                })),
                top => {
                    stack.extend(top);
                    done.insert(stack);
                }
            }
        }
        done
    }
}

/// Leaves out ways that no text comes of.
fn without_nothing(rules: &mut BTreeMap<Arc<str>, Vec<Vec<Symbol>>>) {
    let mut derives: BTreeSet<Arc<str>> = BTreeSet::new();
    let comes = |way: &[Symbol], derives: &BTreeSet<Arc<str>>| {
        way.iter().all(|symbol| {
            matches!(symbol, Symbol::Tokens(_) | Symbol::Character(_))
                || matches!(symbol, Symbol::Rule(name) if derives.contains(name))
        })
    };
    loop {
        let more = rules.iter().filter(|(_, ways)| ways.iter().any(|way| comes(way, &derives)));
        let more: BTreeSet<Arc<str>> = more.map(|(name, _)| name.clone()).collect();
        if more.len() == derives.len() {
            break;
        }
        derives = more;
    }
    assert_eq!(rules.len(), derives.len() + 2, "all but `u0` and `u1` derive something");
    rules.retain(|name, _| derives.contains(name));
    rules.values_mut().for_each(|ways| ways.retain(|way| comes(way, &derives)));
}

impl Reader for Rules {
    fn legal(&self) -> BTreeSet<u32> {
        let tops: Vec<&Symbol> = self.stacks.iter().filter_map(|stack| stack.last()).collect();
        let ids = tops.iter().flat_map(|symbol| match symbol {
            Symbol::Tokens(ranges) => ranges.clone(),
            Symbol::Character(id) => vec![(*id, *id)],
            Symbol::Rule(_) => Vec::new(),
        });
        let legal: BTreeSet<u32> = ids.flat_map(|(first, last)| first..=last).collect();
        let spelled = tops.iter().filter(|symbol| matches!(symbol, Symbol::Character(_))).count();
        let is_mistaken = legal.len() == 1 && self.mistaken.values().any(|id| legal.contains(id));
        assert_eq!(spelled, if is_mistaken { tops.len() } else { 0 }, "{tops:?}");
        legal
    }

    fn take(&mut self, id: u32) {
        let mut next = BTreeSet::new();
        for stack in &self.stacks {
            let Some((top, rest)) = stack.split_last() else { continue };
            let takes = match top {
                Symbol::Tokens(ids) => ids.iter().any(|(first, last)| (*first..=*last).contains(&id)),
                Symbol::Character(own) => *own == id,
                Symbol::Rule(_) => false,
            };
            if takes {
                next.extend(self.expanded(rest.to_vec()));
            }
        }
        self.stacks = next;
    }
}

/// Walks a random text of each of `rounds` skeletons, which ends in `eos`, and compares in every state.
fn compare(processor: &AutomatonProcessor, tokenizer: &Tokenizer, eos: u32, rounds: u64) -> usize {
    let name = &tokenizer.name;
    let masks = (0..rounds).into_par_iter().map(|seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let skeleton = &SKELETONS[random.random_range(0..SKELETONS.len())];
        // A part of it may be cut in two ways of the same likelihood, as Unigram has them.
        let Ok(follow) = processor.molecule(skeleton) else { return 0 };
        let text = |format| grammar(&follow, format).unwrap();
        let (lark, ebnf) = (text(GrammarFormat::Lark), text(GrammarFormat::Ebnf));
        let mut readers: [Box<dyn Reader>; 3] = [
            Box::new(Tables::new(&text(GrammarFormat::Json), eos)),
            Box::new(Rules::new(&lark, "start", ": ", ("<[", "]>"), mistaken(tokenizer))),
            Box::new(Rules::new(&ebnf, "root", " ::= ", ("Token(", ")"), BTreeMap::new())),
        ];
        let (mut state, mut masks) = (follow.start(), 0);
        while !follow.is_over(&state, eos) {
            let legal: BTreeSet<u32> = match follow.mask(&state) {
                Mask::Forced(id) => [id].into(),
                Mask::Only(ids) => ids.iter().copied().collect(),
                other => panic!("{other:?}"),
            };
            let id = *legal.iter().nth(random.random_range(0..legal.len())).unwrap();
            for reader in &mut readers {
                assert_eq!(reader.legal(), legal, "{name}: {skeleton} in {state:?}");
                reader.take(id);
            }
            masks += 1;
            follow.advance(&mut state, id);
        }
        assert!(readers.iter().all(|reader| reader.legal().is_empty()), "{name}: {skeleton}");
        masks
    });
    masks.sum()
}

#[test]
fn tables_and_grammars_allow_what_the_automaton_allows() {
    let rounds = if whole() { 1_000 } else { sized(12, 4) };
    let mut refused = Vec::new();
    for tokenizer in tokenizers() {
        for encoding in [Encoding::FIXED, Encoding::STRIPPED] {
            let Ok(processor) = automaton(&tokenizer, encoding, EOS) else {
                refused.push(format!("{}, {}", tokenizer.name, encoding.name()));
                continue;
            };
            let masks = compare(processor.automaton().unwrap(), &tokenizer, EOS, rounds);
            assert!(masks > 20 * rounds as usize);
            eprintln!("{}, {}: {masks} states compared", tokenizer.name, encoding.name());
        }
    }
    assert_eq!(refused, [""; 0]);
}

/// Spaces and line ends that are the only legal tokens, and have bytes in the vocabulary.
#[test]
fn and_so_for_white_space() {
    let spaces = r#"{"schema": "drift.encoding/1", "name": "own", "slots": "atoms", "open": "<", "separator": " ", "close": ">",
        "numbers": 3, "number": {"kind": "index", "width": 3, "axes": [{"low": -13, "high": 13, "step": 0.104}]}}"#;
    let (mut spelled, mut refused) = (BTreeSet::new(), Vec::new());
    for name in ["llama-2-like", "llama-2-like-untagged", "mistral-v3-like", "gemma-like"] {
        let tokenizer = fixture_tokenizer(name);
        for encoding in [spaces, "lines"] {
            let encoding: Encoding = encoding.parse().unwrap();
            let Ok(processor) = automaton(&tokenizer, encoding, EOS) else {
                refused.push(format!("{name}, {}", encoding.name()));
                continue;
            };
            let processor = processor.automaton().unwrap();
            assert!(compare(processor, &tokenizer, EOS, sized(12, 4)) > 80, "{name}");
            let lark = grammar(&processor.molecule("[C]<>[O]<>").unwrap(), GrammarFormat::Lark).unwrap();
            spelled.extend([r#""\u0020""#, r#""\u000a""#].into_iter().filter(|c| lark.contains(c)));
        }
    }
    assert_eq!(spelled.len(), 2);
    // The automaton cannot be proved for its texts.
    assert_eq!(refused, ["llama-2-like, lines"]);
}

/// The tags of this tokenizer are no tokens, so `][` crosses the end of the prompt.
#[test]
fn prompts_that_share_a_token_with_the_answer_are_stated_in_ids() {
    let path = fixture("llama-2-like-untagged").join("tokenizer.json.gz");
    let tokenizer = Tokenizer::load(&path).unwrap();
    let ran = exported(&["CC=O", "--dialect", "fixed", "--tokenizer", path.to_str().unwrap()]);
    assert!(ran.stderr.contains("prompt_ids"), "{}", ran.stderr);
    let row = &rows(&ran.stdout)[0];
    let stated: Vec<u32> = serde_json::from_value(row["prompt_ids"].clone()).unwrap();
    let whole = tokenizer.ids("[SMILES]CC=O[/SMILES][CONFORMER][C]<1.0000,2.0000,3.0000>").unwrap();
    let first: Vec<u32> = row["grammar"].as_str().unwrap().lines().nth(1).unwrap()["s0pp: <[".len()..]
        .split(']')
        .take(1)
        .map(|id| id.parse().unwrap())
        .collect();
    let behind = whole.windows(2).position(|pair| pair[1] == first[0]).unwrap() + 1;
    assert!(stated.ends_with(&whole[..behind]), "{stated:?} and {whole:?}");
    let alone = exported(&["CC=O", "--dialect", "fixed"]);
    assert!(rows(&alone.stdout)[0].get("prompt_ids").is_none() && !alone.stderr.contains("prompt_ids"));
    // The same texts by a skeleton.
    let folder = Folder::new();
    folder.file("prompts.jsonl", "{\"smiles\":\"CC=O\"}\n");
    let line = "export-grammar --format ebnf --skeleton enriched-smiles --prompts prompts.jsonl";
    let tokenizer = path.to_str().unwrap();
    let ran = folder.line(&format!("{line} --tokenizer {tokenizer}")).done();
    assert!(ran.stderr.contains("prompt_ids"), "{}", ran.stderr);
    assert_eq!(rows(&ran.stdout)[0]["prompt_ids"], row["prompt_ids"]);
    let ran = folder.line(line).done();
    assert!(rows(&ran.stdout)[0].get("prompt_ids").is_none() && !ran.stderr.contains("prompt_ids"));
}

/// Behind a chat's last line the first token is `[`, and no prompt's ids are known.
#[test]
fn prompts_of_a_chat_begin_otherwise() {
    let path = fixture("llama-2-like-untagged").join("tokenizer.json.gz");
    let tokenizer = path.to_str().unwrap();
    let line = ["CC=O", "--dialect", "fixed", "--tokenizer", tokenizer, "--format", "json", "--eos", "</s>"];
    let first = |ran: &Ran| rows(&ran.stdout)[0]["grammar"]["segments"].clone();
    let alone = exported(&line);
    let chat = exported(&[&line[..], &["--prompt-end", "assistant:\n"]].concat());
    assert!(!chat.stderr.contains("prompt_ids") && rows(&chat.stdout)[0].get("prompt_ids").is_none());
    assert_ne!(first(&alone), first(&chat));
    drift(&[&["export-grammar"], &line[..], &["--prompt-end", "[/INST]"]].concat())
        .refused_for("--prompt-end: a token of this tokenizer crosses the end of such a prompt");
}

/// Its decoder is `Metaspace`, whose bytes llguidance does not know.
#[test]
fn a_tokenizer_that_llguidance_cannot_load_is_said_at_once() {
    let path = fixture("unigram-digits-like").join("tokenizer.json.gz");
    let says = |format: &str| {
        exported(&["CC", "--dialect", "fixed", "--tokenizer", path.to_str().unwrap(), "--format", format])
            .stderr
            .contains("llguidance cannot load this tokenizer")
    };
    assert_eq!(["lark", "ebnf", "json"].map(says), [true, false, false]);
}

/// Where slots are cut out whole, nothing stands behind the last one then.
#[test]
fn and_so_where_the_closing_tag_ends_the_text() {
    let mut compared = 0;
    for tokenizer in tokenizers() {
        let Some(eos) = tokenizer.vocabulary_id("[/CONFORMER]") else { continue };
        for encoding in [Encoding::FIXED, Encoding::STRIPPED] {
            let Ok(processor) = automaton(&tokenizer, encoding, eos) else { continue };
            let masks = compare(processor.automaton().unwrap(), &tokenizer, eos, sized(6, 2));
            assert!(masks > 0, "{}", tokenizer.name);
            compared += 1;
        }
    }
    assert!(compared >= 10, "{compared}");
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared")]
fn and_so_for_real_tokenizers() {
    for tokenizer in shared_tokenizers() {
        for encoding in [Encoding::FIXED, Encoding::STRIPPED] {
            let processor = automaton(&tokenizer, encoding, EOS).unwrap();
            let rounds = if whole() { 1_000 } else { sized(6, 3) };
            compare(processor.automaton().unwrap(), &tokenizer, EOS, rounds);
        }
    }
}

fn exported(more: &[&str]) -> Ran {
    drift(&[&["export-grammar"], more].concat())
}

#[test]
fn one_molecule_on_stdout() {
    let ran = exported(&["CC=O", "--format", "ebnf", "--dialect", "fixed"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let [row] = &rows(&ran.stdout)[..] else { panic!("one line") };
    assert_eq!((&row["smiles"], &row["skeleton"]), (&"CC=O".into(), &"[C]<>[C]<>=[O]<>".into()));
    let text = row["grammar"].as_str().unwrap();
    assert!(text.starts_with("root ::= s0pp s1pp s2pp s3p\n"), "{text}");
    assert!(ran.stderr.contains("1 grammar as ebnf"), "{}", ran.stderr);
    let table = exported(&["CC=O", "--format", "json", "--dialect", "fixed", "-o", "-"]);
    let row = &rows(&table.stdout)[0];
    assert_eq!(row["grammar"]["order"], serde_json::json!([0, 1, 2, 3]));
}

#[test]
fn block_rules_are_shared() {
    let line = |smiles: &str| exported(&[smiles, "--dialect", "stripped"]).stdout.len();
    let (small, large) = (line("CC"), line(&"C".repeat(80)));
    assert!(large - small < 78 * 20, "{small} and {large} bytes");
}

#[test]
fn a_file_of_molecules_in_order_and_bad_lines_are_told() {
    let folder = Folder::new();
    folder.file("m.smi", "CCO ethanol\nC(\n# none\nc1ccccc1\n");
    let arguments = ["export-grammar", "--smiles", "m.smi", "--dialect", "fixed", "-o", "g.jsonl"];
    let ran = folder.drift(&arguments).done();
    assert!(ran.stderr.contains("skipped: m.smi: line 2: "), "{}", ran.stderr);
    let made = folder.read("g.jsonl");
    let smiles: Vec<Value> = rows(&made).into_iter().map(|row| row["smiles"].clone()).collect();
    assert_eq!(smiles, ["CCO", "c1ccccc1"]);
    let json = folder.drift(&[&arguments[..], &["--json", "--threads", "1"]].concat());
    let report = json.json();
    assert_eq!((&report["molecules"], &report["skipped"]), (&2.into(), &1.into()));
    assert_eq!(folder.read("g.jsonl"), made);
}

#[test]
fn any_number_of_threads_writes_the_same() {
    let folder = Folder::new();
    folder.file(
        "m.smi",
        SKELETONS.iter().take(300).map(|one| drift::text::skeleton::smiles(one) + "\n").collect::<String>(),
    );
    let with = |threads: &str| {
        let words =
            ["export-grammar", "--smiles", "m.smi", "--dialect", "stripped", "--format", "json", "-q"];
        folder.drift(&[&words[..], &["--threads", threads]].concat()).stdout
    };
    let one = with("1");
    assert!(one.len() > 100_000 && (0..4).all(|_| with("8") == one));
}

#[test]
fn molecules_too_large_for_engines_are_skipped_by_name() {
    let folder = Folder::new();
    folder.file("m.smi", format!("CCO\n{}\n", "C".repeat(1_001)));
    let of = |tokenizer: &str, format: &str| {
        let arguments =
            ["export-grammar", "--smiles", "m.smi", "--dialect", "fixed", "-o", "g.jsonl", "--json"];
        folder.drift(&[&arguments[..], &["--tokenizer", tokenizer, "--format", format]].concat()).json()
    };
    let skipped = of("qwen-like-fused", "lark");
    assert_eq!(
        (&skipped["molecules"], &skipped["skipped_records"][0]["record"]),
        (&1.into(), &"line 2".into())
    );
    for (tokenizer, format) in [("qwen-like-fused", "json"), ("qwen-like", "lark")] {
        assert_eq!(of(tokenizer, format)["molecules"], 2, "{tokenizer} {format}");
    }
}

#[test]
fn bad_input_is_one_line_and_nothing_is_written() {
    let folder = Folder::new();
    folder.file("none.smi", "C(\n");
    folder.file("m.smi", "CCO\n");
    for (arguments, said) in [
        (&["C("][..], "give a SMILES, or --smiles and a file of them"),
        (&["--smiles", "none.smi"], "none.smi: contains no SMILES: line 1"),
        (&["--smiles", "absent.smi"], "absent.smi: "),
        (&["CCO", "--tokenizer", "absent"], "absent"),
        (&["--smiles", "m.smi", "-o", "m.smi"], "is an input, which -o would overwrite"),
        (&["CCO", "--json", "-o", "-"], "--json already writes to stdout"),
    ] {
        let ran = folder.drift(&[&["export-grammar"], arguments].concat());
        assert_eq!((ran.code, ran.stdout.len()), (Some(2), 0), "{}", ran.stderr);
        let error: Vec<&str> = ran.stderr.lines().filter(|line| !line.starts_with("note")).collect();
        assert!(error.len() == 1 && error[0].contains(said), "{}", ran.stderr);
    }
    assert_eq!(folder.listing().len(), 2);
}
