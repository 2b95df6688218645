/* SPDX-License-Identifier: Apache-2.0 */
/* The policy dbw once more, as elv_sync_dbw_exact, with a cell for every h and k up to 256 clients:
 * what the classes of its table are held against. */
#define elv_time_table_len exact_len
#define elv_time_table_init exact_init
#define elv_time_table_resize exact_resize
#define elv_time_table_forget exact_forget
#define elv_time_table_add exact_add
#define elv_time_table_is_empty exact_is_empty
#define elv_time_table_fit exact_fit
#define elv_time_table_at exact_at
#define elv_sync_dbw elv_sync_dbw_exact

#include "server/time_table.h"

#undef ELV_TIME_BINS_MAX
#define ELV_TIME_BINS_MAX 256u

#include "server/sync_dbw.c"
#include "server/time_table.c"
