/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sums.h"

#include <string.h>

#include "common/assert.h"

static bool is_named(const struct elv_user_total *t, const char *name, size_t len)
{
    return memcmp(t->name, name, len) == 0 && t->name[len] == '\0';
}

void elv_user_add(struct elv_user_totals *into, const char *name, size_t len, double value)
{
    ELV_ASSERT(len > 0 && len <= ELV_USER_SUM_NAME_MAX);
    for (uint32_t i = 0; i < into->n; i++)
        if (is_named(&into->at[i], name, len)) {
            into->at[i].value += value;
            return;
        }
    if (into->n == ELV_USER_SUMS_MAX) {
        into->n_left_out++;
        return;
    }
    struct elv_user_total *t = &into->at[into->n++];
    *t = (struct elv_user_total){.value = value};
    memcpy(t->name, name, len);
}

void elv_user_of(const struct elv_commit *c, struct elv_user_totals *out)
{
    out->n = out->n_left_out = 0;
    for (uint32_t i = 0; i < c->n_user; i++)
        elv_user_add(out, c->user[i].name.at, c->user[i].name.len, c->user[i].value);
}

void elv_sums_add(struct elv_sums *into, const struct elv_sums *more)
{
    elv_eval_add(&into->eval, &more->eval);
    for (uint32_t i = 0; i < more->user.n; i++) {
        const struct elv_user_total *t = &more->user.at[i];
        elv_user_add(&into->user, t->name, strlen(t->name), t->value);
    }
    into->user.n_left_out += more->user.n_left_out;
}
