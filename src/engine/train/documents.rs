//! Texts to learn: prompt and answer, as tokens.

use std::collections::HashSet;

use rand::Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::network::{Pack, Target};
use crate::parameter;
use drift_core::encoding::Encoding;
use drift_core::error::{Error, Result};
use drift_core::job::Job;
use drift_core::text::{self, SMILES_CLOSE, SMILES_OPEN, skeleton};
use drift_core::tokenizer::{Named, Token, TokenRole, Tokenizer};
use drift_data::corpus::{AtomOrder, Conformer, Conformers, Part, ReadSummary};

/// How much a token counts in the loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Tokens of the prompt.
    pub prompt: f32,
    /// COPY tokens of the answer: tags, atoms, bonds, brackets of blocks, the end of text.
    pub copy: f32,
    /// Tokens of blocks that begin at the third decimal or after it.
    pub fine: f32,
}

/// What a token of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// One that a template would force: a tag, an atom, a bond, a bracket, the end of text.
    Copy,
    /// Of a block.
    Free,
    /// Of a block, beginning with the third decimal or a later one: heat moves atoms by hundredths of an Å, so these digits
    /// are all but random, and they are nearly half of all.
    Fine,
}

impl TokenKind {
    /// Of a token of an answer.
    fn of(token: &Token, answer: &str) -> Self {
        if token.class == TokenRole::Copy {
            return TokenKind::Copy;
        }
        let is_of_number = |c: char| c.is_ascii_digit() || ['-', '.'].contains(&c);
        let before = answer[..token.start].rsplit(|c| !is_of_number(c)).next().unwrap_or_default();
        let decimals = before.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // A token counts by its first character: one that begins before the third decimal also says something coarser.
        let is_fine = decimals >= 2 && token.text.starts_with(|first: char| first.is_ascii_digit());
        if is_fine { TokenKind::Fine } else { TokenKind::Free }
    }
}

/// `[SMILES]…[/SMILES][CONFORMER]…[/CONFORMER]` and the end of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// All tokens.
    pub tokens: Vec<u32>,
    /// How many of them are the prompt.
    pub prompt: usize,
    /// The tokens of the answer, by their place after the prompt.
    pub kinds: Vec<TokenKind>,
}

/// The prompt of a molecule.
pub fn prompt(smiles: &str) -> String {
    format!("{SMILES_OPEN}{smiles}{SMILES_CLOSE}")
}

impl Document {
    /// A conformer's document.
    ///
    /// # Errors
    /// If the tokenizer cannot encode it.
    pub fn new(conformer: &Conformer, tokenizer: &Tokenizer, end: &Named, dialect: Encoding) -> Result<Self> {
        let mut tokens = tokenizer.prompt_ids(&prompt(&skeleton::smiles(&conformer.skeleton)))?;
        let prompt = tokens.len();
        let answer = text::tagged(&text::write(&conformer.skeleton, &conformer.coordinates, dialect));
        let written = tokenizer.answer_tokens_of(&answer, dialect)?;
        let kinds =
            written.iter().map(|token| TokenKind::of(token, &answer)).chain([TokenKind::Copy]).collect();
        tokens.extend(written.iter().map(|token| token.id).chain([end.id]));
        Ok(Document { tokens, prompt, kinds })
    }

    /// Whether the token at `at` is one that a template would force.
    pub fn is_copy(&self, at: usize) -> bool {
        at >= self.prompt && self.kinds[at - self.prompt] == TokenKind::Copy
    }

    /// The same where each block keeps its coordinates with probability `kept`; at 0 what is left is the prompt and its
    /// copy.
    pub fn thinned(&self, kept: f64, random: &mut impl Rng) -> Document {
        let mut thin = Document { tokens: vec![], prompt: self.prompt, kinds: vec![] };
        // Drawn once a block, at its first token, so that a block is kept or left out as a whole.
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

/// Documents end to end; tokens without weight are no targets.
pub fn pack<'d>(documents: impl IntoIterator<Item = &'d Document>, loss: Loss) -> Pack {
    let mut pack = Pack::default();
    for document in documents {
        let start = pack.tokens.len();
        pack.tokens.extend(&document.tokens);
        pack.documents.push(start..pack.tokens.len());
        let targets = (1..document.tokens.len()).map(|at| Target {
            // The logits of a row are for the token after it.
            row: start + at - 1,
            token: document.tokens[at],
            weight: document.weight(at, loss),
        });
        // A target without weight would cost work and change nothing.
        pack.targets.extend(targets.filter(|target| target.weight > 0.0));
    }
    pack
}

/// How much of a corpus is in a part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PartSize {
    /// Distinct SMILES.
    pub molecules: u64,
    /// Conformers.
    pub conformers: u64,
    /// Tokens of their documents.
    pub tokens: u64,
}

/// A corpus as documents.
#[derive(Debug)]
pub struct Documents {
    /// What is learned.
    pub train: Vec<Document>,
    /// The conformers of these, where they are asked for.
    pub conformers: Vec<Conformer>,
    /// What is not, and tells how far learning is.
    pub validation: Vec<Document>,
    /// Their sizes; test molecules are counted and thrown away.
    pub sizes: Sizes,
    /// The corpus as read.
    pub summary: ReadSummary,
}

/// The sizes of the parts, and what was left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// What is learned.
    pub train: PartSize,
    /// What tells how far learning is.
    pub validation: PartSize,
    /// What no training sees.
    pub test: PartSize,
    /// Conformers whose document is longer than the context.
    pub too_long: u64,
    /// Conformers of files without SMILES: there is no prompt for them.
    pub without_smiles: u64,
    /// Records that could not be read.
    pub skipped: u64,
}

/// What documents are made with.
#[derive(Clone, Copy)]
pub struct Writer<'t> {
    /// The tokenizer.
    pub tokenizer: &'t Tokenizer,
    /// Its end of text.
    pub end: &'t Named,
    /// How coordinates are written.
    pub dialect: Encoding,
    /// The longest document, in tokens.
    pub context: usize,
    /// Whether the conformers that are learned are kept.
    pub keep: bool,
}

impl Writer<'_> {
    /// The documents of a corpus, in its order, split by SMILES.
    ///
    /// # Errors
    /// If the corpus cannot be read, or nothing in it is for training.
    pub fn documents(&self, corpus: &dyn Conformers, job: &Job) -> Result<Documents> {
        let mut documents = Documents {
            train: vec![],
            conformers: vec![],
            validation: vec![],
            sizes: Sizes::default(),
            summary: ReadSummary::default(),
        };
        let mut molecules: [HashSet<String>; 3] = Default::default();
        documents.summary = corpus.read(job, &mut |batch| {
            let made: Vec<Option<(Part, Document)>> = batch
                .conformers
                .par_iter()
                .map(|conformer| {
                    let with_smiles = conformer.order == AtomOrder::Smiles;
                    let document = || Document::new(conformer, self.tokenizer, self.end, self.dialect);
                    with_smiles.then(|| Ok((Part::from_conformer(conformer), document()?))).transpose()
                })
                .collect::<Result<_>>()?;
            for (conformer, made) in batch.conformers.iter().zip(made) {
                let Some((part, document)) = made else {
                    documents.sizes.without_smiles += 1;
                    continue;
                };
                // By SMILES and not by name: the parts are split by it.
                let is_new = molecules[part as usize].insert(skeleton::smiles(&conformer.skeleton));
                let is_learned = documents.add(part, document, is_new, self.context);
                documents.conformers.extend((self.keep && is_learned).then(|| conformer.clone()));
            }
            Ok(())
        })?;
        documents.sizes.skipped = documents.summary.skipped;
        if documents.train.is_empty() {
            let problem = format!("contains no conformer to learn from ({})", documents.sizes.left_out());
            return Err(Error::parameter(
                parameter::CORPUS,
                problem,
                format!("give more conformers with SMILES, or a longer {}", parameter::CONTEXT),
            ));
        }
        Ok(documents)
    }
}

impl Documents {
    /// Whether it is learned.
    fn add(&mut self, part: Part, document: Document, is_new: bool, context: usize) -> bool {
        if document.tokens.len() > context {
            self.sizes.too_long += 1;
            return false;
        }
        let size = match part {
            Part::Train => &mut self.sizes.train,
            Part::Validation => &mut self.sizes.validation,
            Part::Test => &mut self.sizes.test,
        };
        size.molecules += u64::from(is_new);
        size.conformers += 1;
        size.tokens += document.tokens.len() as u64;
        match part {
            Part::Train => self.train.push(document),
            Part::Validation => self.validation.push(document),
            Part::Test => {}
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
