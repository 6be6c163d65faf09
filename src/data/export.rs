//! From SMILES to grammars of the automaton: a line for each molecule.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use crate::corpus::{Rest, SKIPPED_LISTED, Skipped, each_prompt, no_prompt, skipped_line};
use drift_core::constraint::automaton::{AutomatonProcessor, MoleculeTable};
use drift_core::constraint::grammar::{GrammarFormat, grammar};
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result, excerpt};
use drift_core::job::{InputHash, Job, Provenance};
use drift_core::text::skeleton::from_smiles;
use drift_core::tokenizer::Tokenizer;

/// Molecules that are written at a time.
const CHUNK: usize = 256;

/// What to write grammars of.
pub struct ExportPlan {
    /// The automaton of the model's tokenizer and encoding.
    pub processor: AutomatonProcessor,
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// How numbers are written.
    pub dialect: Encoding,
    /// The molecules.
    pub source: ExportSource,
    /// How grammars are spelled.
    pub format: GrammarFormat,
}

/// Where molecules come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportSource {
    /// A file with one SMILES a line.
    File(PathBuf),
    /// One molecule.
    Smiles(String),
}

/// A line of the result.
#[derive(Debug, Serialize)]
pub struct GrammarLine<'a> {
    /// As it was given: the prompt's.
    pub smiles: &'a str,
    /// Its text with every block emptied.
    pub skeleton: &'a str,
    /// The grammar.
    pub grammar: Spelled,
}

/// A grammar as a line holds it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Spelled {
    /// Lark or EBNF.
    Text(String),
    /// The tables.
    Table(Box<MoleculeTable>),
}

/// What was written.
#[derive(Debug, Serialize)]
pub struct ExportReport {
    /// How grammars are spelled.
    pub format: GrammarFormat,
    /// The tokenizer.
    pub tokenizer: String,
    /// How numbers are written.
    pub dialect: Encoding,
    /// Molecules, one line each.
    pub molecules: u64,
    /// Characters of the smallest line and of the largest.
    pub line_bytes: [u64; 2],
    /// Lines of the input that are no SMILES, or have no grammar.
    pub skipped: u64,
    /// The first of them.
    pub skipped_records: Vec<Skipped>,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// Writes a line for each molecule, in the order of the input.
///
/// # Errors
/// If there is no molecule, the job was cancelled, or `out` gives one.
pub fn export(
    plan: &ExportPlan,
    job: &Job,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<ExportReport> {
    let liner = Liner { processor: &plan.processor, format: plan.format };
    let mut writer = Writer { liner, waiting: Vec::new(), report: report(plan), out };
    match &plan.source {
        ExportSource::Smiles(smiles) => {
            let remedy = "give a SMILES, or --smiles and a file of them";
            let skeleton =
                from_smiles(smiles).map_err(|e| Error::input(excerpt(smiles.as_bytes()), e, remedy))?;
            let line = writer.liner.line(smiles, &skeleton)?;
            writer.put(&line)?;
        }
        ExportSource::File(path) => {
            let hash = each_prompt(path, job, &mut |prompt| {
                match prompt {
                    Ok(line) => writer.waiting.push(Waiting {
                        line: line.number,
                        smiles: line.smiles.to_owned(),
                        skeleton: line.skeleton.to_owned(),
                    }),
                    Err(skipped) => writer.skip(skipped),
                }
                if writer.waiting.len() == CHUNK {
                    job.check()?;
                    writer.write_waiting(path)?;
                }
                Ok(Rest::Wanted)
            })?;
            writer.write_waiting(path)?;
            if writer.report.molecules == 0 {
                return Err(no_prompt(path, writer.report.skipped_records.first()));
            }
            writer.report.provenance.inputs.push(hash);
        }
    }
    Ok(writer.report)
}

/// A report of nothing yet.
fn report(plan: &ExportPlan) -> ExportReport {
    let inputs: Vec<InputHash> = vec![plan.tokenizer.source.clone()];
    ExportReport {
        format: plan.format,
        tokenizer: plan.tokenizer.name.clone(),
        dialect: plan.dialect,
        molecules: 0,
        // No line yet: any one is smaller and larger.
        line_bytes: [u64::MAX, 0],
        skipped: 0,
        skipped_records: Vec::new(),
        provenance: Provenance::from_inputs(inputs),
    }
}

/// Writes lines on any thread.
struct Liner<'a> {
    processor: &'a AutomatonProcessor,
    format: GrammarFormat,
}

impl Liner<'_> {
    /// The line of one molecule, with its end.
    fn line(&self, smiles: &str, skeleton: &str) -> Result<Vec<u8>> {
        let molecule_automaton = self.processor.molecule(skeleton)?;
        let grammar = match self.format {
            GrammarFormat::Json => Spelled::Table(Box::new(molecule_automaton.table())),
            format => Spelled::Text(grammar(&molecule_automaton, format)?),
        };
        let line = serde_json::to_vec(&GrammarLine { smiles, skeleton, grammar });
        let mut line = line.map_err(|e| Error::internal("a line of grammars", e))?;
        line.push(b'\n');
        Ok(line)
    }
}

/// A molecule, and the line that it came from.
struct Waiting {
    line: u64,
    smiles: String,
    skeleton: String,
}

struct Writer<'a> {
    liner: Liner<'a>,
    /// What is not written yet.
    waiting: Vec<Waiting>,
    report: ExportReport,
    out: &'a mut dyn FnMut(&[u8]) -> Result<()>,
}

impl Writer<'_> {
    fn write_waiting(&mut self, path: &Path) -> Result<()> {
        let (waiting, liner) = (std::mem::take(&mut self.waiting), &self.liner);
        let lines: Vec<Result<Vec<u8>>> =
            waiting.par_iter().map(|one| liner.line(&one.smiles, &one.skeleton)).collect();
        for (line, from) in lines.into_iter().zip(waiting) {
            match line {
                Ok(line) => self.put(&line)?,
                // One molecule that has no grammar does not spoil the others.
                Err(Error::Input { problem, .. }) => self.skip(skipped_line(path, from.line, &problem)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn put(&mut self, line: &[u8]) -> Result<()> {
        let bytes = line.len() as u64;
        let [least, most] = self.report.line_bytes;
        self.report.line_bytes = [least.min(bytes), most.max(bytes)];
        self.report.molecules += 1;
        (self.out)(line)
    }

    fn skip(&mut self, skipped: Skipped) {
        self.report.skipped += 1;
        if self.report.skipped_records.len() < SKIPPED_LISTED {
            self.report.skipped_records.push(skipped);
        }
    }
}
