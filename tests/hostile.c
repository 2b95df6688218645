/* SPDX-License-Identifier: Apache-2.0 */
/* tests/hostile.c - program: a malicious client against a live server, through the protocol only.
 *
 *     hostile PORT JOB CREDENTIAL N_PARAMS GROUP...
 *
 * Joins with a real key, acts out the groups named, and checks that each answer is the refusal that
 * common/WIRE.md promises. Whether the server lives on and others are served is for the script that
 * starts it (attack_server.sh). Exit code 1: some answer was not as it should be. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/codec.h"
#include "ports/posix/credential.h"
#include "tests/hostile.h"

enum { METHOD_PATCH = 6, NO_METHOD = 9 };

void expect(struct hostile *h, const char *what, const struct answer *a, uint8_t code,
            enum elv_reason reason)
{
    h->n_checks++;
    if (a->came && a->code == code && a->reason == reason)
        return;
    h->n_bad++;
    fprintf(stderr, "hostile: %s: answered %s%u.%02u %s, not %u.%02u %s\n", what,
            a->came ? "" : "nothing, ", a->code >> 5, a->code & 31u, elv_reason_text(a->reason),
            code >> 5, code & 31u, elv_reason_text(reason));
}

void check(struct hostile *h, const char *what, bool ok)
{
    h->n_checks++;
    if (ok)
        return;
    h->n_bad++;
    fprintf(stderr, "hostile: %s: failed\n", what);
}

const char *path_of(const struct hostile *h, const char *format, ...)
{
    static char text[8][256];
    static unsigned which;
    char *at = text[which++ % 8];
    va_list args;
    va_start(args, format);
    const int n = snprintf(at, 256, "j/%s", h->job);
    vsnprintf(at + n, 256 - (size_t)n, format, args);
    va_end(args);
    return at;
}

void ask_for(const char *path, uint8_t method, struct elv_bytes body, struct answer *a)
{
    net_ask(&(struct ask){.code = method, .path = path, .body = body}, a);
}

/* Joining. */

static bool read_manifest(struct hostile *h, uint8_t digest[8])
{
    static uint8_t all[ELV_MANIFEST_MAX];
    uint8_t sum[ELV_SHA256_LEN];
    size_t len = 0;
    struct answer a;
    do {
        const int64_t block[] = {23, (int64_t)(len / 1024 << 4 | 6), -1};
        net_ask(&(struct ask){.code = ELV_GET, .path = path_of(h, ""), .more = block}, &a);
        if (!a.came || a.code != ELV_CODE_CONTENT || a.len > sizeof all - len)
            return false;
        memcpy(all + len, a.body, a.len);
        len += a.len;
    } while (a.len == 1024);
    elv_sha256(all, len, sum);
    memcpy(digest, sum, 8);
    return true;
}

static struct elv_join proper_join(struct hostile *h, uint64_t boot, uint8_t codec)
{
    struct elv_join j = {.wire_min = ELV_WIRE_MIN,
                         .wire_max = ELV_WIRE_MAX,
                         .software = {.at = "elver/0.1.0", .len = 11},
                         .boot = boot,
                         .samples = 20,
                         .codecs = {codec},
                         .n_codecs = 1};
    check(h, "the manifest", read_manifest(h, j.manifest));
    return j;
}

static void send_join(const struct hostile *h, const struct elv_join *j, struct answer *a)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    if (elv_join_encode(j, body, sizeof body, &len) != ELV_OK)
        fprintf(stderr, "hostile: a join that cannot be encoded\n");
    ask_for(path_of(h, "/join"), ELV_POST, (struct elv_bytes){body, len}, a);
}

bool join_as(struct hostile *h, uint64_t boot, uint8_t codec)
{
    struct answer a = {0};
    const struct elv_join j = proper_join(h, boot, codec);
    for (int i = 0; i < 20; i++) {
        send_join(h, &j, &a);
        if (!a.came || a.code != ELV_CODE_UNAVAILABLE)
            break;
        net_idle(200); /* what was asked before is still on its way to the disk */
    }
    return a.came && a.code == ELV_CODE_CHANGED;
}

static bool has_work(struct hostile *h)
{
    struct answer a;
    struct elv_ticket t;
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    if (!a.came || a.code != ELV_CODE_CONTENT ||
        elv_ticket_decode((struct elv_bytes){a.body, a.len}, &t) != ELV_OK ||
        t.what != ELV_WHAT_TRAIN)
        return false;
    h->ticket = t;
    return true;
}

bool take_work(struct hostile *h)
{
    const uint32_t before = h->ticket.assignment;
    for (int i = 0; i < 600; i++) {
        if (has_work(h) && h->ticket.assignment != before)
            return true;
        net_idle(20);
    }
    fprintf(stderr, "hostile: no work for a long time\n");
    return false;
}

/* Groups. */

static void bad_paths(struct hostile *h)
{
    static const char *const tails[] = {
        "/",
        "//",
        "/join/",
        "/%2F",
        "/../x",
        "/join/../t",
        "/.",
        "/T",
        "/t ",
        "/t/0",
        "/m",
        "/m/0123456789abcdef",
        "/m/0/0",
        "/m//0",
        "/u",
        "/u/0/0",
        "/u/01/0",
        "/u/1/00",
        "/u/-1/0",
        "/u/+1/0",
        "/u/4294967296/0",
        "/u/1/4294967296",
        "/u/1/0/0",
        "/u/1//0",
        "/m/0123456789ABCDEF/0",
        "/d/0123456789abcdef0/0",
        "/t\n",
        "/\x80\xff",
        "/join\x01",
    };
    static const char *const whole[] = {
        "",
        "/",
        "j",
        "J/tiny",
        "j/",
        "j//t",
        "//j/tiny",
        "/j/tiny",
        "x/tiny/t",
        ".well-known",
        ".well-known/core/",
        "/.well-known/core",
        "..",
        "../../etc/passwd",
    };
    struct answer a;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        const char *path = path_of(h, "%s", tails[i]);
        ask_for(path, ELV_GET, (struct elv_bytes){0}, &a);
        expect(h, path, &a, ELV_CODE_NOT_FOUND, ELV_REASON_NONE);
    }
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        ask_for(whole[i], ELV_GET, (struct elv_bytes){0}, &a);
        expect(h, whole[i], &a, ELV_CODE_NOT_FOUND, ELV_REASON_NONE);
    }
    char longest[256];
    memset(longest, 'a', sizeof longest);
    memcpy(longest, "j/", 2);
    for (size_t len = 90; len < 250; len += 7) {
        longest[len] = 0;
        ask_for(longest, ELV_GET, (struct elv_bytes){0}, &a);
        expect(h, "a long path", &a, ELV_CODE_NOT_FOUND, ELV_REASON_NONE);
        longest[len] = 'a';
    }
    for (size_t i = 1; i < 250; i += 2)
        longest[i] = '/';
    longest[250] = 0;
    ask_for(longest, ELV_GET, (struct elv_bytes){0}, &a);
    expect(h, "many short parts", &a, ELV_CODE_NOT_FOUND, ELV_REASON_NONE);
    ask_for("j/other-job/t", ELV_GET, (struct elv_bytes){0}, &a);
    expect(h, "another job", &a, ELV_CODE_NOT_FOUND, ELV_REASON_NO_SUCH_JOB);
    ask_for(path_of(h, "/m/0123456789abcdef/0"), ELV_GET, (struct elv_bytes){0}, &a);
    expect(h, "a body nobody keeps", &a, ELV_CODE_NOT_FOUND, ELV_REASON_SUPERSEDED);
    ask_for(path_of(h, "/d/0000000000000000/4294967295"), ELV_GET, (struct elv_bytes){0}, &a);
    expect(h, "a step nobody keeps", &a, ELV_CODE_NOT_FOUND, ELV_REASON_SUPERSEDED);
}

static void bad_methods(struct hostile *h)
{
    const char *paths[] = {path_of(h, ""),       path_of(h, "/join"),
                           path_of(h, "/t"),     path_of(h, "/m/0123456789abcdef/0"),
                           path_of(h, "/u/1/0"), path_of(h, "/u/1"),
                           ".well-known/core"};
    static const uint8_t right[][2] = {{ELV_GET, 0}, {ELV_POST, ELV_DELETE}, {ELV_GET, 0},
                                       {ELV_GET, 0}, {ELV_PUT, 0},           {ELV_POST, 0},
                                       {ELV_GET, 0}};
    struct answer a;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        for (uint8_t method = ELV_GET; method <= METHOD_PATCH + 1; method++) {
            if (method == right[i][0] || method == right[i][1])
                continue;
            /* FETCH and its kin must say the format of a body, even of none. */
            net_ask(&(struct ask){.code = method, .path = paths[i], .format = 60}, &a);
            expect(h, paths[i], &a, ELV_CODE(4, 5), ELV_REASON_NONE);
        }
    }
    ask_for(paths[2], NO_METHOD, (struct elv_bytes){0}, &a);
    check(h, "a method that does not exist", a.came && a.code >> 5 == 4);
}

/* Options that announce much, or make no sense. */
static void bad_blocks(struct hostile *h)
{
    enum { BLOCK2 = 23, BLOCK1 = 27, SIZE2 = 28, SIZE1 = 60 };
    static const uint8_t body[64];
    static const int64_t more[][5] = {
        {BLOCK1, 0x0e, SIZE1, 4294967295, -1},     /* the first of many, 4 GiB - 1 announced */
        {BLOCK1, 0xfffffe, SIZE1, 4294967295, -1}, /* the last number there is */
        {BLOCK1, 0xfffff6, -1},
        {BLOCK1, 0x16, -1},
    };
    struct answer a;
    struct ask ask = {.code = ELV_POST, .path = path_of(h, "/join"), .body = {body, sizeof body}};
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        ask.more = more[i];
        net_ask(&ask, &a);
        expect(h, "a body in blocks", &a, ELV_CODE_TOO_LARGE, ELV_REASON_MALFORMED);
    }
    static const int64_t reserved[] = {BLOCK1, 0x07, -1}, far[] = {BLOCK2, 0xfffff6, -1},
                         odd[] = {BLOCK2, 0x07, -1}, strange[] = {HOSTILE_OPTION, 1, -1};
    ask.more = reserved;
    net_ask(&ask, &a);
    expect(h, "a reserved block size", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
    ask = (struct ask){.code = ELV_GET, .path = path_of(h, ""), .more = far};
    net_ask(&ask, &a);
    expect(h, "a block past the end", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_NONE);
    ask.more = odd;
    net_ask(&ask, &a);
    check(h, "a reserved block size of an answer", a.came && a.code == ELV_CODE_BAD_REQUEST);
    ask.more = strange;
    net_ask(&ask, &a);
    expect(h, "an unknown critical option", &a, ELV_CODE(4, 2), ELV_REASON_NONE);
    static uint8_t big[1080];
    ask = (struct ask){.code = ELV_POST, .path = path_of(h, "/join"), .body = {big, sizeof big}};
    net_ask(&ask, &a);
    expect(h, "a body too long", &a, ELV_CODE_TOO_LARGE, ELV_REASON_MALFORMED);
}

/* Whatever one does to a message, it is refused as malformed. */
static void spoil(struct hostile *h, const char *what, const char *path, const uint8_t *good,
                  size_t len)
{
    uint8_t bad[ELV_MSG_MAX + 8];
    struct answer a;
    for (size_t cut = 0; cut < len; cut++) {
        ask_for(path, ELV_POST, (struct elv_bytes){good, cut}, &a);
        expect(h, what, &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
    }
    memcpy(bad, good, len);
    bad[len] = 0;
    ask_for(path, ELV_POST, (struct elv_bytes){bad, len + 1}, &a);
    expect(h, "a byte too many", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
    static const uint8_t heads[] = {0xbf, 0x9f, 0xd9, 0xf7, 0xff, 0xf9, 0x1b, 0x5f, 0xbb, 0x00};
    for (size_t i = 0; i < sizeof heads; i++) { /* endless, tagged, undefined ... */
        bad[0] = heads[i];
        ask_for(path, ELV_POST, (struct elv_bytes){bad, len}, &a);
        expect(h, what, &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
    }
    memset(bad, 0x81, sizeof bad); /* arrays in arrays in arrays */
    ask_for(path, ELV_POST, (struct elv_bytes){bad, 1000}, &a);
    expect(h, "deep nesting", &a, ELV_CODE_BAD_REQUEST, ELV_REASON_MALFORMED);
}

static void malformed(struct hostile *h)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    const struct elv_join j = proper_join(h, 5, ELV_CODEC_F32);
    check(h, "a join", elv_join_encode(&j, body, sizeof body, &len) == ELV_OK);
    spoil(h, "a spoilt join", path_of(h, "/join"), body, len);
    const struct elv_commit c = {.status = ELV_STATUS_DECLINED, .reason = ELV_REASON_BUSY};
    check(h, "a commit", elv_commit_encode(&c, body, sizeof body, &len) == ELV_OK);
    if (!take_work(h))
        return;
    spoil(h, "a spoilt commit", path_of(h, "/u/%u", (unsigned)h->ticket.assignment), body, len);
}

static void bad_joins(struct hostile *h)
{
    struct answer a;
    const struct elv_join good = proper_join(h, 6, ELV_CODEC_F32);
    struct elv_join j = good;
    j.wire_min = j.wire_max = 4294967295u;
    send_join(h, &j, &a);
    expect(h, "a wire to come", &a, ELV_CODE_FORBIDDEN, ELV_REASON_WIRE_VERSION);
    j = good;
    j.codecs[0] = 255;
    send_join(h, &j, &a);
    expect(h, "no codec of the job's", &a, ELV_CODE_FORBIDDEN, ELV_REASON_NO_CODEC);
    j = good;
    j.memory = 1;
    send_join(h, &j, &a);
    expect(h, "a byte of memory", &a, ELV_CODE_FORBIDDEN, ELV_REASON_MODEL_TOO_BIG);
    j = good;
    j.manifest[3] ^= 1;
    send_join(h, &j, &a);
    expect(h, "another manifest", &a, ELV_CODE_CONFLICT, ELV_REASON_MANIFEST_OLD);
    j = good;
    j.memory = UINT64_MAX;
    j.speed = j.samples = UINT32_MAX;
    j.boot = UINT64_MAX;
    j.software = (struct elv_text){
        .at = "~!@#$%^&*()_+{}|:<>?-=[];',./ \"\\0123456789abcdefghijklmno", .len = 57};
    send_join(h, &j, &a);
    expect(h, "absurd abilities", &a, ELV_CODE_CHANGED, ELV_REASON_NONE);
}

/* Two processes on one identity: the older is kept out, and nothing else happens. */
static void twins(struct hostile *h)
{
    struct answer a;
    const struct elv_join one = proper_join(h, 101, ELV_CODEC_F32);
    struct elv_join two = one;
    two.boot = 102;
    send_join(h, &one, &a);
    expect(h, "the first twin", &a, ELV_CODE_CHANGED, ELV_REASON_NONE);
    send_join(h, &two, &a);
    expect(h, "the second twin", &a, ELV_CODE_CHANGED, ELV_REASON_NONE);
    for (int i = 0; i < 20; i++) {
        send_join(h, &one, &a);
        expect(h, "the first one again", &a, ELV_CODE_CONFLICT, ELV_REASON_SUPERSEDED);
    }
    for (uint64_t boot = 0; boot < 40; boot++) {
        two.boot = boot;
        send_join(h, &two, &a);
        expect(h, "many starts", &a, ELV_CODE_CHANGED, ELV_REASON_NONE);
    }
}

static void leave_and_go_on(struct hostile *h)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    struct answer a;
    if (!take_work(h))
        return;
    const char *work = path_of(h, "/u/%u", (unsigned)h->ticket.assignment);
    for (int i = 0; i < 3; i++) { /* the second time there is nothing to leave */
        ask_for(path_of(h, "/join"), ELV_DELETE, (struct elv_bytes){0}, &a);
        expect(h, "leaving", &a, ELV_CODE_DELETED, ELV_REASON_NONE);
    }
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    expect(h, "a ticket after leaving", &a, ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED);
    ask_for(path_of(h, "/u/%u/0", (unsigned)h->ticket.assignment), ELV_PUT, (struct elv_bytes){0},
            &a);
    expect(h, "a chunk after leaving", &a, ELV_CODE_FORBIDDEN, ELV_REASON_NOT_JOINED);
    const struct elv_commit c = {.status = ELV_STATUS_DECLINED, .reason = ELV_REASON_BUSY};
    check(h, "a commit", elv_commit_encode(&c, body, sizeof body, &len) == ELV_OK);
    ask_for(work, ELV_POST, (struct elv_bytes){body, len}, &a);
    check(h, "a commit after leaving", a.came && a.code >> 5 != 5);
    for (int i = 0; i < 20; i++) {
        check(h, "joining again", join_as(h, 7, ELV_CODEC_F32));
        ask_for(path_of(h, "/join"), ELV_DELETE, (struct elv_bytes){0}, &a);
        expect(h, "leaving again", &a, ELV_CODE_DELETED, ELV_REASON_NONE);
    }
    check(h, "joining at last", join_as(h, 8, ELV_CODEC_F32));
}

/* Requests whose answers nobody reads; those answered later fill the server's queues. */
static void flood(struct hostile *h)
{
    uint8_t body[ELV_MSG_MAX], commit[ELV_MSG_MAX];
    size_t len = 0, commit_len = 0;
    struct answer a;
    const struct elv_join j = proper_join(h, 9, ELV_CODEC_F32);
    const struct elv_commit c = {.status = ELV_STATUS_DECLINED, .reason = ELV_REASON_BUSY};
    check(h, "a join", elv_join_encode(&j, body, sizeof body, &len) == ELV_OK);
    check(h, "a commit", elv_commit_encode(&c, commit, sizeof commit, &commit_len) == ELV_OK);
    const struct ask asks[] = {
        {.code = ELV_GET, .path = path_of(h, "/t"), .unreliable = true},
        {.code = ELV_GET, .path = path_of(h, ""), .unreliable = true},
        {.code = ELV_POST, .path = path_of(h, "/join"), .body = {body, len}, .unreliable = true},
        {.code = ELV_POST,
         .path = path_of(h, "/u/%u", (unsigned)h->ticket.assignment + 1),
         .body = {commit, commit_len},
         .unreliable = true},
    };
    for (uint32_t i = 0; i < 10000; i++)
        net_throw(&asks[i % 7 < 4 ? 0 : i % 7 - 3]);
    net_idle(500);
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    check(h, "a ticket after the flood", a.came && a.code == ELV_CODE_CONTENT);
}

/* Requests whose answers want to be acknowledged, by one who never does. */
static void deaf(struct hostile *h)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    const struct elv_join j = proper_join(h, 10, ELV_CODEC_F32);
    check(h, "a join", elv_join_encode(&j, body, sizeof body, &len) == ELV_OK);
    const struct ask ask = {.code = ELV_POST, .path = path_of(h, "/join"), .body = {body, len}};
    for (uint32_t i = 0; i < 6000; i++)
        net_throw(&ask);
    net_close(); /* and is never heard of again */
    check(h, "a new association", net_open(h->port, h->identity, h->key, h->key_len));
    check(h, "joining over it", join_as(h, 11, ELV_CODEC_F32));
}

static void observers(struct hostile *h)
{
    static const int64_t observe[] = {6, 0, -1}, odd[] = {6, 77777, -1};
    struct answer a;
    for (int i = 0; i < 300; i++) {
        net_ask(&(struct ask){.code = ELV_GET,
                              .path = path_of(h, "/t"),
                              .more = i % 5 == 4 ? odd : observe,
                              .unreliable = i % 2 == 0},
                &a);
        check(h, "an observation", a.came && a.code == ELV_CODE_CONTENT);
    }
    net_ask(&(struct ask){.code = ELV_GET, .path = path_of(h, ""), .more = observe}, &a);
    check(h, "an observation of what does not change", a.came && a.code == ELV_CODE_CONTENT);
}

/* Two hundred handshakes stop half way; others still get in. */
static void handshakes(struct hostile *h)
{
    enum { N = 200 };
    static int fds[N];
    struct answer a;
    uint32_t n = 0;
    for (uint32_t i = 0; i < N; i++) {
        fds[i] = net_abandon(h->port);
        n += fds[i] >= 0;
    }
    check(h, "handshakes to abandon", n > N * 9 / 10);
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    check(h, "a ticket beside them", a.came && a.code == ELV_CODE_CONTENT);
    net_close();
    check(h, "a handshake beside them", net_open(h->port, h->identity, h->key, h->key_len));
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    check(h, "a ticket over the new one", a.came && a.code == ELV_CODE_CONTENT);
    for (uint32_t i = 0; i < N; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Datagrams of 1 to 40 bytes, from strangers and from the address of a live association. */
static void garbage(struct hostile *h)
{
    uint8_t bytes[48];
    uint32_t state = 12345;
    struct answer a;
    const struct sockaddr_in to = net_address(h->port);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    for (size_t len = 1; len <= 40; len++) {
        for (int k = 0; k < 20; k++) {
            for (size_t i = 0; i < len; i++)
                bytes[i] = (uint8_t)draw(&state);
            if (k % 4 != 0) { /* a record's head: type, version; its length may lie */
                static const uint8_t types[] = {20, 21, 22, 23, 24, 25};
                const uint8_t head[] = {types[draw(&state) % 6], 0xfe, 0xfd, 0,
                                        (uint8_t)(draw(&state) % 2)};
                memcpy(bytes, head, len < sizeof head ? len : sizeof head);
            }
            (void)!sendto(fd, bytes, len, 0, (const struct sockaddr *)&to, sizeof to);
            net_inject(bytes, len);
        }
        net_idle(1);
    }
    close(fd);
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    check(h, "a ticket over the same association", a.came && a.code == ELV_CODE_CONTENT);
}

/* Every type and code of a message, answers that nobody asked for among them. */
static void codes(struct hostile *h)
{
    static const uint8_t body[] = {0xa0};
    struct answer a;
    for (unsigned type = 0; type < 4; type++) {
        for (unsigned code = 0; code < 256; code++) {
            net_odd((uint8_t)type, (uint8_t)code, body, code % 2);
            if (code % 16 == 0)
                net_idle(1);
        }
    }
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    check(h, "a ticket after all codes", a.came && a.code == ELV_CODE_CONTENT);
}

/* A handshake message in fragments that lie about themselves, after a good cookie. */
static void send_fragments(int fd, uint32_t *state)
{
    uint8_t record[256] = {22, 0xfe, 0xfd};
    for (int i = 0; i < 40; i++) {
        const size_t len = 12 + draw(state) % 200;
        record[10] = (uint8_t)(2 + i); /* sequence number */
        record[11] = 0;
        record[12] = (uint8_t)len;
        for (size_t k = 13; k < 13 + len; k++)
            record[k] = (uint8_t)draw(state);
        record[13] = (uint8_t)(draw(state) % 24);      /* any message there is */
        record[14] = i % 3 == 0 ? 0xff : 0;            /* of 16 MiB */
        record[17] = 0, record[18] = (uint8_t)(i / 8); /* in order, or nearly */
        record[19] = i % 5 == 0 ? 0xff : 0;            /* far behind */
        record[22] = 0, record[23] = 0, record[24] = (uint8_t)(len - 12);
        (void)!send(fd, record, 13 + len, 0);
    }
}

static void fragments(struct hostile *h)
{
    uint32_t state = 99;
    uint8_t hello[256];
    struct answer a;
    for (int i = 0; i < 50; i++) {
        const int fd = net_abandon(h->port);
        check(h, "a handshake to spoil", fd >= 0);
        if (fd < 0)
            return;
        send_fragments(fd, &state);
        close(fd);
    }
    const size_t len = net_hello(hello);
    for (int i = 0; i < 20; i++) /* somebody who writes our address on it, and sees no answer */
        net_inject(hello, len);
    net_idle(50);
    ask_for(path_of(h, "/t"), ELV_GET, (struct elv_bytes){0}, &a);
    check(h, "a ticket over the same association", a.came && a.code == ELV_CODE_CONTENT);
    net_close();
    uint8_t wrong[32] = {0};
    for (int i = 0; i < 3; i++) {
        check(h, "a wrong key", !net_open(h->port, h->identity, wrong, h->key_len));
        net_close();
        check(h, "an unknown identity", !net_open(h->port, "nobody", h->key, h->key_len));
        net_close();
        check(h, "an identity that is none", !net_open(h->port, "../../#\n", h->key, h->key_len));
        net_close();
    }
    check(h, "the right key", net_open(h->port, h->identity, h->key, h->key_len));
}

/* Assignments that are not this client's to work on. */
static void assignments(struct hostile *h)
{
    uint8_t body[ELV_MSG_MAX];
    size_t len = 0;
    struct answer a;
    const struct elv_commit c = {.status = ELV_STATUS_DECLINED, .reason = ELV_REASON_BUSY};
    check(h, "a commit", elv_commit_encode(&c, body, sizeof body, &len) == ELV_OK);
    const struct elv_bytes commit = {body, len};
    for (int i = 0; i < 2; i++) {
        if (!take_work(h))
            return;
        ask_for(path_of(h, "/u/%u", (unsigned)h->ticket.assignment), ELV_POST, commit, &a);
        expect(h, "declining", &a, ELV_CODE_CHANGED, ELV_REASON_NONE);
    }
    if (!take_work(h))
        return;
    const uint32_t mine = h->ticket.assignment;
    const uint32_t future[] = {mine + 1, mine + 1000, 4294967295u};
    for (size_t i = 0; i < sizeof future / sizeof future[0]; i++) {
        ask_for(path_of(h, "/u/%u", (unsigned)future[i]), ELV_POST, commit, &a);
        expect(h, "an assignment to come", &a, ELV_CODE_CONFLICT, ELV_REASON_UNKNOWN_ASSIGNMENT);
        ask_for(path_of(h, "/u/%u/0", (unsigned)future[i]), ELV_PUT, commit, &a);
        expect(h, "a chunk to come", &a, ELV_CODE_CONFLICT, ELV_REASON_UNKNOWN_ASSIGNMENT);
    }
    for (uint32_t old = mine > 20 ? mine - 20 : 1; old + 1 < mine; old++) {
        ask_for(path_of(h, "/u/%u/0", (unsigned)old), ELV_PUT, commit, &a);
        check(h, "a chunk of an old assignment", a.came && a.code == ELV_CODE_CONFLICT);
        ask_for(path_of(h, "/u/%u", (unsigned)old), ELV_POST, commit, &a);
        check(h, "an old assignment", a.came && a.code == ELV_CODE_CONFLICT);
    }
}

static const struct {
    const char *name;
    void (*act)(struct hostile *h);
} groups[] = {
    {"paths", bad_paths},
    {"methods", bad_methods},
    {"blocks", bad_blocks},
    {"joins", bad_joins},
    {"twins", twins},
    {"malformed", malformed},
    {"assignments", assignments},
    {"chunks", bad_chunks},
    {"values", bad_values},
    {"q8", bad_q8},
    {"deflate", bad_deflate},
    {"codecs", bad_codecs},
    {"commits", bad_commits},
    {"leave", leave_and_go_on},
    {"observers", observers},
    {"flood", flood},
    {"deaf", deaf},
    {"codes", codes},
    {"fragments", fragments},
    {"handshakes", handshakes},
    {"garbage", garbage},
};

static bool act_out(struct hostile *h, const char *name)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strcmp(name, groups[i].name) != 0)
            continue;
        const uint32_t bad = h->n_bad, checks = h->n_checks;
        groups[i].act(h);
        if (has_work(h)) /* or the others would wait for this one */
            decline(h);
        printf("%s: %u of %u answers were not as they should be\n", name,
               (unsigned)(h->n_bad - bad), (unsigned)(h->n_checks - checks));
        fflush(stdout);
        return true;
    }
    fprintf(stderr, "hostile: there is no group '%s'\n", name);
    return false;
}

int main(int argc, char **argv)
{
    struct elv_credential c;
    struct elv_key_error e;
    if (argc < 6 || elv_credential_load(argv[3], &c, &e) != ELV_OK) {
        fprintf(stderr, "hostile PORT JOB CREDENTIAL N_PARAMS GROUP...\n");
        return 2;
    }
    struct hostile h = {.port = (uint16_t)strtoul(argv[1], NULL, 10),
                        .job = argv[2],
                        .identity = c.identity,
                        .key = c.key,
                        .key_len = c.key_len,
                        .n_params = (uint32_t)strtoul(argv[4], NULL, 10),
                        .nonce = (uint64_t)getpid() << 16};
    if (!net_open(h.port, h.identity, h.key, h.key_len)) {
        fprintf(stderr, "hostile: no association\n");
        return 1;
    }
    bool ok = join_as(&h, (uint64_t)getpid() << 20, ELV_CODEC_F32);
    check(&h, "joining", ok);
    for (int i = 5; ok && i < argc; i++)
        ok = act_out(&h, argv[i]);
    net_close();
    return ok && h.n_bad == 0 ? 0 : 1;
}
