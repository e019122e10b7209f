// Codes as 64-bit words, and their Hamming distance.

typedef unsigned long long word;
typedef long long count;

static __device__ int distance(const word *a, const word *b, int n_words)
{
    int d = 0;
    for (int w = 0; w < n_words; w++)
        d += __popcll(a[w] ^ b[w]);
    return d;
}
