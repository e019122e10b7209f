// tablescan.py on a GPU: as in scan.cu, codes are counted by their distance, gathered and sorted.
//
// A distance is summed in float32, byte 0 first, so that it is the processor's to the last bit. Bins
// of equal width between the least and the largest sum of a query's tables stand for the distances
// where they are counted.

#include "../../compute/hamming.cuh"

#define VALUES_PER_BYTE 256
#define BYTES_AT_ONCE 32  // whose tables a block holds
#define CODES_PER_THREAD 16  // as in gpu.py
#define BINS 1024

// d[h]: the distance of code first + h * step, for a block's threads together. Codes beyond n have none.
static __device__ void measure(
    const word *base, count n, count n_words, const float *table, count n_bytes, count first,
    count step, float *d)
{
    __shared__ float own[BYTES_AT_ONCE * VALUES_PER_BYTE];
    for (int h = 0; h < CODES_PER_THREAD; h++)
        d[h] = 0;
    for (count start = 0; start < n_bytes; start += BYTES_AT_ONCE) {
        count here = n_bytes - start < BYTES_AT_ONCE ? n_bytes - start : BYTES_AT_ONCE;
        __syncthreads();
        for (count i = threadIdx.x; i < here * VALUES_PER_BYTE; i += THREADS)
            own[i] = table[start * VALUES_PER_BYTE + i];
        __syncthreads();
        for (int h = 0; h < CODES_PER_THREAD; h++) {
            count i = first + h * step;
            if (i >= n)
                break;
            for (count g = 0; g < here; g += 8) {
                word bytes = base[i * n_words + (start + g) / 8];
                for (int r = 0; r < 8 && g + r < here; r++, bytes >>= 8)
                    d[h] += own[(g + r) * VALUES_PER_BYTE + (bytes & 255)];
            }
        }
    }
}

static __device__ int bin(float d, float least, float scale)
{
    float at = (d - least) * scale;
    return at > 0 ? (at < BINS - 1 ? (int)at : BINS - 1) : 0;
}

// Keys rise with the distance, then with the position: the bits of negative numbers are turned round.
static __device__ word key(float d, count i)
{
    unsigned bits = __float_as_uint(d);
    return (word)(bits >> 31 ? ~bits : bits | 0x80000000u) << 32 | (word)i;
}

// How many of every `stride`-th code are in each bin of each query: bins (queries, BINS).
extern "C" __global__ void histogram(
    const word *base, count n, count n_words, const float *tables, count n_bytes, const float *least,
    const float *scale, count stride, count parts, unsigned *bins)
{
    __shared__ unsigned own[BINS];
    count q = blockIdx.x / parts, part = blockIdx.x % parts, step = stride * THREADS;
    for (int b = threadIdx.x; b < BINS; b += THREADS)
        own[b] = 0;
    float d[CODES_PER_THREAD];
    for (count start = part * CODES_PER_THREAD * step; start < n; start += parts * CODES_PER_THREAD * step) {
        count first = start + threadIdx.x * stride;
        measure(base, n, n_words, tables + q * n_bytes * VALUES_PER_BYTE, n_bytes, first, step, d);
        for (int h = 0; h < CODES_PER_THREAD && first + h * step < n; h++)
            atomicAdd(&own[bin(d[h], least[q], scale[q])], 1u);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += THREADS)
        if (own[b])
            atomicAdd(&bins[q * BINS + b], own[b]);
}

// Append the key of every code whose bin is at most radius[q] to query q's keys (queries, room);
// `counts` counts those that there was no room for, too.
extern "C" __global__ void gather(
    const word *base, count n, count n_words, const float *tables, count n_bytes, const float *least,
    const float *scale, const int *radius, word *keys, unsigned *counts, count room, count parts)
{
    count q = blockIdx.x / parts, first = blockIdx.x % parts * CODES_PER_THREAD * THREADS + threadIdx.x;
    float d[CODES_PER_THREAD];
    measure(base, n, n_words, tables + q * n_bytes * VALUES_PER_BYTE, n_bytes, first, THREADS, d);
    for (int h = 0; h < CODES_PER_THREAD && first + h * THREADS < n; h++)
        if (bin(d[h], least[q], scale[q]) <= radius[q]) {
            unsigned at = atomicAdd(&counts[q], 1u);
            if (at < room)
                keys[q * room + at] = key(d[h], first + h * THREADS);
        }
}

// The keys of all codes of one query, (n,), where too many are within the radius.
extern "C" __global__ void all_keys(
    const word *base, count n, count n_words, const float *tables, count n_bytes, const float *least,
    const float *scale, word *keys)
{
    count first = (count)blockIdx.x * CODES_PER_THREAD * THREADS + threadIdx.x;
    float d[CODES_PER_THREAD];
    measure(base, n, n_words, tables, n_bytes, first, THREADS, d);
    for (int h = 0; h < CODES_PER_THREAD && first + h * THREADS < n; h++)
        keys[first + h * THREADS] = key(d[h], first + h * THREADS);
}
