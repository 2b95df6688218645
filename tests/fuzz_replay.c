/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz_replay.c - runs a fuzz target over a stored corpus, without a fuzzer.
 *
 *     fuzz_x DIRECTORY
 *
 * Linked to a fuzz target in ordinary builds, so that what a fuzzer once found is tried with every
 * compiler. An empty or missing corpus is a failure: it would test nothing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input lies in a block of exactly its size, so that a sanitizer sees one byte too many. */
static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        return -1;
    const long size = ftell(f);
    if (size < 0 || fseek(f, 0, SEEK_SET) != 0)
        return -1;
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    if (data == NULL || fread(data, 1, (size_t)size, f) != (size_t)size)
        return -1;
    fclose(f);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (dir == NULL) {
        perror(argv[1]);
        return 1;
    }
    unsigned replayed = 0;
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (e->d_name[0] == '.')
            continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        if (replay(path) != 0) {
            perror(path);
            return 1;
        }
        replayed++;
    }
    closedir(dir);
    printf("%u inputs replayed\n", replayed);
    return replayed == 0;
}
