/* tests/fuzz/replay.c: main() of a target without a fuzzer. Runs the target on each file of the given folders, then on
 * copies of the file with one bit changed, and on copies that are cut off. So a normal test run does part of a fuzzer's
 * work. */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

#define BYTES_MAX 65536u

static void replay(const char *path)
{
    static uint8_t bytes[BYTES_MAX];
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    LLVMFuzzerTestOneInput(bytes, count);
    for (size_t i = 0; i < count; i += 1 + count / 256) {
        uint8_t kept = bytes[i];
        bytes[i] = (uint8_t)(kept ^ (1u << i % 8));
        LLVMFuzzerTestOneInput(bytes, count);
        bytes[i] = kept;
        LLVMFuzzerTestOneInput(bytes, i);
    }
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int a = 1; a < argc; a++) {
        DIR *folder = opendir(argv[a]);
        CHECK(folder != NULL);
        for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[a], entry->d_name);
            if (entry->d_name[0] != '.') {
                replay(path);
                count++;
            }
        }
        closedir(folder);
    }
    printf("%zu files\n", count);
    return count == 0;
}
