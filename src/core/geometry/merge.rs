//! Merges several bounds on one distance, as in RDKit's `BoundsMatrixBuilderDetails.h`.

/// Returns the range from the smallest to the largest distance that as many bounds as possible allow together.
pub(super) fn merge(mut bounds: Vec<[f64; 2]>) -> [f64; 2] {
    bounds.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [mut low, mut high] = bounds.first().copied().unwrap_or_default();
    let mut reach = high;
    let mut least = None;
    for &[next_low, next_high] in bounds.iter().skip(1) {
        // Overlapping bounds narrow the range. If a bound lies beyond it, both ranges count.
        if next_low <= high {
            high = high.min(next_high);
        } else {
            least.get_or_insert(low);
            high = if next_low <= reach { reach.min(next_high) } else { next_high };
        }
        low = next_low;
        reach = reach.max(next_high);
    }
    [least.unwrap_or(low), high]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_cut_and_what_does_not_is_joined() {
        assert_eq!(merge(vec![[1.0, 2.0]]), [1.0, 2.0]);
        assert_eq!(merge(vec![[1.5, 3.0], [1.0, 2.0]]), [1.5, 2.0]);
        assert_eq!(merge(vec![[3.0, 4.0], [1.0, 2.0]]), [1.0, 4.0]);
    }
}
