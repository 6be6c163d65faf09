//! Where a text always falls apart: pairs of characters that no token holds side by side.
//!
//! # Which tokens count
//! A model's tokens, and every symbol that BPE has on its way to them, are contiguous parts of the text. So a token that
//! a text cannot contain never comes up in it, and need not be looked at. In every text that is counted by tables or
//! generated, a `<` opens a block: only digits, points, commas and signs stand between it and the next `>`. Tokens with
//! anything else behind a `<` (`<h1>`, `<unused7>`, `<0x0A>`) are therefore left out, and so are added tokens that no text
//! holds (`[control_135]`, `>>TITLE<<`: [`crate::text::holds`]). All others count; it is asked of them only which characters of
//! ASCII they join: GPT-2's ` 155` joins none that matter.
//!
//! Byte-level vocabularies write printable ASCII as itself and everything else in other letters, SentencePiece's write a
//! space as `▁`; so a pair of ASCII characters in a token is the same pair in the text, as long as the normalizer leaves
//! ASCII alone, which is checked. Characters without a token of their own are unknown, and unknown ones side by side may be
//! one token: such pairs count as joined.
//!
//! # Why texts fall apart
//! Between two characters that nothing joins, BPE merges nothing, whatever stands around them, and the order of the other
//! merges does not depend on it: the parts are tokenised as if each were alone. Unigram takes the way of the highest sum of
//! scores; between such characters it is the sum of two independent ones. But sums are rounded, so two ways that
//! score alike may be ordered by what stands before them: [`Scores::margin`] says by how much the best way is ahead.

use std::collections::{BTreeMap, HashMap, HashSet};

use tokenizers::ModelWrapper;
use tokenizers::models::unigram::Unigram;

use super::load::Tokenizer;
use crate::encoding::Encoding;
use crate::text::holds::may_hold;

/// What may stand beside the digits of a number.
struct Beside {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl Beside {
    fn read(encoding: Encoding) -> Self {
        let point = encoding.is_decimal().then_some(b'.');
        let mut before = vec![encoding.open().bytes().last().unwrap_or(b']')];
        before.extend(encoding.separator().bytes().last());
        before.extend(encoding.is_signed().then_some(b'-'));
        before.extend(point);
        let mut after = vec![encoding.close().bytes().next().unwrap_or(b'[')];
        after.extend(encoding.separator().bytes().next());
        after.extend(point);
        Beside { before, after }
    }

    /// Whether white space stands beside digits. Between brackets it stands between numbers alone, and is asked of the encoder.
    fn has_white_space(&self) -> bool {
        [&self.before, &self.after].iter().any(|bytes| bytes.iter().any(u8::is_ascii_whitespace))
    }
}

/// The pairs of characters that tokens join.
pub struct TokenBoundaries {
    /// By the first and the second character of a pair.
    joined: Vec<bool>,
    /// The least token that joins a digit with the border of a number.
    crossing: Option<String>,
    /// Added tokens in brackets that are no atoms, though characters of SMILES: texts with one are not counted by tables.
    watched: Vec<Box<[u8]>>,
    /// For Unigram models.
    scores: Option<Scores>,
}

impl TokenBoundaries {
    /// Reads a tokenizer's vocabulary, for texts of an encoding.
    ///
    /// # Errors
    /// A sentence that says why nothing can be said of this tokenizer.
    pub fn learn(tokenizer: &Tokenizer, encoding: Encoding) -> Result<Self, String> {
        let beside = Beside::read(encoding);
        let digits_alone =
            |text: &str| !encoding.is_decimal() && text.bytes().all(|byte| byte.is_ascii_digit());
        let scores = match tokenizer.inner().get_model() {
            ModelWrapper::BPE(bpe) => {
                // Tokens with affixes are no parts of the text.
                let affixes = [bpe.get_continuing_subword_prefix(), &bpe.end_of_word_suffix];
                if affixes.into_iter().flatten().any(|affix| !affix.is_empty()) {
                    return Err("a BPE model with word prefixes or suffixes".into());
                }
                None
            }
            ModelWrapper::Unigram(unigram) => Some(Scores::of(unigram)),
            _ => return Err("neither a BPE nor a Unigram model".into()),
        };
        keeps_ascii(tokenizer)?;
        let mut cuts =
            TokenBoundaries { joined: vec![false; 128 * 128], crossing: None, watched: Vec::new(), scores };
        // The text of an added token never reaches the model, so no token of the model holds one that no text holds.
        let mut never = HashSet::new();
        // By id, so that messages do not depend on the order of a hash map.
        let added: BTreeMap<_, _> = tokenizer.inner().get_added_tokens_decoder().into_iter().collect();
        for added in added.into_values() {
            match role(&added.content, encoding) {
                // Bins as tokens: they are matched before the model, and the automaton asks the encoder about them.
                _ if digits_alone(&added.content) => {
                    never.insert(added.content.clone());
                }
                Role::Never => {
                    never.insert(added.content.clone());
                }
                Role::NoAtom => cuts.watched.push(added.content.as_bytes().into()),
                Role::Text => {
                    return Err(format!(
                        "added token `{}` may stand in a text",
                        added.content.escape_debug()
                    ));
                }
            }
        }
        let vocabulary = tokenizer.inner().get_vocab(false);
        let spaced = !encoding.is_bracketed() && beside.has_white_space();
        for token in vocabulary.keys().filter(|token| may_come_up(token) && !never.contains(*token)) {
            if spaced && !token.is_ascii() {
                cuts.add(&with_white_space(token), &beside);
            } else {
                cuts.add(token, &beside);
            }
        }
        let falls_back = matches!(tokenizer.inner().get_model(), ModelWrapper::BPE(bpe) if bpe.byte_fallback);
        cuts.add_unknown(&vocabulary, falls_back);
        Ok(cuts)
    }

    fn add(&mut self, token: &str, beside: &Beside) {
        let mut crosses = false;
        for pair in token.as_bytes().windows(2) {
            let (a, b) = (pair[0], pair[1]);
            // What lies beyond ASCII is no character of the format, or a letter that stands for a byte.
            if a < 128 && b < 128 {
                self.joined[usize::from(a) * 128 + usize::from(b)] = true;
            }
            crosses |= b.is_ascii_digit() && beside.before.contains(&a);
            crosses |= a.is_ascii_digit() && beside.after.contains(&b);
        }
        // The least one, so that messages do not depend on the order of a hash map.
        if crosses && self.crossing.as_deref().is_none_or(|least| token < least) {
            self.crossing = Some(token.to_owned());
        }
    }

    /// Joins characters that have no token, not even that of their byte.
    fn add_unknown(&mut self, vocabulary: &HashMap<String, u32>, falls_back: bool) {
        let known = |byte: u8| {
            vocabulary.contains_key(&char::from(byte).to_string())
                || (falls_back && vocabulary.contains_key(&format!("<0x{byte:02X}>")))
        };
        // Printable ASCII.
        let unknown: Vec<u8> = (33..127).filter(|byte| !known(*byte)).collect();
        for a in &unknown {
            for b in &unknown {
                self.joined[usize::from(*a) * 128 + usize::from(*b)] = true;
                let digit = a.is_ascii_digit() || b.is_ascii_digit();
                if digit && self.crossing.is_none() {
                    self.crossing = Some(format!("{}{}", char::from(*a), char::from(*b)));
                }
            }
        }
    }

    /// Whether some token may hold `a` before `b`.
    pub fn joins(&self, a: u8, b: u8) -> bool {
        // Nothing is recorded beyond ASCII, so it counts as joined.
        a >= 128 || b >= 128 || self.joined[usize::from(a) * 128 + usize::from(b)]
    }

    /// Whether a text falls apart somewhere.
    pub fn falls_apart(&self, text: &str) -> bool {
        text.as_bytes().windows(2).any(|pair| !self.joins(pair[0], pair[1]))
    }

    /// Whether a text falls apart at both ends of every run of digits in a block.
    ///
    /// # Errors
    /// A sentence that names a token which crosses such a border.
    pub fn separate_digits(&self) -> Result<(), String> {
        match &self.crossing {
            Some(token) => {
                Err(format!("token `{}` joins a digit with another character", token.escape_debug()))
            }
            None => Ok(()),
        }
    }

    /// Whether a text holds an added token that is no atom in brackets of its own.
    pub fn is_watched(&self, text: &[u8]) -> bool {
        self.watched.iter().any(|content| memchr::memmem::find(text, content).is_some())
    }

    /// Whether the tokens of a part between two cuts depend on nothing else: always for BPE, for Unigram if its best way is
    /// ahead. `begins` says that the part begins a text, where the tokenizer may put a space before it.
    pub fn is_decided(&self, tokenizer: &Tokenizer, part: &str, begins: bool) -> bool {
        let Some(scores) = &self.scores else { return true };
        let Ok(pieces) = tokenizer.normalized(part).and_then(|text| tokenizer.pre_tokens(&text)) else {
            return false;
        };
        pieces.iter().enumerate().all(|(at, piece)| {
            // The normalizer puts a space before a part that is asked alone; in its text it has none.
            let bare = piece.strip_prefix(SPACE).filter(|_| at == 0 && !begins);
            scores.margin(bare.unwrap_or(piece)) >= MARGIN
        })
    }

    /// Whether the tokens of all runs of up to `longest` digits are decided, and of the signs between numbers.
    ///
    /// # Errors
    /// A sentence that names a part of which two ways score alike.
    pub fn decide_numbers(&self, tokenizer: &Tokenizer, longest: usize) -> Result<(), String> {
        if self.scores.is_none() {
            return Ok(());
        }
        // What stands in a number, and between two: all that the tables ask for.
        let runs =
            (1..=longest).flat_map(|len| (0..10usize.pow(len as u32)).map(move |n| format!("{n:0len$}")));
        let mut parts = runs.chain([",-", ".", ","].map(str::to_owned));
        match parts.find(|part| !self.is_decided(tokenizer, part, false)) {
            Some(part) => Err(format!("two ways to cut `{part}` are equally likely")),
            None => Ok(()),
        }
    }
}

/// SentencePiece's space.
pub const SPACE: &str = "\u{2581}";

/// What the best way has to be ahead by. A text's sum of scores is below 10⁸ in magnitude, where doubles are 10⁻⁸ apart, and
/// two ways through a part differ in fewer than a hundred additions.
const MARGIN: f64 = 1e-5;

/// The pieces of a Unigram model with their scores.
pub struct Scores {
    pieces: HashMap<String, f64>,
    /// The longest piece, in bytes.
    longest: usize,
}

impl Scores {
    fn of(model: &Unigram) -> Self {
        let pieces: HashMap<String, f64> = model.iter().cloned().collect();
        let longest = pieces.keys().map(String::len).max().unwrap_or(0);
        Scores { pieces, longest }
    }

    /// By how much the best way to cut a text is ahead of the next; 0 if a character has no piece of its own, infinite if
    /// there is one way.
    ///
    /// The two best sums up to each place follow from those up to the places before it.
    pub fn margin(&self, text: &str) -> f64 {
        const NONE: f64 = f64::NEG_INFINITY;
        let mut best = vec![[NONE; 2]; text.len() + 1];
        best[0][0] = 0.0;
        for (start, c) in text.char_indices() {
            if !self.pieces.contains_key(&text[start..start + c.len_utf8()]) {
                return 0.0;
            }
            let ends =
                (start + 1..=text.len().min(start + self.longest)).filter(|end| text.is_char_boundary(*end));
            for end in ends {
                let Some(score) = self.pieces.get(&text[start..end]) else { continue };
                for sum in best[start].map(|sum| sum + score) {
                    let [first, second] = best[end];
                    if sum > first {
                        best[end] = [sum, first];
                    } else if sum > second {
                        best[end][1] = sum;
                    }
                }
            }
        }
        let [first, second] = best[text.len()];
        first - second
    }
}

/// A token with its white space as in the text: byte-level vocabularies write it in letters, SentencePiece's as `▁`.
fn with_white_space(token: &str) -> String {
    token.replace(['\u{120}', '\u{2581}'], " ").replace('\u{10a}', "\n")
}

/// Whether a normalizer leaves printable ASCII as it is, but for a space before it.
fn keeps_ascii(tokenizer: &Tokenizer) -> Result<(), String> {
    let ascii: String = (33..127u8).map(char::from).collect();
    match tokenizer.normalized(&ascii) {
        Ok(text) if text.strip_prefix(SPACE).unwrap_or(&text) == ascii => Ok(()),
        _ => Err("its normalizer changes characters of the format".into()),
    }
}

/// Whether a text in which every `<` opens a block may contain a token.
fn may_come_up(token: &str) -> bool {
    let of_block = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    token.split('<').skip(1).all(|behind| {
        let inside = behind.split('>').next().unwrap_or_default();
        inside.chars().all(of_block)
    })
}

/// What an added token is to a text between the tags.
enum Role {
    /// No text holds it.
    Never,
    /// A bracket of SMILES characters that is no atom.
    NoAtom,
    /// It may stand in a text.
    Text,
}

fn role(content: &str, encoding: Encoding) -> Role {
    let inner = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let tag = inner.is_some_and(|name| {
        let name = name.trim_start_matches('/');
        name.len() >= 3 && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
    });
    let foreign =
        content.chars().any(|c| !c.is_ascii_graphic() || matches!(c, '|' | '_' | '{' | '}' | '!' | '"'));
    let atom = inner.is_some_and(is_atom);
    // Of three capitals and digits there are tags, as `[CLS]`, and atoms, as `[NH3]`.
    if (tag && !atom) || foreign || !may_come_up(content) {
        return Role::Never;
    }
    let is_bracket = inner.is_some_and(|inner| !inner.contains(['[', ']', '<', '>']));
    if is_bracket && !atom {
        return Role::NoAtom;
    }
    // `>>TITLE<<` is made of a text's characters, and yet no text holds it.
    if may_hold(content, encoding) { Role::Text } else { Role::Never }
}

/// Whether what stands between brackets could be an atom of SMILES: an isotope, a symbol of at most two letters or `*`, and
/// then signs, digits or an H.
fn is_atom(inner: &str) -> bool {
    let symbol = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let letters = symbol.bytes().take_while(u8::is_ascii_alphabetic).count();
    let behind = &symbol[letters..];
    let letters = symbol[..letters].trim_end_matches('H').len();
    (letters <= 2 && (letters > 0 || symbol.starts_with(['*', 'H'])))
        && behind.bytes().all(|b| !b.is_ascii_lowercase())
}
