/* SPDX-License-Identifier: Apache-2.0 */
/* tests/html_fixture.h - made-up runs for the simulator's report, the same for the same numbers. */
#ifndef ELV_TESTS_HTML_FIXTURE_H
#define ELV_TESTS_HTML_FIXTURE_H

#include "ports/sim/lab/html.h"

struct html_fixture_cfg {
    uint32_t labels, seeds; /* 1 to 16 labels */
    uint32_t rounds;        /* of a run, about */
    uint32_t clients;
    bool timing_only; /* nothing was learnt */
};

struct html_fixture {
    struct elv_html_report report;
    char *text; /* the page, zero-terminated */
    size_t len;
};

/* Everything on the heap until html_fixture_free. */
void html_fixture_init(struct html_fixture *f, struct html_fixture_cfg cfg);
void html_fixture_write(struct html_fixture *f); /* replaces `text` */
void html_fixture_free(struct html_fixture *f);

/* The page of any report, zero-terminated, for free(). */
char *html_fixture_page(const struct elv_html_report *r);

#endif
