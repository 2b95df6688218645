/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clocks.h"

#include "common/assert.h"

size_t elv_clocks_len(uint32_t clients_max)
{
    return sizeof(struct elv_clocks) + (size_t)clients_max * sizeof(struct elv_clock);
}

struct elv_clocks *elv_clocks_of(void *state, uint32_t bound)
{
    struct elv_clocks *c = state;
    c->bound = bound;
    return c;
}

/* Links are rows + 1, so that zeros are empty. */
static struct elv_clock *row_of(struct elv_clocks *c, uint32_t link) { return &c->at[link - 1]; }

static const struct elv_clock *look(const struct elv_clocks *c, uint32_t link)
{
    return &c->at[link - 1];
}

static void add(struct elv_clocks *c, struct elv_clock_list *list, uint32_t link)
{
    row_of(c, link)->prev = list->last;
    row_of(c, link)->next = 0;
    if (list->last)
        row_of(c, list->last)->next = link;
    else
        list->first = link;
    list->last = link;
}

static void cut(struct elv_clocks *c, struct elv_clock_list *list, uint32_t link)
{
    const struct elv_clock *r = look(c, link);
    if (r->prev)
        row_of(c, r->prev)->next = r->next;
    else
        list->first = r->next;
    if (r->next)
        row_of(c, r->next)->prev = r->prev;
    else
        list->last = r->prev;
}

static struct elv_clock_list *list_of(struct elv_clocks *c, const struct elv_clock *r)
{
    if (r->place == ELV_CLOCK_FREED)
        return &c->freed;
    struct elv_clock *bucket = row_of(c, r->bucket);
    return r->place == ELV_CLOCK_RUNS ? &bucket->runs : &bucket->parked;
}

static void forget_silence(struct elv_clocks *c, uint32_t link)
{
    const struct elv_clock *r = look(c, link);
    if (r->older)
        row_of(c, r->older)->newer = r->newer;
    else
        c->oldest = r->newer;
    if (r->newer)
        row_of(c, r->newer)->older = r->older;
    else
        c->newest = r->older;
}

static void hear(struct elv_clocks *c, uint32_t link, elv_time_us now)
{
    struct elv_clock *r = row_of(c, link);
    r->heard = now;
    r->older = c->newest;
    r->newer = 0;
    if (c->newest)
        row_of(c, c->newest)->newer = link;
    else
        c->oldest = link;
    c->newest = link;
}

/* Out of the list it is in, or into the one of `place`. */
static void take_out(struct elv_clocks *c, uint32_t link)
{
    const struct elv_clock *r = look(c, link);
    cut(c, list_of(c, r), link);
    c->n_parked -= r->place == ELV_CLOCK_PARKED;
    if (r->place == ELV_CLOCK_RUNS)
        forget_silence(c, link);
}

static void put_in(struct elv_clocks *c, uint32_t link, enum elv_clock_place place, elv_time_us now)
{
    struct elv_clock *r = row_of(c, link);
    r->place = place;
    add(c, list_of(c, r), link);
    c->n_parked += place == ELV_CLOCK_PARKED;
    if (place == ELV_CLOCK_RUNS)
        hear(c, link, now);
}

/* Parked clients of a bucket that the mark passes may go. */
static void free_parked(struct elv_clocks *c, struct elv_clock *bucket)
{
    while (bucket->parked.first) {
        const uint32_t link = bucket->parked.first;
        take_out(c, link);
        put_in(c, link, ELV_CLOCK_FREED, 0);
    }
}

static void move_mark(struct elv_clocks *c)
{
    if (c->lowest)
        c->min = look(c, c->lowest)->value;
    while (c->mark && look(c, c->mark)->value - c->min <= c->bound) {
        free_parked(c, row_of(c, c->mark));
        c->mark = look(c, c->mark)->higher;
    }
}

/* A bucket for `value` right above `lower` (0: below all). */
static uint32_t new_bucket(struct elv_clocks *c, uint32_t lower, uint32_t value)
{
    uint32_t link = c->free;
    if (link)
        c->free = look(c, link)->higher;
    else
        link = ++c->n_fresh;
    struct elv_clock *b = row_of(c, link);
    b->value = value;
    b->n = 0;
    b->runs = b->parked = (struct elv_clock_list){0, 0};
    b->lower = lower;
    b->higher = lower ? look(c, lower)->higher : c->lowest;
    *(lower ? &row_of(c, lower)->higher : &c->lowest) = link;
    *(b->higher ? &row_of(c, b->higher)->lower : &c->highest) = link;
    if (b->higher == c->mark && value - c->min > c->bound)
        c->mark = link;
    return link;
}

static void drop_bucket(struct elv_clocks *c, uint32_t link)
{
    struct elv_clock *b = row_of(c, link);
    *(b->lower ? &row_of(c, b->lower)->higher : &c->lowest) = b->higher;
    *(b->higher ? &row_of(c, b->higher)->lower : &c->highest) = b->lower;
    if (c->mark == link)
        c->mark = b->higher;
    b->higher = c->free;
    c->free = link;
    move_mark(c);
}

/* The bucket for `value`, which is the one right above `lower` or does not exist. */
static uint32_t bucket_above(struct elv_clocks *c, uint32_t lower, uint32_t value)
{
    const uint32_t higher = lower ? look(c, lower)->higher : c->lowest;
    return higher && look(c, higher)->value == value ? higher : new_bucket(c, lower, value);
}

static void join_bucket(struct elv_clocks *c, uint32_t link, uint32_t bucket, elv_time_us now)
{
    row_of(c, link)->bucket = bucket;
    row_of(c, bucket)->n++;
    put_in(c, link, ELV_CLOCK_RUNS, now);
}

static void count(struct elv_clocks *c, struct elv_sync_client who, elv_time_us now)
{
    const uint32_t link = who.row + 1;
    row_of(c, link)->client = who.client;
    if (look(c, link)->place == ELV_CLOCK_AWAY)
        join_bucket(c, link, bucket_above(c, 0, c->min), now);
}

bool elv_clocks_enter(struct elv_clocks *c, struct elv_sync_client who, elv_time_us now)
{
    struct elv_clock *r = row_of(c, who.row + 1);
    if (r->place != ELV_CLOCK_AWAY)
        return true;
    if (r->owes || c->n_parked > 0)
        return false;
    count(c, who, now);
    r->owes = true;
    return true;
}

void elv_clocks_tick(struct elv_clocks *c, struct elv_sync_client who, elv_time_us now)
{
    const uint32_t link = who.row + 1;
    count(c, who, now);
    row_of(c, link)->owes = false;
    take_out(c, link);
    /* Between its two buckets the client is in neither; the lower one may go only once the upper
     * one is there. A table full of buckets of one client each has no room for that: then the
     * bucket itself moves up. */
    const uint32_t from = look(c, link)->bucket;
    const uint32_t value = look(c, from)->value + 1;
    const uint32_t higher = look(c, from)->higher;
    if (--row_of(c, from)->n > 0 || (higher && look(c, higher)->value == value)) {
        join_bucket(c, link, bucket_above(c, from, value), now);
        if (look(c, from)->n == 0)
            drop_bucket(c, from);
        return;
    }
    row_of(c, from)->value = value;
    if (c->mark == higher && value - c->min > c->bound)
        c->mark = from;
    join_bucket(c, link, from, now);
    move_mark(c);
}

void elv_clocks_leave(struct elv_clocks *c, uint32_t row)
{
    const uint32_t link = row + 1;
    struct elv_clock *r = row_of(c, link);
    if (r->place == ELV_CLOCK_AWAY)
        return;
    take_out(c, link);
    r->place = ELV_CLOCK_AWAY;
    if (--row_of(c, r->bucket)->n == 0)
        drop_bucket(c, r->bucket);
}

bool elv_clocks_has(const struct elv_clocks *c, uint32_t row)
{
    return c->at[row].place != ELV_CLOCK_AWAY;
}

struct elv_sync_client elv_clocks_client(const struct elv_clocks *c, uint32_t row)
{
    return (struct elv_sync_client){.row = row, .client = c->at[row].client};
}

uint32_t elv_clocks_value(const struct elv_clocks *c, uint32_t row)
{
    ELV_ASSERT(elv_clocks_has(c, row));
    return look(c, c->at[row].bucket)->value;
}

uint32_t elv_clocks_ahead(const struct elv_clocks *c, uint32_t row)
{
    return elv_clocks_value(c, row) - c->min;
}

bool elv_clocks_leads(const struct elv_clocks *c, uint32_t row)
{
    return c->at[row].bucket == c->highest;
}

bool elv_clocks_slowest(const struct elv_clocks *c, uint32_t *row)
{
    const uint32_t link = c->lowest ? look(c, c->lowest)->runs.first : 0;
    if (link == 0)
        return false;
    *row = link - 1;
    return true;
}

void elv_clocks_park(struct elv_clocks *c, uint32_t row)
{
    ELV_ASSERT(elv_clocks_ahead(c, row) > c->bound);
    if (c->at[row].place == ELV_CLOCK_PARKED)
        return;
    take_out(c, row + 1);
    put_in(c, row + 1, ELV_CLOCK_PARKED, 0);
}

bool elv_clocks_is_parked(const struct elv_clocks *c, uint32_t row)
{
    return c->at[row].place == ELV_CLOCK_PARKED;
}

void elv_clocks_resume(struct elv_clocks *c, uint32_t row, elv_time_us now)
{
    if (c->at[row].place == ELV_CLOCK_RUNS)
        return;
    take_out(c, row + 1);
    put_in(c, row + 1, ELV_CLOCK_RUNS, now);
}

bool elv_clocks_next(struct elv_clocks *c, struct elv_sync_client *who, elv_time_us now)
{
    const uint32_t link = c->freed.first;
    if (link == 0)
        return false;
    *who = elv_clocks_client(c, link - 1);
    elv_clocks_resume(c, link - 1, now);
    return true;
}

elv_time_us elv_clocks_silent_at(const struct elv_clocks *c, elv_time_us patience)
{
    if (c->oldest == 0 || patience >= ELV_NEVER - look(c, c->oldest)->heard)
        return ELV_NEVER;
    return look(c, c->oldest)->heard + patience;
}

bool elv_clocks_drop_silent(struct elv_clocks *c, elv_time_us patience, elv_time_us now,
                            uint32_t *row)
{
    if (elv_clocks_silent_at(c, patience) > now)
        return false;
    *row = c->oldest - 1;
    elv_clocks_leave(c, *row);
    return true;
}
