{# What all convolution kernels share: the vector type, the place of a work-item's tile, and the
    epilogue (bias is already in the accumulators).

    Template variables: block (lanes of the output vector), tile_w, tile_h (pixels a work-item
    computes), activation (its ACT macro), slopes (True when ACT reads them), residual ("none",
    "before" or "after" the activation), scatter (output is not NCHWc: store lane by lane),
    clears (True: work-items of one more row of tiles zero the halo of the output), device ("cpu": one work-item a work-group; "gpu": several, some beyond the picture). #}

{% import "functions.cl" as functions %}
{% import "storage.cl" as memory with context %}
{# FETCH(p): bring a line into the cache before it is needed. PREFETCH is defined where a trial has
   shown that the compiler knows how: clang always does, but what translates its output may not. #}
{% macro fetch() %}
#ifdef PREFETCH
#define FETCH(p) __builtin_prefetch(p)
#else
#define FETCH(p)
#endif
{% endmacro %}
{# The weights of a layer of many channels come from memory, and a core looks no further ahead than
   the end of a page: without this half of a 3x3 layer of 512 channels at 7x7 is waiting. #}
{% macro fetch_weights(at) %}
{% if device == "cpu" %}FETCH(w + {{ at + 96 }});{% endif %}
{% endmacro %}

{% macro preamble() %}
typedef float{{ block }} V;
{{ memory.types() }}{{ functions.unit() }}{{ activation }}
{% if scatter %}
static void scatter(__global S *to, V v, int lanes, int step) {
    if (step == 1 && lanes >= {{ block }}) {
        vstore{{ block }}(NARROW(v), 0, to);
        return;
    }
    float part[{{ block }}];
    vstore{{ block }}(v, 0, part);
    for (int i = 0; i < lanes && i < {{ block }}; i++) to[i * step] = part[i];
}
{% if residual != "none" %}
static V gather(__global const S *from, int lanes, int step) {
    float part[{{ block }}];
    for (int i = 0; i < {{ block }}; i++) part[i] = i < lanes ? from[i * step] : 0.0f;
    return vload{{ block }}(0, part);
}
{% endif %}
{% endif %}
{% if clears %}
// Zero the halo of one block; of its rows, those of one of `shares` work-items.
static void clear_halo(
    __global S *plane, int row_step, int pixel, int width, int height,
    int top, int left, int bottom, int right, int share, int shares)
{
    const int stored = top + height + bottom;
    const int end = stored * (share + 1) / shares - top;
    for (int row = stored * share / shares - top; row < end; row++) {
        __global S *to = plane + row * row_step;
        const int first = row < 0 || row >= height ? width : 0;
        for (int at = -left; at < first; at++) *(__global SV *)(to + at * pixel) = NARROW((V)(0.0f));
        for (int at = width; at < width + right; at++) *(__global SV *)(to + at * pixel) = NARROW((V)(0.0f));
    }
}
{% endif %}
{% if device == "cpu" %}
__attribute__((reqd_work_group_size(1, 1, 1)))
{% endif %}
{% endmacro %}

{# Arguments that every convolution kernel takes for its results. Strides and bases count elements. #}
{% macro results() %}
    __global const float *restrict bias,
{% if slopes %}
    __global const float *restrict slope,
{% endif %}
{% if residual != "none" %}
    __global const S *restrict added,
    int r_base, int r_plane, int r_row, int r_pixel,
{% endif %}
    __global S *restrict y,
    int y_base, int y_plane, int y_row, int y_pixel,
{% if scatter %}
    int channels, int y_lane,
{% if residual != "none" %}
    int r_lane,
{% endif %}
{% endif %}
    int width, int height,  // pixels to compute, at least one tile
    float p, float q,       // parameters of the activation
    int first_block,        // of output channels, when a layer is split over launches
{% if clears %}
    int top, int left, int bottom, int right,  // halo of y
{% endif %}
{% endmacro %}

{# Arguments of the kernels that walk over the taps of a window. #}
{% macro arguments() %}
    __global const S *restrict x,
    __global const S *restrict weights,
{{ results() }}    int x_base, int x_plane, int x_row,  // x_row: from the input of one output row to the next
    int taps_y, int taps_x, int tap_row, int tap_col,
{% endmacro %}

{# The last tile is shifted back into the picture and recomputes a few pixels: no masks.
    `axes`: of work-items, which go along a row, along rows, and along blocks of outputs. #}
{% macro place(blocks_per_item, step=tile_w, axes=(0, 1, 2)) %}
    const int g = get_global_id({{ axes[2] }});
{% if device == "gpu" %}
    if ((int)get_global_id({{ axes[0] }}) * {{ step }} >= width || (int)get_global_id({{ axes[1] }}) * {{ tile_h }} >= height) return;
{% endif %}
    const int x0 = min((int)get_global_id({{ axes[0] }}) * {{ step }}, width - {{ step }});
    const int y0 = min((int)get_global_id({{ axes[1] }}) * {{ tile_h }}, height - {{ tile_h }});
    const int ob = first_block + g * {{ blocks_per_item }};  // first output block of this item
{% if clears %}
    if ((int)get_global_id({{ axes[1] }}) * {{ tile_h }} >= height) {
        for (int j = 0; j < {{ blocks_per_item }}; j++)
            clear_halo(y + y_base + (ob + j) * y_plane, y_row, y_pixel, width, height, top, left, bottom, right,
                       (int)get_global_id({{ axes[0] }}), (width + {{ step - 1 }}) / {{ step }});
        return;
    }
{% endif %}
{% endmacro %}

{# Residual and activation of `v`, of the given type; `a` is the residual, `s` the slope. #}
{% macro activate(type) %}
{% if residual == "before" %}
        v += a;
{% endif %}
        v = ACT({{ type }}, v, p, q, s);
{% if residual == "after" %}
        v += a;
{% endif %}
{% endmacro %}

{# Finish and store accumulator `acc`: output block ob + j, row y0 + r, pixel x0 + t. #}
{% macro store(acc, j, r, t) %}
{
        V v = {{ acc }};
{% if residual != "none" %}
{% set at = "r_base + (y0 + %d) * r_row + (x0 + %d) * r_pixel"|format(r, t) %}
{% if scatter %}
        const V a = gather(added + ({{ at }}) + (ob + {{ j }}) * {{ block }} * r_lane, channels - (ob + {{ j }}) * {{ block }}, r_lane);
{% else %}
        const V a = WIDE(*(__global const SV *)(added + ({{ at }}) + (ob + {{ j }}) * r_plane));
{% endif %}
{% endif %}
{% if slopes %}
        const V s = *(__global const V *)(slope + (ob + {{ j }}) * {{ block }});
{% endif %}
        {{ activate("V") }}
{% set to = "y_base + (y0 + %d) * y_row + (x0 + %d) * y_pixel"|format(r, t) %}
{% if scatter %}
        scatter(y + ({{ to }}) + (ob + {{ j }}) * {{ block }} * y_lane, v, channels - (ob + {{ j }}) * {{ block }}, y_lane);
{% else %}
        *(__global SV *)(y + ({{ to }}) + (ob + {{ j }}) * y_plane) = NARROW(v);
{% endif %}
    }
{% endmacro %}

{# The accumulators of a register tile, c<block>_<row>_<pixel>, begin with the bias b... #}
{% macro begin_tile(blocks) %}
{% for j in range(blocks) %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    V c{{ j }}_{{ r }}_{{ t }} = b[{{ j }}];
{% endfor %}
{% endfor %}
{% endfor %}
{% endmacro %}
{# ...and are stored at the end. #}
{% macro store_tile(blocks) %}
{% for j in range(blocks) %}
{% for r in range(tile_h) %}
{% for t in range(tile_w) %}
    {{ store("c%d_%d_%d"|format(j, r, t), j, r, t) }}
{% endfor %}
{% endfor %}
{% endfor %}
{% endmacro %}
