//! A record of `drift eval` as a page.

use super::energy_view::energy_table;
use super::eval_view::{
    comparison_table, cost_table, coverage_table, ensemble_tables, likelihood_table, outcome_table,
    placeholder_table, probability_table, run_name, setting, starts,
};
use super::floor_view::floor_table;
use super::forest_view::{ForestPair, paired_differences};
use super::html::{Page, Section};
use super::mask_view::mask_section;
use super::paper_view::{Summary, SummaryRow};
use super::plot::{Bar, BarChart, BarValue, Scale, bars};
use super::row_sections::{
    PageRow, coverage_plots, drift_plots, example_texts, harm_plot, has_drift, share_bar, with_ranked_texts,
};
use super::table::Table;
use super::worst_view::chemistry_section;
use drift_core::constraint::ProcessorKind;
use drift_core::encoding::Precision;
use drift_engine::eval::record::{EvalReport, RunReport, Seconds};

/// Returns the self-contained page: the cost of each logit processor, the errors, and the time by phase.
pub fn eval_page(report: &EvalReport) -> Page {
    let rows: Vec<PageRow<'_>> = report.runs.iter().map(|run| page_row(report, run)).collect();
    let lead = report.advice.first().cloned().unwrap_or_else(|| sentence(report));
    let mut page = Page::new("Generation under logit processors", lead)
        .section("Summary", |section| summary(report).write(section))
        .section("Advice", |section| {
            section.list(&report.advice);
        })
        .section("What each logit processor costs", |section| {
            section.table(&outcome_table(report));
            if let Some(placeholders) = placeholder_table(report) {
                section.table(&placeholders);
            }
            section
                .svg(&harm_plot(&rows), "Blocks that are not three numbers, or that lost or gained digits.");
            paired_differences(section, NO_PROCESSOR, &pairs(report), &comparison_table(report));
        });
    page = with_ranked_texts(page, &rows);
    page = page
        .section("Coverage and matching", |section| coverage_section(section, report, &rows))
        .section("Chemistry beside grammar", |section| chemistry_section(section, report))
        .section("Where the time goes", |section| {
            section.table(&cost_table(report));
            if let Some(table) = floor_table(report) {
                section.table(&table);
            }
            section.svg(&time_plot(report), "Share of the wall time of each run.");
        });
    if has_drift(&rows) {
        page = page.section("Drift", |section| drift_plots(section, &rows));
    }
    if report.runs.iter().any(|run| !run.probabilities.is_empty()) {
        page = page.section("Token probabilities", |section| {
            section
                .paragraph(
                    "The probability that the model gave each written token, before any mask. Forced tokens with a low probability \
                     are text that the model would not have written itself.",
                )
                .table(&probability_table(report));
        });
    }
    if report.runs.iter().any(|run| run.mask_cost.is_some()) {
        page = page.section("What the mask costs", |section| mask_section(section, report));
    }
    if !report.likelihoods.is_empty() {
        page = page.section("Likelihood of the references", |section| {
            section.table(&likelihood_table(report));
        });
    }
    if let Some(energy) = &report.energy {
        page = page.section("Strain", |section| _ = section.table(&energy_table(energy)));
    }
    if report.runs.iter().any(|run| !run.examples.is_empty()) {
        page = page.section("What goes wrong", |section| example_texts(section, &rows));
    }
    page.section("Method", |section| method(section, report)).section("Provenance", |section| {
        section.table(&environment_table(report)).provenance(&report.provenance);
    })
}

/// The base row of an evaluation, in words.
const NO_PROCESSOR: &str = "no logit processor";

/// Returns the comparisons with no logit processor.
fn pairs(report: &EvalReport) -> Vec<ForestPair<'_>> {
    let several = report.runs.iter().any(|run| run.model != report.runs[0].model);
    let pairs = report.comparisons.iter().map(|pair| {
        let model = pair.row.model.as_deref().filter(|_| several).map(|model| format!("{model} "));
        ForestPair { name: model.unwrap_or_default() + &pair.row.processor(), pair }
    });
    pairs.collect()
}

/// Returns the summary: for each model the row without a logit processor, and that of the automaton or else the first other one.
fn summary(report: &EvalReport) -> Summary<'_> {
    let mut rows = Vec::new();
    for runs in report.runs.chunk_by(|a, b| a.model == b.model) {
        let base = runs.iter().find(|run| run.lp == ProcessorKind::None);
        let mut others = runs.iter().filter(|run| run.lp != ProcessorKind::None);
        let other = others.clone().find(|run| run.lp == ProcessorKind::Automaton).or_else(|| others.next());
        rows.extend(base.into_iter().chain(other).map(|run| summary_row(report, run)));
    }
    Summary {
        setting: sentence(report),
        rows,
        base: NO_PROCESSOR.to_owned(),
        provenance: &report.provenance,
        command: report.command.as_deref(),
    }
}

fn summary_row<'r>(report: &'r EvalReport, run: &'r RunReport) -> SummaryRow<'r> {
    let under = match run.lp {
        ProcessorKind::None => NO_PROCESSOR.to_owned(),
        _ => format!("`{}`", run.label()),
    };
    let label = run.row_label();
    SummaryRow {
        name: format!("texts of `{}` under {under}", run.model),
        counts: &run.outcome,
        passed_interval: run.passed_interval,
        chemistry: &run.chemistry,
        geometry: run.geometry.as_ref(),
        pair: report.comparisons.iter().find(|pair| pair.row == label),
    }
}

/// Returns the setting as a sentence with its full stop, which the last of several parts may have already.
fn sentence(report: &EvalReport) -> String {
    setting(report).trim_end_matches('.').to_owned() + "."
}

/// Returns a run as the shared sections show it.
fn page_row<'r>(report: &EvalReport, run: &'r RunReport) -> PageRow<'r> {
    PageRow {
        name: run_name(report, run),
        strong: run.lp == ProcessorKind::Automaton,
        counts: &run.outcome,
        coverage: &run.coverage,
        drift: Some(&run.drift),
        examples: &run.examples,
        ranked: &run.ranked,
    }
}

fn coverage_section(section: &mut Section, report: &EvalReport, rows: &[PageRow<'_>]) {
    let Some(table) = coverage_table(report) else {
        section.paragraph("There are no reference conformers.");
        ensemble_tables(report).iter().flatten().for_each(|table| _ = section.table(table));
        return;
    };
    section.table(&table);
    ensemble_tables(report).iter().flatten().for_each(|table| _ = section.table(table));
    coverage_plots(section, rows);
}

/// Returns a chart of shares with one row per run, the automaton in bold.
fn run_bars(
    report: &EvalReport,
    [title, x_label]: [&str; 2],
    series: &[&str],
    values: impl Fn(&RunReport) -> Vec<BarValue>,
) -> String {
    let runs = report.runs.iter().map(|run| Bar {
        label: run_name(report, run),
        strong: run.lp == ProcessorKind::Automaton,
        values: values(run),
    });
    bars(&BarChart {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        series: series.iter().map(|name| (*name).to_owned()).collect(),
        bars: runs.collect(),
        scale: Scale::Share,
    })
}

/// The name of a phase, and its share of the time.
type NamedPhase = (&'static str, fn(&Seconds) -> f64);

/// The phases of a run, in order.
const PHASES: [NamedPhase; 7] = [
    ("start", |time| time.start),
    ("templates", |time| time.templates),
    ("prefill", |time| time.prefill),
    ("forward", |time| time.forward),
    ("LP", |time| time.lp),
    ("sampling", |time| time.sampling),
    ("other", |time| time.other),
];

fn time_plot(report: &EvalReport) -> String {
    let phases = if starts(report) { &PHASES[..] } else { &PHASES[1..] };
    let names: Vec<&str> = phases.iter().map(|(name, _)| *name).collect();
    run_bars(report, ["Time by phase and logit processor", "share of the wall time"], &names, |run| {
        let time = &run.cost.seconds;
        phases.iter().map(|(_, of)| share_bar(Some(time.share(of(time))))).collect()
    })
}

fn method(section: &mut Section, report: &EvalReport) {
    let protocol = &report.protocol.generation;
    let precision = report.runs.first().map_or(Precision::FOUR, |run| run.encoding.precision());
    let decimals = precision.in_words();
    section.list([
        "A text passes if it has the prompt's molecular graph, stereo ignored, and every block is three numbers.".to_owned(),
        "Junk: a block that is not three numbers. Truncated, fixed dialect: a number is missing or has fewer than {} \
         decimals; stripped: a position template forced `>` where the model's first choice would have gone on with the block \
         (how many digits that cost nobody knows). Invented: more than {} decimals, or, stripped, a trailing zero."
            .replace("{}", decimals),
        "Bond error: mean absolute difference of bond lengths from their means over the reference conformers. RMSD after \
         alignment (Kabsch), the least over all renumberings that leave the molecule as it is, as RDKit's GetBestRMS takes it. COV and \
         MAT as in GeoMol (Ganea et al. 2021), over the texts that pass; intervals by \
         bootstrap over molecules."
            .to_owned(),
        "Advice: a logit processor is blamed only for what differs from the run without, molecule by molecule, by an interval that is \
         corrected for the number of rows (Bonferroni; Student's t)."
            .to_owned(),
        "All runs take the same random numbers, keyed by seed, sample and position, so that text which is legal anyway \
         comes out the same under each logit processor."
            .to_owned(),
        format!(
            "At most {} a text; KV cache {}; preset `{}`.",
            protocol.max_new_tokens.map_or_else(
                || "half more tokens than the molecule's longest text takes, and 16,".to_owned(),
                |most| format!("{most} tokens"),
            ),
            protocol.kv_cache.name(),
            protocol.preset
        ),
    ]);
}

fn environment_table(report: &EvalReport) -> Table {
    let environment = &report.environment;
    let mut table = Table::new("").text("").text("");
    table.row(["date", &environment.date]);
    table.row(["system", &environment.system]);
    table.row(["processor", environment.processor.as_deref().unwrap_or("-")]);
    table.row(["threads", &environment.threads.to_string()]);
    table
}
