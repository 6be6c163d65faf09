//! The front of new tokens and tokens a block, and which blocks of a corpus each of its points covers.
//!
//! Its points come from the search of the design space alone. Only the one that is written is checked number by number.

use super::measured::reach::Reach;
use super::report::front::DesignPoint;
use super::scheme::cuts::SchemeKind;
use super::scheme::slots::Range;
use super::scheme::space::{BaseTokens, MAX_NEW_TOKENS};
use super::scheme::spaces::DesignSpaces;
use drift_core::encoding::Encoding;
use drift_core::error::Result;
use drift_core::job::Job;

/// Ranges beside that of the plan, in Å.
const RANGES: [u32; 2] = [10, 20];

/// Decimals take tens of thousands of new tokens for fewer tokens a block.
const FEWEST_OF_DECIMALS: usize = 5;

/// More tokens a block are not looked at.
const MOST_TOKENS: usize = 13;

/// The designs of the front, for both kinds and some ranges.
///
/// # Errors
/// If the job was cancelled.
pub fn designs<V: BaseTokens>(
    range: Range,
    (dialect, fewest_decimals): (Encoding, Option<usize>),
    vocabulary: &V,
    reach: &Reach,
    written: (SchemeKind, usize),
    job: &Job,
) -> Result<Vec<DesignPoint>> {
    let (beside, fewest) =
        if dialect.is_decimal() { (&RANGES[..], FEWEST_OF_DECIMALS) } else { (&[][..], 1) };
    let mut ranges: Vec<u32> = beside.iter().copied().chain([range.angstrom()]).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let mut points = Vec::new();
    for kind in [SchemeKind::Separate, SchemeKind::Fused] {
        for &angstrom in &ranges {
            let here = Range::new(angstrom)?;
            let space = DesignSpaces::new(kind, here, (dialect, fewest_decimals), vocabulary)?;
            let mut least = u64::MAX;
            for tokens in (fewest..=MOST_TOKENS).filter(|tokens| space.tokens().contains(tokens)) {
                job.check()?;
                let written = here == range && written == (kind, tokens);
                // A design that is no better than one of fewer tokens is not on the front; the one that is written is shown in
                // any case.
                let limit =
                    if written { MAX_NEW_TOKENS } else { MAX_NEW_TOKENS.min(least.saturating_sub(1)) };
                let Some(optimum) = space.optimum(tokens, limit) else { continue };
                least = least.min(optimum.new_tokens);
                let grammar = space.grammar(tokens);
                points.push(DesignPoint {
                    kind,
                    range_angstrom: grammar.decimal_range(),
                    fewest_decimals: grammar.fewest_decimals() as u64,
                    tokens_per_block: tokens as u64,
                    new_tokens: optimum.new_tokens,
                    coverage: reach.share(grammar),
                    written,
                });
            }
        }
    }
    Ok(points)
}
