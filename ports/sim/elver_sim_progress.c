/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "ports/sim/elver_sim_progress.h"

#include <inttypes.h>
#include <unistd.h>

#include "ports/posix/clock.h"

enum { BAR = 24 };
#define LINES_EVERY_US 10000000
#define ETA_AFTER_US 1000000

static elv_time_us now(void)
{
    const struct elv_clock clock = elv_posix_clock();
    return clock.now(clock.self);
}

void elv_sim_progress_init(struct elv_sim_progress *p, struct elv_sim_seat *seats, uint32_t n_seats,
                           uint32_t n_due, bool quiet)
{
    *p = (struct elv_sim_progress){.seats = seats,
                                   .n_seats = n_seats,
                                   .n_due = n_due,
                                   .quiet = quiet,
                                   .terminal = isatty(STDERR_FILENO) == 1};
    p->began = p->told = now();
}

static double share_of(const struct elv_sim_progress *p)
{
    double done = p->n_done;
    for (uint32_t i = 0; i < p->n_seats; i++)
        if (p->seats[i].run != NULL)
            done += atomic_load_explicit(&p->seats[i].watch.ppm, memory_order_relaxed) / 1e6;
    return done < p->n_due ? done / p->n_due : 1;
}

/* "1h05m", "2m30s", "8s"; a question mark while nobody can know. */
static void eta(const struct elv_sim_progress *p, double share, char text[32])
{
    const elv_time_us took = now() - p->began;
    if (share < 1e-4 || took < ETA_AFTER_US) {
        snprintf(text, 32, "?");
        return;
    }
    const double left = (double)took / 1e6 * (1 - share) / share;
    const uint64_t s = left < 3.6e8 ? (uint64_t)(left + 0.5) : 360000000;
    if (s >= 3600)
        snprintf(text, 32, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, 32, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    else
        snprintf(text, 32, "%" PRIu64 "s", s);
}

static void show_bar(const struct elv_sim_progress *p, double share, const char *left)
{
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++)
        bar[i] = share * BAR >= i + 1 ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr, "\r\033[K[%s] %3.0f %%  %" PRIu32 "/%" PRIu32 " runs  ETA %s", bar, share * 100,
            p->n_done, p->n_due, left);
    for (uint32_t i = 0; i < p->n_seats; i++) {
        const struct elv_sim_seat *s = &p->seats[i];
        if (s->run == NULL)
            continue;
        fprintf(stderr, "  %.24s seed %" PRIu64 ": version %u", s->run->outcome.label,
                s->run->outcome.seed, atomic_load(&s->watch.version));
        break;
    }
    fflush(stderr);
}

void elv_sim_progress_show(struct elv_sim_progress *p)
{
    char left[32];
    const double share = share_of(p);
    if (p->quiet || (!p->terminal && now() - p->told < LINES_EVERY_US))
        return;
    p->told = now();
    eta(p, share, left);
    if (p->terminal)
        show_bar(p, share, left);
    else
        fprintf(stderr, "progress runs=%" PRIu32 "/%" PRIu32 " percent=%.0f eta=%s\n", p->n_done,
                p->n_due, share * 100, left);
    p->shown = p->terminal;
}

void elv_sim_progress_clear(struct elv_sim_progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r\033[K");
    p->shown = false;
}
