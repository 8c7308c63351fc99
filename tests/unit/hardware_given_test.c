/* A GPU that was not assigned to a container, a pod or a job must not be reported as a fault. The tests cover each sign
 * that runtimes leave, and hosts with similar signs. */
#include "hardware_support.h"

#define GPU     "0000:01:00.0"
#define OTHER   "0000:02:00.0"
#define ON_HOST "# on the host:\n"
#define IN_SPEC "# in the pod's spec, at its container:\n"

static gpuhal_hardware_info look(char why[640], char fix[320])
{
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    gpuhal_hardware_info info = info_at(view, GPU);
    const bool is_not_given = info.state == GPUHAL_HARDWARE_NOT_GIVEN;
    assert_true(is_not_given ? strstr(info.why, info.not_given_to) == info.why : !*info.not_given_to);
    assert_true(!is_not_given || strlen(info.not_given_to) > strlen("this "));
    snprintf(why, 640, "%s", info.why);
    snprintf(fix, 320, "%s", info.fix);
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    return info;
}

static void expect_not_given(const char *why, const char *fix)
{
    char said[640], command[320];
    const gpuhal_hardware_info info = look(said, command);
    expect_state(&info, GPUHAL_HARDWARE_NOT_GIVEN, GPUHAL_HARDWARE_FINE);
    assert_string_equal(said, why);
    assert_string_equal(command, fix);
}

static void expect_missing(void)
{
    char said[640], command[320];
    const gpuhal_hardware_info info = look(said, command);
    expect_state(&info, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM);
}

static void begin_with_one_of_two(void)
{
    begin_machine();
    refuse("cuda", GPUHAL_ERROR_NO_DEVICE, "no device");
    put_pci(GPU, "030200", "10de:2330", "nvidia");
    put_pci(OTHER, "030200", "10de:2330", "nvidia");
    put("proc/driver/nvidia/gpus/" GPU "/information", "Model: \t NVIDIA H100\nDevice Minor: \t 0\n");
    put("proc/driver/nvidia/gpus/" OTHER "/information", "Model: \t NVIDIA H100\nDevice Minor: \t 1\n");
    put("dev/nvidia1", "");
    put("dev/nvidiactl", "");
}

TEST(each_container_runtime_is_known_by_its_traces_and_has_its_own_command)
{
    static const struct {
        const char *path, *text, *variable, *who, *fix;
    } signs[] = {
        {".dockerenv", "", NULL, "container", ON_HOST "docker run --gpus all …"},
        {"proc/self/mountinfo",
         "473 387 0:143 / / rw - overlay overlay rw,lowerdir=/a\n"
         "505 496 254:1 /docker/containers/66826257e096/hosts /etc/hosts rw - ext4 /dev/vda1 rw\n",
         NULL, "container", ON_HOST "docker run --gpus all …"},
        {"run/.containerenv", "", NULL, "container", ON_HOST "podman run --device nvidia.com/gpu=all …"},
        {"proc/self/mountinfo",
         "1118 1 0:27 / / rw - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/X\n", NULL,
         "container", ON_HOST "podman run --device nvidia.com/gpu=all …"},
        {".singularity.d/runscript", "", NULL, "container", ON_HOST "apptainer exec --nv …"},
        {NULL, NULL, "APPTAINER_CONTAINER", "container", ON_HOST "apptainer exec --nv …"},
        {NULL, NULL, "KUBERNETES_SERVICE_HOST", "pod", IN_SPEC "resources: {limits: {nvidia.com/gpu: 1}}"},
        {"run/secrets/kubernetes.io/serviceaccount/token", "", NULL, "pod",
         IN_SPEC "resources: {limits: {nvidia.com/gpu: 1}}"},
        {"proc/self/mountinfo", "1331 1322 259:1 /x /dev/termination-log rw - xfs /dev/nvme0n1p1 rw\n", NULL, "pod",
         IN_SPEC "resources: {limits: {nvidia.com/gpu: 1}}"},
        {"proc/self/cgroup", "0::/kubepods.slice/kubepods-burstable.slice/x\n", NULL, "pod",
         IN_SPEC "resources: {limits: {nvidia.com/gpu: 1}}"},
        {"proc/self/mountinfo", "12 1 0:27 / / rw - overlay overlay rw,lowerdir=/raid/enroot/data/user-0/pytorch\n",
         NULL, "container", ON_HOST "NVIDIA_VISIBLE_DEVICES=all enroot start …"},
        {NULL, NULL, "SLURM_JOB_ID", NULL, NULL}, /* a job on the host has all device nodes */
        {NULL, NULL, "container", "container", ""},
        {"run/systemd/container", "lxc\n", NULL, "container", ""},
        {"proc/self/cgroup", "0::/lxc.payload.one/init.scope\n", NULL, "container", ""},
        {"proc/1/comm", "python3\n", NULL, "container", ""},
        {"proc/self/cgroup", "0::/system.slice/docker-66826257e0961f.scope\n", NULL, "container",
         ON_HOST "docker run --gpus all …"},
        {"proc/self/cgroup", "5:devices:/docker/66826257e0961f\n", NULL, "container",
         ON_HOST "docker run --gpus all …"},
        {"proc/self/cgroup", "0::/machine.slice/libpod-66826257e0961f.scope\n", NULL, "container",
         ON_HOST "podman run --device nvidia.com/gpu=all …"},
    };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        char why[64];
        begin_with_one_of_two();
        expect_missing();
        if (signs[i].path) {
            put(signs[i].path, signs[i].text);
        }
        if (signs[i].variable) {
            setenv(signs[i].variable, "1", 1);
        }
        if (signs[i].who) {
            snprintf(why, sizeof why, "this %s was not given /dev/nvidia0", signs[i].who);
            expect_not_given(why, signs[i].fix);
        } else {
            expect_missing();
        }
        if (signs[i].variable) {
            unsetenv(signs[i].variable);
        }
        end_machine();
    }
}

TEST(a_namespace_of_processes_is_a_containers_unless_it_is_the_hosts)
{
    begin_with_one_of_two();
    put_link("proc/self/ns/pid", "pid:[4026531836]");
    expect_missing();
    end_machine();
    begin_with_one_of_two();
    put_link("proc/self/ns/pid", "pid:[4026532841]");
    expect_not_given("this container was not given /dev/nvidia0", "");
    put("proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n"); /* WSL is always in a namespace */
    expect_missing();
    end_machine();
}

/* The host has services with container names, files of an image that was installed as a host, and variables copied from
 * a container. */
TEST(a_host_is_no_container_despite_misleading_services_files_and_variables)
{
    static const struct {
        const char *path, *text, *variable;
    } hosts[] = {
        {"proc/self/cgroup", "0::/system.slice/docker-gpu-exporter.service\n", NULL},
        {"proc/self/cgroup", "0::/system.slice/docker.service\n", NULL},
        {"proc/self/cgroup", "0::/system.slice/containerd.service\n", NULL},
        {"proc/self/cgroup", "0::/system.slice/lxc.service\n", NULL},
        {"proc/self/cgroup", "0::/system.slice/kubepods-check.service\n", NULL},
        {".dockerenv", "", NULL},
        {"run/systemd/container", "", NULL},
        {"run/secrets/kubernetes.io/token", "", NULL},
        {".singularity.d/runscript", "", NULL},
        {NULL, NULL, "KUBERNETES_SERVICE_HOST"},
        {NULL, NULL, "APPTAINER_CONTAINER"},
        {NULL, NULL, "container"},
    };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        begin_with_one_of_two();
        put("proc/1/comm", "systemd\n");
        put_link("proc/self/ns/pid", "pid:[4026531836]");
        if (hosts[i].path) {
            put(hosts[i].path, hosts[i].text);
        }
        if (hosts[i].variable) {
            setenv(hosts[i].variable, "10.96.0.1", 1);
        }
        expect_missing();
        if (hosts[i].variable) {
            unsetenv(hosts[i].variable);
        }
        end_machine();
    }
    static const char *const first[] = {"machined", "procd", "busybox", "sh", "kata-agent"};
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        char name[32];
        begin_with_one_of_two();
        snprintf(name, sizeof name, "%s\n", first[i]);
        put("proc/1/comm", name);
        put_link("proc/self/ns/pid", "pid:[4026531836]");
        expect_missing();
        end_machine();
    }
}

/* Apptainer and pods may share the host's process namespace. */
TEST(a_container_that_shares_the_processes_of_the_host_is_one)
{
    begin_with_one_of_two();
    put("proc/1/comm", "systemd\n");
    put_link("proc/self/ns/pid", "pid:[4026531836]");
    put(".singularity.d/runscript", "");
    setenv("APPTAINER_CONTAINER", "/images/x.sif", 1);
    expect_not_given("this container was not given /dev/nvidia0", ON_HOST "apptainer exec --nv …");
    unsetenv("APPTAINER_CONTAINER");
    put("proc/self/mountinfo", "13 1 8:1 /var/lib/kubelet/pods/6a/etc-hosts /etc/hosts rw - xfs /dev/sda1 rw\n");
    expect_not_given("this pod was not given /dev/nvidia0", IN_SPEC "resources: {limits: {nvidia.com/gpu: 1}}");
    end_machine();
}

TEST(a_host_that_runs_containers_is_none)
{
    begin_with_one_of_two();
    put("proc/self/cgroup", "0::/\n");
    put("proc/1/comm", "systemd\n");
    put("proc/self/mountinfo",
        "22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
        "90 22 0:50 / /var/lib/docker/overlay2/c3/merged rw - overlay overlay "
        "rw,lowerdir=/var/lib/docker/overlay2/l/E\n"
        "91 22 0:51 / /var/lib/kubelet/pods/6a5f/volumes/kubernetes.io~secret rw - tmpfs tmpfs rw\n"
        "92 22 0:52 / /run/containerd/io.containerd.runtime.v2.task/k8s.io/x/rootfs rw - overlay overlay rw\n");
    expect_missing();
    end_machine();
}

TEST(a_file_of_mounts_that_is_cut_off_or_long_costs_no_gpu)
{
    begin_with_one_of_two();
    put("proc/self/mountinfo", "473 387");
    expect_missing();
    enum { BYTES = 1 << 20 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    put_bytes("proc/self/mountinfo", text, BYTES);
    expect_missing();
    free(text);
    end_machine();
}

/* NVIDIA's runtime mounts a separate file system over /proc/driver/nvidia. */
TEST(a_gpu_that_a_container_sees_on_the_bus_alone_was_not_given)
{
    begin_with_one_of_two();
    put(".dockerenv", "");
    remove_part("proc/driver/nvidia/gpus/" GPU);
    expect_not_given("this container was not given this GPU", ON_HOST "docker run --gpus all …");
    end_machine();
}

TEST(a_slurm_job_is_named_with_its_number_and_has_the_command_of_slurm_also_in_a_container)
{
    begin_with_one_of_two();
    put(".dockerenv", "");
    setenv("SLURM_JOB_ID", "17", 1);
    expect_not_given("this Slurm job 17 was not given /dev/nvidia0", "srun --gres=gpu:1 …");
    unsetenv("SLURM_JOB_ID");
    end_machine();
}

/* Batch systems set the variable, so users must not be advised to unset it. */
TEST(a_gpu_that_a_batch_system_left_out_is_requested_in_the_job)
{
    static const struct {
        const char *variables[2], *said, *command;
    } batches[] = {
        {{"FLUX_JOB_ID"}, "this Flux job 17 was", "flux run --gpus-per-task=1 …"},
        {{"PBS_JOBID"}, "this PBS job 17 was", "qsub -l select=1:ngpus=1 …"},
        {{"LSB_JOBID"}, "this LSF job 17 was", "bsub -gpu num=1 …"},
        {{"SGE_TASK_ID", "JOB_ID"}, "this Grid Engine job 17 was", "qsub -l gpu=1 …"},
        {{"_CONDOR_JOB_AD"}, "this HTCondor job was", "request_gpus = 1"},
    };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        char said[640], command[320];
        begin_with_one_of_two();
        put("dev/nvidia0", "");
        put("dev/nvidiactl", "");
        for (size_t v = 0; v < 2 && batches[i].variables[v]; v++) {
            setenv(batches[i].variables[v], "17", 1);
        }
        setenv("CUDA_VISIBLE_DEVICES", "", 1);
        const gpuhal_hardware_info info = look(said, command);
        expect_state(&info, GPUHAL_HARDWARE_NOT_GIVEN, GPUHAL_HARDWARE_FINE);
        assert_non_null(strstr(said, batches[i].said));
        assert_non_null(strstr(said, "not given it: CUDA_VISIBLE_DEVICES="));
        assert_non_null(strstr(command, batches[i].command));
        setenv("CUDA_VISIBLE_DEVICES", "0,1,2", 1); /* CUDA does not list the GPUs of the job */
        const gpuhal_hardware_info lacking = look(said, command);
        expect_state(&lacking, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM);
        assert_null(strstr(command, "unset"));
        unsetenv("CUDA_VISIBLE_DEVICES");
        for (size_t v = 0; v < 2 && batches[i].variables[v]; v++) {
            unsetenv(batches[i].variables[v]);
        }
        end_machine();
    }
}

TEST(a_gpu_hidden_from_cuda_is_requested_in_the_job_although_vulkan_lists_it)
{
    char said[640], command[320];
    begin_with_one_of_two();
    put("dev/nvidia0", "");
    keep_fact(add_device("vulkan", "NVIDIA H100"), "pci_address", GPU);
    setenv("PBS_JOBID", "17", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    (void)look(said, command);
    assert_non_null(strstr(said, "other APIs can use it, but CUDA cannot: CUDA_VISIBLE_DEVICES="));
    assert_string_equal(command, "qsub -l select=1:ngpus=1 …");
    unsetenv("PBS_JOBID");
    (void)look(said, command);
    assert_string_equal(command, "unset CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    end_machine();
}

/* If Slurm does not use device control groups, only the variable hides the other GPUs. */
TEST(a_gpu_that_the_variable_of_slurm_leaves_out_was_not_given_to_the_job)
{
    begin_with_one_of_two();
    put("dev/nvidia0", "");
    setenv("SLURM_JOB_ID", "17", 1);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    expect_not_given("this Slurm job 17 was not given it: CUDA_VISIBLE_DEVICES=", "srun --gres=gpu:1 …");
    remove_part("dev"); /* the GPU's problem concerns other jobs */
    expect_not_given("this Slurm job 17 was not given it: CUDA_VISIBLE_DEVICES=", "srun --gres=gpu:1 …");
    setenv("SLURM_JOB_GPUS", "0,1", 1);
    put("dev/nvidia0", "");
    put("dev/nvidiactl", "");
    char said[640], command[320];
    const gpuhal_hardware_info hidden = look(said, command); /* hidden by the user, since Slurm assigned two */
    expect_state(&hidden, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE);
    assert_string_equal(command, "unset CUDA_VISIBLE_DEVICES");
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    const gpuhal_hardware_info lacking = look(said, command); /* two were assigned, but CUDA lists neither */
    expect_state(&lacking, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM);
    assert_true(
        strncmp(command, "sudo dmesg | grep -E 'NVRM|Xid'\n# ", strlen("sudo dmesg | grep -E 'NVRM|Xid'\n# ")) == 0);
    unsetenv("SLURM_JOB_GPUS");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("SLURM_JOB_ID");
    end_machine();
}

/* ---- GPUs that variables request */

static void expect_found(gpuhal_hardware_state state, gpuhal_hardware_grade grade, const char *why)
{
    char said[640], command[320];
    const gpuhal_hardware_info info = look(said, command);
    expect_state(&info, state, grade);
    if (strcmp(said, why) != 0) {
        fail_msg("\"%s\", should be \"%s\"", said, why);
    }
}

#define UUID       "GPU-5c1b8e3f-0d2a-4a6e-9a51-1c0d6a3f7e20"
#define OTHER_UUID "GPU-77777777-0d2a-4a6e-9a51-1c0d6a3f7e20"

/* The runtime numbers GPUs in bus order, and its numbers may differ from the library's, so any present GPU counts as
 * requested. Images request "all" by default. */
TEST(a_container_lacks_a_gpu_that_its_variable_names_and_no_other_stands_for)
{
    static const struct {
        const char *value, *why;
        bool is_lacking;
    } values[] = {
        {"0,1", "NVIDIA_VISIBLE_DEVICES=0,1 asks for this GPU, but this container has no /dev/nvidia0", true},
        {"0:0,1", "NVIDIA_VISIBLE_DEVICES=0:0,1 asks for this GPU, but this container has no /dev/nvidia0", true},
        {UUID "," OTHER_UUID,
         "NVIDIA_VISIBLE_DEVICES=" UUID ",GPU-77777777-0d2a-4… asks for this GPU, but this container has no "
         "/dev/nvidia0",
         true},
        {"0", "this container was not given /dev/nvidia0", false},
        {"1", "this container was not given /dev/nvidia0", false},
        {"1,2,3", "this container was not given /dev/nvidia0", false},
        {OTHER_UUID, "this container was not given /dev/nvidia0", false},
        {"GPU-5c1b8e3f,GPU-77777777",
         "NVIDIA_VISIBLE_DEVICES=GPU-5c1b8e3f,GPU-77777777 asks for this GPU, but this container has no "
         "/dev/nvidia0",
         true},
        {"GPU-", "this container was not given /dev/nvidia0", false},
        {"0000:01:00.0,1", "this container was not given /dev/nvidia0", false},
        {"nvidia.com/gpu=0,1", "this container was not given /dev/nvidia0", false},
        {"all", "this container was not given /dev/nvidia0", false},
        {"void", "this container was not given /dev/nvidia0", false},
        {"", "this container was not given /dev/nvidia0", false},
        {"/var/run/nvidia-container-devices", "this container was not given /dev/nvidia0", false},
        {"none", "this container was not given it: NVIDIA_VISIBLE_DEVICES=none", false},
    };
    begin_with_one_of_two();
    put("proc/driver/nvidia/gpus/" GPU "/information",
        "Model: \t NVIDIA H100\nGPU UUID: \t " UUID "\nDevice Minor: \t 0\n");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        setenv("NVIDIA_VISIBLE_DEVICES", values[i].value, 1);
        expect_missing(); /* on a host, the runtime does not create nodes */
        put(".dockerenv", "");
        expect_found(values[i].is_lacking ? GPUHAL_HARDWARE_NODE_MISSING : GPUHAL_HARDWARE_NOT_GIVEN,
                     values[i].is_lacking ? GPUHAL_HARDWARE_PROBLEM : GPUHAL_HARDWARE_FINE, values[i].why);
        remove_part(".dockerenv");
    }
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    end_machine();
}

/* The container did not request all GPUs of the machine. AMD's runtime supports ranges; NVIDIA's does not. */
TEST(the_command_for_a_container_without_its_gpus_names_the_intended_ones)
{
    static const struct {
        const char *sign, *value, *fix;
    } values[] = {
        {".dockerenv", "0,1", "docker run --gpus '\"device=0,1\"' …"},
        {".dockerenv", "GPU-5c1b8e3f,GPU-77777777", "docker run --gpus '\"device=GPU-5c1b8e3f,GPU-77777777\"' …"},
        {".dockerenv", "0-1", "docker run --gpus all …"},
        {"run/.containerenv", "0,1", "podman run --device nvidia.com/gpu=0 --device nvidia.com/gpu=1 …"},
    };
    begin_with_one_of_two();
    put("proc/driver/nvidia/gpus/" GPU "/information",
        "Model: \t NVIDIA H100\nGPU UUID: \t " UUID "\nDevice Minor: \t 0\n");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char said[640], command[320], expected[160];
        setenv("NVIDIA_VISIBLE_DEVICES", values[i].value, 1);
        put(values[i].sign, "");
        const gpuhal_hardware_info info = look(said, command);
        snprintf(expected, sizeof expected, ON_HOST "%s", values[i].fix);
        expect_state(&info, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM);
        assert_string_equal(command, expected);
        remove_part(values[i].sign);
    }
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    end_machine();
}

/* A privileged container has all device nodes, and lists GPUs on the bus that were not assigned to it. */
TEST(a_sick_gpu_that_a_container_did_not_ask_for_is_not_its_own)
{
    begin_machine();
    put_pci(GPU, "030200", "10de:2330", "nvidia");
    put_pci(OTHER, "030200", "10de:2330", "nvidia");
    put("proc/driver/nvidia/gpus/" GPU "/information", "Model: \t NVIDIA H100\nDevice Minor: \t 0\n");
    put("proc/driver/nvidia/gpus/" OTHER "/information", "Model: \t NVIDIA H100\nDevice Minor: \t 1\n");
    put("dev/nvidia0", "");
    put("dev/nvidia1", "");
    put("dev/nvidiactl", "");
    put(".dockerenv", "");
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", OTHER);
    setenv("NVIDIA_VISIBLE_DEVICES", "1", 1);
    expect_not_given("this container was not given it: NVIDIA_VISIBLE_DEVICES=1", ON_HOST "docker run --gpus all …");
    setenv("NVIDIA_VISIBLE_DEVICES", "0,1", 1);
    expect_found(GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "CUDA lists other GPUs, but not this one");
    unsetenv("NVIDIA_VISIBLE_DEVICES");
    expect_found(GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "CUDA lists other GPUs, but not this one");
    end_machine();
}

TEST(amds_runtime_has_a_variable_with_ranges)
{
    begin_machine();
    refuse("vulkan", GPUHAL_ERROR_NO_DEVICE, "no device");
    put_pci(GPU, "038000", "1002:74a1", "amdgpu");
    put_drm(GPU, 0, 128);
    put_pci(OTHER, "038000", "1002:74a1", "amdgpu");
    put_drm(OTHER, 1, 129);
    put("dev/dri/renderD129", "");
    put(".dockerenv", "");
    setenv("AMD_VISIBLE_DEVICES", "0-1", 1);
    expect_found(GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM,
                 "AMD_VISIBLE_DEVICES=0-1 asks for this GPU, but this container has no /dev/dri/renderD128");
    const char *const others[] = {"1", "0xEF2C1799A1F3E2ED,0xEF2C1799A1F3E2EE"}; /* the GPUs' UUIDs are unknown */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        setenv("AMD_VISIBLE_DEVICES", others[i], 1);
        expect_found(GPUHAL_HARDWARE_NOT_GIVEN, GPUHAL_HARDWARE_FINE,
                     "this container was not given /dev/dri/renderD128");
    }
    unsetenv("AMD_VISIBLE_DEVICES");
    end_machine();
}

/* Slurm sets SLURM_JOB_GPUS only in batch scripts. Steps have a separate list. A task may have a subset of its step's
 * list. */
TEST(each_variable_of_slurm_states_the_gpus_of_a_job)
{
    static const struct {
        const char *variables[2][2];
        bool is_hidden; /* hidden by the user, since two GPUs were assigned to the job */
    } jobs[] = {
        {{{NULL}}, false},
        {{{"SLURM_JOB_GPUS", "3"}}, false},
        {{{"SLURM_JOB_GPUS", "0-1"}}, true},
        {{{"SLURM_JOB_GPUS", "0-3"}, {"SLURM_STEP_GPUS", "3"}}, false},
        {{{"SLURM_STEP_GPUS", "2,3"}}, true},
        {{{"SLURM_STEP_GPUS", "2,3"}, {"SLURM_GPUS_PER_TASK", "1"}}, false},
        {{{"SLURM_STEP_GPUS", "2,3"}, {"SLURM_GPUS_PER_TASK", "gpu:h100:2"}}, true},
        {{{"SLURM_JOB_GPUS", "2,3"}, {"SLURM_GPUS_PER_TASK", "1"}}, true}, /* a batch script is not a task */
        {{{"SLURM_GPUS_ON_NODE", "1"}}, false},
        {{{"SLURM_GPUS_ON_NODE", "2"}}, true},
        {{{"SLURM_GPUS_PER_NODE", "h100:1"}}, false},
        {{{"SLURM_GPUS_PER_NODE", "a100:1,h100:1"}}, true},
        {{{"SLURM_GPUS_ON_NODE", "1"}, {"SLURM_GPUS_PER_NODE", "2"}}, false},
        {{{"SLURM_GPUS_ON_NODE", ""}, {"SLURM_GPUS_PER_NODE", "many"}}, false},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        begin_with_one_of_two();
        forget_machine();
        (void)add_device("cpu", "processor");
        keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", OTHER);
        put("dev/nvidia0", "");
        setenv("SLURM_JOB_ID", "17", 1);
        setenv("CUDA_VISIBLE_DEVICES", "1", 1);
        for (size_t v = 0; v < 2 && jobs[i].variables[v][0]; v++) {
            setenv(jobs[i].variables[v][0], jobs[i].variables[v][1], 1);
        }
        expect_found(jobs[i].is_hidden ? GPUHAL_HARDWARE_HIDDEN : GPUHAL_HARDWARE_NOT_GIVEN,
                     jobs[i].is_hidden ? GPUHAL_HARDWARE_NOTE : GPUHAL_HARDWARE_FINE,
                     jobs[i].is_hidden ? "CUDA_VISIBLE_DEVICES=1 hides it from CUDA"
                                       : "this Slurm job 17 was not given it: CUDA_VISIBLE_DEVICES=1");
        for (size_t v = 0; v < 2 && jobs[i].variables[v][0]; v++) {
            unsetenv(jobs[i].variables[v][0]);
        }
        unsetenv("CUDA_VISIBLE_DEVICES");
        unsetenv("SLURM_JOB_ID");
        end_machine();
    }
}

TEST(a_gpu_that_the_variables_of_rocm_leave_out_was_not_given_to_the_job)
{
    static const char *const variables[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        char why[96];
        begin_machine();
        put_pci(GPU, "038000", "1002:74a1", "amdgpu");
        put_drm(GPU, 0, 128);
        put_pci(OTHER, "038000", "1002:74a1", "amdgpu");
        put_drm(OTHER, 1, 129);
        put("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 256\ndomain 0\n");
        put("sys/class/kfd/kfd/topology/nodes/2/properties", "location_id 512\ndomain 0\n");
        put("dev/kfd", "");
        put("dev/dri/renderD128", "");
        put("dev/dri/renderD129", "");
        keep_fact(add_device("rocm", "AMD Instinct MI300X"), "pci_address", OTHER);
        setenv("SLURM_JOB_ID", "17", 1);
        setenv("SLURM_GPUS_ON_NODE", "1", 1);
        setenv(variables[i], "1", 1);
        snprintf(why, sizeof why, "this Slurm job 17 was not given it: %s=1", variables[i]);
        expect_not_given(why, "srun --gres=gpu:1 …");
        unsetenv("SLURM_GPUS_ON_NODE");
        unsetenv("SLURM_JOB_ID");
        snprintf(why, sizeof why, "%s=1 hides it from ROCm", variables[i]); /* hidden by the user */
        expect_found(GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, why);
        unsetenv(variables[i]);
        end_machine();
    }
}

/* Level Zero's variable names devices or their partitions. Slurm sets the variable for GPUs of other vendors as
 * well. */
TEST(a_gpu_that_the_mask_of_level_zero_leaves_out_was_not_given_to_the_job)
{
    static const struct {
        const char *ids, *driver, *mask, *gpus;
        gpuhal_hardware_state state;
    } jobs[] = {
        {"8086:0bd5", "i915", "1", "1", GPUHAL_HARDWARE_NOT_GIVEN},
        {"8086:0bd5", "i915", "1.0,1.1", "1", GPUHAL_HARDWARE_NOT_GIVEN},
        {"8086:0bd5", "i915", "1", "0,1", GPUHAL_HARDWARE_HIDDEN},
        {"1002:74a1", "amdgpu", "1", "1", GPUHAL_HARDWARE_NO_LIBRARY},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char said[640], command[320];
        begin_machine();
        refuse("vulkan", GPUHAL_ERROR_NO_DRIVER, "tried libvulkan.so.1");
        put_pci(GPU, "038000", jobs[i].ids, jobs[i].driver);
        put_pci(OTHER, "038000", "8086:0bd5", "i915");
        recorded_device *listed = add_device("opencl", "Intel Data Center GPU Max 1550");
        keep_fact(listed, "pci_address", OTHER);
        keep_fact(listed, "vendor_id", "0x8086");
        keep_fact(add_device("opencl", "pthread-haswell"), "type", "3");
        setenv("SLURM_JOB_ID", "17", 1);
        setenv("SLURM_STEP_GPUS", jobs[i].gpus, 1);
        setenv("ZE_AFFINITY_MASK", jobs[i].mask, 1);
        const gpuhal_hardware_info info = look(said, command);
        if (info.state != jobs[i].state) {
            fail_msg("job %zu: %s, \"%s\"", i, gpuhal_hardware_state_name(info.state), said);
        }
        unsetenv("ZE_AFFINITY_MASK");
        unsetenv("SLURM_STEP_GPUS");
        unsetenv("SLURM_JOB_ID");
        end_machine();
    }
}

TEST(amds_and_intels_gpus_have_the_words_of_their_vendor)
{
    static const struct {
        const char *id, *driver, *resource;
    } vendors[] = {{"1002:74a1", "amdgpu", "amd.com/gpu"},
                   {"8086:56c0", "i915", "gpu.intel.com/i915"},
                   {"8086:e20b", "xe", "gpu.intel.com/xe"}};
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        char fix[96];
        begin_machine();
        refuse("vulkan", GPUHAL_ERROR_NO_DEVICE, "no device");
        put_pci(GPU, "038000", vendors[i].id, vendors[i].driver);
        put_drm(GPU, 0, 128);
        setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        snprintf(fix, sizeof fix, IN_SPEC "resources: {limits: {%s: 1}}", vendors[i].resource);
        expect_not_given("this pod was not given /dev/dri/renderD128", fix);
        unsetenv("KUBERNETES_SERVICE_HOST");
        put(".dockerenv", "");
        expect_not_given("this container was not given /dev/dri/renderD128",
                         i == 0 ? ON_HOST "docker run --device /dev/kfd --device /dev/dri …"
                                : ON_HOST "docker run --device /dev/dri …");
        end_machine();
    }
}

#include "test_main.h"
