// Draws from the whole vocabulary, for logit processors that allow all of it, or all but a list.

// One token for each row whose last token was read, and nothing forced behind it. The logits of `excluded` ids become -inf, which
// no draw takes; an id of `eos` ends the text and is not written.
// lasts [rows], NONE for rows that wait; logits [rows, stride], of `known` ids. Grid: rows.
KERNEL(1024) choose_any(Batch batch, Sampling sampling, const u32 *lasts, float *logits, u32 stride, u32 known,
                        const u32 *excluded, u32 excluded_count, const u32 *eos, u32 eos_count) {
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
    u32 id = drawn(all, sampling, 0, row.key, next_position(row));
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
