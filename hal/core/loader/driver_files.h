/* loader/driver_files.h: the files of a plugin's driver in this process.
 *
 * Often a vendor's library is only a loader that finds the drivers in its own folders. The library's path does not show
 * that a driver was replaced, so the files are taken from the dynamic loader's list of mapped libraries. A driver
 * consists of the libraries that were loaded while its plugin started, and of their dependencies. If the application
 * had loaded the vendor's library earlier, the drivers may have been loaded then, so all libraries with a soname count.
 * Later libraries with a soname count too, because a driver may load its compiler on first use.
 */
#ifndef GPUHAL_LOADER_DRIVER_FILES_H
#define GPUHAL_LOADER_DRIVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised means unknown. */
typedef struct gpuhal_driver_files {
    size_t begin, end; /* range in the list of all libraries, in load order */
    bool begun;
    bool shared; /* the vendor's library was already loaded when the plugin started */
    char *lines; /* one line for each file: its identity and path; NULL if unknown */
} gpuhal_driver_files;

/* Must be called before the plugin is loaded. A second call keeps the starting point of the first call. */
void gpuhal_driver_files_begin(gpuhal_driver_files *files);
/* Must be called after the plugin has listed its devices. `library` is the path of the vendor's library, or NULL if the
 * plugin opened none. */
void gpuhal_driver_files_end(gpuhal_driver_files *files, const char *library);
/* Returns the lines as a string that the caller frees. Includes libraries that were loaded in the meantime. Returns
 * NULL if unknown or out of memory. */
char *gpuhal_driver_files_now(const gpuhal_driver_files *files);
bool gpuhal_driver_files_are_current(const char *lines);

#endif
