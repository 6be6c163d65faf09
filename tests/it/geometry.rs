//! The logit processor that knows geometry, beside the automaton and the judge.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use drift::audit::chemistry::Chemistry;
use drift::constraint::geometry::{GeometryConstraint, GeometryRow};
use drift::constraint::{Constraint, LogitProcessor, Mask, ProcessorKind, State};
use drift::encoding::{Encoding, Fixed, Reading};
use drift::geometry::{GeometryRule, GeometryRules, GeometryStrength};
use drift::job::Job;
use drift::text::{parse, skeleton, tagged, write};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::automaton::{EOS, FUSED, extended};
use crate::counting::fixture_tokenizer;
use crate::support::{Folder, drift, rows, shared};

type Points = Vec<[f64; 3]>;

fn small_bins() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("eval/small-bins")
}

/// Numbers on lines of their own.
const BREAKS: &str = r#"{"schema": "drift.encoding/1", "name": "breaks", "slots": "atoms", "open": "{", "separator": "\n", "close": "}",
    "numbers": 3, "number": {"kind": "decimal", "decimals": 3, "trailing_zeros": true}}"#;

/// The processor with a tokenizer of each kind: bins as tokens, single digits, groups of three digits, pieces of blocks.
fn processors() -> Vec<(LogitProcessor, Tokenizer, Encoding)> {
    let mut made = Vec::new();
    let bins: Encoding = "binned-v2:-9.525,9.525,0.05".parse().unwrap();
    made.push((Tokenizer::load(&small_bins()).unwrap(), bins));
    let embedded = Tokenizer::embedded().unwrap();
    let by_name = |name: &str| embedded.iter().find(|one| one.name == name).unwrap().clone();
    made.push((by_name("qwen-like"), Encoding::FIXED));
    made.push((by_name("llama-like"), Encoding::STRIPPED));
    made.push((by_name("qwen-like"), "binned-v1:-21,21,0.05".parse().unwrap()));
    made.push((extended("qwen-like", &FUSED), Encoding::FIXED));
    made.push((fixture_tokenizer("llama-2-like"), Encoding::FIXED));
    // A line break is a token of its byte.
    made.push((fixture_tokenizer("mistral-v3-like"), BREAKS.parse().unwrap()));
    let processor = |(tokenizer, encoding): (Tokenizer, Encoding)| {
        let made = LogitProcessor::new(ProcessorKind::Geometry, tokenizer.clone(), encoding, None, EOS);
        (made.unwrap(), tokenizer, encoding)
    };
    made.into_iter().map(processor).collect()
}

const MOLECULES: [&str; 7] =
    ["C[C@H](F)Cl", "F/C=C/Cl", "c1ccncc1C", "C1CC12CCC2", "C[P@](=O)(O)CC", "CC(=O)[O-].[Na+]", "[NH4+]"];

/// A walk under the mask of a constraint and its geometry.
struct Walk<'c> {
    constraint: &'c dyn Constraint,
    geometry: &'c GeometryConstraint,
    row: GeometryRow,
    state: State,
    ids: Vec<u32>,
    dead_ends: usize,
}

impl<'c> Walk<'c> {
    fn new(constraint: &'c dyn Constraint) -> Self {
        let geometry = constraint.geometry().unwrap();
        let (row, state) = (geometry.row(), constraint.start());
        Walk { constraint, geometry, row, state, ids: Vec::new(), dead_ends: 0 }
    }

    /// The tokens that are allowed. Without any, the atom is held to less.
    fn allowed(&mut self) -> Vec<u32> {
        let own = match self.constraint.mask(&self.state) {
            Mask::Forced(id) => return vec![id],
            Mask::Only(ids) => ids.to_vec(),
            other => panic!("{other:?}"),
        };
        let Some(ids) = self.row.allowed(self.geometry, &self.state) else { return own };
        assert!(ids.iter().all(|id| own.contains(id)) && ids.is_sorted());
        for id in &own {
            assert_eq!(self.row.allows(self.geometry, &self.state, *id), ids.contains(id));
        }
        if ids.is_empty() {
            self.dead_ends += 1;
            self.row.release();
            return self.allowed();
        }
        ids
    }

    fn write(&mut self, id: u32) {
        self.row.write(self.geometry, id);
        self.constraint.advance(&mut self.state, id);
        self.ids.push(id);
    }

    /// Writes random tokens until the text is over.
    fn finish(&mut self, random: &mut ChaCha8Rng) {
        loop {
            let ids = self.allowed();
            let id = ids[random.random_range(0..ids.len())];
            if self.constraint.is_over(&self.state, id) {
                return;
            }
            self.write(id);
        }
    }
}

/// The positions of a text's atoms in Å.
fn points(text: &str, encoding: Encoding) -> Points {
    let inside = text.trim().trim_start_matches("[CONFORMER]").trim_end_matches("[/CONFORMER]");
    let text = parse(inside, Reading { encoding, ..Reading::default() }).unwrap();
    text.coordinates.iter().map(|values| encoding.angstrom(values).unwrap()).collect()
}

fn decoded(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let text = tokenizer.inner().decode(ids, false).unwrap().replace(' ', "");
    text[text.find("[CONFORMER]").unwrap()..].to_owned()
}

#[test]
fn texts_whose_tokens_were_allowed_have_allowed_positions() {
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let (mut whole, mut all) = (0, 0);
    for (processor, tokenizer, encoding) in processors() {
        for smiles in MOLECULES {
            let constraint = processor.constraint(&skeleton::from_smiles(smiles).unwrap()).unwrap();
            let rules = GeometryRules::from_smiles(smiles, GeometryStrength::default()).unwrap();
            for _ in 0..3 {
                let mut walk = Walk::new(&*constraint);
                walk.finish(&mut random);
                all += 1;
                if walk.dead_ends == 0 {
                    whole += 1;
                    let text = decoded(&tokenizer, &walk.ids);
                    let found = rules.conflicts(&points(&text, encoding));
                    assert_eq!(found, [], "{} {encoding}: {text}", tokenizer.name);
                }
            }
        }
    }
    // Random coordinates close few rings.
    assert!(whole * 3 > all, "{whole} of {all}");
}

/// A random walk hardly closes the rings of a cage. Where no position keeps all rules, the signs of its centres still hold.
#[test]
fn after_a_dead_end_the_signs_of_centres_still_hold() {
    let smiles = "O[C@H]1[C@H]2C[C@H]3[C@@H]1N1[C@@H]2[C@@H]31";
    let (processor, tokenizer, encoding) = processors().swap_remove(0);
    let constraint = processor.constraint(&skeleton::from_smiles(smiles).unwrap()).unwrap();
    let rules = GeometryRules::from_smiles(smiles, GeometryStrength::default()).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut dead_ends, mut wrong) = (0, 0);
    for _ in 0..20 {
        let mut walk = Walk::new(&*constraint);
        walk.finish(&mut random);
        dead_ends += walk.dead_ends;
        let conflicts = rules.conflicts(&points(&decoded(&tokenizer, &walk.ids), encoding));
        wrong += conflicts.iter().filter(|conflict| conflict.rule == GeometryRule::Centre).count();
    }
    assert!(dead_ends >= 20, "{dead_ends}");
    // With the automaton alone after a dead end 39 are wrong.
    assert!(wrong <= 10, "{wrong} of {dead_ends}");
}

/// Every token of a conformer that the rules allow is allowed, whatever the tokenizer cuts.
#[test]
fn conformers_can_be_written() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let mut compared = 0;
    for (processor, tokenizer, encoding) in processors() {
        for smiles in MOLECULES {
            let skeleton = skeleton::from_smiles(smiles).unwrap();
            let constraint = processor.constraint(&skeleton).unwrap();
            let rules = GeometryRules::from_smiles(smiles, GeometryStrength::default()).unwrap();
            for _ in 0..4 {
                let Some(values) = grown(&rules, encoding, &mut random) else { continue };
                let answer = tagged(&write(&skeleton, &values, encoding));
                let ids = tokenizer.answer_tokens_of(&answer, encoding).unwrap();
                let mut walk = Walk::new(&*constraint);
                for id in ids.into_iter().map(|token| token.id) {
                    assert!(walk.allowed().contains(&id), "{} {encoding}: {answer}", tokenizer.name);
                    walk.write(id);
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

/// Values at random positions that the rules allow; the first atom is anywhere, some atoms beyond 10 Å.
fn grown(rules: &GeometryRules, encoding: Encoding, random: &mut ChaCha8Rng) -> Option<Vec<[Fixed; 3]>> {
    let (mut points, mut values): (Points, Vec<[Fixed; 3]>) = Default::default();
    let start: [f64; 3] = std::array::from_fn(|_| random.random_range(-8.0..8.0));
    for _ in 0..20_000 {
        if points.len() == rules.atoms() {
            return Some(values);
        }
        let around = points.get(random.random_range(0..points.len().max(1))).unwrap_or(&start);
        let point = around.map(|x| x + random.random_range(-2.5..2.5));
        let Ok(value) = encoding.quantize(point) else { continue };
        let written = encoding.angstrom(&value).unwrap();
        if encoding.has_tail(&value) || !rules.conflicts(&[&points[..], &[written]].concat()).is_empty() {
            continue;
        }
        points.push(written);
        values.push(value);
    }
    None
}

/// The lines of texts of a run, by logit processor.
fn generated(folder: &Folder, line: &str) -> BTreeMap<String, Vec<serde_json::Value>> {
    folder.line(line).done();
    let mut by_lp: BTreeMap<String, Vec<serde_json::Value>> = BTreeMap::new();
    for row in rows(&folder.read("texts.jsonl")).into_iter().skip(1) {
        by_lp.entry(row["lp"].as_str().unwrap().to_owned()).or_default().push(row);
    }
    by_lp
}

#[test]
fn texts_are_the_same_unless_the_geometry_forbids_them() {
    let folder = Folder::new();
    let model = small_bins();
    let line = format!(
        "generate --model {} --corpus small --samples 24 --generations 2 --lp automaton,geometry -o texts.jsonl",
        model.display()
    );
    let lines = generated(&folder, &line);
    let encoding: Encoding = "binned-v2:-9.525,9.525,0.05".parse().unwrap();
    let (mut same, mut valid) = (0, [0, 0]);
    for (plain, masked) in lines["automaton"].iter().zip(&lines["geometry"]) {
        let [smiles, text, other] =
            [&plain["smiles"], &plain["text"], &masked["text"]].map(|v| v.as_str().unwrap());
        let rules = GeometryRules::from_smiles(smiles, GeometryStrength::default()).unwrap();
        let judge = Chemistry::from_smiles(smiles).unwrap();
        let (own, masked_points) = (points(text, encoding), points(other, encoding));
        let is_allowed = rules.conflicts(&own).is_empty();
        assert_eq!(is_allowed, text == other, "{text} {other}");
        if masked["dead_ends"] == masked["backtracks"] {
            assert_eq!(rules.conflicts(&masked_points), [], "{other}");
        }
        assert!(plain.get("dead_ends").is_none() && masked["dead_ends"].is_u64(), "{masked}");
        same += usize::from(is_allowed);
        valid[0] += usize::from(judge.check(&own).unwrap().is_valid());
        valid[1] += usize::from(judge.check(&masked_points).unwrap().is_valid());
    }
    let all = lines["geometry"].len();
    assert!(same > all / 2 && same < all && valid[1] > valid[0], "{same} of {all}, valid {valid:?}");
}

#[test]
fn a_molecule_that_no_geometry_satisfies_is_written_nevertheless() {
    let folder = Folder::new();
    folder.file("m.smi", "C1C[C@H]2C[C@H]1C2\nC[C@H](F)Cl\n");
    let model = small_bins();
    let with = |more: &str| {
        format!("generate --model {} --smiles m.smi --lp geometry {more} -o texts.jsonl", model.display())
    };
    let lines = generated(&folder, &with("--backtrack 1"));
    let [bad, good] = &lines["geometry"][..] else { panic!("{lines:?}") };
    assert!(
        bad["backtracks"].as_u64() > Some(1) && bad["dead_ends"].as_u64() > bad["backtracks"].as_u64(),
        "{bad}"
    );
    assert_eq!((&good["dead_ends"], &good["end"]), (&0.into(), &"eos".into()));
    // Without signs it is an ordinary molecule.
    let lines = generated(&folder, &with("--no-signs"));
    assert!(lines["geometry"][0]["dead_ends"] == lines["geometry"][0]["backtracks"]);
    // A greedy text would end in the same place, so it does not go back.
    let lines = generated(&folder, &with("--preset greedy"));
    assert!(lines["geometry"][0]["backtracks"] == 0 && lines["geometry"][0]["dead_ends"].as_u64() > Some(0));
    // Texts that are weighted together are not either.
    let lines = generated(&folder, &with("--resample 2"));
    assert!(lines["geometry"].len() == 4 && lines["geometry"].iter().all(|line| line["backtracks"] == 0));
    // A chain that is longer than the range of its encoding comes to dead ends, and is written nevertheless.
    folder.file("m.smi", "CCCCCCCCCC\n");
    let line =
        "generate --smiles m.smi --lp geometry --encoding binned-v1:-1,1,0.05 --backtrack 1 -o texts.jsonl";
    let [narrow] = &generated(&folder, line)["geometry"][..] else { panic!("one text") };
    assert!(narrow["dead_ends"].as_u64() > Some(1) && narrow["end"] == "eos", "{narrow}");
    // Several conformers of a text follow one another from the beginning.
    folder.file("m.smi", "C1C[C@H]2C[C@H]1C2\nC[C@H](F)Cl\n");
    let lines = generated(&folder, &with("--conformers 2 --samples 2"));
    assert_eq!(lines["geometry"].len(), 4);
}

#[test]
fn what_has_no_geometry_is_refused() {
    let folder = Folder::new();
    folder.file("m.smi", "CCO\n");
    let run = |more: &str| folder.line(&format!("generate --smiles m.smi -o texts.jsonl {more}"));
    run("--lp geometry --encoding fsq:4096").refused_for("writes no x, y and z behind each atom");
    run("--lp geometry --bounds 0").refused_for("--bounds: 0 is not a share of distances");
    run("--lp geometry --bounds nan").refused_for("--bounds: NaN is not a share of distances");
    run("--lp automaton --bounds 0.1").refused_for("give --lp geometry");
    run("--lp automaton --no-planes").refused_for("--no-planes");
    // An atom of any element has no bonds of a known length.
    folder.file("m.smi", "*CO\n");
    run("--lp geometry").refused_for("has no known geometry");
    // Beside others, such molecules are left out in all rows, and listed.
    folder.file("m.smi", "CCO\n*CO\nCCN\nC(C)(C)(C)(C)C\n");
    let ran = run("--lp automaton,geometry --preset greedy").done();
    for place in ["m.smi: *CO: has no known geometry", "m.smi: C(C)(C)(C)(C)C: has no known geometry"] {
        assert!(ran.stderr.contains(&format!("skipped: {place}")), "{}", ran.stderr);
    }
    let texts = String::from_utf8(folder.read("texts.jsonl")).unwrap();
    assert_eq!(texts.lines().count(), 5, "{texts}");
    // `all` has no geometry, because not every encoding has one.
    let kinds = drift(&["generate", "--help"]).done();
    assert!(kinds.text().contains("geometry"));
}

/// Counts the conformers of a file that lie inside, of every `step`th row, and lists the others.
fn inside(path: &Path, step: usize) -> (usize, usize) {
    let reader = drift::io::open(path, &Job::default()).reader;
    let (mut inside, mut all) = (0, 0);
    for line in std::io::BufRead::lines(reader).step_by(step) {
        let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = parse(row["embedded_smiles"].as_str().unwrap(), Reading::default()).unwrap();
        let place = |values: &[Fixed; 3]| Encoding::FIXED.angstrom(values).unwrap();
        let points: Points = text.coordinates.iter().map(place).collect();
        let smiles = skeleton::smiles(&text.skeleton);
        let rules = GeometryRules::from_smiles(&smiles, GeometryStrength::default()).unwrap();
        let found = rules.conflicts(&points);
        all += 1;
        inside += usize::from(found.is_empty());
        if !found.is_empty() {
            eprintln!("{smiles}: {found:?}");
        }
    }
    eprintln!("{}: {inside} of {all} conformers are inside", path.display());
    (inside, all)
}

/// Nearly all conformers of GFN2-xTB and ETKDG lie inside. `DRIFT_WHOLE=1` takes all of them.
#[test]
#[cfg_attr(not(has_shared), ignore = "needs ../shared or DRIFT_SHARED")]
fn real_conformers_are_allowed() {
    let is_whole = std::env::var_os("DRIFT_WHOLE").is_some();
    for (file, step) in
        [("geom_conformers.jsonl", 1), ("xtb_moses_aq.jsonl.gz", 4), ("etkdg_drugs_test.jsonl.gz", 10)]
    {
        let (inside, all) = inside(&shared().join("geom").join(file), if is_whole { 1 } else { step });
        assert!(inside * 1_000 >= all * 995, "{file}: {inside} of {all}");
    }
}

/// Conformers of GFN2-xTB, started from ETKDG: twisted and bowl-shaped ones, and atoms with T-shaped and linear groups. The judge, which
/// has the same bounds, takes them as valid.
#[test]
fn strained_conformers_are_allowed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/strained.jsonl");
    let (inside, all) = inside(&path, 1);
    assert_eq!(inside, all);
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let smiles = row["canonical_smiles"].as_str().unwrap();
        let placed = points(row["embedded_smiles"].as_str().unwrap(), Encoding::FIXED);
        let found = Chemistry::from_smiles(smiles).unwrap().check(&placed);
        assert!(found.as_ref().is_some_and(|found| found.is_valid()), "{smiles}: {found:?}");
    }
}

/// Bridged aromatic rings, which are bent, among them.
#[test]
fn references_of_the_built_in_corpora_are_allowed() {
    for (file, step) in [("small.jsonl.gz", 1), ("default.jsonl.gz", 4)] {
        let (inside, all) = inside(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora").join(file), step);
        assert!(inside * 1_000 >= all * 998, "{file}: {inside} of {all}");
    }
}
