/* SPDX-License-Identifier: Apache-2.0 */
#include "client/delta.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N_MAX = 8192, CHUNKS_MAX = 64 };

/* Something like deflate: runs of one byte become (length, byte) pairs after a marker. */
static enum elv_err squash(void *self, uint8_t *out, size_t cap, struct elv_bytes in, size_t *len)
{
    ++*(uint32_t *)self;
    size_t n = 0;
    for (size_t i = 0; i < in.len;) {
        size_t run = 1;
        while (i + run < in.len && run < 255 && in.at[i + run] == in.at[i])
            run++;
        if (cap - n < 2)
            return ELV_ERR_SPACE;
        out[n++] = (uint8_t)run;
        out[n++] = in.at[i];
        i += run;
    }
    *len = n;
    return ELV_OK;
}

static enum elv_err unsquash(void *self, uint8_t *out, size_t cap, struct elv_bytes in, size_t *len)
{
    (void)self;
    size_t n = 0;
    if (in.len % 2 != 0)
        return ELV_ERR_FORMAT;
    for (size_t i = 0; i < in.len; i += 2) {
        if (in.at[i] > cap - n)
            return ELV_ERR_SPACE;
        memset(out + n, in.at[i + 1], in.at[i]);
        n += in.at[i];
    }
    *len = n;
    return ELV_OK;
}

struct rig {
    struct elv_model model;
    float trained[N_MAX], base[N_MAX], values[ELV_PACK_VALUES];
    uint8_t bytes[ELV_CHUNK_PAYLOAD_MAX];
    uint32_t first[CHUNKS_MAX];
    uint32_t n_squashed;
    struct elv_squeeze squeeze;
    struct elv_pack pack;
    struct elv_delta_cfg cfg;
    struct elv_delta delta;
};

static struct rig r;

static void make(const char *layers, uint8_t codec)
{
    memset(&r, 0, sizeof r);
    static const char input[] = "1x16x16";
    const struct elv_model_text text = {.input = {(const uint8_t *)input, strlen(input)},
                                        .layers = {(const uint8_t *)layers, strlen(layers)}};
    assert_int_equal(elv_model_parse(&r.model, text, NULL), ELV_OK);
    assert_in_range(r.model.n_params, 1, N_MAX);
    for (uint32_t i = 0; i < r.model.n_params; i++) {
        r.base[i] = (float)(i % 13) * 0.1f;
        r.trained[i] = r.base[i] + (float)((i * 7 + 1) % 101) * 0.001f;
    }
    r.squeeze = (struct elv_squeeze){.self = &r.n_squashed, .deflate = squash, .inflate = unsquash};
    r.pack = (struct elv_pack){.squeeze = &r.squeeze, .values = r.values, .bytes = r.bytes};
    const struct elv_codec_choice choice = {.id = codec};
    r.cfg = (struct elv_delta_cfg){
        .model = &r.model,
        .pack = &r.pack,
        .trained = r.trained,
        .base = r.base,
        .first = r.first,
        .first_cap = elv_delta_first_cap(&r.model, &choice),
        .codec = codec,
        .bound = 8,
        .nonce = 0x0807060504030201u,
    };
    assert_in_range(r.cfg.first_cap, 2, CHUNKS_MAX);
}

static enum elv_err encode(uint32_t budget)
{
    elv_delta_begin(&r.delta, &r.cfg);
    enum elv_err err = ELV_ERR_BUSY;
    for (uint32_t i = 0; err == ELV_ERR_BUSY; i++) {
        assert_in_range(i, 0, 10000);
        err = elv_delta_run(&r.delta, budget);
    }
    return err;
}

/* All of it, or the first window that is refused. */
static enum elv_err unpack(const struct elv_chunk *c, float *out)
{
    struct elv_unpacking u;
    uint32_t first = 0, n = 0;
    enum elv_err err = elv_unpack_begin(&u, &r.pack, c);
    for (bool more = err == ELV_OK; more; more = err == ELV_ERR_BUSY) {
        err = elv_unpack_next(&u, &first, &n);
        if (err == ELV_OK || err == ELV_ERR_BUSY)
            memcpy(out + first, r.pack.values, n * sizeof *out);
    }
    return err;
}

/* All chunks, twice, from the last to the first; decoded into `out`. */
static void decode(float *out)
{
    struct elv_body_digest digest;
    uint8_t sum[ELV_BODY_DIGEST_LEN], hash[CHUNKS_MAX][ELV_CHUNK_HASH_LEN];
    static uint8_t bytes[2][ELV_CHUNK_MAX];
    for (uint32_t i = r.delta.n_chunks; i > 0; i--) {
        size_t len[2];
        struct elv_chunk c;
        elv_delta_chunk(&r.delta, i - 1, bytes[0], &len[0]);
        elv_delta_chunk(&r.delta, i - 1, bytes[1], &len[1]);
        assert_int_equal(len[0], len[1]);
        assert_memory_equal(bytes[0], bytes[1], len[0]);
        const struct elv_bytes in = {bytes[0], len[0]};
        assert_int_equal(elv_chunk_decode(in, &c), ELV_OK);
        assert_int_equal(c.index, i - 1);
        for (uint32_t k = 0; k < ELV_CHUNK_TAG_LEN; k++)
            assert_int_equal(c.tag[k], k + 1); /* the nonce's lowest byte first */
        elv_chunk_hash(in, hash[i - 1]);
        assert_int_equal(unpack(&c, out), ELV_OK);
    }
    elv_body_digest_init(&digest);
    for (uint32_t i = 0; i < r.delta.n_chunks; i++)
        elv_body_digest_add(&digest, hash[i]);
    elv_body_digest_final(&digest, sum);
    assert_memory_equal(sum, r.delta.digest, sizeof sum);
}

static void the_update_is_new_minus_old_however_the_work_is_sliced(void **state)
{
    (void)state;
    static float want[N_MAX], got[N_MAX];
    uint8_t digest[ELV_BODY_DIGEST_LEN] = {0};
    for (uint32_t budget = 1; budget <= 64; budget *= 8) {
        make("dense 24 relu, dense 10", ELV_CODEC_F32);
        for (uint32_t i = 0; i < r.model.n_params; i++)
            want[i] = r.trained[i] - r.base[i];
        assert_int_equal(encode(budget), ELV_OK);
        assert_int_equal(r.delta.n_chunks, r.cfg.first_cap - 1);
        decode(got);
        assert_memory_equal(got, want, r.model.n_params * sizeof *got);
        if (budget > 1)
            assert_memory_equal(digest, r.delta.digest, sizeof digest);
        memcpy(digest, r.delta.digest, sizeof digest);
    }
}

static void only_shared_coordinates_travel_and_local_ones_move_to_the_base(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "dense 24 relu local, dense 10",
        "dense 24 relu, dense 10 local",
        "dense 8 relu, dense 6 relu local, dense 5 relu, dense 4 local, dense 3",
    };
    static float got[N_MAX], flat[N_MAX], trained[N_MAX], base[N_MAX];
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        make(rows[row], ELV_CODEC_F32);
        memcpy(trained, r.trained, sizeof trained);
        memcpy(base, r.base, sizeof base);
        assert_int_equal(encode(1), ELV_OK);
        decode(got);
        /* A flat vector with a mark where nothing shared lands. */
        for (uint32_t i = 0; i < r.model.n_params; i++)
            flat[i] = 99;
        elv_model_scatter(&r.model, flat, 0, r.model.n_shared, got);
        for (uint32_t i = 0; i < r.model.n_params; i++) {
            const bool local = flat[i] == 99;
            assert_true(r.base[i] == (local ? trained[i] : base[i]));
            if (!local)
                assert_true(flat[i] == trained[i] - base[i]);
        }
    }
}

static double norm(const float *v, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static void a_long_update_is_shortened_and_a_short_one_left_alone(void **state)
{
    (void)state;
    static float whole[N_MAX], got[N_MAX];
    make("dense 24 relu, dense 10", ELV_CODEC_F32);
    assert_int_equal(encode(4), ELV_OK);
    decode(whole);
    const uint32_t n = r.model.n_shared;
    const double length = norm(whole, n);
    static const double shares[] = {0.01, 0.5, 0.999, 1.001, 10};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        make("dense 24 relu, dense 10", ELV_CODEC_F32);
        r.cfg.clip = (float)(length * shares[i]);
        assert_int_equal(encode(4), ELV_OK);
        decode(got);
        if (shares[i] > 1) {
            assert_memory_equal(got, whole, n * sizeof *got);
            continue;
        }
        assert_true(fabs(norm(got, n) - (double)r.cfg.clip) < 1e-6 * length);
        for (uint32_t k = 0; k < n; k += 97)
            assert_true(fabs((double)got[k] - (double)whole[k] * shares[i]) < 1e-6);
    }
}

static void values_that_are_no_numbers_or_beyond_the_bound_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        uint32_t at;
        float value, clip;
        enum elv_err want;
    } rows[] = {
        {"not a number", 0, NAN, 0, ELV_ERR_FORMAT},
        {"infinite, the last one", 6417, INFINITY, 0, ELV_ERR_FORMAT},
        {"beyond the bound", 5, 9.0f, 0, ELV_ERR_RANGE},
        {"below it", 5, -9.0f, 0, ELV_ERR_RANGE},
        {"brought back by clipping", 5, 9.0f, 7.0f, ELV_OK},
        {"an overflow of the subtraction", 5, -3.4e38f, 0, ELV_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%s\n", rows[i].what);
        make("dense 24 relu, dense 10", ELV_CODEC_Q8);
        assert_int_equal(r.model.n_params, 6418);
        r.base[5] = i == 5 ? 3.4e38f : 0;
        static float before[N_MAX];
        memcpy(before, r.base, sizeof before);
        r.trained[rows[i].at] = rows[i].value;
        r.cfg.clip = rows[i].clip;
        assert_int_equal(encode(2), rows[i].want);
        assert_memory_equal(before, r.base, sizeof before);
    }
}

static void chunks_are_deflated_when_allowed_and_worth_it(void **state)
{
    (void)state;
    static float got[N_MAX];
    size_t len;
    uint8_t bytes[ELV_CHUNK_MAX];
    for (int allowed = 0; allowed < 2; allowed++) {
        make("dense 24 relu, dense 10", ELV_CODEC_F32);
        r.pack.deflate = allowed;
        memcpy(r.trained, r.base, 3000 * sizeof(float)); /* the first chunks are all zero */
        assert_int_equal(encode(4), ELV_OK);
        decode(got);
        assert_true(got[0] == 0 && got[5000] == r.trained[5000]);
        assert_int_equal(r.n_squashed > 0, allowed);
        elv_delta_chunk(&r.delta, 0, bytes, &len);
        assert_int_equal(len < 100, allowed);
        elv_delta_chunk(&r.delta, r.delta.n_chunks - 2, bytes, &len);
        assert_int_equal(len, ELV_CHUNK_MAX); /* not compressible this way: sent as it is */
    }
}

static void a_deflated_chunk_needs_something_to_inflate_it(void **state)
{
    (void)state;
    size_t len;
    uint8_t bytes[ELV_CHUNK_MAX];
    struct elv_chunk c;
    static float got[N_MAX];
    make("dense 24 relu, dense 10", ELV_CODEC_F32);
    r.pack.deflate = true;
    memcpy(r.trained, r.base, sizeof r.base);
    assert_int_equal(encode(4), ELV_OK);
    elv_delta_chunk(&r.delta, 0, bytes, &len);
    assert_int_equal(elv_chunk_decode((struct elv_bytes){bytes, len}, &c), ELV_OK);
    assert_int_equal(c.flags, ELV_CHUNK_DEFLATED);
    assert_int_equal(unpack(&c, got), ELV_OK);
    r.pack.squeeze = NULL;
    assert_int_equal(unpack(&c, got), ELV_ERR_UNSUPPORTED);
    r.pack.squeeze = &r.squeeze;
    c.payload.len--;
    assert_int_equal(unpack(&c, got), ELV_ERR_FORMAT);
    const uint8_t bomb[] = {255, 0, 255, 0, 255, 0, 255, 0};
    c.payload = (struct elv_bytes){bomb, sizeof bomb};
    assert_int_equal(unpack(&c, got), ELV_ERR_SPACE);
    c.flags = 0;
    c.codec = 255;
    assert_int_equal(unpack(&c, got), ELV_ERR_UNSUPPORTED);
}

static double norm_of(const float *v, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

/* What a codec rounds up and what the residual adds is cut off again, and not forgotten. */
static void no_more_than_the_clip_is_sent_and_the_rest_is_known(void **state)
{
    (void)state;
    static const struct row {
        struct elv_codec_choice up;
        float left; /* in each place of the residual */
    } rows[] = {
        {{ELV_CODEC_F32, 0}, 0},        {{ELV_CODEC_Q8, -1}, 0},
        {{ELV_CODEC_Q4, -1}, 0},        {{ELV_CODEC_Q4, 0}, 0.2f},
        {{ELV_CODEC_F16, 0}, 0},        {{ELV_CODEC_SIGN, 0}, 0.2f},
        {{ELV_CODEC_ROTATE, -1}, 0},    {{ELV_CODEC_ROTATE, 2}, 0.2f},
        {{ELV_CODEC_TERNARY, 0.1f}, 1}, {{ELV_CODEC_TERNARY, 0.5f}, 0.1f},
        {{ELV_CODEC_TOPK, 0.1f}, 0.3f},
    };
    static float want[N_MAX], got[N_MAX], left[N_MAX];
    static struct elv_codec_plan plan;
    uint32_t n_shortened = 0;
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        make("dense 20", ELV_CODEC_F32);
        const uint32_t n = r.model.n_shared;
        for (uint32_t i = 0; i < n; i++)
            want[i] = r.trained[i] - r.base[i];
        r.cfg.clip = (float)norm_of(want, n) / 2;
        struct elv_residual res;
        elv_residual_init(
            &res, &(struct elv_residual_cfg){.kind = ELV_FEEDBACK_F32, .n = n, .values = left});
        res.saved.held = true;
        for (uint32_t i = 0; i < n; i++) {
            left[i] = rows[k].left;
            want[i] = want[i] / 2 + left[i];
        }
        r.cfg.codec = rows[k].up.id;
        r.cfg.arg.param = rows[k].up.param;
        r.cfg.plan = elv_codec_by_id(r.cfg.codec)->plan != NULL ? &plan : NULL;
        r.cfg.residual = rows[k].left > 0 ? &res : NULL;
        assert_int_equal(encode(3), ELV_OK);
        decode(got);
        assert_true(norm_of(got, n) <= (double)r.cfg.clip * 1.001);
        assert_true(r.delta.whole >= 1.0);
        n_shortened += r.delta.whole > 1.0;
        for (uint32_t i = 0; i < n; i++)
            assert_true(fabs((double)r.trained[i] * r.delta.whole - (double)want[i]) <= 1e-5);
    }
    assert_in_range(n_shortened, 6, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_update_is_new_minus_old_however_the_work_is_sliced),
        cmocka_unit_test(only_shared_coordinates_travel_and_local_ones_move_to_the_base),
        cmocka_unit_test(a_long_update_is_shortened_and_a_short_one_left_alone),
        cmocka_unit_test(values_that_are_no_numbers_or_beyond_the_bound_are_refused),
        cmocka_unit_test(chunks_are_deflated_when_allowed_and_worth_it),
        cmocka_unit_test(a_deflated_chunk_needs_something_to_inflate_it),
        cmocka_unit_test(no_more_than_the_clip_is_sent_and_the_rest_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
