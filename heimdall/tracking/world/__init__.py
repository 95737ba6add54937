"""The world an app's content stands in: where the camera is in it, what is there, what a ray meets.

``places``   planes, and where a ray meets one
``anchor``   a place that content keeps
``course``   the poses of late: which one a frame has, or will have
``thread``   the pose of each new frame, found beside the frames
``surface``  an undeclared plane: from a tap, by a stated guess
``world``    ties them together: what an app declares, and asks
"""

from heimdall.tracking.world.anchor import WorldAnchor
from heimdall.tracking.world.places import Hit, Plane
from heimdall.tracking.world.world import World

__all__ = ["Hit", "Plane", "World", "WorldAnchor"]
