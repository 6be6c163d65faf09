//! Bracket atoms, `[13C@@H2+:5]`: their parser, and the spelling of some parts.

use super::elements::of_symbol;
use super::graph::{Atom, Chirality};

/// Aromatic symbols, those of two letters first.
const AROMATIC: [(&str, u8); 10] = [
    ("si", 14),
    ("as", 33),
    ("se", 34),
    ("te", 52),
    ("b", 5),
    ("c", 6),
    ("n", 7),
    ("o", 8),
    ("p", 15),
    ("s", 16),
];

/// The chirality classes behind `@` that RDKit knows.
const CLASSES: [&str; 5] = ["TH", "AL", "SP", "TB", "OH"];

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

/// Parses the bracket atom at the start of a text that begins with `[`. Returns the atom and its length in bytes.
pub(super) fn bracket(text: &[u8]) -> Result<(Atom, usize), &'static str> {
    let mut reader = Reader { text, at: 1 };
    let isotope = reader.number()?;
    let mut atom = reader.element().ok_or("no element inside the brackets")?;
    atom.isotope = isotope.unwrap_or(0);
    if atom.element != 1 || !atom.bracket {
        atom.chirality = reader.chirality()?;
    }
    atom.bracket = true;
    if reader.take("H") {
        atom.hydrogens = reader.number()?.unwrap_or(1);
    }
    atom.charge = reader.charge()?;
    if reader.take(":") {
        atom.map = Some(reader.number()?.ok_or("no number after `:`")?);
    }
    if reader.take("]") { Ok((atom, reader.at)) } else { Err("unclosed or unknown atom in brackets") }
}

/// Returns a symbol and how often it is counted: `H3`. Empty for 0.
pub(super) fn counted(symbol: &str, count: u32) -> String {
    match count {
        0 => String::new(),
        1 => symbol.to_owned(),
        more => format!("{symbol}{more}"),
    }
}

/// Returns the hydrogens and the charge of an atom in brackets: `H2+`.
pub(super) fn hydrogens_and_charge(hydrogens: u32, charge: i32) -> String {
    let hydrogens = counted("H", hydrogens);
    match charge {
        0 => hydrogens,
        1 => hydrogens + "+",
        -1 => hydrogens + "-",
        charge => format!("{hydrogens}{charge:+}"),
    }
}

impl Reader<'_> {
    fn take(&mut self, text: &str) -> bool {
        let found = self.text[self.at..].starts_with(text.as_bytes());
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Returns a number without leading zeros.
    fn number(&mut self) -> Result<Option<u32>, &'static str> {
        let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        // A leading zero is a number by itself, and no number may follow a number.
        let digits = if self.text.get(self.at) == Some(&b'0') { digits.min(1) } else { digits };
        if digits == 0 {
            return Ok(None);
        }
        let text = &self.text[self.at..self.at + digits];
        self.at += digits;
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u32>().ok());
        number.filter(|number| *number < i32::MAX as u32).map(Some).ok_or("number too large")
    }

    /// Returns the element. `bracket` is set only for the symbol `H`, which takes no chirality.
    fn element(&mut self) -> Option<Atom> {
        let atom = |element, aromatic| Atom { element, bracket: element == 1, aromatic, ..Atom::default() };
        if self.take("*") {
            return Some(atom(0, false));
        }
        if self.take("#") {
            let number = self.number().ok()??;
            return Some(Atom {
                bracket: false,
                ..atom(u8::try_from(number).ok().filter(|n| *n <= 118)?, false)
            });
        }
        // The longest symbol wins: `[Sc]` is scandium.
        for length in [2, 1] {
            let Some(Ok(text)) = self.text.get(self.at..self.at + length).map(std::str::from_utf8) else {
                continue;
            };
            let aromatic = AROMATIC.iter().find(|(symbol, _)| *symbol == text).map(|(_, element)| *element);
            if let Some(element) = aromatic.or_else(|| of_symbol(text)) {
                self.at += length;
                return Some(atom(element, aromatic.is_some()));
            }
        }
        None
    }

    fn chirality(&mut self) -> Result<Option<Chirality>, &'static str> {
        if !self.take("@") {
            return Ok(None);
        }
        if self.take("@") {
            return Ok(Some(Chirality::Clockwise));
        }
        let Some(class) = CLASSES.iter().find(|class| self.take(class)) else {
            return Ok(Some(Chirality::Counterclockwise));
        };
        let number = self.number()?;
        Ok(Some(match (*class, number) {
            ("TH", Some(1)) => Chirality::Counterclockwise,
            ("TH", Some(2)) => Chirality::Clockwise,
            ("SP", Some(number)) => Chirality::SquarePlanar(number),
            ("TB", Some(number)) => Chirality::TrigonalBipyramidal(number),
            ("OH", Some(number)) => Chirality::Octahedral(number),
            _ => Chirality::Other,
        }))
    }

    /// `+`, `++`, `+2`, and the same with `-`.
    fn charge(&mut self) -> Result<i32, &'static str> {
        for (sign, unit) in [("+", 1), ("-", -1)] {
            if self.take(sign) {
                if self.take(sign) {
                    return Ok(2 * unit);
                }
                let number = self.number()?.unwrap_or(1);
                return Ok(unit * i32::try_from(number).map_err(|_| "number too large")?);
            }
        }
        Ok(0)
    }
}
