//! Loss and gradient of a decoder over one pack of documents, recorded by candle on any of its devices.
//!
//! The formulas are those of `network`, written with operations that candle can differentiate. candle's `rms_norm`, `rope` and
//! `softmax_last_dim` have no backward pass and silently lose gradients. On the CPU this reaches 0.08 to 0.52 of the speed of the
//! hand-written gradients (`cargo bench --profile peers --bench train`), so it is for GPUs.

use std::ops::Range;

use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, CudaStorage, CustomOp2, D, Device, Layout, Result, Shape, Tensor, Var};
use candle_nn::ops::{rms_norm_slow, silu};

use super::kernels::Prediction;
use super::network::Pack;
use super::parameters::{LayerWeights, ParameterLayout};
use crate::model::{Config, rotary_tables};

/// A decoder's shape on a device, ready to run.
pub struct Autograd {
    /// The layout of the weights.
    pub layout: ParameterLayout,
    config: Config,
    device: Device,
    /// `[positions, head_dim / 2]`.
    cos: Tensor,
    /// `[positions, head_dim / 2]`.
    sin: Tensor,
}

/// The weights of one step, on the device.
pub struct RecordedWeights {
    embedding: Var,
    layers: Vec<LayerWeights<Var>>,
    norm: Var,
    /// The LM head; the embedding itself if they are tied.
    head: Var,
    /// All weights, with their ranges in the flat vector.
    all: Vec<(Range<usize>, Var)>,
}

/// Moves rows of a matrix to other places. The backward pass moves them back. candle's own selection allows repeated rows, so its
/// backward pass adds them up one after the other.
#[derive(Clone)]
struct Move {
    /// For each place, the row that moves there.
    there: Tensor,
    /// For each row, the place that it moved to; the number of places if it moved nowhere.
    back: Tensor,
}

impl Move {
    fn new(there: Vec<u32>, back: Vec<u32>, device: &Device) -> Result<Self> {
        Ok(Move { there: Tensor::new(there, device)?, back: Tensor::new(back, device)? })
    }

    /// Returns the rows of `x`, `[rows, columns]`, in their new places.
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        x.contiguous()?.apply_op2(&self.there, self.clone())
    }

    fn select<S: BackendStorage>([x, ids]: [(&S, &Layout); 2]) -> Result<(S, Shape)> {
        let shape = Shape::from((ids.1.shape().elem_count(), x.1.dims()[1]));
        Ok((x.0.index_select(ids.0, x.1, ids.1, 0)?, shape))
    }
}

impl CustomOp2 for Move {
    fn name(&self) -> &'static str {
        "move"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        of_x: &Layout,
        ids: &CpuStorage,
        of_ids: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        Move::select([(x, of_x), (ids, of_ids)])
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        of_x: &Layout,
        ids: &CudaStorage,
        of_ids: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        Move::select([(x, of_x), (ids, of_ids)])
    }

    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        // The extra row of zeros at the end is for rows that moved nowhere.
        Ok((Some(grad.contiguous()?.pad_with_zeros(0, 0, 1)?.index_select(&self.back, 0)?), None))
    }
}

/// The rows of a pack grouped by document and padded to the longest document.
struct Places {
    /// Moves from the pack to `[documents * longest]`. Padding follows all tokens of its document, so they do not attend to it.
    pad: Move,
    /// Moves from there back to the pack.
    pack: Move,
    /// `[tokens]`: the position in the document.
    positions: Tensor,
    documents: usize,
    longest: usize,
    /// `[1, 1, longest, longest]`: 0, or -∞ for later keys.
    mask: Tensor,
}

impl Places {
    fn new(pack: &Pack, device: &Device) -> Result<Self> {
        let longest = pack.documents.iter().map(|rows| rows.len()).max().unwrap_or(0);
        let tokens = pack.tokens.len() as u32;
        let (mut padded, mut placed, mut packed, mut positions) = (vec![], vec![], vec![], vec![]);
        for (n, rows) in pack.documents.iter().enumerate() {
            placed.extend(rows.clone().map(|row| row as u32));
            // The number of tokens stands for no token: the backward pass reads a row of zeros there.
            placed.resize((n + 1) * longest, tokens);
            packed.extend((0..rows.len()).map(|at| (n * longest + at) as u32));
            positions.extend(0..rows.len() as u32);
        }
        // Padding reads row 0, whose content does not matter, because no token of the document attends to it.
        padded.extend(placed.iter().map(|&row| if row == tokens { 0 } else { row }));
        let mask: Vec<f32> = (0..longest)
            .flat_map(|row| (0..longest).map(move |key| if key > row { f32::NEG_INFINITY } else { 0.0 }))
            .collect();
        Ok(Places {
            pad: Move::new(padded, packed.clone(), device)?,
            pack: Move::new(packed, placed, device)?,
            positions: Tensor::new(positions, device)?,
            documents: pack.documents.len(),
            longest,
            mask: Tensor::from_vec(mask, (1, 1, longest, longest), device)?,
        })
    }
}

impl Autograd {
    /// Returns a decoder for documents of at most `longest` tokens.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn new(config: &Config, longest: usize, device: &Device) -> Result<Self> {
        let half = config.head_dim / 2;
        let [cos, sin] = rotary_tables(config, longest);
        Ok(Autograd {
            layout: ParameterLayout::new(config),
            config: config.clone(),
            device: device.clone(),
            cos: Tensor::from_vec(cos, (longest, half), device)?,
            sin: Tensor::from_vec(sin, (longest, half), device)?,
        })
    }

    /// Returns the weights of one step, copied to the device.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn weights(&self, flat: &[f32]) -> Result<RecordedWeights> {
        let (layout, hidden) = (&self.layout, self.config.hidden_size);
        let mut all = Vec::new();
        let mut add = |range: &Range<usize>, shape: &[usize]| {
            let var = Var::from_tensor(&Tensor::from_slice(&flat[range.clone()], shape, &self.device)?)?;
            all.push((range.clone(), var.clone()));
            Ok::<_, candle_core::Error>(var)
        };
        let matrix = |range: &Range<usize>, columns: usize| [range.len() / columns, columns];
        let embedding = add(&layout.embedding, &matrix(&layout.embedding, hidden))?;
        let mut layers = Vec::new();
        for layer in &layout.layers {
            let LayerWeights { input_norm, qkv, head_norms, output, post_norm, gate_up, down } = layer;
            let mut norm = |range: &Range<usize>| add(range, &[range.len()]);
            let (input_norm, post_norm) = (norm(input_norm)?, norm(post_norm)?);
            let head_norms =
                head_norms.as_ref().map(|[q, k]| Result::Ok([norm(q)?, norm(k)?])).transpose()?;
            let mut product = |range: &Range<usize>, columns| add(range, &matrix(range, columns));
            layers.push(LayerWeights {
                input_norm,
                qkv: product(qkv, hidden)?,
                head_norms,
                output: product(output, output.len() / hidden)?,
                post_norm,
                gate_up: product(gate_up, hidden)?,
                down: product(down, down.len() / hidden)?,
            });
        }
        let norm = add(&layout.norm, &[hidden])?;
        let head = match layout.head == layout.embedding {
            true => embedding.clone(),
            false => add(&layout.head, &matrix(&layout.head, hidden))?,
        };
        Ok(RecordedWeights { embedding, layers, norm, head, all })
    }

    /// Returns the weighted sum of the targets' cross-entropy over packs, and its gradient with respect to every weight, in the order of
    /// the layout.
    ///
    /// # Errors
    /// If the device fails, or has no room.
    pub fn gradient(&self, weights: &RecordedWeights, packs: &[Pack]) -> Result<(f64, Vec<f32>)> {
        let (mut sums, mut loss) = (vec![None; weights.all.len()], 0.0);
        for pack in packs.iter().filter(|pack| !pack.targets.is_empty()) {
            let nats = self.loss(weights, pack)?;
            let gradients = nats.backward()?;
            loss += f64::from(nats.to_scalar::<f32>()?);
            for (sum, (_, var)) in sums.iter_mut().zip(&weights.all) {
                let Some(gradient) = gradients.get(var) else { continue };
                *sum = Some(sum.take().map_or_else(|| Ok(gradient.clone()), |sum: Tensor| sum + gradient)?);
            }
        }
        let mut flat = vec![0.0; self.layout.size()];
        for (sum, (range, _)) in sums.into_iter().zip(&weights.all) {
            if let Some(sum) = sum {
                flat[range.clone()].copy_from_slice(&sum.flatten_all()?.to_vec1::<f32>()?);
            }
        }
        Ok((loss, flat))
    }

    /// Returns how well each target of a pack is predicted.
    ///
    /// # Errors
    /// If the device fails, or has no room.
    pub fn predict(&self, weights: &RecordedWeights, pack: &Pack) -> Result<Vec<Prediction>> {
        if pack.targets.is_empty() {
            return Ok(Vec::new());
        }
        let (logits, right) = self.logits(weights, pack)?;
        let nats = nats(&logits, &right)?.to_vec1::<f32>()?;
        // The logits are relative to the highest of their row, which is 0.
        let right = right.to_vec1::<f32>()?;
        let predictions = nats.into_iter().zip(right);
        Ok(predictions.map(|(nats, right)| Prediction { nats, right: right >= 0.0 }).collect())
    }

    fn loss(&self, weights: &RecordedWeights, pack: &Pack) -> Result<Tensor> {
        let counts: Vec<f32> = pack.targets.iter().map(|target| target.weight).collect();
        let (logits, right) = self.logits(weights, pack)?;
        (nats(&logits, &right)? * Tensor::new(counts, &self.device)?)?.sum_all()
    }

    /// Returns the logits of the targets' rows relative to the highest of each row, `[targets, vocabulary]`, and the logits of the
    /// targets.
    fn logits(&self, weights: &RecordedWeights, pack: &Pack) -> Result<(Tensor, Tensor)> {
        let (rows, ids): (Vec<u32>, Vec<u32>) =
            pack.targets.iter().map(|target| (target.row as u32, target.token)).unzip();
        let mut back = vec![rows.len() as u32; pack.tokens.len()];
        rows.iter().zip(0..).for_each(|(&row, place)| back[row as usize] = place);
        let hidden = Move::new(rows, back, &self.device)?.apply(&self.hidden(weights, pack)?)?;
        let logits = hidden.matmul(&weights.head.t()?)?;
        // Detached: subtracting a constant from every logit of a row changes no probability, so the constant has no gradient.
        let logits = logits.broadcast_sub(&logits.max_keepdim(1)?.detach())?;
        let right = logits.gather(&Tensor::new(ids, &self.device)?.unsqueeze(1)?, 1)?.squeeze(1)?;
        Ok((logits, right))
    }

    /// Returns the normed hidden states, `[tokens, hidden]`.
    fn hidden(&self, weights: &RecordedWeights, pack: &Pack) -> Result<Tensor> {
        let places = Places::new(pack, &self.device)?;
        let cos = self.cos.index_select(&places.positions, 0)?.unsqueeze(1)?;
        let sin = self.sin.index_select(&places.positions, 0)?.unsqueeze(1)?;
        let eps = self.config.rms_norm_eps as f32;
        let tokens = Tensor::new(&pack.tokens[..], &self.device)?;
        let mut x = weights.embedding.index_select(&tokens, 0)?;
        for layer in &weights.layers {
            let h = rms_norm_slow(&x, &layer.input_norm, eps)?.matmul(&layer.qkv.t()?)?;
            let h = self.attention(&h, layer, &places, (&cos, &sin))?;
            x = (x + h.matmul(&layer.output.t()?)?)?;
            let h = rms_norm_slow(&x, &layer.post_norm, eps)?.matmul(&layer.gate_up.t()?)?;
            let halves = h.chunk(2, 1)?;
            let h = (silu(&halves[0])? * &halves[1])?;
            x = (x + h.matmul(&layer.down.t()?)?)?;
        }
        rms_norm_slow(&x, &weights.norm, eps)
    }

    fn attention(
        &self,
        qkv: &Tensor,
        layer: &LayerWeights<Var>,
        places: &Places,
        (cos, sin): (&Tensor, &Tensor),
    ) -> Result<Tensor> {
        let (heads, pairs, dim) =
            (self.config.num_attention_heads, self.config.num_key_value_heads, self.config.head_dim);
        let (tokens, group) = (qkv.dim(0)?, heads / pairs);
        let eps = self.config.rms_norm_eps as f32;
        let qkv = qkv.reshape((tokens, heads + 2 * pairs, dim))?;
        let mut q = qkv.narrow(1, 0, heads)?;
        let mut k = qkv.narrow(1, heads, pairs)?;
        let v = qkv.narrow(1, heads + pairs, pairs)?;
        if let Some([q_norm, k_norm]) = &layer.head_norms {
            q = rms_norm_slow(&q, q_norm, eps)?;
            k = rms_norm_slow(&k, k_norm, eps)?;
        }
        let (documents, longest) = (places.documents, places.longest);
        let pad = |x: &Tensor, count: usize| {
            let rows = x.contiguous()?.reshape((tokens, count * dim))?;
            places.pad.apply(&rows)?.reshape((documents, longest, count, dim))?.transpose(1, 2)?.contiguous()
        };
        let q = (turn(&q, cos, sin)? * (1.0 / (dim as f64).sqrt()))?;
        // The query heads that share a key and value head are consecutive, so one product computes all of them.
        let q = pad(&q, heads)?.reshape((documents * pairs, group * longest, dim))?;
        let k = pad(&turn(&k, cos, sin)?, pairs)?.reshape((documents * pairs, longest, dim))?;
        let v = pad(&v, pairs)?.reshape((documents * pairs, longest, dim))?;
        let scores = q.matmul(&k.t()?)?.reshape((documents, heads, longest, longest))?;
        let scores = scores.broadcast_add(&places.mask)?;
        let top = scores.max_keepdim(D::Minus1)?.detach();
        let p = scores.broadcast_sub(&top)?.exp()?;
        let p = p.broadcast_div(&p.sum_keepdim(D::Minus1)?)?;
        let mixed = p.reshape((documents * pairs, group * longest, longest))?.matmul(&v)?;
        let mixed = mixed.reshape((documents, heads, longest, dim))?.transpose(1, 2)?.contiguous()?;
        places.pack.apply(&mixed.reshape((documents * longest, heads * dim))?)
    }
}

/// Returns the cross-entropy of each target, `[targets]`, from the result of [`Autograd::logits`].
fn nats(logits: &Tensor, right: &Tensor) -> Result<Tensor> {
    logits.exp()?.sum_keepdim(1)?.log()?.squeeze(1)? - right
}

/// Rotates heads `[tokens, heads, dim]` by the angles of their rows.
fn turn(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    let halves = x.chunk(2, 2)?;
    let (a, b) = (&halves[0], &halves[1]);
    let first = (a.broadcast_mul(cos)? - b.broadcast_mul(sin)?)?;
    let second = (b.broadcast_mul(cos)? + a.broadcast_mul(sin)?)?;
    Tensor::cat(&[first, second], 2)
}
