/* SPDX-License-Identifier: Apache-2.0 */
#include "common/msg.h"

#include <string.h>

#include "common/cbor.h"
#include "common/exact.h"
#include "common/field.h"

static struct elv_bytes bytes_of(struct elv_text t)
{
    return (struct elv_bytes){.at = (const uint8_t *)t.at, .len = t.len};
}

/* Values that are not one number or string. */

static void write_choice(struct elv_wr *w, const void *value, const void *message)
{
    (void)message;
    const struct elv_codec_choice *c = value;
    elv_cbor_wr_array(w, 2);
    elv_cbor_wr_uint(w, c->id);
    elv_cbor_wr_float(w, (double)c->param);
}

static void read_choice(struct elv_rd *r, void *value, void *message)
{
    (void)message;
    struct elv_codec_choice *c = value;
    elv_field_rd_array(r, 2);
    c->id = (uint8_t)elv_field_rd_u32(r, 1, UINT8_MAX);
    c->param = elv_field_rd_f32(r);
}

static bool choice_sound(const void *value, const void *message)
{
    (void)message;
    const struct elv_codec_choice *c = value;
    return c->id != 0 && elv_finite_f32(c->param);
}

static const struct elv_field_special choice = {write_choice, read_choice, choice_sound};

static void write_choices(struct elv_wr *w, const void *value, const void *message)
{
    const struct elv_manifest *m = message;
    (void)value;
    elv_cbor_wr_array(w, m->n_up);
    for (uint32_t i = 0; i < m->n_up; i++)
        write_choice(w, &m->up[i], NULL);
}

static void read_choices(struct elv_rd *r, void *value, void *message)
{
    struct elv_manifest *m = message;
    (void)value;
    m->n_up = elv_cbor_rd_array(r);
    if (m->n_up > ELV_CODECS_MAX)
        elv_rd_fail(r, ELV_ERR_RANGE);
    for (uint32_t i = 0; r->err == ELV_OK && i < m->n_up; i++)
        read_choice(r, &m->up[i], NULL);
}

static bool choices_sound(const void *value, const void *message)
{
    const struct elv_manifest *m = message;
    (void)value;
    if (m->n_up == 0 || m->n_up > ELV_CODECS_MAX)
        return false;
    for (uint32_t i = 0; i < m->n_up; i++)
        if (!choice_sound(&m->up[i], NULL))
            return false;
    return true;
}

static const struct elv_field_special choices = {write_choices, read_choices, choices_sound};

static void write_codecs(struct elv_wr *w, const void *value, const void *message)
{
    const struct elv_join *m = message;
    elv_cbor_wr_bytes(w, (struct elv_bytes){.at = value, .len = m->n_codecs});
}

static void read_codecs(struct elv_rd *r, void *value, void *message)
{
    struct elv_join *m = message;
    const struct elv_bytes ids = elv_cbor_rd_bytes(r);
    if (ids.len > ELV_CODECS_MAX)
        elv_rd_fail(r, ELV_ERR_RANGE);
    if (r->err != ELV_OK || ids.len == 0)
        return;
    memcpy(value, ids.at, ids.len);
    m->n_codecs = (uint32_t)ids.len;
}

static bool codecs_sound(const void *value, const void *message)
{
    const struct elv_join *m = message;
    (void)value;
    if (m->n_codecs == 0 || m->n_codecs > ELV_CODECS_MAX)
        return false;
    for (uint32_t i = 0; i < m->n_codecs; i++)
        if (m->codecs[i] == 0)
            return false;
    return true;
}

static const struct elv_field_special codecs = {write_codecs, read_codecs, codecs_sound};

static void write_body(struct elv_wr *w, const void *value, const void *message)
{
    (void)message;
    const struct elv_body_ref *b = value;
    elv_cbor_wr_array(w, 3);
    elv_cbor_wr_bytes(w, (struct elv_bytes){.at = b->digest, .len = sizeof b->digest});
    elv_cbor_wr_uint(w, b->n_chunks);
    elv_cbor_wr_uint(w, b->codec);
}

static void read_body(struct elv_rd *r, void *value, void *message)
{
    (void)message;
    struct elv_body_ref *b = value;
    elv_field_rd_array(r, 3);
    const struct elv_bytes digest = elv_cbor_rd_bytes(r);
    if (digest.len != sizeof b->digest)
        elv_rd_fail(r, ELV_ERR_FORMAT);
    if (r->err == ELV_OK)
        memcpy(b->digest, digest.at, sizeof b->digest);
    b->n_chunks = elv_field_rd_u32(r, 0, UINT32_MAX);
    b->codec = (uint8_t)elv_field_rd_u32(r, 0, UINT8_MAX);
}

/* No chunks: the body is not to be had, as version 0, which everyone makes from the seed. */
static bool full_sound(const void *value, const void *message)
{
    (void)message;
    const struct elv_body_ref *b = value;
    return (b->n_chunks == 0) == (b->codec == 0);
}

static const struct elv_field_special full = {write_body, read_body, full_sound};

static void write_steps(struct elv_wr *w, const void *value, const void *message)
{
    const struct elv_ticket *m = message;
    (void)value;
    elv_cbor_wr_array(w, m->n_steps);
    for (uint32_t i = 0; i < m->n_steps; i++)
        write_body(w, &m->step[i], NULL);
}

static void read_steps(struct elv_rd *r, void *value, void *message)
{
    struct elv_ticket *m = message;
    (void)value;
    m->n_steps = elv_cbor_rd_array(r);
    if (m->n_steps > ELV_STEPS_MAX)
        elv_rd_fail(r, ELV_ERR_RANGE);
    for (uint32_t i = 0; r->err == ELV_OK && i < m->n_steps; i++)
        read_body(r, &m->step[i], NULL);
}

static bool steps_sound(const void *value, const void *message)
{
    const struct elv_ticket *m = message;
    (void)value;
    if (m->n_steps > ELV_STEPS_MAX || m->n_steps > m->version)
        return false;
    for (uint32_t i = 0; i < m->n_steps; i++)
        if (m->step[i].n_chunks == 0 || m->step[i].codec == 0)
            return false;
    return true;
}

static const struct elv_field_special steps = {write_steps, read_steps, steps_sound};

/* The bits end with the last byte that is not zero: most answers have few chunks past the first
 * missing one. */
static void write_missing(struct elv_wr *w, const void *value, const void *message)
{
    (void)message;
    const struct elv_missing *m = value;
    size_t len = sizeof m->have;
    while (len > 0 && m->have[len - 1] == 0)
        len--;
    elv_cbor_wr_array(w, 2);
    elv_cbor_wr_uint(w, m->first);
    elv_cbor_wr_bytes(w, (struct elv_bytes){.at = m->have, .len = len});
}

static void read_missing(struct elv_rd *r, void *value, void *message)
{
    (void)message;
    struct elv_missing *m = value;
    elv_field_rd_array(r, 2);
    m->first = elv_field_rd_u32(r, 0, UINT32_MAX);
    const struct elv_bytes have = elv_cbor_rd_bytes(r);
    if (have.len > sizeof m->have || (have.len > 0 && have.at[have.len - 1] == 0))
        elv_rd_fail(r, ELV_ERR_FORMAT);
    if (r->err == ELV_OK && have.len > 0)
        memcpy(m->have, have.at, have.len);
}

static bool missing_sound(const void *value, const void *message)
{
    (void)message;
    const struct elv_missing *m = value;
    return (m->have[0] & 1) == 0; /* it is the first that is missing */
}

static const struct elv_field_special missing = {write_missing, read_missing, missing_sound};

static void write_column(struct elv_wr *w, const uint32_t *v, uint32_t n)
{
    elv_cbor_wr_array(w, n);
    for (uint32_t i = 0; i < n; i++)
        elv_cbor_wr_uint(w, v[i]);
}

static void read_column(struct elv_rd *r, uint32_t *v, uint32_t n)
{
    elv_field_rd_array(r, n);
    for (uint32_t i = 0; r->err == ELV_OK && i < n; i++)
        v[i] = elv_field_rd_u32(r, 0, UINT32_MAX);
}

static void write_eval(struct elv_wr *w, const void *value, const void *message)
{
    (void)message;
    const struct elv_eval_sums *e = value;
    elv_cbor_wr_array(w, 5);
    elv_cbor_wr_uint(w, e->n);
    elv_cbor_wr_float(w, e->loss);
    write_column(w, e->support, e->n_classes);
    write_column(w, e->predicted, e->n_classes);
    write_column(w, e->correct, e->n_classes);
}

static void read_eval(struct elv_rd *r, void *value, void *message)
{
    (void)message;
    struct elv_eval_sums *e = value;
    elv_field_rd_array(r, 5);
    e->n = elv_field_rd_u32(r, 1, UINT32_MAX);
    e->loss = elv_cbor_rd_float(r);
    struct elv_rd ahead = *r; /* the first column says how long all three are */
    e->n_classes = elv_cbor_rd_array(&ahead);
    if (e->n_classes > ELV_CLASSES_MAX)
        elv_rd_fail(r, ELV_ERR_RANGE);
    if (r->err != ELV_OK)
        return;
    read_column(r, e->support, e->n_classes);
    read_column(r, e->predicted, e->n_classes);
    read_column(r, e->correct, e->n_classes);
}

static bool eval_sound(const void *value, const void *message)
{
    (void)message;
    const struct elv_eval_sums *e = value;
    if (!elv_finite_f64(e->loss) || e->n_classes > ELV_CLASSES_MAX)
        return false;
    uint64_t support = 0, predicted = 0;
    for (uint32_t i = 0; i < e->n_classes; i++) {
        if (e->correct[i] > e->support[i] || e->correct[i] > e->predicted[i])
            return false;
        support += e->support[i];
        predicted += e->predicted[i];
    }
    return e->n_classes == 0 || (support == e->n && predicted == e->n);
}

static const struct elv_field_special eval = {write_eval, read_eval, eval_sound};

static void write_users(struct elv_wr *w, const void *value, const void *message)
{
    const struct elv_commit *m = message;
    (void)value;
    elv_cbor_wr_array(w, m->n_user);
    for (uint32_t i = 0; i < m->n_user; i++) {
        elv_cbor_wr_array(w, 2);
        elv_cbor_wr_text(w, bytes_of(m->user[i].name));
        elv_cbor_wr_float(w, m->user[i].value);
    }
}

static void read_users(struct elv_rd *r, void *value, void *message)
{
    struct elv_commit *m = message;
    (void)value;
    m->n_user = elv_cbor_rd_array(r);
    if (m->n_user == 0 || m->n_user > ELV_USER_SUMS_MAX)
        elv_rd_fail(r, ELV_ERR_RANGE);
    for (uint32_t i = 0; r->err == ELV_OK && i < m->n_user; i++) {
        elv_field_rd_array(r, 2);
        const struct elv_bytes name = elv_cbor_rd_text(r);
        m->user[i].name = (struct elv_text){.at = (const char *)name.at, .len = name.len};
        m->user[i].value = elv_cbor_rd_float(r);
    }
}

static bool users_sound(const void *value, const void *message)
{
    const struct elv_commit *m = message;
    (void)value;
    if (m->n_user > ELV_USER_SUMS_MAX)
        return false;
    for (uint32_t i = 0; i < m->n_user; i++)
        if (!elv_name_ok(m->user[i].name, ELV_USER_SUM_NAME_MAX) ||
            !elv_finite_f64(m->user[i].value))
            return false;
    return true;
}

static const struct elv_field_special users = {write_users, read_users, users_sound};

/* The messages. Keys and ranges are those of common/WIRE.md. */

#define ENUM_MAX UINT8_MAX /* reasons a later version adds fit the smallest enum */
#define WHOLE .min = 0, .max = UINT32_MAX
#define POSITIVE .min = 1, .max = UINT32_MAX

static bool wires_sound(uint32_t min, uint32_t max) { return min <= max; }

static bool manifest_sound(const void *message)
{
    const struct elv_manifest *m = message;
    return wires_sound(m->wire_min, m->wire_max) && m->momentum >= 0 && m->momentum < 1 &&
           m->weight_decay >= 0 && m->std > 0 && m->holdout >= 0 && m->holdout < 1 &&
           m->bound > 0 && m->clip >= 0 && m->proximal >= 0 && m->momentum_correction >= 0 &&
           m->momentum_correction < 1 &&
           (m->feedback != ELV_FEEDBACK_NONE ||
            (m->feedback_age == 0 && m->momentum_correction == 0));
}

static bool has_proximal(const void *message)
{
    const struct elv_manifest *m = message;
    return m->proximal != 0;
}

static bool has_feedback(const void *message)
{
    const struct elv_manifest *m = message;
    return m->feedback != ELV_FEEDBACK_NONE;
}

static bool has_correction(const void *message)
{
    const struct elv_manifest *m = message;
    return m->momentum_correction != 0;
}

static const struct elv_field manifest_fields[] = {
    {1, ELV_FIELD(UINT, elv_manifest, wire_min), POSITIVE},
    {2, ELV_FIELD(UINT, elv_manifest, wire_max), POSITIVE},
    {3, ELV_FIELD(BYTES, elv_manifest, run)},
    {4, ELV_FIELD(UINT, elv_manifest, seed)},
    {5, ELV_FIELD(NAME, elv_manifest, job), .max = ELV_JOB_NAME_MAX},
    {6, ELV_FIELD(TEXT, elv_manifest, input), .min = 1, .max = ELV_TEXT_MAX},
    {7, ELV_FIELD(TEXT, elv_manifest, layers), .min = 1, .max = ELV_TEXT_MAX},
    {8, ELV_FIELD(UINT, elv_manifest, n_params), .min = 1, .max = ELV_MODEL_PARAMS_MAX},
    {9, ELV_FIELD(BYTES, elv_manifest, fingerprint)},
    {10, ELV_FIELD(UINT, elv_manifest, loss), .min = 1, .max = ELV_LOSS_SOFTMAX_XENT},
    {11, ELV_FIELD(UINT, elv_manifest, optimizer), .min = 1, .max = ELV_OPT_SGD},
    {12, ELV_FIELD(SINGLE, elv_manifest, momentum)},
    {13, ELV_FIELD(SINGLE, elv_manifest, weight_decay)},
    {14, ELV_FIELD(SINGLE, elv_manifest, scale)},
    {15, ELV_FIELD(SINGLE, elv_manifest, mean)},
    {16, ELV_FIELD(SINGLE, elv_manifest, std)},
    {17, ELV_FIELD(TEXT, elv_manifest, partition), .min = 0, .max = ELV_TEXT_MAX},
    {18, ELV_FIELD(SINGLE, elv_manifest, holdout)},
    {19, ELV_FIELD(UINT, elv_manifest, arithmetic), .min = 1, .max = ELV_ARITHMETIC_REFERENCE},
    {20, ELV_FIELD(SPECIAL, elv_manifest, up), .special = &choices},
    {21, ELV_FIELD(SPECIAL, elv_manifest, down), .special = &choice},
    {22, ELV_FIELD(BOOL, elv_manifest, deflate)},
    {23, ELV_FIELD(SINGLE, elv_manifest, bound)},
    {24, ELV_FIELD(SINGLE, elv_manifest, clip)},
    {25, ELV_FIELD(UINT, elv_manifest, weight_max), POSITIVE},
    {26, ELV_FIELD(SINGLE, elv_manifest, proximal), .has = has_proximal},
    {27, ELV_FIELD(UINT, elv_manifest, feedback), .min = 1, .max = ELV_FEEDBACK_F16,
     .has = has_feedback},
    {28, ELV_FIELD(UINT, elv_manifest, feedback_age), WHOLE, .has = has_feedback},
    {29, ELV_FIELD(SINGLE, elv_manifest, momentum_correction), .has = has_correction},
};

static bool join_sound(const void *message)
{
    const struct elv_join *m = message;
    return wires_sound(m->wire_min, m->wire_max);
}

static const struct elv_field join_fields[] = {
    {1, ELV_FIELD(UINT, elv_join, wire_min), POSITIVE},
    {2, ELV_FIELD(UINT, elv_join, wire_max), POSITIVE},
    {3, ELV_FIELD(TEXT, elv_join, software), .min = 1, .max = ELV_NAME_MAX},
    {4, ELV_FIELD(UINT, elv_join, boot)},
    {5, ELV_FIELD(UINT, elv_join, memory)},
    {6, ELV_FIELD(UINT, elv_join, speed), WHOLE},
    {7, ELV_FIELD(UINT, elv_join, samples), WHOLE},
    {8, ELV_FIELD(SPECIAL, elv_join, codecs), .special = &codecs},
    {9, ELV_FIELD(BYTES, elv_join, manifest)},
};

static const struct elv_field joined_fields[] = {
    {1, ELV_FIELD(UINT, elv_joined, client), WHOLE},
    {2, ELV_FIELD(UINT, elv_joined, wire), POSITIVE},
    {3, ELV_FIELD(UINT, elv_joined, window), POSITIVE},
    {4, ELV_FIELD(UINT, elv_joined, jitter_ms), WHOLE},
    {5, ELV_FIELD(UINT, elv_joined, codec), .min = 1, .max = UINT8_MAX},
};

static const struct elv_field refusal_fields[] = {
    {1, ELV_FIELD(UINT, elv_refusal, reason), .min = 1, .max = ENUM_MAX},
    {2, ELV_FIELD(UINT, elv_refusal, retry_ms), WHOLE},
};

static bool has_work(const void *message)
{
    const struct elv_ticket *m = message;
    return m->what == ELV_WHAT_TRAIN || m->what == ELV_WHAT_EVALUATE;
}

static bool has_training(const void *message)
{
    const struct elv_ticket *m = message;
    return m->what == ELV_WHAT_TRAIN;
}

static bool has_newest(const void *message)
{
    const struct elv_ticket *m = message;
    return !has_work(m) && m->newest != 0;
}

static bool ticket_sound(const void *message)
{
    const struct elv_ticket *m = message;
    return !has_training(m) ||
           ((m->local_epochs == 0) != (m->local_steps == 0) && m->learning_rate >= 0);
}

static const struct elv_field ticket_fields[] = {
    {1, ELV_FIELD(UINT, elv_ticket, what), .min = 0, .max = ELV_WHAT_STOP},
    {2, ELV_FIELD(UINT, elv_ticket, poll_ms), WHOLE},
    {3, ELV_FIELD(UINT, elv_ticket, window), POSITIVE},
    {4, ELV_FIELD(BYTES, elv_ticket, manifest)},
    {5, ELV_FIELD(UINT, elv_ticket, assignment), POSITIVE, .has = has_work},
    {6, ELV_FIELD(UINT, elv_ticket, round), WHOLE, .has = has_work},
    {7, ELV_FIELD(UINT, elv_ticket, version), WHOLE, .has = has_work},
    {8, ELV_FIELD(BYTES, elv_ticket, model), .has = has_work},
    {9, ELV_FIELD(SPECIAL, elv_ticket, full), .has = has_work, .special = &full},
    {10, ELV_FIELD(SPECIAL, elv_ticket, step), .has = has_work, .special = &steps},
    {11, ELV_FIELD(UINT, elv_ticket, local_epochs), WHOLE, .has = has_training},
    {12, ELV_FIELD(UINT, elv_ticket, local_steps), WHOLE, .has = has_training},
    {13, ELV_FIELD(UINT, elv_ticket, batch), POSITIVE, .has = has_training},
    {14, ELV_FIELD(SINGLE, elv_ticket, learning_rate), .has = has_training},
    {15, ELV_FIELD(SPECIAL, elv_ticket, up), .has = has_training, .special = &choice},
    {16, ELV_FIELD(UINT, elv_ticket, deadline_ms), WHOLE, .has = has_work},
    {17, ELV_FIELD(UINT, elv_ticket, newest), POSITIVE, .has = has_newest},
};

static const struct elv_field progress_fields[] = {
    {1, ELV_FIELD(SPECIAL, elv_progress, missing), .special = &missing},
    {2, ELV_FIELD(UINT, elv_progress, window), POSITIVE},
};

static bool has_reason(const void *message)
{
    const struct elv_commit *m = message;
    return m->status != ELV_STATUS_DONE;
}

static bool has_chunks(const void *message)
{
    const struct elv_commit *m = message;
    return m->n_chunks > 0;
}

static bool has_eval(const void *message)
{
    const struct elv_commit *m = message;
    return m->eval.n > 0;
}

static bool has_users(const void *message)
{
    const struct elv_commit *m = message;
    return m->n_user > 0;
}

static bool commit_sound(const void *message)
{
    const struct elv_commit *m = message;
    return m->status == ELV_STATUS_DONE || m->n_chunks == 0;
}

static const struct elv_field commit_fields[] = {
    {1, ELV_FIELD(UINT, elv_commit, status), .min = 1, .max = ELV_STATUS_DECLINED},
    {2, ELV_FIELD(UINT, elv_commit, reason), .min = 1, .max = ENUM_MAX, .has = has_reason},
    {3, ELV_FIELD(UINT, elv_commit, nonce)},
    {4, ELV_FIELD(UINT, elv_commit, samples), WHOLE},
    {5, ELV_FIELD(UINT, elv_commit, seen), WHOLE},
    {6, ELV_FIELD(UINT, elv_commit, steps), WHOLE},
    {7, ELV_FIELD(DOUBLE, elv_commit, loss_sum)},
    {8, ELV_FIELD(UINT, elv_commit, n_chunks), WHOLE},
    {9, ELV_FIELD(BYTES, elv_commit, digest), .has = has_chunks},
    {10, ELV_FIELD(UINT, elv_commit, compute_ms), WHOLE},
    {11, ELV_FIELD(SPECIAL, elv_commit, eval), .has = has_eval, .special = &eval},
    {12, ELV_FIELD(SPECIAL, elv_commit, user), .has = has_users, .special = &users},
};

static bool has_refusal(const void *message)
{
    const struct elv_verdict *m = message;
    return m->decision == ELV_REFUSED;
}

static bool has_missing(const void *message)
{
    const struct elv_verdict *m = message;
    return m->decision == ELV_MISSING;
}

static const struct elv_field verdict_fields[] = {
    {1, ELV_FIELD(UINT, elv_verdict, decision), .min = 1, .max = ELV_REFUSED},
    {2, ELV_FIELD(UINT, elv_verdict, reason), .min = 1, .max = ENUM_MAX, .has = has_refusal},
    {3, ELV_FIELD(SPECIAL, elv_verdict, missing), .has = has_missing, .special = &missing},
};

#define CODEC(type, len_max, sound_)                                                               \
    static const struct elv_layout type##_layout = {                                               \
        type##_fields, sizeof type##_fields / sizeof type##_fields[0], sound_};                    \
    enum elv_err elv_##type##_encode(const struct elv_##type *m, uint8_t *out, size_t cap,         \
                                     size_t *len)                                                  \
    {                                                                                              \
        return elv_field_encode(&type##_layout, m, out, cap, len);                                 \
    }                                                                                              \
    enum elv_err elv_##type##_decode(struct elv_bytes in, struct elv_##type *m)                    \
    {                                                                                              \
        struct elv_##type got = {0};                                                               \
        const enum elv_err err = elv_field_decode(&type##_layout, in, len_max, &got);              \
        if (err == ELV_OK)                                                                         \
            *m = got;                                                                              \
        return err;                                                                                \
    }

CODEC(manifest, ELV_MANIFEST_MAX, manifest_sound)
CODEC(join, ELV_MSG_MAX, join_sound)
CODEC(joined, ELV_MSG_MAX, NULL)
CODEC(refusal, ELV_MSG_MAX, NULL)
CODEC(ticket, ELV_MSG_MAX, ticket_sound)
CODEC(progress, ELV_MSG_MAX, NULL)
CODEC(commit, ELV_MSG_MAX, commit_sound)
CODEC(verdict, ELV_MSG_MAX, NULL)

const char *elv_reason_text(enum elv_reason reason)
{
    static const char *const words[] = {
        [ELV_REASON_NONE] = "none",
        [ELV_REASON_WIRE_VERSION] = "wire_version",
        [ELV_REASON_SOFTWARE_OLD] = "software_old",
        [ELV_REASON_NO_CODEC] = "no_codec",
        [ELV_REASON_MODEL_TOO_BIG] = "model_too_big",
        [ELV_REASON_MANIFEST_OLD] = "manifest_old",
        [ELV_REASON_FULL] = "full",
        [ELV_REASON_REVOKED] = "revoked",
        [ELV_REASON_NOT_JOINED] = "not_joined",
        [ELV_REASON_UNKNOWN_ASSIGNMENT] = "unknown_assignment",
        [ELV_REASON_SUPERSEDED] = "superseded",
        [ELV_REASON_ROUND_CLOSED] = "round_closed",
        [ELV_REASON_DUPLICATE] = "duplicate",
        [ELV_REASON_MALFORMED] = "malformed",
        [ELV_REASON_WRONG_SHAPE] = "wrong_shape",
        [ELV_REASON_OUT_OF_RANGE] = "out_of_range",
        [ELV_REASON_NOT_FINITE] = "not_finite",
        [ELV_REASON_OVER_NORM] = "over_norm",
        [ELV_REASON_DIGEST] = "digest",
        [ELV_REASON_CODEC] = "codec",
        [ELV_REASON_QUOTA] = "quota",
        [ELV_REASON_NO_DATA] = "no_data",
        [ELV_REASON_BUSY] = "busy",
        [ELV_REASON_TRAINER] = "trainer",
        [ELV_REASON_STOPPING] = "stopping",
        [ELV_REASON_STORAGE] = "storage",
        [ELV_REASON_POLICY] = "policy",
        [ELV_REASON_JOB_OVER] = "job_over",
        [ELV_REASON_NO_SUCH_JOB] = "no_such_job",
        [ELV_REASON_PATH] = "path",
    };
    const size_t i = (size_t)reason;
    return i < sizeof words / sizeof words[0] ? words[i] : "unknown";
}
