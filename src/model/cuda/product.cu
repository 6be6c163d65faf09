// Products of few rows, for steps that wait for nothing else than weights.
//
// A warp sums TILE columns over a range of the terms, for all rows. The weights of its columns go from memory into registers, AHEAD
// blocks of them in flight, and are used where they lie: which terms of a block are a lane's is free, as long as weights and rows agree,
// so each lane takes 16 bytes that lie together, of both. The rows go through shared memory, since all warps of a block want them, in
// the order in which lanes take them. Sums of a range are left in f32; whoever reads them adds the ranges (`Sums`), in one order.
//
// No kernel writes weights. So they are asked for before the kernels before are over.

// Columns of a warp, and threads of a block.
#define TILE 16
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
// The most rows are so many times 8.
#define MOST_ROW_TILES 8

// [half, block, 8 rows, lane]
__shared__ uint4 rows_in_order[2 * HALF_BLOCKS * MOST_ROW_TILES * LANES];

#if !DRIFT_BF16
__device__ __forceinline__ uint4 from_lane(uint4 x, u32 lane) {
    return {__shfl_sync(ALL_LANES, x.x, lane), __shfl_sync(ALL_LANES, x.y, lane), __shfl_sync(ALL_LANES, x.z, lane),
            __shfl_sync(ALL_LANES, x.w, lane)};
}

__device__ __forceinline__ float dot(uint4 a, uint4 b) {
    return __uint_as_float(a.x) * __uint_as_float(b.x) + __uint_as_float(a.y) * __uint_as_float(b.y) +
        __uint_as_float(a.z) * __uint_as_float(b.z) + __uint_as_float(a.w) * __uint_as_float(b.w);
}
#endif

// What a product is of: x [rows, terms], weight [columns, terms], out [ranges, rows, columns]; ranges of `share` terms, the last one of
// the rest. 40 bytes.
struct Product {
    const real *x, *weight;
    float *out;
    u32 rows, terms, columns, share;
};

// Adds the products of a block: `upper` and `lower` are the weights of a lane's two columns, `lane / 4` and 8 more, `rows` those of
// eight rows for each lane. A lane sums, of its columns, the rows `2 * (lane % 4)` and the next: upper's two first.
__device__ __forceinline__ void multiply(float *sums, uint4 upper, uint4 lower, const uint4 *rows) {
#if DRIFT_BF16
    uint4 own = rows[threadIdx.x % LANES];
    multiply_tile(sums, upper.x, lower.x, upper.y, lower.y, own.x, own.y);
    multiply_tile(sums, upper.z, lower.z, upper.w, lower.w, own.z, own.w);
#else
    // f32 has no such instruction. It is there to be compared with.
    u32 first = threadIdx.x % LANES / 4 * 4, row = threadIdx.x % 4 * 8;
#pragma unroll 1
    for (int part = 0; part < 4; part++) {
        uint4 a = from_lane(upper, first + part), b = from_lane(lower, first + part);
        uint4 x = rows[row + part], y = rows[row + 4 + part];
        sums[0] += dot(a, x);
        sums[1] += dot(a, y);
        sums[2] += dot(b, x);
        sums[3] += dot(b, y);
    }
#endif
}

// The 16 bytes of each lane of each eight rows, of HALF_BLOCKS blocks from the term `start` on: this thread's share of them. What is
// behind the last row or term is that of one that is there, and not used.
template <int ROW_TILES>
__device__ __forceinline__ void fetch_rows(const Product &of, u32 start, uint4 *fetched) {
#pragma unroll
    for (int i = 0; i < ROW_TILES; i++) {
        u32 at = i * PRODUCT_THREADS + threadIdx.x, lane = at % LANES, tile = at / LANES % ROW_TILES;
        u32 row = min(tile * 8 + lane / 4, of.rows - 1), block = at / LANES / ROW_TILES;
        u32 term = min(start + block * BLOCK_TERMS, of.terms - BLOCK_TERMS) + lane % 4 * VECTOR;
        fetched[i] = __ldcg((const uint4 *)(of.x + (u64)row * of.terms + term));
    }
}

template <int ROW_TILES>
__device__ __forceinline__ void keep_rows(u32 half, const uint4 *fetched) {
#pragma unroll
    for (int i = 0; i < ROW_TILES; i++) {
        rows_in_order[(half * ROW_TILES + i) * PRODUCT_THREADS + threadIdx.x] = fetched[i];
    }
}

// The weights of a lane in the block `block`, of its two columns.
__device__ __forceinline__ void fetch_weights(const Product &of, const real *weight, u32 block, uint4 *fetched) {
    fetched[0] = load_once(weight + block * BLOCK_TERMS);
    fetched[1] = load_once(weight + block * BLOCK_TERMS + 8ull * of.terms);
}

// Writes what a warp summed.
template <int ROW_TILES>
__device__ __forceinline__ void keep_sums(const Product &of, u32 column, float sums[ROW_TILES][4]) {
    u32 lane = threadIdx.x % LANES;
    float *out = of.out + (u64)blockIdx.y * of.rows * of.columns + column + lane / 4;
#pragma unroll
    for (int tile = 0; tile < ROW_TILES; tile++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u32 row = tile * 8 + lane % 4 * 2 + i % 2;
            if (row < of.rows) out[(u64)row * of.columns + i / 2 * 8] = sums[tile][i];
        }
    }
}

template <int ROW_TILES>
__device__ __forceinline__ void product(const Product &of) {
    require(blockDim.x == PRODUCT_THREADS && of.rows > 0 && of.rows <= 8 * ROW_TILES);
    require(of.columns % TILE == 0 && of.terms % BLOCK_TERMS == 0 && of.share % BLOCK_TERMS == 0);
    u32 lane = threadIdx.x % LANES, from = blockIdx.y * of.share;
    require(from < of.terms);
    u32 blocks = min(of.share, of.terms - from) / BLOCK_TERMS, halves = (blocks + HALF_BLOCKS - 1) / HALF_BLOCKS;
    u32 column = (blockIdx.x * (PRODUCT_THREADS / LANES) + threadIdx.x / LANES) * TILE;
    // Warps behind the last columns read these again: they are wanted at the barriers.
    const real *weight = of.weight + (u64)(min(column, of.columns - TILE) + lane / 4) * of.terms + from + lane % 4 * VECTOR;
    uint4 weights[AHEAD][2], fetched[ROW_TILES];
    float sums[ROW_TILES][4] = {};
#pragma unroll
    for (u32 block = 0; block < AHEAD; block++) {
        if (block < blocks) fetch_weights(of, weight, block, weights[block]);
    }
    wait_for_others();
    fetch_rows<ROW_TILES>(of, from, fetched);
    keep_rows<ROW_TILES>(0, fetched);
    __syncthreads();
    for (u32 first = 0; first < halves; first += 2) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 start = (first + half) * HALF_BLOCKS;
            if (start >= blocks) break;
            bool has_next = start + HALF_BLOCKS < blocks;
            if (has_next) fetch_rows<ROW_TILES>(of, from + (start + HALF_BLOCKS) * BLOCK_TERMS, fetched);
#pragma unroll
            for (int i = 0; i < HALF_BLOCKS; i++) {
                u32 block = start + i;
                if (block >= blocks) continue;
                uint4 *own = weights[half * HALF_BLOCKS + i];
                const uint4 *rows = rows_in_order + (half * HALF_BLOCKS + i) * ROW_TILES * LANES;
#pragma unroll
                for (int tile = 0; tile < ROW_TILES; tile++) multiply(sums[tile], own[0], own[1], rows + tile * LANES);
                if (block + AHEAD < blocks) fetch_weights(of, weight, block + AHEAD, own);
            }
            if (has_next) keep_rows<ROW_TILES>(1 - half, fetched);
            __syncthreads();
        }
    }
    if (column < of.columns) keep_sums<ROW_TILES>(of, column, sums);
}

// By rows: at most 8, 16, 32 and 64. Grid: (parts of the columns, ranges), PRODUCT_THREADS threads.
KERNEL(PRODUCT_THREADS, RESIDENT) product_8(Product of) {
    let_others_begin();
    product<1>(of);
}

KERNEL(PRODUCT_THREADS, RESIDENT) product_16(Product of) {
    let_others_begin();
    product<2>(of);
}

KERNEL(PRODUCT_THREADS, RESIDENT) product_32(Product of) {
    let_others_begin();
    product<4>(of);
}

KERNEL(PRODUCT_THREADS, RESIDENT) product_64(Product of) {
    let_others_begin();
    product<8>(of);
}
