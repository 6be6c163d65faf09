// Memory of the device: each allocation is rubbish when it is given, lies between bytes that must not change, and ends at a page
// that cannot be touched. Addresses are those of the host.
#include "device.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace device {

// What the driver promises of addresses, and what it gives a multiple of.
static const size_t ALIGNMENT = 256, GRANULE = 512;
static const int RUBBISH = 0xff, AROUND = 0xc3;
// Pages of what was freed stay closed for so many others, so that what is used too late fails.
static const size_t KEPT_CLOSED = 256;

static size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static size_t limit() {
    std::string set = setting("STAND_IN_MEMORY");
    return set.empty() ? (size_t)4 << 30 : strtoull(set.c_str(), nullptr, 10);
}

// Bytes in use of the pool, or of what is not; without those that a stream will free, if they are not wanted.
static size_t used(bool of_pool, bool with_freed) {
    size_t used = 0;
    for (auto &[start, allocation] : gpu.memory) {
        if (allocation.is_of_pool != of_pool || (allocation.is_freed && !with_freed)) continue;
        used += rounded(allocation.bytes, GRANULE);
    }
    return used;
}

// The pool gives back what nothing uses any more, but for so many bytes.
static void trim(size_t keeps) { gpu.pool = std::min(gpu.pool, std::max(used(true, true), keeps)); }

static int allocate(Address *address, size_t bytes, bool from_pool) {
    // What a stream has freed is the pool's again, and the driver's only when the stream was waited for and the pool does not keep it.
    size_t pool = from_pool ? std::max(gpu.pool, used(true, false) + rounded(bytes, GRANULE)) : gpu.pool;
    if (used(false, true) + pool + (from_pool ? 0 : rounded(bytes, GRANULE)) > limit()) return OUT_OF_MEMORY;
    const size_t page = sysconf(_SC_PAGESIZE);
    size_t inner = rounded(rounded(bytes, ALIGNMENT) + ALIGNMENT, page), mapped = inner + page;
    void *mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return OUT_OF_MEMORY;
    mprotect((char *)mapping + inner, page, PROT_NONE);
    char *start = (char *)mapping + inner - rounded(bytes, ALIGNMENT);
    memset(mapping, AROUND, inner);
    memset(start, RUBBISH, bytes);
    *address = (Address)start;
    gpu.memory[*address] = {bytes, (char *)mapping, mapped, false, from_pool};
    gpu.pool = pool;
    return SUCCESS;
}

static void release(Address address) {
    static std::deque<std::pair<char *, size_t>> closed;
    Allocation allocation = gpu.memory.at(address);
    gpu.memory.erase(address);
    if (allocation.is_of_pool) trim(gpu.pool_keeps);
    mprotect(allocation.mapping, allocation.mapped, PROT_NONE);
    closed.push_back({allocation.mapping, allocation.mapped});
    if (closed.size() > KEPT_CLOSED) {
        munmap(closed.front().first, closed.front().second);
        closed.pop_front();
    }
}

static const Allocation *allocation_of(Address start, size_t bytes) {
    auto after = gpu.memory.upper_bound(start);
    if (after == gpu.memory.begin()) return nullptr;
    auto &[first, allocation] = *--after;
    return start - first <= allocation.bytes && bytes <= allocation.bytes - (start - first) ? &allocation : nullptr;
}

bool is_given(Address start, size_t bytes) {
    const Allocation *allocation = allocation_of(start, bytes);
    return allocation && !allocation->is_freed;
}

int check(const char *what, Address start, size_t bytes) {
    if (bytes == 0 || allocation_of(start, bytes)) return SUCCESS;
    say("%s: %zu bytes at %#llx are not in memory of the device", what, bytes, start);
    return ILLEGAL_ADDRESS;
}

int check_surroundings(const std::string &what) {
    auto is_whole = [](const char *start, size_t bytes) {
        while (bytes > 0 && *start == (char)AROUND) start++, bytes--;
        return bytes == 0;
    };
    for (auto &[address, allocation] : gpu.memory) {
        const char *start = (const char *)address;
        size_t behind = rounded(allocation.bytes, ALIGNMENT) - allocation.bytes;
        if (is_whole(start - ALIGNMENT, ALIGNMENT) && is_whole(start + allocation.bytes, behind)) continue;
        say("`%s` wrote beside the %zu bytes at %#llx", what.c_str(), allocation.bytes, address);
        return ILLEGAL_ADDRESS;
    }
    return SUCCESS;
}

bool is_page_locked(const void *start, size_t bytes) {
    auto after = gpu.page_locked.upper_bound((const char *)start);
    if (after == gpu.page_locked.begin()) return false;
    auto &[first, size] = *--after;
    return (size_t)((const char *)start - first) + bytes <= size;
}

static int copy(const char *name, void *to, const void *from, size_t bytes) {
    count(std::string("bytes of ") + name, bytes);
    memcpy(to, from, bytes);
    return SUCCESS;
}

// A copy that is not page-locked cannot be captured: it is made, or half of it, before the call returns.
static int refuse_in_capture(void *stream, const char *name) {
    std::shared_ptr<Stream> found = stream_of(stream);
    return found && found->capture ? refuse(*found, name, CAPTURE_UNSUPPORTED) : SUCCESS;
}

}  // namespace device

using namespace device;

extern "C" {

int cuMemGetInfo_v2(size_t *free, size_t *total) {
    CALL(CONTEXT);
    *total = limit();
    *free = limit() - std::min(limit(), used(false, true) + gpu.pool);
    return SUCCESS;
}

static char the_pool;

int cuDeviceGetDefaultMemPool(void **pool, int device) {
    CALL(NOTHING);
    *pool = &the_pool;
    return device == 0 ? SUCCESS : INVALID_DEVICE;
}

// Attributes as cuda.h numbers them: what is kept, what is there, what is used.
int cuMemPoolSetAttribute(void *pool, int attribute, const unsigned long long *value) {
    CALL(CONTEXT);
    if (pool != &the_pool || attribute != 4) return INVALID_VALUE;
    gpu.pool_keeps = *value;
    return SUCCESS;
}

int cuMemPoolGetAttribute(void *pool, int attribute, unsigned long long *value) {
    CALL(CONTEXT);
    if (pool != &the_pool || (attribute != 5 && attribute != 7)) return INVALID_VALUE;
    *value = attribute == 5 ? gpu.pool : used(true, false);
    return SUCCESS;
}

int cuMemPoolTrimTo(void *pool, size_t keeps) {
    CALL(NO_CAPTURE);
    if (pool != &the_pool) return INVALID_VALUE;
    trim(keeps);
    return SUCCESS;
}

int cuMemAlloc_v2(Address *address, size_t bytes) {
    CALL(NO_CAPTURE);
    return bytes == 0 ? INVALID_VALUE : allocate(address, bytes, false);
}

// Waits for nothing: a program must have waited for what uses the memory.
int cuMemFree_v2(Address address) {
    CALL(NO_CAPTURE);
    auto found = gpu.memory.find(address);
    if (found == gpu.memory.end() || found->second.is_freed) return INVALID_VALUE;
    release(address);
    return SUCCESS;
}

// In a capture it would be a node that allocates, which no graph has here.
int cuMemAllocAsync(Address *address, size_t bytes, void *stream) {
    CALL(CONTEXT);
    if (int code = refuse_in_capture(stream, __func__)) return code;
    if (!stream_of(stream)) return INVALID_HANDLE;
    if (bytes == 0) say("cuMemAllocAsync of no bytes");
    return bytes == 0 ? INVALID_VALUE : allocate(address, bytes, true);
}

int cuMemFreeAsync(Address address, void *stream) {
    CALL(CONTEXT);
    if (int code = refuse_in_capture(stream, __func__)) return code;
    auto found = gpu.memory.find(address);
    if (found == gpu.memory.end() || found->second.is_freed) {
        say("cuMemFreeAsync of %#llx, which is not in use", address);
        return INVALID_VALUE;
    }
    found->second.is_freed = true;
    return give(stream, {"free", [=] { release(address); return SUCCESS; }});
}

int cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
    CALL(NO_CAPTURE);
    if (bytes == 0) return INVALID_VALUE;
    *memory = aligned_alloc(4096, rounded(bytes, 4096));
    memset(*memory, RUBBISH, bytes);
    gpu.page_locked[(char *)*memory] = bytes;
    return SUCCESS;
}

// Waits for nothing either: a copy that still wants it fails.
int cuMemFreeHost(void *memory) {
    CALL(NO_CAPTURE);
    if (!gpu.page_locked.erase((char *)memory)) return INVALID_VALUE;
    free(memory);
    return SUCCESS;
}

int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void *stream) {
    CALL(CONTEXT);
    if (!is_given(to, bytes)) return check(__func__, to, bytes), INVALID_VALUE;
    return give(stream, {"set", [=] {
        if (int code = check("a set", to, bytes)) return code;
        memset((void *)to, value, bytes);
        return (int)SUCCESS;
    }});
}

// Of page-locked memory the copy reads when it is done; of other memory the driver has read all when it returns.
int cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) {
    CALL(CONTEXT);
    if (bytes > 0 && !is_given(to, bytes)) return check(__func__, to, bytes), INVALID_VALUE;
    if (!is_page_locked(from, bytes)) {
        if (int code = refuse_in_capture(stream, __func__)) return code;
        std::string held((const char *)from, bytes);
        return give(stream, {"copy to the device", [=] {
            int code = check("a copy to the device", to, bytes);
            return code ? code : copy("copies to the device", (void *)to, held.data(), bytes);
        }});
    }
    return give(stream, {"copy to the device", [=] {
        if (!is_page_locked(from, bytes)) {
            say("a copy reads page-locked memory that was freed");
            return (int)ILLEGAL_ADDRESS;
        }
        int code = check("a copy to the device", to, bytes);
        return code ? code : copy("copies from page-locked memory", (void *)to, from, bytes);
    }});
}

// To page-locked memory the copy is done in its turn. To other memory it is done when the call returns, as the driver's manual
// says and cudarc relies on; with STAND_IN_LATE_COPIES it is done in its turn too.
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) {
    CALL(CONTEXT);
    if (bytes > 0 && !is_given(from, bytes)) return check(__func__, from, bytes), INVALID_VALUE;
    bool is_locked = is_page_locked(to, bytes);
    if (!is_locked) {
        if (int code = refuse_in_capture(stream, __func__)) return code;
    }
    int code = give(stream, {"copy to the host", [=] {
        int code = check("a copy to the host", from, bytes);
        return code ? code : copy("copies to the host", to, (const void *)from, bytes);
    }});
    if (code || is_locked || !setting("STAND_IN_LATE_COPIES").empty()) return code;
    return finish(*stream_of(stream));
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream) {
    CALL(CONTEXT);
    if (bytes > 0 && !is_given(to, bytes)) return check(__func__, to, bytes), INVALID_VALUE;
    if (bytes > 0 && !is_given(from, bytes)) return check(__func__, from, bytes), INVALID_VALUE;
    return give(stream, {"copy on the device", [=] {
        if (int code = check("a copy on the device", to, bytes)) return code;
        if (int code = check("a copy on the device", from, bytes)) return code;
        return copy("copies on the device", (void *)to, (const void *)from, bytes);
    }});
}

}  // extern "C"
