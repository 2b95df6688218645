/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stock_server.c - the fake node of coap_world.h as a server for other people's clients.
 *
 * Prints "port N" once it listens, tells the observers of client 1 of a new ticket five times a
 * second, and ends when its standard input does. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "coap_world.h"

static bool input_ended(const void *ctx)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char byte;
    (void)ctx;
    return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(void)
{
    static struct world w;
    world_init(&w);
    world_add_key(&w, "dev-1", "0123456789abcdef", 1);
    world_open_server(&w, (struct elv_coap_server_cfg){0});
    printf("port %u\n", (unsigned)elv_coap_server_info(w.server)->port[0]);
    fflush(stdout);
    while (!world_run(&w, input_ended, NULL, 200)) {
        const struct elv_action a = {.kind = ELV_DO_NOTIFY, .peer = 1};
        struct elv_net net = elv_coap_server_net(w.server);
        w.ticket++;
        net.act(net.self, &a);
    }
    world_close(&w);
    return 0;
}
