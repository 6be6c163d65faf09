// What only PTX says, and what the compiler of the tests wants to know of: it has its own of these (`tests/cuda/shim.h`).

#ifdef __CUDACC__

// Where the next kernel may be launched before this one is over (programmatic dependent launch, PTX ISA "griddepcontrol"): it may be
// from here on. Elsewhere it does nothing.
__device__ __forceinline__ void let_others_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernels before are over, and what they wrote is there. Nothing that any kernel writes may be read or written before.
__device__ __forceinline__ void wait_for_others() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// 16 bytes that no kernel writes, and that nobody on this multiprocessor reads again. Not `ld.global.nc`: ptxas moves that behind the wait
// for others, before which it is wanted.
__device__ __forceinline__ uint4 load_once(const void *from) {
    uint4 x;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

// Adds the product of [16, 16] by [16, 8] numbers of bf16, in f32 (PTX ISA, "Matrix Fragments for mma.m16n8k16"): of g = lane / 4 and
// t = lane % 4, a.x holds the terms 2t and 2t + 1 of row g, a.y of row g + 8, a.z and a.w the same 8 terms later; b0 the terms 2t and 2t + 1
// of column g, b1 8 later; the sums are those of row g, columns 2t and 2t + 1, then of row g + 8.
__device__ __forceinline__ void multiply_tile(float *sums, uint4 a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

// Writes what other blocks write there, too, bit for bit: a race that changes nothing.
template <class T> __device__ __forceinline__ void write_same(T *to, T x) { *to = x; }

#endif

// What every kernel begins with that reads what others wrote.
__device__ __forceinline__ void begin() {
    let_others_begin();
    wait_for_others();
}
