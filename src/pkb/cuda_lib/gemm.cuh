// A tile of a matrix product: tensor cores for 16-bit floats, plain multiply-adds for float (TF32 would be a
// precision that the reference does not have). Any size; rows that do not begin at 16 bytes take a slow path.

namespace pkb {

template <typename T>
struct Gemm {
    static constexpr int ROWS = 128, COLS = 128, DEPTH = 64 / sizeof(T), STAGES = 4, THREADS = 256;
    static constexpr int PACK = Pack<T>::SIZE;
    // One pack more per row puts the rows that a warp reads together into different banks.
    static constexpr int A_STRIDE = DEPTH + PACK, B_STRIDE = COLS + PACK, TILE_STRIDE = COLS + PACK;
    static constexpr int STAGE = ROWS * A_STRIDE + DEPTH * B_STRIDE;
    static_assert(STAGES * STAGE * sizeof(T) <= 75776, "raise GEMM_SHARED in pkb.cuda_lib");
    static_assert(ROWS * TILE_STRIDE <= STAGES * STAGE, "the finished tile takes the place of the stages");
};

// A matrix in global memory, row by row.
template <typename T>
struct Matrix {
    const T* data;
    i64 stride;
    int rows, cols;

    __device__ bool in_packs() const { return aligned(data) && (stride | cols) % Pack<T>::SIZE == 0; }
};

// A thread's part in copying [ROWS, COLS] tiles of a matrix into shared memory, one after another, from (row, col) on.
// Elements outside of the matrix are zeros.
template <int ROWS, int COLS, int STRIDE, bool IN_PACKS, typename T>
struct Fetcher {
    static constexpr int PACK = Pack<T>::SIZE, ACROSS = COLS / PACK, DOWN = Gemm<T>::THREADS / ACROSS;
    static_assert(ROWS % DOWN == 0);
    const T* from;
    i64 stride;
    int rows_left, cols_left, place;

    __device__ __forceinline__ Fetcher(const Matrix<T>& matrix, int row, int col) : stride(matrix.stride) {
        const int r = threadIdx.x / ACROSS, c = threadIdx.x % ACROSS * PACK;
        from = matrix.data + i64(row + r) * stride + col + c;
        rows_left = matrix.rows - row - r;
        cols_left = matrix.cols - col - c;
        place = r * STRIDE + c;
    }

    __device__ __forceinline__ void fetch(T* tile) const {
#pragma unroll
        for (int i = 0; i < ROWS; i += DOWN) {
            T* to = tile + place + i * STRIDE;
            if constexpr (IN_PACKS) {
                // Where no byte is read, the address does not matter.
                copy_async(to, from + i * stride, i < rows_left && cols_left > 0 ? 16 : 0);
            } else {
                fetch_elements(to, i);
            }
        }
    }

    __device__ void fetch_elements(T* to, int i) const {
        for (int k = 0; k < PACK; k++) {
            const bool inside = i < rows_left && k < cols_left;
            to[k] = inside ? from[i * stride + k] : from_float<T>(0.0f);
        }
    }

    __device__ __forceinline__ void go_right() {
        from += COLS;
        cols_left -= COLS;
    }

    __device__ __forceinline__ void go_down() {
        from += ROWS * stride;
        rows_left -= ROWS;
    }
};

// What a thread accumulates. Warps are laid out 2 down, 4 across; each has a [64, 32] part of the tile.
template <typename T>
struct Accumulator {
    using G = Gemm<T>;
    float sums[4][4][4];

    __device__ __forceinline__ int row() const { return threadIdx.x / 128 * 64; }

    __device__ __forceinline__ int col() const { return threadIdx.x / 32 % 4 * 32; }

    __device__ __forceinline__ void add(const T* a, const T* b) {
        const int lane = threadIdx.x % 32;
        a += (row() + lane % 16) * G::A_STRIDE + lane / 16 * 8;
        b += lane % 16 * G::B_STRIDE + col() + lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < G::DEPTH; k += 16) {
            u32 left[4][4], right[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) load_matrix(left[i], a + i * 16 * G::A_STRIDE + k);
#pragma unroll
            for (int j = 0; j < 2; j++) load_matrix_transposed(right[j], b + k * G::B_STRIDE + j * 16);
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    mma<T>(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    }

    __device__ __forceinline__ void store(T* tile) const {
        const int lane = threadIdx.x % 32;
        tile += (row() + lane / 4) * G::TILE_STRIDE + col() + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                T* upper = tile + i * 16 * G::TILE_STRIDE + j * 8;
                T* lower = upper + 8 * G::TILE_STRIDE;
                *reinterpret_cast<u32*>(upper) = from_floats<T>(sums[i][j][0], sums[i][j][1]);
                *reinterpret_cast<u32*>(lower) = from_floats<T>(sums[i][j][2], sums[i][j][3]);
            }
        }
    }
};

// Threads are laid out 16 down, 16 across; each has rows y + 16 i, and columns 4 x + 64 j to 4 x + 64 j + 3.
template <>
struct Accumulator<float> {
    using G = Gemm<float>;
    float sums[8][2][4];

    __device__ __forceinline__ void add(const float* a, const float* b) {
        a += threadIdx.x / 16 * G::A_STRIDE;
        b += threadIdx.x % 16 * 4;
        // Unrolled, the compiler would load far ahead and run out of registers.
#pragma unroll 1
        for (int k = 0; k < G::DEPTH; k += 4) {
            float left[8][4];
#pragma unroll
            for (int i = 0; i < 8; i++) widen(load_shared_pack(a + i * 16 * G::A_STRIDE + k), left[i]);
#pragma unroll
            for (int d = 0; d < 4; d++) {
                float right[2][4];
#pragma unroll
                for (int j = 0; j < 2; j++) widen(load_shared_pack(b + (k + d) * G::B_STRIDE + j * 64), right[j]);
                multiply(left, d, right);
            }
        }
    }

    __device__ __forceinline__ void multiply(const float (&left)[8][4], int d, const float (&right)[2][4]) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 2; j++) {
#pragma unroll
                for (int c = 0; c < 4; c++) sums[i][j][c] = fmaf(left[i][d], right[j][c], sums[i][j][c]);
            }
        }
    }

    __device__ __forceinline__ void store(float* tile) const {
        tile += threadIdx.x / 16 * G::TILE_STRIDE + threadIdx.x % 16 * 4;
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 2; j++) store_shared_pack(tile + i * 16 * G::TILE_STRIDE + j * 64, narrow<float>(sums[i][j]));
        }
    }
};

template <bool IN_PACKS, typename T>
__device__ __forceinline__ void multiply_tile(T* shared, const Matrix<T>& a, const Matrix<T>& b, int row, int col) {
    using G = Gemm<T>;
    Fetcher<G::ROWS, G::DEPTH, G::A_STRIDE, IN_PACKS, T> left(a, row, 0);
    Fetcher<G::DEPTH, G::COLS, G::B_STRIDE, IN_PACKS, T> right(b, 0, col);
    const int steps = (a.cols + G::DEPTH - 1) / G::DEPTH;
    auto fetch_stage = [&](int step) {
        if (step < steps) {
            T* stage = shared + step % G::STAGES * G::STAGE;
            left.fetch(stage);
            left.go_right();
            right.fetch(stage + G::ROWS * G::A_STRIDE);
            right.go_down();
        }
        copy_async_commit();
    };
    // Another thread may still read the last tile.
    __syncthreads();
    for (int step = 0; step < G::STAGES - 1; step++) fetch_stage(step);
    Accumulator<T> accumulator = {};
    for (int step = 0; step < steps; step++) {
        copy_async_wait<G::STAGES - 2>();
        // All threads can read this stage, and no thread still reads the stage before, which the next copy overwrites.
        __syncthreads();
        fetch_stage(step + G::STAGES - 1);
        const T* stage = shared + step % G::STAGES * G::STAGE;
        accumulator.add(stage, stage + G::ROWS * G::A_STRIDE);
    }
    copy_async_wait<0>();
    __syncthreads();
    accumulator.store(shared);
    __syncthreads();
}

// The tile at (row, col) of A * B, rounded to T, in shared memory with rows of TILE_STRIDE; zeros outside.
// The kernel has Gemm<T>::THREADS threads and GEMM_SHARED bytes. The next call overwrites the tile.
template <typename T>
__device__ __forceinline__ const T* gemm_tile(const Matrix<T>& a, const Matrix<T>& b, int row, int col) {
    extern __shared__ uint4 shared_packs[];
    T* shared = reinterpret_cast<T*>(shared_packs);
    if (a.in_packs() && b.in_packs()) {
        multiply_tile<true>(shared, a, b, row, col);
    } else {
        multiply_tile<false>(shared, a, b, row, col);
    }
    return shared;
}

// The division of a [rows, cols] matrix into tiles, numbered row by row.
template <typename T>
struct Tiling {
    int across, count;

    __device__ __forceinline__ Tiling(int rows, int cols)
        : across((cols + Gemm<T>::COLS - 1) / Gemm<T>::COLS),
          count((rows + Gemm<T>::ROWS - 1) / Gemm<T>::ROWS * across) {}

    __device__ __forceinline__ int row(int tile) const { return tile / across * Gemm<T>::ROWS; }

    __device__ __forceinline__ int col(int tile) const { return tile % across * Gemm<T>::COLS; }
};

// A matrix to be written, row by row. Elements outside of the matrix are dropped.
template <typename T>
struct Output {
    T* data;
    int rows, cols;

    __device__ __forceinline__ void store(int row, int col, Pack<T> pack) const {
        const bool in_packs = aligned(data) && cols % Pack<T>::SIZE == 0;
        if (row < rows) store_part(data + i64(row) * cols + col, pack, cols - col, in_packs);
    }
};

// Calls store(r, c, load(r, c)) for every pack of a tile from row `first` on, divided among the threads of the block.
template <typename T, typename Load, typename Store>
__device__ __forceinline__ void move_tile(int first, Load load, Store store) {
    using G = Gemm<T>;
    constexpr int ACROSS = G::COLS / G::PACK;
    constexpr int AHEAD = 4, BATCH = AHEAD * G::THREADS;
    static_assert(G::ROWS * ACROSS % BATCH == 0);
    for (int start = threadIdx.x; start < G::ROWS * ACROSS; start += BATCH) {
        auto row = [&](int k) { return ((start + k * G::THREADS) / ACROSS + first) % G::ROWS; };
        const int col = start % ACROSS * G::PACK;
        Pack<T> held[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) held[k] = load(row(k), col);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) store(row(k), col, held[k]);
    }
}

}  // namespace pkb
