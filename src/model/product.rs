//! `x · weightᵀ` on the CPU, with weights as checkpoints store them, `[out, in]`: each row of them is read once, where it
//! lies. A result is the sum over eight lanes in one order, whatever else is computed beside it, so its bits depend on
//! neither the number of rows, nor the threads, nor which rows of the weights are asked for.

use half::bf16;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::kernels::folded;

/// Numbers that are summed side by side, as many as AVX2 has in a register.
const LANES: usize = 8;

/// Rows of weights and of `x` whose products are summed at once: 12 registers of sums, 3 of `x`, 1 of weights, of 16.
const WEIGHT_ROWS: usize = 4;
const X_ROWS: usize = 3;

/// Rows of `x` that are multiplied with a block of weights before the next ones, so that both stay in the cache.
const X_BLOCK: usize = 24;

/// Numbers of the weights of one task.
const TASK: usize = 1 << 16;

/// A number of weights.
pub(super) trait Number: Copy + Send + Sync {
    /// The same as f32, exactly.
    fn widen(self) -> f32;
}

impl Number for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Number for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

/// Whether this machine has the instructions that make the product fast: AVX2 and FMA.
pub(super) fn is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return pulp::x86::V3::try_new().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// The products of all rows of `x` (`[rows, terms]`) with rows of `weight` (`[out, terms]`): those of `ids` in their
/// order, each below `out`, or all. `[rows, ids]`, flat.
pub(super) fn product<T: Number>(x: &[f32], weight: &[T], ids: Option<&[u32]>, terms: usize) -> Vec<f32> {
    let (rows, columns) = (x.len() / terms, ids.map_or(weight.len() / terms, <[u32]>::len));
    let mut out = vec![0f32; rows * columns];
    if out.is_empty() {
        return out;
    }
    let width = (TASK / terms).next_multiple_of(WEIGHT_ROWS).max(WEIGHT_ROWS);
    let mut parts: Vec<Part<'_, T>> = (0..columns.div_ceil(width))
        .map(|part| Part { x, weight, ids, terms, first: part * width, out: Vec::with_capacity(rows) })
        .collect();
    for row in out.chunks_mut(columns) {
        for (part, cut) in parts.iter_mut().zip(row.chunks_mut(width)) {
            part.out.push(cut);
        }
    }
    parts.into_par_iter().for_each(Part::run);
    out
}

/// Some columns of a product, from `first` on.
struct Part<'p, T> {
    x: &'p [f32],
    weight: &'p [T],
    ids: Option<&'p [u32]>,
    terms: usize,
    first: usize,
    /// Of each row of `x`.
    out: Vec<&'p mut [f32]>,
}

impl<T: Number> Part<'_, T> {
    fn run(self) {
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Simd::vectorize(simd, self);
        }
        Simd::vectorize(pulp::Scalar256b, self);
    }

    /// `W` columns from `at` on, for the rows of `x` that `out` is of.
    #[inline(always)]
    fn columns<S: Simd, const W: usize>(&self, simd: S, at: usize, x: &[f32], out: &mut [&mut [f32]]) {
        let mut weights: [&[T]; W] = [&[]; W];
        for (column, weights) in weights.iter_mut().enumerate() {
            let place = self.first + at + column;
            let row = self.ids.map_or(place, |ids| ids[place] as usize);
            *weights = &self.weight[row * self.terms..][..self.terms];
        }
        let mut row = 0;
        while row < out.len() {
            let (x, out) = (&x[row * self.terms..], &mut out[row..]);
            // Four as two and two: a row alone keeps half of the units waiting.
            row += match out.len() {
                1 => tile::<S, T, W, 1>(simd, &weights, x, at, out),
                2 | 4 => tile::<S, T, W, 2>(simd, &weights, x, at, out),
                _ => tile::<S, T, W, X_ROWS>(simd, &weights, x, at, out),
            };
        }
    }
}

// A struct, not a closure: the compiler would call a closure's body with the instructions of any machine.
impl<T: Number> WithSimd for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut out = std::mem::take(&mut self.out);
        for (x, out) in self.x.chunks(X_BLOCK * self.terms).zip(out.chunks_mut(X_BLOCK)) {
            let columns = out[0].len();
            let whole = columns - columns % WEIGHT_ROWS;
            for at in (0..whole).step_by(WEIGHT_ROWS) {
                self.columns::<S, WEIGHT_ROWS>(simd, at, x, out);
            }
            for at in whole..columns {
                self.columns::<S, 1>(simd, at, x, out);
            }
        }
    }
}

/// `W` columns from `at` on, of the first `X` rows of `x`; gives `X`.
#[inline(always)]
fn tile<S: Simd, T: Number, const W: usize, const X: usize>(
    simd: S,
    weights: &[&[T]; W],
    x: &[f32],
    at: usize,
    out: &mut [&mut [f32]],
) -> usize {
    let terms = weights[0].len();
    let strips = terms / LANES;
    let mut w: [&[[T; LANES]]; W] = [&[]; W];
    let mut xs: [&[[f32; LANES]]; X] = [&[]; X];
    for column in 0..W {
        w[column] = &weights[column].as_chunks().0[..strips];
    }
    for row in 0..X {
        xs[row] = &x[row * terms..][..terms].as_chunks().0[..strips];
    }
    let mut sums = [[simd.splat_f32s(0.0); X]; W];
    for strip in 0..strips {
        let mut x = [simd.splat_f32s(0.0); X];
        for row in 0..X {
            x[row] = pulp::cast(xs[row][strip]);
        }
        for column in 0..W {
            let mut wide = [0f32; LANES];
            for (wide, number) in wide.iter_mut().zip(&w[column][strip]) {
                *wide = number.widen();
            }
            let weight: S::f32s = pulp::cast(wide);
            for (sum, x) in sums[column].iter_mut().zip(x) {
                *sum = simd.mul_add_f32s(weight, x, *sum);
            }
        }
    }
    // Apart from what follows, so that the sums stay in registers.
    let mut totals = [[0f32; X]; W];
    for column in 0..W {
        for row in 0..X {
            totals[column][row] = folded::<LANES>(pulp::cast(sums[column][row]));
        }
    }
    let rest = strips * LANES..terms;
    for (column, totals) in totals.iter().enumerate() {
        let weights = &weights[column][rest.clone()];
        for (row, total) in totals.iter().enumerate() {
            let pairs = weights.iter().zip(&x[row * terms..][rest.clone()]);
            out[row][at + column] = pairs.fold(*total, |sum, (w, x)| w.widen().mul_add(*x, sum));
        }
    }
    X
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers of both signs, by seed.
    fn numbers(seed: u32, count: usize) -> Vec<f32> {
        let mut state = seed | 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    fn on_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
    }

    /// Any rows of the weights, of any batch, on any threads, are columns of one product; that one is right.
    fn check<T: Number>(weight: &[T], x: &[f32], terms: usize, ids: &[u32]) {
        let (rows, columns) = (x.len() / terms, weight.len() / terms);
        let whole = on_threads(1, || product(x, weight, None, terms));
        assert_eq!(whole, on_threads(3, || product(x, weight, None, terms)));
        for (x, whole) in x.chunks(terms).zip(whole.chunks(columns)) {
            assert_eq!(whole, product(x, weight, None, terms));
            for (weight, found) in weight.chunks(terms).zip(whole) {
                let products = || weight.iter().zip(x).map(|(w, x)| f64::from(w.widen()) * f64::from(*x));
                let (exact, size) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                assert!((f64::from(*found) - exact).abs() <= 1e-6 * size, "{found} for {exact}");
            }
        }
        let some = on_threads(2, || product(x, weight, Some(ids), terms));
        let expected = |i: usize| whole[i / ids.len() * columns + ids[i % ids.len()] as usize];
        assert_eq!(some, (0..rows * ids.len()).map(expected).collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_result_depends_on_nothing_beside_it(
            seed: u32,
            rows in 1usize..60,
            columns in 1usize..90,
            terms in 1usize..140,
            picked in prop::collection::vec(any::<prop::sample::Index>(), 1..50),
        ) {
            let (weight, x) = (numbers(seed, columns * terms), numbers(!seed, rows * terms));
            let ids: Vec<u32> = picked.iter().map(|index| index.index(columns) as u32).collect();
            check(&weight, &x, terms, &ids);
            let weight: Vec<bf16> = weight.into_iter().map(bf16::from_f32).collect();
            check(&weight, &x, terms, &ids);
        }
    }

    #[test]
    fn several_tasks_and_blocks_of_rows_give_the_same() {
        let (weight, x) = (numbers(1, 50 * 4100), numbers(2, 51 * 4100));
        check(&weight, &x, 4100, &[49, 0, 17, 17]);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert!(product(&[], &[1f32, 2.0], None, 2).is_empty());
        assert!(product(&[1.0, 2.0], &[1f32, 2.0], Some(&[]), 2).is_empty());
    }
}
