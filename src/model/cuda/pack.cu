// Lays out a step: which tokens of which rows the model reads.

// Tokens that a row has not read.
__device__ __forceinline__ u32 unread(const Batch &batch, u32 at) {
    if (at >= batch.count || batch.ends[at] != RUNS) return 0;
    return batch.rows[at].count - batch.rows[at].read;
}

// Counts what a row reads in a step; sums do not depend on the order of rows.
__device__ __forceinline__ void count_work(const Batch &batch, u64 position, u64 count, bool chooses) {
    atomicAdd(batch.work, 1ull);
    atomicAdd(batch.work + 1, count);
    atomicAdd(batch.work + 2, position + count);
    atomicAdd(batch.work + 3, count * position + count * (count + 1) / 2);
    if (chooses) atomicAdd(batch.work + 4, 1ull);
}

// Every running row reads at least one token; forced runs take the slots that are left, rows in order. What does not fit is read
// in later steps, and its row waits: `choose` passes over rows whose `lasts` is NONE. Slots that nobody takes hold token 0, and
// belong to no run.
// tokens [slots]; runs [rows]; lasts [rows]: the slot of a row's last token. One block of at least as many threads as rows;
// at least as many slots as rows.
KERNEL(1024) pack(Batch batch, u32 slots, u32 *tokens, Run *runs, u32 *lasts) {
    require_whole_warps();
    require(gridDim.x == 1 && batch.count <= blockDim.x && batch.count <= slots);
    u32 at = threadIdx.x, waiting = unread(batch, at), running, longer, used;
    block_before(waiting > 0, &running);
    u32 more = waiting > 0 ? waiting - 1 : 0, left = slots - running;
    u32 before = block_before(more, &longer);
    u32 count = waiting == 0 ? 0 : 1 + (before < left ? min(more, left - before) : 0);
    u32 first = block_before(count, &used);
    for (u32 slot = used + threadIdx.x; slot < slots; slot += blockDim.x) tokens[slot] = 0;
    if (at >= batch.count) return;
    Row &row = batch.rows[at];
    for (u32 i = 0; i < count; i++) {
        tokens[first + i] = batch.texts[(u64)at * batch.stride + row.read + i] & ~FORCED;
    }
    Run run = {first, count, row.base + row.read, 0};
    runs[at] = run;
    lasts[at] = count > 0 && count == waiting ? first + count - 1 : NONE;
    if (count > 0) count_work(batch, run.position, count, count == waiting);
    row.read += count;
}
