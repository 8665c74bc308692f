// What the pages do in the browser: parts that load later, lines to copy, the live list, approvals. No markup is made
// here: the console sends it, with everything that others wrote as text.
"use strict";

const page = document.body;
const title = page.dataset.title;

/** A part of a page that takes time to work out. */
async function load(part) {
  try {
    const response = await fetch(part.dataset.load);
    part.innerHTML = await response.text();
  } catch {
    part.textContent = "This part could not be loaded.";
  }
  part.classList.remove("loading");
}
document.querySelectorAll("[data-load]").forEach(load);

/** Buttons that copy the lines before them. */
document.querySelectorAll("button.copy").forEach((button) => {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
});
