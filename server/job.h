/* SPDX-License-Identifier: Apache-2.0 */
/* server/job.h - one job as its file describes it: parsed, checked, every default filled in.
 *
 * The parser is fed one key at a time by whoever reads the file, so it knows no files. A message
 * names what was wrong and what would have been accepted; the caller adds file and line. */
#ifndef ELV_SERVER_JOB_H
#define ELV_SERVER_JOB_H

#include "../common/model.h"
#include "../common/msg.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ELV_JOB_TEXT_MAX 512u
#define ELV_JOB_PARAMS_MAX 16u /* parameters handed to a policy, by name */
#define ELV_JOB_ERROR_MAX 256u
#define ELV_JOB_OVERRIDE UINT32_MAX /* the line of what a flag said */
#define ELV_JOB_KEYS_MAX 48u        /* rows of the table in job_keys.c */

enum elv_param_kind { ELV_PARAM_NUMBER, ELV_PARAM_DURATION, ELV_PARAM_WORD };

/* `name = value` of a section, kept for the policy that section names. */
struct elv_param {
    char name[32];
    enum elv_param_kind kind;
    double value;  /* NUMBER; DURATION: microseconds; WORD: 1 for on, true and yes, else 0 */
    char word[24]; /* WORD: letters, digits and - _, as given */
    uint32_t line;
};

struct elv_params {
    struct elv_param at[ELV_JOB_PARAMS_MAX];
    uint32_t n;
};

enum elv_eval_on { ELV_EVAL_SERVER = 1, ELV_EVAL_CLIENTS = 2, ELV_EVAL_BOTH = 3 };
enum elv_masking { ELV_MASKING_NONE = 1, ELV_MASKING_ADDITIVE = 2 };
/* AUTO: f32 when a codec of the list needs it. */
enum elv_job_feedback {
    ELV_JOB_FEEDBACK_AUTO = 1,
    ELV_JOB_FEEDBACK_NONE = 2,
    ELV_JOB_FEEDBACK_F32 = 3,
    ELV_JOB_FEEDBACK_F16 = 4,
};
enum elv_weight { ELV_WEIGHT_SAMPLES = 1, ELV_WEIGHT_UNIFORM = 2, ELV_WEIGHT_SEEN = 3 };

struct elv_job {
    /* [job] */
    char name[ELV_JOB_NAME_MAX + 1];
    uint64_t seed;
    uint32_t rounds;        /* stop after this many versions; 0: never */
    double target_accuracy; /* 0: none */

    /* [data] */
    char train[ELV_JOB_TEXT_MAX]; /* "idx DIR", "npy X Y", "csv FILE"; empty: as devices have it */
    char test[ELV_JOB_TEXT_MAX];
    float scale, mean, std;
    char partition[ELV_JOB_TEXT_MAX]; /* "dirichlet 0.5"; empty: none */
    float holdout;

    /* [model] */
    char input[ELV_JOB_TEXT_MAX];
    char layers[ELV_JOB_TEXT_MAX];
    struct elv_model model; /* parsed from the two */
    enum elv_loss loss;
    char start[ELV_JOB_TEXT_MAX]; /* safetensors file to start from; empty: initial values */

    /* [client] */
    uint32_t local_epochs, local_steps; /* one of them is 0 */
    uint32_t batch_size;
    enum elv_optimizer optimizer;
    float momentum, weight_decay;
    float learning_rate;
    float learning_rate_decay; /* factor per round, 1: none */
    float proximal;            /* FedProx: mu of mu/2 * |w - w_base|^2; 0: none */
    enum elv_arithmetic arithmetic;

    /* [sync] [aggregate] [select] [size]: a name of the list and that policy's own parameters */
    char sync[32];
    struct elv_params sync_params;
    elv_time_us deadline_us;
    elv_time_us publish_us; /* policies without rounds: versions come no faster */
    uint32_t quorum;
    char rule[32];
    struct elv_params rule_params;
    enum elv_weight weight;
    enum elv_masking masking;
    uint32_t max_weight;
    char select[32];
    struct elv_params select_params;
    uint32_t select_count; /* clients asked per round; 0: all that joined */
    uint32_t min_clients;  /* the first round waits for this many */
    char sizing[32];
    struct elv_params sizing_params;

    /* [transfer] */
    struct elv_codec_choice up[ELV_CODECS_MAX];
    uint32_t n_up;
    struct elv_codec_choice down;
    float clip;  /* 0: none */
    float bound; /* R */
    bool deflate;
    enum elv_job_feedback feedback;
    uint32_t feedback_age;
    float momentum_correction; /* 0: none */
    uint32_t warm_up;          /* versions; 0: none */

    /* [eval] */
    uint32_t eval_every; /* versions; 0: never */
    enum elv_eval_on eval_on;

    /* [state] */
    uint32_t keep; /* versions kept besides best and final */

    uint32_t line[ELV_JOB_KEYS_MAX]; /* by place in the table of job_keys.c; 0: default */
};

/* Every default. */
void elv_job_init(struct elv_job *job);

/* One key. ELV_ERR_MISSING: no such section or key; ELV_ERR_FORMAT, ELV_ERR_RANGE: not a value of
 * it; ELV_ERR_BUSY: given before; ELV_ERR_FULL: more parameters than a policy can have. `why` says
 * in one sentence what would be accepted. Lines count from 1; with ELV_JOB_OVERRIDE a key may
 * replace what was given. Keys of [trainer] pass unread. In [sync], [aggregate], [select] and
 * [size], keys not named above become parameters, judged by the policy later. */
enum elv_err elv_job_set(struct elv_job *job, const char *section, const char *key,
                         const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX]);

/* The line that gave "section.key", which exists; 0: none, ELV_JOB_OVERRIDE: a flag. */
uint32_t elv_job_line(const struct elv_job *job, const char *path);

/* After the last key: what is missing, what does not go together, what cannot fit in the sums; and
 * the defaults that depend on other keys. `*line` is that of the key at fault, 0 when it was not
 * given. */
enum elv_err elv_job_check(struct elv_job *job, char why[ELV_JOB_ERROR_MAX], uint32_t *line);

/* Walks all keys, for --print-config: the i-th key's section, name, effective value as text and the
 * line it came from (0: default). False past the last. */
bool elv_job_key(const struct elv_job *job, size_t i, const char **section, const char **key,
                 char value[ELV_JOB_TEXT_MAX], uint32_t *line);

struct elv_line;
/* The effective job as the text of a job file that reads back as the same job. */
void elv_job_print(const struct elv_job *job, struct elv_line *out);

/* A restart may change rounds, target, [sync], [select], [size], [eval] and [state]. NULL, or the
 * name "section.key" of the first key that differs and may not. Both jobs are checked. */
const char *elv_job_changed(const struct elv_job *before, const struct elv_job *now);

/* What clients keep of what their codec left out. */
enum elv_feedback elv_job_keeps(const struct elv_job *job);

/* What a client whose codec is `codec` uses for version `version`: the job's choice, during a
 * warm-up with a larger share of the coordinates. A codec the job does not list counts as the
 * first. */
struct elv_codec_choice elv_job_up(const struct elv_job *job, uint8_t codec, uint32_t version);
/* The most chunks an update in that codec has, of any version. 0: not one of the job's. */
uint32_t elv_job_chunks_max(const struct elv_job *job, uint8_t codec);

/* The manifest this job makes for run `run`. Its texts view `job`. */
void elv_job_manifest(const struct elv_job *job, const uint8_t run[ELV_RUN_ID_LEN],
                      struct elv_manifest *m);

#ifdef __cplusplus
}
#endif
#endif
