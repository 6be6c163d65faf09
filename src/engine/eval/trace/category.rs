//! The categories of torch.profiler's events (`cat`), of all its versions.

/// What the events of a category are, as far as the tables ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    /// What a thread of the CPU computes: `aten::…`. Operators hold operators.
    Operator,
    /// Calls of CUDA, HIP and other runtimes and drivers, on a thread of the CPU.
    Runtime,
    /// Kernels of a device.
    Kernel,
    /// Copies by a device.
    Memcpy,
    /// Memory that a device sets.
    Memset,
    /// What `record_function` names on a thread of the CPU, and the profiler's steps.
    Annotation,
    /// What `record_function` names, as its work went on a stream of a device.
    DeviceAnnotation,
    /// The span of the whole recording, and what recording cost.
    Recording,
    /// Of a profiler, but in no table.
    Other,
    /// Of no profiler that is known here.
    Foreign,
}

impl Category {
    /// By its name; the names with capitals are those before PyTorch 1.12.
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

    /// Whether its events run on a device.
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
            // It waits for a device and stands on its row, but is no work.
            ("cuda_sync", Category::Other),
            ("Trace", Category::Recording),
            ("automaton", Category::Foreign),
        ] {
            assert_eq!(Category::from_name(name), category, "{name}");
        }
        assert!(Category::Memset.is_device() && !Category::DeviceAnnotation.is_device());
    }
}
