"""The world an app's content stands in: where the camera is in it, what is there, what a ray meets.

``places``   planes, and where a ray meets one
``anchor``   a place that content keeps
``layout``   the map of a room, as it was when a frame was looked at
``setting``  from a map's axes and unit to the world's
``level``    a room's own: level, its size by the camera's height, or guessed
``tie``      one by targets: pairs of poses
``carried``  targets, and the room where they are out of sight
``clips``    `heimdall pose --world` with targets
``room``     what there is in it: planes, what a ray meets, places that go with the map
``course``   the poses of late: which one a frame has, or will have
``thread``   the pose of each new frame, found beside the frames
``surface``  an undeclared plane: from a tap, by a stated guess
``world``    ties them together: what an app declares, and asks
"""

from heimdall.tracking.world.anchor import WorldAnchor
from heimdall.tracking.world.places import Hit, Plane
from heimdall.tracking.world.world import World

__all__ = ["Hit", "Plane", "World", "WorldAnchor"]
