/* SPDX-License-Identifier: Apache-2.0 */
#include "server/elver_server_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/text.h"
#include "ports/posix/file.h"

#define JOB_FILE_MAX 65536u

int elv_folder_path(const struct elv_server_options *o, const char *leaf,
                    char path[ELV_SERVER_PATH_MAX])
{
    const int len =
        snprintf(path, ELV_SERVER_PATH_MAX, "%s/%s%s", o->settings.state, o->job.name, leaf);
    if (len > 0 && (size_t)len < ELV_SERVER_PATH_MAX)
        return EXIT_SUCCESS;
    return elv_server_complain(o->settings.state, "the path is too long");
}

int elv_folder_set_aside(const struct elv_server_options *o)
{
    char from[ELV_SERVER_PATH_MAX], to[ELV_SERVER_PATH_MAX], leaf[16];
    struct stat st;
    if (elv_folder_path(o, "", from) != EXIT_SUCCESS)
        return ELV_SERVER_USAGE;
    if (stat(from, &st) != 0)
        return EXIT_SUCCESS;
    for (unsigned i = 1; i < 100000; i++) {
        snprintf(leaf, sizeof leaf, ".%u", i);
        if (elv_folder_path(o, leaf, to) != EXIT_SUCCESS)
            return ELV_SERVER_USAGE;
        if (stat(to, &st) == 0)
            continue;
        if (rename(from, to) != 0)
            return elv_server_complain(from, strerror(errno));
        fprintf(stderr, "elver-server: the earlier run is in %s now\n", to);
        return EXIT_SUCCESS;
    }
    return elv_server_complain(from, "too many earlier runs were set aside");
}

int elv_folder_compare(const struct elv_server_options *o)
{
    static struct elv_job before;
    char path[ELV_SERVER_PATH_MAX];
    struct stat st;
    uint32_t line;
    char why[ELV_JOB_ERROR_MAX];
    if (elv_folder_path(o, "/job.ini", path) != EXIT_SUCCESS)
        return ELV_SERVER_USAGE;
    if (stat(path, &st) != 0)
        return EXIT_SUCCESS;
    elv_job_init(&before);
    if (elv_server_read_job(path, &before) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    if (elv_job_check(&before, why, &line) != ELV_OK)
        return elv_server_complain(path, why);
    const char *key = elv_job_changed(&before, &o->job);
    if (key == NULL)
        return EXIT_SUCCESS;
    fprintf(stderr,
            "elver-server: %s: '%s' differs from the run in %s/%s, which cannot go on with it; "
            "put it back, or start over with --new-run\n",
            o->job_path, key, o->settings.state, o->job.name);
    return ELV_SERVER_USAGE;
}

int elv_folder_save_job(const struct elv_server_options *o)
{
    static char text[JOB_FILE_MAX];
    char path[ELV_SERVER_PATH_MAX];
    struct elv_line out = elv_line_of(text, sizeof text);
    elv_job_print(&o->job, &out);
    if (elv_folder_path(o, "/job.ini", path) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    if (elv_posix_save(path, (struct elv_bytes){(const uint8_t *)text, out.len}) == ELV_OK)
        return EXIT_SUCCESS;
    return elv_server_complain(path, strerror(errno));
}
