//! `drift extend-model` beside `cp` of the same weights, by turns: seconds of each, their ratio, and the program's peak memory.
//!
//! `cargo bench --bench extend_model` makes a random checkpoint of the shape of Qwen3-0.6B (1.2 GB) and extends it from
//! `qwen-like` to `qwen-like-separate`; `-- --model MODEL --tokenizer EXTENDED` takes others, whose tokenizers may take longer to
//! read. `-- --check` does it once with a small model, without a time. Files are in the page cache after the first turn.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "prints what it measures")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use drift::checkpoint::{TensorEntry, header_bytes};
use drift::tokenizer::Tokenizer;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use safetensors::Dtype;

/// Turns.
const TURNS: usize = 5;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let given =
        |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1)).cloned();
    let check_only = arguments.iter().any(|argument| argument == "--check");
    let work = tempfile::tempdir()?;
    let model = given("--model").map(PathBuf::from);
    let tokenizer = given("--tokenizer").unwrap_or_else(|| "qwen-like-separate".to_owned());
    let model = match model {
        Some(model) => model,
        None => random(&work.path().join("model"), check_only)?,
    };
    let (copy, out) = (work.path().join("copy"), work.path().join("out"));
    let mut best = [f64::INFINITY; 2];
    for turn in 0..if check_only { 1 } else { TURNS } {
        // As a fresh file each: what replaces one also frees its blocks.
        let _ = (std::fs::remove_dir_all(&copy), std::fs::remove_dir_all(&out));
        std::fs::create_dir(&copy)?;
        let cp = copied(&model, &copy)?;
        let (extend, peak) = extended(&model, &tokenizer, &out)?;
        best = [best[0].min(cp), best[1].min(extend)];
        if !check_only {
            println!("turn {turn}: cp {cp:.2} s, extend-model {extend:.2} s, peak {} MB", peak / 1000);
        }
    }
    if check_only {
        println!("check passed");
    } else {
        println!("best: cp {:.2} s, extend-model {:.2} s, ratio {:.2}", best[0], best[1], best[1] / best[0]);
    }
    Ok(())
}

/// Seconds that `cp` takes for the weights.
fn copied(model: &Path, to: &Path) -> anyhow::Result<f64> {
    let files: Vec<PathBuf> =
        std::fs::read_dir(model)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    let is_weights = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "safetensors");
    let began = Instant::now();
    let status = Command::new("cp").args(files.iter().filter(is_weights)).arg(to).status()?;
    anyhow::ensure!(status.success(), "cp failed");
    Ok(began.elapsed().as_secs_f64())
}

/// Seconds that drift takes, and the most memory that it held, in kB (`VmHWM` of Linux; 0 elsewhere).
fn extended(model: &Path, tokenizer: &str, to: &Path) -> anyhow::Result<(f64, u64)> {
    let began = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_drift"));
    command
        .args(["extend-model", "--quiet", "--tokenizer", tokenizer, "--model"])
        .arg(model)
        .arg("-o")
        .arg(to);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak = 0;
    let status = loop {
        let said = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let most = said
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak = peak.max(most.unwrap_or(0));
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    anyhow::ensure!(status.success(), "extend-model failed");
    Ok((began.elapsed().as_secs_f64(), peak))
}

/// A random checkpoint of the shape of Qwen3-0.6B, or a small one.
fn random(folder: &Path, small: bool) -> anyhow::Result<PathBuf> {
    let (hidden, inner, layers, rows) = if small { (64, 128, 2, 1_600) } else { (1_024, 3_072, 28, 151_936) };
    std::fs::create_dir_all(folder)?;
    let base = Tokenizer::embedded_by_name(Path::new("qwen-like")).expect("it comes with drift");
    std::fs::write(folder.join("tokenizer.json"), base.json)?;
    let config = format!(
        r#"{{"model_type": "qwen3", "vocab_size": {rows}, "hidden_size": {hidden}, "num_hidden_layers": {layers}, "tie_word_embeddings": true}}"#
    );
    std::fs::write(folder.join("config.json"), config)?;
    let mut tensors = vec![entry("model.embed_tokens", rows, hidden)];
    for layer in 0..layers {
        let heads = [("q", 2 * hidden), ("k", hidden), ("v", hidden)];
        for (name, out) in heads {
            tensors.push(entry(&format!("model.layers.{layer}.self_attn.{name}_proj"), out, hidden));
        }
        tensors.push(entry(&format!("model.layers.{layer}.self_attn.o_proj"), hidden, 2 * hidden));
        for name in ["gate", "up"] {
            tensors.push(entry(&format!("model.layers.{layer}.mlp.{name}_proj"), inner, hidden));
        }
        tensors.push(entry(&format!("model.layers.{layer}.mlp.down_proj"), hidden, inner));
    }
    let mut file = BufWriter::new(File::create(folder.join("model.safetensors"))?);
    file.write_all(&header_bytes(None, &tensors, 0).map_err(anyhow::Error::msg)?)?;
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let mut bytes = vec![0; 1 << 20];
    let mut left: u64 = tensors.iter().map(|tensor| tensor.bytes).sum();
    while left > 0 {
        let some = left.min(bytes.len() as u64) as usize;
        random.fill_bytes(&mut bytes[..some]);
        // Numbers of BF16 near 0.01, of either sign.
        bytes[..some].chunks_exact_mut(2).for_each(|pair| pair[1] = 0x3c | pair[1] & 0x80);
        file.write_all(&bytes[..some])?;
        left -= some as u64;
    }
    file.flush()?;
    Ok(folder.to_owned())
}

fn entry(name: &str, rows: usize, columns: usize) -> TensorEntry {
    let bytes = 2 * (rows * columns) as u64;
    TensorEntry { name: format!("{name}.weight"), dtype: Dtype::BF16, shape: vec![rows, columns], bytes }
}
