//! Reads the results of `drift fit`: the placeholder for each tokenizer and encoding, and those for each class.

use std::path::Path;

use serde::Deserialize;

use super::classes::{PartitionReport, best_partition};
use super::report::{FitReport, SCHEMA};
use drift_core::command::DriftCommand;
use drift_core::io;
use drift_core::job::InputHash;
use drift_core::text::partition::Partition;
use drift_core::{Encoding, Error, Job, Result, Tokenizer};

/// The largest size of a file of results in bytes; no result is larger.
const LIMIT: u64 = 64 << 20;

/// A file that `drift fit -o` wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedFile {
    /// The name, size and hash.
    pub source: InputHash,
    /// The path, for messages.
    place: String,
    results: Vec<FittedPlaceholder>,
}

/// What was fitted for one tokenizer and encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedPlaceholder {
    tokenizer: String,
    tokenizer_sha256: String,
    encoding: Encoding,
    /// The placeholder with the least harm for all blocks, without brackets.
    pub placeholder: String,
    /// The partition with the least harm among those with significant gain; `None` if there is no such partition.
    pub classes: Option<FittedClasses>,
}

/// A placeholder for each class of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FittedClasses {
    /// How blocks are classified.
    pub partition: Partition,
    /// The classes with their placeholders.
    pub placeholders: Vec<(String, String)>,
}

/// The start of a report of any version.
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
        // Reading a folder would fail with "is a directory", which does not explain that fit writes one file for each tokenizer.
        if path.is_dir() {
            return Err(Error::input(path.display(), "is a folder", "give its file for the tokenizer"));
        }
        let io::FileContent { bytes, source } = io::read_whole(path, LIMIT, job)?;
        let refused = |problem: String| {
            let remedy = "give a file that drift fit wrote for a tokenizer";
            Error::input(path.display(), problem, remedy)
        };
        let unlike = |e: serde_json::Error| refused(format!("is not a result of drift fit: {e}"));
        // A report of another version lacks fields, and its schema explains why.
        let Head { schema } = serde_json::from_slice(&bytes).map_err(unlike)?;
        if schema != SCHEMA {
            return Err(refused(format!("its schema is {schema}, not {SCHEMA}")));
        }
        let report: FitReport = serde_json::from_slice(&bytes).map_err(unlike)?;
        let results = report.results.into_iter().map(|result| FittedPlaceholder {
            classes: best_partition(&report.objective, &result.classes).map(FittedClasses::of),
            tokenizer: result.tokenizer,
            tokenizer_sha256: result.tokenizer_sha256,
            encoding: result.encoding,
            placeholder: result.placeholder,
        });
        Ok(FittedFile { results: results.collect(), source, place: path.display().to_string() })
    }

    /// Returns what was fitted for a tokenizer, identified by its file's hash or else by its name.
    ///
    /// # Errors
    /// If nothing was fitted for it.
    pub fn of(&self, tokenizer: &Tokenizer, encoding: Encoding) -> Result<&FittedPlaceholder> {
        let own = || self.results.iter().filter(|result| result.encoding == encoding);
        let by_hash = own().find(|result| result.tokenizer_sha256 == tokenizer.source.sha256);
        // The hash is exact. The name is for a tokenizer that was saved again with different bytes.
        by_hash.or_else(|| own().find(|result| result.tokenizer == tokenizer.name)).ok_or_else(|| {
            let name =
                |result: &FittedPlaceholder| format!("{}, {}", result.tokenizer, result.encoding.name());
            let held = self.results.iter().map(name).collect::<Vec<String>>().join("; ");
            let held = if held.is_empty() { "none" } else { &held };
            let problem = format!(
                "contains no placeholder for {}, {} dialect, but for {held}",
                tokenizer.name,
                encoding.name()
            );
            let command = DriftCommand::new("fit")
                .option("--tokenizer", &tokenizer.place)
                .option("--encoding", encoding.argument())
                .option("-o", "placeholders");
            Error::input(&self.place, problem, format!("{command} fits it"))
        })
    }

    /// Returns the path of the file, for messages.
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
