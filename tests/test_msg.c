/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cbor.h"
#include "tests/wire_samples.h"

static enum elv_err decode(int codec, const uint8_t *at, size_t len)
{
    uint8_t *exact = malloc(len + (len == 0)); /* so that a sanitizer sees one byte too many */
    if (len > 0)
        memcpy(exact, at, len);
    union wire_msg m;
    const enum elv_err err = wire_codecs[codec].decode((struct elv_bytes){exact, len}, &m);
    free(exact);
    return err;
}

static void every_truncation_and_every_extra_byte_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < wire_samples_n; i++) {
        uint8_t out[ELV_MANIFEST_MAX];
        if (wire_samples[i].codec < 0)
            continue;
        const size_t len = wire_sample_bytes(&wire_samples[i], out);
        for (size_t cut = 0; cut < len; cut++)
            assert_int_equal(decode(wire_samples[i].codec, out, cut), ELV_ERR_SHORT);
        assert_int_equal(decode(wire_samples[i].codec, out, len), ELV_OK);
        out[len] = 0xF6;
        assert_int_equal(decode(wire_samples[i].codec, out, len + 1), ELV_ERR_FORMAT);
    }
}

static void an_encoder_without_room_says_how_much_it_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < wire_samples_n; i++) {
        uint8_t out[ELV_MANIFEST_MAX];
        const struct wire_sample *s = &wire_samples[i];
        if (s->codec < 0)
            continue;
        const size_t need = wire_sample_bytes(s, out);
        union wire_msg m;
        memset(&m, 0, sizeof m);
        s->fill(&m);
        for (size_t cap = 0; cap < need; cap++) {
            size_t len = 0;
            assert_int_equal(wire_codecs[s->codec].encode(&m, out, cap, &len), ELV_ERR_SPACE);
            assert_int_equal(len, need);
        }
    }
}

/* The pairs of an encoded map: pair i lies between at[i] and at[i + 1]. */
static uint32_t pairs_of(struct elv_bytes in, size_t at[34])
{
    struct elv_rd r = elv_rd_of(in);
    struct elv_cbor_map map = elv_cbor_rd_map(&r);
    const uint32_t n = map.left;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t key;
        at[i] = in.len - r.left;
        assert_true(elv_cbor_rd_key(&r, &map, &key));
        elv_cbor_rd_skip(&r);
    }
    assert_int_equal(r.err, ELV_OK);
    at[n] = in.len;
    return n;
}

static void a_field_left_out_is_missed(void **state)
{
    (void)state;
    for (size_t i = 0; i < wire_samples_n; i++) {
        uint8_t whole[ELV_MANIFEST_MAX], less[ELV_MANIFEST_MAX];
        const int codec = wire_samples[i].codec;
        if (codec < 0)
            continue;
        const struct elv_bytes in = {whole, wire_sample_bytes(&wire_samples[i], whole)};
        size_t at[34];
        const uint32_t n = pairs_of(in, at);
        for (uint32_t gone = 0; gone < n; gone++) {
            struct elv_wr w = elv_wr_of(less, sizeof less);
            elv_cbor_wr_map(&w, n - 1);
            elv_wr_bytes(&w, (struct elv_bytes){whole + at[0], at[gone] - at[0]});
            elv_wr_bytes(&w, (struct elv_bytes){whole + at[gone + 1], in.len - at[gone + 1]});
            const uint8_t key = whole[at[gone]] < 24 ? whole[at[gone]] : whole[at[gone] + 1];
            const bool optional = (codec == COMMIT && (key == 11 || key == 12)) ||
                                  (codec == MANIFEST && (key == 26 || key == 29)) ||
                                  (codec == TICKET && key == 17);
            assert_int_equal(decode(codec, less, w.need), optional ? ELV_OK : ELV_ERR_FORMAT);
        }
    }
}

static void keys_of_a_later_version_are_skipped(void **state)
{
    (void)state;
    for (size_t i = 0; i < wire_samples_n; i++) {
        uint8_t whole[ELV_MANIFEST_MAX], more[ELV_MANIFEST_MAX], again[ELV_MANIFEST_MAX];
        const int codec = wire_samples[i].codec;
        if (codec < 0)
            continue;
        const struct elv_bytes in = {whole, wire_sample_bytes(&wire_samples[i], whole)};
        size_t at[34], len;
        const uint32_t n = pairs_of(in, at);
        struct elv_wr w = elv_wr_of(more, sizeof more);
        elv_cbor_wr_map(&w, n + 2);
        elv_wr_bytes(&w, (struct elv_bytes){whole + at[0], in.len - at[0]});
        elv_cbor_wr_uint(&w, 200);
        elv_cbor_wr_array(&w, 2);
        elv_cbor_wr_null(&w);
        elv_cbor_wr_float(&w, 0.1);
        elv_cbor_wr_uint(&w, 70000);
        elv_cbor_wr_bool(&w, true);
        union wire_msg m;
        assert_int_equal(wire_codecs[codec].decode((struct elv_bytes){more, w.need}, &m), ELV_OK);
        assert_int_equal(wire_codecs[codec].encode(&m, again, sizeof again, &len), ELV_OK);
        assert_int_equal(len, in.len);
        assert_memory_equal(again, whole, len);
    }
}

static void a_failed_decode_leaves_the_message_alone(void **state)
{
    (void)state;
    static const uint8_t bad[] = {0xA2, 0x01, 0x06, 0x02, 0x20};
    struct elv_refusal m = {.reason = ELV_REASON_QUOTA, .retry_ms = 9};
    assert_int_equal(elv_refusal_decode((struct elv_bytes){bad, sizeof bad}, &m), ELV_ERR_FORMAT);
    assert_int_equal(m.reason, ELV_REASON_QUOTA);
    assert_int_equal(m.retry_ms, 9);
}

/* One way each to be wrong; the encoder refuses what the decoder would. */
#define WRONG(name, change)                                                                        \
    static void name(union wire_msg *m) { change; }
WRONG(wires_crossed, m->manifest.wire_min = 2)
WRONG(no_wire, m->manifest.wire_min = 0)
WRONG(bad_job, m->manifest.job.at = "a job__")
WRONG(no_layers, m->manifest.layers.len = 0)
WRONG(control_character, m->manifest.input.at = "1x28\n28")
WRONG(no_params, m->manifest.n_params = 0)
WRONG(too_many_params, m->manifest.n_params = 0x80000000)
WRONG(unknown_optimizer, m->manifest.optimizer = 0)
WRONG(momentum_one, m->manifest.momentum = 1)
WRONG(decay_below_zero, m->manifest.weight_decay = -1)
WRONG(std_zero, m->manifest.std = 0)
WRONG(scale_infinite, m->manifest.scale = INFINITY)
WRONG(holdout_all, m->manifest.holdout = 1)
WRONG(no_codecs, m->manifest.n_up = 0)
WRONG(too_many_codecs, m->manifest.n_up = ELV_CODECS_MAX + 1)
WRONG(codec_zero, m->manifest.up[1].id = 0)
WRONG(down_zero, m->manifest.down.id = 0)
WRONG(param_nan, m->manifest.down.param = NAN)
WRONG(bound_zero, m->manifest.bound = 0)
WRONG(clip_below_zero, m->manifest.clip = -1)
WRONG(no_such_feedback, m->manifest.feedback = (enum elv_feedback)3)
WRONG(correction_of_one, m->manifest.momentum_correction = 1)
WRONG(age_without_feedback, m->manifest.feedback_age = 1)
WRONG(weight_zero, m->manifest.weight_max = 0)
WRONG(proximal_below_zero, m->manifest.proximal = -1)
WRONG(proximal_nan, m->manifest.proximal = NAN)
WRONG(join_no_codecs, m->join.n_codecs = 0)
WRONG(join_codec_zero, m->join.codecs[0] = 0)
WRONG(join_no_software, m->join.software.len = 0)
WRONG(join_wires, m->join.wire_min = 3)
WRONG(joined_no_window, m->joined.window = 0)
WRONG(joined_no_codec, m->joined.codec = 0)
WRONG(refusal_no_reason, m->refusal.reason = ELV_REASON_NONE)
WRONG(ticket_what, m->ticket.what = (enum elv_what)4)
WRONG(ticket_window, m->ticket.window = 0)
WRONG(ticket_assignment, m->ticket.assignment = 0)
WRONG(ticket_both, m->ticket.local_steps = 1)
WRONG(ticket_neither, m->ticket.local_epochs = 0)
WRONG(ticket_batch, m->ticket.batch = 0)
WRONG(ticket_rate, m->ticket.learning_rate = -0.5f)
WRONG(ticket_rate_nan, m->ticket.learning_rate = NAN)
WRONG(ticket_steps, m->ticket.n_steps = ELV_STEPS_MAX + 1)
WRONG(ticket_more_steps_than_versions, m->ticket.version = 1)
WRONG(ticket_empty_step, m->ticket.step[1].n_chunks = 0)
WRONG(ticket_full_without_codec, m->ticket.full.codec = 0)
WRONG(ticket_up, m->ticket.up.id = 0)
WRONG(progress_first_is_there, m->progress.missing.have[0] = 0xFF)
WRONG(progress_window, m->progress.window = 0)
WRONG(commit_status, m->commit.status = (enum elv_status)0)
WRONG(commit_failed_with_chunks, m->commit.status = ELV_STATUS_FAILED;
      m->commit.reason = ELV_REASON_TRAINER)
WRONG(commit_loss, m->commit.loss_sum = (double)INFINITY)
WRONG(commit_eval_loss, m->commit.eval.loss = (double)NAN)
WRONG(commit_classes, m->commit.eval.n_classes = ELV_CLASSES_MAX + 1)
WRONG(commit_correct, m->commit.eval.correct[0] = 11)
WRONG(commit_support, m->commit.eval.support[1] = 21)
WRONG(commit_users, m->commit.n_user = ELV_USER_SUMS_MAX + 1)
WRONG(commit_user_name, m->commit.user[0].name.len = 0)
WRONG(commit_user_value, m->commit.user[0].value = (double)NAN)
WRONG(verdict_decision, m->verdict.decision = (enum elv_decision)4)
WRONG(verdict_no_reason, m->verdict.reason = ELV_REASON_NONE)

static void values_out_of_range_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *sample;
        void (*change)(union wire_msg *m);
    } rows[] = {
        {"manifest.cbor", wires_crossed},
        {"manifest.cbor", no_wire},
        {"manifest.cbor", bad_job},
        {"manifest.cbor", no_layers},
        {"manifest.cbor", control_character},
        {"manifest.cbor", no_params},
        {"manifest.cbor", too_many_params},
        {"manifest.cbor", unknown_optimizer},
        {"manifest.cbor", momentum_one},
        {"manifest.cbor", decay_below_zero},
        {"manifest.cbor", std_zero},
        {"manifest.cbor", scale_infinite},
        {"manifest.cbor", holdout_all},
        {"manifest.cbor", no_codecs},
        {"manifest.cbor", too_many_codecs},
        {"manifest.cbor", codec_zero},
        {"manifest.cbor", down_zero},
        {"manifest.cbor", param_nan},
        {"manifest.cbor", bound_zero},
        {"manifest.cbor", clip_below_zero},
        {"manifest.cbor", age_without_feedback},
        {"manifest-feedback.cbor", no_such_feedback},
        {"manifest-feedback.cbor", correction_of_one},
        {"manifest.cbor", weight_zero},
        {"manifest.cbor", proximal_below_zero},
        {"manifest.cbor", proximal_nan},
        {"join.cbor", join_no_codecs},
        {"join.cbor", join_codec_zero},
        {"join.cbor", join_no_software},
        {"join.cbor", join_wires},
        {"joined.cbor", joined_no_window},
        {"joined.cbor", joined_no_codec},
        {"refusal.cbor", refusal_no_reason},
        {"ticket-train.cbor", ticket_what},
        {"ticket-wait.cbor", ticket_window},
        {"ticket-train.cbor", ticket_assignment},
        {"ticket-train.cbor", ticket_both},
        {"ticket-train.cbor", ticket_neither},
        {"ticket-train.cbor", ticket_batch},
        {"ticket-train.cbor", ticket_rate},
        {"ticket-train.cbor", ticket_rate_nan},
        {"ticket-train.cbor", ticket_steps},
        {"ticket-train.cbor", ticket_more_steps_than_versions},
        {"ticket-train.cbor", ticket_empty_step},
        {"ticket-train.cbor", ticket_full_without_codec},
        {"ticket-train.cbor", ticket_up},
        {"progress.cbor", progress_first_is_there},
        {"progress.cbor", progress_window},
        {"commit-done.cbor", commit_status},
        {"commit-done.cbor", commit_failed_with_chunks},
        {"commit-done.cbor", commit_loss},
        {"commit-done.cbor", commit_eval_loss},
        {"commit-done.cbor", commit_classes},
        {"commit-done.cbor", commit_correct},
        {"commit-done.cbor", commit_support},
        {"commit-done.cbor", commit_users},
        {"commit-done.cbor", commit_user_name},
        {"commit-done.cbor", commit_user_value},
        {"verdict-refused.cbor", verdict_decision},
        {"verdict-refused.cbor", verdict_no_reason},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct wire_sample *s = wire_samples;
        while (strcmp(s->file, rows[i].sample) != 0)
            s++;
        union wire_msg m;
        memset(&m, 0, sizeof m);
        s->fill(&m);
        rows[i].change(&m);
        uint8_t out[ELV_MANIFEST_MAX];
        size_t len;
        if (wire_codecs[s->codec].encode(&m, out, sizeof out, &len) != ELV_ERR_RANGE)
            fail_msg("row %u", (unsigned)i);
    }
}

/* What no encoder of ours can be made to write. */
static void other_bytes_are_refused(void **state)
{
    (void)state;
    static const struct {
        int codec;
        const char *hex;
        enum elv_err err;
    } rows[] = {
        {REFUSAL, "a201060200", ELV_OK},
        {REFUSAL, "a20118c80200", ELV_OK}, /* a reason of a later version */
        {REFUSAL, "a201000200", ELV_ERR_RANGE},
        {REFUSAL, "a20106021b0000000100000000", ELV_ERR_RANGE},
        {REFUSAL, "a202000106", ELV_ERR_FORMAT}, /* keys fall */
        {REFUSAL, "a201060106", ELV_ERR_FORMAT}, /* a key twice */
        {REFUSAL, "820106", ELV_ERR_FORMAT},     /* not a map */
        {REFUSAL, "a2616106616200", ELV_ERR_FORMAT},
        {REFUSAL, "a2010602f93c00", ELV_ERR_FORMAT},
        {VERDICT, "a10101", ELV_OK},
        {VERDICT, "a101182a", ELV_ERR_RANGE},
        {VERDICT, "a201010205", ELV_ERR_FORMAT}, /* accepted, with a reason */
        {VERDICT, "a10103", ELV_ERR_FORMAT},     /* refused, without */
        {VERDICT, "a2010203820040", ELV_OK},
        {VERDICT, "a201020382004101", ELV_ERR_RANGE},    /* the first missing one is there */
        {VERDICT, "a20102038200420200", ELV_ERR_FORMAT}, /* a zero byte at the end */
        {VERDICT, "a20102038300410200", ELV_ERR_FORMAT},
        {VERDICT, "a2010203821b000000010000000040", ELV_ERR_RANGE}, /* 2^32 */
        {VERDICT, "a2010203821affffffff40", ELV_OK},
        {PROGRESS, "a2018200400201", ELV_OK},
        {PROGRESS, "a2018200400200", ELV_ERR_RANGE},
        {TICKET, "a40100020003010448a0a1a2a3a4a5a6a7", ELV_OK},
        {TICKET, "a40100020003010447a0a1a2a3a4a5a6", ELV_ERR_FORMAT},
        {TICKET, "a50100020003010448a0a1a2a3a4a5a6a70501", ELV_ERR_FORMAT}, /* wait, with work */
        {TICKET, "a40104020003010448a0a1a2a3a4a5a6a7", ELV_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t in[64];
        size_t n = 0;
        for (const char *h = rows[i].hex; h[0] != '\0' && h[1] != '\0'; h += 2) {
            const char pair[3] = {h[0], h[1], 0};
            in[n++] = (uint8_t)strtoul(pair, NULL, 16);
        }
        const enum elv_err err = decode(rows[i].codec, in, n);
        if (err != rows[i].err)
            fail_msg("%s: %s", rows[i].hex, elv_err_text(err));
    }
}

static void messages_longer_than_their_cap_are_refused_unread(void **state)
{
    (void)state;
    uint8_t in[ELV_MSG_MAX + 1] = {0xA2, 0x01, 0x06, 0x02, 0x00};
    assert_int_equal(decode(REFUSAL, in, ELV_MSG_MAX), ELV_ERR_FORMAT); /* what follows the map */
    assert_int_equal(decode(REFUSAL, in, sizeof in), ELV_ERR_SPACE);
}

static void travels(int codec, const union wire_msg *m, size_t cap)
{
    uint8_t out[ELV_MANIFEST_MAX], again[ELV_MANIFEST_MAX];
    size_t len, len_again;
    union wire_msg back;
    assert_int_equal(wire_codecs[codec].encode(m, out, cap, &len), ELV_OK);
    assert_int_equal(wire_codecs[codec].decode((struct elv_bytes){out, len}, &back), ELV_OK);
    assert_int_equal(wire_codecs[codec].encode(&back, again, cap, &len_again), ELV_OK);
    assert_int_equal(len_again, len);
    assert_memory_equal(again, out, len);
}

/* The longest message of each kind fits the buffers everyone sizes by the constants. */
static void the_largest_messages_fit(void **state)
{
    (void)state;
    static char long_text[ELV_TEXT_MAX];
    memset(long_text, 'x', sizeof long_text);
    union wire_msg m;

    memset(&m, 0, sizeof m);
    wire_samples[0].fill(&m);
    m.manifest.input = m.manifest.layers = m.manifest.partition =
        (struct elv_text){long_text, sizeof long_text};
    m.manifest.job = (struct elv_text){long_text, ELV_JOB_NAME_MAX};
    m.manifest.n_up = ELV_CODECS_MAX;
    for (int i = 0; i < (int)ELV_CODECS_MAX; i++)
        m.manifest.up[i] = (struct elv_codec_choice){255, 0.1f};
    m.manifest.mean = -FLT_MAX;
    m.manifest.scale = FLT_MAX;
    travels(MANIFEST, &m, ELV_MANIFEST_MAX);

    memset(&m, 0, sizeof m);
    m.join = (struct elv_join){.wire_min = 1,
                               .wire_max = UINT32_MAX,
                               .software = {long_text, ELV_NAME_MAX},
                               .boot = UINT64_MAX,
                               .memory = UINT64_MAX,
                               .speed = UINT32_MAX,
                               .samples = UINT32_MAX,
                               .codecs = {255, 254, 253, 252, 251, 250, 249, 248},
                               .n_codecs = ELV_CODECS_MAX};
    travels(JOIN, &m, ELV_MSG_MAX);

    memset(&m, 0, sizeof m);
    m.progress = (struct elv_progress){.missing = {.first = UINT32_MAX}, .window = UINT32_MAX};
    memset(m.progress.missing.have, 0xFE, sizeof m.progress.missing.have);
    travels(PROGRESS, &m, ELV_MSG_MAX);

    memset(&m, 0, sizeof m);
    const uint32_t most = UINT32_MAX;
    m.ticket = (struct elv_ticket){.what = ELV_WHAT_TRAIN,
                                   .poll_ms = most,
                                   .window = most,
                                   .assignment = most,
                                   .round = most,
                                   .version = most,
                                   .full = {{0}, most, 255},
                                   .n_steps = ELV_STEPS_MAX,
                                   .local_steps = most,
                                   .batch = most,
                                   .learning_rate = 0.1f,
                                   .up = {255, 0.1f},
                                   .deadline_ms = most};
    for (int i = 0; i < (int)ELV_STEPS_MAX; i++)
        m.ticket.step[i] = m.ticket.full;
    travels(TICKET, &m, ELV_MSG_MAX);

    memset(&m, 0, sizeof m);
    m.commit = (struct elv_commit){.status = ELV_STATUS_DONE,
                                   .nonce = UINT64_MAX,
                                   .samples = most,
                                   .seen = most,
                                   .steps = most,
                                   .loss_sum = 0.1,
                                   .n_chunks = most,
                                   .compute_ms = most,
                                   .eval = {.n = 32u << 26, .loss = 0.1, .n_classes = 32},
                                   .n_user = ELV_USER_SUMS_MAX};
    for (int i = 0; i < (int)ELV_CLASSES_MAX; i++)
        m.commit.eval.support[i] = m.commit.eval.predicted[i] = m.commit.eval.correct[i] = 1u << 26;
    for (int i = 0; i < (int)ELV_USER_SUMS_MAX; i++)
        m.commit.user[i] = (struct elv_user_sum){{long_text, ELV_USER_SUM_NAME_MAX}, 0.1};
    travels(COMMIT, &m, ELV_MSG_MAX);
}

static void every_reason_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i <= ELV_REASON_PATH; i++) {
        const char *word = elv_reason_text((enum elv_reason)i);
        assert_string_not_equal(word, "unknown");
        for (int j = 0; j < i; j++)
            assert_string_not_equal(word, elv_reason_text((enum elv_reason)j));
    }
    assert_string_equal(elv_reason_text((enum elv_reason)200), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_and_every_extra_byte_is_refused),
        cmocka_unit_test(an_encoder_without_room_says_how_much_it_needs),
        cmocka_unit_test(a_field_left_out_is_missed),
        cmocka_unit_test(keys_of_a_later_version_are_skipped),
        cmocka_unit_test(a_failed_decode_leaves_the_message_alone),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(messages_longer_than_their_cap_are_refused_unread),
        cmocka_unit_test(the_largest_messages_fit),
        cmocka_unit_test(every_reason_has_a_word_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
