// The page of a topic: messages that end while it is open, the delay that was used last, and a new id for each message.

const MOST = 100;

const stored = (storage, key, fallback) => {
  try {
    return JSON.parse(storage.getItem(key)) ?? fallback;
  } catch {
    return fallback; // storage is disabled, or holds something else
  }
};
const store = (storage, key, value) => {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // It is then kept by this page only.
  }
};

/** Follow the messages of the page, with the tools of app.js. */
export function start({ element, icon, page }) {
  const list = document.getElementById("finished");
  const storageKey = `holdfast.finished.${list.dataset.topic}`;
  const ahead = Number(page.now) ? Number(page.now) - Date.now() : 0; // ms by which the store's clock is ahead of this one
  const cancelled = new Set(); // ids that this page cancelled
  const hurried = new Set(); // ids that this page made ready before their time
  const reported = new Map(); // the state of messages by id, as the live stream reported it; pages that poll compare their rows instead

  // The list of ended messages.

  let finished = stored(sessionStorage, storageKey, []);
  const empty = list.nextElementSibling;

  function show() {
    const lines = finished.map(({ id, status }) => {
      const color = status === "completed" ? "complete" : "failed";
      const dot = element("span", { class: `dot c-${color}` }, icon(color));
      const close = element("button", { type: "button", class: "btn sm plain bare", "aria-label": `Remove ${id} from this list`, title: "Remove from this list" }, icon("failed"));
      close.addEventListener("click", () => update(finished.filter((one) => one.id !== id)));
      return element("li", {}, dot, element("div", {}, element("b", { class: "mono" }, id), element("p", {}, status)), close);
    });
    list.replaceChildren(...lines);
    empty.hidden = lines.length > 0;
  }

  function update(now) {
    finished = now.slice(0, MOST);
    store(sessionStorage, storageKey, finished);
    show();
  }

  function add(lines) {
    const ids = new Set(lines.map(({ id }) => id));
    if (ids.size) update([...lines, ...finished.filter((one) => !ids.has(one.id))]);
  }

  /** When each message that the page shows is ready, by its id; 0 for one that is ready or reserved. */
  const present = () => {
    const rows = [...document.querySelectorAll("tr[data-message]:not(.gone), tr[data-reserved]:not(.gone)")];
    return new Map(rows.map((row) => [row.dataset.message ?? row.dataset.reserved, row.dataset.message ? Number(row.querySelector("time")?.dataset.ms ?? 0) : 0]));
  };

  /** Whether the page shows all messages: otherwise one that left it may only be on another page. */
  const isWhole = () => !document.querySelector("#messages a[rel=next], #messages .none.more") && !new URLSearchParams(location.search).has("after");

  let known = present();
  let wasWhole = isWhole();

  /** Whether a message that left was cancelled: on this page, or elsewhere, because it left before its time and was not made ready here. */
  const isCancelled = (id) => cancelled.has(id) || (!hurried.has(id) && known.get(id) > Date.now() + ahead + 1000);

  function look() {
    const now = present();
    const left = [...known.keys()].filter((id) => !now.has(id) && (cancelled.has(id) || (wasWhole && isWhole())));
    add(left.filter((id) => !reported.has(id)).map((id) => ({ id, status: isCancelled(id) ? "cancelled" : "completed" })));
    left.forEach((id) => cancelled.delete(id));
    [known, wasWhole] = [now, isWhole()];
  }

  document.addEventListener("holdfast:messages", ({ detail: { topic, ids, status } }) => {
    if (topic !== list.dataset.topic) return;
    if (reported.size > 10 * MOST) reported.clear();
    for (const id of ids) status === "scheduled" ? reported.delete(id) : reported.set(id, status);
    if (status !== "scheduled") add(ids.map((id) => ({ id, status })));
  });
  document.addEventListener("submit", ({ target, submitter }) => {
    const action = submitter?.getAttribute("formaction") ?? target.getAttribute("action") ?? "";
    const ids = new FormData(target).getAll("id");
    if (action.endsWith("/act/topics/cancel")) for (const id of ids) cancelled.add(id);
    if (action.endsWith("/act/topics/deliver")) for (const id of ids) hurried.add(id);
  });
  document.addEventListener("htmx:after:swap", look);
  new MutationObserver(look).observe(document.querySelector("main"), { subtree: true, childList: true, attributeFilter: ["class"] });
  show();

  // The form.

  const form = document.querySelector("[data-topic-form]");
  if (form) {
    const { id, delay } = form.elements;
    delay.value = stored(localStorage, "holdfast.delay", delay.value);
    delay.addEventListener("change", () => store(localStorage, "holdfast.delay", delay.value));
    document.addEventListener("htmx:finally:request", ({ detail }) => {
      if (detail.ctx.sourceElement !== form || !detail.ctx.hx?.trigger?.includes("hf:done")) return;
      id.value = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    });
  }
}
