/* SPDX-License-Identifier: Apache-2.0 */
/* Updates count by the direction they took, not by how far: each is divided by the local work it
 * stands for, and their weighted mean multiplied by the mean work. So a client that makes ten times
 * the steps has no more say, and partial work is as good as any.
 *
 *     rule = fednova
 *     server_learning_rate = 1   ; factor on the step
 *
 * The work of a piece of steps is how far they would go if the gradient were the same, 1, all the
 * way: with local momentum rho, and mu the rate times the proximal pull,
 *
 *     v = rho v + 1 - mu d,   d = d + v
 *
 * which is the number of steps for plain descent, the paper's closed form for momentum and its
 * recursion for the proximal term; both together are as the client's optimiser does them. Source:
 * Wang, Liu, Liang, Joshi, Poor, "Tackling the Objective Inconsistency Problem in Heterogeneous
 * Federated Optimization", NeurIPS 2020, arXiv:2007.07481. */
#include "server/rate.h"

static const char *const params[] = {"server_learning_rate", NULL};

/* One step or many: (v, d) becomes M (v, d) + b. */
struct steps {
    double m[2][2], b[2];
};

/* First `a`, then `z`. */
static struct steps then(const struct steps *a, const struct steps *z)
{
    struct steps s;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++)
            s.m[i][k] = z->m[i][0] * a->m[0][k] + z->m[i][1] * a->m[1][k];
        s.b[i] = z->m[i][0] * a->b[0] + z->m[i][1] * a->b[1] + z->b[i];
    }
    return s;
}

/* By doubling, as a device may claim four thousand million steps. A pull so strong that the steps
 * run away stands for no more than one of them. */
static double effort(const struct elv_job *job, uint32_t n)
{
    const double rho = (double)job->momentum;
    const double mu = (double)job->learning_rate * (double)job->proximal;
    struct steps power = {.m = {{rho, -mu}, {rho, 1.0 - mu}}, .b = {1.0, 1.0}};
    struct steps all = {.m = {{1.0, 0.0}, {0.0, 1.0}}, .b = {0.0, 0.0}};
    for (; n > 0; n >>= 1) {
        if (n & 1)
            all = then(&all, &power);
        power = then(&power, &power);
    }
    return all.b[1] >= 1.0 && all.b[1] < 0x1p60 ? all.b[1] : 1.0;
}

const struct elv_rule elv_rule_fednova = {
    .name = "fednova",
    .params = params,
    .check = elv_rate_check,
    .apply = elv_rate_apply,
    .effort = effort,
};
