// Attention of the new tokens of each row, with the keys and values split into ranges of positions.
//
// A block handles one new token, one key and value head with its GROUP query heads, and one of `splits` equal ranges of the
// positions up to that token. The new tokens of a row are in consecutive slots. A block writes the new keys and values of its own
// range and reads only this range, so no block waits for another one. For the tokens of one run, several blocks may write to the
// same place; they write the same bits. If prompts are read, a token has many new tokens before it, so a separate launch writes all
// keys and values first.
// Each warp processes its share of the positions, 32 at a time: first their scores, which end up one per lane, then their weights,
// then their values. It keeps the running maximum and sum of an online softmax (M. Milakov and N. Gimelshein, Online normalizer
// calculation for softmax, 2018). The results are merged over the warps, and then over the splits by the block that ends last.

// KEY_PARTS lanes hold the parts of one key or value. They form a group of KEY_LANES lanes, a power of two because of the shuffles;
// KEY_GROUPS is the number of groups of a warp.
#define KEY_PARTS (HEAD_DIM / VECTOR)
#define KEY_LANES (KEY_PARTS > 16 ? 32 : KEY_PARTS > 8 ? 16 : KEY_PARTS > 4 ? 8 : KEY_PARTS > 2 ? 4 : KEY_PARTS)
#define KEY_GROUPS (LANES / KEY_LANES)
// UNROLL positions of a group are loaded at once, in a round. ROUNDS rounds cover 32 positions of a warp.
#define UNROLL (KEY_LANES < 4 ? KEY_LANES : 4)
#define ROUNDS (KEY_LANES / UNROLL)
#define ROUND_POSITIONS (UNROLL * KEY_GROUPS)
// The largest number of splits of the positions of a row.
#define MOST_SPLITS 16
// Lower than every score but finite, so that differences are not NaN.
#define LOWEST -1e30f

// Unpacks 16 bytes into numbers.
__device__ __forceinline__ void unpack(uint4 packed, float *x) {
    u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
#if DRIFT_BF16
        x[2 * i] = of_bf16(words[i] & 0xffffu);
        x[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
#else
        x[i] = __uint_as_float(words[i]);
#endif
    }
}

// The index of the part of a key or value that a lane holds. Lanes beyond the last part read the first part again; their queries
// are zero.
__device__ __forceinline__ u32 part_of_lane() {
    u32 lane = threadIdx.x % KEY_LANES;
    return lane < KEY_PARTS ? lane : 0;
}

// The state of a warp for each query head: the largest score; for this lane Σ e^(score - largest) over its positions; and for this
// lane's part of the values their sum over all positions of its group, weighted by these exponentials.
struct Seen {
    float most[GROUP], sum[GROUP], mixed[GROUP][VECTOR];
};

// Loads this lane's part of a key or value at the positions of a round; `first` is the first position of its group. Beyond the last
// position it loads the last one again.
__device__ __forceinline__ void load_round(const real *from, u32 first, u32 to, uint4 *vectors) {
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        vectors[u] = *(const uint4 *)(from + (u64)min(first + u * KEY_GROUPS, to - 1) * HEAD_DIM);
    }
}

// Sums each of UNROLL numbers over the lanes of a group. A lane gets the sum of number `lane / ROUNDS`. Lanes pass on the numbers
// that other lanes sum, so this takes UNROLL - 1 shuffles plus those of a single sum, and not a full sum per number.
__device__ __forceinline__ float spread_sum(float *x) {
    u32 lane = threadIdx.x % KEY_LANES;
#pragma unroll
    for (int left = UNROLL / 2; left > 0; left /= 2) {
        int step = left * ROUNDS;
        bool is_upper = (lane & step) != 0;
#pragma unroll
        for (int u = 0; u < left; u++) {
            float handed = is_upper ? x[u] : x[u + left];
            x[u] = (is_upper ? x[u + left] : x[u]) + __shfl_xor_sync(ALL_LANES, handed, step);
        }
    }
#pragma unroll
    for (int step = ROUNDS / 2; step > 0; step /= 2) x[0] += __shfl_xor_sync(ALL_LANES, x[0], step);
    return x[0];
}

// Computes the scores of the positions `start..to`, at most 32. A lane gets the score of the position `position_of_lane`.
__device__ __forceinline__ void score(const real *keys, u32 start, u32 to, float queries[GROUP][VECTOR], float *scores) {
    u32 group = threadIdx.x % LANES / KEY_LANES, own = threadIdx.x % KEY_LANES % ROUNDS;
    for (u32 round = 0; round < ROUNDS && start + round * ROUND_POSITIONS < to; round++) {
        uint4 packed[UNROLL];
        float sums[GROUP][UNROLL];
        load_round(keys, start + round * ROUND_POSITIONS + group, to, packed);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            float key[VECTOR];
            unpack(packed[u], key);
#pragma unroll
            for (int query = 0; query < GROUP; query++) {
                sums[query][u] = 0;
#pragma unroll
                for (int i = 0; i < VECTOR; i++) sums[query][u] += queries[query][i] * key[i];
            }
        }
#pragma unroll
        for (int query = 0; query < GROUP; query++) {
            float sum = spread_sum(sums[query]);
            if (round == own) scores[query] = sum;
        }
    }
}

// The position whose score a lane gets, among the 32 from `start` on.
__device__ __forceinline__ u32 position_of_lane(u32 start) {
    u32 group = threadIdx.x % LANES / KEY_LANES, lane = threadIdx.x % KEY_LANES;
    return start + (lane % ROUNDS * UNROLL + lane / ROUNDS) * KEY_GROUPS + group;
}

// Adds the values of the positions `start..to`, weighted. The lanes hold the weights in the same places as the scores.
__device__ __forceinline__ void mix(const real *values, u32 start, u32 to, const float *weights, Seen &seen) {
    u32 group = threadIdx.x % LANES / KEY_LANES;
    for (u32 round = 0; round < ROUNDS && start + round * ROUND_POSITIONS < to; round++) {
        uint4 packed[UNROLL];
        load_round(values, start + round * ROUND_POSITIONS + group, to, packed);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            float value[VECTOR];
            unpack(packed[u], value);
#pragma unroll
            for (int query = 0; query < GROUP; query++) {
                float weight = __shfl_sync(ALL_LANES, weights[query], group * KEY_LANES + u * ROUNDS + round);
#pragma unroll
                for (int i = 0; i < VECTOR; i++) seen.mixed[query][i] += weight * value[i];
            }
        }
    }
}

// One warp processes the positions `from..to` of one head. `keys` and `values` point to this lane's part; `queries` is this lane's
// part of each query head. All lanes do the same number of rounds, because they shuffle.
__device__ __forceinline__ void look(const real *keys, const real *values, u32 from, u32 to, float queries[GROUP][VECTOR],
                                     Seen &seen) {
    for (u32 start = from; start < to; start += LANES) {
        float scores[GROUP] = {0}, weights[GROUP];
        u32 end = min(start + LANES, to);
        score(keys, start, end, queries, scores);
        bool is_there = position_of_lane(start) < end;
#pragma unroll
        for (int query = 0; query < GROUP; query++) {
            float top = fmaxf(seen.most[query], warp_most(is_there ? scores[query] : LOWEST));
            float before = expf(seen.most[query] - top);
            weights[query] = is_there ? expf(scores[query] - top) : 0.0f;
            seen.most[query] = top;
            seen.sum[query] = seen.sum[query] * before + weights[query];
#pragma unroll
            for (int i = 0; i < VECTOR; i++) seen.mixed[query][i] *= before;
        }
        mix(values, start, end, weights, seen);
    }
}

// Merges the states of the lanes of a warp. The first group gets the result.
__device__ __forceinline__ void merge_lanes(Seen &seen) {
#pragma unroll
    for (int query = 0; query < GROUP; query++) {
        seen.sum[query] = warp_sum(seen.sum[query]);
#pragma unroll
        for (int step = KEY_LANES; step < LANES; step *= 2) {
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                seen.mixed[query][i] += __shfl_xor_sync(ALL_LANES, seen.mixed[query][i], step);
            }
        }
    }
}

// The place of a split's result: its largest score, its sum, its weighted values.
__device__ __forceinline__ u64 part_of(u32 slot, u32 queries, u32 query, u32 splits, u32 split) {
    return (((u64)slot * queries + query) * splits + split) * (HEAD_DIM + 2);
}

// The block that ends last among the splits merges the results of all. It reads the results of other blocks past the L1 cache of
// its multiprocessor.
__device__ __forceinline__ void merge_splits(const Attention &layer, u32 slot, u32 head, u32 splits, real *out) {
    __shared__ u32 is_last;
    __shared__ float weights[GROUP][MOST_SPLITS], sums[GROUP];
    u32 *ticket = layer.tickets + (u64)slot * layer.kv_heads + head;
    // One thread does this between two barriers: all writes of the block come before its first fence, and all later reads after its
    // second one. With a fence of each thread before the barrier, this would hold only for the first thread (PTX ISA, "Release and
    // Acquire Patterns").
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(ticket, 1u) == splits - 1;
        __threadfence();
    }
    __syncthreads();
    if (!is_last) return;
    u32 queries = layer.kv_heads * GROUP, lane = threadIdx.x % LANES;
    const float *parts = layer.parts + part_of(slot, queries, head * GROUP, splits, 0);
    for (u32 query = threadIdx.x / LANES; query < GROUP; query += ATTEND_WARPS) {
        const float *part = parts + ((u64)query * splits + lane) * (HEAD_DIM + 2);
        float most = lane < splits ? __ldcg(part) : LOWEST, sum = lane < splits ? __ldcg(part + 1) : 0.0f;
        float weight = expf(most - warp_most(most));
        sum = warp_sum(weight * sum);
        if (lane < splits) weights[query][lane] = weight;
        if (lane == 0) sums[query] = sum;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < GROUP * HEAD_DIM; i += blockDim.x) {
        u32 query = i / HEAD_DIM;
        const float *part = parts + (u64)query * splits * (HEAD_DIM + 2) + 2 + i % HEAD_DIM;
        float mixed[MOST_SPLITS], total = 0;
#pragma unroll
        for (u32 split = 0; split < MOST_SPLITS; split++) {
            mixed[split] = split < splits ? __ldcg(part + split * (HEAD_DIM + 2)) : 0.0f;
        }
#pragma unroll
        for (u32 split = 0; split < MOST_SPLITS; split++) total += split < splits ? weights[query][split] * mixed[split] : 0.0f;
        store(out + ((u64)slot * queries + head * GROUP) * HEAD_DIM + i, total / sums[query]);
    }
    // Atomic like the accesses of the other blocks, because no fence follows their last operations.
    if (threadIdx.x == 0) atomicExch(ticket, 0u);
}

// The data that the warps of a block exchange.
struct Exchange {
    float queries[GROUP][HEAD_DIM];
    float most[ATTEND_WARPS][GROUP], sum[ATTEND_WARPS][GROUP], mixed[ATTEND_WARPS][GROUP][HEAD_DIM];
};

// One number of a query head, merged over the warps.
__device__ __forceinline__ float joined_warps(const Exchange &shared, u32 query, u32 dim, float *most, float *sum) {
    float top = LOWEST, all = 0, total = 0;
#pragma unroll
    for (u32 warp = 0; warp < ATTEND_WARPS; warp++) top = fmaxf(top, shared.most[warp][query]);
#pragma unroll
    for (u32 warp = 0; warp < ATTEND_WARPS; warp++) {
        float weight = expf(shared.most[warp][query] - top);
        all += weight * shared.sum[warp][query];
        total += weight * shared.mixed[warp][query][dim];
    }
    *most = top;
    *sum = all;
    return total;
}

// Norms, rotates and scales the query heads of a new token.
__device__ __forceinline__ void prepare(const Attention &layer, Exchange &shared, u64 slot, u32 head, u64 at) {
    u64 columns = columns_of(layer);
    u32 lane = threadIdx.x % LANES;
    for (u32 query = threadIdx.x / LANES; query < GROUP; query += ATTEND_WARPS) {
        float a[PAIRS], b[PAIRS], scale = 1.0f / sqrtf((float)HEAD_DIM);
        turned(layer.qkv, slot * columns + (head * GROUP + query) * HEAD_DIM, layer.query_norm, layer.epsilon,
               layer.cosines + at * HALF, layer.sines + at * HALF, scale, a, b);
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            u32 i = lane + j * LANES;
            if (i >= HALF) continue;
            shared.queries[query][i] = a[j];
            shared.queries[query][HALF + i] = b[j];
        }
    }
}

// Attention of one token over `from..to`. Each warp leaves its result in `shared`.
__device__ __forceinline__ void attend_range(const real *keys, const real *values, u32 from, u32 to, Exchange &shared) {
    u32 lane = threadIdx.x % KEY_LANES, part = part_of_lane() * VECTOR, warp = threadIdx.x / LANES;
    bool has_part = lane < KEY_PARTS;
    float queries[GROUP][VECTOR];
    Seen seen;
#pragma unroll
    for (int query = 0; query < GROUP; query++) {
        seen.most[query] = LOWEST;
        seen.sum[query] = 0;
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            queries[query][i] = has_part ? shared.queries[query][part + i] : 0.0f;
            seen.mixed[query][i] = 0;
        }
    }
    // Each share is a whole number of rounds.
    u32 share = ((to - from + ATTEND_WARPS - 1) / ATTEND_WARPS + ROUND_POSITIONS - 1) / ROUND_POSITIONS * ROUND_POSITIONS;
    u32 first = min(from + warp * share, to), last = min(first + share, to);
    look(keys + part, values + part, first, last, queries, seen);
    merge_lanes(seen);
    if (threadIdx.x % LANES >= KEY_LANES || !has_part) return;
#pragma unroll
    for (int query = 0; query < GROUP; query++) {
        if (lane == 0) {
            shared.most[warp][query] = seen.most[query];
            shared.sum[warp][query] = seen.sum[query];
        }
#pragma unroll
        for (int i = 0; i < VECTOR; i++) shared.mixed[warp][query][part + i] = seen.mixed[query][i];
    }
}

// Computes attention: out [slots, queries · HEAD_DIM]; runs [rows]; owners [slots], the rows of the slots, or NONE. `appends`:
// whether the keys and values of new tokens must still be written. Grid: (splits, kv heads, slots), ATTEND_THREADS threads.
KERNEL(ATTEND_THREADS) attend(Attention layer, const Run *runs, const u32 *owners, real *out, u32 appends) {
    begin();
    __shared__ Exchange shared;
    require(blockDim.x == ATTEND_THREADS && gridDim.y == layer.kv_heads && gridDim.x <= MOST_SPLITS);
    u32 split = blockIdx.x, head = blockIdx.y, slot = blockIdx.z, splits = gridDim.x, queries = layer.kv_heads * GROUP;
    u32 row = owners[slot];
    if (row == NONE) return;
    Run run = runs[row];
    u32 new_token = slot - run.first, at = run.position + new_token, length = at + 1, share = (length + splits - 1) / splits;
    require(length <= layer.capacity && length <= layer.positions);
    u32 from = min(split * share, length), to = min(from + share, length);
    u64 start = ((u64)row * layer.kv_heads + head) * layer.capacity * HEAD_DIM;
    // The last warps append first, because the first warps prepare the queries meanwhile.
    u32 appender = ATTEND_WARPS - 1 - threadIdx.x / LANES;
    if (appends) append(layer, run, new_token + 1, row, head, from, to, appender, ATTEND_WARPS);
    prepare(layer, shared, slot, head, at);
    // After this barrier the appended keys and values are visible too.
    __syncthreads();
    attend_range(layer.keys + start, layer.values + start, from, to, shared);
    __syncthreads();
    for (u32 i = threadIdx.x; i < GROUP * HEAD_DIM; i += blockDim.x) {
        u32 query = i / HEAD_DIM, dim = i % HEAD_DIM;
        float most, sum, mixed = joined_warps(shared, query, dim, &most, &sum);
        u32 head_number = head * GROUP + query;
        if (splits == 1) {
            store(out + ((u64)slot * queries + head_number) * HEAD_DIM + dim, mixed / sum);
        } else {
            float *part = layer.parts + part_of(slot, queries, head_number, splits, split);
            part[2 + dim] = mixed;
            if (dim == 0) {
                part[0] = most;
                part[1] = sum;
            }
        }
    }
    if (splits > 1) merge_splits(layer, slot, head, splits, out);
}
