//! The tables of `drift audit`.

use super::chemistry_view::ChemistryRow;
use super::coverage_view::{coverage_cells, coverage_columns, coverage_note};
use super::ensemble_view::{CLUSTERS_TITLE, EnsembleRow, HITS_TITLE, clusters_table, hits_table};
use super::format::{angstrom, encoding_name, or_dash, percent, percent_interval, thousands};
use super::table::Table;
use drift_core::error::escaped;
use drift_data::audit::{AuditReport, FileReport, RowLabel};
use drift_data::stats::bootstrap::Mean;

/// Returns one row per file and logit processor.
pub fn audit_table(report: &AuditReport) -> Table {
    let mut table = Table::new(format!("Generated text, {}", encoding_name(report.encoding)))
        .code("file")
        .code("processor")
        .number("samples")
        .number("pass")
        .number("graph\nmismatch")
        .number("parse\nfailures")
        .number("no\nEOS")
        .number("blocks")
        .number("not three\nnumbers")
        .number("with\nletters")
        .number("digits\nlost")
        .number("digits\ninvented");
    add_rows(&mut table, report, row);
    let total = &report.total;
    if let Some(interval) = total.pass_interval {
        table.note(format!(
            "pass: {} of {} samples, 95 % {}",
            thousands(total.counts.passed),
            thousands(total.counts.samples),
            percent_interval(interval)
        ));
    }
    if total.counts.without_prompt > 0 {
        let without = thousands(total.counts.without_prompt);
        table.note(format!("{without} samples have no prompt: their molecular graph was not compared"));
    }
    if report.encoding.is_stripped() {
        table.note("lost digits do not show in the stripped dialect");
    }
    table
}

/// Returns the logit processor of a row, with its placeholder if that is known, and behind the model if that is.
fn processor(file: &FileReport) -> String {
    let RowLabel { model, lp, .. } = &file.row;
    let processor = lp.as_ref().map(|_| file.row.processor());
    [model.clone(), processor].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// Adds a row for each file, and their total if there is more than one.
fn add_rows(table: &mut Table, report: &AuditReport, row: fn(&FileReport) -> Vec<String>) {
    report.files.iter().for_each(|file| _ = table.row(row(file)));
    if report.files.len() != 1 {
        table.strong_row(row(&report.total));
    }
}

/// Returns the rows of the chemistry tables: one per file and logit processor with prompts, then the references.
pub fn chemistry_rows(report: &AuditReport) -> Vec<ChemistryRow<'_>> {
    let mut rows: Vec<ChemistryRow<'_>> =
        report.files.iter().filter_map(|file| chemistry_row(file, false)).collect();
    if report.files.len() > 1 {
        rows.extend(chemistry_row(&report.total, true));
    }
    rows.extend(report.reference_chemistry.iter().map(ChemistryRow::references));
    rows
}

fn chemistry_row(file: &FileReport, strong: bool) -> Option<ChemistryRow<'_>> {
    let chemistry = file.chemistry.as_ref()?;
    let name = format!("{} {}", file.file, processor(file)).trim_end().to_owned();
    let (passed, texts) = (Some(file.counts.passed), file.counts.samples);
    Some(ChemistryRow { name, strong, passed, chemistry, texts })
}

/// Returns the counts by 3DMolGen's own rules, one row per file and logit processor, next to the counts in their reports.
pub fn their_table(report: &AuditReport) -> Table {
    let mut table = Table::new("The same texts by the rules of 3DMolGen's validation")
        .code("file")
        .code("processor")
        .number("samples")
        .number("pass")
        .number("graph\nmismatch")
        .number("parse\nfailures")
        .number("no\nEOS")
        .number("not three\nfloats");
    add_rows(&mut table, report, their_row);
    for theirs in &report.reports_by_3dmolgen {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), thousands);
        let recounted = &theirs.recounted;
        table.note(format!(
            "{}, version {}: says {} passed, {} failed; first texts here: {} and {}",
            theirs.file,
            theirs.head.version.as_deref().unwrap_or("unknown"),
            count(theirs.head.num_passed),
            count(theirs.head.num_failed),
            thousands(recounted.num_passed),
            thousands(recounted.samples - recounted.num_passed),
        ));
    }
    if let Some(first) = report.foreign_prompts.first() {
        table.note(format!(
            "{} of {} prompts are not what their encoder writes, so their template has another text: {} ({})",
            thousands(report.prompts_not_in_their_spelling),
            thousands(report.prompts),
            first.smiles,
            first.reason
        ));
    }
    table
}

fn their_row(file: &FileReport) -> Vec<String> {
    let counts = &file.counts;
    vec![
        file.file.clone(),
        processor(file),
        thousands(counts.samples),
        share(counts.passed_by_3dmolgen, counts.samples),
        thousands(counts.graph_mismatch_by_3dmolgen),
        thousands(counts.parse_failures_by_3dmolgen),
        thousands(counts.no_eos_by_3dmolgen),
        share(counts.junk_blocks_strict_by_3dmolgen, counts.blocks),
    ]
}

/// Returns a count with its share, unless it is 0.
pub(super) fn share(count: u64, of: u64) -> String {
    match (count, of) {
        (0, _) => "0".to_owned(),
        _ => format!("{} ({})", thousands(count), percent(drift_data::stats::share(count, of))),
    }
}

fn row(file: &FileReport) -> Vec<String> {
    let counts = &file.counts;
    vec![
        file.file.clone(),
        processor(file),
        thousands(counts.samples),
        share(counts.passed, counts.samples),
        thousands(counts.graph_mismatch),
        thousands(counts.parse_failures),
        thousands(counts.no_eos),
        thousands(counts.blocks),
        share(counts.junk_blocks_strict, counts.blocks),
        share(counts.junk_blocks_letters, counts.blocks),
        or_dash(counts.truncated_blocks, |blocks| share(blocks, counts.blocks)),
        share(counts.invented_blocks, counts.blocks),
    ]
}

/// Geometry compared with the references, one row per file and logit processor; `None` without references.
pub fn geometry_table(report: &AuditReport) -> Option<Table> {
    let total = report.total.geometry.as_ref()?;
    let mut table = Table::new(format!(
        "Geometry beside {} reference conformers of {} molecules, threshold {} Å",
        thousands(total.references),
        thousands(total.molecules),
        total.threshold_angstrom
    ))
    .code("file")
    .code("processor")
    .number("molecules")
    .number("conformers")
    .number("bond length\nerror, Å")
    .number("COV-R")
    .number("MAT-R, Å")
    .number("COV-P")
    .number("MAT-P, Å");
    for file in &report.files {
        let Some(geometry) = &file.geometry else { continue };
        let length = |estimate: Option<Mean>| or_dash(estimate, |e| angstrom(e.mean));
        let share = |estimate: Option<Mean>| or_dash(estimate, |e| percent(e.mean));
        table.row([
            file.file.clone(),
            processor(file),
            format!("{} of {}", geometry.molecules_with_conformers, geometry.molecules),
            thousands(geometry.conformers),
            length(geometry.bond_length_error_angstrom),
            share(geometry.cov_recall),
            length(geometry.mat_recall_angstrom),
            share(geometry.cov_precision),
            length(geometry.mat_precision_angstrom),
        ]);
    }
    table.note("means over molecules; only samples that pass are compared");
    Some(table)
}

/// Coverage and matching at every threshold, mean and median over molecules; `None` without references.
pub fn audit_coverage_table(report: &AuditReport) -> Option<Table> {
    let thresholds = &report.total.coverage.as_ref()?.thresholds;
    let mut table =
        Table::new("Coverage and matching, mean and median over molecules").code("file").code("processor");
    table = coverage_columns(table, thresholds);
    for file in &report.files {
        let Some(coverage) = &file.coverage else { continue };
        let mut cells = vec![file.file.clone(), processor(file)];
        cells.extend(coverage_cells(coverage, thresholds.len()));
        table.row(cells);
    }
    table.note(coverage_note(report.missing));
    Some(table)
}

/// Hit@K, and the clusters, as far as they were asked for: one row per row of texts, and more by class of molecules.
pub fn ensemble_tables(report: &AuditReport) -> [Option<Table>; 2] {
    let rows = report.runs.iter().map(|run| EnsembleRow {
        name: vec![run.row.full_name()],
        strong: run.row.is_automaton(),
        hits: run.hits.as_ref(),
        clusters: run.clusters.as_ref(),
    });
    let rows: Vec<EnsembleRow<'_>> = rows.collect();
    [
        hits_table(Table::new(HITS_TITLE).code("row"), &rows),
        clusters_table(Table::new(CLUSTERS_TITLE).code("row"), &rows),
    ]
}

/// Returns the numbers of blocks by drift; `None` without a tokenizer.
pub fn drift_table(report: &AuditReport) -> Option<Table> {
    let drift = report.total.drift.as_ref()?;
    let title = format!(
        "Drift against {} under {}",
        report.placeholder.as_deref().unwrap_or_default(),
        report.tokenizer.as_deref().unwrap_or_default()
    );
    let mut table = Table::new(title).number("drift").number("blocks").number("share").text("");
    let all = drift.blocks();
    for (drift, blocks) in &drift.0 {
        let meaning = match drift {
            0 => "",
            d if *d > 0 => "slots left over",
            _ => "tokens cut off",
        };
        let share = percent(drift_data::stats::share(*blocks, all));
        table.row([format!("{drift:+}"), thousands(*blocks), share, meaning.to_owned()]);
    }
    Some(table)
}

/// Examples of faulty blocks; `None` if there are none.
pub fn examples_table(report: &AuditReport) -> Option<Table> {
    if report.examples.is_empty() {
        return None;
    }
    let mut table = Table::new("Examples").text("fault").code("block").code("file").code("record");
    for example in &report.examples {
        let block = escaped(&format!("<{}>", example.block));
        let cut: String = block.chars().take(48).collect();
        let block = if cut.len() < block.len() { cut + "…" } else { block };
        table.row([example.fault.name().to_owned(), block, example.file.clone(), example.record.clone()]);
    }
    Some(table)
}
