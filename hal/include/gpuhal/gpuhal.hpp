/** gpuhal/gpuhal.hpp: the API for C++17, with handles that release their objects, and exceptions for failures.
 *
 *  Header-only, on top of gpuhal.h and store.h: nothing here is exported, and the C functions accept a handle's get().
 *  GPUHAL_INIT creates structures with their size. The namespace is gpuhal_cpp because `gpuhal` is a type of the C API.
 *
 *      auto gpu = gpuhal_cpp::open();
 *      auto buffer = gpuhal_cpp::make_buffer(gpuhal_cpp::select(gpu), 4096);
 *      gpuhal_cpp::check(gpuhal_write(nullptr, buffer.get(), 0, text, sizeof text));
 */
#ifndef GPUHAL_GPUHAL_HPP
#define GPUHAL_GPUHAL_HPP

#include <gpuhal/gpuhal.h>
#if __has_include(<gpuhal/store.h>) // not in a library that was built without stores
#include <gpuhal/store.h>
#endif

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpuhal_cpp {

/** The exception for a failed call. what() returns the sentence; the members contain the other parts of
 *  gpuhal_last_error(). */
class error : public std::runtime_error {
public:
    explicit error(gpuhal_status failed) : error(failed, *gpuhal_last_error()) {}

    gpuhal_status status() const noexcept { return status_; }
    const std::string &backend() const noexcept { return backend_; }
    const std::string &device() const noexcept { return device_; }
    const std::string &vendor_call() const noexcept { return vendor_call_; }
    const std::string &vendor_text() const noexcept { return vendor_text_; }
    int64_t vendor_code() const noexcept { return vendor_code_; }

private:
    error(gpuhal_status failed, const gpuhal_error &detail)
        : std::runtime_error(detail.status == failed ? detail.sentence : gpuhal_status_name(failed)), status_(failed),
          backend_(detail.backend), device_(detail.device), vendor_call_(detail.vendor_call), vendor_text_(detail.vendor_text),
          vendor_code_(detail.vendor_code)
    {
    }

    gpuhal_status status_;
    std::string backend_, device_, vendor_call_, vendor_text_;
    int64_t vendor_code_;
};

/** Throws if the status is an error; returns GPUHAL_OK and other statuses that are not errors (GPUHAL_NOT_READY). */
inline gpuhal_status check(gpuhal_status status)
{
    if (status < 0) {
        throw error(status);
    }
    return status;
}

/** Destroys a handle's object with a function of the C API. */
template <auto End> struct ender {
    template <class Handle> void operator()(Handle *handle) const noexcept { End(handle); }
};

/* As in C, buffers, queues and events may outlive the gpuhal object. */
using instance = std::unique_ptr<::gpuhal, ender<gpuhal_close>>;
using queue = std::unique_ptr<gpuhal_queue, ender<gpuhal_queue_destroy>>;
using pool = std::unique_ptr<gpuhal_pool, ender<gpuhal_pool_destroy>>;
#ifdef GPUHAL_STORE_H
using store = std::unique_ptr<gpuhal_store, ender<gpuhal_store_destroy>>;
#endif
using event = std::unique_ptr<gpuhal_event, ender<gpuhal_event_destroy>>;
using view = std::unique_ptr<gpuhal_view, ender<gpuhal_view_release>>;

/** An object with a reference count. A copy adds a reference. */
template <class Handle, auto Retain, auto Release> class counted {
public:
    counted() = default;
    /** Takes over the reference. */
    explicit counted(Handle *owned) noexcept : held_(owned) {}
    counted(const counted &other) noexcept : held_(Retain(other.held_)) {}
    counted(counted &&other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
    counted &operator=(counted other) noexcept
    {
        std::swap(held_, other.held_);
        return *this;
    }
    ~counted() { Release(held_); }

    Handle *get() const noexcept { return held_; }
    explicit operator bool() const noexcept { return held_ != nullptr; }

private:
    Handle *held_ = nullptr;
};

class buffer : public counted<gpuhal_buffer, gpuhal_buffer_retain, gpuhal_buffer_release> {
public:
    using counted::counted;

    uint64_t bytes() const noexcept { return gpuhal_buffer_bytes(get()); }
    uint64_t address() const noexcept { return gpuhal_buffer_address(get()); }
    void *host() const noexcept { return gpuhal_buffer_host(get()); }
};

using program = counted<gpuhal_program, gpuhal_program_retain, gpuhal_program_release>;
using kernel = counted<gpuhal_kernel, gpuhal_kernel_retain, gpuhal_kernel_release>;
using recording = counted<gpuhal_recording, gpuhal_recording_retain, gpuhal_recording_release>;

inline instance open(const gpuhal_config &config = GPUHAL_INIT(gpuhal_config))
{
    ::gpuhal *opened = nullptr;
    check(gpuhal_open(&config, &opened));
    return instance(opened);
}

/** Selects a device. The pointer is valid as long as its gpuhal object exists. */
inline gpuhal_device *select(const instance &gpu, const char *selector = nullptr, uint32_t flags = 0)
{
    gpuhal_device *chosen = nullptr;
    check(gpuhal_select(gpu.get(), selector, flags, &chosen, nullptr));
    return chosen;
}

/** Creates a view of the current state, for gpuhal_view_get(). */
inline view make_view(const instance &gpu, uint32_t flags = 0)
{
    gpuhal_view *made = nullptr;
    check(gpuhal_view_of(gpu.get(), flags, &made));
    return view(made);
}

inline buffer make_buffer(gpuhal_device *device, const gpuhal_buffer_desc &desc)
{
    gpuhal_buffer *made = nullptr;
    check(gpuhal_buffer_create(device, &desc, &made));
    return buffer(made);
}

inline buffer make_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE)
{
    auto desc = GPUHAL_INIT(gpuhal_buffer_desc);
    desc.bytes = bytes;
    desc.kind = kind;
    return make_buffer(device, desc);
}

/** Imports host memory; @p offset is the offset of its first byte in the buffer. */
inline buffer import_host(gpuhal_device *device, const gpuhal_host_import &import, uint64_t &offset)
{
    gpuhal_buffer *made = nullptr;
    check(gpuhal_buffer_import_host(device, &import, &made, &offset));
    return buffer(made);
}

inline queue make_queue(gpuhal_device *device, const gpuhal_queue_desc &desc = GPUHAL_INIT(gpuhal_queue_desc))
{
    gpuhal_queue *made = nullptr;
    check(gpuhal_queue_create(device, &desc, &made));
    return queue(made);
}

inline event make_event(const instance &gpu, uint32_t flags = 0)
{
    gpuhal_event *made = nullptr;
    check(gpuhal_event_create(gpu.get(), flags, &made));
    return event(made);
}

inline program make_program(gpuhal_device *device, const gpuhal_program_desc &desc)
{
    gpuhal_program *made = nullptr;
    check(gpuhal_program_create(device, &desc, &made));
    return program(made);
}

/** Creates a program from the array that gpuhal_add_program() generates. */
inline program make_program(gpuhal_device *device, const gpuhal_code *codes, uint32_t count)
{
    auto desc = GPUHAL_INIT(gpuhal_program_desc);
    desc.codes = codes;
    desc.code_count = count;
    return make_program(device, desc);
}

inline kernel make_kernel(const program &of, const gpuhal_kernel_desc &desc)
{
    gpuhal_kernel *made = nullptr;
    check(gpuhal_kernel_create(of.get(), &desc, &made));
    return kernel(made);
}

inline recording make_recording(gpuhal_device *device, const gpuhal_recording_desc &desc)
{
    gpuhal_recording *made = nullptr;
    check(gpuhal_recording_create(device, &desc, &made));
    return recording(made);
}

} // namespace gpuhal_cpp

#endif
