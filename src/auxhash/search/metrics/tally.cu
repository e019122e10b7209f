// tally.py on a GPU: a block counts a part of the base for one query.

#include "../../compute/hamming.cuh"

#define MOST 1024  // bins: distances of codes of up to 511 bits, relevant or not

// Points at each distance from each query (queries, width) in `found`, and relevant ones in `hits`:
// those whose label is the query's or, where labels are sets (`n_sets` words, else 0), that share
// one.
extern "C" __global__ void by_label(
    const word *base, count n, const word *queries, count n_words, count parts,
    const word *base_labels, const word *query_labels, count n_sets,
    word *found, word *hits, count width)
{
    __shared__ unsigned own[MOST];
    count q = blockIdx.x / parts, part = blockIdx.x % parts;
    for (count d = threadIdx.x; d < 2 * width; d += THREADS)
        own[d] = 0;
    __syncthreads();
    count size = (n + parts - 1) / parts, end = (part + 1) * size < n ? (part + 1) * size : n;
    for (count i = part * size + threadIdx.x; i < end; i += THREADS) {
        bool relevant = !n_sets && base_labels[i] == query_labels[q];
        for (count w = 0; w < n_sets; w++)
            relevant |= (base_labels[i * n_sets + w] & query_labels[q * n_sets + w]) != 0;
        int d = distance(base + i * n_words, queries + q * n_words, (int)n_words);
        atomicAdd(&own[d + (relevant ? width : 0)], 1u);
    }
    __syncthreads();
    for (count d = threadIdx.x; d < width; d += THREADS) {
        if (own[d] + own[d + width])
            atomicAdd(&found[q * width + d], (word)own[d] + own[d + width]);
        if (own[d + width])
            atomicAdd(&hits[q * width + d], (word)own[d + width]);
    }
}

// The same where the relevant points of each query are listed: (queries, n_listed).
extern "C" __global__ void by_list(
    const word *base, count n, const word *queries, count n_words,
    const count *listed, count n_listed, word *hits, count width)
{
    count q = blockIdx.x;
    for (count i = threadIdx.x; i < n_listed; i += THREADS) {
        const word *other = base + listed[q * n_listed + i] * n_words;
        atomicAdd(&hits[q * width + distance(other, queries + q * n_words, (int)n_words)], 1ULL);
    }
}
