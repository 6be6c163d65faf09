//! Classifies kernels by their names.

use super::kinds::DeviceKind;

/// Returns the kind of a kernel. The work of a generic kernel is named in its template arguments, that of others in the function's own
/// name. So generic kernels are recognised first, and by only a few words in their template arguments.
pub(super) fn kind(name: &str) -> DeviceKind {
    // The namespace fbgemm_gpu contains kernels that are not matrix products.
    let whole = name.to_ascii_lowercase().replace("fbgemm", "").replace("(anonymous namespace)::", "");
    let function = function(&whole);
    let has = |words: &[&str]| words.iter().any(|word| function.contains(word));
    let holds = |words: &[&str]| words.iter().any(|word| whole.contains(word));
    if let Some(known) = generic(function, &whole) {
        return known;
    }
    if is_attention(function) || has(&["cutlass"]) && is_attention(&whole) {
        return DeviceKind::Attention;
    }
    // A kernel with this name adds the partial sums of a product.
    if has(&["splitk"]) {
        return DeviceKind::Gemm;
    }
    if has(&["reduce_kernel", "devicereduce", "devicesegmentedreduce"]) {
        return DeviceKind::Reduction;
    }
    for (kind, words) in BY_FUNCTION {
        if has(words) {
            return kind;
        }
    }
    // Both words are in the template arguments of kernels whose function is called `kernel` or `Kernel`.
    if has(&["cutlass"]) && holds(&["fprop", "dgrad", "wgrad", "implicitgemm", "::conv::"]) {
        return DeviceKind::Convolution;
    }
    if has(GEMM) || holds(&["cublas"]) {
        return DeviceKind::Gemm;
    }
    AFTER_GEMM.iter().find(|(_, words)| has(words)).map_or(DeviceKind::OtherKernel, |(kind, _)| *kind)
}

/// Words in function names, in the order in which they are tried, before matrix products.
const BY_FUNCTION: [(DeviceKind, &[&str]); 3] = [
    (DeviceKind::Softmax, &["softmax"]),
    (
        DeviceKind::Norm,
        &[
            "layer_norm",
            "layernorm",
            "rms_norm",
            "rmsnorm",
            "group_norm",
            "groupnorm",
            "batch_norm",
            "batchnorm",
            "::bn_",
            "norm_kernel",
            "gammabetabackward",
            "rowwisemoments",
            "_norm_",
        ],
    ),
    (
        DeviceKind::Convolution,
        &[
            "convol",
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_depthwise",
            "winograd",
            "fprop",
            "dgrad",
            "wgrad",
            "cudnn",
        ],
    ),
];

const GEMM: &[&str] = &[
    "gemm",
    "gemv",
    "cutlass",
    "nvjet",
    "cijk_",
    "xmma",
    "matmul",
    "wvsplitk",
    "marlin",
    "machete",
    "triton_mm",
    "_mm_",
    "_bmm_",
];

/// Like [`BY_FUNCTION`], tried after matrix products.
const AFTER_GEMM: [(DeviceKind, &[&str]); 4] = [
    (
        DeviceKind::Sorting,
        &[
            "sort",
            "topk",
            "kthvalue",
            "multinomial",
            "devicescan",
            "scan_innermost",
            "scan_outer",
            "scan_dim",
            "cumsum",
            "sampling",
            "radix",
            "reverse_indices",
        ],
    ),
    (DeviceKind::Random, &["distribution", "dropout", "philox", "curand"]),
    (
        DeviceKind::Indexing,
        &[
            "index",
            "gather",
            "scatter",
            "embedding",
            "nonzero",
            "deviceselect",
            "devicecompact",
            "reshape_and_cache",
        ],
    ),
    (
        DeviceKind::Elementwise,
        &["multi_tensor_apply", "act_and_mul", "rotary", "rope_", "triu_tril", "gelu", "silu"],
    ),
];

/// Returns the path of a function without its return type, template arguments and parameters.
fn function(name: &str) -> &str {
    let name = name.strip_prefix("void ").unwrap_or(name);
    &name[..name.find(['<', '(']).unwrap_or(name.len())]
}

/// Recognises kernels that PyTorch, its compiler and FlashInfer use for many purposes.
fn generic(function: &str, whole: &str) -> Option<DeviceKind> {
    let has = |words: &[&str]| words.iter().any(|word| function.contains(word));
    let is_collective = ["nccl", "rccl", "cross_device_reduce", "allreduce", "all_reduce", "allgather"];
    Some(match () {
        () if has(&is_collective) => DeviceKind::Communication,
        () if has(&["triton_tem_"]) && is_attention(function) => DeviceKind::Attention,
        () if has(&["triton_tem_"]) && has(&["mm"]) => DeviceKind::Gemm,
        () if function.starts_with("triton_") && !function.starts_with("triton_mm") => DeviceKind::Fused,
        () if has(&["flashinfer"]) && has(&["norm"]) => DeviceKind::Norm,
        () if has(&["flashinfer"]) && has(&["sampling", "topk", "topp"]) => DeviceKind::Sorting,
        () if has(&["flashinfer"]) && has(&["rope", "rotary", "act_and_mul"]) => DeviceKind::Elementwise,
        () if has(&["index_elementwise", "scatter_gather_elementwise"]) => DeviceKind::Indexing,
        () if has(&["distribution_elementwise"]) => DeviceKind::Random,
        () if has(&["elementwise"]) && whole.contains("copy_kernel") => DeviceKind::ElementwiseCopy,
        () if has(&["elementwise"]) => DeviceKind::Elementwise,
        () if has(&["catarraybatchedcopy"]) => DeviceKind::Concatenation,
        () => return None,
    })
}

/// Returns whether a lower-case name is that of an attention kernel: flash, memory-efficient, cuDNN's, paged.
pub(super) fn is_attention(name: &str) -> bool {
    ["flash", "fmha", "attention", "attn", "sdpa", "mha_fwd", "mha_bwd"]
        .iter()
        .any(|word| name.contains(word))
}

/// Returns the family of an attention kernel, as shown in tables.
pub(super) fn attention_family(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    match () {
        // Its names also contain `flash`.
        () if name.contains("cudnn") => "cuDNN attention kernels",
        () if name.contains("flash") => "flash attention kernels",
        () if name.contains("fmha_cutlass") || name.contains("memeff") => {
            "memory-efficient attention kernels"
        }
        () => "other attention kernels",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names from traces of PyTorch 1.12 to 2.9, shortened at the end.
    const KERNELS: [(DeviceKind, &[&str]); 15] = [
        (
            DeviceKind::Gemm,
            &[
                "volta_sgemm_128x32_nt",
                "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn",
                "nvjet_tst_64x8_64x16_4x1_v_bz_TNT",
                "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(…::Params)",
                "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<…, cutlass::NumericConverter<float>> >(…)",
                "void splitKreduce_kernel<float, float, float, float, true>(cublasSplitKParams<float>, float const*)",
                "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>(…)",
                "void epilogue::impl::globalKernel<float, float, true>(int, cublasLtEpilogue_t, int, float*)",
                "void gemvNSP_kernel<float, float, float, float, 1, 16, 4, 1024>(…)",
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, cublasGemvParams<float>>(…)",
                "Cijk_Alik_Bljk_BBS_BH_MT32x32x64_MI16x16x16x1_SN",
                "triton_tem_fused_addmm_3",
            ],
        ),
        (
            DeviceKind::Attention,
            &[
                "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>, false, true>(Flash_fwd_params)",
                "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>(Flash_fwd_params)",
                "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<…>>>(…)",
                "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<…>::Params)",
                "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_128x128x128_4x1x1_cga1x1x1_kernel0_0",
                "void vllm::paged_attention_v1_kernel<…>(…)",
                "void flashinfer::BatchDecodeWithPagedKVCacheKernel<…>(…)",
                "triton_tem_fused_flex_attention_0",
            ],
        ),
        (
            DeviceKind::Norm,
            &[
                "void flashinfer::norm::RMSNormKernel<8, __nv_bfloat16>(…)",
                "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(…)",
                "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(…)",
            ],
        ),
        (
            DeviceKind::Sorting,
            &[
                "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<…>(…)",
                "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(…)",
                "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<…>(…)",
                "void at::native::tensor_kernel_scan_innermost_dim<float, std::plus<float> >(…)",
            ],
        ),
        (
            DeviceKind::ElementwiseCopy,
            &[
                "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}>(…)>(int, …)",
                "void at::native::unrolled_elementwise_kernel<at::native::(anonymous namespace)::direct_copy_kernel_cuda(…)>(…)",
                "void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}, …>(…)",
            ],
        ),
        (
            DeviceKind::Elementwise,
            &[
                "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(…)",
                "void at::native::vectorized_elementwise_kernel<4, fbgemm_gpu::_float_to_hfp8_gpu(…)>(…)",
                "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::where_kernel_impl(at::TensorIterator&)>>(…)",
                "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out(…)>(…)",
                "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<…>(…)",
            ],
        ),
        (
            DeviceKind::Concatenation,
            &[
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 1, 128, 1>(…)",
            ],
        ),
        (
            DeviceKind::Reduction,
            &[
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float>, unsigned int, float, 4> >(…)",
                "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::MaxOps<float>> >(…)",
            ],
        ),
        (
            DeviceKind::Softmax,
            &[
                "void (anonymous namespace)::softmax_warp_forward<float, float, float, 1, false, false>(…)",
                "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(…)",
            ],
        ),
        (
            DeviceKind::Indexing,
            &[
                "void at::native::(anonymous namespace)::indexSelectLargeIndex<long, long, unsigned int, 1, 1, -2, true>(…)",
                "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<…>>(…)",
                "void at::native::_scatter_gather_elementwise_kernel<128, 4, …>(…)",
                "void at::native::vectorized_gather_kernel<16, long>(…)",
            ],
        ),
        (
            DeviceKind::Random,
            &[
                "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, …>(…)",
            ],
        ),
        (
            DeviceKind::Convolution,
            &[
                "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(…)",
                "void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128_16x4_nhwc_align4>(…)",
                "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16",
            ],
        ),
        (
            DeviceKind::Communication,
            &["ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"],
        ),
        (
            DeviceKind::Fused,
            &[
                "triton_poi_fused__scaled_dot_product_efficient_attention_add_7",
                "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
            ],
        ),
        (
            DeviceKind::OtherKernel,
            &["void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*, int const*, int*)"],
        ),
    ];

    #[test]
    fn kernels_are_told_by_their_names() {
        for (expected, names) in KERNELS {
            names.iter().for_each(|name| assert_eq!(kind(name), expected, "{name}"));
        }
        for name in ["", "<", "void ", "void (anonymous namespace)::"] {
            assert_eq!(kind(name), DeviceKind::OtherKernel, "{name}");
        }
    }

    #[test]
    fn attention_has_families() {
        let family = |name: &str| attention_family(name).split(' ').next().unwrap_or_default().to_owned();
        assert_eq!(family("cudnn_generated_fort_native_sdpa_sm90_flash_fprop"), "cuDNN");
        assert_eq!(family("void pytorch_flash::flash_fwd_kernel<…>"), "flash");
        assert_eq!(family("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(…)"), "memory-efficient");
        assert_eq!(family("void vllm::paged_attention_v1_kernel<…>"), "other");
    }
}
