/* SPDX-License-Identifier: Apache-2.0 */
/* tests/store_fixture.h - a store in a temporary folder, and a node's end of it. One at a time. */
#ifndef ELV_TESTS_STORE_FIXTURE_H
#define ELV_TESTS_STORE_FIXTURE_H

#include "ports/sqlite/fs.h"
#include "ports/sqlite/store.h"

#define FIXTURE_IDS_MAX 4096u

struct fixture {
    char dir[64];
    struct elv_sqlite *store;
    struct elv_store submit;
    struct elv_disk disk;
    char why[ELV_SQLITE_WHY_MAX];
    bool reported[FIXTURE_IDS_MAX];
    enum elv_err results[FIXTURE_IDS_MAX];
    uint32_t last_id;  /* reported */
    uint32_t n_failed; /* reported */
};

extern struct fixture fx;

void fixture_make_folder(void);
void fixture_remove_folder(void);
enum elv_err fixture_open(const struct elv_fs *fs);
void fixture_close(void);

struct elv_bytes text(const char *s);
struct elv_action put(uint32_t table, uint64_t number, const char *value, uint32_t id);
struct elv_action append(uint64_t log, const char *bytes, uint32_t id);
struct elv_action file(uint32_t table, uint64_t number, const char *content, uint32_t id);
struct elv_action drop(uint64_t log, uint32_t id);
struct elv_action mend(uint64_t log, uint32_t id);

/* Submits one step. */
void step(uint32_t n, const struct elv_action *actions);
/* Waits for the report of `id` as a program's loop would. */
enum elv_err wait_for(uint32_t id);

/* Waits until what is no longer needed has been deleted too, of which nobody is told. `id`: the
 * next one. */
void wait_for_tidiness(uint32_t id);

/* What is there; "(none)" when missing. The results are static. */
const char *record_of(uint32_t table, uint64_t number);
const char *log_of(uint64_t number);
const char *file_of(uint32_t table, uint64_t number);
uint32_t files_in(const char *sub_folder);

#endif
