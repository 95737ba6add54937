# The demo without a screen: docker build -t heimdall . && docker run --rm -v "$PWD/out:/out" heimdall
FROM python:3.12-slim-bookworm

# A software GPU: PoCL for OpenCL, Mesa for OpenGL through EGL.
RUN apt-get update -q \
    && apt-get install -y -q --no-install-recommends \
        libegl1 libgl1 libgl1-mesa-dri libglib2.0-0 ocl-icd-libopencl1 pocl-opencl-icd \
    && rm -rf /var/lib/apt/lists/*

COPY . /src
RUN pip install --no-cache-dir "/src[serve]" && rm -rf /src

RUN useradd --create-home heimdall && mkdir /out && chown heimdall /out
USER heimdall
WORKDIR /out
ENTRYPOINT ["heimdall"]
CMD ["run", "shopping", "--headless", "--seconds", "15", "--record", "/out/shopping.mp4", "--screenshot", "/out/shopping.png"]
