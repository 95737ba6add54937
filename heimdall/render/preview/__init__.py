"""The running picture in a web page, and keys and pointer from it: for machines without a screen.

``protocol`` (what page and server say) and ``address`` (who may ask) are pure; ``viewer`` paces
the pictures of one page, ``encoder`` makes them, ``server`` serves; ``Preview`` is all of it as a
run sees it.
"""

from heimdall.render.preview.preview import Preview

__all__ = ["Preview"]
