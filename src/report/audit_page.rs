//! A record of `drift audit` as a page.

use super::audit_view::{
    audit_coverage_table, audit_table, chemistry_rows, drift_table, ensemble_tables, examples_table,
    geometry_table, their_table,
};
use super::chemistry_view::{chemistry_table, flatness_table};
use super::energy_view::energy_table;
use super::forest_view::{ForestPair, paired_differences};
use super::format::{counted, thousands, unread};
use super::html::{Page, Section};
use super::pairs_view::{audit_comparison_table, rows_table};
use super::paper_view::{Summary, SummaryRow};
use super::row_sections::{
    PageRow, coverage_plots, drift_plots, example_texts, harm_plot, has_drift, with_ranked_texts,
};
use super::viewer::{WorstRow, worst_texts};
use drift_data::audit::{AuditReport, AuditRun};

/// Returns the self-contained page: rows and their differences, errors, coverage and chemistry.
pub fn audit_page(report: &AuditReport) -> Page {
    let rows: Vec<PageRow<'_>> = report.runs.iter().map(page_row).collect();
    let counts = &report.total.counts;
    let setting = format!(
        "{} in {}, of which {} pass.",
        counted(counts.samples, "text"),
        counted(report.runs.len() as u64, "row"),
        thousands(counts.passed)
    );
    let lead = report.advice.first().cloned().unwrap_or_else(|| setting.clone());
    let mut page = Page::new("Generated texts", lead);
    page = page.section("Summary", |section| summary(report, setting).write(section));
    page = page.section("Rows", |section| {
        let unread = unread(report.skipped, &report.skipped_records, report.left_out);
        section.list(&report.advice).list(report.warnings.iter().chain(&unread));
        rows_table(report).iter().for_each(|table| _ = section.table(table));
        section.table(&audit_table(report)).table(&their_table(report));
        section.svg(&harm_plot(&rows), "Blocks that are not three numbers, or that lost or gained digits.");
        if let (Some(base), Some(table)) = (&report.against_row, audit_comparison_table(report)) {
            paired_differences(section, base, &pairs(report), &table);
        }
    });
    page = with_ranked_texts(page, &rows);
    if report.total.geometry.is_some() {
        page = page.section("Coverage and matching", |section| {
            for table in [geometry_table(report), audit_coverage_table(report)].into_iter().flatten() {
                section.table(&table);
            }
            coverage_plots(section, &rows);
        });
    }
    let ensembles = ensemble_tables(report);
    if ensembles.iter().any(Option::is_some) {
        page = page.section("Hits and clusters", |section| {
            ensembles.iter().flatten().for_each(|table| _ = section.table(table));
        });
    }
    if report.total.chemistry.is_some() {
        page = page.section("Chemistry beside grammar", |section| chemistry_section(section, report));
    }
    if let Some(energy) = &report.energy {
        page = page.section("Strain", |section| _ = section.table(&energy_table(energy)));
    }
    if let Some(table) = drift_table(report) {
        page = page.section("Drift", |section| {
            section.table(&table);
            if has_drift(&rows) {
                drift_plots(section, &rows);
            }
        });
    }
    if rows.iter().any(|row| !row.examples.is_empty()) || !report.examples.is_empty() {
        page = page.section("What goes wrong", |section| {
            example_texts(section, &rows);
            examples_table(report).iter().for_each(|table| _ = section.table(table));
        });
    }
    page.section("Provenance", |section| _ = section.provenance(&report.provenance))
}

/// Returns the comparisons with the base row.
fn pairs(report: &AuditReport) -> Vec<ForestPair<'_>> {
    let several = report.runs.iter().any(|run| run.row.model != report.runs[0].row.model);
    let pairs = report.comparisons.iter().map(|pair| {
        let name = if several { pair.row.full_name() } else { pair.row.processor() };
        ForestPair { name, pair }
    });
    pairs.collect()
}

/// The largest number of rows that the summary tells.
const TOLD: usize = 4;

/// Returns the summary: the first rows.
fn summary(report: &AuditReport, setting: String) -> Summary<'_> {
    let rows = report.runs.iter().take(TOLD).map(|run| SummaryRow {
        name: format!("texts of `{}`", run.row.full_name()),
        counts: &run.counts,
        passed_interval: run.passed_interval,
        chemistry: &run.chemistry,
        geometry: run.geometry.as_ref(),
        pair: report.comparisons.iter().find(|pair| pair.row == run.row),
    });
    Summary {
        setting,
        rows: rows.collect(),
        base: report.against_row.as_deref().map(|base| format!("`{base}`")).unwrap_or_default(),
        provenance: &report.provenance,
        command: report.command.as_deref(),
    }
}

/// Returns a row as the shared sections show it.
fn page_row(run: &AuditRun) -> PageRow<'_> {
    PageRow {
        name: run.row.full_name(),
        strong: run.row.is_automaton(),
        counts: &run.counts,
        coverage: &run.coverage,
        drift: run.drift.as_ref(),
        examples: &run.examples,
        ranked: &run.ranked,
    }
}

fn chemistry_section(section: &mut Section, report: &AuditReport) {
    let rows = chemistry_rows(report);
    for table in [chemistry_table(&rows), flatness_table(&rows)].into_iter().flatten() {
        section.table(&table);
    }
    let rows = report.runs.iter().filter(|run| !run.worst.is_empty());
    let rows: Vec<WorstRow<'_>> =
        rows.map(|run| WorstRow { name: format!("`{}`", run.row.full_name()), texts: &run.worst }).collect();
    worst_texts(section, &rows);
}
