// What attention begins with: norms of queries and keys (Qwen3), rotary embedding, and new keys and values written into the cache.

#define ATTEND_THREADS 128
#define ATTEND_WARPS (ATTEND_THREADS / LANES)
// Pairs of a head that the rotary embedding turns, all of them, and at most for each lane.
#define HALF (HEAD_DIM / 2)
#define PAIRS ((HALF + LANES - 1) / LANES)

// New tokens of a row: `count` slots from `first` on, the first of them at `position`.
struct Run {
    u32 first, count, position, unused;
};

// What one layer attends with. 96 bytes.
struct Attention {
    Sums qkv;              // [slots, (queries + 2 · kv heads) · HEAD_DIM]
    real *keys, *values;   // [rows, kv heads, capacity, HEAD_DIM]
    const float *cosines;  // [positions, HEAD_DIM / 2]
    const float *sines;    // [positions, HEAD_DIM / 2]
    const real *query_norm, *key_norm;  // [HEAD_DIM], or null
    float *parts;          // [slots, queries, splits, HEAD_DIM + 2], where there is more than one split
    u32 *tickets;          // [slots, kv heads], zero before the first launch and after each
    u32 kv_heads, capacity, positions;
    float epsilon;
};

// The numbers i + 32 j of the first half of a head that begins at `head`, and of the second; those that are not there are those of lane 0.
__device__ __forceinline__ void halves_of(const Sums &sums, u64 head, float *a, float *b) {
    float both[2 * PAIRS];
    auto place = [&](int j) {
        u32 i = threadIdx.x % LANES + j % PAIRS * LANES;
        return head + (i < HALF ? i : 0) + j / PAIRS * HALF;
    };
    numbers_of<2 * PAIRS>(sums, place, both);
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        a[j] = both[j];
        b[j] = both[PAIRS + j];
    }
}

// A head of queries or keys, normed if there is a weight, turned to its position, scaled. A warp; lane i has the numbers i + 32 j
// of the first half in `a`, those of the second in `b`.
__device__ __forceinline__ void turned(const Sums &sums, u64 head, const real *weight, float epsilon, const float *cosines,
                                       const float *sines, float scale, float *a, float *b) {
    u32 lane = threadIdx.x % LANES;
    float squares = 0, cosine[PAIRS], sine[PAIRS], first[PAIRS], second[PAIRS];
    halves_of(sums, head, a, b);
    // All loads before the sum over the lanes, which waits for some of them.
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        u32 i = lane + j * LANES < HALF ? lane + j * LANES : 0;
        cosine[j] = cosines[i];
        sine[j] = sines[i];
        first[j] = weight ? load(weight + i) : 1.0f;
        second[j] = weight ? load(weight + HALF + i) : 1.0f;
    }
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        if (lane + j * LANES < HALF) squares += a[j] * a[j] + b[j] * b[j];
    }
    float root = weight ? 1.0f / sqrtf(warp_sum(squares) / HEAD_DIM + epsilon) : 1.0f;
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        float x = a[j] * root * first[j], y = b[j] * root * second[j];
        a[j] = (x * cosine[j] - y * sine[j]) * scale;
        b[j] = (x * sine[j] + y * cosine[j]) * scale;
    }
}

// Numbers of a token in `qkv`.
__device__ __forceinline__ u64 columns_of(const Attention &layer) {
    return (u64)layer.kv_heads * (GROUP + 2) * HEAD_DIM;
}

// Writes the keys and values of the first `count` tokens of a run, of those at positions `from..to`; a warp takes the `first` one and
// every `step`-th behind it.
__device__ __forceinline__ void append(const Attention &layer, Run run, u32 count, u32 row, u32 head, u32 from, u32 to, u32 first,
                                       u32 step) {
    u32 lane = threadIdx.x % LANES, queries = layer.kv_heads * GROUP;
    u64 columns = columns_of(layer);
    for (u32 new_token = first; new_token < count; new_token += step) {
        u64 at = run.position + new_token;
        if (at < from || at >= to) continue;
        u64 token = (run.first + new_token) * columns;
        u64 place = (((u64)row * layer.kv_heads + head) * layer.capacity + at) * HEAD_DIM;
        float a[PAIRS], b[PAIRS], x[PAIRS], y[PAIRS];
        turned(layer.qkv, token + (queries + head) * HEAD_DIM, layer.key_norm, layer.epsilon, layer.cosines + at * HALF,
               layer.sines + at * HALF, 1.0f, a, b);
        halves_of(layer.qkv, token + (queries + layer.kv_heads + head) * HEAD_DIM, x, y);
#pragma unroll
        for (int j = 0; j < PAIRS; j++) {
            u32 i = lane + j * LANES;
            if (i >= HALF) continue;
            write_same(layer.keys + place + i, narrowed(a[j]));
            write_same(layer.keys + place + HALF + i, narrowed(b[j]));
            write_same(layer.values + place + i, narrowed(x[j]));
            write_same(layer.values + place + HALF + i, narrowed(y[j]));
        }
    }
}

// Writes the keys and values of all new tokens, before `attend` without them. runs [rows]. Grid: (parts, kv heads, rows),
// ATTEND_THREADS threads.
KERNEL(ATTEND_THREADS) append_all(Attention layer, const Run *runs) {
    begin();
    require(blockDim.x == ATTEND_THREADS && gridDim.y == layer.kv_heads);
    u32 row = blockIdx.z, first = blockIdx.x * ATTEND_WARPS + threadIdx.x / LANES;
    Run run = runs[row];
    u32 length = run.position + run.count;
    require(length <= layer.capacity && length <= layer.positions);
    append(layer, run, run.count, row, blockIdx.y, 0, length, first, gridDim.x * ATTEND_WARPS);
}
