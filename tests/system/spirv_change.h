/* tests/system/spirv_change.h: finds and changes instructions of a valid SPIR-V module. */
#ifndef GPUHAL_TEST_SPIRV_CHANGE_H
#define GPUHAL_TEST_SPIRV_CHANGE_H

#include "test.h"

#include <stdint.h>
#include <string.h>

/* Numbers from the SPIR-V specification. */
enum {
    SPIRV_NOTHING = 0, /* instructions */
    SPIRV_NAME = 5,
    SPIRV_TYPE_ARRAY = 28,
    SPIRV_TYPE_RUNTIME_ARRAY = 29,
    SPIRV_TYPE_STRUCT = 30,
    SPIRV_VARIABLE = 59,
    SPIRV_DECORATE = 71,
    SPIRV_MEMBER_DECORATE = 72,
    SPIRV_BLOCK = 2, /* decorations */
    SPIRV_BUFFER_BLOCK = 3,
    SPIRV_BINDING = 33,
    SPIRV_SET = 34,
    SPIRV_PRIVATE = 6, /* storage classes */
    SPIRV_PUSH_CONSTANT = 9
};

static inline uint32_t id_of(const uint32_t *words, size_t count, const char *name)
{
    for (size_t at = 5; at < count; at += words[at] >> 16) {
        if ((words[at] & 0xffff) == SPIRV_NAME && strcmp((const char *)&words[at + 2], name) == 0) {
            return words[at + 1];
        }
    }
    fail_msg("the module has no name %s", name);
    return 0;
}

/* Returns the first instruction with this code whose word @p place is @p value. */
static inline uint32_t *find_instruction(uint32_t *words, size_t count, uint32_t code, uint32_t place, uint32_t value)
{
    for (size_t at = 5; at < count; at += words[at] >> 16) {
        if ((words[at] & 0xffff) == code && words[at + place] == value) {
            return &words[at];
        }
    }
    fail_msg("the module has no instruction %u with %u", code, value);
    return NULL;
}

static inline void decorate(uint32_t *words, size_t count, const char *name, uint32_t decoration, uint32_t value)
{
    const uint32_t id = id_of(words, count, name);
    for (size_t at = 5; at < count; at += words[at] >> 16) {
        if ((words[at] & 0xffff) == SPIRV_DECORATE && words[at + 1] == id && words[at + 2] == decoration) {
            words[at + (words[at] >> 16) - 1] = value;
            return;
        }
    }
    fail_msg("%s has no decoration %u", name, decoration);
}

#endif
