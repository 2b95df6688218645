/* SPDX-License-Identifier: Apache-2.0 */
/* Every subset of the wanted size is equally likely. */
#include "common/rng.h"
#include "server/select.h"

static const char *const no_params[] = {NULL};

/* Selection sampling keeps the order: each candidate is taken with chance wanted / left. Source:
 * Knuth, The Art of Computer Programming, volume 2, section 3.4.2, algorithm S. */
static uint32_t choose(const struct elv_select_ask *ask, struct elv_candidate *at, uint32_t n)
{
    if (ask->count == 0 || ask->count >= n)
        return n;
    struct elv_rng rng = elv_rng_of(
        (struct elv_rng_key){.seed = ask->seed, .round = ask->round, .purpose = ELV_RNG_SELECT});
    uint32_t taken = 0;
    for (uint32_t i = 0; taken < ask->count; i++)
        if (elv_rng_below(&rng, n - i) < ask->count - taken)
            at[taken++] = at[i];
    return taken;
}

const struct elv_select elv_select_uniform = {
    .name = "uniform",
    .params = no_params,
    .choose = choose,
};
