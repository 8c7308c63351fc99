/* watch_load.c: loads the live view from a separate library, because loading ncurses would take a fifth of the
 * start time of every other run. */
#include "watch.h"

#include "screen.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

typedef gpuhal_probe_exit watch_function(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

/* Loads the library from the installed location or from the build tree, relative to the program's directory. */
static void *load(void)
{
    static const char *const folders[] = {GPUHAL_LIBRARY_FOLDER, "lib"};
    char program[PATH_MAX], path[PATH_MAX + 64];
    void *library = NULL;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    for (size_t i = 0; length > 0 && !library && i < 2; i++) {
        const char *slash = memrchr(program, '/', (size_t)length);
        snprintf(path, sizeof path, "%.*s/../%s/gpuhal/" GPUHAL_PROBE_WATCH_FILE, slash ? (int)(slash - program) : 0,
                 program, folders[i]);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

gpuhal_probe_exit gpuhal_probe_watch(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out)
{
    void *library = load();
    void *function = library ? dlsym(library, "gpuhal_watch_run") : NULL;
    if (!function) {
        const char *why = dlerror();
        gpuhal_probe_say("--watch: the live view is not here: %s (it is built with "
                         "ncurses, Debian: libncurses-dev); --watch --format jsonl "
                         "prints lines",
                         why ? why : "/proc is not mounted");
        return PROBE_INTERNAL;
    }
    watch_function *run;
    *(void **)&run = function;
    return run(options, machine, out);
}
