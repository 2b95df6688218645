/* SPDX-License-Identifier: Apache-2.0 */
#include "server/zipline.h"

#include "common/assert.h"

enum { PER_ROW = 4, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, FEW = 48 };

struct moment {
    uint64_t at; /* after the stretch began */
    uint32_t row;
};

struct sweep {
    const struct elv_zip_row *rows;
    struct moment *moments, *spare; /* [PER_ROW * n] of the stretch at hand */
    elv_time_us *time;              /* [n] of each row's moment in the list */
    uint32_t *drawn;                /* [n] index of the last one listed */
    uint32_t *next, *prev;          /* [n + 1]; the list is a ring around element n */
    uint32_t n;
    elv_time_us best;   /* width */
    elv_time_us latest; /* the best window ends with this moment ... */
    uint32_t last_row;  /* ... of this row */
    bool over;          /* the first in the list has no successor: windows only grow */
};

size_t elv_zip_scratch_len(uint32_t n)
{
    return n * (2 * PER_ROW * sizeof(struct moment) + sizeof(elv_time_us)) +
           (3 * (size_t)n + 2) * sizeof(uint32_t);
}

static struct sweep sweep_of(const struct elv_zip_row *rows, uint32_t n, void *scratch)
{
    struct sweep s = {.rows = rows, .moments = scratch, .n = n};
    s.spare = s.moments + (size_t)PER_ROW * n;
    s.time = (elv_time_us *)(void *)(s.spare + (size_t)PER_ROW * n);
    s.drawn = (uint32_t *)(void *)(s.time + n);
    s.next = s.drawn + n;
    s.prev = s.next + n + 1;
    s.next[n] = s.prev[n] = n;
    return s;
}

static elv_time_us time_of(const struct elv_zip_row *r, uint32_t i)
{
    return r->next + (elv_time_us)i * r->interval;
}

/* The last moment of a row until `t`, which is no earlier than its first. */
static uint32_t last_until(const struct elv_zip_row *r, elv_time_us t)
{
    const elv_time_us i = (t - r->next) / r->interval;
    return i < (elv_time_us)r->n ? (uint32_t)i : r->n - 1;
}

/* The first moment of a row that may be chosen; n: none. */
static uint32_t first_after(const struct elv_zip_row *r, elv_time_us t)
{
    elv_time_us i = t < r->next ? 0 : (t - r->next) / r->interval + 1;
    i = i > (elv_time_us)r->first ? i : (elv_time_us)r->first;
    return i < (elv_time_us)r->n ? (uint32_t)i : r->n;
}

static void sort_few(struct moment *m, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct moment x = m[i];
        uint32_t k = i;
        for (; k > 0 && m[k - 1].at > x.at; k--)
            m[k] = m[k - 1];
        m[k] = x;
    }
}

static void sort_by_digit(const struct moment *from, struct moment *to, uint32_t n, uint32_t shift)
{
    uint32_t place[DIGITS] = {0}, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        place[(from[i].at >> shift) % DIGITS]++;
    for (uint32_t d = 0; d < DIGITS; d++) {
        const uint32_t count = place[d];
        place[d] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[place[(from[i].at >> shift) % DIGITS]++] = from[i];
}

/* By time; moments at the same time stay in the order of their rows. */
static void sort(struct sweep *s, uint32_t n, uint64_t most)
{
    if (n <= FEW) {
        sort_few(s->moments, n);
        return;
    }
    for (uint32_t shift = 0; shift < 64 && most >> shift > 0; shift += DIGIT_BITS) {
        sort_by_digit(s->moments, s->spare, n, shift);
        struct moment *const sorted = s->spare;
        s->spare = s->moments;
        s->moments = sorted;
    }
}

static void append(struct sweep *s, uint32_t row, elv_time_us t)
{
    const uint32_t tail = s->prev[s->n];
    s->time[row] = t;
    s->next[tail] = row;
    s->prev[row] = tail;
    s->next[row] = s->n;
    s->prev[s->n] = row;
}

static void take_out(struct sweep *s, uint32_t row)
{
    s->next[s->prev[row]] = s->next[row];
    s->prev[s->next[row]] = s->prev[row];
}

/* The window that ends with the moment just appended; the earliest of equals stays. */
static void judge(struct sweep *s, elv_time_us latest, uint32_t row)
{
    const uint32_t head = s->next[s->n];
    const elv_time_us width = latest - s->time[head];
    if (width < s->best) {
        s->best = width;
        s->latest = latest;
        s->last_row = row;
    }
    s->over = s->best == 0 || s->time[head] == time_of(&s->rows[head], s->rows[head].n - 1);
}

/* Until every row has been seen, only its latest moment matters: that of the row seen last is its
 * first, and everybody's latest before it follows without a look at the others. */
static bool begin(struct sweep *s, elv_time_us after, elv_time_us *complete)
{
    elv_time_us t = after;
    for (uint32_t w = 0; w < s->n; w++) {
        const uint32_t i = first_after(&s->rows[w], after);
        if (i == s->rows[w].n)
            return false;
        const elv_time_us first = time_of(&s->rows[w], i);
        t = first > t ? first : t;
    }
    elv_time_us from = t;
    for (uint32_t w = 0; w < s->n; w++) {
        s->drawn[w] = last_until(&s->rows[w], t);
        s->time[w] = time_of(&s->rows[w], s->drawn[w]);
        from = s->time[w] < from ? s->time[w] : from;
    }
    for (uint32_t w = 0; w < s->n; w++)
        s->moments[w] = (struct moment){(uint64_t)(s->time[w] - from), w};
    sort(s, s->n, (uint64_t)(t - from));
    for (uint32_t k = 0; k < s->n; k++)
        append(s, s->moments[k].row, from + (elv_time_us)s->moments[k].at);
    s->best = INT64_MAX;
    judge(s, t, s->n - 1);
    *complete = t;
    return true;
}

/* The next stretch begins right before the next moment and is as long as three per row take; each
 * row may put in one more. False: no row has any left. */
static bool next_stretch(const struct sweep *s, elv_time_us *from, elv_time_us *len)
{
    elv_time_us soonest = INT64_MAX;
    double live = 0.0, rate = 0.0;
    for (uint32_t w = 0; w < s->n; w++) {
        const struct elv_zip_row *r = &s->rows[w];
        if (s->drawn[w] + 1 >= r->n)
            continue;
        const elv_time_us t = time_of(r, s->drawn[w] + 1);
        soonest = t < soonest ? t : soonest;
        live += 1.0;
        rate += 1.0 / (double)r->interval;
    }
    if (live == 0.0)
        return false;
    *from = soonest - 1;
    *len = (elv_time_us)((PER_ROW - 1) * live / rate);
    *len = *len > 1 ? *len : 1;
    return true;
}

static uint32_t list_stretch(struct sweep *s, elv_time_us from, elv_time_us len)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < s->n; w++) {
        const struct elv_zip_row *r = &s->rows[w];
        uint32_t i = s->drawn[w] + 1;
        for (elv_time_us t = time_of(r, i); i < r->n && t <= from + len; i++, t += r->interval)
            s->moments[n++] = (struct moment){(uint64_t)(t - from), w};
        s->drawn[w] = i - 1;
    }
    ELV_ASSERT(n <= PER_ROW * s->n);
    return n;
}

static void sweep_stretch(struct sweep *s, elv_time_us from, elv_time_us len)
{
    const uint32_t n = list_stretch(s, from, len);
    sort(s, n, (uint64_t)len);
    for (uint32_t k = 0; k < n && !s->over; k++) {
        const struct moment m = s->moments[k];
        take_out(s, m.row);
        append(s, m.row, from + (elv_time_us)m.at);
        judge(s, from + (elv_time_us)m.at, m.row);
    }
}

/* At the same moment, rows after the one that ends the window had not been seen. */
static void choose(const struct sweep *s, uint32_t *at, struct elv_zip_window *out)
{
    *out = (struct elv_zip_window){s->latest - s->best, s->latest};
    for (uint32_t w = 0; w < s->n; w++)
        at[w] = last_until(&s->rows[w], s->latest - (w > s->last_row));
}

bool elv_zip_plan(const struct elv_zip_row *rows, uint32_t n, elv_time_us after, void *scratch,
                  uint32_t *at, struct elv_zip_window *out)
{
    if (n == 0)
        return false;
    for (uint32_t w = 0; w < n; w++)
        ELV_ASSERT(rows[w].interval >= 1 && rows[w].interval <= ELV_ZIP_INTERVAL_MAX &&
                   rows[w].n <= ELV_ZIP_MOMENTS_MAX);
    struct sweep s = sweep_of(rows, n, scratch);
    elv_time_us from, len;
    if (!begin(&s, after, &from))
        return false;
    while (!s.over && next_stretch(&s, &from, &len))
        sweep_stretch(&s, from, len);
    choose(&s, at, out);
    return true;
}
