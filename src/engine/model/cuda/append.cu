// The first part of attention: norms of queries and keys (Qwen3), rotary embedding, and writing new keys and values into the cache.

#define ATTEND_THREADS 128
#define ATTEND_WARPS (ATTEND_THREADS / LANES)
// The number of pairs of a head that the rotary embedding rotates: of all lanes, and the largest number of one lane.
#define HALF (HEAD_DIM / 2)
#define PAIRS ((HALF + LANES - 1) / LANES)

// The new tokens of a row: `count` slots from `first` on; the first token is at `position`.
struct Run {
    u32 first, count, position, unused;
};

// The arguments of attention in one layer. 96 bytes.
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

// The numbers i + 32 j of the first and of the second half of the head at `head`, for lane i. Beyond the end of a half the first
// number of the half is loaded.
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

// One warp norms a head of queries or keys if there is a weight, rotates it to its position, and scales it. Lane i gets the numbers
// i + 32 j of the first half in `a`, and those of the second half in `b`.
__device__ __forceinline__ void turned(const Sums &sums, u64 head, const real *weight, float epsilon, const float *cosines,
                                       const float *sines, float scale, float *a, float *b) {
    u32 lane = threadIdx.x % LANES;
    float squares = 0, cosine[PAIRS], sine[PAIRS], first[PAIRS], second[PAIRS];
    halves_of(sums, head, a, b);
    // All loads come before the sum over the lanes, which waits for some of them.
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

// The number of columns of a token in `qkv`.
__device__ __forceinline__ u64 columns_of(const Attention &layer) {
    return (u64)layer.kv_heads * (GROUP + 2) * HEAD_DIM;
}

// Writes the keys and values of those of the first `count` tokens of a run whose positions are in `from..to`. A warp takes token
// `first` and every `step`-th token after it.
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

// Writes the keys and values of all new tokens; then `attend` is launched without `appends`. runs [rows]. Grid: (parts, kv heads,
// rows), ATTEND_THREADS threads.
KERNEL(ATTEND_THREADS) append_all(Attention layer, const Run *runs) {
    begin();
    require(blockDim.x == ATTEND_THREADS && gridDim.y == layer.kv_heads);
    u32 row = blockIdx.z, first = blockIdx.x * ATTEND_WARPS + threadIdx.x / LANES;
    Run run = runs[row];
    u32 length = run.position + run.count;
    require(length <= layer.capacity && length <= layer.positions);
    append(layer, run, run.count, row, blockIdx.y, 0, length, first, gridDim.x * ATTEND_WARPS);
}
