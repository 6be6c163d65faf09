//! The energies of an audit as a table.

use super::fields::Fields;
use super::format::{counted, or_dash, thousands};
use super::table::Table;
use drift_data::audit::{EnergyFigures, EnergyReport, StrainFigures};

/// Returns one row per file and logit processor.
pub fn energy_table(report: &EnergyReport) -> Table {
    let fields = Fields::new(format!("Strain by `{}`, kcal/mol", report.command))
        .code("file", |row: &EnergyFigures| row.file.clone());
    // In an evaluation the file is the model.
    let has_models = report.files.iter().any(|row| {
        let has_another = |other: &EnergyFigures| other.file == row.file && other.model != row.model;
        report.files.iter().any(has_another)
    });
    let fields = match has_models {
        true => fields.code("model", |row| row.model.clone().unwrap_or_default()),
        false => fields,
    };
    let fields = fields
        .code("processor", |row| row.lp.clone().unwrap_or_default())
        .number("texts", |row| thousands(row.texts))
        .number("with\nenergy", |row| thousands(row.with_energy))
        .number("timed\nout", |row| thousands(row.timed_out))
        .number("with\nstrain", |row| texts(row.strain))
        .number("mean", |row| figure(row.strain, |strain| strain.mean))
        .number("median", |row| figure(row.strain, |strain| strain.median))
        .number("90 % below", |row| figure(row.strain, |strain| strain.percentile_90))
        .number("valid\nwith strain", |row| texts(row.strain_of_valid))
        .number("median\nof valid", |row| figure(row.strain_of_valid, |strain| strain.median));
    let total = (report.files.len() != 1).then_some(&report.total);
    let mut table = fields.marked(report.files.iter().chain(total), |row| std::ptr::eq(row, &report.total));
    table.note("strain: the energy of a text less that of the relaxed conformer, or of the best reference if the program relaxes none");
    if report.references > 0 {
        table.note(format!(
            "with an energy: {} of {}",
            thousands(report.references_with_energy),
            counted(report.references, "reference")
        ));
    }
    if report.total.strain.is_none() && report.total.with_energy > 0 {
        table.note("no text has a strain: the program gives no relaxed energy, and there are no references");
    }
    table
}

fn texts(strain: Option<StrainFigures>) -> String {
    thousands(strain.map_or(0, |strain| strain.texts))
}

fn figure(strain: Option<StrainFigures>, of: fn(&StrainFigures) -> f64) -> String {
    or_dash(strain, |strain| format!("{:.2}", of(&strain)))
}
