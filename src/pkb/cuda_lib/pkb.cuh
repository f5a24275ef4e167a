// Operations of blocks on several ranks: copy packs of 16 bytes, add them up, wait for each other.
// The memory of peers is accessed with plain loads and stores; a barrier between the two orders them.

namespace pkb {

// Packs of 16 bytes, the widest access that there is.

template <typename T>
struct Pack {
    static constexpr int SIZE = 16 / sizeof(T);
    uint4 words;
};

// Returns whether all of these addresses may be accessed in packs.
template <typename... T>
__device__ __forceinline__ bool aligned(const T*... pointers) {
    return ((reinterpret_cast<u64>(pointers) | ...) & 15) == 0;
}

// Accesses to global memory, this rank's or a peer's.

template <typename T>
__device__ __forceinline__ Pack<T> load_pack(const T* from) {
    return {load_global(from)};
}

template <typename T>
__device__ __forceinline__ void store_pack(T* to, Pack<T> pack) {
    store_global(to, pack.words);
}

// Accesses to shared memory.

template <typename T>
__device__ __forceinline__ Pack<T> load_shared_pack(const T* from) {
    return {load_shared(from)};
}

template <typename T>
__device__ __forceinline__ void store_shared_pack(T* to, Pack<T> pack) {
    store_shared(to, pack.words);
}

template <typename T>
__device__ __forceinline__ void widen(Pack<T> pack, float (&wide)[Pack<T>::SIZE]) {
    const u32 words[4] = {pack.words.x, pack.words.y, pack.words.z, pack.words.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(T) == 4) {
            wide[i] = __uint_as_float(words[i]);
        } else {
            wide[2 * i] = to_float(T{u16(words[i])});
            wide[2 * i + 1] = to_float(T{u16(words[i] >> 16)});
        }
    }
}

template <typename T>
__device__ __forceinline__ Pack<T> narrow(const float (&wide)[Pack<T>::SIZE]) {
    u32 words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(T) == 4) {
            words[i] = __float_as_uint(wide[i]);
        } else {
            words[i] = from_floats<T>(wide[2 * i], wide[2 * i + 1]);
        }
    }
    return {make_uint4(words[0], words[1], words[2], words[3])};
}

// Loads the first `count` elements and fills up with zeros; in one access where alignment and `count` allow it.
template <typename T>
__device__ __forceinline__ Pack<T> load_part(const T* from, i64 count, bool whole_packs) {
    if (whole_packs && count >= Pack<T>::SIZE) return load_pack(from);
    float wide[Pack<T>::SIZE];
#pragma unroll
    for (int i = 0; i < Pack<T>::SIZE; i++) wide[i] = i < count ? to_float(from[i]) : 0.0f;
    return narrow<T>(wide);
}

// Stores the first `count` elements, in the same way.
template <typename T>
__device__ __forceinline__ void store_part(T* to, Pack<T> pack, i64 count, bool whole_packs) {
    if (whole_packs && count >= Pack<T>::SIZE) {
        store_pack(to, pack);
        return;
    }
    float wide[Pack<T>::SIZE];
    widen(pack, wide);
#pragma unroll
    for (int i = 0; i < Pack<T>::SIZE; i++) {
        if (i < count) to[i] = from_float<T>(wide[i]);
    }
}

// Shares: the part of the work of block b, the same on every rank.

struct Span {
    i64 begin, end;
};

// Returns this block's part of `count` elements, in whole units except at the end.
__device__ __forceinline__ Span share(i64 count, int unit) {
    const i64 units = (count + unit - 1) / unit;
    const i64 size = (units + gridDim.x - 1) / gridDim.x * unit;
    const i64 begin = size * blockIdx.x;
    const i64 end = begin + size;
    return {begin < count ? begin : count, end < count ? end : count};
}

// Calls store(i, load(i)) for i = first, first + step, ... below `count`. AHEAD of them are loaded before the first is
// stored: the compiler cannot know that this is allowed.
template <int AHEAD, typename Load, typename Store>
__device__ __forceinline__ void batched(i64 first, i64 count, i64 step, Load load, Store store) {
    i64 i = first;
    for (; i + (AHEAD - 1) * step < count; i += AHEAD * step) {
        decltype(load(i)) held[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) held[k] = load(i + k * step);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) store(i + k * step, held[k]);
    }
    for (; i < count; i += step) store(i, load(i));
}

// Divides the packs of a row among the lanes of a warp; c is the first column of a pack.
template <int AHEAD, typename T, typename Load, typename Store>
__device__ __forceinline__ void along_row(int cols, Load load, Store store) {
    batched<AHEAD>(threadIdx.x % 32 * Pack<T>::SIZE, cols, 32 * Pack<T>::SIZE, load, store);
}

// Copies `count` elements with the whole block.
template <typename T>
__device__ __forceinline__ void copy(T* to, const T* from, i64 count) {
    const i64 packs = aligned(to, from) ? count / Pack<T>::SIZE : 0;
    batched<4>(
        threadIdx.x, packs, blockDim.x, [&](i64 i) { return load_pack(from + i * Pack<T>::SIZE); },
        [&](i64 i, Pack<T> pack) { store_pack(to + i * Pack<T>::SIZE, pack); });
    for (i64 i = packs * Pack<T>::SIZE + threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

// Sums over the ranks' copies, in float and in the order of the ranks: the same bits on every rank.

template <int WORLD, typename T>
__device__ __forceinline__ Pack<T> sum_parts(const T* const (&from)[WORLD], i64 place, i64 count, bool whole_packs) {
    Pack<T> packs[WORLD];
#pragma unroll
    for (int r = 0; r < WORLD; r++) packs[r] = load_part(from[r] + place, count, whole_packs);
    float total[Pack<T>::SIZE], wide[Pack<T>::SIZE];
    widen(packs[0], total);
#pragma unroll
    for (int r = 1; r < WORLD; r++) {
        widen(packs[r], wide);
#pragma unroll
        for (int i = 0; i < Pack<T>::SIZE; i++) total[i] += wide[i];
    }
    return narrow<T>(total);
}

template <int WORLD, typename T>
__device__ __forceinline__ Pack<T> sum_packs(const T* const (&from)[WORLD], i64 place) {
    return sum_parts(from, place, Pack<T>::SIZE, true);
}

template <int WORLD, typename T>
__device__ __forceinline__ T sum_elements(const T* const (&from)[WORLD], i64 place) {
    float total = to_float(from[0][place]);
#pragma unroll
    for (int r = 1; r < WORLD; r++) total += to_float(from[r][place]);
    return from_float<T>(total);
}

template <int WORLD, typename T>
__device__ __forceinline__ bool all_aligned(const T* to, const T* const (&from)[WORLD]) {
    bool all = aligned(to);
#pragma unroll
    for (int r = 0; r < WORLD; r++) all = all && aligned(from[r]);
    return all;
}

// Sums `count` elements with the whole block. `to` may be one of the sources.
template <int WORLD, typename T>
__device__ __forceinline__ void sum(T* to, const T* const (&from)[WORLD], i64 count) {
    constexpr int AHEAD = WORLD < 8 ? 8 / WORLD : 1;
    const i64 packs = all_aligned(to, from) ? count / Pack<T>::SIZE : 0;
    batched<AHEAD>(
        threadIdx.x, packs, blockDim.x, [&](i64 i) { return sum_packs(from, i * Pack<T>::SIZE); },
        [&](i64 i, Pack<T> pack) { store_pack(to + i * Pack<T>::SIZE, pack); });
    for (i64 i = packs * Pack<T>::SIZE + threadIdx.x; i < count; i += blockDim.x) to[i] = sum_elements(from, i);
}

// Reductions. Every thread of the warp, or of the block, must call them, and every thread gets the result.

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// Returns the value of warp l to all lanes l < warps, and `other` to the remaining lanes.
__device__ __forceinline__ float across_warps(float value, float other) {
    __shared__ float values[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
    __syncthreads();
    return threadIdx.x % 32 < blockDim.x / 32 ? values[threadIdx.x % 32] : other;
}

__device__ __forceinline__ float block_sum(float value) { return warp_sum(across_warps(warp_sum(value), 0.0f)); }

__device__ __forceinline__ float block_max(float value) { return warp_max(across_warps(warp_max(value), value)); }

// Peers.

using Table = const u64*;

// Returns a rank's buffer or pad, from the table `exchange.buffers` or `exchange.signals`.
template <typename T>
__device__ __forceinline__ T* peer(Table table, int rank) {
    return reinterpret_cast<T*>(table[rank]);
}

// Waits until block b has come here on all ranks; what it stored there before is then visible.
// Block b has words b * world + r of the pads. Each flag is raised by one rank and taken down by the
// other, so the pad is all zeros again afterwards. The block needs at least `world` threads.
__device__ __forceinline__ void rank_barrier(Table signals, int rank, int world) {
    __syncthreads();
    const int other = threadIdx.x;
    if (other < world && other != rank) {
        u32* theirs = peer<u32>(signals, other) + blockIdx.x * world + rank;
        u32* own = peer<u32>(signals, rank) + blockIdx.x * world + other;
        // Orders the stores of the whole block, which precede __syncthreads, before the flag.
        __threadfence_system();
        while (cas_release_sys(theirs, 0, 1) != 0) {
        }
        while (cas_acquire_sys(own, 1, 0) != 1) {
        }
    }
    __syncthreads();
}

// Waits until all blocks of all ranks have come here. At most once in a kernel: a second barrier could begin while
// blocks still leave the first.
__device__ __forceinline__ void world_barrier(Table signals, int rank, int world) {
    rank_barrier(signals, rank, world);
    if (threadIdx.x == 0) {
        // No rank signals to itself, so this word of the pad can count the rank's own blocks.
        u32* arrived = peer<u32>(signals, rank) + rank;
        if (add_acq_rel_sys(arrived, 1) == gridDim.x - 1) {
            store_release_sys(arrived, 0);
        } else {
            while (load_acquire_sys(arrived) != 0) {
            }
        }
    }
    __syncthreads();
}

}  // namespace pkb
