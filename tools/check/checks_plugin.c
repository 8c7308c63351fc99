/* checks_plugin.c: the file, its one symbol, the handshake, and start. */
#include "run.h"

#include "elf.h"
#include "process.h"

#include <gpuhal/error.h>

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* Everything else needs to know which devices there are, so this check runs first and alone, and tells the parent. What it
 * refuses, the core refuses too. */
void gpuhal_check_file(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    gpuhal_session_start(trial);
    gpuhal_session_enumerate(trial);
    if (trial->listing.count == 0) {
        gpuhal_fail("the plugin was started and lists no device");
    }
    if (trial->listing.count > DEVICES_MAX) {
        gpuhal_fail("the plugin lists %zu devices; gpuhal-check takes %d", trial->listing.count, DEVICES_MAX);
    }
    for (size_t d = 0; d < trial->listing.count; d++) {
        gpuhal_child_device(trial->listing.devices[d].index);
    }
}

static void expect_export(void *user, const char *name)
{
    /* Names that linkers add on their own, depending on their age. */
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

/* A plugin that links the library would bring a second copy of the core into the process of an engine that has its own. */
static void expect_needed(void *user, const char *name)
{
    (void)user;
    if (strncmp(name, "libgpuhal", 9) == 0) {
        gpuhal_fail_by(2, "the file links %s; a plugin gets everything through its host table", name);
    }
}

/* The compiler's own start code has one of each. Libraries that are linked in statically may bring more, so this is no verdict.
 */
static void remark_constructors(void *user, unsigned constructors, unsigned destructors)
{
    (void)user;
    if (constructors > 1 || destructors > 1) {
        gpuhal_note("the file has %u constructors and %u destructors; a plugin should have none of its own",
                    constructors > 0 ? constructors - 1 : 0, destructors > 0 ? destructors - 1 : 0);
    }
}

/* Names of several plugins, drivers and engines meet in one process: whatever is exported besides the query can be bound to by
 * somebody else's call. */
void gpuhal_check_symbols(gpuhal_trial *trial)
{
    bool found = false;
    const gpuhal_elf_visitor visitor = {
        .user = &found, .exported = expect_export, .needed = expect_needed, .constructors = remark_constructors};
    if (!gpuhal_elf_visit(trial->options->file, &visitor)) {
        gpuhal_fail("the dynamic section of the file cannot be read");
    }
    if (!found) {
        gpuhal_fail("gpuhal_plugin_query is not exported");
    }
}

/* The library has loaded the file already; this only finds the handle again. */
static gpuhal_plugin_query_fn *find_query(const gpuhal_trial *trial)
{
    gpuhal_plugin_query_fn *query = NULL;
    void *handle = dlopen(trial->options->file, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = handle != NULL ? dlsym(handle, "gpuhal_plugin_query") : NULL;
    if (symbol == NULL) {
        gpuhal_fail("gpuhal_plugin_query is not found in the loaded file");
    }
    memcpy(&query, &symbol, sizeof query);
    return query;
}

/* The core asks files whose device is never used. Threads and descriptors may only come with start(); the answer is kept by
 * every copy of the core, so it has to be one constant. */
void gpuhal_check_query(gpuhal_trial *trial)
{
    const gpuhal_holdings before = gpuhal_holdings_now();
    gpuhal_session_load(trial);
    gpuhal_plugin_query_fn *query = find_query(trial);
    gpuhal_step("the query");
    const gpuhal_plugin *again = query(GPUHAL_ABI, trial->host);
    if (again != trial->plugin) {
        gpuhal_fail("the query answered with another constant the second time");
    }
    const gpuhal_plugin copy = *again;
    const gpuhal_host second = *trial->host;
    if (query(GPUHAL_ABI, &second) != again || memcmp(again, &copy, sizeof copy) != 0) {
        gpuhal_fail("the query answered a second copy of the core with another constant");
    }
    const gpuhal_holdings now = gpuhal_holdings_settled(&before);
    if (now.threads > before.threads || now.descriptors > before.descriptors) {
        gpuhal_fail("loading and the query started %u threads and opened %u descriptors", now.threads - before.threads,
                    now.descriptors - before.descriptors);
    }
}

static gpuhal_status reported;

/* The host table of the next check has this in the place of the library's own function. */
static gpuhal_status take_report(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code, const char *text)
{
    (void)host, (void)call, (void)code, (void)text;
    reported = status;
    return status;
}

/* A plugin that accepts a core which it was not built for is called through slots that have moved. */
void gpuhal_check_other_abi(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    gpuhal_plugin_query_fn *query = find_query(trial);
    gpuhal_host later = *trial->host;
    later.abi = (GPUHAL_ABI_MAJOR + 1) << 16;
    later.report = take_report;
    reported = GPUHAL_OK;
    gpuhal_step("the query with another ABI");
    if (query(later.abi, &later) != NULL) {
        gpuhal_fail("the query accepted ABI %u.0 instead of answering NULL", GPUHAL_ABI_MAJOR + 1);
    }
    if (reported != GPUHAL_ERROR_INCOMPATIBLE) {
        gpuhal_fail("the query refused ABI %u.0 without reporting INCOMPATIBLE through the host", GPUHAL_ABI_MAJOR + 1);
    }
}

/* Members that the loader does not need, yet people and later versions do. */
void gpuhal_check_members(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    const gpuhal_plugin *plugin = trial->plugin;
    if (plugin->version == NULL || plugin->version[0] == '\0') {
        gpuhal_fail("the plugin has no version");
    }
    for (const char *at = plugin->version; *at != '\0'; at++) {
        if ((unsigned char)*at < 0x20 || at - plugin->version > 100) {
            gpuhal_fail("the version of the plugin is no short line of text");
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

/* The table of a copy of the core that is gone: in an engine that was unloaded there would be nothing at all. */
static _Noreturn void called_gone(void)
{
    gpuhal_fail("the plugin called a function of a host that it was given in start, by a copy of the core that is gone");
}

static void gone_log(const gpuhal_host *host, int32_t level, const char *text)
{
    (void)host, (void)level, (void)text;
    called_gone();
}

static gpuhal_status gone_report(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code, const char *text)
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

static void gone_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason, const char *why)
{
    (void)host, (void)sink, (void)key, (void)reason, (void)why;
    called_gone();
}

static const gpuhal_host gone = {.size = sizeof gone, .abi = GPUHAL_ABI, .log = gone_log, .report = gone_report, .device = gone_device,
                                 .u64 = gone_u64, .text = gone_text, .missing = gone_missing};

/* Two engines in one process, each with a copy of the core: nothing orders their calls of start(). */
void gpuhal_check_two_hosts(gpuhal_trial *trial)
{
    pthread_barrier_t together;
    pthread_t threads[2];
    gpuhal_session_load(trial);
    pthread_barrier_init(&together, NULL, 2);
    start_arguments arguments[2];
    gpuhal_step("start, called by two copies of the core");
    for (int i = 0; i < 2; i++) {
        arguments[i] = (start_arguments){.plugin = trial->plugin, .host = *trial->host, .together = &together};
        if (pthread_create(&threads[i], NULL, start_one, &arguments[i]) != 0) {
            gpuhal_fail("gpuhal-check cannot make a thread");
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2; i++) {
        if (arguments[i].status != GPUHAL_OK) {
            gpuhal_fail_by(8, "start answered %s to one of two copies of the core", gpuhal_status_text(arguments[i].status));
        }
        arguments[i].host = gone;
    }
    /* The copy of the core that goes on is neither the first nor the last one that came. */
    gpuhal_session_start(trial);
    gpuhal_host last = *trial->host;
    gpuhal_plugin_instance *instance = NULL;
    gpuhal_expect_ok(trial->plugin->start(&last, &instance), "start by a further copy of the core");
    last = gone;
    gpuhal_session_enumerate(trial);
    if (trial->listing.count == 0) {
        gpuhal_fail("after two copies of the core have started the plugin, it lists no device");
    }
}

/* ---- errors, and to which host they go */

typedef struct taken {
    unsigned count;
    bool of_other; /* with another host than the one whose function was called */
    gpuhal_status status;
    bool has_detail; /* a vendor's call or a text */
} taken;

/* One for each of two copies of the core. The tables differ in the function, so that it shows which one was called. */
static gpuhal_host hosts[2];
static taken reports[2];

static gpuhal_status take_into(int number, const gpuhal_host *host, gpuhal_status status, const char *call, const char *text)
{
    taken *into = &reports[number];
    into->count++;
    into->of_other = into->of_other || host != &hosts[number];
    into->status = status;
    into->has_detail = (call != NULL && call[0] != '\0') || (text != NULL && text[0] != '\0');
    return status;
}

static gpuhal_status report_to_first(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code, const char *text)
{
    (void)code;
    return take_into(0, host, status, call, text);
}

static gpuhal_status report_to_second(const gpuhal_host *host, gpuhal_status status, const char *call, int64_t code, const char *text)
{
    (void)code;
    return take_into(1, host, status, call, text);
}

/* More than any device has: refused, and said why. */
static gpuhal_status allocate_too_much(const gpuhal_opening *opening)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = UINT64_C(1) << 60};
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_step("the slot allocate with more than the device has");
    return opening->slots.ops.allocate(opening->device, &alloc, &memory);
}

static void open_with(gpuhal_trial *trial, const gpuhal_host *host, gpuhal_plugin_instance *instance,
                      gpuhal_opening *out_opening)
{
    gpuhal_trial own = *trial;
    own.host = host;
    own.instance = instance;
    gpuhal_session_open(&own, out_opening);
}

/* The first copy of the core opens, and leaves; the second one is still there, and gets its own reports. */
void gpuhal_check_hosts_apart(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    hosts[0] = hosts[1] = *trial->host;
    hosts[0].report = report_to_first;
    hosts[1].report = report_to_second;
    gpuhal_step("start, called by two copies of the core");
    gpuhal_plugin_instance *instances[2] = {NULL, NULL};
    gpuhal_expect_ok(trial->plugin->start(&hosts[0], &instances[0]), "start");
    gpuhal_expect_ok(trial->plugin->start(&hosts[1], &instances[1]), "start by a second copy of the core");
    if (instances[0] != NULL && instances[0] == instances[1]) {
        gpuhal_fail("start gave a second copy of the core the instance of the first one");
    }
    for (unsigned i = 0; i < 2; i++) {
        trial->instance = instances[i];
        gpuhal_device_snapshot_finish(&trial->listing);
        gpuhal_session_enumerate(trial);
    }
    gpuhal_opening of_first, of_second;
    open_with(trial, &hosts[0], instances[0], &of_first);
    open_with(trial, &hosts[1], instances[1], &of_second);
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
    trial->plugin->close(of_first.device);
    hosts[0] = gone;
    gpuhal_status again = allocate_too_much(&of_second);
    if (again != status) {
        gpuhal_fail("allocate returned %s for what was %s before the other opening was closed", gpuhal_status_text(again),
                    gpuhal_status_name(status));
    }
    trial->plugin->close(of_second.device);
}

/* Applications look for what other vendors, or later versions, offer: whatever is handed out is called. */
void gpuhal_check_extensions(gpuhal_trial *trial)
{
    static char long_name[4096];
    memset(long_name, 'x', sizeof long_name - 1);
    const char *const names[] = {"", ".", "gpuhal-check.no_such_extension", long_name};
    const gpuhal_plugin *plugin = trial->plugin;
    if (plugin->size < offsetof(gpuhal_plugin, query_extension) + sizeof plugin->query_extension ||
        plugin->query_extension == NULL) {
        gpuhal_skip("the plugin offers no extensions");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        gpuhal_step("query_extension with a name that there is not");
        const void *first = plugin->query_extension(trial->host, trial->instance, names[i]);
        if (plugin->query_extension(trial->host, trial->instance, names[i]) != first) {
            gpuhal_fail("query_extension answered the name \"%.40s\" with another address the second time", names[i]);
        }
        if (first != NULL) {
            gpuhal_fail("query_extension answered the name \"%.40s\", which no plugin has, with an address", names[i]);
        }
    }
}

/* Without a detail an application can only say "too large", and nobody learns what the driver said. */
void gpuhal_check_report(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    gpuhal_opening opening;
    hosts[0] = *trial->host;
    hosts[0].report = report_to_first;
    gpuhal_session_start(trial);
    gpuhal_session_enumerate(trial);
    open_with(trial, &hosts[0], trial->instance, &opening);
    reports[0] = (taken){0};
    gpuhal_status status = allocate_too_much(&opening);
    if (status < 0 && reports[0].count == 0) {
        gpuhal_fail("allocate returned %s without host->report(): a user learns neither the vendor's call nor its code",
                    gpuhal_status_text(status));
    }
    if (status < 0 && !reports[0].has_detail) {
        gpuhal_fail("allocate reported %s with neither a vendor's call nor a text", gpuhal_status_text(reports[0].status));
    }
    if (status < 0 && reports[0].status != status) {
        gpuhal_fail("allocate reported one status, %d, and returned another, %s", reports[0].status, gpuhal_status_text(status));
    }
    gpuhal_step("close");
    trial->plugin->close(opening.device);
}
