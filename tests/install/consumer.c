/* tests/install/consumer.c: another project's program. The program prints the state of every plugin, copies bytes to
 * every device and back, and prints which of gpuhal's files are mapped. install_test.py compares these with the
 * installed files. */
#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <string.h>

static int move_bytes(gpuhal_device *device)
{
    const char sent[] = "there and back";
    char received[sizeof sent] = "";
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = sizeof sent};
    gpuhal_buffer *buffer = NULL;
    gpuhal_status status = gpuhal_buffer_create(device, &desc, &buffer);
    if (status == GPUHAL_OK) {
        status = gpuhal_write(NULL, buffer, 0, sent, sizeof sent);
    }
    if (status == GPUHAL_OK) {
        status = gpuhal_read(NULL, received, buffer, 0, sizeof received);
    }
    gpuhal_buffer_release(buffer);
    int right = status == GPUHAL_OK && memcmp(sent, received, sizeof sent) == 0;
    printf("device %s %s\n", gpuhal_device_id(device), right ? "right" : gpuhal_last_error()->sentence);
    return right;
}

static void name_mapped_files(void)
{
    char line[4352], last[4352] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        const char *path = strchr(line, '/');
        const char *name = path ? strrchr(path, '/') : NULL;
        if (name && strstr(name, "gpuhal") && strstr(name, ".so") && strcmp(path, last) != 0) {
            printf("mapped %s", path);
            snprintf(last, sizeof last, "%s", path);
        }
    }
    if (maps) {
        fclose(maps);
    }
}

int main(void)
{
    gpuhal *gpu = NULL;
    if (gpuhal_open(NULL, &gpu) != GPUHAL_OK) {
        printf("cannot open: %s\n", gpuhal_last_error()->sentence);
        return 1;
    }
    gpuhal_view *view = NULL;
    gpuhal_plugin_report report = GPUHAL_INIT(gpuhal_plugin_report);
    gpuhal_view_of(gpu, 0, &view);
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        printf("plugin %s %s %s\n", report.name, gpuhal_plugin_state_name(report.state), report.file);
    }
    gpuhal_view_release(view);
    int wrong = gpuhal_device_count(gpu) == 0;
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        wrong += !move_bytes(gpuhal_device_at(gpu, i));
    }
    name_mapped_files();
    gpuhal_close(gpu);
    return wrong != 0;
}
