//! The legal tokens at every position of finished completions, as rows of a sparse matrix (CSR).

use std::collections::HashMap;
use std::sync::Arc;

use drift::Mask;
use drift::error::{escaped, message};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::errors::Class;
use crate::processor::{Place, Processor, listed, skeleton_of};

/// Rows in the form for Python: offsets `[tokens + 1]` and ids `[offsets.last()]`.
type PyRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>);

/// The legal ids at each token of one completion. For token `t` they are `ids[offsets[t]..offsets[t + 1]]`, sorted.
struct LegalRows {
    offsets: Vec<i64>,
    ids: Vec<i32>,
}

/// The first illegal token of a completion.
struct Illegal {
    at: usize,
    token: i64,
    allowed: String,
}

impl LegalRows {
    /// Follows a completion. After its end each token must be one of `fillers`, and only the token itself is listed.
    fn follow(
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
                rows.ids.push(token as i32);
            } else {
                let mask = constraint.mask(&place.state);
                match mask {
                    Mask::Forced(id) => rows.ids.push(id as i32),
                    Mask::Only(ids) => rows.ids.extend(ids.iter().map(|id| *id as i32)),
                    // An automaton always lists the legal tokens.
                    Mask::Any | Mask::Except(_) => {}
                }
                let taken = u32::try_from(token).is_ok_and(|id| place.take(constraint, id));
                if !taken {
                    return Err(illegal(listed(mask)));
                }
            }
            rows.offsets.push(rows.ids.len() as i64);
        }
        Ok(rows)
    }
}

impl Processor {
    /// The constraints of distinct molecules, by SMILES.
    fn constraints(&self, smiles: &[String]) -> PyResult<HashMap<String, Arc<dyn drift::Constraint>>> {
        let mut known: HashMap<String, Arc<dyn drift::Constraint>> = HashMap::new();
        for one in smiles {
            if !known.contains_key(one) {
                let (constraint, _) = self.of_skeleton(&skeleton_of(one)?).map_err(Class::Tokenizer.of())?;
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

    /// The legal ids of each completion; runs without the interpreter's lock.
    fn rows(&self, smiles: &[String], completions: &[Vec<i64>], fillers: &[i64]) -> PyResult<Vec<LegalRows>> {
        let constraints = self.constraints(smiles)?;
        let follow = |(number, (smiles, completion)): (usize, (&String, &Vec<i64>))| {
            let rows = LegalRows::follow(&*constraints[smiles], completion, fillers);
            rows.map_err(|illegal| self.illegal(number, illegal))
        };
        smiles.iter().zip(completions).enumerate().map(follow).collect()
    }
}

/// The legal ids at every token of completions, one completion per SMILES. Completions are the ids after the prompt, including the
/// end token, after which `fillers` may follow.
pub(crate) fn legal<'py>(
    processor: &Processor,
    py: Python<'py>,
    smiles: &[String],
    completions: &[PyReadonlyArray1<'_, i64>],
    fillers: &[i64],
) -> PyResult<Vec<PyRows<'py>>> {
    // Copied, so that Python may change its arrays meanwhile.
    let copied: Vec<Vec<i64>> =
        completions.iter().map(|one| one.as_array().iter().copied().collect()).collect();
    let rows = py.detach(|| processor.rows(smiles, &copied, fillers))?;
    let arrays =
        rows.into_iter().map(|rows| (PyArray1::from_vec(py, rows.offsets), PyArray1::from_vec(py, rows.ids)));
    Ok(arrays.collect())
}
