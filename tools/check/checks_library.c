/* checks_library.c: the plugin in an application: its manifest, and each of its devices through the library. The
 * library lists devices in one process and opens them in another. */
#include "library.h"
#include "manifest.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

/* ---- the manifest */

static bool is_platform(const char *word, size_t length)
{
    static const char *const platforms[] = {"linux", "windows", "macos", "android"};
    bool known = false;
    for (size_t p = 0; p < sizeof platforms / sizeof *platforms; p++) {
        known = known || (strlen(platforms[p]) == length && memcmp(platforms[p], word, length) == 0);
    }
    return known;
}

static bool is_variable(const char *word, size_t length)
{
    bool good = !isdigit((unsigned char)word[0]);
    for (size_t c = 0; c < length; c++) {
        good = good && (isalnum((unsigned char)word[c]) || word[c] == '_');
    }
    return good;
}

static bool is_watched(const char *word, size_t length)
{
    return word[0] == '/' || (word[0] == '$' && length > 1);
}

static bool is_soname(const char *word, size_t length)
{
    return memchr(word, '/', length) == NULL && memmem(word, length, ".so", 3) != NULL;
}

static const struct {
    const char *key;
    bool (*good)(const char *word, size_t length);
    const char *like;
} lists[] = {
    {"platforms", is_platform, "linux, windows, macos or android"},
    {"environment", is_variable, "the name of a variable, without $"},
    {"vendor_libraries", is_soname, "the name of a library without folders, as libexample.so.1"},
    {"watch", is_watched, "an absolute path, or $VARIABLE with a path behind it"},
};

static void expect_words(const gpuhal_manifest_line *line, bool (*good)(const char *word, size_t length),
                         const char *like)
{
    for (const char *word = line->value; *(word += strspn(word, " \t")) != '\0'; word += strcspn(word, " \t")) {
        const size_t length = strcspn(word, " \t");
        if (!good(word, length)) {
            gpuhal_fail_by(
                30, "line %u of the manifest: '%.*s' in %s is not %s; the words of a list are separated by blanks",
                line->number, (int)length, word, line->key, like);
        }
    }
}

static void expect_line(const gpuhal_manifest_line *line)
{
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        if (strcmp(lists[l].key, line->key) == 0) {
            expect_words(line, lists[l].good, lists[l].like);
        }
    }
}

/* Returns whether the plugin lists devices, and all of them are the CPU itself, which is never added or removed.
 * Software drivers on the CPU do not count, because they can be installed later. */
static bool lists_processors_alone(const gpuhal_library *library)
{
    uint32_t devices = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(library->gpu); d++) {
        const gpuhal_device *device = gpuhal_device_at(library->gpu, d);
        uint64_t type = 0, software = 0;
        if (strcmp(gpuhal_device_backend(device), library->name) == 0) {
            devices++;
            (void)gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
            (void)gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
            if (type != GPUHAL_DEVICE_CPU || software != 0) {
                return false;
            }
        }
    }
    return devices > 0;
}

/* Without any of the three keys, the core could only cache an empty device list forever or not at all. */
static void expect_watch(const gpuhal_manifest *manifest)
{
    const char *watch = gpuhal_manifest_value(manifest, "watch");
    const char *environment = gpuhal_manifest_value(manifest, "environment"),
               *libraries = gpuhal_manifest_value(manifest, "vendor_libraries");
    if (watch == NULL && environment == NULL && libraries == NULL) {
        gpuhal_fail_by(29, "the manifest names nothing in watch, environment or vendor_libraries: a device or a driver "
                           "that comes later is "
                           "not noticed");
    }
    if (watch == NULL) {
        gpuhal_note(
            "the manifest has no watch: only graphics cards, variables and libraries are noticed when they come later");
    }
}

void gpuhal_check_manifest(gpuhal_context *context)
{
    gpuhal_manifest manifest;
    char problem[512];
    if (context->options->manifest == NULL) {
        gpuhal_skip("no manifest was given; gpuhal-check NAME.gpuhal checks it and the plugin that it names");
        return;
    }
    if (!gpuhal_manifest_read(context->options->manifest, &manifest, problem, sizeof problem)) {
        gpuhal_fail("%s", problem);
    }
    for (unsigned l = 0; l < manifest.count; l++) {
        expect_line(&manifest.lines[l]);
    }
    gpuhal_session_load(context);
    const char *name = gpuhal_manifest_value(&manifest, "name");
    if (name == NULL || strcmp(name, context->plugin->name) != 0) {
        gpuhal_fail("the manifest says name = %s, and the plugin calls itself %s", name != NULL ? name : "",
                    context->plugin->name);
    }
    gpuhal_library library;
    gpuhal_library_open(&library, context, context->plugin->name);
    const gpuhal_plugin_report report = gpuhal_library_report(&library, context);
    if (report.state == GPUHAL_PLUGIN_REJECTED || report.state == GPUHAL_PLUGIN_INCOMPATIBLE) {
        gpuhal_fail("the library refuses the manifest: %s", report.reason);
    }
    if (strstr(library.log, "plugin.gpuhal") != NULL) {
        gpuhal_fail("the library warns of the manifest: %s", library.log);
    }
    if (!lists_processors_alone(&library)) {
        expect_watch(&manifest);
    }
    gpuhal_library_close(&library);
    gpuhal_manifest_finish(&manifest);
}

/* ---- each device in an application */

static void expect_call(gpuhal_device *device, gpuhal_status status, const char *call)
{
    if (status != GPUHAL_OK) {
        gpuhal_fail_status(status, "%s on %s: %s", call, gpuhal_device_id(device), gpuhal_last_error()->sentence);
    }
}

static void check_device(gpuhal_device *device)
{
    gpuhal_step("gpuhal_device_open()");
    gpuhal_status status = gpuhal_device_open(device);
    if (status == GPUHAL_ERROR_NO_DEVICE) {
        gpuhal_fail("%s is listed in one process and not in another, or with another identity there: "
                    "gpuhal_device_open() says %s",
                    gpuhal_device_id(device), gpuhal_last_error()->sentence);
    }
    expect_call(device, status, "gpuhal_device_open()");
    gpuhal_step("gpuhal_device_verify()");
    status = gpuhal_device_verify(device);
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        gpuhal_fail_by(23, "gpuhal_device_verify() on %s: %s", gpuhal_device_id(device), gpuhal_last_error()->sentence);
    }
    expect_call(device, status, "gpuhal_device_verify()");
}

/* Returns the rule that a plugin breaks if the library does not use it. */
static unsigned rule_of(const gpuhal_plugin_report *report)
{
    const bool form = strstr(report->reason, "; the form is ") != NULL; /* for example the required form of an identity
                                                                         * */
    return report->stage == GPUHAL_STAGE_MANIFEST ? 30 : report->stage == GPUHAL_STAGE_FILE ? 4 : form ? 14 : 11;
}

/* Checks properties that no other check covers: a subprocess and the application find the same devices, and all parts
 * work together. */
void gpuhal_check_end_to_end(gpuhal_context *context)
{
    gpuhal_library library;
    uint32_t checked = 0;
    gpuhal_session_load(context); /* for the plugin's name; nothing is started */
    gpuhal_library_open(&library, context, context->plugin->name);
    const gpuhal_plugin_report report = gpuhal_library_report(&library, context);
    if (report.state == GPUHAL_PLUGIN_REJECTED && report.stage == GPUHAL_STAGE_FILE &&
        access(context->options->file, R_OK) != 0) {
        gpuhal_fail_file(context, GPUHAL_ERROR_NOT_FOUND, report.reason);
    }
    if (report.state != GPUHAL_PLUGIN_OK) {
        gpuhal_fail_by(rule_of(&report), "gpuhal_open() does not use the plugin (%s): %s",
                       gpuhal_plugin_state_name(report.state), report.reason);
    }
    if (report.isolated == 0) {
        gpuhal_note("gpuhal-helper was not found, so the devices were listed and opened in one process");
    }
    for (uint32_t d = 0; d < gpuhal_device_count(library.gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(library.gpu, d);
        const bool wanted = !context->options->one_device || gpuhal_device_index(device) == context->options->device;
        if (wanted && strcmp(gpuhal_device_backend(device), library.name) == 0) {
            check_device(device);
            checked++;
        }
    }
    if (checked == 0) {
        gpuhal_fail_by(15, "the library lists no device of the plugin, and the first check did");
    }
    gpuhal_library_close(&library);
}
