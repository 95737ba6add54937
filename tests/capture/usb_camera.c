/* A USB 2 camera within a process, for LD_PRELOAD: /dev/video0 with the ioctls of Video4Linux.
 *
 * YUYV comes at 30 frames a second in VGA and at 10 in 720p, MJPG at 30 in both. $USB_CAMERA_JPEG
 * is the picture it sees in MJPG, 1280x720; YUYV is grey. A wrong use is refused as by the kernel.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define YUYV V4L2_PIX_FMT_YUYV
#define MJPG V4L2_PIX_FMT_MJPEG
#define BUFFERS 4
#define BUFFER_SIZE (1280 * 720 * 2)
#define REAL(name) dlsym(RTLD_NEXT, name)

static const struct mode {
    unsigned format, width, height, fps;
} modes[] = {
    {MJPG, 1280, 720, 30}, {MJPG, 640, 480, 30},
    {YUYV, 640, 480, 30}, {YUYV, 640, 480, 15}, {YUYV, 1280, 720, 10},
};
static const unsigned formats[] = {MJPG, YUYV};
static const unsigned sizes[][2] = {{1280, 720}, {640, 480}};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static int node = -1, buffers, streaming, next;
static unsigned char *memory;
static const struct mode *mode = &modes[2];
static struct timespec due;

static int fail(int error) {
    errno = error;
    return -1;
}

static int open_node(void) {
    node = memfd_create("camera", 0);
    if (ftruncate(node, BUFFERS * BUFFER_SIZE)) return -1;
    memory = mmap(NULL, BUFFERS * BUFFER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);
    return node;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int permissions = va_arg(rest, int);
    va_end(rest);
    if (!strcmp(path, "/dev/video0")) return open_node();
    return ((int (*)(const char *, int, ...))REAL("open"))(path, flags, permissions);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int permissions = va_arg(rest, int);
    va_end(rest);
    if (!strcmp(path, "/dev/video0")) return open_node();
    return ((int (*)(const char *, int, ...))REAL("open64"))(path, flags, permissions);
}

int close(int file) {
    if (file == node) node = -1, streaming = 0, buffers = 0;
    return ((int (*)(int))REAL("close"))(file);
}

/* The mode of that format (YUYV for unknown ones) nearest in size, then in rate. */
static const struct mode *nearest(unsigned format, unsigned width, unsigned height, double fps) {
    const struct mode *best = NULL;
    double least = 1e30;
    for (size_t i = 0; i < COUNT(modes); i++) {
        const struct mode *each = &modes[i];
        if (each->format != (format == MJPG ? MJPG : YUYV)) continue;
        double off = 1e3 * llabs((long long)each->width * each->height - (long long)width * height);
        off += each->fps > fps ? each->fps - fps : fps - each->fps;
        if (off < least) least = off, best = each;
    }
    return best;
}

static void tell_format(struct v4l2_pix_format *format, const struct mode *of) {
    format->pixelformat = of->format;
    format->width = of->width;
    format->height = of->height;
    format->field = V4L2_FIELD_NONE;
    format->bytesperline = of->format == YUYV ? 2 * of->width : 0;
    format->sizeimage = 2 * of->width * of->height;
}

static int list_rates(struct v4l2_frmivalenum *answer) {
    unsigned index = 0;
    for (size_t i = 0; i < COUNT(modes); i++) {
        if (modes[i].format != answer->pixel_format || modes[i].width != answer->width) continue;
        if (index++ != answer->index) continue;
        answer->type = V4L2_FRMIVAL_TYPE_DISCRETE;
        answer->discrete = (struct v4l2_fract){1, modes[i].fps};
        return 0;
    }
    return fail(EINVAL);
}

static int take_buffer(struct v4l2_buffer *buffer) {
    if (!streaming) return fail(EINVAL);
    due.tv_nsec += 1000000000l / mode->fps;
    if (due.tv_nsec >= 1000000000l) due.tv_nsec -= 1000000000l, due.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    buffer->index = next++ % buffers;
    buffer->length = BUFFER_SIZE;
    buffer->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
    buffer->timestamp = (struct timeval){due.tv_sec, due.tv_nsec / 1000};
    unsigned char *data = memory + buffer->index * BUFFER_SIZE;
    if (mode->format == MJPG) {
        FILE *picture = fopen(getenv("USB_CAMERA_JPEG"), "rb");
        buffer->bytesused = fread(data, 1, BUFFER_SIZE, picture);
        fclose(picture);
    } else {
        buffer->bytesused = 2 * mode->width * mode->height;
        memset(data, 128, buffer->bytesused);
    }
    return 0;
}

int ioctl(int file, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *answer = va_arg(rest, void *);
    va_end(rest);
    if (file != node || node < 0)
        return ((int (*)(int, unsigned long, ...))REAL("ioctl"))(file, request, answer);
    switch ((unsigned)request) {
    case VIDIOC_QUERYCAP: {
        struct v4l2_capability *camera = answer;
        memset(camera, 0, sizeof *camera);
        strcpy((char *)camera->card, "USB 2 Camera");
        camera->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
        camera->capabilities = camera->device_caps | V4L2_CAP_DEVICE_CAPS;
        return 0;
    }
    case VIDIOC_ENUM_FMT: {
        struct v4l2_fmtdesc *format = answer;
        if (format->index >= COUNT(formats)) return fail(EINVAL);
        format->pixelformat = formats[format->index];
        format->flags = format->pixelformat == MJPG ? V4L2_FMT_FLAG_COMPRESSED : 0;
        return 0;
    }
    case VIDIOC_ENUM_FRAMESIZES: {
        struct v4l2_frmsizeenum *size = answer;
        if (size->index >= COUNT(sizes)) return fail(EINVAL);
        size->type = V4L2_FRMSIZE_TYPE_DISCRETE;
        size->discrete.width = sizes[size->index][0];
        size->discrete.height = sizes[size->index][1];
        return 0;
    }
    case VIDIOC_ENUM_FRAMEINTERVALS:
        return list_rates(answer);
    case VIDIOC_G_FMT:
        tell_format(&((struct v4l2_format *)answer)->fmt.pix, mode);
        return 0;
    case VIDIOC_S_FMT: {
        struct v4l2_pix_format *format = &((struct v4l2_format *)answer)->fmt.pix;
        if (buffers) return fail(EBUSY);
        mode = nearest(format->pixelformat, format->width, format->height, mode->fps);
        tell_format(format, mode);
        return 0;
    }
    case VIDIOC_S_PARM: {
        struct v4l2_fract *time = &((struct v4l2_streamparm *)answer)->parm.capture.timeperframe;
        if (streaming) return fail(EBUSY);
        double fps = (double)time->denominator / time->numerator;
        mode = nearest(mode->format, mode->width, mode->height, fps);
    } /* fall through */
    case VIDIOC_G_PARM:
        ((struct v4l2_streamparm *)answer)->parm.capture.timeperframe =
            (struct v4l2_fract){1, mode->fps};
        return 0;
    case VIDIOC_REQBUFS: {
        struct v4l2_requestbuffers *wanted = answer;
        if (wanted->count > BUFFERS) wanted->count = BUFFERS;
        buffers = wanted->count;
        return 0;
    }
    case VIDIOC_QUERYBUF: {
        struct v4l2_buffer *buffer = answer;
        buffer->length = BUFFER_SIZE;
        buffer->m.offset = buffer->index * BUFFER_SIZE;
        return 0;
    }
    case VIDIOC_QBUF:
        return 0;
    case VIDIOC_DQBUF:
        return take_buffer(answer);
    case VIDIOC_STREAMON:
        streaming = 1, next = 0;
        clock_gettime(CLOCK_MONOTONIC, &due);
        return 0;
    case VIDIOC_STREAMOFF:
        streaming = 0;
        return 0;
    default:
        return fail(ENOTTY);
    }
}
