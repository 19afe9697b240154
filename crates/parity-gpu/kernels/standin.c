/*
 * A stand-in for NVIDIA's library: the functions of the driver that are used, over the kernels' C
 * form and this machine's memory. For tests of the calls themselves: names, types, order, and that
 * the context is current in the calling thread. Everything is done at once.
 */
#include <stdlib.h>
#include <string.h>

typedef int Status;
typedef unsigned long long Address;
typedef void (*Kernel)(
    const void *in, void *out, unsigned long long jobs, unsigned blocks, unsigned count,
    unsigned threads);

/* Of cuda.h. */
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3 };
enum { INVALID_DEVICE = 101, INVALID_PTX = 218, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

#define KERNELS(each)                                                                          \
    each(generate_p) each(generate_pq) each(generate_pqr) each(dot) each(delta_p)              \
    each(delta_q) each(delta_pq) each(deltas) each(verify_p) each(verify_pq)                   \
    each(verify_pqr) each(verify_dot) each(crc32c)
#define DECLARED(name)                                                                         \
    void parity_##name(                                                                        \
        const void *, void *, unsigned long long, unsigned, unsigned, unsigned);
#define LISTED(name) {"parity_" #name, parity_##name},
KERNELS(DECLARED)
static const struct {
    const char *name;
    Kernel kernel;
} kernels[] = {KERNELS(LISTED)};

/* What handles point to. */
static char context, module, stream, event;
static int started, retained;
static _Thread_local void *current;

#define IN_CONTEXT                                                                             \
    if (current != &context) return INVALID_CONTEXT

Status cuInit(unsigned flags)
{
    started = flags == 0;
    return flags == 0 ? SUCCESS : INVALID_VALUE;
}

Status cuDeviceGetCount(int *count)
{
    *count = 1;
    return started ? SUCCESS : NOT_INITIALIZED;
}

Status cuDeviceGet(int *device, int number)
{
    if (number != 0) return INVALID_DEVICE;
    *device = 7;
    return SUCCESS;
}

Status cuDeviceGetName(char *name, int len, int device)
{
    if (device != 7 || len < 16) return INVALID_VALUE;
    strcpy(name, "stand-in");
    return SUCCESS;
}

Status cuDevicePrimaryCtxRetain(void **to, int device)
{
    if (device != 7) return INVALID_DEVICE;
    *to = &context;
    retained++;
    return SUCCESS;
}

Status cuDevicePrimaryCtxRelease(int device)
{
    if (device != 7 || retained == 0) return INVALID_VALUE;
    retained--;
    return SUCCESS;
}

Status cuCtxSetCurrent(void *to)
{
    current = to;
    return SUCCESS;
}

Status cuModuleLoadData(void **to, const void *image)
{
    IN_CONTEXT;
    if (strncmp(image, ".version 6.3", 12) != 0) return INVALID_PTX;
    *to = &module;
    return SUCCESS;
}

Status cuModuleGetFunction(void **to, void *from, const char *name)
{
    IN_CONTEXT;
    if (from != &module) return INVALID_VALUE;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].name, name) != 0) continue;
        *to = (void *)&kernels[i];
        return SUCCESS;
    }
    return NOT_FOUND;
}

Status cuMemAlloc_v2(Address *to, size_t len)
{
    IN_CONTEXT;
    /* What was never written is no zero. */
    void *memory = len == 0 || len > 1u << 30 ? NULL : aligned_alloc(256, (len + 255) / 256 * 256);
    if (memory == NULL) return OUT_OF_MEMORY;
    memset(memory, 0x5a, len);
    *to = (Address)memory;
    return SUCCESS;
}

Status cuMemFree_v2(Address memory)
{
    IN_CONTEXT;
    free((void *)memory);
    return SUCCESS;
}

Status cuMemHostAlloc(void **to, size_t len, unsigned flags)
{
    Address memory;
    if (flags != 1) return INVALID_VALUE;
    Status status = cuMemAlloc_v2(&memory, len);
    *to = (void *)memory;
    return status;
}

Status cuMemFreeHost(void *memory)
{
    return cuMemFree_v2((Address)memory);
}

Status cuStreamCreate(void **to, unsigned flags)
{
    IN_CONTEXT;
    *to = &stream;
    return flags == 1 ? SUCCESS : INVALID_VALUE;
}

Status cuEventCreate(void **to, unsigned flags)
{
    IN_CONTEXT;
    *to = &event;
    return flags == 2 ? SUCCESS : INVALID_VALUE;
}

Status cuEventRecord(void *mark, void *on)
{
    IN_CONTEXT;
    return mark == &event && on == &stream ? SUCCESS : INVALID_VALUE;
}

Status cuEventQuery(void *mark)
{
    IN_CONTEXT;
    return mark == &event ? SUCCESS : INVALID_VALUE;
}

Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t len, void *on)
{
    IN_CONTEXT;
    memcpy((void *)to, from, len);
    return on == &stream ? SUCCESS : INVALID_VALUE;
}

Status cuMemcpyDtoHAsync_v2(void *to, Address from, size_t len, void *on)
{
    IN_CONTEXT;
    memcpy(to, (const void *)from, len);
    return on == &stream ? SUCCESS : INVALID_VALUE;
}

Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t len, void *on)
{
    IN_CONTEXT;
    memcpy((void *)to, (const void *)from, len);
    return on == &stream ? SUCCESS : INVALID_VALUE;
}

Status cuMemsetD8Async(Address to, unsigned char value, size_t len, void *on)
{
    IN_CONTEXT;
    memset((void *)to, value, len);
    return on == &stream ? SUCCESS : INVALID_VALUE;
}

Status cuLaunchKernel(
    void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
    unsigned threads_z, unsigned shared, void *on, void **arguments, void **more)
{
    IN_CONTEXT;
    if (x == 0 || y == 0 || y > 65535 || z != 1 || threads != 256 || threads_y != 1) return 1;
    if (threads_z != 1 || shared != 0 || on != &stream || more != NULL) return INVALID_VALUE;
    Kernel kernel = *(Kernel *)((char *)function + sizeof(const char *));
    const void *in = *(const void **)arguments[0];
    void *out = *(void **)arguments[1];
    kernel(in, out, *(unsigned long long *)arguments[2], x, y, threads);
    return SUCCESS;
}

Status cuGetErrorName(Status status, const char **name)
{
    *name = status == INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR";
    return SUCCESS;
}
