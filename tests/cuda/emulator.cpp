// A device without a GPU: allocates, copies and launches what it is told on stdin. `tests/it/cuda/emulator.rs` is the host.
//
// Commands are a letter and little-endian numbers: `a` bytes -> address; `w` address bytes data; `r` address bytes -> data;
// `l` name, grid (3), threads, arguments as sizes and bytes -> 0; `o` order of threads; `s` a barrier to leave out; `b` -> the
// barriers that were seen. Strings have their length before them. Memory ends at a page that cannot be touched.
#include "shim.h"


#include "kernels.cu"

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
    return (unsigned long long)(start + size - (bytes + 15) / 16 * 16);
}

struct Arguments {
    std::vector<std::string> bytes;
    size_t next = 0;

    template <class T> T take() {
        T value{};
        if (next >= bytes.size() || bytes[next].size() != sizeof value) shim::fail("an argument of another size");
        memcpy(&value, bytes[next++].data(), sizeof value);
        return value;
    }
};

template <class... T> static bool call(void (*kernel)(T...), dim3 grid, unsigned threads, Arguments &arguments) {
    // Braces evaluate from left to right.
    std::tuple<T...> values{arguments.take<T>()...};
    if (arguments.next != arguments.bytes.size()) shim::fail("too many arguments");
    shim::launch(grid, threads, [&] { std::apply(kernel, values); });
    return true;
}

static void launch() {
    std::string name = get_string();
    dim3 grid = get<dim3>();
    unsigned threads = get<unsigned>();
    Arguments arguments;
    for (unsigned count = get<unsigned>(); count > 0; count--) arguments.bytes.push_back(get_string());
    bool known = false;
#define LAUNCHES(kernel) \
    if (name == #kernel) known = call(kernel, grid, threads, arguments)
    LAUNCHES(embed);
    LAUNCHES(add_norm);
    LAUNCHES(last_norm);
    LAUNCHES(gated);
    LAUNCHES(gather);
    LAUNCHES(head);
    LAUNCHES(attend);
    LAUNCHES(append_each);
    LAUNCHES(attend_each);
    LAUNCHES(enter);
    LAUNCHES(choose);
    LAUNCHES(choose_any);
    LAUNCHES(pack);
    if (!known) shim::fail("no such kernel");
    put("\0\0\0\0", 4);
}

int main() {
    for (;;) {
        switch (get<char>()) {
        case 'a': {
            unsigned long long address = allocate(get<unsigned long long>());
            put(&address, sizeof address);
            break;
        }
        case 'w': {
            char *address = get<char *>();
            get(address, get<unsigned long long>());
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
