/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sim/elver_sim_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define PART ".part"

bool elv_sim_path(char path[ELV_SIM_PATH_MAX], const char *dir, const char *leaf)
{
    const int n = snprintf(path, ELV_SIM_PATH_MAX, "%s/%s", dir, leaf);
    return n > 0 && (size_t)n < ELV_SIM_PATH_MAX;
}

static void part_of(const struct elv_sim_file *f, char part[ELV_SIM_PATH_MAX + sizeof PART])
{
    snprintf(part, ELV_SIM_PATH_MAX + sizeof PART, "%s" PART, f->path);
}

static void fail(struct elv_sim_file *f)
{
    if (f->fault == 0)
        f->fault = errno != 0 ? errno : EIO;
}

bool elv_sim_file_open(struct elv_sim_file *f, const char *dir, const char *leaf)
{
    char part[ELV_SIM_PATH_MAX + sizeof PART];
    *f = (struct elv_sim_file){0};
    if (!elv_sim_path(f->path, dir, leaf)) {
        f->fault = ENAMETOOLONG;
        return false;
    }
    part_of(f, part);
    f->at = fopen(part, "w");
    if (f->at == NULL)
        fail(f);
    return f->at != NULL;
}

void elv_sim_file_put(struct elv_sim_file *f, const char *text, size_t len)
{
    if (f->at != NULL && len > 0 && fwrite(text, 1, len, f->at) != len)
        fail(f);
    f->size += f->at != NULL ? len : 0;
}

/* Closes it; false: not all of it was written. */
static bool end(struct elv_sim_file *f)
{
    if (fclose(f->at) != 0)
        fail(f);
    f->at = NULL;
    return f->fault == 0;
}

bool elv_sim_file_keep(struct elv_sim_file *f)
{
    char part[ELV_SIM_PATH_MAX + sizeof PART];
    if (f->at == NULL)
        return f->fault == 0;
    part_of(f, part);
    if (end(f) && rename(part, f->path) == 0)
        return true;
    fail(f);
    remove(part);
    return false;
}

void elv_sim_file_drop(struct elv_sim_file *f)
{
    char part[ELV_SIM_PATH_MAX + sizeof PART];
    if (f->at == NULL)
        return;
    part_of(f, part);
    end(f);
    remove(part);
}

bool elv_sim_file_is(const char *dir, const char *leaf, uint64_t size)
{
    char path[ELV_SIM_PATH_MAX];
    struct stat found;
    if (!elv_sim_path(path, dir, leaf))
        return false;
    if (stat(path, &found) != 0)
        return size == 0 && errno == ENOENT;
    return size > 0 && S_ISREG(found.st_mode) && (uint64_t)found.st_size == size;
}
