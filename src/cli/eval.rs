//! `drift eval`: generates texts under each logit processor and measures the results.

use std::path::{Path, PathBuf};

use super::energy::EnergyArgs;
use super::eval_args::Args;
use super::eval_output::{Targets, render, texts};
use super::generation::{check_shards, find, generate_plan, show_shard, tell_kept, told_molecules};
use super::invocation::Invocation;
use super::output::Output;
use super::values::{files_alone, is_stdout, not_stdout, thresholds};
use crate::report::trace::chrome_trace;
use drift_core::chem::AtomLimit;
use drift_core::run_files::RunFiles;
use drift_core::{Error, Job};
use drift_data::audit::MissingPolicy;
use drift_data::prompts::Molecules;
use drift_data::shard::{FILE, Manifest, Shard};
use drift_engine::eval::plan::EvalPlan;
use drift_engine::eval::{OtherTexts, evaluate, evaluate_shard};
use drift_engine::model::{Config, Device};
use drift_engine::runs::plan::GeneratePlan;
use drift_engine::runs::{JournalEntry, TextStore};

/// Reads the molecules, generates and judges texts, writes the files and shows the tables.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    find(&mut args.generate.model)?;
    let targets = targets(&args)?;
    targets.check(invocation.files())?;
    let plan = plan(&args, Device::parse, job, output)?;
    one_run(&args, &plan)?;
    kept_for_energies(&args)?;
    let printed = StdoutResult::of(&args, output)?;
    let folder = not_stdout(args.output.as_deref());
    let molecules = told_molecules(&args.generate, &plan.generate, job, output)?;
    check_references(&args, &molecules)?;
    let manifest = folder.map(|_| manifest(&args, invocation)).transpose()?;
    let begun =
        folder.zip(manifest).map(|(folder, manifest)| manifest.begin::<JournalEntry>(folder)).transpose()?;
    let inputs = plan.generate.inputs(&molecules);
    let mut kept = TextStore::new(inputs, begun, args.running.shard)?;
    tell_kept(&kept, output);
    if let Some(shard) = args.running.shard {
        check_shards(format!("--shard {shard}"), shard.of(), &molecules)?;
        return show_shard(shard, &evaluate_shard(&plan, &molecules, &mut kept, job)?, output);
    }
    let mut evaluation = evaluate(&plan, &molecules, &mut kept, job)?;
    evaluation.report.command = invocation.command();
    if evaluation.report.interrupted && evaluation.texts.is_empty() {
        return Err(Error::Interrupted.into());
    }
    let journal = folder.map(|folder| folder.join(FILE)).filter(|_| !evaluation.report.interrupted);
    targets.write(&plan, &evaluation, journal.as_deref())?;
    match printed {
        StdoutResult::Tables => output.text(&render(&evaluation.report, args.verbose, folder, output))?,
        StdoutResult::Record => output.document(&evaluation.report)?,
        StdoutResult::Texts => output.text(&texts(&evaluation)?)?,
        StdoutResult::Trace => output.text(&chrome_trace(&evaluation.spans).to_string())?,
    }
    if evaluation.report.interrupted {
        let goes_on = if folder.is_some() { "; the same command goes on" } else { "" };
        let kept = format!("the record contains what was finished{goes_on}");
        return Err(Error::Stopped { kept }.into());
    }
    Ok(())
}

/// Returns the manifest that identifies the kept texts. Without `--shard` it leaves out the energy options: energies are computed after
/// all texts are written, so a program that failed may be replaced. A shard keeps them, since a merge takes the program from the shards.
fn manifest(args: &Args, invocation: &Invocation) -> Result<Manifest, Error> {
    match args.running.shard {
        Some(shard) => invocation.manifest(Some(shard)),
        None => invocation.without(&EnergyArgs::OPTIONS).manifest(None),
    }
}

/// Finishes the command with the texts of its shards.
pub(super) fn merge(
    manifest: &Manifest,
    (shards, is_partial): (Vec<(Shard, Vec<JournalEntry>)>, bool),
    targets: &Targets,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    files_alone(&[("--texts", &targets.texts)], "stdout takes the tables or the record")?;
    let mut args: Args = Invocation::parsed(manifest)?;
    find(&mut args.generate.model)?;
    // Files that the merge names take precedence over the files that the shards' command names.
    args.verdicts = targets.verdicts.clone().or(args.verdicts);
    args.matrix = targets.matrix.clone().or(args.matrix);
    args.molecules = targets.molecules.clone();
    let (verdicts, matrix) = (args.verdicts.clone(), args.matrix.clone());
    let cache = args.judging.energy.cache().map(Path::to_owned);
    let targets = &Targets { verdicts, matrix, cache, ..targets.clone() };
    targets.check(files)?;
    let plan = plan(&args, Device::elsewhere, job, output)?;
    one_run(&args, &plan)?;
    let molecules = told_molecules(&args.generate, &plan.generate, job, output)?;
    check_references(&args, &molecules)?;
    let mut kept = TextStore::merged(plan.generate.inputs(&molecules), shards, is_partial)?;
    let mut evaluation = evaluate(&plan, &molecules, &mut kept, job)?;
    evaluation.report.command = Some(Invocation::command_of(manifest));
    targets.write(&plan, &evaluation, None)?;
    match output.json || targets.folder.as_deref().is_some_and(is_stdout) {
        true => output.document(&evaluation.report),
        false => output.text(&render(
            &evaluation.report,
            args.verbose,
            not_stdout(targets.folder.as_deref()),
            output,
        )),
    }
}

/// Checks a command for shards as [`run`] would, as far as possible without weights. `files`: its inputs and the files of its jobs.
pub(super) fn check_array(
    mut args: Args,
    shards: u32,
    files: RunFiles,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    find(&mut args.generate.model)?;
    targets(&args)?.check(files)?;
    for folder in &args.generate.model.model {
        Config::load(folder)?;
    }
    let plan = plan(&args, Device::elsewhere, job, output)?;
    let molecules = told_molecules(&args.generate, &plan.generate, job, output)?;
    check_references(&args, &molecules)?;
    Ok(check_shards(format!("--array {shards}"), shards, &molecules)?)
}

/// Returns the files that were asked for.
fn targets(args: &Args) -> Result<Targets, Error> {
    Ok(Targets {
        folder: args.output.clone(),
        texts: args.texts.clone(),
        molecules: args.molecules.clone(),
        trace: args.running.trace.clone(),
        verdicts: args.verdicts.clone(),
        matrix: args.matrix.clone(),
        energies: args.judging.energy.list()?,
        cache: args.judging.energy.cache().map(Path::to_owned),
    })
}

/// Requires `-o DIR` with `--energy`, so that texts that took hours are not lost if the energy program fails.
fn kept_for_energies(args: &Args) -> Result<(), Error> {
    if args.judging.energy.is_asked() && not_stdout(args.output.as_deref()).is_none() {
        let problem = "the texts would be lost if the program failed";
        return Err(Error::input("--energy", problem, "give -o DIR, which keeps them"));
    }
    Ok(())
}

/// Refuses options that are for references where there are none: a matrix would have no column, and there is no coverage.
fn check_references(args: &Args, molecules: &Molecules) -> Result<(), Error> {
    let options = [
        ("--matrix", args.matrix.is_some()),
        ("--threshold", !args.judging.threshold.is_empty()),
        ("--missing", args.judging.missing != MissingPolicy::default()),
    ];
    let Some((name, _)) = options.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
    match molecules.molecules.iter().all(|molecule| molecule.conformers.is_empty()) {
        true => {
            let problem = "there are no reference conformers to compare texts with";
            Err(Error::input(name, problem, "give --references, or --corpus in place of --smiles"))
        }
        false => Ok(()),
    }
}

/// Refuses `--matrix` if there is more than one run, since a matrix holds the texts of one run.
fn one_run(args: &Args, plan: &EvalPlan) -> Result<(), Error> {
    let GeneratePlan { models, processors, placeholders, .. } = &plan.generate;
    let runs = models.len() * processors.len().max(placeholders.len());
    match &args.matrix {
        Some(_) if runs > 1 => {
            let problem =
                format!("takes one model, logit processor and placeholder, but there are {runs} runs");
            Err(Error::input("--matrix", problem, "give one --model and one --lp"))
        }
        _ => Ok(()),
    }
}

/// The result that goes to stdout.
enum StdoutResult {
    Tables,
    Record,
    Texts,
    Trace,
}

impl StdoutResult {
    /// Returns the result that was asked for; the tables by default.
    fn of(args: &Args, output: &Output) -> Result<Self, Error> {
        let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
        let asked = [
            (output.json, "--json", StdoutResult::Record),
            (!output.json && to_stdout(&args.output), "-o -", StdoutResult::Record),
            (to_stdout(&args.texts), "--texts -", StdoutResult::Texts),
            (to_stdout(&args.running.trace), "--trace -", StdoutResult::Trace),
        ];
        let mut asked = asked.into_iter().filter(|(is_asked, ..)| *is_asked);
        let Some((_, first, printed)) = asked.next() else { return Ok(StdoutResult::Tables) };
        match asked.next() {
            None => Ok(printed),
            Some((_, second, _)) => {
                let problem = format!("{first} already writes to stdout");
                Err(Error::input(second, problem, "write one of them to a file"))
            }
        }
    }
}

/// Returns the complete, checked plan of the command line.
pub(super) fn plan(
    args: &Args,
    open: impl Fn(&str) -> Result<Device, Error>,
    job: &Job,
    output: &Output,
) -> anyhow::Result<EvalPlan> {
    let Args { generate, judging, running, .. } = args;
    let evidence = not_stdout(args.output.as_deref()).map(|folder| folder.join("self-check"));
    Ok(EvalPlan {
        generate: generate_plan(generate, running, evidence, open, job, output)?,
        thresholds: thresholds(&judging.threshold),
        ensembles: judging.ensembles.measures()?,
        missing: judging.missing,
        by_text: args.verdicts.is_some() || args.matrix.is_some(),
        by_molecule: args.molecules.is_some(),
        strip_junk: judging.strip_junk,
        max_atoms: AtomLimit(judging.max_atoms),
        likelihood: judging.likelihood,
        same_as: judging
            .same_as
            .as_deref()
            .map(|path| OtherTexts::read(path, job))
            .transpose()?
            .map(Into::into),
        // Shards only write texts, so that they do not share a cache of energies. The merge computes the energies.
        energy: match running.shard {
            Some(_) => None,
            None => judging.energy.energies()?.map(Into::into),
        },
    })
}
