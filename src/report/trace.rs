//! The phases of runs as a Chrome trace: opens in Perfetto and in `chrome://tracing`.

use serde_json::{Value, json};

use crate::generate::Span;

/// A trace with one process per run. Format: Trace Event Format, complete events (`X`), times in microseconds.
pub fn chrome_trace(runs: &[(String, Vec<Span>)]) -> Value {
    let mut events = Vec::new();
    for (process, (name, spans)) in runs.iter().enumerate() {
        events.push(json!({ "name": "process_name", "ph": "M", "pid": process, "args": { "name": name } }));
        events.extend(spans.iter().map(|span| {
            json!({
                "name": span.phase, "cat": name, "ph": "X", "pid": process, "tid": 0,
                "ts": span.start * 1e6, "dur": span.duration * 1e6, "args": { "rows": span.rows },
            })
        }));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Phase;

    #[test]
    fn one_event_per_span() {
        let span = Span { phase: Phase::Forward, start: 0.5, duration: 0.25, rows: 3 };
        let trace = chrome_trace(&[("none".to_owned(), vec![]), ("automaton".to_owned(), vec![span])]);
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(
            (&events[2]["ts"], &events[2]["dur"], &events[2]["pid"]),
            (&json!(5e5), &json!(2.5e5), &json!(1))
        );
        assert_eq!((&events[2]["name"], &events[2]["args"]["rows"]), (&json!("forward"), &json!(3)));
    }
}
