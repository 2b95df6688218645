/* SPDX-License-Identifier: Apache-2.0 */
/* tests/assert_abort.c - the assertion handler of programs that use no port. */
#include <stdio.h>
#include <stdlib.h>

#include "common/assert.h"

void elv_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
