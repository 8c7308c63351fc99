/* tests/fakes/cuda/names.c: prints the names that a fake must export. Called as `names cuda` or `names nvml`. */
#include "fake.h"
#include "nvml_api.h"

#include <stdio.h>
#include <string.h>

#define FAKE_FUNCTION(type, name, parameters) #name,
#define NAME(name, parameters)                #name,
static const char *const cuda[] = {FAKE_FUNCTIONS NULL};
static const char *const nvml[] = {GPUHAL_NVML_FUNCTIONS(NAME, NAME) "nvmlShutdown", NULL};

int main(int argc, char **argv)
{
    for (const char *const *name = argc > 1 && strcmp(argv[1], "nvml") == 0 ? nvml : cuda; *name; name++) {
        puts(*name);
    }
    return 0;
}
