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
    if report.corpus.skipped > 0 {
        table.fact("records that could not be read, left out", thousands(report.corpus.skipped));
    }
    if let Some(point) = report.curve.last() {
        table.fact("steps", thousands(point.step));
        table.fact("tokens seen", thousands(point.tokens));
        table.fact("last loss, nats a token", hundredths(point.loss));
    }
    if let Some(stored) = &report.stored {
        table.fact("validation conformers", thousands(stored.conformers));
        let figures = [
            ("nats a token", stored.nats_per_token.map(hundredths)),
            ("nats a conformer", stored.nats_per_conformer.map(hundredths)),
            ("COPY tokens predicted rightly", stored.copy_accuracy.map(percent)),
            ("FREE tokens predicted rightly", stored.free_accuracy.map(percent)),
            ("conformers with every COPY token right", stored.copied.map(percent)),
        ];
        for (name, figure) in figures {
            figure.into_iter().for_each(|figure| _ = table.fact(name, figure));
        }
    }
    table.render(terminal)
}
