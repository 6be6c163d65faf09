//! Exports a molecule's automaton as a grammar: one line per SMILES.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;

use crate::corpus::{Rest, SKIPPED_LISTED, SkippedRecord, each_prompt, no_prompt, skipped_line};
use drift_core::constraint::automaton::{AutomatonProcessor, MoleculeTable};
use drift_core::constraint::grammar::{GrammarFormat, grammar};
use drift_core::error::excerpt;
use drift_core::job::{InputHash, Provenance};
use drift_core::text::skeleton::from_smiles;
use drift_core::text::{CONFORMER_OPEN, prompt};
use drift_core::{Encoding, Error, Job, Result, Tokenizer};

/// The number of molecules that are written at a time.
const CHUNK: usize = 256;

/// What to export, and in which format.
pub struct ExportPlan {
    /// The automaton for the model's tokenizer and encoding.
    pub processor: AutomatonProcessor,
    /// The model's tokenizer.
    pub tokenizer: Arc<Tokenizer>,
    /// How numbers are written.
    pub encoding: Encoding,
    /// The molecules.
    pub source: ExportSource,
    /// The format of the grammars.
    pub format: GrammarFormat,
}

/// The source of the molecules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportSource {
    /// A file with one SMILES per line.
    File(PathBuf),
    /// One molecule.
    Smiles(String),
}

/// A line of the result.
#[derive(Debug, Serialize)]
pub(crate) struct GrammarLine<'a> {
    /// The SMILES as given, which is the one in the prompt.
    pub smiles: &'a str,
    /// The enriched SMILES with every block emptied.
    pub skeleton: &'a str,
    /// The ids of the prompt, if they are not those of `[SMILES]…[/SMILES]` alone: then a token crosses the end of the prompt, and the
    /// grammar begins with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_ids: Option<Vec<u32>>,
    /// The grammar.
    pub grammar: ExportedGrammar,
}

/// A grammar as stored in a line.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ExportedGrammar {
    /// A text of the format Lark or EBNF.
    Text(String),
    /// The tables of the automaton.
    Table(Box<MoleculeTable>),
}

/// The result of an export.
#[derive(Debug, Serialize)]
pub struct ExportReport {
    /// The format of the grammars.
    pub format: GrammarFormat,
    /// The name of the tokenizer.
    pub tokenizer: String,
    /// How numbers are written.
    #[serde(rename = "dialect")]
    pub encoding: Encoding,
    /// The number of molecules, one line each.
    pub molecules: u64,
    /// The sizes of the shortest and the longest line, in bytes.
    pub line_bytes: [u64; 2],
    /// The number of input lines that are not SMILES or have no grammar.
    pub skipped: u64,
    /// The first of the skipped lines.
    pub skipped_records: Vec<SkippedRecord>,
    /// The number of lines that state the ids of their prompt.
    pub with_prompt_ids: u64,
    /// drift's version, and the inputs by name and hash.
    pub provenance: Provenance,
}

/// Writes one line per molecule, in input order.
///
/// # Errors
/// If there is no molecule, the job was cancelled, or `out` fails.
pub fn export(
    plan: &ExportPlan,
    job: &Job,
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<ExportReport> {
    let liner = Liner { processor: &plan.processor, tokenizer: &plan.tokenizer, format: plan.format };
    let mut writer = Writer { liner, waiting: Vec::new(), report: report(plan), out };
    match &plan.source {
        ExportSource::Smiles(smiles) => {
            let remedy = "give a SMILES, or --smiles and a file of them";
            let skeleton =
                from_smiles(smiles).map_err(|e| Error::input(excerpt(smiles.as_bytes()), e, remedy))?;
            let line = writer.liner.line(smiles, &skeleton)?;
            writer.put(line)?;
        }
        ExportSource::File(path) => {
            let hash = each_prompt(path, job, &mut |prompt| {
                match prompt {
                    Ok(line) => writer.waiting.push(PendingMolecule {
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

/// Returns a report before the first line.
fn report(plan: &ExportPlan) -> ExportReport {
    let inputs: Vec<InputHash> = vec![plan.tokenizer.source.clone()];
    ExportReport {
        format: plan.format,
        tokenizer: plan.tokenizer.name.clone(),
        encoding: plan.encoding,
        molecules: 0,
        // Initial values such that any line is both shorter and longer.
        line_bytes: [u64::MAX, 0],
        skipped: 0,
        skipped_records: Vec::new(),
        with_prompt_ids: 0,
        provenance: Provenance::from_inputs(inputs),
    }
}

/// Creates lines; usable on any thread.
struct Liner<'a> {
    processor: &'a AutomatonProcessor,
    tokenizer: &'a Tokenizer,
    format: GrammarFormat,
}

impl Liner<'_> {
    /// Returns the line of one molecule, including the line end.
    fn line(&self, smiles: &str, skeleton: &str) -> Result<Line> {
        let molecule_automaton = self.processor.molecule(skeleton)?;
        let grammar = match self.format {
            GrammarFormat::Json => ExportedGrammar::Table(Box::new(molecule_automaton.table())),
            format => ExportedGrammar::Text(grammar(&molecule_automaton, format)?),
        };
        let prompt_ids = self.prompt_ids(smiles)?;
        let with_prompt_ids = prompt_ids.is_some();
        let line = serde_json::to_vec(&GrammarLine { smiles, skeleton, prompt_ids, grammar });
        let mut bytes = line.map_err(|e| Error::internal("a line of grammars", e))?;
        bytes.push(b'\n');
        Ok(Line { bytes, with_prompt_ids })
    }

    /// Returns the ids of the prompt of a molecule, if they are not those of its text alone.
    fn prompt_ids(&self, smiles: &str) -> Result<Option<Vec<u32>>> {
        if !self.processor.follows_smiles() {
            return Ok(None);
        }
        let prompt = prompt(smiles);
        match self.processor.form().opened {
            true => self.tokenizer.prompt_ids_apart(&format!("{prompt}{CONFORMER_OPEN}"), ""),
            false => self.tokenizer.prompt_ids_apart(&prompt, CONFORMER_OPEN),
        }
    }
}

/// A finished line.
struct Line {
    /// With the line end.
    bytes: Vec<u8>,
    /// Whether it states the ids of its prompt.
    with_prompt_ids: bool,
}

/// A molecule, and the number of its line in the input.
struct PendingMolecule {
    line: u64,
    smiles: String,
    skeleton: String,
}

struct Writer<'a> {
    liner: Liner<'a>,
    /// The molecules that are not written yet.
    waiting: Vec<PendingMolecule>,
    report: ExportReport,
    out: &'a mut dyn FnMut(&[u8]) -> Result<()>,
}

impl Writer<'_> {
    fn write_waiting(&mut self, path: &Path) -> Result<()> {
        let (waiting, liner) = (std::mem::take(&mut self.waiting), &self.liner);
        let lines: Vec<Result<Line>> =
            waiting.par_iter().map(|one| liner.line(&one.smiles, &one.skeleton)).collect();
        for (line, from) in lines.into_iter().zip(waiting) {
            match line {
                Ok(line) => self.put(line)?,
                // A molecule without a grammar is skipped, and the others are still written.
                Err(Error::Input { problem, .. }) => self.skip(skipped_line(path, from.line, &problem)),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn put(&mut self, line: Line) -> Result<()> {
        let bytes = line.bytes.len() as u64;
        let [least, most] = self.report.line_bytes;
        self.report.line_bytes = [least.min(bytes), most.max(bytes)];
        self.report.molecules += 1;
        self.report.with_prompt_ids += u64::from(line.with_prompt_ids);
        (self.out)(&line.bytes)
    }

    fn skip(&mut self, skipped: SkippedRecord) {
        self.report.skipped += 1;
        if self.report.skipped_records.len() < SKIPPED_LISTED {
            self.report.skipped_records.push(skipped);
        }
    }
}
