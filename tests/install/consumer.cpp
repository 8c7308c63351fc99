// tests/install/consumer.cpp: somebody else's program in C++17: the same bytes to every device and back through gpuhal.hpp, and what a
// failure looks like there.
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
        bool right = fails_well(gpu) && gpuhal_device_count(gpu.get()) > 0 && sees_its_own_memory(gpuhal_cpp::select(gpu, "cpu"));
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
