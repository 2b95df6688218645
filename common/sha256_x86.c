/* SPDX-License-Identifier: Apache-2.0 */
/* common/sha256_x86.c - SHA-256 with the SHA extensions, on processors that have them.
 *
 * The state is held as two vectors, ABEF and CDGH from the highest word down, which is what
 * sha256rnds2 works on; each of its calls does two rounds (Intel 64 and IA-32 Architectures
 * Software Developer's Manual, volume 2). */
#include <immintrin.h>

#include "common/sha256_internal.h"

#define WITH_SHA __attribute__((target("sha,sse4.1")))

/* Four rounds: words 4i to 4i+3 of the schedule. */
WITH_SHA static inline void four(__m128i *abef, __m128i *cdgh, __m128i w, unsigned i)
{
    const __m128i k = _mm_loadu_si128((const __m128i *)(const void *)(elv_sha256_k + 4 * i));
    const __m128i kw = _mm_add_epi32(w, k);
    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, kw);
    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(kw, 0x0e));
}

/* The four words after those of w[0] to w[3], which are in order, in the place of w[0]. */
WITH_SHA static inline __m128i next(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
    return _mm_sha256msg2_epu32(sum, w3);
}

WITH_SHA static inline __m128i load(const uint8_t *p)
{
    const __m128i big_endian = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), big_endian);
}

WITH_SHA static void blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
    __m128i *at = (__m128i *)(void *)state;
    const __m128i dcba = _mm_loadu_si128(at), hgfe = _mm_loadu_si128(at + 1);
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; n > 0; n--, p += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4] = {load(p), load(p + 16), load(p + 32), load(p + 48)};
        for (unsigned i = 0; i < 4; i++)
            four(&abef, &cdgh, w[i], i);
        for (unsigned i = 4; i < 16; i += 4) {
            w[0] = next(w[0], w[1], w[2], w[3]);
            four(&abef, &cdgh, w[0], i);
            w[1] = next(w[1], w[2], w[3], w[0]);
            four(&abef, &cdgh, w[1], i + 1);
            w[2] = next(w[2], w[3], w[0], w[1]);
            four(&abef, &cdgh, w[2], i + 2);
            w[3] = next(w[3], w[0], w[1], w[2]);
            four(&abef, &cdgh, w[3], i + 3);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128(at, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128(at + 1, _mm_alignr_epi8(dchg, feba, 8));
}

void elv_sha256_blocks(uint32_t state[8], const uint8_t *p, size_t n)
{
    if (__builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1"))
        blocks(state, p, n);
    else
        elv_sha256_blocks_plain(state, p, n);
}
