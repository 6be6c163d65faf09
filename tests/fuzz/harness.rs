//! How a target is run: cases by number in a child process, watched from outside.
//!
//! A case is what seed, target and number make, so one case can be run again alone. The child writes the number of a case
//! down before it runs it. So a case that ends the process, by an abort or an overflowed stack, has a number too, and
//! the parent goes on behind it. The child runs under `ulimit -v`; a thread of it ends it where a case takes too long.
//!
//! It cannot see memory that is reserved by the system and never counted by the allocator, nor time that a machine under
//! load adds: limits are generous.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::scene::Scene;

/// What a case came to; the error is the invariant that it broke.
pub(crate) type Verdict = Result<Outcome, String>;

/// How a case may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was read, or the program ended with 0.
    Accepted,
    /// It was refused as it should be.
    Refused,
}

/// Something to throw cases at.
pub(crate) struct Target {
    /// Its name: that of the test, and the beginning of the names of kept files.
    pub name: &'static str,
    /// The name of the file that holds a case; messages must name it.
    pub file: &'static str,
    /// What cases are made from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Makes a case.
    pub make: fn(&mut ChaCha8Rng, &[Vec<u8>]) -> Vec<u8>,
    /// Files that a case needs beside its own, made once.
    pub prepare: fn(&Scene),
    /// Runs a case and checks what it came to.
    pub check: fn(&Scene, &[u8]) -> Verdict,
    /// How many cases are run where nothing is asked for.
    pub cases: u64,
    /// The most memory that a case may take in this process, in MiB.
    pub memory_mib: u64,
    /// The longest that a case may take, in seconds; far longer than any does.
    pub seconds: u64,
}

impl Target {
    /// What most targets share.
    pub(crate) const BASE: Target = Target {
        name: "",
        file: "case",
        seeds: Vec::new,
        make: |_, _| Vec::new(),
        prepare: |_| (),
        check: |_, _| Ok(Outcome::Accepted),
        cases: 500,
        memory_mib: 64,
        seconds: 10,
    };

    /// The case of a number.
    fn case(&self, seed: u64, number: u64, seeds: &[Vec<u8>]) -> Vec<u8> {
        let key = [&seed.to_le_bytes()[..], self.name.as_bytes(), &number.to_le_bytes()];
        (self.make)(&mut ChaCha8Rng::seed_from_u64(drift::io::hash_number(&key)), seeds)
    }
}

/// What the environment asks for.
struct Settings {
    /// `DRIFT_FUZZ_SEED`.
    seed: u64,
    /// `DRIFT_FUZZ_CASES`, for every target.
    cases: Option<u64>,
    /// `DRIFT_FUZZ_SECONDS`, for every target, however many cases that is.
    seconds: Option<u64>,
    /// `DRIFT_FUZZ_CASE`: this one alone.
    case: Option<u64>,
}

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

impl Settings {
    fn read() -> Self {
        Settings {
            seed: number("DRIFT_FUZZ_SEED").unwrap_or(1),
            cases: number("DRIFT_FUZZ_CASES"),
            seconds: number("DRIFT_FUZZ_SECONDS"),
            case: number("DRIFT_FUZZ_CASE"),
        }
    }

    /// The numbers of the cases of a target, and the seconds after which there are no more.
    fn cases(&self, target: &Target) -> (u64, u64, u64) {
        match (self.case, self.seconds, self.cases) {
            (Some(case), ..) => (case, case + 1, u64::MAX),
            (None, Some(seconds), most) => (0, most.unwrap_or(u64::MAX), seconds),
            (None, None, most) => (0, most.unwrap_or(target.cases), u64::MAX),
        }
    }
}

/// The seed of this run, for loops that are no targets.
pub(crate) fn seed() -> u64 {
    Settings::read().seed
}

/// How many rounds a loop that is no target makes: `usual`, or what the environment asks for.
pub(crate) fn rounds(usual: u64) -> impl Iterator<Item = u64> {
    let settings = Settings::read();
    let begun = Instant::now();
    let (from, until, seconds) = match (settings.case, settings.seconds, settings.cases) {
        (Some(case), ..) => (case, case + 1, u64::MAX),
        (None, Some(seconds), _) => (0, u64::MAX, seconds),
        (None, None, cases) => (0, cases.map_or(usual, |cases| usual.max(cases / 100)), u64::MAX),
    };
    (from..until).take_while(move |_| begun.elapsed().as_secs() < seconds)
}

/// The order that a child gets, in its environment.
const ORDER: &str = "DRIFT_FUZZ_ORDER";

/// The most address space of a child, in KiB: 8 GiB.
const CHILD_KIB: u64 = 8 << 20;

/// A child that dies more often than this in one run is not started again.
const MOST_DEATHS: usize = 200;

/// The largest case that is kept.
const MOST_KEPT_BYTES: usize = 16 << 10;

/// A broken invariant: the case, or the kept file, and what it broke.
type Failure = (u64, String);

/// What the cases of a target came to.
#[derive(Default)]
struct Tally {
    cases: u64,
    accepted: u64,
    refused: u64,
    peak_kib: u64,
    failures: Vec<Failure>,
}

/// Runs a target, kept cases first; panics with a list if an invariant was broken.
pub(crate) fn fuzz(target: &Target) {
    let settings = Settings::read();
    let kept = kept_files(target);
    let replayed = match settings.case {
        Some(_) => Tally::default(),
        None => run(target, "kept", (0, kept.len() as u64, u64::MAX), &settings),
    };
    let tally = run(target, "made", settings.cases(target), &settings);
    let line = format!(
        "{}: {} cases, {} accepted, {} refused, {} failed, at most {} MiB, seed {}, {} kept",
        target.name,
        tally.cases,
        tally.accepted,
        tally.refused,
        tally.failures.len() + replayed.failures.len(),
        tally.peak_kib.div_ceil(1 << 10),
        settings.seed,
        kept.len()
    );
    said(&line);
    let mut lines: Vec<String> = Vec::new();
    for (index, what) in &replayed.failures {
        lines.push(format!("{}: {what}", kept[*index as usize].display()));
    }
    lines.extend(classes(target, &settings, &tally.failures));
    assert!(lines.is_empty(), "{} of {}:\n{}", lines.len(), target.name, lines.join("\n"));
}

/// Says something past the capture of the tests, so that it is seen where they pass, too.
#[allow(clippy::disallowed_methods, reason = "the macros are captured")]
pub(crate) fn said(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// One line for each kind of failure, of which a small case is kept.
fn classes(target: &Target, settings: &Settings, failures: &[Failure]) -> Vec<String> {
    let mut classes: BTreeMap<String, Vec<&Failure>> = BTreeMap::new();
    for failure in failures {
        let class = class(&failure.1);
        classes.entry(class).or_default().push(failure);
    }
    let seeds = if classes.is_empty() { Vec::new() } else { (target.seeds)() };
    let line = |same: Vec<&Failure>| {
        let bytes = |case: u64| target.case(settings.seed, case, &seeds);
        // The smallest of some.
        let smallest = same.iter().take(100).map(|(case, _)| bytes(*case)).min_by_key(Vec::len);
        let kept = smallest.filter(|case| case.len() <= MOST_KEPT_BYTES).and_then(|case| keep(target, &case));
        let (case, what) = same[0];
        let kept = kept.map_or_else(|| "too large to keep".to_owned(), |path| path.display().to_string());
        format!("{} times, first case {case}: {what} ({kept})", same.len())
    };
    classes.into_values().map(line).collect()
}

/// The kind of a failure: what stands before the bar, without numbers.
pub(crate) fn class(what: &str) -> String {
    let kind = what.split(" | ").next().unwrap_or(what);
    let plain = |c: char| if c.is_ascii_digit() { '#' } else { c };
    let mut class: String = kind.chars().map(plain).take(120).collect();
    while class.contains("##") {
        class = class.replace("##", "#");
    }
    class
}

/// Where failing cases are kept, to be replayed.
fn kept_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/kept")
}

fn keep(target: &Target, bytes: &[u8]) -> Option<PathBuf> {
    let hash = drift::io::hash_number(&[bytes]);
    let path = kept_folder().join(format!("{}-{:08x}", target.name, hash as u32));
    fs::create_dir_all(kept_folder()).and_then(|()| fs::write(&path, bytes)).ok()?;
    Some(path)
}

/// The kept cases of a target, by name.
fn kept_files(target: &Target) -> Vec<PathBuf> {
    let entries = fs::read_dir(kept_folder()).into_iter().flatten().map(|entry| entry.unwrap().path());
    let is_own = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.rsplit_once('-').is_some_and(|(name, _)| name == target.name)
    };
    let mut files: Vec<PathBuf> = entries.filter(is_own).collect();
    files.sort();
    files
}

/// Runs cases in children until all are run.
fn run(target: &Target, kind: &str, cases: (u64, u64, u64), settings: &Settings) -> Tally {
    let (mut from, until, seconds) = cases;
    let mut tally = Tally::default();
    let begun = Instant::now();
    let mut deaths = 0;
    while from < until && begun.elapsed().as_secs() < seconds && deaths < MOST_DEATHS {
        let folder = tempfile::Builder::new().prefix("fz").tempdir_in(memory_folder()).unwrap();
        let left = seconds.saturating_sub(begun.elapsed().as_secs());
        let order = format!("{} {kind} {from} {until} {left} {}", target.name, settings.seed);
        let ended = child(folder.path(), &order);
        let Some(state) = State::read(folder.path()) else {
            assert!(ended.is_none(), "{}: the child never began: {}", target.name, ended.unwrap_or_default());
            break;
        };
        tally.cases += state.case + 1 - from;
        tally.accepted += state.accepted;
        tally.refused += state.refused;
        tally.peak_kib = tally.peak_kib.max(state.peak_kib);
        tally.failures.extend(failures(folder.path()));
        from = state.case + 1;
        if let Some(how) = ended {
            deaths += 1;
            if tally.failures.last().is_none_or(|(case, _)| *case != state.case) {
                tally.failures.push((state.case, how));
            }
        }
    }
    tally
}

/// A folder in memory where the machine has one, so that a case costs no disk.
pub(crate) fn memory_folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Runs this binary as a child with an order; how it died, if it did.
fn child(folder: &Path, order: &str) -> Option<String> {
    for name in ["here", "tmp"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let log = File::create(folder.join("log")).unwrap();
    let script = format!("ulimit -v {CHILD_KIB}; exec \"$0\" \"$@\"");
    let status = Command::new("sh")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(ORDER, order)
        .env("TMPDIR", folder.join("tmp"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .current_dir(folder)
        .status()
        .unwrap();
    if status.success() {
        return None;
    }
    let log = fs::read(folder.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let said: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("exit code {code:?}"),
    };
    Some(format!("died: {how}: {}", said.join("; ")))
}

/// How far a child is, in a file of its folder that is written over before every case.
struct State {
    case: u64,
    accepted: u64,
    refused: u64,
    /// The most memory that a case took.
    peak_kib: u64,
}

impl State {
    fn write(&self, file: &File) {
        let text = format!("{:20} {:20} {:20} {:20}", self.case, self.accepted, self.refused, self.peak_kib);
        file.write_all_at(text.as_bytes(), 0).unwrap();
    }

    fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("state")).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<u64>().unwrap());
        let [case, accepted, refused, peak_kib] = [(); 4].map(|()| numbers.next());
        Some(State { case: case?, accepted: accepted?, refused: refused?, peak_kib: peak_kib? })
    }
}

/// The failures that a child wrote down: a line for each.
fn failures(folder: &Path) -> Vec<Failure> {
    let text = fs::read(folder.join("failures")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let failure = |line: &str| {
        let (case, what) = line.split_once(' ')?;
        Some((case.parse().ok()?, what.to_owned()))
    };
    text.lines().filter_map(failure).collect()
}

/// What a panic said, and where; kept by the hook.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// When the case at hand began, in milliseconds since the child did; 0 between two cases.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Carries out the order of the parent, if there is one.
pub(crate) fn obey(targets: &[Target]) {
    let Ok(order) = std::env::var(ORDER) else { return };
    let words: Vec<&str> = order.split(' ').collect();
    let [name, kind, from, until, seconds, seed] = words[..] else { panic!("{order}") };
    let [from, until, seconds, seed] = [from, until, seconds, seed].map(|word| word.parse::<u64>().unwrap());
    let target = targets.iter().find(|target| target.name == name).unwrap();
    let folder = std::env::current_dir().unwrap();
    std::env::set_current_dir(folder.join("here")).unwrap();
    std::panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap() = panic.to_string().replacen('\n', " | ", 1);
        eprintln!("{panic}");
    }));
    let log = File::create(folder.join("failures")).unwrap();
    let state_file = File::create(folder.join("state")).unwrap();
    let begun = Instant::now();
    watch(target.seconds, begun, folder.clone());
    let seeds = (target.seeds)();
    let kept = kept_files(target);
    let scene = Scene::new(&folder, target);
    let mut state = State { case: from, accepted: 0, refused: 0, peak_kib: 0 };
    for case in from..until {
        if begun.elapsed().as_secs() >= seconds {
            break;
        }
        state.case = case;
        state.write(&state_file);
        let bytes = match kind {
            "kept" => fs::read(&kept[case as usize]).unwrap(),
            _ => target.case(seed, case, &seeds),
        };
        BEGAN.store(begun.elapsed().as_millis() as u64 + 1, Ordering::SeqCst);
        let (outcome, taken) = judged(target, &scene, &bytes);
        state.peak_kib = state.peak_kib.max(taken >> 10);
        BEGAN.store(0, Ordering::SeqCst);
        match outcome {
            Ok(Outcome::Accepted) => state.accepted += 1,
            Ok(Outcome::Refused) => state.refused += 1,
            Err(what) => writeln!(&log, "{case} {}", one_line(&what)).unwrap(),
        }
    }
    state.write(&state_file);
}

/// Runs a case where panics are caught, and checks what it left and took; the verdict, and the bytes that it took at most.
fn judged(target: &Target, scene: &Scene, bytes: &[u8]) -> (Verdict, u64) {
    scene.put(bytes);
    let before = crate::MEMORY.current_usage();
    crate::MEMORY.reset_peak_usage();
    let run = std::panic::AssertUnwindSafe(|| (target.check)(scene, bytes));
    let outcome =
        std::panic::catch_unwind(run).map_err(|_| PANIC.lock().unwrap().clone()).and_then(|verdict| verdict);
    let taken = crate::MEMORY.peak_usage().saturating_sub(before) as u64;
    let left = scene.left(bytes);
    let is_bounded = if taken >> 20 > target.memory_mib {
        Err(format!("took too much memory | {} MiB, more than {}", taken >> 20, target.memory_mib))
    } else {
        Ok(())
    };
    (outcome.and_then(|outcome| is_bounded.and(left).map(|()| outcome)), taken)
}

/// Ends the process if a case takes longer than `seconds`.
fn watch(seconds: u64, begun: Instant, folder: PathBuf) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            let began = BEGAN.load(Ordering::SeqCst);
            if began > 0 && begun.elapsed().as_millis() as u64 > began + 1_000 * seconds {
                let case = State::read(&folder).map_or(0, |state| state.case);
                let log = fs::OpenOptions::new().append(true).open(folder.join("failures"));
                writeln!(log.unwrap(), "{case} hung: more than {seconds} s").unwrap();
                std::process::exit(98);
            }
        }
    });
}

/// A text on one line, not too long.
fn one_line(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).take(600).collect()
}
