//! Texts that an engine writes request by request, each at its own length, as in vLLM.

use std::sync::Arc;

use drift::Mask;
use numpy::PyArray1;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::completions::PyRows;
use crate::constraint::{Constraint, Place, listed};
use crate::errors::Class;

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

impl Request {
    /// Takes tokens, and returns the ids that may come next. After the end of the text only the end token may.
    fn follow(&mut self, tokens: &[i64]) -> Vec<i32> {
        let end = vec![self.eos as i32];
        let Some(Text { constraint, place }) = &mut self.text else { return end };
        for &token in tokens {
            if !u32::try_from(token).is_ok_and(|id| place.take(&**constraint, id)) {
                let allowed = listed(place.mask(&**constraint));
                self.problem = Some(format!("token {} of a text is {token}; {allowed}", self.written));
                self.text = None;
                return end;
            }
            self.written += 1;
        }
        if place.over {
            return end;
        }
        match place.mask(&**constraint) {
            Mask::Forced(id) => vec![id as i32],
            Mask::Only(ids) => ids.iter().map(|id| *id as i32).collect(),
            // An automaton always lists the legal tokens.
            Mask::Any | Mask::Except(_) => Vec::new(),
        }
    }
}

/// Passes each request the tokens that were written since the last call. Returns the ids that may come next, as offsets `[requests + 1]`
/// and ids `[offsets.last()]`. The requests are followed in parallel, without the interpreter's lock.
///
/// # Errors
///
/// An error if there is not one list of tokens for each request.
#[pyfunction]
pub(crate) fn follow_requests<'py>(
    py: Python<'py>,
    mut requests: Vec<PyRefMut<'py, Request>>,
    tokens: Vec<Vec<i64>>,
) -> PyResult<PyRows<'py>> {
    if requests.len() != tokens.len() {
        let problem = format!("requests: {} for {} lists of tokens", requests.len(), tokens.len());
        return Err(Class::Drift.exception(problem));
    }
    let rows: Vec<(&mut Request, Vec<i64>)> =
        requests.iter_mut().map(|request| &mut **request).zip(tokens).collect();
    let lists: Vec<Vec<i32>> =
        py.detach(|| rows.into_par_iter().map(|(request, tokens)| request.follow(&tokens)).collect());
    let mut offsets = vec![0];
    for list in &lists {
        offsets.push(offsets[offsets.len() - 1] + list.len() as i64);
    }
    Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, lists.concat())))
}
