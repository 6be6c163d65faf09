//! The result of `drift encodings`.

use serde::Serialize;

use super::loss::TextLoss;
use super::tokens::{TokenCosts, TokensPerBlock};
use drift_core::Encoding;
use drift_core::job::Provenance;
use drift_data::corpus::SkippedRecord;

/// The value of `schema`.
pub const SCHEMA: &str = "drift.encodings/1";

/// The smallest share of valid conformers that a recommended encoding must keep valid.
const KEEPS: f64 = 0.99;

/// The comparison of encodings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodingsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The program and its inputs.
    pub provenance: Provenance,
    /// The number of conformers that were written and read back.
    pub conformers: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
    /// The first of these records, with the reasons.
    pub skipped_records: Vec<SkippedRecord>,
    /// The number of conformers whose tokens were counted.
    pub sample: u64,
    /// One row per encoding with a tokenizer, or with an extension of one.
    pub rows: Vec<EncodingRow>,
    /// The extensions that were asked for and do not exist.
    pub missing: Vec<MissingExtension>,
    /// The recommended encoding for each tokenizer.
    pub recommended: Vec<RecommendedEncoding>,
}

/// An extension that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingExtension {
    /// The encoding.
    pub encoding: Encoding,
    /// The base.
    pub tokenizer: String,
    /// The number of tokens a block that it would have.
    pub tokens_per_block: u64,
    /// Why there is none, in a sentence.
    pub reason: String,
}

/// An encoding with a tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodingRow {
    /// The encoding.
    pub encoding: Encoding,
    /// The tokenizer, or the base of the extension.
    pub tokenizer: String,
    /// The number of tokens that the extension adds; 0 for the unchanged tokenizer.
    pub new_tokens: u64,
    /// The token costs on the sample.
    #[serde(flatten)]
    pub costs: TokenCosts,
    /// The loss of the text itself.
    #[serde(flatten)]
    pub loss: TextLoss,
    /// Whether no other row of the tokenizer is at least as good in passes, RMSD, valid share and new tokens, and better in one of
    /// them.
    pub on_front: bool,
}

/// The recommended encoding for a tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecommendedEncoding {
    /// The tokenizer.
    pub tokenizer: String,
    /// The encoding.
    pub encoding: Encoding,
    /// The number of new tokens of the extension.
    pub new_tokens: u64,
    /// The reason, as one sentence.
    pub reason: String,
}

impl EncodingRow {
    /// Returns the costs as a line, for a user who waits for the other rows.
    pub(super) fn line(&self) -> String {
        let EncodingRow { encoding, tokenizer, new_tokens, costs, .. } = self;
        let TokensPerBlock { min, max, .. } = costs.tokens_per_block;
        let block = if min == max { max.to_string() } else { format!("{min} to {max}") };
        let passes =
            costs.passes_per_conformer.map_or_else(String::new, |passes| format!(", {passes:.2} passes"));
        format!(
            "{encoding}, {tokenizer}, {new_tokens} new tokens: {block} tokens a block, {:.2} a conformer{passes}",
            costs.tokens_per_conformer
        )
    }

    /// Returns the costs, all of which should be small: forward passes, RMSD, share of valid conformers lost, new tokens.
    fn prices(&self) -> [f64; 4] {
        // Without an automaton every token of the answer needs its own forward pass.
        let passes = self.costs.passes_per_conformer.unwrap_or(self.costs.tokens_per_answer);
        // Codes have no RMSD, so they must never look better than an encoding that has one.
        let rmsd = self.loss.rmsd_angstrom.unwrap_or(f64::INFINITY);
        [passes, rmsd, 1.0 - self.loss.valid_share.unwrap_or(1.0), self.new_tokens as f64]
    }

    /// Returns whether this row is at least as good as the other in all costs and better in one.
    fn beats(&self, other: &EncodingRow) -> bool {
        let (own, others) = (self.prices(), other.prices());
        let pairs = || own.iter().zip(&others);
        pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
    }
}

/// Marks the rows on the front, and recommends a row for each tokenizer: of the rows on the front that keep nearly all conformers
/// valid and have none out of range, the one with the fewest forward passes.
pub(super) fn recommend(rows: &mut [EncodingRow]) -> Vec<RecommendedEncoding> {
    let beaten: Vec<bool> = rows
        .iter()
        .map(|row| rows.iter().any(|other| other.tokenizer == row.tokenizer && other.beats(row)))
        .collect();
    for (row, beaten) in rows.iter_mut().zip(beaten) {
        row.on_front = !beaten && row.loss.rmsd_angstrom.is_some();
    }
    let mut tokenizers: Vec<&String> = rows.iter().map(|row| &row.tokenizer).collect();
    // Rows of one tokenizer are adjacent, so only neighbours can be equal.
    tokenizers.dedup();
    let recommended = tokenizers.into_iter().filter_map(|tokenizer| {
        let own = rows.iter().filter(|row| row.on_front && &row.tokenizer == tokenizer);
        let safe = own
            .filter(|row| row.loss.out_of_range_conformers == 0)
            .filter(|row| row.loss.valid_share.is_none_or(|share| share >= KEEPS));
        let row = safe.min_by(|a, b| {
            // Passes come first; among rows with equally many, the next cost decides.
            let pairs = a.prices().into_iter().zip(b.prices());
            pairs.fold(std::cmp::Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(&b)))
        })?;
        let plural = if row.new_tokens == 1 { "" } else { "s" };
        let forced = if row.costs.passes_per_conformer.is_none() { " (no automaton forces tokens)" } else { "" };
        let reason = format!(
            "the fewest forward passes a conformer, {:.0}{forced}, of those that keep {:.0} % of the valid conformers: {} new token{plural}, \
             {:.4} Å of RMSD by the text alone",
            row.prices()[0],
            100.0 * KEEPS,
            row.new_tokens,
            row.loss.rmsd_angstrom.unwrap_or(0.0)
        );
        let (tokenizer, encoding, new_tokens) = (tokenizer.clone(), row.encoding, row.new_tokens);
        Some(RecommendedEncoding { tokenizer, encoding, new_tokens, reason })
    });
    recommended.collect()
}
