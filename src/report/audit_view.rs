//! The tables of `drift audit`.

use super::chemistry_view::ChemistryRow;
use super::coverage_view::{coverage_cells, coverage_columns, coverage_note};
use super::ensemble_view::{CLUSTERS_TITLE, EnsembleRow, HITS_TITLE, clusters_table, hits_table};
use super::fields::Fields;
use super::format::{angstrom, counted, encoding_name, or_dash, percent_interval, percent_of, thousands};
use super::table::Table;
use drift_core::error::escaped;
use drift_data::audit::{AuditReport, FaultyBlock, FileReport, GeometryReport, RowLabel};

/// Returns one row per file and logit processor.
pub fn audit_table(report: &AuditReport) -> Table {
    let fields = file_fields(format!("Generated text, {}", encoding_name(report.encoding)))
        .number("samples", |file| thousands(file.counts.samples))
        .number("pass", |file| share(file.counts.passed, file.counts.samples))
        .number("graph\nmismatch", |file| thousands(file.counts.graph_mismatch))
        .number("parse\nfailures", |file| thousands(file.counts.parse_failures))
        .number("no\nEOS", |file| thousands(file.counts.no_eos))
        .number("blocks", |file| thousands(file.counts.blocks))
        .number("not three\nnumbers", |file| share(file.counts.junk_blocks_strict, file.counts.blocks))
        .number("with\nletters", |file| share(file.counts.junk_blocks_letters, file.counts.blocks))
        .number("digits\nlost", |file| {
            or_dash(file.counts.truncated_blocks, |blocks| share(blocks, file.counts.blocks))
        })
        .number("digits\ninvented", |file| share(file.counts.invented_blocks, file.counts.blocks));
    let mut table = with_total(fields, report);
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
        let without = counted(total.counts.without_prompt, "sample");
        table.note(format!("{without} without a prompt: the molecular graph was not compared"));
    }
    if report.encoding.is_stripped() {
        table.note("lost digits do not show in the stripped dialect");
    }
    table
}

/// Returns the columns that name a file and its logit processor.
fn file_fields<'c>(title: impl Into<String>) -> Fields<'c, FileReport> {
    Fields::new(title).code("file", |file: &FileReport| file.file.clone()).code("processor", processor)
}

/// Returns the logit processor of a row, with its placeholder if that is known, and behind the model if that is.
fn processor(file: &FileReport) -> String {
    let RowLabel { model, lp, .. } = &file.row;
    let processor = lp.as_ref().map(|_| file.row.processor());
    [model.clone(), processor].into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// Returns the table with a row for each file, and their total if there is more than one.
fn with_total(fields: Fields<'_, FileReport>, report: &AuditReport) -> Table {
    let total = (report.files.len() != 1).then_some(&report.total);
    fields.marked(report.files.iter().chain(total), |file| std::ptr::eq(file, &report.total))
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
    let fields = file_fields("The same texts by the rules of 3DMolGen's validation")
        .number("samples", |file| thousands(file.counts.samples))
        .number("pass", |file| share(file.counts.passed_by_3dmolgen, file.counts.samples))
        .number("graph\nmismatch", |file| thousands(file.counts.graph_mismatch_by_3dmolgen))
        .number("parse\nfailures", |file| thousands(file.counts.parse_failures_by_3dmolgen))
        .number("no\nEOS", |file| thousands(file.counts.no_eos_by_3dmolgen))
        .number("not three\nfloats", |file| {
            share(file.counts.junk_blocks_strict_by_3dmolgen, file.counts.blocks)
        });
    let mut table = with_total(fields, report);
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

/// Returns a count with its share, unless it is 0.
pub(super) fn share(count: u64, of: u64) -> String {
    match (count, of) {
        (0, _) => "0".to_owned(),
        _ => format!("{} ({})", thousands(count), percent_of(count, of)),
    }
}

/// Geometry compared with the references, one row per file and logit processor; `None` without references.
pub fn geometry_table(report: &AuditReport) -> Option<Table> {
    let total = report.total.geometry.as_ref()?;
    let title = format!(
        "Geometry beside {} of {}",
        counted(total.references, "reference conformer"),
        counted(total.molecules, "molecule"),
    );
    let fields = file_fields(title)
        .number("molecules", |file| {
            geometry(file, |found| {
                Some(format!("{} of {}", found.molecules_with_conformers, found.molecules))
            })
        })
        .number("conformers", |file| geometry(file, |found| Some(thousands(found.conformers))))
        .number("bond length\nerror, Å", |file| {
            geometry(file, |found| Some(angstrom(found.bond_length_error_angstrom?.mean)))
        });
    let mut table = fields.table(report.files.iter().filter(|file| file.geometry.is_some()));
    table.note("The error is a mean over molecules; only samples that pass are compared.");
    Some(table)
}

/// Returns a figure of a file's geometry, or `-`.
fn geometry(file: &FileReport, figure: impl FnOnce(&GeometryReport) -> Option<String>) -> String {
    or_dash(file.geometry.as_ref().and_then(figure), |shown| shown)
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
        let share = percent_of(*blocks, all);
        table.row([format!("{drift:+}"), thousands(*blocks), share, meaning.to_owned()]);
    }
    Some(table)
}

/// Examples of faulty blocks; `None` if there are none.
pub fn examples_table(report: &AuditReport) -> Option<Table> {
    if report.examples.is_empty() {
        return None;
    }
    let fields = Fields::new("Examples")
        .text("fault", |example: &FaultyBlock| example.fault.name().to_owned())
        .code("block", |example| {
            let block = escaped(&format!("<{}>", example.block));
            let cut: String = block.chars().take(48).collect();
            if cut.len() < block.len() { cut + "…" } else { block }
        })
        .code("file", |example| example.file.clone())
        .code("record", |example| example.record.clone());
    Some(fields.table(&report.examples))
}
