/* SPDX-License-Identifier: Apache-2.0 */
#include "client/elver_client_told.h"

static const char *phase_name(enum elv_client_phase phase)
{
    static const char *const names[] = {"idle",     "fetching", "loading",   "evaluating",
                                        "training", "encoding", "uploading", "committing",
                                        "leaving",  "ended"};
    return (size_t)phase < sizeof names / sizeof names[0] ? names[phase] : "unknown";
}

static void log_counter(const struct elv_client_told *t, const char *event, uint64_t was,
                        uint64_t is)
{
    if (was == is)
        return;
    struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_INFO, event);
    elv_log_u64(&l, "assignment", t->client->ticket.assignment);
    elv_log_u64(&l, "round", t->client->ticket.round);
    elv_log_u64(&l, "total", is);
    elv_log_end(&l);
}

/* Bytes since the start: of chunks, and all that went over the wire. */
static void log_accepted(const struct elv_client_told *t, const struct elv_coap_traffic *traffic)
{
    const struct elv_client_stats *s = &t->client->stats;
    if (t->stats.accepted == s->accepted)
        return;
    struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_INFO, "accepted");
    elv_log_u64(&l, "assignment", t->client->ticket.assignment);
    elv_log_u64(&l, "round", t->client->ticket.round);
    elv_log_u64(&l, "total", s->accepted);
    elv_log_u64(&l, "bytes_up", s->bytes_up);
    elv_log_u64(&l, "bytes_down", s->bytes_down);
    elv_log_u64(&l, "wire_bytes_up", traffic->wire_out);
    elv_log_u64(&l, "wire_bytes_down", traffic->wire_in);
    elv_log_end(&l);
}

/* Work was dropped, and in the same step the next may have been taken up. */
static void log_dropped(const struct elv_client_told *t, const char *event, uint64_t was,
                        uint64_t is)
{
    if (was == is)
        return;
    struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_INFO, event);
    elv_log_u64(&l, "assignment", t->assignment);
    elv_log_u64(&l, "round", t->round);
    elv_log_u64(&l, "total", is);
    elv_log_text(&l, "phase", phase_name(t->phase));
    elv_log_end(&l);
}

/* A body has arrived, in either direction: what it took since this process began. */
static void log_transfer(const struct elv_client_told *t)
{
    const struct elv_client_stats *s = &t->client->stats;
    const bool down = t->phase == ELV_CLIENT_FETCHING && t->client->phase == ELV_CLIENT_LOADING;
    const bool up = t->phase == ELV_CLIENT_UPLOADING && t->client->phase == ELV_CLIENT_COMMITTING &&
                    t->client->commit.status == ELV_STATUS_DONE;
    if (!down && !up)
        return;
    struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_INFO, down ? "fetched" : "uploaded");
    elv_log_u64(&l, "assignment", t->client->ticket.assignment);
    elv_log_u64(&l, "round", t->client->ticket.round);
    elv_log_u64(&l, "chunks", t->client->transfer.have.n);
    elv_log_u64(&l, "chunks_sent", s->chunks_sent);
    elv_log_u64(&l, "chunks_repeated", s->chunks_repeated);
    elv_log_u64(&l, "chunks_replayed", s->replayed);
    elv_log_u64(&l, "bytes", down ? s->bytes_down : s->bytes_up);
    elv_log_end(&l);
}

/* The one cause that only somebody at the device can mend. */
static void log_choked(const struct elv_client_told *t)
{
    struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_WARN, "choked");
    elv_log_u64(&l, "assignment", t->client->ticket.assignment);
    elv_log_text(&l, "reason",
                 "small messages are answered and chunks are not: the path seems to drop datagrams "
                 "of 1,200 bytes, look for its MTU");
    elv_log_end(&l);
}

void elv_client_told_step(struct elv_client_told *t, const struct elv_coap_traffic *traffic)
{
    const struct elv_client_stats *s = &t->client->stats;
    log_counter(t, "joined", t->stats.joins, s->joins);
    log_counter(t, "relinked", t->stats.relinks, s->relinks);
    log_dropped(t, "superseded", t->stats.superseded, s->superseded);
    log_dropped(t, "expired", t->stats.expired, s->expired);
    log_counter(t, "assigned", t->stats.assignments, s->assignments);
    log_counter(t, "restored", t->stats.restored, s->restored);
    log_counter(t, "resumed", t->stats.resumed, s->resumed);
    log_counter(t, "replayed", t->stats.replayed, s->replayed);
    log_counter(t, "trained", t->stats.trainings, s->trainings);
    log_accepted(t, traffic);
    if (t->stats.choked != s->choked)
        log_choked(t);
    log_counter(t, "cancelled", t->stats.cancelled, s->cancelled);
    log_counter(t, "failed", t->stats.failed, s->failed);
    log_counter(t, "declined", t->stats.declined, s->declined);
    for (uint32_t i = 0; i < ELV_CLIENT_REASONS; i++) {
        if (t->stats.refused[i] == s->refused[i])
            continue;
        struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_WARN, "refused");
        elv_log_text(&l, "reason", elv_reason_text((enum elv_reason)i));
        elv_log_u64(&l, "total", s->refused[i]);
        elv_log_end(&l);
    }
    t->stats = *s;
    t->assignment = t->client->ticket.assignment;
    t->round = t->client->ticket.round;
    if (t->phase == t->client->phase)
        return;
    log_transfer(t);
    t->phase = t->client->phase;
    struct elv_log_line l = elv_log_begin(t->log, ELV_LOG_DEBUG, "phase");
    elv_log_text(&l, "phase", phase_name(t->phase));
    elv_log_end(&l);
}
