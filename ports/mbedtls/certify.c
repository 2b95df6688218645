/* SPDX-License-Identifier: Apache-2.0 */
/* ports/mbedtls/certify.c - certificates by Mbed TLS. */
#define _POSIX_C_SOURCE 200809L /* gmtime_r, inet_pton */
#include "ports/mbedtls/certify.h"

#include <arpa/inet.h>
#include <mbedtls/asn1write.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/ecp.h>
#include <mbedtls/entropy.h>
#include <mbedtls/oid.h>
#include <mbedtls/pk.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NAME_MAX_LEN = 64, SERIAL_LEN = 16, DAY_S = 86400, PEM_MAX = 8192 };

/* Everything one operation needs, so that one place frees it. */
struct bench {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context random;
    mbedtls_pk_context key, issuer_key;
    mbedtls_x509_crt issuer, cert;
    mbedtls_x509write_cert draft;
};

static enum elv_err bench_init(struct bench *b)
{
    mbedtls_entropy_init(&b->entropy);
    mbedtls_ctr_drbg_init(&b->random);
    mbedtls_pk_init(&b->key);
    mbedtls_pk_init(&b->issuer_key);
    mbedtls_x509_crt_init(&b->issuer);
    mbedtls_x509_crt_init(&b->cert);
    mbedtls_x509write_crt_init(&b->draft);
    return mbedtls_ctr_drbg_seed(&b->random, mbedtls_entropy_func, &b->entropy, NULL, 0) == 0
               ? ELV_OK
               : ELV_ERR_IO;
}

static void bench_free(struct bench *b)
{
    mbedtls_x509write_crt_free(&b->draft);
    mbedtls_x509_crt_free(&b->cert);
    mbedtls_x509_crt_free(&b->issuer);
    mbedtls_pk_free(&b->issuer_key);
    mbedtls_pk_free(&b->key);
    mbedtls_ctr_drbg_free(&b->random);
    mbedtls_entropy_free(&b->entropy);
}

static bool name_ok(struct elv_text name)
{
    if (name.len == 0 || name.len > NAME_MAX_LEN || name.at[0] == '#')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] != '#' && !elv_name_ok((struct elv_text){name.at + i, 1}, 1))
            return false;
    }
    return true;
}

static enum elv_err make_key(struct bench *b)
{
    if (mbedtls_pk_setup(&b->key, mbedtls_pk_info_from_type(MBEDTLS_PK_ECKEY)) != 0 ||
        mbedtls_ecp_gen_key(MBEDTLS_ECP_DP_SECP256R1, mbedtls_pk_ec(b->key),
                            mbedtls_ctr_drbg_random, &b->random) != 0)
        return ELV_ERR_IO;
    return ELV_OK;
}

static bool stamp(time_t at, char out[16])
{
    struct tm tm;
    return gmtime_r(&at, &tm) != NULL && strftime(out, 16, "%Y%m%d%H%M%S", &tm) == 14;
}

static enum elv_err draft_common(struct bench *b, struct elv_text name, const char *issuer,
                                 uint32_t days)
{
    char subject[NAME_MAX_LEN + 8], from[16], to[16];
    uint8_t serial[SERIAL_LEN];
    const time_t now = time(NULL);
    snprintf(subject, sizeof subject, "CN=%.*s", (int)name.len, name.at);
    if (mbedtls_ctr_drbg_random(&b->random, serial, sizeof serial) != 0)
        return ELV_ERR_IO;
    serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive and without leading zeros */
    mbedtls_x509write_crt_set_version(&b->draft, MBEDTLS_X509_CRT_VERSION_3);
    mbedtls_x509write_crt_set_md_alg(&b->draft, MBEDTLS_MD_SHA256);
    mbedtls_x509write_crt_set_subject_key(&b->draft, &b->key);
    if (!stamp(now - DAY_S, from) || !stamp(now + (time_t)days * DAY_S, to) ||
        mbedtls_x509write_crt_set_serial_raw(&b->draft, serial, sizeof serial) != 0 ||
        mbedtls_x509write_crt_set_subject_name(&b->draft, subject) != 0 ||
        mbedtls_x509write_crt_set_issuer_name(&b->draft, issuer != NULL ? issuer : subject) != 0 ||
        mbedtls_x509write_crt_set_validity(&b->draft, from, to) != 0)
        return ELV_ERR_ARG;
    return ELV_OK;
}

static enum elv_err write_pems(struct bench *b, struct elv_pem *cert, struct elv_pem *key)
{
    if (mbedtls_x509write_crt_pem(&b->draft, (unsigned char *)cert->text, sizeof cert->text,
                                  mbedtls_ctr_drbg_random, &b->random) != 0 ||
        mbedtls_pk_write_key_pem(&b->key, (unsigned char *)key->text, sizeof key->text) != 0)
        return ELV_ERR_SPACE;
    cert->len = strlen(cert->text);
    key->len = strlen(key->text);
    return ELV_OK;
}

static enum elv_err draft_authority(struct bench *b, struct elv_text name, uint32_t days)
{
    enum elv_err err = make_key(b);
    if (err == ELV_OK)
        err = draft_common(b, name, NULL, days);
    if (err != ELV_OK)
        return err;
    mbedtls_x509write_crt_set_issuer_key(&b->draft, &b->key);
    if (mbedtls_x509write_crt_set_basic_constraints(&b->draft, 1, 0) != 0 ||
        mbedtls_x509write_crt_set_key_usage(&b->draft, MBEDTLS_X509_KU_KEY_CERT_SIGN |
                                                           MBEDTLS_X509_KU_CRL_SIGN) != 0)
        return ELV_ERR_MEMORY;
    return ELV_OK;
}

enum elv_err elv_certify_authority(struct elv_text name, uint32_t days, struct elv_pem *cert,
                                   struct elv_pem *key)
{
    struct bench b;
    if (!name_ok(name) || days == 0 || days > ELV_CERTIFY_DAYS_MAX)
        return ELV_ERR_ARG;
    enum elv_err err = bench_init(&b);
    if (err == ELV_OK)
        err = draft_authority(&b, name, days);
    if (err == ELV_OK)
        err = write_pems(&b, cert, key);
    bench_free(&b);
    return err;
}

/* Mbed TLS wants PEM text to end with a zero. */
static const uint8_t *with_zero(struct elv_bytes pem, uint8_t buffer[PEM_MAX])
{
    if (pem.len == 0 || pem.len >= PEM_MAX)
        return NULL;
    memcpy(buffer, pem.at, pem.len);
    buffer[pem.len] = 0;
    return buffer;
}

static enum elv_err read_cert(mbedtls_x509_crt *cert, struct elv_bytes pem)
{
    uint8_t buffer[PEM_MAX];
    return with_zero(pem, buffer) != NULL && mbedtls_x509_crt_parse(cert, buffer, pem.len + 1) == 0
               ? ELV_OK
               : ELV_ERR_FORMAT;
}

static enum elv_err read_key(struct bench *b, mbedtls_pk_context *key, struct elv_bytes pem)
{
    uint8_t buffer[PEM_MAX];
    const bool ok = with_zero(pem, buffer) != NULL &&
                    mbedtls_pk_parse_key(key, buffer, pem.len + 1, NULL, 0, mbedtls_ctr_drbg_random,
                                         &b->random) == 0;
    memset(buffer, 0, sizeof buffer);
    return ok ? ELV_OK : ELV_ERR_FORMAT;
}

static enum elv_err read_authority(struct bench *b, const struct elv_certified *authority)
{
    if (read_cert(&b->issuer, authority->cert) != ELV_OK ||
        read_key(b, &b->issuer_key, authority->key) != ELV_OK ||
        mbedtls_x509_crt_get_ca_istrue(&b->issuer) != 1 ||
        mbedtls_pk_check_pair(&b->issuer.pk, &b->issuer_key, mbedtls_ctr_drbg_random, &b->random) !=
            0)
        return ELV_ERR_AUTH;
    return ELV_OK;
}

/* Hosts are compared with the alternative names when there are any. */
static enum elv_err add_host(struct bench *b, struct elv_text name)
{
    char text[NAME_MAX_LEN + 1];
    uint8_t address[16];
    mbedtls_x509_san_list host = {0};
    memcpy(text, name.at, name.len);
    text[name.len] = '\0';
    const bool v4 = inet_pton(AF_INET, text, address) == 1;
    if (v4 || inet_pton(AF_INET6, text, address) == 1) {
        host.node.type = MBEDTLS_X509_SAN_IP_ADDRESS;
        host.node.san.unstructured_name.p = address;
        host.node.san.unstructured_name.len = v4 ? 4 : 16;
    } else {
        host.node.type = MBEDTLS_X509_SAN_DNS_NAME;
        host.node.san.unstructured_name.p = (unsigned char *)text;
        host.node.san.unstructured_name.len = name.len;
    }
    return mbedtls_x509write_crt_set_subject_alternative_name(&b->draft, &host) == 0
               ? ELV_OK
               : ELV_ERR_MEMORY;
}

static enum elv_err add_purpose(struct bench *b, bool server)
{
    const char *oid = server ? MBEDTLS_OID_SERVER_AUTH : MBEDTLS_OID_CLIENT_AUTH;
    mbedtls_asn1_sequence purpose = {0};
    purpose.buf.tag = MBEDTLS_ASN1_OID;
    purpose.buf.p = (unsigned char *)(uintptr_t)oid; /* read only, whatever its type says */
    purpose.buf.len = strlen(oid);
    return mbedtls_x509write_crt_set_ext_key_usage(&b->draft, &purpose) == 0 &&
                   mbedtls_x509write_crt_set_key_usage(&b->draft,
                                                       MBEDTLS_X509_KU_DIGITAL_SIGNATURE) == 0 &&
                   mbedtls_x509write_crt_set_basic_constraints(&b->draft, 0, -1) == 0
               ? ELV_OK
               : ELV_ERR_MEMORY;
}

static enum elv_err draft_issued(struct bench *b, const struct elv_certified *authority,
                                 const struct elv_certify_order *order)
{
    char issuer[512];
    enum elv_err err = read_authority(b, authority);
    if (err == ELV_OK && mbedtls_x509_dn_gets(issuer, sizeof issuer, &b->issuer.subject) < 0)
        err = ELV_ERR_AUTH;
    if (err == ELV_OK)
        err = make_key(b);
    if (err == ELV_OK)
        err = draft_common(b, order->name, issuer, order->days);
    if (err != ELV_OK)
        return err;
    mbedtls_x509write_crt_set_issuer_key(&b->draft, &b->issuer_key);
    err = add_purpose(b, order->server);
    if (err == ELV_OK && order->server)
        err = add_host(b, order->name);
    return err;
}

enum elv_err elv_certify_issue(const struct elv_certified *authority,
                               const struct elv_certify_order *order, struct elv_pem *cert,
                               struct elv_pem *key)
{
    struct bench b;
    if (!name_ok(order->name) || order->days == 0 || order->days > ELV_CERTIFY_DAYS_MAX)
        return ELV_ERR_ARG;
    enum elv_err err = bench_init(&b);
    if (err == ELV_OK)
        err = draft_issued(&b, authority, order);
    if (err == ELV_OK)
        err = write_pems(&b, cert, key);
    bench_free(&b);
    return err;
}

static enum elv_err check_with(struct bench *b, const struct elv_certified *authority,
                               const struct elv_certified *own,
                               const struct elv_certify_order *order)
{
    char name[NAME_MAX_LEN + 1];
    uint32_t flags = 0;
    if (read_cert(&b->issuer, authority->cert) != ELV_OK ||
        read_cert(&b->cert, own->cert) != ELV_OK || read_key(b, &b->key, own->key) != ELV_OK)
        return ELV_ERR_FORMAT;
    memcpy(name, order->name.at, order->name.len);
    name[order->name.len] = '\0';
    const char *oid = order->server ? MBEDTLS_OID_SERVER_AUTH : MBEDTLS_OID_CLIENT_AUTH;
    if (mbedtls_pk_check_pair(&b->cert.pk, &b->key, mbedtls_ctr_drbg_random, &b->random) != 0 ||
        mbedtls_x509_crt_verify(&b->cert, &b->issuer, NULL, name, &flags, NULL, NULL) != 0 ||
        mbedtls_x509_crt_check_extended_key_usage(&b->cert, oid, strlen(oid)) != 0)
        return ELV_ERR_AUTH;
    return ELV_OK;
}

enum elv_err elv_certify_check(const struct elv_certified *authority,
                               const struct elv_certified *own,
                               const struct elv_certify_order *order)
{
    struct bench b;
    if (!name_ok(order->name))
        return ELV_ERR_ARG;
    enum elv_err err = bench_init(&b);
    if (err == ELV_OK)
        err = check_with(&b, authority, own, order);
    bench_free(&b);
    return err;
}
