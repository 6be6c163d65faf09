//! `drift audit --against-row`: rows of texts compared pair by pair, whoever wrote them.

use serde_json::{Value, json};

use super::support::{Folder, rows};

/// Texts of three logit processors, one of them with two placeholders.
const GENERATION: &str = "--samples 12 --generations 2 --lp none,allowlist,automaton --placeholder 0.000,0.000,0.000 \
    --placeholder 0.0000,0.0000,0.0000 --quiet";

/// The embedded model was trained on molecules of this kind.
const REFERENCES: &str = "--references small --threshold 0.75";

/// A document without what depends on the clock.
fn timeless(mut document: Value) -> Value {
    match &mut document {
        Value::Object(fields) => {
            let timed = ["second", "speed", "floor_share", "peak_memory"];
            fields.retain(|name, _| !timed.iter().any(|part| name.contains(part)));
            fields.values_mut().for_each(|value| *value = timeless(value.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = timeless(value.take())),
        _ => {}
    }
    document
}

/// The fields of an object that another has too, with the values of the first.
fn common(object: &Value, other: &Value) -> Value {
    let fields = object.as_object().unwrap().iter();
    Value::Object(
        fields.filter(|(name, _)| other.get(name).is_some()).map(|(n, v)| (n.clone(), v.clone())).collect(),
    )
}

/// The figures of `eval` are those of its texts.
#[test]
fn generate_and_audit_have_the_figures_of_eval() {
    assert_same_figures(GENERATION, "");
}

/// Texts in stripped decimals do not show which blocks were cut. Their lines say it.
#[test]
fn cut_blocks_of_stripped_texts_are_counted_by_audit_too() {
    let generation = "--samples 6 --generations 2 --lp none,allowlist,automaton --placeholder 0.0000,0.0000,0.0000 \
        --dialect stripped --quiet";
    let runs = assert_same_figures(generation, "--dialect stripped");
    let cut = runs.iter().map(|run| run["truncated_blocks"].as_u64().unwrap());
    let cut: Vec<u64> = cut.collect();
    assert!(cut[0] == 0 && cut[1] > 0 && cut[2] == 0, "{cut:?}");
}

/// Generates texts, and asserts that `audit` has the figures of `eval`. Returns the rows of `audit`.
fn assert_same_figures(generation: &str, dialect: &str) -> Vec<Value> {
    let folder = Folder::new();
    folder.line(&format!("generate {generation} -o texts.jsonl")).done();
    let audit = format!(
        "audit texts.jsonl {REFERENCES} {dialect} --against-row none --molecules audit.csv --html page.html --hits 0.75 --clusters 0.5"
    );
    let audited = folder.line(&format!("{audit} --json")).done();
    let evaluated = folder
        .line(&format!(
            "eval {generation} --threshold 0.75 --hits 0.75 --clusters 0.5 --molecules eval.csv --json"
        ))
        .done();
    assert_eq!(folder.read("audit.csv"), folder.read("eval.csv"));
    let page = String::from_utf8(folder.read("page.html").to_vec()).unwrap();
    assert!(page.contains("<svg") && page.contains("The worst texts of"), "{}", page.len());
    let [audited, evaluated] = [audited, evaluated].map(|ran| timeless(ran.json()));
    let runs = audited["runs"].as_array().unwrap();
    let of_eval = evaluated["runs"].as_array().unwrap();
    assert_eq!(runs.len(), of_eval.len());
    for (run, of_eval) in runs.iter().zip(of_eval) {
        // How the encoding was determined differs, of course.
        let mut same = common(run, of_eval);
        same["dialect_from"] = of_eval["dialect_from"].clone();
        // The audit was not given the tokenizer.
        same["drift"] = of_eval["drift"].clone();
        assert_eq!(same, common(of_eval, &same));
        for name in [
            "lp",
            "placeholder",
            "passed",
            "passed_interval",
            "valid",
            "worst",
            "examples",
            "geometry",
            "mat_p",
            "generated_tokens",
            "tokenizer",
        ] {
            assert!(same.get(name).is_some(), "{name}");
        }
    }
    let comparisons = audited["comparisons"].as_array().unwrap();
    assert_eq!(comparisons.len() + 1, runs.len());
    assert_eq!(audited["comparisons"], evaluated["comparisons"]);
    let advice = |report: &Value| -> Vec<String> {
        let all = report["advice"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned());
        // Claims about speed depend on the clock.
        all.map(|one| {
            one.split(", ").filter(|part| !part.contains("times as fast")).collect::<Vec<_>>().join(", ")
        })
        .filter(|one| !one.contains("is fastest"))
        .collect()
    };
    assert_eq!(advice(&audited), advice(&evaluated));
    runs.clone()
}

/// The mask that knows geometry makes texts valid, which passing texts alone do not tell. Advice speaks for it, if its gain is no chance.
#[test]
fn valid_texts_are_weighed() {
    let folder = Folder::new();
    folder
        .line("generate --samples 16 --generations 2 --lp none,automaton,geometry --quiet -o texts.jsonl")
        .done();
    let report = folder.line("audit texts.jsonl --against-row none --json").done().json();
    let runs = report["runs"].as_array().unwrap();
    let valid = runs.iter().map(|run| run["valid"].as_f64().unwrap() / run["samples"].as_f64().unwrap());
    let [none, automaton, geometry] = <[f64; 3]>::try_from(valid.collect::<Vec<_>>()).unwrap();
    assert!(geometry > automaton + 0.3, "{automaton} {geometry}");
    let pairs = report["comparisons"].as_array().unwrap();
    let figure = |pair: &Value| {
        let all = pair["figures"].as_array().unwrap();
        all.iter().find(|found| found["figure"] == "valid").unwrap().clone()
    };
    let near = |found: &Value, expected: [f64; 2]| {
        let [without, with] = ["without", "with"].map(|name| found[name].as_f64().unwrap());
        let difference = found["difference"].as_f64().unwrap();
        assert!((without - expected[0]).abs() + (with - expected[1]).abs() < 1e-12, "{found}");
        assert!((difference - expected[1] + expected[0]).abs() < 1e-12, "{found}");
    };
    near(&figure(&pairs[0]), [none, automaton]);
    near(&figure(&pairs[1]), [none, geometry]);
    near(&pairs[1]["valid_against_automaton"], [automaton, geometry]);
    assert!(pairs[0].get("valid_against_automaton").is_none());
    let advice = report["advice"][0].as_str().unwrap();
    assert!(advice.contains("use `geometry`: "), "{advice}");
    assert!(advice.contains(&format!("{} of 32 texts are valid instead of ", 32.0 * geometry)), "{advice}");
    assert!(advice.ends_with("so a part of `valid` is by construction."), "{advice}");

    // Of a single molecule there is no interval.
    let lines = rows(&folder.read("texts.jsonl")).split_off(1);
    let first = lines[0]["smiles"].clone();
    let few = lines.iter().filter(|line| line["smiles"] == first).map(|line| format!("{line}\n"));
    folder.file("few.jsonl", few.collect::<String>());
    let report = folder.line("audit few.jsonl --against-row none --json").done().json();
    assert!(!report["advice"].to_string().contains("use `geometry`"), "{}", report["advice"]);
}

/// Texts in the words of an engine: no label, a field of another name, or a file for each processor.
#[test]
fn rows_are_named_by_any_field_or_by_the_file() {
    let folder = Folder::new();
    folder.line("generate --samples 6 --lp none,automaton --quiet -o texts.jsonl").done();
    let lines: Vec<Value> = rows(&folder.read("texts.jsonl")).split_off(1);
    let of = |lp: &str, field: Option<&str>| -> String {
        let own = lines.iter().filter(|line| line["lp"] == lp);
        own.map(|line| {
            let mut row = json!({"prompt": format!("[SMILES]{}[/SMILES]", line["smiles"].as_str().unwrap()), "generated_text": line["text"]});
            field.iter().for_each(|name| row[*name] = json!(format!("engine-{lp}")));
            format!("{row}\n")
        })
        .collect()
    };
    folder.file("plain.jsonl", of("none", None));
    folder.file("grammar.jsonl", of("automaton", None));
    folder.file("both.jsonl", of("none", Some("processor")) + &of("automaton", Some("processor")));
    let figures = |command: &str| {
        let report = folder.line(command).done().json();
        let pair = &report["comparisons"][0];
        (pair["passed_difference"].clone(), pair["identical"].clone(), pair["figures"].clone())
    };
    let expected = figures("audit texts.jsonl --against-row none --json");
    assert_eq!(figures("audit plain.jsonl grammar.jsonl --against-row plain --json"), expected);
    assert_eq!(figures("audit both.jsonl --row-field processor --against-row engine-none --json"), expected);
    let shown = folder.line("audit plain.jsonl grammar.jsonl --against-row plain.jsonl").done();
    assert!(shown.text().contains("Against plain.jsonl, paired"), "{}", shown.text());
}

#[test]
fn rows_that_cannot_be_compared_are_refused() {
    let folder = Folder::new();
    let text = "[CONFORMER][C]<0.0000,0.0000,0.0000>[O]<1.4000,0.0000,0.0000>[/CONFORMER]";
    let line = |smiles: &str, lp: &str| format!("{}\n", json!({"smiles": smiles, "lp": lp, "text": text}));
    folder.file("a.jsonl", line("CO", "none") + &line("CO", "grammar"));
    folder.file("b.jsonl", line("CO", "none"));
    folder.file("c.jsonl", line("OC", "None") + &line("CO", "grammar"));
    let refused = |command: &str| folder.line(command).refused();
    let said = refused("audit a.jsonl --against-row automaton");
    assert!(said.contains("--against-row: there is no row `automaton`; give one of"), "{said}");
    let said = refused("audit c.jsonl --against-row none");
    assert!(said.contains("give `None`, whose letters differ in case"), "{said}");
    // Two files hold the same text of the same row.
    let said = refused("audit a.jsonl b.jsonl --against-row none");
    assert!(said.contains("`none` has two texts 0 of CO") && said.contains("--row-field file"), "{said}");
    folder.line("audit a.jsonl b.jsonl --row-field file --against-row b").done();
    // A header of another version, and a torn last line.
    folder.file("new.jsonl", "{\"schema\": \"drift.texts/9\"}\n");
    let said = refused("audit new.jsonl");
    assert!(said.contains("new.jsonl") && said.contains("drift.texts/9"), "{said}");
    folder.file("torn.jsonl", line("CO", "none") + &line("CO", "grammar") + "{\"smiles\": \"CO\", \"te");
    let report = folder.line("audit torn.jsonl --against-row none --json").done().json();
    assert_eq!((&report["skipped"], &report["comparisons"][0]["passed_difference"]), (&json!(1), &json!(0)));
    // A molecule that one row lacks is in no pair.
    folder.file("lacks.jsonl", line("CO", "none") + &line("CO", "grammar") + &line("OC", "grammar"));
    let report = folder.line("audit lacks.jsonl --against-row none --json").done().json();
    assert_eq!(report["comparisons"][0]["unpaired"], json!(1));
    assert!(report["warnings"].to_string().contains("have no partner"), "{report}");
}

/// Isomers of one pool count as one molecule, wherever their texts stand.
#[test]
fn pooled_isomers_need_not_be_adjacent() {
    let folder = Folder::new();
    let alanine = |mark: &str, bond: f64| {
        let z = if mark == "@" { 0.5 } else { -0.5 };
        format!(
            "[N]<1.0000,0.0000,{z:.4}>[C{mark}H]<0.0000,0.0000,0.0000>([F]<-0.7000,{bond:.4},{z:.4}>)[Cl]<-0.7000,-1.2000,{z:.4}>"
        )
    };
    let ethanol = |bond: f64| {
        format!("[C]<{bond:.4},0.0000,0.0000>[C]<0.0000,0.0000,0.0000>[O]<-0.7000,1.2000,0.0000>")
    };
    let line = |smiles: &str, pool: &str, lp: &str, text: &str| {
        let text = format!("[CONFORMER]{text}[/CONFORMER]");
        format!("{}\n", json!({"smiles": smiles, "geom_smiles": pool, "lp": lp, "text": text}))
    };
    let (left, right, pool) = ("N[C@H](F)Cl", "N[C@@H](F)Cl", "NC(F)Cl");
    let texts = |order: [usize; 3]| -> String {
        let rows = [("none", 1.2), ("grammar", 1.3)];
        let of = |(lp, bond): (&str, f64)| {
            let three = [
                line(left, pool, lp, &alanine("@", bond)),
                line("CCO", "CCO", lp, &ethanol(bond)),
                line(right, pool, lp, &alanine("@@", bond + 0.1)),
            ];
            order.map(|at| three[at].clone()).concat()
        };
        rows.map(of).concat()
    };
    let reference = |smiles: &str, text: &str| {
        format!("{}\n", json!({"canonical_smiles": smiles, "embedded_smiles": text}))
    };
    folder.file(
        "r.jsonl",
        reference(left, &alanine("@", 1.25))
            + &reference(right, &alanine("@@", 1.25))
            + &reference("CCO", &ethanol(1.25)),
    );
    folder.file("apart.jsonl", texts([0, 1, 2]));
    folder.file("together.jsonl", texts([0, 2, 1]));
    let [apart, together] = ["apart", "together"].map(|name| {
        let command = format!(
            "audit {name}.jsonl --dialect fixed --references r.jsonl --pool --against-row none --json"
        );
        folder.line(&command).done().json()["comparisons"][0].take()
    });
    assert_eq!(apart["bond_error_difference_angstrom"]["items"], json!(2), "{apart}");
    assert_eq!(apart, together);
}
