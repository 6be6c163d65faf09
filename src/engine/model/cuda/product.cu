// Products of few rows, for steps that wait only for weights.
//
// A warp sums COLUMNS columns over RANGE_BLOCKS blocks of the terms, for all rows. It requests all weights that it needs at once, 8
// KB, from memory into registers, and uses them there without rearranging them. A lane may take any terms of a block if it takes
// the same terms of weights and rows, so each lane takes 16 contiguous bytes of both. The rows go through shared memory, because
// all warps of a range need them. They are stored in the order in which lanes take them, four registers at once. A block of threads
// adds its ranges and leaves sums in f32. The reader adds the sums of all blocks (`Sums`), in one order.
//
// No kernel writes weights, so they are requested before the previous kernels have ended.

// The number of terms of a block: four lanes with 16 bytes each.
#define BLOCK_TERMS (4 * VECTOR)
// The number of blocks of a warp, and of those whose rows are in shared memory at once.
#define RANGE_BLOCKS 8
#define HALF_BLOCKS 4
// For a block of threads: columns per warp, warps that share a range, and ranges; 2 · 4 · 32 threads.
#define COLUMNS 16
#define COLUMN_WARPS 4
#define RANGES 2
#define PRODUCT_THREADS 256
// The number of resident blocks per multiprocessor, so that they fit beside the previous kernel, which has not ended yet.
#if DRIFT_BF16
#define RESIDENT 2
#else
#define RESIDENT 1
#endif
// The number of rows of a tile.
#define TILE_ROWS 16

// The size of the stored rows: for each of `tiles` tiles twice 16 bytes per lane, which the lane takes at once. They come from row
// `lane / 4` and the row 8 further: first the first half of the lane's 16 bytes of both, then the second half. [range, block, tile,
// 2, lane]
#define ROWS_IN_ORDER(tiles) (RANGES * HALF_BLOCKS * (tiles) * 2 * LANES)

// The arguments of a product: x [rows, terms], weight [columns, terms], out [parts, rows, columns], with one part per RANGES
// ranges. 40 bytes.
struct Product {
    const real *x, *weight;
    float *out;
    u32 rows, terms, columns, unused;
};

#if !DRIFT_BF16
__device__ __forceinline__ uint4 from_lane(uint4 x, u32 lane) {
    return {__shfl_sync(ALL_LANES, x.x, lane), __shfl_sync(ALL_LANES, x.y, lane), __shfl_sync(ALL_LANES, x.z, lane),
            __shfl_sync(ALL_LANES, x.w, lane)};
}

__device__ __forceinline__ float dot(u32 a, u32 b, u32 c, u32 d, uint4 by) {
    return __uint_as_float(a) * __uint_as_float(by.x) + __uint_as_float(b) * __uint_as_float(by.y) +
        __uint_as_float(c) * __uint_as_float(by.z) + __uint_as_float(d) * __uint_as_float(by.w);
}
#endif

// Adds the products of a block for a tile of rows and eight columns. Each lane holds the weights of column `lane / 4`. A lane gets
// the sums for the columns `2 * (lane % 4)` and the next, first of row `lane / 4` and then of the row 8 further.
__device__ __forceinline__ void multiply(float *sums, const uint4 *tile, uint4 weights) {
    u32 lane = threadIdx.x % LANES;
#if DRIFT_BF16
    multiply_tile(sums, tile[lane], weights.x, weights.y);
    multiply_tile(sums, tile[LANES + lane], weights.z, weights.w);
#else
    // f32 has no such instruction. This version is only for comparison.
#pragma unroll 1
    for (int part = 0; part < 4; part++) {
        uint4 even = from_lane(weights, lane % 4 * 8 + part), odd = from_lane(weights, lane % 4 * 8 + 4 + part);
        uint4 first = tile[lane / 4 * 4 + part], second = tile[LANES + lane / 4 * 4 + part];
        sums[0] += dot(first.x, first.z, second.x, second.z, even);
        sums[1] += dot(first.x, first.z, second.x, second.z, odd);
        sums[2] += dot(first.y, first.w, second.y, second.w, even);
        sums[3] += dot(first.y, first.w, second.y, second.w, odd);
    }
#endif
}

// The block and tile, among HALF_BLOCKS · TILES, of which this thread loads 16 bytes of two rows. Each thread has TILES shares.
__device__ __forceinline__ u32 place_of(u32 share) {
    return share * COLUMN_WARPS + threadIdx.x / LANES % COLUMN_WARPS;
}

// Loads this thread's shares of the rows in HALF_BLOCKS blocks from the term `start` on. Beyond the last row or term an existing
// one is loaded and not used.
template <int TILES>
__device__ __forceinline__ void fetch_rows(const Product &of, u32 start, uint4 fetched[TILES][2]) {
    u32 lane = threadIdx.x % LANES;
#pragma unroll
    for (u32 i = 0; i < TILES; i++) {
        u32 place = place_of(i), tile = place % TILES, block = place / TILES;
        const real *from = of.x + min(start + block * BLOCK_TERMS, of.terms - BLOCK_TERMS) + lane % 4 * VECTOR;
#pragma unroll
        for (u32 j = 0; j < 2; j++) {
            u32 row = min(tile * TILE_ROWS + j * 8 + lane / 4, of.rows - 1);
            fetched[i][j] = __ldcg((const uint4 *)(from + (u64)row * of.terms));
        }
    }
}

// Stores them in shared memory, among the rows of this thread's range.
template <int TILES>
__device__ __forceinline__ void keep_rows(uint4 *rows, const uint4 fetched[TILES][2]) {
#pragma unroll
    for (u32 i = 0; i < TILES; i++) {
        uint4 upper = fetched[i][0], lower = fetched[i][1];
        uint4 *to = rows + place_of(i) * 2 * LANES + threadIdx.x % LANES;
        to[0] = {upper.x, lower.x, upper.y, lower.y};
        to[LANES] = {upper.z, lower.z, upper.w, lower.w};
    }
}

// Adds the sums of the other ranges through shared memory. The warps of the first range get the result.
template <int TILES>
__device__ __forceinline__ void add_ranges(float *exchange, float sums[TILES][2][4]) {
    u32 warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    float *own = exchange + warp % COLUMN_WARPS * TILES * 8 * LANES + lane;
    __syncthreads();
    if (warp >= COLUMN_WARPS) {
#pragma unroll
        for (int i = 0; i < 8 * TILES; i++) own[i * LANES] = sums[i / 8][i / 4 % 2][i % 4];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8 * TILES; i++) sums[i / 8][i / 4 % 2][i % 4] += own[i * LANES];
}

// Writes the sums of a warp.
template <int TILES>
__device__ __forceinline__ void keep_sums(const Product &of, u32 column, float sums[TILES][2][4]) {
    u32 lane = threadIdx.x % LANES;
    float *out = of.out + (u64)blockIdx.y * of.rows * of.columns + column + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4 * TILES; i++) {
        u32 row = i / 2 * 8 + lane / 4;
        const float *pair = sums[i / 4][i % 2] + i / 2 % 2 * 2;
        if (row < of.rows) *(uint2 *)(out + (u64)row * of.columns + i % 2 * 8) = {__float_as_uint(pair[0]), __float_as_uint(pair[1])};
    }
}

template <int TILES>
__device__ __forceinline__ void product(const Product &of, uint4 *rows_in_order) {
    require(blockDim.x == PRODUCT_THREADS && of.rows > 0 && of.rows <= TILES * TILE_ROWS);
    require(of.columns % COLUMNS == 0 && of.terms % BLOCK_TERMS == 0 && of.terms > 0);
    u32 lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, range = warp / COLUMN_WARPS;
    u32 from = (blockIdx.y * RANGES + range) * (RANGE_BLOCKS * BLOCK_TERMS);
    // The last range may be shorter, or empty.
    u32 blocks = from < of.terms ? (of.terms - from) / BLOCK_TERMS : 0;
    u32 column = (blockIdx.x * COLUMN_WARPS + warp % COLUMN_WARPS) * COLUMNS;
    // Warps beyond the last column read the last columns again, because they are needed at the barriers.
    const real *upper = of.weight + (u64)(min(column, of.columns - COLUMNS) + lane / 4) * of.terms + from + lane % 4 * VECTOR;
    const real *lower = upper + 8ull * of.terms;
    uint4 weights[RANGE_BLOCKS][2];
#pragma unroll
    for (u32 i = 0; i < RANGE_BLOCKS; i++) {
        if (i >= blocks) break;
        weights[i][0] = load_once(upper + i * BLOCK_TERMS);
        weights[i][1] = load_once(lower + i * BLOCK_TERMS);
    }
    wait_for_others();
    uint4 *rows = rows_in_order + range * HALF_BLOCKS * TILES * 2 * LANES;
    uint4 fetched[TILES][2];
    float sums[TILES][2][4] = {};
    fetch_rows<TILES>(of, from, fetched);
    keep_rows<TILES>(rows, fetched);
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < RANGE_BLOCKS; i++) {
        if (i == HALF_BLOCKS) {
            __syncthreads();
            keep_rows<TILES>(rows, fetched);
            __syncthreads();
        }
        if (i < blocks) {
            const uint4 *tile = rows + i % HALF_BLOCKS * TILES * 2 * LANES;
#pragma unroll
            for (int at = 0; at < TILES; at++, tile += 2 * LANES) {
                multiply(sums[at][0], tile, weights[i][0]);
                multiply(sums[at][1], tile, weights[i][1]);
            }
        }
        // Loads the second half as soon as registers of weights are free.
        if (i == HALF_BLOCKS / 2 - 1) fetch_rows<TILES>(of, from + HALF_BLOCKS * BLOCK_TERMS, fetched);
    }
    add_ranges<TILES>((float *)rows_in_order, sums);
    if (range == 0 && column < of.columns) keep_sums<TILES>(of, column, sums);
}

// One kernel for at most 16 rows and one for at most 32. Grid: (parts of the columns, parts of the terms), PRODUCT_THREADS threads.
KERNEL(PRODUCT_THREADS, RESIDENT) product_16(Product of) {
    let_others_begin();
    __shared__ uint4 rows[ROWS_IN_ORDER(1)];
    product<1>(of, rows);
}

KERNEL(PRODUCT_THREADS, RESIDENT) product_32(Product of) {
    let_others_begin();
    __shared__ uint4 rows[ROWS_IN_ORDER(2)];
    product<2>(of, rows);
}
