/* SPDX-License-Identifier: Apache-2.0 */
/* tests/state_file.h - a server's whole durable state as one file: records, logs and files. */
#ifndef ELV_TESTS_STATE_FILE_H
#define ELV_TESTS_STATE_FILE_H

#include "tests/fake_disk.h"

/* Both stop the program when the file cannot be used. */
void state_file_save(const struct fake_disk *d, const char *path);
void state_file_load(struct fake_disk *d, const char *path); /* into an empty disk */

#endif
