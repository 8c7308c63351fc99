/* cuda_memory.c: checks that opening the library, listing devices, reading facts and sampling use no memory of a CUDA
 * device. NVML reports the memory use before, during and after these calls. To show that the measurement works, the
 * program also allocates a buffer, which NVML must report. For comparison it measures the memory that the driver uses
 * without the library. Prints one line of JSON for each way to probe the plugin and each device:
 *
 *   {"check":"...","ok":true,"device":"cuda:0","tries":1,"before":1048576,"peak":1048576,"after":1048576,"detail":null}
 *
 * NVML counts the memory of all programs, so other programs may disturb an attempt. A check passes if one of several
 * attempts shows no growth. The program uses the same NVML library as the plugin: GPUHAL_NVML_LIBRARY or
 * libnvidia-ml.so.1. Exit codes: 0 all checks passed, 1 a check failed, 77 no CUDA device or no NVML. */
#include "cuda_api.h"
#include "json_text.h"
#include "nvml_api.h"

#include <gpuhal/gpuhal.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEVICES_MAX = 32, TRIES = 5, BUFFER = 64 << 20, BUFFER_SEEN = 32 << 20, SKIPPED = 77 };

typedef struct meter {
    char id[32];
    nvmlDevice_t handle;
    uint64_t before, peak, after;
} meter;

static struct {
    nvmlReturn_t (*init)(void);
    nvmlReturn_t (*by_pci)(const char *address, nvmlDevice_t *device);
    nvmlReturn_t (*memory)(nvmlDevice_t device, nvmlMemory_t *memory);
} nvml;

static meter meters[DEVICES_MAX];
static unsigned meter_count;
static atomic_bool watching;

static bool load_nvml(const char **out_why)
{
    const char *named = getenv("GPUHAL_NVML_LIBRARY");
    void *library = dlopen(named != NULL ? named : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        *out_why = dlerror();
        return false;
    }
    const struct {
        const char *name;
        void *slot;
    } functions[] = {{"nvmlInit_v2", &nvml.init},
                     {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.by_pci},
                     {"nvmlDeviceGetMemoryInfo", &nvml.memory}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL) {
            *out_why = functions[i].name;
            return false;
        }
        memcpy(functions[i].slot, &found, sizeof found);
    }
    *out_why = "NVML does not start";
    return nvml.init() == NVML_SUCCESS;
}

/* Returns the used memory, or 0 if NVML does not report it. The real value is never 0, because the driver reserves some
 * memory. */
static uint64_t used(const meter *m)
{
    nvmlMemory_t memory;
    return nvml.memory(m->handle, &memory) == NVML_SUCCESS ? memory.used : 0;
}

static gpuhal *open_library(uint32_t isolation)
{
    gpuhal *gpu = NULL;
    const gpuhal_config config = {.size = sizeof config, .backends = "cuda", .isolation = isolation};
    return gpuhal_open(&config, &gpu) == GPUHAL_OK ? gpu : NULL;
}

/* Makes a meter for each CUDA device with a PCI address. Before any measurement, opens and closes the library to list
 * the devices. */
static bool find_devices(const char **out_why)
{
    gpuhal *gpu = open_library(GPUHAL_ISOLATION_ALWAYS);
    if (gpu == NULL) {
        *out_why = gpuhal_last_error()->sentence;
        return false;
    }
    for (uint32_t i = 0; i < gpuhal_device_count(gpu) && meter_count < DEVICES_MAX; i++) {
        const gpuhal_device *device = gpuhal_device_at(gpu, i);
        const char *address;
        meter *m = &meters[meter_count];
        if (strcmp(gpuhal_device_backend(device), "cuda") == 0 &&
            gpuhal_device_text(device, GPUHAL_FACT_PCI_ADDRESS, &address) == GPUHAL_OK &&
            nvml.by_pci(address, &m->handle) == NVML_SUCCESS && used(m) != 0) {
            snprintf(m->id, sizeof m->id, "%s", gpuhal_device_id(device));
            meter_count++;
        }
    }
    gpuhal_close(gpu);
    *out_why = "there is no CUDA device whose memory NVML reports";
    return meter_count > 0;
}

/* ---- measuring */

static void *watch(void *argument)
{
    const struct timespec moment = {.tv_nsec = 500000};
    while (atomic_load(&watching)) {
        for (unsigned i = 0; i < meter_count; i++) {
            const uint64_t now = used(&meters[i]);
            meters[i].peak = now > meters[i].peak ? now : meters[i].peak;
        }
        nanosleep(&moment, NULL);
    }
    return argument;
}

static void look_at_everything(gpuhal *gpu)
{
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i);
        gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, {.key = GPUHAL_VALUE_POWER_MICROWATTS}};
        uint64_t total;
        (void)gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total);
        (void)gpuhal_device_sample(device, 0, values, sizeof values / sizeof *values, NULL);
    }
}

/* Measures once. Returns false if the library cannot be opened. The last measurement is made before the library is
 * closed, so it includes memory that the library still uses. */
static bool measure(uint32_t isolation)
{
    pthread_t watcher;
    for (unsigned i = 0; i < meter_count; i++) {
        meters[i].before = meters[i].peak = used(&meters[i]);
    }
    atomic_store(&watching, true);
    const bool watched = pthread_create(&watcher, NULL, watch, NULL) == 0;
    gpuhal *gpu = open_library(isolation);
    if (gpu != NULL) {
        look_at_everything(gpu);
    }
    for (unsigned i = 0; i < meter_count; i++) {
        meters[i].after = used(&meters[i]);
    }
    atomic_store(&watching, false);
    if (watched) {
        pthread_join(watcher, NULL);
    }
    gpuhal_close(gpu);
    return gpu != NULL && watched;
}

static void report(const char *check, const meter *m, unsigned tries, bool good, const char *detail)
{
    fputs("{\"check\":", stdout);
    print_json_text(check);
    printf(",\"ok\":%s,\"device\":", good ? "true" : "false");
    print_json_text(m->id);
    printf(",\"tries\":%u,\"before\":%" PRIu64 ",\"peak\":%" PRIu64 ",\"after\":%" PRIu64 ",\"detail\":", tries,
           m->before, m->peak, m->after);
    print_json_text(good ? NULL : detail);
    puts("}");
    fflush(stdout);
}

/* Each attempt measures all devices. A device passes with its first good attempt. */
static bool takes_nothing(const char *check, uint32_t isolation)
{
    bool done[DEVICES_MAX] = {false};
    unsigned left = meter_count;
    for (unsigned try = 1; try <= TRIES && left > 0; try++) {
        const char *why = measure(isolation) ? "the device's memory grew" : "the library or a thread could not be had";
        for (unsigned i = 0; i < meter_count; i++) {
            const bool good =
                meters[i].before != 0 && meters[i].peak <= meters[i].before && meters[i].after <= meters[i].before;
            if (!done[i] && (good || try == TRIES)) {
                report(check, &meters[i], try, good, why);
            }
            left -= !done[i] && good;
            done[i] = done[i] || good;
        }
    }
    return left == 0;
}

static bool sees_a_buffer(void)
{
    gpuhal *gpu = open_library(GPUHAL_ISOLATION_DEFAULT);
    bool all = gpu != NULL;
    for (unsigned i = 0; i < meter_count && gpu != NULL; i++) {
        meter *m = &meters[i];
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BUFFER};
        gpuhal_buffer *buffer = NULL;
        gpuhal_device *device = NULL;
        m->before = used(m);
        bool good = gpuhal_select(gpu, m->id, 0, &device, NULL) == GPUHAL_OK &&
                    gpuhal_buffer_create(device, &desc, &buffer) == GPUHAL_OK;
        m->peak = m->after = used(m);
        const char *why = good ? "NVML does not show the memory of a buffer" : gpuhal_last_error()->sentence;
        good = good && m->after >= m->before + BUFFER_SEEN;
        report("a buffer of 64 MiB is seen by the meter", m, 1, good, why);
        gpuhal_buffer_release(buffer);
        all = all && good;
    }
    gpuhal_close(gpu);
    return all;
}

/* Runs in a child: initializes the driver and counts the devices, reports to the parent whether both succeeded, and
 * waits until the parent closes the pipe. */
__attribute__((noreturn)) static void start_driver(int say, int hear)
{
    const char *named = getenv("GPUHAL_CUDA_LIBRARY");
    void *library = dlopen(named != NULL ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    CUresult (*init)(unsigned int flags) = NULL;
    CUresult (*count)(int *devices) = NULL;
    void *found[] = {library != NULL ? dlsym(library, "cuInit") : NULL,
                     library != NULL ? dlsym(library, "cuDeviceGetCount") : NULL};
    int devices = 0;
    memcpy(&init, &found[0], sizeof init);
    memcpy(&count, &found[1], sizeof count);
    char well = init != NULL && count != NULL && init(0) == CUDA_SUCCESS && count(&devices) == CUDA_SUCCESS;
    if (write(say, &well, 1) == 1 && read(hear, &well, 1) < 0) {
        _exit(1);
    }
    _exit(0);
}

/* No other process of this test uses the device during this measurement. */
static bool compare_with_driver(void)
{
    int from_child[2], to_child[2];
    char well = 0;
    if (pipe(from_child) != 0 || pipe(to_child) != 0) {
        return false;
    }
    for (unsigned i = 0; i < meter_count; i++) {
        meters[i].before = used(&meters[i]);
    }
    const pid_t child = fork();
    if (child == 0) {
        close(from_child[0]);
        close(to_child[1]);
        start_driver(from_child[1], to_child[0]);
    }
    close(from_child[1]);
    close(to_child[0]);
    const bool good = child > 0 && read(from_child[0], &well, 1) == 1 && well != 0;
    for (unsigned i = 0; i < meter_count; i++) {
        meters[i].peak = meters[i].after = used(&meters[i]);
        report("for comparison, the driver started without the library", &meters[i], 1, good,
               "cuInit does not work in a process of its own");
    }
    close(to_child[1]);
    close(from_child[0]);
    return (child < 0 || waitpid(child, NULL, 0) == child) && good;
}

int main(void)
{
    const char *why = NULL;
    if (!load_nvml(&why) || !find_devices(&why)) {
        fputs("{\"check\":\"memory of CUDA "
              "devices\",\"ok\":null,\"device\":null,\"tries\":0,\"before\":0,\"peak\":0,\"after\":0,\"detail\":",
              stdout);
        print_json_text(why);
        puts("}");
        return SKIPPED;
    }
    bool good = compare_with_driver();
    good = takes_nothing("listing devices by a helper process takes no device memory", GPUHAL_ISOLATION_ALWAYS) && good;
    good = takes_nothing("listing devices in this process takes no device memory", GPUHAL_ISOLATION_NEVER) && good;
    good = sees_a_buffer() && good;
    return good ? 0 : 1;
}
