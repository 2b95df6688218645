/* SPDX-License-Identifier: Apache-2.0 */
/* ports/sim/profiles.c - links that people know, as figures to test against.
 *
 * Rates count all bytes of a datagram, IP and UDP headers included. Where a source gives a
 * round-trip time, half of it is one way. Sources:
 *
 * lan: switched Ethernet of 100 Mbit/s, one millisecond there and back.
 * lte: median rates of 13 Mbit/s down and 6 Mbit/s up and a round trip of about 70 ms: Huang, Qian,
 *     Gerber, Mao, Sen, Spatscheck, "A Close Examination of Performance and Power Characteristics
 *     of 4G LTE Networks", MobiSys 2012. The radio repeats what it loses; what is left is rare.
 * lte-m: half duplex, 300 kbit/s down and 375 kbit/s up, 3GPP Release 13, category M1: Liberg,
 *     Sundberg, Wang, Bergman, Sachs, "Cellular Internet of Things", 2017. Round trip and losses in
 *     short bursts, as at the edge of a cell, are an assumption.
 * nb-iot: 26 kbit/s, the peak rate of Release 13, category NB1 (ibid.), a round trip of 1.5 s
 *     and 5 % lost each way: deep coverage, where transmissions are repeated many times.
 * satellite: a geostationary hop there and back, at least 558 ms: Allman, Glover, Sanchez,
 *     "Enhancing TCP Over Satellite Channels using Standard Mechanisms", RFC 2488, 1999. Rates are
 *     those of a small terminal, an assumption.
 * lossy: every third or fourth datagram is lost, each way, to see that everything gets through. */
#include <string.h>

#include "ports/sim/link.h"

#define MS INT64_C(1000)
#define KBIT 125u /* bytes per second */

/* A queue of two hundred milliseconds or so, but room for a window of datagrams at least. */
static const struct elv_sim_profile profiles[] = {
    {.name = "lan",
     .up = {.delay = {.min_us = MS / 2}, .bps = 100000 * KBIT, .queue_bytes = 256000},
     .down = {.delay = {.min_us = MS / 2}, .bps = 100000 * KBIT, .queue_bytes = 256000}},
    {.name = "lte",
     .up = {.delay = {.min_us = 30 * MS, .spread_us = 10 * MS},
            .in_order = true,
            .loss_ppm = 1000,
            .bps = 6000 * KBIT,
            .queue_bytes = 150000},
     .down = {.delay = {.min_us = 30 * MS, .spread_us = 10 * MS},
              .in_order = true,
              .loss_ppm = 1000,
              .bps = 13000 * KBIT,
              .queue_bytes = 325000}},
    {.name = "lte-m",
     .up = {.delay = {.min_us = 60 * MS, .spread_us = 40 * MS},
            .in_order = true,
            .bursts = {.enter_ppm = 5000, .leave_ppm = 250000, .loss_ppm = 500000},
            .bps = 375 * KBIT,
            .queue_bytes = 64000},
     .down = {.delay = {.min_us = 60 * MS, .spread_us = 40 * MS},
              .in_order = true,
              .bursts = {.enter_ppm = 5000, .leave_ppm = 250000, .loss_ppm = 500000},
              .bps = 300 * KBIT,
              .queue_bytes = 64000}},
    {.name = "nb-iot",
     .up = {.delay = {.min_us = 700 * MS, .spread_us = 100 * MS},
            .in_order = true,
            .loss_ppm = 50000,
            .bps = 26 * KBIT,
            .queue_bytes = 40000},
     .down = {.delay = {.min_us = 700 * MS, .spread_us = 100 * MS},
              .in_order = true,
              .loss_ppm = 50000,
              .bps = 26 * KBIT,
              .queue_bytes = 40000}},
    {.name = "satellite",
     .up = {.delay = {.min_us = 300 * MS},
            .in_order = true,
            .loss_ppm = 10000,
            .bps = 1000 * KBIT,
            .queue_bytes = 75000},
     .down = {.delay = {.min_us = 300 * MS},
              .in_order = true,
              .loss_ppm = 10000,
              .bps = 5000 * KBIT,
              .queue_bytes = 375000}},
    {.name = "lossy",
     .up = {.delay = {.min_us = 25 * MS, .spread_us = 10 * MS},
            .loss_ppm = 300000,
            .duplicate_ppm = 20000,
            .bps = 8000 * KBIT,
            .queue_bytes = 200000},
     .down = {.delay = {.min_us = 25 * MS, .spread_us = 10 * MS},
              .loss_ppm = 300000,
              .duplicate_ppm = 20000,
              .bps = 8000 * KBIT,
              .queue_bytes = 200000}},
};

const struct elv_sim_profile *elv_sim_profile_at(size_t i)
{
    return i < sizeof profiles / sizeof profiles[0] ? &profiles[i] : NULL;
}

const struct elv_sim_profile *elv_sim_profile(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
        if (strlen(profiles[i].name) == len && memcmp(profiles[i].name, name, len) == 0)
            return &profiles[i];
    return NULL;
}
