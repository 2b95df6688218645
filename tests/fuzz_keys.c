/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is refused with a line that is in it, or it is a table: every key that is not revoked is
 * found by what it prints as, and the printed table reads back as the same one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/posix/keytable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(const struct elv_keytable *t, const struct elv_key *k)
{
    char identity[ELV_KEY_IDENTITY_MAX + 1];
    const int n = snprintf(identity, sizeof identity, k->generation > 1 ? "%s#%u" : "%s", k->name,
                           (unsigned)k->generation);
    ELV_ASSERT(elv_keytable_find(t, identity, (size_t)n) == (k->revoked ? NULL : k));
    ELV_ASSERT(elv_keytable_device(t, k->number) != NULL);
}

static void check_round_trip(const struct elv_keytable *t)
{
    char *text = malloc((size_t)t->n * ELV_KEY_LINE_MAX + 1);
    ELV_ASSERT(text != NULL);
    size_t len = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        len += elv_key_print(&t->at[i], text + len);
        text[len++] = '\n';
    }
    struct elv_keytable again;
    struct elv_key_error e;
    const enum elv_err err =
        elv_keytable_parse(&again, (struct elv_bytes){(const uint8_t *)text, len}, &e);
    ELV_ASSERT(err == ELV_OK && again.n == t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        again.at[i].line = t->at[i].line;
        ELV_ASSERT(memcmp(&again.at[i], &t->at[i], sizeof t->at[i]) == 0);
    }
    elv_keytable_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_keytable t;
    struct elv_key_error e;
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    if (elv_keytable_parse(&t, (struct elv_bytes){data, size}, &e) != ELV_OK) {
        ELV_ASSERT(e.line <= lines && e.why[0] != 0);
        return 0;
    }
    for (uint32_t i = 0; i < t.n; i++)
        check_key(&t, &t.at[i]);
    check_round_trip(&t);
    elv_keytable_free(&t);
    return 0;
}
