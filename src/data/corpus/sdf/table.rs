//! The connection table of one molecule, interpreted by the rules of RDKit's reader (`MolFileParser.cpp`): charges, isotopes,
//! radicals and valences. Wedges and parities are ignored, because the coordinates are more informative.

use std::collections::HashMap;

use drift_core::chem::elements::{HYDROGEN, most_common_isotope};
use drift_core::chem::{Atom, Bond, Graph, Order};
use drift_core::error::excerpt;

/// The largest number of bonds that a molecule may announce.
const MAX_BONDS: usize = 4_000_000;

/// What a file states about an atom besides its element and position; 0 where it states nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// Formal charge.
    pub charge: i32,
    /// Mass number, absolute.
    pub mass: i32,
    /// The radical code of the table: 1 singlet, 2 doublet, 3 triplet.
    pub radical: i32,
    /// The valence, bonds and hydrogens together; 15 or -1 stands for 0.
    pub valence: i32,
    /// The number of hydrogens that a query asks for; with one, no hydrogens are implied.
    pub hydrogens: i32,
}

/// The atoms and bonds of the current molecule.
#[derive(Debug, Default)]
pub(super) struct Table {
    structure: Graph,
    /// The valence of each atom, as in [`Notes`].
    valences: Vec<i32>,
    /// Whether property lines listed charges or radicals; then the charges on the atom lines are ignored.
    listed: bool,
    /// Positions of atoms by their index in the file, once the indices are not simply 1, 2, 3, …
    places: Option<HashMap<u64, u32>>,
}

impl Table {
    /// Adds an atom.
    pub(super) fn push(&mut self, atom: Atom, valence: i32) {
        self.structure.atoms.push(atom);
        self.valences.push(valence);
    }

    /// Sets the index by which bonds refer to the next atom. If several atoms have the same index, it means the first.
    pub(super) fn name_next(&mut self, index: u64) {
        let place = self.structure.atoms.len() as u32;
        // Nearly all files count from 1, and need no map.
        if self.places.is_none() && index != u64::from(place) + 1 {
            self.places = Some((0..place).map(|place| (u64::from(place) + 1, place)).collect());
        }
        if let Some(places) = &mut self.places {
            places.entry(index).or_insert(place);
        }
    }

    /// Adds a bond between two atoms, given by their indices in the file.
    ///
    /// # Errors
    /// A reason: an atom with such an index does not exist.
    pub(super) fn bond(&mut self, kind: u64, indices: [u64; 2]) -> Result<(), String> {
        let place = |index: u64| {
            let simple = || {
                let place = index.checked_sub(1)?;
                (place < self.structure.atoms.len() as u64).then_some(place as u32)
            };
            let place = self.places.as_ref().map_or_else(simple, |places| places.get(&index).copied());
            place.ok_or_else(|| format!("a bond to atom {index}, which is missing"))
        };
        let bond = [place(indices[0])?, place(indices[1])?];
        self.structure.bonds.push(Bond::new(bond.map(|atom| atom as usize), order(kind)));
        Ok(())
    }

    /// Applies a V2000 line `M  CHG`, `M  RAD` or `M  ISO`; other lines do not describe atoms and are ignored.
    ///
    /// # Errors
    /// A reason: entries are missing, are not numbers, or refer to atoms that do not exist.
    pub(super) fn property(&mut self, line: &str) -> Result<(), String> {
        let Some(kind @ ("CHG" | "RAD" | "ISO")) = line.strip_prefix("M  ").and_then(|rest| rest.get(..3))
        else {
            return Ok(());
        };
        if kind != "ISO" && !std::mem::replace(&mut self.listed, true) {
            // Like RDKit, discards the charges of the atom lines also at the first line of radicals.
            self.structure.atoms.iter_mut().for_each(|atom| atom.charge = 0);
        }
        let entries =
            entries(&line[6..]).ok_or_else(|| format!("not a property: {}", excerpt(line.as_bytes())))?;
        for (number, value) in entries {
            let atom = number.checked_sub(1).and_then(|at| self.structure.atoms.get_mut(at));
            let atom = atom.ok_or_else(|| format!("`M  {kind}` of atom {number}, which is missing"))?;
            match (kind, value) {
                // A blank or negative isotope is ignored.
                ("ISO", None | Some(..0)) => {}
                ("ISO", Some(mass)) => atom.isotope = isotope(mass)?,
                ("CHG", value) => atom.charge = charge(value.unwrap_or(0))?,
                (_, value) => atom.radicals = radicals(value.unwrap_or(0))?,
            }
        }
        Ok(())
    }

    /// The number of bonds so far.
    pub(super) fn bonds(&self) -> usize {
        self.structure.bonds.len()
    }

    /// Returns the whole graph. Now that the bonds are known, computes the hydrogens that stated valences leave room for.
    pub(super) fn finish(mut self) -> Graph {
        if self.valences.iter().any(|valence| *valence != 0) {
            let mut halves = vec![0; self.valences.len()];
            for bond in &self.structure.bonds {
                bond.atoms.iter().for_each(|atom| halves[*atom] += half_valences(bond, *atom));
            }
            for ((atom, valence), halves) in self.structure.atoms.iter_mut().zip(self.valences).zip(halves) {
                if valence != 0 {
                    // 15 in V2000, and -1 in V3000, stand for a valence of 0.
                    let room = if matches!(valence, 15 | -1) { 0 } else { valence - halves / 2 };
                    atom.bracket = true;
                    atom.hydrogens = room.max(0).cast_unsigned();
                }
            }
        }
        Graph::of_file(self.structure.atoms, self.structure.bonds)
    }
}

/// An atom of the given element and symbol.
///
/// # Errors
/// A reason: a charge, mass number or radical that no atom can have.
pub(super) fn atom(element: u8, symbol: &str, notes: Notes) -> Result<Atom, String> {
    let mass = match notes.mass {
        0 if element == HYDROGEN && symbol.eq_ignore_ascii_case("D") => 2,
        0 if element == HYDROGEN && symbol.eq_ignore_ascii_case("T") => 3,
        mass => mass,
    };
    Ok(Atom {
        element,
        charge: charge(notes.charge)?,
        isotope: isotope(mass)?,
        hydrogens: 0,
        // V2000 writes the number of hydrogens plus one, and V3000 writes -1 for none. In both cases no hydrogens are implied.
        bracket: notes.hydrogens > 0 || notes.hydrogens == -1,
        radicals: radicals(notes.radical)?,
        ..Atom::default()
    })
}

/// The mass number for a difference to the periodic table. RDKit counts from the most common isotope.
///
/// # Errors
/// A reason: the mass number would be negative.
pub(super) fn mass(element: u8, difference: i32) -> Result<i32, String> {
    let common = i32::from(most_common_isotope(element).unwrap_or(0));
    match common.checked_add(difference) {
        _ if difference == 0 => Ok(0),
        Some(mass @ 0..) => Ok(mass),
        _ => Err(format!("a mass difference of {difference}")),
    }
}

/// The charge for a V2000 code: 1 is +3, 7 is -3. Code 4, a radical, is charge 0, as in RDKit.
pub(super) fn coded_charge(code: i32) -> i32 {
    if code == 0 { 0 } else { 4i32.saturating_sub(code) }
}

/// Refuses a table with too many bonds.
pub(super) fn at_most(bonds: usize) -> Result<usize, String> {
    if bonds > MAX_BONDS { Err(format!("{bonds} bonds; at most {MAX_BONDS} are read")) } else { Ok(bonds) }
}

fn charge(charge: i32) -> Result<i32, String> {
    i8::try_from(charge).map(i32::from).map_err(|_| format!("a charge of {charge}"))
}

fn isotope(mass: i32) -> Result<u32, String> {
    u16::try_from(mass).map(u32::from).map_err(|_| format!("a mass number of {mass}"))
}

/// The number of unpaired electrons for a radical code: two for singlets and triplets, one for doublets.
fn radicals(code: i32) -> Result<u32, String> {
    match code {
        0 => Ok(0),
        2 => Ok(1),
        1 | 3 => Ok(2),
        _ => Err(format!("a radical of kind {code}")),
    }
}

/// Query bonds and unknown kinds have no known order.
fn order(kind: u64) -> Order {
    match kind {
        1 => Order::Single,
        2 => Order::Double,
        3 => Order::Triple,
        4 => Order::Aromatic,
        9 => Order::Dative,
        _ => Order::Any,
    }
}

/// The contribution of a bond to the valence of one of its atoms, in halves (`Bond::getValenceContrib`).
fn half_valences(bond: &Bond, atom: usize) -> i32 {
    if bond.order == Order::Aromatic { 3 } else { 2 * bond.valence(atom).cast_signed() }
}

/// Parses `nn8 aaa vvv …`, pairs of atom numbers and values; a blank value is `None`. Parses by columns, or by fields for writers
/// that do not keep to the columns.
fn entries(text: &str) -> Option<Vec<(usize, Option<i32>)>> {
    by_columns(text).or_else(|| {
        let mut fields = text.split_ascii_whitespace();
        let count: usize = fields.next()?.parse().ok()?;
        let mut entry = || Some((fields.next()?.parse().ok()?, Some(fields.next()?.parse().ok()?)));
        // Each entry takes some bytes of the text, so their number is bounded.
        (0..count.min(text.len() + 1)).map(|_| entry()).collect()
    })
}

fn by_columns(text: &str) -> Option<Vec<(usize, Option<i32>)>> {
    let count: usize = text.get(..3)?.trim().parse().ok()?;
    let entry = |at: usize| {
        let (start, end) = (3 + 8 * at, 11 + 8 * at);
        let value = text.get(start + 4..end.min(text.len())).unwrap_or("").trim();
        let value = if value.is_empty() { None } else { Some(value.parse().ok()?) };
        Some((text.get(start..start + 4)?.trim().parse().ok()?, value))
    };
    let rest = text.get(3 + 8 * count..).unwrap_or("");
    if rest.trim().is_empty() { (0..count).map(entry).collect() } else { None }
}
