/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/store_fixture.h"

static int open_store(void **state)
{
    (void)state;
    fixture_make_folder();
    return fixture_open(NULL);
}

static int close_store(void **state)
{
    (void)state;
    fixture_close();
    fixture_remove_folder();
    return 0;
}

static void reopen(void)
{
    fixture_close();
    assert_int_equal(fixture_open(NULL), ELV_OK);
}

static void what_was_reported_as_stored_is_there_after_a_restart(void **state)
{
    (void)state;
    step(4, (const struct elv_action[]){put(1, 5, "five", 0), put(2, 5, "other table", 0),
                                        append(9, "bytes", 0), file(3, 1, "model", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    for (int again = 0; again < 2; again++) {
        assert_string_equal(record_of(1, 5), "five");
        assert_string_equal(record_of(2, 5), "other table");
        assert_string_equal(record_of(1, 6), "(none)");
        assert_string_equal(log_of(9), "bytes");
        assert_string_equal(log_of(8), "(none)");
        assert_string_equal(file_of(3, 1), "head:model");
        assert_string_equal(file_of(3, 2), "(none)");
        reopen();
    }
}

static enum elv_err collect(void *ctx, uint64_t number, struct elv_bytes value)
{
    char *all = ctx;
    sprintf(all + strlen(all), "%llx=%.*s ", (unsigned long long)number, (int)value.len,
            (const char *)value.at);
    return number == 0xDEAD ? ELV_ERR_RANGE : ELV_OK;
}

static void a_scan_goes_in_rising_order_over_all_64_bits_and_can_be_stopped(void **state)
{
    (void)state;
    step(6, (const struct elv_action[]){put(1, UINT64_MAX, "max", 0), put(1, 0, "", 0),
                                        put(1, 1ull << 63, "half", 0),
                                        put(1, (1ull << 63) - 1, "below", 0), put(1, 2, "two", 0),
                                        put(2, 1, "elsewhere", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    char all[256] = "";
    assert_int_equal(fx.disk.scan(fx.disk.self, 1, all, collect), ELV_OK);
    assert_string_equal(all, "0= 2=two 7fffffffffffffff=below 8000000000000000=half "
                             "ffffffffffffffff=max ");
    step(2, (const struct elv_action[]){put(4, 0xDEAD, "stop", 0), put(4, 0xDEAE, "no", 2)});
    assert_int_equal(wait_for(2), ELV_OK);
    all[0] = 0;
    assert_int_equal(fx.disk.scan(fx.disk.self, 4, all, collect), ELV_ERR_RANGE);
    assert_string_equal(all, "dead=stop ");
}

static void records_are_replaced_and_erased(void **state)
{
    (void)state;
    struct elv_action erase = put(1, 5, "", 3);
    erase.store.kind = ELV_STORE_ERASE;
    step(1, (const struct elv_action[]){put(1, 5, "old", 1)});
    step(1, (const struct elv_action[]){put(1, 5, "new", 2)});
    assert_int_equal(wait_for(2), ELV_OK);
    assert_string_equal(record_of(1, 5), "new");
    step(1, &erase);
    erase.id = 4;
    step(1, &erase); /* fine when there is none */
    assert_int_equal(wait_for(4), ELV_OK);
    assert_string_equal(record_of(1, 5), "(none)");
}

static void appended_bytes_can_be_read_at_once_and_in_pieces(void **state)
{
    (void)state;
    step(2, (const struct elv_action[]){append(1, "abc", 0), append(2, "xyz", 0)});
    step(1, (const struct elv_action[]){append(1, "defg", 0)});
    assert_string_equal(log_of(1), "abcdefg");
    assert_string_equal(log_of(2), "xyz");
    static const struct {
        uint64_t offset;
        size_t len, got;
        const char *want;
    } rows[] = {
        {0, 3, 3, "abc"}, {2, 3, 3, "cde"}, {5, 10, 2, "fg"},
        {7, 1, 0, ""},    {100, 1, 0, ""},  {UINT64_MAX, 4, 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t out[16];
        size_t got = 99;
        assert_int_equal(fx.disk.read_log(fx.disk.self, 1, rows[i].offset, out, rows[i].len, &got),
                         ELV_OK);
        assert_int_equal(got, rows[i].got);
        assert_memory_equal(out, rows[i].want, got);
    }
}

static void a_replaced_file_leaves_no_old_content_behind(void **state)
{
    (void)state;
    step(1, (const struct elv_action[]){file(1, 1, "first", 1)});
    step(1, (const struct elv_action[]){file(1, 1, "second", 2)});
    step(1, (const struct elv_action[]){file(1, 2, "another", 3)});
    assert_int_equal(wait_for(3), ELV_OK);
    assert_string_equal(file_of(1, 1), "head:second");
    wait_for_tidiness(4);
    assert_int_equal(files_in("files"), 2);
    struct elv_action gone = file(1, 1, "", 5);
    gone.store.kind = ELV_STORE_UNLINK;
    step(1, &gone);
    assert_int_equal(wait_for(5), ELV_OK);
    assert_string_equal(file_of(1, 1), "(none)");
    wait_for_tidiness(6);
    assert_int_equal(files_in("files"), 1);
    uint8_t out[8];
    size_t got;
    assert_int_equal(fx.disk.read_file(fx.disk.self, 1, 2, 5, out, 3, &got), ELV_OK);
    assert_memory_equal(out, "ano", 3);
}

static void a_dropped_log_is_gone_and_its_number_free(void **state)
{
    (void)state;
    step(1, (const struct elv_action[]){append(1, "old", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    step(1, (const struct elv_action[]){drop(1, 2)});
    step(1, (const struct elv_action[]){append(1, "new", 3)}); /* waits for the deletion */
    assert_int_equal(wait_for(3), ELV_OK);
    assert_string_equal(log_of(1), "new");
    step(1, (const struct elv_action[]){drop(1, 4)});
    step(1, (const struct elv_action[]){append(1, "unsynced", 0)});
    assert_int_equal(wait_for(4), ELV_OK);
    reopen();
    assert_string_equal(log_of(1), "unsynced");
    step(1, (const struct elv_action[]){drop(1, 5)});
    step(1, (const struct elv_action[]){drop(77, 6)}); /* never was */
    assert_int_equal(wait_for(6), ELV_OK);
    assert_string_equal(log_of(1), "(none)");
    wait_for_tidiness(7);
    assert_int_equal(files_in("logs"), 0);
    reopen();
    assert_string_equal(log_of(1), "(none)");
}

/* A file system whose syncs wait until the gate is open. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int gated_sync(void *self, int fd)
{
    (void)self;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return fsync(fd);
}

static void commits_that_wait_share_one_transaction(void **state)
{
    (void)state;
    enum { N = 1000 };
    struct elv_fs fs = *elv_fs_posix();
    fs.sync = gated_sync;
    fixture_close();
    assert_int_equal(fixture_open(&fs), ELV_OK);
    pthread_mutex_lock(&gate);
    for (uint32_t id = 1; id <= N; id++)
        step(2, (const struct elv_action[]){put(1, id, "row", 0), append(1, "x", id)});
    pthread_mutex_unlock(&gate);
    assert_int_equal(wait_for(N), ELV_OK);
    struct elv_sqlite_stats stats;
    elv_sqlite_stats(fx.store, &stats);
    assert_int_equal(stats.transactions, N);
    assert_true(stats.batches <= 2); /* the one under way when the gate was shut, and the rest */
    assert_true(stats.batch_max >= N / 2);
    assert_int_equal(stats.failures, 0);
    assert_true(stats.free_bytes > 0);
}

static void closing_finishes_what_is_queued(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 500; i++)
        step(1, (const struct elv_action[]){put(1, i, "kept", 0)});
    reopen();
    assert_string_equal(record_of(1, 1), "kept");
    assert_string_equal(record_of(1, 500), "kept");
}

static void a_full_queue_makes_the_submitter_wait_and_loses_nothing(void **state)
{
    (void)state;
    fixture_close();
    const struct elv_sqlite_cfg cfg = {.dir = fx.dir, .job = "job", .queue_max = 1000};
    struct elv_sqlite *s = NULL;
    assert_int_equal(elv_sqlite_open(&s, &cfg, fx.why), ELV_OK);
    const struct elv_store store = elv_sqlite_store(s);
    for (uint32_t i = 1; i <= 300; i++) {
        const struct elv_action a = put(1, i, "a value of some length", 0);
        store.submit(store.self, &a, 1);
    }
    struct elv_sqlite_stats stats;
    elv_sqlite_stats(s, &stats);
    assert_true(stats.stalls > 0);
    elv_sqlite_close(s);
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_string_equal(record_of(1, 300), "a value of some length");
}

static void a_second_store_on_the_folder_is_refused_by_name(void **state)
{
    (void)state;
    const struct elv_sqlite_cfg cfg = {.dir = fx.dir, .job = "another-job"};
    struct elv_sqlite *second = NULL;
    char why[ELV_SQLITE_WHY_MAX], want[64];
    assert_int_equal(elv_sqlite_open(&second, &cfg, why), ELV_ERR_BUSY);
    assert_null(second);
    snprintf(want, sizeof want, "(process %ld)", (long)getpid());
    assert_non_null(strstr(why, want));
}

static void change_ledger(const char *sql)
{
    char path[128];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/job/ledger.db", fx.dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void state_of_a_newer_or_of_another_program_is_refused(void **state)
{
    (void)state;
    fixture_close();
    change_ledger("PRAGMA user_version = 2");
    assert_int_equal(fixture_open(NULL), ELV_ERR_VERSION);
    assert_non_null(strstr(fx.why, "schema 2, this one knows 1"));
    change_ledger("PRAGMA user_version = 1; PRAGMA application_id = 7");
    assert_int_equal(fixture_open(NULL), ELV_ERR_FORMAT);
    assert_non_null(strstr(fx.why, "some other program"));
}

static void a_damaged_ledger_is_refused(void **state)
{
    (void)state;
    fixture_close();
    char path[128];
    snprintf(path, sizeof path, "%s/job/ledger.db", fx.dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("this is not a database, whatever its name says; it is long enough to look at", f);
    fclose(f);
    assert_int_equal(fixture_open(NULL), ELV_ERR_FORMAT);
}

static enum elv_err any(void *ctx, uint64_t number, struct elv_bytes value)
{
    (void)number, (void)value;
    ++*(uint32_t *)ctx;
    return ELV_OK;
}

/* SQLite takes these for good rows: only the sums tell. */
static void a_record_that_is_not_what_was_written_is_never_shown(void **state)
{
    static const char *const damage[] = {
        "UPDATE record SET value = x'666976E5' WHERE tbl = 1 AND number = 5",
        "UPDATE record SET value = x'66697665' || x'00' WHERE tbl = 1 AND number = 5",
        "UPDATE record SET number = 4 WHERE tbl = 1 AND number = 5",
        "UPDATE record SET tbl = 1, number = 2 WHERE tbl = 2",
        "UPDATE record SET sum = sum + 1 WHERE tbl = 1 AND number = 5",
    };
    (void)state;
    for (size_t i = 0; i < sizeof damage / sizeof damage[0]; i++) {
        uint32_t n = 0;
        step(3, (const struct elv_action[]){put(1, 5, "five", 0), put(1, 3, "three", 0),
                                            put(2, 9, "nine", 1 + (uint32_t)i)});
        assert_int_equal(wait_for(1 + (uint32_t)i), ELV_OK);
        fixture_close();
        change_ledger(damage[i]);
        assert_int_equal(fixture_open(NULL), ELV_OK);
        assert_int_equal(fx.disk.scan(fx.disk.self, 1, &n, any), ELV_ERR_FORMAT);
        assert_in_range(n, 0, 1);
        fixture_close();
        change_ledger("DELETE FROM record");
        assert_int_equal(fixture_open(NULL), ELV_OK);
    }
}

static void a_file_that_is_not_what_was_written_is_never_shown(void **state)
{
    char path[128];
    uint8_t out[64];
    size_t got;
    (void)state;
    step(2, (const struct elv_action[]){file(3, 1, "spoilt", 0), file(3, 2, "sound", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    fixture_close();
    snprintf(path, sizeof path, "%s/job/files/1", fx.dir);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fputc('S', f);
    fclose(f);
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_int_equal(fx.disk.read_file(fx.disk.self, 3, 1, 0, out, sizeof out, &got),
                     ELV_ERR_FORMAT);
    assert_string_equal(file_of(3, 2), "head:sound");
    step(1, (const struct elv_action[]){file(3, 1, "anew", 2)}); /* what replaces it is fine */
    assert_int_equal(wait_for(2), ELV_OK);
    assert_string_equal(file_of(3, 1), "head:anew");
    fixture_close();
    snprintf(path, sizeof path, "%s/job/files/2", fx.dir);
    assert_int_equal(truncate(path, 3), 0);
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_int_equal(fx.disk.read_file(fx.disk.self, 3, 2, 0, out, sizeof out, &got),
                     ELV_ERR_FORMAT);
    assert_int_equal(unlink(path), 0);
    fixture_close();
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_int_equal(fx.disk.read_file(fx.disk.self, 3, 2, 0, out, sizeof out, &got),
                     ELV_ERR_FORMAT);
}

/* Each byte of the database in turn is another: it is refused, or what is shown is right. */
static void a_ledger_with_any_byte_damaged_is_refused_or_right(void **state)
{
    char path[128];
    (void)state;
    step(2, (const struct elv_action[]){put(1, 5, "five", 0), put(1, 6, "six", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    fixture_close();
    snprintf(path, sizeof path, "%s/job/ledger.db", fx.dir);
    for (long at = 0; at < 16384; at += at < 200 ? 7 : 61) {
        FILE *f = fopen(path, "r+");
        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        const int was = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(was ^ 0x55, f);
        fclose(f);
        const enum elv_err err = fixture_open(NULL);
        uint32_t n = 0;
        if (err != ELV_OK)
            assert_true(err != ELV_ERR_BUSY && fx.why[0] != 0);
        else if (fx.disk.scan(fx.disk.self, 1, &n, any) == ELV_OK) {
            assert_int_equal(n, 2);
            assert_string_equal(record_of(1, 5), "five");
        }
        fixture_close();
        f = fopen(path, "r+");
        fseek(f, at, SEEK_SET);
        fputc(was, f);
        fclose(f);
    }
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_string_equal(record_of(1, 6), "six");
}

static void a_log_shorter_than_acknowledged_is_refused(void **state)
{
    (void)state;
    step(1, (const struct elv_action[]){append(7, "acknowledged", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    fixture_close();
    char path[128];
    snprintf(path, sizeof path, "%s/job/logs/7", fx.dir);
    assert_int_equal(truncate(path, 16 + 11), 0);
    assert_int_equal(fixture_open(NULL), ELV_ERR_MISMATCH);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(fixture_open(NULL), ELV_ERR_MISMATCH);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fixture_open(NULL), ELV_ERR_MISMATCH);
}

/* What a kill in the middle of a write leaves: bytes the head does not count. */
static void the_torn_tail_of_a_killed_append_is_cut_off(void **state)
{
    (void)state;
    step(1, (const struct elv_action[]){append(7, "whole", 0)});
    fixture_close();
    char path[128];
    snprintf(path, sizeof path, "%s/job/logs/7", fx.dir);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    fputs("to", f);
    fclose(f);
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_string_equal(log_of(7), "whole");
    step(1, (const struct elv_action[]){append(7, " and sound", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    assert_string_equal(log_of(7), "whole and sound");
}

static void leftovers_of_a_crash_are_swept_when_opening(void **state)
{
    (void)state;
    step(1, (const struct elv_action[]){file(1, 1, "kept", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    fixture_close();
    char path[128];
    snprintf(path, sizeof path, "%s/job/files/99", fx.dir);
    FILE *f = fopen(path, "w"); /* written, but its transaction never was */
    assert_non_null(f);
    fclose(f);
    change_ledger("INSERT INTO log VALUES (5, -1)"); /* dropped, but not yet deleted */
    snprintf(path, sizeof path, "%s/job/logs/5", fx.dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_int_equal(files_in("files"), 1);
    assert_int_equal(files_in("logs"), 0);
    assert_string_equal(file_of(1, 1), "head:kept");
    step(1, (const struct elv_action[]){file(1, 1, "newer", 2)});
    assert_int_equal(wait_for(2), ELV_OK);
    assert_string_equal(file_of(1, 1), "head:newer");
}

static void a_folder_that_cannot_be_used_is_named(void **state)
{
    (void)state;
    char file_path[128];
    snprintf(file_path, sizeof file_path, "%s/plain", fx.dir);
    FILE *f = fopen(file_path, "w");
    assert_non_null(f);
    fclose(f);
    const char *const dirs[] = {"/tmp/elv/no/such", file_path, "/proc/elv"};
    for (size_t i = 0; i < 3; i++) {
        const struct elv_sqlite_cfg cfg = {.dir = dirs[i], .job = "job"};
        struct elv_sqlite *s = NULL;
        assert_int_equal(elv_sqlite_open(&s, &cfg, fx.why), ELV_ERR_IO);
        assert_non_null(strstr(fx.why, dirs[i]));
    }
    char deep[600];
    memset(deep, 'a', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    const struct elv_sqlite_cfg cfg = {.dir = deep, .job = "job"};
    struct elv_sqlite *s = NULL;
    assert_int_equal(elv_sqlite_open(&s, &cfg, fx.why), ELV_ERR_ARG);
}

/* A state folder as this release writes it, kept so that later ones are held to reading it. Made by
 * three steps: records (1, 5) "five" and (2, 2^63) "high", 15 bytes in log 7, files (3, 1) and
 * (3, 2), the first of them replaced once, and a log 8 that was dropped. */
static void copy_golden(const char *name)
{
    char path[128];
    uint8_t bytes[32768];
    snprintf(path, sizeof path, "tests/golden/state-1/%s", name);
    FILE *from = fopen(path, "rb");
    snprintf(path, sizeof path, "%s/job/%s", fx.dir, name);
    FILE *to = fopen(path, "wb");
    assert_non_null(from);
    assert_non_null(to);
    const size_t len = fread(bytes, 1, sizeof bytes, from);
    assert_int_equal(fwrite(bytes, 1, len, to), len);
    fclose(from);
    fclose(to);
}

static void the_state_of_version_0_1_0_is_read(void **state)
{
    (void)state;
    fixture_close();
    copy_golden("ledger.db");
    copy_golden("logs/7");
    copy_golden("files/2");
    copy_golden("files/3");
    assert_int_equal(fixture_open(NULL), ELV_OK);
    assert_string_equal(record_of(1, 5), "five");
    assert_string_equal(record_of(2, 1ull << 63), "high");
    assert_string_equal(log_of(7), "fifteen bytes.\n");
    assert_string_equal(log_of(8), "(none)");
    assert_string_equal(file_of(3, 1), "head:second");
    assert_string_equal(file_of(3, 2), "head:other");
    step(2, (const struct elv_action[]){put(1, 5, "newer", 0), append(7, "more", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    assert_string_equal(record_of(1, 5), "newer");
    assert_string_equal(log_of(7), "fifteen bytes.\nmore");
}

/* Readers on other threads while the node's thread appends, replaces and drops. */
static void *read_all_the_time(void *stop)
{
    uint8_t out[64];
    size_t got;
    while (!__atomic_load_n((bool *)stop, __ATOMIC_ACQUIRE)) {
        enum elv_err err = fx.disk.read_log(fx.disk.self, 1, 0, out, sizeof out, &got);
        if (err == ELV_OK && got > 0 && out[0] != 'x')
            return "a log shows what was never written";
        err = fx.disk.read_file(fx.disk.self, 1, 1, 0, out, sizeof out, &got);
        if (err != ELV_OK || got != 7)
            return "a file is not whole";
        char all[64] = "";
        err = fx.disk.scan(fx.disk.self, 1, all, collect);
        if (err != ELV_OK || strlen(all) != 4)
            return "a record is not whole";
    }
    return NULL;
}

static void readers_on_other_threads_see_whole_things(void **state)
{
    (void)state;
    bool stop = false;
    pthread_t readers[2];
    step(2, (const struct elv_action[]){put(1, 1, "r", 0), file(1, 1, "ab", 1)});
    assert_int_equal(wait_for(1), ELV_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_all_the_time, &stop), 0);
    for (uint32_t id = 2; id < 102; id++) {
        step(3, (const struct elv_action[]){append(1, "xyz", 0), put(1, 1, id % 2 ? "s" : "t", 0),
                                            file(1, 1, id % 2 ? "cd" : "ef", id)});
        assert_int_equal(wait_for(id), ELV_OK);
        if (id % 7 == 0)
            step(1, (const struct elv_action[]){drop(1, 0)});
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) {
        void *complaint = NULL;
        pthread_join(readers[i], &complaint);
        assert_null(complaint);
    }
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, open_store, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(what_was_reported_as_stored_is_there_after_a_restart),
        WITH_STORE(a_scan_goes_in_rising_order_over_all_64_bits_and_can_be_stopped),
        WITH_STORE(records_are_replaced_and_erased),
        WITH_STORE(appended_bytes_can_be_read_at_once_and_in_pieces),
        WITH_STORE(a_replaced_file_leaves_no_old_content_behind),
        WITH_STORE(a_dropped_log_is_gone_and_its_number_free),
        WITH_STORE(commits_that_wait_share_one_transaction),
        WITH_STORE(closing_finishes_what_is_queued),
        WITH_STORE(a_full_queue_makes_the_submitter_wait_and_loses_nothing),
        WITH_STORE(a_second_store_on_the_folder_is_refused_by_name),
        WITH_STORE(state_of_a_newer_or_of_another_program_is_refused),
        WITH_STORE(a_damaged_ledger_is_refused),
        WITH_STORE(a_record_that_is_not_what_was_written_is_never_shown),
        WITH_STORE(a_file_that_is_not_what_was_written_is_never_shown),
        WITH_STORE(a_ledger_with_any_byte_damaged_is_refused_or_right),
        WITH_STORE(a_log_shorter_than_acknowledged_is_refused),
        WITH_STORE(the_torn_tail_of_a_killed_append_is_cut_off),
        WITH_STORE(leftovers_of_a_crash_are_swept_when_opening),
        WITH_STORE(a_folder_that_cannot_be_used_is_named),
        WITH_STORE(the_state_of_version_0_1_0_is_read),
        WITH_STORE(readers_on_other_threads_see_whole_things),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
