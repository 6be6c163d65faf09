// Rows of text under the automaton: the legal tokens, the draw, the transition, and the tokens that are forced after it.
//
// `constraint/automaton/device_table.rs` makes the tables and describes their contents. A *place* is a row of the edge table: first
// the states of a block, then the nodes of all segments.

// Special targets of edges that leave a segment or a block.
#define OVER 0xffffffffu
#define NEXT 0xfffffffdu
// The block may not end here.
#define STAYS 0xffffffffu
// The bit of a forced token.
#define FORCED 0x80000000u
// The state of a row: running, or the reason why it ended.
#define RUNS 0u
#define ENDS_EOS 1u
#define ENDS_LENGTH 2u
#define FAILS_NOTHING_ALLOWED 3u
#define FAILS_NOT_FINITE 4u

// The automata of all molecules of a run. 88 bytes: eight pointers, six numbers.
struct Tables {
    const u32 *offsets;    // [places + 1]: the edges of a place are offsets[place]..offsets[place + 1]
    const u32 *slots;      // [edges]: the slot of the token, ascending within a place
    const u32 *targets;    // [edges]: a place, NEXT or NEXT + 1 (the next segment, by the mode of the block), or OVER
    const u32 *exits;      // [states]: the mode in which a block may end before the next token, or STAYS
    const u32 *roots;      // [segments, 2]: the place where a segment begins, by mode; OVER if it has no tokens; NONE
    const u32 *order;      // the segments of all molecules, molecule after molecule
    const u32 *molecules;  // [molecules + 1]: the start of each molecule in `order`
    const u32 *tokens;     // [slots]: token ids
    u32 states;            // places below are states of a block
    u32 known;             // slots below have logits, and ascend with their ids
    u32 unused[4];
};

// The state of a text that is being written. 64 bytes.
struct Row {
    u32 key[8];      // of the noise: seed, molecule, generation, number, 64 bits each
    u32 molecule;    // index in Tables
    u32 at;          // index of the segment in the molecule; past the last one the text is over
    u32 place;
    u32 count;       // tokens in `texts`
    u32 read;        // how many of these the model has read, or reads in this step
    u32 most;        // largest number of tokens in `texts`
    u32 base;        // position of the first token in `texts`: number of prompt tokens that were read elsewhere
    u32 prompt;      // how many tokens in `texts` belong to the prompt
};

// The position of the next token among the written ones, which is the position of its noise.
__device__ __forceinline__ u32 next_position(const Row &row) { return row.count - row.prompt; }

// The batch. `texts[row]` begins with the prompt or with the end of the prompt, at least its last token. 48 bytes.
struct Batch {
    Row *rows;       // [rows]
    u32 *texts;      // [rows, stride]; tokens, with the bit FORCED if they were forced
    u32 *ends;       // [rows]: RUNS, or the reason for the end
    u32 *ended;      // [1]: number of rows that ended since it was set to zero
    u64 *work;       // [5]: work of the steps: the fields of `WorkDone` in abi.rs
    u32 count, stride;
};

// The edges of a place.
struct Edges {
    u32 start, end;
};

__device__ __forceinline__ Edges edges_of(const Tables &tables, u32 place) {
    Edges edges = {tables.offsets[place], tables.offsets[place + 1]};
    return edges;
}

// The legal tokens: the edges of a place, and, if the block may end, the edges of the next segment.
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

// The edge of a slot; the end of the range if no edge has this slot.
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

// Ends a row; called by one thread.
__device__ __forceinline__ void end_row(const Batch &batch, u32 at, u32 end) {
    batch.ends[at] = end;
    atomicAdd(batch.ended, 1u);
}

// Appends a token. Returns whether it was the last one.
__device__ __forceinline__ bool append_token(const Batch &batch, u32 at, Row &row, u32 token) {
    batch.texts[(u64)at * batch.stride + row.count++] = token;
    if (row.count < row.most) return false;
    end_row(batch, at, ENDS_LENGTH);
    return true;
}

// Appends all tokens that are forced, like `Row::follow_forced_run` on the CPU; called by one thread.
__device__ __forceinline__ void follow(const Tables &tables, const Batch &batch, u32 at, Row &row) {
    for (;;) {
        Legal legal = legal_of(tables, row);
        if (legal.over) {
            // Here the end token is forced, which is not written.
            end_row(batch, at, ENDS_EOS);
            return;
        }
        if (count_legal(legal) != 1) return;
        u32 slot = tables.slots[legal.own.start < legal.own.end ? legal.own.start : legal.next.start];
        advance(tables, legal, row, slot);
        if (append_token(batch, at, row, tables.tokens[slot] | FORCED)) return;
    }
}

// For rows that enter: appends the tokens that are forced after their prompts. `Row` is as the host wrote it, and `ends` is 0.
// entered [count] rows. Grid: enough blocks for one thread per row.
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

// For each row whose last token was read, draws one token and appends the tokens that are forced after it: mask, draw, transition,
// forced run.
// lasts [rows], NONE for rows that wait; logits [rows, stride], by slot. Grid: rows.
KERNEL(512, 1) choose(Tables tables, Batch batch, Sampling sampling, const u32 *lasts, const float *logits, u32 stride) {
    begin();
    require_whole_warps();
    require(gridDim.x == batch.count && tables.known <= stride);
    u32 at = blockIdx.x;
    if (lasts[at] == NONE || batch.ends[at] != RUNS) return;
    Row row = batch.rows[at];
    // All threads must have read the row: if nothing is drawn, the first thread writes it at once.
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
