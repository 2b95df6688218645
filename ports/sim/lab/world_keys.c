/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/world_keys.h"

#include <string.h>

#include "common/assert.h"
#include "common/text.h"
#include "ports/sim/lab/draw_text.h"

#define BELOW_ONE 0x1.fffffffffffffp-1 /* the greatest double below 1 */
#define SECONDS_MAX 1e9

static const char *const details[] = {"timing", "messages", NULL};
static const char *const learnings[] = {"network", "quadratic", "logistic", "nothing", NULL};
static const char *const pers[] = {"task", "step", "sample", NULL};

/* "SHARE FACTOR [fixed]" or "none" */
static enum elv_err read_stragglers(struct elv_world_file *f, uint32_t place, struct elv_text value)
{
    struct elv_text w[3];
    struct elv_lab_device *d = &f->world.device;
    double share, factor;
    (void)place;
    const uint32_t n = elv_value_words(value, w, 3);
    if (n == 1 && elv_value_is(w[0], "none")) {
        d->straggler_share = d->straggler_factor = 0;
        d->straggler_fixed = false;
        return ELV_OK;
    }
    if (n < 2 || n > 3 || !elv_value_number(w[0], &share) || !elv_value_number(w[1], &factor) ||
        (n == 3 && !elv_value_is(w[2], "fixed")))
        return ELV_ERR_FORMAT;
    if (share < 0 || share > 1 || factor < 1 || factor > 1e6)
        return ELV_ERR_RANGE;
    d->straggler_share = share;
    d->straggler_factor = factor;
    d->straggler_fixed = n == 3;
    return ELV_OK;
}

/* "SHARE FACTOR" or "none" */
static enum elv_err read_more(struct elv_world_file *f, uint32_t place, struct elv_text value)
{
    struct elv_text w[2];
    double share = 0, factor = 0;
    (void)place;
    const uint32_t n = elv_value_words(value, w, 2);
    const bool none = n == 1 && elv_value_is(w[0], "none");
    if (!none && (n != 2 || !elv_value_number(w[0], &share) || !elv_value_number(w[1], &factor)))
        return ELV_ERR_FORMAT;
    if (!none && (share < 0 || share > 1 || factor < 1 || factor > 1e6))
        return ELV_ERR_RANGE;
    f->world.more_share = share;
    f->world.more_factor = factor;
    return ELV_OK;
}

static void put_pair(struct elv_line *out, double share, double factor)
{
    elv_line_f64(out, share);
    elv_line_add(out, " ");
    elv_line_f64(out, factor);
}

static void print_more(const struct elv_world_file *f, uint32_t place, struct elv_line *out)
{
    (void)place;
    if (f->world.more_factor == 0)
        elv_line_add(out, "none");
    else
        put_pair(out, f->world.more_share, f->world.more_factor);
}

static void print_stragglers(const struct elv_world_file *f, uint32_t place, struct elv_line *out)
{
    const struct elv_lab_device *d = &f->world.device;
    (void)place;
    if (d->straggler_factor == 0) {
        elv_line_add(out, "none");
        return;
    }
    put_pair(out, d->straggler_share, d->straggler_factor);
    elv_line_add(out, d->straggler_fixed ? " fixed" : "");
}

/* "SHARE FACTOR from T [until T]" or "none"; a factor below 1 makes devices faster. */
static enum elv_err read_regime(struct elv_world_file *f, uint32_t place, struct elv_text value)
{
    struct elv_text w[6];
    struct elv_lab_device *d = &f->world.device;
    struct elv_lab_regime r = {.until = ELV_NEVER};
    const uint32_t n = elv_value_words(value, w, 6);
    if (n == 1 && elv_value_is(w[0], "none")) {
        d->regimes[place] = (struct elv_lab_regime){0};
        return ELV_OK;
    }
    if ((n != 4 && n != 6) || !elv_value_number(w[0], &r.share) ||
        !elv_value_number(w[1], &r.factor) || !elv_value_is(w[2], "from") ||
        !elv_value_duration(w[3], &r.from))
        return ELV_ERR_FORMAT;
    if (n == 6 && (!elv_value_is(w[4], "until") || !elv_value_duration(w[5], &r.until)))
        return ELV_ERR_FORMAT;
    if (r.share < 0 || r.share > 1 || r.factor < 1e-6 || r.factor > 1e6 || r.from >= r.until)
        return ELV_ERR_RANGE;
    d->regimes[place] = r;
    d->n_regimes = d->n_regimes > place ? d->n_regimes : place + 1;
    return ELV_OK;
}

static void print_regime(const struct elv_world_file *f, uint32_t place, struct elv_line *out)
{
    const struct elv_lab_regime *r = &f->world.device.regimes[place];
    if (r->until == 0) {
        elv_line_add(out, "none");
        return;
    }
    put_pair(out, r->share, r->factor);
    elv_line_add(out, " from ");
    elv_value_put_duration(out, r->from);
    if (r->until == ELV_NEVER)
        return;
    elv_line_add(out, " until ");
    elv_value_put_duration(out, r->until);
}

/* "at-once", "spread T" or "together T" */
static enum elv_err read_start(struct elv_world_file *f, uint32_t place, struct elv_text value)
{
    struct elv_text w[2];
    elv_time_us spread = 0;
    (void)place;
    const uint32_t n = elv_value_words(value, w, 2);
    const bool together = n == 2 && elv_value_is(w[0], "together");
    const bool one_by_one = n == 2 && elv_value_is(w[0], "spread");
    if (!(n == 1 && elv_value_is(w[0], "at-once")) &&
        !((together || one_by_one) && elv_value_duration(w[1], &spread)))
        return ELV_ERR_FORMAT;
    if (n == 2 && (spread == 0 || (double)spread > SECONDS_MAX * 1e6))
        return ELV_ERR_RANGE;
    f->world.device.start_spread = spread;
    f->world.device.cohort_start = together;
    return ELV_OK;
}

static void print_start(const struct elv_world_file *f, uint32_t place, struct elv_line *out)
{
    const struct elv_lab_device *d = &f->world.device;
    (void)place;
    if (d->start_spread == 0) {
        elv_line_add(out, "at-once");
        return;
    }
    elv_line_add(out, d->cohort_start ? "together " : "spread ");
    elv_value_put_duration(out, d->start_spread);
}

static enum elv_err read_profile(struct elv_world_file *f, uint32_t place, struct elv_text value)
{
    (void)place;
    const struct elv_sim_profile *p = elv_sim_profile(value.at, value.len);
    if (p == NULL && !elv_value_is(value, "none"))
        return ELV_ERR_FORMAT;
    f->world.link.profile = p;
    return ELV_OK;
}

static void print_profile(const struct elv_world_file *f, uint32_t place, struct elv_line *out)
{
    (void)place;
    elv_line_add(out, f->world.link.profile != NULL ? f->world.link.profile->name : "none");
}

static enum elv_err read_trace(struct elv_world_file *f, uint32_t place, struct elv_text value)
{
    (void)place;
    if (value.len >= sizeof f->trace)
        return ELV_ERR_RANGE;
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.at[i] < ' ')
            return ELV_ERR_FORMAT;
    memset(f->trace, 0, sizeof f->trace);
    memcpy(f->trace, value.at, value.len);
    return ELV_OK;
}

static void print_trace(const struct elv_world_file *f, uint32_t place, struct elv_line *out)
{
    (void)place;
    elv_line_add(out, f->trace);
}

/* The table. */

#define KEY(section_, name_) .path = section_ "." name_, .section = section_, .name = name_
#define MEMBER(kind_, member)                                                                      \
    .kind = ELV_WORLD_##kind_, .at = offsetof(struct elv_world_file, world.member)
#define WORDS(member, list)                                                                        \
    .kind = ELV_WORLD_WORD, .at = offsetof(struct elv_world_file, world.member), .words = list
#define SPECIAL(which) .kind = ELV_WORLD_SPECIAL, .read = read_##which, .print = print_##which
#define RANGE(least, most) .min = least, .max = most
#define SHARE "a share from 0 to below 1"
#define TIME "a time from 0s (never) to 1e9s, such as 500ms, 30s or 2h"
#define DELAY ELV_LAB_DRAW_FORMS "; seconds, or times such as 50ms"
#define REGIME "none, or SHARE FACTOR from TIME [until TIME], such as 0.5 5 from 100s until 200s"

static const struct elv_world_key keys[] = {
    {KEY("world", "detail"), WORDS(detail, details), .accepts = "timing or messages"},
    {KEY("world", "learning"), WORDS(learning, learnings),
     .accepts = "network, quadratic, logistic or nothing"},
    {KEY("world", "clients"), MEMBER(U32, clients), RANGE(0, 16777216),
     .accepts = "a whole number from 0 (not said) to 16777216"},
    {KEY("world", "horizon"), MEMBER(SECONDS, horizon_s), RANGE(0, SECONDS_MAX),
     .accepts = "a time from 0s (no end) to 1e9s, such as 600s or 2h"},
    {KEY("world", "noise"), MEMBER(F64, noise), RANGE(0, 1e6),
     .accepts = "a number from 0 to 1000000"},
    {KEY("world", "loss_noise"), MEMBER(F64, loss_noise), RANGE(0, 10),
     .accepts = "a number from 0 to 10"},
    {KEY("world", "target_loss"), MEMBER(F64, target_loss), RANGE(0, 1e9),
     .accepts = "a number from 0 (none) up"},
    {KEY("world", "spread"), MEMBER(F64, spread), RANGE(0, 1e6),
     .accepts = "a number from 0 to 1000000"},
    {KEY("world", "dimensions"), MEMBER(U32, dimensions), RANGE(0, 4096),
     .accepts = "a whole number from 0 (the model's own) to 4096"},
    {KEY("world", "samples"), MEMBER(U32, samples), RANGE(0, 1e9),
     .accepts = "a whole number from 0 (1) to 1000000000"},
    {KEY("world", "more_samples"), SPECIAL(more),
     .accepts = "none, or SHARE FACTOR, the factor 1 or more, such as 0.5 10"},

    {KEY("device", "speed"), MEMBER(DRAW, device.speed), RANGE(1e-6, 1e6),
     .accepts = ELV_LAB_DRAW_FORMS "; factors above 0"},
    {KEY("device", "compute"), MEMBER(DELAY, device.compute), RANGE(0, SECONDS_MAX),
     .accepts = DELAY},
    {KEY("device", "per"), WORDS(device.per, pers), .accepts = "task, step or sample"},
    {KEY("device", "jitter"), MEMBER(F64, device.jitter), RANGE(0, 10),
     .accepts = "a number from 0 to 10"},
    {KEY("device", "stragglers"), SPECIAL(stragglers),
     .accepts = "none, or SHARE FACTOR [fixed], the factor 1 or more, such as 0.1 10"},
    {KEY("device", "regime"), SPECIAL(regime), .place = 0, .accepts = REGIME},
    {KEY("device", "regime2"), SPECIAL(regime), .place = 1, .accepts = REGIME},
    {KEY("device", "regime3"), SPECIAL(regime), .place = 2, .accepts = REGIME},
    {KEY("device", "regime4"), SPECIAL(regime), .place = 3, .accepts = REGIME},
    {KEY("device", "regime5"), SPECIAL(regime), .place = 4, .accepts = REGIME},
    {KEY("device", "regime6"), SPECIAL(regime), .place = 5, .accepts = REGIME},
    {KEY("device", "regime7"), SPECIAL(regime), .place = 6, .accepts = REGIME},
    {KEY("device", "regime8"), SPECIAL(regime), .place = 7, .accepts = REGIME},
    {KEY("device", "start"), SPECIAL(start),
     .accepts = "at-once, spread TIME or together TIME, such as spread 30s"},

    {KEY("link", "profile"), SPECIAL(profile), .accepts = "none, " ELV_SIM_PROFILES},
    {KEY("link", "latency"), MEMBER(DELAY, link.latency), RANGE(0, SECONDS_MAX), .accepts = DELAY},
    {KEY("link", "up"), MEMBER(DRAW, link.up), RANGE(0, 1e15),
     .accepts = ELV_LAB_DRAW_FORMS "; bytes per second, 0: no limit"},
    {KEY("link", "down"), MEMBER(DRAW, link.down), RANGE(0, 1e15),
     .accepts = ELV_LAB_DRAW_FORMS "; bytes per second, 0: no limit"},
    {KEY("link", "loss"), MEMBER(F64, link.loss), RANGE(0, BELOW_ONE), .accepts = SHARE},
    {KEY("link", "duplicate"), MEMBER(F64, link.duplicate), RANGE(0, BELOW_ONE), .accepts = SHARE},
    {KEY("link", "reorder"), MEMBER(F64, link.reorder), RANGE(0, BELOW_ONE), .accepts = SHARE},

    {KEY("availability", "dropout"), MEMBER(F64, availability.dropout), RANGE(0, BELOW_ONE),
     .accepts = SHARE},
    {KEY("availability", "churn"), MEMBER(F64, availability.churn_rate), RANGE(0, 1e6),
     .accepts = "devices per second, from 0 (all are there) to 1000000"},
    {KEY("availability", "stay"), MEMBER(DELAY, availability.stay), RANGE(0, SECONDS_MAX),
     .accepts = DELAY},
    {KEY("availability", "on"), MEMBER(DELAY, availability.on), RANGE(0, SECONDS_MAX),
     .accepts = DELAY},
    {KEY("availability", "off"), MEMBER(DELAY, availability.off), RANGE(0, SECONDS_MAX),
     .accepts = DELAY},
    {KEY("availability", "trace"), SPECIAL(trace), .accepts = "a CSV file"},

    {KEY("faults", "server_crash"), MEMBER(TIME, faults.server_crash), RANGE(0, SECONDS_MAX),
     .accepts = TIME},
    {KEY("faults", "client_crash"), MEMBER(TIME, faults.client_crash), RANGE(0, SECONDS_MAX),
     .accepts = TIME},
    {KEY("faults", "partition"), MEMBER(TIME, faults.partition), RANGE(0, SECONDS_MAX),
     .accepts = TIME},
    {KEY("faults", "disk_error"), MEMBER(TIME, faults.disk_error), RANGE(0, SECONDS_MAX),
     .accepts = TIME},
    {KEY("faults", "down"), MEMBER(TIME, faults.down), RANGE(0, SECONDS_MAX), .accepts = TIME},
    {KEY("faults", "lasts"), MEMBER(TIME, faults.lasts), RANGE(0, SECONDS_MAX), .accepts = TIME},
};

_Static_assert(sizeof keys / sizeof keys[0] <= ELV_WORLD_KEYS_MAX,
               "struct elv_world_file counts their lines");

size_t elv_world_keys_count(void) { return sizeof keys / sizeof keys[0]; }

const struct elv_world_key *elv_world_keys_at(size_t i)
{
    ELV_ASSERT(i < elv_world_keys_count());
    return &keys[i];
}

static bool within(const struct elv_world_key *key, double v)
{
    return v >= key->min && v <= key->max;
}

static enum elv_err read_u32(const struct elv_world_key *key, uint32_t *member,
                             struct elv_text value)
{
    uint64_t v;
    if (!elv_text_uint(value.at, value.len, &v))
        return ELV_ERR_FORMAT;
    if (!within(key, (double)v))
        return ELV_ERR_RANGE;
    *member = (uint32_t)v;
    return ELV_OK;
}

static enum elv_err read_f64(const struct elv_world_key *key, double *member, struct elv_text value)
{
    double v;
    if (!elv_value_number(value, &v))
        return ELV_ERR_FORMAT;
    if (!within(key, v))
        return ELV_ERR_RANGE;
    *member = v;
    return ELV_OK;
}

static enum elv_err read_time(const struct elv_world_key *key, elv_time_us *member,
                              struct elv_text value)
{
    elv_time_us v;
    if (!elv_value_duration(value, &v))
        return ELV_ERR_FORMAT;
    if (!within(key, (double)v / 1e6))
        return ELV_ERR_RANGE;
    *member = v;
    return ELV_OK;
}

static enum elv_err read_seconds(const struct elv_world_key *key, double *member,
                                 struct elv_text value)
{
    elv_time_us v;
    const enum elv_err err = read_time(key, &v, value);
    if (err == ELV_OK)
        *member = (double)v / 1e6;
    return err;
}

/* The members are enums of different types; each is as wide as an int. */
static enum elv_err read_word(const struct elv_world_key *key, void *member, struct elv_text value)
{
    for (int i = 0; key->words[i] != NULL; i++) {
        if (elv_value_is(value, key->words[i])) {
            memcpy(member, &i, sizeof i);
            return ELV_OK;
        }
    }
    return ELV_ERR_FORMAT;
}
_Static_assert(sizeof(enum elv_lab_detail) == sizeof(int) &&
                   sizeof(enum elv_lab_per) == sizeof(int),
               "read_word");

enum elv_err elv_world_key_read(const struct elv_world_key *key, struct elv_world_file *f,
                                struct elv_text value)
{
    void *member = (uint8_t *)f + key->at;
    switch (key->kind) {
    case ELV_WORLD_U32:
        return read_u32(key, member, value);
    case ELV_WORLD_F64:
        return read_f64(key, member, value);
    case ELV_WORLD_SECONDS:
        return read_seconds(key, member, value);
    case ELV_WORLD_TIME:
        return read_time(key, member, value);
    case ELV_WORLD_DRAW:
        return elv_lab_draw_read(member, value, false, key->min, key->max);
    case ELV_WORLD_DELAY:
        return elv_lab_draw_read(member, value, true, key->min, key->max);
    case ELV_WORLD_WORD:
        return read_word(key, member, value);
    case ELV_WORLD_SPECIAL:
        break;
    }
    return key->read(f, key->place, value);
}

static const char *word_of(const struct elv_world_key *key, const void *member)
{
    int i;
    memcpy(&i, member, sizeof i);
    return key->words[i];
}

void elv_world_key_print(const struct elv_world_key *key, const struct elv_world_file *f,
                         struct elv_line *out)
{
    const void *member = (const uint8_t *)f + key->at;
    switch (key->kind) {
    case ELV_WORLD_U32:
        elv_line_uint(out, *(const uint32_t *)member);
        break;
    case ELV_WORLD_F64:
        elv_line_f64(out, *(const double *)member);
        break;
    case ELV_WORLD_SECONDS:
        elv_value_put_duration(out, (elv_time_us)(*(const double *)member * 1e6 + 0.5));
        break;
    case ELV_WORLD_TIME:
        elv_value_put_duration(out, *(const elv_time_us *)member);
        break;
    case ELV_WORLD_DRAW:
    case ELV_WORLD_DELAY:
        elv_lab_draw_print(member, out);
        break;
    case ELV_WORLD_WORD:
        elv_line_add(out, word_of(key, member));
        break;
    case ELV_WORLD_SPECIAL:
        key->print(f, key->place, out);
        break;
    }
}
