//! CPU registers as products and attention use them: strips of eight terms, with one sum per lane. An AVX-512 register holds the
//! same strip of two rows of `x`. So a machine with AVX-512 sums in the same order as every other machine, and gives the same bits.

use half::bf16;
use pulp::Simd;

use super::kernels::folded;

/// The number of partial sums side by side: as many as one AVX2 register holds.
pub(super) const LANES: usize = 8;

/// Eight consecutive numbers of a row.
pub(super) type Strip<T> = [T; LANES];

/// The type of a number in the weights or in the KV cache.
pub(super) trait Number: Copy + Default + Send + Sync {
    /// Returns its value as f32; exact, since every bf16 is an f32.
    fn widen(self) -> f32;

    /// Returns the nearest number of this type.
    fn nearest(number: f32) -> Self;

    /// Returns a strip as f32, repeated for each row of a register.
    fn spread<R: Registers>(registers: R, strip: &Strip<Self>) -> R::Register;
}

impl Number for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn nearest(number: f32) -> f32 {
        number
    }

    #[inline(always)]
    fn spread<R: Registers>(registers: R, strip: &Strip<f32>) -> R::Register {
        registers.of_f32(strip)
    }
}

impl Number for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn nearest(number: f32) -> bf16 {
        bf16::from_f32(number)
    }

    #[inline(always)]
    fn spread<R: Registers>(registers: R, strip: &Strip<bf16>) -> R::Register {
        registers.of_bf16(strip)
    }
}

/// The instructions of a machine, for registers that hold `ROWS` strips.
pub(super) trait Registers: Copy + Send + Sync {
    type Register: Copy;

    /// The strips of the rows of `x` that share a register.
    type Rows: Copy + Send + Sync;

    /// The number of rows of `x` in a register.
    const ROWS: usize;

    /// Strips of zeros, one for each row.
    const NO_ROWS: Self::Rows;

    /// Whether there are 32 registers instead of 16.
    const MANY: bool;

    /// Calls `work` in a function for which these instructions are enabled.
    fn run<W: OnRegisters<Self>>(self, work: W) -> W::Output;

    fn zero(self) -> Self::Register;

    /// Returns the strip of row `row`, which is below `ROWS`.
    fn row_of(rows: &mut Self::Rows, row: usize) -> &mut Strip<f32>;

    /// Loads one strip per row into a register.
    fn of_rows(self, rows: &Self::Rows) -> Self::Register;

    /// Stores a register as one strip per row.
    fn to_rows(self, register: Self::Register) -> Self::Rows;

    /// Returns one number per row, copied to all lanes of the row. Only the first number is used if `ROWS` is 1.
    fn of_numbers(self, numbers: [f32; 2]) -> Self::Register;

    /// Returns a strip of f32 weights, repeated for each row.
    fn of_f32(self, strip: &Strip<f32>) -> Self::Register;

    /// Returns a strip of bf16 weights, repeated for each row and widened to f32.
    fn of_bf16(self, strip: &Strip<bf16>) -> Self::Register;

    fn mul_add(self, a: Self::Register, b: Self::Register, sum: Self::Register) -> Self::Register;

    /// For each register, the sums of the lanes of its `ROWS` rows. The lanes of a row are added in the order of [`folded`].
    fn totals(self, sums: &[Self::Register], totals: &mut [[f32; 2]]);
}

/// Work on registers. It is a type and not a closure, because the compiler would compile the body of a closure for the baseline
/// instructions of any machine.
pub(super) trait OnRegisters<R> {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run(self, registers: R) -> Self::Output;
}

/// Work that can run on the registers of every machine.
pub(super) trait OnAnyRegisters {
    type Output;

    fn run<R: Registers>(self, registers: R) -> Self::Output;
}

/// Runs `work` on the widest registers of this machine.
pub(super) fn on_registers<W: OnAnyRegisters>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(registers) = pulp::x86::V4::try_new() {
        return work.run(registers);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return work.run(Eight(simd));
    }
    work.run(Eight(pulp::Scalar256b))
}

/// Multiplies a strip of weights or of the cache with each register, and adds the products to the register's sums.
#[inline(always)]
pub(super) fn add_products<R: Registers, T: Number, const X: usize>(
    registers: R,
    strip: &Strip<T>,
    x: [R::Register; X],
    sums: &mut [R::Register; X],
) {
    let strip = T::spread(registers, strip);
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum = registers.mul_add(strip, x, *sum);
    }
}

/// The first `count` strips of the rows of `x` (`[rows, terms]`), register after register. Terms missing at the end of a row are
/// zero, and so is a row missing in the last register.
pub(super) fn pack<R: Registers>(x: &[f32], terms: usize, count: usize, strips: &mut Vec<R::Rows>) {
    strips.clear();
    strips.resize((x.len() / terms).div_ceil(R::ROWS) * count, R::NO_ROWS);
    for (row, x) in x.chunks(terms).enumerate() {
        let places = &mut strips[row / R::ROWS * count..][..count];
        for (place, strip) in places.iter_mut().zip(x.chunks(LANES)) {
            R::row_of(place, row % R::ROWS)[..strip.len()].copy_from_slice(strip);
        }
    }
}

/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Returns the number of strips of `T` in a cache line.
pub(super) const fn strips_of_line<T>() -> usize {
    LINE / size_of::<Strip<T>>()
}

/// Prefetches memory that is read soon. The processor's own prefetcher stops at page borders, and a row of weights is about one
/// page.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn ask_for<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction, and it has no effect that a program can observe.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Runs work on registers inside a function that has their instructions enabled.
struct SimdCall<R, W>(R, W);

impl<R: Registers, W: OnRegisters<R>> pulp::WithSimd for SimdCall<R, W> {
    type Output = W::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> W::Output {
        self.1.run(self.0)
    }
}

/// Registers of eight numbers: those of AVX2, or arrays on machines without it.
#[derive(Clone, Copy)]
pub(super) struct Eight<S>(pub S);

impl<S: Simd> Registers for Eight<S> {
    type Register = S::f32s;
    type Rows = Strip<f32>;

    const ROWS: usize = 1;
    const NO_ROWS: Strip<f32> = [0.0; LANES];
    const MANY: bool = false;

    #[inline(always)]
    fn run<W: OnRegisters<Self>>(self, work: W) -> W::Output {
        S::vectorize(self.0, SimdCall(self, work))
    }

    #[inline(always)]
    fn zero(self) -> S::f32s {
        self.0.splat_f32s(0.0)
    }

    #[inline(always)]
    fn row_of(rows: &mut Strip<f32>, _row: usize) -> &mut Strip<f32> {
        rows
    }

    #[inline(always)]
    fn of_rows(self, rows: &Strip<f32>) -> S::f32s {
        pulp::cast(*rows)
    }

    #[inline(always)]
    fn to_rows(self, register: S::f32s) -> Strip<f32> {
        pulp::cast(register)
    }

    #[inline(always)]
    fn of_numbers(self, numbers: [f32; 2]) -> S::f32s {
        self.0.splat_f32s(numbers[0])
    }

    #[inline(always)]
    fn of_f32(self, strip: &Strip<f32>) -> S::f32s {
        pulp::cast(*strip)
    }

    #[inline(always)]
    fn of_bf16(self, strip: &Strip<bf16>) -> S::f32s {
        pulp::cast(strip.map(Number::widen))
    }

    #[inline(always)]
    fn mul_add(self, a: S::f32s, b: S::f32s, sum: S::f32s) -> S::f32s {
        self.0.mul_add_f32s(a, b, sum)
    }

    #[inline(always)]
    fn totals(self, sums: &[S::f32s], totals: &mut [[f32; 2]]) {
        for (sum, total) in sums.iter().zip(totals) {
            total[0] = folded::<LANES>(pulp::cast(*sum));
        }
    }
}

/// AVX-512 registers, which hold two rows.
#[cfg(target_arch = "x86_64")]
mod sixteen {
    use std::arch::x86_64::__m512;

    use pulp::x86::V4;

    use super::{LANES, OnRegisters, Registers, Simd, SimdCall, Strip, bf16};

    /// For each byte of the register, its source in a strip of bf16 (which is in each quarter of the register), or zero. Each bf16
    /// gets two zero bytes below it, and the strip appears twice.
    const WIDER: [u8; 64] = {
        const ZERO: u8 = 0x80;
        let (mut places, mut at) = ([ZERO; 64], 0);
        while at < 2 * LANES {
            // A bf16 is the upper half of an f32, so it goes to the two high bytes of a lane.
            let from = 2 * (at % LANES) as u8;
            (places[4 * at + 2], places[4 * at + 3]) = (from, from + 1);
            at += 1;
        }
        places
    };

    impl Registers for V4 {
        type Register = __m512;
        type Rows = [Strip<f32>; 2];

        const ROWS: usize = 2;
        const NO_ROWS: [Strip<f32>; 2] = [[0.0; LANES]; 2];
        const MANY: bool = true;

        #[inline(always)]
        fn run<W: OnRegisters<Self>>(self, work: W) -> W::Output {
            Simd::vectorize(self, SimdCall(self, work))
        }

        #[inline(always)]
        fn zero(self) -> __m512 {
            self.avx512f._mm512_setzero_ps()
        }

        #[inline(always)]
        fn row_of(rows: &mut [Strip<f32>; 2], row: usize) -> &mut Strip<f32> {
            &mut rows[row]
        }

        #[inline(always)]
        fn of_rows(self, rows: &[Strip<f32>; 2]) -> __m512 {
            pulp::cast(*rows)
        }

        #[inline(always)]
        fn to_rows(self, register: __m512) -> [Strip<f32>; 2] {
            pulp::cast(register)
        }

        #[inline(always)]
        fn of_numbers(self, numbers: [f32; 2]) -> __m512 {
            let [first, second] = numbers.map(|number| self.avx512f._mm512_set1_ps(number));
            self.avx512f._mm512_mask_blend_ps(0xff00, first, second)
        }

        #[inline(always)]
        fn of_f32(self, strip: &Strip<f32>) -> __m512 {
            self.avx512dq._mm512_broadcast_f32x8(pulp::cast(*strip))
        }

        #[inline(always)]
        fn of_bf16(self, strip: &Strip<bf16>) -> __m512 {
            let bits: [u16; LANES] = strip.map(bf16::to_bits);
            let quarters = self.avx512f._mm512_broadcast_i32x4(pulp::cast(bits));
            pulp::cast(self.avx512bw._mm512_shuffle_epi8(quarters, pulp::cast(WIDER)))
        }

        #[inline(always)]
        fn mul_add(self, a: __m512, b: __m512, sum: __m512) -> __m512 {
            self.avx512f._mm512_fmadd_ps(a, b, sum)
        }

        #[inline(always)]
        fn totals(self, sums: &[__m512], totals: &mut [[f32; 2]]) {
            let (f, zero) = (self.avx512f, self.zero());
            for (sums, totals) in sums.chunks(4).zip(totals.chunks_mut(4)) {
                let at = |register: usize| sums.get(register).copied().unwrap_or(zero);
                // Adds up four registers at once. The additions are those of `folded`: lanes at a distance of four, then two, then
                // one.
                let halves = |a, b| {
                    let low = f._mm512_shuffle_f32x4::<0b10_00_10_00>(a, b);
                    f._mm512_add_ps(low, f._mm512_shuffle_f32x4::<0b11_01_11_01>(a, b))
                };
                let [ab, cd] = [halves(at(0), at(1)), halves(at(2), at(3))].map(pulp::cast);
                let pairs = f._mm512_add_ps(
                    pulp::cast(f._mm512_unpacklo_pd(ab, cd)),
                    pulp::cast(f._mm512_unpackhi_pd(ab, cd)),
                );
                let found: [f32; 16] = pulp::cast(f._mm512_add_ps(pairs, f._mm512_movehdup_ps(pairs)));
                for (register, total) in totals.iter_mut().enumerate() {
                    // The index at which the shuffles leave the total of a register's first row. The total of its second row is
                    // four further.
                    let first = register % 2 * 8 + register / 2 * 2;
                    *total = [found[first], found[first + 4]];
                }
            }
        }
    }
}
