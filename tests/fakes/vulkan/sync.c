/* fakes/vulkan/sync.c: fences, semaphores and queries. On a lost device every wait and query returns
 * VK_ERROR_DEVICE_LOST. */
#include "fake.h"

#include <string.h>

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateFence(VkDevice handle, const VkFenceCreateInfo *info,
                                                  const VkAllocationCallbacks *allocator, VkFence *out_fence)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateFence);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateFence");
    fake_fence *fence = result || !device ? NULL : fake_make(device, A_FENCE, sizeof *fence);
    if (!fence) {
        return result ? result : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    fence->signaled = info->flags & VK_FENCE_CREATE_SIGNALED_BIT;
    *out_fence = (VkFence)fence;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyFence(VkDevice handle, VkFence fence, const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyFence);
    (void)fake_destroy(fence, A_FENCE, "vkDestroyFence");
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkResetFences(VkDevice handle, uint32_t count, const VkFence *fences)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkResetFences);
    for (uint32_t f = 0; f < count && !result; f++) {
        fake_fence *fence = fake_find(fences[f], A_FENCE, "vkResetFences");
        pthread_mutex_lock(&fake_lock);
        if (fence && fence->object.in_use) {
            fake_violation("vkResetFences: the fence is in use");
        } else if (fence) {
            fence->signaled = false;
        }
        pthread_mutex_unlock(&fake_lock);
    }
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetFenceStatus(VkDevice handle, VkFence object)
{
    VkResult result = fake_enter(FN_vkGetFenceStatus);
    fake_device *device = fake_find(handle, A_DEVICE, "vkGetFenceStatus");
    fake_fence *fence = fake_find(object, A_FENCE, "vkGetFenceStatus");
    if (result || !device || !fence) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&fake_lock);
    fake_progress_locked(device);
    result = device->lost ? VK_ERROR_DEVICE_LOST : fence->signaled ? VK_SUCCESS : VK_NOT_READY;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

static VkResult wait_for(fake_device *device, uint64_t timeout_ns, bool is_there(const void *what), const void *what)
{
    const uint64_t until_ns = fake_deadline_ns(timeout_ns);
    VkResult result = VK_TIMEOUT;
    pthread_mutex_lock(&fake_lock);
    for (bool in_time = true; result == VK_TIMEOUT;) {
        fake_progress_locked(device);
        if (device->lost) {
            result = VK_ERROR_DEVICE_LOST;
        } else if (is_there(what)) {
            result = VK_SUCCESS;
        } else if (!in_time || timeout_ns == 0) {
            break;
        } else {
            in_time = fake_wait_locked(until_ns);
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return result;
}

typedef struct fence_wait {
    uint32_t count;
    const VkFence *fences;
    bool all;
} fence_wait;

static bool fences_are_there(const void *what)
{
    const fence_wait *wait = what;
    uint32_t there = 0;
    for (uint32_t f = 0; f < wait->count; f++) {
        there += ((const fake_fence *)(const void *)wait->fences[f])->signaled;
    }
    return wait->all ? there == wait->count : there > 0;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkWaitForFences(VkDevice handle, uint32_t count, const VkFence *fences,
                                                    VkBool32 all, uint64_t timeout_ns)
{
    VkResult result = fake_enter(FN_vkWaitForFences);
    fake_device *device = fake_find(handle, A_DEVICE, "vkWaitForFences");
    bool known = device != NULL;
    for (uint32_t f = 0; f < count; f++) {
        known = known && fake_find(fences[f], A_FENCE, "vkWaitForFences");
    }
    if (result || !known) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    const fence_wait wait = {count, fences, all};
    return wait_for(device, timeout_ns, fences_are_there, &wait);
}

/* ---- semaphores */

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateSemaphore(VkDevice handle, const VkSemaphoreCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkSemaphore *out_semaphore)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateSemaphore);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateSemaphore");
    fake_semaphore *semaphore = result || !device ? NULL : fake_make(device, A_SEMAPHORE, sizeof *semaphore);
    if (!semaphore) {
        return result ? result : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    const VkSemaphoreTypeCreateInfo *type = fake_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    semaphore->timeline = type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
    semaphore->value = semaphore->promised = semaphore->timeline ? type->initialValue : 0;
    if (semaphore->timeline && !(device->enabled >> TIMELINE_SEMAPHORE & 1)) {
        fake_violation("vkCreateSemaphore: a timeline without the feature timelineSemaphore");
    }
    *out_semaphore = (VkSemaphore)semaphore;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroySemaphore(VkDevice handle, VkSemaphore semaphore,
                                                   const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroySemaphore);
    (void)fake_destroy(semaphore, A_SEMAPHORE, "vkDestroySemaphore");
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetSemaphoreCounterValue(VkDevice handle, VkSemaphore object, uint64_t *out_value)
{
    VkResult result = fake_enter(FN_vkGetSemaphoreCounterValue);
    fake_device *device = fake_find(handle, A_DEVICE, "vkGetSemaphoreCounterValue");
    const fake_semaphore *semaphore = fake_find(object, A_SEMAPHORE, "vkGetSemaphoreCounterValue");
    if (result || !device || !semaphore) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&fake_lock);
    fake_progress_locked(device);
    *out_value = semaphore->value;
    result = device->lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

static bool semaphores_are_there(const void *what)
{
    const VkSemaphoreWaitInfo *wait = what;
    uint32_t there = 0;
    for (uint32_t s = 0; s < wait->semaphoreCount; s++) {
        there += ((const fake_semaphore *)(const void *)wait->pSemaphores[s])->value >= wait->pValues[s];
    }
    return wait->flags & VK_SEMAPHORE_WAIT_ANY_BIT ? there > 0 : there == wait->semaphoreCount;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkWaitSemaphores(VkDevice handle, const VkSemaphoreWaitInfo *wait,
                                                     uint64_t timeout_ns)
{
    VkResult result = fake_enter(FN_vkWaitSemaphores);
    fake_device *device = fake_find(handle, A_DEVICE, "vkWaitSemaphores");
    bool known = device != NULL;
    for (uint32_t s = 0; s < wait->semaphoreCount; s++) {
        const fake_semaphore *semaphore = fake_find(wait->pSemaphores[s], A_SEMAPHORE, "vkWaitSemaphores");
        known = known && semaphore && semaphore->timeline;
    }
    if (result || !known) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    return wait_for(device, timeout_ns, semaphores_are_there, wait);
}

/* ---- queries */

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateQueryPool(VkDevice handle, const VkQueryPoolCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator, VkQueryPool *out_pool)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateQueryPool);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateQueryPool");
    fake_query_pool *pool = result || !device ? NULL : fake_make(device, A_QUERY_POOL, sizeof *pool);
    if (!pool) {
        return result ? result : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    pool->count = info->queryCount;
    pool->queries = calloc(info->queryCount, sizeof *pool->queries);
    if (!pool->queries || info->queryType != VK_QUERY_TYPE_TIMESTAMP) {
        free(pool->queries);
        (void)fake_destroy(pool, A_QUERY_POOL, "vkCreateQueryPool");
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    *out_pool = (VkQueryPool)pool;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyQueryPool(VkDevice handle, VkQueryPool object,
                                                   const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyQueryPool);
    fake_query_pool *pool = fake_destroy(object, A_QUERY_POOL, "vkDestroyQueryPool");
    if (pool) {
        free(pool->queries);
        pool->queries = NULL;
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkResetQueryPool(VkDevice handle, VkQueryPool object, uint32_t first, uint32_t count)
{
    fake_count(FN_vkResetQueryPool);
    const fake_device *device = fake_find(handle, A_DEVICE, "vkResetQueryPool");
    fake_query_pool *pool = fake_find(object, A_QUERY_POOL, "vkResetQueryPool");
    if (!device || !pool || first > pool->count || count > pool->count - first ||
        !(device->enabled >> HOST_QUERY_RESET & 1)) {
        fake_violation("vkResetQueryPool: no such queries, or the feature hostQueryReset is not enabled");
        return;
    }
    pthread_mutex_lock(&fake_lock);
    for (uint32_t q = first; q < first + count; q++) {
        if (pool->queries[q].in_use) {
            fake_violation("vkResetQueryPool: query %u is in use", q);
        }
        pool->queries[q].state = QUERY_RESET;
    }
    pthread_mutex_unlock(&fake_lock);
}

typedef struct query_wait {
    const fake_query_pool *pool;
    uint32_t first, count;
} query_wait;

static bool queries_are_there(const void *what)
{
    const query_wait *wait = what;
    for (uint32_t q = wait->first; q < wait->first + wait->count; q++) {
        if (wait->pool->queries[q].state != QUERY_WRITTEN) {
            return false;
        }
    }
    return true;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetQueryPoolResults(VkDevice handle, VkQueryPool object, uint32_t first,
                                                          uint32_t count, size_t size, void *data, VkDeviceSize stride,
                                                          VkQueryResultFlags flags)
{
    VkResult result = fake_enter(FN_vkGetQueryPoolResults);
    fake_device *device = fake_find(handle, A_DEVICE, "vkGetQueryPoolResults");
    const fake_query_pool *pool = fake_find(object, A_QUERY_POOL, "vkGetQueryPoolResults");
    if (result || !device || !pool) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if (first > pool->count || count > pool->count - first || !(flags & VK_QUERY_RESULT_64_BIT) || count == 0 ||
        size < (count - 1) * stride + (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT ? 16u : 8u)) {
        fake_violation("vkGetQueryPoolResults: no such queries, too little room, or not asked for 64 bits");
        return VK_ERROR_UNKNOWN;
    }
    const query_wait wait = {pool, first, count};
    result = wait_for(device, flags & VK_QUERY_RESULT_WAIT_BIT ? UINT64_MAX : 0, queries_are_there, &wait);
    pthread_mutex_lock(&fake_lock);
    for (uint32_t q = 0; q < count; q++) {
        const struct fake_query *query = &pool->queries[first + q];
        const uint64_t there = query->state == QUERY_WRITTEN;
        unsigned char *to = (unsigned char *)data + q * stride;
        if (query->state == QUERY_UNKNOWN) {
            fake_violation("vkGetQueryPoolResults: query %u was never reset", first + q);
        }
        if (there) {
            memcpy(to, &query->value, sizeof query->value);
        }
        if (flags & VK_QUERY_RESULT_WITH_AVAILABILITY_BIT) {
            memcpy(to + 8, &there, sizeof there);
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return result == VK_TIMEOUT ? VK_NOT_READY : result;
}
