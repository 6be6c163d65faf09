//! Attention with candle's operations, on any device. Only this module pads rows: to the length of the longest feed, and with the
//! cache rows between the fed ones, so that keys and values are read in place. Everything else of a pass processes only real
//! tokens.

use candle_core::{Device, Result, Tensor};
use candle_nn::ops::{rms_norm, softmax_last_dim};
use candle_nn::rotary_emb::rope_thd;

use super::batch::Batch;
use super::cache::LayerCache;
use super::constants::Constants;
use super::heads::{HeadNorm, Heads};

/// The inputs of a pass. A *cell* is a place in the padded layout `[rows, width]`.
#[derive(Debug)]
pub(super) struct PassTensors {
    /// The token ids: `[tokens]`
    pub tokens: Tensor,
    /// The token in each cell, and the cell of each token; `None` if the two layouts are equal.
    padding: Option<(Tensor, Tensor)>,
    /// `[cells, dim / 2]`
    cos: Tensor,
    /// `[cells, dim / 2]`
    sin: Tensor,
    /// 0 where a cell may attend, and minus infinity elsewhere: `[rows, 1, width, 1, length]`
    mask: Tensor,
    /// The positions at which keys and values are written: `[rows, kv heads, width, dim]`
    slots: Tensor,
    rows: usize,
    width: usize,
    length: usize,
}

/// The padded layout of a batch.
struct Cells {
    rows: usize,
    width: usize,
    /// The token in each cell.
    tokens: Vec<u32>,
    /// The position of each cell.
    positions: Vec<u32>,
    /// The position in its row at which each cell writes.
    slots: Vec<u32>,
    /// The cell of each token.
    cells: Vec<u32>,
}

impl Cells {
    /// Lays a batch out in cells. A row with too few tokens repeats its last token, which writes the same keys and values again. A
    /// row without tokens writes to `spare`, a position that nothing reads.
    fn new(batch: &Batch, spare: usize) -> Self {
        let rows = batch.rows.iter().max().map_or(0, |row| row + 1);
        let width = batch.spans.iter().map(std::ops::Range::len).max().unwrap_or(0);
        let mut cells = Cells {
            rows,
            width,
            tokens: vec![0; rows * width],
            positions: vec![0; rows * width],
            slots: vec![spare as u32; rows * width],
            cells: vec![0; batch.tokens.len()],
        };
        for span in &batch.spans {
            let row = batch.rows[span.start];
            for at in 0..width {
                let (cell, token) = (row * width + at, (span.start + at).min(span.end - 1));
                cells.tokens[cell] = token as u32;
                cells.positions[cell] = batch.positions[token] as u32;
                cells.slots[cell] = batch.positions[token] as u32;
                // The token's own cell is the first one that holds it; later cells repeat it.
                if span.start + at == token {
                    cells.cells[token] = cell as u32;
                }
            }
        }
        cells
    }

    /// Returns whether every cell holds its own token, in order.
    fn are_tokens(&self) -> bool {
        self.tokens.len() == self.cells.len() && (0u32..).zip(&self.cells).all(|(at, cell)| at == *cell)
    }
}

impl PassTensors {
    /// Returns the inputs for a batch whose cache rows have a position `spare` that nothing reads.
    pub(super) fn new(
        batch: &Batch,
        heads: Heads,
        spare: usize,
        constants: &Constants,
        device: &Device,
    ) -> Result<Self> {
        let cells = Cells::new(batch, spare);
        let (rows, width, length) = (cells.rows, cells.width, batch.length());
        // A single copy to the device.
        let lists = [&batch.tokens, &cells.positions, &cells.slots, &cells.tokens, &cells.cells];
        let all = Tensor::new(lists.map(|list| &list[..]).concat(), device)?;
        let mut start = 0;
        let [tokens, positions, slots, of_cells, of_tokens] = lists.map(|list| {
            start += list.len();
            all.narrow(0, start - list.len(), list.len())
        });
        let positions = positions?;
        // A cell attends to the positions up to its own. In rows without tokens this is position 0, so that no softmax is empty.
        let seen = constants.columns.narrow(1, 0, length)?.broadcast_le(&positions.unsqueeze(1)?)?;
        let shape = (rows * width, length);
        let (zero, minus_infinity) =
            (constants.zero.broadcast_as(shape)?, constants.minus_infinity.broadcast_as(shape)?);
        let slots = slots?.reshape((rows, 1, width, 1))?;
        Ok(PassTensors {
            tokens: tokens?,
            padding: if cells.are_tokens() { None } else { Some((of_cells?, of_tokens?)) },
            cos: constants.cos.index_select(&positions, 0)?,
            sin: constants.sin.index_select(&positions, 0)?,
            mask: seen.where_cond(&zero, &minus_infinity)?.reshape((rows, 1, width, 1, length))?,
            slots: slots.broadcast_as((rows, heads.kv_heads, width, heads.dim))?.contiguous()?,
            rows,
            width,
            length,
        })
    }
}

/// Attention with candle's operations; computes the same as [`super::attention::attention`]: `[tokens, queries * dim]`.
pub(super) fn attention_of_tensors(
    qkv: &Tensor,
    norms: Option<&(HeadNorm, HeadNorm)>,
    cache: &LayerCache,
    heads: Heads,
    pass: &PassTensors,
) -> Result<Tensor> {
    let Heads { queries, kv_heads, dim } = heads;
    let (rows, width, length, group) = (pass.rows, pass.width, pass.length, heads.group());
    let padded = match &pass.padding {
        Some((tokens, _)) => &qkv.index_select(tokens, 0)?,
        None => qkv,
    };
    // (1, cells, heads, dim)
    let cut = |column: usize, heads: usize| {
        padded.narrow(1, column * dim, heads * dim)?.contiguous()?.reshape((1, rows * width, heads, dim))
    };
    let turned = |x: Tensor, norm: Option<&HeadNorm>| {
        let x = norm.map_or(Ok(x.clone()), |norm| rms_norm(&x, &norm.weight, norm.epsilon))?;
        rope_thd(&x, &pass.cos, &pass.sin)
    };
    let q = turned(cut(0, queries)?, norms.map(|norms| &norms.0))?;
    let k = turned(cut(queries, kv_heads)?, norms.map(|norms| &norms.1))?;
    let v = cut(queries + kv_heads, kv_heads)?;
    let k = append(&cache.keys, &k, kv_heads, pass)?;
    let v = append(&cache.values, &v, kv_heads, pass)?;
    // The heads of a group are rows of one product, so keys and values are read in place.
    let q = q.reshape((rows, width, kv_heads, group * dim))?.transpose(1, 2)?.contiguous()?;
    let q = (q.reshape((rows, kv_heads, width * group, dim))? * (1.0 / (dim as f64).sqrt()))?;
    let scores = q.matmul(&k.t()?)?.reshape((rows, kv_heads, width, group, length))?;
    let shares = softmax_last_dim(&scores.broadcast_add(&pass.mask)?)?;
    let mixed = shares.reshape((rows, kv_heads, width * group, length))?.matmul(&v)?;
    let mixed = mixed.reshape((rows, kv_heads, width, group * dim))?.transpose(1, 2)?.contiguous()?;
    let mixed = mixed.reshape((rows * width, queries * dim))?;
    match &pass.padding {
        Some((_, cells)) => mixed.index_select(cells, 0),
        None => Ok(mixed),
    }
}

/// Writes `part` (`[1, cells, kv heads, dim]`) into the cache. Returns the part of the cache that the pass attends to:
/// `[rows, kv heads, length, dim]`.
fn append(side: &Tensor, part: &Tensor, kv_heads: usize, pass: &PassTensors) -> Result<Tensor> {
    let dim = part.dim(3)?;
    let part = part.reshape((pass.rows, pass.width, kv_heads, dim))?.transpose(1, 2)?.contiguous()?;
    let rows = side.narrow(0, 0, pass.rows)?;
    rows.scatter_set(&pass.slots, &part, 2)?;
    rows.narrow(2, 0, pass.length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(feeds: &[(usize, usize, usize)]) -> Batch {
        let mut batch =
            Batch { tokens: Vec::new(), rows: Vec::new(), positions: Vec::new(), spans: Vec::new() };
        for &(row, start, length) in feeds {
            let at = batch.tokens.len();
            batch.spans.push(at..at + length);
            batch.tokens.extend((at..at + length).map(|token| token as u32));
            batch.rows.extend(vec![row; length]);
            batch.positions.extend(start..start + length);
        }
        batch
    }

    #[test]
    fn cells_are_padded_by_what_writes_the_same_again() {
        let cells = Cells::new(&batch(&[(2, 5, 2), (0, 3, 1)]), 9);
        assert_eq!((cells.rows, cells.width), (3, 2));
        assert_eq!(cells.tokens, [2, 2, 0, 0, 0, 1]);
        assert_eq!(cells.positions, [3, 3, 0, 0, 5, 6]);
        // Row 1 has no tokens: its output is never read.
        assert_eq!(cells.slots, [3, 3, 9, 9, 5, 6]);
        assert_eq!(cells.cells, [4, 5, 0]);
        assert!(!cells.are_tokens());
        assert!(Cells::new(&batch(&[(0, 7, 1), (1, 2, 1)]), 9).are_tokens());
        assert!(!Cells::new(&batch(&[(1, 7, 1), (0, 2, 1)]), 9).are_tokens());
    }
}
