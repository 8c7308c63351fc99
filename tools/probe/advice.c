/* advice.c: see advice.h. */
#include "advice.h"

#include "../common/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 512 };

/* Copies the line at *fix and advances *fix; returns false at the end. */
static bool next_line(const char **fix, char line[LINE_BYTES])
{
    const size_t length = strcspn(*fix, "\n");
    snprintf(line, LINE_BYTES, "%.*s", (int)length, *fix);
    *fix += length + ((*fix)[length] != 0);
    return length > 0;
}

void gpuhal_probe_advice_print(const gpuhal_probe_screen *screen, const char *label, size_t indent, size_t width,
                               const char *fix)
{
    char line[LINE_BYTES];
    while (next_line(&fix, line)) {
        fprintf(screen->out, "%*s", (int)indent, "");
        gpuhal_probe_screen_fit(screen, PROBE_DIM, label, width, false);
        gpuhal_probe_screen_put(screen, *line == '#' ? PROBE_DIM : PROBE_BOLD, line);
        fputc('\n', screen->out);
        label = "";
    }
}

static const char *between(char last, bool was_words, bool is_words, bool is_warning)
{
    const bool is_answer = is_words && !is_warning;
    return last == ':' ? " " : is_answer && !was_words ? "   # " : is_words || was_words ? "; " : " && ";
}

const char *gpuhal_probe_advice_join(const char *fix, char *to, size_t bytes)
{
    char line[LINE_BYTES], last = 0;
    bool was_words = false;
    *to = 0;
    while (next_line(&fix, line)) {
        const bool is_words = *line == '#';
        const char end = line[strlen(line) - 1];
        gpuhal_tool_append(to, bytes, between(last, was_words, is_words, end == ':'), "%s",
                           is_words ? line + strspn(line, "# ") : line);
        last = is_words ? end : 0;
        was_words = is_words;
    }
    return to;
}
