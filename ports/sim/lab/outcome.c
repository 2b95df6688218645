/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/outcome.h"

#include <math.h>
#include <string.h>

#include "elver/version.h"
#include "ports/sim/lab/fields.h"

/* A run's outcome with what follows from it. */
struct page {
    struct elv_lab_outcome o;
    double waiting_share, updates_per_s;
};

#define FIELD(name_, kind_, member)                                                                \
    {                                                                                              \
        .name = name_, .kind = ELV_LAB_F_##kind_, .at = offsetof(struct page, member)              \
    }
#define COUNTS "staleness_counts"
static const struct elv_lab_field fields[] = {
    FIELD("configuration", DIGEST, o.configuration),
    FIELD("seed", U64, o.seed),
    FIELD("partition", DIGEST, o.partition),
    FIELD("has_target", BOOL, o.has_target),
    FIELD("reached", BOOL, o.summary.reached),
    FIELD("reached_at", TIME, o.summary.reached_at),
    FIELD("ended", TIME, o.summary.ended),
    FIELD("version", U32, o.summary.version),
    FIELD("rounds", U32, o.summary.rounds),
    FIELD("abandoned", U32, o.summary.abandoned),
    FIELD("events", U64, o.summary.events),
    FIELD("started", U64, o.summary.started),
    FIELD("used", U64, o.summary.used),
    FIELD("late", U64, o.summary.late),
    FIELD("discarded", U64, o.summary.discarded),
    FIELD("dropped", U64, o.summary.dropped),
    FIELD("interrupted", U64, o.summary.interrupted),
    FIELD("lapsed", U64, o.summary.lapsed),
    FIELD("bytes_up", U64, o.summary.bytes_up),
    FIELD("bytes_down", U64, o.summary.bytes_down),
    FIELD("waiting", SPAN, o.summary.waiting_us),
    FIELD("working", SPAN, o.summary.working_us),
    FIELD("waiting_share", F64, waiting_share),
    FIELD("updates_per_s", F64, updates_per_s),
    FIELD("fairness", F64, o.summary.fairness),
    FIELD("loss", F64, o.summary.score.loss),
    FIELD("accuracy", ACCURACY, o.summary.score.accuracy),
    FIELD("best_accuracy", ACCURACY, o.summary.best_accuracy),
    FIELD("staleness", F64, o.summary.stale_mean),
    FIELD("worst_overrun", TIME, o.summary.worst_overrun),
    FIELD("model", DIGEST, o.summary.model),
    FIELD("history", HASH, o.summary.hash),
    FIELD("rounds_bytes", U64, o.rounds_bytes),
    FIELD("events_bytes", U64, o.events_bytes),
    FIELD("participation_bytes", U64, o.participation_bytes),
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* Behind the key `end`: they came later. */
static const struct elv_lab_field later[] = {
    FIELD("wire_up", U64, o.summary.wire_up),
    FIELD("wire_down", U64, o.summary.wire_down),
};
enum { LATER = sizeof later / sizeof later[0] };

static const char *const ends[] = {"rounds", "target", "horizon", "idle", "stuck"};
enum { ENDS = sizeof ends / sizeof ends[0] };

const char *elv_lab_end_name(enum elv_lab_end end) { return ends[end]; }

double elv_lab_waiting_share(const struct elv_lab_outcome *o)
{
    const double all = o->summary.waiting_us + o->summary.working_us;
    return all > 0 ? o->summary.waiting_us / all : (double)NAN;
}

double elv_lab_updates_per_s(const struct elv_lab_outcome *o)
{
    return o->summary.ended > 0 ? (double)o->summary.used / ((double)o->summary.ended / 1e6)
                                : (double)NAN;
}

double elv_lab_time_s(const struct elv_lab_outcome *o)
{
    if (!o->has_target)
        return (double)o->summary.ended / 1e6;
    return o->summary.reached ? (double)o->summary.reached_at / 1e6 : (double)NAN;
}

static void put_key(struct elv_line *out, const char *key)
{
    elv_line_add(out, ",\n  \"");
    elv_line_add(out, key);
    elv_line_add(out, "\": ");
}

static void put_counts(struct elv_line *out, const uint64_t counts[ELV_LAB_STALE_BINS])
{
    put_key(out, COUNTS);
    for (uint32_t i = 0; i < ELV_LAB_STALE_BINS; i++) {
        elv_line_add(out, i > 0 ? ", " : "[");
        elv_line_uint(out, counts[i]);
    }
    elv_line_add(out, "]");
}

static void put_fields(struct elv_line *out, const struct elv_lab_field *f, size_t n,
                       const struct page *page)
{
    for (size_t i = 0; i < n; i++) {
        put_key(out, f[i].name);
        elv_lab_field_json(out, &f[i], page);
    }
}

static bool read_fields(struct elv_text json, const struct elv_lab_field *f, size_t n,
                        struct page *page)
{
    struct elv_text value;
    for (size_t i = 0; i < n; i++)
        if (!elv_lab_json_find(json, f[i].name, &value) ||
            !elv_lab_field_from_json(value, &f[i], page))
            return false;
    return true;
}

void elv_lab_outcome_json(struct elv_line *out, const struct elv_lab_outcome *o)
{
    struct page page = {.o = *o,
                        .waiting_share = elv_lab_waiting_share(o),
                        .updates_per_s = elv_lab_updates_per_s(o)};
    if (!o->summary.reached)
        page.o.summary.reached_at = ELV_NEVER; /* null */
    elv_line_add(out, "{\n  \"program\": \"elver-sim " ELV_VERSION "\",\n  \"kind\": \"run\"");
    put_key(out, "label");
    elv_lab_put_json(out, o->label);
    put_fields(out, fields, FIELDS, &page);
    put_counts(out, o->summary.stale);
    put_key(out, "end");
    elv_lab_put_json(out, elv_lab_end_name(o->end));
    put_fields(out, later, LATER, &page);
    elv_line_add(out, "\n}\n");
}

static bool read_end(struct elv_text json, enum elv_lab_end *end)
{
    struct elv_text value;
    if (!elv_lab_json_find(json, "end", &value) || value.len < 2)
        return false;
    const struct elv_text name = {value.at + 1, value.len - 2};
    for (int i = 0; i < ENDS; i++) {
        if (elv_value_is(name, ends[i])) {
            *end = (enum elv_lab_end)i;
            return true;
        }
    }
    return false;
}

static bool read_counts(struct elv_text json, uint64_t counts[ELV_LAB_STALE_BINS])
{
    struct elv_text list, parts[ELV_LAB_STALE_BINS];
    if (!elv_lab_json_find(json, COUNTS, &list) || list.len < 2 || list.at[0] != '[')
        return false;
    list.at++;
    list.len -= 2;
    if (elv_value_parts(list, ',', parts, ELV_LAB_STALE_BINS) != ELV_LAB_STALE_BINS)
        return false;
    for (uint32_t i = 0; i < ELV_LAB_STALE_BINS; i++)
        if (!elv_text_uint(parts[i].at, parts[i].len, &counts[i]))
            return false;
    return true;
}

bool elv_lab_outcome_read(struct elv_text json, struct elv_lab_outcome *o)
{
    struct page page = {.o = *o};
    struct elv_text value;
    if (!elv_lab_json_find(json, "program", &value) ||
        !elv_value_is(value, "\"elver-sim " ELV_VERSION "\"") || json.len < 2 ||
        memcmp(json.at + json.len - 2, "}\n", 2) != 0)
        return false;
    if (!read_fields(json, fields, FIELDS, &page) || !read_fields(json, later, LATER, &page) ||
        !read_counts(json, page.o.summary.stale) || !read_end(json, &page.o.end))
        return false;
    *o = page.o;
    return true;
}

static void put_uint(struct elv_line *out, const char *key, uint64_t v)
{
    elv_line_add(out, key);
    elv_line_uint(out, v);
}

static void put_fixed(struct elv_line *out, const char *key, double v, unsigned decimals)
{
    elv_line_add(out, key);
    elv_lab_put_fixed(out, v, decimals);
}

void elv_lab_outcome_line(struct elv_line *out, const struct elv_lab_outcome *o)
{
    const struct elv_lab_summary *s = &o->summary;
    elv_line_add(out, "run label=");
    elv_line_add(out, o->label);
    put_uint(out, " seed=", o->seed);
    elv_line_add(out, o->has_target ? (s->reached ? " reached=1" : " reached=0") : " reached=-");
    put_fixed(out, " time=", elv_lab_time_s(o), 6);
    put_uint(out, " rounds=", s->version);
    put_fixed(out, " accuracy=", s->score.accuracy >= 0 ? s->score.accuracy : (double)NAN, 4);
    put_fixed(out, " loss=", s->score.loss, 6);
    put_fixed(out, " waiting=", elv_lab_waiting_share(o), 4);
    put_fixed(out, " updates_per_s=", elv_lab_updates_per_s(o), 4);
    put_uint(out, " bytes_up=", s->bytes_up);
    put_uint(out, " bytes_down=", s->bytes_down);
    put_uint(out, " used=", s->used);
    put_uint(out, " late=", s->late);
    put_uint(out, " discarded=", s->discarded);
    put_uint(out, " dropped=", s->dropped);
    put_uint(out, " abandoned=", s->abandoned);
    put_fixed(out, " staleness=", s->stale_mean, 4);
    put_fixed(out, " ended=", (double)s->ended / 1e6, 6);
    put_uint(out, " interrupted=", s->interrupted);
    elv_line_add(out, " model=");
    elv_line_hex(out, s->model, sizeof s->model);
    elv_line_add(out, " end=");
    elv_line_add(out, elv_lab_end_name(o->end));
    put_uint(out, " wire_up=", s->wire_up);
    put_uint(out, " wire_down=", s->wire_down);
}
