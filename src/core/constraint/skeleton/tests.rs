//! The automaton against all texts of small skeletons, and texts of the built-in ones.

mod begun;
mod slots;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use super::*;
use crate::constraint::automaton::AutomatonProcessor;
use crate::io::hash_bytes;
use crate::text::skeleton::from_smiles;

fn fixture(name: &str) -> Tokenizer {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/tokenizers").join(name);
    Tokenizer::load(&folder).unwrap()
}

/// The folder with real tokenizers.
fn shared() -> String {
    std::env::var("DRIFT_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").to_owned())
}

/// Tokenizers of several kinds: digits alone, in groups, with spaces, in SentencePiece.
fn tokenizers() -> Vec<Tokenizer> {
    let embedded = ["qwen-like", "llama-like"].map(|name| Tokenizer::load(Path::new(name)).unwrap());
    let names = ["gpt2-like", "llama-2-like", "gemma-like", "o200k-like", "mistral-v3-like"];
    embedded.into_iter().chain(names.map(fixture)).chain([words()]).collect()
}

/// Returns a tokenizer whose vocabulary is a list of words.
fn words() -> Tokenizer {
    let mut vocabulary = vec!["<unk>".to_owned(), "<|endoftext|>".to_owned(), "\n".to_owned()];
    vocabulary.extend((' '..='~').map(|c| c.to_string()));
    vocabulary.extend(["Na", "Cl", "Li", "  ", "CIF"].map(str::to_owned));
    vocabulary.extend((0..100).map(|number| format!("{number:02}")));
    let vocab: BTreeMap<&str, usize> =
        vocabulary.iter().enumerate().map(|(id, word)| (&**word, id)).collect();
    let pattern = json!({"Regex": r"CIF|[A-Z][a-z]?|\d{1,2}| +|\n|."});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false},
        "post_processor": null, "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
    });
    let bytes = json.to_string().into_bytes();
    Tokenizer::from_bytes("words", hash_bytes("words", &bytes), &bytes).unwrap()
}

fn processor(tokenizer: Tokenizer, skeleton: &str) -> Result<Arc<SkeletonProcessor>> {
    let skeleton = match skeleton.starts_with('{') {
        true => skeleton.parse().unwrap(),
        false => Skeleton::load(Path::new(skeleton)).unwrap(),
    };
    Ok(Arc::new(SkeletonProcessor::new(Arc::new(tokenizer), Arc::new(skeleton), EOS)?))
}

/// No token of a text.
const EOS: u32 = 1;

fn constraint(tokenizer: Tokenizer, skeleton: &str, prompt: &Value) -> Result<SkeletonConstraint> {
    let processor = processor(tokenizer, skeleton)?;
    processor.constraint(prompt.as_object().unwrap(), prompt["prompt"].as_str(), "prompt")
}

/// Returns a skeleton of two numbers that touch nothing, items of a composition, and numbers that vary in length.
fn small(order: &str, times: &str, item: &str, between: &str) -> String {
    format!(
        r#"{{"schema": "drift.skeleton/1", "name": "small", "slots": {{
            "x": {{"kind": "decimal", "decimals": 2, "least_decimals": 0, "low": -0.03, "high": 0.11}},
            "n": {{"kind": "integer", "low": 98, "high": 101}}}},
          "items": {{"atom": {{"from": "formula", "field": "formula", "order": "{order}", "times": {times}}}}},
          "text": ["{{n}} ", {{"each": "atom", "text": "{item}", "between": "{between}"}}], "ends": ["", "\n"]}}"#
    )
}

/// Returns all texts of [`small`], written by hand: the numbers, and items in all legal orders.
fn all_texts(orders: &[&[&str]], item: &str, between: &str) -> Vec<String> {
    let units = (-3..=11).filter(|units| *units != 0).map(|units| f64::from(units) / 100.0);
    let numbers: Vec<String> = units.map(|number| number.to_string()).chain(["0".to_owned()]).collect();
    let mut texts = Vec::new();
    for n in 98..=101 {
        for order in orders {
            let mut begun = vec![format!("{n} ")];
            for (at, word) in order.iter().enumerate() {
                let mut longer = Vec::new();
                for text in &begun {
                    for number in &numbers {
                        let item = item.replace("{atom}", word).replace("{x}", number);
                        longer.push(format!("{text}{}{item}", if at > 0 { between } else { "" }));
                    }
                }
                begun = longer;
            }
            texts.extend(begun);
        }
    }
    texts.iter().flat_map(|text| [text.clone(), format!("{text}\n")]).collect()
}

#[test]
fn masks_are_those_of_all_texts() {
    for tokenizer in tokenizers().into_iter().chain([slots::unigram(true), slots::unigram(false)]) {
        let name = tokenizer.name.clone();
        for (item, between) in [("{atom} {x}", "\n"), ("{atom}\n{x}", ";"), ("({x}{atom},", "")] {
            let orders: [&[&str]; 2] = [&["Na", "Cl"], &["Cl", "Na"]];
            let escaped = (item.replace('\n', "\\n"), between.replace('\n', "\\n"));
            let file = small("any", "[1, 1]", &escaped.0, &escaped.1);
            let made = constraint(tokenizer.clone(), &file, &json!({"formula": "NaCl"}));
            let constraint = made.unwrap_or_else(|error| panic!("{name} {item}: {error}"));
            assert_masks(&tokenizer, &constraint, &all_texts(&orders, item, between));
        }
    }
}

/// Each text's tokens are legal, and at each place exactly those that some text's tokens go on with. `texts` are all texts.
fn assert_masks(tokenizer: &Tokenizer, constraint: &SkeletonConstraint, texts: &[String]) {
    let name = &tokenizer.name;
    let mut next: BTreeMap<Vec<u32>, BTreeSet<u32>> = BTreeMap::new();
    for text in texts {
        let mut ids = tokenizer.ids(text).unwrap();
        if name == "words" && ids.contains(&0) {
            continue;
        }
        ids.push(EOS);
        for at in 0..ids.len() {
            next.entry(ids[..at].to_vec()).or_default().insert(ids[at]);
        }
    }
    // Prefixes come before what they begin, so that each row is advanced once.
    let mut rows: BTreeMap<Vec<u32>, SkeletonRow> = BTreeMap::from([(Vec::new(), constraint.row())]);
    for (prefix, legal) in &next {
        let row = rows.remove(prefix).unwrap();
        let mask = match row.mask() {
            Mask::Forced(id) => vec![id],
            Mask::Only(ids) => ids.to_vec(),
            other => panic!("{name} {:?}: {other:?}", texts[0]),
        };
        let expected: Vec<u32> = legal.iter().copied().collect();
        let text = tokenizer.decode(prefix).unwrap();
        assert_eq!(mask, expected, "{name} {:?} behind {text:?}: {:?}", texts[0], row.problem());
        for id in legal.iter().filter(|id| **id != EOS) {
            let mut then = row.clone();
            then.advance(constraint, *id);
            rows.insert([&prefix[..], &[*id]].concat(), then);
        }
    }
}

/// Compositions are counted: in any order, in the order of the formula, and times any number between two.
#[test]
fn compositions_are_those_of_the_prompt() {
    let orders_of = |order: &str, times: &str| {
        let file = small(order, times, "{atom} {x}", "\\n");
        let made = constraint(words(), &file, &json!({"formula": "Na2Cl"})).unwrap();
        let mut all = BTreeSet::new();
        let mut waiting = vec![(made.row(), String::new())];
        let tokenizer = words();
        while let Some((row, written)) = waiting.pop() {
            let ids = match row.mask() {
                Mask::Forced(id) => vec![id],
                Mask::Only(ids) => ids.to_vec(),
                other => panic!("{other:?}"),
            };
            if ids.contains(&EOS) {
                all.insert(written.clone());
            }
            let word = |id: &u32| tokenizer.decode(&[*id]).unwrap();
            let (named, others): (Vec<u32>, Vec<u32>) =
                ids.into_iter().filter(|id| *id != EOS).partition(|id| ["Na", "Cl"].contains(&&*word(id)));
            // One number stands for all, and a line break before the end is another text of the same order.
            let others = others.into_iter().filter(|id| row.mask() != Mask::Forced(EOS) && word(id) != "-");
            for id in others.take(1).chain(named) {
                let mut then = row.clone();
                then.advance(&made, id);
                let text = word(&id);
                let text = if ["Na", "Cl"].contains(&&*text) { text } else { String::new() };
                waiting.push((then, format!("{written}{text}")));
            }
        }
        all
    };
    let set = |orders: &[&str]| orders.iter().map(|order| (*order).to_owned()).collect::<BTreeSet<String>>();
    assert_eq!(orders_of("any", "[1, 1]"), set(&["NaNaCl", "NaClNa", "ClNaNa"]));
    assert_eq!(orders_of("given", "[1, 2]"), set(&["NaNaCl", "NaNaNaNaClCl"]));
    let rows = |times: &str| {
        let file = small("rows", times, "{atom} {x}", "\\n");
        constraint(words(), &file, &json!({"formula": "NaClNa"})).unwrap()
    };
    let written = |words: &str| {
        words.split(' ').map(|word| format!("\n{word} 0.1")).collect::<String>()[1..].to_owned()
    };
    for (order, once, twice) in [
        ("Na Cl Na", true, true),
        ("Na Na Cl Cl Na Na", false, true),
        ("Na Na Cl", false, false),
        ("Na Cl Na Na Cl Na", false, false),
        ("Cl Na Na", false, false),
    ] {
        let text = format!("99 {}", written(order));
        let ids = words().ids(&text).unwrap();
        assert_eq!(rows("[1, 1]").accepts(&ids, true), once, "{order}");
        assert_eq!(rows("[1, 2]").accepts(&ids, true), twice, "{order}");
        let skeleton: Skeleton = small("rows", "[1, 2]", "{atom} {x}", "\\n").parse().unwrap();
        let data = json!({"formula": "NaClNa"});
        let reading = skeleton.bind(data.as_object().unwrap(), "prompt").unwrap().read(&text);
        assert_eq!(reading.passed(), twice, "{order}: {:?}", reading.faults);
    }
    // 3 of the first and 15 of the second multiple.
    assert_eq!(orders_of("any", "[1, 2]").len(), 3 + 15);
}

const CRYSTAL: &str = "4.0 4.0 5.6\n90 90 90\nNa\n0.12 0.34 0.00\nCl\n0.62 0.84 0.50";
const CIF: &str = "<CIF>P1\n4.69532317 4.69532317 4.75149888\n85.5376 85.5376 108.609\n\
                   Na 1 0.00000000 0.00000000 0.00000000\nCl 1 0.50000000 0.50000000 0.50000000</CIF>";
const XYZ: &str = "3\n\nC 0.00 0.00 0.00\nC 1.52 0.00 0.00\nO 2.03 1.33 0.00\n";

/// Texts as the projects write them are legal in the tokens of the encoder, and damaged ones are not.
#[test]
fn texts_of_the_projects_are_legal() {
    let smiles = json!({"smiles": "CCO"});
    for (name, prompt, text, damaged) in [
        ("crystal-text", json!({"species": ["Na", "Cl"]}), CRYSTAL, "0.12"),
        ("crystal-text", json!({"formula": "ClNa"}), CRYSTAL, "0.12"),
        ("simple-cif", json!({"formula": "NaCl"}), CIF, "0.50000000"),
        ("xyz", json!({"species": ["C", "C", "O"]}), XYZ, "1.52"),
        (
            "smiles-then-xyz",
            smiles.clone(),
            "[LIGAND] CCO [XYZ] 0.000 0.000 0.000 1.523 -0.012 0.004 2.031 1.334 -0.870",
            "1.523",
        ),
        ("3dsmiles-padded", smiles.clone(), "CCO&{0000,0000,0000{0015,0000,0000{0020,0013,-0009", "0015"),
        ("3dsmiles-plain", smiles.clone(), "CCO&{0,0,0{15,0,-1921{20,13,-9", "15"),
        ("3dsmiles-base62", smiles, "CCO&{0000zZ{0f0000{vZ0000", "zZ"),
    ] {
        // Codes have many tokens, so two tokenizers will do.
        let count = if name == "3dsmiles-base62" { 2 } else { 9 };
        for tokenizer in tokenizers().into_iter().chain([slots::unigram(false)]).take(count) {
            let made = constraint(tokenizer.clone(), name, &prompt);
            let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
            for free in ["", "Let me think.\n"].iter().take(1 + usize::from(name == "simple-cif")) {
                let ids = tokenizer.ids(&format!("{free}{text}")).unwrap();
                if !ids.contains(&0) || tokenizer.name != "words" {
                    assert!(made.accepts(&ids, true), "{name} {}: {text}", tokenizer.name);
                }
            }
            for wrong in ["-0.00", "-0", "7.77777777777", "x"] {
                let ids = tokenizer.ids(&text.replacen(damaged, wrong, 1)).unwrap();
                assert!(!made.accepts(&ids, true), "{name} {}: {wrong}", tokenizer.name);
            }
        }
    }
}

/// Before the marker every token is legal but the end of the text and those behind which no canonical text follows.
#[test]
fn text_before_a_marker_is_free() {
    for tokenizer in tokenizers() {
        let made = constraint(tokenizer.clone(), "simple-cif", &json!({"formula": "NaCl"})).unwrap();
        let mut row = made.row();
        for id in tokenizer.ids("<C CIF> 12 <CI").unwrap() {
            assert!(matches!(row.mask(), Mask::Except(ids) if ids.contains(&EOS) && !ids.contains(&id)));
            row.advance(&made, id);
        }
        assert!(matches!(row.mask(), Mask::Except(_)), "{}", tokenizer.name);
        // The whole text's own tokens lead into the described text, however they cut the marker's end.
        let ids = tokenizer.ids(&format!("So:\n{CIF}")).unwrap();
        if !(tokenizer.name == "words" && ids.contains(&0)) {
            assert!(made.accepts(&ids, true), "{}", tokenizer.name);
        }
    }
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let salt = json!({"formula": "NaCl"});
    let lacks = constraint(words(), "crystal-text", &json!({})).err().unwrap().to_string();
    assert!(lacks.contains("no field for the items `atom`"), "{lacks}");
    let unknown =
        constraint(words(), "crystal-text", &json!({"species": ["\u{3b1}"]})).err().unwrap().to_string();
    assert!(unknown.contains("no token for a word"), "{unknown}");
    let one_text =
        small("any", "[1, 1]", "{atom} {x}", "\\n").replace(r#""ends""#, r#""one_text": true, "ends""#);
    let no_text = constraint(words(), &one_text, &salt).err().unwrap().to_string();
    assert!(no_text.contains("are one text, and the prompt has none"), "{no_text}");
    let joined = json!({"formula": "NaCl", "prompt": "Write 1"});
    let joined = constraint(words(), &one_text, &joined).err().unwrap().to_string();
    assert!(joined.contains("from the prompt into the answer"), "{joined}");
    let apart = json!({"formula": "NaCl", "prompt": "Na: "});
    assert!(constraint(words(), &one_text, &apart).is_ok());
}

/// Time and memory grow with the text: whatever is built for a prompt of many atoms is built once.
#[test]
fn prompts_of_many_atoms_are_followed() {
    let tokenizer = Tokenizer::load(Path::new("qwen-like")).unwrap();
    let species: Vec<&str> = ["Na", "Cl"].into_iter().cycle().take(20_000).collect();
    let text = format!("4.0 4.0 5.6\n90 90 90{}", "\nNa\n0.12 0.34 0.50\nCl\n0.10 0.20 0.30".repeat(10_000));
    for prompt in [json!({"species": species}), json!({"formula": {"Na": 10_000, "Cl": 10_000}})] {
        let made = constraint(tokenizer.clone(), "crystal-text", &prompt).unwrap();
        assert!(made.accepts(&tokenizer.ids(&text).unwrap(), true));
        assert!(locked(&made.processor.chunks).len() < 20);
    }
}

/// The encodings of enriched SMILES that are compared.
const ENCODINGS: [&str; 7] = [
    "fixed",
    "stripped-3",
    "lines",
    "binned-v1:-21,21,0.05",
    "binned-v2:-13,13,0.104",
    "integers:10,4",
    "fsq:4096",
];

/// The molecules of texts of enriched SMILES.
const MOLECULES: [&str; 5] =
    ["C", "CCO", "C[C@H](N)C(=O)[O-]", "c1cc2c([nH]1)cc(Cl)cc2/C=C\\Br", "C%12CC%12.[Na+]"];

fn ids_of(mask: Mask<'_>) -> Vec<u32> {
    match mask {
        Mask::Forced(id) => vec![id],
        Mask::Only(ids) => ids.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Walks a random legal text of a molecule; at each place the skeleton allows what the tables of enriched SMILES allow. Returns the
/// number of places.
fn walk_beside(tables: &AutomatonProcessor, own: &Arc<SkeletonProcessor>, smiles: &str, seed: u64) -> usize {
    let name = format!("{} {} {smiles}", own.tokenizer().name, own.skeleton().name);
    let data = json!({"smiles": smiles});
    let made = own.constraint(data.as_object().unwrap(), None, "prompt");
    let made = made.unwrap_or_else(|error| panic!("{name}: {error}"));
    let molecule = tables.molecule(&from_smiles(smiles).unwrap()).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut state, mut row, mut ids) = (molecule.start(), made.row(), Vec::new());
    loop {
        let legal = ids_of(molecule.mask(&state));
        assert_eq!(ids_of(row.mask()), legal, "{name} behind {:?}", own.tokenizer().decode(&ids).unwrap());
        let id = legal[random.random_range(0..legal.len())];
        if id == made.eos() {
            return ids.len();
        }
        molecule.advance(&mut state, id);
        row.advance(&made, id);
        ids.push(id);
    }
}

/// Enriched SMILES is a skeleton: at every prefix its masks are those of the tables, also where a token joins prompt and answer, and
/// where the last tag ends the text. Whatever tokenizer the tables take, the skeleton takes.
#[test]
fn masks_of_enriched_smiles_are_those_of_the_tables() {
    let is_all = std::env::var_os("DRIFT_ALL").is_some();
    let names = ["qwen3", "llama-3.2", "qwen3-custom", "llama-3.2-chem", "mistral-v1", "gemma3"];
    let real = names.map(|name| PathBuf::from(shared()).join("tokenizers").join(name));
    // Gemma 3 has many tokens, and takes as long as all others; its kind is among the fixtures.
    let real = real.into_iter().take(names.len() - usize::from(!is_all));
    let real: Vec<PathBuf> = real.collect();
    let real = real.iter().filter(|path| path.is_dir()).map(|path| Tokenizer::load(path).unwrap());
    let names = ["llama-2-like-untagged", "border-open-minus", "border-bracket-minus"].map(fixture);
    let (mut walked, mut compared, mut pairs) = (0, 0, 0);
    for tokenizer in tokenizers().into_iter().filter(|one| one.name != "words").chain(names).chain(real) {
        let tokenizer = Arc::new(tokenizer);
        let close = tokenizer.vocabulary_id("[/CONFORMER]");
        let form = |encoding: &'static str| (encoding, Some(u32::MAX - 2));
        for (encoding, eos) in ENCODINGS.map(form).into_iter().chain([("fixed-2", close)]) {
            let Some(eos) = eos else { continue };
            // Every third pair, two molecules each, which take turns; DRIFT_ALL=1 tries all of both.
            pairs += 1;
            if !is_all && pairs % 3 != 0 {
                continue;
            }
            let tables = AutomatonProcessor::new(tokenizer.clone(), encoding.parse().unwrap(), eos);
            let Ok(tables) = tables else { continue };
            let skeleton = Skeleton::load(Path::new(&format!("enriched-smiles:{encoding}"))).unwrap();
            let own = SkeletonProcessor::new(tokenizer.clone(), Arc::new(skeleton), eos).unwrap();
            let own = Arc::new(own);
            compared += 1;
            let is_next = |at: usize| is_all || (at + compared) % MOLECULES.len() < 2;
            let some = MOLECULES.iter().zip(0..).filter(|(_, seed)| is_next(*seed as usize));
            let walks = some.map(|(smiles, seed)| walk_beside(&tables, &own, smiles, seed));
            walked += walks.sum::<usize>();
        }
    }
    println!("{walked} masks of {compared} tokenizers and encodings");
    assert!(walked > 1_500 && compared >= if is_all { 40 } else { 12 }, "{walked} {compared}");
}
