//! `x · weightᵀ` on the CPU, with weights as checkpoints store them, `[out, in]`. Each row of the weights is read once, in place. A
//! result is a sum over eight lanes in one fixed order. So its bits depend neither on the number of rows and threads, nor on the
//! instructions of the machine, nor on which other rows of the weights are used.

use rayon::prelude::*;

use super::simd::{
    LANES, Number, OnAnyRegisters, OnRegisters, Registers, Strip, add_products, ask_for, on_registers, pack,
    strips_of_line,
};

/// How many rows of `x` are multiplied with a block of weights before the next rows, so that both stay in the cache; a multiple of
/// the rows in a register.
const X_BLOCK: usize = 48;

/// How many numbers of the weights one task covers.
const TASK: usize = 1 << 16;

/// A task covers a multiple of this many rows of the weights, so that few rows are multiplied one by one.
const TASK_ROWS: usize = 12;

/// Returns whether this machine has AVX2 and FMA, with which the product is fast.
pub(super) fn is_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    return pulp::x86::V3::try_new().is_some();
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Returns the products of all rows of `x` (`[rows, terms]`) with rows of `weight` (`[out, terms]`): all rows, or the rows `ids` in the
/// given order, each below `out`. The result is `[rows, ids]`, flat.
pub(super) fn product<T: Number>(x: &[f32], weight: &[T], ids: Option<&[u32]>, terms: usize) -> Vec<f32> {
    on_registers(Product { x, weight, ids, terms })
}

/// The arguments of [`product`].
#[derive(Clone, Copy)]
struct Product<'p, T> {
    x: &'p [f32],
    weight: &'p [T],
    ids: Option<&'p [u32]>,
    terms: usize,
}

impl<T: Number> OnAnyRegisters for Product<'_, T> {
    type Output = Vec<f32>;

    fn run<R: Registers>(self, registers: R) -> Vec<f32> {
        let Product { x, weight, ids, terms } = self;
        let (rows, columns) = (x.len() / terms, ids.map_or(weight.len() / terms, <[u32]>::len));
        let mut out = vec![0f32; rows * columns];
        if out.is_empty() {
            return out;
        }
        let mut strips = Vec::new();
        pack::<R>(x, terms, terms / LANES, &mut strips);
        // All tasks cover about the same number of weights, whatever the width of the matrix.
        let width = (TASK / terms).next_multiple_of(TASK_ROWS).max(TASK_ROWS);
        let mut parts: Vec<Part<'_, R, T>> = (0..columns.div_ceil(width))
            .map(|part| {
                let (strips, first) = (&strips, part * width);
                Part { x, strips, weight, ids, terms, first, out: Vec::with_capacity(rows) }
            })
            .collect();
        // Each task gets its own columns of every row, so that threads write to disjoint places.
        for row in out.chunks_mut(columns) {
            for (part, cut) in parts.iter_mut().zip(row.chunks_mut(width)) {
                part.out.push(cut);
            }
        }
        parts.into_par_iter().for_each(|part| part.run(registers));
        out
    }
}

/// A range of columns of a product, from `first` on.
struct Part<'p, R: Registers, T> {
    x: &'p [f32],
    /// The strips of `x`, packed for registers.
    strips: &'p [R::Rows],
    weight: &'p [T],
    ids: Option<&'p [u32]>,
    terms: usize,
    first: usize,
    /// The columns of this part, for each row of `x`.
    out: Vec<&'p mut [f32]>,
}

impl<'p, R: Registers, T: Number> Part<'p, R, T> {
    fn run(mut self, registers: R) {
        let mut out = std::mem::take(&mut self.out);
        for (block, out) in out.chunks_mut(X_BLOCK).enumerate() {
            let (mut at, columns) = (0, out[0].len());
            while at < columns {
                let (rows, left) = (block * X_BLOCK, columns - at);
                // As many sums as fit into the registers.
                at += match left {
                    6.. if R::MANY => self.columns::<6>(registers, at, rows, out),
                    4.. => self.columns::<4>(registers, at, rows, out),
                    2.. => self.columns::<2>(registers, at, rows, out),
                    _ => self.columns::<1>(registers, at, rows, out),
                };
            }
        }
    }

    /// Returns the weights of column `at`, or of the last column if `at` is beyond it.
    fn weights(&self, at: usize) -> &'p [T] {
        // Beyond the last column the weights are only prefetched and never multiplied, so any row will do.
        let last = self.ids.map_or(self.weight.len() / self.terms, <[u32]>::len) - 1;
        let place = (self.first + at).min(last);
        let row = self.ids.map_or(place, |ids| ids[place] as usize);
        &self.weight[row * self.terms..][..self.terms]
    }

    /// Computes `W` columns from `at` on, for the rows of `x` from `first` on, whose outputs are in `out`. Returns `W`.
    fn columns<const W: usize>(
        &self,
        registers: R,
        at: usize,
        first: usize,
        out: &mut [&mut [f32]],
    ) -> usize {
        let weights = std::array::from_fn(|column| self.weights(at + column));
        let next = std::array::from_fn(|column| self.weights(at + W + column));
        let (strips, count) = (self.terms / LANES, out.len().div_ceil(R::ROWS));
        let mut done = 0;
        while done < count {
            let row = done * R::ROWS;
            let tile = Tile::<R, T, W> {
                weights,
                next,
                x: &self.x[(first + row) * self.terms..],
                strips: &self.strips[(first + row) / R::ROWS * strips..],
                ahead: done * strips / count,
                count,
                at,
            };
            let out = &mut out[row..];
            // With few registers, four are split into two and two: a single one would leave half of the units idle.
            done += match count - done {
                1 => tile.sum::<1>(registers, out),
                2 => tile.sum::<2>(registers, out),
                3 => tile.sum::<3>(registers, out),
                4 if !R::MANY => tile.sum::<2>(registers, out),
                _ if !R::MANY => tile.sum::<3>(registers, out),
                _ => tile.sum::<4>(registers, out),
            };
        }
        W
    }
}

/// `W` columns from `at` on, for some rows of `x`.
struct Tile<'t, R: Registers, T, const W: usize> {
    weights: [&'t [T]; W],
    /// The weights that are used next, for prefetching.
    next: [&'t [T]; W],
    x: &'t [f32],
    strips: &'t [R::Rows],
    /// The first strip of `next` that was not prefetched yet.
    ahead: usize,
    /// The number of row registers that these weights are multiplied with, tile by tile.
    count: usize,
    at: usize,
}

impl<R: Registers, T: Number, const W: usize> Tile<'_, R, T, W> {
    /// Computes the rows of `x` in the first `X` registers. Returns `X`.
    fn sum<const X: usize>(&self, registers: R, out: &mut [&mut [f32]]) -> usize {
        // Two functions: in a single one, adding up the lanes could use half of the registers, and too few would be left for the
        // sums.
        let sums = registers.run(Sum::<R, T, W, X>(self));
        registers.run(Write { tile: self, sums: &sums, out });
        X
    }
}

/// Sums the rows in the first `X` registers of a tile.
struct Sum<'s, 't, R: Registers, T, const W: usize, const X: usize>(&'s Tile<'t, R, T, W>);

impl<R: Registers, T: Number, const W: usize, const X: usize> OnRegisters<R> for Sum<'_, '_, R, T, W, X> {
    type Output = [[R::Register; X]; W];

    #[inline(always)]
    fn run(self, registers: R) -> [[R::Register; X]; W] {
        let tile = self.0;
        let strips = tile.weights[0].len() / LANES;
        let mut weights: [&[Strip<T>]; W] = [&[]; W];
        let mut next = weights;
        for column in 0..W {
            weights[column] = &tile.weights[column].as_chunks().0[..strips];
            next[column] = &tile.next[column].as_chunks().0[..strips];
        }
        let mut x: [&[R::Rows]; X] = [&[]; X];
        for (register, x) in x.iter_mut().enumerate() {
            *x = &tile.strips[register * strips..][..strips];
        }
        // Each tile of these columns prefetches its share of the next columns.
        let ahead = tile.ahead..tile.ahead + (X * strips).div_ceil(tile.count);
        let mut sums = [[registers.zero(); X]; W];
        for strip in 0..strips {
            if strip % strips_of_line::<T>() == 0 && ahead.contains(&strip) {
                for next in next {
                    ask_for(&next[strip]);
                }
            }
            let mut rows = [registers.zero(); X];
            for (rows, x) in rows.iter_mut().zip(x) {
                *rows = registers.of_rows(&x[strip]);
            }
            for column in 0..W {
                add_products(registers, &weights[column][strip], rows, &mut sums[column]);
            }
        }
        sums
    }
}

/// Adds up the lanes and the terms of the incomplete last strip, and writes the results.
struct Write<'s, 't, 'o, R: Registers, T, const W: usize, const X: usize> {
    tile: &'s Tile<'t, R, T, W>,
    sums: &'s [[R::Register; X]; W],
    out: &'s mut [&'o mut [f32]],
}

impl<R: Registers, T: Number, const W: usize, const X: usize> OnRegisters<R>
    for Write<'_, '_, '_, R, T, W, X>
{
    type Output = ();

    #[inline(always)]
    fn run(self, registers: R) {
        let (terms, at) = (self.tile.weights[0].len(), self.tile.at);
        let mut totals = [[[0f32; 2]; X]; W];
        registers.totals(self.sums.as_flattened(), totals.as_flattened_mut());
        let rest = terms - terms % LANES..terms;
        for (row, out) in self.out.iter_mut().take(X * R::ROWS).enumerate() {
            let out = &mut out[at..at + W];
            for (column, out) in out.iter_mut().enumerate() {
                *out = totals[column][row / R::ROWS][row % R::ROWS];
            }
            if rest.is_empty() {
                continue;
            }
            let x = &self.tile.x[row * terms..][rest.clone()];
            for (out, weights) in out.iter_mut().zip(self.tile.weights) {
                let pairs = weights[rest.clone()].iter().zip(x);
                // Added after the lanes and in order, so that no result depends on its tile.
                *out = pairs.fold(*out, |sum, (w, x)| w.widen().mul_add(*x, sum));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::super::simd::Eight;
    use super::*;

    /// Pseudo-random numbers of both signs.
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

    /// Checks that any rows of the weights, of any batch and on any number of threads, are columns of one product, and that this
    /// product is right.
    fn check<T: Number>(weight: &[T], x: &[f32], terms: usize, ids: &[u32]) {
        let (rows, columns) = (x.len() / terms, weight.len() / terms);
        let whole = on_threads(1, || product(x, weight, None, terms));
        assert_eq!(whole, on_threads(3, || product(x, weight, None, terms)));
        let work = Product { x, weight, ids: None, terms };
        assert_eq!(whole, work.run(Eight(pulp::Scalar256b)));
        // On a machine with AVX-512, `whole` was made with it.
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            assert_eq!(whole, work.run(Eight(simd)));
        }
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
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

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
