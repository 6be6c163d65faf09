//! Sampling settings and their preset names.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::parameter;

/// The transformations of the logits after a logit processor, in this order, like transformers: temperature, top-k, top-p, min-p.
/// The rest is renormalised and sampled from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// Divides the logits; `None` always takes the most likely token.
    pub temperature: Option<f64>,
    /// Keeps this many of the most likely tokens, and those that equal the last one; 0 keeps all.
    pub top_k: Option<usize>,
    /// Keeps the most likely tokens until their probability reaches this share.
    pub top_p: Option<f64>,
    /// Keeps tokens with at least this share of the most likely token's probability.
    pub min_p: Option<f64>,
}

impl Sampling {
    /// Always the most likely token; of equal ones the smallest id.
    pub const GREEDY: Sampling = Sampling { temperature: None, top_k: None, top_p: None, min_p: None };

    /// The settings that Qwen3's authors recommend, and that 3DMolGen uses for it.
    pub const QWEN3: Sampling =
        Sampling { temperature: Some(0.7), top_k: Some(20), top_p: Some(0.8), min_p: None };

    /// Returns the names of 3DMolGen's presets.
    pub fn names() -> Vec<String> {
        let mut names = vec!["greedy".to_owned(), "qwen3".to_owned()];
        for share in ["1.0", "0.8", "0.6", "0.4"] {
            names.extend(["1.0", "1.2", "1.4"].map(|temperature| format!("top-p-{share}-t{temperature}")));
        }
        for share in ["0.05", "0.075", "0.1"] {
            names.extend(
                ["0.8", "1.0", "1.2", "1.4"].map(|temperature| format!("min-p-{share}-t{temperature}")),
            );
        }
        names
    }

    /// Returns the settings of `greedy`, `qwen3`, `top-p-P-tT` or `min-p-P-tT`, for the values of [`Sampling::names`] or any others. Only
    /// `qwen3` uses top-k.
    ///
    /// # Errors
    /// If there is no such preset.
    pub fn preset(name: &str) -> Result<Self> {
        let parsed = match name {
            "greedy" => Some(Sampling::GREEDY),
            "qwen3" => Some(Sampling::QWEN3),
            _ => Self::parse(name),
        };
        let sampling = parsed.ok_or_else(|| {
            let remedy = "give greedy, qwen3, top-p-P-tT or min-p-P-tT, such as top-p-0.8-t1.2";
            Error::parameter(parameter::PRESET, format!("there is no preset `{name}`"), remedy)
        })?;
        sampling.check().map(|()| sampling)
    }

    fn parse(name: &str) -> Option<Self> {
        let (is_min, rest) = match name.strip_prefix("min-p-") {
            Some(rest) => (true, rest),
            None => (false, name.strip_prefix("top-p-")?),
        };
        let (share, temperature) = rest.split_once("-t")?;
        let (share, temperature) = (share.parse().ok()?, temperature.parse().ok()?);
        let sampling = Sampling { temperature: Some(temperature), ..Sampling::GREEDY };
        Some(match is_min {
            true => Sampling { min_p: Some(share), ..sampling },
            false => Sampling { top_p: Some(share), ..sampling },
        })
    }

    /// # Errors
    /// If a value is out of range.
    pub fn check(&self) -> Result<()> {
        let is_share = |share: Option<f64>| share.is_none_or(|share| share > 0.0 && share <= 1.0);
        let is_positive = self.temperature.is_none_or(|t| t.is_finite() && t > 0.0);
        let known = [
            ("temperature", is_positive, "give a positive number"),
            ("top-p", is_share(self.top_p), "give a share above 0, at most 1"),
            ("min-p", is_share(self.min_p), "give a share above 0, at most 1"),
        ];
        match known.into_iter().find(|(_, is_right, _)| !is_right) {
            Some((name, _, remedy)) => {
                Err(Error::parameter(parameter::PRESET, format!("{name} is out of range"), remedy))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Candidates, Noise, draw};
    use super::*;

    #[test]
    fn a_top_k_of_none_keeps_all() {
        let logits: Vec<f32> = (0..50).map(|n| (n * 7 % 11) as f32 / 4.0).collect();
        let of = |top_k| Sampling { temperature: Some(1.5), top_k, top_p: Some(0.9), min_p: None };
        assert!(of(Some(0)).check().is_ok() && of(Some(1)).check().is_ok());
        let drawn = |top_k| -> Vec<Option<u32>> {
            let one = |position| {
                draw(Candidates::Except(&logits, &[]), &of(top_k), &mut Noise::new(1, 0, 0), position).ok()
            };
            (0..40).map(one).collect()
        };
        assert_eq!(drawn(Some(0)), drawn(None));
        assert!(drawn(Some(1)) != drawn(None) && drawn(Some(0)).iter().all(Option::is_some));
        let wrong = Sampling { temperature: Some(0.0), ..of(Some(0)) };
        assert!(wrong.check().is_err());
    }
}
