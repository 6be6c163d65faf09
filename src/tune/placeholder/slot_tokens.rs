//! All slots of an encoding as token sequences of the tokenizer: an automaton whose paths are counted.
//!
//! It is the automaton that the logit processor of [`drift_core::constraint`] follows: the product of the encoding's strings with
//! the tokenizer ([`EncoderProduct`]), and, if the tokenizer cuts slots out of the text, their language of tokens ([`Isolation`]).

use std::collections::{BTreeMap, HashMap};

use drift_core::encoding::language::{Languages, StateId};
use drift_core::encoding::{Dfa, IntegersBelow};
use drift_core::tokenizer::boundaries::with_white_space;
use drift_core::tokenizer::{EncoderProduct, Isolation};
use drift_core::{Encoding, Result, Tokenizer};

use super::attainable::{Spellings, keep};

/// The token sequences of the slots of an encoding, for ranges of integer parts.
pub(super) struct SlotTokens {
    encoding: Encoding,
    states: Languages<u32>,
    /// The start states of slots, for each range.
    starts: Vec<Vec<Start>>,
    /// The texts of the tokens.
    texts: HashMap<u32, TokenText>,
}

/// The text of a token.
struct TokenText {
    text: String,
    /// Whether the token is strictly inside the slot: no character of it opens or closes the slot.
    is_inside: bool,
}

/// A start state of slots, and the characters of the slot that were written before it.
struct Start {
    state: StateId,
    written: String,
}

impl SlotTokens {
    /// Returns the slots whose integer parts are below each of these bounds, in Å and ascending. Numbers without integer parts are in
    /// every range.
    ///
    /// # Errors
    /// If the tokenizer cannot encode the characters of a slot.
    pub(super) fn new(
        tokenizer: &Tokenizer,
        encoding: Encoding,
        isolation: Option<&Isolation>,
        below: &[u16],
    ) -> Result<Self> {
        let mut states = Languages::default();
        let opened = format!("[C]{}", encoding.open());
        // A sign may be in one token with the opening of the slot; then it is written before the start state.
        let signed = format!("{opened}-");
        let merges = !tokenizer.ids(&signed)?.starts_with(&tokenizer.ids(&opened)?);
        let dfas = below.iter().map(|below| {
            let without = |languages: &mut _| isolation.and_then(|isolation| isolation.language(languages));
            encoding.inner_dfa(IntegersBelow((*below).into()), without)
        });
        let dfas: Vec<Option<Dfa>> = dfas.collect();
        let isolated = isolation.and_then(|isolation| isolation.states(&mut states, tokenizer, ()));
        // The largest range has all characters of the others.
        let alphabet = dfas.iter().flatten().last().map(Dfa::alphabet).unwrap_or_default();
        let mut products = Vec::new();
        for (written, before) in [("", &opened), ("-", &signed)].into_iter().take(1 + usize::from(merges)) {
            products.push((written, EncoderProduct::new(tokenizer, &alphabet, before)?));
        }
        let mut starts = Vec::with_capacity(dfas.len());
        for dfa in dfas {
            let mut of_range = Vec::from_iter(isolated.map(|state| Start { state, written: String::new() }));
            if let Some(dfa) = dfa {
                for (written, product) in &mut products {
                    let dfa = if written.is_empty() { dfa.clone() } else { dfa.clone().without_first(b'-') };
                    let written = format!("{}{written}", encoding.open());
                    let state = product.start(&dfa, &mut states, ())?;
                    of_range.extend(state.map(|state| Start { state, written }));
                }
            }
            starts.push(of_range);
        }
        let borders = [encoding.open(), encoding.close()];
        let is_border = |text: &str| borders.iter().any(|border| !border.is_empty() && text.contains(border));
        let texts = tokenizer.vocabulary().into_iter().map(|(text, id)| {
            let text = with_white_space(&text);
            (id, TokenText { is_inside: !is_border(&text), text })
        });
        Ok(SlotTokens { encoding, states, starts, texts: texts.collect() })
    }

    /// For each range, the smallest spelling for each number of FREE tokens and length, without the opening and closing characters.
    pub(super) fn spellings(&self) -> Vec<Spellings> {
        let starts = self.starts.iter().flatten();
        let mut order: Vec<StateId> = starts.flat_map(|start| self.states.reachable(start.state)).collect();
        // A state is made after the states that it leads to, so its number is larger.
        order.sort_unstable();
        order.dedup();
        let mut ways: BTreeMap<StateId, Spellings> = BTreeMap::new();
        for id in order {
            let node = self.states.node(id);
            let mut all = Spellings::new();
            if node.end.is_some() {
                keep(&mut all, 0, String::new());
            }
            for (token, then) in &node.edges {
                let Some(TokenText { text, is_inside }) = self.texts.get(token) else { continue };
                for ((tokens, _), tail) in &ways[then] {
                    keep(&mut all, tokens + u16::from(*is_inside), format!("{text}{tail}"));
                }
            }
            ways.insert(id, all);
        }
        let of_range = |starts: &Vec<Start>| {
            let mut all = Spellings::new();
            for start in starts {
                for ((tokens, _), text) in &ways[&start.state] {
                    let slot = format!("{}{text}", start.written);
                    let inside = slot.strip_prefix(self.encoding.open()).unwrap_or(&slot);
                    let inside = inside.strip_suffix(self.encoding.close()).unwrap_or(inside);
                    keep(&mut all, *tokens, inside.to_owned());
                }
            }
            all
        };
        self.starts.iter().map(of_range).collect()
    }

    /// Returns whether exactly one path of the largest range spells `inside`, and has `tokens` FREE tokens.
    pub(super) fn takes(&self, inside: &str, tokens: u16) -> bool {
        let whole = format!("{}{inside}{}", self.encoding.open(), self.encoding.close());
        let mut found = Vec::new();
        for start in self.starts.last().into_iter().flatten() {
            let Some(rest) = whole.strip_prefix(&start.written) else { continue };
            self.paths(start.state, rest, 0, &mut found);
        }
        found == [tokens]
    }

    /// Adds the number of FREE tokens of each path from a state that spells `rest`, without the closing of the slot.
    fn paths(&self, state: StateId, rest: &str, tokens: u16, found: &mut Vec<u16>) {
        let node = self.states.node(state);
        if node.end.is_some() && (rest.is_empty() || rest == self.encoding.close()) {
            found.push(tokens);
        }
        for (token, then) in &node.edges {
            let Some(TokenText { text, is_inside }) = self.texts.get(token) else { continue };
            if let Some(rest) = rest.strip_prefix(&**text) {
                self.paths(*then, rest, tokens + u16::from(*is_inside), found);
            }
        }
    }
}
