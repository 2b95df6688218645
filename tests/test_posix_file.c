/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/posix/file.h"

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

static char folder[] = "/tmp/elv_file_XXXXXX";
static char path[64], lock_path[64], link_path[64];

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(lock_path, sizeof lock_path, "%s/lock", folder);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(lock_path);
    unlink(link_path);
    return rmdir(folder); /* fails when something was left behind */
}

static struct elv_bytes text(const char *s)
{
    return (struct elv_bytes){.at = (const uint8_t *)s, .len = strlen(s)};
}

static void check_content(const char *at, const char *want)
{
    uint8_t *got = NULL;
    size_t len = 0;
    assert_int_equal(elv_posix_load(at, 1000, &got, &len), ELV_OK);
    assert_int_equal(len, strlen(want));
    assert_string_equal((char *)got, want);
    free(got);
}

static void a_save_replaces_the_whole_file_and_makes_it_private(void **state)
{
    (void)state;
    assert_int_equal(elv_posix_save(path, text("a long first version")), ELV_OK);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(elv_posix_save(path, text("short")), ELV_OK);
    check_content(path, "short");
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    assert_int_equal(elv_posix_save(path, text("")), ELV_OK);
    check_content(path, "");
}

static void a_published_file_may_be_read_by_others(void **state)
{
    (void)state;
    struct stat s;
    assert_int_equal(elv_posix_publish(path, text("{}")), ELV_OK);
    check_content(path, "{}");
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0644);
    assert_int_equal(elv_posix_publish("/tmp/no/such/folder/file", text("x")), ELV_ERR_IO);
}

static void a_save_that_fails_leaves_the_old_file_and_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(elv_posix_save("/tmp/no/such/folder/file", text("x")), ELV_ERR_IO);
    char deep[5000];
    memset(deep, 'a', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    assert_int_equal(elv_posix_save(deep, text("x")), ELV_ERR_ARG);
    assert_int_equal(elv_posix_save(folder, text("x")), ELV_ERR_IO); /* a folder is in the way */
    struct stat s;
    assert_int_equal(stat(folder, &s), 0);
    assert_true(S_ISDIR(s.st_mode));
}

static void a_save_replaces_a_link_and_not_what_it_points_to(void **state)
{
    (void)state;
    assert_int_equal(elv_posix_save(path, text("target")), ELV_OK);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(elv_posix_save(link_path, text("new")), ELV_OK);
    check_content(path, "target");
    check_content(link_path, "new");
}

static void a_load_has_a_cap(void **state)
{
    (void)state;
    static const struct {
        size_t size, max;
        enum elv_err want;
    } rows[] = {
        {0, 0, ELV_OK},         {1, 0, ELV_ERR_FULL}, {10, 10, ELV_OK},
        {11, 10, ELV_ERR_FULL}, {4096, 4096, ELV_OK}, {4097, 4096, ELV_ERR_FULL},
        {9000, 9001, ELV_OK},   {9000, 9000, ELV_OK}, {9000, 8999, ELV_ERR_FULL},
        {10, 1u << 20, ELV_OK},
    };
    uint8_t data[9000];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *got = NULL;
        size_t len = 0;
        const struct elv_bytes in = {.at = data, .len = rows[i].size};
        assert_int_equal(elv_posix_save(path, in), ELV_OK);
        assert_int_equal(elv_posix_load(path, rows[i].max, &got, &len), rows[i].want);
        if (rows[i].want == ELV_OK) {
            assert_int_equal(len, rows[i].size);
            assert_memory_equal(got, data, len);
        }
        free(got);
    }
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    uint8_t *got = NULL;
    size_t len;
    assert_int_equal(elv_posix_load("/tmp/elv/no/such", 10, &got, &len), ELV_ERR_MISSING);
    assert_int_equal(elv_posix_load(folder, 10, &got, &len), ELV_ERR_IO);
    assert_null(got);
}

static void a_secret_others_may_read_is_refused(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        enum elv_err want;
    } rows[] = {
        {0600, ELV_OK},       {0400, ELV_OK},       {0640, ELV_ERR_AUTH}, {0604, ELV_ERR_AUTH},
        {0620, ELV_ERR_AUTH}, {0602, ELV_ERR_AUTH}, {0700, ELV_OK},       {0644, ELV_ERR_AUTH},
    };
    assert_int_equal(elv_posix_save(path, text("secret")), ELV_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *got = NULL;
        size_t len = 0;
        assert_int_equal(chmod(path, rows[i].mode), 0);
        assert_int_equal(elv_posix_load_private(path, 100, &got, &len), rows[i].want);
        free(got);
    }
}

static void a_second_holder_of_a_lock_is_told_who_has_it(void **state)
{
    (void)state;
    struct elv_lock mine, other;
    long holder = 0;
    assert_int_equal(elv_posix_lock(&mine, lock_path, false, NULL), ELV_OK);
    assert_int_equal(elv_posix_lock(&other, lock_path, false, &holder), ELV_ERR_BUSY);
    assert_int_equal(holder, getpid());
    assert_int_equal(other.fd, -1);
    elv_posix_unlock(&other); /* harmless */
    elv_posix_unlock(&mine);
    assert_int_equal(elv_posix_lock(&other, lock_path, false, NULL), ELV_OK);
    elv_posix_unlock(&other);
    assert_int_equal(elv_posix_lock(&other, "/tmp/elv/no/such", false, NULL), ELV_ERR_IO);
}

static void a_lock_ends_with_its_process(void **state)
{
    (void)state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        struct elv_lock lock;
        const char ok = elv_posix_lock(&lock, lock_path, false, NULL) == ELV_OK ? 'y' : 'n';
        _exit(write(ready[1], &ok, 1) == 1 ? pause() : 1);
    }
    char ok = 0;
    assert_int_equal(read(ready[0], &ok, 1), 1);
    assert_int_equal(ok, 'y');
    struct elv_lock lock;
    assert_int_equal(elv_posix_lock(&lock, lock_path, false, NULL), ELV_ERR_BUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(elv_posix_lock(&lock, lock_path, true, NULL), ELV_OK);
    assert_int_equal(waitpid(child, NULL, 0), child);
    elv_posix_unlock(&lock);
    close(ready[0]);
    close(ready[1]);
}

static void a_wiped_secret_is_gone(void **state)
{
    (void)state;
    uint8_t key[16];
    memset(key, 0xA5, sizeof key);
    elv_posix_wipe(key, sizeof key - 1);
    for (size_t i = 0; i < sizeof key - 1; i++)
        assert_int_equal(key[i], 0);
    assert_int_equal(key[sizeof key - 1], 0xA5);
}

/* In a child: 0 when no descriptor below 3 is left for a file to take. */
static int with_streams_closed(unsigned which)
{
    for (int fd = 0; fd <= 2; fd++)
        if (which >> fd & 1)
            close(fd);
    if (elv_posix_keep_streams() != ELV_OK)
        return 1;
    const int fd = open("/dev/null", O_RDONLY);
    if (fd < 3 || write(STDOUT_FILENO, "", 0) != 0)
        return 2;
    close(fd);
    return 0;
}

static void closed_standard_streams_are_not_taken_by_files(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 8; which++) {
        int status = -1;
        const pid_t child = fork();
        if (child == 0)
            _exit(with_streams_closed(which));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

static int with_few_descriptors(void)
{
    const struct rlimit few = {16, 16};
    int fds[16];
    uint32_t left = 0;
    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 1;
    while (left < 16 && (fds[left] = open("/dev/null", O_RDONLY)) >= 0)
        left++;
    for (uint32_t i = 0; i < left; i++)
        close(fds[i]);
    if (elv_posix_spare_files(left) != ELV_OK || elv_posix_spare_files(left) != ELV_OK)
        return 2;
    return elv_posix_spare_files(left + 1) == ELV_ERR_IO ? 0 : 3;
}

static void too_few_descriptors_are_noticed_beforehand(void **state)
{
    (void)state;
    int status = -1;
    const pid_t child = fork();
    if (child == 0)
        _exit(with_few_descriptors());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_save_replaces_the_whole_file_and_makes_it_private),
        cmocka_unit_test(a_published_file_may_be_read_by_others),
        cmocka_unit_test(a_save_that_fails_leaves_the_old_file_and_nothing_else),
        cmocka_unit_test(a_save_replaces_a_link_and_not_what_it_points_to),
        cmocka_unit_test(a_load_has_a_cap),
        cmocka_unit_test(what_cannot_be_read_is_named),
        cmocka_unit_test(a_secret_others_may_read_is_refused),
        cmocka_unit_test(a_second_holder_of_a_lock_is_told_who_has_it),
        cmocka_unit_test(a_lock_ends_with_its_process),
        cmocka_unit_test(a_wiped_secret_is_gone),
        cmocka_unit_test(too_few_descriptors_are_noticed_beforehand),
        cmocka_unit_test(closed_standard_streams_are_not_taken_by_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
