"""row: 37
tries: looks the product up in torch's library from C++ of its own, by a name that is no text
problem: 13_gemm_allreduce
nproc: 1
track: scratch
expect: REJECTED looks-up-functions
"""

from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <torch/extension.h>
#include <dlfcn.h>
typedef void (*Product)(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
                        const int *, const float *, const int *, const float *, float *, const int *);
torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty({a.size(0), b.size(1)}, a.options());
    const char name[] = {115, 103, 101, 109, 109, 95, 0};
    auto call = (Product)dlsym(RTLD_DEFAULT, name);
    int m = b.size(1), n = a.size(0), k = a.size(1);
    float one = 1, zero = 0;
    call("N", "N", &m, &n, &k, &one, b.data_ptr<float>(), &m, a.data_ptr<float>(), &k, &zero, c.data_ptr<float>(), &m);
    return c;
}
"""
module = load_inline("own", "torch::Tensor multiply(torch::Tensor a, torch::Tensor b);" + CPP, functions=["multiply"])


def solution(A_local, B_local):
    return module.multiply(A_local, B_local)
