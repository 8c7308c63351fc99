/* tests/fakes/cuda/nvml_processes.c: the processes of the fake NVML. The first process of each device is this process,
 * with type compute and graphics. This process's memory use is from the fake CUDA, and is known only if the counters
 * are in a file. The other processes have the PIDs 1, 2, …, each uses 1 MiB more than the previous one, and the memory
 * use of every tenth process is unknown. The machine's value `processes` is the number of processes;
 * `process_entry_bytes` is for drivers that write larger entries. `process` statements replace all of these
 * processes. */
#include "nvml.h"

#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES(function)                                                                                            \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *processes)

static unsigned processes_of(const struct nvmlDevice_st *device)
{
    return (unsigned)fake_script_value(device->plan, "processes", 0);
}

static nvmlReturn_t list_stated(const char *function, const fake_plan *plan, bool draws, unsigned *count,
                                nvmlProcessInfo_t *processes)
{
    const nvmlReturn_t code = fake_nvml_enter(function);
    const unsigned room = *count;
    if (code) {
        return code;
    }
    *count = 0;
    for (unsigned i = 0; i < plan->process_count; i++) {
        if (plan->processes[i].draws == draws && (*count)++ < room) {
            processes[*count - 1] = (nvmlProcessInfo_t){.pid = plan->processes[i].pid,
                                                        .usedGpuMemory = plan->processes[i].bytes,
                                                        .gpuInstanceId = UINT32_MAX,
                                                        .computeInstanceId = UINT32_MAX};
        }
    }
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static void write_entry(const struct nvmlDevice_st *device, unsigned char *to, size_t bytes, unsigned number)
{
    nvmlProcessInfo_t entry = {.pid = number == 0 ? (unsigned)getpid() : number,
                               .usedGpuMemory = (unsigned long long)number << 20,
                               .gpuInstanceId = UINT32_MAX,
                               .computeInstanceId = UINT32_MAX};
    if (number == 0) {
        entry.usedGpuMemory =
            getenv(fake_vendor.report_variable) ? fake_report_get()->device_bytes[device->physical] : ~0ull;
    } else if (number % 10 == 0) {
        entry.usedGpuMemory = ~0ull;
    }
    memset(to, 0, bytes);
    memcpy(to, &entry, sizeof entry);
}

static nvmlReturn_t list(const char *function, nvmlDevice_t device, unsigned all, unsigned *count,
                         nvmlProcessInfo_t *processes)
{
    const size_t bytes = (size_t)fake_script_value(device->plan, "process_entry_bytes", sizeof(nvmlProcessInfo_t));
    nvmlReturn_t code = fake_nvml_enter(function);
    const unsigned room = *count;
    if (code) {
        return code;
    }
    *count = all;
    if (room < all) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < all; i++) {
        write_entry(device, (unsigned char *)processes + i * bytes, bytes, i);
    }
    return NVML_SUCCESS;
}

static nvmlReturn_t compute(const char *function, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    return device->plan->process_count ? list_stated(function, device->plan, false, count, processes)
                                       : list(function, device, processes_of(device), count, processes);
}

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3)
{
    return compute(__func__, device, count, processes);
}

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2)
{
    return compute(__func__, device, count, processes);
}

static nvmlReturn_t draw(const char *function, nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *processes)
{
    if (device->mig) {
        return NVML_ERROR_NOT_SUPPORTED;
    }
    return device->plan->process_count ? list_stated(function, device->plan, true, count, processes)
                                       : list(function, device, processes_of(device) > 0 ? 1 : 0, count, processes);
}

PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
{
    return draw(__func__, device, count, processes);
}

PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
{
    return draw(__func__, device, count, processes);
}

static nvmlReturn_t share(const char *function, nvmlDevice_t device)
{
    nvmlReturn_t code = fake_nvml_enter_whole(function, device);
    return code ? code : NVML_ERROR_NOT_SUPPORTED;
}

PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)
{
    (void)count, (void)processes;
    return share(__func__, device);
}

PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
{
    (void)count, (void)processes;
    return share(__func__, device);
}

/* Returns two samples of this process and one of process 1. The older sample of this process has 90 %, the sample of
 * process 1 more than 100 %. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long since_us)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    const unsigned all = processes_of(device) > 0 ? 3 : 0, room = samples ? *count : 0;
    if (code || all == 0) {
        return code ? code : NVML_ERROR_NOT_FOUND;
    }
    *count = all;
    if (room < all) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    const unsigned self = (unsigned)getpid();
    samples[0] = (nvmlProcessUtilizationSample_t){.pid = self, .timeStamp = since_us + 900000, .smUtil = 42};
    samples[1] = (nvmlProcessUtilizationSample_t){.pid = self, .timeStamp = since_us + 100000, .smUtil = 90};
    samples[2] = (nvmlProcessUtilizationSample_t){.pid = 1, .timeStamp = since_us + 500000, .smUtil = 4000000};
    return NVML_SUCCESS;
}
