//! The trainer's decoder again, obviously right: candle operations with derivatives of their own, `f64`, no packing.

use candle_core::{DType, Device, Tensor, Var};
use drift::model::Config;
use drift::train::network::Pack;
use drift::train::parameters::ParameterLayout;

type Result<T> = candle_core::Result<T>;

/// The loss of a pack and its gradient by every parameter, in the order of the layout.
pub(crate) fn reference(
    config: &Config,
    layout: &ParameterLayout,
    flat: &[f32],
    pack: &Pack,
) -> (f64, Vec<Vec<f64>>) {
    compute(config, layout, flat, pack).unwrap()
}

fn compute(
    config: &Config,
    layout: &ParameterLayout,
    flat: &[f32],
    pack: &Pack,
) -> Result<(f64, Vec<Vec<f64>>)> {
    let vars = layout.parameters.iter().map(|parameter| {
        let tensor = Tensor::from_slice(&flat[parameter.range.clone()], &*parameter.shape, &Device::Cpu)?;
        Var::from_tensor(&tensor.to_dtype(DType::F64)?)
    });
    let vars = vars.collect::<Result<Vec<_>>>()?;
    let of = |name: &str| {
        let at = layout.parameters.iter().position(|parameter| parameter.name == format!("{name}.weight"));
        at.map(|at| vars[at].as_tensor().clone())
    };
    let mut loss = Tensor::zeros((), DType::F64, &Device::Cpu)?;
    for rows in &pack.documents {
        let logits = logits(config, &of, &pack.tokens[rows.clone()])?;
        let log = candle_nn::ops::log_softmax(&logits, 1)?;
        for target in pack.targets.iter().filter(|target| rows.contains(&target.row)) {
            let nats = log.get(target.row - rows.start)?.get(target.token as usize)?;
            loss = (loss - (nats * f64::from(target.weight))?)?;
        }
    }
    let gradients = loss.backward()?;
    let gradient = |var: &Var| gradients.get(var).unwrap().flatten_all()?.to_vec1::<f64>();
    Ok((loss.to_scalar()?, vars.iter().map(gradient).collect::<Result<_>>()?))
}

/// `[tokens, vocabulary]`.
fn logits(config: &Config, of: &dyn Fn(&str) -> Option<Tensor>, tokens: &[u32]) -> Result<Tensor> {
    let table = of("model.embed_tokens").unwrap();
    let mut x = table.index_select(&Tensor::new(tokens, &Device::Cpu)?, 0)?;
    for layer in 0..config.num_hidden_layers {
        let part = |name: &str| of(&format!("model.layers.{layer}.{name}"));
        let product = |x: &Tensor, name: &str| x.matmul(&part(name).unwrap().t()?);
        let normed = norm(config, &x, &part("input_layernorm").unwrap())?;
        x = (&x + product(&attention(config, &part, &normed)?, "self_attn.o_proj")?)?;
        let normed = norm(config, &x, &part("post_attention_layernorm").unwrap())?;
        let gate = product(&normed, "mlp.gate_proj")?;
        let silu = (&gate / ((gate.neg()?.exp()? + 1.0)?))?;
        x = (&x + product(&(silu * product(&normed, "mlp.up_proj")?)?, "mlp.down_proj")?)?;
    }
    norm(config, &x, &of("model.norm").unwrap())?.matmul(&table.t()?)
}

/// RMS norm of the last dimension.
fn norm(config: &Config, x: &Tensor, scale: &Tensor) -> Result<Tensor> {
    let mean = (x.sqr()?.mean_keepdim(x.rank() - 1)? + config.rms_norm_eps)?;
    x.broadcast_div(&mean.sqrt()?)?.broadcast_mul(scale)
}

fn attention(config: &Config, part: &dyn Fn(&str) -> Option<Tensor>, x: &Tensor) -> Result<Tensor> {
    let (length, dim) = (x.dim(0)?, config.head_dim);
    // (heads, length, dim)
    let heads = |name: &str, count: usize, norm_name: Option<&str>| {
        let projected = x.matmul(&part(name).unwrap().t()?)?;
        let heads = projected.reshape((length, count, dim))?.transpose(0, 1)?.contiguous()?;
        match norm_name {
            None => Ok(heads),
            Some(norm_name) => {
                let heads =
                    part(norm_name).map_or(Ok(heads.clone()), |scale| norm(config, &heads, &scale))?;
                rotate(config, &heads)
            }
        }
    };
    let (queries, pairs) = (config.num_attention_heads, config.num_key_value_heads);
    let q = heads("self_attn.q_proj", queries, Some("self_attn.q_norm"))?;
    let spread = |x: Tensor| {
        let group = config.group_size();
        x.unsqueeze(1)?
            .broadcast_as((pairs, group, length, dim))?
            .contiguous()?
            .reshape((queries, length, dim))
    };
    let k = spread(heads("self_attn.k_proj", pairs, Some("self_attn.k_norm"))?)?;
    let v = spread(heads("self_attn.v_proj", pairs, None)?)?;
    let mask: Vec<f64> = (0..length)
        .flat_map(|row| (0..length).map(move |column| if column > row { f64::NEG_INFINITY } else { 0.0 }))
        .collect();
    let mask = Tensor::from_vec(mask, (1, length, length), &Device::Cpu)?;
    let scores = (q.matmul(&k.t()?.contiguous()?)? / (dim as f64).sqrt())?.broadcast_add(&mask)?;
    let mixed = candle_nn::ops::softmax(&scores, 2)?.matmul(&v)?;
    mixed.transpose(0, 1)?.contiguous()?.reshape((length, queries * dim))
}

/// `x cos + rotate_half(x) sin`, as Hugging Face writes it.
fn rotate(config: &Config, x: &Tensor) -> Result<Tensor> {
    let (_, length, dim) = x.dims3()?;
    let angle = |position: usize, column: usize| {
        let exponent = -2.0 * (column % (dim / 2)) as f64 / dim as f64;
        position as f64 * config.rope_theta.powf(exponent)
    };
    let table = |f: fn(f64) -> f64| {
        let values = (0..length).flat_map(|p| (0..dim).map(move |c| (p, c))).map(|(p, c)| f(angle(p, c)));
        Tensor::from_vec(values.collect::<Vec<_>>(), (1, length, dim), &Device::Cpu)
    };
    let halves = [x.narrow(2, dim / 2, dim / 2)?.neg()?, x.narrow(2, 0, dim / 2)?];
    let turned = Tensor::cat(&halves, 2)?;
    x.broadcast_mul(&table(f64::cos)?)? + turned.broadcast_mul(&table(f64::sin)?)?
}
