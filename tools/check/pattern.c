/* pattern.c: see pattern.h. The comparison recognises typical errors of drivers and plugins: bytes that did not arrive,
 * bytes from another offset, bytes after the end, overwritten gaps of a rectangle. */
#include "pattern.h"

#include "../common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Applies SplitMix64's finaliser to the word index. It is cheap, its output never repeats, and any part of the pattern
 * can be generated separately. */
void gpuhal_pattern(unsigned char *to, uint64_t bytes, uint64_t seed)
{
    for (uint64_t at = 0; at < bytes; at += 8) {
        uint64_t word = (seed << 40) + at / 8 + UINT64_C(0x9e3779b97f4a7c15);
        word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
        word ^= word >> 31;
        memcpy(to + at, &word, bytes - at < 8 ? (size_t)(bytes - at) : 8);
    }
}

typedef struct wrong {
    uint64_t count, first, last;
} wrong;

static wrong count_wrong(const gpuhal_claim *claim, uint64_t from, uint64_t to)
{
    wrong found = {0};
    for (uint64_t at = from; at < to; at++) {
        if (claim->expected[at] != claim->actual[at]) {
            found.first = found.count == 0 ? at : found.first;
            found.last = at;
            found.count++;
        }
    }
    return found;
}

/* If the contents are old, no bytes arrived. This is a different error from wrong bytes. */
static bool all_old(const gpuhal_claim *claim, const wrong *found)
{
    for (uint64_t at = found->first; claim->before != NULL && at <= found->last; at++) {
        if (claim->expected[at] != claim->actual[at] && claim->actual[at] != claim->before[at]) {
            return false;
        }
    }
    return claim->before != NULL;
}

/* Finds the source of misplaced bytes. Eight matching bytes identify a position. Two bytes are enough at the start of
 * the source, because a plugin that ignores an offset copies from the start. */
static const unsigned char *find_source(const gpuhal_claim *claim, const wrong *found)
{
    const unsigned char *wrong_bytes = claim->actual + found->first;
    const uint64_t left = claim->offset + claim->bytes - found->first;
    if (claim->source == NULL || left < 2) {
        return NULL;
    }
    if (left < 8) {
        return memcmp(claim->source, wrong_bytes, (size_t)left) == 0 ? claim->source : NULL;
    }
    return memmem(claim->source, (size_t)claim->source_total, wrong_bytes, 8);
}

/* The plural ending for "1 byte" and "7 bytes". */
static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void format_place(const gpuhal_claim *claim, uint64_t at, char *out_text, size_t size)
{
    uint64_t in = at - claim->offset;
    if (claim->width == 0) {
        snprintf(out_text, size, "byte %" PRIu64 " of %" PRIu64, in, claim->bytes);
        return;
    }
    uint64_t slice = in / claim->slice_pitch;
    uint64_t row = in % claim->slice_pitch / claim->row_pitch;
    uint64_t byte = in % claim->slice_pitch % claim->row_pitch;
    snprintf(out_text, size, "byte %" PRIu64 " of row %" PRIu64 " of slice %" PRIu64 "%s", byte, row, slice,
             row >= claim->rows     ? " (in the gap between slices)"
             : byte >= claim->width ? " (in the gap between rows)"
                                    : "");
}

static void format_inside(const gpuhal_claim *claim, const wrong *found, char *out_fault, size_t size)
{
    const uint64_t end = claim->offset + claim->bytes;
    char place[96];
    format_place(claim, found->first, place, sizeof place);
    const unsigned char is = claim->actual[found->first], should = claim->expected[found->first];
    const unsigned char *source = find_source(claim, found);
    const uint64_t right = claim->source_offset + (found->first - claim->offset);
    if (source != NULL && claim->width == 0 && (uint64_t)(source - claim->source) != right) {
        snprintf(out_fault, size, "%s came from offset %" PRIu64 " of the source instead of %" PRIu64, place,
                 (uint64_t)(source - claim->source), right);
    } else if (!all_old(claim, found)) {
        snprintf(out_fault, size, "%" PRIu64 " byte%s %s wrong: %s is 0x%02x instead of 0x%02x", found->count,
                 plural(found->count), found->count == 1 ? "is" : "are", place, is, should);
    } else if (claim->width == 0 && found->count < claim->bytes && found->first == end - found->count) {
        snprintf(out_fault, size, "the last %" PRIu64 " of %" PRIu64 " bytes did not arrive", found->count,
                 claim->bytes);
    } else {
        snprintf(out_fault, size,
                 "%" PRIu64 " byte%s did not arrive: %s still has its old value 0x%02x instead of 0x%02x", found->count,
                 plural(found->count), place, is, should);
    }
}

/* Nearly all comparisons end at the first line. The remaining lines describe a failure. */
bool gpuhal_claim_holds(const gpuhal_claim *claim, char *out_fault, size_t size)
{
    if (memcmp(claim->expected, claim->actual, (size_t)claim->total) == 0) {
        return true;
    }
    const uint64_t end = claim->offset + claim->bytes;
    const wrong inside = count_wrong(claim, claim->offset, end);
    const wrong behind = count_wrong(claim, end, claim->total);
    const wrong ahead = count_wrong(claim, 0, claim->offset);
    *out_fault = '\0';
    if (inside.count > 0) {
        format_inside(claim, &inside, out_fault, size);
    }
    if (behind.count > 0) {
        char first[64] = "right behind its end";
        if (behind.first > end) {
            snprintf(first, sizeof first, "the first %" PRIu64 " byte%s behind its end", behind.first - end,
                     plural(behind.first - end));
        }
        gpuhal_tool_append(out_fault, size, "; ", "%" PRIu64 " byte%s behind the range %s overwritten, %s",
                           behind.count, plural(behind.count), behind.count == 1 ? "was" : "were", first);
    }
    if (ahead.count > 0) {
        gpuhal_tool_append(out_fault, size, "; ",
                           "%" PRIu64 " byte%s before the range %s overwritten, the first at offset %" PRIu64,
                           ahead.count, plural(ahead.count), ahead.count == 1 ? "was" : "were", ahead.first);
    }
    return false;
}
