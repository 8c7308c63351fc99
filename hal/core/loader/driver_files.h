/* loader/driver_files.h: which files a plugin's driver is made of in this process.
 *
 * A vendor's library is often but the loader of drivers, which it finds in folders of its own: its name does not say
 * that the driver was exchanged. So the dynamic loader is asked what it has mapped. To a driver belong the libraries
 * that came while its plugin was started, and all that these are linked to. Where the vendor's library was there
 * before, because the application uses it as well, its drivers may have been, too: then all libraries that have a name
 * belong to it. A compiler may come later, when it is first used.
 */
#ifndef GPUHAL_LOADER_DRIVER_FILES_H
#define GPUHAL_LOADER_DRIVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised: not known. */
typedef struct gpuhal_driver_files {
    size_t begin, end; /* in the list of all libraries, in the order in which they came */
    bool begun;
    bool shared; /* the vendor's library was there before the plugin was started */
    char *lines; /* one for each file: what identifies it, and its path; NULL: not known */
} gpuhal_driver_files;

/* Before the plugin is loaded. A second try goes on from the first one's beginning. */
void gpuhal_driver_files_begin(gpuhal_driver_files *files);
/* After it has listed its devices. `library`: the path of the vendor's library; NULL: the plugin opened none. */
void gpuhal_driver_files_end(gpuhal_driver_files *files, const char *library);
/* Returns such lines with those libraries that came since. malloc'ed; NULL when not known, or without memory. */
char *gpuhal_driver_files_now(const gpuhal_driver_files *files);
/* Returns whether the files of such lines are still the same. */
bool gpuhal_driver_files_are_current(const char *lines);

#endif
