/* SPDX-License-Identifier: Apache-2.0 */
/* What the server sends is deflated when the job says so and it pays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/codec.h"
#include "ports/zlib/squeeze.h"
#include "tests/server_world.h"

enum { PARAMS = 1020, VERSIONS = 3 };

static struct elv_zlib *zlib;
static struct elv_squeeze squeeze;

static int open_zlib(void **state)
{
    (void)state;
    if (elv_zlib_open(&zlib) != ELV_OK)
        return -1;
    squeeze = elv_zlib_squeeze(zlib);
    return 0;
}

static int close_zlib(void **state)
{
    (void)state;
    elv_zlib_close(zlib);
    return 0;
}

static enum elv_err never_shorter(void *self, uint8_t *out, size_t cap, struct elv_bytes in,
                                  size_t *len)
{
    (void)self, (void)out, (void)cap, (void)in, (void)len;
    return ELV_ERR_SPACE;
}

static const struct elv_squeeze useless = {.deflate = never_shorter};

struct run { /* of one client through VERSIONS versions */
    struct world w;
    struct elv_ticket last;
    float model[PARAMS];    /* as a client has it that took every step */
    uint32_t n, n_deflated; /* step chunks */
    size_t bytes;           /* of them */
};

/* Takes the step a ticket offers, and checks its digest. */
static void take_step(struct run *r, const struct elv_body_ref *body)
{
    struct elv_body_digest d;
    uint8_t digest[ELV_BODY_DIGEST_LEN], hash[ELV_CHUNK_HASH_LEN], plain[ELV_CHUNK_PAYLOAD_MAX];
    float step[PARAMS];
    uint32_t end = 0;
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < body->n_chunks; i++) {
        struct elv_chunk c;
        const struct elv_request ask = {
            .op = ELV_OP_STEP_CHUNK, .digest = elv_digest_key(body->digest), .chunk = i};
        const struct world_reply *reply = world_ask(&r->w, 1, &ask);
        const struct elv_bytes bytes = {reply->body, reply->len};
        assert_int_equal(elv_chunk_decode(bytes, &c), ELV_OK);
        assert_memory_equal(c.tag, body->digest, sizeof c.tag);
        assert_int_equal(c.first, end);
        elv_chunk_hash(bytes, hash);
        elv_body_digest_add(&d, hash);
        r->n++;
        r->bytes += bytes.len;
        if (c.flags & ELV_CHUNK_DEFLATED) {
            r->n_deflated++;
            size_t len = 0;
            assert_int_equal(squeeze.inflate(squeeze.self, plain, sizeof plain, c.payload, &len),
                             ELV_OK);
            assert_true(len > c.payload.len);
            c.payload = (struct elv_bytes){plain, len};
        }
        assert_int_equal(
            elv_codec_decode(elv_codec_by_id(c.codec), c.payload, c.count, step + c.first), ELV_OK);
        end += c.count;
    }
    assert_int_equal(end, PARAMS);
    elv_body_digest_final(&d, digest);
    assert_memory_equal(digest, body->digest, sizeof digest);
    for (uint32_t i = 0; i < PARAMS; i++)
        r->model[i] += step[i];
}

static void check_model(const struct run *r)
{
    uint8_t digest[32];
    elv_sha256_f32(r->model, PARAMS, digest);
    assert_memory_equal(digest, r->last.model, sizeof digest);
}

/* Few values change, so that there is something to save. */
static void contribute(struct world *w)
{
    struct elv_ticket t;
    static struct upload u;
    float v[PARAMS] = {0};
    assert_true(world_ticket(w, 1, &t));
    for (uint32_t i = 0; i < PARAMS; i += 17)
        v[i] = (float)(i % 5) * 0.25f - 0.3f;
    world_encode(w, &u, 1, &t, v, t.assignment);
    for (uint32_t i = 0; i < u.n_chunks; i++)
        world_put(w, &u, i);
    assert_int_equal(world_verdict(world_commit(w, &u), NULL), ELV_ACCEPTED);
}

static void start(struct run *r, const char *deflate, const struct elv_squeeze *with)
{
    memset(r, 0, sizeof *r);
    world_init(&r->w);
    world_set(&r->w, "job", "rounds", "9");
    world_set(&r->w, "transfer", "down", "q8");
    world_set(&r->w, "transfer", "deflate", deflate);
    r->w.cfg.squeeze = with;
    world_start(&r->w);
    world_join(&r->w, 1);
    memcpy(r->model, elv_server_model(r->w.s), sizeof r->model);
}

static void go_on(struct run *r)
{
    contribute(&r->w);
    assert_true(world_ticket(&r->w, 1, &r->last));
    take_step(r, &r->last.step[0]);
    check_model(r);
}

static void run(struct run *r, const char *deflate, const struct elv_squeeze *with)
{
    start(r, deflate, with);
    for (uint32_t i = 0; i < VERSIONS; i++)
        go_on(r);
}

static void steps_travel_deflated_and_lead_to_the_same_bits(void **state)
{
    (void)state;
    static struct run plain, deflated;
    run(&plain, "off", &squeeze);
    run(&deflated, "on", &squeeze);
    assert_int_equal(plain.n_deflated, 0);
    assert_int_equal(deflated.n_deflated, deflated.n);
    assert_int_equal(deflated.n, plain.n);
    assert_true(deflated.bytes < plain.bytes / 2);
    assert_memory_equal(deflated.model, plain.model, sizeof plain.model);
    world_free(&plain.w);
    world_free(&deflated.w);
}

static void a_chunk_that_would_not_be_shorter_stays_as_it_is(void **state)
{
    (void)state;
    const struct elv_squeeze *with[] = {&useless, NULL};
    static struct run off, on;
    run(&off, "off", NULL);
    for (size_t i = 0; i < 2; i++) {
        run(&on, "on", with[i]);
        assert_int_equal(on.n_deflated, 0);
        assert_memory_equal(on.last.step[0].digest, off.last.step[0].digest, ELV_BODY_DIGEST_LEN);
        world_free(&on.w);
    }
    world_free(&off.w);
}

static void the_full_model_is_never_deflated(void **state)
{
    (void)state;
    static struct run off, on;
    run(&off, "off", NULL);
    run(&on, "on", &squeeze);
    assert_memory_equal(on.last.full.digest, off.last.full.digest, ELV_BODY_DIGEST_LEN);
    world_free(&off.w);
    world_free(&on.w);
}

static void a_restart_serves_the_same_bytes_whatever_the_library(void **state)
{
    (void)state;
    const struct elv_squeeze *later[] = {&squeeze, &useless, NULL};
    for (size_t i = 0; i < 3; i++) {
        static struct run r;
        struct elv_ticket t;
        run(&r, "on", &squeeze);
        const size_t bytes = r.bytes;
        world_crash(&r.w, true);
        r.w.cfg.squeeze = later[i];
        world_start(&r.w);
        assert_true(world_ticket(&r.w, 1, &t));
        assert_int_equal(t.n_steps, r.last.n_steps);
        for (uint32_t k = 0; k < t.n_steps; k++)
            assert_memory_equal(t.step[k].digest, r.last.step[k].digest, ELV_BODY_DIGEST_LEN);
        r.bytes = 0;
        for (uint32_t k = 0; k < t.n_steps; k++)
            take_step(&r, &t.step[k]);
        assert_int_equal(r.bytes, bytes);
        memcpy(r.model, elv_server_model(r.w.s), sizeof r.model);
        go_on(&r);
        world_free(&r.w);
    }
}

static void a_version_lost_by_a_crash_is_made_again_with_the_same_step(void **state)
{
    (void)state;
    static struct run whole, broken;
    run(&whole, "on", &squeeze);
    start(&broken, "on", &squeeze);
    broken.w.hold_work = ELV_WORK_MAKE;
    contribute(&broken.w);
    world_crash(&broken.w, true);
    broken.w.hold_work = (enum elv_server_work)0;
    world_start(&broken.w);
    assert_true(world_ticket(&broken.w, 1, &broken.last));
    assert_int_equal(broken.last.version, 1);
    assert_memory_equal(broken.last.step[0].digest, whole.last.step[VERSIONS - 1].digest,
                        ELV_BODY_DIGEST_LEN);
    world_free(&whole.w);
    world_free(&broken.w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_travel_deflated_and_lead_to_the_same_bits),
        cmocka_unit_test(a_chunk_that_would_not_be_shorter_stays_as_it_is),
        cmocka_unit_test(the_full_model_is_never_deflated),
        cmocka_unit_test(a_restart_serves_the_same_bytes_whatever_the_library),
        cmocka_unit_test(a_version_lost_by_a_crash_is_made_again_with_the_same_step),
    };
    return cmocka_run_group_tests(tests, open_zlib, close_zlib);
}
