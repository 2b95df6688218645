/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/codec.h"
#include "common/text.h"
#include "server/job.h"
#include "server/value.h"

/* Feeds lines "section.key = value" until one is refused; `*at` is that line, or the one the check
 * names. */
static enum elv_err load(struct elv_job *job, const char *text, char why[ELV_JOB_ERROR_MAX],
                         uint32_t *at)
{
    elv_job_init(job);
    for (*at = 1; *text != '\0'; (*at)++) {
        char section[64], key[64], value[600];
        const char *dot = strchr(text, '.'), *equals = strchr(text, '='), *end = strchr(text, '\n');
        memcpy(section, text, (size_t)(dot - text));
        section[dot - text] = '\0';
        memcpy(key, dot + 1, (size_t)(equals - dot) - 2);
        key[equals - dot - 2] = '\0';
        memcpy(value, equals + 1, (size_t)(end - equals) - 1);
        value[end - equals - 1] = '\0';
        const enum elv_err err = elv_job_set(job, section, key, value, *at, why);
        if (err != ELV_OK)
            return err;
        text = end + 1;
    }
    return elv_job_check(job, why, at);
}

#define LEAST "job.name = a\nmodel.input = 4x1x1\nmodel.layers = dense 2\n"

static struct elv_job loaded(const char *text)
{
    struct elv_job job;
    char why[ELV_JOB_ERROR_MAX];
    uint32_t at;
    if (load(&job, text, why, &at) != ELV_OK)
        fail_msg("line %u: %s", (unsigned)at, why);
    return job;
}

static void a_whole_file_is_read(void **state)
{
    (void)state;
    const struct elv_job job =
        loaded("job.name = fashion\n"
               "job.seed = 18446744073709551615\n"
               "job.rounds = 30\n"
               "job.target_accuracy = 0.85\n"
               "data.train = idx /path/to/dir\n"
               "data.test = npy X.npy Y.npy\n"
               "data.scale = 1/255\n"
               "data.mean = 0.2860\n"
               "data.std = 0.3530\n"
               "data.partition = dirichlet 0.5\n"
               "data.holdout = 0.1\n"
               "model.input = 1x28x28\n"
               "model.layers = conv 8 5x5 relu, maxpool 2, conv 16 5x5 relu, maxpool 2, "
               "dense 64 relu, dense 10\n"
               "model.loss = softmax-cross-entropy\n"
               "client.local_steps = 20\n"
               "client.batch_size = 16\n"
               "client.optimizer = sgd momentum 0.9 weight_decay 5e-4\n"
               "client.learning_rate = 0.1\n"
               "client.learning_rate_decay = 0.95\n"
               "client.arithmetic = reference\n"
               "sync.policy = backup\n"
               "sync.deadline = 30s\n"
               "sync.quorum = 2\n"
               "sync.k = 6\n"
               "aggregate.rule = fedavg\n"
               "aggregate.weight = seen\n"
               "aggregate.max_weight = 5000\n"
               "select.policy = uniform\n"
               "select.count = 8\n"
               "select.min_clients = 4\n"
               "size.policy = fixed\n"
               "transfer.up = q8, f32\n"
               "transfer.down = q8\n"
               "transfer.clip = 2.5\n"
               "transfer.bound = 4\n"
               "transfer.deflate = on\n"
               "eval.every = 5\n"
               "eval.on = both\n"
               "state.keep = 2\n"
               "trainer.anything = at all\n"
               "trainer.anything = twice\n");
    assert_string_equal(job.name, "fashion");
    assert_true(job.seed == UINT64_MAX);
    assert_int_equal(job.rounds, 30);
    assert_true(job.target_accuracy == 0.85);
    assert_string_equal(job.train, "idx /path/to/dir");
    assert_string_equal(job.test, "npy X.npy Y.npy");
    assert_true(job.scale == 1.0f / 255.0f);
    assert_true(job.mean == 0.286f && job.std == 0.353f && job.holdout == 0.1f);
    assert_string_equal(job.partition, "dirichlet 0.5");
    assert_int_equal(job.model.n_classes, 10);
    assert_int_equal(job.model.n_layers, 6);
    assert_int_equal(job.loss, ELV_LOSS_SOFTMAX_XENT);
    assert_int_equal(job.local_steps, 20);
    assert_int_equal(job.local_epochs, 0);
    assert_int_equal(job.batch_size, 16);
    assert_true(job.momentum == 0.9f && job.weight_decay == 5e-4f);
    assert_true(job.learning_rate == 0.1f && job.learning_rate_decay == 0.95f);
    assert_int_equal(job.arithmetic, ELV_ARITHMETIC_REFERENCE);
    assert_string_equal(job.sync, "backup");
    assert_int_equal(job.deadline_us, 30000000);
    assert_int_equal(job.quorum, 2);
    assert_int_equal(job.sync_params.n, 1);
    assert_string_equal(job.sync_params.at[0].name, "k");
    assert_true(job.sync_params.at[0].value == 6);
    assert_int_equal(job.sync_params.at[0].line, 24);
    assert_int_equal(job.weight, ELV_WEIGHT_SEEN);
    assert_int_equal(job.max_weight, 5000);
    assert_int_equal(job.select_count, 8);
    assert_int_equal(job.min_clients, 4);
    assert_int_equal(job.n_up, 2);
    assert_int_equal(job.up[0].id, ELV_CODEC_Q8);
    assert_int_equal(job.up[1].id, ELV_CODEC_F32);
    assert_int_equal(job.down.id, ELV_CODEC_Q8);
    assert_true(job.clip == 2.5f && job.bound == 4.0f && job.deflate);
    assert_int_equal(job.eval_every, 5);
    assert_int_equal(job.eval_on, ELV_EVAL_BOTH);
    assert_int_equal(job.keep, 2);
}

/* The file a restarted server compares its job with. */
static void a_printed_job_is_a_file_of_the_same_job(void **state)
{
    (void)state;
    static char text[8192], lines[8192];
    const struct elv_job job = loaded(LEAST "job.seed = 7\n"
                                            "data.train = npy X.npy Y.npy\n"
                                            "client.optimizer = sgd momentum 0.9\n"
                                            "sync.policy = backup\n"
                                            "sync.backup = 2\n"
                                            "transfer.up = q8, f32\n");
    struct elv_line file = elv_line_of(text, sizeof text);
    struct elv_line flat = elv_line_of(lines, sizeof lines);
    elv_job_print(&job, &file);
    char section[32] = "";
    for (char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        if (at[0] == '[') {
            memcpy(section, at + 1, strlen(at) - 2);
            section[strlen(at) - 2] = '\0';
            continue;
        }
        elv_line_add(&flat, section);
        elv_line_add(&flat, ".");
        elv_line_add(&flat, at);
        elv_line_add(&flat, "\n");
    }
    assert_false(file.full || flat.full);
    const struct elv_job again = loaded(lines);
    assert_null(elv_job_changed(&job, &again));
    assert_string_equal(again.sync, "backup");
    assert_true(again.sync_params.at[0].value == 2);
}

static void what_is_not_given_has_a_default(void **state)
{
    (void)state;
    const struct elv_job job = loaded(LEAST);
    static const struct {
        const char *section, *key, *value;
    } rows[] = {
        {"job", "name", "a"},
        {"job", "seed", "1"},
        {"job", "rounds", "0"},
        {"job", "target_accuracy", "0"},
        {"data", "train", ""},
        {"data", "test", ""},
        {"data", "scale", "1"},
        {"data", "mean", "0"},
        {"data", "std", "1"},
        {"data", "partition", ""},
        {"data", "holdout", "0"},
        {"model", "input", "4x1x1"},
        {"model", "layers", "dense 2"},
        {"model", "loss", "softmax-cross-entropy"},
        {"model", "start", ""},
        {"client", "local_epochs", "1"},
        {"client", "local_steps", "0"},
        {"client", "batch_size", "32"},
        {"client", "optimizer", "sgd"},
        {"client", "learning_rate", "0.05"},
        {"client", "learning_rate_decay", "1"},
        {"client", "proximal", "0"},
        {"client", "arithmetic", "fast"},
        {"sync", "policy", "bsp"},
        {"sync", "deadline", "60s"},
        {"sync", "publish_interval", "1s"},
        {"sync", "quorum", "1"},
        {"aggregate", "rule", "fedavg"},
        {"aggregate", "weight", "samples"},
        {"aggregate", "max_weight", "100000"},
        {"aggregate", "masking", "none"},
        {"select", "policy", "uniform"},
        {"select", "count", "0"},
        {"select", "min_clients", "1"},
        {"size", "policy", "fixed"},
        {"transfer", "up", "q8"},
        {"transfer", "down", "f32"},
        {"transfer", "clip", "none"},
        {"transfer", "bound", "8"},
        {"transfer", "deflate", "off"},
        {"transfer", "feedback", "auto"},
        {"transfer", "feedback_age", "1"},
        {"transfer", "momentum_correction", "0"},
        {"transfer", "warm_up", "0"},
        {"eval", "every", "never"},
        {"eval", "on", "clients"},
        {"state", "keep", "3"},
    };
    const char *section, *key;
    char value[ELV_JOB_TEXT_MAX];
    uint32_t line;
    size_t i = 0;
    for (; elv_job_key(&job, i, &section, &key, value, &line); i++) {
        assert_true(i < sizeof rows / sizeof rows[0]);
        assert_string_equal(section, rows[i].section);
        assert_string_equal(key, rows[i].key);
        assert_string_equal(value, rows[i].value);
        const uint32_t given = i == 0 ? 1 : i == 11 ? 2 : i == 12 ? 3 : 0;
        assert_int_equal(line, given);
    }
    assert_int_equal(i, sizeof rows / sizeof rows[0]);
}

static void values_print_as_they_would_be_read(void **state)
{
    (void)state;
    static const struct {
        const char *section, *key, *value, *printed;
    } rows[] = {
        {"data", "scale", "1/255", "0.003921569"},
        {"data", "scale", " 0.25 ", "0.25"},
        {"data", "mean", "-1e-9", "-1e-9"},
        {"data", "train", "csv f.csv", "csv f.csv"},
        {"data", "partition", "iid", "iid"},
        {"data", "partition", "shards 2", "shards 2"},
        {"data", "partition", "quantity 0.3", "quantity 0.3"},
        {"data", "partition", "file PART.npy", "file PART.npy"},
        {"client", "optimizer", "sgd", "sgd"},
        {"client", "optimizer", "sgd\tmomentum\t0.5", "sgd momentum 0.5"},
        {"client", "optimizer", "sgd momentum 0", "sgd"},
        {"client", "optimizer", "sgd  momentum  0.5", "sgd momentum 0.5"},
        {"client", "optimizer", "sgd weight_decay 0.1 momentum 0.5",
         "sgd momentum 0.5 weight_decay 0.1"},
        {"sync", "deadline", "500ms", "500ms"},
        {"sync", "deadline", "0.5s", "500ms"},
        {"sync", "deadline", "1500us", "1500us"},
        {"sync", "deadline", "2m", "120s"},
        {"sync", "deadline", "960h", "3456000s"},
        {"sync", "deadline", "0.0000011h", "3960us"},
        {"transfer", "up", "f32,q8", "f32, q8"},
        {"transfer", "up", "q8\tstochastic", "q8 stochastic"},
        {"transfer", "up", "q4 stochastic,q8 stochastic,  sign, f16",
         "q4 stochastic, q8 stochastic, sign, f16"},
        {"transfer", "up", "q4", "q4"},
        {"transfer", "up", "ternary 0.01,rotate 2", "ternary 0.01, rotate 2"},
        {"transfer", "up", "topk\t0.05 , ternary .5", "topk 0.05, ternary 0.5"},
        {"transfer", "down", "ternary 1e-6", "ternary 1e-6"},
        {"transfer", "down", "q4 stochastic", "q4 stochastic"},
        {"transfer", "down", "f16", "f16"},
        {"transfer", "clip", "none", "none"},
        {"transfer", "clip", "1e3", "1000"},
        {"transfer", "deflate", "yes", "on"},
        {"transfer", "deflate", "0", "off"},
        {"eval", "every", "never", "never"},
        {"eval", "every", "0", "never"},
        {"eval", "every", "7", "7"},
        {"aggregate", "max_weight", "4294967295", "4294967295"},
        {"sync", "patience", "2.5s", "2500ms"},
        {"sync", "strict", "on", "on"},
        {"sync", "a-name_of_9_and_20_characters_z", "2", "2"},
        {"aggregate", "beta", "9/10", "0.9"},
        {"select", "share", "0.1", "0.1"},
        {"size", "target", "10ms", "10ms"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_job job;
        char why[ELV_JOB_ERROR_MAX], value[ELV_JOB_TEXT_MAX];
        const char *section, *key;
        uint32_t line;
        elv_job_init(&job);
        if (elv_job_set(&job, rows[i].section, rows[i].key, rows[i].value, 9, why) != ELV_OK)
            fail_msg("%s", why);
        size_t k = 0;
        while (elv_job_key(&job, k, &section, &key, value, &line) && line != 9)
            k++;
        assert_string_equal(section, rows[i].section);
        assert_string_equal(key, rows[i].key);
        assert_string_equal(value, rows[i].printed);
    }
}

static void a_wrong_key_or_value_is_answered_with_what_would_be_right(void **state)
{
    (void)state;
    static const struct {
        const char *section, *key, *value;
        enum elv_err err;
        const char *why; /* a part of it */
    } rows[] = {
        {"jobs", "name", "a", ELV_ERR_MISSING, "did you mean job?"},
        {"aggregation", "rule", "a", ELV_ERR_MISSING, "there are job, data, model"},
        {"", "name", "a", ELV_ERR_MISSING, "there is no section []"},
        {"job", "nmae", "a", ELV_ERR_MISSING, "did you mean name?"},
        {"job", "colour", "a", ELV_ERR_MISSING, "it has name, seed, rounds, target_accuracy"},
        {"data", "tests", "a", ELV_ERR_MISSING, "did you mean test?"},
        {"job", "name", "", ELV_ERR_FORMAT, "name has no value; give 1 to 32"},
        {"job", "name", "a job", ELV_ERR_FORMAT, "cannot be \"a job\"; give 1 to 32 letters"},
        {"job", "name", "123456789012345678901234567890123", ELV_ERR_RANGE, "1 to 32"},
        {"job", "seed", "-1", ELV_ERR_FORMAT, "below 2^64"},
        {"job", "seed", "18446744073709551616", ELV_ERR_FORMAT, "below 2^64"},
        {"job", "rounds", "1000000001", ELV_ERR_RANGE, "1000000000"},
        {"job", "rounds", "3.5", ELV_ERR_FORMAT, "whole number"},
        {"job", "target_accuracy", "85", ELV_ERR_RANGE, "to 1"},
        {"data", "train", "idx", ELV_ERR_FORMAT, "idx FOLDER"},
        {"data", "train", "npy X.npy", ELV_ERR_FORMAT, "npy X.npy Y.npy"},
        {"data", "train", "hdf5 file", ELV_ERR_FORMAT, "csv FILE"},
        {"data", "scale", "0", ELV_ERR_RANGE, "above 0"},
        {"data", "scale", "1/0", ELV_ERR_FORMAT, "above 0"},
        {"data", "scale", "1/2/3", ELV_ERR_FORMAT, "above 0"},
        {"data", "scale", "/2", ELV_ERR_FORMAT, "above 0"},
        {"data", "mean", "1e-31", ELV_ERR_FORMAT, "a number"},
        {"data", "mean", "1e31", ELV_ERR_FORMAT, "a number"},
        {"data", "mean", "nan", ELV_ERR_FORMAT, "a number"},
        {"data", "std", "-1", ELV_ERR_RANGE, "above 0"},
        {"data", "partition", "shards", ELV_ERR_FORMAT, "shards N"},
        {"data", "partition", "shards 2.5", ELV_ERR_FORMAT, "shards N"},
        {"data", "partition", "dirichlet 0", ELV_ERR_FORMAT, "dirichlet A"},
        {"data", "partition", "iid 3", ELV_ERR_FORMAT, "iid"},
        {"data", "partition", "file caf\xc3\xa9.npy", ELV_ERR_FORMAT, "PART.npy"},
        {"data", "holdout", "1", ELV_ERR_RANGE, "below 1"},
        {"data", "holdout", "0.99999999999", ELV_ERR_RANGE, "below 1"},
        {"model", "loss", "mse", ELV_ERR_FORMAT, "softmax-cross-entropy"},
        {"client", "local_epochs", "1000001", ELV_ERR_RANGE, "1000000"},
        {"client", "batch_size", "0", ELV_ERR_RANGE, "from 1"},
        {"client", "optimizer", "adam", ELV_ERR_FORMAT, "sgd [momentum M]"},
        {"client", "optimizer", "sgd momentum", ELV_ERR_FORMAT, "sgd"},
        {"client", "optimizer", "sgd momentum 1", ELV_ERR_RANGE, "M below 1"},
        {"client", "optimizer", "sgd momentum 0.1 momentum 0.2", ELV_ERR_FORMAT, "sgd"},
        {"client", "optimizer", "sgd nesterov 1", ELV_ERR_FORMAT, "sgd"},
        {"client", "learning_rate", "-0.1", ELV_ERR_RANGE, "from 0"},
        {"client", "learning_rate", "1e999", ELV_ERR_FORMAT, "from 0"},
        {"client", "learning_rate_decay", "1.5", ELV_ERR_RANGE, "up to 1"},
        {"client", "arithmetic", "exact", ELV_ERR_FORMAT, "fast or reference"},
        {"sync", "policy", "Back Up", ELV_ERR_FORMAT, "bsp or backup"},
        {"sync", "policy", "a-name-of-thirty-two-characters-", ELV_ERR_RANGE, "bsp or backup"},
        {"sync", "deadline", "30", ELV_ERR_FORMAT, "30s"},
        {"sync", "deadline", "30 s", ELV_ERR_FORMAT, "30s"},
        {"sync", "deadline", "s", ELV_ERR_FORMAT, "30s"},
        {"sync", "deadline", "-1s", ELV_ERR_FORMAT, "30s"},
        {"sync", "deadline", "3d", ELV_ERR_FORMAT, "2h"},
        {"sync", "deadline", "0s", ELV_ERR_RANGE, "1ms"},
        {"sync", "deadline", "961h", ELV_ERR_RANGE, "960h"},
        {"sync", "deadline", "1e300h", ELV_ERR_FORMAT, "960h"},
        {"sync", "quorum", "0", ELV_ERR_RANGE, "from 1"},
        {"sync", "quorum", "all", ELV_ERR_FORMAT, "from 1"},
        {"sync", "mode", "two words", ELV_ERR_FORMAT, "a number, a time"},
        {"sync", "mode", "", ELV_ERR_FORMAT, "mode has no value; give a number, a time"},
        {"sync", "", "1", ELV_ERR_MISSING, "it has policy"},
        {"sync", "a_name_of_thirty_two_characters_", "1", ELV_ERR_MISSING, "it has policy"},
        {"sync", "Mode", "1", ELV_ERR_MISSING, "it has policy, deadline, publish_interval, quorum"},
        {"aggregate", "weight", "size", ELV_ERR_FORMAT, "samples, uniform or seen"},
        {"aggregate", "max_weight", "0", ELV_ERR_RANGE, "from 1"},
        {"aggregate", "max_weight", "4294967296", ELV_ERR_RANGE, "4294967295"},
        {"transfer", "up", "q9", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q8 0.1", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q8 0.5 stochastic", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q8 random", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q8 stochastic stochastic", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "stochastic", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q4 1", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "f16 stochastic", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "sign stochastic", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q8, q8 stochastic", ELV_ERR_FORMAT, "different"},
        {"transfer", "down", "q4, q8", ELV_ERR_FORMAT, "a codec"},
        {"transfer", "up", "q8,", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "q8, q8", ELV_ERR_FORMAT, "different"},
        {"transfer", "up", "q8,q8,q8,q8,q8,q8,q8,q8,q8", ELV_ERR_FORMAT, "up to 8"},
        {"transfer", "down", "q8, f32", ELV_ERR_FORMAT, "a codec"},
        {"transfer", "up", "ternary", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "ternary 0.01 stochastic", ELV_ERR_FORMAT, "such as q8, f32"},
        {"transfer", "up", "ternary 0", ELV_ERR_RANGE, "such as q8, f32"},
        {"transfer", "up", "ternary 0.51", ELV_ERR_RANGE, "such as q8, f32"},
        {"transfer", "up", "ternary -0.01", ELV_ERR_RANGE, "such as q8, f32"},
        {"transfer", "up", "q8, topk 1", ELV_ERR_RANGE, "such as q8, f32"},
        {"transfer", "down", "topk 1e-7", ELV_ERR_RANGE, "a codec"},
        {"transfer", "up", "ternary 0.01, ternary 0.1", ELV_ERR_FORMAT, "different"},
        {"transfer", "clip", "0", ELV_ERR_RANGE, "none"},
        {"transfer", "clip", "off", ELV_ERR_FORMAT, "none"},
        {"transfer", "bound", "0", ELV_ERR_RANGE, "2^60"},
        {"transfer", "bound", "1e30", ELV_ERR_RANGE, "2^60"},
        {"transfer", "deflate", "maybe", ELV_ERR_FORMAT, "on or off"},
        {"transfer", "feedback", "on", ELV_ERR_FORMAT, "auto, none, f32 or f16"},
        {"transfer", "feedback_age", "-1", ELV_ERR_FORMAT, "whole number"},
        {"transfer", "momentum_correction", "1", ELV_ERR_RANGE, "below 1"},
        {"transfer", "warm_up", "1000001", ELV_ERR_RANGE, "from 0 to 1000000"},
        {"eval", "every", "often", ELV_ERR_FORMAT, "never"},
        {"eval", "on", "device", ELV_ERR_FORMAT, "server, clients or both"},
        {"state", "keep", "-3", ELV_ERR_FORMAT, "whole number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_job job, before;
        char why[ELV_JOB_ERROR_MAX];
        elv_job_init(&job);
        before = job;
        const enum elv_err err =
            elv_job_set(&job, rows[i].section, rows[i].key, rows[i].value, 9, why);
        if (err != rows[i].err || strstr(why, rows[i].why) == NULL)
            fail_msg("[%s] %s = %s: %s: %s", rows[i].section, rows[i].key, rows[i].value,
                     elv_err_text(err), why);
        assert_memory_equal(&job, &before, sizeof job);
    }
}

static void a_long_text_is_cut_out_of_the_sentence(void **state)
{
    (void)state;
    char longest[2000], why[ELV_JOB_ERROR_MAX];
    struct elv_job job;
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    elv_job_init(&job);
    assert_int_equal(elv_job_set(&job, "sync", "quorum", longest, 1, why), ELV_ERR_FORMAT);
    assert_non_null(strstr(why, "give a whole number"));
    assert_int_equal(elv_job_set(&job, "job", longest, "1", 1, why), ELV_ERR_MISSING);
    assert_non_null(strstr(why, "it has name"));
    assert_int_equal(elv_job_set(&job, longest, "name", "1", 1, why), ELV_ERR_MISSING);
    assert_non_null(strstr(why, "there are job"));
    assert_int_equal(elv_job_set(&job, "sync", longest, "1", 1, why), ELV_ERR_MISSING);
    assert_int_equal(elv_job_set(&job, "model", "layers", longest, 1, why), ELV_ERR_RANGE);
}

static void a_key_given_twice_is_refused_but_a_flag_may_replace_it(void **state)
{
    (void)state;
    struct elv_job job;
    char why[ELV_JOB_ERROR_MAX];
    elv_job_init(&job);
    assert_int_equal(elv_job_set(&job, "job", "rounds", "3", 4, why), ELV_OK);
    assert_int_equal(elv_job_set(&job, "job", "rounds", "3", 9, why), ELV_ERR_BUSY);
    assert_string_equal(why, "rounds is given twice; line 4 has it already");
    assert_int_equal(elv_job_set(&job, "sync", "k", "3", 5, why), ELV_OK);
    assert_int_equal(elv_job_set(&job, "sync", "k", "4", 9, why), ELV_ERR_BUSY);
    assert_string_equal(why, "k is given twice; line 5 has it already");
    assert_int_equal(elv_job_set(&job, "job", "rounds", "7", ELV_JOB_OVERRIDE, why), ELV_OK);
    assert_int_equal(elv_job_set(&job, "sync", "k", "8", ELV_JOB_OVERRIDE, why), ELV_OK);
    assert_int_equal(job.rounds, 7);
    assert_int_equal(job.sync_params.n, 1);
    assert_true(job.sync_params.at[0].value == 8);
}

static void a_policy_has_room_for_sixteen_parameters(void **state)
{
    (void)state;
    struct elv_job job;
    char why[ELV_JOB_ERROR_MAX], name[] = "a";
    elv_job_init(&job);
    for (uint32_t i = 0; i < ELV_JOB_PARAMS_MAX; i++, name[0]++)
        assert_int_equal(elv_job_set(&job, "select", name, "1", i + 1, why), ELV_OK);
    assert_int_equal(elv_job_set(&job, "select", name, "1", 99, why), ELV_ERR_FULL);
    assert_non_null(strstr(why, "[select]"));
}

static void keys_that_do_not_go_together_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum elv_err err;
        uint32_t line;
        const char *why;
    } rows[] = {
        {"job.name = a\n", ELV_ERR_MISSING, 0, "[model] needs input; give a shape"},
        {"model.input = 4x1x1\nmodel.layers = dense 2\n", ELV_ERR_MISSING, 0, "[job] needs name"},
        {"job.name = a\nmodel.input = 4x1x1\n", ELV_ERR_MISSING, 0, "[model] needs layers"},
        {"job.name = a\nmodel.input = 4x1x1\nmodel.layers = dens 2\n", ELV_ERR_FORMAT, 3,
         "layers, at \"dens 2\": give"},
        {"job.name = a\nmodel.input = 4x1x\nmodel.layers = dense 2\n", ELV_ERR_FORMAT, 2,
         "input, at its end: give"},
        {LEAST "client.local_epochs = 2\nclient.local_steps = 5\n", ELV_ERR_RANGE, 5, "either"},
        {LEAST "client.local_epochs = 0\n", ELV_ERR_RANGE, 4, "either"},
        {LEAST "client.local_epochs = 0\nclient.local_steps = 5\n", ELV_OK, 0, ""},
        {LEAST "sync.quorum = 3\nselect.min_clients = 2\n", ELV_ERR_RANGE, 5, "quorum"},
        {LEAST "sync.quorum = 3\nselect.min_clients = 3\n", ELV_OK, 0, ""},
        {LEAST "sync.quorum = 3\nselect.count = 2\n", ELV_ERR_RANGE, 5, "quorum"},
        {LEAST "sync.quorum = 3\nselect.count = 3\n", ELV_OK, 0, ""},
        {LEAST "aggregate.max_weight = 4294967295\nselect.count = 262145\n", ELV_ERR_RANGE, 4,
         "2^50"},
        {LEAST "aggregate.max_weight = 4294967295\nselect.count = 262144\n", ELV_OK, 0, ""},
        {LEAST "aggregate.max_weight = 4294967295\nselect.count = 1000000\n"
               "aggregate.weight = uniform\n",
         ELV_OK, 0, ""},
        {LEAST "eval.on = server\n", ELV_ERR_RANGE, 4, "[data] test"},
        {LEAST "eval.on = both\n", ELV_ERR_RANGE, 4, "[data] test"},
        {LEAST "eval.on = clients\n", ELV_OK, 0, ""},
        {LEAST "job.target_accuracy = 0.5\n", ELV_ERR_RANGE, 4, "a target needs evaluation"},
        {LEAST "job.target_accuracy = 0.5\ndata.holdout = 0.1\n", ELV_OK, 0, ""},
        {LEAST "job.target_accuracy = 0.5\neval.every = 2\n", ELV_OK, 0, ""},
        {LEAST "job.target_accuracy = 0.5\ndata.test = idx d\neval.every = never\n", ELV_ERR_RANGE,
         4, "a target"},
        {LEAST "transfer.warm_up = 3\n", ELV_ERR_RANGE, 4, "a larger share of the coordinates"},
        {LEAST "transfer.up = f32\ntransfer.warm_up = 3\n", ELV_ERR_RANGE, 5, "such as ternary"},
        {LEAST "transfer.up = rotate 1\ntransfer.warm_up = 3\n", ELV_ERR_RANGE, 5, "ternary"},
        {LEAST "transfer.up = topk 0.1, q8\ntransfer.warm_up = 3\n", ELV_OK, 0, ""},
        {LEAST "transfer.momentum_correction = 0.9\n", ELV_ERR_RANGE, 4, "a share"},
        {LEAST "transfer.up = ternary 0.01\ntransfer.momentum_correction = 0.9\n", ELV_OK, 0, ""},
        {LEAST "transfer.up = ternary 0.01\ntransfer.momentum_correction = 0.9\n"
               "transfer.feedback = none\n",
         ELV_ERR_RANGE, 5, "needs feedback"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct elv_job job;
        char why[ELV_JOB_ERROR_MAX];
        uint32_t line;
        const enum elv_err err = load(&job, rows[i].text, why, &line);
        if (err != rows[i].err || line != rows[i].line || strstr(why, rows[i].why) == NULL)
            fail_msg("row %u: %s, line %u: %s", (unsigned)i, elv_err_text(err), (unsigned)line,
                     why);
    }
}

static void who_evaluates_follows_from_the_data(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t every;
        enum elv_eval_on on;
    } rows[] = {
        {LEAST, 0, ELV_EVAL_CLIENTS},
        {LEAST "data.test = idx d\n", 1, ELV_EVAL_SERVER},
        {LEAST "data.holdout = 0.2\n", 1, ELV_EVAL_CLIENTS},
        {LEAST "eval.every = 3\n", 3, ELV_EVAL_CLIENTS},
        {LEAST "eval.on = clients\n", 1, ELV_EVAL_CLIENTS},
        {LEAST "data.test = idx d\neval.on = clients\n", 1, ELV_EVAL_CLIENTS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_job job = loaded(rows[i].text);
        assert_int_equal(job.eval_every, rows[i].every);
        assert_int_equal(job.eval_on, rows[i].on);
    }
}

static void a_restart_may_change_the_schedule_but_not_the_run(void **state)
{
    (void)state;
    static const char base[] = LEAST "client.batch_size = 8\naggregate.beta = 0.5\n";
    static const struct {
        const char *text, *changed; /* NULL: nothing that matters */
    } rows[] = {
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\n", NULL},
        {"aggregate.beta = 1/2\nclient.batch_size = 08\nmodel.layers =  dense   2\n"
         "model.input = 4x1x1\njob.name = a\n",
         NULL},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\njob.rounds = 9\n"
               "job.target_accuracy = 0.5\nsync.policy = backup\nsync.k = 3\nsync.quorum = 2\n"
               "sync.deadline = 5s\neval.every = 2\nstate.keep = 9\nselect.count = 3\n",
         NULL},
        {"job.name = b\nmodel.input = 4x1x1\nmodel.layers = dense 2\nclient.batch_size = 8\n"
         "aggregate.beta = 0.5\n",
         "job.name"},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\njob.seed = 2\n", "job.seed"},
        {LEAST "client.batch_size = 9\naggregate.beta = 0.5\n", "client.batch_size"},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\ntransfer.up = f32\n", "transfer.up"},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\ntransfer.feedback = f16\n",
         "transfer.feedback"},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\ntransfer.feedback_age = 2\n",
         "transfer.feedback_age"},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.5\ndata.test = idx d\n", "data.test"},
        {"job.name = a\nmodel.input = 4x1x1\nmodel.layers = dense 3\nclient.batch_size = 8\n"
         "aggregate.beta = 0.5\n",
         "model.layers"},
        {"job.name = a\nmodel.input = 5x1x1\nmodel.layers = dense 2\nclient.batch_size = 8\n"
         "aggregate.beta = 0.5\n",
         "model.input"},
        {LEAST "client.batch_size = 8\naggregate.beta = 0.25\n", "aggregate.rule"},
        {LEAST "client.batch_size = 8\n", "aggregate.rule"},
        {LEAST "client.batch_size = 8\naggregate.gamma = 0.5\n", "aggregate.rule"},
    };
    const struct elv_job before = loaded(base);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct elv_job now = loaded(rows[i].text);
        const char *changed = elv_job_changed(&before, &now);
        if (rows[i].changed == NULL)
            assert_null(changed);
        else
            assert_string_equal(changed, rows[i].changed);
    }
}

static void the_manifest_says_what_clients_need(void **state)
{
    (void)state;
    const struct elv_job job = loaded(LEAST "data.partition = iid\ntransfer.up = q8, f32\n"
                                            "client.optimizer = sgd momentum 0.5\n"
                                            "client.proximal = 0.25\n"
                                            "job.seed = 77\n");
    static const uint8_t run[ELV_RUN_ID_LEN] = {1, 2, 3};
    struct elv_manifest m, back;
    uint8_t out[ELV_MANIFEST_MAX];
    size_t len;
    elv_job_manifest(&job, run, &m);
    assert_int_equal(elv_manifest_encode(&m, out, sizeof out, &len), ELV_OK);
    assert_int_equal(elv_manifest_decode((struct elv_bytes){out, len}, &back), ELV_OK);
    assert_memory_equal(back.run, run, sizeof run);
    assert_true(elv_value_is(back.job, "a") && elv_value_is(back.layers, "dense 2"));
    assert_true(elv_value_is(back.partition, "iid"));
    assert_int_equal(back.n_params, 10);
    assert_memory_equal(back.fingerprint, job.model.fingerprint, sizeof back.fingerprint);
    assert_true(back.momentum == 0.5f && back.bound == 8.0f && back.seed == 77);
    assert_int_equal(back.n_up, 2);
    assert_int_equal(back.weight_max, 100000);
    assert_true(back.proximal == 0.25f);
}

static void clients_keep_what_their_codec_leaves_out_unless_the_job_says_otherwise(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum elv_feedback feedback;
        uint32_t age;
        float momentum;
    } rows[] = {
        {LEAST, ELV_FEEDBACK_F32, 1, 0},
        {LEAST "transfer.feedback = none\n", ELV_FEEDBACK_NONE, 0, 0},
        {LEAST "transfer.feedback = f16\ntransfer.feedback_age = 0\n", ELV_FEEDBACK_F16, 0, 0},
        {LEAST "transfer.up = f32\n", ELV_FEEDBACK_NONE, 0, 0},
        {LEAST "transfer.up = f16, q8 stochastic\ntransfer.feedback = f32\n", ELV_FEEDBACK_NONE, 0,
         0},
        {LEAST "transfer.up = f32, sign\n", ELV_FEEDBACK_F32, 1, 0},
        {LEAST "transfer.up = topk 0.1\ntransfer.momentum_correction = 0.5\n", ELV_FEEDBACK_F32, 1,
         0.5f},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static const uint8_t run[ELV_RUN_ID_LEN] = {1};
        const struct elv_job job = loaded(rows[i].text);
        struct elv_manifest m, back;
        uint8_t out[ELV_MANIFEST_MAX];
        size_t len;
        elv_job_manifest(&job, run, &m);
        assert_int_equal(elv_manifest_encode(&m, out, sizeof out, &len), ELV_OK);
        assert_int_equal(elv_manifest_decode((struct elv_bytes){out, len}, &back), ELV_OK);
        assert_int_equal(back.feedback, rows[i].feedback);
        assert_int_equal(back.feedback_age, rows[i].age);
        assert_true(back.momentum_correction == rows[i].momentum);
    }
}

static void a_warm_up_sends_ever_fewer_coordinates_until_it_is_over(void **state)
{
    (void)state;
    const struct elv_job job =
        loaded(LEAST "transfer.up = ternary 0.01, q8, topk 0.3\ntransfer.warm_up = 4\n");
    static const float want[] = {0.25f, 0.111803f, 0.05f, 0.0223607f, 0.01f, 0.01f};
    for (uint32_t v = 0; v < sizeof want / sizeof want[0]; v++) {
        const struct elv_codec_choice up = elv_job_up(&job, ELV_CODEC_TERNARY, v);
        assert_int_equal(up.id, ELV_CODEC_TERNARY);
        assert_true(up.param > want[v] * 0.9999f && up.param < want[v] * 1.0001f);
        assert_true(elv_codec_takes(elv_codec_by_id(up.id), up.param));
        assert_true(elv_job_up(&job, ELV_CODEC_Q8, v).param == 0);
        assert_true(elv_job_up(&job, ELV_CODEC_TOPK, v).param == 0.3f); /* that is more anyway */
    }
    assert_true(elv_job_up(&job, ELV_CODEC_TERNARY, UINT32_MAX).param == 0.01f);
    const struct elv_job cold = loaded(LEAST "transfer.up = ternary 0.01\n");
    assert_true(elv_job_up(&cold, ELV_CODEC_TERNARY, 0).param == 0.01f);
    assert_true(elv_job_chunks_max(&job, ELV_CODEC_TERNARY) >=
                elv_job_chunks_max(&cold, ELV_CODEC_TERNARY));
    assert_int_equal(elv_job_chunks_max(&cold, ELV_CODEC_Q8), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_file_is_read),
        cmocka_unit_test(a_printed_job_is_a_file_of_the_same_job),
        cmocka_unit_test(what_is_not_given_has_a_default),
        cmocka_unit_test(values_print_as_they_would_be_read),
        cmocka_unit_test(a_wrong_key_or_value_is_answered_with_what_would_be_right),
        cmocka_unit_test(a_long_text_is_cut_out_of_the_sentence),
        cmocka_unit_test(a_key_given_twice_is_refused_but_a_flag_may_replace_it),
        cmocka_unit_test(a_policy_has_room_for_sixteen_parameters),
        cmocka_unit_test(keys_that_do_not_go_together_are_refused),
        cmocka_unit_test(who_evaluates_follows_from_the_data),
        cmocka_unit_test(a_restart_may_change_the_schedule_but_not_the_run),
        cmocka_unit_test(the_manifest_says_what_clients_need),
        cmocka_unit_test(clients_keep_what_their_codec_leaves_out_unless_the_job_says_otherwise),
        cmocka_unit_test(a_warm_up_sends_ever_fewer_coordinates_until_it_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
