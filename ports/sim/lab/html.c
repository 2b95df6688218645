/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/html.h"

#include <math.h>

#include "ports/sim/lab/html_parts.h"

size_t elv_html_scratch(const struct elv_html_report *r)
{
    struct elv_arena a = elv_arena_of(NULL, 0);
    struct html h = {.r = r};
    html_layout(&a, &h);
    return a.used + ELV_ARENA_ALIGN; /* to start at a multiple of it */
}

static void put_head(struct html *h)
{
    html_put(h, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; img-src data:\"/>\n"
                "<link rel=\"icon\" href=\"data:,\"/>\n<title>");
    html_text(h, h->r->title);
    html_put(h, "</title>\n<style>\n");
    for (uint32_t i = 0; html_style[i] != NULL; i++)
        html_put(h, html_style[i]);
    html_put(h, "</style>\n</head>\n<body>\n");
}

static void put_foot(struct html *h)
{
    html_put(h, "<footer>\n");
    if (h->n_labels > h->n_lines)
        html_put(h, "<p>Charts with lines hold the first twelve policies; all other charts and the "
                    "tables hold all of them.</p>\n");
    html_put(h,
             "<p>A line is the mean over the seeds of a policy, the band around it goes from the "
             "least to the greatest; where more rounds closed than a line has points, also over "
             "the rounds of a point. A run that has ended keeps its last value.</p>\n<p>");
    html_text(h, h->r->program);
    html_put(h, "</p>\n</footer>\n</body>\n</html>\n");
}

static void put_curves(struct html *h)
{
    const double target = h->r->target_accuracy;
    const struct html_plot accuracy = {
        .id = "accuracy",
        .title = "Accuracy over virtual time",
        .says = "Of each version, when it was made.",
        .x_says = "virtual time",
        .y_says = "accuracy",
        .nothing = "No accuracy was measured.",
        .q = HTML_Q_ACCURACY,
        .x_unit = HTML_TIME,
        .y_unit = HTML_RATIO,
        .target = target > 0.0 ? target : NAN,
    };
    const struct html_plot loss = {
        .id = "loss",
        .title = "Loss over virtual time",
        .says = h->scored ? "Of each version, when it was made."
                          : "As the clients reported it from their training.",
        .x_says = "virtual time",
        .y_says = "loss",
        .nothing = "No loss was measured.",
        .q = HTML_Q_LOSS,
        .x_unit = HTML_TIME,
        .y_unit = HTML_PLAIN,
        .target = h->r->target_loss > 0.0 ? h->r->target_loss : NAN,
    };
    html_draw_plots(h, &accuracy, &loss);
}

static void put_rounds_and_clients(struct html *h)
{
    const struct html_plot wanted = {
        .id = "wanted",
        .title = "Updates a round waits for",
        .says = "k, as the policy chose it; a policy that waits for no number has no line.",
        .x_says = "virtual time",
        .y_says = "updates",
        .nothing = "No policy waited for a number of updates.",
        .q = HTML_Q_WANTED,
        .x_unit = HTML_TIME,
        .y_unit = HTML_COUNT,
        .target = NAN,
    };
    const struct html_plot fairness = {
        .id = "fairness",
        .title = "Fairness of participation",
        .says = "Lorenz curve of the updates used per client: on the diagonal all take part alike. "
                "Beside the names, Jain's index: 1 for all alike.",
        .x_says = "clients, least used first",
        .y_says = "updates used, percent",
        .nothing = "Who took part was not noted.",
        .q = HTML_Q_LORENZ,
        .x_unit = HTML_SHARE,
        .y_unit = HTML_SHARE,
        .target = NAN,
    };
    html_draw_plots(h, &wanted, &fairness);
}

enum elv_err elv_html_write(const struct elv_html_report *r, struct elv_html_out out, void *scratch,
                            size_t len)
{
    if (len < elv_html_scratch(r))
        return ELV_ERR_SPACE;
    const size_t off = (uintptr_t)scratch % ELV_ARENA_ALIGN;
    const size_t skip = off > 0 ? ELV_ARENA_ALIGN - off : 0;
    struct elv_arena a = elv_arena_of((uint8_t *)scratch + skip, len - skip);
    struct html h = {.out = out, .r = r};
    html_layout(&a, &h);
    if (a.err != ELV_OK)
        return a.err;
    html_gather(&h);
    put_head(&h);
    html_headline(&h);
    html_put(&h, "<main>\n");
    put_curves(&h);
    if (r->target_accuracy > 0.0 || r->target_loss > 0.0)
        html_draw_reached(&h);
    else
        html_draw_rate(&h);
    html_draw_waiting(&h);
    html_comparison(&h);
    put_rounds_and_clients(&h);
    html_draw_staleness(&h);
    html_draw_bytes(&h);
    html_settings(&h);
    html_put(&h, "</main>\n");
    put_foot(&h);
    return ELV_OK;
}
