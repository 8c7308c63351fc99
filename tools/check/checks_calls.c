/* checks_calls.c: which host functions a plugin calls, and when; the effect of options. */
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The plugin call in progress, or NULL. The plugin may work on any thread, but these checks make one call at a time. */
static _Atomic(const char *) current;
static const char *plugin_name;
/* The value that option() returns; NULL if the option is not set. */
static const char *answer;
static unsigned options_asked;

static void enter(const char *call)
{
    current = call;
    gpuhal_step(call);
}

static bool is_in(const char *call)
{
    const char *now = current;
    return now != NULL && strcmp(now, call) == 0;
}

static const char *where(void)
{
    const char *now = current;
    return now != NULL ? now : "no call";
}

static gpuhal_status watched_option(const gpuhal_host *host, const char *key, char *out_value, uint32_t bytes)
{
    (void)host;
    const size_t length = strlen(plugin_name);
    if (key == NULL || out_value == NULL || bytes == 0) {
        gpuhal_fail_by(49, "option was called without a key, or without room for the value");
    }
    if (!is_in("start")) {
        gpuhal_fail_by(49, "option(\"%s\") was called in %s; the core has options inside start only", key, where());
    }
    if (strncmp(key, plugin_name, length) != 0 || key[length] != '.' || key[length + 1] == '\0') {
        gpuhal_fail_by(49, "option was called with the key \"%s\"; the options of this plugin begin with \"%s.\"", key,
                       plugin_name);
    }
    out_value[0] = '\0';
    options_asked++;
    if (answer == NULL || strcmp(key + length, ".system_root") == 0) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    const size_t room = strlen(answer) + 1;
    if (room > bytes) {
        return GPUHAL_ERROR_OUT_OF_RANGE;
    }
    memcpy(out_value, answer, room);
    return GPUHAL_OK;
}

static gpuhal_status watched_report(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code,
                                    const char *text)
{
    (void)host;
    if (is_in("query_extension")) {
        gpuhal_fail_by(42, "report was called in query_extension for an unknown name, which is no error");
    }
    const gpuhal_host *direct = gpuhal_direct_host();
    return direct->report(direct, status, call, code, text);
}

static void watched_changed(const gpuhal_host *host)
{
    (void)host;
    if (is_in("enumerate")) {
        gpuhal_fail_with("Call changed() when the driver reports a change, on the driver's thread.",
                         "changed was called inside enumerate: the core lists the devices again after it, for ever");
    }
}

/* ---- the listing, as a string */

typedef struct listed_text {
    char *text;
    size_t length;
    bool is_sample;
} listed_text;

static void add(gpuhal_sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(gpuhal_sink *sink, const char *format, ...)
{
    char line[512];
    va_list arguments;
    listed_text *to = (listed_text *)sink;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    const size_t bytes = length < 0 ? 0 : (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
    to->text = gpuhal_own(realloc(to->text, to->length + bytes + 1));
    memcpy(to->text + to->length, line, bytes);
    to->length += bytes;
    to->text[to->length] = '\0';
}

static void add_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    (void)host;
    if (!is_in("enumerate")) {
        gpuhal_fail_by(7, "device was called in %s; it begins a device while enumerating only", where());
    }
    add(sink, "device %" PRIu32 "\n", index);
}

static void add_u64(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    (void)host;
    add(sink, "%u %" PRIu64 "\n", (unsigned)key, value);
}

static void add_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value)
{
    (void)host;
    add(sink, "%u '%s'\n", (unsigned)key, value != NULL ? value : "");
}

static void add_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason,
                        const char *why)
{
    (void)host, (void)why;
    add(sink, "%u missing %u\n", (unsigned)key, (unsigned)reason);
}

static void take_source(const gpuhal_host *host, gpuhal_sink *sink, const char *name)
{
    (void)host, (void)sink, (void)name;
}

static void take_process(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_plugin_process *process)
{
    (void)host, (void)sink, (void)process;
    if (!is_in("processes")) {
        gpuhal_fail_by(43, "process was called in %s; it gives a process inside processes only", where());
    }
}

static gpuhal_host watching_host(const gpuhal_context *context)
{
    gpuhal_host host = *context->host;
    plugin_name = context->plugin->name;
    host.option = watched_option;
    host.report = watched_report;
    host.changed = watched_changed;
    host.device = add_device;
    host.u64 = add_u64;
    host.text = add_text;
    host.missing = add_missing;
    host.source = take_source;
    host.process = take_process;
    return host;
}

static listed_text list(const gpuhal_context *context, const gpuhal_host *host, gpuhal_plugin_instance *instance)
{
    listed_text listed = {NULL, 0, false};
    add((gpuhal_sink *)&listed, "%s", "");
    enter("enumerate");
    gpuhal_expect_reported(context->plugin->enumerate(host, instance, (gpuhal_sink *)&listed), "enumerate");
    current = NULL;
    return listed;
}

/* ---- the checks */

static void open_and_close(gpuhal_context *context)
{
    gpuhal_opened opened;
    gpuhal_memory memory = {.size = sizeof memory};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = 4096}, large = {.size = sizeof large,
                                                                               .bytes = UINT64_C(1) << 60};
    current = "describe or open";
    gpuhal_session_open(context, &opened);
    enter("the slot allocate");
    if (opened.slots.ops.allocate(opened.device, &alloc, &memory) == GPUHAL_OK) {
        enter("the slot release");
        opened.slots.ops.release(opened.device, &memory);
    }
    enter("the slot allocate");
    memory = (gpuhal_memory){.size = sizeof memory};
    (void)opened.slots.ops.allocate(opened.device, &large, &memory);
    enter("close");
    context->plugin->close(opened.device);
    current = NULL;
}

static void call_closed(const gpuhal_context *context)
{
    const gpuhal_plugin *plugin = context->plugin;
    listed_text values = {NULL, 0, true};
    if (PLUGIN_HAS(plugin, sample)) {
        enter("sample");
        (void)plugin->sample(context->host, context->instance, context->index, NULL, 0, 0, (gpuhal_sink *)&values);
    }
    if (PLUGIN_HAS(plugin, link)) {
        enter("link");
        (void)plugin->link(context->host, context->instance, context->index, UINT32_MAX, (gpuhal_sink *)&values);
    }
    if (PLUGIN_HAS(plugin, processes)) {
        enter("processes");
        (void)plugin->processes(context->host, context->instance, context->index, 0, (gpuhal_sink *)&values);
    }
    if (PLUGIN_HAS(plugin, query_extension)) {
        enter("query_extension");
        (void)plugin->query_extension(context->host, context->instance, "gpuhal-check.no_such_extension");
    }
    current = NULL;
    free(values.text);
}

/* If a plugin calls option() at the wrong time, the core reports no error. It may act as if the option were not set, so
 * the plugin's author does not notice the fault. */
void gpuhal_check_host_calls(gpuhal_context *context)
{
    gpuhal_session_load(context);
    const gpuhal_host host = watching_host(context);
    enter("start");
    gpuhal_expect_ok(context->plugin->start(&host, &context->instance), "start");
    current = NULL;
    free(list(context, &host, context->instance).text);
    gpuhal_session_enumerate(context); /* once more, for a device index */
    if (context->listing.count == 0) {
        gpuhal_skip("no device is listed");
        return;
    }
    context->index = context->listing.devices[0].index;
    context->host = &host;
    open_and_close(context);
    call_closed(context);
    free(list(context, &host, context->instance).text);
}

/* Two gpuhal objects in one process may have different options. The options of one object must not affect the device
 * list of the other object. */
void gpuhal_check_options_apart(gpuhal_context *context)
{
    static const char *const values[] = {"1", "2", "0", "none"};
    gpuhal_session_load(context);
    const gpuhal_host first = watching_host(context);
    enter("start");
    gpuhal_expect_ok(context->plugin->start(&first, &context->instance), "start");
    current = NULL;
    if (options_asked == 0) {
        gpuhal_skip("the plugin has no options");
        return;
    }
    const listed_text before = list(context, &first, context->instance);
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        gpuhal_host *other = gpuhal_own(malloc(sizeof *other)); /* valid until the process exits, like a core's table */
        gpuhal_plugin_instance *instance = NULL;
        *other = first;
        answer = values[v];
        enter("start");
        const gpuhal_status status = context->plugin->start(other, &instance); /* the plugin may refuse the value */
        current = NULL;
        answer = NULL;
        if (status == GPUHAL_OK) {
            listed_text ignored = {NULL, 0, false};
            enter("enumerate");
            (void)context->plugin->enumerate(other, instance, (gpuhal_sink *)&ignored);
            current = NULL;
            free(ignored.text);
        }
        const listed_text after = list(context, &first, context->instance);
        if (strcmp(before.text, after.text) != 0) {
            gpuhal_fail("enumerate lists other devices or facts for one copy of the core once another has set the "
                        "options to \"%s\"",
                        values[v]);
        }
        free(after.text);
    }
    free(before.text);
}
