// One draw for a row, by its block: temperature, top-k, top-p, min-p and noise as in `sampling/draw.rs`, including ties.
//
// Nothing is sorted. A candidate's key is its logit, descending, above its slot. So keys ascend in order of rank: higher logits
// first, then smaller ids (slots of legal ids ascend with the ids). The place at which top-k or top-p cuts is found digit by digit
// (radix selection). Top-p sums integers: weights in units of 2^-(62 - bits of the number of candidates). So the sums do not depend
// on the order in which threads add them. The units are finer than the CPU's f64 for up to 2^9 candidates, and are 2^-44 for 2^18.
// The text can differ from the CPU's only if a sum is that close to the bound.

#define DIGITS 256
#define SLOT_BITS 24
// How many loads of a thread are in flight together when a whole vocabulary is read.
#define LOADS 16

// The settings of a draw. 40 bytes.
struct Sampling {
    double temperature;    // divides the logits; 0: greedy
    double top_p;          // keeps the most likely candidates until they have this share; 1: all
    double log_min_p;      // natural logarithm of the least probability, relative to the best; -inf: none
    u32 top_k;             // keeps this number of the best, and ties with the last; 0: all
    u32 unused[3];
};

// The candidates of a draw: the slots of one or two lists, or all slots below `count` if `first` is null.
struct Candidates {
    const float *logits;   // by slot
    u32 known;             // slots from here on have no logit and are skipped
    const u32 *first, *second;
    u32 first_count, count;
};

// The results of a draw that failed.
#define DRAWN_NOTHING 0xfffffffeu
#define DRAWN_NOT_FINITE 0xfffffffdu

__device__ __forceinline__ u32 slot_of(const Candidates &all, u32 i) {
    if (!all.first) return i;
    return i < all.first_count ? all.first[i] : all.second[i - all.first_count];
}

// Passes the slots and logits of all candidates to `use`, spread over the threads of a block. A thread has AT_ONCE loads in flight
// together if there are no lists.
template <int AT_ONCE, class Use> __device__ __forceinline__ void each(const Candidates &all, Use use) {
    for (u32 i = threadIdx.x; all.first && i < all.count; i += blockDim.x) {
        u32 slot = slot_of(all, i);
        if (slot < all.known) use(slot, all.logits[slot]);
    }
    for (u32 start = threadIdx.x; !all.first && start < all.count; start += AT_ONCE * blockDim.x) {
        float logits[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            u32 slot = start + i * blockDim.x;
            logits[i] = slot < all.count ? all.logits[slot] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) {
            u32 slot = start + i * blockDim.x;
            if (slot < all.count) use(slot, logits[i]);
        }
    }
}

__device__ __forceinline__ u64 key_of(float logit, u32 slot) { return (u64)descending(logit) << SLOT_BITS | slot; }

// The bounds of the candidates that are left: logits of at least `least`, keys up to a prefix, scores of at least `floor`.
struct Kept {
    float least;
    u64 prefix;
    int shift;
    double floor, best, temperature;
};

__device__ __forceinline__ bool is_kept(const Kept &kept, float logit, u32 slot) {
    return logit >= kept.least && key_of(logit, slot) >> kept.shift <= kept.prefix &&
           (double)logit / kept.temperature >= kept.floor;
}

// The weight of a candidate in the softmax, as an integer in units of 1 / `unit`.
__device__ __forceinline__ u64 weight_of(const Kept &kept, float logit, double unit) {
    return (u64)(exp((double)logit / kept.temperature - kept.best) * unit);
}

// Tables for one digit. Weights are stored in two words, because the hardware adds 32 bits in shared memory in one operation, and
// 64 bits in a retry loop. That loop is slow if most candidates have the same digit.
struct Histogram {
    u32 low[DIGITS], high[DIGITS];
    u32 counts[DIGITS];
    u64 before, prefix;
    u32 alone;
};

__device__ __forceinline__ void add_weight(Histogram &table, u32 digit, u64 weight) {
    u32 low = (u32)weight, high = (u32)(weight >> 32);
    u32 before = atomicAdd(&table.low[digit], low);
    high += before + low < before;
    if (high) atomicAdd(&table.high[digit], high);
}

// The count of a digit if `low` is the table of counts, otherwise its weight.
__device__ __forceinline__ u64 weight_at(const Histogram &table, const u32 *low, u32 digit) {
    return (u64)table.high[digit] << 32 | low[digit];
}

// Called by the first warp: finds the first digit at which the cumulative weights reach `wanted`, and appends it to the prefix.
__device__ __forceinline__ void choose_digit(Histogram &table, const u32 *low, double wanted) {
    u32 lane = threadIdx.x % LANES, first = lane * (DIGITS / LANES);
    u64 own = 0, before = table.before, prefix = table.prefix;
    for (u32 i = 0; i < DIGITS / LANES; i++) own += weight_at(table, low, first + i);
    u64 until = warp_prefix(own);
    u32 reached = __ballot_sync(ALL_LANES, !((double)(before + until) < wanted));
    // If rounding keeps every sum below `wanted`, takes the last digit, after which nothing is cut.
    u32 owner = reached ? __ffs(reached) - 1 : LANES - 1;
    // All lanes must have read the table, because one of them writes it below.
    __syncwarp();
    if (lane != owner) return;
    before += until - own;
    u32 digit = first;
    while (digit < first + DIGITS / LANES - 1 && (double)(before + weight_at(table, low, digit)) < wanted) {
        before += weight_at(table, low, digit++);
    }
    table.before = before;
    table.prefix = prefix << 8 | digit;
    table.alone = table.counts[digit] == 1;
}

// Finds the last candidate in order of rank before which the kept candidates have a total weight of less than `wanted`. Returns a
// prefix of its key.
// There must be a reduction over the block between two calls, so that all threads have read the first result.
__device__ __noinline__ void cut(const Candidates &all, const Kept &kept, double unit, double wanted, u64 *prefix,
                                    int *at) {
    __shared__ Histogram table;
    if (threadIdx.x == 0) table.before = table.prefix = 0;
    int shift = SLOT_BITS + 32;
    do {
        shift -= 8;
        for (u32 i = threadIdx.x; i < DIGITS; i += blockDim.x) table.low[i] = table.high[i] = table.counts[i] = 0;
        __syncthreads();
        each<1>(all, [&](u32 slot, float logit) {
            u64 key = key_of(logit, slot) >> shift;
            if (key >> 8 != table.prefix || !is_kept(kept, logit, slot)) return;
            if (unit != 0.0) add_weight(table, key & (DIGITS - 1), weight_of(kept, logit, unit));
            atomicAdd(&table.counts[key & (DIGITS - 1)], 1u);
        });
        __syncthreads();
        if (threadIdx.x < LANES) choose_digit(table, unit == 0.0 ? table.counts : table.low, wanted);
        __syncthreads();
    } while (shift > 0 && !table.alone);
    *prefix = table.prefix;
    *at = shift;
}

// The logit of a key.
__device__ __forceinline__ float logit_of(u64 key) {
    u32 order = (u32)(key >> SLOT_BITS);
    return __uint_as_float((order & 0x80000000u) ? order : ~order & 0x7fffffffu);
}

// The logit of the candidate at which was cut: the only one with the prefix, or one of several with equal keys.
__device__ __forceinline__ float logit_at(const Candidates &all, u64 prefix, int shift) {
    u64 best = ~0ull;
    each<1>(all, [&](u32 slot, float logit) {
        u64 key = key_of(logit, slot);
        if (key >> shift == prefix && key < best) best = key;
    });
    return logit_of(block_least(best));
}

// Counts the candidates that have a logit (in the lower 32 bits) and those whose logit is NaN (in the upper 32 bits). Also finds
// the key of the best candidate, and of the best one of this thread.
__device__ __forceinline__ u64 count_of(const Candidates &all, bool signless, u64 *best, u64 *own) {
    u64 counts = 0, least = ~0ull;
    each<LOADS>(all, [&](u32 slot, float logit) {
        // Greedy decoding treats -0 and +0 as equal; a draw does not.
        if (signless && logit == 0.0f) logit = 0.0f;
        counts += logit != logit ? 1ull << 32 : 1;
        u64 key = key_of(logit, slot);
        least = key < least ? key : least;
    });
    *own = least;
    *best = block_least(least);
    return block_sum(counts);
}

// The total weight of the kept candidates, in units of 1 / `unit`.
__device__ __noinline__ u64 sum_of(const Candidates &all, const Kept &kept, double unit) {
    u64 sum = 0;
    each<4>(all, [&](u32 slot, float logit) {
        if (is_kept(kept, logit, slot)) sum += weight_of(kept, logit, unit);
    });
    return block_sum(sum);
}

// Keeps all candidates.
__device__ __forceinline__ Kept kept_all(const Sampling &sampling, float best) {
    Kept kept = {__uint_as_float(0xff800000u), ~0ull, 0, -INFINITE, (double)best / sampling.temperature, sampling.temperature};
    return kept;
}

// The `unit` of weights, a factor with which `count` weights add up to less than 2^62.
__device__ __forceinline__ double unit_of(u32 count) { return (double)(1ull << (62 - (32 - __clz(count)))); }

// Applies top-k, top-p and min-p to `count` candidates, in this order; each sees what the previous one kept. `sum` is the total
// weight of the candidates before top-p, or 0 if it is not known yet.
__device__ __forceinline__ Kept filtered(const Candidates &all, const Sampling &sampling, float best, u32 count, u64 sum) {
    Kept kept = kept_all(sampling, best);
    u64 prefix;
    int shift;
    if (sampling.top_k != 0 && sampling.top_k < count) {
        cut(all, kept, 0.0, (double)sampling.top_k, &prefix, &shift);
        kept.least = logit_at(all, prefix, shift);
    }
    if (sampling.top_p < 1.0) {
        double unit = unit_of(count);
        if (sum == 0) sum = sum_of(all, kept, unit);
        cut(all, kept, unit, sampling.top_p * (double)sum, &prefix, &shift);
        kept.prefix = prefix;
        kept.shift = shift;
    }
    kept.floor = kept.best + sampling.log_min_p;
    return kept;
}

// Keeps the larger of two sums of score and noise, and among equal sums the smaller slot.
__device__ __forceinline__ void rival(const Candidates &all, const Kept &kept, u32 slot, u32 bits, double bound,
                                      u64 *most, u32 *winner) {
    float logit = all.logits[slot];
    double score = (double)logit / kept.temperature;
    // A candidate that cannot win needs no noise.
    if (!is_kept(kept, logit, slot) || !(score >= bound)) return;
    u64 sum = descending(score + gumbel(bits));
    if (sum < *most || (sum == *most && slot < *winner)) {
        *most = sum;
        *winner = slot;
    }
}

// A score below which no candidate can win, whatever its noise.
__device__ __forceinline__ double bound_of(const Kept &kept) {
    double bound = kept.best - GUMBEL_RANGE;
    // The scores are rounded, so the bound is lowered a little to lose no candidate.
    return bound - 1e-9 * (fabs(bound) + 1.0);
}

// The slot with the largest sum in the block, and among equal sums the smallest slot.
__device__ __forceinline__ u32 winner_of_block(u64 most, u32 winner) {
    u64 best = block_least(most);
    return (u32)block_least(most == best ? (u64)winner : ~0ull);
}

// The slot with the largest sum of score and noise among listed candidates. `tokens` has the ids of slots; it is null if slots are
// ids.
__device__ __forceinline__ u32 winner_of_list(const Candidates &list, const Kept &kept, const u32 *tokens, const u32 *key,
                                              u64 position) {
    double bound = bound_of(kept);
    u64 most = ~0ull;
    u32 winner = NONE, words[WORDS];
    for (u32 i = threadIdx.x; i < list.count; i += blockDim.x) {
        u32 slot = slot_of(list, i);
        if (slot >= list.known || !((double)list.logits[slot] / kept.temperature >= bound)) continue;
        u32 id = tokens ? tokens[slot] : slot;
        chacha8(key, position, id / WORDS, words);
        u32 bits = words[0];
#pragma unroll
        for (int word = 1; word < WORDS; word++) bits = id % WORDS == (u32)word ? words[word] : bits;
        rival(list, kept, slot, bits, bound, &most, &winner);
    }
    return winner_of_block(most, winner);
}

// The same among all slots, which are ids: 16 of them share a block of noise.
__device__ __forceinline__ u32 winner_of_all(const Candidates &all, const Kept &kept, const u32 *key, u64 position) {
    double bound = bound_of(kept);
    u64 most = ~0ull;
    u32 winner = NONE, words[WORDS];
    for (u32 block = threadIdx.x; block * WORDS < all.count; block += blockDim.x) {
        chacha8(key, position, block, words);
#pragma unroll
        for (int word = 0; word < WORDS; word++) {
            u32 slot = block * WORDS + word;
            if (slot < all.count) rival(all, kept, slot, words[word], bound, &most, &winner);
        }
    }
    return winner_of_block(most, winner);
}

// The state of the candidates before the draw.
struct Standing {
    u32 count;
    // The best key of this thread, and the best logit of all threads.
    u64 own;
    float best;
    // DRAWN_NOTHING, DRAWN_NOT_FINITE, or the slot in greedy decoding; otherwise NONE.
    u32 drawn;
};

__device__ __forceinline__ Standing standing_of(const Candidates &all, const Sampling &sampling) {
    bool greedy = sampling.temperature == 0.0;
    u64 best;
    Standing standing = {0, 0, 0, NONE};
    u64 counts = count_of(all, greedy, &best, &standing.own);
    standing.count = (u32)counts;
    standing.best = logit_of(best);
    double score = greedy ? (double)standing.best : (double)standing.best / sampling.temperature;
    if (counts == 0) {
        standing.drawn = DRAWN_NOTHING;
    } else if (counts >> 32 != 0 || !is_finite(score)) {
        standing.drawn = DRAWN_NOT_FINITE;
    } else if (greedy) {
        standing.drawn = (u32)best & ((1u << SLOT_BITS) - 1);
    }
    return standing;
}

// Draws a slot among listed candidates; returns it, or DRAWN_NOTHING or DRAWN_NOT_FINITE. All threads of the block must call, and
// all get the result.
__device__ __forceinline__ u32 drawn(const Candidates &all, const Sampling &sampling, const u32 *tokens, const u32 *key,
                                     u64 position) {
    Standing standing = standing_of(all, sampling);
    if (standing.drawn != NONE) return standing.drawn;
    Kept kept = filtered(all, sampling, standing.best, standing.count, 0);
    return winner_of_list(all, kept, tokens, key, position);
}
