/* program/key.c: the possible differences between two compilations. The key consists of one entry for each difference
 * in the list `ways`; compiled code is reused only if all entries are equal. Code that may read other files has no key
 * (self_contained.c). A driver's headers and device library are assumed to change only together with the driver's
 * shared libraries.
 */
#include "program/program.h"

#include "base/facts.h"
#include "base/log.h"
#include "registry/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSOR_BYTES = 8192 };

/* ---- variables */

/* Prefixes of environment variables that driver compilers read. An unnecessary prefix only causes a compilation when
 * such a variable changes, but a missing prefix can cause a wrong kernel. */
static const char prefixes[] =
    /* loaders and their layers */
    "VK_ OCL_ OPENCL_ LD_ "
    /* PoCL, LLVM and clang */
    "POCL_ LLVM_ CLANG_ CCC_ CPATH C_INCLUDE_PATH "
    /* Mesa: common prefixes first, then its drivers */
    "MESA_ NIR_ GALLIUM_ GALLIVM_ DRAW_ TGSI_ ST_ CLC_ RUSTICL_ CLOVER_ LIBGL_ DRI_ "
    "LP_ LVP_ RADV_ ACO_ R600_ SI_ ANV_ HASVK_ INTEL_ IRIS_ NVK_ NAK_ NOUVEAU_ "
    "NV50_ ZINK_ VENUS_ VN_ TU_ FD_ IR3_ V3D_ V3DV_ PAN_ PANVK_ BIFROST_ MIDGARD_ "
    "ETNA_ AGX_ HK_ PVR_ ROGUE_ DZN_ "
    /* NVIDIA */
    "CUDA_ NVIDIA_ NVVM_ NV_ __GL_ "
    /* AMD */
    "AMD_ AMDVLK_ GPU_ HIP_ HSA_ ROCM_ ROCR_ COMGR_ "
    /* Intel */
    "IGC_ NEO ZE_ CL_ ISPC_ VISA_ "
    /* Arm, Qualcomm, Oclgrind, clvk, chipStar, ZLUDA, SwiftShader, MoltenVK */
    "MALI_ ADRENO_ OCLGRIND_ CLVK_ CHIP_ ZLUDA_ SWIFTSHADER_ MVK_ ";

/* Variables that do not belong to the key. They select the visible devices or the directory of a driver's cache. They
 * often differ between processes, and no compiler depends on them. */
static const char no_matter[] =
    "CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES "
    "GPU_DEVICE_ORDINAL ZE_AFFINITY_MASK POCL_CACHE_DIR MESA_SHADER_CACHE_DIR CUDA_CACHE_PATH "
    "NEO_CACHE_DIR AMD_COMGR_CACHE_DIR XDG_CACHE_HOME ";

typedef struct choice {
    const char *named; /* name in the plugin's manifest, or NULL */
    gpuhal_texts texts;
} choice;

static bool is_word_of(const char *words, const char *name, size_t length)
{
    bool is = false;
    for (const char *at = words ? words : ""; *at && !is;) {
        const size_t word = strcspn(at, " ");
        is = word == length && memcmp(at, name, length) == 0;
        at += word + strspn(at + word, " ");
    }
    return is;
}

static bool begins_with_one(const char *words, const char *name)
{
    bool begins = false;
    for (const char *at = words; *at && !begins; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        begins = strncmp(name, at, word) == 0;
        at += word;
    }
    return begins;
}

static void choose(void *user, const char *entry)
{
    choice *own = user;
    const size_t length = strcspn(entry, "=");
    const bool matters = is_word_of(own->named, entry, length) || begins_with_one(prefixes, entry);
    if (matters && !is_word_of(no_matter, entry, length)) {
        gpuhal_texts_add(&own->texts, entry);
    }
}

static int by_name(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void add_variables(gpuhal_device *device, __attribute__((unused)) const gpuhal_code *code, gpuhal_text *to)
{
    choice own = {.named = device->candidate->environment};
    gpuhal_os_environment_visit(choose, &own);
    if (own.texts.count > 1) {
        qsort(own.texts.list, own.texts.count, sizeof *own.texts.list, by_name);
    }
    for (size_t i = 0; i < own.texts.count; i++) {
        gpuhal_text_printf(to, "%s\n", own.texts.list[i]);
    }
    to->failed = to->failed || own.texts.failed;
    gpuhal_texts_finish(&own.texts);
}

/* ---- the other differences */

static void add_library(__attribute__((unused)) gpuhal_device *device, __attribute__((unused)) const gpuhal_code *code,
                        gpuhal_text *to)
{
    gpuhal_text_printf(to, "%s", GPUHAL_VERSION);
}

static void add_plugin(gpuhal_device *device, __attribute__((unused)) const gpuhal_code *code, gpuhal_text *to)
{
    const char *options = device->candidate->options;
    gpuhal_text_printf(to, "%s %s %s", device->candidate->name, device->plugin->version, options ? options : "");
}

/* Identifies the driver by its files, because distributions may rebuild a driver without changing its version. */
static void add_driver(gpuhal_device *device, __attribute__((unused)) const gpuhal_code *code, gpuhal_text *to)
{
    const gpuhal_driver_files *files = gpuhal_backend_files(device->backend);
    gpuhal_text_printf(to, "%s", files->lines ? files->lines : "");
    to->failed = to->failed || !files->lines;
}

static void add_device(gpuhal_device *device, __attribute__((unused)) const gpuhal_code *code, gpuhal_text *to)
{
    static const gpuhal_key keys[] = {GPUHAL_FACT_NAME,
                                      GPUHAL_FACT_VENDOR,
                                      GPUHAL_FACT_VENDOR_ID,
                                      GPUHAL_FACT_TYPE,
                                      GPUHAL_FACT_DRIVER_VERSION,
                                      GPUHAL_FACT_API_VERSION,
                                      GPUHAL_FACT_DRIVER_UUID,
                                      GPUHAL_FACT_TARGET_ARCHITECTURE,
                                      GPUHAL_FACT_DATA_TYPES,
                                      GPUHAL_FACT_SUBGROUP_SIZE_MIN,
                                      GPUHAL_FACT_SUBGROUP_SIZE_MAX,
                                      GPUHAL_FACT_GROUP_SIZE_MAX,
                                      GPUHAL_FACT_GROUP_MEMORY_BYTES,
                                      GPUHAL_FACT_COMPUTE_UNITS};
    const gpuhal_facts *facts = &gpuhal_device_current(device)->facts;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gpuhal_fact *fact = gpuhal_facts_find(facts, keys[i]);
        const bool known = fact && fact->missing == 0;
        gpuhal_text_printf(to, "%" PRIu64 " %s\n", known ? fact->u64 : 0, known && fact->text ? fact->text : "");
    }
    gpuhal_text_printf(to, "%s", device->lacks); /* the features that are not enabled on an adopted device */
}

/* Returns the model and the features of the first processor as a malloc'ed string, or NULL if host memory is short. */
static char *read_processor(const char *root)
{
    static const char words[] = "vendor_id cpu_family model model_name stepping flags Features CPU_implementer "
                                "CPU_architecture CPU_variant CPU_part CPU_revision isa uarch cpu revision machine";
    char text[PROCESSOR_BYTES + 1], name[32], *path = gpuhal_text_format("%s/proc/cpuinfo", root);
    gpuhal_text lines = {.failed = !path};
    size_t bytes = 0;
    if (path && gpuhal_os_kernel_file_read(-1, path, text, PROCESSOR_BYTES, &bytes) != 0) {
        bytes = 0;
    }
    text[bytes] = 0;
    for (char *line = text; *line && *line != '\n';) { /* an empty line ends the first processor */
        const size_t length = strcspn(line, "\n"), end = strcspn(line, "\t:\n");
        snprintf(name, sizeof name, "%.*s", (int)end, line);
        for (char *blank = name; (blank = strchr(blank, ' '));) {
            *blank = '_';
        }
        if (is_word_of(words, name, strlen(name))) {
            gpuhal_text_printf(&lines, "%.*s\n", (int)length, line);
        }
        line += length + (line[length] == '\n');
    }
    free(path);
    char *processor = lines.failed ? NULL : gpuhal_text_take(&lines);
    gpuhal_text_finish(&lines);
    return processor;
}

/* Adds the processor, for drivers that compile for the processor. The cache may be in a home directory that several
 * machines share. */
static void add_processor(gpuhal_device *device, __attribute__((unused)) const gpuhal_code *code, gpuhal_text *to)
{
    gpuhal *gpu = device->gpu;
    char *processor = atomic_load(&gpu->processor), *other = NULL;
    if (!processor) {
        processor = read_processor(gpu->settings.system_root);
        if (!atomic_compare_exchange_strong(&gpu->processor, &other, processor)) {
            free(processor);
            processor = other;
        }
    }
    gpuhal_text_printf(to, "%s", processor ? processor : "");
    to->failed = to->failed || !processor;
}

static void add_format(__attribute__((unused)) gpuhal_device *device, const gpuhal_code *code, gpuhal_text *to)
{
    gpuhal_text_printf(to, "%s", code->format);
}

static void add_target(__attribute__((unused)) gpuhal_device *device, const gpuhal_code *code, gpuhal_text *to)
{
    gpuhal_text_printf(to, "%s", code->target ? code->target : "");
}

static void add_options(__attribute__((unused)) gpuhal_device *device, const gpuhal_code *code, gpuhal_text *to)
{
    gpuhal_text_printf(to, "%s", code->options ? code->options : "");
}

static void add_code(__attribute__((unused)) gpuhal_device *device, const gpuhal_code *code, gpuhal_text *to)
{
    gpuhal_text_append(to, code->code, (size_t)code->bytes);
}

/* The differences in the environment come first. */
static const struct way {
    const char *name;
    void (*add)(gpuhal_device *device, const gpuhal_code *code, gpuhal_text *to);
} ways[] = {
    [GPUHAL_WAY_LIBRARY] = {"library", add_library},       [GPUHAL_WAY_PLUGIN] = {"plugin", add_plugin},
    [GPUHAL_WAY_DRIVER] = {"driver", add_driver},          [GPUHAL_WAY_DEVICE] = {"device", add_device},
    [GPUHAL_WAY_PROCESSOR] = {"processor", add_processor}, [GPUHAL_WAY_VARIABLES] = {"variables", add_variables},
    [GPUHAL_WAY_FORMAT] = {"format", add_format},          [GPUHAL_WAY_TARGET] = {"target", add_target},
    [GPUHAL_WAY_OPTIONS] = {"options", add_options},       [GPUHAL_WAY_CODE] = {"code", add_code}};

/* Adds each entry with its size, so that different lists never result in the same text. */
static void add_ways(gpuhal_device *device, const gpuhal_code *code, unsigned from, unsigned end, gpuhal_text *to)
{
    for (unsigned i = from; i < end; i++) {
        gpuhal_text value = {0};
        ways[i].add(device, code, &value);
        gpuhal_text_printf(to, "%s %zu\n", ways[i].name, value.length);
        gpuhal_text_append(to, gpuhal_text_get(&value), value.length);
        gpuhal_text_printf(to, "\n");
        to->failed = to->failed || value.failed;
        gpuhal_text_finish(&value);
    }
}

void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key)
{
    char why[GPUHAL_WHY_OPEN_BYTES];
    *out_key = (gpuhal_program_key){0};
    if (!device->gpu->settings.program_cache || !device->programs.program_compiled) {
        return;
    }
    if (!gpuhal_code_is_self_contained(code, why)) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_INFO, "%s: the compiled program is not kept: %s", device->id,
                        why);
        return;
    }
    gpuhal_text text = {0};
    add_ways(device, code, 0, GPUHAL_WAYS_AROUND, &text);
    out_key->around_bytes = text.length;
    add_ways(device, code, GPUHAL_WAYS_AROUND, GPUHAL_WAYS, &text);
    out_key->bytes = text.length;
    out_key->text = text.failed ? NULL : gpuhal_text_take(&text);
    gpuhal_text_finish(&text);
}

bool gpuhal_program_key_is_current(gpuhal_device *device, const gpuhal_program_key *key)
{
    gpuhal_text text = {0};
    add_ways(device, NULL, 0, GPUHAL_WAYS_AROUND, &text);
    const bool same =
        !text.failed && text.length == key->around_bytes && memcmp(gpuhal_text_get(&text), key->text, text.length) == 0;
    gpuhal_text_finish(&text);
    return same;
}

void gpuhal_program_key_finish(gpuhal_program_key *key)
{
    free(key->text);
    *key = (gpuhal_program_key){0};
}
