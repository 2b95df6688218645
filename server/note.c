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

enum elv_note_weight elv_note_weight(enum elv_note_kind kind)
{
    switch (kind) {
    case ELV_NOTE_STORE_FAILED:
    case ELV_NOTE_LOG_LOST:
        return ELV_NOTE_BAD;
    case ELV_NOTE_ROUND_ABANDONED:
    case ELV_NOTE_TWIN:
    case ELV_NOTE_CAPPED:
    case ELV_NOTE_UPDATE_REFUSED:
    case ELV_NOTE_EVALUATION_FAILED:
        return ELV_NOTE_ODD;
    default:
        return ELV_NOTE_USUAL;
    }
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
