// The loops of problem.py over the edges, one block of threads per point.

#include "../../compute/sums.cuh"
#include "edges.cuh"

// +-1 codes (n, b) as words (n, n_words), one thread per word.
extern "C" __global__ void codes_to_words(
    const signed char *codes, word *words, count n, count b, count n_words)
{
    count at = (count)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n * n_words)
        return;
    count point = at / n_words, first = at % n_words * 64;
    word found = 0;
    for (count k = first; k < first + 64 && k < b; k++)
        found |= (word)(codes[point * b + k] > 0) << (k - first);
    words[at] = found;
}

// The reverse, one thread per entry.
extern "C" __global__ void words_to_codes(
    const word *words, signed char *codes, count n, count b, count n_words)
{
    count at = (count)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n * b)
        return;
    count point = at / b, k = at % b;
    codes[at] = words[point * n_words + k / 64] >> (k % 64) & 1 ? 1 : -1;
}

// The loss of each point's edges, (n,): half of their sum is L(Z).
extern "C" __global__ void losses(
    const word *words, count n_words, EDGES, double *out)
{
    __shared__ double scratch[THREADS];
    GIVEN_EDGES
    count n = blockIdx.x;
    double own = 0;
    for (count e = indptr[n] + threadIdx.x; e < indptr[n + 1]; e += blockDim.x) {
        const word *other = words + (count)indices[e] * n_words;
        own += looked_up(g, t, e, distance(words + n * n_words, other, n_words));
    }
    own = block_sum(own, scratch);
    if (!threadIdx.x)
        out[n] = own;
}

// The sum over each point's edges of the largest |a_nj(d')|, (n,).
extern "C" __global__ void most(EDGES, double *out)
{
    __shared__ double scratch[THREADS];
    GIVEN_EDGES
    count n = blockIdx.x;
    double own = 0;
    for (count e = indptr[n] + threadIdx.x; e < indptr[n + 1]; e += blockDim.x) {
        double largest = 0;
        for (count d = 0; d < columns; d++)
            largest = fmax(largest, fabs(looked_up(g, t, e, d)));
        own += largest;
    }
    own = block_sum(own, scratch);
    if (!threadIdx.x)
        out[n] = own;
}
