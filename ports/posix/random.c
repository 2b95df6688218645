/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static enum elv_err fill(void *self, uint8_t *out, size_t len)
{
    (void)self;
    for (size_t done = 0; done < len;) {
        const ssize_t n = getrandom(out + done, len - done, 0);
        if (n > 0) {
            done += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            memset(out, 0, len); /* half a key must not be mistaken for one */
            return ELV_ERR_IO;
        }
    }
    return ELV_OK;
}

struct elv_random elv_posix_random(void) { return (struct elv_random){.fill = fill}; }
