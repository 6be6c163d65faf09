//! `drift encode`: writes conformers as training text.

use std::path::{Path, PathBuf};

use super::help::{CONFORMERS, NUMBERS, OUTPUT};
use super::invocation::Invocation;
use super::output::Output;
use super::shards::{ShardArgs, ShardOf};
use super::values::{Choice, EncodingArgs, FrameArgs, SmilesArgs, choice, not_stdout, one_of};
use crate::report::format::{counted, percent, thousands};
use drift_core::checkpoint::{RequiredFiles, locate};
use drift_core::encoding::{OutOfRange, Reading};
use drift_core::run_files::RunFiles;
use drift_core::{Encoding, Error, Job, Tokenizer};
use drift_data::encode::{
    EncodePlan, EncodeReport, LineSink, PackPlan, PackedUnits, encode, encode_packed, encode_shard,
    merge_encoded,
};
use drift_data::flaws::FlawKind;
use drift_data::shard::Manifest;
use drift_data::shard::files::MergedFiles;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 5] = [
    "drift encode rdkit_folder -o corpus.jsonl",
    "drift encode conformers.sdf --smiles names.csv --frame first-atoms -o corpus.jsonl",
    "drift encode corpus.jsonl --encoding binned-v1:-21,21,0.05 -o bins.jsonl",
    "drift encode train.csv.zst --drop duplicate-conformer,stereo -o clean.jsonl",
    "drift encode clean.jsonl --pack 4096 --tokenizer Qwen/Qwen3-0.6B -o units.jsonl",
];

/// The command line of `drift encode`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files and folders, recognised by content: pickles, SDF, XYZ, msgpack, and texts in JSONL, CSV or TSV; also compressed or in archives
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Write the texts of conformers, a line of JSON each; `-` prints them. With --shard, a folder
    #[arg(short, long, value_name = "FILE.jsonl", help_heading = OUTPUT)]
    output: PathBuf,
    /// The SMILES of molecules: a file by their names, or one SMILES for all
    #[arg(long, value_name = "FILE|SMILES", help_heading = CONFORMERS)]
    smiles: Option<PathBuf>,
    #[command(flatten, next_help_heading = CONFORMERS)]
    source: SmilesArgs,
    #[command(flatten, next_help_heading = CONFORMERS)]
    frame: FrameArgs,
    #[command(flatten, next_help_heading = NUMBERS)]
    blocks: EncodingArgs,
    /// The encoding of input texts that do not name theirs
    #[arg(long, value_name = "E", allow_hyphen_values = true, help_heading = NUMBERS)]
    input_encoding: Option<Encoding>,
    /// Conformers with a coordinate outside the range of the encoding
    #[arg(long, value_parser = choice(&OUT_OF_RANGE), value_name = "clip|skip", hide_possible_values = true, default_value = "clip", help_heading = NUMBERS)]
    out_of_range: OutOfRange,
    /// Leave out: duplicate-text, duplicate-conformer, coincident-atoms, short-bond, long-bond, fragments, stereo
    #[arg(long, value_name = "KIND", hide_possible_values = true, value_delimiter = ',', value_parser = one_of(&FlawKind::ALL, FlawKind::name), help_heading = CONFORMERS)]
    drop: Vec<FlawKind>,
    #[command(flatten, next_help_heading = "Packing")]
    pack: PackArgs,
    #[command(flatten)]
    shard: ShardArgs,
}

/// How texts are packed.
#[derive(Debug, clap::Args)]
struct PackArgs {
    /// Write units of several conformers of a molecule, of at most N tokens; none is cut
    #[arg(long, value_name = "N", requires = "tokenizer", conflicts_with = "shard")]
    pack: Option<usize>,
    /// The tokenizer that counts: a file, a model folder, org/name, or a built-in one
    #[arg(long, value_name = "T", requires = "pack", conflicts_with = "shard")]
    tokenizer: Option<PathBuf>,
    /// Units of a target behind up to K examples, conformers of other molecules before it
    #[arg(long, value_name = "K", requires = "pack", conflicts_with = "shard")]
    examples: Option<usize>,
    /// Units of any molecules, each conformer behind its own prompt
    #[arg(long, requires = "pack", conflicts_with_all = ["examples", "shard"])]
    mixed: bool,
    /// What stands between the texts of a unit; \n is a line end [default: nothing, or \n before a prompt]
    #[arg(
        long,
        value_name = "TEXT",
        requires = "pack",
        conflicts_with = "shard",
        allow_hyphen_values = true
    )]
    pack_separator: Option<String>,
}

impl PackArgs {
    /// Returns how texts are packed; `None` if they are not.
    fn plan(&self, job: &Job) -> Result<Option<PackPlan>, Error> {
        let (Some(tokens), Some(path)) = (self.pack, self.tokenizer.clone()) else { return Ok(None) };
        let path = locate(&path, RequiredFiles::Tokenizer)?;
        Ok(Some(PackPlan {
            tokens,
            tokenizer: Tokenizer::load_for(&path, job)?.0,
            units: match self.examples {
                Some(examples) => PackedUnits::Examples(examples),
                None if self.mixed => PackedUnits::Mixed,
                None => PackedUnits::Molecule,
            },
            separator: self.pack_separator.as_ref().map(|text| text.replace("\\n", "\n")),
        }))
    }
}

/// Reads the conformers, writes their texts and reports the counts.
pub(super) fn run(args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    let mut options = args.source.options(reading(&args), args.smiles.as_deref(), job)?;
    (options.frame, options.smiles.required) = (args.frame.frame, true);
    let pack = args.pack.plan(job)?;
    let plan = EncodePlan { inputs: args.inputs, options, drop: args.drop };
    if let Some(shard) = args.shard.shard {
        let (folder, inputs) = (Some(&*args.output), &*plan.inputs);
        let shard = ShardOf { shard, invocation, folder, inputs };
        return shard.run(job, output, |files, job| encode_shard(&plan, files, job));
    }
    encoded(&args.output, invocation.files(), output, |put| match &pack {
        Some(pack) => encode_packed(&plan, pack, job, put),
        None => encode(&plan, job, put),
    })
}

/// What to do with conformers out of range.
const OUT_OF_RANGE: [Choice<OutOfRange>; 2] = [
    ("clip", OutOfRange::Clip, "Write the coordinate as the end of the range, and count the conformer"),
    ("skip", OutOfRange::Skip, "Skip the conformer"),
];

/// Returns the encodings in which texts are read and written.
fn reading(args: &Args) -> Reading {
    Reading {
        texts: args.input_encoding,
        rewrites: true,
        out_of_range: args.out_of_range,
        ..args.blocks.reading()
    }
}

/// Joins the texts of all shards.
pub(super) fn merge(
    manifest: &Manifest,
    parts: &MergedFiles,
    (to, files): (&Path, RunFiles),
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    let args: Args = Invocation::parsed_writing(manifest, to)?;
    encoded(to, files, output, |put| merge_encoded(parts, reading(&args).encoding, job, put))
}

/// Writes what `each` puts out, and reports the counts.
fn encoded(
    to: &Path,
    files: RunFiles,
    output: &Output,
    each: impl FnOnce(&mut LineSink<'_>) -> Result<EncodeReport, Error>,
) -> anyhow::Result<()> {
    output.refuse_stdout(Some(to), "text")?;
    files.writes("-o", not_stdout(Some(to)))?.check()?;
    let report = output.pieces(to, each)?;
    if output.json {
        return output.document(&report);
    }
    tell(&report, output);
    Ok(())
}

/// Reports how many conformers were written, and which were skipped.
fn tell(report: &EncodeReport, output: &Output) {
    super::skipped::tell(report.skipped, &report.skipped_records, output);
    for (reason, count) in &report.skipped_by_reason {
        output.note(&format!("{}: {reason}", thousands(*count)));
    }
    super::skipped::tell_open_stereo(report.open_stereo, &report.open_stereo_records, output);
    if report.out_of_range > 0 {
        let beyond = counted(report.out_of_range, "conformer");
        output.note(&format!(
            "{beyond} with a coordinate outside the range of {}, written as the end of the range",
            report.encoding
        ));
    }
    super::skipped::tell_left_out(report.left_out, output);
    for (kind, count) in &report.dropped {
        output.note(&format!("{} left out with {kind}", counted(*count, "conformer")));
    }
    if report.stereo_unchecked > 0 {
        let count = counted(report.stereo_unchecked, "conformer");
        output.note(&format!("note: {count} with stereo marks that are not compared with coordinates (RDKit drops them, or neighbours are missing)"));
    }
    for (why, count) in &report.not_canonical {
        output.note(&format!(
            "note: {} with a SMILES that RDKit, and so 3DMolGen's encoder, would write differently: {why}; it is in the field `smiles`",
            counted(*count, "conformer")
        ));
    }
    output.note(&format!(
        "{} encoded, {} skipped",
        counted(report.conformers, "conformer"),
        thousands(report.skipped)
    ));
    if let Some(pack) = &report.pack {
        output.note(&format!(
            "{} of at most {} tokens of {} with {}: {} filled, {} longer than a unit",
            counted(pack.units, "unit"),
            thousands(pack.tokens_per_unit as u64),
            pack.tokenizer,
            counted(pack.conformers, "conformer"),
            percent(pack.filled_share),
            thousands(pack.too_long)
        ));
    }
}
