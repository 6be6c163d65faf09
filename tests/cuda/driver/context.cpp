// The device, its context, calls and their errors, and the report when the program ends.
#include "device.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace device {

// Neither is ever destroyed: a program may call until its end.
Gpu &gpu = *new Gpu;
static std::recursive_mutex &mutex = *new std::recursive_mutex;
static std::map<std::string, unsigned long long> &counts = *new std::map<std::string, unsigned long long>;
static std::map<std::string, unsigned long long> &uses = *new std::map<std::string, unsigned long long>;
static thread_local bool has_context;

static void *const THE_CONTEXT = (void *)0x40;

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("stand-in: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    count("said");
}

void count(const std::string &what, unsigned long long by) { counts[what] += by; }

std::string setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

int capability() {
    std::string set = setting("STAND_IN_CAPABILITY");
    return set.empty() ? 90 : atoi(set.c_str());
}

static bool is_of_the_device(int code) { return code >= ILLEGAL_ADDRESS && code <= LAUNCH_FAILED; }

// STAND_IN_FAIL is NAME:USE:CODE, the uses of a name counted from 1. A device that is lost to one process is there for the next: in that
// which goes on for another nothing fails.
int injected(const std::string &name) {
    static const std::string wanted = getenv("DRIFT_GPU_GIVEN_UP") ? "" : setting("STAND_IN_FAIL");
    unsigned long long use = ++uses[name];
    size_t last = wanted.rfind(':'), middle = last == std::string::npos ? last : wanted.rfind(':', last - 1);
    if (middle == std::string::npos || wanted.compare(0, middle, name) != 0) return 0;
    if (strtoull(wanted.c_str() + middle + 1, nullptr, 10) != use) return 0;
    return atoi(wanted.c_str() + last + 1);
}

// Calls that might wait for what is captured, or change it, are refused and make the capture fail: under a capture of a thread in
// this thread, under a global one in all.
static int refuse_in_capture(const char *name) {
    for (auto &[handle, stream] : gpu.streams.all()) {
        Capture *capture = stream->capture.get();
        if (!capture || capture->mode == Capture::RELAXED) continue;
        if (capture->mode == Capture::THREAD_LOCAL && capture->thread != std::this_thread::get_id()) continue;
        return refuse(*stream, name, CAPTURE_UNSUPPORTED);
    }
    return SUCCESS;
}

Call::Call(const char *name, Need need) : code(0), held(mutex) {
    code = injected(name);
    // An error of the device that this call is the first to tell.
    if (is_of_the_device(code)) gpu.failure = code;
    if (code || need == NOTHING) return;
    if (gpu.failure) {
        code = gpu.failure;
    } else if (!has_context) {
        say("%s in a thread without a context", name);
        code = INVALID_CONTEXT;
    } else if (need == NO_CAPTURE) {
        code = refuse_in_capture(name);
    }
}

void *new_handle() {
    static uintptr_t last = 0x1000;
    return (void *)(last += 16);
}

static void write_report() {
    std::string path = setting("STAND_IN_REPORT");
    FILE *file = path.empty() ? nullptr : fopen(path.c_str(), "w");
    if (!file) return;
    for (auto &[name, count] : counts) fprintf(file, "%s: %llu\n", name.c_str(), count);
    for (auto &[name, count] : uses) fprintf(file, "uses of %s: %llu\n", name.c_str(), count);
    // What a stream was told to free it may not have come to: candle's streams stay to the end.
    auto is_held = [](const auto &entry) { return !entry.second.is_freed; };
    const std::pair<const char *, size_t> left[] = {
        {"memory", std::count_if(gpu.memory.begin(), gpu.memory.end(), is_held)},
        {"page-locked memory", gpu.page_locked.size()},
        {"streams", gpu.streams.size()},
        {"events", gpu.events.size()},
        {"graphs", gpu.graphs.size() + gpu.executables.size()},
        {"contexts", (size_t)gpu.retained},
    };
    for (auto &[name, count] : left) fprintf(file, "left of %s: %zu\n", name, count);
    for (auto &[name, count] : gpu.held) fprintf(file, "left of %s: %zu\n", name.c_str(), count);
    fprintf(file, "failure: %d\n", gpu.failure);
    fclose(file);
}

__attribute__((destructor)) static void at_end() { write_report(); }

struct Words {
    int code;
    const char *name, *words;
};
static const Words WORDS[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX was compiled with an unsupported toolchain"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
    {CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
    {CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "capture ended by another thread"},
    {UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const Words *words_of(int code) {
    for (const Words &words : WORDS) {
        if (words.code == code) return &words;
    }
    return nullptr;
}

}  // namespace device

using namespace device;

extern "C" {

int cuInit(unsigned flags) {
    CALL(NOTHING);
    return flags ? INVALID_VALUE : SUCCESS;
}

int cuDriverGetVersion(int *version) {
    CALL(NOTHING);
    *version = 13000;
    return SUCCESS;
}

int cuDeviceGetCount(int *devices) {
    CALL(NOTHING);
    *devices = 1;
    return SUCCESS;
}

int cuDeviceGet(int *device, int number) {
    CALL(NOTHING);
    *device = 0;
    return number == 0 ? SUCCESS : INVALID_DEVICE;
}

int cuDeviceGetName(char *name, int length, int) {
    CALL(NOTHING);
    snprintf(name, length, "a stand-in of %d.%d", capability() / 10, capability() % 10);
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int) {
    CALL(NOTHING);
    enum { MAJOR = 75, MINOR = 76, MEMORY_POOLS = 115 };
    switch (attribute) {
    case MAJOR: *value = capability() / 10; return SUCCESS;
    case MINOR: *value = capability() % 10; return SUCCESS;
    case MEMORY_POOLS: *value = 1; return SUCCESS;
    default: say("cuDeviceGetAttribute %d is not known", attribute); return INVALID_VALUE;
    }
}

int cuDevicePrimaryCtxRetain(void **context, int) {
    CALL(NOTHING);
    *context = THE_CONTEXT;
    gpu.retained++;
    return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int) {
    CALL(NOTHING);
    if (gpu.retained == 0) return INVALID_CONTEXT;
    gpu.retained--;
    return SUCCESS;
}

int cuCtxGetCurrent(void **context) {
    CALL(NOTHING);
    *context = has_context ? THE_CONTEXT : nullptr;
    return SUCCESS;
}

int cuCtxSetCurrent(void *context) {
    CALL(NOTHING);
    if (context && (context != THE_CONTEXT || gpu.retained == 0)) return INVALID_CONTEXT;
    has_context = context != nullptr;
    return SUCCESS;
}

int cuCtxSynchronize() {
    CALL(NO_CAPTURE);
    return finish_all();
}

int cuGetErrorName(int code, const char **name) {
    const Words *words = words_of(code);
    *name = words ? words->name : nullptr;
    return words ? SUCCESS : INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text) {
    const Words *words = words_of(code);
    *text = words ? words->words : nullptr;
    return words ? SUCCESS : INVALID_VALUE;
}

}  // extern "C"
