// The console's keys and drafts. Pages work without it; nothing here decides about marks.
"use strict";
(() => {
  const form = document.getElementById("mark");
  const kept = document.getElementById("kept");
  const keys = document.getElementById("keys");
  const single = document.getElementById("single-keys");
  const OFF = "grader-console-keys-off";

  // --- drafts: kept a moment after the last change, and again until the server has it
  let waiting = 0, version = 0, sent = 0, failed = false;
  const say = (text) => { if (kept) kept.textContent = text; };
  async function keep() {
    const now = version;
    try {
      const answer = await fetch(form.dataset.draft, {
        method: "POST", body: new URLSearchParams(new FormData(form)), keepalive: true, redirect: "error",
      });
      if (answer.status >= 500) throw new Error("not kept");
      if (!answer.ok) { say("The draft is not kept: open the page again in another tab to sign in."); return; }
      sent = now;
      failed = false;
      say(`Draft kept ${(await answer.json()).kept}`);
    } catch {
      failed = true;
      say("Not kept yet: no connection. It is tried again.");
      if (now === version) waiting = setTimeout(keep, 3000);
    }
  }
  function changed() {
    version += 1;
    clearTimeout(waiting);
    waiting = setTimeout(keep, 500);
    total();
  }
  let leaving = false;
  if (form) {
    form.addEventListener("input", changed);
    form.addEventListener("submit", () => { leaving = true; clearTimeout(waiting); });
    addEventListener("beforeunload", (event) => {
      if (version === sent || leaving) return;
      clearTimeout(waiting);
      keep();
      if (failed) event.preventDefault(); // else it is on its way
    });
  }

  // --- a page that was just opened begins where the question is answered, if the mark stays beside it
  const place = document.querySelector("[data-place]");
  const [opened] = performance.getEntriesByType("navigation");
  if (place && !location.hash && opened?.type === "navigate" && matchMedia("(min-width: 60rem)").matches) {
    place.scrollIntoView();
  }

  // --- the points that the choice gives, as the server will count them
  const numberIn = (text) => Number(
    text.replace(/[٠-٩۰-۹]/g, (digit) => digit.charCodeAt(0) & 15).replace(/[,٫]/, "."),
  ) || 0; // digits of Arabic and Persian are in sixteens of their own
  function total() {
    const shown = document.getElementById("total");
    if (!form || !shown) return;
    const typed = form.elements.points.value.trim();
    const chosen = [...form.querySelectorAll("input[name=item]:checked")];
    const most = Number(form.dataset.maximum), start = Number(form.dataset.start);
    const within = (value) => Math.min(Math.max(value, 0), most);
    shown.hidden = !(typed || chosen.length);
    if (typed) { shown.textContent = `${typed} of ${most} points`; return; }
    const items = within(start + chosen.reduce((sum, one) => sum + Number(one.dataset.points), 0));
    const adjustment = numberIn(form.elements.adjustment?.value || "0");
    shown.textContent = `${Number(within(items + adjustment).toFixed(4))} of ${most} points`;
  }
  total();
  const full = document.getElementById("full");
  if (full) {
    full.hidden = false;
    full.addEventListener("click", () => { form.elements.points.value = Number(form.dataset.maximum); changed(); });
  }

  // --- the comment bank: a comment of comments.toml by its id, another one as text
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.add");
    if (!button || !form) return;
    const { remark, text } = button.dataset;
    if (remark) {
      const list = document.getElementById("remarks");
      const there = [...list.querySelectorAll("input")].find((one) => one.value === remark);
      if (there) { there.checked = true; } else {
        const item = document.createElement("li"), label = document.createElement("label");
        const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "remark", value: remark, checked: true });
        label.append(box, ` ${text}`);
        item.append(label);
        list.append(item);
      }
    } else {
      const field = form.elements.comment;
      field.value = field.value.trim() ? `${field.value.trim()}\n${text}` : text;
    }
    changed();
  });

  // --- keys
  const stored = () => { try { return localStorage.getItem(OFF) === "yes"; } catch { return false; } };
  if (single) {
    single.checked = !stored();
    single.addEventListener("change", () => {
      try { localStorage.setItem(OFF, single.checked ? "no" : "yes"); } catch { /* for this page alone */ }
    });
    const show = document.getElementById("show-keys");
    show.hidden = false;
    show.addEventListener("click", () => keys.showModal());
  }
  const focus = (id) => { const field = document.getElementById(id); field?.focus(); field?.select?.(); return Boolean(field); };
  const toggle = (box) => { if (!box) return false; box.click(); return true; };
  const deeds = {
    p: () => focus("points"), c: () => focus("comment"), b: () => focus("search"), "/": () => focus("pdf-search"),
    f: () => toggle(full),
    s: () => { const skip = document.getElementById("skip"); skip?.requestSubmit(); return Boolean(skip); },
    "?": () => { keys.showModal(); return true; },
  };
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      if (form && !event.repeat) { event.preventDefault(); form.requestSubmit(form.querySelector("button[value=next]")); }
      return;
    }
    if (event.ctrlKey || event.metaKey || keys?.open) return;
    const field = event.target.closest?.("input:not([type=checkbox]), textarea, select");
    if (event.key === "Escape" && field) { field.blur(); return; }
    if (field || event.repeat || (single && !single.checked)) return;
    const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
    const done = /^[0-9]$/.test(event.key) ? toggle(form?.querySelector(`input[data-digit="${event.key}"]`))
      : link ? (link.click(), true) : Object.hasOwn(deeds, event.key) && deeds[event.key]();
    if (done) event.preventDefault();
  });
  document.getElementById("conflict")?.scrollIntoView({ block: "nearest" });
})();
