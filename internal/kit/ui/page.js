// Counts down the time left and updates the page. The pages also work without it and
// are then reloaded by hand.
"use strict";
(() => {
  const skew = Date.now() - Date.parse(document.body.dataset.now);
  const two = (n) => String(n).padStart(2, "0");
  const tick = () => {
    for (const el of document.querySelectorAll("time[data-until]")) {
      const left = Math.round((Date.parse(el.dateTime) - Date.now() + skew) / 1000);
      let text = "expired";
      if (left >= 3600) text = Math.floor(left / 3600) + " h " + two(Math.floor(left / 60) % 60) + " min left";
      else if (left >= 60) text = Math.floor(left / 60) + " min " + two(left % 60) + " s left";
      else if (left > 0) text = left + " s left";
      if (el.textContent !== text) el.textContent = text;
      el.classList.toggle("soon", left < 60);
    }
  };
  tick();
  setInterval(tick, 1000);

  // Times are shown in the time zone and format of the reader; the title holds UTC.
  const zone = (root) => {
    for (const el of root.querySelectorAll("time:not([data-until])")) {
      const at = new Date(el.dateTime);
      if (el.title || Number.isNaN(at.getTime())) continue;
      el.title = el.textContent;
      el.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    }
  };
  zone(document);

  const live = document.body.dataset.live;
  if (!live) return;
  const updates = document.getElementById("updates");
  let paused = false;
  const main = document.getElementById("main");

  // load fetches the current version of this page, or null.
  const load = async () => {
    const answer = await fetch(location.pathname + location.search, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.redirected) location.reload();
    if (!answer.ok || answer.redirected || paused) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  };
  // A press and its release make a click only if both hit the same element, so the list
  // does not change between them. The click follows "pointerup".
  let pressed = false, released = () => {};
  addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const over of ["pointerup", "pointercancel"]) addEventListener(over, () => setTimeout(() => { pressed = false; released(); }), true);
  const release = () => pressed ? new Promise((done) => { released = done; }) : null;

  let quiet = 0;
  const list = async () => {
    const fresh = await load();
    if (!fresh) return;
    await release();
    // The focus and the selection survive the update.
    const name = (el) => el.getAttribute("href") || el.value || el.tagName;
    const at = document.activeElement && main.contains(document.activeElement) ? name(document.activeElement) : null;
    const selected = new Set([...main.querySelectorAll("input:checked")].map((el) => el.value));
    const before = main.querySelectorAll(".request").length;
    main.replaceChildren(...fresh.childNodes);
    tick();
    zone(main);
    for (const el of main.querySelectorAll("input[type=checkbox]")) el.checked = selected.has(el.value);
    if (at) for (const el of main.querySelectorAll("a, input, button")) if (name(el) === at) { el.focus(); break; }
    const after = main.querySelectorAll(".request").length;
    if (after !== before) {
      updates.textContent = after + (after === 1 ? " call is pending" : " calls are pending");
      clearTimeout(quiet);
      quiet = setTimeout(() => { updates.textContent = ""; }, 10000);
    }
  };
  // A page with a form never changes while somebody may be filling it in.
  const page = async () => {
    const fresh = await load();
    const state = (root) => [...root.querySelectorAll("[data-watch]")].map((el) => el.dataset.watch || el.textContent).join("|");
    if (fresh) zone(fresh);
    if (!fresh || state(fresh) === state(main)) return;
    updates.textContent = "This request has changed. ";
    const again = document.createElement("a");
    again.href = location.pathname + location.search;
    again.textContent = "Reload";
    updates.append(again);
  };
  // Parts of a page are replaced one by one, so that what is typed elsewhere stays. What
  // somebody opened in a part stays open, and the focus where it is.
  const parts = async () => {
    const fresh = await load();
    if (!fresh) return;
    await release();
    // What somebody opened or closed is no change.
    const content = (root) => {
      const copy = root.cloneNode(true);
      for (const d of copy.querySelectorAll("details")) d.removeAttribute("open");
      return copy.innerHTML;
    };
    const key = (d, i) => d.id || i;
    for (const el of fresh.querySelectorAll("[data-part]")) {
      const old = main.querySelector(`[data-part="${CSS.escape(el.dataset.part)}"]`);
      if (!old) continue;
      zone(el);
      if (content(old) === content(el)) continue;
      const open = new Map([...old.querySelectorAll("details")].map((d, i) => [key(d, i), d.open]));
      const name = (e) => e.getAttribute("href") || e.name || e.id || e.getAttribute("aria-label");
      const at = old.contains(document.activeElement) ? name(document.activeElement) : null;
      old.replaceChildren(...el.childNodes);
      [...old.querySelectorAll("details")].forEach((d, i) => { if (open.has(key(d, i))) d.open = open.get(key(d, i)); });
      if (at) for (const e of old.querySelectorAll("a, input, button, summary, [tabindex]")) if (name(e) === at) { e.focus({ preventScroll: true }); break; }
    }
    tick();
  };
  const refresh = { list, parts }[live] || page;
  let busy = false, again = false;
  const changed = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try { do { again = false; await refresh(); } while (again); } catch { /* the next change retries */ }
    busy = false;
  };
  let stream = null, follows = false;
  // follow opens the stream, or closes it: while the page is paused, and, as parts change all
  // the time, while nobody sees them.
  const follow = () => {
    const wanted = !paused && !(live === "parts" && document.hidden);
    if (wanted === follows) return;
    follows = wanted;
    if (!wanted) { stream.close(); return; }
    stream = new EventSource(document.body.dataset.stream || "/events");
    stream.addEventListener("changed", changed);
    // Changes before the stream was open were not sent: those since the page was rendered,
    // those during a reconnect, and those of a pause.
    stream.addEventListener("open", changed);
  };
  follow();
  document.addEventListener("visibilitychange", follow);
  const pause = document.getElementById("pause");
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.textContent = paused ? "Resume updates" : "Pause updates";
      follow();
    });
  }
})();
