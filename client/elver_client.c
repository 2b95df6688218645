/* SPDX-License-Identifier: Apache-2.0 */
/* client/elver_client.c - program: one device that takes part in a job.
 *
 * Loads the device's examples, builds the client node with the built-in trainer and hands it to its
 * ports. Events go to standard error as logfmt. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/builtin.h"
#include "client/elver_client_examples.h"
#include "client/elver_client_options.h"
#include "client/elver_client_told.h"
#include "elver/version.h"
#include "ports/posix/client_state.h"
#include "ports/posix/clock.h"
#include "ports/posix/credential.h"
#include "ports/posix/file.h"
#include "ports/posix/host.h"
#include "ports/posix/loop.h"
#include "ports/posix/random.h"
#include "ports/posix/workers.h"
#include "ports/zlib/squeeze.h"

enum { EXIT_REFUSED = 3 };

#define PEM_MAX 65536u
#define REFUSED_MAX 5u /* handshakes refused in a row that mean: for good */
#define WATCH_US 500000

struct program {
    struct elv_client_options options;
    struct elv_log log;
    struct elv_credential credential;
    struct elv_client_examples examples;
    struct elv_builtin trainer;
    struct elv_client client;
    struct elv_client_told told;
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

    enum elv_coap_link link; /* that was told */
    elv_time_us watch_at;
    bool refused;
};

/* Running. */

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

static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct program *p = self;
    p->node.step(p->node.self, ev, out);
    elv_client_told_step(&p->told, &elv_coap_client_status(p->coap)->traffic);
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
        beside(p->options.credential_path, names[i], path);
        const enum elv_err err = i == 2 ? elv_posix_load_private(path, PEM_MAX, &p->pem[i], &len)
                                        : elv_posix_load(path, PEM_MAX, &p->pem[i], &len);
        if (err != ELV_OK) {
            elv_client_complain(path, err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
            return ELV_CLIENT_USAGE;
        }
        *into[i] = (struct elv_bytes){p->pem[i], len};
    }
    return EXIT_SUCCESS;
}

static int load_credential(struct program *p)
{
    struct elv_key_error e = {0};
    if (elv_credential_load(p->options.credential_path, &p->credential, &e) == ELV_OK)
        return EXIT_SUCCESS;
    if (e.line > 0)
        fprintf(stderr, "elver-client: %s:%" PRIu32 ": %s\n", p->options.credential_path, e.line,
                e.why);
    else
        elv_client_complain(p->options.credential_path, e.why);
    return ELV_CLIENT_USAGE;
}

static int open_coap(struct program *p)
{
    struct elv_coap_cert cert = {0};
    struct elv_coap_problem problem = {{0}};
    const struct elv_credential *c = &p->credential;
    const bool by_key = c->key_len > 0;
    if (!by_key && load_pem(p, &cert) != EXIT_SUCCESS)
        return ELV_CLIENT_USAGE;
    const struct elv_coap_client_cfg cfg = {.server = p->options.server,
                                            .job = {p->options.job, strlen(p->options.job)},
                                            .sink = elv_host_sink(&p->host),
                                            .identity = {c->identity, strlen(c->identity)},
                                            .psk = {c->key, c->key_len},
                                            .cert = by_key ? NULL : &cert,
                                            .server_name = p->options.server_name,
                                            .insecure = p->options.insecure};
    const enum elv_err err = elv_coap_client_open(&cfg, &p->coap, &problem);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    elv_client_complain(p->options.server, problem.text);
    return err == ELV_ERR_ARG ? ELV_CLIENT_USAGE : EXIT_FAILURE;
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
        return elv_client_complain(p->options.state_path,
                                   "another device or job has its state there"),
               ELV_CLIENT_USAGE;
    if (err == ELV_ERR_IO && errno == ENOSPC) { /* no reason not to take part */
        tell_state(p, "state_not_kept", "", strerror(errno));
        return EXIT_SUCCESS;
    }
    if (err != ELV_ERR_BUSY)
        return elv_client_complain(p->options.state_path,
                                   err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
    snprintf(why, sizeof why, "process %ld uses it", holder);
    return elv_client_complain(p->options.state_path, why);
}

static int open_state(struct program *p)
{
    char owner[sizeof p->credential.identity + ELV_JOB_NAME_MAX + 32];
    long holder = 0;
    if (p->options.state_path == NULL)
        return EXIT_SUCCESS;
    /* A key that was rotated is the same device's. */
    snprintf(owner, sizeof owner, "device %.*s, job %s", (int)strcspn(p->credential.identity, "#"),
             p->credential.identity, p->options.job);
    const struct elv_client_state_cfg cfg = {.path = p->options.state_path,
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
                                 .duty = p->options.duty,
                                 .observe = p->options.observe,
                                 .leave_on_stop = p->options.leave,
                                 .once = p->options.once};
    uint8_t seeds[16];
    if (random.fill(random.self, seeds, sizeof seeds) != ELV_OK)
        return elv_client_complain("boot id", "the system gives no random bytes");
    memcpy(&cfg.boot, seeds, sizeof cfg.boot);
    memcpy(&cfg.jitter_seed, seeds + 8, sizeof cfg.jitter_seed);
    if (elv_zlib_open(&p->zlib) != ELV_OK)
        return elv_client_complain("zlib", "out of memory");
    p->squeeze = elv_zlib_squeeze(p->zlib);
    /* Address space only: what a run does not touch costs nothing. */
    p->memory_len = (size_t)p->options.memory_mib << 20;
    p->memory = mmap(NULL, p->memory_len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->memory == MAP_FAILED) {
        p->memory = NULL;
        return elv_client_complain("--memory", "the system has not that much");
    }
    const enum elv_err err = elv_client_init(&p->client, &cfg, p->memory, p->memory_len);
    if (err != ELV_OK)
        return elv_client_complain("client", elv_err_text(err));
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
        return elv_client_complain("host", "out of memory");
    const struct elv_workers_cfg cfg = {
        .node = node, .clock = elv_posix_clock(), .sink = elv_host_sink(&p->host), .n_threads = 1};
    if (elv_workers_open(&p->workers, &cfg) != ELV_OK)
        return elv_client_complain("workers", "the system gives no thread");
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
            return elv_client_complain("loop", "the system gives no descriptor");
    return EXIT_SUCCESS;
}

static void tear_down(struct program *p)
{
    elv_workers_close(p->workers);
    elv_coap_client_close(p->coap);
    elv_host_free(&p->host);
    elv_client_state_close(p->state);
    elv_zlib_close(p->zlib);
    elv_client_examples_free(&p->examples);
    elv_posix_wipe(&p->credential, sizeof p->credential);
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
        elv_client_complain(p->options.server,
                            "model_too_big: training it needs more than --memory allows");
    else
        elv_client_complain(p->options.server, elv_reason_text(reason));
}

static int take_part(struct program *p)
{
    p->log = (struct elv_log){.fd = STDERR_FILENO, .level = ELV_LOG_INFO};
    p->examples.log = p->told.log = &p->log;
    p->examples.index = p->options.index;
    p->examples.of = p->options.of;
    p->told.client = &p->client;
    if (p->options.level != NULL && !elv_log_level_of(p->options.level, &p->log.level))
        return elv_client_misuse("--log-level takes error, warn, info or debug");
    if (elv_loop_init(&p->loop) != ELV_OK)
        return elv_client_complain("loop", strerror(errno));
    int status = load_credential(p);
    if (status == EXIT_SUCCESS)
        status = elv_client_examples_load(&p->examples, p->options.data);
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
        return elv_client_complain(p->options.server, "it refuses this identity or its key"),
               EXIT_REFUSED;
    if (status == ELV_CLIENT_REFUSED)
        tell_refusal(p);
    return status;
}

int main(int argc, char **argv)
{
    static struct program p;
    if (elv_posix_keep_streams() != ELV_OK)
        return EXIT_FAILURE;
    int status = elv_client_options_take(argc, argv, &p.options);
    if (status >= 0)
        return status;
    status = take_part(&p);
    tear_down(&p);
    return status;
}
