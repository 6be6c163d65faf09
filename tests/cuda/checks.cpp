// Faults of kernels that need not show in a result. The compiler tells of each load and store (-fsanitize=thread), and of pointers that
// are not aligned (-fsanitize=alignment); what it calls for that stands here, in place of its own libraries, which know no blocks, warps
// and barriers.
//
// Two accesses to a place, one of which writes, race unless one *happens before* the other, by what CUDA promises and not by how
// threads ran here: so a race shows in whatever order they ran, between blocks, too, although these run one after the other.
// - In a block: those of a thread, in its order; across threads what stands before a barrier is before what stands behind it, and in a
//   warp the same of __syncwarp. Shuffles and votes order no memory (CUDA programming guide, "Warp Shuffle Functions").
// - Between blocks: what is before a fence, where the thread behind it does an atomic operation, is before what is behind a fence of a
//   thread that did an atomic operation on the same number later (PTX ISA, "Release and Acquire Patterns"). Nothing else is.
// - Of two launches the first one is over when the thread of the second has waited for it; before, it must read nothing that a kernel
//   wrote, and write nothing.
//
// Places are as large as the model's numbers. Of a place its last write is kept, and who has read it since, warp by warp.
#define CHECKED
#include "checks.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

const size_t PLACE = DRIFT_BF16 ? 2 : 4, PLACES = 4096 / PLACE;
// Entries beyond so many are forgotten, the oldest first.
const size_t MOST_OTHERS = 32;

// Where a thread of a block stands. Times count fences.
struct Moment {
    uint32_t block = 0, lanes = 0;
    uint16_t time = 0, barriers = 0, warp_barriers = 0;
    uint8_t warp = 0;
};

// `is_by_many`: one of `write_same`; of those, whether it changes nothing.
struct Access {
    Moment moment;
    uint8_t is_atomic = false, is_by_many = false, changes_nothing = false;
    // A launch, or of shared memory a block; 0 is never.
    uint32_t epoch = 0, code = 0;
};

struct Place {
    Access write;
    // Since then: loads and atomic operations.
    std::vector<Access> others;
    bool has_atomic = false;
};

struct Page {
    bool is_given[PLACES] = {}, is_written[PLACES] = {}, is_by_kernel[PLACES] = {};
    bool is_shared = false;
    Place *places = nullptr;
};

// What is before a fence of another block is before what is behind one of this block.
struct Acquired {
    Moment from, to;
};

struct Thread {
    bool has_waited = false, has_fenced = false;
    Moment fence;
    // Fences of other blocks before atomic operations on the same numbers, since its own last fence.
    std::vector<Moment> met;
};

// Pages by address: 2^17 parts of 2^18 pages.
Page **parts[1 << 17];
uint32_t launch_number, block_number, current;
uint16_t times, barriers, warp_barriers[32];
Thread threads[1024];
std::vector<Acquired> acquired;
// By the number that an atomic operation behind a fence was done on.
std::unordered_map<uintptr_t, std::vector<Moment>> releases;
void (*fault)(const char *);

Page *page_of(uintptr_t address) {
    Page **part = parts[address >> 30 & ((1 << 17) - 1)];
    return part ? part[address >> 12 & ((1 << 18) - 1)] : nullptr;
}

Page &new_page(uintptr_t address) {
    Page **&part = parts[address >> 30 & ((1 << 17) - 1)];
    if (!part) part = new Page *[1 << 18]();
    Page *&page = part[address >> 12 & ((1 << 18) - 1)];
    if (!page) page = new Page();
    return *page;
}

template <class Use> void each_place(uintptr_t start, size_t bytes, Use use) {
    for (uintptr_t at = start / PLACE * PLACE; at < start + bytes; at += PLACE) use(at);
}

Moment now() {
    uint8_t warp = current / 32;
    return {block_number, 1u << current % 32, times, barriers, warp_barriers[warp], warp};
}

bool is_same_thread(const Moment &a, const Moment &b) { return a.warp == b.warp && a.lanes == b.lanes; }

// In one block: a barrier that both threads passed.
bool is_barrier_between(const Moment &before, const Moment &after) {
    return before.barriers < after.barriers || (before.warp == after.warp && before.warp_barriers < after.warp_barriers);
}

bool happens_before(const Moment &before, const Moment &after) {
    if (before.block == after.block) return is_same_thread(before, after) || is_barrier_between(before, after);
    for (const Acquired &known : acquired) {
        if (known.from.block != before.block) continue;
        bool is_own = is_same_thread(before, known.from) && before.time < known.from.time;
        bool is_released = is_own || is_barrier_between(before, known.from);
        bool is_seen = is_barrier_between(known.to, after) || is_same_thread(known.to, after);
        if (is_released && is_seen) return true;
    }
    return false;
}

// The lines of a place in the code, the innermost function first.
std::string lines_of(uint32_t code) {
    char command[200], line[400];
    snprintf(command, sizeof command, "addr2line -s -i -e /proc/%d/exe 0x%x 2>/dev/null", (int)getpid(), code - 1);
    FILE *pipe = popen(command, "r");
    std::string lines;
    for (int depth = 0; pipe && depth < 4 && fgets(line, sizeof line, pipe); depth++) {
        line[strcspn(line, " \n")] = 0;
        lines += (depth ? " of " : "") + std::string(line);
    }
    if (pipe) pclose(pipe);
    return lines;
}

void failed(const char *what, const Access &access) {
    fault((std::string(what) + " at " + lines_of(access.code)).c_str());
}

void raced(const Access &access, bool writes, const Access &other, bool other_writes) {
    std::string text = std::string("a race: it ") + (writes ? "writes" : "reads") + " at " + lines_of(access.code) + " what ";
    if (other.moment.block == access.moment.block) {
        text += "thread " + std::to_string(other.moment.warp * 32 + __builtin_ctz(other.moment.lanes));
    } else {
        text += "another block";
    }
    fault((text + (other_writes ? " writes" : " reads") + " at " + lines_of(other.code)).c_str());
}

// Beside loads and atomic operations of others, unless both are loads or both atomic.
void check_others(const Place &place, const Access &access, bool writes) {
    for (const Access &other : place.others) {
        if (access.is_atomic ? other.is_atomic : !writes && !other.is_atomic) continue;
        Moment theirs = other.moment, own = access.moment;
        // Of the threads of a warp, those but this one.
        if (theirs.block == own.block && theirs.warp == own.warp) theirs.lanes &= ~own.lanes;
        if (theirs.lanes != 0 && !happens_before(theirs, own)) raced(access, writes, other, other.is_atomic);
    }
}

void add_other(Place &place, const Access &access) {
    const Moment &own = access.moment;
    size_t kept = 0;
    for (auto entry = place.others.rbegin(); entry != place.others.rend(); ++entry) {
        Access &other = *entry;
        const Moment &theirs = other.moment;
        if (theirs.block == own.block && theirs.warp == own.warp && theirs.barriers == own.barriers &&
            theirs.warp_barriers == own.warp_barriers && theirs.time == own.time && other.is_atomic == access.is_atomic) {
            other.moment.lanes |= own.lanes;
            return;
        }
    }
    // What is behind this one is behind those of its kind that are before it, too.
    for (const Access &other : place.others) {
        bool is_before = other.moment.block == own.block && other.moment.barriers < own.barriers;
        if (!is_before || other.is_atomic != access.is_atomic) place.others[kept++] = other;
    }
    place.others.resize(kept);
    if (kept >= MOST_OTHERS) place.others.erase(place.others.begin(), place.others.begin() + MOST_OTHERS / 2);
    place.others.push_back(access);
    place.has_atomic |= access.is_atomic;
}

void check_place(Page &page, uintptr_t at, const Access &access, bool reads, bool writes) {
    size_t number = at % 4096 / PLACE;
    Thread &thread = threads[current];
    if (!page.is_given[number]) {
        // Something of the shim's beside shared memory.
        if (page.is_shared) return;
        failed("an access outside of what was given", access);
    }
    if (!page.places) page.places = new Place[PLACES];
    Place &place = page.places[number];
    bool is_of_now = place.write.epoch == access.epoch;
    if (reads && !(page.is_shared ? is_of_now : page.is_written[number])) failed("a read of what nobody wrote", access);
    if (!page.is_shared && !thread.has_waited && (writes || page.is_by_kernel[number])) {
        failed("an access before the kernels before are over", access);
    }
    if (!place.others.empty() && place.others[0].epoch != access.epoch) place.others.clear(), place.has_atomic = false;
    bool is_same = is_of_now && access.changes_nothing && place.write.is_by_many;
    if (!is_same) {
        if (is_of_now && !happens_before(place.write.moment, access.moment)) raced(access, writes, place.write, true);
        if (writes || place.has_atomic) check_others(place, access, writes);
    }
    if (writes) page.is_written[number] = page.is_by_kernel[number] = true;
    if (writes && !access.is_atomic) {
        place.others.clear();
        place.has_atomic = false;
        place.write = access;
    } else {
        add_other(place, access);
    }
}

void check(const void *start, size_t bytes, uintptr_t code, bool reads, bool writes, bool is_atomic = false,
           bool is_by_many = false, bool changes_nothing = false) {
    uintptr_t address = (uintptr_t)start;
    Page *page = page_of(address);
    if (!page) return;
    uint32_t epoch = page->is_shared ? block_number : launch_number;
    Access access = {now(), is_atomic, is_by_many, changes_nothing, epoch, (uint32_t)code};
    each_place(address, bytes, [&](uintptr_t at) {
        Page *page = page_of(at);
        if (!page) failed("an access outside of what was given", access);
        check_place(*page, at, access, reads, writes);
    });
}

}  // namespace

namespace checks {

void given(const void *start, size_t bytes) {
    // All of its pages and the one behind, so that what lies around it is known not to be given.
    uintptr_t address = (uintptr_t)start, end = address + bytes;
    for (uintptr_t page = address / 4096 * 4096; page <= end; page += 4096) new_page(page);
    each_place(address, bytes, [](uintptr_t at) { new_page(at).is_given[at % 4096 / PLACE] = true; });
}

void written(const void *start, size_t bytes) {
    each_place((uintptr_t)start, bytes, [](uintptr_t at) {
        Page &page = new_page(at);
        page.is_written[at % 4096 / PLACE] = true;
        page.is_by_kernel[at % 4096 / PLACE] = false;
    });
}

void shared(const void *start, size_t bytes) {
    each_place((uintptr_t)start, bytes, [](uintptr_t at) {
        Page &page = new_page(at);
        page.is_given[at % 4096 / PLACE] = page.is_shared = true;
    });
}

void on_fault(void (*say)(const char *)) { fault = say; }

void launch_begins() {
    launch_number++;
    times = 0;
    releases.clear();
}

void block_begins(unsigned count) {
    block_number++;
    barriers = 0;
    for (uint16_t &count : warp_barriers) count = 0;
    for (unsigned i = 0; i < count; i++) threads[i] = {};
    acquired.clear();
}

void thread_goes_on(unsigned thread) { current = thread; }

void thread_ends() {
    if (!threads[current].has_waited) fault("ends before the kernels before are over");
}

// Of what must not come round.
void count(uint16_t &number) {
    if (++number == 0) fault("more barriers or fences than are counted");
}

void passed_barrier() { count(barriers); }

void passed_warp_barrier(unsigned warp) { count(warp_barriers[warp]); }

void fence() {
    Thread &thread = threads[current];
    count(times);
    thread.has_fenced = true;
    thread.fence = now();
    for (const Moment &met : thread.met) acquired.push_back({met, thread.fence});
    thread.met.clear();
}

void atomic(const void *to, size_t bytes) {
    Thread &thread = threads[current];
    check(to, bytes, (uintptr_t)__builtin_return_address(0), true, true, true);
    std::vector<Moment> &all = releases[(uintptr_t)to];
    for (const Moment &release : all) {
        if (release.block != block_number) thread.met.push_back(release);
    }
    if (thread.has_fenced) all.push_back(thread.fence);
}

void waited() { threads[current].has_waited = true; }

void write_same(const void *to, size_t bytes, bool are_there) {
    check(to, bytes, (uintptr_t)__builtin_return_address(0), false, true, false, true, are_there);
}

}  // namespace checks

// What the compiler calls.
#define CALLER (uintptr_t)__builtin_return_address(0)
#define ACCESSES(bytes) \
    void __tsan_read##bytes(void *at) { check(at, bytes, CALLER, true, false); } \
    void __tsan_write##bytes(void *at) { check(at, bytes, CALLER, false, true); } \
    void __tsan_unaligned_read##bytes(void *at) { check(at, bytes, CALLER, true, false); } \
    void __tsan_unaligned_write##bytes(void *at) { check(at, bytes, CALLER, false, true); }
extern "C" {
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
void __tsan_read_range(void *at, size_t bytes) { check(at, bytes, CALLER, true, false); }
void __tsan_write_range(void *at, size_t bytes) { check(at, bytes, CALLER, false, true); }
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_init() {}
// A pointer that is not aligned as what it points to. Its place in the text comes first.
struct PlaceInText {
    const char *file;
    uint32_t line;
};
void __ubsan_handle_type_mismatch_v1(const PlaceInText *at, uintptr_t) {
    const char *folder = strrchr(at->file, '/');
    fault((std::string("a misaligned access at ") + (folder ? folder + 1 : at->file) + ":" + std::to_string(at->line)).c_str());
}
void __ubsan_handle_type_mismatch_v1_abort(const PlaceInText *at, uintptr_t to) { __ubsan_handle_type_mismatch_v1(at, to); }
// The shim's own: whether a static was made.
char __tsan_atomic8_load(const volatile char *from, int) { return *from; }
}
