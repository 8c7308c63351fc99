/* screen.h: prints text for people, fitted to the screen's width, characters and colours.
 *
 * Texts of drivers and file names may contain any bytes. They are printed as one line of printable characters:
 * newlines and tabs become blanks (gpuhal_probe_screen_lines() keeps the lines), and other control characters,
 * invisible characters, invalid UTF-8, and characters that the output cannot show become `?`, so that no driver can
 * write escape codes to a terminal. */
#ifndef PROBE_SCREEN_H
#define PROBE_SCREEN_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct gpuhal_probe_screen {
    FILE *out;
    size_t width; /* in columns, at least 40; SIZE_MAX if unlimited */
    bool limited; /* the width is limited by a terminal or by COLUMNS */
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

/* Overrides the default for all output but standard error. The default depends on the terminal and NO_COLOR. */
void gpuhal_probe_screen_set_color(gpuhal_probe_color color);
void gpuhal_probe_screen_init(gpuhal_probe_screen *screen, FILE *out);

size_t gpuhal_probe_screen_columns(const gpuhal_probe_screen *screen, const char *text);
/* Prints the text in exactly `width` columns, padded with blanks or shortened with an ellipsis. */
void gpuhal_probe_screen_fit(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text,
                             size_t width, bool to_the_right);
/* Prints the text in full. */
void gpuhal_probe_screen_put(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text);
/* Prints words starting at column `column`, with further lines indented to `indent`, and ends the line. A word longer
 * than a line, such as a path, is not broken, so that it can be copied. */
void gpuhal_probe_screen_wrap(const gpuhal_probe_screen *screen, const char *text, size_t column, size_t indent);
void gpuhal_probe_screen_wrap_in(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text,
                                 size_t column, size_t indent);
/* Prints "    reason   the sentence", with further lines aligned to its first word. Prints nothing for "". */
void gpuhal_probe_screen_field(const gpuhal_probe_screen *screen, const char *label, const char *text);

/* Prints a field with several lines; truncates very long lines. */
void gpuhal_probe_screen_lines(const gpuhal_probe_screen *screen, const char *label, const char *lines);

/* Prints a message to standard error: "gpuhal-probe: …", on one line, or wrapped on a terminal. */
void gpuhal_probe_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the last message; "" if there is none. */
const char *gpuhal_probe_last_said(void);
void gpuhal_probe_set_said(const char *message);

/* If standard error is a terminal that understands escape codes, and GPUHAL_LOG is not set, prints a line that the next
 * call replaces. NULL erases the line. */
void gpuhal_probe_progress(const char *text);
bool gpuhal_probe_shows_progress(void);

#endif
