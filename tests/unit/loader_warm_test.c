/* A warm start, which lists eight GPUs of the fake CUDA driver from the registry. Wrapped system functions prove that
 * the start does not access a device file, load a vendor library, or start a process. */
#include "loader_support.h"

#include "device/device.h"

#include <gpuhal/gpuhal.h>

#include <dirent.h>
#include <dlfcn.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/wait.h>

#define FAKES GPUHAL_BUILD_DIRECTORY "/tests/fakes/cuda/"

static unsigned devices_opened, libraries_opened, processes_started, files_renamed;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
DIR *__real_opendir(const char *path);
DIR *__wrap_opendir(const char *path);
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
int __real_posix_spawn(pid_t *out_pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment);
int __wrap_posix_spawn(pid_t *out_pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static bool is_of_devices(const char *path)
{
    return strncmp(path, "/dev/nvidia", 11) == 0 || strncmp(path, "/dev/dri", 8) == 0 || strcmp(path, "/dev/kfd") == 0;
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    devices_opened += is_of_devices(path);
    return __real_open(path, flags, mode);
}

DIR *__wrap_opendir(const char *path)
{
    devices_opened += is_of_devices(path);
    return __real_opendir(path);
}

void *__wrap_dlopen(const char *name, int flags)
{
    libraries_opened++;
    return __real_dlopen(name, flags);
}

int __wrap_posix_spawn(pid_t *out_pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const *arguments, char *const *environment)
{
    processes_started++;
    return __real_posix_spawn(out_pid, path, actions, attributes, arguments, environment);
}

int __wrap_rename(const char *from, const char *to)
{
    files_renamed++;
    return __real_rename(from, to);
}

static char logged[8192];
static char changed[1024];

static void keep_line(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level, const char *line)
{
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
}

static void keep_change(gpuhal_device *device, const char *sentence)
{
    snprintf(changed, sizeof changed, "%s: %s", gpuhal_device_id(device), sentence);
}

static gpuhal *open_machine(void)
{
    static char registry[600];
    snprintf(registry, sizeof registry, "%s", in_folder("state"));
    setenv("GPUHAL_CUDA_LIBRARY", FAKES "libcuda.so.1", 1);
    setenv("GPUHAL_NVML_LIBRARY", FAKES "libnvidia-ml.so.1", 1);
    unsetenv("GPUHAL_REGISTRY");
    gpuhal_config config = {.size = sizeof config,
                            .registry = registry,
                            .plugin_path = GPUHAL_BUILD_PLUGINS,
                            .backends = "cuda",
                            .helper_path = GPUHAL_HELPER,
                            .helper_deadline_ns = PATIENT_NS,
                            .log = keep_line};
    gpuhal *gpu = NULL;
    if (gpuhal_open(&config, &gpu)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

/* Starts in another process, so that this process does not load a vendor library. */
static void start_elsewhere(const char *machine)
{
    int status = 0;
    own_folder(); /* for both processes */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("FAKE_CUDA", machine, 1);
        gpuhal *gpu = open_machine();
        uint32_t count = gpuhal_device_count(gpu);
        gpuhal_close(gpu);
        _exit(count > 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static gpuhal_device *device_named(gpuhal *gpu, const char *id)
{
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        if (strcmp(gpuhal_device_id(gpuhal_device_at(gpu, d)), id) == 0) {
            return gpuhal_device_at(gpu, d);
        }
    }
    return NULL;
}

TEST(eight_devices_are_listed_without_a_process_a_driver_or_a_device_file)
{
    start_elsewhere("devices 8");
    gpuhal *gpu = open_machine();
    assert_int_equal(gpuhal_device_count(gpu), 9); /* with the CPU */
    assert_int_equal(processes_started, 0);
    assert_int_equal(libraries_opened, 0);
    assert_int_equal(devices_opened, 0);
    assert_int_equal(files_renamed, 0);
    assert_false(is_mapped("libcuda.so"));
    assert_false(is_mapped("gpuhal-cuda.so"));
    uint64_t bytes = 0;
    assert_int_equal(gpuhal_device_u64(device_named(gpu, "cuda:7"), GPUHAL_FACT_MEMORY_TOTAL_BYTES, &bytes), GPUHAL_OK);
    assert_int_equal(bytes, 256u << 20);
    assert_int_equal(gpuhal_device_missing(device_named(gpu, "cuda:7"), GPUHAL_VALUE_MEMORY_FREE_BYTES, NULL),
                     GPUHAL_MISSING_NOT_READ);
    gpuhal_plugin_report report = {.size = sizeof report};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PLUGIN, 0, &report), GPUHAL_OK);
    assert_int_equal(report.cached, 1);
    assert_true(report.probed_at > 0);
    assert_int_equal(report.time_ns, 0);
    gpuhal_close(gpu);
}

TEST(a_device_that_is_opened_loads_its_driver_and_works)
{
    start_elsewhere("devices 8");
    setenv("FAKE_CUDA", "devices 8", 1);
    gpuhal *gpu = open_machine();
    gpu->layers.on_changed = keep_change;
    gpuhal_device *device = device_named(gpu, "cuda:3");
    assert_int_equal(gpuhal_device_open(device), GPUHAL_OK);
    assert_true(is_mapped("libcuda.so"));
    assert_int_equal(processes_started, 0);
    assert_string_equal(changed, "");
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    assert_int_equal(gpuhal_device_sample(device, 0, &value, 1, NULL), GPUHAL_OK);
    assert_int_equal(value.missing, 0);
    gpuhal_close(gpu);
    assert_int_equal(files_renamed, 0);
}

/* The manifest does not name FAKE_CUDA, so the cache key does not contain the variable. */
TEST(a_different_answer_of_the_driver_is_reported_and_listed_the_next_time)
{
    start_elsewhere("devices 2");
    setenv("FAKE_CUDA", "devices 2; name 1 Another H100", 1);
    gpuhal *gpu = open_machine();
    gpu->layers.on_changed = keep_change;
    assert_int_equal(gpuhal_device_open(device_named(gpu, "cuda:0")), GPUHAL_OK);
    assert_string_equal(changed, "");
    assert_int_equal(gpuhal_device_open(device_named(gpu, "cuda:1")), GPUHAL_ERROR_NO_DEVICE);
    assert_string_equal(changed, "cuda:1: cuda:1 was listed, but is absent now");
    assert_non_null(strstr(logged, "cuda:1 was listed, but is absent now\n"));
    gpuhal_close(gpu);
    gpu = open_machine();
    const char *name = NULL;
    assert_int_equal(gpuhal_device_text(device_named(gpu, "cuda:1"), GPUHAL_FACT_NAME, &name), GPUHAL_OK);
    assert_string_equal(name, "Another H100");
    assert_int_equal(gpuhal_device_open(device_named(gpu, "cuda:1")), GPUHAL_OK);
    gpuhal_close(gpu);
    assert_int_equal(processes_started, 0);
}

TEST(a_fact_that_changed_is_reported_once_and_the_device_works)
{
    start_elsewhere("devices 2");
    setenv("FAKE_CUDA", "devices 2; memory 1 512M", 1);
    gpuhal *gpu = open_machine();
    gpu->layers.on_changed = keep_change;
    assert_int_equal(gpuhal_device_open(device_named(gpu, "cuda:1")), GPUHAL_OK);
    assert_non_null(strstr(changed, " was 268435456 when it was listed, and is 536870912 now"));
    gpuhal_close(gpu);
    gpu = open_machine();
    changed[0] = 0;
    gpu->layers.on_changed = keep_change;
    assert_int_equal(gpuhal_device_open(device_named(gpu, "cuda:1")), GPUHAL_OK);
    assert_string_equal(changed, "");
    gpuhal_close(gpu);
}

/* Programs choose their GPU after they have listed all of them. */
TEST(a_program_that_changes_its_environment_later_changes_nothing_for_others)
{
    start_elsewhere("devices 2");
    setenv("FAKE_CUDA", "devices 1", 1);
    gpuhal *gpu = open_machine();
    gpu->layers.on_changed = keep_change;
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    assert_int_not_equal(gpuhal_device_open(device_named(gpu, "cuda:1")), GPUHAL_OK);
    assert_string_equal(changed, "cuda:1: cuda:1 was listed, but is absent now");
    gpuhal_close(gpu);
    assert_int_equal(files_renamed, 0);
    unsetenv("CUDA_VISIBLE_DEVICES");
    gpu = open_machine();
    assert_non_null(device_named(gpu, "cuda:1"));
    assert_int_equal(processes_started, 0);
    gpuhal_close(gpu);
}

TEST(a_driver_that_went_away_is_noticed_and_probed_again_the_next_time)
{
    start_elsewhere("devices 2");
    setenv("FAKE_CUDA", "devices 0", 1);
    gpuhal *gpu = open_machine();
    assert_int_not_equal(gpuhal_device_open(device_named(gpu, "cuda:1")), GPUHAL_OK);
    gpuhal_close(gpu);
    gpu = open_machine();
    assert_null(device_named(gpu, "cuda:0"));
    assert_true(processes_started > 0);
    gpuhal_close(gpu);
}

#include "test_main.h"
