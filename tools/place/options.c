/* options.c: see options.h. */
#include "options.h"

#include "../common/command_line.h"
#include "../common/text.h"

#include <gpuhal/instance.h>

#include <errno.h>
#include <string.h>

static const char doc[] =
    "Prints the device of each layer of a model, before anything is loaded. MODEL.gguf: its header alone is "
    "read. "
    "TABLE: a line 'name, weights[, state[, workspace[, output]]]' for each layer, in bytes or as 512MiB.\v"
    "Devices take layers up to their memory that is free now. docs/scheduling.md describes objectives and numbers.\n\n"
    "Exit status: 0 there is a plan, 1 it could not be printed, or an error, 2 usage, 3 no device, 6 the model does "
    "not "
    "fit.";

const char *const gpuhal_place_objectives[] = {"latency", "throughput", "fewest", "balanced"};
static const char *const formats[] = {"table", "json", "llama.cpp", "vllm", "accelerate"};

enum {
    OPTION_DEVICE = GPUHAL_TOOL_KEY,
    OPTION_GIVEN,
    OPTION_OBJECTIVE,
    OPTION_CONTEXT,
    OPTION_MARGIN,
    OPTION_FREE_ORDER,
    OPTION_LOST,
    OPTION_FORMAT,
    OPTION_JSON
};

static const struct argp_option known[] = {
    {"device", OPTION_DEVICE, "SELECTOR", 0, "devices of this machine, as cuda:0-3 (its GPUs, else its processor)", 0},
    {"given", OPTION_GIVEN, "NAME=BYTES", 0,
     "a device that need not be here, as a100=80GiB, or with the bytes that it reads in a second, a100=80GiB,1555GB; "
     "may be repeated",
     0},
    {"objective", OPTION_OBJECTIVE, "WORD", 0, "latency, throughput, fewest or balanced (latency)", 0},
    {"context", OPTION_CONTEXT, "TOKENS", 0, "size of the KV cache (the model's, 4096 at most)", 0},
    {"margin", OPTION_MARGIN, "BYTES", 0, "memory left free on each device (256MiB)", 0},
    {"free-order", OPTION_FREE_ORDER, NULL, 0, "devices in any order, not in the given one", 0},
    {"lost", OPTION_LOST, "DEVICE", 0, "the plan after this device is lost, which moves the fewest bytes", 0},
    {"format", OPTION_FORMAT, "WORD", 0,
     "table, json, or an argument for another program: llama.cpp (-ts), vllm (VLLM_PP_LAYER_PARTITION), accelerate "
     "(device_map)",
     0},
    {"json", OPTION_JSON, NULL, 0, "the same as --format json, schema gpuhal.place/1", 0},
    {0},
};

static error_t take_word(const struct argp_state *state, const char *option, const char *value,
                         const char *const *words, uint32_t count, const char *takes, uint32_t *out_index)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(value, words[i]) == 0) {
            *out_index = i;
            return 0;
        }
    }
    return gpuhal_tool_mistake(state, option, value, takes);
}

static error_t take_given(const struct argp_state *state, const char *value, gpuhal_place_options *options)
{
    const char *equals = strchr(value, '='), *comma = equals != NULL ? strchr(equals, ',') : NULL;
    gpuhal_place_given *given = &options->given[options->given_count];
    char bytes[64] = "";
    bool good = equals != NULL && equals > value && options->given_count < GPUHAL_PLACEMENT_DEVICES_MAX &&
                (size_t)(equals - value) < sizeof given->name;
    if (good) {
        snprintf(bytes, sizeof bytes, "%.*s", comma != NULL ? (int)(comma - equals - 1) : (int)strlen(equals + 1),
                 equals + 1);
        snprintf(given->name, sizeof given->name, "%.*s", (int)(equals - value), value);
        options->given_count++;
        good = gpuhal_tool_read_size(bytes, UINT64_C(1) << 62, &given->bytes) &&
               (comma == NULL || gpuhal_tool_read_size(comma + 1, UINT64_C(1) << 62, &given->bytes_per_second));
    }
    return good ? 0 : gpuhal_tool_mistake(state, "given", value, "up to 64 of NAME=BYTES or NAME=BYTES,BYTES");
}

static error_t take_model(const struct argp_state *state, const char *value, gpuhal_place_options *options)
{
    if (options->model != NULL) {
        argp_error(state, "\"%s\": one model at a time", value);
        return EINVAL;
    }
    options->model = value;
    return 0;
}

static error_t judge(const struct argp_state *state, const gpuhal_place_options *options)
{
    if (options->model == NULL) {
        argp_error(state, "no model was given; it takes MODEL.gguf or a table of layers");
        return EINVAL;
    }
    return 0;
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_place_options *options = state->input;
    uint32_t index = 0;
    error_t error = 0;
    switch (key) {
    case OPTION_DEVICE:
        options->devices = value;
        return 0;
    case OPTION_GIVEN:
        return take_given(state, value, options);
    case OPTION_OBJECTIVE:
        return take_word(state, "objective", value, gpuhal_place_objectives, 4,
                         "latency, throughput, fewest or balanced", &options->objective);
    case OPTION_CONTEXT:
        return gpuhal_tool_read_number(value, 1, GPUHAL_PLACE_CONTEXT_MAX, &options->context, NULL)
                   ? 0
                   : gpuhal_tool_mistake(state, "context", value, "tokens, 1 to 16777216");
    case OPTION_MARGIN:
        return gpuhal_tool_read_size(value, UINT64_C(1) << 62, &options->margin_bytes)
                   ? 0
                   : gpuhal_tool_mistake(state, "margin", value, "bytes, as 1GiB");
    case OPTION_FREE_ORDER:
        options->free_order = true;
        return 0;
    case OPTION_LOST:
        options->lost = value;
        return 0;
    case OPTION_FORMAT:
        error = take_word(state, "format", value, formats, 5, "table, json, llama.cpp, vllm or accelerate", &index);
        options->format = (gpuhal_place_format)index;
        return error;
    case OPTION_JSON:
        options->format = GPUHAL_PLACE_JSON;
        return 0;
    case ARGP_KEY_ARG:
        return take_model(state, value, options);
    case ARGP_KEY_END:
        return judge(state, options);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *out)
{
    fprintf(out, "gpuhal-place %s\n", gpuhal_version());
}

int gpuhal_place_options_read(int argc, char **argv, FILE *out, gpuhal_place_options *out_options)
{
    static const struct argp argp = {known, parse, "MODEL.gguf | TABLE", doc, NULL, NULL, NULL};
    *out_options = (gpuhal_place_options){.margin_bytes = UINT64_C(256) << 20};
    return gpuhal_tool_command_line("gpuhal-place", &argp, out_options, out, print_version, argc, argv);
}
