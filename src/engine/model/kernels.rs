//! Inner loops of the CPU decoder, in f32. They are plain loops that the compiler vectorises; [`vectorized`] selects the widest
//! instructions of the machine at run time. The result for a row does not depend on the other rows.

use pulp::Simd;

use drift_core::sampling::maximum;

/// The number of partial sums side by side.
const LANES: usize = 16;

/// Runs `work`, which must be `#[inline(always)]`, compiled for AVX-512, or for AVX2 and FMA, if the machine has them.
#[inline]
pub(super) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V4::try_new() {
        return simd.vectorize(Closure(work));
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(Closure(work));
    }
    pulp::Scalar.vectorize(Closure(work))
}

struct Closure<F>(F);

impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Closure<F> {
    type Output = R;

    #[inline(always)]
    fn call(self) -> R {
        (self.0)()
    }
}

/// `Σ a·b`
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a_strips, a_rest) = a.as_chunks::<LANES>();
    let (b_strips, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0f32; LANES];
    for (a, b) in a_strips.iter().zip(b_strips) {
        for lane in 0..LANES {
            sums[lane] = a[lane].mul_add(b[lane], sums[lane]);
        }
    }
    // The incomplete last strip is added last and in order, on every machine.
    a_rest.iter().zip(b_rest).fold(folded(sums), |sum, (a, b)| a.mul_add(*b, sum))
}

/// Returns the sum of the lanes: the second half is added to the first until one is left. `N` is a power of 2.
#[inline(always)]
pub(super) fn folded<const N: usize>(mut lanes: [f32; N]) -> f32 {
    let mut width = N / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// `e^x`, within 2 units in the last place for -87 < x < 88 and constant outside (Cody and Waite's reduction, Taylor's series).
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 · 2^23 rounds to an integer without a function call.
    const ROUND: f32 = 12_582_912.0;
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Outside this range the power of two would not fit into the exponent of an f32.
    let x = x.clamp(-87.0, 88.0);
    let power = x.mul_add(std::f32::consts::LOG2_E, ROUND) - ROUND;
    let rest = power.mul_add(-LN2_LOW, power.mul_add(-LN2_HIGH, x));
    let mut sum = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = rest.mul_add(sum, coefficient);
    }
    sum * f32::from_bits(((power as i32 + 127) as u32) << 23)
}

/// `silu(gate) · up` for one row; the first half of `gate_up` is the gate, the second is `up`.
#[inline(always)]
pub(super) fn gated(gate_up: &[f32], out: &mut [f32]) {
    let (gate, up) = gate_up.split_at(out.len());
    for ((out, gate), up) in out.iter_mut().zip(gate).zip(up) {
        *out = gate / (1.0 + exp(-gate)) * up;
    }
}

/// Divides a row by its root mean square and multiplies by `weight`.
#[inline(always)]
pub(super) fn rms_norm(row: &mut [f32], weight: &[f32], epsilon: f32) {
    let scale = 1.0 / (dot(row, row) / row.len() as f32 + epsilon).sqrt();
    for (x, weight) in row.iter_mut().zip(weight) {
        *x = *x * scale * weight;
    }
}

/// Rotates the two halves of one head against each other.
#[inline(always)]
pub(super) fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (first, second) = head.split_at_mut(cos.len());
    for (((a, b), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
        (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
    }
}

/// Computes the softmax of scores, in place.
#[inline(always)]
pub(super) fn softmax(scores: &mut [f32]) {
    // The maximum is subtracted so that no exponential overflows; the result is the same.
    let max = maximum(scores);
    for score in scores.iter_mut() {
        *score = exp(*score - max);
    }
    let scale = 1.0 / sum(scores);
    for score in scores {
        *score *= scale;
    }
}

/// Returns the sum of many numbers, as fast as they are read.
pub(super) fn total(values: &[f32]) -> f32 {
    vectorized(
        #[inline(always)]
        || sum(values),
    )
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let (strips, rest) = values.as_chunks::<LANES>();
    let mut sums = [0f32; LANES];
    for strip in strips {
        for lane in 0..LANES {
            sums[lane] += strip[lane];
        }
    }
    sums.iter().chain(rest).sum()
}
