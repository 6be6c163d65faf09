//! The phases of runs as a Chrome trace, which Perfetto and `chrome://tracing` open.

use serde_json::{Value, json};

use drift_engine::generate::Span;

/// Returns a trace with one process per run. Format: Trace Event Format, complete events (`X`), times in microseconds.
pub fn chrome_trace(runs: &[(String, Vec<Span>)]) -> Value {
    let mut events = Vec::new();
    for (process, (name, spans)) in runs.iter().enumerate() {
        events.push(json!({ "name": "process_name", "ph": "M", "pid": process, "args": { "name": name } }));
        events.extend(spans.iter().map(|span| {
            json!({
                "name": span.phase, "cat": name, "ph": "X", "pid": process, "tid": 0,
                "ts": span.start * 1e6, "dur": span.duration * 1e6, "args": arguments(span),
            })
        }));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" })
}

/// Returns the arguments of a span: its rows. Forward passes also have the number of passes, the sum of their rows, the number of tokens
/// that they processed, the number of positions whose keys and values they read, and the bytes that they had to move at least.
fn arguments(span: &Span) -> Value {
    let mut told = json!({ "rows": span.rows });
    if let Some(traffic) = span.traffic {
        let work = &span.work;
        told["steps"] = work.decode_steps.into();
        told["row_passes"] = work.row_passes.into();
        told["positions"] = work.positions.into();
        told["keys_read"] = work.keys_read.into();
        told["bytes"] = traffic.bytes.into();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use drift_engine::generate::{Phase, Traffic, WorkCounts};

    #[test]
    fn one_event_per_span() {
        let span = Span {
            phase: Phase::Forward,
            start: 0.5,
            duration: 0.25,
            rows: 3,
            work: WorkCounts { decode_steps: 8, keys_read: 70, ..WorkCounts::default() },
            traffic: Some(Traffic { bytes: 1e9, operations: 0.0 }),
        };
        let trace = chrome_trace(&[("none".to_owned(), vec![]), ("automaton".to_owned(), vec![span])]);
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(
            (&events[2]["ts"], &events[2]["dur"], &events[2]["pid"]),
            (&json!(5e5), &json!(2.5e5), &json!(1))
        );
        assert_eq!((&events[2]["name"], &events[2]["args"]["rows"]), (&json!("forward"), &json!(3)));
        let told = &events[2]["args"];
        assert_eq!(
            (&told["steps"], &told["keys_read"], &told["bytes"]),
            (&json!(8), &json!(70), &json!(1e9))
        );
    }
}
