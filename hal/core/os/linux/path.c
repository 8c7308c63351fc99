/* os/linux/path.c: the syntax of paths. */
#include "os/os.h"

bool gpuhal_os_path_is_absolute(const char *path)
{
    return path[0] == '/';
}

char gpuhal_os_path_separator(void)
{
    return ':';
}

const char *gpuhal_os_library_suffix(void)
{
    return ".so";
}

const char *gpuhal_os_program_suffix(void)
{
    return "";
}
