/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_choke.c - when a path counts as one that chunks do not pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "client/choke.h"

static void it_takes_time_chunks_and_answers_together(void **state)
{
    (void)state;
    static const struct {
        uint32_t chunks, answers;
        elv_time_us lasts;
        bool choked;
    } rows[] = {
        {ELV_CHOKE_CHUNKS, ELV_CHOKE_ANSWERS, ELV_CHOKE_US, true},
        {ELV_CHOKE_CHUNKS - 1, ELV_CHOKE_ANSWERS, ELV_CHOKE_US, false},
        {ELV_CHOKE_CHUNKS, ELV_CHOKE_ANSWERS - 1, ELV_CHOKE_US, false},
        {ELV_CHOKE_CHUNKS, ELV_CHOKE_ANSWERS, ELV_CHOKE_US - 1, false},
        {1000, 1000, ELV_CHOKE_US - 1, false},
        {0, 1000, 10 * ELV_CHOKE_US, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_choke k = {0};
        bool choked = false;
        for (uint32_t n = 0; n < rows[i].chunks; n++)
            elv_choke_sent(&k, 5000000 + n);
        for (uint32_t n = 0; n < rows[i].answers; n++)
            choked = elv_choke_answered(&k, 5000000 + rows[i].lasts);
        assert_int_equal(choked, rows[i].choked);
    }
}

static void one_chunk_that_got_through_is_enough_to_go_on(void **state)
{
    (void)state;
    struct elv_choke k = {0};
    for (elv_time_us now = 0; now < 100 * (elv_time_us)ELV_CHOKE_US; now += ELV_CHOKE_US / 2) {
        for (int i = 0; i < 100; i++)
            elv_choke_sent(&k, now);
        for (int i = 0; i < 100; i++)
            assert_false(elv_choke_answered(&k, now));
        elv_choke_clear(&k);
    }
}

/* Answers from before the first chunk, while the device was training, prove nothing. */
static void what_was_answered_before_the_first_chunk_does_not_count(void **state)
{
    (void)state;
    struct elv_choke k = {0};
    for (int i = 0; i < 100; i++)
        assert_false(elv_choke_answered(&k, 1000));
    for (uint32_t i = 0; i < ELV_CHOKE_CHUNKS; i++)
        elv_choke_sent(&k, 10 * (elv_time_us)ELV_CHOKE_US);
    assert_false(elv_choke_answered(&k, 10 * (elv_time_us)ELV_CHOKE_US + 1));
    assert_false(elv_choke_answered(&k, 11 * (elv_time_us)ELV_CHOKE_US));
    assert_true(elv_choke_answered(&k, 11 * (elv_time_us)ELV_CHOKE_US));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_time_chunks_and_answers_together),
        cmocka_unit_test(one_chunk_that_got_through_is_enough_to_go_on),
        cmocka_unit_test(what_was_answered_before_the_first_chunk_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
