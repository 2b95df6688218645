/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/assert.h"
#include "common/msg.h"
#include "common/text.h"

enum { HEX_LEN = 16 };

/* One row per operation, so that writing and reading cannot disagree. */
struct route {
    enum elv_op op;
    enum elv_method method;
    const char *word; /* after the job's name; empty: nothing follows it */
    bool digest, assignment, chunk;
};

static const struct route routes[] = {
    {.op = ELV_OP_MANIFEST, .method = ELV_GET, .word = ""},
    {.op = ELV_OP_JOIN, .method = ELV_POST, .word = "join"},
    {.op = ELV_OP_LEAVE, .method = ELV_DELETE, .word = "join"},
    {.op = ELV_OP_TICKET, .method = ELV_GET, .word = "t"},
    {.op = ELV_OP_MODEL_CHUNK, .method = ELV_GET, .word = "m", .digest = true, .chunk = true},
    {.op = ELV_OP_STEP_CHUNK, .method = ELV_GET, .word = "d", .digest = true, .chunk = true},
    {.op = ELV_OP_UPDATE_CHUNK, .method = ELV_PUT, .word = "u", .assignment = true, .chunk = true},
    {.op = ELV_OP_COMMIT, .method = ELV_POST, .word = "u", .assignment = true},
};

bool elv_name_ok(struct elv_text name, size_t max)
{
    if (name.len == 0 || name.len > max)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.at[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool digit = c >= '0' && c <= '9';
        if (!letter && !digit && c != '.' && c != '_' && c != ':' && c != '-')
            return false;
    }
    return true;
}

static const struct route *route_of(enum elv_op op)
{
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (routes[i].op == op)
            return &routes[i];
    return NULL;
}

enum elv_err elv_path_encode(const struct elv_request *r, struct elv_text job,
                             char out[ELV_PATH_MAX], size_t *len, enum elv_method *method)
{
    const struct route *route = route_of(r->op);
    if (route == NULL || !elv_name_ok(job, ELV_JOB_NAME_MAX) ||
        (route->assignment && r->assignment == 0))
        return ELV_ERR_ARG;
    uint8_t digest[8];
    for (size_t i = 0; i < sizeof digest; i++)
        digest[i] = (uint8_t)(r->digest >> (56 - 8 * i));

    struct elv_line l = elv_line_of(out, ELV_PATH_MAX);
    elv_line_add(&l, "j/");
    elv_line_chars(&l, job.at, job.len);
    elv_line_add(&l, route->word[0] != '\0' ? "/" : "");
    elv_line_add(&l, route->word);
    if (route->digest) {
        elv_line_add(&l, "/");
        elv_line_hex(&l, digest, sizeof digest);
    }
    if (route->assignment) {
        elv_line_add(&l, "/");
        elv_line_uint(&l, r->assignment);
    }
    if (route->chunk) {
        elv_line_add(&l, "/");
        elv_line_uint(&l, r->chunk);
    }
    ELV_ASSERT(!l.full);
    *len = l.len;
    *method = route->method;
    return ELV_OK;
}

/* Cuts the part before the next slash off `rest`. An empty part only comes from bad paths. */
static struct elv_text cut(struct elv_text *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->at[len] != '/')
        len++;
    const struct elv_text part = {.at = rest->at, .len = len};
    const size_t used = len < rest->len ? len + 1 : len;
    rest->at += used;
    rest->len -= used;
    return part;
}

/* A number has one spelling, so a resource has one path. */
static bool decimal(struct elv_text part, uint32_t *out)
{
    uint64_t v;
    if ((part.len > 1 && part.at[0] == '0') || !elv_text_uint(part.at, part.len, &v))
        return false;
    *out = (uint32_t)v;
    return v <= UINT32_MAX;
}

static bool hex(struct elv_text part, uint64_t *out)
{
    if (part.len != HEX_LEN)
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < part.len; i++) {
        const char c = part.at[i];
        const bool letter = c >= 'a' && c <= 'f';
        if (!letter && (c < '0' || c > '9'))
            return false;
        v = v << 4 | (uint64_t)(letter ? c - 'a' + 10 : c - '0');
    }
    *out = v;
    return true;
}

/* Whether what follows the job's name fits `route`; then `r` holds its numbers. */
static bool matches(const struct route *route, const struct elv_text part[4], size_t n,
                    struct elv_request *r)
{
    const size_t word_len = strlen(route->word);
    size_t i = 0;
    *r = (struct elv_request){.op = route->op};
    if (word_len > 0) {
        if (n == 0 || part[0].len != word_len || memcmp(part[0].at, route->word, word_len) != 0)
            return false;
        i = 1;
    }
    if (route->digest && (i >= n || !hex(part[i++], &r->digest)))
        return false;
    if (route->assignment && (i >= n || !decimal(part[i++], &r->assignment) || r->assignment == 0))
        return false;
    if (route->chunk && (i >= n || !decimal(part[i++], &r->chunk)))
        return false;
    return i == n;
}

enum elv_err elv_path_decode(enum elv_method method, struct elv_text path, struct elv_text *job,
                             struct elv_request *r)
{
    if (path.len == 0 || path.len >= ELV_PATH_MAX || path.at[path.len - 1] == '/')
        return ELV_ERR_MISSING;
    struct elv_text rest = path, part[4];
    size_t n = 0;
    const struct elv_text j = cut(&rest);
    const struct elv_text name = cut(&rest);
    if (j.len != 1 || j.at[0] != 'j' || !elv_name_ok(name, ELV_JOB_NAME_MAX))
        return ELV_ERR_MISSING;
    while (rest.len > 0 && n < sizeof part / sizeof part[0])
        part[n++] = cut(&rest);
    if (rest.len > 0)
        return ELV_ERR_MISSING;

    enum elv_err err = ELV_ERR_MISSING;
    struct elv_request got;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!matches(&routes[i], part, n, &got))
            continue;
        err = ELV_ERR_UNSUPPORTED; /* the resource exists; perhaps another row has the method */
        if (routes[i].method == method) {
            *job = name;
            *r = got;
            return ELV_OK;
        }
    }
    return err;
}
