/* loader/query.c: see query.h. */
#include "loader/query.h"

#include "base/call.h"
#include "base/job.h"
#include "loader/load_context.h"
#include "loader/loader.h"
#include "loader/processes.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS     1000000000u /* maximum deadline for a retry of the other values after a value that hung */
#define ABANDONED_MAX 8u          /* abandoned, unreturned calls of one plugin at which no further call is begun */
#define NO_KEY        0u

typedef enum { VALUES, LINK, PROCESSES } query_kind;

/* One call of sample() for each key, or one call of link() or processes(). The caller and the job's thread share this
 * structure.
 */
typedef struct query {
    gpuhal_job job;
    query_kind kind;
    const gpuhal_plugin *plugin; /* valid until the process exits, like the plugin's backend */
    gpuhal_plugin_instance *instance;
    uint32_t index, other;       /* `other` is only used for links */
    uint32_t flags;              /* passed to sample() or processes() */
    bool whole;                  /* the deadline is for all values together */
    uint32_t count;
    _Atomic uint32_t at;         /* index of the key being read */
    gpuhal_status status;
    gpuhal_mutex mutex; /* protects facts, processes and sink.closed */
    gpuhal_facts facts;
    gpuhal_process_list processes;
    gpuhal_sink sink;
    struct query *next;
    bool listed, returned;
    gpuhal_key keys[];
} query;

static gpuhal_mutex list_mutex = GPUHAL_MUTEX_INITIALIZER; /* protects the list, `listed` and `returned` */
static query *abandoned;

/* Returns false once the caller has abandoned this query, or the plugin has broken a rule. A caller that abandons a
 * query reads the other values with another query. */
static bool is_wanted(query *own)
{
    gpuhal_mutex_lock(&own->mutex);
    bool wanted = !own->sink.closed && !own->sink.problem[0];
    gpuhal_mutex_unlock(&own->mutex);
    return wanted;
}

/* A source applies to one call only. */
static void forget_source(query *own)
{
    gpuhal_mutex_lock(&own->mutex);
    own->sink.source[0] = 0;
    gpuhal_mutex_unlock(&own->mutex);
}

/* Returns whether the plugin already reported the value, together with another value. */
static bool is_there(query *own, gpuhal_key key)
{
    gpuhal_mutex_lock(&own->mutex);
    const bool there = gpuhal_facts_find(&own->facts, key) != NULL;
    gpuhal_mutex_unlock(&own->mutex);
    return there;
}

/* The watchdog does not watch these calls, because a hang must not mark a device as lost. */
static void run(gpuhal_job *job)
{
    query *own = (query *)job;
    if (own->kind != VALUES) {
        const gpuhal_host *host = gpuhal_host_table();
        const gpuhal_call call = gpuhal_call_blocking(own, 0);
        own->status = own->kind == LINK
                          ? own->plugin->link(host, own->instance, own->index, own->other, &own->sink)
                          : own->plugin->processes(host, own->instance, own->index, own->flags, &own->sink);
        gpuhal_call_end(call);
    }
    for (uint32_t i = 0; i < own->count && !own->status && is_wanted(own); i++) {
        atomic_store(&own->at, i);
        if (is_there(own, own->keys[i])) {
            continue;
        }
        if (!own->whole) {
            gpuhal_job_step(job);
        }
        gpuhal_load_forget_report();
        forget_source(own);
        const gpuhal_call call = gpuhal_call_blocking(own, 0);
        own->status = own->plugin->sample(gpuhal_host_table(), own->instance, own->index, &own->keys[i], 1, own->flags,
                                          &own->sink);
        gpuhal_call_end(call);
    }
}

static void leave_list(gpuhal_job *job)
{
    query *own = (query *)job;
    gpuhal_mutex_lock(&list_mutex);
    own->returned = true;
    for (query **at = &abandoned; own->listed && *at; at = &(*at)->next) {
        if (*at == own) {
            *at = own->next;
            break;
        }
    }
    gpuhal_mutex_unlock(&list_mutex);
}

/* The list holds no references. A query removes itself from the list before its thread releases it. */
static void enter_list(query *own)
{
    gpuhal_mutex_lock(&list_mutex);
    if (!own->returned) {
        own->listed = true;
        own->next = abandoned;
        abandoned = own;
    }
    gpuhal_mutex_unlock(&list_mutex);
}

static void destroy(gpuhal_job *job)
{
    query *own = (query *)job;
    gpuhal_facts_finish(&own->facts);
    gpuhal_process_list_finish(&own->processes);
    gpuhal_mutex_finish(&own->mutex);
    free(own);
}

static query *make(query_kind kind, const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                   uint32_t other, uint32_t room)
{
    query *own = calloc(1, sizeof *own + room * sizeof *own->keys);
    if (own) {
        gpuhal_job_init(&own->job, run, leave_list, destroy);
        own->kind = kind;
        own->plugin = plugin;
        own->instance = instance;
        own->index = index;
        own->other = other;
        gpuhal_mutex_init(&own->mutex);
        own->sink = (gpuhal_sink){.facts = &own->facts,
                                  .processes = kind == PROCESSES ? &own->processes : NULL,
                                  .mutex = &own->mutex};
    }
    return own;
}

/* Returns whether an abandoned call is still reading this value, or the plugin has too many abandoned calls. In a
 * forked child, calls of the parent's threads never return. */
static bool is_being_asked(query_kind kind, const gpuhal_plugin *plugin, uint32_t index, uint32_t other,
                           gpuhal_key key)
{
    uint32_t stuck = 0;
    bool same = false;
    gpuhal_mutex_lock(&list_mutex);
    for (const query *one = abandoned; one; one = one->next) {
        bool of_plugin = one->plugin == plugin;
        gpuhal_key at = one->kind == VALUES ? one->keys[atomic_load(&one->at)] : NO_KEY;
        stuck += of_plugin;
        same = same || (of_plugin && one->kind == kind && one->index == index && one->other == other && at == key);
    }
    gpuhal_mutex_unlock(&list_mutex);
    return same || stuck >= ABANDONED_MAX;
}

/* Copies the facts received so far, and closes the sink, because an abandoned call may still be running. */
static void take_facts(query *own, gpuhal_facts *to)
{
    gpuhal_mutex_lock(&own->mutex);
    own->sink.closed = true;
    for (size_t i = 0; i < own->facts.count; i++) {
        const gpuhal_fact *fact = &own->facts.list[i];
        if (fact->missing) {
            gpuhal_facts_set_missing(to, fact->key, fact->missing, fact->text);
        } else if (fact->text) {
            gpuhal_facts_set_text(to, fact->key, fact->text);
        } else {
            gpuhal_facts_set_u64(to, fact->key, fact->u64);
        }
        gpuhal_facts_set_source(to, fact->key, fact->source);
    }
    to->failed = to->failed || own->facts.failed;
    gpuhal_mutex_unlock(&own->mutex);
}

static gpuhal_job_state ask(query *own, uint64_t deadline_ns, gpuhal_status *out_status, gpuhal_facts *out_facts,
                            char *out_problem)
{
    gpuhal_job_state state = gpuhal_job_run(&own->job, deadline_ns);
    *out_status = state == GPUHAL_JOB_NO_THREAD ? GPUHAL_ERROR_HOST_MEMORY : GPUHAL_OK;
    out_facts->failed = out_facts->failed || state == GPUHAL_JOB_NO_THREAD;
    if (state == GPUHAL_JOB_DONE) {
        *out_status = own->status;
        memcpy(out_problem, own->sink.problem, GPUHAL_QUERY_PROBLEM_BYTES);
        if (own->status) {
            gpuhal_error_restore(&own->job.detail);
        }
    }
    if (state == GPUHAL_JOB_ABANDONED) {
        enter_list(own);
    }
    take_facts(own, out_facts);
    return state;
}

static void time_out(gpuhal_facts *facts, gpuhal_key key, const char *why)
{
    if (!gpuhal_facts_find(facts, key)) {
        gpuhal_facts_set_missing(facts, key, GPUHAL_MISSING_TIMED_OUT, why);
    }
}

/* If one value hangs, the other values are retried, because they may have another source. */
static gpuhal_job_state sample_rest(const gpuhal_query_request *request, uint64_t deadline_ns,
                                    gpuhal_status *out_status, gpuhal_facts *facts, char *out_problem)
{
    const gpuhal_key *keys = request->keys;
    query *own = make(VALUES, request->plugin, request->instance, request->index, 0, request->count);
    if (!own) {
        facts->failed = true;
        *out_status = gpuhal_error_host_memory();
        return GPUHAL_JOB_NO_THREAD;
    }
    own->flags = request->flags;
    own->whole = request->whole;
    for (uint32_t i = 0; i < request->count; i++) {
        if (gpuhal_facts_find(facts, keys[i])) {
            continue;
        }
        if (is_being_asked(VALUES, request->plugin, request->index, 0, keys[i])) {
            time_out(facts, keys[i], "an earlier call of the driver has not returned");
        } else {
            own->keys[own->count++] = keys[i];
        }
    }
    gpuhal_job_state state = own->count > 0 ? ask(own, deadline_ns, out_status, facts, out_problem) : GPUHAL_JOB_DONE;
    if (state == GPUHAL_JOB_ABANDONED) {
        time_out(facts, own->keys[atomic_load(&own->at)], "the driver's call timed out");
    }
    facts->failed = facts->failed || state == GPUHAL_JOB_NO_THREAD;
    gpuhal_job_release(&own->job);
    return state;
}

gpuhal_status gpuhal_query_sample(const gpuhal_query_request *request, gpuhal_facts *out_facts,
                                  char out_problem[GPUHAL_QUERY_PROBLEM_BYTES])
{
    gpuhal_status status = GPUHAL_OK;
    *out_facts = (gpuhal_facts){0};
    out_problem[0] = 0;
    gpuhal_job_state state = sample_rest(request, request->deadline_ns, &status, out_facts, out_problem);
    if (state == GPUHAL_JOB_ABANDONED) {
        uint64_t second_ns = request->whole ? request->deadline_ns / 2 : request->deadline_ns;
        second_ns = second_ns < SECOND_NS ? second_ns : SECOND_NS;
        state = sample_rest(request, second_ns, &status, out_facts, out_problem);
    }
    for (uint32_t i = 0; i < request->count && state == GPUHAL_JOB_ABANDONED; i++) {
        time_out(out_facts, request->keys[i], "not read: calls of the driver for other values have not returned");
    }
    return status;
}

gpuhal_status gpuhal_query_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                uint32_t to, uint64_t deadline_ns, gpuhal_facts *out_facts,
                                char out_problem[GPUHAL_QUERY_PROBLEM_BYTES])
{
    gpuhal_status status = GPUHAL_ERROR_TIMEOUT;
    *out_facts = (gpuhal_facts){0};
    out_problem[0] = 0;
    if (is_being_asked(LINK, plugin, from, to, NO_KEY)) {
        gpuhal_error_forget_report();
        return status;
    }
    query *own = make(LINK, plugin, instance, from, to, 0);
    if (!own) {
        out_facts->failed = true;
        return gpuhal_error_host_memory();
    }
    if (ask(own, deadline_ns, &status, out_facts, out_problem) == GPUHAL_JOB_ABANDONED) {
        gpuhal_error_forget_report();
        status = GPUHAL_ERROR_TIMEOUT;
    }
    gpuhal_job_release(&own->job);
    return status;
}

gpuhal_status gpuhal_query_processes(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                                     uint32_t flags, uint64_t deadline_ns, gpuhal_process_list *out_list,
                                     char out_problem[GPUHAL_QUERY_PROBLEM_BYTES])
{
    gpuhal_status status = GPUHAL_ERROR_TIMEOUT;
    *out_list = (gpuhal_process_list){0};
    out_problem[0] = 0;
    if (is_being_asked(PROCESSES, plugin, index, 0, NO_KEY)) {
        gpuhal_error_forget_report();
        return status;
    }
    query *own = make(PROCESSES, plugin, instance, index, 0, 0);
    if (!own) {
        out_list->failed = true;
        return gpuhal_error_host_memory();
    }
    own->flags = flags;
    gpuhal_facts none = {0};
    if (ask(own, deadline_ns, &status, &none, out_problem) == GPUHAL_JOB_ABANDONED) {
        gpuhal_error_forget_report();
        status = GPUHAL_ERROR_TIMEOUT;
    }
    gpuhal_mutex_lock(&own->mutex);
    *out_list = own->processes;
    own->processes = (gpuhal_process_list){0};
    gpuhal_mutex_unlock(&own->mutex);
    out_list->failed = out_list->failed || none.failed;
    gpuhal_process_list_merge(out_list);
    gpuhal_job_release(&own->job);
    return status;
}
