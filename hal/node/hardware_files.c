/* node/hardware_files.c: reads the kernel's small files below a survey's root. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES GPUHAL_HARDWARE_PATH_BYTES

/* Returns false if the path is too long, since a truncated path would name another file. */
static bool make_path(const gpuhal_hardware_survey *survey, char path[PATH_BYTES], const char *format,
                      va_list arguments)
{
    const size_t root = (size_t)snprintf(path, PATH_BYTES, "%s", survey->root);
    const int length = vsnprintf(path + root, PATH_BYTES - root, format, arguments);
    return length >= 0 && (size_t)length < PATH_BYTES - root;
}

/* If a file disappeared or this user may not read it, its value stays unknown. A lack of memory or descriptors is a
 * survey error. */
static void note(gpuhal_hardware_survey *survey, int error)
{
    survey->last = error;
    if (!survey->error && (error == ENOMEM || error == EMFILE || error == ENFILE)) {
        survey->error = error;
    }
}

void gpuhal_hardware_enter(gpuhal_hardware_survey *survey, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, survey->folder_path, format, arguments);
    va_end(arguments);
    gpuhal_hardware_leave(survey);
    survey->folder = good ? gpuhal_os_directory_open(survey->folder_path) : -1;
}

void gpuhal_hardware_leave(gpuhal_hardware_survey *survey)
{
    if (survey->folder >= 0) {
        gpuhal_os_descriptor_close(survey->folder);
    }
    survey->folder = -1;
}

/* Returns the path relative to the entered folder. If the path is not in the folder, returns the whole path and sets
 * *out_folder to -1. */
static const char *from_folder(const gpuhal_hardware_survey *survey, const char *path, intptr_t *out_folder)
{
    const size_t length = survey->folder < 0 ? 0 : strlen(survey->folder_path);
    const bool within = length > 0 && strncmp(path, survey->folder_path, length) == 0 && path[length] == '/';
    *out_folder = within ? survey->folder : -1;
    return within ? path + length + 1 : path;
}

static size_t read_bytes(gpuhal_hardware_survey *survey, const char *path, char *to, size_t bytes)
{
    size_t got = 0;
    intptr_t folder;
    const char *rest = from_folder(survey, path, &folder);
    const int error = gpuhal_os_kernel_file_read(folder, rest, to, bytes - 1, &got);
    note(survey, error);
    to[error ? 0 : got] = 0;
    return error ? 0 : got;
}

size_t gpuhal_hardware_bytes(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, path, format, arguments);
    va_end(arguments);
    to[0] = 0;
    return good ? read_bytes(survey, path, to, bytes) : 0;
}

bool gpuhal_hardware_line(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, path, format, arguments);
    va_end(arguments);
    to[0] = 0;
    if (good) {
        (void)read_bytes(survey, path, to, bytes);
    }
    to[strcspn(to, "\n")] = 0;
    gpuhal_records_clean(to);
    return to[0] != 0;
}

bool gpuhal_hardware_number(gpuhal_hardware_survey *survey, uint32_t *out_number, const char *format, ...)
{
    char path[PATH_BYTES], text[32] = "", *end = text;
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, path, format, arguments);
    va_end(arguments);
    if (good) {
        (void)read_bytes(survey, path, text, sizeof text);
    }
    text[strcspn(text, "\n")] = 0;
    const bool is_digit = text[0] >= '0' && text[0] <= '9';
    const unsigned long long value = is_digit ? strtoull(text, &end, text[1] == 'x' ? 16 : 10) : 0;
    const bool known = is_digit && !*end && value <= UINT32_MAX;
    *out_number = known ? (uint32_t)value : 0;
    return known;
}

bool gpuhal_hardware_target(gpuhal_hardware_survey *survey, char *to, size_t bytes, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, path, format, arguments);
    va_end(arguments);
    to[0] = 0;
    if (good) {
        intptr_t folder;
        const char *rest = from_folder(survey, path, &folder);
        note(survey, gpuhal_os_link_read(folder, rest, to, bytes));
    }
    gpuhal_records_clean(to);
    return to[0] != 0;
}

bool gpuhal_hardware_is_there(const gpuhal_hardware_survey *survey, const char *format, ...)
{
    char path[PATH_BYTES];
    gpuhal_file_state state;
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, path, format, arguments);
    va_end(arguments);
    return good && gpuhal_os_file_state(path, &state) == 0;
}

bool gpuhal_hardware_names(gpuhal_hardware_survey *survey, char ***out_names, size_t *out_count, const char *format,
                           ...)
{
    char path[PATH_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const bool good = make_path(survey, path, format, arguments);
    va_end(arguments);
    *out_names = NULL;
    *out_count = 0;
    const int error = good ? gpuhal_os_directory_names(path, out_names, out_count) : ENOENT;
    note(survey, error);
    return error == 0;
}

bool gpuhal_hardware_value(const char *text, const char *key, char *to, size_t bytes)
{
    const size_t length = strlen(key);
    to[0] = 0;
    for (const char *line = text; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, key, length) == 0 && line[length] && strchr(" \t:=", line[length])) {
            const char *value = line + length + strspn(line + length, " \t:=\"");
            snprintf(to, bytes, "%.*s", (int)strcspn(value, "\n"), value);
            break;
        }
    }
    gpuhal_records_clean(to);
    for (size_t end = strlen(to); end > 0 && to[end - 1] == ' '; end--) {
        to[end - 1] = 0;
    }
    return to[0] != 0;
}

void gpuhal_hardware_text(char *to, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to, bytes, format, arguments);
    va_end(arguments);
    gpuhal_records_clean(to);
}

void gpuhal_hardware_add_line(char *to, size_t bytes, const char *format, ...)
{
    char line[GPUHAL_HARDWARE_FIX_BYTES];
    const size_t used = strlen(to);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    gpuhal_records_clean(line);
    snprintf(to + used, bytes - used, "%s%s", used ? "\n" : "", line);
}

const char *gpuhal_hardware_leaf(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
