// The results of products, as the next kernels read them.

// The result of a product: [slots, columns] numbers of the model; or, if there are parts, [parts, slots, columns] in f32 that must
// still be added, with `stride` numbers from one part to the next. 16 bytes.
struct Sums {
    const void *from;
    u32 parts, stride;
};

// Reads the numbers at several places; all loads of a part are in flight together.
template <int COUNT, class Place>
__device__ __forceinline__ void numbers_of(const Sums &sums, Place place, float *x) {
    if (sums.parts == 0) {
#pragma unroll
        for (int j = 0; j < COUNT; j++) x[j] = load((const real *)sums.from + place(j));
        return;
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++) x[j] = 0;
    const float *part = (const float *)sums.from;
#pragma unroll 2
    for (u32 i = 0; i < sums.parts; i++, part += sums.stride) {
#pragma unroll
        for (int j = 0; j < COUNT; j++) x[j] += part[place(j)];
    }
#pragma unroll
    for (int j = 0; j < COUNT; j++) x[j] = rounded(x[j]);
}

// Adds PARTS parts of four numbers; their loads are in flight together.
template <int PARTS>
__device__ __forceinline__ void add_parts(const float *from, u32 stride, Four &sum) {
    uint4 loaded[PARTS];
#pragma unroll
    for (int i = 0; i < PARTS; i++) loaded[i] = __ldcg((const uint4 *)(from + (u64)i * stride));
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        sum.x[0] += __uint_as_float(loaded[i].x);
        sum.x[1] += __uint_as_float(loaded[i].y);
        sum.x[2] += __uint_as_float(loaded[i].z);
        sum.x[3] += __uint_as_float(loaded[i].w);
    }
}

// Any number of parts.
#define MANY_PARTS -1

// Reads four numbers from `at` on, a multiple of four. PARTS is the number of parts at compile time, so that there are no branches
// between the loads; a branch would make each load wait for the one before. The sum is rounded to the type of the model, as in
// products of libraries.
template <int PARTS>
__device__ __forceinline__ Four four_of(const Sums &sums, u64 at) {
    if constexpr (PARTS == 0) return load_four((const real *)sums.from + at);
    Four sum = {};
    const float *from = (const float *)sums.from + at;
    if constexpr (PARTS > 0) {
        add_parts<PARTS>(from, sums.stride, sum);
    } else {
        u32 i = 0;
#pragma unroll 1
        for (; i + 4 <= sums.parts; i += 4) add_parts<4>(from + (u64)i * sums.stride, sums.stride, sum);
#pragma unroll 1
        for (; i < sums.parts; i++) add_parts<1>(from + (u64)i * sums.stride, sums.stride, sum);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) sum.x[i] = rounded(sum.x[i]);
    return sum;
}

// Calls `function<PARTS>(…)` for the actual number of parts. The choice is made once, before many numbers are loaded. For matrices
// of 1,024, 2,048 and 3,072 terms in bf16 the loads of all parts are in flight together.
#if DRIFT_BF16
#define BY_PARTS(sums, function, ...) \
    ((sums).parts == 0       ? function<0>(__VA_ARGS__) \
         : (sums).parts == 2 ? function<2>(__VA_ARGS__) \
         : (sums).parts == 4 ? function<4>(__VA_ARGS__) \
         : (sums).parts == 6 ? function<6>(__VA_ARGS__) \
                             : function<MANY_PARTS>(__VA_ARGS__))
#else
#define BY_PARTS(sums, function, ...) ((sums).parts == 0 ? function<0>(__VA_ARGS__) : function<MANY_PARTS>(__VA_ARGS__))
#endif
