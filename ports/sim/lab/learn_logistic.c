/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/learn_logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/partition.h"
#include "common/text.h"
#include "ports/sim/lab/learn_local.h"
#include "ports/sim/lab/learn_noise.h"
#include "ports/sim/lab/learn_score.h"
#include "ports/sim/lab/learn_steps.h"

#define CLASSES ELV_LAB_LOGISTIC_CLASSES
#define NOBODY UINT32_MAX

enum { GATHER = 16 };

/* Examples of one client, drawn as they are asked for and kept until it is another's turn. */
struct examples {
    struct logistic *of;
    uint32_t client; /* 0: the test set's */
    uint32_t n;
    float mix[CLASSES]; /* how likely each class and those before it are */
    float *x;           /* [n][d] */
    uint32_t *y;        /* [n] the class, or NOBODY while it is not drawn */
};

struct logistic {
    struct elv_lab_logistic_cfg cfg;
    uint32_t d;
    struct elv_model model;
    float *centre; /* [CLASSES][d] */
    struct examples train, test;
    struct elv_feed train_feed, test_feed;
    struct elv_lab_local *local;
    struct elv_lab_exam exam;
};

/* Examples. */

static struct elv_rng stream(const struct logistic *l, uint32_t client, uint32_t what,
                             enum elv_rng_purpose purpose)
{
    return elv_rng_of((struct elv_rng_key){
        .seed = l->cfg.seed, .client = client, .round = what, .purpose = purpose});
}

/* Far enough apart that a good model is right nine times in ten, whatever the dimension: the
 * distance of two centres is 5 deviations on average. */
static void draw_centres(struct logistic *l)
{
    const float apart = sqrtf(12.5f / (float)l->d);
    for (uint32_t c = 0; c < CLASSES; c++) {
        struct elv_rng r = stream(l, 0, c, ELV_RNG_PARTITION);
        float *at = l->centre + (size_t)c * l->d;
        elv_lab_normals(&r, at, l->d);
        for (uint32_t i = 0; i < l->d; i++)
            at[i] *= apart;
    }
}

static void draw_mix(struct examples *e)
{
    const struct logistic *l = e->of;
    double sum = CLASSES, before = 0;
    for (uint32_t c = 0; c < CLASSES; c++)
        e->mix[c] = 1.0f;
    if (e->client != 0 && l->cfg.alpha > 0) {
        struct elv_rng r = stream(l, e->client, 0, ELV_RNG_PARTITION);
        sum = elv_partition_shares(&r, (float)l->cfg.alpha, CLASSES, e->mix);
    }
    for (uint32_t c = 0; c < CLASSES; c++) {
        before += (double)e->mix[c];
        e->mix[c] = (float)(before / sum);
    }
}

static void take_turn(struct examples *e, uint32_t client)
{
    if (e->client == client)
        return;
    e->client = client;
    draw_mix(e);
    for (uint32_t i = 0; i < e->n; i++)
        e->y[i] = NOBODY;
}

static void draw(struct examples *e, uint32_t place)
{
    const struct logistic *l = e->of;
    struct elv_rng r = stream(l, e->client, place, ELV_RNG_NOISE);
    const float u = elv_rng_unit(&r);
    uint32_t c = 0;
    while (c + 1 < CLASSES && u >= e->mix[c])
        c++;
    float *x = e->x + (size_t)place * l->d;
    const float *centre = l->centre + (size_t)c * l->d;
    elv_lab_normals(&r, x, l->d);
    for (uint32_t i = 0; i < l->d; i++)
        x[i] += centre[i];
    e->y[place] = c;
}

static uint32_t count(void *self) { return ((struct examples *)self)->n; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    *n_values = ((struct examples *)self)->of->d;
    *n_classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    struct examples *e = self;
    const uint32_t d = e->of->d;
    for (uint32_t i = 0; i < n; i++) {
        if (e->y[index[i]] == NOBODY)
            draw(e, index[i]);
        memcpy(x + (size_t)i * d, e->x + (size_t)index[i] * d, d * sizeof *x);
        y[i] = e->y[index[i]];
    }
    return ELV_OK;
}

/* The learner. */

static void init(void *self, float *w) { elv_lab_local_init(((struct logistic *)self)->local, w); }

static uint32_t samples(void *self, uint32_t client)
{
    (void)client;
    return ((struct logistic *)self)->cfg.samples;
}

static void effort(void *self, uint32_t client, struct elv_size size, uint32_t *steps,
                   uint32_t *seen)
{
    const struct elv_lab_steps s = elv_lab_steps_of(samples(self, client), size);
    *steps = s.steps;
    *seen = s.seen;
}

static enum elv_err train(void *self, struct elv_lab_task *tasks, uint32_t n)
{
    struct logistic *l = self;
    for (uint32_t i = 0; i < n; i++) {
        take_turn(&l->train, tasks[i].client);
        const enum elv_err err = elv_lab_local_work(l->local, &tasks[i]);
        if (err != ELV_OK)
            return err;
    }
    return ELV_OK;
}

static void decided(void *self, uint32_t client, enum elv_lab_fate fate, uint32_t version)
{
    elv_lab_local_decided(((struct logistic *)self)->local, client, fate, version);
}

static enum elv_err evaluate(void *self, const float *w, struct elv_lab_score *out)
{
    struct logistic *l = self;
    return elv_lab_exam_score(&l->exam, w, out);
}

static void free_all(void *self)
{
    struct logistic *l = self;
    elv_lab_local_free(l->local);
    elv_lab_exam_close(&l->exam);
    free(l->centre);
    free(l->train.x);
    free(l->train.y);
    free(l->test.x);
    free(l->test.y);
    free(l);
}

/* Making one. */

static bool sane(const struct logistic *l)
{
    const uint32_t n = l->cfg.samples;
    return l->d <= ELV_LAB_LOGISTIC_DIMENSIONS_MAX && n <= ELV_LAB_LOGISTIC_SAMPLES_MAX &&
           (uint64_t)n * l->d <= ELV_LAB_LOGISTIC_VALUES_MAX && l->cfg.n_clients > 0 &&
           l->cfg.alpha >= 0 && l->cfg.alpha <= ELV_LAB_LOGISTIC_ALPHA_MAX &&
           (l->cfg.alpha == 0 || l->cfg.alpha >= ELV_LAB_LOGISTIC_ALPHA_MIN);
}

/* "1 to 4096 numbers in, one dense layer", as a job file has it. */
static enum elv_err make_model(struct logistic *l)
{
    char input[16];
    static const char layers[] = "dense 10";
    _Static_assert(CLASSES == 10, "the text above says how many classes there are");
    struct elv_line line = elv_line_of(input, sizeof input);
    elv_line_uint(&line, l->d);
    elv_line_add(&line, "x1x1");
    const struct elv_model_text text = {
        .input = {(const uint8_t *)input, line.len},
        .layers = {(const uint8_t *)layers, sizeof layers - 1},
    };
    return elv_model_parse(&l->model, text, NULL);
}

static bool open_examples(struct logistic *l, struct examples *e, uint32_t n)
{
    *e = (struct examples){.of = l, .client = NOBODY, .n = n};
    e->x = malloc((size_t)n * l->d * sizeof *e->x);
    e->y = malloc(n * sizeof *e->y);
    return e->x != NULL && e->y != NULL;
}

static struct elv_feed feed_of(struct examples *e)
{
    return (struct elv_feed){.self = e, .count = count, .shape = shape, .get = get};
}

static enum elv_err open_data(struct logistic *l)
{
    l->centre = malloc((size_t)CLASSES * l->d * sizeof *l->centre);
    if (l->centre == NULL || !open_examples(l, &l->train, l->cfg.samples) ||
        !open_examples(l, &l->test, ELV_LAB_LOGISTIC_TEST))
        return ELV_ERR_MEMORY;
    draw_centres(l);
    take_turn(&l->test, 0);
    l->train_feed = feed_of(&l->train);
    l->test_feed = feed_of(&l->test);
    return ELV_OK;
}

static enum elv_err open_all(struct logistic *l)
{
    enum elv_err err = make_model(l);
    if (err == ELV_OK)
        err = open_data(l);
    if (err != ELV_OK)
        return err;
    const struct elv_lab_local_cfg local = {.model = &l->model,
                                            .job = l->cfg.job,
                                            .seed = l->cfg.seed,
                                            .n_clients = l->cfg.n_clients,
                                            .examples = l->cfg.samples,
                                            .train = &l->train_feed,
                                            .squeeze = l->cfg.squeeze,
                                            .kernels = l->cfg.kernels};
    const struct elv_lab_exam_cfg exam = {.model = &l->model,
                                          .feed = &l->test_feed,
                                          .job = l->cfg.job,
                                          .kernels = l->cfg.kernels,
                                          .seed = l->cfg.seed};
    err = elv_lab_local_new(&l->local, &local);
    return err == ELV_OK ? elv_lab_exam_open(&l->exam, &exam) : err;
}

enum elv_err elv_lab_logistic(struct elv_lab_learner *out, const struct elv_lab_logistic_cfg *cfg)
{
    struct logistic *l = calloc(1, sizeof *l);
    if (l == NULL)
        return ELV_ERR_MEMORY;
    l->cfg = *cfg;
    l->cfg.samples = cfg->samples > 0 ? cfg->samples : ELV_LAB_LOGISTIC_SAMPLES;
    l->d = cfg->dimensions > 0 ? cfg->dimensions : ELV_LAB_LOGISTIC_DIMENSIONS;
    const enum elv_err err = sane(l) ? open_all(l) : ELV_ERR_ARG;
    if (err != ELV_OK) {
        free_all(l);
        return err;
    }
    *out = (struct elv_lab_learner){.self = l,
                                    .n_params = l->model.n_shared,
                                    .bytes_down = elv_lab_local_bytes_down(l->local),
                                    .bytes_full = elv_lab_local_bytes_full(l->local),
                                    .gather_max = GATHER,
                                    .init = init,
                                    .samples = samples,
                                    .effort = effort,
                                    .train = train,
                                    .decided = elv_lab_local_feeds_back(l->local) ? decided : NULL,
                                    .evaluate = evaluate,
                                    .free = free_all};
    return ELV_OK;
}
