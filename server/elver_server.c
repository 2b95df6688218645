/* SPDX-License-Identifier: Apache-2.0 */
/* server/elver_server.c - program: one federated job, served.
 *
 * Reads the configuration, obtains the memory, builds the server node and hands it to its ports.
 * Progress goes to standard output, one line a round; events go to standard error as logfmt. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/arena.h"
#include "elver/version.h"
#include "ports/libcoap/server.h"
#include "ports/posix/clock.h"
#include "ports/posix/dataset.h"
#include "ports/posix/file.h"
#include "ports/posix/host.h"
#include "ports/posix/keys.h"
#include "ports/posix/log.h"
#include "ports/posix/loop.h"
#include "ports/posix/random.h"
#include "ports/posix/workers.h"
#include "ports/sqlite/store.h"
#include "ports/zlib/squeeze.h"
#include "server/elver_server_folder.h"
#include "server/elver_server_options.h"
#include "server/follow.h"
#include "server/job.h"
#include "server/model_file.h"
#include "server/report.h"
#include "server/server.h"
#include "server/settings.h"
#include "server/test_set.h"

enum { EXIT_MISSED = 3 };

#define PEM_MAX 65536u
#define START_FILE_MAX ((size_t)8 << 30)
#define SPARE_FILES 12u /* open at the same time while serving: a file and its folder, logs ... */

struct program {
    struct elv_server_options asked;

    /* What runs. */
    struct elv_log log;
    struct elv_loop loop;
    struct elv_host host;
    struct elv_workers *workers;
    struct elv_sqlite *store;
    struct elv_coap_server *coap;
    struct elv_keys keys;
    struct elv_zlib *zlib;
    struct elv_squeeze squeeze;
    struct elv_dataset data;
    struct elv_dataset_feed data_feed;
    struct elv_feed feed;
    struct elv_test_set test_set;
    struct elv_scorer scorer;
    struct elv_server server;
    struct elv_node node;
    uint8_t *pem[3];
    void *server_mem, *test_mem;
    float *start;

    /* What is told. */
    uint64_t seen; /* notes */
    struct elv_follow told;
    struct elv_coap_traffic traffic; /* when the last round ended */
    elv_time_us stop_at;             /* when lingering ends */
    bool failed;                     /* the store will take nothing more */
    elv_time_us keys_at;
    char model_path[ELV_SERVER_PATH_MAX];
};

/* Data and model. */

static int load_test_set(struct program *p, const struct elv_kernels *kernels)
{
    char why[ELV_DATASET_WHY_MAX];
    if (p->asked.job.test[0] == 0 || p->asked.job.eval_every == 0 ||
        p->asked.job.eval_on == ELV_EVAL_CLIENTS)
        return EXIT_SUCCESS;
    const struct elv_gunzip gz = {.unpack = elv_zlib_gunzip, .release = elv_zlib_free};
    if (elv_dataset_load(&p->data, p->asked.job.test, ELV_DATASET_TEST, &gz, why) != ELV_OK) {
        elv_server_complain("data.test", why);
        return ELV_SERVER_USAGE;
    }
    elv_dataset_feed_init(&p->data_feed, &p->data, NULL, 0, p->asked.job.scale, p->asked.job.mean,
                          p->asked.job.std);
    p->feed = (struct elv_feed){.self = &p->data_feed,
                                .count = elv_dataset_feed_count,
                                .shape = elv_dataset_feed_shape,
                                .get = elv_dataset_feed_get};
    const struct elv_test_set_cfg cfg = {.model = &p->asked.job.model,
                                         .feed = &p->feed,
                                         .kernels = kernels,
                                         .seed = p->asked.job.seed};
    const size_t len = elv_test_set_mem(&cfg);
    p->test_mem = len == 0 ? NULL : aligned_alloc(ELV_ARENA_ALIGN, len);
    if (p->test_mem == NULL)
        return elv_server_complain("test set", "out of memory");
    const enum elv_err err = elv_test_set_init(&p->test_set, &cfg, p->test_mem, len);
    if (err != ELV_OK) {
        if (err == ELV_ERR_MISMATCH)
            fprintf(stderr,
                    "elver-server: data.test: examples of %" PRIu32 " values and %" PRIu32
                    " classes do not fit the model, which has %" PRIu32 " inputs and %" PRIu32
                    " outputs\n",
                    p->data.n_values, p->data.n_classes, elv_shape_len(p->asked.job.model.input),
                    p->asked.job.model.n_classes);
        else
            elv_server_complain("data.test", elv_err_text(err));
        return ELV_SERVER_USAGE;
    }
    p->scorer = elv_test_set_scorer(&p->test_set);
    return EXIT_SUCCESS;
}

static enum elv_err read_start(struct program *p, struct elv_bytes file)
{
    const struct elv_model *m = &p->asked.job.model;
    float *flat = calloc(m->n_params, sizeof *flat);
    p->start = calloc(m->n_shared, sizeof *p->start);
    const enum elv_err err = flat == NULL || p->start == NULL
                                 ? ELV_ERR_MEMORY
                                 : elv_model_file_read(m, file, flat, p->start);
    free(flat);
    return err;
}

static int load_start(struct program *p)
{
    uint8_t *bytes;
    size_t len;
    if (p->asked.job.start[0] == 0)
        return EXIT_SUCCESS;
    enum elv_err err = elv_posix_load(p->asked.job.start, START_FILE_MAX, &bytes, &len);
    if (err != ELV_OK) {
        elv_server_complain(p->asked.job.start,
                            err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
        return ELV_SERVER_USAGE;
    }
    err = read_start(p, (struct elv_bytes){bytes, len});
    free(bytes);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    elv_server_complain(p->asked.job.start,
                        err == ELV_ERR_MISMATCH ? "it is of another model" : elv_err_text(err));
    return ELV_SERVER_USAGE;
}

/* What is told: notes become log lines and progress. */

static uint64_t peak_rss_kib(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss : 0;
}

static struct elv_run_facts facts(const struct program *p)
{
    return (struct elv_run_facts){.train_seconds = elv_follow_seconds(&p->told),
                                  .peak_rss_kib = peak_rss_kib(),
                                  .model = p->model_path,
                                  .wire_up = elv_coap_server_stats(p->coap)->traffic.wire_in,
                                  .wire_down = elv_coap_server_stats(p->coap)->traffic.wire_out};
}

/* Counters of the ports; the keys are promises. */
#define FIGURES_MAX 24u
static uint32_t figures(const struct program *p, struct elv_figure out[FIGURES_MAX])
{
    const struct elv_coap_server_stats *c = elv_coap_server_stats(p->coap);
    struct elv_sqlite_stats d;
    elv_sqlite_stats(p->store, &d);
    const struct elv_figure all[] = {
        {"handshakes", c->handshakes},
        {"handshakes_unknown", c->refused_unknown},
        {"handshakes_revoked", c->refused_revoked},
        {"handshakes_unproven", c->refused_proof},
        {"sessions", c->sessions},
        {"sessions_closed", c->sessions_closed},
        {"sessions_evicted", c->sessions_evicted},
        {"requests_too_large", c->too_large},
        {"requests_overflowed", c->overflowed},
        {"replies_dropped", c->dropped},
        {"notifications", c->notifications},
        {"payload_bytes_in", c->bytes_in},
        {"payload_bytes_out", c->bytes_out},
        {"datagrams_in", c->traffic.datagrams_in},
        {"datagrams_out", c->traffic.datagrams_out},
        {"transactions", d.transactions},
        {"transaction_batches", d.batches},
        {"transactions_failed", d.failures},
        {"longest_batch_us", (uint64_t)d.batch_max_us},
        {"disk_free_bytes", d.free_bytes},
        {"longest_step_us", (uint64_t)p->host.stats.step_max_us},
    };
    _Static_assert(sizeof all / sizeof all[0] <= FIGURES_MAX, "one place for each figure");
    memcpy(out, all, sizeof all);
    return sizeof all / sizeof all[0];
}

static void say(const struct elv_line *line)
{
    printf("%s\n", line->at);
    fflush(stdout);
}

static void write_stats(const struct program *p)
{
    char text[8192];
    if (p->asked.settings.stats[0] == 0)
        return;
    struct elv_line out = elv_line_of(text, sizeof text);
    struct elv_figure figure[FIGURES_MAX];
    struct elv_run_facts f = facts(p);
    f.figures = figure;
    f.n_figures = figures(p, figure);
    elv_report_json(&out, elv_server_stats(&p->server), &p->told.line, &f);
    if (elv_posix_publish(p->asked.settings.stats,
                          (struct elv_bytes){(const uint8_t *)text, out.len}) == ELV_OK)
        return;
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_WARN, "stats_failed");
    elv_log_text(&l, "file", p->asked.settings.stats);
    elv_log_text(&l, "reason", strerror(errno));
    elv_log_end(&l);
}

static void tell_round(const struct program *p, const struct elv_round_line *line)
{
    char text[512];
    struct elv_line out = elv_line_of(text, sizeof text);
    elv_report_round(&out, line);
    say(&out);
    write_stats(p);
}

static void log_note(const struct program *p, const struct elv_note *n)
{
    static const enum elv_log_level levels[] = {[ELV_NOTE_USUAL] = ELV_LOG_INFO,
                                                [ELV_NOTE_ODD] = ELV_LOG_WARN,
                                                [ELV_NOTE_BAD] = ELV_LOG_ERROR};
    char text[1024], why[ELV_SQLITE_WHY_MAX];
    struct elv_line fields = elv_line_of(text, sizeof text);
    struct elv_log_line l =
        elv_log_begin(&p->log, levels[elv_note_weight(n->kind)], elv_note_name(n->kind));
    elv_report_note(&fields, n);
    elv_log_fields(&l, text);
    if (n->kind == ELV_NOTE_STORE_FAILED) {
        elv_sqlite_why(p->store, why);
        elv_log_text(&l, "reason", why);
    }
    elv_log_end(&l);
}

/* When nobody knows any more what is on the disk, only opening the state anew helps: the program
 * ends, for whoever supervises it to start it again. Nothing acknowledged is lost by that. */
static void give_up_on_store(struct program *p)
{
    struct elv_sqlite_stats stats;
    elv_sqlite_stats(p->store, &stats);
    if (!stats.dead || p->failed)
        return;
    p->failed = true;
    p->stop_at = p->host.clock.now(p->host.clock.self);
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_ERROR, "store_dead");
    elv_log_text(&l, "state", p->asked.settings.state);
    elv_log_end(&l);
}

/* What went over the wire since the round before ended is counted as this one's. */
static void take_traffic(struct program *p, struct elv_round_report *r)
{
    const struct elv_coap_traffic *now = &elv_coap_server_stats(p->coap)->traffic;
    r->wire_up = now->wire_in - p->traffic.wire_in;
    r->wire_down = now->wire_out - p->traffic.wire_out;
    p->traffic = *now;
}

static void follow(struct program *p, const struct elv_note *note)
{
    struct elv_round_line lines[2];
    struct elv_note told = *note;
    const struct elv_note *n = &told;
    if (n->kind == ELV_NOTE_ROUND_CLOSED || n->kind == ELV_NOTE_ROUND_ABANDONED)
        take_traffic(p, &told.report);
    log_note(p, n);
    if (n->kind == ELV_NOTE_STORE_FAILED)
        give_up_on_store(p);
    const uint32_t due = elv_follow_take(&p->told, n, lines);
    for (uint32_t i = 0; i < due; i++)
        tell_round(p, &lines[i]);
}

static int save_model(const struct program *p)
{
    uint8_t *file =
        malloc(ELV_MODEL_HEAD_CAP + (size_t)p->asked.job.model.n_shared * sizeof(float));
    if (file == NULL)
        return elv_server_complain(p->model_path, "out of memory");
    const size_t len = elv_model_file_write(&p->asked.job, p->server.run.run,
                                            elv_server_stats(&p->server)->version,
                                            elv_server_model(&p->server), file);
    const enum elv_err err = elv_posix_save(p->model_path, (struct elv_bytes){file, len});
    free(file);
    return err == ELV_OK ? EXIT_SUCCESS : elv_server_complain(p->model_path, strerror(errno));
}

/* Once, when the run is over and its last score is in. */
static void tell_result(struct program *p)
{
    char text[1024];
    if (!elv_follow_result(&p->told))
        return;
    save_model(p);
    struct elv_line out = elv_line_of(text, sizeof text);
    const struct elv_run_facts f = facts(p);
    const struct elv_server_stats *stats = elv_server_stats(&p->server);
    elv_report_table(&out, stats, &f);
    printf("\n%s\n", text);
    out = elv_line_of(text, sizeof text);
    elv_report_result(&out, stats, &p->told.line, &f);
    say(&out);
    write_stats(p);
    p->stop_at = p->host.clock.now(p->host.clock.self) + p->asked.settings.linger_us;
}

/* The node ends when the job is over, but goes on answering: until it is stopped, so does this
 * program. */
static void linger(const struct program *p, struct elv_actions *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++)
        if (out->at[i].kind != ELV_DO_END || p->server.stopping)
            out->at[n++] = out->at[i];
    out->n = n;
}

/* The node, with an eye on its notes. */
static void step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    struct program *p = self;
    p->node.step(p->node.self, ev, out);
    linger(p, out);
    const struct elv_note *n;
    while ((n = elv_note_next(&p->server.notes, &p->seen)) != NULL)
        follow(p, n);
    tell_result(p);
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

/* Keys: looked up at each handshake, followed while the server runs. */

static enum elv_err find_key(void *self, struct elv_text identity, struct elv_coap_key *key)
{
    const struct program *p = self;
    const struct elv_key *k = elv_keytable_find(&p->keys.table, identity.at, identity.len);
    if (k == NULL)
        return ELV_ERR_MISSING;
    *key = (struct elv_coap_key){.client = k->number, .psk = {k->key, k->key_len}};
    return ELV_OK;
}

static void key_used(void *self, struct elv_text identity, uint32_t client)
{
    struct program *p = self;
    (void)client;
    elv_keys_used(&p->keys, identity.at, identity.len);
}

static void turn_out(void *ctx, uint32_t number)
{
    struct program *p = ctx;
    elv_coap_server_drop(p->coap, number);
    struct elv_event ev = {.kind = ELV_EV_GONE, .peer = number};
    const struct elv_sink sink = elv_host_sink(&p->host);
    sink.event(sink.self, &ev);
}

static void check_keys(struct program *p)
{
    struct elv_key_error e = {0};
    bool changed = false;
    const enum elv_err err = elv_keys_check(&p->keys, &changed, p, turn_out, &e);
    if (err == ELV_OK && !changed)
        return;
    struct elv_log_line l = elv_log_begin(&p->log, err == ELV_OK ? ELV_LOG_INFO : ELV_LOG_ERROR,
                                          err == ELV_OK ? "keys_taken" : "keys_refused");
    elv_log_text(&l, "file", p->asked.settings.keys);
    if (err == ELV_OK)
        elv_log_u64(&l, "n", p->keys.table.n);
    else if (e.line > 0)
        elv_log_u64(&l, "line", e.line);
    if (err != ELV_OK)
        elv_log_text(&l, "reason", e.why[0] != 0 ? e.why : elv_err_text(err));
    elv_log_end(&l);
}

/* A source without a handle: what this program does by the clock. */
static void by_the_clock(void *self)
{
    struct program *p = self;
    const elv_time_us now = p->host.clock.now(p->host.clock.self);
    if (now >= p->keys_at) {
        p->keys_at = now + ELV_KEYS_CHECK_US;
        check_keys(p);
    }
    if (now >= p->stop_at) {
        p->stop_at = ELV_NEVER;
        elv_host_stop(&p->host);
    }
}

static elv_time_us clock_deadline(const void *self)
{
    const struct program *p = self;
    return p->keys_at < p->stop_at ? p->keys_at : p->stop_at;
}

/* Building it all, in the order in which things need each other. */

static const struct elv_kernels *pick_kernels(void)
{
    const char *name = getenv("ELV_KERNELS");
    return name != NULL ? elv_kernels_by_name(name) : elv_kernels_best();
}

static int open_store(struct program *p)
{
    char why[ELV_SQLITE_WHY_MAX];
    const struct elv_sqlite_cfg cfg = {.dir = p->asked.settings.state, .job = p->asked.job.name};
    return elv_sqlite_open(&p->store, &cfg, why) == ELV_OK
               ? EXIT_SUCCESS
               : elv_server_complain(p->asked.settings.state, why);
}

static int server_failed(const struct program *p, enum elv_err err)
{
    const char *why =
        err == ELV_ERR_FULL ? "it has more clients than limits.clients allows" : elv_err_text(err);
    if (err != ELV_ERR_MISMATCH) {
        fprintf(stderr,
                "elver-server: the run in %s/%s cannot be taken up: %s; put back a copy of the "
                "folder, or start over with --new-run\n",
                p->asked.settings.state, p->asked.job.name, why);
        return EXIT_FAILURE;
    }
    fprintf(stderr,
            "elver-server: %s/%s holds a run of another model or seed; start over with "
            "--new-run\n",
            p->asked.settings.state, p->asked.job.name);
    return ELV_SERVER_USAGE;
}

static int build_server(struct program *p, const struct elv_kernels *kernels)
{
    struct elv_server_cfg cfg = {
        .job = &p->asked.job,
        .limits = {.clients_max = p->asked.settings.clients,
                   .uploads_max = p->asked.settings.uploads,
                   .log_bytes_max = p->asked.settings.log_bytes,
                   .window = p->asked.settings.window},
        .software_min = p->asked.settings.client_min[0] != 0 ? p->asked.settings.client_min : NULL,
        .kernels = kernels,
        .disk = elv_sqlite_disk(p->store),
        .scorer = p->scorer.run != NULL ? &p->scorer : NULL,
        .squeeze = &p->squeeze,
        .start = p->start};
    if (elv_posix_random().fill(NULL, cfg.run, sizeof cfg.run) != ELV_OK)
        return elv_server_complain("run", "the system gives no random bytes");
    if (elv_zlib_open(&p->zlib) != ELV_OK)
        return elv_server_complain("zlib", "out of memory");
    p->squeeze = elv_zlib_squeeze(p->zlib);
    const size_t len = elv_server_mem(&cfg);
    if (len == 0) {
        elv_server_complain(p->asked.job_path, "the limits and the job do not go together");
        return ELV_SERVER_USAGE;
    }
    p->server_mem = aligned_alloc(ELV_ARENA_ALIGN, (len + 63) / 64 * 64);
    if (p->server_mem == NULL)
        return elv_server_complain("server", "out of memory");
    const enum elv_err err = elv_server_init(&p->server, &cfg, p->server_mem, len);
    if (err != ELV_OK)
        return server_failed(p, err);
    p->node = elv_server_node(&p->server);
    elv_follow_init(&p->told, &p->asked.job, p->scorer.run != NULL, &p->server.cast.rec.eval);
    return EXIT_SUCCESS;
}

static int load_pem(struct program *p, struct elv_coap_cert *cert)
{
    const char *paths[] = {p->asked.settings.ca, p->asked.settings.cert, p->asked.settings.key};
    struct elv_bytes *into[] = {&cert->ca, &cert->cert, &cert->key};
    for (uint32_t i = 0; i < 3; i++) {
        size_t len;
        const enum elv_err err = i == 2
                                     ? elv_posix_load_private(paths[i], PEM_MAX, &p->pem[i], &len)
                                     : elv_posix_load(paths[i], PEM_MAX, &p->pem[i], &len);
        if (err != ELV_OK) {
            elv_server_complain(paths[i], err == ELV_ERR_IO ? strerror(errno) : elv_err_text(err));
            return ELV_SERVER_USAGE;
        }
        *into[i] = (struct elv_bytes){p->pem[i], len};
    }
    return EXIT_SUCCESS;
}

static uint32_t split_listen(char *text, const char *at[ELV_COAP_LISTEN_MAX])
{
    uint32_t n = 0;
    for (char *word = strtok(text, ", \t"); word != NULL && n < ELV_COAP_LISTEN_MAX;
         word = strtok(NULL, ", \t"))
        at[n++] = word;
    return n;
}

static int open_coap(struct program *p)
{
    struct elv_coap_cert cert = {0};
    struct elv_coap_problem problem = {{0}};
    const char *listen[ELV_COAP_LISTEN_MAX];
    static char text[ELV_SETTING_TEXT_MAX];
    if (p->asked.settings.ca[0] != 0 && load_pem(p, &cert) != EXIT_SUCCESS)
        return ELV_SERVER_USAGE;
    snprintf(text, sizeof text, "%s", p->asked.settings.listen);
    const struct elv_coap_server_cfg cfg = {
        .listen = listen,
        .n_listen = split_listen(text, listen),
        .job = {p->asked.job.name, strlen(p->asked.job.name)},
        .sink = elv_host_sink(&p->host),
        .keys = {.self = p, .find = find_key, .used = key_used},
        .cert = p->asked.settings.ca[0] != 0 ? &cert : NULL,
        .insecure = p->asked.insecure,
        .sessions_max = p->asked.settings.sessions,
        .half_open_max = p->asked.settings.half_open,
        .idle_s = (uint32_t)(p->asked.settings.idle_us / 1000000),
        .receive_buffer = (uint32_t)p->asked.settings.receive_buffer};
    const enum elv_err err = elv_coap_server_open(&cfg, &p->coap, &problem);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    elv_server_complain(p->asked.settings.listen, problem.text);
    return err == ELV_ERR_ARG ? ELV_SERVER_USAGE : EXIT_FAILURE;
}

static uint32_t thread_count(const struct program *p)
{
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (p->asked.settings.threads != 0)
        return p->asked.settings.threads;
    return cpus <= 2 ? 1 : cpus > 5 ? 4 : (uint32_t)cpus - 1;
}

static int wire_up(struct program *p)
{
    const struct elv_node node = {.self = p,
                                  .actions_max = p->node.actions_max,
                                  .step = step,
                                  .deadline = deadline,
                                  .run = run_work};
    if (elv_host_init(&p->host, node, elv_posix_clock()) != ELV_OK)
        return elv_server_complain("host", "out of memory");
    const struct elv_workers_cfg cfg = {.node = node,
                                        .clock = elv_posix_clock(),
                                        .sink = elv_host_sink(&p->host),
                                        .n_threads = thread_count(p)};
    if (elv_workers_open(&p->workers, &cfg) != ELV_OK)
        return elv_server_complain("workers", "the system gives no thread");
    elv_sqlite_connect(p->store, elv_host_sink(&p->host));
    const int status = open_coap(p);
    if (status != EXIT_SUCCESS)
        return status;
    elv_host_wire(&p->host, elv_coap_server_net(p->coap), elv_sqlite_store(p->store), p->workers);
    p->stop_at = ELV_NEVER;
    p->keys_at = p->host.clock.now(p->host.clock.self) + ELV_KEYS_CHECK_US;
    const struct elv_source sources[] = {
        elv_coap_server_source(p->coap),
        elv_sqlite_source(p->store),
        elv_workers_source(p->workers),
        {.self = p, .handle = -1, .ready = by_the_clock, .deadline = clock_deadline}};
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (elv_loop_add(&p->loop, sources[i]) != ELV_OK)
            return elv_server_complain("loop", "the system gives no descriptor");
    if (elv_posix_spare_files(SPARE_FILES) != ELV_OK)
        return elv_server_complain("limits", "too few files may be open at a time (ulimit -n)");
    return EXIT_SUCCESS;
}

static int open_keys(struct program *p)
{
    struct elv_key_error e = {0};
    const enum elv_err err = elv_keys_open(&p->keys, p->asked.settings.keys, &e);
    if (err == ELV_OK)
        return EXIT_SUCCESS;
    if (e.line > 0)
        fprintf(stderr, "elver-server: %s:%" PRIu32 ": %s\n", p->asked.settings.keys, e.line,
                e.why);
    else
        elv_server_complain(p->asked.settings.keys, e.why[0] != 0 ? e.why : elv_err_text(err));
    return ELV_SERVER_USAGE;
}

static void tell_start(const struct program *p, const struct elv_kernels *kernels)
{
    const struct elv_coap_server_info *info = elv_coap_server_info(p->coap);
    struct elv_log_line l = elv_log_begin(&p->log, ELV_LOG_INFO, "serving");
    elv_log_text(&l, "job", p->asked.job.name);
    elv_log_text(&l, "listen", p->asked.settings.listen);
    elv_log_u64(&l, "port", info->port[0]);
    elv_log_u64(&l, "receive_buffer", info->receive_buffer);
    elv_log_text(&l, "kernels", kernels->name);
    elv_log_u64(&l, "threads", thread_count(p));
    elv_log_u64(&l, "params", p->asked.job.model.n_shared);
    elv_log_i64(&l, "value_bits", p->server.scales.value_bits);
    elv_log_i64(&l, "weight_bits", p->server.scales.weight_bits);
    elv_log_u64(&l, "keys", p->keys.table.n);
    elv_log_text(&l, "version", ELV_VERSION);
    elv_log_end(&l);
    if (!p->asked.insecure)
        return;
    l = elv_log_begin(&p->log, ELV_LOG_WARN, "insecure");
    elv_log_text(&l, "reason",
                 "SERVING IN THE CLEAR: anybody on the path reads and changes everything");
    elv_log_end(&l);
}

static void tear_down(struct program *p)
{
    elv_workers_close(p->workers);
    elv_coap_server_close(p->coap);
    elv_sqlite_close(p->store);
    elv_keys_free(&p->keys);
    elv_host_free(&p->host);
    elv_zlib_close(p->zlib);
    elv_dataset_free(&p->data);
    for (uint32_t i = 0; i < 3; i++)
        free(p->pem[i]);
    free(p->start);
    free(p->server_mem);
    free(p->test_mem);
}

static int serve(struct program *p)
{
    const struct elv_kernels *kernels = pick_kernels();
    if (kernels == NULL)
        return elv_server_misuse("ELV_KERNELS names a table that this machine cannot run");
    p->log = (struct elv_log){.fd = STDERR_FILENO};
    elv_log_level_of(p->asked.settings.level, &p->log.level);
    if (elv_loop_init(&p->loop) != ELV_OK)
        return elv_server_complain("loop", strerror(errno));
    int status = open_keys(p);
    if (status == EXIT_SUCCESS && p->asked.new_run)
        status = elv_folder_set_aside(&p->asked);
    if (status == EXIT_SUCCESS)
        status = elv_folder_compare(&p->asked);
    if (status == EXIT_SUCCESS)
        status = load_test_set(p, kernels);
    if (status == EXIT_SUCCESS)
        status = load_start(p);
    if (status == EXIT_SUCCESS)
        status = open_store(p);
    if (status == EXIT_SUCCESS)
        status = elv_folder_save_job(&p->asked);
    if (status == EXIT_SUCCESS)
        status = elv_folder_path(&p->asked, "/model.safetensors", p->model_path);
    if (status == EXIT_SUCCESS)
        status = build_server(p, kernels);
    if (status == EXIT_SUCCESS)
        status = wire_up(p);
    if (status != EXIT_SUCCESS)
        return status;
    tell_start(p, kernels);
    write_stats(p); /* so that a file that cannot be written shows at once */
    status = elv_loop_run(&p->loop, &p->host);
    if (status > 128)
        _exit(status); /* a second signal: now */
    write_stats(p);
    const struct elv_server_stats *stats = elv_server_stats(&p->server);
    if (p->failed)
        return elv_server_complain(p->asked.settings.state,
                                   "the state could not be written; see store_failed above");
    if (status == 0 && stats->over && p->asked.job.target_accuracy > 0 && !stats->target_reached)
        return EXIT_MISSED;
    return status;
}

int main(int argc, char **argv)
{
    static struct program p;
    if (elv_posix_keep_streams() != ELV_OK)
        return EXIT_FAILURE;
    int status = elv_server_options_take(argc, argv, &p.asked);
    if (status >= 0)
        return status;
    status = serve(&p);
    tear_down(&p);
    return status;
}
