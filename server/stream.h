/* SPDX-License-Identifier: Apache-2.0 */
/* server/stream.h - what the policies that take each update as it comes have in common. */
#ifndef ELV_SERVER_STREAM_H
#define ELV_SERVER_STREAM_H

#include "staleness.h"
#include "sync.h"

/* For the vtable: a check and a worth for those whose only parameters are the staleness's, constant
 * unless given. */
enum elv_err elv_stream_check(const struct elv_sync_cfg *cfg, char why[ELV_JOB_ERROR_MAX],
                              uint32_t *line);
struct elv_sync_worth elv_stream_worth(const struct elv_sync_cfg *cfg, uint32_t staleness);

/* For the vtable: whatever there is may be published. */
enum elv_sync_commit_when elv_stream_may(const void *state, const struct elv_sync_cfg *cfg,
                                         const struct elv_sync_round *r, elv_time_us now);

/* For the vtable: an update by itself moves the model by its client's share of an averaged step. */
struct elv_sync_scale elv_stream_share(const void *state, const struct elv_sync_cfg *cfg,
                                       const struct elv_sync_round *r);

/* For the vtable: parameter `concurrency` bounds the clients at work; 0 or not given: all. */
uint32_t elv_stream_room(const void *state, const struct elv_sync_cfg *cfg,
                         const struct elv_sync_round *r);

/* Parameter `name`, when given, is a whole number in [least, most]; else ELV_ERR_RANGE and the
 * sentence. */
enum elv_err elv_stream_count(const struct elv_sync_cfg *cfg, const char *name, double least,
                              double most, const char *sentence, char why[ELV_JOB_ERROR_MAX],
                              uint32_t *line);

/* Parameter `name`, when given, is a word: on or off; else ELV_ERR_RANGE. */
enum elv_err elv_stream_switch(const struct elv_sync_cfg *cfg, const char *name,
                               const char *sentence, char why[ELV_JOB_ERROR_MAX], uint32_t *line);

/* How long a client that is not held may go without delivering before nobody waits for it. */
elv_time_us elv_stream_patience(const struct elv_sync_cfg *cfg);

#endif
