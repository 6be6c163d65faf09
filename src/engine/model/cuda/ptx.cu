// Operations that need PTX, or that the tests' compiler must know about; the tests have their own versions (`tests/cuda/shim.h`).

#ifdef __CUDACC__

// Allows the next kernel to be launched from here on, before this one has ended, if it was launched that way (programmatic
// dependent launch, PTX ISA "griddepcontrol"). Otherwise does nothing.
__device__ __forceinline__ void let_others_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the previous kernels have ended and their writes are visible. Memory that any kernel writes must not be read or
// written before this.
__device__ __forceinline__ void wait_for_others() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Loads 16 bytes that no kernel writes and that this multiprocessor does not read again. It is not `ld.global.nc`, because ptxas
// moves that load after the wait for other kernels, and it must be requested before.
__device__ __forceinline__ uint4 load_once(const void *from) {
    uint4 x;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

// Adds the product of [16, 16] by [16, 8] bf16 numbers to f32 sums (PTX ISA, "Matrix Fragments for mma.m16n8k16"). With g = lane /
// 4 and t = lane % 4: a.x holds the terms 2t and 2t + 1 of row g, a.y those of row g + 8; a.z and a.w hold the same, 8 terms later.
// b0 holds the terms 2t and 2t + 1 of column g, b1 those 8 later. The sums are for the columns 2t and 2t + 1, first of row g, then
// of row g + 8.
__device__ __forceinline__ void multiply_tile(float *sums, uint4 a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// Writes a value that other blocks may also write there, bit for bit the same: a harmless race.
template <class T> __device__ __forceinline__ void write_same(T *to, T x) { *to = x; }

#endif

// The beginning of every kernel that reads what other kernels wrote.
__device__ __forceinline__ void begin() {
    let_others_begin();
    wait_for_others();
}
