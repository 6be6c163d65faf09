// CUDA's words for g++: the blocks of a launch run one after the other, the threads of a block as fibers that are switched at
// barriers and warp operations alone. Of those that can run it is always the first in an order that can be set, so that warps
// run as far ahead of others as barriers let them. A missing barrier so shows as a wrong number in most orders, and to `checks.h` in any.
//
// What stands for hardware: shared memory is filled with rubbish before each block; a barrier that threads reach at different
// lines, or not all of them, ends the program; so does a warp operation without all 32 lanes. Any one barrier can be left out.
#pragma once

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <sys/mman.h>
#include <tuple>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include "checks.h"

#define __device__
#define __global__
// Kernels with the same bound lie together; `launch.h` finds it by that.
#define __launch_bounds__(threads, ...) SECTION_OF_BOUND(threads)
#define SECTION_OF_BOUND(threads) __attribute__((section("threads_" #threads)))
#define __forceinline__ static inline
#define __noinline__ static __attribute__((noinline))
#define __shared__ static __attribute__((section("block_shared")))
#define __syncthreads() \
    do { \
        static shim::Site site(__FILE__, __LINE__); \
        shim::barrier(site); \
    } while (0)

struct dim3 {
    unsigned x, y, z;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static dim3 threadIdx, blockIdx, blockDim, gridDim;
extern char __start_block_shared[], __stop_block_shared[];

namespace shim {

enum State : uint8_t { IDLE, READY, AT_BARRIER, AT_WARP, DONE };
// A barrier in the text, once a thread has come to it.
struct Site {
    std::string name;
    bool is_left_out;
    Site(const char *file, int line);
};
struct Fiber {
    bool started;
    ucontext_t context;
    jmp_buf at;
    const Site *site;
    unsigned operations;
};
struct Warp {
    unsigned arrived, over;
    unsigned long long values[2][32];
};

static const size_t STACK = 256 << 10;
static Fiber fibers[1024];
// Side by side, since they are looked at after every switch.
static State states[1024];
static Warp warps[32];
static unsigned current, alive, at_barrier;
static bool some_became_ready;
static jmp_buf scheduler;
static std::function<void()> body;
static std::string left_out;
static std::vector<Site *> sites;
static unsigned order_seed;

inline Site::Site(const char *file, int line) {
    const char *folder = strrchr(file, '/');
    name = std::string(folder ? folder + 1 : file) + ":" + std::to_string(line);
    is_left_out = name == left_out;
    sites.push_back(this);
}

static void leave_out(const std::string &name) {
    left_out = name;
    for (Site *site : sites) site->is_left_out = site->name == name;
}

// Where a launch that fails goes on; without, the program ends.
static jmp_buf *after_failure;
enum { FAILED_BY_ITSELF = 1 };

[[noreturn]] static void fail(const char *what) {
    fprintf(stderr, "block %u %u %u, thread %u: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, current, what);
    if (after_failure) _longjmp(*after_failure, FAILED_BY_ITSELF);
    _exit(3);
}

static void leave() {
    if (_setjmp(fibers[current].at) == 0) _longjmp(scheduler, 1);
}

// A fiber takes one launch after the other.
static void run_fiber() {
    for (;;) {
        body();
        checks::thread_ends();
        states[current] = DONE;
        leave();
    }
}

static void enter(unsigned thread) {
    Fiber &fiber = fibers[thread];
    current = thread;
    threadIdx = {thread, 0, 0};
    checks::thread_goes_on(thread);
    if (_setjmp(scheduler) != 0) return;
    if (fiber.started) _longjmp(fiber.at, 1);
    fiber.started = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Stacks that begin at the same place of a page would share few lines of the cache, and each switch would wait for memory.
    fiber.context.uc_stack.ss_size = STACK - thread % 64 * 192;
    makecontext(&fiber.context, run_fiber, 0);
    setcontext(&fiber.context);
}

static void barrier(const Site &site) {
    if (site.is_left_out) return;
    at_barrier++;
    fibers[current].site = &site;
    states[current] = AT_BARRIER;
    leave();
}

// Gives all lanes what each of them gives; `values` holds until the next operation.
template <class T> static unsigned long long *exchange(T value) {
    Fiber &fiber = fibers[current];
    Warp &warp = warps[current / 32];
    unsigned long long *values = warp.values[fiber.operations++ % 2];
    values[current % 32] = 0;
    memcpy(&values[current % 32], &value, sizeof value);
    if (++warp.arrived < 32) {
        states[current] = AT_WARP;
        leave();
    } else {
        warp.arrived = 0;
        some_became_ready = true;
        for (unsigned lane = current / 32 * 32; lane < current / 32 * 32 + 32; lane++) states[lane] = READY;
    }
    return values;
}

// The order in which threads are looked at: as they are, backwards, or mixed by a seed.
static std::vector<unsigned> order(unsigned count) {
    std::vector<unsigned> order(count);
    for (unsigned i = 0; i < count; i++) order[i] = order_seed == 1 ? count - 1 - i : i;
    unsigned long long random = order_seed;
    for (unsigned i = count; order_seed > 1 && i > 1; i--) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(order[i - 1], order[(random >> 33) % i]);
    }
    return order;
}

static void release_barrier(unsigned count) {
    const Site *site = nullptr;
    for (unsigned i = 0; i < count; i++) {
        if (states[i] != AT_BARRIER) continue;
        if (site && site != fibers[i].site) fail("threads wait at different barriers");
        site = fibers[i].site;
        states[i] = READY;
    }
    at_barrier = 0;
    checks::passed_barrier();
}

static void run_block(const std::vector<unsigned> &order) {
    unsigned count = order.size();
    // Rubbish that is true, and rubbish that is false.
    memset(__start_block_shared, order_seed % 2 ? 0 : 0xa5, __stop_block_shared - __start_block_shared);
    for (unsigned i = 0; i < count; i++) states[i] = READY, fibers[i].operations = 0;
    for (Warp &warp : warps) warp.arrived = warp.over = 0;
    checks::block_begins(count);
    at_barrier = 0;
    // A kernel that runs in circles without a barrier is ended by the system.
    alarm(60);
    for (alive = count; alive > 0;) {
        bool moved = false;
        for (unsigned i = 0; i < count; i++) {
            unsigned thread = order[i];
            if (states[thread] != READY) continue;
            moved = true;
            some_became_ready = false;
            enter(thread);
            if (states[thread] == DONE) alive--;
            if (some_became_ready) i = -1;
        }
        if (alive > 0 && at_barrier == alive) {
            release_barrier(count);
        } else if (!moved) {
            fail("some threads wait for ever");
        }
    }
}

static void launch(dim3 grid, unsigned threads, std::function<void()> kernel) {
    body = kernel;
    checks::launch_begins();
    gridDim = grid;
    blockDim = {threads, 1, 1};
    std::vector<unsigned> threads_in_order = order(threads);
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) run_block(threads_in_order);
    alarm(0);
}

template <class To, class From> static To cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace shim

static inline void __syncwarp() {
    shim::exchange(0);
    // By the first one that is over it.
    if (++shim::warps[threadIdx.x / 32].over % 32 == 1) checks::passed_warp_barrier(threadIdx.x / 32);
}
template <class T> static T __shfl_xor_sync(unsigned, T x, int mask) {
    unsigned lane = threadIdx.x % 32;
    T other;
    memcpy(&other, &shim::exchange(x)[lane ^ mask], sizeof other);
    return other;
}
template <class T> static T __shfl_sync(unsigned, T x, unsigned from) {
    T other;
    memcpy(&other, &shim::exchange(x)[from], sizeof other);
    return other;
}
template <class T> static T __shfl_up_sync(unsigned, T x, unsigned by) {
    unsigned lane = threadIdx.x % 32;
    T other;
    memcpy(&other, &shim::exchange(x)[lane >= by ? lane - by : lane], sizeof other);
    return other;
}
static inline unsigned __ballot_sync(unsigned, bool holds) {
    unsigned long long *values = shim::exchange((unsigned)holds);
    unsigned bits = 0;
    for (unsigned lane = 0; lane < 32; lane++) bits |= (unsigned)values[lane] << lane;
    return bits;
}
// What `ptx.cu` says in PTX. Kernels here begin when those before are over.
static inline void let_others_begin() {}
static inline void wait_for_others() { checks::waited(); }
static inline uint4 load_once(const void *from) { return *(const uint4 *)from; }
// The product of two tiles, from the parts that lanes hold by the figures of the PTX manual for mma.m16n8k16; terms added one by one.
static inline void multiply_tile(float *sums, uint4 rows, unsigned b0, unsigned b1) {
    float a[16][16], b[8][16];
    auto widened = [](unsigned long long word, int i) { return shim::cast<float>((unsigned)(word >> 16 * i) << 16); };
    const unsigned parts[3][2] = {{rows.x, rows.z}, {rows.y, rows.w}, {b0, b1}};
    for (int part = 0; part < 3; part++) {
        unsigned long long *values = shim::exchange(parts[part][0] | (unsigned long long)parts[part][1] << 32);
        for (int lane = 0; lane < 32; lane++) {
            float *row = part < 2 ? a[lane / 4 + 8 * part] : b[lane / 4];
            for (int i = 0; i < 4; i++) row[lane % 4 * 2 + i / 2 * 8 + i % 2] = widened(values[lane], i);
        }
    }
    unsigned lane = threadIdx.x % 32;
    for (int i = 0; i < 4; i++) {
        const float *row = a[lane / 4 + i / 2 * 8], *column = b[lane % 4 * 2 + i % 2];
        for (int term = 0; term < 16; term++) sums[i] += row[term] * column[term];
    }
}
// Their own accesses are told of as what they are, not as loads and stores.
#define UNCHECKED __attribute__((noinline, no_sanitize("thread")))
template <class T> UNCHECKED static T atomicAdd(T *to, T x) {
    checks::atomic(to, sizeof x);
    T before = *to;
    *to += x;
    return before;
}
template <class T> UNCHECKED static T atomicExch(T *to, T x) {
    checks::atomic(to, sizeof x);
    T before = *to;
    *to = x;
    return before;
}
template <class T> UNCHECKED static void write_same(T *to, T x) {
    checks::write_same(to, sizeof x, memcmp(to, &x, sizeof x) == 0);
    *to = x;
}
template <class T> static T __ldcg(const T *from) { return *from; }
static inline void __threadfence() { checks::fence(); }
static inline void __trap() { shim::fail("a launch that the kernel does not take"); }
static inline int __ffs(unsigned x) { return __builtin_ffs(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline float __uint_as_float(unsigned x) { return shim::cast<float>(x); }
static inline unsigned __float_as_uint(float x) { return shim::cast<unsigned>(x); }
static inline long long __double_as_longlong(double x) { return shim::cast<long long>(x); }
static inline double __longlong_as_double(long long x) { return shim::cast<double>(x); }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
