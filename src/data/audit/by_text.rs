//! The results for each text of an audit: one line each, and the RMSDs of all pairs of a text and a reference.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;

use super::coverage::Deviations;
use super::geometry::{Conformation, Topology};
use super::judged::{JudgedFile, JudgedText, TextPairing};
use super::judging::{DUPLICATE_ANGSTROM, MoleculeDistances, RmsdMatrix, VerdictLine, duplicates};
use super::references::{BySkeleton, DeviationsBySkeleton};
use super::report::AuditReport;
use super::row_label::RowLabel;
use drift_core::chem::Isotopes;
use drift_core::text::skeleton::smiles;

/// A report, and the results for each text.
#[derive(Debug)]
pub struct AuditResult {
    /// The report.
    pub report: AuditReport,
    /// The results for each text.
    pub texts: AuditedTexts,
}

/// The results for each text.
#[derive(Debug)]
pub struct AuditedTexts {
    /// By file; without texts if the plan does not keep them.
    pub(super) files: Vec<TextsOfFile>,
    /// By group of each file, in order; empty without references.
    pub(super) measured: Vec<DeviationsBySkeleton>,
}

/// The texts of a file.
#[derive(Debug)]
pub(super) struct TextsOfFile {
    name: String,
    /// The rows of its groups.
    groups: Vec<RowLabel>,
    /// By group: the conformers of each molecule.
    conformers: Vec<BySkeleton>,
    texts: Vec<JudgedText>,
    isotopes: Isotopes,
}

impl TextsOfFile {
    pub(super) fn new(file: JudgedFile, isotopes: Isotopes) -> Self {
        let (groups, conformers) = file.groups.into_iter().map(|group| (group.row, group.generated)).unzip();
        TextsOfFile { name: file.input.name, groups, conformers, texts: file.texts, isotopes }
    }

    pub(super) fn texts(&self) -> &[JudgedText] {
        &self.texts
    }

    fn group(&self, text: &JudgedText) -> usize {
        self.groups.iter().position(|row| *row == text.row).unwrap_or(0)
    }

    /// By group and molecule: for each conformer, the earlier one that it duplicates.
    fn duplicates(&self) -> Vec<BTreeMap<&str, Vec<Option<usize>>>> {
        self.conformers.iter().map(|molecules| self.duplicates_of(molecules)).collect()
    }

    fn duplicates_of<'m>(&self, molecules: &'m BySkeleton) -> BTreeMap<&'m str, Vec<Option<usize>>> {
        let several = molecules.par_iter().filter(|(_, conformers)| conformers.len() > 1);
        let same = several.filter_map(|(skeleton, conformers)| {
            let topology = Topology::with_isotopes(skeleton, self.isotopes).ok()?;
            Some((&**skeleton, duplicates(&topology, conformers, DUPLICATE_ANGSTROM)))
        });
        same.collect()
    }
}

/// A text that is compared with those of other rows.
pub(super) struct PairedRecord<'a> {
    pub row: &'a RowLabel,
    pub file: &'a str,
    /// The SMILES of its prompt.
    pub prompt: &'a str,
    /// The skeleton that it is compared under.
    pub under: &'a str,
    /// Whether it has a conformer to compare.
    pub is_usable: bool,
    pub generation: u64,
    pub place: usize,
    pub pairing: &'a TextPairing,
}

/// A text, and the index of its conformer among those of its molecule in its group.
pub(super) struct PlacedText<'a> {
    /// The index of its file.
    file: usize,
    pub text: &'a JudgedText,
    /// The index of its group within its file.
    of_file: usize,
    /// The index of its group among those of all files.
    pub group: usize,
    generation: u64,
    conformer: Option<usize>,
}

impl PlacedText<'_> {
    /// Returns the skeleton that it is compared under; empty for a text without a prompt.
    fn under(&self) -> &str {
        self.text.compared.as_ref().map_or("", |compared| &compared.under)
    }
}

impl AuditedTexts {
    /// Returns the texts of all files that are compared by their rows, in order.
    pub(super) fn paired_texts(&self) -> impl Iterator<Item = PairedRecord<'_>> {
        self.placed().into_iter().filter_map(|one| {
            Some(PairedRecord {
                row: &one.text.row,
                file: &self.files[one.file].name,
                prompt: one.text.smiles.as_deref()?,
                under: &one.text.compared.as_ref()?.under,
                is_usable: one.conformer.is_some(),
                generation: one.generation,
                place: one.text.place,
                pairing: one.text.pairing.as_ref()?,
            })
        })
    }

    /// Returns the row under which a text is reported.
    pub(super) fn row(&self, one: &PlacedText<'_>) -> RowLabel {
        one.text.row.reported(&self.files[one.file].name)
    }

    /// Returns the texts of all files, in order.
    pub(super) fn placed(&self) -> Vec<PlacedText<'_>> {
        let mut out = Vec::new();
        let mut groups = 0;
        for (number, file) in self.files.iter().enumerate() {
            let mut generations: HashMap<(&RowLabel, &Option<String>), u64> = HashMap::new();
            let mut conformers: HashMap<(usize, &str), usize> = HashMap::new();
            for text in &file.texts {
                let known = generations.entry((&text.row, &text.smiles)).or_default();
                // Further conformers of a text belong to the same generation.
                *known += u64::from(text.place == 0);
                let generation = text.generation.unwrap_or_else(|| known.saturating_sub(1));
                let group = file.group(text);
                let conformer =
                    text.compared.as_ref().filter(|compared| compared.is_usable).map(|compared| {
                        let next = conformers.entry((group, &*compared.under)).or_default();
                        *next += 1;
                        *next - 1
                    });
                out.push(PlacedText {
                    file: number,
                    text,
                    of_file: group,
                    group: groups + group,
                    generation,
                    conformer,
                });
            }
            groups += file.groups.len();
        }
        out
    }

    /// Returns the RMSDs of the conformers of a text's molecule; `None` without references.
    pub(super) fn deviations(&self, placed: &PlacedText<'_>) -> Option<&Deviations> {
        self.measured.get(placed.group)?.get(&placed.text.compared.as_ref()?.under)
    }

    /// Returns the skeleton of a text's molecule, its conformers in the text's row, and what isotope labels mean for them.
    pub(super) fn conformers(&self, placed: &PlacedText<'_>) -> Option<(&str, &[Conformation], Isotopes)> {
        let file = &self.files[placed.file];
        let of_group = file.conformers.get(placed.of_file)?;
        let (skeleton, conformers) = of_group.get_key_value(placed.under())?;
        Some((skeleton, conformers, file.isotopes))
    }

    /// Returns the SMILES of molecules that have references but no conformer to compare with them.
    pub fn missing(&self) -> Vec<String> {
        let all = self.together();
        let without = all.iter().filter(|(_, (_, conformers))| *conformers == 0);
        without.map(|(skeleton, _)| smiles(skeleton)).collect()
    }

    /// Returns the number of references of all molecules that texts were requested for.
    pub fn reference_conformers(&self) -> usize {
        self.together().values().map(|(references, _)| references).sum()
    }

    /// Returns the number of files.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// By molecule, the number of references and of conformers.
    fn together(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (skeleton, deviations) in self.measured.iter().flatten() {
            let known = all.entry(skeleton).or_insert((deviations.references, 0));
            known.1 += deviations.rmsd.len();
        }
        all
    }

    /// Returns one line for each text, in the order of files and records.
    pub fn lines(&self) -> Vec<VerdictLine> {
        let placed = self.placed();
        // The texts to which conformers belong.
        let mut texts: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
        for (line, one) in placed.iter().enumerate().filter(|(_, one)| one.conformer.is_some()) {
            texts.entry((one.group, one.under())).or_default().push(line);
        }
        let same: Vec<_> = self.files.iter().map(TextsOfFile::duplicates).collect();
        let line = |one: &PlacedText<'_>| {
            let under = one.under();
            let same = same[one.file].get(one.of_file).and_then(|same| same.get(under));
            let twin = same.zip(one.conformer).and_then(|(same, at)| same.get(at).copied().flatten());
            let mut verdict = one.text.verdict.clone();
            let deviations = self.deviations(one);
            if let Some((deviations, at)) = deviations.zip(one.conformer) {
                verdict.set_distances(&deviations.rmsd[at], deviations.bond_errors[at]);
            }
            verdict.references = deviations.map_or(0, |deviations| deviations.references as u64);
            VerdictLine {
                id: one.text.id.as_ref().unwrap_or(&one.text.record).clone(),
                file: Some(self.files[one.file].name.clone()),
                record: Some(one.text.record.clone()),
                model: one.text.row.model.clone(),
                lp: one.text.row.lp.clone(),
                placeholder: one.text.row.placeholder.clone(),
                smiles: one.text.smiles.clone(),
                geom_smiles: one.text.pool.clone(),
                generation: one.generation,
                place: one.text.place,
                duplicate_of: twin.and_then(|twin| texts.get(&(one.group, under))?.get(twin).copied()),
                verdict,
            }
        };
        placed.iter().map(line).collect()
    }

    /// Returns the RMSDs of all pairs of a text and a reference, by molecule in the order of first occurrence. Molecules of the
    /// references without a text come last.
    pub fn matrix(&self) -> RmsdMatrix<'_> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut matrix = RmsdMatrix::default();
        for (line, one) in self.placed().iter().enumerate() {
            let Some(compared) = &one.text.compared else { continue };
            let Some(deviations) = self.deviations(one) else { continue };
            let next = matrix.molecules.len();
            let at = *places.entry(&compared.under).or_insert(next);
            if at == next {
                let smiles = one.text.pool.as_deref().or(one.text.smiles.as_deref()).unwrap_or_default();
                matrix.molecules.push(MoleculeDistances::new(smiles.to_owned(), deviations.references));
            }
            let row = one.conformer.map(|conformer| Cow::Borrowed(&*deviations.rmsd[conformer]));
            matrix.molecules[at].push(line as u64, row);
        }
        // Molecules with references and without a text come last.
        let references = self.together();
        let without = references.iter().filter(|(skeleton, _)| !places.contains_key(**skeleton));
        let without = without.map(|(skeleton, (count, _))| MoleculeDistances::new(smiles(skeleton), *count));
        matrix.molecules.extend(without);
        matrix
    }
}
