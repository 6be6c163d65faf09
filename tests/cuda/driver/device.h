// A GPU in host memory: what the parts of the stand-in share. `run.sh` says what it is for, and what can be set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace device {

typedef unsigned long long Address;

// As cuda.h numbers them.
enum Result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    UNSUPPORTED_PTX_VERSION = 222,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    MISALIGNED_ADDRESS = 716,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    CAPTURE_ISOLATION = 905,
    CAPTURED_EVENT = 907,
    CAPTURE_WRONG_THREAD = 908,
    UNKNOWN = 999,
};

// A line on stderr.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Adds to a number of the report.
void count(const std::string &what, unsigned long long by = 1);
// An environment variable, empty if it is not set.
std::string setting(const char *name);
// Of the GPU: 90 for 9.0.
int capability();
// The code that STAND_IN_FAIL sets for this use of what is named so, else 0.
int injected(const std::string &name);

// What a call of the driver wants.
enum Need {
    NOTHING,
    // A context of this thread, in which nothing has failed.
    CONTEXT,
    // And no capture that forbids the call.
    NO_CAPTURE,
};

// Every call begins with one. It holds the lock, counts, and has the code if the call must not be done.
class Call {
  public:
    explicit Call(const char *name, Need need);
    int code;

  private:
    std::lock_guard<std::recursive_mutex> held;
};
#define CALL(need) \
    device::Call call(__func__, device::need); \
    if (call.code) return call.code

void *new_handle();

// What a program holds by handles. None is given twice, so that one of a thing that is gone is recognised.
template <class T> class Table {
  public:
    void *add(std::shared_ptr<T> thing) {
        void *handle = new_handle();
        things[handle] = thing;
        return handle;
    }
    std::shared_ptr<T> find(const void *handle) const {
        auto found = things.find(const_cast<void *>(handle));
        return found == things.end() ? nullptr : found->second;
    }
    bool remove(void *handle) { return things.erase(handle) > 0; }
    size_t size() const { return things.size(); }
    const std::map<void *, std::shared_ptr<T>> &all() const { return things; }

  private:
    std::map<void *, std::shared_ptr<T>> things;
};

// What a stream does: a launch, a copy. It returns a code.
struct Operation {
    std::string name;
    std::function<int()> run;
};

struct Graph {
    std::vector<Operation> nodes;
};

struct Capture {
    enum Mode { GLOBAL, THREAD_LOCAL, RELAXED } mode;
    std::thread::id thread;
    std::shared_ptr<Graph> graph;
    bool is_invalid;
};

// Nothing in a queue is done before something waits for it.
struct Stream {
    bool waits_for_default;
    std::deque<Operation> queue;
    // Operations that were done.
    unsigned long long done = 0;
    std::unique_ptr<Capture> capture;
};

struct Event {
    // None if it was not recorded.
    std::shared_ptr<Stream> stream;
    // Operations of the stream before it.
    unsigned long long after;
    bool is_captured;
};

struct Function {
    std::string name;
    std::vector<size_t> sizes;
    unsigned most_threads;
    // The shim knows blocks of one dimension alone.
    bool has_one_dimension = false;
    // Is empty where there is no code for it.
    std::function<int(const unsigned (&)[3], unsigned, const void *const *)> run;
    std::shared_ptr<bool> is_loaded;
};

struct Module {
    std::map<std::string, std::shared_ptr<Function>> functions;
    std::shared_ptr<bool> is_loaded;
    // Of drift; else of candle.
    bool is_cubin;
};

struct Allocation {
    size_t bytes;
    char *mapping;
    size_t mapped;
    // A stream will free it.
    bool is_freed;
    // Of the pool; else the driver's.
    bool is_of_pool;
};

struct Gpu {
    Table<Stream> streams;
    Table<Event> events;
    Table<Module> modules;
    Table<Function> functions;
    Table<Graph> graphs, executables;
    std::shared_ptr<Stream> default_stream = std::make_shared<Stream>();
    std::map<Address, Allocation> memory;
    // What the pool has, and what it keeps of it when nothing uses it.
    size_t pool = 0;
    unsigned long long pool_keeps = 0;
    std::map<const char *, size_t> page_locked;
    // By the libraries on top.
    std::map<std::string, size_t> held;
    int retained = 0;
    // What failed on the device; from then on everything does.
    int failure = 0;
};
extern Gpu &gpu;

std::shared_ptr<Stream> stream_of(void *handle);
// To the end of a queue, or into a graph.
int give(void *stream, Operation operation);
// Does all operations of a stream up to one.
int finish(Stream &stream, unsigned long long count);
int finish(Stream &stream);
int finish_all();
// Does one operation, unless something failed before.
int perform(const Operation &operation);
// Makes the capture of a stream fail.
int refuse(Stream &stream, const char *what, int code);

// Whether a range lies in memory that a program was given and has not freed.
bool is_given(Address start, size_t bytes);
// The same when it is used; else a code, with a line that says of what.
int check(const char *what, Address start, size_t bytes);
// What lies around allocations must stay as it is.
int check_surroundings(const std::string &what);
bool is_page_locked(const void *start, size_t bytes);

}  // namespace device
