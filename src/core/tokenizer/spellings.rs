//! The bytes that each token writes into a text, for texts that are followed token by token.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokenizers::ModelWrapper;

use super::load::Tokenizer;
use super::normalizer::SPACE;
use super::scores::Scores;
use crate::error::Result;

/// How the vocabulary spells texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alphabet {
    /// A letter for each byte, as in GPT-2.
    Bytes,
    /// `▁` for a space, and perhaps `<0x0A>` for a byte, as in SentencePiece.
    Marks,
    /// Characters stand for themselves.
    Plain,
}

/// The tokens of a vocabulary as they stand in texts.
#[derive(Debug)]
pub(crate) struct TokenSpellings {
    /// By id, the bytes in a text; empty for ids without a token.
    bytes: Vec<Box<[u8]>>,
    /// By id, the token as the model receives it.
    pieces: Vec<Box<str>>,
    added: BTreeSet<u32>,
    /// The added tokens that stand wherever their text does, and take no white space beside it.
    plain_added: BTreeSet<u32>,
    unknown: Option<u32>,
    /// The scores of a Unigram model.
    pub scores: Option<Arc<Scores>>,
    /// Whether the tokenizer adds a space before a text.
    pub adds_space: bool,
    /// Whether it adds one behind each added token.
    spaces_behind_added: bool,
}

impl TokenSpellings {
    /// Returns the spellings of a tokenizer's tokens.
    ///
    /// # Errors
    /// A sentence that says why texts cannot be followed by the neighbours of their tokens.
    pub(crate) fn learn(tokenizer: &Tokenizer) -> Result<std::result::Result<Self, String>> {
        let inner = tokenizer.inner();
        let unknown = match unknown(tokenizer) {
            Ok(unknown) => unknown,
            Err(why) => return Ok(Err(why.to_owned())),
        };
        let scores = match inner.get_model() {
            ModelWrapper::Unigram(unigram) => Some(Arc::new(Scores::of(unigram))),
            _ => None,
        };
        let sections = [json_of(inner.get_normalizer()), json_of(inner.get_pre_tokenizer())];
        let alphabet = if sections.iter().any(|section| section.contains("\"ByteLevel\"")) {
            Alphabet::Bytes
        } else if sections.iter().any(|section| section.contains('\u{2581}')) {
            Alphabet::Marks
        } else {
            Alphabet::Plain
        };
        let rows = tokenizer.rows() as usize;
        let mut added = inner.get_added_tokens_decoder();
        // Gemma adds its runs of spaces as they are marked. No text has marks, and the model makes these tokens of spaces.
        added.retain(|_, one| alphabet != Alphabet::Marks || !one.content.contains(SPACE));
        let plain = added.iter().filter(|one| !one.1.single_word && !one.1.lstrip && !one.1.rstrip);
        let mut spellings = TokenSpellings {
            bytes: vec![Box::default(); rows],
            pieces: vec![Box::default(); rows],
            added: added.keys().copied().collect(),
            plain_added: plain.map(|one| *one.0).collect(),
            unknown,
            scores,
            adds_space: false,
            spaces_behind_added: false,
        };
        let letters = byte_letters();
        for (token, id) in inner.get_vocab(true) {
            let is_added = spellings.added.contains(&id);
            let bytes =
                if is_added { token.as_bytes().to_vec() } else { spelled(&token, alphabet, &letters) };
            let at = id as usize;
            spellings.pieces[at] = match &bytes[..] {
                // The model receives the character, and falls back to the token of its byte. Spaces are marked before.
                [b' '] if alphabet == Alphabet::Marks => "\u{2581}".into(),
                [byte] if alphabet == Alphabet::Marks && byte.is_ascii() && token.len() == 6 => {
                    char::from(*byte).to_string().into()
                }
                _ => token.into(),
            };
            spellings.bytes[at] = bytes.into();
        }
        let first = tokenizer.ids("0")?.first().and_then(|id| spellings.bytes(*id).first());
        spellings.adds_space = first == Some(&b' ');
        let some = spellings
            .of_added()
            .find_map(|(_, bytes)| std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()));
        if let Some(added) = some {
            let ids = tokenizer.ids(&format!("{added}0"))?;
            spellings.spaces_behind_added =
                ids.get(1).is_some_and(|id| spellings.bytes(*id).starts_with(b" "));
        }
        Ok(Ok(spellings))
    }

    /// Returns the bytes of a token; empty for an id without token.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        self.bytes.get(id as usize).map_or(&[], |bytes| bytes)
    }

    /// Returns the token as the model receives it.
    pub(crate) fn piece(&self, id: u32) -> &str {
        self.pieces.get(id as usize).map_or("", |piece| piece)
    }

    /// Returns the tokens that the model makes of a part of a pre-token; `None` if they do not spell it.
    pub(crate) fn model_tokens(&self, tokenizer: &Tokenizer, text: &str) -> Option<Vec<u32>> {
        let ids = tokenizer.model_ids(&text.replace(' ', SPACE))?;
        let spelled = ids.iter().flat_map(|id| self.bytes(*id)).copied();
        spelled.eq(text.bytes()).then_some(ids)
    }

    /// Returns the added tokens and their bytes.
    pub(crate) fn of_added(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.added.iter().map(|id| (*id, self.bytes(*id)))
    }

    /// Returns the bytes of the added tokens that are matched wherever their text stands.
    pub(crate) fn of_plain_added(&self) -> impl Iterator<Item = &[u8]> {
        self.plain_added.iter().map(|id| self.bytes(*id))
    }

    /// Returns whether a token was added.
    pub(crate) fn is_added(&self, id: u32) -> bool {
        self.added.contains(&id)
    }

    /// Returns all ids with a token, and their bytes.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &[u8])> {
        (0..).zip(&self.bytes).map(|(id, bytes)| (id, &**bytes)).filter(|(_, bytes)| !bytes.is_empty())
    }

    /// Returns whether a token stands for characters without a token.
    pub(crate) fn is_unknown(&self, id: u32) -> bool {
        self.unknown == Some(id)
    }

    /// Returns where each of a text's tokens begins, in bytes of the text, and where the last one ends. A token with nothing but
    /// a space that the tokenizer adds begins and ends at the same place. Offsets of `tokenizers` leave spaces out if the tokenizer trims them.
    pub(crate) fn offsets(&self, ids: &[u32]) -> Vec<usize> {
        let (mut written, mut is_behind) = (0, false);
        let mut offsets = vec![0];
        for id in ids {
            written += self.bytes_behind(*id, is_behind).len();
            is_behind = self.added.contains(id);
            offsets
                .push(written.saturating_sub(usize::from(self.adds_space && !self.added.contains(&ids[0]))));
        }
        offsets
    }

    /// Returns the bytes of a token, behind an added token without the space that the tokenizer adds there.
    fn bytes_behind(&self, id: u32, is_behind_added: bool) -> &[u8] {
        let bytes = self.bytes(id);
        let is_spaced = is_behind_added && self.spaces_behind_added && !self.added.contains(&id);
        bytes.strip_prefix(b" ").filter(|_| is_spaced).unwrap_or(bytes)
    }

    /// Returns the ids of the tokens that cover exactly the bytes from `from` to `to` of a text; `None` if a token crosses either border.
    pub(crate) fn covering<'i>(&self, ids: &'i [u32], from: usize, to: usize) -> Option<&'i [u32]> {
        let offsets = self.offsets(ids);
        // At the beginning of the text the token of the added space belongs to it.
        let first = offsets.iter().position(|offset| *offset == from)?;
        let last = offsets.iter().position(|offset| *offset == to)?;
        Some(&ids[first..last])
    }

    /// Returns the ids of the tokens that end behind `from` and up to `to`; `None` if a token crosses `to`.
    pub(crate) fn behind<'i>(&self, ids: &'i [u32], from: usize, to: usize) -> Option<&'i [u32]> {
        let offsets = self.offsets(ids);
        let first = offsets[1..].iter().position(|end| *end > from)?;
        let last = offsets.iter().position(|offset| *offset == to)?;
        Some(&ids[first..last])
    }

    /// Returns the text of some ids, with a space that the tokenizer adds before it.
    pub(crate) fn text(&self, ids: &[u32]) -> Vec<u8> {
        let before = std::iter::once(false).chain(ids.iter().map(|id| self.added.contains(id)));
        ids.iter()
            .zip(before)
            .flat_map(|(id, is_behind)| self.bytes_behind(*id, is_behind))
            .copied()
            .collect()
    }
}

/// Returns the token for characters without a token, if there is one.
///
/// # Errors
/// A sentence, if tokens are no parts of the text.
fn unknown(tokenizer: &Tokenizer) -> Result<Option<u32>, &'static str> {
    match tokenizer.inner().get_model() {
        ModelWrapper::BPE(bpe) => {
            // Tokens with affixes are not parts of the text.
            let affixes = [bpe.get_continuing_subword_prefix(), &bpe.end_of_word_suffix];
            if affixes.into_iter().flatten().any(|affix| !affix.is_empty()) {
                return Err("a BPE model with word prefixes or suffixes");
            }
            Ok(bpe.get_unk_token().as_ref().and_then(|token| tokenizer.vocabulary_id(token)))
        }
        // A character for private use. With byte fallback it takes several tokens, and no character is unknown.
        ModelWrapper::WordLevel(_) | ModelWrapper::Unigram(_) => match tokenizer.model_ids("\u{e000}") {
            Some(ids) if ids.len() == 1 => Ok(Some(ids[0])),
            _ => Ok(None),
        },
        _ => Err("neither a BPE nor a Unigram model, nor one of whole words"),
    }
}

/// Returns the JSON of a part of a tokenizer, by way of a value, as everywhere: each serializer is compiled for all kinds of parts.
fn json_of(part: Option<&impl serde::Serialize>) -> String {
    part.and_then(|part| serde_json::to_value(part).ok()).map_or_else(String::new, |json| json.to_string())
}

/// Returns the bytes that the letters of a vocabulary of bytes stand for: printable ones for themselves, the others from U+0100 on.
fn byte_letters() -> HashMap<char, u8> {
    let mut others = '\u{100}'..;
    let mut letters = HashMap::with_capacity(256);
    for byte in 0..=255 {
        let letter = match byte {
            b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
            _ => others.next().unwrap_or_default(),
        };
        letters.insert(letter, byte);
    }
    letters
}

fn spelled(token: &str, alphabet: Alphabet, letters: &HashMap<char, u8>) -> Vec<u8> {
    match alphabet {
        Alphabet::Plain => token.as_bytes().to_vec(),
        Alphabet::Bytes => {
            let bytes: Option<Vec<u8>> = token.chars().map(|letter| letters.get(&letter).copied()).collect();
            bytes.unwrap_or_else(|| token.as_bytes().to_vec())
        }
        Alphabet::Marks => {
            let byte = token.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
            match byte
                .filter(|digits| digits.len() == 2)
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            {
                Some(byte) => vec![byte],
                None => token.replace('\u{2581}', " ").into_bytes(),
            }
        }
    }
}
