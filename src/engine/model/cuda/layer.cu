// The parts of a layer between the products and attention, with one block per token. Sums are f32.

// How many groups of four numbers a thread loads at once. After a store, the compiler cannot tell that the next load is from
// another address, and waits.
#define IN_FLIGHT 2

// Two groups of numbers that are used together.
struct Fours {
    Four a, b;
};

// Loads the data of the groups `first`, `first + step`, … below `count`, and passes it to `use`.
template <class Load, class Use>
__device__ __forceinline__ void through(u32 first, u32 step, u32 count, Load load_at, Use use) {
    for (u32 start = first; start < count; start += IN_FLIGHT * step) {
        Fours loaded[IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            // Beyond the end, `start` is loaded again and not used, so that there is no branch between the loads.
            u32 i = start + j * step;
            loaded[j] = load_at(4 * (i < count ? i : start));
        }
#pragma unroll
        for (int j = 0; j < IN_FLIGHT; j++) {
            u32 i = start + j * step;
            if (i < count) use(4 * i, loaded[j]);
        }
    }
}

__device__ __forceinline__ float squared(Four x) {
    return x.x[0] * x.x[0] + x.x[1] * x.x[1] + x.x[2] * x.x[2] + x.x[3] * x.x[3];
}

__device__ __forceinline__ Four times(Four x, float scale, Four weights) {
#pragma unroll
    for (int j = 0; j < 4; j++) x.x[j] = x.x[j] * scale * weights.x[j];
    return x;
}

// The second half of a norm: multiplies the numbers of a token by `scale` and by the weights.
__device__ __forceinline__ void scaled(const real *from, const real *weight, real *to, u32 columns, float scale) {
    through(
        threadIdx.x, blockDim.x, columns / 4, [&](u32 i) { return Fours{load_four(from + i), load_four(weight + i)}; },
        [&](u32 i, const Fours &x) { store_four(to + i, times(x.a, scale, x.b)); });
}

// Writes the numbers of a token, which `at(i)` returns four at a time, to `to`, and their RMS norm, x / √(Σx²/n + ε) · weight as in
// `model/kernels.rs`, to `normed`. If there is a thread for each four numbers, they stay in registers, and their weights are loaded
// with them.
template <class At>
__device__ __forceinline__ void keep_and_norm(At at, const real *weight, real *to, real *normed, u32 columns, float epsilon) {
    Four x, by;
    float squares = 0;
    for (u32 i = 4 * threadIdx.x; i < columns; i += 4 * blockDim.x) {
        by = load_four(weight + i);
        x = at(i);
        store_four(to + i, x);
        squares += squared(x);
    }
    float scale = 1.0f / sqrtf(block_sum(squares) / columns + epsilon);
    if (columns > 4 * blockDim.x) {
        // Each thread reads only what it wrote itself.
        scaled(to, weight, normed, columns, scale);
    } else if (4 * threadIdx.x < columns) {
        store_four(normed + 4 * threadIdx.x, times(x, scale, by));
    }
}

// Like `keep_and_norm`, for `hidden + added`; the token's numbers in `added` begin at `start`.
template <int PARTS>
__device__ __forceinline__ void add_and_norm(const real *hidden, const Sums &added, u64 start, const real *weight, real *to,
                                             real *normed, u32 columns, float epsilon) {
    auto sum_at = [&](u32 i) {
        Four sum = load_four(hidden + i), more = four_of<PARTS>(added, start + i);
#pragma unroll
        for (int j = 0; j < 4; j++) sum.x[j] = rounded(sum.x[j] + more.x[j]);
        return sum;
    };
    keep_and_norm(sum_at, weight, to, normed, columns, epsilon);
}

// `hidden[slot] = table[token]`, and `normed[slot]` is its norm.
// table [vocab, columns], tokens [slots], weight [columns]; hidden and normed [slots, columns]. Columns: a multiple of 4, as below.
// Grid: slots.
KERNEL(256) embed(const real *table, const u32 *tokens, const real *weight, real *hidden, real *normed, u32 vocab,
                  u32 columns, float epsilon) {
    begin();
    require_whole_warps();
    u64 slot = blockIdx.x, token = tokens[slot];
    require(token < vocab && columns % 4 == 0);
    const real *from = table + token * columns;
    auto number_at = [&](u32 i) { return load_four(from + i); };
    keep_and_norm(number_at, weight, hidden + slot * columns, normed + slot * columns, columns, epsilon);
}

// `hidden += added`, and `normed` is the norm of the sum.
// hidden, added, normed [slots, columns], weight [columns]. Grid: slots.
KERNEL(256) add_norm(real *hidden, Sums added, const real *weight, real *normed, u32 columns, float epsilon) {
    begin();
    require_whole_warps();
    require(columns % 4 == 0);
    u64 start = (u64)blockIdx.x * columns;
    real *to = hidden + start;
    BY_PARTS(added, add_and_norm, to, added, start, weight, to, normed + start, columns, epsilon);
}

// The norm of `hidden + added` for the last token of each row, before the LM head; rows without one are skipped.
// hidden, added [slots, columns], weight [columns], lasts [rows] slots or NONE, normed [rows, columns]. Grid: rows.
KERNEL(256) last_norm(const real *hidden, Sums added, const real *weight, const u32 *lasts, real *normed, u32 columns,
                      float epsilon) {
    begin();
    require_whole_warps();
    u64 row = blockIdx.x, slot = lasts[row];
    if (slot == NONE) return;
    require(columns % 4 == 0);
    u64 start = slot * columns;
    real *to = normed + row * columns;
    BY_PARTS(added, add_and_norm, hidden + start, added, start, weight, to, to, columns, epsilon);
}

template <int PARTS>
__device__ __forceinline__ void gate_slot(const Sums &gate_up, u64 gate, real *out, u32 inner) {
    through(
        blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, inner / 4,
        [&](u32 i) { return Fours{four_of<PARTS>(gate_up, gate + i), four_of<PARTS>(gate_up, gate + inner + i)}; },
        [&](u32 i, const Fours &x) {
            Four result;
#pragma unroll
            for (int j = 0; j < 4; j++) result.x[j] = x.a.x[j] / (1.0f + expf(-x.a.x[j])) * x.b.x[j];
            store_four(out + i, result);
        });
}

// `silu(gate) · up`, silu(x) = x / (1 + e⁻ˣ).
// gate_up [slots, 2 · inner], the gate first; out [slots, inner]. Inner: a multiple of 4. Grid: (parts of `inner`, slots).
KERNEL(256) gated(Sums gate_up, real *out, u32 inner) {
    begin();
    require(inner % 4 == 0);
    u64 slot = blockIdx.y, gate = slot * 2 * inner;
    BY_PARTS(gate_up, gate_slot, gate_up, gate, out + slot * inner, inner);
}

// Gathers rows of a matrix: the rows of the LM head for ids that are ever legal. Runs once, before the first step.
// table [vocab, columns], ids [count], out [count, columns]. Grid: count.
KERNEL(1024) gather(const real *table, const u32 *ids, real *out, u32 vocab, u32 columns) {
    begin();
    u64 id = ids[blockIdx.x];
    require(id < vocab);
    for (u32 i = threadIdx.x; i < columns; i += blockDim.x) {
        out[(u64)blockIdx.x * columns + i] = table[id * columns + i];
    }
}

// The LM head for few ids, with one warp per logit, because a library's product is inefficient for them.
// normed [rows, columns], head [count, columns], lasts [rows]; logits [rows, stride]. Grid: (parts of `count`, rows).
KERNEL(1024) head(const real *normed, const real *head, const u32 *lasts, float *logits, u32 columns, u32 count, u32 stride) {
    begin();
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
