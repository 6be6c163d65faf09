// The noise of draws, bit for bit the same as on the CPU (`sampling/draw.rs`): ChaCha8 (D. J. Bernstein, ChaCha, a variant of
// Salsa20, 2008, with 8 rounds) as in rand_chacha. The key is (seed, molecule, generation, number), 64 bits each. The stream is the
// position in the text. Word `id` of the stream gives the Gumbel noise of that token.

#define WORDS 16

__device__ __forceinline__ u32 rotated(u32 x, int by) { return (x << by) | (x >> (32 - by)); }

__device__ __forceinline__ void quarter_round(u32 &a, u32 &b, u32 &c, u32 &d) {
    a += b;
    d = rotated(d ^ a, 16);
    c += d;
    b = rotated(b ^ c, 12);
    a += b;
    d = rotated(d ^ a, 8);
    c += d;
    b = rotated(b ^ c, 7);
}

// A block of 16 words: the words 16 · block to 16 · block + 15 of the stream.
__device__ __forceinline__ void chacha8(const u32 *key, u64 stream, u64 block, u32 *words) {
    u32 start[WORDS] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
#pragma unroll
    for (int i = 0; i < 8; i++) start[4 + i] = key[i];
    start[12] = (u32)block;
    start[13] = (u32)(block >> 32);
    start[14] = (u32)stream;
    start[15] = (u32)(stream >> 32);
#pragma unroll
    for (int i = 0; i < WORDS; i++) words[i] = start[i];
#pragma unroll
    for (int pair = 0; pair < 4; pair++) {
#pragma unroll
        for (int i = 0; i < 4; i++) quarter_round(words[i], words[4 + i], words[8 + i], words[12 + i]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            quarter_round(words[i], words[4 + (i + 1) % 4], words[8 + (i + 2) % 4], words[12 + (i + 3) % 4]);
        }
    }
#pragma unroll
    for (int i = 0; i < WORDS; i++) words[i] += start[i];
}

// A draw of the Gumbel distribution from 32 uniform bits: -ln(-ln u). Not inlined, because two logarithms in f64 are long code that
// few draws need.
__device__ __noinline__ double gumbel(u32 bits) {
    double uniform = ((double)bits + 0.5) / 4294967296.0;
    return -log(-log(uniform));
}

// More than the largest difference of two such draws: 33 ln 2 + ln (33 ln 2) is 26.00385.
#define GUMBEL_RANGE 26.004
