/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm_simd.h"

#include <string.h>

/* A tile of c stays in registers: TILE_M rows of TILE_N vectors. 32 registers hold 8 x 2, 16 hold
 * 4 x 3. */
enum {
    W = ELV_SIMD_WIDTH,
    TILE_M = W == 16 ? 8 : 4,
    TILE_N = W == 16 ? 2 : 3,
};

typedef float vec __attribute__((vector_size(4 * ELV_SIMD_WIDTH), aligned(4), may_alias));

/* Columns [at, at + nv * W) of c, of which the first `cols` exist; b starts at that column. */
struct panel {
    const float *b;
    size_t b_row;
    size_t at, cols;
};

ELV_INLINE vec load(const float *p) { return *(const vec *)p; }

ELV_INLINE vec splat(float v)
{
    const vec zero = {0};
    return v - zero; /* v - 0 is v, whatever its sign */
}

ELV_INLINE vec load_some(const float *p, size_t n)
{
    float v[W] = {0};
    memcpy(v, p, n * sizeof *v);
    return load(v);
}

ELV_INLINE void store_some(float *p, vec v, size_t n) { memcpy(p, &v, n * sizeof *p); }

/* How many columns vector j of the panel has. */
ELV_INLINE size_t width(const struct panel *p, size_t j)
{
    return p->cols - j * W < W ? p->cols - j * W : W;
}

ELV_INLINE vec begin(const struct elv_gemm *g, const struct panel *p, size_t row, size_t j)
{
    const float *c = g->c + row * g->c_row + p->at + j * W;
    if (g->start == ELV_GEMM_SELF)
        return width(p, j) == W ? load(c) : load_some(c, width(p, j));
    return splat(g->start == ELV_GEMM_BIAS ? g->bias[row] : 0.0f);
}

ELV_INLINE void end(const struct elv_gemm *g, const struct panel *p, size_t row, size_t j, vec v)
{
    float *c = g->c + row * g->c_row + p->at + j * W;
    if (width(p, j) == W)
        *(vec *)c = v;
    else
        store_some(c, v, width(p, j));
}

/* With constant `nm` and `nv` every loop but the one over k unrolls and `acc` is registers. */
ELV_INLINE void tile(const struct elv_gemm *g, const struct panel *p, size_t row, const size_t nm,
                     const size_t nv)
{
    vec acc[TILE_M][TILE_N];
#pragma GCC unroll 8
    for (size_t i = 0; i < nm; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < nv; j++)
            acc[i][j] = begin(g, p, row + i, j);

    const float *a = g->a + row * g->a_row, *b = p->b;
    for (size_t k = 0; k < g->k; k++) {
        vec bv[TILE_N];
#pragma GCC unroll 8
        for (size_t j = 0; j < nv; j++)
            bv[j] = load(b + j * W);
#pragma GCC unroll 8
        for (size_t i = 0; i < nm; i++) {
            const float av = a[i * g->a_row];
#pragma GCC unroll 8
            for (size_t j = 0; j < nv; j++)
                acc[i][j] = acc[i][j] + av * bv[j];
        }
        a += g->a_col;
        b += p->b_row;
    }

#pragma GCC unroll 8
    for (size_t i = 0; i < nm; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < nv; j++)
            end(g, p, row + i, j, acc[i][j]);
}

ELV_INLINE void rows_of(const struct elv_gemm *g, const struct panel *p, const size_t nv)
{
    size_t row = 0;
    for (; g->m - row >= TILE_M; row += TILE_M)
        tile(g, p, row, TILE_M, nv);
    switch (g->m - row) {
    case 7:
        tile(g, p, row, TILE_M < 7 ? 1 : 7, nv);
        break;
    case 6:
        tile(g, p, row, TILE_M < 6 ? 1 : 6, nv);
        break;
    case 5:
        tile(g, p, row, TILE_M < 5 ? 1 : 5, nv);
        break;
    case 4:
        tile(g, p, row, 4, nv);
        break;
    case 3:
        tile(g, p, row, 3, nv);
        break;
    case 2:
        tile(g, p, row, 2, nv);
        break;
    case 1:
        tile(g, p, row, 1, nv);
        break;
    default:
        break;
    }
}

static void panel1(const struct elv_gemm *g, const struct panel *p) { rows_of(g, p, 1); }

static void panel2(const struct elv_gemm *g, const struct panel *p) { rows_of(g, p, 2); }

static void panel3(const struct elv_gemm *g, const struct panel *p) { rows_of(g, p, TILE_N); }

/* The columns past the last full vector, where b may end with its memory. */
static void edge_panel(const struct elv_gemm *g, size_t at)
{
    struct panel p = {.b = g->b + at, .b_row = g->b_row, .at = at, .cols = g->n - at};
    for (size_t k = 0; g->edge != NULL && k < g->k; k++)
        memcpy(g->edge + k * 16, g->b + k * g->b_row + at, p.cols * sizeof *g->edge);
    if (g->edge != NULL) {
        p.b = g->edge;
        p.b_row = 16;
    }
    panel1(g, &p);
}

void ELV_SIMD(gemm)(const struct elv_gemm *g)
{
    static void (*const panels[])(const struct elv_gemm *, const struct panel *) = {panel1, panel2,
                                                                                    panel3};
    size_t at = 0;
    while (g->n - at >= W) {
        const size_t whole = (g->n - at) / W;
        const size_t nv = whole < TILE_N ? whole : TILE_N;
        const struct panel p = {g->b + at, g->b_row, at, nv * W};
        panels[nv - 1](g, &p);
        at += nv * W;
    }
    if (at < g->n)
        edge_panel(g, at);
}
