/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm_internal.h"

#include <string.h>

/* A tile of c stays in registers: at most TILE_M rows of TILE_N vectors. 32 registers hold 8 x 2,
 * 16 hold 4 x 3. */
enum {
    W = ELV_SIMD_WIDTH,
    TILE_M = W == 16 ? 8 : 4,
    TILE_N = W == 16 ? 2 : 3,
};

typedef float vec __attribute__((vector_size(4 * ELV_SIMD_WIDTH), aligned(4), may_alias));

ELV_INLINE vec load(const float *p) { return *(const vec *)p; }

ELV_INLINE vec splat(float v)
{
    const vec zero = {0};
    return v - zero; /* v - 0 is v, whatever its sign */
}

ELV_INLINE vec begin(const struct elv_gemm *g, const float *c, size_t row)
{
    if (g->start == ELV_GEMM_SELF)
        return load(c);
    return splat(g->start == ELV_GEMM_BIAS ? g->bias[row] : 0.0f);
}

/* `nm` rows from `row` on by `nv` vectors; c is where the first of them goes. With constant nm and
 * nv every loop but the one over k unrolls, and acc is registers. */
ELV_INLINE void tile(const struct elv_gemm *g, size_t row, float *c, const size_t nm,
                     const size_t nv)
{
    vec acc[TILE_M][TILE_N];
    for (size_t i = 0; i < nm; i++)
        for (size_t j = 0; j < nv; j++)
            acc[i][j] = begin(g, c + i * g->c_row + j * W, row + i);

    const float *a = g->a + row * g->a_row, *b = g->b;
    for (size_t k = 0; k < g->k; k++) {
        vec bv[TILE_N];
        for (size_t j = 0; j < nv; j++)
            bv[j] = load(b + j * W);
        for (size_t i = 0; i < nm; i++) {
            const float av = a[i * g->a_row];
            for (size_t j = 0; j < nv; j++)
                acc[i][j] = acc[i][j] + av * bv[j];
        }
        a += g->a_col;
        b += g->b_row;
    }

    for (size_t i = 0; i < nm; i++)
        for (size_t j = 0; j < nv; j++)
            *(vec *)(c + i * g->c_row + j * W) = acc[i][j];
}

/* The next rows of a panel of `nv` vectors; returns how many. */
ELV_INLINE size_t some_rows(const struct elv_gemm *g, size_t row, float *c, const size_t nv)
{
    const size_t left = g->m - row;
    if (TILE_M == 8 && left >= 8) {
        tile(g, row, c, TILE_M, nv);
        return TILE_M;
    }
    if (left >= 4) {
        tile(g, row, c, 4, nv);
        return 4;
    }
    if (left >= 2) {
        tile(g, row, c, 2, nv);
        return 2;
    }
    tile(g, row, c, 1, nv);
    return 1;
}

ELV_INLINE void panel(const struct elv_gemm *g, const size_t nv)
{
    for (size_t row = 0; row < g->m;)
        row += some_rows(g, row, g->c + row * g->c_row, nv);
}

static void panel1(const struct elv_gemm *g) { panel(g, 1); }

static void panel2(const struct elv_gemm *g) { panel(g, 2); }

static void panel3(const struct elv_gemm *g) { panel(g, TILE_N); }

/* The columns past the last full vector. b may end with its memory, so it is copied unless the
 * caller said otherwise; c is worked on beside its place. */
static void edge(struct elv_gemm g)
{
    float tile_c[TILE_M * W] = {0};
    float *const c = g.c;
    const size_t c_row = g.c_row, len = g.n * sizeof *c, m = g.m;
    if (g.edge != NULL) {
        for (size_t k = 0; k < g.k; k++)
            memcpy(g.edge + k * 16, g.b + k * g.b_row, len);
        g.b = g.edge;
        g.b_row = 16;
    }
    g.c_row = W;
    for (size_t row = 0; row < m;) {
        const size_t rows = m - row < TILE_M ? m - row : TILE_M;
        for (size_t i = 0; i < rows; i++)
            memcpy(tile_c + i * W, c + (row + i) * c_row, len);
        g.m = row + rows;
        for (size_t at = row; at < g.m;)
            at += some_rows(&g, at, tile_c + (at - row) * W, 1);
        for (size_t i = 0; i < rows; i++)
            memcpy(c + (row + i) * c_row, tile_c + i * W, len);
        row += rows;
    }
}

void ELV_SIMD(gemm)(const struct elv_gemm *g)
{
    static void (*const panels[])(const struct elv_gemm *) = {panel1, panel2, panel3};
    struct elv_gemm part = *g;
    while (part.n >= W) {
        const size_t whole = part.n / W;
        const size_t nv = whole < TILE_N ? whole : TILE_N;
        panels[nv - 1](&part);
        part.n -= nv * W;
        part.b += nv * W;
        part.c += nv * W;
    }
    if (part.n > 0)
        edge(part);
}
