//! `drift inspect`: the tokens of texts, COPY and FREE, and drift.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::output::Output;
use crate::error::Error;
use crate::io::ReadAhead;
use crate::job::Job;
use crate::report::table::Table;
use crate::report::tokens_view::token_lines;
use crate::tokenizer::{Class, Token, Tokenizer, block_ranges};

/// The command line of `drift inspect`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A tokenizer.json, plain or gzipped, a model folder, or an embedded name: qwen-like, llama-like, and each of them
    /// extended, with -separate or -fused behind it
    #[arg(long, value_name = "TOKENIZER", default_value = "qwen-like")]
    tokenizer: PathBuf,
    /// The placeholder that drift is counted against
    #[arg(long, value_name = "P", default_value = "0.0000,0.0000,0.0000", allow_hyphen_values = true)]
    placeholder: String,
    /// Texts; `-` (or none) reads them from stdin, one a line
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    texts: Vec<String>,
}

/// One text.
#[derive(Debug, Serialize)]
struct Inspected {
    text: String,
    count: usize,
    free: usize,
    copy: usize,
    tokens: Vec<Token>,
    blocks: Vec<Block>,
}

/// One block of a text.
#[derive(Debug, Serialize)]
struct Block {
    text: String,
    /// T.
    free: usize,
    /// F in the same context.
    placeholder_free: usize,
    /// F - T.
    drift: i64,
}

/// Tokenises and shows.
pub(super) fn run(args: Args, job: &Job, output: &Output) -> anyhow::Result<()> {
    if args.placeholder.contains(['<', '>']) {
        let problem = format!("`{}` holds a bracket", args.placeholder);
        return Err(Error::input("--placeholder", problem, "give the inside of a block").into());
    }
    let tokenizer = Tokenizer::load_for(&args.tokenizer, job)?.0;
    let mut reports = Vec::new();
    for text in texts(args.texts, job)? {
        reports.push(inspect(&tokenizer, text, &args.placeholder)?);
    }
    if output.json {
        return output.document(&reports);
    }
    let shown: Vec<String> = reports.iter().map(|report| render(report, output)).collect();
    output.text(&shown.join("\n"))
}

fn texts(given: Vec<String>, job: &Job) -> anyhow::Result<Vec<String>> {
    if !given.is_empty() && given != ["-"] {
        return Ok(given);
    }
    let mut bytes = Vec::new();
    let outcome = ReadAhead::new(job, || Ok(std::io::stdin())).take(MAX_STDIN + 1).read_to_end(&mut bytes);
    job.check()?;
    outcome.map_err(|e| Error::io(Path::new("stdin"), e))?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Error::input("stdin", "more than 64 MiB", "give fewer texts").into());
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        Error::input(format!("stdin: byte {}", e.utf8_error().valid_up_to()), "not UTF-8", "convert it")
    })?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The most that is read from stdin.
const MAX_STDIN: u64 = 64 << 20;

fn inspect(tokenizer: &Tokenizer, text: String, placeholder: &str) -> anyhow::Result<Inspected> {
    let tokens = tokenizer.tokens(&text)?;
    let free = tokens.iter().filter(|token| token.class == Class::Free).count();
    let ranges = block_ranges(&text);
    let mut template = String::with_capacity(text.len());
    let mut copied = 0;
    for range in &ranges {
        template.push_str(&text[copied..range.start]);
        template.push_str(placeholder);
        copied = range.end;
    }
    template.push_str(&text[copied..]);
    let (real, forced) = (tokenizer.free_ends(&text)?, tokenizer.free_ends(&template)?);
    let blocks = ranges.iter().zip(real.iter().zip(&forced)).map(|(range, (t, f))| Block {
        text: text[range.clone()].to_owned(),
        free: t.len(),
        placeholder_free: f.len(),
        drift: f.len() as i64 - t.len() as i64,
    });
    let blocks = blocks.collect();
    Ok(Inspected { count: tokens.len(), free, copy: tokens.len() - free, tokens, blocks, text })
}

fn render(report: &Inspected, output: &Output) -> String {
    let mut out = token_lines(&report.tokens, output.terminal());
    out.push_str(&format!("{} tokens: {} FREE, {} COPY\n", report.count, report.free, report.copy));
    if !report.blocks.is_empty() {
        let mut table = Table::new("").code("block").number("T").number("F").number("drift").text("");
        for block in &report.blocks {
            let meaning = match block.drift {
                0 => String::new(),
                drift if drift > 0 => format!("{drift} junk slots"),
                drift => format!("{} tokens cut off", -drift),
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
