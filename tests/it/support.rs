//! What several subjects need: the shared data where it is present.

use std::path::{Path, PathBuf};

/// The folder of shared development data: `$DRIFT_SHARED`, else `../shared` beside the checkout. `None`, with a line
/// that says what was skipped, where it is absent.
pub fn shared(what: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("DRIFT_SHARED").map_or_else(beside, PathBuf::from);
    if folder.join("tokenizers").is_dir() {
        Some(folder)
    } else {
        eprintln!("skipped: {what} (needs ../shared or DRIFT_SHARED)");
        None
    }
}

/// The names of the shared tokenizers.
pub const SHARED_TOKENIZERS: [&str; 6] =
    ["qwen3", "qwen3-custom", "llama-3.2", "llama-3.2-chem", "cl100k", "mistral-v1"];

/// Every shared text in a dialect, `embedded_smiles` or `embedded_smiles_stripped`, without tags.
pub fn shared_texts(shared: &Path, field: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for file in ["geom_conformers.jsonl", "xtb_moses_aq.jsonl.gz", "etkdg_drugs_test.jsonl.gz"] {
        let reader = drift::io::open(&shared.join("geom").join(file)).unwrap();
        for line in std::io::BufRead::lines(reader) {
            let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            texts.push(row[field].as_str().unwrap().to_owned());
        }
    }
    texts
}
