/* SPDX-License-Identifier: Apache-2.0 */
/* Upload slots, and the log their chunks lie in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "server/upload.h"
#include "server/upload_log.h"
#include "tests/fake_disk.h"

enum { SLOTS = 3, CHUNKS = 100 };

struct pool {
    struct elv_uploads u;
    void *block;
};

static void make(struct pool *p)
{
    struct elv_arena a = elv_arena_of(NULL, 0);
    elv_uploads_layout(&p->u, &a, SLOTS, CHUNKS);
    assert_true(a.used <= SLOTS * elv_upload_slot_len(CHUNKS) + ELV_ARENA_ALIGN);
    p->block = aligned_alloc(ELV_ARENA_ALIGN, a.used);
    a = elv_arena_of(p->block, a.used);
    elv_uploads_layout(&p->u, &a, SLOTS, CHUNKS);
    assert_int_equal(a.err, ELV_OK);
    elv_uploads_clear(&p->u);
}

static void slots_are_taken_until_none_is_left_and_given_back(void **state)
{
    (void)state;
    struct pool p;
    struct elv_upload *up[SLOTS];
    make(&p);
    for (uint32_t i = 0; i < SLOTS; i++) {
        up[i] = elv_upload_take(&p.u, i, 10 + i, 1, 1, CHUNKS);
        assert_non_null(up[i]);
        assert_int_equal(elv_upload_index(&p.u, up[i]), i);
    }
    assert_null(elv_upload_take(&p.u, 9, 9, 1, 1, CHUNKS));
    elv_upload_free(&p.u, up[1]);
    assert_int_equal(p.u.n_used, 2);
    assert_ptr_equal(elv_upload_take(&p.u, 9, 9, 1, 1, CHUNKS), up[1]);
    free(p.block);
}

static void chunks_are_found_where_they_were_noted(void **state)
{
    (void)state;
    struct pool p;
    struct elv_missing m;
    make(&p);
    struct elv_upload *up = elv_upload_take(&p.u, 0, 1, 1, 1, CHUNKS);
    elv_upload_restart(up, 5);
    const uint64_t far = (UINT64_C(1) << 47) + 12345;
    elv_upload_note(up, &(struct elv_chunk){.index = 2, .first = 20, .count = 10}, far, 1024);
    elv_upload_note(up, &(struct elv_chunk){.index = 0, .first = 0, .count = 10}, far + 2000, 25);
    assert_int_equal(elv_chunk_ref_offset(&up->refs[2]), far);
    assert_int_equal(elv_chunk_ref_len(&up->refs[2]), 1024);
    assert_int_equal(up->from, far);
    assert_int_equal(up->bytes, 1049);
    elv_upload_missing(up, 3, &m);
    assert_int_equal(m.first, 1);
    assert_int_equal(m.have[0], 2);
    elv_upload_note(up, &(struct elv_chunk){.index = 1, .first = 10, .count = 10}, far + 3000, 25);
    elv_upload_missing(up, 3, &m);
    assert_int_equal(m.first, 3);
    assert_int_equal(m.have[0], 0);
    free(p.block);
}

static void attempts_before_the_last_are_remembered_for_a_while(void **state)
{
    (void)state;
    struct pool p;
    make(&p);
    struct elv_upload *up = elv_upload_take(&p.u, 0, 1, 1, 1, CHUNKS);
    for (uint64_t nonce = 1; nonce <= 5; nonce++)
        elv_upload_restart(up, nonce);
    assert_false(elv_upload_is_old(up, 5));
    assert_true(elv_upload_is_old(up, 4));
    assert_true(elv_upload_is_old(up, 3));
    assert_true(elv_upload_is_old(up, 2));
    assert_false(elv_upload_is_old(up, 1));
    free(p.block);
}

static void queues_keep_their_order(void **state)
{
    (void)state;
    struct pool p;
    make(&p);
    struct elv_upload *a = elv_upload_take(&p.u, 0, 1, 1, 1, CHUNKS);
    struct elv_upload *b = elv_upload_take(&p.u, 1, 2, 1, 1, CHUNKS);
    elv_upload_push(&p.u, &p.u.waiting, b);
    elv_upload_push(&p.u, &p.u.waiting, a);
    assert_int_equal(p.u.waiting.n, 2);
    assert_ptr_equal(elv_upload_pop(&p.u, &p.u.waiting), b);
    elv_upload_push(&p.u, &p.u.waiting, b);
    assert_ptr_equal(elv_upload_pop(&p.u, &p.u.waiting), a);
    assert_ptr_equal(elv_upload_pop(&p.u, &p.u.waiting), b);
    assert_null(elv_upload_pop(&p.u, &p.u.waiting));
    free(p.block);
}

static void only_a_transfer_left_alone_long_enough_makes_room(void **state)
{
    (void)state;
    struct pool p;
    make(&p);
    struct elv_upload *a = elv_upload_take(&p.u, 0, 1, 1, 1, CHUNKS);
    struct elv_upload *b = elv_upload_take(&p.u, 1, 2, 1, 1, CHUNKS);
    a->touched = 100;
    b->touched = 50;
    assert_null(elv_upload_idlest(&p.u, 149, 100));
    assert_ptr_equal(elv_upload_idlest(&p.u, 150, 100), b);
    assert_ptr_equal(elv_upload_idlest(&p.u, 500, 100), b);
    b->state = ELV_UPLOAD_WAITING; /* being decided: not idle, whatever the clock says */
    assert_ptr_equal(elv_upload_idlest(&p.u, 500, 100), a);
    free(p.block);
}

static struct elv_log_record record(uint32_t client, const uint8_t *at, size_t len)
{
    return (struct elv_log_record){.client = client, .assignment = 3, .chunk = {at, len}};
}

static void append(struct fake_disk *d, const uint8_t *at, size_t len)
{
    const struct elv_action a = {
        .kind = ELV_DO_STORE, .store = {.kind = ELV_STORE_APPEND, .number = 1, .bytes = {at, len}}};
    fake_disk_submit(d, &a, 1);
}

static void records_read_back_and_no_part_of_one_does(void **state)
{
    (void)state;
    static uint8_t chunk[ELV_CHUNK_MAX], bytes[ELV_LOG_RECORD_MAX];
    static const size_t lens[] = {0, 1, 25, ELV_CHUNK_MAX - 1, ELV_CHUNK_MAX};
    for (size_t i = 0; i < ELV_CHUNK_MAX; i++)
        chunk[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct elv_log_record got;
        const struct elv_log_record r = record(9, chunk, lens[i]);
        const size_t len = elv_log_record_encode(&r, bytes);
        assert_int_equal(len, lens[i] + ELV_LOG_HEAD_LEN);
        assert_int_equal(elv_log_record_decode((struct elv_bytes){bytes, len}, &got), ELV_OK);
        assert_int_equal(got.client, 9);
        assert_int_equal(got.assignment, 3);
        assert_int_equal(got.chunk.len, lens[i]);
        for (size_t cut = 0; cut < len; cut++)
            assert_int_equal(elv_log_record_decode((struct elv_bytes){bytes, cut}, &got),
                             ELV_ERR_SHORT);
        bytes[len - 1] ^= 0x40;
        assert_int_equal(elv_log_record_decode((struct elv_bytes){bytes, len}, &got),
                         ELV_ERR_FORMAT);
    }
}

/* Logs of an open round are read by whatever version is started next. */
static void a_record_is_these_bytes(void **state)
{
    (void)state;
    static const uint8_t chunk[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const uint8_t want[ELV_LOG_HEAD_LEN + sizeof chunk] = {
        0x7e, 0xe1, 0x09, 0x00, 0x09, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0xd2,
        0xe4, 0xa6, 0xd6, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};
    uint8_t bytes[ELV_LOG_RECORD_MAX];
    const struct elv_log_record r = record(9, chunk, sizeof chunk);
    assert_int_equal(elv_log_record_encode(&r, bytes), sizeof want);
    assert_memory_equal(bytes, want, sizeof want);
}

static void a_scan_finds_every_whole_record_whatever_lies_between(void **state)
{
    (void)state;
    enum { N = 300 };
    struct fake_disk d;
    static uint8_t chunk[ELV_CHUNK_MAX], bytes[ELV_LOG_RECORD_MAX], zeros[5000];
    static uint8_t buf[ELV_LOG_SCAN_BUF];
    struct elv_log_record got;
    size_t n = 0, skipped = 0;
    fake_disk_init(&d);
    const struct elv_disk disk = fake_disk_disk(&d);
    for (uint32_t i = 0; i < N; i++) {
        memset(chunk, (int)i, sizeof chunk);
        const struct elv_log_record r = record(i + 1, chunk, 100 + i * 3);
        const size_t len = elv_log_record_encode(&r, bytes);
        append(&d, bytes, len);
        if (i % 50 == 10) { /* a page the disk never wrote */
            append(&d, zeros, sizeof zeros);
            skipped += sizeof zeros;
        }
        if (i % 50 == 20) { /* a torn record */
            append(&d, bytes, len / 2);
            skipped += len / 2;
        }
    }
    append(&d, bytes, 40); /* and the tail is cut */
    skipped += 40;
    struct elv_log_scan s = elv_log_scan_of(&disk, 1, buf);
    while (elv_log_scan_next(&s, &got) == ELV_OK) {
        assert_int_equal(got.client, n + 1);
        assert_int_equal(got.chunk.len, 100 + n * 3);
        uint8_t again[ELV_LOG_RECORD_MAX];
        struct elv_log_record direct;
        assert_int_equal(
            elv_log_read(&disk, 1, got.at, got.chunk.len + ELV_LOG_HEAD_LEN, again, &direct),
            ELV_OK);
        assert_int_equal(direct.client, got.client);
        n++;
    }
    assert_int_equal(n, N);
    assert_int_equal(s.skipped, skipped);
    assert_int_equal(s.base + s.at, fake_disk_log(&d, 1)->len);
    uint64_t len;
    assert_int_equal(elv_log_len(&disk, 1, &len), ELV_OK);
    assert_int_equal(len, fake_disk_log(&d, 1)->len);
    assert_int_equal(elv_log_len(&disk, 2, &len), ELV_OK);
    assert_int_equal(len, 0);
    s = elv_log_scan_of(&disk, 2, buf);
    assert_int_equal(elv_log_scan_next(&s, &got), ELV_ERR_MISSING);
    fake_disk_free(&d);
}

static void a_scan_stops_where_it_is_told(void **state)
{
    (void)state;
    struct fake_disk d;
    static uint8_t bytes[ELV_LOG_RECORD_MAX], buf[ELV_LOG_SCAN_BUF];
    const uint8_t chunk[50] = {1};
    struct elv_log_record got;
    fake_disk_init(&d);
    const struct elv_disk disk = fake_disk_disk(&d);
    const struct elv_log_record r = record(1, chunk, sizeof chunk);
    const size_t len = elv_log_record_encode(&r, bytes);
    for (int i = 0; i < 10; i++)
        append(&d, bytes, len);
    struct elv_log_scan s = elv_log_scan_of(&disk, 1, buf);
    s.end = 4 * len;
    for (int i = 0; i < 4; i++)
        assert_int_equal(elv_log_scan_next(&s, &got), ELV_OK);
    assert_int_equal(elv_log_scan_next(&s, &got), ELV_ERR_MISSING);
    fake_disk_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_taken_until_none_is_left_and_given_back),
        cmocka_unit_test(chunks_are_found_where_they_were_noted),
        cmocka_unit_test(attempts_before_the_last_are_remembered_for_a_while),
        cmocka_unit_test(queues_keep_their_order),
        cmocka_unit_test(only_a_transfer_left_alone_long_enough_makes_room),
        cmocka_unit_test(records_read_back_and_no_part_of_one_does),
        cmocka_unit_test(a_record_is_these_bytes),
        cmocka_unit_test(a_scan_finds_every_whole_record_whatever_lies_between),
        cmocka_unit_test(a_scan_stops_where_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
