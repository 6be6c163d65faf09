// Products of few rows, for steps that wait for nothing else than weights.
//
// A warp sums COLUMNS columns over a range of the terms, for all rows. The weights of its columns go from memory into registers, AHEAD
// blocks of them in flight, and are used where they lie: which terms of a block are a lane's is free, as long as weights and rows agree,
// so each lane takes 16 bytes that lie together, of both. The rows go through shared memory, since all warps of a block want them, in
// the order in which lanes take them, four registers at once. Sums of a range are left in f32; whoever reads them adds the ranges (`Sums`), in one order.
//
// No kernel writes weights. So they are asked for before the kernels before are over.

// Columns of a warp, and threads of a block.
#define COLUMNS 16
#define PRODUCT_THREADS 128
// Terms of a block: four lanes with 16 bytes each.
#define BLOCK_TERMS (4 * VECTOR)
// Blocks on a multiprocessor, so that there is room for them beside the kernel that is not yet over.
#if DRIFT_BF16
#define RESIDENT 3
#else
#define RESIDENT 2
#endif
// Blocks of weights that a warp has in flight: 8 KB.
#define AHEAD 8
// Blocks of the rows that lie in shared memory, twice: while one half is used the other one is written.
#define HALF_BLOCKS 4
// Rows of a tile, and the most tiles.
#define TILE_ROWS 16
#define MOST_TILES 4

// For each lane what it takes of a tile at once, twice: rows `lane / 4` and 8 more, of the first half of its 16 bytes, then of the second.
// [half, block, tile, 2, lane]
__shared__ uint4 rows_in_order[2 * HALF_BLOCKS * MOST_TILES * 2 * LANES];

// What a product is of: x [rows, terms], weight [columns, terms], out [ranges, rows, columns]; ranges of `share` terms, the last one of
// the rest. 40 bytes.
struct Product {
    const real *x, *weight;
    float *out;
    u32 rows, terms, columns, share;
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

// Adds the products of a block for a tile of rows and eight columns, whose weights lanes hold: column `lane / 4`. A lane sums, of the
// row `lane / 4` and then of 8 more, the columns `2 * (lane % 4)` and the next.
__device__ __forceinline__ void multiply(float *sums, const uint4 *tile, uint4 weights) {
    u32 lane = threadIdx.x % LANES;
#if DRIFT_BF16
    multiply_tile(sums, tile[lane], weights.x, weights.y);
    multiply_tile(sums, tile[LANES + lane], weights.z, weights.w);
#else
    // f32 has no such instruction. It is there to be compared with.
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

// The rows in HALF_BLOCKS blocks from the term `start` on: of each tile 16 bytes of two rows, which are this thread's to bring. What is
// behind the last row or term is that of one that is there, and not used.
// Of its shares those from the one `first` on, COUNT of them.
template <int TILES, int COUNT>
__device__ __forceinline__ void fetch_rows(const Product &of, u32 start, u32 first, uint4 fetched[COUNT][2]) {
    u32 lane = threadIdx.x % LANES, term = lane % 4 * VECTOR;
#pragma unroll
    for (u32 share = 0; share < COUNT; share++) {
        u32 i = first + share;
        u32 at = (i * PRODUCT_THREADS + threadIdx.x) / LANES, tile = at % TILES, block = at / TILES;
        const real *from = of.x + min(start + block * BLOCK_TERMS, of.terms - BLOCK_TERMS) + term;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            u32 row = min(tile * TILE_ROWS + j * 8 + lane / 4, of.rows - 1);
            fetched[share][j] = __ldcg((const uint4 *)(from + (u64)row * of.terms));
        }
    }
}

template <int TILES, int COUNT>
__device__ __forceinline__ void keep_rows(u32 half, u32 first, const uint4 fetched[COUNT][2]) {
    u32 lane = threadIdx.x % LANES;
#pragma unroll
    for (u32 share = 0; share < COUNT; share++) {
        u32 i = first + share;
        uint4 upper = fetched[share][0], lower = fetched[share][1];
        u32 at = half * HALF_BLOCKS * TILES + (i * PRODUCT_THREADS + threadIdx.x) / LANES;
        uint4 *to = rows_in_order + at * 2 * LANES + lane;
        to[0] = {upper.x, lower.x, upper.y, lower.y};
        to[LANES] = {upper.z, lower.z, upper.w, lower.w};
    }
}

// Writes what a warp summed.
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
__device__ __forceinline__ void product(const Product &of) {
    require(blockDim.x == PRODUCT_THREADS && of.rows > 0 && of.rows <= TILES * TILE_ROWS);
    require(of.columns % COLUMNS == 0 && of.terms % BLOCK_TERMS == 0 && of.share % BLOCK_TERMS == 0);
    u32 lane = threadIdx.x % LANES, from = blockIdx.y * of.share;
    require(from < of.terms);
    u32 blocks = min(of.share, of.terms - from) / BLOCK_TERMS;
    u32 column = (blockIdx.x * (PRODUCT_THREADS / LANES) + threadIdx.x / LANES) * COLUMNS;
    // Warps behind the last columns read these again: they are wanted at the barriers.
    const real *upper = of.weight + (u64)(min(column, of.columns - COLUMNS) + lane / 4) * of.terms + from + lane % 4 * VECTOR;
    const real *lower = upper + 8ull * of.terms;
    // Rows come in two goes, so that registers suffice.
    const int GO = TILES > 1 ? TILES / 2 : 1;
    uint4 weights[AHEAD][2], all[TILES][2], fetched[GO][2];
    float sums[TILES][2][4] = {};
#pragma unroll
    for (u32 i = 0; i < AHEAD; i++) {
        if (i >= blocks) break;
        weights[i][0] = load_once(upper + i * BLOCK_TERMS);
        weights[i][1] = load_once(lower + i * BLOCK_TERMS);
    }
    wait_for_others();
    fetch_rows<TILES, TILES>(of, from, 0, all);
    keep_rows<TILES, TILES>(0, 0, all);
    __syncthreads();
    for (u32 first = 0; first < blocks; first += AHEAD) {
        upper += AHEAD * BLOCK_TERMS;
        lower += AHEAD * BLOCK_TERMS;
#pragma unroll
        for (u32 i = 0; i < AHEAD; i++) {
            u32 block = first + i, half = i / HALF_BLOCKS;
            if (block >= blocks) break;
            u32 next = first + (half + 1) * HALF_BLOCKS;
            bool has_next = next < blocks;
            if (i % HALF_BLOCKS == 0 && has_next) fetch_rows<TILES, GO>(of, from + next * BLOCK_TERMS, 0, fetched);
            const uint4 *tile = rows_in_order + i * TILES * 2 * LANES;
#pragma unroll
            for (int at = 0; at < TILES; at++, tile += 2 * LANES) {
                multiply(sums[at][0], tile, weights[i][0]);
                multiply(sums[at][1], tile, weights[i][1]);
            }
            if (block + AHEAD < blocks) {
                weights[i][0] = load_once(upper + i * BLOCK_TERMS);
                weights[i][1] = load_once(lower + i * BLOCK_TERMS);
            }
            // The other half is no longer read.
            if (i % HALF_BLOCKS == HALF_BLOCKS / 2 - 1 && has_next) {
                keep_rows<TILES, GO>(1 - half, 0, fetched);
                if (TILES > 1) fetch_rows<TILES, GO>(of, from + next * BLOCK_TERMS, GO, fetched);
            }
            if (i % HALF_BLOCKS == HALF_BLOCKS - 1 && has_next) {
                if (TILES > 1) keep_rows<TILES, GO>(1 - half, GO, fetched);
                __syncthreads();
            }
        }
    }
    if (column < of.columns) keep_sums<TILES>(of, column, sums);
}

// By rows: at most 16, 32 and 64. Grid: (parts of the columns, ranges), PRODUCT_THREADS threads.
KERNEL(PRODUCT_THREADS, RESIDENT) product_16(Product of) {
    let_others_begin();
    product<1>(of);
}

KERNEL(PRODUCT_THREADS, RESIDENT) product_32(Product of) {
    let_others_begin();
    product<2>(of);
}

KERNEL(PRODUCT_THREADS, RESIDENT) product_64(Product of) {
    let_others_begin();
    product<4>(of);
}
