/* SPDX-License-Identifier: Apache-2.0 */
/* server/tiers.h - many clients as few groups of nearly the same pace.
 *
 * Intervals are counted in classes that are 1/256 to 1/512 of the interval wide, and the classes in
 * use are cut into tiers that are as narrow, in classes, as the number of tiers allows: the widest
 * tier is the narrowest it can be, and a lone straggler takes one tier without widening another. */
#ifndef ELV_SERVER_TIERS_H
#define ELV_SERVER_TIERS_H

#include "../common/node.h"

enum { ELV_TIER_CLASSES = 34 * 256 };

/* Intervals of 2^40 us and more share the last class. */
uint32_t elv_tier_class(elv_time_us interval);

/* `classes` [ELV_TIER_CLASSES] holds how many clients have each class, and then the tier of each
 * class in use. Returns how many tiers there are: at most `most`, which is 1 or more. */
uint32_t elv_tier_cut(uint32_t *classes, uint32_t most);

#endif
