/* survey.c: prints the plugins and devices of this machine for a shell script. Each plugin and each device is a line
 * with fields separated by tabs.
 *
 *     plugin  NAME  STATE  DEVICES  FILE  REASON
 *     device  ID  BACKEND  gpu|integrated_gpu|cpu|accelerator  hardware|software  MEMORY-BYTES  DRIVER  NAME
 *
 * An empty or unknown field is "-", so that a shell finds every field. */
#include <gpuhal/gpuhal.h>

#include <inttypes.h>
#include <stdio.h>

/* Replaces tabs and line ends in the field. */
static void print_field(const char *text)
{
    putchar('\t');
    if (text == NULL || *text == '\0') {
        putchar('-');
        return;
    }
    for (; *text != '\0'; text++) {
        putchar(*text == '\t' || *text == '\n' ? ' ' : *text);
    }
}

static void print_plugins(const gpuhal *gpu)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_view *view = NULL;
    (void)gpuhal_view_of(gpu, 0, &view);
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        fputs("plugin", stdout);
        print_field(report.name);
        print_field(gpuhal_plugin_state_name(report.state));
        printf("\t%" PRIu32, report.device_count);
        print_field(report.file);
        print_field(report.reason);
        putchar('\n');
    }
    gpuhal_view_release(view);
}

static void print_text_fact(const gpuhal_device *device, gpuhal_key key)
{
    const char *text;
    print_field(gpuhal_device_text(device, key, &text) == GPUHAL_OK ? text : NULL);
}

static void print_device(const gpuhal_device *device)
{
    uint64_t type = 0, software = 0, memory;
    (void)gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    (void)gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    fputs("device", stdout);
    print_field(gpuhal_device_id(device));
    print_field(gpuhal_device_backend(device));
    print_field(gpuhal_device_type_name((gpuhal_device_type)type));
    print_field(software != 0 ? "software" : "hardware");
    if (gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &memory) == GPUHAL_OK) {
        printf("\t%" PRIu64, memory);
    } else {
        print_field(NULL);
    }
    print_text_fact(device, GPUHAL_FACT_DRIVER_VERSION);
    print_text_fact(device, GPUHAL_FACT_NAME);
    putchar('\n');
}

int main(void)
{
    gpuhal *gpu;
    if (gpuhal_open(NULL, &gpu) != GPUHAL_OK) {
        fprintf(stderr, "%s\n", gpuhal_last_error()->sentence);
        return 1;
    }
    print_plugins(gpu);
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        print_device(gpuhal_device_at(gpu, i));
    }
    gpuhal_close(gpu);
    return 0;
}
