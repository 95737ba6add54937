"""The running picture in a web page, and keys and pointer from it: for machines without a screen,
and for phones, whose camera is the source then.

``protocol`` (what page and server say) and ``address`` (who may ask) are pure; ``viewer`` paces
the pictures of one page, ``encoder`` makes them, ``server`` serves; ``Preview`` is all of it as a
run sees it. Phones have WebRTC: ``phone`` knows who drives, ``peer`` is one connection, ``intake``
takes its camera's pictures and its sound, ``sender_clock`` knows when they were captured, ``video``
makes the pictures that it shows, ``journeys`` follows them, and ``inside`` is what aiortc keeps to
itself.
"""

from heimdall.render.preview.preview import PhoneOptions, Preview

__all__ = ["PhoneOptions", "Preview"]
