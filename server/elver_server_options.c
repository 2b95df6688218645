/* SPDX-License-Identifier: Apache-2.0 */
#include "server/elver_server_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elver/version.h"
#include "ports/inih/ini.h"
#include "server/policies.h"
#include "server/server.h"

static const char usage_text[] =
    "elver-server --config SERVER.ini --job JOB.ini [OPTION]...\n"
    "\n"
    "  -c, --config FILE        how this server runs: addresses, folders, limits\n"
    "  -j, --job FILE           what is trained\n"
    "  -s, --set SECTION.KEY=V  overrides a key of either file; may be repeated\n"
    "      --listen ADDRESSES   the same as --set server.listen=ADDRESSES; so are\n"
    "      --state DIR          --set server.state=DIR\n"
    "      --keys FILE          --set server.keys=FILE\n"
    "      --stats FILE         --set server.stats=FILE: one JSON object, replaced each round\n"
    "      --linger DURATION    --set server.linger=DURATION\n"
    "      --threads N          --set server.threads=N\n"
    "      --log-level LEVEL    --set log.level=LEVEL\n"
    "      --new-run            sets an earlier run's state aside and starts from version 0\n"
    "      --check-config       checks both files, not those they name, and ends\n"
    "      --print-config       prints each value and where it comes from, and ends; files may be\n"
    "                           missing: defaults\n"
    "      --insecure           allows --listen coap://HOST:PORT: in the clear, believing what\n"
    "                           clients say they are\n"
    "  -h, --help               this text; -V, --version: the version\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 the target accuracy was missed.\n"
    "The variable ELV_KERNELS names a kernel table (ref, x86-64-v2, ...) instead of the best "
    "one.\n";

int elv_server_complain(const char *what, const char *why)
{
    fprintf(stderr, "elver-server: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

int elv_server_misuse(const char *why)
{
    fprintf(stderr, "elver-server: %s\nTry 'elver-server --help'.\n", why);
    return ELV_SERVER_USAGE;
}

static enum elv_err take_setting(void *ctx, const char *section, const char *key, const char *value,
                                 uint32_t line, char *why)
{
    struct elv_server_options *o = ctx;
    return elv_settings_set(&o->settings, section, key, value, line, why);
}

static enum elv_err take_job(void *ctx, const char *section, const char *key, const char *value,
                             uint32_t line, char *why)
{
    return elv_job_set(ctx, section, key, value, line, why);
}

static int read_ini(const char *path, elv_ini_each *take, void *ctx)
{
    char message[ELV_INI_MESSAGE_MAX];
    if (elv_ini_load(path, ctx, take, message) == ELV_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "elver-server: %s\n", message);
    return ELV_SERVER_USAGE;
}

/* SECTION.KEY=VALUE, for whichever file has such a section. */
static int apply_set(struct elv_server_options *o, const char *text)
{
    char section[64], key[64], why[ELV_JOB_ERROR_MAX];
    const char *dot = strchr(text, '.'), *equals = strchr(text, '=');
    if (dot == NULL || equals == NULL || equals < dot || (size_t)(dot - text) >= sizeof section ||
        (size_t)(equals - dot) > sizeof key)
        return elv_server_misuse("--set takes SECTION.KEY=VALUE");
    snprintf(section, sizeof section, "%.*s", (int)(dot - text), text);
    snprintf(key, sizeof key, "%.*s", (int)(equals - dot - 1), dot + 1);
    const bool ours = strcmp(section, "server") == 0 || strcmp(section, "limits") == 0 ||
                      strcmp(section, "log") == 0;
    const enum elv_err err =
        ours ? elv_settings_set(&o->settings, section, key, equals + 1, ELV_SETTING_FLAG, why)
             : elv_job_set(&o->job, section, key, equals + 1, ELV_JOB_OVERRIDE, why);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    fprintf(stderr, "elver-server: --set %s: %s\n", text, why);
    return ELV_SERVER_USAGE;
}

static int judge(const char *path, uint32_t line, const char *why)
{
    if (line != 0 && line != ELV_SETTING_FLAG)
        fprintf(stderr, "elver-server: %s:%" PRIu32 ": %s\n", path, line, why);
    else
        elv_server_complain(path, why);
    return ELV_SERVER_USAGE;
}

static int read_all(struct elv_server_options *o)
{
    int status = EXIT_SUCCESS;
    elv_settings_init(&o->settings);
    elv_job_init(&o->job);
    if (o->config_path != NULL)
        status = read_ini(o->config_path, take_setting, o);
    if (status == EXIT_SUCCESS && o->job_path != NULL)
        status = read_ini(o->job_path, take_job, &o->job);
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < o->n_sets; i++)
        status = apply_set(o, o->sets[i]);
    return status;
}

/* What is missing, and what does not go together. */
static int check_all(struct elv_server_options *o)
{
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    int status = EXIT_SUCCESS;
    const char *config = o->config_path != NULL ? o->config_path : "configuration";
    if (status == EXIT_SUCCESS && elv_settings_check(&o->settings, why, &line) != ELV_OK)
        status = judge(config, line, why);
    if (status == EXIT_SUCCESS && elv_job_check(&o->job, why, &line) != ELV_OK)
        status = judge(o->job_path, line, why);
    struct elv_policies policies;
    if (status == EXIT_SUCCESS && elv_policies_of(&o->job, &policies, why, &line) != ELV_OK)
        status = judge(o->job_path, line, why);
    const uint32_t n = o->settings.clients > 0 ? o->settings.clients : ELV_CLIENTS_USUAL;
    if (status == EXIT_SUCCESS && elv_policies_fit(&o->job, &policies, n, why, &line) != ELV_OK)
        status = judge(o->job_path, line, why);
    return status;
}

static void print_value(const char *path, const char *section, const char *key, const char *value,
                        uint32_t line, bool flag)
{
    if (flag)
        printf("%s.%s = %s    ; flag\n", section, key, value);
    else if (line == 0)
        printf("%s.%s = %s    ; default\n", section, key, value);
    else
        printf("%s.%s = %s    ; %s:%" PRIu32 "\n", section, key, value, path, line);
}

static void print_config(const struct elv_server_options *o)
{
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX];
    uint32_t line;
    for (size_t i = 0; elv_settings_key(&o->settings, i, &section, &key, value, &line); i++)
        print_value(o->config_path, section, key, value, line, line == ELV_SETTING_FLAG);
    for (size_t i = 0; elv_job_key(&o->job, i, &section, &key, value, &line); i++)
        print_value(o->job_path, section, key, value, line, line == ELV_JOB_OVERRIDE);
}

enum { SET_FLAGS = 7 };
static const char *const set_flags[SET_FLAGS][2] = {
    {"listen", "server.listen"}, {"state", "server.state"},   {"keys", "server.keys"},
    {"stats", "server.stats"},   {"linger", "server.linger"}, {"threads", "server.threads"},
    {"log-level", "log.level"}};

enum { FLAG_SET = 256, FLAG_NEW = FLAG_SET + SET_FLAGS, FLAG_CHECK, FLAG_PRINT, FLAG_INSECURE };

static const struct option flags[] = {{"config", required_argument, NULL, 'c'},
                                      {"job", required_argument, NULL, 'j'},
                                      {"set", required_argument, NULL, 's'},
                                      {"listen", required_argument, NULL, FLAG_SET},
                                      {"state", required_argument, NULL, FLAG_SET + 1},
                                      {"keys", required_argument, NULL, FLAG_SET + 2},
                                      {"stats", required_argument, NULL, FLAG_SET + 3},
                                      {"linger", required_argument, NULL, FLAG_SET + 4},
                                      {"threads", required_argument, NULL, FLAG_SET + 5},
                                      {"log-level", required_argument, NULL, FLAG_SET + 6},
                                      {"new-run", no_argument, NULL, FLAG_NEW},
                                      {"check-config", no_argument, NULL, FLAG_CHECK},
                                      {"print-config", no_argument, NULL, FLAG_PRINT},
                                      {"insecure", no_argument, NULL, FLAG_INSECURE},
                                      {"help", no_argument, NULL, 'h'},
                                      {"version", no_argument, NULL, 'V'},
                                      {NULL, 0, NULL, 0}};

static int add_set(struct elv_server_options *o, const char *text)
{
    if (o->n_sets == ELV_SERVER_SETS_MAX)
        return elv_server_misuse("too many --set");
    o->sets[o->n_sets++] = text;
    return -1;
}

/* A flag that stands for --set; the text lives as long as the program. */
static int add_flag(struct elv_server_options *o, int flag, const char *value)
{
    const size_t len = strlen(value) + 32;
    char *text = malloc(len);
    if (text == NULL)
        return elv_server_complain("flags", "out of memory");
    snprintf(text, len, "%s=%s", set_flags[flag - FLAG_SET][1], value);
    return add_set(o, text);
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, struct elv_server_options *o)
{
    int c, early = -1;
    while (early < 0 && (c = getopt_long(argc, argv, "c:j:s:hV", flags, NULL)) != -1) {
        if (c >= FLAG_SET && c < FLAG_SET + SET_FLAGS) {
            early = add_flag(o, c, optarg);
            continue;
        }
        switch (c) {
        case 'c':
            o->config_path = optarg;
            break;
        case 'j':
            o->job_path = optarg;
            break;
        case 's':
            early = add_set(o, optarg);
            break;
        case FLAG_NEW:
            o->new_run = true;
            break;
        case FLAG_CHECK:
            o->check = true;
            break;
        case FLAG_PRINT:
            o->print = true;
            break;
        case FLAG_INSECURE:
            o->insecure = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return EXIT_SUCCESS;
        case 'V':
            puts("elver-server " ELV_VERSION);
            return EXIT_SUCCESS;
        default:
            fputs("Try 'elver-server --help'.\n", stderr);
            return ELV_SERVER_USAGE;
        }
    }
    if (early < 0 && optind < argc)
        return elv_server_misuse("it takes no arguments besides its flags");
    if (early < 0 && o->job_path == NULL && !o->print)
        return elv_server_misuse("a job is missing: --job FILE");
    return early;
}

int elv_server_read_job(const char *path, struct elv_job *job)
{
    return read_ini(path, take_job, job);
}

int elv_server_options_take(int argc, char **argv, struct elv_server_options *o)
{
    int status = parse(argc, argv, o);
    if (status >= 0)
        return status;
    status = read_all(o);
    if (status != EXIT_SUCCESS)
        return status;
    if (o->job_path != NULL)
        status = check_all(o); /* first: it fills in defaults that depend on other keys */
    if (o->print)
        print_config(o);
    if (status != EXIT_SUCCESS || o->print)
        return status;
    if (!o->check)
        return -1;
    if (o->config_path != NULL)
        printf("%s: ok\n", o->config_path);
    printf("%s: ok\n", o->job_path);
    return EXIT_SUCCESS;
}
