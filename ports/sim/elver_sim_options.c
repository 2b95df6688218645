/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/elver_sim_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "elver/version.h"
#include "ports/inih/ini.h"

static const char usage_text[] =
    "elver-sim --job JOB.ini --world WORLD.ini --clients N [OPTION]...\n"
    "\n"
    "  -j, --job FILE           what is trained, as elver-server takes it\n"
    "  -w, --world FILE         devices, links, who is there when; see examples/world.ini\n"
    "  -n, --clients N          the same as --set world.clients=N; so are\n"
    "      --seed N             --set job.seed=N\n"
    "      --detail DETAIL      --set world.detail=DETAIL\n"
    "  -s, --set SECTION.KEY=V  overrides a key of either file; may be repeated\n"
    "      --until END          accuracy=A or loss=L instead of the job's target, or time=T or\n"
    "                           rounds=N instead of all that ends a run; may be repeated\n"
    "      --sweep SECTION.KEY=V,V,...\n"
    "                           a run for each value; repeated: for each combination. A policy "
    "may\n"
    "                           carry its parameters: sync.policy=bsp,backup:backup=5. Parameters\n"
    "                           in the files go to the policies that know them. VALUE|VALUE for\n"
    "                           values with commas in them\n"
    "      --seeds N            as many runs of each, seeds from --seed on; or a list: 1,2,5\n"
    "      --threads N          runs at the same time (one for each processor); results do not\n"
    "                           depend on it\n"
    "  -o, --out DIR            report.html, summary.json, manifest.json and host.json go there,\n"
    "                           and rounds.csv, events.jsonl and participation.csv: of a sweep to\n"
    "                           DIR/runs. An interrupted sweep goes on when it is given again;\n"
    "                           finished runs are not repeated\n"
    "      --force              replaces what DIR holds of another configuration\n"
    "      --events LEVEL       what events.jsonl tells: none, rounds (usual) or all\n"
    "      --quiet              no progress\n"
    "      --print-config       prints each value and where it comes from, and ends; files may be\n"
    "                           missing: defaults\n"
    "  -h, --help               this text; -V, --version: the version\n"
    "\n"
    "Standard output: a line `run ...` for each run, a table, and a line `result ...` for each\n"
    "label. Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 a run missed its target or\n"
    "ended before its rounds, with no horizon to wait for, 130 or 143 interrupted.\n"
    "The variable ELV_KERNELS names a kernel table (ref, x86-64-v2, ...) instead of the best "
    "one.\n";

int elv_sim_complain(const char *what, const char *why)
{
    fprintf(stderr, "elver-sim: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

static int misuse(const char *why)
{
    fprintf(stderr, "elver-sim: %s\nTry 'elver-sim --help'.\n", why);
    return ELV_SIM_USAGE;
}

static int refuse_flag(const char *flag, const char *text, const char *why)
{
    fprintf(stderr, "elver-sim: %s %s: %s\n", flag, text, why);
    return ELV_SIM_USAGE;
}

void elv_sim_origin(const struct elv_sim_options *o, enum elv_lab_origin of, uint32_t line,
                    char out[ELV_SIM_ORIGIN_MAX])
{
    const char *path = of == ELV_LAB_OF_JOB ? o->job_path : o->world_path;
    if (line == ELV_JOB_OVERRIDE)
        snprintf(out, ELV_SIM_ORIGIN_MAX, "flag");
    else if (line == 0)
        snprintf(out, ELV_SIM_ORIGIN_MAX, "default");
    else
        snprintf(out, ELV_SIM_ORIGIN_MAX, "%s:%" PRIu32, path, line);
}

int elv_sim_judge(const struct elv_sim_options *o, const char *label,
                  const struct elv_lab_fault *fault)
{
    const char *path = fault->of == ELV_LAB_OF_JOB ? o->job_path : o->world_path;
    fprintf(stderr, "elver-sim: %s%s", label, label[0] != '\0' ? ": " : "");
    if (path == NULL)
        path = fault->of == ELV_LAB_OF_JOB ? "job" : "world";
    if (fault->line == 0)
        fprintf(stderr, "%s: ", path);
    else if (fault->line != ELV_JOB_OVERRIDE) /* a flag's fault is not the file's */
        fprintf(stderr, "%s:%" PRIu32 ": ", path, fault->line);
    fprintf(stderr, "%s\n", fault->why);
    return ELV_SIM_USAGE;
}

void elv_sim_options_print(const struct elv_sim_options *o, const struct elv_lab_setup *s)
{
    enum elv_lab_origin of;
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX], origin[ELV_SIM_ORIGIN_MAX];
    uint32_t line;
    for (size_t i = 0; elv_lab_setup_key(s, i, &of, &section, &key, value, &line); i++) {
        elv_sim_origin(o, of, line, origin);
        printf("%s.%s = %s    ; %s\n", section, key, value, origin);
    }
}

/* Files. */

static enum elv_err take_job(void *ctx, const char *section, const char *key, const char *value,
                             uint32_t line, char *why)
{
    return elv_job_set(ctx, section, key, value, line, why);
}

static enum elv_err take_world(void *ctx, const char *section, const char *key, const char *value,
                               uint32_t line, char *why)
{
    return elv_world_file_set(ctx, section, key, value, line, why);
}

static int read_ini(const char *path, elv_ini_each *take, void *ctx)
{
    char message[ELV_INI_MESSAGE_MAX];
    if (path == NULL || elv_ini_load(path, ctx, take, message) == ELV_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "elver-sim: %s\n", message);
    return ELV_SIM_USAGE;
}

static int apply_set(struct elv_sim_options *o, const char *text)
{
    char section[64], key[64], why[ELV_JOB_ERROR_MAX];
    const char *dot = strchr(text, '.'), *equals = strchr(text, '=');
    if (dot == NULL || equals == NULL || equals < dot || (size_t)(dot - text) >= sizeof section ||
        (size_t)(equals - dot) > sizeof key)
        return misuse("--set takes SECTION.KEY=VALUE");
    snprintf(section, sizeof section, "%.*s", (int)(dot - text), text);
    snprintf(key, sizeof key, "%.*s", (int)(equals - dot - 1), dot + 1);
    if (elv_lab_setup_set(&o->setup, section, key, equals + 1, ELV_JOB_OVERRIDE, why) == ELV_OK)
        return EXIT_SUCCESS;
    return refuse_flag("--set", text, why);
}

static int read_all(struct elv_sim_options *o)
{
    char why[ELV_JOB_ERROR_MAX];
    elv_lab_setup_init(&o->setup);
    int status = read_ini(o->job_path, take_job, &o->setup.job);
    if (status == EXIT_SUCCESS)
        status = read_ini(o->world_path, take_world, &o->setup.world);
    for (uint32_t i = 0; status == EXIT_SUCCESS && o->sets[i] != NULL; i++)
        status = apply_set(o, o->sets[i]);
    if (status != EXIT_SUCCESS)
        return status;
    if (elv_lab_setup_until(&o->setup, o->until, why) != ELV_OK)
        return refuse_flag("--until", o->until[1] == NULL ? o->until[0] : "", why);
    return EXIT_SUCCESS;
}

static int plan_all(struct elv_sim_options *o)
{
    char why[ELV_JOB_ERROR_MAX];
    for (uint32_t i = 0; o->sweeps[i] != NULL; i++)
        if (elv_lab_plan_sweep(&o->plan, o->sweeps[i], why) != ELV_OK)
            return refuse_flag("--sweep", o->sweeps[i], why);
    if (elv_lab_plan_seeds(&o->plan, o->seeds != NULL ? o->seeds : "1", o->setup.job.seed, why) !=
        ELV_OK)
        return refuse_flag("--seeds", o->seeds, why);
    if (elv_lab_plan_variants(&o->plan) == 0)
        return misuse("more than 10000 runs; give fewer values or seeds");
    return EXIT_SUCCESS;
}

/* The command line. */

enum { SET_FLAGS = 2 };
static const char *const set_flags[SET_FLAGS] = {"job.seed", "world.detail"};

enum {
    FLAG_SET = 256,
    FLAG_UNTIL = FLAG_SET + SET_FLAGS,
    FLAG_SWEEP,
    FLAG_SEEDS,
    FLAG_THREADS,
    FLAG_FORCE,
    FLAG_EVENTS,
    FLAG_QUIET,
    FLAG_PRINT
};

static const struct option flags[] = {{"job", required_argument, NULL, 'j'},
                                      {"world", required_argument, NULL, 'w'},
                                      {"clients", required_argument, NULL, 'n'},
                                      {"seed", required_argument, NULL, FLAG_SET},
                                      {"detail", required_argument, NULL, FLAG_SET + 1},
                                      {"set", required_argument, NULL, 's'},
                                      {"until", required_argument, NULL, FLAG_UNTIL},
                                      {"sweep", required_argument, NULL, FLAG_SWEEP},
                                      {"seeds", required_argument, NULL, FLAG_SEEDS},
                                      {"threads", required_argument, NULL, FLAG_THREADS},
                                      {"out", required_argument, NULL, 'o'},
                                      {"force", no_argument, NULL, FLAG_FORCE},
                                      {"events", required_argument, NULL, FLAG_EVENTS},
                                      {"quiet", no_argument, NULL, FLAG_QUIET},
                                      {"print-config", no_argument, NULL, FLAG_PRINT},
                                      {"help", no_argument, NULL, 'h'},
                                      {"version", no_argument, NULL, 'V'},
                                      {NULL, 0, NULL, 0}};

/* Adds to a list that ends with NULL and holds at most `max`. */
static int add(const char **list, uint32_t max, const char *text)
{
    uint32_t n = 0;
    while (list[n] != NULL)
        n++;
    if (n == max)
        return misuse("the same flag is given too often");
    list[n] = text;
    return -1;
}

/* A flag that stands for --set; the text lives as long as the program. */
static int add_set(struct elv_sim_options *o, const char *path, const char *value)
{
    const size_t len = strlen(path) + strlen(value) + 2;
    char *text = malloc(len);
    if (text == NULL)
        return elv_sim_complain("flags", "out of memory");
    snprintf(text, len, "%s=%s", path, value);
    return add(o->sets, ELV_SIM_FLAGS_MAX, text);
}

static int take_threads(struct elv_sim_options *o, const char *text)
{
    uint64_t n;
    if (!elv_text_uint(text, strlen(text), &n) || n == 0 || n > 1024)
        return refuse_flag("--threads", text, "give a whole number from 1 to 1024");
    o->threads = (uint32_t)n;
    return -1;
}

static int take_events(struct elv_sim_options *o, const char *text)
{
    static const char *const levels[] = {"none", "rounds", "all"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, levels[i]) == 0) {
            o->events = (enum elv_sim_events)i;
            return -1;
        }
    }
    return refuse_flag("--events", text, "give none, rounds or all");
}

/* -1: go on; else the exit code. */
static int take_flag(struct elv_sim_options *o, int flag)
{
    switch (flag) {
    case 'j':
        o->job_path = optarg;
        return -1;
    case 'w':
        o->world_path = optarg;
        return -1;
    case 'o':
        o->out = optarg;
        return -1;
    case 'n':
        return add_set(o, "world.clients", optarg);
    case 's':
        return add(o->sets, ELV_SIM_FLAGS_MAX, optarg);
    case FLAG_UNTIL:
        return add(o->until, ELV_SIM_FLAGS_MAX, optarg);
    case FLAG_SWEEP:
        return add(o->sweeps, ELV_LAB_SWEEPS_MAX, optarg);
    case FLAG_SEEDS:
        o->seeds = optarg;
        return -1;
    case FLAG_THREADS:
        return take_threads(o, optarg);
    case FLAG_EVENTS:
        return take_events(o, optarg);
    case FLAG_FORCE:
        o->force = true;
        return -1;
    case FLAG_QUIET:
        o->quiet = true;
        return -1;
    case FLAG_PRINT:
        o->print = true;
        return -1;
    case 'h':
        fputs(usage_text, stdout);
        return EXIT_SUCCESS;
    case 'V':
        puts("elver-sim " ELV_VERSION);
        return EXIT_SUCCESS;
    default:
        break;
    }
    if (flag >= FLAG_SET && flag < FLAG_SET + SET_FLAGS)
        return add_set(o, set_flags[flag - FLAG_SET], optarg);
    fputs("Try 'elver-sim --help'.\n", stderr);
    return ELV_SIM_USAGE;
}

static int parse(int argc, char **argv, struct elv_sim_options *o)
{
    int c, early = -1;
    while (early < 0 && (c = getopt_long(argc, argv, "j:w:n:s:o:hV", flags, NULL)) != -1)
        early = take_flag(o, c);
    if (early < 0 && optind < argc)
        return misuse("it takes no arguments besides its flags");
    if (early < 0 && o->job_path == NULL && !o->print)
        return misuse("a job is missing: --job FILE");
    if (early < 0 && o->out != NULL && o->out[0] == '\0')
        return misuse("--out takes a folder");
    return early;
}

int elv_sim_options_take(int argc, char **argv, struct elv_sim_options *o)
{
    o->events = ELV_SIM_EVENTS_ROUNDS;
    int status = parse(argc, argv, o);
    if (status >= 0)
        return status;
    status = read_all(o);
    if (status == EXIT_SUCCESS)
        status = plan_all(o);
    return status == EXIT_SUCCESS ? -1 : status;
}
