//! The constraint of one molecule, and the place in a text that follows it.

use std::sync::Arc;

use drift::chem::{SameGraph, same_graph};
use drift::constraint::State;
use drift::constraint::automaton::MoleculeAutomaton;
use drift::constraint::geometry::GeometryRow;
use drift::constraint::skeleton::SkeletonRow;
use drift::error::excerpt;
use drift::text::skeleton;
use drift::{Error, Mask};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Class;
use crate::tables::{spelled, spelled_skeleton, tables};

/// Returns the skeleton of a SMILES, spelled as the users' encoder spells it.
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

/// Returns whether two SMILES are known to be different molecules, ignoring stereo and isotopes. What cannot be read is not.
#[pyfunction]
pub(crate) fn are_different(a: &str, b: &str) -> bool {
    same_graph(a, b) == Ok(SameGraph::Different)
}

/// The constraint on the text of one molecule. It holds no state of a row, so any number of rows can share it.
#[pyclass(frozen, module = "moldrift._lib")]
pub(crate) struct Constraint {
    pub(crate) inner: Arc<dyn drift::Constraint>,
    /// The automaton, for grammars and tables.
    pub(crate) molecule_automaton: Option<Arc<MoleculeAutomaton>>,
    pub(crate) tokenizer: Arc<drift::Tokenizer>,
    pub(crate) skeleton: String,
    pub(crate) eos: u32,
}

/// The state of a text.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub state: State,
    /// Whether the end token was written.
    pub over: bool,
    geometry: Option<GeometryRow>,
    skeleton: Option<SkeletonRow>,
    /// The tokens that the geometry leaves, if it leaves fewer than the rest of the constraint.
    narrowed: Option<Vec<u32>>,
}

impl Place {
    /// Returns the state before the first token.
    pub(crate) fn start(constraint: &dyn drift::Constraint) -> Self {
        let geometry = constraint.geometry().map(|geometry| geometry.row());
        let skeleton = constraint.skeleton().map(|skeleton| skeleton.row());
        let mut place = Place { state: constraint.start(), over: false, geometry, skeleton, narrowed: None };
        place.narrow(constraint);
        place
    }

    /// Returns the tokens that may come next in a text that is not over.
    pub(crate) fn mask<'m>(&'m self, constraint: &'m dyn drift::Constraint) -> Mask<'m> {
        if let Some(row) = &self.skeleton {
            return row.mask();
        }
        self.narrowed.as_deref().map_or_else(|| constraint.mask(&self.state), Mask::Only)
    }

    /// Appends the tokens that are forced from here on, whatever is sampled.
    pub(crate) fn forced_run(&self, constraint: &dyn drift::Constraint, run: &mut Vec<u32>) {
        if self.skeleton.is_none() {
            return constraint.forced_run(&self.state, run);
        }
        let mut place = self.clone();
        while let Mask::Forced(token) = place.mask(constraint) {
            run.push(token);
            if !place.take(constraint, token) || place.over {
                break;
            }
        }
    }

    /// Returns why no token is allowed any more, if so.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.skeleton.as_ref()?.problem()
    }

    /// Finds the tokens that the geometry leaves. Where it leaves none, this atom is held to less, in the end to nothing.
    fn narrow(&mut self, constraint: &dyn drift::Constraint) {
        let (Some(row), Some(geometry)) = (&mut self.geometry, constraint.geometry()) else { return };
        self.narrowed = row.allowed(geometry, &self.state);
        while self.narrowed.as_ref().is_some_and(Vec::is_empty) {
            row.release();
            self.narrowed = row.allowed(geometry, &self.state);
        }
    }

    /// Takes a token. Returns false and changes nothing if the token is not allowed. After the end no token is refused.
    pub(crate) fn take(&mut self, constraint: &dyn drift::Constraint, token: u32) -> bool {
        if self.over {
            return true;
        }
        if !self.mask(constraint).allows(token) {
            return false;
        }
        if constraint.is_over(&self.state, token) {
            self.over = true;
        } else {
            constraint.advance(&mut self.state, token);
            if let (Some(row), Some(skeleton)) = (&mut self.skeleton, constraint.skeleton()) {
                row.advance(skeleton, token);
            }
            if let (Some(row), Some(geometry)) = (&mut self.geometry, constraint.geometry()) {
                row.write(geometry, token);
            }
            self.narrow(constraint);
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
        let problem = "constraint: a grammar can express neither a position template nor a geometry, and tables no skeleton; take moldrift.Automaton";
        self.molecule_automaton.as_deref().ok_or_else(|| Class::Drift.exception(problem))
    }

    /// Returns the state after a prefix.
    fn after(&self, prefix: &[u32]) -> PyResult<Place> {
        let mut place = Place::start(&*self.inner);
        for (at, &token) in prefix.iter().enumerate() {
            if !place.take(&*self.inner, token) {
                let problem = format!(
                    "token {at} of the prefix is {token}, which is forbidden there; {}",
                    listed(place.mask(&*self.inner))
                );
                return Err(Class::Forbidden.exception(problem));
            }
        }
        Ok(place)
    }
}

#[pymethods]
impl Constraint {
    /// Returns the molecule's text with empty blocks.
    #[getter]
    fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// Returns the tokens that may follow a prefix: ("only", ids), ("except", ids) or ("any", []); ids are sorted.
    fn allowed(&self, prefix: Vec<u32>) -> PyResult<(&'static str, Vec<u32>)> {
        let place = self.after(&prefix)?;
        if place.over {
            return Ok(("only", vec![self.eos]));
        }
        Ok(match place.mask(&*self.inner) {
            Mask::Any => ("any", Vec::new()),
            Mask::Forced(id) => ("only", vec![id]),
            Mask::Only(ids) => ("only", ids.to_vec()),
            Mask::Except(ids) => ("except", ids.to_vec()),
        })
    }

    /// Returns the tokens that are forced after a prefix, including the end token.
    fn forced_run(&self, prefix: Vec<u32>) -> PyResult<Vec<u32>> {
        let place = self.after(&prefix)?;
        let mut run = Vec::new();
        if !place.over {
            place.forced_run(&*self.inner, &mut run);
        }
        Ok(run)
    }

    /// Returns whether a text has ended, that is, contains the end token.
    fn is_over(&self, text: Vec<u32>) -> PyResult<bool> {
        Ok(self.after(&text)?.over)
    }

    /// Returns the automaton as a grammar in token ids: lark, ebnf or json.
    fn grammar(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        match self.inner.skeleton() {
            Some(skeleton) => spelled_skeleton(py, skeleton, format),
            None => spelled(py, self.automaton()?, format),
        }
    }

    /// Returns the automaton as NumPy arrays.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        tables(py, self.automaton()?)
    }

    fn __repr__(&self) -> String {
        format!("Constraint({:?})", self.skeleton)
    }
}
