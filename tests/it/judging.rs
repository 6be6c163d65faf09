//! The judge in memory beside `audit` and `eval`, verdicts by text, matrices, and the rule of the users' own evaluation.

use std::collections::BTreeMap;

use drift::audit::{BatchScores, JudgePlan, MissingPolicy, Reward, RewardPart};
use drift::corpus::{Conformer, EmbeddedConformers, Files, ReadOptions};
use drift::encoding::Encoding;
use drift::text::{skeleton::smiles, tagged, write};
use drift::{Job, Judge};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::support::{self, Folder, rows, words};

/// How far figures may be from RDKit's, in Å and as a share.
const TOLERANCE: f64 = 1e-6;

/// Some conformers of the embedded corpus.
fn conformers(most: usize, every: usize) -> Vec<Conformer> {
    support::conformers(&EmbeddedConformers::default()).into_iter().step_by(every).take(most).collect()
}

/// A SMILES and a text of it.
type Prompted = (String, String);

/// References, and texts as models write them: good ones, noise, another molecule, cut off, junk.
fn scene() -> (Vec<Prompted>, Vec<Prompted>) {
    let mut random = ChaCha8Rng::seed_from_u64(42);
    let (mut references, mut texts) = (Vec::new(), Vec::new());
    for conformer in conformers(12, 40) {
        let smiles = smiles(&conformer.skeleton);
        let mut text = |width: i32| {
            let mut moved = conformer.coordinates.clone();
            moved.iter_mut().flatten().for_each(|x| *x += random.random_range(-width..=width));
            write(&conformer.skeleton, &moved, Encoding::FIXED)
        };
        references.extend((0..3).map(|_| (smiles.clone(), text(2_000))));
        let own = text(500);
        for answer in [
            tagged(&own),
            tagged(&own),
            tagged(&text(6_000)),
            tagged(&(own.clone() + "[C]<9.0000,9.0000,9.0000>")),
            tagged(&own)[..own.len() / 2].to_owned(),
            tagged(&own.replacen('>', "abra>", 1)),
        ] {
            texts.push((smiles.clone(), answer));
        }
    }
    (references, texts)
}

fn lines(rows: impl IntoIterator<Item = Value>) -> String {
    rows.into_iter().map(|row| row.to_string() + "\n").collect()
}

fn judge_of(references: &[(String, String)]) -> Judge {
    let reward =
        Reward(vec![(RewardPart::Valid, 1.0), (RewardPart::NewCoverage, 2.0), (RewardPart::Rmsd, 0.5)]);
    let mut judge = Judge::new(JudgePlan { reward, ..JudgePlan::default() }).unwrap();
    for (smiles, text) in references {
        judge.add_texts(smiles, &[text]).unwrap();
    }
    judge
}

fn scored(judge: &Judge, texts: &[(String, String)], threads: usize) -> BatchScores {
    let (smiles, texts): (Vec<&str>, Vec<&str>) = texts.iter().map(|(s, t)| (&**s, &**t)).unzip();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| judge.score(&smiles, &texts, &Job::default())).unwrap()
}

#[test]
fn the_judge_says_what_audit_says_bit_by_bit() {
    let (references, texts) = scene();
    let folder = Folder::new();
    let reference =
        |(smiles, text): &(String, String)| json!({"canonical_smiles": smiles, "embedded_smiles": text});
    folder.file("references.jsonl", lines(references.iter().map(reference)));
    let text = |(smiles, text): &(String, String)| json!({"smiles": smiles, "text": text, "id": format!("{smiles}!")});
    folder.file("a.jsonl", lines(texts[..30].iter().map(text)));
    folder.file("b.jsonl", lines(texts[30..].iter().map(text)));
    let common = ["audit", "a.jsonl", "b.jsonl", "--dialect", "fixed", "--references", "references.jsonl"];
    let with = |more: &[&'static str]| [&common[..], more].concat();
    folder.drift(&with(&["--verdicts", "v.jsonl", "--matrix", "m.npz", "-o", "r.json"])).done();

    let judge = judge_of(&references);
    let scores = scored(&judge, &texts, 1);
    assert!(scores.warnings.is_empty());
    // NaN is not itself, so the parts are compared as text.
    assert_eq!(format!("{scores:?}"), format!("{:?}", scored(&judge, &texts, 2)));
    let found = rows(&folder.read("v.jsonl"));
    assert_eq!(found.len(), texts.len());
    for (at, (line, one)) in found.iter().zip(&scores.conformers).enumerate() {
        let own = serde_json::to_value(&one.verdict).unwrap();
        for (name, value) in own.as_object().unwrap() {
            assert_eq!(&line[name], value, "{at} {name}");
        }
        assert_eq!(line["generation"], at % 6);
        assert_eq!(
            (&line["smiles"], &line["id"]),
            (&json!(texts[at].0), &json!(format!("{}!", texts[at].0)))
        );
    }
    let by_kind = |kind: usize| scores.conformers.iter().skip(kind).step_by(6);
    assert!(by_kind(0).all(|one| one.verdict.valid && one.verdict.why.is_empty() && one.reward > 1.0));
    assert!(by_kind(1).all(|one| one.duplicate_of == Some(6 * one.group)));
    for (kind, why) in [(3, "another molecule"), (4, "no end"), (5, "parse failure: block 1")] {
        assert!(by_kind(kind).all(|one| one.verdict.why.starts_with(why) && one.reward == 0.0), "{kind}");
        assert!(by_kind(kind).all(|one| one.rmsd.len() == 3 && one.rmsd.iter().all(|x| x.is_nan())));
    }
    assert!(by_kind(5).all(|one| one.verdict.passed_by_3dmolgen));

    // Groups come to what the report says of all.
    let report: Value = serde_json::from_slice(&folder.read("r.json")).unwrap();
    let recall = scores.groups.iter().map(|group| group.coverage[0].unwrap().cov_recall).sum::<f64>();
    let mean = report["total"]["coverage"]["thresholds"][0]["cov_r"]["mean"].as_f64().unwrap();
    assert_eq!(recall / scores.groups.len() as f64, mean);

    // Shards come to the same bytes.
    for shard in ["1/2", "2/2"] {
        folder.drift(&with(&["--shard", shard, "-o", &*shard.replace('/', "of").leak()])).done();
    }
    let merge = ["merge", "1of2", "2of2", "-o", "s.json", "--verdicts", "w.jsonl", "--matrix", "n.npz"];
    folder.drift(&merge).done();
    assert_eq!(folder.read("v.jsonl"), folder.read("w.jsonl"));
    assert_eq!(folder.read("m.npz"), folder.read("n.npz"));
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn coverage_and_matching_are_those_of_run_eval_with_failures() {
    let folder = Folder::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let python = |arguments: &[&str]| -> Value {
        let said = support::python("python/run_eval.py", &folder.path(), arguments);
        serde_json::from_str(&said).unwrap()
    };
    let expected = python(&["make", &format!("{root}/corpora/default.jsonl.gz"), ".", "60"]);
    let common = ["audit", "texts.jsonl", "--dialect", "fixed", "--references", "references.jsonl", "--pool"];
    let theirs = ["--missing", "leave-out", "--passing", "3dmolgen", "--matrix"];
    let audit = |more: &[&str]| folder.drift(&[&common[..], &theirs, more].concat());
    let ran = audit(&["m.pickle", "--summary", "covmat_results.txt", "-o", "r.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(audit(&["m.npz"]).code, Some(0));
    let compared = python(&["compare", ".", "m.pickle", "m.npz"]);
    assert!(compared["off"].as_f64().unwrap() < TOLERANCE, "{compared}");

    let report: Value = serde_json::from_slice(&folder.read("r.json")).unwrap();
    let total = &report["total"];
    assert_eq!(report["missing"], "leave-out");
    assert_eq!(total["geometry"]["left_out"], expected["missing"]);
    assert_eq!(total["geometry"]["molecules"], expected["molecules"]);
    assert!(expected["missing"].as_u64().unwrap() > 5 && expected["molecules"].as_u64().unwrap() > 40);
    let close = |ours: &Value, theirs: &Value, what: &str| {
        assert!(
            (ours.as_f64().unwrap() - theirs.as_f64().unwrap()).abs() < TOLERANCE,
            "{what}: {ours} {theirs}"
        );
    };
    for (at, name) in ["mean", "median"].into_iter().enumerate() {
        for figure in ["mat_r", "mat_p"] {
            close(&total["coverage"][figure][name], &expected[figure][at], figure);
        }
        for step in 0..60 {
            for figure in ["cov_r", "cov_p"] {
                let ours = &total["coverage"]["coverage_sweep"][step][figure][name];
                close(ours, &expected[figure][at][step], &format!("{figure} {step}"));
            }
        }
    }
    let summary = String::from_utf8(folder.read("covmat_results.txt")).unwrap();
    assert!(
        summary.contains(&format!("Missing molecules (no conformers): {}\n", expected["missing"])),
        "{summary}"
    );
    let mean = expected["cov_r"][0][14].as_f64().unwrap();
    let shown = format!("{:.4}", (mean * 1e4).floor() / 1e4);
    let shown = shown.trim_end_matches('0').trim_end_matches('.');
    assert!(summary.contains(&format!("Coverage-Recall (COV-R):\n  Mean:   {shown}\n")), "{summary}");

    // Where they count, coverage falls by their share.
    let zero = folder.drift(&[&common[..], &["--passing", "3dmolgen", "--json"]].concat()).json();
    let share = expected["molecules"].as_f64().unwrap()
        / (expected["molecules"].as_f64().unwrap() + expected["missing"].as_f64().unwrap());
    let found = zero["total"]["coverage"]["coverage_sweep"][14]["cov_r"]["mean"].as_f64().unwrap();
    assert!((found - mean * share).abs() < TOLERANCE);
}

#[test]
fn prompts_of_every_kind_are_read() {
    let folder = Folder::new();
    let (one, two) = ("[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>", "[N]<0.0000,0.0000,0.0000>");
    let example = format!("[SMILES]N[/SMILES]{}\n", tagged(two));
    let texts = [
        json!({"prompt": format!("{example}[SMILES]CO[/SMILES]"), "text": tagged(one)}),
        json!({"text": format!("{example}{example}[SMILES]CO[/SMILES]{}", tagged(one))}),
        json!({"prompt": "[SMILES]CO[/SMILES][CONFORMER]", "text": format!("{one}[/CONFORMER]"), "generation": 7}),
        json!({"smiles": "CO", "text": format!("{}{}[CONFORMER][C]<1", tagged(one), tagged(two))}),
        json!({"smiles": "CO", "text": one}),
    ];
    folder.file("t.jsonl", lines(texts));
    let audit = words("audit t.jsonl --dialect fixed --verdicts -");
    let run = |more: &[&str]| rows(&folder.drift(&[&audit, more].concat()).done().stdout);
    let told = |lines: &[Value]| -> Vec<(bool, u64, u64)> {
        let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
        lines
            .iter()
            .map(|line| (line["passed"] == true, number(line, "generation"), number(line, "place")))
            .collect()
    };
    // Without tags a text of an engine has no answer; the judge in memory takes it.
    let first = run(&[]);
    assert_eq!(
        told(&first),
        [(true, 0, 0), (true, 1, 0), (true, 7, 0), (true, 3, 0), (false, 4, 0)],
        "{first:#?}"
    );
    let all = run(&["--conformers", "all"]);
    assert_eq!(told(&all)[3..6], [(true, 3, 0), (false, 3, 1), (false, 3, 2)], "{all:#?}");
    assert_eq!(all[5]["why"], "no end: no [/CONFORMER]");

    let plan = JudgePlan { all_conformers: true, ..JudgePlan::default() };
    let text = format!("{example}[SMILES]CO[/SMILES]{}{}", tagged(one), tagged(two));
    let scores = Judge::new(plan).unwrap().score(&["CO", "CO"], &[&text, one], &Job::default()).unwrap();
    let rows: Vec<_> =
        scores.conformers.iter().map(|one| (one.text, one.place, one.verdict.passed)).collect();
    assert_eq!(rows, [(0, 0, true), (0, 1, false), (1, 0, true)]);
}

#[test]
fn references_of_every_kind_are_one() {
    let text = "[C]<0.0000,0.1000,0.0000>[C]<1.5000,0.0000,0.0000>[O]<2.1000,1.2000,0.0000>";
    let points = vec![[0.0, 0.1, 0.0], [1.5, 0.0, 0.0], [2.1, 1.2, 0.0]];
    let reversed: Vec<[f64; 3]> = points.iter().rev().copied().collect();
    let other = "[O]<2.1000,1.2000,0.0000>[C]<1.5000,0.0000,0.0000>[C]<0.0000,0.1000,0.0000>";
    let mut judge = Judge::new(JudgePlan::default()).unwrap();
    judge.add_texts("CCO", &[text, other, &tagged(text)]).unwrap();
    judge.add_conformers("CCO", None, vec![points]).unwrap();
    judge.add_conformers("CCO", Some("OCC"), vec![reversed]).unwrap();
    let (skeleton, all) = judge.references().next().unwrap();
    assert_eq!((skeleton, all.len()), ("[C]<>[C]<>[O]<>", 5));
    assert!(all.iter().all(|one| one == &all[0]), "{all:?}");
    // A text in another order of atoms is compared atom by atom.
    let scores = judge.score(&["CCO"], &[&tagged(other)], &Job::default()).unwrap();
    assert!(scores.conformers[0].verdict.valid);
    assert!(scores.conformers[0].rmsd.iter().all(|rmsd| *rmsd < 1e-6));
    assert_eq!(scores.conformers[0].verdict.bond_error_angstrom, Some(0.0));

    // Files: all of them, or those of some molecules.
    let folder = Folder::new();
    let file = folder.file("r.jsonl", lines([json!({"canonical_smiles": "CCO", "embedded_smiles": text})]));
    let corpus = Files { inputs: vec![file], options: ReadOptions::default() };
    let mut judge = Judge::new(JudgePlan::default()).unwrap();
    judge.add_corpus(&corpus, Some(&["CCO"]), &Job::default()).unwrap();
    assert_eq!(judge.references().count(), 1);
    let error = judge.add_corpus(&corpus, Some(&["CCN"]), &Job::default()).unwrap_err();
    assert!(error.to_string().contains("contain none of these molecules"), "{error}");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let job = Job::default();
    let mut judge = Judge::new(JudgePlan::default()).unwrap();
    let refused = |result: drift::Result<()>, part: &str| {
        let line = result.unwrap_err().to_string();
        assert!(line.contains(part) && !line.contains('\n') && line.len() < 400, "{line}");
    };
    let text = "[C]<0.0000,0.1000,0.0000>[O]<1.5000,0.0000,0.0000>";
    refused(judge.add_texts("CN", &[text]), "references of CN, 0: is another molecule: CO");
    refused(judge.add_texts("CO", &["[C]166156135;[O]175145137;"]), "fixed");
    refused(judge.add_texts("CO", &[""]), "references of CO, 0");
    refused(judge.add_texts("C(", &[text]), "C(");
    let one = |points: Vec<[f64; 3]>| vec![points];
    refused(
        judge.add_conformers("CO", None, one(vec![[0.0; 3], [f64::NAN, 0.0, 0.0]])),
        "atom 1 has a coordinate",
    );
    refused(judge.add_conformers("CO", None, one(vec![[f64::INFINITY; 3], [0.0; 3]])), "no number up to");
    refused(judge.add_conformers("CO", None, one(vec![[0.0; 3]; 3])), "has 3 atoms, and the SMILES writes 2");
    refused(judge.add_conformers("CO", Some("CN"), one(vec![[0.0; 3]; 2])), "is another molecule: CN");
    refused(judge.score(&["CO"], &[], &job).map(drop), "1 SMILES and 0 texts");
    refused(judge.score(&["C("], &[text], &job).map(drop), "C(");
    for plan in [
        JudgePlan { thresholds: vec![], ..JudgePlan::default() },
        JudgePlan { thresholds: vec![f64::NAN], ..JudgePlan::default() },
        JudgePlan { duplicate_angstrom: -1.0, ..JudgePlan::default() },
        JudgePlan { reward: Reward(vec![(RewardPart::Valid, f64::NAN)]), ..JudgePlan::default() },
    ] {
        refused(Judge::new(plan).map(drop), "the judge");
    }
    // A reward that asks for references where there are none; without them the same texts are judged.
    let reward = Reward(vec![(RewardPart::Hit, 1.0)]);
    let rewarding = Judge::new(JudgePlan { reward, ..JudgePlan::default() }).unwrap();
    refused(
        rewarding.score(&["CO"], &[text], &job).map(drop),
        "the part `hit` of the reward needs references",
    );
    let scores = judge.score(&["CO"], &[text], &job).unwrap();
    assert!(scores.conformers[0].verdict.passed && scores.conformers[0].rmsd.is_empty());
    assert_eq!(scores.groups[0].coverage, [None]);
    assert_eq!(judge.score(&[], &[], &job).unwrap(), BatchScores::default());
    // Texts of another encoding are told.
    let bins = "[C]<586,563,511>[O]<609,537,518>";
    let warned = judge.score(&["CO"; 2], &[bins; 2], &job).unwrap().warnings;
    assert!(warned[0].contains("no text has a decimal point"), "{warned:?}");
    let warned = judge.score(&["CO"; 2], &["[C]166156135;[O]175145137;"; 2], &job).unwrap().warnings;
    assert!(warned[0].contains("has a block of fixed"), "{warned:?}");
}

#[test]
fn a_molecule_of_one_atom_and_many_texts_of_one_molecule_are_judged() {
    let mut judge = Judge::new(JudgePlan::default()).unwrap();
    judge.add_texts("O", &["[O]<1.0000,2.0000,3.0000>"]).unwrap();
    let scores = judge.score(&["O"; 2], &["[O]<0.0000,0.0000,0.0000>"; 2], &Job::default()).unwrap();
    let one = &scores.conformers[0];
    assert!(one.verdict.valid && one.rmsd == [0.0] && one.verdict.bond_error_angstrom.is_none());
    assert_eq!(scores.conformers[1].duplicate_of, Some(0));

    // Nothing grows with the square of their number: 10^10 pairs would take 80 GB.
    let texts: Vec<String> = (0..100_000)
        .map(|at| format!("[C]<0.0000,0.0000,0.0000>[O]<1.{:04},0.0000,0.0000>", at % 10_000))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let scores = judge.score(&vec!["CO"; texts.len()], &texts, &Job::default()).unwrap();
    // Two points differ by half the difference of their distances.
    let leaders: Vec<usize> =
        (0..texts.len()).filter(|at| scores.conformers[*at].duplicate_of.is_none()).collect();
    assert_eq!(leaders, [0, 2_500, 5_000, 7_500]);
    assert_eq!(scores.conformers[99_999].duplicate_of, Some(7_500));
}

#[test]
fn rewards_are_sums_of_their_parts() {
    let text = |z: &str| format!("[C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>[C]<2.1000,1.2000,{z}>");
    let references = [text("0.0000"), text("2.0000")];
    let texts = [text("0.0500"), text("0.0000"), text("1.9500"), "[C]<0.0000".to_owned()];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let values = |part: RewardPart| -> Vec<f64> {
        let plan = JudgePlan {
            reward: Reward(vec![(part, 2.0)]),
            thresholds: vec![0.05, 0.1],
            ..JudgePlan::default()
        };
        let mut judge = Judge::new(plan).unwrap();
        judge.add_texts("COC", &references.each_ref().map(String::as_str)).unwrap();
        let scores = judge.score(&["COC"; 4], &texts, &Job::default()).unwrap();
        scores.conformers.iter().map(|one| one.reward / 2.0).collect()
    };
    for part in RewardPart::ALL {
        let all = values(part);
        assert!(all.iter().all(|value| (0.0..=1.0).contains(value)) && all[3] == 0.0, "{part:?}: {all:?}");
        assert_eq!(part.name().parse(), Ok(part));
    }
    assert_eq!(values(RewardPart::Passed), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(values(RewardPart::Unique), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(values(RewardPart::Stereo), [1.0, 1.0, 1.0, 0.0]);
    // Two texts lie within both thresholds of the first reference, one of the second.
    assert_eq!(values(RewardPart::Coverage), [0.5, 0.5, 0.5, 0.0]);
    assert_eq!(values(RewardPart::NewCoverage), [0.0, 0.0, 0.5, 0.0]);
    assert_eq!(values(RewardPart::Hit), [1.0, 1.0, 1.0, 0.0]);
    assert!("beauty".parse::<RewardPart>().unwrap_err().contains("the parts are passed"));
}

#[test]
fn an_evaluation_says_of_each_text_what_audit_says() {
    let folder = Folder::new();
    let files = "--texts t.jsonl --verdicts v.jsonl --matrix m.npz --json";
    folder.line(&format!("eval --lp automaton --samples 3 --generations 2 {files}")).done();
    let ours = rows(&folder.read("v.jsonl"));
    // An evaluation has the references of its prompts, and audit counts all that it is given.
    let prompts: Vec<&str> = ours.iter().map(|row| row["smiles"].as_str().unwrap()).collect();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpora/small.jsonl.gz");
    let opened = drift::io::open(std::path::Path::new(corpus), &Job::default());
    let lines = std::io::BufRead::lines(opened.reader).map(Result::unwrap);
    let is_prompt = |line: &String| {
        let row: Value = serde_json::from_str(line).unwrap();
        prompts.contains(&row["canonical_smiles"].as_str().unwrap())
    };
    folder.file("references.jsonl", lines.filter(is_prompt).collect::<Vec<_>>().join("\n"));
    let audit =
        "audit t.jsonl --dialect fixed --references references.jsonl --verdicts w.jsonl --matrix n.npz";
    folder.line(audit).done();
    let theirs = rows(&folder.read("w.jsonl"));
    assert_eq!(ours.len(), 6);
    for (one, other) in ours.iter().zip(&theirs) {
        let fields: BTreeMap<&String, &Value> = one.as_object().unwrap().iter().collect();
        for (name, value) in
            fields.into_iter().filter(|(name, _)| !["id", "model", "placeholder"].contains(&&***name))
        {
            assert_eq!(&other[name], value, "{name}");
        }
    }
    assert_eq!(folder.read("m.npz"), folder.read("n.npz"));
    folder
        .drift(&["eval", "--matrix", "m.npz", "--samples", "1"])
        .refused_for("give one --model and one --lp");
    assert_eq!(MissingPolicy::ALL.map(MissingPolicy::name), ["zero", "leave-out"]);
}
