/* child.c: measuring in a fresh process: the parent's side.
 *
 * A process that has opened the library once keeps its threads and objects, and its memory stays resident. Numbers
 * about opening and memory growth are therefore correct only in a process that does nothing else. */
#include "child.h"
#include "../common/subprocess.h"
#include "clock.h"
#include "failure.h"
#include "watch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child's deadline. The library abandons a hanging plugin earlier. */
static const uint64_t child_ns = UINT64_C(30000000000);

/* Reads only the first line and does not wait for the end, because processes that the child has started may keep the
 * pipe open. */
static bool read_number(const gpuhal_tool_child *child, double *out_number)
{
    char text[64] = "";
    char *rest;
    size_t length = 0;
    const uint64_t until_ns = gpuhal_tool_now_ns() + child_ns;
    while (length < sizeof text - 1 &&
           gpuhal_tool_hear(child, until_ns, &text[length], 1) == GPUHAL_TOOL_HEARD &&
           text[length] != '\n') {
        length++;
    }
    *out_number = strtod(text, &rest);
    return rest != text && *rest == '\n';
}

bool gpuhal_bench_child_run(const char *const *words, double *out_number)
{
    const char *arguments[GPUHAL_BENCH_CHILD_WORDS + 3] = {"gpuhal-bench", "--child"};
    gpuhal_tool_child child;
    int status = -1;
    for (size_t i = 0; i < GPUHAL_BENCH_CHILD_WORDS && words[i] != NULL; i++) {
        arguments[i + 2] = words[i];
    }
    if (!gpuhal_tool_spawn("/proc/self/exe", arguments, -1, &child)) {
        return gpuhal_bench_failed("the child process for \"%s\" did not start", words[0]);
    }
    const bool good = read_number(&child, out_number);
    gpuhal_tool_end(&child, good ? child_ns : 0, &status);
    gpuhal_bench_watch_alive();
    return (good && status == 0) || gpuhal_bench_failed("the child process for \"%s\" failed", words[0]);
}

bool gpuhal_bench_child_time(const char *file, const char *option, double *out_ns)
{
    const char *const arguments[] = {file, option, NULL};
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    gpuhal_tool_child child;
    int status = -1;
    const uint64_t start = gpuhal_bench_now_ns();
    if (nowhere >= 0 && gpuhal_tool_spawn(file, arguments, nowhere, &child)) {
        gpuhal_tool_end(&child, GPUHAL_TOOL_FOREVER, &status);
    }
    *out_ns = (double)(gpuhal_bench_now_ns() - start);
    gpuhal_bench_watch_alive();
    if (nowhere >= 0) {
        close(nowhere);
    }
    /* gpuhal-probe exits with 3 if there is no device, and with 4 if a GPU or a plugin failed, or the registry is
     * damaged. These are properties of the machine and not failures of the program. */
    const int code = status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return code == 0 || code == 3 || code == 4 || gpuhal_bench_failed("%s failed", file);
}
