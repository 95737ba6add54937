"""3-D models of the app's own: glTF files read, lit, posed and drawn.

`read` says what is in a file, with arrays ready for the GPU; everything that GL must not wait for
(textures scaled, coarser levels of detail, the shadow) is done there, on any thread. What draws is
in `figures`, on the main thread.
"""
