/* registry.c: see registry.h. */
#include "registry.h"

#include "baseline.h"
#include "forget.h"

#include "../common/standard_output.h"
#include "../common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gpuhal_probe_exit fail(gpuhal_status status)
{
    gpuhal_probe_say("%s", gpuhal_last_error()->sentence);
    return status == GPUHAL_ERROR_INVALID_ARGUMENT ? PROBE_USAGE
           : status == GPUHAL_ERROR_NOT_FOUND      ? PROBE_NOT_FOUND
                                                   : PROBE_INTERNAL;
}

/* Reads the record for an option that requires a record. Fails if no record is kept. */
static gpuhal_probe_exit read_kept(gpuhal_view **out_view)
{
    gpuhal_status status = gpuhal_view_read(NULL, out_view);
    if (status) {
        return fail(status);
    }
    if (!*gpuhal_probe_registry_info(*out_view).place) {
        gpuhal_probe_say("no record is kept: %s", gpuhal_probe_why_no_record());
        gpuhal_view_release(*out_view);
        *out_view = NULL;
        return PROBE_INTERNAL;
    }
    return PROBE_GO_ON;
}

static gpuhal_probe_exit judge(const gpuhal_view *view)
{
    if (*gpuhal_probe_registry_info(view).damage) {
        gpuhal_probe_say("%s: %s", gpuhal_probe_registry_info(view).place, gpuhal_probe_registry_info(view).damage);
        return PROBE_PARTIAL;
    }
    return PROBE_COMPLETE;
}

static gpuhal_probe_exit show(bool json, bool all, FILE *out)
{
    gpuhal_view *view = NULL;
    gpuhal_status status = gpuhal_view_read(NULL, &view);
    if (status) {
        return fail(status);
    }
    gpuhal_probe_screen screen;
    gpuhal_probe_screen_init(&screen, out);
    bool printed = true;
    if (json) {
        printed = gpuhal_probe_registry_json(view, out);
    } else {
        gpuhal_probe_registry_print(view, all, &screen);
    }
    gpuhal_tool_output_flush(out);
    gpuhal_probe_exit code = judge(view);
    if (!printed) {
        gpuhal_probe_say("out of memory");
        code = PROBE_INTERNAL;
    }
    gpuhal_view_release(view);
    return code;
}

static void append_count(char *to, size_t bytes, uint32_t count, const char *what)
{
    if (count) {
        gpuhal_tool_append(to, bytes, ", ", "%u %s%s", count, what, count == 1 ? "" : "s");
    }
}

/* Formats "2 plugin results, 3 physical devices, 7 interfaces, 2 links, 1 fault". */
static void format_counts(const gpuhal_view *view, char *to, size_t bytes)
{
    *to = 0;
    append_count(to, bytes, gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_PLUGIN), "plugin result");
    append_count(to, bytes, gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_PHYSICAL), "physical device");
    append_count(to, bytes, gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_INTERFACE), "interface");
    append_count(to, bytes, gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_LINK), "link");
    append_count(to, bytes, gpuhal_view_count(view, GPUHAL_RECORD_REGISTRY_FAULT), "fault");
    gpuhal_tool_append(to, bytes, "", "%s", *to ? "" : "nothing");
}

static void report(FILE *out, const char *what, const char *which)
{
    gpuhal_probe_screen screen;
    gpuhal_probe_screen_init(&screen, out);
    char text[2048];
    snprintf(text, sizeof text, "%s: %s", what, which);
    gpuhal_probe_screen_wrap(&screen, text, 0, 4);
}

static gpuhal_probe_exit forget(const gpuhal_probe_options *options, FILE *out)
{
    const char *name = options->forget;
    gpuhal_view *view = NULL;
    gpuhal_probe_exit code = read_kept(&view);
    if (code != PROBE_GO_ON) {
        return code;
    }
    if (gpuhal_probe_is_for_hardware(name)) {
        gpuhal_view_release(view);
        return gpuhal_probe_forget_hardware(options, name, out);
    }
    bool all = strcmp(name, "all") == 0;
    char counts[256];
    format_counts(view, counts, sizeof counts);
    if (all) {
        gpuhal_probe_baseline_remove(gpuhal_probe_registry_info(view).place);
    }
    gpuhal_view_release(view);
    gpuhal_status status = gpuhal_registry_forget(NULL, all ? NULL : name);
    if (status == GPUHAL_ERROR_NOT_FOUND) {
        gpuhal_probe_say("%s; gpuhal-probe --registry shows the record", gpuhal_last_error()->sentence);
        return PROBE_NOT_FOUND;
    }
    if (status) {
        return fail(status);
    }
    report(out, "forgotten", all ? counts : name);
    return PROBE_COMPLETE;
}

static bool copy_file(const char *path, FILE *out)
{
    char block[4096];
    size_t count = 0;
    FILE *from = fopen(path, "r");
    while (from && (count = fread(block, 1, sizeof block, from)) > 0) {
        fwrite(block, 1, count, out);
    }
    const bool good = from && !ferror(from);
    if (from) {
        fclose(from);
    }
    return good;
}

/* Exports to standard output. The library writes only new files, so the export uses a temporary directory. */
static gpuhal_probe_exit export_to_output(const gpuhal_view *view, FILE *out)
{
    const char *base = getenv("TMPDIR");
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "%s/gpuhal-export-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(folder)) {
        gpuhal_probe_say("%s cannot be made: %s", folder, strerror(errno));
        return PROBE_INTERNAL;
    }
    snprintf(path, sizeof path, "%s/registry", folder);
    gpuhal_status status = gpuhal_view_write(view, path);
    gpuhal_probe_exit code = status ? fail(status) : judge(view);
    if (!status && !copy_file(path, out)) {
        gpuhal_probe_say("%s cannot be read: %s", path, strerror(errno));
        code = PROBE_INTERNAL;
    }
    unlink(path);
    rmdir(folder);
    return code;
}

static gpuhal_probe_exit export_to(const char *path, FILE *out)
{
    gpuhal_view *view = NULL;
    gpuhal_probe_exit code = read_kept(&view);
    if (code != PROBE_GO_ON) {
        return code;
    }
    char text[1024], counts[256];
    if (strcmp(path, "-") == 0) {
        code = export_to_output(view, out);
        gpuhal_view_release(view);
        return code;
    }
    format_counts(view, counts, sizeof counts);
    gpuhal_status status = gpuhal_view_write(view, path);
    code = status ? fail(status) : judge(view);
    if (!status) {
        snprintf(text, sizeof text, "exported to %.700s", path);
        report(out, text, counts);
    }
    gpuhal_view_release(view);
    return code;
}

static gpuhal_probe_exit import_from(const char *path, FILE *out)
{
    gpuhal_view *view = NULL;
    gpuhal_status status = gpuhal_registry_import(NULL, path);
    gpuhal_probe_exit code = status ? fail(status) : read_kept(&view);
    if (code != PROBE_GO_ON) {
        return code;
    }
    char text[1024], counts[256];
    format_counts(view, counts, sizeof counts);
    snprintf(text, sizeof text, "imported from %.700s, replacing the previous record", path);
    report(out, text, counts);
    gpuhal_probe_baseline_remove(gpuhal_probe_registry_info(view).place); /* the numbers in the imported record differ
                                                                           * */
    gpuhal_view_release(view);
    return PROBE_COMPLETE;
}

gpuhal_probe_exit gpuhal_probe_registry_do(const gpuhal_probe_options *options, FILE *out)
{
    if (options->registry) {
        return show(options->format == PROBE_FORMAT_JSON, options->all, out);
    }
    if (options->diff) {
        return gpuhal_probe_diff(options, out);
    }
    if (options->forget) {
        return forget(options, out);
    }
    return options->export_to ? export_to(options->export_to, out) : import_from(options->import_from, out);
}
