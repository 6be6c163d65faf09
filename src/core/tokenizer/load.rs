//! Loads tokenizers; the reference encoding.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tokenizers::models::bpe::BPE;
use tokenizers::{Encoding, ModelWrapper, Tokenizer as HfTokenizer};

use super::companions::{CompanionFiles, CompletedJson};
use super::expressions::Expressions;
use super::panics::caught;
use super::tokenizer_file::TokenizerFile;
use super::{Token, TokenRole};
use crate::command::absolute;
use crate::encoding::Encoding as CoordinateEncoding;
use crate::error::{Error, Result, excerpt};
use crate::io;
use crate::job::{InputHash, Job};
use crate::parameter;
use crate::text::slot_ranges;

/// The largest size of a tokenizer file, decompressed.
const MAX_TOKENIZER_BYTES: u64 = 1 << 28;

/// A tokenizer that is embedded in drift, from `tokenizers/`.
#[derive(Debug, Clone, Copy)]
pub struct EmbeddedTokenizer {
    /// Its name, which is the name of its folder.
    pub name: &'static str,
    /// Its `tokenizer.json`.
    pub json: &'static [u8],
    /// Its `tokenizer_config.json`.
    pub config: &'static str,
}

#[cfg(feature = "embedded")]
macro_rules! embedded {
    ($($name:literal),*) => {
        &[$(EmbeddedTokenizer {
            name: $name,
            json: include_bytes!(concat!("../embedded/", $name, "/tokenizer.json")),
            config: include_str!(concat!("../embedded/", $name, "/tokenizer_config.json")),
        }),*]
    };
}

/// A program that brings its own tokenizers embeds none.
#[cfg(not(feature = "embedded"))]
macro_rules! embedded {
    ($($name:literal),*) => {
        &[]
    };
}

/// Compact tokenizers of the project that split coordinates and their borders like Qwen3 and Llama-3.2. Empty without the feature
/// `embedded`.
pub const EMBEDDED: &[EmbeddedTokenizer] = embedded!["qwen-like", "llama-like"];

/// [`EMBEDDED`], extended by `drift train-tokenizer`: every block below 20 Å takes 11 tokens in the separate kind and 9 in the
/// fused kind.
pub const EXTENDED: &[EmbeddedTokenizer] =
    embedded!["qwen-like-separate", "qwen-like-fused", "llama-like-separate", "llama-like-fused"];

/// A Hugging Face tokenizer, with its name and hash.
#[derive(Clone)]
pub struct Tokenizer {
    /// The name of its folder or file, for reports.
    pub name: String,
    /// What a command calls it: the absolute path that it was loaded from, or its name.
    pub place: String,
    /// Name, size and SHA-256 of the file as stored. If files beside it changed its tokens: their names, their total size, and the
    /// SHA-256 of what `sha256sum` prints for them.
    pub source: InputHash,
    inner: HfTokenizer,
    expressions: Arc<Expressions>,
    /// Its model without looking whole pieces up; `None` if it looks none up.
    pub(super) merging: Arc<OnceLock<Option<BPE>>>,
}

/// Why a text has no tokens.
enum EncodeFailure {
    Panics,
    Refused(String),
}

/// The tokens in the blocks of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InBlocks {
    /// By block, in text order: the ends of its FREE tokens, in bytes behind its `<`.
    pub ends: Vec<Vec<usize>>,
    /// COPY tokens that contain a character from inside a block: a digit, a sign, a comma or a point. With such a token (`]<-`, or
    /// a bracket with digits), a template would force a part of the coordinate itself.
    pub copied: Vec<Token>,
}

/// The characters of every corpus.
const ALPHABET: &str = "[C]<-0.1234,5.6789,-10>=[O]<0,0,0>";

/// Further texts on which a tokenizer is tried when it is loaded: the empty text, white space, other scripts, characters of four
/// bytes, combining marks, control characters, and ordinary words.
const PROBES: [&str; 6] = [
    "",
    " ",
    "\t\r\n  \u{a0}x ",
    "\u{e9}e\u{301} \u{4f60}\u{597d} \u{1f9ea}\u{200d}",
    "\0\u{7f}\u{fffd}",
    "It's 12345 o'clock",
];

/// The largest id of a token. Tables have a row for each id, also for those without a token; the largest vocabularies have 262,144.
const LARGEST_ID: u32 = 0xff_ffff;

/// How often the alphabet is repeated in the longest test text.
const LONG: usize = 64;

impl Tokenizer {
    /// Refuses tokenizers of one name: results, and their files, are told apart by it.
    ///
    /// # Errors
    /// If two have the same name.
    pub fn refuse_same_names<'t>(tokenizers: impl IntoIterator<Item = &'t Tokenizer>) -> Result<()> {
        let mut names = HashSet::new();
        let mut all = tokenizers.into_iter().map(|tokenizer| &*tokenizer.name);
        all.find(|name| !names.insert(*name)).map_or(Ok(()), |name| {
            let problem = format!("two tokenizers are named {name}");
            Err(Error::parameter(parameter::TOKENIZER, problem, "rename a file or folder"))
        })
    }

    /// Loads a `tokenizer.json`, plain or gzipped, or the one in a model folder. The files beside it add their tokens as in
    /// transformers' `AutoTokenizer`, unless it has another name. The names of [`EMBEDDED`] and [`EXTENDED`] load embedded
    /// tokenizers, unless a file with this name exists.
    ///
    /// # Errors
    /// If there is no such file, `tokenizers` 0.23 cannot read it as a tokenizer, or the files beside it are malformed or contradict
    /// it.
    pub fn load(path: &Path) -> Result<Self> {
        Self::load_with_json(path).map(|(tokenizer, _)| tokenizer)
    }

    /// Loads a tokenizer like [`Tokenizer::load`], and also returns the bytes of its JSON, decompressed and with all added
    /// tokens.
    ///
    /// # Errors
    /// As [`Tokenizer::load`].
    pub fn load_with_json(path: &Path) -> Result<(Self, Vec<u8>)> {
        Self::load_for(path, &Job::default())
    }

    /// Loads a tokenizer and the bytes of its JSON. The job may be cancelled while a file or a pipe is read.
    ///
    /// # Errors
    /// As [`Tokenizer::load`], or if the job was cancelled.
    pub fn load_for(path: &Path, job: &Job) -> Result<(Self, Vec<u8>)> {
        if let Some(embedded) = Self::embedded_by_name(path) {
            let source = io::hash_bytes(&format!("{}/tokenizer.json", embedded.name), embedded.json);
            return Ok((Self::from_bytes(embedded.name, source, embedded.json)?, embedded.json.to_vec()));
        }
        let file = TokenizerFile::find(path)?;
        let io::FileContent { bytes, source } = io::read_whole(&file.path, MAX_TOKENIZER_BYTES, job)?;
        let (mut inner, bytes) = match parsed(&source, &bytes) {
            Ok(inner) => (inner, bytes),
            Err(error) => {
                let json = file.of_words(&bytes)?;
                let json = json.ok_or_else(|| file.other_format(&bytes).unwrap_or(error))?;
                (parsed(&source, &json)?, json)
            }
        };
        let companions = file.folder().map(CompanionFiles::read).transpose()?;
        let completed = match companions {
            Some(companions) => caught(|| companions.complete(&mut inner, &bytes, &source))
                .ok_or_else(|| not_readable(&source))??,
            None => None,
        };
        let name = file.name();
        let at_path = |tokenizer: Tokenizer| Tokenizer { place: absolute(path), ..tokenizer };
        let Some(CompletedJson { bytes, source }) = completed else {
            return Ok((at_path(Self::checked(&name, source, inner)?), bytes));
        };
        let read_back = parsed(&source, &bytes)?;
        if read_back.get_added_tokens_decoder() != inner.get_added_tokens_decoder() {
            let problem = "leaves ids out, so that the added tokens have other ids in a file of their own";
            return Err(Error::input(&source.name, problem, "save it again with transformers"));
        }
        Ok((at_path(Self::checked(&name, source, read_back)?), bytes))
    }

    /// Returns the embedded tokenizers, without the extended ones.
    ///
    /// # Errors
    /// Never, unless the build embedded a broken file.
    pub fn embedded() -> Result<Vec<Self>> {
        EMBEDDED.iter().map(|embedded| Self::load(Path::new(embedded.name))).collect()
    }

    /// Returns the embedded tokenizer, extended or not, that [`Tokenizer::load`] loads for `path`.
    pub fn embedded_by_name(path: &Path) -> Option<&'static EmbeddedTokenizer> {
        EMBEDDED.iter().chain(EXTENDED).find(|embedded| Path::new(embedded.name) == path && !path.exists())
    }

    /// Returns a tokenizer from the bytes of its JSON.
    ///
    /// # Errors
    /// If the bytes are not a tokenizer, the tokenizer encodes randomly (BPE dropout), makes `tokenizers` panic, drops characters of
    /// the format, or has ids of many millions.
    pub fn from_bytes(name: &str, source: InputHash, bytes: &[u8]) -> Result<Self> {
        Self::checked(name, source.clone(), parsed(&source, bytes)?)
    }

    /// # Errors
    /// As [`Tokenizer::from_bytes`], for a tokenizer that was parsed.
    fn checked(name: &str, source: InputHash, mut inner: HfTokenizer) -> Result<Self> {
        let refuse = |problem: String| refused(&source, problem);
        if let ModelWrapper::BPE(bpe) = inner.get_model()
            && bpe.dropout.is_some_and(|p| p > 0.0)
        {
            // Counts would differ from run to run.
            return Err(refuse("encodes randomly (BPE dropout)".into()));
        }
        // A file may request both, but tokens are counted over whole texts.
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| refuse(first_line(&e.to_string()).to_owned()))?;
        let expressions = caught(|| Expressions::from_tokenizer(&inner))
            .unwrap_or_else(|| Err("its expressions cannot be read".into()))
            .map_err(refuse)?;
        let (name, place) = (name.to_owned(), name.to_owned());
        let expressions = expressions.into();
        let tokenizer = Tokenizer { name, place, source, inner, expressions, merging: Arc::default() };
        tokenizer.probe()?;
        if let Some(lost) = tokenizer.lost(ALPHABET)? {
            let problem = format!("drops {lost:?}, so its tokens cannot be counted");
            let remedy = "give a tokenizer that knows digits and brackets";
            return Err(Error::input(&tokenizer.source.name, problem, remedy));
        }
        if let Some(id) = tokenizer.vocabulary().into_values().max().filter(|id| *id > LARGEST_ID) {
            let problem = format!("has a token with the id {id}, and ids are at most {LARGEST_ID}");
            return Err(Error::input(&tokenizer.source.name, problem, "number its tokens from 0"));
        }
        Ok(tokenizer)
    }

    /// Encodes and decodes a few texts, because some tokenizers panic on every text.
    fn probe(&self) -> Result<()> {
        for text in PROBES.iter().map(|probe| (*probe).to_owned()).chain([ALPHABET.repeat(LONG)]) {
            for special in [false, true] {
                // An ordinary error is fine here, for example for unknown characters.
                let ids = match self.encoding(&text, special, true) {
                    Err(EncodeFailure::Panics) => return Err(self.panics(&text)),
                    Err(EncodeFailure::Refused(_)) => continue,
                    Ok(encoding) => encoding.get_ids().to_vec(),
                };
                if caught(|| self.inner.decode(&ids, false).is_ok()).is_none() {
                    return Err(self.panics(&text));
                }
            }
        }
        Ok(())
    }

    /// Encodes a text, with panics caught. All calls of `encode` go through here.
    fn encoding(
        &self,
        text: &str,
        special: bool,
        places: bool,
    ) -> std::result::Result<Encoding, EncodeFailure> {
        let encoding = caught(|| {
            self.expressions.check(&self.inner, text)?;
            let encoding = match places {
                true => self.inner.encode(text, special),
                false => self.inner.encode_fast(text, special),
            };
            encoding.map_err(|e| e.to_string())
        });
        encoding.ok_or(EncodeFailure::Panics)?.map_err(EncodeFailure::Refused)
    }

    /// Returns the encoding of a text by `tokenizers`. `special` adds the special tokens of the post-processor, `places` the offsets of
    /// tokens.
    ///
    /// # Errors
    /// If `tokenizers` refuses the text or panics, or an expression gives up.
    pub(super) fn encoded(&self, text: &str, special: bool, places: bool) -> Result<Encoding> {
        self.encoding(text, special, places).map_err(|error| match error {
            EncodeFailure::Panics => self.panics(text),
            EncodeFailure::Refused(problem) => self.refuse("encode", text, &problem),
        })
    }

    /// Runs `work` on the tokenizer of the `tokenizers` crate, with panics caught.
    pub(super) fn guarded<T>(&self, text: &str, work: impl FnOnce(&HfTokenizer) -> T) -> Result<T> {
        caught(|| work(&self.inner)).ok_or_else(|| self.panics(text))
    }

    fn panics(&self, text: &str) -> Error {
        let problem = format!("the tokenizer panics on {}", excerpt(text.as_bytes()));
        Error::input(&self.source.name, problem, "repair the tokenizer.json, or use another")
    }

    /// Returns the error for a text that the tokenizer refuses.
    pub(super) fn refuse(&self, verb: &str, text: &str, error: &dyn std::fmt::Display) -> Error {
        let problem = format!("cannot {verb} {}: {error}", excerpt(text.as_bytes()));
        Error::input(&self.name, problem, "")
    }

    /// Returns the first character of a text that is covered by no token, not even an unknown one.
    fn lost(&self, text: &str) -> Result<Option<char>> {
        let tokens = self.tokens(text)?;
        let is_lost = |at: usize| !tokens.iter().any(|token| (token.start..token.end).contains(&at));
        Ok(text.char_indices().find(|(at, _)| is_lost(*at)).map(|(_, c)| c))
    }

    /// Returns the underlying tokenizer of the `tokenizers` crate.
    pub fn inner(&self) -> &HfTokenizer {
        &self.inner
    }

    /// Returns the tokens of a text, without special tokens of the post-processor. This is the reference for every count: `encode` of
    /// `tokenizers` 0.23, with offsets.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text (an unknown character without byte fallback).
    pub fn tokens(&self, text: &str) -> Result<Vec<Token>> {
        self.tokens_of(text, CoordinateEncoding::FIXED)
    }

    /// Returns the tokens of a text. Tokens inside of this encoding's slots are FREE, all others COPY.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the text.
    pub(crate) fn tokens_of(&self, text: &str, encoding: CoordinateEncoding) -> Result<Vec<Token>> {
        self.classified(text, &slot_ranges(text, encoding))
    }

    fn classified(&self, text: &str, blocks: &[std::ops::Range<usize>]) -> Result<Vec<Token>> {
        let encoding = self.encoded(text, false, true)?;
        let mut next = 0;
        let tokens = encoding.get_ids().iter().zip(encoding.get_offsets()).map(|(&id, &(start, end))| {
            // Tokens are in text order, so the current block only moves forward.
            while next < blocks.len() && blocks[next].end < end {
                next += 1;
            }
            let free = blocks.get(next).is_some_and(|block| block.start <= start && end <= block.end);
            let class = if free { TokenRole::Free } else { TokenRole::Copy };
            let covered = text.get(start..end).ok_or_else(|| {
                let problem = format!("says that token {id} covers bytes {start} to {end}, which is no text");
                self.refuse("encode", text, &problem)
            })?;
            Ok(Token { id, text: covered.to_owned(), class, start, end })
        });
        tokens.collect()
    }

    /// Returns the tokens of a text inside its blocks.
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn in_blocks(&self, text: &str) -> Result<InBlocks> {
        self.in_slots(text, CoordinateEncoding::FIXED)
    }

    /// Returns the tokens of a text inside the slots of an encoding, slot by slot.
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn in_slots(&self, text: &str, encoding: CoordinateEncoding) -> Result<InBlocks> {
        let blocks = slot_ranges(text, encoding);
        let mut found = InBlocks { ends: vec![Vec::new(); blocks.len()], copied: Vec::new() };
        let mut next = 0;
        for token in self.classified(text, &blocks)? {
            // An empty token belongs to the block that ends at its position.
            let first = token.start + usize::from(token.start < token.end);
            while next < blocks.len() && blocks[next].end < first {
                next += 1;
            }
            // All further tokens lie behind the last block.
            let Some(block) = blocks.get(next) else { break };
            match token.class {
                TokenRole::Free => found.ends[next].push(token.end - block.start),
                // The token overlaps the block.
                TokenRole::Copy if block.start.max(token.start) < block.end.min(token.end) => {
                    found.copied.push(token);
                }
                TokenRole::Copy => {}
            }
        }
        Ok(found)
    }

    /// Returns the ends of the FREE tokens of each block, as in [`InBlocks`].
    ///
    /// # Errors
    /// As [`Tokenizer::tokens`].
    pub fn free_ends(&self, text: &str) -> Result<Vec<Vec<usize>>> {
        Ok(self.in_blocks(text)?.ends)
    }
}

/// Returns the tokenizer of the `tokenizers` crate in the bytes of a file.
fn parsed(source: &InputHash, bytes: &[u8]) -> Result<HfTokenizer> {
    let no_tokenizer = |problem: &str| refused(source, format!("not a tokenizer: {}", first_line(problem)));
    let text = std::str::from_utf8(bytes).map_err(|e| no_tokenizer(&e.to_string()))?;
    // `from_bytes` is generic, so the whole reader would be compiled here a second time.
    let parsed = caught(|| text.parse::<HfTokenizer>().map_err(|e| e.to_string()));
    parsed.ok_or_else(|| not_readable(source))?.map_err(|e| no_tokenizer(&e))
}

fn not_readable(source: &InputHash) -> Error {
    refused(source, "not a readable tokenizer: the library panics on it".to_owned())
}

fn refused(source: &InputHash, problem: String) -> Error {
    Error::input(&source.name, problem, "give a tokenizer.json of Hugging Face tokenizers")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}
