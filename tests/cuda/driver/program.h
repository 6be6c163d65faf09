// What a compiled program tells the driver: the stand-in for NVRTC makes a library of it, the one for the driver opens it.
#pragma once

#include <cstddef>

struct KernelOfProgram {
    const char *name;
    const size_t *sizes;
    size_t arguments;
    unsigned most_threads;
};

// Exported by the library.
struct Program {
    const KernelOfProgram *kernels;
    size_t count;
    // Of all kernels together.
    size_t shared_bytes;
    // 0, or the code of `abort`, or FAILED_BY_ITSELF.
    int (*launch)(size_t kernel, const unsigned (&grid)[3], unsigned threads, const void *const *arguments, unsigned order);
    // Ends the launch, from a signal handler.
    void (*abort)(int code);
};
enum { FAILED_BY_ITSELF = 1 };

// What stands for machine code: this, and the library behind it.
struct Cubin {
    char magic[16];
    char architecture[16];
    unsigned long long bytes;
};
#define CUBIN_MAGIC "\x7f" "ELF stand-in"
