//! Charges, valences and implied hydrogens according to RDKit's sanitisation.

use super::graph::{Atom, BondsOfAtom, Graph, Order, SmilesProblem};
use super::valences::{is_metal, valences};

impl Graph {
    /// Sanitises the graph: separates charges, makes bonds to metals dative, counts hydrogens and finds a Kekulé structure.
    /// `neighbours` lists the bonds of each atom. Returns by atom its hydrogens that are not atoms themselves, and by bond whether
    /// it lies in a ring; the second list is empty if nothing is aromatic.
    ///
    /// # Errors
    /// [`SmilesProblem::Valence`], [`SmilesProblem::Kekule`] or [`SmilesProblem::NotInRing`].
    pub(super) fn sanitise(
        &mut self,
        neighbours: &[BondsOfAtom],
    ) -> Result<(Vec<u32>, Vec<bool>), SmilesProblem> {
        self.set_radicals(neighbours)?;
        // Charges come before valences: the valence of N in `N(=O)=O` is too high until its charges are separated.
        self.set_charges_apart(neighbours);
        self.make_dative(neighbours);
        let mut hydrogens = (0..self.atoms.len())
            .map(|atom| self.hydrogens(atom, &neighbours[atom]).ok_or(SmilesProblem::Valence(atom)))
            .collect::<Result<Vec<u32>, SmilesProblem>>()?;
        let in_ring = self.kekulize(neighbours, &mut hydrogens)?;
        Ok((hydrogens, in_ring))
    }

    /// Unpaired electrons that a file lists take the places of implied hydrogens. Like those they count for the valence, as in RDKit.
    ///
    /// # Errors
    /// [`SmilesProblem::Valence`] if an atom has no place for them.
    fn set_radicals(&mut self, neighbours: &[BondsOfAtom]) -> Result<(), SmilesProblem> {
        for (at, bonds) in neighbours.iter().enumerate() {
            let atom = self.atoms[at];
            if atom.radicals > 0 && !atom.bracket {
                self.atoms[at].hydrogens += atom.radicals;
                let all = self.hydrogens(at, bonds).ok_or(SmilesProblem::Valence(at))?;
                self.atoms[at] = Atom { hydrogens: all - atom.radicals, bracket: true, ..atom };
            }
        }
        Ok(())
    }

    /// Twice the sum of an atom's bond orders; an aromatic bond counts as one and a half.
    fn twice_order(&self, atom: usize, bonds: &[usize]) -> i32 {
        let bonds = bonds.iter().map(|bond| match &self.bonds[*bond] {
            bond if bond.order == Order::Aromatic => 3,
            bond => 2 * bond.valence(atom) as i32,
        });
        bonds.sum()
    }

    /// Returns whether an atom or one of its bonds is marked as aromatic.
    pub(super) fn is_aromatic(&self, atom: usize, bonds: &[usize]) -> bool {
        self.atoms[atom].aromatic || bonds.iter().any(|bond| self.bonds[*bond].order == Order::Aromatic)
    }

    /// Returns the valence from bonds and written hydrogens, without implied ones.
    pub(super) fn explicit_valence(&self, atom: usize, bonds: &[usize]) -> i32 {
        let written = self.atoms[atom].hydrogens as i32;
        let mut twice = self.twice_order(atom, bonds) + 2 * written;
        let allowed = valences(isoelectronic(&self.atoms[atom]));
        if allowed[0] >= 0 && twice > 2 * allowed[0] && self.is_aromatic(atom, bonds) {
            // Atoms such as the nitrogen of c1cccn1C: some of their aromatic bonds will become single.
            let fitting =
                allowed.iter().take_while(|valence| **valence >= 0 && 2 * **valence <= twice).last();
            let fitting = 2 * fitting.unwrap_or(&allowed[0]);
            if twice - fitting <= 3 {
                twice = fitting;
            }
        }
        // A half is rounded up.
        (twice + 1) / 2
    }

    /// Returns the hydrogens of an atom, written and implied; `None` if its valence is too high.
    pub(crate) fn hydrogens(&self, at: usize, bonds: &[usize]) -> Option<u32> {
        let atom = &self.atoms[at];
        let explicit = self.explicit_valence(at, bonds);
        let (allowed, used) = allowed(atom, explicit);
        if is_too_high(atom, explicit) {
            return None;
        }
        if atom.bracket || atom.element == 0 {
            return Some(atom.hydrogens);
        }
        let default = valences(isoelectronic(atom))[0];
        // Elements without a listed valence imply no hydrogens.
        let implied = if default < 0 {
            0
        } else if self.is_aromatic(at, bonds) {
            if used > default && !allowed.contains(&used) {
                return None;
            }
            (default - used).max(0)
        } else {
            allowed
                .iter()
                .filter(|valence| **valence >= 0)
                .find(|valence| used <= **valence)
                .map_or(0, |v| v - used)
        };
        Some(atom.hydrogens + implied as u32)
    }

    /// Returns whether an atom without aromatic bonds exceeds the valence of its element, with all its hydrogens.
    pub(super) fn exceeds(&self, at: usize, bonds: &[usize], hydrogens: u32) -> bool {
        is_too_high(&self.atoms[at], (self.twice_order(at, bonds) + 1) / 2 + hydrogens as i32)
    }

    /// Turns `N(=O)=O` into `[N+](=O)[O-]`, and similarly: nitrogen of valence 5, halogens bonded only to oxygen, and phosphorus
    /// with one double bond to oxygen and one to carbon or nitrogen.
    fn set_charges_apart(&mut self, neighbours: &[BondsOfAtom]) {
        let nitrogens = (0..self.atoms.len())
            .filter(|at| self.atoms[*at].element == 7 && self.atoms[*at].charge == 0)
            .filter(|at| self.explicit_valence(*at, &neighbours[*at]) == 5);
        let nitrogens: Vec<usize> = nitrogens.collect();
        for (order, lower, element) in [(Order::Double, Order::Single, 8), (Order::Triple, Order::Double, 7)]
        {
            for &at in &nitrogens {
                self.charge_once(at, &neighbours[at], order, lower, element);
            }
        }
        for at in 0..self.atoms.len() {
            match self.atoms[at].element {
                15 => self.charge_phosphorus(at, neighbours),
                17 | 35 | 53 => self.charge_halogen(at, &neighbours[at]),
                _ => {}
            }
        }
    }

    /// Lowers the order of the first matching bond to an uncharged neighbour of the given element, and charges both ends.
    fn charge_once(&mut self, at: usize, bonds: &[usize], order: Order, lower: Order, element: u8) {
        let found = bonds.iter().copied().find(|bond| {
            let other = &self.atoms[self.bonds[*bond].other(at)];
            self.bonds[*bond].order == order && (other.element, other.charge) == (element, 0)
        });
        if let Some(bond) = found {
            let other = self.bonds[bond].other(at);
            self.bonds[bond].order = lower;
            self.atoms[at].charge = 1;
            self.atoms[other].charge = -1;
        }
    }

    fn charge_phosphorus(&mut self, at: usize, neighbours: &[BondsOfAtom]) {
        let bonds = &neighbours[at];
        if self.atoms[at].charge != 0 || bonds.len() != 3 || self.explicit_valence(at, bonds) != 5 {
            return;
        }
        let to_carbon = bonds.iter().any(|bond| {
            let other = self.bonds[*bond].other(at);
            let is_other = matches!(self.atoms[other].element, 6 | 7) && neighbours[other].len() >= 2;
            is_other && self.bonds[*bond].order == Order::Double
        });
        if to_carbon {
            self.charge_once(at, bonds, Order::Double, Order::Single, 8);
        }
    }

    fn charge_halogen(&mut self, at: usize, bonds: &[usize]) {
        let oxygens = bonds.iter().all(|bond| self.atoms[self.bonds[*bond].other(at)].element == 8);
        if self.atoms[at].charge != 0 || !oxygens || !matches!(self.explicit_valence(at, bonds), 3 | 5 | 7) {
            return;
        }
        for bond in bonds {
            if self.bonds[*bond].order == Order::Double {
                let other = self.bonds[*bond].other(at);
                self.bonds[*bond].order = Order::Single;
                self.atoms[other].charge = -1;
                self.atoms[at].charge += 1;
            }
        }
    }

    /// Turns a single bond to a metal into a dative one if the other atom exceeds its valence.
    pub(super) fn make_dative(&mut self, neighbours: &[BondsOfAtom]) {
        for (at, bonds) in neighbours.iter().enumerate() {
            // RDKit makes no dative bonds from H, He, F and Ne.
            if matches!(self.atoms[at].element, 1 | 2 | 9 | 10) || !self.is_hypervalent(at, bonds) {
                continue;
            }
            let metal = bonds.iter().copied().find(|bond| {
                let bond = &self.bonds[*bond];
                bond.order == Order::Single && is_metal(self.atoms[bond.other(at)].element)
            });
            if let Some(bond) = metal {
                let metal = self.bonds[bond].other(at);
                self.bonds[bond].atoms = [at, metal];
                self.bonds[bond].order = Order::Dative;
            }
        }
    }

    /// Returns whether an atom is bonded to a metal.
    pub(crate) fn has_metal(&self, at: usize, neighbours: &[BondsOfAtom]) -> bool {
        neighbours[at].iter().any(|bond| is_metal(self.atoms[self.bonds[*bond].other(at)].element))
    }

    fn is_hypervalent(&self, at: usize, bonds: &[usize]) -> bool {
        let atom = &self.atoms[at];
        if is_metal(atom.element) {
            return false;
        }
        let explicit = self.explicit_valence(at, bonds);
        // RDKit includes implied hydrogens in the degree of 4 of a cyclopentadienyl atom.
        let implied = if atom.bracket { 0 } else { self.hydrogens(at, bonds).unwrap_or(0) as usize };
        let degree = bonds.len() + atom.hydrogens as usize + implied;
        match valences(isoelectronic(atom)).last() {
            Some(&most) if most > 0 => explicit > most || explicit == most && atom.aromatic && degree == 4,
            _ => false,
        }
    }
}

/// Returns the valences of an atom, and what a valence counts as among them.
fn allowed(atom: &Atom, valence: i32) -> (&'static [i32], i32) {
    match is_hypervalent_anion(atom) {
        true => (valences(atom.element), valence - atom.charge),
        false => (valences(isoelectronic(atom)), valence),
    }
}

/// Returns whether a valence is higher than the atom allows.
fn is_too_high(atom: &Atom, valence: i32) -> bool {
    let own = valences(atom.element);
    let (allowed, used) = allowed(atom, valence);
    // Valence lists are never empty.
    let highest = |list: &[i32]| list.last().copied().unwrap_or(-1);
    // RDKit accepts a hydride with two bonds.
    let most = if (atom.element, atom.charge) == (1, -1) { 2 } else { highest(allowed) };
    most >= 0 && highest(own) >= 0 && used > most
}

/// Returns the element with the same number of electrons. An ion has its valences: N+ bonds like carbon. Elements without a listed
/// valence are returned unchanged.
fn isoelectronic(atom: &Atom) -> u8 {
    if valences(atom.element) == [-1] {
        return atom.element;
    }
    (i32::from(atom.element) - atom.charge).clamp(0, 118) as u8
}

/// Returns whether an atom is an anion of P, S, As or Se that may have more bonds than the isoelectronic element, which takes one or
/// none.
fn is_hypervalent_anion(atom: &Atom) -> bool {
    let like = isoelectronic(atom);
    like > 16 && matches!(atom.element, 15 | 16) || like > 34 && matches!(atom.element, 33 | 34)
}
