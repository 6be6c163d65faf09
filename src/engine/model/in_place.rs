//! Products on the CPU with weights as checkpoints store them, `[out, in]`: those of the layers and of the LM head, or of some rows
//! of the LM head.

use candle_core::{CpuStorage, CustomOp2, DType, Layout, Result, Shape, Tensor, bail};

use super::product::{is_fast, product};

/// Returns whether drift's own product reads these weights (`[out, in]`, f32 or bf16). candle's product repacks them in each call, and
/// sums bf16 in bf16.
pub(super) fn is_read_in_place(weight: &Tensor) -> bool {
    let dtype = weight.dtype();
    weight.device().is_cpu() && (dtype == DType::BF16 || dtype == DType::F32 && is_fast())
}

/// `x · weightᵀ` for `[rows, in]` and `[out, in]`: `[rows, out]`, or only the columns `ids`, `[rows, ids]`, bit-identical to these
/// columns of the whole product. `x` and the result are f32.
pub(super) fn product_in_place(x: &Tensor, weight: &Tensor, ids: Option<&[u32]>) -> Result<Tensor> {
    x.contiguous()?.apply_op2_no_bwd(weight, &InPlace { ids })
}

/// The product with weights that are read where they are stored.
struct InPlace<'i> {
    ids: Option<&'i [u32]>,
}

impl CustomOp2 for InPlace<'_> {
    fn name(&self) -> &'static str {
        "product-in-place"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let ((rows, terms), (out, inputs)) = (x_layout.shape().dims2()?, weight_layout.shape().dims2()?);
        if terms != inputs {
            bail!("{terms} columns by weights of {inputs}");
        }
        // The kernel does not check indices, so ids are checked once here.
        if let Some(id) = self.ids.and_then(|ids| ids.iter().find(|id| **id as usize >= out)) {
            bail!("row {id} of {out}");
        }
        let (Some(x_at), Some(weight_at)) =
            (x_layout.contiguous_offsets(), weight_layout.contiguous_offsets())
        else {
            bail!("not contiguous: {x_layout:?}, {weight_layout:?}");
        };
        let x = &x.as_slice::<f32>()?[x_at.0..x_at.1];
        let weight_at = weight_at.0..weight_at.1;
        let found = match weight {
            CpuStorage::F32(weight) => product(x, &weight[weight_at], self.ids, terms),
            CpuStorage::BF16(weight) => product(x, &weight[weight_at], self.ids, terms),
            _ => bail!("weights that are neither f32 nor bf16"),
        };
        Ok((CpuStorage::F32(found), (rows, self.ids.map_or(out, <[u32]>::len)).into()))
    }
}
