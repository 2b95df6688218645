/* SPDX-License-Identifier: Apache-2.0 */
#include "server/time_table.h"

#include "common/assert.h"

enum { EDGE = 16, MIDDLE = ELV_TIME_BINS_MAX - 2 * EDGE };

/* Of a cell that nothing is known about, so that whatever was seen decides. */
static const double empty_weight = 1e-3;

/* The part of the table's own size by which a cell may still move when a fit ends. */
static const double tolerance = 1e-5;

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
    for (uint32_t i = 0; i < rows * cols; i++)
        cell(t, i / cols, i % cols)->pull = 0.0;
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

void elv_time_table_forget(struct elv_time_table *t, double keep)
{
    for (uint32_t r = 0; r < t->rows; r++)
        for (uint32_t c = 0; c < t->cols; c++)
            cell(t, r, c)->weight *= keep;
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

/* One row or column while it is projected: values to be made ascending. */
struct line {
    double value[ELV_TIME_BINS_MAX], weight[ELV_TIME_BINS_MAX];
    uint32_t len[ELV_TIME_BINS_MAX]; /* of the blocks */
    uint32_t n_blocks;
};

/* Pool adjacent violators: a value below the block before it joins that block. */
static void line_add(struct line *l, double value, double weight)
{
    uint32_t len = 1;
    while (l->n_blocks > 0 && l->value[l->n_blocks - 1] >= value) {
        const uint32_t last = --l->n_blocks;
        const double sum = weight + l->weight[last];
        value += (l->value[last] - value) * (l->weight[last] / sum);
        weight = sum;
        len += l->len[last];
    }
    l->value[l->n_blocks] = value;
    l->weight[l->n_blocks] = weight;
    l->len[l->n_blocks++] = len;
}

static double weight_of(const struct elv_time_cell *c)
{
    return c->weight > empty_weight ? c->weight : empty_weight;
}

static double value_of(const struct elv_time_cell *c, double otherwise)
{
    return c->weight > 0.0 ? c->mean : otherwise;
}

/* Dykstra's step for the rows: from the data less what the columns took off. */
static void project_row(struct elv_time_table *t, uint32_t row, double otherwise)
{
    struct line l = {.n_blocks = 0};
    for (uint32_t c = 0; c < t->cols; c++) {
        const struct elv_time_cell *x = seen(t, row, c);
        line_add(&l, value_of(x, otherwise) - x->pull, weight_of(x));
    }
    for (uint32_t b = 0, c = 0; b < l.n_blocks; b++)
        for (uint32_t i = 0; i < l.len[b]; i++)
            cell(t, row, c++)->fit = l.value[b];
}

/* And for the columns, from the last row up: from the data less what the rows took off, which is
 * what the rows left plus what the columns took off before. The largest move of a cell. */
static double project_col(struct elv_time_table *t, uint32_t col)
{
    struct line l = {.n_blocks = 0};
    double most = 0.0;
    for (uint32_t r = t->rows; r-- > 0;) {
        const struct elv_time_cell *x = seen(t, r, col);
        line_add(&l, x->fit + x->pull, weight_of(x));
    }
    for (uint32_t b = 0, r = t->rows; b < l.n_blocks; b++)
        for (uint32_t i = 0; i < l.len[b]; i++) {
            struct elv_time_cell *x = cell(t, --r, col);
            const double gap = x->fit - l.value[b];
            x->pull += gap;
            x->fit = l.value[b];
            most = gap > most ? gap : -gap > most ? -gap : most;
        }
    return most;
}

/* The mean of all samples, for the cells that have none. */
static double mean_of(const struct elv_time_table *t)
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

/* Ends what the sweeps left of the rows' constraint; it cannot break that of the columns. */
static void settle(struct elv_time_table *t)
{
    for (uint32_t r = 0; r < t->rows; r++)
        for (uint32_t c = 1; c < t->cols; c++) {
            const double before = seen(t, r, c - 1)->fit;
            if (seen(t, r, c)->fit < before)
                cell(t, r, c)->fit = before;
        }
}

void elv_time_table_fit(struct elv_time_table *t, uint32_t sweeps)
{
    t->mean = mean_of(t);
    for (uint32_t i = 0; i < sweeps; i++) {
        double most = 0.0;
        for (uint32_t r = 0; r < t->rows; r++)
            project_row(t, r, t->mean);
        for (uint32_t c = 0; c < t->cols; c++) {
            const double gap = project_col(t, c);
            most = gap > most ? gap : most;
        }
        if (most <= tolerance * t->mean)
            break;
    }
    settle(t);
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
