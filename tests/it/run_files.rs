//! No command writes over what it reads, nor into a folder that it reads: every output of every verb on every input, in folders and
//! through links.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::support::{Folder, Ran, drift, words};

/// A command line without outputs.
struct Reading {
    line: &'static str,
    /// The options of its outputs, each with the arguments that it needs besides.
    outputs: &'static [&'static str],
    /// The options that name an output folder, and a file that it gets.
    folders: &'static [(&'static str, &'static str)],
    /// The files that it reads.
    inputs: &'static [&'static str],
}

const SDF: &str = "in/sub/a.sdf";

const READING: [Reading; 15] = [
    Reading {
        line: "encode in --smiles names.smi --encoding bins.json --input-encoding bins.json",
        outputs: &["-o"],
        folders: &[],
        inputs: &[SDF, "in/linked.sdf", "names.smi", "bins.json"],
    },
    Reading {
        line: "mine in one.jsonl --smiles-of names.smi --encoding bins.json",
        outputs: &["-o", "--html"],
        folders: &[],
        inputs: &[SDF, "one.jsonl", "names.smi", "bins.json"],
    },
    Reading {
        line: "mine one.jsonl --against in --smiles-of names.smi",
        outputs: &["-o"],
        folders: &[],
        inputs: &[SDF, "one.jsonl", "names.smi"],
    },
    Reading {
        line: "fit --corpus in --tokenizer model/tokenizer.json --encoding bins.json --smiles-of names.smi",
        outputs: &[],
        folders: &[("-o", "fit.html")],
        inputs: &[SDF, "names.smi", "bins.json", "model/tokenizer.json"],
    },
    Reading {
        line: "encodings --corpus in --tokenizer model --encoding fixed bins.json --smiles-of names.smi",
        outputs: &["-o", "--html"],
        folders: &[],
        inputs: &[SDF, "names.smi", "bins.json", "model/tokenizer.json", "model/tokenizer_config.json"],
    },
    Reading {
        line: "train-tokenizer --tokens-per-block 9 --base model --model model --corpus in --reuse unused.txt",
        outputs: &[],
        folders: &[("-o", "report.json")],
        inputs: &[SDF, "unused.txt", "model/tokenizer.json", "model/model.safetensors", "model/config.json"],
    },
    Reading {
        line: "export-grammar --tokenizer model --smiles prompts.smi --encoding bins.json",
        outputs: &["-o"],
        folders: &[],
        inputs: &["prompts.smi", "bins.json", "model/tokenizer.json", "model/generation_config.json"],
    },
    Reading {
        line: "audit texts.jsonl --dialect fixed --model model --tokenizer model/tokenizer.json --references in one.jsonl --energy ./energy.sh --energy-cache answers.cache",
        outputs: &["-o", "--verdicts", "--matrix", "--summary", "--energy-list", "--energy-cache"],
        folders: &[],
        inputs: &[SDF, "texts.jsonl", "one.jsonl", "model/recipe.json", "model/tokenizer.json", "energy.sh"],
    },
    Reading {
        line: "eval --model model --smiles prompts.smi --references in --same-as texts.jsonl --examples one.jsonl --placeholder fitted.json --encoding bins.json",
        outputs: &["--texts", "--trace", "--verdicts", "--matrix", "--molecules"],
        folders: &[("-o", "record.json"), ("-o", "eval.html"), ("-o", "shard.jsonl")],
        inputs: &[
            SDF,
            "prompts.smi",
            "texts.jsonl",
            "one.jsonl",
            "fitted.json",
            "bins.json",
            "model/model.safetensors",
            "model/config.json",
            "model/recipe.json",
            "model/tokenizer.json",
        ],
    },
    Reading {
        line: "eval --tokenizer model/tokenizer.json --model model --corpus in --smiles-of names.smi",
        outputs: &["--texts", "--energy-cache=energies --energy true --energy-list"],
        folders: &[("-o", "record.json")],
        inputs: &[SDF, "names.smi", "model/tokenizer.json"],
    },
    Reading {
        line: "generate --smiles prompts.smi --references in --examples one.jsonl --placeholder fitted.json --model model",
        outputs: &["-o", "-o x.jsonl --trace"],
        folders: &[],
        inputs: &[SDF, "prompts.smi", "one.jsonl", "fitted.json", "model/config.json", "model/recipe.json"],
    },
    Reading { line: "report fitted.json", outputs: &["-o"], folders: &[], inputs: &["fitted.json"] },
    Reading {
        line: "slurm eval --array 2 --model model --corpus in",
        outputs: &["-o run --texts"],
        folders: &[("-o", "array.sbatch")],
        inputs: &[SDF, "model/model.safetensors"],
    },
    Reading {
        line: "train-model --init model --new-tokens-of other --corpus in --smiles-of names.smi --encoding bins.json",
        outputs: &[],
        folders: &[("-o", "recipe.json"), ("-o", "training.safetensors")],
        inputs: &[SDF, "names.smi", "bins.json", "model/model.safetensors", "other/tokenizer.json"],
    },
    Reading {
        line: "extend-model --model model --tokenizer other",
        outputs: &[],
        folders: &[],
        inputs: &["model/model.safetensors", "model/config.json", "other/tokenizer.json"],
    },
];

/// Everything that the commands read.
fn scene() -> Folder {
    let folder = Folder::new();
    folder.file(SDF, "title\n  drift\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n$$$$\n");
    let text = "[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>";
    let row = format!("{{\"smiles\": \"CO\", \"text\": \"[CONFORMER]{text}[/CONFORMER]\"}}\n");
    folder.file("texts.jsonl", row);
    folder.file("one.jsonl", format!("{{\"embedded_smiles\": \"{text}\"}}\n"));
    folder.file("names.smi", "CO title\n");
    folder.file("prompts.smi", "CO\n");
    folder.file("unused.txt", "token\n");
    folder.file("energy.sh", "#!/bin/sh\n");
    folder.file("fitted.json", "{}\n");
    folder.file("bins.json", "{\"mode\": \"u\", \"L\": -9, \"H\": 9, \"n_bins\": 2, \"edges\": [-9, 0, 9]}");
    folder.reference_checkpoint("model");
    folder.reference_checkpoint("other");
    folder
}

/// The files and links of a folder with their contents; of weights, when they were written.
fn contents(folder: &Folder) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: &PathBuf| match path.is_symlink() {
        true => fs::read_link(path).unwrap().to_string_lossy().into_owned().into_bytes(),
        false if path.extension().is_some_and(|end| end == "safetensors") => {
            format!("{:?}", fs::metadata(path).unwrap().modified()).into_bytes()
        }
        false => fs::read(path).unwrap_or_default(),
    };
    folder.listing().into_keys().map(|path| (path.clone(), read(&path))).collect()
}

/// The line with an output, its arguments in the place where a list of inputs does not take them.
fn with_output(line: &str, output: &str, path: &str) -> String {
    let split = line.find(" --").unwrap_or(line.len());
    format!("{} {output}={path}{}", &line[..split], &line[split..]).replace("-o=", "--output=")
}

#[track_caller]
fn refused(folder: &Folder, line: &str, part: &str) {
    let before = contents(folder);
    let ran = folder.drift(&words(line));
    assert_eq!(ran.code, Some(2), "{line}: {}", ran.stderr);
    assert!(ran.stderr.contains(part), "{line}: {}", ran.stderr);
    assert!(contents(folder) == before, "{line} changed something");
}

#[test]
fn no_output_is_written_over_an_input() {
    let folder = scene();
    folder.file("elsewhere/linked.sdf", "");
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        folder.path().join("elsewhere/linked.sdf"),
        folder.path().join("in/linked.sdf"),
    )
    .unwrap();
    for Reading { line, outputs, inputs, .. } in READING {
        for (output, input) in
            outputs.iter().flat_map(|output| inputs.iter().map(move |input| (output, input)))
        {
            let part =
                if input.starts_with("in/sub") { "lies in the input folder in" } else { "is an input" };
            let input = if *input == "in/linked.sdf" { "elsewhere/linked.sdf" } else { input };
            // The program's own cache is named twice.
            let line = line.replace(
                " --energy-cache answers.cache",
                if *output == "--energy-cache" { "" } else { " --energy-cache answers.cache" },
            );
            refused(&folder, &with_output(&line, output, input), part);
        }
        for output in outputs {
            let line = line.replace(
                " --energy-cache answers.cache",
                if *output == "--energy-cache" { "" } else { " --energy-cache answers.cache" },
            );
            if line.contains(" in") {
                refused(&folder, &with_output(&line, output, "in/new.csv"), "the next run would read what");
            }
        }
    }
}

/// A file of the output folder is a link to an input, or the input is a link to it.
#[cfg(unix)]
#[test]
fn links_lead_to_no_input() {
    let folder = scene();
    let at = |name: &str| folder.path().join(name);
    for Reading { line, outputs, folders, inputs } in READING {
        for input in inputs.iter().filter(|input| at(input).exists()) {
            let (soft, hard) = (at("soft.csv"), at("hard.csv"));
            std::os::unix::fs::symlink(at(input), &soft).unwrap();
            fs::hard_link(at(input), &hard).unwrap();
            if let Some(output) = outputs.first() {
                for name in ["soft.csv", "hard.csv"] {
                    refused(&folder, &with_output(line, output, name), "input");
                }
            }
            for (option, name) in folders {
                fs::create_dir(at("out")).unwrap();
                fs::hard_link(at(input), at("out").join(name)).unwrap();
                refused(&folder, &with_output(line, option, "out"), "input");
                fs::remove_dir_all(at("out")).unwrap();
            }
            fs::remove_file(soft).unwrap();
            fs::remove_file(hard).unwrap();
        }
    }
}

/// What two outputs share would hold one of them.
#[test]
fn no_two_outputs_are_written_into_one_file() {
    let folder = scene();
    for (line, part) in [
        ("mine one.jsonl -o x --html ./x", "would be written by -o and by --html"),
        ("encodings --corpus one.jsonl -o x --html x", "would be written by -o and by --html"),
        ("audit texts.jsonl --references one.jsonl --verdicts x --matrix x", "by --verdicts and by --matrix"),
        ("audit texts.jsonl -o x --energy true --energy-cache x", "by -o and by --energy-cache"),
        ("eval --model model -o run --texts run/record.json", "by -o and by --texts"),
        ("eval --model model -o run --trace run/shard.jsonl", "by -o and by --trace"),
        (
            "eval --model model -o run --energy true --energy-cache run/eval.html",
            "by -o and by --energy-cache",
        ),
    ] {
        fs::create_dir_all(folder.path().join("run")).unwrap();
        refused(&folder, line, part);
    }
}

/// The first and the second run of a command come to the same, whether both are refused or not.
#[test]
fn a_second_run_reads_what_the_first_read() {
    let folder = scene();
    folder.file("data/one.jsonl", folder.read("one.jsonl"));
    for line in [
        "encode data -o data/corpus.jsonl",
        "mine data -o data/corpus.h5",
        "mine data --html data/page.html",
        "mine data -o ./data/../data/corpus.h5",
        "mine data/one.jsonl --against data -o data/list.jsonl",
        "encode data --shard 1/1 -o data/shard",
    ] {
        refused(&folder, line, "lies in the input folder data");
    }
    let encoded = |line: &str| folder.line(line).done().stderr;
    for line in [
        "encode data -o data/.corpus.jsonl",
        "encode data -o corpus.jsonl",
        "encode data/one.jsonl -o data/b.txt",
    ] {
        assert_eq!(encoded(line), encoded(line));
        assert!(encoded(line).contains("1 conformer encoded, 0 skipped"), "{}", encoded(line));
        let _ = fs::remove_file(folder.path().join("data/b.txt"));
    }
}

/// A merge must not write over its shards, nor over what the command of its shards read.
#[test]
fn merges_spare_the_shards_and_their_inputs() {
    let folder = scene();
    folder.file("data/one.jsonl", folder.read("one.jsonl"));
    folder.file("data/two.jsonl", folder.read("one.jsonl"));
    for shard in ["1/2", "2/2"] {
        let place = &shard[..1];
        folder.line(&format!("encode data --smiles names.smi --shard {shard} -o encoded/{place}")).done();
        folder.line(&format!("mine data --smiles-of names.smi --shard {shard} -o mined/{place}")).done();
    }
    let part = |verb: &str, place: &str| {
        let listed = folder.listing().into_keys();
        let mut parts = listed.filter(|path| path.starts_with(folder.path().join(verb).join(place)));
        parts.find(|path| path.is_file() && !path.ends_with("shard.jsonl")).unwrap()
    };
    for verb in ["encoded", "mined"] {
        let shards = format!("merge {verb}/1 {verb}/2");
        for place in ["1", "2"] {
            refused(&folder, &format!("{shards} -o {}", part(verb, place).display()), "input");
            refused(&folder, &format!("{shards} -o {verb}/{place}/shard.jsonl"), "input");
        }
        for input in ["data/one.jsonl", "data/new.jsonl", "names.smi"] {
            refused(&folder, &format!("{shards} -o {input}"), "input");
        }
        folder.line(&format!("{shards} -o {verb}.result")).done();
    }
    refused(&folder, "merge mined/1 mined/2 -o mined.h5 --html names.smi", "is an input");
}

/// What is no cache is not emptied.
#[test]
fn a_file_that_is_no_cache_is_kept() {
    let folder = scene();
    let line = "audit texts.jsonl --dialect fixed --energy true --energy-cache";
    refused(&folder, &format!("{line} texts.jsonl"), "is an input");
    refused(&folder, &format!("{line} fitted.json"), "was not written by this command before");
}

/// Beyond the limit on the size of a file, writing is an error in one line, and nothing is left.
#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_told() {
    let folder = Folder::new();
    let row = |at: usize| format!("[C]<{at}.0000,0.1234,0.5678>[O]<1.4000,{at}.0000,0.9876>\n");
    folder.file("many.txt", (0..200).map(row).collect::<String>());
    let before = folder.listing();
    for line in [
        "encode many.txt -o out.jsonl",
        "encode many.txt -o -",
        "mine many.txt -o out.h5",
        "mine many.txt --html page.html",
        "encode many.txt --shard 1/1 -o shard",
        "export-grammar CCO --dialect fixed -o grammar.jsonl",
    ] {
        let script = "ulimit -f 1; exec \"$0\" \"$@\"";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_drift")]).args(words(line));
        let ran: Ran = command.current_dir(folder.path()).output().unwrap().into();
        let told = ran.refused();
        assert!(told.ends_with("File too large; make room, or write to another place"), "{line}: {told}");
        assert_eq!(folder.listing(), before, "{line}");
    }
}

/// A usage error shows a long value by its ends.
#[test]
fn long_values_are_shortened_in_usage_errors() {
    for option in ["--batch", "--lp", "--encoding", "--threshold", "--shard"] {
        let ran = drift(&["eval", &format!("{option}={}", "x".repeat(100_000))]);
        ran.refused_usage(option);
        assert!(ran.stderr.len() < 2_000, "{option}: {}", ran.stderr.len());
    }
    let ran = drift(&["eval", &"x".repeat(100_000)]);
    assert!(ran.code == Some(2) && ran.stderr.len() < 1_000, "{}", ran.stderr.len());
    let ran = drift(&[&"x".repeat(100_000)]);
    assert!(ran.code == Some(2) && ran.stderr.len() < 1_000, "{}", ran.stderr.len());
}

/// A link to itself is not replaced by an output.
#[cfg(unix)]
#[test]
fn a_link_to_itself_stays() {
    let folder = scene();
    for (link, to) in [("own", "own"), ("a", "b"), ("b", "a")] {
        std::os::unix::fs::symlink(to, folder.path().join(link)).unwrap();
    }
    for line in [
        "encode one.jsonl -o own",
        "mine one.jsonl -o a",
        "mine one.jsonl --html b",
        "audit texts.jsonl --verdicts own",
        "eval --model model -o own",
        "encode one.jsonl --shard 1/1 -o a",
    ] {
        refused(&folder, line, "is a link that leads back to itself");
    }
}
