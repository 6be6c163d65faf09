//! The records of a file of generated text.

use serde::de::DeserializeSeed;
use serde::{Deserialize, Serialize};

use super::judging::without_examples;
use super::row_label::RowLabel;
use super::rows::{FieldText, LP_FIELD, Read, Reading, Row};
use super::sample::split;
use crate::corpus::fields::{TEXT_FIELDS, is_inside_tags};
use crate::corpus::{MAX_LINE_BYTES, RowFilter, SKIPPED_LISTED, SkippedRecord};
use crate::generation::TextsHeader;
use crate::parameter;
use drift_core::encoding::TrailingZeros;
use drift_core::io::{BoundedLine, FoldSeed};
use drift_core::text::skeleton;
use drift_core::text::{CONFORMER_OPEN, SMILES_OPEN, tagged};
use drift_core::{Encoding, Error, Result};

/// The memory limit for the records of a file, in bytes: texts are judged only after all are read.
const MAX_KEPT_BYTES: usize = 1 << 30;

/// The remedy for a file with other content.
const KNOWN: &str = "give a smoke report of 3DMolGen, JSON Lines, CSV, plain enriched text, or a pickle of generated molecules";

/// The problem with a file that contains more.
pub(super) const FULL: &str = "contains more texts than fit into memory";

/// The field of records that names the row to which a text belongs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RowField {
    /// `lp`, beside `model` and `placeholder`, as drift writes them.
    #[default]
    Own,
    /// A field with another name, such as `processor`, in place of `lp`.
    Named(String),
    /// No field: all texts of a file are one row, with the file's name.
    File,
}

impl RowField {
    /// Returns the field with this name; `file` stands for the file itself.
    pub fn named(name: String) -> Self {
        match &*name {
            LP_FIELD => RowField::Own,
            "file" => RowField::File,
            _ => RowField::Named(name),
        }
    }

    /// Returns the field that names the logit processor.
    pub(super) fn lp(&self) -> &str {
        match self {
            RowField::Named(name) => name,
            RowField::Own | RowField::File => LP_FIELD,
        }
    }
}

/// One generated text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// The position in the file: `line 12`, `passes[3]`.
    pub place: String,
    /// The SMILES of its prompt.
    pub prompt: Option<String>,
    /// The text as in the file; it may include the prompt.
    pub text: String,
    /// The model, logit processor and placeholder, as far as the record names them.
    pub row: RowLabel,
    /// The id of the text in the file.
    pub id: Option<String>,
    /// The index of the text among those of its molecule, if the record states it.
    pub generation: Option<u64>,
    /// The SMILES under which texts of several isomers are pooled, if the record names one.
    pub pool: Option<String>,
    /// How the text is written, if its row states it.
    pub encoding: Option<Encoding>,
    /// Whether its decimals keep trailing zeros, if the field of the text tells.
    pub zeros: Option<TrailingZeros>,
    /// Whether the text was cut at its largest number of tokens, if the record says so.
    pub is_cut: bool,
    /// The blocks that were closed by force although the model would have continued the number; `None` if that is not known.
    pub truncated: Option<Box<[usize]>>,
    /// The seconds that it took, if the record states them.
    pub seconds: Option<f64>,
    /// The number of its tokens, if the record states it.
    pub tokens: Option<u64>,
    /// The position of the text in a smoke report, if it comes from one. The first text of a molecule is the one that 3DMolGen
    /// validates.
    pub listed: Option<SmokePosition>,
}

/// The text of a record, or one of its conformers.
#[derive(Clone, Copy)]
pub(super) struct ConformerText<'r> {
    /// The name of its file.
    pub file: &'r str,
    pub record: &'r Record,
    /// The index among the conformers of the record's text.
    pub place: usize,
    /// The number of these conformers.
    pub of: usize,
    /// The number of blocks of the conformers before it.
    pub blocks_before: usize,
    pub text: &'r str,
}

impl Record {
    /// Returns what is said of one of `count` texts of a row. What the row says of its blocks would be true of none; seconds and tokens are
    /// those of all texts, so each has a share, and the first texts have what is left of the tokens.
    fn one_of(&self, index: usize, count: usize) -> Record {
        if count < 2 {
            return self.clone();
        }
        let of = count as u64;
        Record {
            truncated: None,
            seconds: self.seconds.map(|seconds| seconds / of as f64),
            tokens: self.tokens.map(|tokens| tokens / of + u64::from((index as u64) < tokens % of)),
            ..self.clone()
        }
    }
}

/// The position of a text in a smoke report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmokePosition {
    /// Whether its molecule is among the passes.
    pub in_passes: bool,
    /// The index of the text among those of its molecule, from 0.
    pub generation: usize,
    /// Whether the report contains all texts of the molecule.
    pub with_all: bool,
}

/// The figures that a smoke report states.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SmokeHead {
    /// `metadata.version`: the version of the logit processor, or `none`.
    pub version: Option<String>,
    /// `metadata.processor_type`: the kind of the logit processor.
    pub processor_type: Option<String>,
    /// `num_passed`: the number of molecules whose first text passed.
    pub num_passed: Option<u64>,
    /// `num_failed`: the number of other molecules.
    pub num_failed: Option<u64>,
    /// `summary.parse_failures`: of these, the number whose text could not be decoded.
    pub parse_failures: Option<u64>,
}

/// The records read so far.
#[derive(Default)]
pub(super) struct Reader {
    pub name: String,
    /// The encoding that the texts should have, if the user or a recipe says so.
    asked: Option<Encoding>,
    /// The field that names the row of a record.
    pub row_field: RowField,
    /// What the file's first line says of its texts, if drift wrote them.
    pub header: Option<Box<TextsHeader>>,
    pub records: Vec<Record>,
    /// The memory that the records take, in bytes.
    kept_bytes: usize,
    pub skipped: u64,
    pub skipped_records: Vec<SkippedRecord>,
    pub head: Option<SmokeHead>,
    /// The number of rows that were not asked for.
    pub left_out: u64,
    /// What a reader of the file's shares should know.
    pub note: Option<String>,
}

impl Reader {
    /// Returns a reader for a file with this name, whose texts should be in the encoding `asked`.
    pub(super) fn new(name: String, asked: Option<Encoding>, row_field: RowField) -> Self {
        Reader { name, asked, row_field, ..Reader::default() }
    }

    /// Reads one line, if a filter picks it.
    ///
    /// # Errors
    /// If it is the header of texts in a format that this drift does not know.
    pub(super) fn line(&mut self, line: BoundedLine<'_>, rows: &RowFilter) -> Result<()> {
        if line.number == 1 && !line.cut {
            self.header = TextsHeader::of_line(line.bytes, &self.name)?.map(Box::new);
            if self.header.is_some() {
                return Ok(());
            }
        }
        self.text_line(line, rows);
        Ok(())
    }

    fn text_line(&mut self, line: BoundedLine<'_>, rows: &RowFilter) {
        let place = format!("line {}", line.number);
        let text = line.bytes.trim_ascii();
        if line.cut {
            return self.skip(place, format!("longer than {} MiB", MAX_LINE_BYTES >> 20));
        }
        match std::str::from_utf8(text) {
            Ok("") => {}
            Err(e) => self.skip(place, format!("byte {}: not UTF-8", e.valid_up_to())),
            Ok(text) if text.starts_with('{') => {
                match rows.picks_json(text) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.left_out += 1;
                        return;
                    }
                    Err(reason) => return self.skip(place, reason),
                }
                let mut json = serde_json::Deserializer::from_str(text);
                let reading = Reading { lp: self.row_field.lp() };
                match FoldSeed(reading).deserialize(&mut json).and_then(|row| json.end().map(|()| row)) {
                    Ok(row) => self.object(&place, None, row),
                    Err(e) => self.skip(place, format!("not JSON: column {}", e.column())),
                }
            }
            Ok(_) if !rows.is_empty() => self.skip(place, "a text alone, which has no columns".to_owned()),
            Ok(text) => {
                let row = self.label(&mut Row::default());
                self.add(Record { place, text: text.to_owned(), row, ..Record::default() }, false);
            }
        }
    }

    /// Adds the text or texts of an object. `in_passes` names the list of a smoke report that contains it.
    pub(super) fn object(&mut self, place: &str, in_passes: Option<bool>, row: Read) {
        let Read::Row(mut row) = row else {
            return self.skip(place.to_owned(), "not a JSON object".to_owned());
        };
        let opened = row.opened;
        let stated = match self.stated(&mut row) {
            Ok(stated) => stated,
            Err(problem) => return self.skip(place.to_owned(), problem),
        };
        let said = self.common(&mut row);
        let listed = |generation, with_all| {
            in_passes.map(|in_passes| SmokePosition { in_passes, generation, with_all })
        };
        let isomers = std::mem::take(&mut row.isomers);
        let is_grouped = !isomers.is_empty();
        let count = isomers.iter().map(|(_, texts)| texts.len()).sum();
        let mut numbers = 0..count;
        for (smiles, texts) in isomers {
            if texts.is_empty() {
                self.skip(format!("{place}.isomers.{smiles}"), "contains no text".to_owned());
            }
            for (index, (one, number)) in texts.into_iter().zip(&mut numbers).enumerate() {
                let place = format!("{place}.isomers.{smiles}[{index}]");
                match one {
                    Some(text) => {
                        let said = said.one_of(number, count);
                        let said = Record { place, prompt: Some(smiles.clone()), ..said };
                        self.add(said.holding(text, stated), opened);
                    }
                    None => self.skip(place, "contains no text".to_owned()),
                }
            }
        }
        if is_grouped {
            return;
        }
        if let Some(all) = row.all.take().filter(|all| !all.texts.is_empty()) {
            let count = all.texts.len();
            for (index, one) in all.texts.into_iter().enumerate() {
                let place = format!("{place}.{}[{index}]", all.name);
                match one {
                    Some(text) => {
                        let generation = said.generation.map(|first| first + index as u64);
                        let said = said.one_of(index, count);
                        let said = Record { place, generation, listed: listed(index, true), ..said };
                        self.add(said.holding(text, stated), opened);
                    }
                    None => self.skip(place, "contains no text".to_owned()),
                }
            }
            return;
        }
        // A row states how its conformer is written, and holds it both with and without trailing zeros.
        let zeros = self.asked.and_then(Encoding::zeros).or(stated.and_then(Encoding::zeros));
        match Row::text(*row, zeros) {
            Some(text) => {
                let said = Record { place: place.to_owned(), listed: listed(0, false), ..said };
                self.add(said.holding(text, stated), opened);
            }
            None => self.skip(place.to_owned(), format!("contains none of {}", TEXT_FIELDS.join(", "))),
        }
    }

    /// Returns the encoding that an object states, or why its texts cannot be judged.
    fn stated(&self, row: &mut Row) -> std::result::Result<Option<Encoding>, String> {
        if row.has_other_generation {
            return Err("generation: not the number of a text, 0 or more".to_owned());
        }
        row.encoding.take().map(|row| Encoding::stated(&row, self.asked)).transpose()
    }

    /// Returns what all texts of an object have in common.
    fn common(&self, row: &mut Row) -> Record {
        Record {
            prompt: row.prompt().map(str::to_owned),
            row: self.label(row),
            is_cut: row.is_cut,
            seconds: row.seconds,
            tokens: row.tokens,
            truncated: row.truncated.take(),
            id: row.id.take(),
            generation: row.generation,
            pool: row.pool.take(),
            ..Record::default()
        }
    }

    /// Returns the row of an object.
    fn label(&self, row: &mut Row) -> RowLabel {
        match self.row_field {
            RowField::File => RowLabel { lp: Some(self.name.clone()), ..RowLabel::default() },
            RowField::Own | RowField::Named(_) => row.label(),
        }
    }

    /// Adds a record that is complete.
    pub(super) fn add_complete(&mut self, mut record: Record) {
        record.row = self.label(&mut Row::default());
        self.add(record, false);
    }

    /// Adds a record. `opened` says whether its prompt ends with the opening tag of the answer.
    fn add(&mut self, mut record: Record, opened: bool) {
        let Record { prompt, text, pool, .. } = &mut record;
        // Worked examples were not generated by the model, and must not be judged.
        let examples = text.len() - without_examples(text).len();
        if examples > 0 {
            // A copy of the rest, because a drained string keeps its capacity, which no limit would count.
            *text = text.split_off(examples);
        }
        if opened && !text.contains(CONFORMER_OPEN) {
            text.insert_str(0, CONFORMER_OPEN);
        }
        *prompt = prompt.take().or_else(|| split(text).prompt.map(str::to_owned));
        // Without a prompt, only a tag, or a block behind an atom, distinguishes enriched text from any other line.
        if prompt.is_none()
            && !text.contains(CONFORMER_OPEN)
            && !text.contains(SMILES_OPEN)
            && !text.contains("]<")
        {
            return self.skip(record.place, "contains no enriched text".to_owned());
        }
        if let Some(Err(error)) = prompt.as_deref().map(skeleton::check) {
            return self.skip(record.place, format!("prompt: {error}"));
        }
        if let Some(Err(error)) = pool.as_deref().map(skeleton::check) {
            return self.skip(record.place, format!("geom_smiles: {error}"));
        }
        let RowLabel { model, lp, placeholder } = &record.row;
        let said = [&record.prompt, model, lp, placeholder, &record.id, &record.pool].into_iter().flatten();
        // The record itself is counted too: a file may contain very many short texts.
        let bytes: usize = said.chain([&record.place, &record.text]).map(String::len).sum();
        self.kept_bytes = self.kept_bytes.saturating_add(bytes + size_of::<Record>());
        self.records.push(record);
    }

    /// Returns whether the memory limit is exceeded.
    pub(super) fn is_full(&self) -> bool {
        self.kept_bytes > MAX_KEPT_BYTES
    }

    /// Refuses a file that contains more than fits into memory.
    ///
    /// # Errors
    /// If the memory limit is exceeded.
    pub(super) fn check_size(&self) -> Result<()> {
        if self.is_full() {
            return Err(Error::input(&self.name, FULL, "split the file"));
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, record: String, reason: String) {
        self.skipped += 1;
        if self.skipped_records.len() < SKIPPED_LISTED {
            self.skipped_records.push(SkippedRecord { file: self.name.clone(), record, reason }.shown());
        }
    }

    /// Returns the error for a file without usable records.
    pub(super) fn empty(&self) -> Error {
        let problem = match self.skipped_records.first() {
            None if self.left_out > 0 => {
                format!(
                    "none of its {} rows has the values that {} asks for",
                    self.left_out,
                    parameter::WHERE
                )
            }
            None => "contains no text".to_owned(),
            Some(first) => {
                let records = if self.skipped == 1 { "record" } else { "records" };
                let (record, reason) = (&first.record, &first.reason);
                format!("contains no text: {} {records} skipped, first: {record}: {reason}", self.skipped)
            }
        };
        Error::input(&self.name, problem, KNOWN)
    }
}

impl Record {
    /// Returns the record with a text, whose row states the encoding `stated`. Tags are added if the field holds only the text between
    /// them.
    fn holding(self, FieldText { field, text, zeros, is_cut }: FieldText, stated: Option<Encoding>) -> Self {
        let is_inside = field.is_some_and(is_inside_tags) && !text.contains(CONFORMER_OPEN);
        let encoding = stated.map(|stated| zeros.map_or(stated, |zeros| stated.with_zeros(zeros)));
        let is_cut = self.is_cut || is_cut;
        Record { text: if is_inside { tagged(&text) } else { text }, encoding, zeros, is_cut, ..self }
    }
}
