//! The rows of one call of `generate`: their states, the tokens that they may write next, and their draws.

use std::sync::Arc;

use drift::Mask;
use drift::sampling::Sampling;
use numpy::ndarray::{Array2, ArrayView2};
use numpy::{PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::constraint::{Constraint, Place, listed};
use crate::errors::Class;
use crate::sampling::Sampler;

/// Ids `[rows, longest]`, and the number of valid ids of each row, `[rows]`.
type PaddedIds<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray1<i64>>);

/// The result of [`Rows::places`].
type Places<'py> = (Bound<'py, PyArray1<i64>>, Option<Bound<'py, PyArray1<i64>>>, Bound<'py, PyArray1<i64>>);

/// A row: a text that is being written.
#[derive(Clone)]
pub(crate) struct Row {
    place: Place,
    /// All tokens after the prompt, including padding.
    pub(crate) written: Vec<i64>,
    /// The index at which something other than the processor ended the text; from there on there is only padding.
    stopped: Option<usize>,
}

/// Follows the rows of one call of `generate`.
#[pyclass(module = "moldrift._lib")]
pub(crate) struct Rows {
    molecules: Vec<Molecule>,
    tokenizer: Arc<drift::Tokenizer>,
    /// The largest id of the tokenizer plus one. A model's vocabulary may be larger.
    pub(crate) size: usize,
    /// The tokens that may follow a finished text: end tokens and padding.
    fillers: Vec<i64>,
    /// Tokens of texts behind which [`Rows::advance`] ends them.
    last: Vec<i64>,
    pub(crate) rows: Vec<Row>,
    /// The rows that have logits, in their order: all rows, or only the unfinished ones.
    pub(crate) active: Vec<usize>,
    pub(crate) sampler: Option<(Sampling, u64)>,
    wants_argmax: bool,
}

/// A molecule, and the number that keys its draws.
pub(crate) struct Molecule {
    constraint: Arc<dyn drift::Constraint>,
    eos: u32,
    pub(crate) prompt: usize,
}

/// A token that a mask forbids.
struct Forbidden {
    at: usize,
    token: i64,
    allowed: String,
}

impl Row {
    fn start(constraint: &dyn drift::Constraint) -> Self {
        Row { place: Place::start(constraint), written: Vec::new(), stopped: None }
    }

    /// Returns whether the text is finished.
    fn is_over(&self) -> bool {
        self.place.over || self.stopped.is_some()
    }

    /// Returns why no token is allowed any more, if so.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.place.problem()
    }

    /// Ends the text after `length` tokens.
    fn stop(&mut self, length: usize) {
        self.written.truncate(length);
        self.stopped = Some(self.written.len());
    }

    /// Takes the tokens after the known ones.
    fn take(
        &mut self,
        tokens: &[i64],
        constraint: &dyn drift::Constraint,
        fillers: &[i64],
    ) -> Result<(), Forbidden> {
        for &token in tokens {
            let at = self.written.len();
            let taken = match u32::try_from(token) {
                Ok(id) if self.stopped.is_none() => self.place.take(constraint, id),
                _ => false,
            };
            if !taken {
                if !fillers.contains(&token) {
                    let allowed = listed(self.place.mask(constraint));
                    return Err(Forbidden { at, token, allowed });
                }
                self.stopped.get_or_insert(at);
            }
            self.written.push(token);
        }
        Ok(())
    }
}

impl Rows {
    /// Returns the number of rows per molecule.
    pub(crate) fn per_molecule(&self) -> usize {
        self.rows.len() / self.molecules.len()
    }

    pub(crate) fn molecule(&self, row: usize) -> &Molecule {
        &self.molecules[row / self.per_molecule()]
    }

    /// Returns the tokens that a row may write next.
    pub(crate) fn mask(&self, row: usize) -> Mask<'_> {
        let molecule = self.molecule(row);
        let Row { place, .. } = &self.rows[row];
        match self.rows[row].is_over() {
            true => Mask::Forced(molecule.eos),
            false => place.mask(&*molecule.constraint),
        }
    }

    /// Returns the row of the last step that `written` continues, searched among the rows of the same molecule; the row itself comes
    /// first.
    fn parent(&self, row: usize, written: &[i64]) -> Option<usize> {
        let per = self.per_molecule();
        let first = row / per * per;
        let continues = |other: &usize| written.starts_with(&self.rows[*other].written);
        std::iter::once(row).chain(first..first + per).find(continues)
    }

    fn forbidden(&self, row: usize, Forbidden { at, token, allowed }: Forbidden) -> PyErr {
        let text = u32::try_from(token).ok().and_then(|id| self.tokenizer.inner().id_to_token(id));
        let text = text.map(|text| format!(" `{}`", drift::error::escaped(&text))).unwrap_or_default();
        let problem = format!(
            "row {row}, token {at} behind the prompt: {token}{text} is forbidden there; {allowed}; give this processor \
             as the last one, and to one call of generate alone"
        );
        Class::Forbidden.exception(drift::error::message(&problem))
    }

    /// Takes the tokens that were added since the last step.
    fn follow(&mut self, written: ArrayView2<'_, i64>) -> PyResult<()> {
        // If the array consists of columns of a longer one, its rows are still slices.
        let copied: Vec<Vec<i64>> = match written.rows().into_iter().all(|row| row.is_standard_layout()) {
            true => Vec::new(),
            false => written.rows().into_iter().map(|row| row.to_vec()).collect(),
        };
        let text = |row: usize| match copied.get(row) {
            Some(text) => text.as_slice(),
            None => written.row(row).to_slice().unwrap_or_default(),
        };
        let count = self.rows.len();
        let parents: Vec<Option<usize>> = (0..count).map(|row| self.parent(row, text(row))).collect();
        if parents.iter().enumerate().any(|(row, parent)| *parent != Some(row)) {
            self.change_places(&parents)?;
        }
        let per = self.per_molecule();
        for row in 0..count {
            let constraint = &*self.molecules[row / per].constraint;
            let known = self.rows[row].written.len();
            let taken = self.rows[row].take(&text(row)[known..], constraint, &self.fillers);
            taken.map_err(|forbidden| self.forbidden(row, forbidden))?;
        }
        Ok(())
    }

    /// Replaces every row by its parent, or by a fresh row.
    fn change_places(&mut self, parents: &[Option<usize>]) -> PyResult<()> {
        let mut rows = Vec::with_capacity(parents.len());
        for (row, parent) in parents.iter().enumerate() {
            rows.push(match parent {
                Some(parent) => self.rows[*parent].clone(),
                None if self.wants_argmax => {
                    let problem = "the truncating template of the stripped dialect cannot go back in a text";
                    return Err(Class::Drift.exception(problem));
                }
                None => Row::start(&*self.molecule(row).constraint),
            });
        }
        self.rows = rows;
        Ok(())
    }

    fn check_rows(&self, rows: usize) -> PyResult<()> {
        let began = self.rows.len();
        match began == rows {
            true => Ok(()),
            false => Err(wrong_batch(format!("the batch has {rows} rows, it began with {began}"))),
        }
    }
}

fn wrong_batch(problem: String) -> PyErr {
    PyValueError::new_err(format!("logits processor: {problem}; give it one SMILES for each prompt"))
}

#[pymethods]
impl Rows {
    /// `constraints` are given by prompt; `prompts` are the numbers that key the draws; `fillers` are tokens that may follow a
    /// finished text.
    #[new]
    #[pyo3(signature = (constraints, prompts, fillers, sampler=None))]
    fn new(
        constraints: Vec<Bound<'_, Constraint>>,
        prompts: Vec<usize>,
        fillers: Vec<i64>,
        sampler: Option<&Sampler>,
    ) -> PyResult<Self> {
        let Some(tokenizer) = constraints.first().map(|first| first.get().tokenizer.clone()) else {
            return Err(PyValueError::new_err(
                "logits processor: there is no molecule; give one SMILES a prompt",
            ));
        };
        if prompts.len() != constraints.len() {
            let (molecules, numbers) = (constraints.len(), prompts.len());
            return Err(wrong_batch(format!("{molecules} molecules have {numbers} prompt numbers")));
        }
        let molecules: Vec<Molecule> = constraints
            .iter()
            .map(Bound::get)
            .zip(prompts)
            .map(|(one, prompt)| Molecule { constraint: one.inner.clone(), eos: one.eos, prompt })
            .collect();
        let wants_argmax = molecules.iter().any(|molecule| molecule.constraint.wants_argmax());
        let sampler = sampler.map(|sampler| (sampler.sampling, sampler.seed));
        Ok(Rows {
            molecules,
            size: tokenizer.rows() as usize,
            tokenizer,
            fillers,
            last: Vec::new(),
            rows: Vec::new(),
            active: Vec::new(),
            sampler,
            wants_argmax,
        })
    }

    /// Begins with `rows` rows; rows of the same molecule are adjacent. Returns the number of rows per molecule.
    fn begin(&mut self, rows: usize) -> PyResult<usize> {
        let molecules = self.molecules.len();
        if rows == 0 || !rows.is_multiple_of(molecules) {
            let s = if molecules == 1 { "" } else { "s" };
            return Err(wrong_batch(format!(
                "{molecules} molecule{s} cannot be shared out among {rows} rows"
            )));
        }
        let per = rows / molecules;
        self.rows = (0..rows).map(|row| Row::start(&*self.molecules[row / per].constraint)).collect();
        self.active = (0..rows).collect();
        Ok(per)
    }

    /// Drops finished rows. Returns the indices of the others among the previous rows.
    fn drop_over<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let goes_on = |(_, row): &(usize, &usize)| !self.rows[**row].is_over();
        let places: Vec<usize> = self.active.iter().enumerate().filter(goes_on).map(|(at, _)| at).collect();
        self.active = places.iter().map(|at| self.active[*at]).collect();
        PyArray1::from_iter(py, places.into_iter().map(|at| at as i64))
    }

    /// Returns the rows that have logits, `[active]`.
    fn active<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.active.iter().map(|row| *row as i64))
    }

    /// Follows `written` `[rows, tokens]`, all tokens after the prompts. Rows of a molecule may have changed places, as in beam
    /// search.
    fn step(&mut self, written: PyReadonlyArray2<'_, i64>) -> PyResult<()> {
        let written = written.as_array();
        self.check_rows(written.nrows())?;
        self.follow(written)
    }

    /// Returns whether each row is finished, `[rows]`.
    fn over<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_iter(py, self.rows.iter().map(Row::is_over))
    }

    /// Returns whether [`Rows::observe`] is needed before each mask.
    #[getter]
    fn wants_argmax(&self) -> bool {
        self.wants_argmax
    }

    /// Passes the most likely token of each row's unmasked logits, `[active]`, to the logit processor.
    fn observe(&mut self, argmax: PyReadonlyArray1<'_, i64>) {
        let per = self.per_molecule();
        for (&row, &token) in self.active.iter().zip(argmax.as_array()) {
            let constraint = &self.molecules[row / per].constraint;
            constraint.observe(&mut self.rows[row].place.state, token as u32);
        }
    }

    /// Returns the tokens that may come next, as flat indices of scores `[active, vocabulary]`: the indices to keep in rows that list
    /// their legal tokens, these rows (None if they are all rows), and the indices to block in the other rows.
    fn places<'py>(&self, py: Python<'py>, vocabulary: usize) -> PyResult<Places<'py>> {
        let legal = self.legal(vocabulary)?;
        let rows = (legal.rows.len() < self.active.len()).then(|| PyArray1::from_vec(py, legal.rows));
        Ok((PyArray1::from_vec(py, legal.kept), rows, PyArray1::from_vec(py, legal.blocked)))
    }

    /// Returns all ids that any row lists, `[union]`, sorted; and the indices to keep as in [`Rows::places`], but for logits `[active,
    /// union]`. None if a row has no list.
    #[allow(clippy::type_complexity, reason = "a tuple for Python")]
    fn union<'py>(
        &self,
        py: Python<'py>,
        vocabulary: usize,
    ) -> PyResult<Option<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)>> {
        let union = self.union_of_lists(vocabulary)?;
        Ok(union.map(|(ids, places)| (PyArray1::from_vec(py, ids), PyArray1::from_vec(py, places))))
    }

    /// Returns the sorted legal ids of each row, `[active, longest list]`, and their numbers, `[active]`. Shorter lists are padded with
    /// their last id. None if a row has no list.
    fn listed<'py>(&self, py: Python<'py>, vocabulary: usize) -> PyResult<Option<PaddedIds<'py>>> {
        let lists = self.lists(vocabulary)?.filter(|lists| !lists.is_empty());
        let Some(lists) = lists else { return Ok(None) };
        let longest = lists.iter().map(|list| list.len()).max().unwrap_or(0);
        let at = |(row, column): (usize, usize)| {
            let list = &lists[row];
            list.get(column).or(list.last()).map_or(0, |id| i64::from(*id))
        };
        let ids = Array2::from_shape_fn((lists.len(), longest), at);
        let counts = PyArray1::from_iter(py, lists.iter().map(|list| list.len() as i64));
        Ok(Some((ids.to_pyarray(py), counts)))
    }

    /// Draws a token for each row, `[active]`; the most likely one without a sampler. `kept` has the logits at the indices that
    /// [`Rows::places`] keeps, in its order; `full` has the rows without lists, `[rows without lists, vocabulary]`.
    #[pyo3(signature = (vocabulary, kept, full=None))]
    fn draws<'py>(
        &self,
        py: Python<'py>,
        vocabulary: usize,
        kept: PyReadonlyArray1<'_, f32>,
        full: Option<PyReadonlyArray2<'_, f32>>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let full = full.as_ref().map(PyReadonlyArray2::as_array);
        Ok(PyArray1::from_vec(py, self.drawn(vocabulary, kept.as_slice()?, full)?))
    }

    /// Takes a token for each unfinished row (`tokens` `[active]`, or None at the start) and the tokens that are forced after it,
    /// up to `most` tokens per text. Returns the tokens that the model has not read, `[active, longest]`, right-aligned with `pad`
    /// before them, and their numbers, `[active]`, which are 0 for finished texts.
    #[pyo3(signature = (tokens, most, pad=0))]
    fn advance<'py>(
        &mut self,
        py: Python<'py>,
        tokens: Option<PyReadonlyArray1<'_, i64>>,
        most: usize,
        pad: i64,
    ) -> PyResult<PaddedIds<'py>> {
        let tokens = tokens.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        if let Some(tokens) = tokens.filter(|tokens| tokens.len() != self.active.len()) {
            let (tokens, rows) = (tokens.len(), self.active.len());
            return Err(wrong_batch(format!("{tokens} tokens for {rows} rows")));
        }
        let mut chunks: Vec<Vec<i64>> = Vec::with_capacity(self.active.len());
        for (at, row) in self.active.clone().into_iter().enumerate() {
            let chunk = self.go_on(row, tokens.map(|tokens| tokens[at]), most);
            chunks.push(chunk.map_err(|forbidden| self.forbidden(row, forbidden))?);
        }
        let longest = chunks.iter().map(Vec::len).max().unwrap_or(0);
        let at = |(row, column): (usize, usize)| {
            let chunk: &Vec<i64> = &chunks[row];
            (column + chunk.len()).checked_sub(longest).map_or(pad, |at| chunk[at])
        };
        let ids = Array2::from_shape_fn((chunks.len(), longest), at);
        let counts = PyArray1::from_iter(py, chunks.iter().map(|chunk| chunk.len() as i64));
        Ok((ids.to_pyarray(py), counts))
    }

    /// Ends a row's text after `length` tokens; what is behind them is dropped.
    fn stop(&mut self, row: usize, length: usize) {
        self.rows[row].stop(length);
    }

    /// Lets [`Rows::advance`] end texts behind the first of these tokens.
    fn end_behind(&mut self, last: Vec<i64>) {
        self.last = last;
    }

    /// Returns the tokens of a row, including the end token.
    fn text(&self, row: usize) -> Vec<i64> {
        self.rows[row].written.clone()
    }
}

impl Rows {
    /// A row takes a token, if one is given, and the tokens that are forced after it. Returns the tokens that the model has to
    /// read.
    fn go_on(&mut self, row: usize, token: Option<i64>, most: usize) -> Result<Vec<i64>, Forbidden> {
        let per = self.per_molecule();
        let constraint = &*self.molecules[row / per].constraint;
        let row = &mut self.rows[row];
        if row.is_over() {
            return Ok(Vec::new());
        }
        let from = row.written.len();
        row.take(token.as_slice(), constraint, &[])?;
        if !row.place.over {
            let mut run = Vec::new();
            row.place.forced_run(constraint, &mut run);
            let room = most.saturating_sub(row.written.len());
            let run: Vec<i64> = run.into_iter().take(room).map(i64::from).collect();
            row.take(&run, constraint, &[])?;
        }
        if let Some(at) = row.written[from..].iter().position(|token| self.last.contains(token)) {
            row.stop(from + at + 1);
        }
        if !row.is_over() && row.written.len() >= most {
            row.stop(most);
        }
        Ok(if row.is_over() { Vec::new() } else { row.written[from..].to_vec() })
    }
}
