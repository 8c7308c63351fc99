/* standard_output.c: see standard_output.h. */
#include "standard_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int flush_error; /* errno of the first failed flush */

static void ignore_signal(int number)
{
    (void)number;
}

FILE *gpuhal_tool_output_take(void)
{
    /* Sets a handler, because programs that the library starts would inherit SIG_IGN. */
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = ignore_signal, .sa_flags = SA_RESTART}, NULL);
    /* If descriptor 0 or 2 were closed, the next opened file would get its number. */
    for (int descriptor = 0; descriptor <= 2; descriptor += 2) {
        if (fcntl(descriptor, F_GETFD) < 0) {
            int null = open("/dev/null", O_RDWR);
            if (null >= 0 && null != descriptor) {
                dup2(null, descriptor);
                close(null);
            }
        }
    }
    int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    FILE *out = own >= 0 ? fdopen(own, "w") : NULL;
    /* Typical output fits into the buffer and is written only when it is closed. Closing reports a failure with its
     * reason. */
    static char buffer[256u << 10];
    const bool taken =
        out && setvbuf(out, buffer, _IOFBF, sizeof buffer) == 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
    return taken ? out : NULL;
}

void gpuhal_tool_output_flush(FILE *out)
{
    errno = 0;
    if (fflush(out) && !flush_error) {
        flush_error = errno;
    }
}

int gpuhal_tool_output_error(void)
{
    return flush_error;
}

bool gpuhal_tool_output_close(FILE **out)
{
    if (!*out) {
        return true;
    }
    errno = 0;
    bool failed = ferror(*out) != 0;
    failed = fclose(*out) != 0 || failed;
    errno = flush_error ? flush_error : errno;
    *out = NULL;
    return !failed;
}
