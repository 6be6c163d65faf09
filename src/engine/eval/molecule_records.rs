//! The results for each molecule: one line each of `--molecules`.

use std::fmt::Write;

use serde::Serialize;

use super::checkpoint::Checkpoint;
use super::judged::Judged;
use super::likelihood::MoleculeNats;
use super::measured::MeasuredMolecule;
use super::plan::EvalPlan;
use super::run::Run;
use super::subject::Subject;
use drift_core::constraint::ProcessorKind;
use drift_data::audit::geometry::Coverage;

/// The results for one molecule with one logit processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MoleculeRecord {
    /// The model's name.
    pub model: String,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// The placeholder of the logit processor.
    pub placeholder: Option<String>,
    /// The prompt's SMILES.
    pub smiles: String,
    /// The number of texts that were written.
    pub texts: usize,
    /// The number of these texts that pass.
    pub passed: usize,
    /// The number of these texts whose geometry is compared; 0 without references.
    pub compared: usize,
    /// The number of reference conformers.
    pub references: usize,
    /// The mean bond-length error of the texts, in Å.
    pub bond_length_error_angstrom: Option<f64>,
    /// The coverage at each threshold; empty without references.
    pub thresholds: Vec<MoleculeCoverage>,
    /// MAT-R, in Å; null if no text is compared.
    pub mat_r: Option<f64>,
    /// MAT-P, in Å; null if no text is compared.
    pub mat_p: Option<f64>,
    /// The negative log-likelihood of a reference conformer, in nats, if requested.
    pub nats: Option<f64>,
}

/// The coverage of one molecule at one threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MoleculeCoverage {
    /// The threshold, in Å.
    pub angstrom: f64,
    /// The share of references with a text within the threshold.
    pub cov_r: f64,
    /// The share of texts with a reference within the threshold; 0 if no text is compared.
    pub cov_p: f64,
}

/// The records of a run's molecules, in order.
pub(super) fn molecule_records(
    plan: &EvalPlan,
    checkpoint: &Checkpoint,
    subjects: &[Subject],
    (run, measured): (&Run, &[MeasuredMolecule]),
    nats: &MoleculeNats,
) -> Vec<MoleculeRecord> {
    let record = |texts: &[Judged]| {
        let group = texts[0].group;
        let (smiles, _, reference) = subjects[group].measured_as();
        let molecule = MeasuredMolecule::of_group(measured, group);
        let at = |angstrom: f64| molecule.and_then(|molecule| molecule.deviations.coverage(angstrom));
        let coverage = |angstrom: &f64| {
            let Coverage { cov_recall: cov_r, cov_precision, .. } = at(*angstrom)?;
            Some(MoleculeCoverage { angstrom: *angstrom, cov_r, cov_p: cov_precision.unwrap_or(0.0) })
        };
        let matching = at(0.0);
        MoleculeRecord {
            model: checkpoint.name.clone(),
            lp: run.processor,
            placeholder: run.placeholder.clone(),
            smiles: smiles.to_owned(),
            texts: texts.len(),
            passed: texts.iter().filter(|text| text.passed()).count(),
            compared: molecule.map_or(0, |molecule| molecule.texts.len()),
            references: reference.map_or(0, |reference| reference.conformers.len()),
            bond_length_error_angstrom: molecule.and_then(|one| one.deviations.bond_length_error()),
            thresholds: plan.thresholds.iter().filter_map(coverage).collect(),
            mat_r: matching.and_then(|one| one.mat_recall_angstrom),
            mat_p: matching.and_then(|one| one.mat_precision_angstrom),
            nats: nats_of(subjects, texts, nats),
        }
    };
    run.judged.chunk_by(|a, b| a.group == b.group).map(record).collect()
}

/// The mean nats over the conformers of a molecule, or of all isomers of a pool for which texts were written.
fn nats_of(subjects: &[Subject], texts: &[Judged], nats: &MoleculeNats) -> Option<f64> {
    let isomers = texts.chunk_by(|a, b| a.subject == b.subject).map(|texts| texts[0].subject);
    let known: Vec<(f64, f64)> = isomers
        .filter_map(|one| Some(((*nats.get(one)?)?, subjects[one].molecule.conformers.len() as f64)))
        .collect();
    match known.as_slice() {
        [] => None,
        // The mean itself, without rounding.
        [(only, _)] => Some(*only),
        all => {
            let conformers: f64 = all.iter().map(|(_, conformers)| conformers).sum();
            Some(all.iter().map(|(mean, conformers)| mean * conformers).sum::<f64>() / conformers)
        }
    }
}

/// The records as comma-separated values with a header (RFC 4180). Missing values are empty.
pub fn csv(records: &[MoleculeRecord], thresholds_angstrom: &[f64]) -> String {
    let mut out =
        "model,lp,placeholder,smiles,texts,passed,compared,references,bond_length_error_angstrom".to_owned();
    for threshold in thresholds_angstrom {
        // Writing to a string cannot fail.
        let _ = write!(out, ",cov_r_{threshold},cov_p_{threshold}");
    }
    out.push_str(",mat_r,mat_p,nats\n");
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for record in records {
        let mut cells = vec![
            quoted(&record.model),
            record.lp.to_string(),
            record.placeholder.as_deref().map_or_else(String::new, quoted),
            quoted(&record.smiles),
        ];
        let counts = [record.texts, record.passed, record.compared, record.references];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(number(record.bond_length_error_angstrom));
        for threshold in thresholds_angstrom {
            let known = record.thresholds.iter().find(|known| known.angstrom == *threshold);
            cells.extend([number(known.map(|known| known.cov_r)), number(known.map(|known| known.cov_p))]);
        }
        cells.extend([number(record.mat_r), number(record.mat_p), number(record.nats)]);
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

/// A cell, quoted if it contains a separator, quote or line break.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_by_commas() {
        let record = MoleculeRecord {
            model: "a \"small\", one".to_owned(),
            lp: ProcessorKind::Allowlist,
            placeholder: Some("0.0,0.0,0.0".to_owned()),
            smiles: "CCO".to_owned(),
            texts: 4,
            passed: 3,
            compared: 2,
            references: 2,
            bond_length_error_angstrom: Some(0.25),
            thresholds: vec![MoleculeCoverage { angstrom: 0.75, cov_r: 0.5, cov_p: 1.0 }],
            mat_r: Some(0.7),
            mat_p: None,
            nats: Some(600.5),
        };
        let text = csv(&[record], &[0.5, 0.75]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(",cov_r_0.5,cov_p_0.5,cov_r_0.75,cov_p_0.75,mat_r,mat_p,nats"));
        assert_eq!(
            lines[1],
            "\"a \"\"small\"\", one\",allowlist,\"0.0,0.0,0.0\",CCO,4,3,2,2,0.25,,,0.5,1,0.7,,600.5"
        );
        assert_eq!(lines.len(), 2);
    }
}
