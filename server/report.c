/* SPDX-License-Identifier: Apache-2.0 */
#include "server/report.h"

#include <math.h>

#include "elver/version.h"

static void put_uint(struct elv_line *out, const char *key, uint64_t v)
{
    elv_line_add(out, key);
    elv_line_uint(out, v);
}

/* `v` with a fixed number of decimals, at most 6; "nan" for what is unknown. */
static void put_fixed(struct elv_line *out, const char *key, double v, unsigned decimals)
{
    elv_line_add(out, key);
    if (!isfinite(v)) {
        elv_line_add(out, "nan");
        return;
    }
    uint64_t unit = 1;
    for (unsigned i = 0; i < decimals; i++)
        unit *= 10;
    if (v < 0)
        elv_line_add(out, "-");
    const double scaled = fabs(v) * (double)unit + 0.5;
    const uint64_t whole = scaled < 1e18 ? (uint64_t)scaled : (uint64_t)1e18;
    elv_line_uint(out, whole / unit);
    if (decimals == 0)
        return;
    elv_line_add(out, ".");
    for (uint64_t rest = whole % unit; unit > 1; rest %= unit) {
        unit /= 10;
        elv_line_uint(out, rest / unit);
    }
}

static double seconds(elv_time_us us) { return (double)us / 1e6; }

static double per_update(const struct elv_server_stats *stats)
{
    return stats->updates_used == 0 ? (double)NAN
                                    : (double)stats->bytes_up / (double)stats->updates_used;
}

void elv_report_round(struct elv_line *out, const struct elv_round_line *line)
{
    const struct elv_round_report *r = &line->report;
    put_uint(out, "round ", r->version);
    put_fixed(out, " accuracy=", line->scored ? line->score.accuracy : (double)NAN, 4);
    put_fixed(out,
              " balanced_accuracy=", line->scored ? line->score.balanced_accuracy : (double)NAN, 4);
    put_fixed(out, " loss=", line->scored ? line->score.loss : r->loss, 4);
    put_uint(out, " used=", r->n_used);
    put_uint(out, " late=", r->n_late);
    put_uint(out, " refused=", r->n_refused);
    put_uint(out, " bytes_up=", r->bytes_up);
    put_uint(out, " bytes_down=", r->bytes_down);
    put_fixed(out, " seconds=", seconds(r->took), 3);
    put_uint(out, " wanted=", r->wanted);
    put_uint(out, " discarded=", r->n_discarded);
    put_fixed(out, " staleness=", r->staleness, 2);
    put_uint(out, " wire_bytes_up=", r->wire_up);
    put_uint(out, " wire_bytes_down=", r->wire_down);
}

void elv_report_table(struct elv_line *out, const struct elv_server_stats *stats,
                      const struct elv_run_facts *facts)
{
    put_uint(out, "rounds       ", stats->version);
    put_uint(out, " versions, ", stats->rounds_abandoned);
    put_fixed(out, " rounds abandoned, ", facts->train_seconds, 1);
    put_uint(out, " s\nupdates      ", stats->updates_used);
    put_uint(out, " used, ", stats->updates_late);
    put_uint(out, " late, ", stats->updates_refused);
    put_uint(out, " refused, ", stats->updates_declined + stats->updates_failed);
    put_fixed(out, " declined or failed\nchunks       ", (double)stats->bytes_up / 1048576, 1);
    put_fixed(out, " MiB up, ", (double)stats->bytes_down / 1048576, 1);
    put_fixed(out, " MiB down\nwire         ", (double)facts->wire_up / 1048576, 1);
    put_fixed(out, " MiB up, ", (double)facts->wire_down / 1048576, 1);
    elv_line_add(out, " MiB down, headers, handshakes and repeats included\n");
    if (stats->best_accuracy < 0)
        return;
    put_uint(out, "best         version ", stats->best_version);
    put_fixed(out, " with accuracy ", stats->best_accuracy, 4);
    elv_line_add(out, "\n");
}

void elv_report_result(struct elv_line *out, const struct elv_server_stats *stats,
                       const struct elv_round_line *last, const struct elv_run_facts *facts)
{
    put_fixed(out, "result accuracy=", last->scored ? last->score.accuracy : (double)NAN, 4);
    put_fixed(out,
              " balanced_accuracy=", last->scored ? last->score.balanced_accuracy : (double)NAN, 4);
    put_uint(out, " rounds=", stats->version);
    put_fixed(out, " train_seconds=", facts->train_seconds, 2);
    put_uint(out, " updates_used=", stats->updates_before + stats->updates_used);
    put_uint(out, " updates_late=", stats->updates_late);
    put_uint(out, " updates_refused=", stats->updates_refused);
    put_fixed(out, " bytes_up_per_client_round=", per_update(stats), 0);
    put_uint(out, " server_peak_rss_kib=", facts->peak_rss_kib);
    put_uint(out, " worst_round_overrun_ms=", (uint64_t)(stats->worst_overrun + 999) / 1000);
    elv_line_add(out, " model=");
    elv_line_add(out, facts->model);
    elv_line_add(out, " digest=");
    elv_line_hex(out, stats->model, sizeof stats->model);
    elv_line_add(out, " version=" ELV_VERSION);
    put_uint(out, " updates_discarded=", stats->updates_discarded);
    put_uint(out, " lapsed=", stats->lapsed);
    put_uint(out, " bytes_up=", stats->bytes_up);
    put_uint(out, " bytes_down=", stats->bytes_down);
    put_uint(out, " wire_bytes_up=", facts->wire_up);
    put_uint(out, " wire_bytes_down=", facts->wire_down);
}

/* JSON has no NaN: what is unknown is null. */
static void put_json(struct elv_line *out, const char *key, double v, unsigned decimals)
{
    if (isfinite(v)) {
        put_fixed(out, key, v, decimals);
        return;
    }
    elv_line_add(out, key);
    elv_line_add(out, "null");
}

static void put_bool(struct elv_line *out, const char *key, bool v)
{
    elv_line_add(out, key);
    elv_line_add(out, v ? "true" : "false");
}

static void put_refusals(struct elv_line *out, const struct elv_server_stats *stats)
{
    bool first = true;
    elv_line_add(out, ",\"refused\":{");
    for (uint32_t i = 1; i < sizeof stats->refused / sizeof stats->refused[0]; i++) {
        if (stats->refused[i] == 0)
            continue;
        elv_line_add(out, first ? "\"" : ",\"");
        elv_line_add(out, elv_reason_text((enum elv_reason)i));
        put_uint(out, "\":", stats->refused[i]);
        first = false;
    }
    elv_line_add(out, "}");
}

/* A sum of any size; `unknown` where it has overflowed. */
static void put_sum(struct elv_line *out, double v, const char *unknown)
{
    if (isfinite(v))
        elv_line_f64(out, v);
    else
        elv_line_add(out, unknown);
}

static void put_user(struct elv_line *out, const struct elv_user_totals *user)
{
    elv_line_add(out, ",\"user\":{");
    for (uint32_t i = 0; i < user->n; i++) {
        elv_line_add(out, i == 0 ? "\"" : ",\"");
        elv_line_add(out, user->at[i].name);
        elv_line_add(out, "\":");
        put_sum(out, user->at[i].value, "null");
    }
    put_uint(out, "},\"user_left_out\":", user->n_left_out);
}

static void put_figures(struct elv_line *out, const struct elv_run_facts *facts)
{
    for (uint32_t i = 0; i < facts->n_figures; i++) {
        elv_line_add(out, ",\"");
        elv_line_add(out, facts->figures[i].key);
        put_uint(out, "\":", facts->figures[i].value);
    }
}

/* The newest closed round. */
static void put_last(struct elv_line *out, const struct elv_round_report *r)
{
    put_uint(out, ",\"last_round\":{\"wanted\":", r->wanted);
    put_uint(out, ",\"used\":", r->n_used);
    put_uint(out, ",\"late\":", r->n_late);
    put_uint(out, ",\"discarded\":", r->n_discarded);
    put_uint(out, ",\"refused\":", r->n_refused);
    put_json(out, ",\"staleness\":", r->staleness, 3);
    elv_line_add(out, "}");
}

void elv_report_json(struct elv_line *out, const struct elv_server_stats *s,
                     const struct elv_round_line *last, const struct elv_run_facts *facts)
{
    const double nothing = (double)NAN;
    elv_line_add(out, "{\"version\":\"" ELV_VERSION "\"");
    put_uint(out, ",\"model_version\":", s->version);
    elv_line_add(out, ",\"digest\":\"");
    elv_line_hex(out, s->model, sizeof s->model);
    put_uint(out, "\",\"round\":", s->round);
    put_bool(out, ",\"round_open\":", s->round_open);
    put_bool(out, ",\"over\":", s->over);
    put_bool(out, ",\"target_reached\":", s->target_reached);
    put_json(out, ",\"accuracy\":", last->scored ? last->score.accuracy : nothing, 6);
    put_json(out, ",\"balanced_accuracy\":", last->scored ? last->score.balanced_accuracy : nothing,
             6);
    put_json(out, ",\"macro_f1\":", last->scored ? last->score.macro_f1 : nothing, 6);
    put_json(out, ",\"loss\":", last->scored ? last->score.loss : nothing, 6);
    put_json(out, ",\"train_loss\":", last->report.version > 0 ? last->report.loss : nothing, 6);
    put_uint(out, ",\"best_version\":", s->best_version);
    put_json(out, ",\"best_accuracy\":", s->best_accuracy >= 0 ? s->best_accuracy : nothing, 6);
    put_json(out, ",\"train_seconds\":", facts->train_seconds, 3);
    put_uint(out, ",\"clients\":", s->n_clients);
    put_uint(out, ",\"joined\":", s->n_joined);
    put_uint(out, ",\"joins\":", s->joins);
    put_uint(out, ",\"leaves\":", s->leaves);
    put_uint(out, ",\"twins\":", s->twins);
    put_uint(out, ",\"capped\":", s->capped);
    put_uint(out, ",\"uploads\":", s->n_uploads);
    put_uint(out, ",\"rounds_opened\":", s->rounds_opened);
    put_uint(out, ",\"rounds_closed\":", s->rounds_closed);
    put_uint(out, ",\"rounds_abandoned\":", s->rounds_abandoned);
    put_uint(out, ",\"updates_used\":", s->updates_before + s->updates_used);
    put_uint(out, ",\"updates_late\":", s->updates_late);
    put_uint(out, ",\"updates_refused\":", s->updates_refused);
    put_uint(out, ",\"updates_declined\":", s->updates_declined);
    put_uint(out, ",\"updates_failed\":", s->updates_failed);
    put_uint(out, ",\"requests\":", s->requests);
    put_uint(out, ",\"malformed\":", s->malformed);
    put_uint(out, ",\"chunks_up\":", s->chunks_up);
    put_uint(out, ",\"chunks_repeated\":", s->chunks_repeated);
    put_uint(out, ",\"chunks_down\":", s->chunks_down);
    put_uint(out, ",\"bytes_up\":", s->bytes_up);
    put_uint(out, ",\"bytes_down\":", s->bytes_down);
    put_uint(out, ",\"log_bytes\":", s->log_bytes);
    put_uint(out, ",\"store_failures\":", s->store_failures);
    put_uint(out, ",\"log_losses\":", s->log_losses);
    put_json(out, ",\"worst_round_overrun_ms\":", seconds(s->worst_overrun) * 1e3, 3);
    put_uint(out, ",\"peak_rss_kib\":", facts->peak_rss_kib);
    put_refusals(out, s);
    put_uint(out, ",\"evaluations\":", s->evaluations);
    put_user(out, &last->report.user);
    put_uint(out, ",\"updates_discarded\":", s->updates_discarded);
    put_uint(out, ",\"wanted\":", s->wanted);
    put_last(out, &last->report);
    put_uint(out, ",\"lapsed\":", s->lapsed);
    put_uint(out, ",\"wire_bytes_up\":", facts->wire_up);
    put_uint(out, ",\"wire_bytes_down\":", facts->wire_down);
    put_figures(out, facts);
    elv_line_add(out, "}\n");
}

static void put_field(struct elv_line *out, const char *key, uint64_t v)
{
    if (v == 0)
        return;
    elv_line_add(out, out->len > 0 ? " " : "");
    put_uint(out, key, v);
}

static void put_reason(struct elv_line *out, enum elv_reason reason)
{
    if (reason == ELV_REASON_NONE)
        return;
    elv_line_add(out, out->len > 0 ? " reason=" : "reason=");
    elv_line_add(out, elv_reason_text(reason));
}

void elv_report_note(struct elv_line *out, const struct elv_note *n)
{
    put_field(out, "client=", n->client);
    put_field(out, "round=", n->round);
    put_field(out, "version=", n->version);
    put_reason(out, n->reason);
    put_field(out, "value=", n->value);
    if (n->kind == ELV_NOTE_ROUND_CLOSED || n->kind == ELV_NOTE_ROUND_ABANDONED) {
        put_uint(out, " asked=", n->report.n_asked);
        put_uint(out, " used=", n->report.n_used);
        put_uint(out, " late=", n->report.n_late);
        put_uint(out, " refused=", n->report.n_refused);
        put_fixed(out, " seconds=", seconds(n->report.took), 3);
        put_fixed(out, " overrun_ms=", seconds(n->report.overrun) * 1e3, 3);
        put_uint(out, " wanted=", n->report.wanted);
        put_uint(out, " discarded=", n->report.n_discarded);
        put_fixed(out, " staleness=", n->report.staleness, 2);
    }
    if (n->kind == ELV_NOTE_ROUND_OPENED)
        put_field(out, "wanted=", n->report.wanted);
    if (n->kind == ELV_NOTE_EVALUATED || n->kind == ELV_NOTE_CLIENTS_EVALUATED) {
        put_uint(out, " n=", n->score.n);
        put_fixed(out, " accuracy=", n->score.accuracy, 4);
        put_fixed(out, " loss=", n->score.loss, 4);
    }
    for (uint32_t i = 0; i < n->report.user.n; i++) {
        elv_line_add(out, " user.");
        elv_line_add(out, n->report.user.at[i].name);
        elv_line_add(out, "=");
        put_sum(out, n->report.user.at[i].value, "nan");
    }
    put_field(out, "user_left_out=", n->report.user.n_left_out);
}
