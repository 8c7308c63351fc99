/* main.c: options and output. Tokens go to standard output, everything else to standard error. */
#include "llama.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "Usage: llama-run MODEL.gguf [OPTION...]\n"
    "Continues a text with a model of the Llama architecture.\n\n"
    "  --prompt TEXT       the text; with a vocabulary in the file\n"
    "  --tokens 1,2,3      the same as numbers\n"
    "  --count N           tokens to add (32)\n"
    "  --devices LIST      selectors of devices: cpu,opencl:0,vulkan:0 (auto)\n"
    "  --split 2,1,1       each device's share of the layers; without it by memory\n"
    "  --context N         places for tokens (the model's, 4096 at most)\n"
    "  --batch N           tokens of a prompt that are computed together (32)\n"
    "  --temperature T     0: always the likeliest token (0)\n"
    "  --top-k N           choose from the N likeliest (40)\n"
    "  --seed N            of that choice (1)\n"
    "  --threads N         of the processor for each launch (as many as there are)\n"
    "  --instructions SET  of the processor: avx512, avx2, plain (the best)\n"
    "  --ids               print each token as its number, with the lead of the greatest logit over the second\n"
    "  --ignore-end        go on behind the token that ends a text\n"
    "  --quiet             print only tokens and errors\n";

typedef struct options {
    const char *path, *prompt, *tokens, *threads, *instructions;
    llama_split split;
    llama_sampler sampler;
    uint64_t count, context, batch;
    bool prints_ids, ignores_end, is_quiet;
} options;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* ---- options */

static bool read_number(const char *name, const char *text, uint64_t least, uint64_t most, uint64_t *out,
                        llama_error *error)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out >= least && *out <= most) ||
           llama_fail(error, "%s \"%s\" is not a number from %llu to %llu", name, text, (unsigned long long)least,
                      (unsigned long long)most);
}

static bool read_shares(const char *text, double *shares, llama_error *error)
{
    for (int i = 0; i < STAGES_MAX; i++) {
        char *end;
        shares[i] = strtod(text, &end);
        if (end == text || !(shares[i] >= 0.0 && shares[i] <= 1e18) || (*end != ',' && *end != '\0')) {
            return llama_fail(error, "--split has \"%s\", and takes numbers with commas between them", text);
        }
        if (*end == '\0') {
            return true;
        }
        text = end + 1;
    }
    return llama_fail(error, "--split has more than %d shares", STAGES_MAX);
}

static bool read_option(options *own, const char *name, const char *value, llama_error *error)
{
    uint64_t top_k;
    char *end;
    if (strcmp(name, "--prompt") == 0) {
        own->prompt = value;
    } else if (strcmp(name, "--tokens") == 0) {
        own->tokens = value;
    } else if (strcmp(name, "--devices") == 0) {
        own->split.devices = value;
    } else if (strcmp(name, "--instructions") == 0) {
        own->instructions = value;
    } else if (strcmp(name, "--split") == 0) {
        return read_shares(value, own->split.shares, error);
    } else if (strcmp(name, "--count") == 0) {
        return read_number(name, value, 0, 1 << 24, &own->count, error);
    } else if (strcmp(name, "--context") == 0) {
        return read_number(name, value, 1, 1 << 24, &own->context, error);
    } else if (strcmp(name, "--batch") == 0) {
        return read_number(name, value, 1, 256, &own->batch, error);
    } else if (strcmp(name, "--seed") == 0) {
        return read_number(name, value, 0, UINT64_MAX, &own->sampler.state, error);
    } else if (strcmp(name, "--threads") == 0) {
        own->threads = value;
        return read_number(name, value, 1, 1024, &top_k, error);
    } else if (strcmp(name, "--top-k") == 0) {
        const bool is_read = read_number(name, value, 0, UINT32_MAX, &top_k, error);
        own->sampler.top_k = (uint32_t)top_k;
        return is_read;
    } else if (strcmp(name, "--temperature") == 0) {
        own->sampler.temperature = strtof(value, &end);
        return (end != value && *end == '\0' && own->sampler.temperature >= 0.0f) ||
               llama_fail(error, "--temperature \"%s\" is not a number from 0 up", value);
    } else {
        return llama_fail(error, "%s is not an option; --help lists them", name);
    }
    return true;
}

static bool read_options(int count, char **words, options *out, llama_error *error)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--ids", &out->prints_ids}, {"--ignore-end", &out->ignores_end}, {"--quiet", &out->is_quiet}};
    for (int i = 1; i < count; i++) {
        bool is_flag = false;
        for (size_t at = 0; at < sizeof flags / sizeof *flags; at++) {
            if (strcmp(words[i], flags[at].name) == 0) {
                *flags[at].flag = is_flag = true;
            }
        }
        if (is_flag) {
            continue;
        }
        if (strncmp(words[i], "--", 2) != 0) {
            out->path = words[i];
        } else if (i + 1 == count) {
            return llama_fail(error, "%s is not an option, or lacks its value; --help lists them", words[i]);
        } else if (!read_option(out, words[i], words[i + 1], error)) {
            return false;
        } else {
            i++;
        }
    }
    return out->path != NULL || llama_fail(error, "there is no model; --help shows how to name one");
}

/* ---- the prompt */

static bool read_tokens(const char *text, const llama_model *model, llama_engine *engine, uint32_t *count,
                        llama_error *error)
{
    for (;;) {
        char *end;
        const unsigned long long token = strtoull(text, &end, 10);
        if (*text < '0' || *text > '9' || (*end != ',' && *end != '\0')) {
            return llama_fail(error, "--tokens has \"%s\", and takes numbers with commas between them", text);
        }
        if (token >= model->vocabulary) {
            return llama_fail(error, "--tokens has %llu, and %s has tokens up to %u", token, model->path,
                              model->vocabulary - 1);
        }
        if (*count == engine->context) {
            return llama_fail(error, "--tokens has more than the %u tokens of the context", engine->context);
        }
        engine->tokens[(*count)++] = (uint32_t)token;
        if (*end == '\0') {
            return true;
        }
        text = end + 1;
    }
}

static bool read_prompt(const options *own, llama_engine *engine, uint32_t *count, llama_error *error)
{
    const llama_model *model = engine->model;
    if (own->tokens != NULL) {
        return read_tokens(own->tokens, model, engine, count, error);
    }
    if (!llama_tokenize(model, own->prompt != NULL ? own->prompt : "", engine->tokens, engine->context, count, error)) {
        return false;
    }
    return *count > 0 || llama_fail(error, "the prompt is empty");
}

/* ---- the run */

static void print_token(const options *own, const llama_engine *engine, uint32_t token)
{
    if (!own->prints_ids) {
        llama_print_token(engine->model, token, stdout);
    } else {
        float second = -3e38f;
        for (uint32_t i = 0; i < engine->model->vocabulary; i++) {
            second = i != token && engine->logits[i] > second ? engine->logits[i] : second;
        }
        printf("%u %.7g\n", token, (double)(engine->logits[token] - second));
    }
    fflush(stdout);
}

static bool generate(options *own, llama_engine *engine, uint32_t prompt, llama_error *error)
{
    const double begin = now();
    if (!llama_forward(engine, prompt, error)) {
        return false;
    }
    const double middle = now();
    uint64_t steps = 0;
    for (uint64_t made = 0; made < own->count; made++) {
        uint32_t token;
        if (!llama_sample(&own->sampler, engine->logits, engine->model->vocabulary, &token, error)) {
            return false;
        }
        if (token == engine->model->eos && !own->ignores_end) {
            break;
        }
        print_token(own, engine, token);
        if (engine->used == engine->context || made + 1 == own->count) {
            break;
        }
        engine->tokens[engine->used] = token;
        if (!llama_forward(engine, 1, error)) {
            return false;
        }
        steps++;
    }
    const double end = now();
    if (!own->prints_ids) {
        putchar('\n');
    }
    if (engine->report != NULL) {
        fprintf(engine->report, "prefill: %u tokens, %.2f tokens/s\ndecode: %llu tokens, %.2f tokens/s\n", prompt,
                prompt / (middle - begin), (unsigned long long)steps, steps > 0 ? (double)steps / (end - middle) : 0.0);
    }
    return true;
}

static bool run(options *own, llama_engine *engine, llama_error *error)
{
    const llama_model *model = engine->model;
    char plugin_options[64];
    snprintf(plugin_options, sizeof plugin_options, "cpu.threads=%s", own->threads != NULL ? own->threads : "");
    const gpuhal_config config = {.size = sizeof config, .options = own->threads != NULL ? plugin_options : NULL};
    if (gpuhal_open(&config, &engine->gpu) != GPUHAL_OK) {
        return llama_fail_call(error, "opening the library");
    }
    const double begin = now();
    const uint32_t usual = model->context < 4096 ? model->context : 4096;
    uint32_t prompt = 0;
    engine->context = own->context > 0 ? (uint32_t)own->context : usual;
    engine->batch = (uint32_t)own->batch < engine->context ? (uint32_t)own->batch : engine->context;
    engine->report = own->is_quiet ? NULL : stderr;
    if (!llama_engine_open(engine, &own->split, error)) {
        return false;
    }
    if (engine->report != NULL) {
        fprintf(engine->report, "loaded in %.2f s\n", now() - begin);
    }
    return read_prompt(own, engine, &prompt, error) && generate(own, engine, prompt, error);
}

int main(int count, char **words)
{
    llama_error error = {.text = ""};
    llama_model model;
    options own = {.split.devices = "auto", .count = 32, .batch = 32, .sampler = {.top_k = 40, .state = 1}};
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--help") == 0) {
            return fputs(usage, stdout) < 0;
        }
    }
    if (!read_options(count, words, &own, &error)) {
        fprintf(stderr, "llama-run: %s\n", error.text);
        return 2;
    }
    bool is_done = llama_choose_instructions(own.instructions, &error) && llama_model_read(own.path, &model, &error);
    if (is_done) {
        llama_engine engine = {.model = &model};
        if (!own.is_quiet) {
            fprintf(stderr, "%s: %u layers of %u, %u heads (%u of keys and values), %u tokens, %.1f MiB\n", own.path,
                    model.layer_count, model.embedding, model.heads, model.kv_heads, model.vocabulary,
                    (double)model.weight_bytes / 1048576.0);
        }
        is_done = run(&own, &engine, &error);
        llama_engine_close(&engine);
        gpuhal_close(engine.gpu);
        llama_model_free(&model);
    }
    if (!is_done) {
        fprintf(stderr, "llama-run: %s\n", error.text);
    }
    return is_done && fflush(stdout) == 0 ? 0 : 1;
}
