//! What a molecule allows its geometry: distances, planes and handedness, as PoseBusters and RDKit's distance geometry have them.
//!
//! - [`Molecule`] has the bonds, rings and atoms that the rules need. [`DistanceLimits`] bounds the distances of its atoms, and
//!   [`planes`] lists the atoms that must lie in a plane. The judge of `data` compares whole conformers with these.

mod bounds;
mod elements;
mod lengths;
mod limits;
mod matrix;
mod merge;
mod molecule;
mod planar;
mod planes;
mod torsions;

pub use limits::{DistanceLimits, Limits};
pub use molecule::Molecule;
pub use planes::{Plane, PlaneKind, planes};
