/* SPDX-License-Identifier: Apache-2.0 */
/* client/elver_client.c - program: one device that takes part in a job.
 *
 * Loads the device's examples, builds the client node with the built-in trainer and hands it to its
 * ports. Events go to standard error as logfmt. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/builtin.h"
#include "client/client.h"
#include "client/partition.h"
#include "common/arena.h"
#include "elver/version.h"
#include "ports/libcoap/client.h"
#include "ports/posix/client_state.h"
#include "ports/posix/clock.h"
#include "ports/posix/credential.h"
#include "ports/posix/dataset.h"
#include "ports/posix/file.h"
#include "ports/posix/host.h"
#include "ports/posix/log.h"
#include "ports/posix/loop.h"
#include "ports/posix/random.h"
#include "ports/posix/workers.h"
#include "ports/zlib/squeeze.h"

enum { EXIT_USAGE = 2, EXIT_REFUSED = 3 };

#define PEM_MAX 65536u
#define MEMORY_MIB 1024u
#define REFUSED_MAX 5u /* handshakes refused in a row that mean: for good */
#define WATCH_US 500000

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

/* The device's examples: loaded once, chosen and scaled when the manifest is known. */
struct examples {
    struct elv_dataset data;
    uint32_t index, of; /* of 0: all examples are ours */
    uint32_t *mine;     /* [data.n] ours, those kept for evaluation last */
    uint32_t n_train, n_test;
    struct elv_dataset_feed train_feed, test_feed;
    struct elv_feed train, test;
    const struct elv_log *log;
};

struct program {
    const char *server, *job, *credential_path, *data, *server_name, *state_path, *level;
    uint32_t duty, memory_mib;
    bool observe, leave, once, insecure;

    struct elv_log log;
    struct elv_credential credential;
    struct examples examples;
    struct elv_builtin trainer;
    struct elv_client client;
    struct elv_node node;
    struct elv_loop loop;
    struct elv_host host;
    struct elv_workers *workers;
    struct elv_coap_client *coap;
    struct elv_client_state *state; /* NULL: nothing is kept */
    struct elv_disk disk;
    struct elv_zlib *zlib;
    struct elv_squeeze squeeze;
    void *memory;
    size_t memory_len;
    uint8_t *pem[3];

    struct elv_client_stats told; /* what was logged */
    enum elv_client_phase phase;
    uint32_t assignment, round; /* that the client was at work on, or was last */
    enum elv_coap_link link;
    elv_time_us watch_at;
    bool refused;
};

static int complain(const char *what, const char *why)
{
    fprintf(stderr, "elver-client: %s: %s\n", what, why);
    return EXIT_FAILURE;
}

static int misuse(const char *why)
{
    fprintf(stderr, "elver-client: %s\nTry 'elver-client --help'.\n", why);
    return EXIT_USAGE;
}

/* Examples. */

/* Who owns which example: as a file says, or drawn from the run's seed. */
static enum elv_err find_owners(struct examples *e, const struct elv_manifest *m, uint32_t *owner,
                                char why[ELV_DATASET_WHY_MAX])
{
    const char *want = "";
    struct elv_partition_cfg cfg = {.seed = m->seed,
                                    .n_clients = e->of,
                                    .n = e->data.n,
                                    .n_classes = e->data.n_classes,
                                    .labels = e->data.labels};
    const struct elv_bytes text = {(const uint8_t *)m->partition.at, m->partition.len};
    enum elv_err err = elv_partition_parse(&cfg.how, text, &want);
    snprintf(why, ELV_DATASET_WHY_MAX, "%s", want);
    if (err != ELV_OK)
        return err;
    if (cfg.how.kind == ELV_PARTITION_FILE) {
        char path[ELV_TEXT_MAX];
        snprintf(path, sizeof path, "%.*s", (int)cfg.how.path.len, (const char *)cfg.how.path.at);
        return elv_dataset_load_owners(path, e->data.n, e->of, owner, why);
    }
    const size_t len = elv_partition_mem(&cfg);
    void *mem = aligned_alloc(ELV_ARENA_ALIGN, len + ELV_ARENA_ALIGN - len % ELV_ARENA_ALIGN);
    if (mem == NULL)
        return ELV_ERR_MEMORY;
    err = elv_partition_owners(&cfg, owner, mem, len);
    free(mem);
    snprintf(why, ELV_DATASET_WHY_MAX, "%s", elv_err_text(err));
    return err;
}

static enum elv_err split(struct examples *e, const struct elv_manifest *m,
                          char why[ELV_DATASET_WHY_MAX])
{
    uint32_t n = e->data.n;
    for (uint32_t i = 0; i < n; i++)
        e->mine[i] = i;
    if (e->of > 0) {
        uint32_t *owner = calloc(n, sizeof *owner);
        const enum elv_err err = owner == NULL ? ELV_ERR_MEMORY : find_owners(e, m, owner, why);
        if (err == ELV_OK)
            n = elv_partition_take(owner, n, e->index, e->mine);
        free(owner);
        if (err != ELV_OK)
            return err;
    }
    e->n_train = elv_partition_holdout(m->seed, e->index, m->holdout, e->mine, n);
    e->n_test = n - e->n_train;
    return ELV_OK;
}

static enum elv_err prepare(void *self, const struct elv_manifest *m)
{
    struct examples *e = self;
    char why[ELV_DATASET_WHY_MAX] = "";
    const enum elv_err err = split(e, m, why);
    struct elv_log_line l = elv_log_begin(e->log, err == ELV_OK ? ELV_LOG_INFO : ELV_LOG_ERROR,
                                          err == ELV_OK ? "examples_chosen" : "examples_refused");
    elv_log_u64(&l, "n_train", e->n_train);
    elv_log_u64(&l, "n_test", e->n_test);
    elv_log_bytes(&l, "partition", m->partition.at, m->partition.len);
    if (err != ELV_OK)
        elv_log_text(&l, "reason", why);
    elv_log_end(&l);
    if (err != ELV_OK)
        return err;
    elv_dataset_feed_init(&e->train_feed, &e->data, e->mine, e->n_train, m->scale, m->mean, m->std);
    elv_dataset_feed_init(&e->test_feed, &e->data, e->mine + e->n_train, e->n_test, m->scale,
                          m->mean, m->std);
    return ELV_OK;
}

static uint32_t train_count(void *self)
{
    const struct examples *e = self;
    return e->n_train;
}

static uint32_t test_count(void *self)
{
    const struct examples *e = self;
    return e->n_test;
}

static void shape(void *self, uint32_t *n_values, uint32_t *n_classes)
{
    const struct examples *e = self;
    *n_values = e->data.n_values;
    *n_classes = e->data.n_classes;
}

static enum elv_err train_get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    struct examples *e = self;
    return elv_dataset_feed_get(&e->train_feed, index, n, x, y);
}

static enum elv_err test_get(void *self, const uint32_t *index, uint32_t n, float *x, uint32_t *y)
{
    struct examples *e = self;
    return elv_dataset_feed_get(&e->test_feed, index, n, x, y);
}

static int load_examples(struct program *p)
{
    char why[ELV_DATASET_WHY_MAX];
    struct examples *e = &p->examples;
    const struct elv_gunzip gz = {.unpack = elv_zlib_gunzip, .release = elv_zlib_free};
    if (elv_dataset_load(&e->data, p->data, ELV_DATASET_TRAIN, &gz, why) != ELV_OK) {
        complain("--data", why);
        return EXIT_USAGE;
    }
    e->log = &p->log;
    e->mine = calloc(e->data.n, sizeof *e->mine);
    if (e->mine == NULL)
        return complain("--data", "out of memory");
    e->train = (struct elv_feed){
        .self = e, .prepare = prepare, .count = train_count, .shape = shape, .get = train_get};
    e->test = (struct elv_feed){.self = e, .count = test_count, .shape = shape, .get = test_get};
    return EXIT_SUCCESS;
}

/* What is told. */

static const char *phase_name(enum elv_client_phase phase)
{
    static const char *const names[] = {"idle",     "fetching", "loading",   "evaluating",
                                        "training", "encoding", "uploading", "committing",
                                        "leaving",  "ended"};
    return (size_t)phase < sizeof names / sizeof names[0] ? names[phase] : "unknown";
}

static const char *link_name(enum elv_coap_link link)
{
    switch (link) {
    case ELV_COAP_LINK_OPENING:
        return "opening";
    case ELV_COAP_LINK_UP:
        return "up";
    case ELV_COAP_LINK_REFUSED:
        return "refused";
    case ELV_COAP_LINK_DISTRUSTED:
        return "distrusted";
    case ELV_COAP_LINK_UNREACHABLE:
        return "unreachable";
    case ELV_COAP_LINK_SILENT:
        return "silent";
    case ELV_COAP_LINK_CLOSED:
        return "closed";
    }
    return "unknown";
}

static void log_counter(const struct program *p, const char *event, uint64_t was, uint64_t is)
{
    if (was == is)
        return;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_INFO, event);
    elv_log_u64(&l, "assignment", p->client.ticket.assignment);
    elv_log_u64(&l, "round", p->client.ticket.round);
    elv_log_u64(&l, "total", is);
    elv_log_end(&l);
}

/* Bytes since the start: of chunks, and all that went over the wire. */
static void log_accepted(const struct program *p)
{
    const struct elv_client_stats *s = &p->client.stats;
    const struct elv_coap_traffic *t = &elv_coap_client_status(p->coap)->traffic;
    if (p->told.accepted == s->accepted)
        return;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_INFO, "accepted");
    elv_log_u64(&l, "assignment", p->client.ticket.assignment);
    elv_log_u64(&l, "round", p->client.ticket.round);
    elv_log_u64(&l, "total", s->accepted);
    elv_log_u64(&l, "bytes_up", s->bytes_up);
    elv_log_u64(&l, "bytes_down", s->bytes_down);
    elv_log_u64(&l, "wire_bytes_up", t->wire_out);
    elv_log_u64(&l, "wire_bytes_down", t->wire_in);
    elv_log_end(&l);
}

/* Work was dropped, and in the same step the next may have been taken up. */
static void log_dropped(const struct program *p, const char *event, uint64_t was, uint64_t is)
{
    if (was == is)
        return;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_INFO, event);
    elv_log_u64(&l, "assignment", p->assignment);
    elv_log_u64(&l, "round", p->round);
    elv_log_u64(&l, "total", is);
    elv_log_text(&l, "phase", phase_name(p->phase));
    elv_log_end(&l);
}

/* A body has arrived, in either direction: what it took since this process began. */
static void log_transfer(const struct program *p)
{
    const struct elv_client_stats *s = &p->client.stats;
    const bool down = p->phase == ELV_CLIENT_FETCHING && p->client.phase == ELV_CLIENT_LOADING;
    const bool up = p->phase == ELV_CLIENT_UPLOADING && p->client.phase == ELV_CLIENT_COMMITTING &&
                    p->client.commit.status == ELV_STATUS_DONE;
    if (!down && !up)
        return;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_INFO, down ? "fetched" : "uploaded");
    elv_log_u64(&l, "assignment", p->client.ticket.assignment);
    elv_log_u64(&l, "round", p->client.ticket.round);
    elv_log_u64(&l, "chunks", p->client.transfer.have.n);
    elv_log_u64(&l, "chunks_sent", s->chunks_sent);
    elv_log_u64(&l, "chunks_repeated", s->chunks_repeated);
    elv_log_u64(&l, "chunks_replayed", s->replayed);
    elv_log_u64(&l, "bytes", down ? s->bytes_down : s->bytes_up);
    elv_log_end(&l);
}

/* The one cause that only somebody at the device can mend. */
static void log_choked(struct program *p)
{
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_WARN, "choked");
    elv_log_u64(&l, "assignment", p->client.ticket.assignment);
    elv_log_text(&l, "reason",
                 "small messages are answered and chunks are not: the path seems to drop datagrams "
                 "of 1,200 bytes, look for its MTU");
    elv_log_end(&l);
}

static void follow(struct program *p)
{
    const struct elv_client_stats *s = &p->client.stats;
    log_counter(p, "joined", p->told.joins, s->joins);
    log_counter(p, "relinked", p->told.relinks, s->relinks);
    log_dropped(p, "superseded", p->told.superseded, s->superseded);
    log_dropped(p, "expired", p->told.expired, s->expired);
    log_counter(p, "assigned", p->told.assignments, s->assignments);
    log_counter(p, "restored", p->told.restored, s->restored);
    log_counter(p, "resumed", p->told.resumed, s->resumed);
    log_counter(p, "replayed", p->told.replayed, s->replayed);
    log_counter(p, "trained", p->told.trainings, s->trainings);
    log_accepted(p);
    if (p->told.choked != s->choked)
        log_choked(p);
    log_counter(p, "cancelled", p->told.cancelled, s->cancelled);
    log_counter(p, "failed", p->told.failed, s->failed);
    log_counter(p, "declined", p->told.declined, s->declined);
    for (uint32_t i = 0; i < ELV_CLIENT_REASONS; i++) {
        if (p->told.refused[i] == s->refused[i])
            continue;
        struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_WARN, "refused");
        elv_log_text(&l, "reason", elv_reason_text((enum elv_reason)i));
        elv_log_u64(&l, "total", s->refused[i]);
        elv_log_end(&l);
    }
    p->told = *s;
    p->assignment = p->client.ticket.assignment;
    p->round = p->client.ticket.round;
    if (p->phase == p->client.phase)
        return;
    log_transfer(p);
    p->phase = p->client.phase;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_DEBUG, "phase");
    elv_log_text(&l, "phase", phase_name(p->phase));
    elv_log_end(&l);
}

static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct program *p = self;
    p->node.step(p->node.self, ev, out);
    follow(p);
}

static elv_time_us deadline(const void *self)
{
    const struct program *p = self;
    return p->node.deadline(p->node.self);
}

static enum elv_err run_work(void *self, const struct elv_compute *work, uint32_t budget)
{
    const struct program *p = self;
    return p->node.run(p->node.self, work, budget);
}

/* Handshakes that a server keeps refusing will not get better: an alert may be forged, several in a
 * row hardly. A device that joined before goes on trying: its key may be on its way. */
static void watch(void *self)
{
    struct program *p = self;
    const struct elv_coap_client_status *s = elv_coap_client_status(p->coap);
    p->watch_at = p->host.clock.now(p->host.clock.self) + WATCH_US;
    if (s->link != p->link) {
        p->link = s->link;
        struct elv_log_line l = elv_log_begin(
            &p->log, s->link <= ELV_COAP_LINK_UP ? ELV_LOG_INFO : ELV_LOG_WARN, "link");
        elv_log_text(&l, "state", link_name(s->link));
        elv_log_end(&l);
    }
    if (s->refused_in_row >= REFUSED_MAX && p->client.stats.joins == 0 && !p->refused) {
        p->refused = true;
        elv_host_stop(&p->host);
    }
}

static elv_time_us watch_deadline(const void *self)
{
    const struct program *p = self;
    return p->watch_at;
}

/* Building it all. */

/* Files that a credential names without a leading slash lie beside it. */
static void beside(const char *credential, const char *name, char path[2 * ELV_CREDENTIAL_PATH_MAX])
{
    const char *slash = strrchr(credential, '/');
    const int folder = name[0] == '/' || slash == NULL ? 0 : (int)(slash - credential) + 1;
    snprintf(path, (size_t)2 * ELV_CREDENTIAL_PATH_MAX, "%.*s%s", folder, credential, name);
}

static int load_pem(struct program *p, struct elv_coap_cert *cert)
{
    const struct elv_credential *c = &p->credential;
    const char *names[] = {c->ca, c->certificate, c->private_key};
    struct elv_bytes *into[] = {&cert->ca, &cert->cert, &cert->key};
    for (uint32_t i = 0; i < 3; i++) {
        char path[2 * ELV_CREDENTIAL_PATH_MAX];
        size_t len;
        beside(p->credential_path, names[i], path);
        const enum elv_err err = i == 2 ? elv_posix_load_private(path, PEM_MAX, &p->pem[i], &len)
                                        : elv_posix_load(path, PEM_MAX, &p->pem[i], &len);
        if (err != ELV_OK) {
            complain(path, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
            return EXIT_USAGE;
        }
        *into[i] = (struct elv_bytes){p->pem[i], len};
    }
    return EXIT_SUCCESS;
}

static int load_credential(struct program *p)
{
    struct elv_key_error e = {0};
    if (elv_credential_load(p->credential_path, &p->credential, &e) == ELV_OK)
        return EXIT_SUCCESS;
    if (e.line > 0)
        fprintf(stderr, "elver-client: %s:%" PRIu32 ": %s\n", p->credential_path, e.line, e.why);
    else
        complain(p->credential_path, e.why);
    return EXIT_USAGE;
}

static int open_coap(struct program *p)
{
    struct elv_coap_cert cert = {0};
    struct elv_coap_problem problem = {{0}};
    const struct elv_credential *c = &p->credential;
    const bool by_key = c->key_len > 0;
    if (!by_key && load_pem(p, &cert) != EXIT_SUCCESS)
        return EXIT_USAGE;
    const struct elv_coap_client_cfg cfg = {.server = p->server,
                                            .job = {p->job, strlen(p->job)},
                                            .sink = elv_host_sink(&p->host),
                                            .identity = {c->identity, strlen(c->identity)},
                                            .psk = {c->key, c->key_len},
                                            .cert = by_key ? NULL : &cert,
                                            .server_name = p->server_name,
                                            .insecure = p->insecure};
    const enum elv_err err = elv_coap_client_open(&cfg, &p->coap, &problem);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    complain(p->server, problem.text);
    return err == ELV_ERR_ARG ? EXIT_USAGE : EXIT_FAILURE;
}

static void tell_state(void *self, const char *what, const char *name, const char *why)
{
    const struct program *p = self;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_WARN, what);
    if (name[0] != '\0')
        elv_log_text(&l, "file", name);
    if (why[0] != '\0')
        elv_log_text(&l, "reason", why);
    elv_log_end(&l);
}

/* Why there is no state. */
static int refuse_state(struct program *p, enum elv_err err, long holder)
{
    char why[96];
    if (err == ELV_ERR_AUTH)
        return complain(p->state_path, "another device or job has its state there"), EXIT_USAGE;
    if (err == ELV_ERR_IO && errno == ENOSPC) { /* no reason not to take part */
        tell_state(p, "state_not_kept", "", strerror(errno));
        return EXIT_SUCCESS;
    }
    if (err != ELV_ERR_BUSY)
        return complain(p->state_path, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
    snprintf(why, sizeof why, "process %ld uses it", holder);
    return complain(p->state_path, why);
}

static int open_state(struct program *p)
{
    char owner[sizeof p->credential.identity + ELV_JOB_NAME_MAX + 32];
    long holder = 0;
    if (p->state_path == NULL)
        return EXIT_SUCCESS;
    /* A key that was rotated is the same device's. */
    snprintf(owner, sizeof owner, "device %.*s, job %s", (int)strcspn(p->credential.identity, "#"),
             p->credential.identity, p->job);
    const struct elv_client_state_cfg cfg = {.path = p->state_path,
                                             .owner = owner,
                                             .tell_self = p,
                                             .tell = tell_state,
                                             .sink = elv_host_sink(&p->host)};
    const enum elv_err err = elv_client_state_open(&cfg, &p->state, &holder);
    if (err != ELV_OK)
        return refuse_state(p, err, holder);
    p->disk = elv_client_state_disk(p->state);
    return EXIT_SUCCESS;
}

static int build_client(struct program *p)
{
    const struct elv_random random = elv_posix_random();
    const struct elv_builtin_cfg trainer = {.train = &p->examples.train, .test = &p->examples.test};
    struct elv_client_cfg cfg = {.trainer = elv_builtin_trainer(&p->trainer, &trainer),
                                 .squeeze = &p->squeeze,
                                 .disk = p->state != NULL ? &p->disk : NULL,
                                 .software = {"elver/" ELV_VERSION, strlen("elver/" ELV_VERSION)},
                                 .duty = p->duty,
                                 .observe = p->observe,
                                 .leave_on_stop = p->leave,
                                 .once = p->once};
    uint8_t seeds[16];
    if (random.fill(random.self, seeds, sizeof seeds) != ELV_OK)
        return complain("boot id", "the system gives no random bytes");
    memcpy(&cfg.boot, seeds, sizeof cfg.boot);
    memcpy(&cfg.jitter_seed, seeds + 8, sizeof cfg.jitter_seed);
    if (elv_zlib_open(&p->zlib) != ELV_OK)
        return complain("zlib", "out of memory");
    p->squeeze = elv_zlib_squeeze(p->zlib);
    /* Address space only: what a run does not touch costs nothing. */
    p->memory_len = (size_t)p->memory_mib << 20;
    p->memory = mmap(NULL, p->memory_len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->memory == MAP_FAILED) {
        p->memory = NULL;
        return complain("--memory", "the system has not that much");
    }
    const enum elv_err err = elv_client_init(&p->client, &cfg, p->memory, p->memory_len);
    if (err != ELV_OK)
        return complain("client", elv_err_text(err));
    p->node = elv_client_node(&p->client);
    return EXIT_SUCCESS;
}

static int wire_up(struct program *p)
{
    const struct elv_node node = {.self = p,
                                  .actions_max = p->node.actions_max,
                                  .step = step,
                                  .deadline = deadline,
                                  .run = run_work};
    if (elv_host_init(&p->host, node, elv_posix_clock()) != ELV_OK)
        return complain("host", "out of memory");
    const struct elv_workers_cfg cfg = {
        .node = node, .clock = elv_posix_clock(), .sink = elv_host_sink(&p->host), .n_threads = 1};
    if (elv_workers_open(&p->workers, &cfg) != ELV_OK)
        return complain("workers", "the system gives no thread");
    const int status = open_coap(p);
    if (status != EXIT_SUCCESS)
        return status;
    const struct elv_store store =
        p->state != NULL ? elv_client_state_store(p->state) : (struct elv_store){0};
    elv_host_wire(&p->host, elv_coap_client_net(p->coap), store, p->workers);
    const struct elv_source sources[] = {
        elv_coap_client_source(p->coap),
        elv_workers_source(p->workers),
        {.self = p, .handle = -1, .ready = watch, .deadline = watch_deadline}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (elv_loop_add(&p->loop, sources[i]) != ELV_OK)
            return complain("loop", "the system gives no descriptor");
    return EXIT_SUCCESS;
}

static void tear_down(struct program *p)
{
    elv_workers_close(p->workers);
    elv_coap_client_close(p->coap);
    elv_host_free(&p->host);
    elv_client_state_close(p->state);
    elv_zlib_close(p->zlib);
    elv_dataset_free(&p->examples.data);
    elv_posix_wipe(&p->credential, sizeof p->credential);
    free(p->examples.mine);
    for (uint32_t i = 0; i < 3; i++)
        free(p->pem[i]);
    if (p->memory != NULL)
        munmap(p->memory, p->memory_len);
}

/* What to change, where it is here. */
static void tell_refusal(const struct program *p)
{
    const struct elv_dataset *d = &p->examples.data;
    const struct elv_model *m = &p->client.model;
    const enum elv_reason reason = p->client.exit_reason;
    const uint32_t n_values = elv_shape_len(m->input);
    if (reason == ELV_REASON_TRAINER && (d->n_values != n_values || d->n_classes > m->n_classes))
        fprintf(stderr,
                "elver-client: --data: examples of %" PRIu32 " values and %" PRIu32
                " classes do not fit the model, which has %" PRIu32 " inputs and %" PRIu32
                " outputs\n",
                d->n_values, d->n_classes, n_values, m->n_classes);
    else if (reason == ELV_REASON_MODEL_TOO_BIG)
        complain(p->server, "model_too_big: training it needs more than --memory allows");
    else
        complain(p->server, elv_reason_text(reason));
}

static int take_part(struct program *p)
{
    p->log = (struct elv_log){.fd = STDERR_FILENO, .level = ELV_LOG_INFO};
    if (p->level != NULL && !elv_log_level_of(p->level, &p->log.level))
        return misuse("--log-level takes error, warn, info or debug");
    if (elv_loop_init(&p->loop) != ELV_OK)
        return complain("loop", strerror(errno));
    int status = load_credential(p);
    if (status == EXIT_SUCCESS)
        status = load_examples(p);
    if (status == EXIT_SUCCESS)
        status = open_state(p);
    if (status == EXIT_SUCCESS)
        status = build_client(p);
    if (status == EXIT_SUCCESS)
        status = wire_up(p);
    if (status != EXIT_SUCCESS)
        return status;
    status = elv_loop_run(&p->loop, &p->host);
    if (status > 128)
        _exit(status); /* a second signal: now */
    if (p->refused)
        return complain(p->server, "it refuses this identity or its key"), EXIT_REFUSED;
    if (status == ELV_CLIENT_REFUSED)
        tell_refusal(p);
    return status;
}

/* The command line. */

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

static int take_number(int flag, const char *value, struct program *p)
{
    switch (flag) {
    case FLAG_INDEX:
        return number(value, 0, UINT32_MAX - 1, &p->examples.index)
                   ? -1
                   : misuse("--index takes a number");
    case FLAG_OF:
        return number(value, 1, UINT32_MAX, &p->examples.of) ? -1 : misuse("--of takes a number");
    case FLAG_DUTY:
        return number(value, 1, 100, &p->duty) ? -1 : misuse("--duty takes 1 to 100");
    default:
        return number(value, 1, 1 << 20, &p->memory_mib) ? -1
                                                         : misuse("--memory takes a number of MiB");
    }
}

/* -1: go on; else the exit code. */
static int take_flag(int flag, const char *value, struct program *p)
{
    switch (flag) {
    case 's':
        p->server = value;
        return -1;
    case 'j':
        p->job = value;
        return -1;
    case 'c':
        p->credential_path = value;
        return -1;
    case 'd':
        p->data = value;
        return -1;
    case FLAG_NAME:
        p->server_name = value;
        return -1;
    case FLAG_STATE:
        p->state_path = value;
        return -1;
    case FLAG_LEVEL:
        p->level = value;
        return -1;
    case FLAG_OBSERVE:
        p->observe = true;
        return -1;
    case FLAG_LEAVE:
        p->leave = true;
        return -1;
    case FLAG_ONCE:
        p->once = true;
        return -1;
    case FLAG_INSECURE:
        p->insecure = true;
        return -1;
    case FLAG_TRAINER:
        return misuse("--trainer is reserved and does nothing yet");
    case 'h':
        fputs(usage_text, stdout);
        return EXIT_SUCCESS;
    case 'V':
        puts("elver-client " ELV_VERSION);
        return EXIT_SUCCESS;
    case '?':
        fputs("Try 'elver-client --help'.\n", stderr);
        return EXIT_USAGE;
    default:
        return take_number(flag, value, p);
    }
}

static int check_flags(const struct program *p)
{
    if (p->server == NULL)
        return misuse("the server is missing: --server coaps://HOST");
    if (p->job == NULL || !elv_name_ok((struct elv_text){p->job, strlen(p->job)}, ELV_JOB_NAME_MAX))
        return misuse("the job is missing or no name: --job NAME");
    if (p->credential_path == NULL)
        return misuse("the credential is missing: --credential FILE");
    if (p->data == NULL)
        return misuse("the examples are missing: --data \"idx DIR\"");
    if (p->examples.of > 0 && p->examples.index >= p->examples.of)
        return misuse("--index counts from 0 to one less than --of");
    if (p->examples.of == 0 && p->examples.index > 0)
        return misuse("--index needs --of");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static struct program p = {.memory_mib = MEMORY_MIB};
    int c, status = -1;
    if (elv_posix_keep_streams() != ELV_OK)
        return EXIT_FAILURE;
    while (status < 0 && (c = getopt_long(argc, argv, "s:j:c:d:hV", flags, NULL)) != -1)
        status = take_flag(c, optarg, &p);
    if (status >= 0)
        return status;
    if (optind < argc)
        return misuse("it takes no arguments besides its flags");
    status = check_flags(&p);
    if (status != EXIT_SUCCESS)
        return status;
    status = take_part(&p);
    tear_down(&p);
    return status;
}
