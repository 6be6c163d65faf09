//! Causal attention within each document of a pack, forward and backward.
//!
//! Scores are computed in strips of rows, only against the keys up to the strip's end. This is half of the square, and nothing is
//! computed between documents.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::kernels::{add, softmax, softmax_backward};
use super::tensors::{part, values};

/// The number of rows of a strip.
const STRIP: usize = 128;

/// The shape of the heads.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// The number of query heads.
    pub queries: usize,
    /// The number of key and value heads.
    pub kv_heads: usize,
    /// The size of a head.
    pub dim: usize,
}

impl Heads {
    /// Returns the columns of a query head, in the queries and in the output.
    fn query(self, head: usize) -> Range<usize> {
        head * self.dim..(head + 1) * self.dim
    }

    /// Returns the columns of the key or value head that a query head reads.
    fn pair(self, head: usize) -> Range<usize> {
        // Grouped queries: consecutive query heads share a key and value head.
        self.query(head / (self.queries / self.kv_heads))
    }

    /// `1 / √dim`.
    fn scale(self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }
}

/// A strip of rows of a document, for one head.
struct Strip {
    head: usize,
    /// The rows of the strip in the pack.
    rows: Range<usize>,
    /// The rows whose keys the strip's last row attends to: from the document's start.
    seen: Range<usize>,
}

/// Returns the strips of a pack, in order.
fn strips(documents: &[Range<usize>], heads: Heads) -> Vec<Strip> {
    let strip = |document: &Range<usize>, head: usize, start: usize| {
        let rows = start..(start + STRIP).min(document.end);
        let seen = document.start..rows.end;
        Strip { head, rows, seen }
    };
    let mut strips = Vec::new();
    for document in documents {
        for head in 0..heads.queries {
            strips.extend(document.clone().step_by(STRIP).map(|start| strip(document, head, start)));
        }
    }
    strips
}

/// `softmax(q kᵀ / √dim) v` by head, and the probabilities of each strip for the backward pass. Queries and output are
/// `[tokens, heads * dim]`, keys and values `[tokens, kv_heads * dim]`.
///
/// # Errors
/// If shapes disagree.
pub fn attend(
    [q, k, v]: &[Tensor; 3],
    documents: &[Range<usize>],
    heads: Heads,
) -> Result<(Vec<f32>, Vec<Tensor>)> {
    let columns = heads.queries * heads.dim;
    let mut output = vec![0.0; q.dim(0)? * columns];
    let mut probabilities = Vec::new();
    for Strip { head, rows, seen } in strips(documents, heads) {
        let keys = part(k, seen.clone(), heads.pair(head))?;
        let scores = part(q, rows.clone(), heads.query(head))?.matmul(&keys.t()?)?;
        let mut strip = vec![0.0; rows.len() * seen.len()];
        let scores = values(&scores)?;
        let lines = scores.chunks_exact(seen.len()).zip(strip.chunks_exact_mut(seen.len()));
        for (row, (scores, out)) in rows.clone().zip(lines) {
            // A row attends to its document up to and including itself. The product's scores for later keys are discarded here.
            softmax(scores, row + 1 - seen.start, heads.scale(), out);
        }
        let strip = super::tensors::matrix(strip, seen.len())?;
        let mixed = strip.matmul(&part(v, seen, heads.pair(head))?)?;
        scatter(&mut output, columns, &rows, &heads.query(head), &values(&mixed)?);
        probabilities.push(strip);
    }
    Ok((output, probabilities))
}

/// Returns the derivatives of [`attend`] with respect to queries, keys and values, in their shapes.
///
/// # Errors
/// If shapes disagree.
pub(crate) fn attend_backward(
    dy: &Tensor,
    [q, k, v]: &[Tensor; 3],
    probabilities: &[Tensor],
    documents: &[Range<usize>],
    heads: Heads,
) -> Result<[Vec<f32>; 3]> {
    let tokens = q.dim(0)?;
    let (columns, kv_columns) = (heads.queries * heads.dim, heads.kv_heads * heads.dim);
    let zeros = |columns: usize| vec![0.0; tokens * columns];
    let mut gradients = [zeros(columns), zeros(kv_columns), zeros(kv_columns)];
    for (Strip { head, rows, seen }, p) in strips(documents, heads).into_iter().zip(probabilities) {
        let (query, pair) = (heads.query(head), heads.pair(head));
        let dmixed = part(dy, rows.clone(), query.clone())?;
        let dp = dmixed.matmul(&part(v, seen.clone(), pair.clone())?.t()?)?;
        let mut dscores = vec![0.0; rows.len() * seen.len()];
        let (p_values, dp) = (values(p)?, values(&dp)?);
        let lines = p_values.chunks_exact(seen.len()).zip(dp.chunks_exact(seen.len()));
        for ((p, dp), out) in lines.zip(dscores.chunks_exact_mut(seen.len())) {
            softmax_backward(p, dp, heads.scale(), out);
        }
        let dscores = super::tensors::matrix(dscores, seen.len())?;
        let dq = dscores.matmul(&part(k, seen.clone(), pair.clone())?)?;
        let dk = dscores.t()?.matmul(&part(q, rows.clone(), query.clone())?)?;
        let dv = p.t()?.matmul(&dmixed)?;
        scatter(&mut gradients[0], columns, &rows, &query, &values(&dq)?);
        // Added, because several query heads and strips contribute gradients to one key and value head.
        scatter(&mut gradients[1], kv_columns, &seen, &pair, &values(&dk)?);
        scatter(&mut gradients[2], kv_columns, &seen, &pair, &values(&dv)?);
    }
    Ok(gradients)
}

/// Adds a block to its rows and columns of a matrix.
fn scatter(matrix: &mut [f32], width: usize, rows: &Range<usize>, columns: &Range<usize>, block: &[f32]) {
    let lines = matrix[rows.start * width..rows.end * width].chunks_exact_mut(width);
    for (line, values) in lines.zip(block.chunks_exact(columns.len())) {
        add(&mut line[columns.clone()], values);
    }
}
