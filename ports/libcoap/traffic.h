/* SPDX-License-Identifier: Apache-2.0 */
/* ports/libcoap/traffic.h - what the sockets really sent and received.
 *
 * Libcoap counts nothing and shows none of its sockets. Its calls of send, sendmsg, recv and
 * recvmsg are therefore led through this file by the linker (--wrap, see CMakeLists.txt); what
 * happens between `begin` and `end` on the same thread is counted for one client or server:
 * handshakes, repeats, acknowledgements, what nobody asked for. A libcoap that is linked
 * dynamically cannot be watched: then all stays 0. */
#ifndef ELV_PORTS_LIBCOAP_TRAFFIC_H
#define ELV_PORTS_LIBCOAP_TRAFFIC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct elv_coap_traffic {
    uint64_t datagrams_in, datagrams_out;
    uint64_t wire_in, wire_out; /* bytes with the headers of UDP and IP */
};

/* Returns what was counted for before, for `end`: calls nest. */
struct elv_coap_traffic *elv_coap_traffic_begin(struct elv_coap_traffic *t);
void elv_coap_traffic_end(struct elv_coap_traffic *before);

#ifdef __cplusplus
}
#endif
#endif
