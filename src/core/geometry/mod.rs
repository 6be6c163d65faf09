//! What a molecule allows its geometry: distances, planes and handedness, as PoseBusters and RDKit's distance geometry have them.
//!
//! - [`Molecule`] has the bonds, rings and atoms that the rules need. [`DistanceLimits`] bounds the distances of its atoms, and
//!   [`planes`] lists the atoms that must lie in a plane. The judge of `data` compares whole conformers with these.
//! - [`GeometryRules`] makes rules for atoms that are placed one after another, and gives the [`Region`] of the next one: for
//!   its coordinates the [`Intervals`] that are left.

mod bounds;
mod elements;
mod intervals;
mod lengths;
mod limits;
mod matrix;
mod merge;
mod molecule;
mod outlook;
mod planar;
mod planes;
mod region;
mod rules;
mod senses;
mod slab;
#[cfg(test)]
mod tests;
mod torsions;

pub use intervals::Intervals;
pub use limits::{DistanceLimits, Limits};
pub use molecule::Molecule;
pub(crate) use outlook::Outlook;
pub use planes::{Plane, PlaneKind, planes};
pub use region::Region;
pub use rules::{GeometryConflict, GeometryRule, GeometryRules, GeometryStrength};
