/* SPDX-License-Identifier: Apache-2.0 */
#include "server/job_keys.h"

#include <string.h>

#include "common/assert.h"
#include "common/codec.h"
#include "common/text.h"
#include "server/value.h"

#define BELOW_ONE 0x1.fffffep-1 /* the greatest float below 1 */
#define ABOVE_ZERO 1e-30
#define DEADLINE_MAX_US 3456000000000.0 /* 40 days: fits 32 bits of milliseconds on the wire */

/* Texts. */

static bool is_word(struct elv_text t)
{
    for (size_t i = 0; i < t.len; i++) {
        const char c = t.at[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '-')
            return false;
    }
    return true;
}

static bool is_name(struct elv_text t) { return elv_name_ok(t, ELV_JOB_NAME_MAX); }

static bool is_source(struct elv_text t)
{
    struct elv_text w[3];
    const uint32_t n = elv_value_words(t, w, 3);
    if (elv_value_is(w[0], "idx") || elv_value_is(w[0], "csv"))
        return n == 2;
    return elv_value_is(w[0], "npy") && n == 3;
}

static bool is_partition(struct elv_text t)
{
    struct elv_text w[2];
    double v;
    for (size_t i = 0; i < t.len; i++)
        if (t.at[i] < ' ' || t.at[i] > '~') /* it travels in the manifest */
            return false;
    const uint32_t n = elv_value_words(t, w, 2);
    if (n == 1)
        return elv_value_is(w[0], "iid");
    if (n != 2)
        return false;
    if (elv_value_is(w[0], "file"))
        return true;
    if (!elv_value_number(w[1], &v) || !(v > 0 && v <= 1e6))
        return false;
    if (elv_value_is(w[0], "shards"))
        return v == (double)(uint32_t)v;
    return elv_value_is(w[0], "dirichlet") || elv_value_is(w[0], "quantity");
}

/* Words that stand for an enum's values: their places in a list. */

static int place_of(struct elv_text value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (elv_value_is(value, words[i]))
            return i;
    return -1;
}

static const char *const losses[] = {"softmax-cross-entropy", NULL};
static const char *const arithmetics[] = {"fast", "reference", NULL};
static const char *const weights[] = {"samples", "uniform", "seen", NULL};
static const char *const maskings[] = {"none", "additive", NULL};
static const char *const feedbacks[] = {"auto", "none", "f32", "f16", NULL};
static const char *const places[] = {"server", "clients", "both", NULL};

#define ENUM_KEY(member, type, words)                                                              \
    static enum elv_err read_##member(struct elv_job *job, struct elv_text value)                  \
    {                                                                                              \
        const int place = place_of(value, words);                                                  \
        if (place < 0)                                                                             \
            return ELV_ERR_FORMAT;                                                                 \
        job->member = (enum type)(place + 1);                                                      \
        return ELV_OK;                                                                             \
    }                                                                                              \
    static void print_##member(const struct elv_job *job, struct elv_line *out)                    \
    {                                                                                              \
        elv_line_add(out, words[(int)job->member - 1]);                                            \
    }
ENUM_KEY(loss, elv_loss, losses)
ENUM_KEY(arithmetic, elv_arithmetic, arithmetics)
ENUM_KEY(weight, elv_weight, weights)
ENUM_KEY(masking, elv_masking, maskings)
ENUM_KEY(feedback, elv_job_feedback, feedbacks)
ENUM_KEY(eval_on, elv_eval_on, places)

/* "sgd [momentum M] [weight_decay D]" */
static enum elv_err read_optimizer(struct elv_job *job, struct elv_text value)
{
    struct elv_text w[5];
    float momentum = 0, decay = 0;
    const uint32_t n = elv_value_words(value, w, 5);
    if (n > 5 || n % 2 == 0 || !elv_value_is(w[0], "sgd") ||
        (n == 5 && w[1].len == w[3].len && memcmp(w[1].at, w[3].at, w[1].len) == 0))
        return ELV_ERR_FORMAT;
    for (uint32_t i = 1; i < n; i += 2) {
        const bool is_momentum = elv_value_is(w[i], "momentum");
        double v;
        if ((!is_momentum && !elv_value_is(w[i], "weight_decay")) ||
            !elv_value_number(w[i + 1], &v))
            return ELV_ERR_FORMAT;
        if (v < 0 || v > (is_momentum ? BELOW_ONE : 1e6))
            return ELV_ERR_RANGE;
        *(is_momentum ? &momentum : &decay) = (float)v;
    }
    job->optimizer = ELV_OPT_SGD;
    job->momentum = momentum;
    job->weight_decay = decay;
    return ELV_OK;
}

static void print_optimizer(const struct elv_job *job, struct elv_line *out)
{
    elv_line_add(out, "sgd");
    if (job->momentum > 0) {
        elv_line_add(out, " momentum ");
        elv_line_f32(out, job->momentum);
    }
    if (job->weight_decay > 0) {
        elv_line_add(out, " weight_decay ");
        elv_line_f32(out, job->weight_decay);
    }
}

/* "q8", "ternary 0.01", "rotate 2 unbiased": a name, a number where the codec takes one, and maybe
 * its option. */
static enum elv_err read_codec(struct elv_codec_choice *out, struct elv_text value)
{
    struct elv_text w[3];
    double v = 0;
    const uint32_t n = elv_value_words(value, w, 3);
    const struct elv_codec *codec = n > 0 && n <= 3 ? elv_codec_by_name(w[0].at, w[0].len) : NULL;
    if (codec == NULL)
        return ELV_ERR_FORMAT;
    const bool takes = codec->param_max > 0;
    const bool option = n > 1 && codec->option != NULL && elv_value_is(w[n - 1], codec->option);
    if (n != 1u + takes + option || (takes && !elv_value_number(w[1], &v)))
        return ELV_ERR_FORMAT;
    const float number = takes || !option ? (float)v : 1.0f, param = option ? -number : number;
    if (!elv_codec_takes(codec, param))
        return ELV_ERR_RANGE;
    *out = (struct elv_codec_choice){.id = codec->id, .param = param};
    return ELV_OK;
}

static void print_codec(struct elv_codec_choice c, struct elv_line *out)
{
    const struct elv_codec *codec = elv_codec_by_id(c.id);
    elv_line_add(out, codec->name);
    if (codec->param_max > 0) {
        elv_line_add(out, " ");
        elv_line_f32(out, c.param < 0 ? -c.param : c.param);
    }
    if (c.param < 0) {
        elv_line_add(out, " ");
        elv_line_add(out, codec->option);
    }
}

static enum elv_err read_up(struct elv_job *job, struct elv_text value)
{
    struct elv_text parts[ELV_CODECS_MAX];
    struct elv_codec_choice up[ELV_CODECS_MAX] = {{0}};
    const uint32_t n = elv_value_parts(value, ',', parts, ELV_CODECS_MAX);
    if (n > ELV_CODECS_MAX)
        return ELV_ERR_FORMAT;
    for (uint32_t i = 0; i < n; i++) {
        const enum elv_err err = read_codec(&up[i], parts[i]);
        if (err != ELV_OK)
            return err;
        for (uint32_t j = 0; j < i; j++)
            if (up[j].id == up[i].id)
                return ELV_ERR_FORMAT;
    }
    memcpy(job->up, up, sizeof up);
    job->n_up = n;
    return ELV_OK;
}

static void print_up(const struct elv_job *job, struct elv_line *out)
{
    for (uint32_t i = 0; i < job->n_up; i++) {
        elv_line_add(out, i > 0 ? ", " : "");
        print_codec(job->up[i], out);
    }
}

static enum elv_err read_down(struct elv_job *job, struct elv_text value)
{
    return read_codec(&job->down, value);
}

static void print_down(const struct elv_job *job, struct elv_line *out)
{
    print_codec(job->down, out);
}

static enum elv_err read_clip(struct elv_job *job, struct elv_text value)
{
    double v;
    if (elv_value_is(value, "none")) {
        job->clip = 0;
        return ELV_OK;
    }
    if (!elv_value_number(value, &v))
        return ELV_ERR_FORMAT;
    if (!(v >= ABOVE_ZERO && v <= 1e30))
        return ELV_ERR_RANGE;
    job->clip = (float)v;
    return ELV_OK;
}

static void print_clip(const struct elv_job *job, struct elv_line *out)
{
    if (job->clip > 0)
        elv_line_f32(out, job->clip);
    else
        elv_line_add(out, "none");
}

static enum elv_err read_every(struct elv_job *job, struct elv_text value)
{
    uint64_t v = 0;
    if (!elv_value_is(value, "never") && !elv_text_uint(value.at, value.len, &v))
        return ELV_ERR_FORMAT;
    if (v > 1000000)
        return ELV_ERR_RANGE;
    job->eval_every = (uint32_t)v;
    return ELV_OK;
}

static void print_every(const struct elv_job *job, struct elv_line *out)
{
    if (job->eval_every > 0)
        elv_line_uint(out, job->eval_every);
    else
        elv_line_add(out, "never");
}

/* The table. */

#define KEY(section_, name_) .path = section_ "." name_, .section = section_, .name = name_
#define MEMBER(kind_, member)                                                                      \
    .kind = ELV_JOB_##kind_, .at = offsetof(struct elv_job, member),                               \
    .size = sizeof(((struct elv_job *)0)->member)
#define SPECIAL(which) .kind = ELV_JOB_SPECIAL, .read = read_##which, .print = print_##which
#define RANGE(least, most) .min = least, .max = most
#define SOURCES "idx FOLDER, npy X.npy Y.npy or csv FILE"
#define MILLION "a whole number from 0 to 1000000"
#define MILLION_1 "a whole number from 1 to 1000000"

static const struct elv_job_key keys[] = {
    {KEY("job", "name"), MEMBER(TEXT, name), .fits = is_name,
     .accepts = "1 to 32 letters, digits, and . _ : -"},
    {KEY("job", "seed"), MEMBER(U64, seed), .accepts = "a whole number below 2^64"},
    {KEY("job", "rounds"), MEMBER(U32, rounds), RANGE(0, 1e9), .may_change = true,
     .accepts = "a whole number from 0 (no end) to 1000000000"},
    {KEY("job", "target_accuracy"), MEMBER(F64, target_accuracy), RANGE(0, 1), .may_change = true,
     .accepts = "a number from 0 (none) to 1"},

    {KEY("data", "train"), MEMBER(TEXT, train), .fits = is_source, .accepts = SOURCES},
    {KEY("data", "test"), MEMBER(TEXT, test), .fits = is_source, .accepts = SOURCES},
    {KEY("data", "scale"), MEMBER(F32, scale), RANGE(ABOVE_ZERO, 1e30),
     .accepts = "a number above 0, such as 1/255"},
    {KEY("data", "mean"), MEMBER(F32, mean), RANGE(-1e30, 1e30), .accepts = "a number"},
    {KEY("data", "std"), MEMBER(F32, std), RANGE(ABOVE_ZERO, 1e30), .accepts = "a number above 0"},
    {KEY("data", "partition"), MEMBER(TEXT, partition), .fits = is_partition,
     .accepts = "iid, shards N, dirichlet A, quantity A or file PART.npy"},
    {KEY("data", "holdout"), MEMBER(F32, holdout), RANGE(0, BELOW_ONE),
     .accepts = "a share from 0 to below 1"},

    {KEY("model", "input"), MEMBER(TEXT, input),
     .accepts = "a shape such as 1x28x28, or 4x1x1 for four numbers"},
    {KEY("model", "layers"), MEMBER(TEXT, layers),
     .accepts = "layers such as conv 8 5x5 relu, maxpool 2, dense 10"},
    {KEY("model", "loss"), SPECIAL(loss), .accepts = "softmax-cross-entropy"},
    {KEY("model", "start"), MEMBER(TEXT, start), .accepts = "a safetensors file"},

    {KEY("client", "local_epochs"), MEMBER(U32, local_epochs), RANGE(0, 1e6), .accepts = MILLION},
    {KEY("client", "local_steps"), MEMBER(U32, local_steps), RANGE(0, 1e6), .accepts = MILLION},
    {KEY("client", "batch_size"), MEMBER(U32, batch_size), RANGE(1, 1e6), .accepts = MILLION_1},
    {KEY("client", "optimizer"), SPECIAL(optimizer),
     .accepts = "sgd [momentum M] [weight_decay D], M below 1"},
    {KEY("client", "learning_rate"), MEMBER(F32, learning_rate), RANGE(0, 1e6),
     .accepts = "a number from 0 to 1000000"},
    {KEY("client", "learning_rate_decay"), MEMBER(F32, learning_rate_decay), RANGE(1e-6, 1),
     .accepts = "a factor per round, above 0 and up to 1"},
    {KEY("client", "proximal"), MEMBER(F32, proximal), RANGE(0, 1e6),
     .accepts = "a number from 0 (none) to 1000000"},
    {KEY("client", "arithmetic"), SPECIAL(arithmetic), .accepts = "fast or reference"},

    {KEY("sync", "policy"), MEMBER(TEXT, sync), .fits = is_word, .may_change = true,
     .accepts = "the name of a policy, such as bsp or backup"},
    {KEY("sync", "deadline"), MEMBER(DURATION, deadline_us), RANGE(1000, DEADLINE_MAX_US),
     .may_change = true, .accepts = "a time from 1ms to 960h, such as 500ms, 30s or 2h"},
    {KEY("sync", "publish_interval"), MEMBER(DURATION, publish_us), RANGE(0, DEADLINE_MAX_US),
     .may_change = true, .accepts = "a time from 0s to 960h, such as 500ms, 1s or 5m"},
    {KEY("sync", "quorum"), MEMBER(U32, quorum), RANGE(1, 1e6), .may_change = true,
     .accepts = MILLION_1},

    {KEY("aggregate", "rule"), MEMBER(TEXT, rule), .fits = is_word,
     .accepts = "the name of a rule, such as fedavg"},
    {KEY("aggregate", "weight"), SPECIAL(weight), .accepts = "samples, uniform or seen"},
    {KEY("aggregate", "max_weight"), MEMBER(U32, max_weight), RANGE(1, 4294967295.0),
     .accepts = "a whole number from 1 to 4294967295"},
    {KEY("aggregate", "masking"), SPECIAL(masking), .accepts = "none or additive"},

    {KEY("select", "policy"), MEMBER(TEXT, select), .fits = is_word, .may_change = true,
     .accepts = "the name of a policy, such as uniform"},
    {KEY("select", "count"), MEMBER(U32, select_count), RANGE(0, 1e6), .may_change = true,
     .accepts = "a whole number from 0 (all) to 1000000"},
    {KEY("select", "min_clients"), MEMBER(U32, min_clients), RANGE(1, 1e6), .may_change = true,
     .accepts = MILLION_1},

    {KEY("size", "policy"), MEMBER(TEXT, sizing), .fits = is_word, .may_change = true,
     .accepts = "the name of a policy, such as fixed"},

    {KEY("transfer", "up"), SPECIAL(up),
     .accepts = "up to 8 different codecs, best first, such as q8, f32"},
    {KEY("transfer", "down"), SPECIAL(down), .accepts = "a codec, such as q8 or f32"},
    {KEY("transfer", "clip"), SPECIAL(clip), .accepts = "none or a number above 0"},
    {KEY("transfer", "bound"), MEMBER(F32, bound), RANGE(0x1p-60, 0x1p60),
     .accepts = "a number above 0, from 2^-60 to 2^60"},
    {KEY("transfer", "deflate"), MEMBER(BOOL, deflate), .accepts = "on or off"},
    {KEY("transfer", "feedback"), SPECIAL(feedback), .accepts = "auto, none, f32 or f16"},
    {KEY("transfer", "feedback_age"), MEMBER(U32, feedback_age), RANGE(0, 1e6), .accepts = MILLION},
    {KEY("transfer", "momentum_correction"), MEMBER(F32, momentum_correction), RANGE(0, BELOW_ONE),
     .accepts = "a number from 0 (none) to below 1"},
    {KEY("transfer", "warm_up"), MEMBER(U32, warm_up), RANGE(0, 1e6), .accepts = MILLION},

    {KEY("eval", "every"), SPECIAL(every), .may_change = true,
     .accepts = "never or a whole number from 0 (never) to 1000000"},
    {KEY("eval", "on"), SPECIAL(eval_on), .may_change = true, .accepts = "server, clients or both"},

    {KEY("state", "keep"), MEMBER(U32, keep), RANGE(0, 1e6), .may_change = true,
     .accepts = MILLION},
};

_Static_assert(sizeof keys / sizeof keys[0] <= ELV_JOB_KEYS_MAX,
               "struct elv_job counts their lines");

size_t elv_job_keys_count(void) { return sizeof keys / sizeof keys[0]; }

const struct elv_job_key *elv_job_keys_at(size_t i)
{
    ELV_ASSERT(i < elv_job_keys_count());
    return &keys[i];
}

static enum elv_err read_float(const struct elv_job_key *key, void *member, struct elv_text value)
{
    double v;
    if (!elv_value_number(value, &v))
        return ELV_ERR_FORMAT;
    if (!(v >= key->min && v <= key->max))
        return ELV_ERR_RANGE;
    if (key->kind == ELV_JOB_F64)
        *(double *)member = v;
    else
        *(float *)member = (float)v;
    return ELV_OK;
}

static enum elv_err read_whole(const struct elv_job_key *key, void *member, struct elv_text value)
{
    uint64_t v;
    if (!elv_text_uint(value.at, value.len, &v))
        return ELV_ERR_FORMAT;
    if (key->kind == ELV_JOB_U64) {
        *(uint64_t *)member = v;
        return ELV_OK;
    }
    if ((double)v < key->min || (double)v > key->max)
        return ELV_ERR_RANGE;
    *(uint32_t *)member = (uint32_t)v;
    return ELV_OK;
}

static enum elv_err read_text(const struct elv_job_key *key, char *member, struct elv_text value)
{
    if (value.len >= key->size)
        return ELV_ERR_RANGE;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.at[i] < ' ')
            return ELV_ERR_FORMAT;
    if (key->fits != NULL && !key->fits(value))
        return ELV_ERR_FORMAT;
    memset(member, 0, key->size);
    memcpy(member, value.at, value.len);
    return ELV_OK;
}

static enum elv_err read_duration(const struct elv_job_key *key, elv_time_us *member,
                                  struct elv_text value)
{
    elv_time_us v;
    if (!elv_value_duration(value, &v))
        return ELV_ERR_FORMAT;
    if ((double)v < key->min || (double)v > key->max)
        return ELV_ERR_RANGE;
    *member = v;
    return ELV_OK;
}

enum elv_err elv_job_key_read(const struct elv_job_key *key, struct elv_job *job,
                              struct elv_text value)
{
    void *member = (uint8_t *)job + key->at;
    switch (key->kind) {
    case ELV_JOB_U32:
    case ELV_JOB_U64:
        return read_whole(key, member, value);
    case ELV_JOB_F32:
    case ELV_JOB_F64:
        return read_float(key, member, value);
    case ELV_JOB_BOOL:
        return elv_value_bool(value, member) ? ELV_OK : ELV_ERR_FORMAT;
    case ELV_JOB_DURATION:
        return read_duration(key, member, value);
    case ELV_JOB_TEXT:
        return read_text(key, member, value);
    case ELV_JOB_SPECIAL:
        break;
    }
    return key->read(job, value);
}

void elv_job_key_print(const struct elv_job_key *key, const struct elv_job *job,
                       struct elv_line *out)
{
    const void *member = (const uint8_t *)job + key->at;
    switch (key->kind) {
    case ELV_JOB_U32:
        elv_line_uint(out, *(const uint32_t *)member);
        break;
    case ELV_JOB_U64:
        elv_line_uint(out, *(const uint64_t *)member);
        break;
    case ELV_JOB_F32:
        elv_line_f32(out, *(const float *)member);
        break;
    case ELV_JOB_F64:
        elv_line_f64(out, *(const double *)member);
        break;
    case ELV_JOB_BOOL:
        elv_line_add(out, *(const bool *)member ? "on" : "off");
        break;
    case ELV_JOB_DURATION:
        elv_value_put_duration(out, *(const elv_time_us *)member);
        break;
    case ELV_JOB_TEXT:
        elv_line_add(out, member);
        break;
    case ELV_JOB_SPECIAL:
        key->print(job, out);
        break;
    }
}
