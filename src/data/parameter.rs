//! The parameters that a user can set in the plans of this crate and of the crates below it, with the names that errors use.

use drift_core::error::Parameter;
pub use drift_core::parameter::*;

/// The row with which others are compared.
pub(crate) const AGAINST_ROW: Parameter = Parameter::new("against row");
/// The check of a corpus.
pub const CHECK: Parameter = Parameter::new("check");
/// The thresholds of clusters.
pub const CLUSTERS: Parameter = Parameter::new("clusters");
/// The conformers.
pub const CORPUS: Parameter = Parameter::new("corpus");
/// The number of decimals of coordinates.
pub const DECIMALS: Parameter = Parameter::new("decimals");
/// How decimals are written.
pub const DIALECT: Parameter = Parameter::new("dialect");
/// How coordinates are written.
pub const ENCODING: Parameter = Parameter::new("encoding");
/// What is left out of training text.
pub const DROP: Parameter = Parameter::new("drop");
/// The file of the rows that share nothing with the other corpus.
pub(crate) const DROP_SHARED: Parameter = Parameter::new("drop shared");
/// The program that computes energies.
pub(crate) const ENERGY: Parameter = Parameter::new("energy");
/// The number of conformers per run of the energy program.
pub(crate) const ENERGY_BATCH: Parameter = Parameter::new("energy batch");
/// The longest time that the energy program may be silent.
pub const ENERGY_TIMEOUT: Parameter = Parameter::new("energy timeout");
/// The numbers of texts among which one has to hit.
pub const DRAWS: Parameter = Parameter::new("at");
/// The thresholds of hits.
pub const HITS: Parameter = Parameter::new("hits");
/// The model.
pub const MODEL: Parameter = Parameter::new("model");
/// The column of a table that holds names.
pub(crate) const NAME_COLUMN: Parameter = Parameter::new("name column");
/// The data item that holds a molecule's name.
pub(crate) const NAME_PROPERTY: Parameter = Parameter::new("name property");
/// The number of tokens of a packed unit.
pub const PACK: Parameter = Parameter::new("pack");
/// The data item that holds a molecule's SMILES.
pub(crate) const PROPERTY: Parameter = Parameter::new("property");
/// The conformers to compare with.
pub const REFERENCES: Parameter = Parameter::new("references");
/// The field of records that names their row.
pub(crate) const ROW_FIELD: Parameter = Parameter::new("row field");
/// A file of SMILES.
pub const SMILES: Parameter = Parameter::new("smiles");
/// The column of a table that holds SMILES.
pub(crate) const SMILES_COLUMN: Parameter = Parameter::new("smiles column");
/// Named files of SMILES.
pub(crate) const SMILES_OF: Parameter = Parameter::new("smiles of");
/// The part of a corpus to use.
pub(crate) const SPLIT: Parameter = Parameter::new("split");
/// The values by which rows are picked.
pub const WHERE: Parameter = Parameter::new("where");
/// The largest deviation within which two geometries count as the same.
pub(crate) const WITHIN: Parameter = Parameter::new("within");
