/* SPDX-License-Identifier: Apache-2.0 */
/* Durable commits per second of a whole server: 100 clients with nothing to compute take tickets,
 * put one chunk, commit, and hear of the next round as observers do, against the real store and a
 * worker thread. No network. Each round ends with a new version on the disk.
 *
 *     bench_commits [DIRECTORY [SECONDS]]      default: the current directory, 3 seconds */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/codec.h"
#include "ports/posix/clock.h"
#include "ports/posix/loop.h"
#include "ports/sqlite/store.h"
#include "server/server.h"

enum { PEERS = 100 };

struct peer {
    enum { JOINING, ASKING, PUTTING, COMMITTING } phase;
    uint32_t assignment, accepted; /* accepted: the last one acknowledged */
    uint8_t codec;
    bool told;         /* its ticket changed */
    elv_time_us again; /* when to ask for a ticket */
};

static struct bench {
    struct elv_job job;
    struct elv_server server;
    struct elv_host host;
    struct elv_sink sink;
    struct peer peers[PEERS + 1];
    uint8_t chunk[ELV_CHUNK_MAX];
    size_t chunk_len;
    uint8_t digest[ELV_BODY_DIGEST_LEN];
    uint64_t n_commits;
    elv_time_us began, until;
    void (*step)(void *self, const struct elv_event *ev, struct elv_actions *out);
    elv_time_us step_max;
} b;

static elv_time_us now(void) { return elv_posix_clock().now(NULL); }

/* The node's own step, timed by the processor's time: others may be using the machine. */
static elv_time_us cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (elv_time_us)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void timed_step(void *self, const struct elv_event *ev, struct elv_actions *out)
{
    const elv_time_us began = cpu_now();
    b.step(self, ev, out);
    const elv_time_us took = cpu_now() - began;
    b.step_max = took > b.step_max ? took : b.step_max;
}

static void send(uint32_t peer, const struct elv_request *r)
{
    struct elv_event ev = {.kind = ELV_EV_REQUEST, .peer = peer, .id = peer, .request = *r};
    b.sink.event(b.sink.self, &ev);
}

static void ask(uint32_t peer)
{
    b.peers[peer].phase = ASKING;
    b.peers[peer].told = false;
    b.peers[peer].again = ELV_NEVER;
    send(peer, &(struct elv_request){.op = ELV_OP_TICKET, .observe = true});
}

static void join(uint32_t peer)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    struct elv_join j = {.wire_min = 1,
                         .wire_max = 1,
                         .software = {"elver/0.1.0", 11},
                         .boot = peer,
                         .samples = 10,
                         .codecs = {ELV_CODEC_F32},
                         .n_codecs = 1};
    memcpy(j.manifest, b.server.manifest_digest, sizeof j.manifest);
    if (elv_join_encode(&j, body, sizeof body, &len) == ELV_OK)
        send(peer, &(struct elv_request){.op = ELV_OP_JOIN, .body = {body, len}});
}

static void put(uint32_t peer)
{
    b.peers[peer].phase = PUTTING;
    send(peer, &(struct elv_request){.op = ELV_OP_UPDATE_CHUNK,
                                     .assignment = b.peers[peer].assignment,
                                     .body = {b.chunk, b.chunk_len}});
}

static void commit(uint32_t peer)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    struct elv_commit c = {.status = ELV_STATUS_DONE,
                           .nonce = 1,
                           .samples = 10,
                           .seen = 10,
                           .steps = 1,
                           .n_chunks = 1};
    memcpy(c.digest, b.digest, sizeof c.digest);
    b.peers[peer].phase = COMMITTING;
    if (elv_commit_encode(&c, body, sizeof body, &len) == ELV_OK)
        send(peer, &(struct elv_request){.op = ELV_OP_COMMIT,
                                         .assignment = b.peers[peer].assignment,
                                         .body = {body, len}});
}

static void take_ticket(uint32_t peer, struct elv_bytes body)
{
    struct elv_ticket t;
    struct peer *p = &b.peers[peer];
    if (elv_ticket_decode(body, &t) != ELV_OK)
        return;
    if (t.what == ELV_WHAT_TRAIN && t.assignment != p->assignment) {
        p->assignment = t.assignment;
        put(peer);
        return;
    }
    if (p->told) { /* it changed while the answer was on its way */
        ask(peer);
        return;
    }
    p->again = now() + (elv_time_us)t.poll_ms * 1000;
}

static void take_verdict(uint32_t peer, struct elv_bytes body)
{
    struct elv_verdict v;
    if (elv_verdict_decode(body, &v) != ELV_OK || v.decision != ELV_ACCEPTED)
        return;
    b.peers[peer].accepted = b.peers[peer].assignment;
    b.n_commits++;
}

/* The server answered; the next request goes out from here, and the host defers it. */
static void act(void *self, const struct elv_action *a)
{
    (void)self;
    if (a->kind == ELV_DO_NOTIFY) {
        b.peers[a->peer].told = true;
        if (b.peers[a->peer].phase == ASKING)
            ask(a->peer);
        return;
    }
    if (a->kind != ELV_DO_REPLY)
        return;
    const uint32_t peer = a->id;
    if (!elv_code_is_success(a->response.code)) {
        b.peers[peer].again = now() + 10000;
        return;
    }
    switch (b.peers[peer].phase) {
    case JOINING:
        ask(peer);
        break;
    case ASKING:
        take_ticket(peer, a->response.body);
        break;
    case PUTTING:
        commit(peer);
        break;
    case COMMITTING:
        take_verdict(peer, a->response.body);
        ask(peer);
        break;
    }
}

static elv_time_us next_poll(const void *self)
{
    (void)self;
    elv_time_us at = b.until;
    for (uint32_t i = 1; i <= PEERS; i++)
        at = b.peers[i].again < at ? b.peers[i].again : at;
    return at;
}

static void poll_peers(void *self)
{
    (void)self;
    if (now() >= b.until) {
        elv_host_stop(&b.host);
        b.until = ELV_NEVER;
    }
    for (uint32_t i = 1; i <= PEERS; i++)
        if (b.peers[i].again <= now())
            ask(i);
}

static void set(const char *section, const char *key, const char *value)
{
    char why[ELV_JOB_ERROR_MAX];
    if (elv_job_set(&b.job, section, key, value, ELV_JOB_OVERRIDE, why) != ELV_OK)
        fprintf(stderr, "%s\n", why);
}

static void make_job(void)
{
    char why[ELV_JOB_ERROR_MAX];
    uint32_t line;
    elv_job_init(&b.job);
    set("job", "name", "bench");
    set("job", "rounds", "1000000");
    set("model", "input", "8x1x1");
    set("model", "layers", "dense 10");
    set("client", "local_epochs", "1");
    set("sync", "policy", "bsp");
    set("select", "min_clients", "100");
    set("transfer", "up", "f32");
    set("transfer", "down", "f32");
    if (elv_job_check(&b.job, why, &line) != ELV_OK)
        fprintf(stderr, "%s\n", why);
}

static void make_update(void)
{
    static float v[90];
    uint8_t payload[ELV_CHUNK_PAYLOAD_MAX], hash[ELV_CHUNK_HASH_LEN];
    struct elv_chunk c = {
        .kind = ELV_BODY_UPDATE, .codec = ELV_CODEC_F32, .tag = {1}, .payload = {payload, 0}};
    const struct elv_codec_arg arg = {0};
    const struct elv_codec *f32 = elv_codec_by_id(ELV_CODEC_F32);
    f32->encode(v, 90, 0, 0, &arg, payload, sizeof payload, &c.payload.len, &c.count);
    elv_chunk_encode(&c, b.chunk, sizeof b.chunk, &b.chunk_len);
    struct elv_body_digest d;
    elv_body_digest_init(&d);
    elv_chunk_hash((struct elv_bytes){b.chunk, b.chunk_len}, hash);
    elv_body_digest_add(&d, hash);
    elv_body_digest_final(&d, b.digest);
}

static int serve(struct elv_sqlite *store, double seconds)
{
    const struct elv_server_cfg cfg = {.job = &b.job, .disk = elv_sqlite_disk(store)};
    const size_t len = elv_server_mem(&cfg);
    void *mem = aligned_alloc(ELV_ARENA_ALIGN, len);
    if (mem == NULL || elv_server_init(&b.server, &cfg, mem, len) != ELV_OK)
        return 1;
    struct elv_loop loop;
    struct elv_workers *workers = NULL;
    struct elv_node node = elv_server_node(&b.server);
    b.step = node.step;
    node.step = timed_step;
    if (elv_loop_init(&loop) != ELV_OK || elv_host_init(&b.host, node, elv_posix_clock()) != ELV_OK)
        return 1;
    b.sink = elv_host_sink(&b.host);
    const struct elv_workers_cfg wcfg = {
        .node = node, .clock = elv_posix_clock(), .sink = b.sink, .n_threads = 1};
    if (elv_workers_open(&workers, &wcfg) != ELV_OK)
        return 1;
    elv_sqlite_connect(store, b.sink);
    elv_host_wire(&b.host, (struct elv_net){.act = act}, elv_sqlite_store(store), workers);
    elv_loop_add(&loop, elv_sqlite_source(store));
    elv_loop_add(&loop, elv_workers_source(workers));
    elv_loop_add(&loop,
                 (struct elv_source){.handle = -1, .ready = poll_peers, .deadline = next_poll});
    b.began = now();
    b.until = b.began + (elv_time_us)(seconds * 1e6);
    for (uint32_t i = 1; i <= PEERS; i++) {
        b.peers[i].again = ELV_NEVER;
        join(i);
    }
    elv_loop_run(&loop, &b.host);
    const double took = (double)(now() - b.began) / 1e6;
    const struct elv_server_stats *stats = elv_server_stats(&b.server);
    struct elv_sqlite_stats ss;
    elv_sqlite_stats(store, &ss);
    const double rate = (double)b.n_commits / took;
    const double step_ms = (double)b.step_max / 1e3;
    printf("bench commits %.0f commits/s ref budget 5000 ratio %.2f\n", rate, rate / 5000);
    printf("bench commits_longest_step %.3f ms ref budget 1 ratio %.2f\n", step_ms, step_ms);
    printf("bench commits_batch %.1f transactions ref alone 1 ratio %.2f\n",
           (double)ss.transactions / (double)ss.batches,
           (double)ss.transactions / (double)ss.batches);
    elv_workers_close(workers);
    elv_host_free(&b.host);
    elv_loop_free(&loop);
    free(mem);
    return stats->updates_used >= b.n_commits ? 0 : 1;
}

static enum elv_err count_version(void *ctx, uint64_t number, struct elv_bytes value)
{
    uint64_t *n = ctx;
    struct elv_rec_version rec;
    (void)number;
    const enum elv_err err = elv_rec_version_decode(value, &rec);
    *n += err == ELV_OK ? rec.n_used : 0;
    return err;
}

static enum elv_err check_decision(void *ctx, uint64_t number, struct elv_bytes value)
{
    uint64_t *n_lost = ctx;
    struct elv_rec_decision rec;
    struct elv_sums sums;
    const enum elv_err err = elv_rec_decision_decode(value, &rec, &sums);
    if (err == ELV_OK && number <= PEERS)
        *n_lost -= rec.assignment >= b.peers[number].accepted;
    return err;
}

/* What was acknowledged is in the ledger: everybody's last decision, and all that closed rounds
 * counted. */
static int check_ledger(struct elv_sqlite *store)
{
    const struct elv_disk disk = elv_sqlite_disk(store);
    uint64_t n_lost = PEERS, n_used = 0;
    const bool readable =
        disk.scan(disk.self, ELV_TABLE_DECISION, &n_lost, check_decision) == ELV_OK &&
        disk.scan(disk.self, ELV_TABLE_VERSION, &n_used, count_version) == ELV_OK;
    if (readable && n_lost == 0 && n_used + PEERS >= b.n_commits)
        return 0;
    fprintf(stderr, "bench_commits: the ledger lacks what was acknowledged\n");
    return 1;
}

int main(int argc, char **argv)
{
    char dir[400], why[ELV_SQLITE_WHY_MAX], command[512];
    snprintf(dir, sizeof dir, "%s/bench_commits_XXXXXX", argc > 1 ? argv[1] : ".");
    if (mkdtemp(dir) == NULL) {
        fprintf(stderr, "%s: %s\n", dir, strerror(errno));
        return 1;
    }
    make_job();
    make_update();
    const struct elv_sqlite_cfg cfg = {.dir = dir, .job = "bench"};
    struct elv_sqlite *store = NULL;
    if (elv_sqlite_open(&store, &cfg, why) != ELV_OK) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    int rc = serve(store, argc > 2 ? atof(argv[2]) : 3);
    elv_sqlite_close(store);
    if (rc == 0 && elv_sqlite_open(&store, &cfg, why) == ELV_OK) {
        rc = check_ledger(store);
        elv_sqlite_close(store);
    }
    snprintf(command, sizeof command, "rm -r '%s'", dir);
    return system(command) == 0 ? rc : 1;
}
