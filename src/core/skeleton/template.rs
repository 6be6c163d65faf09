//! The text of a skeleton as parts: fixed text, slots, fields of the prompt, and loops over its items.

use super::slot::Slot;
use super::slot_file::EncodedSlot;

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Fixed text. A line break is its last character or absent.
    Text(Box<str>),
    /// A slot, by its index.
    Slot(usize),
    /// A field of the prompt, by its index: its text.
    Field(usize),
    /// Something about the items of a prompt.
    Item {
        /// The index of the items.
        items: usize,
        /// What is written.
        text: ItemText,
    },
    /// A loop over items.
    Each(Repetition),
}

/// What is written of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemText {
    /// The word of the item: `Na`. Only in its loop.
    Word,
    /// The index of the item, counted from this number. Only in its loop.
    Index(u32),
    /// The number of items.
    Count,
    /// The number of each word: `Na2 Cl2`.
    Sum,
    /// The same, divided by the largest number that divides all of them: `NaCl`.
    Reduced,
    /// That number: `2`.
    Units,
    /// The text behind the last piece of a SMILES; may be empty.
    Rest,
}

/// A loop over the items of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Repetition {
    /// The index of the items.
    pub items: usize,
    /// The parts of an item; none is a loop.
    pub parts: Vec<Part>,
    /// The text between two items; may be empty.
    pub between: Box<str>,
}

/// The names that a template may use.
pub(super) struct Names<'n> {
    pub slots: &'n [Slot],
    /// The slots of encodings.
    pub encoded: &'n [EncodedSlot],
    pub items: &'n [String],
    pub fields: &'n [String],
    /// The items of the loop around the text, if there is one.
    pub around: Option<usize>,
}

impl Names<'_> {
    /// Returns the parts of a template: text with names in braces, `{x} {x}\n`; doubled braces stand for braces.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(super) fn parts(&self, template: &str) -> Result<Vec<Part>, String> {
        let (mut parts, mut text) = (Vec::new(), String::new());
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(brace) {
                text.push_str(brace);
                rest = behind;
                continue;
            }
            let end = rest.find('}').filter(|_| brace == "{");
            let end = end.ok_or_else(|| format!("a single `{brace}` opens or closes nothing; double it"))?;
            add_text(&mut parts, &text);
            text.clear();
            match self.encoded.iter().find(|slot| slot.name == rest[..end]) {
                Some(slot) => parts.extend(Names { encoded: &[], ..*self }.parts(&slot.template)?),
                None => parts.push(self.named(&rest[..end])?),
            }
            rest = &rest[end + 1..];
        }
        text.push_str(rest);
        add_text(&mut parts, &text);
        Ok(parts)
    }

    fn named(&self, name: &str) -> Result<Part, String> {
        let place = |names: &[String]| names.iter().position(|known| known == name);
        if let Some(slot) = self.slots.iter().position(|slot| slot.name == name) {
            return Ok(Part::Slot(slot));
        }
        if let Some(field) = place(self.fields) {
            return Ok(Part::Field(field));
        }
        let (of, what) = name.split_once('.').unwrap_or((name, ""));
        let items = self.items.iter().position(|known| known == of);
        let items = items.ok_or_else(|| format!("`{{{name}}}` is no slot, no items and no field"))?;
        let text = match what.split_once(':').unwrap_or((what, "0")) {
            ("", _) => ItemText::Word,
            ("index", first) => {
                let first = first.parse().ok().filter(|first| *first <= 1_000_000);
                ItemText::Index(first.ok_or_else(|| format!("`{{{name}}}` counts from no number"))?)
            }
            ("count", "0") => ItemText::Count,
            ("sum", "0") => ItemText::Sum,
            ("reduced", "0") => ItemText::Reduced,
            ("units", "0") => ItemText::Units,
            ("rest", "0") => ItemText::Rest,
            _ => {
                return Err(format!(
                    "`{{{name}}}`: items have `index`, `count`, `sum`, `reduced`, `units` and `rest`"
                ));
            }
        };
        if matches!(text, ItemText::Word | ItemText::Index(_)) && self.around != Some(items) {
            return Err(format!("`{{{name}}}` stands outside of its `each`"));
        }
        Ok(Part::Item { items, text })
    }
}

/// Adds text, cut behind its line breaks, so that a reader can go on behind a line.
fn add_text(parts: &mut Vec<Part>, text: &str) {
    parts.extend(text.split_inclusive('\n').map(|line| Part::Text(line.into())));
}
