// tests/install/consumer.cpp: another project's C++17 program. It copies bytes to every device and back with
// gpuhal.hpp, and checks how gpuhal.hpp reports a failure.
#include <gpuhal/gpuhal.hpp>

#include <cstdio>
#include <cstring>
#include <vector>

static bool move_bytes(gpuhal_device *device)
{
    const char sent[] = "there and back";
    char received[sizeof sent] = "";
    gpuhal_cpp::buffer kept;
    {
        const auto buffer = gpuhal_cpp::make_buffer(device, sizeof sent);
        gpuhal_cpp::check(gpuhal_write(nullptr, buffer.get(), 0, sent, sizeof sent));
        kept = buffer;
    }
    const auto queue = gpuhal_cpp::make_queue(device);
    gpuhal_cpp::check(gpuhal_read(queue.get(), received, kept.get(), 0, sizeof received));
    gpuhal_cpp::check(gpuhal_queue_synchronize(queue.get(), UINT64_MAX));
    return std::memcmp(sent, received, sizeof sent) == 0;
}

static bool sees_its_own_memory(gpuhal_device *device)
{
    static const char weights[100] = "weights";
    auto import = GPUHAL_INIT(gpuhal_host_import);
    import.memory = const_cast<char *>(weights);
    import.bytes = sizeof weights;
    import.flags = GPUHAL_IMPORT_READ_ONLY;
    uint64_t offset = 0;
    char first[8];
    const auto seen = gpuhal_cpp::import_host(device, import, offset);
    gpuhal_cpp::check(gpuhal_read(nullptr, first, seen.get(), offset, sizeof first));
    return std::strcmp(first, "weights") == 0;
}

static void add_one(void *const *arguments, const gpuhal_host_group *group)
{
    static_cast<uint32_t *>(arguments[0])[group->group[0]]++;
}

/* The program object is released before its kernel is launched. */
static bool runs_a_kernel(gpuhal_device *device)
{
    static const gpuhal_host_function functions[] = {{"add_one", add_one}, {nullptr, nullptr}};
    static const gpuhal_parameter parameters[] = {{GPUHAL_PARAMETER_BUFFER, 0, 0, 0}};
    auto code = GPUHAL_INIT(gpuhal_code);
    code.format = "host-function";
    code.code = functions;
    code.bytes = sizeof functions;
    auto desc = GPUHAL_INIT(gpuhal_kernel_desc);
    desc.name = "add_one";
    desc.parameters = parameters;
    desc.parameter_count = 1;
    desc.group_size[0] = 1;
    gpuhal_cpp::kernel kept;
    {
        const auto program = gpuhal_cpp::make_program(device, &code, 1);
        const auto kernel = gpuhal_cpp::make_kernel(program, desc);
        kept = kernel;
    }
    uint32_t numbers[4] = {1, 2, 3, 4};
    const auto buffer = gpuhal_cpp::make_buffer(device, sizeof numbers);
    gpuhal_cpp::check(gpuhal_write(nullptr, buffer.get(), 0, numbers, sizeof numbers));
    gpuhal_argument argument = {buffer.get(), 0, 0, nullptr};
    auto launch = GPUHAL_INIT(gpuhal_launch);
    launch.argument_count = 1;
    launch.arguments = &argument;
    launch.groups[0] = 4;
    launch.groups[1] = launch.groups[2] = 1;
    gpuhal_cpp::check(gpuhal_kernel_launch(nullptr, kept.get(), &launch));
    gpuhal_cpp::check(gpuhal_read(nullptr, numbers, buffer.get(), 0, sizeof numbers));
    return numbers[0] == 2 && numbers[1] == 3 && numbers[2] == 4 && numbers[3] == 5;
}

static bool fails_well(const gpuhal_cpp::instance &gpu)
{
    try {
        gpuhal_cpp::select(gpu, "nothing:9");
    } catch (const gpuhal_cpp::error &failure) {
        return failure.status() == GPUHAL_ERROR_NOT_FOUND && std::strstr(failure.what(), "nothing:9") != nullptr;
    }
    return false;
}

int main()
{
    try {
        const auto gpu = gpuhal_cpp::open();
        bool right = fails_well(gpu) && gpuhal_device_count(gpu.get()) > 0 && sees_its_own_memory(gpuhal_cpp::select(gpu, "cpu")) &&
                     runs_a_kernel(gpuhal_cpp::select(gpu, "cpu")) &&
                     gpuhal_view_count(gpuhal_cpp::make_view(gpu).get(), GPUHAL_RECORD_INTERFACE) == gpuhal_device_count(gpu.get());
        for (uint32_t i = 0; i < gpuhal_device_count(gpu.get()); i++) {
            gpuhal_device *device = gpuhal_device_at(gpu.get(), i);
            const bool moved = move_bytes(device);
            std::printf("device %s %s\n", gpuhal_device_id(device), moved ? "right" : "wrong");
            right = right && moved;
        }
        return right ? 0 : 1;
    } catch (const gpuhal_cpp::error &failure) {
        std::printf("failed: %s\n", failure.what());
        return 1;
    }
}
