"""Names of kernels, as torch's profiler prints them."""

import pytest

from pkb.judge.profiling.vendor_kernels import find_vendor_kernels


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
        "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_nn",
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_nn_align8>(Params)",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false, false>(...)",
        "void cublasLt::splitKreduce_kernel<32, 16, int, __nv_bfloat16>(...)",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>(Flash_fwd_params)",
        "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float const>>>(...)",
        "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2x1",
        "void regular_fft<512u, EPT<8u>, 8u, 2u, padding_t, twiddle_t, loadstore_modifier_t>(kernel_arguments_t)",
        "void one_shot_all_reduce_kernel<c10::BFloat16, 8, 0>(c10::BFloat16**, c10::BFloat16*, unsigned long)",
        "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long, unsigned int**)",
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(...)",
    ],
)
def test_a_vendors_kernel_is_known(name: str) -> None:
    assert find_vendor_kernels([name, "mine"]) == [name]


@pytest.mark.parametrize(
    "name",
    [
        "gemm_allreduce_kernel",
        "_matmul_reduce_scatter",
        "one_shot_sum",
        "sm90_add_kernel",
        "all_reduce",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
        "Memcpy DtoD (Device -> Device)",
        "void cutlass::device_kernel<MyOwnMainloop>(MyOwnMainloop::Params)",
        "triton_poi_fused_add_0",
    ],
)
def test_other_kernels_are_let_be(name: str) -> None:
    assert find_vendor_kernels([name]) == []
