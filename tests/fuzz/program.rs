//! The program itself: absurd options of every verb, and damaged inputs of every verb. A run that goes on for long is not
//! wrong, but it must end when it is interrupted.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::corpus::{LINE, ROW, any};
use crate::documents::{SMILES, SMILES_WORDS, audited, records, tokenizers};
use crate::harness::{Outcome, Target, Verdict};
use crate::mutate::{binary, container, json, pick, text};
use crate::run::{PATIENCE, Run, arguments};
use crate::scene::Scene;

/// A command of each verb that takes a moment.
const COMMANDS: [&str; 10] = [
    "mine rows.jsonl -o ../out/store.h5",
    "fit --corpus rows.jsonl --tokenizer tokenizer.json --no-classes -o ../out/fits",
    "train-tokenizer --vocab-size 300 --range 1 --corpus rows.jsonl -o ../out/extended",
    TRAIN,
    "eval --model model --samples 1 --lp none --max-new-tokens 5 -o ../out/record",
    "extend-model --model model --tokenizer qwen-like-separate -o ../out/extended-model",
    "audit texts.jsonl",
    "compare record.json record.json",
    "inspect [C]<1.0000,2.0000,3.0000>",
    "completions bash",
];

/// Training of the smallest model.
pub(crate) const TRAIN: &str = "train-model --tokenizer qwen-like --arch qwen3 --steps 2 --hidden 8 --heads 2 --kv-heads 1 --head-dim 4 \
    --layers 1 --intermediate 8 --batch-tokens 64 --context 256 --corpus rows.jsonl -o ../out/model";

/// Values that fit nowhere.
const VALUES: [&str; 26] = [
    "4294967295",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "0",
    "-0",
    "1",
    "2",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1e-320",
    "",
    " ",
    "2147483647",
    "1000000000",
    "999999999999",
    "65536",
    "x",
    "é😀",
    "\u{1b}[31m",
    "a\tb",
    "1,2,3",
    "0.0,0.0,0.0",
    "all",
];

/// Inputs that are none.
const INPUTS: [&str; 14] = [
    "rows.jsonl",
    "model",
    "tokenizer.json",
    "texts.jsonl",
    "record.json",
    "smiles.txt",
    "none",
    ".",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "",
    "/proc/self/mem",
    "no\tne\u{202e}",
];

/// Outputs that cannot be, or can.
const OUTPUTS: [&str; 10] = [
    "../out/a",
    "../out/b",
    "../out/none/x",
    "../out",
    "/dev/full",
    "/dev/null",
    "/proc/x",
    "-",
    "",
    "../out/\u{1b}x",
];

/// An option of a verb, as `--help` names it.
struct Flag {
    name: String,
    /// `<N>`, `<FILE>`; none takes no value.
    value: Option<String>,
}

/// The options of each verb of [`COMMANDS`], read off its help, so that none is forgotten.
static FLAGS: LazyLock<Vec<Vec<Flag>>> =
    LazyLock::new(|| COMMANDS.iter().map(|command| flags(command)).collect());

fn flags(command: &str) -> Vec<Flag> {
    let verb = command.split(' ').next().unwrap();
    let help =
        std::process::Command::new(env!("CARGO_BIN_EXE_drift")).args([verb, "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let flag = |line: &str| {
        let at = line.find("--")?;
        let mut words = line[at..].split_ascii_whitespace();
        let name = words.next()?.trim_end_matches("...").to_owned();
        let value = words.next().filter(|word| word.starts_with('<')).map(str::to_owned);
        (name.len() > 2).then_some(Flag { name, value })
    };
    lines.filter_map(flag).collect()
}

/// A command with options that make no sense, an argument a line.
fn absurd(random: &mut ChaCha8Rng, _: &[Vec<u8>]) -> Vec<u8> {
    // Learning a tokenizer takes seconds.
    let mut verb = random.random_range(0..COMMANDS.len());
    if verb == 2 && random.random_bool(0.8) {
        verb = 3;
    }
    let mut words = arguments(COMMANDS[verb]);
    // Texts of `inspect` may begin with hyphens, so options come first.
    let mut rest = words.split_off(1);
    for _ in 0..*pick(random, &[1, 1, 1, 2, 3]) {
        let flag = pick(random, &FLAGS[verb]);
        if let Some(at) = rest.iter().position(|word| *word == flag.name || *word == flag.name[1..3]) {
            rest.drain(at..(at + 2).min(rest.len()));
        }
        words.push(flag.name.clone());
        let Some(value) = &flag.value else { continue };
        let is_output = ["--output", "--html", "--texts", "--trace"].contains(&&*flag.name);
        let is_input =
            ["INPUT", "TOKENIZER", "DIR", "FILE", "MODEL", "CORPUS"].iter().any(|kind| value.contains(kind));
        let value = match (is_output, is_input) {
            (true, _) => pick(random, &OUTPUTS),
            (_, true) => pick(random, &INPUTS),
            _ => pick(random, &VALUES),
        };
        words.push((*value).to_owned());
    }
    if random.random_bool(0.3) {
        words.push("--json".to_owned());
    }
    words.extend(rest);
    words.join("\n").into_bytes()
}

/// What the commands of the program read.
pub(crate) fn inputs(scene: &Scene) {
    scene.add("rows.jsonl", format!("{ROW}\n").repeat(3));
    scene.add("texts.jsonl", format!("{ROW}\n{{\"text\": \"{LINE}\"}}\n"));
    scene.add("smiles.txt", SMILES.join("\n"));
    scene.add("record.json", records().remove(0));
    scene.add("tokenizer.json", tokenizers().remove(0));
    let out = scene.here.join("../out");
    fs::create_dir_all(&out).unwrap();
    let ended = Run::new(&scene.here, &arguments(TRAIN)).end(4 * PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for name in [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "generation_config.json",
    ] {
        scene.add(&format!("model/{name}"), fs::read(out.join("model").join(name)).unwrap());
    }
}

/// Runs the program and checks its end and its outputs, which are then removed.
fn run(scene: &Scene, words: &[String], stdin: Option<PathBuf>) -> Verdict {
    let out = scene.here.join("../out");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).unwrap();
    let ended = Run { stdin, ..Run::new(&scene.here, words) }.end(PATIENCE);
    let outcome = ended.check(words);
    let left: Vec<PathBuf> = crate::scene::contents(&out).into_keys().collect();
    fs::remove_dir_all(&out).unwrap();
    let done = outcome?;
    let is_hidden = |path: &&PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(".drift-");
    if let Some(path) = left.iter().find(is_hidden) {
        return Err(format!("left a temporary file | {}", path.display()));
    }
    // Interrupted training and evaluation leave what they have, which is said.
    if !done && !ended.asked && !left.is_empty() {
        return Err(format!("left {} beside an error | {}", left[0].display(), ended.stderr));
    }
    Ok(if done { Outcome::Accepted } else { Outcome::Refused })
}

fn check_options(scene: &Scene, bytes: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(bytes);
    let words: Vec<String> = text.split('\n').map(str::to_owned).collect();
    run(scene, &words, None).map_err(|what| format!("{what} || drift {}", words.join(" ")))
}

/// How a verb takes an input, and of what kind that is.
const WAYS: [(&str, Kind); 16] = [
    ("mine input -o ../out/store.h5 --html ../out/page.html", Kind::Corpus),
    ("mine input --json --frame principal --decimals 2", Kind::Corpus),
    ("mine /dev/stdin", Kind::Corpus),
    ("fit --corpus input --tokenizer tokenizer.json --no-classes -o ../out/fits", Kind::Corpus),
    ("audit texts.jsonl --references input --json", Kind::Corpus),
    (
        "train-model --tokenizer qwen-like --arch llama --steps 1 --hidden 8 --heads 2 --kv-heads 1 --head-dim 4 --layers 1 \
      --intermediate 8 --batch-tokens 64 --corpus input -o ../out/model",
        Kind::Corpus,
    ),
    ("eval --model model --corpus input --samples 1 --lp none --max-new-tokens 5", Kind::Corpus),
    ("mine input", Kind::Container),
    ("audit input --json", Kind::Texts),
    ("audit input --dialect fixed", Kind::Texts),
    ("compare input record.json", Kind::Record),
    ("inspect --tokenizer input [C]<1,2,3>", Kind::Tokenizer),
    ("fit --corpus rows.jsonl --tokenizer input --no-classes -o ../out/fits", Kind::Tokenizer),
    ("eval --model model --smiles input --samples 3 --lp none --max-new-tokens 5 --json", Kind::Smiles),
    ("inspect", Kind::Smiles),
    ("eval --model model --placeholder input --samples 1 --lp allowlist --max-new-tokens 5", Kind::Fitted),
];

/// What an input holds.
#[derive(Clone, Copy)]
enum Kind {
    Corpus,
    Container,
    Texts,
    Record,
    Tokenizer,
    Smiles,
    Fitted,
}

/// Seeds of each kind, made once.
static SEEDS: LazyLock<[Vec<Vec<u8>>; 5]> = LazyLock::new(|| {
    let fitted = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/placeholders/qwen-like.json")).unwrap();
    [any(), audited(), records(), tokenizers(), vec![fitted]]
});

/// A way, as the first byte, and an input.
fn damaged(random: &mut ChaCha8Rng, _: &[Vec<u8>]) -> Vec<u8> {
    let way = random.random_range(0..WAYS.len());
    let [corpora, audited, records, tokenizers, fitted] = &*SEEDS;
    let input = match WAYS[way].1 {
        Kind::Corpus => binary(random, corpora, &["<", "\n", "$$$$\n"]),
        Kind::Container => container(random, corpora),
        Kind::Texts => json(random, audited, &[LINE]),
        Kind::Record => json(random, records, &[]),
        Kind::Tokenizer => json(random, tokenizers, &crate::documents::TOKENIZER_WORDS),
        Kind::Smiles => text(random, &[SMILES.join("\n").into_bytes()], &SMILES_WORDS),
        Kind::Fitted => json(random, fitted, &["\"<\"", "\"0,0,0\""]),
    };
    [vec![way as u8], input].concat()
}

fn check_inputs(scene: &Scene, bytes: &[u8]) -> Verdict {
    let Some((way, input)) = bytes.split_first() else { return Ok(Outcome::Refused) };
    let (command, _) = WAYS[*way as usize % WAYS.len()];
    let path = scene.here.join("input");
    fs::write(&path, input).unwrap();
    let stdin = ["mine /dev/stdin", "inspect"].contains(&command).then(|| path.clone());
    let outcome = run(scene, &arguments(command), stdin);
    let unchanged = fs::read(&path).is_ok_and(|content| content == input);
    fs::remove_file(&path).unwrap();
    let outcome = outcome.map_err(|what| format!("{what} || drift {command}"))?;
    if unchanged { Ok(outcome) } else { Err(format!("the input was changed | drift {command}")) }
}

/// The targets of this file. They run the program, so memory is bounded by its limit.
pub(crate) fn targets() -> Vec<Target> {
    let base = Target { prepare: inputs, cases: 60, seconds: 60, ..Target::BASE };
    vec![
        Target { name: "options", make: absurd, check: check_options, ..base },
        Target { name: "inputs", make: damaged, check: check_inputs, ..base },
    ]
}
