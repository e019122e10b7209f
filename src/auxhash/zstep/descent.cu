// descent.py on a GPU: the points of one colour at a time, one block of threads per point.
//
// No two points of a colour form a pair, so that their flips do not affect each other, and each
// lowers L_P: the guarantee is the one of the processor. Sums are exact.

#include "edges.cuh"

#define THREADS 256
#define BITS 128  // whose sums are made together, so that there is a thread for each

// The random priority of a point in the colouring.
static __device__ word priority(count point)
{
    word x = (word)(point + 1) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

// One round of colouring: each of these points that comes before all its uncoloured partners takes
// the first colour that none of its partners has. A point that could wait one more round may or may
// not see what another has just done, but its colour is the same in any case: it depends on the
// points that come before it alone.
extern "C" __global__ void colour(
    const unsigned *points, const count *indptr, const unsigned *indices,
    volatile int *colours, count most)
{
    __shared__ unsigned taken[64];
    __shared__ int waits;
    count n = points[blockIdx.x];
    if (colours[n] >= 0)
        return;
    if (!threadIdx.x)
        waits = 0;
    __syncthreads();
    word own = priority(n);
    for (count e = indptr[n] + threadIdx.x; e < indptr[n + 1] && !waits; e += blockDim.x) {
        count m = indices[e];
        if (colours[m] < 0 && m != n && priority(m) > own)
            waits = 1;
    }
    __syncthreads();
    if (waits)
        return;
    // In windows of 2048 colours, of which one nearly always is enough.
    for (count first = 0; first < most; first += 2048) {
        if (threadIdx.x < 64)
            taken[threadIdx.x] = 0;
        __syncthreads();
        for (count e = indptr[n] + threadIdx.x; e < indptr[n + 1]; e += blockDim.x) {
            count c = (count)colours[indices[e]] - first;
            if (c >= 0 && c < 2048)
                atomicOr(&taken[c / 32], 1u << (c % 32));
        }
        __syncthreads();
        int found = -1;
        for (int w = 0; w < 64 && found < 0; w++)
            if (~taken[w])
                found = 32 * w + __ffs(~taken[w]) - 1;
        __syncthreads();
        if (found >= 0) {
            if (!threadIdx.x)
                colours[n] = (int)first + found;
            return;
        }
    }
}

// Sums over the edges of a point, for bits first..: sums[k] of the gains of neighbours that differ
// in bit first + k, and sums[bits] of what all agree adds (see `_gains` in descent.py).
static __device__ void gains(
    const word *own, const word *words, count n_words, count begin, count end, Edges g,
    Table t, count first, count bits,
    double *gain, double *same, word *differ, double *partial, double *sums)
{
    // Thread t adds up column t % (bits + 1) over the edges of slice t / (bits + 1).
    count width = bits + 1, slices = THREADS / width, column = threadIdx.x % width;
    count slice = threadIdx.x / width;
    double total = 0;
    for (count from = begin; from < end; from += THREADS) {
        count e = from + threadIdx.x, here = end - from < THREADS ? end - from : THREADS;
        if (e < end) {
            const word *other = words + (count)g.indices[e] * n_words;
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
            for (count i = slice; i < here; i += slices) {
                if (column == bits)
                    total += same[i];
                else if (in[i] >> (column % 64) & 1)
                    total += gain[i];
            }
        }
        __syncthreads();
    }
    partial[threadIdx.x] = total;
    __syncthreads();
    if (slice == 0) {
        for (count s = 1; s < slices; s++)
            total += partial[s * width + column];
        sums[column] = total;
    }
    __syncthreads();
}

#define SHARED                                                                                     \
    __shared__ double gain[THREADS], same[THREADS], partial[THREADS], sums[THREADS];               \
    __shared__ word differ[BITS / 64 * THREADS];

// Visit each of these points once, all its bits in turn: flip those whose flip lowers L_P.
extern "C" __global__ void descend_points(
    const unsigned *points, word *words, count n_words, const double *c, count b, double tolerance,
    EDGES, word *flips)
{
    SHARED
    __shared__ int next;
    GIVEN_EDGES
    count n = points[blockIdx.x];
    word *own = words + n * n_words;
    for (count first = 0; first < b; first += BITS) {
        count bits = b - first < BITS ? b - first : BITS, from = 0;
        while (from < bits) {
            gains(own, words, n_words, indptr[n], indptr[n + 1], g, t, first, bits, gain, same,
                  differ, partial, sums);
            if (!threadIdx.x)
                next = (int)bits;
            __syncthreads();
            count k = threadIdx.x, bit = first + k;
            if (k >= from && k < bits) {
                double z = own[bit / 64] >> (bit % 64) & 1 ? 1 : -1;
                if (0.5 * (sums[bits] + sums[k]) + z * c[n * b + bit] > tolerance)
                    atomicMin(&next, (int)k);
            }
            __syncthreads();
            int flipped = next;
            __syncthreads();
            if (flipped == (int)bits)
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

// S (n, b) of all points: for every bit (1/2) sum_j a_nj z_j, with the codes as they are.
extern "C" __global__ void fields(
    const word *words, count n_words, count b, EDGES, double *S)
{
    SHARED
    GIVEN_EDGES
    count n = blockIdx.x;
    const word *own = words + n * n_words;
    for (count first = 0; first < b; first += BITS) {
        count bits = b - first < BITS ? b - first : BITS;
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
