//! The categories of torch.profiler's events (`cat`) in all its versions.

/// The kind of events of a category, as far as the tables distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    /// Operators on a CPU thread: `aten::…`. They are nested.
    Operator,
    /// Calls of CUDA, HIP and other runtimes and drivers, on a thread of the CPU.
    Runtime,
    /// Kernels of a device.
    Kernel,
    /// Copies by a device.
    Memcpy,
    /// Setting memory on a device.
    Memset,
    /// Annotations by `record_function` on a CPU thread, and the profiler's steps.
    Annotation,
    /// Annotations by `record_function`, with the time of their work on a stream of a device.
    DeviceAnnotation,
    /// The span of the whole recording, and the overhead of recording.
    Recording,
    /// Other events of a profiler, which are in no table.
    Other,
    /// Events that no known profiler wrote.
    Foreign,
}

impl Category {
    /// Returns the category with this name; names with capitals are from before PyTorch 1.12.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "cpu_op" | "Operator" => Category::Operator,
            "cuda_runtime"
            | "cuda_driver"
            | "hip_runtime"
            | "hip_driver"
            | "xpu_runtime"
            | "mtia_runtime"
            | "privateuse1_runtime"
            | "privateuse1_driver"
            | "Runtime" => Category::Runtime,
            "kernel" | "Kernel" => Category::Kernel,
            "gpu_memcpy" | "Memcpy" => Category::Memcpy,
            "gpu_memset" | "Memset" => Category::Memset,
            "user_annotation" => Category::Annotation,
            "gpu_user_annotation" => Category::DeviceAnnotation,
            "Trace" | "overhead" => Category::Recording,
            "python_function"
            | "ac2g"
            | "async_cpu_to_gpu"
            | "async_gpu"
            | "fwdbwd"
            | "forward_backward"
            | "cpu_instant_event"
            | "cuda_sync"
            | "cuda_profiler_range"
            | "cuda_event"
            | "collective_comm"
            | "external_correlation"
            | "glow_runtime"
            | "hpu_op"
            | "itt"
            | "mtia_ccp_events"
            | "mtia_insight"
            | "mtia_workloadd"
            | "mtia_counters"
            | "xpu_sync" => Category::Other,
            _ => Category::Foreign,
        }
    }

    /// Returns whether its events run on a device.
    pub(super) fn is_device(self) -> bool {
        matches!(self, Category::Kernel | Category::Memcpy | Category::Memset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_of_both_ages() {
        for (name, category) in [
            ("kernel", Category::Kernel),
            ("Kernel", Category::Kernel),
            ("gpu_memcpy", Category::Memcpy),
            ("cuda_driver", Category::Runtime),
            ("gpu_user_annotation", Category::DeviceAnnotation),
            // It waits for a device and has the device's row, but is not work of the device.
            ("cuda_sync", Category::Other),
            ("Trace", Category::Recording),
            ("automaton", Category::Foreign),
        ] {
            assert_eq!(Category::from_name(name), category, "{name}");
        }
        assert!(Category::Memset.is_device() && !Category::DeviceAnnotation.is_device());
    }
}
