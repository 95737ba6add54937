{# Softmax along the middle axis of (outer, count, inner). Variable: log. #}
{% import "common.cl" as common with context %}
{{ common.along("softmax") }}    y += y_base + at;
    float top = -INFINITY, sum = 0.0f;
    for (int k = 0; k < count; k++) top = fmax(top, (float)x[k * inner]);
    for (int k = 0; k < count; k++) {
        const float e = exp(x[k * inner] - top);
        y[k * inner] = e;
        sum += e;
    }
{% if log %}
    const float shift = top + log(sum);
    for (int k = 0; k < count; k++) y[k * inner] = x[k * inner] - shift;
{% else %}
    for (int k = 0; k < count; k++) y[k * inner] /= sum;
{% endif %}
}
