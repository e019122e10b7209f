// The loops of svm.py over bits, one block of threads per bit. Matrices are (rows, b), row by row.

#include "../../compute/sums.cuh"

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
