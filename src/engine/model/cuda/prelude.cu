// Definitions for all kernels: the type of weights and cache, warp and block reductions, and sort keys of numbers.
//
// No header is included, so that NVRTC needs none: bf16 is `unsigned short`. A program is this file and the files after it
// (`CUDA_SOURCES` in mod.rs), compiled for one model by three macros:
//   DRIFT_BF16       1: weights, activations and cache are bf16; 0: f32
//   DRIFT_HEAD_DIM   size of a head, a multiple of 8, at most 128
//   DRIFT_GROUP      query heads of a key and value head, 1 to 8
// Every block has a multiple of 32 threads, at most 1024. A kernel traps if its launch configuration is invalid.

#if !defined(DRIFT_BF16) || !defined(DRIFT_HEAD_DIM) || !defined(DRIFT_GROUP)
#error "define DRIFT_BF16, DRIFT_HEAD_DIM and DRIFT_GROUP"
#endif
#if DRIFT_HEAD_DIM < 8 || DRIFT_HEAD_DIM > 128 || DRIFT_HEAD_DIM % 8 != 0
#error "heads of a multiple of 8 numbers, at most 128"
#endif
#if DRIFT_GROUP < 1 || DRIFT_GROUP > 8
#error "1 to 8 query heads for each key and value head"
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

#if DRIFT_BF16
typedef unsigned short real;
#else
typedef float real;
#endif

#define HEAD_DIM DRIFT_HEAD_DIM
#define GROUP DRIFT_GROUP
#define LANES 32
#define ALL_LANES 0xffffffffu
// A kernel with a largest number of threads per block and, optionally, a least number of resident blocks per multiprocessor.
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
// The index of no slot, row or place.
#define NONE 0xffffffffu

// Traps if a launch or a shape is invalid for a kernel.
__device__ __forceinline__ void require(bool holds) {
    if (!holds) __trap();
}

__device__ __forceinline__ void require_whole_warps() {
    require(blockDim.x % LANES == 0 && blockDim.x <= 1024 && blockDim.y == 1 && blockDim.z == 1);
}

// The bits of a bf16 are the upper half of the bits of the same f32.
__device__ __forceinline__ float of_bf16(u32 bits) { return __uint_as_float(bits << 16); }

// Rounds to the nearest, ties to even, as in IEEE 754. NaN stays NaN.
__device__ __forceinline__ u32 to_bf16(float x) {
    u32 bits = __float_as_uint(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

#if DRIFT_BF16
__device__ __forceinline__ float load(const real *from) { return of_bf16(*from); }
__device__ __forceinline__ real narrowed(float x) { return (real)to_bf16(x); }
__device__ __forceinline__ float rounded(float x) { return of_bf16(to_bf16(x)); }
#else
__device__ __forceinline__ float load(const real *from) { return *from; }
__device__ __forceinline__ real narrowed(float x) { return x; }
__device__ __forceinline__ float rounded(float x) { return x; }
#endif
__device__ __forceinline__ void store(real *to, float x) { *to = narrowed(x); }

// How many numbers fit into 16 bytes.
#define VECTOR (16 / (int)sizeof(real))

// Four consecutive numbers of 8 or 16 bytes in total, aligned to this size.
struct Four {
    float x[4];
};

__device__ __forceinline__ Four load_four(const real *from) {
#if DRIFT_BF16
    uint2 packed = *(const uint2 *)from;
    return {{of_bf16(packed.x & 0xffffu), __uint_as_float(packed.x & 0xffff0000u), of_bf16(packed.y & 0xffffu),
             __uint_as_float(packed.y & 0xffff0000u)}};
#else
    uint4 packed = *(const uint4 *)from;
    return {{__uint_as_float(packed.x), __uint_as_float(packed.y), __uint_as_float(packed.z), __uint_as_float(packed.w)}};
#endif
}

__device__ __forceinline__ void store_four(real *to, Four x) {
#if DRIFT_BF16
    *(uint2 *)to = {to_bf16(x.x[0]) | to_bf16(x.x[1]) << 16, to_bf16(x.x[2]) | to_bf16(x.x[3]) << 16};
#else
    *(uint4 *)to = {__float_as_uint(x.x[0]), __float_as_uint(x.x[1]), __float_as_uint(x.x[2]), __float_as_uint(x.x[3])};
#endif
}

// Reductions over the lanes of a warp; every lane gets the result.
__device__ __forceinline__ float warp_sum(float x) {
    for (int step = LANES / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

__device__ __forceinline__ u64 warp_sum(u64 x) {
    for (int step = LANES / 2; step > 0; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
}

__device__ __forceinline__ float warp_most(float x) {
    for (int step = LANES / 2; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, step));
    return x;
}

__device__ __forceinline__ u64 warp_least(u64 x) {
    for (int step = LANES / 2; step > 0; step /= 2) {
        u64 other = __shfl_xor_sync(ALL_LANES, x, step);
        x = other < x ? other : x;
    }
    return x;
}

// Inclusive prefix sums over the lanes.
__device__ __forceinline__ u64 warp_prefix(u64 x) {
    u32 lane = threadIdx.x % LANES;
    for (u32 step = 1; step < LANES; step *= 2) {
        u64 before = __shfl_up_sync(ALL_LANES, x, step);
        x += lane >= step ? before : 0;
    }
    return x;
}

// The sum over the threads of a block; every thread gets it. All threads must call it. A kernel may call this version only once,
// because a second call could overwrite the parts while some thread still reads them.
__device__ __forceinline__ float block_sum(float x) {
    __shared__ float parts[LANES];
    u32 warps = blockDim.x / LANES;
    x = warp_sum(x);
    if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
    __syncthreads();
    float sum = 0;
    for (u32 warp = 0; warp < warps; warp++) sum += parts[warp];
    return sum;
}

// These versions may be called repeatedly: the last barrier protects the parts until all threads have read them.
__device__ __forceinline__ u64 block_sum(u64 x) {
    __shared__ u64 parts[LANES];
    u32 warps = blockDim.x / LANES;
    x = warp_sum(x);
    if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
    __syncthreads();
    u64 sum = 0;
    for (u32 warp = 0; warp < warps; warp++) sum += parts[warp];
    __syncthreads();
    return sum;
}

__device__ __forceinline__ u64 block_least(u64 x) {
    __shared__ u64 parts[LANES];
    u32 warps = blockDim.x / LANES;
    x = warp_least(x);
    if (threadIdx.x % LANES == 0) parts[threadIdx.x / LANES] = x;
    __syncthreads();
    u64 least = parts[0];
    for (u32 warp = 1; warp < warps; warp++) least = parts[warp] < least ? parts[warp] : least;
    __syncthreads();
    return least;
}

// The sum over the threads before this one; the sum over all threads goes to `whole`.
__device__ __forceinline__ u32 block_before(u32 x, u32 *whole) {
    __shared__ u64 parts[LANES];
    u32 warp = threadIdx.x / LANES, warps = blockDim.x / LANES;
    u64 prefix = warp_prefix((u64)x);
    if (threadIdx.x % LANES == LANES - 1) parts[warp] = prefix;
    __syncthreads();
    u64 before = 0, sum = 0;
    for (u32 other = 0; other < warps; other++) {
        before += other < warp ? parts[other] : 0;
        sum += parts[other];
    }
    __syncthreads();
    *whole = (u32)sum;
    return (u32)(before + prefix) - x;
}

// A key that ascends where the number descends, in the order of `f32::total_cmp`: +0 comes before -0.
__device__ __forceinline__ u32 descending(float x) {
    u32 bits = __float_as_uint(x);
    return (bits & 0x80000000u) ? bits : ~(bits | 0x80000000u);
}

// The same key for f64.
__device__ __forceinline__ u64 descending(double x) {
    u64 bits = (u64)__double_as_longlong(x);
    return (bits >> 63) ? bits : ~(bits | (1ull << 63));
}

__device__ __forceinline__ bool is_finite(double x) { return x - x == 0.0; }

// Infinity, defined without a header.
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)
