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

// --- how many approvals wait: in the title, and in the header ---

function showWaiting(count) {
  document.title = `${count ? `(${count}) ` : ""}${title} · hookproxy`;
  const link = document.getElementById("waiting");
  link.hidden = !count;
  link.textContent = count === 1 ? "1 call waits for you" : `${count} calls wait for you`;
}

async function pollWaiting() {
  try {
    const response = await fetch("waiting");
    if (response.ok) showWaiting((await response.json()).waiting);
  } catch {
    // the console has ended, or is starting again: the next look will tell
  }
  setTimeout(pollWaiting, document.hidden ? 10000 : 3000); // a browser delays timers of hidden pages even more
}

// --- the live page ---

const MOST_ROWS = 200; // as many as the console sends at first
const SETTLED_SECONDS = 6; // how long an answer stays in its place, so that nothing moves under the pointer
const STILL_MS = 600; // after a change of the approvals, a press of the pointer may have been meant for another button

function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

/** Puts new rows in place of old ones, and leaves cells alone that stay the same: focus and selection stay. */
function mergeRows(body, html) {
  const rows = [...fragment(html).querySelectorAll("tr")];
  const old = new Map([...body.rows].map((row) => [row.querySelector("a").href, row]));
  rows.forEach((row, place) => {
    let kept = old.get(row.querySelector("a").href);
    if (kept) {
      old.delete(row.querySelector("a").href);
      [...row.cells].forEach((cell, number) => {
        if (kept.cells[number].innerHTML !== cell.innerHTML) kept.cells[number].innerHTML = cell.innerHTML;
      });
    } else {
      kept = row;
    }
    if (body.rows[place] !== kept) body.insertBefore(kept, body.rows[place] ?? null);
  });
  old.forEach((row) => row.remove());
}

function setHtml(element, html) {
  if (element.dataset.html !== html) {
    element.dataset.html = html;
    element.innerHTML = html;
  }
}

class Live {
  constructor() {
    this.byId = (name) => document.getElementById(name);
    this.approvals = this.byId("approvals");
    this.paused = false;
    this.late = []; // rows that came while the list was paused, the newest last
    this.lastFlight = "";
    this.changedAt = 0;
    this.prepareButtons();
    this.connect();
  }

  connect() {
    this.source?.close();
    this.source = new EventSource(`events${location.search}`);
    this.source.onopen = () => this.state("following", true);
    this.source.onmessage = (event) => this.apply(JSON.parse(event.data));
    this.source.onerror = () => {
      const ended = this.source.readyState === EventSource.CLOSED;
      this.state(ended ? "the console has ended, or was started again: open its new address" : "connecting again", false);
    };
  }

  state(text, on) {
    const element = this.byId("state");
    element.textContent = text;
    element.classList.toggle("on", on);
  }

  apply(change) {
    setHtml(this.byId("counts"), change.counts);
    setHtml(this.byId("runs"), change.runs);
    if (change.first) {
      this.byId("ended").replaceChildren();
      this.late = [];
    }
    this.late = [...this.late, ...(change.ended ?? [])].slice(-MOST_ROWS);
    this.lastFlight = change.in_flight ?? "";
    if (!this.paused) this.showRows(change.first);
    this.applyApprovals(change);
    showWaiting(change.waiting ?? 0);
  }

  showRows(first) {
    mergeRows(this.byId("in-flight"), this.lastFlight);
    const body = this.byId("ended");
    if (this.late.length) {
      const rows = [...fragment(this.late.reverse().join("")).children];
      if (!first) rows.forEach((row) => row.classList.add("new"));
      body.prepend(...rows);
      while (body.rows.length > MOST_ROWS) body.lastElementChild.remove();
      this.late = [];
    }
  }

  // --- approvals ---

  applyApprovals(change) {
    const shown = new Map([...this.approvals.children].map((article) => [article.dataset.key, article]));
    const asked = change.asked ?? [];
    if (change.first) {
      const waiting = new Set(asked.map(([key]) => key));
      shown.forEach((article, key) => {
        if (!waiting.has(key)) this.settle(article, "It no longer waits.");
      });
    }
    for (const [key, outcome] of change.settled ?? []) {
      if (shown.has(key)) this.settle(shown.get(key), outcome);
    }
    const added = asked.filter(([key]) => !shown.has(key));
    for (const [key, html, sentence] of added) {
      this.approvals.append(fragment(html));
      this.announce(sentence, key);
    }
    if (added.length) this.changedAt = performance.now();
  }

  announce(sentence, key) {
    this.byId("announcement").textContent = `${sentence}.`;
    if (document.hidden && "Notification" in window && Notification.permission === "granted") {
      const shown = new Notification("hookproxy", { body: sentence, tag: key });
      shown.onclick = () => window.focus();
    }
  }

  /** Says what became of an approval in its place, and removes it later: what is below it must not move at once. */
  settle(article, outcome) {
    if (article.classList.contains("settled")) return;
    const hadFocus = article.contains(document.activeElement);
    article.classList.add("settled");
    article.querySelectorAll("form, details").forEach((part) => (part.hidden = true));
    article.querySelector("output").textContent = `${outcome}.`;
    this.changedAt = performance.now();
    setTimeout(() => {
      if (!article.isConnected) return;
      article.remove();
      this.changedAt = performance.now();
    }, SETTLED_SECONDS * 1000);
    if (hadFocus) (this.approvals.querySelector(".approval:not(.settled) button") ?? this.byId("main"))?.focus();
  }

  async answer(form, submitter) {
    const article = form.closest(".approval");
    const members = new URLSearchParams(new FormData(form, submitter));
    const buttons = article.querySelectorAll("button");
    buttons.forEach((button) => (button.disabled = true));
    try {
      const response = await fetch("answer", { method: "POST", body: members, headers: { Accept: "application/json" } });
      const outcome = await response.json();
      if (outcome.over) return this.settle(article, outcome.text);
      article.querySelector("output").textContent = outcome.text;
    } catch {
      article.querySelector("output").textContent = "The answer did not reach the console: try again.";
    }
    buttons.forEach((button) => (button.disabled = false));
  }

  // --- buttons and fields ---

  prepareButtons() {
    this.approvals.addEventListener(
      "click",
      (event) => {
        if (!event.target.closest("button") || event.detail === 0) return; // 0: from the keyboard
        if (performance.now() - this.changedAt > STILL_MS) return;
        event.preventDefault();
        event.target.closest(".approval").querySelector("output").textContent = "The page has just changed: press again.";
      },
      true,
    );
    this.approvals.addEventListener("submit", (event) => {
      event.preventDefault();
      this.answer(event.target, event.submitter);
    });
    const pause = this.byId("pause");
    pause.addEventListener("click", () => {
      this.paused = !this.paused;
      pause.setAttribute("aria-pressed", String(this.paused));
      pause.textContent = this.paused ? "Go on" : "Pause";
      if (!this.paused) this.showRows(false);
    });
    const notify = this.byId("notify");
    notify.hidden = !("Notification" in window) || Notification.permission !== "default";
    notify.addEventListener("click", async () => {
      await Notification.requestPermission();
      notify.hidden = true;
    });
    const form = document.querySelector("form[data-follows]");
    let timer = 0;
    const follow = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        const set = [...new FormData(form)].filter(([, value]) => value);
        history.replaceState(null, "", set.length ? `?${new URLSearchParams(set)}` : location.pathname);
        this.connect();
      }, 250);
    };
    form.addEventListener("input", follow);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      follow();
    });
  }
}

if (page.dataset.live) {
  new Live();
} else {
  pollWaiting();
}
