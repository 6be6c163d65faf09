//! Elementwise steps of a decoder on rows of `f32`, each with its derivative, because candle's own RMS norm, softmax and rotary
//! embedding have no backward pass.
//!
//! Sums run over sixteen lanes, which the compiler turns into vector instructions. Their order is fixed.

use crate::model::{Config, rotary_tables};

/// The number of partial sums of a reduction.
const LANES: usize = 16;

/// `e^x` with a relative error below 3e-7 (tested); arguments beyond ±87 are clamped to ±87.
#[inline]
pub fn exp(x: f32) -> f32 {
    // Adding 1.5 · 2²³ rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    // ln 2 in two parts, so that x - n ln 2 loses no digits (Cody and Waite, 1980).
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    // The polynomial of Cephes' expf.
    let series = 1.987_569_1e-4 * r + 1.398_2e-3;
    let series = (series * r + 8.333_452e-3) * r + 4.166_579_6e-2;
    let series = ((series * r + 1.666_666_5e-1) * r + 0.5) * r * r + r + 1.0;
    series * f32::from_bits(rounded.to_bits().wrapping_add(127) << 23)
}

/// `Σ f(a, b)` over two rows.
#[inline]
fn reduce(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (heads, tails) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = heads.remainder().iter().zip(tails.remainder()).map(|(a, b)| f(*a, *b)).sum();
    for (a, b) in heads.zip(tails) {
        for lane in 0..LANES {
            lanes[lane] += f(a[lane], b[lane]);
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// `Σ a b`.
#[inline]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    reduce(a, b, |a, b| a * b)
}

#[inline]
fn greatest(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder().iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] > lanes[lane] { chunk[lane] } else { lanes[lane] };
        }
    }
    lanes.into_iter().fold(rest, f32::max)
}

/// `a += b`.
#[inline]
pub fn add(a: &mut [f32], b: &[f32]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
}

/// Scales rows to unit root mean square, then by `scale`. The second result is `1/√(mean x² + eps)` of each row.
pub fn rms_norm(x: &[f32], scale: &[f32], eps: f32) -> (Vec<f32>, Vec<f32>) {
    let size = scale.len();
    let mut out = Vec::with_capacity(x.len());
    let inverse = x.chunks_exact(size).map(|row| {
        let inverse = 1.0 / (dot(row, row) / size as f32 + eps).sqrt();
        out.extend(row.iter().zip(scale).map(|(x, scale)| x * inverse * scale));
        inverse
    });
    let inverse = inverse.collect();
    (out, inverse)
}

/// Computes the derivatives of [`rms_norm`]: with respect to `x`, added to `dx`, and with respect to `scale`, added to `dscale`.
pub(crate) fn rms_norm_backward(
    dy: &[f32],
    x: &[f32],
    scale: &[f32],
    inverse: &[f32],
    dx: &mut [f32],
    dscale: &mut [f32],
) {
    let size = scale.len();
    let rows = dy.chunks_exact(size).zip(x.chunks_exact(size)).zip(dx.chunks_exact_mut(size));
    let mut scaled = vec![0.0; size];
    for (((dy, x), dx), &inverse) in rows.zip(inverse) {
        for n in 0..size {
            scaled[n] = dy[n] * scale[n];
            dscale[n] += dy[n] * x[n] * inverse;
        }
        // The mean square depends on every `x` of the row, so every `dx` has a contribution from all others.
        let shared = dot(&scaled, x) * inverse * inverse * inverse / size as f32;
        for n in 0..size {
            dx[n] += scaled[n] * inverse - x[n] * shared;
        }
    }
}

/// `silu(gate) · up` for rows `[gate | up]` of `2 * size` numbers.
pub(crate) fn swiglu(gate_up: &[f32], size: usize) -> Vec<f32> {
    let mut out = vec![0.0; gate_up.len() / 2];
    for (row, out) in gate_up.chunks_exact(2 * size).zip(out.chunks_exact_mut(size)) {
        let (gate, up) = row.split_at(size);
        for n in 0..size {
            out[n] = gate[n] * up[n] / (1.0 + exp(-gate[n]));
        }
    }
    out
}

/// Returns the derivative of [`swiglu`], as rows `[dgate | dup]`.
pub(crate) fn swiglu_backward(dy: &[f32], gate_up: &[f32], size: usize) -> Vec<f32> {
    let mut out = vec![0.0; gate_up.len()];
    let rows = gate_up.chunks_exact(2 * size).zip(out.chunks_exact_mut(2 * size));
    for ((row, out), dy) in rows.zip(dy.chunks_exact(size)) {
        let (gate, up) = row.split_at(size);
        let (dgate, dup) = out.split_at_mut(size);
        for n in 0..size {
            let sigmoid = 1.0 / (1.0 + exp(-gate[n]));
            let silu = gate[n] * sigmoid;
            dgate[n] = dy[n] * up[n] * (sigmoid + silu * (1.0 - sigmoid));
            dup[n] = dy[n] * silu;
        }
    }
    out
}

/// The cosines and sines of the rotary embeddings, each `[positions, head_dim / 2]`.
pub(crate) struct Rotary {
    cos: Vec<f32>,
    sin: Vec<f32>,
    half: usize,
}

impl Rotary {
    /// Returns the tables of positions below `positions`, equal to those of the decoder.
    pub(crate) fn new(config: &Config, positions: usize) -> Self {
        let [cos, sin] = rotary_tables(config, positions);
        Rotary { cos, sin, half: config.head_dim / 2 }
    }

    /// Rotates one head `[first half | second half]` by its position, or back.
    #[inline]
    pub(crate) fn turn(&self, head: &mut [f32], position: usize, back: bool) {
        let angles = position * self.half..(position + 1) * self.half;
        let (cos, sin) = (&self.cos[angles.clone()], &self.sin[angles]);
        let sign = if back { -1.0 } else { 1.0 };
        let (first, second) = head.split_at_mut(self.half);
        for n in 0..first.len() {
            let (a, b) = (first[n], second[n]);
            first[n] = a * cos[n] - b * sin[n] * sign;
            second[n] = b * cos[n] + a * sin[n] * sign;
        }
    }
}

/// Computes the softmax of `scale * scores` over the first `width` numbers of a row; the others become 0.
pub fn softmax(scores: &[f32], width: usize, scale: f32, out: &mut [f32]) {
    // The highest score is subtracted so that no exponential overflows; the result is the same.
    let top = greatest(&scores[..width]);
    for (out, score) in out[..width].iter_mut().zip(scores) {
        *out = exp((score - top) * scale);
    }
    let sum = reduce(&out[..width], &out[..width], |a, _| a);
    out[..width].iter_mut().for_each(|p| *p /= sum);
    out[width..].fill(0.0);
}

/// Computes the derivative of [`softmax`] with respect to the scores: `p (dp - Σ p dp) scale`.
pub(crate) fn softmax_backward(p: &[f32], dp: &[f32], scale: f32, out: &mut [f32]) {
    let shared = dot(p, dp);
    for ((out, p), dp) in out.iter_mut().zip(p).zip(dp) {
        *out = p * (dp - shared) * scale;
    }
}

/// How well a row of logits predicts the token after it.
pub struct Prediction {
    /// `-log p(target)`, in nats.
    pub nats: f32,
    /// Whether the target is the most likely token.
    pub right: bool,
}

/// Returns the cross-entropy of one row of logits; `gradient` becomes its derivative with respect to the logits, times `weight`.
pub(crate) fn cross_entropy(logits: &[f32], target: usize, weight: f32, gradient: &mut [f32]) -> Prediction {
    let top = greatest(logits);
    for (out, logit) in gradient.iter_mut().zip(logits) {
        *out = exp(logit - top);
    }
    let sum = reduce(gradient, gradient, |a, _| a);
    let share = weight / sum;
    gradient.iter_mut().for_each(|g| *g *= share);
    // The derivative of the cross-entropy is the softmax minus 1 at the target.
    gradient[target] -= weight;
    Prediction { nats: sum.ln() + top - logits[target], right: logits[target] >= top }
}
