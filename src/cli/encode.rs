//! `drift encode`: conformers in, training text out.

use std::path::PathBuf;

use super::output::{Aside, Output};
use super::values::{BlockArgs, FrameArg, SmilesArgs, is_stdout, not_stdout};
use crate::corpus::{ReadOptions, SmilesSource};
use crate::encode::{EncodePlan, EncodeReport, encode};
use crate::error::Error;
use crate::io::{AtomicFile, Outputs};
use crate::job::Job;
use crate::report::format::{counted, thousands};

/// The command line of `drift encode`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files and folders, known by content: RDKit pickles, SDF, XYZ, GEOM msgpack; each also gzipped or in a .tar(.gz)
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The file to write, JSON Lines: {id, canonical_smiles, embedded_smiles, embedded_smiles_stripped}; `-` for stdout
    #[arg(short, long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// SMILES by the name of a molecule: `SMILES NAME` a line, or CSV or JSONL with a column of names; before what the input says
    #[arg(long, value_name = "FILE")]
    smiles: Option<PathBuf>,
    #[command(flatten)]
    source: SmilesArgs,
    /// The frame of coordinates: as in the file, or centre of mass at the origin and principal axes on x, y, z
    #[arg(long, value_enum, default_value = "keep")]
    frame: FrameArg,
    #[command(flatten)]
    blocks: BlockArgs,
}

/// Reads, orders, writes, tells.
pub(super) fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    let to_stdout = is_stdout(&args.output);
    if output.json && to_stdout {
        let problem = "stdout is for --json already";
        return Err(Error::input("-o -", problem, "give the text a file").into());
    }
    let outputs = Outputs::new().file("-o", not_stdout(Some(&args.output)))?;
    let mut inputs = args.inputs.clone();
    inputs.extend(args.smiles.clone());
    outputs.apart_from(&inputs)?;
    let smiles = SmilesSource { required: true, ..args.source.source(args.smiles.as_deref(), job)? };
    let options = ReadOptions { frame: args.frame.into(), reading: args.blocks.reading(), smiles };
    let plan = EncodePlan { inputs: args.inputs, options };
    let report = if to_stdout {
        let mut aside = Aside::new()?;
        let report = encode(&plan, job, &mut |bytes| aside.put(bytes))?;
        aside.show(output)?;
        report
    } else {
        let mut file = AtomicFile::create(&args.output)?;
        let report = encode(&plan, job, &mut |bytes| file.put(bytes))?;
        file.commit()?;
        report
    };
    if output.json {
        return output.document(&report);
    }
    tell(&report, output);
    Ok(())
}

/// How many conformers were written, and which were not.
fn tell(report: &EncodeReport, output: &Output) {
    super::skipped::tell(report.skipped, &report.skipped_records, output);
    for (reason, count) in &report.skipped_by_reason {
        output.note(&format!("{}: {reason}", thousands(*count)));
    }
    super::skipped::tell_open_stereo(report.open_stereo, &report.open_stereo_records, output);
    output.note(&format!(
        "{} encoded, {} skipped",
        counted(report.conformers, "conformer"),
        thousands(report.skipped)
    ));
}
