//! Writing a molecule that was checked.

use std::fmt::Write;

use super::elements::symbol;
use super::{Checked, Order};

impl Checked {
    /// A SMILES of the molecule without aromaticity, stereo and mass numbers, every atom in brackets with all its hydrogens. Not
    /// canonical, and not meant to be read: bonds are ring bonds, so that no nesting grows with the molecule.
    pub(in crate::text) fn spelled(&self) -> String {
        let atoms = &self.graph.atoms;
        let mut out = String::with_capacity(atoms.len() * 12);
        for (at, bonds) in self.graph.neighbours().iter().enumerate() {
            let atom = &atoms[at];
            if at > 0 {
                out.push('.');
            }
            let hydrogens = self.hydrogens[at];
            // Writing to a string cannot fail.
            let _ = write!(out, "[{}", symbol(atom.element));
            if hydrogens > 0 {
                let _ = write!(out, "H{hydrogens}");
            }
            if atom.charge != 0 {
                let _ = write!(out, "{:+}", atom.charge);
            }
            if atom.map > 0 {
                let _ = write!(out, ":{}", atom.map);
            }
            out.push(']');
            for bond in bonds {
                out.push_str(match self.graph.bonds[*bond].order {
                    Order::Single | Order::Dative => "",
                    Order::Double => "=",
                    Order::Triple => "#",
                    Order::Quadruple => "$",
                    Order::Aromatic => ":",
                    Order::Any => "~",
                });
                let _ = write!(out, "%({bond})");
            }
        }
        out
    }
}
