/* SPDX-License-Identifier: Apache-2.0 */
/* tests/faulty.h - makes the k-th change of a disk fail: the store's own system calls and those of
 * SQLite count together, from any thread. */
#ifndef ELV_TESTS_FAULTY_H
#define ELV_TESTS_FAULTY_H

#include <stdbool.h>
#include <stdint.h>

#include "ports/sqlite/fs.h"

enum fault { FAULT_DISK_FULL, FAULT_BROKEN_DISK, FAULT_NO_DESCRIPTOR };

/* From now on operation `k` (from 1) and the `length` - 1 after it fail; k 0: nothing does. */
void faulty_arm(uint32_t k, uint32_t length, enum fault fault);
uint32_t faulty_count(void); /* operations since */
bool faulty_happened(void);

const struct elv_fs *faulty_fs(void);
void faulty_sqlite_install(void); /* makes SQLite's files faulty too; once per process */

#endif
