//! Where the numbers of texts stand: the white space before each of them, and the characters around both.

use std::collections::BTreeSet;

use super::Skeleton;
use super::borders::{Borders, Lead, ends};
use super::prompt::Source;
use super::template::{ItemText, Part, Repetition};
use crate::encoding::Slots;

/// The characters that may stand beside a place, all ASCII, and nothing at the border of a text; `None` for any.
pub type Neighbours = Option<BTreeSet<Option<u8>>>;

/// A place of numbers in texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberPlace {
    /// The index of the slot.
    pub slot: usize,
    /// The white space before the number.
    pub space: String,
    /// What may stand before that.
    pub before: Neighbours,
    /// What may stand behind the number.
    pub after: Neighbours,
}

/// The end of a text: its white space, and what stands before that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TextEnd {
    space: String,
    before: Neighbours,
}

impl TextEnd {
    fn behind(before: Neighbours) -> Self {
        TextEnd { space: String::new(), before }
    }

    fn followed_by(&self, text: &str) -> Self {
        let inside = text.trim_end_matches(|c: char| c.is_ascii_whitespace());
        match inside.bytes().last() {
            None => TextEnd { space: format!("{}{text}", self.space), before: self.before.clone() },
            Some(last) => TextEnd {
                space: text[inside.len()..].to_owned(),
                before: last.is_ascii().then(|| BTreeSet::from([Some(last)])),
            },
        }
    }
}

impl Skeleton {
    /// Returns the places of the numbers in the texts.
    pub fn number_places(&self) -> BTreeSet<NumberPlace> {
        let start = TextEnd::behind((!self.one_text).then(|| BTreeSet::from([None])));
        let start = self.marker.as_deref().map_or(start.clone(), |marker| start.followed_by(marker));
        let mut found = BTreeSet::new();
        self.places_in(&self.parts, BTreeSet::from([start]), &ends(self), &mut found);
        found
    }

    fn borders(&self) -> Borders<'_> {
        Borders { skeleton: self, items: None }
    }

    /// Adds the places in parts that follow one of these ends. Returns how the parts end.
    fn places_in(
        &self,
        parts: &[Part],
        mut before: BTreeSet<TextEnd>,
        after: &[Lead],
        found: &mut BTreeSet<NumberPlace>,
    ) -> BTreeSet<TextEnd> {
        for (at, part) in parts.iter().enumerate() {
            let behind = self.borders().leads(&parts[at + 1..], after);
            before = match part {
                Part::Text(text) => before.iter().map(|end| end.followed_by(text)).collect(),
                Part::Each(each) => self.places_in_loop(each, before, behind, found),
                Part::Slot(slot) if self.slots[*slot].is_number() => {
                    let after = neighbours(&behind);
                    found.extend(before.into_iter().map(|TextEnd { space, before }| NumberPlace {
                        slot: *slot,
                        space,
                        before,
                        after: after.clone(),
                    }));
                    [TextEnd::behind(Some((b'0'..=b'9').map(Some).collect()))].into()
                }
                Part::Item { items, text: ItemText::Word } if self.ends_with_atoms(*items) => {
                    [TextEnd::behind(Some([Some(b']')].into()))].into()
                }
                Part::Slot(_) | Part::Field(_) | Part::Item { .. } => [TextEnd::behind(None)].into(),
            };
        }
        before
    }

    /// Returns whether items are pieces of a SMILES that each end with an atom.
    fn ends_with_atoms(&self, items: usize) -> bool {
        matches!(self.items[items].1[..], [Source::Pieces { behind: Slots::Atoms, .. }])
    }

    fn places_in_loop(
        &self,
        each: &Repetition,
        before: BTreeSet<TextEnd>,
        behind: Vec<Lead>,
        found: &mut BTreeSet<NumberPlace>,
    ) -> BTreeSet<TextEnd> {
        let again = match &*each.between {
            "" => self.borders().leads(&each.parts, &[]),
            between => vec![Lead::Text(between.into(), None)],
        };
        let after: Vec<Lead> = again.into_iter().chain(behind).collect();
        let items = self.places_in(&each.parts, before.clone(), &after, found);
        let between = items.iter().map(|end| end.followed_by(&each.between)).collect();
        let again = self.places_in(&each.parts, between, &after, found);
        let none = if self.may_be_empty(each.items) { before } else { BTreeSet::new() };
        items.into_iter().chain(again).chain(none).collect()
    }
}

/// Returns the characters with which a text may go on.
fn neighbours(leads: &[Lead]) -> Neighbours {
    let mut found = BTreeSet::new();
    for lead in leads {
        match lead {
            Lead::Text(text, _) | Lead::End(text) => _ = found.insert(text.bytes().next()),
            Lead::Bytes(bytes) => found.extend(bytes.iter().copied().map(Some)),
            Lead::Words(words) => found.extend(words.iter().map(|word| word.bytes().next())),
            Lead::Unknown => return None,
        }
    }
    found.iter().flatten().all(u8::is_ascii).then_some(found)
}
