/* elf.h: what a shared library exports and links, read from the file without loading it. 64-bit ELF of this machine's byte order.
 */
#ifndef GPUHAL_CHECK_ELF_H
#define GPUHAL_CHECK_ELF_H

#include <stdbool.h>

/* Functions may be NULL. */
typedef struct gpuhal_elf_visitor {
    void *user;
    void (*exported)(void *user, const char *name); /* a defined symbol that others can see */
    void (*imported)(void *user, const char *name); /* a symbol that others have to bring */
    void (*needed)(void *user, const char *name);   /* a library that is loaded along */
    void (*constructors)(void *user, unsigned count, unsigned destructors);
} gpuhal_elf_visitor;

/* @return false when the file is no such library, or damaged */
bool gpuhal_elf_visit(const char *file, const gpuhal_elf_visitor *visitor);

#endif
