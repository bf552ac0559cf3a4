"use strict";
// All pages work without this file; with it, what changes is shown without loading a page anew.

const PAUSE_MS = 350; // after the last key, before a statement is planned

function put(place, text) {
  const focused = document.activeElement && document.activeElement.id;
  place.innerHTML = text; // the server has escaped what users named
  const again = focused && document.getElementById(focused);
  if (again && place.contains(again)) again.focus();
}

async function send(form) {
  const place = document.getElementById(form.dataset.into);
  const buttons = form.querySelectorAll("button");
  form.asked = (form.asked || 0) + 1;
  const asked = form.asked;
  const body = new URLSearchParams(new FormData(form));
  buttons.forEach((button) => (button.disabled = true));
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { "X-Fragment": "1" } });
    const text = await answer.text();
    if (asked !== form.asked) return; // somebody typed on
    put(place, text);
    const before = form.elements.before;
    if (before && !place.querySelector(".error")) before.value = form.elements.sql.value;
    find(document.querySelector("[data-search]"));
  } catch {
    if (asked === form.asked) put(place, '<div class="error" role="alert">weft ui does not answer</div>');
  } finally {
    if (asked === form.asked) {
      buttons.forEach((button) => (button.disabled = false));
      place.removeAttribute("aria-busy");
    }
  }
}

function find(field) {
  if (!field) return;
  const wanted = field.value.trim().toLowerCase();
  let found = 0;
  for (const group of document.querySelectorAll(`#${field.dataset.search} details`)) {
    let inside = 0;
    for (const row of group.querySelectorAll("tbody tr")) {
      row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      if (!row.hidden) inside += 1;
    }
    group.hidden = inside === 0;
    if (wanted && inside) group.open = true;
    found += inside;
  }
  for (const box of document.querySelectorAll("svg.graph .box")) {
    box.classList.toggle("found", wanted !== "" && box.textContent.toLowerCase().includes(wanted));
  }
  document.getElementById("found").textContent = `${found.toLocaleString("en")} window${found === 1 ? "" : "s"}`;
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.into) return;
  event.preventDefault();
  send(event.target);
});

let pause;
document.addEventListener("input", (event) => {
  if (event.target.dataset.search) return find(event.target);
  const form = event.target.form;
  if (!form || !form.dataset.typed) return;
  clearTimeout(pause);
  pause = setTimeout(() => send(form), PAUSE_MS);
});

for (const live of document.querySelectorAll("[data-live]")) {
  new EventSource(live.dataset.live).addEventListener("part", (event) => {
    const cut = event.data.indexOf("\n");
    const place = document.getElementById(event.data.slice(0, cut));
    if (place) put(place, event.data.slice(cut + 1));
  });
}
