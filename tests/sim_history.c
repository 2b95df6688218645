/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim_history.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "common/sha256.h"
#include "server/ledger.h"
#include "tests/sim_recipe.h"

enum { ATTEMPTS = 48, PIECES = 64, CLAIMS = 8, WRONG_MAX = 240 };

struct piece { /* one chunk of an attempt; count 0: not sent */
    uint32_t first, count;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
};

/* What a client sent, decoded; a restarted attempt has another nonce. */
struct attempt {
    uint32_t assignment;
    uint64_t nonce;
    float *v; /* [n_params] */
    struct piece pieces[PIECES];
};

struct claim { /* the last commit that arrived */
    uint32_t assignment, n_chunks;
    uint64_t nonce;
    uint8_t digest[ELV_BODY_DIGEST_LEN];
};

struct decision {
    struct elv_rec_decision rec;
    uint64_t step; /* that stored it */
    bool acknowledged;
};

struct offer { /* a ticket with work */
    uint32_t assignment, version;
};

struct client {
    struct attempt attempts[ATTEMPTS];
    uint32_t next_attempt;
    struct claim claims[CLAIMS];
    uint32_t next_claim;
    struct decision *decisions; /* in order; assignments rise */
    uint32_t n, cap;
    struct decision ghost; /* the last one that the disk refused; it may have kept it */
    struct offer *offers;
    uint32_t n_offers, offers_cap;
};

struct version {
    struct elv_rec_version rec;
    uint64_t step;
    float *w; /* the master model: f32 [n_params] */
    float *b; /* the published one */
    float *v; /* the rule's momentum after it */
};

struct asked { /* a request that is owed a reply */
    uint32_t id, peer, assignment;
    enum elv_op op;
};

struct round { /* as it was opened */
    bool stream;
    int32_t weight_bits;
};

struct stored {
    uint32_t id;
    uint64_t step;
};

struct history {
    struct history_cfg cfg;
    struct recipe recipe;
    uint32_t n_params;
    char wrong[WRONG_MAX];
    uint64_t step;
    struct client *clients; /* [n_clients + 1] */
    struct version *versions;
    uint32_t n_versions, versions_cap; /* version i at place i */
    struct version ghost;              /* as for decisions; w NULL: none */
    struct asked *asked;
    uint32_t n_asked, asked_cap;
    struct stored *stored;
    uint32_t n_stored, stored_cap;
    struct round *rounds; /* by sequence number */
    uint32_t n_rounds, rounds_cap;
    uint32_t *given_up; /* rounds that ended without a version */
    uint32_t n_given_up, given_up_cap;
    uint32_t n_failures; /* of the disk: what the server took back is not known */
    struct history_sums sums;
};

static void wrong(struct history *h, const char *format, ...)
{
    if (h->wrong[0] != '\0')
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(h->wrong, sizeof h->wrong, format, args);
    va_end(args);
}

static void *more(void *at, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return at;
    *cap = *cap == 0 ? 16 : 2 * *cap;
    void *p = realloc(at, *cap * size);
    if (p == NULL)
        abort();
    return p;
}

static void *zeroed(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (p == NULL)
        abort();
    return p;
}

struct history *history_new(const struct history_cfg *cfg)
{
    struct history *h = zeroed(1, sizeof *h);
    h->cfg = *cfg;
    h->n_params = cfg->job->model.n_shared;
    h->clients = zeroed(cfg->n_clients + 1, sizeof *h->clients);
    return h;
}

void history_started(struct history *h, const struct elv_scales *scales)
{
    recipe_of(&h->recipe, h->cfg.job);
    h->recipe.scales = *scales;
}

static void free_models(struct version *v)
{
    free(v->w);
    free(v->b);
    free(v->v);
    v->w = v->b = v->v = NULL;
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
        free_models(&h->versions[i]);
    free_models(&h->ghost);
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
static struct recipe recipe_for(const struct history *h, uint32_t seq)
{
    struct recipe r = h->recipe;
    r.stream = seq < h->n_rounds && h->rounds[seq].stream;
    if (seq < h->n_rounds)
        r.scales.weight_bits = h->rounds[seq].weight_bits;
    return r;
}

static uint32_t versions_of(const struct history *h, uint32_t seq)
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
            sums.abandoned += d->weight > 0 && versions_of(h, d->seq) == 0;
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

static struct client *client_of(struct history *h, uint64_t number)
{
    if (number == 0 || number > h->cfg.n_clients) {
        wrong(h, "client number %" PRIu64 " does not exist", number);
        number = 0;
    }
    return &h->clients[number];
}

static struct attempt *attempt_of(struct client *c, uint32_t assignment, uint64_t nonce)
{
    for (uint32_t i = 0; i < ATTEMPTS; i++)
        if (c->attempts[i].assignment == assignment && c->attempts[i].nonce == nonce)
            return &c->attempts[i];
    return NULL;
}

static uint64_t nonce_of(const uint8_t tag[ELV_CHUNK_TAG_LEN])
{
    uint64_t nonce = 0;
    for (unsigned i = 0; i < ELV_CHUNK_TAG_LEN; i++)
        nonce |= (uint64_t)tag[i] << (8 * i);
    return nonce;
}

static struct attempt *new_attempt(struct history *h, struct client *c, uint32_t assignment,
                                   uint64_t nonce)
{
    struct attempt *a = &c->attempts[c->next_attempt++ % ATTEMPTS];
    if (a->v == NULL)
        a->v = zeroed(h->n_params, sizeof *a->v);
    a->assignment = assignment;
    a->nonce = nonce;
    memset(a->pieces, 0, sizeof a->pieces);
    return a;
}

static bool inflate(const struct history *h, struct elv_chunk *c,
                    uint8_t out[ELV_CHUNK_PAYLOAD_MAX])
{
    const struct elv_squeeze *s = h->cfg.squeeze;
    size_t len = 0;
    if (!(c->flags & ELV_CHUNK_DEFLATED))
        return true;
    if (s->inflate(s->self, out, ELV_CHUNK_PAYLOAD_MAX, c->payload, &len) != ELV_OK)
        return false;
    c->payload = (struct elv_bytes){out, len};
    return true;
}

static bool note_chunk(struct history *h, struct client *c, const struct elv_request *r)
{
    uint8_t inflated[ELV_CHUNK_PAYLOAD_MAX];
    struct elv_chunk chunk;
    float values[ELV_CHUNK_PAYLOAD_MAX];
    if (elv_chunk_decode(r->body, &chunk) != ELV_OK || chunk.first >= h->n_params ||
        chunk.count > h->n_params - chunk.first || chunk.count > ELV_CHUNK_PAYLOAD_MAX)
        return false;
    const struct elv_codec *codec = elv_codec_by_id(chunk.codec);
    if (!inflate(h, &chunk, inflated) || codec == NULL ||
        codec->decode(chunk.payload, chunk.count, values) != ELV_OK)
        return false;
    const uint64_t nonce = nonce_of(chunk.tag);
    struct attempt *a = attempt_of(c, r->assignment, nonce);
    if (a == NULL)
        a = new_attempt(h, c, r->assignment, nonce);
    memcpy(a->v + chunk.first, values, chunk.count * sizeof *values);
    if (chunk.index < PIECES) {
        a->pieces[chunk.index].first = chunk.first;
        a->pieces[chunk.index].count = chunk.count;
        elv_chunk_hash(r->body, a->pieces[chunk.index].hash);
    }
    return true;
}

void history_client(struct history *h, uint32_t number, bool honest, const struct elv_actions *did)
{
    for (uint32_t i = 0; i < did->n; i++) {
        const struct elv_request *r = &did->at[i].request;
        if (did->at[i].kind != ELV_DO_SEND || r->op != ELV_OP_UPDATE_CHUNK)
            continue;
        if (!note_chunk(h, client_of(h, number), r) && honest)
            wrong(h, "client %" PRIu32 " sent a chunk that is none", number);
    }
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
        wrong(h, "decision of client %" PRIu32 ": %s", client, elv_err_text(err));
    *rec = d.rec;
    return d.found;
}

static bool same_decision(const struct elv_rec_decision *a, const struct elv_rec_decision *b)
{
    return a->assignment == b->assignment && a->seq == b->seq && a->decision == b->decision &&
           a->reason == b->reason && a->weight == b->weight && a->nonce == b->nonce;
}

static struct decision *decision_of(struct client *c, uint32_t assignment)
{
    for (uint32_t i = c->n; i > 0; i--)
        if (c->decisions[i - 1].rec.assignment == assignment)
            return &c->decisions[i - 1];
    return NULL;
}

static void note_claim(struct history *h, const struct elv_event *ev)
{
    struct elv_commit commit;
    struct client *c = client_of(h, ev->peer);
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
    h->asked = more(h->asked, h->n_asked, &h->asked_cap, sizeof *h->asked);
    h->asked[h->n_asked++] = (struct asked){
        .id = ev->id, .peer = ev->peer, .assignment = ev->request.assignment, .op = ev->request.op};
}

static void check_accepted(struct history *h, const struct asked *q)
{
    struct client *c = client_of(h, q->peer);
    struct decision *d = decision_of(c, q->assignment);
    if (d == NULL || d->rec.decision != ELV_ACCEPTED) {
        wrong(h, "I2: client %" PRIu32 " assignment %" PRIu32 " is said accepted, but not recorded",
              q->peer, q->assignment);
        return;
    }
    struct elv_rec_decision rec;
    if (!d->acknowledged && (!on_disk(h, q->peer, &rec) || !same_decision(&rec, &d->rec)))
        wrong(h, "I2: client %" PRIu32 " assignment %" PRIu32 " is acknowledged, but not durable",
              q->peer, q->assignment);
    d->acknowledged = true;
}

static void check_refused(struct history *h, const struct asked *q, enum elv_reason reason)
{
    const struct decision *d = decision_of(client_of(h, q->peer), q->assignment);
    if (d != NULL && d->acknowledged && d->rec.decision == ELV_ACCEPTED)
        wrong(h, "I2: client %" PRIu32 " assignment %" PRIu32 " was accepted, now refused: %s",
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
    struct client *c = client_of(h, q->peer);
    if (!elv_code_is_success(r->code) || elv_ticket_decode(r->body, &t) != ELV_OK ||
        (t.what != ELV_WHAT_TRAIN && t.what != ELV_WHAT_EVALUATE))
        return;
    if (t.version >= h->n_versions ||
        memcmp(t.model, h->versions[t.version].rec.model, sizeof t.model) != 0) {
        wrong(h, "I7: client %" PRIu32 " is given version %" PRIu32 " that was never published",
              q->peer, t.version);
        return;
    }
    const bool may_be_last = t.version >= h->cfg.job->rounds || h->cfg.job->target_accuracy > 0.0;
    if (t.what == ELV_WHAT_EVALUATE && (t.version != h->n_versions - 1 || !may_be_last))
        wrong(h, "I7: client %" PRIu32 " is to evaluate version %" PRIu32 ", which is not the last",
              q->peer, t.version);
    for (uint32_t i = 0; i < c->n_offers; i++)
        if (c->offers[i].assignment == t.assignment) {
            if (c->offers[i].version != t.version)
                wrong(h, "I7: assignment %" PRIu32 " of client %" PRIu32 " names two versions",
                      t.assignment, q->peer);
            return;
        }
    c->offers = more(c->offers, c->n_offers, &c->offers_cap, sizeof *c->offers);
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

static bool claimed(const struct client *c, const struct elv_rec_decision *rec,
                    const uint8_t digest[ELV_BODY_DIGEST_LEN])
{
    for (uint32_t i = 0; i < CLAIMS; i++) {
        const struct claim *claim = &c->claims[i];
        if (claim->assignment == rec->assignment && claim->nonce == rec->nonce &&
            claim->n_chunks == rec->n_chunks &&
            memcmp(claim->digest, digest, sizeof claim->digest) == 0)
            return true;
    }
    return false;
}

/* An update that counts tiles the model and is what its commit said. */
static void check_update(struct history *h, uint64_t number, const struct elv_rec_decision *rec)
{
    const struct client *c = client_of(h, number);
    const struct attempt *a = attempt_of(client_of(h, number), rec->assignment, rec->nonce);
    uint32_t end = 0;
    struct elv_body_digest digest;
    uint8_t found[ELV_BODY_DIGEST_LEN];
    elv_body_digest_init(&digest);
    for (uint32_t i = 0; a != NULL && i < rec->n_chunks && i < PIECES; i++) {
        if (a->pieces[i].first != end)
            break;
        end += a->pieces[i].count;
        elv_body_digest_add(&digest, a->pieces[i].hash);
    }
    elv_body_digest_final(&digest, found);
    if (end != h->n_params)
        wrong(h, "an update of client %" PRIu64 " is accepted that does not tile the model",
              number);
    else if (!claimed(c, rec, found))
        wrong(h, "an update of client %" PRIu64 " is accepted that its commit does not name",
              number);
}

static bool counts(const struct decision *d, uint32_t seq)
{
    return d->rec.seq == seq && d->rec.decision == ELV_ACCEPTED && d->rec.weight > 0;
}

/* Updates that have counted since `version` was published. */
static uint32_t counted_since(const struct history *h, uint32_t version, uint32_t seq)
{
    uint32_t n = 0;
    for (uint32_t i = version + 1; i < h->n_versions; i++)
        n += h->versions[i].rec.n_used;
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = h->clients[number].n; i > 0; i--)
            n += counts(&h->clients[number].decisions[i - 1], seq);
    return n;
}

/* While the disk fails the server may count what is not on it, and take it back. */
static void check_worth(struct history *h, const struct elv_rec_decision *rec)
{
    char why[RECIPE_WHY_MAX];
    const struct recipe r = recipe_for(h, rec->seq);
    if (!recipe_worth(&r, rec, why))
        wrong(h, "%s", why);
    const uint32_t since = r.stream ? counted_since(h, rec->version, rec->seq) : 0;
    if (h->n_failures == 0 && rec->staleness != since)
        wrong(h,
              "I7: an update from version %" PRIu32 " is called %" PRIu32
              " updates stale, not %" PRIu32,
              rec->version, rec->staleness, since);
}

static void note_decision(struct history *h, const struct elv_store_op *s)
{
    struct elv_rec_decision rec;
    struct elv_sums sums;
    struct client *c = client_of(h, s->number);
    if (elv_rec_decision_decode(s->bytes, &rec, &sums) != ELV_OK) {
        wrong(h, "a decision that cannot be read");
        return;
    }
    const struct decision *before = decision_of(c, rec.assignment);
    if (before != NULL) {
        if (!same_decision(&before->rec, &rec))
            wrong(h, "I1: assignment %" PRIu32 " of client %" PRIu64 " is decided twice",
                  rec.assignment, s->number);
        return;
    }
    for (uint32_t i = 0; i < c->n && !recipe_for(h, rec.seq).stream; i++)
        if (c->decisions[i].rec.seq == rec.seq && c->decisions[i].rec.weight > 0 && rec.weight > 0)
            wrong(h, "I1: client %" PRIu64 " counts twice in round %" PRIu32, s->number, rec.seq);
    if (rec.decision == ELV_ACCEPTED && rec.weight > 0) {
        check_update(h, s->number, &rec);
        check_worth(h, &rec);
    }
    c->decisions = more(c->decisions, c->n, &c->cap, sizeof *c->decisions);
    c->decisions[c->n++] = (struct decision){.rec = rec, .step = h->step};
    if (rec.decision == ELV_ACCEPTED)
        h->sums.accepted++;
    else
        h->sums.refused++;
}

static void check_base(struct history *h, uint32_t number, const struct elv_rec_decision *rec)
{
    const struct client *c = &h->clients[number];
    const uint32_t version = recipe_for(h, rec->seq).stream ? rec->version : h->n_versions - 1;
    for (uint32_t i = 0; i < c->n_offers; i++)
        if (c->offers[i].assignment == rec->assignment) {
            if (c->offers[i].version != version || version >= h->n_versions)
                wrong(h, "I7: client %" PRIu32 " trained from %" PRIu32 ", is mixed into %" PRIu32,
                      number, c->offers[i].version, version);
            return;
        }
    wrong(h, "client %" PRIu32 " contributes to assignment %" PRIu32 " without a ticket", number,
          rec->assignment);
}

static void add_update(struct history *h, const struct recipe *r, uint32_t number,
                       const struct elv_rec_decision *rec, struct recipe_mix *m)
{
    const struct attempt *a = attempt_of(&h->clients[number], rec->assignment, rec->nonce);
    const uint32_t base = rec->version < h->n_versions ? rec->version : 0;
    if (a == NULL)
        wrong(h, "client %" PRIu32 " never sent what was accepted for assignment %" PRIu32, number,
              rec->assignment);
    else
        recipe_add(r, m, rec, a->v, h->versions[base].b);
}

static struct recipe_mix mix_of(struct history *h, const struct recipe *r, uint32_t seq)
{
    struct recipe_mix m = recipe_begin(r, h->n_params, r->stream);
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = 0; i < h->clients[number].n; i++) {
            const struct decision *d = &h->clients[number].decisions[i];
            if (!counts(d, seq))
                continue;
            check_base(h, number, &d->rec);
            add_update(h, r, number, &d->rec, &m);
        }
    return m;
}

/* The version that `v` is to be, with `stored` as its master model. */
static void check_contents(struct history *h, struct version *v, const float *stored)
{
    const struct version *last = &h->versions[h->n_versions - 1];
    const struct recipe r = recipe_for(h, v->rec.seq);
    struct recipe_mix m = mix_of(h, &r, v->rec.seq);
    char why[RECIPE_WHY_MAX];
    if (m.n == 0 || m.n != v->rec.n_used || m.weight != v->rec.weight_sum)
        wrong(h,
              "I4: round %" PRIu32 " has %" PRIu32 " contributors of weight %" PRIu64
              ", version %" PRIu32 " says %" PRIu32 " of weight %" PRIu64,
              v->rec.seq, m.n, m.weight, h->n_versions, v->rec.n_used, v->rec.weight_sum);
    else if (!recipe_check(&r, &m, last->w, last->v, stored, v->v, h->n_failures == 0, why))
        wrong(h, "I4: model %" PRIu32 " is not made of its contributors: %s", h->n_versions, why);
    recipe_end(&m);
}

static void digest(const float *v, uint32_t n, uint8_t out[32])
{
    struct elv_sha256 sha;
    elv_sha256_init(&sha);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        const uint8_t le[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
                               (uint8_t)(bits >> 24)};
        elv_sha256_update(&sha, le, sizeof le);
    }
    elv_sha256_final(&sha, out);
}

static void add_version(struct history *h, const struct version *v)
{
    h->versions = more(h->versions, h->n_versions, &h->versions_cap, sizeof *h->versions);
    h->versions[h->n_versions++] = *v;
}

/* The master model is in a file of its own only where it differs from the published one. */
static const struct elv_store_op *file_of(const struct elv_actions *did, enum elv_file kind,
                                          uint32_t version)
{
    for (uint32_t i = 0; i < did->n; i++) {
        const struct elv_action *a = &did->at[i];
        if (a->kind == ELV_DO_STORE && a->store.kind == ELV_STORE_FILE &&
            a->store.table == (uint32_t)kind && a->store.number == version)
            return &a->store;
    }
    return NULL;
}

static float *model_in(struct history *h, const struct elv_store_op *file)
{
    if (file == NULL || file->bytes.len != 4u * (size_t)h->n_params) {
        wrong(h, "version %" PRIu32 " comes without its model", h->n_versions);
        return NULL;
    }
    float *w = zeroed(h->n_params, sizeof *w);
    memcpy(w, file->bytes.at, file->bytes.len); /* files are little-endian, and so are we */
    return w;
}

static void check_digest(struct history *h, const struct version *v)
{
    uint8_t published[32];
    digest(v->b, h->n_params, published);
    if (memcmp(published, v->rec.model, sizeof published) != 0)
        wrong(h, "model %" PRIu32 " is not the one its digest names", h->n_versions);
}

static void check_again(struct history *h, uint64_t number, const struct elv_rec_version *rec)
{
    struct version *v = &h->versions[number];
    if (memcmp(rec->model, v->rec.model, sizeof rec->model) != 0)
        wrong(h, "I3: version %" PRIu64 " changes its model", number);
    const bool judged = rec->eval.n > 0 && h->cfg.loss != NULL;
    if (judged && fabs(rec->eval.loss - h->cfg.loss(v->b, h->n_params)) > 1e-9 * rec->eval.loss)
        wrong(h, "version %" PRIu64 " has the evaluation of another", number);
    v->rec.eval = rec->eval;
}

static void note_version(struct history *h, const struct elv_store_op *s,
                         const struct elv_actions *did)
{
    struct version v = {.step = h->step};
    if (elv_rec_version_decode(s->bytes, &v.rec) != ELV_OK) {
        wrong(h, "a version that cannot be read");
        return;
    }
    if (s->number < h->n_versions) { /* its evaluation came in */
        check_again(h, s->number, &v.rec);
        return;
    }
    if (s->number != h->n_versions) {
        wrong(h, "I3: version %" PRIu64 " follows %" PRIu32, s->number, h->n_versions - 1);
        return;
    }
    v.b = model_in(h, file_of(did, ELV_FILE_MODEL, h->n_versions));
    if (v.b == NULL)
        return;
    v.w = v.rec.master ? model_in(h, file_of(did, ELV_FILE_MASTER, h->n_versions)) : NULL;
    if (v.w == NULL) {
        v.w = zeroed(h->n_params, sizeof *v.w);
        memcpy(v.w, v.b, h->n_params * sizeof *v.w);
    }
    v.v = zeroed(h->n_params, sizeof *v.v);
    if (s->number > 0) {
        check_contents(h, &v, v.w);
        h->sums.versions++;
    }
    if (v.rec.seq != 0 && versions_of(h, v.rec.seq) > 0)
        wrong(h, "I2: round %" PRIu32 " makes two versions", v.rec.seq);
    check_digest(h, &v);
    add_version(h, &v);
}

/* A round's record goes with the version that it made, or without. */
static void note_round_end(struct history *h, uint32_t seq)
{
    h->given_up = more(h->given_up, h->n_given_up, &h->given_up_cap, sizeof *h->given_up);
    h->given_up[h->n_given_up++] = seq;
}

static void note_round(struct history *h, const struct elv_store_op *s)
{
    struct elv_rec_round rec;
    if (elv_rec_round_decode(s->bytes, &rec) != ELV_OK) {
        wrong(h, "a round that cannot be read");
        return;
    }
    while (h->n_rounds <= s->number) {
        h->rounds = more(h->rounds, h->n_rounds, &h->rounds_cap, sizeof *h->rounds);
        h->rounds[h->n_rounds++] = (struct round){.stream = false};
    }
    h->rounds[s->number] = (struct round){rec.stream, rec.weight_bits};
}

static void note_store(struct history *h, const struct elv_action *a, const struct elv_actions *did)
{
    if (a->id != 0) {
        h->stored = more(h->stored, h->n_stored, &h->stored_cap, sizeof *h->stored);
        h->stored[h->n_stored++] = (struct stored){.id = a->id, .step = h->step};
    }
    if (a->store.kind == ELV_STORE_ERASE && a->store.table == ELV_TABLE_ROUND)
        note_round_end(h, (uint32_t)a->store.number);
    if (a->store.kind != ELV_STORE_PUT)
        return;
    if (a->store.table == ELV_TABLE_ROUND)
        note_round(h, &a->store);
    if (a->store.table == ELV_TABLE_DECISION)
        note_decision(h, &a->store);
    else if (a->store.table == ELV_TABLE_VERSION)
        note_version(h, &a->store, did);
}

const char *history_unfinished(struct history *h)
{
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = 0; i < h->clients[number].n; i++) {
            const struct decision *d = &h->clients[number].decisions[i];
            bool ended = d->rec.weight == 0 || versions_of(h, d->rec.seq) == 1;
            for (uint32_t k = 0; k < h->n_given_up && !ended; k++)
                ended = h->given_up[k] == d->rec.seq;
            if (!ended)
                wrong(h,
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
            wrong(h, "I2: an acknowledged decision was never stored");
        *(d->rec.decision == ELV_ACCEPTED ? &h->sums.accepted : &h->sums.refused) -= 1;
        c->ghost = *d;
    }
    c->n = kept;
}

static void drop_last_version(struct history *h)
{
    h->sums.versions -= h->n_versions > 1;
    free_models(&h->versions[--h->n_versions]);
}

/* The disk refused what `step` wanted. */
static void take_back(struct history *h, uint64_t step)
{
    for (uint32_t i = 1; i <= h->cfg.n_clients; i++)
        take_back_decisions(h, &h->clients[i], step);
    if (h->n_versions == 0 || h->versions[h->n_versions - 1].step != step)
        return;
    free_models(&h->ghost);
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
    if (found && decision_of(c, rec.assignment) == NULL && same_decision(&rec, &c->ghost.rec)) {
        c->decisions = more(c->decisions, c->n, &c->cap, sizeof *c->decisions);
        c->decisions[c->n++] = c->ghost;
        h->sums.accepted += rec.decision == ELV_ACCEPTED;
        h->sums.refused += rec.decision != ELV_ACCEPTED;
    }
    while (c->n > 0 && !(found && same_decision(&c->decisions[c->n - 1].rec, &rec))) {
        const struct decision *d = &c->decisions[--c->n];
        if (d->acknowledged)
            wrong(h, "I2: the decision about assignment %" PRIu32 " of client %" PRIu32 " is lost",
                  d->rec.assignment, number);
        *(d->rec.decision == ELV_ACCEPTED ? &h->sums.accepted : &h->sums.refused) -= 1;
    }
    if (found && c->n == 0)
        wrong(h, "the disk knows a decision about client %" PRIu32 " that nobody made", number);
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
        add_version(h, &h->ghost);
        h->ghost.w = h->ghost.b = h->ghost.v = NULL;
    }
    if (last >= (int64_t)h->n_versions)
        wrong(h, "I3: the disk has version %" PRId64 " that nobody made", last);
    while ((int64_t)h->n_versions > last + 1)
        drop_last_version(h);
}
