//! What `drift encodings` gives out.

use serde::Serialize;

use super::loss::TextLoss;
use super::tokens::TokenCosts;
use drift_core::encoding::Encoding;
use drift_core::job::Provenance;
use drift_data::corpus::Skipped;

/// The value of `schema`.
pub const SCHEMA: &str = "drift.encodings/1";

/// Encodings that keep fewer of the valid conformers are not recommended.
const KEEPS: f64 = 0.99;

/// Encodings side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodingsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What made it, from what.
    pub provenance: Provenance,
    /// Conformers that were written and read back.
    pub conformers: u64,
    /// Records that could not be read.
    pub skipped: u64,
    /// The first of them, with the reasons.
    pub skipped_records: Vec<Skipped>,
    /// Conformers whose tokens were counted.
    pub sample: u64,
    /// An encoding with a tokenizer, or with an extension of it, each.
    pub rows: Vec<EncodingRow>,
    /// What to take, by tokenizer.
    pub recommended: Vec<RecommendedEncoding>,
}

/// An encoding with a tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EncodingRow {
    /// The encoding.
    pub encoding: Encoding,
    /// The tokenizer, or the base of the extension.
    pub tokenizer: String,
    /// Tokens that the extension has more; 0 for the tokenizer as it is.
    pub new_tokens: u64,
    /// What the sample takes.
    #[serde(flatten)]
    pub costs: TokenCosts,
    /// What the text alone loses.
    #[serde(flatten)]
    pub loss: TextLoss,
    /// Whether no other row of the tokenizer is as good in passes, RMSD, valid share and new tokens, and better in one.
    pub on_front: bool,
}

/// What to take with a tokenizer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecommendedEncoding {
    /// The tokenizer.
    pub tokenizer: String,
    /// The encoding.
    pub encoding: Encoding,
    /// New tokens of the extension.
    pub new_tokens: u64,
    /// A sentence.
    pub reason: String,
}

impl EncodingRow {
    /// What costs something, all the better the smaller: forward passes, RMSD, share that is lost, new tokens.
    fn prices(&self) -> [f64; 4] {
        // Without an automaton every token takes a pass of its own.
        let passes = self.costs.passes_per_conformer.unwrap_or(self.costs.tokens_per_conformer);
        // Codes have no RMSD, and so never look better than an encoding that has one.
        let rmsd = self.loss.rmsd_angstrom.unwrap_or(f64::INFINITY);
        [passes, rmsd, 1.0 - self.loss.valid_share.unwrap_or(1.0), self.new_tokens as f64]
    }

    /// Whether it is as good in all and better in one.
    fn beats(&self, other: &EncodingRow) -> bool {
        let (own, others) = (self.prices(), other.prices());
        let pairs = || own.iter().zip(&others);
        pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
    }
}

/// Marks the front, and says what to take with each tokenizer: of the rows on it that keep nearly all conformers valid and in
/// range, the one of the fewest forward passes.
pub(super) fn recommend(rows: &mut [EncodingRow]) -> Vec<RecommendedEncoding> {
    let beaten: Vec<bool> = rows
        .iter()
        .map(|row| rows.iter().any(|other| other.tokenizer == row.tokenizer && other.beats(row)))
        .collect();
    for (row, beaten) in rows.iter_mut().zip(beaten) {
        row.on_front = !beaten && row.loss.rmsd_angstrom.is_some();
    }
    let mut tokenizers: Vec<&String> = rows.iter().map(|row| &row.tokenizer).collect();
    // Rows of one tokenizer stand together, so neighbours are all that can be equal.
    tokenizers.dedup();
    let best = |tokenizer: &String| {
        let safe = |row: &&EncodingRow| {
            row.on_front
                && &row.tokenizer == tokenizer
                && row.loss.out_of_range_conformers == 0
                && row.loss.valid_share.is_none_or(|share| share >= KEEPS)
        };
        let passes = |row: &EncodingRow| row.prices()[0];
        let best = |a: &&EncodingRow, b: &&EncodingRow| {
            // Passes first; of rows that take as many, the next price decides.
            let pairs = a.prices().into_iter().zip(b.prices());
            pairs.fold(std::cmp::Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(&b)))
        };
        let row = rows.iter().filter(safe).min_by(best)?;
        let plural = if row.new_tokens == 1 { "" } else { "s" };
        let reason = format!(
            "the fewest forward passes a conformer, {:.0}, of those that keep {:.0} % of the valid conformers: {} new token{plural}, \
             {:.4} Å of RMSD by the text alone",
            passes(row),
            100.0 * KEEPS,
            row.new_tokens,
            row.loss.rmsd_angstrom.unwrap_or(0.0)
        );
        let (tokenizer, encoding, new_tokens) = (tokenizer.clone(), row.encoding, row.new_tokens);
        Some(RecommendedEncoding { tokenizer, encoding, new_tokens, reason })
    };
    tokenizers.into_iter().filter_map(best).collect()
}
