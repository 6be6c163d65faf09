//! The model's probability of the tokens that were written (which users call "probability logging"), and the probability that the
//! mask left.

use super::checkpoint::Checkpoint;
use super::run::Run;
use super::written::token_texts;
use crate::generate::{GeneratedText, ResampledGroup};
use drift_core::constraint::{TextClass, byte_classes, token_class};
use drift_data::generation::ClassProbability;
use drift_data::generation::{ClassMaskCost, MaskCost, ResamplingReport, Spread};

/// The probability below which the model would hardly have written a token itself.
const UNLIKELY: f64 = 0.01;

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    tokens: u64,
    forced: u64,
    unlikely: u64,
    probability: f64,
    nats: f64,
}

/// Returns the probabilities of a run's tokens by class of text; empty if they were not logged.
pub(crate) fn probabilities(checkpoint: &Checkpoint, run: &Run) -> Vec<ClassProbability> {
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
    let classes = token_classes(checkpoint, sample);
    for ((class, forced), log) in classes.into_iter().zip(&sample.forced).zip(logs) {
        let sum = &mut sums[place(class)];
        let log = f64::from(*log);
        sum.tokens += 1;
        sum.forced += u64::from(*forced);
        sum.unlikely += u64::from(log < UNLIKELY.ln());
        sum.probability += log.exp();
        sum.nats -= log;
    }
}

/// Returns the class of each token of a text.
fn token_classes(checkpoint: &Checkpoint, sample: &GeneratedText) -> Vec<TextClass> {
    let texts = token_texts(&checkpoint.tokenizer, &sample.tokens);
    // Classes are determined for the bytes of the whole text, since the class of a token depends on the surrounding text.
    let bytes = byte_classes(&texts.concat());
    let mut at = 0;
    let class = |text: &String| {
        at += text.len();
        token_class(&bytes, at - text.len()..at)
    };
    texts.iter().map(class).collect()
}

/// Returns the index of a class among all classes.
fn place(class: TextClass) -> usize {
    TextClass::ALL.iter().position(|known| *known == class).unwrap_or(0)
}

/// Returns the effect of the mask over the texts of a run; `None` if it was not logged.
pub(crate) fn mask_cost(checkpoint: &Checkpoint, run: &Run) -> Option<MaskCost> {
    let samples = &run.generated.samples;
    let mut tokens = [0; TextClass::ALL.len()];
    let (mut all, mut by_class) = (Vec::new(), vec![Vec::new(); TextClass::ALL.len()]);
    for sample in samples {
        let mut sums = [0.0; TextClass::ALL.len()];
        let classes = token_classes(checkpoint, sample).into_iter();
        // The value logged after the last token is that of the end of text.
        for (class, log) in classes.chain([TextClass::Tag]).zip(sample.log_allowed.as_ref()?) {
            tokens[place(class)] += 1;
            sums[place(class)] += f64::from(*log);
        }
        all.push(sums.iter().sum());
        by_class.iter_mut().zip(sums).for_each(|(texts, sum)| texts.push(sum));
    }
    let class = |((class, tokens), sums): ((TextClass, u64), &Vec<f64>)| {
        Some(ClassMaskCost { class, tokens, log_z: Spread::from_values(sums)? })
            .filter(|class| class.tokens > 0)
    };
    let classes = TextClass::ALL.into_iter().zip(tokens).zip(&by_class).filter_map(class).collect();
    Some(MaskCost { texts: samples.len() as u64, log_z: Spread::from_values(&all)?, classes })
}

/// Returns the results of resampling groups of at most `draws` texts; `None` if no group was finished.
pub(crate) fn resampling(draws: usize, run: &Run) -> Option<ResamplingReport> {
    let groups = &run.generated.resampled;
    let spread = |figure: fn(&ResampledGroup) -> f64| {
        Spread::from_values(&groups.iter().map(figure).collect::<Vec<f64>>())
    };
    Some(ResamplingReport {
        draws,
        groups: groups.len() as u64,
        effective: spread(|group| group.effective)?,
        least_effective: spread(|group| group.least_effective)?,
        resamplings: groups.iter().map(|group| group.resamplings as u64).sum(),
        ancestors: spread(|group| group.ancestors as f64)?,
        log_legal: spread(|group| group.log_legal)?,
    })
}
