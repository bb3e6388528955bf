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

  // Times are shown in the time zone and format of the reader; the title holds UTC. Fields of times
  // are filled in in that zone too; the server writes and reads them in UTC.
  const inUTC = (at, like) => Number.isNaN(at.getTime()) ? like : at.toISOString().slice(0, like.length);
  const zone = (root) => {
    for (const el of root.querySelectorAll("[data-zone]")) el.textContent = "(local time)";
    for (const el of root.querySelectorAll("input[type=datetime-local]:not([data-local])")) {
      const at = new Date(el.defaultValue + "Z");
      if (el.defaultValue) el.defaultValue = inUTC(new Date(at - at.getTimezoneOffset() * 60000), el.defaultValue);
      el.dataset.local = "";
    }
    for (const el of root.querySelectorAll("time:not([data-until])")) {
      const at = new Date(el.dateTime);
      if (el.title || Number.isNaN(at.getTime())) continue;
      el.title = el.textContent;
      el.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    }
  };
  zone(document);
  addEventListener("formdata", (event) => {
    for (const el of event.target.querySelectorAll("input[type=datetime-local]")) {
      if (el.value) event.formData.set(el.name, inUTC(new Date(el.value), el.value));
    }
  });

  // A page that says what came of a form is read from there on.
  const said = document.querySelector("main .notice:is([role=alert], [role=status])");
  if (said && !location.hash) {
    said.tabIndex = -1;
    said.focus();
  }

  const live = document.body.dataset.live;
  if (!live) return;
  const updates = document.getElementById("updates"), stale = document.getElementById("stale");
  const main = document.getElementById("main");
  // The answer to a form has the address of the form, which cannot be loaded: it names its page.
  const here = document.body.dataset.self || location.pathname + location.search;
  let paused = false;

  const filled = (el) => {
    if (el.type === "checkbox" || el.type === "radio") return el.checked !== el.defaultChecked;
    if (el.tagName === "SELECT") return el.selectedIndex !== Math.max(0, [...el.options].findIndex((o) => o.defaultSelected));
    return el.type !== "hidden" && el.value !== el.defaultValue;
  };

  // What is not up to date must not look as if it were. outdated says so until an update succeeds,
  // and tries again.
  let asOf = new Date(), retry = 0;
  const outdated = (text, label, to) => {
    const note = text + " This page is as of " + asOf.toLocaleTimeString() + ".";
    if (stale.firstChild?.nodeValue !== note) stale.replaceChildren(note);
    if (!to || stale.querySelector("a")) return;
    const link = document.createElement("a");
    Object.assign(link, { href: to, textContent: label, target: "_blank" });
    stale.append(" ", link);
  };
  const later = () => { clearTimeout(retry); retry = setTimeout(() => { follow(); changed(); }, 5000); };
  // moved is called when the page leads elsewhere: to the sign-in, or to where the console asks for a key.
  // What somebody filled in is not lost by following it at once.
  const moved = (to) => {
    if (![...main.querySelectorAll("input, select, textarea")].some(filled)) { location.assign(here); return; }
    const at = new URL(to, location.href);
    if (at.pathname === "/sign-in") outdated("Your session has ended. What you entered is still here.", "Sign in in a new tab", at.href);
    else outdated("The console needs your API key again. What you entered is still here.", "Enter it in a new tab", at.href);
    later();
  };
  // load fetches the current version of this page, or null.
  const load = async () => {
    if (paused) return null;
    try {
      const answer = await fetch(here, { credentials: "same-origin", headers: { Accept: "text/html" } });
      if (answer.redirected) { moved(answer.url); return null; }
      if (!answer.ok) throw new Error("status " + answer.status);
      const text = await answer.text();
      asOf = new Date();
      if (stale.firstChild) stale.replaceChildren();
      return paused ? null : new DOMParser().parseFromString(text, "text/html").getElementById("main");
    } catch (fault) {
      outdated(fault instanceof TypeError ? "The server cannot be reached." : "The page could not be updated: " + fault.message + ".");
      later();
      return null;
    }
  };
  // A press and its release make a click only if both hit the same element, so the list
  // does not change between them. The click follows "pointerup".
  let pressed = false, released = () => {};
  addEventListener("pointerdown", () => { pressed = true; }, true);
  for (const over of ["pointerup", "pointercancel"]) addEventListener(over, () => setTimeout(() => { pressed = false; released(); }), true);
  const release = () => pressed ? new Promise((done) => { released = done; }) : null;

  // key tells which child of the page is which child of a newer version: a row by what it leads to, and a
  // button by what it does. A focused button that became another one would do that at the next press.
  const key = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.nodeName;
    const of = (name) => node.getAttribute(name) || ""; // a form has its fields as properties
    const row = node.matches("li, tr") ? node.querySelector("a[href]")?.getAttribute("href") || "" : "";
    const act = node.matches("form") ? node.querySelector("button")?.value || "" : "";
    const one = node.matches("input[type=checkbox], input[type=radio], button") ? of("value") : act;
    return [node.nodeName, of("id"), of("href"), of("action"), of("name"), of("aria-labelledby"), row, one].join(" ");
  };
  // become makes an element what it is in a newer version. Elements that are in both stay, and with them the
  // focus, what is selected, filled in, opened and scrolled to.
  const become = (have, want) => {
    if (have.nodeType !== Node.ELEMENT_NODE) {
      if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
      return;
    }
    if (have.nodeName === "NOSCRIPT" || have.isEqualNode(want)) return;
    // What somebody opened stays open. A form that is sent twice is one request: its page's "once" stays.
    const own = (name) => name === "open" || name === "value" && have.name === "once" || name === "tabindex" && have === document.activeElement;
    for (const { name, value } of want.attributes) if (!own(name) && have.getAttribute(name) !== value) have.setAttribute(name, value);
    for (const { name } of [...have.attributes]) if (!own(name) && !want.hasAttribute(name)) have.removeAttribute(name);
    children(have, want);
  };
  const children = (have, want) => {
    const kept = new Map();
    for (const node of have.childNodes) kept.set(key(node), [...kept.get(key(node)) || [], node]);
    const pairs = [...want.childNodes].map((node) => [node, kept.get(key(node))?.shift()]);
    for (const rest of kept.values()) for (const node of rest) node.remove();
    let at = have.firstChild;
    for (const [node, old] of pairs) {
      if (!old) { have.insertBefore(node, at); continue; }
      // Texts between elements are moved rather than elements, which keep more.
      while (at && at !== old && at.nodeType !== Node.ELEMENT_NODE) {
        const next = at.nextSibling;
        have.append(at);
        at = next || at;
      }
      if (old === at) at = at.nextSibling; else have.insertBefore(old, at);
      become(old, node);
    }
  };
  // heirs returns what can take the focus when the element that has it goes: a neighbor of its row, or what both are in. None
  // of them does anything when somebody presses a key that was meant for the element.
  const heirs = (of) => {
    const row = of.closest("li, tr") || of, all = [];
    for (let next = row.nextElementSibling; next; next = next.nextElementSibling) all.push(next);
    for (let before = row.previousElementSibling; before; before = before.previousElementSibling) all.push(before);
    for (let above = row.parentElement; above; above = above.parentElement) all.push(above);
    return all;
  };
  const show = (old, fresh) => {
    zone(fresh);
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const others = focused ? heirs(focused) : [];
    children(old, fresh);
    if (!focused || focused === document.activeElement) return;
    const to = focused.isConnected ? focused : others.find((el) => el.isConnected); // a row that moved has lost it
    if (to.tabIndex < 0 && !to.hasAttribute("tabindex")) {
      to.tabIndex = -1;
      to.addEventListener("blur", () => to.removeAttribute("tabindex"), { once: true });
    }
    to.focus({ preventScroll: true });
  };

  let quiet = 0;
  const list = async () => {
    const fresh = await load();
    if (!fresh) return;
    await release();
    const before = main.querySelectorAll(".request").length;
    show(main, fresh);
    tick();
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
    again.href = here;
    again.textContent = "Reload";
    updates.append(again);
  };
  // Parts of a page are replaced one by one, so that what is typed elsewhere stays.
  const parts = async () => {
    const fresh = await load();
    if (!fresh) return;
    await release();
    for (const el of fresh.querySelectorAll("[data-part]")) {
      const old = main.querySelector(`[data-part="${CSS.escape(el.dataset.part)}"]`);
      if (old) show(old, el);
    }
    tick();
  };
  const refresh = { list, parts }[live] || page;
  let busy = false, again = false;
  const changed = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try { do { again = false; await refresh(); } while (again); } finally { busy = false; }
  };
  let stream = null, follows = false, failures = 0;
  // follow opens the stream, or closes it: while the page is paused, and while nobody sees it. Over
  // HTTP/1.1 a browser has six connections to a host. With a stream each, six tabs in the
  // background would keep all other pages from loading.
  const follow = () => {
    const wanted = !paused && !document.hidden;
    if (wanted === follows) return;
    follows = wanted;
    if (!wanted) { stream.close(); return; }
    stream = new EventSource(document.body.dataset.stream || "/events");
    stream.addEventListener("changed", changed);
    // Changes before the stream was open were not sent: those since the page was rendered,
    // those during a reconnect, and those of a pause.
    stream.addEventListener("open", () => { failures = 0; changed(); });
    stream.addEventListener("error", () => {
      if (stream.readyState !== EventSource.CLOSED) { // streams end now and then, and the browser opens them again
        if (++failures > 1) outdated("The server cannot be reached.");
        return;
      }
      // The stream is refused, and the browser gives up: the page asks by itself. It is told why, or is up to date.
      follows = false;
      changed();
      later();
    });
  };
  follow();
  document.addEventListener("visibilitychange", follow);
  addEventListener("offline", () => outdated("This device is offline."));
  addEventListener("online", changed);
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
