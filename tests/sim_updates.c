/* SPDX-License-Identifier: Apache-2.0 */
/* What clients sent, and what was decided about it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "tests/sim_books.h"

struct client *books_client(struct history *h, uint64_t number)
{
    if (number == 0 || number > h->cfg.n_clients) {
        books_wrong(h, "client number %" PRIu64 " does not exist", number);
        number = 0;
    }
    return &h->clients[number];
}

struct attempt *books_attempt(struct client *c, uint32_t assignment, uint64_t nonce)
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
        a->v = books_zeroed(h->n_params, sizeof *a->v);
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

static void note_values(struct history *h, struct client *c, uint32_t assignment,
                        const struct elv_chunk *chunk, struct elv_bytes whole, const float *values)
{
    const uint64_t nonce = nonce_of(chunk->tag);
    struct attempt *a = books_attempt(c, assignment, nonce);
    if (a == NULL)
        a = new_attempt(h, c, assignment, nonce);
    memcpy(a->v + chunk->first, values, chunk->count * sizeof *values);
    if (chunk->index < PIECES) {
        a->pieces[chunk->index].first = chunk->first;
        a->pieces[chunk->index].count = chunk->count;
        elv_chunk_hash(whole, a->pieces[chunk->index].hash);
    }
}

static bool note_chunk(struct history *h, struct client *c, const struct elv_request *r)
{
    uint8_t inflated[ELV_CHUNK_PAYLOAD_MAX];
    struct elv_chunk chunk;
    if (elv_chunk_decode(r->body, &chunk) != ELV_OK || chunk.first >= h->n_params ||
        chunk.count > h->n_params - chunk.first)
        return false;
    const struct elv_codec *codec = elv_codec_by_id(chunk.codec);
    if (!inflate(h, &chunk, inflated) || codec == NULL)
        return false;
    float *values = books_zeroed(chunk.count, sizeof *values);
    const bool good = elv_codec_decode(codec, chunk.payload, chunk.count, values) == ELV_OK;
    if (good)
        note_values(h, c, r->assignment, &chunk, r->body, values);
    free(values);
    return good;
}

void history_client(struct history *h, uint32_t number, bool honest, const struct elv_actions *did)
{
    for (uint32_t i = 0; i < did->n; i++) {
        const struct elv_request *r = &did->at[i].request;
        if (did->at[i].kind != ELV_DO_SEND || r->op != ELV_OP_UPDATE_CHUNK)
            continue;
        if (!note_chunk(h, books_client(h, number), r) && honest)
            books_wrong(h, "client %" PRIu32 " sent a chunk that is none", number);
    }
}

bool books_same(const struct elv_rec_decision *a, const struct elv_rec_decision *b)
{
    return a->assignment == b->assignment && a->seq == b->seq && a->decision == b->decision &&
           a->reason == b->reason && a->weight == b->weight && a->nonce == b->nonce;
}

struct decision *books_decision(struct client *c, uint32_t assignment)
{
    for (uint32_t i = c->n; i > 0; i--)
        if (c->decisions[i - 1].rec.assignment == assignment)
            return &c->decisions[i - 1];
    return NULL;
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
    const struct client *c = books_client(h, number);
    const struct attempt *a = books_attempt(books_client(h, number), rec->assignment, rec->nonce);
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
        books_wrong(h, "an update of client %" PRIu64 " is accepted that does not tile the model",
                    number);
    else if (!claimed(c, rec, found))
        books_wrong(h, "an update of client %" PRIu64 " is accepted that its commit does not name",
                    number);
}

bool books_counts(const struct decision *d, uint32_t seq)
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
            n += books_counts(&h->clients[number].decisions[i - 1], seq);
    return n;
}

/* While the disk fails the server may count what is not on it, and take it back. */
static void check_worth(struct history *h, const struct elv_rec_decision *rec)
{
    char why[RECIPE_WHY_MAX];
    const struct recipe r = books_recipe(h, rec->seq);
    if (!recipe_worth(&r, rec, why))
        books_wrong(h, "%s", why);
    const uint32_t since = r.stream ? counted_since(h, rec->version, rec->seq) : 0;
    if (h->n_failures == 0 && rec->staleness != since)
        books_wrong(h,
                    "I7: an update from version %" PRIu32 " is called %" PRIu32
                    " updates stale, not %" PRIu32,
                    rec->version, rec->staleness, since);
}

void books_note_decision(struct history *h, const struct elv_store_op *s)
{
    struct elv_rec_decision rec;
    struct elv_sums sums;
    struct client *c = books_client(h, s->number);
    if (elv_rec_decision_decode(s->bytes, &rec, &sums) != ELV_OK) {
        books_wrong(h, "a decision that cannot be read");
        return;
    }
    const struct decision *before = books_decision(c, rec.assignment);
    if (before != NULL) {
        if (!books_same(&before->rec, &rec))
            books_wrong(h, "I1: assignment %" PRIu32 " of client %" PRIu64 " is decided twice",
                        rec.assignment, s->number);
        return;
    }
    for (uint32_t i = 0; i < c->n && !books_recipe(h, rec.seq).stream; i++)
        if (c->decisions[i].rec.seq == rec.seq && c->decisions[i].rec.weight > 0 && rec.weight > 0)
            books_wrong(h, "I1: client %" PRIu64 " counts twice in round %" PRIu32, s->number,
                        rec.seq);
    if (rec.decision == ELV_ACCEPTED && rec.weight > 0) {
        check_update(h, s->number, &rec);
        check_worth(h, &rec);
    }
    c->decisions = books_more(c->decisions, c->n, &c->cap, sizeof *c->decisions);
    c->decisions[c->n++] = (struct decision){.rec = rec, .step = h->step};
    if (rec.decision == ELV_ACCEPTED)
        h->sums.accepted++;
    else
        h->sums.refused++;
}
