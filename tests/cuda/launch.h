// The kernels of a program by name, and how they are called with arguments as they lie in memory. It comes behind the kernels.
#pragma once

#include <cstdint>
#include <utility>

namespace shim {

struct Kernel {
    std::string name;
    // Bytes of each argument.
    std::vector<size_t> sizes;
    // Of a block, by __launch_bounds__.
    unsigned most_threads;
    std::function<void(dim3, unsigned, const void *const *)> launch;
};

// The section that a kernel lies in tells its bound; a section that no kernel lies in has no ends.
#define BOUND(threads) \
    extern "C" char __start_threads_##threads[] __attribute__((weak)); \
    extern "C" char __stop_threads_##threads[] __attribute__((weak));
BOUND(32) BOUND(64) BOUND(128) BOUND(256) BOUND(512) BOUND(1024)
#undef BOUND

static unsigned most_threads(uintptr_t kernel) {
#define BOUND(threads) \
    if ((uintptr_t)__start_threads_##threads <= kernel && kernel < (uintptr_t)__stop_threads_##threads) return threads
    BOUND(32);
    BOUND(64);
    BOUND(128);
    BOUND(256);
    BOUND(512);
    BOUND(1024);
#undef BOUND
    fail("a kernel without a bound that is known here");
}

template <class T> static T argument(const void *from) {
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class... T, size_t... I>
static void call(void (*kernel)(T...), dim3 grid, unsigned threads, const void *const *arguments,
                 std::index_sequence<I...>) {
    std::tuple<T...> values{argument<T>(arguments[I])...};
    launch(grid, threads, [&] { std::apply(kernel, values); });
}

template <class... T> static Kernel described(const char *name, void (*kernel)(T...)) {
    auto launched = [kernel](dim3 grid, unsigned threads, const void *const *arguments) {
        call(kernel, grid, threads, arguments, std::index_sequence_for<T...>());
    };
    return {name, {sizeof(T)...}, most_threads((uintptr_t)kernel), launched};
}

#ifndef KERNELS_OF_PROGRAM
#define KERNELS_OF_PROGRAM(each) \
    each(product_16) each(product_32) each(embed) each(add_norm) each(last_norm) each(gated) each(gather) \
    each(head) each(append_all) each(attend) each(enter) each(choose) each(choose_any) each(pack)
#endif

static const std::vector<Kernel> &kernels() {
#define KERNEL_OF_PROGRAM(kernel) described(#kernel, ::kernel),
    static const std::vector<Kernel> kernels = {KERNELS_OF_PROGRAM(KERNEL_OF_PROGRAM)};
#undef KERNEL_OF_PROGRAM
    return kernels;
}

}  // namespace shim
