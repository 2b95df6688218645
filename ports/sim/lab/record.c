/* SPDX-License-Identifier: Apache-2.0 */
#include "ports/sim/lab/record.h"

const char *elv_lab_event_name(enum elv_lab_event_kind kind)
{
    static const char *const names[] = {"joined",    "left",    "started", "used",        "late",
                                        "discarded", "dropped", "held",    "interrupted", "lapsed"};
    return names[kind];
}
