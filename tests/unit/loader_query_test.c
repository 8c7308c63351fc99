/* loader/query.h: a plugin's values and processes are validated, and are returned in time, with their source. */
#include "loader/query.h"

#include "test.h"

#include <pthread.h>
#include <time.h>

#define DEADLINE_NS UINT64_C(20000000000)
#define SHORT_NS    UINT64_C(200000000)

static gpuhal_process_list list;
static char problem[GPUHAL_QUERY_PROBLEM_BYTES];

/* The plugin; each test sets its slots. */
static gpuhal_plugin plugin = {.size = sizeof(gpuhal_plugin), .abi = GPUHAL_ABI, .name = "test"};

static void give(const gpuhal_host *host, gpuhal_sink *sink, uint32_t pid, uint32_t flags, uint64_t bytes,
                 const char *name)
{
    const gpuhal_plugin_process one = {
        .size = sizeof one, .pid = pid, .flags = flags, .memory_bytes = bytes, .busy_permille = 250, .name = name};
    host->process(host, sink, &one);
}

static gpuhal_status sample(const gpuhal_key *keys, uint32_t count, gpuhal_facts *facts, char *out_problem)
{
    const gpuhal_query_request request = {.plugin = &plugin, .keys = keys, .count = count, .deadline_ns = DEADLINE_NS};
    return gpuhal_query_sample(&request, facts, out_problem);
}

static gpuhal_status read_processes(void)
{
    return gpuhal_query_processes(&plugin, NULL, 0, 0, DEADLINE_NS, &list, problem);
}

static const gpuhal_listed_process *find(uint32_t pid)
{
    for (size_t i = 0; i < list.count; i++) {
        if (list.list[i].pid == pid) {
            return &list.list[i];
        }
    }
    fail_msg("process %u is not in the list", pid);
    return NULL;
}

/* ---- values */

static gpuhal_status sample_three(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)flags;
    for (uint32_t i = 0; i < count; i++) {
        if (keys[i] == GPUHAL_VALUE_POWER_MICROWATTS) {
            host->source(host, sink, "hwmon");
        } else if (keys[i] == GPUHAL_VALUE_ENERGY_MICROJOULES) {
            host->source(host, sink, "a_source-with-16");
        }
        host->u64(host, sink, keys[i], 7);
    }
    return GPUHAL_OK;
}

TEST(a_source_counts_only_for_the_call_that_names_it)
{
    static const gpuhal_key keys[] = {GPUHAL_VALUE_POWER_MICROWATTS, GPUHAL_VALUE_FAN_PERMILLE};
    gpuhal_facts facts;
    plugin.sample = sample_three;
    assert_int_equal(sample(keys, 2, &facts, problem), GPUHAL_OK);
    assert_string_equal(problem, "");
    assert_string_equal(gpuhal_facts_find(&facts, keys[0])->source, "hwmon");
    assert_string_equal(gpuhal_facts_find(&facts, keys[1])->source, "");
    assert_int_equal(gpuhal_facts_u64(&facts, keys[0], 0), 7);
    gpuhal_facts_finish(&facts);
}

static uint32_t both_calls;

static gpuhal_status sample_both(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)keys, (void)count, (void)flags;
    both_calls++;
    host->u64(host, sink, GPUHAL_VALUE_MEMORY_FREE_BYTES, 3);
    host->u64(host, sink, GPUHAL_VALUE_MEMORY_USED_BYTES, 4);
    return GPUHAL_OK;
}

TEST(a_value_that_came_with_another_one_is_not_asked_for)
{
    static const gpuhal_key keys[] = {GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_VALUE_MEMORY_USED_BYTES};
    gpuhal_facts facts;
    plugin.sample = sample_both;
    assert_int_equal(sample(keys, 2, &facts, problem), GPUHAL_OK);
    assert_string_equal(problem, "");
    assert_int_equal(gpuhal_facts_u64(&facts, keys[0], 0), 3);
    assert_int_equal(gpuhal_facts_u64(&facts, keys[1], 0), 4);
    assert_int_equal(both_calls, 1);
    gpuhal_facts_finish(&facts);
}

TEST(a_source_with_another_form_is_a_broken_rule)
{
    static const gpuhal_key key = GPUHAL_VALUE_ENERGY_MICROJOULES;
    gpuhal_facts facts;
    plugin.sample = sample_three;
    assert_int_equal(sample(&key, 1, &facts, problem), GPUHAL_OK);
    assert_non_null(strstr(problem, "names a source with other than 1 to 15"));
    gpuhal_facts_finish(&facts);
}

/* ---- processes */

static gpuhal_status list_twice(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)flags;
    host->source(host, sink, "nvml");
    give(host, sink, 30, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_MEMORY_KNOWN, 4096, NULL);
    give(host, sink, 20, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_BUSY_KNOWN, 4096, "worker");
    give(host, sink, 30, GPUHAL_PROCESS_GRAPHICS, 0, "shell");
    give(host, sink, 0, GPUHAL_PROCESS_FOREIGN_NAMESPACE, 0, NULL);
    give(host, sink, 0, GPUHAL_PROCESS_FOREIGN_NAMESPACE, 0, NULL);
    return GPUHAL_OK;
}

TEST(a_process_that_is_given_twice_counts_once_with_both_flags)
{
    plugin.processes = list_twice;
    assert_int_equal(read_processes(), GPUHAL_OK);
    assert_string_equal(problem, "");
    assert_int_equal(list.count, 4);
    const gpuhal_listed_process *both = find(30);
    assert_int_equal(both->flags, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_GRAPHICS | GPUHAL_PROCESS_MEMORY_KNOWN);
    assert_int_equal(both->memory_bytes, 4096);
    assert_string_equal(both->name, "shell");
    assert_string_equal(both->source, "nvml");
    gpuhal_process_list_finish(&list);
}

TEST(unknown_values_of_a_process_are_not_passed_on)
{
    plugin.processes = list_twice;
    assert_int_equal(read_processes(), GPUHAL_OK);
    const gpuhal_listed_process *one = find(20);
    assert_int_equal(one->memory_bytes, 0);
    assert_int_equal(one->flags, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_BUSY_KNOWN);
    assert_int_equal(one->busy_permille, 250);
    assert_int_equal(find(0)->busy_permille, 0);
    gpuhal_process_list_finish(&list);
}

static gpuhal_status list_badly(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)flags;
    static const char endless[] = "0123456789012345678901234567890123456789012345678901234567890\xc3\xa4\xc3\xa4";
    give(host, sink, 40, 0, 0, "evil\x1b[2J");
    host->process(host, sink, &(const gpuhal_plugin_process){.size = 8, .pid = 41});
    host->process(host, sink, NULL);
    give(host, sink, 0, 0, 0, NULL);
    host->process(host, sink, &(const gpuhal_plugin_process){.size = sizeof(gpuhal_plugin_process),
                                                             .pid = 42,
                                                             .flags = GPUHAL_PROCESS_BUSY_KNOWN | 1u << 31,
                                                             .busy_permille = 1001});
    give(host, sink, 43, 0, 0, endless);
    return GPUHAL_OK;
}

TEST(only_the_bad_values_of_a_bad_process_are_left_out)
{
    plugin.processes = list_badly;
    assert_int_equal(read_processes(), GPUHAL_OK);
    assert_string_equal(problem, "the name of process 40 is not UTF-8, or has control characters");
    assert_int_equal(list.count, 3);
    assert_string_equal(find(40)->name, "");
    assert_int_equal(find(42)->flags, 0);
    assert_int_equal(find(42)->busy_permille, 0);
    assert_string_equal(find(43)->name, "0123456789012345678901234567890123456789012345678901234567890\xc3\xa4");
    gpuhal_process_list_finish(&list);
}

static gpuhal_status list_many(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)flags;
    for (uint32_t i = 0; i <= 2 * GPUHAL_PROCESS_LIST_MAX; i++) {
        give(host, sink, GPUHAL_PROCESS_LIST_MAX * 4 - i, 0, 0, NULL);
    }
    return host->report(host, GPUHAL_ERROR_NO_PERMISSION, "vendorProcesses", 4, "made to fail");
}

TEST(a_list_without_end_is_cut_and_the_status_kept)
{
    plugin.processes = list_many;
    assert_int_equal(read_processes(), GPUHAL_ERROR_NO_PERMISSION);
    assert_int_equal(list.count, GPUHAL_PROCESS_LIST_MAX);
    assert_non_null(strstr(problem, "more than 65536 processes"));
    assert_true(list.list[0].pid < list.list[1].pid);
    gpuhal_process_list_finish(&list);
}

static gpuhal_status sample_a_process(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)keys, (void)count, (void)flags;
    give(host, sink, 50, 0, 0, NULL);
    return GPUHAL_OK;
}

TEST(a_process_inside_sample_is_a_broken_rule)
{
    static const gpuhal_key key = GPUHAL_VALUE_FAN_PERMILLE;
    gpuhal_facts facts;
    plugin.sample = sample_a_process;
    assert_int_equal(sample(&key, 1, &facts, problem), GPUHAL_OK);
    assert_string_equal(problem, "it calls process() outside processes()");
    gpuhal_facts_finish(&facts);
}

/* ---- a call that hangs */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int calls, returned;

static gpuhal_status hang(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index, uint32_t flags,
                          gpuhal_sink *sink)
{
    (void)instance, (void)index, (void)flags;
    calls++;
    give(host, sink, 60, 0, 0, NULL);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    give(host, sink, 61, 0, 0, NULL);
    returned++;
    return GPUHAL_OK;
}

TEST(a_hung_call_keeps_its_results_and_is_not_repeated_until_it_returns)
{
    plugin.processes = hang;
    pthread_mutex_lock(&gate);
    assert_int_equal(gpuhal_query_processes(&plugin, NULL, 0, 0, SHORT_NS, &list, problem), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.list[0].pid, 60);
    gpuhal_process_list_finish(&list);
    assert_int_equal(gpuhal_query_processes(&plugin, NULL, 0, 0, SHORT_NS, &list, problem), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(list.count, 0);
    assert_int_equal(calls, 1);
    pthread_mutex_unlock(&gate);
    gpuhal_status status = GPUHAL_ERROR_TIMEOUT;
    for (int i = 0; i < 5000 && status == GPUHAL_ERROR_TIMEOUT; i++) {
        nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
        status = read_processes();
        if (status == GPUHAL_ERROR_TIMEOUT) {
            gpuhal_process_list_finish(&list);
        }
    }
    assert_int_equal(status, GPUHAL_OK);
    assert_int_equal(list.count, 2);
    gpuhal_process_list_finish(&list);
    assert_int_equal(returned, 2);
}

#include "test_main.h"
