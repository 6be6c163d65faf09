// Attention of steps that read prompts: many new tokens of few rows. Where `attend` takes the new tokens of a row one after the
// other, here each has a block of its own. For that all keys and values are written before, by another launch.

// Writes the keys and values of all new tokens. runs [rows]. Grid: (parts, kv heads, rows), ATTEND_THREADS threads.
KERNEL(ATTEND_THREADS) append_each(Attention layer, const Run *runs) {
    require(blockDim.x == ATTEND_THREADS && gridDim.y == layer.kv_heads);
    u32 row = blockIdx.z, first = blockIdx.x * ATTEND_WARPS + threadIdx.x / LANES;
    Run run = runs[row];
    if (run.count == 0) return;
    u32 length = run.position + run.count;
    require(length <= layer.capacity && length <= layer.positions);
    append(layer, run, row, blockIdx.y, 0, length, first, gridDim.x * ATTEND_WARPS);
}

// Attends behind `append_each`: out [slots, queries · HEAD_DIM]; runs [rows]; owners [slots], the rows that slots belong to, or
// NONE. Grid: (1, kv heads, slots), ATTEND_THREADS threads.
KERNEL(ATTEND_THREADS) attend_each(Attention layer, const Run *runs, const u32 *owners, real *out) {
    __shared__ Exchange shared;
    require(blockDim.x == ATTEND_THREADS && gridDim.x == 1 && gridDim.y == layer.kv_heads);
    u32 head = blockIdx.y, slot = blockIdx.z, row = owners[slot], queries = layer.kv_heads * GROUP;
    if (row == NONE) return;
    Run run = runs[row];
    u32 at = run.position + slot - run.first;
    require(at < layer.capacity && at < layer.positions);
    u64 start = ((u64)row * layer.kv_heads + head) * layer.capacity * HEAD_DIM;
    prepare(layer, shared, slot, head, at);
    __syncthreads();
    attend_range(layer.keys + start, layer.values + start, 0, at + 1, shared);
    __syncthreads();
    for (u32 i = threadIdx.x; i < GROUP * HEAD_DIM; i += blockDim.x) {
        u32 query = i / HEAD_DIM, dim = i % HEAD_DIM;
        float most, sum, mixed = joined_warps(shared, query, dim, &most, &sum);
        store(out + ((u64)slot * queries + head * GROUP + query) * HEAD_DIM + dim, mixed / sum);
    }
}
