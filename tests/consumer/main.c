/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <elver/common/assert.h>
#include <elver/common/cursor.h>
#include <elver/common/node.h>
#include <elver/version.h>

void elv_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

int main(void)
{
    uint8_t out[4];
    struct elv_wr w = elv_wr_of(out, sizeof out);
    elv_wr_u32(&w, CONSUMER_ERR);
    printf("Elver %s: %s, first byte %d\n", ELV_VERSION, elv_err_text(w.err), out[0]);
    return strcmp(elv_err_text(ELV_OK), "success") != 0 || out[0] != CONSUMER_ERR;
}
