// The page of a topic: messages that end while it is open, the delay that was used last, and a new id for each message.

const MOST = 100;

const stored = (storage, key, fallback) => {
  try {
    return JSON.parse(storage.getItem(key)) ?? fallback;
  } catch {
    return fallback; // storage is switched off, or holds something else
  }
};
const store = (storage, key, value) => {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    // It then holds for this page only.
  }
};

/** Follow the messages of the page, with the tools of app.js. */
export function start({ element, icon }) {
  const list = document.getElementById("finished");
  const storageKey = `holdfast.finished.${list.dataset.topic}`;
  const cancelled = new Set();

  // What ended.

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

  /** The ids of the messages that the page shows, queued or reserved. */
  const present = () =>
    new Set([...document.querySelectorAll("tr[data-message]:not(.gone), tr[data-reserved]:not(.gone)")].map((row) => row.dataset.message ?? row.dataset.reserved));

  /** Whether the page shows all messages: otherwise one that left it may only be on another page. */
  const isWhole = () => !document.querySelector("#messages a[rel=next], #messages .none.more") && !new URLSearchParams(location.search).has("after");

  let known = present();
  let wasWhole = isWhole();

  function look() {
    const now = present();
    const left = [...known].filter((id) => !now.has(id) && (cancelled.has(id) || (wasWhole && isWhole())));
    const lines = left.map((id) => ({ id, status: cancelled.has(id) ? "cancelled" : "completed" }));
    if (lines.length) update([...lines, ...finished.filter((one) => !left.includes(one.id))]);
    left.forEach((id) => cancelled.delete(id));
    [known, wasWhole] = [now, isWhole()];
  }

  document.addEventListener("submit", ({ target, submitter }) => {
    const action = submitter?.getAttribute("formaction") ?? target.getAttribute("action") ?? "";
    if (action.endsWith("/act/topics/cancel")) for (const id of new FormData(target).getAll("id")) cancelled.add(id);
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
