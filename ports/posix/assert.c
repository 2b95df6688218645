/* SPDX-License-Identifier: Apache-2.0 */
#include "common/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void elv_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
