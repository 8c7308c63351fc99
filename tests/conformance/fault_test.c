/* fault_test.c: runs gpuhal-check on the misbehaving plugins of faults.inc: fault_test GPUHAL_CHECK DIRECTORY GROUP
 * [NAME].
 *
 * Checks all plugins of the group, or only NAME. Several checks run in parallel, since most of them wait half of the
 * time. Each run must exit with the expected status. The named check must fail with a message that contains the
 * expected sentence, the rule's number and a hint. For every fault the report must have as many lines as its plan
 * announces. The group "count" checks that faults.inc has enough faults. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 3, LEAST = 60, PERCENT = 95, ARGUMENTS = 16 };

typedef struct variant {
    const char *group; /* if not NULL, the entry is a group's heading and its other members are not set */
    const char *name, *file;
    int status;
    const char *options, *check;
    unsigned rule;
    const char *sentence;
    bool missed; /* gpuhal-check does not detect the fault */
} variant;

static const variant variants[] = {
#define GROUP(heading) {.group = #heading},
#define GOOD(variant, options)
#define MISSED(variant, why) {.name = #variant, .missed = true},
#define FAULT_FILE(variant, file, status, options, check, rule, sentence)                                              \
    {NULL, #variant, file, status, options, #check, rule, sentence, false},
#define FAULT(variant, status, options, check, rule, sentence)                                                         \
    FAULT_FILE(variant, "faulty.so", status, options, check, rule, sentence)
#include "faults.inc"
};
#define COUNT (sizeof variants / sizeof *variants)

typedef struct run {
    const variant *of; /* NULL if the slot is free */
    pid_t pid;
    int output;
} run;

static const char *tool, *directory;

/* @mix is replaced with these options, which name the test code's kernel. */
#define MIX_OPTIONS "--program faulty_code.txt --format test-code --kernel mix"

static void become_tool(const variant *of, int output)
{
    char file[1024], options[512];
    const bool is_mix = strncmp(of->options, "@mix", 4) == 0;
    char *arguments[ARGUMENTS] = {(char *)(size_t)tool, (char *)(size_t)"--only", (char *)(size_t)of->check};
    int count = 3;
    snprintf(file, sizeof file, "%s/%s", directory, of->file);
    snprintf(options, sizeof options, "%s%s", is_mix ? MIX_OPTIONS : "", of->options + (is_mix ? 4 : 0));
    for (char *word = strtok(options, " "); word != NULL && count < ARGUMENTS - 2; word = strtok(NULL, " ")) {
        arguments[count++] = word;
    }
    arguments[count] = file;
    setenv("FAULTY", of->name, 1);
    if (chdir(directory) != 0) {
        _exit(127);
    }
    dup2(output, 1);
    dup2(output, 2);
    execv(tool, arguments);
    _exit(127);
}

static bool start(run *one, const variant *of)
{
    fflush(stdout);
    *one = (run){.of = of, .output = memfd_create("output", MFD_CLOEXEC)};
    one->pid = one->output >= 0 ? fork() : -1;
    if (one->pid == 0) {
        become_tool(of, one->output);
    }
    return one->pid > 0;
}

static unsigned count_results(const char *output)
{
    unsigned results = 0;
    for (const char *line = output; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        results += strncmp(line, "ok ", 3) == 0 || strncmp(line, "not ok ", 7) == 0;
    }
    return results;
}

/* Returns the failed check's line and the rest of its block, or NULL if the check did not fail. */
static char *block_of(const char *output, const char *check)
{
    char wanted[96];
    const size_t length = (size_t)snprintf(wanted, sizeof wanted, " - %s", check);
    for (const char *line = strstr(output, "not ok "); line != NULL; line = strstr(line + 1, "\nnot ok ")) {
        const char *name = strstr(line, " - ");
        if (name != NULL && strncmp(name, wanted, length) == 0 && strchr("@:", name[length]) != NULL) {
            const char *end = strstr(line, "\n  ...");
            return strndup(line, end != NULL ? (size_t)(end - line) : strlen(line));
        }
    }
    return NULL;
}

/* @return NULL, or a sentence about the first error in the report */
static const char *judge(const variant *of, int status, const char *output)
{
    static char rule[32];
    if (!WIFEXITED(status) || WEXITSTATUS(status) != of->status) {
        return "another exit status";
    }
    const char *plan = strstr(output, "\n1..");
    if (plan == NULL || (unsigned)atoi(plan + 4) != count_results(output)) {
        return "not as many results as the plan says";
    }
    char *block = block_of(output, of->check);
    if (block == NULL) {
        return "the check did not fail";
    }
    snprintf(rule, sizeof rule, "\n  rule: M-%02u", of->rule);
    const bool right = of->rule != 0 ? strstr(block, rule) != NULL : strstr(block, "\n  rule: ") == NULL;
    const char *problem = strstr(block, of->sentence) == NULL    ? "the message does not hold the sentence"
                          : !right                               ? "another rule"
                          : strstr(block, "\n  hint: \"") == NULL ? "no hint"
                                                                 : NULL;
    free(block);
    return problem;
}

/* @return true if the run ended as expected */
static bool settle(run *one, int status)
{
    const off_t bytes = lseek(one->output, 0, SEEK_END);
    char *output = calloc(1, (size_t)bytes + 2);
    if (output == NULL || pread(one->output, output + 1, (size_t)bytes, 0) != bytes) {
        abort();
    }
    output[0] = '\n';
    const char *problem = judge(one->of, status, output);
    if (problem != NULL) {
        printf("%s: %s. Wanted: status %d, check %s, rule M-%02u, \"%s\". Printed (status %d):%s\n", one->of->name,
               problem, one->of->status, one->of->check, one->of->rule, one->of->sentence,
               WIFEXITED(status) ? WEXITSTATUS(status) : -1, output);
    }
    free(output);
    close(one->output);
    one->of = NULL;
    return problem == NULL;
}

static bool settle_next(run runs[AT_ONCE])
{
    int status = 0;
    const pid_t pid = wait(&status);
    for (unsigned r = 0; r < AT_ONCE; r++) {
        if (runs[r].of != NULL && runs[r].pid == pid) {
            return settle(&runs[r], status);
        }
    }
    return false;
}

static run *free_place(run runs[AT_ONCE], bool *good)
{
    for (;;) {
        for (unsigned r = 0; r < AT_ONCE; r++) {
            if (runs[r].of == NULL) {
                return &runs[r];
            }
        }
        *good = settle_next(runs) && *good;
    }
}

static bool is_busy(const run runs[AT_ONCE])
{
    bool busy = false;
    for (unsigned r = 0; r < AT_ONCE; r++) {
        busy = busy || runs[r].of != NULL;
    }
    return busy;
}

static int run_group(const char *group, const char *name)
{
    run runs[AT_ONCE] = {0};
    bool good = true, inside = false;
    unsigned count = 0;
    for (size_t v = 0; v < COUNT; v++) {
        inside = variants[v].group != NULL ? strcmp(variants[v].group, group) == 0 : inside;
        if (!inside || variants[v].group != NULL || variants[v].missed ||
            (name != NULL && strcmp(variants[v].name, name) != 0)) {
            continue;
        }
        if (!start(free_place(runs, &good), &variants[v])) {
            perror("fault_test");
            return 1;
        }
        count++;
    }
    while (is_busy(runs)) {
        good = settle_next(runs) && good;
    }
    printf("%u misbehaving plugins of group %s\n", count, group);
    return good && count > 0 ? 0 : 1;
}

/* gpuhal-check must detect nearly all faults. */
static int count_all(void)
{
    unsigned named = 0, missed = 0;
    for (size_t v = 0; v < COUNT; v++) {
        named += variants[v].group == NULL && !variants[v].missed;
        missed += variants[v].missed;
    }
    printf("%u misbehaving plugins are named, %u are not\n", named, missed);
    return named >= LEAST && named * 100 >= (named + missed) * PERCENT ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: fault_test GPUHAL_CHECK DIRECTORY GROUP [NAME]\n", stderr);
        return 2;
    }
    tool = argv[1];
    directory = argv[2];
    return strcmp(argv[3], "count") == 0 ? count_all() : run_group(argv[3], argc > 4 ? argv[4] : NULL);
}
