/*
 * A stand-in for NVIDIA's library: the functions of the driver that are used, over the kernels' C
 * form and this machine's memory. For tests of the calls themselves: names, types, order, handles,
 * and that the context is current in the calling thread. Everything is done at once, but an event
 * is not said to have passed when it is first asked.
 *
 * Tests reach it by `standin_fail`, `standin_busy` and `standin_counts`, at the end.
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
enum { NOT_READY = 600, INVALID_DEVICE = 101, INVALID_PTX = 218, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

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

/* What handles point to. An event was recorded on a stream, and is asked for so many times yet. */
typedef struct {
    char is_stream, is_event;
    int asked;
} Object;
static char context, module;
static int started;
static _Thread_local void *current;

/* What there is at present: see `standin_counts`. */
static struct {
    int contexts, modules, memory, host, registered, streams, events;
} counts;

/* How many calls until one fails, and how. */
static int until_failure, failure;
/* Whether no event passes. */
static int busy;

/* Begins a call that needs the context. */
#define IN_CONTEXT                                                                             \
    if (current != &context) return INVALID_CONTEXT;                                           \
    CAN_FAIL
#define CAN_FAIL                                                                               \
    if (until_failure > 0 && --until_failure == 0) return failure

static int is_stream(void *handle) { return handle != NULL && ((Object *)handle)->is_stream; }
static int is_event(void *handle) { return handle != NULL && ((Object *)handle)->is_event; }

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
    CAN_FAIL;
    *to = &context;
    counts.contexts++;
    return SUCCESS;
}

Status cuDevicePrimaryCtxRelease(int device)
{
    if (device != 7 || counts.contexts == 0) return INVALID_VALUE;
    counts.contexts--;
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
    if (strncmp(image, ".version 6.0", 12) != 0) return INVALID_PTX;
    *to = &module;
    counts.modules++;
    return SUCCESS;
}

Status cuModuleUnload(void *from)
{
    IN_CONTEXT;
    counts.modules--;
    return from == &module ? SUCCESS : INVALID_VALUE;
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

/* What was never written is no zero. */
static void *allocated(size_t len)
{
    void *memory = len == 0 || len > 1u << 30 ? NULL : aligned_alloc(256, (len + 255) / 256 * 256);
    if (memory != NULL) memset(memory, 0x5a, len);
    return memory;
}

Status cuMemAlloc_v2(Address *to, size_t len)
{
    IN_CONTEXT;
    *to = (Address)allocated(len);
    counts.memory += *to != 0;
    return *to == 0 ? OUT_OF_MEMORY : SUCCESS;
}

Status cuMemFree_v2(Address memory)
{
    IN_CONTEXT;
    counts.memory--;
    free((void *)memory);
    return SUCCESS;
}

Status cuMemHostAlloc(void **to, size_t len, unsigned flags)
{
    IN_CONTEXT;
    if (flags != 1) return INVALID_VALUE;
    *to = allocated(len);
    counts.host += *to != NULL;
    return *to == NULL ? OUT_OF_MEMORY : SUCCESS;
}

Status cuMemFreeHost(void *memory)
{
    IN_CONTEXT;
    counts.host--;
    free(memory);
    return SUCCESS;
}

Status cuMemHostRegister_v2(void *memory, size_t len, unsigned flags)
{
    IN_CONTEXT;
    counts.registered++;
    return memory != NULL && len != 0 && flags == 3 ? SUCCESS : INVALID_VALUE;
}

Status cuMemHostGetDevicePointer_v2(Address *to, void *memory, unsigned flags)
{
    IN_CONTEXT;
    *to = (Address)memory;
    return flags == 0 && counts.registered > 0 ? SUCCESS : INVALID_VALUE;
}

Status cuMemHostUnregister(void *memory)
{
    IN_CONTEXT;
    counts.registered--;
    return memory != NULL ? SUCCESS : INVALID_VALUE;
}

Status cuStreamCreate(void **to, unsigned flags)
{
    IN_CONTEXT;
    Object *object = calloc(1, sizeof *object);
    object->is_stream = 1;
    *to = object;
    counts.streams++;
    return flags == 1 ? SUCCESS : INVALID_VALUE;
}

Status cuStreamDestroy_v2(void *stream)
{
    IN_CONTEXT;
    if (!is_stream(stream)) return INVALID_VALUE;
    counts.streams--;
    free(stream);
    return SUCCESS;
}

Status cuEventCreate(void **to, unsigned flags)
{
    IN_CONTEXT;
    Object *object = calloc(1, sizeof *object);
    object->is_event = 1;
    *to = object;
    counts.events++;
    return flags == 2 ? SUCCESS : INVALID_VALUE;
}

Status cuEventDestroy_v2(void *event)
{
    IN_CONTEXT;
    if (!is_event(event)) return INVALID_VALUE;
    counts.events--;
    free(event);
    return SUCCESS;
}

Status cuEventRecord(void *event, void *on)
{
    IN_CONTEXT;
    if (!is_event(event) || !is_stream(on)) return INVALID_VALUE;
    ((Object *)event)->asked = 2;
    return SUCCESS;
}

Status cuEventQuery(void *event)
{
    IN_CONTEXT;
    if (!is_event(event)) return INVALID_VALUE;
    if (busy) return NOT_READY;
    return ((Object *)event)->asked-- > 0 ? NOT_READY : (((Object *)event)->asked = 0, SUCCESS);
}

Status cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t len, void *on)
{
    IN_CONTEXT;
    memcpy((void *)to, from, len);
    return is_stream(on) ? SUCCESS : INVALID_VALUE;
}

Status cuMemcpyDtoHAsync_v2(void *to, Address from, size_t len, void *on)
{
    IN_CONTEXT;
    memcpy(to, (const void *)from, len);
    return is_stream(on) ? SUCCESS : INVALID_VALUE;
}

Status cuMemcpyDtoDAsync_v2(Address to, Address from, size_t len, void *on)
{
    IN_CONTEXT;
    memcpy((void *)to, (const void *)from, len);
    return is_stream(on) ? SUCCESS : INVALID_VALUE;
}

Status cuMemsetD8Async(Address to, unsigned char value, size_t len, void *on)
{
    IN_CONTEXT;
    memset((void *)to, value, len);
    return is_stream(on) ? SUCCESS : INVALID_VALUE;
}

Status cuLaunchKernel(
    void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
    unsigned threads_z, unsigned shared, void *on, void **arguments, void **more)
{
    IN_CONTEXT;
    if (x == 0 || y == 0 || y > 65535 || z != 1 || threads != 256 || threads_y != 1) return 1;
    if (threads_z != 1 || shared != 0 || !is_stream(on) || more != NULL) return INVALID_VALUE;
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

/* Has the call after `calls` others fail; none, if `calls` is below 0. */
void standin_fail(int calls, int status)
{
    until_failure = calls + 1;
    failure = status;
}

/* Has no event pass, or all. */
void standin_busy(int yes) { busy = yes; }

/*
 * How many there are: contexts retained, modules, device memories, host memories, registered
 * memories, streams, events.
 */
void standin_counts(int *to) { memcpy(to, &counts, sizeof counts); }
