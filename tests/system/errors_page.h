/* tests/system/errors_page.h: reads the section of docs/errors.md about the test's vendor. */
#ifndef GPUHAL_TEST_ERRORS_PAGE_H
#define GPUHAL_TEST_ERRORS_PAGE_H

#include "vendor.h"

/* Returns the vendor's section of the page. The caller frees it. */
static inline char *read_part(void)
{
    static char whole[1 << 17];
    FILE *page = fopen(GPUHAL_SOURCE_DIRECTORY "/docs/errors.md", "r");
    assert_non_null(page);
    const size_t length = fread(whole, 1, sizeof whole - 1, page);
    assert_true(feof(page));
    fclose(page);
    whole[length] = '\0';
    char *part = strstr(whole, OF("\n## CUDA\n", "\n## ROCm\n"));
    assert_non_null(part);
    char *after = strstr(part + 5, "\n## ");
    return after ? strndup(part, (size_t)(after - part)) : strdup(part);
}

static inline void expect_on_page(const char *sentence)
{
    char *part = read_part();
    expect_word(part, sentence);
    free(part);
}

/* One table row, split at its bars. */
typedef struct row {
    char *cells[8];
    unsigned count;
} row;

static inline bool next_row(char **rest, row *out)
{
    out->count = 0;
    char *line = strsep(rest, "\n");
    for (char *at = line ? strchr(line, '|') : NULL; at && out->count < 8; at = strchr(at, '|')) {
        *at++ = '\0';
        out->cells[out->count++] = at;
    }
    return line != NULL;
}

/* Expects that the plugin is in this state, that its report contains this message, and that the page has the message
 * too. */
static inline void expect_listed(gpuhal_plugin_state state, const char *sentence)
{
    expect_on_page(sentence);
    gpuhal *gpu = open_backend(0);
    const gpuhal_plugin_report report = report_of_backend(gpu);
    if (report.state != state) {
        fail_msg("state %s: %s", gpuhal_plugin_state_name(report.state), report.reason);
    }
    expect_word(report.reason, sentence);
    gpuhal_close(gpu);
    remove_reports();
}

#endif
