// What the stand-in must refuse or let fail, tried by calls that a wrong program would make. `run.sh` runs it first.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

typedef unsigned long long Address;

extern "C" {
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuStreamCreate(void **, unsigned);
int cuStreamSynchronize(void *);
int cuStreamWaitEvent(void *, void *, unsigned);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuStreamIsCapturing(void *, int *);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int cuEventCreate(void **, unsigned);
int cuEventRecord(void *, void *);
int cuEventSynchronize(void *);
int cuMemAlloc_v2(Address *, size_t);
int cuMemFree_v2(Address);
int cuMemAllocAsync(Address *, size_t, void *);
int cuMemGetInfo_v2(size_t *, size_t *);
int cuDeviceGetDefaultMemPool(void **, int);
int cuMemPoolSetAttribute(void *, int, const unsigned long long *);
int cuMemPoolGetAttribute(void *, int, unsigned long long *);
int cuMemPoolTrimTo(void *, size_t);
int cuMemFreeAsync(Address, void *);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemsetD8Async(Address, unsigned char, size_t, void *);
int cuMemcpyHtoDAsync_v2(Address, const void *, size_t, void *);
int cuMemcpyDtoHAsync_v2(void *, Address, size_t, void *);
int cuMemcpyDtoDAsync_v2(Address, Address, size_t, void *);
int cuModuleLoadData(void **, const void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int nvrtcCreateProgram(void **, const char *, const char *, int, const char *const *, const char *const *);
int nvrtcCompileProgram(void *, int, const char *const *);
int nvrtcGetProgramLog(void *, char *);
int nvrtcGetCUBINSize(void *, size_t *);
int nvrtcGetCUBIN(void *, char *);
int cublasCreate_v2(void **);
int cublasSetStream_v2(void *, void *);
int cublasSetWorkspace_v2(void *, void *, size_t);
int cublasGemmEx(void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int,
                 const void *, void *, int, int, int, int);
}

static int wrong = 0;

static void expect(int code, int found, const char *what) {
    if (code == found) return;
    printf("  FAILED %s: %d where %d is right\n", what, found, code);
    wrong++;
}

static void *stream, *other;

static void *new_stream() {
    enum { NON_BLOCKING = 1 };
    void *stream;
    expect(0, cuStreamCreate(&stream, NON_BLOCKING), "a stream");
    return stream;
}

static Address memory(size_t bytes) {
    Address address = 0;
    expect(0, cuMemAlloc_v2(&address, bytes), "memory");
    return address;
}

static void copies() {
    Address there = memory(100);
    expect(0, (int)(there % 256), "the address of memory");
    unsigned char *locked, here[100], value = 1;
    expect(0, cuMemcpyDtoHAsync_v2(here, there, 100, stream), "a copy to the host");
    expect(0xff, here[99], "what memory holds when it is given");
    expect(0, cuMemHostAlloc((void **)&locked, 100, 0), "page-locked memory");
    locked[0] = value;
    expect(0, cuMemcpyHtoDAsync_v2(there, locked, 1, stream), "a copy from page-locked memory");
    locked[0] = 2;
    expect(0, cuMemcpyHtoDAsync_v2(there + 1, &value, 1, stream), "a copy from other memory");
    value = 3;
    expect(0, cuMemcpyDtoHAsync_v2(here, there, 2, stream), "a copy to the host");
    expect(2, here[0], "page-locked memory is read when the copy is done");
    expect(1, here[1], "other memory is read by the call");
    locked[0] = 0;
    expect(0, cuMemcpyDtoHAsync_v2(locked, there, 1, stream), "a copy to page-locked memory");
    expect(0, locked[0], "which is not done yet");
    cuStreamSynchronize(stream);
    expect(2, locked[0], "and now is");
    expect(1, cuMemcpyHtoDAsync_v2(there, here, 101, stream), "a copy beyond the end");
    expect(1, cuMemsetD8Async(there + 1, 0, 100, stream), "a set beyond the end");
    expect(1, cuMemcpyDtoDAsync_v2(there, there + 50, 51, stream), "a copy from beyond the end");
    expect(1, cuMemAlloc_v2(&there, 0), "no bytes");
    expect(1, cuMemFree_v2(there + 16), "memory that was not given");
}

static void order() {
    Address first = memory(4);
    void *event;
    unsigned char here = 9;
    cuMemsetD8Async(first, 1, 4, other);
    expect(0, cuEventCreate(&event, 0), "an event");
    expect(0, cuEventSynchronize(event), "an event that was not recorded");
    cuEventRecord(event, other);
    cuMemsetD8Async(first, 2, 4, other);
    cuMemcpyDtoHAsync_v2(&here, first, 1, stream);
    expect(0xff, here, "without an event another stream has done nothing");
    cuStreamWaitEvent(stream, event, 0);
    cuMemcpyDtoHAsync_v2(&here, first, 1, stream);
    expect(1, here, "what is before an event is done, and nothing behind it");
    Address pool;
    expect(0, cuMemAllocAsync(&pool, 4, stream), "memory of the pool");
    expect(0, cuMemFreeAsync(pool, stream), "which is freed");
    expect(1, cuMemsetD8Async(pool, 0, 4, stream), "and may not be used any more");
    expect(1, cuMemFreeAsync(pool, stream), "nor freed again");
}

static int free_kilobytes() {
    size_t free, total;
    expect(0, cuMemGetInfo_v2(&free, &total), "what is free");
    return (int)(free >> 10);
}

static void pool() {
    enum { KEEPS = 4, HAS = 5, USES = 7 };
    void *pool;
    Address large;
    unsigned long long all = ~0ull, none = 0, bytes;
    auto taken_and_freed = [&](int before, const char *what) {
        expect(0, cuMemAllocAsync(&large, 1 << 20, stream), what);
        expect(before - 1024, free_kilobytes(), "less is free");
        expect(0, cuMemFreeAsync(large, stream), what);
        expect(before - 1024, free_kilobytes(), "the stream has not come to it");
        cuStreamSynchronize(stream);
    };
    cuStreamSynchronize(stream);
    int before = free_kilobytes();
    taken_and_freed(before, "a pool that keeps nothing");
    expect(before, free_kilobytes(), "gives all back");
    expect(0, cuDeviceGetDefaultMemPool(&pool, 0), "the pool");
    expect(0, cuMemPoolSetAttribute(pool, KEEPS, &all), "is to keep all");
    taken_and_freed(before, "a pool that keeps all");
    expect(before - 1024, free_kilobytes(), "gives nothing back");
    expect(0, cuMemPoolGetAttribute(pool, HAS, &bytes), "what it has");
    expect(1 << 20, (int)bytes, "is what it was given");
    expect(0, cuMemPoolGetAttribute(pool, USES, &bytes), "what it uses");
    expect(0, (int)bytes, "is nothing");
    expect(0, cuMemPoolTrimTo(pool, 0), "and then it is told to");
    expect(before, free_kilobytes(), "give it back");
    expect(0, cuMemPoolSetAttribute(pool, KEEPS, &none), "to keep nothing");
    expect(1, cuMemPoolSetAttribute(pool, HAS, &none), "what nobody sets");
}

static const float ONE = 1, ZERO = 0;

static int product(void *blas, Address a, Address b, Address c, int m, int a_stride) {
    return cublasGemmEx(blas, 0, 0, m, 2, 2, &ONE, (void *)a, 0, a_stride, (void *)b, 0, 2, &ZERO, (void *)c, 0, m, 68, -1);
}

static void products() {
    void *blas;
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 10, 100, 1000}, c[6];
    Address at[] = {memory(sizeof a), memory(sizeof b), memory(sizeof c), memory(1 << 20)};
    cuMemcpyHtoDAsync_v2(at[0], a, sizeof a, stream);
    cuMemcpyHtoDAsync_v2(at[1], b, sizeof b, stream);
    expect(0, cublasCreate_v2(&blas), "cuBLAS");
    expect(0, cublasSetStream_v2(blas, stream), "its stream");
    expect(7, product(blas, at[0], at[1], at[2], 3, 2), "columns that are nearer than they are long");
    expect(0, product(blas, at[0], at[1], at[2], 3, 3), "a product");
    cuMemcpyDtoHAsync_v2(c, at[2], sizeof c, stream);
    // [1 4; 2 5; 3 6] · [1 100; 10 1000], by columns.
    const float right[] = {41, 52, 63, 4100, 5200, 6300};
    expect(0, memcmp(c, right, sizeof c), "its numbers");
    void *graph;
    cuStreamBeginCapture_v2(stream, 1);
    expect(3, product(blas, at[0], at[1], at[2], 3, 3), "a captured product without a workspace");
    expect(901, cuStreamEndCapture(stream, &graph), "which ends the capture");
    expect(7, cublasSetWorkspace_v2(blas, (void *)(at[3] + 16), 1 << 10), "a workspace between two addresses");
    expect(0, cublasSetWorkspace_v2(blas, (void *)at[3], 1 << 20), "a workspace");
    cuStreamBeginCapture_v2(stream, 1);
    expect(0, product(blas, at[0], at[1], at[2], 3, 3), "a captured product");
    expect(14, product(blas, at[0], at[1], at[2], 2, 2), "the first product of its kind in a capture");
    expect(901, cuStreamEndCapture(stream, &graph), "which ends the capture");
}

// What makes a capture fail.
static void refused(const char *what, int code, int (*call)()) {
    void *graph;
    int status;
    expect(0, cuStreamBeginCapture_v2(stream, 1), "a capture");
    expect(code, call(), what);
    cuStreamIsCapturing(stream, &status);
    expect(2, status, what);
    expect(901, cuStreamEndCapture(stream, &graph), what);
}

static void captures() {
    static Address there;
    static void *event, *graph, *executable;
    static unsigned char here;
    there = memory(4);
    cuEventCreate(&event, 0);
    cuEventRecord(event, other);
    refused("waiting for the stream", 900, [] { return cuStreamSynchronize(stream); });
    refused("memory", 900, [] { return cuMemAlloc_v2(&there, 4); });
    refused("memory of the pool", 900, [] { return cuMemAllocAsync(&there, 4, stream); });
    refused("freeing", 900, [] { return cuMemFree_v2(there); });
    refused("a module", 900, [] { return cuModuleLoadData(&graph, ".entry x("); });
    refused("a copy to other memory", 900, [] { return cuMemcpyDtoHAsync_v2(&here, there, 1, stream); });
    refused("an event from outside", 905, [] { return cuStreamWaitEvent(stream, event, 0); });
    refused("waiting for an event", 900, [] { return cuEventSynchronize(event); });
    expect(900, cuStreamBeginCapture_v2(nullptr, 1), "a capture of the default stream");
    expect(401, cuStreamEndCapture(stream, &graph), "the end of no capture");
    expect(0, cuStreamBeginCapture_v2(stream, 1), "a capture");
    expect(401, cuStreamBeginCapture_v2(stream, 1), "a capture in a capture");
    std::thread([] { expect(201, cuMemAlloc_v2(&there, 4), "a thread without a context"); }).join();
    there = 0;
    Address before = 0;
    cuStreamEndCapture(stream, &graph);
    before = memory(4);
    cuMemsetD8Async(before, 0, 4, stream);
    cuStreamBeginCapture_v2(stream, 1);
    expect(0, cuMemsetD8Async(before, 5, 4, stream), "a captured set");
    expect(0, cuStreamEndCapture(stream, &graph), "the end of a capture");
    cuMemcpyDtoHAsync_v2(&here, before, 1, stream);
    expect(0, here, "what is captured is not done");
    expect(0, cuGraphInstantiateWithFlags(&executable, graph, 0), "a graph");
    expect(0, cuGraphLaunch(executable, stream), "its launch");
    cuMemcpyDtoHAsync_v2(&here, before, 1, stream);
    expect(5, here, "but when the graph is launched");
    // The last, for nothing works behind it: memory that is gone when the work with it is done.
    expect(0, cuGraphLaunch(executable, stream), "another launch");
    expect(0, cuMemFree_v2(before), "freeing what it writes");
    expect(700, cuStreamSynchronize(stream), "work with memory that is gone");
    expect(700, cuMemAlloc_v2(&there, 4), "all that follows");
}

static const char *const KERNELS = R"(
#define KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
KERNEL(64) counts(unsigned *to, unsigned from) {
    __shared__ unsigned first;
    if (threadIdx.x == 0) first = from;
    __syncthreads();
    to[blockIdx.x * blockDim.x + threadIdx.x] = first + threadIdx.x;
}
KERNEL(64) far(unsigned *to, unsigned) { to[4096 + threadIdx.x] = 1; }
KERNEL(64) near(unsigned *to, unsigned from) { to[from + threadIdx.x] = 1; }
KERNEL(64) between(unsigned *to, unsigned from) { *(uint4 *)(to + 1) = {from, from, from, from}; }
KERNEL(64) traps(unsigned *, unsigned from) { if (from == threadIdx.x) __trap(); }
)";

static std::string compiled(const char *architecture) {
    void *program;
    size_t bytes;
    std::string option = std::string("--gpu-architecture=") + architecture;
    const char *options[] = {option.c_str(), "--std=c++17"};
    expect(0, nvrtcCreateProgram(&program, KERNELS, "drift.cu", 0, nullptr, nullptr), "a program");
    expect(5, nvrtcCompileProgram(program, 1, options + 1), "a program for no architecture");
    if (int code = nvrtcCompileProgram(program, 2, options)) {
        char log[1 << 16];
        nvrtcGetProgramLog(program, log);
        fputs(log, stderr);
        expect(0, code, "compilation");
        exit(1);
    }
    nvrtcGetCUBINSize(program, &bytes);
    std::string cubin(bytes, ' ');
    expect(0, nvrtcGetCUBIN(program, cubin.data()), "what was compiled");
    return cubin;
}

static void *kernel(void *module, const char *name) {
    void *function = nullptr;
    expect(0, cuModuleGetFunction(&function, module, name), name);
    return function;
}

static int launch(void *function, unsigned blocks, unsigned threads, Address to, unsigned from, unsigned rows = 1) {
    void *arguments[] = {&to, &from};
    return cuLaunchKernel(function, blocks, rows, 1, threads, 1, 1, 0, stream, arguments, nullptr);
}

static void start() {
    void *context;
    Address none;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    expect(201, cuMemAlloc_v2(&none, 4), "memory without a context");
    cuCtxSetCurrent(context);
    stream = new_stream(), other = new_stream();
}

static void launches(const std::string &cubin, const std::string &of_another) {
    void *module, *function;
    start();
    expect(209, cuModuleLoadData(&module, of_another.data()), "a module for another GPU");
    expect(0, cuModuleLoadData(&module, cubin.data()), "a module");
    expect(500, cuModuleGetFunction(&function, module, "is_not_there"), "a kernel that is not there");
    function = kernel(module, "counts");
    unsigned here[128];
    Address there = memory(sizeof here);
    expect(0, launch(function, 2, 64, there, 5), "a launch");
    cuMemcpyDtoHAsync_v2(here, there, sizeof here, stream);
    expect(5 + 63, here[127], "what it wrote");
    expect(1, launch(function, 1, 65, there, 0), "more threads than the kernel takes");
    expect(1, launch(function, 0, 64, there, 0), "no blocks");
    expect(1, launch(function, 1, 64, there, 0, 65536), "more rows of blocks than there can be");
}

// A kernel that fails, in a process of its own: nothing goes on behind it.
static void fails(const std::string &cubin, const char *name, unsigned from, int code) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *module;
        wrong = 0;
        start();
        cuModuleLoadData(&module, cubin.data());
        Address there = memory(100);
        expect(0, launch(kernel(module, name), 1, 32, there, from), name);
        expect(code, cuStreamSynchronize(stream), name);
        expect(code, cuMemFree_v2(there), "what follows a kernel that failed");
        fflush(stdout);
        _exit(wrong > 0);
    }
    int status;
    waitpid(child, &status, 0);
    expect(0, status, name);
}

int main() {
    std::string cubin = compiled("sm_90a"), of_another = compiled("sm_80");
    fails(cubin, "far", 0, 700);
    fails(cubin, "near", 0, 700);
    fails(cubin, "between", 0, 716);
    fails(cubin, "traps", 7, 719);
    launches(cubin, of_another);
    copies();
    order();
    pool();
    products();
    captures();
    printf("the stand-in: %s\n", wrong ? "FAILED" : "refuses what it has to");
    return wrong > 0;
}
