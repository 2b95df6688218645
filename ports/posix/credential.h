/* SPDX-License-Identifier: Apache-2.0 */
/* ports/posix/credential.h - what a client shows a server: one small file, readable by its owner.
 *
 *     identity = pump-7#2                     identity = gate-1
 *     key = 5f0c...                           certificate = gate-1.pem
 *                                             private_key = gate-1.key
 *                                             ca = ca.pem
 *
 * Lines `name = value`, # for comments. A pre-shared key (32 to 64 hex digits), or three paths. */
#ifndef ELV_PORTS_POSIX_CREDENTIAL_H
#define ELV_PORTS_POSIX_CREDENTIAL_H

#include "ports/posix/keytable.h"

#define ELV_CREDENTIAL_PATH_MAX 512u
#define ELV_CREDENTIAL_TEXT_MAX 4096u

struct elv_credential {
    char identity[ELV_KEY_IDENTITY_MAX + 1];
    uint8_t key_len; /* 0: by certificate */
    uint8_t key[ELV_KEY_LEN_MAX];
    char certificate[ELV_CREDENTIAL_PATH_MAX]; /* empty: by key */
    char private_key[ELV_CREDENTIAL_PATH_MAX];
    char ca[ELV_CREDENTIAL_PATH_MAX];
};

/* ELV_ERR_FORMAT: `e` says which line, or what is missing (line 0). `c` is written on success. */
enum elv_err elv_credential_parse(struct elv_bytes text, struct elv_credential *c,
                                  struct elv_key_error *e);

/* The text, a closing zero; returns its length. What is printed parses to the same. */
size_t elv_credential_print(const struct elv_credential *c, char out[ELV_CREDENTIAL_TEXT_MAX]);

/* ELV_ERR_MISSING, ELV_ERR_AUTH (others may read it), ELV_ERR_FULL, ELV_ERR_IO, ELV_ERR_MEMORY, and
 * what parse returns; `e` has a sentence for each. */
enum elv_err elv_credential_load(const char *path, struct elv_credential *c,
                                 struct elv_key_error *e);

/* Replaces the file, readable by its owner only. ELV_ERR_IO; ELV_ERR_ARG: the path is too long. */
enum elv_err elv_credential_save(const char *path, const struct elv_credential *c);

#endif
