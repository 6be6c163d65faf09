//! Builds constraints: a kind and a tokenizer give a processor, a processor and a skeleton give a constraint.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::automaton::{AnswerForm, AutomatonProcessor};
use super::geometry::GeometryProcessor;
use super::placeholder::Placeholder;
use super::position::{FreeSets, PositionTemplate};
use super::template::Template;
use super::truncating::TruncatingTemplate;
use super::vocabulary::NumberTokens;
use super::{Constraint, DeviceRule, Mask, State};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::geometry::GeometryStrength;
use crate::parameter;
use crate::text::skeleton::{Spelling, spelling_conflict};
use crate::text::{self, CONFORMER_CLOSE};
use crate::tokenizer::Tokenizer;

/// The kind of logit processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessorKind {
    /// No processor: every token is allowed.
    None,
    /// The users' 2.1: FREE positions block brackets and tags.
    Generic,
    /// The users' Qwen 3.8: like generic, but also without malformed pieces of numbers; lookahead 4.
    Qwen38,
    /// The users' Qwen 3.9: like 3.8, with lookahead 2.
    Qwen39,
    /// The users' Qwen 4.0: like 3.9, but also without any token that contains one of `[ ] @ +`.
    Targeted,
    /// The users' Qwen 4.3: only well-formed pieces of numbers.
    Allowlist,
    /// The users' proposal: like the allowlist, but a complete coordinate ends its block at once.
    Truncating,
    /// Exactly the legal texts in canonical tokens.
    Automaton,
    /// The automaton, and only coordinates that the molecule can have beside those written before.
    Geometry,
}

crate::named!(ProcessorKind {
    None: "none",
    Generic: "generic",
    Qwen38: "qwen38",
    Qwen39: "qwen39",
    Targeted: "targeted",
    Allowlist: "allowlist",
    Truncating: "truncating",
    Automaton: "automaton",
    Geometry: "geometry"
});

impl ProcessorKind {
    /// Returns whether it needs a placeholder.
    pub fn takes_placeholder(self) -> bool {
        !matches!(self, ProcessorKind::None | ProcessorKind::Automaton | ProcessorKind::Geometry)
    }
}

impl std::fmt::Display for ProcessorKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for ProcessorKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        ProcessorKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names: Vec<&str> = ProcessorKind::ALL.iter().map(|kind| kind.name()).collect();
            let remedy = format!("give {}", names.join(", "));
            Error::parameter(parameter::LP, format!("there is no `{name}`"), remedy)
        })
    }
}

/// The special tokens that a processor needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specials {
    /// The token that ends the text.
    pub eos: u32,
    /// Other tokens that end a text where nothing is masked.
    pub ends: Vec<u32>,
    /// BOS, PAD, and end tokens that do not end a text here; they are blocked in FREE positions like the others.
    pub others: Vec<u32>,
}

impl Specials {
    /// Returns all of them.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.others.iter().chain(&self.ends).copied().chain([self.eos])
    }
}

impl From<u32> for Specials {
    fn from(eos: u32) -> Self {
        Specials { eos, ends: Vec::new(), others: Vec::new() }
    }
}

/// A logit processor for one tokenizer, encoding and placeholder. It makes the constraints of molecules, on any thread. It owns all
/// its data, including the tokenizer, so it has no lifetime.
pub struct LogitProcessor {
    kind: ProcessorKind,
    tokenizer: Arc<Tokenizer>,
    encoding: Encoding,
    eos: u32,
    /// `eos`, and the other tokens that end a text where nothing is masked.
    ends: Arc<[u32]>,
    spelling: Option<Spelling>,
    form: AnswerForm,
    way: Strategy,
}

/// The data that all molecules share.
enum Strategy {
    None,
    Position(Arc<FreeSets>, Placeholder),
    Truncating(Arc<FreeSets>, Placeholder, Arc<NumberTokens>),
    Automaton(Box<AutomatonProcessor>),
    Geometry(Box<GeometryProcessor>),
}

impl LogitProcessor {
    /// Prepares a processor. `placeholder` is used only by the kinds that take one.
    ///
    /// # Errors
    /// If a kind that takes a placeholder has none or an unsuitable one, a tag cannot be encoded, or the automaton cannot be proved
    /// for this tokenizer.
    pub fn new(
        kind: ProcessorKind,
        tokenizer: impl Into<Arc<Tokenizer>>,
        encoding: Encoding,
        placeholder: Option<&Placeholder>,
        specials: impl Into<Specials>,
    ) -> Result<Self> {
        let (tokenizer, specials) = (tokenizer.into(), specials.into());
        let way = match (kind, FreeSets::new(kind, &tokenizer, &specials)?) {
            (ProcessorKind::Automaton, _) => Strategy::Automaton(Box::new(AutomatonProcessor::new(
                tokenizer.clone(),
                encoding,
                specials.eos,
            )?)),
            (ProcessorKind::Geometry, _) => {
                let automaton = AutomatonProcessor::new(tokenizer.clone(), encoding, specials.eos)?;
                Strategy::Geometry(Box::new(GeometryProcessor::new(automaton, &tokenizer, encoding)?))
            }
            // Besides these, only `none` has no sets.
            (_, None) => Strategy::None,
            (ProcessorKind::Truncating, Some(sets)) => {
                let numbers = Arc::new(NumberTokens::from_tokenizer(&tokenizer));
                Strategy::Truncating(Arc::new(sets), needed(placeholder, kind, encoding)?, numbers)
            }
            (_, Some(sets)) => Strategy::Position(Arc::new(sets), needed(placeholder, kind, encoding)?),
        };
        let (eos, form) = (specials.eos, AnswerForm::default());
        let ends = std::iter::once(eos).chain(specials.ends).collect();
        Ok(LogitProcessor { kind, tokenizer, encoding, eos, ends, spelling: None, form, way })
    }

    /// This processor for answers with several conformers, or behind a prompt that opens the first one.
    #[must_use]
    pub fn answering(mut self, form: AnswerForm) -> Self {
        self.form = form;
        match &mut self.way {
            Strategy::Automaton(processor) => processor.form = form,
            Strategy::Geometry(processor) => processor.automaton.form = form,
            _ => {}
        }
        self
    }

    /// This processor behind prompts that end otherwise than in `[/SMILES]`, if it is an automaton ([`AutomatonProcessor::behind`]).
    ///
    /// # Errors
    /// As [`AutomatonProcessor::behind`].
    pub fn behind(mut self, prompt_end: &str) -> Result<Self> {
        self.way = match self.way {
            Strategy::Automaton(processor) => Strategy::Automaton(Box::new(processor.behind(prompt_end)?)),
            Strategy::Geometry(mut processor) => {
                processor.automaton = processor.automaton.behind(prompt_end)?;
                Strategy::Geometry(processor)
            }
            other => other,
        };
        Ok(self)
    }

    /// This processor with another strength of the geometry, if it is of that kind.
    #[must_use]
    pub fn of_strength(mut self, strength: GeometryStrength) -> Self {
        if let Strategy::Geometry(processor) = &mut self.way {
            processor.strength = strength;
        }
        self
    }

    /// Refuses skeletons that are spelled differently from the corpus, because the model never saw their spelling.
    pub fn spelled_as(mut self, corpus: Spelling) -> Self {
        self.spelling = Some(corpus);
        self
    }

    /// Returns the kind of this processor.
    pub fn kind(&self) -> ProcessorKind {
        self.kind
    }

    /// Returns the automaton, if the processor is one or has one.
    pub fn automaton(&self) -> Option<&AutomatonProcessor> {
        match &self.way {
            Strategy::Automaton(processor) => Some(processor),
            Strategy::Geometry(processor) => Some(&processor.automaton),
            _ => None,
        }
    }

    /// Returns the constraint of one molecule, given its skeleton as written by [`crate::text::skeleton::from_smiles`].
    ///
    /// # Errors
    /// If the text is not a skeleton, is spelled differently from the corpus, or cannot be tokenised as the processor needs.
    pub fn constraint(&self, skeleton: &str) -> Result<Arc<dyn Constraint>> {
        self.constraint_of(skeleton, &text::skeleton::smiles(skeleton))
    }

    /// Returns the constraint of one molecule, like [`LogitProcessor::constraint`], given its SMILES too.
    ///
    /// # Errors
    /// As [`LogitProcessor::constraint`]; and if the geometry of the molecule is needed, and RDKit would refuse the SMILES.
    pub fn constraint_of(&self, skeleton: &str, smiles: &str) -> Result<Arc<dyn Constraint>> {
        if let Some(conflict) =
            self.spelling.and_then(|c| spelling_conflict(Spelling::from_skeleton(skeleton), c))
        {
            // The model never saw another spelling, so its texts would be judged for a fault of the prompt.
            let remedy = "write the skeleton with the program that wrote the training text";
            return Err(Error::input(crate::error::excerpt(skeleton.as_bytes()), conflict, remedy));
        }
        let eos = self.eos;
        Ok(match &self.way {
            Strategy::None => {
                let ends = self.ends.clone();
                let tag = self.tokenizer.vocabulary_id(CONFORMER_CLOSE).filter(|tag| ends.contains(tag));
                Arc::new(NoConstraint { ends, tag, conformers: self.form.conformers as u32 })
            }
            Strategy::Position(sets, placeholder) => {
                let template = self.template(sets, placeholder, skeleton)?;
                Arc::new(PositionTemplate { template, sets: sets.clone(), eos })
            }
            Strategy::Truncating(sets, placeholder, numbers) => Arc::new(TruncatingTemplate {
                template: self.template(sets, placeholder, skeleton)?,
                sets: sets.clone(),
                numbers: numbers.clone(),
                encoding: self.encoding,
                eos,
            }),
            Strategy::Automaton(processor) => Arc::new(processor.molecule(skeleton)?),
            Strategy::Geometry(processor) => Arc::new(processor.molecule(skeleton, smiles)?),
        })
    }

    fn template(&self, sets: &FreeSets, placeholder: &Placeholder, skeleton: &str) -> Result<Template> {
        let LogitProcessor { tokenizer, encoding, form, eos, .. } = self;
        let template = Template::new(tokenizer, placeholder, sets.lookahead, skeleton, *encoding, *form)?;
        Ok(template.ending_in(*eos))
    }
}

/// Returns the placeholder of a processor that takes one.
fn needed(placeholder: Option<&Placeholder>, kind: ProcessorKind, encoding: Encoding) -> Result<Placeholder> {
    let Some(placeholder) = placeholder else {
        let problem = format!("the processor `{}` needs one", kind.name());
        let remedy = "give three numbers, for example 0.0000,0.0000,0.0000";
        return Err(Error::parameter(parameter::PLACEHOLDER, problem, remedy));
    };
    placeholder.check(encoding)?;
    Ok(placeholder.clone())
}

/// No processor.
struct NoConstraint {
    /// The tokens that end a text.
    ends: Arc<[u32]>,
    /// The tag that closes a conformer, if it is one of them.
    tag: Option<u32>,
    /// How many conformers a text has.
    conformers: u32,
}

impl Constraint for NoConstraint {
    fn start(&self) -> State {
        State::default()
    }

    fn mask(&self, _state: &State) -> Mask<'_> {
        Mask::Any
    }

    fn advance(&self, state: &mut State, token: u32) {
        state.at += 1;
        state.inner += u32::from(Some(token) == self.tag);
    }

    fn is_over(&self, state: &State, token: u32) -> bool {
        match self.tag {
            Some(tag) if token == tag => self.ends.len() == 1 && state.inner + 1 >= self.conformers,
            _ => self.ends.contains(&token),
        }
    }

    fn is_complete(&self, state: &State) -> bool {
        // Beside other ends the tag is written, so that the text tells whether it was there.
        self.tag.is_some() && self.ends.len() > 1 && state.inner >= self.conformers
    }

    fn device_rule(&self) -> DeviceRule<'_> {
        match self.tag {
            Some(_) if self.ends.len() > 1 || self.conformers > 1 => DeviceRule::Host,
            _ => DeviceRule::Any { ends: &self.ends },
        }
    }
}
