/* SPDX-License-Identifier: Apache-2.0 */
/* State is a promise: a server goes on from what an earlier build stored as if it had stored it
 * itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "tests/state_file.h"
#include "tests/state_runs.h"

/* Everybody does what their tickets say until the job is over. */
static void finish(struct world *w)
{
    struct elv_ticket t = {0};
    for (uint32_t turn = 0; turn < 20 && t.what != ELV_WHAT_STOP; turn++)
        for (uint32_t peer = 1; peer <= 3; peer++)
            if (world_ticket(w, peer, &t) && t.what == ELV_WHAT_TRAIN)
                assert_true(world_contribute(w, peer));
    assert_int_equal(t.what, ELV_WHAT_STOP);
}

static void a_server_goes_on_from_the_state_of_an_earlier_build(void **state)
{
    (void)state;
    for (size_t i = 0; i < state_runs_n; i++) {
        static struct world now, then;
        char path[256];
        snprintf(path, sizeof path, "tests/golden/%s", state_runs[i].file);
        state_runs[i].prepare(&then);
        state_file_load(&then.disk, path);
        world_start(&then);
        finish(&then);
        state_runs[i].prepare(&now);
        world_start(&now);
        state_runs[i].drive(&now);
        finish(&now);
        assert_memory_equal(elv_server_stats(then.s)->model, elv_server_stats(now.s)->model, 32);
        world_free(&then);
        world_free(&now);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_goes_on_from_the_state_of_an_earlier_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
