// Gives the page the colours that the system asks for. It runs before Elements, which
// takes them from the document. Then it adds what Elements leaves out for those who do not
// see the page: levels of headings, names of buttons, and a way to scroll with the keyboard.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");

function theme() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}
theme();
dark.addEventListener("change", theme);

const named = (e) => e.textContent.trim() !== "" || e.hasAttribute("aria-label") || e.hasAttribute("aria-labelledby") || e.title !== "";

function complete() {
  for (const heading of document.querySelectorAll("[role=heading]:not([aria-level])")) {
    heading.setAttribute("aria-level", "3");
  }
  for (const box of document.querySelectorAll(".sl-code-viewer__scroller:not([tabindex])")) {
    box.tabIndex = 0;
  }
  for (const button of document.querySelectorAll("button, [role=button]")) {
    if (!named(button)) {
      button.setAttribute("aria-label", button.tagName === "BUTTON" ? "Copy" : "Show or hide members");
    }
  }
  for (const area of document.querySelectorAll("textarea:not([aria-label])")) {
    area.setAttribute("aria-label", "Body of the request");
  }
  for (const tab of document.querySelectorAll("[role=tab][aria-controls]")) {
    if (document.getElementById(tab.getAttribute("aria-controls")) === null) {
      tab.removeAttribute("aria-controls");
    }
  }
}

new MutationObserver(complete).observe(document, { childList: true, subtree: true });
