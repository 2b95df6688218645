/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/tls.c - certificates. */
#include "ports/libcoap/tls.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CERTIFICATE_HEADS = 15 }; /* of the message, in DTLS, and of the list in it */

bool elv_coap_peer_name(const coap_session_t *session, char out[ELV_COAP_IDENTITY_MAX], size_t *len)
{
    coap_tls_library_t library;
    const mbedtls_ssl_context *ssl = coap_session_get_tls(session, &library);
    if (ssl == NULL || library != COAP_TLS_LIBRARY_MBEDTLS)
        return false;
    const mbedtls_x509_crt *cert = mbedtls_ssl_get_peer_cert(ssl);
    if (cert == NULL || mbedtls_ssl_get_verify_result(ssl) != 0)
        return false;
    const mbedtls_asn1_named_data *name = mbedtls_asn1_find_named_data(
        &cert->subject, MBEDTLS_OID_AT_CN, MBEDTLS_OID_SIZE(MBEDTLS_OID_AT_CN));
    if (name == NULL || name->val.len == 0 || name->val.len > ELV_COAP_IDENTITY_MAX)
        return false;
    memcpy(out, name->val.p, name->val.len);
    *len = name->val.len;
    return true;
}

static bool copy_text(struct elv_bytes from, uint8_t **at, size_t *len)
{
    if (from.len == 0 || from.len > 65536)
        return false;
    *at = malloc(from.len + 1);
    if (*at == NULL)
        return false;
    memcpy(*at, from.at, from.len);
    (*at)[from.len] = 0;
    *len = from.len + 1;
    return true;
}

struct parsed {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_x509_crt ca, cert;
    mbedtls_pk_context key;
};

/* A Certificate message has to fit Mbed TLS's buffer; one that does not would leave the handshake
 * hanging without a word. Each certificate is preceded by its length, and all of them by headers.
 */
static bool fits_handshake(const mbedtls_x509_crt *chain)
{
    size_t len = CERTIFICATE_HEADS;
    for (; chain != NULL; chain = chain->next)
        len += 3 + chain->raw.len;
    return len <= MBEDTLS_SSL_OUT_CONTENT_LEN;
}

static const char *parse(struct parsed *p, const struct elv_coap_pem *pem)
{
    if (mbedtls_ctr_drbg_seed(&p->random, mbedtls_entropy_func, &p->entropy, NULL, 0) != 0)
        return "no random numbers";
    if (mbedtls_x509_crt_parse(&p->ca, pem->ca, pem->ca_len) != 0)
        return "the authority's certificate cannot be read";
    if (mbedtls_x509_crt_parse(&p->cert, pem->cert, pem->cert_len) != 0)
        return "the certificate cannot be read";
    if (!fits_handshake(&p->cert))
        return "the certificate, with those that it needs, is too long for a handshake";
    if (mbedtls_pk_parse_key(&p->key, pem->key, pem->key_len, NULL, 0, mbedtls_ctr_drbg_random,
                             &p->random) != 0)
        return "the private key cannot be read";
    if (mbedtls_pk_check_pair(&p->cert.pk, &p->key, mbedtls_ctr_drbg_random, &p->random) != 0)
        return "the private key is not the certificate's";
    return NULL;
}

static const char *complaint(const struct elv_coap_pem *pem)
{
    struct parsed p;
    mbedtls_entropy_init(&p.entropy);
    mbedtls_ctr_drbg_init(&p.random);
    mbedtls_x509_crt_init(&p.ca);
    mbedtls_x509_crt_init(&p.cert);
    mbedtls_pk_init(&p.key);
    const char *text = parse(&p, pem);
    mbedtls_pk_free(&p.key);
    mbedtls_x509_crt_free(&p.cert);
    mbedtls_x509_crt_free(&p.ca);
    mbedtls_ctr_drbg_free(&p.random);
    mbedtls_entropy_free(&p.entropy);
    return text;
}

enum elv_err elv_coap_pem_copy(const struct elv_coap_cert *from, struct elv_coap_pem *pem,
                               struct elv_coap_problem *problem)
{
    const char *text = "certificate, key or authority is empty or too long";
    *pem = (struct elv_coap_pem){0};
    if (copy_text(from->ca, &pem->ca, &pem->ca_len) &&
        copy_text(from->cert, &pem->cert, &pem->cert_len) &&
        copy_text(from->key, &pem->key, &pem->key_len))
        text = complaint(pem);
    if (text == NULL)
        return ELV_OK;
    snprintf(problem->text, sizeof problem->text, "%s", text);
    elv_coap_pem_free(pem);
    return ELV_ERR_AUTH;
}

void elv_coap_pem_free(struct elv_coap_pem *pem)
{
    free(pem->ca);
    free(pem->cert);
    free(pem->key);
    *pem = (struct elv_coap_pem){0};
}

void elv_coap_tls_mtu(const coap_session_t *session, unsigned mtu)
{
    coap_tls_library_t library;
    mbedtls_ssl_context *ssl = coap_session_get_tls(session, &library);
    if (ssl != NULL && library == COAP_TLS_LIBRARY_MBEDTLS)
        mbedtls_ssl_set_mtu(ssl, (uint16_t)mtu);
}

void elv_coap_pki_setup(const struct elv_coap_pem *pem, coap_dtls_pki_t *setup)
{
    *setup = (coap_dtls_pki_t){
        .version = COAP_DTLS_PKI_SETUP_VERSION,
        .verify_peer_cert = 1,
        .check_common_ca = 1,
        .cert_chain_validation = 1,
        .cert_chain_verify_depth = 2,
        .use_cid = 1,
    };
    setup->pki_key.key_type = COAP_PKI_KEY_PEM_BUF;
    setup->pki_key.key.pem_buf = (coap_pki_key_pem_buf_t){
        .ca_cert = pem->ca,
        .public_cert = pem->cert,
        .private_key = pem->key,
        .ca_cert_len = pem->ca_len,
        .public_cert_len = pem->cert_len,
        .private_key_len = pem->key_len,
    };
}
