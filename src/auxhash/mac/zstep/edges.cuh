// Pairs as neighbour lists, as `Edges` in problem.py, and what all loops over them share.
//
// Every sum over the edges of a point is one of doubles that were rounded to a common grid (see
// `on_grid` in gpu.py), so that it is exact, and the same whatever the order.

typedef unsigned long long word;
typedef long long count;

struct Edges {
    const count *indptr;
    const unsigned *indices;
    const unsigned char *row;
    const unsigned *pair;
    const double *coef;
    count n_coef;
};

// A function of the distance for each row of a table, and for each function of a basis.
struct Table {
    const double *table, *basis;
    count columns;
};

// The value of edge e at distance d, or in column d.
static __device__ double looked_up(Edges g, Table t, count e, count d)
{
    double value = t.table[g.row[e] * t.columns + d];
    for (count r = 0; r < g.n_coef; r++)
        value += g.coef[g.pair[e] * g.n_coef + r] * t.basis[r * t.columns + d];
    return value;
}

static __device__ count distance(const word *a, const volatile word *b, count n_words)
{
    count d = 0;
    for (count w = 0; w < n_words; w++)
        d += __popcll(a[w] ^ b[w]);
    return d;
}

#define EDGES                                                                                      \
    const count *indptr, const unsigned *indices, const unsigned char *row, const unsigned *pair,  \
        const double *coef, count n_coef, const double *table, const double *basis, count columns
#define GIVEN_EDGES                                                                                \
    Edges g = {indptr, indices, row, pair, coef, n_coef};                                          \
    Table t = {table, basis, columns};
