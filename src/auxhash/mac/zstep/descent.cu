// descent.py on a GPU: the points of one colour at a time, one block of threads per point.
//
// No two points of a colour form a pair, so that their flips do not affect each other, and each
// lowers L_P: the guarantee is the one of the processor. Sums are exact.

#include "edges.cuh"

#define BITS 64  // of a window, whose sums are made together: those of a word
#define ROOM 1536  // edges of a point that are held; more are read again for every flip
#define SLICES 32  // at most, over which a sum is spread

// The random priority of a point in the colouring, its number in the lowest digits: none is equal.
extern "C" __global__ void priorities(word *out, count n)
{
    count point = (count)blockIdx.x * THREADS + threadIdx.x;
    if (point >= n)
        return;
    word x = (word)(point + 1) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    out[point] = (x ^ (x >> 31)) >> 32 << 32 | (word)point;
}

// Greedy colouring: each point takes the first colour that none of its partners has which come
// before it, and waits for those. A block per point, in the order of falling priority: blocks start
// in the order of their numbers, so that what a block waits for is running already.
extern "C" __global__ void colour(
    const unsigned *points, const word *priority, const count *indptr, const unsigned *indices,
    volatile int *colours, count most)
{
    __shared__ unsigned taken[64];
    count n = points[blockIdx.x];
    word own = priority[n];
    int found = -1;
    // In windows of 2048 colours, of which one nearly always is enough.
    for (count first = 0; first < most && found < 0; first += 2048) {
        if (threadIdx.x < 64)
            taken[threadIdx.x] = 0;
        __syncthreads();
        for (count e = indptr[n] + threadIdx.x; e < indptr[n + 1]; e += THREADS) {
            count m = indices[e];
            if (priority[m] <= own)
                continue;
            int other;
            while ((other = colours[m]) < 0)
                ;
            count c = other - first;
            if (c >= 0 && c < 2048)
                atomicOr(&taken[c / 32], 1u << (c % 32));
        }
        __syncthreads();
        for (int w = 0; w < 64 && found < 0; w++)
            if (~taken[w])
                found = (int)first + 32 * w + __ffs(~taken[w]) - 1;
        __syncthreads();
    }
    if (!threadIdx.x)
        colours[n] = found;
}

// Numbers that are read at once.
struct alignas(16) Four {
    unsigned of[4];
};
struct alignas(16) Two {
    double of[2];
};

// What a block holds of its point's edges: of up to ROOM at a time, the bits of a window in which the
// neighbours differ from the point, how far apart they are, and what a differing bit gains.
struct Held {
    Four differ[BITS / 32][ROOM / 4];
    Two gain[ROOM / 2];
    int apart[ROOM];
    double same[THREADS], partial[THREADS], sums[BITS + 1];
    int next;
};

// Learn the edges from..: as they are, or, where they are known, with bit `flipped` of the window
// changed. Returns this thread's share of what all agree adds.
static __device__ double look(
    const word *own, const word *words, count n_words, count from, int here, Edges g, Table t,
    count window, int flipped, Held &held)
{
    double same = 0;
    for (int i = threadIdx.x; i < here; i += THREADS) {
        count e = from + i;
        if (flipped < 0) {
            // Volatile: other blocks may have changed it since this one has read it last.
            const volatile word *other = words + (count)g.indices[e] * n_words;
            word in = own[window] ^ other[window];
            held.differ[0][i / 4].of[i % 4] = (unsigned)in;
            held.differ[1][i / 4].of[i % 4] = (unsigned)(in >> 32);
            held.apart[i] = (int)distance(own, other, n_words);
        } else {
            unsigned *in = &held.differ[flipped / 32][i / 4].of[i % 4], mask = 1u << (flipped % 32);
            *in ^= mask;
            held.apart[i] += *in & mask ? 1 : -1;
        }
        double agrees = looked_up(g, t, e, held.apart[i] + 1);
        held.gain[i / 2].of[i % 2] = -looked_up(g, t, e, held.apart[i]) - agrees;
        same += agrees;
    }
    int after = here + threadIdx.x;  // a last group of four has four
    if (after < (here + 3) / 4 * 4)
        held.gain[after / 2].of[after % 2] = 0;
    return same;
}

// The gains of edges that differ in this bit, of every `slices`-th group of four.
static __device__ double added(int bit, int slice, int slices, int here, const Held &held)
{
    unsigned mask = 1u << (bit % 32);
    double sum[4] = {0, 0, 0, 0};  // each addition would wait for the last
    for (int i = slice; 4 * i < here; i += slices) {
        Four differ = held.differ[bit / 32][i];
        Two one = held.gain[2 * i], other = held.gain[2 * i + 1];
        sum[0] += differ.of[0] & mask ? one.of[0] : 0;
        sum[1] += differ.of[1] & mask ? one.of[1] : 0;
        sum[2] += differ.of[2] & mask ? other.of[0] : 0;
        sum[3] += differ.of[3] & mask ? other.of[1] : 0;
    }
    return sum[0] + sum[1] + sum[2] + sum[3];
}

// Sums over the edges of a point, for bits from..bits of a window: sums[k] of the gains of neighbours
// that differ in its bit k, and sums[bits] of what all agree adds (see gains.py). `flipped` is the
// bit in which the point has changed since the last call, -1 at first.
static __device__ void gains(
    const word *own, const word *words, count n_words, count begin, count end, Edges g, Table t,
    count window, int from, int bits, int flipped, Held &held)
{
    // Thread t adds up column t % width over the edges of slice t / width.
    int width = bits - from + 1, column = threadIdx.x % width, slice = threadIdx.x / width;
    int slices = min(THREADS / width, SLICES);
    double total = 0;
    if (end - begin > ROOM)
        flipped = -1;  // the first of them are no longer held
    for (count at = begin; at < end; at += ROOM) {
        int here = end - at < ROOM ? (int)(end - at) : ROOM;
        held.same[threadIdx.x] =
            look(own, words, n_words, at, here, g, t, window, flipped, held);
        __syncthreads();
        if (slice < slices && column < width - 1)
            total += added(from + column, slice, slices, here, held);
        else if (slice < slices)
            for (int i = slice; i < THREADS; i += slices)
                total += held.same[i];
        __syncthreads();
    }
    held.partial[threadIdx.x] = total;
    __syncthreads();
    if (slice == 0) {
        for (int s = 1; s < slices; s++)
            total += held.partial[s * width + column];
        held.sums[from + column] = total;
    }
    if (!threadIdx.x)
        held.next = bits;
    __syncthreads();
}

// Visit one point.
static __device__ void descend(
    count n, word *words, count n_words, const double *c, count b, double tolerance, Edges g,
    Table t, word *flips, Held &held)
{
    word *own = words + n * n_words;
    for (count first = 0; first < b; first += BITS) {
        int bits = b - first < BITS ? (int)(b - first) : BITS, flipped = -1;
        while (flipped + 1 < bits) {
            gains(own, words, n_words, g.indptr[n], g.indptr[n + 1], g, t, first / BITS,
                  flipped + 1, bits, flipped, held);
            int k = threadIdx.x;
            if (k > flipped && k < bits) {
                double z = own[first / BITS] >> k & 1 ? 1 : -1;
                if (0.5 * (held.sums[bits] + held.sums[k]) + z * c[n * b + first + k] > tolerance)
                    atomicMin(&held.next, k);
            }
            __syncthreads();
            flipped = held.next;
            if (!threadIdx.x && flipped < bits) {
                own[first / BITS] ^= 1ULL << flipped;
                atomicAdd(flips, 1ULL);
            }
            __syncthreads();
        }
    }
}

// Let all blocks come to this point before any goes on; they must all be running. `arrived` counts
// the arrivals of all times, `turn` the calls before this one.
static __device__ void all_blocks(unsigned *arrived, unsigned turn)
{
    __syncthreads();
    if (!threadIdx.x) {
        __threadfence();
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned *)arrived < gridDim.x * (turn + 1))
            ;
        __threadfence();
    }
    __syncthreads();
}

// Visit each point of these colours once, all its bits in turn: flip those whose flip lowers L_P.
// `order` lists the points colour by colour, colour k from starts[k] on. A launch of several colours
// wants all its blocks to run at the same time.
extern "C" __global__ void descend_points(
    const unsigned *order, const count *starts, count first_colour, count last_colour,
    word *words, count n_words, const double *c, count b, double tolerance, EDGES, word *flips,
    unsigned *arrived)
{
    __shared__ Held held;
    GIVEN_EDGES
    for (count k = first_colour; k < last_colour; k++) {
        if (k > first_colour)
            all_blocks(arrived, (unsigned)(k - first_colour - 1));
        for (count at = starts[k] + blockIdx.x; at < starts[k + 1]; at += gridDim.x)
            descend(order[at], words, n_words, c, b, tolerance, g, t, flips, held);
    }
}

// S (n, b) of all points: for every bit (1/2) sum_j a_nj z_j, with the codes as they are.
extern "C" __global__ void fields(
    const word *words, count n_words, count b, EDGES, double *S)
{
    __shared__ Held held;
    GIVEN_EDGES
    count n = blockIdx.x;
    const word *own = words + n * n_words;
    for (count first = 0; first < b; first += BITS) {
        int bits = b - first < BITS ? (int)(b - first) : BITS;
        gains(own, words, n_words, indptr[n], indptr[n + 1], g, t, first / BITS, 0, bits, -1, held);
        if (threadIdx.x < bits) {
            double z = own[first / BITS] >> threadIdx.x & 1 ? 1 : -1;
            double sum = held.sums[bits] + held.sums[threadIdx.x];
            S[n * b + first + threadIdx.x] = z * 0.5 * sum;
        }
        __syncthreads();
    }
}
