/* SPDX-License-Identifier: Apache-2.0 */
/* server/zipline.h - when will clients that run at their own pace come by at nearly the same time?
 *
 * A row is the moments at which one client, or a tier of them, is expected: an arithmetic
 * progression. The planner picks one moment of every row so that first and last lie as close
 * together as possible; of several equal choices the chronologically first. That is the smallest
 * window over the merged time line which holds every colour, found in one sweep: the last moment
 * seen of each row stays in a linked list in order of time, so taking the old one out, appending
 * the new one and looking at the first are O(1). Nothing is compared to merge: a stretch of the
 * time line that holds at most four moments a row is listed, sorted by its digits and swept before
 * the next, which makes the whole O(moments) with memory for the rows alone.
 *
 * Source: Zhao, Papagelis, An, Chen, Liu, Hu, "ZipLine: an optimized algorithm for the elastic bulk
 * synchronous parallel model", Machine Learning 110, 2021. */
#ifndef ELV_SERVER_ZIPLINE_H
#define ELV_SERVER_ZIPLINE_H

#include <stddef.h>

#include "../common/node.h"

#define ELV_ZIP_INTERVAL_MAX ((elv_time_us)1 << 40) /* twelve days */
#define ELV_ZIP_MOMENTS_MAX (1u << 20)

struct elv_zip_row { /* moment i is next + i * interval, for i from `first` to n - 1 */
    elv_time_us next;
    elv_time_us interval; /* 1 to ELV_ZIP_INTERVAL_MAX */
    uint32_t first;
    uint32_t n; /* up to ELV_ZIP_MOMENTS_MAX */
};

struct elv_zip_window {
    elv_time_us earliest, latest; /* of the moments chosen; what lies between is waiting time */
};

/* Bytes of scratch, aligned to 8, for n rows. */
size_t elv_zip_scratch_len(uint32_t n);

/* Only moments later than `after` can be chosen. Writes which one for each row to `at` [n]. False,
 * and nothing written, when a row has none or n is 0. Pure; the scratch need not be kept. */
bool elv_zip_plan(const struct elv_zip_row *rows, uint32_t n, elv_time_us after, void *scratch,
                  uint32_t *at, struct elv_zip_window *out);

#endif
