//! What ends a run from outside, at random moments: signals, full disks, folders that take no file, readers that stop
//! listening, a second writer. An output is then the old one or the new one, whole; nothing lies beside it; training that goes
//! on ends in the same bytes.
//!
//! A moment is a random share of the time that a run takes, so what it hits differs by machine; the invariants do not. A full
//! disk is a limit of file size. It cannot see what a power failure leaves.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drift::shard::FILE;
use drift::shard::journal::pieces;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::corpus::{LINE, ROW};
use crate::documents::{SMILES, records, tokenizers};
use crate::harness::{class, memory_folder, rounds, said, seed};
use crate::mutate::pick;
use crate::program::TRAIN;
use crate::run::{Ended, PATIENCE, Run, arguments, signal, wait};
use crate::scene::contents;

/// Commands that write, of a moment each; `out` is the folder of all they write.
const WRITERS: [&str; 6] = [
    "mine rows.jsonl -o out/store.h5 --html out/page.html",
    "fit --corpus rows.jsonl --tokenizer tokenizer.json --no-classes -o out",
    "eval --model model --smiles smiles.txt --samples 12 --lp none,automaton --max-new-tokens 40 -o out --texts out/texts.jsonl --trace out/trace.json",
    "train-model --tokenizer qwen-like --arch qwen3 --steps 60 --hidden 8 --heads 2 --kv-heads 1 --head-dim 4 --layers 1 \
     --intermediate 8 --batch-tokens 64 --context 256 --save-every 7 --corpus rows.jsonl -o out",
    "extend-model --model model --tokenizer qwen-like-separate -o out",
    "train-tokenizer --vocab-size 300 --range 1 --corpus rows.jsonl -o out",
];

/// Outputs that hold dates and times, so that two runs differ in them.
const DATED: [&str; 5] = ["record.json", "eval.html", "trace.json", "recipe.json", "MODEL_CARD.md"];

/// The files of a folder by name.
type Files = BTreeMap<String, Vec<u8>>;

/// A folder to work in, with `here` and `tmp`.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// With inputs; the rows differ by `variant`, so that outputs do.
    fn new(variant: usize) -> Self {
        let folder = tempfile::Builder::new().prefix("fzf").tempdir_in(memory_folder()).unwrap();
        let place = Place { folder };
        for name in ["here/out", "here/model", "tmp", "log"] {
            fs::create_dir_all(place.at(name)).unwrap();
        }
        let rows: Vec<String> =
            (0..400).map(|n| ROW.replace("1.0000", &format!("{}.{:04}", n % 9, n * (3 + variant)))).collect();
        place.put("rows.jsonl", rows.join("\n"));
        place.put("texts.jsonl", format!("{LINE}\n"));
        place.put("smiles.txt", SMILES[variant..].join("\n"));
        place.put("record.json", records().remove(0));
        place.put("tokenizer.json", tokenizers().remove(0));
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn here(&self) -> PathBuf {
        self.at("here")
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.here().join(name), content).unwrap();
    }

    /// Puts a small model beside the inputs.
    fn with_model(self) -> Self {
        let words = arguments(&TRAIN.replace("../out/model", "model"));
        let ended = Run::new(&self.here(), &words).end(4 * PATIENCE);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self
    }

    fn outputs(&self) -> Files {
        let out = self.here().join("out");
        let name = |path: &Path| path.strip_prefix(&out).unwrap().to_string_lossy().into_owned();
        contents(&out).into_iter().map(|(path, content)| (name(&path), content)).collect()
    }

    /// Puts outputs of another run in the place of what is there.
    fn reset(&self, outputs: &Files) {
        for folder in ["here/out", "tmp"] {
            fs::remove_dir_all(self.at(folder)).unwrap();
            fs::create_dir_all(self.at(folder)).unwrap();
        }
        for (name, content) in outputs {
            self.put(&format!("out/{name}"), content);
        }
    }

    /// Runs a command to its end.
    fn finish(&self, command: &str) -> (Ended, Duration) {
        let begun = Instant::now();
        let ended = Run::new(&self.here(), &arguments(command)).end(20 * PATIENCE);
        (ended, begun.elapsed())
    }
}

/// A command with the outputs of two runs that differ, and how long one takes.
struct Writer {
    command: &'static str,
    place: Place,
    old: Files,
    new: Files,
    takes: Duration,
}

impl Writer {
    fn new(command: &'static str) -> Self {
        let other = Place::new(1).with_model();
        assert_eq!(other.finish(command).0.code, Some(0), "{command}");
        let place = Place::new(0).with_model();
        let (ended, takes) = place.finish(command);
        assert_eq!(ended.code, Some(0), "{command}: {}", ended.stderr);
        let new = place.outputs();
        Writer { command, old: other.outputs(), new, place, takes }
    }

    /// Every output is the old or the new one; which of them, where that can be told.
    fn check_whole(&self, is_killed: bool) -> Result<(), String> {
        for (name, content) in self.place.outputs() {
            let is_temporary = name.starts_with(".drift-");
            if is_temporary && is_killed {
                continue;
            }
            if name == FILE {
                // Whole lines, but for the last.
                let path = self.place.at("here/out").join(FILE);
                pieces::<serde_json::Value>(&path).map_err(|error| error.to_string())?;
                continue;
            }
            let known = [&self.old, &self.new].iter().any(|files| files.get(&name) == Some(&content));
            let of_training = name == "training.safetensors" || self.command.starts_with("train-model");
            let may_differ = known || of_training || DATED.contains(&&*name) || self.is_part(&name, &content);
            if !may_differ || !is_whole(&name, &content) {
                return Err(format!("{name} is neither the old nor the new one, {} bytes", content.len()));
            }
        }
        if let Some(name) = self.old.keys().find(|name| !self.place.at("here/out").join(name).exists()) {
            return Err(format!("the old {name} is gone"));
        }
        if !is_killed && !contents(&self.place.at("tmp")).is_empty() {
            return Err("left something in TMPDIR".to_owned());
        }
        Ok(())
    }

    /// Where a journal is left, the same command goes on to the new bytes.
    fn check_goes_on(&self) -> Result<(), String> {
        if !self.place.at("here/out").join(FILE).exists() {
            return Ok(());
        }
        let ended = self.place.finish(self.command).0;
        if ended.code != Some(0) {
            return Err(format!("does not go on: {:?} | {}", ended.code, ended.stderr));
        }
        let outputs = self.place.outputs();
        let differs =
            |(name, new): &(&String, &Vec<u8>)| !DATED.contains(&&***name) && outputs.get(*name) != Some(new);
        match self.new.iter().find(differs) {
            Some((name, _)) => Err(format!("goes on to another {name}")),
            None if outputs.contains_key(FILE) => Err("leaves its journal".to_owned()),
            None => Ok(()),
        }
    }

    /// Whether these are some of the lines of the new file: an evaluation that is interrupted writes the texts that it has.
    fn is_part(&self, name: &str, content: &[u8]) -> bool {
        let lines =
            |content: &[u8]| -> Vec<Vec<u8>> { content.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect() };
        let (Some(whole), Some(content)) = (self.new.get(name), content.strip_suffix(b"\n")) else {
            return false;
        };
        let whole = lines(whole);
        name == "texts.jsonl" && lines(content).iter().all(|line| !line.is_empty() && whole.contains(line))
    }

    /// Not one output is new.
    fn check_old(&self) -> Result<(), String> {
        let outputs = self.place.outputs();
        let changed: Vec<&String> = outputs
            .iter()
            .filter(|(name, content)| *name != FILE && self.old.get(*name) != Some(content))
            .map(|(name, _)| name)
            .collect();
        let is_allowed = self.command.starts_with("train-model");
        if changed.is_empty() || is_allowed { Ok(()) } else { Err(format!("an error, and {changed:?} new")) }
    }
}

/// Whether the end of a file is there.
fn is_whole(name: &str, content: &[u8]) -> bool {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "json" => serde_json::from_slice::<serde_json::Value>(content).is_ok(),
        "html" => content.trim_ascii_end().ends_with(b"</html>"),
        "safetensors" => safetensors::SafeTensors::deserialize(content).is_ok(),
        "jsonl" => content.ends_with(b"\n"),
        _ => true,
    }
}

/// The random stream of a round.
fn stream(what: &str, round: u64) -> ChaCha8Rng {
    let key = [&seed().to_le_bytes()[..], what.as_bytes(), &round.to_le_bytes()];
    ChaCha8Rng::seed_from_u64(drift::io::hash_number(&key))
}

/// Runs rounds of a fault on every writer, and lists what broke.
fn each_writer(what: &str, usual: u64, fault: impl Fn(&Writer, &mut ChaCha8Rng) -> Result<(), String>) {
    let writers: [LazyCell<Writer, _>; WRITERS.len()] =
        std::array::from_fn(|at| LazyCell::new(move || Writer::new(WRITERS[at])));
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let mut count = 0;
    for round in rounds(usual) {
        let mut random = stream(what, round);
        // What takes seconds comes seldom.
        let most = if round % 20 == 19 { writers.len() } else { writers.len() - 1 };
        let writer = &*writers[random.random_range(0..most)];
        writer.place.reset(&writer.old);
        count += 1;
        if let Err(why) = fault(writer, &mut random) {
            let verb = writer.command.split(' ').next().unwrap();
            let class = format!("{verb}: {}", class(&why));
            failures.entry(class).or_insert_with(|| format!("round {round}: {verb}: {why}"));
        }
    }
    said(&format!("{what}: {count} rounds, {} kinds of failure, seed {}", failures.len(), seed()));
    let lines: Vec<String> = failures.into_values().collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

/// Interrupts a run at a random moment.
fn interrupt(writer: &Writer, random: &mut ChaCha8Rng) -> Result<(), String> {
    let name = *pick(random, &["KILL", "TERM", "INT", "HUP"]);
    let moment = writer.takes.mul_f64(random.random_range(0.0..1.1));
    let (here, tmp) = (writer.place.here(), writer.place.at("tmp"));
    let words = arguments(writer.command);
    let mut child = Run { tmp: Some(&tmp), ..Run::new(&here, &words) }.start(&writer.place.at("log"));
    let ended = wait(&mut child, moment).is_some();
    signal(&child, name);
    let run = Ended::of(&mut child, &writer.place.at("log"), true);
    let is_killed = name == "KILL" && run.code.is_none();
    // Before the program has begun, a signal ends it.
    let was_early = run.code.is_none() && run.stderr.is_empty() && !run.stuck;
    if !is_killed && !was_early {
        run.check(&words).map_err(|why| format!("{name}: {why}"))?;
        if run.code == Some(2) || ended && run.code != Some(0) {
            return Err(format!("{name}: exit code {:?} | {}", run.code, run.stderr));
        }
    }
    writer.check_whole(is_killed || was_early).map_err(|why| format!("{name}: {why}"))?;
    let keeps_what_it_has = writer.command.starts_with("eval");
    if run.code == Some(130) && !keeps_what_it_has {
        writer.check_old().map_err(|why| format!("{name}: {why}"))?;
    }
    writer.check_goes_on().map_err(|why| format!("{name}: {why}"))
}

#[test]
fn signals_at_random_moments() {
    each_writer("signals", 30, interrupt);
}

/// Lets the disk be full from some size on.
fn fill(writer: &Writer, random: &mut ChaCha8Rng) -> Result<(), String> {
    let largest = writer.new.values().map(Vec::len).max().unwrap_or(0) as u64 / 512;
    let blocks = random.random_range(0..=largest + 1);
    let (here, tmp) = (writer.place.here(), writer.place.at("tmp"));
    let words = arguments(writer.command);
    let run = Run { tmp: Some(&tmp), blocks: Some(blocks), ..Run::new(&here, &words) }.end(20 * PATIENCE);
    let done = match run.check(&words) {
        // Nothing can be said where not a byte can be written.
        Err(_) if blocks == 0 && run.code == Some(2) => false,
        outcome => outcome.map_err(|why| format!("full disk: {why}"))?,
    };
    writer.check_whole(false).map_err(|why| format!("full disk: {why} | {}", run.stderr))?;
    if done {
        return Ok(());
    }
    writer.check_old().map_err(|why| format!("full disk: {why} | {}", run.stderr))?;
    writer.check_goes_on().map_err(|why| format!("full disk: {why}"))
}

#[test]
fn full_disks() {
    each_writer("full disks", if cfg!(all_tests) { 25 } else { 12 }, fill);
}

/// Two runs write one output at once.
fn race(writer: &Writer, random: &mut ChaCha8Rng) -> Result<(), String> {
    let (here, tmp) = (writer.place.here(), writer.place.at("tmp"));
    let words = arguments(writer.command);
    let logs = [writer.place.at("log"), writer.place.at("log2")];
    fs::create_dir_all(&logs[1]).unwrap();
    let run = Run { tmp: Some(&tmp), ..Run::new(&here, &words) };
    let mut first = run.start(&logs[0]);
    std::thread::sleep(writer.takes.mul_f64(random.random_range(0.0..0.3)));
    let mut second = run.start(&logs[1]);
    for (child, log) in [(&mut first, &logs[0]), (&mut second, &logs[1])] {
        let _ = wait(child, 40 * PATIENCE);
        let ended = Ended::of(child, log, false);
        ended.check(&words).map_err(|why| format!("two writers: {why}"))?;
    }
    writer.check_whole(false).map_err(|why| format!("two writers: {why}"))
}

#[test]
fn two_writers_of_one_output() {
    each_writer("two writers", 6, race);
}

/// Training that was interrupted, however and however often, ends in the bytes of training that was not.
#[test]
fn training_goes_on_to_the_same_bytes() {
    let writer = Writer::new(WRITERS[3]);
    let mut failures = Vec::new();
    let mut interruptions = 0;
    for round in rounds(4) {
        let mut random = stream("resume", round);
        writer.place.reset(&Files::new());
        for _ in 0..random.random_range(1..4) {
            interruptions += 1;
            let name = *pick(&mut random, &["KILL", "TERM", "INT"]);
            let words = resumed(&writer);
            let here = writer.place.here();
            let mut child = Run::new(&here, &words).start(&writer.place.at("log"));
            let _ = wait(&mut child, writer.takes.mul_f64(random.random_range(0.0..1.0)));
            signal(&child, name);
            let _ = Ended::of(&mut child, &writer.place.at("log"), true);
        }
        let here = writer.place.here();
        let words = resumed(&writer);
        let ended = Run::new(&here, &words).end(20 * PATIENCE);
        if ended.code != Some(0) {
            failures.push(format!("round {round}: exit code {:?}: {}", ended.code, ended.stderr));
            continue;
        }
        let outputs = writer.place.outputs();
        for (name, content) in &writer.new {
            if outputs.get(name) != Some(content) {
                failures.push(format!("round {round}: {name} differs"));
            }
        }
    }
    said(&format!("resume: {interruptions} interruptions, {} failures, seed {}", failures.len(), seed()));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The command of training, going on where there is a state.
fn resumed(writer: &Writer) -> Vec<String> {
    let mut words = arguments(writer.command);
    if writer.place.here().join("out/training.safetensors").exists() {
        words.push("--resume".to_owned());
    }
    words
}

/// A device that is full, or a reader that has gone, behind every verb's stdout.
#[test]
fn stdout_that_takes_nothing() {
    let place = Place::new(0).with_model();
    let here = place.here();
    let mut wrong = Vec::new();
    for command in [
        "mine rows.jsonl",
        "mine rows.jsonl --json",
        "mine rows.jsonl -o -",
        "fit --corpus rows.jsonl --tokenizer tokenizer.json --no-classes",
        "eval --model model --smiles smiles.txt --samples 1 --lp none --max-new-tokens 5",
        "eval --model model --smiles smiles.txt --samples 1 --lp none --max-new-tokens 5 --texts -",
        "audit texts.jsonl",
        "compare record.json record.json",
        "inspect [C]<1,2,3>",
        "completions bash",
        "--help",
        "mine --help",
        "--version",
    ] {
        let words = arguments(command);
        let full = Run { stdout: Some("/dev/full"), ..Run::new(&here, &words) }.end(20 * PATIENCE);
        if full.code != Some(2) {
            wrong.push(format!("drift {command} >/dev/full: exit code {:?}: {}", full.code, full.stderr));
        } else if let Err(why) = full.check(&words) {
            wrong.push(format!("drift {command} >/dev/full: {why}"));
        }
        if let Err(why) = closed(&here, &words) {
            wrong.push(format!("drift {command} | head -c 0: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A reader that closes the pipe at once: success without a word.
fn closed(here: &Path, words: &[String]) -> Result<(), String> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_drift"));
    let output = command.args(words).current_dir(here).stdout(writer).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(0) && stderr.is_empty() {
        Ok(())
    } else {
        Err(format!("{}: {stderr}", output.status))
    }
}

/// Folders that take no file, even from root: refused before the work, with nothing left.
#[test]
fn folders_that_take_no_file() {
    let place = Place::new(0).with_model();
    let here = place.here();
    let before = contents(&here);
    let mut wrong = Vec::new();
    for writer in WRITERS {
        for folder in ["/proc/self", "rows.jsonl"] {
            let words = arguments(
                &writer.replace("out/", &format!("{folder}/")).replace("-o out", &format!("-o {folder}")),
            );
            let ended = Run::new(&here, &words).end(20 * PATIENCE);
            let verb = &words[0];
            match ended.check(&words) {
                Ok(false) if ended.code == Some(2) => {}
                Ok(_) => wrong.push(format!("{verb} into {folder}: exit code {:?}", ended.code)),
                Err(why) => wrong.push(format!("{verb} into {folder}: {why}")),
            }
            if contents(&here) != before {
                wrong.push(format!("{verb} into {folder} left something"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A pipe in the folder.
fn make_pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// An output that cannot be written is refused before any input is read: here the input never comes.
#[test]
fn outputs_are_looked_at_before_inputs() {
    let place = Place::new(0).with_model();
    let here = place.here();
    make_pipe(&here.join("pipe"));
    let mut wrong = Vec::new();
    for command in [
        "mine pipe -o none/store.h5",
        "mine pipe --html none/page.html",
        "fit --corpus pipe --tokenizer tokenizer.json --no-classes -o rows.jsonl",
        "train-tokenizer --vocab-size 300 --range 1 --corpus pipe -o rows.jsonl",
        "train-model --tokenizer qwen-like --arch qwen3 --corpus pipe -o rows.jsonl",
        "eval --model model --smiles pipe --lp none --texts none/texts.jsonl",
        "eval --model model --smiles pipe --lp none --trace none/trace.json",
        "eval --model model --corpus pipe --lp none -o rows.jsonl",
    ] {
        let ended = Run::new(&here, &arguments(command)).end(PATIENCE);
        if ended.asked || ended.code != Some(2) {
            let how = if ended.asked { "waits for the input" } else { "ends" };
            wrong.push(format!("drift {command} {how}: exit code {:?}: {}", ended.code, ended.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One path for two outputs would lose one of them.
#[test]
fn one_path_for_two_outputs() {
    let place = Place::new(0).with_model();
    let here = place.here();
    std::os::unix::fs::symlink("out", here.join("link")).unwrap();
    let mut wrong = Vec::new();
    let eval = "eval --model model --smiles smiles.txt --samples 1 --lp none --max-new-tokens 5";
    for command in [
        "mine rows.jsonl -o out/x --html out/x".to_owned(),
        "mine rows.jsonl -o out/x --html ./out/../out/x".to_owned(),
        "mine rows.jsonl -o out/x --html link/x".to_owned(),
        "mine rows.jsonl -o rows.jsonl".to_owned(),
        format!("{eval} --texts out/x --trace out/x"),
        format!("{eval} -o out --texts out/record.json"),
        format!("{eval} -o out --trace out/eval.html"),
        format!("{eval} --texts smiles.txt"),
    ] {
        let ended = Run::new(&here, &arguments(&command)).end(20 * PATIENCE);
        if ended.code != Some(2) {
            wrong.push(format!("drift {command}: exit code {:?}: {}", ended.code, ended.stderr));
        }
        place.reset(&Files::new());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Commands with the place of an input.
const READERS: [&str; 10] = [
    "mine INPUT",
    "fit --corpus INPUT --tokenizer tokenizer.json --no-classes",
    "audit INPUT",
    "audit texts.jsonl --references INPUT",
    "compare INPUT record.json",
    "compare record.json INPUT",
    "inspect --tokenizer INPUT C",
    "eval --model model --smiles INPUT --samples 1 --lp none",
    "eval --model model --corpus INPUT --samples 1 --lp none",
    "eval --model model --placeholder INPUT --samples 1 --lp allowlist",
];

/// Inputs without an end, of zeros and of one line: refused, or ended by the first interruption, in bounded memory.
#[test]
fn inputs_without_an_end() {
    let place = Place::new(0).with_model();
    make_pipe(&place.here().join("pipe"));
    let mut wrong = BTreeMap::new();
    for round in rounds(if cfg!(all_tests) { 8 } else { 5 }) {
        let mut random = stream("endless", round);
        let command = *pick(&mut random, &READERS);
        let line = *pick(&mut random, &["", "C", "[C]<1,2,3>", "{ \"a\": ["]);
        if let Err(why) = endless(&place.here(), command, line) {
            wrong.insert(format!("drift {command}, lines of `{line}`"), why);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Runs a command on an endless line, or on zeros if the line is empty.
fn endless(here: &Path, command: &str, line: &str) -> Result<(), String> {
    let mut source = std::process::Command::new("sh");
    source.args(["-c", "yes \"$0\" | tr -d '\\n' > pipe", line]).current_dir(here);
    let source = (!line.is_empty()).then(|| source.stderr(std::process::Stdio::null()).spawn().unwrap());
    let input = if line.is_empty() { "/dev/zero" } else { "pipe" };
    let words = arguments(&command.replace("INPUT", input));
    let ended = Run::new(here, &words).end(PATIENCE / 3);
    if let Some(mut source) = source {
        // A shell that still waits for a reader gets one, which goes; what it runs then ends, too.
        drop(fs::OpenOptions::new().read(true).write(true).open(here.join("pipe")));
        let _ = source.kill();
        let _ = source.wait();
    }
    match ended.check(&words)? {
        true => Err("was taken".to_owned()),
        false => Ok(()),
    }
}
