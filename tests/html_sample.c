/* SPDX-License-Identifier: Apache-2.0 */
/* tests/html_sample.c - prints a report of made-up runs, to be looked at.
 *
 *     html_sample LABELS SEEDS ROUNDS [CLIENTS] >report.html */
#include <stdio.h>
#include <stdlib.h>

#include "tests/html_fixture.h"

static uint32_t number(int argc, char **argv, int i, uint32_t otherwise)
{
    return i < argc ? (uint32_t)strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct html_fixture f;
    html_fixture_init(&f, (struct html_fixture_cfg){.labels = number(argc, argv, 1, 4),
                                                    .seeds = number(argc, argv, 2, 3),
                                                    .rounds = number(argc, argv, 3, 80),
                                                    .clients = number(argc, argv, 4, 16)});
    const size_t put = fwrite(f.text, 1, f.len, stdout);
    const int bad = put != f.len || fflush(stdout) != 0;
    html_fixture_free(&f);
    return bad;
}
