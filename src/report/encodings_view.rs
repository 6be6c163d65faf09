//! The comparison of encodings as a table and a page.

use super::fields::Fields;
use super::format::{counted, hundredths, or_dash, percent, thousands};
use super::html::Page;
use super::plot::{Labels, Scatter, ScatterPoint, scatter};
use super::table::{Table, Terminal, bold};
use drift_tune::encodings::report::{EncodingRow, EncodingsReport, RecommendedEncoding};

/// Returns the output of `drift encodings` in a terminal. Of the extensions it has only those on the front, unless `all`.
pub fn encodings_table(report: &EncodingsReport, all: bool, terminal: Terminal) -> String {
    let mut out = String::new();
    for line in answers(report) {
        out.push_str(&bold(&line, terminal));
        out.push('\n');
    }
    out.push('\n');
    out + &table(report, all).render(terminal)
}

/// Returns the answer for each tokenizer as a sentence, and a warning for each encoding that makes conformers invalid.
fn answers(report: &EncodingsReport) -> Vec<String> {
    let of = |one: &RecommendedEncoding| format!("{}: use {}: {}.", one.tokenizer, one.encoding, one.reason);
    let mut lines: Vec<String> = report.recommended.iter().map(of).collect();
    let mut said = Vec::new();
    for row in &report.rows {
        let lost = row.loss.valid_share.map_or(0.0, |share| 1.0 - share);
        if lost >= 0.01 && !said.contains(&row.encoding) {
            said.push(row.encoding);
            let lost = percent(lost);
            lines.push(format!(
                "{} makes {lost} of the valid conformers invalid by its text alone.",
                row.encoding
            ));
        }
    }
    lines
}

fn table(report: &EncodingsReport, all: bool) -> Table {
    let mut fields = Fields::new(format!("Encodings on {}", counted(report.conformers, "conformer")))
        .text("encoding", |row: &EncodingRow| row.encoding.to_string())
        .text("tokenizer", |row| row.tokenizer.clone())
        .number("new\ntokens", |row| thousands(row.new_tokens))
        .number("tokens\na block", block)
        .number("tokens a\nconformer", |row| hundredths(row.costs.tokens_per_conformer))
        .number("forced", |row| or_dash(row.costs.forced_share, percent))
        .number("passes a\nconformer", |row| or_dash(row.costs.passes_per_conformer, hundredths))
        .number("RMSD,\nÅ", |row| or_dash(row.loss.rmsd_angstrom, fine))
        .number("stay\nvalid", |row| or_dash(row.loss.valid_share, percent))
        .number("out of\nrange", |row| thousands(row.loss.out_of_range_conformers));
    if all {
        fields = fields
            .number("worst\natom, Å", |row| or_dash(row.loss.worst_atom_angstrom, fine))
            .number("cell,\nnats", |row| or_dash(row.loss.cell_nats, |value| format!("{value:.0}")));
    }
    let shown = |row: &&EncodingRow| all || row.new_tokens == 0 || row.on_front;
    let mut table = fields.marked(report.rows.iter().filter(shown), |row| is_recommended(report, row));
    table.note(format!(
        "Tokens of {} of the conformers, prompt and tags included. Forced, passes: under the automaton. RMSD: of the text alone, \
         superposed.{}",
        thousands(report.sample),
        if all { " Nats of models of two encodings compare less the difference of their cells." } else { "" }
    ));
    table.note("With new tokens: the smallest extension of so many tokens a block; `drift train-tokenizer` makes and proves it.");
    table
}

fn fine(angstrom: f64) -> String {
    format!("{angstrom:.4}")
}

/// Returns the tokens of a block: one number if all blocks have the same number.
fn block(row: &EncodingRow) -> String {
    let tokens = row.costs.tokens_per_block;
    if row.costs.constant { tokens.max.to_string() } else { format!("{} to {}", tokens.min, tokens.max) }
}

fn is_recommended(report: &EncodingsReport, row: &EncodingRow) -> bool {
    report.recommended.iter().any(|one| {
        one.tokenizer == row.tokenizer && one.encoding == row.encoding && one.new_tokens == row.new_tokens
    })
}

/// Returns the page: the answers, a plot of passes and RMSD for each tokenizer, and the table.
pub fn encodings_page(report: &EncodingsReport) -> Page {
    let lead = answers(report).into_iter().next().unwrap_or_default();
    let of_tokenizers = report.rows.chunk_by(|a, b| a.tokenizer == b.tokenizer);
    Page::new("Which encoding", lead)
        .section("Answers", |section| {
            section.list(answers(report));
        })
        .section("The front", |section| {
            for rows in of_tokenizers {
                let tokenizer = rows.first().map_or("", |row| &row.tokenizer);
                let caption = format!(
                    "{tokenizer}: each point is an encoding, or with +N an extension for it by N tokens. Rings are beaten in passes, \
                     RMSD, validity and new tokens by another. In the second colour: the one to use."
                );
                section.svg(&scatter(&plot(report, rows)), &caption);
            }
            section.table(&table(report, true));
        })
        .section("Provenance", |section| {
            section.provenance(&report.provenance);
        })
}

/// Returns the passes and RMSD of one tokenizer's rows.
fn plot(report: &EncodingsReport, rows: &[EncodingRow]) -> Scatter {
    // Rings have no name, so an encoding is named where it is on the front first.
    let named = |at: usize| rows[..at].iter().any(|row| row.on_front && row.encoding == rows[at].encoding);
    let points = rows.iter().enumerate().filter_map(|(at, row)| {
        let place = (row.costs.passes_per_conformer?, row.loss.rmsd_angstrom?);
        let new = thousands(row.new_tokens);
        let name = match (named(at), row.new_tokens) {
            (true, _) => format!("+{new}"),
            (false, 0) => row.encoding.to_string(),
            (false, _) => format!("{} +{new}", row.encoding),
        };
        Some(ScatterPoint { name, at: place, hollow: !row.on_front, strong: is_recommended(report, row) })
    });
    Scatter {
        labels: Labels::new(
            "Forward passes and RMSD of encodings",
            "forward passes a conformer, automaton",
            "RMSD of the text alone, Å",
        ),
        points: points.collect(),
    }
}
