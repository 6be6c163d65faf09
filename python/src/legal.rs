//! The tokens that the rows of a step may write, as flat indices of their logits, and draws from them.

use drift::sampling::{Candidates, Noise, Sampling, draw};
use drift::{Error, Mask};
use numpy::ndarray::ArrayView2;
use pyo3::exceptions::PyValueError;
use pyo3::{PyErr, PyResult};

use crate::errors::{Class, raised};
use crate::rows::Rows;

/// Flat indices of logits `[active, vocabulary]`.
#[derive(Default)]
pub(crate) struct Legal {
    /// The indices of legal tokens, in rows that list them.
    pub kept: Vec<i64>,
    /// The rows that list their legal tokens.
    pub rows: Vec<i64>,
    /// The indices of forbidden tokens, in the other rows.
    pub blocked: Vec<i64>,
}

/// Returns the ids of a sorted list for which the model has a row.
fn known(ids: &[u32], vocabulary: usize) -> &[u32] {
    &ids[..ids.partition_point(|id| (*id as usize) < vocabulary)]
}

/// Returns the list of a mask that lists its legal ids; a forced id is put into `one`. `None` for other masks.
fn list<'a>(mask: Mask<'a>, one: &'a mut [u32; 1], vocabulary: usize) -> Option<&'a [u32]> {
    match mask {
        Mask::Forced(id) => {
            one[0] = id;
            Some(known(one, vocabulary))
        }
        Mask::Only(ids) => Some(known(ids, vocabulary)),
        Mask::Any | Mask::Except(_) => None,
    }
}

fn misfit() -> PyErr {
    PyValueError::new_err("logits processor: the logits do not fit the rows")
}

impl Rows {
    /// Returns the flat indices of legal and forbidden tokens.
    pub(crate) fn legal(&self, vocabulary: usize) -> PyResult<Legal> {
        let mut legal = Legal::default();
        for (at, &row) in self.active.iter().enumerate() {
            let base = at * vocabulary;
            let place = |id: &u32| (base + *id as usize) as i64;
            let mask = self.mask(row);
            let mut one = [0];
            match list(mask, &mut one, vocabulary) {
                Some([]) => return Err(self.no_token(row, vocabulary)),
                Some(ids) => {
                    legal.rows.push(at as i64);
                    legal.kept.extend(ids.iter().map(place));
                }
                None => {
                    if let Mask::Except(ids) = mask {
                        legal.blocked.extend(known(ids, vocabulary).iter().map(place));
                        // A model may have more rows than its tokenizer has tokens. They spell nothing.
                        legal.blocked.extend((self.size..vocabulary).map(|id| (base + id) as i64));
                    }
                }
            }
        }
        Ok(legal)
    }

    /// Returns why a row may write no token of the model.
    fn no_token(&self, row: usize, vocabulary: usize) -> PyErr {
        if let Some(problem) = self.rows[row].problem() {
            return Class::Tokenizer.exception(problem);
        }
        let problem = format!("none of the model's {vocabulary} tokens is one that row {row} may write");
        Class::Tokenizer.of()(Error::input("logits processor", problem, "give the tokenizer of the model"))
    }

    /// Returns the lists of all rows, none of which is empty; `None` if a row has no list.
    pub(crate) fn lists(&self, vocabulary: usize) -> PyResult<Option<Vec<Vec<u32>>>> {
        let list = |row: &usize| match list(self.mask(*row), &mut [0], vocabulary) {
            Some([]) => Some(Err(self.no_token(*row, vocabulary))),
            ids => Some(Ok(ids?.to_vec())),
        };
        self.active.iter().map(list).collect::<Option<PyResult<_>>>().transpose()
    }

    /// Returns all ids that any row lists, sorted, and for each row the indices of its ids among them, as flat indices of `[active,
    /// union]`. `None` if a row has no list.
    pub(crate) fn union_of_lists(&self, vocabulary: usize) -> PyResult<Option<(Vec<i64>, Vec<i64>)>> {
        let Some(lists) = self.lists(vocabulary)? else { return Ok(None) };
        let mut union = lists.concat();
        union.sort_unstable();
        union.dedup();
        let mut places = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        for (at, list) in lists.iter().enumerate() {
            let mut column = 0;
            for id in list {
                column += union[column..].partition_point(|known| known < id);
                places.push((at * union.len() + column) as i64);
            }
        }
        Ok(Some((union.into_iter().map(i64::from).collect(), places)))
    }

    /// Draws a token for each row: from the kept logits, and for rows without a list from all of their logits.
    pub(crate) fn drawn(
        &self,
        vocabulary: usize,
        kept: &[f32],
        full: Option<ArrayView2<'_, f32>>,
    ) -> PyResult<Vec<i64>> {
        let (mut kept, mut full) = (kept, full.iter().flat_map(|full| full.rows()));
        let mut tokens = Vec::with_capacity(self.active.len());
        for &row in &self.active {
            let mask = self.mask(row);
            let token = match list(mask, &mut [0], vocabulary) {
                Some(ids) => {
                    let (logits, rest) = kept.split_at_checked(ids.len()).ok_or_else(misfit)?;
                    kept = rest;
                    match ids {
                        [forced] => *forced,
                        _ => self.draw(row, Candidates::Listed { logits, known: ids, ids })?,
                    }
                }
                None => {
                    let logits = full.next().and_then(|row| row.to_slice()).ok_or_else(misfit)?;
                    let (logits, blocked) = match mask {
                        Mask::Except(ids) => (&logits[..logits.len().min(self.size)], ids),
                        _ => (logits, [].as_slice()),
                    };
                    self.draw(row, Candidates::Except(logits, blocked))?
                }
            };
            tokens.push(i64::from(token));
        }
        Ok(tokens)
    }

    /// Returns a draw for a row. The noise is keyed by the prompt, the row's index among the rows of the prompt, and the number of tokens
    /// so far.
    fn draw(&self, row: usize, candidates: Candidates<'_>) -> PyResult<u32> {
        let (sampling, seed) = self.sampler.unwrap_or((Sampling::GREEDY, 0));
        let mut noise = Noise::new(seed, self.molecule(row).prompt, row % self.per_molecule());
        draw(candidates, &sampling, &mut noise, self.rows[row].written.len()).map_err(raised)
    }
}
