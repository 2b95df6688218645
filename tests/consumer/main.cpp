/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <elver/common/assert.h>
#include <elver/common/cursor.h>
#include <elver/common/node.h>
#include <elver/version.h>

extern "C" void elv_assert_failed(const char *what, const char *file, int line)
{
    std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
    std::abort();
}

int main()
{
    std::array<std::uint8_t, 4> out{};
    elv_wr w = elv_wr_of(out.data(), out.size());
    elv_wr_u32(&w, CONSUMER_ERR);
    std::printf("Elver %s: %s, first byte %d\n", ELV_VERSION, elv_err_text(w.err), out[0]);
    return std::string("success") != elv_err_text(ELV_OK) || out[0] != CONSUMER_ERR;
}
