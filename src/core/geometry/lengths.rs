//! Ideal bond lengths in the universal force field, as used by RDKit's distance geometry.

use super::elements::{element, uff};
use super::molecule::{Kind, Molecule};
use crate::chem::Hybridisation;
use crate::chem::Order;
use crate::chem::elements::symbol;

/// The tolerance on either side of an ideal length, in Å.
pub(super) const TOLERANCE: f64 = 0.01;

/// The tolerance on either side of an ideal angle, in radians.
pub(super) const ANGLE_TOLERANCE: f64 = 0.035;

/// The additional tolerance for bonds of heavier atoms in conjugated five-membered rings, in Å.
const SQUEEZED: f64 = 0.2;

/// The factor of Pauling's correction for bond order.
const PAULING: f64 = 0.1332;

/// The ideal length of a bond and its bounds, in Å.
#[derive(Debug, Clone, Copy)]
pub(super) struct Length {
    pub ideal: f64,
    pub low: f64,
    pub high: f64,
}

/// Returns the lengths of all bonds.
pub(super) fn lengths(molecule: &Molecule) -> Vec<Length> {
    let bonds = 0..molecule.shape.aromatic.len();
    let is_squeezed = |bond: usize| {
        let heavy = molecule.ends(bond).iter().any(|atom| molecule.atom(*atom).element > 10);
        heavy && molecule.shape.conjugated[bond] && molecule.bond_ring_sizes[bond].contains(&5)
    };
    let parameters: Vec<Option<(f64, f64)>> =
        (0..molecule.len()).map(|atom| uff(&label(molecule, atom))).collect();
    bonds
        .map(|bond| {
            let [a, b] = molecule.ends(bond);
            match (parameters[a], parameters[b]) {
                (Some(a_known), Some(b_known)) if molecule.order(bond) > 0.0 => {
                    let ideal = rest_length(molecule.order(bond), a_known, b_known);
                    let either = TOLERANCE + if is_squeezed(bond) { SQUEEZED } else { 0.0 };
                    Length { ideal, low: ideal - either, high: ideal + either }
                }
                _ => rough(molecule, bond),
            }
        })
        .collect()
}

/// `rᵢ + rⱼ - λ (rᵢ + rⱼ) ln n - rᵢ rⱼ (√χᵢ - √χⱼ)² / (χᵢ rᵢ + χⱼ rⱼ)`: equations 2 to 4 of A. K. Rappé et al., J. Am. Chem. Soc. 114
/// (1992) 10024, the last with the sign of their later papers.
fn rest_length(order: f64, (r, x): (f64, f64), (s, y): (f64, f64)) -> f64 {
    let electronegativity = r * s * (x.sqrt() - y.sqrt()).powi(2) / (x * r + y * s);
    r + s - PAULING * (r + s) * order.ln() - electronegativity
}

/// Returns a length from covalent or van der Waals radii, for atoms without force field parameters.
fn rough(molecule: &Molecule, bond: usize) -> Length {
    let [a, b] = molecule.ends(bond).map(|atom| element(molecule.atom(atom).element));
    let order = molecule.shape.molecule.bonds[bond].order;
    let is_plain = molecule.kind(bond) != Kind::Other || matches!(order, Order::Triple | Order::Quadruple);
    if is_plain {
        let sum = a.covalent + b.covalent;
        let ideal = sum * (1.0 - PAULING * molecule.order(bond).ln());
        Length { ideal, low: 0.9 * ideal, high: 1.1 * ideal }
    } else {
        let ideal = f64::midpoint(a.van_der_waals, b.van_der_waals);
        Length { ideal, low: 0.75 * ideal, high: 1.5 * ideal }
    }
}

/// Returns the force field's name for an atom, built as in `AtomTyper.cpp` of RDKit. It may be a name that the force field does not have.
fn label(molecule: &Molecule, at: usize) -> String {
    let atom = molecule.atom(at);
    let mut label = symbol(atom.element).unwrap_or("*").to_owned();
    if label.len() == 1 {
        label.push('_');
    }
    // Alkali metals and halogens have no hybridisation.
    if !matches!(atom.element, 1 | 3 | 9 | 11 | 17 | 19 | 35 | 37 | 53 | 55 | 85 | 87) {
        label.push_str(match atom.element {
            12..=15 | 50..=52 | 81..=84 => "3",
            80 => "1",
            element => match molecule.hybridisation(at) {
                Hybridisation::Sp => "1",
                Hybridisation::Sp2 if matches!(element, 6 | 7 | 8 | 16) && is_resonant(molecule, at) => "R",
                Hybridisation::Sp2 => "2",
                Hybridisation::Sp3 => "3",
                Hybridisation::Sp3d => "5",
                Hybridisation::Sp3d2 => "6",
                Hybridisation::S | Hybridisation::Other => "",
            },
        });
    }
    label.push_str(charge(molecule, at));
    label
}

fn is_resonant(molecule: &Molecule, atom: usize) -> bool {
    let conjugated = |bond: &usize| molecule.shape.conjugated[*bond];
    molecule.is_aromatic(atom) || molecule.neighbours[atom].iter().any(conjugated)
}

/// Returns the oxidation state in the name of an atom.
fn charge(molecule: &Molecule, at: usize) -> &'static str {
    let graph = &molecule.shape.molecule;
    let bonds = molecule.neighbours[at].iter().map(|bond| graph.bonds[*bond].valence(at));
    let valence = bonds.sum::<u32>() + graph.hydrogens[at];
    match molecule.atom(at).element {
        29 | 47 => "+1",
        4 | 12 | 20 | 25 | 26 | 28 | 30 | 34 | 46 | 48 | 52 | 78 | 80 | 84 => "+2",
        21 | 24 | 27 | 31 | 33 | 49 | 51 | 57..=71 | 79 | 81..=83 | 89 | 96..=103 => "+3",
        2 | 18 | 22 | 36 | 54 | 90..=95 => "+4",
        23 | 41 | 43 | 73 => "+5",
        42 => "+6",
        15 if valence == 3 => "+3",
        15 => "+5",
        16 if molecule.hybridisation(at) == Hybridisation::Sp2 => "",
        16 if valence == 2 => "+2",
        16 if valence == 4 => "+4",
        16 => "+6",
        _ => "",
    }
}
