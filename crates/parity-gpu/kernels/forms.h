/*
 * The three forms of parity.c: CUDA (clang, for the NVPTX target), OpenCL C 1.2, and C++ (or C).
 *
 * Purpose: all that differs between them stands here: types, address spaces, which job and which
 * piece of it a thread has, and the few operations that a GPU has an instruction for. Each such
 * operation has a portable form of the same meaning, which the other forms use.
 *
 * In C++ a kernel is a function with three more arguments, which are the grid: it loops over
 * jobs, blocks and threads, one after the other.
 */

#if defined(__CUDA__)
/* Without CUDA's headers: the attributes and builtins that clang itself has. */
#define DEVICE static inline __attribute__((device, always_inline))
#define GLOBAL
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 piece __attribute__((ext_vector_type(4)));
#define ZERO (piece)(0)
#define LANE(v, i) (v).s##i
#define KERNEL(name)                                                                           \
    extern "C" __attribute__((global, launch_bounds(THREADS))) void parity_##name(             \
        const u8 *__restrict__ in, u8 *__restrict__ out, u64 jobs)                                     \
    {                                                                                          \
        u32 thread = __nvvm_read_ptx_sreg_ctaid_x() * THREADS + __nvvm_read_ptx_sreg_tid_x();  \
        name(in, out, jobs, __nvvm_read_ptx_sreg_ctaid_y(), thread);                           \
    }
/* The four bytes of b:a that the low four nibbles of `by` name. */
DEVICE u32 permute(u32 a, u32 b, u32 by) { return __nvvm_prmt(a, b, by); }
/* 0xff for each byte with its top bit set, else 0. */
DEVICE u32 signs(u32 a) { return __nvvm_prmt(a, 0, 0xba98); }
DEVICE void raise_to(u8 *to, u32 value)
{
    __atomic_fetch_max((u32 *)to, value, __ATOMIC_RELAXED);
}
DEVICE void add_to(u8 *to, u32 value) { __atomic_fetch_xor((u32 *)to, value, __ATOMIC_RELAXED); }
DEVICE void count_one(u8 *to) { __atomic_fetch_add((u32 *)to, 1, __ATOMIC_RELAXED); }

#elif defined(__OPENCL_VERSION__)
#define DEVICE static inline
#define GLOBAL __global
typedef uchar u8;
typedef uint u32;
typedef ulong u64;
typedef uint4 piece;
#define ZERO (piece)(0)
#define LANE(v, i) (v).s##i
#define KERNEL(name)                                                                           \
    __kernel void parity_##name(                                                               \
        __global const u8 *restrict in, __global u8 *restrict out, ulong jobs)                 \
    {                                                                                          \
        name(in, out, jobs, (u32)get_global_id(1), (u32)get_global_id(0));                     \
    }
DEVICE void raise_to(__global u8 *to, u32 value)
{
    atomic_max((volatile __global u32 *)to, value);
}
DEVICE void add_to(__global u8 *to, u32 value)
{
    atomic_xor((volatile __global u32 *)to, value);
}
DEVICE void count_one(__global u8 *to) { atomic_inc((volatile __global u32 *)to); }

#else
#define DEVICE static inline
#define GLOBAL
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 piece __attribute__((vector_size(16)));
#define ZERO (piece){0, 0, 0, 0}
#define LANE(v, i) (v)[i]
#ifdef __cplusplus
#define EXPORT extern "C"
#else
#define EXPORT
#endif
#define KERNEL(name)                                                                           \
    EXPORT void parity_##name(                                                                 \
        const u8 *__restrict__ in, u8 *__restrict__ out, u64 jobs, u32 blocks, u32 count, u32 threads) \
    {                                                                                          \
        for (u32 job = 0; job < count; job++)                                                  \
            for (u32 block = 0; block < blocks; block++)                                       \
                for (u32 thread = 0; thread < threads; thread++)                               \
                    name(in, out, jobs, job, block * threads + thread);                        \
    }
DEVICE void raise_to(u8 *to, u32 value)
{
    if (*(u32 *)to < value) *(u32 *)to = value;
}
DEVICE void add_to(u8 *to, u32 value) { *(u32 *)to ^= value; }
DEVICE void count_one(u8 *to) { ++*(u32 *)to; }
#endif

#if !defined(__CUDA__)
DEVICE u32 permute(u32 a, u32 b, u32 by)
{
    u64 bytes = (u64)b << 32 | a;
    u32 first = (u32)(bytes >> 8 * (by & 7)) & 0xff;
    u32 second = (u32)(bytes >> 8 * (by >> 4 & 7)) & 0xff;
    u32 third = (u32)(bytes >> 8 * (by >> 8 & 7)) & 0xff;
    u32 fourth = (u32)(bytes >> 8 * (by >> 12 & 7)) & 0xff;
    return first | second << 8 | third << 16 | fourth << 24;
}
DEVICE u32 signs(u32 a) { return (a >> 7 & 0x01010101u) * 0xffu; }
#endif
