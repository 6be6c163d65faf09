//! AdamW with clipped gradients (Loshchilov and Hutter, 2019; Pascanu et al., 2013).

use rayon::prelude::*;

use super::parameters::ParameterLayout;
use super::recipe::Schedule;

const BETAS: [f32; 2] = [0.9, 0.95];
const EPSILON: f32 = 1e-8;
/// Values that a thread updates at a time.
const CHUNK: usize = 1 << 14;

/// Weights and their moments, flat, in the order of the layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted {
    /// Weights.
    pub weights: Vec<f32>,
    /// Running mean of gradients.
    pub first: Vec<f32>,
    /// Running mean of their squares.
    pub second: Vec<f32>,
    /// How many updates there were.
    pub step: u64,
}

impl Weighted {
    /// Before the first update.
    pub fn new(weights: Vec<f32>) -> Self {
        let zeros = || vec![0.0; weights.len()];
        Weighted { first: zeros(), second: zeros(), weights, step: 0 }
    }

    /// One update along `gradient` divided by `count`; the norm of that, before it was clipped.
    pub fn update(
        &mut self,
        gradient: &[f32],
        count: f64,
        layout: &ParameterLayout,
        schedule: &Schedule,
    ) -> f64 {
        let norm = norm(gradient) / count;
        let factor = ((schedule.clip / norm).min(1.0) / count) as f32;
        let rate = schedule.rate(self.step);
        self.step += 1;
        let [mean, square] = BETAS.map(|beta| 1.0 - f64::from(beta).powf(self.step as f64));
        let step = (rate / mean) as f32;
        let root = (1.0 / square.sqrt()) as f32;
        for parameter in &layout.parameters {
            let keep = if parameter.decays() { (1.0 - rate * schedule.weight_decay) as f32 } else { 1.0 };
            let range = parameter.range.clone();
            let weights = self.weights[range.clone()].par_chunks_mut(CHUNK);
            let moments = self.first[range.clone()]
                .par_chunks_mut(CHUNK)
                .zip(self.second[range.clone()].par_chunks_mut(CHUNK));
            weights.zip(moments).zip(gradient[range].par_chunks(CHUNK)).for_each(
                |((weights, (first, second)), gradient)| {
                    for n in 0..weights.len() {
                        let g = gradient[n] * factor;
                        first[n] += (1.0 - BETAS[0]) * (g - first[n]);
                        second[n] += (1.0 - BETAS[1]) * (g * g - second[n]);
                        weights[n] =
                            weights[n] * keep - step * first[n] / (second[n].sqrt() * root + EPSILON);
                    }
                },
            );
        }
        norm
    }
}

/// `√Σ g²`, summed chunk by chunk in one order for any number of threads.
fn norm(gradient: &[f32]) -> f64 {
    let squares = gradient.par_chunks(CHUNK).map(|chunk| chunk.iter().map(|g| f64::from(*g).powi(2)).sum());
    squares.collect::<Vec<f64>>().iter().sum::<f64>().sqrt()
}
