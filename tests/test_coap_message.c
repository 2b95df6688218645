/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ports/libcoap/message.h"

/* The path of a message whose Uri-Path options are the parts of `text`, cut at '|'. */
static bool path_of(const char *text, char out[ELV_PATH_MAX], size_t *len)
{
    coap_pdu_t *pdu = coap_pdu_init(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET, 1, 1200);
    assert_non_null(pdu);
    while (text != NULL) {
        const char *end = strchr(text, '|');
        const size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
        assert_int_not_equal(coap_add_option(pdu, COAP_OPTION_URI_PATH, n, (const uint8_t *)text),
                             0);
        text = end != NULL ? end + 1 : NULL;
    }
    const bool ok = elv_coap_path(pdu, out, len);
    coap_delete_pdu(pdu);
    return ok;
}

static void a_path_is_its_parts_with_slashes_between_them_the_empty_ones_too(void **state)
{
    static const struct {
        const char *parts, *path; /* NULL: refused */
    } rows[] = {
        {"j|tiny|t", "j/tiny/t"},
        {"j", "j"},
        {"", ""},
        {"j|tiny|", "j/tiny/"},
        {"|j|tiny", "/j/tiny"},
        {"||j|tiny", "//j/tiny"},
        {"j||tiny", "j//tiny"},
        {"|", "/"},
        {"j|ti/ny", NULL},
        {"/", NULL},
        {"..|x", "../x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[ELV_PATH_MAX];
        size_t len = 99;
        const bool ok = path_of(rows[i].parts, path, &len);
        assert_int_equal(ok, rows[i].path != NULL);
        if (!ok)
            continue;
        assert_int_equal(len, strlen(rows[i].path));
        assert_memory_equal(path, rows[i].path, len);
    }
}

static void a_path_fills_its_buffer_and_no_byte_more(void **state)
{
    char path[ELV_PATH_MAX], parts[ELV_PATH_MAX + 8];
    size_t len;
    (void)state;
    memset(parts, 'a', sizeof parts);
    for (size_t n = ELV_PATH_MAX - 6; n < ELV_PATH_MAX + 6; n++) {
        for (size_t cut = 1; cut < n; cut += 7) {
            parts[cut] = '|';
            parts[n] = 0;
            assert_int_equal(path_of(parts, path, &len), n < ELV_PATH_MAX);
            parts[cut] = parts[n] = 'a';
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_its_parts_with_slashes_between_them_the_empty_ones_too),
        cmocka_unit_test(a_path_fills_its_buffer_and_no_byte_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
