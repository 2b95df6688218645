/* SPDX-License-Identifier: Apache-2.0 */
#include "server/time_table.h"

#include <math.h>

#include "common/assert.h"

enum {
    EDGE = 16, /* classes of one number, at either end */
    MIDDLE = ELV_TIME_BINS_MAX - 2 * EDGE,
    WAITING_MAX = 20 /* regions, of which each is at most half of what was left before it */
};

/* Of a cell that nothing is known about, so that whatever was seen decides. */
static const double empty_weight = 1e-6;

/* Less than this is not worth remembering. A time seen once is gone after two memories, so that
 * what has not been tried for long looks no dearer than what has, and is tried again. */
static const double least_weight = 0.135;

/* Of a sum of distances, what rounding may leave of nothing. */
static const double rounding = 1e-12;

static uint32_t bins_of(uint32_t n) { return n < ELV_TIME_BINS_MAX ? n : ELV_TIME_BINS_MAX; }

static uint32_t bin_of(uint32_t n, uint32_t k)
{
    if (n <= ELV_TIME_BINS_MAX || k <= EDGE)
        return k - 1;
    if (k > n - EDGE)
        return ELV_TIME_BINS_MAX - 1 - (n - k);
    return EDGE + (uint32_t)((uint64_t)(k - EDGE - 1) * MIDDLE / (n - 2 * EDGE));
}

/* The middle of the numbers that share class b. */
static double middle_of(uint32_t n, uint32_t b)
{
    if (n <= ELV_TIME_BINS_MAX || b < EDGE)
        return b + 1.0;
    if (b >= ELV_TIME_BINS_MAX - EDGE)
        return (double)n - (ELV_TIME_BINS_MAX - 1 - b);
    const uint64_t width = n - 2 * EDGE, j = b - EDGE;
    const uint64_t first = EDGE + 1 + (j * width + MIDDLE - 1) / MIDDLE;
    const uint64_t after = EDGE + 1 + ((j + 1) * width + MIDDLE - 1) / MIDDLE;
    return (double)(first + after - 1) / 2.0;
}

static struct elv_time_cell *cell(struct elv_time_table *t, uint32_t row, uint32_t col)
{
    return (struct elv_time_cell *)(t + 1) + (size_t)row * t->cap + col;
}

static const struct elv_time_cell *seen(const struct elv_time_table *t, uint32_t row, uint32_t col)
{
    return (const struct elv_time_cell *)(t + 1) + (size_t)row * t->cap + col;
}

size_t elv_time_table_len(uint32_t clients, bool by_k)
{
    _Static_assert(sizeof(struct elv_time_table) % _Alignof(struct elv_time_cell) == 0,
                   "the cells follow the header");
    const size_t cols = bins_of(clients);
    return sizeof(struct elv_time_table) + (by_k ? 1 : cols) * cols * sizeof(struct elv_time_cell);
}

void elv_time_table_init(struct elv_time_table *t, uint32_t clients, bool by_k)
{
    *t = (struct elv_time_table){.cap = bins_of(clients), .by_k = by_k};
    elv_time_table_resize(t, clients);
}

/* The mean of both, as if all their samples had come to one. */
static void merge(struct elv_time_cell *to, const struct elv_time_cell *from)
{
    const double weight = to->weight + from->weight;
    if (from->weight > 0.0)
        to->mean += (from->mean - to->mean) * (from->weight / weight);
    to->weight = weight;
}

/* Of `m` classes, the one in the place of class b of `before`. Each keeps its middle, so that going
 * up and down again changes nothing. */
static uint32_t moved(uint32_t b, uint32_t before, uint32_t m)
{
    return (2 * b + 1) * m / (2 * before);
}

static void move(struct elv_time_table *t, uint32_t row, uint32_t col, uint32_t rows, uint32_t cols)
{
    struct elv_time_cell *from = cell(t, row, col);
    struct elv_time_cell *to = cell(t, moved(row, t->rows, rows), moved(col, t->cols, cols));
    if (to == from)
        return;
    merge(to, from);
    *from = (struct elv_time_cell){0};
}

/* In place: towards the end from the end, towards the start from the start, so that no cell is
 * moved twice. */
static void spread(struct elv_time_table *t, uint32_t rows, uint32_t cols)
{
    const bool grows = cols > t->cols;
    const uint32_t n = t->rows * t->cols;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = grows ? n - 1 - i : i;
        move(t, at / t->cols, at % t->cols, rows, cols);
    }
}

void elv_time_table_resize(struct elv_time_table *t, uint32_t n)
{
    const uint32_t cols = bins_of(n), rows = t->by_k ? 1 : cols;
    ELV_ASSERT(n >= 1 && cols <= t->cap);
    if (t->cols != 0 && cols != t->cols)
        spread(t, rows, cols);
    t->n = n;
    t->rows = rows;
    t->cols = cols;
}

static uint32_t row_of(const struct elv_time_table *t, uint32_t h)
{
    return t->by_k ? 0 : bin_of(t->n, h);
}

static void lose(struct elv_time_cell *x, double keep)
{
    x->weight *= keep;
    if (x->weight < least_weight)
        x->weight = 0.0;
}

void elv_time_table_forget(struct elv_time_table *t, double keep)
{
    for (uint32_t r = 0; r < t->rows; r++)
        for (uint32_t c = 0; c < t->cols; c++)
            lose(cell(t, r, c), keep);
}

void elv_time_table_add(struct elv_time_table *t, uint32_t h, uint32_t k, double time)
{
    ELV_ASSERT(h >= 1 && h <= t->n && k >= 1 && k <= t->n);
    const struct elv_time_cell sample = {.mean = time, .weight = 1.0};
    merge(cell(t, row_of(t, h), bin_of(t->n, k)), &sample);
}

bool elv_time_table_is_empty(const struct elv_time_table *t)
{
    for (uint32_t r = 0; r < t->rows; r++)
        for (uint32_t c = 0; c < t->cols; c++)
            if (seen(t, r, c)->weight > 0.0)
                return false;
    return true;
}

/* The mean of all samples, for the cells that have none. */
static double mean_of_all(const struct elv_time_table *t)
{
    double sum = 0.0, weight = 0.0;
    for (uint32_t r = 0; r < t->rows; r++)
        for (uint32_t c = 0; c < t->cols; c++) {
            const struct elv_time_cell *x = seen(t, r, c);
            sum += x->weight * x->mean;
            weight += x->weight;
        }
    return weight > 0.0 ? sum / weight : 0.0;
}

static double weight_of(const struct elv_time_cell *x)
{
    return x->weight > 0.0 ? x->weight : empty_weight;
}

static double value_of(const struct elv_time_table *t, const struct elv_time_cell *x)
{
    return x->weight > 0.0 ? x->mean : t->mean;
}

/* Cells between two staircases, in row r those from `from[r]` to before `to[r]`. Both never fall
 * with r: what takes longer than a cell lies to its right and above it. */
struct region {
    double least, most; /* between which the estimates of its cells are */
    uint32_t first, last;
    uint16_t from[ELV_TIME_BINS_MAX], to[ELV_TIME_BINS_MAX];
};

static double mean_of(const struct elv_time_table *t, const struct region *g)
{
    double sum = 0.0, weight = 0.0;
    for (uint32_t r = g->first; r <= g->last; r++)
        for (uint32_t c = g->from[r]; c < g->to[r]; c++) {
            const struct elv_time_cell *x = seen(t, r, c);
            sum += weight_of(x) * value_of(t, x);
            weight += weight_of(x);
        }
    const double mean = sum / weight;
    return mean < g->least ? g->least : mean > g->most ? g->most : mean;
}

/* Where to cut each row, the cells from the cut on being the upper part. For the rows down to one
 * and cuts of that row at or before u: what the best of them is worth, and which it is. */
struct cuts {
    double worth[ELV_TIME_BINS_MAX + 1];
    uint16_t best[ELV_TIME_BINS_MAX][ELV_TIME_BINS_MAX + 1];
    double spread; /* sum of all distances from the mean: the scale of rounding errors */
};

/* An upper part is worth the sum of its distances above the mean. No row is cut before the one
 * above it. */
static void cut_row(const struct elv_time_table *t, const struct region *g, uint32_t r, double mean,
                    struct cuts *cuts)
{
    double above[ELV_TIME_BINS_MAX + 1];
    const uint32_t from = g->from[r], to = g->to[r], end = r > g->first ? g->to[r - 1] : from;
    const double before = r > g->first ? cuts->worth[end] : 0.0;
    above[to] = 0.0;
    for (uint32_t c = to; c-- > from;) {
        const struct elv_time_cell *x = seen(t, r, c);
        const double far = weight_of(x) * (value_of(t, x) - mean);
        above[c] = above[c + 1] + far;
        cuts->spread += far > 0.0 ? far : -far;
    }
    for (uint32_t u = from; u <= to; u++) {
        const double worth = above[u] + (u < end ? cuts->worth[u] : before);
        const bool better = u == from || worth > cuts->worth[u - 1];
        cuts->worth[u] = better ? worth : cuts->worth[u - 1];
        cuts->best[r][u] = better ? (uint16_t)u : cuts->best[r][u - 1];
    }
}

/* Splits a region where the upper part is worth most. False when no part is worth anything: then
 * the mean is the estimate of all its cells. */
static bool split(const struct elv_time_table *t, const struct region *g, double mean,
                  struct region *upper, struct region *lower)
{
    struct cuts cuts = {.spread = 0.0};
    for (uint32_t r = g->first; r <= g->last; r++)
        cut_row(t, g, r, mean, &cuts);
    uint32_t u = g->to[g->last], n_upper = 0, n_lower = 0;
    if (!(cuts.worth[u] > rounding * cuts.spread))
        return false;
    *upper = *lower = *g;
    upper->least = lower->most = mean;
    for (uint32_t r = g->last + 1; r-- > g->first;) {
        u = cuts.best[r][u < g->to[r] ? u : g->to[r]];
        upper->from[r] = lower->to[r] = (uint16_t)u;
        n_upper += g->to[r] - u;
        n_lower += u - g->from[r];
    }
    return n_upper > 0 && n_lower > 0;
}

/* Drops empty rows at the ends. The number of cells. */
static uint32_t trim(struct region *g)
{
    uint32_t n = 0;
    while (g->first < g->last && g->from[g->first] == g->to[g->first])
        g->first++;
    while (g->last > g->first && g->from[g->last] == g->to[g->last])
        g->last--;
    for (uint32_t r = g->first; r <= g->last; r++)
        n += (uint32_t)(g->to[r] - g->from[r]);
    return n;
}

static void settle(struct elv_time_table *t, const struct region *g, double mean)
{
    for (uint32_t r = g->first; r <= g->last; r++)
        for (uint32_t c = g->from[r]; c < g->to[r]; c++)
            cell(t, r, c)->fit = mean;
}

/* The smaller part goes on, the larger one waits, so that few wait at a time. */
void elv_time_table_fit(struct elv_time_table *t)
{
    struct region waiting[WAITING_MAX], upper, lower, g = {.most = INFINITY, .last = t->rows - 1};
    uint32_t n_waiting = 0;
    t->mean = mean_of_all(t);
    for (uint32_t r = 0; r < t->rows; r++)
        g.to[r] = (uint16_t)t->cols;
    for (;;) {
        const double mean = mean_of(t, &g);
        if (split(t, &g, mean, &upper, &lower)) {
            const bool up = trim(&upper) < trim(&lower);
            ELV_ASSERT(n_waiting < WAITING_MAX);
            waiting[n_waiting++] = up ? lower : upper;
            g = up ? upper : lower;
            continue;
        }
        settle(t, &g, mean);
        if (n_waiting == 0)
            return;
        g = waiting[--n_waiting];
    }
}

double elv_time_table_at(const struct elv_time_table *t, uint32_t h, uint32_t k)
{
    const uint32_t row = row_of(t, h), b = bin_of(t->n, k);
    const double middle = middle_of(t->n, b), here = seen(t, row, b)->fit;
    if (k < middle) {
        const double before = middle_of(t->n, b - 1);
        return here - (here - seen(t, row, b - 1)->fit) * ((middle - k) / (middle - before));
    }
    if (k > middle) {
        const double after = middle_of(t->n, b + 1);
        return here + (seen(t, row, b + 1)->fit - here) * ((k - middle) / (after - middle));
    }
    return here;
}
