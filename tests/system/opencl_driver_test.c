/* Tests OpenCL drivers whose behaviour the specification does not anticipate. The tests use the installed drivers
 * unchanged, registered twice, or through a library that changes results (tests/fakes/opencl). */
#include "support/record.h"
#include "support/tree.h"
#include "system.h"

#include <gpuhal/native.h>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static gpuhal *open_opencl(uint32_t isolation)
{
    return open_or_fail(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .isolation = isolation, .backends = "opencl,cpu"});
}

/* Sets the script that changes the driver's results from now on. Skips the test if OpenCL is not installed. */
static void use_answers(const char *script)
{
    const char *library = getenv("GPUHAL_FAKE_OPENCL_LIBRARY");
    if (!library || access(library, R_OK)) {
        SKIP_TEST("there is no OpenCL library to build this on");
    }
    setenv("GPUHAL_OPENCL_LIBRARY", library, 1);
    setenv("GPUHAL_FAKE_OPENCL", script, 1);
}

static gpuhal *open_with_answers(const char *script)
{
    use_answers(script);
    return open_opencl(GPUHAL_ISOLATION_NEVER);
}

/* Registers the tests' drivers a second time, under other names. */
static void register_twice(const char *folder)
{
    char command[512];
    snprintf(command, sizeof command,
             "v=${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}; [ -d \"$v\" ] && v=\"$v/*.icd\"; "
             "for f in $v; do cp \"$f\" '%s'/a_${f##*/} && cp \"$f\" '%s'/b_${f##*/} || exit 1; done",
             folder, folder);
    if (system(command)) {
        SKIP_TEST("the .icd files of the OpenCL drivers are not at hand");
    }
    setenv("OCL_ICD_VENDORS", folder, 1);
}

TEST(a_driver_that_two_icd_files_name_is_listed_once)
{
    char folder[] = "/tmp/gpuhal-icd-XXXXXX", command[64];
    /* only the helper process loads the drivers */
    gpuhal *gpu = open_opencl(GPUHAL_ISOLATION_ALWAYS);
    const uint32_t once = gpuhal_device_count(gpu);
    gpuhal_close(gpu);
    assert_non_null(mkdtemp(folder));
    register_twice(folder);
    gpu = open_opencl(GPUHAL_ISOLATION_NEVER);
    assert_int_equal(gpuhal_device_count(gpu), once);
    for (uint32_t i = 0; i < once; i++) {
        assert_ok(gpuhal_device_verify(gpuhal_device_at(gpu, i)));
    }
    gpuhal_close(gpu);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void expect_state(gpuhal_plugin_state state, const char *word)
{
    gpuhal *gpu = open_opencl(GPUHAL_ISOLATION_ALWAYS);
    const gpuhal_plugin_report report = report_of(gpu, "opencl");
    if (report.state != state || !strstr(report.reason, word)) {
        fail_msg("%s: %s", gpuhal_plugin_state_name(report.state), report.reason);
    }
    gpuhal_close(gpu);
}

TEST(a_loader_without_a_driver_is_no_driver_or_no_permission_if_no_node_may_be_opened)
{
    const char *forbidden = forbidden_or_skip();
    char folder[128];
    begin_tree();
    put_directory("vendors");
    snprintf(folder, sizeof folder, "%s/vendors", tree_root);
    setenv("OCL_ICD_VENDORS", folder, 1);
    unsetenv("OCL_ICD_FILENAMES");
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, "found no platform");
    put_link("dev/dri/renderD128", forbidden);
    expect_state(GPUHAL_PLUGIN_NO_PERMISSION, "may open none of /dev/dri/renderD*");
    put("dev/dri/renderD129", "");
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, "found no platform");
    remove_tree();
}

/* Simulates rusticl with RUSTICL_DEVICE_TYPE=gpu. rusticl's UUID is Mesa's version. */
TEST(a_software_renderer_that_poses_as_a_gpu_is_a_processor_without_an_identity)
{
    gpuhal *gpu = open_with_answers("gpu;name=llvmpipe (LLVM 19.1.7, 256 bits)");
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    uint64_t value = 0;
    const char *text = NULL, *why = NULL;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &value));
    assert_int_equal(value, 1);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &value));
    assert_int_equal(value, GPUHAL_DEVICE_CPU);
    assert_int_not_equal(gpuhal_device_text(device, GPUHAL_FACT_UUID, &text), GPUHAL_OK);
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_UUID, &why), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_DRIVER_UUID, &why), GPUHAL_MISSING_NOT_SUPPORTED);
    gpuhal_close(gpu);
}

TEST(a_gpu_that_is_no_software_renderer_keeps_its_type_and_identity)
{
    gpuhal *gpu = open_with_answers("gpu;name=Intel(R) Arc(TM) A770 Graphics");
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    uint64_t value = 0;
    const char *text = NULL;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &value));
    assert_int_equal(value, 0);
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &value));
    assert_true(value == GPUHAL_DEVICE_GPU || value == GPUHAL_DEVICE_INTEGRATED_GPU);
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_UUID, &text));
    assert_string_equal(text, "65766572-7920-6d61-6368-696e65277300");
    gpuhal_close(gpu);
}

TEST(a_pci_address_that_cannot_be_is_not_believed)
{
    static const struct {
        const char *script, *expected; /* expected: NULL if the fact must be missing */
    } cases[] = {
        {"0:0:0.0", NULL}, {"0:100:0.0", NULL}, {"0:1:20.0", NULL},           {"0:1:0.8", NULL},
        {"0:0:2.0", "0000:00:02.0"},            {"0:ff:1f.7", "0000:ff:1f.7"}, {"10000:1:0.0", "10000:01:00.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[80];
        const char *text = NULL, *why = NULL;
        snprintf(script, sizeof script, "gpu;name=A GPU;pci=%s", cases[i].script);
        use_answers(script);
        gpuhal *gpu = open_opencl(GPUHAL_ISOLATION_ALWAYS); /* this process would list the devices only once */
        gpuhal_device *device = select_or_fail(gpu, "opencl:0");
        const gpuhal_status status = gpuhal_device_text(device, GPUHAL_FACT_PCI_ADDRESS, &text);
        if (cases[i].expected) {
            assert_ok(status);
            assert_string_equal(text, cases[i].expected);
        } else {
            assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_PCI_ADDRESS, &why), GPUHAL_MISSING_FAILED);
        }
        gpuhal_close(gpu);
    }
}

/* Drivers return CL_MEM_OBJECT_ALLOCATION_FAILURE if they cannot commit memory that they have already allocated. */
TEST(a_buffer_whose_memory_cannot_be_committed_is_out_of_memory_and_given_back)
{
    char log[] = "/tmp/gpuhal-released-XXXXXX", line[64];
    const int file = mkstemp(log);
    assert_true(file >= 0);
    gpuhal *gpu = open_with_answers("svm=0;migrate=-4");
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_DEVICE, .bytes = 4096};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_device_open(device));
    setenv("GPUHAL_FAKE_OPENCL_LOG", log, 1);
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(buffer);
    assert_string_equal(gpuhal_last_error()->vendor_call, "clEnqueueMigrateMemObjects");
    unsetenv("GPUHAL_FAKE_OPENCL_LOG");
    assert_int_equal(read(file, line, sizeof line), strlen("clReleaseMemObject\n"));
    setenv("GPUHAL_FAKE_OPENCL", "", 1);
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    close(file);
    unlink(log);
}

static void expect_logged(int file, const char *expected)
{
    char text[128];
    const ssize_t got = read(file, text, sizeof text - 1);
    assert_true(got >= 0);
    text[got] = '\0';
    assert_string_equal(text, expected);
}

static gpuhal_device *sharing_device(gpuhal *gpu)
{
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    uint64_t visible = 0;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_HOST_VISIBLE_KINDS, &visible));
    if (!(visible >> GPUHAL_MEMORY_DEVICE & 1)) {
        SKIP_TEST("the driver shares no memory with the host");
    }
    return device;
}

/* The driver shares memory with the host. The memory exists as long as the buffer has a reference. In this test the
 * application has a reference. */
TEST(device_memory_of_the_hosts_processor_is_seen_by_the_host_and_goes_with_the_last_reference)
{
    char log[] = "/tmp/gpuhal-released-XXXXXX";
    const int file = mkstemp(log);
    assert_true(file >= 0);
    gpuhal *gpu = open_with_answers("");
    gpuhal_device *device = sharing_device(gpu);
    gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4096);
    gpuhal_buffer *other = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4096);
    unsigned char *host = gpuhal_buffer_host(one), *other_host = gpuhal_buffer_host(other);
    assert_non_null(host);
    assert_ok(gpuhal_fill(NULL, one, 0, 4096, 0x5a, 1));
    assert_int_equal(host[4095], 0x5a);
    host[100] = 1;
    assert_ok(gpuhal_copy(NULL, other, 0, one, 0, 4096));
    assert_int_equal(other_host[100], 1);
    assert_int_equal(other_host[101], 0x5a);
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_buffer_native(one, &native));
    void *library = dlopen(getenv("GPUHAL_FAKE_OPENCL_LIBRARY"), RTLD_NOW);
    int32_t (*retain)(void *) = NULL, (*release)(void *) = NULL;
    *(void **)&retain = dlsym(library, "clRetainMemObject");
    *(void **)&release = dlsym(library, "clReleaseMemObject");
    assert_int_equal(retain((void *)(uintptr_t)native.values[0]), 0);
    setenv("GPUHAL_FAKE_OPENCL_LOG", log, 1);
    gpuhal_buffer_release(one);
    expect_logged(file, "clReleaseMemObject\n");
    host[100] = 2;
    assert_int_equal(release((void *)(uintptr_t)native.values[0]), 0);
    expect_logged(file, "clReleaseMemObject\nclSVMFree\n");
    unsetenv("GPUHAL_FAKE_OPENCL_LOG");
    gpuhal_buffer_release(other);
    gpuhal_close(gpu);
    close(file);
    unlink(log);
}

TEST(shared_memory_that_cannot_be_had_is_out_of_memory_and_given_back)
{
    char log[] = "/tmp/gpuhal-released-XXXXXX";
    const int file = mkstemp(log);
    assert_true(file >= 0);
    gpuhal *gpu = open_with_answers("");
    gpuhal_device *device = sharing_device(gpu);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_DEVICE, .bytes = 4096};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_device_open(device));
    setenv("GPUHAL_FAKE_OPENCL_LOG", log, 1);
    setenv("GPUHAL_FAKE_OPENCL", "svmalloc", 1);
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_string_equal(gpuhal_last_error()->vendor_call, "clSVMAlloc");
    expect_logged(file, "");
    setenv("GPUHAL_FAKE_OPENCL", "gone=-5", 1);
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_string_equal(gpuhal_last_error()->vendor_call, "clSetMemObjectDestructorCallback");
    expect_logged(file, "clReleaseMemObject\nclSVMFree\n");
    unsetenv("GPUHAL_FAKE_OPENCL_LOG");
    setenv("GPUHAL_FAKE_OPENCL", "", 1);
    gpuhal_buffer_release(buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4096));
    gpuhal_close(gpu);
    close(file);
    unlink(log);
}

TEST(device_memory_that_has_to_be_mapped_has_no_lasting_address)
{
    gpuhal *gpu = open_with_answers("svm=1");
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4096);
    void *pointer = NULL;
    assert_null(gpuhal_buffer_host(buffer));
    assert_ok(gpuhal_buffer_map(buffer, 0, 4096, GPUHAL_ACCESS_WRITE, &pointer));
    memset(pointer, 7, 4096);
    assert_ok(gpuhal_buffer_unmap(buffer, pointer));
    unsigned char got[4096];
    assert_ok(gpuhal_read(NULL, got, buffer, 0, sizeof got));
    assert_int_equal(got[4095], 7);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

/* Simulates rusticl: after a command has failed during execution, all later commands in its queue fail.
 * CL_OUT_OF_RESOURCES (-5) for such a command does not necessarily mean that memory is short. */
TEST(a_blocking_copy_that_fails_in_execution_is_no_lack_of_memory_and_the_next_one_works)
{
    unsigned char bytes[4096], got[4096] = {0};
    gpuhal *gpu = open_with_answers("");
    gpuhal_device *device = sharing_device(gpu);
    gpuhal_buffer *from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof bytes);
    gpuhal_buffer *to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof bytes);
    gpuhal_native native = {.size = sizeof native}, later = {.size = sizeof later};
    memset(bytes, 0x5a, sizeof bytes);
    assert_ok(gpuhal_write(NULL, from, 0, bytes, sizeof bytes));
    assert_ok(gpuhal_device_native(device, &native));
    setenv("GPUHAL_FAKE_OPENCL", "copy=-5", 1);
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, sizeof bytes), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_last_error()->vendor_code, -5);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "CL_OUT_OF_RESOURCES (of a command"));
    setenv("GPUHAL_FAKE_OPENCL", "", 1);
    assert_ok(gpuhal_copy(NULL, to, 0, from, 0, sizeof bytes));
    assert_ok(gpuhal_read(NULL, got, to, 0, sizeof got));
    assert_memory_equal(got, bytes, sizeof got);
    /* The native handles that the application already has are still valid. */
    assert_ok(gpuhal_device_native(device, &later));
    assert_int_equal(later.values[3], native.values[3]);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
}

/* PoCL aborts the process if no host memory is left when a buffer is first used. */
TEST(a_short_address_space_is_out_of_memory_and_the_device_goes_on)
{
    enum { PIECE = 128 << 20, PIECES = 8 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizer needs the address space itself");
#endif
    gpuhal *gpu = open_opencl(GPUHAL_ISOLATION_NEVER);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_DEVICE, .bytes = PIECE};
        const gpuhal_buffer_desc small = {.size = sizeof small, .kind = GPUHAL_MEMORY_DEVICE, .bytes = 4096};
        gpuhal_buffer *pieces[PIECES], *one = NULL;
        unsigned count = 0;
        gpuhal_status status = GPUHAL_OK;
        struct rlimit before;
        assert_ok(gpuhal_device_open(device));
        assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
        const struct rlimit tight = {.rlim_cur = ((rlim_t)memory_status_kib("VmSize:") << 10) + 3 * (rlim_t)PIECE,
                                     .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
        while (count < PIECES && (status = gpuhal_buffer_create(device, &desc, &pieces[count])) == GPUHAL_OK) {
            count++;
        }
        assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
        assert_int_equal(status, GPUHAL_ERROR_OUT_OF_MEMORY);
        assert_true(count > 0 && count < 4);
        assert_ok(gpuhal_buffer_create(device, &small, &one));
        assert_ok(gpuhal_fill(NULL, one, 0, 4096, 7, 4));
        gpuhal_buffer_release(one);
        while (count > 0) {
            gpuhal_buffer_release(pieces[--count]);
        }
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
