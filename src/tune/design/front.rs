//! The trade-off front between new tokens and tokens per block, with the share of a corpus's blocks that each point covers.
//!
//! Its points come only from the search of the design space. Only the extension that is written is checked number by number.

use super::measured::block_coverage::BlockCoverage;
use super::report::front::DesignPoint;
use super::scheme::cuts::SchemeKind;
use super::scheme::slots::Range;
use super::scheme::space::{BaseTokens, MAX_NEW_TOKENS};
use super::scheme::spaces::DesignSpaces;
use drift_core::{Job, Result};

/// The ranges that are shown in addition to the plan's range, in Å.
const RANGES: [u32; 2] = [10, 20];

/// The fewest tokens per block that are tried for decimals. Fewer would need tens of thousands of new tokens.
const FEWEST_OF_DECIMALS: usize = 5;

/// The largest number of tokens per block that is tried.
const MOST_TOKENS: usize = 13;

/// Returns the points of the front, for both kinds and several ranges. `own` are the spaces of the design that is written, `own_tokens`
/// is its number of tokens per block.
///
/// # Errors
/// If the job was cancelled.
pub fn designs<V: BaseTokens>(
    own: &DesignSpaces<'_, V>,
    own_tokens: usize,
    reach: &BlockCoverage,
    job: &Job,
) -> Result<Vec<DesignPoint>> {
    let (more_ranges, fewest) =
        if own.encoding().is_decimal() { (&RANGES[..], FEWEST_OF_DECIMALS) } else { (&[][..], 1) };
    let mut ranges: Vec<u32> = more_ranges.iter().copied().chain([own.range().angstrom()]).collect();
    ranges.sort_unstable();
    ranges.dedup();
    let mut points = Vec::new();
    for kind in [SchemeKind::Separate, SchemeKind::Fused] {
        for &angstrom in &ranges {
            let range = Range::new(angstrom)?;
            let space = own.with(kind, range)?;
            let mut least = u64::MAX;
            for tokens in (fewest..=MOST_TOKENS).filter(|tokens| space.tokens().contains(tokens)) {
                job.check()?;
                let written = range == own.range() && kind == own.kind() && tokens == own_tokens;
                // A design with no fewer new tokens than one with fewer tokens per block is not on the front. The one that is
                // written is always shown.
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
