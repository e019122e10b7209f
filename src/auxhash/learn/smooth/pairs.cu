// The loops of pairs.py.

typedef long long count;

// The slope of the loss at s = b - 2 d, between the entries of a table over d = 0..b.
static __device__ float between(const float *slope, count b, float s)
{
    float d = 0.5f * ((float)b - s);
    d = fmaxf(0.0f, fminf((float)b, d));
    int at = (int)d < (int)b - 1 ? (int)d : (int)b - 1;
    return slope[at] + (d - (float)at) * (slope[at + 1] - slope[at]);
}

// Turn S (n, n), inner products of a batch, into the factors of the u_j, one thread per entry.
extern "C" __global__ void class_pulls(
    float *S, const int *classes, const float *weight, const float *slope,
    count n, count n_classes, count columns)
{
    count at = (count)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= n * n)
        return;
    int own = classes[at / n], other = classes[at % n];
    float factor = between(slope + (own == other) * columns, columns - 1, S[at]);
    S[at] = at / n == at % n ? 0.0f : weight[own * n_classes + other] * factor;
}

// The sums over the partners of these points, (rows, b): one block per point, whose threads take
// 32 partners at a time.
extern "C" __global__ void given_pulls(
    const count *rows, const count *indptr, const unsigned *indices, const unsigned char *row,
    const unsigned *pair, const double *coef, count n_coef, const float *slope, const float *basis,
    const float *U, count b, float *out)
{
    __shared__ float factor[32];
    count n = rows[blockIdx.x], columns = b + 1;
    float *pull = out + blockIdx.x * b;
    for (count k = threadIdx.x; k < b; k += blockDim.x)
        pull[k] = 0;
    for (count first = indptr[n]; first < indptr[n + 1]; first += 32) {
        count here = indptr[n + 1] - first < 32 ? indptr[n + 1] - first : 32;
        if (threadIdx.x < here) {
            count e = first + threadIdx.x, m = indices[e];
            float s = 0;
            for (count k = 0; k < b; k++)
                s += U[n * b + k] * U[m * b + k];
            float found = between(slope + row[e] * columns, b, s);
            for (count r = 0; r < n_coef; r++)
                found += (float)coef[pair[e] * n_coef + r] * between(basis + r * columns, b, s);
            factor[threadIdx.x] = found;
        }
        __syncthreads();
        for (count k = threadIdx.x; k < b; k += blockDim.x)
            for (count i = 0; i < here; i++)
                pull[k] += factor[i] * U[(count)indices[first + i] * b + k];
        __syncthreads();
    }
}
