//! Logit processors of one tokenizer, and the constraints of molecules.

use std::sync::Arc;

use drift::constraint::automaton::{AnswerForm, MoleculeAutomaton};
use drift::constraint::{Placeholder, Specials, State};
use drift::design::advice::logit_processor;
use drift::error::excerpt;
use drift::text::skeleton;
use drift::{Encoding, Error, LogitProcessor, Mask, ProcessorKind};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::completions::legal;
use crate::errors::{Class, raised};
use crate::tables::{spelled, tables};
use crate::tokenizer::Tokenizer;

/// A logit processor for one tokenizer. It makes the constraints of molecules, on any thread.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Processor {
    inner: LogitProcessor,
    pub(crate) tokenizer: Arc<drift::Tokenizer>,
    eos: u32,
    /// The name of the encoding, as given.
    pub(crate) encoding: String,
}

/// The encoding with a name, or from the JSON of its definition.
fn encoding_of(name: &str) -> PyResult<Encoding> {
    name.parse().map_err(|problem: String| Class::Drift.exception(format!("encoding: {problem}")))
}

/// The skeleton of a SMILES, spelled as the users' encoder spells it.
#[pyfunction]
pub(crate) fn skeleton_of(smiles: &str) -> PyResult<String> {
    let refuse = |problem: String| {
        let error = Error::input(excerpt(smiles.as_bytes()), problem, "give a SMILES with at least one atom");
        Class::Smiles.of()(error)
    };
    let skeleton = skeleton::from_smiles(smiles).map_err(|problem| refuse(problem.to_string()))?;
    match skeleton.contains("<>") {
        true => Ok(skeleton),
        false => Err(refuse("contains no atom".to_owned())),
    }
}

#[pymethods]
impl Processor {
    /// `kind` is one of none, generic, qwen38, qwen39, targeted, allowlist, truncating, automaton. `eos` ends a text. `others` are
    /// further end tokens and the token at the beginning of a text, which position templates forbid in numbers.
    #[new]
    #[pyo3(signature = (tokenizer, kind, dialect, eos, others=Vec::new(), placeholder=None, conformers=1, opened=false))]
    // One call from Python, with options as keyword arguments.
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        tokenizer: &Tokenizer,
        kind: &str,
        dialect: &str,
        eos: u32,
        others: Vec<u32>,
        placeholder: Option<&str>,
        conformers: usize,
        opened: bool,
    ) -> PyResult<Self> {
        let kind: ProcessorKind = kind.parse().map_err(raised)?;
        if kind == ProcessorKind::Geometry {
            let problem = "the processor `geometry` follows the coordinates of each text, which only drift's own engine does";
            return Err(raised(Error::parameter(drift::parameter::LP, problem, "give automaton")));
        }
        let encoding = encoding_of(dialect)?;
        let placeholder = placeholder.map(Placeholder::new).transpose().map_err(raised)?;
        let tokenizer = tokenizer.inner.clone();
        let specials = Specials { eos, others };
        let made = py.detach(|| logit_processor(kind, &tokenizer, encoding, placeholder.as_ref(), specials));
        let inner = made.map_err(|error| match error {
            Error::Input { .. } => Class::Tokenizer.of()(error),
            error => raised(error),
        })?;
        let inner = inner.answering(AnswerForm { conformers, opened });
        Ok(Processor { inner, tokenizer, eos, encoding: dialect.to_owned() })
    }

    /// The kind of the processor.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind().name()
    }

    /// The token that ends a text.
    #[getter]
    fn eos(&self) -> u32 {
        self.eos
    }

    /// The number of states of the grammar of one coordinate, and the number of tokens that are legal anywhere in it; None unless
    /// this is the automaton.
    #[getter]
    fn size(&self) -> Option<(usize, usize)> {
        let automaton = self.inner.automaton()?.automaton();
        Some((automaton.size(), automaton.alphabet()))
    }

    /// The constraint of one molecule, given by its SMILES. The spelling of the SMILES is kept.
    fn constraint(&self, py: Python<'_>, smiles: &str) -> PyResult<Constraint> {
        let skeleton = skeleton_of(smiles)?;
        let made = py.detach(|| self.of_skeleton(&skeleton));
        let (inner, molecule_automaton) = made.map_err(Class::Tokenizer.of())?;
        Ok(Constraint {
            inner,
            molecule_automaton,
            tokenizer: self.tokenizer.clone(),
            skeleton,
            eos: self.eos,
        })
    }

    /// The legal ids at every token of completions, one completion per SMILES, as offsets `[tokens + 1]` and ids; only for the
    /// automaton. After the end token `fillers` may follow.
    #[allow(clippy::type_complexity, reason = "tuples for Python")]
    fn legal<'py>(
        &self,
        py: Python<'py>,
        smiles: Vec<String>,
        completions: Vec<PyReadonlyArray1<'_, i64>>,
        fillers: Vec<i64>,
    ) -> PyResult<Vec<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>)>> {
        legal(self, py, &smiles, &completions, &fillers)
    }
}

/// A constraint, and the automaton behind it if there is one.
pub(crate) type Made = (Arc<dyn drift::Constraint>, Option<Arc<MoleculeAutomaton>>);

impl Processor {
    pub(crate) fn of_skeleton(&self, skeleton: &str) -> drift::Result<Made> {
        match self.inner.automaton() {
            Some(automaton) => {
                let molecule_automaton = Arc::new(automaton.molecule(skeleton)?);
                Ok((molecule_automaton.clone(), Some(molecule_automaton)))
            }
            None => Ok((self.inner.constraint(skeleton)?, None)),
        }
    }
}

/// The constraint on the text of one molecule. It holds no state of a row, so any number of rows can share it.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Constraint {
    pub(crate) inner: Arc<dyn drift::Constraint>,
    /// The automaton, for grammars and tables.
    molecule_automaton: Option<Arc<MoleculeAutomaton>>,
    pub(crate) tokenizer: Arc<drift::Tokenizer>,
    skeleton: String,
    pub(crate) eos: u32,
}

/// The state of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub state: State,
    /// Whether the end token was written.
    pub over: bool,
}

impl Place {
    /// The state before the first token.
    pub(crate) fn start(constraint: &dyn drift::Constraint) -> Self {
        Place { state: constraint.start(), over: false }
    }

    /// Takes a token. Returns false and changes nothing if the token is not allowed. After the end no token is refused.
    pub(crate) fn take(&mut self, constraint: &dyn drift::Constraint, token: u32) -> bool {
        if self.over {
            return true;
        }
        if !constraint.mask(&self.state).allows(token) {
            return false;
        }
        if constraint.is_over(&self.state, token) {
            self.over = true;
        } else {
            constraint.advance(&mut self.state, token);
        }
        true
    }
}

/// Describes a list of ids in a message: the first few, and their number.
pub(crate) fn listed(mask: Mask<'_>) -> String {
    let few = |ids: &[u32]| {
        let shown: Vec<String> = ids.iter().take(8).map(u32::to_string).collect();
        let more = if ids.len() > 8 { format!(", … ({} in all)", ids.len()) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    match mask {
        Mask::Any => "any token is allowed".to_owned(),
        Mask::Forced(id) => format!("only {id} is allowed"),
        Mask::Only(ids) => format!("allowed are {}", few(ids)),
        Mask::Except(ids) => format!("forbidden are {}", few(ids)),
    }
}

impl Constraint {
    fn automaton(&self) -> PyResult<&MoleculeAutomaton> {
        let problem = "constraint: a position template has no automaton; take moldrift.Automaton";
        self.molecule_automaton.as_deref().ok_or_else(|| Class::Drift.exception(problem))
    }

    /// The state after a prefix.
    fn after(&self, prefix: &[u32]) -> PyResult<Place> {
        let mut place = Place::start(&*self.inner);
        for (at, &token) in prefix.iter().enumerate() {
            if !place.take(&*self.inner, token) {
                let problem = format!(
                    "token {at} of the prefix is {token}, which is forbidden there; {}",
                    listed(self.inner.mask(&place.state))
                );
                return Err(Class::Forbidden.exception(problem));
            }
        }
        Ok(place)
    }
}

#[pymethods]
impl Constraint {
    /// The molecule's text with empty blocks.
    #[getter]
    fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// The tokens that may follow a prefix: ("only", ids), ("except", ids) or ("any", []); ids are sorted.
    fn allowed(&self, prefix: Vec<u32>) -> PyResult<(&'static str, Vec<u32>)> {
        let place = self.after(&prefix)?;
        if place.over {
            return Ok(("only", vec![self.eos]));
        }
        Ok(match self.inner.mask(&place.state) {
            Mask::Any => ("any", Vec::new()),
            Mask::Forced(id) => ("only", vec![id]),
            Mask::Only(ids) => ("only", ids.to_vec()),
            Mask::Except(ids) => ("except", ids.to_vec()),
        })
    }

    /// The tokens that are forced after a prefix, including the end token.
    fn forced_run(&self, prefix: Vec<u32>) -> PyResult<Vec<u32>> {
        let place = self.after(&prefix)?;
        let mut run = Vec::new();
        if !place.over {
            self.inner.forced_run(&place.state, &mut run);
        }
        Ok(run)
    }

    /// Whether a text has ended, that is, contains the end token.
    fn is_over(&self, text: Vec<u32>) -> PyResult<bool> {
        Ok(self.after(&text)?.over)
    }

    /// The automaton as a grammar in token ids: lark, ebnf or json.
    fn grammar(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        spelled(py, self.automaton()?, format)
    }

    /// The automaton as NumPy arrays.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables(py, self.automaton()?)
    }

    fn __repr__(&self) -> String {
        format!("Constraint({:?})", self.skeleton)
    }
}
