// draws.py on a GPU: the same draws, to the last point, one thread per point.
//
// Points are drawn twice: to count the edges of each point, and to write them down. To keep the
// draws in between would take as much memory as the edges themselves.

typedef unsigned long long word;
typedef long long count;

static __device__ word random_bits(word seed, word counter)
{
    word x = seed + (counter + 1) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

static __device__ count random_below(word seed, word counter, count m)
{
    return (count)((random_bits(seed, counter) >> 32) * (word)m >> 32);
}

// A set of numbers below 2^32: `slots` entries, a power of two; those of older marks are empty.
struct Set {
    word *entries;
    count slots;
    word mark;
};

// Add a number; returns whether it was new.
static __device__ bool add(Set set, count number)
{
    word entry = set.mark << 32 | (word)number;
    count at = (count)(((word)number * 0x9E3779B97F4A7C15ULL) >> 32) & (set.slots - 1);
    while (set.entries[at] >> 32 == set.mark) {
        if (set.entries[at] == entry)
            return false;
        at = (at + 1) & (set.slots - 1);
    }
    set.entries[at] = entry;
    return true;
}

// Where the edges of a point go: counted only, or written from `cursor` on, in both directions.
struct Out {
    count *count_of;  // edges of each point
    const count *indptr;
    unsigned *cursor;  // edges of each point that are written already; null to count only
    unsigned *indices;
    unsigned char *row;
};

static __device__ void put(Out out, count from, count to, unsigned char row)
{
    if (!out.cursor) {
        atomicAdd((word *)&out.count_of[from], 1ULL);
        atomicAdd((word *)&out.count_of[to], 1ULL);
        return;
    }
    count ends[2] = {from, to};
    for (int way = 0; way < 2; way++) {
        count at = out.indptr[ends[way]] + atomicAdd(&out.cursor[ends[way]], 1u);
        out.indices[at] = (unsigned)ends[1 - way];
        out.row[at] = row;
    }
}

// Similar points from the same class (row 1), dissimilar ones from the others (row 0).
// `order` lists the points class by class; class c ends at ends[c].
extern "C" __global__ void by_class(
    count n, count n_similar, count n_dissimilar, const unsigned *order, const count *groups,
    const count *ends, word seed, word *sets, count slots,
    count *count_of, const count *indptr, unsigned *cursor, unsigned *indices, unsigned char *row)
{
    count thread = (count)blockIdx.x * blockDim.x + threadIdx.x;
    count n_threads = (count)gridDim.x * blockDim.x;
    Out out = {count_of, indptr, cursor, indices, row};
    word mark = 1;
    for (count point = thread; point < n; point += n_threads) {
        count group = groups[point], end = ends[group], begin = group ? ends[group - 1] : 0;
        for (int similar = 1; similar >= 0; similar--, mark++) {
            Set set = {sets + thread * slots, slots, mark};
            count m = similar ? end - begin - 1 : n - (end - begin);
            count k = similar ? n_similar : n_dissimilar;
            k = k < m ? k : m;
            word start = (word)(2 * point + !similar) << 32;
            for (count t = 0; t < k; t++) {
                count top = m - k + t, pick = random_below(seed, start + (word)t, top + 1);
                if (!add(set, pick)) {
                    pick = top;
                    add(set, pick);
                }
                count other;
                if (similar) {
                    other = order[begin + pick];
                    if (other == point)
                        other = order[end - 1];
                } else {
                    other = order[pick < begin ? pick : pick + end - begin];
                }
                put(out, point, other, (unsigned char)similar);
            }
        }
    }
}
