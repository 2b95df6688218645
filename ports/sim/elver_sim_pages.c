/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "ports/sim/elver_sim_pages.h"

#include <sys/mman.h>
#include <unistd.h>

static void *take(void *self, size_t len)
{
    (void)self;
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED ? at : NULL;
}

static void give(void *self, void *at, size_t len)
{
    (void)self;
    munmap(at, len);
}

static void drop(void *self, void *at, size_t len)
{
    (void)self;
    madvise(at, len, MADV_DONTNEED); /* refused, it only costs memory */
}

struct elv_deploy_pages elv_sim_pages(void)
{
    const long page = sysconf(_SC_PAGESIZE);
    return (struct elv_deploy_pages){
        .page = page > 0 ? (size_t)page : 4096, .take = take, .give = give, .drop = drop};
}
