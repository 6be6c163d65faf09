//! What a decode step has to move, and how many rows a device can step in a second at most: by counting, nothing is timed.
//!
//! `cargo bench --bench floor` prints the table of docs/notes/gpu-step.md; `-- --check` compares it with the page.

#![allow(clippy::print_stdout, reason = "a table is its output")]

use drift::generate::{Traffic, WorkCounts};
use drift::model::{Config, Synthetic};

/// Tokens that the automaton allows somewhere in a block, by the tokenizer that the shape's model has.
const LEGAL: [(Synthetic, u64); 2] = [(Synthetic::Qwen3Small, 14), (Synthetic::Llama380M, 1104)];

/// Bytes per second of memory, by NVIDIA's data sheets: H100 SXM and H200.
const RATES: [f64; 2] = [3.35e12, 4.8e12];

const BATCHES: [u64; 5] = [1, 8, 32, 128, 256];
const CONTEXTS: [u64; 2] = [512, 1024];

/// A step of a batch in bf16, one token each, over so many positions.
fn step(shape: Synthetic, batch: u64, context: u64, head: u64) -> Traffic {
    let counts = WorkCounts {
        decode_steps: 1,
        positions: batch,
        keys_read: batch * context,
        keys_seen: batch * context,
        head_weights: head,
        head_rows: head * batch,
        ..WorkCounts::default()
    };
    counts.traffic(&Config::synthetic(shape), (2, 2)).expect("positions were counted")
}

/// Three digits at most.
fn short(number: f64) -> String {
    let decimals = if number < 9.995 {
        2
    } else if number < 99.95 {
        1
    } else {
        0
    };
    format!("{number:.decimals$}")
}

fn table() -> Vec<String> {
    let batches: Vec<String> = BATCHES.iter().map(u64::to_string).collect();
    let mut lines = vec![
        format!("| shape, context | batch {} | whole head, batch 32 |", batches.join(" | ")),
        format!("| --- | {}--- |", "--- | ".repeat(BATCHES.len())),
    ];
    for (shape, legal) in LEGAL {
        for context in CONTEXTS {
            let cell = |batch: u64, head: u64| {
                let Traffic { bytes, .. } = step(shape, batch, context, head);
                let rates = RATES.map(|rate| short(batch as f64 * rate / bytes / 1e3));
                format!("{}: {}/{}", short(bytes / 1e9), rates[0], rates[1])
            };
            let mut cells: Vec<String> = BATCHES.iter().map(|batch| cell(*batch, legal)).collect();
            cells.push(cell(32, Config::synthetic(shape).vocab_size as u64));
            lines.push(format!("| {}, {context} | {} |", shape.name(), cells.join(" | ")));
        }
    }
    lines
}

fn main() {
    let lines = table();
    lines.iter().for_each(|line| println!("{line}"));
    if std::env::args().any(|argument| argument == "--check") {
        let page = include_str!("../../docs/notes/gpu-step.md");
        let absent: Vec<&String> = lines.iter().filter(|line| !page.contains(line.as_str())).collect();
        assert!(absent.is_empty(), "docs/notes/gpu-step.md lacks {absent:#?}");
        println!("docs/notes/gpu-step.md has this table.");
    }
}
