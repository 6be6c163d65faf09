//! The files beside a `tokenizer.json` that add tokens to it, read as transformers' `AutoTokenizer` reads them.
//!
//! The rules are those of `_from_pretrained` and of the constructor of `PreTrainedTokenizerFast` (transformers 4.57.1 to 5.23, where it
//! is `TokenizersBackend`):
//!
//! 1. If `tokenizer_config.json` has `added_tokens_decoder`, this list counts, and the two other files are not read. Otherwise
//!    `special_tokens_map.json` overrides the special tokens of `tokenizer_config.json`, and `added_tokens.json` lists added tokens.
//! 2. The listed tokens are added to those of `tokenizer.json` by ascending id, and their flags replace the flags there.
//! 3. Special tokens that are still no added tokens are added: first the named ones (`bos_token`, …), then the others.
//!
//! A token that the vocabulary has keeps its id; any other takes the next free one, whatever id a file states. If a stated id is not
//! the real one, the tokenizer is refused: a model trained with it has another embedding row than the file says.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokenizers::{AddedToken, Model, Tokenizer as HfTokenizer};

use super::special_tokens::{SpecialTokens, added_token};
use crate::checkpoint::{ADDED_TOKENS, ModelFolder, SPECIAL_TOKENS_MAP, TOKENIZER_CONFIG};
use crate::error::{Error, Result, excerpt};
use crate::io::hash_bytes;
use crate::job::InputHash;

/// The field of `tokenizer_config.json` that lists added tokens by id.
pub const ADDED_TOKENS_DECODER: &str = "added_tokens_decoder";

/// The remedy for files that contradict each other.
const AGREE: &str = "make the two files agree";

/// The files beside a `tokenizer.json`; each may be absent.
pub(super) struct CompanionFiles {
    folder: ModelFolder,
    config: Option<CompanionFile>,
    special_tokens_map: Option<CompanionFile>,
    added_tokens: Option<CompanionFile>,
}

/// A JSON object with the hash of its file.
struct CompanionFile {
    fields: Map<String, Value>,
    source: InputHash,
}

/// A tokenizer together with what its companions add.
pub(super) struct CompletedJson {
    /// Its `tokenizer.json`.
    pub(super) bytes: Vec<u8>,
    /// The hash of all files that were read: the SHA-256 of what `sha256sum` prints for them, in this order.
    pub(super) source: InputHash,
}

/// The added tokens that a file lists, by the ids that it states.
struct TokenList {
    file: &'static str,
    tokens: BTreeMap<u32, AddedToken>,
}

/// An entry of `added_tokens` in a `tokenizer.json`.
#[derive(Deserialize)]
struct StatedToken {
    id: u32,
    #[serde(flatten)]
    token: AddedToken,
}

impl CompanionFiles {
    /// Reads the files in a folder.
    ///
    /// # Errors
    /// If a file cannot be read, or is not a JSON object.
    pub(super) fn read(folder: ModelFolder) -> Result<Self> {
        Ok(CompanionFiles {
            config: CompanionFile::read(&folder, TOKENIZER_CONFIG)?,
            special_tokens_map: CompanionFile::read(&folder, SPECIAL_TOKENS_MAP)?,
            added_tokens: CompanionFile::read(&folder, ADDED_TOKENS)?,
            folder,
        })
    }

    /// Returns the settings that count: those of `tokenizer_config.json`, overridden by `special_tokens_map.json` unless the former list
    /// the added tokens. `None` if neither file exists.
    pub(super) fn settings(&self) -> Option<Map<String, Value>> {
        let config = self.config.as_ref().map(|file| &file.fields);
        let special =
            self.special_tokens_map.as_ref().filter(|_| !self.has_decoder()).map(|file| &file.fields);
        config.or(special)?;
        let mut settings = config.cloned().unwrap_or_default();
        if let Some(special) = special {
            SpecialTokens::merge(&mut settings, special);
        }
        Some(settings)
    }

    /// Adds their tokens to a tokenizer that was read from the file `source` with the content `json`. `None` if that changes nothing.
    ///
    /// # Errors
    /// If a file is malformed, or contradicts another.
    pub(super) fn complete(
        &self,
        tokenizer: &mut HfTokenizer,
        json: &[u8],
        source: &InputHash,
    ) -> Result<Option<CompletedJson>> {
        if self.config.is_none() && self.special_tokens_map.is_none() && self.added_tokens.is_none() {
            return Ok(None);
        }
        let before = added_by_id(tokenizer);
        self.check_lists(&before)?;
        let list = self.list(json)?;
        let special = self.special_tokens(tokenizer)?;
        let mut new: Vec<AddedToken> = list.tokens.values().cloned().collect();
        if !self.has_decoder() {
            // transformers lists the tokens of `tokenizer.json` too, which matters for those that a field names.
            new.extend(
                before
                    .values()
                    .filter(|own| new.iter().all(|new| new.content != own.content))
                    .cloned()
                    .collect::<Vec<_>>(),
            );
        }
        let known: Vec<&str> =
            before.values().chain(list.tokens.values()).map(|token| &*token.content).collect();
        new.extend(special.all().filter(|token| !known.contains(&&*token.content)).cloned());
        for token in &mut new {
            token.special |= special.named.iter().any(|named| named.content == token.content);
        }
        tokenizer.add_tokens(new).map_err(|e| self.refuse(list.file, e.to_string(), "correct it"))?;
        if self.has_decoder() {
            self.check(&list, true, tokenizer, json)?;
        }
        if let Some(file) = &self.added_tokens {
            // As the file states them, before `tokenizer.json` took precedence.
            self.check(&self.added_tokens_list(file)?, !self.has_decoder(), tokenizer, json)?;
        }
        let after = added_by_id(tokenizer);
        if after == before {
            return Ok(None);
        }
        let bytes = with_added(json, &after).map_err(|e| Error::input(&source.name, e, ""))?;
        Ok(Some(CompletedJson { bytes, source: self.source(source) }))
    }

    fn has_decoder(&self) -> bool {
        self.config.as_ref().is_some_and(|file| file.fields.contains_key(ADDED_TOKENS_DECODER))
    }

    /// Returns the added tokens that are listed beside the `tokenizer.json`.
    fn list(&self, json: &[u8]) -> Result<TokenList> {
        if let Some(config) = self.config.as_ref().filter(|_| self.has_decoder()) {
            return self.decoder(config);
        }
        let Some(file) = &self.added_tokens else {
            return Ok(TokenList { file: ADDED_TOKENS, tokens: BTreeMap::new() });
        };
        let mut list = self.added_tokens_list(file)?;
        for stated in stated(json) {
            // Of two files that state this id, transformers reads `tokenizer.json` last.
            list.tokens.entry(stated.id).and_modify(|token| token.clone_from(&stated.token));
        }
        Ok(list)
    }

    /// Returns the list in `tokenizer_config.json`.
    fn decoder(&self, config: &CompanionFile) -> Result<TokenList> {
        let entries = config.fields[ADDED_TOKENS_DECODER].as_object().ok_or_else(|| self.no_decoder())?;
        let mut tokens = BTreeMap::new();
        for (id, token) in entries {
            let id = id.parse().map_err(|_| self.no_decoder())?;
            let token = added_token(token).filter(|_| token.is_object()).ok_or_else(|| self.no_decoder())?;
            tokens.insert(id, token);
        }
        Ok(TokenList { file: TOKENIZER_CONFIG, tokens })
    }

    fn no_decoder(&self) -> Error {
        let problem =
            format!("its {ADDED_TOKENS_DECODER} is not an object with ids as keys and tokens as values");
        self.refuse(TOKENIZER_CONFIG, problem, "correct or remove it")
    }

    /// Returns the list in `added_tokens.json`, which has no flags.
    fn added_tokens_list(&self, file: &CompanionFile) -> Result<TokenList> {
        let settings = self.settings().unwrap_or_default();
        let special = SpecialTokens::of(&settings).unwrap_or_default();
        let mut tokens = BTreeMap::new();
        for (content, id) in &file.fields {
            let is_special = special.all().any(|special| special.content == *content);
            let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
            let id = id.ok_or_else(|| {
                let problem = format!("the id of {} is not a whole number", excerpt(content.as_bytes()));
                self.refuse(ADDED_TOKENS, problem, "correct or remove it")
            })?;
            if let Some(other) = tokens.insert(id, AddedToken::from(content.as_str(), is_special)) {
                let problem = format!("{:?} and {content:?} have the id {id}", other.content);
                return Err(self.refuse(ADDED_TOKENS, problem, "correct or remove it"));
            }
        }
        Ok(TokenList { file: ADDED_TOKENS, tokens })
    }

    /// Returns the special tokens of the settings.
    fn special_tokens(&self, tokenizer: &HfTokenizer) -> Result<SpecialTokens> {
        let mut settings = self.settings().unwrap_or_default();
        if settings.get("split_special_tokens").is_some_and(|split| split == true) {
            let problem = "split_special_tokens: special tokens in texts would be cut into pieces";
            return Err(self.refuse(TOKENIZER_CONFIG, problem, "remove this setting"));
        }
        // A tokenizer that pads by itself names the token for it.
        if let Some(padding) = tokenizer.get_padding() {
            settings.entry("pad_token").or_insert_with(|| padding.pad_token.clone().into());
        }
        let file = if self.config.is_some() { TOKENIZER_CONFIG } else { SPECIAL_TOKENS_MAP };
        SpecialTokens::of(&settings).map_err(|problem| self.refuse(file, problem, "correct or remove it"))
    }

    /// Checks that the listed tokens have the ids that the list states. A list that transformers does not read may name unknown
    /// tokens.
    fn check(&self, list: &TokenList, is_read: bool, tokenizer: &HfTokenizer, json: &[u8]) -> Result<()> {
        for (id, AddedToken { content, .. }) in &list.tokens {
            let real = tokenizer.token_to_id(content);
            if content.is_empty() || real == Some(*id) {
                continue;
            }
            let holder = tokenizer.id_to_token(*id);
            let problem = match (holder, real) {
                // A `tokenizer.json` may state ids that `tokenizers` does not use; both files then mean the same token.
                _ if stated(json)
                    .iter()
                    .any(|stated| stated.id == *id && stated.token.content == *content) =>
                {
                    continue;
                }
                (Some(holder), _) => {
                    let by = self.other_list(list.file, &holder, tokenizer);
                    format!("gives {content:?} the id {id}, which is that of {holder:?} in {by}")
                }
                (None, Some(real)) => {
                    format!("gives {content:?} the id {id}, but with tokenizer.json it is {real}")
                }
                (None, None) if is_read => {
                    format!("gives {content:?} the id {id}, which another token of tokenizer.json has")
                }
                (None, None) => continue,
            };
            return Err(self.refuse(list.file, problem, AGREE));
        }
        Ok(())
    }

    /// Returns the file that gives a token of the completed tokenizer its id, other than `own`.
    fn other_list(&self, own: &str, content: &str, tokenizer: &HfTokenizer) -> &'static str {
        let decoder =
            self.config.as_ref().and_then(|config| config.fields.get(ADDED_TOKENS_DECODER)?.as_object());
        let is_listed =
            decoder.is_some_and(|entries| entries.values().any(|token| token["content"] == content));
        match is_listed && own != TOKENIZER_CONFIG && tokenizer.get_model().token_to_id(content).is_none() {
            true => TOKENIZER_CONFIG,
            false => "tokenizer.json",
        }
    }

    /// Refuses further special tokens of `special_tokens_map.json` that a list of `tokenizer_config.json` lacks: transformers 4 joins
    /// the two lists, transformers 5 ignores the one in the map.
    fn check_lists(&self, known: &BTreeMap<u32, AddedToken>) -> Result<()> {
        let fields =
            |file: &Option<CompanionFile>| file.as_ref().map(|file| file.fields.clone()).unwrap_or_default();
        let (config, map) = (fields(&self.config), fields(&self.special_tokens_map));
        if self.has_decoder() || !SpecialTokens::has_lists(&config) {
            return Ok(());
        }
        let extra = |settings: &Map<String, Value>| SpecialTokens::of(settings).unwrap_or_default().extra;
        let listed = extra(&config);
        let is_known =
            |new: &AddedToken| known.values().chain(&listed).any(|token| token.content == new.content);
        match extra(&map).iter().find(|token| !is_known(token)) {
            Some(new) => {
                let problem = format!(
                    "lists the special token {:?}, which the list in {TOKENIZER_CONFIG} lacks: transformers 4 adds it, transformers 5 does not",
                    new.content
                );
                Err(self.refuse(SPECIAL_TOKENS_MAP, problem, AGREE))
            }
            None => Ok(()),
        }
    }

    /// Returns the hash of all files that were read.
    fn source(&self, tokenizer: &InputHash) -> InputHash {
        let legacy = [&self.special_tokens_map, &self.added_tokens]
            .map(|file| file.as_ref().filter(|_| !self.has_decoder()));
        let files = [self.config.as_ref()].into_iter().chain(legacy).flatten().map(|file| &file.source);
        let files: Vec<&InputHash> = [tokenizer].into_iter().chain(files).collect();
        let listed: String = files.iter().map(|file| format!("{}  {}\n", file.sha256, file.name)).collect();
        let names: Vec<&str> = files.iter().map(|file| &*file.name).collect();
        InputHash {
            bytes: files.iter().map(|file| file.bytes).sum(),
            ..hash_bytes(&names.join(" + "), listed.as_bytes())
        }
    }

    fn refuse(&self, file: &str, problem: impl ToString, remedy: &str) -> Error {
        Error::input(self.folder.path().join(file).display(), problem, remedy)
    }
}

impl CompanionFile {
    fn read(folder: &ModelFolder, name: &str) -> Result<Option<Self>> {
        let Some(bytes) = folder.bytes(name)? else { return Ok(None) };
        let fields = serde_json::from_slice(&bytes).map_err(|e| {
            let problem = format!("is not a JSON object: {e}");
            Error::input(
                folder.path().join(name).display(),
                problem,
                "repair it, or give only the tokenizer.json",
            )
        })?;
        Ok(Some(CompanionFile { fields, source: hash_bytes(name, &bytes) }))
    }
}

/// Returns the added tokens of a tokenizer by their real ids.
fn added_by_id(tokenizer: &HfTokenizer) -> BTreeMap<u32, AddedToken> {
    tokenizer.get_added_tokens_decoder().into_iter().collect()
}

/// Returns the added tokens that a `tokenizer.json` lists, with the ids that it states.
fn stated(json: &[u8]) -> Vec<StatedToken> {
    #[derive(Deserialize)]
    struct Document {
        added_tokens: Vec<StatedToken>,
    }
    // Without such a list, `tokenizers` reads none either.
    serde_json::from_slice(json).map_or_else(|_| Vec::new(), |document: Document| document.added_tokens)
}

/// Returns a `tokenizer.json` with these added tokens instead of its own.
fn with_added(json: &[u8], added: &BTreeMap<u32, AddedToken>) -> Result<Vec<u8>, serde_json::Error> {
    let mut document: Value = serde_json::from_slice(json)?;
    document["added_tokens"] = added.iter().map(|(id, token)| stated_token(*id, token)).collect();
    serde_json::to_vec(&document)
}

/// Returns an entry of `added_tokens` in a `tokenizer.json`.
fn stated_token(id: u32, token: &AddedToken) -> Value {
    json!({
        "id": id,
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.special,
    })
}
