//! The layers of a step: the addresses of weights, cache and buffers, and the launches.

use candle_core::Tensor;

use super::abi::{argument, words};
use super::gpu::Gpu;
use super::products::{Matrix, Products};
use super::width::{StepWidth, Widths};
use super::{ATTEND_THREADS, AttentionArguments, BatchArguments, SumsArguments, number_bytes};
use crate::model::{Cache, Decoder, KernelSteps, failed, rotary_tables};
use drift_core::Result;

/// How many numbers one thread processes in kernels with a block per token, and the largest number of threads of such a block.
const NUMBERS: usize = 4;
const MOST_THREADS: usize = 256;

/// How many numbers one thread of `gated` loads at once, and the number of threads of its block.
const GATED_NUMBERS: usize = 8;
const GATED_THREADS: usize = 128;

/// The desired least number of blocks of `attend`, so that every multiprocessor of an H100 (132) has several. Not measured yet.
const ATTEND_BLOCKS: usize = 512;

/// The number of blocks of `append_all` per row and head. Not measured yet.
const APPEND_PARTS: u32 = 4;

/// The largest number of threads of `pack`, which has a single block.
const PACK_THREADS: u32 = 1024;

/// The largest number of splits of the positions of a row, as in `attend.cu`. Not measured yet.
const MOST_SPLITS: usize = 16;

/// The addresses of a layer's weights and cache.
struct LayerPlaces {
    attention_norm: u64,
    qkv: Matrix,
    /// The weights of the norms of queries and keys, or zeros.
    head_norms: [u64; 2],
    output: Matrix,
    mlp_norm: u64,
    gate_up: Matrix,
    down: Matrix,
    keys: u64,
    values: u64,
}

/// The addresses of the buffers between the kernels of a step, indexed by slot.
struct Buffers {
    tokens: u64,
    owners: u64,
    runs: u64,
    lasts: u64,
    hidden: u64,
    normed: u64,
    qkv: u64,
    mixed: u64,
    added: u64,
    gate_up: u64,
    act: u64,
    /// `[rows, hidden]`
    last_normed: u64,
    parts: u64,
    tickets: u64,
    cosines: u64,
    sines: u64,
}

/// The sizes that the kernels get.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rows: usize,
    /// The largest number of slots of a step, and of a step that reads no prompts.
    most_slots: usize,
    few_slots: usize,
    vocab: usize,
    hidden: usize,
    inner: usize,
    kv_heads: usize,
    /// The number of positions of a row of the cache.
    capacity: usize,
    /// The number of positions of the rotary tables.
    positions: usize,
    widths: Widths,
    products: Products,
    epsilon: f32,
}

impl Sizes {
    /// Returns how many parts the positions of a row are split into: the fewer rows, the more parts per row.
    fn splits(&self, width: StepWidth) -> usize {
        let blocks = self.kv_heads * self.widths.rows(width);
        if width.reads_prompts { 1 } else { (ATTEND_BLOCKS / blocks).clamp(1, MOST_SPLITS) }
    }
}

/// The layers of a model on a device.
pub(super) struct Layers {
    sizes: Sizes,
    embedding: u64,
    layers: Vec<LayerPlaces>,
    norm: u64,
    buffers: Buffers,
}

impl Layers {
    /// Allocates memory for steps of these widths. `steps` says whether drift's kernels do the products.
    ///
    /// # Errors
    /// If the device has no room, or a weight is not on the device.
    pub(super) fn new(
        gpu: &mut dyn Gpu,
        (decoder, cache): (&Decoder, &Cache),
        (widths, steps): (Widths, KernelSteps),
    ) -> Result<Self> {
        let config = decoder.config();
        let weights = decoder.tensors();
        let (rows, capacity) = (cache.rows(), cache.positions());
        let kv_heads = config.num_key_value_heads;
        let sizes = Sizes {
            rows,
            most_slots: widths.most(),
            few_slots: widths.few(),
            vocab: config.vocab_size,
            hidden: config.hidden_size,
            inner: config.intermediate_size,
            kv_heads,
            capacity,
            // The spare position of candle's operations is never read.
            positions: capacity.min(config.max_position_embeddings),
            widths,
            products: Products {
                own: steps.own_products,
                number_bytes: number_bytes(decoder.device().dtype())?,
            },
            epsilon: config.rms_norm_eps as f32,
        };
        let sides: Vec<&Tensor> = cache.tensors().collect();
        let layers = weights.layers.iter().zip(sides.chunks_exact(2)).map(|(layer, sides)| {
            let mut matrix = |(weight, transposed): (&Tensor, bool)| -> Result<Matrix> {
                let (rows, columns) = weight.dims2().map_err(failed)?;
                let (terms, columns) = if transposed { (columns, rows) } else { (rows, columns) };
                Ok(Matrix { address: gpu.address(weight)?, terms, columns, transposed })
            };
            let [qkv, output, gate_up, down] = layer.matrices;
            let [qkv, output, gate_up, down] =
                [matrix(qkv)?, matrix(output)?, matrix(gate_up)?, matrix(down)?];
            let head_norms = match layer.head_norms {
                Some([queries, keys]) => [gpu.address(queries)?, gpu.address(keys)?],
                None => [0; 2],
            };
            let [attention_norm, mlp_norm] = [gpu.address(layer.norms[0])?, gpu.address(layer.norms[1])?];
            let [keys, values] = [gpu.address(sides[0])?, gpu.address(sides[1])?];
            Ok(LayerPlaces { attention_norm, qkv, head_norms, output, mlp_norm, gate_up, down, keys, values })
        });
        let layers: Vec<LayerPlaces> = layers.collect::<Result<_>>()?;
        let heads = config.num_attention_heads;
        let buffers = Buffers::new(gpu, sizes, (heads, config.head_dim), layers.first())?;
        for (table, address) in
            rotary_tables(config, sizes.positions).iter().zip([buffers.cosines, buffers.sines])
        {
            gpu.write(address, &table.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())?;
        }
        let [embedding, norm] = [gpu.address(weights.embedding)?, gpu.address(weights.norm)?];
        Ok(Layers { sizes, embedding, layers, norm, buffers })
    }

    /// Returns the slot of each row's last token, `[rows]`.
    pub(super) fn lasts(&self) -> u64 {
        self.buffers.lasts
    }

    /// Returns the number of columns of a hidden state.
    pub(super) fn columns(&self) -> usize {
        self.sizes.hidden
    }

    /// Packs the unread tokens into slots and launches all layers. Returns the address of the normed hidden states of the rows'
    /// last tokens, `[rows, hidden]`.
    pub(super) fn launch(&self, gpu: &mut dyn Gpu, batch: &BatchArguments, width: StepWidth) -> Result<u64> {
        let (sizes, buffers) = (self.sizes, &self.buffers);
        let slots = [width.slots as u32, 1, 1];
        let arrays = [buffers.tokens, buffers.owners, buffers.runs, buffers.lasts].map(argument);
        let arguments = [&[batch.bytes(), words(&[slots[0]])][..], &arrays].concat();
        let of_pack = batch.count.max(slots[0].min(PACK_THREADS)).next_multiple_of(32);
        gpu.launch("pack", [1; 3], of_pack, &arguments)?;
        let threads = sizes.hidden.div_ceil(NUMBERS).min(MOST_THREADS).next_multiple_of(32) as u32;
        let tail = [words(&[sizes.hidden as u32]), words(&[sizes.epsilon.to_bits()])];
        let first = self.layers.first().map_or(self.norm, |layer| layer.attention_norm);
        let arrays = [self.embedding, buffers.tokens, first, buffers.hidden, buffers.normed].map(argument);
        let arguments = [&arrays[..], &[words(&[sizes.vocab as u32])], &tail].concat();
        gpu.launch("embed", slots, threads, &arguments)?;
        let add_norm = |gpu: &mut dyn Gpu, added: SumsArguments, weight: u64| {
            let arrays =
                [argument(buffers.hidden), added.bytes(), argument(weight), argument(buffers.normed)];
            gpu.launch("add_norm", slots, threads, &[&arrays[..], &tail].concat())
        };
        let product = |gpu: &mut dyn Gpu, x: u64, matrix: Matrix, out: u64| {
            sizes.products.launch(gpu, (x, matrix), out, width.slots)
        };
        let mut added = SumsArguments::whole(buffers.added);
        for (at, layer) in self.layers.iter().enumerate() {
            let qkv = product(gpu, buffers.normed, layer.qkv, buffers.qkv)?;
            self.attend(gpu, (layer, qkv), width)?;
            added = product(gpu, buffers.mixed, layer.output, buffers.added)?;
            add_norm(gpu, added, layer.mlp_norm)?;
            let gate_up = product(gpu, buffers.normed, layer.gate_up, buffers.gate_up)?;
            let arguments = [gate_up.bytes(), argument(buffers.act), words(&[sizes.inner as u32])];
            let (parts, threads) =
                (sizes.inner.div_ceil(GATED_NUMBERS * GATED_THREADS) as u32, GATED_THREADS as u32);
            gpu.launch("gated", [parts, slots[0], 1], threads, &arguments)?;
            added = product(gpu, buffers.act, layer.down, buffers.added)?;
            if let Some(next) = self.layers.get(at + 1) {
                add_norm(gpu, added, next.attention_norm)?;
            }
        }
        let arrays = [self.norm, buffers.lasts, buffers.last_normed].map(argument);
        let arguments = [&[argument(buffers.hidden), added.bytes()][..], &arrays, &tail].concat();
        gpu.launch("last_norm", [sizes.rows as u32, 1, 1], threads, &arguments)?;
        Ok(buffers.last_normed)
    }

    fn attend(
        &self,
        gpu: &mut dyn Gpu,
        (layer, qkv): (&LayerPlaces, SumsArguments),
        width: StepWidth,
    ) -> Result<()> {
        let (sizes, buffers) = (self.sizes, &self.buffers);
        let arguments = AttentionArguments {
            qkv,
            keys: layer.keys,
            values: layer.values,
            cosines: buffers.cosines,
            sines: buffers.sines,
            query_norm: layer.head_norms[0],
            key_norm: layer.head_norms[1],
            parts: buffers.parts,
            tickets: buffers.tickets,
            kv_heads: sizes.kv_heads as u32,
            capacity: sizes.capacity as u32,
            positions: sizes.positions as u32,
            epsilon: sizes.epsilon,
        };
        let (layer, runs, kv_heads) = (arguments.bytes(), argument(buffers.runs), sizes.kv_heads as u32);
        let splits = sizes.splits(width) as u32;
        if width.reads_prompts {
            let grid = [APPEND_PARTS, kv_heads, sizes.rows as u32];
            gpu.launch("append_all", grid, ATTEND_THREADS, &[layer.clone(), runs.clone()])?;
        }
        let appends = words(&[u32::from(!width.reads_prompts)]);
        let arguments = [layer, runs, argument(buffers.owners), argument(buffers.mixed), appends];
        gpu.launch("attend", [splits, kv_heads, width.slots as u32], ATTEND_THREADS, &arguments)
    }
}

impl Buffers {
    /// Buffers for layers that all have the shapes of the first one.
    fn new(
        gpu: &mut dyn Gpu,
        sizes: Sizes,
        (heads, dim): (usize, usize),
        layer: Option<&LayerPlaces>,
    ) -> Result<Self> {
        let Sizes { rows, most_slots: slots, hidden, inner, kv_heads, positions, products, .. } = sizes;
        let bytes = products.number_bytes;
        let result = |matrix: fn(&LayerPlaces) -> Matrix| {
            layer.map_or(0, |layer| products.result_bytes(matrix(layer), slots))
        };
        let of_width = |width: StepWidth| match sizes.splits(width) {
            1 => 0,
            splits => width.slots * splits,
        };
        let parts = sizes.widths.without_prompts().map(of_width).max().unwrap_or(0);
        let parts = 4 * parts * heads * (dim + 2);
        let table = 4 * positions * dim / 2;
        Ok(Buffers {
            tokens: gpu.allocate(4 * slots)?,
            owners: gpu.allocate(4 * slots)?,
            runs: gpu.allocate(16 * rows)?,
            lasts: gpu.allocate(4 * rows)?,
            hidden: gpu.allocate(bytes * slots * hidden)?,
            normed: gpu.allocate(bytes * slots * hidden)?,
            qkv: gpu.allocate(result(|layer| layer.qkv))?,
            mixed: gpu.allocate(bytes * slots * heads * dim)?,
            added: gpu.allocate(result(|layer| layer.output).max(result(|layer| layer.down)))?,
            gate_up: gpu.allocate(result(|layer| layer.gate_up))?,
            act: gpu.allocate(bytes * slots * inner)?,
            last_normed: gpu.allocate(bytes * rows * hidden)?,
            parts: if parts > 0 { gpu.allocate(parts)? } else { 0 },
            tickets: gpu.allocate(4 * sizes.few_slots * kv_heads)?,
            cosines: gpu.allocate(table)?,
            sines: gpu.allocate(table)?,
        })
    }
}
