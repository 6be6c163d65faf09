//! What is to be judged, and how.

use std::path::PathBuf;

use super::coverage::Missing;
use crate::energy::Energies;
use drift_core::chem::AtomLimit;
use drift_core::encoding::Encoding;
use drift_core::tokenizer::Tokenizer;

/// What to judge.
pub struct AuditPlan {
    /// Files of generated text.
    pub files: Vec<PathBuf>,
    /// How numbers should be written; told from the recipe, the texts or the references if not given.
    pub dialect: Option<Encoding>,
    /// The dialect that the model was trained on, where its recipe says so.
    pub recipe: Option<Encoding>,
    /// Decimals and separator where the dialect is told from texts.
    pub like: Encoding,
    /// For drift.
    pub tokenizer: Option<Tokenizer>,
    /// What drift is counted against, without brackets.
    pub placeholder: String,
    /// Reference conformers, for geometry: files and folders, as `drift mine` takes them; none without.
    pub references: Vec<PathBuf>,
    /// What computes energies; none if nothing does.
    pub energy: Option<Energies>,
    /// Of coverage, in Å.
    pub thresholds: Vec<f64>,
    /// Whether texts that pass by the rules of 3DMolGen alone are compared with references too, read by these rules.
    pub as_3dmolgen: bool,
    /// What becomes of molecules without a usable conformer.
    pub missing: Missing,
    /// Whether texts are compared under the SMILES that their records pool them under, with the references of all its isomers.
    pub pool: bool,
    /// Whether all conformers of a text are judged; else the first.
    pub all_conformers: bool,
    /// Whether what is found of each text is kept.
    pub by_text: bool,
    /// The largest molecule that is compared; a text of a larger one is another molecule than its prompt.
    pub max_atoms: AtomLimit,
}

impl AuditPlan {
    /// Whether conformers are compared, with references or with one another.
    pub(super) fn keeps_conformers(&self) -> bool {
        self.by_text || !self.references.is_empty()
    }
}
