/* tests/fuzz/file_fuzz.c: arbitrary bytes as a library or a program. A refusal must come with a reason. An accepted
 * file must satisfy the assumptions of the dynamic loader and of the kernel. */
#include "fuzz.h"
#include "loader/file_check.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_accepted(const uint8_t *bytes, size_t count, bool program)
{
    ElfW(Ehdr) header;
    bool loads = false, dynamic = false;
    CHECK(count >= sizeof header);
    memcpy(&header, bytes, sizeof header);
    for (size_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;
        size_t at = header.e_phoff + i * sizeof segment;
        CHECK(at <= count - sizeof segment);
        memcpy(&segment, bytes + at, sizeof segment);
        if (segment.p_type == PT_LOAD || segment.p_type == PT_DYNAMIC) {
            CHECK(segment.p_offset <= count && segment.p_filesz <= count - segment.p_offset);
            loads = loads || segment.p_type == PT_LOAD;
            dynamic = dynamic || segment.p_type == PT_DYNAMIC;
        }
    }
    CHECK(loads && (dynamic || program));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int memory = -1;
    static char path[64];
    if (memory < 0) {
        memory = memfd_create("fuzzed", MFD_CLOEXEC);
        CHECK(memory >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    }
    CHECK(ftruncate(memory, 0) == 0 && pwrite(memory, bytes, count, 0) == (ssize_t)count);
    const gpuhal_checked_file file = {.path = path, .bytes = count};
    for (int program = 0; program < 2; program++) {
        gpuhal_load_context load = {.name = "fuzzed"};
        if (gpuhal_file_check_image(&load, &file, program)) {
            CHECK(!load.reason);
            check_accepted(bytes, count, program);
        } else {
            CHECK(load.reason && strstr(load.reason, path) == load.reason && load.status < 0);
            CHECK(load.state == GPUHAL_PLUGIN_REJECTED || load.state == GPUHAL_PLUGIN_INCOMPATIBLE);
        }
        gpuhal_load_finish(&load);
    }
    return 0;
}
