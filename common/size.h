/* SPDX-License-Identifier: Apache-2.0 */
/* common/size.h - arithmetic on lengths that come from outside.
 *
 * Each returns false, and leaves `*out` alone, when the result does not fit. */
#ifndef ELV_COMMON_SIZE_H
#define ELV_COMMON_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool elv_size_add(size_t a, size_t b, size_t *out)
{
    if (b > SIZE_MAX - a)
        return false;
    *out = a + b;
    return true;
}

static inline bool elv_size_mul(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *out = a * b;
    return true;
}

#endif
