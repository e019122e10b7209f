// The sum of one number per thread, in the same order each time; a power of two of threads.
static __device__ double block_sum(double own, double *scratch)
{
    scratch[threadIdx.x] = own;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half)
            scratch[threadIdx.x] += scratch[threadIdx.x + half];
        __syncthreads();
    }
    double total = scratch[0];
    __syncthreads();
    return total;
}
