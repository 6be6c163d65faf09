//! The optimizers: AdamW (Loshchilov and Hutter, 2019), or Muon (Jordan et al., 2024) for the matrices inside the layers and AdamW
//! for everything else. Gradients are clipped (Pascanu et al., 2013).

use candle_core::{Result, Tensor};
use rayon::prelude::*;

use super::parameters::{ParameterLayout, TensorLayout};
use super::recipe::{Optimizer, Schedule};
use super::tensors::{matrix, values};

const BETAS: [f32; 2] = [0.9, 0.95];
const EPSILON: f32 = 1e-8;
/// The number of values that a thread updates at a time.
const CHUNK: usize = 1 << 14;

/// The momentum of Muon.
const MOMENTUM: f32 = 0.95;
/// The coefficients of the iteration that brings all singular values near 1, and the number of iterations (Jordan et al.).
const NEWTON_SCHULZ: ([f64; 3], usize) = ([3.4445, -4.7750, 2.0315], 5);
/// The root mean square of AdamW's steps. Muon's steps are scaled to it, so that both use the same learning rate (Liu et al., 2025,
/// arXiv 2502.16982).
const STEP_SIZE: f64 = 0.2;

/// Weights and their moments as flat vectors, in the order of the layout.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatWeights {
    /// The weights.
    pub weights: Vec<f32>,
    /// The running mean of the gradients.
    pub first: Vec<f32>,
    /// The running mean of their squares; zero for weights that Muon updates.
    pub second: Vec<f32>,
    /// The number of updates so far.
    pub step: u64,
}

impl FlatWeights {
    /// Returns the state before the first update.
    pub fn new(weights: Vec<f32>) -> Self {
        let zeros = || vec![0.0; weights.len()];
        FlatWeights { first: zeros(), second: zeros(), weights, step: 0 }
    }

    /// Makes one update along `gradient` divided by `count`. Returns the norm of this quotient before clipping. A count of 0, from a
    /// batch without targets, means that no gradient is followed. If the norm is not finite, nothing is changed.
    ///
    /// # Errors
    /// If candle refuses a product.
    pub fn update(
        &mut self,
        gradient: &[f32],
        count: f64,
        layout: &ParameterLayout,
        schedule: &Schedule,
    ) -> Result<f64> {
        // Without a target the gradient is 0, and it stays 0 after dividing by infinity.
        let count = if count > 0.0 { count } else { f64::INFINITY };
        let norm = norm(gradient) / count;
        if !norm.is_finite() {
            return Ok(norm);
        }
        // One factor for both: dividing by the weight of the targets, and clipping the norm.
        let factor = ((schedule.clip / norm).min(1.0) / count) as f32;
        let rate = schedule.rate(self.step);
        // Weight decay is separate from the gradient, as in AdamW, so the moments do not contain it.
        let decay = (1.0 - rate * schedule.weight_decay) as f32;
        self.step += 1;
        let (by_muon, by_adam): (Vec<_>, Vec<_>) = layout
            .parameters
            .iter()
            .partition(|parameter| schedule.optimizer == Optimizer::Muon && parameter.is_hidden());
        for parameter in by_adam {
            let keep = if parameter.decays() { decay } else { 1.0 };
            self.adam(parameter, gradient, factor, rate, keep);
        }
        for parameter in &by_muon {
            let range = parameter.range.clone();
            let moments = self.first[range.clone()].iter_mut().zip(&gradient[range]);
            moments.for_each(|(first, g)| *first = MOMENTUM * *first + (1.0 - MOMENTUM) * g * factor);
        }
        let steps = by_muon.par_iter().map(|parameter| self.muon(parameter, gradient, factor));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        for (parameter, step) in by_muon.into_iter().zip(steps) {
            let (rows, columns) = (parameter.shape[0], parameter.shape[1]);
            // An orthogonal matrix has a root mean square of 1/√max(rows, columns); this scales it to that of AdamW's steps.
            let size = (rate * STEP_SIZE * (rows.max(columns) as f64).sqrt()) as f32;
            let weights = self.weights[parameter.range.clone()].iter_mut().zip(step);
            weights.for_each(|(weight, step)| *weight = *weight * decay - size * step);
        }
        Ok(norm)
    }

    fn adam(&mut self, parameter: &TensorLayout, gradient: &[f32], factor: f32, rate: f64, keep: f32) {
        // Both moments begin at 0 and are too small at first; this corrects the bias (Kingma and Ba, 2015).
        let [mean, square] = BETAS.map(|beta| 1.0 - f64::from(beta).powf(self.step as f64));
        let step = (rate / mean) as f32;
        let root = (1.0 / square.sqrt()) as f32;
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
                    weights[n] = weights[n] * keep - step * first[n] / (second[n].sqrt() * root + EPSILON);
                }
            },
        );
    }

    /// Returns the direction of Muon's step: the Nesterov momentum, with all singular values near 1.
    fn muon(&self, parameter: &TensorLayout, gradient: &[f32], factor: f32) -> Result<Vec<f32>> {
        let range = parameter.range.clone();
        let ahead = self.first[range.clone()].iter().zip(&gradient[range]);
        let ahead = ahead.map(|(first, g)| MOMENTUM * first + (1.0 - MOMENTUM) * g * factor).collect();
        let columns = parameter.shape[1];
        let direction = orthogonal(&matrix(ahead, columns)?)?;
        Ok(values(&direction.contiguous()?)?.to_vec())
    }
}

/// Approximately the nearest matrix with orthonormal rows or columns: `U Vᵀ` of `U S Vᵀ`, with singular values between 0.7 and 1.2.
fn orthogonal(x: &Tensor) -> Result<Tensor> {
    let (rows, columns) = x.dims2()?;
    let norm = norm(&values(x)?);
    // The iteration needs singular values of at most 1, which scaling by the Frobenius norm ensures. A matrix of zeros stays zero.
    let mut x = (x / (norm + 1e-12))?;
    if rows > columns {
        x = x.t()?.contiguous()?;
    }
    let ([a, b, c], times) = NEWTON_SCHULZ;
    for _ in 0..times {
        let square = x.matmul(&x.t()?)?;
        let factor = ((&square * b)? + (square.matmul(&square)? * c)?)?;
        x = ((&x * a)? + factor.matmul(&x)?)?;
    }
    if rows > columns { x.t() } else { Ok(x) }
}

/// `√Σ g²`, summed chunk by chunk in an order that does not depend on the number of threads.
fn norm(gradient: &[f32]) -> f64 {
    let squares = gradient.par_chunks(CHUNK).map(|chunk| chunk.iter().map(|g| f64::from(*g).powi(2)).sum());
    squares.collect::<Vec<f64>>().iter().sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_muon_are_nearly_orthogonal() {
        for (rows, columns) in [(6, 10), (10, 6), (8, 8)] {
            let numbers: Vec<f32> =
                (0..rows * columns).map(|n| ((n * n + 3 * n) % 17) as f32 - 8.0).collect();
            let x = orthogonal(&matrix(numbers, columns).unwrap()).unwrap();
            let square = if rows > columns { x.t().unwrap().matmul(&x) } else { x.matmul(&x.t().unwrap()) };
            let square = square.unwrap().to_vec2::<f32>().unwrap();
            for (n, row) in square.iter().enumerate() {
                for (m, value) in row.iter().enumerate() {
                    let expected = if n == m { 1.0 } else { 0.0 };
                    assert!((value - expected).abs() < 0.6, "{rows} x {columns}: {n} {m} {value}");
                }
            }
        }
    }
}
