/* SPDX-License-Identifier: Apache-2.0 */
/* server/elver_key.c - program: who may connect. Makes, lists, rotates and revokes device keys.
 *
 * The server's key table is changed under a lock and replaced whole; a running server takes the new
 * one within seconds. What a device needs is one credential file, readable by its owner only. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/msg.h"
#include "elver/version.h"
#include "ports/mbedtls/certify.h"
#include "ports/posix/credential.h"
#include "ports/posix/file.h"
#include "ports/posix/keys.h"
#include "ports/posix/random.h"

enum { EXIT_USAGE = 2, KEY_LEN = 32, NAMES_MAX = 1000000, CSV_MAX = 64 << 20, PEM_MAX = 65536 };
enum { DEVICE_DAYS = 3650, AUTHORITY_DAYS = 7300 };

static const char usage_text[] =
    "elver-key COMMAND --keys TABLE [OPTION]...\n"
    "\n"
    "  make     --out DIR NAME...                  new devices: a key each\n"
    "           --out DIR --prefix P --count N     the same, named P1 to PN\n"
    "           --out DIR --csv FILE               the same, names from the first column\n"
    "           ... --ca DIR                       with certificates instead of keys\n"
    "  list     [NAME]...                          who is in the table\n"
    "  rotate   --out DIR NAME...                  another key; the old one ends when the new is "
    "used\n"
    "  revoke   NAME...                            out, within seconds, for ever\n"
    "  ca       --out DIR --server-name NAME       an authority and the server's certificate\n"
    "\n"
    "  -k, --keys FILE     the server's key table; made when missing\n"
    "  -o, --out DIR       where NAME.cred and certificates go; made when missing\n"
    "  -h, --help          this text; -V, --version: the version\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 usage.\n";

struct options {
    const char *keys, *out, *prefix, *csv, *ca, *server_name;
    unsigned long count;
    char **names;
    uint32_t n_names;
    uint8_t *csv_text; /* owned; names point into it */
};

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "elver-key: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

static int misuse(const char *why)
{
    fprintf(stderr, "elver-key: %s\nTry 'elver-key --help'.\n", why);
    return EXIT_USAGE;
}

static int table_failed(const struct options *o, enum elv_err err, const struct elv_key_error *e)
{
    if (e->why[0] == 0)
        return complain(o->keys, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
    if (e->line == 0)
        return complain(o->keys, e->why);
    fprintf(stderr, "elver-key: %s:%" PRIu32 ": %s\n", o->keys, e->line, e->why);
    return EXIT_FAILURE;
}

static int make_folder(const char *path)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return EXIT_SUCCESS;
    return complain(path, strerror(errno));
}

/* Names. */

static bool name_ok(const char *name)
{
    return elv_name_ok((struct elv_text){name, strlen(name)}, ELV_NAME_MAX);
}

static int names_from_count(struct options *o)
{
    if (o->count == 0 || o->count > NAMES_MAX)
        return misuse("--count takes 1 to 1000000");
    const size_t room = strlen(o->prefix) + 12;
    o->names = calloc(o->count, sizeof *o->names);
    o->csv_text = calloc(o->count, room);
    if (o->names == NULL || o->csv_text == NULL)
        return complain("names", "out of memory");
    for (unsigned long i = 0; i < o->count; i++) {
        o->names[i] = (char *)o->csv_text + i * room;
        snprintf(o->names[i], room, "%s%lu", o->prefix, i + 1);
    }
    o->n_names = (uint32_t)o->count;
    return EXIT_SUCCESS;
}

/* The first column of each line; a first line `name` or `identity` is a heading. */
static int names_from_csv(struct options *o)
{
    size_t len;
    const enum elv_err err = elv_posix_load(o->csv, CSV_MAX, &o->csv_text, &len);
    if (err != ELV_OK)
        return complain(o->csv, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
    o->names = calloc(NAMES_MAX, sizeof *o->names);
    if (o->names == NULL)
        return complain("names", "out of memory");
    uint32_t line = 0;
    char *end = (char *)o->csv_text + len;
    for (char *at = (char *)o->csv_text; at < end;) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *next = newline != NULL ? newline + 1 : end;
        if (newline != NULL)
            *newline = 0;
        at[strcspn(at, ",;\r")] = 0;
        line++;
        if (line == 1 && (strcmp(at, "name") == 0 || strcmp(at, "identity") == 0))
            at[0] = 0;
        if (at[0] != 0 && !name_ok(at)) {
            fprintf(stderr,
                    "elver-key: %s:%" PRIu32 ": '%s' is no identity; give 1 to %u of "
                    "A-Z a-z 0-9 . _ : -\n",
                    o->csv, line, at, ELV_NAME_MAX);
            return EXIT_FAILURE;
        }
        if (at[0] != 0 && o->n_names == NAMES_MAX)
            return complain(o->csv, "more than 1000000 names; split the file");
        if (at[0] != 0)
            o->names[o->n_names++] = at;
        at = next;
    }
    return EXIT_SUCCESS;
}

static int check_names(const struct options *o)
{
    if (o->n_names == 0)
        return misuse(
            "no device is named; give names, or to make many --prefix P --count N or --csv FILE");
    for (uint32_t i = 0; i < o->n_names; i++)
        if (!name_ok(o->names[i]))
            return complain(o->names[i], "no identity; give 1 to 64 of A-Z a-z 0-9 . _ : -");
    return EXIT_SUCCESS;
}

/* Credentials. They are written before the table names them: a device may have a key that is not
 * let in yet, never the other way round. */

static int save_credential(const struct options *o, const struct elv_key *key,
                           const struct elv_credential *base)
{
    struct elv_credential c = *base;
    char path[ELV_CREDENTIAL_PATH_MAX];
    if (key->generation > 1)
        snprintf(c.identity, sizeof c.identity, "%s#%" PRIu32, key->name, key->generation);
    else
        snprintf(c.identity, sizeof c.identity, "%s", key->name);
    c.key_len = key->key_len;
    memcpy(c.key, key->key, key->key_len);
    const int len = snprintf(path, sizeof path, "%s/%s.cred", o->out, key->name);
    enum elv_err err = ELV_ERR_ARG;
    if (len > 0 && (size_t)len < sizeof path)
        err = elv_credential_save(path, &c);
    elv_posix_wipe(&c, sizeof c);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    return complain(path, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
}

static struct elv_text text_of(const char *zero_terminated)
{
    return (struct elv_text){zero_terminated, strlen(zero_terminated)};
}

static struct elv_bytes bytes_of(const char *zero_terminated)
{
    return (struct elv_bytes){(const uint8_t *)zero_terminated, strlen(zero_terminated)};
}

/* `leaf` (may be NULL) becomes the name without the folder: what a credential says of files that
 * lie beside it. */
static int write_pem(const char *dir, const char *name, const char *suffix, const char *text,
                     char leaf[ELV_CREDENTIAL_PATH_MAX])
{
    char path[ELV_CREDENTIAL_PATH_MAX];
    const int len = snprintf(path, sizeof path, "%s/%s%s", dir, name, suffix);
    if (len < 0 || (size_t)len >= sizeof path)
        return complain(dir, "the path is too long");
    if (leaf != NULL)
        snprintf(leaf, ELV_CREDENTIAL_PATH_MAX, "%s%s", name, suffix);
    if (elv_posix_save(path, bytes_of(text)) == ELV_OK)
        return EXIT_SUCCESS;
    return complain(path, strerror(errno));
}

struct authority {
    char *cert, *key; /* PEM, zero-terminated, owned */
};

static int load_authority(const char *dir, struct authority *ca)
{
    char path[ELV_CREDENTIAL_PATH_MAX];
    size_t len;
    snprintf(path, sizeof path, "%s/ca.pem", dir);
    enum elv_err err = elv_posix_load(path, PEM_MAX, (uint8_t **)&ca->cert, &len);
    if (err == ELV_OK) {
        snprintf(path, sizeof path, "%s/ca.key", dir);
        err = elv_posix_load_private(path, PEM_MAX, (uint8_t **)&ca->key, &len);
    }
    return err == ELV_OK ? EXIT_SUCCESS : complain(path, elv_err_text(err));
}

static int issue(const struct options *o, const struct authority *ca, const char *name, bool server,
                 struct elv_credential *c)
{
    static struct elv_pem cert, key;
    const struct elv_certified authority = {bytes_of(ca->cert), bytes_of(ca->key)};
    const struct elv_certify_order order = {
        .name = text_of(name), .server = server, .days = DEVICE_DAYS};
    const enum elv_err err = elv_certify_issue(&authority, &order, &cert, &key);
    if (err != ELV_OK)
        return complain(name, elv_err_text(err));
    int status = write_pem(o->out, name, ".pem", cert.text, c->certificate);
    if (status == EXIT_SUCCESS)
        status = write_pem(o->out, name, ".key", key.text, c->private_key);
    if (status == EXIT_SUCCESS)
        status = write_pem(o->out, "ca", ".pem", ca->cert, c->ca);
    elv_posix_wipe(&key, sizeof key);
    return status;
}

/* Commands. */

/* The next free numbers for `add`, counted under the table's lock. */
struct numbering {
    struct elv_key *add;
    uint32_t n_add;
    uint32_t highest;
};

static void number_keys(void *ctx)
{
    struct numbering *n = ctx;
    for (uint32_t i = 0; i < n->n_add; i++)
        n->add[i].number = n->highest + 1 + i;
}

static enum elv_key_edit see_number(void *ctx, struct elv_key *key)
{
    struct numbering *n = ctx;
    if (key->number > n->highest)
        n->highest = key->number;
    return ELV_KEY_KEEP;
}

static int make_one(const struct options *o, const struct authority *ca, const char *name,
                    struct elv_key *key)
{
    static const struct elv_credential none;
    struct elv_credential c = none;
    snprintf(key->name, sizeof key->name, "%s", name);
    key->generation = 1;
    if (ca->cert != NULL) {
        const int status = issue(o, ca, name, false, &c);
        if (status != EXIT_SUCCESS)
            return status;
    } else {
        key->key_len = KEY_LEN;
        if (elv_posix_random().fill(NULL, key->key, KEY_LEN) != ELV_OK)
            return complain(name, "the system gives no random bytes");
    }
    return save_credential(o, key, &c);
}

/* Refuses names that are taken before any file is written. */
static int check_free(const struct options *o)
{
    struct elv_keys table;
    struct elv_key_error e = {0};
    const enum elv_err err = elv_keys_open(&table, o->keys, &e);
    if (err == ELV_ERR_MISSING)
        return EXIT_SUCCESS;
    if (err != ELV_OK)
        return table_failed(o, err, &e);
    int status = EXIT_SUCCESS;
    for (uint32_t k = 0; status == EXIT_SUCCESS && k < o->n_names; k++)
        for (uint32_t i = 0; status == EXIT_SUCCESS && i < table.table.n; i++)
            if (strcmp(table.table.at[i].name, o->names[k]) == 0)
                status = complain(o->names[k], "is in the table already; see 'rotate'");
    elv_keys_free(&table);
    return status;
}

static int make_keys(const struct options *o)
{
    if (o->out == NULL)
        return misuse("'make' needs --out DIR");
    int status = check_free(o);
    if (status == EXIT_SUCCESS)
        status = make_folder(o->out);
    if (status != EXIT_SUCCESS)
        return status;
    struct authority ca = {0};
    struct elv_key *add = calloc(o->n_names, sizeof *add);
    if (add == NULL)
        return complain("keys", "out of memory");
    if (o->ca != NULL)
        status = load_authority(o->ca, &ca);
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < o->n_names; i++)
        status = make_one(o, &ca, o->names[i], &add[i]);
    if (status == EXIT_SUCCESS) {
        struct elv_key_error e = {0};
        struct numbering n = {.add = add, .n_add = o->n_names};
        const struct elv_key_change change = {
            .ctx = &n, .edit = see_number, .edited = number_keys, .add = add, .n_add = o->n_names};
        const enum elv_err err = elv_keys_change(o->keys, &change, true, &e);
        status = err == ELV_OK ? EXIT_SUCCESS : table_failed(o, err, &e);
    }
    if (status == EXIT_SUCCESS)
        printf("made %" PRIu32 " devices, numbers %" PRIu32 " to %" PRIu32 ", credentials in %s\n",
               o->n_names, add[0].number, add[o->n_names - 1].number, o->out);
    elv_posix_wipe(add, o->n_names * sizeof *add);
    free(add);
    if (ca.key != NULL)
        elv_posix_wipe(ca.key, strlen(ca.key));
    free(ca.key);
    free(ca.cert);
    return status;
}

static bool named(const struct options *o, const char *name)
{
    for (uint32_t i = 0; i < o->n_names; i++)
        if (strcmp(o->names[i], name) == 0)
            return true;
    return o->n_names == 0;
}

static int list_keys(const struct options *o)
{
    struct elv_keys table;
    struct elv_key_error e = {0};
    const enum elv_err err = elv_keys_open(&table, o->keys, &e);
    if (err != ELV_OK)
        return table_failed(o, err, &e);
    printf("%-10s %-40s %-10s %-12s %s\n", "number", "name", "generation", "proof", "state");
    for (uint32_t i = 0; i < table.table.n; i++) {
        const struct elv_key *k = &table.table.at[i];
        if (named(o, k->name))
            printf("%-10" PRIu32 " %-40s %-10" PRIu32 " %-12s %s\n", k->number, k->name,
                   k->generation, k->key_len > 0 ? "key" : "certificate",
                   k->revoked ? "revoked" : "enabled");
    }
    elv_keys_free(&table);
    return EXIT_SUCCESS;
}

/* Rotation: one more generation for each device named. */
struct rotation {
    const struct options *o;
    struct elv_key *newest; /* [n_names] generation 0: not seen */
};

static enum elv_key_edit see_newest(void *ctx, struct elv_key *key)
{
    struct rotation *r = ctx;
    for (uint32_t i = 0; i < r->o->n_names; i++)
        if (strcmp(r->o->names[i], key->name) == 0 && !key->revoked &&
            key->generation > r->newest[i].generation)
            r->newest[i] = *key;
    return ELV_KEY_KEEP;
}

static int next_generation(const struct options *o, const char *name, struct elv_key *key)
{
    if (key->generation == 0)
        return complain(name, "is not in the table, or revoked");
    if (key->key_len == 0)
        return complain(name, "shows a certificate; issue another one instead");
    key->generation++;
    key->key_len = KEY_LEN;
    if (elv_posix_random().fill(NULL, key->key, KEY_LEN) != ELV_OK)
        return complain(name, "the system gives no random bytes");
    static const struct elv_credential none;
    return save_credential(o, key, &none);
}

static int rotate_keys(const struct options *o)
{
    if (o->out == NULL)
        return misuse("'rotate' needs --out DIR");
    int status = make_folder(o->out);
    struct elv_key *add = calloc(o->n_names, sizeof *add);
    struct rotation r = {.o = o, .newest = add};
    struct elv_key_error e = {0};
    if (add == NULL)
        return complain("keys", "out of memory");
    const struct elv_key_change look = {.ctx = &r, .edit = see_newest};
    enum elv_err err = elv_keys_change(o->keys, &look, true, &e);
    if (status == EXIT_SUCCESS && err != ELV_OK)
        status = table_failed(o, err, &e);
    for (uint32_t i = 0; status == EXIT_SUCCESS && i < o->n_names; i++)
        status = next_generation(o, o->names[i], &add[i]);
    if (status == EXIT_SUCCESS) {
        const struct elv_key_change change = {.add = add, .n_add = o->n_names};
        err = elv_keys_change(o->keys, &change, true, &e);
        status = err == ELV_OK ? EXIT_SUCCESS : table_failed(o, err, &e);
    }
    if (status == EXIT_SUCCESS)
        printf("rotated %" PRIu32 " devices, credentials in %s\n", o->n_names, o->out);
    elv_posix_wipe(add, o->n_names * sizeof *add);
    free(add);
    return status;
}

struct revocation {
    const struct options *o;
    bool *seen; /* [n_names] */
    uint32_t n_keys;
};

static enum elv_key_edit revoke_one(void *ctx, struct elv_key *key)
{
    struct revocation *r = ctx;
    for (uint32_t i = 0; i < r->o->n_names; i++) {
        if (strcmp(r->o->names[i], key->name) != 0)
            continue;
        r->seen[i] = true;
        if (key->revoked)
            return ELV_KEY_KEEP;
        key->revoked = true;
        r->n_keys++;
        return ELV_KEY_CHANGED;
    }
    return ELV_KEY_KEEP;
}

static int revoke_keys(const struct options *o)
{
    struct revocation r = {.o = o, .seen = calloc(o->n_names, sizeof *r.seen)};
    struct elv_key_error e = {0};
    if (r.seen == NULL)
        return complain("keys", "out of memory");
    const struct elv_key_change change = {.ctx = &r, .edit = revoke_one};
    const enum elv_err err = elv_keys_change(o->keys, &change, true, &e);
    int status = err == ELV_OK ? EXIT_SUCCESS : table_failed(o, err, &e);
    for (uint32_t i = 0; err == ELV_OK && i < o->n_names; i++)
        if (!r.seen[i])
            status = complain(o->names[i], "is not in the table");
    if (err == ELV_OK)
        printf("revoked %" PRIu32 " keys\n", r.n_keys);
    free(r.seen);
    return status;
}

static int make_authority(const struct options *o)
{
    static struct elv_pem cert, key;
    char path[ELV_CREDENTIAL_PATH_MAX];
    if (o->out == NULL || o->server_name == NULL)
        return misuse("'ca' needs --out DIR and --server-name NAME");
    int status = make_folder(o->out);
    snprintf(path, sizeof path, "%s/ca.key", o->out);
    struct stat st;
    if (status == EXIT_SUCCESS && stat(path, &st) == 0)
        return complain(path, "exists; an authority is not replaced");
    if (status != EXIT_SUCCESS)
        return status;
    const enum elv_err err =
        elv_certify_authority(text_of("elver-authority"), AUTHORITY_DAYS, &cert, &key);
    if (err != ELV_OK)
        return complain("authority", elv_err_text(err));
    const struct authority ca = {cert.text, key.text};
    struct elv_credential unused = {0};
    status = write_pem(o->out, "ca", ".key", key.text, NULL);
    if (status == EXIT_SUCCESS)
        status = write_pem(o->out, "ca", ".pem", cert.text, NULL);
    if (status == EXIT_SUCCESS)
        status = issue(o, &ca, o->server_name, true, &unused);
    elv_posix_wipe(&key, sizeof key);
    if (status == EXIT_SUCCESS)
        printf("made an authority and a certificate for %s in %s\n", o->server_name, o->out);
    return status;
}

/* The command line. */

static const struct option flags[] = {
    {"keys", required_argument, NULL, 'k'},        {"out", required_argument, NULL, 'o'},
    {"prefix", required_argument, NULL, 'p'},      {"count", required_argument, NULL, 'n'},
    {"csv", required_argument, NULL, 'c'},         {"ca", required_argument, NULL, 'a'},
    {"server-name", required_argument, NULL, 's'}, {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},           {NULL, 0, NULL, 0}};

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, struct options *o)
{
    int c;
    char *end;
    while ((c = getopt_long(argc, argv, "k:o:hV", flags, NULL)) != -1) {
        switch (c) {
        case 'k':
            o->keys = optarg;
            break;
        case 'o':
            o->out = optarg;
            break;
        case 'p':
            o->prefix = optarg;
            break;
        case 'c':
            o->csv = optarg;
            break;
        case 'a':
            o->ca = optarg;
            break;
        case 's':
            o->server_name = optarg;
            break;
        case 'n':
            o->count = strtoul(optarg, &end, 10);
            if (*optarg < '0' || *optarg > '9' || *end != 0)
                return misuse("--count takes a number");
            break;
        case 'h':
            fputs(usage_text, stdout);
            return EXIT_SUCCESS;
        case 'V':
            puts("elver-key " ELV_VERSION);
            return EXIT_SUCCESS;
        default:
            fputs("Try 'elver-key --help'.\n", stderr);
            return EXIT_USAGE;
        }
    }
    return -1;
}

static const struct command {
    const char *name;
    int (*run)(const struct options *o);
    bool names, table;
} commands[] = {
    {"make", make_keys, true, true},      {"list", list_keys, false, true},
    {"rotate", rotate_keys, true, true},  {"revoke", revoke_keys, true, true},
    {"ca", make_authority, false, false},
};

static int run(const struct command *command, struct options *o)
{
    if (command->table && o->keys == NULL)
        return misuse("the key table is missing: --keys FILE");
    int status = EXIT_SUCCESS;
    if (command->run == make_keys && o->n_names == 0 && o->prefix != NULL)
        status = names_from_count(o);
    else if (command->run == make_keys && o->n_names == 0 && o->csv != NULL)
        status = names_from_csv(o);
    if (status == EXIT_SUCCESS && command->names)
        status = check_names(o);
    return status == EXIT_SUCCESS ? command->run(o) : status;
}

int main(int argc, char **argv)
{
    struct options o = {0};
    if (elv_posix_keep_streams() != ELV_OK)
        return EXIT_FAILURE;
    const int early = parse(argc, argv, &o);
    if (early >= 0)
        return early;
    if (optind == argc)
        return misuse("a command is missing: make, list, rotate, revoke or ca");
    const char *name = argv[optind++];
    char **given = o.names = argv + optind;
    o.n_names = (uint32_t)(argc - optind);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, name) != 0)
            continue;
        const int status = run(&commands[i], &o);
        if (o.names != given)
            free(o.names);
        free(o.csv_text);
        return status;
    }
    return misuse("no such command; there are make, list, rotate, revoke and ca");
}
