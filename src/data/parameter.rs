//! What a user can set in the plans of this crate and of those below it, as their errors name it.

use drift_core::error::Parameter;
pub use drift_core::parameter::*;

/// The conformers.
pub const CORPUS: Parameter = Parameter::new("corpus");
/// Decimals of coordinates.
pub const DECIMALS: Parameter = Parameter::new("decimals");
/// How decimals are written.
pub const DIALECT: Parameter = Parameter::new("dialect");
/// How coordinates are written.
pub const ENCODING: Parameter = Parameter::new("encoding");
/// The program that computes energies.
pub const ENERGY: Parameter = Parameter::new("energy");
/// Conformers that it is given at a time.
pub const ENERGY_BATCH: Parameter = Parameter::new("energy batch");
/// How long it may be silent.
pub const ENERGY_TIMEOUT: Parameter = Parameter::new("energy timeout");
/// The model.
pub const MODEL: Parameter = Parameter::new("model");
/// Conformers to compare with.
pub const REFERENCES: Parameter = Parameter::new("references");
/// The deviation of one geometry.
pub const WITHIN: Parameter = Parameter::new("within");
