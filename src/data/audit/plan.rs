//! The plan of an audit.

use std::path::PathBuf;

use super::coverage::Missing;
use crate::energy::Energies;
use drift_core::chem::AtomLimit;
use drift_core::encoding::Encoding;
use drift_core::tokenizer::Tokenizer;

/// The inputs and settings of an audit.
pub struct AuditPlan {
    /// Files of generated text.
    pub files: Vec<PathBuf>,
    /// The encoding of the texts; if not given, it is determined from the recipe, the texts or the references.
    pub encoding: Option<Encoding>,
    /// The encoding that the model was trained on, if its recipe states it.
    pub recipe: Option<Encoding>,
    /// The decimals and separator for determining the encoding from texts.
    pub like: Encoding,
    /// The tokenizer for counting drift.
    pub tokenizer: Option<Tokenizer>,
    /// The placeholder against which drift is counted, without brackets.
    pub placeholder: String,
    /// Files and folders of reference conformers, for geometry, in the formats of `drift mine`; may be empty.
    pub references: Vec<PathBuf>,
    /// The program that computes energies, if any.
    pub energy: Option<Energies>,
    /// The thresholds of coverage, in Å.
    pub thresholds: Vec<f64>,
    /// Whether texts that pass only by the rules of 3DMolGen are compared with references too, read by these rules.
    pub as_3dmolgen: bool,
    /// The treatment of molecules without a usable conformer.
    pub missing: Missing,
    /// Whether texts are compared under the SMILES that their records name for pooling, with the references of all its isomers.
    pub pool: bool,
    /// Whether all conformers of a text are judged, or only the first.
    pub all_conformers: bool,
    /// Whether the results for each text are kept.
    pub by_text: bool,
    /// The size limit for molecules that are compared. A text of a larger one counts as another molecule than its prompt.
    pub max_atoms: AtomLimit,
}

impl AuditPlan {
    /// Whether conformers are compared, with references or with each other.
    pub(super) fn keeps_conformers(&self) -> bool {
        self.by_text || !self.references.is_empty()
    }
}
