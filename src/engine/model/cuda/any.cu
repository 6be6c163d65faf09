// Draws from the whole vocabulary, for logit processors that allow all tokens, or all except a list.
//
// A vocabulary is read twice. The first reading finds the best candidate of each thread, which gives a bound. The second lists all
// candidates that reach the bound. These are few, and the draw is made among them, with the same result. If they are too many, the
// draw is made among all.

// The largest number of candidates to which a draw is narrowed down.
#define LIKELY 2048
// If only top-p cuts, this many of the best candidates are tried first.
#define TRIED 256

// A logit that at least `rank` candidates reach; `rank` is at most the number of threads. Each warp takes the logit at place
// `rank / warps`, rounded up, among the best candidates of its threads; the result is the smallest of these logits. -inf if a warp
// has too few candidates.
__device__ __forceinline__ float logit_of_rank(u64 own, u32 rank) {
    u32 warps = blockDim.x / LANES, wanted = (rank + warps - 1) / warps, better = 0;
    for (u32 lane = 0; lane < LANES; lane++) better += __shfl_sync(ALL_LANES, own, lane) < own;
    u64 key = better == wanted - 1 || (own == ~0ull && better < wanted) ? own : 0;
    key = ~block_least(~key);
    return key == ~0ull ? __uint_as_float(0xff800000u) : logit_of(key);
}

// Lists the candidates whose logit is at least `least`. Returns whether they are few enough.
__device__ __forceinline__ bool listed(const Candidates &all, float least, u32 *slots, Candidates *few) {
    __shared__ u32 found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    each<LOADS>(all, [&](u32 slot, float logit) {
        if (!(logit >= least)) return;
        u32 place = atomicAdd(&found, 1u);
        if (place < LIKELY) slots[place] = slot;
    });
    __syncthreads();
    Candidates list = {all.logits, all.known, slots, 0, found, found};
    *few = list;
    return found <= LIKELY;
}

// Like `drawn`, for slots that are ids.
__device__ __forceinline__ u32 drawn_of_many(const Candidates &all, const Sampling &sampling, const u32 *key, u64 position) {
    __shared__ u32 slots[LIKELY];
    Standing standing = standing_of(all, sampling);
    if (standing.drawn != NONE) return standing.drawn;
    Kept kept = kept_all(sampling, standing.best);
    Candidates few = all;
    u64 sum = 0;
    u32 count = standing.count;
    bool is_few;
    if (sampling.top_k != 0 && sampling.top_k < count) {
        is_few = sampling.top_k <= blockDim.x && listed(all, logit_of_rank(standing.own, sampling.top_k), slots, &few);
        // Top-k cuts off all candidates that are not listed.
        if (is_few) count = few.count;
    } else if (sampling.top_p < 1.0) {
        double unit = unit_of(count);
        sum = sum_of(all, kept, unit);
        is_few = TRIED <= blockDim.x && listed(all, logit_of_rank(standing.own, TRIED), slots, &few) &&
                 (double)sum_of(few, kept, unit) >= sampling.top_p * (double)sum;
    } else {
        // Every logit below this bound in f32 is also below the exact bound.
        double least = bound_of(kept) * sampling.temperature;
        is_few = listed(all, (float)(least - 1e-6 * (fabs(least) + 1.0)), slots, &few);
    }
    if (!is_few) few = all;
    kept = filtered(few, sampling, standing.best, count, sum);
    return is_few ? winner_of_list(few, kept, 0, key, position) : winner_of_all(all, kept, key, position);
}

// Draws one token for each row whose last token was read; nothing is forced after it. The logits of `excluded` ids become -inf,
// which no draw takes; an id of `eos` ends the text and is not written.
// lasts [rows], NONE for rows that wait; logits [rows, stride], of `known` ids. Grid: rows. One block per multiprocessor is enough:
// for more, ptxas spills registers.
KERNEL(512, 1) choose_any(Batch batch, Sampling sampling, const u32 *lasts, float *logits, u32 stride, u32 known,
                        const u32 *excluded, u32 excluded_count, const u32 *eos, u32 eos_count) {
    begin();
    require_whole_warps();
    require(gridDim.x == batch.count && known <= stride && known < (1u << SLOT_BITS));
    u32 at = blockIdx.x;
    if (lasts[at] == NONE || batch.ends[at] != RUNS) return;
    float *own = logits + (u64)at * stride;
    for (u32 i = threadIdx.x; i < excluded_count; i += blockDim.x) {
        if (excluded[i] < known) own[excluded[i]] = __uint_as_float(0xff800000u);
    }
    __syncthreads();
    Row row = batch.rows[at];
    Candidates all = {own, known, 0, 0, 0, known};
    u32 id = drawn_of_many(all, sampling, row.key, next_position(row));
    if (threadIdx.x != 0) return;
    if (id == DRAWN_NOTHING || id == DRAWN_NOT_FINITE) {
        end_row(batch, at, id == DRAWN_NOTHING ? FAILS_NOTHING_ALLOWED : FAILS_NOT_FINITE);
        return;
    }
    for (u32 i = 0; i < eos_count; i++) {
        if (id == eos[i]) {
            end_row(batch, at, ENDS_EOS);
            return;
        }
    }
    append_token(batch, at, row, id);
    batch.rows[at] = row;
}
