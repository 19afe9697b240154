/*
 * Erasure codes over GF(2^8) and CRC-32C on a GPU: every kernel, in one source for three
 * compilers; forms.h says which and how.
 *
 * A launch does many jobs of one kind. Its grid has a thread for each 16 bytes of the longest
 * job's strips along x, and a job for each step along y. Threads of shorter jobs end at once.
 *
 * A kernel has three arguments. `in` is memory that it reads: descriptors, lists and inputs. `out`
 * is memory that it writes, or reads and writes: outputs and answers. Both may be the same buffer,
 * as long as nothing read through `in` is written. `jobs` is where the descriptors begin in `in`.
 * All places are offsets in bytes from `in` or `out`; with a null `in` or `out` they are addresses.
 *
 * A descriptor is 48 bytes, little-endian:
 *
 *   0  u64  strips   in `in`: the list of strips, a u64 each: inputs, then outputs
 *   8  u64  factors  in `in`: see the kinds
 *  16  u64  answer   in `out`: two u32, or for CRC-32C a u32 for each block; 0 before the launch
 *  24  u32  len      bytes of each strip
 *  28  u32  inputs   strips that are read
 *  32  u32  outputs  strips that are written, or compared
 *  36  u32  block    CRC-32C: bytes of a block
 *  40  u64  -        0
 *
 * Descriptors, lists and answers are aligned to 8 bytes, strips and factors to 16. `len` is a
 * multiple of 16, at least 16. Outputs overlap neither inputs nor each other. The host checks all
 * of this, and all bounds: kernels trust it.
 *
 * Kinds:
 *
 *   generate_p, _pq, _pqr  P, Q and R of the inputs, by Horner's rule: g^i for input i
 *   dot                    output r is the sum over i of factor (r, i) times input i
 *   delta_p, _q, _pq       inputs are pairs, old and new: outputs ^= old ^ new for P, and times
 *                          the pair's factor for Q
 *   deltas                 the same with a factor for each output and pair
 *   verify_p, _pq, _pqr,   outputs, in `in`, are compared with what generate or dot would give;
 *   verify_dot             the answer is 2^32 - 1 less the offset of the first byte that differs,
 *                          or 0; and how many blocks of threads compared, so that what was never
 *                          launched is not taken for equal
 *   crc32c                 CRC-32C of each block of each input, input by input; `factors` are a
 *                          u32 for each 16 bytes of a block, see crc32c below
 *
 * A factor c is 32 bytes, to multiply by three lookups: c times 0 to 7, c times 8·(0 to 7), c times
 * 64·(0 to 3), and 12 bytes of 0. Factors lie row by row: those of output 0 for each input (or
 * pair), then those of output 1.
 */

/* Threads of a block along x. */
#define THREADS 256

#include "forms.h"

/* See above. */
typedef struct {
    u64 strips;
    u64 factors;
    u64 answer;
    u32 len;
    u32 inputs;
    u32 outputs;
    u32 block;
    u64 zero;
} Job;

/*
 * The arguments of every kernel's body: the grid's place comes from its form. That `in` and `out`
 * don't overlap is said by the kernels' own arguments (oclgrind can't have it said twice).
 */
#define ARGUMENTS                                                                              \
    GLOBAL const u8 *in, GLOBAL u8 *out, u64 jobs, u32 number, u32 thread

/* Begins a body: its job, and the offset of its piece; ends threads behind the end. */
#define BEGIN                                                                                  \
    Job job = ((GLOBAL const Job *)(in + jobs))[number];                                       \
    u64 at = (u64)thread * 16;                                                                 \
    if (at >= job.len) return;

/* Rows of `dot` that are computed while an input is in registers. */
#define ROWS 4

/* Where strip `i` of a job's list begins, from `in` or `out`. */
DEVICE u64 strip(GLOBAL const u8 *in, u64 strips, u32 i)
{
    return ((GLOBAL const u64 *)(in + strips))[i];
}

/* 16 bytes of strip `i`, which lies in `in`. */
DEVICE piece load(GLOBAL const u8 *in, u64 strips, u32 i, u64 at)
{
    return *(GLOBAL const piece *)(in + strip(in, strips, i) + at);
}

/* Twice each byte, in the field: a shift, and 0x1d where the top bit fell out. */
DEVICE piece doubled(piece a)
{
    piece carry = a;
    LANE(carry, 0) = signs(LANE(a, 0));
    LANE(carry, 1) = signs(LANE(a, 1));
    LANE(carry, 2) = signs(LANE(a, 2));
    LANE(carry, 3) = signs(LANE(a, 3));
    return ((a << 1u) & 0xfefefefeu) ^ (carry & 0x1d1d1d1du);
}

/* P, and Q and R as `parities` says, of the inputs at `at`. */
DEVICE void horner(GLOBAL const u8 *in, const Job *job, u64 at, u32 parities, piece *sums)
{
    u32 i = job->inputs - 1;
    sums[0] = load(in, job->strips, i, at);
    sums[1] = sums[0];
    sums[2] = sums[0];
#pragma unroll 4
    while (i > 0) {
        i--;
        piece data = load(in, job->strips, i, at);
        sums[0] ^= data;
        if (parities > 1) sums[1] = doubled(sums[1]) ^ data;
        if (parities > 2) sums[2] = doubled(doubled(sums[2])) ^ data;
    }
}

DEVICE void generate(
    GLOBAL const u8 *in, GLOBAL u8 *out, const Job *job, u64 at, u32 parities)
{
    piece sums[3];
    horner(in, job, at, parities, sums);
    for (u32 r = 0; r < parities; r++)
        *(GLOBAL piece *)(out + strip(in, job->strips, job->inputs + r) + at) = sums[r];
}

DEVICE void generate_p(ARGUMENTS) { BEGIN generate(in, out, &job, at, 1); }
DEVICE void generate_pq(ARGUMENTS) { BEGIN generate(in, out, &job, at, 2); }
DEVICE void generate_pqr(ARGUMENTS) { BEGIN generate(in, out, &job, at, 3); }
KERNEL(generate_p)
KERNEL(generate_pq)
KERNEL(generate_pqr)

/*
 * Multiplication by constants. A GPU picks any four of eight bytes in one instruction, so each byte
 * is cut in 3, 3 and 2 bits, and c times each part is looked up: three picks and their sum for
 * four bytes. The picks' selectors, a nibble for each byte, don't depend on the constant and serve
 * all rows. For m rows that is about 14 + 5·m instructions a word, against 32 + 16·m for doubling
 * eight times and adding where a bit of the constant is set.
 */
typedef struct {
    piece low, middle, high;
} Selectors;

/* The bytes of each word, 0 to 7, as the word's low four nibbles; what is above them is not used. */
DEVICE piece nibbles(piece bytes)
{
    piece pairs = bytes | bytes >> 4u;
    LANE(pairs, 0) = permute(LANE(pairs, 0), 0, 0x20);
    LANE(pairs, 1) = permute(LANE(pairs, 1), 0, 0x20);
    LANE(pairs, 2) = permute(LANE(pairs, 2), 0, 0x20);
    LANE(pairs, 3) = permute(LANE(pairs, 3), 0, 0x20);
    return pairs;
}

DEVICE Selectors selectors(piece data)
{
    Selectors by;
    by.low = nibbles(data & 0x07070707u);
    by.middle = nibbles((data >> 3u) & 0x07070707u);
    by.high = nibbles((data >> 6u) & 0x03030303u);
    return by;
}

/* Four products. */
DEVICE u32 product(piece halves, u32 quarter, u32 low, u32 middle, u32 high)
{
    return permute(LANE(halves, 0), LANE(halves, 1), low)
        ^ permute(LANE(halves, 2), LANE(halves, 3), middle) ^ permute(quarter, quarter, high);
}

/* Adds to `sum` what `by` was made of, times the factor at `factor` of `in`. */
DEVICE piece multiplied(piece sum, GLOBAL const u8 *in, u64 factor, const Selectors *by)
{
    piece halves = *(GLOBAL const piece *)(in + factor);
    u32 quarter = *(GLOBAL const u32 *)(in + factor + 16);
    piece low = by->low, middle = by->middle, high = by->high;
    LANE(sum, 0) ^= product(halves, quarter, LANE(low, 0), LANE(middle, 0), LANE(high, 0));
    LANE(sum, 1) ^= product(halves, quarter, LANE(low, 1), LANE(middle, 1), LANE(high, 1));
    LANE(sum, 2) ^= product(halves, quarter, LANE(low, 2), LANE(middle, 2), LANE(high, 2));
    LANE(sum, 3) ^= product(halves, quarter, LANE(low, 3), LANE(middle, 3), LANE(high, 3));
    return sum;
}

/* Where the factor of output `row` and input (or pair) `i` of `terms` lies. */
DEVICE u64 factor(const Job *job, u32 row, u32 i, u32 terms)
{
    return job->factors + 32 * ((u64)row * terms + i);
}

/* The change of pair `i`. */
DEVICE piece change(GLOBAL const u8 *in, const Job *job, u32 i, u64 at)
{
    return load(in, job->strips, 2 * i, at) ^ load(in, job->strips, 2 * i + 1, at);
}

/* Rows `row` to `row + count` of the inputs' products, or of the pairs' if `pairs`. */
DEVICE void rows(
    GLOBAL const u8 *in, const Job *job, u64 at, u32 pairs, u32 row, u32 count, piece *sums)
{
    u32 terms = pairs ? job->inputs / 2 : job->inputs;
    for (u32 r = 0; r < ROWS; r++) sums[r] = ZERO;
    for (u32 i = 0; i < terms; i++) {
        piece data = pairs ? change(in, job, i, at) : load(in, job->strips, i, at);
        Selectors by = selectors(data);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (r < count) sums[r] = multiplied(sums[r], in, factor(job, row + r, i, terms), &by);
    }
}

/* How many rows are computed from `row` on. */
DEVICE u32 left(const Job *job, u32 row)
{
    u32 rest = job->outputs - row;
    return rest < ROWS ? rest : ROWS;
}

DEVICE void dot(ARGUMENTS)
{
    BEGIN
    piece sums[ROWS];
    for (u32 row = 0; row < job.outputs; row += ROWS) {
        u32 count = left(&job, row);
        rows(in, &job, at, 0, row, count, sums);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (r < count)
                *(GLOBAL piece *)(out + strip(in, job.strips, job.inputs + row + r) + at) = sums[r];
    }
}
KERNEL(dot)

DEVICE void deltas(ARGUMENTS)
{
    BEGIN
    piece sums[ROWS];
    for (u32 row = 0; row < job.outputs; row += ROWS) {
        u32 count = left(&job, row);
        rows(in, &job, at, 1, row, count, sums);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (r < count)
                *(GLOBAL piece *)(out + strip(in, job.strips, job.inputs + row + r) + at) ^= sums[r];
    }
}
KERNEL(deltas)

/* Changes of P if `p`, and of Q, the strip behind it, if `q`. */
DEVICE void delta(
    GLOBAL const u8 *in, GLOBAL u8 *out, const Job *job, u64 at, u32 p, u32 q)
{
    u32 pairs = job->inputs / 2;
    piece sum = ZERO, product_sum = ZERO;
    for (u32 i = 0; i < pairs; i++) {
        piece data = change(in, job, i, at);
        sum ^= data;
        if (q) {
            Selectors by = selectors(data);
            product_sum = multiplied(product_sum, in, factor(job, 0, i, pairs), &by);
        }
    }
    if (p) *(GLOBAL piece *)(out + strip(in, job->strips, job->inputs) + at) ^= sum;
    if (q) *(GLOBAL piece *)(out + strip(in, job->strips, job->inputs + p) + at) ^= product_sum;
}

DEVICE void delta_p(ARGUMENTS) { BEGIN delta(in, out, &job, at, 1, 0); }
DEVICE void delta_q(ARGUMENTS) { BEGIN delta(in, out, &job, at, 0, 1); }
DEVICE void delta_pq(ARGUMENTS) { BEGIN delta(in, out, &job, at, 1, 1); }
KERNEL(delta_p)
KERNEL(delta_q)
KERNEL(delta_pq)

/*
 * Answers the offset of the first byte of `difference` that is not 0, if there is one, and counts
 * the block.
 */
DEVICE void report(GLOBAL u8 *out, const Job *job, u64 at, piece difference)
{
    if (at % (16 * THREADS) == 0) count_one(out + job->answer + 4);
    u32 words[4] = {
        LANE(difference, 0), LANE(difference, 1), LANE(difference, 2), LANE(difference, 3)};
    u32 first = (u32)at;
    for (u32 i = 0; i < 4; i++) {
        u32 word = words[i];
        for (u32 byte = 0; byte < 4 && word != 0; byte++, word >>= 8) {
            if ((word & 0xff) != 0) {
                raise_to(out + job->answer, 0xffffffffu - (first + 4 * i + byte));
                return;
            }
        }
    }
}

DEVICE void verify(
    GLOBAL const u8 *in, GLOBAL u8 *out, const Job *job, u64 at, u32 parities)
{
    piece sums[3];
    horner(in, job, at, parities, sums);
    piece difference = ZERO;
    for (u32 r = 0; r < parities; r++)
        difference |= sums[r] ^ load(in, job->strips, job->inputs + r, at);
    report(out, job, at, difference);
}

DEVICE void verify_p(ARGUMENTS) { BEGIN verify(in, out, &job, at, 1); }
DEVICE void verify_pq(ARGUMENTS) { BEGIN verify(in, out, &job, at, 2); }
DEVICE void verify_pqr(ARGUMENTS) { BEGIN verify(in, out, &job, at, 3); }
KERNEL(verify_p)
KERNEL(verify_pq)
KERNEL(verify_pqr)

DEVICE void verify_dot(ARGUMENTS)
{
    BEGIN
    piece sums[ROWS];
    piece difference = ZERO;
    for (u32 row = 0; row < job.outputs; row += ROWS) {
        u32 count = left(&job, row);
        rows(in, &job, at, 0, row, count, sums);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (r < count) difference |= sums[r] ^ load(in, job.strips, job.inputs + row + r, at);
    }
    report(out, &job, at, difference);
}
KERNEL(verify_dot)

/*
 * CRC-32C (RFC 3720, sections 12.1 and B.4). A checksum without its inversions is linear: that of a
 * block is the sum of those of its 16-byte pieces, each times x^(8·bytes behind it) modulo the
 * polynomial. So a thread does one piece, whose power of x is the factor of its place in the block,
 * and adds the result to the answer. The first piece carries the inversions: of the first four
 * bytes, and of the result. Bits are reflected: bit 31 is x^0, and times x is a shift to the right.
 */
DEVICE u32 times_x(u32 a) { return (a >> 1) ^ (0x82f63b78u & (0u - (a & 1))); }

/* The product of two polynomials modulo the polynomial. */
DEVICE u32 crc_product(u32 a, u32 b)
{
    u32 sum = 0;
#pragma unroll
    for (u32 i = 0; i < 32; i++) {
        sum ^= b & (0u - (a >> 31));
        a <<= 1;
        b = times_x(b);
    }
    return sum;
}

DEVICE u32 crc_word(u32 crc, u32 word)
{
    crc ^= word;
#pragma unroll
    for (u32 i = 0; i < 32; i++) crc = times_x(crc);
    return crc;
}

DEVICE void crc32c(ARGUMENTS)
{
    BEGIN
    u32 blocks = job.len / job.block;
    u32 block = (u32)at / job.block;
    u32 place = (u32)at % job.block / 16;
    u32 invert = place == 0 ? 0xffffffffu : 0;
    u32 power = ((GLOBAL const u32 *)(in + job.factors))[place];
    for (u32 i = 0; i < job.inputs; i++) {
        piece data = load(in, job.strips, i, at);
        u32 crc = crc_word(invert, LANE(data, 0));
        crc = crc_word(crc, LANE(data, 1));
        crc = crc_word(crc, LANE(data, 2));
        crc = crc_word(crc, LANE(data, 3));
        add_to(out + job.answer + 4 * ((u64)i * blocks + block), crc_product(crc, power) ^ invert);
    }
}
KERNEL(crc32c)
