/* A layer of OpenCL's loader: the driver beneath it, with hints that this one does not have.
 *
 * STANDIN_HINTS: what its devices add to their extensions. A queue or a context of a priority is a
 * usual one of the driver's, and STANDIN_LOG gets a line for each; STANDIN_REFUSES: it is refused.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Places in the loader's table (CL/cl_icd.h). */
enum { GET_DEVICE_INFO = 3, CREATE_CONTEXT = 4, CREATE_QUEUE_WITH_PROPERTIES = 123, MOST = 256 };
enum { EXTENSIONS = 0x1030, QUEUE_PRIORITY = 0x1096, CONTEXT_PRIORITY = 0x40C9 };
enum { INVALID_VALUE = -30, INVALID_PROPERTY = -64, MOST_PROPERTIES = 32 };

typedef int32_t (*device_info)(void *, uint32_t, size_t, void *, size_t *);
typedef void *(*create_context)(const intptr_t *, uint32_t, void **, void *, void *, int32_t *);
typedef void *(*create_queue)(void *, void *, const uint64_t *, int32_t *);

static void *driver[MOST], *layer[MOST];

static void tell(const char *what, unsigned long level) {
    FILE *log = fopen(getenv("STANDIN_LOG"), "a");
    if (log) {
        fprintf(log, "%s %lx\n", what, level);
        fclose(log);
    }
}

static int32_t get_device_info(void *device, uint32_t name, size_t size, void *value, size_t *need) {
    static char all[1 << 16];
    int32_t code;
    if (name != EXTENSIONS)
        return ((device_info)driver[GET_DEVICE_INFO])(device, name, size, value, need);
    code = ((device_info)driver[GET_DEVICE_INFO])(device, name, sizeof all - 1024, all, NULL);
    if (code)
        return code;
    strcat(strcat(all, " "), getenv("STANDIN_HINTS"));
    if (need)
        *need = strlen(all) + 1;
    if (value && size <= strlen(all))
        return INVALID_VALUE;
    if (value)
        strcpy(value, all);
    return 0;
}

static void *new_context(const intptr_t *properties, uint32_t count, void **devices, void *notify,
                         void *data, int32_t *code) {
    intptr_t kept[MOST_PROPERTIES] = {0};
    size_t length = 0, at;
    for (at = 0; properties && properties[at]; at += 2) {
        if (properties[at] == CONTEXT_PRIORITY && getenv("STANDIN_REFUSES")) {
            *code = INVALID_PROPERTY;
            return NULL;
        }
        if (properties[at] == CONTEXT_PRIORITY) {
            tell("context", (unsigned long)properties[at + 1]);
            continue;
        }
        kept[length++] = properties[at];
        kept[length++] = properties[at + 1];
    }
    return ((create_context)driver[CREATE_CONTEXT])(properties ? kept : NULL, count, devices, notify,
                                                    data, code);
}

static void *new_queue(void *context, void *device, const uint64_t *properties, int32_t *code) {
    uint64_t kept[MOST_PROPERTIES] = {0};
    size_t length = 0, at;
    for (at = 0; properties && properties[at]; at += 2) {
        if (properties[at] == QUEUE_PRIORITY && getenv("STANDIN_REFUSES")) {
            *code = INVALID_VALUE;
            return NULL;
        }
        if (properties[at] == QUEUE_PRIORITY) {
            tell("queue", (unsigned long)properties[at + 1]);
            continue;
        }
        kept[length++] = properties[at];
        kept[length++] = properties[at + 1];
    }
    return ((create_queue)driver[CREATE_QUEUE_WITH_PROPERTIES])(context, device, kept, code);
}

int32_t clGetLayerInfo(uint32_t name, size_t size, void *value, size_t *need) {
    const uint32_t version = 100;
    if (name != 0x4240)
        return INVALID_VALUE;
    if (need)
        *need = sizeof version;
    if (value && size >= sizeof version)
        memcpy(value, &version, sizeof version);
    return 0;
}

int32_t clInitLayer(uint32_t count, void *const *target, uint32_t *count_of_layer, void ***table) {
    if (count <= CREATE_QUEUE_WITH_PROPERTIES || count > MOST)
        return INVALID_VALUE;
    memcpy(driver, target, count * sizeof *driver);
    memcpy(layer, target, count * sizeof *layer);
    layer[GET_DEVICE_INFO] = (void *)get_device_info;
    layer[CREATE_CONTEXT] = (void *)new_context;
    layer[CREATE_QUEUE_WITH_PROPERTIES] = (void *)new_queue;
    *count_of_layer = count;
    *table = layer;
    return 0;
}
