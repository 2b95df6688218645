/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "ports/sim/elver_sim_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ports/posix/file.h"
#include "ports/sim/elver_sim_files.h"
#include "ports/sim/elver_sim_joint.h"
#include "ports/sim/elver_sim_run.h"
#include "ports/sim/lab/fields.h"

#define SMALL_FILE_MAX ((size_t)64 << 20)

/* DIR and the folders above it. */
static bool make_folders(const char *path)
{
    char part[ELV_SIM_PATH_MAX];
    const size_t len = strlen(path);
    if (len >= sizeof part)
        return false;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static int take_lock(struct elv_sim_folder *f, const char *dir)
{
    f->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0)
        return elv_sim_complain(dir, strerror(errno));
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        return EXIT_SUCCESS;
    elv_sim_folder_close(f);
    return elv_sim_complain(dir, "another elver-sim writes there");
}

/* What was run before. */

/* Loads DIR/LEAF; NULL: there is none. To be freed. */
static char *load(const char *dir, const char *leaf, size_t *len)
{
    char path[ELV_SIM_PATH_MAX];
    uint8_t *bytes;
    if (!elv_sim_path(path, dir, leaf) ||
        elv_posix_load(path, SMALL_FILE_MAX, &bytes, len) != ELV_OK)
        return NULL;
    return (char *)bytes;
}

static bool is_configuration(struct elv_text json, const uint8_t digest[ELV_SHA256_LEN])
{
    char text[2 * ELV_SHA256_LEN + 3];
    struct elv_line l = elv_line_of(text, sizeof text);
    struct elv_text value;
    elv_line_add(&l, "\"");
    elv_line_hex(&l, digest, ELV_SHA256_LEN);
    elv_line_add(&l, "\"");
    return elv_lab_json_find(json, "configuration", &value) && elv_value_is(value, text);
}

static void remove_files(const char *dir)
{
    static const char *const leaves[] = {
        "rounds.csv",         "events.jsonl",           "summary.json",
        "manifest.json",      "participation.csv",      "report.html",
        "host.json",          "rounds.csv.part",        "events.jsonl.part",
        "summary.json.part",  "participation.csv.part", "report.html.part",
        "manifest.json.part", "host.json.part"};
    char path[ELV_SIM_PATH_MAX];
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++)
        if (elv_sim_path(path, dir, leaves[i]))
            unlink(path);
}

/* Of another configuration: files that this program wrote, no others. */
static void remove_old(const char *dir)
{
    char runs[ELV_SIM_PATH_MAX], path[ELV_SIM_PATH_MAX];
    DIR *d = elv_sim_path(runs, dir, "runs") ? opendir(runs) : NULL;
    const struct dirent *e;
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.' || !elv_sim_path(path, runs, e->d_name))
            continue;
        remove_files(path);
        rmdir(path);
    }
    if (d != NULL) {
        closedir(d);
        rmdir(runs);
    }
    remove_files(dir);
}

static int check_old(const struct elv_sim_experiment *x)
{
    size_t len;
    const char *dir = x->asked->out;
    char *manifest = load(dir, "manifest.json", &len);
    const bool other =
        manifest != NULL && !is_configuration((struct elv_text){manifest, len}, x->configuration);
    free(manifest);
    if (!other)
        return EXIT_SUCCESS;
    if (!x->asked->force) {
        elv_sim_complain(dir, "it holds results of another configuration; give another folder, or "
                              "--force to replace them");
        return ELV_SIM_USAGE;
    }
    remove_old(dir);
    return EXIT_SUCCESS;
}

/* All its files are as long as they were: a crash of the machine may have cost their ends, or
 * somebody has removed one. */
static bool is_whole(const struct elv_lab_outcome *o, const char *folder)
{
    return elv_sim_file_is(folder, "rounds.csv", o->rounds_bytes) &&
           elv_sim_file_is(folder, "events.jsonl", o->events_bytes) &&
           elv_sim_file_is(folder, "participation.csv", o->participation_bytes);
}

/* Whether it ended in an earlier call of the program. */
static void find_finished(const struct elv_sim_experiment *x, struct elv_sim_run *run)
{
    char folder[ELV_SIM_PATH_MAX];
    size_t len;
    struct elv_lab_outcome found = run->outcome;
    char *json = elv_sim_run_folder(x, run, folder) ? load(folder, "summary.json", &len) : NULL;
    if (json == NULL)
        return;
    if (is_configuration((struct elv_text){json, len}, run->outcome.configuration) &&
        elv_lab_outcome_read((struct elv_text){json, len}, &found) &&
        found.seed == run->outcome.seed && is_whole(&found, folder)) {
        run->outcome = found;
        run->finished = true;
    }
    free(json);
}

static int make_run_folder(const struct elv_sim_experiment *x, const struct elv_sim_run *run)
{
    char folder[ELV_SIM_PATH_MAX];
    if (!elv_sim_run_folder(x, run, folder))
        return elv_sim_complain(x->asked->out, "the path is too long");
    return make_folders(folder) ? EXIT_SUCCESS : elv_sim_complain(folder, strerror(errno));
}

int elv_sim_folder_open(struct elv_sim_folder *f, struct elv_sim_experiment *x)
{
    const char *dir = x->asked->out;
    f->fd = -1;
    if (dir == NULL)
        return EXIT_SUCCESS;
    if (!make_folders(dir))
        return elv_sim_complain(dir, strerror(errno));
    int status = take_lock(f, dir);
    if (status == EXIT_SUCCESS)
        status = check_old(x);
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < x->n_runs; i++) {
        find_finished(x, &x->runs[i]);
        status = make_run_folder(x, &x->runs[i]);
    }
    return status == EXIT_SUCCESS ? elv_sim_write_manifest(x) : status;
}

int elv_sim_folder_finish(const struct elv_sim_folder *f, const struct elv_sim_experiment *x)
{
    int status = EXIT_SUCCESS;
    if (f->fd < 0)
        return EXIT_SUCCESS;
    if (x->runs[0].name[0] != '\0')
        status = elv_sim_write_summary(x);
    return status == EXIT_SUCCESS ? elv_sim_write_report(x) : status;
}

int elv_sim_folder_host(const struct elv_sim_folder *f, const struct elv_sim_experiment *x,
                        uint32_t threads, double wall_s)
{
    return f->fd < 0 ? EXIT_SUCCESS : elv_sim_write_host(x, threads, wall_s);
}

void elv_sim_folder_close(struct elv_sim_folder *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
