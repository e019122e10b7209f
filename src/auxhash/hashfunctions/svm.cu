// The loops of svm.py over bits, one block of threads per bit. Matrices are (rows, b), row by row.

#include "../compute/sums.cuh"

typedef long long count;

// Go along the directions p (D, b) to the least of the quadratic: step and residual r follow.
// `total` is F'DF p, so that p + factor total is the Hessian times p.
extern "C" __global__ void go_along(
    const double *p, const double *total, double *step, double *r, const double *size,
    double factor, double nothing, count D, count b)
{
    __shared__ double scratch[THREADS];
    count k = blockIdx.x;
    double curve = 0;
    for (count i = k + threadIdx.x * b; i < D * b; i += THREADS * b)
        curve += p[i] * (p[i] + factor * total[i]);
    curve = block_sum(curve, scratch);
    double along = size[k] > nothing ? size[k] / curve : 0;
    for (count i = k + threadIdx.x * b; i < D * b; i += THREADS * b) {
        step[i] += along * p[i];
        r[i] -= along * (p[i] + factor * total[i]);
    }
}

// Turn the directions p to the next ones, from the residual r and q, the preconditioned one; tell
// which bits are solved.
extern "C" __global__ void turn(
    double *p, const double *q, const double *r, double *size, const double *first, bool *solved,
    double forcing, count D, count b)
{
    __shared__ double scratch[THREADS];
    count k = blockIdx.x;
    double now = 0, before = size[k];
    for (count i = k + threadIdx.x * b; i < D * b; i += THREADS * b)
        now += r[i] * q[i];
    now = block_sum(now, scratch);
    double ratio = before > 0 ? now / before : 0;
    for (count i = k + threadIdx.x * b; i < D * b; i += THREADS * b)
        p[i] = q[i] + p[i] * ratio;
    if (!threadIdx.x) {
        size[k] = now;
        solved[k] = now <= forcing * first[k];
    }
}

// Sums over a block's share of the points, at the given lengths (b,) of a step: how the slope along
// the step falls, and how fast, of each bit, into its row of `partial` (blocks, 2, b). See `_length`.
// `s` holds a weight per point and bit, or one.
extern "C" __global__ void slopes(
    const double *M, const double *change, const double *s, count n_weights, const double *length,
    count n, count b, count per_block, double *partial)
{
    __shared__ double scratch[2 * THREADS];
    count begin = blockIdx.x * per_block, end = begin + per_block < n ? begin + per_block : n;
    for (count from = 0; from < b; from += THREADS) {  // neighbouring threads have neighbouring bits
        count width = b - from < THREADS ? b - from : THREADS, abreast = THREADS / width;
        count lane = threadIdx.x / width, k = from + threadIdx.x % width;
        double first = 0, second = 0;
        for (count row = begin + lane; lane < abreast && row < end; row += abreast) {
            count i = row * b + k;
            double slack = 1 - M[i] - length[k] * change[i];
            if (slack > 0) {
                double pull = change[i] * s[n_weights == 1 ? 0 : i];
                first += slack * pull;
                second += pull * change[i];
            }
        }
        scratch[threadIdx.x] = first;
        scratch[THREADS + threadIdx.x] = second;
        __syncthreads();
        if (!lane) {
            for (count other = 1; other < abreast; other++) {
                first += scratch[threadIdx.x + other * width];
                second += scratch[THREADS + threadIdx.x + other * width];
            }
            partial[2 * blockIdx.x * b + k] = first;
            partial[(2 * blockIdx.x + 1) * b + k] = second;
        }
        __syncthreads();
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
