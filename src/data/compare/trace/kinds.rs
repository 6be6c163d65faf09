//! The kinds of device events.

/// The kind of a device event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeviceKind {
    /// Matrix and vector products: cuBLAS, CUTLASS, nvjet.
    Gemm,
    Attention,
    /// `direct_copy_kernel_cuda`: changes of layout or number type.
    ElementwiseCopy,
    /// `CatArrayBatchedCopy`.
    Concatenation,
    Elementwise,
    Reduction,
    Softmax,
    Norm,
    /// Gathers, scatters, embeddings, and masks to indices.
    Indexing,
    /// Sorts, top-k, prefix sums and draws.
    Sorting,
    Random,
    Convolution,
    Communication,
    /// Kernels that a compiler generated from several operators.
    Fused,
    /// A kernel that matches no rule.
    OtherKernel,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    OtherMemcpy,
    Memset,
}

impl DeviceKind {
    /// All kinds with their names in tables, in the order of display.
    pub(super) const ALL: [(DeviceKind, &str); 20] = [
        (DeviceKind::Gemm, "GEMM"),
        (DeviceKind::Attention, "attention"),
        (DeviceKind::ElementwiseCopy, "elementwise copies"),
        (DeviceKind::Concatenation, "concatenations"),
        (DeviceKind::Elementwise, "elementwise"),
        (DeviceKind::Reduction, "reductions"),
        (DeviceKind::Softmax, "softmax"),
        (DeviceKind::Norm, "norms"),
        (DeviceKind::Indexing, "indexing and embeddings"),
        (DeviceKind::Sorting, "sorts, top-k, scans, draws"),
        (DeviceKind::Random, "random numbers"),
        (DeviceKind::Convolution, "convolutions"),
        (DeviceKind::Communication, "communication"),
        (DeviceKind::Fused, "fused by a compiler"),
        (DeviceKind::OtherKernel, "other kernels"),
        (DeviceKind::HostToDevice, "memcpy host to device"),
        (DeviceKind::DeviceToHost, "memcpy device to host"),
        (DeviceKind::DeviceToDevice, "memcpy device to device"),
        (DeviceKind::OtherMemcpy, "other memcpy"),
        (DeviceKind::Memset, "memset"),
    ];

    /// Returns the kind of a copy, from a name such as `Memcpy DtoH (Device -> Pinned)`; HIP writes `CopyHostToDevice`.
    pub(super) fn of_memcpy(name: &str) -> Self {
        let has = |words: [&str; 2]| words.iter().any(|word| name.contains(word));
        match () {
            () if has(["HtoD", "HostToDevice"]) => DeviceKind::HostToDevice,
            () if has(["DtoH", "DeviceToHost"]) => DeviceKind::DeviceToHost,
            () if has(["DtoD", "DeviceToDevice"]) => DeviceKind::DeviceToDevice,
            () => DeviceKind::OtherMemcpy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_directions() {
        for (name, kind) in [
            ("Memcpy DtoH (Device -> Pinned)", DeviceKind::DeviceToHost),
            ("Memcpy HtoD (Pageable -> Device)", DeviceKind::HostToDevice),
            ("Memcpy DtoD (Device -> Device)", DeviceKind::DeviceToDevice),
            ("CopyDeviceToHost", DeviceKind::DeviceToHost),
            ("Memcpy PtoP (Device -> Device)", DeviceKind::OtherMemcpy),
        ] {
            assert_eq!(DeviceKind::of_memcpy(name), kind, "{name}");
        }
    }

    #[test]
    fn every_kind_is_shown_once() {
        assert!(DeviceKind::ALL.iter().enumerate().all(|(at, (kind, _))| *kind as usize == at));
        let names = std::collections::BTreeSet::from(DeviceKind::ALL.map(|(_, name)| name));
        assert_eq!(names.len(), DeviceKind::ALL.len());
    }
}
