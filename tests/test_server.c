/* SPDX-License-Identifier: Apache-2.0 */
/* A server and obedient peers: what a run looks like when nothing goes wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "tests/server_world.h"

static void one_client_makes_three_versions_and_is_told_to_stop(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    world_init(&w);
    world_start(&w);
    world_join(&w, 4);
    for (uint32_t version = 0; version < 3; version++) {
        world_ticket(&w, 4, &t);
        assert_int_equal(t.what, ELV_WHAT_TRAIN);
        assert_int_equal(t.version, version);
        assert_int_equal(t.local_epochs, 1);
        assert_int_equal(t.batch, 8);
        assert_true(world_contribute(&w, 4));
    }
    world_ticket(&w, 4, &t);
    assert_int_equal(t.what, ELV_WHAT_STOP);
    assert_true(w.ended);
    assert_int_equal(w.exit_code, 0);
    assert_int_equal(elv_server_stats(w.s)->version, 3);
    assert_int_equal(elv_server_stats(w.s)->updates_used, 3);
    world_free(&w);
}

static void the_next_model_is_the_weighted_mean_of_the_updates(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    static float first[1020], v[1020];
    static double want[1020];
    world_init(&w);
    world_set(&w, "select", "min_clients", "3");
    world_start(&w);
    memcpy(first, elv_server_model(w.s), sizeof first);
    for (uint32_t peer = 1; peer <= 3; peer++)
        world_join(&w, peer);
    world_ticket(&w, 1, &t);
    for (uint32_t peer = 1; peer <= 3; peer++) {
        world_update(&w, peer, &t, v);
        for (uint32_t i = 0; i < 1020; i++)
            want[i] += (double)v[i] * peer / 6.0; /* weights 10, 20, 30 */
    }
    for (uint32_t peer = 3; peer >= 1; peer--)
        assert_true(world_contribute(&w, peer));
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    for (uint32_t i = 0; i < 1020; i++)
        assert_true(fabs((double)elv_server_model(w.s)[i] - first[i] - want[i]) < 1e-6);
    world_free(&w);
}

static void arrivals_in_any_order_and_any_slice_of_work_give_the_same_bytes(void **state)
{
    (void)state;
    static const uint32_t orders[3][4] = {{1, 2, 3, 4}, {4, 2, 1, 3}, {3, 4, 2, 1}};
    uint8_t digest[3][32];
    for (int k = 0; k < 3; k++) {
        struct world w;
        world_init(&w);
        world_set(&w, "select", "min_clients", "4");
        world_set(&w, "transfer", "up", "q8");
        world_set(&w, "transfer", "down", "q8");
        w.budget = k == 1 ? 1 : 7;
        world_start(&w);
        for (uint32_t i = 0; i < 4; i++)
            world_join(&w, orders[k][i]);
        for (uint32_t round = 0; round < 3; round++)
            for (uint32_t i = 0; i < 4; i++)
                assert_true(world_contribute(&w, orders[k][3 - i]));
        assert_true(w.ended);
        memcpy(digest[k], elv_server_stats(w.s)->model, 32);
        world_free(&w);
    }
    assert_memory_equal(digest[0], digest[1], 32);
    assert_memory_equal(digest[0], digest[2], 32);
}

static void fetch(struct world *w, enum elv_op op, const struct elv_body_ref *ref, float *out,
                  float *base)
{
    struct elv_body_digest d;
    uint8_t hash[ELV_CHUNK_HASH_LEN], digest[ELV_BODY_DIGEST_LEN];
    uint32_t at = 0;
    elv_body_digest_init(&d);
    for (uint32_t i = 0; i < ref->n_chunks; i++) {
        const struct world_reply *r = world_ask(
            w, 1,
            &(struct elv_request){.op = op, .digest = elv_digest_key(ref->digest), .chunk = i});
        struct elv_chunk c;
        float v[1024];
        assert_int_equal(r->code, ELV_CODE_CONTENT);
        assert_int_equal(r->max_age_s, 86400);
        const struct elv_bytes body = {r->body, r->len};
        assert_int_equal(elv_chunk_decode(body, &c), ELV_OK);
        assert_int_equal(c.index, i);
        assert_int_equal(c.first, at);
        assert_memory_equal(c.tag, ref->digest, 8);
        elv_chunk_hash(body, hash);
        elv_body_digest_add(&d, hash);
        assert_int_equal(elv_codec_decode(elv_codec_by_id(c.codec), c.payload, c.count, v), ELV_OK);
        for (uint32_t k = 0; k < c.count; k++)
            out[at + k] = base ? base[at + k] + v[k] : v[k];
        at += c.count;
    }
    elv_body_digest_final(&d, digest);
    assert_memory_equal(digest, ref->digest, sizeof digest);
    assert_int_equal(at, 1020);
}

static void steps_and_the_full_model_lead_to_the_same_bits(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    static float a[1020], b[1020];
    uint8_t digest[32];
    world_init(&w);
    world_set(&w, "job", "rounds", "6");
    world_set(&w, "transfer", "down", "q8");
    world_start(&w);
    world_join(&w, 1);
    world_ticket(&w, 1, &t);
    assert_int_equal(t.n_steps, 0);
    fetch(&w, ELV_OP_MODEL_CHUNK, &t.full, a, NULL);
    for (uint32_t version = 1; version <= 5; version++) {
        assert_true(world_contribute(&w, 1));
        world_ticket(&w, 1, &t);
        assert_int_equal(t.version, version);
        assert_true(t.n_steps >= 1);
        fetch(&w, ELV_OP_STEP_CHUNK, &t.step[0], a, a);
        fetch(&w, ELV_OP_MODEL_CHUNK, &t.full, b, NULL);
        assert_memory_equal(a, b, sizeof a);
        elv_sha256_f32(a, 1020, digest);
        assert_memory_equal(digest, t.model, 32);
    }
    assert_true(t.n_steps >= 2);
    world_free(&w);
}

static void a_ticket_stays_the_same_until_its_commit(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t, again;
    world_init(&w);
    world_set(&w, "select", "min_clients", "2");
    world_start(&w);
    world_join(&w, 1);
    world_ticket(&w, 1, &t);
    assert_int_equal(t.what, ELV_WHAT_WAIT);
    world_join(&w, 2);
    world_ticket(&w, 1, &t);
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    world_advance(&w, 5000000);
    world_ticket(&w, 1, &again);
    assert_int_equal(again.assignment, t.assignment);
    assert_int_equal(again.deadline_ms + 5000, t.deadline_ms);
    assert_true(world_contribute(&w, 1));
    world_ticket(&w, 1, &again);
    assert_int_equal(again.what, ELV_WHAT_WAIT);
    world_free(&w);
}

static void a_late_joiner_waits_for_the_next_round(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    world_init(&w);
    world_start(&w);
    world_join(&w, 1);
    world_join(&w, 2);
    world_ticket(&w, 2, &t);
    assert_int_equal(t.what, ELV_WHAT_WAIT);
    assert_true(world_contribute(&w, 1));
    world_ticket(&w, 2, &t);
    assert_int_equal(t.what, ELV_WHAT_TRAIN);
    assert_int_equal(t.version, 1);
    world_free(&w);
}

static void backup_closes_with_the_first_k_and_turns_the_others_away(void **state)
{
    (void)state;
    struct world w;
    struct elv_ticket t;
    static float v[1020];
    struct upload late;
    world_init(&w);
    world_set(&w, "sync", "policy", "backup");
    world_set(&w, "sync", "k", "2");
    world_set(&w, "select", "min_clients", "3");
    world_start(&w);
    for (uint32_t peer = 1; peer <= 3; peer++)
        world_join(&w, peer);
    world_ticket(&w, 3, &t);
    world_update(&w, 3, &t, v);
    world_encode(&w, &late, 3, &t, v, 77);
    world_put(&w, &late, 0);
    assert_true(world_contribute(&w, 1));
    assert_true(world_contribute(&w, 2));
    assert_int_equal(elv_server_stats(w.s)->version, 1);
    assert_int_equal(elv_server_stats(w.s)->updates_late, 1);
    assert_true(world_refused(world_put(&w, &late, 1), ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED));
    assert_true(world_refused(world_commit(&w, &late), ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED));
    world_free(&w);
}

static void the_manifest_is_the_jobs_and_its_digest_is_in_the_ticket(void **state)
{
    (void)state;
    struct world w;
    struct elv_manifest m;
    uint8_t digest[32];
    struct elv_ticket t;
    world_init(&w);
    world_start(&w);
    const struct world_reply *r = world_ask(&w, 9, &(struct elv_request){.op = ELV_OP_MANIFEST});
    assert_int_equal(r->code, ELV_CODE_CONTENT);
    assert_int_equal(elv_manifest_decode((struct elv_bytes){r->body, r->len}, &m), ELV_OK);
    assert_int_equal(m.n_params, 1020);
    assert_int_equal(m.seed, 7);
    elv_sha256(r->body, r->len, digest);
    world_join(&w, 9);
    world_ticket(&w, 9, &t);
    assert_memory_equal(digest, t.manifest, 8);
    world_free(&w);
}

static void observers_are_told_when_their_ticket_changes(void **state)
{
    (void)state;
    struct world w;
    world_init(&w);
    world_set(&w, "job", "rounds", "1");
    world_set(&w, "select", "min_clients", "2");
    world_start(&w);
    world_join(&w, 1);
    world_ask(&w, 1, &(struct elv_request){.op = ELV_OP_TICKET, .observe = true});
    assert_int_equal(w.n_notified, 0);
    world_join(&w, 2);
    world_advance(&w, 10000);
    assert_int_equal(w.n_notified, 1); /* the round opened; client 2 does not observe */
    assert_int_equal(w.notified[0], 1);
    world_ask(&w, 1, &(struct elv_request){.op = ELV_OP_TICKET, .observe = true});
    const struct elv_request again = {.op = ELV_OP_TICKET, .observe = true};
    assert_true(world_contribute(&w, 2));
    world_ask(&w, 1, &again);
    w.n_notified = 0;
    assert_true(world_contribute(&w, 1));
    world_ask(&w, 1, &again);
    world_advance(&w, 10000);
    assert_true(w.ended);
    assert_true(w.n_notified <= 2);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_client_makes_three_versions_and_is_told_to_stop),
        cmocka_unit_test(the_next_model_is_the_weighted_mean_of_the_updates),
        cmocka_unit_test(arrivals_in_any_order_and_any_slice_of_work_give_the_same_bytes),
        cmocka_unit_test(steps_and_the_full_model_lead_to_the_same_bits),
        cmocka_unit_test(a_ticket_stays_the_same_until_its_commit),
        cmocka_unit_test(a_late_joiner_waits_for_the_next_round),
        cmocka_unit_test(backup_closes_with_the_first_k_and_turns_the_others_away),
        cmocka_unit_test(the_manifest_is_the_jobs_and_its_digest_is_in_the_ticket),
        cmocka_unit_test(observers_are_told_when_their_ticket_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
