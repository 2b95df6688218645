/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/server.h - a server node as CoAP resources over DTLS 1.2.
 *
 * Each request becomes a REQUEST event; the node's REPLY may come inside that event or later. One
 * job per server. Nothing is answered before a handshake has shown which client asks; the client
 * number is fixed then and stays with the session, whatever address its datagrams come from.
 *
 * All functions are called on the node's own thread; none waits. The memory used is bounded by the
 * configuration, not by what clients send. Libcoap keeps process-wide state: one open server and
 * any number of clients per process. */
#ifndef ELV_PORTS_LIBCOAP_SERVER_H
#define ELV_PORTS_LIBCOAP_SERVER_H

#include "common/port.h"
#include "ports/libcoap/credential.h"
#include "ports/libcoap/traffic.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_COAP_LISTEN_MAX 8u

struct elv_coap_key {
    uint32_t client;      /* the client number; not 0 */
    struct elv_bytes psk; /* 1..ELV_COAP_PSK_MAX bytes; not asked for when a certificate is shown */
};

/* Who may come in, asked during each handshake: a table that changes needs no restart. */
struct elv_coap_keys {
    void *self;
    /* Fills `*key`, whose bytes are borrowed until the next call. `identity` has 1 to
     * ELV_COAP_IDENTITY_MAX characters of the identity alphabet and '#'. Any error refuses;
     * ELV_ERR_AUTH says that the identity was revoked and is counted apart. */
    enum elv_err (*find)(void *self, struct elv_text identity, struct elv_coap_key *key);
    /* May be NULL. A handshake with `identity` has just been completed, which ends the life of
     * older generations of the same name: their sessions are closed if `find` refuses them now. */
    void (*used)(void *self, struct elv_text identity, uint32_t client);
};

struct elv_coap_server_cfg {
    /* "host", "host:port", "[v6]:port", with "coaps://" or nothing before it, or "coap://" for
     * datagrams in the clear, which needs `insecure`. Port 0: any. */
    const char *const *listen;
    uint32_t n_listen;
    struct elv_text job;
    struct elv_sink sink;
    struct elv_coap_keys keys;
    const struct elv_coap_cert *cert; /* NULL: keys only; else certificates are accepted besides */
    /* In the clear a client claims its identity in a query "i=IDENTITY" and is believed. */
    bool insecure;
    /* Limits; 0 takes the default. */
    uint32_t sessions_max;   /* 16384; beyond it the one longest unused is closed */
    uint32_t per_client_max; /* 4 sessions of one client; likewise */
    uint32_t half_open_max;  /* 1024 handshakes under way */
    uint32_t idle_s;         /* 86400: a session unused for so long is closed; at most 4000000 */
    uint32_t pending_max;    /* 4096 requests answered later; at most 32768; beyond it 5.03 */
    uint32_t ack_timeout_ms; /* 2000: first repetition of an answer given later; doubles, 4 times */
    uint32_t dtls_timer_ms;  /* 1000: likewise of a handshake's flights; needs a patched libcoap */
    uint32_t receive_buffer; /* 8388608 bytes asked of the system for each socket */
};

struct elv_coap_server_stats {
    uint64_t handshakes, refused_unknown, refused_revoked, refused_proof;
    uint64_t sessions_closed, sessions_evicted;
    uint32_t sessions; /* open now */
    uint32_t pending;  /* requests waiting for their REPLY now */
    uint64_t requests, too_large, overflowed;
    uint64_t replies[256]; /* by code */
    uint64_t dropped;      /* replies whose session had gone */
    uint64_t notifications;
    uint64_t bytes_in, bytes_out; /* CoAP payloads */
    struct elv_coap_traffic traffic;
};

struct elv_coap_server_info {
    uint32_t n_listen;
    uint16_t port[ELV_COAP_LISTEN_MAX]; /* as bound; 0: could not be determined */
    uint32_t receive_buffer;            /* bytes the system granted, the smallest; 0: unknown */
};

struct elv_coap_server;

/* On failure `*problem` holds a sentence. ELV_ERR_ARG: the configuration; ELV_ERR_IO: an address
 * cannot be bound; ELV_ERR_AUTH: certificate or key cannot be used; ELV_ERR_MEMORY. Texts and
 * buffers of `cfg` are copied. */
enum elv_err elv_coap_server_open(const struct elv_coap_server_cfg *cfg,
                                  struct elv_coap_server **server,
                                  struct elv_coap_problem *problem);
void elv_coap_server_close(struct elv_coap_server *server); /* NULL is fine */

struct elv_net elv_coap_server_net(struct elv_coap_server *server); /* REPLY, NOTIFY */
struct elv_source elv_coap_server_source(struct elv_coap_server *server);
const struct elv_coap_server_stats *elv_coap_server_stats(const struct elv_coap_server *server);
const struct elv_coap_server_info *elv_coap_server_info(const struct elv_coap_server *server);

/* Closes the sessions of a revoked client, at the latest when `ready` is called next. The program
 * tells its node. */
void elv_coap_server_drop(struct elv_coap_server *server, uint32_t client);

#ifdef __cplusplus
}
#endif
#endif
