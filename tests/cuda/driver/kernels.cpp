// A program as a library: the stand-in for NVRTC compiles this with the text that it was given as `kernels.cu`.
#include "../shim.h"

#include "kernels.cu"

#include "../launch.h"
#include "program.h"

static int launch(size_t kernel, const unsigned (&grid)[3], unsigned threads, const void *const *arguments, unsigned order) {
    jmp_buf failed;
    shim::after_failure = &failed;
    shim::order_seed = order;
    if (int code = _setjmp(failed)) return code;
    shim::kernels()[kernel].launch({grid[0], grid[1], grid[2]}, threads, arguments);
    return 0;
}

static void abort_launch(int code) { _longjmp(*shim::after_failure, code); }

static std::vector<KernelOfProgram> described() {
    std::vector<KernelOfProgram> all;
    for (const shim::Kernel &kernel : shim::kernels()) {
        all.push_back({kernel.name.c_str(), kernel.sizes.data(), kernel.sizes.size(), kernel.most_threads});
    }
    return all;
}

extern "C" __attribute__((visibility("default"))) const Program *program() {
    static const std::vector<KernelOfProgram> kernels = described();
    static const Program program = {
        kernels.data(), kernels.size(), (size_t)(__stop_block_shared - __start_block_shared), launch, abort_launch,
    };
    return &program;
}
