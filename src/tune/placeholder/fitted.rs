//! Results of `drift fit`, read again: which placeholder for which tokenizer and dialect, and which for each class.

use std::path::Path;

use serde::Deserialize;

use super::classes::{PartitionReport, best_partition};
use super::report::{FitReport, FitResult, SCHEMA};
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::io;
use drift_core::job::{InputHash, Job};
use drift_core::text::partition::Partition;
use drift_core::tokenizer::Tokenizer;

/// The most bytes of a file of results that are read: no result is larger.
const LIMIT: u64 = 64 << 20;

/// A file that `drift fit -o` wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedFile {
    /// Name, size and hash.
    pub source: InputHash,
    /// Where it lies, for messages.
    place: String,
    results: Vec<Fitted>,
}

/// What was fitted for one tokenizer and dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fitted {
    tokenizer: String,
    tokenizer_sha256: String,
    dialect: Encoding,
    /// The placeholder of least harm for all blocks, without brackets.
    pub placeholder: String,
    /// Of the partitions of significant gain the one that harms least; none if there is no such partition.
    pub classes: Option<FittedClasses>,
}

/// A placeholder for each class of block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedClasses {
    /// How blocks are classed.
    pub partition: Partition,
    /// Classes and their placeholders.
    pub placeholders: Vec<(String, String)>,
}

/// What a report of any version begins with.
#[derive(Deserialize)]
struct Head {
    schema: String,
}

impl FittedFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is not a result of `drift fit`, or the job was cancelled.
    pub fn read(path: &Path, job: &Job) -> Result<Self> {
        // Reading a folder would fail as "is a directory", which does not say that fit writes one file for each tokenizer.
        if path.is_dir() {
            return Err(Error::input(path.display(), "is a folder", "give its file for the tokenizer"));
        }
        let io::Whole { bytes, source } = io::read_whole(path, LIMIT, job)?;
        let refused = |problem: String| {
            let remedy = "give a file that `drift fit -o` wrote for a tokenizer";
            Error::input(path.display(), problem, remedy)
        };
        let unlike = |e: serde_json::Error| refused(format!("is not a result of `drift fit`: {e}"));
        // A report of another version lacks fields, and its schema says why.
        let Head { schema } = serde_json::from_slice(&bytes).map_err(unlike)?;
        if schema != SCHEMA {
            return Err(refused(format!("its schema is {schema}, not {SCHEMA}")));
        }
        let report: FitReport = serde_json::from_slice(&bytes).map_err(unlike)?;
        let fitted = |result: FitResult| Fitted {
            classes: best_partition(&report.objective, &result.classes).map(FittedClasses::of),
            tokenizer: result.tokenizer,
            tokenizer_sha256: result.tokenizer_sha256,
            dialect: result.dialect,
            placeholder: result.placeholder,
        };
        Ok(FittedFile {
            results: report.results.into_iter().map(fitted).collect(),
            source,
            place: path.display().to_string(),
        })
    }

    /// What was fitted for a tokenizer, told by its file's hash or else by its name.
    ///
    /// # Errors
    /// If nothing was.
    pub fn of(&self, tokenizer: &Tokenizer, dialect: Encoding) -> Result<&Fitted> {
        let own = || self.results.iter().filter(|result| result.dialect == dialect);
        let by_hash = own().find(|result| result.tokenizer_sha256 == tokenizer.source.sha256);
        // The hash is exact; the name is for a tokenizer that was saved again with other bytes.
        by_hash.or_else(|| own().find(|result| result.tokenizer == tokenizer.name)).ok_or_else(|| {
            let held =
                self.results.iter().map(|result| format!("{}, {}", result.tokenizer, result.dialect.name()));
            let held: Vec<String> = held.collect();
            let problem = format!(
                "contains no placeholder for {}, {} dialect, but for {}",
                tokenizer.name,
                dialect.name(),
                if held.is_empty() { "none".to_owned() } else { held.join("; ") }
            );
            Error::input(&self.place, problem, "run `drift fit` with this tokenizer and dialect")
        })
    }

    /// Where it lies, for messages.
    pub fn place(&self) -> &str {
        &self.place
    }
}

impl FittedClasses {
    fn of(reported: &PartitionReport) -> Self {
        let classes = reported.classes.iter();
        let placeholders = classes.map(|class| (class.class.clone(), class.placeholder.clone())).collect();
        FittedClasses { partition: reported.partition, placeholders }
    }
}
