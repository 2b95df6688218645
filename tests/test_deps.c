/* SPDX-License-Identifier: Apache-2.0 */
/* What Elver relies on in the libcoap and Mbed TLS it is linked with, whoever built them: a library
 * with another configuration works until the day it is attacked or a link is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <coap3/coap.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ciphersuites.h>
#include <mbedtls/version.h>

static void versions_are_those_that_were_verified(void **state)
{
    (void)state;
    assert_true(LIBCOAP_VERSION >= 4003005U);
    assert_true(mbedtls_version_get_number() >= 0x03060700);
    assert_true(mbedtls_version_get_number() < 0x04000000);
    assert_int_equal(mbedtls_version_get_number(), MBEDTLS_VERSION_NUMBER);
}

static void libcoap_speaks_dtls_through_mbedtls_with_both_kinds_of_credentials(void **state)
{
    (void)state;
    assert_int_equal(coap_get_tls_library_version()->type, COAP_TLS_LIBRARY_MBEDTLS);
    assert_true(coap_dtls_is_supported());
    assert_true(coap_dtls_psk_is_supported());
    assert_true(coap_dtls_pki_is_supported());
    assert_true(coap_dtls_cid_is_supported());
}

static void what_has_been_a_source_of_vulnerabilities_is_compiled_out(void **state)
{
    (void)state;
    static const char *const out[] = {
#ifdef MBEDTLS_SSL_RENEGOTIATION
        "renegotiation",
#endif
#ifdef MBEDTLS_SSL_VARIABLE_BUFFER_LENGTH
        "buffers that change size",
#endif
#ifdef MBEDTLS_SSL_SESSION_TICKETS
        "session tickets",
#endif
#ifdef MBEDTLS_SSL_CONTEXT_SERIALIZATION
        "serialised contexts",
#endif
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
        "TLS 1.3",
#endif
#ifdef MBEDTLS_KEY_EXCHANGE_ECDHE_PSK_ENABLED
        "ECDHE-PSK",
#endif
#if defined(MBEDTLS_KEY_EXCHANGE_DHE_PSK_ENABLED) || defined(MBEDTLS_KEY_EXCHANGE_DHE_RSA_ENABLED)
        "finite field Diffie-Hellman",
#endif
#if defined(MBEDTLS_KEY_EXCHANGE_RSA_PSK_ENABLED) || defined(MBEDTLS_KEY_EXCHANGE_RSA_ENABLED)
        "RSA key exchange",
#endif
        NULL,
    };
    for (size_t i = 0; out[i] != NULL; i++)
        fail_msg("Mbed TLS is built with %s", out[i]);
}

static void what_sessions_need_is_compiled_in(void **state)
{
    (void)state;
#if !defined(MBEDTLS_SSL_DTLS_CONNECTION_ID) || MBEDTLS_SSL_DTLS_CONNECTION_ID_COMPAT != 0
    fail_msg("no Connection ID as in RFC 9146");
#endif
#if !defined(MBEDTLS_SSL_DTLS_ANTI_REPLAY) || !defined(MBEDTLS_SSL_DTLS_HELLO_VERIFY)
    fail_msg("no protection against replays or spoofed addresses");
#endif
#if !defined(MBEDTLS_SSL_EXTENDED_MASTER_SECRET)
    fail_msg("no extended master secret");
#endif
#if !defined(MBEDTLS_THREADING_PTHREAD)
    fail_msg("Mbed TLS may be used from one thread only");
#endif
    /* A chunk with its CoAP header fits, and the handshake's largest message. A receive buffer more
     * than twice the size of the send buffer was an overflow once (CVE-2022-46393). */
    assert_true(MBEDTLS_SSL_IN_CONTENT_LEN >= 2048);
    assert_true(MBEDTLS_SSL_OUT_CONTENT_LEN >= 2048);
    assert_true(MBEDTLS_SSL_IN_CONTENT_LEN <= 2 * MBEDTLS_SSL_OUT_CONTENT_LEN);
}

static void only_suites_of_the_iot_profile_with_aead_ciphers_are_offered(void **state)
{
    (void)state;
    static const int allowed[] = {
        MBEDTLS_TLS_PSK_WITH_AES_128_CCM_8,       MBEDTLS_TLS_PSK_WITH_AES_128_GCM_SHA256,
        MBEDTLS_TLS_PSK_WITH_AES_128_CCM,         MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8,
        MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CCM, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    };
    unsigned psk = 0, ecdsa = 0;
    for (const int *suite = mbedtls_ssl_list_ciphersuites(); *suite != 0; suite++) {
        const char *name = mbedtls_ssl_get_ciphersuite_name(*suite);
        bool found = false;
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
            found = found || allowed[i] == *suite;
        if (!found)
            fail_msg("%s is offered", name);
        psk += strncmp(name, "TLS-PSK-", 8) == 0;
        ecdsa += strncmp(name, "TLS-ECDHE-ECDSA-", 16) == 0;
    }
    assert_true(psk > 0);
    assert_true(ecdsa > 0);
}

static void a_retransmission_may_come_after_less_than_a_second(void **state)
{
    (void)state;
    coap_startup();
    coap_context_t *context = coap_new_context(NULL);
    assert_non_null(context);
    coap_address_t loopback;
    coap_address_init(&loopback);
    loopback.size = sizeof loopback.addr.sin;
    loopback.addr.sin.sin_family = AF_INET;
    loopback.addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    loopback.addr.sin.sin_port = htons(5683);
    coap_session_t *session =
        coap_new_client_session(context, NULL, &loopback, COAP_PROTO_UDP); /* sends nothing */
    assert_non_null(session);

    coap_session_set_ack_timeout(session, (coap_fixed_point_t){0, 200});
    const coap_fixed_point_t got = coap_session_get_ack_timeout(session);
    if (got.integer_part != 0 || got.fractional_part != 200)
        fail_msg("libcoap ignores timeouts below one second: see ports/libcoap/patches");

    coap_session_release(session);
    coap_free_context(context);
    coap_cleanup();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_those_that_were_verified),
        cmocka_unit_test(libcoap_speaks_dtls_through_mbedtls_with_both_kinds_of_credentials),
        cmocka_unit_test(what_has_been_a_source_of_vulnerabilities_is_compiled_out),
        cmocka_unit_test(what_sessions_need_is_compiled_in),
        cmocka_unit_test(only_suites_of_the_iot_profile_with_aead_ciphers_are_offered),
        cmocka_unit_test(a_retransmission_may_come_after_less_than_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
