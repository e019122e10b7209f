// descent.py on a GPU: the points of one colour at a time, one block of threads per point.
//
// No two points of a colour form a pair, so that their flips do not affect each other, and each
// lowers L_P: the guarantee is the one of the processor. Sums are exact.

#include "edges.cuh"

#define BITS (THREADS > 128 ? 128 : 64)  // whose sums are made together: a thread for each

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

// Sums over the edges of a point, for bits first..: sums[k] of the gains of neighbours that differ
// in bit first + k, and sums[bits] of what all agree adds (see gains.py).
static __device__ void gains(
    const word *own, const word *words, count n_words, count begin, count end, Edges g,
    Table t, count first, int bits,
    double *gain, double *same, word *differ, double *partial, double *sums)
{
    // Thread t adds up column t % (bits + 1) over the edges of slice t / (bits + 1).
    int width = bits + 1, slices = THREADS / width, column = threadIdx.x % width;
    int slice = threadIdx.x / width;
    double total = 0;
    for (count from = begin; from < end; from += THREADS) {
        count e = from + threadIdx.x;
        int here = end - from < THREADS ? (int)(end - from) : THREADS;
        if (e < end) {
            // Volatile: other blocks may have changed it since this one has read it last.
            const volatile word *other = words + (count)g.indices[e] * n_words;
            count d = distance(own, other, n_words);
            double agrees = looked_up(g, t, e, d + 1);
            gain[threadIdx.x] = -looked_up(g, t, e, d) - agrees;
            same[threadIdx.x] = agrees;
            for (count w = first / 64; w <= (first + bits - 1) / 64; w++)
                differ[(w - first / 64) * THREADS + threadIdx.x] = own[w] ^ other[w];
        }
        __syncthreads();
        if (slice < slices) {
            const word *in = differ + column / 64 * THREADS;
            if (column == bits)
                for (int i = slice; i < here; i += slices)
                    total += same[i];
            else {
                // Four sums at a time: each addition would wait for the last.
                double sum[4] = {0, 0, 0, 0};
                int i = slice, bit = column % 64;
                for (; i + 3 * slices < here; i += 4 * slices)
                    for (int j = 0; j < 4; j++)
                        sum[j] += in[i + j * slices] >> bit & 1 ? gain[i + j * slices] : 0;
                for (; i < here; i += slices)
                    sum[0] += in[i] >> bit & 1 ? gain[i] : 0;
                total += sum[0] + sum[1] + sum[2] + sum[3];
            }
        }
        __syncthreads();
    }
    partial[threadIdx.x] = total;
    __syncthreads();
    if (slice == 0) {
        for (int s = 1; s < slices; s++)
            total += partial[s * width + column];
        sums[column] = total;
    }
    __syncthreads();
}

// Visit one point.
static __device__ void descend(
    count n, word *words, count n_words, const double *c, count b, double tolerance, Edges g,
    Table t, word *flips, int *next,
    double *gain, double *same, word *differ, double *partial, double *sums)
{
    word *own = words + n * n_words;
    for (count first = 0; first < b; first += BITS) {
        int bits = b - first < BITS ? (int)(b - first) : BITS, from = 0;
        while (from < bits) {
            gains(own, words, n_words, g.indptr[n], g.indptr[n + 1], g, t, first, bits, gain, same,
                  differ, partial, sums);
            if (!threadIdx.x)
                *next = bits;
            __syncthreads();
            int k = threadIdx.x;
            count bit = first + k;
            if (k >= from && k < bits) {
                double z = own[bit / 64] >> (bit % 64) & 1 ? 1 : -1;
                if (0.5 * (sums[bits] + sums[k]) + z * c[n * b + bit] > tolerance)
                    atomicMin(next, k);
            }
            __syncthreads();
            int flipped = *next;
            __syncthreads();
            if (flipped == bits)
                break;
            if (!threadIdx.x) {
                own[(first + flipped) / 64] ^= 1ULL << ((first + flipped) % 64);
                atomicAdd(flips, 1ULL);
            }
            __syncthreads();
            from = flipped + 1;
        }
    }
}

#define SHARED                                                                                     \
    __shared__ double gain[THREADS], same[THREADS], partial[THREADS], sums[BITS + 1];             \
    __shared__ word differ[BITS / 64 * THREADS];

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
    SHARED
    __shared__ int next;
    GIVEN_EDGES
    for (count k = first_colour; k < last_colour; k++) {
        if (k > first_colour)
            all_blocks(arrived, (unsigned)(k - first_colour - 1));
        for (count at = starts[k] + blockIdx.x; at < starts[k + 1]; at += gridDim.x)
            descend(order[at], words, n_words, c, b, tolerance, g, t, flips, &next, gain, same,
                    differ, partial, sums);
    }
}

// S (n, b) of all points: for every bit (1/2) sum_j a_nj z_j, with the codes as they are.
extern "C" __global__ void fields(
    const word *words, count n_words, count b, EDGES, double *S)
{
    SHARED
    GIVEN_EDGES
    count n = blockIdx.x;
    const word *own = words + n * n_words;
    for (count first = 0; first < b; first += BITS) {
        int bits = b - first < BITS ? (int)(b - first) : BITS;
        gains(own, words, n_words, indptr[n], indptr[n + 1], g, t, first, bits, gain, same, differ,
              partial, sums);
        if (threadIdx.x < bits) {
            count bit = first + threadIdx.x;
            double z = own[bit / 64] >> (bit % 64) & 1 ? 1 : -1;
            S[n * b + bit] = z * 0.5 * (sums[bits] + sums[threadIdx.x]);
        }
        __syncthreads();
    }
}
