/* loader/driver_files.h: the files of a plugin's driver in this process.
 *
 * A vendor's library often only loads drivers, which it finds in its folders: its name does not show that the driver
 * was exchanged. So the dynamic loader is asked for the mapped files. A driver consists of the libraries that came
 * while its plugin was started, and of all libraries that these are linked to. If the vendor's library was there
 * before, because the application uses it as well, its drivers may have been, too: then all libraries with a name
 * belong to the driver. A compiler may come later, when it is first used.
 */
#ifndef GPUHAL_LOADER_DRIVER_FILES_H
#define GPUHAL_LOADER_DRIVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialised: not known. */
typedef struct gpuhal_driver_files {
    size_t begin, end; /* in the list of all libraries, in the order of their arrival */
    bool begun;
    bool shared; /* the vendor's library was there before the plugin was started */
    char *lines; /* one for each file: its identity and its path; NULL: not known */
} gpuhal_driver_files;

/* Called before the plugin is loaded. A second try continues from the first one's beginning. */
void gpuhal_driver_files_begin(gpuhal_driver_files *files);
/* Called after the plugin has listed its devices. `library`: the path of the vendor's library; NULL: the plugin opened
 * none. */
void gpuhal_driver_files_end(gpuhal_driver_files *files, const char *library);
/* Returns the lines, with the libraries that came since. malloc'ed; NULL if not known, or without memory. */
char *gpuhal_driver_files_now(const gpuhal_driver_files *files);
/* Returns whether the files of these lines are still the same. */
bool gpuhal_driver_files_are_current(const char *lines);

#endif
