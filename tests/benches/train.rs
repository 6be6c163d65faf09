//! Gradients of the trainer: written out by hand, and recorded by candle, on the same packs in the same run.
//!
//! `RAYON_NUM_THREADS=1 cargo bench --profile peers --bench train`: tokens per second of both, forward and backward, alternating, at two
//! shapes; `-- --check` compares gradients and times nothing. With more threads packs are computed side by side; candle then
//! shares one pool among them for its elementwise operations, and each waits for the others.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "prints what it measures")]

use std::time::Instant;

use candle_core::Device;
use drift::corpus::{Conformers, EmbeddedConformers};
use drift::encoding::Encoding;
use drift::job::Job;
use drift::model::{Architecture, Config};
use drift::tokenizer::{Tokenizer, config_beside};
use drift::train::Shape;
use drift::train::autograd::Autograd;
use drift::train::batches::packs;
use drift::train::documents::{Document, Loss, Writer, pack};
use drift::train::network::{Network, Pack};
use rayon::prelude::*;

fn main() -> anyhow::Result<()> {
    let check = std::env::args().any(|a| a == "--check");
    let shapes = if check { vec![(64, 2, 4096)] } else { vec![(192, 4, 4096), (384, 8, 4096)] };
    for (hidden, layers, batch_tokens) in shapes {
        compare(hidden, layers, batch_tokens, check)?;
    }
    Ok(())
}

fn compare(hidden: usize, layers: usize, batch_tokens: usize, check: bool) -> anyhow::Result<()> {
    let (config, documents) = setting(hidden, layers)?;
    let longest = documents.iter().map(|document| document.tokens.len()).max().unwrap_or(1);
    let network = Network::new(&config, longest);
    let recorded = Autograd::new(&config, longest, &Device::Cpu)?;
    let flat = network.layout.initial(1);
    let mut total = 0;
    let batch: Vec<Document> = documents
        .into_iter()
        .take_while(|document| {
            total += document.tokens.len();
            total <= batch_tokens
        })
        .collect();
    let weights = network.weights(&flat)?;
    let vars = recorded.weights(&flat)?;
    for limit in [1024, 4096] {
        let packs: Vec<Pack> =
            packs(&batch, limit).into_iter().map(|part| pack(part, Loss::default())).collect();
        let tokens: usize = packs.iter().map(|pack| pack.tokens.len()).sum();
        let by_hand =
            || packs.par_iter().map(|pack| network.gradient(&weights, pack)).collect::<Result<Vec<_>, _>>();
        let by_candle = || {
            packs
                .par_iter()
                .map(|pack| recorded.gradient(&vars, std::slice::from_ref(pack)))
                .collect::<Result<Vec<_>, _>>()
        };
        let (ours, theirs) = (by_hand()?, by_candle()?);
        for ((loss, gradient), (other_loss, other)) in ours.iter().zip(&theirs) {
            let size = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let error = gradient.iter().zip(other).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
            assert!((loss - other_loss).abs() < 1e-4 * loss, "{loss} {other_loss}");
            assert!(error < 1e-3 * size, "{error} of {size}");
        }
        if check {
            println!("hidden {hidden}, {layers} layers, packs of {limit}: gradients agree");
            continue;
        }
        let mut seconds = [0.0, 0.0];
        let rounds = if hidden < 300 { 5 } else { 3 };
        for _ in 0..rounds {
            let begun = Instant::now();
            by_hand()?;
            seconds[0] += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            by_candle()?;
            seconds[1] += begun.elapsed().as_secs_f64();
        }
        let [hand, candle] = seconds.map(|s| (tokens * rounds) as f64 / s);
        println!(
            "hidden {hidden}, {layers} layers, packs of {limit}: by hand {hand:.0} tokens/s, recorded {candle:.0}, ratio {:.2} (bar 0.40)",
            candle / hand
        );
    }
    Ok(())
}

/// A decoder of this size, and documents of the embedded corpus.
fn setting(hidden: usize, layers: usize) -> anyhow::Result<(Config, Vec<Document>)> {
    let tokenizer = Tokenizer::load("qwen-like".as_ref())?;
    let end = tokenizer.end_of_text(config_beside("qwen-like".as_ref())?.as_ref())?;
    let shape = Shape {
        architecture: Architecture::Qwen3,
        hidden,
        layers,
        heads: 4,
        kv_heads: 2,
        head_dim: hidden / 4,
        intermediate: hidden * 8 / 3,
        context: 2048,
    };
    let vocabulary = tokenizer.rows() as usize;
    let config = shape.config(vocabulary, None, &end)?;
    let writer = Writer {
        tokenizer: &tokenizer,
        end: &end,
        encoding: Encoding::FIXED,
        context: shape.context,
        keep: false,
    };
    let documents = writer.documents(&EmbeddedConformers::default() as &dyn Conformers, &Job::default())?;
    Ok((config, documents.train))
}
