/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver does where a policy has no say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/drive.h"

static void a_failed_round_is_followed_after_a_second_doubling_to_a_minute(void **state)
{
    (void)state;
    static const elv_time_us seconds[] = {1, 1, 2, 4, 8, 16, 32, 60, 60};
    for (uint32_t n = 0; n < sizeof seconds / sizeof seconds[0]; n++)
        assert_int_equal(elv_drive_back_off(n), seconds[n] * 1000000);
    assert_int_equal(elv_drive_back_off(UINT32_MAX), 60000000);
}

static uint32_t no_room(const void *state, const struct elv_sync_cfg *cfg,
                        const struct elv_sync_round *r)
{
    (void)state, (void)cfg, (void)r;
    return 0;
}

static void a_silent_policy_holds_in_rounds_and_starts_in_a_stream_without_room(void **state)
{
    (void)state;
    static const struct {
        struct elv_sync sync;
        enum elv_sync_start start;
        uint32_t wanted; /* of 5 asked */
    } rows[] = {
        {{.flow = ELV_SYNC_ROUNDS}, ELV_SYNC_HOLD, 5},
        {{.flow = ELV_SYNC_STREAM}, ELV_SYNC_START, 0},
        {{.flow = ELV_SYNC_STREAM, .room = no_room}, ELV_SYNC_HOLD, 0},
    };
    const struct elv_sync_cfg cfg = {.quorum = 1};
    const struct elv_sync_round r = {.n_asked = 5};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_sync *sync = &rows[i].sync;
        const struct elv_sync_scale scale = elv_drive_scale(sync, NULL, &cfg, &r);
        const struct elv_sync_client c = {0, 1};
        assert_int_equal(elv_drive_pull(sync, NULL, &cfg, &r, c, 0).start, rows[i].start);
        assert_int_equal(elv_drive_wanted(sync, NULL, &cfg, &r), rows[i].wanted);
        assert_true(scale.by == ELV_SYNC_BY_USED && scale.step == 1.0 && !scale.mixes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_round_is_followed_after_a_second_doubling_to_a_minute),
        cmocka_unit_test(a_silent_policy_holds_in_rounds_and_starts_in_a_stream_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
