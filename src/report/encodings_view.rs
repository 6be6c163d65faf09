//! Encodings side by side, as a table and a page.

use super::format::{hundredths, percent, thousands};
use super::html::Page;
use super::plot::{Scatter, ScatterPoint, scatter};
use super::table::{Table, Terminal, bold};
use crate::encodings::report::{EncodingRow, EncodingsReport};

/// What `drift encodings` shows in a terminal: of extensions those on the front alone, unless all are asked for.
pub fn encodings_table(report: &EncodingsReport, all: bool, terminal: Terminal) -> String {
    let mut out = String::new();
    for line in answers(report) {
        out.push_str(&bold(&line, terminal));
        out.push('\n');
    }
    out.push('\n');
    out + &table(report, all).render(terminal)
}

/// The answer of each tokenizer, in a sentence, and what is not to be taken.
fn answers(report: &EncodingsReport) -> Vec<String> {
    let of = |one: &crate::encodings::report::RecommendedEncoding| {
        format!("{}: use {}: {}.", one.tokenizer, one.encoding, one.reason)
    };
    let mut lines: Vec<String> = report.recommended.iter().map(of).collect();
    let mut said = Vec::new();
    for row in &report.rows {
        let lost = row.valid_share.map_or(0.0, |share| 1.0 - share);
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
    let mut table = Table::new(format!("Encodings on {} conformers", thousands(report.conformers)))
        .text("encoding")
        .text("tokenizer")
        .number("new\ntokens")
        .number("tokens\na block")
        .number("tokens a\nconformer")
        .number("forced")
        .number("passes a\nconformer")
        .number("RMSD,\nÅ")
        .number("stay\nvalid")
        .number("out of\nrange");
    if all {
        table = table.number("worst\natom, Å").number("cell,\nnats");
    }
    let shown = |row: &&EncodingRow| all || row.new_tokens == 0 || row.on_front;
    for row in report.rows.iter().filter(shown) {
        let dash = |value: Option<f64>, shown: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), shown);
        let fine = |value: f64| format!("{value:.4}");
        let mut cells = vec![
            row.encoding.to_string(),
            row.tokenizer.clone(),
            thousands(row.new_tokens),
            block(row),
            hundredths(row.tokens_per_conformer),
            dash(row.forced_share, percent),
            dash(row.passes_per_conformer, hundredths),
            dash(row.rmsd_angstrom, fine),
            dash(row.valid_share, percent),
            thousands(row.out_of_range_conformers),
        ];
        if all {
            let nats = dash(row.cell_nats, |value| format!("{value:.0}"));
            cells.extend([dash(row.worst_atom_angstrom, fine), nats]);
        }
        let of = |one: &crate::encodings::report::RecommendedEncoding| {
            one.tokenizer == row.tokenizer && one.encoding == row.encoding && one.new_tokens == row.new_tokens
        };
        if report.recommended.iter().any(of) {
            table.strong_row(cells)
        } else {
            table.row(cells)
        };
    }
    table.note(format!(
        "Tokens of {} of the conformers, prompt and tags included. Forced, passes: under the automaton. RMSD: of the text alone, \
         superposed.{}",
        thousands(report.sample),
        if all { " Nats of models of two encodings compare less the difference of their cells." } else { "" }
    ));
    table.note("With new tokens: the smallest extension of so many tokens a block; `drift train-tokenizer` makes and proves it.");
    table
}

/// Tokens of a block: one number where all blocks have as many.
fn block(row: &EncodingRow) -> String {
    let tokens = row.tokens_per_block;
    if row.constant { tokens.max.to_string() } else { format!("{} to {}", tokens.min, tokens.max) }
}

/// The page: answers, the front of passes and RMSD, the table.
pub fn encodings_page(report: &EncodingsReport) -> Page {
    let lead = answers(report).into_iter().next().unwrap_or_default();
    let point = |row: &EncodingRow| {
        let at = (row.passes_per_conformer?, row.rmsd_angstrom?);
        let name = format!("{} {}", row.encoding, row.tokenizer);
        Some(ScatterPoint { name, at, hollow: !row.on_front, strong: row.on_front })
    };
    let plot = Scatter {
        title: "Forward passes and RMSD of encodings".to_owned(),
        x_label: "forward passes a conformer, automaton".to_owned(),
        y_label: "RMSD of the text alone, Å".to_owned(),
        points: report.rows.iter().filter_map(point).collect(),
    };
    Page::new("Which encoding", lead)
        .section("Answers", |section| {
            section.list(answers(report));
        })
        .section("The front", |section| {
            let caption = "Each point is an encoding with a tokenizer or an extension; rings are beaten in passes, RMSD, validity and \
                           new tokens by another of the same tokenizer.";
            section.svg(&scatter(&plot), caption).table(&table(report, true));
        })
        .section("Provenance", |section| {
            section.provenance(&report.provenance);
        })
}
