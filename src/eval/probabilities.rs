//! How likely the model held what was written: the users' "probability logging".

use super::checkpoint::Checkpoint;
use super::judged::token_texts;
use super::record::ClassProbability;
use super::run::Run;
use crate::constraint::{TextClass, byte_classes, token_class};
use crate::generate::GeneratedText;

/// A token that the model gave less than this is one that it would hardly have written itself.
const UNLIKELY: f64 = 0.01;

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    tokens: u64,
    forced: u64,
    unlikely: u64,
    probability: f64,
    nats: f64,
}

/// The probabilities of a run's tokens by class of text; nothing if they were not logged.
pub(super) fn probabilities(checkpoint: &Checkpoint, run: &Run) -> Vec<ClassProbability> {
    let mut sums = [Sum::default(); TextClass::ALL.len()];
    for sample in &run.generated.samples {
        let Some(logs) = &sample.log_probabilities else { return Vec::new() };
        add(checkpoint, sample, logs, &mut sums);
    }
    let report = |(class, sum): (TextClass, Sum)| {
        let mean = |total: f64| total / sum.tokens as f64;
        ClassProbability {
            class,
            tokens: sum.tokens,
            forced: sum.forced,
            mean_probability: mean(sum.probability),
            mean_nats: mean(sum.nats),
            unlikely: mean(sum.unlikely as f64),
        }
    };
    TextClass::ALL.into_iter().zip(sums).filter(|(_, sum)| sum.tokens > 0).map(report).collect()
}

fn add(
    checkpoint: &Checkpoint,
    sample: &GeneratedText,
    logs: &[f32],
    sums: &mut [Sum; TextClass::ALL.len()],
) {
    let texts = token_texts(&checkpoint.tokenizer, &sample.tokens);
    let bytes = byte_classes(&texts.concat());
    let mut at = 0;
    for ((text, forced), log) in texts.iter().zip(&sample.forced).zip(logs) {
        let class = token_class(&bytes, at..at + text.len());
        at += text.len();
        let sum = &mut sums[TextClass::ALL.iter().position(|known| *known == class).unwrap_or(0)];
        let log = f64::from(*log);
        sum.tokens += 1;
        sum.forced += u64::from(*forced);
        sum.unlikely += u64::from(log < UNLIKELY.ln());
        sum.probability += log.exp();
        sum.nats -= log;
    }
}
