/* SPDX-License-Identifier: Apache-2.0 */
/* What a client with a disk owes after a restart (I9): no chunk that the server had when the client
 * came back is sent again, as long as the server has it and the attempt is the same. The commit
 * goes first, and its answer says what is there. */
#include <string.h>

#include "tests/sim_fleet.h"

/* What the server has of this client's upload; NULL: nothing. */
static const struct elv_upload *upload_of(const struct fleet *f, uint32_t number)
{
    if (f->server == NULL)
        return NULL;
    const uint32_t row = elv_roster_find(&f->server->roster, number);
    if (row == ELV_ROW_NONE || f->server->roster.rows[row].upload == ELV_ROW_NONE)
        return NULL;
    const struct elv_upload *up = &f->server->uploads.at[f->server->roster.rows[row].upload];
    return up->has_nonce && up->state != ELV_UPLOAD_FREE ? up : NULL;
}

static uint64_t mask_of(const struct elv_upload *up)
{
    uint64_t mask = 0;
    for (uint32_t i = 0; i < up->bound && i < 64; i++)
        mask |= (uint64_t)elv_bitmap_get(&up->have, i) << i;
    return mask;
}

void fleet_resume_began(struct fleet *f, struct fleet_client *c)
{
    const struct elv_upload *up = c->disk != NULL ? upload_of(f, c->number) : NULL;
    c->there = (struct fleet_there){0};
    if (up == NULL)
        return;
    c->there.assignment = up->assignment;
    c->there.nonce = up->nonce;
    c->there.mask = mask_of(up);
}

/* The server may have thrown it away, or lost it. */
void fleet_resume_server(struct fleet *f)
{
    for (uint32_t i = 0; i < f->cfg.n_clients; i++) {
        struct fleet_there *t = &f->clients[i].there;
        if (t->mask == 0)
            continue;
        const struct elv_upload *up = upload_of(f, f->clients[i].number);
        const bool same = up != NULL && up->assignment == t->assignment && up->nonce == t->nonce;
        t->mask &= same ? mask_of(up) : 0;
    }
}

static bool is_there(const struct fleet_there *t, const struct elv_request *r)
{
    struct elv_chunk chunk;
    return r->op == ELV_OP_UPDATE_CHUNK && r->assignment == t->assignment && r->chunk < 64 &&
           (t->mask >> r->chunk & 1) != 0 && elv_chunk_decode(r->body, &chunk) == ELV_OK &&
           elv_nonce_of(chunk.tag) == t->nonce;
}

void fleet_resume_client(struct fleet *f, const struct fleet_client *c,
                         const struct elv_actions *did)
{
    for (uint32_t i = 0; c->there.mask != 0 && i < did->n; i++)
        if (did->at[i].kind == ELV_DO_SEND && is_there(&c->there, &did->at[i].request))
            fleet_blame(f,
                        "I9: client %u sends chunk %u of assignment %u again after a restart, "
                        "though the server has it",
                        c->number, did->at[i].request.chunk, c->there.assignment);
}
