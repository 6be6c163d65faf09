// Streams, events, captures and graphs.
#include "device.h"

namespace device {

static Stream &default_stream() { return *gpu.default_stream; }

std::shared_ptr<Stream> stream_of(void *handle) {
    // CU_STREAM_LEGACY and CU_STREAM_PER_THREAD: one here, since no thread has a stream of its own.
    if ((uintptr_t)handle <= 2) return gpu.default_stream;
    return gpu.streams.find(handle);
}

int refuse(Stream &stream, const char *what, int code) {
    say("%s must not be called while a stream is captured", what);
    stream.capture->is_invalid = true;
    return code;
}

int perform(const Operation &operation) {
    if (gpu.failure) return gpu.failure;
    int code = operation.run();
    if (!code) code = check_surroundings(operation.name);
    if (code) {
        say("`%s` failed with %d", operation.name.c_str(), code);
        gpu.failure = code;
    }
    return code;
}

int give(void *handle, Operation operation) {
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    if (stream->capture) {
        if (stream->capture->is_invalid) return CAPTURE_INVALIDATED;
        stream->capture->graph->nodes.push_back(std::move(operation));
        return SUCCESS;
    }
    // The default stream and those that wait for it are one after the other in the order of calls.
    if (stream == gpu.default_stream) {
        for (auto &[other, waits] : gpu.streams.all()) {
            if (waits->waits_for_default) finish(*waits);
        }
    } else if (stream->waits_for_default) {
        finish(default_stream());
    }
    stream->queue.push_back(std::move(operation));
    return SUCCESS;
}

int finish(Stream &stream, unsigned long long count) {
    while (stream.done < count && !stream.queue.empty()) {
        Operation operation = std::move(stream.queue.front());
        stream.queue.pop_front();
        stream.done++;
        perform(operation);
    }
    return gpu.failure;
}

int finish(Stream &stream) { return finish(stream, stream.done + stream.queue.size()); }

int finish_all() {
    finish(default_stream());
    // What an operation does may not add streams.
    for (auto &[handle, stream] : gpu.streams.all()) finish(*stream);
    return gpu.failure;
}

}  // namespace device

using namespace device;

extern "C" {

int cuStreamCreate(void **stream, unsigned flags) {
    CALL(NO_CAPTURE);
    enum { NON_BLOCKING = 1 };
    auto made = std::make_shared<Stream>();
    made->waits_for_default = !(flags & NON_BLOCKING);
    *stream = gpu.streams.add(made);
    return SUCCESS;
}

int cuStreamDestroy_v2(void *handle) {
    CALL(CONTEXT);
    std::shared_ptr<Stream> stream = gpu.streams.find(handle);
    if (!stream) return INVALID_HANDLE;
    gpu.streams.remove(handle);
    return finish(*stream);
}

int cuStreamSynchronize(void *handle) {
    CALL(CONTEXT);
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    if (stream->capture) return refuse(*stream, __func__, CAPTURE_UNSUPPORTED);
    return finish(*stream);
}

int cuStreamQuery(void *handle) {
    CALL(CONTEXT);
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    if (stream->capture) return refuse(*stream, __func__, CAPTURE_UNSUPPORTED);
    return stream->queue.empty() ? SUCCESS : NOT_READY;
}

int cuEventCreate(void **event, unsigned) {
    CALL(CONTEXT);
    *event = gpu.events.add(std::make_shared<Event>());
    return SUCCESS;
}

int cuEventDestroy_v2(void *event) {
    CALL(CONTEXT);
    return gpu.events.remove(event) ? SUCCESS : INVALID_HANDLE;
}

int cuEventRecord(void *handle, void *stream_handle) {
    CALL(CONTEXT);
    std::shared_ptr<Event> event = gpu.events.find(handle);
    std::shared_ptr<Stream> stream = stream_of(stream_handle);
    if (!event || !stream) return INVALID_HANDLE;
    if (stream->capture && stream->capture->is_invalid) return CAPTURE_INVALIDATED;
    *event = {stream, stream->done + stream->queue.size(), stream->capture != nullptr};
    return SUCCESS;
}

int cuEventQuery(void *handle) {
    CALL(NO_CAPTURE);
    std::shared_ptr<Event> event = gpu.events.find(handle);
    if (!event) return INVALID_HANDLE;
    if (event->is_captured) return CAPTURED_EVENT;
    return !event->stream || event->stream->done >= event->after ? SUCCESS : NOT_READY;
}

int cuEventSynchronize(void *handle) {
    CALL(NO_CAPTURE);
    std::shared_ptr<Event> event = gpu.events.find(handle);
    if (!event) return INVALID_HANDLE;
    if (event->is_captured) return CAPTURED_EVENT;
    return event->stream ? finish(*event->stream, event->after) : SUCCESS;
}

int cuStreamWaitEvent(void *stream_handle, void *event_handle, unsigned) {
    CALL(CONTEXT);
    std::shared_ptr<Event> event = gpu.events.find(event_handle);
    std::shared_ptr<Stream> stream = stream_of(stream_handle);
    if (!event || !stream) return INVALID_HANDLE;
    if (!event->stream) return SUCCESS;
    if (stream->capture && !event->is_captured) return refuse(*stream, __func__, CAPTURE_ISOLATION);
    // What one stream alone captured is in order; another one would join the capture, which none does here.
    if (event->is_captured) return event->stream == stream ? SUCCESS : NOT_SUPPORTED;
    if (event->stream == stream) return SUCCESS;
    std::shared_ptr<Stream> before = event->stream;
    unsigned long long after = event->after;
    return give(stream_handle, {"wait", [=] { return finish(*before, after); }});
}

int cuStreamBeginCapture_v2(void *handle, int mode) {
    CALL(CONTEXT);
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    if (stream == gpu.default_stream) return CAPTURE_UNSUPPORTED;
    if (stream->capture) return ILLEGAL_STATE;
    auto capture = Capture{(Capture::Mode)mode, std::this_thread::get_id(), std::make_shared<Graph>(), false};
    stream->capture = std::make_unique<Capture>(capture);
    count("captures");
    return SUCCESS;
}

int cuStreamIsCapturing(void *handle, int *status) {
    CALL(CONTEXT);
    enum { NONE, ACTIVE, INVALIDATED };
    std::shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    *status = !stream->capture ? NONE : stream->capture->is_invalid ? INVALIDATED : ACTIVE;
    return SUCCESS;
}

int cuStreamEndCapture(void *handle, void **graph) {
    device::Call call(__func__, CONTEXT);
    *graph = nullptr;
    std::shared_ptr<Stream> stream = stream_of(handle);
    // Whatever failed: the capture is over.
    if (call.code && stream) stream->capture = nullptr;
    if (call.code) return call.code;
    if (!stream) return INVALID_HANDLE;
    if (!stream->capture) return ILLEGAL_STATE;
    if (stream->capture->mode != Capture::RELAXED && stream->capture->thread != std::this_thread::get_id()) {
        return CAPTURE_WRONG_THREAD;
    }
    std::unique_ptr<Capture> capture = std::move(stream->capture);
    if (capture->is_invalid) return CAPTURE_INVALIDATED;
    count("nodes of graphs", capture->graph->nodes.size());
    *graph = gpu.graphs.add(capture->graph);
    return SUCCESS;
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
    CALL(CONTEXT);
    std::shared_ptr<Graph> found = gpu.graphs.find(graph);
    if (!found) return INVALID_VALUE;
    *executable = gpu.executables.add(std::make_shared<Graph>(*found));
    return SUCCESS;
}

int cuGraphLaunch(void *executable, void *stream) {
    CALL(CONTEXT);
    std::shared_ptr<Graph> found = gpu.executables.find(executable);
    if (!found) return INVALID_VALUE;
    std::shared_ptr<Stream> on = stream_of(stream);
    if (on && on->capture) return refuse(*on, __func__, NOT_SUPPORTED);
    count("replays");
    return give(stream, {"graph", [=] {
        for (const Operation &node : found->nodes) {
            if (int code = perform(node)) return code;
        }
        return (int)SUCCESS;
    }});
}

int cuGraphExecDestroy(void *executable) {
    CALL(CONTEXT);
    return gpu.executables.remove(executable) ? SUCCESS : INVALID_VALUE;
}

int cuGraphDestroy(void *graph) {
    CALL(CONTEXT);
    return gpu.graphs.remove(graph) ? SUCCESS : INVALID_VALUE;
}

}  // extern "C"
