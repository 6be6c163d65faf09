//! The report of a training as a table.

use super::format::{encoding_name, hundredths, percent, thousands};
use super::table::{Table, Terminal};
use drift_engine::train::TrainReport;

/// The output of `drift train-model` in a terminal.
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
    let mut row = |name: &str, value: String| {
        table.row([name.to_owned(), value]);
    };
    row("weights", thousands(report.parameters));
    row("conformers learned from", thousands(report.corpus.train.conformers));
    row("their molecules", thousands(report.corpus.train.molecules));
    row("their tokens", thousands(report.corpus.train.tokens));
    if report.corpus.too_long > 0 {
        row("conformers longer than the context, left out", thousands(report.corpus.too_long));
    }
    if report.corpus.without_smiles > 0 {
        row("conformers without SMILES, left out", thousands(report.corpus.without_smiles));
    }
    if let Some(point) = report.curve.last() {
        row("steps", thousands(point.step));
        row("tokens seen", thousands(point.tokens));
        row("last loss, nats a token", hundredths(point.loss));
    }
    if let Some(stored) = &report.stored {
        row("validation conformers", thousands(stored.conformers));
        row("nats a token", hundredths(stored.nats_per_token));
        row("nats a conformer", hundredths(stored.nats_per_conformer));
        row("COPY tokens predicted rightly", percent(stored.copy_accuracy));
        row("FREE tokens predicted rightly", percent(stored.free_accuracy));
        row("conformers with every COPY token right", percent(stored.copied));
    }
    table.render(terminal)
}
