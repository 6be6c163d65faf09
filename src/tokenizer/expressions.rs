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

use std::sync::OnceLock;

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
    /// Whether there is one.
    backtrack: bool,
    /// The most alternatives of one, where white space is all that they backtrack over; none elsewhere.
    alternatives: Option<usize>,
    /// Up to the last one that backtracks. Made for the first text that needs them: most tokenizers never meet one.
    steps: OnceLock<Result<Vec<Step>, String>>,
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
        let all = in_order(tokenizer);
        let patterns: Vec<&str> = all.iter().filter_map(|one| backtracking(one)).collect();
        // Other normalizers may make white space of something else.
        let is_kept = matches!(tokenizer.get_normalizer(), None | Some(NormalizerWrapper::NFC(_)));
        let alternatives = patterns.iter().map(|pattern| white_space_alone(pattern));
        let alternatives = alternatives.collect::<Option<Vec<_>>>().filter(|_| is_kept);
        Ok(Expressions {
            backtrack: !patterns.is_empty(),
            alternatives: alternatives.map(|all| all.into_iter().max().unwrap_or(0)),
            steps: OnceLock::new(),
        })
    }

    /// Matches a text as the tokenizer will.
    ///
    /// # Errors
    /// A sentence, if an expression gives up.
    pub(super) fn check(&self, tokenizer: &HfTokenizer, text: &str) -> Result<(), String> {
        if !self.backtrack || self.alternatives.is_some_and(|alternatives| is_short(text, alternatives)) {
            return Ok(());
        }
        let steps = self.steps.get_or_init(|| steps(tokenizer)).as_ref().map_err(String::clone)?;
        let Some((last, before)) = steps.split_last() else { return Ok(()) };
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

/// The pre-tokenizers of a tokenizer, those of a sequence one by one.
fn in_order(tokenizer: &HfTokenizer) -> Vec<&PreTokenizerWrapper> {
    let mut found = Vec::new();
    let mut waiting: Vec<&PreTokenizerWrapper> = tokenizer.get_pre_tokenizer().into_iter().collect();
    while let Some(one) = waiting.pop() {
        match one {
            PreTokenizerWrapper::Sequence(sequence) => waiting.extend(sequence.as_ref().iter().rev()),
            _ => found.push(one),
        }
    }
    found
}

/// The expression of a pre-tokenizer, if it has one that backtracks.
fn backtracking(pre_tokenizer: &PreTokenizerWrapper) -> Option<&str> {
    let pattern = match pre_tokenizer {
        PreTokenizerWrapper::Split(split) => match &split.pattern {
            SplitPattern::Regex(pattern) => Some(pattern.as_str()),
            SplitPattern::String(_) => None,
        },
        PreTokenizerWrapper::ByteLevel(level) => level.use_regex.then_some(BYTE_LEVEL),
        _ => None,
    };
    pattern.filter(|pattern| backtracks(pattern))
}

/// The steps up to the last one that backtracks.
fn steps(tokenizer: &HfTokenizer) -> Result<Vec<Step>, String> {
    let all = in_order(tokenizer);
    let needed = all.iter().rposition(|one| backtracking(one).is_some()).map_or(0, |last| last + 1);
    let step = |one: &&PreTokenizerWrapper| {
        let spaced = matches!(one, PreTokenizerWrapper::ByteLevel(level) if level.add_prefix_space);
        let backtracks = backtracking(one).map(Regex::new).transpose().map_err(|e| e.to_string())?;
        Ok(Step { backtracks, spaced, pre_tokenizer: (*one).clone() })
    };
    all[..needed].iter().map(step).collect()
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
