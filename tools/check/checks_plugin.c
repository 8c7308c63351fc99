/* checks_plugin.c: the file, its one symbol, the handshake, and start. */
#include "run.h"

#include "elf.h"
#include "process.h"

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
        gpuhal_fail("the file links %s; a plugin gets everything through its host table", name);
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
    pthread_barrier_t *together;
    gpuhal_status status;
} start_arguments;

static void *start_one(void *user)
{
    start_arguments *arguments = user;
    pthread_barrier_wait(arguments->together);
    arguments->status = arguments->plugin->start(&arguments->host);
    return NULL;
}

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
            gpuhal_fail("start answered %s to one of two copies of the core", gpuhal_status_text(arguments[i].status));
        }
        /* That copy of the core is gone. Who kept its host calls nothing at all from here on. */
        arguments[i].host = (gpuhal_host){0};
    }
    gpuhal_session_enumerate(trial);
    if (trial->listing.count == 0) {
        gpuhal_fail("after two copies of the core have started the plugin, it lists no device");
    }
}
