//! The results for each molecule: one line each of `--molecules`.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use serde::Serialize;

use super::by_text::{AuditedTexts, PlacedText};
use super::coverage::Deviations;
use super::ensemble::{
    BestOf, EnsembleMeasures, ExpectedHits, MoleculeEnsemble, MoleculeHits, MoleculeMeasures,
    ThresholdOccupancy,
};
use super::geometry::Coverage;
use super::row_label::RowLabel;

/// The results for one molecule with one logit processor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MoleculeRecord {
    /// The model's name, if it is known.
    pub model: Option<String>,
    /// The logit processor, if it is known.
    pub lp: Option<String>,
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
    /// Hit@K, by number of texts K; empty without references, or if it is not requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<BestOf>,
    /// The clusters at each threshold; empty without conformers, or if they are not requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ThresholdOccupancy>,
    /// The mean angular deviation of torsions, in degrees, if clusters are requested; `None` without torsions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torsion_spread_degrees: Option<f64>,
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

/// The likelihood of a prompt's reference conformers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromptNats {
    /// The mean negative log-likelihood of a conformer, in nats.
    pub mean: f64,
    /// The number of conformers.
    pub conformers: usize,
}

/// The texts of one molecule in one row of a file.
struct MoleculeTexts<'a> {
    first: PlacedText<'a>,
    texts: usize,
    passed: usize,
    /// The distinct SMILES of the prompts: several if isomers are pooled.
    prompts: Vec<&'a str>,
}

impl AuditedTexts {
    /// Returns the results for each molecule of each row, in the order of files and texts. `nats` has the likelihoods of references by
    /// the SMILES of the prompt, if they are known.
    pub fn molecules(
        &self,
        measures: MoleculeMeasures<'_>,
        nats: &BTreeMap<String, PromptNats>,
    ) -> Vec<MoleculeRecord> {
        let mut places: HashMap<(usize, &str), usize> = HashMap::new();
        let mut molecules: Vec<MoleculeTexts<'_>> = Vec::new();
        for one in self.placed() {
            let text = one.text;
            let (Some(smiles), Some(compared)) = (&text.smiles, &text.compared) else { continue };
            let passed = usize::from(text.verdict.passed);
            let next = molecules.len();
            let at = *places.entry((one.group, &compared.under)).or_insert(next);
            if at == next {
                molecules.push(MoleculeTexts { first: one, texts: 0, passed: 0, prompts: Vec::new() });
            }
            let molecule = &mut molecules[at];
            molecule.texts += 1;
            molecule.passed += passed;
            if !molecule.prompts.contains(&&**smiles) {
                molecule.prompts.push(smiles);
            }
        }
        // The molecules of a row follow one another, and rows are in the order of their first texts.
        let mut rows: HashMap<usize, usize> = HashMap::new();
        for molecule in &molecules {
            let next = rows.len();
            rows.entry(molecule.first.group).or_insert(next);
        }
        molecules.sort_by_key(|molecule| rows.get(&molecule.first.group).copied());
        molecules.iter().map(|molecule| self.molecule(molecule, measures, nats)).collect()
    }

    fn molecule(
        &self,
        molecule: &MoleculeTexts<'_>,
        measures: MoleculeMeasures<'_>,
        nats: &BTreeMap<String, PromptNats>,
    ) -> MoleculeRecord {
        let text = molecule.first.text;
        let deviations = self.deviations(&molecule.first);
        let matching = deviations.and_then(|deviations| deviations.coverage(0.0));
        let thresholds = measures.thresholds_angstrom.iter().filter_map(|angstrom| {
            let Coverage { cov_recall, cov_precision, .. } = deviations?.coverage(*angstrom)?;
            Some(MoleculeCoverage {
                angstrom: *angstrom,
                cov_r: cov_recall,
                cov_p: cov_precision.unwrap_or(0.0),
            })
        });
        let texts = molecule.texts as u64;
        let hits = deviations.and_then(|one| MoleculeHits::new(measures.ensembles, texts, one));
        let clusters = self.conformers(&molecule.first).and_then(|(skeleton, conformers, isotopes)| {
            MoleculeEnsemble { skeleton, conformers, texts, isotopes }.clusters(&measures.ensembles.clusters)
        });
        let RowLabel { model, lp, placeholder } = self.row(&molecule.first);
        MoleculeRecord {
            model,
            lp,
            placeholder,
            smiles: text.pool.as_ref().or(text.smiles.as_ref()).cloned().unwrap_or_default(),
            texts: molecule.texts,
            passed: molecule.passed,
            compared: deviations.map_or(0, |deviations| deviations.rmsd.len()),
            references: deviations.map_or(0, |deviations| deviations.references),
            bond_length_error_angstrom: deviations.and_then(Deviations::bond_length_error),
            thresholds: thresholds.collect(),
            mat_r: matching.and_then(|one| one.mat_recall_angstrom),
            mat_p: matching.and_then(|one| one.mat_precision_angstrom),
            nats: mean_nats(&molecule.prompts, nats),
            hits: hits
                .filter(|_| !measures.ensembles.hits.is_empty())
                .map_or_else(Vec::new, |hits| hits.best_of),
            torsion_spread_degrees: clusters.as_ref().and_then(|one| one.clusters.torsion_spread_degrees),
            clusters: clusters.map_or_else(Vec::new, |one| one.clusters.thresholds),
        }
    }
}

/// Returns the mean nats over the conformers of a molecule, or of all isomers of a pool for which texts were written.
fn mean_nats(prompts: &[&str], nats: &BTreeMap<String, PromptNats>) -> Option<f64> {
    let known: Vec<&PromptNats> = prompts.iter().filter_map(|smiles| nats.get(*smiles)).collect();
    match known.as_slice() {
        [] => None,
        // The mean itself, without rounding.
        [only] => Some(only.mean),
        all => {
            let conformers: f64 = all.iter().map(|one| one.conformers as f64).sum();
            Some(all.iter().map(|one| one.mean * one.conformers as f64).sum::<f64>() / conformers)
        }
    }
}

/// Returns the records as comma-separated values with a header (RFC 4180). Missing values are empty.
pub fn molecules_csv(records: &[MoleculeRecord], measures: MoleculeMeasures<'_>) -> String {
    let mut out = header(measures);
    for record in records {
        let names = [&record.model, &record.lp, &record.placeholder];
        let mut cells: Vec<String> =
            names.map(|name| name.as_deref().map_or_else(String::new, quoted)).into();
        cells.push(quoted(&record.smiles));
        let counts = [record.texts, record.passed, record.compared, record.references];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(number(record.bond_length_error_angstrom));
        for threshold in measures.thresholds_angstrom {
            let known = record.thresholds.iter().find(|known| known.angstrom == *threshold);
            cells.extend([number(known.map(|known| known.cov_r)), number(known.map(|known| known.cov_p))]);
        }
        cells.extend([number(record.mat_r), number(record.mat_p), number(record.nats)]);
        record.put_ensemble(measures.ensembles, &mut cells);
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

/// Returns the names of the columns, and a line break.
fn header(measures: MoleculeMeasures<'_>) -> String {
    let mut out =
        "model,lp,placeholder,smiles,texts,passed,compared,references,bond_length_error_angstrom".to_owned();
    // Writing to a string cannot fail.
    for threshold in measures.thresholds_angstrom {
        let _ = write!(out, ",cov_r_{threshold},cov_p_{threshold}");
    }
    out.push_str(",mat_r,mat_p,nats");
    let EnsembleMeasures { hits, draws, clusters } = measures.ensembles;
    for k in draws.iter().filter(|_| !hits.is_empty()) {
        let _ = write!(out, ",rmsd_best_of_{k}");
        hits.iter().for_each(|threshold| _ = write!(out, ",hit_at_{k}_{threshold}"));
    }
    for threshold in clusters {
        let _ = write!(
            out,
            ",clusters_{threshold},entropy_{threshold},largest_{threshold},singletons_{threshold}"
        );
    }
    out + if clusters.is_empty() { "\n" } else { ",torsion_spread_degrees\n" }
}

impl MoleculeRecord {
    /// Appends the cells of Hit@K and of clusters.
    fn put_ensemble(&self, measures: &EnsembleMeasures, cells: &mut Vec<String>) {
        let EnsembleMeasures { hits, draws, clusters } = measures;
        for k in draws.iter().filter(|_| !hits.is_empty()) {
            let best = self.hits.iter().find(|best| best.k == *k);
            cells.push(number(best.and_then(|best| best.rmsd_angstrom)));
            let expected: &[ExpectedHits] = best.map_or(&[], |best| &best.thresholds);
            for threshold in hits {
                let at = expected.iter().find(|expected| expected.angstrom == *threshold);
                cells.push(number(at.map(|at| at.hit)));
            }
        }
        for threshold in clusters {
            let at = self.clusters.iter().find(|known| known.angstrom == *threshold);
            cells.extend([
                number(at.map(|at| at.clusters)),
                number(at.map(|at| at.entropy_nats)),
                number(at.map(|at| at.largest)),
                number(at.map(|at| at.singletons)),
            ]);
        }
        if !clusters.is_empty() {
            cells.push(number(self.torsion_spread_degrees));
        }
    }
}

/// Returns a cell with a number; empty without one.
fn number(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns a cell, quoted if it contains a separator, quote or line break.
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
            model: Some("a \"small\", one".to_owned()),
            lp: Some("allowlist".to_owned()),
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
            hits: vec![BestOf {
                k: 5,
                rmsd_angstrom: Some(0.4),
                thresholds: vec![ExpectedHits {
                    angstrom: 0.5,
                    hit: 0.75,
                    references_hit: 0.5,
                    hit_of_conformers: None,
                }],
            }],
            clusters: vec![ThresholdOccupancy {
                angstrom: 0.3,
                clusters: 2,
                entropy_nats: 0.5,
                largest: 3,
                simpson: 0.6,
                singletons: 1,
            }],
            torsion_spread_degrees: Some(12.5),
        };
        let ensembles = EnsembleMeasures { hits: vec![0.5], draws: vec![1, 5], clusters: vec![0.3] };
        let measures = MoleculeMeasures { thresholds_angstrom: &[0.5, 0.75], ensembles: &ensembles };
        let text = molecules_csv(&[record], measures);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(
            ",cov_r_0.5,cov_p_0.5,cov_r_0.75,cov_p_0.75,mat_r,mat_p,nats,rmsd_best_of_1,hit_at_1_0.5,rmsd_best_of_5,\
             hit_at_5_0.5,clusters_0.3,entropy_0.3,largest_0.3,singletons_0.3,torsion_spread_degrees"
        ));
        assert_eq!(
            lines[1],
            "\"a \"\"small\"\", one\",allowlist,\"0.0,0.0,0.0\",CCO,4,3,2,2,0.25,,,0.5,1,0.7,,600.5,,,0.4,0.75,2,0.5,3,1,12.5"
        );
        assert_eq!(lines.len(), 2);
    }
}
