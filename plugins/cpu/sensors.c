/* cpu/sensors.c: see sensors.h. The kernel numbers hwmon, thermal and powercap devices in the order of discovery, so
 * each device is identified by the name in its directory. */
#include "sensors.h"
#include "system.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDERS_MAX    64u
#define PROCESSORS_MAX 4096u
#define HOTTEST        UINT64_C(200000)

static gpuhal_cpu_reading missing(gpuhal_missing reason, const char *why)
{
    return (gpuhal_cpu_reading){.reason = reason, .why = why};
}

static gpuhal_cpu_reading given(uint64_t value, const char *source)
{
    return (gpuhal_cpu_reading){.value = value, .source = source};
}

/* Returns whether a line equals @p wanted. A star at the end of @p wanted matches any text. */
static bool is_like(const char *line, const char *wanted)
{
    const size_t length = strcspn(wanted, "*");
    return strncmp(line, wanted, length) == 0 &&
           (wanted[length] == '*' || line[length] == '\n' || line[length] == '\0');
}

static bool says(const char *root, const char *path, const char *wanted)
{
    char *text = gpuhal_cpu_system_text(root, path);
    const bool same = text != NULL && is_like(text, wanted);
    free(text);
    return same;
}

/* Numbered directories of one kind, such as "hwmon3", each with the contents of its name file. */
typedef struct folders {
    unsigned count;
    struct {
        unsigned number;
        char name[24];
    } list[FOLDERS_MAX];
} folders;

static void name_folder(const char *root, const char *path, char to[24])
{
    char *text = gpuhal_cpu_system_text(root, path);
    snprintf(to, 24, "%s", text != NULL ? text : "");
    free(text);
}

/* Lists the existing directories. Trying every number up to the largest would cost more than reading the values. */
static void list_folders(const char *root, const char *where, const char *prefix, const char *file, folders *out)
{
    char path[PATH_MAX];
    const size_t length = strlen(prefix);
    snprintf(path, sizeof path, "%s%s", root, where);
    DIR *directory = opendir(path);
    out->count = 0;
    for (const struct dirent *entry; directory != NULL && out->count < FOLDERS_MAX && (entry = readdir(directory));) {
        unsigned number;
        int end = 0;
        if (strncmp(entry->d_name, prefix, length) != 0 || sscanf(entry->d_name + length, "%u%n", &number, &end) != 1 ||
            entry->d_name[length + (size_t)end] != '\0') {
            continue;
        }
        out->list[out->count].number = number;
        if (file != NULL) {
            snprintf(path, sizeof path, "%s/%s%u/%s", where, prefix, number, file);
            name_folder(root, path, out->list[out->count].name);
        }
        out->count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

/* ---- clock */

/* Reads the mean of the clock frequencies that the kernel last observed, if it controls the clock (cpufreq). The files
 * contain kilohertz. */
static bool read_cpufreq(const char *root, uint64_t *out_hertz)
{
    uint64_t sum = 0, count = 0, kilohertz;
    char path[96];
    for (unsigned cpu = 0; cpu < PROCESSORS_MAX; cpu++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", cpu);
        if (gpuhal_cpu_system_number(root, path, &kilohertz)) {
            sum += kilohertz;
            count++;
        } else if (errno == ENOENT) {
            break;
        }
    }
    *out_hertz = count > 0 ? sum * 1000 / count : 0;
    return count > 0;
}

/* Reads lines such as "cpu MHz : 2100.000" on x86. The beginning of the file contains the first processors. */
static bool read_cpuinfo(const char *root, uint64_t *out_hertz)
{
    char *text = gpuhal_cpu_system_text(root, "/proc/cpuinfo");
    double sum = 0;
    unsigned count = 0;
    for (const char *at = text; at && (at = strstr(at, "cpu MHz")) != NULL; at++) {
        const char *colon = strchr(at, ':');
        const double megahertz = colon ? strtod(colon + 1, NULL) : 0;
        if (megahertz > 0 && megahertz < 100000) {
            sum += megahertz;
            count++;
        }
    }
    free(text);
    *out_hertz = count > 0 ? (uint64_t)(sum / count * 1e6) : 0;
    return count > 0;
}

gpuhal_cpu_reading gpuhal_cpu_read_clock(const char *root)
{
    uint64_t hertz = 0;
    if (read_cpufreq(root, &hertz)) {
        return given(hertz, "sysfs");
    }
    if (read_cpuinfo(root, &hertz)) {
        return given(hertz, "proc");
    }
    return missing(GPUHAL_MISSING_NOT_SUPPORTED, "neither cpufreq nor /proc/cpuinfo has a clock");
}

/* ---- temperature */

static const struct {
    const char *driver, *label; /* "" means any sensor */
} chips[] = {
    {"coretemp", "Package id*"}, {"k10temp", "Tdie"},  {"k10temp", "Tctl"},
    {"zenpower", "Tdie"},        {"zenpower", "Tctl"}, {"cpu_thermal", ""},
};

static bool read_chip(const char *root, unsigned chip, const char *label, uint64_t *out_value)
{
    bool found = false;
    for (unsigned sensor = 1; sensor < 9; sensor++) {
        char input[96], named[96];
        uint64_t value = 0;
        snprintf(named, sizeof named, "/sys/class/hwmon/hwmon%u/temp%u_label", chip, sensor);
        snprintf(input, sizeof input, "/sys/class/hwmon/hwmon%u/temp%u_input", chip, sensor);
        if ((label[0] == '\0' || says(root, named, label)) && gpuhal_cpu_system_number(root, input, &value) &&
            value <= HOTTEST && (!found || value > *out_value)) {
            *out_value = value;
            found = true;
        }
    }
    return found;
}

/* Reads the highest temperature of the sensors with this label on all chips named @p driver. */
static bool read_hwmon(const char *root, const folders *all, const char *driver, const char *label, uint64_t *out_value)
{
    bool found = false;
    for (unsigned i = 0; i < all->count; i++) {
        uint64_t value = 0;
        if (is_like(all->list[i].name, driver) && read_chip(root, all->list[i].number, label, &value) &&
            (!found || value > *out_value)) {
            *out_value = value;
            found = true;
        }
    }
    return found;
}

static bool read_zone(const char *root, const folders *all, const char *type, uint64_t *out_value)
{
    char path[96];
    bool found = false;
    for (unsigned i = 0; i < all->count; i++) {
        uint64_t value = 0;
        snprintf(path, sizeof path, "/sys/class/thermal/thermal_zone%u/temp", all->list[i].number);
        if (is_like(all->list[i].name, type) && gpuhal_cpu_system_number(root, path, &value) && value <= HOTTEST &&
            (!found || value > *out_value)) {
            *out_value = value;
            found = true;
        }
    }
    return found;
}

gpuhal_cpu_reading gpuhal_cpu_read_temperature(const char *root)
{
    static const char *const zones[] = {"x86_pkg_temp", "cpu-thermal", "cpu_thermal", "cpu0-thermal"};
    uint64_t value = 0;
    folders all;
    list_folders(root, "/sys/class/hwmon", "hwmon", "name", &all);
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++) {
        if (read_hwmon(root, &all, chips[i].driver, chips[i].label, &value)) {
            return given(value, "hwmon");
        }
    }
    list_folders(root, "/sys/class/thermal", "thermal_zone", "type", &all);
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        if (read_zone(root, &all, zones[i], &value)) {
            return given(value, "sysfs");
        }
    }
    return missing(GPUHAL_MISSING_NOT_SUPPORTED, "the kernel has no sensor of the processor here");
}

/* ---- energy and power */

#define PACKAGE "/sys/class/powercap/intel-rapl:%u/"

/* AMD processors use the same names as Intel. Other zones (psys) are skipped, because they would count the packages'
 * energy again. */
static void list_packages(const char *root, folders *out)
{
    list_folders(root, "/sys/class/powercap", "intel-rapl:", "name", out);
    unsigned count = 0;
    for (unsigned i = 0; i < out->count; i++) {
        if (is_like(out->list[i].name, "package-*") && out->list[i].number < GPUHAL_CPU_PACKAGES_MAX) {
            out->list[count++] = out->list[i];
        }
    }
    out->count = count;
}

/* Adds the energy that the package used since the previous reading. If several threads read at the same time, each
 * thread adds a different interval. */
static void add_energy(gpuhal_cpu_counters *counters, unsigned package, uint64_t now, uint64_t range)
{
    uint64_t before = atomic_load(&counters->energy_last[package]);
    while (!atomic_compare_exchange_weak(&counters->energy_last[package], &before, now + 1)) {
    }
    const uint64_t last = before > 0 ? before - 1 : 0;
    atomic_fetch_add(&counters->energy, now >= last ? now - last : range > last ? range - last + now : 0);
}

static gpuhal_cpu_reading read_energy(const char *root, const folders *packages, gpuhal_cpu_counters *counters)
{
    gpuhal_cpu_reading none = missing(GPUHAL_MISSING_NOT_SUPPORTED, "the kernel has no energy counter (RAPL) here");
    bool any = false;
    for (unsigned i = 0; i < packages->count; i++) {
        char path[96];
        uint64_t now = 0, range = 0;
        const unsigned zone = packages->list[i].number;
        snprintf(path, sizeof path, PACKAGE "energy_uj", zone);
        if (!gpuhal_cpu_system_number(root, path, &now)) {
            none = errno == EACCES || errno == EPERM
                       ? missing(GPUHAL_MISSING_NO_PERMISSION, "energy_uj of RAPL may be read by root only: chmod a+r")
                       : none;
            continue;
        }
        snprintf(path, sizeof path, PACKAGE "max_energy_range_uj", zone);
        (void)gpuhal_cpu_system_number(root, path, &range);
        add_energy(counters, zone, now, range);
        any = true;
    }
    return any ? given(atomic_load(&counters->energy), "rapl") : none;
}

static gpuhal_cpu_reading read_power_limit(const char *root, const folders *packages)
{
    uint64_t sum = 0, limit = 0;
    for (unsigned i = 0; i < packages->count; i++) {
        char path[96];
        snprintf(path, sizeof path, PACKAGE "constraint_0_power_limit_uw", packages->list[i].number);
        if (gpuhal_cpu_system_number(root, path, &limit)) {
            sum += limit;
        }
    }
    return sum > 0 ? given(sum, "rapl")
                   : missing(GPUHAL_MISSING_NOT_SUPPORTED, "the kernel has no power limit (RAPL) here");
}

void gpuhal_cpu_read_energy(const char *root, gpuhal_cpu_counters *counters, gpuhal_cpu_reading *out_energy,
                            gpuhal_cpu_reading *out_limit)
{
    folders packages;
    list_packages(root, &packages);
    *out_energy = read_energy(root, &packages, counters);
    *out_limit = read_power_limit(root, &packages);
}

/* ---- memory errors */

static gpuhal_cpu_reading sum_of(const char *root, const folders *controllers, const char *file)
{
    uint64_t sum = 0, count = 0;
    bool any = false;
    for (unsigned i = 0; i < controllers->count; i++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/edac/mc/mc%u/%s", controllers->list[i].number, file);
        if (gpuhal_cpu_system_number(root, path, &count)) {
            sum += count;
            any = true;
        }
    }
    return any ? given(sum, "sysfs")
               : missing(GPUHAL_MISSING_NOT_SUPPORTED, "the kernel counts no memory errors here (EDAC)");
}

void gpuhal_cpu_read_ecc(const char *root, gpuhal_cpu_reading *out_corrected, gpuhal_cpu_reading *out_uncorrected)
{
    folders controllers;
    list_folders(root, "/sys/devices/system/edac/mc", "mc", NULL, &controllers);
    *out_corrected = sum_of(root, &controllers, "ce_count");
    *out_uncorrected = sum_of(root, &controllers, "ue_count");
}
