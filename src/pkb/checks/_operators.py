"""Decide which operators the track `scratch` allows.

The list is of what is allowed: allocation, views, copies, indexing, local reductions, scans, sorts, comparisons and
element-wise operators, random numbers and casts among them. Torch says itself of most operators that they are one of
these, by tags and by signatures; the names below complete that. An operator that is neither is refused.
"""

import re
from enum import Enum
from functools import cache

import torch

_COPIES = """
    _to_copy align_as align_tensors align_to atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors
    cartesian_prod cast_Byte cast_Char cast_Double cast_Float cast_Half cast_Int cast_Long cast_Short cat chalf
    channel_shuffle chunk_cat clone col2im column_stack combinations concat concatenate constant_pad_nd contiguous
    copy copy_from copy_from_and_resize dense_dim diag diag_embed diagflat dstack fft_fftshift fft_ifftshift
    flatten_dense_tensors flip fliplr flipud foreach_clone hstack im2col lazy_clone lift meshgrid
    nested_tensor_from_tensor_list pack_padded_sequence pad pad_circular pad_enum pad_packed_sequence pad_sequence
    pin_memory pixel_shuffle pixel_unshuffle record_stream reflection_pad1d reflection_pad2d reflection_pad3d
    repeat repeat_interleave replication_pad1d replication_pad2d replication_pad3d reshape_copy reshape_from_tensor
    resize resize_as resize_output roll rot90 row_stack set set_data sparse_dim stack tile to_cpu to_dense tril
    triu type_as unflatten_dense_tensors unsafe_chunk unsafe_split unsafe_split_with_sizes unsafe_view vstack
"""
_ALLOCATIONS = """
    empty_like full_like new_empty new_empty_strided new_full new_ones new_zeros
"""
_INDEXING = """
    argwhere as_strided_scatter bucketize diagonal diagonal_scatter embedding embedding_dense embedding_renorm
    fill_diagonal gather index index_add index_copy index_fill index_put index_put_impl index_reduce index_select
    masked_fill masked_scatter masked_select max_unpool2d max_unpool3d nonzero nonzero_numpy nonzero_static one_hot
    put scatter scatter_add scatter_reduce searchsorted segment_reduce select select_scatter slice slice_scatter
    take take_along_dim trace unfold unsafe_index unsafe_index_put unsafe_masked_index
    unsafe_masked_index_put_accumulate upsample_nearest1d upsample_nearest2d upsample_nearest3d
    upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d value_selecting_reduction where
"""
_REDUCTIONS = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d all allclose amax amin aminmax any argmax argmin avg_pool1d avg_pool2d avg_pool3d bincount
    cosine_similarity count_nonzero dist equal foreach_max foreach_norm foreach_powsum fractional_max_pool2d
    fractional_max_pool3d frobenius_norm hash_tensor histc histogram histogramdd histogramdd_bin_edges
    histogramdd_from_bin_cts histogramdd_from_bin_tensors is_all_true is_any_true linalg__powsum linalg_matrix_norm
    linalg_norm linalg_vector_norm logsumexp max max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices mean median min mode nanmean nanmedian nanquantile
    nansum norm norm_except_dim pairwise_distance prod quantile std std_mean sum sum_to_size trapezoid trapz var
    var_mean
"""
_NORMALIZATIONS = """
    batch_norm batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_impl_index
    batch_norm_legit batch_norm_legit_no_training batch_norm_no_update batch_norm_stats batch_norm_update_stats
    batch_norm_with_update fused_rms_norm glu group_norm instance_norm layer_norm log_softmax masked_softmax renorm
    rms_norm safe_softmax softmax weight_norm weight_norm_interface
"""
"""Reductions followed by element-wise work."""
_LOSSES = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss multilabel_margin_loss_forward nll_loss nll_loss2d nll_loss2d_forward nll_loss_forward
    nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
"""
"""Element-wise work followed by a reduction."""
_SCANS_AND_SORTS = """
    argsort cummax cummax_helper cummaxmin cummin cummin_helper cumprod cumsum cumulative_trapezoid diff gradient
    isin kthvalue linalg_vander logcumsumexp msort sort topk unique unique2 unique_consecutive unique_dim
    unique_dim_consecutive vander
"""
_ELEMENT_WISE = """
    __and__ __iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __or__ __rshift__ __xor__ absolute
    add_relu addr amp_foreach_non_finite_check_and_unscale amp_update_scale arccos arccosh arcsin arcsinh arctan
    arctan2 arctanh assert_async assert_tensor_metadata complex cross cudnn_is_acceptable dequantize digamma divide
    erf erfc erfinv exp2 expit expm1 fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask
    fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask fill fix floor_divide
    functional_assert_async fused_adagrad fused_adam fused_adamw fused_sgd gammainc gammaincc gammaln ger glu_jvp
    greater greater_equal hardswish i0 infinitely_differentiable_gelu isclose isreal item kron less less_equal
    linalg_cross linspace local_scalar_dense log1p log_sigmoid log_sigmoid_forward logit logspace masked_scale
    multigammaln multiply ndtr negative not_equal outer polar polygamma prelu prelu_kernel psi round
    rrelu_with_noise sinc subtract true_divide xlogy zero
"""
_RANDOM = """
    alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout feature_dropout fused_dropout
    geometric log_normal multinomial normal normal_functional philox_key_fold_in philox_key_split philox_normal
    philox_uniform poisson rand_like randint_like randn_like random sample_dirichlet standard_gamma uniform
"""
_FACTS = """
    backward data debug_has_internal_overlap dim dim_arange get_device has_compatible_shallow_copy_type
    has_same_storage_numel is_coalesced is_complex is_conj is_contiguous is_distributed is_floating_point
    is_inference is_leaf is_neg is_nonzero is_pinned is_same_size is_set_to is_signed is_zerotensor nnz numel
    ones_like output_nr requires_grad result_type retain_grad retains_grad shape_as_tensor size sparse_mask
    storage_offset stride sym_is_contiguous sym_numel sym_size sym_storage_offset sym_stride version zeros_like
"""
"""Questions about a tensor, and what autograd asks."""
_ALLOWED = frozenset(
    " ".join(
        [
            *(_COPIES, _ALLOCATIONS, _INDEXING, _REDUCTIONS, _NORMALIZATIONS, _LOSSES, _SCANS_AND_SORTS),
            *(_ELEMENT_WISE, _RANDOM, _FACTS),
        ]
    ).split()
)
"""Names as `_list_plainer_names` has them: without the marks of private, in-place, special and backward variants."""
_VARIANT = re.compile(r"(_(double_)?backward(_data|_elemt|_reduce|_jvp)?|_grad|_functional)$")
_PRODUCTS = re.compile(
    r"mm(_|$|\d)|matmul|gemm|einsum|(^|_)(mv|addmv|dot|vdot|vecdot|inner|tensordot|tensorinv|tensorsolve)(_|$)|conv|linear"
    r"|attention|fft|stft|rnn|lstm|gru|cholesky|svd|(^|_)(qr|lu|det|slogdet|logdet|inv|inverse|ldl|cov|corrcoef)(_|$)"
    r"|eig|solve|lstsq|pinv|geqrf|orgqr|ormqr|householder|matrix_(exp|power|rank)|multi_dot|cond$|cdist|pdist"
    r"|euclidean_dist|trilinear|compute_linear_combination|mkldnn|cudnn|miopen|mps|nnpack|cslt|semi_structured"
    r"|transformer|nuclear_norm|affine_grid|quantized|embedding_bag|sparse_(addmm|csr_prod)|spsolve|rescale_qkv"
)
"""Operators of aten that multiply, convolve, solve, decompose or transform, as a library does it."""
_LIBRARY_SPACES = {
    *("_quantized", "fbgemm", "inductor", "mkl", "mkldnn", "mkldnn_prim", "onednn", "prepacked", "quantized"),
    *("quantized_decomposed", "rnn", "sparse", "static_runtime", "torchao", "xnnpack", "xpu", "mtia", "cutlass"),
    *("torchvision", "torchaudio", "xformers", "flash_attn", "vllm", "_native_cutedsl", "nested"),
}
_COMMUNICATION_SPACES = {
    *("c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "symm_mem", "_dtensor", "gloo"),
    *("nccl", "ucc", "mpi", "xccl", "dist", "Store", "rpc", "socket"),
}
_SIGNALS = re.compile(r"barrier|get_remote_tensors?|memset32_|stream_write_value32_|wait_tensor")
"""Parts of names of communication that orders or finds memory, and moves no data."""
_NEUTRAL_SPACES = {"profiler", "prim", "prims", "debugprims", "rngprims", "higher_order", "autograd"}
"""Namespaces of torch whose operators do no work themselves, or work that aten's operators do."""


class Kind(Enum):
    """What an operator does, as far as the track `scratch` cares."""

    ALLOWED = "allowed"
    PRODUCT = "product"
    COMMUNICATION = "communication"
    NATIVE = "native"
    """Native code that cannot be told from a vendor's."""
    UNKNOWN = "unknown"


@cache
def classify(name: str) -> Kind:
    """Return the kind of a call by its full name, such as aten.mm; an unknown namespace is the candidate's own."""
    space, _, operator = name.partition(".")
    if space == "aten":
        return classify_aten(operator)
    if space in _COMMUNICATION_SPACES or space.startswith("ProcessGroup"):
        return Kind.ALLOWED if _SIGNALS.search(operator) else Kind.COMMUNICATION
    if space in _NEUTRAL_SPACES:
        return Kind.ALLOWED
    if space == "native":
        return Kind.NATIVE
    if space in ("numpy", "library"):
        return Kind.PRODUCT
    return Kind.PRODUCT if space in _LIBRARY_SPACES or space in _list_own_spaces() else Kind.ALLOWED


@cache
def classify_aten(operator: str) -> Kind:
    if _ALLOWED.intersection(_list_plainer_names(operator)) or _is_tagged(operator) or _is_view_or_factory(operator):
        return Kind.ALLOWED
    return Kind.PRODUCT if _PRODUCTS.search(operator) else Kind.UNKNOWN


def _list_plainer_names(operator: str) -> tuple[str, ...]:
    """Return the operator's name, and the names of the operator of which it is a private or in-place variant."""
    plain = operator.removesuffix("_").removeprefix("_")
    for prefix in ("foreach_", "special_", "native_", "thnn_"):
        plain = plain.removeprefix(prefix)
    return operator, operator.removesuffix("_").removeprefix("_"), plain, _VARIANT.sub("", plain)


def _is_tagged(operator: str) -> bool:
    """Return whether torch calls one of the operator's overloads element-wise, a reduction, or a copy of a view."""
    wanted = {getattr(torch.Tag, name, None) for name in ("pointwise", "reduction", "view_copy", "inplace_view")}
    return any(
        wanted.intersection(overload.tags)
        for name in _list_plainer_names(operator)
        for overload in _list_overloads(name)
    )


def _is_view_or_factory(operator: str) -> bool:
    """Return whether the operator returns a view of an argument, or makes a tensor without being given one."""
    overloads = _list_overloads(operator)
    views = any(
        out.alias_info and not out.alias_info.is_write for overload in overloads for out in overload._schema.returns
    )
    return views or (bool(overloads) and not any(map(_takes_tensors, overloads)))


def _takes_tensors(overload: torch._ops.OpOverload) -> bool:
    return any("Tensor" in str(arg.type) for arg in overload._schema.arguments if not arg.is_out)


def _list_overloads(operator: str) -> list[torch._ops.OpOverload]:
    packet = getattr(torch.ops.aten, operator, None)
    return [getattr(packet, name) for name in packet.overloads()] if packet else []


@cache
def _list_own_spaces() -> frozenset[str]:
    """Return the namespaces of operators that torch itself has, apart from aten."""
    return frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()) - {"aten"}
