//! Finds the `tokenizer.json` of a path, and says how other formats are converted to one.

use std::path::{Path, PathBuf};

use super::words;
use crate::checkpoint::{CONFIG, ModelFolder, TOKENIZER_CONFIG, TOKENIZER_FILES, folder_around};
use crate::error::{Error, Result};
use crate::io;

/// The merges of a byte-level BPE, beside its `vocab.json`.
const MERGES: &str = "merges.txt";

/// The names of a plain map of words in a folder, where no `merges.txt` makes it a part of another tokenizer.
const WORDS: [&str; 2] = ["vocabulary.json", "vocab.json"];

/// The beginning of a file that Git LFS puts in place of a large one.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The file of a tokenizer.
pub(super) struct TokenizerFile {
    /// Where it is.
    pub(super) path: PathBuf,
}

impl TokenizerFile {
    /// Returns the file at a path, or the `tokenizer.json` of the folder at a path.
    ///
    /// # Errors
    /// If a folder has none.
    pub(super) fn find(path: &Path) -> Result<Self> {
        if !path.is_dir() {
            return Ok(TokenizerFile { path: path.to_owned() });
        }
        let mut files = TOKENIZER_FILES.iter().map(|name| path.join(name));
        let mut maps = WORDS.iter().map(|name| path.join(name)).filter(|_| !path.join(MERGES).is_file());
        let is_map = |file: &PathBuf| std::fs::read(file).is_ok_and(|bytes| words::are_words(&bytes));
        if let Some(path) = files.find(|file| file.is_file()).or_else(|| maps.find(is_map)) {
            return Ok(TokenizerFile { path });
        }
        let (problem, remedy) = match OtherFormat::in_folder(path) {
            Some((format, name)) => {
                let problem = format!("contains no tokenizer.json, only {name}, {}", format.description());
                (problem, format.remedy(&path.join(name)))
            }
            None => {
                let remedy = "give a tokenizer.json or a folder that contains one";
                ("contains no tokenizer.json".to_owned(), remedy.to_owned())
            }
        };
        Err(Error::input(path.display(), problem, remedy))
    }

    /// Returns the `tokenizer.json` of a plain map of words; `None` if it is none.
    ///
    /// # Errors
    /// If texts cannot be split by the map alone.
    pub(super) fn of_words(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.path.with_file_name(MERGES).is_file() {
            return Ok(None);
        }
        let Some(json) = words::tokenizer_json(bytes) else { return Ok(None) };
        let refused = |problem: String| {
            let problem = format!("is a map of words and ids, and {problem}");
            let remedy = match OtherFormat::of(&io::file_name(&self.path)) {
                Some(format) => format.remedy(&self.path),
                None => {
                    "give unknown text the word <unk>, or save a tokenizer.json with the library tokenizers"
                        .to_owned()
                }
            };
            Error::input(self.path.display(), problem, remedy)
        };
        json.map(Some).map_err(refused)
    }

    /// Returns why its bytes, which are no `tokenizer.json`, are none: they stand for the file, or are a tokenizer in another format.
    /// `None` if neither is known.
    pub(super) fn other_format(&self, bytes: &[u8]) -> Option<Error> {
        let folder = io::parent(&self.path);
        let (problem, remedy) = if bytes.starts_with(LFS) {
            let remedy = format!("download the file itself: git -C {} lfs pull", shell_word(folder));
            ("is a pointer of Git LFS, not the file itself".to_owned(), remedy)
        } else {
            let format = OtherFormat::of(&io::file_name(&self.path))?;
            (format!("is no tokenizer.json, but {}", format.description()), format.remedy(&self.path))
        };
        Some(Error::input(self.path.display(), problem, remedy))
    }

    /// Returns the folder whose other files belong to it. `None` if it has another name than `tokenizer.json`: transformers would not
    /// read it there.
    pub(super) fn folder(&self) -> Option<ModelFolder> {
        TOKENIZER_FILES.contains(&&*io::file_name(&self.path)).then(|| ModelFolder::around(&self.path))
    }

    /// Returns its name in reports: `…/qwen3/tokenizer.json.gz` is `qwen3`, `mine.json` is `mine`.
    pub(super) fn name(&self) -> String {
        let name = io::file_name(&self.path);
        let stem = name.trim_end_matches(".gz").trim_end_matches(".json");
        let folder = || folder_around(&self.path).filter(|_| stem == "tokenizer" || WORDS.contains(&&*name));
        folder().unwrap_or_else(|| stem.to_owned())
    }
}

/// A format of tokenizers that transformers converts to a `tokenizer.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OtherFormat {
    /// `tokenizer.model`, `spiece.model`, …: SentencePiece, or ranks of tiktoken under this name (Llama 3).
    Model,
    /// `tekken.json` of Mistral.
    Tekken,
    /// `qwen.tiktoken`: byte strings in base64 with their ranks.
    Ranks,
    /// `vocab.json` and `merges.txt` of byte-level BPE.
    VocabularyAndMerges,
}

impl OtherFormat {
    /// Returns the format of a file by its name.
    fn of(name: &str) -> Option<Self> {
        match name {
            "tekken.json" => Some(OtherFormat::Tekken),
            "vocab.json" | MERGES => Some(OtherFormat::VocabularyAndMerges),
            _ if name.ends_with(".model") => Some(OtherFormat::Model),
            _ if name.ends_with(".tiktoken") => Some(OtherFormat::Ranks),
            _ => None,
        }
    }

    /// Returns the first file of such a format in a folder, by name.
    fn in_folder(folder: &Path) -> Option<(Self, String)> {
        let entries = std::fs::read_dir(folder).ok()?.flatten();
        let mut names: Vec<String> = entries.map(|entry| io::file_name(&entry.path())).collect();
        names.sort();
        // Alone, a vocabulary without merges is no tokenizer.
        let has_merges = names.iter().any(|name| name == MERGES);
        let mut formats = names.iter().filter_map(|name| Some((Self::of(name)?, name.clone())));
        formats.find(|(format, _)| *format != OtherFormat::VocabularyAndMerges || has_merges)
    }

    fn description(self) -> &'static str {
        match self {
            OtherFormat::Model => "a model of SentencePiece or tiktoken",
            OtherFormat::Tekken => "a tokenizer of mistral-common",
            OtherFormat::Ranks => "ranks of tiktoken",
            OtherFormat::VocabularyAndMerges => "the vocabulary or merges of a byte-level BPE",
        }
    }

    /// Returns the command with which transformers writes a `tokenizer.json` beside the file.
    fn remedy(self, file: &Path) -> String {
        let folder = io::parent(file);
        let is_described = [CONFIG, TOKENIZER_CONFIG].iter().any(|name| folder.join(name).is_file());
        let (needs, script) = match self {
            OtherFormat::Model => {
                ("transformers 5 and sentencepiece or tiktoken", load_script("AutoTokenizer"))
            }
            OtherFormat::Tekken => ("transformers 5", load_script("AutoTokenizer")),
            OtherFormat::Ranks => {
                let converter = "from transformers.convert_slow_tokenizer import TikTokenConverter as T";
                let convert = format!("T({:?}).converted().save(\"tokenizer.json\")", io::file_name(file));
                ("transformers 5 and tiktoken", format!("{converter}; {convert}"))
            }
            OtherFormat::VocabularyAndMerges if is_described => {
                ("transformers", load_script("AutoTokenizer"))
            }
            // The files do not say how texts are split before BPE; GPT-2's way is the usual one.
            OtherFormat::VocabularyAndMerges => {
                ("the class of its model in transformers (GPT-2's here)", load_script("GPT2TokenizerFast"))
            }
        };
        format!("convert it with {needs}: cd {} && python -c '{script}'", shell_word(folder))
    }
}

/// Returns the Python that loads a tokenizer with a class of transformers and saves it as `tokenizer.json`.
fn load_script(class: &str) -> String {
    format!("from transformers import {class} as T; T.from_pretrained(\".\").save_pretrained(\".\")")
}

/// Returns a path as one word of a shell's command line.
fn shell_word(path: &Path) -> String {
    let word = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:=".contains(c);
    match !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
