//! Counts equal the reference, `tokenizers` `encode` with offsets, on real text.

use drift::text::tagged;
use drift::tokenizer::{Counter, Method, Tokenizer};
use rayon::prelude::*;

use crate::support::{SHARED_TOKENIZERS, shared, shared_texts};

/// Compares fast and reference counts and ends on texts; returns the number of blocks.
fn compare(tokenizer: &Tokenizer, counter: &Counter, texts: &[String]) -> usize {
    texts
        .par_iter()
        .map(|text| {
            let text = tagged(text);
            let expected = tokenizer.free_ends(&text).unwrap();
            let (mut counts, mut tokens) = (Vec::new(), Vec::new());
            counter.count(&text, &mut counts).unwrap();
            counter.tokens(&text, &mut tokens).unwrap();
            assert_eq!(counts.len(), expected.len());
            for ((ends, count), block) in expected.iter().zip(&counts).zip(&tokens) {
                assert_eq!(ends.len(), usize::from(*count), "{}: {text}", tokenizer.name);
                let found: Vec<usize> =
                    block.ends[..usize::from(block.free)].iter().map(|e| usize::from(*e)).collect();
                assert_eq!(*ends, found, "{}: {text}", tokenizer.name);
            }
            counts.len()
        })
        .sum()
}

#[test]
fn equals_tokenizers_on_all_shared_conformers() {
    let Some(shared) = shared("equality with the real tokenizers on the shared conformers") else { return };
    let mut blocks = 0;
    for name in SHARED_TOKENIZERS {
        let tokenizer = Tokenizer::load(&shared.join("tokenizers").join(name)).unwrap();
        let counter = Counter::new(&tokenizer, []).unwrap();
        assert!(matches!(counter.method(), Method::Tables { .. }), "{name}: {:?}", counter.method());
        for field in ["embedded_smiles", "embedded_smiles_stripped"] {
            blocks += compare(&tokenizer, &counter, &shared_texts(&shared, field));
        }
    }
    eprintln!("{blocks} block counts compared, 0 differences");
    assert!(blocks > 800_000);
}
