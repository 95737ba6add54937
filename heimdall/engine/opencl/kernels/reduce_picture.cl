{# Sum, maximum... of every channel over the picture: bands of rows first, then `merge`.
    Variables: join (a op b), start (the neutral element),
    whole (True: one band, whose result is stored at once). #}
{% import "common.cl" as common with context %}
{{ common.vector() }}
#define JOIN(a, b) ({{ join }})

{{ common.group() }}
__kernel void reduce_picture(
    __global const S *restrict x, int x_base, int x_plane, int x_row,
    __global {{ "S" if whole else "float" }} *restrict to, int base, int bands, float factor, {{ common.grid() }}) {
{{ common.place() }}
    if (x0 > 0 || y0 >= height) return;
    __global const S *plane = x + x_base + b * x_plane;
    V total = (V)({{ start }});
    for (int py = y0; py < y1; py++) {
        V row = (V)({{ start }});
        for (int px = 0; px < width; px++) {
            const V v = GET(plane + py * x_row + px * {{ block }});
            row = JOIN(row, v);
        }
        total = JOIN(total, row);
    }
    {{ "PUT" if whole else "KEEP" }}(to + base + (b * bands + y0 / chunk_h) * {{ block }}, total * (V)(factor));
}

{{ common.group() }}
__kernel void merge(
    __global const float *restrict scratch, int place, int bands, float factor,
    __global S *restrict y, int y_base, int blocks) {
    const int b = get_global_id(0);
    if (b >= blocks) return;
    V total = (V)({{ start }});
    for (int band = 0; band < bands; band++) {
        const V v = KEPT(scratch + place + (b * bands + band) * {{ block }});
        total = JOIN(total, v);
    }
    PUT(y + y_base + b * {{ block }}, total * (V)(factor));
}
