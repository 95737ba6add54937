"use strict";
// A phone's page: its camera and microphone to the run, frames of the run back, all by WebRTC, and
// beside each picture what the sensors say. Without WebRTC the pictures come as in every preview.

const CLOCK_MS = 1000, CLOCKS = 8; // our time and the run's are compared so often; the best counts
const CONNECT_MS = 7000; // for a connection, or one that has broken; then another is tried
const WAKE_MS = 500; // for a line to go on after the phone has slept
const FRESH_MS = 2000; // without a frame for so long nothing flows
const VIEWS = 64, VIEW_MS = 50; // that are kept; from a picture to what is known of its time
const CODECS = ["video/H264", "video/VP8"];
const BITS_A_PIXEL = 0.2; // of the camera's video
const SIZE = 640; // of the camera's picture, its longer side; `?size=1280` asks for another

const phone = (() => {
  const camera = find("camera");
  let draw = null; // of an overlay: puts pictures of the video over the camera
  let xr = null, hasXr = false; // a session of WebXR, whether there may be one
  let offered = null; // what the run says of itself: whether it wants our camera and microphone
  let peer = null, channel = null, stream = null, drives = false;
  let voice = null, voiceAsked = false; // the microphone's stream, whether the user was asked
  let facing = "environment", triedMs = -Infinity, polite = false;
  let relays = []; // that the run names to who drives
  let offset = null, clocks = []; // the run's ms minus ours
  const views = [], capturedOf = new Map(); // of AR, by the run's time; by RTP time
  let sensed = {}, lastFrame = -Infinity, lastRtp = 0, latency = 0, before = null;

  // A name that stays when the page is loaded again. A tab that was duplicated has the other one's:
  // who holds the name's lock has it, and the other takes a new one.
  const fresh = () => (sessionStorage.page = Math.random().toString(36).slice(2, 18));
  const named = new Promise((done) => {
    if (!navigator.locks) return done(sessionStorage.page || fresh());
    const hold = (name) => navigator.locks.request(`page ${name}`, {ifAvailable: true}, (lock) => {
      if (!lock) return void hold(fresh());
      done(name);
      return new Promise(() => {}); // until the page ends
    }).catch(() => done(name));
    hold(sessionStorage.page || fresh());
  });

  // --- beginning ------------------------------------------------------------------------------

  function ask(headline, details, label) {
    card(headline, details);
    const button = find("start");
    button.textContent = label;
    button.hidden = false;
    button.onclick = async () => {
      await sensors();
      begin();
    };
    find("start-ar").hidden = !hasXr;
  }

  async function beginXr() {
    try {
      xr = await XR.start(draw, video, viewed, endedXr, drawnFor);
    } catch (error) {
      toast(`AR cannot begin: ${error.message}`);
      return;
    }
    stream = xr.stream;
    camera.hidden = true;
    document.body.classList.add("in-ar");
    card("");
    await takeVoice();
    connectPeer();
  }

  // What the device says of a picture, of its planes or of its light.
  function viewed(said) {
    lastFrame = Math.max(lastFrame, video.currentTime !== viewed.at ? performance.now() : 0);
    viewed.at = video.currentTime;
    if (said.type !== "picture") say(said); // by the socket, where nothing gets lost
    else if (offset !== null && drives) {
      const sent = performance.now() + offset, at = Math.min(said.now + offset, sent);
      tell({type: "sensed", at, sent, viewed: said.viewed});
      views.push({at, matrix: said.matrix});
      if (views.length > VIEWS) views.shift();
    }
  }

  // The phone's matrix when the picture was taken that what is shown was drawn for; null: unknown.
  function drawnFor() {
    const captured = capturedOf.get(lastRtp), apart = ({at}) => Math.abs(at - captured);
    if (captured === undefined || !views.length) return null;
    const view = views.reduce((one, two) => apart(two) < apart(one) ? two : one);
    return apart(view) < VIEW_MS ? view.matrix : null;
  }

  function endedXr(why) {
    xr = stream = null;
    document.body.classList.remove("in-ar");
    if (ended) return;
    leave();
    triedMs = -Infinity; // nothing more until the user says so
    content.hidden = true;
    hasXr = hasXr && !why;
    if (why) { // not the user's doing: the camera goes on by itself where it may
      toast(why);
      permitted().then((may) => may ? begin() : ask(find("title").textContent, why, "Start"));
      return;
    }
    ask(find("title").textContent, "AR has ended: go on with the camera alone.", "Start");
  }

  async function permitted() {
    try {
      return (await navigator.permissions.query({name: "camera"})).state === "granted";
    } catch {
      return false;
    }
  }

  function needsAsking() { // iOS tells of motion only after a tap
    return window.DeviceMotionEvent && DeviceMotionEvent.requestPermission && !self.motionAllowed;
  }

  async function begin() {
    if (ended) return;
    if (offered.camera && !polite && !await take()) return;
    await takeVoice();
    connectPeer();
  }

  async function take() {
    if (xr || (stream && stream.getVideoTracks()[0].readyState === "live")) return true;
    if (!navigator.mediaDevices) {
      card("No camera here", "A browser gives its camera to secure pages alone: open the https address.");
      return false;
    }
    card("The camera …", "Allow this page to use it.");
    const size = Number(new URLSearchParams(location.search).get("size")) || SIZE;
    const video = {facingMode: facing, frameRate: {ideal: 30}, resizeMode: {ideal: "none"}, width: {ideal: size},
                   height: {ideal: Math.round(size * (size > 640 ? 9 / 16 : 3 / 4))}};
    try {
      stream = await navigator.mediaDevices.getUserMedia({video, audio: false});
    } catch (error) {
      refused(error);
      return false;
    }
    const track = stream.getVideoTracks()[0];
    track.contentHint = "motion";
    track.onended = () => { stream = null; if (!document.hidden) begin(); };
    camera.srcObject = stream;
    camera.hidden = !draw;
    camera.play().catch(() => {});
    const more = await navigator.mediaDevices.enumerateDevices();
    find("turn").hidden = more.filter((each) => each.kind === "videoinput").length < 2;
    return true;
  }

  // The microphone, where the run hears: without it the run goes on, and hears nothing.
  async function takeVoice() {
    if (!offered.sound || polite || voiceAsked || !navigator.mediaDevices) return;
    voiceAsked = true;
    try {
      voice = await navigator.mediaDevices.getUserMedia({audio: true});
    } catch (error) {
      toast(`The run hears nothing: ${error.message}`);
      return;
    }
    voice.getAudioTracks()[0].onended = () => {
      voice = null;
      voiceAsked = false;
      if (!document.hidden) begin();
    };
  }

  function stop(taken) {
    if (taken) taken.getTracks().forEach((track) => { track.onended = null; track.stop(); });
  }

  function refused(error) {
    const words = {
      NotAllowedError: ["The camera was refused", "Allow it for this page in the browser's settings, then try again."],
      NotFoundError: ["No camera", "This device has none that the browser knows."],
      NotReadableError: ["The camera is busy", "Another app or page uses it: close that, then try again."],
    };
    ask(...(words[error.name] || ["The camera cannot be used", error.message]), "Try again");
  }

  // --- the connection -------------------------------------------------------------------------

  async function connectPeer() {
    leave();
    triedMs = performance.now();
    const mine = peer = new RTCPeerConnection({iceServers: relays});
    channel = mine.createDataChannel("words", {ordered: false, maxRetransmits: 0});
    channel.onmessage = (message) => hear(JSON.parse(message.data));
    const track = stream && !polite ? stream.getVideoTracks()[0] : "video";
    const both = mine.addTransceiver(track, track === "video" ? {direction: "recvonly"}
      : {direction: "sendrecv", sendEncodings: [{maxBitrate: bits(track), priority: "high"}]});
    prefer(both);
    if (voice && !polite) mine.addTransceiver(voice.getAudioTracks()[0], {direction: "sendonly"});
    if ("jitterBufferTarget" in both.receiver) both.receiver.jitterBufferTarget = 0;
    if ("playoutDelayHint" in both.receiver) both.receiver.playoutDelayHint = 0;
    mine.ontrack = (event) => {
      video.srcObject = new MediaStream([event.track]);
      video.play().catch(() => {});
    };
    mine.onconnectionstatechange = () => {
      if (mine !== peer) return;
      if (mine.connectionState === "failed") again();
    };
    await mine.setLocalDescription(await mine.createOffer());
    await gathered(mine);
    if (mine !== peer) return;
    const page = await named;
    if (mine !== peer) return;
    say({type: "offer", sdp: mine.localDescription.sdp, page, drives: !polite, relayed: relays.length > 0});
  }

  function bits(track) {
    const {width = SIZE, height = SIZE, frameRate = 30} = track.getSettings();
    return Math.min(BITS_A_PIXEL * width * height * frameRate, 4000000);
  }

  function prefer(transceiver) {
    if (!transceiver.setCodecPreferences || !RTCRtpReceiver.getCapabilities) return;
    const known = RTCRtpReceiver.getCapabilities("video").codecs;
    const rank = (codec) => CODECS.indexOf(codec.mimeType) + 1 || 9;
    const wanted = known.filter((codec) => rank(codec) < 9 || codec.mimeType === "video/rtx");
    transceiver.setCodecPreferences(wanted.sort((one, two) => rank(one) - rank(two)));
  }

  function gathered(mine) {
    return new Promise((done) => {
      if (mine.iceGatheringState === "complete") done();
      mine.onicegatheringstatechange = () => { if (mine.iceGatheringState === "complete") done(); };
      setTimeout(done, 1000);
    });
  }

  function play() {
    for (const each of [video, camera]) if (each.srcObject && each.paused) each.play().catch(() => {});
  }

  function leave() {
    if (peer) peer.close();
    peer = channel = null;
    before = null;
  }

  function again() {
    if (ended || !offered) return;
    if (socket && socket.readyState === WebSocket.OPEN) begin();
  }

  function hear(said) {
    if (said.type === "answer") answered(said.sdp);
    else if (said.type === "role") role(said);
    else if (said.type === "clock") compared(said);
    else if (said.type === "drawn") {
      capturedOf.set(said.rtp, said.captured);
      if (capturedOf.size > VIEWS) capturedOf.delete(capturedOf.keys().next().value);
    } else if (said.type === "figures" && said.latency !== null) latency = said.latency;
  }

  async function answered(sdp) {
    if (!peer || peer.signalingState !== "have-local-offer") return;
    // The first pictures are to be as good as the later ones.
    const brisk = sdp.replace(/(a=fmtp:\d+ (?!apt)[^\r\n]*)/g, "$1;x-google-start-bitrate=3000");
    await peer.setRemoteDescription({type: "answer", sdp: brisk});
  }

  function role(said) {
    drives = said.drives;
    document.body.classList.toggle("watches", !drives);
    if (said.ice) {
      relays = said.ice;
      connectPeer();
    }
    if (said.why) { // somebody else drives: watch
      if (xr) xr.end();
      polite = true;
      toast(said.why);
      stop(stream);
      stop(voice);
      stream = voice = null;
      camera.hidden = true;
      connectPeer();
    }
  }

  // --- pictures -------------------------------------------------------------------------------

  function flows() {
    return performance.now() - lastFrame < FRESH_MS;
  }

  function frame(now, about) {
    video.requestVideoFrameCallback(frame);
    if (!peer || ended) return; // the last ones of a line that was left
    if (about.rtpTimestamp !== undefined && about.rtpTimestamp === lastRtp) return; // the same again
    lastRtp = about.rtpTimestamp;
    lastFrame = now;
    const view = draw ? content : video;
    if (draw && !xr) draw.content(video);
    if (view.hidden && !xr) {
      view.hidden = false;
      canvas.hidden = true;
      hasPicture = true;
      view.focus();
    }
    if (!find("card").hidden) card("");
    state("live", "Connected");
    figures(now, latency);
    if (offset !== null && about.rtpTimestamp !== undefined) {
      tell({type: "seen", rtp: about.rtpTimestamp, at: about.expectedDisplayTime + offset});
    }
  }

  function taken(now, about) {
    camera.requestVideoFrameCallback(taken);
    if (offset === null || !drives) return;
    const at = (about.captureTime || now) + offset;
    tell({type: "sensed", at, sent: performance.now() + offset, ...sensed});
  }

  function tell(message) {
    if (channel && channel.readyState === "open" && channel.bufferedAmount < 4096) {
      channel.send(JSON.stringify(message));
    }
  }

  // --- clocks, and the line -------------------------------------------------------------------

  function compare() {
    const epoch = offset === null ? null : performance.timeOrigin - offset;
    const asked = {type: "clock", sent: performance.now(), epoch};
    if (channel && channel.readyState === "open") tell(asked);
    else say(asked);
  }

  function compared(said) {
    const now = performance.now(), way = now - said.sent;
    clocks.push([way, said.now - (said.sent + now) / 2]);
    if (clocks.length > CLOCKS) clocks.shift();
    const best = clocks.reduce((one, two) => two[0] < one[0] ? two : one);
    offset = best[1];
  }

  async function line() {
    if (!peer || !flows()) return;
    const reports = await peer.getStats();
    for (const each of reports.values()) {
      if (each.type !== "inbound-rtp" || each.kind !== "video") continue;
      const now = {lost: each.packetsLost, got: each.packetsReceived};
      if (before) {
        const lost = Math.max(now.lost - before.lost, 0), got = Math.max(now.got - before.got, 0);
        if (lost + got) say({type: "line", lost: lost / (lost + got)});
      }
      before = now;
    }
    slow(reports);
  }

  function slow(reports) {
    for (const each of reports.values()) {
      if (each.type === "outbound-rtp" && each.qualityLimitationReason === "cpu" && !slow.told) {
        slow.told = true;
        toast("This phone is slow: its pictures are smaller. Close other apps and pages.");
      }
    }
  }

  function look() { // once a second
    if (!offered || ended) return;
    if (socket && socket.readyState === WebSocket.OPEN) compare();
    line();
    if (triedMs === -Infinity || flows() || document.hidden) return;
    play(); // browsers stop videos of a page that slept
    state("waiting", "No picture");
    // A line that was cut for a while goes on by itself, and sooner than a new one is laid.
    const now = performance.now();
    if (now - Math.max(triedMs, lastFrame) > CONNECT_MS) again();
  }

  // --- sensors --------------------------------------------------------------------------------

  async function sensors() {
    if (!needsAsking()) return;
    try {
      await DeviceMotionEvent.requestPermission();
      self.motionAllowed = true;
    } catch {
      toast("Without motion sensors the room is found by pictures alone.");
    }
  }

  // From the device's axes (x right, y up, z out of the screen, as it is built) to the camera's (x
  // right, y down, z into its picture, as it is held).
  function toCamera(x, y, z) {
    const angle = ((screen.orientation && screen.orientation.angle) || window.orientation || 0) * Math.PI / 180;
    const right = x * Math.cos(angle) - y * Math.sin(angle);
    const up = x * Math.sin(angle) + y * Math.cos(angle);
    return facing === "user" ? [-right, -up, z] : [right, -up, -z];
  }

  function turned(event) {
    if (event.beta === null || event.gamma === null) return;
    const beta = event.beta * Math.PI / 180, gamma = event.gamma * Math.PI / 180;
    const down = [Math.cos(beta) * Math.sin(gamma), -Math.sin(beta), -Math.cos(beta) * Math.cos(gamma)];
    sensed = {...sensed, down: toCamera(...down)};
    turned.down = down;
  }

  function moved(event) {
    const own = event.acceleration, all = event.accelerationIncludingGravity;
    if (!own || own.x === null || !all || all.x === null || !turned.down) return;
    // Standing still a sensor is pushed up; some browsers tell it the other way round.
    const pull = ["x", "y", "z"].reduce((sum, axis, at) => sum + (all[axis] - own[axis]) * turned.down[at], 0);
    const sign = pull < 0 ? 1 : -1;
    const pushed = toCamera(sign * own.x, sign * own.y, sign * own.z);
    if (pushed.every((each) => Math.abs(each) < 1000)) sensed = {...sensed, acceleration: pushed};
  }

  // --- the page -------------------------------------------------------------------------------

  window.addEventListener("deviceorientation", turned);
  window.addEventListener("devicemotion", moved);
  find("start-ar").addEventListener("click", beginXr);
  find("turn").addEventListener("click", () => {
    facing = facing === "environment" ? "user" : "environment";
    stop(stream);
    stream = null;
    begin();
  });
  document.addEventListener("resume", () => phone.wake());
  document.addEventListener("run-ended", () => { // nobody watches or listens any more
    stop(stream);
    stop(voice);
    stream = voice = null;
  });
  setInterval(look, CLOCK_MS);
  if (video.requestVideoFrameCallback) {
    video.requestVideoFrameCallback(frame);
    camera.requestVideoFrameCallback(taken);
  }
  if (navigator.wakeLock) {
    const awake = () => { if (phone.is && !document.hidden) navigator.wakeLock.request("screen").catch(() => {}); };
    document.addEventListener("visibilitychange", awake);
    video.addEventListener("playing", awake);
  }

  return {
    is: false,
    flows,
    stats: () => peer ? peer.getStats() : Promise.resolve(new Map()),
    hear,
    xr: () => xr, // for tests, too
    drawnFor, // for tests
    named, offset: () => offset, // for tests
    cut: leave, // for tests: the line is gone
    async greet(said) {
      offered = said;
      phone.is = true;
      document.body.classList.add("phone");
      compare();
      if (!window.RTCPeerConnection) return; // pictures come by the socket
      if (said.overlay && !draw) draw = CONTENT.drawer(content);
      hasXr = Boolean(draw) && said.camera && await XR.supported();
      if (said.overlay && !draw) {
        card("No overlay here", "This browser lacks WebGL 2: start the run with --phone instead.");
        return;
      }
      const free = !hasXr && !needsAsking() && (!said.camera || stream || await permitted());
      if (free) begin();
      else ask(find("title").textContent, "This phone's camera is the source, and its screen shows the run.", "Start");
    },
    wake() {
      if (!phone.is) return;
      play();
      setTimeout(() => {
        if (triedMs > -Infinity && !flows() && !document.hidden) again();
      }, WAKE_MS);
    },
  };
})();

canvas.focus();
connect();
