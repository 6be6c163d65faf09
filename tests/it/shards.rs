//! Work that is cut into shards, killed, goes on, and is merged: the same bytes as of one process.

use drift::shard::{FILE, journal::Journal};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::support::{Folder, Ran, program, sized, words};

/// What every evaluation here does: as many molecules as there are shards at most.
const ORDER: &str = if cfg!(all_tests) {
    "eval --samples 9 --generations 2 --lp none,allowlist,automaton --quiet --likelihood"
} else {
    "eval --samples 5 --generations 2 --lp none,allowlist,automaton --quiet --likelihood"
};

fn eval(folder: &Folder, more: &[&str]) -> Ran {
    folder.drift(&[&words(ORDER), more].concat())
}

/// Runs all shards, and merges them into `merged`, `merged.jsonl` and `merged.csv`.
fn sharded(folder: &Folder, of: u32, more: &[&str]) {
    let folders: Vec<String> = (1..=of).map(|number| format!("shard{number}")).collect();
    // The order does not matter.
    for (at, name) in folders.iter().enumerate().rev() {
        let shard = format!("{}/{of}", at + 1);
        let ran = eval(folder, &[more, &["--shard", &shard, "-o", name]].concat()).good();
        assert!(ran.text().starts_with(&format!("shard {shard}: ")), "{}", ran.text());
    }
    merge(folder, &folders);
}

fn merge(folder: &Folder, shards: &[String]) {
    let shards: Vec<&str> = shards.iter().map(|name| &**name).collect();
    let to = ["-o", "merged", "--texts", "merged.jsonl", "--molecules", "merged.csv"];
    folder.drift(&[&["merge"], &shards[..], &to].concat()).good();
}

fn whole(folder: &Folder, more: &[&str]) {
    let to = ["-o", "whole", "--texts", "whole.jsonl", "--molecules", "whole.csv"];
    eval(folder, &[more, &to].concat()).good();
}

/// A record without what depends on the time and the place; docs/shards.md lists it.
fn record(folder: &Folder, name: &str) -> Value {
    let mut record: Value = serde_json::from_slice(&folder.read(&format!("{name}/record.json"))).unwrap();
    record["environment"] = Value::Null;
    // It says how fast runs were.
    record["advice"] = Value::Null;
    let each = |list: &mut Value, names: &[&str]| {
        for one in list.as_array_mut().unwrap() {
            names.iter().for_each(|name| one[name] = Value::Null);
        }
    };
    each(
        &mut record["runs"],
        &[
            "decode_steps",
            "tokens_per_second",
            "characters_per_second",
            "conformers_per_second",
            "cpu_seconds",
            "seconds",
            "peak_memory_bytes",
            "batch_seconds",
            "floor",
        ],
    );
    each(&mut record["comparisons"], &["speed_ratio", "speed"]);
    record
}

#[track_caller]
fn assert_same(folder: &Folder) {
    assert!(folder.read("whole.jsonl") == folder.read("merged.jsonl"));
    assert!(folder.read("whole.csv") == folder.read("merged.csv"));
    assert_eq!(record(folder, "whole"), record(folder, "merged"));
}

#[test]
fn shards_merge_to_what_one_run_writes() {
    let cases = [
        (4, &["--probabilities"][..]),
        (2, &["--resample", "2", "--lp", "automaton"]),
        (9, &["--batch", "3"]),
    ];
    for (of, more) in cases.into_iter().take(sized(3, 1)) {
        let folder = Folder::new();
        whole(&folder, more);
        sharded(&folder, of, more);
        assert_same(&folder);
        let merged: Value = serde_json::from_slice(&folder.read("merged/record.json")).unwrap();
        assert_eq!(merged["environment"]["shards"], json!(of));
        // Seconds and steps are added up.
        let steps = |name: &str| {
            let record: Value = serde_json::from_slice(&folder.read(&format!("{name}/record.json"))).unwrap();
            record["runs"][0]["decode_steps"].as_u64().unwrap()
        };
        assert!(steps("merged") >= steps("whole"));
        assert!(!folder.path().join("whole").join(FILE).exists());
    }
}

/// The lines of the journal in a folder.
fn kept(folder: &Folder, name: &str) -> usize {
    let journal = folder.path().join(name).join(FILE);
    std::fs::read(journal).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count()
}

/// Kills a run several times, at once and then when it has kept up to two more results in the folder `to`, and lets it finish at last;
/// how often it was not done before.
fn killed(folder: &Folder, arguments: &[&str], to: &str, random: &mut ChaCha8Rng) -> usize {
    let mut kills = 0;
    for time in 0..sized(10, 3) {
        let wanted = kept(folder, to) + if time == 0 { 0 } else { random.random_range(0..3) };
        let mut child = program().args(arguments).current_dir(folder.path()).spawn().unwrap();
        while kept(folder, to) < wanted && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        // SIGKILL.
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(program().args(arguments).current_dir(folder.path()).status().unwrap().success());
    kills
}

#[test]
fn what_is_killed_goes_on_to_the_same_bytes() {
    let folder = Folder::new();
    let mut random = ChaCha8Rng::seed_from_u64(20_261_122);
    let more = ["--probabilities", "--threads", "1"];
    whole(&folder, &more);
    let mut kills = 0;
    for shard in ["1/2", "2/2"] {
        let name = format!("shard{}", &shard[..1]);
        let arguments = [&words(ORDER)[..], &more, &["--shard", shard, "-o", &name]].concat();
        kills += killed(&folder, &arguments, &name, &mut random);
    }
    merge(&folder, &["shard1".to_owned(), "shard2".to_owned()]);
    assert_same(&folder);
    // Without shards: the first run of all writes the files.
    std::fs::rename(folder.path().join("merged"), folder.path().join("before")).unwrap();
    let to = ["-o", "merged", "--texts", "merged.jsonl", "--molecules", "merged.csv"];
    kills += killed(&folder, &[&words(ORDER)[..], &more, &to].concat(), "merged", &mut random);
    assert_same(&folder);
    assert!(!folder.path().join("merged").join(FILE).exists());
    // The first of each is killed at once.
    assert!(kills >= 3, "{kills}");
}

#[test]
fn a_line_that_was_cut_is_written_again() {
    let folder = Folder::new();
    whole(&folder, &[]);
    sharded(&folder, 2, &[]);
    let path = format!("shard2/{FILE}");
    let content = folder.read(&path);
    // In the middle of the last text.
    let cut = content.windows(6).rposition(|six| six == b"\"text\"").unwrap() + 20;
    folder.file(&path, &content[..cut]);
    let arguments = ["merge", "shard1", "shard2", "-o", "other"];
    let line = folder.drift(&arguments).refused();
    assert!(
        line.contains("shard2: contains shard 2/2, which is not finished; run its command again"),
        "{line}"
    );
    let ran = eval(&folder, &["--shard", "2/2", "-o", "shard2"]);
    assert!(ran.code == Some(0) && ran.stderr.starts_with("continues after "), "{}", ran.stderr);
    merge(&folder, &["shard1".to_owned(), "shard2".to_owned()]);
    assert_same(&folder);
    let mut damaged = folder.read(&path);
    damaged[400] ^= 1;
    folder.file(&path, damaged);
    for ran in [folder.drift(&arguments), eval(&folder, &["--shard", "2/2", "-o", "shard2"])] {
        let line = ran.refused();
        assert!(line.contains("is damaged: its checksum is wrong; delete the file"), "{line}");
    }
}

#[test]
fn what_cannot_be_merged_is_refused_in_one_line() {
    let folder = Folder::new();
    let order = ["eval", "--samples", "3", "--lp", "automaton", "--quiet"];
    let run = |more: &[&str]| folder.drift(&[&order, more].concat());
    run(&["--shard", "1/3", "-o", "a"]).good();
    run(&["--shard", "2/3", "-o", "b"]).good();
    run(&["--shard", "1/3", "-o", "again"]).good();
    run(&["--shard", "3/3", "--seed", "1", "-o", "seed"]).good();
    run(&["--shard", "3/3", "--preset", "greedy", "-o", "preset"]).good();
    run(&["--shard", "2/2", "-o", "two"]).good();
    run(&["-o", "whole"]).good();
    let model = format!("{}/eval/llama-like", env!("CARGO_MANIFEST_DIR"));
    run(&["--shard", "3/3", "--model", &model, "-o", "model"]).good();
    let before = folder.listing();
    let refused = |shards: &[&str]| folder.drift(&[&["merge", "-o", "out"], shards].concat()).refused();
    for (shards, part) in [
        (&["a", "b"][..], "the shards: shard 3 is missing, of 3; give their folders too, or --partial"),
        (&["a", "b", "again"], "again: contains shard 1/3, as a does; leave one of them out"),
        (
            &["a", "b", "seed"],
            "seed: belongs to other work than a: --seed is not given there, 1 here; leave it out",
        ),
        (&["a", "b", "preset"], "--preset is not given there, greedy here"),
        (&["a", "b", "model"], "--model is not given there"),
        (&["a", "b", "two"], "it is shard 2/2, not one of 3"),
        (
            &["a", "b", "whole"],
            "whole: contains no shard.jsonl; give the folders that shards were written to",
        ),
        (&["a", "nowhere"], "nowhere: contains no shard.jsonl"),
    ] {
        let line = refused(shards);
        assert!(line.contains(part), "{shards:?}: {line}");
    }
    // Of another drift: its results may be others.
    let manifest = String::from_utf8(folder.read(&format!("b/{FILE}"))).unwrap();
    let (first, rest) = manifest.split_once('\n').unwrap();
    let older = first[9..].replace("\"version\":\"", "\"version\":\"0.0.");
    folder.file(&format!("older/{FILE}"), format!("{:08x} {older}\n{rest}", crc(older.as_bytes())));
    assert!(refused(&["a", "older"]).contains("older: belongs to other work than a: drift is "));
    std::fs::remove_dir_all(folder.path().join("older")).unwrap();
    // The same folder for two, and for other work.
    run(&["--shard", "2/3", "-o", "a"]).refused_for("belongs to other work: it is shard 1/3, not shard 2/3");
    run(&["--shard", "1/3", "--seed", "7", "-o", "a"]).refused_for("--seed is not given there, 7 here");
    let (_lock, _) = Journal::open::<Value>(&folder.path().join("a").join(FILE)).unwrap();
    run(&["--shard", "1/3", "-o", "a"]).refused_for("is being written by another process");
    run(&["--shard", "1/4", "-o", "c"]).refused_for("--shard 1/4: there are only 3 molecules");
    for shard in ["5/4", "0/4", "1", "slurm"] {
        let ran = run(&["--shard", shard, "-o", "c"]);
        assert!(ran.code == Some(2) && ran.stderr.contains("invalid value"), "{}", ran.stderr);
    }
    assert_eq!(folder.listing(), before);
    // What there is, if that is wanted.
    folder.drift(&["merge", "--partial", "-o", "out", "a", "b"]).good();
    let record: Value = serde_json::from_slice(&folder.read("out/record.json")).unwrap();
    assert_eq!((&record["runs"][0]["samples"], &record["interrupted"]), (&json!(2), &json!(true)));
}

#[test]
fn shards_of_other_molecules_do_not_mix() {
    let folder = Folder::new();
    folder.file("some.smi", "CCO\nCC=O\nCN\n");
    let run = |shard: &str, to: &str| {
        folder.line(&format!("eval --smiles some.smi --lp automaton --quiet --shard {shard} -o {to}"))
    };
    run("1/2", "a").good();
    folder.file("some.smi", "CCO\nCC=O\nCO\n");
    run("2/2", "b").good();
    run("1/2", "a").refused_for(
        "the work: was started with other files of molecules, references, examples or placeholders",
    );
    folder
        .drift(&["merge", "a", "b", "-o", "out"])
        .refused_for("shard 2/2: was made from other files than the others of molecules");
    assert!(!folder.path().join("out").exists());
}

/// CRC-32, as in zip and gzip.
fn crc(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    !bytes.iter().fold(u32::MAX, byte)
}

#[test]
fn a_task_of_slurm_says_which_shard_it_is() {
    let folder = Folder::new();
    let mut command = program();
    command.args(["eval", "--samples", "3", "--lp", "automaton", "--quiet", "--shard", "slurm", "-o", "a"]);
    command.envs([
        ("SLURM_ARRAY_TASK_ID", "1"),
        ("SLURM_ARRAY_TASK_MIN", "0"),
        ("SLURM_ARRAY_TASK_COUNT", "3"),
    ]);
    let ran: Ran = command.current_dir(folder.path()).output().unwrap().into();
    assert_eq!(ran.good().text(), "shard 2/3: 1 text\n");
}

/// `drift slurm` on a machine without Slurm; tests/slurm has it on one with it.
#[test]
fn jobs_are_written_for_people_to_read() {
    let folder = Folder::new();
    let slurm = |more: &[&str]| {
        let begin =
            ["slurm", "eval", "--samples", "3", "--lp", "automaton", "--preset=top-p-0.8-t1.0", "--quiet"];
        let mut command = program();
        command.args(begin).args(more).env("PATH", "").current_dir(folder.path());
        Ran::from(command.output().unwrap())
    };
    for (more, part) in [
        (&["--array", "4", "-o", "out"][..], "--array 4: there are only 3 molecules; give fewer shards"),
        (&["--array", "3"], "-o: is missing"),
        (&["--array", "3", "-o", "-"], "-o: is missing"),
        (&["--array", "3", "-o", "out", "--shard", "1/3"], "--shard: each task of the array has its own"),
        (&["--array", "3", "-o", "out%", "--submit"], "cannot be written into a Slurm script"),
        (&["--array", "3", "-o", "out", "--submit"], "sbatch: cannot be run: "),
        (&["--array", "3", "-o", "out", "--model", "nowhere"], "nowhere"),
    ] {
        let ran = slurm(more);
        ran.refused_for(part);
        assert!(folder.listing().is_empty(), "{more:?}");
    }
    folder.drift(&["slurm", "status", "nowhere"]).refused_for("nowhere: contains no shards");
    let more =
        ["--array", "3", "--gres", "gpu:h100:1", "--time", "2:00:00", "--mem", "8G", "--sbatch", "exclusive"];
    let ran = slurm(&[&more[..], &["-o", "my out", "--texts", "all texts.jsonl"]].concat());
    assert!(ran.good().text().starts_with("wrote "));
    let read = |name: &str| String::from_utf8(folder.read(&format!("my out/{name}"))).unwrap();
    let array = read("array.sbatch");
    for line in [
        "array=1-3",
        "gres=gpu:h100:1",
        "time=2:00:00",
        "mem=8G",
        "exclusive",
        "requeue",
        "signal=B:USR1@120",
    ] {
        assert!(array.contains(&format!("\n#SBATCH --{line}\n")), "{line}: {array}");
    }
    assert!(
        array.contains(" eval --lp=automaton --preset=top-p-0.8-t1.0 --samples=3 --shard slurm --quiet -o '")
    );
    let merge = read("merge.sbatch");
    assert!(
        !merge.contains("gres") && merge.contains("mem=8G") && merge.contains("all texts.jsonl'\n"),
        "{merge}"
    );
    folder.drift(&["slurm", "status", "my out"]).refused_for("no shard has finished anything yet");
    // Both files do what Slurm would let them.
    for task in ["1", "2", "3"] {
        let variables =
            [("SLURM_ARRAY_TASK_ID", task), ("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "3")];
        let mut command = std::process::Command::new("bash");
        command.arg("my out/array.sbatch").envs(variables).current_dir(folder.path());
        assert!(command.status().unwrap().success());
        let progress = folder.drift(&["slurm", "status", "my out", "--json"]).good().json();
        let states: Vec<&str> =
            progress["shards"].as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
        assert_eq!(states.iter().filter(|state| **state == "done").count().to_string(), task);
    }
    let mut command = std::process::Command::new("bash");
    assert!(command.arg("my out/merge.sbatch").current_dir(folder.path()).status().unwrap().success());
    assert!(folder.path().join("my out/record.json").is_file());
    assert_eq!(folder.read("all texts.jsonl").iter().filter(|byte| **byte == b'\n').count(), 3);
}
