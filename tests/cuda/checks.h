// What compute-sanitizer looks for on a GPU, where there is none: accesses outside of what was given, misaligned ones, reads of what
// nobody wrote, and races. `checks.cpp` says how. Without CHECKED these are nothing.
#pragma once

#include <cstddef>

namespace checks {

#ifdef CHECKED
#define IN_CHECKED(declaration) declaration;
#else
#define IN_CHECKED(declaration) static inline declaration {}
#endif

// Device memory that holds nothing yet; what the host wrote there.
IN_CHECKED(void given(const void *, size_t))
IN_CHECKED(void written(const void *, size_t))
// Shared memory.
IN_CHECKED(void shared(const void *, size_t))
// What is said of a fault, and does not come back.
IN_CHECKED(void on_fault(void (*)(const char *)))
// A launch begins, a block of so many threads; a thread goes on, and is over.
IN_CHECKED(void launch_begins())
IN_CHECKED(void block_begins(unsigned))
IN_CHECKED(void thread_goes_on(unsigned))
IN_CHECKED(void thread_ends())
// All threads of the block passed a barrier, all lanes of a warp.
IN_CHECKED(void passed_barrier())
IN_CHECKED(void passed_warp_barrier(unsigned))
// By the thread that goes on: a fence; an atomic operation; that the kernels before are over; that what comes to be written other
// blocks write, too, and whether the same bits lie there.
IN_CHECKED(void fence())
IN_CHECKED(void atomic(const void *, size_t))
IN_CHECKED(void waited())
IN_CHECKED(void write_same(const void *, size_t, bool))

#undef IN_CHECKED

}  // namespace checks
