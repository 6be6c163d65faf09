//! Refuses definitions whose texts could not be read back, or whose numbers cannot hold coordinates. Each message begins with the
//! field of `drift.encoding/1` that is to be changed.

use super::decimal_text::is_of_number;
use super::definition::{Definition, NumberFormat, Slots};

impl Definition {
    /// Checks that texts in this encoding can be parsed again, and that no coordinate is lost in them.
    ///
    /// # Errors
    /// A sentence that names the field and says why they cannot.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.name.is_empty() || self.name.len() > 200 || self.name.chars().any(char::is_control) {
            return Err("`name`: it is empty, longer than 200 bytes, or has control characters".to_owned());
        }
        self.check_slots()?;
        for (field, text) in [("open", &self.open), ("separator", &self.separator), ("close", &self.close)] {
            check_delimiter(field, text)?;
        }
        let Definition { open, separator, close, .. } = self;
        if !separator.is_empty() && !close.is_empty() && separator.contains(&**close) {
            // A slot ends at the first occurrence of its closing text.
            return Err(format!(
                "`close`: {close:?} cannot close a slot whose numbers stand {separator:?} apart"
            ));
        }
        if self.numbers == 1 && open.is_empty() {
            return Err("`open`: a single number needs text before it".to_owned());
        }
        self.check_number()?;
        self.check_length()
    }

    /// Refuses slots that cannot hold x, y and z of each atom.
    fn check_slots(&self) -> Result<(), String> {
        if self.numbers != 1 && self.numbers != 3 {
            return Err(format!("`numbers`: a slot has 1 number or 3, not {}", self.numbers));
        }
        if matches!(self.number, NumberFormat::Code { .. }) {
            return Ok(());
        }
        if self.numbers != 3 {
            let problem = "a slot of coordinates has 3 numbers, not 1: y and z would be lost";
            return Err(format!("`numbers`: {problem}; give 3, or numbers of kind code"));
        }
        if self.slots != Slots::Atoms {
            let problem = "only atoms have coordinates, other symbols have none";
            return Err(format!("`slots`: {problem}; give \"atoms\", or numbers of kind code"));
        }
        Ok(())
    }

    fn check_number(&self) -> Result<(), String> {
        match &self.number {
            NumberFormat::Index { axes, .. } if axes.len() != 1 && axes.len() != 3 => {
                Err(format!("`axes`: bins are given for 1 axis or 3, not {}", axes.len()))
            }
            NumberFormat::Integer { most, .. } if !(1..=99_999_999).contains(most) => {
                Err(format!("`most`: the largest magnitude is 1 to 99,999,999, not {most}"))
            }
            NumberFormat::Code { below, .. } if !(1..=1_000_000).contains(below) => {
                Err(format!("`codes`: there are 1 to 1,000,000 codes, not {below}"))
            }
            number if number.width() > 9 => {
                Err(format!("`width`: numbers have at most 9 digits, not {}", number.width()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses numbers of which nobody could tell where they end.
    fn check_length(&self) -> Result<(), String> {
        if !self.separator.is_empty() || self.numbers == 1 {
            if self.close.is_empty() {
                return Err("`close`: numbers of varying length need text that closes the slot".to_owned());
            }
            return Ok(());
        }
        if self.number.is_signed() {
            return Err(
                "`separator`: numbers with signs or decimals need a separator between them".to_owned()
            );
        }
        // Each axis may have its own bins.
        let largest = (0..self.numbers).map(|axis| self.number.limits(axis).1).max().unwrap_or(0);
        let width = self.number.width();
        if largest.to_string().len() > usize::from(width) {
            let problem = format!("{largest} does not fit into {width} digits");
            return Err(format!("`width`: {problem}, and nothing separates the numbers"));
        }
        Ok(())
    }
}

/// Refuses text around numbers that looks like a part of a number, an atom, a tag or a special token of a tokenizer.
fn check_delimiter(field: &str, text: &str) -> Result<(), String> {
    let is_printable = |byte: u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n');
    let problem = if text.len() > 16 {
        "it is longer than 16 characters"
    } else if text.bytes().any(is_of_number) {
        "it contains digits, signs or points, as numbers do"
    } else if !text.bytes().all(is_printable) {
        "it is not printable ASCII"
    } else if text.contains(['[', ']']) {
        "it contains a square bracket, as atoms and tags do"
    } else if has_special_token(text) {
        "it contains a name between < and >, as special tokens do"
    } else {
        return Ok(());
    };
    Err(format!("`{field}`: {text:?} cannot stand around numbers: {problem}"))
}

/// Returns whether a text contains `<…>` with a letter inside.
fn has_special_token(text: &str) -> bool {
    let mut opened = text.split('<').skip(1).filter_map(|rest| rest.split_once('>'));
    opened.any(|(inside, _)| inside.bytes().any(|byte| byte.is_ascii_alphabetic()))
}
