{# One expression over pictures. Operand modes: "pixel" (a value a pixel; strides are 0 along
    broadcast axes), "channel" (one vector a block), "splat" (one channel for all lanes).
    Variables: code (declares t0..tn from v0.. and s0..), result (the last t), modes,
    scalars (how many), mask (True: padding lanes are set to zero). y may be an operand: no restrict. #}
{% import "common.cl" as common with context %}
{% import "functions.cl" as functions %}
{{ common.vector() }}
{{ functions.unit() }}{{ functions.error_function() if "ERF" in code }}

{{ common.group() }}
__kernel void elementwise_picture(
{% for mode in modes %}
    __global const S *i{{ loop.index0 }},
    int base{{ loop.index0 }}, int plane{{ loop.index0 }}, int row{{ loop.index0 }}, int step{{ loop.index0 }},
{% endfor %}
{% for n in range(scalars) %}
    float s{{ n }},
{% endfor %}
    __global S *y, int y_base, int y_plane, int y_row,
    int lanes, int blocks,  // channels of the last block, number of blocks
    {{ common.grid() }}) {
{{ common.place() }}
{% for mode in modes %}
{% if mode == "channel" %}
    const V v{{ loop.index0 }} = GET(i{{ loop.index0 }} + base{{ loop.index0 }} + b * plane{{ loop.index0 }});
{% endif %}
{% endfor %}
    for (int py = y0; py < y1; py++) {
        for (int px = x0; px < x1; px++) {
{% for mode in modes %}
{% set n = loop.index0 %}
{% set at = "i%d + base%d + b * plane%d + py * row%d + px * step%d"|format(n, n, n, n, n) %}
{% if mode == "pixel" %}
            const V v{{ n }} = GET({{ at }});
{% elif mode == "splat" %}
            const V v{{ n }} = (V)((float)*({{ at }}));
{% endif %}
{% endfor %}
            {{ code }}
{% if mask %}
            if (b == blocks - 1) {{ result }} = {{ common.lanes() }} < (V)(lanes) ? {{ result }} : (V)(0.0f);
{% endif %}
            PUT(y + y_base + b * y_plane + py * y_row + px * {{ block }}, {{ result }});
        }
    }
}
