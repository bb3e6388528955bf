// What the console's pages do beyond the script of all pages: buttons that copy, and a form
// that writes the editor next to it while somebody types. They also work without it.
"use strict";
(() => {
  if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
        document.getElementById("updates").textContent = "Copied";
        setTimeout(() => { document.getElementById("updates").textContent = ""; }, 2000);
      });
    }
  }

  // A second click would send the form again, and that answer would replace the page with the secret.
  for (const once of document.querySelectorAll("form[data-once]")) {
    let sent = -Infinity;
    once.addEventListener("submit", (event) => {
      if (performance.now() - sent < 30000) event.preventDefault();
      else sent = performance.now();
    });
    addEventListener("pageshow", (event) => { if (event.persisted) sent = -Infinity; }); // after the back button
  }

  const form = document.querySelector("form[data-compose]");
  const editor = form && form.querySelector("#arguments");
  const faults = form && form.querySelector("#faults");
  if (!form || !form.querySelector(".try-fields [name^='f.']")) return;
  // The server makes the JSON, so that it is the same with and without this script.
  // dirty says that the form has something that is not in the editor yet.
  let timer = 0, asked = 0, dirty = false;
  // failed says that the editor does not have what the form has.
  const failed = (status) => {
    let why = "The server cannot be reached.";
    if (status === 401) why = "Your session has ended: sign in in another tab.";
    else if (status === 403) why = "This page is of another session: copy what you need, and reload it.";
    else if (status) why = "The server answers with status " + status + ".";
    faults.textContent = "The JSON could not be updated from the form. " + why;
    faults.hidden = false;
  };
  const compose = async () => {
    const n = ++asked;
    const body = new URLSearchParams(new FormData(form));
    body.set("do", "compose");
    const answer = await fetch(form.getAttribute("action").split("#")[0], { method: "POST", credentials: "same-origin", headers: { "X-Callyard-Part": "arguments" }, body }).catch(() => ({ ok: false }));
    if (!answer.ok) {
      if (n === asked) failed(answer.status);
      throw new Error(answer.statusText);
    }
    const made = await answer.json();
    if (n !== asked) return;
    dirty = false;
    editor.value = made.arguments;
    faults.textContent = made.faults.join(" ");
    faults.hidden = made.faults.length === 0;
  };
  form.addEventListener("input", (event) => {
    if (event.target === editor) { // what is written there stands
      clearTimeout(timer);
      asked++;
      dirty = false;
    }
    if (!event.target.name || !event.target.name.startsWith("f.")) return;
    clearTimeout(timer);
    asked++;
    dirty = true;
    timer = setTimeout(() => compose().catch(() => {}), 150);
  });
  // What was typed last is in the editor before the form is sent, or nothing is sent.
  form.addEventListener("submit", (event) => {
    if (!dirty || !event.submitter || event.submitter.value !== "run") return;
    event.preventDefault();
    clearTimeout(timer);
    compose().then(() => { if (!dirty) form.requestSubmit(event.submitter); }).catch(() => { faults.textContent += " Nothing was sent."; });
  });
  for (const select of form.querySelectorAll(".variant select")) {
    select.addEventListener("change", () => { clearTimeout(timer); form.requestSubmit(select.parentElement.querySelector("[data-rebuild]")); });
  }
})();
