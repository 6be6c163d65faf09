//! Detects regular expressions of a tokenizer that give up on a text.
//!
//! `tokenizers` splits texts with expressions of `fancy-regex`. An expression with look-around or back references is run by
//! backtracking, and fails after a million backtracking steps. `tokenizers` treats this failure as the end of the matches: the rest
//! of the text silently becomes one piece, and its tokens do not follow the expression. So this module matches every encoded text
//! with the same expressions on the same pieces, and refuses the text if one gives up. Expressions that need no backtracking run in
//! linear time and never give up, so they are left out. Counting by tables uses no expressions and costs nothing here.
//!
//! For most expressions, the number of backtracking steps has a known bound. Those of GPT-2, Qwen and Llama backtrack in one place
//! only: `\s+(?!\S)` steps back over a run of white space. At each position of the text, this happens at most once for each
//! alternative and once for each character of the longest run. The expressions of tokenizers that drift extended look ahead and
//! have no unlimited repetition, so they step back at most once for each path through them, at each position. Nearly all texts are
//! far below the limit by these bounds, and are not matched a second time.

use std::sync::OnceLock;

use fancy_regex::{Assertion, Expr, LookAround, Regex};
use serde_json::Value;
use tokenizers::pre_tokenizers::split::SplitPattern;
use tokenizers::tokenizer::{OffsetReferential, OffsetType, PreTokenizer};
use tokenizers::{NormalizerWrapper, PreTokenizedString, PreTokenizerWrapper, Tokenizer as HfTokenizer};

use super::normalizer::marks_spaces;
use crate::error::excerpt;

/// The expression by which `ByteLevel` splits.
const BYTE_LEVEL: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The expressions of a pre-tokenizer that need backtracking, with the pre-tokenizers before them.
pub(super) struct Expressions {
    /// Whether there is such an expression.
    backtrack: bool,
    /// The largest number of backtracking steps of any expression; `None` if no bound is known.
    most: Option<StepsBack>,
    /// Whether the bound holds only for ASCII texts, because the normalizer changes other texts.
    of_ascii: bool,
    /// All steps up to the last one that backtracks. Built for the first text that needs them, which most tokenizers never see.
    steps: OnceLock<Result<Vec<Step>, String>>,
}

/// Half of the backtracking steps that an expression may take.
const SURE: usize = 500_000;

/// Bounds on the backtracking steps of an expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct StepsBack {
    /// At each position: steps for each character of the longest run of white space, and for two characters more.
    of_run: usize,
    /// At each position: steps that do not depend on the text.
    fixed: usize,
    /// Steps at a single position of the text: where the previous match ended.
    once: usize,
    /// The growth factor of the matched text over the original text, minus one.
    longer: usize,
}

/// The largest number of paths through an expression that are counted. With more of them, no bound is known.
const MOST_WAYS: usize = 10_000;

/// One pre-tokenizer of a sequence.
struct Step {
    /// Its expression, if it needs backtracking.
    backtracks: Option<Regex>,
    /// Whether a space is put before a piece first.
    spaced: bool,
    pre_tokenizer: PreTokenizerWrapper,
}

impl Expressions {
    /// Returns the expressions of a tokenizer.
    ///
    /// # Errors
    /// A sentence, if an expression backtracks where this module cannot check it.
    pub(super) fn from_tokenizer(tokenizer: &HfTokenizer) -> Result<Self, String> {
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
        // Other normalizers may turn characters into white space.
        let is_kept = tokenizer.get_normalizer().is_none_or(keeps_white_space);
        let of_ascii = !is_kept && tokenizer.get_normalizer().is_some_and(keeps_ascii);
        let longer = match tokenizer.get_normalizer() {
            None | Some(NormalizerWrapper::NFC(_)) => 0,
            Some(_) if of_ascii => 0,
            Some(_) => LONGER - 1,
        };
        let none = StepsBack { longer, ..StepsBack::default() };
        let most = patterns.iter().try_fold(none, |most, pattern| {
            let steps = steps_back(pattern)?;
            Some(StepsBack {
                of_run: most.of_run.max(steps.of_run),
                fixed: most.fixed.max(steps.fixed),
                once: most.once.max(steps.once),
                longer: most.longer,
            })
        });
        let (backtrack, steps) = (!patterns.is_empty(), OnceLock::new());
        Ok(Expressions { backtrack, most: most.filter(|_| is_kept || of_ascii), of_ascii, steps })
    }

    /// Matches a text as the tokenizer will.
    ///
    /// # Errors
    /// A sentence, if an expression gives up.
    pub(super) fn check(&self, tokenizer: &HfTokenizer, text: &str) -> Result<(), String> {
        let is_known = !self.of_ascii || text.is_ascii();
        if !self.backtrack || is_known && self.most.is_some_and(|most| is_short(text, most)) {
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
                // `ByteLevel` does the same before it splits.
                (self.spaced && !piece.starts_with(char::is_whitespace)).then(|| format!(" {piece}"));
            let piece = spaced.as_deref().unwrap_or(piece);
            if let Some(Err(error)) = regex.find_iter(piece).find(Result::is_err) {
                return Err(format!("{} gives up: {error}", excerpt(regex.as_str().as_bytes())));
            }
        }
        Ok(())
    }
}

/// Returns the pre-tokenizers of a tokenizer; sequences are flattened.
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

/// Returns the expression of a pre-tokenizer, if it needs backtracking.
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

/// Returns all pre-tokenizers up to the last one that needs backtracking.
fn steps(tokenizer: &HfTokenizer) -> Result<Vec<Step>, String> {
    let all = in_order(tokenizer);
    let needed = all.iter().rposition(|one| backtracking(one).is_some()).map_or(0, |last| last + 1);
    let steps = all[..needed].iter().map(|one| {
        let spaced = matches!(one, PreTokenizerWrapper::ByteLevel(level) if level.add_prefix_space);
        let backtracks = backtracking(one).map(Regex::new).transpose().map_err(|e| e.to_string())?;
        Ok(Step { backtracks, spaced, pre_tokenizer: (*one).clone() })
    });
    steps.collect()
}

/// Returns whether a normalizer creates no white space, and makes texts at most [`LONGER`] times as long.
fn keeps_white_space(normalizer: &NormalizerWrapper) -> bool {
    serde_json::to_value(normalizer).is_ok_and(|normalizer| marks_spaces(&normalizer))
}

/// Returns whether a normalizer leaves ASCII unchanged, as Unicode's normal forms do.
fn keeps_ascii(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::NFC(_)
        | NormalizerWrapper::NFD(_)
        | NormalizerWrapper::NFKC(_)
        | NormalizerWrapper::NFKD(_) => true,
        NormalizerWrapper::Sequence(all) => all.as_ref().iter().all(keeps_ascii),
        _ => false,
    }
}

/// The growth of a text in bytes under [`keeps_white_space`]: a space is one byte, its replacement three.
const LONGER: usize = 3;

/// Returns whether no search on this text can take enough steps to give up.
fn is_short(text: &str, most: StepsBack) -> bool {
    let (mut longest, mut run) = (0usize, 0);
    for c in text.chars() {
        run = if c.is_whitespace() { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    // Each alternative that begins with white space walks over a run once.
    let at_a_place = (longest + 2).saturating_mul(most.of_run).saturating_add(most.fixed + 1);
    let steps = (text.len() * (most.longer + 1) + 2).checked_mul(at_a_place);
    steps.and_then(|steps| steps.checked_add(most.once)).is_some_and(|steps| steps <= SURE)
}

/// Returns the bound on an expression's backtracking steps, if it is known.
fn steps_back(pattern: &str) -> Option<StepsBack> {
    let tree = Expr::parse_tree(pattern).ok()?.expr;
    let trailing = Expr::parse_tree(r"\s+(?!\S)").ok()?.expr;
    if let Expr::Alt(alternatives) = &tree
        && alternatives.iter().all(|one| is_regular(one) || *one == trailing || is_run_of_one(one))
    {
        // The end of a run of one character is found with one step back, which ends the match.
        let runs = alternatives.iter().filter(|one| is_run_of_one(one)).count();
        return Some(StepsBack { of_run: alternatives.len(), fixed: runs, ..StepsBack::default() });
    }
    let PathCounts { forks, .. } = ways(&tree, false)?;
    // If a match must begin where the previous one ended, it fails at once at all other positions.
    let is_anchored =
        matches!(&tree, Expr::Concat(parts) if parts.first() == Some(&Expr::ContinueFromPreviousMatchEnd));
    Some(match is_anchored {
        true => StepsBack { fixed: 1, once: forks, ..StepsBack::default() },
        false => StepsBack { fixed: forks, ..StepsBack::default() },
    })
}

/// Returns whether an expression is a character followed by all its repetitions: `([!-/])\1*`, as drift writes `Punctuation`.
fn is_run_of_one(expression: &Expr) -> bool {
    let Expr::Concat(parts) = expression else { return false };
    let [Expr::Group(first), Expr::Repeat { child, lo: 0, hi: usize::MAX, greedy: true }] = &parts[..] else {
        return false;
    };
    matches!(**first, Expr::Delegate { .. } | Expr::Literal { .. }) && matches!(**child, Expr::Backref { .. })
}

/// The paths that `fancy-regex` may try through an expression at one position of a text.
#[derive(Clone, Copy)]
struct PathCounts {
    /// The number of paths to its end.
    ends: usize,
    /// The number of points on all paths at which it may backtrack to try another path.
    forks: usize,
}

impl PathCounts {
    const ONE: PathCounts = PathCounts { ends: 1, forks: 1 };

    /// Returns both expressions in sequence.
    fn then(self, next: PathCounts) -> Option<PathCounts> {
        let ends = self.ends.checked_mul(next.ends)?;
        let forks = self.ends.checked_mul(next.forks)?.checked_add(self.forks)?;
        (ends.max(forks) <= MOST_WAYS).then_some(PathCounts { ends, forks })
    }

    /// Either expression.
    fn or(self, other: PathCounts) -> Option<PathCounts> {
        let (ends, forks) = (self.ends + other.ends, self.forks + other.forks);
        (ends.max(forks) <= MOST_WAYS).then_some(PathCounts { ends, forks })
    }
}

/// Returns the paths through an expression; `None` if it has an unlimited repetition. `fancy-regex` delegates regular expressions to
/// automata, which never backtrack. But `within` an expression that is not regular, it may try each path itself.
fn ways(expression: &Expr, within: bool) -> Option<PathCounts> {
    if !within && is_regular(expression) {
        return Some(PathCounts::ONE);
    }
    match expression {
        Expr::Empty
        | Expr::Any { .. }
        | Expr::Literal { .. }
        | Expr::Delegate { .. }
        | Expr::Assertion(_)
        | Expr::ContinueFromPreviousMatchEnd => Some(PathCounts::ONE),
        Expr::Group(part) => ways(part, within),
        Expr::LookAround(part, LookAround::LookAhead | LookAround::LookAheadNeg) => {
            PathCounts::ONE.then(ways(part, false)?)
        }
        Expr::Concat(parts) => {
            parts.iter().try_fold(PathCounts::ONE, |all, part| all.then(ways(part, true)?))
        }
        Expr::Alt(parts) => parts.iter().try_fold(PathCounts::ONE, |all, part| all.or(ways(part, within)?)),
        // Each number of repetitions is a path of its own.
        Expr::Repeat { child, hi, .. } if *hi <= MOST_WAYS => {
            let once = ways(child, true)?;
            let (mut all, mut so_far) = (PathCounts::ONE, PathCounts::ONE);
            for _ in 0..*hi {
                so_far = so_far.then(once)?;
                all = all.or(so_far)?;
            }
            Some(all)
        }
        _ => None,
    }
}

/// Returns the regular expressions of all `Replace` parts, anywhere in a JSON document.
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

/// Returns whether an expression is run by backtracking, because it contains a feature that automata do not support.
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
    use proptest::prelude::ProptestConfig;

    use super::*;

    #[test]
    fn texts_too_short_to_give_up_are_told() {
        let byte_level = steps_back(BYTE_LEVEL).unwrap();
        assert!(byte_level.of_run > 5 && byte_level.fixed == 0, "{byte_level:?}");
        for pattern in
            [r"\s+(?!\s)|\s+", r"(a+)+\1|b", r"(?=a)(?:a|b)*c(?!d)", r"(?<=a)b", r"(?=a)(?:ab?){40}c"]
        {
            assert_eq!(steps_back(pattern), None, "{pattern}");
        }
        let blocks = "[C]<1.2345,-2.3456,10.1111>";
        let steps = |of_run, fixed| StepsBack { of_run, fixed, ..StepsBack::default() };
        for most in [steps(13, 0), steps(0, 40)] {
            assert!(is_short(&blocks.repeat(300), most));
            assert!(!is_short(&"x".repeat(100_000), most));
        }
        assert!(!is_short(&" ".repeat(1_000), steps(13, 0)));
        assert!(is_short(blocks, StepsBack { fixed: 1, once: 9_000, ..steps(0, 0) }));
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

    /// Expressions of tokenizers that drift extended: fused, separate, of the stripped encoding.
    const EXTENDED: [&str; 6] = [
        r"\A<-?[0-9]\.[0-9]{2}>\z|[\(\)]|([!<>,.\-])\1*",
        r"\G(?!\z)(?:<(?=(?:0x0A>|unused1>|a)\z)|[0-9](?=(?:[0-9]|[0-9]\.)\z)|a(?=b))",
        r"\G(?:\A<(?=-?[0-1]\.[0-9]{4},-?[0-1]\.[0-9]{4}>\z)|(?!\A)(?:,-?[0-1]\.|-?[0-1]\.|[0-9]{2}|>))",
        r"\A<(?=-?[0-9]\.[0-9]{4}>\z)|(?!\A)-?[0-9]\.|(?!\A)[0-9]{2}",
        r"(?=<)<(?:-?[0-9](?:\.[0-9]{1,4})?,){2}(?!,)|x",
        r"(?!a)(?:a?b?c?){0,3}(?=d)",
    ];

    proptest::proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_expression_steps_back_oftener_than_is_told(
            text in "([<>,.0-9abcdx -]|<{5,9}|-{5,9}){0,60}",
            block in "<(-?[01]\\.[0-9]{2,4},){1,3}-?[01]\\.[0-9]{4}>",
        ) {
            for pattern in EXTENDED {
                let most = steps_back(pattern).unwrap();
                for text in [format!("{text}{block}"), format!("{block}{text}"), block.clone()] {
                    let run = text.split(|c: char| !c.is_whitespace()).map(str::len).max().unwrap_or(0);
                    let limit = (text.len() + 2) * ((run + 2) * most.of_run + most.fixed + 1) + most.once;
                    let regex = fancy_regex::RegexBuilder::new(pattern).backtrack_limit(limit).build().unwrap();
                    proptest::prop_assert!(regex.find_iter(&text).all(|found| found.is_ok()), "{pattern} {text}");
                }
            }
        }
    }
}
