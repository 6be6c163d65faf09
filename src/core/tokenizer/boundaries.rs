//! Borders at which every text falls apart: pairs of adjacent characters that no token contains.
//!
//! # Which tokens count
//! The tokens of a model, and every symbol that BPE forms on the way to them, are contiguous parts of the text. So a token that a
//! text cannot contain never occurs in it and can be ignored. In every text that is counted by tables or generated, a `<` opens a
//! block: only digits, points, commas and signs stand between it and the next `>`. Tokens with other characters behind a `<`
//! (`<h1>`, `<unused7>`, `<0x0A>`) are therefore ignored, and so are added tokens that no text contains (`[control_135]`,
//! `>>TITLE<<`: [`crate::text::containment`]). Of all other tokens, only the pairs of ASCII characters that they join matter: ` 155` of
//! GPT-2 joins no relevant pair.
//!
//! Byte-level vocabularies write printable ASCII as itself and everything else as other letters; SentencePiece vocabularies write a
//! space as `▁`. So a pair of ASCII characters in a token is the same pair in the text, provided that the normalizer leaves ASCII
//! unchanged, which is checked. Characters without a token are unknown, and adjacent unknown characters may become one token: such
//! pairs count as joined.
//!
//! # Why texts fall apart
//! Between two characters that no token joins, BPE never merges, whatever surrounds them, and the order of the other merges does
//! not depend on it. So both parts are tokenised as if each were alone. Unigram takes the segmentation with the highest sum of
//! scores; across such a border, the sum is that of two independent segmentations. But sums are rounded, so the preceding text may
//! decide between two segmentations with equal scores: `scores` tells whether the best one is ahead.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tokenizers::ModelWrapper;

use super::byte_pairs::BytePairs;
use super::load::Tokenizer;
use super::normalizer::SPACE;
use super::scores::Scores;
use super::spellings::TokenSpellings;
use crate::encoding::Encoding;
use crate::text::containment::may_hold;

/// The characters that may be adjacent to the digits of a number.
struct AdjacentCharacters {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl AdjacentCharacters {
    fn read(encoding: Encoding) -> Self {
        let point = encoding.is_decimal().then_some(b'.');
        let mut before = vec![encoding.open().bytes().last().unwrap_or(b']')];
        before.extend(encoding.separator().bytes().last());
        before.extend(encoding.is_signed().then_some(b'-'));
        before.extend(point);
        let mut after = vec![encoding.close().bytes().next().unwrap_or(b'[')];
        after.extend(encoding.separator().bytes().next());
        after.extend(point);
        AdjacentCharacters { before, after }
    }

    /// Returns whether white space may be adjacent to digits. In bracketed slots it only separates numbers, and the encoder is asked
    /// about it.
    fn has_white_space(&self) -> bool {
        [&self.before, &self.after].iter().any(|bytes| bytes.iter().any(u8::is_ascii_whitespace))
    }
}

/// The pairs of adjacent characters that tokens contain.
pub struct TokenBoundaries {
    /// Indexed by the first and the second character of a pair.
    joined: Vec<bool>,
    /// The pairs that added tokens join; of [`TokenBoundaries::within`].
    joined_by_added: Vec<bool>,
    /// The smallest token that joins a digit with a character at the border of a number.
    crossing: Option<String>,
    /// Added tokens in brackets that consist of SMILES characters but are not atoms. Texts with such a token are not counted by
    /// tables. Of [`TokenBoundaries::within`]: all added tokens that texts may hold.
    watched: Vec<Box<[u8]>>,
    /// The scores of a Unigram model.
    scores: Option<Arc<Scores>>,
}

impl TokenBoundaries {
    /// Reads the vocabulary of a tokenizer, for texts of an encoding.
    ///
    /// # Errors
    /// A sentence that says why this tokenizer cannot be analysed.
    pub fn learn(tokenizer: &Tokenizer, encoding: Encoding) -> Result<Self, String> {
        let beside = AdjacentCharacters::read(encoding);
        let digits_alone =
            |text: &str| !encoding.is_decimal() && text.bytes().all(|byte| byte.is_ascii_digit());
        let scores = match tokenizer.inner().get_model() {
            ModelWrapper::BPE(bpe) => {
                // Tokens with affixes are not parts of the text.
                let affixes = [bpe.get_continuing_subword_prefix(), &bpe.end_of_word_suffix];
                if affixes.into_iter().flatten().any(|affix| !affix.is_empty()) {
                    return Err("a BPE model with word prefixes or suffixes".into());
                }
                None
            }
            ModelWrapper::Unigram(unigram) => Some(Arc::new(Scores::of(unigram))),
            _ => return Err("neither a BPE nor a Unigram model".into()),
        };
        keeps_ascii(tokenizer)?;
        let mut cuts = TokenBoundaries {
            joined: vec![false; 128 * 128],
            joined_by_added: Vec::new(),
            crossing: None,
            watched: Vec::new(),
            scores,
        };
        // An added token's text never reaches the model. So a model token with the same text never occurs.
        let mut never = HashSet::new();
        // Sorted by id, so that messages do not depend on the order of a hash map.
        let added: BTreeMap<_, _> = tokenizer.inner().get_added_tokens_decoder().into_iter().collect();
        for added in added.into_values() {
            match role(&added.content, encoding) {
                Role::Never => _ = never.insert(added.content),
                // Bins as tokens: they are matched before the model runs, and the automaton asks the encoder about them.
                _ if digits_alone(&added.content) => _ = never.insert(added.content),
                Role::NoAtom => cuts.watched.push(added.content.as_bytes().into()),
                Role::Text => {
                    let content = added.content.escape_debug();
                    return Err(format!("added token `{content}` may stand in a text"));
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

    /// Returns the boundaries in texts of these pairs of bytes: tokens with any other pair do not occur in them.
    pub(crate) fn within(spellings: &TokenSpellings, pairs: &BytePairs) -> Self {
        let mut joined = vec![false; 128 * 128];
        let mut joined_by_added = joined.clone();
        let mut known = BTreeSet::new();
        // A space that the tokenizer adds stands behind no byte of the text.
        let may_hold = |bytes: &[u8]| pairs.may_hold(bytes.strip_prefix(b" ").unwrap_or(bytes));
        for (id, bytes) in spellings.all().filter(|token| may_hold(token.1)) {
            for pair in bytes.windows(2).filter(|pair| pair.is_ascii()) {
                let at = index(pair[0], pair[1]);
                joined[at] = true;
                joined_by_added[at] |= spellings.is_added(id);
            }
            if let [byte] = bytes {
                known.insert(*byte);
            }
        }
        // Adjacent characters without a token may become one unknown token.
        let unknown: Vec<&u8> =
            pairs.bytes().iter().filter(|byte| byte.is_ascii() && !known.contains(*byte)).collect();
        for a in &unknown {
            unknown.iter().for_each(|b| joined[index(**a, **b)] = true);
        }
        let added = spellings.of_plain_added().filter(|bytes| bytes.len() > 2 && pairs.may_hold(bytes));
        let watched = added.map(Box::from).collect();
        TokenBoundaries { joined, joined_by_added, crossing: None, watched, scores: spellings.scores.clone() }
    }

    /// Returns whether a text ends with an added token, which is matched before the model runs, so that nothing joins it.
    pub(crate) fn ends_added(&self, text: &str) -> bool {
        self.watched.iter().any(|content| text.as_bytes().ends_with(content))
    }

    /// Returns whether a text begins with an added token, and no other one may begin before it, behind `last`.
    pub(crate) fn begins_added(&self, last: u8, text: &[u8]) -> bool {
        let mut begun = self.watched.iter().filter(|content| text.starts_with(content));
        begun.any(|content| !self.joins_by_added(last, content[0]))
    }

    fn joins_by_added(&self, a: u8, b: u8) -> bool {
        a >= 128 || b >= 128 || self.joined_by_added[index(a, b)]
    }

    fn add(&mut self, token: &str, beside: &AdjacentCharacters) {
        let mut crosses = false;
        for pair in token.as_bytes().windows(2) {
            let (a, b) = (pair[0], pair[1]);
            // Non-ASCII characters do not belong to the format, or are letters that stand for bytes.
            if a < 128 && b < 128 {
                self.joined[index(a, b)] = true;
            }
            crosses |= b.is_ascii_digit() && beside.before.contains(&a);
            crosses |= a.is_ascii_digit() && beside.after.contains(&b);
        }
        // The smallest token, so that messages do not depend on the order of a hash map.
        if crosses && self.crossing.as_deref().is_none_or(|least| token < least) {
            self.crossing = Some(token.to_owned());
        }
    }

    /// Marks characters as joined if they have no token, not even for their byte.
    fn add_unknown(&mut self, vocabulary: &HashMap<String, u32>, falls_back: bool) {
        // Printable ASCII.
        let unknown: Vec<u8> = (33..127)
            .filter(|byte| !vocabulary.contains_key(&char::from(*byte).to_string()))
            .filter(|byte| !falls_back || !vocabulary.contains_key(&format!("<0x{byte:02X}>")))
            .collect();
        for a in &unknown {
            for b in &unknown {
                self.joined[index(*a, *b)] = true;
                let digit = a.is_ascii_digit() || b.is_ascii_digit();
                if digit && self.crossing.is_none() {
                    self.crossing = Some(format!("{}{}", char::from(*a), char::from(*b)));
                }
            }
        }
    }

    /// Returns whether some token may contain `a` directly before `b`.
    pub fn joins(&self, a: u8, b: u8) -> bool {
        // Pairs beyond ASCII are not recorded, so they count as joined.
        a >= 128 || b >= 128 || self.joined[index(a, b)]
    }

    /// Returns whether a text falls apart somewhere.
    pub(crate) fn falls_apart(&self, text: &str) -> bool {
        text.as_bytes().windows(2).any(|pair| !self.joins(pair[0], pair[1]))
    }

    /// Whether a text falls apart at both ends of every run of digits in a block.
    ///
    /// # Errors
    /// A sentence that names a token across such a border.
    pub(crate) fn separate_digits(&self) -> Result<(), String> {
        self.crossing.as_ref().map_or(Ok(()), |token| {
            Err(format!("token `{}` joins a digit with another character", token.escape_debug()))
        })
    }

    /// Returns whether a text contains an added token in brackets that is not an atom.
    pub(crate) fn is_watched(&self, text: &[u8]) -> bool {
        self.watched.iter().any(|content| memchr::memmem::find(text, content).is_some())
    }

    /// Returns whether the tokens of a part between two cuts depend only on the part. This is always so for BPE, and for Unigram if the
    /// best segmentation is ahead by a margin. `begins` means that the part begins a text, where the tokenizer may add a space before it.
    pub(crate) fn is_decided(&self, tokenizer: &Tokenizer, part: &str, begins: bool) -> bool {
        self.scores.as_ref().is_none_or(|scores| scores.decide(tokenizer, part, begins))
    }

    /// Whether the tokens of all runs of up to `longest` digits, and of the separators between numbers, are decided.
    ///
    /// # Errors
    /// A sentence that names a part with two segmentations of equal score.
    pub(crate) fn decide_numbers(&self, tokenizer: &Tokenizer, longest: usize) -> Result<(), String> {
        if self.scores.is_none() {
            return Ok(());
        }
        // The pieces inside and between numbers: all that the tables need.
        let runs =
            (1..=longest).flat_map(|len| (0..10usize.pow(len as u32)).map(move |n| format!("{n:0len$}")));
        let mut parts = runs.chain([",-", ".", ","].map(str::to_owned));
        let undecided = parts.find(|part| !self.is_decided(tokenizer, part, false));
        undecided.map_or(Ok(()), |part| Err(format!("two ways to cut `{part}` are equally likely")))
    }
}

/// Returns the place of a pair of ASCII characters.
fn index(a: u8, b: u8) -> usize {
    usize::from(a) * 128 + usize::from(b)
}

/// Returns a token with its white space as in the text. Byte-level vocabularies write white space as letters, SentencePiece vocabularies
/// as `▁`, and what they lack, such as a line break, as `<0x0A>`.
pub fn with_white_space(token: &str) -> String {
    // Most tokens have none, and a whole vocabulary is asked for.
    if token.is_ascii() {
        return ascii_byte(token).map_or_else(|| token.to_owned(), String::from);
    }
    token.replace(['\u{120}', '\u{2581}'], " ").replace('\u{10a}', "\n")
}

/// Returns the character that a token of SentencePiece stands for by its byte.
fn ascii_byte(token: &str) -> Option<char> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>').filter(|digits| digits.len() == 2)?;
    let byte = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
    Some(byte.into())
}

/// Checks that the normalizer leaves printable ASCII unchanged, except for a space before it.
fn keeps_ascii(tokenizer: &Tokenizer) -> Result<(), String> {
    let ascii: String = (33..127u8).map(char::from).collect();
    match tokenizer.normalized(&ascii) {
        Ok(text) if text.strip_prefix(SPACE).unwrap_or(&text) == ascii => Ok(()),
        _ => Err("its normalizer changes characters of the format".into()),
    }
}

/// Returns whether a text in which every `<` opens a block may contain a token.
fn may_come_up(token: &str) -> bool {
    let of_block = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    token.split('<').skip(1).all(|behind| {
        let inside = behind.split('>').next().unwrap_or_default();
        inside.chars().all(of_block)
    })
}

/// The role of an added token in texts between the tags.
enum Role {
    /// No text contains it.
    Never,
    /// SMILES characters in brackets that are not an atom.
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
    // Three capitals and digits may be a tag, like `[CLS]`, or an atom, like `[NH3]`.
    if (tag && !atom) || foreign || !may_come_up(content) {
        return Role::Never;
    }
    let is_bracket = inner.is_some_and(|inner| !inner.contains(['[', ']', '<', '>']));
    if is_bracket && !atom {
        return Role::NoAtom;
    }
    // `>>TITLE<<` consists of characters of a text, but no text contains it.
    if may_hold(content, encoding) { Role::Text } else { Role::Never }
}

/// Returns whether the text between brackets could be an atom of SMILES: an isotope, a symbol of at most two letters or `*`, and then
/// signs, digits or an H.
fn is_atom(inner: &str) -> bool {
    let symbol = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let letters = symbol.bytes().take_while(u8::is_ascii_alphabetic).count();
    let behind = &symbol[letters..];
    let letters = symbol[..letters].trim_end_matches('H').len();
    (letters <= 2 && (letters > 0 || symbol.starts_with(['*', 'H'])))
        && behind.bytes().all(|b| !b.is_ascii_lowercase())
}
