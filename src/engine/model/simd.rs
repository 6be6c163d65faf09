//! Registers of the CPU as products and attention use them: strips of eight terms, whose sums stand side by side. AVX-512's hold
//! the same strip of two rows of `x`, so that a machine with it sums in the order of any other one, and gives the same bits.

use half::bf16;
use pulp::Simd;

use super::kernels::folded;

/// Numbers that are summed side by side, as many as AVX2 has in a register.
pub(super) const LANES: usize = 8;

/// Consecutive numbers of a row.
pub(super) type Strip<T> = [T; LANES];

/// A number of weights, or of the cache.
pub(super) trait Number: Copy + Default + Send + Sync {
    /// Its value as f32; exact, since every bf16 is an f32.
    fn widen(self) -> f32;

    /// The nearest one.
    fn nearest(number: f32) -> Self;

    /// A strip as f32, for each row of a register.
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

/// Instructions of a machine, for registers of `ROWS` strips.
pub(super) trait Registers: Copy + Send + Sync {
    type Register: Copy;

    /// Strips of the rows of `x` that share a register.
    type Rows: Copy + Send + Sync;

    /// Rows of `x` in a register.
    const ROWS: usize;

    /// No strip, for each row.
    const NO_ROWS: Self::Rows;

    /// Whether there are 32 registers and not 16.
    const MANY: bool;

    /// Calls `work` where these instructions may be used.
    fn run<W: OnRegisters<Self>>(self, work: W) -> W::Output;

    fn zero(self) -> Self::Register;

    /// The strip of one of `ROWS` rows.
    fn row_of(rows: &mut Self::Rows, row: usize) -> &mut Strip<f32>;

    /// One strip of each row.
    fn of_rows(self, rows: &Self::Rows) -> Self::Register;

    /// One strip of each row, out of a register.
    fn to_rows(self, register: Self::Register) -> Self::Rows;

    /// A number for each row, in all lanes; the first for the only row.
    fn of_numbers(self, numbers: [f32; 2]) -> Self::Register;

    /// A strip of weights for each row.
    fn of_f32(self, strip: &Strip<f32>) -> Self::Register;

    /// A strip of weights in bf16 for each row, widened to f32.
    fn of_bf16(self, strip: &Strip<bf16>) -> Self::Register;

    fn mul_add(self, a: Self::Register, b: Self::Register, sum: Self::Register) -> Self::Register;

    /// Of each register the sum of each row's lanes, `ROWS` of them; of one row as [`folded`] adds them.
    fn totals(self, sums: &[Self::Register], totals: &mut [[f32; 2]]);
}

/// What runs on registers: a type and not a closure, whose body the compiler would call with the instructions of any machine.
pub(super) trait OnRegisters<R> {
    type Output;

    /// Must be `#[inline(always)]`.
    fn run(self, registers: R) -> Self::Output;
}

/// What runs on the registers of any machine.
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

/// Adds the products of a strip of weights, or of the cache, with registers to their sums.
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

/// The first `count` strips of the rows of `x` (`[rows, terms]`), of each register one behind the other; what lacks in a row, and at the
/// last row, is zero.
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

/// Bytes that a processor fetches at once.
const LINE: usize = 64;

/// Strips of `T` in a line.
pub(super) const fn strips_of_line<T>() -> usize {
    LINE / size_of::<Strip<T>>()
}

/// Asks the memory for what is read soon: processors fetch ahead inside pages, and a row of weights is about a page.
#[inline(always)]
#[allow(unsafe_code)]
pub(super) fn ask_for<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all x86-64 processors have the instruction, which reads nothing that a program could notice.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Passes registers on to where their instructions may be used.
struct Enabled<R, W>(R, W);

impl<R: Registers, W: OnRegisters<R>> pulp::WithSimd for Enabled<R, W> {
    type Output = W::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> W::Output {
        self.1.run(self.0)
    }
}

/// Registers of eight numbers: AVX2's, or arrays where there is none.
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
        S::vectorize(self.0, Enabled(self, work))
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

/// Registers of AVX-512, of two rows.
#[cfg(target_arch = "x86_64")]
mod sixteen {
    use std::arch::x86_64::__m512;

    use pulp::x86::V4;

    use super::{Enabled, LANES, OnRegisters, Registers, Simd, Strip, bf16};

    /// Where bytes of a strip of bf16, which stands in each quarter of a register, go: above two zeros each, the strip twice.
    const WIDER: [u8; 64] = {
        const ZERO: u8 = 0x80;
        let (mut places, mut at) = ([ZERO; 64], 0);
        while at < 2 * LANES {
            // The upper half of an f32 is a bf16, so each goes to the two high bytes of a lane.
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
            Simd::vectorize(self, Enabled(self, work))
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
                // Four registers at once. Each addition is one of `folded`: by lanes of four, of two, of one.
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
                    // Where the shuffles leave the totals of a register's first row; those of its second stand four behind.
                    let first = register % 2 * 8 + register / 2 * 2;
                    *total = [found[first], found[first + 4]];
                }
            }
        }
    }
}
