/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/posix/dataset.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ports/posix/csv.h"
#include "ports/posix/file.h"

#define LABEL_MAX ELV_CSV_LABEL_MAX
#define PATH_LEN 512u /* fits twice into a complaint */

static void free_block(uint8_t *block) { free(block); }

struct block { /* a file in memory */
    uint8_t *at;
    size_t len;
    void (*release)(uint8_t *at);
};

static enum elv_err complain(char why[ELV_DATASET_WHY_MAX], const char *path, const char *what,
                             enum elv_err err)
{
    snprintf(why, ELV_DATASET_WHY_MAX, "%s: %s", path, what);
    return err;
}

static enum elv_err read_plain(const char *path, struct block *b, char why[ELV_DATASET_WHY_MAX])
{
    const enum elv_err err = elv_posix_load(path, ELV_DATASET_FILE_MAX, &b->at, &b->len);
    b->release = free_block;
    if (err == ELV_ERR_IO || err == ELV_ERR_MISSING)
        return complain(why, path, strerror(errno), err);
    return err == ELV_OK ? ELV_OK : complain(why, path, elv_err_text(err), err);
}

static enum elv_err unpack(const char *path, const struct elv_gunzip *gz, struct block *b,
                           char why[ELV_DATASET_WHY_MAX])
{
    struct block packed = *b;
    if (gz == NULL) {
        packed.release(packed.at);
        return complain(why, path, "this program cannot unpack .gz files", ELV_ERR_UNSUPPORTED);
    }
    const enum elv_err err = gz->unpack((struct elv_bytes){packed.at, packed.len},
                                        ELV_DATASET_FILE_MAX, &b->at, &b->len);
    packed.release(packed.at);
    b->release = gz->release;
    return err == ELV_OK ? ELV_OK : complain(why, path, "it is damaged or too long", err);
}

static enum elv_err read_file(const char *path, const struct elv_gunzip *gz, struct block *b,
                              char why[ELV_DATASET_WHY_MAX])
{
    const size_t len = strlen(path);
    const enum elv_err err = read_plain(path, b, why);
    if (err != ELV_OK || len < 3 || strcmp(path + len - 3, ".gz") != 0)
        return err;
    return unpack(path, gz, b, why);
}

/* Labels as whole numbers that fit; `n_classes` follows from them. */
static enum elv_err copy_labels(struct elv_dataset *d, const struct elv_array *y,
                                char why[ELV_DATASET_WHY_MAX])
{
    uint32_t *labels = malloc((d->n > 0 ? d->n : 1) * sizeof *labels);
    if (labels == NULL)
        return complain(why, "labels", elv_err_text(ELV_ERR_MEMORY), ELV_ERR_MEMORY);
    d->memory = labels;
    d->labels = labels;
    for (uint32_t i = 0; i < d->n; i++) {
        const double v = elv_array_value(y, i);
        if (!(v >= 0 && v <= LABEL_MAX) || v != (double)(uint32_t)v)
            return complain(why, "labels", "a label is not a whole number, 0 to 65535",
                            ELV_ERR_RANGE);
        labels[i] = (uint32_t)v;
        if (labels[i] >= d->n_classes)
            d->n_classes = labels[i] + 1;
    }
    return ELV_OK;
}

static enum elv_err convert(struct elv_dataset *d, const struct elv_array *x,
                            char why[ELV_DATASET_WHY_MAX])
{
    float *values = calloc(x->n, sizeof *values);
    if (values == NULL)
        return complain(why, "examples", elv_err_text(ELV_ERR_MEMORY), ELV_ERR_MEMORY);
    for (size_t i = 0; i < x->n; i++) {
        const double v = elv_array_value(x, i);
        if (!(v >= -(double)FLT_MAX && v <= (double)FLT_MAX)) {
            free(values);
            return complain(why, "examples", "a value is not a finite 32-bit float", ELV_ERR_RANGE);
        }
        values[i] = (float)v;
    }
    d->release((uint8_t *)d->values);
    d->values = values;
    d->release = free_block;
    d->f32 = values;
    return ELV_OK;
}

static enum elv_err check_shapes(struct elv_dataset *d, const struct elv_array *x,
                                 const struct elv_array *y, char why[ELV_DATASET_WHY_MAX])
{
    d->n = x->dims[0];
    if (d->n == 0 || x->n == 0)
        return complain(why, "examples", "there are none", ELV_ERR_RANGE);
    if (y->n != d->n || y->dims[0] != d->n) {
        snprintf(why, ELV_DATASET_WHY_MAX, "%u examples but %zu labels", (unsigned)d->n, y->n);
        return ELV_ERR_MISMATCH;
    }
    if (x->n / d->n > UINT32_MAX)
        return complain(why, "examples", "they are too large", ELV_ERR_RANGE);
    d->n_values = (uint32_t)(x->n / d->n);
    return ELV_OK;
}

enum elv_err elv_dataset_of(struct elv_dataset *d, const struct elv_array *x,
                            const struct elv_array *y, uint8_t *values,
                            void (*release)(uint8_t *values), char why[ELV_DATASET_WHY_MAX])
{
    struct elv_dataset got = {.values = values, .release = release};
    enum elv_err err = check_shapes(&got, x, y, why);
    if (err == ELV_OK)
        err = copy_labels(&got, y, why);
    if (err == ELV_OK && x->type == ELV_ARRAY_U8)
        got.u8 = x->data.at;
    else if (err == ELV_OK)
        err = convert(&got, x, why);
    if (err != ELV_OK)
        elv_dataset_free(&got);
    else
        *d = got;
    return err;
}

typedef enum elv_err parser(struct elv_bytes in, struct elv_array *a, const char **why);

static enum elv_err read_array(const char *path, parser *parse, const struct elv_gunzip *gz,
                               struct block *b, struct elv_array *a, char why[ELV_DATASET_WHY_MAX])
{
    const char *reason = "";
    enum elv_err err = read_file(path, gz, b, why);
    if (err != ELV_OK)
        return err;
    err = parse((struct elv_bytes){b->at, b->len}, a, &reason);
    if (err == ELV_OK)
        return ELV_OK;
    b->release(b->at);
    return complain(why, path, reason, err);
}

static enum elv_err load_pair(struct elv_dataset *d, const char *x_path, const char *y_path,
                              parser *parse, const struct elv_gunzip *gz,
                              char why[ELV_DATASET_WHY_MAX])
{
    struct block xb, yb;
    struct elv_array x, y;
    enum elv_err err = read_array(y_path, parse, gz, &yb, &y, why);
    if (err != ELV_OK)
        return err;
    err = read_array(x_path, parse, gz, &xb, &x, why);
    if (err == ELV_OK) {
        char reason[ELV_DATASET_WHY_MAX];
        err = elv_dataset_of(d, &x, &y, xb.at, xb.release, reason);
        if (err != ELV_OK)
            snprintf(why, ELV_DATASET_WHY_MAX, "%.500s: %.400s", x_path, reason);
    }
    yb.release(yb.at);
    return err;
}

/* DIR/PREFIX-WHAT, or the same with .gz when there is no such file. */
static bool idx_path(char path[PATH_LEN], const char *dir, const char *prefix, const char *what)
{
    const int n = snprintf(path, PATH_LEN, "%s/%s-%s", dir, prefix, what);
    if (n < 0 || (size_t)n + 4 > PATH_LEN)
        return false;
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        strcat(path, ".gz");
    else
        fclose(f);
    return true;
}

static enum elv_err load_idx(struct elv_dataset *d, const char *dir, enum elv_dataset_part part,
                             const struct elv_gunzip *gz, char why[ELV_DATASET_WHY_MAX])
{
    char images[PATH_LEN], labels[PATH_LEN];
    const char *prefix = part == ELV_DATASET_TRAIN ? "train" : "t10k";
    if (!idx_path(images, dir, prefix, "images-idx3-ubyte") ||
        !idx_path(labels, dir, prefix, "labels-idx1-ubyte"))
        return complain(why, "idx", "the path is too long", ELV_ERR_ARG);
    return load_pair(d, images, labels, elv_idx_parse, gz, why);
}

static enum elv_err fill_from_csv(struct elv_dataset *d, struct elv_bytes text,
                                  const struct elv_csv *c)
{
    float *x = calloc((size_t)c->n_rows * c->n_values, sizeof *x);
    uint32_t *labels = calloc(c->n_rows, sizeof *labels);
    if (x == NULL || labels == NULL) {
        free(x);
        free(labels);
        return ELV_ERR_MEMORY;
    }
    elv_csv_read(text, c, x, labels);
    *d = (struct elv_dataset){
        .n = c->n_rows,
        .n_values = c->n_values,
        .f32 = x,
        .labels = labels,
        .values = x,
        .memory = labels,
        .release = free_block,
    };
    for (uint32_t i = 0; i < d->n; i++) {
        if (labels[i] >= d->n_classes)
            d->n_classes = labels[i] + 1;
    }
    return ELV_OK;
}

static enum elv_err load_csv(struct elv_dataset *d, const char *path, const struct elv_gunzip *gz,
                             char why[ELV_DATASET_WHY_MAX])
{
    struct block b;
    struct elv_csv c;
    struct elv_csv_error e;
    enum elv_err err = read_file(path, gz, &b, why);
    if (err != ELV_OK)
        return err;
    const struct elv_bytes text = {.at = b.at, .len = b.len};
    err = elv_csv_measure(text, &c, &e);
    if (err == ELV_OK)
        err = fill_from_csv(d, text, &c);
    if (err == ELV_ERR_MEMORY)
        complain(why, path, elv_err_text(err), err);
    else if (err != ELV_OK && e.line > 0)
        snprintf(why, ELV_DATASET_WHY_MAX, "%s:%u: %s", path, (unsigned)e.line, e.why);
    else if (err != ELV_OK)
        complain(why, path, e.why, err);
    b.release(b.at);
    return err;
}

/* Up to three words of a specification; returns how many there are, 4 for more or too long ones. */
static uint32_t split(const char *spec, char words[3][PATH_LEN])
{
    uint32_t n = 0;
    for (;;) {
        spec += strspn(spec, " \t");
        const size_t len = strcspn(spec, " \t");
        if (len == 0)
            return n;
        if (n == 3 || len >= PATH_LEN)
            return 4;
        memcpy(words[n], spec, len);
        words[n++][len] = 0;
        spec += len;
    }
}

enum elv_err elv_dataset_load(struct elv_dataset *d, const char *spec, enum elv_dataset_part part,
                              const struct elv_gunzip *gz, char why[ELV_DATASET_WHY_MAX])
{
    char words[3][PATH_LEN];
    const uint32_t n = split(spec, words);
    if (n == 2 && strcmp(words[0], "idx") == 0)
        return load_idx(d, words[1], part, gz, why);
    if (n == 3 && strcmp(words[0], "npy") == 0)
        return load_pair(d, words[1], words[2], elv_npy_parse, gz, why);
    if (n == 2 && strcmp(words[0], "csv") == 0)
        return load_csv(d, words[1], gz, why);
    snprintf(why, ELV_DATASET_WHY_MAX,
             "data is: idx DIR, npy X.npy Y.npy or csv FILE (paths without spaces)");
    return ELV_ERR_ARG;
}

void elv_dataset_free(struct elv_dataset *d)
{
    if (d->values != NULL)
        d->release(d->values);
    free(d->memory);
    memset(d, 0, sizeof *d);
}

enum elv_err elv_dataset_load_owners(const char *path, uint32_t n, uint32_t n_clients,
                                     uint32_t *owner, char why[ELV_DATASET_WHY_MAX])
{
    struct block b;
    struct elv_array a;
    enum elv_err err = read_array(path, elv_npy_parse, NULL, &b, &a, why);
    if (err != ELV_OK)
        return err;
    if (a.n != n) {
        snprintf(why, ELV_DATASET_WHY_MAX, "%s: it has %zu values for %u examples", path, a.n,
                 (unsigned)n);
        err = ELV_ERR_MISMATCH;
    }
    for (uint32_t i = 0; err == ELV_OK && i < n; i++) {
        const double v = elv_array_value(&a, i);
        if (!(v >= 0 && v < n_clients) || v != (double)(uint32_t)v)
            err =
                complain(why, path, "a value is not the place of a client, from 0", ELV_ERR_RANGE);
        else
            owner[i] = (uint32_t)v;
    }
    b.release(b.at);
    return err;
}
