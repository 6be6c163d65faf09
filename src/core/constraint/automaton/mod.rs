//! The automaton: it accepts exactly the legal texts in their canonical tokens.
//!
//! A legal answer is the molecule's text with a coordinate in every block. Its *canonical* tokens are those that the tokenizer
//! produces for prompt and answer as one text ([`Tokenizer::answer_tokens`]). So a model under this processor never reads a token
//! sequence that it did not see in training.
//!
//! - [`SlotTokens`] has the token language of slots, once per tokenizer and encoding, from the encoding's automaton over bytes and the
//!   encoder. That of skeletons ([`super::skeleton`]) has it too.
//! - [`segment`] holds the text between two blocks, with the brackets and signs that merge with it (`>[`, `]<-`): once per distinct
//!   text, shared by all molecules. `molecule` combines blocks and segments for one molecule.
//! - `table` exports both as plain tables, `device_table` those of many molecules for a device.
//! - [`verify`] compares the automaton with the encoder, both ways, before a tokenizer is accepted.
//!
//! # Why it is exact
//! Two kinds of tokenizer are accepted. In the first kind, no token that a legal text can hold joins a digit with a character that
//! may stand beside it in a slot ([`crate::tokenizer::boundaries`] says which tokens count, and why a text falls apart there). So an
//! answer is a sequence of parts that are tokenised independently. The insides of slots have the tokens of the product. The text
//! from the last digit of a slot to the first digit of the next depends on the skeleton and on whether the next number has a sign;
//! it is tokenised when it is first seen. If the tags are not tokens, the first part extends into the prompt, back to the preceding
//! closing tag, which must fall apart. Unigram models must be decided: no part may have two segmentations with equal scores,
//! because rounding, and so the preceding text, would choose between them.
//!
//! In the second kind, slots are cut out of the text whole: as added tokens, or by drift's extended tokenizers. These cut slots
//! within their range into pieces that depend only on signs, points and numbers of digits. The model is asked for the tokens of
//! every text of each piece. All other slots are tokenised by the base tokenizer, which is of the first kind.
//!
//! One assumption is not proved, but checked on random texts, both ways: that the pre-tokenizer, a regular expression, treats a part
//! inside a text as it treats the part alone.

mod device_table;
mod learn;
mod molecule;
mod numbering;
mod segment;
mod table;
mod verify;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use learn::refuse;
use numbering::Numbering;
use segment::{KnownExits, Segment, Segments};

pub use device_table::DeviceTable;
pub use molecule::MoleculeAutomaton;
pub(crate) use table::TEXT_OVER;
pub use table::{BlockTable, Edges, MoleculeTable, SegmentTable};

use crate::encoding::language::{self, Languages, StateId};
use crate::encoding::{Encoding, Slots};
use crate::error::{Error, Result};
use crate::text::skeleton::placed;
use crate::text::{CONFORMER_CLOSE, CONFORMER_OPEN, SMILES_CLOSE};
use crate::tokenizer::{
    AMBIGUOUS, BUILT_IN_SKELETONS, SOME_PROMPT, SlotMode as Mode, SlotTokens, TokenSpellings, Tokenizer,
};

/// The target of an edge that ends a block, before its [`Mode`] is added: the two largest numbers, which no state has.
const EXIT: u32 = u32::MAX - 1;

/// The slots of an encoding as tokens of a tokenizer. States are numbered from 0.
pub struct Automaton {
    encoding: Encoding,
    states: Vec<CompactState>,
    /// The first state of a block, by how the block is entered: the remaining tokens of the text before it, and its mode.
    entries: HashMap<Entry, u32>,
    /// The modes in which blocks may be tokenised.
    modes: Vec<Mode>,
    /// An example of an isolated block; empty if there is none.
    isolated_block: String,
    /// The tokens in texts.
    spellings: TokenSpellings,
    /// The number of states of a block that begins as usual, without those for unusual borders.
    size: usize,
    /// Tokens of one character that are also bytes of the vocabulary, with the character ([`mistaken`]).
    mistaken: BTreeMap<u32, char>,
    /// The result of [`Automaton::table`], built on first use.
    table: OnceLock<Arc<BlockTable>>,
}

/// The ways to enter a block from one place: by mode, the remaining tokens of the opening bracket and the sign; sorted.
type Entry = Vec<(Mode, Vec<u32>)>;

/// A state. Ids are sorted.
struct CompactState {
    ids: Box<[u32]>,
    targets: Box<[u32]>,
    /// If the block may end here: its mode, and the index of this state among all states where a block may end.
    exit: Option<(Mode, usize)>,
}

impl Automaton {
    /// Builds the automaton of a tokenizer.
    ///
    /// # Errors
    /// If the automaton would not be exact for this kind of tokenizer. The message names the tokenizer.
    pub fn new(tokenizer: &Tokenizer, encoding: Encoding) -> Result<Self> {
        tokenizer.writes(encoding, BUILT_IN_SKELETONS)?;
        let spellings = TokenSpellings::learn(tokenizer)?.map_err(|why| refuse(tokenizer, why))?;
        let learned = SlotTokens::learn(tokenizer, &spellings, encoding)?;
        let SlotTokens { mut states, plain, isolated, isolation, cuts } =
            learned.map_err(|why| refuse(tokenizer, why))?;
        // If the tags are not tokens, the answer's first token may begin in the prompt. This tag keeps it from depending on the
        // molecule.
        let is_token = tokenizer.is_added(SMILES_CLOSE);
        if cuts.as_ref().is_some_and(|cuts| !is_token && !cuts.falls_apart(SMILES_CLOSE)) {
            let problem = format!("a token may reach over `{SMILES_CLOSE}` into the prompt");
            return Err(refuse(tokenizer, problem));
        }
        let starts = Starts { plain: plain.map(|plain| plain.start), isolated };
        let vocabulary = tokenizer.vocabulary();
        let id = |text: &str| vocabulary.get(text).copied();
        let minus = id("-").filter(|_| encoding.is_signed());
        let entries = entries(&mut states, &starts, encoding, minus, &id)
            .ok_or_else(|| refuse(tokenizer, AMBIGUOUS))?;
        // Usually the sign of x is a token of its own.
        let signed = minus.map(|minus| vec![(Mode::Plain, vec![]), (Mode::Plain, vec![minus])]);
        let signed = signed.and_then(|entry| entries.get(&entry).copied());
        // States of a usual block come first, so that `size` counts only them.
        let mut numbering = Numbering::default();
        numbering.add(&states, starts.plain.into_iter().chain(signed).chain(isolated).collect());
        let size = numbering.order.len() + 1;
        // A hash map has no fixed order, but tables must be the same in every run.
        let mut all: Vec<StateId> = entries.values().copied().collect();
        all.sort_unstable();
        numbering.add(&states, all);
        let modes = [starts.plain.map(|_| Mode::Plain), isolated.map(|_| Mode::Isolated)];
        Ok(Automaton {
            encoding,
            states: numbering.compact(&states),
            entries: entries.into_iter().map(|(entry, id)| (entry, numbering.target(&states, id))).collect(),
            modes: modes.into_iter().flatten().collect(),
            isolated_block: isolation.map(|isolation| isolation.sample).unwrap_or_default(),
            spellings,
            size,
            mistaken: mistaken(&id),
            table: OnceLock::new(),
        })
    }

    /// Returns the number of states of the coordinate grammar, including the one behind a block.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the number of different tokens that are legal somewhere in a block.
    pub fn alphabet(&self) -> usize {
        self.states.iter().flat_map(|state| &state.ids).collect::<std::collections::BTreeSet<_>>().len()
    }
}

/// A sequence of tokens, and the state that it leads to.
type Path = language::Path<u32>;

/// The states where slots begin.
struct Starts {
    /// Of plain slots, behind the opening character and the sign; `None` if every slot is isolated.
    plain: Option<StateId>,
    /// Of isolated slots, before the opening character.
    isolated: Option<StateId>,
}

/// Returns the states for every way to enter a slot. If a sign, or the opening character of an isolated slot, is a token of its own, the
/// text before has two possible ends, and one of them continues.
fn entries(
    states: &mut Languages<u32, Mode>,
    starts: &Starts,
    encoding: Encoding,
    minus: Option<u32>,
    id: &dyn Fn(&str) -> Option<u32>,
) -> Option<HashMap<Entry, StateId>> {
    let mut plain: Vec<Vec<Vec<u32>>> = vec![vec![vec![]]];
    plain.extend(minus.map(|minus| vec![vec![], vec![minus]]));
    let mut entries = HashMap::new();
    if let Some(start) = starts.plain {
        for rests in plain {
            let paths: Vec<Path> = rests.iter().map(|rest| (rest.clone(), start)).collect();
            let entry = rests.into_iter().map(|rest| (Mode::Plain, rest)).collect();
            entries.insert(entry, states.trie(paths)?);
        }
    }
    let Some(isolated) = starts.isolated else { return Some(entries) };
    let opening = encoding.open();
    let open = id(opening).map(|open| vec![open]);
    let signed = [
        id(&format!("{opening}-")).map(|token| vec![token]),
        id(opening).zip(minus).map(|(a, b)| vec![a, b]),
    ];
    let unsigned: [Option<Vec<u32>>; 2] = [None, open];
    for unsigned in &unsigned {
        for signed in [None].iter().chain(&signed) {
            let rests: Vec<&Vec<u32>> = unsigned.iter().chain(signed).collect();
            // Without plain slots, only the isolated way remains, which begins before the opening character.
            let Some(start) = starts.plain.or(if rests.is_empty() { Some(isolated) } else { None }) else {
                continue;
            };
            let mut paths: Vec<Path> = rests.iter().map(|rest| ((*rest).clone(), start)).collect();
            paths.push((Vec::new(), isolated));
            let mut entry: Entry = rests.into_iter().map(|rest| (Mode::Plain, rest.clone())).collect();
            entry.push((Mode::Isolated, Vec::new()));
            entry.sort();
            entries.insert(entry, states.trie(paths)?);
        }
    }
    Some(entries)
}

/// Returns the tokens of one character of ASCII that have a token of the same byte with a smaller id, `<0x43>` beside `C`, as
/// vocabularies with byte fallback have. An engine that finds a token by its bytes finds the other one. These vocabularies write `▁` for
/// a space.
pub(super) fn mistaken(id: &dyn Fn(&str) -> Option<u32>) -> BTreeMap<u32, char> {
    let characters = (' '..='~').chain(['\t', '\n', '\r']);
    characters
        .filter_map(|c| {
            let spelled = if c == ' ' { '\u{2581}' } else { c };
            let own = id(&spelled.to_string())?;
            (id(&format!("<0x{:02X}>", c as u32))? < own).then_some((own, c))
        })
        .collect()
}

/// The automaton together with the texts between slots, for one tokenizer and encoding.
pub struct AutomatonProcessor {
    tokenizer: Arc<Tokenizer>,
    automaton: Arc<Automaton>,
    segments: RwLock<HashMap<Box<str>, Arc<Segment>>>,
    exits: KnownExits,
    eos: u32,
    pub(super) form: AnswerForm,
    /// The end of prompts, before the tag that opens a conformer; the first token of an answer may depend on it.
    prompt_end: Box<str>,
}

/// The layout of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerForm {
    /// The number of conformers of the molecule, one after another, each between its tags; at least one.
    pub conformers: usize,
    /// Whether the prompt ends with the tag that opens the first conformer.
    pub opened: bool,
}

impl Default for AnswerForm {
    fn default() -> Self {
        AnswerForm { conformers: 1, opened: false }
    }
}

/// Markers at the ends of a segment's key. A key begins with the answer's start (before or behind the opening tag) or with a slot. It
/// ends with a slot or with the answer's end.
const BEGIN: char = '^';
const OPENED: char = '*';
const BEHIND_SLOT: char = '>';
const BEFORE_SLOT: char = '<';
const END: char = '$';

impl AutomatonProcessor {
    /// Builds the automaton and compares it with the encoder on random texts.
    ///
    /// # Errors
    /// If the automaton would not be exact for this kind of tokenizer, or a comparison fails.
    pub fn new(tokenizer: Arc<Tokenizer>, encoding: Encoding, eos: u32) -> Result<Self> {
        let automaton = Arc::new(Automaton::new(&tokenizer, encoding)?);
        let processor = AutomatonProcessor {
            tokenizer,
            automaton,
            segments: RwLock::default(),
            exits: KnownExits::default(),
            eos,
            form: AnswerForm::default(),
            prompt_end: SOME_PROMPT.into(),
        };
        verify::verify(&processor, encoding)?;
        Ok(processor)
    }

    /// This processor behind other prompts than `[SMILES]…[/SMILES]`: those of a chat, which end in `<|im_start|>assistant\n` before
    /// the tag that opens a conformer.
    ///
    /// # Errors
    /// If its texts behind such a prompt are not those of the tokenizer.
    pub fn behind(mut self, prompt_end: &str) -> Result<Self> {
        self.prompt_end = prompt_end.into();
        self.segments = RwLock::default();
        verify::behind_prompt(&self)?;
        Ok(self)
    }

    /// This processor for another layout of answers: with several conformers, or behind a prompt that opens the first one.
    #[must_use]
    pub fn answering(mut self, form: AnswerForm) -> Self {
        self.form = form;
        self
    }

    /// Returns whether answers stand behind `[SMILES]…[/SMILES]`, and not behind a prompt of [`AutomatonProcessor::behind`].
    pub fn follows_smiles(&self) -> bool {
        &*self.prompt_end == SOME_PROMPT
    }

    /// Returns the layout of the answers.
    pub fn form(&self) -> AnswerForm {
        self.form
    }

    /// Returns the coordinate grammar.
    pub fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// Returns the constraint of one molecule.
    ///
    /// # Errors
    /// If `skeleton` is not a skeleton, or one of its texts has no known tokenisation.
    pub fn molecule(&self, skeleton: &str) -> Result<MoleculeAutomaton> {
        let skeleton = placed(skeleton, self.automaton.encoding.slots());
        let pieces: Vec<&str> = skeleton.split("<>").collect();
        let blocks = pieces.len() - 1;
        // Slots behind symbols may follow any character, so the text before them is not checked.
        let atoms_alone = self.automaton.encoding.slots() == Slots::Atoms;
        if blocks == 0 || (atoms_alone && pieces[..blocks].iter().any(|piece| !piece.ends_with(']'))) {
            let problem = format!("{} is not a skeleton", crate::error::excerpt(skeleton.as_bytes()));
            return Err(Error::input("skeleton", problem, "give atoms with empty blocks: [C]<>[O]<>"));
        }
        let conformers = self.form.conformers.max(1);
        let mut segments = Vec::with_capacity(pieces.len() * conformers);
        let mut key = String::new();
        for conformer in 0..conformers {
            for (at, piece) in pieces.iter().enumerate() {
                key.clear();
                match (at, conformer) {
                    (0, 0) if self.form.opened => key.push(OPENED),
                    (0, 0) => key.push(BEGIN),
                    // The end of one conformer and the beginning of the next form one text between two slots.
                    (0, _) => continue,
                    _ => key.push(BEHIND_SLOT),
                }
                key.push_str(piece);
                match (at == blocks, conformer + 1 == conformers) {
                    (true, true) => key.push(END),
                    (true, false) => {
                        key.extend([CONFORMER_CLOSE, CONFORMER_OPEN, pieces[0]]);
                        key.push(BEFORE_SLOT);
                    }
                    _ => key.push(BEFORE_SLOT),
                }
                segments.push(self.segment(&key)?);
            }
        }
        Ok(MoleculeAutomaton { automaton: self.automaton.clone(), segments, eos: self.eos })
    }

    /// Returns the segment for a text between blocks, built on first use.
    fn segment(&self, key: &str) -> Result<Arc<Segment>> {
        // A lock is poisoned only if another thread panicked while holding it. The map inside is still intact.
        if let Some(known) = self.segments.read().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Ok(known.clone());
        }
        let AutomatonProcessor { tokenizer, automaton, exits, eos, prompt_end, .. } = self;
        let segment = Arc::new(Segments { tokenizer, automaton, exits, eos: *eos, prompt_end }.make(key)?);
        // Another thread may have built it meanwhile. All take the first one, so that equal segments are shared.
        let mut known = self.segments.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(key.into()).or_insert(segment).clone())
    }
}
