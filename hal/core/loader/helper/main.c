/* loader/helper/main.c: the helper program. It probes one plugin in a separate process and reports to its parent
 * through a stream.
 *
 *     gpuhal-helper PROTOCOL NAME FILE LOG_LEVEL IGNORE_ENVIRONMENT PARENT OPTIONS SETTINGS
 *
 * A fault in the plugin ends only this process. The process exits without running exit handlers, because drivers may
 * have registered some.
 */
#include "base/log.h"
#include "base/records.h"
#include "base/text.h"
#include "loader/load_context.h"
#include "loader/backend.h"
#include "loader/manifest.h"
#include "loader/stream.h"
#include "os/os.h"
#include "registry/key.h"

#include <string.h>

#define LOG_BYTES_MAX (256u << 10)

/* serialises the records of different threads, and protects log_bytes */
static gpuhal_mutex stream_mutex = GPUHAL_MUTEX_INITIALIZER;
static size_t log_bytes;
static size_t device_count; /* number of devices sent */

static void send_bytes(const char *bytes, size_t count)
{
    if (!gpuhal_os_helper_send(bytes, count)) {
        gpuhal_os_helper_exit(GPUHAL_HELPER_EXIT_UNHEARD);
    }
}

static void send_records(gpuhal_text *records)
{
    if (records->failed) {
        gpuhal_os_helper_exit(GPUHAL_HELPER_EXIT_HUNGRY);
    }
    gpuhal_mutex_lock(&stream_mutex);
    send_bytes("\n", 1);
    send_bytes(gpuhal_text_get(records), records->length);
    gpuhal_mutex_unlock(&stream_mutex);
    gpuhal_text_finish(records);
}

static void send_stage(void *user, gpuhal_plugin_stage stage)
{
    const gpuhal_load_context *load = user;
    gpuhal_text records = {0};
    if (stage == GPUHAL_STAGE_START && load->version) {
        gpuhal_stream_write_version(&records, load->version);
    }
    gpuhal_stream_write_stage(&records, stage);
    send_records(&records);
}

static void send_driver(__attribute__((unused)) void *user, const char *path)
{
    gpuhal_text records = {0};
    gpuhal_stream_write_library(&records, path);
    send_records(&records);
}

/* Limits the total number of bytes, so that log lines cannot fill the stream. */
static void send_log(__attribute__((unused)) void *user, int32_t level, const char *line)
{
    gpuhal_mutex_lock(&stream_mutex);
    log_bytes += strlen(line) + 32;
    bool fits = log_bytes <= LOG_BYTES_MAX;
    gpuhal_mutex_unlock(&stream_mutex);
    if (fits) {
        gpuhal_text records = {0};
        gpuhal_stream_write_log(&records, level, line);
        send_records(&records);
    }
}

/* Async-signal-safe, because it takes no lock and allocates nothing. */
static bool send_crash(int signal_number)
{
    char record[] = "\n[crash]\nsignal = 000\n";
    size_t digits = sizeof record - 5;
    record[digits] = (char)('0' + signal_number / 100 % 10);
    record[digits + 1] = (char)('0' + signal_number / 10 % 10);
    record[digits + 2] = (char)('0' + signal_number % 10);
    return gpuhal_os_helper_send(record, sizeof record - 1);
}

/* Sends each device immediately, so that the device arrives even if the driver hangs at the next device. */
static void send_device(__attribute__((unused)) void *user, const gpuhal_listed_device *device)
{
    gpuhal_text records = {0};
    gpuhal_stream_write_device(&records, device);
    send_records(&records);
    device_count++;
}

/* Sends the mapped files with the result. The result stays cached while the files are unchanged, and is not cached
 * without them. Running out of memory is not a result of the plugin. */
static void send_result(const gpuhal_load_context *load, bool good)
{
    gpuhal_text records = {0};
    gpuhal_texts mapped;
    if (!good && load->state == GPUHAL_PLUGIN_NOT_PROBED) {
        gpuhal_os_helper_exit(GPUHAL_HELPER_EXIT_HUNGRY);
    }
    gpuhal_key_mapped_files(&mapped);
    if (!mapped.failed) {
        gpuhal_stream_write_mapped(&records, &mapped);
    }
    gpuhal_texts_finish(&mapped);
    gpuhal_stream_write_end(&records, load, good, device_count);
    send_records(&records);
}

static void probe(char *name, char *file, char *options, uint32_t log_level, bool ignore_environment)
{
    gpuhal_candidate candidate = {.name = name, .file = file, .options = *options ? options : NULL};
    gpuhal_load_context load = {
        .name = name,
        .log = gpuhal_log_create(send_log, NULL, log_level, false),
        .ignore_environment = ignore_environment,
        .on_stage = send_stage,
        .on_driver = send_driver,
        .on_device = send_device,
        .user = &load,
    };
    gpuhal_backend *backend = NULL;
    bool good = gpuhal_backend_obtain(&load, &candidate, &backend);
    send_result(&load, good);
}

static void set_variable(__attribute__((unused)) void *user, const char *name, const char *value)
{
    gpuhal_os_helper_set_variable(name, value);
}

int main(int count, char **arguments)
{
    uint64_t protocol = 0, log_level = 0, ignore_environment = 0, parent = 0;
    bool has_parent = count == 9 && gpuhal_records_u64(arguments[6], &parent);
    gpuhal_os_helper_prepare((int64_t)parent);
    bool understood = has_parent && gpuhal_records_u64(arguments[1], &protocol) &&
                      gpuhal_records_u64(arguments[4], &log_level) && log_level <= GPUHAL_LEVEL_TRACE &&
                      gpuhal_records_u64(arguments[5], &ignore_environment);
    if (!understood) {
        return GPUHAL_HELPER_EXIT_USAGE;
    }
    gpuhal_text hello = {0};
    gpuhal_stream_write_hello(&hello);
    send_records(&hello);
    /* If the versions differ, the parent reads this hello and ignores the helper. */
    if (protocol == GPUHAL_HELPER_PROTOCOL) {
        gpuhal_os_helper_on_crash(send_crash);
        (void)gpuhal_manifest_each_setting(arguments[8], set_variable, NULL);
        probe(arguments[2], arguments[3], arguments[7], (uint32_t)log_level, ignore_environment != 0);
    }
    gpuhal_os_helper_exit(0);
}
