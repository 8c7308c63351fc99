/* node/hardware_place.c: determines whether this process runs on the host or in a container, the kind of container, and
 * the batch job. These determine which GPUs the process is given. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The inode number of the host's pid namespace (PROC_PID_INIT_INO in the kernel's proc_ns.h). */
#define FIRST_PROCESSES "pid:[4026531836]"

/* Evidence for each runtime: files, environment variables, and words in the mounts of the container's root, of
 * files below /etc and of /dev/termination-log. The first matching entry is used, so more specific entries come
 * first. */
static const struct {
    gpuhal_hardware_place place;
    const char *files[3], *variables[3], *words[4];
} signs[] = {
    {GPUHAL_PLACE_POD,
     {"/var/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io"},
     {"KUBERNETES_SERVICE_HOST"},
     {"/kubelet/pods/", "/dev/termination-log"}},
    {GPUHAL_PLACE_APPTAINER, {"/.singularity.d"}, {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"}, {NULL}},
    {GPUHAL_PLACE_PODMAN, {"/run/.containerenv"}, {NULL}, {"/containers/storage/", "/overlay-containers/"}},
    {GPUHAL_PLACE_DOCKER, {"/.dockerenv"}, {NULL}, {"docker/"}},
    {GPUHAL_PLACE_ENROOT, {NULL}, {NULL}, {"/enroot/"}},
    {GPUHAL_PLACE_CONTAINER, {"/run/systemd/container"}, {"container"}, {"containerd/", "/lxc/"}},
};

/* Words in the names of containers' control groups. Names of host services may contain the words with is_numbered, so
 * the container's number must follow these. The others never occur in service names. */
static const struct {
    gpuhal_hardware_place place;
    const char *word;
    bool is_numbered;
} groups[] = {
    {GPUHAL_PLACE_POD, "/kubepods/", false},          {GPUHAL_PLACE_POD, "/kubepods.slice", false},
    {GPUHAL_PLACE_POD, "/kubepods-burstable", false}, {GPUHAL_PLACE_POD, "/kubepods-besteffort", false},
    {GPUHAL_PLACE_POD, "/kubepods-pod", false},       {GPUHAL_PLACE_PODMAN, "libpod-", true},
    {GPUHAL_PLACE_DOCKER, "docker-", true},           {GPUHAL_PLACE_DOCKER, "/docker/", true},
    {GPUHAL_PLACE_CONTAINER, "containerd-", true},    {GPUHAL_PLACE_CONTAINER, "containerd:", true},
    {GPUHAL_PLACE_CONTAINER, "crio-", true},          {GPUHAL_PLACE_CONTAINER, "/lxc/", false},
    {GPUHAL_PLACE_CONTAINER, "/lxc.payload", false},
};

static bool is_in_group(const char *text, size_t group)
{
    const size_t length = strlen(groups[group].word);
    bool found = false;
    for (const char *at = strstr(text, groups[group].word); at && !found;
         at = strstr(at + length, groups[group].word)) {
        found = !groups[group].is_numbered || strspn(at + length, "0123456789abcdef") >= 12;
    }
    return found;
}

/* Returns whether a runtime creates this mount for its container. A host mounts its containers' files at other paths.
 */
static bool is_own_mount(const char *line)
{
    static const char points[][21] = {"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/termination-log"};
    char point[32] = "";
    (void)sscanf(line, "%*s %*s %*s %*s %31s", point);
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        if (strcmp(point, points[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void add_mounts(gpuhal_hardware_survey *survey, char *text, size_t bytes)
{
    enum { MOUNTS = 256 << 10 };
    char *mounts = malloc(MOUNTS);
    survey->error = mounts || survey->error ? survey->error : ENOMEM;
    if (mounts) {
        (void)gpuhal_hardware_bytes(survey, mounts, MOUNTS, "/proc/self/mountinfo");
    }
    for (const char *line = mounts; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t used = strlen(text);
        if (is_own_mount(line)) {
            snprintf(text + used, bytes - used, "%.*s\n", (int)strcspn(line, "\n"), line);
        }
    }
    free(mounts);
}

static bool has_words(size_t sign, const char *mounts)
{
    bool found = false;
    for (size_t i = 0; i < 4 && signs[sign].words[i]; i++) {
        found = found || strstr(mounts, signs[sign].words[i]);
    }
    return found;
}

static bool has_file(const gpuhal_hardware_survey *survey, size_t sign)
{
    bool found = false;
    for (size_t i = 0; i < 3 && signs[sign].files[i]; i++) {
        found = found || gpuhal_hardware_is_there(survey, "%s", signs[sign].files[i]);
    }
    return found;
}

static bool has_variable(size_t sign)
{
    bool found = false;
    for (size_t i = 0; i < 3 && signs[sign].variables[i]; i++) {
        const char *value = gpuhal_os_environment(signs[sign].variables[i]);
        found = found || (value && *value);
    }
    return found;
}

/* Process 1 of a host is an init system; process 1 of a container is its program. */
static bool starts_the_system(const char *name)
{
    static const char names[][12] = {"systemd",     "init",  "runit", "s6-svscan",
                                     "openrc-init", "dinit", "finit", "shepherd"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        found = found || strcmp(name, names[i]) == 0;
    }
    return found;
}

/* A host may also have a container's files or variables, if it was made from an image or entered from a container. Its
 * processes show that it is a host. */
gpuhal_hardware_place gpuhal_hardware_place_of(gpuhal_hardware_survey *survey, bool is_windows)
{
    char mounts[4096] = "", group[4096], processes[64], first[32];
    (void)gpuhal_hardware_bytes(survey, group, sizeof group, "/proc/self/cgroup");
    add_mounts(survey, mounts, sizeof mounts);
    const bool is_known = gpuhal_hardware_target(survey, processes, sizeof processes, "/proc/self/ns/pid") &&
                          strncmp(processes, "pid:", strlen("pid:")) == 0;
    const bool is_apart = is_known && !is_windows && strcmp(processes, FIRST_PROCESSES) != 0; /* WSL always has a
                                                                                               * separate namespace */
    const bool has_first = gpuhal_hardware_line(survey, first, sizeof first, "/proc/1/comm");
    const bool is_host = !is_apart && has_first && starts_the_system(first);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (is_in_group(group, i)) {
            return groups[i].place;
        }
    }
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const bool file = has_file(survey, i), variable = has_variable(i);
        if (has_words(i, mounts) || (is_host ? file && variable : file || variable)) {
            return signs[i].place;
        }
    }
    const bool is_odd = has_first && !is_known && !starts_the_system(first);
    return is_apart || (is_odd && !is_windows) ? GPUHAL_PLACE_CONTAINER : GPUHAL_PLACE_HOST;
}

#define THIS "this "

/* Systems that may run inside another come first: a gpuhal lease (gpuhal-lease run) may run inside any job. */
static const gpuhal_hardware_batch batches[] = {
    {"GPUHAL_LEASE", "GPUHAL_LEASE", "lease", "gpuhal-lease run --devices=N …", false},
    {"FLUX_JOB_ID", "FLUX_JOB_ID", "Flux job", "flux run --gpus-per-task=1 …", false},
    {"SLURM_JOB_ID", "SLURM_JOB_ID", "Slurm job", "srun --gres=gpu:1 …", true},
    {"PBS_JOBID", "PBS_JOBID", "PBS job", "qsub -l select=1:ngpus=1 …", false},
    {"LSB_JOBID", "LSB_JOBID", "LSF job", "bsub -gpu num=1 …", false},
    {"SGE_TASK_ID", "JOB_ID", "Grid Engine job", "qsub -l gpu=1 …   # the name of the resource is the site's", false},
    {"_CONDOR_JOB_AD", NULL, "HTCondor job", "request_gpus = 1   # in the job's submit file", false},
};

static const char *variable_or_empty(const char *name)
{
    const char *value = name ? gpuhal_os_environment(name) : NULL;
    return value ? value : "";
}

static const gpuhal_hardware_batch *find_batch(void)
{
    const gpuhal_hardware_batch *found = NULL;
    for (size_t i = 0; i < sizeof batches / sizeof *batches && !found; i++) {
        found = *variable_or_empty(batches[i].sign) ? &batches[i] : NULL;
    }
    return found;
}

/* On a host, systemd may deny nodes to a session or a service. */
void gpuhal_hardware_find_who(gpuhal_hardware_survey *survey, gpuhal_hardware_machine *machine)
{
    char group[4096];
    machine->batch = find_batch();
    if (machine->place != GPUHAL_PLACE_POD && machine->batch) {
        const char *number = variable_or_empty(machine->batch->number);
        gpuhal_hardware_text(machine->who, sizeof machine->who, THIS "%s%s%.20s", machine->batch->name,
                             *number ? " " : "", number);
        return;
    }
    (void)gpuhal_hardware_bytes(survey, group, sizeof group, "/proc/self/cgroup");
    gpuhal_hardware_text(machine->who, sizeof machine->who, THIS "%s",
                         machine->place == GPUHAL_PLACE_POD    ? "pod"
                         : machine->place != GPUHAL_PLACE_HOST ? "container"
                         : strstr(group, "/user.slice/")       ? "user session"
                         : strstr(group, ".service")           ? "service"
                                                               : "process");
}

const char *gpuhal_hardware_place_name(const gpuhal_hardware_machine *machine)
{
    return machine->who + strlen(THIS);
}
