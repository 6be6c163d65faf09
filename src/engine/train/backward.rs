//! The backward pass through a decoder: the gradients with respect to every weight.

use std::ops::Range;

use candle_core::{Result, Tensor};

use super::attention::attend_backward;
use super::kernels::{add, rms_norm_backward, swiglu_backward};
use super::network::{Forward, Layer, Network, Pack};
use super::parameters::{LayerLayout, LayerMatrices, WeightTensors};
use super::tensors::{matrix, values};

/// The gradient as it is summed, in the order of the layout.
struct Gradient<'w> {
    sum: Vec<f32>,
    weights: &'w WeightTensors<'w>,
}

impl Gradient<'_> {
    /// Adds the gradient of `y = x wᵀ` with respect to `w`.
    fn product(&mut self, w: &Range<usize>, dy: &Tensor, x: &Tensor) -> Result<()> {
        add(&mut self.sum[w.clone()], &values(&dy.t()?.matmul(x)?)?);
        Ok(())
    }

    /// Adds the gradient of a norm with respect to its scale; adds the gradient with respect to `x` to `dx`.
    fn norm(&mut self, scale: &Range<usize>, dy: &[f32], (x, inverse): (&[f32], &[f32]), dx: &mut [f32]) {
        let values = &self.weights.values[scale.clone()];
        rms_norm_backward(dy, x, values, inverse, dx, &mut self.sum[scale.clone()]);
    }
}

impl Network {
    /// Returns the weighted sum of the targets' cross-entropy, and its gradient with respect to every weight, in the order of the layout.
    ///
    /// # Errors
    /// If candle refuses a product.
    pub fn gradient(&self, weights: &WeightTensors<'_>, pack: &Pack) -> Result<(f64, Vec<f32>)> {
        let Forward { layers, output, output_inverse, normed } = self.forward(weights, pack)?;
        let logits = normed.matmul(&weights.head.t()?)?;
        let (predictions, dlogits) = self.judge(&values(&logits)?, pack);
        // Logits are the largest matrix of a pack, so they are dropped as soon as their gradient exists.
        drop(logits);
        let dlogits = matrix(dlogits, self.layout.embedding.len() / self.hidden)?;
        let mut gradient = Gradient { sum: vec![0.0; self.layout.size()], weights };
        gradient.product(&self.layout.head, &dlogits, &normed)?;
        let dnormed = dlogits.matmul(&weights.head)?;
        let mut dx = vec![0.0; output.len()];
        gradient.norm(&self.layout.norm, &values(&dnormed)?, (&output, &output_inverse), &mut dx);
        for ((layout, matrices), layer) in self.layout.layers.iter().zip(&weights.layers).zip(layers).rev() {
            let dmiddle = self.mlp_backward(&mut gradient, layout, matrices, &layer, dx)?;
            dx = self.attention_backward(&mut gradient, layout, matrices, &layer, dmiddle, pack)?;
        }
        // Added to the gradient of the head: if the two are tied they are the same range.
        let embedding = &mut gradient.sum[self.layout.embedding.clone()];
        for (token, dx) in pack.tokens.iter().zip(dx.chunks_exact(self.hidden)) {
            let row = *token as usize * self.hidden;
            add(&mut embedding[row..row + self.hidden], dx);
        }
        let weighted = pack.targets.iter().zip(&predictions);
        let loss = weighted.map(|(target, p)| f64::from(target.weight) * f64::from(p.nats)).sum();
        Ok((loss, gradient.sum))
    }

    /// From the gradient with respect to a layer's output to the gradient with respect to its state between attention and MLP.
    fn mlp_backward(
        &self,
        gradient: &mut Gradient<'_>,
        layout: &LayerLayout,
        matrices: &LayerMatrices,
        layer: &Layer,
        doutput: Vec<f32>,
    ) -> Result<Vec<f32>> {
        let doutput = matrix(doutput, self.hidden)?;
        gradient.product(&layout.down, &doutput, &layer.activated)?;
        let dactivated = doutput.matmul(&matrices.down)?;
        let dgate_up = swiglu_backward(&values(&dactivated)?, &values(&layer.gate_up)?, self.inner);
        let dgate_up = matrix(dgate_up, 2 * self.inner)?;
        gradient.product(&layout.gate_up, &dgate_up, &layer.middle_normed)?;
        let dnormed = dgate_up.matmul(&matrices.gate_up)?;
        // The residual path passes the gradient on unchanged, and the gradient of the norm is added to it.
        let mut dmiddle = values(&doutput)?.to_vec();
        let middle = (&*layer.middle, &*layer.middle_inverse);
        gradient.norm(&layout.post_norm, &values(&dnormed)?, middle, &mut dmiddle);
        Ok(dmiddle)
    }

    /// From the gradient with respect to a layer's state between attention and MLP to the gradient with respect to its input.
    fn attention_backward(
        &self,
        gradient: &mut Gradient<'_>,
        layout: &LayerLayout,
        matrices: &LayerMatrices,
        layer: &Layer,
        dmiddle: Vec<f32>,
        pack: &Pack,
    ) -> Result<Vec<f32>> {
        let dmiddle = matrix(dmiddle, self.hidden)?;
        gradient.product(&layout.output, &dmiddle, &layer.mixed)?;
        let dmixed = dmiddle.matmul(&matrices.output)?;
        let [mut dq, mut dk, dv] =
            attend_backward(&dmixed, &layer.qkv, &layer.probabilities, &pack.documents, self.heads)?;
        // The backward pass of a rotation is the inverse rotation.
        self.turn(&mut dq, pack, true);
        self.turn(&mut dk, pack, true);
        if let (Some(norms), Some(before)) = (&layout.head_norms, &layer.head_norms) {
            for ((d, norm), (x, inverse)) in [&mut dq, &mut dk].into_iter().zip(norms).zip(before) {
                let mut dx = vec![0.0; d.len()];
                gradient.norm(norm, d, (x, inverse), &mut dx);
                *d = dx;
            }
        }
        let dprojected = matrix(self.join([&dq, &dk, &dv]), layout.qkv.len() / self.hidden)?;
        gradient.product(&layout.qkv, &dprojected, &layer.normed)?;
        let dnormed = dprojected.matmul(&matrices.qkv)?;
        let mut dinput = values(&dmiddle)?.to_vec();
        let input = (&*layer.input, &*layer.input_inverse);
        gradient.norm(&layout.input_norm, &values(&dnormed)?, input, &mut dinput);
        Ok(dinput)
    }

    /// Rows of the form `[queries | keys | values]`.
    fn join(&self, [q, k, v]: [&[f32]; 3]) -> Vec<f32> {
        let [wide, narrow] = [self.heads.queries, self.heads.kv_heads].map(|heads| heads * self.heads.dim);
        let rows = q.chunks_exact(wide).zip(k.chunks_exact(narrow)).zip(v.chunks_exact(narrow));
        rows.flat_map(|((q, k), v)| [q, k, v]).collect::<Vec<_>>().concat()
    }
}
