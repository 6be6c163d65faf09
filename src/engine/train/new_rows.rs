//! Trains the rows of new tokens alone before all weights are trained.
//!
//! New rows begin as sums of old ones and have large gradients. Until they have settled, these gradients would also change weights
//! that need no change. So in the first updates everything else is frozen (as in Kim et al. 2024, arXiv 2402.14714, and Artetxe et
//! al. 2020, arXiv 1910.11856). Then all weights are trained, with the learning rate rising from 0 again.

use std::ops::Range;

use candle_core::Result;

use super::optimizer::FlatWeights;
use super::parameters::ParameterLayout;
use super::recipe::Schedule;

/// The rows of some tokens in the embedding and the LM head.
pub(super) struct NewRows {
    /// Their ranges in the flat vector.
    places: Vec<Range<usize>>,
    /// Their ranges in a vector that has only these rows, one after the other.
    layout: ParameterLayout,
}

impl NewRows {
    /// Returns the rows of the tokens with these ids.
    pub(super) fn new(layout: &ParameterLayout, ids: &[u32]) -> Self {
        let (places, layout) = layout.rows(ids);
        NewRows { places, layout }
    }

    /// Makes one update of only these rows. Returns the norm of their gradient divided by `count`, before clipping.
    ///
    /// # Errors
    /// If candle refuses a product.
    pub(super) fn update(
        &self,
        all: &mut FlatWeights,
        gradient: &[f32],
        count: f64,
        schedule: &Schedule,
    ) -> Result<f64> {
        let mut rows = FlatWeights {
            weights: self.gather(&all.weights),
            first: self.gather(&all.first),
            second: self.gather(&all.second),
            step: all.step,
        };
        let norm = rows.update(&self.gather(gradient), count, &self.layout, schedule)?;
        self.scatter(&rows.weights, &mut all.weights);
        self.scatter(&rows.first, &mut all.first);
        self.scatter(&rows.second, &mut all.second);
        // Every update counts as one step, whatever it changes, so that the schedule continues.
        all.step = rows.step;
        Ok(norm)
    }

    fn gather(&self, values: &[f32]) -> Vec<f32> {
        self.places.iter().flat_map(|place| &values[place.clone()]).copied().collect()
    }

    fn scatter(&self, rows: &[f32], values: &mut [f32]) {
        let mut rows = rows.iter();
        for place in &self.places {
            values[place.clone()].iter_mut().zip(&mut rows).for_each(|(value, row)| *value = *row);
        }
    }
}
