/* SPDX-License-Identifier: Apache-2.0 */
/* A server that holds the right key and means no good: whatever it says, a client stays within its
 * memory and goes on as soon as it is served properly. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/builtin.h"
#include "tests/client_world.h"

#include <cmocka.h>

enum { VALUES = 256, CLASSES = 10, EXAMPLES = 40 };

static const char *const layers = "dense 24 relu, dense 10";
static struct client_world w;
static struct elv_builtin builtin;
static struct elv_feed feed;

static uint32_t count(void *self) { return (void)self, EXAMPLES; }

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    (void)self;
    *n_values = VALUES;
    *n_classes = CLASSES;
}

static enum elv_err get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    (void)self;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < VALUES; k++)
            x[i * VALUES + k] = (float)((index[i] * 7 + k * 3) % 19) * 0.05f;
        y[i] = index[i] % CLASSES;
    }
    return ELV_OK;
}

static int setup(void **state)
{
    (void)state;
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    world_free(&w);
    return 0;
}

/* The trainer of the product instead of the fake one. */
static void train_for_real(void)
{
    feed = (struct elv_feed){.count = count, .shape = shape, .get = get};
    const struct elv_builtin_cfg cfg = {.train = &feed};
    w.cfg.trainer = elv_builtin_trainer(&builtin, &cfg);
}

/* The next assignment, on which nobody plays tricks, is done as ever. */
static void expect_it_goes_on(void)
{
    w.server.lie = NULL;
    w.server.ticket = (struct elv_ticket){.poll_ms = 500,
                                          .window = 16,
                                          .local_epochs = 2,
                                          .batch = 8,
                                          .learning_rate = 0.1f,
                                          .up = {.id = w.server.manifest.up[0].id},
                                          .deadline_ms = 60000};
    server_encode_manifest(&w.server);
    server_offer(&w.server, w.client.ticket.assignment + 1, 2);
    w.server.n_decided = 0;
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
}

/* Tickets. */

static void numbers_of_a_ticket_may_be_absurd(void **state)
{
    static const struct {
        const char *what;
        uint32_t epochs, steps, batch, deadline_ms, window;
        float rate;
        enum elv_status status; /* of what is committed; 0: it goes on training */
        enum elv_reason reason;
    } rows[] = {
        {"no deadline", 2, 0, 8, 0, 16, 0.1f, ELV_STATUS_DONE, 0},
        {"the smallest window", 2, 0, 8, UINT32_MAX, 1, 0.1f, ELV_STATUS_DONE, 0},
        {"the largest window", 2, 0, 8, UINT32_MAX, UINT32_MAX, 0.1f, ELV_STATUS_DONE, 0},
        {"batches beyond all memory", 2, 0, UINT32_MAX, UINT32_MAX, 16, 0.1f, ELV_STATUS_FAILED,
         ELV_REASON_MODEL_TOO_BIG},
        {"a batch that wraps", 2, 0, 1u << 30, UINT32_MAX, 16, 0.1f, ELV_STATUS_FAILED,
         ELV_REASON_MODEL_TOO_BIG},
        {"the largest learning rate", 2, 0, 8, UINT32_MAX, 16, FLT_MAX, ELV_STATUS_FAILED,
         ELV_REASON_TRAINER},
        {"no learning rate", 2, 0, 8, UINT32_MAX, 16, 0, ELV_STATUS_DONE, 0},
        {"epochs without end", UINT32_MAX, 0, 8, UINT32_MAX, 16, 0.1f, 0, 0},
        {"steps without end", 0, UINT32_MAX, 8, UINT32_MAX, 16, 0.1f, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        train_for_real();
        struct elv_ticket *t = &w.server.ticket;
        t->local_epochs = rows[i].epochs;
        t->local_steps = rows[i].steps;
        t->batch = rows[i].batch;
        t->deadline_ms = rows[i].deadline_ms;
        t->window = rows[i].window;
        t->learning_rate = rows[i].rate;
        t->poll_ms = 0;
        w.cfg.duty = 50; /* in slices, as on a device that has other things to do */
        world_start(&w);
        if (rows[i].status != 0) {
            world_until(&w, decided);
            assert_int_equal(w.server.commit.status, rows[i].status);
            assert_int_equal(w.server.commit.reason, rows[i].reason);
        } else {
            world_run(&w, 30 * SEC);
            assert_int_equal(w.client.phase, ELV_CLIENT_TRAINING);
        }
        expect_it_goes_on();
        world_free(&w);
    }
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
}

/* Ticket bytes that no encoder would write. */
static uint8_t raw[ELV_MSG_MAX];
static size_t raw_len;

static bool raw_ticket(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    (void)s;
    if (r->op != ELV_OP_TICKET)
        return false;
    memcpy(out->body, raw, raw_len);
    out->len = raw_len;
    return true;
}

static void a_ticket_with_a_number_that_is_none_is_not_taken(void **state)
{
    static const uint8_t odd[][3] = {{0xf9, 0x7e, 0x00}, {0xf9, 0x7c, 0x00}, {0xf9, 0xbc, 0x00}};
    static const uint8_t half[] = {0xf9, 0x3c, 0x00}; /* 1 */
    (void)state;
    w.server.ticket.learning_rate = 1;
    assert_int_equal(elv_ticket_encode(&w.server.ticket, raw, sizeof raw, &raw_len), ELV_OK);
    size_t at = 0;
    while (at + 3 <= raw_len && memcmp(raw + at, half, sizeof half) != 0)
        at++;
    assert_true(at + 3 <= raw_len);
    w.server.lie = raw_ticket;
    world_start(&w);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        memcpy(raw + at, odd[i], 3);
        world_run(&w, 20 * SEC);
        assert_int_equal(w.client.stats.assignments, 0);
        assert_true(w.client.stats.malformed > i);
    }
    expect_it_goes_on();
}

static void tickets_of_the_past_are_not_worked_on_again(void **state)
{
    (void)state;
    world_start(&w);
    for (uint32_t a = 2; a < 6; a++) {
        world_until(&w, decided);
        server_offer(&w.server, a, 0);
        w.server.n_decided = 0;
    }
    world_until(&w, decided);
    const uint64_t trained = w.client.stats.trainings;
    for (uint32_t a = 1; a <= 5; a++) {
        server_offer(&w.server, a, a % 3);
        world_run(&w, 5 * SEC);
    }
    assert_int_equal(w.client.stats.trainings, trained);
    assert_int_equal(w.client.phase, ELV_CLIENT_IDLE);
    expect_it_goes_on();
}

/* Answers to the join. */

static bool wide_welcome(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    const struct elv_joined j = {
        .client = UINT32_MAX, .wire = 1, .window = UINT32_MAX, .jitter_ms = 5000, .codec = 255};
    (void)s;
    if (r->op != ELV_OP_JOIN)
        return false;
    assert_int_equal(elv_joined_encode(&j, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
    return true;
}

static void a_welcome_may_promise_the_world(void **state)
{
    (void)state;
    w.server.lie = wide_welcome;
    world_start(&w);
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
    expect_it_goes_on();
}

/* Bodies. */

static uint32_t lie_kind;

/* Chunks under the right path that are never of use. */
static bool false_chunks(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    if (r->op != ELV_OP_STEP_CHUNK && r->op != ELV_OP_MODEL_CHUNK)
        return false;
    const bool full = r->op == ELV_OP_MODEL_CHUNK;
    const struct body *b = full ? &s->full[s->ticket.version] : &s->step[s->ticket.version];
    const uint32_t i = r->chunk < b->ref.n_chunks ? r->chunk : 0;
    out->len = b->len[i];
    memcpy(out->body, b->bytes[i], out->len);
    for (uint32_t k = 0; k < 8; k++)
        out->body[16 + k] = (uint8_t)(r->digest >> (56 - 8 * k));
    switch (lie_kind) {
    case 0: /* cut short */
        out->len = r->chunk % 24;
        break;
    case 1: /* too long */
        memset(out->body + out->len, 0, 2000 - out->len);
        out->len = 2000;
        break;
    case 2: /* of another body */
        out->body[16] ^= 1;
        break;
    case 3: /* always the first */
        memcpy(out->body, b->bytes[0], b->len[0]);
        out->len = b->len[0];
        out->body[4] = (uint8_t)(r->chunk + 1);
        break;
    case 4: /* a range that wraps */
        memset(out->body + 8, 0xFF, 8);
        break;
    case 5: /* an update */
        out->body[0] = ELV_BODY_UPDATE;
        break;
    case 6: /* said to be deflated */
        out->body[2] = ELV_CHUNK_DEFLATED;
        break;
    case 7: /* nothing at all */
        out->len = 0;
        break;
    default: /* a value that is no number */
        memset(out->body + ELV_CHUNK_HEAD_LEN, 0xFF, 4);
    }
    return true;
}

static bool given_up(const struct client_world *world) { return world->server.n_decided > 0; }

static void chunks_that_are_never_right_end_in_a_failure(void **state)
{
    (void)state;
    for (uint32_t full = 0; full < 2; full++) {
        for (lie_kind = 0; lie_kind < 9; lie_kind++) {
            world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
            server_offer(&w.server, 1, full ? 4 : 2);
            w.server.lie = false_chunks;
            world_start(&w);
            world_until(&w, given_up);
            assert_int_equal(w.server.commit.status, ELV_STATUS_FAILED);
            assert_int_equal(w.server.commit.reason, ELV_REASON_DIGEST);
            const uint32_t asked =
                w.server.asked[ELV_OP_STEP_CHUNK] + w.server.asked[ELV_OP_MODEL_CHUNK];
            assert_in_range(asked, 1, 2000);
            expect_it_goes_on();
            world_free(&w);
        }
    }
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
}

static void bodies_of_any_number_of_chunks_are_refused_or_replaced(void **state)
{
    static const uint32_t n[] = {0, 1, 2, 5, 1000, 1u << 31, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        for (int which = 0; which < 3; which++) {
            world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
            server_offer(&w.server, 1, which == 0 ? 4 : 2);
            struct elv_ticket *t = &w.server.ticket;
            if (which != 1)
                t->full =
                    (struct elv_body_ref){.n_chunks = n[i], .codec = n[i] == 0 ? 0 : ELV_CODEC_F32};
            if (which != 0)
                t->step[0].n_chunks = t->step[1].n_chunks = n[i] == 0 ? 1 : n[i];
            world_start(&w);
            world_until(&w, given_up);
            assert_in_range(w.server.n_chunk_puts, 0, 100);
            expect_it_goes_on();
            world_free(&w);
        }
    }
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
}

/* Verdicts. */

static bool always_missing(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    struct elv_verdict v = {.decision = ELV_MISSING};
    if (r->op != ELV_OP_COMMIT)
        return false;
    v.missing.first = s->n_commits++ % 3 == 0 ? UINT32_MAX : 0;
    assert_int_equal(elv_verdict_encode(&v, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
    return true;
}

static void an_update_that_is_never_complete_is_sent_at_a_bounded_pace(void **state)
{
    (void)state;
    w.server.lie = always_missing;
    world_start(&w);
    world_run(&w, 60 * SEC);
    assert_in_range(w.server.n_commits, 2, 2000);
    assert_in_range(w.server.n_chunk_puts, 2, 20000);
    expect_it_goes_on();
}

static bool silly_progress(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    struct elv_progress p = {.window = UINT32_MAX, .missing.first = UINT32_MAX};
    if (r->op != ELV_OP_UPDATE_CHUNK)
        return false;
    if (s->n_chunk_puts++ % 2 == 0)
        memset(p.missing.have, 0xFE, 1);
    assert_int_equal(elv_progress_encode(&p, out->body, ELV_MSG_MAX, &out->len), ELV_OK);
    return true;
}

static void progress_that_was_not_made_is_believed_only_until_the_verdict(void **state)
{
    (void)state;
    w.server.lie = silly_progress;
    world_start(&w);
    world_run(&w, 20 * SEC);
    w.server.lie = NULL;
    world_until(&w, decided);
    assert_int_equal(w.server.commit.status, ELV_STATUS_DONE);
}

/* Manifests. */

static void models_of_any_size_are_refused_without_harm(void **state)
{
    static const struct {
        const char *input, *layers;
        uint32_t n_params;
    } rows[] = {
        {"1x16x16", "dense 2147483647", 2147483647},
        {"1x16x16", "dense 4294967295", 2147483647},
        {"1x16x16", "dense 99999999999999999999", 1},
        {"1x16x16", "dense 24 relu, dense 10", 1},
        {"1x16x16", "dense 24 relu, dense 10", 2147483647},
        {"65535x65535x65535", "dense 10", 2147483647},
        {"4294967295x1x1", "dense 10", 2147483647},
        {"1x16x16", "conv 65535 255x255 stride 1 pad 254, dense 10", 2147483647},
        {"1x16x16", "conv 1 17x17, dense 10", 11},
        {"1x16x16", "conv 1 3x3 stride 0, dense 10", 11},
        {"1x16x16", "maxpool 0, dense 10", 2570},
        {"1x16x16", "maxpool 4294967295, dense 10", 2570},
        {"1x16x16", "dense 10 local", 2570},
        {"0x0x0", "dense 10", 10},
        {"1x16x16", "dense", 10},
        {"1x16x16", ",", 10},
        {"1x16x16", " ", 10},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        train_for_real();
        struct elv_manifest *m = &w.server.manifest;
        m->input = (struct elv_text){rows[i].input, strlen(rows[i].input)};
        m->layers = (struct elv_text){rows[i].layers, strlen(rows[i].layers)};
        m->n_params = rows[i].n_params;
        server_encode_manifest(&w.server);
        world_start(&w);
        world_until(&w, ended);
        assert_int_equal(w.exit_code, ELV_CLIENT_REFUSED);
        world_free(&w);
    }
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
}

static void texts_of_a_manifest_may_be_as_long_as_they_can(void **state)
{
    static char longest[3][ELV_TEXT_MAX];
    static const char part[] = "dense 2 relu, ";
    (void)state;
    for (size_t i = 0; i < ELV_TEXT_MAX; i++) {
        longest[0][i] = part[i % (sizeof part - 1)];
        longest[1][i] = '9';
        longest[2][i] = ' ';
    }
    for (size_t i = 0; i < 9; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        struct elv_manifest *m = &w.server.manifest;
        const struct elv_text text = {longest[i % 3], ELV_TEXT_MAX};
        if (i / 3 == 0)
            m->layers = text;
        if (i / 3 == 1)
            m->input = text;
        if (i / 3 == 2)
            m->partition = text; /* means nothing to this trainer */
        server_encode_manifest(&w.server);
        world_start(&w);
        world_until(&w, i / 3 == 2 ? decided : ended);
        world_free(&w);
    }
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
}

static void scales_of_a_manifest_may_be_absurd(void **state)
{
    static const float rows[][5] = {
        /* scale, mean, std, bound, clip */
        {FLT_MAX, 0, 1, 8, 0}, {1, FLT_MAX, FLT_MIN, 8, 0},
        {0, 0, FLT_MAX, 8, 0}, {1, 0, 1, FLT_MIN, 0},
        {1, 0, 1, FLT_MAX, 0}, {1, 0, 1, 8, FLT_MIN},
        {1, 0, 1, 8, FLT_MAX}, {-FLT_MAX, -FLT_MAX, 1e-45f, 1e-45f, 1e-45f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
        train_for_real();
        struct elv_manifest *m = &w.server.manifest;
        m->scale = rows[i][0], m->mean = rows[i][1], m->std = rows[i][2];
        m->bound = rows[i][3], m->clip = rows[i][4];
        m->momentum = 0.99999f;
        m->weight_decay = i % 2 == 0 ? FLT_MAX : 0;
        m->holdout = 0.999f;
        server_encode_manifest(&w.server);
        world_start(&w);
        world_until(&w, given_up);
        world_free(&w);
    }
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
}

/* Another manifest at each reading, never the one the ticket names. */
static bool moving_manifest(struct fake_server *s, const struct elv_request *r, struct message *out)
{
    if (r->op != ELV_OP_MANIFEST)
        return false;
    s->manifest.seed++;
    const struct elv_ticket ticket = s->ticket;
    server_encode_manifest(s);
    s->ticket = ticket;
    memcpy(out->body, s->manifest_bytes, s->manifest_len);
    out->len = s->manifest_len;
    return true;
}

static void a_manifest_that_always_changes_is_read_ever_more_rarely(void **state)
{
    (void)state;
    w.server.lie = moving_manifest;
    world_start(&w);
    world_run(&w, 600 * SEC);
    assert_int_equal(w.client.stats.assignments, 0);
    assert_in_range(w.server.asked[ELV_OP_MANIFEST], 2, 60);
    w.server.manifest.seed = 42;
    expect_it_goes_on();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    static const struct CMUnitTest tests[] = {
        TEST(numbers_of_a_ticket_may_be_absurd),
        TEST(a_ticket_with_a_number_that_is_none_is_not_taken),
        TEST(tickets_of_the_past_are_not_worked_on_again),
        TEST(a_welcome_may_promise_the_world),
        TEST(chunks_that_are_never_right_end_in_a_failure),
        TEST(bodies_of_any_number_of_chunks_are_refused_or_replaced),
        TEST(an_update_that_is_never_complete_is_sent_at_a_bounded_pace),
        TEST(progress_that_was_not_made_is_believed_only_until_the_verdict),
        TEST(models_of_any_size_are_refused_without_harm),
        TEST(texts_of_a_manifest_may_be_as_long_as_they_can),
        TEST(scales_of_a_manifest_may_be_absurd),
        TEST(a_manifest_that_always_changes_is_read_ever_more_rarely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
