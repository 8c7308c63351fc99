/* image.h: lists the exports and links of a loaded shared library. Only the library reads files, and refuses damaged
 * ones; here the dynamic loader has mapped the file already. */
#ifndef GPUHAL_CHECK_IMAGE_H
#define GPUHAL_CHECK_IMAGE_H

#include <stdbool.h>

/* Functions may be NULL. */
typedef struct gpuhal_image_visitor {
    void *user;
    void (*exported)(void *user, const char *name); /* a defined symbol that others can see */
    void (*imported)(void *user, const char *name); /* a symbol that others have to bring */
    void (*needed)(void *user, const char *name);   /* a library that is loaded along */
    void (*constructors)(void *user, unsigned count, unsigned destructors);
} gpuhal_image_visitor;

/* @return false if the file is not loaded */
bool gpuhal_image_visit(const char *file, const gpuhal_image_visitor *visitor);

#endif
