//! Rotary position embeddings, as transformers computes them: frequencies and angles in f32.

use std::f32::consts::PI;

use super::config::{Config, Llama3Scaling};

/// Cosines and sines of every position and frequency.
#[derive(Debug, Clone)]
pub(super) struct Rope {
    /// `[positions, head_dim / 2]`
    pub cos: Vec<f32>,
    /// `[positions, head_dim / 2]`
    pub sin: Vec<f32>,
    /// `head_dim / 2`
    pub half: usize,
}

impl Rope {
    /// How many positions it has.
    pub(super) fn positions(&self) -> usize {
        self.cos.len() / self.half.max(1)
    }

    /// The tables of positions `0..positions`.
    pub(super) fn new(config: &Config, positions: usize) -> Self {
        let frequencies = frequencies(config);
        let half = frequencies.len();
        let angles = (0..positions).flat_map(|at| frequencies.iter().map(move |f| at as f32 * f));
        let (cos, sin) = angles.map(|angle| (angle.cos(), angle.sin())).unzip();
        Rope { cos, sin, half }
    }

    /// Cosines and sines of one position.
    pub(super) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let range = position * self.half..(position + 1) * self.half;
        (&self.cos[range.clone()], &self.sin[range])
    }
}

/// `theta^(-2i/d)`, scaled as Llama 3 does. In f32, step by step as transformers does: a frequency that is off by its
/// last bit turns a far token by a visible angle.
fn frequencies(config: &Config) -> Vec<f32> {
    let (theta, dim) = (config.rope_theta as f32, config.head_dim as f32);
    let base = (0..config.head_dim).step_by(2).map(|i| 1.0 / theta.powf(i as f32 / dim));
    base.map(|f| config.rope_scaling.map_or(f, |scaling| stretched(f, scaling))).collect()
}

/// Long wavelengths are divided by the factor, short ones left alone, those between interpolated.
fn stretched(frequency: f32, scaling: Llama3Scaling) -> f32 {
    let (low, high) = (scaling.low_freq_factor as f32, scaling.high_freq_factor as f32);
    let (factor, context) = (scaling.factor as f32, scaling.original_max_position_embeddings as f32);
    let wavelength = 2.0 * PI / frequency;
    if wavelength > context / low {
        frequency / factor
    } else if wavelength < context / high {
        frequency
    } else {
        let smooth = (context / wavelength - low) / (high - low);
        (1.0 - smooth) * frequency / factor + smooth * frequency
    }
}
