/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are refused with a line that is in the file, or every key is given once, with texts
 * that keep their limits, in the order of the lines. */
#include <stdio.h>
#include <string.h>

#include "common/assert.h"
#include "ports/inih/ini.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum elv_err each(void *ctx, const char *section, const char *key, const char *value,
                         uint32_t line, char why[ELV_INI_WHY_MAX])
{
    uint32_t *last = ctx;
    (void)why;
    ELV_ASSERT(line > *last);
    ELV_ASSERT(strlen(section) < 64 && strlen(key) < 64 && strlen(value) < ELV_INI_VALUE_MAX);
    ELV_ASSERT(strchr(value, '\n') == NULL);
    *last = line;
    return ELV_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[ELV_INI_MESSAGE_MAX] = "";
    uint32_t last = 0;
    unsigned line = 0, n_lines = 1;
    for (size_t i = 0; i < size; i++)
        n_lines += data[i] == '\n';
    if (elv_ini_parse((struct elv_bytes){data, size}, "f", &last, each, message) != ELV_OK)
        ELV_ASSERT(sscanf(message, "f:%u: ", &line) == 1 && line >= 1 && line <= n_lines);
    return 0;
}
