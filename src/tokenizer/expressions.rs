//! Expressions of a tokenizer that may give up on a text.
//!
//! `tokenizers` splits by the expressions of `fancy-regex`. One with look-around or back references is run by
//! backtracking, and ends with an error after a million steps back. `tokenizers` takes that error for the end of the
//! matches: what is left of the text becomes one piece, without a word. Tokens are then of nothing that the expression
//! says. So each text that is encoded is matched here too, by the same expressions on the same pieces, and refused where
//! one gives up. Expressions that are not run by backtracking take linear time, give up on nothing, and are left out;
//! tables count without expressions, and pay nothing.
//!
//! GPT-2's expression, and those of Qwen and Llama, backtrack in one place: `\s+(?!\S)` steps back over a run of white
//! space. How far that can go is known before: a search steps back at most once for each alternative, and once for each
//! character of the longest run, at each place of the text. Texts for which this is far from the limit, which are nearly
//! all, are not matched twice.

use fancy_regex::{Assertion, Expr, Regex};
use serde_json::Value;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizer};
use tokenizers::{NormalizerWrapper, PreTokenizedString, PreTokenizerWrapper, Tokenizer as HfTokenizer};

use crate::error::excerpt;

/// What `tokenizers` splits by where `ByteLevel` uses an expression.
const BYTE_LEVEL: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The expressions of a pre-tokenizer that are run by backtracking, with what comes before them.
pub(super) struct Expressions {
    /// Up to the last one that backtracks.
    steps: Vec<Step>,
    /// The most alternatives of one, where white space is all that they backtrack over; none elsewhere.
    alternatives: Option<usize>,
}

/// Half of the steps back that an expression has.
const SURE: usize = 500_000;

/// One pre-tokenizer of a sequence.
struct Step {
    /// Its expression, if that backtracks.
    backtracks: Option<Regex>,
    /// Whether a space is put before a piece first.
    spaced: bool,
    pre_tokenizer: PreTokenizerWrapper,
}

impl Expressions {
    /// Those of a tokenizer.
    ///
    /// # Errors
    /// A sentence: where an expression backtracks in a place that cannot be looked into.
    pub(super) fn of(tokenizer: &HfTokenizer) -> Result<Self, String> {
        let parts = [
            ("normalizer", serde_json::to_value(tokenizer.get_normalizer())),
            ("decoder", serde_json::to_value(tokenizer.get_decoder())),
        ];
        for (part, json) in parts {
            let json = json.map_err(|e| format!("its {part} cannot be read: {e}"))?;
            if let Some(pattern) = replaced(&json).into_iter().find(|pattern| backtracks(pattern)) {
                let pattern = excerpt(pattern.as_bytes());
                return Err(format!("its {part} replaces by {pattern}, which may give up on a text unseen"));
            }
        }
        let mut steps = Vec::new();
        if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
            add_steps(pre_tokenizer, &mut steps)?;
        }
        let needed = steps.iter().rposition(|step| step.backtracks.is_some()).map_or(0, |last| last + 1);
        steps.truncate(needed);
        let alternatives =
            steps.iter().filter_map(|step| Some(white_space_alone(step.backtracks.as_ref()?.as_str())));
        // Other normalizers may make white space of something else.
        let is_kept = matches!(tokenizer.get_normalizer(), None | Some(NormalizerWrapper::NFC(_)));
        let alternatives = alternatives.collect::<Option<Vec<_>>>().filter(|_| is_kept);
        Ok(Expressions { alternatives: alternatives.map(|all| all.into_iter().max().unwrap_or(0)), steps })
    }

    /// Matches a text as the tokenizer will.
    ///
    /// # Errors
    /// A sentence, if an expression gives up.
    pub(super) fn check(&self, tokenizer: &HfTokenizer, text: &str) -> Result<(), String> {
        let Some((last, before)) = self.steps.split_last() else { return Ok(()) };
        if self.alternatives.is_some_and(|alternatives| is_short(text, alternatives)) {
            return Ok(());
        }
        let added = tokenizer.get_added_vocabulary();
        let mut pieces = added.extract_and_normalize(tokenizer.get_normalizer(), text);
        for step in before {
            step.check(&pieces)?;
            step.pre_tokenizer.pre_tokenize(&mut pieces).map_err(|e| e.to_string())?;
        }
        last.check(&pieces)
    }
}

impl Step {
    fn check(&self, pieces: &PreTokenizedString) -> Result<(), String> {
        let Some(regex) = &self.backtracks else { return Ok(()) };
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::None);
        for (piece, ..) in splits.into_iter().filter(|(_, _, tokens)| tokens.is_none()) {
            let spaced =
                (self.spaced && !piece.starts_with(char::is_whitespace)).then(|| format!(" {piece}"));
            let piece = spaced.as_deref().unwrap_or(piece);
            if let Some(Err(error)) = regex.find_iter(piece).find(Result::is_err) {
                return Err(format!("{} gives up: {error}", excerpt(regex.as_str().as_bytes())));
            }
        }
        Ok(())
    }
}

/// The steps of a pre-tokenizer, in order.
fn add_steps(pre_tokenizer: &PreTokenizerWrapper, steps: &mut Vec<Step>) -> Result<(), String> {
    let pattern = match pre_tokenizer {
        PreTokenizerWrapper::Sequence(sequence) => {
            return sequence.as_ref().iter().try_for_each(|one| add_steps(one, steps));
        }
        PreTokenizerWrapper::Split(split) => match &split.pattern {
            SplitPattern::Regex(pattern) => Some(pattern.as_str()),
            SplitPattern::String(_) => None,
        },
        PreTokenizerWrapper::ByteLevel(level) => level.use_regex.then_some(BYTE_LEVEL),
        _ => None,
    };
    let regex = |pattern: &str| Regex::new(pattern).map_err(|e| e.to_string());
    let backtracks = pattern.filter(|pattern| backtracks(pattern)).map(regex).transpose()?;
    let spaced = matches!(pre_tokenizer, PreTokenizerWrapper::ByteLevel(level) if level.add_prefix_space);
    steps.push(Step { backtracks, spaced, pre_tokenizer: pre_tokenizer.clone() });
    Ok(())
}

/// Whether no search can step back often enough to give up.
fn is_short(text: &str, alternatives: usize) -> bool {
    let (mut longest, mut run) = (0usize, 0);
    for c in text.chars() {
        run = if c.is_whitespace() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // A run is gone over once by each way that begins with it.
    let steps = (text.len() + 2).checked_mul((longest + 2).saturating_mul(alternatives.max(1)));
    steps.is_some_and(|steps| steps <= SURE)
}

/// The number of alternatives of an expression that backtracks in `\s+(?!\S)` alone.
fn white_space_alone(pattern: &str) -> Option<usize> {
    let tree = Expr::parse_tree(pattern).ok()?.expr;
    let trailing = Expr::parse_tree(r"\s+(?!\S)").ok()?.expr;
    let Expr::Alt(alternatives) = tree else { return None };
    let is_known = |one: &Expr| is_regular(one) || *one == trailing;
    alternatives.iter().all(is_known).then_some(alternatives.len())
}

/// The expressions by which `Replace` replaces, anywhere in a document.
fn replaced(json: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut waiting = vec![json];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(values) => waiting.extend(values),
            Value::Object(fields) => {
                found.extend(value.pointer("/pattern/Regex").and_then(Value::as_str));
                waiting.extend(fields.values());
            }
            _ => {}
        }
    }
    found
}

/// Whether an expression is run by backtracking: whether it holds anything that automata do not.
fn backtracks(pattern: &str) -> bool {
    Expr::parse_tree(pattern).map_or(true, |tree| !is_regular(&tree.expr))
}

fn is_regular(expression: &Expr) -> bool {
    match expression {
        Expr::Empty | Expr::Any { .. } | Expr::Literal { .. } | Expr::Delegate { .. } => true,
        Expr::Assertion(assertion) => matches!(
            assertion,
            Assertion::StartText
                | Assertion::EndText
                | Assertion::StartLine { .. }
                | Assertion::EndLine { .. }
        ),
        Expr::Concat(parts) | Expr::Alt(parts) => parts.iter().all(is_regular),
        Expr::Group(part) | Expr::Repeat { child: part, .. } => is_regular(part),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_too_short_to_give_up_are_told() {
        assert!(white_space_alone(BYTE_LEVEL).is_some_and(|count| count > 5));
        for pattern in [r"(?=a)|b", r"\s+(?!\s)|\s+", "a+", r"(a+)+\1|b"] {
            assert_eq!(white_space_alone(pattern), None, "{pattern}");
        }
        assert!(is_short(&"[C]<1.2345,-2.3456,10.1111>".repeat(300), 13));
        assert!(!is_short(&" ".repeat(1_000), 13) && !is_short(&"x".repeat(100_000), 13));
    }

    #[test]
    fn expressions_that_backtrack_are_told() {
        for pattern in [r"\p{L}+| ?\d{1,3}", "(?i)ab|c*", "^a$", "[^a-z]+?"] {
            assert!(!backtracks(pattern), "{pattern}");
        }
        for pattern in [BYTE_LEVEL, r"(a)\1", "(?>a|b)", r"\bfoo", "a(?=b)", "(?<!x)y"] {
            assert!(backtracks(pattern), "{pattern}");
        }
    }
}
