/* checks_plugin.c: the file, its only symbol, the handshake, and start. */
#include "run.h"

#include "image.h"
#include "resources.h"

#include <gpuhal/error.h>

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* All other checks need the list of devices. This check therefore runs first and alone, and reports the list to the
 * parent. The core does not use a plugin that this check refuses. */
void gpuhal_check_file(gpuhal_context *context)
{
    gpuhal_session_load(context);
    gpuhal_child_self(context->plugin);
    gpuhal_session_start(context);
    gpuhal_session_enumerate(context);
    if (context->listing.count == 0) {
        gpuhal_fail("the plugin was started and lists no device");
    }
    if (context->listing.count > DEVICES_MAX) {
        gpuhal_fail("the plugin lists %zu devices; gpuhal-check takes %d", context->listing.count, DEVICES_MAX);
    }
    for (size_t d = 0; d < context->listing.count; d++) {
        gpuhal_child_device(context->listing.devices[d].index);
    }
}

static void expect_export(void *user, const char *name)
{
    /* Symbols that the linker defines, depending on its version. */
    static const char *const of_linker[] = {"_init", "_fini", "_end", "_edata", "__bss_start", "end", "edata"};
    bool *found = user;
    for (size_t i = 0; i < sizeof of_linker / sizeof *of_linker; i++) {
        if (strcmp(name, of_linker[i]) == 0) {
            return;
        }
    }
    if (strcmp(name, "gpuhal_plugin_query") != 0) {
        gpuhal_fail("the symbol %s is exported besides gpuhal_plugin_query", name);
    }
    *found = true;
}

/* A plugin that links the library would load a second copy of the core into the process of an engine that already has a
 * copy. */
static void expect_needed(void *user, const char *name)
{
    (void)user;
    if (strncmp(name, "libgpuhal", 9) == 0) {
        gpuhal_fail_by(2, "the file links %s; a plugin gets everything through its host table", name);
    }
}

/* The compiler's startup code has one constructor and one destructor. Statically linked libraries may add more, so a
 * higher number is not a failure. */
static void note_constructors(void *user, unsigned constructors, unsigned destructors)
{
    (void)user;
    if (constructors > 1 || destructors > 1) {
        gpuhal_note("the file has %u constructors and %u destructors; a plugin should have none of its own",
                    constructors > 0 ? constructors - 1 : 0, destructors > 0 ? destructors - 1 : 0);
    }
}

/* Several plugins, drivers and engines share one process, so another library's call may bind to any symbol exported
 * besides the query. */
void gpuhal_check_symbols(gpuhal_context *context)
{
    bool found = false;
    gpuhal_session_load(context);
    const gpuhal_image_visitor visitor = {
        .user = &found, .exported = expect_export, .needed = expect_needed, .constructors = note_constructors};
    if (!gpuhal_image_visit(context->options->file, &visitor)) {
        gpuhal_fail("the dynamic section of the file cannot be read");
    }
    if (!found) {
        gpuhal_fail("gpuhal_plugin_query is not exported");
    }
}

/* The library has already loaded the file; dlopen() only returns its handle. */
static gpuhal_plugin_query_fn *find_query(const gpuhal_context *context)
{
    gpuhal_plugin_query_fn *query = NULL;
    void *handle = dlopen(context->options->file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = handle != NULL ? dlsym(handle, "gpuhal_plugin_query") : NULL;
    if (symbol == NULL) {
        gpuhal_fail("gpuhal_plugin_query is not found in the loaded file");
    }
    memcpy(&query, &symbol, sizeof query);
    return query;
}

/* The core also queries files whose devices are never used, so threads and descriptors must not be created before
 * start(). Every copy of the core keeps the returned pointer, so it must be one constant. */
void gpuhal_check_query(gpuhal_context *context)
{
    const gpuhal_resources before = gpuhal_resources_now();
    gpuhal_session_load(context);
    gpuhal_plugin_query_fn *query = find_query(context);
    gpuhal_step("the query");
    const gpuhal_plugin *again = query(GPUHAL_ABI, context->host);
    if (again != context->plugin) {
        gpuhal_fail("the query returned another constant the second time");
    }
    const gpuhal_plugin copy = *again;
    const gpuhal_host second = *context->host;
    if (query(GPUHAL_ABI, &second) != again || memcmp(again, &copy, sizeof copy) != 0) {
        gpuhal_fail("the query returned another constant to a second copy of the core");
    }
    const gpuhal_resources now = gpuhal_resources_settled(&before);
    if (now.threads > before.threads || now.descriptors > before.descriptors) {
        gpuhal_fail("loading and the query started %u threads and opened %u descriptors", now.threads - before.threads,
                    now.descriptors - before.descriptors);
    }
}

static gpuhal_status reported;

/* Replaces the library's own function in the next check's host table. */
static gpuhal_status take_report(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code,
                                 const char *text)
{
    (void)host, (void)call, (void)code, (void)text;
    reported = status;
    return status;
}

/* If a plugin accepts a core with another major ABI version, the core calls it through slots that have moved. */
void gpuhal_check_other_abi(gpuhal_context *context)
{
    gpuhal_session_load(context);
    gpuhal_plugin_query_fn *query = find_query(context);
    gpuhal_host later = *context->host;
    later.abi = (GPUHAL_ABI_MAJOR + 1) << 16;
    later.report = take_report;
    reported = GPUHAL_OK;
    gpuhal_step("the query with another ABI");
    if (query(later.abi, &later) != NULL) {
        gpuhal_fail("the query accepted ABI %u.0 instead of returning NULL", GPUHAL_ABI_MAJOR + 1);
    }
    if (reported != GPUHAL_ERROR_INCOMPATIBLE) {
        gpuhal_fail("the query refused ABI %u.0 without reporting INCOMPATIBLE through the host", GPUHAL_ABI_MAJOR + 1);
    }
}

/* The loader does not need these members, but users and later versions do. */
void gpuhal_check_members(gpuhal_context *context)
{
    gpuhal_session_load(context);
    const gpuhal_plugin *plugin = context->plugin;
    if (plugin->version == NULL || plugin->version[0] == '\0') {
        gpuhal_fail("the plugin has no version");
    }
    for (const char *at = plugin->version; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || at - plugin->version > 100) {
            gpuhal_fail("the version of the plugin is not a short line of text");
        }
    }
    if ((plugin->flags & ~(uint32_t)(GPUHAL_PLUGIN_FORK_SAFE | GPUHAL_PLUGIN_HONORS_TIMEOUTS)) != 0) {
        gpuhal_fail("the plugin sets flags that do not exist: 0x%x", plugin->flags);
    }
    if (plugin->reserved != 0) {
        gpuhal_fail("the reserved member of the plugin is not 0");
    }
}

typedef struct start_arguments {
    const gpuhal_plugin *plugin;
    gpuhal_host host;
    gpuhal_plugin_instance *instance;
    pthread_barrier_t *together;
    gpuhal_status status;
} start_arguments;

static void *start_one(void *user)
{
    start_arguments *arguments = user;
    pthread_barrier_wait(arguments->together);
    arguments->status = arguments->plugin->start(&arguments->host, &arguments->instance);
    return NULL;
}

/* The host table of a copy of the core that no longer exists. If the engine with this copy was unloaded, the table is
 * no longer mapped. */
static _Noreturn void called_gone(void)
{
    gpuhal_fail(
        "the plugin called a function of the host that start had received from a copy of the core that is gone");
}

static void gone_log(const gpuhal_host *host, int32_t level, const char *text)
{
    (void)host, (void)level, (void)text;
    called_gone();
}

static gpuhal_status gone_report(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code,
                                 const char *text)
{
    (void)host, (void)status, (void)call, (void)code, (void)text;
    called_gone();
}

static void gone_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    (void)host, (void)sink, (void)index;
    called_gone();
}

static void gone_u64(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    (void)host, (void)sink, (void)key, (void)value;
    called_gone();
}

static void gone_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value)
{
    (void)host, (void)sink, (void)key, (void)value;
    called_gone();
}

static void gone_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason,
                         const char *why)
{
    (void)host, (void)sink, (void)key, (void)reason, (void)why;
    called_gone();
}

static const gpuhal_host gone = {.size = sizeof gone,
                                 .abi = GPUHAL_ABI,
                                 .log = gone_log,
                                 .report = gone_report,
                                 .device = gone_device,
                                 .u64 = gone_u64,
                                 .text = gone_text,
                                 .missing = gone_missing};

/* Two engines in one process, each with a copy of the core, may call start() at the same time. */
void gpuhal_check_two_hosts(gpuhal_context *context)
{
    pthread_barrier_t together;
    pthread_t threads[2];
    gpuhal_session_load(context);
    pthread_barrier_init(&together, NULL, 2);
    start_arguments arguments[2];
    gpuhal_step("start, called by two copies of the core");
    for (int i = 0; i < 2; i++) {
        arguments[i] = (start_arguments){.plugin = context->plugin, .host = *context->host, .together = &together};
        if (pthread_create(&threads[i], NULL, start_one, &arguments[i]) != 0) {
            gpuhal_fail("gpuhal-check cannot make a thread");
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (arguments[i].status != GPUHAL_OK) {
            gpuhal_fail_by(8, "start returned %s to one of two copies of the core",
                           gpuhal_status_text(arguments[i].status));
        }
        arguments[i].host = gone;
    }
    /* The remaining copy of the core is neither the first nor the last. */
    gpuhal_session_start(context);
    gpuhal_host last = *context->host;
    gpuhal_plugin_instance *instance = NULL;
    gpuhal_expect_ok(context->plugin->start(&last, &instance), "start by a further copy of the core");
    last = gone;
    gpuhal_session_enumerate(context);
    if (context->listing.count == 0) {
        gpuhal_fail("after two copies of the core have started the plugin, it lists no device");
    }
}

/* ---- errors, and the hosts that receive them */

typedef struct taken {
    unsigned count;
    bool of_other; /* called with a host other than the function's own */
    gpuhal_status status;
    bool has_detail; /* a vendor's call or a message */
} taken;

/* The host tables of two copies of the core. Their functions differ, so that each function knows which host was
 * called. */
static gpuhal_host hosts[2];
static taken reports[2];

static gpuhal_status take_into(int number, const gpuhal_host *host, gpuhal_status status, const char *call,
                               const char *text)
{
    taken *into = &reports[number];
    into->count++;
    into->of_other = into->of_other || host != &hosts[number];
    into->status = status;
    into->has_detail = (call != NULL && call[0] != '\0') || (text != NULL && text[0] != '\0');
    return status;
}

static gpuhal_status report_to_first(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code,
                                     const char *text)
{
    (void)code;
    return take_into(0, host, status, call, text);
}

static gpuhal_status report_to_second(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code,
                                      const char *text)
{
    (void)code;
    return take_into(1, host, status, call, text);
}

/* Requests more memory than any device has. The plugin must refuse and report the reason. */
static gpuhal_status allocate_too_much(const gpuhal_opened *opened)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = UINT64_C(1) << 60};
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_step("the slot allocate with more than the device has");
    return opened->slots.ops.allocate(opened->device, &alloc, &memory);
}

static void open_with(gpuhal_context *context, const gpuhal_host *host, gpuhal_plugin_instance *instance,
                      gpuhal_opened *out_opened)
{
    gpuhal_context own = *context;
    own.host = host;
    own.instance = instance;
    gpuhal_session_open(&own, out_opened);
}

/* The first copy of the core opens the device and is then destroyed. The second copy still exists and must receive its
 * own reports. */
void gpuhal_check_hosts_apart(gpuhal_context *context)
{
    gpuhal_session_load(context);
    hosts[0] = hosts[1] = *context->host;
    hosts[0].report = report_to_first;
    hosts[1].report = report_to_second;
    gpuhal_step("start, called by two copies of the core");
    gpuhal_plugin_instance *instances[2] = {NULL, NULL};
    gpuhal_expect_ok(context->plugin->start(&hosts[0], &instances[0]), "start");
    gpuhal_expect_ok(context->plugin->start(&hosts[1], &instances[1]), "start by a second copy of the core");
    if (instances[0] != NULL && instances[0] == instances[1]) {
        gpuhal_fail("start gave a second copy of the core the instance of the first one");
    }
    for (unsigned i = 0; i < 2; i++) {
        context->instance = instances[i];
        gpuhal_device_snapshot_finish(&context->listing);
        gpuhal_session_enumerate(context);
    }
    gpuhal_opened of_first, of_second;
    open_with(context, &hosts[0], instances[0], &of_first);
    open_with(context, &hosts[1], instances[1], &of_second);
    reports[0] = reports[1] = (taken){0};
    gpuhal_status status = allocate_too_much(&of_second);
    if (reports[0].count > 0 || reports[1].of_other) {
        gpuhal_fail("an allocation on a device that the second copy of the core opened was reported to the first one");
    }
    const unsigned to_second = reports[1].count;
    (void)allocate_too_much(&of_first);
    if (reports[1].count > to_second || reports[0].of_other) {
        gpuhal_fail("an allocation on a device that the first copy of the core opened was reported to the second one");
    }
    gpuhal_step("close");
    context->plugin->close(of_first.device);
    hosts[0] = gone;
    gpuhal_status again = allocate_too_much(&of_second);
    if (again != status) {
        gpuhal_fail("allocate returned %s for a request that returned %s before the other opened device was closed",
                    gpuhal_status_text(again), gpuhal_status_name(status));
    }
    context->plugin->close(of_second.device);
}

/* Applications query extensions of other vendors or of later versions, and call any pointer that is returned. */
void gpuhal_check_extensions(gpuhal_context *context)
{
    static char long_name[4096];
    memset(long_name, 'x', sizeof long_name - 1);
    const char *const names[] = {"", ".", "gpuhal-check.no_such_extension", long_name};
    const gpuhal_plugin *plugin = context->plugin;
    if (!PLUGIN_HAS(plugin, query_extension)) {
        gpuhal_skip("the plugin offers no extensions");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gpuhal_step("query_extension with an unknown name");
        const void *first = plugin->query_extension(context->host, context->instance, names[i]);
        if (plugin->query_extension(context->host, context->instance, names[i]) != first) {
            gpuhal_fail("query_extension returned another address for the name \"%.40s\" the second time", names[i]);
        }
        if (first != NULL) {
            gpuhal_fail("query_extension returned an address for the name \"%.40s\", which no plugin has", names[i]);
        }
    }
}

/* Without the plugin's report an application can only say "too large", and the driver's reason is lost. */
void gpuhal_check_report(gpuhal_context *context)
{
    gpuhal_session_load(context);
    gpuhal_opened opened;
    hosts[0] = *context->host;
    hosts[0].report = report_to_first;
    gpuhal_session_start(context);
    gpuhal_session_enumerate(context);
    open_with(context, &hosts[0], context->instance, &opened);
    reports[0] = (taken){0};
    gpuhal_status status = allocate_too_much(&opened);
    if (status < 0 && reports[0].count == 0) {
        gpuhal_fail("allocate returned %s without host->report(): a user learns neither the vendor's call nor its code",
                    gpuhal_status_text(status));
    }
    if (status < 0 && !reports[0].has_detail) {
        gpuhal_fail("allocate reported %s with neither a vendor's call nor a text",
                    gpuhal_status_text(reports[0].status));
    }
    if (status < 0 && reports[0].status != status) {
        gpuhal_fail("allocate reported one status, %d, and returned another, %s", reports[0].status,
                    gpuhal_status_text(status));
    }
    gpuhal_step("close");
    context->plugin->close(opened.device);
}
