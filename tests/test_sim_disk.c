/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_sim_disk.c - the simulated disk promises what STORE promises, and nothing more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include "ports/sim/disk.h"

#define SYNC_US 1000

struct world { /* a clock and a disk */
    elv_time_us now;
    struct elv_sim_disk *disk;
};

static elv_time_us now(void *self) { return ((struct world *)self)->now; }

static void open_disk(struct world *w, struct elv_sim_disk_cfg cfg)
{
    w->now = 0;
    cfg.clock = (struct elv_clock){.self = w, .now = now};
    cfg.sync.min_us = SYNC_US;
    w->disk = elv_sim_disk_new(&cfg);
}

static struct elv_bytes text(const char *s)
{
    return (struct elv_bytes){.at = (const uint8_t *)s, .len = strlen(s)};
}

static struct elv_action append(uint64_t log, const char *s, uint32_t id)
{
    return (struct elv_action){
        .kind = ELV_DO_STORE,
        .id = id,
        .store = {.kind = ELV_STORE_APPEND, .number = log, .bytes = text(s)}};
}

static struct elv_action put(uint64_t number, const char *s, uint32_t id)
{
    return (struct elv_action){
        .kind = ELV_DO_STORE,
        .id = id,
        .store = {.kind = ELV_STORE_PUT, .table = 1, .number = number, .bytes = text(s)}};
}

static void submit(struct world *w, const struct elv_action *a, uint32_t n)
{
    const struct elv_store store = elv_sim_disk_store(w->disk);
    store.submit(store.self, a, n);
}

/* Lets time pass until the disk rests; returns how many STORED came, the last error in `err`. */
static uint32_t settle(struct world *w, enum elv_err *err)
{
    uint32_t n = 0, id = 0;
    while (elv_sim_disk_due(w->disk) != ELV_NEVER) {
        w->now = elv_sim_disk_due(w->disk);
        while (elv_sim_disk_poll(w->disk, &id, err))
            n++;
    }
    return n;
}

struct found {
    char text[256];
};

static enum elv_err collect(void *ctx, uint64_t number, struct elv_bytes value)
{
    struct found *f = ctx;
    const size_t len = strlen(f->text);
    assert_true(len + value.len + 3 < sizeof f->text);
    f->text[len] = (char)('0' + number);
    f->text[len + 1] = '=';
    memcpy(f->text + len + 2, value.at, value.len);
    f->text[len + 2 + value.len] = ' ';
    return ELV_OK;
}

static void expect_records(struct world *w, const char *want)
{
    struct found f = {{0}};
    const struct elv_disk view = elv_sim_disk_view(w->disk);
    assert_int_equal(view.scan(view.self, 1, &f, collect), ELV_OK);
    assert_string_equal(f.text, want);
}

static size_t read_log(struct world *w, uint64_t log, char out[256])
{
    size_t got = 0;
    const struct elv_disk view = elv_sim_disk_view(w->disk);
    memset(out, 0, 256);
    const enum elv_err err = view.read_log(view.self, log, 0, (uint8_t *)out, 255, &got);
    return err == ELV_ERR_MISSING ? 0 : got;
}

static void records_appear_together_when_they_are_durable(void **state)
{
    (void)state;
    struct world w;
    enum elv_err err = ELV_OK;
    open_disk(&w, (struct elv_sim_disk_cfg){.seed = 1});
    submit(&w, (struct elv_action[]){put(2, "b", 0), put(1, "a", 7)}, 2);
    expect_records(&w, "");
    assert_true(elv_sim_disk_due(w.disk) == SYNC_US);
    assert_int_equal(settle(&w, &err), 1);
    assert_int_equal(err, ELV_OK);
    expect_records(&w, "1=a 2=b ");
    submit(&w, (struct elv_action[]){put(1, "c", 8)}, 1);
    settle(&w, &err);
    expect_records(&w, "1=c 2=b ");
    elv_sim_disk_free(w.disk);
}

static void one_sync_serves_all_that_wait(void **state)
{
    (void)state;
    struct world w;
    enum elv_err err = ELV_OK;
    open_disk(&w, (struct elv_sim_disk_cfg){.seed = 1});
    for (uint32_t i = 1; i <= 100; i++)
        submit(&w, (struct elv_action[]){put(1, "a", i)}, 1);
    assert_int_equal(settle(&w, &err), 100);
    assert_int_equal(elv_sim_disk_stats(w.disk).syncs, 2); /* the first, and the 99 that waited */
    assert_true(w.now == 2 * SYNC_US);
    elv_sim_disk_free(w.disk);
}

static void a_failed_transaction_leaves_nothing_but_appended_bytes(void **state)
{
    (void)state;
    char log[256];
    /* Fail operation 1, 2, 3 ... until nothing fails. */
    for (uint64_t k = 1; k <= 4; k++) {
        struct world w;
        enum elv_err err = ELV_OK;
        open_disk(&w, (struct elv_sim_disk_cfg){.seed = 1, .fail_at = k});
        for (uint32_t i = 1; i <= 3; i++) {
            const char *const value = i == 1 ? "x" : i == 2 ? "y" : "z";
            submit(&w, (struct elv_action[]){append(5, value, 0), put(i, value, i)}, 2);
            assert_int_equal(settle(&w, &err), 1);
            assert_int_equal(err, i == k ? ELV_ERR_IO : ELV_OK);
        }
        read_log(&w, 5, log);
        assert_string_equal(log, "xyz");
        expect_records(&w, k == 1   ? "2=y 3=z "
                           : k == 2 ? "1=x 3=z "
                           : k == 3 ? "1=x 2=y "
                                    : "1=x 2=y 3=z ");
        elv_sim_disk_free(w.disk);
    }
}

static void everything_fails_until_the_node_knows(void **state)
{
    (void)state;
    for (uint32_t id = 0; id <= 1; id++) { /* the one that fails has an id, or none */
        struct world w;
        enum elv_err err = ELV_OK;
        open_disk(&w,
                  (struct elv_sim_disk_cfg){.seed = 1, .fail_at = 2, .fail_with = ELV_ERR_FULL});
        submit(&w, (struct elv_action[]){put(1, "a", 1)}, 1);
        submit(&w, (struct elv_action[]){put(2, "b", id * 2)}, 1);
        submit(&w, (struct elv_action[]){put(3, "c", 0)}, 1);
        submit(&w, (struct elv_action[]){put(4, "d", 4)}, 1);
        assert_int_equal(settle(&w, &err), 2 + id);
        assert_int_equal(err, ELV_ERR_FULL);
        expect_records(&w, "1=a ");
        submit(&w, (struct elv_action[]){put(5, "e", 5)}, 1);
        settle(&w, &err);
        assert_int_equal(err, ELV_OK);
        expect_records(&w, "1=a 5=e ");
        elv_sim_disk_free(w.disk);
    }
}

static void a_broken_log_fails_everything_until_it_is_dropped(void **state)
{
    (void)state;
    struct world w;
    enum elv_err err = ELV_OK;
    char log[256];
    open_disk(&w, (struct elv_sim_disk_cfg){.seed = 1});
    submit(&w, (struct elv_action[]){append(5, "a", 0)}, 1);
    elv_sim_disk_cfg(w.disk)->append_fail_ppm = ELV_SIM_PPM;
    submit(&w, (struct elv_action[]){append(5, "b", 0)}, 1);
    elv_sim_disk_cfg(w.disk)->append_fail_ppm = 0;
    submit(&w, (struct elv_action[]){append(5, "c", 0)}, 1);
    read_log(&w, 5, log);
    assert_string_equal(log, "a");
    for (uint32_t i = 0; i < 3; i++) {
        submit(&w, (struct elv_action[]){put(1, "x", 1)}, 1);
        settle(&w, &err);
        assert_int_equal(err, ELV_ERR_FULL);
    }
    const struct elv_action drop = {
        .kind = ELV_DO_STORE, .id = 2, .store = {.kind = ELV_STORE_DROP, .number = 5}};
    submit(&w, (struct elv_action[]){drop, put(1, "y", 0)}, 2);
    settle(&w, &err);
    assert_int_equal(err, ELV_OK);
    expect_records(&w, "1=y ");
    assert_int_equal(elv_sim_disk_stats(w.disk).logs, 0);
    elv_sim_disk_free(w.disk);
}

static void a_dead_disk_works_again_after_a_restart(void **state)
{
    (void)state;
    bool kept = false, lost = false;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world w;
        enum elv_err err = ELV_OK;
        open_disk(&w, (struct elv_sim_disk_cfg){.seed = seed, .fail_at = 1, .dies = true});
        for (uint32_t i = 1; i <= 3; i++) {
            submit(&w, (struct elv_action[]){put(i, "a", i)}, 1);
            settle(&w, &err);
            assert_int_equal(err, ELV_ERR_IO);
        }
        assert_true(elv_sim_disk_stats(w.disk).dead);
        expect_records(&w, "");
        elv_sim_disk_crash(w.disk, false);
        assert_false(elv_sim_disk_stats(w.disk).dead);
        struct found f = {{0}};
        const struct elv_disk view = elv_sim_disk_view(w.disk);
        assert_int_equal(view.scan(view.self, 1, &f, collect), ELV_OK);
        kept |= strcmp(f.text, "1=a ") == 0;
        lost |= strcmp(f.text, "") == 0;
        submit(&w, (struct elv_action[]){put(4, "b", 4)}, 1);
        settle(&w, &err);
        assert_int_equal(err, ELV_OK);
        elv_sim_disk_free(w.disk);
    }
    assert_true(kept && lost);
}

static void a_full_disk_says_so_and_has_room_again_when_something_is_dropped(void **state)
{
    (void)state;
    struct world w;
    enum elv_err err = ELV_OK;
    open_disk(&w, (struct elv_sim_disk_cfg){.seed = 1, .space = 8});
    submit(&w, (struct elv_action[]){append(5, "12345", 1)}, 1);
    submit(&w, (struct elv_action[]){put(1, "1234", 2)}, 1);
    assert_int_equal(settle(&w, &err), 2);
    assert_int_equal(err, ELV_ERR_FULL);
    const struct elv_action drop = {.kind = ELV_DO_STORE,
                                    .store = {.kind = ELV_STORE_DROP, .number = 5}};
    submit(&w, &drop, 1);
    settle(&w, &err);
    submit(&w, (struct elv_action[]){put(1, "1234", 2)}, 1);
    settle(&w, &err);
    assert_int_equal(err, ELV_OK);
    assert_int_equal(elv_sim_disk_stats(w.disk).used, 4);
    elv_sim_disk_free(w.disk);
}

static void a_crash_of_the_process_keeps_every_appended_byte(void **state)
{
    (void)state;
    char log[256];
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct world w;
        open_disk(&w, (struct elv_sim_disk_cfg){.seed = seed, .torn = true});
        submit(&w, (struct elv_action[]){append(5, "abc", 0)}, 1);
        submit(&w, (struct elv_action[]){append(5, "def", 0)}, 1);
        elv_sim_disk_crash(w.disk, false);
        read_log(&w, 5, log);
        assert_string_equal(log, "abcdef");
        elv_sim_disk_free(w.disk);
    }
}

/* Transaction i appends i letters and writes record 1 = its letter. */
static void crash_in_the_middle(struct world *w, uint64_t seed, bool torn, bool power)
{
    enum elv_err err = ELV_OK;
    open_disk(w, (struct elv_sim_disk_cfg){.seed = seed, .torn = torn});
    submit(w, (struct elv_action[]){append(5, "a", 0), put(1, "a", 1)}, 2);
    settle(w, &err);
    submit(w, (struct elv_action[]){append(5, "bb", 0), put(1, "b", 2)}, 2);
    submit(w, (struct elv_action[]){append(5, "ccc", 0)}, 1);
    submit(w, (struct elv_action[]){append(5, "dddd", 0), put(1, "d", 3)}, 2);
    elv_sim_disk_crash(w->disk, power);
}

static void a_crash_keeps_a_prefix_of_the_transactions_and_what_they_rest_on(void **state)
{
    (void)state;
    char log[256];
    bool seen_a = false, seen_b = false, seen_d = false, seen_cut = false, seen_torn = false;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct world w;
        const bool torn = seed % 2 == 0;
        crash_in_the_middle(&w, seed, torn, true);
        struct found f = {{0}};
        const struct elv_disk view = elv_sim_disk_view(w.disk);
        assert_int_equal(view.scan(view.self, 1, &f, collect), ELV_OK);
        const size_t len = read_log(&w, 5, log);
        assert_memory_equal(log, "abbcccdddd", len);
        const bool b = strcmp(f.text, "1=b ") == 0, d = strcmp(f.text, "1=d ") == 0;
        assert_true(b || d || strcmp(f.text, "1=a ") == 0);
        assert_true(len >= (d ? 10u : b ? 3u : 1u));
        const bool whole = len == 1 || len == 3 || len == 6 || len == 10;
        assert_true(torn || whole);
        seen_a |= !b && !d;
        seen_b |= b;
        seen_d |= d;
        seen_cut |= len < 10;
        seen_torn |= !whole;
        elv_sim_disk_free(w.disk);
    }
    assert_true(seen_a && seen_b && seen_d && seen_cut && seen_torn);
}

static void a_file_is_the_old_one_or_the_new_one(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world w;
        enum elv_err err = ELV_OK;
        open_disk(&w, (struct elv_sim_disk_cfg){.seed = seed});
        struct elv_action file = {.kind = ELV_DO_STORE,
                                  .id = 1,
                                  .store = {.kind = ELV_STORE_FILE,
                                            .table = 2,
                                            .number = 9,
                                            .head = text("head "),
                                            .bytes = text("old")}};
        submit(&w, &file, 1);
        settle(&w, &err);
        file.store.bytes = text("new!");
        submit(&w, &file, 1);
        elv_sim_disk_crash(w.disk, true);
        uint8_t out[16] = {0};
        size_t got = 0;
        const struct elv_disk view = elv_sim_disk_view(w.disk);
        assert_int_equal(view.read_file(view.self, 2, 9, 5, out, sizeof out, &got), ELV_OK);
        assert_true((got == 3 && memcmp(out, "old", 3) == 0) ||
                    (got == 4 && memcmp(out, "new!", 4) == 0));
        assert_int_equal(view.read_file(view.self, 2, 8, 0, out, sizeof out, &got),
                         ELV_ERR_MISSING);
        elv_sim_disk_free(w.disk);
    }
}

static void an_orderly_end_keeps_everything(void **state)
{
    (void)state;
    struct world w;
    open_disk(&w, (struct elv_sim_disk_cfg){.seed = 1});
    submit(&w, (struct elv_action[]){append(5, "abc", 0)}, 1);
    submit(&w, (struct elv_action[]){put(1, "a", 1)}, 1);
    elv_sim_disk_flush(w.disk);
    elv_sim_disk_crash(w.disk, true);
    char log[256];
    read_log(&w, 5, log);
    assert_string_equal(log, "abc");
    expect_records(&w, "1=a ");
    elv_sim_disk_free(w.disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_appear_together_when_they_are_durable),
        cmocka_unit_test(one_sync_serves_all_that_wait),
        cmocka_unit_test(a_failed_transaction_leaves_nothing_but_appended_bytes),
        cmocka_unit_test(everything_fails_until_the_node_knows),
        cmocka_unit_test(a_broken_log_fails_everything_until_it_is_dropped),
        cmocka_unit_test(a_dead_disk_works_again_after_a_restart),
        cmocka_unit_test(a_full_disk_says_so_and_has_room_again_when_something_is_dropped),
        cmocka_unit_test(a_crash_of_the_process_keeps_every_appended_byte),
        cmocka_unit_test(a_crash_keeps_a_prefix_of_the_transactions_and_what_they_rest_on),
        cmocka_unit_test(a_file_is_the_old_one_or_the_new_one),
        cmocka_unit_test(an_orderly_end_keeps_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
