/* image.h: lists the exports and dependencies of a loaded shared library. The file must already be mapped by the
 * dynamic loader. Only the core library reads files itself and rejects damaged files. */
#ifndef GPUHAL_CHECK_IMAGE_H
#define GPUHAL_CHECK_IMAGE_H

#include <stdbool.h>

/* Functions may be NULL. */
typedef struct gpuhal_image_visitor {
    void *user;
    void (*exported)(void *user, const char *name); /* a defined symbol that is visible to other objects */
    void (*imported)(void *user, const char *name); /* a symbol that other objects must define */
    void (*needed)(void *user, const char *name);   /* a library that is loaded as a dependency */
    void (*constructors)(void *user, unsigned count, unsigned destructors);
} gpuhal_image_visitor;

/* Returns false if the file is not loaded. */
bool gpuhal_image_visit(const char *file, const gpuhal_image_visitor *visitor);

#endif
