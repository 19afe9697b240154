/*
 * Runs the OpenCL form of every kernel over a file of launches and compares, byte by byte.
 *
 *   opencl SOURCES LAUNCHES
 *
 * SOURCES is the folder of parity.c, LAUNCHES what the crate's test `launches` wrote. The first CPU
 * device is used, whoever made it. Prints a line for each kernel; status 1 if any byte differs.
 *
 * The file is little-endian, as this processor has to be: "PALIKRN2", then for each launch the
 * kernel's name in 32 bytes, u64 bytes of `in`, u64 bytes of `out`, u64 place of the descriptors,
 * u32 blocks, u32 jobs, u32 threads of a block, u32 0, then `in`, `out` before and `out` after.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char name[32];
    uint64_t in_len, out_len, jobs;
    uint32_t blocks, count, threads, zero;
} Launch;

static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void need(cl_int status, const char *what)
{
    if (status == CL_SUCCESS) return;
    fprintf(stderr, "%s: OpenCL error %d\n", what, status);
    exit(1);
}

static void *allocate(size_t len)
{
    void *memory = malloc(len);
    if (memory != NULL) return memory;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

/* The next `len` bytes of the file. */
static void *bytes(FILE *file, size_t len)
{
    void *memory = allocate(len);
    if (fread(memory, 1, len, file) == len) return memory;
    fprintf(stderr, "the file of launches is cut off\n");
    exit(1);
}

static char *source(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/parity.c", folder);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    size_t len = (size_t)ftell(file);
    rewind(file);
    char *text = allocate(len + 1);
    len = fread(text, 1, len, file);
    text[len] = 0;
    fclose(file);
    return text;
}

/* Compiles for the first CPU of the first platform that has one. */
static void start(const char *folder)
{
    cl_platform_id platforms[8];
    cl_uint count = 0;
    cl_device_id device;
    cl_int status = CL_DEVICE_NOT_FOUND;
    need(clGetPlatformIDs(8, platforms, &count), "platforms");
    for (cl_uint i = 0; i < count && i < 8 && status != CL_SUCCESS; i++)
        status = clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, NULL);
    need(status, "a CPU device");
    char name[256] = "";
    clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    printf("device %s\n", name);
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    need(status, "context");
    queue = clCreateCommandQueue(context, device, 0, &status);
    need(status, "queue");
    const char *text = source(folder);
    program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    need(status, "program");
    char options[4096];
    snprintf(options, sizeof options, "-cl-std=CL1.2 -Werror -I %s", folder);
    status = clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (status != CL_SUCCESS) {
        char *log = allocate(65536);
        log[0] = 0;
        clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 65536, log, NULL);
        fprintf(stderr, "%s\n", log);
        need(status, "build");
    }
}

/* Runs one launch; the number of bytes that differ. */
static size_t run(const Launch *launch, void *in, uint8_t *out, const uint8_t *after)
{
    cl_int status;
    cl_mem input = clCreateBuffer(
        context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, launch->in_len, in, &status);
    need(status, "in");
    cl_mem output = clCreateBuffer(
        context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, launch->out_len, out, &status);
    need(status, "out");
    cl_kernel kernel = clCreateKernel(program, launch->name, &status);
    need(status, launch->name);
    need(clSetKernelArg(kernel, 0, sizeof input, &input), "argument in");
    need(clSetKernelArg(kernel, 1, sizeof output, &output), "argument out");
    cl_ulong jobs = launch->jobs;
    need(clSetKernelArg(kernel, 2, sizeof jobs, &jobs), "argument jobs");
    size_t global[2] = {(size_t)launch->blocks * launch->threads, launch->count};
    size_t local[2] = {launch->threads, 1};
    need(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, local, 0, NULL, NULL), "launch");
    need(clEnqueueReadBuffer(queue, output, CL_TRUE, 0, launch->out_len, out, 0, NULL, NULL), "read");
    clReleaseKernel(kernel);
    clReleaseMemObject(input);
    clReleaseMemObject(output);
    size_t wrong = 0;
    for (size_t i = 0; i < launch->out_len; i++) wrong += out[i] != after[i];
    return wrong;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: opencl SOURCES LAUNCHES\n");
        return 2;
    }
    FILE *file = fopen(arguments[2], "rb");
    char magic[8];
    if (file == NULL || fread(magic, 1, 8, file) != 8 || memcmp(magic, "PALIKRN2", 8) != 0) {
        fprintf(stderr, "%s: not a file of launches\n", arguments[2]);
        return 1;
    }
    start(arguments[1]);
    Launch launch;
    int launches = 0, failed = 0;
    while (fread(&launch, sizeof launch, 1, file) == 1) {
        uint8_t *in = bytes(file, launch.in_len);
        uint8_t *out = bytes(file, launch.out_len);
        uint8_t *after = bytes(file, launch.out_len);
        size_t wrong = run(&launch, in, out, after);
        printf("%-24s %4u jobs  ", launch.name, launch.count);
        if (wrong != 0) printf("%zu bytes are WRONG\n", wrong);
        else printf("ok\n");
        failed += wrong != 0;
        launches++;
        free(in), free(out), free(after);
    }
    printf("%d launches, %d failed\n", launches, failed);
    return failed != 0 || launches == 0;
}
