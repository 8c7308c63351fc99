/* registry/outdated.c: see outdated.h. Files are checked in jobs, so that an unresponsive network drive does not block
 * the writer. */
#include "registry/outdated.h"

#include "base/job.h"
#include "base/text.h"
#include "registry/key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS UINT64_C(100000000)

typedef struct look {
    gpuhal_job job;
    char *path, *identity; /* of the probed file */
    bool gone;
} look;

static void run(gpuhal_job *job)
{
    look *own = (look *)job;
    gpuhal_file_state state;
    const int error = gpuhal_os_file_state(own->path, &state);
    char *now = error ? NULL : gpuhal_key_identity(own->path);
    own->gone = error == ENOENT || error == ENOTDIR || (now && strcmp(now, own->identity) != 0);
    free(now);
}

static void destroy(gpuhal_job *job)
{
    look *own = (look *)job;
    free(own->path);
    free(own->identity);
    free(own);
}

/* Returns false on a timeout or if out of memory. */
static bool look_at(const gpuhal_database_plugin *plugin, bool *out_gone)
{
    look *own = calloc(1, sizeof *own);
    *out_gone = false;
    if (!own) {
        return false;
    }
    gpuhal_job_init(&own->job, run, NULL, destroy);
    own->job.calls_no_driver = true;
    own->path = gpuhal_text_copy(plugin->file);
    own->identity = gpuhal_text_copy(plugin->identity);
    const bool in_time = own->path && own->identity && gpuhal_job_run(&own->job, LOOK_NS) == GPUHAL_JOB_DONE;
    *out_gone = in_time && own->gone;
    gpuhal_job_release(&own->job);
    return in_time;
}

static const char *line_of(const gpuhal_texts *key, const char *word)
{
    const size_t length = strlen(word);
    for (size_t i = 0; i < key->count; i++) {
        if (strncmp(key->list[i], word, length) == 0) {
            return key->list[i] + length;
        }
    }
    return "";
}

static bool is_same_line(const gpuhal_texts *one, const gpuhal_texts *other, const char *word)
{
    const char *line = line_of(one, word);
    return line[0] && strcmp(line, line_of(other, word)) == 0;
}

static bool is_from_here(const gpuhal_database_plugin *plugin, const gpuhal_changes *changes)
{
    bool here = false;
    for (size_t i = 0; plugin->file && i < changes->plugin_count && !here; i++) {
        here = is_same_line(&plugin->key, &changes->plugins[i].key, "boot ") &&
               is_same_line(&plugin->key, &changes->plugins[i].key, "mounts ");
    }
    return here;
}

void gpuhal_outdated_drop(gpuhal_database *database, const gpuhal_changes *changes)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    bool answers = true;
    for (size_t i = count; i > 0 && answers; i--) {
        bool gone = false;
        answers = !is_from_here(&plugins[i - 1], changes) || look_at(&plugins[i - 1], &gone);
        if (gone) {
            gpuhal_database_remove(database, GPUHAL_DATABASE_PLUGIN, i - 1);
        }
    }
}
