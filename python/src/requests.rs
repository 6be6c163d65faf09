//! Texts that an engine writes request by request, each at its own length, as in vLLM.

use std::sync::Arc;

use drift::Mask;
use numpy::PyArray1;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::completions::PyRows;
use crate::constraint::{Constraint, Place, listed};
use crate::errors::Class;
use crate::work;

/// The text of one request: where it is in its constraint.
#[pyclass(module = "moldrift._lib")]
pub(crate) struct Request {
    /// None in a request that ended before it began.
    text: Option<Text>,
    eos: u32,
    written: usize,
    problem: Option<String>,
}

struct Text {
    constraint: Arc<dyn drift::Constraint>,
    place: Place,
}

#[pymethods]
impl Request {
    #[new]
    fn new(constraint: &Constraint) -> Self {
        let text = Text { place: Place::start(&*constraint.inner), constraint: constraint.inner.clone() };
        Request { text: Some(text), eos: constraint.eos, written: 0, problem: None }
    }

    /// Returns a request whose text ends at once, because of a problem.
    #[staticmethod]
    fn ended(eos: u32, problem: String) -> Self {
        Request { text: None, eos, written: 0, problem: Some(problem) }
    }

    /// Returns the number of tokens that the text has taken.
    #[getter]
    fn written(&self) -> usize {
        self.written
    }

    /// Returns the token that was not allowed, if there was one. The text ends there.
    #[getter]
    fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// The ids of a step of a request: those that may come next, or those that may not.
struct StepIds {
    ids: Vec<i32>,
    are_forbidden: bool,
}

impl StepIds {
    fn legal(ids: &[u32]) -> Self {
        StepIds { ids: ids.iter().map(|id| *id as i32).collect(), are_forbidden: false }
    }
}

impl Request {
    /// Ends the text because of a problem.
    fn end(&mut self, problem: String) -> StepIds {
        self.problem = Some(problem);
        self.text = None;
        StepIds::legal(&[self.eos])
    }

    /// Takes tokens, and returns the ids of the next step. After the end of the text only the end token is legal.
    fn follow(&mut self, tokens: &[i64]) -> StepIds {
        let end = StepIds::legal(&[self.eos]);
        let Some(Text { constraint, place }) = &mut self.text else { return end };
        for &token in tokens {
            if !u32::try_from(token).is_ok_and(|id| place.take(&**constraint, id)) {
                let allowed = listed(place.mask(&**constraint));
                return self.end(format!("token {} of a text is {token}; {allowed}", self.written));
            }
            self.written += 1;
        }
        if place.over {
            return end;
        }
        if let Some(problem) = place.problem() {
            let problem = problem.to_owned();
            return self.end(problem);
        }
        match place.mask(&**constraint) {
            Mask::Forced(id) => StepIds::legal(&[id]),
            Mask::Only(ids) => StepIds::legal(ids),
            Mask::Any => StepIds { are_forbidden: true, ..StepIds::legal(&[]) },
            // The text before a marker is free but for a few tokens.
            Mask::Except(ids) => StepIds { are_forbidden: true, ..StepIds::legal(ids) },
        }
    }
}

/// Passes each request the tokens that were written since the last call. Returns ids as offsets `[requests + 1]` and ids
/// `[offsets.last()]`, and for each request whether its ids are those that may not come next, or those that may. The requests are
/// followed in parallel, without the interpreter's lock.
///
/// # Errors
///
/// An error if there is not one list of tokens for each request.
#[pyfunction]
pub(crate) fn follow_requests<'py>(
    py: Python<'py>,
    mut requests: Vec<PyRefMut<'py, Request>>,
    tokens: Vec<Vec<i64>>,
) -> PyResult<(PyRows<'py>, Vec<bool>)> {
    if requests.len() != tokens.len() {
        let problem = format!("requests: {} for {} lists of tokens", requests.len(), tokens.len());
        return Err(Class::Drift.exception(problem));
    }
    let rows: Vec<(&mut Request, Vec<i64>)> =
        requests.iter_mut().map(|request| &mut **request).zip(tokens).collect();
    let steps: Vec<StepIds> = work::detached(py, || {
        rows.into_par_iter().map(|(request, tokens)| request.follow(&tokens)).collect()
    });
    let mut offsets = vec![0];
    let mut ids = Vec::new();
    for step in &steps {
        ids.extend(&step.ids);
        offsets.push(ids.len() as i64);
    }
    let are_forbidden = steps.iter().map(|step| step.are_forbidden).collect();
    Ok(((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, ids)), are_forbidden))
}
