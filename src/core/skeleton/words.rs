//! Reads the words of items.

use super::borders::Lead;
use super::items::Arrangement;
use super::read::{ReadFault, Reader};
use super::reading::FaultKind;
use super::slot::LONGEST_WORD;
use super::template::Part;
use crate::error::excerpt;

impl<'a> Reader<'a> {
    /// Reads the word of an item, before the parts `rest` and what follows them.
    pub(super) fn word(&mut self, items: usize, rest: &[Part], after: &[Lead]) -> Result<(), ReadFault> {
        let text = self.rest();
        if let Some(known) = self.out.items[items].last().filter(|item| !item.word.is_empty()) {
            let word = known.word.clone();
            return self.fixed(&word);
        }
        let known = &self.bound.items[items];
        if let Some(piece) = self.expected(items).filter(|_| known.rest.is_some()) {
            let written = self.fixed(piece);
            self.out.items[items].last_mut().into_iter().for_each(|item| item.word = piece.to_owned());
            return written;
        }
        let end = self.word_end(items, rest, after);
        let word = &text[..end];
        let is_cut = |one: &str| one.len() > text.len() && one.starts_with(text);
        if self.expected(items).is_some_and(is_cut) {
            return Err(self.cut("within an item"));
        }
        if end == text.len() && !text.contains(char::is_whitespace) {
            let may_end = rest.is_empty() && after.contains(&Lead::End("".into()));
            if !may_end || !known.has_word(word) && known.words.iter().any(|one| is_cut(one)) {
                return Err(self.cut("within an item"));
            }
        }
        if word.is_empty() || word.contains(char::is_whitespace) {
            let line = excerpt(text.lines().next().unwrap_or_default().as_bytes());
            self.fault(FaultKind::Format, self.at, format!("{line} begins with no word of an item"));
            return Err(ReadFault::Off);
        }
        if let Some(item) = self.out.items[items].last_mut() {
            item.word = word.to_owned();
        }
        self.at += end;
        Ok(())
    }

    /// Returns the length of the word that the text begins with. A word of the prompt may hold the text that stands behind words, as
    /// `C(=O)O` holds `(`.
    fn word_end(&self, items: usize, rest: &[Part], after: &[Lead]) -> usize {
        let text = self.rest();
        let follows = |end: usize| may_begin(&text[end..], rest, after);
        let expected = self.expected(items).filter(|word| text.starts_with(word) && follows(word.len()));
        if let Some(word) = expected {
            return word.len();
        }
        let until = self.until(0, rest, after);
        let word = text.split(char::is_whitespace).next().unwrap_or_default();
        let ends = word.char_indices().map(|(at, c)| at + c.len_utf8());
        let longer = ends.take_while(|end| *end <= LONGEST_WORD).filter(|end| *end > until && follows(*end));
        let longer: Vec<usize> = longer.collect();
        let known = &self.bound.items[items];
        longer.into_iter().rev().find(|end| known.has_word(&text[..*end])).unwrap_or(until)
    }

    /// Returns the word of the item that is being read, if items have an order.
    fn expected(&self, items: usize) -> Option<&'a str> {
        let known = &self.bound.items[items];
        let Arrangement::Sequence(sequence) = &known.arrangement else { return None };
        Some(&known.words[*sequence.get(self.out.items[items].len() - 1)? as usize])
    }
}

/// Returns whether a text may begin with parts that `after` follows, if these begin with fixed text.
fn may_begin(text: &str, parts: &[Part], after: &[Lead]) -> bool {
    match parts.first() {
        Some(Part::Text(next)) => text.starts_with(&**next),
        Some(_) => false,
        None => after.iter().any(|lead| lead.begins(text)),
    }
}
