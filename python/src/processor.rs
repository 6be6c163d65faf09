//! Logit processors of one tokenizer, and the constraints of molecules.

use std::collections::HashMap;
use std::sync::Arc;

use drift::constraint::automaton::{AnswerForm, MoleculeAutomaton};
use drift::constraint::{Placeholder, Specials};
use drift::design::advice::logit_processor;
use drift::error::{escaped, message};
use drift::geometry::{GeometryRules, GeometryStrength};
use drift::{Encoding, Error, LogitProcessor, ProcessorKind};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::completions::{Illegal, LegalRows};
use crate::constraint::{Constraint, skeleton_of};
use crate::errors::{Class, raised};
use crate::tokenizer::Tokenizer;
use crate::work;

/// A logit processor for one tokenizer. It makes the constraints of molecules, on any thread.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Processor {
    inner: LogitProcessor,
    pub(crate) tokenizer: Arc<drift::Tokenizer>,
    eos: u32,
    /// The name of the encoding, as given.
    pub(crate) encoding: String,
}

/// Returns the encoding with a name, or from the JSON of its definition.
fn encoding_of(name: &str) -> PyResult<Encoding> {
    name.parse().map_err(|problem: String| Class::Drift.exception(format!("encoding: {problem}")))
}

#[pymethods]
impl Processor {
    /// `kind` is one of none, generic, qwen38, qwen39, targeted, allowlist, truncating, automaton, geometry. `eos` ends a text. `others` are
    /// further end tokens and the token at the beginning of a text, which position templates forbid in numbers.
    #[new]
    #[pyo3(signature = (tokenizer, kind, dialect, eos, others=Vec::new(), placeholder=None, conformers=1, opened=false, bounds=0.2, signs=true, planes=true, prompt_end=None))]
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
        bounds: f64,
        signs: bool,
        planes: bool,
        prompt_end: Option<&str>,
    ) -> PyResult<Self> {
        let strength = GeometryStrength { bounds, signs, planes };
        strength.check().map_err(raised)?;
        let kind: ProcessorKind = kind.parse().map_err(raised)?;
        let encoding = encoding_of(dialect)?;
        let placeholder = placeholder.map(Placeholder::new).transpose().map_err(raised)?;
        let tokenizer = tokenizer.inner.clone();
        let specials = Specials { eos, ends: Vec::new(), others };
        let made = work::detached(py, || {
            let made = logit_processor(kind, &tokenizer, encoding, placeholder.as_ref(), specials)?;
            match prompt_end {
                Some(prompt_end) => made.behind(prompt_end),
                None => Ok(made),
            }
        });
        let inner = made.map_err(|error| match error {
            Error::Input { .. } => Class::Tokenizer.of()(error),
            error => raised(error),
        })?;
        let inner = inner.answering(AnswerForm { conformers, opened }).of_strength(strength);
        Ok(Processor { inner, tokenizer, eos, encoding: dialect.to_owned() })
    }

    /// Returns the kind of the processor.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind().name()
    }

    /// Returns the token that ends a text.
    #[getter]
    fn eos(&self) -> u32 {
        self.eos
    }

    /// Returns the number of states of the grammar of one coordinate, and the number of tokens that are legal anywhere in it; None unless
    /// this is the automaton.
    #[getter]
    fn size(&self) -> Option<(usize, usize)> {
        let automaton = self.inner.automaton()?.automaton();
        Some((automaton.size(), automaton.alphabet()))
    }

    /// Returns the constraint of one molecule, given by its SMILES. The spelling of the SMILES is kept.
    fn constraint(&self, py: Python<'_>, smiles: &str) -> PyResult<Constraint> {
        let skeleton = skeleton_of(smiles)?;
        let made = work::detached(py, || self.of_skeleton(&skeleton, smiles));
        let (inner, molecule_automaton) = made.map_err(|error| self.refused(smiles, error))?;
        Ok(Constraint {
            inner,
            molecule_automaton,
            tokenizer: self.tokenizer.clone(),
            skeleton,
            eos: self.eos,
        })
    }

    /// Returns the legal ids at every token of completions, one completion per SMILES, as offsets `[tokens + 1]` and ids; only for the
    /// automaton, with or without geometry. After the end token `fillers` may follow.
    #[allow(clippy::type_complexity, reason = "tuples for Python")]
    fn legal<'py>(
        &self,
        py: Python<'py>,
        smiles: Vec<String>,
        completions: Vec<PyReadonlyArray1<'_, i64>>,
        fillers: Vec<i64>,
    ) -> PyResult<Vec<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>)>> {
        // Copied, so that Python may change its arrays meanwhile.
        let copied: Vec<Vec<i64>> =
            completions.iter().map(|one| one.as_array().iter().copied().collect()).collect();
        let rows = work::detached(py, || self.rows(&smiles, &copied, &fillers))?;
        Ok(rows.into_iter().map(|rows| rows.arrays(py)).collect())
    }
}

/// A constraint, and the automaton behind it if there is one.
type ConstraintPair = (Arc<dyn drift::Constraint>, Option<Arc<MoleculeAutomaton>>);

impl Processor {
    fn of_skeleton(&self, skeleton: &str, smiles: &str) -> drift::Result<ConstraintPair> {
        match self.inner.automaton().filter(|_| self.inner.kind() == ProcessorKind::Automaton) {
            Some(automaton) => {
                let molecule_automaton = Arc::new(automaton.molecule(skeleton)?);
                Ok((molecule_automaton.clone(), Some(molecule_automaton)))
            }
            None => Ok((self.inner.constraint_of(skeleton, smiles)?, None)),
        }
    }

    /// Returns why a molecule has no constraint: its geometry is not known, or else its text cannot be tokenised.
    fn refused(&self, smiles: &str, error: Error) -> PyErr {
        let needs_geometry = self.inner.kind() == ProcessorKind::Geometry;
        match needs_geometry && GeometryRules::from_smiles(smiles, GeometryStrength::default()).is_err() {
            true => Class::Smiles.of()(error),
            false => Class::Tokenizer.of()(error),
        }
    }

    /// Returns the constraints of distinct molecules, by SMILES.
    fn constraints(&self, smiles: &[String]) -> PyResult<HashMap<String, Arc<dyn drift::Constraint>>> {
        let mut known: HashMap<String, Arc<dyn drift::Constraint>> = HashMap::new();
        for one in smiles {
            if !known.contains_key(one) {
                let (constraint, _) =
                    self.of_skeleton(&skeleton_of(one)?, one).map_err(|error| self.refused(one, error))?;
                known.insert(one.clone(), constraint);
            }
        }
        Ok(known)
    }

    fn illegal(&self, completion: usize, Illegal { at, token, allowed }: Illegal) -> PyErr {
        let text = u32::try_from(token).ok().and_then(|id| self.tokenizer.inner().id_to_token(id));
        let token = match text {
            Some(text) => format!("{token} `{}` is not legal there; {allowed}", escaped(&text)),
            None => format!("{token} is not a token of the tokenizer"),
        };
        let problem = format!(
            "completion {completion}, token {at} behind the prompt: {token}; give ids without the prompt, as tokenizer {} \
             writes them in encoding {}",
            self.tokenizer.name, self.encoding
        );
        Class::Forbidden.exception(message(&problem))
    }

    /// Returns the legal ids of each completion; runs without the interpreter's lock.
    fn rows(&self, smiles: &[String], completions: &[Vec<i64>], fillers: &[i64]) -> PyResult<Vec<LegalRows>> {
        let constraints = self.constraints(smiles)?;
        let follow = |(number, (smiles, completion)): (usize, (&String, &Vec<i64>))| {
            let rows = LegalRows::follow(&*constraints[smiles], completion, fillers);
            rows.map_err(|illegal| self.illegal(number, illegal))
        };
        smiles.iter().zip(completions).enumerate().map(follow).collect()
    }
}
