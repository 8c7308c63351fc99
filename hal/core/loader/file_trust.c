/* loader/file_trust.c: checks which users can change or replace a file. Checks the owner and mode of the file, and of
 * every directory and link on its path. See file_check.h. */
#include "loader/file_check.h"

#include "base/text.h"
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 256u /* bytes of a path in a message */
#define LINKS_MAX 40u  /* per path, as in the kernel */

/* A missing file is a common case and has its own message. */
bool gpuhal_file_refuse_unreadable(gpuhal_load_context *load, const char *path, int error)
{
    if (error == ENOENT) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NOT_FOUND, "%s does not exist", path);
    }
    if (error == ELOOP) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NOT_FOUND,
                                "%s: the symbolic links run in a circle", path);
    }
    gpuhal_status status = error == EACCES || error == EPERM ? GPUHAL_ERROR_NO_PERMISSION : GPUHAL_ERROR_NOT_FOUND;
    /* A long path must not displace the reason from the message. */
    bool cut = strlen(path) > NAMED_MAX;
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, status, "%.*s%s cannot be read: %s", (int)NAMED_MAX, path,
                            cut ? "..." : "", strerror(error));
}

static bool refuse_permissions(gpuhal_load_context *load, const char *path, const char *why)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NO_PERMISSION, "%s %s", path, why);
}

/* Root can change any file, and users can change their own files. */
static bool is_trusted_owner(uint32_t owner)
{
    return owner == 0 || (owner == gpuhal_os_user() && !gpuhal_os_privileged());
}

/* No other user may be able to replace the resolved file. In a sticky directory such as /tmp, only owners can rename or
 * remove entries. Each directory is therefore checked together with the owner of the entry in it. */
static bool check_parents(gpuhal_load_context *load, const char *path, uint32_t owner)
{
    char *directory = gpuhal_text_copy(path);
    if (!directory) {
        return gpuhal_load_no_memory(load);
    }
    bool good = true;
    for (char *slash = strrchr(directory, '/'); good && slash; slash = strrchr(directory, '/')) {
        bool top = slash == directory;
        slash[top] = 0;
        gpuhal_file_info info;
        int error = gpuhal_os_file_info(directory, &info);
        if (error) {
            good = gpuhal_file_refuse_unreadable(load, directory, error);
        } else if (info.world_writable && !(info.sticky && is_trusted_owner(owner))) {
            good = gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NO_PERMISSION,
                                    "%s lies below %s, which everybody may write to", path, directory);
        }
        owner = info.owner;
        if (top) {
            break;
        }
    }
    free(directory);
    return good;
}

/* Files that belong to a third user are not refused, because they are common on shared machines and in user
 * namespaces. A privileged process refuses them. */
static bool check_permissions(gpuhal_load_context *load, const char *path, const gpuhal_file_info *info)
{
    if (!info->regular) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_DRIVER, "%s is %s", path,
                                info->directory ? "a directory" : "no regular file");
    }
    if (info->world_writable) {
        return refuse_permissions(load, path, "may be written to by everybody");
    }
    if (gpuhal_os_privileged() && (info->owner != 0 || info->group_writable)) {
        return refuse_permissions(load, path,
                                  "is not root's alone, which a process with more rights than its user demands");
    }
    if (!is_trusted_owner(info->owner)) {
        gpuhal_log_line(load->log, GPUHAL_LEVEL_WARNING, "%s belongs to user %" PRIu32 ", neither root nor this user",
                        path, info->owner);
    }
    return true;
}

typedef struct walk {
    gpuhal_load_context *load;
    const char *path;              /* the whole path, for messages */
    uint32_t links;                /* number of links followed so far; limited because links to links can multiply
                                    * without end */
    bool is_plain;                 /* no link, ".", ".." or "//" so far, so the path is already resolved */
    gpuhal_file_info folder, file; /* for a plain path, its last folder and its file */
} walk;

static bool check_way(walk *at, const char *path);

/* Checks the target of the link at the end of `part`; the link's name begins at `name`. */
static bool check_target(walk *at, const char *part, size_t name, const char *target)
{
    if (++at->links > LINKS_MAX) {
        return gpuhal_file_refuse_unreadable(at->load, at->path, ELOOP);
    }
    char *path = gpuhal_os_path_is_absolute(target) ? gpuhal_text_copy(target)
                                                    : gpuhal_text_format("%.*s%s", (int)name, part, target);
    bool good = path ? check_way(at, path) : gpuhal_load_no_memory(at->load);
    free(path);
    return good;
}

static bool refuse_step(walk *at, int error)
{
    return error == ENOMEM ? gpuhal_load_no_memory(at->load) : gpuhal_file_refuse_unreadable(at->load, at->path, error);
}

/* A user who can write to a directory determines where the path leads. If all users can write to a directory, the entry
 * must belong to a trusted user, and other users must not be able to rename the entry. `directory` describes the
 * directory that contains the entry, and on return the entry itself. */
static bool check_part(walk *at, const char *part, size_t name, gpuhal_file_info *directory)
{
    gpuhal_file_info info;
    char *target = NULL;
    const bool is_dot = strcmp(part + name, ".") == 0 || strcmp(part + name, "..") == 0;
    int error = is_dot ? 0 : gpuhal_os_link_info(part, &info, &target);
    bool good = true;
    if (error) {
        good = refuse_step(at, error);
    } else if (!is_dot && directory->world_writable && !(directory->sticky && is_trusted_owner(info.owner))) {
        good = gpuhal_load_fail(at->load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NO_PERMISSION,
                                "%s leads through %.*s, which everybody may write to", at->path,
                                (int)(name > 1 ? name - 1 : 1), part);
    } else if (target) {
        good = check_target(at, part, name, target);
    }
    if (good && (is_dot || target)) {
        at->is_plain = false;
        error = gpuhal_os_file_info(part, &info);
        good = !error || refuse_step(at, error);
    }
    *directory = info;
    free(target);
    return good;
}

/* Returns the start position of the walk in the path: after the known folder, or after the first slash. */
static size_t begin_way(const walk *at, const char *path, gpuhal_file_info *out_directory, int *out_error)
{
    const gpuhal_known_folder *known = at->load->folder;
    const size_t length = known && known->path ? strlen(known->path) : 0;
    if (length > 0 && strncmp(path, known->path, length) == 0 && path[length] == '/') {
        *out_directory = known->info;
        return length + 1;
    }
    *out_error = gpuhal_os_file_info("/", out_directory);
    return 1;
}

void gpuhal_known_folder_finish(gpuhal_known_folder *folder)
{
    free(folder->path);
    *folder = (gpuhal_known_folder){0};
}

/* If out of memory, the folder stays unknown. */
static void record_folder(const walk *at)
{
    const size_t length = (size_t)(strrchr(at->path, '/') - at->path);
    gpuhal_known_folder *known = at->load->folder;
    if (known && length > 0 &&
        (!known->path || strlen(known->path) != length || strncmp(known->path, at->path, length) != 0)) {
        gpuhal_known_folder_finish(known);
        *known = (gpuhal_known_folder){.path = gpuhal_text_copy_range(at->path, length), .info = at->folder};
    }
}

/* Walks the path step by step, like the kernel. Checking only the resolved path is not sufficient, because it no longer
 * contains the links, and other users may be able to redirect a link. */
static bool check_way(walk *at, const char *path)
{
    char *part = gpuhal_text_copy(path);
    if (!part) {
        return gpuhal_load_no_memory(at->load);
    }
    gpuhal_file_info directory;
    int error = 0;
    size_t begin = begin_way(at, path, &directory, &error);
    bool good = !error || refuse_step(at, error);
    for (; good && part[begin - 1]; begin++) {
        size_t end = begin + strcspn(part + begin, "/");
        char next = part[end];
        part[end] = 0;
        at->folder = directory;
        good = end == begin || check_part(at, part, begin, &directory);
        at->is_plain = at->is_plain && end > begin;
        part[end] = next;
        begin = end;
    }
    at->file = directory;
    free(part);
    return good;
}

bool gpuhal_file_check_trust(gpuhal_load_context *load, const char *path, gpuhal_checked_file *out_file)
{
    *out_file = (gpuhal_checked_file){0};
    walk at = {.load = load, .path = path, .is_plain = true};
    gpuhal_file_info info;
    int error = ENOMEM;
    if (!check_way(&at, path)) {
        return false;
    }
    char *real = at.is_plain ? gpuhal_text_copy(path) : gpuhal_os_real_path(path, &error);
    if (!real) {
        return refuse_step(&at, error);
    }
    info = at.file;
    error = at.is_plain ? 0 : gpuhal_os_file_info(real, &info);
    bool good = error ? gpuhal_file_refuse_unreadable(load, real, error) : check_permissions(load, real, &info);
    good = good && (at.is_plain || check_parents(load, real, info.owner));
    if (!good) {
        free(real);
        return false;
    }
    if (at.is_plain) {
        record_folder(&at);
    }
    *out_file = (gpuhal_checked_file){.path = real, .device = info.device, .inode = info.inode, .bytes = info.bytes};
    return true;
}
