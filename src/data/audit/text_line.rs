//! A generated text as a line of a file: what `drift generate` writes, and `drift eval --texts` without the cost.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use drift_core::Encoding;
use drift_core::constraint::ProcessorKind;

/// The reason why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The end token was written or forced.
    Eos,
    /// The text reached its largest number of tokens.
    Length,
}

/// How often a logit processor that knows the geometry left no token of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadEnds {
    /// The number of places where no token was left, over all attempts.
    pub dead_ends: u32,
    /// After how many of them the text went back. At the others the atom was held to less.
    pub backtracks: u32,
}

/// One generated text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextLine {
    /// The prompt's SMILES.
    pub smiles: String,
    /// The SMILES that pools this molecule with other isomers, if any; `drift audit --pool` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub geom_smiles: Option<String>,
    /// The index of the text among those of the molecule.
    pub generation: usize,
    /// The logit processor.
    pub lp: ProcessorKind,
    /// The name of its placeholder.
    pub placeholder: Option<String>,
    /// The model's name.
    pub model: String,
    /// How coordinates are written, unless in the decimals that a row without it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// The text after the prompt, with special tokens but without the end token.
    pub text: String,
    /// How the text ended, and what it cost; `None` in a line of `drift eval --texts`.
    #[serde(flatten, skip_serializing_if = "Option::is_none", deserialize_with = "cost")]
    pub cost: Option<TextCost>,
}

/// How a text ended, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TextCost {
    /// The reason why it ended.
    pub end: End,
    /// The number of its tokens, without the end token.
    pub tokens: u64,
    /// How many of these the logit processor forced, because it allowed no other.
    pub forced_tokens: u64,
    /// The sum of the logarithms of the probabilities that the unmasked model, at temperature 1, gives to the tokens and to the end
    /// token, in nats. `None` if probabilities were not logged.
    pub log_probability: Option<f64>,
    /// The sum of the logarithms of the probability that the mask allowed at each token, in nats. `None` if probabilities were not
    /// logged.
    pub log_allowed: Option<f64>,
    /// The wall time of the run since the texts that finished before it, divided among the texts that finished together, in seconds.
    /// The time of building templates belongs to the first texts, the time after the last texts to these. So the texts of a run
    /// sum to the time of the run.
    pub seconds: f64,
    /// The same for the CPU seconds of generation; `None` on a GPU, or if the system does not report them.
    pub cpu_seconds: Option<f64>,
    /// The blocks, from 0, that were closed by force although the model would have continued the number. `None` in an encoding whose
    /// texts show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_blocks: Option<Box<[usize]>>,
    /// The number of places where the geometry left no token; `None` if the logit processor knows no geometry. The time and the
    /// tokens of abandoned beginnings count in `seconds` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_ends: Option<u32>,
    /// After how many of them the text went back. At the others the atom was held to less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backtracks: Option<u32>,
}

/// The fields of [`TextCost`] that a line has either all or none of.
const OF_EVERY_COST: [&str; 4] = ["end", "tokens", "forced_tokens", "seconds"];

/// Reads the cost of a line that has one. serde's own reading of a flattened option takes a damaged cost for none.
fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TextCost>, D::Error> {
    let fields = Map::<String, Value>::deserialize(deserializer)?;
    let known = OF_EVERY_COST.iter().filter(|name| fields.get(**name).is_some_and(|value| !value.is_null()));
    match known.count() {
        0 => Ok(None),
        4 => serde_json::from_value(fields.into()).map(Some).map_err(D::Error::custom),
        _ => Err(D::Error::custom("some of `end`, `tokens`, `forced_tokens`, `seconds` are missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = concat!(
        r#"{"smiles":"CO","generation":0,"lp":"automaton","placeholder":null,"model":"m","#,
        r#""text":"[CONFORMER]"}"#
    );

    fn with(fields: &str) -> String {
        format!("{},{fields}}}", PLAIN.trim_end_matches('}'))
    }

    #[test]
    fn lines_come_back_as_they_were_written() {
        let whole = with(concat!(
            r#""end":"length","tokens":12,"forced_tokens":3,"log_probability":-1.5,"log_allowed":null,"#,
            r#""seconds":0.25,"cpu_seconds":null,"truncated_blocks":[0,7]"#
        ));
        let gone_back = with(
            r#""end":"eos","tokens":1,"forced_tokens":0,"log_probability":null,"log_allowed":null,"seconds":1.5,"cpu_seconds":0.5,"dead_ends":2,"backtracks":1"#,
        );
        for line in [PLAIN.to_owned(), whole, gone_back] {
            let read: TextLine = serde_json::from_str(&line).unwrap();
            assert_eq!(read.cost.is_some(), line.contains("tokens"));
            assert_eq!(serde_json::to_string(&read).unwrap(), line);
        }
    }

    #[test]
    fn a_damaged_cost_is_not_taken_for_none() {
        for (fields, part) in [
            (r#""end":"eos","tokens":1"#, "are missing"),
            (r#""end":"bored","tokens":1,"forced_tokens":0,"seconds":1"#, "unknown variant `bored`"),
            (r#""end":"eos","tokens":-1,"forced_tokens":0,"seconds":1"#, "invalid value"),
        ] {
            let error = serde_json::from_str::<TextLine>(&with(fields)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
