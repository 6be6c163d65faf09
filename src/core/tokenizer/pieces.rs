//! Where the pre-tokenizer cuts texts into pieces, by the kinds of their characters.
//!
//! Pre-tokenizers know digits, letters and their cases, and no single ones. So texts of one *shape*, which has the first character of
//! its kind in place of each character, are cut alike. Each shape is tried with two texts.

use std::collections::HashMap;
use std::sync::Arc;

use super::load::Tokenizer;
use crate::error::{Error, Result};

/// The number of a shape.
pub(super) type ShapeId = u32;

/// The shapes of texts, numbered; the shape of the empty text is 0.
pub(super) struct Shapes {
    numbers: HashMap<Box<str>, ShapeId>,
    texts: Vec<Box<str>>,
    joined: HashMap<[ShapeId; 2], ShapeId>,
}

impl Shapes {
    pub(super) fn new() -> Self {
        let (empty, joined) = (Box::<str>::default(), HashMap::new());
        Shapes { numbers: HashMap::from([(empty.clone(), 0)]), texts: vec![empty], joined }
    }

    /// Returns the number of the shape of a text.
    pub(super) fn number(&mut self, text: &str) -> ShapeId {
        let shape = shape(text);
        if let Some(known) = self.numbers.get(&*shape) {
            return *known;
        }
        let number = self.texts.len() as ShapeId;
        self.texts.push(shape.clone().into());
        self.numbers.insert(shape.into(), number);
        number
    }

    /// Returns the shape of two texts, one behind the other.
    pub(super) fn join(&mut self, a: ShapeId, b: ShapeId) -> ShapeId {
        if let Some(known) = self.joined.get(&[a, b]) {
            return *known;
        }
        let joined = self.number(&format!("{}{}", self.texts[a as usize], self.texts[b as usize]));
        self.joined.insert([a, b], joined);
        joined
    }
}

/// The text around a part, as far as it may change where the pre-tokenizer cuts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Surroundings {
    /// The text before it.
    pub before: String,
    /// The text behind it.
    pub after: String,
    /// Whether the part begins with the space that the tokenizer adds before a text.
    pub adds_space: bool,
}

impl Surroundings {
    /// Returns what of it the pre-tokenizer may read: the kinds of the characters beside the part.
    pub(crate) fn kinds(&self) -> Self {
        let before = shape(&self.before);
        let from = before.char_indices().rev().nth(BESIDE - 1).map_or(0, |last| last.0);
        let after = shape(&self.after).chars().take(BESIDE).collect();
        Surroundings { before: before[from..].to_owned(), after, adds_space: self.adds_space }
    }
}

/// How many characters beside a part may change where it is cut.
const BESIDE: usize = 8;

/// The most texts that are cut.
const MOST_TEXTS: usize = 1 << 18;

/// Where texts are cut into pieces.
#[derive(Default)]
pub(super) struct Pieces {
    by_shape: HashMap<String, Arc<[usize]>>,
    /// Whether texts of a shape were found to be cut in different ways.
    pub reads_characters: bool,
}

impl Pieces {
    /// Returns the ends of the pieces of a text, in bytes.
    pub(super) fn ends(
        &mut self,
        tokenizer: &Tokenizer,
        text: &str,
        adds_space: bool,
    ) -> Result<Arc<[usize]>> {
        let key = if self.reads_characters { text.to_owned() } else { shape(text) };
        if let Some(known) = self.by_shape.get(&key) {
            return Ok(known.clone());
        }
        if self.by_shape.len() >= MOST_TEXTS {
            let problem = "its pre-tokenizer reads the characters of slots, which have too many texts to try";
            return Err(Error::input(&tokenizer.name, problem, "give slots with fewer texts"));
        }
        let ends = cut(tokenizer, text, adds_space)?;
        if !self.reads_characters && ends != cut(tokenizer, &turned(text), adds_space)? {
            self.reads_characters = true;
            self.by_shape.clear();
            return self.ends(tokenizer, text, adds_space);
        }
        let ends: Arc<[usize]> = ends.into();
        self.by_shape.insert(key, ends.clone());
        Ok(ends)
    }
}

/// Returns the ends of the pieces of a text that begins, if so, with a space that the tokenizer adds itself.
fn cut(tokenizer: &Tokenizer, text: &str, adds_space: bool) -> Result<Vec<usize>> {
    let added = usize::from(adds_space);
    let ends = tokenizer.piece_ends(&text[added.min(text.len())..])?;
    Ok(ends.into_iter().map(|end| end + added).collect())
}

/// Returns the kind of a character, of which it has the first one.
pub(super) fn kind(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => b'0',
        b'a'..=b'z' => b'a',
        b'A'..=b'Z' => b'A',
        other => other,
    }
}

/// Returns a text with the first character of its kind in place of each character.
fn shape(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii() { char::from(kind(c as u8)) } else { c }).collect()
}

/// Returns another text of the same shape.
pub(super) fn turned(text: &str) -> String {
    text.chars().map(turned_character).collect()
}

fn turned_character(c: char) -> char {
    match c {
        '0'..='9' => char::from(b'0' + (c as u8 - b'0' + 3) % 10),
        'a'..='z' => char::from(b'a' + (c as u8 - b'a' + 7) % 26),
        'A'..='Z' => char::from(b'A' + (c as u8 - b'A' + 7) % 26),
        other => other,
    }
}
