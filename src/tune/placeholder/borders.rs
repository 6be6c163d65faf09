//! The borders of blocks in tokens: the conditions under which replay correctly predicts the effect of a position template.
//!
//! A template forces its COPY tokens. If one of them contained a digit or a sign of a block (`<0.`, `00>`, `]<-`), the template
//! would force part of the number, and a real block would be cut differently from what replay assumes. Such a tokenizer is refused.
//! An extended tokenizer isolates the blocks of its range. Blocks outside its range may still have such tokens, and are counted as
//! lost. If no token crosses a bracket, the tokens inside a block do not depend on the text outside: a model that only merges or
//! joins tokens of its vocabulary encodes the parts `…<` and `…>` around a block as it does on their own. So F depends only on the
//! placeholder. Pre-tokenizers are expressions and could look further. Therefore F is also compared after every atom of the corpus,
//! and in whole texts.

use std::collections::BTreeSet;

use rayon::prelude::*;

use drift_core::encoding::Fixed;
use drift_core::text::skeleton;
use drift_core::tokenizer::{BlockTokens, InBlocks};
use drift_core::{Encoding, Result, Tokenizer};

/// The tokens that contain characters of a block and other characters; sorted, each once.
pub type CrossingTokens = BTreeSet<String>;

/// The tokens of each block of a text according to the reference tokenizer, and the tokens that cross a bracket.
pub struct EncodedBlocks {
    /// The FREE tokens of each block; complete only if no token crosses a bracket.
    pub blocks: Vec<BlockTokens>,
    /// The COPY tokens that contain characters of a block.
    pub crossing: CrossingTokens,
    /// For each block, whether it has such a token.
    pub crossed: Vec<bool>,
}

/// Encodes a text and examines its slots in this encoding.
///
/// # Errors
/// If the tokenizer cannot encode the text, or a block has more tokens than a record holds.
pub fn inside(tokenizer: &Tokenizer, text: &str, encoding: Encoding) -> Result<EncodedBlocks> {
    let InBlocks { ends, copied } = tokenizer.in_slots(text, encoding)?;
    let blocks = ends.iter().map(|ends| BlockTokens::from_ends(ends, tokenizer)).collect::<Result<_>>()?;
    // Most texts have no such token, so their slots need not be searched again.
    let mut crossed = vec![false; ends.len()];
    if !copied.is_empty() {
        let slots = encoding
            .slot_ranges(text)
            .into_iter()
            .map(|slot| copied.iter().any(|token| slot.start.max(token.start) < slot.end.min(token.end)));
        crossed = slots.collect();
    }
    Ok(EncodedBlocks { blocks, crossing: copied.into_iter().map(|token| token.text).collect(), crossed })
}

/// The borders of blocks after every atom of a corpus.
pub struct Borders {
    /// The tokens that cross a bracket.
    pub crossing: CrossingTokens,
    /// Whether tokens cross brackets even in small blocks with all decimals, with and without signs. In an extended tokenizer they
    /// do not, because it isolates these blocks; there, tokens of the base cross brackets only in other blocks.
    pub in_small_blocks: bool,
    /// An atom after which a block takes different tokens than after `[C]`.
    pub depends_on: Option<Box<str>>,
}

/// Positions with and without signs, of one and two digits before the point, in Å. Digits behind those that an encoding keeps are cut.
const POSITIONS: [[f64; 3]; 4] = [
    [0.1234567, 5.678912, 0.01234567],
    [-0.1234567, -5.678912, -10.01234567],
    [12.345678, 0.0, -1.0],
    [-1.0, 0.0, 0.0],
];

/// Positions below 1 Å, in Å.
const SMALL: [[f64; 3]; 2] = [[0.1234567, 0.5678912, 0.01234567], [-0.1234567, -0.5678912, -0.01234567]];

/// Returns the insides of slots of decimals at these positions, as writers write them.
fn written(encoding: Encoding, positions: &[[f64; 3]]) -> Vec<String> {
    let slot = |position: &[f64; 3]| Some(encoding.numbers_text(&encoding.quantize(*position).ok()?));
    // Decimals hold positions of some Å with any number of digits behind the point, so none is left out.
    positions.iter().filter_map(slot).collect()
}

/// Returns whether position templates can be used, judged by blocks after a few atoms.
///
/// # Errors
/// If the tokenizer cannot encode an atom.
pub fn takes_templates(tokenizer: &Tokenizer, encoding: Encoding) -> Result<bool> {
    let atoms = ["[C]", "[C@@H]", "[O-]"].map(Box::from).into();
    let found = borders(tokenizer, &atoms, encoding)?;
    Ok(found.crossing.is_empty() || !found.in_small_blocks)
}

/// Slots with the smallest, the largest and two more values.
fn probes_of_values(encoding: Encoding) -> Vec<String> {
    let places = [[0, 1], [1, 1], [1, 2], [1, 3]].map(|[numerator, denominator]: [Fixed; 2]| {
        encoding.numbers_text(&std::array::from_fn(|axis| {
            let (low, high) = encoding.number().limits(axis);
            low + (high - low) / denominator * numerator
        }))
    });
    places.into()
}

/// Examines example blocks after every atom.
///
/// # Errors
/// If the tokenizer cannot encode an atom.
pub fn borders(tokenizer: &Tokenizer, atoms: &BTreeSet<Box<str>>, encoding: Encoding) -> Result<Borders> {
    let probes =
        if encoding.is_decimal() { written(encoding, &POSITIONS) } else { probes_of_values(encoding) };
    let slot = |atom: &str, probe: &str| skeleton::fill(&format!("{atom}<>"), probe, encoding);
    // Slots at both ends, so that each example has an atom and a slot on both sides, as in a text.
    let text = |atom: &str| -> String {
        let blocks: String = probes.iter().map(|probe| slot(atom, probe)).collect();
        format!("{}{blocks}{}", slot("[C]", &probes[0]), slot("[C]", &probes[0]))
    };
    let free = |found: &EncodedBlocks| found.blocks.iter().map(|block| block.free).collect::<Vec<_>>();
    // Placeholders are counted after the atom `[C]` ([`super::free_tokens`]), so F is correct wherever a block agrees with it.
    let usual = inside(tokenizer, &text("[C]"), encoding)?;
    let atoms: Vec<&Box<str>> = atoms.iter().collect();
    let looked: Vec<EncodedBlocks> =
        atoms.par_iter().map(|atom| inside(tokenizer, &text(atom), encoding)).collect::<Result<_>>()?;
    let depends_on = atoms.iter().zip(&looked).find(|(_, found)| free(found) != free(&usual));
    let depends_on = depends_on.map(|(atom, _)| (*atom).clone());
    let mut crossing = usual.crossing;
    looked.into_iter().for_each(|found| crossing.extend(found.crossing));
    let small = if encoding.is_decimal() { written(encoding, &SMALL) } else { Vec::new() };
    // Encodings that are not decimal have no small blocks to examine, so any crossing counts.
    let mut in_small_blocks = !crossing.is_empty() && small.is_empty();
    for atom in atoms.iter().filter(|_| !crossing.is_empty()) {
        for numbers in &small {
            let text = format!("{}{}", slot(atom, numbers), slot("[C]", numbers));
            in_small_blocks |= !inside(tokenizer, &text, encoding)?.crossing.is_empty();
        }
    }
    Ok(Borders { crossing, in_small_blocks, depends_on })
}
