// Kernels with one fault each, unless they are told to be sound: what `checks.cpp` has to find, and what it must not. They come behind
// `prelude.cu` and `ptx.cu`; `tests/it/cuda_checks.rs` launches them. data [count], of which the last 32 numbers were never written.

KERNEL(64) strays(u32 *data, u32 count, u32 is_sound) {
    begin();
    data[threadIdx.x] = data[is_sound ? threadIdx.x : count + threadIdx.x];
}

KERNEL(64) reads_unwritten(u32 *data, u32 count, u32 is_sound) {
    begin();
    data[threadIdx.x] = data[is_sound ? threadIdx.x : count - 64 + threadIdx.x];
}

KERNEL(64) reads_unwritten_shared(u32 *data, u32 count, u32 is_sound) {
    begin();
    __shared__ u32 numbers[64];
    if (is_sound || threadIdx.x != 40) numbers[threadIdx.x] = threadIdx.x;
    __syncthreads();
    data[threadIdx.x] = numbers[63 - threadIdx.x];
}

KERNEL(32) is_misaligned(u32 *data, u32 count, u32 is_sound) {
    begin();
    if (threadIdx.x == 0) *(uint2 *)(data + (is_sound ? 2 : 1)) = {1, 2};
}

// Shuffles order nothing.
KERNEL(32) races_in_a_warp(u32 *data, u32 count, u32 is_sound) {
    begin();
    __shared__ u32 numbers[32];
    numbers[threadIdx.x] = 0;
    __syncwarp();
    numbers[threadIdx.x] = threadIdx.x;
    if (is_sound) {
        __syncwarp();
    } else {
        __shfl_sync(ALL_LANES, threadIdx.x, 0);
    }
    data[threadIdx.x] = numbers[threadIdx.x ^ 1];
}

KERNEL(64) races_in_a_block(u32 *data, u32 count, u32 is_sound) {
    begin();
    __shared__ u32 numbers[64];
    numbers[threadIdx.x] = 0;
    __syncthreads();
    numbers[threadIdx.x] = threadIdx.x;
    if (is_sound) {
        __syncthreads();
    } else {
        __syncwarp();
    }
    data[threadIdx.x] = numbers[63 - threadIdx.x];
}

// A load, then a store of another warp.
KERNEL(64) overwrites(u32 *data, u32 count, u32 is_sound) {
    begin();
    u32 number = data[0];
    if (is_sound) __syncthreads();
    if (threadIdx.x == 33) data[0] = number + 1;
}

KERNEL(64) mixes_atomic_and_not(u32 *data, u32 count, u32 is_sound) {
    begin();
    __shared__ u32 sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    if (threadIdx.x == 0) sum = 1;
    if (is_sound) __syncthreads();
    atomicAdd(&sum, 1u);
    __syncthreads();
    data[threadIdx.x] = sum;
}

KERNEL(32) races_between_blocks(u32 *data, u32 count, u32 is_sound) {
    begin();
    if (threadIdx.x == 0) data[is_sound ? blockIdx.x : 0] = 1;
}

KERNEL(32) writes_other_bits(u32 *data, u32 count, u32 is_sound) {
    begin();
    write_same(data + threadIdx.x, is_sound ? 5 : blockIdx.x);
    data[32 + 32 * blockIdx.x + threadIdx.x] = data[threadIdx.x];
}

// A load behind a barrier does not hide the atomic operation before it from another block.
KERNEL(64) reads_what_is_added_to(u32 *data, u32 count, u32 is_sound) {
    begin();
    if (threadIdx.x == 0 && (is_sound || blockIdx.x == 0)) atomicAdd(data, 1u);
    __syncthreads();
    if (!is_sound) data[64 * (1 + blockIdx.x) + threadIdx.x] = data[0];
}

// The last block reads what the others wrote; data[0] is zero. Fences of all threads before the barrier say nothing of what other threads than
// the one of the atomic operation wrote.
KERNEL(64) releases_too_early(u32 *data, u32 count, u32 is_sound) {
    begin();
    __shared__ u32 is_last;
    u32 *own = data + 64 * (1 + blockIdx.x);
    own[threadIdx.x] = threadIdx.x;
    if (!is_sound) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        if (is_sound) __threadfence();
        is_last = atomicAdd(data, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (is_last) own[threadIdx.x] = data[64 + threadIdx.x];
}

// The same, where it is the reader that has no fence.
KERNEL(64) acquires_nothing(u32 *data, u32 count, u32 is_sound) {
    begin();
    __shared__ u32 is_last;
    u32 *own = data + 64 * (1 + blockIdx.x);
    own[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(data, 1u) == gridDim.x - 1;
        if (is_sound) __threadfence();
    }
    __syncthreads();
    if (is_last) own[threadIdx.x] = data[64 + threadIdx.x];
}

// Of data that a kernel wrote before; data[count - 64] on is the host's.
KERNEL(32) reads_before_it_waits(u32 *data, u32 count, u32 is_sound) {
    let_others_begin();
    u32 number = data[is_sound ? count - 64 : 0];
    wait_for_others();
    data[threadIdx.x] = number;
}

KERNEL(32) writes_before_it_waits(u32 *data, u32 count, u32 is_sound) {
    let_others_begin();
    if (is_sound) wait_for_others();
    if (threadIdx.x == 0) data[count - 64] = 1;
    if (!is_sound) wait_for_others();
}

KERNEL(32) never_waits(u32 *data, u32 count, u32 is_sound) {
    if (is_sound || threadIdx.x != 3) wait_for_others();
}
