//! The cost of a mask and the result of resampling, as tables.

use super::eval_view::{run_cells, runs_table};
use super::format::{thousands, unsigned_zero};
use super::html::Section;
use super::table::Table;
use drift_data::generation::Spread;
use drift_engine::eval::record::EvalReport;

/// Returns the probability that the mask left, by class of token; `None` if not all logits were computed.
pub fn mask_table(report: &EvalReport) -> Option<Table> {
    let table = runs_table(report, "probability that the mask left").text("tokens of").number("tokens");
    let mut table = spread_columns(table, "Σ ln Z\na text");
    let known: Vec<_> = report.runs.iter().filter_map(|run| Some((run, run.mask_cost.as_ref()?))).collect();
    for (run, cost) in &known {
        let mut row = |name: &str, tokens: u64, log_z: &Spread| {
            let mut cells = run_cells(report, run);
            cells.extend([name.to_owned(), thousands(tokens)]);
            cells.extend(spread_cells(log_z, 3));
            table.row(cells);
        };
        row("all", cost.classes.iter().map(|class| class.tokens).sum(), &cost.log_z);
        for class in &cost.classes {
            row(class.class.name(), class.tokens, &class.log_z);
        }
    }
    table.note(
        "Z is the probability that the mask left at a token; a text is drawn 1/∏ Z times too often, compared with the model \
         conditioned on legal texts. Mean and quantiles over texts, in nats; 0 where nothing was forbidden.",
    );
    (!known.is_empty()).then_some(table)
}

/// Returns the result of resampling; `None` if nothing was resampled.
pub fn resampling_table(report: &EvalReport) -> Option<Table> {
    let table = runs_table(report, "resampling").number("groups").number("resamplings").text("a group's");
    let mut table = spread_columns(table, "mean");
    let known: Vec<_> = report.runs.iter().filter_map(|run| Some((run, run.resampling.as_ref()?))).collect();
    for (run, resampling) in &known {
        let figures = [
            ("effective texts at the end", &resampling.effective),
            ("least effective texts", &resampling.least_effective),
            ("ancestors", &resampling.ancestors),
            ("ln P(legal)", &resampling.log_legal),
        ];
        for (name, spread) in figures {
            let mut cells = run_cells(report, run);
            let (groups, times) = (thousands(resampling.groups), thousands(resampling.resamplings));
            cells.extend([groups, times, name.to_owned()]);
            cells.extend(spread_cells(spread, 2));
            table.row(cells);
        }
    }
    if let Some((_, first)) = known.first() {
        table.note(format!(
            "Groups of at most {} texts of a molecule; quantiles over groups. Resamplings on the way, in all groups.",
            first.draws
        ));
    }
    (!known.is_empty()).then_some(table)
}

/// Adds the section of the page.
pub(super) fn mask_section(section: &mut Section, report: &EvalReport) {
    section.paragraph(
        "Sampling under a mask is not sampling from the model conditioned on legal texts: a text is drawn 1/∏ Z times too \
         often, where Z is the probability that the mask left at each token. If Σ ln Z is near 0, both are the same.",
    );
    for table in [mask_table(report), resampling_table(report)].into_iter().flatten() {
        section.table(&table);
    }
}

fn spread_columns(table: Table, mean: &'static str) -> Table {
    table.number(mean).number("5 %").number("25 %").number("50 %").number("75 %").number("95 %")
}

fn spread_cells(spread: &Spread, decimals: usize) -> impl Iterator<Item = String> {
    let Spread { mean, quantiles } = *spread;
    let values = [mean, quantiles.p05, quantiles.p25, quantiles.p50, quantiles.p75, quantiles.p95];
    values.into_iter().map(move |value| unsigned_zero(format!("{value:.decimals$}")))
}
