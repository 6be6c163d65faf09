//! The Pareto front: placeholders such that no other one is better in everything, so that a user sees what the order of harm
//! decided.

use super::counts::ReplayTotals;

/// Returns the indices of the damages that no other one dominates, in (unparsable blocks, RMSD, junk slots, truncated blocks). Of equal
/// ones only the first.
pub fn front(damages: &[ReplayTotals]) -> Vec<usize> {
    let unbeaten = (0..damages.len()).filter(|&index| {
        let one = &damages[index];
        // Of equal damages only the first is kept: each would beat all the others, and none would be left.
        let beats = |at: usize, other| dominates(other, one) && (!dominates(one, other) || at < index);
        !damages.iter().enumerate().any(|(at, other)| beats(at, other))
    });
    unbeaten.collect()
}

/// Returns whether `a` is nowhere worse than `b`.
fn dominates(a: &ReplayTotals, b: &ReplayTotals) -> bool {
    a.unparsable_blocks <= b.unparsable_blocks
        && a.compare_rmsd(b).is_le()
        && a.junk_tokens <= b.junk_tokens
        && a.truncated_blocks <= b.truncated_blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nowhere_better_is_left_out() {
        let damage = |junk_tokens, truncated_blocks, unparsable_blocks| ReplayTotals {
            conformers: 2,
            blocks: 10,
            junk_tokens,
            truncated_blocks,
            unparsable_blocks,
            ..ReplayTotals::default()
        };
        let all = [damage(0, 5, 0), damage(5, 0, 0), damage(5, 5, 0), damage(0, 5, 0), damage(0, 9, 1)];
        assert_eq!(front(&all), [0, 1]);
    }
}
