//! The one way to make a constraint: a kind and a tokenizer give a processor, a processor and a skeleton a constraint.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::automaton::{AnswerForm, AutomatonProcessor};
use super::placeholder::Placeholder;
use super::position::{FreeSets, PositionTemplate};
use super::template::Template;
use super::truncating::Truncating;
use super::vocabulary::NumberTokens;
use super::{Constraint, DeviceRule, Mask, State};
use crate::encoding::Encoding;
use crate::error::{Error, Result};
use crate::parameter;
use crate::text::skeleton::{Spelling, spelling_conflict};
use crate::tokenizer::Tokenizer;

/// Which logit processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessorKind {
    /// No processor: everything is allowed.
    None,
    /// The users' 2.1: FREE positions block brackets and tags.
    Generic,
    /// The users' Qwen 3.8: as generic, without malformed pieces of numbers; lookahead 4.
    Qwen38,
    /// The users' Qwen 3.9: as 3.8, with lookahead 2.
    Qwen39,
    /// The users' Qwen 4.0: as 3.9, without any token that holds one of `[ ] @ +`.
    Targeted,
    /// The users' Qwen 4.3: well-formed pieces of numbers and nothing else.
    Allowlist,
    /// The users' proposal: as the allowlist, but a complete coordinate ends its block at once.
    Truncating,
    /// Legal texts in canonical tokens and nothing else.
    Automaton,
}

impl ProcessorKind {
    /// All kinds, in the order of reports.
    pub const ALL: [ProcessorKind; 8] = [
        ProcessorKind::None,
        ProcessorKind::Generic,
        ProcessorKind::Qwen38,
        ProcessorKind::Qwen39,
        ProcessorKind::Targeted,
        ProcessorKind::Allowlist,
        ProcessorKind::Truncating,
        ProcessorKind::Automaton,
    ];

    /// As it is written on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            ProcessorKind::None => "none",
            ProcessorKind::Generic => "generic",
            ProcessorKind::Qwen38 => "qwen38",
            ProcessorKind::Qwen39 => "qwen39",
            ProcessorKind::Targeted => "targeted",
            ProcessorKind::Allowlist => "allowlist",
            ProcessorKind::Truncating => "truncating",
            ProcessorKind::Automaton => "automaton",
        }
    }

    /// Whether it needs a placeholder.
    pub fn takes_placeholder(self) -> bool {
        !matches!(self, ProcessorKind::None | ProcessorKind::Automaton)
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
            Error::parameter(
                parameter::LP,
                format!("there is no `{name}`"),
                format!("give {}", names.join(", ")),
            )
        })
    }
}

/// The special tokens that a processor has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Specials {
    /// Ends the text.
    pub eos: u32,
    /// BOS, PAD and other ends: blocked in FREE positions.
    pub others: Vec<u32>,
}

impl Specials {
    /// EOS and the others.
    pub fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.others.iter().copied().chain([self.eos])
    }
}

impl From<u32> for Specials {
    fn from(eos: u32) -> Self {
        Specials { eos, others: Vec::new() }
    }
}

/// A logit processor for one tokenizer, dialect and placeholder; makes the constraints of molecules, on any thread. It owns what
/// it needs, the tokenizer too, so that it can live anywhere.
pub struct LogitProcessor {
    kind: ProcessorKind,
    tokenizer: Arc<Tokenizer>,
    dialect: Encoding,
    eos: u32,
    spelling: Option<Spelling>,
    form: AnswerForm,
    way: Way,
}

/// What is shared by all molecules.
enum Way {
    None,
    Position(Arc<FreeSets>, Placeholder),
    Truncating(Arc<FreeSets>, Placeholder, Arc<NumberTokens>),
    Automaton(Box<AutomatonProcessor>),
}

impl LogitProcessor {
    /// Prepares a processor. `placeholder` is for the kinds that take one.
    ///
    /// # Errors
    /// If a kind that takes a placeholder has none, an id is not in the vocabulary, or the tokenizer is none that the
    /// automaton can be proved for.
    pub fn new(
        kind: ProcessorKind,
        tokenizer: impl Into<Arc<Tokenizer>>,
        dialect: Encoding,
        placeholder: Option<&Placeholder>,
        specials: impl Into<Specials>,
    ) -> Result<Self> {
        let (tokenizer, specials) = (tokenizer.into(), specials.into());
        // Looked at only for the kinds that take one: the others ignore what is given.
        let placeholder = || {
            let problem = format!("the processor `{}` needs one", kind.name());
            let remedy = "give three numbers, for example 0.0000,0.0000,0.0000";
            let given =
                placeholder.ok_or_else(|| Error::parameter(parameter::PLACEHOLDER, problem, remedy))?;
            given.check(dialect)?;
            Ok::<_, Error>(given.clone())
        };
        let way = match (kind, FreeSets::new(kind, &tokenizer, &specials)?) {
            (ProcessorKind::Automaton, _) => {
                Way::Automaton(Box::new(AutomatonProcessor::new(tokenizer.clone(), dialect, specials.eos)?))
            }
            // Beside the automaton only `none` has no sets.
            (_, None) => Way::None,
            (ProcessorKind::Truncating, Some(sets)) => {
                let numbers = Arc::new(NumberTokens::from_tokenizer(&tokenizer));
                Way::Truncating(Arc::new(sets), placeholder()?, numbers)
            }
            (_, Some(sets)) => Way::Position(Arc::new(sets), placeholder()?),
        };
        let (eos, form) = (specials.eos, AnswerForm::default());
        Ok(LogitProcessor { kind, tokenizer, dialect, eos, spelling: None, form, way })
    }

    /// This processor for answers of several conformers, or behind a prompt that opens the first.
    #[must_use]
    pub fn answering(mut self, form: AnswerForm) -> Self {
        self.form = form;
        if let Way::Automaton(processor) = self.way {
            self.way = Way::Automaton(Box::new(processor.answering(form)));
        }
        self
    }

    /// Refuses skeletons that are not spelled as the corpus is, which the model never saw.
    pub fn spelled_as(mut self, corpus: Spelling) -> Self {
        self.spelling = Some(corpus);
        self
    }

    /// Which processor it is.
    pub fn kind(&self) -> ProcessorKind {
        self.kind
    }

    /// The automaton, if that is what it is.
    pub fn automaton(&self) -> Option<&AutomatonProcessor> {
        match &self.way {
            Way::Automaton(processor) => Some(processor),
            _ => None,
        }
    }

    /// The constraint of one molecule, given its skeleton as [`crate::text::skeleton::from_smiles`] writes it.
    ///
    /// # Errors
    /// If the skeleton is none, is spelled unlike the corpus, or its text cannot be tokenised as the processor needs.
    pub fn constraint(&self, skeleton: &str) -> Result<Arc<dyn Constraint>> {
        if let Some(conflict) =
            self.spelling.and_then(|c| spelling_conflict(Spelling::from_skeleton(skeleton), c))
        {
            let remedy = "write the skeleton with the program that wrote the training text";
            return Err(Error::input(crate::error::excerpt(skeleton.as_bytes()), conflict, remedy));
        }
        // The model never saw another spelling, so its texts would be judged for the prompt's fault.
        let eos = self.eos;
        let template = |sets: &FreeSets, placeholder| {
            let answer = (self.dialect, self.form);
            let template = Template::new(&self.tokenizer, placeholder, sets.lookahead, skeleton, answer);
            template.map(|template| template.ending_in(eos))
        };
        Ok(match &self.way {
            Way::None => Arc::new(Unconstrained { eos }),
            Way::Position(sets, placeholder) => {
                let template = template(sets, placeholder)?;
                Arc::new(PositionTemplate { template, sets: sets.clone(), eos })
            }
            Way::Truncating(sets, placeholder, numbers) => Arc::new(Truncating {
                template: template(sets, placeholder)?,
                sets: sets.clone(),
                numbers: numbers.clone(),
                dialect: self.dialect,
                eos,
            }),
            Way::Automaton(processor) => Arc::new(processor.molecule(skeleton)?),
        })
    }
}

/// No processor.
struct Unconstrained {
    eos: u32,
}

impl Constraint for Unconstrained {
    fn start(&self) -> State {
        State::default()
    }

    fn mask(&self, _state: &State) -> Mask<'_> {
        Mask::Any
    }

    fn advance(&self, state: &mut State, _token: u32) {
        state.at += 1;
    }

    fn is_over(&self, _state: &State, token: u32) -> bool {
        token == self.eos
    }

    fn device_rule(&self) -> DeviceRule<'_> {
        DeviceRule::Any { eos: self.eos }
    }
}
