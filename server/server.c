/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <string.h>

#include "server/core.h"
#include "server/model_file.h"

enum { SLOTS_LEN = 8 << 20, SLOTS_MIN = 8 };

static void fill_defaults(struct elv_server_cfg *cfg)
{
    struct elv_server_limits *l = &cfg->limits;
    if (l->clients_max == 0)
        l->clients_max = ELV_CLIENTS_USUAL;
    if (l->log_bytes_max == 0)
        l->log_bytes_max = UINT64_C(1) << 30;
    if (l->window == 0)
        l->window = 64;
    if (l->window_total == 0)
        l->window_total = 512;
    if (cfg->kernels == NULL)
        cfg->kernels = elv_kernels_best();
    if (cfg->software_min == NULL)
        cfg->software_min = "";
}

static uint32_t chunks_max(const struct elv_job *job)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < job->n_up; i++) {
        const struct elv_codec *codec = elv_codec_by_id(job->up[i].id);
        const uint32_t n = codec ? elv_job_chunks_max(job, codec->id) : 0;
        if (n == 0)
            return 0; /* no such codec, or more than can be numbered */
        most = n > most ? n : most;
    }
    return most;
}

static uint32_t default_uploads(const struct elv_server_limits *l, uint32_t n_chunks)
{
    const size_t fit = SLOTS_LEN / elv_upload_slot_len(n_chunks);
    const uint32_t n = fit < SLOTS_MIN ? SLOTS_MIN : (uint32_t)fit;
    return n < l->clients_max ? n : l->clients_max;
}

/* The most clients one version can count. A policy that lets others in may count everybody. */
static uint32_t counted_max(const struct elv_server *s)
{
    const uint32_t all = s->cfg.limits.clients_max;
    const uint32_t asked = elv_core_call(&s->policies, &s->sync_cfg, s->job).ask;
    const bool open = s->policies.sync->on_pull || elv_core_streams(s);
    return open || asked == 0 || asked > all ? all : asked;
}

/* Everything that init derives from the configuration before it has memory. */
static enum elv_err prepare(struct elv_server *s, const struct elv_server_cfg *cfg)
{
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    memset(s, 0, sizeof *s);
    s->cfg = *cfg;
    fill_defaults(&s->cfg);
    const struct elv_job *job = s->job = cfg->job;
    const struct elv_server_limits *l = &s->cfg.limits;
    if (elv_policies_of(job, &s->policies, why, &line) != ELV_OK)
        return ELV_ERR_ARG;
    if (cfg->sync)
        s->policies.sync = cfg->sync;
    if (cfg->rule)
        s->policies.rule = cfg->rule;
    s->sync_cfg = (struct elv_sync_cfg){
        .clients_max = l->clients_max,
        .quorum = job->quorum > 0 ? job->quorum : 1,
        .deadline_us = job->deadline_us,
        .publish_us = job->publish_us,
        .seed = job->seed,
        .params = &job->sync_params,
    };
    if (elv_scales_of(job, counted_max(s), &s->scales, why) != ELV_OK || chunks_max(job) == 0 ||
        elv_codec_by_id(job->down.id) == NULL || job->deadline_us <= 0 || l->clients_max > 1u << 24)
        return ELV_ERR_ARG;
    if (l->uploads_max == 0)
        s->cfg.limits.uploads_max = default_uploads(l, chunks_max(job));
    s->disk = cfg->disk;
    return ELV_OK;
}

/* One layout, run over nothing to count and over the caller's block to cut it. */
static void lay_out(struct elv_server *s, struct elv_arena *a)
{
    const struct elv_job *job = s->job;
    const struct elv_server_limits *l = &s->cfg.limits;
    const struct elv_sync *sync = s->policies.sync;
    const uint32_t n = job->model.n_shared;
    s->manifest = elv_arena_take(a, ELV_MANIFEST_MAX, 1);
    s->text = elv_arena_take(a, ELV_TEXT_CAP, 1);
    s->model_head = elv_arena_take(a, ELV_MODEL_HEAD_CAP, 1);
    s->sync_state = sync->state_len ? elv_arena_take(a, sync->state_len(&s->sync_cfg), 1) : NULL;
    elv_roster_layout(&s->roster, a, l->clients_max);
    elv_uploads_layout(&s->uploads, a, l->uploads_max, chunks_max(job));
    elv_answers_layout(&s->answers, a, ELV_ANSWERS_CAP);
    s->round.asked = elv_arena_take(a, l->clients_max, sizeof *s->round.asked);
    s->counted = elv_arena_take_raw(a, l->clients_max, sizeof *s->counted);
    elv_row_queue_layout(&s->wants, a, l->clients_max);
    elv_broadcast_layout(&s->cast, a, job, s->policies.rule->state_per_param);
    if (job->model.n_params != n)
        s->flat = elv_arena_take(a, job->model.n_params, sizeof *s->flat);
    elv_verify_layout(&s->verify, a);
    elv_fold_layout(&s->fold, a);
    s->refold.items = elv_arena_take(a, l->clients_max, sizeof *s->refold.items);
    s->refold.scan_buf = elv_arena_take(a, ELV_LOG_SCAN_BUF, 1);
}

size_t elv_server_mem(const struct elv_server_cfg *cfg)
{
    struct elv_server s;
    struct elv_arena a = elv_arena_of(NULL, 0);
    if (prepare(&s, cfg) != ELV_OK)
        return 0;
    lay_out(&s, &a);
    return a.err == ELV_OK ? a.used : 0;
}

static void connect(struct elv_server *s)
{
    const struct elv_job *job = s->job;
    s->unpack.disk = &s->disk;
    s->unpack.squeeze = s->cfg.squeeze;
    s->verify.unpack = s->fold.unpack = &s->unpack;
    s->verify.kernels = s->fold.kernels = s->cfg.kernels;
    s->verify.n_params = job->model.n_shared;
    s->verify.bound = job->bound;
    s->verify.clip = job->clip;
    s->fold.value_bits = (int)s->scales.value_bits;
    s->fold.sum = s->cast.sum;
    s->fold.n_params = s->fold.zeroed = job->model.n_shared;
    s->refold.fold = &s->fold;
}

static void describe_run(struct elv_server *s)
{
    const struct elv_job *job = s->job;
    s->run = (struct elv_rec_run){
        .seed = job->seed,
        .n_params = job->model.n_shared,
        .bound = job->bound,
        .down = job->down.id,
    };
    memcpy(s->run.run, s->cfg.run, sizeof s->run.run);
    memcpy(s->run.fingerprint, job->model.fingerprint, sizeof s->run.fingerprint);
}

static void first_model(struct elv_server *s)
{
    struct elv_broadcast *c = &s->cast;
    const struct elv_model *m = &s->job->model;
    float *flat = s->flat ? s->flat : c->b;
    if (s->cfg.start) {
        memcpy(c->b, s->cfg.start, (size_t)c->n * sizeof *c->b);
    } else {
        elv_model_init_params(m, s->job->seed, flat);
        if (s->flat)
            elv_model_gather(m, flat, 0, c->n, c->b);
    }
    memcpy(c->w, c->b, (size_t)c->n * sizeof *c->w);
    elv_broadcast_digest(c, c->b, c->rec.model, &c->rec.full);
}

static enum elv_err write_manifest(struct elv_server *s)
{
    struct elv_manifest m;
    uint8_t digest[ELV_SHA256_LEN];
    elv_job_manifest(s->job, s->run.run, &m);
    const enum elv_err err =
        elv_manifest_encode(&m, s->manifest, ELV_MANIFEST_MAX, &s->manifest_len);
    if (err != ELV_OK)
        return ELV_ERR_ARG;
    elv_sha256(s->manifest, s->manifest_len, digest);
    memcpy(s->manifest_digest, digest, sizeof s->manifest_digest);
    return ELV_OK;
}

enum elv_err elv_server_init(struct elv_server *s, const struct elv_server_cfg *cfg, void *mem,
                             size_t len)
{
    enum elv_err err = prepare(s, cfg);
    if (err != ELV_OK)
        return err;
    struct elv_arena a = elv_arena_of(mem, len);
    lay_out(s, &a);
    if (a.err != ELV_OK)
        return a.err;
    connect(s);
    elv_uploads_clear(&s->uploads);
    describe_run(s);
    s->head = (struct elv_rec_head){.next_seq = 1, .next_assignment = 1, .best_accuracy = -1.0};
    s->lapse_at = ELV_NEVER;
    bool found = false;
    err = elv_core_restore(s, &found);
    if (err == ELV_OK && !found) {
        s->fresh = true;
        elv_core_set_rate(s);
        first_model(s);
        elv_core_keep_newest(s, 0);
    }
    if (err == ELV_OK)
        err = write_manifest(s);
    return err;
}

const struct elv_server_stats *elv_server_stats(const struct elv_server *s) { return &s->stats; }

const float *elv_server_model(const struct elv_server *s) { return s->cast.b; }
