//! The types that weights are written in.

use half::{bf16, f16};
use safetensors::tensor::Dtype;

/// The number type of a tensor. Wider types compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Float {
    /// 16 bits: the upper half of an [`Float::F32`].
    Bf16,
    /// 16 bits, IEEE 754.
    F16,
    /// 32 bits, IEEE 754.
    F32,
}

impl Float {
    /// Returns the type with this safetensors name; `None` if it is not one of the three.
    pub fn from_dtype(dtype: Dtype) -> Option<Self> {
        [Float::Bf16, Float::F16, Float::F32].into_iter().find(|float| float.dtype() == dtype)
    }

    /// Returns its name in safetensors.
    pub fn dtype(self) -> Dtype {
        match self {
            Float::Bf16 => Dtype::BF16,
            Float::F16 => Dtype::F16,
            Float::F32 => Dtype::F32,
        }
    }

    /// Bytes of one number.
    pub fn bytes(self) -> usize {
        if self == Float::F32 { 4 } else { 2 }
    }

    /// Reads little-endian bytes into f32 without loss. Trailing bytes that do not fill a number are dropped.
    pub fn read(self, bytes: &[u8]) -> Vec<f32> {
        let halves = bytes.chunks_exact(2).map(|b| [b[0], b[1]]);
        match self {
            Float::Bf16 => halves.map(|b| bf16::from_le_bytes(b).to_f32()).collect(),
            Float::F16 => halves.map(|b| f16::from_le_bytes(b).to_f32()).collect(),
            Float::F32 => {
                bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
            }
        }
    }

    /// Appends numbers as little-endian bytes. Each is rounded once, to nearest, ties to even.
    pub fn write(self, values: impl IntoIterator<Item = f64>, out: &mut Vec<u8>) {
        let values = values.into_iter();
        match self {
            Float::Bf16 => values.for_each(|value| out.extend(bf16::from_f32(to_odd(value)).to_le_bytes())),
            Float::F16 => values.for_each(|value| out.extend(f16::from_f32(to_odd(value)).to_le_bytes())),
            Float::F32 => values.for_each(|value| out.extend((value as f32).to_le_bytes())),
        }
    }
}

/// `value` as f32, rounded to odd: if it lies between two f32 numbers, the one whose last bit is set. Rounding that to a narrower
/// type then rounds only once (S. Boldo and G. Melquiond, When double rounding is odd, 2005). The conversions of `half` from f64
/// ignore the last 32 bits, so they take a value a little above a midpoint for the midpoint itself.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if value.is_nan() || f64::from(nearest) == value {
        return nearest;
    }
    let is_beyond = f64::from(nearest).abs() > value.abs();
    f32::from_bits((nearest.to_bits() - u32::from(is_beyond)) | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What lies a little beside the middle of two numbers is rounded to the nearer one.
        #[test]
        fn numbers_near_the_middle_are_rounded_once(bits in 0u16..0x7bff, by in 1u32..39, negative: bool) {
            for (float, lower, upper) in [
                (Float::Bf16, bf16::from_bits(bits).to_f64(), bf16::from_bits(bits + 1).to_f64()),
                (Float::F16, f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64()),
            ] {
                let (middle, sign) = (f64::midpoint(lower, upper), if negative { -1.0 } else { 1.0 });
                let beside = (upper - lower) * 0.5f64.powi(by as i32 + 1);
                let even = if bits.is_multiple_of(2) { lower } else { upper };
                for (value, expected) in [(middle - beside, lower), (middle + beside, upper), (middle, even)] {
                    let mut bytes = vec![];
                    float.write([sign * value], &mut bytes);
                    prop_assert_eq!(float.read(&bytes), [(sign * expected) as f32]);
                }
            }
        }

        #[test]
        fn numbers_are_rounded_as_candle_rounds_them(value in any::<f32>().prop_filter("number", |v| !v.is_nan())) {
            for (float, expected) in [
                (Float::F32, value),
                (Float::F16, f16::from_f32(value).to_f32()),
                (Float::Bf16, bf16::from_f32(value).to_f32()),
            ] {
                let mut bytes = vec![];
                float.write([f64::from(value)], &mut bytes);
                prop_assert_eq!(bytes.len(), float.bytes());
                let read = float.read(&bytes);
                prop_assert_eq!(&read, &[expected]);
                // What is stored is stored again unchanged.
                let mut again = vec![];
                float.write(read.into_iter().map(f64::from), &mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
