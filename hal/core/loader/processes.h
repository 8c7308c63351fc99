/* loader/processes.h: the processes that a plugin lists for one device, each checked on arrival. */
#ifndef GPUHAL_LOADER_PROCESSES_H
#define GPUHAL_LOADER_PROCESSES_H

#include "loader/loader.h"

#define GPUHAL_PROCESS_LIST_MAX 65536u /* per device */
enum { GPUHAL_PROCESS_NAME_BYTES = 64 };

typedef struct gpuhal_listed_process {
    uint32_t pid;   /* 0 if the driver hides it */
    uint32_t flags; /* GPUHAL_PROCESS_ bits; unknown members are 0 */
    uint32_t busy_permille;
    uint64_t memory_bytes;
    char name[GPUHAL_PROCESS_NAME_BYTES];  /* from the driver, truncated if longer; "" if none */
    char source[GPUHAL_SOURCE_BYTES];
} gpuhal_listed_process;

/* Zero-initialised means empty. */
struct gpuhal_process_list {
    gpuhal_listed_process *list;
    size_t count, capacity;
    bool failed; /* an allocation failed, so the list is incomplete */
};

/* Appends a process. If the process breaks a rule, describes the rule in `problem` and omits only the invalid data. */
void gpuhal_process_list_add(gpuhal_process_list *list, const gpuhal_plugin_process *process, const char *source,
                             char *problem, size_t bytes);
/* Sorts by pid and merges the entries of a process that the driver lists several times. */
void gpuhal_process_list_merge(gpuhal_process_list *list);
void gpuhal_process_list_finish(gpuhal_process_list *list);

#endif
