//! The request for an audit, and the plan made from it.

use std::path::PathBuf;
use std::sync::Arc;

use super::coverage::MissingPolicy;
use super::ensemble::{EnsembleMeasures, MoleculeMeasures};
use super::geometry::COVERAGE_THRESHOLD_ANGSTROM;
use super::records::{Record, RowField};
use super::references::reference_reading;
use super::sample::TextSample;
use crate::corpus::{Conformers, ReadOptions, RowFilter, files_or_embedded};
use crate::energy::Energies;
use crate::parameter;
use drift_core::checkpoint::ModelFolder;
use drift_core::chem::{AtomLimit, Isotopes};
use drift_core::constraint::{USUAL_PLACEHOLDER, as_written};
use drift_core::encoding::{EncodingRequest, Precision, TrailingZeros};
use drift_core::{Encoding, Error, Result, Tokenizer};

/// The user's options for an audit.
#[derive(Default)]
pub struct AuditRequest {
    /// Files of generated text.
    pub files: Vec<PathBuf>,
    /// Which rows of tables and JSON Lines are judged.
    pub rows: RowFilter,
    /// The treatment of trailing zeros, if it is not to be determined from the texts.
    pub zeros: Option<TrailingZeros>,
    /// Decimals and separator, if they are not the default.
    pub blocks: EncodingRequest,
    /// The folder of the model that wrote the texts; its recipe may state the encoding.
    pub model: Option<PathBuf>,
    /// The tokenizer for counting drift.
    pub tokenizer: Option<Tokenizer>,
    /// The path of the tokenizer; its folder may contain a recipe too.
    pub tokenizer_path: Option<PathBuf>,
    /// The placeholder against which drift is counted, without brackets, with commas; zeros if it is not given.
    pub placeholder: Option<String>,
    /// Files and folders of reference conformers, for geometry, in the formats of `drift mine`, or the name of an embedded corpus; may
    /// be empty.
    pub references: Vec<PathBuf>,
    /// The thresholds of coverage, in Å; empty means 0.75.
    pub thresholds: Vec<f64>,
    /// The measures of all texts of a molecule together: Hit@K, which needs references, and clusters.
    pub ensembles: EnsembleMeasures,
    /// Whether texts that pass only by the rules of 3DMolGen are compared with references too, read by these rules.
    pub as_3dmolgen: bool,
    /// The treatment of molecules without a usable conformer.
    pub missing: MissingPolicy,
    /// Whether texts are compared under the SMILES that their records name for pooling, with the references of all its isomers.
    pub pool: bool,
    /// Whether all conformers of a text are judged, or only the first.
    pub all_conformers: bool,
    /// Whether the results for each text are kept.
    pub by_text: bool,
    /// The size limit for molecules that are compared. A text of a larger one counts as another molecule than its prompt.
    pub max_atoms: AtomLimit,
    /// Whether isotope labels tell molecules and their atoms apart.
    pub isotopes: Isotopes,
    /// The field of records that names the row of a text.
    pub row_field: RowField,
    /// The row with which all others are compared, pair by pair; `None` to compare none.
    pub against_row: Option<String>,
}

/// The inputs and settings of an audit.
pub struct AuditPlan {
    /// The user's options, with at least one threshold.
    pub request: AuditRequest,
    /// The encoding of the texts; if not given, it is determined from their rows, the recipe, the texts or the references.
    pub encoding: Option<Encoding>,
    /// The encoding that the model was trained on, if its recipe states it.
    pub recipe: Option<Encoding>,
    /// The decimals and separator for determining the encoding from texts.
    pub like: Encoding,
    /// The program that computes energies, if any.
    pub energy: Option<Arc<Energies>>,
}

impl AuditRequest {
    /// Returns what the results for a molecule contain.
    pub fn molecule_measures(&self) -> MoleculeMeasures<'_> {
        MoleculeMeasures { thresholds_angstrom: &self.thresholds, ensembles: &self.ensembles }
    }

    /// Makes the plan.
    ///
    /// # Errors
    /// If the model is not a folder, the placeholder is not the content of a block, or a measure of ensembles cannot be computed.
    pub fn plan(mut self) -> Result<AuditPlan> {
        if let Some(folder) = self.model.as_ref().filter(|folder| !folder.is_dir()) {
            let remedy = format!("give the folder of a model, or leave {} out", parameter::MODEL);
            return Err(Error::input(folder.display(), "is no folder", remedy));
        }
        let folders = [&self.model, &self.tokenizer_path];
        let said = |folder: &PathBuf| ModelFolder::new(folder).recipe("/recipe/dialect");
        let said = folders.into_iter().flatten().map(said).find_map(Result::transpose);
        let recipe: Option<Encoding> = said.transpose()?;
        // Trailing zeros are left to `encoding`, where the texts may decide.
        let asked = EncodingRequest { zeros: None, ..self.blocks };
        let like = asked.over(recipe.unwrap_or(Encoding::FIXED));
        self.ensembles = self.ensembles.checked()?;
        if !self.ensembles.hits.is_empty() && self.references.is_empty() {
            let remedy = format!("give {}", parameter::REFERENCES);
            return Err(Error::parameter(parameter::HITS, "need references to be close to", remedy));
        }
        if self.thresholds.is_empty() {
            self.thresholds.push(COVERAGE_THRESHOLD_ANGSTROM);
        }
        // Rows are paired text by text.
        self.by_text |= self.against_row.is_some();
        let plan = AuditPlan {
            encoding: asked.encoding.or(self.zeros.map(|zeros| like.with_zeros(zeros))),
            recipe: recipe.map(|recipe| asked.over(recipe)),
            like,
            energy: None,
            request: self,
        };
        // Refused before any file is read, unless only the files say how their texts are written.
        plan.placeholder(plan.asked().unwrap_or(like))?;
        Ok(plan)
    }
}

impl AuditPlan {
    /// Returns the encoding that the texts should have by the user's options or the recipe.
    pub(super) fn asked(&self) -> Option<Encoding> {
        self.encoding.or(self.recipe)
    }

    /// Returns the placeholder against which drift is counted, as it is written in texts of an encoding.
    ///
    /// # Errors
    /// If the user gave one that is not the content of a slot of the encoding.
    pub(super) fn placeholder(&self, encoding: Encoding) -> Result<String> {
        let Some(given) = &self.request.placeholder else {
            return Ok(as_written(USUAL_PLACEHOLDER, encoding));
        };
        let placeholder = as_written(given, encoding);
        // 3DMolGen's placeholders have four decimals, whatever the texts have.
        let holding = encoding.with_precision(encoding.precision().max(Precision::FOUR));
        holding.parse_numbers(placeholder.as_bytes(), false).map_err(|problem| {
            let remedy = "give three numbers, for example 0.0000,0.0000,0.0000";
            Error::parameter(parameter::PLACEHOLDER, problem, remedy)
        })?;
        Ok(placeholder)
    }

    /// Returns the references, as they are read.
    pub(super) fn references(&self) -> Box<dyn Conformers> {
        let options = ReadOptions { reading: reference_reading(self.like), ..ReadOptions::default() };
        files_or_embedded(&self.request.references, options)
    }

    /// Returns whether conformers are compared, with references or with each other.
    pub(super) fn keeps_conformers(&self) -> bool {
        let AuditRequest { by_text, references, ensembles, .. } = &self.request;
        *by_text || !references.is_empty() || !ensembles.is_empty()
    }

    /// Returns the text of a record, or one of its conformers, as a sample to judge.
    pub(super) fn sample<'r>(&self, record: &'r Record, text: &'r str, encoding: Encoding) -> TextSample<'r> {
        let AuditRequest { max_atoms, isotopes, .. } = self.request;
        let prompt = record.prompt.as_deref();
        TextSample { prompt, answer: text, ended: !record.is_cut, encoding, max_atoms, isotopes }
    }
}
