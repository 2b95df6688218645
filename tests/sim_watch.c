/* SPDX-License-Identifier: Apache-2.0 */
/* What must be true of the server after each of its steps: memory bounds (I5), armed deadlines, and
 * that none is outlived (I6). */
#include <string.h>

#include "server/param.h"
#include "tests/sim_fleet.h"

#define SECOND 1000000
enum { DISK_PER_PARAM = 2200 }; /* bytes: versions that are kept, and uploads of all clients */

/* What the server's own figures must say at any time. */
static void check_bounds(struct fleet *f)
{
    const struct elv_server_stats *s = elv_server_stats(f->server);
    const struct elv_sim_stats world = elv_sim_stats(f->w);
    const struct elv_sim_disk_stats disk = elv_sim_disk_stats(f->disk);
    const elv_time_us due = elv_server_node(f->server).deadline(f->server);
    if (s->round_open && (due == ELV_NEVER || due > f->server->round.deadline))
        fleet_blame(f, "I6: round %u is open without a timer", s->round);
    const struct elv_server_limits *l = &f->cfg.limits;
    const uint32_t uploads = l->uploads_max > 0 ? l->uploads_max : f->cfg.n_clients;
    if (l->log_bytes_max > 0 && s->log_bytes > l->log_bytes_max)
        fleet_blame(f, "I5: the upload log has %llu bytes", (unsigned long long)s->log_bytes);
    if (s->n_clients > f->cfg.n_clients || s->n_joined > s->n_clients || s->n_uploads > uploads)
        fleet_blame(f, "I5: %u clients, %u joined, %u uploads", s->n_clients, s->n_joined,
                    s->n_uploads);
    if (world.requests > 40 * f->cfg.n_clients)
        fleet_blame(f, "I5: %u requests are owed a reply", world.requests);
    if (disk.logs > 3)
        fleet_blame(f, "I5: %u upload logs exist", disk.logs);
    if (disk.used > DISK_PER_PARAM * (uint64_t)f->model.n_params)
        fleet_blame(f, "I5: the disk holds %llu bytes", (unsigned long long)disk.used);
    if (s->over && !f->over) {
        const bool asks = f->job.eval_every > 0 && f->job.eval_on != ELV_EVAL_SERVER;
        if (asks && s->n_joined > 0 && f->server->head.surveyed != s->version)
            fleet_blame(f, "the job is over and no client was asked about its last version");
        f->over = true;
        f->over_us = elv_sim_now(f->w);
    }
}

/* A restart re-arms what is left of a round's deadline, never more: a round is open for no longer
 * than that while the server is up, but for the second of which each crash may lose count. */
static void check_round_time(struct fleet *f)
{
    const struct elv_server_stats *s = elv_server_stats(f->server);
    struct fleet_round *r = &f->round;
    const elv_time_us now = elv_sim_now(f->w);
    const uint32_t lives = elv_sim_starts(f->w, f->server_node);
    if (!s->round_open || s->round != r->seq) {
        *r = (struct fleet_round){.seq = s->round_open ? s->round : 0, .last_us = now};
        r->life = lives;
        return;
    }
    if (lives == r->life)
        r->open_us += now - r->last_us;
    else
        r->crashes++;
    r->life = lives;
    r->last_us = now;
    const elv_time_us slack = SECOND / 10 + 2 * SECOND * (elv_time_us)r->crashes;
    if (elv_sim_disk_stats(f->disk).failed == 0 && r->open_us > f->job.deadline_us + slack)
        fleet_blame(f, "I6: round %u is open for %.3f s", r->seq, (double)r->open_us / 1e6);
}

/* A client's own work is over when its time is, but for a commit that is being decided. When such a
 * one is not decided after all, as when the disk lost it, its work may have been over for long:
 * that ends in a step of its own, for which the server asks to be called at once. */
static void check_offers(struct fleet *f)
{
    const struct elv_server *s = f->server;
    const bool ends_some = s->lapse_at <= s->now;
    for (uint32_t i = 0; i < s->roster.n; i++) {
        const struct elv_row *row = &s->roster.rows[i];
        const elv_time_us ends = s->run_began + row->offer.granted + f->job.deadline_us;
        if (row->waiting && row->offer.own && row->upload == ELV_ROW_NONE && s->now > ends &&
            !ends_some)
            fleet_blame(f, "I6: client %u has work that is %.3f s over", row->client,
                        (double)(s->now - ends) / 1e6);
    }
    if (s->kept.n > ELV_KEPT_MAX + 1)
        fleet_blame(f, "I5: %u versions are kept", s->kept.n);
}

/* For how long a policy may make a client wait; 0: there is no limit, as where it is chance who
 * waits, or how far ahead one may get. At a barrier, and where nobody may be more than one update
 * too far ahead, as long as anybody's work may take; else for as many updates of the slowest. */
static elv_time_us wait_max(const struct elv_job *job)
{
    const double low = elv_param_get(&job->sync_params, "low", 3.0);
    const double high = elv_param_get(&job->sync_params, "high", 15.0);
    const bool strict = elv_param_get(&job->sync_params, "strict", 1.0) != 0.0;
    if (strcmp(job->sync, "ssp") == 0 || strcmp(job->sync, "ebsp") == 0)
        return job->deadline_us;
    if (strcmp(job->sync, "dssp") == 0 && strict)
        return job->deadline_us * (elv_time_us)(high - low + 1.0);
    return 0;
}

/* In a stream whose policy makes clients wait for each other. The time between two rounds does not
 * count: nothing is handed out then. */
static void check_waits(struct fleet *f)
{
    const struct elv_server *s = f->server;
    const elv_time_us now = elv_sim_now(f->w), step = now - f->waits_at;
    const elv_time_us most = wait_max(&f->job);
    f->waits_at = now;
    for (uint32_t i = 0; most > 0 && i < s->roster.n && i < FLEET_CLIENTS_MAX; i++) {
        const struct elv_row *row = &s->roster.rows[i];
        const bool waits = row->joined && !row->lapsed && !row->waiting && !row->last_failed &&
                           (row->held || row->wants);
        if (!waits)
            f->waits[i] = ELV_NEVER;
        else if (f->waits[i] == ELV_NEVER)
            f->waits[i] = 0;
        else if (s->round.state == ELV_ROUND_OPEN)
            f->waits[i] += step;
        if (!waits || f->waits[i] <= f->worst_wait_us)
            continue;
        f->worst_wait_us = f->waits[i];
        if (f->waits[i] > most + 2 * SECOND)
            fleet_blame(f, "I6: client %u is kept from its work for %.3f s", row->client,
                        (double)f->waits[i] / 1e6);
    }
}

/* What the clients found is the sum of all that was accepted, over restarts, too. While the disk
 * fails, who could not be stored at first may be missing, and who was taken back be there. */
static void check_scores(struct fleet *f)
{
    const struct elv_note *n;
    while ((n = elv_note_next(&f->server->notes, &f->seen_notes)) != NULL) {
        if (n->kind != ELV_NOTE_CLIENTS_EVALUATED || f->cfg.n_vandals > 0)
            continue;
        const uint32_t most = FLEET_TESTS * history_answers(f->history, n->round);
        if (n->score.n != most && elv_sim_disk_stats(f->disk).failed == 0)
            fleet_blame(f, "the clients evaluated %u examples in round %u, not %u", n->score.n,
                        n->round, most);
    }
}

/* A disk that died stays dead until somebody starts the server again. */
static void mind_the_disk(struct fleet *f)
{
    if (!elv_sim_disk_stats(f->disk).dead) {
        f->dead_us = ELV_NEVER;
        return;
    }
    if (f->dead_us == ELV_NEVER)
        f->dead_us = elv_sim_now(f->w);
    if (elv_sim_now(f->w) - f->dead_us > 5 * SECOND)
        elv_sim_crash(f->w, f->server_node, (struct elv_sim_crash){.down_us = SECOND});
}

void fleet_check(struct fleet *f)
{
    check_bounds(f);
    check_round_time(f);
    check_offers(f);
    check_waits(f);
    check_scores(f);
    mind_the_disk(f);
}

/* One that was revoked may have heard of it, when its join or its commit waited for the disk. */
bool fleet_sent_away(const struct fleet *f)
{
    for (uint32_t i = 0; i < f->cfg.n_clients; i++) {
        uint32_t code = 0;
        if (elv_sim_ended(f->w, f->clients[i].node, &code) && code != 0 && !f->clients[i].revoked)
            return true;
    }
    return false;
}

/* A policy that asks for more clients than there are may wait for them first. */
elv_time_us fleet_round_max(const struct elv_job *job)
{
    const bool calls = strcmp(job->sync, "overselect") == 0;
    const double wait_us =
        calls ? elv_param_get(&job->sync_params, "selection_timeout", 30.0 * SECOND) : 0.0;
    return job->deadline_us + (elv_time_us)wait_us;
}
