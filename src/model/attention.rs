//! Grouped-query attention over the cache, without copying keys and values: kernels on the CPU; what candle's operations do
//! elsewhere is in [`super::tensors`].

use candle_core::{CpuStorage, CustomOp1, CustomOp3, InplaceOp2, Layout, Result, Shape, Tensor};
use candle_core::{D, bail};
use rayon::prelude::*;

use super::batch::Batch;
use super::cache::LayerCache;
use super::heads::{HeadNorm, Heads};
use super::kernels;
use super::rope::Rope;
use super::tensors::{PassTensors, attention_of_tensors};

/// What does not change from layer to layer of one pass.
pub(super) struct Pass<'a> {
    pub heads: Heads,
    pub rope: &'a Rope,
    pub batch: &'a Batch,
    /// For candle's operations.
    pub tensors: Option<PassTensors>,
}

/// Appends the keys and values of `qkv` (`[tokens, columns]`) to the cache, and attends: `[tokens, heads · dim]`.
pub(super) fn attention(
    qkv: &Tensor,
    norms: Option<&(HeadNorm, HeadNorm)>,
    cache: &LayerCache,
    pass: &Pass<'_>,
) -> Result<Tensor> {
    if let Some(tensors) = &pass.tensors {
        return attention_of_tensors(qkv, norms, cache, pass.heads, tensors);
    }
    let (q_norm, k_norm) = (norms.map(|norms| &norms.0), norms.map(|norms| &norms.1));
    let Heads { queries, kv_heads, dim } = pass.heads;
    let append = Append { pass, norm: k_norm, column: queries * dim, is_key: true };
    cache.keys.inplace_op2(qkv, &append)?;
    let append = Append { pass, norm: None, column: (queries + kv_heads) * dim, is_key: false };
    cache.values.inplace_op2(qkv, &append)?;
    qkv.apply_op3_no_bwd(&cache.keys, &cache.values, &Attend { pass, norm: q_norm })
}

/// The numbers of a contiguous CPU tensor.
fn numbers<'s>(storage: &'s CpuStorage, layout: &Layout) -> Result<&'s [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => bail!("not contiguous: {layout:?}"),
    }
}

/// Writes new keys or values into the cache; keys are normed and rotated on the way.
struct Append<'a> {
    pass: &'a Pass<'a>,
    norm: Option<&'a HeadNorm>,
    column: usize,
    is_key: bool,
}

impl InplaceOp2 for Append<'_> {
    fn name(&self) -> &'static str {
        "append-to-cache"
    }

    fn cpu_fwd(
        &self,
        cache: &mut CpuStorage,
        cache_layout: &Layout,
        qkv: &CpuStorage,
        qkv_layout: &Layout,
    ) -> Result<()> {
        let Heads { kv_heads, dim, .. } = self.pass.heads;
        let capacity = cache_layout.dims()[2];
        let qkv = numbers(qkv, qkv_layout)?;
        let CpuStorage::F32(cache) = cache else { bail!("a cache that is not f32") };
        let tokens = qkv.chunks_exact(self.pass.heads.columns());
        kernels::vectorized(
            #[inline(always)]
            || {
                for (i, token) in tokens.enumerate() {
                    let (row, at) = (self.pass.batch.rows[i], self.pass.batch.positions[i]);
                    let (cos, sin) = self.pass.rope.at(at);
                    for (head, new) in token[self.column..].chunks_exact(dim).take(kv_heads).enumerate() {
                        let start = ((row * kv_heads + head) * capacity + at) * dim;
                        let slot = &mut cache[start..start + dim];
                        slot.copy_from_slice(new);
                        if let Some(norm) = self.norm {
                            kernels::rms_norm(slot, &norm.numbers, norm.epsilon);
                        }
                        if self.is_key {
                            kernels::rotate(slot, cos, sin);
                        }
                    }
                }
            },
        );
        Ok(())
    }
}

/// Attention of the queries in `qkv`; each token looks at its row up to itself.
struct Attend<'a> {
    pass: &'a Pass<'a>,
    norm: Option<&'a HeadNorm>,
}

impl CustomOp3 for Attend<'_> {
    fn name(&self) -> &'static str {
        "attend"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        qkv_layout: &Layout,
        cached_keys: &CpuStorage,
        keys_layout: &Layout,
        cached_values: &CpuStorage,
        values_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let Heads { queries, kv_heads, dim } = self.pass.heads;
        let capacity = keys_layout.dims()[2];
        let qkv = numbers(qkv, qkv_layout)?;
        let (cached_keys, cached_values) =
            (numbers(cached_keys, keys_layout)?, numbers(cached_values, values_layout)?);
        let tokens = self.pass.batch.tokens.len();
        let mut out = vec![0f32; tokens * queries * dim];
        let group = self.pass.heads.group() * dim;
        out.par_chunks_mut(group).enumerate().for_each_init(Vec::new, |scratch, (task, out)| {
            let (token, head) = (task / kv_heads, task % kv_heads);
            let (row, at) = (self.pass.batch.rows[token], self.pass.batch.positions[token]);
            let start = (row * kv_heads + head) * capacity * dim;
            let seen = start..start + (at + 1) * dim;
            let query = &qkv[token * self.pass.heads.columns() + head * group..][..group];
            self.attend(query, at, &cached_keys[seen.clone()], &cached_values[seen], scratch, out);
        });
        Ok((CpuStorage::F32(out), (tokens, queries * dim).into()))
    }
}

impl Attend<'_> {
    /// One token and one group of heads.
    fn attend(
        &self,
        query: &[f32],
        at: usize,
        keys: &[f32],
        values: &[f32],
        scratch: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let dim = self.pass.heads.dim;
        let (cos, sin) = self.pass.rope.at(at);
        let scale = 1.0 / (dim as f32).sqrt();
        scratch.resize(query.len() + query.len() / dim * (at + 1), 0.0);
        let (turned, scores) = scratch.split_at_mut(query.len());
        turned.copy_from_slice(query);
        kernels::vectorized(
            #[inline(always)]
            || {
                for head in turned.chunks_exact_mut(dim) {
                    if let Some(norm) = self.norm {
                        kernels::rms_norm(head, &norm.numbers, norm.epsilon);
                    }
                    kernels::rotate(head, cos, sin);
                    head.iter_mut().for_each(|x| *x *= scale);
                }
                kernels::attend(turned, keys, values, dim, scores, out);
            },
        );
    }
}

/// `silu(gate) · up` for `[tokens, 2 · size]`.
pub(super) fn gated(gate_up: &Tensor, kernel: bool) -> Result<Tensor> {
    if kernel {
        return gate_up.apply_op1_no_bwd(&Gated);
    }
    let size = gate_up.dim(D::Minus1)? / 2;
    let gate = gate_up.narrow(D::Minus1, 0, size)?.contiguous()?;
    let up = gate_up.narrow(D::Minus1, size, size)?.contiguous()?;
    gate.silu()? * up
}

struct Gated;

impl CustomOp1 for Gated {
    fn name(&self) -> &'static str {
        "gated"
    }

    fn cpu_fwd(&self, gate_up: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, columns) = layout.shape().dims2()?;
        let gate_up = numbers(gate_up, layout)?;
        let size = columns / 2;
        let mut out = vec![0f32; tokens * size];
        out.par_chunks_mut(size).zip(gate_up.par_chunks(columns)).for_each(|(out, gate_up)| {
            kernels::vectorized(
                #[inline(always)]
                || kernels::gated(gate_up, out),
            );
        });
        Ok((CpuStorage::F32(out), (tokens, size).into()))
    }
}
