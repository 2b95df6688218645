/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "tests/client_world.h"

#include <cmocka.h>

/* The scripted server's bodies, without its node and network. */
static struct client_world w;
static float base[PARAMS_MAX], fresh[PARAMS_MAX], values[ELV_PACK_VALUES];
static uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX], hashes[CHUNKS_MAX * ELV_CHUNK_HASH_LEN];
static struct elv_pack pack;
static struct elv_base b;

static void make(const char *layers)
{
    world_init(&w, layers, ELV_CODEC_Q8, ELV_CODEC_Q8);
    pack = (struct elv_pack){.values = values, .bytes = bytes};
    const struct elv_base_cfg cfg = {.model = &w.server.model,
                                     .pack = &pack,
                                     .seed = w.server.manifest.seed,
                                     .base = base,
                                     .fresh = fresh,
                                     .hash = hashes,
                                     .hash_cap = elv_base_hash_cap(&w.server.model)};
    assert_in_range(cfg.hash_cap, 1, CHUNKS_MAX);
    elv_base_init(&b, &cfg);
}

static struct elv_bytes chunk_for(const struct elv_request *r)
{
    const struct body *set = r->op == ELV_OP_MODEL_CHUNK ? w.server.full : w.server.step;
    for (uint32_t v = 0; v < VERSIONS; v++) {
        const uint64_t digest = elv_digest_key(set[v].ref.digest);
        if (digest == r->digest && set[v].ref.n_chunks > 0)
            return (struct elv_bytes){set[v].bytes[r->chunk], set[v].len[r->chunk]};
    }
    fail_msg("no such body");
    return (struct elv_bytes){0};
}

/* Plans for a version and takes all chunks, from the last to the first. */
static uint32_t fetch(uint32_t version)
{
    uint32_t n;
    server_offer(&w.server, 1, version);
    assert_int_equal(elv_base_plan(&b, &w.server.ticket, &n), ELV_OK);
    assert_in_range(n, 0, elv_base_chunks_max(&w.server.model));
    for (uint32_t i = n; i > 0; i--) {
        const struct elv_request r = elv_base_request(&b, i - 1);
        assert_int_equal(elv_base_take(&b, i - 1, chunk_for(&r)), ELV_OK);
    }
    return n;
}

static enum elv_err finish(uint32_t budget)
{
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; err == ELV_ERR_BUSY; i++) {
        assert_in_range(i, 0, 1000);
        err = elv_base_run(&b, budget);
    }
    return err;
}

static void expect(uint32_t version)
{
    static float shared[PARAMS_MAX];
    const uint32_t n = w.server.model.n_shared;
    assert_true(b.held && b.version == version);
    elv_model_gather(&w.server.model, base, 0, n, shared);
    assert_memory_equal(shared, w.server.version[version], n * sizeof *shared);
    assert_memory_equal(base, fresh, w.server.model.n_params * sizeof *base);
}

static const char *const models[] = {
    "dense 24 relu, dense 10",
    "dense 20 relu local, dense 24 relu, dense 10 local, dense 16 relu, dense 10",
};

static void versions_come_out_to_the_last_bit_however_the_work_is_sliced(void **state)
{
    (void)state;
    static const uint32_t course[] = {0, 1, 3, 3, 4, 2, 0, 4};
    for (size_t m = 0; m < 2; m++)
        for (uint32_t budget = 1; budget < 100; budget *= 7) {
            make(models[m]);
            for (size_t i = 0; i < sizeof course / sizeof *course; i++) {
                fetch(course[i]);
                assert_int_equal(finish(budget), ELV_OK);
                expect(course[i]);
            }
        }
}

static void work_broken_off_anywhere_leaves_no_half_made_version_behind(void **state)
{
    (void)state;
    static const struct {
        uint32_t held, next;
    } rows[] = {{1, 3}, {0, 4}, {2, 2}, {3, 1}};
    for (size_t m = 0; m < 2; m++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            enum elv_err err = ELV_ERR_BUSY;
            for (uint32_t slices = 0; err == ELV_ERR_BUSY; slices++) {
                make(models[m]);
                fetch(rows[i].held);
                assert_int_equal(finish(9), ELV_OK);
                fetch(rows[i].next);
                for (uint32_t k = 0; k < slices && err == ELV_ERR_BUSY; k++)
                    err = elv_base_run(&b, 1);
                if (err == ELV_ERR_BUSY)
                    elv_base_abort(&b);
                fetch(rows[i].next);
                assert_int_equal(finish(9), ELV_OK);
                expect(rows[i].next);
            }
            assert_int_equal(err, ELV_OK);
        }
}

static void as_many_step_chunks_as_full_ones_mean_the_full_model(void **state)
{
    (void)state;
    make("dense 20 relu local, dense 10"); /* 210 shared: one chunk either way */
    fetch(0);
    assert_int_equal(finish(9), ELV_OK);
    assert_int_equal(fetch(1), 1);
    assert_int_equal(b.way, ELV_BASE_FULL);
    assert_int_equal(finish(9), ELV_OK);
    expect(1);
}

/* Chunk `i` of a body again with another place, and the digest made to fit. */
static void move_chunk(struct body *body, uint32_t i, uint32_t first, uint32_t count)
{
    struct elv_wr at = elv_wr_of(body->bytes[i] + 8, 8);
    elv_wr_u32(&at, first);
    elv_wr_u32(&at, count);
    struct elv_body_digest digest;
    uint8_t hash[ELV_CHUNK_HASH_LEN];
    elv_body_digest_init(&digest);
    for (uint32_t k = 0; k < body->ref.n_chunks; k++) {
        elv_chunk_hash((struct elv_bytes){body->bytes[k], body->len[k]}, hash);
        elv_body_digest_add(&digest, hash);
    }
    elv_body_digest_final(&digest, body->ref.digest);
    for (uint32_t k = 0; k < body->ref.n_chunks; k++)
        memcpy(body->bytes[k] + 16, body->ref.digest, ELV_CHUNK_TAG_LEN);
}

static void ranges_that_do_not_tile_the_model_are_refused_before_anything_changes(void **state)
{
    (void)state;
    static float before[PARAMS_MAX];
    static const struct {
        uint32_t chunk;
        int32_t shift;
    } rows[] = {{2, 1}, {2, -1}, {6, 40}, {1, 3000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make(models[0]);
        fetch(0);
        assert_int_equal(finish(9), ELV_OK);
        memcpy(before, base, sizeof before);
        struct elv_chunk c;
        struct body *step = &w.server.step[1];
        assert_int_equal(
            elv_chunk_decode(
                (struct elv_bytes){step->bytes[rows[i].chunk], step->len[rows[i].chunk]}, &c),
            ELV_OK);
        move_chunk(step, rows[i].chunk, (uint32_t)((int32_t)c.first + rows[i].shift), c.count);
        fetch(1);
        assert_int_equal(b.way, ELV_BASE_STEPS);
        assert_int_equal(finish(9), ELV_ERR_FORMAT);
        assert_memory_equal(before, base, sizeof before);
        assert_false(b.held);
    }
    /* One that stops short of the end. */
    make(models[0]);
    fetch(0);
    assert_int_equal(finish(9), ELV_OK);
    w.server.step[1].ref.n_chunks--;
    move_chunk(&w.server.step[1], 0, 0, 996);
    fetch(1);
    assert_int_equal(finish(9), ELV_ERR_FORMAT);
}

static void chunks_out_of_place_are_not_taken(void **state)
{
    (void)state;
    uint32_t n;
    make(models[0]);
    server_offer(&w.server, 1, 4);
    struct body *full = &w.server.full[4];
    assert_int_equal(elv_base_plan(&b, &w.server.ticket, &n), ELV_OK);
    assert_int_equal(b.way, ELV_BASE_FULL);
    static const struct {
        const char *what;
        uint32_t asked, sent, at;
        uint8_t change;
        enum elv_err want;
    } rows[] = {
        {"the one asked for", 3, 3, 0, 0, ELV_OK},
        {"another one", 3, 4, 0, 0, ELV_ERR_MISMATCH},
        {"of another kind", 3, 3, 0, 3, ELV_ERR_MISMATCH},
        {"of no kind", 3, 3, 0, 0x80, ELV_ERR_FORMAT},
        {"in another codec", 3, 3, 1, 3, ELV_ERR_MISMATCH},
        {"with a flag of the future", 3, 3, 2, 2, ELV_ERR_FORMAT},
        {"deflated, they say", 3, 3, 2, 1, ELV_ERR_UNSUPPORTED},
        {"starting elsewhere", 3, 3, 8, 1, ELV_ERR_FORMAT},
        {"covering fewer", 3, 3, 12, 1, ELV_ERR_FORMAT},
        {"covering a million more", 3, 3, 14, 16, ELV_ERR_FORMAT},
        {"of another body", 3, 3, 16, 1, ELV_ERR_MISMATCH},
        {"with an infinite value", 3, 3, 27, 0, ELV_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%s\n", rows[i].what);
        uint8_t copy[ELV_CHUNK_MAX];
        const size_t len = full->len[rows[i].sent];
        memcpy(copy, full->bytes[rows[i].sent], len);
        copy[rows[i].at] ^= rows[i].change;
        if (rows[i].want == ELV_ERR_RANGE)
            memcpy(copy + ELV_CHUNK_HEAD_LEN, "\0\0\x80\x7f", 4);
        assert_int_equal(elv_base_take(&b, rows[i].asked, (struct elv_bytes){copy, len}),
                         rows[i].want);
        for (size_t cut = 0; cut < len && rows[i].want == ELV_OK; cut += 13)
            assert_int_not_equal(elv_base_take(&b, 3, (struct elv_bytes){copy, cut}), ELV_OK);
    }
}

static void an_offer_that_cannot_be_the_model_is_refused(void **state)
{
    (void)state;
    uint32_t n;
    make(models[0]);
    static const struct {
        const char *what;
        uint32_t n_chunks;
        uint8_t codec;
    } rows[] = {{"no chunks", 0, ELV_CODEC_F32},
                {"one too few", 25, ELV_CODEC_F32},
                {"one too many", 27, ELV_CODEC_F32},
                {"far too many", UINT32_MAX, ELV_CODEC_F32},
                {"not in full precision", 7, ELV_CODEC_Q8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%s\n", rows[i].what);
        server_offer(&w.server, 1, 4);
        w.server.ticket.full.n_chunks = rows[i].n_chunks;
        w.server.ticket.full.codec = rows[i].codec;
        assert_int_equal(elv_base_plan(&b, &w.server.ticket, &n), ELV_ERR_FORMAT);
    }
    /* Steps in a codec nobody knows, or too many to keep: then in full. */
    server_offer(&w.server, 1, 2);
    w.server.ticket.step[1].codec = 77;
    assert_int_equal(elv_base_plan(&b, &w.server.ticket, &n), ELV_OK);
    assert_int_equal(b.way, ELV_BASE_FULL);
    server_offer(&w.server, 1, 2);
    w.server.ticket.step[0].n_chunks = UINT32_MAX;
    assert_int_equal(elv_base_plan(&b, &w.server.ticket, &n), ELV_OK);
    assert_int_equal(b.way, ELV_BASE_FULL);
    server_offer(&w.server, 1, 1); /* nothing but one step: taken, though the full one is shorter */
    w.server.ticket.full.n_chunks = 0;
    assert_int_equal(elv_base_plan(&b, &w.server.ticket, &n), ELV_OK);
    assert_int_equal(b.way, ELV_BASE_STEPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_come_out_to_the_last_bit_however_the_work_is_sliced),
        cmocka_unit_test(work_broken_off_anywhere_leaves_no_half_made_version_behind),
        cmocka_unit_test(as_many_step_chunks_as_full_ones_mean_the_full_model),
        cmocka_unit_test(ranges_that_do_not_tile_the_model_are_refused_before_anything_changes),
        cmocka_unit_test(chunks_out_of_place_are_not_taken),
        cmocka_unit_test(an_offer_that_cannot_be_the_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
