/* telemetry/fdinfo.c: see fdinfo.h. Lines look like "drm-engine-NAME: 123 ns"; lines that cannot be parsed are
 * skipped. */
#include "telemetry/fdinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums of resident bytes. Older drivers report resident bytes in lines that begin with "drm-memory-". */
typedef struct memory_sums {
    uint64_t resident, resident_own, older, older_own;
    bool has_resident, has_older;
} memory_sums;

static const char *after(const char *key, const char *prefix)
{
    const size_t length = strlen(prefix);
    return strncmp(key, prefix, length) == 0 ? key + length : NULL;
}

/* Reads an amount of bytes or nanoseconds, or a number without a unit. */
static bool read_amount(const char *text, uint64_t *out_amount)
{
    char *end = NULL;
    uint64_t unit = 1;
    if (*text < '0' || *text > '9') {
        return false;
    }
    const unsigned long long number = strtoull(text, &end, 10);
    end += strspn(end, " \t");
    if (strncmp(end, "KiB", 3) == 0) {
        unit = UINT64_C(1) << 10;
    } else if (strncmp(end, "MiB", 3) == 0) {
        unit = UINT64_C(1) << 20;
    } else if (strncmp(end, "GiB", 3) == 0) {
        unit = UINT64_C(1) << 30;
    }
    *out_amount = number * unit;
    return number <= UINT64_MAX / 2 / unit; /* larger numbers are invalid, for example -1 */
}

/* Returns the client's engine with this name. If the client does not have the engine yet, adds it, or returns NULL if
 * there is no room. */
static gpuhal_engine *engine_of(gpuhal_client *client, const char *name)
{
    for (uint32_t i = 0; i < client->engine_count; i++) {
        if (strcmp(client->engines[i].name, name) == 0) {
            return &client->engines[i];
        }
    }
    if (client->engine_count == GPUHAL_CLIENT_ENGINES || strlen(name) >= GPUHAL_ENGINE_BYTES) {
        return NULL;
    }
    gpuhal_engine *engine = &client->engines[client->engine_count++];
    *engine = (gpuhal_engine){.capacity = 1};
    memcpy(engine->name, name, strlen(name) + 1);
    return engine;
}

static void take_memory(memory_sums *sums, const char *region, uint64_t bytes, bool resident)
{
    const bool own = strncmp(region, "vram", 4) == 0 || strncmp(region, "local", 5) == 0;
    *(resident ? &sums->resident : &sums->older) += bytes;
    *(resident ? &sums->resident_own : &sums->older_own) += own ? bytes : 0;
    *(resident ? &sums->has_resident : &sums->has_older) = true;
}

static void take_engine(gpuhal_client *client, const char *key, uint64_t amount)
{
    const char *name;
    gpuhal_engine *engine;
    if ((name = after(key, "drm-engine-capacity-"))) {
        engine = engine_of(client, name);
        if (engine && amount > 0 && amount <= 1024) {
            engine->capacity = (uint32_t)amount;
        }
    } else if ((name = after(key, "drm-engine-")) || (name = after(key, "drm-cycles-"))) {
        engine = engine_of(client, name);
        if (engine) {
            engine->busy = amount;
        }
    } else if ((name = after(key, "drm-total-cycles-"))) {
        engine = engine_of(client, name);
        if (engine) {
            engine->passed = amount;
        }
    }
}

static void take_line(gpuhal_client *client, memory_sums *sums, const char *key, const char *text, bool *is_client)
{
    const char *region;
    uint64_t amount = 0;
    if (strcmp(key, "drm-pdev") == 0) {
        if (strlen(text) < sizeof client->place) {
            memcpy(client->place, text, strlen(text) + 1);
        }
    } else if (!read_amount(text, &amount)) {
        return;
    } else if (strcmp(key, "drm-client-id") == 0) {
        client->id = amount;
        *is_client = true;
    } else if ((region = after(key, "drm-resident-"))) {
        take_memory(sums, region, amount, true);
    } else if ((region = after(key, "drm-memory-"))) {
        take_memory(sums, region, amount, false);
    } else {
        take_engine(client, key, amount);
    }
}

bool gpuhal_fdinfo_read(const char *text, const char *node, gpuhal_client *out_client)
{
    memory_sums sums = {0};
    bool is_client = false;
    *out_client = (gpuhal_client){0};
    while (*text) {
        char line[160];
        const size_t length = strcspn(text, "\n");
        const size_t kept = length < sizeof line ? length : sizeof line - 1;
        memcpy(line, text, kept);
        line[kept] = 0;
        char *colon = strchr(line, ':');
        if (colon) {
            *colon++ = 0;
            take_line(out_client, &sums, line, colon + strspn(colon, " \t"), &is_client);
        }
        text += length + (text[length] == '\n');
    }
    if (!out_client->place[0]) {
        const char *name = strrchr(node, '/');
        snprintf(out_client->place, sizeof out_client->place, "%.23s", name ? name + 1 : node);
    }
    out_client->has_memory = sums.has_resident || sums.has_older;
    out_client->memory = sums.has_resident ? sums.resident : sums.older;
    out_client->device_memory = sums.has_resident ? sums.resident_own : sums.older_own;
    return is_client;
}
