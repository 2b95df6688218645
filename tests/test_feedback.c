/* SPDX-License-Identifier: Apache-2.0 */
/* Error feedback in the client as a whole: what it sends after everything that can have become of
 * what it sent before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "tests/client_world.h"

#include <cmocka.h>

static struct client_world w, exact;

static const char *const models[] = {
    "dense 24 relu, dense 10",
    "dense 20 relu local, dense 24 relu, dense 10 local, dense 16 relu, dense 10",
};

static const struct elv_codec_choice choices[] = {
    {.id = ELV_CODEC_Q8},
    {.id = ELV_CODEC_SIGN},
    {.id = ELV_CODEC_TERNARY, .param = 0.05f},
    {.id = ELV_CODEC_ROTATE, .param = 2},
};

static void make(const char *layers, const struct elv_codec_choice *up)
{
    world_init(&w, layers, up->id, ELV_CODEC_Q8);
    w.server.manifest.up[0] = w.server.ticket.up = *up;
    w.server.manifest.n_up = 1;
    w.server.manifest.feedback = ELV_FEEDBACK_F32;
    w.server.manifest.feedback_age = 1;
    server_encode_manifest(&w.server);
}

/* What the trainer learns for an assignment, to the last bit: another device sends it as it is. */
static void learnt(const char *layers, uint32_t assignment, uint32_t version, float *out)
{
    world_init(&exact, layers, ELV_CODEC_F32, ELV_CODEC_Q8);
    server_offer(&exact.server, assignment, version);
    world_start(&exact);
    world_until(&exact, decided);
    server_update(&exact.server, out);
    world_free(&exact);
}

/* What comes out at the other side. */
static void coded(const struct elv_codec_choice *up, uint32_t assignment, const float *v,
                  float *out)
{
    const struct elv_codec *codec = elv_codec_by_id(up->id);
    struct elv_codec_plan plan;
    struct elv_codec_arg arg = {.seed = elv_delta_seed(42, 7, assignment), .param = up->param};
    const uint32_t n = w.server.model.n_shared;
    elv_codec_plan(codec, &plan, v, n, &arg);
    for (uint32_t first = 0, index = 0, count; first < n; first += count, index++) {
        uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
        size_t len;
        assert_int_equal(codec->encode(v, n, first, index, &arg, bytes, sizeof bytes, &len, &count),
                         ELV_OK);
        assert_int_equal(
            elv_codec_decode(codec, (struct elv_bytes){bytes, len}, count, out + first), ELV_OK);
    }
}

enum fate { /* of an update */
            END,
            ACCEPTED,
            LOST_ANSWER, /* accepted, but told only when asked once more */
            LATE,        /* its chunks are refused: the version closed */
            REFUSED,     /* its commit is: the policy has no use for it */
            TOO_LONG,    /* its commit is: for what it holds */
            REPLACED,    /* the next assignment comes while it is being sent */
            VOID, /* and a ticket says that there is nothing to do, then the same comes again */
            EVALUATES, /* is none */
            WAITS,     /* is none: a ticket tells of version `version`, and of no work */
};

struct turn {
    enum fate fate;
    uint32_t assignment, version;
    enum { ZERO, KEPT, OLD, LEFT } becomes; /* the residual, after this one */
};

static bool sending(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_UPLOADING && x->server.n_chunk_puts > 0;
}

static bool idle(const struct client_world *x)
{
    return x->client.phase == ELV_CLIENT_IDLE && x->work_id == 0;
}

static bool dropped(const struct client_world *x)
{
    return idle(x) && x->client.decided == x->server.ticket.assignment;
}

static void play(const struct turn *t)
{
    struct fake_server *s = &w.server;
    s->n_decided = s->n_chunk_puts = 0;
    s->verdict = (struct elv_verdict){0};
    if (t->fate == WAITS) {
        s->ticket.what = ELV_WHAT_WAIT;
        s->ticket.newest = t->version;
        world_run(&w, 5 * SEC);
        return;
    }
    server_offer(s, t->assignment, t->version);
    if (t->fate == EVALUATES)
        s->ticket.what = ELV_WHAT_EVALUATE;
    if (w.observed != 0)
        world_notify(&w);
    if (t->fate == LATE)
        s->refuse[ELV_OP_UPDATE_CHUNK] =
            (struct refusal_script){ELV_CODE_CONFLICT, ELV_REASON_ROUND_CLOSED, 0, UINT32_MAX};
    if (t->fate == REFUSED || t->fate == TOO_LONG)
        s->verdict = (struct elv_verdict){.decision = ELV_REFUSED,
                                          .reason = t->fate == REFUSED ? ELV_REASON_POLICY
                                                                       : ELV_REASON_OVER_NORM};
    if (t->fate == LOST_ANSWER)
        s->refuse[ELV_OP_COMMIT] =
            (struct refusal_script){ELV_CODE_UNAVAILABLE, ELV_REASON_STORAGE, 100, 3};
    if (t->fate == REPLACED || t->fate == VOID)
        world_until(&w, sending);
    else
        world_until(&w, t->fate == LATE ? dropped : decided);
    s->refuse[ELV_OP_UPDATE_CHUNK].code = 0;
    s->ticket.what = ELV_WHAT_WAIT; /* until the next turn */
    s->ticket.newest = 0;
    if (t->fate == VOID) {
        world_notify(&w);
        world_until(&w, idle);
    }
}

static void check_course(const char *layers, const struct elv_codec_choice *up,
                         const struct turn *course)
{
    static float left[PARAMS_MAX], vector[PARAMS_MAX], got[PARAMS_MAX], want[PARAMS_MAX];
    make(layers, up);
    const uint32_t n = w.server.model.n_shared;
    memset(left, 0, sizeof left);
    if (course[0].fate == REPLACED || course[0].fate == VOID)
        w.cfg.observe = true; /* it is told at once */
    for (const struct turn *t = course; t->fate != END; t++) {
        if (t == course) {
            server_offer(&w.server, t->assignment, t->version);
            world_start(&w);
        }
        play(t);
        if (t->fate == EVALUATES || t->fate == WAITS)
            continue;
        learnt(layers, t->assignment, t->version, vector);
        for (uint32_t i = 0; i < n; i++)
            vector[i] += left[i];
        coded(up, t->assignment, vector, want);
        if (t->fate == ACCEPTED || t->fate == LOST_ANSWER || t->fate == REFUSED) {
            server_update(&w.server, got);
            assert_memory_equal(got, want, n * sizeof *got);
        }
        for (uint32_t i = 0; i < n && t->becomes != OLD; i++)
            left[i] = t->becomes == ZERO ? 0 : t->becomes == KEPT ? vector[i] : vector[i] - want[i];
    }
    world_free(&w);
}

static void every_course_of_events_leaves_the_right_residual(void **state)
{
    (void)state;
    static const struct turn courses[][8] = {
        {{ACCEPTED, 1, 0, LEFT},
         {ACCEPTED, 2, 1, LEFT},
         {ACCEPTED, 3, 2, LEFT},
         {ACCEPTED, 4, 4, LEFT}},
        {{LOST_ANSWER, 1, 0, LEFT}, {ACCEPTED, 2, 1, LEFT}},
        /* Refused, and one version later tried again; then too many versions later. */
        {{REFUSED, 1, 0, KEPT}, {ACCEPTED, 2, 1, LEFT}, {ACCEPTED, 3, 1, LEFT}},
        {{ACCEPTED, 1, 0, LEFT}, {REFUSED, 2, 1, OLD}, {ACCEPTED, 3, 3, LEFT}},
        {{ACCEPTED, 1, 0, LEFT}, {LATE, 2, 1, KEPT}, {LATE, 3, 2, KEPT}, {ACCEPTED, 4, 3, LEFT}},
        {{ACCEPTED, 1, 0, LEFT}, {LATE, 2, 1, OLD}, {ACCEPTED, 3, 4, LEFT}, {ACCEPTED, 4, 4, LEFT}},
        {{ACCEPTED, 1, 0, LEFT}, {TOO_LONG, 2, 0, ZERO}, {ACCEPTED, 3, 0, LEFT}},
        {{REPLACED, 1, 0, KEPT}, {ACCEPTED, 2, 1, LEFT}, {ACCEPTED, 3, 2, LEFT}},
        {{REPLACED, 1, 0, OLD}, {ACCEPTED, 2, 2, LEFT}, {ACCEPTED, 3, 2, LEFT}},
        /* The same work once more is the same bytes. */
        {{VOID, 1, 0, OLD}, {ACCEPTED, 1, 0, LEFT}, {ACCEPTED, 2, 1, LEFT}},
        /* What comes in between uses the vector's memory, or tells of the version. */
        {{LATE, 1, 0, KEPT}, {EVALUATES, 2, 1, OLD}, {ACCEPTED, 3, 4, LEFT}},
        {{LATE, 1, 0, OLD}, {EVALUATES, 2, 2, OLD}, {ACCEPTED, 3, 2, LEFT}},
        {{ACCEPTED, 1, 0, LEFT}, {EVALUATES, 2, 1, OLD}, {ACCEPTED, 3, 4, LEFT}},
        {{LATE, 1, 0, KEPT}, {WAITS, 0, 1, OLD}, {ACCEPTED, 3, 4, LEFT}},
        {{LATE, 1, 0, OLD}, {WAITS, 0, 2, OLD}, {ACCEPTED, 3, 4, LEFT}},
    };
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
            for (size_t i = 0; i < sizeof courses / sizeof *courses; i++) {
                print_message("%s, codec %u, course %zu\n", models[m], choices[k].id, i);
                check_course(models[m], &choices[k], courses[i]);
            }
}

static void a_manifest_read_again_leaves_the_residual_alone(void **state)
{
    (void)state;
    static float d1[PARAMS_MAX], d2[PARAMS_MAX], got[PARAMS_MAX], want[PARAMS_MAX];
    make(models[0], &choices[0]);
    world_start(&w);
    world_until(&w, decided);
    w.server.manifest.weight_max++; /* the operator edited the job */
    server_encode_manifest(&w.server);
    server_offer(&w.server, 2, 1);
    w.server.n_decided = 0;
    world_until(&w, decided);
    assert_int_equal(w.server.asked[ELV_OP_MANIFEST], 2);
    learnt(models[0], 1, 0, d1);
    learnt(models[0], 2, 1, d2);
    coded(&choices[0], 1, d1, want);
    for (uint32_t i = 0; i < w.server.model.n_shared; i++)
        d2[i] += d1[i] - want[i];
    coded(&choices[0], 2, d2, want);
    server_update(&w.server, got);
    assert_memory_equal(got, want, w.server.model.n_shared * sizeof *got);
    world_free(&w);
}

static size_t mem(enum elv_feedback kind, float momentum)
{
    w.server.manifest.feedback = kind;
    w.server.manifest.momentum_correction = momentum;
    return elv_client_mem(&w.cfg, &w.server.manifest, &w.server.model, 8);
}

static void a_residual_takes_a_vector_and_no_more(void **state)
{
    (void)state;
    make(models[0], &choices[2]);
    const size_t n = w.server.model.n_shared, none = mem(ELV_FEEDBACK_NONE, 0);
    const size_t pad = 2 * ELV_ARENA_ALIGN;
    assert_in_range(mem(ELV_FEEDBACK_F32, 0), none + 4 * n, none + 4 * n + pad);
    assert_in_range(mem(ELV_FEEDBACK_F16, 0), none + 2 * n, none + 2 * n + pad);
    assert_in_range(mem(ELV_FEEDBACK_F16, 0.5f), none + 6 * n, none + 6 * n + pad);
    w.server.manifest.up[0] = (struct elv_codec_choice){.id = ELV_CODEC_F32};
    const size_t f32 = mem(ELV_FEEDBACK_NONE, 0);
    assert_int_equal(mem(ELV_FEEDBACK_F32, 0.5f), f32); /* nothing is lost, nothing is kept */
}

static bool names(const struct elv_join *j, uint8_t codec)
{
    return memchr(j->codecs, codec, j->n_codecs) != NULL;
}

static void a_device_without_room_for_it_leaves_such_codecs_to_others(void **state)
{
    (void)state;
    for (int alone = 0; alone < 2; alone++) {
        make(models[0], &choices[0]);
        w.server.manifest.up[1] = (struct elv_codec_choice){.id = ELV_CODEC_F16};
        w.server.manifest.n_up = alone ? 1 : 2;
        server_encode_manifest(&w.server);
        w.mem_len =
            elv_client_mem(&w.cfg, &w.server.manifest, &w.server.model, w.server.ticket.batch);
        w.server.ticket.up = w.server.manifest.up[1];
        world_start(&w);
        w.client.mem_len = w.client.fixed.cap = w.mem_len - 4;
        world_until(&w, alone ? ended : decided);
        if (alone) {
            assert_int_equal(w.client.exit_reason, ELV_REASON_MODEL_TOO_BIG);
        } else {
            assert_false(names(&w.server.join, ELV_CODEC_Q8));
            assert_true(names(&w.server.join, ELV_CODEC_F16));
            assert_int_equal(w.client.stats.accepted, 1);
        }
        world_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_course_of_events_leaves_the_right_residual),
        cmocka_unit_test(a_manifest_read_again_leaves_the_residual_alone),
        cmocka_unit_test(a_residual_takes_a_vector_and_no_more),
        cmocka_unit_test(a_device_without_room_for_it_leaves_such_codecs_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
