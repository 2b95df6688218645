/* SPDX-License-Identifier: Apache-2.0 */
/* Records: what is written is read, nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "server/ledger.h"

static const struct elv_rec_run run = {.run = {1, 2, 3},
                                       .seed = 0x1122334455667788,
                                       .fingerprint = {9, 8},
                                       .n_params = 1020,
                                       .bound = 8.0f,
                                       .down = 2};
static const struct elv_rec_head head = {.version = 7,
                                         .next_seq = 9,
                                         .next_assignment = 12,
                                         .n_abandoned = 1,
                                         .best_version = 5,
                                         .best_accuracy = 0.8125,
                                         .over = true};
static const struct elv_rec_clock clock_rec = {.seq = 9, .elapsed_us = 1234567};
static const struct elv_rec_client client = {
    .joined = true, .boot = 77, .memory = 1 << 20, .speed = 900, .samples = 60, .codec = 2};
static const struct elv_rec_round round_rec = {.what = ELV_WHAT_TRAIN,
                                               .version = 7,
                                               .assignment = 11,
                                               .n_asked = 3000,
                                               .n_blocks = 12,
                                               .weight_bits = -3,
                                               .deadline_us = 30000000};
static const struct elv_rec_decision decision = {.assignment = 11,
                                                 .seq = 9,
                                                 .status = ELV_STATUS_DONE,
                                                 .decision = ELV_REFUSED,
                                                 .reason = ELV_REASON_OVER_NORM,
                                                 .weight = 480,
                                                 .n_chunks = 5,
                                                 .nonce = 42,
                                                 .from = 1024,
                                                 .bytes = 4200,
                                                 .samples = 60,
                                                 .seen = 120,
                                                 .steps = 8,
                                                 .loss_sum = 31.5};
#define EVAL                                                                                       \
    {                                                                                              \
        .n = 10, .loss = 2.5, .n_classes = 2, .support = {4, 6}, .predicted = {5, 5}, .correct = { \
            3,                                                                                     \
            4                                                                                      \
        }                                                                                          \
    }
static const struct elv_sums sums = {.eval = EVAL};
static const struct elv_sums named = {
    .eval = EVAL, .user = {.at = {{"tokens", 12.5}, {"a.very:long-name", -3}}, .n = 2}};
static const struct elv_rec_decision used = {.assignment = 11,
                                             .seq = 9,
                                             .status = ELV_STATUS_DONE,
                                             .decision = ELV_ACCEPTED,
                                             .weight = 240,
                                             .n_chunks = 5,
                                             .samples = 60,
                                             .factor = 0.5,
                                             .norm2 = 6.25,
                                             .version = 7,
                                             .staleness = 3};
static const struct elv_rec_version version = {.model = {1},
                                               .full = {{2}, 5, 1},
                                               .step = {{3}, 2, 2},
                                               .seq = 9,
                                               .n_used = 4,
                                               .weight_sum = 1920,
                                               .master = true,
                                               .eval = {.n = 1, .loss = 0.5}};

/* Each record, its bytes, and both functions behind one shape. */
#define SHAPE(type, var)                                                                           \
    static size_t encode_##type(uint8_t out[ELV_REC_MAX])                                          \
    {                                                                                              \
        return elv_rec_##type##_encode(&(var), out);                                               \
    }                                                                                              \
    static enum elv_err decode_##type(struct elv_bytes in, uint8_t out[ELV_REC_MAX], size_t *len)  \
    {                                                                                              \
        struct elv_rec_##type got;                                                                 \
        const enum elv_err err = elv_rec_##type##_decode(in, &got);                                \
        *len = err == ELV_OK ? elv_rec_##type##_encode(&got, out) : 0;                             \
        return err;                                                                                \
    }
SHAPE(run, run)
SHAPE(head, head)
SHAPE(clock, clock_rec)
SHAPE(client, client)
SHAPE(round, round_rec)
SHAPE(version, version)

/* What came later lies at the end. */
static const struct elv_rec_head last_head = {
    .version = 7, .next_seq = 9, .next_assignment = 12, .best_accuracy = -1.0, .surveyed = 7};
static const struct elv_rec_round survey = {
    .what = ELV_WHAT_EVALUATE, .version = 7, .assignment = 11, .n_asked = 3, .n_blocks = 1};

#define ALSO(name, type, var)                                                                      \
    static size_t encode_##name(uint8_t out[ELV_REC_MAX])                                          \
    {                                                                                              \
        return elv_rec_##type##_encode(&(var), out);                                               \
    }
ALSO(last_head, head, last_head)
ALSO(survey, round, survey)

/* Of a stream. */
static const struct elv_rec_head stream_head = {.version = 7,
                                                .next_seq = 9,
                                                .next_assignment = 12,
                                                .best_accuracy = -1.0,
                                                .log = 8,
                                                .void_below = 3};
static const struct elv_rec_clock run_clock = {.seq = 9, .elapsed_us = 12, .run_us = 99000000};
static const struct elv_rec_round stream_round = {.what = ELV_WHAT_TRAIN,
                                                  .version = 7,
                                                  .assignment = 11,
                                                  .weight_bits = 3,
                                                  .deadline_us = 30000000,
                                                  .stream = true};
static const struct elv_rec_offer offer_rec = {
    .assignment = 12, .seq = 9, .version = 7, .granted_us = 98000000, .size = {0, 5, 32}};
ALSO(stream_head, head, stream_head)
ALSO(run_clock, clock, run_clock)
ALSO(stream_round, round, stream_round)
SHAPE(offer, offer_rec)

static size_t encode_decision(uint8_t out[ELV_REC_MAX])
{
    return elv_rec_decision_encode(&decision, &sums, out);
}

static size_t encode_named(uint8_t out[ELV_REC_MAX])
{
    return elv_rec_decision_encode(&decision, &named, out);
}

static size_t encode_used(uint8_t out[ELV_REC_MAX])
{
    return elv_rec_decision_encode(&used, &named, out);
}

static size_t encode_counted(uint8_t out[ELV_REC_MAX])
{
    return elv_rec_counted_encode(77, &used, &sums, out);
}

static enum elv_err decode_counted(struct elv_bytes in, uint8_t out[ELV_REC_MAX], size_t *len)
{
    uint32_t who = 0;
    struct elv_rec_decision got;
    struct elv_sums found;
    const enum elv_err err = elv_rec_counted_decode(in, &who, &got, &found);
    *len = err == ELV_OK ? elv_rec_counted_encode(who, &got, &found, out) : 0;
    return err;
}

static enum elv_err decode_decision(struct elv_bytes in, uint8_t out[ELV_REC_MAX], size_t *len)
{
    struct elv_rec_decision got;
    struct elv_sums found;
    const enum elv_err err = elv_rec_decision_decode(in, &got, &found);
    *len = err == ELV_OK ? elv_rec_decision_encode(&got, &found, out) : 0;
    return err;
}

static const struct {
    const char *name;
    size_t (*encode)(uint8_t out[ELV_REC_MAX]);
    enum elv_err (*decode)(struct elv_bytes in, uint8_t out[ELV_REC_MAX], size_t *len);
    size_t len;    /* part of the schema */
    uint32_t hash; /* FNV-1a of the bytes: they may not change either */
    size_t older;  /* a record of this length is one, too; 0: none */
    uint8_t schema;
} records[] = {
    {"run", encode_run, decode_run, 66, 0xe712d72b, 0, 1},
    {"head", encode_head, decode_head, 31, 0xb049037c, 0, 1},
    {"clock", encode_clock, decode_clock, 13, 0x900b34c2, 0, 1},
    {"client", encode_client, decode_client, 28, 0x5bdfbb19, 0, 1},
    {"round", encode_round, decode_round, 29, 0x8ebd9054, 0, 1},
    {"decision", encode_decision, decode_decision, 101, 0x6df1633b, 0, 1},
    {"version", encode_version, decode_version, 137, 0x97bab1ef, 0, 1},
    {"last head", encode_last_head, decode_head, 35, 0x775d1690, 31, 1},
    {"named sums", encode_named, decode_decision, 142, 0x1f421a47, 101, 1},
    {"survey", encode_survey, decode_round, 30, 0x68bb68a0, 29, 1},
    {"head of a stream", encode_stream_head, decode_head, 43, 0x14e0773d, 0, 2},
    {"run clock", encode_run_clock, decode_clock, 21, 0x94b92c73, 0, 2},
    {"round of a stream", encode_stream_round, decode_round, 29, 0xcea0f111, 0, 2},
    {"offer", encode_offer, decode_offer, 33, 0x74e156cb, 0, 1},
    {"counted", encode_counted, decode_counted, 130, 0x24931c07, 0, 1},
    {"used", encode_used, decode_decision, 166, 0x77fbc40f, 125, 2},
};
enum { N_RECORDS = sizeof records / sizeof records[0] };

static uint32_t hash_of(const uint8_t *at, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ at[i]) * 16777619u;
    return h;
}

static void records_are_the_bytes_of_their_schema(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECORDS; i++) {
        uint8_t bytes[ELV_REC_MAX];
        const size_t len = records[i].encode(bytes);
        assert_int_equal(bytes[0], records[i].schema);
        if (len != records[i].len || hash_of(bytes, len) != records[i].hash)
            print_message("%s: %zu bytes, hash 0x%08x\n", records[i].name, len,
                          (unsigned)hash_of(bytes, len));
        assert_int_equal(len, records[i].len);
        assert_int_equal(hash_of(bytes, len), records[i].hash);
    }
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECORDS; i++) {
        uint8_t bytes[ELV_REC_MAX], again[ELV_REC_MAX];
        size_t len_again;
        const size_t len = records[i].encode(bytes);
        assert_int_equal(records[i].decode((struct elv_bytes){bytes, len}, again, &len_again),
                         ELV_OK);
        assert_int_equal(len, len_again);
        assert_memory_equal(bytes, again, len);
    }
}

static void no_part_of_a_record_and_nothing_longer_is_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECORDS; i++) {
        uint8_t bytes[ELV_REC_MAX + 1] = {0}, again[ELV_REC_MAX];
        size_t len_again;
        const size_t len = records[i].encode(bytes);
        for (size_t cut = 0; cut < len; cut++)
            if (cut != records[i].older)
                assert_int_not_equal(
                    records[i].decode((struct elv_bytes){bytes, cut}, again, &len_again), ELV_OK);
        assert_int_not_equal(
            records[i].decode((struct elv_bytes){bytes, len + 1}, again, &len_again), ELV_OK);
        bytes[0] = 3;
        assert_int_equal(records[i].decode((struct elv_bytes){bytes, len}, again, &len_again),
                         ELV_ERR_VERSION);
    }
}

static void a_block_of_assignments_holds_its_clients(void **state)
{
    (void)state;
    uint8_t bytes[ELV_ASSIGN_HEAD_LEN + 3 * ELV_ASSIGN_ITEM_LEN];
    uint32_t assignment = 0, n = 0;
    elv_rec_assign_head(bytes, 11, 3);
    for (uint32_t i = 0; i < 3; i++)
        elv_rec_assign_item(bytes + ELV_ASSIGN_HEAD_LEN + i * ELV_ASSIGN_ITEM_LEN,
                            &(struct elv_rec_assign){100 + i, {0, 5 + i, 32}});
    const struct elv_bytes in = {bytes, sizeof bytes};
    assert_int_equal(elv_rec_assign_open(in, &assignment, &n), ELV_OK);
    assert_int_equal(assignment, 11);
    assert_int_equal(n, 3);
    for (uint32_t i = 0; i < n; i++) {
        struct elv_rec_assign item;
        elv_rec_assign_at(in, i, &item);
        assert_int_equal(item.client, 100 + i);
        assert_int_equal(item.size.local_steps, 5 + i);
        assert_int_equal(item.size.batch, 32);
    }
    for (size_t cut = 0; cut < sizeof bytes; cut++)
        assert_int_not_equal(elv_rec_assign_open((struct elv_bytes){bytes, cut}, &assignment, &n),
                             ELV_OK);
    assert_true(elv_assign_key(2, 0) > elv_assign_key(1, 0xFFFFFF));
}

static void named_sums_have_names_and_each_but_one(void **state)
{
    (void)state;
    static const struct {
        size_t at; /* in the record */
        uint8_t byte;
    } damage[] = {
        {101, 0}, /* none */
        {101, ELV_USER_SUMS_MAX + 1},
        {102, 0},   /* a name of no length */
        {103, ' '}, /* not of the alphabet */
    };
    struct elv_rec_decision d;
    struct elv_sums found;
    uint8_t bytes[ELV_REC_MAX];
    const size_t len = elv_rec_decision_encode(&decision, &named, bytes);
    assert_int_equal(bytes[101], 2);
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        uint8_t bad[ELV_REC_MAX];
        memcpy(bad, bytes, len);
        bad[damage[i].at] = damage[i].byte;
        assert_int_not_equal(elv_rec_decision_decode((struct elv_bytes){bad, len}, &d, &found),
                             ELV_OK);
    }
    struct elv_sums twice = {.user = {.at = {{"x", 1}, {"y", 2}}, .n = 2}};
    twice.user.at[1] = twice.user.at[0];
    const size_t l = elv_rec_decision_encode(&decision, &twice, bytes);
    assert_int_equal(elv_rec_decision_decode((struct elv_bytes){bytes, l}, &d, &found),
                     ELV_ERR_FORMAT);
}

static void what_an_update_was_worth_is_in_range(void **state)
{
    (void)state;
    static const double factors[] = {0.0, -0.5, 1.5, (double)NAN, (double)INFINITY};
    static const double norms[] = {-1.0, (double)NAN};
    enum { FACTOR_AT = 64, NORM2_AT = 72 };
    struct elv_rec_decision d;
    struct elv_sums found;
    uint8_t bytes[ELV_REC_MAX];
    const size_t len = elv_rec_decision_encode(&used, &sums, bytes);
    const struct elv_bytes in = {bytes, len};
    assert_int_equal(elv_rec_decision_decode(in, &d, &found), ELV_OK);
    assert_true(d.factor == 0.5 && d.norm2 == 6.25 && d.version == 7 && d.staleness == 3);
    for (size_t i = 0; i < sizeof norms / sizeof norms[0]; i++) {
        memcpy(bytes + NORM2_AT, &norms[i], sizeof norms[i]);
        assert_int_equal(elv_rec_decision_decode(in, &d, &found), ELV_ERR_RANGE);
    }
    elv_rec_decision_encode(&used, &sums, bytes);
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        memcpy(bytes + FACTOR_AT, &factors[i], sizeof factors[i]);
        assert_int_equal(elv_rec_decision_decode(in, &d, &found), ELV_ERR_RANGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_the_bytes_of_their_schema),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(no_part_of_a_record_and_nothing_longer_is_one),
        cmocka_unit_test(named_sums_have_names_and_each_but_one),
        cmocka_unit_test(what_an_update_was_worth_is_in_range),
        cmocka_unit_test(a_block_of_assignments_holds_its_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
