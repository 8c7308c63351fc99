/* schedule/balance.c: records earlier choices, so that choices by load do not oscillate. Devices are compared only by
 * address. */
#include "schedule/need.h"

#include "device/for_schedule.h"

#include <stdlib.h>
#include <string.h>

enum { MARGIN_PERMILLE = 100 };

gpuhal_status gpuhal_balance_create(gpuhal *gpu, const gpuhal_balance_desc *desc, gpuhal_balance **out_balance)
{
    if (out_balance) {
        *out_balance = NULL;
    }
    gpuhal_balance_desc own = {0};
    if (desc) {
        memcpy(&own, desc, desc->size < sizeof own ? desc->size : sizeof own);
    }
    if (!gpu || !out_balance || (desc && desc->size == 0) || own.margin_permille > 1000) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_balance_create: gpu or out_balance is NULL, the size is 0, or the margin is "
                                "above 1000");
    }
    gpuhal_status status = gpuhal_check(gpu);
    gpuhal_balance *balance = status ? NULL : calloc(1, sizeof *balance);
    if (!balance) {
        return status ? status : gpuhal_error_host_memory();
    }
    balance->gpu = gpu;
    balance->generation = gpuhal_os_fork_generation();
    balance->margin_permille = own.margin_permille ? own.margin_permille : MARGIN_PERMILLE;
    *out_balance = balance;
    return GPUHAL_OK;
}

void gpuhal_balance_destroy(gpuhal_balance *balance)
{
    if (!balance || balance->generation != gpuhal_os_fork_generation()) {
        return;
    }
    for (uint32_t i = 0; i < balance->count; i++) {
        free(balance->entries[i].key);
    }
    free(balance->entries);
    free(balance);
}

gpuhal_status gpuhal_balance_check(const gpuhal_balance *balance, const gpuhal *gpu, const char *call)
{
    if (!balance) {
        return GPUHAL_OK;
    }
    return balance->generation != gpuhal_os_fork_generation() ? gpuhal_error_forked()
           : balance->gpu != gpu
               ? gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the balance is of another gpuhal object", call)
               : GPUHAL_OK;
}

uint32_t gpuhal_balance_margin(const gpuhal_balance *balance)
{
    return balance ? balance->margin_permille : MARGIN_PERMILLE;
}

const gpuhal_device *gpuhal_balance_find(const gpuhal_balance *balance, const char *key)
{
    for (uint32_t i = 0; balance && i < balance->count; i++) {
        if (strcmp(balance->entries[i].key, key) == 0) {
            return balance->entries[i].device;
        }
    }
    return NULL;
}
