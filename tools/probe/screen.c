/* screen.c: see screen.h. */
#include "screen.h"

#include "../common/utf8.h"

#include <langinfo.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define NARROWEST 40u
#define ORDINARY  80u
#define BLANKS    " \n\t"

#define LINE_BYTES   240u /* limit for lines printed by a driver; longer lines would obscure the rest */
#define FIELD_INDENT 4u
#define FIELD_LABEL  9u

static const char *const styles[] = {
    [PROBE_PLAIN] = "",        [PROBE_BOLD] = "\033[1m", [PROBE_DIM] = "\033[2m",
    [PROBE_GOOD] = "\033[32m", [PROBE_BAD] = "\033[31m", [PROBE_WARN] = "\033[33m",
};

/* Returns whether the descriptor is a terminal that understands escape codes. */
static bool is_capable(int descriptor)
{
    const char *kind = getenv("TERM");
    return isatty(descriptor) && kind && *kind && strcmp(kind, "dumb") != 0;
}

static size_t find_width(FILE *out)
{
    struct winsize size;
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col) {
        return size.ws_col;
    }
    const char *columns = getenv("COLUMNS");
    unsigned long width = columns ? strtoul(columns, NULL, 10) : 0;
    return width > 0 && width < 10000 ? width : isatty(fileno(out)) ? ORDINARY : SIZE_MAX;
}

static gpuhal_probe_color wanted_color; /* from the command line */

void gpuhal_probe_screen_set_color(gpuhal_probe_color color)
{
    wanted_color = color;
}

static bool wants_color(FILE *out)
{
    const char *no_color = getenv("NO_COLOR");
    if (wanted_color == PROBE_COLOR_AUTO || out == stderr) {
        return is_capable(fileno(out)) && !(no_color && *no_color);
    }
    return wanted_color == PROBE_COLOR_ALWAYS;
}

void gpuhal_probe_screen_init(gpuhal_probe_screen *screen, FILE *out)
{
    size_t width = find_width(out);
    *screen = (gpuhal_probe_screen){
        .out = out,
        .width = width < NARROWEST ? NARROWEST : width,
        .limited = width != SIZE_MAX,
        .colour = wants_color(out),
        .utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0,
    };
}

/* Returns whether a character is invisible: it changes the text direction or has no width, so it could disguise a
 * name. */
static bool is_invisible(uint32_t character)
{
    return (character >= 0x200b && character <= 0x200f) || (character >= 0x2028 && character <= 0x202e) ||
           (character >= 0x2060 && character <= 0x206f) || character == 0xfeff;
}

/* Writes the printable form of the character at *text, returns its width, and advances *text. */
static size_t next_glyph(const gpuhal_probe_screen *screen, const char **text, char glyph[5])
{
    if (**text >= ' ' && **text <= '~') {
        memcpy(glyph, (const char[]){*(*text)++, 0}, 2);
        return 1;
    }
    uint32_t character;
    size_t length = gpuhal_tool_utf8_next(*text, &character);
    bool can_show = length && (screen->utf8 || character < 0x80) && !is_invisible(character);
    int columns = can_show ? wcwidth((wchar_t)character) : -1;
    if (columns < 0) {
        memcpy(glyph, character == '\n' || character == '\t' ? " " : "?", 2);
        *text += length ? length : 1;
        return 1;
    }
    memcpy(glyph, *text, length);
    glyph[length] = 0;
    *text += length;
    return (size_t)columns;
}

/* Returns the width of the text up to `end`, which is NULL or points to a blank. */
static size_t count_columns(const gpuhal_probe_screen *screen, const char *text, const char *end)
{
    size_t sum = 0;
    char glyph[5];
    while (*text && text != end) {
        sum += next_glyph(screen, &text, glyph);
    }
    return sum;
}

size_t gpuhal_probe_screen_columns(const gpuhal_probe_screen *screen, const char *text)
{
    return count_columns(screen, text, NULL);
}

static void begin_style(const gpuhal_probe_screen *screen, gpuhal_probe_style style)
{
    if (screen->colour) {
        fputs(styles[style], screen->out);
    }
}

static void end_style(const gpuhal_probe_screen *screen, gpuhal_probe_style style)
{
    if (screen->colour && style != PROBE_PLAIN) {
        fputs("\033[0m", screen->out);
    }
}

/* Prints as much of the text up to `end` (see count_columns) as fits into `width` columns. Returns the number of
 * columns used. */
static size_t put_some(const gpuhal_probe_screen *screen, const char *text, const char *end, size_t width)
{
    size_t used = 0;
    char glyph[5];
    while (*text && text != end) {
        size_t columns = next_glyph(screen, &text, glyph);
        if (used + columns > width) {
            break;
        }
        fputs(glyph, screen->out);
        used += columns;
    }
    return used;
}

static void put_blanks(const gpuhal_probe_screen *screen, size_t count)
{
    fprintf(screen->out, "%*s", (int)count, "");
}

void gpuhal_probe_screen_fit(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text,
                             size_t width, bool to_the_right)
{
    size_t columns = gpuhal_probe_screen_columns(screen, text);
    size_t ellipsis = screen->utf8 ? 1 : 2;
    if (to_the_right && columns < width) {
        put_blanks(screen, width - columns);
    }
    begin_style(screen, style);
    size_t used = 0;
    if (columns <= width) {
        used = put_some(screen, text, NULL, width);
    } else {
        used = put_some(screen, text, NULL, width > ellipsis ? width - ellipsis : 0) + ellipsis;
        fputs(screen->utf8 ? "…" : "..", screen->out);
    }
    end_style(screen, style);
    if (!to_the_right && used < width) {
        put_blanks(screen, width - used);
    }
}

void gpuhal_probe_screen_put(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text)
{
    begin_style(screen, style);
    put_some(screen, text, NULL, SIZE_MAX);
    end_style(screen, style);
}

void gpuhal_probe_screen_wrap_in(const gpuhal_probe_screen *screen, gpuhal_probe_style style, const char *text,
                                 size_t column, size_t indent)
{
    begin_style(screen, style);
    bool fresh = true; /* this line has no word of the text yet */
    for (const char *word = text + strspn(text, BLANKS); *word; word += strspn(word, BLANKS)) {
        const char *end = word + strcspn(word, BLANKS);
        size_t columns = count_columns(screen, word, end);
        if (!fresh && column + 1 + columns > screen->width) {
            fputc('\n', screen->out);
            put_blanks(screen, indent);
            column = indent;
            fresh = true;
        }
        fputs(fresh ? "" : " ", screen->out);
        column += put_some(screen, word, end, SIZE_MAX) + (fresh ? 0 : 1);
        fresh = false;
        word = end;
    }
    end_style(screen, style);
    fputc('\n', screen->out);
}

void gpuhal_probe_screen_wrap(const gpuhal_probe_screen *screen, const char *text, size_t column, size_t indent)
{
    gpuhal_probe_screen_wrap_in(screen, PROBE_PLAIN, text, column, indent);
}

void gpuhal_probe_screen_field(const gpuhal_probe_screen *screen, const char *label, const char *text)
{
    if (*text) {
        put_blanks(screen, FIELD_INDENT);
        gpuhal_probe_screen_fit(screen, PROBE_DIM, label, FIELD_LABEL, false);
        gpuhal_probe_screen_wrap(screen, text, FIELD_INDENT + FIELD_LABEL, FIELD_INDENT + FIELD_LABEL);
    }
}

void gpuhal_probe_screen_lines(const gpuhal_probe_screen *screen, const char *label, const char *lines)
{
    while (*lines) {
        char line[LINE_BYTES + 4];
        size_t length = strcspn(lines, "\n"), kept = length;
        if (length > LINE_BYTES) {
            for (kept = LINE_BYTES; kept > 0 && ((unsigned char)lines[kept] & 0xc0) == 0x80;) {
                kept--; /* do not split a UTF-8 character */
            }
        }
        snprintf(line, sizeof line, "%.*s%s", (int)kept, lines, kept < length ? "..." : "");
        gpuhal_probe_screen_field(screen, label, line);
        label = "";
        lines += length + (lines[length] != 0);
    }
}

static char last_said[2048];

const char *gpuhal_probe_last_said(void)
{
    return last_said;
}

void gpuhal_probe_set_said(const char *message)
{
    snprintf(last_said, sizeof last_said, "%s", message);
}

void gpuhal_probe_say(const char *format, ...)
{
    static const char name[] = "gpuhal-probe:";
    char text[2048]; /* longer messages are truncated, because an out-of-memory message must not allocate */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    gpuhal_probe_set_said(text);
    gpuhal_probe_screen screen;
    gpuhal_probe_screen_init(&screen, stderr);
    if (!isatty(STDERR_FILENO)) {
        screen.width = SIZE_MAX;
    }
    fprintf(stderr, "%s ", name);
    gpuhal_probe_screen_wrap(&screen, text, sizeof name, 4);
}

/* Progress lines would be mixed with log lines. */
bool gpuhal_probe_shows_progress(void)
{
    return is_capable(STDERR_FILENO) && !getenv("GPUHAL_LOG");
}

void gpuhal_probe_progress(const char *text)
{
    static bool shown = false;
    if (!gpuhal_probe_shows_progress()) {
        return;
    }
    if (shown || text) {
        fprintf(stderr, "\r\033[K%s", text ? text : "");
        fflush(stderr);
    }
    shown = text != NULL;
}
