/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/world_file.h"

#include <string.h>

#include "common/assert.h"
#include "common/text.h"
#include "ports/sim/lab/world_keys.h"
#include "server/refusal.h"
#include "server/value.h"

enum { SHOWN = 30 }; /* of a value: what is accepted takes room */

static const char sections_text[] = "world, device, link, availability, faults";

void elv_world_file_init(struct elv_world_file *f)
{
    *f = (struct elv_world_file){0};
    f->world.device.speed.a = 1;
}

static void key_at(size_t i, const char **section, const char **name)
{
    const struct elv_world_key *key = elv_world_keys_at(i);
    *section = key->section;
    *name = key->name;
}

bool elv_world_file_section(const char *section)
{
    for (size_t i = 0; i < elv_world_keys_count(); i++)
        if (strcmp(elv_world_keys_at(i)->section, section) == 0)
            return true;
    return false;
}

enum elv_err elv_world_file_set(struct elv_world_file *f, const char *section, const char *key,
                                const char *value, uint32_t line, char why[ELV_JOB_ERROR_MAX])
{
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    const struct elv_text text = elv_value_of(value);
    const struct elv_keys keys = {
        .sections = sections_text, .n = elv_world_keys_count(), .at = key_at};
    ELV_ASSERT(line > 0);
    if (!elv_world_file_section(section))
        return elv_refuse_section(&l, &keys, section);
    for (size_t i = 0; i < elv_world_keys_count(); i++) {
        const struct elv_world_key *k = elv_world_keys_at(i);
        if (strcmp(k->section, section) != 0 || strcmp(k->name, key) != 0)
            continue;
        if (f->line[i] != 0 && line != ELV_JOB_OVERRIDE)
            return elv_refuse_second(&l, key, f->line[i]);
        const enum elv_err err = text.len > 0 ? elv_world_key_read(k, f, text) : ELV_ERR_FORMAT;
        if (err != ELV_OK)
            return elv_refuse_value(&l, key, text, SHOWN, k->accepts, err);
        f->line[i] = line;
        return ELV_OK;
    }
    return elv_refuse_key(&l, &keys, section, key);
}

static size_t place_of(const char *path)
{
    size_t i = 0;
    while (strcmp(elv_world_keys_at(i)->path, path) != 0)
        i++;
    return i;
}

uint32_t elv_world_file_line(const struct elv_world_file *f, const char *path)
{
    return f->line[place_of(path)];
}

/* A rule between keys is broken; the sentence says the rule. */
static enum elv_err refuse(const struct elv_world_file *f, const char *path, const char *sentence,
                           char why[ELV_JOB_ERROR_MAX], uint32_t *line)
{
    struct elv_line l = elv_line_of(why, ELV_JOB_ERROR_MAX);
    elv_line_add(&l, sentence);
    *line = elv_world_file_line(f, path);
    return ELV_ERR_RANGE;
}

/* What only single messages can suffer. */
static enum elv_err check_messages(const struct elv_world_file *f, char why[ELV_JOB_ERROR_MAX],
                                   uint32_t *line)
{
    const struct elv_lab_world *w = &f->world;
    const struct elv_lab_faults *x = &w->faults;
    const struct {
        const char *path;
        bool given;
    } all[] = {
        {"link.duplicate", w->link.duplicate > 0},    {"link.reorder", w->link.reorder > 0},
        {"faults.server_crash", x->server_crash > 0}, {"faults.client_crash", x->client_crash > 0},
        {"faults.partition", x->partition > 0},       {"faults.disk_error", x->disk_error > 0}};
    for (size_t i = 0; w->detail == ELV_LAB_TIMING && i < sizeof all / sizeof all[0]; i++)
        if (all[i].given)
            return refuse(f, all[i].path,
                          "duplicate, reorder and [faults] happen to single messages; leave them "
                          "out, or give [world] detail = messages",
                          why, line);
    return ELV_OK;
}

static bool is_usual_speed(const struct elv_lab_draw *d)
{
    return d->shape == ELV_LAB_CONSTANT && d->a == 1.0;
}

/* A trace says by itself what these would; their defaults say nothing. */
static enum elv_err check_trace(const struct elv_world_file *f, char why[ELV_JOB_ERROR_MAX],
                                uint32_t *line)
{
    const struct elv_lab_device *d = &f->world.device;
    const struct elv_lab_link *l = &f->world.link;
    const struct elv_lab_availability *a = &f->world.availability;
    const struct {
        const char *path;
        bool given;
    } all[] = {{"device.speed", !is_usual_speed(&d->speed)},
               {"device.compute", elv_lab_draw_is_set(&d->compute)},
               {"device.start", d->start_spread > 0},
               {"link.up", elv_lab_draw_is_set(&l->up)},
               {"link.down", elv_lab_draw_is_set(&l->down)},
               {"availability.churn", a->churn_rate > 0},
               {"availability.stay", elv_lab_draw_is_set(&a->stay)},
               {"availability.on", elv_lab_draw_is_set(&a->on)},
               {"availability.off", elv_lab_draw_is_set(&a->off)}};
    for (size_t i = 0; f->trace[0] != '\0' && i < sizeof all / sizeof all[0]; i++)
        if (all[i].given)
            return refuse(f, all[i].path,
                          "a trace says itself when devices are there, how fast they and their "
                          "links are; leave out speed, compute, start, up, down, churn, stay, on "
                          "and off, or the trace",
                          why, line);
    return ELV_OK;
}

/* A profile says by itself what a link is like. */
static enum elv_err check_profile(const struct elv_world_file *f, char why[ELV_JOB_ERROR_MAX],
                                  uint32_t *line)
{
    const struct elv_lab_link *l = &f->world.link;
    const struct {
        const char *path;
        bool given;
    } all[] = {{"link.latency", elv_lab_draw_is_set(&l->latency)},
               {"link.up", elv_lab_draw_is_set(&l->up)},
               {"link.down", elv_lab_draw_is_set(&l->down)},
               {"link.loss", l->loss > 0},
               {"link.duplicate", l->duplicate > 0},
               {"link.reorder", l->reorder > 0},
               {"availability.trace", f->trace[0] != '\0'}};
    for (size_t i = 0; l->profile != NULL && i < sizeof all / sizeof all[0]; i++)
        if (all[i].given)
            return refuse(f, all[i].path,
                          "a profile says itself what links are like; leave out latency, up, down, "
                          "loss, duplicate, reorder and trace, or the profile",
                          why, line);
    return ELV_OK;
}

static enum elv_err check_presence(const struct elv_world_file *f, char why[ELV_JOB_ERROR_MAX],
                                   uint32_t *line)
{
    const struct elv_lab_availability *a = &f->world.availability;
    const bool on = elv_lab_draw_is_set(&a->on), off = elv_lab_draw_is_set(&a->off);
    if (on != off)
        return refuse(f, on ? "availability.on" : "availability.off",
                      "on and off take turns; give both, above 0, or neither", why, line);
    if (a->churn_rate > 0 && f->world.device.start_spread > 0)
        return refuse(f, "device.start",
                      "with churn devices come by themselves; give start = at-once, or no churn",
                      why, line);
    return ELV_OK;
}

enum elv_err elv_world_file_check(const struct elv_world_file *f, char why[ELV_JOB_ERROR_MAX],
                                  uint32_t *line)
{
    *line = 0;
    why[0] = '\0';
    enum elv_err err = check_messages(f, why, line);
    if (err == ELV_OK)
        err = check_trace(f, why, line);
    if (err == ELV_OK)
        err = check_profile(f, why, line);
    if (err == ELV_OK)
        err = check_presence(f, why, line);
    return err;
}

bool elv_world_file_key(const struct elv_world_file *f, size_t i, const char **section,
                        const char **key, char value[ELV_JOB_TEXT_MAX], uint32_t *line)
{
    if (i >= elv_world_keys_count())
        return false;
    const struct elv_world_key *k = elv_world_keys_at(i);
    struct elv_line out = elv_line_of(value, ELV_JOB_TEXT_MAX);
    elv_world_key_print(k, f, &out);
    *section = k->section;
    *key = k->name;
    *line = f->line[i];
    return true;
}
