//! Whether the texts of a skeleton can be read back: where a slot ends, and whether a loop goes on, must follow from the next
//! characters.

use std::collections::BTreeSet;

use super::Skeleton;
use super::items::Items;
use super::template::{ItemText, Part, Repetition};

/// How a text may go on from a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lead {
    /// With this text, and behind it with one of these bytes, where they are known.
    Text(Box<str>, Option<BTreeSet<u8>>),
    /// With one of these bytes.
    Bytes(BTreeSet<u8>),
    /// With one of these words.
    Words(BTreeSet<Box<str>>),
    /// With text that only the prompt knows.
    Unknown,
    /// With exactly this text, behind which it ends; may be empty.
    End(Box<str>),
}

/// Refuses a skeleton whose texts cannot be read back.
///
/// # Errors
/// A sentence that names the place.
pub(super) fn check(skeleton: &Skeleton) -> Result<(), String> {
    if skeleton.parts.is_empty() {
        return Err("`text` is empty".to_owned());
    }
    let used = used(&skeleton.parts);
    if let Some(slot) = (0..skeleton.slots.len()).find(|slot| !used.contains(slot)) {
        return Err(format!("slot `{}` stands nowhere in `text`", skeleton.slots[slot].name));
    }
    if let Some(geometry) = &skeleton.geometry {
        let numbers = [geometry.lengths, geometry.angles, Some(geometry.positions)];
        if let Some(slot) = numbers.into_iter().flatten().find(|slot| !skeleton.slots[*slot].is_number()) {
            return Err(format!("geometry: slot `{}` holds no numbers", skeleton.slots[slot].name));
        }
    }
    check_marker(skeleton, None)?;
    let loops = skeleton.loops().map(|each| each.items);
    if let Some(items) =
        (0..skeleton.items.len()).find(|items| loops.clone().filter(|own| own == items).count() > 1)
    {
        return Err(format!("it has two loops over `{}`", skeleton.items[items].0));
    }
    Borders { skeleton, items: None }.check(&skeleton.parts, &ends(skeleton))
}

/// Refuses a prompt whose texts cannot be read back: its words may begin otherwise than those of formulas do, with capital letters, and
/// its fields may have the marker.
///
/// # Errors
/// A sentence that names the place.
pub(super) fn check_prompt(skeleton: &Skeleton, items: &[Items], fields: &[String]) -> Result<(), String> {
    check_marker(skeleton, Some(fields))?;
    let borders = Borders { skeleton, items: Some(items) };
    let begins_alike =
        (0..items.len()).all(|at| skeleton.are_pieces(at) || borders.initials(at).is_subset(&capitals()));
    if begins_alike { Ok(()) } else { borders.check(&skeleton.parts, &ends(skeleton)) }
}

/// Refuses a skeleton whose fixed texts have the marker, with the fields of a prompt where they are known.
fn check_marker(skeleton: &Skeleton, fields: Option<&[String]>) -> Result<(), String> {
    let Some(marker) = &skeleton.marker else { return Ok(()) };
    let whole = fixed_text(&skeleton.parts, fields);
    let mut texts = skeleton.ends.iter().map(|end| format!("{whole}{end}"));
    let Some(text) = texts.find(|text| text.contains(&**marker)) else { return Ok(()) };
    let line = text.split(NOT_FIXED).find(|text| text.contains(&**marker)).unwrap_or_default();
    Err(format!("`text` has `marker` itself in `{}`, so no text could have it once", line.escape_debug()))
}

/// Stands in [`fixed_text`] for what is not fixed. No marker has it.
const NOT_FIXED: char = '\0';

/// Returns the fixed text of parts, each loop with two items.
fn fixed_text(parts: &[Part], fields: Option<&[String]>) -> String {
    parts.iter().map(|part| fixed_text_of(part, fields)).collect()
}

fn fixed_text_of(part: &Part, fields: Option<&[String]>) -> String {
    match part {
        Part::Text(text) => text.to_string(),
        Part::Field(field) => fields.map_or_else(|| NOT_FIXED.to_string(), |fields| fields[*field].clone()),
        Part::Each(each) => {
            let item = fixed_text(&each.parts, fields);
            format!("{item}{}{item}", each.between)
        }
        Part::Slot(_) | Part::Item { .. } => NOT_FIXED.to_string(),
    }
}

/// Returns the ends of a text.
pub(super) fn ends(skeleton: &Skeleton) -> Vec<Lead> {
    skeleton.ends.iter().map(|end| Lead::End(end.as_str().into())).collect()
}

/// Returns the slots that stand in parts.
fn used(parts: &[Part]) -> BTreeSet<usize> {
    let mut slots = BTreeSet::new();
    for part in parts {
        match part {
            Part::Slot(slot) => slots.extend([*slot]),
            Part::Each(each) => slots.extend(used(&each.parts)),
            _ => {}
        }
    }
    slots
}

/// The borders between the parts of texts.
#[derive(Clone, Copy)]
pub(super) struct Borders<'b> {
    /// The skeleton.
    pub skeleton: &'b Skeleton,
    /// The items of a prompt, where they are known.
    pub items: Option<&'b [Items]>,
}

impl Borders<'_> {
    /// Checks parts that `after` follows.
    fn check(&self, parts: &[Part], after: &[Lead]) -> Result<(), String> {
        let skeleton = self.skeleton;
        for (at, part) in parts.iter().enumerate() {
            let behind = self.leads(&parts[at + 1..], after);
            match part {
                Part::Slot(slot) => check_slot(skeleton, *slot, &behind)?,
                // Where an item writes its word again, the word is known.
                Part::Item { text: ItemText::Word, items }
                    if !parts[..at].contains(part) && !skeleton.are_pieces(*items) =>
                {
                    let is_text = |lead: &Lead| matches!(lead, Lead::Text(..) | Lead::End(_));
                    if !behind.iter().all(is_text) {
                        let name = &skeleton.items[*items].0;
                        return Err(format!("no text stands behind `{{{name}}}`, so its words have no end"));
                    }
                }
                Part::Item { text: ItemText::Rest, items } if !skeleton.are_pieces(*items) => {
                    let name = &skeleton.items[*items].0;
                    return Err(format!("`{{{name}.rest}}`: only the pieces of a SMILES have a rest"));
                }
                Part::Item { text: ItemText::Rest | ItemText::Word | ItemText::Index(_), .. } => {}
                Part::Item { items, .. }
                    if behind.iter().any(|lead| lead.firsts().iter().any(u8::is_ascii_digit)) =>
                {
                    let name = &skeleton.items[*items].0;
                    let problem =
                        format!("what is stated of `{name}` could go on with the digit that follows it");
                    return Err(format!("{problem}; put a text between them"));
                }
                Part::Each(each) => self.check_loop(each, &behind)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks a loop: its inside, and that its end can be told from another item.
    fn check_loop(&self, each: &Repetition, behind: &[Lead]) -> Result<(), String> {
        let skeleton = self.skeleton;
        let first = self.leads(&each.parts, &[]);
        let again = if each.between.is_empty() {
            first.clone()
        } else {
            let bytes = first_bytes(&first);
            vec![Lead::Text(each.between.clone(), bytes)]
        };
        let name = &skeleton.items[each.items].0;
        // The number of pieces is known before they are read.
        let is_open = !skeleton.are_pieces(each.items);
        if is_open && begin_alike(&again, behind) {
            let problem = format!("after an item of `{name}`, another item and what follows begin alike");
            return Err(format!("{problem}; end each item with another text than the one behind the last"));
        }
        if is_open && skeleton.may_be_empty(each.items) && begin_alike(&first, behind) {
            let problem = format!("there may be no item of `{name}`, and an item begins like what follows");
            return Err(format!("{problem}; begin the items with another text"));
        }
        let inside: Vec<Lead> = again.into_iter().chain(behind.iter().cloned()).collect();
        self.check(&each.parts, &inside)
    }

    /// Returns how a text of these parts may begin, with `after` behind them.
    pub(super) fn leads(&self, parts: &[Part], after: &[Lead]) -> Vec<Lead> {
        let skeleton = self.skeleton;
        let Some((first, rest)) = parts.split_first() else { return after.to_vec() };
        match first {
            Part::Text(text) => {
                let bytes = first_bytes(&self.leads(rest, after));
                vec![Lead::Text(text.clone(), bytes)]
            }
            Part::Slot(slot) => {
                let dfa = skeleton.slots[*slot].dfa();
                vec![Lead::Bytes(dfa.bytes(dfa.start()).collect())]
            }
            Part::Item { items, text: ItemText::Word } if skeleton.are_pieces(*items) => {
                vec![Lead::Bytes(SMILES_BYTES.iter().copied().collect())]
            }
            Part::Item { text: ItemText::Rest, .. } => {
                let piece = Lead::Bytes(SMILES_BYTES.iter().copied().collect());
                [vec![piece], self.leads(rest, after)].concat()
            }
            Part::Item { items, text: ItemText::Word } if self.items.is_some() => {
                let words = self.items.into_iter().flat_map(|all| &all[*items].words);
                vec![Lead::Words(words.cloned().collect())]
            }
            Part::Item { items, text: ItemText::Word | ItemText::Sum | ItemText::Reduced } => {
                vec![Lead::Bytes(self.initials(*items))]
            }
            Part::Item { .. } => vec![Lead::Bytes((b'0'..=b'9').collect())],
            Part::Field(_) => vec![Lead::Unknown],
            Part::Each(each) => {
                let mut all = self.leads(&each.parts, after);
                if skeleton.may_be_empty(each.items) {
                    all.extend(self.leads(rest, after));
                }
                all
            }
        }
    }

    /// Returns the bytes with which words of items begin: capital letters, and what the words of the prompt begin with.
    fn initials(&self, items: usize) -> BTreeSet<u8> {
        let words = self.items.into_iter().flat_map(|all| &all[items].words);
        initials(words).union(&capitals()).copied().collect()
    }
}

/// Returns whether a text may begin in one of each of these ways.
fn begin_alike(some: &[Lead], others: &[Lead]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.may_begin_like(other)))
}

/// Returns the bytes with which words begin.
fn initials<'w>(words: impl IntoIterator<Item = &'w Box<str>>) -> BTreeSet<u8> {
    words.into_iter().filter_map(|word| word.bytes().next()).collect()
}

fn capitals() -> BTreeSet<u8> {
    (b'A'..=b'Z').collect()
}

/// Refuses a slot whose texts could go on with what follows them.
fn check_slot(skeleton: &Skeleton, slot: usize, behind: &[Lead]) -> Result<(), String> {
    let slot = &skeleton.slots[slot];
    let continuations = slot.continuations();
    for lead in behind {
        if let Some(byte) = lead.firsts().intersection(&continuations).next() {
            let byte = char::from(*byte).escape_default();
            let problem = format!("slot `{}` could go on with the `{byte}` that follows it", slot.name);
            return Err(format!("{problem}; put a text between them, or give it a fixed width"));
        }
    }
    Ok(())
}

/// Returns the bytes with which texts may begin; `None` if they are not known.
fn first_bytes(leads: &[Lead]) -> Option<BTreeSet<u8>> {
    let is_known = |lead: &Lead| !matches!(lead, Lead::Unknown | Lead::End(_));
    leads.iter().all(is_known).then(|| leads.iter().flat_map(Lead::firsts).collect())
}

impl Lead {
    /// Returns the bytes with which a text may go on.
    fn firsts(&self) -> BTreeSet<u8> {
        match self {
            Lead::End(text) | Lead::Text(text, _) => text.bytes().next().into_iter().collect(),
            Lead::Bytes(bytes) => bytes.clone(),
            Lead::Words(words) => initials(words),
            Lead::Unknown => (0..=255).collect(),
        }
    }

    /// Returns whether a text begins in this way, and goes on behind it as it must.
    pub(super) fn goes_on(&self, text: &str) -> bool {
        let behind = |lead: &str| text.as_bytes().get(lead.len());
        match self {
            Lead::Text(lead, Some(bytes)) => {
                self.begins(text) && behind(lead).is_none_or(|byte| bytes.contains(byte))
            }
            _ => self.begins(text),
        }
    }

    /// Returns whether a text begins in this way.
    pub(super) fn begins(&self, text: &str) -> bool {
        match self {
            Lead::Text(lead, _) => text.starts_with(&**lead),
            Lead::Bytes(bytes) => text.bytes().next().is_some_and(|byte| bytes.contains(&byte)),
            // A wrong word is a word, too.
            Lead::Words(words) => {
                let first = text.bytes().next();
                first.is_some_and(|byte| byte.is_ascii_uppercase() || initials(words).contains(&byte))
            }
            Lead::Unknown => false,
            // Empty lines are no item; a space may begin one.
            Lead::End(end) => text == &**end || (text.starts_with('\n') && text.trim().is_empty()),
        }
    }

    /// Returns whether a text may begin in both ways.
    fn may_begin_like(&self, other: &Lead) -> bool {
        match (self, other) {
            // The end of the text is told by the text itself, and by the model's end token.
            (Lead::End(_), _) | (_, Lead::End(_)) => false,
            (Lead::Unknown, _) | (_, Lead::Unknown) => true,
            (Lead::Bytes(a), Lead::Bytes(b)) => !a.is_disjoint(b),
            (Lead::Words(words), Lead::Bytes(bytes)) | (Lead::Bytes(bytes), Lead::Words(words)) => {
                !initials(words).is_disjoint(bytes)
            }
            (Lead::Words(a), Lead::Words(b)) => !initials(a).is_disjoint(&initials(b)),
            (Lead::Words(words), Lead::Text(text, _)) | (Lead::Text(text, _), Lead::Words(words)) => {
                words.iter().any(|word| word.starts_with(&**text) || text.starts_with(&**word))
            }
            (Lead::Bytes(bytes), Lead::Text(text, _)) | (Lead::Text(text, _), Lead::Bytes(bytes)) => {
                text.bytes().next().is_some_and(|byte| bytes.contains(&byte))
            }
            (Lead::Text(a, behind), Lead::Text(b, other)) => {
                let (short, long, behind) = if a.len() < b.len() { (a, b, behind) } else { (b, a, other) };
                if !long.starts_with(&**short) {
                    return false;
                }
                // Behind the shorter one the longer one goes on with a byte that may be known to be another. A whole text that
                // ends here is told by its end.
                match (behind, long.as_bytes().get(short.len())) {
                    (Some(bytes), Some(byte)) => bytes.contains(byte),
                    (Some(_), None) => true,
                    (None, _) => false,
                }
            }
        }
    }
}

/// The bytes with which pieces of a SMILES begin whose atoms have brackets.
const SMILES_BYTES: &[u8] = b"[]()-=#$:/\\~.%0123456789";
