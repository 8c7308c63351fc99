/* stream/processes.c: lists the processes that drivers report. Drivers report pids of the machine's first pid
 * namespace. Inside a container the same pid may belong to another process or to no process. */
#include "device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Compares with the first namespace's number, which is the same on every machine (PROC_PID_INIT_INO in the kernel). */
bool GPUHAL_OWN(is_first_namespace)(void)
{
    char path[GPUHAL_STREAM_PATH], target[32] = "";
    GPUHAL_OWN(path)(path, "/proc/self/ns/pid");
    return readlink(path, target, sizeof target - 1) > 0 && strcmp(target, "pid:[4026531836]") == 0;
}

void GPUHAL_OWN(give_process)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_plugin_process process)
{
    char path[GPUHAL_STREAM_PATH];
    GPUHAL_OWN(path)(path, "/proc/%u", (unsigned)process.pid);
    process.size = sizeof process;
    process.flags |= process.pid == 0 || access(path, F_OK) != 0 ? GPUHAL_PROCESS_FOREIGN_NAMESPACE : 0;
    host->process(host, sink, &process);
}

gpuhal_status GPUHAL_OWN(processes_failed)(const gpuhal_host *host, const gpuhal_stream_why *why, const char *call,
                                           int64_t code)
{
    gpuhal_status status = GPUHAL_ERROR_DRIVER;
    switch (why->reason) {
    case 0:
        return GPUHAL_OK;
    case GPUHAL_MISSING_NOT_SUPPORTED:
        status = GPUHAL_ERROR_NOT_SUPPORTED;
        break;
    case GPUHAL_MISSING_NO_PERMISSION:
        status = GPUHAL_ERROR_NO_PERMISSION;
        break;
    case GPUHAL_MISSING_ASLEEP:
        status = GPUHAL_NOT_READY;
        break;
    case GPUHAL_MISSING_TIMED_OUT:
        status = GPUHAL_ERROR_TIMEOUT;
        break;
    default:
        break;
    }
    return host->report(host, status, call, code, why->text);
}
