/* SPDX-License-Identifier: Apache-2.0 */
/* common/assert.h - programmer errors stop the program; everything else is an enum elv_err. */
#ifndef ELV_COMMON_ASSERT_H
#define ELV_COMMON_ASSERT_H

#ifdef __cplusplus
extern "C" {
[[noreturn]]
#else
_Noreturn
#endif
/* Supplied by the port, or by a program that links the library without one (the linker misses it
 * then): what stopping means there, such as abort(). Must not return. */
void elv_assert_failed(const char *what, const char *file, int line);

#define ELV_ASSERT(cond) ((cond) ? (void)0 : elv_assert_failed(#cond, __FILE__, __LINE__))

#ifdef __cplusplus
}
#endif
#endif
