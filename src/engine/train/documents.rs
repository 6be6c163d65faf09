//! Texts to learn, as tokens of prompt and answer.

use std::collections::HashSet;

use rand::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::network::{Pack, Target};
use crate::parameter;
use drift_core::encoding::is_of_number;
use drift_core::io::hex;
use drift_core::text::{self, prompt, skeleton};
use drift_core::tokenizer::{NamedToken, Token, TokenRole};
use drift_core::{Encoding, Error, Job, Result, Tokenizer};
use drift_data::corpus::{AtomOrder, Conformer, Conformers, Part, ReadSummary};

/// The weights of tokens in the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The weight of the tokens of the prompt.
    pub prompt: f32,
    /// The weight of the COPY tokens of the answer: tags, atoms, bonds, brackets of blocks, the end token.
    pub copy: f32,
    /// The weight of tokens of blocks that begin at the third decimal or after it.
    pub fine: f32,
}

impl Default for Loss {
    /// Returns all tokens of the answer count alike, and those of the prompt not at all.
    fn default() -> Self {
        Loss { prompt: 0.0, copy: 1.0, fine: 1.0 }
    }
}

/// The kind of a token of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A token that a template would force: a tag, an atom, a bond, a bracket, the end token.
    Copy,
    /// A token of a block.
    Free,
    /// A token of a block that begins with the third decimal or a later one. Thermal motion moves atoms by hundredths of an Å, so
    /// these digits are nearly random. They are nearly half of all digits.
    Fine,
}

impl TokenKind {
    /// Returns the kind of a token of an answer.
    fn of(token: &Token, answer: &str) -> Self {
        if token.class == TokenRole::Copy {
            return TokenKind::Copy;
        }
        let before = answer[..token.start]
            .rsplit(|c| !u8::try_from(c).is_ok_and(is_of_number))
            .next()
            .unwrap_or_default();
        let decimals = before.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // A token counts by its first character, because a token that begins before the third decimal also contains coarser digits.
        let is_fine = decimals >= 2 && token.text.starts_with(|first: char| first.is_ascii_digit());
        if is_fine { TokenKind::Fine } else { TokenKind::Free }
    }
}

/// `[SMILES]…[/SMILES][CONFORMER]…[/CONFORMER]` and the end token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// All tokens of the document.
    pub tokens: Vec<u32>,
    /// How many of them belong to the prompt.
    pub prompt: usize,
    /// The kinds of the answer's tokens, in order.
    pub kinds: Vec<TokenKind>,
}

impl Document {
    /// Returns the document of a conformer.
    ///
    /// # Errors
    /// If the tokenizer cannot encode it.
    pub fn new(
        conformer: &Conformer,
        tokenizer: &Tokenizer,
        end: &NamedToken,
        encoding: Encoding,
    ) -> Result<Self> {
        let mut tokens = tokenizer.prompt_ids(&prompt(&skeleton::smiles(&conformer.skeleton)))?;
        let prompt = tokens.len();
        let answer = text::tagged(&text::write(&conformer.skeleton, &conformer.coordinates, encoding));
        let written = tokenizer.answer_tokens_of(&answer, encoding)?;
        let kinds =
            written.iter().map(|token| TokenKind::of(token, &answer)).chain([TokenKind::Copy]).collect();
        tokens.extend(written.iter().map(|token| token.id).chain([end.id]));
        Ok(Document { tokens, prompt, kinds })
    }

    /// Returns whether the token at `at` is one that a template would force.
    pub(crate) fn is_copy(&self, at: usize) -> bool {
        at >= self.prompt && self.kinds[at - self.prompt] == TokenKind::Copy
    }

    /// Returns a copy of the document in which each block keeps its coordinates with probability `kept`. At 0, only the prompt and its
    /// copy remain.
    pub fn thinned(&self, kept: f64, random: &mut impl Rng) -> Document {
        let mut thin = Document { tokens: vec![], prompt: self.prompt, kinds: vec![] };
        // Drawn once per block, at its first token, so that a block is kept or removed as a whole.
        let (mut was_copy, mut keep) = (true, false);
        for (at, &token) in self.tokens.iter().enumerate() {
            let is_copy = at < self.prompt || self.is_copy(at);
            if was_copy && !is_copy {
                keep = random.random_bool(kept);
            }
            was_copy = is_copy;
            if is_copy || keep {
                thin.tokens.push(token);
                thin.kinds.extend(at.checked_sub(self.prompt).map(|at| self.kinds[at]));
            }
        }
        thin
    }

    fn weight(&self, at: usize, loss: Loss) -> f32 {
        match at.checked_sub(self.prompt).map(|at| self.kinds[at]) {
            None => loss.prompt,
            Some(TokenKind::Copy) => loss.copy,
            Some(TokenKind::Free) => 1.0,
            Some(TokenKind::Fine) => loss.fine,
        }
    }
}

/// Concatenates documents into a pack. Tokens without weight are not targets.
pub fn pack<'d>(documents: impl IntoIterator<Item = &'d Document>, loss: Loss) -> Pack {
    let mut pack = Pack::default();
    for document in documents {
        let start = pack.tokens.len();
        pack.tokens.extend(&document.tokens);
        pack.documents.push(start..pack.tokens.len());
        let targets = (1..document.tokens.len()).map(|at| Target {
            // The logits of a row predict the token after it.
            row: start + at - 1,
            token: document.tokens[at],
            weight: document.weight(at, loss),
        });
        // A target without weight would take time and change nothing.
        pack.targets.extend(targets.filter(|target| target.weight > 0.0));
    }
    pack
}

/// The size of a part of a corpus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PartSize {
    /// The number of distinct SMILES.
    pub molecules: u64,
    /// The number of conformers.
    pub conformers: u64,
    /// The number of tokens of their documents.
    pub tokens: u64,
}

/// A corpus in the form of documents.
#[derive(Debug, Default)]
pub struct Documents {
    /// The training documents.
    pub train: Vec<Document>,
    /// The conformers of the training documents, if requested.
    pub conformers: Vec<Conformer>,
    /// The validation documents.
    pub validation: Vec<Document>,
    /// The sizes of the parts; test molecules are counted and dropped.
    pub sizes: Sizes,
    /// The files of the corpus that were read.
    pub summary: ReadSummary,
}

impl Documents {
    /// Returns the SHA-256 of all tokens. Options for reading a corpus can change them where its files and the recipe are the same.
    pub(super) fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for document in self.train.iter().chain(&self.validation) {
            hasher.update((document.tokens.len() as u64).to_le_bytes());
            document.tokens.iter().for_each(|token| hasher.update(token.to_le_bytes()));
        }
        hex(&hasher.finalize())
    }
}

/// The sizes of the parts, and the numbers of skipped records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The training part.
    pub train: PartSize,
    /// The validation part.
    pub validation: PartSize,
    /// The test part, which no training sees.
    pub test: PartSize,
    /// The number of conformers whose document is longer than the context.
    pub too_long: u64,
    /// The number of conformers from files without SMILES, which have no prompt.
    pub without_smiles: u64,
    /// The number of records that could not be read.
    pub skipped: u64,
}

/// The settings for making documents.
#[derive(Clone, Copy)]
pub struct Writer<'t> {
    /// The tokenizer.
    pub tokenizer: &'t Tokenizer,
    /// The end token of the tokenizer.
    pub end: &'t NamedToken,
    /// The encoding of coordinates.
    pub encoding: Encoding,
    /// The largest length of a document, in tokens; longer documents are left out.
    pub context: usize,
    /// Whether the conformers of training documents are kept.
    pub keep: bool,
}

impl Writer<'_> {
    /// Returns the documents of a corpus, in its order, split by SMILES.
    ///
    /// # Errors
    /// If the corpus cannot be read, or nothing in it belongs to the training part.
    pub fn documents(&self, corpus: &dyn Conformers, job: &Job) -> Result<Documents> {
        let mut documents = Documents::default();
        let mut molecules: [HashSet<String>; 3] = Default::default();
        documents.summary = corpus.read(job, &mut |batch| {
            let made: Vec<Option<(Part, Document)>> = batch
                .conformers
                .par_iter()
                .map(|conformer| {
                    let with_smiles = conformer.order == AtomOrder::Smiles;
                    let document = || Document::new(conformer, self.tokenizer, self.end, self.encoding);
                    with_smiles.then(|| Ok((Part::from_conformer(conformer), document()?))).transpose()
                })
                .collect::<Result<_>>()?;
            for (conformer, made) in batch.conformers.iter().zip(made) {
                let Some((part, document)) = made else {
                    documents.sizes.without_smiles += 1;
                    continue;
                };
                // By SMILES and not by name, because the parts are split by SMILES.
                let is_new = molecules[part as usize].insert(skeleton::smiles(&conformer.skeleton));
                let is_learned = documents.add(part, document, is_new, self.context);
                documents.conformers.extend((self.keep && is_learned).then(|| conformer.clone()));
            }
            Ok(())
        })?;
        documents.sizes.skipped = documents.summary.skipped;
        if documents.train.is_empty() {
            let problem = format!("contains no conformer to learn from ({})", documents.sizes.left_out());
            let remedy = format!("give more conformers with SMILES, or a longer {}", parameter::CONTEXT);
            return Err(Error::parameter(parameter::CORPUS, problem, remedy));
        }
        Ok(documents)
    }
}

impl Documents {
    /// Returns whether it belongs to the training part.
    fn add(&mut self, part: Part, document: Document, is_new: bool, context: usize) -> bool {
        if document.tokens.len() > context {
            self.sizes.too_long += 1;
            return false;
        }
        let (size, kept) = match part {
            Part::Train => (&mut self.sizes.train, Some(&mut self.train)),
            Part::Validation => (&mut self.sizes.validation, Some(&mut self.validation)),
            Part::Test => (&mut self.sizes.test, None),
        };
        size.molecules += u64::from(is_new);
        size.conformers += 1;
        size.tokens += document.tokens.len() as u64;
        if let Some(kept) = kept {
            kept.push(document);
        }
        part == Part::Train
    }
}

impl Sizes {
    fn left_out(&self) -> String {
        format!(
            "{} for validation and tests, {} longer than the context, {} without SMILES, {} unreadable",
            self.validation.conformers + self.test.conformers,
            self.too_long,
            self.without_smiles,
            self.skipped
        )
    }
}
