//! `drift inspect`: shows the tokens of texts, which of them are COPY or FREE, and the drift of their blocks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::output::{Output, StagedOutput};
use super::skeletons::{self, SkeletonArgs};
use super::values::found;
use crate::report::format::counted;
use crate::report::table::Table;
use crate::report::tokens_view::token_lines;
use drift_core::checkpoint::RequiredFiles;
use drift_core::io::{BoundedLines, ReadAhead};
use drift_core::tokenizer::{InspectedText, Inspector, encoding_beside};
use drift_core::{Encoding, Error, Job, Tokenizer};

/// Examples at the end of the help.
pub(super) const EXAMPLES: [&str; 3] = [
    "drift inspect '[C]<4.0182,1.0374,-0.0007>=[O]<2.0988,-0.4840,-0.6413>'",
    "drift inspect --tokenizer Qwen/Qwen3-0.6B --placeholder 0.000,0.000,0.000 --json - < texts.txt",
    "drift inspect --tokenizer Qwen/Qwen3-0.6B --skeleton crystal-text --prompts prompts.jsonl",
];

/// The command line of `drift inspect`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The tokenizer: a file, a model folder, org/name in the cache of Hugging Face, or a built-in one
    #[arg(long, value_name = "TOKENIZER", default_value = "qwen-like")]
    tokenizer: PathBuf,
    /// The placeholder that blocks are compared with [default: zeros]
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    placeholder: Option<String>,
    /// The encoding of coordinates [default: as the files beside the tokenizer say, else fixed]
    #[arg(long, value_name = "E", allow_hyphen_values = true)]
    encoding: Option<Encoding>,
    /// The texts; without any, or with `-`, they are read from stdin, one per line
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    #[command(flatten)]
    skeletons: SkeletonArgs,
}

/// Moves the options of `drift inspect` before its texts, wherever they were given. A text may begin with a hyphen, and after one clap
/// would take an option for another text.
pub(super) fn texts_last(arguments: Vec<OsString>, command: &clap::Command) -> Vec<OsString> {
    let verb = verb_of(&arguments, command).filter(|at| arguments[*at] == "inspect");
    let (Some(verb), Some(known)) = (verb, command.find_subcommand("inspect")) else { return arguments };
    let (mut options, mut texts) = (arguments[..=verb].to_vec(), Vec::new());
    let mut rest = arguments[verb + 1..].iter().cloned();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy().into_owned();
        match option(known.get_arguments().chain(command.get_arguments()), &text) {
            _ if text == "--" => texts.extend(rest.by_ref()),
            // Options that clap itself adds.
            _ if ["-h", "--help", "-V", "--version"].contains(&&*text) => options.push(argument),
            Some(option) => {
                options.push(argument);
                options.extend(takes_next(option, &text).then(|| rest.next()).flatten());
            }
            // An option that is not known, for clap to refuse.
            None if text.strip_prefix("--").is_some_and(is_word) => options.push(argument),
            None => texts.push(argument),
        }
    }
    if !texts.is_empty() {
        options.push("--".into());
    }
    options.append(&mut texts);
    options
}

/// Returns whether it begins with a letter, as the name of an option does.
fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the place of the verb: behind the options of all verbs, and their values.
fn verb_of(arguments: &[OsString], command: &clap::Command) -> Option<usize> {
    let mut at = 1;
    loop {
        let argument = arguments.get(at)?.to_string_lossy();
        if !argument.starts_with('-') {
            return Some(at);
        }
        let option = option(command.get_arguments(), &argument);
        at += 1 + usize::from(option.is_some_and(|option| takes_next(option, &argument)));
    }
}

/// Returns the option that an argument names, of these.
fn option<'c>(mut of: impl Iterator<Item = &'c clap::Arg>, argument: &str) -> Option<&'c clap::Arg> {
    let name = argument.strip_prefix("--").map(|name| name.split('=').next().unwrap_or(name));
    let is_short = |short: char| argument == format!("-{short}");
    of.find(|one| (name.is_some() && one.get_long() == name) || one.get_short().is_some_and(is_short))
}

/// Returns whether the argument behind an option is its value.
fn takes_next(option: &clap::Arg, argument: &str) -> bool {
    option.get_action().takes_values() && !argument.contains('=')
}

/// Tokenises the texts and shows their tokens.
pub(super) fn run(mut args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    found([&mut args.tokenizer], RequiredFiles::Tokenizer)?;
    if let Some(files) = args.skeletons.files() {
        let others = [("TEXT", !args.texts.is_empty()), ("--placeholder", args.placeholder.is_some())];
        let others = others.into_iter().chain([("--encoding", args.encoding.is_some())]);
        if let Some((name, _)) = others.into_iter().find(|other| other.1) {
            return Err(skeletons::meaningless(name).into());
        }
        return skeletons::inspect(files, &args.tokenizer, job, output);
    }
    let encoding = match args.encoding {
        Some(asked) => asked,
        None => encoding_beside(&args.tokenizer)?.unwrap_or(Encoding::FIXED),
    };
    let placeholder = args.placeholder.unwrap_or_else(|| encoding.numbers_text(&[0; 3]));
    Inspector::check(&placeholder, encoding)?;
    let inspector = Inspector::new(Tokenizer::load_for(&args.tokenizer, job)?.0, &placeholder, encoding)?;
    // Kept aside, so that the output is complete or an error, and memory does not grow.
    let mut aside = StagedOutput::new()?;
    let mut shown = 0u64;
    let mut show = |text: String| -> anyhow::Result<()> {
        let report = inspector.inspect(text)?;
        // One text at a time, since the report is far larger than the text.
        let (before, text) = match (output.json, shown) {
            (true, 0) => ("[\n", indented(&report)?),
            (true, _) => (",\n", indented(&report)?),
            (false, 0) => ("", render(&report, output)),
            (false, _) => ("\n", render(&report, output)),
        };
        shown += 1;
        aside.put(before.as_bytes())?;
        Ok(aside.put(text.as_bytes())?)
    };
    if args.texts.is_empty() || args.texts == ["-"] {
        each_line(job, &mut show)?;
    } else {
        args.texts.into_iter().try_for_each(&mut show)?;
    }
    match (output.json, shown) {
        (true, 0) => aside.put(b"[]\n")?,
        (true, _) => aside.put(b"\n]\n")?,
        (false, 0) => aside.put(b"\n")?,
        (false, _) => {}
    }
    aside.show(output)
}

/// Returns a report as an entry of the JSON array.
fn indented(report: &InspectedText) -> anyhow::Result<String> {
    let json = serde_json::to_string_pretty(report)?;
    Ok(format!("  {}", json.replace('\n', "\n  ")))
}

/// Passes on the texts of stdin, one per line.
fn each_line(job: &Job, show: &mut dyn FnMut(String) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut lines = BoundedLines::new(ReadAhead::new(job, || Ok(std::io::stdin())), MAX_LINE_BYTES);
    loop {
        let line = lines.next_line();
        job.check()?;
        let Some(line) = line.map_err(|e| Error::io(Path::new("stdin"), e))? else { return Ok(()) };
        let place = format!("stdin: line {}", line.number);
        if line.cut {
            let problem = format!("longer than {} KiB", MAX_LINE_BYTES >> 10);
            return Err(Error::input(place, problem, "give shorter texts").into());
        }
        let text = std::str::from_utf8(line.bytes).map_err(|e| {
            Error::input(format!("{place}, byte {}", e.valid_up_to()), "not UTF-8", "convert it")
        })?;
        show(text.to_owned())?;
    }
}

/// The longest text that is read from stdin, in bytes. Each token of a text takes a few hundred bytes.
const MAX_LINE_BYTES: usize = 1 << 18;

fn render(report: &InspectedText, output: &Output) -> String {
    let mut out = token_lines(&report.tokens, output.terminal());
    out.push_str(&format!(
        "{}: {} FREE, {} COPY\n",
        counted(report.count as u64, "token"),
        report.free,
        report.copy
    ));
    if !report.blocks.is_empty() {
        let mut table = Table::new("").code("block").number("T").number("F").number("drift").text("");
        for block in &report.blocks {
            let meaning = match block.drift {
                0 => String::new(),
                drift if drift > 0 => counted(drift.unsigned_abs(), "junk slot"),
                drift => format!("{} cut off", counted(drift.unsigned_abs(), "token")),
            };
            table.row([
                block.text.clone(),
                block.free.to_string(),
                block.placeholder_free.to_string(),
                format!("{:+}", block.drift),
                meaning,
            ]);
        }
        out.push_str(&table.render(output.terminal()));
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn options_count_wherever_they_stand() {
        let command = super::super::Cli::command();
        let sorted = |line: &str| {
            let words = texts_last(line.split(' ').map(OsString::from).collect(), &command);
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        for (given, expected) in [
            ("drift inspect [C]<1,2,3> --json", "drift inspect --json -- [C]<1,2,3>"),
            ("drift inspect a --tokenizer t b -q", "drift inspect --tokenizer t -q -- a b"),
            ("drift inspect -1.5,2,3 --placeholder -0,0,0", "drift inspect --placeholder -0,0,0 -- -1.5,2,3"),
            ("drift inspect --encoding=fixed -", "drift inspect --encoding=fixed -- -"),
            ("drift inspect a -- --json", "drift inspect -- a --json"),
            ("drift inspect --threads 2", "drift inspect --threads 2"),
            ("drift inspect --help", "drift inspect --help"),
            ("drift fit --json", "drift fit --json"),
        ] {
            assert_eq!(sorted(given), expected);
        }
    }
}
