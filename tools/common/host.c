/* host.c: see host.h. */
#include "host.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define HOST_TEXT_BYTES 256u
enum { OS_RELEASE_LINES_MOST = 256 };

FILE *gpuhal_tool_open_plain(const char *path)
{
    struct stat status;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const bool plain = descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = plain ? fdopen(descriptor, "r") : NULL;
    if (descriptor >= 0 && !file) {
        close(descriptor);
    }
    return file;
}

static FILE *open_file(const char *path)
{
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    char whole[4096];
    const int length = snprintf(whole, sizeof whole, "%s%s", root ? root : "", path);
    return length > 0 && (size_t)length < sizeof whole ? gpuhal_tool_open_plain(whole) : NULL;
}

/* Copies the first line of a file; leaves the buffer unchanged if the file cannot be read. */
static void read_line(const char *path, char *out_text, size_t size)
{
    char line[HOST_TEXT_BYTES];
    FILE *file = open_file(path);
    if (file && fgets(line, sizeof line, file)) {
        snprintf(out_text, size, "%.*s", (int)strcspn(line, "\n"), line);
    }
    if (file) {
        fclose(file);
    }
}

/* Copies the value of the first line `PRETTY_NAME=value`, without quotes. */
static bool read_name(const char *path, char out_name[HOST_TEXT_BYTES])
{
    char line[1024];
    bool found = false;
    FILE *file = open_file(path);
    for (int i = 0; file && !found && i < OS_RELEASE_LINES_MOST && fgets(line, sizeof line, file); i++) {
        found = sscanf(line, "PRETTY_NAME=%*[\"']%255[^\"'\n]", out_name) == 1 ||
                sscanf(line, "PRETTY_NAME=%255[^\"'\n]", out_name) == 1;
    }
    if (file) {
        fclose(file);
    }
    return found;
}

void gpuhal_tool_host_read(gpuhal_tool_host *out_host)
{
    *out_host = (gpuhal_tool_host){0};
    struct utsname system;
    if (uname(&system) == 0) {
        read_line("/proc/sys/kernel/osrelease", system.release, sizeof system.release);
        read_line("/proc/sys/kernel/hostname", system.nodename, sizeof system.nodename);
        snprintf(out_host->name, sizeof out_host->name, "%s", system.nodename);
        snprintf(out_host->kernel, sizeof out_host->kernel, "%s %s", system.sysname, system.release);
        snprintf(out_host->os, sizeof out_host->os, "%s", system.sysname);
        snprintf(out_host->architecture, sizeof out_host->architecture, "%s", system.machine);
    }
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    out_host->processors = processors > 0 ? (uint32_t)processors : 0;
    if (!read_name("/etc/os-release", out_host->os)) {
        read_name("/usr/lib/os-release", out_host->os);
    }
}

/* Finds the name of a user of the recorded machine. This machine does not have the same users. */
static bool find_recorded_user(uint32_t number, char *out_name, size_t bytes)
{
    char line[1024], name[HOST_TEXT_BYTES];
    uint32_t own;
    bool found = false;
    FILE *file = open_file("/etc/passwd");
    while (file && !found && fgets(line, sizeof line, file)) {
        found = sscanf(line, "%255[^:]:%*[^:]:%" SCNu32 ":", name, &own) == 2 && own == number;
    }
    if (file) {
        fclose(file);
    }
    if (found) {
        snprintf(out_name, bytes, "%s", name);
    }
    return found;
}

void gpuhal_tool_user_name(uint32_t number, char *out_name, size_t bytes)
{
    char space[2048];
    const bool recorded = getenv("GPUHAL_SYSTEM_ROOT") != NULL;
    struct passwd entry, *found = NULL;
    if (recorded && find_recorded_user(number, out_name, bytes)) {
        return;
    }
    if (!recorded && getpwuid_r(number, &entry, space, sizeof space, &found) == 0 && found) {
        snprintf(out_name, bytes, "%s", entry.pw_name);
    } else {
        snprintf(out_name, bytes, "%" PRIu32, number);
    }
}
