/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_local.h"

#include <stdlib.h>
#include <string.h>

#include "client/settle.h"
#include "common/arena.h"
#include "common/rng.h"
#include "common/size.h"

enum { SLICES = 1024, STEPS = 1024 }; /* of a work's loop; the result is the same for any number */

struct own { /* a client's, once it has trained */
    struct elv_residual residual;
    struct elv_delta_cfg made; /* of the vector */
    float *vector;             /* f32 [n_shared] as it was sent, until that is decided */
    double whole;              /* see struct elv_delta */
    void *memory;              /* residual and velocity */
};

struct elv_lab_local {
    struct elv_lab_local_cfg cfg;
    uint32_t n_local; /* parameters that never travel */

    float *trained, *base; /* [n_params] */
    uint32_t *first;       /* [first_cap] */
    uint32_t first_cap;
    float *values;  /* [ELV_PACK_VALUES] */
    uint8_t *bytes; /* [ELV_CHUNK_PAYLOAD_MAX] */
    struct elv_codec_plan plan_of_codec;
    struct own **own; /* [n_clients], NULL until they train; NULL: nothing is fed back */
    float **kept;     /* [n_clients] local layers [n_local] of those that have trained; or NULL */
    struct elv_pack pack;
    struct elv_delta delta;

    struct elv_local trainer;
    uint32_t batch; /* it is planned for; 0: none */
    void *plan;
    size_t plan_len;
};

/* Memory. */

static void *take(size_t count, size_t size)
{
    size_t len;
    if (!elv_size_mul(count, size, &len))
        return NULL;
    return calloc(len > 0 ? len : 1, 1);
}

static bool lay_out(struct elv_lab_local *l)
{
    const struct elv_model *m = l->cfg.model;
    l->trained = take(m->n_params, sizeof *l->trained);
    l->base = take(m->n_params, sizeof *l->base);
    l->first = take(l->first_cap, sizeof *l->first);
    l->values = take(ELV_PACK_VALUES, sizeof *l->values);
    l->bytes = take(ELV_CHUNK_PAYLOAD_MAX, 1);
    if (l->n_local > 0)
        l->kept = take(l->cfg.n_clients, sizeof *l->kept);
    const bool feeds_back =
        elv_job_keeps(l->cfg.job) != ELV_FEEDBACK_NONE && elv_residual_helps(&l->cfg.job->up[0]);
    if (feeds_back && (l->own = take(l->cfg.n_clients, sizeof(struct own *))) == NULL)
        return false;
    return l->trained != NULL && l->base != NULL && l->first != NULL && l->values != NULL &&
           l->bytes != NULL && (l->n_local == 0 || l->kept != NULL);
}

enum elv_err elv_lab_local_new(struct elv_lab_local **out, const struct elv_lab_local_cfg *cfg)
{
    const uint32_t first_cap = elv_delta_first_cap(cfg->model, &cfg->job->up[0]);
    if (first_cap == 0)
        return ELV_ERR_UNSUPPORTED;
    struct elv_lab_local *l = calloc(1, sizeof *l);
    if (l == NULL)
        return ELV_ERR_MEMORY;
    l->cfg = *cfg;
    l->first_cap = first_cap;
    l->n_local = cfg->model->n_params - cfg->model->n_shared;
    if (!lay_out(l)) {
        elv_lab_local_free(l);
        return ELV_ERR_MEMORY;
    }
    l->pack = (struct elv_pack){.squeeze = cfg->squeeze,
                                .deflate = cfg->job->deflate,
                                .values = l->values,
                                .bytes = l->bytes};
    *out = l;
    return ELV_OK;
}

static void free_own(struct own *o)
{
    if (o == NULL)
        return;
    free(o->vector);
    free(o->memory);
    free(o);
}

void elv_lab_local_free(struct elv_lab_local *l)
{
    if (l == NULL)
        return;
    for (uint32_t i = 0; l->own != NULL && i < l->cfg.n_clients; i++)
        free_own(l->own[i]);
    free(l->own);
    for (uint32_t i = 0; l->kept != NULL && i < l->cfg.n_clients; i++)
        free(l->kept[i]);
    free(l->kept);
    free(l->trained);
    free(l->base);
    free(l->first);
    free(l->values);
    free(l->bytes);
    free(l->plan);
    free(l);
}

/* A new plan when a task asks for another batch size, as client/builtin.c makes it. */
static enum elv_err fit(struct elv_lab_local *l, uint32_t batch)
{
    if (batch == l->batch)
        return ELV_OK;
    const bool reference = l->cfg.job->arithmetic == ELV_ARITHMETIC_REFERENCE;
    const struct elv_local_cfg plan = {
        .model = l->cfg.model,
        .train = l->cfg.train,
        .test = l->cfg.test,
        .kernels = reference ? NULL : l->cfg.kernels,
        .arithmetic = l->cfg.job->arithmetic,
        .batch = batch,
        .examples = l->cfg.examples,
        .momentum = l->cfg.job->momentum != 0.0f,
        .proximal = l->cfg.job->proximal != 0.0f,
    };
    const size_t len = elv_local_mem(&plan);
    l->batch = 0;
    if (len == 0)
        return ELV_ERR_MEMORY;
    if (len > l->plan_len) {
        free(l->plan);
        l->plan = aligned_alloc(ELV_ARENA_ALIGN, len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN);
        l->plan_len = l->plan != NULL ? len : 0;
    }
    if (l->plan == NULL)
        return ELV_ERR_MEMORY;
    const enum elv_err err = elv_local_init(&l->trainer, &plan, l->plan, l->plan_len);
    l->batch = err == ELV_OK ? batch : 0;
    return err;
}

/* Layers that stay with their client. */

/* Copies them, one after the other, out of a flat vector or into one. */
static void copy_local(const struct elv_model *m, float *flat, float *kept, bool out)
{
    for (uint32_t i = 0; i < m->n_layers; i++) {
        const struct elv_layer *y = &m->layers[i];
        const size_t n = y->n_weight + y->n_bias;
        if (!y->local || n == 0)
            continue;
        if (out)
            memcpy(kept, flat + y->weight_at, n * sizeof *kept);
        else
            memcpy(flat + y->weight_at, kept, n * sizeof *kept);
        kept += n;
    }
}

/* The whole vector a client trains from: the version, and what it has of its own. */
static void load_base(struct elv_lab_local *l, const struct elv_lab_task *t)
{
    const struct elv_model *m = l->cfg.model;
    if (l->n_local == 0) {
        memcpy(l->base, t->base, m->n_params * sizeof *l->base);
    } else {
        float *const kept = l->kept[t->client - 1];
        if (kept == NULL)
            elv_model_init_params(m, l->cfg.seed, l->base);
        else
            copy_local(m, l->base, kept, false);
        elv_model_scatter(m, l->base, 0, m->n_shared, t->base);
    }
    memcpy(l->trained, l->base, m->n_params * sizeof *l->trained);
}

/* The encoder has moved what was learnt there into the base. */
static enum elv_err keep_local(struct elv_lab_local *l, uint32_t client)
{
    if (l->n_local == 0)
        return ELV_OK;
    float **const kept = &l->kept[client - 1];
    if (*kept == NULL)
        *kept = take(l->n_local, sizeof **kept);
    if (*kept == NULL)
        return ELV_ERR_MEMORY;
    copy_local(l->cfg.model, l->base, *kept, true);
    return ELV_OK;
}

/* Work. */

static struct elv_task task_of(const struct elv_lab_local *l, const struct elv_lab_task *t)
{
    const struct elv_job *job = l->cfg.job;
    return (struct elv_task){.seed = l->cfg.seed,
                             .client = t->client,
                             .assignment = t->assignment,
                             .base_version = t->version,
                             .local_epochs = t->size.local_epochs,
                             .local_steps = t->size.local_steps,
                             .batch = t->size.batch,
                             .rate = t->learning_rate,
                             .momentum = job->momentum,
                             .decay = job->weight_decay,
                             .prox_mu = job->proximal,
                             .arithmetic = job->arithmetic};
}

static enum elv_err finish(const struct elv_trainer *trainer, enum elv_err begun)
{
    enum elv_err err = begun == ELV_OK ? ELV_ERR_BUSY : begun;
    while (err == ELV_ERR_BUSY)
        err = trainer->run(trainer->self, STEPS);
    return err;
}

/* A client without examples of that kind trains all the same. */
static enum elv_err evaluate(struct elv_lab_local *l, const struct elv_task *task,
                             struct elv_lab_task *t)
{
    if (l->cfg.test == NULL)
        return ELV_OK;
    const struct elv_trainer trainer = elv_local_trainer(&l->trainer);
    const enum elv_err err = finish(&trainer, trainer.evaluate(trainer.self, task, l->trained));
    if (err == ELV_OK)
        t->eval = trainer.result(trainer.self)->eval;
    return err == ELV_ERR_MISSING ? ELV_OK : err;
}

static enum elv_err train(struct elv_lab_local *l, const struct elv_task *task,
                          struct elv_lab_task *t)
{
    const struct elv_trainer trainer = elv_local_trainer(&l->trainer);
    const enum elv_err err = finish(&trainer, trainer.begin(trainer.self, task, l->trained));
    const struct elv_train_result *r = trainer.result(trainer.self);
    t->samples = r->samples;
    t->seen = r->seen;
    t->steps = r->steps;
    t->loss_sum = r->loss_sum;
    return err;
}

/* What a client keeps of its updates. */

static struct own *new_own(const struct elv_lab_local *l)
{
    const struct elv_job *job = l->cfg.job;
    const uint32_t n = l->cfg.model->n_shared;
    const size_t size = elv_residual_size(elv_job_keeps(job));
    const bool velocity = job->momentum_correction > 0.0f;
    struct own *o = take(1, sizeof *o);
    if (o == NULL)
        return NULL;
    /* velocity first, which is aligned for the residual, too */
    o->memory = take(n, size + (velocity ? sizeof(float) : 0));
    const struct elv_residual_cfg cfg = {
        .kind = elv_job_keeps(job),
        .n = n,
        .values = (uint8_t *)o->memory + (velocity ? n * sizeof(float) : 0),
        .velocity = velocity ? o->memory : NULL,
        .momentum = job->momentum_correction,
        .age_max = job->feedback_age,
    };
    elv_residual_init(&o->residual, &cfg);
    if (o->memory != NULL)
        return o;
    free_own(o);
    return NULL;
}

bool elv_lab_local_feeds_back(const struct elv_lab_local *l) { return l->own != NULL; }

static enum elv_err find_own(struct elv_lab_local *l, uint32_t client, struct own **out)
{
    *out = NULL;
    if (l->own == NULL)
        return ELV_OK;
    struct own **o = &l->own[client - 1];
    if (*o == NULL)
        *o = new_own(l);
    *out = *o;
    return *o != NULL ? ELV_OK : ELV_ERR_MEMORY;
}

static enum elv_err run_delta(struct elv_lab_local *l)
{
    enum elv_err err = ELV_ERR_BUSY;
    while (err == ELV_ERR_BUSY)
        err = elv_delta_run(&l->delta, SLICES);
    return err;
}

/* The vector has to wait for its decision beside those of others. */
static enum elv_err keep_vector(struct elv_lab_local *l, struct own *o,
                                const struct elv_lab_task *t)
{
    const uint32_t n = l->cfg.model->n_shared;
    if (o->vector == NULL)
        o->vector = take(n, sizeof *o->vector);
    if (o->vector == NULL)
        return ELV_ERR_MEMORY;
    memcpy(o->vector, l->trained, n * sizeof *o->vector);
    o->made = l->delta.cfg;
    o->whole = l->delta.whole;
    o->made.trained = o->vector;
    elv_residual_made(&o->residual, t->assignment, t->version, l->delta.learnt);
    return ELV_OK;
}

static void settle(struct elv_lab_local *l, struct own *o)
{
    struct elv_settling s;
    elv_delta_resume(&l->delta, &o->made, o->whole);
    if (o->residual.saved.vector == ELV_VECTOR_ACCEPTED)
        run_delta(l); /* where its chunks start */
    elv_settle_begin(&s, &o->residual, &l->delta);
    while (elv_settle_run(&s, SLICES) == ELV_ERR_BUSY)
        ;
}

void elv_lab_local_decided(struct elv_lab_local *l, uint32_t client, enum elv_lab_fate fate,
                           uint32_t version)
{
    struct own *o = l->own != NULL ? l->own[client - 1] : NULL;
    if (o == NULL || o->vector == NULL)
        return;
    switch (fate) {
    case ELV_LAB_FATE_ACCEPTED:
        elv_residual_accepted(&o->residual);
        break;
    case ELV_LAB_FATE_LATE:
        elv_residual_late(&o->residual);
        elv_residual_heard(&o->residual, version);
        break;
    case ELV_LAB_FATE_SPOILT:
        elv_residual_spoilt(&o->residual);
        break;
    case ELV_LAB_FATE_GONE:
        o->residual.saved.vector = ELV_VECTOR_NONE;
        break;
    }
    if (elv_residual_unsettled(&o->residual))
        settle(l, o);
    free(o->vector);
    o->vector = NULL;
}

static enum elv_err encode(struct elv_lab_local *l, const struct elv_lab_task *t)
{
    const struct elv_job *job = l->cfg.job;
    const struct elv_codec_choice up = elv_job_up(job, job->up[0].id, t->version);
    const struct elv_codec *codec = elv_codec_by_id(up.id);
    struct own *own;
    enum elv_err err = find_own(l, t->client, &own);
    if (err != ELV_OK)
        return err;
    if (own != NULL)
        own->residual.saved.sparse = elv_codec_is_sparse(codec);
    const struct elv_delta_cfg cfg = {
        .model = l->cfg.model,
        .pack = &l->pack,
        .trained = l->trained,
        .base = l->base,
        .first = l->first,
        .first_cap = l->first_cap,
        .codec = up.id,
        .arg = {.seed = elv_delta_seed(l->cfg.seed, t->client, t->assignment), .param = up.param},
        .plan = codec->plan != NULL ? &l->plan_of_codec : NULL,
        .residual = own != NULL ? &own->residual : NULL,
        .bound = job->bound,
        .clip = job->clip,
    };
    elv_delta_begin(&l->delta, &cfg);
    err = run_delta(l);
    return err == ELV_OK && own != NULL ? keep_vector(l, own, t) : err;
}

static enum elv_err unpack(struct elv_lab_local *l, const struct elv_chunk *c, float *update)
{
    struct elv_unpacking u;
    uint32_t first, n;
    enum elv_err err = elv_unpack_begin(&u, &l->pack, c);
    for (bool more = err == ELV_OK; more; more = err == ELV_ERR_BUSY) {
        err = elv_unpack_next(&u, &first, &n);
        if (err == ELV_OK || err == ELV_ERR_BUSY)
            memcpy(update + first, l->values, n * sizeof *update);
    }
    return err;
}

/* Every chunk as it travels, and what comes out of it. */
static enum elv_err decode(struct elv_lab_local *l, struct elv_lab_task *t)
{
    t->bytes_up = 0;
    for (uint32_t i = 0; i < l->delta.n_chunks; i++) {
        uint8_t bytes[ELV_CHUNK_MAX];
        size_t len;
        struct elv_chunk c;
        elv_delta_chunk(&l->delta, i, bytes, &len);
        enum elv_err err = elv_chunk_decode((struct elv_bytes){bytes, len}, &c);
        if (err == ELV_OK)
            err = unpack(l, &c, t->update);
        if (err != ELV_OK)
            return err;
        t->bytes_up += len;
    }
    return ELV_OK;
}

static enum elv_err work(struct elv_lab_local *l, struct elv_lab_task *t)
{
    const struct elv_task task = task_of(l, t);
    load_base(l, t);
    enum elv_err err = evaluate(l, &task, t);
    if (err == ELV_OK)
        err = train(l, &task, t);
    if (err == ELV_OK)
        err = encode(l, t);
    return err == ELV_OK ? decode(l, t) : err;
}

enum elv_err elv_lab_local_work(struct elv_lab_local *l, struct elv_lab_task *t)
{
    t->eval = (struct elv_eval_sums){0};
    t->err = ELV_ERR_RANGE;
    if (t->size.batch == 0)
        return ELV_OK;
    const enum elv_err err = fit(l, t->size.batch);
    if (err != ELV_OK)
        return err;
    t->err = work(l, t);
    return t->err == ELV_OK ? keep_local(l, t->client) : ELV_OK;
}

void elv_lab_local_init(struct elv_lab_local *l, float *w)
{
    const struct elv_model *m = l->cfg.model;
    elv_model_init_params(m, l->cfg.seed, l->trained);
    elv_model_gather(m, l->trained, 0, m->n_shared, w);
}

/* Of all chunks of a vector. What most codecs write is as long whatever the values are; where the
 * largest are sent, it depends on where these lie: anywhere, here. */
static uint64_t bytes_in(struct elv_lab_local *l, struct elv_codec_choice codec)
{
    const uint32_t n = l->cfg.model->n_shared;
    struct elv_codec_arg arg = {.param = codec.param};
    struct elv_codec_plan plan;
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.purpose = ELV_RNG_CODEC});
    const struct elv_pack plain = {.values = l->values, .bytes = l->bytes};
    struct elv_chunk c = {.kind = ELV_BODY_STEP, .codec = codec.id};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        l->trained[i] = elv_rng_unit(&r);
    elv_codec_plan(elv_codec_by_id(codec.id), &plan, l->trained, n, &arg);
    for (; c.first < n; c.first += c.count, c.index++) {
        uint8_t bytes[ELV_CHUNK_MAX];
        size_t len;
        if (elv_pack(&plain, l->trained, n, &arg, &c, bytes, &len) != ELV_OK)
            return 0;
        sum += len;
    }
    return sum;
}

uint64_t elv_lab_local_bytes_full(struct elv_lab_local *l)
{
    return bytes_in(l, (struct elv_codec_choice){.id = ELV_CODEC_F32});
}

uint64_t elv_lab_local_bytes_down(struct elv_lab_local *l)
{
    const uint32_t asked = l->cfg.job->select_count;
    const uint64_t missed =
        asked == 0 || asked >= l->cfg.n_clients ? 1 : (l->cfg.n_clients + asked - 1) / asked;
    const uint64_t full = elv_lab_local_bytes_full(l);
    const uint64_t steps = missed * bytes_in(l, l->cfg.job->down);
    return steps < full ? steps : full;
}
