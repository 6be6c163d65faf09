//! Slots in a file: by their kind, or by an encoding of coordinates.

use serde::Deserialize;

use super::slot::{LONGEST_WORD, Meaning, Number, Sign, Slot, SlotKind, power};
use crate::chem::elements;
use crate::encoding::{Encoding, NumberFormat};

/// The most words of a slot.
const MOST_WORDS: usize = 4_096;

/// The most decimals of a number.
const MOST_DECIMALS: u8 = 12;

/// The largest magnitude of a number, in units of its last decimal.
const LARGEST: f64 = 1e15;

/// A kind of a slot.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum SlotFile {
    Decimal {
        decimals: u8,
        least_decimals: Option<u8>,
        low: f64,
        high: f64,
        #[serde(default)]
        width: u8,
        #[serde(default)]
        sign: Sign,
        #[serde(default)]
        minus_zero: bool,
    },
    Integer {
        low: f64,
        high: f64,
        #[serde(default)]
        width: u8,
        #[serde(default)]
        sign: Sign,
        #[serde(default)]
        minus_zero: bool,
    },
    Bins {
        low: f64,
        step: f64,
        bins: u32,
        #[serde(default)]
        width: u8,
    },
    Codes {
        alphabet: String,
        width: u8,
    },
    Words {
        words: WordsFile,
    },
    /// The numbers of an atom, with the texts around them.
    Encoding {
        encoding: Encoding,
    },
}

pub(super) enum WordsFile {
    /// `elements`
    Named(String),
    Listed(Vec<String>),
}

impl SlotFile {
    pub(super) fn kind(self) -> Result<SlotKind, String> {
        Ok(match self {
            SlotFile::Decimal { decimals, least_decimals, low, high, width, sign, minus_zero } => {
                let least_decimals = least_decimals.unwrap_or(decimals);
                if decimals > MOST_DECIMALS || least_decimals > decimals {
                    return Err(format!(
                        "`decimals` are at most {MOST_DECIMALS}, and at least `least_decimals`"
                    ));
                }
                let (low, high) = (units("low", low, decimals)?, units("high", high, decimals)?);
                let (width, meaning) = (checked_width(width)?, Meaning::Itself);
                SlotKind::Number(Number {
                    least_decimals,
                    decimals,
                    low,
                    high,
                    width,
                    sign,
                    minus_zero,
                    meaning,
                })
            }
            SlotFile::Integer { low, high, width, sign, minus_zero } => {
                let (decimals, least_decimals) = (0, None);
                SlotFile::Decimal { decimals, least_decimals, low, high, width, sign, minus_zero }.kind()?
            }
            SlotFile::Bins { low, step, bins, width } => {
                if bins == 0 || !low.is_finite() || !step.is_finite() || step <= 0.0 {
                    return Err("`bins` and `step` are above 0".to_owned());
                }
                SlotKind::Number(Number {
                    least_decimals: 0,
                    decimals: 0,
                    low: 0,
                    high: i64::from(bins) - 1,
                    width: checked_width(width)?,
                    sign: Sign::Minus,
                    minus_zero: false,
                    meaning: Meaning::Bins { low, step },
                })
            }
            SlotFile::Codes { alphabet, width } => codes(&alphabet, width)?,
            SlotFile::Words { words } => SlotKind::Words(words.list()?),
            SlotFile::Encoding { .. } => return Err("an encoding is the only kind of its slot".to_owned()),
        })
    }
}

/// Codes of these characters.
fn codes(alphabet: &str, width: u8) -> Result<SlotKind, String> {
    let mut characters = alphabet.as_bytes().to_vec();
    characters.sort_unstable();
    characters.dedup();
    let is_plain = alphabet.bytes().all(|byte| byte.is_ascii_graphic());
    if characters.len() != alphabet.len() || alphabet.is_empty() || !is_plain {
        return Err("`alphabet` lists each of its characters once, and all are ASCII".to_owned());
    }
    if !(1..=32).contains(&width) {
        return Err("`width` is 1 to 32".to_owned());
    }
    Ok(SlotKind::Codes { alphabet: characters.into(), width })
}

impl WordsFile {
    fn list(self) -> Result<Vec<String>, String> {
        let words = match self {
            WordsFile::Named(name) if name == "elements" => {
                (1..=118).filter_map(elements::symbol).map(str::to_owned).collect()
            }
            WordsFile::Named(name) => return Err(format!("`words` is a list, or `elements`, not `{name}`")),
            WordsFile::Listed(words) => words,
        };
        let is_wrong = |word: &String| word.is_empty() || word.len() > LONGEST_WORD || word.contains('\n');
        if words.is_empty() || words.len() > MOST_WORDS || words.iter().any(is_wrong) {
            return Err(format!(
                "`words` are 1 to {MOST_WORDS} words of 1 to {LONGEST_WORD} bytes on a line"
            ));
        }
        Ok(words)
    }
}

fn checked_width(width: u8) -> Result<u8, String> {
    if width > 18 { Err("`width` is at most 18 digits".to_owned()) } else { Ok(width) }
}

/// Returns a bound in units of the last decimal.
fn units(field: &str, value: f64, decimals: u8) -> Result<i64, String> {
    let scaled = value * power(decimals) as f64;
    // The product of a double with a power of ten is off by a rounding or two.
    if !value.is_finite() || scaled.abs() > LARGEST {
        return Err(format!("`{field}` {value} is too large for {decimals} decimals"));
    }
    if (scaled - scaled.round()).abs() > 1e-6 + 4.0 * f64::EPSILON * scaled.abs() {
        return Err(format!("`{field}` {value} has more than {decimals} decimals"));
    }
    Ok(scaled.round() as i64)
}

/// A slot of an encoding: several numbers, and the texts around them.
pub(super) struct EncodedSlot {
    /// Its name, which its first number has too.
    pub name: String,
    /// Its text, with the names of its numbers in braces.
    pub template: String,
}

impl EncodedSlot {
    /// Adds the numbers of an encoding to slots: one slot if all axes are written alike, or else one for each.
    pub(super) fn add(name: String, encoding: Encoding, slots: &mut Vec<Slot>) -> Result<Self, String> {
        let are_alike = !matches!(encoding.number(), NumberFormat::Index { axes, .. } if axes.len() > 1);
        let names =
            ["", "_y", "_z"].map(|axis| if are_alike { name.clone() } else { format!("{name}{axis}") });
        let mut template = doubled(encoding.open());
        for (axis, name) in names.iter().take(encoding.numbers()).enumerate() {
            let behind = if axis + 1 < encoding.numbers() { encoding.separator() } else { encoding.close() };
            template += &format!("{{{name}}}{}", doubled(behind));
        }
        for (axis, name) in names.into_iter().enumerate().take(if are_alike { 1 } else { encoding.numbers() })
        {
            let number = SlotKind::Number(Number::of(encoding, axis));
            slots.push(Slot::new(name, vec![number])?.on_axis(axis).of_encoding(encoding));
        }
        Ok(EncodedSlot { name, template })
    }
}

/// Returns a text as a template has it.
fn doubled(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
