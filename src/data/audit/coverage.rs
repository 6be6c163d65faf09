//! Coverage and matching over molecules, as reported in papers on conformer generators.
//!
//! O. Ganea et al., GeoMol, NeurIPS 2021; B. Jing et al., Torsional Diffusion, NeurIPS 2022; Y. Wang et al., Molecular Conformer
//! Fields, ICML 2024; M. Hassan et al., ET-Flow, NeurIPS 2024. All report the mean and the median over molecules. In their script
//! (`evaluate_confs.py`), a molecule without conformers counts as 0 in COV-R and COV-P and is left out of MAT-R and MAT-P.

use serde::{Deserialize, Serialize};

use super::geometry::{Conformation, Coverage, Topology};
use crate::stats::bootstrap::Mean;
use crate::stats::interval::Interval;

/// The seed of bootstrap intervals.
const SEED: u64 = 0;

/// The thresholds of the sweep, as multiples of [`SWEEP_STEP`]: from 0.05 to 3 Å.
const SWEEP: std::ops::RangeInclusive<u32> = 1..=60;

/// The step between two thresholds of the sweep, in hundredths of an Å.
const SWEEP_STEP: u32 = 5;

/// The comparison of one molecule's usable conformers with its references.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Deviations {
    /// The number of references.
    pub references: usize,
    /// By usable conformer, its mean bond-length error, in Å; `None` without bonds.
    pub bond_errors: Vec<Option<f64>>,
    /// RMSDs `[conformer][reference]`, in Å.
    pub rmsd: Vec<Vec<f64>>,
    /// By conformer, how many of its RMSDs are upper bounds, because the molecule has too much symmetry.
    pub upper_bounds: Vec<u64>,
}

impl Deviations {
    /// Coverage at a threshold in Å; `None` without references.
    pub fn coverage(&self, threshold_angstrom: f64) -> Option<Coverage> {
        if self.references == 0 {
            return None;
        }
        let least = |rmsds: &mut dyn Iterator<Item = f64>| rmsds.fold(f64::INFINITY, f64::min);
        let nearest_generated: Vec<f64> = (0..self.references)
            .map(|r| least(&mut self.rmsd.iter().filter_map(|row| row.get(r)).copied()))
            .collect();
        let nearest_reference: Vec<f64> =
            self.rmsd.iter().map(|row| least(&mut row.iter().copied())).collect();
        let share = |nearest: &[f64]| {
            nearest.iter().filter(|d| **d <= threshold_angstrom).count() as f64 / nearest.len() as f64
        };
        let mean = |nearest: &[f64]| nearest.iter().sum::<f64>() / nearest.len() as f64;
        let any = !self.rmsd.is_empty();
        Some(Coverage {
            cov_recall: share(&nearest_generated),
            mat_recall_angstrom: any.then(|| mean(&nearest_generated)),
            cov_precision: any.then(|| share(&nearest_reference)),
            mat_precision_angstrom: any.then(|| mean(&nearest_reference)),
        })
    }

    /// Returns the mean bond-length error of the conformers, in Å.
    pub(crate) fn bond_length_error(&self) -> Option<f64> {
        let known: Vec<f64> = self.bond_errors.iter().copied().flatten().collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }

    /// Returns the least RMSD of a conformer from any reference, in Å.
    pub fn nearest(&self, conformer: usize) -> Option<f64> {
        self.rmsd.get(conformer)?.iter().copied().min_by(f64::total_cmp)
    }

    /// Appends the results of further conformers of the same molecule.
    pub fn append(&mut self, other: Deviations) {
        self.bond_errors.extend(other.bond_errors);
        self.rmsd.extend(other.rmsd);
        self.upper_bounds.extend(other.upper_bounds);
    }

    /// Returns the results of a selection of conformers.
    #[must_use]
    pub fn of(&self, conformers: &[usize]) -> Self {
        Deviations {
            references: self.references,
            bond_errors: conformers.iter().map(|at| self.bond_errors[*at]).collect(),
            rmsd: conformers.iter().map(|at| self.rmsd[*at].clone()).collect(),
            upper_bounds: conformers.iter().map(|at| self.upper_bounds[*at]).collect(),
        }
    }
}

impl Topology {
    /// Compares conformers with references; `None` if the numbers of atoms differ.
    pub fn compare(&self, generated: &[Conformation], references: &[Conformation]) -> Option<Deviations> {
        let least = self.deviations(generated, references)?;
        let rmsd = least.iter().map(|row| row.iter().map(|least| least.rmsd).collect()).collect();
        let upper_bounds =
            least.iter().map(|row| row.iter().filter(|least| !least.is_exact).count() as u64).collect();
        let bond_errors = self.bond_length_errors(generated, references);
        Some(Deviations { references: references.len(), bond_errors, rmsd, upper_bounds })
    }
}

/// The treatment of molecules that have references but no usable conformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingPolicy {
    /// They count as 0 in COV-R and COV-P, as in the usual script.
    #[default]
    Zero,
    /// They are left out of all figures, as in 3DMolGen's `run_eval`.
    LeaveOut,
}

drift_core::named!(MissingPolicy { Zero: "zero", LeaveOut: "leave-out" });

impl MissingPolicy {
    /// Returns the molecules that are counted.
    pub fn counted<'d>(self, molecules: impl IntoIterator<Item = &'d Deviations>) -> Vec<&'d Deviations> {
        molecules.into_iter().filter(|one| self == MissingPolicy::Zero || !one.rmsd.is_empty()).collect()
    }
}

/// The mean and the median over molecules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanMedian {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 95 % interval of the mean, by bootstrap over molecules. Not computed for the sweep.
    #[serde(default)]
    pub interval: Option<Interval>,
}

impl MeanMedian {
    /// Returns the mean and median of values, one for each molecule; `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let mean = Mean::from_values(values, SEED)?;
        Some(MeanMedian { interval: mean.interval, ..MeanMedian::plain(values)? })
    }

    /// Returns the same without the interval.
    pub(super) fn plain(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        // The two middle values, which coincide if the number is odd.
        let upper = *sorted.get(sorted.len() / 2)?;
        let lower = sorted[(sorted.len() - 1) / 2];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(MeanMedian { mean, median: f64::midpoint(lower, upper), interval: None })
    }
}

/// Coverage at one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ThresholdCoverage {
    /// The threshold, in Å.
    pub angstrom: f64,
    /// COV-R. A molecule without a usable conformer counts as 0.
    pub cov_r: MeanMedian,
    /// COV-P. A molecule without a usable conformer counts as 0.
    pub cov_p: MeanMedian,
}

/// The figures that papers on conformer generators report.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CoverageReport {
    /// Coverage at the requested thresholds.
    #[serde(default)]
    pub thresholds: Vec<ThresholdCoverage>,
    /// MAT-R, in Å, over molecules with a usable conformer.
    #[serde(default)]
    pub mat_r: Option<MeanMedian>,
    /// MAT-P, in Å, over molecules with a usable conformer.
    #[serde(default)]
    pub mat_p: Option<MeanMedian>,
    /// Coverage at thresholds from 0.05 to 3 Å, without intervals.
    #[serde(default)]
    pub coverage_sweep: Vec<ThresholdCoverage>,
}

impl CoverageReport {
    /// Returns the report over molecules with references. A molecule may have no usable conformers.
    pub fn from_molecules(molecules: &[&Deviations], thresholds_angstrom: &[f64]) -> Self {
        let at = |angstrom: f64, summary: fn(&[f64]) -> Option<MeanMedian>| {
            let found: Vec<Coverage> = molecules.iter().filter_map(|one| one.coverage(angstrom)).collect();
            let recall: Vec<f64> = found.iter().map(|one| one.cov_recall).collect();
            // A molecule without conformers counts as 0, as in the usual script.
            let precision: Vec<f64> = found.iter().map(|one| one.cov_precision.unwrap_or(0.0)).collect();
            Some(ThresholdCoverage { angstrom, cov_r: summary(&recall)?, cov_p: summary(&precision)? })
        };
        let matching = |figure: fn(&Coverage) -> Option<f64>| {
            // Matching does not depend on the threshold.
            let found = molecules.iter().filter_map(|one| figure(&one.coverage(0.0)?));
            MeanMedian::from_values(&found.collect::<Vec<f64>>())
        };
        let sweep = SWEEP.map(|step| f64::from(step * SWEEP_STEP) / 100.0);
        CoverageReport {
            thresholds: thresholds_angstrom.iter().filter_map(|t| at(*t, MeanMedian::from_values)).collect(),
            mat_r: matching(|one| one.mat_recall_angstrom),
            mat_p: matching(|one| one.mat_precision_angstrom),
            coverage_sweep: sweep.filter_map(|t| at(t, MeanMedian::plain)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_both_ways() {
        let of = |references, rmsd: &[Vec<f64>]| {
            Deviations { references, rmsd: rmsd.to_vec(), ..Deviations::default() }.coverage(0.75)
        };
        let c = of(3, &[vec![0.5, 2.0, 0.9], vec![0.7, 1.0, 3.0]]).unwrap();
        assert_eq!((c.cov_recall, c.cov_precision), (1.0 / 3.0, Some(1.0)));
        assert!((c.mat_recall_angstrom.unwrap() - 0.8).abs() < 1e-12);
        assert!((c.mat_precision_angstrom.unwrap() - 0.6).abs() < 1e-12);
        let none = of(3, &[]).unwrap();
        assert_eq!((none.cov_recall, none.mat_recall_angstrom, none.cov_precision), (0.0, None, None));
        assert_eq!(of(0, &[]), None);
    }

    #[test]
    fn molecules_without_a_conformer_count_as_the_field_counts_them() {
        let one = Deviations {
            references: 2,
            bond_errors: vec![Some(0.1), Some(0.3)],
            rmsd: vec![vec![0.4, 1.0], vec![0.9, 2.0]],
            upper_bounds: vec![0, 1],
        };
        let none = Deviations { references: 3, ..Deviations::default() };
        let report = CoverageReport::from_molecules(&[&one, &none], &[0.5, 1.0]);
        // Recall of the first is 1/2 then 2/2, precision 1/2 then 2/2; the second counts 0 in both.
        let means: Vec<(f64, f64)> = report.thresholds.iter().map(|t| (t.cov_r.mean, t.cov_p.mean)).collect();
        assert_eq!(means, [(0.25, 0.25), (0.5, 0.5)]);
        // MAT: (0.4 + 1.0) / 2 and (0.4 + 0.9) / 2, of the first alone.
        assert!((report.mat_r.unwrap().mean - 0.7).abs() < 1e-12);
        assert!((report.mat_p.unwrap().median - 0.65).abs() < 1e-12);
        assert_eq!((report.coverage_sweep.len(), report.coverage_sweep[59].angstrom), (60, 3.0));
        assert_eq!(report.coverage_sweep[0].angstrom, 0.05);
        assert!((one.bond_length_error().unwrap() - 0.2).abs() < 1e-12);
        assert_eq!((one.of(&[1]).nearest(0), one.of(&[1]).upper_bounds), (Some(0.9), vec![1]));
        assert_eq!(CoverageReport::from_molecules(&[], &[0.75]).thresholds, []);
    }

    #[test]
    fn medians() {
        let median = |values: &[f64]| MeanMedian::from_values(values).map(|found| found.median);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((median(&[7.0]), median(&[])), (Some(7.0), None));
    }
}
