/* SPDX-License-Identifier: Apache-2.0 */
/* Lines "section.key=value" are a job or are refused with a sentence. A job printed and read again
 * is the same job, and its manifest travels. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "server/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_line(struct elv_job *job, char *text, uint32_t line)
{
    char why[ELV_JOB_ERROR_MAX];
    char *dot = strchr(text, '.');
    char *equals = dot != NULL ? strchr(dot, '=') : NULL;
    if (equals == NULL)
        return;
    *dot = *equals = '\0';
    if (elv_job_set(job, text, dot + 1, equals + 1, line, why) != ELV_OK)
        ELV_ASSERT(strlen(why) > 10);
}

static void read_again(const struct elv_job *job)
{
    static struct elv_job again;
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX], other[ELV_JOB_TEXT_MAX], why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    elv_job_init(&again);
    for (size_t i = 0; elv_job_key(job, i, &section, &key, value, &line); i++)
        if (value[0] != '\0')
            ELV_ASSERT(elv_job_set(&again, section, key, value, 1, why) == ELV_OK);
    ELV_ASSERT(elv_job_check(&again, why, &line) == ELV_OK);
    ELV_ASSERT(elv_job_changed(job, &again) == NULL);
    for (size_t i = 0; elv_job_key(job, i, &section, &key, value, &line); i++) {
        ELV_ASSERT(elv_job_key(&again, i, &section, &key, other, &line));
        ELV_ASSERT(strcmp(value, other) == 0);
    }
}

static void manifest_travels(const struct elv_job *job)
{
    static const uint8_t run[ELV_RUN_ID_LEN] = {0};
    struct elv_manifest m, back;
    uint8_t out[ELV_MANIFEST_MAX];
    size_t len;
    elv_job_manifest(job, run, &m);
    ELV_ASSERT(elv_manifest_encode(&m, out, sizeof out, &len) == ELV_OK);
    ELV_ASSERT(elv_manifest_decode((struct elv_bytes){out, len}, &back) == ELV_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct elv_job job;
    char why[ELV_JOB_ERROR_MAX], *text = malloc(size + 1);
    uint32_t line = 1;
    ELV_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    elv_job_init(&job);
    for (char *at = text, *end; at < text + size; at = end + 1, line++) {
        end = memchr(at, '\n', (size_t)(text + size - at));
        end = end != NULL ? end : text + size;
        *end = '\0';
        set_line(&job, at, line);
    }
    free(text);
    if (elv_job_check(&job, why, &line) != ELV_OK) {
        ELV_ASSERT(strlen(why) > 10);
        return 0;
    }
    read_again(&job);
    manifest_travels(&job);
    return 0;
}
