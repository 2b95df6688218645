/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_books.h"

void books_wrong(struct history *h, const char *format, ...)
{
    if (h->wrong[0] != '\0')
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(h->wrong, sizeof h->wrong, format, args);
    va_end(args);
}

void *books_more(void *at, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return at;
    *cap = *cap == 0 ? 16 : 2 * *cap;
    void *p = realloc(at, *cap * size);
    if (p == NULL)
        abort();
    return p;
}

void *books_zeroed(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL)
        abort();
    return p;
}

struct history *history_new(const struct history_cfg *cfg)
{
    struct history *h = books_zeroed(1, sizeof *h);
    h->cfg = *cfg;
    h->n_params = cfg->job->model.n_shared;
    h->clients = books_zeroed(cfg->n_clients + 1, sizeof *h->clients);
    return h;
}

void history_started(struct history *h, const struct elv_scales *scales)
{
    recipe_of(&h->recipe, h->cfg.job);
    h->recipe.scales = *scales;
}

void history_free(struct history *h)
{
    for (uint32_t i = 0; i <= h->cfg.n_clients; i++) {
        for (uint32_t k = 0; k < ATTEMPTS; k++)
            free(h->clients[i].attempts[k].v);
        free(h->clients[i].decisions);
        free(h->clients[i].offers);
    }
    for (uint32_t i = 0; i < h->n_versions; i++)
        books_free_models(&h->versions[i]);
    books_free_models(&h->ghost);
    free(h->clients);
    free(h->versions);
    free(h->asked);
    free(h->stored);
    free(h->given_up);
    free(h->rounds);
    free(h);
}

const char *history_wrong(const struct history *h) { return h->wrong[0] == '\0' ? NULL : h->wrong; }

/* What the server counts by in round `seq`, which it may have opened under another policy. */
struct recipe books_recipe(const struct history *h, uint32_t seq)
{
    struct recipe r = h->recipe;
    r.stream = seq < h->n_rounds && h->rounds[seq].stream;
    if (seq < h->n_rounds)
        r.scales.weight_bits = h->rounds[seq].weight_bits;
    return r;
}

uint32_t books_versions(const struct history *h, uint32_t seq)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < h->n_versions; i++)
        n += h->versions[i].rec.seq == seq;
    return n;
}

struct history_sums history_sums(const struct history *h)
{
    struct history_sums sums = h->sums;
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = 0; i < h->clients[number].n; i++) {
            const struct elv_rec_decision *d = &h->clients[number].decisions[i].rec;
            sums.abandoned += d->weight > 0 && books_versions(h, d->seq) == 0;
        }
    return sums;
}

uint32_t history_answers(const struct history *h, uint32_t seq)
{
    uint32_t n = 0;
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = 0; i < h->clients[number].n; i++) {
            const struct elv_rec_decision *d = &h->clients[number].decisions[i].rec;
            n += d->seq == seq && d->decision == ELV_ACCEPTED && d->status == ELV_STATUS_DONE;
        }
    return n;
}

struct disk_decision {
    uint32_t client;
    bool found;
    struct elv_rec_decision rec;
};

static enum elv_err pick_decision(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct disk_decision *d = ctx;
    struct elv_sums sums;
    if (number != d->client)
        return ELV_OK;
    d->found = true;
    return elv_rec_decision_decode(value, &d->rec, &sums);
}

static bool on_disk(struct history *h, uint32_t client, struct elv_rec_decision *rec)
{
    struct disk_decision d = {.client = client};
    enum elv_err err = ELV_ERR_IO;
    for (uint32_t try = 0; try < 100 && err == ELV_ERR_IO;
         try++) /* the disk may be having a bad spell */
        err = h->cfg.disk.scan(h->cfg.disk.self, ELV_TABLE_DECISION, &d, pick_decision);
    if (err != ELV_OK)
        books_wrong(h, "decision of client %" PRIu32 ": %s", client, elv_err_text(err));
    *rec = d.rec;
    return d.found;
}

static void note_claim(struct history *h, const struct elv_event *ev)
{
    struct elv_commit commit;
    struct client *c = books_client(h, ev->peer);
    if (elv_commit_decode(ev->request.body, &commit) != ELV_OK)
        return;
    struct claim *claim = &c->claims[c->next_claim++ % CLAIMS];
    *claim = (struct claim){
        .assignment = ev->request.assignment, .n_chunks = commit.n_chunks, .nonce = commit.nonce};
    memcpy(claim->digest, commit.digest, sizeof claim->digest);
}

static void note_request(struct history *h, const struct elv_event *ev)
{
    if (ev->request.op != ELV_OP_COMMIT && ev->request.op != ELV_OP_TICKET)
        return;
    if (ev->request.op == ELV_OP_COMMIT)
        note_claim(h, ev);
    h->asked = books_more(h->asked, h->n_asked, &h->asked_cap, sizeof *h->asked);
    h->asked[h->n_asked++] = (struct asked){
        .id = ev->id, .peer = ev->peer, .assignment = ev->request.assignment, .op = ev->request.op};
}

static void check_accepted(struct history *h, const struct asked *q)
{
    struct client *c = books_client(h, q->peer);
    struct decision *d = books_decision(c, q->assignment);
    if (d == NULL || d->rec.decision != ELV_ACCEPTED) {
        books_wrong(
            h, "I2: client %" PRIu32 " assignment %" PRIu32 " is said accepted, but not recorded",
            q->peer, q->assignment);
        return;
    }
    struct elv_rec_decision rec;
    if (!d->acknowledged && (!on_disk(h, q->peer, &rec) || !books_same(&rec, &d->rec)))
        books_wrong(
            h, "I2: client %" PRIu32 " assignment %" PRIu32 " is acknowledged, but not durable",
            q->peer, q->assignment);
    d->acknowledged = true;
}

static void check_refused(struct history *h, const struct asked *q, enum elv_reason reason)
{
    const struct decision *d = books_decision(books_client(h, q->peer), q->assignment);
    if (d != NULL && d->acknowledged && d->rec.decision == ELV_ACCEPTED)
        books_wrong(h,
                    "I2: client %" PRIu32 " assignment %" PRIu32 " was accepted, now refused: %s",
                    q->peer, q->assignment, elv_reason_text(reason));
}

static void check_commit(struct history *h, const struct asked *q, const struct elv_response *r)
{
    struct elv_verdict v;
    if (!elv_code_is_success(r->code) || elv_verdict_decode(r->body, &v) != ELV_OK)
        return;
    if (v.decision == ELV_ACCEPTED)
        check_accepted(h, q);
    else if (v.decision == ELV_REFUSED)
        check_refused(h, q, v.reason);
}

static void check_ticket(struct history *h, const struct asked *q, const struct elv_response *r)
{
    struct elv_ticket t;
    struct client *c = books_client(h, q->peer);
    if (!elv_code_is_success(r->code) || elv_ticket_decode(r->body, &t) != ELV_OK ||
        (t.what != ELV_WHAT_TRAIN && t.what != ELV_WHAT_EVALUATE))
        return;
    if (t.version >= h->n_versions ||
        memcmp(t.model, h->versions[t.version].rec.model, sizeof t.model) != 0) {
        books_wrong(h,
                    "I7: client %" PRIu32 " is given version %" PRIu32 " that was never published",
                    q->peer, t.version);
        return;
    }
    const bool may_be_last = t.version >= h->cfg.job->rounds || h->cfg.job->target_accuracy > 0.0;
    if (t.what == ELV_WHAT_EVALUATE && (t.version != h->n_versions - 1 || !may_be_last))
        books_wrong(
            h, "I7: client %" PRIu32 " is to evaluate version %" PRIu32 ", which is not the last",
            q->peer, t.version);
    for (uint32_t i = 0; i < c->n_offers; i++)
        if (c->offers[i].assignment == t.assignment) {
            if (c->offers[i].version != t.version)
                books_wrong(h,
                            "I7: assignment %" PRIu32 " of client %" PRIu32 " names two versions",
                            t.assignment, q->peer);
            return;
        }
    c->offers = books_more(c->offers, c->n_offers, &c->offers_cap, sizeof *c->offers);
    c->offers[c->n_offers++] = (struct offer){.assignment = t.assignment, .version = t.version};
}

static void check_reply(struct history *h, const struct elv_action *a)
{
    for (uint32_t i = 0; i < h->n_asked; i++) {
        const struct asked q = h->asked[i];
        if (q.id != a->id)
            continue;
        h->asked[i] = h->asked[--h->n_asked];
        if (q.op == ELV_OP_COMMIT)
            check_commit(h, &q, &a->response);
        else
            check_ticket(h, &q, &a->response);
        return;
    }
}

/* A round's record goes with the version that it made, or without. */
static void note_round_end(struct history *h, uint32_t seq)
{
    h->given_up = books_more(h->given_up, h->n_given_up, &h->given_up_cap, sizeof *h->given_up);
    h->given_up[h->n_given_up++] = seq;
}

static void note_round(struct history *h, const struct elv_store_op *s)
{
    struct elv_rec_round rec;
    if (elv_rec_round_decode(s->bytes, &rec) != ELV_OK) {
        books_wrong(h, "a round that cannot be read");
        return;
    }
    while (h->n_rounds <= s->number) {
        h->rounds = books_more(h->rounds, h->n_rounds, &h->rounds_cap, sizeof *h->rounds);
        h->rounds[h->n_rounds++] = (struct round){.stream = false};
    }
    h->rounds[s->number] = (struct round){rec.stream, rec.weight_bits};
}

static void note_store(struct history *h, const struct elv_action *a, const struct elv_actions *did)
{
    if (a->id != 0) {
        h->stored = books_more(h->stored, h->n_stored, &h->stored_cap, sizeof *h->stored);
        h->stored[h->n_stored++] = (struct stored){.id = a->id, .step = h->step};
    }
    if (a->store.kind == ELV_STORE_ERASE && a->store.table == ELV_TABLE_ROUND)
        note_round_end(h, (uint32_t)a->store.number);
    if (a->store.kind != ELV_STORE_PUT)
        return;
    if (a->store.table == ELV_TABLE_ROUND)
        note_round(h, &a->store);
    if (a->store.table == ELV_TABLE_DECISION)
        books_note_decision(h, &a->store);
    else if (a->store.table == ELV_TABLE_VERSION)
        books_note_version(h, &a->store, did);
}

const char *history_unfinished(struct history *h)
{
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = 0; i < h->clients[number].n; i++) {
            const struct decision *d = &h->clients[number].decisions[i];
            bool ended = d->rec.weight == 0 || books_versions(h, d->rec.seq) == 1;
            for (uint32_t k = 0; k < h->n_given_up && !ended; k++)
                ended = h->given_up[k] == d->rec.seq;
            if (!ended)
                books_wrong(h,
                            "I2: what client %" PRIu32 " contributed to round %" PRIu32
                            " is in no version, and the round was not given up",
                            number, d->rec.seq);
        }
    return history_wrong(h);
}

static void take_back_decisions(struct history *h, struct client *c, uint64_t step)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (d->step != step) {
            c->decisions[kept++] = *d;
            continue;
        }
        if (d->acknowledged)
            books_wrong(h, "I2: an acknowledged decision was never stored");
        *(d->rec.decision == ELV_ACCEPTED ? &h->sums.accepted : &h->sums.refused) -= 1;
        c->ghost = *d;
    }
    c->n = kept;
}

static void drop_last_version(struct history *h)
{
    h->sums.versions -= h->n_versions > 1;
    books_free_models(&h->versions[--h->n_versions]);
}

/* The disk refused what `step` wanted. */
static void take_back(struct history *h, uint64_t step)
{
    for (uint32_t i = 1; i <= h->cfg.n_clients; i++)
        take_back_decisions(h, &h->clients[i], step);
    if (h->n_versions == 0 || h->versions[h->n_versions - 1].step != step)
        return;
    books_free_models(&h->ghost);
    h->ghost = h->versions[h->n_versions - 1];
    struct version *last = &h->versions[h->n_versions - 1];
    last->w = last->b = last->v = NULL;
    drop_last_version(h);
}

static void note_stored(struct history *h, const struct elv_event *ev)
{
    for (uint32_t i = 0; i < h->n_stored; i++) {
        const struct stored s = h->stored[i];
        if (s.id != ev->id)
            continue;
        h->stored[i] = h->stored[--h->n_stored];
        if (ev->err != ELV_OK) {
            h->n_failures++;
            take_back(h, s.step);
        }
        return;
    }
}

void history_server(struct history *h, const struct elv_event *ev, const struct elv_actions *did)
{
    h->step++;
    if (ev->kind == ELV_EV_REQUEST)
        note_request(h, ev);
    else if (ev->kind == ELV_EV_STORED)
        note_stored(h, ev);
    for (uint32_t i = 0; i < did->n; i++)
        if (did->at[i].kind == ELV_DO_STORE)
            note_store(h, &did->at[i], did);
    for (uint32_t i = 0; i < did->n; i++)
        if (did->at[i].kind == ELV_DO_REPLY)
            check_reply(h, &did->at[i]);
}

static void restart_client(struct history *h, uint32_t number)
{
    struct client *c = &h->clients[number];
    struct elv_rec_decision rec;
    const bool found = on_disk(h, number, &rec);
    if (found && books_decision(c, rec.assignment) == NULL && books_same(&rec, &c->ghost.rec)) {
        c->decisions = books_more(c->decisions, c->n, &c->cap, sizeof *c->decisions);
        c->decisions[c->n++] = c->ghost;
        h->sums.accepted += rec.decision == ELV_ACCEPTED;
        h->sums.refused += rec.decision != ELV_ACCEPTED;
    }
    while (c->n > 0 && !(found && books_same(&c->decisions[c->n - 1].rec, &rec))) {
        const struct decision *d = &c->decisions[--c->n];
        if (d->acknowledged)
            books_wrong(
                h, "I2: the decision about assignment %" PRIu32 " of client %" PRIu32 " is lost",
                d->rec.assignment, number);
        *(d->rec.decision == ELV_ACCEPTED ? &h->sums.accepted : &h->sums.refused) -= 1;
    }
    if (found && c->n == 0)
        books_wrong(h, "the disk knows a decision about client %" PRIu32 " that nobody made",
                    number);
}

static enum elv_err pick_last_version(void *ctx, uint64_t number, struct elv_bytes value)
{
    (void)value;
    *(int64_t *)ctx = (int64_t)number;
    return ELV_OK;
}

void history_restart(struct history *h)
{
    int64_t last = -1;
    h->n_asked = h->n_stored = 0;
    for (uint32_t i = 1; i <= h->cfg.n_clients; i++)
        restart_client(h, i);
    enum elv_err err = ELV_ERR_IO;
    for (uint32_t try = 0; try < 100 && err == ELV_ERR_IO; try++)
        err = h->cfg.disk.scan(h->cfg.disk.self, ELV_TABLE_VERSION, &last, pick_last_version);
    if (last == (int64_t)h->n_versions && h->ghost.w != NULL) {
        h->sums.versions += last > 0;
        books_add_version(h, &h->ghost);
        h->ghost.w = h->ghost.b = h->ghost.v = NULL;
    }
    if (last >= (int64_t)h->n_versions)
        books_wrong(h, "I3: the disk has version %" PRId64 " that nobody made", last);
    while ((int64_t)h->n_versions > last + 1)
        drop_last_version(h);
}
