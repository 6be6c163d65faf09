//! Other ways to write the numbers of slots: more or fewer decimals, without zeros at the end, padded, as bins.

use super::slot::{Meaning, Number, Sign, Slot, SlotKind, power};
use super::{Skeleton, borders};
use crate::encoding::language::Languages;

/// How a slot is written otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotChange {
    /// With a decimal less.
    FewerDecimals,
    /// With a decimal more.
    MoreDecimals,
    /// Without zeros at the end.
    Stripped,
    /// With all decimals, where zeros at the end were removed.
    Kept,
    /// With as many digits as the largest number.
    Padded,
    /// As the index of a bin, padded; bins are as wide as a unit of the last decimal.
    Bins,
}

/// A skeleton with another way to write one of its slots.
pub struct Alternative {
    /// The skeleton.
    pub skeleton: Skeleton,
    /// The index of the slot.
    pub slot: usize,
    /// What is changed; nothing in the skeleton itself.
    pub change: Option<SlotChange>,
    /// The distance between two neighbouring numbers.
    pub step: f64,
    /// How many texts its numbers have.
    pub numbers: u64,
}

/// The most decimals that are tried, and the most bins.
const MOST_DECIMALS: u8 = 9;
const MOST_BINS: i64 = 1_000_000;

impl Skeleton {
    /// Returns the ways to write each slot of numbers: first as it is, then all others that can be read back. Of several kinds of
    /// numbers, those stay as they are that cannot be written so.
    pub fn alternatives(&self) -> Vec<Alternative> {
        let mut found = Vec::new();
        for (at, slot) in self.slots.iter().enumerate() {
            let kinds =
                slot.kinds.iter().map(|kind| if let SlotKind::Number(own) = kind { Some(own) } else { None });
            let Some(kinds) = kinds.collect::<Option<Vec<&Number>>>() else { continue };
            let own: Vec<Number> = kinds.iter().copied().cloned().collect();
            let others = CHANGES.iter().filter_map(|change| Some((Some(*change), changed(&kinds, *change)?)));
            for (change, numbers) in std::iter::once((None, own)).chain(others) {
                let step = numbers.iter().map(Number::step).fold(0.0, f64::max);
                let kinds = numbers.into_iter().map(SlotKind::Number).collect();
                let Ok(changed) = Slot::new(slot.name.clone(), kinds) else { continue };
                let mut languages = Languages::default();
                let root = changed.dfa().language(&mut languages);
                let numbers = u64::try_from(languages.count(root)).unwrap_or(u64::MAX);
                let mut skeleton = self.clone();
                // The slots of an encoding are one where texts are followed; here each number counts by itself.
                skeleton.slots.iter_mut().for_each(|slot| slot.encoding = None);
                skeleton.slots[at] = changed.on_axis(slot.axis);
                if borders::check(&skeleton).is_ok() {
                    found.push(Alternative { skeleton, slot: at, change, step, numbers });
                }
            }
        }
        found
    }
}

/// All changes, in the order of reports.
const CHANGES: [SlotChange; 6] = [
    SlotChange::FewerDecimals,
    SlotChange::MoreDecimals,
    SlotChange::Stripped,
    SlotChange::Kept,
    SlotChange::Padded,
    SlotChange::Bins,
];

/// Returns the kinds of a slot with a change; `None` if it changes none. Bins of several kinds could not be told apart.
fn changed(kinds: &[&Number], change: SlotChange) -> Option<Vec<Number>> {
    let other =
        |own: &Number| own.alternatives().into_iter().find(|other| other.0 == change).map(|other| other.1);
    let others: Vec<Option<Number>> = kinds.iter().map(|own| other(own)).collect();
    let is_possible = others.iter().any(Option::is_some) && (change != SlotChange::Bins || kinds.len() == 1);
    is_possible.then(|| {
        others.into_iter().zip(kinds).map(|(other, own)| other.unwrap_or_else(|| (*own).clone())).collect()
    })
}

impl Number {
    /// Returns the distance between two neighbouring numbers.
    fn step(&self) -> f64 {
        let of = |units: i64| self.value(&units.to_string());
        match self.meaning {
            Meaning::Itself => 1.0 / power(self.decimals) as f64,
            Meaning::Bins { step, .. } => step,
            // Fitted bins are not equally wide: this is their mean.
            Meaning::Encoded(..) => of(self.high)
                .zip(of(self.low))
                .map_or(1.0, |(high, low)| (high - low) / (self.high - self.low).max(1) as f64),
        }
    }

    /// Other ways to write the numbers of the range; where decimals are fewer, it is rounded inwards.
    fn alternatives(&self) -> Vec<(SlotChange, Number)> {
        let mut found = Vec::new();
        if self.meaning != Meaning::Itself {
            return found;
        }
        let Number { least_decimals: least, decimals, low, high, .. } = *self;
        let digits = |units: i64| units.unsigned_abs().to_string().len() as u8;
        if decimals > 0 {
            let (low, high) = (-(-low).div_euclid(10), high.div_euclid(10));
            let (decimals, least_decimals) = (decimals - 1, least.min(decimals - 1));
            let width = self.width.saturating_sub(1);
            let number = Number { decimals, least_decimals, low, high, width, ..*self };
            found.push((SlotChange::FewerDecimals, number));
        }
        if decimals < MOST_DECIMALS && digits(low).max(digits(high)) < 15 {
            let least_decimals = if least == decimals { least + 1 } else { least };
            let (decimals, low, high) = (decimals + 1, 10 * low, 10 * high);
            let width = if self.width > 0 { self.width + 1 } else { 0 };
            let number = Number { decimals, least_decimals, low, high, width, ..*self };
            found.push((SlotChange::MoreDecimals, number));
        }
        if least < decimals {
            found.push((SlotChange::Kept, Number { least_decimals: decimals, ..*self }));
        } else if decimals > 0 {
            found.push((SlotChange::Stripped, Number { least_decimals: 0, ..*self }));
        }
        let width = digits(low).max(digits(high));
        if width > self.width.max(decimals + 1) && least == decimals {
            found.push((SlotChange::Padded, Number { width, ..*self }));
        }
        if decimals > 0 && high - low < MOST_BINS {
            let step = self.step();
            let meaning = Meaning::Bins { low: (low as f64 - 0.5) * step, step };
            let (low, high, width) = (0, high - low, digits(high - low));
            let (decimals, least_decimals, sign, minus_zero) = (0, 0, Sign::Minus, false);
            let number = Number { decimals, least_decimals, low, high, width, sign, minus_zero, meaning };
            found.push((SlotChange::Bins, number));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way writes the same range, and is read as the number that was written.
    #[test]
    fn alternatives_write_the_range() {
        let skeleton = r#"{"schema": "drift.skeleton/1", "name": "x", "text": ["{x};{n};{d};{m}"], "slots": {
            "x": {"kind": "decimal", "decimals": 2, "low": -0.25, "high": 12.5},
            "n": {"kind": "integer", "low": 0, "high": 180},
            "d": [{"kind": "integer", "low": 0, "high": 1}, {"kind": "integer", "low": 5, "high": 6}],
            "m": [{"kind": "decimal", "decimals": 2, "low": -0.05, "high": 0.05}, {"kind": "integer", "low": 2, "high": 10}]}}"#;
        let skeleton: Skeleton = skeleton.parse().unwrap();
        let found: Vec<(usize, Option<SlotChange>, Vec<&str>)> = vec![
            (0, None, vec!["-0.25", "0.00", "12.50"]),
            (0, Some(SlotChange::FewerDecimals), vec!["-0.2", "0.0", "12.5"]),
            (0, Some(SlotChange::MoreDecimals), vec!["-0.250", "0.000", "12.500"]),
            (0, Some(SlotChange::Stripped), vec!["-0.25", "0", "12.5"]),
            (0, Some(SlotChange::Padded), vec!["-00.25", "00.00", "12.50"]),
            (0, Some(SlotChange::Bins), vec!["0000", "0025", "1275"]),
            (1, None, vec!["0", "1", "180"]),
            (1, Some(SlotChange::MoreDecimals), vec!["0.0", "1.0", "180.0"]),
            (1, Some(SlotChange::Padded), vec!["000", "001", "180"]),
            (2, None, vec!["0", "1", "6"]),
            (2, Some(SlotChange::MoreDecimals), vec!["0.0", "1.0", "6.0"]),
            (3, None, vec!["-0.05", "2", "10"]),
            (3, Some(SlotChange::FewerDecimals), vec!["0.0", "2", "10"]),
            (3, Some(SlotChange::MoreDecimals), vec!["-0.050", "2.0", "10.0"]),
            (3, Some(SlotChange::Stripped), vec!["-0.05", "2", "10"]),
            (3, Some(SlotChange::Padded), vec!["-0.05", "02", "10"]),
        ];
        let alternatives = skeleton.alternatives();
        assert_eq!(alternatives.len(), found.len());
        for (alternative, (slot, change, texts)) in alternatives.iter().zip(found) {
            assert_eq!((alternative.slot, alternative.change), (slot, change));
            let values = [[-0.25, 0.0, 12.5], [0.0, 1.0, 180.0], [0.0, 1.0, 6.0], [-0.05, 2.0, 10.0]][slot];
            let own = &alternative.skeleton.slots[slot];
            for (text, value) in texts.into_iter().zip(values) {
                assert!(own.dfa().matches(text.as_bytes()), "{change:?}: {text}");
                let read = own.value(text).unwrap();
                assert!(
                    (read - value).abs() <= alternative.step / 2.0 + 1e-9,
                    "{change:?}: {text} is {read}"
                );
            }
        }
        // Two ranges, and two ways to write numbers: each text counts once.
        let counted = |at: usize| (alternatives[at].step, alternatives[at].numbers);
        assert_eq!((counted(9), counted(11), counted(12)), ((1.0, 4), (1.0, 11 + 9), (1.0, 1 + 9)));
        let [bins, whole] = [&alternatives[5], &alternatives[6]];
        assert_eq!((bins.step, bins.numbers, whole.step, whole.numbers), (0.01, 1_276, 1.0, 181));
    }
}
