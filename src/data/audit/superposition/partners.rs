//! What a search over symmetric atom orders carries along: the atoms that have their place.

use crate::audit::quaternion::Matrix;
use drift_core::chem::symmetry::Factor;
use drift_core::vector::add_product;

/// Notes which atom takes whose place, or ignores it where only the RMSD counts.
pub(super) trait Partners: Clone {
    /// Notes that the atom `atom` of one conformer lies on the atom `partner` of the other.
    fn set(&mut self, atom: usize, partner: u16);
}

/// No notes.
#[derive(Clone, Copy)]
pub(super) struct NoNotes;

impl Partners for NoNotes {
    fn set(&mut self, _: usize, _: u16) {}
}

/// By atom, its partner.
#[derive(Clone)]
pub(super) struct Order(pub Vec<u16>);

impl Partners for Order {
    fn set(&mut self, atom: usize, partner: u16) {
        self.0[atom] = partner;
    }
}

/// The atoms that have their place: the sum of their products, and their partners.
#[derive(Clone)]
pub(super) struct PlacedAtoms<P> {
    pub matrix: Matrix,
    pub partners: P,
}

impl<P: Partners> PlacedAtoms<P> {
    /// Places the settled atoms of a factor.
    pub(super) fn place(&mut self, factor: &Factor, images: &[u16], a: &[[f64; 3]], b: &[[f64; 3]]) {
        for at in &factor.settled {
            let at = usize::from(*at);
            add_product(&mut self.matrix, a[factor.atoms[at]], b[usize::from(images[at])]);
            self.partners.set(factor.atoms[at], images[at]);
        }
    }
}
