//! The users' verdict beside an independent rebuilding of their rules, in Python with RDKit; and ours beside both.

use std::collections::BTreeMap;
use std::process::Command;

use drift::audit::{Outcome, TextSample, TextVerdict, judge, judge_as_3dmolgen};
use drift::chem::foreign;
use drift::chem::{AtomLimit, Isotopes, same_canonical_smiles};
use drift::encoding::Encoding;
use drift::text::tagged;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::edits::{Edited, KINDS, edited, legal, mutated};
use crate::support::{Folder, more, python_program, shared, shared_texts};

/// Verdicts of `tests/python/judge.py`.
fn by_rdkit(python: &str, cases: &[Value]) -> Vec<Value> {
    let folder = Folder::new();
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let input = folder.file("cases.jsonl", lines.join("\n"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/judge.py");
    let output = folder.path().join("verdicts.jsonl");
    let ran = Command::new(python).arg(script).args([&input, &output]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let verdicts = String::from_utf8(folder.read("verdicts.jsonl")).unwrap();
    let verdicts: Vec<Value> = verdicts.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), cases.len());
    verdicts
}

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NoEos => "no_eos",
        Outcome::ParseFailure => "parse_failure",
        Outcome::GraphMismatch => "graph_mismatch",
        Outcome::Pass => "pass",
    }
}

fn judged(one: &Edited) -> TextVerdict {
    judged_text(&one.prompt, &one.text)
}

fn judged_text(prompt: &str, answer: &str) -> TextVerdict {
    judge(&TextSample {
        prompt: Some(prompt),
        answer,
        ended: true,
        encoding: Encoding::FIXED,
        max_atoms: AtomLimit::default(),
        isotopes: Isotopes::Ignore,
    })
}

/// Asserts that none of so many cases is wrong.
#[track_caller]
fn assert_none(wrong: &[String], of: usize) {
    let some = wrong[..wrong.len().min(20)].join("\n");
    assert!(wrong.is_empty(), "{} of {of} differ, such as\n{some}", wrong.len());
}

/// How many texts of each kind: more with DRIFT_EDITS, for a long run.
fn each() -> usize {
    std::env::var("DRIFT_EDITS").ok().and_then(|each| each.parse().ok()).unwrap_or(80)
}

#[test]
fn what_passes_passes_by_the_users_verdict_too() {
    const { assert!(KINDS >= 20) };
    let edited = edited(each(), 7);
    let ours: Vec<TextVerdict> = edited.iter().map(judged).collect();
    for (one, verdict) in edited.iter().zip(&ours) {
        assert!(
            verdict.outcome != Outcome::Pass || verdict.by_3dmolgen == Outcome::Pass,
            "{}: passes here, not there: {} {}",
            one.kind,
            one.prompt,
            one.text
        );
    }
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn the_users_verdict_is_what_rdkit_says_on_every_kind_of_edit() {
    let edited = edited(each(), 7);
    let ours: Vec<TextVerdict> = edited.iter().map(judged).collect();
    let python = python_program();
    let cases: Vec<Value> =
        edited.iter().map(|one| json!({"prompt": one.prompt, "text": one.text})).collect();
    let mut by_kind: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for ((one, verdict), theirs) in edited.iter().zip(&ours).zip(by_rdkit(&python, &cases)) {
        let theirs = theirs.as_str().unwrap();
        if name(verdict.by_3dmolgen) != theirs {
            wrong.push(format!(
                "{}: {} here, {theirs} there: {} {:?}",
                one.kind,
                name(verdict.by_3dmolgen),
                one.prompt,
                one.text
            ));
        }
        *by_kind.entry((one.kind, name(verdict.by_3dmolgen))).or_default() += 1;
    }
    assert_none(&wrong, edited.len());
    // The kinds are what their names say.
    assert_eq!(by_kind[&("legal", "pass")], each());
    for kind in ["letters behind a number", "two points", "exponent", "two signs", "last point"] {
        assert_eq!(by_kind[&(kind, "pass")], each(), "{kind}");
    }
    assert_eq!(by_kind[&("block dropped", "parse_failure")], each());
    assert_eq!(by_kind[&("without tags", "no_eos")], each());
}

#[test]
#[cfg_attr(not(has_rdkit), ignore = "needs a Python with rdkit")]
fn molecules_are_the_same_where_rdkit_says_so() {
    let python = python_program();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut smiles: Vec<String> = legal().into_iter().map(|(prompt, _)| prompt).collect();
    if let Some(shared) = more() {
        let table = std::fs::read_to_string(shared.join("geom/drugs_test_smiles.csv")).unwrap();
        smiles.extend(table.lines().skip(1).filter_map(|line| Some(line.split(',').next()?.to_owned())));
    }
    // Every molecule is taken as it is, and none of its mutants where RDKit does not take them.
    let mut pairs: Vec<(String, String)> = smiles.iter().map(|one| (one.clone(), one.clone())).collect();
    for _ in 0..40 * each() {
        let one = &smiles[rng.random_range(0..smiles.len())];
        let other = mutated(one, &mut rng);
        pairs.push((other.clone(), other.clone()));
        pairs.push((one.clone(), other));
    }
    let cases: Vec<Value> = pairs.iter().map(|(a, b)| json!({"a": a, "b": b})).collect();
    let mut wrong = Vec::new();
    let mut valid = 0;
    for ((a, b), theirs) in pairs.iter().zip(by_rdkit(&python, &cases)) {
        valid += usize::from(a == b && theirs == true);
        if theirs != same_canonical_smiles(a, b, AtomLimit::default()) {
            wrong.push(format!("{theirs} there: {a} {b}"));
        }
    }
    assert_none(&wrong, pairs.len());
    assert!(valid > smiles.len() + each(), "{valid}");
}

#[test]
fn verdicts_that_need_no_python() {
    let legal = "[C]<0.1234,0.5000,0.0000>[O]<1.0000,2.0000,3.0000>";
    // The edit, their verdict, ours.
    let table = [
        (legal.to_owned(), "pass", "pass"),
        (legal.replace("<1.0000,2.0000,3.0000>", ""), "parse_failure", "parse_failure"),
        (legal.replace(",3.0000", ""), "parse_failure", "parse_failure"),
        (legal.replace("3.0000", "3.0000,4.0000"), "parse_failure", "parse_failure"),
        (legal.replace("3.0000", "0.9587abra"), "pass", "parse_failure"),
        (legal.replace("3.0000", "0."), "pass", "pass"),
        (legal.replace("3.0000", "0.00000."), "pass", "parse_failure"),
        (legal.replace("3.0000", ".5"), "pass", "parse_failure"),
        (legal.replace("3.0000", "1e2"), "pass", "parse_failure"),
        (legal.replace("3.0000", "--1"), "pass", "parse_failure"),
        (legal.replace("3.0000", "\u{663}"), "pass", "parse_failure"),
        (legal.replace("[O]", "[N]"), "graph_mismatch", "graph_mismatch"),
        (legal.replace("[O]", "=[O]"), "graph_mismatch", "graph_mismatch"),
        (legal.replace("[O]", "[OH]"), "pass", "pass"),
        (legal.replace("[C]", "[CH2]"), "pass", "graph_mismatch"),
        (legal.replace("[C]", "[CH5]"), "parse_failure", "parse_failure"),
        (legal.replace("[C]", "[13CH3]"), "pass", "pass"),
        (legal.replace("[O]", " [O]"), "parse_failure", "parse_failure"),
        (legal.replace("[O]", "O"), "parse_failure", "parse_failure"),
        (legal.replace("3.0000>", "3.0000"), "graph_mismatch", "parse_failure"),
        (legal.replace("[O]", "([O]") + ")", "pass", "pass"),
        (legal.replace("[O]", "(2[O]") + ")", "graph_mismatch", "graph_mismatch"),
        (String::new(), "no_eos", "no_eos"),
    ];
    for (text, theirs, ours) in table {
        let text = tagged(&text);
        let judged = judged_text("CO", &text);
        assert_eq!((name(judged.by_3dmolgen), name(judged.outcome)), (theirs, ours), "{text}");
    }
    for text in
        ["[C]<1,2,3>[O]<4,5,6>", "[CONFORMER][C]<1,2,3>[O]<4,5,6>", "[C]<1,2,3>[O]<4,5,6>[/CONFORMER]"]
    {
        assert_eq!(judge_as_3dmolgen(Some("CO"), text, AtomLimit::default()), Outcome::NoEos, "{text}");
    }
}

#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn what_rdkit_wrote_is_never_called_foreign() {
    for (prompt, _) in legal() {
        assert_eq!(foreign(&prompt), None, "{prompt}");
    }
    let shared = shared();
    let prompts = shared_texts(&shared, "canonical_smiles");
    for smiles in &prompts {
        assert_eq!(foreign(smiles), None, "{smiles}");
    }
    assert_eq!(prompts.len(), 3_010);
}
