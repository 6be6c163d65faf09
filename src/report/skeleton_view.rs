//! The report of texts of a skeleton as tables.

use std::collections::BTreeSet;

use super::audit_view::share;
use super::fields::Fields;
use super::format::{counted, or_dash, percent, signed, thousands};
use super::table::Table;
use drift_core::constraint::skeleton::PartTokens;
use drift_core::error::shortened_end;
use drift_core::skeleton::FaultKind;
use drift_data::audit::skeletons::{
    CLOSE_ANGSTROM, DISTANCE_QUANTILES, RowGeometry, SkeletonExample, SkeletonReport,
};
use drift_data::skeleton_tokens::{SkeletonTokens, SlotEncoding, SlotEncodings};

/// Returns the tables of a report: rows with their faults, geometry, comparisons, and examples of faults.
pub fn skeleton_tables(report: &SkeletonReport) -> Vec<Table> {
    let tables =
        [Some(rows(report)), geometry(report), distances(report), comparisons(report), examples(report)];
    tables.into_iter().flatten().collect()
}

/// The most characters of a part or line that a table of tokens shows.
const SHOWN_CHARACTERS: usize = 48;

/// The most parts and prompts that a table of tokens lists.
const MOST_LISTED: usize = 40;

/// Returns what the parts of texts take in tokens.
pub fn part_tokens(report: &SkeletonTokens) -> Table {
    let title = format!("Texts of {} in tokens of {}", report.skeleton, report.tokenizer);
    listed(title, "part", &report.parts)
}

/// Returns what the lines of texts take in tokens; `None` if texts have one line, or lines that are not listed.
pub fn line_tokens(report: &SkeletonTokens) -> Option<Table> {
    let title = "Lines, all of each prompt's texts".to_owned();
    (report.lines.len() > 1).then(|| listed(title, "line", &report.lines))
}

fn listed(title: String, column: &str, parts: &[PartTokens]) -> Table {
    let mut table = Table::new(title).code(column).number("tokens").text("");
    for part in parts.iter().take(MOST_LISTED) {
        let what = match (part.joined, part.has_slots && part.tokens[0] != part.tokens[1]) {
            (true, true) => "varies; a token may join the slot with the text beside it",
            (true, false) => "a token may join the slot with the text beside it",
            (false, true) => "varies",
            (false, false) => "",
        };
        let shown = shortened_end(&part.part.escape_debug().to_string(), SHOWN_CHARACTERS);
        table.row([shown, token_range(part.tokens), what.to_owned()]);
    }
    if parts.len() > MOST_LISTED {
        table.note(format!("{} more {column}s", parts.len() - MOST_LISTED));
    }
    table
}

/// Returns what whole texts take in tokens.
pub fn prompt_tokens(report: &SkeletonTokens) -> Table {
    let mut table = Table::new("Whole texts, all of each prompt").code("prompt").number("tokens").text("");
    for prompt in report.prompts.iter().take(MOST_LISTED) {
        let uncounted = prompt.uncounted.clone().unwrap_or_default();
        let what = match prompt.tokens {
            Some([least, most]) if least == most => "constant".to_owned(),
            _ => uncounted,
        };
        table.row([prompt.prompt.clone(), or_dash(prompt.tokens, token_range), what]);
    }
    if report.prompts.len() > MOST_LISTED {
        let more = (report.prompts.len() - MOST_LISTED) as u64;
        table.note(counted(more, "more prompt"));
    }
    table.note(format!(
        "{} of {} take the same number in every text",
        thousands(report.constant),
        counted(report.prompts.len() as u64, "prompt")
    ));
    table
}

/// Returns what slots take if they are written otherwise.
pub fn slot_encodings(report: &SlotEncodings) -> Table {
    let mut table = Fields::new(format!("Slots of {}, one written otherwise", report.skeleton))
        .code("tokenizer", |row: &SlotEncoding| row.tokenizer.clone())
        .code("slot", |row| row.slot.clone())
        .text("written", |row| row.written.clone())
        .number("at most off by", |row| format!("{}", row.step / 2.0))
        .number("tokens a number", |row| or_dash(row.tokens_per_slot, token_range))
        .number("a text", |row| or_dash(row.tokens_per_text, token_range))
        .number("numbers", |row| thousands(row.numbers))
        .text("", slot_notes)
        .table(&report.rows);
    table.note("as many new tokens as numbers make each number a single token");
    table
}

/// Returns what is to be said of a slot.
fn slot_notes(row: &SlotEncoding) -> String {
    let varies = row.tokens_per_slot.is_some_and(|[least, most]| least != most);
    let notes = [("as it is", row.change.is_none()), ("varies", varies), ("joined", row.joined)];
    let notes: Vec<&str> = notes.iter().filter(|note| note.1).map(|note| note.0).collect();
    notes.join(", ")
}

pub(super) fn token_range(range: [u32; 2]) -> String {
    let [least, most] = range.map(|count| thousands(count.into()));
    if least == most { least } else { format!("{least} to {most}") }
}

fn rows(report: &SkeletonReport) -> Table {
    let kinds: BTreeSet<FaultKind> = report.rows.iter().flat_map(|row| row.faults.keys().copied()).collect();
    let mut table =
        Table::new(format!("Texts of {}", report.skeleton)).code("row").number("texts").number("pass");
    for kind in &kinds {
        table = table.number(kind.name());
    }
    table = table.number("repeated\nitems").number("repeated\ntexts");
    for row in &report.rows {
        let mut cells = vec![row.row.clone(), thousands(row.texts), share(row.passed, row.texts)];
        cells.extend(kinds.iter().map(|kind| thousands(row.faults.get(kind).copied().unwrap_or(0))));
        cells.extend([thousands(row.texts_with_repeated_items), thousands(row.repeated_texts)]);
        table.row(cells);
    }
    table.note("a text may have several faults; repeats are no faults");
    table
}

fn geometry(report: &SkeletonReport) -> Option<Table> {
    let rows = report.rows.iter().filter_map(|row| Some((&*row.row, row.geometry?)));
    let rows: Vec<(&str, RowGeometry)> = rows.collect();
    let fields = Fields::new("Geometry of the texts")
        .code("row", |row: &(&str, RowGeometry)| row.0.to_owned())
        .number("texts", |row| thousands(row.1.texts))
        .number("no volume", |row| thousands(row.1.without_volume))
        .number(&format!("closer than\n{CLOSE_ANGSTROM} Å"), |row| share(row.1.close, row.1.texts))
        .number("shortest distance,\nmedian, Å", |row| {
            or_dash(row.1.median_shortest_angstrom, |value| format!("{value:.3}"))
        })
        .number("volume per atom,\nmedian, Å³", |row| {
            or_dash(row.1.median_volume_per_atom, |value| format!("{value:.2}"))
        });
    (!rows.is_empty()).then(|| fields.table(&rows))
}

/// Returns how the shortest distances of the texts are distributed.
fn distances(report: &SkeletonReport) -> Option<Table> {
    let mut table = Table::new("Shortest distance of each text, Å").code("row").number("texts");
    for share in DISTANCE_QUANTILES {
        table = table.number(&match share {
            0.0 => "least".to_owned(),
            1.0 => "most".to_owned(),
            share => format!("{:.0} %", 100.0 * share),
        });
    }
    let mut is_empty = true;
    for row in &report.rows {
        let Some(RowGeometry { distances, shortest_quantiles_angstrom: Some(all), .. }) = row.geometry else {
            continue;
        };
        let mut cells = vec![row.row.clone(), thousands(distances)];
        cells.extend(all.map(|value| format!("{value:.3}")));
        table.row(cells);
        is_empty = false;
    }
    (!is_empty).then_some(table)
}

fn comparisons(report: &SkeletonReport) -> Option<Table> {
    let base = report.against_row.as_ref()?;
    let mut table = Table::new(format!("Against {base}, prompt by prompt"))
        .code("row")
        .text("share of texts")
        .number("without")
        .number("with")
        .number("difference")
        .number("95 % interval");
    for row in &report.comparisons {
        for figure in &row.figures {
            let interval =
                figure.interval.map(|interval| [interval.low, interval.high].map(points).join(" to "));
            table.row([
                row.row.clone(),
                figure.figure.clone(),
                percent(figure.without),
                percent(figure.with),
                points(figure.difference),
                or_dash(interval, |shown| shown),
            ]);
        }
        let same = format!("{} of {}", thousands(row.identical), counted(row.passed_without, "text"));
        table.note(format!("{}: {same} that pass in {base} are the same", row.row));
        for (mean, texts) in [
            (&row.all_shortest_difference_angstrom, "of all texts"),
            (&row.shortest_difference_angstrom, "of texts that pass in both"),
        ] {
            let Some(mean) = mean else { continue };
            let interval =
                mean.interval.map(|one| [one.low, one.high].map(|end| signed(end, 4)).join(" to "));
            let interval = interval.map(|shown| format!(" ({shown})")).unwrap_or_default();
            let shown = format!("{}{interval} Å", signed(mean.mean, 4));
            let prompts = counted(mean.items as u64, "prompt");
            table.note(format!(
                "{}: the shortest distance {texts} differs by {shown}, over {prompts}",
                row.row
            ));
        }
    }
    Some(table)
}

/// Returns a difference of shares in percentage points.
fn points(difference: f64) -> String {
    signed(100.0 * difference, 1)
}

fn examples(report: &SkeletonReport) -> Option<Table> {
    let fields = Fields::new("Examples")
        .code("text", |example: &SkeletonExample| example.place.clone())
        .text("fault", |example| example.fault.kind.name().to_owned())
        .number("line", |example| example.fault.line.to_string())
        .number("column", |example| example.fault.column.to_string())
        .text("problem", |example| example.fault.problem.clone());
    (!report.examples.is_empty()).then(|| fields.table(report.examples.iter().take(20)))
}
