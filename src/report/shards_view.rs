//! The progress of shards as a table.

use super::format::{rate, seconds, thousands};
use super::table::{Table, Terminal};
use drift_data::shard::progress::{ShardState, ShardsProgress};

/// Returns one row per shard, and the total.
pub fn shards_table(progress: &ShardsProgress, terminal: Terminal) -> String {
    let mut table = Table::new("Shards").number("shard").text("state").number(progress.unit).number("time");
    for shard in &progress.shards {
        let time = if shard.seconds > 0.0 { seconds(shard.seconds) } else { "-".to_owned() };
        table.row([shard.number.to_string(), shard.state.name().to_owned(), thousands(shard.finished), time]);
    }
    let states = ShardState::ALL.iter().filter_map(|state| {
        let count = progress.shards.iter().filter(|shard| shard.state == *state).count();
        (count > 0).then(|| format!("{count} {}", state.name()))
    });
    let states: Vec<String> = states.collect();
    table.note(format!("{} of {}.", states.join(", "), progress.shards.len()));
    if let Some(speed) = progress.per_second {
        let left =
            progress.seconds_left.map_or_else(String::new, |left| format!("; about {} left", seconds(left)));
        table.note(format!("{} in each{left}.", rate(speed, progress.unit)));
    }
    table.render(terminal)
}
