/* SPDX-License-Identifier: Apache-2.0 */
/* What a finished run left behind: any text is refused, or says what is written again the same. */
#include <string.h>

#include "common/assert.h"
#include "ports/sim/lab/outcome.h"
#include "ports/sim/lab/rounds_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void summary(struct elv_text text)
{
    static struct elv_lab_outcome a, b;
    static char first[ELV_LAB_OUTCOME_MAX], second[ELV_LAB_OUTCOME_MAX];
    a = b = (struct elv_lab_outcome){.label = "bsp"};
    if (!elv_lab_outcome_read(text, &a))
        return;
    struct elv_line l = elv_line_of(first, sizeof first), m = elv_line_of(second, sizeof second);
    elv_lab_outcome_json(&l, &a);
    ELV_ASSERT(!l.full && elv_lab_outcome_read((struct elv_text){l.at, l.len}, &b));
    elv_lab_outcome_json(&m, &b);
    ELV_ASSERT(l.len == m.len && memcmp(first, second, l.len) == 0);
}

static void row(struct elv_text text)
{
    static struct elv_lab_round a, b;
    char first[ELV_LAB_ROW_MAX], second[ELV_LAB_ROW_MAX];
    if (!elv_lab_csv_read(text, &a))
        return;
    struct elv_line l = elv_line_of(first, sizeof first), m = elv_line_of(second, sizeof second);
    elv_lab_csv_row(&l, &a);
    ELV_ASSERT(!l.full && elv_lab_csv_read((struct elv_text){l.at, l.len}, &b));
    elv_lab_csv_row(&m, &b);
    ELV_ASSERT(l.len == m.len && memcmp(first, second, l.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct elv_text text = {(const char *)data, size};
    struct elv_text rows;
    if (size == 0)
        return 0;
    summary(text);
    row(text);
    (void)elv_lab_csv_begins(text, &rows);
    return 0;
}
