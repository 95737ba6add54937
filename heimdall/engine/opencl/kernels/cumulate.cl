{# Running sums along the middle axis of (outer, count, inner). Variables: exclusive, reverse. #}
{% import "common.cl" as common with context %}
{{ common.along("cumulate") }}    y += y_base + at;
    float sum = 0.0f;
    for (int k = 0; k < count; k++) {
        const int from = {{ "count - 1 - k" if reverse else "k" }};
        const float v = x[from * inner];
        y[from * inner] = {{ "sum" if exclusive else "sum + v" }};
        sum += v;
    }
}
