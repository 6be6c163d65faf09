//! Slots that the tokenizer cuts out of the text whole, and Unigram models.

use super::*;

/// A tokenizer with these added tokens.
fn with_added(base: &str, texts: impl Iterator<Item = String>) -> Tokenizer {
    let (base, json) = Tokenizer::load_with_json(Path::new(base)).unwrap();
    let mut json: Value = serde_json::from_slice(&json).unwrap();
    let added = json["added_tokens"].as_array_mut().unwrap();
    for (id, content) in (base.rows()..).zip(texts) {
        let flags = ["single_word", "lstrip", "rstrip", "normalized", "special"];
        let mut token = Map::from_iter(flags.map(|flag| (flag.to_owned(), json!(false))));
        token.extend([("id".to_owned(), json!(id)), ("content".to_owned(), json!(content))]);
        added.push(Value::Object(token));
    }
    let bytes = json.to_string().into_bytes();
    Tokenizer::from_bytes("added", hash_bytes("added", &bytes), &bytes).unwrap()
}

/// A Unigram model of characters and words, and perhaps of pairs of digits. No two segmentations have equal scores.
pub(super) fn unigram(has_pairs: bool) -> Tokenizer {
    let mut pieces =
        vec!["<unk>".to_owned(), "<|endoftext|>".to_owned(), "\n".to_owned(), "\u{2581}".to_owned()];
    pieces.extend(('!'..='~').map(|c| c.to_string()));
    pieces.extend(["Na", "Cl", "\u{2581}0", "\u{2581}-", "CIF"].map(str::to_owned));
    pieces.extend((0..if has_pairs { 100 } else { 0 }).map(|number| format!("{number:02}")));
    let vocab: Vec<Value> =
        pieces.iter().zip(1..).map(|(piece, at)| json!([piece, -f64::from(at).sqrt()])).collect();
    let space =
        json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true});
    let json = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": space, "post_processor": null, "decoder": space,
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false},
    });
    let bytes = json.to_string().into_bytes();
    Tokenizer::from_bytes("unigram", hash_bytes("unigram", &bytes), &bytes).unwrap()
}

fn bins(count: usize) -> Tokenizer {
    with_added("qwen-like", (0..count).map(|bin| format!("{bin:03}")))
}

/// At every prefix of random texts the masks are those of the tables; each constraint compares itself with the encoder, too.
#[test]
fn masks_are_those_of_the_tables_where_slots_are_cut_out() {
    let load = |name: &str| Tokenizer::load(Path::new(name)).unwrap();
    let codes = with_added("qwen-like", (0..4096).map(|code| format!("<{code}>")));
    let unigram = || fixture("unigram-digits-like");
    let bins_of = "binned-v2:-13,13,0.104";
    let mut walked = 0;
    for (tokenizer, encoding) in [
        (load("qwen-like-fused"), "fixed"),
        (load("qwen-like-separate"), "fixed"),
        (load("llama-like-fused"), "fixed"),
        (bins(251), bins_of),
        // The last bins have no token, and are written in digits.
        (bins(240), bins_of),
        (codes, "fsq:4096"),
        (unigram(), "fixed"),
        (unigram(), "stripped-3"),
        (unigram(), "integers:10,4"),
    ] {
        let (tokenizer, eos) = (Arc::new(tokenizer), u32::MAX - 2);
        let tables = AutomatonProcessor::new(tokenizer.clone(), encoding.parse().unwrap(), eos).unwrap();
        let skeleton = Skeleton::load(Path::new(&format!("enriched-smiles:{encoding}"))).unwrap();
        let own = SkeletonProcessor::new(tokenizer.clone(), Arc::new(skeleton), eos);
        let own = Arc::new(own.unwrap_or_else(|error| panic!("{} {encoding}: {error}", tokenizer.name)));
        let all = MOLECULES.iter().zip(0..);
        walked += all.map(|(smiles, seed)| walk_beside(&tables, &own, smiles, seed)).sum::<usize>();
    }
    println!("{walked} masks");
    assert!(walked > 2_000, "{walked}");
}

/// The same of a skeleton of a user, whose bins are tokens: all texts are known.
#[test]
fn bins_as_tokens_are_followed_in_other_skeletons() {
    let file = r#"{"schema": "drift.skeleton/1", "name": "small",
        "slots": {"x": {"kind": "bins", "low": 0, "step": 1, "bins": 12, "width": 3}}, "text": ["a{x}{x};b"]}"#;
    for count in [12, 9] {
        let tokenizer = bins(count);
        let made = constraint(tokenizer.clone(), file, &json!({})).unwrap();
        let mut next: BTreeMap<Vec<u32>, BTreeSet<u32>> = BTreeMap::new();
        for x in 0..12 {
            for y in 0..12 {
                let mut ids = tokenizer.ids(&format!("a{x:03}{y:03};b")).unwrap();
                ids.push(EOS);
                (0..ids.len()).for_each(|at| _ = next.entry(ids[..at].to_vec()).or_default().insert(ids[at]));
            }
        }
        for (prefix, legal) in next {
            let mut row = made.row();
            prefix.iter().for_each(|id| row.advance(&made, *id));
            assert_eq!(ids_of(row.mask()), legal.into_iter().collect::<Vec<u32>>(), "{count} {prefix:?}");
        }
    }
}

/// Texts of crystals in a Unigram model, and a refusal of what it may cut in two ways.
#[test]
fn unigram_models_are_followed_where_they_are_decided() {
    let salt = json!({"formula": "NaCl"});
    let molecule = json!({"smiles": "CO"});
    let error = constraint(fixture("unigram-like"), "enriched-smiles", &molecule).err().unwrap().to_string();
    assert!(error.contains("are equally likely"), "{error}");
    // Its normalizer makes a space of each line break.
    let error = constraint(fixture("unigram-digits-like"), "crystal-text", &salt).err().unwrap().to_string();
    assert!(error.contains("its normalizer changes"), "{error}");
    // Eight decimals are more pairs of digits than can be listed.
    let error = constraint(unigram(true), "simple-cif", &salt).err().unwrap().to_string();
    assert!(error.contains("in too many ways for a Unigram model"), "{error}");
}
