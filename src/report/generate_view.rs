//! The runs of `drift generate` as a table.

use super::format::{number, or_dash, seconds, thousands};
use super::table::{Table, Terminal};
use drift_data::generation::TextsHeader;

/// Returns one row for each model, logit processor and placeholder.
pub fn generate_tables(header: &TextsHeader, terminal: Terminal) -> String {
    let mut table = Table::new("texts")
        .text("model")
        .code("logit processor")
        .code("placeholder")
        .number("texts")
        .number("tokens")
        .number("forced")
        .number("tokens/s")
        .number("time");
    for run in &header.runs {
        table.row([
            run.model.clone(),
            run.lp.name().to_owned(),
            or_dash(run.placeholder.clone(), |placeholder| placeholder),
            thousands(run.texts),
            thousands(run.cost.generated_tokens),
            thousands(run.cost.forced_tokens),
            number(run.cost.tokens_per_second),
            seconds(run.cost.seconds.total),
        ]);
    }
    let protocol = &header.protocol;
    table.note(format!(
        "{} molecules of {}, preset {}, seed {}.",
        thousands(protocol.molecules as u64),
        protocol.molecules_from,
        protocol.preset,
        protocol.seed
    ));
    table.render(terminal)
}
