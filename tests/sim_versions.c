/* SPDX-License-Identifier: Apache-2.0 */
/* What versions are made of. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/sha256.h"
#include "tests/sim_books.h"

void books_free_models(struct version *v)
{
    free(v->w);
    free(v->b);
    free(v->v);
    v->w = v->b = v->v = NULL;
}

static void check_base(struct history *h, uint32_t number, const struct elv_rec_decision *rec)
{
    const struct client *c = &h->clients[number];
    const uint32_t version = books_recipe(h, rec->seq).stream ? rec->version : h->n_versions - 1;
    for (uint32_t i = 0; i < c->n_offers; i++)
        if (c->offers[i].assignment == rec->assignment) {
            if (c->offers[i].version != version || version >= h->n_versions)
                books_wrong(
                    h, "I7: client %" PRIu32 " trained from %" PRIu32 ", is mixed into %" PRIu32,
                    number, c->offers[i].version, version);
            return;
        }
    books_wrong(h, "client %" PRIu32 " contributes to assignment %" PRIu32 " without a ticket",
                number, rec->assignment);
}

static void add_update(struct history *h, const struct recipe *r, uint32_t number,
                       const struct elv_rec_decision *rec, struct recipe_mix *m)
{
    const struct attempt *a = books_attempt(&h->clients[number], rec->assignment, rec->nonce);
    const uint32_t base = rec->version < h->n_versions ? rec->version : 0;
    if (a == NULL)
        books_wrong(h, "client %" PRIu32 " never sent what was accepted for assignment %" PRIu32,
                    number, rec->assignment);
    else
        recipe_add(r, m, rec, a->v, h->versions[base].b);
}

static struct recipe_mix mix_of(struct history *h, const struct recipe *r, uint32_t seq)
{
    struct recipe_mix m = recipe_begin(r, h->n_params, r->stream);
    for (uint32_t number = 1; number <= h->cfg.n_clients; number++)
        for (uint32_t i = 0; i < h->clients[number].n; i++) {
            const struct decision *d = &h->clients[number].decisions[i];
            if (!books_counts(d, seq))
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
    const struct recipe r = books_recipe(h, v->rec.seq);
    struct recipe_mix m = mix_of(h, &r, v->rec.seq);
    char why[RECIPE_WHY_MAX];
    if (m.n == 0 || m.n != v->rec.n_used || m.weight != v->rec.weight_sum)
        books_wrong(h,
                    "I4: round %" PRIu32 " has %" PRIu32 " contributors of weight %" PRIu64
                    ", version %" PRIu32 " says %" PRIu32 " of weight %" PRIu64,
                    v->rec.seq, m.n, m.weight, h->n_versions, v->rec.n_used, v->rec.weight_sum);
    else if (!recipe_check(&r, &m, last->w, last->v, stored, v->v, h->n_failures == 0, why))
        books_wrong(h, "I4: model %" PRIu32 " is not made of its contributors: %s", h->n_versions,
                    why);
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

void books_add_version(struct history *h, const struct version *v)
{
    h->versions = books_more(h->versions, h->n_versions, &h->versions_cap, sizeof *h->versions);
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
        books_wrong(h, "version %" PRIu32 " comes without its model", h->n_versions);
        return NULL;
    }
    float *w = books_zeroed(h->n_params, sizeof *w);
    memcpy(w, file->bytes.at, file->bytes.len); /* files are little-endian, and so are we */
    return w;
}

static void check_digest(struct history *h, const struct version *v)
{
    uint8_t published[32];
    digest(v->b, h->n_params, published);
    if (memcmp(published, v->rec.model, sizeof published) != 0)
        books_wrong(h, "model %" PRIu32 " is not the one its digest names", h->n_versions);
}

static void check_again(struct history *h, uint64_t number, const struct elv_rec_version *rec)
{
    struct version *v = &h->versions[number];
    if (memcmp(rec->model, v->rec.model, sizeof rec->model) != 0)
        books_wrong(h, "I3: version %" PRIu64 " changes its model", number);
    const bool judged = rec->eval.n > 0 && h->cfg.loss != NULL;
    if (judged && fabs(rec->eval.loss - h->cfg.loss(v->b, h->n_params)) > 1e-9 * rec->eval.loss)
        books_wrong(h, "version %" PRIu64 " has the evaluation of another", number);
    v->rec.eval = rec->eval;
}

void books_note_version(struct history *h, const struct elv_store_op *s,
                        const struct elv_actions *did)
{
    struct version v = {.step = h->step};
    if (elv_rec_version_decode(s->bytes, &v.rec) != ELV_OK) {
        books_wrong(h, "a version that cannot be read");
        return;
    }
    if (s->number < h->n_versions) { /* its evaluation came in */
        check_again(h, s->number, &v.rec);
        return;
    }
    if (s->number != h->n_versions) {
        books_wrong(h, "I3: version %" PRIu64 " follows %" PRIu32, s->number, h->n_versions - 1);
        return;
    }
    v.b = model_in(h, file_of(did, ELV_FILE_MODEL, h->n_versions));
    if (v.b == NULL)
        return;
    v.w = v.rec.master ? model_in(h, file_of(did, ELV_FILE_MASTER, h->n_versions)) : NULL;
    if (v.w == NULL) {
        v.w = books_zeroed(h->n_params, sizeof *v.w);
        memcpy(v.w, v.b, h->n_params * sizeof *v.w);
    }
    v.v = books_zeroed(h->n_params, sizeof *v.v);
    if (s->number > 0) {
        check_contents(h, &v, v.w);
        h->sums.versions++;
    }
    if (v.rec.seq != 0 && books_versions(h, v.rec.seq) > 0)
        books_wrong(h, "I2: round %" PRIu32 " makes two versions", v.rec.seq);
    check_digest(h, &v);
    books_add_version(h, &v);
}

bool history_published(const struct history *h, uint32_t version, const uint8_t digest[32])
{
    return version < h->n_versions && memcmp(h->versions[version].rec.model, digest,
                                             sizeof h->versions[version].rec.model) == 0;
}
