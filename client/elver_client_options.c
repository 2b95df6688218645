/* SPDX-License-Identifier: Apache-2.0 */
#include "client/elver_client_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/msg.h"
#include "elver/version.h"

#define MEMORY_MIB 1024u

static const char usage_text[] =
    "elver-client --server coaps://HOST[:PORT] --job NAME --credential FILE [OPTION]...\n"
    "\n"
    "  -s, --server URI        where the server is\n"
    "  -j, --job NAME          which job\n"
    "  -c, --credential FILE   who this device is, as elver-key wrote it\n"
    "  -d, --data SPEC         its examples: \"idx DIR\", \"npy X.npy Y.npy\" or \"csv FILE\"\n"
    "      --server-name NAME  what the server's certificate must say, if not HOST; needed\n"
    "                          where HOST is an address\n"
    "      --index I --of N    for experiments: of a data set that N clients split as the job\n"
    "                          says, take part I, from 0\n"
    "      --state DIR         keep there what a restart must not lose: the model, a download,\n"
    "                          a finished update; for one process at a time\n"
    "      --duty PERCENT      train that share of the time, 1 to 100\n"
    "      --memory MIB        the most to use for training (1024)\n"
    "      --observe           have changes told by the server instead of asking; not behind NAT\n"
    "      --leave             tell the server on a signal to stop that this device leaves\n"
    "      --once              end after one accepted update\n"
    "      --trainer CMD       reserved\n"
    "      --log-level LEVEL   error, warn, info or debug (info)\n"
    "      --insecure          coap:// is allowed: everything in the clear\n"
    "  -h, --help              this text; -V, --version: the version\n"
    "\n"
    "A csv file has one example per line, its label (0, 1, 2, ...) last.\n"
    "\n"
    "Exit codes: 0 the job is over (or stopped), 1 failed, 2 usage, 3 refused for good: unknown\n"
    "identity, wrong key, or a model that does not fit. A server that does not answer is asked\n"
    "again for ever, and so is one that refuses a device it has let in before.\n";

int elv_client_complain(const char *what, const char *why)
{
    fprintf(stderr, "elver-client: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

int elv_client_misuse(const char *why)
{
    fprintf(stderr, "elver-client: %s\nTry 'elver-client --help'.\n", why);
    return ELV_CLIENT_USAGE;
}

enum {
    FLAG_NAME = 256,
    FLAG_INDEX,
    FLAG_OF,
    FLAG_STATE,
    FLAG_DUTY,
    FLAG_MEMORY,
    FLAG_OBSERVE,
    FLAG_LEAVE,
    FLAG_ONCE,
    FLAG_TRAINER,
    FLAG_LEVEL,
    FLAG_INSECURE
};

static const struct option flags[] = {{"server", required_argument, NULL, 's'},
                                      {"job", required_argument, NULL, 'j'},
                                      {"credential", required_argument, NULL, 'c'},
                                      {"data", required_argument, NULL, 'd'},
                                      {"server-name", required_argument, NULL, FLAG_NAME},
                                      {"index", required_argument, NULL, FLAG_INDEX},
                                      {"of", required_argument, NULL, FLAG_OF},
                                      {"state", required_argument, NULL, FLAG_STATE},
                                      {"duty", required_argument, NULL, FLAG_DUTY},
                                      {"memory", required_argument, NULL, FLAG_MEMORY},
                                      {"observe", no_argument, NULL, FLAG_OBSERVE},
                                      {"leave", no_argument, NULL, FLAG_LEAVE},
                                      {"once", no_argument, NULL, FLAG_ONCE},
                                      {"trainer", required_argument, NULL, FLAG_TRAINER},
                                      {"log-level", required_argument, NULL, FLAG_LEVEL},
                                      {"insecure", no_argument, NULL, FLAG_INSECURE},
                                      {"help", no_argument, NULL, 'h'},
                                      {"version", no_argument, NULL, 'V'},
                                      {NULL, 0, NULL, 0}};

static bool number(const char *text, unsigned long min, unsigned long max, uint32_t *v)
{
    char *end;
    errno = 0;
    const unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0 || errno != 0 || n < min || n > max)
        return false;
    *v = (uint32_t)n;
    return true;
}

static int take_number(int flag, const char *value, struct elv_client_options *o)
{
    switch (flag) {
    case FLAG_INDEX:
        return number(value, 0, UINT32_MAX - 1, &o->index)
                   ? -1
                   : elv_client_misuse("--index takes a number");
    case FLAG_OF:
        return number(value, 1, UINT32_MAX, &o->of) ? -1 : elv_client_misuse("--of takes a number");
    case FLAG_DUTY:
        return number(value, 1, 100, &o->duty) ? -1 : elv_client_misuse("--duty takes 1 to 100");
    default:
        return number(value, 1, 1 << 20, &o->memory_mib)
                   ? -1
                   : elv_client_misuse("--memory takes a number of MiB");
    }
}

/* -1: go on; else the exit code. */
static int take_flag(int flag, const char *value, struct elv_client_options *o)
{
    switch (flag) {
    case 's':
        o->server = value;
        return -1;
    case 'j':
        o->job = value;
        return -1;
    case 'c':
        o->credential_path = value;
        return -1;
    case 'd':
        o->data = value;
        return -1;
    case FLAG_NAME:
        o->server_name = value;
        return -1;
    case FLAG_STATE:
        o->state_path = value;
        return -1;
    case FLAG_LEVEL:
        o->level = value;
        return -1;
    case FLAG_OBSERVE:
        o->observe = true;
        return -1;
    case FLAG_LEAVE:
        o->leave = true;
        return -1;
    case FLAG_ONCE:
        o->once = true;
        return -1;
    case FLAG_INSECURE:
        o->insecure = true;
        return -1;
    case FLAG_TRAINER:
        return elv_client_misuse("--trainer is reserved and does nothing yet");
    case 'h':
        fputs(usage_text, stdout);
        return EXIT_SUCCESS;
    case 'V':
        puts("elver-client " ELV_VERSION);
        return EXIT_SUCCESS;
    case '?':
        fputs("Try 'elver-client --help'.\n", stderr);
        return ELV_CLIENT_USAGE;
    default:
        return take_number(flag, value, o);
    }
}

/* -1: fine; else the exit code. */
static int check_flags(const struct elv_client_options *o)
{
    if (o->server == NULL)
        return elv_client_misuse("the server is missing: --server coaps://HOST");
    if (o->job == NULL || !elv_name_ok((struct elv_text){o->job, strlen(o->job)}, ELV_JOB_NAME_MAX))
        return elv_client_misuse("the job is missing or no name: --job NAME");
    if (o->credential_path == NULL)
        return elv_client_misuse("the credential is missing: --credential FILE");
    if (o->data == NULL)
        return elv_client_misuse("the examples are missing: --data \"idx DIR\"");
    if (o->of > 0 && o->index >= o->of)
        return elv_client_misuse("--index counts from 0 to one less than --of");
    if (o->of == 0 && o->index > 0)
        return elv_client_misuse("--index needs --of");
    return -1;
}

int elv_client_options_take(int argc, char **argv, struct elv_client_options *o)
{
    int c, status = -1;
    *o = (struct elv_client_options){.memory_mib = MEMORY_MIB};
    while (status < 0 && (c = getopt_long(argc, argv, "s:j:c:d:hV", flags, NULL)) != -1)
        status = take_flag(c, optarg, o);
    if (status >= 0)
        return status;
    if (optind < argc)
        return elv_client_misuse("it takes no arguments besides its flags");
    return check_flags(o);
}
