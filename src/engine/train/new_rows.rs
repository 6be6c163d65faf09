//! Rows of new tokens, trained alone before all weights are.
//!
//! New rows begin as sums of old ones, and give large gradients. Until they have found their place these would pull at
//! weights that need no change. So for the first updates everything else is held (as in Kim et al. 2024, arXiv 2402.14714,
//! and Artetxe et al. 2020, arXiv 1910.11856), then all is trained, from a learning rate of 0 again.

use std::ops::Range;

use candle_core::Result;

use super::optimizer::Weighted;
use super::parameters::ParameterLayout;
use super::recipe::Schedule;

/// The rows of some tokens in the embedding and the LM head.
pub(super) struct NewRows {
    /// Their places in the flat vector.
    places: Vec<Range<usize>>,
    /// Where they lie in a vector that holds these rows alone, one behind the other.
    layout: ParameterLayout,
}

impl NewRows {
    /// Of the tokens with these ids.
    pub(super) fn new(layout: &ParameterLayout, ids: &[u32]) -> Self {
        let (places, layout) = layout.rows(ids);
        NewRows { places, layout }
    }

    /// One update of these rows alone; the norm of their gradient by `count`, before it was clipped.
    ///
    /// # Errors
    /// If candle refuses a product.
    pub(super) fn update(
        &self,
        all: &mut Weighted,
        gradient: &[f32],
        count: f64,
        schedule: &Schedule,
    ) -> Result<f64> {
        let mut rows = Weighted {
            weights: self.gather(&all.weights),
            first: self.gather(&all.first),
            second: self.gather(&all.second),
            step: all.step,
        };
        let norm = rows.update(&self.gather(gradient), count, &self.layout, schedule)?;
        self.scatter(&rows.weights, &mut all.weights);
        self.scatter(&rows.first, &mut all.first);
        self.scatter(&rows.second, &mut all.second);
        // Every update counts one step, whatever it moves, so that the schedule goes on.
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
