/* SPDX-License-Identifier: Apache-2.0 */
#include "server/refusal.h"

#include <string.h>

/* Cut so that the rest of the sentence has room. */
static void add_name(struct elv_line *l, const char *name)
{
    elv_line_chars(l, name, strlen(name) < 40 ? strlen(name) : 40);
}

/* Of the sections, or, given one, of its keys. */
static const char *nearest(const struct elv_keys *keys, const char *section, const char *asked,
                           uint32_t *least)
{
    const char *best = NULL;
    *least = UINT32_MAX;
    for (size_t i = 0; i < keys->n; i++) {
        const char *of, *name;
        keys->at(i, &of, &name);
        if (section != NULL && strcmp(of, section) != 0)
            continue;
        const char *known = section != NULL ? name : of;
        const uint32_t d = elv_value_distance(asked, known);
        best = d < *least ? known : best;
        *least = d < *least ? d : *least;
    }
    return best;
}

static void suggest(struct elv_line *l, const struct elv_keys *keys, const char *section,
                    const char *asked)
{
    uint32_t distance;
    const char *best = nearest(keys, section, asked, &distance);
    if (best == NULL || distance > 2 || distance >= strlen(asked))
        return;
    elv_line_add(l, "; did you mean ");
    elv_line_add(l, best);
    elv_line_add(l, "?");
}

enum elv_err elv_refuse_section(struct elv_line *l, const struct elv_keys *keys,
                                const char *section)
{
    elv_line_add(l, "there is no section [");
    add_name(l, section);
    elv_line_add(l, "]; there are ");
    elv_line_add(l, keys->sections);
    suggest(l, keys, NULL, section);
    return ELV_ERR_MISSING;
}

enum elv_err elv_refuse_key(struct elv_line *l, const struct elv_keys *keys, const char *section,
                            const char *name)
{
    elv_line_add(l, "[");
    elv_line_add(l, section);
    elv_line_add(l, "] has no key ");
    add_name(l, name);
    elv_line_add(l, "; it has ");
    bool any = false;
    for (size_t i = 0; i < keys->n; i++) {
        const char *of, *known;
        keys->at(i, &of, &known);
        if (strcmp(of, section) != 0)
            continue;
        elv_line_add(l, any ? ", " : "");
        elv_line_add(l, known);
        any = true;
    }
    suggest(l, keys, section, name);
    return ELV_ERR_MISSING;
}

enum elv_err elv_refuse_value(struct elv_line *l, const char *name, struct elv_text value,
                              size_t shown, const char *accepts, enum elv_err err)
{
    add_name(l, name);
    if (value.len == 0) {
        elv_line_add(l, " has no value; give ");
    } else {
        elv_line_add(l, " cannot be \"");
        elv_line_chars(l, value.at, value.len < shown ? value.len : shown);
        elv_line_add(l, value.len > shown ? "...\"; give " : "\"; give ");
    }
    elv_line_add(l, accepts);
    return err;
}

enum elv_err elv_refuse_second(struct elv_line *l, const char *name, uint32_t first_line)
{
    add_name(l, name);
    elv_line_add(l, " is given twice; line ");
    elv_line_uint(l, first_line);
    elv_line_add(l, " has it already");
    return ELV_ERR_BUSY;
}
