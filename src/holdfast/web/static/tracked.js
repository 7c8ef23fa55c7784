// The page of tracked jobs: notifications of the browser when one changes its state, once the user has enabled them.

const MOST = 5; // notifications at once
const PAUSE = 2000; // between two looks

const icons = { failed: "✕", complete: "✓" };
const shown = (text, most = 80) => String(text).slice(0, most).replace(/\p{C}/gu, "?");
const short = (jid) => (/^[0-9a-f]{32}$/.test(jid) ? jid.slice(-8) : shown(jid, 24));

export function start({ choices, page }) {
  const button = document.querySelector("[data-notify]");
  const root = document.documentElement;
  if (!button || !isSecureContext || !("Notification" in window) || page.live === "off") return;

  let known = null; // the state of each tracked job at the last look
  let timer = 0;
  const isOn = () => choices.get("notify") === "on" && Notification.permission === "granted";

  function show(title, body, tag) {
    try {
      const made = new Notification(title, { body, tag, icon: page.icon });
      made.onclick = () => (window.focus(), made.close());
    } catch {
      button.hidden = true; // a browser that has them for service workers only
    }
  }

  async function look() {
    timer = 0;
    if (!isOn()) return;
    try {
      const response = await fetch(button.dataset.notify, { signal: AbortSignal.timeout(10_000) });
      if (!response.ok) return;
      const { found } = await response.json();
      compare(new Map(found.rows.map(({ job }) => [job.jid, job])));
    } catch {
      // The next change looks again.
    }
  }

  function compare(jobs) {
    const changed = [...jobs.values()].filter((job) => known?.has(job.jid) && known.get(job.jid) !== job.state);
    known = new Map([...jobs].map(([jid, { state }]) => [jid, state]));
    for (const job of changed.slice(0, MOST)) {
      const about = [job.klass, job.queue, job.group].filter(Boolean).map((text) => shown(text));
      show(`${icons[job.state] ?? "▸"} ${short(job.jid)} ${job.state}`, about.join(" · "), `${shown(job.jid)} ${job.state}`);
    }
    if (changed.length > MOST) show(`${changed.length - MOST} more tracked ${changed.length - MOST === 1 ? "job" : "jobs"} changed state`, "", "more");
  }

  const soon = () => (timer ||= setTimeout(look, known ? PAUSE : 0));

  function update() {
    button.setAttribute("aria-pressed", String(isOn()));
    button.classList.toggle("main", isOn());
    button.disabled = Notification.permission === "denied";
    button.title = button.disabled ? "This browser does not allow notifications of this site" : "Show a notification when a tracked job changes its state";
    root.toggleAttribute("data-awake", isOn()); // a page in the background then stays live
    if (document.hidden) document.dispatchEvent(new Event("visibilitychange")); // it was opened there
    if (isOn()) soon();
    else known = null;
  }

  button.addEventListener("click", async () => {
    const wants = !isOn() && (await Notification.requestPermission()) === "granted";
    choices.set("notify", wants ? "on" : "off");
    update();
  });
  document.addEventListener("holdfast:changed", () => isOn() && soon());
  button.hidden = false;
  update();
}
