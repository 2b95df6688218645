/* SPDX-License-Identifier: Apache-2.0 */
/* tests/test_client_memory.c - what a transfer costs a client besides its model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client/client.h"

/* `wide` hidden units of 100 inputs and 10 outputs; no trainer, nothing fed back. */
struct shape {
    struct elv_manifest manifest;
    struct elv_model model;
};

static struct shape shape(uint32_t wide)
{
    struct shape s = {.manifest = {.n_up = 1, .up = {{.id = ELV_CODEC_F32}}}};
    char layers[64];
    const int len = snprintf(layers, sizeof layers, "dense %u relu, dense 10", wide);
    const struct elv_model_text text = {.input = {(const uint8_t *)"1x10x10", 7},
                                        .layers = {(const uint8_t *)layers, (size_t)len}};
    assert_int_equal(elv_model_parse(&s.model, text, NULL), ELV_OK);
    return s;
}

static size_t need(const struct shape *s, uint32_t window, uint32_t burst)
{
    const struct elv_client_cfg cfg = {.window = window, .burst = burst};
    return elv_client_mem(&cfg, &s->manifest, &s->model, 10);
}

static size_t vectors(const struct shape *s)
{
    return 2 * sizeof(float) * (size_t)s->model.n_params; /* held, and being made */
}

static void a_window_costs_its_flights_and_no_chunks(void **state)
{
    (void)state;
    const struct shape s = shape(200);
    const size_t one = need(&s, 1, 1);
    static const uint32_t windows[] = {2, 8, 64, 1024};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        const size_t more = need(&s, windows[i], 1) - one;
        const size_t flights = (windows[i] - 1) * sizeof(struct elv_flight);
        assert_in_range(more, flights, flights + ELV_ARENA_ALIGN);
    }
    assert_true(sizeof(struct elv_flight) <= 64);
    assert_int_equal(need(&s, 0, 0), need(&s, ELV_WINDOW_MAX, ELV_CLIENT_BURST));
}

/* Only the chunks sent in one step are anywhere: those in flight are made again when they must. */
static void a_transfer_takes_less_than_a_window_of_chunks_and_a_bitmap(void **state)
{
    (void)state;
    static const uint32_t wide[] = {20, 200, 1000};
    static const uint32_t windows[] = {16, 64};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        const struct shape s = shape(wide[i]);
        const uint32_t n_chunks = elv_base_chunks_max(&s.model);
        const size_t tables = (ELV_CHUNK_HASH_LEN + 2 * sizeof(uint32_t)) * (size_t)n_chunks;
        for (size_t k = 0; k < sizeof windows / sizeof windows[0]; k++) {
            const size_t rest = need(&s, windows[k], 1) - vectors(&s);
            const size_t allowed = windows[k] * (size_t)ELV_CHUNK_MAX +
                                   sizeof(uint64_t) * ELV_BITMAP_WORDS(n_chunks) + tables;
            print_message("%u parameters, window %u: %zu bytes, of them %zu of tables\n",
                          s.model.n_params, windows[k], rest, tables);
            assert_in_range(rest, 1, allowed);
        }
    }
}

/* Hashes of a full body and the places of an update's chunks: a fortieth of one vector. */
static void what_grows_with_the_model_is_little_beside_its_vectors(void **state)
{
    (void)state;
    const struct shape small = shape(100), large = shape(2000);
    const size_t grown = need(&large, 64, 4) - need(&small, 64, 4);
    const size_t model = vectors(&large) - vectors(&small);
    assert_true(grown > model);
    assert_true(grown - model < model / 2 / 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_costs_its_flights_and_no_chunks),
        cmocka_unit_test(a_transfer_takes_less_than_a_window_of_chunks_and_a_bitmap),
        cmocka_unit_test(what_grows_with_the_model_is_little_beside_its_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
