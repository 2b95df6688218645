/* SPDX-License-Identifier: Apache-2.0 */
#include "server/note.h"

const char *elv_note_name(enum elv_note_kind kind)
{
    switch (kind) {
#define X(name, text)                                                                              \
    case ELV_NOTE_##name:                                                                          \
        return text;
        ELV_NOTE_LIST(X)
#undef X
    }
    return "unknown";
}

struct elv_note *elv_note_add(struct elv_notes *n, enum elv_note_kind kind, elv_time_us at)
{
    struct elv_note *note = &n->at[++n->last % ELV_NOTES_KEPT];
    *note = (struct elv_note){.number = n->last, .at = at, .kind = kind};
    return note;
}

const struct elv_note *elv_note_next(const struct elv_notes *n, uint64_t *seen)
{
    if (*seen >= n->last)
        return NULL;
    if (n->last - *seen > ELV_NOTES_KEPT)
        *seen = n->last - ELV_NOTES_KEPT;
    ++*seen;
    return &n->at[*seen % ELV_NOTES_KEPT];
}
