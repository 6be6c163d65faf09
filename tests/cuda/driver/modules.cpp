// Modules, functions and launches. A module is a program that the stand-in for NVRTC compiled, or the PTX of one of candle's, of
// which `candle.cpp` and `candle_model.cpp` have some kernels.
#include "candle.h"
#include "program.h"

#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace device {

// Limits of all GPUs that drift runs on; of shared memory that of all kernels together, since that of each only NVRTC tells.
static const unsigned MOST_THREADS = 1024, MOST_BLOCKS_X = 0x7fffffff, MOST_BLOCKS = 65535;
static const size_t MOST_SHARED_BYTES = 96 << 10;

static void (*abort_running)(int);

// Runs a function whose bad addresses end it, and not the program.
static int guarded(const Program *program, const std::function<int()> &run) {
    static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL};
    struct sigaction before[3], during = {};
    during.sa_flags = SA_NODEFER;
    // The compiler makes a misaligned access an illegal instruction.
    during.sa_handler = [](int signal) { abort_running(signal == SIGILL ? MISALIGNED_ADDRESS : ILLEGAL_ADDRESS); };
    for (int i = 0; i < 3; i++) sigaction(SIGNALS[i], &during, &before[i]);
    abort_running = program->abort;
    int code = run();
    for (int i = 0; i < 3; i++) sigaction(SIGNALS[i], &before[i], nullptr);
    alarm(0);
    return code == FAILED_BY_ITSELF ? LAUNCH_FAILED : code;
}

static const Program *opened(const Cubin &cubin, const char *library) {
    // A file of its own for each module, which stays open: a library of the same path would be there once.
    int file = memfd_create("kernels", 0);
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void *handle = nullptr;
    if (write(file, library, cubin.bytes) == (ssize_t)cubin.bytes) handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) say("the module cannot be opened: %s", dlerror());
    auto program = handle ? (const Program *(*)())dlsym(handle, "program") : nullptr;
    return program ? program() : nullptr;
}

static int load_cubin(Module &module, const char *image) {
    Cubin cubin;
    memcpy(&cubin, image, sizeof cubin);
    std::string own = "sm_" + std::to_string(capability());
    if (cubin.architecture != own && cubin.architecture != own + "a") return NO_BINARY_FOR_GPU;
    const Program *program = opened(cubin, image + sizeof cubin);
    if (!program) return INVALID_IMAGE;
    if (program->shared_bytes > MOST_SHARED_BYTES) say("the kernels have %zu bytes of shared memory", program->shared_bytes);
    std::string order_set = setting("STAND_IN_ORDER");
    unsigned order = order_set.empty() ? 0 : std::stoul(order_set);
    for (size_t at = 0; at < program->count; at++) {
        const KernelOfProgram &kernel = program->kernels[at];
        auto function = std::make_shared<Function>();
        function->name = kernel.name;
        function->sizes.assign(kernel.sizes, kernel.sizes + kernel.arguments);
        function->most_threads = kernel.most_threads;
        function->has_one_dimension = true;
        function->is_loaded = module.is_loaded;
        function->run = [=](const unsigned(&grid)[3], unsigned threads, const void *const *arguments) {
            return guarded(program, [&] { return program->launch(at, grid, threads, arguments, order); });
        };
        module.functions[kernel.name] = function;
    }
    return SUCCESS;
}

// Kernels and the sizes of their arguments, as `.visible .entry name( .param .u64 name_param_0, .param .align 8 .b8 x[24] )`.
static int load_ptx(Module &module, const std::string &text) {
    static const std::map<std::string, size_t> sizes = {
        {".u8", 1}, {".s8", 1}, {".b8", 1}, {".u16", 2}, {".s16", 2}, {".b16", 2}, {".f16", 2}, {".u32", 4},
        {".s32", 4}, {".b32", 4}, {".f32", 4}, {".u64", 8}, {".s64", 8}, {".b64", 8}, {".f64", 8},
    };
    const std::string entry = ".entry ";
    for (size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
        size_t name = at + entry.size(), open = text.find('(', name), close = text.find(')', open);
        auto function = std::make_shared<Function>();
        function->name = text.substr(name, open - name);
        function->most_threads = MOST_THREADS;
        function->is_loaded = module.is_loaded;
        for (size_t param = text.find(".param", open); param < close; param = text.find(".param", param + 1)) {
            size_t end = std::min(text.find(',', param), close), size = 0;
            for (auto &[type, bytes] : sizes) {
                if (text.substr(param, end - param).find(type + " ") != std::string::npos) size = bytes;
            }
            size_t length = text.find('[', param);
            if (length < end) size *= std::stoul(text.substr(length + 1));
            function->sizes.push_back(size);
        }
        function->run = kernel_of_weights(function->name);
        if (!function->run) function->run = kernel_of_model(function->name);
        module.functions[function->name] = function;
    }
    return module.functions.empty() ? INVALID_IMAGE : SUCCESS;
}

static int launch(const Function &function, const std::vector<unsigned> &grid, unsigned threads,
                  const std::vector<std::string> &arguments) {
    if (!*function.is_loaded) {
        say("`%s` runs when its module is gone", function.name.c_str());
        return ILLEGAL_ADDRESS;
    }
    std::vector<const void *> addresses;
    for (const std::string &argument : arguments) addresses.push_back(argument.data());
    const unsigned blocks[3] = {grid[0], grid[1], grid[2]};
    int code = injected("kernel " + function.name);
    return code ? code : function.run(blocks, threads, addresses.data());
}

}  // namespace device

using namespace device;

extern "C" {

int cuModuleLoadData(void **module, const void *image) {
    CALL(NO_CAPTURE);
    auto made = std::make_shared<Module>();
    made->is_loaded = std::make_shared<bool>(true);
    const char *bytes = (const char *)image;
    bool is_cubin = strncmp(bytes, CUBIN_MAGIC, strlen(CUBIN_MAGIC)) == 0;
    int code = is_cubin ? injected("the module of drift") : SUCCESS;
    if (!code) code = is_cubin ? load_cubin(*made, bytes) : load_ptx(*made, bytes);
    if (code) return code;
    if (is_cubin) gpu.held["modules of drift"]++;
    made->is_cubin = is_cubin;
    *module = gpu.modules.add(made);
    return SUCCESS;
}

// Drift must have waited for what uses its kernels. Candle drops its modules while streams still work.
int cuModuleUnload(void *handle) {
    CALL(NO_CAPTURE);
    std::shared_ptr<Module> module = gpu.modules.find(handle);
    if (!module) return INVALID_HANDLE;
    if (!module->is_cubin) finish_all();
    *module->is_loaded = false;
    if (module->is_cubin) gpu.held["modules of drift"]--;
    gpu.modules.remove(handle);
    return SUCCESS;
}

// What is loaded late is loaded here, which a capture forbids.
int cuModuleGetFunction(void **function, void *handle, const char *name) {
    CALL(NO_CAPTURE);
    std::shared_ptr<Module> module = gpu.modules.find(handle);
    if (!module) return INVALID_HANDLE;
    auto found = module->functions.find(name);
    if (found == module->functions.end() || injected(std::string("function ") + name)) return NOT_FOUND;
    *function = gpu.functions.add(found->second);
    return SUCCESS;
}

int cuLaunchKernel(void *handle, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, void *stream, void **parameters, void **extra) {
    CALL(CONTEXT);
    std::shared_ptr<Function> function = gpu.functions.find(handle);
    if (!function || !*function->is_loaded) return INVALID_HANDLE;
    const char *name = function->name.c_str();
    bool is_grid = x > 0 && y > 0 && z > 0 && x <= MOST_BLOCKS_X && y <= MOST_BLOCKS && z <= MOST_BLOCKS;
    bool is_block = threads > 0 && threads_y > 0 && threads_z > 0 && threads <= MOST_THREADS && threads_y <= MOST_THREADS &&
        threads_z <= MOST_THREADS && threads * threads_y * threads_z <= function->most_threads;
    if (function->has_one_dimension && (threads_y > 1 || threads_z > 1)) is_block = false;
    if (!is_grid || !is_block || shared > 0 || extra) {
        say("`%s`: no launch of %u %u %u blocks of %u %u %u threads", name, x, y, z, threads, threads_y, threads_z);
        return INVALID_VALUE;
    }
    if (!function->run) {
        say("the kernel `%s` of candle is not in the stand-in", name);
        return NOT_SUPPORTED;
    }
    std::vector<std::string> arguments;
    for (size_t i = 0; i < function->sizes.size(); i++) {
        arguments.push_back(std::string((const char *)parameters[i], function->sizes[i]));
    }
    count(std::string("launches of ") + name);
    std::vector<unsigned> grid = {x, y, z};
    return give(stream, {name, [=] { return launch(*function, grid, threads, arguments); }});
}

int cuFuncSetAttribute(void *handle, int attribute, int value) {
    CALL(NO_CAPTURE);
    static const int PREFERRED_SHARED_MEMORY_CARVEOUT = 9;
    if (!gpu.functions.find(handle)) return INVALID_HANDLE;
    return attribute == PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 && value <= 100 ? SUCCESS : INVALID_VALUE;
}

// As cuda.h has them.
struct LaunchAttribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int may_begin_early;
    } value;
};
struct LaunchConfig {
    unsigned x, y, z, threads, threads_y, threads_z, shared;
    void *stream;
    LaunchAttribute *attributes;
    unsigned count;
};

// A launch that may begin before those before it are over: here none does.
int cuLaunchKernelEx(const LaunchConfig *config, void *handle, void **parameters, void **extra) {
    static const int PROGRAMMATIC_STREAM_SERIALIZATION = 6, FROM_CAPABILITY = 90;
    CALL(CONTEXT);
    bool is_known = config->count == 1 && config->attributes[0].id == PROGRAMMATIC_STREAM_SERIALIZATION;
    if (!is_known || config->attributes[0].value.may_begin_early != 1 || capability() < FROM_CAPABILITY) {
        say("a launch with attributes that the GPU does not take");
        return INVALID_VALUE;
    }
    const LaunchConfig &c = *config;
    count("launches that may begin early");
    return cuLaunchKernel(handle, c.x, c.y, c.z, c.threads, c.threads_y, c.threads_z, c.shared, c.stream, parameters, extra);
}

}  // extern "C"
