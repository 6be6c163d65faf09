//! Rotary position embeddings, computed as in transformers: frequencies and angles in f32.

use std::f32::consts::PI;

use super::config::{Config, Llama3Scaling};

/// The cosines and sines of every position and frequency.
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
    /// Returns the number of positions.
    pub(super) fn positions(&self) -> usize {
        self.cos.len() / self.half.max(1)
    }

    /// Returns the tables of positions `0..positions`.
    pub(super) fn new(config: &Config, positions: usize) -> Self {
        let frequencies = frequencies(config);
        let half = frequencies.len();
        let angles = (0..positions).flat_map(|at| frequencies.iter().map(move |f| at as f32 * f));
        let (cos, sin) = angles.map(|angle| (angle.cos(), angle.sin())).unzip();
        Rope { cos, sin, half }
    }

    /// Returns the cosines and sines of one position.
    pub(super) fn at(&self, position: usize) -> (&[f32], &[f32]) {
        let range = position * self.half..(position + 1) * self.half;
        (&self.cos[range.clone()], &self.sin[range])
    }
}

/// Returns the frequencies `theta^(-2i/d)`, with the scaling of Llama 3 if the config has one. They are computed in f32 and in the same
/// steps as in transformers, because an error in the last bit of a frequency changes the angle of a distant token noticeably.
fn frequencies(config: &Config) -> Vec<f32> {
    let (theta, dim) = (config.rope_theta as f32, config.head_dim as f32);
    let base = (0..config.head_dim).step_by(2).map(|i| 1.0 / theta.powf(i as f32 / dim));
    base.map(|f| config.rope_scaling.map_or(f, |scaling| stretched(f, scaling))).collect()
}

/// Llama 3's scaling: divides the frequencies of long wavelengths by the factor, keeps those of short wavelengths, and interpolates
/// between them.
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
