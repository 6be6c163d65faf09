//! How a text may go on from a place, up to the next border at which texts fall apart.
//!
//! Such a way is a *run*, fixed text whose tokens the encoder knows, or a *chunk*, which holds slots. What stands beside a slot and
//! may share a token with it belongs to its chunk: ` -0.5`, where ` -` is a token.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::program::{Count, Node, Step, steps};
use super::slots::{FollowedSlot, FollowedSlots};
use crate::encoding::language::{Languages, Node as LanguageNode};
use crate::encoding::{Dfa, DfaState};
use crate::skeleton::{ItemText, Items, Skeleton};
use crate::tokenizer::boundaries::TokenBoundaries;

/// A skeleton with the data of a prompt, and the borders at which its texts fall apart.
pub(super) struct Program {
    skeleton: Arc<Skeleton>,
    /// By index of the skeleton's items, those of the prompt.
    items: Vec<Items>,
    fields: Vec<String>,
    /// By items, whether they write their words.
    writes_words: Vec<bool>,
    steps: Vec<Step>,
    boundaries: Arc<TokenBoundaries>,
    slots: Arc<FollowedSlots>,
    /// Whether texts begin with a space that the tokenizer adds.
    adds_space: bool,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    /// The node, and how many bytes of its text were written.
    node: usize,
    offset: usize,
    /// By items, what was written of them.
    counts: Arc<Vec<Count>>,
}

impl Spot {
    /// This place with another count of items.
    fn changed(&self, items: usize, change: impl Fn(&mut Count)) -> Self {
        let mut counts = (*self.counts).clone();
        change(&mut counts[items]);
        Spot { counts: Arc::new(counts), ..self.clone() }
    }
}

/// A part of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Element {
    Text(String),
    Slot(usize),
}

/// How a text may go on.
#[derive(Debug)]
pub(super) struct Continuation {
    /// The parts up to the border: nothing at the end of the text, one text, or slots and texts.
    pub elements: Vec<Element>,
    /// The place behind the border.
    pub to: Spot,
}

/// The most ways in which a text may go on from one place.
const MOST_CONTINUATIONS: usize = 4_096;

/// The most nodes that a search passes.
const MOST_STEPS: usize = 1 << 17;

/// The largest length of a text in which no border was found, in bytes.
const LONGEST: usize = 1 << 16;

/// The length of a sample of the text that follows, in bytes.
const AHEAD: usize = 16;

/// A border that was passed.
#[derive(Clone)]
struct BorderPassage {
    to: Spot,
    length: usize,
}

/// What was written since the last border.
#[derive(Clone, Default)]
struct Path {
    elements: Vec<Element>,
    /// The last border within a text that no slot precedes.
    passed: Option<BorderPassage>,
}

/// A search for all ways to the next border.
struct Walk {
    waiting: Vec<(Spot, Path)>,
    found: Vec<Continuation>,
}

impl Path {
    fn has_slot(&self) -> bool {
        self.elements.iter().any(|element| matches!(element, Element::Slot(_)))
    }

    fn push(&mut self, text: &str) {
        match self.elements.last_mut() {
            Some(Element::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.elements.push(Element::Text(text.to_owned())),
        }
    }

    fn length(&self) -> usize {
        let length = |element: &Element| if let Element::Text(text) = element { text.len() } else { 1 };
        self.elements.iter().map(length).sum()
    }
}

impl Program {
    /// Returns the program of a prompt.
    ///
    /// # Errors
    /// A sentence, if the skeleton has no program.
    pub(super) fn new(
        skeleton: Arc<Skeleton>,
        items: Vec<Items>,
        fields: Vec<String>,
        boundaries: Arc<TokenBoundaries>,
        slots: Arc<FollowedSlots>,
        adds_space: bool,
    ) -> Result<Self, String> {
        let steps = steps(&skeleton, &slots.encoded);
        let is_empty = |step: &Step| matches!(step.node, Node::Field(field) if fields[field].is_empty());
        if steps.iter().any(is_empty) {
            return Err("a field that it writes is empty".to_owned());
        }
        let writes_words = (0..items.len()).map(|items| skeleton.writes_words(items)).collect();
        Ok(Program { skeleton, items, fields, writes_words, steps, boundaries, slots, adds_space })
    }

    /// Returns where texts fall apart.
    pub(super) fn boundaries(&self) -> &TokenBoundaries {
        &self.boundaries
    }

    /// Returns a slot by its index.
    pub(super) fn slot(&self, slot: usize) -> &FollowedSlot {
        &self.slots.all[slot]
    }

    /// Returns the place before the text.
    pub(super) fn start(&self) -> Spot {
        Spot { node: 0, offset: 0, counts: Arc::new(self.items.iter().map(Count::new).collect()) }
    }

    /// Returns whether texts fall apart between a byte and their beginning.
    pub(super) fn may_follow(&self, last: u8) -> bool {
        let mut firsts = BTreeSet::new();
        self.firsts(&self.start(), &mut firsts);
        firsts.into_iter().all(|first| !self.boundaries.joins(last, first))
    }

    /// Returns the language of a chunk; `None` if it has too many states.
    pub(super) fn language(&self, elements: &[Element]) -> Option<Dfa> {
        let mut languages: Languages<u8> = Languages::default();
        let mut all = languages.end(());
        for element in elements.iter().rev() {
            all = match element {
                Element::Text(text) => text.bytes().rev().fold(all, |then, byte| {
                    languages.intern(LanguageNode { edges: vec![(byte, then)], end: None })
                }),
                Element::Slot(slot) => {
                    let slot = self.slot(*slot).dfa.language(&mut languages);
                    languages.concatenation(slot, all)?
                }
            };
        }
        let is_small = languages.reachable(all).len() < usize::from(DfaState::MAX);
        is_small.then(|| Dfa::new(&languages, all))
    }

    /// Returns a sample of the text of elements.
    pub(super) fn sample(&self, elements: &[Element]) -> String {
        elements.iter().map(|element| self.element_sample(element)).collect()
    }

    fn element_sample<'e>(&'e self, element: &'e Element) -> &'e str {
        match element {
            Element::Text(text) => text,
            Element::Slot(slot) => &self.slot(*slot).sample,
        }
    }

    /// Returns a sample of the text behind a place.
    pub(super) fn ahead(&self, from: &Spot) -> String {
        let (mut text, mut at) = (String::new(), from.clone());
        while text.len() < AHEAD {
            if let Some(Node::Slot(slot)) = self.node(&at) {
                text.push_str(&self.slot(*slot).sample);
                at = self.behind(&at);
            } else if let Some(literal) = self.literal(&at) {
                text.push_str(&literal[at.offset..]);
                at = self.behind(&at);
            } else if let Some(choice) = self.choices(&at).into_iter().next() {
                at = choice;
            } else {
                if let Some(Node::Ends) = self.node(&at) {
                    text.push_str(&self.skeleton.ends[0]);
                }
                break;
            }
        }
        text
    }

    /// Returns how the text may go on from a place that is a border. Each way begins with `text`: nothing, the space that the tokenizer
    /// adds before a text, or a marker.
    ///
    /// # Errors
    /// A sentence, if there are too many ways to list.
    pub(super) fn continuations(&self, from: &Spot, text: &str) -> Result<Vec<Continuation>, String> {
        let mut path = Path::default();
        path.push(text);
        let mut walk = Walk { waiting: vec![(from.clone(), path)], found: Vec::new() };
        for _ in 0..MOST_STEPS {
            let Some((at, path)) = walk.waiting.pop() else { return Ok(walk.found) };
            if walk.found.len() > MOST_CONTINUATIONS || path.length() > LONGEST {
                break;
            }
            self.walk(at, path, &mut walk);
        }
        Err("its texts go on in too many ways between two borders of tokens".to_owned())
    }

    fn node(&self, at: &Spot) -> Option<&Node> {
        self.steps.get(at.node).map(|step| &step.node)
    }

    /// Returns the place behind a node.
    fn behind(&self, at: &Spot) -> Spot {
        Spot { node: self.steps[at.node].next, offset: 0, counts: at.counts.clone() }
    }

    /// Returns the text of a node, if it is known.
    fn literal(&self, at: &Spot) -> Option<String> {
        match self.node(at)? {
            Node::Text(text) => Some(text.to_string()),
            Node::Field(field) => Some(self.fields[*field].clone()),
            Node::Item { items, text } => {
                let (count, known) = (&at.counts[*items], &self.items[*items]);
                match text {
                    ItemText::Word => Some(known.words[count.word? as usize].to_string()),
                    ItemText::Index(first) => Some((count.begun - 1 + first).to_string()),
                    _ if count.times[0] == count.times[1] || *text == ItemText::Reduced => {
                        Some(known.stated(*text, count.times[0]))
                    }
                    _ => None,
                }
            }
            Node::Slot(_) | Node::Loop { .. } | Node::Choice(_) | Node::Ends => None,
        }
    }

    /// Returns the places to which a decision leads. Words and multiples are decided where they are first written.
    fn choices(&self, at: &Spot) -> Vec<Spot> {
        match self.node(at) {
            Some(Node::Loop { items, body, exit }) => {
                let (count, known, words) =
                    (&at.counts[*items], &self.items[*items], self.writes_words[*items]);
                let begun = || Spot { node: *body, ..at.changed(*items, Count::begin) };
                let ended = || Spot { node: *exit, ..at.changed(*items, |count| count.finish(known)) };
                let begun = count.may_begin(known, words).then(begun);
                begun.into_iter().chain(count.may_end(known, words).then(ended)).collect()
            }
            Some(Node::Choice(nodes)) => {
                nodes.iter().map(|node| Spot { node: *node, ..at.clone() }).collect()
            }
            Some(Node::Item { items, text: ItemText::Word }) => {
                let words = at.counts[*items].words(&self.items[*items]);
                words.into_iter().map(|word| at.changed(*items, |count| count.choose(word))).collect()
            }
            Some(Node::Item { items, .. }) => {
                let [least, most] = at.counts[*items].times;
                let most = most.min(least.saturating_add(MOST_CONTINUATIONS as u32 + 1));
                (least..=most).map(|times| at.changed(*items, |count| count.state(times))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Goes on from a place: over its text or its slot, to a border, or to each choice.
    fn walk(&self, at: Spot, mut path: Path, walk: &mut Walk) {
        if let Some(literal) = self.literal(&at) {
            return self.walk_text(&at, &literal, path, walk);
        }
        if !path.elements.is_empty() && self.is_border(&path, &at) {
            walk.found.push(Continuation { elements: path.elements, to: at });
            return;
        }
        match self.node(&at) {
            Some(Node::Slot(slot)) => match path.passed.take() {
                Some(BorderPassage { to, length }) => {
                    let text = self.sample(&path.elements)[..length].to_owned();
                    walk.found.push(Continuation { elements: vec![Element::Text(text)], to });
                }
                None => {
                    path.elements.push(Element::Slot(*slot));
                    walk.waiting.push((self.behind(&at), path));
                }
            },
            Some(Node::Ends) => {
                let over = self.behind(&at);
                for end in &self.skeleton.ends {
                    let mut ended = path.clone();
                    ended.push(end);
                    walk.found.push(Continuation { elements: ended.elements, to: over.clone() });
                }
            }
            // The text is over, and this is a border.
            None => walk.found.push(Continuation { elements: path.elements, to: at }),
            Some(_) => {
                let choices = self.choices(&at).into_iter().rev();
                walk.waiting.extend(choices.map(|choice| (choice, path.clone())));
            }
        }
    }

    /// Goes over fixed text. Behind a slot it ends at the first border, and otherwise it goes on.
    fn walk_text(&self, at: &Spot, literal: &str, mut path: Path, walk: &mut Walk) {
        let text = &literal[at.offset..];
        let has_slot = path.has_slot();
        for (index, c) in text.char_indices() {
            if !path.elements.is_empty() && self.falls_apart(&path, &text.as_bytes()[index..]) {
                let here = Spot { offset: at.offset + index, ..at.clone() };
                if has_slot {
                    walk.found.push(Continuation { elements: path.elements, to: here });
                    return;
                }
                path.passed = Some(BorderPassage { to: here, length: path.length() });
            }
            path.push(&text[index..index + c.len_utf8()]);
        }
        walk.waiting.push((self.behind(at), path));
    }

    /// Returns whether the text falls apart between a path and the bytes behind it, of which one or more are given.
    fn falls_apart(&self, path: &Path, behind: &[u8]) -> bool {
        match path.elements.last() {
            // The space that the tokenizer adds has no border: it has no byte in the text.
            Some(Element::Text(text)) if self.adds_space && text == " " && path.elements.len() == 1 => false,
            Some(Element::Text(text)) => {
                let last = *text.as_bytes().last().unwrap_or(&b' ');
                self.boundaries.ends_added(text) || self.falls_apart_behind(last, behind)
            }
            Some(Element::Slot(slot)) => {
                let slot = self.slot(*slot);
                let mut lasts = slot.last_bytes.iter();
                slot.tokens.is_some()
                    || slot.ends_alike() && lasts.all(|last| self.falls_apart_behind(*last, behind))
            }
            None => true,
        }
    }

    /// Returns whether the text falls apart between a byte and those behind it.
    fn falls_apart_behind(&self, last: u8, behind: &[u8]) -> bool {
        !self.boundaries.joins(last, behind[0]) || self.boundaries.begins_added(last, behind)
    }

    /// Returns whether the text falls apart between a path and whatever may follow at a place.
    fn is_border(&self, path: &Path, at: &Spot) -> bool {
        let mut firsts = BTreeSet::new();
        self.firsts(at, &mut firsts);
        firsts.into_iter().all(|first| self.falls_apart(path, &[first]))
    }

    /// The bytes with which the text may go on at a place, but those of slots that fall apart from any text.
    fn firsts(&self, at: &Spot, firsts: &mut BTreeSet<u8>) {
        if let Some(literal) = self.literal(at) {
            match literal.as_bytes().get(at.offset) {
                Some(byte) => _ = firsts.insert(*byte),
                None => self.firsts(&self.behind(at), firsts),
            }
            return;
        }
        match self.node(at) {
            Some(Node::Slot(slot)) if self.slot(*slot).tokens.is_some() => {}
            Some(Node::Slot(slot)) => {
                let dfa = &self.slot(*slot).dfa;
                firsts.extend(dfa.bytes(dfa.start()));
            }
            Some(Node::Ends) => firsts.extend(self.skeleton.ends.iter().filter_map(|end| end.bytes().next())),
            _ => self.choices(at).iter().for_each(|choice| self.firsts(choice, firsts)),
        }
    }

    /// Returns the most items that a text may list.
    pub(super) fn most_items(&self) -> u32 {
        self.items.iter().map(|items| items.range()[1]).max().unwrap_or(0)
    }

    /// Returns whether the text is over at a place.
    pub(super) fn is_over(&self, at: &Spot) -> bool {
        at.node == self.steps.len()
    }
}
