//! Means and standard deviations from exact integer sums.

drift_core::counters! {
    /// The count, sum and sum of squares of integers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub(crate) struct Moments {
        count: u64,
        sum: i128,
        squares: u128,
    }
}

impl Moments {
    /// Counts `value` once.
    pub(crate) fn add(&mut self, value: i64) {
        self.count += 1;
        self.sum += i128::from(value);
        // Only integers, so that the merge order does not affect the last bits.
        let magnitude = u128::from(value.unsigned_abs());
        self.squares += magnitude * magnitude;
    }

    /// Returns the mean; `None` without values.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the sample standard deviation, `sqrt((n Σx² - (Σx)²) / (n (n - 1)))`; `None` with fewer than two values.
    ///
    /// The numerator is exact unless it exceeds 128 bits (about 10¹⁰ values of the largest magnitude).
    pub(crate) fn sd(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let n = u128::from(self.count);
        let sum = self.sum.unsigned_abs();
        let exact = n.checked_mul(self.squares).zip(sum.checked_mul(sum));
        // By the Cauchy-Schwarz inequality, the first product is at least as large as the second.
        let numerator = match exact {
            Some((a, b)) => (a - b) as f64,
            None => (n as f64 * self.squares as f64 - sum as f64 * sum as f64).max(0.0),
        };
        Some((numerator / (n as f64 * (n as f64 - 1.0))).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&v| moments.add(v));
        moments
    }

    #[test]
    fn mean_and_sample_deviation() {
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(moments.mean(), Some(5.0));
        assert_eq!(moments.sd(), Some((32.0f64 / 7.0).sqrt()));
        assert_eq!(of(&[]).mean(), None);
        assert_eq!(of(&[3]).sd(), None);
    }

    #[test]
    fn a_large_offset_costs_no_digits() {
        let shifted = of(&[999_999_998, 999_999_999, 999_999_997]);
        assert_eq!(shifted.sd(), Some(1.0));
    }
}
