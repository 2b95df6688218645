/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a peer sends: it is refused with its reason, counted, and hurts nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/server_world.h"

/* Client 1 misbehaves, client 2 does not; the round must close with client 2's update. */
struct scene {
    struct world w;
    struct elv_ticket t;
    struct upload u;
    float v[1020];
};

static void set_up(struct scene *sc, const char *codec)
{
    world_init(&sc->w);
    world_set(&sc->w, "select", "min_clients", "2");
    world_set(&sc->w, "transfer", "up", codec);
    world_set(&sc->w, "transfer", "clip", "8");
    world_start(&sc->w);
    world_join(&sc->w, 1);
    world_join(&sc->w, 2);
    assert_true(world_ticket(&sc->w, 1, &sc->t));
    assert_int_equal(sc->t.what, ELV_WHAT_TRAIN);
    world_update(&sc->w, 1, &sc->t, sc->v);
    world_encode(&sc->w, &sc->u, 1, &sc->t, sc->v, 42);
}

static uint64_t n_refused(const struct scene *sc, enum elv_reason reason)
{
    return elv_server_stats(sc->w.s)->refused[reason];
}

static void put_all(struct scene *sc)
{
    for (uint32_t i = 0; i < sc->u.n_chunks; i++)
        assert_int_equal(world_put(&sc->w, &sc->u, i)->code, ELV_CODE_CHANGED);
}

static void tear_down(struct scene *sc)
{
    assert_true(world_contribute(&sc->w, 2));
    world_advance(&sc->w, 31000000);
    assert_true(elv_server_stats(sc->w.s)->version >= 1);
    world_free(&sc->w);
}

/* What a chunk's header says, made wrong. */
static void set_u32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (8 * i));
}

static void chunks_that_do_not_fit_are_refused_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint32_t at, value, index; /* u32 put at that offset of chunk 1; sent to that path */
        uint8_t code;
        enum elv_reason reason;
    } rows[] = {
        {"an index other than the path's", 4, 2, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"an index beyond the codec's bound", 4, 5, 5, ELV_CODE_BAD_REQUEST,
         ELV_REASON_WRONG_SHAPE},
        {"a range that starts past the end", 8, 1020, 1, ELV_CODE_BAD_REQUEST,
         ELV_REASON_WRONG_SHAPE},
        {"a range that ends past the end", 8, 900, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_WRONG_SHAPE},
        {"a count of zero", 12, 0, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"a model chunk", 0, 1 | 1 << 8, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
        {"another codec", 0, 3 | 2 << 8, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_CODEC},
        {"deflate, which nothing here undoes", 0, 3 | 1 << 8 | 1 << 16, 1, ELV_CODE_BAD_REQUEST,
         ELV_REASON_CODEC},
        {"an unknown flag", 0, 3 | 1 << 8 | 1 << 17, 1, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene sc;
        set_up(&sc, "f32");
        set_u32(sc.u.chunk[1] + rows[i].at, rows[i].value);
        const struct world_reply *r =
            world_ask(&sc.w, 1,
                      &(struct elv_request){.op = ELV_OP_UPDATE_CHUNK,
                                            .assignment = sc.u.assignment,
                                            .chunk = rows[i].index,
                                            .body = {sc.u.chunk[1], sc.u.len[1]}});
        if (!world_refused(r, rows[i].code, rows[i].reason))
            fail_msg("%s: code %d.%02d", rows[i].what, r->code >> 5, r->code & 31);
        assert_int_equal(n_refused(&sc, rows[i].reason), 1);
        tear_down(&sc);
    }
}

static void truncated_chunks_are_malformed(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    for (size_t len = 0; len <= ELV_CHUNK_HEAD_LEN; len++) {
        sc.u.len[0] = len;
        assert_true(
            world_refused(world_put(&sc.w, &sc.u, 0), ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED));
    }
    tear_down(&sc);
}

/* Each row spoils the values or the shape; the verdict must name it, and repeat it. */
static void spoil_nan(struct scene *sc) { sc->v[500] = NAN; }
static void spoil_infinite(struct scene *sc) { sc->v[1019] = -INFINITY; }
static void spoil_bound(struct scene *sc) { sc->v[0] = 8.5f; }
static void spoil_norm(struct scene *sc)
{
    for (uint32_t i = 0; i < 1020; i++)
        sc->v[i] = 0.3f; /* norm 9.6 */
}

/* f32 chunks carry the values as they are, so they can be spoilt after encoding too. */
static void write_values(struct scene *sc)
{
    for (uint32_t i = 0; i < 1020; i++)
        memcpy(sc->u.chunk[i / 250] + ELV_CHUNK_HEAD_LEN + i % 250 * 4, &sc->v[i], 4);
    upload_seal(&sc->u);
}

static void updates_that_are_not_sane_are_refused_for_ever(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct scene *sc);
        enum elv_reason reason;
    } rows[] = {
        {spoil_nan, ELV_REASON_NOT_FINITE},
        {spoil_infinite, ELV_REASON_NOT_FINITE},
        {spoil_bound, ELV_REASON_OUT_OF_RANGE},
        {spoil_norm, ELV_REASON_OVER_NORM},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene sc;
        enum elv_reason reason = ELV_REASON_NONE;
        set_up(&sc, "f32");
        rows[i].spoil(&sc);
        write_values(&sc);
        put_all(&sc);
        assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
        assert_int_equal(reason, rows[i].reason);
        assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
        assert_int_equal(reason, rows[i].reason);
        assert_int_equal(n_refused(&sc, rows[i].reason), 1);
        assert_int_equal(elv_server_stats(sc.w.s)->updates_refused, 1);
        tear_down(&sc);
    }
}

static void a_norm_at_the_clip_is_not_too_long(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    const float each = 8.0f / sqrtf(1020.0f) * 1.0005f; /* rounding on the device is forgiven */
    for (uint32_t i = 0; i < 1020; i++)
        sc.v[i] = each;
    write_values(&sc);
    put_all(&sc);
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), NULL), ELV_ACCEPTED);
    tear_down(&sc);
}

static void ranges_must_tile_the_model(void **state)
{
    (void)state;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct scene sc;
        enum elv_reason reason = ELV_REASON_NONE;
        set_up(&sc, "f32");
        set_u32(sc.u.chunk[2] + 8, overlap ? 499 : 501); /* should start at 500 */
        upload_seal(&sc.u);
        put_all(&sc);
        assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
        assert_int_equal(reason, ELV_REASON_WRONG_SHAPE);
        tear_down(&sc);
    }
}

static void fewer_chunks_than_the_model_needs_are_the_wrong_shape(void **state)
{
    (void)state;
    struct scene sc;
    enum elv_reason reason = ELV_REASON_NONE;
    set_up(&sc, "f32");
    put_all(&sc);
    sc.u.n_chunks = 4; /* the fifth is there, but the commit does not speak of it */
    upload_seal(&sc.u);
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_WRONG_SHAPE);
    tear_down(&sc);
}

static void more_chunks_than_the_codec_can_make_are_the_wrong_shape(void **state)
{
    (void)state;
    struct scene sc;
    enum elv_reason reason = ELV_REASON_NONE;
    set_up(&sc, "f32");
    put_all(&sc);
    sc.u.commit.n_chunks = 6;
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_WRONG_SHAPE);
    tear_down(&sc);
}

static void a_digest_of_other_chunks_is_refused(void **state)
{
    (void)state;
    struct scene sc;
    enum elv_reason reason = ELV_REASON_NONE;
    set_up(&sc, "q8");
    put_all(&sc);
    sc.u.commit.digest[31] ^= 1;
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_DIGEST);
    tear_down(&sc);
}

static void a_payload_that_is_not_the_codecs_is_malformed(void **state)
{
    (void)state;
    struct scene sc;
    enum elv_reason reason = ELV_REASON_NONE;
    set_up(&sc, "f32");
    sc.u.len[1] -= 4; /* 249 values, and a header that says 250 */
    upload_seal(&sc.u);
    put_all(&sc);
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), &reason), ELV_REFUSED);
    assert_int_equal(reason, ELV_REASON_MALFORMED);
    tear_down(&sc);
}

static void a_commit_before_its_chunks_is_told_which_are_missing(void **state)
{
    (void)state;
    struct scene sc;
    struct elv_verdict v;
    set_up(&sc, "f32");
    const struct world_reply *r = world_commit(&sc.w, &sc.u);
    assert_int_equal(world_verdict(r, NULL), ELV_MISSING);
    world_put(&sc.w, &sc.u, 0);
    world_put(&sc.w, &sc.u, 2);
    world_put(&sc.w, &sc.u, 4);
    r = world_commit(&sc.w, &sc.u);
    assert_int_equal(elv_verdict_decode((struct elv_bytes){r->body, r->len}, &v), ELV_OK);
    assert_int_equal(v.decision, ELV_MISSING);
    assert_int_equal(v.missing.first, 1);
    assert_int_equal(v.missing.have[0], 1 << 1 | 1 << 3); /* 2 and 4 */
    world_put(&sc.w, &sc.u, 1);
    world_put(&sc.w, &sc.u, 3);
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), NULL), ELV_ACCEPTED);
    tear_down(&sc);
}

static void duplicates_are_answered_like_the_first_and_counted_once(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    for (int again = 0; again < 3; again++)
        put_all(&sc);
    assert_int_equal(elv_server_stats(sc.w.s)->chunks_repeated, 10);
    assert_int_equal(fake_disk_log(&sc.w.disk, 1)->len,
                     1020 * 4 + 5 * (ELV_CHUNK_HEAD_LEN + ELV_LOG_HEAD_LEN));
    for (int again = 0; again < 3; again++)
        assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), NULL), ELV_ACCEPTED);
    assert_int_equal(elv_server_stats(sc.w.s)->updates_used, 1);
    tear_down(&sc);
}

static void a_new_attempt_discards_the_old_and_late_datagrams_of_it_do_no_harm(void **state)
{
    (void)state;
    struct scene sc;
    struct upload old;
    set_up(&sc, "f32");
    old = sc.u;
    world_put(&sc.w, &old, 0);
    world_put(&sc.w, &old, 1);
    sc.v[3] = 0.5f;
    world_encode(&sc.w, &sc.u, 1, &sc.t, sc.v, 43);
    world_put(&sc.w, &sc.u, 2);
    assert_true(world_refused(world_put(&sc.w, &old, 2), ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED));
    assert_true(world_refused(world_commit(&sc.w, &old), ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED));
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), NULL), ELV_MISSING);
    put_all(&sc);
    assert_int_equal(world_verdict(world_commit(&sc.w, &sc.u), NULL), ELV_ACCEPTED);
    tear_down(&sc);
}

static void assignments_that_are_not_ones_own_are_refused(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    sc.u.assignment = 999;
    assert_true(world_refused(world_put(&sc.w, &sc.u, 0), ELV_CODE_CONFLICT,
                              ELV_REASON_UNKNOWN_ASSIGNMENT));
    assert_true(world_refused(world_commit(&sc.w, &sc.u), ELV_CODE_CONFLICT,
                              ELV_REASON_UNKNOWN_ASSIGNMENT));
    sc.u.peer = 3; /* never joined */
    assert_true(
        world_refused(world_put(&sc.w, &sc.u, 0), ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED));
    assert_true(
        world_refused(world_commit(&sc.w, &sc.u), ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED));
    assert_true(world_refused(world_ask(&sc.w, 3, &(struct elv_request){.op = ELV_OP_TICKET}),
                              ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED));
    tear_down(&sc);
}

static void an_update_for_a_closed_round_is_refused_at_once(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    assert_true(world_contribute(&sc.w, 2));
    world_advance(&sc.w, 31000000); /* closed with the quorum of one; the next is open */
    assert_int_equal(elv_server_stats(sc.w.s)->version, 1);
    assert_true(
        world_refused(world_put(&sc.w, &sc.u, 0), ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED));
    tear_down(&sc);
}

static void bodies_nobody_has_are_not_found(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    const uint64_t digest = elv_digest_key(sc.t.full.digest);
    const struct elv_request rows[] = {
        {.op = ELV_OP_MODEL_CHUNK, .digest = digest ^ 1, .chunk = 0},
        {.op = ELV_OP_MODEL_CHUNK, .digest = digest, .chunk = sc.t.full.n_chunks},
        {.op = ELV_OP_STEP_CHUNK, .digest = digest, .chunk = 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_true(world_refused(world_ask(&sc.w, 1, &rows[i]), ELV_CODE_NOT_FOUND,
                                  ELV_REASON_SUPERSEDED));
    tear_down(&sc);
}

static void joins_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        uint32_t wire_min, wire_max;
        const char *software;
        uint8_t codec;
        uint8_t manifest; /* flips a bit */
        uint64_t memory;
        uint8_t code;
        enum elv_reason reason;
    } rows[] = {
        {2, 3, "elver/0.1.0", 1, 0, 0, ELV_CODE_FORBIDDEN, ELV_REASON_WIRE_VERSION},
        {1, 1, "elver/0.0.9", 1, 0, 0, ELV_CODE_FORBIDDEN, ELV_REASON_SOFTWARE_OLD},
        {1, 1, "other/9.0.0", 1, 0, 0, ELV_CODE_FORBIDDEN, ELV_REASON_SOFTWARE_OLD},
        {1, 1, "elver/0.1.0", 2, 0, 0, ELV_CODE_FORBIDDEN, ELV_REASON_NO_CODEC},
        {1, 1, "elver/0.1.0", 1, 1, 0, ELV_CODE_CONFLICT, ELV_REASON_MANIFEST_OLD},
        {1, 1, "elver/0.1.0", 1, 0, 4079, ELV_CODE_FORBIDDEN, ELV_REASON_MODEL_TOO_BIG},
    };
    struct world w;
    world_init(&w);
    w.cfg.software_min = "elver/0.1.0";
    w.cfg.limits.clients_max = 2;
    world_start(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_join join = world_join_of(&w, 1);
        join.wire_min = rows[i].wire_min;
        join.wire_max = rows[i].wire_max;
        join.software = (struct elv_text){rows[i].software, strlen(rows[i].software)};
        join.codecs[0] = rows[i].codec;
        join.n_codecs = 1;
        join.manifest[0] ^= rows[i].manifest;
        join.memory = rows[i].memory;
        assert_true(world_refused(world_join_as(&w, 1, &join), rows[i].code, rows[i].reason));
        assert_int_equal(elv_server_stats(w.s)->n_joined, 0);
    }
    assert_int_equal(world_notes(&w, ELV_NOTE_JOIN_REFUSED), 6);
    world_join(&w, 1);
    world_join(&w, 2);
    const struct elv_join third = world_join_of(&w, 3);
    assert_true(world_refused(world_join_as(&w, 3, &third), ELV_CODE_UNAVAILABLE, ELV_REASON_FULL));
    world_free(&w);
}

static void a_claim_beyond_the_cap_is_cut_counted_and_reported_once(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    world_init(&w);
    world_set(&w, "aggregate", "max_weight", "50");
    world_start(&w);
    world_join(&w, 1);
    for (int round = 0; round < 2; round++) {
        assert_true(world_make(&w, &u, 1, 5));
        u.commit.samples = 1000000;
        for (uint32_t i = 0; i < u.n_chunks; i++)
            world_put(&w, &u, i);
        assert_int_equal(world_verdict(world_commit(&w, &u), NULL), ELV_ACCEPTED);
    }
    assert_int_equal(elv_server_stats(w.s)->capped, 2);
    assert_int_equal(world_notes(&w, ELV_NOTE_CAPPED), 1);
    const struct elv_row *row = &w.s->roster.rows[0];
    assert_int_equal(row->last.weight, elv_weight_of(&w.s->scales, 50, 1.0));
    world_free(&w);
}

static void a_client_that_starts_over_and_over_meets_its_quota(void **state)
{
    (void)state;
    struct scene sc;
    set_up(&sc, "f32");
    bool refused = false;
    for (uint64_t nonce = 100; nonce < 200 && !refused; nonce++) {
        world_encode(&sc.w, &sc.u, 1, &sc.t, sc.v, nonce);
        refused = world_refused(world_put(&sc.w, &sc.u, 0), ELV_CODE_TOO_LARGE, ELV_REASON_QUOTA);
    }
    assert_true(refused);
    tear_down(&sc);
}

static void a_full_log_is_refused_until_the_round_ends(void **state)
{
    (void)state;
    struct world w;
    struct upload u;
    world_init(&w);
    w.cfg.limits.log_bytes_max = 3000;
    world_start(&w);
    world_join(&w, 1);
    assert_true(world_make(&w, &u, 1, 5));
    assert_int_equal(world_put(&w, &u, 0)->code, ELV_CODE_CHANGED);
    const struct world_reply *r;
    for (uint32_t i = 1; (r = world_put(&w, &u, i))->code == ELV_CODE_CHANGED; i++)
        assert_true(i < 4);
    assert_true(world_refused(r, ELV_CODE_UNAVAILABLE, ELV_REASON_FULL));
    assert_true(r->max_age_s >= 1);
    world_free(&w);
}

static void when_all_slots_are_taken_others_are_asked_to_come_again(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    static float v[1020];
    struct upload u[2];
    world_init(&w);
    w.cfg.limits.uploads_max = 1;
    world_set(&w, "select", "min_clients", "2");
    world_start(&w);
    for (uint32_t peer = 1; peer <= 2; peer++)
        world_join(&w, peer);
    for (uint32_t peer = 1; peer <= 2; peer++) {
        world_ticket(&w, peer, &t);
        world_update(&w, peer, &t, v);
        world_encode(&w, &u[peer - 1], peer, &t, v, 5);
    }
    assert_int_equal(world_put(&w, &u[0], 0)->code, ELV_CODE_CHANGED);
    assert_true(world_refused(world_put(&w, &u[1], 0), ELV_CODE_UNAVAILABLE, ELV_REASON_FULL));
    world_advance(&w, 5000000); /* the first has gone quiet: its slot goes to the second */
    assert_int_equal(world_put(&w, &u[1], 0)->code, ELV_CODE_CHANGED);
    assert_true(world_contribute(&w, 2));
    assert_int_equal(world_verdict(world_commit(&w, &u[0]), NULL), ELV_MISSING);
    assert_true(world_contribute(&w, 1));
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_that_do_not_fit_are_refused_at_once),
        cmocka_unit_test(truncated_chunks_are_malformed),
        cmocka_unit_test(updates_that_are_not_sane_are_refused_for_ever),
        cmocka_unit_test(a_norm_at_the_clip_is_not_too_long),
        cmocka_unit_test(ranges_must_tile_the_model),
        cmocka_unit_test(fewer_chunks_than_the_model_needs_are_the_wrong_shape),
        cmocka_unit_test(more_chunks_than_the_codec_can_make_are_the_wrong_shape),
        cmocka_unit_test(a_digest_of_other_chunks_is_refused),
        cmocka_unit_test(a_payload_that_is_not_the_codecs_is_malformed),
        cmocka_unit_test(a_commit_before_its_chunks_is_told_which_are_missing),
        cmocka_unit_test(duplicates_are_answered_like_the_first_and_counted_once),
        cmocka_unit_test(a_new_attempt_discards_the_old_and_late_datagrams_of_it_do_no_harm),
        cmocka_unit_test(assignments_that_are_not_ones_own_are_refused),
        cmocka_unit_test(an_update_for_a_closed_round_is_refused_at_once),
        cmocka_unit_test(bodies_nobody_has_are_not_found),
        cmocka_unit_test(joins_are_refused_with_the_reason),
        cmocka_unit_test(a_claim_beyond_the_cap_is_cut_counted_and_reported_once),
        cmocka_unit_test(a_client_that_starts_over_and_over_meets_its_quota),
        cmocka_unit_test(a_full_log_is_refused_until_the_round_ends),
        cmocka_unit_test(when_all_slots_are_taken_others_are_asked_to_come_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
