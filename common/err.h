/* SPDX-License-Identifier: Apache-2.0 */
/* common/err.h - every way a call can fail. */
#ifndef ELV_COMMON_ERR_H
#define ELV_COMMON_ERR_H

#ifdef __cplusplus
extern "C" {
#endif

/* One list, so a code and its sentence cannot drift apart. Zero is success; failures are negative,
 * which lets a function return a count or a failure in one int where that reads well. */
#define ELV_ERR_LIST(X)                                                                            \
    X(ELV_OK, 0, "success")                                                                        \
    X(ELV_ERR_ARG, -1, "caller broke a documented precondition")                                   \
    X(ELV_ERR_SPACE, -2, "the caller's buffer is too small")                                       \
    X(ELV_ERR_SHORT, -3, "input ended early")                                                      \
    X(ELV_ERR_FORMAT, -4, "input is malformed")                                                    \
    X(ELV_ERR_VERSION, -5, "peer speaks a protocol version we do not")                             \
    X(ELV_ERR_AUTH, -6, "peer failed authentication")                                              \
    X(ELV_ERR_IO, -7, "the port reported an input/output failure")                                 \
    X(ELV_ERR_RANGE, -8, "a value lies outside its allowed range")                                 \
    X(ELV_ERR_FULL, -9, "a configured limit is reached")                                           \
    X(ELV_ERR_MISSING, -10, "the thing asked for does not exist")                                  \
    X(ELV_ERR_MEMORY, -11, "the system has no memory left")                                        \
    X(ELV_ERR_BUSY, -12, "somebody else holds the resource")                                       \
    X(ELV_ERR_CANCELLED, -13, "the work was cancelled before it finished")                         \
    X(ELV_ERR_UNSUPPORTED, -14, "this build or device cannot do it")                               \
    X(ELV_ERR_MISMATCH, -15, "digest or fingerprint differs from the one announced")

enum elv_err {
#define X(name, value, text) name = value,
    ELV_ERR_LIST(X)
#undef X
};

/* Returns a constant string, never NULL, for any value. */
const char *elv_err_text(enum elv_err err);

#ifdef __cplusplus
}
#endif
#endif
