/* tests/fakes/common/report.c: the counters. If the test has set the report variable, the counters are in a file, so
 * that tests can read them after the process has exited. */
#include "report.h"
#include "script.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static fake_report unread; /* used if no test requested a file */
static fake_report *report = &unread;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_report(void)
{
    const char *prefix = getenv(fake_vendor.report_variable);
    char path[512];
    unread.magic = FAKE_REPORT_MAGIC;
    if (!prefix) {
        return;
    }
    snprintf(path, sizeof path, "%s.%ld", prefix, (long)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof unread)) {
        dprintf(STDERR_FILENO, "fake %s: %s cannot be written\n", fake_vendor.name, path);
        _exit(99);
    }
    void *mapped = mmap(NULL, sizeof unread, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) {
        report = mapped;
        report->magic = FAKE_REPORT_MAGIC;
    }
}

fake_report *fake_report_get(void)
{
    pthread_once(&once, open_report);
    return report;
}

void fake_report_call(const char *function)
{
    fake_report *to = fake_report_get();
    /* The libraries of one vendor use separate parts of the table, because each library has its own lock. */
    const unsigned part = function[0] == 'a' ? 3 : function[0] == 'n' || function[0] == 'r' ? 2 : 0;
    for (unsigned i = part * FAKE_REPORT_FUNCTIONS / 4; i < FAKE_REPORT_FUNCTIONS; i++) {
        if (to->functions[i].name[0] == '\0') {
            snprintf(to->functions[i].name, sizeof to->functions[i].name, "%s", function);
        }
        if (strcmp(to->functions[i].name, function) == 0) {
            to->functions[i].calls++;
            return;
        }
    }
}

void fake_report_stop(const char *function)
{
    fake_report *in = fake_report_get();
    const char *stop = in->stop;
    if (!stop || strcmp(stop, function) != 0) {
        return;
    }
    in->stopped++;
    while (in->stop == stop) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    in->stopped--;
}

void fake_report_violation(const char *format, ...)
{
    fake_report *to = fake_report_get();
    char *sentence = to->sentences[to->violations % FAKE_REPORT_SENTENCES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof to->sentences[0], format, arguments);
    va_end(arguments);
    to->violations++;
    if (fake_script_get()->strict) {
        dprintf(STDERR_FILENO, "fake %s: %s\n", fake_vendor.name, sentence);
        abort();
    }
}
