/* kernel_log.c: see kernel_log.h. A record is "4,1234,5678,-;NVRM: Xid (PCI:0000:c1:00): 79, pid=…" (Linux,
 * Documentation/ABI/testing/dev-kmsg; NVIDIA, "XID Errors"). Each read of /dev/kmsg returns one record, beginning with
 * the oldest. A descriptor that stays open continues with the next record. */
#include "kernel_log.h"

#include "machine.h"
#include "rows.h"

#include "../common/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MOST (16u << 20)
#define TIME_NS    UINT64_C(200000000)
enum {
    RECORD_BYTES = 8192, /* longest record of the kernel; reads with a smaller buffer fail */
    GPUS_MOST = 256      /* more than any machine has */
};

struct gpuhal_probe_kernel_log {
    int descriptor; /* -1 if it is not open */
    bool is_file;   /* the log is a file of a recorded machine */
    bool is_cut;    /* the last reading stopped before the end of the log */
    uint32_t count;
    struct {
        char address[20]; /* "0000:c1:00" */
        gpuhal_probe_logged logged;
    } gpus[GPUS_MOST];
};

/* Returns whether a program caused the error. Such errors are, in the order of the list, a kernel exception, a page
 * fault, work that was stopped, work that was ended after another error, a video decoder exception, and a context that
 * took too long. docs/telemetry.md has the source. */
static bool is_of_program(uint32_t number)
{
    static const uint32_t list[] = {13, 31, 43, 45, 68, 109};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (list[i] == number) {
            return true;
        }
    }
    return false;
}

static void add(gpuhal_probe_kernel_log *log, const char *address, size_t length, uint32_t number)
{
    uint32_t i = 0;
    if (length < strlen("0000:00:00") || length >= sizeof log->gpus[0].address) {
        return;
    }
    while (i < log->count && (strncmp(log->gpus[i].address, address, length) != 0 || log->gpus[i].address[length])) {
        i++;
    }
    if (i == log->count && log->count < GPUS_MOST) {
        snprintf(log->gpus[log->count++].address, sizeof log->gpus[i].address, "%.*s", (int)length, address);
    }
    if (i < log->count) {
        log->gpus[i].logged.count++;
        log->gpus[i].logged.last = number;
    }
}

/* Returns whether the kernel wrote the line. Programs can also write to the log; in their lines the number before the
 * first comma contains another facility. */
static bool is_of_kernel(const char *line)
{
    char *end;
    const unsigned long number = strtoul(line, &end, 10);
    return end > line && *end == ',' && number >> 3 == 0;
}

static void take_line(gpuhal_probe_kernel_log *log, const char *line)
{
    static const char mark[] = ";NVRM: Xid (";
    char *end;
    const char *at = strchr(line, ';');
    if (!at || !is_of_kernel(line) || strncmp(at, mark, strlen(mark)) != 0) {
        return;
    }
    at += strlen(mark);
    at += strncmp(at, "PCI:", 4) == 0 ? 4 : 0;
    const size_t length = strcspn(at, ")");
    if (strncmp(at + length, "): ", 3) != 0) {
        return;
    }
    const unsigned long number = strtoul(at + length + 3, &end, 10);
    if (end == at + length + 3 || number == 0 || number > UINT32_MAX || is_of_program((uint32_t)number)) {
        return;
    }
    add(log, at, length, (uint32_t)number);
}

/* Processes complete lines and moves the remaining text to the front of the buffer. Returns the length of the remaining
 * text. */
static size_t take_lines(gpuhal_probe_kernel_log *log, char *text, size_t length)
{
    char *line = text;
    text[length] = 0;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        take_line(log, line);
    }
    const size_t rest = length - (size_t)(line - text);
    if (!log->is_file || rest > RECORD_BYTES) {
        return 0; /* a line that is too long is not an Xid message */
    }
    memmove(text, line, rest);
    return rest;
}

/* Continues from the end of the last reading. */
static void read_log(gpuhal_probe_kernel_log *log)
{
    char text[2 * RECORD_BYTES + 1];
    size_t rest = 0, bytes = 0;
    const uint64_t until_ns = gpuhal_tool_now_ns() + TIME_NS;
    bool at_end = false;
    while (!at_end && bytes < BYTES_MOST && gpuhal_tool_now_ns() < until_ns) {
        const ssize_t got = read(log->descriptor, text + rest, RECORD_BYTES);
        if (got > 0) {
            bytes += (size_t)got;
            rest = take_lines(log, text, rest + (size_t)got);
        } else {
            /* EPIPE means that the kernel has overwritten the next record, and another read returns a later record.
             * EAGAIN means that there are no more records. */
            at_end = got == 0 || (errno != EPIPE && errno != EINTR);
        }
    }
    log->is_cut = !at_end;
    if (rest > 0) {
        (void)lseek(log->descriptor, -(off_t)rest, SEEK_CUR); /* back to the beginning of the line */
    }
}

static bool has_nvidia(const gpuhal_probe_machine *machine)
{
    bool found = false;
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        found = found || strcmp(machine->hardware[i].kernel_driver, "nvidia") == 0;
    }
    return found;
}

static void open_log(gpuhal_probe_kernel_log *log)
{
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    char path[4096];
    struct stat info;
    const int length = snprintf(path, sizeof path, "%s/dev/kmsg", root ? root : "");
    const bool fits = length > 0 && (size_t)length < sizeof path;
    log->descriptor = fits ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY) : -1;
    log->is_file = log->descriptor >= 0 && fstat(log->descriptor, &info) == 0 && S_ISREG(info.st_mode);
}

static gpuhal_probe_logged logged_of(const gpuhal_probe_kernel_log *log, const gpuhal_hardware_info *hardware)
{
    for (uint32_t i = 0; hardware && i < log->count; i++) {
        const size_t length = strlen(log->gpus[i].address); /* "0000:c1:00" matches any function of the device */
        if (strncmp(hardware->address, log->gpus[i].address, length) == 0 && hardware->address[length] == '.') {
            return log->gpus[i].logged;
        }
    }
    return (gpuhal_probe_logged){0};
}

bool gpuhal_probe_kernel_log_read(gpuhal_probe_machine *machine)
{
    if (!machine->kernel_log && has_nvidia(machine)) {
        machine->kernel_log = calloc(1, sizeof *machine->kernel_log);
        if (!machine->kernel_log) {
            return false;
        }
        machine->kernel_log->descriptor = -1;
    }
    gpuhal_probe_kernel_log *log = machine->kernel_log;
    if (log && log->descriptor < 0) {
        open_log(log);
    }
    if (log && log->descriptor >= 0) {
        read_log(log);
    }
    for (uint32_t i = 0; log && i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        entry->logged = logged_of(log, gpuhal_probe_hardware_of(machine, entry));
    }
    return true;
}

const char *gpuhal_probe_kernel_log_note(const gpuhal_probe_machine *machine)
{
    return machine->kernel_log && machine->kernel_log->is_cut
               ? "only a part of the kernel's log was read (200 ms or 16 MiB): it may have newer errors of GPUs"
               : NULL;
}

void gpuhal_probe_kernel_log_finish(gpuhal_probe_machine *machine)
{
    if (machine->kernel_log && machine->kernel_log->descriptor >= 0) {
        close(machine->kernel_log->descriptor);
    }
    free(machine->kernel_log);
    machine->kernel_log = NULL;
}
