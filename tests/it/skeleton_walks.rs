//! Random walks over the legal tokens of each built-in skeleton: each text is legal, has the composition of its prompt, and has the
//! tokens that `tokenizers` gives it. DRIFT_ALL=1 walks 1,000 times each with real tokenizers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drift::constraint::Mask;
use drift::constraint::skeleton::{SkeletonConstraint, SkeletonProcessor};
use drift::skeleton::{BUILT_IN, Skeleton};
use drift::tokenizer::Tokenizer;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde_json::{Value, json};
use tokenizers::ModelWrapper;

use crate::bases::fixture;
use crate::support::{Folder, shared};

/// The end of a text, which no text holds.
const EOS: u32 = u32::MAX - 2;

/// Prompts with all fields that the skeletons need.
fn prompts() -> [Value; 2] {
    [
        json!({"formula": "Na2Cl", "smiles": "C[C@H](N)C(=O)[O-]"}),
        json!({"formula": "BaTiO3", "species": ["Ba", "Ti", "O", "O", "O"], "smiles": "C1CC1O"}),
    ]
}

/// A folder with a map of words, in which every text can be written.
fn words(folder: &Folder) -> Tokenizer {
    let mut all = vec!["<unk>".to_owned(), "\n".to_owned()];
    all.extend((' '..='~').map(String::from));
    all.extend(
        ["Na", "Cl", "Ba", "Ti", "_cell", "_cell_length_a", "data_", "  ", "loop_"].map(str::to_owned),
    );
    let map: serde_json::Map<String, Value> =
        all.into_iter().zip(0..).map(|(word, id)| (word, json!(id))).collect();
    folder.file("vocabulary.json", Value::Object(map).to_string());
    Tokenizer::load(&folder.path()).unwrap()
}

/// Tokens before the described text, up to the marker, and text of `skeleton` behind them.
fn free_tokens(tokenizer: &Tokenizer, skeleton: &Skeleton) -> Vec<u32> {
    let begun = |marker: &String| tokenizer.ids(&format!("So:\n{marker}P1\n4.69532317")).unwrap();
    skeleton.marker.as_ref().map(begun).unwrap_or_default()
}

/// Returns the tokens of a random legal text.
fn walk(constraint: &SkeletonConstraint, free: &[u32], random: &mut ChaCha8Rng) -> Vec<u32> {
    let (mut row, mut ids) = (constraint.row(), Vec::new());
    loop {
        let id = match row.mask() {
            Mask::Except(forbidden) => {
                let id = free[ids.len()];
                assert!(!forbidden.contains(&id));
                id
            }
            Mask::Forced(id) => id,
            Mask::Only(legal) if !legal.is_empty() => legal[random.random_range(0..legal.len())],
            other => panic!("{other:?} behind {ids:?}: {:?}", row.problem()),
        };
        if id == EOS {
            return ids;
        }
        row.advance(constraint, id);
        ids.push(id);
    }
}

/// Walks so many times with each prompt; returns the number of tokens. The error says why the tokenizer is refused.
fn walked(tokenizer: &Arc<Tokenizer>, name: &str, walks: u64) -> drift::Result<usize> {
    let place = format!("{} {name}", tokenizer.name);
    let skeleton = Skeleton::load(Path::new(name)).unwrap();
    let free = free_tokens(tokenizer, &skeleton);
    let processor = SkeletonProcessor::new(tokenizer.clone(), Arc::new(skeleton.clone()), EOS);
    let processor = Arc::new(processor.unwrap_or_else(|error| panic!("{place}: {error}")));
    let encode = |text: &str, special| tokenizer.inner().encode(text, special).unwrap().get_ids().to_vec();
    // What the tokenizer puts before a text; some put a token behind it too.
    let (own, whole) = (encode("x", false), encode("x", true));
    let prefix = whole.windows(own.len()).position(|ids| ids == own).unwrap();
    let of_prompt = |prompt: &Value| {
        let data = prompt.as_object().unwrap();
        let constraint = processor.constraint(data, None, "prompt")?;
        let bound = skeleton.bind(data, "prompt").unwrap();
        let before =
            if skeleton.one_text { constraint.prompt_ids().unwrap().split_off(prefix) } else { Vec::new() };
        let prompt = bound.prompt.clone().filter(|_| skeleton.one_text).unwrap_or_default();
        let each = |seed: u64| {
            let ids = walk(&constraint, &free, &mut ChaCha8Rng::seed_from_u64(seed));
            let whole = [&before[..], &ids].concat();
            let text = tokenizer.inner().decode(&whole, false).unwrap();
            assert_eq!(encode(&text, false), whole, "{place}: {text}");
            let answer = text.strip_prefix(&prompt).unwrap_or_else(|| panic!("{place}: {text}"));
            let reading = bound.read(answer);
            assert!(reading.passed(), "{place}: {:?} {answer}", reading.faults);
            ids.len()
        };
        Ok((0..walks).into_par_iter().map(each).sum::<usize>())
    };
    prompts().iter().map(of_prompt).sum()
}

/// Walks with each built-in skeleton; with `some`, each tokenizer with every third.
fn walk_all(tokenizers: Vec<Tokenizer>, walks: u64, some: bool) {
    for (at, tokenizer) in tokenizers.into_iter().map(Arc::new).enumerate() {
        for (name, _) in BUILT_IN.iter().skip(if some { at % 3 } else { 0 }).step_by(if some { 3 } else { 1 })
        {
            // Numbers in letters and digits hold any word of letters.
            let is_refused = matches!(tokenizer.inner().get_model(), ModelWrapper::WordLevel(_))
                && *name == "3dsmiles-base62";
            match walked(&tokenizer, name, walks) {
                Ok(tokens) => eprintln!("{} {name}: {tokens} tokens of {} walks", tokenizer.name, 2 * walks),
                Err(error) => {
                    assert!(is_refused && error.to_string().contains("its word `"), "{name}: {error}");
                }
            }
        }
    }
}

#[test]
fn random_walks_are_canonical_and_as_asked() {
    let folder = Folder::new();
    let load = |name: &str| Tokenizer::load(Path::new(name)).unwrap();
    let [gemma, gpt2, llama_2] = ["gemma-like", "gpt2-like", "llama-2-like-untagged"]
        .map(|name| Tokenizer::load(&fixture(name)).unwrap());
    let all = vec![gemma, load("qwen-like"), load("llama-like"), words(&folder), gpt2, llama_2];
    walk_all(all, 2, true);
}

#[test]
#[cfg_attr(not(all(has_shared, all_tests)), ignore = "needs the real tokenizers, takes long: DRIFT_ALL=1")]
fn a_thousand_random_walks_with_real_tokenizers() {
    let folder = Folder::new();
    let real =
        ["qwen3", "llama-3.2", "mistral-v1", "roberta"].map(|name| shared().join("tokenizers").join(name));
    let real = real.iter().map(|path: &PathBuf| Tokenizer::load(path).unwrap());
    walk_all(real.chain([words(&folder)]).collect(), 500, false);
}

/// The tokens of texts of 100,000 atoms are legal. What that takes is printed.
#[test]
#[cfg_attr(not(all(has_shared, all_tests)), ignore = "needs the real tokenizers, takes long: DRIFT_ALL=1")]
fn prompts_of_a_hundred_thousand_atoms_are_followed() {
    const ATOMS: usize = 100_000;
    let text =
        format!("4.0 4.0 5.6\n90 90 90{}", "\nNa\n0.12 0.34 0.50\nCl\n0.10 0.20 0.30".repeat(ATOMS / 2));
    let species: Vec<&str> = ["Na", "Cl"].into_iter().cycle().take(ATOMS).collect();
    for name in ["qwen3", "llama-3.2", "mistral-v1"] {
        let tokenizer = Arc::new(Tokenizer::load(&shared().join("tokenizers").join(name)).unwrap());
        let ids = tokenizer.ids(&text).unwrap();
        let skeleton = Arc::new(Skeleton::load(Path::new("crystal-text")).unwrap());
        let processor = Arc::new(SkeletonProcessor::new(tokenizer.clone(), skeleton, EOS).unwrap());
        for prompt in [json!({"species": species}), json!({"formula": {"Na": ATOMS / 2, "Cl": ATOMS / 2}})] {
            let began = std::time::Instant::now();
            let constraint = processor.constraint(prompt.as_object().unwrap(), None, "prompt").unwrap();
            let mut row = constraint.row();
            for id in &ids {
                assert!(row.mask().allows(*id), "{name}");
                row.advance(&constraint, *id);
            }
            assert!(row.mask().allows(EOS), "{name}");
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim();
            eprintln!(
                "{name}: {} tokens in {:.1} s, at most {peak}",
                ids.len(),
                began.elapsed().as_secs_f64()
            );
        }
    }
}
