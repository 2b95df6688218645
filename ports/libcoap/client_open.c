/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "ports/libcoap/client_internal.h"
#include "ports/libcoap/timer.h"

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Whom the server's certificate must name; NULL: nobody was named. An address names nobody. */
static const char *whom(const struct elv_coap_client_cfg *cfg, const struct elv_coap_client *c)
{
    uint8_t address[sizeof(struct in6_addr)];
    if (cfg->server_name != NULL && cfg->server_name[0] != '\0')
        return cfg->server_name;
    if (inet_pton(AF_INET, c->place.host, address) == 1 ||
        inet_pton(AF_INET6, c->place.host, address) == 1)
        return NULL;
    return c->place.host;
}

static const char *objection(const struct elv_coap_client_cfg *cfg, const struct elv_coap_client *c)
{
    if (!c->place.secure && !cfg->insecure)
        return "coap:// is in the clear, which has not been allowed";
    if (!elv_name_ok(cfg->job, ELV_JOB_NAME_MAX))
        return "the name of the job is not acceptable";
    if (cfg->cert == NULL && (cfg->identity.len == 0 || cfg->identity.len > sizeof c->identity))
        return "the identity must have 1 to 75 characters";
    if (cfg->cert == NULL && c->place.secure && (cfg->psk.len == 0 || cfg->psk.len > sizeof c->psk))
        return "the key must have 1 to 32 bytes";
    if (cfg->cert != NULL && whom(cfg, c) == NULL)
        return "a certificate needs the name that the server's certificate must say, besides its "
               "address";
    if (cfg->in_flight_max > 65535 || cfg->retries > 20 || cfg->ack_timeout_ms > 60000 ||
        cfg->dtls_timer_ms > ELV_COAP_DTLS_TIMER_MAX_MS)
        return "a limit is too large";
    return NULL;
}

static enum elv_err configure(struct elv_coap_client *c, const struct elv_coap_client_cfg *cfg,
                              struct elv_coap_problem *problem)
{
    if (elv_coap_place_parse(cfg->server, &c->place) != ELV_OK) {
        snprintf(problem->text, sizeof problem->text,
                 "cannot read the server's address '%s'; write coaps://host[:port]", cfg->server);
        return ELV_ERR_ARG;
    }
    const char *text = objection(cfg, c);
    if (text != NULL) {
        snprintf(problem->text, sizeof problem->text, "%s", text);
        return ELV_ERR_ARG;
    }
    c->cfg = *cfg;
    c->cfg.ack_timeout_ms = or_default(cfg->ack_timeout_ms, 1000);
    c->cfg.retries = or_default(cfg->retries, 4);
    c->cfg.dtls_timer_ms = or_default(cfg->dtls_timer_ms, 1000);
    c->cfg.in_flight_max = or_default(cfg->in_flight_max, 256);
    c->cfg.receive_buffer = or_default(cfg->receive_buffer, 1u << 20);
    memcpy(c->job, cfg->job.at, cfg->job.len);
    c->cfg.job.at = c->job;
    if (cfg->identity.len != 0 && cfg->identity.len <= sizeof c->identity)
        memcpy(c->identity, cfg->identity.at, cfg->identity.len);
    if (cfg->psk.len != 0 && cfg->psk.len <= sizeof c->psk)
        memcpy(c->psk, cfg->psk.at, cfg->psk.len);
    return ELV_OK;
}

static enum elv_err copy_cert(struct elv_coap_client *c, const struct elv_coap_client_cfg *cfg,
                              struct elv_coap_problem *problem)
{
    if (cfg->cert == NULL)
        return ELV_OK;
    const char *name = whom(cfg, c);
    const size_t len = strlen(name) + 1;
    c->server_name = malloc(len);
    if (c->server_name == NULL)
        return ELV_ERR_MEMORY;
    memcpy(c->server_name, name, len);
    return elv_coap_pem_copy(cfg->cert, &c->pem, problem);
}

static enum elv_err open_parts(struct elv_coap_client *c, const struct elv_coap_client_cfg *cfg,
                               struct elv_coap_problem *problem)
{
    enum elv_err err = configure(c, cfg, problem);
    if (err == ELV_OK)
        err = copy_cert(c, cfg, problem);
    if (err != ELV_OK)
        return err;
    uint32_t n = 16;
    while (n < 2 * c->cfg.in_flight_max)
        n *= 2;
    c->mask = n - 1;
    c->asked = calloc(n, sizeof *c->asked);
    coap_startup();
    coap_set_log_level(COAP_LOG_EMERG);
    coap_dtls_set_log_level(COAP_LOG_EMERG);
    c->context = coap_new_context(NULL);
    if (c->asked == NULL || c->context == NULL)
        return ELV_ERR_MEMORY;
    if (!elv_coap_set_dtls_timer(c->context, cfg->dtls_timer_ms)) {
        snprintf(problem->text, sizeof problem->text, "this libcoap has a fixed DTLS timer");
        return ELV_ERR_UNSUPPORTED;
    }
    coap_context_set_app_data(c->context, c);
    coap_context_set_block_mode(c->context, 0); /* bodies are one datagram; the manifest is ours */
    coap_register_response_handler(c->context, elv_coap_client_on_response);
    coap_register_nack_handler(c->context, elv_coap_client_on_nack);
    coap_register_event_handler(c->context, elv_coap_client_on_event);
    elv_coap_pump_init(&c->pump, c->context);
    struct elv_coap_traffic *before = elv_coap_traffic_begin(&c->status.traffic);
    elv_coap_line_open(c, &c->current);
    elv_coap_traffic_end(before);
    return ELV_OK;
}

enum elv_err elv_coap_client_open(const struct elv_coap_client_cfg *cfg,
                                  struct elv_coap_client **client, struct elv_coap_problem *problem)
{
    ELV_ASSERT(cfg->server != NULL && cfg->sink.event != NULL);
    *client = NULL;
    snprintf(problem->text, sizeof problem->text, "out of memory");
    struct elv_coap_client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ELV_ERR_MEMORY;
    const enum elv_err err = open_parts(c, cfg, problem);
    if (err != ELV_OK) {
        elv_coap_client_close(c);
        return err;
    }
    *client = c;
    return ELV_OK;
}

void elv_coap_client_close(struct elv_coap_client *c)
{
    if (c == NULL)
        return;
    if (c->context != NULL) {
        elv_coap_line_close(c, &c->next);
        elv_coap_line_close(c, &c->current);
        coap_free_context(c->context);
    }
    free(c->asked);
    free(c->server_name);
    elv_coap_pem_free(&c->pem);
    free(c);
}
