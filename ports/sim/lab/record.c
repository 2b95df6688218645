/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/record.h"

const char *elv_lab_event_name(enum elv_lab_event_kind kind)
{
    static const char *const names[] = {"joined",    "left",    "started", "used",        "late",
                                        "discarded", "dropped", "held",    "interrupted", "lapsed"};
    return names[kind];
}

void elv_lab_count(struct elv_lab_summary *sum, struct elv_lab_round *round,
                   enum elv_lab_event_kind kind)
{
    switch (kind) {
    case ELV_LAB_STARTED:
        sum->started++;
        break;
    case ELV_LAB_USED:
        sum->used++;
        break;
    case ELV_LAB_LATE:
        sum->late++;
        round->n_late++;
        break;
    case ELV_LAB_DISCARDED:
        sum->discarded++;
        round->n_discarded++;
        break;
    case ELV_LAB_DROPPED:
        sum->dropped++;
        round->n_dropped++;
        break;
    case ELV_LAB_INTERRUPTED:
        sum->interrupted++;
        break;
    case ELV_LAB_LAPSED:
        sum->lapsed++;
        break;
    case ELV_LAB_JOINED:
    case ELV_LAB_LEFT:
    case ELV_LAB_HELD:
        break;
    }
    sum->events += kind <= ELV_LAB_DISCARDED;
}

/* Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination", DEC-TR-301,
 * 1984. */
double elv_lab_fairness(double sum, uint32_t n, double squares)
{
    return sum > 0.0 ? sum * sum / (n * squares) : 1.0;
}
