// The sums of margins.py over points, whose blocks of threads each take some rows of the points and
// write the sums of these into their own row of `partial`. Matrices are (rows, b), row by row;
// neighbouring threads have neighbouring bits. `s` holds a weight per point and bit, or one.

#include "../../compute/sums.cuh"

typedef long long count;

#define POINTS count n, count b, count per_block, double *partial
#define OWN_ROWS                                                                                   \
    count begin = blockIdx.x * per_block, end = begin + per_block < n ? begin + per_block : n;

// A thread's share: bit k of every `abreast`-th row, from its lane on; bits from `from` on.
struct Share {
    count width, abreast, lane, k;
};

static __device__ Share share_of(count from, count b)
{
    count width = b - from < THREADS ? b - from : THREADS;
    return {width, THREADS / width, threadIdx.x / width, from + threadIdx.x % width};
}

// The sum over the lanes of a bit, in the thread of its first lane.
static __device__ double lanes_sum(double own, Share share, double *scratch)
{
    scratch[threadIdx.x] = own;
    __syncthreads();
    if (!share.lane)
        for (count other = 1; other < share.abreast; other++)
            own += scratch[threadIdx.x + other * share.width];
    __syncthreads();
    return own;
}

// `inside` is the weight of points inside the margin, `pull` (n, b) their weighted slack times Z;
// partial (blocks, 1, b) their weighted slack squared.
extern "C" __global__ void sums(
    const double *M, const double *Z, const double *s, count n_weights, double *inside,
    double *pull, POINTS)
{
    __shared__ double scratch[THREADS];
    OWN_ROWS
    for (count from = 0; from < b; from += THREADS) {
        Share share = share_of(from, b);
        double total = 0;
        for (count row = begin + share.lane; share.lane < share.abreast && row < end;
             row += share.abreast) {
            count i = row * b + share.k;
            double slack = 1 - M[i], weight = slack > 0 ? s[n_weights == 1 ? 0 : i] : 0;
            inside[i] = weight;
            pull[i] = weight ? Z[i] * (slack * weight) : 0;
            total += weight ? slack * weight * slack : 0;
        }
        total = lanes_sum(total, share, scratch);
        if (!share.lane)
            partial[blockIdx.x * b + share.k] = total;
    }
}

// At the given lengths (b,) of a step: how the slope along it falls, and how fast; partial is
// (blocks, 2, b). See `length`.
extern "C" __global__ void slopes(
    const double *M, const double *change, const double *s, count n_weights, const double *length,
    POINTS)
{
    __shared__ double scratch[THREADS];
    OWN_ROWS
    for (count from = 0; from < b; from += THREADS) {
        Share share = share_of(from, b);
        double first = 0, second = 0;
        for (count row = begin + share.lane; share.lane < share.abreast && row < end;
             row += share.abreast) {
            count i = row * b + share.k;
            double slack = 1 - M[i] - length[share.k] * change[i];
            if (slack > 0) {
                double pull = change[i] * s[n_weights == 1 ? 0 : i];
                first += slack * pull;
                second += pull * change[i];
            }
        }
        first = lanes_sum(first, share, scratch);
        second = lanes_sum(second, share, scratch);
        if (!share.lane) {
            partial[2 * blockIdx.x * b + share.k] = first;
            partial[(2 * blockIdx.x + 1) * b + share.k] = second;
        }
    }
}

// The lengths that are tried next, from the sums of `slopes` at those that were tried last.
extern "C" __global__ void next_lengths(
    const double *partial, count n_blocks, const double *slope, const double *curve,
    const double *enough, double factor, bool bracket, count b, double *low, double *high,
    double *length, bool *far)
{
    __shared__ double scratch[THREADS];
    count k = blockIdx.x;
    double first = 0, second = 0;
    for (count i = threadIdx.x; i < n_blocks; i += THREADS) {
        first += partial[2 * i * b + k];
        second += partial[(2 * i + 1) * b + k];
    }
    first = factor * block_sum(first, scratch);
    second = factor * block_sum(second, scratch);
    if (threadIdx.x)
        return;
    double value = slope[k] + length[k] * curve[k] - first;
    if (value < 0 && length[k] > low[k])
        low[k] = length[k];
    if (value > 0 && length[k] < high[k])
        high[k] = length[k];
    double newton = length[k] - value / (curve[k] + second);
    far[k] = fabs(value) > enough[k];
    if (bracket && far[k] && !(newton > low[k] && newton < high[k]))
        newton = isinf(high[k]) ? 2 * low[k] : (low[k] + high[k]) / 2;
    length[k] = newton;
}
