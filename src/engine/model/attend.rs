//! Attention of the query heads that share a key and value head, on the CPU. Each key and each value, in f32 or bf16, is read once
//! for all of these heads. A result is summed over eight lanes and in the order of positions, so its bits are the same on every
//! machine.

use std::ops::Range;

use super::kernels::{softmax, vectorized};
use super::simd::{
    LANES, Number, OnRegisters, Registers, Strip, add_products, ask_for, pack, strips_of_line,
};

/// How many numbers of keys or values are kept in the L1 cache while all heads use them.
const BLOCK: usize = 4096;

/// The query heads of one group, with the keys and values that they attend to.
#[derive(Clone, Copy)]
pub(super) struct Group<'g, T> {
    /// `[heads, dim]`, already scaled.
    pub queries: &'g [f32],
    /// `[length, dim]`
    pub keys: &'g [T],
    /// `[length, dim]`
    pub values: &'g [T],
    pub dim: usize,
}

/// Buffers that all groups of a thread reuse.
pub(super) struct Scratch<R: Registers> {
    /// The strips of the queries, register by register; zero where a strip or a head is missing.
    queries: Vec<R::Rows>,
    /// The values weighted by their shares, in the same layout.
    sums: Vec<R::Rows>,
    /// `[heads, length]`
    scores: Vec<f32>,
}

impl<R: Registers> Default for Scratch<R> {
    fn default() -> Self {
        Scratch { queries: Vec::new(), sums: Vec::new(), scores: Vec::new() }
    }
}

impl<T: Number> Group<'_, T> {
    /// Writes the attention output, which is the mean of the values weighted by the softmax of the scores: `[heads, dim]`.
    pub(super) fn attend<R: Registers>(self, registers: R, scratch: &mut Scratch<R>, out: &mut [f32]) {
        let (heads, strips) = (self.queries.len() / self.dim, self.dim.div_ceil(LANES));
        pack::<R>(self.queries, self.dim, strips, &mut scratch.queries);
        // Cleared first, because the previous group left its sums here.
        scratch.sums.clear();
        scratch.sums.resize(scratch.queries.len(), R::NO_ROWS);
        let length = self.keys.len() / self.dim;
        scratch.scores.resize(heads * length, 0.0);
        registers.run(Scores { group: self, queries: &scratch.queries, out: &mut scratch.scores });
        vectorized(
            #[inline(always)]
            || {
                for scores in scratch.scores.chunks_exact_mut(length) {
                    softmax(scores);
                }
            },
        );
        registers.run(Means { group: self, shares: &scratch.scores, out: &mut scratch.sums });
        for (head, out) in out.chunks_mut(self.dim).enumerate() {
            let places = &mut scratch.sums[head / R::ROWS * strips..];
            for (place, strip) in places.iter_mut().zip(out.chunks_mut(LANES)) {
                strip.copy_from_slice(&R::row_of(place, head % R::ROWS)[..strip.len()]);
            }
        }
    }

    /// Blocks of positions; all heads process a block before the next one.
    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        // Multiples of eight, the largest number of positions in a tile. So only the last block can have tiles of one.
        let (length, block) = (self.keys.len() / self.dim, (BLOCK / self.dim).next_multiple_of(8).max(8));
        (0..length).step_by(block).map(move |first| first..length.min(first + block))
    }
}

/// Returns the key or the value at a position.
#[inline(always)]
fn row_at<T>(rows: &[T], dim: usize, at: usize) -> &[T] {
    &rows[at * dim..][..dim]
}

/// Prefetches the row that is one block ahead of `at`, if there is one.
#[inline(always)]
fn ask_ahead<T: Number>(rows: &[T], dim: usize, at: usize) {
    // The distance is a whole number of rows; otherwise the address would point into the middle of a row.
    let next = at * dim + BLOCK.next_multiple_of(dim);
    for strips in rows.get(next..next + dim).unwrap_or_default().chunks(strips_of_line::<T>() * LANES) {
        ask_for(&strips[0]);
    }
}

/// Returns the incomplete last strip of a row, filled up with zeros.
#[inline(always)]
fn rest_of<T: Number>(row: &[T]) -> Strip<T> {
    let rest = row.as_chunks::<LANES>().1;
    let mut strip = [T::default(); LANES];
    strip[..rest.len()].copy_from_slice(rest);
    strip
}

/// Computes the scores: products of the queries with the keys.
struct Scores<'g, 's, R: Registers, T> {
    group: Group<'g, T>,
    queries: &'s [R::Rows],
    /// `[heads, length]`
    out: &'s mut [f32],
}

impl<R: Registers, T: Number> OnRegisters<R> for Scores<'_, '_, R, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, registers: R) {
        let count = self.queries.len() / self.group.dim.div_ceil(LANES);
        for block in self.group.blocks() {
            for heads in (0..count).step_by(2) {
                let (mut at, are_two) = (block.start, heads + 1 < count);
                while at < block.end {
                    // As many sums as fit into the registers.
                    at += match (are_two, block.end - at) {
                        (true, 8..) if R::MANY => self.tile::<8, 2>(registers, heads, at),
                        (true, 4..) => self.tile::<4, 2>(registers, heads, at),
                        (true, _) => self.tile::<1, 2>(registers, heads, at),
                        (false, 8..) => self.tile::<8, 1>(registers, heads, at),
                        (false, _) => self.tile::<1, 1>(registers, heads, at),
                    };
                }
            }
        }
    }
}

impl<R: Registers, T: Number> Scores<'_, '_, R, T> {
    /// Computes the scores of `W` keys from `at` on for `X` registers of heads. Returns `W`.
    #[inline(always)]
    fn tile<const W: usize, const X: usize>(&mut self, registers: R, heads: usize, at: usize) -> usize {
        let Group { keys, dim, .. } = self.group;
        let (whole, strips) = (dim / LANES, dim.div_ceil(LANES));
        let mut rows: [&[Strip<T>]; W] = [&[]; W];
        for (row, strips) in rows.iter_mut().enumerate() {
            *strips = &row_at(keys, dim, at + row).as_chunks().0[..whole];
            // Only for the first pair of registers: the other pairs find these rows in the cache.
            if heads == 0 {
                ask_ahead(keys, dim, at + row);
            }
        }
        let mut x: [&[R::Rows]; X] = [&[]; X];
        for (register, x) in x.iter_mut().enumerate() {
            *x = &self.queries[(heads + register) * strips..][..strips];
        }
        let mut sums = [[registers.zero(); X]; W];
        for strip in 0..whole {
            let mut queries = [registers.zero(); X];
            for (queries, x) in queries.iter_mut().zip(x) {
                *queries = registers.of_rows(&x[strip]);
            }
            for row in 0..W {
                add_products(registers, &rows[row][strip], queries, &mut sums[row]);
            }
        }
        if whole < strips {
            let mut queries = [registers.zero(); X];
            for (queries, x) in queries.iter_mut().zip(x) {
                *queries = registers.of_rows(&x[whole]);
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                add_products(registers, &rest_of(row_at(keys, dim, at + row)), queries, sums);
            }
        }
        let mut totals = [[[0f32; 2]; X]; W];
        registers.totals(sums.as_flattened(), totals.as_flattened_mut());
        let length = keys.len() / dim;
        for (head, out) in
            self.out.chunks_exact_mut(length).enumerate().skip(heads * R::ROWS).take(X * R::ROWS)
        {
            let (register, row) = (head / R::ROWS - heads, head % R::ROWS);
            for (out, totals) in out[at..].iter_mut().zip(totals) {
                *out = totals[register][row];
            }
        }
        W
    }
}

/// Computes the weighted means of the values.
struct Means<'g, 's, R: Registers, T> {
    group: Group<'g, T>,
    /// `[heads, length]`
    shares: &'s [f32],
    /// The strips of the outputs, register by register.
    out: &'s mut [R::Rows],
}

impl<R: Registers, T: Number> OnRegisters<R> for Means<'_, '_, R, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self, registers: R) {
        let (whole, strips) = (self.group.dim / LANES, self.group.dim.div_ceil(LANES));
        let count = self.out.len() / strips;
        for block in self.group.blocks() {
            for heads in (0..count).step_by(2) {
                let (mut at, are_two) = (0, heads + 1 < count);
                while at < whole {
                    let block = block.clone();
                    at += match (are_two, whole - at) {
                        (true, 8..) if R::MANY => self.tile::<8, 2>(registers, heads, at, block),
                        (true, 4..) => self.tile::<4, 2>(registers, heads, at, block),
                        (true, _) => self.tile::<1, 2>(registers, heads, at, block),
                        (false, 16..) if R::MANY => self.tile::<16, 1>(registers, heads, at, block),
                        (false, 8..) => self.tile::<8, 1>(registers, heads, at, block),
                        (false, _) => self.tile::<1, 1>(registers, heads, at, block),
                    };
                }
            }
            if whole < strips {
                for register in 0..count {
                    self.rest(registers, register, block.clone());
                }
            }
        }
    }
}

impl<R: Registers, T: Number> Means<'_, '_, R, T> {
    /// Returns the shares of the two heads in a register. For a missing head the shares of the last head are returned.
    #[inline(always)]
    fn shares(&self, register: usize, positions: &Range<usize>) -> [&[f32]; 2] {
        let length = self.group.keys.len() / self.group.dim;
        // A register for two rows may hold only one head. The result for the missing head is discarded at the end.
        let last = self.shares.len() / length - 1;
        let of =
            |row: usize| &self.shares[(register * R::ROWS + row).min(last) * length..][positions.clone()];
        [of(0), of(1)]
    }

    /// Adds `W` strips of the values, from strip `at` on, to `X` registers of heads. Returns `W`.
    #[inline(always)]
    fn tile<const W: usize, const X: usize>(
        &mut self,
        registers: R,
        heads: usize,
        at: usize,
        positions: Range<usize>,
    ) -> usize {
        let Group { values, dim, .. } = self.group;
        let strips = dim.div_ceil(LANES);
        let mut shares: [[&[f32]; 2]; X] = [[&[]; 2]; X];
        let mut sums = [[registers.zero(); X]; W];
        for register in 0..X {
            shares[register] = self.shares(heads + register, &positions);
            let out = &self.out[(heads + register) * strips + at..][..W];
            for (sums, out) in sums.iter_mut().zip(out) {
                sums[register] = registers.of_rows(out);
            }
        }
        for (number, position) in positions.enumerate() {
            // Once per position, in the first tile.
            if heads == 0 && at == 0 {
                ask_ahead(values, dim, position);
            }
            let value: &[Strip<T>] = &row_at(values, dim, position).as_chunks().0[at..at + W];
            let mut x = [registers.zero(); X];
            for (x, [first, second]) in x.iter_mut().zip(shares) {
                *x = registers.of_numbers([first[number], second[number]]);
            }
            for strip in 0..W {
                add_products(registers, &value[strip], x, &mut sums[strip]);
            }
        }
        for register in 0..X {
            let out = &mut self.out[(heads + register) * strips + at..][..W];
            for (sums, out) in sums.iter().zip(out) {
                *out = registers.to_rows(sums[register]);
            }
        }
        W
    }

    /// Adds the incomplete last strips of the values to a register of heads.
    #[inline(always)]
    fn rest(&mut self, registers: R, register: usize, positions: Range<usize>) {
        let Group { values, dim, .. } = self.group;
        let [first, second] = self.shares(register, &positions);
        // The register's last strip is the incomplete one.
        let place = (register + 1) * dim.div_ceil(LANES) - 1;
        let mut sum = [registers.of_rows(&self.out[place])];
        for (position, (first, second)) in positions.zip(first.iter().zip(second)) {
            let share = [registers.of_numbers([*first, *second])];
            add_products(registers, &rest_of(row_at(values, dim, position)), share, &mut sum);
        }
        self.out[place] = registers.to_rows(sum[0]);
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::super::simd::{Eight, OnAnyRegisters, on_registers};
    use super::*;

    impl<T: Number> OnAnyRegisters for Group<'_, T> {
        type Output = Vec<f32>;

        fn run<R: Registers>(self, registers: R) -> Vec<f32> {
            // Leftovers of an earlier group must have no effect.
            let mut scratch = Scratch::default();
            scratch.scores.resize(7, f32::NAN);
            let mut out = vec![f32::NAN; self.queries.len()];
            self.attend(registers, &mut scratch, &mut out);
            out
        }
    }

    /// Attention by its definition, in f64.
    fn defined<T: Number>(group: &Group<'_, T>) -> Vec<f64> {
        let wide = |number: &T| f64::from(number.widen());
        let mean = |query: &[f32]| {
            let score =
                |key: &[T]| -> f64 { key.iter().zip(query).map(|(k, q)| wide(k) * f64::from(*q)).sum() };
            let scores: Vec<f64> = group.keys.chunks(group.dim).map(score).collect();
            let best = scores.iter().copied().fold(f64::MIN, f64::max);
            let shares: Vec<f64> = scores.iter().map(|score| (score - best).exp()).collect();
            let total: f64 = shares.iter().sum();
            let values = || group.values.chunks(group.dim).zip(&shares);
            let of = |at: usize| values().map(|(value, share)| share / total * wide(&value[at])).sum::<f64>();
            (0..group.dim).map(of).collect::<Vec<f64>>()
        };
        group.queries.chunks(group.dim).flat_map(mean).collect()
    }

    fn check<T: Number>(group: Group<'_, T>) -> Result<(), TestCaseError> {
        let found = on_registers(group);
        prop_assert_eq!(&found, &group.run(Eight(pulp::Scalar256b)));
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            prop_assert_eq!(&found, &group.run(Eight(simd)));
        }
        // Each head gives the same bits as it gives alone.
        for (query, found) in group.queries.chunks(group.dim).zip(found.chunks(group.dim)) {
            prop_assert_eq!(found, on_registers(Group { queries: query, ..group }));
        }
        for (found, expected) in found.iter().zip(defined(&group)) {
            prop_assert!((f64::from(*found) - expected).abs() < 1e-5, "{} for {}", found, expected);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

        #[test]
        fn heads_attend_as_defined(heads in 1usize..9, dim in 1usize..150, length in 1usize..150, seed: u32) {
            let mut state = seed;
            let mut numbers = |count: usize| -> Vec<f32> {
                let mut next = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 8) as f32 / (1 << 23) as f32 - 1.0
                };
                (0..count).map(|_| next()).collect()
            };
            let (queries, keys, values) = (numbers(heads * dim), numbers(length * dim), numbers(length * dim));
            check(Group { queries: &queries, keys: &keys, values: &values, dim })?;
            let [keys, values] = [keys, values].map(|side| side.into_iter().map(bf16::from_f32).collect::<Vec<_>>());
            check(Group { queries: &queries, keys: &keys, values: &values, dim })?;
        }
    }
}
