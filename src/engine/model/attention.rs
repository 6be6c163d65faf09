//! Grouped-query attention over the KV cache, without copying keys and values. This module has the CPU kernels; [`super::tensors`]
//! has the version of candle's operations for all other devices.

use candle_core::{CpuStorage, CustomOp1, CustomOp3, InplaceOp2, Layout, Result, Shape, Tensor, WithDType};
use candle_core::{D, bail};
use half::bf16;
use rayon::prelude::*;

use super::attend::{Group, Scratch};
use super::batch::Batch;
use super::cache::LayerCache;
use super::heads::{HeadNorm, Heads};
use super::kernels;
use super::rope::Rope;
use super::simd::{Number, OnAnyRegisters, Registers, on_registers};
use super::tensors::{PassTensors, attention_of_tensors};

/// The data of one pass that are the same for all layers.
pub(super) struct Pass<'a> {
    pub heads: Heads,
    pub rope: &'a Rope,
    pub batch: &'a Batch,
    /// The inputs of candle's operations, if these compute.
    pub tensors: Option<PassTensors>,
}

impl Pass<'_> {
    /// Norms, rotates and scales the heads of a token at position `at`.
    fn turn(&self, heads: &mut [f32], at: usize, norm: Option<&HeadNorm>, scale: f32) {
        let (cos, sin) = self.rope.at(at);
        kernels::vectorized(
            #[inline(always)]
            || {
                for head in heads.chunks_exact_mut(self.heads.dim) {
                    if let Some(norm) = norm {
                        kernels::rms_norm(head, &norm.numbers, norm.epsilon);
                    }
                    kernels::rotate(head, cos, sin);
                    head.iter_mut().for_each(|x| *x *= scale);
                }
            },
        );
    }
}

/// Appends the keys and values of `qkv` (`[tokens, columns]`) to the cache and computes attention: `[tokens, heads · dim]`.
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
    // Values are neither normed nor rotated, because only queries and keys encode positions.
    let append = Append { pass, norm: None, column: (queries + kv_heads) * dim, is_key: false };
    cache.values.inplace_op2(qkv, &append)?;
    qkv.apply_op3_no_bwd(&cache.keys, &cache.values, &Attend { pass, norm: q_norm })
}

/// Returns the numbers of a contiguous CPU tensor.
fn numbers<'s, T: WithDType>(storage: &'s CpuStorage, layout: &Layout) -> Result<&'s [T]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<T>()?[start..end]),
        None => bail!("not contiguous: {layout:?}"),
    }
}

/// Writes new keys or values into the cache. Keys are normed and rotated first.
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
        let (capacity, qkv) = (cache_layout.dims()[2], numbers(qkv, qkv_layout)?);
        match cache {
            CpuStorage::F32(cache) => self.append(cache, capacity, qkv),
            CpuStorage::BF16(cache) => self.append(cache, capacity, qkv),
            _ => bail!("a cache that is neither f32 nor bf16"),
        }
        Ok(())
    }
}

impl Append<'_> {
    /// Appends row by row in parallel. The first write to a cache page makes the system allocate it, which takes longer than the
    /// write itself.
    fn append<T: Number>(&self, cache: &mut [T], capacity: usize, qkv: &[f32]) {
        let Heads { kv_heads, dim, .. } = self.pass.heads;
        let (batch, columns) = (self.pass.batch, self.pass.heads.columns());
        let rows = cache.chunks_exact_mut(kv_heads * capacity * dim);
        // Rows of the cache without new tokens in this pass are left alone.
        let mut fed = vec![0..0; rows.len()];
        for span in &batch.spans {
            fed[batch.rows[span.start]] = span.clone();
        }
        let fed: Vec<_> = rows.zip(fed).filter(|(_, tokens)| !tokens.is_empty()).collect();
        fed.into_par_iter().for_each_init(Vec::new, |new, (cache, tokens)| {
            for token in tokens {
                let from = &qkv[token * columns + self.column..][..kv_heads * dim];
                let at = batch.positions[token];
                new.clear();
                new.extend_from_slice(from);
                if self.is_key {
                    self.pass.turn(new, at, self.norm, 1.0);
                }
                for (head, new) in new.chunks_exact(dim).enumerate() {
                    let slot = &mut cache[(head * capacity + at) * dim..][..dim];
                    slot.iter_mut().zip(new).for_each(|(slot, number)| *slot = T::nearest(*number));
                }
            }
        });
    }
}

/// Attention of the queries in `qkv`. Each token attends to its row up to and including itself.
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
        keys: &CpuStorage,
        keys_layout: &Layout,
        values: &CpuStorage,
        values_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (capacity, qkv) = (keys_layout.dims()[2], numbers(qkv, qkv_layout)?);
        let out = match keys {
            CpuStorage::F32(_) => {
                let (keys, values) = (numbers::<f32>(keys, keys_layout)?, numbers(values, values_layout)?);
                on_registers(AttendTo { queries: self, qkv, keys, values, capacity })
            }
            CpuStorage::BF16(_) => {
                let (keys, values) = (numbers::<bf16>(keys, keys_layout)?, numbers(values, values_layout)?);
                on_registers(AttendTo { queries: self, qkv, keys, values, capacity })
            }
            _ => bail!("a cache that is neither f32 nor bf16"),
        };
        let Heads { queries, dim, .. } = self.pass.heads;
        Ok((CpuStorage::F32(out), (self.pass.batch.tokens.len(), queries * dim).into()))
    }
}

/// The queries with the keys and values that they attend to.
struct AttendTo<'a, T> {
    queries: &'a Attend<'a>,
    qkv: &'a [f32],
    /// `[rows, kv heads, capacity, dim]`
    keys: &'a [T],
    /// `[rows, kv heads, capacity, dim]`
    values: &'a [T],
    capacity: usize,
}

impl<T: Number> OnAnyRegisters for AttendTo<'_, T> {
    type Output = Vec<f32>;

    fn run<R: Registers>(self, registers: R) -> Vec<f32> {
        let (heads, batch) = (self.queries.pass.heads, self.queries.pass.batch);
        let Heads { queries, kv_heads, dim } = heads;
        let mut out = vec![0f32; batch.tokens.len() * queries * dim];
        let group = heads.group() * dim;
        let scale = 1.0 / (dim as f32).sqrt();
        let scratch = || (Vec::new(), Scratch::default());
        out.par_chunks_mut(group).enumerate().for_each_init(scratch, |(queries, scratch), (task, out)| {
            let (token, head) = (task / kv_heads, task % kv_heads);
            let (row, at) = (batch.rows[token], batch.positions[token]);
            queries.clear();
            queries.extend_from_slice(&self.qkv[token * heads.columns() + head * group..][..group]);
            // Scales the queries and not the scores, because there are fewer of them.
            self.queries.pass.turn(queries, at, self.queries.norm, scale);
            let start = (row * kv_heads + head) * self.capacity * dim;
            // A token attends to its row up to and including itself. Later positions of the cache hold later tokens of the pass or
            // stale data.
            let seen = start..start + (at + 1) * dim;
            let group = Group { queries, keys: &self.keys[seen.clone()], values: &self.values[seen], dim };
            group.attend(registers, scratch, out);
        });
        out
    }
}

/// `silu(gate) · up` for `[tokens, 2 · size]`.
pub(super) fn gated(gate_up: &Tensor, kernel: bool) -> Result<Tensor> {
    if kernel {
        return gate_up.apply_op1_no_bwd(&GatedActivation);
    }
    let size = gate_up.dim(D::Minus1)? / 2;
    let gate = gate_up.narrow(D::Minus1, 0, size)?.contiguous()?;
    let up = gate_up.narrow(D::Minus1, size, size)?.contiguous()?;
    gate.silu()? * up
}

struct GatedActivation;

impl CustomOp1 for GatedActivation {
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
