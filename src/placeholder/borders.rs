//! Where blocks end in tokens: what must hold for replay to say what a position template does.
//!
//! A template forces its COPY tokens. If one of them held a digit or a sign of a block (`<0.`, `00>`, `]<-`), the
//! template would force part of the number, and a real block would be cut elsewhere than replay says. Such a tokenizer
//! is refused. Where no token crosses a bracket, the tokens inside a block do not depend on what is outside: a model
//! that only merges or joins tokens of its vocabulary makes of `…<` and `…>` around a block what it makes of them alone.
//! So F depends on the placeholder alone. Pre-tokenizers are expressions and could look further; therefore F is also
//! compared after every atom of the corpus, and in whole texts.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::error::Result;
use crate::text::Dialect;
use crate::tokenizer::{BlockTokens, InBlocks, Tokenizer};

/// Tokens that hold characters of a block and others; in order, each once.
pub type Crossing = BTreeSet<String>;

/// The tokens of each block of a text, by the reference; or the tokens that cross a bracket.
pub struct Inside {
    /// FREE tokens of each block; whole only if nothing crosses.
    pub blocks: Vec<BlockTokens>,
    /// COPY tokens with characters of a block.
    pub crossing: Crossing,
}

/// Encodes a text and looks at its blocks.
///
/// # Errors
/// If the tokenizer cannot encode the text, or a block has more tokens than a record holds.
pub fn inside(tokenizer: &Tokenizer, text: &str) -> Result<Inside> {
    let InBlocks { ends, copied } = tokenizer.in_blocks(text)?;
    let blocks = ends.iter().map(|ends| BlockTokens::of(ends, tokenizer)).collect::<Result<_>>()?;
    Ok(Inside { blocks, crossing: copied.into_iter().map(|token| token.text).collect() })
}

/// What the borders of blocks look like behind every atom of a corpus.
pub struct Borders {
    /// Tokens that cross a bracket.
    pub crossing: Crossing,
    /// An atom after which a block takes other tokens than after `[C]`.
    pub depends_on: Option<Box<str>>,
}

/// Blocks with and without a sign, as writers write them.
fn probes(dialect: Dialect) -> [&'static str; 4] {
    match dialect {
        Dialect::Fixed => [
            "0.1234,5.6789,0.0120",
            "-0.1234,-5.6789,-10.0120",
            "12.3400,0.0000,-1.0000",
            "-0.0000,0.0000,0.0000",
        ],
        Dialect::Stripped => ["0.1234,5.6789,0.012", "-0.1234,-5.6,-10", "12.34,0,-1", "-1,0,0"],
    }
}

/// Looks at a block after every atom.
///
/// # Errors
/// If the tokenizer cannot encode an atom.
pub fn borders(tokenizer: &Tokenizer, atoms: &BTreeSet<Box<str>>, dialect: Dialect) -> Result<Borders> {
    let text = |atom: &str| -> String {
        let blocks = probes(dialect).map(|probe| format!("{atom}<{probe}>"));
        format!("[C]<{}>{}[C]<{}>", probes(dialect)[0], blocks.concat(), probes(dialect)[0])
    };
    let free = |found: &Inside| found.blocks.iter().map(|block| block.free).collect::<Vec<_>>();
    let usual = inside(tokenizer, &text("[C]"))?;
    let atoms: Vec<&Box<str>> = atoms.iter().collect();
    let looked: Vec<Inside> =
        atoms.par_iter().map(|atom| inside(tokenizer, &text(atom))).collect::<Result<_>>()?;
    let depends_on = atoms.iter().zip(&looked).find(|(_, found)| free(found) != free(&usual));
    let depends_on = depends_on.map(|(atom, _)| (*atom).clone());
    let mut crossing = usual.crossing;
    looked.into_iter().for_each(|found| crossing.extend(found.crossing));
    Ok(Borders { crossing, depends_on })
}
