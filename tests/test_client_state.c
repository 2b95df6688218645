/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/client_state.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ports/posix/file.h"

static char folder[] = "/tmp/elv_state_XXXXXX", path[128];
static struct elv_client_state *state;
static char said[512];
static uint32_t n_said, n_stored;
static enum elv_err last_err;
static uint32_t last_id;

static void tell(void *self, const char *what, const char *name, const char *why)
{
    (void)self;
    snprintf(said, sizeof said, "%s %s %s", what, name, why);
    n_said++;
}

static void stored(void *self, struct elv_event *ev)
{
    (void)self;
    assert_int_equal(ev->kind, ELV_EV_STORED);
    last_id = ev->id;
    last_err = ev->err;
    n_stored++;
}

static const char *in_folder(const char *name)
{
    static char full[256];
    snprintf(full, sizeof full, "%s/%s", path, name);
    return full;
}

static enum elv_err open_state(void)
{
    const struct elv_client_state_cfg cfg = {.path = path, .tell = tell, .sink = {.event = stored}};
    return elv_client_state_open(&cfg, &state, NULL);
}

static int setup(void **unused)
{
    (void)unused;
    strcpy(folder, "/tmp/elv_state_XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/state", folder);
    n_said = n_stored = 0;
    said[0] = '\0';
    return open_state() == ELV_OK ? 0 : -1;
}

static int teardown(void **unused)
{
    char command[256];
    (void)unused;
    elv_client_state_close(state);
    state = NULL;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void again(void)
{
    elv_client_state_close(state);
    assert_int_equal(open_state(), ELV_OK);
}

static struct elv_bytes text(const char *s)
{
    return (struct elv_bytes){(const uint8_t *)s, strlen(s)};
}

static void submit(const struct elv_action *actions, uint32_t n)
{
    const struct elv_store store = elv_client_state_store(state);
    store.submit(store.self, actions, n);
}

static struct elv_action file_of(uint32_t id, const char *head, const char *bytes)
{
    return (struct elv_action){.kind = ELV_DO_STORE,
                               .id = id,
                               .store = {.kind = ELV_STORE_FILE,
                                         .table = 2,
                                         .number = 5,
                                         .head = text(head),
                                         .bytes = text(bytes)}};
}

static struct elv_action append_of(const char *bytes)
{
    return (struct elv_action){
        .kind = ELV_DO_STORE,
        .store = {.kind = ELV_STORE_APPEND, .number = 1, .bytes = text(bytes)}};
}

static void check_file(const char *want)
{
    uint8_t got[64];
    size_t len = 0;
    const struct elv_disk d = elv_client_state_disk(state);
    assert_int_equal(d.read_file(d.self, 2, 5, 0, got, sizeof got, &len), ELV_OK);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(got, want, len);
}

static enum elv_err read_file(void)
{
    uint8_t got[64];
    size_t len;
    const struct elv_disk d = elv_client_state_disk(state);
    return d.read_file(d.self, 2, 5, 0, got, sizeof got, &len);
}

static void check_log(const char *want)
{
    uint8_t got[64];
    size_t len = 0;
    const struct elv_disk d = elv_client_state_disk(state);
    assert_int_equal(d.read_log(d.self, 1, 0, got, sizeof got, &len), ELV_OK);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(got, want, len);
}

static void a_file_comes_back_as_it_was_last_stored(void **unused)
{
    (void)unused;
    uint8_t got[4];
    size_t len = 0;
    const struct elv_action a[] = {file_of(7, "head,", "body"), file_of(9, "other ", "body")};
    assert_int_equal(read_file(), ELV_ERR_MISSING);
    submit(&a[0], 1);
    assert_int_equal(last_id, 7);
    assert_int_equal(last_err, ELV_OK);
    check_file("head,body");
    submit(&a[1], 1);
    again();
    check_file("other body");
    const struct elv_disk d = elv_client_state_disk(state);
    assert_int_equal(d.read_file(d.self, 2, 5, 6, got, sizeof got, &len), ELV_OK);
    assert_memory_equal(got, "body", 4);
    assert_int_equal(d.read_file(d.self, 2, 5, 8, got, sizeof got, &len), ELV_OK);
    assert_int_equal(len, 2);
    assert_int_equal(d.read_file(d.self, 2, 5, UINT64_MAX - 70, got, sizeof got, &len), ELV_OK);
    assert_int_equal(len, 0);
    assert_int_equal(n_said, 0);
}

static void a_log_grows_until_it_is_dropped(void **unused)
{
    (void)unused;
    const struct elv_action a[] = {append_of("one"), append_of("two"), append_of("three")};
    const struct elv_action drop = {
        .kind = ELV_DO_STORE, .id = 3, .store = {.kind = ELV_STORE_DROP, .number = 1}};
    submit(a, 2);
    check_log("onetwo");
    again();
    submit(&a[2], 1);
    check_log("onetwothree");
    submit(&drop, 1);
    assert_int_equal(last_id, 3);
    uint8_t byte;
    size_t got;
    const struct elv_disk d = elv_client_state_disk(state);
    assert_int_equal(d.read_log(d.self, 1, 0, &byte, 1, &got), ELV_ERR_MISSING);
    submit(a, 1);
    check_log("one");
    submit(&drop, 1);
    submit(&drop, 1); /* fine when there is none */
    assert_int_equal(last_err, ELV_OK);
}

static void an_unlinked_file_is_no_more(void **unused)
{
    (void)unused;
    const struct elv_action a = file_of(1, "", "x");
    const struct elv_action gone = {.kind = ELV_DO_STORE,
                                    .id = 2,
                                    .store = {.kind = ELV_STORE_UNLINK, .table = 2, .number = 5}};
    submit(&a, 1);
    submit(&gone, 1);
    submit(&gone, 1);
    assert_int_equal(last_err, ELV_OK);
    assert_int_equal(read_file(), ELV_ERR_MISSING);
}

static void two_processes_cannot_share_a_folder(void **unused)
{
    (void)unused;
    struct elv_client_state *second = NULL;
    long holder = 0;
    const struct elv_client_state_cfg cfg = {.path = path};
    assert_int_equal(elv_client_state_open(&cfg, &second, &holder), ELV_ERR_BUSY);
    assert_int_equal(holder, getpid());
    assert_null(second);
}

static void overwrite(const char *name, const uint8_t *at, size_t len)
{
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(at, 1, len, f), len);
    fclose(f);
}

static void a_file_cut_off_or_changed_anywhere_is_left_aside_and_said_so(void **unused)
{
    (void)unused;
    uint8_t *whole = NULL;
    size_t len = 0;
    const struct elv_action a = file_of(1, "head", "and the values");
    submit(&a, 1);
    assert_int_equal(elv_posix_load(in_folder("file-2-5"), 4096, &whole, &len), ELV_OK);
    for (size_t i = 0; i < 2 * len; i++) {
        n_said = 0;
        if (i >= len)
            whole[i - len] ^= 0x20;
        overwrite("file-2-5", whole, i < len ? i : len);
        if (i >= len)
            whole[i - len] ^= 0x20;
        again();
        assert_int_equal(n_said, 1);
        assert_non_null(strstr(said, "state_ignored file-2-5 "));
        assert_int_equal(read_file(), ELV_ERR_MISSING);
        again();
        assert_int_equal(n_said, 1); /* once */
    }
    overwrite("file-2-5", whole, len);
    again();
    check_file("headand the values");
    overwrite("file-3-5", whole, len); /* the right bytes under a wrong name */
    again();
    assert_non_null(strstr(said, "another file"));
    submit(&a, 1);
    check_file("headand the values");
    free(whole);
}

static void what_is_no_file_is_not_read(void **unused)
{
    (void)unused;
    assert_int_equal(symlink("/etc/passwd", in_folder("file-2-5")), 0);
    again();
    assert_int_equal(n_said, 1);
    assert_int_equal(mkfifo(in_folder("file-2-5"), 0600), 0);
    again(); /* and does not wait for a writer */
    assert_int_equal(n_said, 2);
    assert_int_equal(mkdir(in_folder("log-1"), 0700), 0);
    const struct elv_action a = append_of("x");
    submit(&a, 1);
    assert_non_null(strstr(said, "state_not_kept"));
}

static void a_half_written_file_of_a_killed_process_is_swept_away(void **unused)
{
    (void)unused;
    overwrite("fresh", (const uint8_t *)"half", 4);
    again();
    assert_int_equal(access(in_folder("fresh"), F_OK), -1);
    assert_int_equal(n_said, 0);
}

static void a_full_disk_is_said_once_and_so_is_its_end(void **unused)
{
    (void)unused;
    static char big[5000];
    memset(big, 'x', sizeof big - 1);
    const struct elv_action small = file_of(1, "", "small"), large = file_of(2, "", big);
    const struct elv_action gone = {.kind = ELV_DO_STORE,
                                    .store = {.kind = ELV_STORE_UNLINK, .table = 9}};
    struct rlimit was, limit;
    submit(&small, 1);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    limit = was;
    limit.rlim_cur = 2000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 3; i++) {
        submit(&large, 1);
        assert_int_equal(last_id, 2);
        assert_int_not_equal(last_err, ELV_OK);
        submit(&gone, 1);
    }
    assert_int_equal(n_said, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    check_file("small"); /* the old one stands */
    assert_int_equal(access(in_folder("fresh"), F_OK), -1);
    submit(&large, 1);
    assert_int_equal(last_err, ELV_OK);
    assert_int_equal(n_said, 2);
}

static void the_folder_is_for_its_owner_only(void **unused)
{
    (void)unused;
    struct stat st;
    const struct elv_action a = file_of(1, "", "x");
    submit(&a, 1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(stat(in_folder("file-2-5"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void somebody_else_s_state_is_left_alone(void **unused)
{
    (void)unused;
    elv_client_state_close(state);
    state = NULL;
    struct elv_client_state_cfg cfg = {.path = path, .owner = "device a, job j"};
    assert_int_equal(elv_client_state_open(&cfg, &state, NULL), ELV_OK);
    elv_client_state_close(state);
    state = NULL;
    cfg.owner = "device a, job k";
    assert_int_equal(elv_client_state_open(&cfg, &state, NULL), ELV_ERR_AUTH);
    cfg.owner = "device a";
    assert_int_equal(elv_client_state_open(&cfg, &state, NULL), ELV_ERR_AUTH);
    assert_null(state);
    cfg.owner = "device a, job j";
    assert_int_equal(elv_client_state_open(&cfg, &state, NULL), ELV_OK);
}

static void a_folder_that_cannot_be_is_an_error(void **unused)
{
    (void)unused;
    struct elv_client_state *other = NULL;
    const struct elv_client_state_cfg nowhere = {.path = "/tmp/elv_nowhere/at/all"};
    const struct elv_client_state_cfg file = {.path = "/dev/null"};
    assert_int_equal(elv_client_state_open(&nowhere, &other, NULL), ELV_ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(elv_client_state_open(&file, &other, NULL), ELV_ERR_IO);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_comes_back_as_it_was_last_stored),
        TEST(a_log_grows_until_it_is_dropped),
        TEST(an_unlinked_file_is_no_more),
        TEST(two_processes_cannot_share_a_folder),
        TEST(a_file_cut_off_or_changed_anywhere_is_left_aside_and_said_so),
        TEST(what_is_no_file_is_not_read),
        TEST(a_half_written_file_of_a_killed_process_is_swept_away),
        TEST(a_full_disk_is_said_once_and_so_is_its_end),
        TEST(the_folder_is_for_its_owner_only),
        TEST(somebody_else_s_state_is_left_alone),
        TEST(a_folder_that_cannot_be_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
