/* SPDX-License-Identifier: Apache-2.0 */
#include "client/residual.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "client/settle.h"
#include "common/half.h"
#include "common/rng.h"

#include <cmocka.h>

enum { N = 1990, CHUNKS_MAX = 512, SIDES = 2 };

/* A device without its protocol: encoder, residual, and what the server adds up. */
struct device {
    float fresh[N], base[N], values[N], velocity[N];
    uint16_t halves[N];
    struct elv_residual residual;
    struct elv_delta delta;
};

static struct elv_model model;
static struct device device[SIDES];
static float window[ELV_PACK_VALUES], sent[N];
static uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
static uint32_t first[CHUNKS_MAX];
static struct elv_codec_plan codec_plan;
static const struct elv_pack pack = {.values = window, .bytes = bytes};

static void parse(void)
{
    static const char input[] = "1x1x198", layers[] = "dense 10";
    const struct elv_model_text text = {.input = {(const uint8_t *)input, strlen(input)},
                                        .layers = {(const uint8_t *)layers, strlen(layers)}};
    assert_int_equal(elv_model_parse(&model, text, NULL), ELV_OK);
    assert_int_equal(model.n_params, N);
}

static void reset(struct device *d, enum elv_feedback kind, float momentum)
{
    const struct elv_residual_cfg cfg = {
        .kind = kind,
        .n = N,
        .values = kind == ELV_FEEDBACK_F16 ? (void *)d->halves : (void *)d->values,
        .velocity = momentum > 0 ? d->velocity : NULL,
        .momentum = momentum,
        .age_max = 1,
    };
    for (uint32_t i = 0; i < N; i++) { /* what lies there has no meaning */
        d->values[i] = d->velocity[i] = 1e30f;
        d->halves[i] = 0x7BFF;
    }
    elv_residual_init(&d->residual, &cfg);
    memset(d->base, 0, sizeof d->base);
}

static float left_of(const struct device *d, uint32_t i)
{
    if (!d->residual.saved.held)
        return 0;
    return d->residual.cfg.kind == ELV_FEEDBACK_F16 ? elv_half_value(d->halves[i]) : d->values[i];
}

/* Makes the vector of `learnt`, from version `base`, and what a server decodes into `sent`. */
static void send(struct device *d, const struct elv_codec_choice *up, const float *learnt,
                 uint32_t base, uint64_t seed)
{
    const struct elv_codec *codec = elv_codec_by_id(up->id);
    const struct elv_delta_cfg cfg = {
        .model = &model,
        .pack = &pack,
        .trained = d->fresh,
        .base = d->base,
        .first = first,
        .first_cap = CHUNKS_MAX,
        .codec = up->id,
        .arg = {.seed = seed, .param = up->param},
        .plan = codec->plan != NULL ? &codec_plan : NULL,
        .residual = &d->residual,
        .bound = 1e6f,
    };
    memcpy(d->fresh, learnt, sizeof d->fresh);
    d->residual.saved.sparse = elv_codec_is_sparse(codec);
    elv_delta_begin(&d->delta, &cfg);
    enum elv_err err = ELV_ERR_BUSY;
    while (err == ELV_ERR_BUSY)
        err = elv_delta_run(&d->delta, 1);
    assert_int_equal(err, ELV_OK);
    elv_residual_made(&d->residual, base + 1, base, d->delta.learnt);
    for (uint32_t i = 0; i < d->delta.n_chunks; i++) {
        uint8_t chunk[ELV_CHUNK_MAX];
        size_t len;
        struct elv_chunk c;
        elv_delta_chunk(&d->delta, i, chunk, &len);
        assert_int_equal(elv_chunk_decode((struct elv_bytes){chunk, len}, &c), ELV_OK);
        assert_int_equal(elv_codec_decode(codec, c.payload, c.count, sent + c.first), ELV_OK);
    }
}

static void settle(struct device *d)
{
    struct elv_settling s;
    if (!elv_residual_unsettled(&d->residual))
        return;
    elv_settle_begin(&s, &d->residual, &d->delta);
    while (elv_settle_run(&s, 1) == ELV_ERR_BUSY)
        ;
    assert_int_equal(d->residual.saved.vector, ELV_VECTOR_NONE);
}

static double norm(const double *v)
{
    double sum = 0;
    for (uint32_t i = 0; i < N; i++)
        sum += v[i] * v[i];
    return sqrt(sum);
}

static const struct {
    const char *name;
    float param;
} lossy[] = {
    {"q8", 0},         {"q4", 0},       {"sign", 0},   {"ternary", 0.01f},
    {"ternary", 0.2f}, {"topk", 0.02f}, {"rotate", 1}, {"rotate", 4},
};

static struct elv_codec_choice choice_of(size_t row)
{
    const struct elv_codec *c = elv_codec_by_name(lossy[row].name, strlen(lossy[row].name));
    assert_non_null(c);
    assert_true(elv_codec_takes(c, lossy[row].param));
    return (struct elv_codec_choice){.id = c->id, .param = lossy[row].param};
}

static void only_codecs_that_always_lose_the_same_take_part(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float param;
        bool helps;
    } rows[] = {
        {"f32", 0, false},     {"f16", 0, false},   {"q8", 0, true},       {"q8", -1, false},
        {"q4", 0, true},       {"q4", -1, false},   {"sign", 0, true},     {"ternary", 0.01f, true},
        {"topk", 0.01f, true}, {"rotate", 2, true}, {"rotate", -2, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct elv_codec *c = elv_codec_by_name(rows[i].name, strlen(rows[i].name));
        assert_non_null(c);
        const struct elv_codec_choice choice = {.id = c->id, .param = rows[i].param};
        if (elv_residual_helps(&choice) != rows[i].helps)
            fail_msg("%s %g", rows[i].name, (double)rows[i].param);
    }
}

/* What the server got, what is left, and what was given up (too old, or too long) are together what
 * was learnt, whatever is decided. */
struct books {
    double learnt[N], got[N], given_up[N];
};

static void one_round(struct device *d, const struct elv_codec_choice *up, struct books *b,
                      struct elv_rng *r, uint32_t version)
{
    float learnt[N];
    double expected[N];
    for (uint32_t i = 0; i < N; i++) {
        learnt[i] = ((float)elv_rng_below(r, 2001) - 1000.0f) * 1e-5f * (float)(1 + i % 7);
        b->learnt[i] += (double)learnt[i];
    }
    send(d, up, learnt, version, version);
    const uint32_t what = elv_rng_below(r, 8), age = elv_rng_below(r, 4);
    const bool accepted = what < 4, kept = !accepted && age <= 1;
    for (uint32_t i = 0; i < N; i++) {
        if (accepted)
            b->got[i] += (double)sent[i];
        expected[i] = accepted ? (double)(d->fresh[i] - sent[i]) : (double)d->fresh[i];
        if (!accepted && !kept) {
            expected[i] = (double)left_of(d, i);
            b->given_up[i] += (double)learnt[i];
        }
    }
    if (accepted) {
        elv_residual_accepted(&d->residual);
    } else {
        elv_residual_late(&d->residual);
        elv_residual_heard(&d->residual, version + age);
        elv_residual_heard(&d->residual, version); /* the first one decides */
    }
    settle(d);
    if (!accepted && !kept)
        return;
    double v[N];
    for (uint32_t i = 0; i < N; i++)
        v[i] = (double)d->fresh[i];
    const double most = ELV_RESIDUAL_CAP * (d->residual.saved.sent > 0 ? d->residual.saved.sent
                                                                       : d->residual.saved.learnt);
    const double long_is = norm(expected), factor = long_is > most ? most / long_is : 1;
    if (accepted)
        assert_true(fabs(d->residual.saved.sent - norm(v)) <= 1e-9 * norm(v));
    const double close = d->residual.cfg.kind == ELV_FEEDBACK_F16 ? 0x1p-10 : 1e-6;
    for (uint32_t i = 0; i < N; i++) {
        const double is = (double)left_of(d, i);
        assert_true(fabs(is - expected[i] * factor) <= close * fabs(expected[i]) + 1e-7);
        b->given_up[i] += expected[i] - is; /* and what was rounded away */
        v[i] = is;
    }
    assert_true(norm(v) <= most * 1.001);
}

static void nothing_is_lost_whatever_is_decided(void **state)
{
    (void)state;
    static struct books b;
    parse();
    for (size_t row = 0; row < sizeof lossy / sizeof *lossy; row++)
        for (uint32_t seed = 1; seed <= 6; seed++) {
            const struct elv_codec_choice up = choice_of(row);
            struct elv_rng r =
                elv_rng_of((struct elv_rng_key){.seed = seed, .round = (uint32_t)row});
            memset(&b, 0, sizeof b);
            reset(&device[0], seed % 2 ? ELV_FEEDBACK_F32 : ELV_FEEDBACK_F16, 0);
            for (uint32_t version = 1; version <= 40; version++)
                one_round(&device[0], &up, &b, &r, version);
            for (uint32_t i = 0; i < N; i++) {
                const double left = (double)left_of(&device[0], i);
                if (fabs(b.got[i] + left + b.given_up[i] - b.learnt[i]) > 1e-5)
                    fail_msg("%s seed %u: coordinate %u", lossy[row].name, seed, i);
            }
        }
}

/* With powers of two all along, there is no rounding at all. */
static void in_exact_numbers_the_sums_are_equal(void **state)
{
    (void)state;
    static float learnt[N], got[N], sum[N];
    const struct elv_codec_choice q8 = choice_of(0);
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 5});
    parse();
    memset(got, 0, sizeof got);
    memset(sum, 0, sizeof sum);
    reset(&device[0], ELV_FEEDBACK_F32, 0);
    for (uint32_t round = 0; round < 50; round++) {
        for (uint32_t i = 0; i < N; i++) {
            /* The largest of each chunk is 127 units, so that a unit is a power of two. */
            learnt[i] =
                i % 97 == 0 ? 127 * 0x1p-3f : ((float)elv_rng_below(&r, 2049) - 1024) * 0x1p-10f;
            sum[i] += learnt[i];
        }
        send(&device[0], &q8, learnt, round, 1);
        for (uint32_t i = 0; i < N; i++)
            got[i] += sent[i];
        elv_residual_accepted(&device[0].residual);
        settle(&device[0]);
    }
    for (uint32_t i = 0; i < N; i++)
        assert_true(got[i] + left_of(&device[0], i) == sum[i]);
}

static void a_decision_says_what_becomes_of_the_vector(void **state)
{
    (void)state;
    enum how { ACCEPTED, LATE, SPOILT, AGAIN };
    static const struct {
        enum how how;
        uint32_t age_max, base, version;
        enum elv_vector_state becomes;
    } rows[] = {
        {ACCEPTED, 1, 7, 7, ELV_VECTOR_ACCEPTED}, {ACCEPTED, 1, 7, 70, ELV_VECTOR_ACCEPTED},
        {LATE, 1, 7, 7, ELV_VECTOR_KEPT},         {LATE, 1, 7, 8, ELV_VECTOR_KEPT},
        {LATE, 1, 7, 9, ELV_VECTOR_NONE},         {LATE, 0, 7, 7, ELV_VECTOR_KEPT},
        {LATE, 0, 7, 8, ELV_VECTOR_NONE},         {LATE, 3, 7, 10, ELV_VECTOR_KEPT},
        {LATE, 3, 7, 6, ELV_VECTOR_NONE}, /* the server lost versions */
        {SPOILT, 1, 7, 7, ELV_VECTOR_NONE},       {AGAIN, 1, 7, 7, ELV_VECTOR_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elv_residual *r = &device[0].residual;
        reset(&device[0], ELV_FEEDBACK_F32, 0);
        r->cfg.age_max = rows[i].age_max;
        r->saved.held = true;
        elv_residual_made(r, 20, rows[i].base, 1);
        elv_residual_heard(r, rows[i].version); /* undecided: not yet */
        assert_int_equal(r->saved.vector, ELV_VECTOR_UNDECIDED);
        if (rows[i].how == ACCEPTED)
            elv_residual_accepted(r);
        else if (rows[i].how == SPOILT)
            elv_residual_spoilt(r);
        else
            elv_residual_late(r);
        elv_residual_begins(r, rows[i].how == AGAIN ? 20 : 21, rows[i].version);
        assert_int_equal(r->saved.vector, rows[i].becomes);
        assert_int_equal(r->saved.held, rows[i].how != SPOILT);
        elv_residual_late(r); /* decided is decided */
        elv_residual_spoilt(r);
        assert_int_equal(r->saved.vector, rows[i].becomes);
        assert_int_equal(elv_residual_unsettled(r), rows[i].becomes != ELV_VECTOR_NONE);
    }
}

/* u = momentum * u + update adds up, and is forgotten where it was sent. */
static void momentum_is_corrected_and_masked_where_something_was_sent(void **state)
{
    (void)state;
    static float learnt[N];
    static double u[N], left[N];
    const struct elv_codec_choice topk = choice_of(5);
    struct device *d = &device[0];
    struct elv_rng r = elv_rng_of((struct elv_rng_key){.seed = 9});
    parse();
    reset(d, ELV_FEEDBACK_F32, 0.5f);
    memset(u, 0, sizeof u);
    memset(left, 0, sizeof left);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < N; i++)
            learnt[i] = ((float)elv_rng_below(&r, 2001) - 1000.0f) * 1e-3f;
        send(d, &topk, learnt, round, 1);
        const bool accepted = round % 5 != 3;
        uint32_t n_sent = 0;
        for (uint32_t i = 0; i < N; i++) {
            u[i] = 0.5 * u[i] + (double)learnt[i];
            left[i] += u[i];
            assert_true(fabs(left[i] - (double)d->fresh[i]) < 1e-4);
            if (!accepted || sent[i] == 0)
                continue;
            left[i] -= (double)sent[i];
            u[i] = 0;
            n_sent++;
        }
        assert_true(!accepted || (n_sent > N / 100 && n_sent < N / 30));
        if (accepted)
            elv_residual_accepted(&d->residual);
        else
            elv_residual_late(&d->residual);
        elv_residual_heard(&d->residual, round + 1);
        settle(d);
        for (uint32_t i = 0; i < N; i++) {
            assert_true(fabs(left[i] - (double)d->values[i]) < 1e-4);
            assert_true(fabs(u[i] - (double)d->velocity[i]) < 1e-4);
        }
    }
}

/* Two devices that pull a few coordinates hard, against each other, and all others gently, in the
 * same direction. How far from the minimum of both they are in the end, of 1 in the beginning. */
static double quadratic(enum elv_feedback kind)
{
    static float x[N], learnt[N], mean[N];
    const struct elv_codec_choice ternary = choice_of(3);
    double off = 0;
    memset(x, 0, sizeof x);
    for (uint32_t k = 0; k < SIDES; k++)
        reset(&device[k], kind, 0);
    for (uint32_t round = 0; round < 1500; round++) {
        memset(mean, 0, sizeof mean);
        for (uint32_t k = 0; k < SIDES; k++) {
            for (uint32_t i = 0; i < N; i++) {
                const float pull = i % 50 == 0 ? (k == 0 ? 10.0f : -10.0f) : 1.0f;
                learnt[i] = 0.01f * (pull - x[i]);
            }
            send(&device[k], &ternary, learnt, round, 1);
            for (uint32_t i = 0; i < N; i++)
                mean[i] += sent[i] / SIDES;
            if (kind == ELV_FEEDBACK_NONE)
                continue;
            elv_residual_accepted(&device[k].residual);
            settle(&device[k]);
        }
        for (uint32_t i = 0; i < N; i++)
            x[i] += mean[i];
    }
    for (uint32_t i = 0; i < N; i++)
        if (i % 50 != 0)
            off += (double)(1 - x[i]) * (double)(1 - x[i]);
    return sqrt(off / (N - N / 50));
}

static void ternary_finds_a_minimum_with_feedback_and_does_not_without(void **state)
{
    (void)state;
    parse();
    const double with = quadratic(ELV_FEEDBACK_F32), half = quadratic(ELV_FEEDBACK_F16),
                 without = quadratic(ELV_FEEDBACK_NONE);
    print_message("off by %.3f with f32, %.3f with f16, %.3f without\n", with, half, without);
    assert_true(with < 0.3 && half < 0.3 && without > 0.9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_codecs_that_always_lose_the_same_take_part),
        cmocka_unit_test(nothing_is_lost_whatever_is_decided),
        cmocka_unit_test(in_exact_numbers_the_sums_are_equal),
        cmocka_unit_test(a_decision_says_what_becomes_of_the_vector),
        cmocka_unit_test(momentum_is_corrected_and_masked_where_something_was_sent),
        cmocka_unit_test(ternary_finds_a_minimum_with_feedback_and_does_not_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
