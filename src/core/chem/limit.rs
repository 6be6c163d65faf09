//! Limits on the size of a molecule, checked on its text before anything is built from it.
//!
//! The time and memory of canonical forms grow with the square of the number of atoms, and their call stack grows with the atoms too.
//! Generated text may contain any number of atoms; the molecules that it is compared with are far below the limit.

use super::graph::SmilesProblem;

/// The default limit: the heavy atoms of the largest molecule that is processed.
pub const MAX_HEAVY_ATOMS: usize = 1_000;

/// The most hydrogens written as atoms, for each heavy atom.
const HYDROGENS: usize = 5;

/// The longest spelling of one atom in bytes, with everything before the next atom: isotope, chirality, hydrogens, charge and map
/// number in brackets, and its ring numbers.
const ATOM_BYTES: usize = 256;

/// The largest number of heavy atoms that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtomLimit(pub usize);

impl Default for AtomLimit {
    fn default() -> Self {
        AtomLimit(MAX_HEAVY_ATOMS)
    }
}

impl AtomLimit {
    /// Refuses a SMILES with more heavy atoms, in one pass over its text and without allocating.
    ///
    /// # Errors
    /// [`SmilesProblem::TooLarge`].
    pub fn check(self, smiles: &str) -> Result<(), SmilesProblem> {
        let most = self.0.saturating_mul(1 + HYDROGENS);
        let (heavy, hydrogens) = atoms(smiles.as_bytes(), most);
        let is_long = smiles.len() > ATOM_BYTES.saturating_mul(most);
        if is_long || heavy > self.0 || hydrogens > self.0.saturating_mul(HYDROGENS) {
            return Err(SmilesProblem::TooLarge(self.0));
        }
        Ok(())
    }
}

/// Returns the number of heavy atoms and of hydrogens in a text. Counting stops beyond `most`. Texts that are not SMILES are counted too;
/// the parser refuses them later.
fn atoms(text: &[u8], most: usize) -> (usize, usize) {
    let (mut heavy, mut hydrogens, mut at) = (0, 0, 0);
    while at < text.len() && heavy + hydrogens <= most {
        match text[at] {
            b'[' => {
                let inside = text[at + 1..].iter().position(|b| *b == b']').unwrap_or(text.len() - at - 1);
                match is_hydrogen(&text[at + 1..at + 1 + inside]) {
                    true => hydrogens += 1,
                    false => heavy += 1,
                }
                at += inside + 1;
            }
            // The second letters of chlorine and bromine.
            b'l' | b'r' if at > 0 && matches!(text[at - 1], b'C' | b'B') => {}
            b if b.is_ascii_alphabetic() || b == b'*' => heavy += 1,
            _ => {}
        }
        at += 1;
    }
    (heavy, hydrogens)
}

/// Returns whether the text between brackets is a hydrogen: `H`, `2H`, `H+`.
fn is_hydrogen(inside: &[u8]) -> bool {
    let symbol = inside.trim_ascii_start();
    let digits = symbol.iter().take_while(|b| b.is_ascii_digit()).count();
    let symbol = &symbol[digits..];
    symbol.first() == Some(&b'H') && !symbol.get(1).is_some_and(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_atoms_are_counted_in_the_text() {
        for (smiles, heavy, hydrogens) in [
            ("CC(=O)c1ccccc1Cl", 10, 0),
            ("[H]C([2H])([H+])Br", 2, 3),
            ("[Hg][He][nH]1cccc1", 7, 0),
            ("[13CH3][C@@H](F)*", 4, 0),
            ("[C", 1, 0),
            ("", 0, 0),
        ] {
            assert_eq!(atoms(smiles.as_bytes(), 100), (heavy, hydrogens), "{smiles}");
        }
    }

    #[test]
    fn larger_molecules_are_refused_before_any_work() {
        let limit = AtomLimit(10);
        limit.check(&"C".repeat(10)).unwrap();
        assert_eq!(limit.check(&"C".repeat(11)), Err(SmilesProblem::TooLarge(10)));
        assert!(limit.check(&format!("C{}", "[H]".repeat(51))).is_err());
        assert!(limit.check(&format!("C{}", "-".repeat(100_000))).is_err());
        AtomLimit::default().check(&"C(".repeat(1_000)).unwrap();
        assert!(AtomLimit::default().check(&"C(".repeat(1_000_000)).is_err());
    }
}
