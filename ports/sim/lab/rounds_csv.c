/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/rounds_csv.h"

#include <math.h>
#include <string.h>

#include "ports/sim/lab/fields.h"

/* A round with what follows from it. */
struct row {
    struct elv_lab_round r;
    double waiting_share;
};

#define COLUMN(name_, kind_, member)                                                               \
    {                                                                                              \
        .name = name_, .kind = ELV_LAB_F_##kind_, .at = offsetof(struct row, member)               \
    }
static const struct elv_lab_field columns[] = {
    COLUMN("round", U32, r.seq),
    COLUMN("version", U32, r.version),
    COLUMN("abandoned", BOOL, r.abandoned),
    COLUMN("opened", TIME, r.opened),
    COLUMN("closed", TIME, r.closed),
    COLUMN("deadline", TIME, r.deadline),
    COLUMN("wanted", U32, r.wanted),
    COLUMN("asked", U32, r.n_asked),
    COLUMN("used", U32, r.n_used),
    COLUMN("late", U32, r.n_late),
    COLUMN("discarded", U32, r.n_discarded),
    COLUMN("dropped", U32, r.n_dropped),
    COLUMN("bytes_up", U64, r.bytes_up),
    COLUMN("bytes_down", U64, r.bytes_down),
    COLUMN("train_loss", F64, r.train_loss),
    COLUMN("loss", F64, r.score.loss),
    COLUMN("accuracy", ACCURACY, r.score.accuracy),
    COLUMN("staleness", F64, r.stale_mean),
    COLUMN("waiting", SPAN, r.waiting_us),
    COLUMN("working", SPAN, r.working_us),
    COLUMN("waiting_share", F64, waiting_share),
    COLUMN("model", DIGEST, r.model),
    COLUMN("wire_up", U64, r.wire_up),
    COLUMN("wire_down", U64, r.wire_down),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static struct row row_of(const struct elv_lab_round *r)
{
    const double all = r->waiting_us + r->working_us;
    return (struct row){.r = *r, .waiting_share = all > 0 ? r->waiting_us / all : (double)NAN};
}

void elv_lab_csv_head(struct elv_line *out)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        elv_line_add(out, i > 0 ? "," : "");
        elv_line_add(out, columns[i].name);
    }
}

void elv_lab_csv_row(struct elv_line *out, const struct elv_lab_round *r)
{
    const struct row row = row_of(r);
    for (size_t i = 0; i < COLUMNS; i++) {
        elv_line_add(out, i > 0 ? "," : "");
        elv_lab_field_put(out, &columns[i], &row);
    }
}

bool elv_lab_csv_read(struct elv_text row, struct elv_lab_round *r)
{
    struct elv_text parts[COLUMNS];
    struct row got = {0};
    if (elv_value_parts(row, ',', parts, COLUMNS) != COLUMNS)
        return false;
    for (size_t i = 0; i < COLUMNS; i++)
        if (!elv_lab_field_get(parts[i], &columns[i], &got))
            return false;
    *r = got.r;
    return true;
}

bool elv_lab_csv_begins(struct elv_text file, struct elv_text *rows)
{
    char head[ELV_LAB_ROW_MAX];
    struct elv_line l = elv_line_of(head, sizeof head);
    elv_lab_csv_head(&l);
    if (file.len <= l.len || memcmp(file.at, head, l.len) != 0 || file.at[l.len] != '\n')
        return false;
    *rows = (struct elv_text){file.at + l.len + 1, file.len - l.len - 1};
    return true;
}

static void begin(struct elv_line *out, elv_time_us at, const char *event)
{
    elv_line_add(out, "{\"at\":");
    elv_lab_put_seconds(out, at);
    elv_line_add(out, ",\"event\":\"");
    elv_line_add(out, event);
    elv_line_add(out, "\"");
}

static void put_key(struct elv_line *out, const char *key)
{
    elv_line_add(out, ",\"");
    elv_line_add(out, key);
    elv_line_add(out, "\":");
}

void elv_lab_round_event(struct elv_line *out, const struct elv_lab_round *r)
{
    const struct row row = row_of(r);
    begin(out, r->closed, r->abandoned ? "abandoned" : "closed");
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].kind == ELV_LAB_F_BOOL)
            continue; /* the event says it */
        put_key(out, columns[i].name);
        elv_lab_field_json(out, &columns[i], &row);
    }
    elv_line_add(out, "}");
}

static void put_count(struct elv_line *out, const char *key, uint32_t v)
{
    put_key(out, key);
    elv_line_uint(out, v);
}

void elv_lab_client_event(struct elv_line *out, const struct elv_lab_event *e)
{
    begin(out, e->at, elv_lab_event_name(e->kind));
    put_count(out, "client", e->client);
    put_count(out, "round", e->round);
    put_count(out, "version", e->version);
    put_count(out, "assignment", e->assignment);
    put_count(out, "staleness", e->staleness);
    if (e->kind == ELV_LAB_USED)
        put_count(out, "weight", e->weight);
    elv_line_add(out, "}");
}
