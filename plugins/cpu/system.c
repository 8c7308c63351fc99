/* cpu/system.c: reads /proc and /sys.
 *
 * Files are read completely, except for long files (/proc/cpuinfo), whose beginning is enough. The contents are stored
 * on the heap, since this code runs on the stack of the library's caller. Nothing is cached between calls. Control
 * groups may limit memory and processors at any level of their hierarchy, so all levels are read.
 */
#include "system.h"

#include "../common/file.h"

#include <gpuhal/types.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define TEXT_BYTES 8192
#define PATH_BYTES 768
/* Control groups version 1 report a number slightly below 2^63 if there is no limit. */
#define NO_LIMIT (UINT64_C(1) << 62)

static size_t read_file(const char *root, const char *path, char *text, size_t size)
{
    char full[PATH_BYTES];
    int length = snprintf(full, sizeof full, "%s%s", root, path);
    int file = length > 0 && (size_t)length < sizeof full ? gpuhal_plugin_open_plain(full) : -1;
    if (file < 0) {
        return 0;
    }
    size_t used = 0;
    ssize_t got;
    while (used < size && (got = read(file, text + used, size - used)) > 0) {
        used += (size_t)got;
    }
    close(file);
    return used;
}

/* Returns the contents of root + path, or NULL if the file is empty, missing or unreadable, or if out of memory. Owner:
 * caller, free(). */
static char *read_text(const char *root, const char *path)
{
    char *text = malloc(TEXT_BYTES);
    const size_t used = text != NULL ? read_file(root, path, text, TEXT_BYTES - 1) : 0;
    if (used == 0) {
        free(text);
        return NULL;
    }
    text[used] = '\0';
    return text;
}

/* Finds the line that begins with @p key followed by blanks or a colon. Returns its value, which is not terminated, or
 * NULL. */
static const char *find_line(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n'), line = line != NULL ? line + 1 : NULL) {
        if (strncmp(line, key, length) != 0 || strchr(" \t:", line[length]) == NULL || line[length] == '\0') {
            continue;
        }
        return line + length + strspn(line + length, " \t:");
    }
    return NULL;
}

/* Copies the value of the line with @p key, without trailing blanks. Truncates the value if it does not fit. */
static bool copy_line(const char *text, const char *key, char *to, size_t size)
{
    const char *value = find_line(text, key);
    if (!value) {
        return false;
    }
    int length = (int)strcspn(value, "\n");
    while (length > 0 && value[length - 1] == ' ') {
        length--;
    }
    snprintf(to, size, "%.*s", length, value);
    return to[0] != '\0';
}

/* Parses the number at the beginning of @p text, which may be NULL. */
static bool parse_number(const char *text, uint64_t *out_number)
{
    if (text == NULL || *text < '0' || *text > '9') {
        return false;
    }
    *out_number = strtoull(text, NULL, 10);
    return true;
}

static bool read_number(const char *root, const char *path, uint64_t *out_number)
{
    char *text = read_text(root, path);
    const bool known = parse_number(text, out_number);
    free(text);
    return known;
}

char *gpuhal_cpu_system_text(const char *root, const char *path)
{
    return read_text(root, path);
}

bool gpuhal_cpu_system_number(const char *root, const char *path, uint64_t *out_number)
{
    errno = 0;
    return read_number(root, path, out_number);
}

/* File names, which differ between the two versions of control groups. */
typedef struct group_version {
    const char *mount, *limit, *used, *caches[2];
} group_version;

static const group_version version_1 = {"/sys/fs/cgroup/memory",
                                        "memory.limit_in_bytes",
                                        "memory.usage_in_bytes",
                                        {"total_inactive_file", "total_active_file"}};
static const group_version version_2 = {
    "/sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}};
static const group_version version_2_hybrid = {
    "/sys/fs/cgroup/unified", "memory.max", "memory.current", {"inactive_file", "active_file"}};

/* The files for processors contain the time that a group may use in a period, and the period. */
static const group_version processors_1 = {"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us", {NULL, NULL}};
static const group_version processors_2 = {"/sys/fs/cgroup", "cpu.max", NULL, {NULL, NULL}};
static const group_version processors_2_hybrid = {"/sys/fs/cgroup/unified", "cpu.max", NULL, {NULL, NULL}};

/* A resource that control groups limit. `narrow` applies the limit of one group to @p bound. */
typedef struct group_limit {
    const char *controller; /* its name in version 1, between commas */
    const group_version *version_1, *version_2, *version_2_hybrid;
    void (*narrow)(const char *root, const group_version *version, const char *group, void *bound);
} group_limit;

/* @p group is "" for the topmost group. */
static bool group_path(const group_version *version, const char *group, const char *file, char path[PATH_BYTES])
{
    int length = snprintf(path, PATH_BYTES, "%s%s/%s", version->mount, group, file);
    return length > 0 && (size_t)length < PATH_BYTES;
}

static bool group_number(const char *root, const group_version *version, const char *group, const char *file,
                         uint64_t *out_number)
{
    char path[PATH_BYTES];
    return group_path(version, group, file, path) && read_number(root, path, out_number);
}

/* Returns the size of cached file contents. A group counts them as used, but they can be reclaimed; MemAvailable also
 * counts them as available. */
static uint64_t group_cached(const char *root, const group_version *version, const char *group)
{
    char path[PATH_BYTES];
    uint64_t cached = 0, part;
    char *text = group_path(version, group, "memory.stat", path) ? read_text(root, path) : NULL;
    for (int i = 0; text != NULL && i < 2; i++) {
        cached += parse_number(find_line(text, version->caches[i]), &part) ? part : 0;
    }
    free(text);
    return cached;
}

static void narrow_memory(const char *root, const group_version *version, const char *group, void *bound)
{
    gpuhal_cpu_memory *memory = bound;
    uint64_t limit, used;
    if (!group_number(root, version, group, version->limit, &limit)) {
        return; /* "max" means no limit */
    }
    if (limit < memory->total) {
        memory->total = limit;
        memory->of_group = true;
    }
    if (limit >= NO_LIMIT || !group_number(root, version, group, version->used, &used)) {
        return;
    }
    const uint64_t cached = group_cached(root, version, group);
    used = used > cached ? used - cached : 0;
    uint64_t room = limit > used ? limit - used : 0;
    if (room < memory->free) {
        memory->free = room;
        memory->of_group = true;
    }
}

/* Rounds up, because with a quota of 1.5 processors two threads are faster than one thread. */
static void narrow_processors(const char *root, const group_version *version, const char *group, void *bound)
{
    uint32_t *processors = bound;
    uint64_t quota = 0, period = 0;
    char path[PATH_BYTES];
    char *text = group_path(version, group, version->limit, path) ? read_text(root, path) : NULL;
    bool limited = parse_number(text, &quota); /* "max" or -1 means no limit */
    if (limited && version->used != NULL) {
        limited = group_number(root, version, group, version->used, &period);
    } else if (limited) {
        const char *blank = strchr(text, ' ');
        limited = parse_number(blank != NULL ? blank + 1 : NULL, &period);
    }
    free(text);
    if (limited && period > 0 && quota / period < *processors) {
        const uint32_t whole = (uint32_t)(quota / period) + (quota % period != 0);
        *processors = whole > 0 ? whole : 1;
    }
}

static const group_limit memory_limit = {",memory,", &version_1, &version_2, &version_2_hybrid, narrow_memory};
static const group_limit processor_limit = {",cpu,", &processors_1, &processors_2, &processors_2_hybrid,
                                            narrow_processors};

/* In a container the upper part of the path is often not visible. Missing levels are skipped, and the group at the
 * mount point is the container's own group. */
static void bound_by_groups(const char *root, const group_limit *limit, const group_version *version, const char *line,
                            void *bound)
{
    char group[PATH_BYTES];
    int length = snprintf(group, sizeof group, "%.*s", (int)strcspn(line, "\n"), line);
    if (length <= 1 || (size_t)length >= sizeof group || strstr(group, "/..") != NULL) {
        group[0] = '\0';
    }
    for (char *cut = group + strlen(group); cut != NULL; cut = strrchr(group, '/')) {
        *cut = '\0';
        limit->narrow(root, version, group, bound);
    }
}

/* Parses /proc/self/cgroup: "0::/path" for version 2, "4:cpu,memory:/path" for version 1. */
static void bound_by_control_groups(const char *root, const group_limit *limit, void *bound)
{
    char *text = read_text(root, "/proc/self/cgroup");
    for (const char *line = text; line != NULL; line = strchr(line, '\n'), line = line != NULL ? line + 1 : NULL) {
        const char *controllers = strchr(line, ':');
        const char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (!path) {
            break;
        }
        char list[256];
        snprintf(list, sizeof list, ",%.*s,", (int)(path - controllers - 1), controllers + 1);
        if (strcmp(list, ",,") == 0) {
            bound_by_groups(root, limit, limit->version_2, path + 1, bound);
            bound_by_groups(root, limit, limit->version_2_hybrid, path + 1, bound);
        } else if (strstr(list, limit->controller) != NULL) {
            bound_by_groups(root, limit, limit->version_1, path + 1, bound);
        }
    }
    free(text);
}

static bool read_meminfo(const char *root, gpuhal_cpu_memory *out_memory)
{
    uint64_t total = 0, available = 0;
    char *text = read_text(root, "/proc/meminfo");
    const bool known = text != NULL && parse_number(find_line(text, "MemTotal"), &total) &&
                       (parse_number(find_line(text, "MemAvailable"), &available) ||
                        parse_number(find_line(text, "MemFree"), &available));
    free(text);
    if (known) {
        *out_memory = (gpuhal_cpu_memory){.total = total << 10, .free = available << 10};
    }
    return known;
}

/* Uses sysinfo(), because in some services /proc is missing or does not contain meminfo (systemd: ProcSubset=pid).
 * sysinfo() does not count reclaimable caches as free. */
static bool ask_kernel(gpuhal_cpu_memory *out_memory)
{
    struct sysinfo info;
    if (sysinfo(&info)) {
        return false;
    }
    *out_memory = (gpuhal_cpu_memory){.total = (uint64_t)info.totalram * info.mem_unit,
                                      .free = ((uint64_t)info.freeram + info.bufferram) * info.mem_unit};
    return true;
}

bool gpuhal_cpu_system_memory(const char *root, gpuhal_cpu_memory *out_memory)
{
    if (!read_meminfo(root, out_memory) && !ask_kernel(out_memory)) {
        return false;
    }
    bound_by_control_groups(root, &memory_limit, out_memory);
    if (out_memory->free > out_memory->total) {
        out_memory->free = out_memory->total;
    }
    return true;
}

/* ARM processors report numbers instead of names. */
static const struct {
    const char *implementer, *vendor;
} arm_vendors[] = {
    {"0x41", "Arm"},    {"0x42", "Broadcom"},  {"0x43", "Cavium"},   {"0x46", "Fujitsu"}, {"0x48", "HiSilicon"},
    {"0x4e", "NVIDIA"}, {"0x50", "APM"},       {"0x51", "Qualcomm"}, {"0x53", "Samsung"}, {"0x56", "Marvell"},
    {"0x61", "Apple"},  {"0x6d", "Microsoft"}, {"0xc0", "Ampere"},
};
static const struct {
    const char *part, *name;
} arm_parts[] = {
    {"0xd03", "Cortex-A53"},  {"0xd07", "Cortex-A57"},  {"0xd08", "Cortex-A72"},  {"0xd0b", "Cortex-A76"},
    {"0xd0c", "Neoverse-N1"}, {"0xd40", "Neoverse-V1"}, {"0xd49", "Neoverse-N2"}, {"0xd4f", "Neoverse-V2"},
};

/* Sets the vendor, and the name if it is still empty. Each implementer has its own part numbers; the part numbers in
 * the table are Arm's. */
static void name_arm(const char *text, gpuhal_cpu_processor *processor)
{
    char implementer[16], part[16];
    if (!copy_line(text, "CPU implementer", implementer, sizeof implementer)) {
        return;
    }
    for (size_t i = 0; i < sizeof arm_vendors / sizeof arm_vendors[0]; i++) {
        if (strcmp(implementer, arm_vendors[i].implementer) == 0) {
            snprintf(processor->vendor, sizeof processor->vendor, "%s", arm_vendors[i].vendor);
        }
    }
    if (processor->name[0] != '\0' || !copy_line(text, "CPU part", part, sizeof part)) {
        return;
    }
    const char *vendor = processor->vendor[0] != '\0' ? processor->vendor : "ARM processor";
    snprintf(processor->name, sizeof processor->name, "%s part %s", vendor, part);
    for (size_t i = 0; strcmp(implementer, "0x41") == 0 && i < sizeof arm_parts / sizeof arm_parts[0]; i++) {
        if (strcmp(part, arm_parts[i].part) == 0) {
            snprintf(processor->name, sizeof processor->name, "%s %s", vendor, arm_parts[i].name);
        }
    }
}

void gpuhal_cpu_system_processor(const char *root, gpuhal_cpu_processor *out_processor)
{
    static const char *const name_keys[] = {"model name", "cpu model", "uarch", "cpu"}; /* x86, MIPS, RISC-V, POWER */
    char *text = read_text(root, "/proc/cpuinfo");
    *out_processor = (gpuhal_cpu_processor){.name = "", .vendor = ""};
    if (!text) {
        return;
    }
    for (size_t i = 0; i < sizeof name_keys / sizeof name_keys[0] && out_processor->name[0] == '\0'; i++) {
        (void)copy_line(text, name_keys[i], out_processor->name, sizeof out_processor->name);
    }
    if (copy_line(text, "vendor_id", out_processor->vendor, sizeof out_processor->vendor)) {
        if (strcmp(out_processor->vendor, "AuthenticAMD") == 0) {
            snprintf(out_processor->vendor, sizeof out_processor->vendor, "AMD");
        }
        if (strcmp(out_processor->vendor, "GenuineIntel") == 0) {
            snprintf(out_processor->vendor, sizeof out_processor->vendor, "Intel");
        }
    }
    name_arm(text, out_processor);
    free(text);
}

bool gpuhal_cpu_system_clock(const char *root, uint32_t cpus, uint64_t *out_hertz)
{
    const uint32_t asked[2] = {0, cpus > 0 ? cpus - 1 : 0};
    uint64_t highest = 0, kilohertz;
    for (int i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpufreq/cpuinfo_max_freq", asked[i]);
        if (read_number(root, path, &kilohertz) && kilohertz > highest) {
            highest = kilohertz;
        }
    }
    *out_hertz = highest * 1000;
    return highest > 0;
}

bool gpuhal_cpu_system_node(const char *root, uint64_t *out_node)
{
    char *text = read_text(root, "/sys/devices/system/node/has_memory");
    const bool one = parse_number(text, out_node) && strpbrk(text, ",-") == NULL;
    free(text);
    return one;
}

bool gpuhal_cpu_system_release(const char *root, char *out_text, size_t size)
{
    char *text = read_text(root, "/proc/sys/kernel/osrelease");
    snprintf(out_text, size, "%.*s", text != NULL ? (int)strcspn(text, "\n") : 0, text != NULL ? text : "");
    free(text);
    return out_text[0] != '\0';
}

/* Returns the number of elements in a list such as "0-3,8". */
static uint32_t count_list(const char *at)
{
    uint32_t count = 0;
    while (*at >= '0' && *at <= '9') {
        char *end;
        const unsigned long first = strtoul(at, &end, 10);
        const unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;
        count += last >= first && last - first < UINT16_MAX ? (uint32_t)(last - first) + 1 : 0;
        at = end + (*end == ',');
    }
    return count;
}

uint32_t gpuhal_cpu_system_affinity(const char *root)
{
    char *online = root[0] != '\0' ? read_text(root, "/sys/devices/system/cpu/online") : NULL;
    const uint32_t listed = online != NULL ? count_list(online) : 0;
    free(online);
    if (listed > 0) {
        return listed;
    }
    /* The mask must be as large as the kernel's mask, but no call returns this size. Grow the mask until it is large
     * enough. */
    for (size_t cpus = 1024; cpus <= 1024 * 64; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set) {
            break;
        }
        size_t size = CPU_ALLOC_SIZE(cpus);
        int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (count > 0) {
            return (uint32_t)count;
        }
    }
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}

uint32_t gpuhal_cpu_system_processors(const char *root)
{
    uint32_t processors = gpuhal_cpu_system_affinity(root);
    bound_by_control_groups(root, &processor_limit, &processors);
    return processors;
}

static bool has_flag(const char *flags, const char *flag)
{
    const size_t length = strlen(flag), end = strcspn(flags, "\n");
    for (const char *at = strstr(flags, flag); at != NULL && (size_t)(at - flags) < end; at = strstr(at + 1, flag)) {
        if (at[-1] == ' ' && (at[length] == ' ' || at[length] == '\n' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* The line "flags" (x86) or "Features" (Arm) lists the instruction set extensions. */
uint32_t gpuhal_cpu_system_data_types(const char *root)
{
    static const struct {
        const char *flag;
        uint32_t type;
    } known[] = {
        {"avx512_fp16", GPUHAL_DATA_FP16},     {"fphp", GPUHAL_DATA_FP16},        {"avx512_bf16", GPUHAL_DATA_BF16},
        {"amx_bf16", GPUHAL_DATA_BF16},        {"bf16", GPUHAL_DATA_BF16},        {"avx_vnni", GPUHAL_DATA_INT8_DOT},
        {"avx512_vnni", GPUHAL_DATA_INT8_DOT}, {"asimddp", GPUHAL_DATA_INT8_DOT},
    };
    uint32_t types = GPUHAL_DATA_FP64 | GPUHAL_DATA_INT8 | GPUHAL_DATA_INT16 | GPUHAL_DATA_INT64;
    char *text = read_text(root, "/proc/cpuinfo");
    const char *flags = text != NULL ? find_line(text, "flags") : NULL;
    flags = text != NULL && flags == NULL ? find_line(text, "Features") : flags;
    for (size_t i = 0; flags != NULL && i < sizeof known / sizeof known[0]; i++) {
        types |= has_flag(flags, known[i].flag) ? known[i].type : 0;
    }
    free(text);
    return types;
}
