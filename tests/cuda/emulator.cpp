// A device without a GPU: allocates, copies and launches what it is told on stdin. `tests/it/cuda/emulator.rs` is the host.
//
// Commands are a letter and little-endian numbers: `a` bytes -> address; `w` address bytes data; `r` address bytes -> data;
// `l` name, grid (3), threads, arguments as sizes and bytes -> 0; `o` order of threads; `s` a barrier to leave out; `b` -> the
// barriers that were seen. Strings have their length before them. Memory ends at a page that cannot be touched.
#include "shim.h"

#include "kernels.cu"

#include "launch.h"

static void get(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) _exit(0);
}

template <class T> static T get() {
    T value;
    get(&value, sizeof value);
    return value;
}

static std::string get_string() {
    std::string text(get<unsigned>(), ' ');
    get(&text[0], text.size());
    return text;
}

static void put(const void *from, size_t bytes) {
    fwrite(from, 1, bytes, stdout);
    fflush(stdout);
}

static unsigned long long allocate(unsigned long long bytes) {
    const size_t page = sysconf(_SC_PAGESIZE);
    size_t size = (bytes + page - 1) / page * page;
    char *start = (char *)mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(start + size, page, PROT_NONE);
    // Not zero: what is read before it is written shows.
    memset(start, 0xff, size);
    char *begin = start + size - (bytes + 15) / 16 * 16;
    checks::given(begin, bytes);
    return (unsigned long long)begin;
}

static void launch() {
    std::string name = get_string();
    dim3 grid = get<dim3>();
    unsigned threads = get<unsigned>();
    std::vector<std::string> arguments;
    for (unsigned count = get<unsigned>(); count > 0; count--) arguments.push_back(get_string());
    for (const shim::Kernel &kernel : shim::kernels()) {
        if (kernel.name != name) continue;
        if (arguments.size() != kernel.sizes.size()) shim::fail("more or fewer arguments");
        std::vector<const void *> addresses;
        for (size_t i = 0; i < arguments.size(); i++) {
            if (arguments[i].size() != kernel.sizes[i]) shim::fail("an argument of another size");
            addresses.push_back(arguments[i].data());
        }
        kernel.launch(grid, threads, addresses.data());
        put("\0\0\0\0", 4);
        return;
    }
    shim::fail("no such kernel");
}

int main() {
    checks::on_fault([](const char *what) { shim::fail(what); });
    checks::shared(__start_block_shared, __stop_block_shared - __start_block_shared);
    for (;;) {
        switch (get<char>()) {
        case 'a': {
            unsigned long long address = allocate(get<unsigned long long>());
            put(&address, sizeof address);
            break;
        }
        case 'w': {
            char *address = get<char *>();
            size_t bytes = get<unsigned long long>();
            get(address, bytes);
            checks::written(address, bytes);
            break;
        }
        case 'r': {
            const char *address = get<const char *>();
            put(address, get<unsigned long long>());
            break;
        }
        case 'l': launch(); break;
        case 'o': shim::order_seed = get<unsigned>(); break;
        case 's': shim::leave_out(get_string()); break;
        case 'b': {
            std::string all;
            for (const shim::Site *site : shim::sites) all += site->name + "\n";
            unsigned size = all.size();
            put(&size, 4);
            put(all.data(), size);
            break;
        }
        default: shim::fail("no such command");
        }
    }
}
