//! Coordinate encodings as data: how the coordinates of a molecule are written into its text.
//!
//! An [`Encoding`] says where *slots* stand (behind each atom, or behind every symbol), and which texts open, separate and close
//! their numbers. It also defines how a number is written, which coordinate it stands for, and which coordinates are written as
//! this number (its *cell*).
//!
//! | name | text of an atom | numbers |
//! | --- | --- | --- |
//! | `fixed`, `stripped-3` | `[C]<-1.5000,0.0000,2.1000>` | decimals in Å, cut toward zero ([`decimal`]) |
//! | `binned-v1:-21,21,0.05` | `[C]<390,420,462>` | bins, zero-padded ([`index`]) |
//! | `binned-v2:-13,13,0.104` | `[C]111125145;` | bins, nothing around them but `;` |
//! | a file of edges | `[C]111125145;` | bins that were fitted to data |
//! | `integers:10,4` | `[C]<0012,-0034,0005>` | integers in units of 1/10 Å ([`scale`]) |
//! | `lines` | `[C] 1.0000 2.0000 3.0000` and a line break | decimals, a line for each atom |
//! | `fsq:4096` | `[C]<123>(<45>[O]<678>)<90>` | codes of another program: no coordinates |
//!
//! Values are integers ([`Fixed`]) in the encoding's own units, so text and value correspond one to one. Everything else is derived
//! from the definition: parsing and writing ([`Encoding::parse_numbers`], [`Encoding::write_numbers`]), the rows of parts that make
//! up slots ([`Encoding::rows`], [`parts`]), their language as an automaton over bytes ([`Encoding::dfa`]) and as a regular
//! expression, and the value of a truncated number ([`Encoding::left_over`]).

pub mod block;
mod check;
mod completions;
pub mod decimal;
pub mod decimal_text;
mod definition;
mod dfa;
mod file;
pub mod index;
pub mod language;
mod names;
pub mod parts;
mod reading;
mod scale;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

pub use block::{BlockError, Progress, is_three_numbers};
pub use completions::ValueRange;
pub use decimal::{DecimalForms, Fixed, Precision, TrailingZeros};
pub use decimal_text::{NumberError, NumberPrefix, is_of_number, scan_prefix};
pub use definition::{Definition, IntegersBelow, NumberFormat, Slots};
pub use dfa::{Dfa, DfaState};
pub use names::{ENCODING_FORMS, EncodingForm, EncodingRequest};
pub use reading::{OutOfRange, Reading};
pub use scale::{RoundTo, Scale};

use language::{Languages, StateId};
use parts::{PartRow, SlotPart};

/// A coordinate encoding: a handle to its [`Definition`], cheap to copy. Two encodings are equal if their definitions are.
#[derive(Clone, Copy)]
pub struct Encoding(&'static Definition);

impl Encoding {
    /// Exactly four decimals with commas between brackets, `<0.5000,1.0000,-2.2500>`: 3DMolGen's format.
    pub const FIXED: Encoding = Encoding(names::FIXED);
    /// At most four decimals, trailing zeros and a trailing point removed, `<0.5,1,-2.25>`.
    pub const STRIPPED: Encoding = Encoding(names::STRIPPED);
    /// Both, in the order of reports.
    pub const ALL: [Encoding; 2] = [Encoding::FIXED, Encoding::STRIPPED];

    /// Returns the encoding of a custom definition.
    ///
    /// Each definition is stored once and never freed: a run knows only a few, from its options and files.
    ///
    /// # Errors
    /// A sentence that says what is inconsistent in the definition.
    pub fn new(definition: Definition) -> Result<Self, String> {
        static KNOWN: Mutex<Vec<&'static Definition>> = Mutex::new(Vec::new());
        definition.check()?;
        // A lock is poisoned only if another thread panicked while holding it. The list inside is still intact.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|known| ***known == definition) {
            return Ok(Encoding(same));
        }
        let kept: &'static Definition = Box::leak(Box::new(definition));
        known.push(kept);
        Ok(Encoding(kept))
    }

    /// Decimals between brackets, with commas between them.
    pub fn decimal(zeros: TrailingZeros, precision: Precision) -> Self {
        Encoding(names::decimal(zeros, precision, false))
    }

    /// Decimals with trailing zeros kept and removed, in the order of reports.
    pub fn both(precision: Precision) -> [Encoding; 2] {
        [TrailingZeros::Kept, TrailingZeros::Removed].map(|zeros| Encoding::decimal(zeros, precision))
    }

    /// Returns the data of this encoding.
    pub fn definition(self) -> &'static Definition {
        self.0
    }

    /// `fixed`, `stripped-3-spaces`, `binned-v1:-21,21,0.05`, or the name in its file.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Returns the format of its numbers.
    pub fn number(self) -> &'static NumberFormat {
        &self.0.number
    }

    /// Returns where its slots stand.
    pub fn slots(self) -> Slots {
        self.0.slots
    }

    /// Returns the text before the first number of a slot; may be empty.
    pub fn open(self) -> &'static str {
        &self.0.open
    }

    /// Returns the text between numbers; may be empty.
    pub fn separator(self) -> &'static str {
        &self.0.separator
    }

    /// Returns the text behind the last number of a slot; may be empty.
    pub fn close(self) -> &'static str {
        &self.0.close
    }

    /// Returns how many numbers a slot has: 1 or 3.
    pub fn numbers(self) -> usize {
        self.0.numbers
    }

    /// Returns whether its numbers stand for coordinates.
    pub fn has_coordinates(self) -> bool {
        !matches!(self.0.number, NumberFormat::Code { .. })
    }

    /// Returns whether numbers may begin with a sign.
    pub fn is_signed(self) -> bool {
        self.0.number.is_signed()
    }

    /// Returns whether numbers are coordinates in Å, written as decimals.
    pub fn is_decimal(self) -> bool {
        matches!(self.0.number, NumberFormat::Decimal { .. })
    }

    /// Returns whether trailing zeros are kept; `None` if numbers are not decimals.
    pub fn zeros(self) -> Option<TrailingZeros> {
        match &self.0.number {
            NumberFormat::Decimal { zeros, .. } => Some(*zeros),
            _ => None,
        }
    }

    /// Returns whether trailing zeros are removed, so that the length of a number depends on its value.
    pub fn is_stripped(self) -> bool {
        self.zeros() == Some(TrailingZeros::Removed)
    }

    /// Returns whether trailing zeros are not removed. Always true if numbers are not decimals.
    pub fn is_fixed(self) -> bool {
        !self.is_stripped()
    }

    /// Returns the precision of decimal numbers; four decimals for other formats, which have no precision of their own.
    pub fn precision(self) -> Precision {
        match &self.0.number {
            NumberFormat::Decimal { precision, .. } => *precision,
            _ => Precision::FOUR,
        }
    }

    /// Returns the largest number of decimals; 0 if numbers are not decimals.
    pub fn decimals(self) -> usize {
        if self.is_decimal() { self.precision().decimals() } else { 0 }
    }

    /// Returns the smallest number of decimals.
    pub fn least_decimals(self) -> usize {
        if self.is_fixed() { self.decimals() } else { 0 }
    }

    /// This encoding with trailing zeros kept or removed; unchanged if numbers are not decimals.
    pub fn with_zeros(self, zeros: TrailingZeros) -> Self {
        if self.zeros().is_none_or(|own| own == zeros) {
            return self;
        }
        self.respelled(zeros, self.precision(), self.separator())
    }

    /// This encoding with the other convention for trailing zeros; unchanged if numbers are not decimals.
    pub fn other(self) -> Self {
        match self.zeros() {
            Some(TrailingZeros::Kept) => self.with_zeros(TrailingZeros::Removed),
            Some(TrailingZeros::Removed) => self.with_zeros(TrailingZeros::Kept),
            None => self,
        }
    }

    /// Returns the same decimals in the same slots, separated by spaces or by commas. Unchanged if numbers are not decimals, or if the
    /// result could not be parsed again.
    pub fn with_spaces(self, spaces: bool) -> Self {
        match self.zeros() {
            Some(zeros) if (self.separator() == " ") != spaces => {
                self.respelled(zeros, self.precision(), if spaces { " " } else { "," })
            }
            _ => self,
        }
    }

    /// This encoding with another precision; unchanged if numbers are not decimals.
    pub fn with_precision(self, precision: Precision) -> Self {
        self.zeros().map_or(self, |zeros| self.respelled(zeros, precision, self.separator()))
    }

    /// Returns the same slots with other decimals and another separator.
    fn respelled(self, zeros: TrailingZeros, precision: Precision, separator: &'static str) -> Self {
        let named = Encoding(names::decimal(zeros, precision, separator == " "));
        let slots = |e: Encoding| (e.slots(), e.open(), e.close(), e.numbers());
        if slots(self) == slots(named) && separator == named.separator() {
            return named;
        }
        let definition = Definition {
            name: format!("{}, {}", self.name(), named.name()).into(),
            separator: separator.into(),
            number: NumberFormat::Decimal { precision, zeros },
            ..self.0.clone()
        };
        // The same slots should hold these decimals too; otherwise the encoding stays unchanged.
        Encoding::new(definition).unwrap_or(self)
    }

    /// Returns the position that a slot's values stand for, in Å; `None` for codes.
    pub fn angstrom(self, values: &[Fixed; 3]) -> Option<[f64; 3]> {
        let at = |axis: usize| self.0.number.angstrom(values[axis], axis);
        Some([at(0)?, at(1)?, at(2)?])
    }

    /// Returns the values of a position given in Å.
    ///
    /// # Errors
    /// If a coordinate is not finite, or too large to be written, or if numbers are codes.
    pub fn quantize(self, position: [f64; 3]) -> Result<[Fixed; 3], NumberError> {
        let at = |axis: usize| self.0.number.quantize(position[axis], axis);
        Ok([at(0)?, at(1)?, at(2)?])
    }

    /// Refuses values that the encoding never writes.
    ///
    /// # Errors
    /// The bound that the first such value exceeds.
    pub fn check(self, values: &[Fixed; 3]) -> Result<(), NumberError> {
        for (axis, value) in values.iter().enumerate() {
            let (low, high) = self.0.number.limits(axis);
            if !(low..=high).contains(value) {
                return Err(match &self.0.number {
                    NumberFormat::Decimal { precision, .. } => NumberError::OutOfRange(*precision),
                    _ => NumberError::Beyond { low, high },
                });
            }
        }
        Ok(())
    }

    /// Returns whether a slot's position is not fully known, because one of its values is a tail.
    pub fn has_tail(self, values: &[Fixed; 3]) -> bool {
        (0..3).any(|axis| self.0.number.is_tail(values[axis], axis))
    }

    /// Converts values from another encoding. Between decimals the conversion is truncation; otherwise it goes through coordinates.
    ///
    /// # Errors
    /// If a coordinate is too large to be written, or if one encoding writes codes and the other one differs.
    pub fn convert(self, values: &[Fixed; 3], from: Encoding) -> Result<[Fixed; 3], NumberError> {
        match (&self.0.number, &from.0.number) {
            (NumberFormat::Decimal { precision, .. }, NumberFormat::Decimal { precision: own, .. }) => {
                let values = values.map(|value| precision.convert(value, *own));
                // More decimals leave fewer digits before the point.
                self.check(&values).map(|()| values)
            }
            _ if self == from => Ok(*values),
            _ => self.quantize(from.angstrom(values).ok_or(NumberError::NoCoordinate)?),
        }
    }

    /// Whole slots as rows of parts, opening and closing text included: one row for each combination of numbers of decimals.
    pub fn rows(self, integers: IntegersBelow) -> Vec<PartRow> {
        let mut rows: Vec<PartRow> = vec![SlotPart::literal(self.open())];
        for axis in 0..self.numbers() {
            let of_number = self.0.number.rows(axis, integers);
            let end = if axis + 1 < self.numbers() { self.separator() } else { self.close() };
            let end = SlotPart::literal(end);
            let longer = rows.iter().flat_map(|row| {
                let with = of_number.iter().map(|number| [&row[..], number, &end].concat());
                with.collect::<Vec<_>>()
            });
            rows = longer.collect();
        }
        rows
    }

    /// Returns the language of whole slots over bytes, opening and closing text included.
    pub fn dfa(self, integers: IntegersBelow) -> Dfa {
        let mut languages = Languages::default();
        let root = self.language(integers, &mut languages);
        Dfa::new(&languages, root)
    }

    /// Returns the language of the content of slots over bytes, without the slots in the language `without`; `None` if nothing is left.
    pub fn inner_dfa(
        self,
        integers: IntegersBelow,
        without: impl FnOnce(&mut Languages<u8>) -> Option<StateId>,
    ) -> Option<Dfa> {
        let mut languages = Languages::default();
        let mut root = self.language(integers, &mut languages);
        // Whole slots are removed before their brackets are, because `without` describes whole slots.
        if let Some(without) = without(&mut languages) {
            root = languages.difference(root, without)?;
        }
        for byte in self.open().bytes() {
            let edges = &languages.node(root).edges;
            root = edges.iter().find(|(label, _)| *label == byte).map(|(_, then)| *then)?;
        }
        let root = languages.without_last(root, self.close().as_bytes())?;
        Some(Dfa::new(&languages, root))
    }

    fn language(self, integers: IntegersBelow, languages: &mut Languages<u8>) -> StateId {
        let mut root = parts::language(&SlotPart::literal(self.close()), languages);
        // Built backwards, so that every state is created after its successors.
        for axis in (0..self.numbers()).rev() {
            let rows = self.0.number.rows(axis, integers);
            // All numbers have the same kind of end, so there is no conflict.
            let number = parts::language_of_rows(&rows, languages).unwrap_or(root);
            root = languages.concatenation(number, root).unwrap_or(root);
            let before = if axis == 0 { self.open() } else { self.separator() };
            let before = parts::language(&SlotPart::literal(before), languages);
            root = languages.concatenation(before, root).unwrap_or(root);
        }
        root
    }

    /// Returns a regular expression for whole slots.
    pub fn expression(self, integers: IntegersBelow) -> String {
        let numbers = (0..self.numbers()).map(|axis| {
            let rows = self.0.number.rows(axis, integers);
            let options: Vec<String> = rows.iter().rev().map(|row| parts::expression(row)).collect();
            if options.len() == 1 { options.concat() } else { format!("(?:{})", options.join("|")) }
        });
        let numbers: Vec<String> = numbers.collect();
        let around = [self.open(), self.separator(), self.close()].map(parts::escaped);
        format!("{}{}{}", around[0], numbers.join(&around[1]), around[2])
    }

    /// Returns the value that a reader gets from the beginning of a number, in the encoding's own units. A truncated decimal is close to
    /// the number, but a truncated index is a different bin. `None` if nothing can be read.
    pub fn left_over(self, text: &[u8]) -> Option<Fixed> {
        let prefix = scan_prefix(text);
        if !prefix.has_digits() {
            return None;
        }
        match &self.0.number {
            NumberFormat::Decimal { precision, .. } => Some(prefix.value(text, *precision)),
            // Without separators a reader counts digits, so a missing digit shifts all later numbers.
            _ if self.separator().is_empty() && self.numbers() > 1 => None,
            _ => Some(prefix.value(text, Precision::ZERO)),
        }
    }
}

impl PartialEq for Encoding {
    fn eq(&self, other: &Self) -> bool {
        // Built-in definitions are not in the list of `new`, so a definition may exist twice.
        std::ptr::eq(self.0, other.0) || self.0 == other.0
    }
}

impl Eq for Encoding {}

impl Hash for Encoding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal definitions have equal names. Their edges are floats, which cannot be hashed.
        self.name().hash(state);
    }
}

impl PartialOrd for Encoding {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Decimals come first, and of these the ones with trailing zeros. Then encodings are ordered by decimals, separator, name and
/// definition.
impl Ord for Encoding {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |e: &Encoding| (!e.is_decimal(), e.zeros(), e.decimals(), e.separator(), e.name());
        // Definitions contain no NaN, so they can always be compared.
        let definitions = || self.0.partial_cmp(other.0).unwrap_or(Ordering::Equal);
        key(self).cmp(&key(other)).then_with(definitions)
    }
}

impl std::fmt::Debug for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::fmt::Display for Encoding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
