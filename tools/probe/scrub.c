/* scrub.c: see scrub.h. At each position, the first matching pattern is replaced; other text is copied. Patterns with
 * longer matches are tried first. */
#include "scrub.h"

#include "../common/host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 256, PATH_BYTES = 1024 };

typedef struct identity {
    char host[NAME_BYTES], user[NAME_BYTES], home[PATH_BYTES]; /* "" if unknown, or too common to be replaced */
} identity;

static void keep(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text ? text : "");
}

static void read_identity(identity *out)
{
    const struct passwd *entry = getpwuid(getuid());
    const char *home = getenv("HOME");
    *out = (identity){0};
    gpuhal_tool_host host;
    gpuhal_tool_host_read(&host); /* the listing uses the same host name */
    keep(out->host, sizeof out->host, strcmp(host.name, "localhost") == 0 ? "" : host.name);
    keep(out->user, sizeof out->user, entry ? entry->pw_name : getenv("USER"));
    keep(out->home, sizeof out->home, home && *home ? home : entry ? entry->pw_dir : "");
    if (strcmp(out->user, "root") == 0) {
        out->user[0] = 0;
    }
    if (strlen(out->home) < 2) { /* "/" */
        out->home[0] = 0;
    }
}

static bool is_word(int character)
{
    return isalnum(character) || character == '_' || character == '-';
}

/* Returns whether the name occurs at `at` as a separate word. `before` is the preceding character. */
static bool stands(const char *at, int before, const char *name)
{
    const size_t length = strlen(name);
    return length > 0 && strncmp(at, name, length) == 0 && !is_word(before) && !is_word((unsigned char)at[length]);
}

/* Matches a pattern: x means a hexadecimal digit, and other characters are literal. Returns the pattern's length, or 0
 * if it does not match completely or a further hexadecimal digit follows. */
static size_t fits(const char *at, const char *form)
{
    size_t i = 0;
    for (; form[i]; i++) {
        const unsigned char c = (unsigned char)at[i];
        if (!(form[i] == 'x' ? isxdigit(c) : c == (unsigned char)form[i])) {
            return 0;
        }
    }
    return isxdigit((unsigned char)at[i]) ? 0 : i;
}

/* Matches "10.0.0.12", but not "1.2.3" or a version with more components. */
static size_t fits_internet_address(const char *at)
{
    size_t length = 0;
    for (int part = 0; part < 4; part++) {
        const size_t digits = strspn(at + length, "0123456789");
        if (digits == 0 || digits > 3 || (part < 3 && at[length + digits] != '.')) {
            return 0;
        }
        length += digits + (part < 3);
    }
    return at[length] == '.' && isdigit((unsigned char)at[length + 1]) ? 0 : length;
}

/* Matches "fe80::1" and longer forms, but not PCI addresses, and not "::" alone, which does not identify a machine. */
static size_t fits_internet_address_6(const char *at)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    size_t length = strspn(at, "0123456789abcdefABCDEF:.");
    if (is_word((unsigned char)at[length]) || length >= sizeof text) {
        return 0;
    }
    while (length > 2 && (at[length - 1] == '.' || (at[length - 1] == ':' && at[length - 2] != ':'))) {
        length--; /* the last character is punctuation after the address */
    }
    memcpy(text, at, length);
    text[length] = 0;
    return length > 2 && inet_pton(AF_INET6, text, &address) == 1 ? length : 0;
}

static uint32_t checksum(const char *text, size_t length)
{
    uint32_t sum = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        sum = (sum ^ (uint32_t)tolower((unsigned char)text[i])) * 16777619u;
    }
    return sum;
}

/* Matches the value of "serial": "..." in JSON. The value's opening quote precedes `at`. */
static size_t fits_serial(const char *text, const char *at)
{
    static const char key[] = "serial";
    const char *line = at;
    while (line > text && line[-1] != '\n') {
        line--;
    }
    const char *found = strstr(line, key);
    return found && found < at && strstr(found, ": \"") == at - 3 ? strcspn(at, "\"\n") : 0;
}

/* Matches the text after "GPU-", "MIG-" or "uuid=", which is a UUID or the beginning of a UUID, as in selectors and
 * vendors' variables. */
static size_t fits_uuid(const char *text, const char *at)
{
    static const char *const words[] = {"GPU-", "MIG-", "uuid="};
    enum { LEAST = 4 }; /* fewer digits do not identify anything */
    const size_t length = strspn(at, "0123456789abcdefABCDEF-");
    bool follows = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t word = strlen(words[i]);
        follows = follows || ((size_t)(at - text) >= word && strncmp(at - word, words[i], word) == 0);
    }
    return follows && length >= LEAST && !is_word((unsigned char)at[length]) ? length : 0;
}

/* Replaces the text at `at`; returns the number of characters consumed. */
static size_t replace(const identity *own, const char *text, const char *at, FILE *out)
{
    const int before = at > text ? (unsigned char)at[-1] : 0;
    const size_t home = strlen(own->home);
    size_t length = 0;
    if (home && strncmp(at, own->home, home) == 0 && !is_word((unsigned char)at[home])) {
        fputc('~', out);
        return home;
    }
    if (strncmp(at, "/home/", 6) == 0 && (length = strcspn(at + 6, "/ \n\"'")) > 0) {
        fputs("/home/USER", out);
        return 6 + length;
    }
    if (stands(at, before, own->host)) {
        fputs("HOST", out);
        return strlen(own->host);
    }
    if (stands(at, before, own->user)) {
        fputs("USER", out);
        return strlen(own->user);
    }
    if (!isxdigit(before) && (length = fits(at, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")) > 0) {
        fprintf(out, "uuid-%08x", checksum(at, length));
        return length;
    }
    if ((length = fits_uuid(text, at)) > 0) {
        fprintf(out, "uuid-%08x", checksum(at, length));
        return length;
    }
    if (!is_word(before) && before != ':' && (length = fits(at, "xx:xx:xx:xx:xx:xx")) > 0) {
        fputs("ADDRESS", out);
        return length;
    }
    if (!is_word(before) && before != '.' && (length = fits_internet_address(at)) > 0) {
        fputs("ADDRESS", out);
        return length;
    }
    if (!is_word(before) && before != ':' && before != '.' && (length = fits_internet_address_6(at)) > 0) {
        fputs("ADDRESS", out);
        return length;
    }
    if (before == '"' && (length = fits_serial(text, at)) > 0) {
        fprintf(out, "serial-%08x", checksum(at, length));
        return length;
    }
    return 0;
}

void gpuhal_probe_scrub(const char *text, FILE *out)
{
    identity own;
    read_identity(&own);
    for (const char *at = text; *at;) {
        const size_t length = replace(&own, text, at, out);
        if (length == 0) {
            fputc(*at++, out);
        }
        at += length;
    }
}
