//! Skeletons: enriched SMILES without coordinates, `[C]<>[C]<>=[O]<>`.

use std::borrow::Cow;

use crate::chem::{Graph, Molecule, READ, SmilesError, SmilesProblem};
use crate::encoding::{Encoding, Slots};

/// Puts `placeholder`, without brackets, into every slot, as the encoding writes slots.
pub fn fill(skeleton: &str, placeholder: &str, encoding: Encoding) -> String {
    let slot = format!("{}{placeholder}{}", encoding.open(), encoding.close());
    placed(skeleton, encoding.slots()).replace("<>", &slot)
}

/// Returns the SMILES of a skeleton: blocks are removed, and added brackets too (`[C]` → `C`).
pub fn smiles(skeleton: &str) -> String {
    let mut out = String::with_capacity(skeleton.len() / 2);
    for piece in pieces(skeleton) {
        match piece {
            Piece::Atom(atom) => out.push_str(bare(atom).unwrap_or(atom)),
            Piece::Between(text) => out.push_str(text),
        }
    }
    out
}

/// Returns the skeleton of a SMILES, as 3DMolGen's encoder writes it: bare atoms get brackets, bracket atoms are copied byte for byte.
///
/// # Errors
/// If `smiles` is not a SMILES, or has no atom.
pub fn from_smiles(smiles: &str) -> Result<String, SmilesError> {
    // Parsed only to find errors: the text itself is copied.
    check(smiles)?;
    Ok(of_checked(smiles))
}

/// Returns the skeleton of a text that is known to be a SMILES with atoms. Bare atoms get brackets; nothing is checked.
pub fn of_checked(smiles: &str) -> String {
    let mut out = String::with_capacity(smiles.len() * 4);
    for symbol in symbols(smiles, true) {
        match symbol.as_bytes()[0] {
            b'[' => out.extend([symbol, "<>"]),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => out.extend(["[", symbol, "]<>"]),
            _ => out.push_str(symbol),
        }
    }
    out
}

/// Moves the slots of a skeleton, which has one behind each atom, to where an encoding has them.
pub fn placed(skeleton: &str, slots: Slots) -> Cow<'_, str> {
    if slots == Slots::Atoms {
        return Cow::Borrowed(skeleton);
    }
    let mut out = String::with_capacity(skeleton.len() * 2);
    symbols(skeleton, false).for_each(|symbol| out.extend([symbol, "<>"]));
    Cow::Owned(out)
}

/// Returns the symbols of a SMILES or of a skeleton in order, without slots: atoms, bonds, parentheses, ring numbers and dots. Only with
/// `bare` may atoms have no brackets. Nothing is checked: any other character is a symbol too.
fn symbols(text: &str, bare: bool) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // Skip the slot of the previous symbol.
        rest = rest.strip_prefix("<>").unwrap_or(rest);
        let length = match rest.as_bytes() {
            [b'[', ..] => rest.find(']').map_or(rest.len(), |end| end + 1),
            [b'C', b'l', ..] | [b'B', b'r', ..] if bare => 2,
            [b'%', digits @ ..] => 1 + ring_digits(digits),
            _ => rest.chars().next()?.len_utf8(),
        };
        let (symbol, tail) = rest.split_at(length);
        rest = tail;
        Some(symbol)
    })
}

/// Returns how many digits behind a `%` belong to its ring number: `%12` is one.
pub(super) fn ring_digits(bytes: &[u8]) -> usize {
    bytes.iter().take(2).take_while(|byte| byte.is_ascii_digit()).count()
}

/// Refuses text that breaks the grammar of SMILES or has no atom.
///
/// # Errors
/// If `smiles` is not a SMILES, or has no atom.
pub fn check(smiles: &str) -> Result<(), SmilesError> {
    let fail = |problem: SmilesProblem| SmilesError::new(smiles, &problem);
    match READ.check(smiles).and_then(|()| Graph::parse(smiles)) {
        Ok(graph) if graph.atoms.is_empty() => Err(fail(SmilesProblem::Syntax { at: 0, what: "no atom" })),
        outcome => outcome.map(|_| ()).map_err(fail),
    }
}

/// The organic subset.
const BARE: [&str; 17] =
    ["*", "Cl", "Br", "B", "C", "N", "O", "P", "S", "F", "I", "b", "c", "n", "o", "p", "s"];

/// Returns the bare spelling of an atom with added brackets: `[C]` → `C`; `None` for an atom that needs its brackets.
fn bare(atom: &str) -> Option<&str> {
    let symbol = atom.strip_prefix('[')?.strip_suffix(']')?;
    BARE.contains(&symbol).then_some(symbol)
}

/// A piece of a skeleton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// `[C@@H]`, brackets included.
    Atom(&'a str),
    /// Bonds, ring digits and parentheses; never empty.
    Between(&'a str),
}

/// Returns the pieces of a skeleton in order, without blocks.
pub fn pieces(skeleton: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = skeleton;
    std::iter::from_fn(move || {
        // Skip the slot of the previous piece.
        rest = rest.strip_prefix("<>").unwrap_or(rest);
        if rest.is_empty() {
            return None;
        }
        let atom = rest.starts_with('[');
        let end = if atom {
            rest.find(']').map_or(rest.len(), |n| n + 1)
        } else {
            // Text between atoms may have slots of its own. A `<` that opens no slot is text.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            rest[first..].find(['[', '<']).map_or(rest.len(), |at| first + at)
        };
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        Some(if atom { Piece::Atom(piece) } else { Piece::Between(piece) })
    })
}

/// Returns the atoms of a skeleton in order: `[C]`, `[C@@H]`, `[O-]`.
pub fn atoms(skeleton: &str) -> impl Iterator<Item = &str> {
    pieces(skeleton).filter_map(|piece| match piece {
        Piece::Atom(atom) => Some(atom),
        Piece::Between(_) => None,
    })
}

/// How a skeleton spells hydrogens that need not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spelling {
    /// The number of heteroatoms whose brackets have no hydrogens, `[O]`, `[N]`.
    pub bare: usize,
    /// The number of atoms B, C, N, O, P and S with needless hydrogens, `[OH]`, `[NH2]`.
    pub with_hydrogens: usize,
}

impl Spelling {
    /// Counts both spellings in a skeleton. Hydrogens are needless only if their number equals that of the implied ones, which is
    /// not the case for a radical.
    pub fn from_skeleton(skeleton: &str) -> Self {
        let mut spelling = Spelling::default();
        if atoms(skeleton).any(|atom| needless_hydrogens(atom).is_some()) {
            let smiles = smiles(skeleton);
            // Only the graph distinguishes a needless hydrogen from one of a radical.
            let graph = READ.check(&smiles).and_then(|()| Graph::parse(&smiles));
            spelling.with_hydrogens = graph.map_or(0, |graph| graph.needless_brackets());
        }
        for atom in atoms(skeleton) {
            if matches!(bare(atom), Some("N" | "O" | "P" | "S" | "B")) {
                spelling.bare += 1;
            }
        }
        spelling
    }

    /// Sums two counts.
    pub fn join(self, other: Spelling) -> Spelling {
        Spelling { bare: self.bare + other.bare, with_hydrogens: self.with_hydrogens + other.with_hydrogens }
    }
}

/// Returns the symbol of an atom whose brackets contain only a symbol and hydrogens: `[OH]` → `O`.
fn needless_hydrogens(atom: &str) -> Option<&str> {
    let inside = atom.strip_prefix('[')?.strip_suffix(']')?;
    let symbol = inside.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(inside).strip_suffix('H')?;
    matches!(symbol, "B" | "C" | "N" | "O" | "P" | "S").then_some(symbol)
}

/// Returns a skeleton without needless hydrogens: `[OH]<>` → `[O]<>`. Aromatic `[nH]` is kept, because its hydrogen is needed.
pub fn without_needless_hydrogens(skeleton: &str) -> String {
    respell(skeleton, |atom, _| needless_hydrogens(atom).map(|symbol| format!("[{symbol}]")))
}

/// Returns a skeleton in which N, O, P, S and B carry their hydrogens, as 3DMolGen's logit processor writes it: `[O]<>` → `[OH]<>`.
///
/// # Errors
/// If the skeleton's text is not a SMILES.
pub fn with_hydrogens(skeleton: &str) -> Result<String, SmilesError> {
    let hydrogens = Molecule::of_smiles(&smiles(skeleton))?.hydrogens;
    Ok(respell(skeleton, |atom, index| {
        let symbol = bare(atom).filter(|s| matches!(*s, "N" | "O" | "P" | "S" | "B"))?;
        match hydrogens.get(index)? {
            0 => None,
            1 => Some(format!("[{symbol}H]")),
            n => Some(format!("[{symbol}H{n}]")),
        }
    }))
}

fn respell(skeleton: &str, mut atom: impl FnMut(&str, usize) -> Option<String>) -> String {
    let mut out = String::with_capacity(skeleton.len());
    let mut index = 0;
    for piece in pieces(skeleton) {
        match piece {
            Piece::Atom(text) => {
                out.push_str(&atom(text, index).unwrap_or_else(|| text.to_owned()));
                out.push_str("<>");
                index += 1;
            }
            Piece::Between(text) => out.push_str(text),
        }
    }
    out
}

/// Detects a skeleton whose spelling differs from the corpus: the model would be forced to write text that it never saw.
///
/// `None` if the spellings agree, otherwise a sentence.
pub(crate) fn spelling_conflict(skeleton: Spelling, corpus: Spelling) -> Option<String> {
    let (foreign, name, usual) = if corpus.with_hydrogens == 0 {
        (skeleton.with_hydrogens, "[OH]", "[O]")
    } else if corpus.bare == 0 {
        (skeleton.bare, "[O]", "[OH]")
    } else {
        return None;
    };
    (foreign > 0).then(|| {
        format!("{foreign} atoms are spelled like {name}; the corpus spells them like {usual}, so the model never saw them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smiles_and_skeleton_are_inverse() {
        for text in
            ["CC=O", "C[C@@H](N)C(=O)[O-]", "c1cc[nH]c1Cl", "C%12CC%12", "[13CH3]Br.[Na+]", "F/C=C\\F"]
        {
            let skeleton = from_smiles(text).unwrap();
            assert_eq!(smiles(&skeleton), text);
        }
        assert_eq!(from_smiles("CC(=O)Cl").unwrap(), "[C]<>[C]<>(=[O]<>)[Cl]<>");
        assert!(from_smiles("C(").is_err() && from_smiles("").is_err());
    }

    #[test]
    fn both_spellings_are_known() {
        let bare = from_smiles("NC(=O)c1cc[nH]c1CO").unwrap();
        let spelled = with_hydrogens(&bare).unwrap();
        assert_eq!(spelled, "[NH2]<>[C]<>(=[O]<>)[c]<>1[c]<>[c]<>[nH]<>[c]<>1[C]<>[OH]<>");
        assert_eq!(without_needless_hydrogens(&spelled), bare);
        assert_eq!(Spelling::from_skeleton(&spelled), Spelling { bare: 1, with_hydrogens: 2 });
        assert!(
            spelling_conflict(Spelling::from_skeleton(&spelled), Spelling::from_skeleton(&bare)).is_some()
        );
        assert!(spelling_conflict(Spelling::from_skeleton(&bare), Spelling::from_skeleton(&bare)).is_none());
    }
}
