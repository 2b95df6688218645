/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admit.h"

#include <string.h>

enum elv_reason elv_admit_chunk(const struct elv_chunk_rules *rules, const struct elv_chunk *c,
                                uint32_t index)
{
    if (c->kind != ELV_BODY_UPDATE || c->index != index)
        return ELV_REASON_MALFORMED;
    if (c->codec != rules->codec || ((c->flags & ELV_CHUNK_DEFLATED) && !rules->inflates))
        return ELV_REASON_CODEC;
    if (c->index >= rules->bound || c->first >= rules->n_params ||
        c->count > rules->n_params - c->first)
        return ELV_REASON_WRONG_SHAPE;
    return ELV_REASON_NONE;
}

/* The next number of a version; a text that ended counts on with zeros. */
static uint32_t number(struct elv_text *t)
{
    uint32_t n = 0;
    while (t->len > 0 && (*t->at < '0' || *t->at > '9')) {
        t->at++;
        t->len--;
    }
    while (t->len > 0 && *t->at >= '0' && *t->at <= '9') {
        if (n < 100000000)
            n = n * 10 + (uint32_t)(*t->at - '0');
        t->at++;
        t->len--;
    }
    return n;
}

static size_t name_len(struct elv_text t)
{
    const char *slash = t.len > 0 ? memchr(t.at, '/', t.len) : NULL;
    return slash ? (size_t)(slash - t.at) + 1 : t.len;
}

bool elv_software_is_old(struct elv_text software, struct elv_text least)
{
    const size_t name = name_len(least);
    if (least.len == 0)
        return false;
    if (name_len(software) != name || memcmp(software.at, least.at, name) != 0)
        return true;
    struct elv_text a = {software.at + name, software.len - name};
    struct elv_text b = {least.at + name, least.len - name};
    for (int i = 0; i < 3; i++) {
        const uint32_t have = number(&a), need = number(&b);
        if (have != need)
            return have < need;
    }
    return false;
}

static uint8_t choose_codec(const struct elv_job *job, const struct elv_join *join)
{
    for (uint32_t i = 0; i < job->n_up; i++)
        if (join->n_codecs > 0 && memchr(join->codecs, job->up[i].id, join->n_codecs))
            return job->up[i].id;
    return 0;
}

enum elv_reason elv_admit_join(const struct elv_join_rules *rules, const struct elv_join *join,
                               struct elv_joined *out)
{
    const uint32_t wire = join->wire_max < ELV_WIRE_MAX ? join->wire_max : ELV_WIRE_MAX;
    if (wire < ELV_WIRE_MIN || wire < join->wire_min)
        return ELV_REASON_WIRE_VERSION;
    if (elv_software_is_old(join->software, rules->software_min))
        return ELV_REASON_SOFTWARE_OLD;
    if (memcmp(join->manifest, rules->manifest, sizeof join->manifest) != 0)
        return ELV_REASON_MANIFEST_OLD;
    /* The device plans its own memory; below the bare parameters no plan is needed. */
    if (join->memory != 0 && join->memory / 4 < rules->job->model.n_params)
        return ELV_REASON_MODEL_TOO_BIG;
    const uint8_t codec = choose_codec(rules->job, join);
    if (codec == 0)
        return ELV_REASON_NO_CODEC;
    out->wire = wire;
    out->codec = codec;
    return ELV_REASON_NONE;
}
