//! The energies of an audit as a table.

use super::format::{or_dash, thousands};
use super::table::Table;
use drift_data::audit::{EnergyFigures, EnergyReport, StrainFigures};

/// Returns one row per file and logit processor.
pub fn energy_table(report: &EnergyReport) -> Table {
    let mut table = Table::new(format!("Strain by `{}`, kcal/mol", report.command))
        .code("file")
        .code("processor")
        .number("texts")
        .number("with\nenergy")
        .number("timed\nout")
        .number("with\nstrain")
        .number("mean")
        .number("median")
        .number("90 % below")
        .number("valid\nwith strain")
        .number("median\nof valid");
    report.files.iter().for_each(|file| _ = table.row(row(file)));
    if report.files.len() != 1 {
        table.strong_row(row(&report.total));
    }
    table.note("strain: the energy of a text less that of the relaxed conformer, else of the best reference");
    if report.references > 0 {
        table.note(format!(
            "{} of {} references have an energy",
            thousands(report.references_with_energy),
            thousands(report.references)
        ));
    }
    if report.total.strain.is_none() && report.total.with_energy > 0 {
        table.note("no text has a strain: the program gives no relaxed energy, and there are no references");
    }
    table
}

fn row(figures: &EnergyFigures) -> Vec<String> {
    let of = |strain: Option<StrainFigures>, figure: fn(&StrainFigures) -> f64| {
        or_dash(strain, |strain| format!("{:.2}", figure(&strain)))
    };
    let texts = |strain: Option<StrainFigures>| thousands(strain.map_or(0, |strain| strain.texts));
    vec![
        figures.file.clone(),
        figures.lp.clone().unwrap_or_default(),
        thousands(figures.texts),
        thousands(figures.with_energy),
        thousands(figures.timed_out),
        texts(figures.strain),
        of(figures.strain, |strain| strain.mean),
        of(figures.strain, |strain| strain.median),
        of(figures.strain, |strain| strain.percentile_90),
        texts(figures.strain_of_valid),
        of(figures.strain_of_valid, |strain| strain.median),
    ]
}
