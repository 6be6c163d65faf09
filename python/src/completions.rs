//! The legal tokens at every position of finished completions, as rows of a sparse matrix (CSR).

use drift::Mask;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::constraint::{Place, listed};

/// Rows in the form for Python: offsets `[tokens + 1]` and ids `[offsets.last()]`.
pub(crate) type PyRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>);

/// The legal ids at each token of one completion. For token `t` they are `ids[offsets[t]..offsets[t + 1]]`, sorted.
pub(crate) struct LegalRows {
    offsets: Vec<i64>,
    ids: Vec<i32>,
}

/// The first illegal token of a completion.
pub(crate) struct Illegal {
    pub at: usize,
    pub token: i64,
    pub allowed: String,
}

impl LegalRows {
    /// Follows a completion. After its end each token must be one of `fillers`, and nothing is listed: no token is part of the text.
    pub(crate) fn follow(
        constraint: &dyn drift::Constraint,
        completion: &[i64],
        fillers: &[i64],
    ) -> Result<Self, Illegal> {
        let mut rows = LegalRows { offsets: Vec::with_capacity(completion.len() + 1), ids: Vec::new() };
        rows.offsets.push(0);
        let mut place = Place::start(constraint);
        for (at, &token) in completion.iter().enumerate() {
            let illegal = |allowed: String| Illegal { at, token, allowed };
            if place.over {
                if !fillers.contains(&token) {
                    return Err(illegal("the text has ended, and only padding may follow".to_owned()));
                }
            } else {
                match place.mask(constraint) {
                    Mask::Forced(id) => rows.ids.push(id as i32),
                    Mask::Only(ids) => rows.ids.extend(ids.iter().map(|id| *id as i32)),
                    // An automaton always lists the legal tokens.
                    Mask::Any | Mask::Except(_) => {}
                }
                let taken = u32::try_from(token).is_ok_and(|id| place.take(constraint, id));
                if !taken {
                    return Err(illegal(listed(place.mask(constraint))));
                }
            }
            rows.offsets.push(rows.ids.len() as i64);
        }
        Ok(rows)
    }

    /// Returns the rows in the form for Python.
    pub(crate) fn arrays(self, py: Python<'_>) -> PyRows<'_> {
        (PyArray1::from_vec(py, self.offsets), PyArray1::from_vec(py, self.ids))
    }
}
