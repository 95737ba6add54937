{# Which windows a group of Winograd tiles covers. Both kernels walk over them alike. #}
{% macro group() %}
const int across = (width + 3) / 4, tiles = across * ((height + 3) / 4);
    const int first = min((first_group + (int)get_global_id(0)) * {{ tile_w }}, tiles - {{ tile_w }});
{% endmacro %}

{% macro tile() %}
const int own_x = (first + t) % across * 4, x0 = min(own_x, width - 4);
        const int own_y = (first + t) / across * 4, y0 = min(own_y, height - 4);
{% endmacro %}
