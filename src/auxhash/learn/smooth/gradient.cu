// The loops of gradient.py, one thread per entry.

typedef long long count;

extern "C" __global__ void adam(
    float *parameter, const float *gradient, float *mean, float *square,
    float length, float unbiased, float first, float second, count n)
{
    count i = (count)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float g = gradient[i], m = mean[i] + first * (g - mean[i]);
    float v = square[i] + second * (g * g - square[i]), root = sqrtf(unbiased * v);
    mean[i] = m;
    square[i] = v;
    parameter[i] -= length * m / (root > 0 ? root : 1.0f);
}

extern "C" __global__ void through_tanh(float *pull, const float *U, float factor, count n)
{
    count i = (count)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        pull[i] *= factor * (1.0f - U[i] * U[i]);
}
