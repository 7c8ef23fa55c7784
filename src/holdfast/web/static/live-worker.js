// One event stream for all tabs. Browsers allow six connections to a host over HTTP/1.1, and a stream in each tab would use them
// up. Where there is no SharedWorker, a page imports `Stream` from here and has one of its own while it is visible.

const EVENTS = ["tick", "change", "op", "store", "resync", "message_scheduled", "message_cancelled", "message_completed"];
const LONGEST_WAIT = 30_000;

export class Stream {
  #source = null;
  #timer = 0;
  #failures = 0;

  /** @param {string} url  @param {(kind: string, content: object) => void} receive */
  constructor(url, receive) {
    this.url = url;
    this.receive = receive;
  }

  open() {
    if (this.#source) return;
    clearTimeout(this.#timer);
    const source = new EventSource(this.url);
    this.#source = source;
    source.onopen = () => {
      this.#failures = 0;
      this.receive("state", { live: true });
    };
    // The browser connects again by itself after a broken connection, but not after a response that is an error.
    source.onerror = () => {
      this.receive("state", { live: false });
      if (source.readyState === EventSource.CLOSED) this.#reopen(1000 * 2 ** Math.min(this.#failures++, 5));
    };
    for (const kind of EVENTS) source.addEventListener(kind, (event) => this.receive(kind, JSON.parse(event.data)));
    source.addEventListener("bye", (event) => this.#reopen(1000 * (JSON.parse(event.data).after ?? 1)));
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #reopen(wait) {
    this.close();
    const spread = 0.5 + Math.random(); // not all browsers at the same moment
    this.#timer = setTimeout(() => this.open(), Math.min(wait, LONGEST_WAIT) * spread);
  }
}

if ("onconnect" in self) {
  const ports = new Map(); // each with whether its tab is visible
  let numbers = {}; // for tabs that come later
  let last = { live: false };
  let store = { away: false };

  function keep(content) {
    Object.assign(numbers, content);
    for (const [key, value] of Object.entries(content)) if (value === null) delete numbers[key]; // a queue that is gone
  }

  const stream = new Stream(self.name, (kind, content) => {
    if (kind === "state") last = content;
    if (kind === "state" && content.live) numbers = {}; // the server sends all of them first
    if (kind === "tick") keep(content);
    if (kind === "store") store = content;
    for (const [port, isVisible] of ports) if (isVisible) port.postMessage([kind, content]);
  });

  const follow = () => ([...ports.values()].some(Boolean) ? stream.open() : stream.close());

  self.onconnect = ({ ports: [port] }) => {
    port.onmessage = ({ data: message }) => {
      if (message === "gone") ports.delete(port);
      else ports.set(port, message === "visible");
      if (message === "visible") {
        port.postMessage(["state", last]);
        port.postMessage(["tick", numbers]);
        if (store.away) port.postMessage(["store", store]);
      }
      follow();
    };
  };
}
