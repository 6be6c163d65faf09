//! The runs of `drift generate` as a table.

use super::fields::Fields;
use super::format::{counted, number, or_dash, seconds, thousands};
use super::table::Terminal;
use drift_data::generation::{GenerationRun, TextsHeader};

/// Returns one row for each model, logit processor and placeholder.
pub fn generate_tables(header: &TextsHeader, terminal: Terminal) -> String {
    let mut table = Fields::new("texts")
        .text("model", |run: &GenerationRun| run.model.clone())
        .code("logit processor", |run| run.lp.name().to_owned())
        .code("placeholder", |run| or_dash(run.placeholder.clone(), |placeholder| placeholder))
        .number("texts", |run| thousands(run.texts))
        .number("tokens", |run| thousands(run.cost.generated_tokens))
        .number("forced", |run| thousands(run.cost.forced_tokens))
        .number("tokens/s", |run| number(run.cost.tokens_per_second))
        .number("time", |run| seconds(run.cost.seconds.total))
        .table(&header.runs);
    let protocol = &header.protocol;
    table.note(format!(
        "{} of {}, preset {}, seed {}.",
        counted(protocol.molecules as u64, "molecule"),
        protocol.molecules_from,
        protocol.preset,
        protocol.seed
    ));
    table.render(terminal)
}
