//! The connection table of one molecule, interpreted by the rules of RDKit's reader (`MolFileParser.cpp`): charges, isotopes,
//! radicals, valences and bonds without an order. Wedges and parities are ignored, because the coordinates are more informative.

use std::collections::BTreeMap;

use super::places::Places;
use drift_core::chem::elements::{HYDROGEN, most_common_isotope};
use drift_core::chem::{Atom, Bond, Graph, Order};

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
    /// The number of hydrogens plus one that a query of V2000 asks for; with one, no hydrogens are implied.
    pub hydrogens: i32,
}

/// Why a molecule is refused that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The line at fault.
    pub line: u64,
    /// What is wrong there.
    pub reason: String,
}

/// A bond whose type is no order. Other lines of the molecule may still state its order.
#[derive(Debug, Clone, Copy)]
struct OpenBond {
    kind: u64,
    line: u64,
}

/// The atoms and bonds of the current molecule.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) structure: Graph,
    /// The valence of each atom, as in [`Notes`].
    pub(super) valences: Vec<i32>,
    /// Whether property lines listed charges or radicals; then the charges on the atom lines are ignored.
    pub(super) listed: bool,
    /// Whether some bond is drawn as a wedge.
    pub(super) has_wedges: bool,
    atom_places: Places,
    bond_places: Places,
    /// By position in the list of bonds.
    open_bonds: BTreeMap<usize, OpenBond>,
    /// The number of the line that is being read.
    pub(super) line: u64,
}

impl Table {
    /// Adds an atom. Bonds refer to it by `index`, or without one by its position.
    pub(super) fn push(&mut self, atom: Atom, valence: i32, index: Option<u64>) {
        self.structure.atoms.push(atom);
        self.valences.push(valence);
        match index {
            Some(index) => self.atom_places.push_index(index),
            None => self.atom_places.push(),
        }
    }

    /// Adds the bond of a line between two atoms, given by their indices in the file.
    ///
    /// # Errors
    /// A reason: an atom with such an index does not exist.
    pub(super) fn bond(&mut self, bond: FileBond) -> Result<(), String> {
        let mut atoms = [0; 2];
        for (atom, index) in atoms.iter_mut().zip(bond.atoms) {
            *atom = self.atom(index).ok_or_else(|| format!("a bond to atom {index}, which is missing"))?;
        }
        let order = order(bond.kind);
        if order.is_none() {
            let open = OpenBond { kind: bond.kind, line: self.line };
            self.open_bonds.insert(self.bonds(), open);
        }
        self.structure.bonds.push(Bond::new(atoms, order.unwrap_or(Order::Any)));
        match bond.index {
            Some(index) => self.bond_places.push_index(index),
            None => self.bond_places.push(),
        }
        Ok(())
    }

    /// Returns the position of an atom by its index in the file.
    pub(super) fn atom(&self, index: u64) -> Option<usize> {
        self.atom_places.get(index)
    }

    /// Returns the position of a bond by its index in the file.
    pub(super) fn bond_at(&self, index: u64) -> Option<usize> {
        self.bond_places.get(index)
    }

    /// Returns whether the type of a bond states no order, and no other line does so far.
    pub(super) fn is_open(&self, bond: usize) -> bool {
        self.open_bonds.contains_key(&bond)
    }

    /// Sets the order of a bond.
    pub(super) fn set_order(&mut self, bond: usize, order: Order) {
        self.structure.bonds[bond].order = order;
        self.open_bonds.remove(&bond);
    }

    /// By atom, whether it has an aromatic bond.
    pub(super) fn aromatic_atoms(&self) -> Vec<bool> {
        let mut aromatic = vec![false; self.structure.atoms.len()];
        for bond in self.structure.bonds.iter().filter(|bond| bond.order == Order::Aromatic) {
            bond.atoms.iter().for_each(|atom| aromatic[*atom] = true);
        }
        aromatic
    }

    /// Returns the number of bonds so far.
    pub(super) fn bonds(&self) -> usize {
        self.structure.bonds.len()
    }

    /// Returns the whole graph.
    ///
    /// # Errors
    /// If a bond has no order.
    pub(super) fn finish(self) -> Result<Graph, Refusal> {
        if let Some(open) = self.open_bonds.values().next() {
            return Err(Refusal { line: open.line, reason: no_order(open.kind) });
        }
        Ok(Graph::of_file(self.structure.atoms, self.structure.bonds))
    }

    /// Computes the hydrogens that stated valences leave room for, now that all bonds are known.
    pub(super) fn apply_valences(&mut self) {
        if self.valences.iter().all(|valence| *valence == 0) {
            return;
        }
        let mut halves = vec![0; self.valences.len()];
        for bond in &self.structure.bonds {
            bond.atoms.iter().for_each(|atom| halves[*atom] += half_valences(bond, *atom));
        }
        for ((atom, valence), halves) in self.structure.atoms.iter_mut().zip(&self.valences).zip(halves) {
            if *valence != 0 {
                // 15 in V2000, and -1 in V3000, stand for a valence of 0.
                let room = if matches!(valence, 15 | -1) { 0 } else { valence - halves / 2 };
                atom.bracket = true;
                atom.hydrogens = room.max(0).cast_unsigned();
            }
        }
    }
}

/// A bond as its line has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileBond {
    /// Its type: 1 to 3 the order, 4 aromatic, 9 dative; all others state no order.
    pub kind: u64,
    /// The indices of its atoms.
    pub atoms: [u64; 2],
    /// Its own index, if it has one.
    pub index: Option<u64>,
}

/// Returns an atom of the given element and symbol.
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
        // RDKit implies no hydrogens on an atom of V2000 with such a query.
        bracket: notes.hydrogens > 0,
        radicals: radicals(notes.radical)?,
        ..Atom::default()
    })
}

/// Returns the mass number for a difference to the periodic table. RDKit counts from the most common isotope.
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

/// Returns the charge for a V2000 code: 1 is +3, 7 is -3. Code 4, a radical, is charge 0, as in RDKit.
pub(super) fn coded_charge(code: i32) -> i32 {
    if code == 0 { 0 } else { 4i32.saturating_sub(code) }
}

/// Refuses a table with too many bonds.
pub(super) fn at_most(bonds: usize) -> Result<usize, String> {
    if bonds > MAX_BONDS { Err(format!("{bonds} bonds; at most {MAX_BONDS} are read")) } else { Ok(bonds) }
}

/// Returns the charge, if an atom can have it.
pub(super) fn charge(charge: i32) -> Result<i32, String> {
    i8::try_from(charge).map(i32::from).map_err(|_| format!("a charge of {charge}"))
}

/// Returns the mass number, if an atom can have it.
pub(super) fn isotope(mass: i32) -> Result<u32, String> {
    u16::try_from(mass).map(u32::from).map_err(|_| format!("a mass number of {mass}"))
}

/// Returns the number of hydrogens, if an atom can have it.
pub(super) fn hydrogens(count: i32) -> Result<u32, String> {
    u8::try_from(count).map(u32::from).map_err(|_| format!("an atom with {count} hydrogens"))
}

/// Returns the number of unpaired electrons for a radical code: two for singlets and triplets, one for doublets.
pub(super) fn radicals(code: i32) -> Result<u32, String> {
    match code {
        0 => Ok(0),
        2 => Ok(1),
        1 | 3 => Ok(2),
        _ => Err(format!("a radical of kind {code}")),
    }
}

/// Returns the order of a bond type. Queries and unknown types have none.
fn order(kind: u64) -> Option<Order> {
    match kind {
        1 => Some(Order::Single),
        2 => Some(Order::Double),
        3 => Some(Order::Triple),
        4 => Some(Order::Aromatic),
        9 => Some(Order::Dative),
        _ => None,
    }
}

/// Returns why a bond of this type is refused.
fn no_order(kind: u64) -> String {
    let meaning = match kind {
        5 => " (single or double)",
        6 => " (single or aromatic)",
        7 => " (double or aromatic)",
        8 => " (any)",
        10 => " (a hydrogen bond)",
        _ => "",
    };
    format!("bond type {kind}{meaning} states no bond order; 1 to 3 do, 4 is aromatic, 9 dative")
}

/// Returns the contribution of a bond to the valence of one of its atoms, in halves (`Bond::getValenceContrib`).
fn half_valences(bond: &Bond, atom: usize) -> i32 {
    if bond.order == Order::Aromatic { 3 } else { 2 * bond.valence(atom).cast_signed() }
}
