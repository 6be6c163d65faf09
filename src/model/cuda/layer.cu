// The parts of a layer between the products and the attention. A block for each token; sums in f32.

// Numbers, or pairs of them, of a thread whose loads are in flight together. A compiler that sees a store cannot tell that the next
// load is of something else, and waits.
#define IN_FLIGHT 4

// Two numbers that are used together.
struct Pair {
    float a, b;
};

// Loads what belongs to the numbers `first`, `first + step`, … below `count`, and uses it.
template <class Load, class Use>
__device__ __forceinline__ void through(u32 first, u32 step, u32 count, Load load_at, Use use) {
    for (u32 start = first; start < count; start += IN_FLIGHT * step) {
        Pair loaded[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            // What is not there is loaded once more, and not used: no branch between the loads.
            u32 i = start + j * step;
            loaded[j] = load_at(i < count ? i : start);
        }
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            u32 i = start + j * step;
            if (i < count) use(i, loaded[j]);
        }
    }
}

// A norm's second half: the numbers of a token, scaled, by its weights.
__device__ __forceinline__ void scaled(const real *from, const real *weight, real *to, u32 columns, float scale) {
    through(
        threadIdx.x, blockDim.x, columns, [&](u32 i) { return Pair{load(from + i), load(weight + i)}; },
        [&](u32 i, Pair x) { store(to + i, x.a * scale * x.b); });
}

// `hidden[slot] = table[token]`, and `normed[slot]` the norm of it.
// table [vocab, columns], tokens [slots], weight [columns]; hidden and normed [slots, columns]. Grid: slots.
KERNEL(1024) embed(const real *table, const u32 *tokens, const real *weight, real *hidden, real *normed, u32 vocab,
                   u32 columns, float epsilon) {
    require_whole_warps();
    u64 slot = blockIdx.x, token = tokens[slot];
    require(token < vocab);
    const real *from = table + token * columns;
    real *to = hidden + slot * columns;
    float squares = 0;
    through(
        threadIdx.x, blockDim.x, columns, [&](u32 i) { return Pair{load(from + i), 0}; },
        [&](u32 i, Pair x) {
            store(to + i, x.a);
            squares += x.a * x.a;
        });
    scaled(from, weight, normed + slot * columns, columns, 1.0f / sqrtf(block_sum(squares) / columns + epsilon));
}

// `hidden += added`, and `normed` the root-mean-square norm of the sum: x / √(Σx²/n + ε) · weight, as `model/kernels.rs`.
// hidden, added, normed [slots, columns], weight [columns]. Grid: slots.
KERNEL(1024) add_norm(real *hidden, const real *added, const real *weight, real *normed, u32 columns, float epsilon) {
    require_whole_warps();
    u64 start = (u64)blockIdx.x * columns;
    float squares = 0;
    through(
        threadIdx.x, blockDim.x, columns, [&](u32 i) { return Pair{load(hidden + start + i), load(added + start + i)}; },
        [&](u32 i, Pair x) {
            float sum = rounded(x.a + x.b);
            store(hidden + start + i, sum);
            squares += sum * sum;
        });
    // Each thread reads what it wrote itself.
    float scale = 1.0f / sqrtf(block_sum(squares) / columns + epsilon);
    scaled(hidden + start, weight, normed + start, columns, scale);
}

// The norm of `hidden + added` for the last token of each row, before the LM head; nothing for rows that have none.
// hidden, added [slots, columns], weight [columns], lasts [rows] slots or NONE, normed [rows, columns]. Grid: rows.
KERNEL(1024) last_norm(const real *hidden, const real *added, const real *weight, const u32 *lasts, real *normed, u32 columns,
                       float epsilon) {
    require_whole_warps();
    u64 row = blockIdx.x, slot = lasts[row];
    if (slot == NONE) return;
    const real *a = hidden + slot * columns, *b = added + slot * columns;
    float squares = 0;
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) {
        float x = rounded(load(a + i) + load(b + i));
        squares += x * x;
    }
    float scale = 1.0f / sqrtf(block_sum(squares) / columns + epsilon);
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) {
        float x = rounded(load(a + i) + load(b + i));
        store(normed + row * columns + i, x * scale * load(weight + i));
    }
}

// `silu(gate) · up`, silu(x) = x / (1 + e⁻ˣ).
// gate_up [slots, 2 · inner], the gate first; out [slots, inner]. Grid: (parts of `inner`, slots).
KERNEL(1024) gated(const real *gate_up, real *out, u32 inner) {
    u64 slot = blockIdx.y;
    const real *gate = gate_up + slot * 2 * inner, *up = gate + inner;
    through(
        blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, inner,
        [&](u32 i) { return Pair{load(gate + i), load(up + i)}; },
        [&](u32 i, Pair x) { store(out + slot * inner + i, x.a / (1.0f + expf(-x.a)) * x.b); });
}

// Rows of a matrix: the LM head of the ids that are legal somewhere. Made once, before the first step.
// table [vocab, columns], ids [count], out [count, columns]. Grid: count.
KERNEL(1024) gather(const real *table, const u32 *ids, real *out, u32 vocab, u32 columns) {
    u64 id = ids[blockIdx.x];
    require(id < vocab);
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) {
        out[(u64)blockIdx.x * columns + i] = table[id * columns + i];
    }
}

// The LM head for few ids, a warp for each logit: what a product in libraries is too large for.
// normed [rows, columns], head [count, columns], lasts [rows]; logits [rows, stride]. Grid: (parts of `count`, rows).
KERNEL(1024) head(const real *normed, const real *head, const u32 *lasts, float *logits, u32 columns, u32 count, u32 stride) {
    require_whole_warps();
    u64 row = blockIdx.y;
    if (lasts[row] == NONE) return;
    u32 lane = threadIdx.x % LANES, warps = blockDim.x / LANES;
    const real *x = normed + row * columns;
    for (u32 at = blockIdx.x * warps + threadIdx.x / LANES; at < count; at += gridDim.x * warps) {
        const real *weight = head + (u64)at * columns;
        float sum = 0;
#pragma unroll 8
        for (u32 i = lane; i < columns; i += LANES) sum += load(x + i) * load(weight + i);
        sum = warp_sum(sum);
        if (lane == 0) logits[row * stride + at] = sum;
    }
}
