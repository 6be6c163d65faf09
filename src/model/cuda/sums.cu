// What products come to, as the kernels behind them read it.

// [slots, columns] numbers of the model, or, where there are parts, [parts, slots, columns] in f32 that are yet to be added, `stride`
// numbers from one part to the next. 16 bytes.
struct Sums {
    const void *from;
    u32 parts, stride;
};

// Parts whose loads are in flight together.
#define PARTS_AHEAD 8

// The numbers at several places, all loads of a part in flight together.
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

// Four numbers from `at` on, a multiple of four. As products in libraries are, their sum is rounded to what the model computes with.
__device__ __forceinline__ Four four_of(const Sums &sums, u64 at) {
    if (sums.parts == 0) return load_four((const real *)sums.from + at);
    Four sum = {};
    const float *start = (const float *)sums.from + at;
    for (u32 first = 0; first < sums.parts; first += PARTS_AHEAD) {
        uint4 loaded[PARTS_AHEAD];
#pragma unroll
        for (u32 i = 0; i < PARTS_AHEAD; i++) {
            loaded[i] = *(const uint4 *)(start + (u64)min(first + i, sums.parts - 1) * sums.stride);
        }
#pragma unroll
        for (u32 i = 0; i < PARTS_AHEAD; i++) {
            if (first + i >= sums.parts) break;
            sum.x[0] += __uint_as_float(loaded[i].x);
            sum.x[1] += __uint_as_float(loaded[i].y);
            sum.x[2] += __uint_as_float(loaded[i].z);
            sum.x[3] += __uint_as_float(loaded[i].w);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) sum.x[i] = rounded(sum.x[i]);
    return sum;
}
