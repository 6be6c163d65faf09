//! The report of a training as a table.

use super::format::{encoding_name, hundredths, percent, thousands};
use super::table::{Table, Terminal};
use drift_engine::train::TrainReport;

/// Returns the output of `drift train-model` in a terminal.
pub fn train_table(report: &TrainReport, terminal: Terminal) -> String {
    let shape = &report.recipe.shape;
    let title = format!(
        "{:?}, {} layers of {}, tokenizer {}, {}",
        shape.architecture,
        shape.layers,
        shape.hidden,
        report.recipe.tokenizer,
        encoding_name(report.recipe.encoding)
    );
    let mut table = Table::new(title).text("").number("");
    table.fact("weights", thousands(report.parameters));
    table.fact("conformers learned from", thousands(report.corpus.train.conformers));
    table.fact("their molecules", thousands(report.corpus.train.molecules));
    table.fact("their tokens", thousands(report.corpus.train.tokens));
    if report.corpus.too_long > 0 {
        table.fact("conformers longer than the context, left out", thousands(report.corpus.too_long));
    }
    if report.corpus.without_smiles > 0 {
        table.fact("conformers without SMILES, left out", thousands(report.corpus.without_smiles));
    }
    if let Some(point) = report.curve.last() {
        table.fact("steps", thousands(point.step));
        table.fact("tokens seen", thousands(point.tokens));
        table.fact("last loss, nats a token", hundredths(point.loss));
    }
    if let Some(stored) = &report.stored {
        table.fact("validation conformers", thousands(stored.conformers));
        table.fact("nats a token", hundredths(stored.nats_per_token));
        table.fact("nats a conformer", hundredths(stored.nats_per_conformer));
        table.fact("COPY tokens predicted rightly", percent(stored.copy_accuracy));
        table.fact("FREE tokens predicted rightly", percent(stored.free_accuracy));
        table.fact("conformers with every COPY token right", percent(stored.copied));
    }
    table.render(terminal)
}
