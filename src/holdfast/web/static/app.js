// The script of the pages. They work without it: it adds live numbers, lists that update themselves, selection, dialogs, keys, charts.
// Whatever it keeps is in `app`. Pages configure it by attributes, which templates/_macros.html writes.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const page = $("meta[name=holdfast]").dataset;
const root = document.documentElement;

const app = {
  numbers: {}, // the latest counters, by key
  version: Number(page.version), // of the changes that the page shows
  lastMessage: 0, // when the last message of the server came
  ticked: Infinity, // when times were last written
  timers: new WeakMap(), // of regions that will load again
  offset: Number(page.now) ? Number(page.now) - Date.now() : 0, // what this clock is behind that of the store
  lastPick: null,
  row: null,
  prefix: 0, // until when the key `g` counts
};

const choices = {
  get(name, fallback = "") {
    try {
      return localStorage.getItem(`holdfast.${name}`) ?? fallback;
    } catch {
      return fallback; // storage is switched off
    }
  },
  list(name) {
    try {
      return JSON.parse(this.get(name, "[]"));
    } catch {
      return []; // the stored text is not a list
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`holdfast.${name}`, value);
    } catch {
      // It then holds for this page only.
    }
  },
};

const element = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};

const icon = (name) => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "i");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
};

// Numbers and times, as formatting.py writes them.

const THIN = "\u202f";
const UNITS = [[86_400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

const formatNumber = (value) => {
  const text = Number.isInteger(value) ? String(value) : Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
  const [whole, part] = text.replace("-", "\u2212").split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, THIN) + (part ? `.${part}` : "");
};

const twoUnits = (seconds) => {
  const left = Math.round(seconds);
  const index = UNITS.findIndex(([length]) => left >= length);
  if (index < 0) return `0${THIN}s`;
  const [length, unit] = UNITS[index];
  const [step, name] = UNITS[index + 1] ?? [0, ""];
  const second = step ? Math.floor((left % length) / step) : 0;
  return `${Math.floor(left / length)}${THIN}${unit}` + (second ? `\u00a0${second}${THIN}${name}` : "");
};

const formatDuration = (seconds) => {
  if (seconds > 0 && seconds < 0.9995) return `${Number((seconds * 1000).toFixed(seconds >= 0.01 ? 0 : 1))}${THIN}ms`;
  return seconds < 9.95 ? `${Number(seconds.toFixed(1))}${THIN}s` : twoUnits(seconds);
};

const now = () => Date.now() + app.offset;

const formatTime = (time) => {
  const seconds = (now() - Number(time.dataset.ms)) / 1000;
  if ("until" in time.dataset) return formatDuration(Math.max(Math.round(-seconds), 0));
  const text = twoUnits(Math.abs(seconds));
  if ("bare" in time.dataset) return text;
  if (Math.abs(seconds) < 0.5) return "now";
  return seconds > 0 ? `${text}\u00a0ago` : `in\u00a0${text}`;
};

const clock = (ms, parts) =>
  new Intl.DateTimeFormat("en-GB", { ...parts, hour12: false, timeZone: choices.get("utc") === "on" ? "UTC" : undefined }).format(ms);

const absolute = (ms) =>
  clock(ms, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

function tickTimes() {
  if (document.hidden) return;
  const [before, moment] = [app.ticked, now()];
  app.ticked = moment;
  for (const time of $$("time[data-ms]")) {
    const text = formatTime(time);
    if (time.textContent !== text) time.textContent = text;
    const end = Number("until" in time.dataset ? time.dataset.ms : time.dataset.stale ?? 0);
    if (end > before && end <= moment && !isPaused()) refreshAround(time);
  }
  showState();
}

/** The store publishes no event when a pause or a lease ends or a worker falls silent, so regions that show it load again at that time. */
function refreshAround(time) {
  const region = time.closest("[data-keys]");
  if (region) for (const one of regionsOf(JSON.parse(region.dataset.keys))) refresh(one, 500);
}

// Live: a stream shared by all tabs, a stream of this tab, or polling.

const receivers = {
  tick: (numbers) => {
    for (const shown of $$("[data-live]")) if (shown.dataset.live in numbers) showNumber(shown, numbers[shown.dataset.live] ?? 0);
  },
  change: ({ k, v }) => {
    app.version = v ?? app.version;
    changed(k);
  },
  op: ({ id }) => changed([`op:${id}`]),
  store: ({ away }) => setState(away ? "away" : "live"),
  resync: () => refreshAll(),
  state: ({ live }) => {
    if (live && !app.lastMessage && page.live !== "poll") catchUp();
    if (live) app.lastMessage = Date.now();
    if (live || app.lastMessage) setState(live ? "live" : "lost");
  },
};

/** The stream reports that messages of a topic came or went: topics.js shows what ended. */
for (const kind of ["message_scheduled", "message_cancelled", "message_completed"])
  receivers[kind] = (content) => document.dispatchEvent(new CustomEvent("holdfast:messages", { detail: { ...content, status: kind.slice(8) } }));

function receive(kind, content) {
  if (kind !== "state") app.lastMessage = Date.now();
  if (kind === "state" && content.live) app.numbers = {}; // all of them follow
  if (kind === "tick") keep(content); // also while the page is paused
  if (!isPaused() || kind === "state" || kind === "store") receivers[kind]?.(content);
}

/** Keep the latest numbers; those that are null belong to a queue that is gone. */
function keep(numbers) {
  Object.assign(app.numbers, numbers);
  for (const [key, value] of Object.entries(numbers)) if (value === null) delete app.numbers[key];
}

function showNumber(shown, value) {
  const text = formatNumber(value);
  if (shown.textContent === text) return;
  shown.textContent = text;
  shown.classList.toggle("n0", !value);
  shown.classList.remove("flash");
  void shown.offsetWidth; // an animation that is running begins again
  shown.classList.add("flash");
}

const isPaused = () => choices.get("live") === "off";
const WORDS = { live: "Live", lost: "Reconnecting", away: "Store unavailable", paused: "Paused" };

function setState(state) {
  if (state === "live" && ["lost", "away"].includes(app.state) && !isPaused()) recover();
  app.state = state;
  showState();
}

/** Load the regions again: reports of the meantime were missed, and an error may be over. */
const recover = () => ($("[data-again]") ? location.reload() : refreshAll());

/** Load what changed between the making of this page and the first event. */
async function catchUp() {
  try {
    const response = await fetch(`${page.stream}?once=1&v=${app.version}`, { signal: AbortSignal.timeout(10_000) });
    const { k, v } = await response.json();
    if (!isPaused()) changed(k);
    app.version = v;
  } catch {
    if (!isPaused()) refreshAll();
  }
}

function showState() {
  const chip = $("#chip");
  if (!chip) return;
  const state = isPaused() ? "paused" : (app.state ?? "lost");
  const age = state === "lost" && app.lastMessage ? ` ${twoUnits((Date.now() - app.lastMessage) / 1000)}` : "";
  if (chip.dataset.state !== state) chip.title = state === "paused" ? "Resume live updates (.)" : "Pause live updates (.)";
  chip.dataset.state = state;
  $("span", chip).textContent = WORDS[state] + age;
  chip.setAttribute("aria-label", WORDS[state]);
}

function connect() {
  if (page.live === "off") return;
  if (page.live === "poll") return void poll();
  if (window.SharedWorker) shareStream();
  else ownStream();
}

/** Whether this page wants the stream: it is visible, or it shows notifications (tracked.js). */
const isAwake = () => !document.hidden || "awake" in root.dataset;

function shareStream() {
  const worker = new SharedWorker(page.worker, { name: new URL(page.stream, location.href).href, type: "module" });
  worker.onerror = ownStream;
  worker.port.onmessage = ({ data: [kind, content] }) => receive(kind, content);
  const report = () => worker.port.postMessage(isAwake() ? "visible" : "hidden");
  document.addEventListener("visibilitychange", report);
  addEventListener("pagehide", () => worker.port.postMessage("gone"));
  addEventListener("pageshow", report);
  report();
}

async function ownStream() {
  const { Stream } = await import(page.worker);
  const stream = new Stream(page.stream, receive);
  const follow = () => (isAwake() ? stream.open() : stream.close());
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", () => stream.close());
  follow();
}

async function poll() {
  if (isAwake() && !isPaused()) {
    try {
      const response = await fetch(`${page.stream}?once=1&v=${app.version}`, { signal: AbortSignal.timeout(10_000) });
      if (!response.ok) throw new Error(response.status);
      const { tick, k, v, away } = await response.json();
      receive("state", { live: true });
      receive("tick", tick);
      changed(k);
      app.version = v;
      if (away) setState("away");
    } catch {
      setState("lost");
    }
  }
  setTimeout(poll, 5000); // after the response, so that two never overlap
}

// Regions: parts of a page that load again when something that they show has changed.

const announceChange = () => document.dispatchEvent(new Event("holdfast:changed"));

const regionsOf = (keys) => $$("[data-keys]").filter((one) => JSON.parse(one.dataset.keys).some((key) => keys.includes(key)));

function changed(keys) {
  if (keys.length) announceChange();
  for (const region of regionsOf(keys)) refresh(region);
}

function refresh(region, wait = 250 + Math.random() * 150) {
  if (app.timers.has(region)) return;
  const load = () => {
    app.timers.delete(region);
    if (!region.isConnected || document.hidden) return;
    if ($(".asks, dialog[open]", region)) refresh(region, 500); // a question stays until it is answered
    else htmx.trigger(region, "hf");
  };
  app.timers.set(region, setTimeout(load, wait));
}

function refreshAll(wait) {
  announceChange();
  for (const region of $$("[data-keys]")) refresh(region, wait);
}

/** Whether a row of the list is hovered, focused or selected: then the rows must not move. */
const isInUse = (region) =>
  !region.dataset.show && $$("[data-rows] tbody, .news", region).some((part) => part.matches(":hover") || $(":checked, :focus-visible", part));

/** Show what came without moving rows: cells change, rows that left are dimmed, new ones wait. */
function updateInPlace(region, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const row of $$("[data-rows] tbody tr[id]", region)) {
    const other = fresh.getElementById(row.id);
    row.classList.toggle("gone", !other);
    if (other) updateCells(row, other);
  }
  const added = $$("[data-rows] tbody tr[id]", fresh).filter((row) => !document.getElementById(row.id)).length;
  region.dataset.held = added;
  showNews(region, added);
}

function updateCells(row, other) {
  [...row.cells].forEach((cell, index) => {
    const from = other.cells[index];
    if (!from || cell.innerHTML === from.innerHTML || $(":focus-visible", cell) || $("[data-pick]", cell)) return;
    cell.replaceChildren(...from.childNodes);
    htmx.process(cell);
  });
}

function showNews(region, added) {
  const text = `${formatNumber(added)} new · show`;
  const shown = $(".news", region);
  if (!added) shown?.remove();
  else if (!shown) $(".tw", region).before(element("button", { type: "button", class: "news", "data-do": "show" }, text));
  else if (shown.textContent !== text) shown.textContent = text; // keep the button, which the user may be about to press
}

function releaseRows() {
  for (const region of $$("[data-held]")) {
    if (isInUse(region)) continue;
    delete region.dataset.held;
    refresh(region);
  }
}

// A newer search of this page ends its older one, also where that still runs in the server.
const PAGE = Math.random().toString(36).slice(2);
document.addEventListener("htmx:config:request", (event) => {
  event.detail.ctx.request.headers["X-Holdfast-Page"] = PAGE;
});

document.addEventListener("htmx:after:request", (event) => {
  const { ctx } = event.detail;
  const region = ctx.sourceElement;
  if (!region?.dataset?.keys) return;
  if (ctx.response.status >= 400) event.preventDefault(); // keep the present content instead of an error page
  else if (isInUse(region)) {
    event.preventDefault();
    updateInPlace(region, ctx.text);
  }
});

// Folds and menus stay open or closed, as the user has set them, when their region loads again.
htmx.registerExtension("keep-open", {
  htmx_before_morph_attr: (changing, { attrName }) => !(attrName === "open" && changing.matches("details, dialog")),
});

document.addEventListener("htmx:after:swap", () => {
  showSelection();
  prepare();
});

document.addEventListener("htmx:finally:request", (event) => {
  const header = event.detail.ctx.hx?.trigger;
  if (!header?.startsWith("{")) return;
  const keys = Object.keys(JSON.parse(header)).map((name) => name.replace(/^hf:/, ""));
  if (keys.includes("done")) closeLayers();
  if (keys.includes("config")) renewForms();
  changed(keys);
});

/** After a save, show the forms as they are now: what they had seen before would be refused. */
async function renewForms() {
  const forms = $$("form[data-dirty]");
  if (!forms.length) return;
  const { name, value } = document.activeElement;
  const fresh = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
  $$("form[data-dirty]", fresh).forEach((form, index) => {
    forms[index]?.replaceWith(form);
    htmx.process(form);
    if (name) [...form.elements].find((one) => one.name === name && one.value === value)?.focus();
  });
}

document.addEventListener("htmx:error", (event) => {
  if (event.detail?.ctx?.sourceElement?.dataset?.keys) return; // a region loads by itself, and the state of the connection is shown
  toast("The server did not respond. The change may not have been made; check, then try again.", "failed");
});

// Selection.

const picks = () => $$("[data-pick]");
const bulk = () => $(".bulk");
const isMatching = () => Boolean($("[data-query]:not(:disabled)"));

function showSelection() {
  const bar = bulk();
  if (!bar) return;
  const all = picks();
  const count = all.filter((pick) => pick.checked).length;
  if (!count) matchAll(false);
  bar.classList.toggle("open", count > 0);
  const every = $("[data-all]");
  if (every) {
    every.checked = count > 0 && count === all.length;
    every.indeterminate = count > 0 && count < all.length;
  }
  const total = Number($("[data-matching]", bar)?.dataset.matching);
  $("[data-count]", bar).textContent = isMatching() ? (total > 0 ? `All ${formatNumber(total)}` : "All that match") : formatNumber(count);
}

function matchAll(on) {
  const query = $("[data-query]");
  if (!query) return;
  query.disabled = !on;
  for (const pick of picks()) pick.disabled = on; // the query is sent in place of the jids
  const button = $("[data-matching]");
  if (button) button.hidden = on;
}

function pick(box, extend) {
  const all = picks();
  if (extend && app.lastPick?.isConnected) {
    const [from, to] = [all.indexOf(app.lastPick), all.indexOf(box)].sort((a, b) => a - b);
    all.slice(from, to + 1).forEach((one) => (one.checked = box.checked));
  }
  app.lastPick = box;
  showSelection();
}

function pickAll(on) {
  matchAll(false);
  picks().forEach((one) => (one.checked = on));
  showSelection();
  if (!on) releaseRows();
}

// Dialogs, questions, messages.

function openDialog(dialog) {
  if (!dialog || dialog.open) return;
  dialog.showModal();
  ($("[autofocus]", dialog) ?? $("input:not([type=hidden]), textarea, select, [data-close]", dialog))?.focus();
}

function closeLayers() {
  for (const dialog of $$("dialog[open]")) dialog.close();
  closeMenus();
  if (bulk()?.classList.contains("open")) pickAll(false);
}

const closeMenus = (except) => $$(".menu[open]").forEach((menu) => menu !== except && (menu.open = false));

/** Ask in a dialog, with the safe answer first and focused. */
function ask(question, label, go) {
  const yes = element("button", { type: "button", class: "btn bad" }, label);
  const no = element("button", { type: "button", class: "btn", "data-close": "", autofocus: "" }, "Change nothing");
  yes.addEventListener("click", () => {
    $("#dialog").close();
    go();
  });
  const title = element("h2", { id: "dialog-title" }, question);
  $("#dialog").replaceChildren(element("div", {}, title, element("div", { class: "acts" }, no, yes)));
}

/** Let a click on a button pass only if it was confirmed: by a second click on its changed label, or in a dialog. */
function confirmClick(event, button) {
  const question = button.dataset.confirm ?? button.form?.dataset.confirm;
  if (question === undefined || button.type !== "submit" || button.dataset.sure || isMatching()) return void delete button.dataset.sure;
  event.preventDefault();
  event.stopImmediatePropagation();
  const label = (button.textContent.trim() || button.title).replace(/…$/, "");
  if (question) return ask(question, label, () => press(button));
  askOnButton(button, label);
}

function press(button) {
  button.dataset.sure = "yes";
  button.click();
}

function askOnButton(button, label) {
  const before = [...button.childNodes];
  button.classList.add("asks");
  button.replaceChildren(`${label}?`);
  button.dataset.sure = "yes";
  setTimeout(() => {
    delete button.dataset.sure;
    button.classList.remove("asks");
    button.replaceChildren(...before);
  }, 3000);
}

function toast(text, kind = "done") {
  const close = element("button", { type: "button", class: "btn sm plain bare", "data-do": "dismiss", "aria-label": "Dismiss" }, icon("failed"));
  const state = kind === "failed" ? "failed" : "complete";
  $("#toasts").append(element("div", { class: `toast c-${state}`, "data-toast": kind }, icon(state), element("p", {}, text), close));
}

function watchToasts() {
  const toasts = $("#toasts");
  const expire = (one) => {
    if (one.matches(":hover, :focus-within")) setTimeout(expire, 1000, one);
    else one.remove();
  };
  const show = () => {
    // A popover that is shown again is above a dialog that was opened meanwhile.
    if (toasts.matches(":popover-open")) toasts.hidePopover();
    if (toasts.childElementCount) toasts.showPopover();
    for (const one of $$("[data-toast]:not([data-timed])", toasts)) {
      one.dataset.timed = "";
      if (one.dataset.toast !== "failed") setTimeout(expire, $("form", one) ? 10_000 : 6000, one); // an undo is possible for ten seconds
    }
  };
  toasts.popover = "manual";
  new MutationObserver(show).observe(toasts, { childList: true });
  show();
}

function watchDialog() {
  const dialog = $("#dialog");
  new MutationObserver(() => dialog.childElementCount && openDialog(dialog)).observe(dialog, { childList: true });
  dialog.addEventListener("close", () => dialog.replaceChildren());
}

async function copy(button) {
  const text = button.dataset.copy;
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copyByCommand(text);
    toast("Copied.");
  } catch {
    toast("The browser does not allow copying on this page.", "failed");
  }
}

/** Copy on a page without TLS, where there is no clipboard API. */
function copyByCommand(text) {
  const area = element("textarea", { class: "vh", readonly: "" }, text);
  ($("dialog[open]") ?? document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not allowed");
}

// Columns that a reader does not want to see.

const hidden = new CSSStyleSheet();

/** The columns of a list that have a name, and their numbers. Tabs whose lists have one id share the choice, by the names. */
const columnsOf = (id) =>
  [...(document.getElementById(id)?.tHead.rows[0].cells ?? [])].map((head, index) => [head.textContent.trim(), index + 1]).filter(([label]) => label);

/** Whether a column is empty in all rows, and so hidden unless the reader chose it. */
const isEmpty = (id, index) => document.getElementById(id).classList.contains(`e${index}`);

const isShown = (id, label, index) =>
  !choices.list(`columns.${id}`).includes(label) && (!isEmpty(id, index) || choices.list(`shown.${id}`).includes(label));

function hideColumns() {
  const rules = $$("[data-columns]").flatMap(({ dataset: { columns: id } }) =>
    columnsOf(id).map(([label, index]) => {
      const cells = `#${CSS.escape(id)} tr > :nth-child(${index}):not([colspan])`;
      if (!isShown(id, label, index)) return `${cells} { display: none; }`;
      return isEmpty(id, index) ? `${cells} { display: table-cell; }` : "";
    }));
  hidden.replaceSync(rules.join("\n"));
}

function fillColumnMenu(menu) {
  if ($(".pop label", menu)) return;
  const id = menu.dataset.columns;
  for (const [label, index] of columnsOf(id)) {
    const box = element("input", { type: "checkbox", "data-column": label });
    box.checked = isShown(id, label, index);
    $(".pop", menu).append(element("label", { class: "btn" }, box, label));
  }
}

function toggleColumn(box) {
  const id = box.closest("[data-columns]").dataset.columns;
  for (const [key, isIn] of [[`columns.${id}`, !box.checked], [`shown.${id}`, box.checked]]) {
    const others = choices.list(key).filter((one) => one !== box.dataset.column);
    choices.set(key, JSON.stringify(isIn ? [...others, box.dataset.column] : others));
  }
  hideColumns();
}

// Groups of rows that a reader folds.

function showFolds() {
  const folded = choices.list("folds");
  for (const button of $$("[data-fold]")) {
    const isFolded = folded.includes(button.dataset.fold);
    button.setAttribute("aria-expanded", !isFolded);
    button.closest("tbody").classList.toggle("folded", isFolded);
  }
}

function toggleFold(name) {
  const others = choices.list("folds").filter((one) => one !== name);
  choices.set("folds", JSON.stringify(others.length < choices.list("folds").length ? others : [...others, name]));
  showFolds();
}

// The finder is a module of its own, which is loaded when the user begins to type.

const home = (path) => page.home.replace(/\/$/, "") + path;
const tools = { $, $$, page, app, choices, element, icon, home, clock, formatNumber, formatDuration, openDialog, toast: (text) => toast(text), showViews: () => showViews() };
const finder = () => (app.finder ??= import(page.finder).then((module) => module.start(tools)));

async function openPalette() {
  $("#palette input").value = "";
  openDialog($("#palette")); // at once, so that it gets the next keys
  (await finder()).showPalette();
}

async function suggest({ target }) {
  if (!target.matches?.("[data-search]") || target.dataset.helped) return;
  target.dataset.helped = "yes";
  (await finder()).attach(target);
}

/** Filters that this browser keeps under names, in the navigation. */
function showViews() {
  const views = choices.list("views");
  const q = new URLSearchParams(location.search).get("q") ?? "";
  const links = views.map((one) => {
    const link = element("a", { href: home(`/jobs?q=${encodeURIComponent(one.q)}`) }, icon("search"), element("span", { class: "cut" }, one.name));
    if (one.q === q && location.pathname.endsWith("/jobs")) link.setAttribute("aria-current", "page");
    return element("li", {}, link);
  });
  $("#views").replaceChildren(...(links.length ? [element("h2", { id: "nav-views" }, "Views"), element("ul", { "aria-labelledby": "nav-views" }, ...links)] : []));
  const button = $("[data-do=view]");
  if (button) $("span", button).textContent = views.some((one) => one.q === q) ? "Remove view" : "Save view…";
}

// Keys.

const PAGES = { o: "/", q: "/queues", j: "/jobs", f: "/failed", r: "/recurring", l: "/flows", p: "/topics", w: "/workers", h: "/throttles", t: "/tracked", a: "/tags", c: "/completed" };
const VERBS = { e: "retry", m: "move", p: "priority", "#": "tag", t: "track", Delete: "cancel" };
const rows = () => $$("[data-rows] tbody tr[id]");

const KEYS = {
  "/": () => $("[data-search]").focus(),
  "?": () => openDialog($("#keys")),
  g: () => (app.prefix = Date.now() + 1500),
  j: () => moveRow(1),
  k: () => moveRow(-1),
  ArrowDown: () => app.row && moveRow(1),
  ArrowUp: () => app.row && moveRow(-1),
  o: () => $("a", app.row ?? document.createElement("p"))?.click(),
  x: () => pickRow(false),
  X: () => pickRow(true),
  a: () => pickAll(picks().some((one) => !one.checked)),
  A: () => (pickAll(true), matchAll(true), showSelection()),
  "[": () => turn("prev"),
  "]": () => turn("next"),
  ".": () => actions.live(),
  r: () => refreshAll(0),
  T: () => actions.theme(),
};

function moveRow(step) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(app.row);
  app.row?.classList.remove("at");
  app.row = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  app.row.classList.add("at");
  $("a[href]", app.row)?.focus({ preventScroll: true });
  app.row.scrollIntoView({ block: "nearest" });
}

function pickRow(extend) {
  const box = app.row && $("[data-pick]", app.row);
  if (!box) return;
  box.checked = extend || !box.checked;
  pick(box, extend);
}

function turn(direction) {
  const link = $(`a[rel=${direction}]`);
  if (link) link.click();
  else if (direction === "prev" && new URLSearchParams(location.search).has("after")) history.back();
}

/** Do something with the selection, else with the current row, else with what the page shows. */
function perform(verb) {
  if (!bulk()?.classList.contains("open")) pickRow(false);
  const button = $(`.bulk.open [data-verb=${verb}]`) ?? $(`main form.act [data-verb=${verb}]`);
  const menu = button?.closest(".menu");
  if (menu) $("summary", menu).click();
  else button?.click();
}

function onKey(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return openPalette();
  }
  if (event.key === "Escape") return escape();
  if (event.key === "Enter" && event.target.matches(".bulk .pop input")) return pressOwn(event);
  const isElsewhere = event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]") || event.target.matches("input:not([type=checkbox]), textarea, select");
  if (!isElsewhere && choices.get("keys", "on") === "on") onLetter(event);
}

function onLetter(event) {
  const { key } = event;
  if (app.prefix > Date.now() && key in PAGES) return location.assign(home(PAGES[key]));
  if (/^[1-9]$/.test(key)) return $$(".tabs a")[key - 1]?.click();
  const act = KEYS[key] ?? (key in VERBS ? () => perform(VERBS[key]) : null);
  if (!act || (key.startsWith("Arrow") && !app.row)) return;
  event.preventDefault();
  act();
}

/** The first button of a form is not the one that stands beside the field. */
function pressOwn(event) {
  event.preventDefault();
  $("button", event.target.closest(".pop")).click();
}

function escape() {
  if ($("dialog[open]")) return; // the browser closes it
  const menu = $(".menu[open]");
  if (menu) {
    menu.open = false;
    $("summary", menu).focus();
  } else if ($("[data-pick]:checked")) pickAll(false);
  else document.activeElement?.blur();
}

const redrawCharts = () => $$("hf-chart").forEach((chart) => chart.draw?.());

/** Start the module of this page, if it has one, with the tools of this script. */
async function startModule() {
  const address = $("meta[name=holdfast-module]");
  if (address) (await import(address.content)).start({ element, icon, clock, formatNumber, formatDuration, choices, page });
}

// What buttons and boxes do by their `data-do`.

const actions = {
  theme() {
    const isDark = getComputedStyle(root).colorScheme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = isDark ? "light" : "dark";
    choices.set("theme", root.dataset.theme);
    redrawCharts();
  },
  live() {
    choices.set("live", isPaused() ? "on" : "off");
    showState();
    if (isPaused()) return;
    receivers.tick(app.numbers);
    refreshAll(0);
  },
  view: async () => (await finder()).saveView(),
  clear: () => pickAll(false),
  dismiss: (button) => button.closest(".toast").remove(),
  show(button) {
    const region = button.closest("[data-keys]");
    region.dataset.show = "yes"; // for this one load; the element that replaces it has no such mark
    refresh(region, 0);
  },
};

function onClick(event) {
  const button = event.target.closest("button, summary, a, [data-pick], [data-all]");
  closeMenus(event.target.closest(".menu"));
  if (!button) return;
  const { dataset } = button;
  if (dataset.do) actions[dataset.do](button);
  if ("copy" in dataset) copy(button);
  if ("fold" in dataset) toggleFold(dataset.fold);
  if (dataset.open) openDialog(document.getElementById(dataset.open));
  if ("matching" in dataset) (matchAll(true), showSelection());
  if ("pick" in dataset) pick(button, event.shiftKey);
  if ("all" in dataset) pickAll(button.checked);
  if ("close" in dataset && button.closest("dialog")) (event.preventDefault(), button.closest("dialog").close());
}

function onChange({ target }) {
  const { choice, column } = target.dataset;
  if (column) toggleColumn(target);
  if ("go" in target.dataset) target.form.requestSubmit();
  if (!choice) return;
  choices.set(choice, target.checked ? "on" : "off");
  root.classList.toggle("compact", choices.get("compact") === "on");
  if (choice === "utc") redrawCharts();
}

/** Fields of a menu are sent only while it is open: several of one form have the same name. */
function onToggle({ target }) {
  if (!target.matches?.(".menu")) return;
  if (target.dataset.columns) fillColumnMenu(target);
  for (const field of $$(".field :is(input, select)", target)) field.disabled = !target.open;
  if (target.open) $(".field :is(input, select)", target)?.focus();
}

/** Empty fields are left out of the URLs of searches. */
function onFormData({ target, formData }) {
  if (target.method !== "get") return;
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
}

// Marks and modes.

function showUrgency() {
  const link = $("link[rel=icon]");
  const wants = $("#wants");
  if (wants) link.href = $(".c-failed", wants) ? page.urgent : page.icon;
}

/** On the wall: the overview and the queues in turn, darker at night. */
function startWall() {
  if (!root.classList.contains("wall")) return;
  const hour = new Date().getHours();
  root.classList.toggle("night", hour < 7 || hour > 21);
  const next = location.pathname === page.home ? "/queues" : "/";
  setTimeout(() => location.replace(home(`${next}?wall=1`)), 30_000);
}

/** What a page, or a part of it that was loaded, needs. */
function prepare() {
  for (const one of $$("[data-all], [data-columns], [data-choice], [data-do=view], .top button, .menu [data-open=keys]")) {
    one.hidden = false;
    one.closest("label")?.removeAttribute("hidden");
  }
  hideColumns();
  showFolds();
  showUrgency();
}

/** Bring the tab that is open into its bar, where the bar is wider than the screen. */
function showTab() {
  const tab = $(".tabs [aria-current]");
  if (tab) tab.parentElement.scrollLeft += Math.max(0, tab.getBoundingClientRect().right + 16 - tab.parentElement.getBoundingClientRect().right);
}

/** A form with times shows them in the time zone of this browser too. */
function nameZone() {
  const field = $("[data-zone]");
  if (field) field.value = choices.get("utc") === "on" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function start() {
  nameZone();
  prepare();
  showTab();
  for (const box of $$("[data-choice]")) box.checked = choices.get(box.dataset.choice, box.dataset.default ?? "off") === "on";
  document.adoptedStyleSheets.push(hidden);
  watchToasts();
  watchDialog();
  showSelection();
  showState();
  startModule();
  showViews();
  setInterval(tickTimes, 1000);
  setInterval(() => isPaused() || changed(["minute"]), 60_000);
  startWall();
  connect();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button) confirmClick(event, button);
}, true);
document.addEventListener("click", onClick);
document.addEventListener("change", onChange);
document.addEventListener("toggle", onToggle, true);
document.addEventListener("keydown", onKey);
document.addEventListener("formdata", onFormData);
document.addEventListener("pointerout", (event) => event.target.closest?.("tbody, .news") && setTimeout(releaseRows, 400));
document.addEventListener("focusout", () => setTimeout(releaseRows, 400));
document.addEventListener("pointerover", ({ target }) => target.matches?.("time[data-ms]") && (target.title = absolute(Number(target.dataset.ms))));
document.addEventListener("visibilitychange", () => !document.hidden && !isPaused() && refreshAll());
document.addEventListener("focusin", suggest);
addEventListener("pageshow", ({ persisted }) => {
  showSelection();
  if (persisted) refreshAll(0);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);

start();
