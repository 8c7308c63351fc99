/* node/sampler.c: creates and destroys samplers, and runs their worker; see sampler.h. */
#include "node/sampler.h"

#include "device/for_node.h"
#include "node/registry_view.h"

#include <stdlib.h>
#include <string.h>

#define SECOND_NS       UINT64_C(1000000000)
#define PERIOD_MIN_NS   UINT64_C(10000000)
#define PERIOD_MAX_NS   (UINT64_C(86400) * SECOND_NS)
#define PATIENCE_MIN_NS UINT64_C(100000000) /* minimum and maximum time that a source may take */
#define PATIENCE_MAX_NS (UINT64_C(5) * SECOND_NS)
#define HISTORY         300u
#define HISTORY_MAX     100000u
#define KEYS_MAX        256u
#define FIRST_VALUE     ((gpuhal_key)GPUHAL_VALUE_MEMORY_FREE_BYTES)
#define FIRST_LINK      ((gpuhal_key)GPUHAL_LINK_KIND)

static gpuhal_samplers *samplers_of(const gpuhal *gpu)
{
    return gpuhal_attached(gpu, GPUHAL_ATTACHED_NODE);
}

static void *create_list(void)
{
    gpuhal_samplers *samplers = calloc(1, sizeof *samplers);
    if (samplers) {
        gpuhal_mutex_init(&samplers->mutex);
    }
    return samplers;
}

static void destroy_list(void *state)
{
    gpuhal_samplers *samplers = state;
    if (samplers) {
        gpuhal_mutex_finish(&samplers->mutex);
        free(samplers);
    }
}

static void stop(gpuhal_sampler *sampler)
{
    gpuhal_mutex_lock(&sampler->mutex);
    sampler->stop = true;
    gpuhal_condition_signal_all(&sampler->condition);
    gpuhal_mutex_unlock(&sampler->mutex);
}

/* Stops all samplers, so that none begins another sample. gpuhal_close() waits for the workers later. */
static void end_all(gpuhal *gpu)
{
    gpuhal_samplers *samplers = samplers_of(gpu);
    gpuhal_mutex_lock(&samplers->mutex);
    for (gpuhal_sampler *sampler = samplers->first; sampler; sampler = sampler->next) {
        stop(sampler);
    }
    gpuhal_mutex_unlock(&samplers->mutex);
}

const gpuhal_attachment gpuhal_node_attachment = {
    .create = create_list, .end = end_all, .destroy = destroy_list, .view = gpuhal_node_view};

/* ---- memory */

static bool make_device(gpuhal_sampler *sampler, uint32_t d, gpuhal_device *device)
{
    gpuhal_sampled *own = &sampler->devices[d];
    const size_t places = (size_t)sampler->history * sampler->key_count;
    own->device = device;
    own->values = calloc(sampler->key_count, sizeof *own->values);
    own->ring = calloc(places, sizeof *own->ring);
    own->missing = calloc(places, sizeof *own->missing);
    sampler->samples[d] = (gpuhal_sample){.size = sizeof *sampler->samples,
                                          .flags = sampler->flags,
                                          .device = device,
                                          .values = sampler->sampled_values + (size_t)d * sampler->key_count,
                                          .count = sampler->key_count};
    for (uint32_t k = 0; own->values && k < sampler->key_count; k++) {
        own->values[k].key = sampler->samples[d].values[k].key = sampler->keys[k];
    }
    return own->values && own->ring && own->missing;
}

/* Creates a sampler and moves the caller's reference to the gpuhal object into it. Returns NULL if memory is short; the
 * caller then keeps the reference. */
static gpuhal_sampler *make(gpuhal *gpu, const gpuhal_sampler_desc *desc)
{
    gpuhal_sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) {
        return NULL;
    }
    gpuhal_mutex_init(&sampler->mutex);
    gpuhal_condition_init(&sampler->condition);
    atomic_init(&sampler->references, 1);
    sampler->descriptor = -1;
    sampler->gpu = gpu;
    sampler->flags = desc->flags;
    sampler->period_ns = desc->period_ns;
    sampler->history = desc->history;
    sampler->device_count = desc->device_count;
    sampler->key_count = desc->key_count;
    sampler->keys = calloc(desc->key_count, sizeof *sampler->keys);
    sampler->devices = calloc(desc->device_count, sizeof *sampler->devices);
    sampler->samples = calloc(desc->device_count, sizeof *sampler->samples);
    sampler->sampled_values = calloc((size_t)desc->device_count * desc->key_count, sizeof *sampler->sampled_values);
    sampler->times = calloc(desc->history, sizeof *sampler->times);
    bool made = sampler->keys && sampler->devices && sampler->samples && sampler->sampled_values && sampler->times;
    if (made) {
        memcpy(sampler->keys, desc->keys, desc->key_count * sizeof *desc->keys);
    }
    for (uint32_t d = 0; d < desc->device_count && made; d++) {
        made = make_device(sampler, d, desc->devices[d]);
    }
    if (!made) {
        gpuhal_sampler_free(sampler);
        return NULL;
    }
    return sampler;
}

/* ---- the worker */

static void add_sample(gpuhal_sampler *sampler)
{
    uint64_t newest_ns = 0;
    sampler->newest = sampler->count > 0 ? (sampler->newest + 1) % sampler->history : 0;
    sampler->count += sampler->count < sampler->history;
    for (uint32_t d = 0; d < sampler->device_count; d++) {
        gpuhal_sampled *own = &sampler->devices[d];
        const gpuhal_sample *sample = &sampler->samples[d];
        const size_t row = (size_t)sampler->newest * sampler->key_count;
        own->status = sample->status;
        newest_ns = sample->time_ns > newest_ns ? sample->time_ns : newest_ns;
        for (uint32_t k = 0; k < sampler->key_count; k++) {
            gpuhal_value *value = &own->values[k];
            *value = sample->values[k];
            if (own->status) {
                *value = (gpuhal_value){.key = sampler->keys[k], .missing = GPUHAL_MISSING_FAILED};
            }
            own->ring[row + k] = value->missing ? 0 : value->u64;
            own->missing[row + k] = (unsigned char)value->missing;
        }
    }
    sampler->times[sampler->newest] = newest_ns > 0 ? newest_ns : gpuhal_os_monotonic_ns();
    gpuhal_sampler_compare(sampler);
    gpuhal_sampler_examine(sampler);
}

static void *run(void *user)
{
    gpuhal_sampler *sampler = user;
    gpuhal *gpu = sampler->gpu;
    const uint64_t patience_ns = sampler->period_ns < PATIENCE_MIN_NS   ? PATIENCE_MIN_NS
                                 : sampler->period_ns > PATIENCE_MAX_NS ? PATIENCE_MAX_NS
                                                                        : sampler->period_ns;
    uint64_t due_ns = gpuhal_os_monotonic_ns();
    gpuhal_os_thread_name("gpuhal-sample");
    gpuhal_worker_is_this(gpu);
    gpuhal_mutex_lock(&sampler->mutex);
    while (!sampler->stop) {
        if (gpuhal_os_monotonic_ns() < due_ns) {
            gpuhal_condition_wait_until(&sampler->condition, &sampler->mutex, due_ns);
            continue;
        }
        gpuhal_mutex_unlock(&sampler->mutex);
        const gpuhal_status status = gpuhal_sample_all(gpu, sampler->samples, sampler->device_count, patience_ns);
        gpuhal_mutex_lock(&sampler->mutex);
        if (!status) { /* skip this sample if memory is short */
            add_sample(sampler);
        }
        const uint64_t now_ns = gpuhal_os_monotonic_ns();
        due_ns = due_ns + sampler->period_ns > now_ns ? due_ns + sampler->period_ns : now_ns + sampler->period_ns;
    }
    sampler->runs = false;
    gpuhal_mutex_unlock(&sampler->mutex);
    gpuhal_sampler_release(sampler);
    gpuhal_worker_ends(gpu);
    return NULL;
}

static gpuhal_status start(gpuhal_sampler *sampler)
{
    atomic_fetch_add(&sampler->references, 1);
    sampler->runs = true;
    const int error = gpuhal_worker_start(sampler->gpu, run, sampler);
    if (error) {
        sampler->runs = false;
        atomic_fetch_sub(&sampler->references, 1);
        return gpuhal_error_no_thread(error);
    }
    return GPUHAL_OK;
}

/* ---- creation */

static gpuhal_status refuse(const char *why)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_sampler_create: %s", why);
}

static gpuhal_status check_numbers(const gpuhal_sampler_desc *desc)
{
    if (desc->flags & ~(uint32_t)GPUHAL_SAMPLE_WAKE) {
        return refuse("a flag is unknown");
    }
    if (desc->period_ns < PERIOD_MIN_NS || desc->period_ns > PERIOD_MAX_NS) {
        return refuse("the period is not between 10 ms and a day");
    }
    if (desc->history > HISTORY_MAX || desc->key_count > KEYS_MAX) {
        return refuse("more than 100000 samples, or more than 256 keys");
    }
    return (desc->device_count > 0 && !desc->devices) || (desc->key_count > 0 && !desc->keys)
               ? refuse("a list is NULL, and its count is not 0")
               : GPUHAL_OK;
}

static bool is_value(gpuhal_key key)
{
    return key >= GPUHAL_VENDOR_FIRST || (key >= FIRST_VALUE && key < FIRST_LINK && gpuhal_key_name(key));
}

static gpuhal_status check_lists(const gpuhal *gpu, const gpuhal_sampler_desc *desc)
{
    for (uint32_t d = 0; d < desc->device_count; d++) {
        if (!desc->devices[d]) {
            return refuse("a device is NULL");
        }
        if (desc->devices[d]->gpu != gpu) {
            return gpuhal_two_objects("gpuhal_sampler_create", "the gpuhal object and a device", gpu,
                                      desc->devices[d]->gpu);
        }
        for (uint32_t other = 0; other < d; other++) {
            if (desc->devices[other] == desc->devices[d]) {
                return refuse("a device stands in the list twice");
            }
        }
    }
    for (uint32_t k = 0; k < desc->key_count; k++) {
        if (!is_value(desc->keys[k])) {
            return refuse("a key is that of a fact or of a link, not of a value");
        }
    }
    return GPUHAL_OK;
}

/* If the caller's list is empty, chooses from the first `all` devices. `space` has room for all of these. */
static void choose_devices(gpuhal *gpu, gpuhal_sampler_desc *desc, gpuhal_device **space, uint32_t all)
{
    for (uint32_t d = 0; d < all && desc->device_count < UINT32_MAX; d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        uint32_t number = 0, preferred = 0;
        if (gpuhal_device_physical(device, &number, &preferred) == GPUHAL_OK && preferred) {
            space[desc->device_count++] = device;
        }
    }
    desc->devices = space;
}

/* Chooses keys if the caller's list is empty: all values except vendor values and PCIe traffic,
 * which takes up to a second to read. */
static void choose_keys(gpuhal_sampler_desc *desc, gpuhal_key usual[KEYS_MAX])
{
    for (gpuhal_key key = FIRST_VALUE; key < FIRST_LINK && desc->key_count < KEYS_MAX; key++) {
        if (gpuhal_key_name(key) && key != GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND &&
            key != GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND) {
            usual[desc->key_count++] = key;
        }
    }
    desc->keys = usual;
}

static gpuhal_status create(gpuhal *gpu, gpuhal_sampler_desc *desc, gpuhal_sampler **out_sampler)
{
    gpuhal_key usual[KEYS_MAX];
    gpuhal_device **all = NULL;
    gpuhal_status status = GPUHAL_OK;
    if (desc->key_count == 0) {
        choose_keys(desc, usual);
    }
    if (desc->device_count == 0) {
        const uint32_t count = gpuhal_device_count(gpu); /* the number grows as devices are added */
        all = calloc(count + 1u, sizeof *all);
        if (!all) {
            return gpuhal_error_host_memory();
        }
        choose_devices(gpu, desc, all, count);
    }
    status = desc->device_count > 0 ? check_lists(gpu, desc)
                                    : gpuhal_error_set(GPUHAL_ERROR_NO_DEVICE, "there is no device to sample");
    if (!status && !gpuhal_reference(gpu)) {
        status = refuse("the gpuhal object is closed");
    } else if (!status) {
        gpuhal_sampler *sampler = make(gpu, desc);
        status = sampler ? start(sampler) : gpuhal_error_host_memory();
        if (status) {
            if (sampler) {
                gpuhal_sampler_free(sampler);
            }
            gpuhal_unreference(gpu);
        } else {
            *out_sampler = sampler;
        }
    }
    free(all);
    return status;
}

gpuhal_status gpuhal_sampler_create(gpuhal *gpu, const gpuhal_sampler_desc *given, gpuhal_sampler **out_sampler)
{
    gpuhal_sampler_desc desc = {.size = sizeof desc};
    if (out_sampler) {
        *out_sampler = NULL;
    }
    if (!gpu || !out_sampler || (given && given->size == 0)) {
        return refuse("an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    if (given) {
        memcpy(&desc, given, given->size < sizeof desc ? given->size : sizeof desc);
    }
    desc.period_ns = desc.period_ns > 0 ? desc.period_ns : SECOND_NS;
    desc.history = desc.history > 0 ? desc.history : HISTORY;
    status = check_numbers(&desc);
    status = status ? status : create(gpu, &desc, out_sampler);
    if (!status) {
        gpuhal_samplers *samplers = samplers_of(gpu);
        gpuhal_mutex_lock(&samplers->mutex);
        (*out_sampler)->next = samplers->first;
        samplers->first = *out_sampler;
        gpuhal_mutex_unlock(&samplers->mutex);
    }
    return status;
}

void gpuhal_sampler_destroy(gpuhal_sampler *sampler)
{
    if (!sampler || gpuhal_is_inherited(sampler->gpu)) {
        return;
    }
    gpuhal_samplers *samplers = samplers_of(sampler->gpu);
    gpuhal_mutex_lock(&samplers->mutex);
    gpuhal_sampler **link = &samplers->first;
    while (*link && *link != sampler) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = sampler->next;
    }
    gpuhal_mutex_unlock(&samplers->mutex);
    gpuhal_mutex_lock(&sampler->mutex);
    sampler->stop = true;
    sampler->destroyed = true;
    gpuhal_condition_signal_all(&sampler->condition);
    gpuhal_sampler_await_callback_unlocks(sampler, 0);
    gpuhal_mutex_unlock(&sampler->mutex);
    gpuhal_sampler_release(sampler);
}
