/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_files.h"

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

bool elv_sim_file_open(struct elv_sim_file *f, const char *dir, const char *leaf)
{
    char part[ELV_SIM_PATH_MAX + sizeof PART];
    *f = (struct elv_sim_file){0};
    if (!elv_sim_path(f->path, dir, leaf))
        return false;
    part_of(f, part);
    f->at = fopen(part, "w");
    return f->at != NULL;
}

void elv_sim_file_put(struct elv_sim_file *f, const char *text, size_t len)
{
    if (f->at != NULL && len > 0 && fwrite(text, 1, len, f->at) != len)
        f->failed = true;
}

/* Closes it; false: not all of it was written. */
static bool end(struct elv_sim_file *f)
{
    const bool written = fclose(f->at) == 0 && !f->failed;
    f->at = NULL;
    return written;
}

bool elv_sim_file_keep(struct elv_sim_file *f)
{
    char part[ELV_SIM_PATH_MAX + sizeof PART];
    if (f->at == NULL)
        return true;
    part_of(f, part);
    if (end(f) && rename(part, f->path) == 0)
        return true;
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
