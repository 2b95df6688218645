/* SPDX-License-Identifier: Apache-2.0 */
/* tests/state_golden.c - writes the golden state of the server's records.
 *
 *     build/tests/state_golden tests NAME
 *
 * Run by hand when the schema grows; test_golden_state then holds later builds to reading it. */
#include <stdio.h>
#include <string.h>

#include "tests/state_file.h"
#include "tests/state_runs.h"

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s TESTS_FOLDER NAME\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < state_runs_n; i++) {
        char path[512];
        static struct world w;
        if (strcmp(state_runs[i].file, argv[2]) != 0)
            continue;
        snprintf(path, sizeof path, "%s/golden/%s", argv[1], argv[2]);
        state_runs[i].prepare(&w);
        world_start(&w);
        state_runs[i].drive(&w);
        state_file_save(&w.disk, path);
        world_free(&w);
    }
    return 0;
}
