"""Draws hands, and says when thumb and index finger pinch."""

from heimdall import DNN, App, Scene


class Hands(App):
    """Hands, and whether they pinch."""

    clip = "box.mp4"
    hand = DNN(model="hand", rate_hz=5, max_rate_hz=15)

    def draw(self, scene: Scene) -> None:
        hands = self.hand.tracked or []
        scene.hands(hands)
        for hand in hands:
            if hand.pinch < 0.3:
                scene.text("pinch", at=tuple(hand.points[8][:2]), bold=True)
