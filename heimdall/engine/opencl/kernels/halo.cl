{# Writes the halo of a picture in place: a constant, or pixels of the picture itself.
    Variable: mode ("constant", "reflect", "edge"). One work-item does stored rows of a block. #}
{% import "common.cl" as common with context %}
{{ common.vector() }}

static int source(int i, int size) {
{% if mode == "reflect" %}
    const int period = max(2 * (size - 1), 1);
    i = (i % period + period) % period;  // compilers make abs of -i, which Oclgrind lacks
    return i < size ? i : period - i;
{% else %}
    return clamp(i, 0, size - 1);
{% endif %}
}

{{ common.group() }}
__kernel void halo(
    __global S *y, int y_base, int y_plane, int y_row,
    int top, int left, int bottom, int right, int x_height, int x_width, float fill,
    {{ common.grid() }}) {
{{ common.place() }}
    if (x0 > 0) return;
    __global S *plane = y + y_base + b * y_plane;
    for (int stored = y0; stored < y1; stored++) {
        const int py = stored - top;
        const bool border = py < 0 || py >= x_height;
        __global S *to = plane + py * y_row;
        __global const S *from = plane + source(py, x_height) * y_row;
        for (int px = -left; px < x_width + right; px++) {
            if (!border && px == 0) px = x_width;
            if (px >= x_width + right) break;
{% if mode == "constant" %}
            PUT(to + px * {{ block }}, (V)(fill));
{% else %}
            PUT(to + px * {{ block }}, GET(from + source(px, x_width) * {{ block }}));
{% endif %}
        }
    }
}
