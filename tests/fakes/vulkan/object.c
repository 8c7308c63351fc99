/* fakes/vulkan/object.c: creates, finds and destroys objects, and waits. A destroyed object is first only marked, so
 * that its handle is not reused soon. The oldest destroyed objects are freed; otherwise a program that repeatedly
 * creates and destroys objects would seem to leak. */
#include "fake.h"

#include <time.h>

enum { BUCKETS = 4096, KEPT_DESTROYED = 256 };
static fake_object *buckets[BUCKETS]; /* by address; requires fake_lock */
static unsigned alive;                /* requires fake_lock */
/* Ring of the objects that this thread destroyed. By the time an object is freed, the call that destroyed it has
 * long returned. */
static _Thread_local fake_object *kept_destroyed[KEPT_DESTROYED];
static _Thread_local unsigned oldest;

static fake_object **bucket_of(const void *handle)
{
    uintptr_t address = (uintptr_t)handle;
    return &buckets[(address >> 4 ^ address >> 16) % BUCKETS];
}

const char *fake_kind_name(fake_kind kind)
{
    static const char *const names[KIND_COUNT] = {"VkDevice",       "VkQueue",       "VkBuffer",
                                                  "VkDeviceMemory", "VkFence",       "VkSemaphore",
                                                  "VkQueryPool",    "VkCommandPool", "VkCommandBuffer",
                                                  "VkShaderModule", "VkPipelineCache", "VkDescriptorSetLayout",
                                                  "VkPipelineLayout", "VkPipeline", "VkDescriptorPool",
                                                  "VkDescriptorSet"};
    return names[kind];
}

void *fake_make(fake_device *device, fake_kind kind, size_t size)
{
    fake_object *object = calloc(1, size);
    if (!object) {
        return NULL;
    }
    set_loader_magic_value(object);
    object->kind = kind;
    object->device = device;
    pthread_mutex_lock(&fake_lock);
    object->next = *bucket_of(object);
    *bucket_of(object) = object;
    alive += kind != A_QUEUE;
    if (device) {
        device->alive[kind]++;
    }
    pthread_mutex_unlock(&fake_lock);
    return object;
}

/* A handle may have any value, so it is looked up before it is dereferenced. */
static fake_object *find_locked(const void *handle, fake_kind kind, const char *call)
{
    for (fake_object *object = *bucket_of(handle); object; object = object->next) {
        if (object == handle) {
            if (object->kind == kind && !object->dead) {
                return object;
            }
            fake_violation("%s: the %s was destroyed or is a %s", call, fake_kind_name(kind),
                           fake_kind_name(object->kind));
            return NULL;
        }
    }
    fake_violation("%s: %p is no %s", call, handle, fake_kind_name(kind));
    return NULL;
}

void *fake_find(const void *handle, fake_kind kind, const char *call)
{
    pthread_mutex_lock(&fake_lock);
    fake_object *object = find_locked(handle, kind, call);
    pthread_mutex_unlock(&fake_lock);
    return object;
}

static bool is_needed_locked(const fake_object *object)
{
    const fake_device *device = (const fake_device *)object;
    for (unsigned kind = 0; object->kind == A_DEVICE && kind < KIND_COUNT; kind++) {
        if (device->alive[kind]) {
            return true;
        }
    }
    return false;
}

static void forget_locked(fake_object *object)
{
    fake_object **link = bucket_of(object);
    while (*link != object) {
        link = &(*link)->next;
    }
    *link = object->next;
    free(object);
}

static void keep_destroyed_locked(fake_object *object)
{
    fake_object **place = &kept_destroyed[oldest++ % KEPT_DESTROYED];
    if (*place && !is_needed_locked(*place)) {
        forget_locked(*place);
    }
    *place = object;
}

void *fake_destroy(const void *handle, fake_kind kind, const char *call)
{
    if (!handle) {
        return NULL;
    }
    pthread_mutex_lock(&fake_lock);
    fake_object *object = find_locked(handle, kind, call);
    if (object && object->in_use) {
        fake_violation("%s: the %s is in use by unfinished work", call, fake_kind_name(kind));
        object = NULL;
    }
    if (object) {
        object->dead = true;
        alive -= kind != A_QUEUE;
        keep_destroyed_locked(object);
        if (object->device) {
            object->device->alive[kind]--;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return object;
}

unsigned fake_alive(void)
{
    pthread_mutex_lock(&fake_lock);
    unsigned count = alive;
    pthread_mutex_unlock(&fake_lock);
    return count;
}

void fake_lose_all(void)
{
    pthread_mutex_lock(&fake_lock);
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (fake_object *object = buckets[b]; object; object = object->next) {
            if (object->kind == A_DEVICE && !object->dead) {
                fake_lose_locked((fake_device *)object);
            }
        }
    }
    pthread_mutex_unlock(&fake_lock);
}

uint64_t fake_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t fake_deadline_ns(uint64_t timeout_ns)
{
    uint64_t now = fake_now_ns();
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

bool fake_wait_locked(uint64_t until_ns)
{
    if (until_ns == UINT64_MAX) {
        pthread_cond_wait(&fake_changed, &fake_lock);
        return true;
    }
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                                   .tv_nsec = (long)(until_ns % 1000000000u)};
    (void)pthread_cond_timedwait(&fake_changed, &fake_lock, &until);
    return fake_now_ns() < until_ns;
}
