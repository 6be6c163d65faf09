//! Classifies runtime calls and operators by their names.

use super::kernels;

/// Calls of a runtime or a driver that the tables count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Call {
    KernelLaunch,
    /// The launch of a graph, which contains any number of kernels.
    GraphLaunch,
    /// Waiting for a device.
    DeviceWait,
    /// Waiting for a stream.
    StreamWait,
    /// Waiting for an event of a stream.
    EventWait,
    Memcpy,
    Memset,
    /// Allocating or freeing device memory, which may wait for the device.
    Allocation,
}

impl Call {
    /// Returns the kind of a call from its name in CUDA's runtime and driver, HIP and others; `None` for calls that no table counts.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        Some(match () {
            () if has(&["graphlaunch"]) => Call::GraphLaunch,
            () if has(&["launch"]) && has(&["kernel"]) => Call::KernelLaunch,
            () if has(&["devicesynchronize", "ctxsynchronize"]) => Call::DeviceWait,
            () if has(&["streamsynchronize"]) => Call::StreamWait,
            () if has(&["eventsynchronize"]) => Call::EventWait,
            () if has(&["memcpy"]) => Call::Memcpy,
            () if has(&["memset"]) => Call::Memset,
            () if has(&["malloc", "cudafree", "hipfree", "cumemfree", "hostalloc", "memalloc"]) => {
                Call::Allocation
            }
            () => return None,
        })
    }
}

/// Returns whether an operator computes attention. Such operators can be nested: `aten::scaled_dot_product_attention` contains
/// `aten::_scaled_dot_product_flash_attention`, and this contains `aten::_flash_attention_forward`.
pub(super) fn is_attention(operator: &str) -> bool {
    let name = operator.to_ascii_lowercase();
    kernels::is_attention(&name) && !["choice", "mask", "backward"].iter().any(|word| name.contains(word))
}

/// The common name of the profiler's steps, whose own names contain their numbers.
pub(super) const STEP: &str = "ProfilerStep";

/// Returns the name of an annotation without the number of a step: `ProfilerStep#17` becomes [`STEP`].
pub(super) fn phase(name: &str) -> &str {
    match name.split_once('#') {
        Some((STEP, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => STEP,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_every_runtime() {
        for (name, call) in [
            ("cudaLaunchKernel", Some(Call::KernelLaunch)),
            ("cudaLaunchKernelExC", Some(Call::KernelLaunch)),
            ("cuLaunchKernel", Some(Call::KernelLaunch)),
            ("cuLaunchKernelEx", Some(Call::KernelLaunch)),
            ("cudaLaunchCooperativeKernel", Some(Call::KernelLaunch)),
            ("hipExtModuleLaunchKernel", Some(Call::KernelLaunch)),
            ("cudaLaunchHostFunc", None),
            ("cudaGraphLaunch", Some(Call::GraphLaunch)),
            ("cudaGraphInstantiateWithFlags", None),
            ("cudaDeviceSynchronize", Some(Call::DeviceWait)),
            ("cudaStreamSynchronize", Some(Call::StreamWait)),
            ("hipEventSynchronize", Some(Call::EventWait)),
            ("cudaStreamWaitEvent", None),
            ("cudaMemcpyAsync", Some(Call::Memcpy)),
            ("hipMemcpyWithStream", Some(Call::Memcpy)),
            ("cudaMemsetAsync", Some(Call::Memset)),
            ("cudaMalloc", Some(Call::Allocation)),
            ("cudaFree", Some(Call::Allocation)),
            ("cudaEventQuery", None),
        ] {
            assert_eq!(Call::from_name(name), call, "{name}");
        }
    }

    #[test]
    fn operators_of_attention() {
        for name in [
            "aten::scaled_dot_product_attention",
            "aten::_scaled_dot_product_cudnn_attention",
            "aten::_efficient_attention_forward",
            "flash_attn::_flash_attn_varlen_forward",
        ] {
            assert!(is_attention(name), "{name}");
        }
        for name in ["aten::_fused_sdp_choice", "aten::bmm", "aten::_flash_attention_backward"] {
            assert!(!is_attention(name), "{name}");
        }
    }

    #[test]
    fn steps_lose_their_numbers() {
        for (name, want) in
            [("ProfilerStep#17", STEP), ("ProfilerStep#x", "ProfilerStep#x"), ("lp#1", "lp#1")]
        {
            assert_eq!(phase(name), want);
        }
    }
}
