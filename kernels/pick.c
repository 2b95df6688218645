/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/pick.c - the variants built in, best first. The only #if in any .c of this folder. */
#include <string.h>

#include "kernels/ops_internal.h"

static const struct elv_kernels *(*const built[])(void) = {
#ifdef ELV_HAVE_X86_64
    elv_kernels_v4,   elv_kernels_v3, elv_kernels_v2,
#endif
#ifdef ELV_HAVE_NEON
    elv_kernels_neon,
#endif
    elv_kernels_ref,
};
enum { N_BUILT = sizeof built / sizeof built[0] };

size_t elv_kernels_count(void) { return N_BUILT; }

const struct elv_kernels *elv_kernels_at(size_t i) { return i < N_BUILT ? built[i]() : NULL; }

const struct elv_kernels *elv_kernels_best(void)
{
    size_t i = 0;
    while (built[i]() == NULL) /* ends: the reference is last and always works */
        i++;
    return built[i]();
}

const struct elv_kernels *elv_kernels_by_name(const char *name)
{
    if (strcmp(name, "simd") == 0)
        return elv_kernels_best() == elv_kernels_ref() ? NULL : elv_kernels_best();
    for (size_t i = 0; i < N_BUILT; i++) {
        const struct elv_kernels *k = built[i]();
        if (k != NULL && strcmp(k->name, name) == 0)
            return k;
    }
    return NULL;
}
