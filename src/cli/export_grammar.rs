//! `drift export-grammar`: writes the automaton of each molecule, or of each prompt of a skeleton, as a grammar for vLLM and SGLang.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::help::{MODEL, OUTPUT};
use super::invocation::Invocation;
use super::output::Output;
use super::skeletons::{self, SKELETONS, SkeletonArgs};
use super::values::{Choice, DIALECTS_OR_AUTO, DialectOrAuto, EncodingArgs, choice, found, not_stdout};
use crate::report::format::{counted, encoding_name, thousands};
use drift_core::checkpoint::RequiredFiles;
use drift_core::constraint::automaton::AnswerForm;
use drift_core::constraint::grammar::{GrammarFormat, llguidance_loads};
use drift_core::text::CONFORMER_OPEN;
use drift_core::tokenizer::{encoding_beside, end_beside};
use drift_core::{Encoding, Error, Job, Tokenizer};
use drift_data::export::{ExportPlan, ExportReport, ExportSource, export};
use drift_data::skeleton_tokens::SkeletonTexts;
use drift_tune::design::advice;

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 4] = [
    "drift export-grammar CCO",
    "drift export-grammar --tokenizer path/to/model --smiles molecules.smi -o grammars.jsonl",
    "drift export-grammar --tokenizer path/to/model --format ebnf 'CC=O'",
    "drift export-grammar --tokenizer path/to/model --skeleton xyz --prompts prompts.jsonl -o out.jsonl",
];

/// The heading of what grammars describe.
const GRAMMARS: &str = "Grammars";

/// The command line of `drift export-grammar`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The SMILES of one molecule
    #[arg(required_unless_present_any = ["smiles", "skeleton"], conflicts_with_all = ["smiles", "skeleton", "prompts", "begun"], value_name = "SMILES")]
    molecule: Option<String>,
    /// The molecules: a file with one SMILES per line, also gzipped
    #[arg(long, value_name = "FILE", conflicts_with_all = ["skeleton", "prompts", "begun"], help_heading = GRAMMARS)]
    smiles: Option<PathBuf>,
    /// Conformers in each answer, one after another
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = GRAMMARS)]
    conformers: u16,
    /// The prompt ends with `[CONFORMER]`, and the answer begins after it
    #[arg(long, help_heading = GRAMMARS)]
    opened: bool,
    /// The end of prompts, if not `[/SMILES]`: behind a chat, what stands before the answer
    #[arg(long, value_name = "TEXT", help_heading = GRAMMARS)]
    prompt_end: Option<String>,
    /// The tokenizer: a file, a model folder, org/name in the cache of Hugging Face, or a built-in one
    #[arg(long, value_name = "TOKENIZER", default_value = "qwen-like", help_heading = MODEL)]
    tokenizer: PathBuf,
    /// The token that ends a text [default: as the files beside the tokenizer name it]
    #[arg(long, value_name = "TOKEN", help_heading = MODEL)]
    eos: Option<String>,
    /// How the model writes decimals: fixed, stripped, or auto, as its files say
    #[arg(long, conflicts_with = "encoding", value_parser = choice(&DIALECTS_OR_AUTO), hide_possible_values = true, default_value = "auto", help_heading = MODEL)]
    dialect: DialectOrAuto,
    #[command(flatten, next_help_heading = MODEL)]
    blocks: EncodingArgs,
    /// The format: lark (llguidance), ebnf (XGrammar) or json (the tables)
    #[arg(long, value_parser = choice(&FORMATS), hide_possible_values = true, default_value = "lark", help_heading = OUTPUT)]
    format: GrammarFormat,
    /// Write {smiles, skeleton, grammar} of each molecule, or {prompt, grammar} of each prompt, a line of JSON each
    #[arg(short, long, value_name = "FILE.jsonl", default_value = "-", help_heading = OUTPUT)]
    output: PathBuf,
    #[command(flatten)]
    skeletons: SkeletonArgs,
    /// The beginning of texts that prompts end with already: a marker, or more
    #[arg(long, value_name = "TEXT", requires = "skeleton", help_heading = SKELETONS)]
    begun: Option<String>,
}

const FORMATS: [Choice<GrammarFormat>; 3] = [
    (
        "lark",
        GrammarFormat::Lark,
        "For llguidance (called `guidance` in vLLM, `llguidance` in SGLang), and XGrammar from 0.2.6 on",
    ),
    ("ebnf", GrammarFormat::Ebnf, "For XGrammar"),
    ("json", GrammarFormat::Json, "The tables themselves, for a sampler of your own"),
];

/// The EOS id for grammar formats that do not contain it, since their engine ends the text itself.
const NO_END: u32 = u32::MAX;

/// Reads the molecules, writes their grammars and reports the counts.
pub(super) fn run(mut args: Args, invocation: &Invocation, job: &Job, output: &Output) -> anyhow::Result<()> {
    found([&mut args.tokenizer], RequiredFiles::Tokenizer)?;
    output.refuse_stdout(Some(&args.output), "grammars")?;
    invocation.files().writes("-o", not_stdout(Some(&args.output)))?.check()?;
    let path = args.output.clone();
    if let Some(files) = args.skeletons.files() {
        refuse_for_skeletons(&args)?;
        let texts = skeletons::texts(files, &args.tokenizer, job)?;
        let texts = SkeletonTexts { begun: args.begun.unwrap_or_default(), ..texts };
        return of_skeleton(texts, args.format, &path, job, output);
    }
    let plan = plan(args, job, output)?;
    let report = output.pieces(&path, |put| export(&plan, job, put))?;
    if output.json {
        return output.document(&report);
    }
    tell(&report, output);
    Ok(())
}

/// Writes the grammars of a skeleton's texts.
fn of_skeleton(
    texts: SkeletonTexts,
    format: GrammarFormat,
    to: &Path,
    job: &Job,
    output: &Output,
) -> anyhow::Result<()> {
    note_unloadable(&texts.tokenizer, format, output);
    let report = output.pieces(to, |put| texts.grammars(format, job, put))?;
    if output.json {
        return output.document(&report);
    }
    let [least, most] = report.line_bytes.map(thousands);
    let grammars = counted(report.grammars, "grammar");
    output.note(&format!("{grammars} of {} as {format}, {least} to {most} bytes each", report.skeleton));
    note_prompt_ids(report.with_prompt_ids, output);
    Ok(())
}

/// Refuses what only enriched SMILES has.
fn refuse_for_skeletons(args: &Args) -> Result<(), Error> {
    let asked = args.blocks.asked(args.dialect);
    let given = [
        ("--encoding", asked.encoding.is_some()),
        ("--dialect", asked.zeros.is_some()),
        ("--decimals", asked.precision.is_some()),
        ("--separator", asked.spaces.is_some()),
        ("--conformers", args.conformers > 1),
        ("--opened", args.opened),
        ("--prompt-end", args.prompt_end.is_some()),
        ("--eos", args.eos.is_some()),
    ];
    let wrong = given.into_iter().find(|option| option.1);
    wrong.map_or(Ok(()), |(name, _)| Err(skeletons::meaningless(name)))
}

fn plan(args: Args, job: &Job, output: &Output) -> Result<ExportPlan, Error> {
    let (tokenizer, _) = Tokenizer::load_for(&args.tokenizer, job)?;
    let recipe = encoding_beside(&args.tokenizer)?;
    let asked = args.blocks.asked(args.dialect);
    if !asked.says_how() && recipe.is_none() {
        output.note(
            "note: no file says how the model writes numbers, so fixed is assumed; if that is wrong, give --dialect stripped",
        );
    }
    let eos = match &args.eos {
        Some(text) => Some(tokenizer.vocabulary_id(text).ok_or_else(|| {
            let problem = format!("`{text}` is not a token of {}", tokenizer.name);
            Error::input("--eos", problem, "give one of its tokens")
        })?),
        None => end_beside(&args.tokenizer, &tokenizer)?,
    };
    let (tokenizer, encoding) = (Arc::new(tokenizer), asked.over(recipe.unwrap_or(Encoding::FIXED)));
    let format = args.format;
    if format == GrammarFormat::Json && eos.is_none() {
        let remedy =
            "give --eos, or put a generation_config.json with an eos_token_id beside the tokenizer.json";
        return Err(Error::input(&tokenizer.name, "has no end-of-text token (EOS)", remedy));
    }
    let form = AnswerForm { conformers: args.conformers.into(), opened: args.opened };
    let mut processor = advice::automaton(&tokenizer, encoding, eos.unwrap_or(NO_END))?;
    if let Some(prompt_end) = &args.prompt_end {
        check_end(&tokenizer, prompt_end, form)?;
        processor = processor.behind(prompt_end)?;
    }
    note_unloadable(&tokenizer, format, output);
    Ok(ExportPlan {
        processor: processor.answering(form),
        tokenizer,
        encoding,
        source: match (args.smiles, args.molecule) {
            (Some(file), _) => ExportSource::File(file),
            (None, molecule) => ExportSource::Smiles(molecule.unwrap_or_default()),
        },
        format,
    })
}

/// Refuses an end of prompts that a token crosses: only the engine knows the prompts and their ids.
fn check_end(tokenizer: &Tokenizer, prompt_end: &str, form: AnswerForm) -> Result<(), Error> {
    let (tag, begun) = if form.opened { (CONFORMER_OPEN, "") } else { ("", CONFORMER_OPEN) };
    if tokenizer.prompt_ids_apart(&format!("{prompt_end}{tag}"), begun)?.is_none() {
        return Ok(());
    }
    let problem = "a token of this tokenizer crosses the end of such a prompt";
    let remedy = "end prompts in a line break or a special token, or leave the option out for prompts that end in [/SMILES]";
    Err(Error::input("--prompt-end", problem, remedy))
}

/// Reports how many grammars were written, and which molecules were skipped.
fn tell(report: &ExportReport, output: &Output) {
    super::skipped::tell(report.skipped, &report.skipped_records, output);
    let [least, most] = report.line_bytes.map(thousands);
    let range = if report.encoding.is_decimal() { ", numbers below 100 Å" } else { "" };
    output.note(&format!(
        "{} as {}, {least} to {most} bytes each, {} skipped; {}{range}",
        counted(report.molecules, "grammar"),
        report.format,
        thousands(report.skipped),
        encoding_name(report.encoding)
    ));
    note_prompt_ids(report.with_prompt_ids, output);
}

/// Tells that the engine of a format cannot load a tokenizer.
fn note_unloadable(tokenizer: &Tokenizer, format: GrammarFormat, output: &Output) {
    if format == GrammarFormat::Lark && !llguidance_loads(tokenizer) {
        output.note(
            "note: llguidance cannot load this tokenizer, because its decoder is neither ByteLevel nor ByteFallback; use XGrammar, with \
             --format ebnf",
        );
    }
}

/// Tells that so many lines state the ids of their prompt.
fn note_prompt_ids(lines: u64, output: &Output) {
    if lines > 0 {
        output.note(
            "note: a token of this tokenizer crosses the end of the prompt, so the prompt's text alone has other tokens than in training: \
             give the engine the prompt_ids of each line instead of the text",
        );
    }
}
