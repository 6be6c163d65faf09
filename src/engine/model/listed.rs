//! Rows of the LM head that are used again and again. On a GPU, uploading their ids and gathering the rows takes longer than the
//! product, so the rows are kept.

use candle_core::{Result, Tensor};

/// At most one in this many rows of the LM head counts as few. Few rows are computed alone, and kept on a GPU.
pub(crate) const FEW_ROWS: usize = 4;

/// The rows that were requested so far.
#[derive(Debug, Default)]
pub(super) struct ListedRows {
    /// Sorted ids of the rows.
    ids: Vec<u32>,
    /// `[ids, hidden]`
    rows: Option<Tensor>,
}

impl ListedRows {
    /// Returns the logits of hidden states `[rows, hidden]` for sorted `ids`, with the LM head `[vocab, hidden]`: `[rows, ids]`.
    pub(super) fn product(&mut self, hidden: &Tensor, head: &Tensor, ids: &[u32]) -> Result<Tensor> {
        let rows = self.covering(head, ids)?;
        let logits = hidden.matmul(&rows.t()?)?;
        // If a step requests all kept rows, the logits are in order already.
        if self.ids == ids {
            return Ok(logits);
        }
        let place = |id: &u32| self.ids.partition_point(|known| known < id) as u32;
        let places: Vec<u32> = ids.iter().map(place).collect();
        logits.index_select(&Tensor::new(places, hidden.device())?, 1)
    }

    /// Kept rows that include all of `ids`. Earlier rows are kept too as long as they are few together.
    fn covering(&mut self, head: &Tensor, ids: &[u32]) -> Result<Tensor> {
        if let Some(rows) = &self.rows
            && ids.iter().all(|id| self.ids.binary_search(id).is_ok())
        {
            return Ok(rows.clone());
        }
        let mut all = [&self.ids, ids].concat();
        all.sort_unstable();
        all.dedup();
        // Forgets the earlier ids if all together would not be few.
        if all.len() * FEW_ROWS > head.dim(0)? {
            all = ids.to_vec();
        }
        let rows = head.index_select(&Tensor::new(&all[..], head.device())?, 0)?;
        (self.ids, self.rows) = (all, Some(rows.clone()));
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    #[test]
    fn logits_are_those_of_the_whole_head() {
        let head = Tensor::rand(-1f32, 1.0, (40, 8), &Device::Cpu).unwrap();
        let hidden = Tensor::rand(-1f32, 1.0, (3, 8), &Device::Cpu).unwrap();
        let all = hidden.matmul(&head.t().unwrap()).unwrap().to_vec2::<f32>().unwrap();
        let mut listed = ListedRows::default();
        let many: Vec<u32> = (5..25).collect();
        // The same ids again, fewer, other ids, too many to keep with the earlier ones, and back.
        for ids in [&[3, 7, 9][..], &[3, 7, 9], &[7], &[1, 9, 39], &many, &[0, 3]] {
            let found = listed.product(&hidden, &head, ids).unwrap().to_vec2::<f32>().unwrap();
            for (found, all) in found.iter().zip(&all) {
                let expected: Vec<f32> = ids.iter().map(|id| all[*id as usize]).collect();
                assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{ids:?}");
            }
        }
        assert_eq!(listed.ids, [0, 3]);
    }
}
