/* fakes/vulkan/script.c: parses GPUHAL_FAKE_VULKAN. An invalid word is stored as the script's fault. Then the driver
 * refuses to work and reports a violation, so that no test passes with a misspelt script. */
#include "script.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const fake_extension_names[EXTENSION_COUNT] = {
    "VK_KHR_timeline_semaphore",   "VK_KHR_external_memory_fd", "VK_EXT_external_memory_dma_buf",
    "VK_EXT_external_memory_host", "VK_EXT_memory_budget",      "VK_EXT_pci_bus_info",
    "VK_EXT_physical_device_drm",  "VK_EXT_host_query_reset",   "VK_KHR_buffer_device_address",
    "VK_KHR_driver_properties",    "VK_KHR_push_descriptor",
};

static fake_script script;
static unsigned first_plan, end_plan; /* devices that the next words describe */

/* Parses a decimal or hexadecimal number with an optional K, M or G. Returns false if there is no number, or text
 * follows the number. */
static bool read_number(const char *text, uint64_t *out_value)
{
    char *end = NULL;
    *out_value = strtoull(text, &end, 0);
    if (end == text) {
        return false;
    }
    const char *unit = *end ? strchr("KMG", *end) : NULL;
    if (unit) {
        *out_value <<= 10 * (unsigned)(1 + (unit - "KMG"));
        end++;
    }
    return *end == '\0';
}

/* Parses "gct2/0": kinds of work, number of queues (default 1), valid timestamp bits (default 64). */
static bool read_family(__attribute__((unused)) fake_plan *plan, const char *word)
{
    VkQueueFamilyProperties *family = &script.families[script.family_count];
    if (script.family_count == FAKE_FAMILIES) {
        return false;
    }
    *family =
        (VkQueueFamilyProperties){.queueCount = 1, .timestampValidBits = 64, .minImageTransferGranularity = {1, 1, 1}};
    for (; islower((unsigned char)*word); word++) {
        switch (*word) {
        case 'g':
            family->queueFlags |= VK_QUEUE_GRAPHICS_BIT;
            break;
        case 'c':
            family->queueFlags |= VK_QUEUE_COMPUTE_BIT;
            break;
        case 't':
            family->queueFlags |= VK_QUEUE_TRANSFER_BIT;
            break;
        default:
            return false;
        }
    }
    char *end = (char *)(uintptr_t)word;
    if (isdigit((unsigned char)*end)) {
        family->queueCount = (uint32_t)strtoul(end, &end, 10);
    }
    if (*end == '/') {
        family->timestampValidBits = (uint32_t)strtoul(end + 1, &end, 10);
    }
    script.family_count++;
    return *end == '\0' && family->queueFlags && family->queueCount >= 1 && family->queueCount <= FAKE_QUEUES;
}

/* Parses a heap: "d256M" if it is device local, otherwise "256M". */
static bool read_heap(fake_plan *plan, const char *word)
{
    VkMemoryHeap *heap = &plan->memory.memoryHeaps[plan->memory.memoryHeapCount];
    if (plan->memory.memoryHeapCount == 4) {
        return false;
    }
    plan->memory.memoryHeapCount++;
    heap->flags = *word == 'd' ? VK_MEMORY_HEAP_DEVICE_LOCAL_BIT : 0;
    return read_number(word + (*word == 'd'), &heap->size);
}

/* Parses a memory type such as "dvch@0": letters for device local, host visible, coherent, cached, lazily allocated,
 * protected and AMD's two flags, then the index of the heap. */
static bool read_type(fake_plan *plan, const char *word)
{
    static const char letters[] = "dvchlpau"; /* the order of Vulkan's bits */
    VkMemoryType *type = &plan->memory.memoryTypes[plan->memory.memoryTypeCount];
    if (plan->memory.memoryTypeCount == FAKE_TYPES) {
        return false;
    }
    plan->memory.memoryTypeCount++;
    type->propertyFlags = 0;
    for (; *word && *word != '@'; word++) {
        const char *letter = strchr(letters, *word);
        if (!letter) {
            return false;
        }
        type->propertyFlags |= 1u << (letter - letters);
    }
    uint64_t heap = 0;
    if (*word != '@' || !read_number(word + 1, &heap) || heap >= plan->memory.memoryHeapCount) {
        return false;
    }
    type->heapIndex = (uint32_t)heap;
    return true;
}

static bool read_list(fake_plan *plan, const char *text, bool read_word(fake_plan *plan, const char *word))
{
    char copy[256], *rest = copy, *word = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    while ((word = strsep(&rest, ","))) {
        if (*word && !read_word(plan, word)) {
            return false;
        }
    }
    return true;
}

static bool read_families(const char *text)
{
    script.family_count = 0;
    return read_list(NULL, text, read_family);
}

static bool read_heaps(fake_plan *plan, const char *text)
{
    plan->memory.memoryHeapCount = 0;
    plan->memory.memoryTypeCount = 0;
    return read_list(plan, text, read_heap);
}

static bool read_types(fake_plan *plan, const char *text)
{
    plan->memory.memoryTypeCount = 0;
    return read_list(plan, text, read_type);
}

/* Parses "vkAllocateMemory:3:-2": function, number of the call ("*" for all calls), and the call's result. */
static bool read_fail(const char *text)
{
    fake_fail *fail = &script.fails[script.fail_count];
    const char *nth = strchr(text, ':'), *code = nth ? strchr(nth + 1, ':') : NULL;
    char *end = NULL;
    if (script.fail_count == FAKE_FAILS || !code || (size_t)(nth - text) >= sizeof fail->function) {
        return false;
    }
    snprintf(fail->function, sizeof fail->function, "%.*s", (int)(nth - text), text);
    fail->nth = nth[1] == '*' ? UINT_MAX : (unsigned)strtoul(nth + 1, NULL, 10);
    fail->code = (VkResult)strtol(code + 1, &end, 10);
    script.fail_count++;
    return fail->nth && fail->code && *end == '\0';
}

static bool read_without(const char *text)
{
    if (strncmp(text, "vk", 2) == 0) {
        return snprintf(script.without_function, sizeof script.without_function, "%s", text) <
               (int)sizeof script.without_function;
    }
    for (unsigned e = 0; e < EXTENSION_COUNT; e++) {
        if (strcmp(text, fake_extension_names[e]) == 0) {
            script.without |= 1u << e;
            return true;
        }
    }
    return false;
}

static void be_discrete(fake_plan *plan)
{
    plan->type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    (void)read_heaps(plan, "d256M,512M");
    (void)read_types(plan, "d@0,vc@1,vch@1");
    (void)read_families("gct1,t1");
}

static void be_integrated(fake_plan *plan)
{
    plan->type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    (void)read_heaps(plan, "d512M");
    (void)read_types(plan, "dvch@0");
    (void)read_families("gct1");
}

static bool read_kind(fake_plan *plan, const char *word)
{
    if (strcmp(word, "discrete") == 0) {
        be_discrete(plan);
    } else if (strcmp(word, "integrated") == 0) {
        be_integrated(plan);
    } else if (strcmp(word, "cpu") == 0) {
        plan->type = VK_PHYSICAL_DEVICE_TYPE_CPU;
    } else {
        return false;
    }
    return true;
}

static bool read_flag(const char *word)
{
    if (strcmp(word, "same_uuid") == 0) {
        script.same_uuid = true;
    } else if (strcmp(word, "inline") == 0) {
        script.run_inline = true;
    } else if (strcmp(word, "reorder") == 0) {
        script.reorder = true;
    } else if (strcmp(word, "no_timeline") == 0) {
        script.no_timeline = true;
    } else if (strcmp(word, "dedicated") == 0) {
        script.dedicated = true;
    } else if (strcmp(word, "dedicated_fds") == 0) {
        script.dedicated_fds = true;
    } else if (strcmp(word, "late_waits") == 0) {
        script.late_waits = true;
    } else if (strcmp(word, "maps_nowhere") == 0) {
        script.maps_nowhere = true;
    } else if (strcmp(word, "fills_families") == 0) {
        script.fills_families = true;
    } else {
        return false;
    }
    return true;
}

static bool copy(char to[64], const char *text)
{
    return snprintf(to, 64, "%s", text) < 64;
}

static bool read_of_device(fake_plan *plan, const char *key, const char *value)
{
    uint64_t number = 0;
    if (strcmp(key, "heaps") == 0) {
        return read_heaps(plan, value);
    }
    if (strcmp(key, "types") == 0) {
        return read_types(plan, value);
    }
    if (strcmp(key, "name") == 0) {
        return copy(plan->name, value);
    }
    if (strcmp(key, "driver") == 0) {
        return copy(plan->driver, value);
    }
    if (strcmp(key, "driver_info") == 0) {
        return copy(plan->driver_info, value);
    }
    if (strcmp(key, "pci") == 0) {
        return sscanf(value, "%x:%x:%x.0", &plan->pci_domain, &plan->pci_bus, &plan->pci_device) == 3;
    }
    if (!read_number(value, &number)) {
        return false;
    }
    if (strcmp(key, "vendor") == 0) {
        plan->vendor = (uint32_t)number;
    } else if (strcmp(key, "id") == 0) {
        plan->id = (uint32_t)number;
    } else if (strcmp(key, "render") == 0) {
        plan->render_minor = (unsigned)number;
    } else if (strcmp(key, "budget") == 0) {
        plan->budget = number;
    } else {
        return false;
    }
    return true;
}

static bool read_pair(const char *key, const char *value)
{
    uint64_t number = 0;
    if (strcmp(key, "families") == 0) {
        return read_families(value);
    }
    if (strcmp(key, "fail") == 0) {
        return read_fail(value);
    }
    if (strcmp(key, "without") == 0) {
        return read_without(value);
    }
    if (strcmp(key, "api") == 0) {
        script.api = VK_MAKE_API_VERSION(0, 1, (uint32_t)(strncmp(value, "1.", 2) == 0 ? value[2] - '0' : 9), 0);
        return VK_API_VERSION_MINOR(script.api) <= 3;
    }
    if (!read_number(value, &number)) {
        return false;
    }
    if (strcmp(key, "devices") == 0) {
        script.devices = (unsigned)number;
        return number <= FAKE_DEVICES;
    }
    if (strcmp(key, "device") == 0) {
        first_plan = (unsigned)number;
        end_plan = first_plan + 1;
        return number < FAKE_DEVICES;
    }
    if (strcmp(key, "allocation_count") == 0) {
        script.allocation_count = (uint32_t)number;
    } else if (strcmp(key, "allocation_size") == 0) {
        script.allocation_size = number;
    } else if (strcmp(key, "import_alignment") == 0) {
        script.import_alignment = number;
    } else if (strcmp(key, "atom") == 0) {
        script.atom = number;
    } else if (strcmp(key, "slow_us") == 0) {
        script.slow_us = (unsigned)number;
    } else if (strcmp(key, "slow_us_per_mib") == 0) {
        script.slow_us_per_mib = (unsigned)number;
    } else if (strcmp(key, "lost_at_submit") == 0) {
        script.lose = (unsigned)number;
    } else if (strcmp(key, "hang_at_submit") == 0) {
        script.hang = (unsigned)number;
    } else {
        return false;
    }
    return true;
}

/* A word that is not about the whole driver applies to the device of the last `device=`, or to all devices if there is
 * none. */
static bool read_word(const char *word, const char *value)
{
    if (value ? read_pair(word, value) : read_flag(word)) {
        return true;
    }
    for (unsigned i = first_plan; i < end_plan; i++) {
        if (!(value ? read_of_device(&script.plans[i], word, value) : read_kind(&script.plans[i], word))) {
            return false;
        }
    }
    return true;
}

static void make_plans(void)
{
    first_plan = 0;
    end_plan = FAKE_DEVICES;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        script.plans[i] = (fake_plan){.vendor = 0xfa4e,
                                      .id = 0x100 + i,
                                      .name = "fake GPU",
                                      .driver = "gpuhal fake",
                                      .driver_info = "7.5.3",
                                      .pci_domain = 0xfa4e,
                                      .pci_bus = i + 1,
                                      .render_minor = 240 + i};
        be_integrated(&script.plans[i]);
    }
}

static void read_script(void)
{
    script = (fake_script){.devices = 1,
                           .api = VK_API_VERSION_1_3,
                           .allocation_count = 4096,
                           .allocation_size = 1u << 30,
                           .import_alignment = 4096,
                           .atom = 64};
    make_plans();
    const char *text = getenv("GPUHAL_FAKE_VULKAN");
    char *copy = strdup(text ? text : ""), *rest = copy, *word = NULL;
    while ((word = strsep(&rest, ";")) && !script.fault[0]) {
        char shown[80];
        snprintf(shown, sizeof shown, "%s", word);
        char *value = strchr(word, '=');
        if (value) {
            *value++ = '\0';
        }
        if (*word && !read_word(word, value)) {
            snprintf(script.fault, sizeof script.fault, "GPUHAL_FAKE_VULKAN: \"%s\" is not understood", shown);
        }
    }
    free(copy);
    if (script.no_timeline) {
        script.without |= 1u << TIMELINE_SEMAPHORE;
    }
}

const fake_script *fake_get_script(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_script);
    return &script;
}

bool fake_offers(fake_extension extension)
{
    return extension == NONE || !(fake_get_script()->without >> extension & 1);
}
