/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

const char *elv_err_text(enum elv_err err)
{
    switch (err) {
#define X(name, value, text)                                                                       \
    case name:                                                                                     \
        return text;
        ELV_ERR_LIST(X)
#undef X
    }
    return "unknown error";
}
