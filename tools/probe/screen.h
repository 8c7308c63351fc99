/* screen.h: text for people: the width of the screen, its characters and colours, and text fitted into it.
 *
 * Texts come from drivers and file names. Any text is printed as one line of printable characters:
 * control characters, invisible ones and bytes that are no text become `?`, so that no driver can write escape codes to
 * a terminal.
 */
#ifndef PROBE_SCREEN_H
#define PROBE_SCREEN_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct gpuhal_probe_screen {
    FILE *out;
    size_t width; /* columns, at least 40; SIZE_MAX if nothing limits lines */
    bool limited; /* by a terminal, or by COLUMNS */
    bool colour;
    bool utf8;
} gpuhal_probe_screen;

typedef enum gpuhal_probe_style {
    PROBE_PLAIN,
    PROBE_BOLD,
    PROBE_DIM,
    PROBE_GOOD,
    PROBE_BAD,
    PROBE_WARN
} gpuhal_probe_style;

/* Overrides, for standard output, the choice by terminal and NO_COLOR. */
void gpuhal_probe_screen_set_color(gpuhal_probe_color color);
void gpuhal_probe_screen_init(gpuhal_probe_screen *screen, FILE *out);

size_t gpuhal_probe_screen_columns(const gpuhal_probe_screen *screen, const char *text);
/* Prints the text in exactly `width` columns: padded with blanks, or shortened with an ellipsis. */
void gpuhal_probe_screen_fit(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text,
                             size_t width, bool to_the_right);
/* Prints the text as it is. */
void gpuhal_probe_screen_put(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text);
/* Prints words from column `column` on, further lines indented to `indent`, and ends the line. A word that is longer
 * than a line (a path) is not broken, so that it can be copied. */
void gpuhal_probe_screen_wrap(const gpuhal_probe_screen *screen, const char *text, size_t column, size_t indent);
/* Does the same in a style. */
void gpuhal_probe_screen_wrap_in(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text,
                                 size_t column, size_t indent);
/* Prints "    reason   the sentence", further lines under its first word. Prints nothing for "". */
void gpuhal_probe_screen_field(const gpuhal_probe_screen *screen, const char *label, const char *text);

/* Prints a field of several lines, each in a separate line; very long ones are cut. */
void gpuhal_probe_screen_lines(const gpuhal_probe_screen *screen, const char *label, const char *lines);

/* Prints a message on standard error: "gpuhal-probe: …", one line, wrapped if that is a terminal. */
void gpuhal_probe_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the last message; "" before the first. */
const char *gpuhal_probe_last_said(void);
void gpuhal_probe_set_said(const char *message);

/* Prints one line on standard error that the next call replaces; only if that is a terminal. NULL: wipes it. */
void gpuhal_probe_progress(const char *text);
/* Returns whether progress is shown. */
bool gpuhal_probe_shows_progress(void);

#endif
