//! Options of the functions that return reports: Python dicts, validated and converted for drift's plans.

use std::path::PathBuf;
use std::sync::Arc;

use drift::audit::MissingPolicy;
use drift::checkpoint::{RequiredFiles, locate};
use drift::chem::Isotopes;
use drift::corpus::names::ColumnChoice;
use drift::corpus::{Frame, Names, OpenStereo, ReadOptions, RowFilter, SmilesSource};
use drift::design::{Base, BaseFiles};
use drift::encoding::{Encoding, EncodingRequest, Precision, Reading, TrailingZeros};
use drift::error::{Error, Result};
use drift::parameter;
use drift::run_files::RunFiles;
use drift::{Job, Tokenizer};
use pyo3::prelude::*;

/// Returns the value of one of a few words.
pub(crate) fn choice<T: Copy>(name: &str, given: &str, choices: &[(&str, T)]) -> Result<T> {
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == given) {
        return Ok(*value);
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    Err(Error::input(name, format!("`{given}` is none of its words"), format!("give {}", words.join(" or "))))
}

/// Returns an encoding by its name or file.
pub(crate) fn encoding_named(name: &str) -> Result<Encoding> {
    name.parse().map_err(|problem: String| Error::parameter(parameter::ENCODING, problem, ""))
}

/// `fixed`, `stripped`, or `auto`, for which the data decides.
pub(crate) fn zeros_or_auto(given: &str) -> Result<Option<TrailingZeros>> {
    let [fixed, stripped] = [TrailingZeros::Kept, TrailingZeros::Removed];
    choice("dialect", given, &[("fixed", Some(fixed)), ("stripped", Some(stripped)), ("auto", None)])
}

/// `fixed` or `stripped`.
pub(crate) fn zeros(given: &str) -> Result<TrailingZeros> {
    choice("dialect", given, &[("fixed", TrailingZeros::Kept), ("stripped", TrailingZeros::Removed)])
}

/// Returns the treatment of molecules without a usable conformer.
pub(crate) fn missing(word: &str) -> Result<MissingPolicy> {
    choice("missing", word, &MissingPolicy::ALL.map(|missing| (missing.name(), missing)))
}

/// Returns whether all conformers of a text are judged.
pub(crate) fn all_conformers(word: &str) -> Result<bool> {
    choice("conformers", word, &[("first", false), ("all", true)])
}

/// Returns whether isotope labels count.
pub(crate) fn isotopes(word: &str) -> Result<Isotopes> {
    choice("isotopes", word, &Isotopes::ALL.map(|isotopes| (isotopes.name(), isotopes)))
}

/// Returns the thresholds of coverage, ascending and without repetitions. An empty list stands for the default.
pub(crate) fn thresholds(mut given: Vec<f64>) -> Result<Vec<f64>> {
    if let Some(threshold) = given.iter().find(|threshold| !(threshold.is_finite() && **threshold > 0.0)) {
        return Err(Error::input("thresholds", format!("{threshold} is no threshold"), "give Å above 0"));
    }
    given.sort_by(f64::total_cmp);
    given.dedup();
    Ok(given)
}

/// The encoding of coordinates; None for the defaults.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct BlockOptions {
    encoding: Option<String>,
    decimals: Option<usize>,
    separator: Option<String>,
}

impl BlockOptions {
    fn precision(&self) -> Result<Option<Precision>> {
        let Some(decimals) = self.decimals else { return Ok(None) };
        let precision = Precision::new(decimals);
        let problem = format!("numbers have 0 to 6 decimals, not {decimals}");
        precision.map(Some).ok_or_else(|| Error::parameter(parameter::DECIMALS, problem, ""))
    }

    fn spaces(&self) -> Result<Option<bool>> {
        let words = [("comma", false), ("space", true)];
        self.separator.as_deref().map(|given| choice("separator", given, &words)).transpose()
    }

    fn encoding(&self) -> Result<Option<Encoding>> {
        let Some(name) = &self.encoding else { return Ok(None) };
        if self.decimals.is_some() || self.separator.is_some() {
            let problem = "decimals and separator are part of an encoding";
            return Err(Error::parameter(parameter::ENCODING, problem, "give one or the other"));
        }
        encoding_named(name).map(Some)
    }

    /// Returns the file of the encoding, if it is one.
    pub(crate) fn file(&self) -> Option<&str> {
        self.encoding.as_deref()
    }

    /// Returns how texts are read, and how coordinates without text are written.
    pub(crate) fn reading(&self) -> Result<Reading> {
        Ok(self.asked()?.reading(Encoding::FIXED))
    }

    /// Returns the requested encoding.
    pub(crate) fn asked(&self) -> Result<EncodingRequest> {
        Ok(EncodingRequest {
            encoding: self.encoding()?,
            zeros: None,
            precision: self.precision()?,
            spaces: self.spaces()?,
        })
    }
}

/// The options for the SMILES of molecules without text.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SmilesOptions {
    /// A file of SMILES by name.
    smiles_of: Option<PathBuf>,
    property: Option<String>,
    name_property: Option<String>,
    name_column: Option<String>,
    smiles_column: Option<String>,
    open_stereo: String,
}

impl SmilesOptions {
    fn source(&self, job: &Job) -> Result<SmilesSource> {
        let words = [("keep", OpenStereo::Keep), ("skip", OpenStereo::Skip)];
        let open_stereo = choice("open_stereo", &self.open_stereo, &words)?;
        let columns = ColumnChoice {
            name: self.name_column.as_deref().map(Into::into),
            smiles: self.smiles_column.as_deref().map(Into::into),
        };
        let names = self.smiles_of.as_deref().map(|path| Names::with_columns(path, &columns, job));
        Ok(SmilesSource {
            names: names.transpose()?.map(Arc::new),
            property: self.property.as_deref().map(Into::into),
            name_property: self.name_property.as_deref().map(Into::into),
            open_stereo,
            ..SmilesSource::default()
        })
    }
}

/// The options for reading conformers.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReadingOptions {
    smiles: SmilesOptions,
    rows: Vec<String>,
    frame: String,
    blocks: BlockOptions,
}

impl ReadingOptions {
    /// Returns how texts are read.
    pub(crate) fn reading(&self) -> Result<Reading> {
        self.blocks.reading()
    }

    /// Returns the files that these options name.
    pub(crate) fn files(&self) -> RunFiles {
        RunFiles::new().reads_all(&self.smiles.smiles_of).reads_all(self.blocks.file())
    }

    /// Returns the requested parts of an encoding.
    pub(crate) fn asked(&self) -> Result<EncodingRequest> {
        self.blocks.asked()
    }

    /// Returns the source of the SMILES of molecules without text.
    pub(crate) fn smiles(&self, job: &Job) -> Result<SmilesSource> {
        self.smiles.source(job)
    }

    /// Returns all options for reading.
    pub(crate) fn options(&self, job: &Job) -> Result<ReadOptions> {
        let words =
            [("keep", Frame::Keep), ("principal", Frame::Principal), ("first-atoms", Frame::FirstAtoms)];
        let frame = choice("frame", &self.frame, &words)?;
        let rows = picked(&self.rows)?;
        Ok(ReadOptions { frame, rows, ..ReadOptions::new(self.reading()?, self.smiles(job)?) })
    }
}

/// Returns the filter of conditions `column=value`.
pub(crate) fn picked(conditions: &[String]) -> Result<RowFilter> {
    RowFilter::new(conditions.iter().map(String::as_str))
}

/// A tokenizer: its name, the bytes of its JSON and its `tokenizer_config.json`; or its path.
#[derive(FromPyObject)]
pub(crate) enum TokenizerOption {
    Json((String, Vec<u8>, Option<String>)),
    Path(PathBuf),
}

impl TokenizerOption {
    /// Replaces the name of a repository by its path in the cache of Hugging Face.
    pub(crate) fn find(&mut self) -> Result<()> {
        if let TokenizerOption::Path(path) = self {
            *path = locate(path, RequiredFiles::Tokenizer)?;
        }
        Ok(())
    }

    /// Reads the tokenizer.
    pub(crate) fn load(&self, job: &Job) -> Result<Tokenizer> {
        match self {
            TokenizerOption::Path(path) => Ok(Tokenizer::load_for(path, job)?.0),
            TokenizerOption::Json((name, json, _)) => {
                Tokenizer::from_bytes(name, drift::io::hash_bytes(name, json), json)
            }
        }
    }

    /// Reads the tokenizer together with the files beside it.
    pub(crate) fn base(self, job: &Job) -> Result<Base> {
        let tokenizer = match &self {
            TokenizerOption::Path(path) => return Base::load(path, job),
            TokenizerOption::Json(_) => self.load(job)?,
        };
        let TokenizerOption::Json((name, json, config)) = self else { unreachable!("a path was loaded") };
        let beside = match config {
            None => BaseFiles::default(),
            Some(config) => {
                let config = serde_json::from_str(&config).map_err(|e| Error::input(name, e, ""))?;
                BaseFiles::configured(config)
            }
        };
        Ok(Base { tokenizer, json, beside })
    }

    /// Returns the path, if there is one.
    pub(crate) fn path(&self) -> Option<&PathBuf> {
        match self {
            TokenizerOption::Path(path) => Some(path),
            TokenizerOption::Json(_) => None,
        }
    }
}
