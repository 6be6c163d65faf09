//! What a user asks to have judged, and the plan that comes of it.

use std::path::PathBuf;

use super::coverage::Missing;
use super::geometry::COVERAGE_THRESHOLD_ANGSTROM;
use super::plan::AuditPlan;
use crate::parameter;
use drift_core::checkpoint::ModelFolder;
use drift_core::chem::AtomLimit;
use drift_core::constraint::as_written;
use drift_core::encoding::{AskedEncoding, Encoding, Precision, TrailingZeros};
use drift_core::error::{Error, Result};
use drift_core::tokenizer::Tokenizer;

/// What a user asks to have judged.
pub struct AuditRequest {
    /// Files of generated text.
    pub files: Vec<PathBuf>,
    /// How numbers should be written, where that is not to be told.
    pub zeros: Option<TrailingZeros>,
    /// Decimals and separator, where they are not the usual ones.
    pub blocks: AskedEncoding,
    /// The folder of the model that wrote the texts, whose recipe says the dialect.
    pub model: Option<PathBuf>,
    /// For drift.
    pub tokenizer: Option<Tokenizer>,
    /// Where the tokenizer lies, whose folder may hold a recipe too.
    pub tokenizer_path: Option<PathBuf>,
    /// What drift is counted against, without brackets, with commas.
    pub placeholder: String,
    /// Reference conformers.
    pub references: Vec<PathBuf>,
    /// Of coverage, in Å; 0.75 where there is none.
    pub thresholds: Vec<f64>,
    /// Whether texts that pass by the rules of 3DMolGen alone are compared with references too.
    pub as_3dmolgen: bool,
    /// What becomes of molecules without a usable conformer.
    pub missing: Missing,
    /// Whether texts are compared under the SMILES that their records pool them under.
    pub pool: bool,
    /// Whether all conformers of a text are judged; else the first.
    pub all_conformers: bool,
    /// Whether what is found of each text is kept.
    pub by_text: bool,
    /// The largest molecule that is compared.
    pub max_atoms: AtomLimit,
}

impl AuditRequest {
    /// The plan.
    ///
    /// # Errors
    /// If the model is no folder, or the placeholder is not the inside of a block.
    pub fn plan(self) -> Result<AuditPlan> {
        if let Some(folder) = self.model.as_ref().filter(|folder| !folder.is_dir()) {
            let remedy = format!("give the folder of a model, or leave {} out", parameter::MODEL);
            return Err(Error::input(folder.display(), "is no folder", remedy));
        }
        let folders = [&self.model, &self.tokenizer_path];
        let said = |folder: &PathBuf| ModelFolder::new(folder).recipe("/recipe/dialect");
        let recipe: Option<Encoding> = folders.into_iter().flatten().find_map(said);
        // Zeros are left to `dialect`, where texts may have the say.
        let asked = AskedEncoding { zeros: None, ..self.blocks };
        let like = asked.over(recipe.unwrap_or(Encoding::FIXED));
        let placeholder = as_written(&self.placeholder, like);
        // The users' placeholders have four decimals, whatever the texts have.
        let most = Encoding::decimal(TrailingZeros::Kept, like.precision().max(Precision::FOUR));
        let longest = most.with_spaces(like.separator() == " ");
        let held = if like.is_decimal() { longest } else { like };
        held.parse_numbers(placeholder.as_bytes(), false).map_err(|problem| {
            let remedy = "give three numbers, for example 0.0000,0.0000,0.0000";
            Error::parameter(parameter::PLACEHOLDER, problem, remedy)
        })?;
        Ok(AuditPlan {
            files: self.files,
            dialect: asked.encoding.or(self.zeros.map(|zeros| like.with_zeros(zeros))),
            recipe: recipe.map(|recipe| asked.over(recipe)),
            like,
            tokenizer: self.tokenizer,
            placeholder,
            references: self.references,
            energy: None,
            thresholds: match self.thresholds {
                none if none.is_empty() => vec![COVERAGE_THRESHOLD_ANGSTROM],
                given => given,
            },
            as_3dmolgen: self.as_3dmolgen,
            missing: self.missing,
            pool: self.pool,
            all_conformers: self.all_conformers,
            by_text: self.by_text,
            max_atoms: self.max_atoms,
        })
    }
}
