// Single instructions: conversions, ordered memory accesses, asynchronous copies, tensor cores.
// Nothing is included, so that NVRTC needs no headers.

namespace pkb {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// 16-bit floats as storage: arithmetic is done in float.
struct bf16 {
    u16 bits;
};

struct f16 {
    u16 bits;
};

__device__ __forceinline__ float to_float(float value) { return value; }

__device__ __forceinline__ float to_float(bf16 value) { return __uint_as_float(u32(value.bits) << 16); }

__device__ __forceinline__ float to_float(f16 value) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}

// from_float<T>(x): x rounded to the nearest T, ties to even.
template <typename T>
__device__ T from_float(float value);

template <>
__device__ __forceinline__ float from_float<float>(float value) {
    return value;
}

template <>
__device__ __forceinline__ bf16 from_float<bf16>(float value) {
    bf16 narrow;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
    return narrow;
}

template <>
__device__ __forceinline__ f16 from_float<f16>(float value) {
    f16 narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
    return narrow;
}

// Rounds both values and returns them in one word, the first in its lower half.
template <typename T>
__device__ u32 from_floats(float first, float second);

template <>
__device__ __forceinline__ u32 from_floats<bf16>(float first, float second) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

template <>
__device__ __forceinline__ u32 from_floats<f16>(float first, float second) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

// 16 bytes in one access, which the compiler does not always choose by itself. Plain accesses: the memory of peers is
// not constant (ld.global.nc), and the barrier before or after them gives all the order that they need.

__device__ __forceinline__ uint4 load_global(const void* address) {
    uint4 words;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "l"(address)
                 : "memory");
    return words;
}

__device__ __forceinline__ void store_global(void* address, uint4 words) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words.x), "r"(words.y), "r"(words.z),
                 "r"(words.w)
                 : "memory");
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
    u64 address;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(pointer));
    return u32(address);
}

__device__ __forceinline__ uint4 load_shared(const void* address) {
    uint4 words;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                 : "r"(shared_address(address))
                 : "memory");
    return words;
}

__device__ __forceinline__ void store_shared(void* address, uint4 words) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(address)), "r"(words.x), "r"(words.y),
                 "r"(words.z), "r"(words.w)
                 : "memory");
}

// Accesses that order other accesses, for all GPUs and the host.

__device__ __forceinline__ u32 load_acquire_sys(const u32* address) {
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

__device__ __forceinline__ void store_release_sys(u32* address, u32 value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

__device__ __forceinline__ u32 cas_release_sys(u32* address, u32 expected, u32 value) {
    u32 found;
    asm volatile("atom.release.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(found)
                 : "l"(address), "r"(expected), "r"(value)
                 : "memory");
    return found;
}

__device__ __forceinline__ u32 cas_acquire_sys(u32* address, u32 expected, u32 value) {
    u32 found;
    asm volatile("atom.acquire.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(found)
                 : "l"(address), "r"(expected), "r"(value)
                 : "memory");
    return found;
}

__device__ __forceinline__ u32 add_acq_rel_sys(u32* address, u32 value) {
    u32 found;
    asm volatile("atom.acq_rel.sys.global.add.u32 %0, [%1], %2;"
                 : "=r"(found)
                 : "l"(address), "r"(value)
                 : "memory");
    return found;
}

// Asynchronous copies of 16 bytes from global to shared memory.

// Copies the first `bytes` of 16 and fills up with zeros.
__device__ __forceinline__ void copy_async(void* shared, const void* global, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's groups of copies are not complete.
template <int PENDING>
__device__ __forceinline__ void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Tensor cores. Lane l passes the address of row l % 16, column l / 16 * 8 of a [16, 16] tile of 16-bit values.

__device__ __forceinline__ void load_matrix(u32 (&tile)[4], const void* lane_row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(shared_address(lane_row))
                 : "memory");
}

__device__ __forceinline__ void load_matrix_transposed(u32 (&tile)[4], const void* lane_row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tile[0]), "=r"(tile[1]), "=r"(tile[2]), "=r"(tile[3])
                 : "r"(shared_address(lane_row))
                 : "memory");
}

// c[16, 8] += a[16, 16] * b[16, 8]; a is a tile of load_matrix, b0 and b1 are half of one of load_matrix_transposed.
template <typename T>
__device__ void mma(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1);

template <>
__device__ __forceinline__ void mma<bf16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ __forceinline__ void mma<f16>(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace pkb
