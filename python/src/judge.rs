//! The judge in memory: takes references once, then texts in batches, and returns NumPy arrays of the results.

use std::path::PathBuf;

use drift::Job;
use drift::audit::ensemble::EnsembleMeasures;
use drift::audit::{BatchScores, JudgePlan, Reward, RewardPart, ScoredConformer};
use drift::chem::{AtomLimit, MAX_HEAVY_ATOMS};
use drift::corpus::{Files, ReadOptions};
use drift::encoding::Reading;
use drift::error::Error;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::ensembles;
use crate::errors::raised;
use crate::options::{self, ReadingOptions, all_conformers, isotopes, thresholds};
use crate::work;

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct JudgeOptions {
    reading: ReadingOptions,
    thresholds: Vec<f64>,
    hits: Vec<f64>,
    at: Vec<u64>,
    clusters: Vec<f64>,
    within_texts: bool,
    duplicates: f64,
    conformers: String,
    reward: Vec<(String, f64)>,
    max_atoms: Option<usize>,
    isotopes: String,
}

impl JudgeOptions {
    fn plan(&self) -> drift::Result<JudgePlan> {
        let part = |(name, weight): &(String, f64)| -> drift::Result<(RewardPart, f64)> {
            let part = name.parse().map_err(|problem: String| Error::input("reward", problem, ""))?;
            Ok((part, *weight))
        };
        let usual = JudgePlan::default();
        let given = thresholds(self.thresholds.clone())?;
        Ok(JudgePlan {
            encoding: self.reading.reading()?.encoding,
            thresholds: if given.is_empty() { usual.thresholds } else { given },
            ensembles: EnsembleMeasures {
                hits: self.hits.clone(),
                draws: self.at.clone(),
                clusters: self.clusters.clone(),
            },
            within_texts: self.within_texts,
            duplicate_angstrom: self.duplicates,
            max_atoms: AtomLimit(self.max_atoms.unwrap_or(MAX_HEAVY_ATOMS)),
            isotopes: isotopes(&self.isotopes)?,
            all_conformers: all_conformers(&self.conformers)?,
            reward: Reward(self.reward.iter().map(part).collect::<drift::Result<_>>()?),
        })
    }
}

/// The references, and the settings of judging.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Judge {
    /// Locked while references are added; scoring only has to wait for that.
    judge: std::sync::RwLock<drift::Judge>,
    options: JudgeOptions,
}

#[pymethods]
impl Judge {
    #[new]
    fn new(options: JudgeOptions) -> PyResult<Self> {
        let judge = options.plan().and_then(drift::Judge::new).map_err(raised)?;
        Ok(Judge { judge: std::sync::RwLock::new(judge), options })
    }

    /// Adds references of a molecule, given as enriched text.
    fn add_texts(&self, py: Python<'_>, smiles: &str, texts: Vec<String>) -> PyResult<()> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        work::detached(py, || self.write().add_texts(smiles, &texts)).map_err(raised)
    }

    /// Adds references of a molecule, `[conformers, heavy atoms, 3]` in Å, with atoms in the order of `written`, or of `smiles`.
    fn add_conformers(
        &self,
        py: Python<'_>,
        smiles: &str,
        written: Option<&str>,
        conformers: PyReadonlyArray3<'_, f64>,
    ) -> PyResult<()> {
        if conformers.shape()[2] != 3 {
            let problem = format!("has shape {:?}, not [conformers, heavy atoms, 3]", conformers.shape());
            return Err(raised(Error::input(format!("references of {smiles}"), problem, "")));
        }
        let all = conformers.as_array();
        let conformers =
            all.outer_iter().map(|one| one.outer_iter().map(|p| [p[0], p[1], p[2]]).collect()).collect();
        work::detached(py, || self.write().add_conformers(smiles, written, conformers)).map_err(raised)
    }

    /// Adds the conformers of files and folders; only those of `wanted` molecules, if any are given.
    fn add_paths(
        &self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        wanted: Option<Vec<String>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        work::run(py, progress, |job| {
            let options = ReadOptions { reading: self.reading(), ..self.options.reading.options(job)? };
            let corpus = Files { inputs: paths, options };
            let wanted: Option<Vec<&str>> =
                wanted.as_ref().map(|wanted| wanted.iter().map(String::as_str).collect());
            Ok(self.write().add_corpus(&corpus, wanted.as_deref(), job)?.skipped)
        })
    }

    /// Returns the molecules with references: skeleton and number of conformers.
    fn references(&self) -> Vec<(String, usize)> {
        self.read()
            .references()
            .map(|(skeleton, all)| (drift::text::skeleton::smiles(skeleton), all.len()))
            .collect()
    }

    /// Returns the molecules that have references and are none of these.
    fn without_texts(&self, py: Python<'_>, smiles: Vec<String>) -> PyResult<Vec<String>> {
        let smiles: Vec<&str> = smiles.iter().map(String::as_str).collect();
        work::detached(py, || self.read().without_texts(&smiles)).map_err(raised)
    }

    /// Scores texts; returns arrays by name.
    fn score<'py>(
        &self,
        py: Python<'py>,
        smiles: Vec<String>,
        texts: Vec<String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let scores = work::run(py, None, |job: &Job| {
            let smiles: Vec<&str> = smiles.iter().map(String::as_str).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.read().score(&smiles, &texts, job)
        })?;
        let out = arrays(py, &scores, self.read().plan().thresholds.len())?;
        ensembles::put(&out, &scores, &self.read().plan().ensembles)?;
        Ok(out)
    }

    /// Hit@K over molecules, as JSON; `measured` is what `score` returned as `ensembles`.
    fn hit_report(
        &self,
        py: Python<'_>,
        smiles: Vec<String>,
        measured: &str,
        missing: &str,
    ) -> PyResult<String> {
        let missing = options::missing(missing).map_err(raised)?;
        work::detached(py, || ensembles::hit_report(&self.read(), &smiles, measured, missing)).map_err(raised)
    }

    /// Clusters over molecules, as JSON.
    fn cluster_report(&self, py: Python<'_>, smiles: Vec<String>, measured: &str) -> PyResult<String> {
        work::detached(py, || ensembles::cluster_report(&self.read(), &smiles, measured)).map_err(raised)
    }

    /// Returns the thresholds of coverage in Å, ascending.
    fn thresholds<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, &self.read().plan().thresholds)
    }
}

impl Judge {
    // If another thread panicked, the content of the lock is still complete.
    fn read(&self) -> std::sync::RwLockReadGuard<'_, drift::Judge> {
        self.judge.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, drift::Judge> {
        self.judge.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns how references are read. As in `audit`, references in files may be written in another way than the texts.
    fn reading(&self) -> Reading {
        drift::audit::reference_reading(self.read().plan().encoding)
    }
}

/// The name of an array, and the function that gives its value for a conformer.
type Column<T> = (&'static str, fn(&ScoredConformer) -> T);

/// Arrays with one value per conformer, and arrays with one value per molecule.
fn arrays<'py>(py: Python<'py>, scores: &BatchScores, thresholds: usize) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    let all = &scores.conformers;
    fn put<'py, T: Element>(
        out: &Bound<'py, PyDict>,
        name: &str,
        all: &[ScoredConformer],
        of: impl Fn(&ScoredConformer) -> T,
    ) -> PyResult<()> {
        out.set_item(name, PyArray1::from_vec(out.py(), all.iter().map(of).collect()))
    }
    let flags: [Column<bool>; 14] = [
        ("passed", |one| one.verdict.passed),
        ("passed_by_3dmolgen", |one| one.verdict.passed_by_3dmolgen),
        ("checked", |one| one.verdict.checked),
        ("valid", |one| one.verdict.valid),
        ("valid_geometry", |one| one.verdict.valid_geometry),
        ("clashing", |one| one.verdict.clashing),
        ("bad_bonds", |one| one.verdict.bad_bonds),
        ("bad_angles", |one| one.verdict.bad_angles),
        ("bent_aromatic_rings", |one| one.verdict.bent_aromatic_rings),
        ("flat_rings", |one| one.verdict.flat_rings),
        ("bent_double_bonds", |one| one.verdict.bent_double_bonds),
        ("fragmented", |one| one.verdict.fragmented),
        ("flat", |one| one.verdict.flat),
        ("planar", |one| one.verdict.planar),
    ];
    flags.iter().try_for_each(|(name, of)| put(&out, name, all, of))?;
    let counts: [Column<i64>; 12] = [
        ("text", |one| one.text as i64),
        ("place", |one| one.place as i64),
        ("conformers_in_text", |one| one.of_text as i64),
        ("group", |one| one.group as i64),
        ("stereocentres", |one| one.verdict.stereocentres as i64),
        ("stereocentres_right", |one| one.verdict.stereocentres_right as i64),
        ("double_bonds", |one| one.verdict.double_bonds as i64),
        ("double_bonds_right", |one| one.verdict.double_bonds_right as i64),
        ("stereo_unchecked", |one| one.verdict.stereo_unchecked as i64),
        ("clashes", |one| one.verdict.clashes as i64),
        ("references", |one| one.verdict.references as i64),
        ("duplicate_of", |one| one.duplicate_of.map_or(-1, |at| at as i64)),
    ];
    counts.iter().try_for_each(|(name, of)| put(&out, name, all, of))?;
    put(&out, "nearest_reference", all, |one| one.verdict.nearest_reference.map_or(-1, |at| at as i64))?;
    put(&out, "rmsd_to_nearest", all, |one| one.verdict.rmsd_angstrom.unwrap_or(f64::NAN))?;
    put(&out, "bond_error", all, |one| one.verdict.bond_error_angstrom.unwrap_or(f64::NAN))?;
    put(&out, "reward", all, |one| one.reward)?;
    let rmsd: Vec<f64> = all.iter().flat_map(|one| one.rmsd.iter().copied()).collect();
    out.set_item("rmsd_flat", PyArray1::from_vec(py, rmsd))?;
    out.set_item("rmsd_lengths", all.iter().map(|one| one.rmsd.len()).collect::<Vec<usize>>())?;
    out.set_item("why", PyList::new(py, all.iter().map(|one| &one.verdict.why))?)?;
    out.set_item("faults", PyList::new(py, all.iter().map(|one| &one.verdict.faults))?)?;
    out.set_item("warnings", &scores.warnings)?;
    groups(&out, scores, thresholds)?;
    Ok(out)
}

/// Arrays with one value per molecule of the batch, `[molecules]` or `[molecules, thresholds]`; NaN without references or
/// conformers.
fn groups(out: &Bound<'_, PyDict>, scores: &BatchScores, thresholds: usize) -> PyResult<()> {
    let py = out.py();
    let all = &scores.groups;
    out.set_item("group_smiles", PyList::new(py, all.iter().map(|one| &one.smiles))?)?;
    let counts: [(&str, Vec<i64>); 4] = [
        ("group_conformers", all.iter().map(|one| one.conformers as i64).collect()),
        ("group_usable", all.iter().map(|one| one.usable as i64).collect()),
        ("group_references", all.iter().map(|one| one.references as i64).collect()),
        ("rmsd_upper_bounds", all.iter().map(|one| one.rmsd_upper_bounds as i64).collect()),
    ];
    for (name, counts) in counts {
        out.set_item(name, PyArray1::from_vec(py, counts))?;
    }
    let at = |of: fn(&drift::audit::geometry::Coverage) -> Option<f64>| -> Vec<f64> {
        let all = all.iter().flat_map(|one| one.coverage.iter());
        all.map(|found| found.as_ref().and_then(of).unwrap_or(f64::NAN)).collect()
    };
    for (name, flat) in [
        ("coverage_recall", at(|found| Some(found.cov_recall))),
        ("coverage_precision", at(|found| found.cov_precision)),
    ] {
        out.set_item(name, PyArray1::from_vec(py, flat).reshape([all.len(), thresholds])?)?;
    }
    // Matching does not depend on the threshold.
    let first = |flat: Vec<f64>| flat.into_iter().step_by(thresholds.max(1)).collect::<Vec<f64>>();
    out.set_item("matching_recall", PyArray1::from_vec(py, first(at(|found| found.mat_recall_angstrom))))?;
    out.set_item(
        "matching_precision",
        PyArray1::from_vec(py, first(at(|found| found.mat_precision_angstrom))),
    )
}
