/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/libcoap/server_internal.h"
#include "ports/libcoap/timer.h"

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

static enum elv_err configure(struct elv_coap_server *s, const struct elv_coap_server_cfg *cfg,
                              struct elv_coap_problem *problem)
{
    s->cfg = *cfg;
    s->cfg.sessions_max = or_default(cfg->sessions_max, 16384);
    s->cfg.per_client_max = or_default(cfg->per_client_max, 4);
    s->cfg.half_open_max = or_default(cfg->half_open_max, 1024);
    s->cfg.idle_s = or_default(cfg->idle_s, 86400);
    s->cfg.pending_max = or_default(cfg->pending_max, 4096);
    s->cfg.ack_timeout_ms = or_default(cfg->ack_timeout_ms, 2000);
    s->cfg.receive_buffer = or_default(cfg->receive_buffer, 8u << 20);
    const char *text = NULL;
    if (cfg->n_listen == 0 || cfg->n_listen > ELV_COAP_LISTEN_MAX)
        text = "between 1 and 8 addresses to listen on are needed";
    else if (!elv_name_ok(cfg->job, ELV_JOB_NAME_MAX))
        text = "the name of the job is not acceptable";
    else if (s->cfg.pending_max > 1u << ELV_COAP_SLOT_BITS || s->cfg.sessions_max > 1u << 20 ||
             s->cfg.half_open_max > 1u << 16 || s->cfg.ack_timeout_ms > 60000 ||
             s->cfg.dtls_timer_ms > ELV_COAP_DTLS_TIMER_MAX_MS || s->cfg.idle_s > 4000000)
        text = "a limit is too large";
    if (text != NULL) {
        snprintf(problem->text, sizeof problem->text, "%s", text);
        return ELV_ERR_ARG;
    }
    memcpy(s->job, cfg->job.at, cfg->job.len);
    return ELV_OK;
}

static void write_links(struct elv_coap_server *s)
{
    const int n = (int)s->cfg.job.len;
    const char *j = s->job;
    const int len = snprintf(s->links, sizeof s->links,
                             "</j/%.*s>;rt=\"elver.manifest\";ct=60,"
                             "</j/%.*s/join>;rt=\"elver.join\";ct=60,"
                             "</j/%.*s/t>;rt=\"elver.ticket\";ct=60;obs,"
                             "</j/%.*s/m>;rt=\"elver.model\";ct=42,"
                             "</j/%.*s/d>;rt=\"elver.step\";ct=42,"
                             "</j/%.*s/u>;rt=\"elver.update\";ct=42",
                             n, j, n, j, n, j, n, j, n, j, n, j);
    ELV_ASSERT(len > 0 && (size_t)len < sizeof s->links);
    s->links_len = (size_t)len;
}

static enum elv_err set_credentials(struct elv_coap_server *s, struct elv_coap_problem *problem)
{
    coap_dtls_spsk_t psk = {
        .version = COAP_DTLS_SPSK_SETUP_VERSION,
        .validate_id_call_back = elv_coap_server_on_identity,
        .id_call_back_arg = s,
    };
    /* Never used: the callback decides. Libcoap wants the fields to be filled. */
    psk.psk_info.hint = (coap_bin_const_t){0, (const uint8_t *)""};
    if (!coap_context_set_psk2(s->context, &psk)) {
        snprintf(problem->text, sizeof problem->text, "DTLS with keys is not available");
        return ELV_ERR_UNSUPPORTED;
    }
    if (s->cfg.cert == NULL)
        return ELV_OK;
    coap_dtls_pki_t pki;
    const enum elv_err err = elv_coap_pem_copy(s->cfg.cert, &s->pem, problem);
    if (err != ELV_OK)
        return err;
    elv_coap_pki_setup(&s->pem, &pki);
    if (!coap_context_set_pki(s->context, &pki)) {
        snprintf(problem->text, sizeof problem->text, "DTLS with certificates is not available");
        return ELV_ERR_UNSUPPORTED;
    }
    return ELV_OK;
}

static enum elv_err add_resource(struct elv_coap_server *s)
{
    /* One handler sees every path, so an unknown one is answered by our rules, not libcoap's. */
    coap_resource_t *all = coap_resource_unknown_init2(elv_coap_server_on_request,
                                                       COAP_RESOURCE_HANDLE_WELLKNOWN_CORE);
    if (all == NULL)
        return ELV_ERR_MEMORY;
    for (int method = COAP_REQUEST_GET; method <= COAP_REQUEST_IPATCH; method++)
        coap_register_request_handler(all, (coap_request_t)method, elv_coap_server_on_request);
    coap_add_resource(s->context, all);
    return ELV_OK;
}

static enum elv_err listen_on(struct elv_coap_server *s, const char *text,
                              struct elv_coap_problem *problem)
{
    struct elv_coap_place place;
    coap_address_t address;
    if (elv_coap_place_parse(text, &place) != ELV_OK) {
        snprintf(problem->text, sizeof problem->text,
                 "cannot read the address '%s'; write host, host:port or [IPv6]:port, a port up "
                 "to 65535",
                 text);
        return ELV_ERR_ARG;
    }
    if (!place.secure && !s->cfg.insecure) {
        snprintf(problem->text, sizeof problem->text,
                 "'%s' would be in the clear, which has not been allowed", text);
        return ELV_ERR_ARG;
    }
    if (elv_coap_resolve(&place, &address, 1) == 0) {
        snprintf(problem->text, sizeof problem->text, "no such host: '%s'", text);
        return ELV_ERR_IO;
    }
    const int fd = elv_coap_next_socket();
    coap_endpoint_t *endpoint =
        coap_new_endpoint(s->context, &address, place.secure ? COAP_PROTO_DTLS : COAP_PROTO_UDP);
    if (endpoint == NULL) {
        snprintf(problem->text, sizeof problem->text,
                 "cannot listen on '%s': not this machine's address, or in use", text);
        return ELV_ERR_IO;
    }
    elv_coap_own(fd);
    coap_endpoint_set_default_mtu(endpoint, ELV_COAP_MTU);
    struct elv_coap_server_info *info = &s->info;
    const uint32_t got = elv_coap_grow(fd, s->cfg.receive_buffer, &info->port[info->n_listen]);
    if (info->n_listen == 0 || got < info->receive_buffer)
        info->receive_buffer = got;
    info->n_listen++;
    return ELV_OK;
}

static enum elv_err open_context(struct elv_coap_server *s, struct elv_coap_problem *problem)
{
    coap_startup();
    coap_set_log_level(COAP_LOG_EMERG);
    coap_dtls_set_log_level(COAP_LOG_EMERG);
    s->context = coap_new_context(NULL);
    if (s->context == NULL)
        return ELV_ERR_MEMORY;
    coap_context_set_app_data(s->context, s);
    coap_context_set_block_mode(s->context, 0); /* bodies are one datagram; see message.h */
    coap_context_set_session_timeout(s->context, s->cfg.idle_s);
    coap_context_set_max_handshake_sessions(s->context, s->cfg.half_open_max);
    /* A backstop only: our own limits close sessions earlier, and by better reasons. */
    coap_context_set_max_idle_sessions(s->context, s->seats.cap);
    coap_register_event_handler(s->context, elv_coap_server_on_event);
    coap_register_nack_handler(s->context, elv_coap_server_on_nack);
    if (!elv_coap_set_dtls_timer(s->context, s->cfg.dtls_timer_ms)) {
        snprintf(problem->text, sizeof problem->text, "this libcoap has a fixed DTLS timer");
        return ELV_ERR_UNSUPPORTED;
    }
    enum elv_err err = set_credentials(s, problem);
    if (err == ELV_OK)
        err = add_resource(s);
    for (uint32_t i = 0; err == ELV_OK && i < s->cfg.n_listen; i++)
        err = listen_on(s, s->cfg.listen[i], problem);
    elv_coap_pump_init(&s->pump, s->context);
    return err;
}

static enum elv_err open_parts(struct elv_coap_server *s, const struct elv_coap_server_cfg *cfg,
                               struct elv_coap_problem *problem)
{
    enum elv_err err = configure(s, cfg, problem);
    if (err != ELV_OK)
        return err;
    write_links(s);
    s->pending = calloc(s->cfg.pending_max, sizeof *s->pending);
    if (s->pending == NULL)
        return ELV_ERR_MEMORY;
    err = elv_coap_seats_init(&s->seats, s->cfg.sessions_max + 2 * s->cfg.half_open_max + 64);
    return err == ELV_OK ? open_context(s, problem) : err;
}

enum elv_err elv_coap_server_open(const struct elv_coap_server_cfg *cfg,
                                  struct elv_coap_server **server, struct elv_coap_problem *problem)
{
    ELV_ASSERT(cfg->keys.find != NULL && cfg->sink.event != NULL);
    *server = NULL;
    snprintf(problem->text, sizeof problem->text, "out of memory");
    struct elv_coap_server *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ELV_ERR_MEMORY;
    const enum elv_err err = open_parts(s, cfg, problem);
    if (err != ELV_OK) {
        elv_coap_server_close(s);
        return err;
    }
    s->cfg.cert = NULL; /* the caller's; copied by now, as are these */
    s->cfg.listen = NULL;
    s->cfg.job.at = s->job;
    *server = s;
    return ELV_OK;
}

void elv_coap_server_close(struct elv_coap_server *s)
{
    if (s == NULL)
        return;
    if (s->context != NULL)
        coap_free_context(s->context);
    elv_coap_seats_free(&s->seats);
    elv_coap_pem_free(&s->pem);
    free(s->pending);
    free(s);
}
