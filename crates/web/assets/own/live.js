// Live pages: shows whether the page is connected, lets users pause updates, keeps typed and opened
// content, and announces changes to screen readers, at most every five seconds.
(() => {
  "use strict";
  const live = document.getElementById("live");
  const chip = document.getElementById("connection");
  const pause = document.getElementById("pause-updates");
  const spoken = document.getElementById("spoken");
  if (!live || !window.htmx || !window.Idiomorph) return;

  let paused = false;
  let missed = false;
  let last = Date.now();
  let connected = false;

  // The server sends a heartbeat every 15 seconds.
  const show = () => {
    const seconds = Math.round((Date.now() - last) / 1000);
    const text = paused ? "paused by you" : connected ? `live · ${seconds} s ago` : "reconnecting";
    if (chip.textContent !== text) chip.textContent = text;
  };
  chip.hidden = false;
  pause.hidden = false;
  setInterval(show, 1000);

  // Content that the user has typed, opened or chosen is not replaced.
  document.addEventListener("input", (event) => { event.target.dataset.dirty = "yes"; });
  const defaults = window.Idiomorph.defaults;
  defaults.restoreFocus = true;
  defaults.callbacks.beforeAttributeUpdated = (name, node) =>
    !(name === "open" && node.nodeName === "DETAILS");
  // The notice of the last action stays for some seconds, also across updates.
  const opened = Date.now();
  defaults.callbacks.beforeNodeRemoved = (node) => node.id !== "said" || Date.now() - opened > 10000;
  defaults.callbacks.beforeNodeMorphed = (node) => !(node.dataset && node.dataset.dirty);

  // The end of a growing output stays in view, unless the reader has scrolled away from it.
  let following = true;
  const follow = () => {
    const log = document.querySelector("#output pre.log");
    if (log && following) log.scrollTop = log.scrollHeight;
  };
  const look = () => {
    const log = document.querySelector("pre[data-follow]");
    following = !log || log.scrollTop + log.clientHeight > log.scrollHeight - 40;
  };
  if (document.querySelector("pre[data-follow]")) follow();

  let waiting = null;
  let said = "";
  let saidAt = 0;
  const speak = () => {
    waiting = null;
    const main = document.getElementById("main");
    const text = main ? main.dataset.announce : "";
    if (text && text !== said) {
      said = text;
      saidAt = Date.now();
      spoken.textContent = text;
    }
  };
  said = document.getElementById("main").dataset.announce;

  // Relative times become stale without updates: such a page reloads itself once a minute.
  let asked = Date.now();
  const heard = () => {
    last = Date.now();
    show();
    const hint = document.getElementById("main").dataset.hint;
    if (last - asked < 60000 || paused || hint || document.hidden) return;
    window.htmx.trigger("#pull", "sse:changed");
  };
  document.body.addEventListener("htmx:sseOpen", (event) => {
    connected = true;
    event.detail.source.addEventListener("beat", heard);
    heard();
  });
  document.body.addEventListener("htmx:sseError", () => { connected = false; show(); });
  document.body.addEventListener("htmx:sseClose", () => { connected = false; show(); });
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id !== "pull") return;
    const hint = document.getElementById("main").dataset.hint;
    if (hint) document.getElementById("newer").hidden = false;
    if (paused || hint) { missed = true; event.preventDefault(); } else asked = Date.now();
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    // An error page does not replace the content.
    if (event.detail.xhr && event.detail.xhr.status !== 200) event.detail.shouldSwap = false;
    look();
  });
  document.body.addEventListener("htmx:afterSettle", () => {
    last = Date.now();
    follow();
    show();
    if (!waiting) waiting = setTimeout(speak, Math.max(0, saidAt + 5000 - Date.now()));
  });
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume updates" : "Pause updates";
    if (!paused && missed) {
      missed = false;
      window.htmx.ajax("GET", document.getElementById("pull").getAttribute("hx-get"),
        { source: "#pull", target: "#main", swap: "morph:outerHTML", select: "#main" });
    }
    show();
  });
})();
