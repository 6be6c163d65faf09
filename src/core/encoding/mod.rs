//! Coordinate encodings: how the coordinates of a molecule are written into its text, as data.
//!
//! An [`Encoding`] says where *slots* stand (behind each atom, or behind every symbol), what opens, separates and closes their
//! numbers, how a number is written and what it means: its coordinate, and its *cell*, the coordinates that are written so.
//!
//! | name | text of an atom | numbers |
//! | --- | --- | --- |
//! | `fixed`, `stripped-3` | `[C]<-1.5000,0.0000,2.1000>` | decimals in Å, cut toward zero ([`decimal`]) |
//! | `binned-v1:-21,21,0.05` | `[C]<390,420,462>` | bins, zero-padded ([`index`]) |
//! | `binned-v2:-13,13,0.104` | `[C]111125145;` | bins, nothing around them but `;` |
//! | a file of edges | `[C]111125145;` | bins that were fitted to data |
//! | `fsq:4096` | `[C]<123>(<45>[O]<678>)<90>` | codes of another program: no coordinates |
//!
//! Values are whole numbers ([`Fixed`]) in the encoding's own units, so text and value are one to one. From the definition
//! everything else is derived and written nowhere again: parsing and writing ([`Encoding::parse_numbers`],
//! [`Encoding::write_numbers`]), the rows of parts that slots are made of ([`Encoding::rows`], [`parts`]), their language as an
//! automaton over bytes ([`Encoding::dfa`]) and as an expression, what is left of a number that is cut ([`Encoding::left_over`]).

pub mod block;
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

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

pub use block::{BlockError, Progress, is_three_numbers};
pub use decimal::{Fixed, Precision, TrailingZeros, Written};
pub use decimal_text::{NumberError, NumberPrefix, scan_prefix};
pub use definition::{Definition, IntegersBelow, NumberFormat, RoundTo, Slots};
pub use dfa::{Dfa, DfaState};
pub use file::ENCODING_SCHEMA;
pub use names::AskedEncoding;
pub use reading::{OutOfRange, Reading};

use language::{Languages, StateId};
use parts::{PartRow, SlotPart};

/// A coordinate encoding: a handle of its [`Definition`], cheap to copy. Two are equal if their definitions are.
#[derive(Clone, Copy)]
pub struct Encoding(&'static Definition);

impl Encoding {
    /// Exactly four decimals with commas between brackets, `<0.5000,1.0000,-2.2500>`: the users' text of section 1.
    pub const FIXED: Encoding = Encoding(names::FIXED);
    /// At most four decimals, trailing zeros and a trailing point removed, `<0.5,1,-2.25>`.
    pub const STRIPPED: Encoding = Encoding(names::STRIPPED);
    /// Both, in the order of reports.
    pub const ALL: [Encoding; 2] = [Encoding::FIXED, Encoding::STRIPPED];

    /// An encoding of a definition of one's own.
    ///
    /// Each definition is kept once, for as long as the program runs: a run knows a few of them, from its options and files.
    ///
    /// # Errors
    /// A sentence that says what in the definition contradicts itself.
    pub fn new(definition: Definition) -> Result<Self, String> {
        static KNOWN: Mutex<Vec<&'static Definition>> = Mutex::new(Vec::new());
        definition.check()?;
        // A lock is only poisoned if another thread panicked while it held it; what it holds is whole all the same.
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

    /// What it is.
    pub fn definition(self) -> &'static Definition {
        self.0
    }

    /// `fixed`, `stripped-3-spaces`, `binned-v1:-21,21,0.05`, or the name that its file gives.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// How its numbers are written.
    pub fn number(self) -> &'static NumberFormat {
        &self.0.number
    }

    /// Where its slots stand.
    pub fn slots(self) -> Slots {
        self.0.slots
    }

    /// What stands before the first number of a slot; may be empty.
    pub fn open(self) -> &'static str {
        &self.0.open
    }

    /// What stands between numbers; may be empty.
    pub fn separator(self) -> &'static str {
        &self.0.separator
    }

    /// What stands behind the last number of a slot; may be empty.
    pub fn close(self) -> &'static str {
        &self.0.close
    }

    /// Numbers of a slot: 1 or 3.
    pub fn numbers(self) -> usize {
        self.0.numbers
    }

    /// Whether its numbers stand for coordinates.
    pub fn has_coordinates(self) -> bool {
        !matches!(self.0.number, NumberFormat::Code { .. })
    }

    /// Whether numbers may begin with a sign.
    pub fn is_signed(self) -> bool {
        match &self.0.number {
            NumberFormat::Decimal { .. } => true,
            NumberFormat::Integer { signed, .. } => *signed,
            NumberFormat::Index { .. } | NumberFormat::Code { .. } => false,
        }
    }

    /// Whether numbers are coordinates in Å, written as decimals.
    pub fn is_decimal(self) -> bool {
        matches!(self.0.number, NumberFormat::Decimal { .. })
    }

    /// What becomes of trailing zeros; none where numbers are no decimals.
    pub fn zeros(self) -> Option<TrailingZeros> {
        match &self.0.number {
            NumberFormat::Decimal { zeros, .. } => Some(*zeros),
            _ => None,
        }
    }

    /// Whether numbers lack trailing zeros, and so vary in length by their value.
    pub fn is_stripped(self) -> bool {
        self.zeros() == Some(TrailingZeros::Removed)
    }

    /// Whether numbers have all their digits, whatever their value.
    pub fn is_fixed(self) -> bool {
        !self.is_stripped()
    }

    /// The decimals of decimal numbers; those of Å with four decimals for others, which have none of their own.
    pub fn precision(self) -> Precision {
        match &self.0.number {
            NumberFormat::Decimal { precision, .. } => *precision,
            _ => Precision::FOUR,
        }
    }

    /// How many decimals numbers have at most; 0 where they are no decimals.
    pub fn decimals(self) -> usize {
        if self.is_decimal() { self.precision().decimals() } else { 0 }
    }

    /// The fewest decimals of a number.
    pub fn least_decimals(self) -> usize {
        if self.is_fixed() { self.decimals() } else { 0 }
    }

    /// This encoding with trailing zeros kept or removed; itself where numbers are no decimals.
    pub fn with_zeros(self, zeros: TrailingZeros) -> Self {
        if self.zeros().is_none_or(|own| own == zeros) {
            return self;
        }
        self.respelled(zeros, self.precision(), self.separator())
    }

    /// This encoding with the other convention for trailing zeros; itself where numbers are no decimals.
    pub fn other(self) -> Self {
        match self.zeros() {
            Some(TrailingZeros::Kept) => self.with_zeros(TrailingZeros::Removed),
            Some(TrailingZeros::Removed) => self.with_zeros(TrailingZeros::Kept),
            None => self,
        }
    }

    /// The same decimals in the same slots with spaces, or commas, between them; itself where numbers are no decimals, or where it
    /// could not be read back.
    pub fn with_spaces(self, spaces: bool) -> Self {
        match self.zeros() {
            Some(zeros) if (self.separator() == " ") != spaces => {
                self.respelled(zeros, self.precision(), if spaces { " " } else { "," })
            }
            _ => self,
        }
    }

    /// This encoding with so many decimals; itself where numbers are no decimals.
    pub fn with_precision(self, precision: Precision) -> Self {
        self.zeros().map_or(self, |zeros| self.respelled(zeros, precision, self.separator()))
    }

    /// Other decimals in the same slots, so far apart.
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
        // The same slots hold these decimals as well as those; itself if they should not.
        Encoding::new(definition).unwrap_or(self)
    }

    /// What a slot's values stand for, in Å; `None` for codes.
    pub fn angstrom(self, values: &[Fixed; 3]) -> Option<[f64; 3]> {
        let at = |axis: usize| self.0.number.angstrom(values[axis], axis);
        Some([at(0)?, at(1)?, at(2)?])
    }

    /// The values of a position in Å.
    ///
    /// # Errors
    /// If a coordinate is not finite, or beyond what can be written.
    pub fn quantize(self, position: [f64; 3]) -> Result<[Fixed; 3], NumberError> {
        let at = |axis: usize| self.0.number.quantize(position[axis], axis);
        Ok([at(0)?, at(1)?, at(2)?])
    }

    /// Refuses values that the encoding never writes.
    ///
    /// # Errors
    /// The bound that one is beyond.
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

    /// Whether a slot's values stand for a position that is not known: one of them is a tail.
    pub fn has_tail(self, values: &[Fixed; 3]) -> bool {
        (0..3).any(|axis| self.0.number.is_tail(values[axis], axis))
    }

    /// The values of one encoding in another: exact between decimals, else by the coordinate that they stand for.
    ///
    /// # Errors
    /// If a coordinate is beyond what can be written, or either writes codes and the other is another encoding.
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

    /// The rows of parts of whole slots, opened and closed: one row for each number of decimals of each of its numbers.
    pub fn rows(self, integers: IntegersBelow) -> Vec<PartRow> {
        let mut rows: Vec<PartRow> = vec![SlotPart::literal(self.open()).into_iter().collect()];
        for axis in 0..self.numbers() {
            let of_number = self.0.number.rows(axis, integers);
            let end = if axis + 1 < self.numbers() { self.separator() } else { self.close() };
            let end: PartRow = SlotPart::literal(end).into_iter().collect();
            let longer = |row: &PartRow| {
                let with = |number: &PartRow| [&row[..], number, &end].concat();
                of_number.iter().map(with).collect::<Vec<_>>()
            };
            rows = rows.iter().flat_map(longer).collect();
        }
        rows
    }

    /// The language of whole slots, opened and closed, over bytes.
    pub fn dfa(self, integers: IntegersBelow) -> Dfa {
        let mut languages = Languages::default();
        let root = self.language([self.open(), self.close()], integers, &mut languages);
        Dfa::new(&languages, root)
    }

    /// The language of what stands inside of slots, over bytes, without that of some slots; `None` if nothing is left.
    pub fn inner_dfa(
        self,
        integers: IntegersBelow,
        without: impl FnOnce(&mut Languages<u8>) -> Option<StateId>,
    ) -> Option<Dfa> {
        let mut languages = Languages::default();
        let mut root = self.language([self.open(), self.close()], integers, &mut languages);
        // Whole slots are taken away before they are opened: only so can `without` tell what is isolated.
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

    fn language(self, around: [&str; 2], integers: IntegersBelow, languages: &mut Languages<u8>) -> StateId {
        let literal = |text: &str| SlotPart::literal(text).into_iter().collect::<PartRow>();
        let mut root = parts::language(&literal(around[1]), languages);
        // From the end backwards, so that every state is made after those that it leads to.
        for axis in (0..self.numbers()).rev() {
            let rows = self.0.number.rows(axis, integers);
            // Numbers end in one way alone, so nothing can end in two.
            let number = parts::language_of_rows(&rows, languages).unwrap_or(root);
            root = languages.concatenation(number, root).unwrap_or(root);
            let before = literal(if axis == 0 { around[0] } else { self.separator() });
            let before = parts::language(&before, languages);
            root = languages.concatenation(before, root).unwrap_or(root);
        }
        root
    }

    /// A regular expression of whole slots.
    pub fn expression(self, integers: IntegersBelow) -> String {
        let number = |axis: usize| {
            let rows = self.0.number.rows(axis, integers);
            let options: Vec<String> = rows.iter().rev().map(|row| parts::expression(row)).collect();
            if options.len() == 1 { options.concat() } else { format!("(?:{})", options.join("|")) }
        };
        let numbers: Vec<String> = (0..self.numbers()).map(number).collect();
        let around = [self.open(), self.separator(), self.close()].map(parts::escaped);
        format!("{}{}{}", around[0], numbers.join(&around[1]), around[2])
    }

    /// What is read of the beginning of a number, in the encoding's own units: a shorter decimal is a number near it, a shorter
    /// index is another bin. `None` where nothing can be read.
    pub fn left_over(self, text: &[u8]) -> Option<Fixed> {
        let prefix = scan_prefix(text);
        if !prefix.has_digits() {
            return None;
        }
        match &self.0.number {
            NumberFormat::Decimal { precision, .. } => Some(prefix.value(text, *precision)),
            // Without separators a reader counts digits, so a number that lacks one moves all behind it.
            _ if self.separator().is_empty() && self.numbers() > 1 => None,
            _ => Some(prefix.value(text, Precision::ZERO)),
        }
    }
}

impl PartialEq for Encoding {
    fn eq(&self, other: &Self) -> bool {
        // Built-in definitions stand apart from those that `new` keeps, so one may exist twice.
        std::ptr::eq(self.0, other.0) || self.0 == other.0
    }
}

impl Eq for Encoding {}

impl Hash for Encoding {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal definitions have equal names; their edges, being floats, have no hash.
        self.name().hash(state);
    }
}

impl PartialOrd for Encoding {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Decimals first, those that keep their zeros before others; the rest by name, and those of one name by what they are.
impl Ord for Encoding {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |e: &Encoding| (!e.is_decimal(), e.zeros(), e.decimals(), e.separator(), e.name());
        // Definitions hold no NaN, so that those that do not compare are none.
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
