/* loader/builtin.h: the plugins linked into the library. CMake generates the table from GPUHAL_BUILTIN. */
#ifndef GPUHAL_LOADER_BUILTIN_H
#define GPUHAL_LOADER_BUILTIN_H

#include <gpuhal/instance.h>

#include <stddef.h>

/* Terminated by NULL. */
extern gpuhal_builtin_fn *const gpuhal_builtin_table[];

#endif
