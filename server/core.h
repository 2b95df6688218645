/* SPDX-License-Identifier: Apache-2.0 */
/* server/core.h - what the files of the state machine call in each other; nobody else includes it.
 *
 *     server.c    memory and start
 *     step.c      the step and the deadline
 *     emit.c      actions and their bytes
 *     serve.c     requests about the job, the client and the model
 *     receive.c   chunks and commits coming in
 *     decide.c    what becomes of an update
 *     ack.c       what is answered once it is durable
 *     rounds.c    opening, closing and abandoning rounds
 *     grant.c     work handed out while a round is open
 *     offer.c     work of its own, in a stream: given, decided, its time over
 *     handout.c   who in a stream may start
 *     count.c     what the updates of a version add up to, and how it is scaled
 *     publish.c   versions, evaluation, the end of the job
 *     survey.c    the clients evaluate the last version
 *     lanes.c     which work runs next, and what its end means
 *     restore.c   the state a disk holds
 *     relog.c     the open round's upload log, read again
 */
#ifndef ELV_SERVER_CORE_H
#define ELV_SERVER_CORE_H

#include "admit.h"
#include "server.h"

#define ELV_SECOND ((elv_time_us)1000000)
#define ELV_IDLE_US (5 * ELV_SECOND) /* a transfer left alone for so long makes room */
#define ELV_ANSWERS_PER_STEP 64u
#define ELV_ANSWERS_CAP 2048u
#define ELV_ANSWERS_RESERVED (2 * ELV_VERIFY_MAX) /* for what a worker is about to decide */
#define ELV_NOTIFY_PER_STEP 32u
#define ELV_BLOCKS_PER_STEP 4u
#define ELV_GRANTS_MAX 128u  /* per round, each a record of its own */
#define ELV_TEXT_CAP 262144u /* bodies of one step's actions */

/* emit.c */
/* The id of this step's transaction. */
uint32_t elv_core_token(struct elv_server *s);
/* Gives that id to the transaction's last action. */
void elv_core_seal(struct elv_server *s, struct elv_actions *out);
uint8_t *elv_core_text(struct elv_server *s, size_t cap);
void elv_core_text_used(struct elv_server *s, size_t len); /* of the piece taken last */

void elv_core_reply(struct elv_actions *out, uint32_t request, uint8_t code, uint32_t max_age_s,
                    struct elv_bytes body);
/* Counts it, too. */
void elv_core_refuse(struct elv_server *s, struct elv_actions *out, uint32_t request,
                     enum elv_reason reason, uint32_t retry_ms);
void elv_core_refuse_as(struct elv_server *s, struct elv_actions *out, uint32_t request,
                        uint8_t code, enum elv_reason reason, uint32_t retry_ms);
void elv_core_store(struct elv_server *s, struct elv_actions *out, const struct elv_store_op *op);
void elv_core_put(struct elv_server *s, struct elv_actions *out, enum elv_table table,
                  uint64_t number, const uint8_t *at, size_t len);
void elv_core_erase(struct elv_server *s, struct elv_actions *out, enum elv_table table,
                    uint64_t number);
/* The log that is no longer of use goes with this step's transaction. */
void elv_core_drop_log(struct elv_server *s, struct elv_actions *out);
/* The head as it is, but never naming a version whose record may be missing. */
void elv_core_put_head(struct elv_server *s, struct elv_actions *out);
uint32_t elv_core_durable_version(const struct elv_server *s);
void elv_core_put_clock(struct elv_server *s, struct elv_actions *out);
void elv_core_put_client(struct elv_server *s, struct elv_actions *out, uint32_t row, bool joined);
uint32_t elv_core_compute(struct elv_server *s, struct elv_actions *out, enum elv_server_work work,
                          const void *input);

/* serve.c */
void elv_core_manifest(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
void elv_core_join(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
void elv_core_leave(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
void elv_core_ticket(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
void elv_core_model_chunk(struct elv_server *s, const struct elv_event *ev,
                          struct elv_actions *out);
void elv_core_step_chunk(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
void elv_core_tell_joined(struct elv_server *s, uint32_t row); /* the policy */
/* The client is no longer there: nothing waits for it. */
void elv_core_part(struct elv_server *s, uint32_t row, struct elv_actions *out);
void elv_core_gone(struct elv_server *s, uint32_t client, struct elv_actions *out);
uint32_t elv_core_window(const struct elv_server *s);

/* receive.c */
void elv_core_update_chunk(struct elv_server *s, const struct elv_event *ev,
                           struct elv_actions *out);
void elv_core_commit(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
/* Forgets what is staged, in the log too. */
void elv_core_discard(struct elv_server *s, struct elv_upload *up, enum elv_reason reason,
                      struct elv_actions *out);
/* A record without a chunk: who reads the log later forgets what the client, or with 0 everybody,
 * had staged before it. */
void elv_core_append_mark(struct elv_server *s, uint32_t client, uint32_t assignment,
                          struct elv_actions *out);
uint32_t elv_core_bound(const struct elv_server *s, uint8_t codec); /* chunks; 0: not the job's */
struct elv_chunk_rules elv_core_chunk_rules(const struct elv_server *s, const struct elv_row *row);
/* The open round is being given up before its time, and not durably yet. */
bool elv_core_gives_up(const struct elv_server *s);
/* May `assignment` still be worked on? NONE: it is the row's own, in the open round, undecided. */
enum elv_reason elv_core_assignment(const struct elv_server *s, const struct elv_row *row,
                                    uint32_t assignment);

/* decide.c */
struct elv_sync_round elv_core_view(const struct elv_server *s);
void elv_core_decide(struct elv_server *s, uint32_t row, const struct elv_rec_decision *d,
                     const struct elv_sums *sums, struct elv_actions *out);
/* Answers them once the decision just made is durable. */
void elv_core_await(struct elv_server *s, uint32_t row, const uint32_t *requests, uint32_t n);
void elv_core_verified(struct elv_server *s, struct elv_actions *out);
void elv_core_cut_losses(struct elv_server *s);
/* Whether giving the round up now would cost what was acknowledged, and there is time left. */
bool elv_core_worth_waiting(const struct elv_server *s);
void elv_core_save_again(struct elv_server *s, struct elv_actions *out);
/* Gives the slot back; who waits for its decision is told `reason`. */
void elv_core_drop_upload(struct elv_server *s, struct elv_upload *up, enum elv_reason reason,
                          struct elv_actions *out);

/* count.c */
bool elv_core_counts(const struct elv_server *s, const struct elv_row *row); /* in this round */
/* Of a stream: a place for an update that counts, and taking it back. */
bool elv_core_has_place(const struct elv_server *s);
void elv_core_add_counted(struct elv_server *s, uint32_t row, const struct elv_rec_decision *d);
struct elv_counted *elv_core_find_counted(struct elv_server *s, uint32_t assignment);
void elv_core_clear_counted(struct elv_server *s, struct elv_actions *out);
struct elv_scales elv_core_scales(const struct elv_server *s); /* of this round's weights */
double elv_core_effort(const struct elv_server *s, uint32_t steps);
/* Of the updates that count so far. */
struct elv_tally elv_core_tally(const struct elv_server *s);
struct elv_sync_scale elv_core_scale(const struct elv_server *s); /* of the version being closed */
uint64_t elv_core_fleet(struct elv_server *s); /* claims of all clients there, weighed */

/* ack.c */
void elv_core_answer(struct elv_server *s, struct elv_actions *out);

/* rounds.c */
/* How many a round asks, and when it opens with fewer there. */
struct elv_sync_call elv_core_call(const struct elv_policies *p, const struct elv_sync_cfg *cfg,
                                   const struct elv_job *job);
void elv_core_begin_round(struct elv_server *s, struct elv_actions *out);
elv_time_us elv_core_opens_at(const struct elv_server *s);
void elv_core_write_round(struct elv_server *s, struct elv_actions *out);
void elv_core_put_round(struct elv_server *s, struct elv_actions *out);
void elv_core_round_stored(struct elv_server *s, bool ok);
void elv_core_tell_open(struct elv_server *s);   /* the policy: a round is open */
void elv_core_check_round(struct elv_server *s); /* deadline and policy */
void elv_core_close_round(struct elv_server *s); /* with what counts so far */
void elv_core_fail_round(struct elv_server *s);
void elv_core_drop_round(struct elv_server *s, struct elv_actions *out);
void elv_core_round_dropped(struct elv_server *s, bool ok, struct elv_actions *out);
void elv_core_end_other_flow(struct elv_server *s); /* a round that another policy opened */
/* Records and log of a round leave with this step's transaction. */
void elv_core_erase_round(struct elv_server *s, uint32_t seq, uint32_t n_blocks, bool stream,
                          struct elv_actions *out);
/* Keeps what is to be reported in `closed`; no round is open then. */
void elv_core_end_round(struct elv_server *s, struct elv_actions *out);
struct elv_note *elv_core_report(struct elv_server *s, uint32_t version, enum elv_note_kind kind);
void elv_core_mark(struct elv_server *s, uint32_t row); /* its ticket changed */
void elv_core_notify(struct elv_server *s, struct elv_actions *out);

/* offer.c */
bool elv_core_streams(const struct elv_server *s); /* the job's policy does */
elv_time_us elv_core_run_clock(const struct elv_server *s);
elv_time_us elv_core_offer_ends(const struct elv_server *s, const struct elv_offer *offer);
/* Work of its own for a client without any; a round is open, and there is room for an answer. */
void elv_core_give(struct elv_server *s, uint32_t row, struct elv_actions *out);
void elv_core_given(struct elv_server *s, const struct elv_answer *a, struct elv_actions *out);
/* It is decided; or it is void, on the disk, too. */
void elv_core_end_offer(struct elv_server *s, struct elv_row *row, struct elv_actions *out);
void elv_core_void_offer(struct elv_server *s, struct elv_row *row, struct elv_actions *out);
void elv_core_void_all(struct elv_server *s, struct elv_actions *out); /* the stream has ended */
void elv_core_lapse(struct elv_server *s, struct elv_actions *out);    /* whose time is over */
/* The policy sees the client no more, until it asks again. */
void elv_core_drop_out(struct elv_server *s, uint32_t row);
/* What it sent is no longer there: its time may have passed meanwhile. */
void elv_core_undelivered(struct elv_server *s, struct elv_row *row);
void elv_core_back_again(struct elv_server *s, uint32_t row); /* it asks: it had perhaps lapsed */

/* handout.c */
void elv_core_want(struct elv_server *s, uint32_t row); /* it has no work */
void elv_core_want_again(struct elv_server *s);
bool elv_core_is_idle(const struct elv_server *s, uint32_t row);
bool elv_core_hands_out(const struct elv_server *s); /* at present */
void elv_core_hand_out(struct elv_server *s, struct elv_actions *out);

/* grant.c */
/* May a client without work have some of the open round? Asks the policy; the work shows up in a
 * later ticket. */
struct elv_sync_grant elv_core_pull(struct elv_server *s, uint32_t row, struct elv_actions *out);
void elv_core_granted(struct elv_server *s, const struct elv_answer *a, struct elv_actions *out);

/* publish.c */
void elv_core_store_first(struct elv_server *s, struct elv_actions *out);
void elv_core_keep_newest(struct elv_server *s, uint64_t counted);
/* Its file goes when nobody works on it and it is too old. */
void elv_core_release(struct elv_server *s, struct elv_kept *v, struct elv_actions *out);
void elv_core_adopt_version(struct elv_server *s, struct elv_actions *out);
void elv_core_store_version(struct elv_server *s, struct elv_actions *out);
void elv_core_version_stored(struct elv_server *s, bool ok);
void elv_core_evaluated(struct elv_server *s, enum elv_err err, struct elv_actions *out);
bool elv_core_is_finished(const struct elv_server *s); /* no further round is wanted */
void elv_core_finish(struct elv_server *s, struct elv_actions *out);
void elv_core_over_stored(struct elv_server *s, bool ok);
void elv_core_set_rate(struct elv_server *s); /* learning rate of head.version */
bool elv_core_eval_is_due(const struct elv_server *s, uint32_t version);

bool elv_core_target_is_met(const struct elv_server *s, const struct elv_eval_sums *clients);
void elv_core_note_clients_score(struct elv_server *s); /* of the round in `closed` */

/* survey.c */
bool elv_core_survey_is_due(const struct elv_server *s);
bool elv_core_is_survey(const struct elv_server *s); /* what is open is one */
void elv_core_open_survey(struct elv_server *s);
void elv_core_check_survey(struct elv_server *s);
/* Nobody is waited for, and what was answered is durable. */
bool elv_core_survey_is_done(const struct elv_server *s);
void elv_core_settle_survey(struct elv_server *s); /* leaves the head as its end makes it */
void elv_core_survey_stored(struct elv_server *s, struct elv_actions *out);

/* lanes.c */
/* Why waiting commits are turned away at present; NONE: they are not. */
enum elv_reason elv_core_turns_away(const struct elv_server *s);
void elv_core_schedule(struct elv_server *s, struct elv_actions *out);
void elv_core_computed(struct elv_server *s, const struct elv_event *ev, struct elv_actions *out);
enum elv_err elv_core_run(struct elv_server *s, const struct elv_compute *work, uint32_t budget);

/* restore.c, relog.c */
enum elv_err elv_core_restore(struct elv_server *s, bool *found);
/* Bitmaps and quotas come back from the open round's log. */
enum elv_err elv_core_replay_log(struct elv_server *s);
/* Appends went wrong: where does the log end? Asks for a STORE to come first, then measures. */
bool elv_core_must_heal_log(const struct elv_server *s); /* that is due */
void elv_core_heal_log(struct elv_server *s, struct elv_actions *out);
void elv_core_log_stored(struct elv_server *s, bool ok, struct elv_actions *out);
/* A round of a stream ends: another log, if nothing in this one is still of use. */
void elv_core_turn_log(struct elv_server *s, struct elv_actions *out);
/* The stream has ended, and its log with it. */
void elv_core_close_log(struct elv_server *s, struct elv_actions *out);
/* The STORE that took the log out of use is through. */
void elv_core_log_dropped(struct elv_server *s, bool ok);
bool elv_core_holds_off(const struct elv_server *s); /* new uploads, until the log is another */
void elv_core_mend_log(struct elv_server *s, struct elv_actions *out);

#endif
