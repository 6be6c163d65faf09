//! Arguments that several verbs take: encodings, frames, SMILES, `-` for stdout. Also the names of the library's parameters
//! on the command line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::CommandFactory;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::help;
use drift_core::checkpoint::{RequiredFiles, locate};
use drift_core::encoding::{EncodingRequest, Precision, Reading, TrailingZeros};
use drift_core::{Encoding, Error, Job};
use drift_data::audit::geometry::COVERAGE_THRESHOLD_ANGSTROM;
use drift_data::corpus::names::{ColumnChoice, whole_smiles};
use drift_data::corpus::{Frame, Names, OpenStereo, ReadOptions, RowFilter, SmilesSource};

/// How numbers are written.
pub(super) const DIALECTS: [Choice<TrailingZeros>; 2] = [
    ("fixed", TrailingZeros::Kept, "All decimals: four, or as many as --decimals says"),
    ("stripped", TrailingZeros::Removed, "Without trailing zeros and a trailing point"),
];

/// Whether trailing zeros are kept or removed; `None` where the data decide.
pub(super) type DialectOrAuto = Option<TrailingZeros>;

/// How numbers are written, or `auto`, which takes it from the data.
pub(super) const DIALECTS_OR_AUTO: [Choice<DialectOrAuto>; 3] = [
    ("fixed", Some(TrailingZeros::Kept), ""),
    ("stripped", Some(TrailingZeros::Removed), ""),
    ("auto", None, ""),
];

/// How coordinates are written.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct EncodingArgs {
    /// How coordinates are written.
    #[arg(long, help = help::encoding("How coordinates are written"), value_name = "E", allow_hyphen_values = true, conflicts_with_all = ["decimals", "separator"])]
    encoding: Option<Encoding>,
    /// Decimals of coordinates, 0 to 6; more are cut off [default: 4, and more are refused]
    #[arg(long, value_name = "N")]
    decimals: Option<Precision>,
    /// What separates the numbers of a block [default: comma]
    #[arg(id = "separator", long, value_name = "comma|space", hide_possible_values = true, value_parser = choice(&[("comma", false, ""), ("space", true, "")]))]
    spaces: Option<bool>,
}

impl EncodingArgs {
    /// Returns how texts are read, and in which encoding coordinates without text are taken.
    pub(super) fn reading(self) -> Reading {
        self.asked(None).reading(Encoding::FIXED)
    }

    /// Returns the encoding that was asked for, with trailing zeros kept or removed.
    pub(super) fn asked(self, zeros: Option<TrailingZeros>) -> EncodingRequest {
        EncodingRequest { encoding: self.encoding, zeros, precision: self.decimals, spaces: self.spaces }
    }
}

/// The frame that conformers are turned into as they are read.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct FrameArgs {
    /// The frame to turn conformers into: keep, principal or first-atoms
    #[arg(long, value_name = "FRAME", hide_possible_values = true, value_parser = choice(&FRAMES), default_value = "keep")]
    pub frame: Frame,
}

/// The frames of coordinates.
pub(super) const FRAMES: [Choice<Frame>; 3] = [
    ("keep", Frame::Keep, "As in the file"),
    (
        "principal",
        Frame::Principal,
        "The centre of mass at the origin, the principal axes on x (longest), y and z",
    ),
    (
        "first-atoms",
        Frame::FirstAtoms,
        "The first heavy atom of the text at the origin, the second on x, the next one off their line in the plane of x and y",
    ),
];

/// The options for the SMILES of molecules whose files have no text.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SmilesArgs {
    /// The item or key with the SMILES [default: canonical_smiles, smiles]
    #[arg(long, value_name = "NAME")]
    property: Option<String>,
    /// The item with a molecule's name [default: the title, id, name, …]
    #[arg(long, value_name = "NAME")]
    name_property: Option<String>,
    /// The names in a table of SMILES [default: id, cid, …, name, title]
    #[arg(long, value_name = "COLUMN")]
    name_column: Option<String>,
    /// The SMILES in a table of SMILES [default: canonical_smiles, …]
    #[arg(long, value_name = "COLUMN")]
    smiles_column: Option<String>,
    /// Conformers whose SMILES leaves their stereo open
    #[arg(long, value_name = "keep|skip", hide_possible_values = true, value_parser = choice(&OPEN_STEREO), default_value = "keep")]
    open_stereo: OpenStereo,
    #[command(flatten)]
    rows: RowArgs,
}

/// The option for the rows of tables and JSON Lines that are read.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct RowArgs {
    /// The rows of tables and JSONL to read; repeat it for more
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    conditions: Vec<String>,
}

impl RowArgs {
    /// Returns the filter that was asked for.
    pub(super) fn filter(&self) -> Result<RowFilter, Error> {
        RowFilter::new(self.conditions.iter().map(String::as_str))
    }
}

const OPEN_STEREO: [Choice<OpenStereo>; 2] = [
    ("keep", OpenStereo::Keep, "Take them as the molecule of the SMILES, and count them"),
    ("skip", OpenStereo::Skip, "Skip them"),
];

impl SmilesArgs {
    /// Returns how files are read, with SMILES by the names of a file if one was given.
    pub(super) fn options(
        &self,
        reading: Reading,
        names: Option<&Path>,
        job: &Job,
    ) -> Result<ReadOptions, Error> {
        // A value that is not a file may be a SMILES.
        let whole = names.filter(|path| !path.exists()).and_then(Path::to_str).and_then(whole_smiles);
        let columns = ColumnChoice {
            name: self.name_column.as_deref().map(Into::into),
            smiles: self.smiles_column.as_deref().map(Into::into),
        };
        let names = names.filter(|_| whole.is_none());
        let names = names.map(|path| Names::with_columns(path, &columns, job)).transpose()?.map(Arc::new);
        let smiles = SmilesSource {
            names,
            whole: whole.map(Into::into),
            property: self.property.as_deref().map(Into::into),
            name_property: self.name_property.as_deref().map(Into::into),
            open_stereo: self.open_stereo,
            ..SmilesSource::default()
        };
        Ok(ReadOptions { rows: self.rows.filter()?, ..ReadOptions::new(reading, smiles) })
    }
}

/// [`SmilesArgs`] with `--smiles-of`, for verbs that read conformers but do not encode them.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SmilesOfArgs {
    /// The SMILES of conformers: a file by their names, or one for all
    #[arg(long, value_name = "FILE|SMILES")]
    pub smiles_of: Option<PathBuf>,
    #[command(flatten)]
    smiles: SmilesArgs,
}

impl SmilesOfArgs {
    /// Returns the first of its options that was given, for a command without conformers to refuse.
    pub(super) fn given(&self) -> Option<&'static str> {
        let smiles = &self.smiles;
        let options = [
            ("--smiles-of", self.smiles_of.is_some()),
            ("--property", smiles.property.is_some()),
            ("--name-property", smiles.name_property.is_some()),
            ("--name-column", smiles.name_column.is_some()),
            ("--smiles-column", smiles.smiles_column.is_some()),
            ("--open-stereo", smiles.open_stereo != OpenStereo::Keep),
            ("--where", !smiles.rows.conditions.is_empty()),
        ];
        options.into_iter().find(|option| option.1).map(|option| option.0)
    }

    /// Refuses its options for a corpus that needs none of them: the built-in one, if no files are given. It refuses `--where` itself.
    pub(super) fn check_for(&self, corpus: &[PathBuf]) -> Result<(), Error> {
        let option = self.given().filter(|option| corpus.is_empty() && *option != "--where");
        let problem = "is for files of conformers, and none is read";
        option.map_or(Ok(()), |option| Err(Error::input(option, problem, "leave it out, or give --corpus")))
    }

    /// Returns how files are read.
    pub(super) fn options(&self, reading: Reading, job: &Job) -> Result<ReadOptions, Error> {
        self.smiles.options(reading, self.smiles_of.as_deref(), job)
    }
}

/// The largest threshold. No two conformers of a molecule differ by more.
const MAX_THRESHOLD_ANGSTROM: f64 = 100.0;

/// Parses a threshold of coverage, in Å.
pub(super) fn threshold(text: &str) -> Result<f64, &'static str> {
    let above_zero = length(text).ok().filter(|angstrom| *angstrom > 0.0);
    above_zero.ok_or("give a length in Å above 0, at most 100")
}

/// Parses a length, in Å.
pub(super) fn length(text: &str) -> Result<f64, &'static str> {
    let known = text.parse().ok().filter(|angstrom| (0.0..=MAX_THRESHOLD_ANGSTROM).contains(angstrom));
    known.ok_or("give a length in Å, 0 to 100")
}

/// Returns the thresholds without duplicates, ascending; by default 3DMolGen's.
pub(super) fn thresholds(asked: &[f64]) -> Vec<f64> {
    let mut all = asked.to_vec();
    if all.is_empty() {
        all.push(COVERAGE_THRESHOLD_ANGSTROM);
    }
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// A value with its name on the command line, and what completions of the shell say of it; may be empty.
pub(super) type Choice<T> = (&'static str, T, &'static str);

/// Parses the name of one of these values.
pub(super) fn choice<T: Copy + Send + Sync + 'static>(
    all: &[Choice<T>],
) -> impl TypedValueParser<Value = T> + use<T> {
    let all = all.to_vec();
    let help = |help: &'static str| Some(help).filter(|help| !help.is_empty());
    let values = all.iter().map(|choice| PossibleValue::new(choice.0).help(help(choice.2)));
    PossibleValuesParser::new(values).try_map(move |given| {
        let found = all.iter().find(|choice| choice.0 == given);
        found.map(|choice| choice.1).ok_or_else(|| format!("there is no `{given}`"))
    })
}

/// Parses the name of one of the values in `all`.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &[T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> + use<T> {
    choice(&all.iter().map(|one| (name(*one), *one, "")).collect::<Vec<_>>())
}

/// Replaces models or tokenizers, given as paths or names, by their locations.
pub(super) fn found<'g>(
    given: impl IntoIterator<Item = &'g mut PathBuf>,
    wanted: RequiredFiles,
) -> Result<(), Error> {
    for path in given {
        *path = locate(path, wanted)?;
    }
    Ok(())
}

/// Returns whether a path stands for stdout.
pub(super) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Returns the path, unless it stands for stdout.
pub(super) fn not_stdout(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !is_stdout(path))
}

/// Returns the folder; refuses a path that stands for stdout.
pub(super) fn folder_alone<'p>(option: &str, path: &'p Path) -> Result<Option<&'p Path>, Error> {
    if is_stdout(path) {
        let place = format!("{option} -");
        return Err(Error::input(place, "stdout cannot be a folder", "give the name of a folder"));
    }
    Ok(Some(path))
}

/// Refuses `-` for files that stdout does not take, with what it takes as the problem.
pub(super) fn files_alone(files: &[(&str, &Option<PathBuf>)], problem: &str) -> Result<(), Error> {
    let wrong = files.iter().find(|(_, path)| path.as_deref().is_some_and(is_stdout));
    wrong.map_or(Ok(()), |(option, _)| {
        Err(Error::input(format!("{option} -"), problem, "give the name of a file"))
    })
}

/// Returns a message of the library, with parameters named by their flags.
pub(super) fn in_flags(message: &str) -> String {
    let mut parts = message.split('‘');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('’').and_then(|(name, rest)| Some((flag(name)?, rest))) {
            Some((flag, rest)) => text.extend([&flag, rest]),
            None => text.extend(["‘", part]),
        }
    }
    text
}

/// Returns the flag of a parameter, such as `--tokens-per-block`; `None` if no verb has this flag.
fn flag(name: &str) -> Option<String> {
    let long = match name {
        "logit processor" => "lp".to_owned(),
        words => words.replace(' ', "-"),
    };
    let verbs = super::Cli::command();
    let mut flags = verbs.get_subcommands().flat_map(clap::Command::get_arguments);
    flags.any(|flag| flag.get_long() == Some(&long)).then(|| format!("--{long}"))
}

#[cfg(test)]
mod tests {
    use drift_tune::parameter;

    use super::*;

    #[test]
    fn parameters_are_called_by_their_flags() {
        let error = Error::parameter(parameter::TOKENS_PER_BLOCK, "too few", "give a smaller ‘range’");
        assert_eq!(in_flags(&error.to_string()), "--tokens-per-block: too few; give a smaller --range");
    }

    /// Includes parameters that a crate adds later: the names are read from its module.
    #[test]
    fn every_parameter_has_a_flag() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for (of_crate, least) in [("core", 3), ("data", 8), ("tune", 10), ("engine", 20)] {
            let text = std::fs::read_to_string(source.join(of_crate).join("parameter.rs")).unwrap();
            let names = text.split("Parameter::new(").skip(1).map(|part| part.split('"').nth(1).unwrap());
            let (with, without): (Vec<&str>, Vec<&str>) = names.partition(|name| flag(name).is_some());
            assert!(with.len() >= least && without.is_empty(), "{of_crate}: {without:?} of {with:?}");
        }
        assert_eq!(flag("no such parameter"), None);
    }

    #[test]
    fn what_is_no_parameter_stays_in_its_quotes() {
        for text in ["x: ‘no such’; ‘", "’‘’", "a ‘range", ""] {
            assert_eq!(in_flags(text), text);
        }
    }
}
