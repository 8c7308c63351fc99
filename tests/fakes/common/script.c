/* tests/fakes/common/script.c: parses the machine. Statements are separated by newlines or ';', words by blanks. */
#include "script.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { WORDS = 12, TEXT_AT_MOST = 16384 };

static fake_script script;
static pthread_once_t once = PTHREAD_ONCE_INIT;

typedef struct statement {
    char *words[WORDS];
    unsigned count;
    char text[512]; /* the whole statement, for the error message and for `name` */
} statement;

__attribute__((noreturn)) static void refuse(const statement *line, const char *why)
{
    dprintf(STDERR_FILENO, "fake %s: \"%s\": %s (see README.md of the fake)\n", fake_vendor.name, line->text, why);
    _exit(99);
}

static uint64_t number(const statement *line, const char *word)
{
    char *end;
    uint64_t value = strtoull(word, &end, 0);
    static const char units[] = "KMGT";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        value <<= 10 * (unsigned)(unit - units + 1);
        end++;
    }
    if (end == word || *end) {
        refuse(line, "a number was expected");
    }
    return value;
}

static int code_of(const statement *line, const char *word)
{
    return (int)number(line, word);
}

static void device_range(const statement *line, const char *word, unsigned *out_first, unsigned *out_end)
{
    *out_first = 0;
    *out_end = script.device_count;
    if (strcmp(word, "*") == 0) {
        return;
    }
    uint64_t index = number(line, word);
    if (index >= script.device_count) {
        refuse(line, "there is no such device");
    }
    *out_first = (unsigned)index;
    *out_end = *out_first + 1;
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static fake_uuid uuid_of(const statement *line, const char *word)
{
    fake_uuid uuid = {0};
    unsigned digits = 0;
    for (const char *c = word; *c; c++) {
        if (*c == '-') {
            continue;
        }
        if (!isxdigit((unsigned char)*c) || digits == 2 * fake_vendor.uuid_bytes) {
            refuse(line, "a UUID was expected");
        }
        uuid.bytes[digits / 2] = (unsigned char)(uuid.bytes[digits / 2] << 4 | hex_digit(*c));
        digits++;
    }
    if (digits != 2 * fake_vendor.uuid_bytes) {
        refuse(line, "a UUID was expected");
    }
    return uuid;
}

void fake_uuid_text(const fake_uuid *uuid, char out_text[37])
{
    char *to = out_text;
    for (unsigned i = 0; i < 16; i++) {
        to += snprintf(to, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid->bytes[i]);
    }
}

/* Replaces all devices from number @p first on. Afterwards there are @p count devices. The new ones have different
 * addresses and UUIDs, like real ones. */
static void make_devices(unsigned first, uint64_t count)
{
    memset(&script.devices[first], 0, (FAKE_DEVICES - first) * sizeof *script.devices);
    script.device_count = (unsigned)count;
    for (unsigned i = first; i < count; i++) {
        fake_plan *plan = &script.devices[i];
        snprintf(plan->name, sizeof plan->name, "%s", fake_vendor.device_name);
        plan->pci_bus = 0x11 + 0x10 * i;
        plan->memory = UINT64_C(256) << 20;
        for (unsigned b = 0; b < 16; b++) {
            plan->uuid.bytes[b] = (unsigned char)(0x10 * i + b);
        }
    }
}

static void read_devices(const statement *line)
{
    uint64_t count = number(line, line->words[1]);
    if (count > FAKE_DEVICES) {
        refuse(line, "too many devices");
    }
    make_devices(0, count);
    script.listed_count = (unsigned)count;
}

static void read_nvml_devices(const statement *line)
{
    const uint64_t count = number(line, line->words[1]);
    if (count > FAKE_DEVICES || count < script.listed_count) {
        refuse(line, "as many devices as CUDA lists, or more, were expected");
    }
    make_devices(script.listed_count, count);
}

static void read_mig_mode(const statement *line)
{
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    if (strcmp(line->words[2], "on") != 0 && strcmp(line->words[2], "off") != 0) {
        refuse(line, "on or off was expected");
    }
    for (unsigned i = first; i < end; i++) {
        script.devices[i].mig_mode = strcmp(line->words[2], "on") == 0;
    }
}

static void read_per_device(const statement *line)
{
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    const char *what = line->words[0], *value = line->words[2];
    for (unsigned i = first; i < end; i++) {
        fake_plan *plan = &script.devices[i];
        if (strcmp(what, "memory") == 0) {
            plan->memory = number(line, value);
        } else if (strcmp(what, "used") == 0) {
            plan->used = number(line, value);
        } else if (strcmp(what, "name") == 0) {
            snprintf(plan->name, sizeof plan->name, "%s", strstr(line->text, value));
        } else if (strcmp(what, "uuid") == 0) {
            plan->no_uuid = strcmp(value, "none") == 0;
            plan->uuid = plan->no_uuid ? (fake_uuid){{0}} : uuid_of(line, value);
        } else if (strcmp(what, "partitions") == 0) {
            plan->partitions = (unsigned)number(line, value);
        } else if (sscanf(value, "%x:%x:%x.0", &plan->pci_domain, &plan->pci_bus, &plan->pci_device) != 3) {
            refuse(line, "an address such as 0000:c1:00.0 was expected");
        }
    }
}

static void read_mode(const statement *line)
{
    static const char *const modes[] = {"default", "", "prohibited", "exclusive"};
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    int mode = 0;
    while (mode < 4 && strcmp(modes[mode], line->words[2]) != 0) {
        mode++;
    }
    if (mode == 4) {
        refuse(line, "default, prohibited or exclusive was expected");
    }
    for (unsigned i = first; i < end; i++) {
        script.devices[i].compute_mode = mode;
        script.devices[i].taken = line->count > 3 && strcmp(line->words[3], "taken") == 0;
    }
}

static void read_attribute(const statement *line)
{
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    for (unsigned i = first; i < end; i++) {
        fake_plan *plan = &script.devices[i];
        if (plan->attribute_count == FAKE_ATTRIBUTES) {
            refuse(line, "too many attributes");
        }
        plan->attributes[plan->attribute_count].number = code_of(line, line->words[2]);
        plan->attributes[plan->attribute_count++].value = code_of(line, line->words[3]);
    }
}

static void read_value(const statement *line)
{
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    for (unsigned i = first; i < end; i++) {
        fake_plan *plan = &script.devices[i];
        unsigned at = 0;
        while (at < plan->value_count && strcmp(plan->values[at].name, line->words[2]) != 0) {
            at++;
        }
        if (at == FAKE_VALUES) {
            refuse(line, "too many values");
        }
        plan->value_count += at == plan->value_count;
        snprintf(plan->values[at].name, sizeof plan->values[at].name, "%s", line->words[2]);
        plan->values[at].value = number(line, line->words[3]);
    }
}

uint64_t fake_script_value(const fake_plan *plan, const char *name, uint64_t otherwise)
{
    for (unsigned i = 0; i < plan->value_count; i++) {
        if (strcmp(plan->values[i].name, name) == 0) {
            return plan->values[i].value;
        }
    }
    return otherwise;
}

static void read_process(const statement *line)
{
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    for (unsigned i = first; i < end; i++) {
        fake_plan *plan = &script.devices[i];
        if (plan->process_count == FAKE_PROCESSES) {
            refuse(line, "too many processes");
        }
        plan->processes[plan->process_count].pid = (unsigned)number(line, line->words[2]);
        plan->processes[plan->process_count].bytes = number(line, line->words[3]);
        plan->processes[plan->process_count++].draws = line->count > 4 && strcmp(line->words[4], "draws") == 0;
    }
}

static void read_mig(const statement *line)
{
    unsigned first, end;
    device_range(line, line->words[1], &first, &end);
    fake_plan *plan = &script.devices[first];
    if (plan->mig_count == FAKE_MIGS) {
        refuse(line, "too many MIG devices");
    }
    fake_mig *mig = &plan->migs[plan->mig_count];
    mig->gpu_instance = (unsigned)number(line, line->words[2]);
    mig->compute_instance = (unsigned)number(line, line->words[3]);
    snprintf(mig->profile, sizeof mig->profile, "%s", line->words[4]);
    mig->memory = number(line, line->words[5]);
    mig->uuid = plan->uuid;
    mig->uuid.bytes[15] = (unsigned char)(0xa0 + plan->mig_count++);
}

static void read_link(const statement *line)
{
    unsigned a, b, end;
    fake_link link = {0};
    device_range(line, line->words[1], &a, &end);
    device_range(line, line->words[2], &b, &end);
    const char *kind = line->words[3];
    if (strcmp(kind, "nvlink") == 0 && line->count == 6) {
        link = (fake_link){FAKE_LINK_NVLINK, (unsigned)number(line, line->words[4]),
                           (unsigned)number(line, line->words[5]), false};
    } else if (strcmp(kind, "xgmi") == 0 && line->count == 5) {
        link = (fake_link){FAKE_LINK_XGMI, 0, (unsigned)number(line, line->words[4]), false};
    } else if (strcmp(kind, "pcie") == 0) {
        link.kind = FAKE_LINK_PCIE;
    } else if (strcmp(kind, "system") == 0) {
        link.kind = FAKE_LINK_SYSTEM;
    } else {
        refuse(line, "nvlink GENERATION LINKS, xgmi HOPS, pcie or system was expected");
    }
    script.links[a][b] = script.links[b][a] = link;
}

static void read_switch(const statement *line)
{
    script.nvswitch = (fake_link){FAKE_LINK_NVLINK, (unsigned)number(line, line->words[1]),
                                  (unsigned)number(line, line->words[2]), false};
}

static void read_silent(const statement *line)
{
    unsigned a, b, end;
    device_range(line, line->words[1], &a, &end);
    device_range(line, line->words[2], &b, &end);
    script.links[a][b].silent = script.links[b][a].silent = true;
}

static void read_fault(const statement *line)
{
    const char *kind = line->words[0];
    bool lose = strcmp(kind, "lose") == 0, hang = strcmp(kind, "hang") == 0, crash = strcmp(kind, "crash") == 0;
    char *const *word = line->words + (lose ? 2 : 1);
    if (script.fault_count == FAKE_FAULTS || line->count != (lose ? 5u : hang || crash ? 3u : 4u)) {
        refuse(line, "too many faults, or a word is missing");
    }
    fake_fault *fault = &script.faults[script.fault_count++];
    fault->kind = lose ? FAKE_LOSE : hang ? FAKE_HANG : crash ? FAKE_CRASH : FAKE_FAIL;
    snprintf(fault->function, sizeof fault->function, "%s", word[0]);
    size_t length = strlen(word[1]);
    if (length > 1 && word[1][length - 1] == '+') {
        fault->onwards = true;
        word[1][length - 1] = '\0';
    }
    fault->nth = number(line, word[1]);
    if (lose) {
        unsigned end;
        device_range(line, line->words[1], &fault->device, &end);
    }
    fault->code = hang || crash ? 0 : code_of(line, word[2]);
}

static void read_plain(const statement *line)
{
    const char *what = line->words[0], *value = line->words[1];
    if (strcmp(what, "init") == 0) {
        script.init_code = code_of(line, value);
    } else if (strcmp(what, "driver") == 0) {
        script.driver_version = code_of(line, value);
    } else if (strcmp(what, "driver_text") == 0) {
        snprintf(script.driver_text, sizeof script.driver_text, "%s", value);
    } else if (strcmp(what, "slow_us") == 0) {
        script.slow_ns = number(line, value) * 1000;
    } else if (strcmp(what, "smi_sleep_ms") == 0) {
        script.sleep_ns = number(line, value) * 1000000;
    } else if (strcmp(what, "host_offset") == 0) {
        script.host_offset = number(line, value);
    } else if (strcmp(what, "strict") == 0) {
        script.strict = number(line, value) != 0;
    } else {
        script.bytes_per_second = number(line, value);
    }
}

static const struct {
    const char *word;
    unsigned least; /* minimum number of words, including this one */
    void (*read)(const statement *line);
} grammar[] = {
    {"devices", 2, read_devices},     {"nvml_devices", 2, read_nvml_devices},
    {"mig_mode", 3, read_mig_mode},   {"memory", 3, read_per_device},
    {"used", 3, read_per_device},     {"partitions", 3, read_per_device},
    {"name", 3, read_per_device},     {"uuid", 3, read_per_device},
    {"pci", 3, read_per_device},      {"mode", 3, read_mode},
    {"attribute", 4, read_attribute}, {"value", 4, read_value},
    {"process", 4, read_process},     {"mig", 6, read_mig},
    {"link", 4, read_link},           {"nvswitch", 3, read_switch},
    {"silent", 3, read_silent},       {"fail", 4, read_fault},
    {"lose", 5, read_fault},          {"hang", 3, read_fault},
    {"crash", 3, read_fault},         {"init", 2, read_plain},
    {"driver", 2, read_plain},        {"driver_text", 2, read_plain},
    {"slow_us", 2, read_plain},       {"rate", 2, read_plain},
    {"smi_sleep_ms", 2, read_plain},  {"host_offset", 2, read_plain},
    {"strict", 2, read_plain},
};

static void read_statement(const char *text)
{
    statement line = {0};
    char words[sizeof line.text];
    snprintf(line.text, sizeof line.text, "%s", text);
    snprintf(words, sizeof words, "%s", text);
    char *rest = words;
    for (char *word; line.count < WORDS && (word = strtok_r(rest, " \t", &rest));) {
        line.words[line.count++] = word;
    }
    if (line.count == 0 || line.words[0][0] == '#') {
        return;
    }
    for (size_t i = 0; i < sizeof grammar / sizeof *grammar; i++) {
        if (strcmp(grammar[i].word, line.words[0]) == 0) {
            if (line.count < grammar[i].least) {
                refuse(&line, "a word is missing");
            }
            grammar[i].read(&line);
            return;
        }
    }
    refuse(&line, "no such statement");
}

/* Reads the variable's text, or the file if the variable's value is an absolute path. */
static void load_text(char *text, size_t size)
{
    const char *value = getenv(fake_vendor.variable);
    text[0] = '\0';
    if (!value || value[0] != '/') {
        snprintf(text, size, "%s", value ? value : "");
        return;
    }
    statement line = {0};
    snprintf(line.text, sizeof line.text, "%s", value);
    int fd = open(value, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);
    if (length < 0) {
        refuse(&line, "the file cannot be read");
    }
    text[length] = '\0';
    close(fd);
}

static void read_script(void)
{
    static char text[TEXT_AT_MOST];
    script.driver_version = fake_vendor.driver_version;
    snprintf(script.driver_text, sizeof script.driver_text, "%s", fake_vendor.driver_text);
    make_devices(0, 1);
    script.listed_count = 1;
    load_text(text, sizeof text);
    char *rest = text;
    for (char *one; (one = strtok_r(rest, "\n;", &rest));) {
        read_statement(one);
    }
}

fake_script *fake_script_get(void)
{
    pthread_once(&once, read_script);
    return &script;
}

static uint64_t pci_key(const fake_plan *plan)
{
    return (uint64_t)plan->pci_domain << 32 | plan->pci_bus << 8 | plan->pci_device;
}

void fake_script_pci_order(const fake_script *from, unsigned out_order[FAKE_DEVICES])
{
    for (unsigned i = 0; i < from->device_count; i++) {
        unsigned at = i;
        for (; at > 0 && pci_key(&from->devices[out_order[at - 1]]) > pci_key(&from->devices[i]); at--) {
            out_order[at] = out_order[at - 1];
        }
        out_order[at] = i;
    }
}

/* Two devices can access each other unless their link is `system` or one of them has MIG devices. */
bool fake_script_peer(const fake_script *from, unsigned a, unsigned b)
{
    return a != b && from->links[a][b].kind != FAKE_LINK_SYSTEM && !from->devices[a].mig_count &&
           !from->devices[b].mig_count;
}

static bool is_meant(const char *pattern, const char *function)
{
    const size_t length = strcspn(pattern, "*");
    return strncmp(pattern, function, length) == 0 && (pattern[length] || !function[length]);
}

const fake_fault *fake_script_fault(fake_script *in, const char *function)
{
    const fake_fault *hit = NULL;
    for (unsigned i = 0; i < in->fault_count; i++) {
        fake_fault *fault = &in->faults[i];
        if (!is_meant(fault->function, function)) {
            continue;
        }
        fault->seen++;
        if (!hit && (fault->seen == fault->nth || (fault->onwards && fault->seen > fault->nth))) {
            hit = fault;
        }
    }
    if (hit && hit->kind == FAKE_CRASH) {
        raise(SIGSEGV);
    }
    return hit;
}
