// As much of CUDA as the kernels of auxhash use, on the processor: the blocks one after the other,
// and the threads of a block in turn, each until the next __syncthreads().

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

struct Place {
    unsigned x;
};
static Place threadIdx, blockIdx, blockDim, gridDim;

using std::isinf;

#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __restrict__

// A thread is entered as a context; from then on jumps, which need no call of the system, switch.
static ucontext_t main_context;
static std::vector<ucontext_t> contexts;
static jmp_buf outside;
struct Jump {
    jmp_buf to;
};
static std::vector<Jump> inside;
static std::vector<char> begun;
static std::vector<char> finished;
static std::vector<std::vector<char>> stacks;

static void __syncthreads()
{
    if (!_setjmp(inside[threadIdx.x].to))
        _longjmp(outside, 1);
}
static void __syncwarp() { __syncthreads(); }
static void __threadfence() {}

static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static unsigned __float_as_uint(float x)
{
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
static int __ffs(int x) { return __builtin_ffs(x); }

template <class T> T atomicAdd(T *at, T more) { T old = *at; *at += more; return old; }
template <class T> T atomicMin(T *at, T other) { T old = *at; *at = std::min(old, other); return old; }
template <class T> T atomicMax(T *at, T other) { T old = *at; *at = std::max(old, other); return old; }
template <class T> T atomicOr(T *at, T other) { T old = *at; *at |= other; return old; }
template <class T> T min(T a, T b) { return std::min(a, b); }
template <class T> T max(T a, T b) { return std::max(a, b); }

static void (*body)(void *);
static void *given;

static void entered()
{
    body(given);
    finished[threadIdx.x] = 1;
    _longjmp(outside, 1);
}

static void resume(unsigned t)
{
    if (_setjmp(outside))
        return;
    if (begun[t])
        _longjmp(inside[t].to, 1);
    begun[t] = 1;
    swapcontext(&main_context, &contexts[t]);
}

static void run(unsigned n_blocks, unsigned n_threads)
{
    gridDim.x = n_blocks, blockDim.x = n_threads;
    inside.resize(n_threads), contexts.resize(n_threads), begun.resize(n_threads);
    finished.resize(n_threads), stacks.resize(n_threads);
    for (auto &stack : stacks)
        stack.resize(1 << 16);
    for (unsigned block = 0; block < n_blocks; block++) {
        for (unsigned t = 0; t < n_threads; t++) {
            finished[t] = begun[t] = 0;
            getcontext(&contexts[t]);
            contexts[t].uc_stack.ss_sp = stacks[t].data();
            contexts[t].uc_stack.ss_size = stacks[t].size();
            contexts[t].uc_link = nullptr;
            makecontext(&contexts[t], entered, 0);
        }
        for (unsigned left = n_threads; left;) {
            left = 0;
            for (unsigned t = 0; t < n_threads; t++) {
                if (finished[t])
                    continue;
                blockIdx.x = block, threadIdx.x = t;
                resume(t);
                left += !finished[t];
            }
        }
    }
}

// Run a kernel with arguments that are given by their addresses.
template <class... A, std::size_t... I>
void launch(void (*kernel)(A...), unsigned n_blocks, unsigned n_threads, void **args,
            std::index_sequence<I...>)
{
    auto call = [&] { kernel(*(A *)args[I]...); };
    body = [](void *it) { (*(decltype(call) *)it)(); };
    given = &call;
    run(n_blocks, n_threads);
}

template <class... A>
void launch(void (*kernel)(A...), unsigned n_blocks, unsigned n_threads, void **args)
{
    launch(kernel, n_blocks, n_threads, args, std::index_sequence_for<A...>());
}
