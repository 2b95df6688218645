/* SPDX-License-Identifier: Apache-2.0 */
/* A model from its text. */
#include <string.h>

#include "common/model_internal.h"
#include "common/size.h"

#define WANT_LAYER "a layer: conv OUT HxW, maxpool K or dense OUT"

/* A text being read. The first failure sticks: reads after it yield zero. */
struct scan {
    const uint8_t *text;
    size_t len, at;
    enum elv_err err;
    size_t err_at;
    const char *want;
};

static void refuse(struct scan *s, enum elv_err err, size_t at, const char *want)
{
    if (s->err != ELV_OK)
        return;
    s->err = err;
    s->err_at = at;
    s->want = want;
}

static bool blank(uint8_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool digit(uint8_t c) { return c >= '0' && c <= '9'; }

static bool word_byte(uint8_t c) { return (c >= 'a' && c <= 'z') || digit(c) || c == '-'; }

static void skip_blanks(struct scan *s)
{
    while (s->at < s->len && blank(s->text[s->at]))
        s->at++;
}

static bool at_end(struct scan *s)
{
    skip_blanks(s);
    return s->err != ELV_OK || s->at == s->len;
}

/* Takes `word` if it comes next and ends there. */
static bool took_word(struct scan *s, const char *word)
{
    skip_blanks(s);
    const size_t n = strlen(word);
    if (s->err != ELV_OK || s->len - s->at < n || memcmp(s->text + s->at, word, n) != 0)
        return false;
    if (s->len - s->at > n && word_byte(s->text[s->at + n]))
        return false;
    s->at += n;
    return true;
}

static bool took_byte(struct scan *s, uint8_t byte)
{
    skip_blanks(s);
    if (s->err != ELV_OK || s->at == s->len || s->text[s->at] != byte)
        return false;
    s->at++;
    return true;
}

/* Digits at this very place; a separate word unless another follows an `x`. */
static uint32_t digits(struct scan *s, uint32_t min, uint32_t max, const char *want)
{
    const size_t from = s->at;
    uint32_t v = 0;
    while (s->err == ELV_OK && s->at < s->len && digit(s->text[s->at]) && s->at - from < 9)
        v = v * 10 + (uint32_t)(s->text[s->at++] - '0');
    if (s->err == ELV_OK && s->at == from)
        refuse(s, ELV_ERR_FORMAT, from, want);
    if (v < min || v > max || (s->at < s->len && digit(s->text[s->at])))
        refuse(s, ELV_ERR_RANGE, from, want);
    return s->err == ELV_OK ? v : 0;
}

static uint32_t number(struct scan *s, uint32_t min, uint32_t max, const char *want)
{
    skip_blanks(s);
    const uint32_t v = digits(s, min, max, want);
    if (s->err == ELV_OK && s->at < s->len && word_byte(s->text[s->at]))
        refuse(s, ELV_ERR_FORMAT, s->at, want);
    return v;
}

/* AxB, or AxBxC: sides joined by `x` without blanks. */
static void sides(struct scan *s, uint32_t *v, unsigned n, const char *want)
{
    skip_blanks(s);
    for (unsigned i = 0; i < n; i++) {
        v[i] = digits(s, 1, ELV_MODEL_SIDE_MAX, want);
        const bool joined = s->at < s->len && s->text[s->at] == 'x';
        if (s->err == ELV_OK && i + 1 < n && !joined)
            refuse(s, ELV_ERR_FORMAT, s->at, want);
        else if (i + 1 < n)
            s->at++;
        else if (s->err == ELV_OK && s->at < s->len && word_byte(s->text[s->at]))
            refuse(s, ELV_ERR_FORMAT, s->at, want);
    }
}

/* The product of up to four sides, refused when it passes what a model may have. */
static uint32_t product(struct scan *s, size_t at, const uint32_t v[4], const char *want)
{
    size_t n = 1;
    for (unsigned i = 0; i < 4; i++) {
        if (!elv_size_mul(n, v[i], &n) || n > ELV_MODEL_PARAMS_MAX) {
            refuse(s, ELV_ERR_RANGE, at, want);
            return 0;
        }
    }
    return (uint32_t)n;
}

static void read_input(struct scan *s, struct elv_model *m)
{
    static const char want[] = "CHANNELSxHEIGHTxWIDTH such as 1x28x28, or 4x1x1 for four numbers; "
                               "each 1 to 65535, together below 2^31";
    uint32_t v[3] = {0};
    sides(s, v, 3, want);
    m->input = (struct elv_shape){v[0], v[1], v[2]};
    const uint32_t all[4] = {v[0], v[1], v[2], 1};
    product(s, 0, all, want);
    if (!at_end(s))
        refuse(s, ELV_ERR_FORMAT, s->at, "nothing after CHANNELSxHEIGHTxWIDTH");
}

static uint32_t span(uint32_t side, uint32_t pad, uint32_t kernel, uint32_t stride)
{
    return (side + 2 * pad - kernel) / stride + 1;
}

static void read_stride(struct scan *s, struct elv_layer *l)
{
    if (took_word(s, "stride"))
        l->stride = number(s, 1, ELV_MODEL_SIDE_MAX, "a stride from 1 to 65535");
}

static void read_pad(struct scan *s, struct elv_layer *l)
{
    if (!took_word(s, "pad"))
        return;
    skip_blanks(s);
    const size_t at = s->at;
    if (took_word(s, "same")) {
        if (l->kernel_h % 2 == 0 || l->kernel_w % 2 == 0)
            refuse(s, ELV_ERR_RANGE, at, "a number: pad same needs a kernel with odd sides");
        l->pad_h = l->kernel_h / 2;
        l->pad_w = l->kernel_w / 2;
        return;
    }
    l->pad_h = l->pad_w = number(s, 0, ELV_MODEL_SIDE_MAX, "same, or a number of zeros per side");
    if (s->err == ELV_OK && (l->pad_h >= l->kernel_h || l->pad_w >= l->kernel_w))
        refuse(s, ELV_ERR_RANGE, at, "a pad smaller than the kernel");
}

static void read_conv(struct scan *s, struct elv_layer *l)
{
    l->out.c = number(s, 1, ELV_MODEL_SIDE_MAX, "conv OUT HxW: a number of channels, 1 to 65535");
    skip_blanks(s);
    const size_t at = s->at;
    uint32_t kernel[2] = {0};
    sides(s, kernel, 2, "conv OUT HxW: a kernel such as 5x5");
    l->kernel_h = kernel[0];
    l->kernel_w = kernel[1];
    l->stride = 1;
    read_stride(s, l);
    read_pad(s, l);
    if (s->err != ELV_OK)
        return;
    if (l->kernel_h > l->in.h + 2 * l->pad_h || l->kernel_w > l->in.w + 2 * l->pad_w) {
        refuse(s, ELV_ERR_RANGE, at, "a kernel no larger than its padded input");
        return;
    }
    l->out.h = span(l->in.h, l->pad_h, l->kernel_h, l->stride);
    l->out.w = span(l->in.w, l->pad_w, l->kernel_w, l->stride);
}

static void read_maxpool(struct scan *s, struct elv_layer *l)
{
    skip_blanks(s);
    const size_t at = s->at;
    l->kernel_h = l->kernel_w = number(s, 1, ELV_MODEL_POOL_MAX, "maxpool K: a side from 1 to 15");
    l->stride = l->kernel_h;
    read_stride(s, l);
    if (s->err != ELV_OK)
        return;
    if (l->kernel_h > l->in.h || l->kernel_w > l->in.w) {
        refuse(s, ELV_ERR_RANGE, at, "a pooling window no larger than its input");
        return;
    }
    l->out = (struct elv_shape){l->in.c, span(l->in.h, 0, l->kernel_h, l->stride),
                                span(l->in.w, 0, l->kernel_w, l->stride)};
}

static void read_dense(struct scan *s, struct elv_layer *l)
{
    l->out = (struct elv_shape){
        number(s, 1, ELV_MODEL_SIDE_MAX, "dense OUT: a number of values, 1 to 65535"), 1, 1};
}

static void read_suffix(struct scan *s, struct elv_layer *l)
{
    if (l->kind == ELV_LAYER_MAXPOOL)
        return;
    if (took_word(s, "relu"))
        l->act = ELV_ACT_RELU;
    else
        took_word(s, "none");
    l->local = took_word(s, "local");
}

/* Sizes of the activation and the parameters, each below the limit. */
static void size_layer(struct scan *s, size_t at, struct elv_layer *l)
{
    const uint32_t out[4] = {l->out.c, l->out.h, l->out.w, 1};
    product(s, at, out, "a layer that gives fewer than 2^31 values");
    const uint32_t conv[4] = {l->out.c, l->in.c, l->kernel_h, l->kernel_w};
    const uint32_t dense[4] = {l->out.c, elv_shape_len(l->in), 1, 1};
    if (l->kind == ELV_LAYER_MAXPOOL)
        return;
    l->n_weight = product(s, at, l->kind == ELV_LAYER_CONV ? conv : dense,
                          "a layer with fewer than 2^31 weights");
    l->n_bias = l->out.c;
}

/* Gives the layer its places in the flat vector and in shared coordinates. */
static void place_layer(struct scan *s, size_t at, struct elv_model *m, struct elv_layer *l)
{
    if (s->err != ELV_OK)
        return;
    size_t all;
    if (!elv_size_add(l->n_weight, l->n_bias, &all) || !elv_size_add(all, m->n_params, &all) ||
        all > ELV_MODEL_PARAMS_MAX) {
        refuse(s, ELV_ERR_RANGE, at, "a model with fewer than 2^31 parameters");
        return;
    }
    l->weight_at = m->n_params;
    l->bias_at = m->n_params + l->n_weight;
    l->shared_at = l->local ? 0 : m->n_shared;
    if (!l->local)
        m->n_shared += (uint32_t)all - m->n_params;
    m->n_params = (uint32_t)all;
}

static void read_layer(struct scan *s, struct elv_model *m)
{
    skip_blanks(s);
    const size_t at = s->at;
    if (m->n_layers == ELV_MODEL_LAYERS_MAX) {
        refuse(s, ELV_ERR_RANGE, at, "at most 32 layers");
        return;
    }
    struct elv_layer *l = &m->layers[m->n_layers];
    *l = (struct elv_layer){.in = m->n_layers == 0 ? m->input : l[-1].out};
    if (took_word(s, "conv")) {
        l->kind = ELV_LAYER_CONV;
        read_conv(s, l);
    } else if (took_word(s, "maxpool")) {
        l->kind = ELV_LAYER_MAXPOOL;
        read_maxpool(s, l);
    } else if (took_word(s, "dense")) {
        l->kind = ELV_LAYER_DENSE;
        read_dense(s, l);
    } else {
        refuse(s, ELV_ERR_FORMAT, at, WANT_LAYER);
    }
    read_suffix(s, l);
    if (s->err != ELV_OK)
        return;
    size_layer(s, at, l);
    place_layer(s, at, m, l);
    m->n_layers++;
}

static const char *want_after(const struct elv_layer *l)
{
    if (l->local)
        return "a comma and the next layer, or the end";
    if (l->act == ELV_ACT_RELU)
        return "local, a comma and the next layer, or the end";
    if (l->kind == ELV_LAYER_MAXPOOL)
        return "stride S, a comma and the next layer, or the end";
    if (l->kind == ELV_LAYER_DENSE)
        return "relu, none, local, a comma and the next layer, or the end";
    return "stride S, pad P, relu, none, local (in this order), a comma and the next layer, or the "
           "end";
}

static void read_layers(struct scan *s, struct elv_model *m)
{
    do { /* each turn takes a byte at least, and 32 layers end it */
        read_layer(s, m);
    } while (took_byte(s, ','));
    if (s->err != ELV_OK)
        return;
    const struct elv_layer *last = &m->layers[m->n_layers - 1];
    if (!at_end(s))
        refuse(s, ELV_ERR_FORMAT, s->at, want_after(last));
    m->n_classes = elv_shape_len(last->out);
    if (m->n_classes < 2)
        refuse(s, ELV_ERR_RANGE, s->at, "a last layer with two classes at least");
    if (m->n_shared == 0)
        refuse(s, ELV_ERR_RANGE, s->at, "one layer with parameters that is not local");
}

static void read_loss(struct scan *s, struct elv_model *m)
{
    m->loss = ELV_LOSS_SOFTMAX_XENT;
    if (!at_end(s) && (!took_word(s, "softmax-cross-entropy") || !at_end(s)))
        refuse(s, ELV_ERR_FORMAT, s->at, "softmax-cross-entropy");
}

/* Reads the parts; `base` of each is its offset in the text the caller knows. */
static enum elv_err read_parts(struct elv_model *m, const struct elv_bytes part[3],
                               struct elv_text_err *why)
{
    static void (*const read[3])(struct scan *, struct elv_model *) = {read_input, read_layers,
                                                                       read_loss};
    for (uint32_t i = 0; i < 3; i++) {
        struct scan s = {.text = part[i].at, .len = part[i].len};
        read[i](&s, m);
        if (s.err != ELV_OK) {
            *why = (struct elv_text_err){.part = i, .at = s.err_at, .want = s.want};
            return s.err;
        }
    }
    elv_model_take_fingerprint(m);
    return ELV_OK;
}

enum elv_err elv_model_parse(struct elv_model *m, struct elv_model_text text,
                             struct elv_text_err *why)
{
    const struct elv_bytes part[3] = {text.input, text.layers, text.loss};
    struct elv_model got = {0};
    struct elv_text_err first = {0};
    const enum elv_err err = read_parts(&got, part, &first);
    if (err == ELV_OK)
        *m = got;
    else if (why != NULL)
        *why = first;
    return err;
}

enum elv_err elv_model_parse_line(struct elv_model *m, struct elv_bytes line,
                                  struct elv_text_err *why)
{
    struct elv_bytes part[3] = {{0}};
    size_t at = 0;
    uint32_t n = 0;
    for (size_t i = 0; line.len > 0 && i <= line.len && n < 3; i++) {
        if (i < line.len && (line.at[i] != '|' || n == 2))
            continue; /* a third bar is left to the loss, which refuses it */
        part[n++] = (struct elv_bytes){line.at + at, i - at};
        at = i + 1;
    }
    const struct elv_model_text text = {part[0], part[1], part[2]};
    struct elv_text_err where = {0};
    const enum elv_err err = elv_model_parse(m, text, &where);
    if (err == ELV_OK || why == NULL)
        return err;
    const size_t base =
        part[where.part].at == NULL ? line.len : (size_t)(part[where.part].at - line.at);
    *why = (struct elv_text_err){.at = base + where.at, .want = where.want};
    return err;
}
