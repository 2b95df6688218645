/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is refused with a reason, or what it prints as reads back as the same credential. */
#include <string.h>

#include "common/assert.h"
#include "ports/posix/credential.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elv_credential c, again;
    struct elv_key_error e;
    if (elv_credential_parse((struct elv_bytes){data, size}, &c, &e) != ELV_OK) {
        ELV_ASSERT(e.why[0] != 0);
        return 0;
    }
    char text[ELV_CREDENTIAL_TEXT_MAX];
    const size_t len = elv_credential_print(&c, text);
    ELV_ASSERT(len < sizeof text);
    const enum elv_err err =
        elv_credential_parse((struct elv_bytes){(const uint8_t *)text, len}, &again, &e);
    ELV_ASSERT(err == ELV_OK && memcmp(&c, &again, sizeof c) == 0);
    return 0;
}
