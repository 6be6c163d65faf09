//! Coordinates as bin indices.
//!
//! Edges ascend. The index of x is the number of edges at or below it (`numpy.digitize`): 0 below the first edge, and the number of
//! edges from the last one on. These two indices are the *tails*: their cells are unbounded, so the coordinate is not known. Fitted
//! bins (3DMolGen's `uniform` and `quantile`) include their last edge.

use super::decimal::Fixed;
use super::decimal_text::NumberError;

/// The bins of one axis.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub struct Bins {
    /// In Å, ascending.
    edges: Box<[f64]>,
    /// In Å: coordinates below it are in the first tail. For fitted bins, it is the bound `L` of the file.
    low: f64,
    /// In Å, only for fitted bins: coordinates above it are in the last tail. The bound itself belongs to the last bin.
    high: Option<f64>,
    /// The coordinate that each index is read as, in Å.
    middles: Box<[f64]>,
}

/// The coordinates that the two tails are read as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TailValues {
    /// The middle of the first bin, and the middle of an imagined bin of one step behind the last edge.
    Middles {
        /// The step, in Å.
        step: f64,
    },
    /// These values, in Å.
    At(f64, f64),
}

/// Why bins were refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BinsError {
    /// Fewer than two edges.
    #[error("`edges`: bins need two edges at least, not {0}")]
    Few(usize),
    /// Edges that do not ascend.
    #[error("`edges`: edge {at} ({value}) is not above the one before it")]
    NotRising {
        /// The index of the edge, from 0.
        at: usize,
        /// The value of the edge, in Å.
        value: f64,
    },
    /// An edge, bound or tail that no molecule reaches.
    #[error("`{field}`: {value} is not a coordinate from -{FARTHEST_ANGSTROM} to {FARTHEST_ANGSTROM} Å")]
    Beyond {
        /// The field of the file.
        field: &'static str,
        /// The value, in Å.
        value: f64,
    },
    /// Values of the tails in the wrong order.
    #[error("`tails`: {below} is not below {above}; the value below the first edge comes first")]
    Reversed {
        /// The value of the first tail, in Å.
        below: f64,
        /// The value of the last tail, in Å.
        above: f64,
    },
    /// Bounds of fitted bins with no bin between them.
    #[error("no bin lies between L {low} and H {high}; L is below H, and edges lie between them")]
    Bounds {
        /// The lower bound, in Å.
        low: f64,
        /// The upper bound, in Å.
        high: f64,
    },
    /// A range and step that give too few or too many edges.
    #[error(
        "`low` {low}, `high` {high} and `step` {step} give no bins; give low < high and a step that divides the range into at most 100,000"
    )]
    Range {
        /// The lower bound, in Å.
        low: f64,
        /// The upper bound, in Å.
        high: f64,
        /// The step, in Å.
        step: f64,
    },
}

/// The largest magnitude of an edge, a bound or a tail, in Å: coordinates of decimals reach as far.
pub(crate) const FARTHEST_ANGSTROM: f64 = 100_000.0;

/// Refuses values that are not coordinates, and by that everything that is computed from them.
fn check_reach(field: &'static str, values: &[f64]) -> Result<(), BinsError> {
    match values.iter().find(|value| !(-FARTHEST_ANGSTROM..=FARTHEST_ANGSTROM).contains(*value)) {
        Some(&value) => Err(BinsError::Beyond { field, value }),
        None => Ok(()),
    }
}

/// The largest number of edges of an axis.
pub(crate) const MOST_EDGES: usize = 100_000;

impl Bins {
    /// Bins with edges from `low` on, `step` apart: the edges of `numpy.arange(low, high, step)`, bit for bit.
    ///
    /// # Errors
    /// If there would be fewer than two or more than [`MOST_EDGES`], or a bound is beyond [`FARTHEST_ANGSTROM`].
    pub fn even(
        low: f64,
        high: f64,
        step: f64,
        tails: impl Fn(&[f64]) -> TailValues,
    ) -> Result<Self, BinsError> {
        let wrong = BinsError::Range { low, high, step };
        check_reach("low", &[low])?;
        check_reach("high", &[high])?;
        let count = ((high - low) / step).ceil();
        if !(step > 0.0 && (2.0..=MOST_EDGES as f64).contains(&count)) {
            return Err(wrong);
        }
        // NumPy computes the first two values and continues with their difference (`DOUBLE_fill`).
        let delta = (low + step) - low;
        let edges: Vec<f64> = (0..count as usize).map(|at| low + at as f64 * delta).collect();
        let tails = tails(&edges);
        Bins::new(edges, tails, None)
    }

    /// Bins with given edges. `fitted` holds the bounds of bins that were fitted to data, in Å.
    ///
    /// # Errors
    /// If there are too few or too many edges, the edges do not ascend, the tails are reversed, no bin lies between the bounds, or
    /// a value is beyond [`FARTHEST_ANGSTROM`].
    pub fn new(edges: Vec<f64>, tails: TailValues, fitted: Option<(f64, f64)>) -> Result<Self, BinsError> {
        if edges.len() < 2 {
            return Err(BinsError::Few(edges.len()));
        }
        if edges.len() > MOST_EDGES {
            let (low, high) = (edges[0], edges[edges.len() - 1]);
            return Err(BinsError::Range { low, high, step: edges[1] - low });
        }
        check_reach("edges", &edges)?;
        if let Some(at) = (1..edges.len()).find(|at| edges[*at] <= edges[at - 1]) {
            return Err(BinsError::NotRising { at, value: edges[at] });
        }
        let last = edges[edges.len() - 1];
        if let Some((low, high)) = fitted {
            check_reach("fitted", &[low, high])?;
            // Otherwise every coordinate would be in a tail. A bound that is NaN fails every comparison.
            if !(low < high && low < last && high > edges[0]) {
                return Err(BinsError::Bounds { low, high });
            }
        }
        let middle = |a: f64, b: f64| (a + b) / 2.0;
        let (below, above) = match tails {
            TailValues::Middles { step } => (middle(edges[0], edges[1]), middle(last, last + step)),
            TailValues::At(below, above) => (below, above),
        };
        check_reach("tails", &[below, above])?;
        if below >= above {
            return Err(BinsError::Reversed { below, above });
        }
        let inner = edges.windows(2).map(|pair| middle(pair[0], pair[1]));
        let middles = std::iter::once(below).chain(inner).chain([above]).collect();
        let (low, high) = fitted.map_or((edges[0], None), |(low, high)| (low, Some(high)));
        Ok(Bins { edges: edges.into(), low, high, middles })
    }

    /// Returns the edges, in Å.
    pub fn edges(&self) -> &[f64] {
        &self.edges
    }

    /// Returns the bounds of fitted bins, in Å.
    pub(super) fn fitted(&self) -> Option<(f64, f64)> {
        self.high.map(|high| (self.low, high))
    }

    /// Returns the coordinates that the two tails are read as, in Å.
    pub(super) fn tails(&self) -> (f64, f64) {
        (self.middles[0], self.middles[self.middles.len() - 1])
    }

    /// Returns the largest index; indices begin with 0.
    pub fn last(&self) -> Fixed {
        self.edges.len() as Fixed
    }

    /// Returns the index of a coordinate given in Å.
    ///
    /// # Errors
    /// If it is not finite.
    pub fn index(&self, x: f64) -> Result<Fixed, NumberError> {
        if !x.is_finite() {
            return Err(NumberError::NotFinite);
        }
        let at_or_below = self.edges.partition_point(|edge| *edge <= x) as Fixed;
        Ok(match self.high {
            None => at_or_below,
            Some(_) if x < self.low => 0,
            Some(high) if x > high => self.last(),
            // 1 + min(bins - 1, at_or_below - 1): the last edge belongs to the last bin.
            Some(_) => at_or_below.min(self.last() - 1),
        })
    }

    /// Returns the coordinate that an index is read as, in Å. Larger indices count as the last one.
    pub fn angstrom(&self, index: Fixed) -> f64 {
        self.middles[index.clamp(0, self.last()) as usize]
    }

    /// Returns whether an index is one of the tails.
    pub fn is_tail(&self, index: Fixed) -> bool {
        index <= 0 || index >= self.last()
    }

    /// Returns the interval of coordinates with an index, in Å. The tails of fitted bins begin at the file's bounds, so a bin beyond a
    /// bound contains no coordinate, and both ends of its interval are equal.
    pub fn cell(&self, index: Fixed) -> [f64; 2] {
        let edge = |at: Fixed| self.edges[at as usize];
        // [`Bins::index`] gives 0 below the first edge even if the bound lies lower. The last bin extends up to the bound.
        let (low, high) = (self.low.max(edge(0)), self.high.unwrap_or(edge(self.last() - 1)));
        match index {
            ..=0 => [f64::NEG_INFINITY, low],
            index if index >= self.last() => [high, f64::INFINITY],
            index => {
                let above = if index == self.last() - 1 { high } else { edge(index).min(high) };
                let below = edge(index - 1).max(low);
                [below, above.max(below)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_those_of_digitize_and_edges_belong_to_the_bin_above() {
        let bins = Bins::even(-1.0, 1.0, 0.5, |_| TailValues::Middles { step: 0.5 }).unwrap();
        assert_eq!(bins.edges(), [-1.0, -0.5, 0.0, 0.5]);
        let index = |x: f64| bins.index(x).unwrap();
        let below = |x: f64| x.next_down();
        for (x, expected) in
            [(-1.0, 1), (below(-1.0), 0), (0.0, 3), (below(0.0), 2), (0.5, 4), (9.0, 4), (-0.0, 3)]
        {
            assert_eq!(index(x), expected, "{x}");
        }
        let decoded: Vec<f64> = (0..5).map(|index| bins.angstrom(index)).collect();
        assert_eq!(decoded, [-0.75, -0.75, -0.25, 0.25, 0.75]);
        assert_eq!([0, 1, 4].map(|index| bins.is_tail(index)), [true, false, true]);
        assert_eq!(bins.cell(2), [-0.5, 0.0]);
        assert_eq!(bins.index(f64::NAN), Err(NumberError::NotFinite));
    }

    #[test]
    fn fitted_bins_hold_their_last_edge() {
        let bins = Bins::new(vec![-1.0, 0.0, 2.0], TailValues::At(-1.0, 2.0), Some((-1.0, 2.0))).unwrap();
        let index = |x: f64| bins.index(x).unwrap();
        assert_eq!([-1.1, -1.0, -0.1, 0.0, 2.0, 2.1].map(index), [0, 1, 1, 2, 2, 3]);
        assert_eq!([0, 1, 2, 3].map(|index| bins.angstrom(index)), [-1.0, -0.5, 1.0, 2.0]);
    }

    /// Bounds inside and outside of the outer edges: every coordinate lies in the cell of its index.
    #[test]
    fn cells_of_fitted_bins_hold_what_has_their_index() {
        for (low, high) in [(-1.0, 2.0), (-0.5, 1.5), (-3.0, 5.0), (-1.5, 0.5), (0.25, 0.75)] {
            let tails = TailValues::At(low, high);
            let bins = Bins::new(vec![-1.0, 0.0, 1.0, 2.0], tails, Some((low, high))).unwrap();
            let mut held = [0; 5];
            for x in (-700..=700).map(|n| f64::from(n) / 128.0) {
                let index = bins.index(x).unwrap();
                let [from, to] = bins.cell(index);
                // The bound itself is no tail.
                let is_bound = x == high && index < bins.last();
                assert!(from <= x && (x < to || is_bound), "{low} {high}: {x} has {index}, {from} to {to}");
                held[index as usize] += 1;
            }
            for (index, held) in (0..).zip(held) {
                let [from, to] = bins.cell(index);
                assert_eq!(held > 0, to - from > 1.0 / 128.0, "{low} {high}: {index}, {from} to {to}");
            }
        }
    }

    #[test]
    fn what_is_no_coordinate_is_refused_by_its_field() {
        let problem = |edges: &[f64], tails: (f64, f64), fitted| {
            let bins = Bins::new(edges.to_vec(), TailValues::At(tails.0, tails.1), fitted);
            bins.unwrap_err().to_string()
        };
        let far = "is not a coordinate from -100000 to 100000 Å";
        assert_eq!(problem(&[-1e308, 0.0, 1e308], (-1.0, 1.0), None), format!("`edges`: {} {far}", -1e308));
        assert_eq!(problem(&[-1.0, f64::NAN], (-1.0, 1.0), None), format!("`edges`: NaN {far}"));
        assert_eq!(problem(&[-1.0, 1.0], (-1.0, 1e9), None), format!("`tails`: 1000000000 {far}"));
        assert_eq!(
            problem(&[-1.0, 1.0], (-1.0, 1.0), Some((-1e9, 1.0))),
            format!("`fitted`: -1000000000 {far}")
        );
        assert!(problem(&[-1.0, 1.0], (1.0, -1.0), None).starts_with("`tails`: 1 is not below -1;"));
        let even = |low, high, step| {
            Bins::even(low, high, step, |_| TailValues::Middles { step }).unwrap_err().to_string()
        };
        assert_eq!(even(-1e308, 1e308, 1e307), format!("`low`: {} {far}", -1e308));
        assert_eq!(even(-1.0, f64::INFINITY, 1.0), format!("`high`: inf {far}"));
        // The second edge is the first one in floating point.
        assert!(even(99_999.0, 99_999.1, 1e-12).contains("`step`"));
    }

    #[test]
    fn edges_that_do_not_rise_are_refused() {
        let tails = TailValues::At(0.0, 1.0);
        assert_eq!(Bins::new(vec![0.0, 0.0], tails, None), Err(BinsError::NotRising { at: 1, value: 0.0 }));
        assert_eq!(Bins::new(vec![0.0], tails, None), Err(BinsError::Few(1)));
        assert!(Bins::new(vec![0.0, f64::NAN], tails, None).is_err());
        for (low, high, step) in
            [(1.0, 0.0, 0.1), (0.0, 1.0, 0.0), (0.0, 1.0, -0.1), (0.0, 1.0, 1e-9), (0.0, f64::INFINITY, 1.0)]
        {
            assert!(Bins::even(low, high, step, |_| tails).is_err(), "{low} {high} {step}");
        }
    }
}
