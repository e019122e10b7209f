// The loops of slopes.py.

#include "../../compute/sums.cuh"

typedef long long count;

// Turn S (rows, n), inner products, into the slopes of weight log(R + least), and return their sums:
// one block per row. What does not count as nearer is -infinity in S.
extern "C" __global__ void soft_rank(
    float *S, const float *level, float *total, count n, float steepness, float least, float weight)
{
    __shared__ double scratch[THREADS];
    float *row = S + (count)blockIdx.x * n, own = level[blockIdx.x];
    double nearer = 0, sum = 0;
    for (count m = threadIdx.x; m < n; m += blockDim.x)
        nearer += 1.0f / (1.0f + expf(steepness * (own - row[m])));
    nearer = block_sum(nearer, scratch);
    float factor = steepness * weight / ((float)nearer + (float)n * least);
    for (count m = threadIdx.x; m < n; m += blockDim.x) {
        float share = 1.0f / (1.0f + expf(steepness * (own - row[m])));
        float slope = factor * (share - share * share);
        row[m] = slope;
        sum += slope;
    }
    sum = block_sum(sum, scratch);
    if (!threadIdx.x)
        total[blockIdx.x] = (float)sum;
}
