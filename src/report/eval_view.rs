//! A record of `drift eval` as tables.

use std::collections::BTreeSet;

use super::coverage_view::{coverage_cells, coverage_columns, coverage_note};
use super::ensemble_view::{CLUSTERS_TITLE, EnsembleRow, HITS_TITLE, clusters_table, hits_table};
use super::fields::Fields;
use super::format::{counted, number, or_dash, percent, percent_of, seconds, signed, thousands};
use super::pairs_view::{comparison_fields, geometry_cell, valid};
use super::table::Table;
use drift_core::constraint::ProcessorKind;
use drift_data::stats::Interval;
use drift_engine::eval::record::{ClassProbability, EvalReport, Likelihood, RunReport, Seconds, Unseen};

/// Returns the outcome of the texts, one row per logit processor, the automaton in bold.
pub fn outcome_table(report: &EvalReport) -> Table {
    let fields = run_fields(report, "outcomes")
        .number("pass", |run| {
            format!("{} of {}", thousands(run.outcome.passed), thousands(run.outcome.samples))
        })
        .number("valid", |run| valid(&run.chemistry, &run.outcome))
        .number("other\nmolecule", |run| thousands(run.outcome.graph_mismatch))
        .number("parse\nfailures", |run| thousands(run.outcome.parse_failures))
        .number("no\nEOS", |run| thousands(run.outcome.no_eos))
        .number("junk\nblocks", |run| of_blocks(run, run.outcome.junk_blocks_strict))
        .number("with\nletters", |run| of_blocks(run, run.outcome.junk_blocks_letters))
        .number("truncated\nblocks", |run| {
            or_dash(run.outcome.truncated_blocks, |count| of_blocks(run, count))
        })
        .number("invented\ndigits", |run| of_blocks(run, run.outcome.invented_blocks))
        .number("bond\nerror, Å", |run| {
            geometry_cell(run.geometry.as_ref(), |geometry| geometry.bond_length_error_angstrom)
        })
        .number("MAT-P, Å", |run| {
            geometry_cell(run.geometry.as_ref(), |geometry| geometry.mat_precision_angstrom)
        });
    let mut table = of_runs(fields, &report.runs);
    table.note("Blocks in percent of all blocks; bond error and MAT-P over the texts that pass.");
    table
}

/// Returns a count of a run's blocks in percent.
fn of_blocks(run: &RunReport, count: u64) -> String {
    percent_of(count, run.outcome.blocks)
}

/// Coverage and matching as in the tables of conformer generators; `None` without references.
pub fn coverage_table(report: &EvalReport) -> Option<Table> {
    let thresholds = &report.runs.iter().find(|run| !run.coverage.thresholds.is_empty())?.coverage.thresholds;
    let table = runs_table(report, "coverage and matching, mean and median over molecules");
    let mut table = coverage_columns(table, thresholds);
    for run in &report.runs {
        add_run(&mut table, report, run, coverage_cells(&run.coverage, thresholds.len()));
    }
    table.note(coverage_note(report.protocol.missing));
    Some(table)
}

/// Hit@K, and the clusters, as far as they were asked for: one row per run, and more by class of molecules.
pub fn ensemble_tables(report: &EvalReport) -> [Option<Table>; 2] {
    let rows = report.runs.iter().map(|run| EnsembleRow {
        name: run_cells(report, run),
        strong: run.lp == ProcessorKind::Automaton,
        hits: run.hits.as_ref(),
        clusters: run.clusters.as_ref(),
    });
    let rows: Vec<EnsembleRow<'_>> = rows.collect();
    [
        hits_table(runs_table(report, HITS_TITLE), &rows),
        clusters_table(runs_table(report, CLUSTERS_TITLE), &rows),
    ]
}

/// Returns the placeholder of each class of blocks; `None` if no run has classes.
pub fn placeholder_table(report: &EvalReport) -> Option<Table> {
    let table = models_table(report, "placeholders by class of block");
    let mut table = table.code("placeholders").text("class").code("placeholder");
    let mut shown = BTreeSet::new();
    for run in &report.runs {
        let Some(label) = &run.placeholder else { continue };
        if run.placeholder_classes.is_empty() || !shown.insert((&run.model, label)) {
            continue;
        }
        for of_class in &run.placeholder_classes {
            let mut cells = model_cells(report, &run.model);
            cells.extend([label, &of_class.class, &of_class.placeholder].map(String::clone));
            table.row(cells);
        }
    }
    (!shown.is_empty()).then_some(table)
}

/// Returns the paired comparison of each logit processor with no logit processor.
pub fn comparison_table(report: &EvalReport) -> Table {
    let fields = comparison_fields(runs_table(report, "against no logit processor, paired"), |pair| {
        let model = model_cells(report, pair.row.model.as_deref().unwrap_or_default());
        model.into_iter().chain([pair.row.processor()]).collect()
    });
    let mut table = fields.marked(&report.comparisons, |pair| pair.row.is_automaton());
    table.note(
        "Differences over the molecules whose texts pass both ways, with 95 % bootstrap intervals for each row. Same text: of \
         the texts that are legal without a logit processor. Rescued: texts that pass only with the logit processor, compared with texts of the \
         same molecule that pass both ways. Speed: texts per CPU second, divided by that of none. Intervals of rescued texts and of speed hold for all \
         rows at once (Bonferroni); those of speed are over batches.",
    );
    table
}

/// Time and memory, one row per logit processor.
pub fn cost_table(report: &EvalReport) -> Table {
    let mut fields = run_fields(report, "time and throughput")
        .number("tokens", |run| thousands(run.cost.generated_tokens))
        .number("forced", |run| percent_of(run.cost.forced_tokens, run.cost.generated_tokens))
        .number("steps", |run| thousands(run.cost.decode_steps))
        .number("tokens/s", |run| number(run.cost.tokens_per_second))
        .number("conformers/s", |run| number(run.cost.conformers_per_second))
        .number("time", |run| seconds(run.cost.seconds.total));
    // On the CPU the start takes no time.
    if starts(report) {
        fields = fields.number("start", |run| time_share(run, |time| time.start));
    }
    let fields = fields
        .number("prefill", |run| time_share(run, |time| time.prefill))
        .number("forward", |run| time_share(run, |time| time.forward))
        .number("LP", |run| time_share(run, |time| time.lp))
        .number("sampling", |run| time_share(run, |time| time.sampling))
        .number("templates", |run| time_share(run, |time| time.templates))
        .number("other", |run| time_share(run, |time| time.other));
    of_runs(fields, &report.runs)
}

/// Returns a part of the time of a run in percent.
fn time_share(run: &RunReport, part: fn(&Seconds) -> f64) -> String {
    percent(run.cost.seconds.share(part(&run.cost.seconds)))
}

/// Returns whether starting a device took a visible share of the time.
pub(super) fn starts(report: &EvalReport) -> bool {
    report.runs.iter().any(|run| run.cost.seconds.share(run.cost.seconds.start) >= 1e-3)
}

/// Returns the probability that the model gave the written tokens, by class of token.
pub fn probability_table(report: &EvalReport) -> Table {
    let rows = report.runs.iter().flat_map(|run| run.probabilities.iter().map(move |class| (run, class)));
    let rows: Vec<(&RunReport, &ClassProbability)> = rows.collect();
    let table = runs_table(report, "probability of the written tokens");
    Fields::behind(table, |row: &(&RunReport, &ClassProbability)| run_cells(report, row.0))
        .text("tokens of", |row| row.1.class.name().to_owned())
        .number("tokens", |row| thousands(row.1.tokens))
        .number("forced", |row| percent_of(row.1.forced, row.1.tokens))
        .number("probability", |row| format!("{:.3}", row.1.mean_probability))
        .number("nats", |row| format!("{:.3}", row.1.mean_nats))
        .number("below 1 %", |row| percent(row.1.unlikely))
        .table(&rows)
}

/// Returns the probability that each model gives the reference conformers.
pub fn likelihood_table(report: &EvalReport) -> Table {
    let compared = report.likelihoods.iter().any(|scored| scored.difference.is_some());
    let mut fields = Fields::new("Likelihood of the reference conformers")
        .code("model", |scored: &Likelihood| scored.model.clone())
        .code("tokenizer", |scored| scored.tokenizer.clone())
        .number("conformers", |scored| thousands(scored.conformers))
        .number("tokens\na conformer", |scored| format!("{:.1}", scored.tokens_per_conformer))
        .number("nats\na conformer", |scored| format!("{:.1}", scored.nats_per_conformer.mean))
        .number("95 %", |scored| {
            or_dash(scored.nats_per_conformer.interval, |Interval { low, high }| {
                format!("{low:.1} to {high:.1}")
            })
        });
    if compared {
        fields = fields
            .number("less the\nfirst model's", |scored| {
                or_dash(scored.difference.as_ref(), |difference| signed(difference.mean, 1))
            })
            .number("95 %", |scored| {
                let interval = scored.difference.as_ref().and_then(|difference| difference.interval);
                or_dash(interval, |Interval { low, high }| {
                    format!("{} to {}", signed(low, 1), signed(high, 1))
                })
            });
    }
    let mut table = fields.table(&report.likelihoods);
    table.note(
        "Summed over the tokens of a text, so that models with different tokenizers can be compared; less is better.",
    );
    if compared {
        table.note("Differences are paired by molecule.");
    }
    table
}

/// Returns the setting of the evaluation as a sentence: the number of texts, the molecules, the engine and the device.
pub fn setting(report: &EvalReport) -> String {
    let protocol = &report.protocol.generation;
    let devices: Vec<&str> = report.runs.iter().map(|run| &*run.device).collect();
    let mut out = format!(
        "{} of {}, {}, preset {}, seed {}, batch {}, {} engine on {}",
        counted(protocol.molecules as u64, "molecule"),
        protocol.molecules_from,
        match protocol.generations_per_reference {
            Some(times) => format!("{times} texts for each reference conformer"),
            None if protocol.generations == 1 => "one text each".to_owned(),
            None => format!("{} texts each", protocol.generations),
        },
        protocol.preset,
        protocol.seed,
        protocol.batch,
        protocol.engine.name(),
        devices.first().unwrap_or(&"-"),
    );
    if let Some(synthetic) = protocol.synthetic {
        out.push_str(&format!(
            "; random weights of the {} shape: only the speed means anything",
            synthetic.name()
        ));
    }
    out.push_str(&unseen(report));
    if let Some(prompts) = protocol.pooled_prompts {
        out.push_str(&format!("; each pools its isomers, {} prompts in all", thousands(prompts as u64)));
    }
    if let Some(draws) = protocol.resample {
        out.push_str(&format!(
            "; {draws} texts of a molecule drawn together, resampled by what the mask left"
        ));
    }
    if let Some(conformers) = protocol.conformers {
        out.push_str(&format!("; {conformers} conformers in a text, each judged by itself"));
    }
    if protocol.opened {
        out.push_str("; prompts end in [CONFORMER]");
    }
    if !protocol.examples.is_empty() {
        out.push_str(&format!("; worked examples before each molecule: {}", protocol.examples.join(", ")));
    }
    if let Some(eos) = &protocol.eos {
        out.push_str(&format!("; {eos} ends a text"));
    }
    if report.protocol.strip_junk {
        out.push_str("; junk was removed from numbers before judging");
    }
    if report.interrupted {
        out.push_str("; cut short");
    }
    out.push('.');
    out
}

/// Returns whether the models have seen the molecules in training, as far as is known.
fn unseen(report: &EvalReport) -> String {
    if report.protocol.generation.synthetic.is_some() {
        return String::new();
    }
    let mut models: Vec<(&str, Unseen)> = report.runs.iter().map(|run| (&*run.model, run.unseen)).collect();
    // The runs of a model are adjacent.
    models.dedup();
    let sentences = models.iter().map(|(model, unseen)| match unseen {
        Unseen::Yes => format!("; {model} has not seen these molecules in training"),
        Unseen::No => format!("; {model} has seen some of these molecules in training"),
        Unseen::Unknown => format!("; whether {model} has seen these molecules in training is not known"),
    });
    sentences.collect()
}

/// Returns a table whose title begins with the model if there is only one, and which else has a column for the model.
fn models_table(report: &EvalReport, what: &str) -> Table {
    match one_model(report) {
        Some(model) => Table::new(format!("{model}: {what}")),
        None => Table::new(what).code("model"),
    }
}

/// Returns a table with a row for each run, or several: the model if it needs a column, and the logit processor.
pub(super) fn runs_table(report: &EvalReport, what: &str) -> Table {
    models_table(report, what).code("logit processor")
}

/// Returns [`runs_table`], whose columns know their cells.
pub(super) fn run_fields<'c>(report: &'c EvalReport, what: &str) -> Fields<'c, RunReport> {
    Fields::behind(runs_table(report, what), |run| run_cells(report, run))
}

/// Returns the table of these runs, the automaton in bold.
pub(super) fn of_runs<'r>(
    fields: Fields<'_, RunReport>,
    runs: impl IntoIterator<Item = &'r RunReport>,
) -> Table {
    fields.marked(runs, |run| run.lp == ProcessorKind::Automaton)
}

/// Returns the model, if there is only one; then it needs no column.
fn one_model(report: &EvalReport) -> Option<&str> {
    let first = report.runs.first()?;
    report.runs.iter().all(|run| run.model == first.model).then_some(&*first.model)
}

/// Returns the cell for the column of [`models_table`], if there is one.
fn model_cells(report: &EvalReport, model: &str) -> Vec<String> {
    if one_model(report).is_some() { Vec::new() } else { vec![model.to_owned()] }
}

/// Returns the first cells of a row of [`runs_table`].
pub(super) fn run_cells(report: &EvalReport, run: &RunReport) -> Vec<String> {
    let mut cells = model_cells(report, &run.model);
    cells.push(run.label());
    cells
}

/// Adds the row of a run to a [`runs_table`], the automaton in bold.
pub(super) fn add_run(
    table: &mut Table,
    report: &EvalReport,
    run: &RunReport,
    cells: impl IntoIterator<Item = String>,
) {
    let cells = run_cells(report, run).into_iter().chain(cells);
    table.marked_row(run.lp == ProcessorKind::Automaton, cells);
}

/// Returns the name of a run: its logit processor, and its model if there are several.
pub(super) fn run_name(report: &EvalReport, run: &RunReport) -> String {
    run_cells(report, run).join(" ")
}
