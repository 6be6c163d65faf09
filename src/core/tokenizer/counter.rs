//! The counter: it uses tables if they are proved and checked, and the reference encoding otherwise.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::block_tokens::{BlockTokens, block_tokens};
use super::load::Tokenizer;
use super::tables::Tables;
use crate::encoding::{Encoding, Fixed, Precision};
use crate::error::{Error, Result};
use crate::text::{self};

/// The method of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// Tables, which agreed with the reference on this many blocks.
    Tables {
        /// The number of blocks compared before use.
        verified_blocks: u64,
    },
    /// Encoding of every text: slower, but exact by definition.
    Encode {
        /// The reason why there are no tables.
        reason: String,
    },
}

/// Counts the FREE tokens of each block of a text, in context, exactly.
pub struct Counter<'t> {
    tokenizer: &'t Tokenizer,
    encoding: Encoding,
    tables: Option<Tables>,
    method: Method,
}

impl<'t> Counter<'t> {
    /// Learns tables from the tokenizer and checks them on whole texts. The texts are `skeletons` (a sample of the corpus) and
    /// built-in skeletons with every left context, filled with random coordinates, fixed and stripped. If a table cannot be proved or
    /// a check fails, the counter encodes every text.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the format's characters.
    pub fn new<'s>(tokenizer: &'t Tokenizer, skeletons: impl IntoIterator<Item = &'s str>) -> Result<Self> {
        Counter::for_encoding(tokenizer, Encoding::FIXED, skeletons)
    }

    /// Returns a counter for blocks in an encoding. Tables exist only for decimals in brackets with commas; for other slots the counter
    /// encodes every text.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_encoding<'s>(
        tokenizer: &'t Tokenizer,
        encoding: Encoding,
        skeletons: impl IntoIterator<Item = &'s str>,
    ) -> Result<Self> {
        let encode =
            |reason| Counter { tokenizer, encoding, tables: None, method: Method::Encode { reason } };
        if !encoding.is_bracketed() || encoding.separator() != "," {
            return Ok(encode("tables cover only blocks in brackets with commas".into()));
        }
        if !encoding.is_decimal() {
            return Ok(encode("tables cover only decimals".into()));
        }
        let tables = match Tables::learn(tokenizer, encoding.precision())? {
            Ok(tables) => tables,
            Err(reason) => return Ok(encode(reason)),
        };
        let skeletons = BUILT_IN_SKELETONS.iter().copied().chain(skeletons);
        Ok(match verify(tokenizer, &tables, encoding.precision(), skeletons)? {
            Ok(verified_blocks) => {
                let (tables, method) = (Some(tables), Method::Tables { verified_blocks });
                Counter { tokenizer, encoding, tables, method }
            }
            Err(reason) => encode(reason),
        })
    }

    /// Returns a counter that always encodes: the reference.
    pub fn reference(tokenizer: &'t Tokenizer) -> Self {
        let method = Method::Encode { reason: "asked for".into() };
        Counter { tokenizer, encoding: Encoding::FIXED, tables: None, method }
    }

    /// Returns the encoding whose slots are counted.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the tokenizer that is counted for.
    pub fn tokenizer(&self) -> &'t Tokenizer {
        self.tokenizer
    }

    /// Returns the method of this counter.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Appends the number of FREE tokens (T) of each block of `text` to `out`.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text, or a block has more tokens than fit into 16 bits.
    pub fn count(&self, text: &str, out: &mut Vec<u16>) -> Result<()> {
        let before = out.len();
        if let Some(tables) = &self.tables
            && tables.count(self.tokenizer, text.as_bytes(), out).is_some()
        {
            return Ok(());
        }
        out.truncate(before);
        // The tables may have given up after some blocks, which are counted again with the rest.
        let found = self.tokenizer.in_slots(text, self.encoding)?;
        for ends in &found.ends {
            let free = u16::try_from(ends.len()).map_err(|_| {
                let problem = format!("a block takes {} tokens", ends.len());
                Error::input(&self.tokenizer.name, problem, format!("give blocks of {} at most", u16::MAX))
            })?;
            out.push(free);
        }
        Ok(())
    }

    /// Appends the FREE tokens of each block of `text` to `out`, with their ends.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text, or a block has more than [`MAX_BLOCK_TOKENS`](crate::tokenizer::MAX_BLOCK_TOKENS).
    pub fn tokens(&self, text: &str, out: &mut Vec<BlockTokens>) -> Result<()> {
        let before = out.len();
        if let Some(tables) = &self.tables
            && tables.tokens(self.tokenizer, text.as_bytes(), out).is_some()
        {
            return Ok(());
        }
        out.truncate(before);
        for ends in self.tokenizer.in_slots(text, self.encoding)?.ends {
            out.push(BlockTokens::from_ends(&ends, self.tokenizer)?);
        }
        Ok(())
    }
}

/// Skeletons with every kind of border: charges, stereo, isotopes, ring digits, branches and bonds.
pub const BUILT_IN_SKELETONS: [&str; 6] = [
    "[C]<>[C]<>=[O]<>",
    "[O-]<>[N+]<>(=[O]<>)[c]<>1[c]<>[c]<>[nH]<>[c]<>1[C@@H]<>([NH3+]<>)[C@]<>2([C@H]<>)[C]<>2",
    "[F]<>/[C]<>=[C]<>\\[Cl]<>.[Na+]<>.[Cl-]<>.[Fe+2]<>.[O-2]<>",
    "[13CH3]<>[C]<>#[N]<>.[2H]<>[O]<>.[Br]<>[C@@]<>%10([C]<>)[C]<>%10",
    "[n+]<>1([O-]<>)[c]<>([Si]<>)[s]<>[c]<>1-[c]<>1[o]<>[c]<>[c]<>1",
    "[B-]<>([F]<>)([F]<>)[P@@]<>(=[O]<>)[S@+]<>([O-]<>)[Se]<>[I]<>",
];

/// The least number of blocks that are compared before a tokenizer's tables are used.
const VERIFIED_BLOCKS: u64 = 4_000;

/// Compares tables and reference. Returns the number of compared blocks, or the first difference.
fn verify<'s>(
    tokenizer: &Tokenizer,
    tables: &Tables,
    precision: Precision,
    skeletons: impl Iterator<Item = &'s str>,
) -> Result<std::result::Result<u64, String>> {
    let skeletons: Vec<&str> = skeletons.take(200).collect();
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut blocks = 0;
    let mut found = Vec::new();
    let mut round = 0;
    // At least two rounds: with many skeletons one round has enough blocks, but shows each skeleton with only one set of numbers.
    while blocks < VERIFIED_BLOCKS || round < 2 {
        round += 1;
        for skeleton in &skeletons {
            let count = skeleton.matches("<>").count();
            let coordinates: Vec<[Fixed; 3]> =
                (0..count).map(|_| random_block(precision, &mut random)).collect();
            for encoding in Encoding::both(precision) {
                let text = text::tagged(&text::write(skeleton, &coordinates, encoding));
                let expected: Option<Vec<BlockTokens>> =
                    tokenizer.free_ends(&text)?.iter().map(|ends| block_tokens(ends)).collect();
                found.clear();
                let counted = tables.tokens(tokenizer, text.as_bytes(), &mut found);
                // Blocks on which the tables give up are encoded, so they cannot be wrong.
                if counted.is_some() && expected.as_ref() != Some(&found) {
                    return Ok(Err(format!("tables differ from encoding on `{text}`")));
                }
                blocks += count as u64;
            }
        }
    }
    Ok(Ok(blocks))
}

/// Random coordinates of every magnitude, of both signs, with and without trailing zeros.
fn random_block(precision: Precision, random: &mut ChaCha8Rng) -> [Fixed; 3] {
    std::array::from_fn(|_| {
        let limit = precision.units_per_angstrom() * [1, 10, 100, 1_000][random.random_range(0..4)] - 1;
        let step = [1, 1, 1, 10, 100, 1_000, 10_000][random.random_range(0..7)];
        random.random_range(-limit..=limit) / step * step
    })
}
