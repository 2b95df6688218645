/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/link.h"

#include "common/assert.h"

elv_time_us elv_sim_times_next(const struct elv_sim_times *t, elv_time_us after)
{
    if (t->first_us == 0)
        return ELV_NEVER;
    if (after < t->first_us)
        return t->first_us;
    if (t->every_us == 0)
        return ELV_NEVER;
    return after + t->every_us - (after - t->first_us) % t->every_us;
}

static bool is_out(const struct elv_sim_way *way, elv_time_us now)
{
    /* Inside when an outage began less than its length ago. */
    return way->outage_us > 0 && elv_sim_times_next(&way->outages, now - way->outage_us) <= now;
}

/* When the line has taken `bytes`; ELV_NEVER: its queue is full. */
static elv_time_us through(struct elv_sim_lane *lane, const struct elv_sim_way *way,
                           elv_time_us now, size_t bytes, elv_time_us *wait_us)
{
    *wait_us = 0;
    if (way->bps == 0)
        return now;
    const elv_time_us start = lane->free_us > now ? lane->free_us : now;
    const uint64_t queued = (uint64_t)(start - now) * way->bps / 1000000u;
    *wait_us = start - now;
    if (way->queue_us > 0 && *wait_us > way->queue_us)
        return ELV_NEVER;
    if (way->queue_bytes > 0 && queued + bytes > way->queue_bytes)
        return ELV_NEVER;
    lane->free_us = start + (elv_time_us)((uint64_t)bytes * 1000000u / way->bps);
    return lane->free_us;
}

/* Moves the chain of the bursts; true when the datagram is lost in one. */
static bool in_burst(struct elv_sim_lane *lane, const struct elv_sim_bursts *b, struct elv_rng *rng)
{
    if (b->enter_ppm == 0) {
        lane->bad = false;
        return false;
    }
    if (elv_sim_chance(rng, lane->bad ? b->leave_ppm : b->enter_ppm))
        lane->bad = !lane->bad;
    return elv_sim_chance(rng, b->loss_ppm) && lane->bad;
}

/* When a datagram that leaves the line at `base` arrives. */
static elv_time_us arrival(struct elv_sim_lane *lane, const struct elv_sim_way *way,
                           struct elv_rng *rng, elv_time_us base, bool *held_back)
{
    elv_time_us at = base + (way->draw != NULL ? way->draw(way->draw_self, rng)
                                               : elv_sim_delay_draw(&way->delay, rng));
    if (elv_sim_chance(rng, way->reorder_ppm)) {
        *held_back = true;
        return at + elv_sim_delay_draw(&way->held_back, rng);
    }
    if (way->in_order && at < lane->last_us)
        at = lane->last_us;
    lane->last_us = at;
    return at;
}

/* What happens to a datagram before its delay, the first of several reasons. */
static enum elv_sim_fate fate_of(const struct elv_sim_way *way, elv_time_us now, elv_time_us base,
                                 size_t bytes, bool burst, bool unlucky)
{
    if (way->cut)
        return ELV_SIM_CUT;
    if (is_out(way, now))
        return ELV_SIM_OUT;
    if (way->mtu > 0 && bytes > way->mtu)
        return ELV_SIM_LONG;
    if (base == ELV_NEVER)
        return ELV_SIM_FULL;
    return burst ? ELV_SIM_BURST : unlucky ? ELV_SIM_LOST : ELV_SIM_ARRIVED;
}

struct elv_sim_passage elv_sim_pass(struct elv_sim_lane *lane, const struct elv_sim_way *way,
                                    struct elv_rng *rng, elv_time_us now, size_t bytes)
{
    struct elv_sim_passage p = {.n = 0};
    const elv_time_us base = through(lane, way, now, bytes, &p.wait_us);
    const bool burst = in_burst(lane, &way->bursts, rng);
    const bool unlucky = elv_sim_chance(rng, way->loss_ppm);
    const bool twice = elv_sim_chance(rng, way->duplicate_ppm);
    const elv_time_us moves = elv_sim_times_next(&way->moves, now);
    p.fate = fate_of(way, now, base, bytes, burst, unlucky);
    if (p.fate != ELV_SIM_ARRIVED)
        return p;
    for (uint32_t i = 0; i < (twice ? 2u : 1u); i++) {
        const elv_time_us at = arrival(lane, way, rng, base, &p.held_back);
        if (at < moves)
            p.at[p.n++] = at;
    }
    if (p.n == 0)
        p.fate = ELV_SIM_MOVED;
    return p;
}

const char *elv_sim_fate_name(enum elv_sim_fate fate)
{
    static const char *const names[ELV_SIM_FATES] = {"arrived", "lost", "burst", "full",
                                                     "long",    "out",  "moved", "cut"};
    ELV_ASSERT(fate < ELV_SIM_FATES);
    return names[fate];
}

void elv_sim_fates_count(struct elv_sim_fates *f, const struct elv_sim_passage *p, size_t bytes)
{
    f->put++;
    f->bytes += bytes;
    f->n[p->fate]++;
    f->duplicated += p->n == 2;
    f->held_back += p->n > 0 && p->held_back;
    if (p->fate == ELV_SIM_FULL)
        return; /* it did not wait */
    f->wait_us += p->wait_us;
    if (p->wait_us > f->wait_longest_us)
        f->wait_longest_us = p->wait_us;
}

uint64_t elv_sim_fates_lost(const struct elv_sim_fates *f)
{
    return f->put - f->n[ELV_SIM_ARRIVED];
}

double elv_sim_way_loss(const struct elv_sim_way *way)
{
    const struct elv_sim_bursts *b = &way->bursts;
    const double steps = (double)b->enter_ppm + (double)b->leave_ppm;
    const double bad = steps > 0.0 ? (double)b->enter_ppm / steps : 0.0;
    const double burst = bad * (double)b->loss_ppm / ELV_SIM_PPM;
    return 1.0 - (1.0 - burst) * (1.0 - (double)way->loss_ppm / ELV_SIM_PPM);
}
