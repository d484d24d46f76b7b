// Keyboard shortcuts: help, search, rows, queues and tests. None of them changes anything, and all
// of them can be turned off.
(() => {
  "use strict";
  const help = document.getElementById("keys");
  const off = document.getElementById("keys-off");
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("keys") === "off";
      localStorage.setItem("keys", value);
    } catch { /* without storage the choice holds for this page */ }
    return false;
  };
  off.checked = stored();
  off.addEventListener("change", () => stored(off.checked ? "off" : "on"));

  const links = () => [...document.querySelectorAll("main tbody tr td:nth-child(-n+2) a")];
  const step = (by) => {
    const all = links();
    if (all.length === 0) return;
    const at = all.indexOf(document.activeElement);
    all[Math.min(Math.max(at + by, 0), all.length - 1)].focus();
  };
  let leading = 0;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (off.checked || typing || help.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const after = Date.now() - leading < 1000;
    leading = 0;
    if (after && event.key === "q") location.assign("/");
    else if (after && event.key === "t") {
      const tests = document.querySelector('header nav a[href$="/flaky-tests"]');
      if (tests) location.assign(tests.href);
    } else if (event.key === "g") leading = Date.now();
    else if (event.key === "?") help.showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") {
      const search = document.querySelector('input[type="search"]');
      event.preventDefault();
      if (search) search.focus();
      else location.assign("/#search-q");
    }
  });

  const buttons = "[data-copy], [data-link]";
  const offer = () => {
    if (!navigator.clipboard) return;
    for (const button of document.querySelectorAll(buttons)) button.hidden = false;
  };
  offer();
  document.addEventListener("htmx:afterSwap", offer);
  // Copies the text before the button, or the address of the page.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(buttons);
    if (!button) return;
    const { link } = button.dataset;
    const text = link === undefined ? button.previousElementSibling.textContent : new URL(link, location.href).href;
    const done = await navigator.clipboard.writeText(text).then(() => true, () => false);
    const label = button.dataset.label ?? button.textContent;
    button.dataset.label = label;
    button.textContent = done ? "Copied" : "Could not copy";
    const spoken = document.getElementById("spoken");
    if (spoken) spoken.textContent = button.textContent;
    setTimeout(() => { button.textContent = label; }, 3000);
  });
})();
