/* SPDX-License-Identifier: Apache-2.0 */
/* Lines "section.key=value" are a world or are refused with a sentence. A world printed and read
 * again is the same world. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/sim/lab/world_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_line(struct elv_world_file *f, char *text, uint32_t line)
{
    char why[ELV_JOB_ERROR_MAX];
    char *dot = strchr(text, '.');
    char *equals = dot != NULL ? strchr(dot, '=') : NULL;
    if (equals == NULL)
        return;
    *dot = *equals = '\0';
    if (elv_world_file_set(f, text, dot + 1, equals + 1, line, why) != ELV_OK)
        ELV_ASSERT(strlen(why) > 10);
}

static void read_again(const struct elv_world_file *f)
{
    static struct elv_world_file again;
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX], other[ELV_JOB_TEXT_MAX], why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    elv_world_file_init(&again);
    for (size_t i = 0; elv_world_file_key(f, i, &section, &key, value, &line); i++)
        if (value[0] != '\0')
            ELV_ASSERT(elv_world_file_set(&again, section, key, value, 1, why) == ELV_OK);
    ELV_ASSERT(elv_world_file_check(&again, why, &line) == ELV_OK);
    for (size_t i = 0; elv_world_file_key(f, i, &section, &key, value, &line); i++) {
        ELV_ASSERT(elv_world_file_key(&again, i, &section, &key, other, &line));
        ELV_ASSERT(strcmp(value, other) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct elv_world_file f;
    char why[ELV_JOB_ERROR_MAX], *text = malloc(size + 1);
    uint32_t line = 1;
    ELV_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    elv_world_file_init(&f);
    for (char *at = text, *end; at < text + size; at = end + 1, line++) {
        end = memchr(at, '\n', (size_t)(text + size - at));
        end = end != NULL ? end : text + size;
        *end = '\0';
        set_line(&f, at, line);
    }
    free(text);
    if (elv_world_file_check(&f, why, &line) == ELV_OK)
        read_again(&f);
    else
        ELV_ASSERT(strlen(why) > 10);
    return 0;
}
