// Rows of text under the automaton: what is legal, the draw, the transition, and what is forced behind it.
//
// The tables are those of `constraint/automaton/device_table.rs`, which says what each holds. A *place* is a row of the edge
// table: the states of a block first, then the nodes of all segments.

// Targets of edges that leave a segment or a block.
#define OVER 0xffffffffu
#define NEXT 0xfffffffdu
// No exit.
#define STAYS 0xffffffffu
// Bit of a token that was forced.
#define FORCED 0x80000000u
// How a row ended.
#define RUNS 0u
#define ENDS_EOS 1u
#define ENDS_LENGTH 2u
#define FAILS_NOTHING_ALLOWED 3u
#define FAILS_NOT_FINITE 4u

// The automata of all molecules of a run. 88 bytes: eight pointers, six numbers.
struct Tables {
    const u32 *offsets;    // [places + 1]: the edges of a place are offsets[place]..offsets[place + 1]
    const u32 *slots;      // [edges]: which token, ascending within a place
    const u32 *targets;    // [edges]: a place, NEXT or NEXT + 1 (the next segment, by the mode of the block), or OVER
    const u32 *exits;      // [states]: mode in which a block may end before the next token, or STAYS
    const u32 *roots;      // [segments, 2]: the place where a segment begins, by mode; OVER if it has no tokens; NONE
    const u32 *order;      // segments of all molecules, one molecule behind the other
    const u32 *molecules;  // [molecules + 1]: where each begins in `order`
    const u32 *tokens;     // [slots]: token ids
    u32 states;            // places below are states of a block
    u32 known;             // slots below have logits, and ascend with their ids
    u32 unused[4];
};

// A text that is being written. 64 bytes.
struct Row {
    u32 key[8];      // of its noise: seed, molecule, generation, number, 64 bits each
    u32 molecule;    // in Tables
    u32 at;          // segment among those of the molecule; behind the last one the text is over
    u32 place;
    u32 count;       // tokens in `texts`
    u32 read;        // of these, those that the model has read, or reads in this step
    u32 most;        // tokens that `texts` may have
    u32 base;        // position of the first token in `texts`: tokens of the prompt that were read elsewhere
    u32 prompt;      // tokens in `texts` that are the prompt's
};

// The position of the next token among those written, by which its noise goes.
__device__ __forceinline__ u32 next_position(const Row &row) { return row.count - row.prompt; }

// The batch. `texts[row]` begins with the prompt, or with its end: its last token at least. 48 bytes.
struct Batch {
    Row *rows;       // [rows]
    u32 *texts;      // [rows, stride]; a token, with FORCED if it was
    u32 *ends;       // [rows]: RUNS or how it ended
    u32 *ended;      // [1]: how many rows ended since it was set to zero
    u64 *work;       // [5]: what the steps came to, as `WorkDone` of abi.rs names it
    u32 count, stride;
};

// Edges of a place.
struct Edges {
    u32 start, end;
};

__device__ __forceinline__ Edges edges_of(const Tables &tables, u32 place) {
    Edges edges = {tables.offsets[place], tables.offsets[place + 1]};
    return edges;
}

// What is legal: the edges of a place, and those of the next segment where a block may end.
struct Legal {
    Edges own, next;
    bool over;
};

__device__ __forceinline__ Legal legal_of(const Tables &tables, const Row &row) {
    Legal legal = {{0, 0}, {0, 0}, false};
    u32 first = tables.molecules[row.molecule], segments = tables.molecules[row.molecule + 1] - first;
    legal.over = row.at >= segments;
    if (legal.over) return legal;
    legal.own = edges_of(tables, row.place);
    if (row.place < tables.states && tables.exits[row.place] != STAYS && row.at + 1 < segments) {
        u32 segment = tables.order[first + row.at + 1];
        u32 root = tables.roots[2 * segment + tables.exits[row.place]];
        if (root != NONE) legal.next = edges_of(tables, root);
    }
    return legal;
}

__device__ __forceinline__ u32 count_legal(const Legal &legal) {
    return legal.own.end - legal.own.start + legal.next.end - legal.next.start;
}

// Which edge has a slot; the end if none has.
__device__ __forceinline__ u32 find(const Tables &tables, Edges edges, u32 slot) {
    u32 low = edges.start, high = edges.end;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (tables.slots[middle] < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < edges.end && tables.slots[low] == slot ? low : edges.end;
}

// Moves a row on by a legal slot.
__device__ __forceinline__ void advance(const Tables &tables, const Legal &legal, Row &row, u32 slot) {
    u32 edge = find(tables, legal.own, slot);
    bool leaves = edge == legal.own.end;
    if (leaves) edge = find(tables, legal.next, slot);
    u32 target = tables.targets[edge], first = tables.molecules[row.molecule];
    if (leaves) row.at++;
    if (target != OVER && target >= NEXT) {
        row.at++;
        // The root of a last segment without tokens is OVER.
        target = tables.roots[2 * tables.order[first + row.at] + target - NEXT];
    }
    if (target == OVER) {
        row.at = tables.molecules[row.molecule + 1] - first;
        row.place = 0;
    } else {
        row.place = target;
    }
}

// By one thread: ends a row.
__device__ __forceinline__ void end_row(const Batch &batch, u32 at, u32 end) {
    batch.ends[at] = end;
    atomicAdd(batch.ended, 1u);
}

// Appends a token; whether that was the last one.
__device__ __forceinline__ bool append_token(const Batch &batch, u32 at, Row &row, u32 token) {
    batch.texts[(u64)at * batch.stride + row.count++] = token;
    if (row.count < row.most) return false;
    end_row(batch, at, ENDS_LENGTH);
    return true;
}

// By one thread: appends what is forced anyway, as `Row::follow_forced_run` on the CPU.
__device__ __forceinline__ void follow(const Tables &tables, const Batch &batch, u32 at, Row &row) {
    for (;;) {
        Legal legal = legal_of(tables, row);
        if (legal.over) {
            // Here the end of text is forced, which is not written.
            end_row(batch, at, ENDS_EOS);
            return;
        }
        if (count_legal(legal) != 1) return;
        u32 slot = tables.slots[legal.own.start < legal.own.end ? legal.own.start : legal.next.start];
        advance(tables, legal, row, slot);
        if (append_token(batch, at, row, tables.tokens[slot] | FORCED)) return;
    }
}

// Rows that enter: what is forced behind their prompts. `Row` is as the host wrote it, `ends` 0.
// entered [count] rows. Grid: so many blocks that there is a thread for each.
KERNEL(128) enter(Tables tables, Batch batch, const u32 *entered, u32 count) {
    begin();
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    u32 at = entered[i];
    require(at < batch.count);
    Row row = batch.rows[at];
    require(row.count >= 1 && row.count == row.prompt && row.most <= batch.stride);
    if (row.count >= row.most) {
        end_row(batch, at, ENDS_LENGTH);
        return;
    }
    follow(tables, batch, at, row);
    batch.rows[at] = row;
}

// One token for each row whose last token was read, and what is forced behind it: mask, draw, transition, forced run.
// lasts [rows], NONE for rows that wait; logits [rows, stride], by slot. Grid: rows.
KERNEL(512, 1) choose(Tables tables, Batch batch, Sampling sampling, const u32 *lasts, const float *logits, u32 stride) {
    begin();
    require_whole_warps();
    require(gridDim.x == batch.count && tables.known <= stride);
    u32 at = blockIdx.x;
    if (lasts[at] == NONE || batch.ends[at] != RUNS) return;
    Row row = batch.rows[at];
    // Where nothing is drawn, the first thread writes the row at once.
    __syncthreads();
    Legal legal = legal_of(tables, row);
    u32 count = count_legal(legal), slot = NONE;
    if (!legal.over && count > 1) {
        u32 own = legal.own.end - legal.own.start;
        Candidates all = {logits + (u64)at * stride, tables.known, tables.slots + legal.own.start,
                          tables.slots + legal.next.start, own, count};
        slot = drawn(all, sampling, tables.tokens, row.key, next_position(row));
    }
    if (threadIdx.x != 0) return;
    if (!legal.over && count == 0) slot = DRAWN_NOTHING;
    if (slot == DRAWN_NOTHING || slot == DRAWN_NOT_FINITE) {
        end_row(batch, at, slot == DRAWN_NOTHING ? FAILS_NOTHING_ALLOWED : FAILS_NOT_FINITE);
        return;
    }
    bool goes_on = true;
    if (slot != NONE) {
        advance(tables, legal, row, slot);
        goes_on = !append_token(batch, at, row, tables.tokens[slot]);
    }
    if (goes_on) follow(tables, batch, at, row);
    batch.rows[at] = row;
}
