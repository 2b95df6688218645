/* SPDX-License-Identifier: Apache-2.0 */
/* Kills a process that stores as fast as it can, at random moments, and looks at what is left.
 *
 * The child tells through a pipe which step it is going to submit (negative) and which it was told
 * is stored (positive). Afterwards the record, the file and the log must tell of one and the same
 * step, one between the last reported and the last submitted, and every append submitted before the
 * kill must be in the log, whole: killing a process loses nothing it has written. */
#define _POSIX_C_SOURCE 200809L
#include "ports/sqlite/store.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/store_fixture.h"

enum { KILLS = 25, APPEND_LEN = 1000, COMMITTERS = 20 };

static void tell(int fd, int32_t what)
{
    if (write(fd, &what, sizeof what) != (ssize_t)sizeof what)
        _exit(1);
}

/* Appends 1,000 bytes that say `i`, over page boundaries, and now and then a commit. */
static void store_for_ever(int fd, uint32_t at)
{
    static char bytes[APPEND_LEN + 1], values[FIXTURE_IDS_MAX][16];
    if (fixture_open(NULL) != ELV_OK)
        _exit(2);
    for (uint32_t id = 1; id < FIXTURE_IDS_MAX; id++) {
        const uint32_t i = at + id;
        snprintf(values[id], sizeof values[id], "%u", i);
        snprintf(bytes, sizeof bytes, "%0*u", APPEND_LEN, i);
        step(1, (const struct elv_action[]){append(1, bytes, 0)});
        tell(fd, -(int32_t)i);
        step(2, (const struct elv_action[]){put(1, 1, values[id], 0), file(1, 1, values[id], id)});
        if (id <= COMMITTERS)
            continue;
        if (wait_for(id - COMMITTERS) != ELV_OK)
            _exit(3);
        tell(fd, (int32_t)(i - COMMITTERS));
    }
    pause();
}

static void let_it_run(long us) { nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL); }

/* Reads what the child managed to say. */
static void listen_to(int fd, uint32_t *submitted, uint32_t *reported)
{
    int32_t what;
    while (read(fd, &what, sizeof what) == (ssize_t)sizeof what) {
        if (what < 0)
            *submitted = (uint32_t)-what;
        else
            *reported = (uint32_t)what;
    }
}

static uint32_t number_in(const char *text_of_it, const char *prefix)
{
    if (strcmp(text_of_it, "(none)") == 0)
        return 0;
    assert_memory_equal(text_of_it, prefix, strlen(prefix));
    return (uint32_t)strtoul(text_of_it + strlen(prefix), NULL, 10);
}

/* The log holds 1, 2, 3 ... each whole; returns the last. */
static uint32_t last_append(void)
{
    char got[APPEND_LEN], want[APPEND_LEN + 1];
    for (uint32_t i = 0;; i++) {
        size_t n = 0;
        const enum elv_err err = fx.disk.read_log(fx.disk.self, 1, (uint64_t)i * APPEND_LEN,
                                                  (uint8_t *)got, sizeof got, &n);
        if (err == ELV_ERR_MISSING || n == 0)
            return i;
        assert_int_equal(err, ELV_OK);
        assert_int_equal(n, APPEND_LEN);
        snprintf(want, sizeof want, "%0*u", APPEND_LEN, i + 1);
        assert_memory_equal(got, want, APPEND_LEN);
    }
}

static void a_kill_at_any_moment_loses_nothing_that_was_reported(void **state)
{
    (void)state;
    uint32_t at = 0, stored = 0;
    fixture_make_folder();
    for (uint32_t k = 0; k < KILLS; k++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        const pid_t child = fork();
        if (child == 0) {
            close(fds[0]);
            store_for_ever(fds[1], at);
        }
        close(fds[1]);
        let_it_run((long)(k * k * 149 % 40000));
        assert_int_equal(kill(child, SIGKILL), 0);
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));

        uint32_t submitted = at, reported = stored;
        listen_to(fds[0], &submitted, &reported);
        close(fds[0]);
        assert_int_equal(fixture_open(NULL), ELV_OK);
        const uint32_t record = number_in(record_of(1, 1), "");
        const uint32_t content = number_in(file_of(1, 1), "head:");
        const uint32_t appended = last_append();
        print_message("reported %u, stored %u, submitted %u, appended %u\n", reported, record,
                      submitted, appended);
        assert_int_equal(record, content);
        assert_true(record >= reported && record <= submitted);
        assert_in_range(appended, submitted, submitted + 1); /* killed before it could say so */
        assert_true(files_in("files") <= 1);
        at = appended;
        stored = record;
        fixture_close();
        memset(fx.reported, 0, sizeof fx.reported);
    }
    fixture_remove_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_at_any_moment_loses_nothing_that_was_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
