//! Reads a text by a skeleton and the data of its prompt: the values of its slots, or what is wrong and where.
//!
//! Reading goes on behind a fault where it can: a number that is out of range still ends where the next text begins, and a line that
//! is off the format ends at its line break. So one text may have several faults, and its composition is known although a number is
//! damaged.

use super::borders::{Borders, Lead, ends};
use super::compare::Comparison;
use super::prompt::Bound;
use super::reading::{Fault, FaultKind, ReadItem, Reading};
use super::slot::SlotFault;
use super::template::{ItemText, Part, Repetition};
use crate::error::excerpt;

/// Why a part could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadFault {
    /// The text ended.
    Cut,
    /// The text goes on in another way.
    Off,
}

/// Follows a text.
pub(super) struct Reader<'a> {
    pub(super) bound: &'a Bound<'a>,
    text: &'a str,
    pub(super) at: usize,
    pub(super) out: Reading,
    /// By items, the multiples of the composition that the text states before its loop, if it states one.
    stated: Vec<Option<u32>>,
    /// The items of the loop that is read.
    current: Option<usize>,
}

impl Bound<'_> {
    /// Reads a text.
    pub fn read(&self, text: &str) -> Reading {
        let items = vec![Vec::new(); self.items.len()];
        let out = Reading { items, ..Reading::default() };
        let stated = vec![None; self.items.len()];
        let mut reader = Reader { bound: self, text, at: 0, out, stated, current: None };
        reader.whole();
        reader.out
    }
}

impl<'a> Reader<'a> {
    fn whole(&mut self) {
        let skeleton = self.bound.skeleton;
        if let Some(marker) = &skeleton.marker {
            let Some(at) = self.text.find(marker.as_str()) else {
                return self.fault(FaultKind::Marker, 0, format!("there is no `{marker}`"));
            };
            self.at = at + marker.len();
            if let Some(second) = self.rest().find(marker.as_str()) {
                self.fault(FaultKind::Marker, self.at + second, format!("`{marker}` stands twice"));
            }
        }
        self.out.start = self.at;
        let complete = self.parts(&skeleton.parts, &ends(skeleton)).is_ok();
        if complete && !skeleton.ends.iter().any(|end| end == self.rest()) {
            let is_cut = skeleton.ends.iter().any(|end| end.starts_with(self.rest()));
            let shown = excerpt(self.rest().as_bytes());
            match is_cut {
                true => {
                    self.fault(FaultKind::Cut, self.text.len(), "the text ends before its end".to_owned())
                }
                false => self.fault(FaultKind::Trailing, self.at, format!("{shown} stands behind the end")),
            }
        }
        if complete {
            self.compare();
        }
        self.out.faults.sort_by_key(|fault| (fault.line, fault.column));
    }

    /// Adds the faults of the items that the text lists.
    fn compare(&mut self) {
        for items in 0..self.bound.items.len() {
            let read = &self.out.items[items];
            let comparison = Comparison { bound: self.bound, items, read, stated: self.stated[items] };
            if let Some((kind, problem)) = comparison.difference() {
                self.fault(kind, self.out.start, problem);
            }
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn borders(&self) -> Borders<'a> {
        Borders { skeleton: self.bound.skeleton, items: Some(&self.bound.items) }
    }

    /// Counts a fault, and lists it if it is the first of its kind.
    pub(super) fn fault(&mut self, kind: FaultKind, at: usize, problem: String) {
        let count = self.out.counts.entry(kind).or_default();
        *count += 1;
        if *count == 1 {
            let before = &self.text[..at];
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            let column = before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count() + 1;
            self.out.faults.push(Fault { kind, line, column, problem });
        }
    }

    /// Reads parts that `after` follows. An error ends the reading.
    fn parts(&mut self, parts: &[Part], after: &[Lead]) -> Result<(), ReadFault> {
        let mut place = 0;
        let mut line = self.at;
        while let Some(part) = parts.get(place) {
            let before = self.at;
            if let Err(broken) = self.part(part, &parts[place + 1..], after) {
                // A line that does not even begin as the skeleton's is another line, and so are those behind it.
                let is_other_line = self.current.is_none() && before == line;
                if broken == ReadFault::Cut || is_other_line {
                    return Err(broken);
                }
                place = self.next_line(parts, place, after)?;
                line = self.at;
                continue;
            }
            if matches!(part, Part::Text(text) if text.ends_with('\n')) {
                line = self.at;
            }
            place += 1;
        }
        Ok(())
    }

    /// Skips the rest of a line that is off the format; returns the part with which the next line begins.
    fn next_line(&mut self, parts: &[Part], place: usize, after: &[Lead]) -> Result<usize, ReadFault> {
        let ends_line = |part: &Part| matches!(part, Part::Text(text) if text.ends_with('\n'));
        let line = parts[place..].split(ends_line).next().unwrap_or_default();
        self.out.has_gaps |= line.iter().any(|part| matches!(part, Part::Slot(_)));
        let rest = self.rest();
        let feed = rest.find('\n');
        if let (Some(offset), Some(feed)) = (parts[place..].iter().position(ends_line), feed) {
            self.at += feed + 1;
            return Ok(place + offset + 1);
        }
        // The item ends with its line, or before what follows the loop on the same line.
        let followed = after.iter().filter_map(|lead| match lead {
            Lead::Text(text, _) => rest.find(&**text),
            _ => None,
        });
        let end = followed.chain(feed).min();
        if end.is_none() && self.current.is_none() {
            return Err(ReadFault::Off);
        }
        self.at += end.unwrap_or(rest.len());
        Ok(parts.len())
    }

    fn part(&mut self, part: &Part, rest: &[Part], after: &[Lead]) -> Result<(), ReadFault> {
        match part {
            Part::Text(text) => self.fixed(text),
            Part::Field(field) => {
                let bound = self.bound;
                self.fixed(&bound.fields[*field])
            }
            Part::Slot(slot) => {
                // A whole slot cannot go on with what follows it (`borders`), so it may hold the first character of that.
                let definition = self.bound.skeleton.slots[*slot].dfa();
                let (length, state) = definition.longest(self.rest().as_bytes());
                let from = if definition.accepts(state) { length } else { 0 };
                // Slots without text between them have fixed widths.
                let is_text = |lead: &Lead| matches!(lead, Lead::Text(..) | Lead::End(_));
                let ends_with_text = match rest.first() {
                    None => after.iter().all(is_text),
                    Some(part) => matches!(part, Part::Text(_)),
                };
                self.slot(*slot, ends_with_text.then(|| self.until(from, rest, after)))
            }
            Part::Item { items, text: ItemText::Word } => self.word(*items, rest, after),
            Part::Item { items, text: ItemText::Index(first) } => {
                // The item itself has been pushed already.
                let index = self.out.items[*items].len() as u32 - 1 + first;
                self.fixed(&index.to_string())
            }
            Part::Item { items, text: ItemText::Rest } => {
                let bound = self.bound;
                self.fixed(bound.items[*items].rest.as_deref().unwrap_or_default())
            }
            Part::Item { items, text } => self.stated(*items, *text, rest, after),
            Part::Each(each) => {
                let behind = self.borders().leads(rest, after);
                self.each(each, &behind)
            }
        }
    }

    /// Reads fixed text.
    pub(super) fn fixed(&mut self, text: &str) -> Result<(), ReadFault> {
        let rest = self.rest();
        if rest.starts_with(text) {
            self.at += text.len();
            return Ok(());
        }
        let same = rest.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
        if same == rest.len() {
            return Err(self.cut(&format!("before {}", excerpt(text.as_bytes()))));
        }
        let shown = excerpt(rest.lines().next().unwrap_or_default().as_bytes());
        let problem = format!("{shown} stands where the skeleton has {}", excerpt(text.as_bytes()));
        self.fault(FaultKind::Format, self.at, problem);
        Err(ReadFault::Off)
    }

    pub(super) fn cut(&mut self, place: &str) -> ReadFault {
        self.fault(FaultKind::Cut, self.text.len(), format!("the text ends {place}"));
        ReadFault::Cut
    }

    /// Returns the length of the text before the next fixed text, on this line; at least `from`.
    pub(super) fn until(&self, from: usize, rest: &[Part], after: &[Lead]) -> usize {
        let all = self.rest();
        let line = all[from..].split('\n').next().unwrap_or_default();
        let found = match rest.first() {
            Some(Part::Text(text)) => text.chars().next().and_then(|first| line.find(first)),
            Some(_) => line.find(char::is_whitespace),
            None => {
                let firsts = after.iter().filter_map(|lead| match lead {
                    Lead::Text(text, _) | Lead::End(text) => line.find(text.chars().next()?),
                    _ => None,
                });
                firsts.min()
            }
        };
        from + found.unwrap_or(line.len())
    }

    /// Reads a slot that should end after `until` bytes, if a text ends it.
    fn slot(&mut self, slot: usize, until: Option<usize>) -> Result<(), ReadFault> {
        let definition = &self.bound.skeleton.slots[slot];
        let rest = self.rest();
        let (length, state) = definition.dfa().longest(rest.as_bytes());
        let is_whole = definition.dfa().accepts(state) && until.is_none_or(|until| until == length);
        let end = if is_whole { length } else { until.unwrap_or(length.max(1)).min(rest.len()) };
        // A damaged slot without a text behind it ends anywhere, but not within a character.
        let end = (end..=rest.len()).find(|end| rest.is_char_boundary(*end)).unwrap_or(rest.len());
        let text = &rest[..end];
        if !is_whole {
            if length == rest.len() {
                return Err(self.cut(&format!("within `{}`", definition.name)));
            }
            let kind = match definition.fault(text) {
                SlotFault::Format => FaultKind::Format,
                SlotFault::Range => FaultKind::Range,
                SlotFault::MinusZero => FaultKind::MinusZero,
            };
            let shown = excerpt(text.as_bytes());
            let problem = format!("{shown} is not {} (`{}`)", definition.description(), definition.name);
            self.fault(kind, self.at, problem);
            if kind == FaultKind::Format {
                return Err(ReadFault::Off);
            }
        }
        self.at += text.len();
        if let Some(value) = definition.value(text) {
            self.out.values.push((slot - definition.axis, value));
        }
        if let Some(item) = self.current.and_then(|items| self.out.items[items].last_mut()) {
            item.texts.push_str(text);
            item.texts.push(' ');
        }
        Ok(())
    }

    /// Reads what a text states of its items before it lists them.
    fn stated(
        &mut self,
        items: usize,
        text: ItemText,
        rest: &[Part],
        after: &[Lead],
    ) -> Result<(), ReadFault> {
        let bound = self.bound;
        let known = &bound.items[items];
        let here = self.rest();
        // An earlier statement may have said how many there are.
        let [least, most] = self.stated[items].map_or_else(|| known.multiples(), |times| [times; 2]);
        let next = match rest.first() {
            Some(Part::Text(next)) => Some(&**next),
            _ => None,
        };
        // What is stated may hold the first character of what follows it, but stands on one line.
        let end = next.and_then(|next| here.find(next)).filter(|end| !here[..*end].contains('\n'));
        // Several multiples may have the same text, as a reduced formula has.
        let found = (least..=most).find_map(|times| {
            let behind = here.strip_prefix(&*known.stated(text, times))?;
            let follows = match (end, next) {
                (Some(_), Some(next)) => behind.starts_with(next),
                _ => may_follow(behind, next),
            };
            follows.then_some((times, here.len() - behind.len()))
        });
        if let Some((times, length)) = found {
            if text != ItemText::Reduced {
                self.stated[items] = Some(times);
            }
            self.at += length;
            return Ok(());
        }
        if (least..=most).any(|times| known.stated(text, times).starts_with(here)) {
            return Err(self.cut("within its formula or number of items"));
        }
        let kind = match text {
            ItemText::Count | ItemText::Units => FaultKind::Count,
            _ => FaultKind::Composition,
        };
        let until = end.unwrap_or_else(|| self.until(0, rest, after));
        let one = known.stated(text, least);
        self.fault(kind, self.at, format!("`{}` stands where the prompt gives `{one}`", &here[..until]));
        self.at += until;
        Ok(())
    }

    /// Reads the items of a loop, as many as there are. `after`: what follows the loop.
    fn each(&mut self, each: &Repetition, after: &[Lead]) -> Result<(), ReadFault> {
        let first = self.borders().leads(&each.parts, after);
        let again = match &*each.between {
            "" => first.clone(),
            between => vec![Lead::Text(between.into(), None)],
        };
        let inside = [after, &again].concat();
        let mut result = Ok(());
        while result.is_ok() {
            let is_first = self.out.items[each.items].is_empty();
            if self.is_behind(each, after, if is_first { &first } else { &again }) {
                break;
            }
            let begun = self.at;
            let is_begun = |lead: &Lead| matches!(lead, Lead::Text(text, _) if text.starts_with(self.rest()));
            if !is_first && after.iter().any(is_begun) {
                return Err(self.cut("within the text behind its items"));
            }
            if !is_first {
                result = self.fixed(&each.between);
            }
            if result.is_ok() {
                self.current = Some(each.items);
                self.out.items[each.items].push(ReadItem::default());
                result = self.parts(&each.parts, &inside);
                self.current = None;
            }
            if self.at == begun {
                // Nothing was read: the same place would be tried forever.
                result = result.and(Err(ReadFault::Off));
            }
        }
        result
    }

    /// Returns whether the text goes on behind a loop, or ends, and not with another item.
    fn is_behind(&self, each: &Repetition, after: &[Lead], item: &[Lead]) -> bool {
        let rest = self.rest();
        let known = &self.bound.items[each.items];
        if known.rest.is_some() {
            return rest.is_empty() || self.out.items[each.items].len() as u32 == known.range()[1];
        }
        let is_first = self.out.items[each.items].is_empty();
        // A loop that must not be empty begins with an item, whatever follows it.
        let may_end = !is_first || self.bound.skeleton.may_be_empty(each.items);
        let is_item = || item.iter().any(|lead| lead.begins(rest));
        // What follows may be the beginning of the text of an item: the characters behind it tell.
        let ends = |lead: &Lead| lead.goes_on(rest) || lead.begins(rest) && !is_item();
        rest.is_empty() || may_end && after.iter().any(ends)
    }
}

/// Returns whether a text may stand behind a number or a formula, if the fixed text `next` follows it.
fn may_follow(behind: &str, next: Option<&str>) -> bool {
    match (behind.chars().next(), next) {
        (None, _) => true,
        (Some(first), Some(next)) => next.starts_with(first),
        // Nothing tells where it ends, but it does not end within its digits.
        (Some(first), None) => !first.is_ascii_digit(),
    }
}
