/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one workload again and again and lets disk operation k = 1, 2, 3 ... fail, until none does.
 * Whatever fails: what was reported as stored is there afterwards, steps are whole, and a store
 * that met no more than a full disk goes on. */
#include "ports/sqlite/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/faulty.h"
#include "tests/store_fixture.h"

enum { STEPS = 8 };

/* What the node knows: the last step that was reported, and which log is in use. */
struct known {
    uint32_t id;
    uint32_t log;
    uint32_t newest;    /* the highest log number tried; those from `log` to here may exist */
    char appended[256]; /* to `log`, up to the last reported step */
};

/* Step i sets a record and a file to i and appends i to a log, in one transaction. */
static enum elv_err one_step(uint32_t i, struct known *k, bool new_log)
{
    static char value[STEPS + 1][8], record[STEPS + 1][16];
    snprintf(value[i], sizeof value[i], "%u,", i);
    snprintf(record[i], sizeof record[i], "%u", i);
    struct elv_action a[STEPS + 4];
    uint32_t n = 0;
    if (new_log) {
        for (uint32_t log = k->log; log <= k->newest; log++)
            a[n++] = drop(log, 0);
        k->newest++;
    }
    a[n++] = append(k->newest, value[i], 0);
    a[n++] = put(1, 1, record[i], 0);
    a[n++] = file(1, 1, record[i], i);
    step(n, a);
    return wait_for(i);
}

static void run_workload(struct known *k)
{
    bool gave_up = false;
    for (uint32_t i = 1; i <= STEPS; i++) {
        const bool new_log = gave_up || i == STEPS / 2;
        gave_up = one_step(i, k, new_log) != ELV_OK;
        if (gave_up)
            continue; /* the next step starts another round */
        if (new_log)
            k->appended[0] = 0;
        k->log = k->newest;
        snprintf(k->appended + strlen(k->appended), 8, "%u,", i);
        k->id = i;
    }
}

/* The record and the file tell of the same step, and the log holds at least what was reported. */
static uint32_t check_state(const struct known *k)
{
    char want[32];
    uint32_t found = 0;
    const char *record = record_of(1, 1);
    if (strcmp(record, "(none)") == 0)
        snprintf(want, sizeof want, "(none)");
    else
        snprintf(want, sizeof want, "head:%s", record);
    assert_string_equal(file_of(1, 1), want);
    sscanf(record, "%u", &found);
    if (found == k->id && k->id > 0)
        assert_memory_equal(log_of(k->log), k->appended, strlen(k->appended));
    return found;
}

static bool fault_at(uint32_t k, uint32_t length, enum fault fault)
{
    struct known known = {.log = 1, .newest = 1};
    struct elv_sqlite_stats stats = {0};
    fixture_make_folder();
    faulty_arm(k, length, fault);
    if (fixture_open(faulty_fs()) == ELV_OK) {
        run_workload(&known);
        elv_sqlite_stats(fx.store, &stats);
        if (!stats.dead)
            assert_int_equal(check_state(&known), known.id);
        fixture_close();
    }
    const bool happened = faulty_happened();
    if (!happened)
        assert_int_equal(known.id, STEPS);

    faulty_arm(0, 0, fault);
    assert_int_equal(fixture_open(faulty_fs()), ELV_OK);
    const uint32_t found = check_state(&known);
    if (stats.dead)
        assert_true(found >= known.id); /* a failure nobody could see through may have succeeded */
    else
        assert_int_equal(found, known.id);
    assert_true(files_in("files") <= 1);
    fixture_close();
    fixture_remove_folder();
    return happened;
}

static void nothing_reported_is_lost_whichever_operation_finds_the_disk_full(void **state)
{
    (void)state;
    uint32_t k = 1;
    while (fault_at(k, 1, FAULT_DISK_FULL))
        k++;
    assert_true(k > STEPS * 6);
}

static void nothing_reported_is_lost_while_the_disk_stays_full_for_a_while(void **state)
{
    (void)state;
    for (uint32_t k = 1; fault_at(k, 9, FAULT_DISK_FULL); k++)
        continue;
}

static void nothing_reported_is_lost_whichever_operation_fails_for_good(void **state)
{
    (void)state;
    for (uint32_t k = 1; fault_at(k, UINT32_MAX / 2, FAULT_BROKEN_DISK); k++)
        continue;
}

static void open_without_faults(void)
{
    fixture_make_folder();
    faulty_arm(0, 0, FAULT_DISK_FULL);
    assert_int_equal(fixture_open(faulty_fs()), ELV_OK);
}

static void close_and_remove(void)
{
    fixture_close();
    fixture_remove_folder();
}

/* What is submitted before the node has heard of a failure builds on what is lost. */
static void all_that_follows_a_failure_is_refused_until_it_is_reported(void **state)
{
    (void)state;
    open_without_faults();
    step(1, (const struct elv_action[]){put(1, 1, "before", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    faulty_arm(1, 1, FAULT_DISK_FULL);
    step(1, (const struct elv_action[]){file(1, 1, "lost", 2)});
    while (!faulty_happened())
        continue;
    step(1, (const struct elv_action[]){put(1, 1, "builds on it", 0)});
    step(1, (const struct elv_action[]){put(1, 2, "so does this", 3)});
    assert_int_equal(wait_for(2), ELV_ERR_IO);
    assert_int_equal(wait_for(3), ELV_ERR_IO);
    step(1, (const struct elv_action[]){put(1, 3, "after", 4)});
    assert_int_equal(wait_for(4), ELV_OK);
    assert_string_equal(record_of(1, 1), "before");
    assert_string_equal(record_of(1, 2), "(none)");
    assert_string_equal(record_of(1, 3), "after");
    char why[ELV_SQLITE_WHY_MAX];
    elv_sqlite_why(fx.store, why);
    assert_string_equal(why, "writing a file: No space left on device");
    close_and_remove();
}

static void a_log_that_lost_bytes_blocks_commits_until_it_is_dropped(void **state)
{
    (void)state;
    open_without_faults();
    step(1, (const struct elv_action[]){append(1, "whole", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    faulty_arm(1, 1, FAULT_DISK_FULL);
    step(1, (const struct elv_action[]){append(1, "lost", 0)});
    step(1, (const struct elv_action[]){append(1, "in the wrong place", 0)});
    assert_string_equal(log_of(1), "whole");
    for (uint32_t id = 2; id < 5; id++) {
        step(1, (const struct elv_action[]){put(1, 1, "leans on the lost bytes", id)});
        assert_int_equal(wait_for(id), ELV_ERR_IO);
    }
    step(2, (const struct elv_action[]){drop(1, 0), put(1, 1, "given up", 5)});
    assert_int_equal(wait_for(5), ELV_OK);
    step(1, (const struct elv_action[]){append(2, "next round", 6)});
    assert_int_equal(wait_for(6), ELV_OK);
    assert_string_equal(record_of(1, 1), "given up");
    assert_string_equal(log_of(1), "(none)");
    assert_string_equal(log_of(2), "next round");
    close_and_remove();
}

static void a_log_that_lost_bytes_is_mended_when_there_is_room_again(void **state)
{
    (void)state;
    open_without_faults();
    step(1, (const struct elv_action[]){append(1, "whole", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    faulty_arm(1, 100, FAULT_DISK_FULL);
    step(1, (const struct elv_action[]){append(1, "lost", 0)});
    step(2, (const struct elv_action[]){mend(1, 0), put(1, 1, "too early", 2)});
    assert_int_equal(wait_for(2), ELV_ERR_IO);
    faulty_arm(0, 0, FAULT_DISK_FULL);
    step(1, (const struct elv_action[]){append(1, "in the wrong place", 0)});
    step(2, (const struct elv_action[]){mend(1, 0), put(1, 1, "measured again", 3)});
    assert_int_equal(wait_for(3), ELV_OK);
    assert_string_equal(log_of(1), "whole");
    step(1, (const struct elv_action[]){append(1, " again", 4)});
    assert_int_equal(wait_for(4), ELV_OK);
    assert_string_equal(log_of(1), "whole again");
    fixture_close();
    assert_int_equal(fixture_open(faulty_fs()), ELV_OK);
    assert_string_equal(log_of(1), "whole again");
    assert_string_equal(record_of(1, 1), "measured again");
    close_and_remove();
}

static void after_a_failed_sync_nothing_is_stored_until_the_store_is_opened_again(void **state)
{
    (void)state;
    open_without_faults();
    step(1, (const struct elv_action[]){append(1, "first", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    faulty_arm(3, 1, FAULT_BROKEN_DISK); /* bytes, head, sync */
    step(1, (const struct elv_action[]){append(1, "second", 2)});
    assert_int_equal(wait_for(2), ELV_ERR_IO);
    step(1, (const struct elv_action[]){put(1, 1, "no", 3)});
    assert_int_equal(wait_for(3), ELV_ERR_IO);
    struct elv_sqlite_stats stats;
    elv_sqlite_stats(fx.store, &stats);
    assert_true(stats.dead);
    fixture_close();
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_memory_equal(log_of(1), "first", 5);
    step(1, (const struct elv_action[]){put(1, 1, "yes", 4)});
    assert_int_equal(wait_for(4), ELV_OK);
    close_and_remove();
}

static void without_a_descriptor_for_a_file_the_next_try_may_succeed(void **state)
{
    (void)state;
    open_without_faults();
    faulty_arm(1, 1, FAULT_NO_DESCRIPTOR);
    step(1, (const struct elv_action[]){file(1, 1, "not yet", 1)});
    assert_int_equal(wait_for(1), ELV_ERR_IO);
    char why[ELV_SQLITE_WHY_MAX];
    elv_sqlite_why(fx.store, why);
    assert_string_equal(why, "writing a file: Too many open files");
    step(1, (const struct elv_action[]){file(1, 1, "now", 2)});
    assert_int_equal(wait_for(2), ELV_OK);
    assert_string_equal(file_of(1, 1), "head:now");
    close_and_remove();
}

int main(void)
{
    faulty_sqlite_install();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_reported_is_lost_whichever_operation_finds_the_disk_full),
        cmocka_unit_test(nothing_reported_is_lost_while_the_disk_stays_full_for_a_while),
        cmocka_unit_test(nothing_reported_is_lost_whichever_operation_fails_for_good),
        cmocka_unit_test(without_a_descriptor_for_a_file_the_next_try_may_succeed),
        cmocka_unit_test(all_that_follows_a_failure_is_refused_until_it_is_reported),
        cmocka_unit_test(a_log_that_lost_bytes_blocks_commits_until_it_is_dropped),
        cmocka_unit_test(a_log_that_lost_bytes_is_mended_when_there_is_room_again),
        cmocka_unit_test(after_a_failed_sync_nothing_is_stored_until_the_store_is_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
