// Lays out a step: selects the tokens of each row that the model reads.

// The largest number of rows, because the block has one thread per row.
#define PACK_THREADS 1024

// The number of tokens that a row has not read.
__device__ __forceinline__ u32 unread(const Batch &batch, u32 at) {
    if (at >= batch.count || batch.ends[at] != RUNS) return 0;
    return batch.rows[at].count - batch.rows[at].read;
}

// Adds a row's work in a step to the counters. The sums do not depend on the order of rows.
__device__ __forceinline__ void count_work(const Batch &batch, u64 position, u64 count, bool chooses) {
    atomicAdd(batch.work, 1ull);
    atomicAdd(batch.work + 1, count);
    atomicAdd(batch.work + 2, position + count);
    atomicAdd(batch.work + 3, count * position + count * (count + 1) / 2);
    if (chooses) atomicAdd(batch.work + 4, 1ull);
}

// The row of a slot: the last row whose first slot is at or before it.
__device__ __forceinline__ u32 owner_of(const u32 *firsts, u32 rows, u32 slot) {
    u32 low = 0, high = rows;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (firsts[middle] <= slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - 1;
}

// Every running row reads at least one token. Prompts and forced runs take the remaining slots, in the order of rows. Tokens that
// do not fit are read in later steps, and their row waits: `choose` skips rows whose `lasts` is NONE. Unused slots hold token 0 and
// belong to no run.
// tokens [slots]; owners [slots]: their rows, or NONE; runs [rows]; lasts [rows]: the slot of a row's last token. One block with at
// least as many threads as rows, and at least as many slots as running rows.
KERNEL(PACK_THREADS) pack(Batch batch, u32 slots, u32 *tokens, u32 *owners, Run *runs, u32 *lasts) {
    begin();
    // For each row its first slot, and the index in its text of the token in that slot.
    __shared__ u32 firsts[PACK_THREADS], reads[PACK_THREADS];
    require_whole_warps();
    u32 at = threadIdx.x, waiting = unread(batch, at), running, longer, used;
    block_before(waiting > 0, &running);
    require(gridDim.x == 1 && batch.count <= blockDim.x && running <= slots);
    u32 more = waiting > 0 ? waiting - 1 : 0, left = slots - running;
    u32 before = block_before(more, &longer);
    u32 count = waiting == 0 ? 0 : 1 + (before < left ? min(more, left - before) : 0);
    u32 first = block_before(count, &used);
    if (at < batch.count) {
        Row &row = batch.rows[at];
        Run run = {first, count, row.base + row.read, 0};
        runs[at] = run;
        lasts[at] = count > 0 && count == waiting ? first + count - 1 : NONE;
        if (count > 0) count_work(batch, run.position, count, count == waiting);
        firsts[at] = first;
        reads[at] = row.read;
        row.read += count;
    }
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < slots; slot += blockDim.x) {
        u32 owner = slot < used ? owner_of(firsts, batch.count, slot) : NONE, token = 0;
        if (owner != NONE) {
            u64 place = reads[owner] + slot - firsts[owner];
            token = batch.texts[(u64)owner * batch.stride + place] & ~FORCED;
        }
        tokens[slot] = token;
        owners[slot] = owner;
    }
}
