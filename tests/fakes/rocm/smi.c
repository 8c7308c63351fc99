/* tests/fakes/rocm/smi.c: the common part of both telemetry libraries (smi.h). Each library contains its own copy. */
#include "smi.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* protects the fault counters, the report and the two variables below */
static unsigned references;
static bool was_ready;

unsigned smi_enter(const char *function, bool first, unsigned uninitialized)
{
    fake_report_stop(function);
    pthread_mutex_lock(&lock);
    fake_report_call(function);
    const fake_fault *fault = fake_script_fault(fake_script_get(), function);
    const bool ready = first || references > 0;
    if (!ready && !was_ready) { /* another caller may have shut the library down without this caller's knowledge */
        fake_report_violation("%s: before the initialisation", function);
    }
    pthread_mutex_unlock(&lock);
    while (fault && fault->kind == FAKE_HANG) {
        pause();
    }
    const uint64_t ns = fake_script_get()->sleep_ns;
    if (ns) {
        nanosleep(&(struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)}, NULL);
    }
    return fault ? (unsigned)fault->code : ready ? 0 : uninitialized;
}

void smi_begin(void)
{
    pthread_mutex_lock(&lock);
    references++;
    was_ready = true;
    fake_report_get()->smi_references++;
    pthread_mutex_unlock(&lock);
}

void smi_end(bool for_all)
{
    pthread_mutex_lock(&lock);
    references = for_all || references == 0 ? 0 : references - 1;
    pthread_mutex_unlock(&lock);
}

bool smi_is_ready(void)
{
    pthread_mutex_lock(&lock);
    const bool ready = references > 0;
    pthread_mutex_unlock(&lock);
    return ready;
}

unsigned smi_list(smi_device out[SMI_DEVICES])
{
    const fake_script *script = fake_script_get();
    unsigned order[FAKE_DEVICES] = {0}, count = 0;
    fake_script_pci_order(script, order);
    for (unsigned i = 0; i < script->device_count; i++) {
        const unsigned parts = script->devices[order[i]].partitions ? script->devices[order[i]].partitions : 1;
        for (unsigned p = 0; p < parts && count < SMI_DEVICES; p++) {
            out[count++] = (smi_device){order[i], p};
        }
    }
    return count;
}

static const fake_plan *plan_of(const smi_device *device)
{
    return &fake_script_get()->devices[device->physical];
}

uint64_t smi_address(const smi_device *device)
{
    const fake_plan *plan = plan_of(device);
    return (uint64_t)plan->pci_domain << 32 | (uint64_t)device->partition << 28 | plan->pci_bus << 8 |
           plan->pci_device << 3;
}

/* As in the kernel's files, the first partition reports the memory of the whole GPU. */
uint64_t smi_total(const smi_device *device)
{
    const fake_plan *plan = plan_of(device);
    return plan->memory / (device->partition ? plan->partitions : 1);
}

/* Returns the bytes that all processes use, including this process. On a partitioned device this process uses the first
 * partition. */
uint64_t smi_used(const smi_device *device)
{
    return plan_of(device)->used + (device->partition ? 0 : fake_report_get()->device_bytes[device->physical]);
}

bool smi_bandwidth(const smi_device *from, const smi_device *to, uint64_t *least, uint64_t *most)
{
    const fake_link *link = &fake_script_get()->links[from->physical][to->physical];
    *least = 50000;
    *most = 64000;
    return from->physical != to->physical && link->kind == FAKE_LINK_XGMI;
}

uint64_t smi_energy(uint64_t *nanoseconds)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *nanoseconds = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return *nanoseconds / 100000;
}
