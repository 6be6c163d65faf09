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

enum State : uint8_t { RUNS, AT_BARRIER, DONE };
// A barrier in the text, once a thread has come to it.
struct Site {
    std::string name;
    bool is_left_out;
    Site(const char *file, int line);
};
// glibc's longjmp looks for handlers to call on the way, of which fibers have none: that was a tenth of the time of a run.
#if defined(__x86_64__) && !defined(__clang__)
typedef void *Place[5];
#define REMEMBER(place) __builtin_setjmp(place)
#define RESUME(place) __builtin_longjmp(place, 1)
#else
typedef jmp_buf Place;
#define REMEMBER(place) _setjmp(place)
#define RESUME(place) _longjmp(place, 1)
#endif
struct alignas(64) Fiber {
    Place at;
    const Site *site;
    unsigned operations;
    bool started;
};
struct Warp {
    unsigned arrived, over;
    // The places of its threads, as in `ready`.
    uint64_t places[16];
    unsigned long long values[2][32];
};

static const size_t STACK = 256 << 10;
static Fiber fibers[1024];
static State states[1024];
static void run_fiber();
// The order in which threads are looked at, the place of each in it, and of each place whether its thread can run.
static unsigned short in_order[1024], place_of[1024];
static uint64_t ready[16];
static Warp warps[32];
static unsigned current, alive, at_barrier;
static Place scheduler;
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

static void is_ready(unsigned thread) { ready[place_of[thread] / 64] |= 1ull << place_of[thread] % 64; }

// Gives the current thread a stack, and begins with it.
[[noreturn]] static __attribute__((noinline)) void start() {
    fibers[current].started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Stacks that begin at the same place of a page would share few lines of the cache, and each switch would wait for memory.
    context.uc_stack.ss_size = STACK - current % 64 * 192;
    makecontext(&context, run_fiber, 0);
    setcontext(&context);
    abort();
}

// Goes on with a thread where it left, or at the beginning.
[[noreturn]] static void enter(unsigned thread) {
    current = threadIdx.x = thread;
    checks::thread_goes_on(thread);
    if (!fibers[thread].started) start();
    RESUME(fibers[thread].at);
}

// Goes on with the first thread that can run; without, with what began the block.
[[noreturn]] static void go_on() {
    for (unsigned word = 0; word < 16; word++) {
        if (!ready[word]) continue;
        unsigned place = word * 64 + __builtin_ctzll(ready[word]);
        ready[word] &= ready[word] - 1;
        enter(in_order[place]);
    }
    RESUME(scheduler);
}

// A macro, since what remembers a place cannot be part of another function, and each return after a switch is mispredicted.
#define LEAVE() \
    do { \
        if (REMEMBER(fibers[current].at) == 0) go_on(); \
    } while (0)

// A fiber takes one launch after the other.
static void run_fiber() {
    for (;;) {
        body();
        checks::thread_ends();
        states[current] = DONE;
        alive--;
        LEAVE();
    }
}

static __attribute__((noinline)) void barrier(const Site &site) {
    if (site.is_left_out) return;
    at_barrier++;
    fibers[current].site = &site;
    states[current] = AT_BARRIER;
    LEAVE();
}

// Gives all lanes what each of them gives; `values` holds until the next operation.
template <class T> static __attribute__((noinline)) unsigned long long *exchange(T value) {
    Fiber &fiber = fibers[current];
    Warp &warp = warps[current / 32];
    unsigned long long *values = warp.values[fiber.operations++ % 2];
    values[current % 32] = 0;
    memcpy(&values[current % 32], &value, sizeof value);
    if (++warp.arrived < 32) {
        LEAVE();
    } else {
        // This one goes on until it waits itself.
        warp.arrived = 0;
        for (int word = 0; word < 16; word++) ready[word] |= warp.places[word];
        ready[place_of[current] / 64] &= ~(1ull << place_of[current] % 64);
    }
    return values;
}

// Threads are looked at as they are, backwards, or mixed by a seed.
static void set_order(unsigned count) {
    for (unsigned i = 0; i < count; i++) in_order[i] = order_seed == 1 ? count - 1 - i : i;
    unsigned long long random = order_seed;
    for (unsigned i = count; order_seed > 1 && i > 1; i--) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(in_order[i - 1], in_order[(random >> 33) % i]);
    }
    for (Warp &warp : warps) memset(warp.places, 0, sizeof warp.places);
    for (unsigned i = 0; i < count; i++) {
        place_of[in_order[i]] = i;
        warps[in_order[i] / 32].places[i / 64] |= 1ull << i % 64;
    }
}

static void release_barrier(unsigned count) {
    const Site *site = nullptr;
    for (unsigned i = 0; i < count; i++) {
        if (states[i] != AT_BARRIER) continue;
        if (site && site != fibers[i].site) fail("threads wait at different barriers");
        site = fibers[i].site;
        states[i] = RUNS;
        is_ready(i);
    }
    at_barrier = 0;
    checks::passed_barrier();
}

// What remembers a place cannot be part of another function.
static __attribute__((noinline)) void run_threads() {
    if (REMEMBER(scheduler) == 0) go_on();
}

static void run_block(unsigned count) {
    // Rubbish that is true, and rubbish that is false.
    memset(__start_block_shared, order_seed % 2 ? 0 : 0xa5, __stop_block_shared - __start_block_shared);
    memset(ready, 0, sizeof ready);
    for (unsigned i = 0; i < count; i++) states[i] = RUNS, fibers[i].operations = 0, is_ready(i);
    for (Warp &warp : warps) warp.arrived = warp.over = 0;
    checks::block_begins(count);
    at_barrier = 0;
    // A kernel that runs in circles without a barrier is ended by the system.
    alarm(60);
    for (alive = count; alive > 0;) {
        run_threads();
        if (alive > 0 && at_barrier < alive) fail("some threads wait for ever");
        if (alive > 0) release_barrier(count);
    }
}

static void launch(dim3 grid, unsigned threads, std::function<void()> kernel) {
    body = kernel;
    checks::launch_begins();
    gridDim = grid;
    blockDim = {threads, 1, 1};
    set_order(threads);
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) run_block(threads);
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
