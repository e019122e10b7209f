// scan.py on a GPU: exact search by counting, never by sorting the base.
//
// A radius that holds the k nearest is estimated from a part of the base (`histogram`), the codes within
// it are gathered (`gather`), and only these, hardly more than k, are sorted (`least`). A key is a
// distance and a position in one number, so that keys rise as the results do: nearest first, equal
// distances by position.

#include "../../compute/hamming.cuh"

#define QUERIES_PER_TILE 64  // that a block compares with its codes
#define CODES_PER_THREAD 4
#define MAX_WORDS 8  // of a code
#define MAX_CANDIDATES 4096  // keys that are sorted together

// How many of every `stride`-th code are at each distance from each query: bins (queries, widest + 1).
extern "C" __global__ void histogram(
    const word *base, count n, const word *queries, count n_words, count stride, count parts,
    unsigned *bins, count widest)
{
    __shared__ unsigned own[64 * MAX_WORDS + 1];
    count q = blockIdx.x / parts, part = blockIdx.x % parts;
    for (count d = threadIdx.x; d <= widest; d += THREADS)
        own[d] = 0;
    __syncthreads();
    count step = stride * THREADS * parts;
    for (count i = (part * THREADS + threadIdx.x) * stride; i < n; i += step)
        atomicAdd(&own[distance(base + i * n_words, queries + q * n_words, (int)n_words)], 1u);
    __syncthreads();
    for (count d = threadIdx.x; d <= widest; d += THREADS)
        if (own[d])
            atomicAdd(&bins[q * (widest + 1) + d], own[d]);
}

// Append the key of every code within radius[q] of query q to its keys (queries, room); `counts`
// counts those that there was no room for, too. Blocks of THREADS * CODES_PER_THREAD codes times QUERIES_PER_TILE queries.
extern "C" __global__ void gather(
    const word *base, count n, const word *queries, count n_queries, count n_words,
    const int *radius, word *keys, unsigned *counts, count room, count tiles)
{
    __shared__ word asked[QUERIES_PER_TILE * MAX_WORDS];
    __shared__ int within[QUERIES_PER_TILE];
    count first = blockIdx.x % tiles * QUERIES_PER_TILE, start = blockIdx.x / tiles * THREADS * CODES_PER_THREAD;
    int here = n_queries - first < QUERIES_PER_TILE ? (int)(n_queries - first) : QUERIES_PER_TILE;
    for (int i = threadIdx.x; i < here * n_words; i += THREADS)
        asked[i] = queries[first * n_words + i];
    for (int i = threadIdx.x; i < here; i += THREADS)
        within[i] = radius[first + i];
    __syncthreads();
    if (n_words == 1) {
        word held[CODES_PER_THREAD];
        for (int h = 0; h < CODES_PER_THREAD; h++) {
            count i = start + h * THREADS + threadIdx.x;
            held[h] = i < n ? base[i] : 0;
        }
        for (int q = 0; q < here; q++) {
            for (int h = 0; h < CODES_PER_THREAD; h++) {
                int d = __popcll(held[h] ^ asked[q]);
                count i = start + h * THREADS + threadIdx.x;
                if (d <= within[q] && i < n) {
                    unsigned at = atomicAdd(&counts[first + q], 1u);
                    if (at < room)
                        keys[(first + q) * room + at] = (word)d << 48 | (word)i;
                }
            }
        }
        return;
    }
    for (int h = 0; h < CODES_PER_THREAD; h++) {
        count i = start + h * THREADS + threadIdx.x;
        if (i >= n)
            continue;
        for (int q = 0; q < here; q++) {
            int d = distance(base + i * n_words, asked + q * n_words, (int)n_words);
            if (d <= within[q]) {
                unsigned at = atomicAdd(&counts[first + q], 1u);
                if (at < room)
                    keys[(first + q) * room + at] = (word)d << 48 | (word)i;
            }
        }
    }
}

// The k least of the keys of each query, in rising order: (queries, k).
extern "C" __global__ void least(
    const word *keys, const unsigned *counts, count room, count k, word *out)
{
    __shared__ word own[MAX_CANDIDATES];
    count q = blockIdx.x;
    unsigned n = counts[q] < room ? counts[q] : (unsigned)room, size = 1;
    while (size < n)
        size *= 2;
    for (unsigned i = threadIdx.x; i < size; i += THREADS)
        own[i] = i < n ? keys[q * room + i] : ~0ULL;
    __syncthreads();
    for (unsigned run = 2; run <= size; run *= 2) {
        for (unsigned gap = run / 2; gap; gap /= 2) {
            for (unsigned i = threadIdx.x; i < size; i += THREADS) {
                unsigned j = i ^ gap;
                if (j > i && (own[i] > own[j]) == !(i & run)) {
                    word other = own[i];
                    own[i] = own[j];
                    own[j] = other;
                }
            }
            __syncthreads();
        }
    }
    for (count i = threadIdx.x; i < k; i += THREADS)
        out[q * k + i] = own[i];
}

// The keys of all codes of one query, (n,), where too many are within the radius.
extern "C" __global__ void all_keys(
    const word *base, count n, const word *query, count n_words, word *keys)
{
    count i = (count)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        keys[i] = (word)distance(base + i * n_words, query, (int)n_words) << 48 | (word)i;
}
