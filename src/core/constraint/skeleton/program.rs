//! The text of a skeleton as a list of nodes, and what a text has written of its items.
//!
//! Items are counted and not enumerated: any order of a composition, times any number between two, needs one counter for each word.

use super::slots::EncodedSlots;
use crate::skeleton::{Arrangement, ItemText, Items, Part, Repetition, Skeleton};

/// A part of the text, in the order of the skeleton.
#[derive(Debug)]
pub(super) enum Node {
    /// Fixed text.
    Text(Box<str>),
    /// A field of the prompt.
    Field(usize),
    /// A slot.
    Slot(usize),
    /// Something about items.
    Item { items: usize, text: ItemText },
    /// The decision whether another item follows: at `body` it begins, at `exit` the text behind the loop.
    Loop { items: usize, body: usize, exit: usize },
    /// The decision between nodes.
    Choice(Vec<usize>),
    /// One of the ends of the text.
    Ends,
}

/// A node and the node behind it.
#[derive(Debug)]
pub(super) struct Step {
    pub node: Node,
    pub next: usize,
}

/// Returns the nodes of a skeleton. The text is over behind the last one, the ends.
pub(super) fn steps(skeleton: &Skeleton, encoded: &[EncodedSlots]) -> Vec<Step> {
    let mut builder = StepBuilder { skeleton, encoded, steps: Vec::new() };
    let mut rest = &skeleton.parts[..];
    while let Some(part) = rest.first() {
        let Part::Each(each) = part else {
            rest = builder.part(rest, false);
            continue;
        };
        rest = &rest[1..];
        builder.each(each);
    }
    builder.push(Node::Ends);
    builder.steps
}

/// Lists the nodes of a skeleton.
struct StepBuilder<'s> {
    skeleton: &'s Skeleton,
    encoded: &'s [EncodedSlots],
    steps: Vec<Step>,
}

impl StepBuilder<'_> {
    fn push(&mut self, node: Node) {
        let next = self.steps.len() + 1;
        self.steps.push(Step { node, next });
    }

    /// Adds a loop over items.
    fn each(&mut self, each: &Repetition) {
        let items = each.items;
        let before = self.steps.len();
        let body = before + 1;
        // The exit is known behind the body.
        self.push(Node::Loop { items, body, exit: 0 });
        let are_pieces = self.skeleton.are_pieces(items);
        let mut rest = &each.parts[..];
        while !rest.is_empty() {
            rest = self.part(rest, are_pieces);
        }
        let again = self.steps.len();
        let [into, exit] = if each.between.is_empty() { [body, again + 1] } else { [again + 1, again + 2] };
        self.steps[before].node = Node::Loop { items, body, exit };
        self.push(Node::Loop { items, body: into, exit });
        if !each.between.is_empty() {
            self.steps.push(Step { node: Node::Text(each.between.clone()), next: body });
        }
    }

    /// Adds the first part, or the slots of an encoding that begin with it; returns the parts behind. Without text around them, slots
    /// are known to be tokenised by themselves only behind symbols of a SMILES.
    fn part<'p>(&mut self, parts: &'p [Part], are_pieces: bool) -> &'p [Part] {
        for slots in self.encoded {
            let has_texts = !slots.encoding.open().is_empty() && !slots.encoding.close().is_empty();
            if let Some(length) = slots.at(parts, self.skeleton).filter(|_| has_texts || are_pieces) {
                self.encoded(slots);
                return &parts[length..];
            }
        }
        self.push(node_of(&parts[0]));
        &parts[1..]
    }

    /// Adds the slots of an encoding: those that the tokenizer cuts out of the text, and those that it does not.
    fn encoded(&mut self, slots: &EncodedSlots) {
        let EncodedSlots { encoding, plain, isolated } = slots;
        if let (Some(_), Some(_)) = (plain, isolated) {
            let here = self.steps.len();
            self.push(Node::Choice(vec![here + 1, here + 2]));
        }
        let isolated = isolated.map(|slot| {
            self.push(Node::Slot(slot));
            self.steps.len() - 1
        });
        if let Some(slot) = plain {
            self.text(encoding.open());
            if encoding.is_signed() {
                let here = self.steps.len();
                // Without the sign first, so that samples of the text have none.
                self.push(Node::Choice(vec![here + 2, here + 1]));
                self.push(Node::Text("-".into()));
            }
            self.push(Node::Slot(*slot));
            self.text(encoding.close());
        }
        let end = self.steps.len();
        if let Some(isolated) = isolated {
            self.steps[isolated].next = end;
        }
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(Node::Text(text.into()));
        }
    }
}

fn node_of(part: &Part) -> Node {
    match part {
        Part::Text(text) => Node::Text(text.clone()),
        Part::Slot(slot) => Node::Slot(*slot),
        Part::Field(field) => Node::Field(*field),
        Part::Item { items, text } => Node::Item { items: *items, text: *text },
        // Loops have no loops inside, and those outside are taken apart above.
        Part::Each(_) => Node::Text("".into()),
    }
}

/// What a text has written of the items of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Count {
    /// The number of items begun.
    pub begun: u32,
    /// The least and the largest multiple that the text may still have; without words, the number of items.
    pub times: [u32; 2],
    /// Whether the text has stated the multiple.
    pub is_stated: bool,
    /// By word, how many items have it; empty for items in a given sequence.
    written: Vec<u32>,
    /// The word of the item that is being written, once it is known.
    pub word: Option<u32>,
}

impl Count {
    /// Nothing was written.
    pub(super) fn new(items: &Items) -> Self {
        let written = match &items.arrangement {
            Arrangement::Composition { counts, .. } => vec![0; counts.len()],
            _ => Vec::new(),
        };
        Count { begun: 0, times: items.multiples(), is_stated: false, written, word: None }
    }

    /// Begins an item.
    pub(super) fn begin(&mut self) {
        self.begun += 1;
        self.word = None;
    }

    /// Gives the item its word.
    pub(super) fn choose(&mut self, word: u32) {
        self.word = Some(word);
        if let Some(written) = self.written.get_mut(word as usize) {
            *written += 1;
        }
    }

    /// States the multiple.
    pub(super) fn state(&mut self, times: u32) {
        self.times = [times; 2];
        self.is_stated = true;
    }

    /// Ends the loop: what is stated behind it is the multiple that it has.
    pub(super) fn finish(&mut self, items: &Items) {
        if let Some(times) = self.begun.checked_div(items.unit()) {
            self.times = [times; 2];
        }
    }

    /// Returns whether another item may begin. `words`: whether items write their words.
    pub(super) fn may_begin(&self, items: &Items, words: bool) -> bool {
        match &items.arrangement {
            Arrangement::Composition { .. } if words => !self.words(items).is_empty(),
            _ => self.begun < self.range(items)[1],
        }
    }

    /// Returns whether the loop may end.
    pub(super) fn may_end(&self, items: &Items, words: bool) -> bool {
        match &items.arrangement {
            Arrangement::Composition { counts, .. } if words => {
                let mut times = self.times[0]..=self.times[1];
                times.any(|times| counts.iter().zip(&self.written).all(|(count, n)| count * times == *n))
            }
            // Without words, too, a formula comes in whole multiples.
            _ => {
                let [least, most] = self.range(items);
                (least..=most).contains(&self.begun) && self.begun.is_multiple_of(items.unit())
            }
        }
    }

    /// Returns the least and the largest number of items.
    fn range(&self, items: &Items) -> [u32; 2] {
        self.times.map(|times| times * items.unit())
    }

    /// Returns the words that the next item may have, before it was given one.
    pub(super) fn words(&self, items: &Items) -> Vec<u32> {
        match &items.arrangement {
            // The item has begun already where its word is asked for.
            Arrangement::Sequence(sequence) => {
                sequence.get(self.begun.saturating_sub(1) as usize).copied().into_iter().collect()
            }
            Arrangement::Number { .. } => Vec::new(),
            Arrangement::Composition { counts, any_order: true, .. } => {
                let has_room =
                    |word: &u32| self.written[*word as usize] < counts[*word as usize] * self.times[1];
                (0..counts.len() as u32).filter(has_room).collect()
            }
            Arrangement::Composition { counts, any_order: false, .. } => {
                let next = |times: u32| self.next_sorted(counts, times);
                let mut words: Vec<u32> = (self.times[0]..=self.times[1]).filter_map(next).collect();
                words.dedup();
                words.sort_unstable();
                words.dedup();
                words
            }
        }
    }

    /// Returns the next word of items that are sorted by word, if there are so many times the counts. `None` if what was written is no
    /// beginning of them, or all.
    fn next_sorted(&self, counts: &[u32], times: u32) -> Option<u32> {
        let is_open = |word: &usize| self.written[*word] < counts[*word] * times;
        let open = (0..counts.len()).find(is_open)?;
        let is_whole = (0..open).all(|word| self.written[word] == counts[word] * times);
        (is_whole && self.written[open + 1..].iter().all(|n| *n == 0)).then_some(open as u32)
    }
}
