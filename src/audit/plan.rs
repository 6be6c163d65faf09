//! What is to be judged, and how.

use std::path::PathBuf;

use crate::chem::AtomLimit;
use crate::encoding::Encoding;
use crate::energy::Energies;
use crate::tokenizer::Tokenizer;

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
    /// The largest molecule that is compared; a text of a larger one is another molecule than its prompt.
    pub max_atoms: AtomLimit,
}
