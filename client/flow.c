/* SPDX-License-Identifier: Apache-2.0 */
#include "client/flow.h"

#include "common/assert.h"

enum {
    SECOND = 1000000,
    SHORT_US = 10000,              /* a queue as short as that is not worth a thought */
    CONFIRM_US = 8 * SECOND,       /* how long a shortest time is believed, or */
    CONFIRM_FIRST_US = 2 * SECOND, /* the first of a start may have seen somebody else's queue */
    CONFIRM_TRIPS = 20,            /* so many of it: a long path is not drained all the time */
    ROUNDS_LEAST = 4,
    ROUNDS_QUEUE = 2, /* what was possible a while ago is not any more */
    SPARE = 3,        /* beyond the path's own */
    FLAT_MAX = 3,     /* round trips without growth that end the quick start */
    SLOW_MAX = 4,     /* answers in a row out of a queue that do */
    DRAIN_EVERY = 8,  /* round trips between drains for a queue */
    DRAIN_ANSWERS = 3,
    STRETCH_MIN = 24, /* requests whose losses are judged together, at least */
    LOSS_SCALE = 256,
    FIFTH = LOSS_SCALE / 5,
    LOSS_MADE_UP = LOSS_SCALE / 2, /* more than every second one is never made up for */
    PACE_BURST_US = 2000,          /* what a timer of milliseconds may be late */
    RATE_SCALE = 256,
};

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
static elv_time_us longer(elv_time_us a, elv_time_us b) { return a > b ? a : b; }

static bool reached(uint32_t count, uint32_t goal) { return (int32_t)(count - goal) >= 0; }

void elv_flow_init(struct elv_flow *f)
{
    *f = (struct elv_flow){.grant = ELV_WINDOW_FIRST};
    elv_flow_restart(f, ELV_WINDOW_FIRST);
}

void elv_flow_restart(struct elv_flow *f, uint32_t window)
{
    /* Timers still need a time, and requests in flight remember counts. */
    *f = (struct elv_flow){.rtt = f->rtt,
                           .grant = f->grant,
                           .window = smaller(window, f->grant),
                           .ceiling = f->grant,
                           .quick = true,
                           .delivered = f->delivered,
                           .delivered_us = f->delivered_us,
                           .first_us = f->first_us,
                           .limited = f->delivered,
                           .round_end = f->delivered};
}

void elv_flow_grant(struct elv_flow *f, uint32_t grant)
{
    ELV_ASSERT(grant > 0);
    if (f->ceiling >= f->grant)
        f->ceiling = grant;
    f->grant = grant;
    f->ceiling = smaller(f->ceiling, grant);
    f->window = smaller(f->window, grant);
}

/* What is lost whatever the window is: the third smallest of eight stretches, because a single one
 * may have been lucky. Needs a few: the first ones may be a queue that overflowed. */
static uint32_t usual_loss(const struct elv_flow *f)
{
    uint8_t sorted[ELV_FLOW_LOSSES];
    const uint32_t n = smaller(f->n_losses, ELV_FLOW_LOSSES);
    if (n < 3)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > f->loss[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = f->loss[i];
    }
    return smaller(sorted[(n - 1) * 3 / 8], LOSS_MADE_UP);
}

/* Answers take `halves` times half the shortest time. */
static bool has_queue(const struct elv_flow *f, uint32_t halves)
{
    return f->least > 0 && f->rtt.smoothed > halves * longer(f->least, SHORT_US) / 2;
}

static bool is_queueing(const struct elv_flow *f) { return has_queue(f, 4); }

/* The largest of the latest round trips: of some, and of more the more luck there is in each. */
static uint32_t rate_of(const struct elv_flow *f)
{
    const uint32_t some = has_queue(f, 3) ? ROUNDS_QUEUE : ROUNDS_LEAST;
    const uint32_t n = smaller(some + usual_loss(f) / 16, ELV_FLOW_ROUNDS);
    uint32_t most = 0;
    for (uint32_t i = 0; i < n && i <= f->round; i++)
        most = larger(most, f->rate[(f->round - i) % ELV_FLOW_ROUNDS]);
    return most;
}

/* The shortest round trip, and what it is longer by on average when it varies by itself: of times
 * spread evenly, half their spread, and two of them differ by a third of it. A queue that grows and
 * shrinks shows in the deviation, but hardly from one answer to the next. */
static elv_time_us own_time(const struct elv_flow *f)
{
    const elv_time_us varies = f->jitter + f->jitter / 2;
    return longer(f->least + (varies < f->least ? varies : f->least), SHORT_US);
}

/* Requests that fill the path, times `gain` quarters. */
static uint32_t filling(const struct elv_flow *f, uint32_t gain)
{
    const uint64_t path = (uint64_t)rate_of(f) * (uint64_t)own_time(f) / SECOND;
    const uint64_t made_up = path * LOSS_SCALE / (LOSS_SCALE - usual_loss(f));
    const uint64_t n = (made_up * gain / 4 + RATE_SCALE - 1) / RATE_SCALE;
    return n < UINT16_MAX ? (uint32_t)n : UINT16_MAX;
}

static void set_window(struct elv_flow *f, uint32_t window)
{
    f->window = larger(1, smaller(window, smaller(f->grant, f->ceiling)));
}

static void adjust(struct elv_flow *f)
{
    if (f->drain != ELV_FLOW_STEADY) {
        set_window(f, f->narrow);
        return;
    }
    if (rate_of(f) == 0)
        return;
    if (f->quick) /* not far beyond what the path carried so far: a round trip tells */
        set_window(f, smaller(f->window + 1, larger(filling(f, 7), ELV_WINDOW_FIRST) + SPARE));
    else
        set_window(
            f, smaller(f->window + 1, is_queueing(f) ? filling(f, 4) + 1 : filling(f, 5) + SPARE));
}

static void drain(struct elv_flow *f, elv_time_us now, uint32_t narrow)
{
    f->drain = ELV_FLOW_DRAINING;
    f->drain_us = now;
    f->drained_from = f->round;
    f->narrow = larger(1, narrow);
    f->overdue = false;
}

/* The queue it made is drained, but no more: the shortest time was seen a moment ago. */
static void end_quick_start(struct elv_flow *f, elv_time_us now)
{
    f->quick = false;
    if (f->n_slow >= SLOW_MAX)
        drain(f, now, filling(f, 3));
}

/* Sending. */

/* A window is spread over two thirds of a round trip, or half of one in the quick start. */
static void pace(struct elv_flow *f, elv_time_us now)
{
    if (f->least == 0)
        return;
    const elv_time_us each = f->rtt.smoothed / f->window, gap = f->quick ? each / 2 : each * 2 / 3;
    f->pace_us = longer(f->pace_us, now - PACE_BURST_US - 2 * gap) + gap;
}

static uint32_t ago(elv_time_us now, elv_time_us then)
{
    const elv_time_us since = now - then;
    return since < UINT32_MAX ? (uint32_t)since : UINT32_MAX;
}

void elv_flow_sent(struct elv_flow *f, elv_time_us now, uint32_t n_flying,
                   struct elv_flow_mark *mark)
{
    if (n_flying == 0) {
        const elv_time_us rest = longer(CONFIRM_US, CONFIRM_TRIPS * f->least);
        if (f->delivered_us != 0 && now - f->delivered_us > rest) /* who knows what it is now */
            elv_flow_restart(f, smaller(f->window, ELV_WINDOW_FIRST));
        f->delivered_us = f->first_us = now;
    }
    *mark = (struct elv_flow_mark){.sent_us = now,
                                   .delivered = f->delivered,
                                   .answered_ago = ago(now, f->delivered_us),
                                   .first_ago = ago(now, f->first_us)};
    pace(f, now);
}

void elv_flow_idle(struct elv_flow *f, uint32_t n_flying) { f->limited = f->delivered + n_flying; }

/* Rate. */

static void sample_rate(struct elv_flow *f, const struct elv_flow_mark *m, bool limited)
{
    const elv_time_us answering = f->delivered_us - m->sent_us + m->answered_ago;
    const elv_time_us took = longer(m->first_ago, answering);
    const uint64_t n = f->delivered - m->delivered;
    if (took <= 0 || (f->least > 0 && took < f->least))
        return;
    const uint64_t rate = n * RATE_SCALE * SECOND / (uint64_t)took;
    const uint32_t capped = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
    uint32_t *at = &f->rate[f->round % ELV_FLOW_ROUNDS];
    if (capped > (limited ? rate_of(f) : *at))
        *at = capped;
}

static void watch_growth(struct elv_flow *f, elv_time_us now, bool limited)
{
    const uint32_t rate = rate_of(f);
    if (limited)
        return;
    if (rate > f->full + f->full / 4) {
        f->full = rate;
        f->n_flat = 0;
    } else if (++f->n_flat >= FLAT_MAX) {
        end_quick_start(f, now);
    }
}

/* Time. */

/* The path got longer when the drain left it more than twice as long as it was; or a little, when
 * two drains in a row say so: during one somebody else may have filled the queue. */
static void end_drain(struct elv_flow *f)
{
    const elv_time_us seen = f->drained_least, before = f->last_least;
    f->drain = ELV_FLOW_STEADY;
    set_window(f, larger(f->narrow, filling(f, 3))); /* somebody may have come meanwhile */
    if (seen == 0)
        return; /* nothing came */
    f->confirmed = f->confirmed || f->overdue;
    const bool longer_now = f->overdue || seen > 2 * longer(f->least, SHORT_US);
    if (longer_now && before > f->least)
        f->least = before < seen ? before : seen;
    f->last_least = longer_now ? seen : 0;
}

static void watch_drain(struct elv_flow *f, elv_time_us now, elv_time_us took,
                        const struct elv_flow_mark *m, uint32_t n_flying)
{
    if (f->drain == ELV_FLOW_DRAINING && n_flying <= f->narrow) {
        f->drain = ELV_FLOW_DRAINED;
        f->drained_us = now;
        f->drained_least = 0;
        f->n_drained = 0;
    }
    if (f->drain != ELV_FLOW_DRAINED)
        return;
    if (f->drained_least == 0 || took < f->drained_least)
        f->drained_least = took;
    f->n_drained += m->sent_us >= f->drained_us;
    if (f->n_drained >= smaller(f->narrow, DRAIN_ANSWERS) ||
        now - f->drained_us > 3 * f->rtt.smoothed)
        end_drain(f);
}

static void watch_time(struct elv_flow *f, elv_time_us now, elv_time_us took)
{
    const elv_time_us off = took > f->took ? took - f->took : f->took - took;
    if (f->took > 0)
        f->jitter += (off - f->jitter) / 16;
    f->took = took;
    if (f->least == 0 || took <= f->least + f->least / 16)
        f->least_us = now;
    if (f->least == 0 || took < f->least)
        f->least = longer(took, 1);
    const bool slow = took > f->least + longer(f->least / 8, SHORT_US) + 2 * f->jitter;
    f->n_slow = slow ? (uint8_t)smaller(f->n_slow + 1u, SLOW_MAX) : 0;
    if (f->quick && f->n_slow >= SLOW_MAX)
        end_quick_start(f, now);
}

/* Somebody else's drain shows as answers that come sooner: joining in empties the queue. */
static void watch_queue(struct elv_flow *f, elv_time_us now, elv_time_us took)
{
    const elv_time_us rest =
        longer(f->confirmed ? CONFIRM_US : CONFIRM_FIRST_US, CONFIRM_TRIPS * f->least);
    if (f->drain != ELV_FLOW_STEADY || f->quick || f->rtt.smoothed <= SHORT_US)
        return;
    const elv_time_us since = now - longer(f->least_us, f->drain_us);
    const bool old = since > rest;
    const bool rested = f->round - f->drained_from >= DRAIN_EVERY;
    const bool dip = took < f->rtt.smoothed - f->rtt.smoothed / 8 - f->jitter &&
                     f->rtt.smoothed > f->least + f->least / 2;
    if (!old && !(rested && (is_queueing(f) || dip)))
        return;
    drain(f, now, f->window / 3);
    f->overdue = old;
}

/* Losses. */

uint32_t elv_flow_patience(const struct elv_flow *f)
{
    const uint32_t usual = usual_loss(f);
    uint32_t n = 1;
    for (uint32_t all = usual; all > LOSS_SCALE / 64; n++)
        all = all * usual / LOSS_SCALE;
    return n;
}

static void judge_losses(struct elv_flow *f)
{
    const uint32_t n = f->n_answered + f->n_lost;
    if (n < larger(f->window, STRETCH_MIN))
        return;
    const uint32_t share = f->n_lost * (LOSS_SCALE - 1) / n;
    if (share > usual_loss(f) + FIFTH) {
        f->ceiling = larger(ELV_WINDOW_FIRST, smaller(f->window, f->ceiling) * 7 / 10);
        f->quick = false;
        adjust(f);
    } else {
        f->ceiling = smaller(f->grant, f->ceiling + larger(1, f->ceiling / 2));
    }
    f->loss[f->n_losses % ELV_FLOW_LOSSES] = (uint8_t)share;
    f->n_losses = f->n_losses + 1 < 2 * ELV_FLOW_LOSSES ? f->n_losses + 1 : ELV_FLOW_LOSSES;
    f->n_answered = f->n_lost = 0;
}

void elv_flow_lost(struct elv_flow *f)
{
    f->n_lost++;
    judge_losses(f);
}

void elv_flow_found(struct elv_flow *f) { f->n_lost -= f->n_lost > 0; }

void elv_flow_delivered(struct elv_flow *f)
{
    f->delivered++;
    f->n_answered++;
    judge_losses(f);
}

void elv_flow_late(struct elv_flow *f, elv_time_us now, elv_time_us sent_us)
{
    elv_rtt_sample(&f->rtt, now - sent_us);
    f->delivered++;
    f->delivered_us = now;
    f->n_answered++;
    judge_losses(f);
}

void elv_flow_answered(struct elv_flow *f, elv_time_us now, const struct elv_flow_mark *m,
                       uint32_t n_flying)
{
    const elv_time_us took = now - m->sent_us;
    if (f->least == 0) /* what was measured is of another path, or of a request that was repeated */
        f->rtt.measured = false;
    elv_rtt_sample(&f->rtt, took);
    f->delivered++;
    f->delivered_us = now;
    f->first_us = longer(f->first_us, m->sent_us);
    f->n_answered++;
    watch_time(f, now, took);
    watch_queue(f, now, took);
    const bool limited = !reached(m->delivered, f->limited);
    sample_rate(f, m, limited);
    if (reached(m->delivered, f->round_end)) {
        f->round_end = f->delivered;
        if (f->quick)
            watch_growth(f, now, limited);
        if (f->drain == ELV_FLOW_STEADY && !limited) {
            f->round++;
            f->rate[f->round % ELV_FLOW_ROUNDS] = 0;
        }
    }
    if (f->drain != ELV_FLOW_STEADY)
        watch_drain(f, now, took, m, n_flying);
    judge_losses(f);
    adjust(f);
}

void elv_flow_slept(struct elv_flow *f, elv_time_us us)
{
    f->delivered_us += us;
    f->first_us += us;
    f->least_us += us;
    f->drain_us += us;
    f->drained_us += us;
}
