// The finder: the palette, suggestions for filters, saved views. app.js loads it when the user begins to type.

const MOST = 10;
const isJid = (text) => /^[0-9a-f]{8,32}$/i.test(text);
const WORD = /(?:^|[\s(])-?(?:([\w.]+)(!=|<=|>=|:~|[:~=<>]))?("(?:[^"\\]|\\.)*"?|[^\s()"]*)$/;

/** Start it with the tools of app.js; returns what app.js calls. */
export function start({ $, $$, page, app, choices, element, icon, home, openDialog, toast, showViews }) {
  // A list of choices below a field, of which the arrows mark one.

  function fill(list, entries, id) {
    list.replaceChildren(
      ...entries.map(({ label, kind, picture, go }, index) => {
        const entry = element("li", { role: "option", id: `${id}-${index}` }, icon(picture), element("span", { class: "cut" }, label), element("small", {}, kind));
        entry.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
        entry.addEventListener("click", go);
        return entry;
      }),
    );
  }

  function mark(input, list, at) {
    const entries = $$("li", list);
    entries.forEach((one, index) => one.setAttribute("aria-selected", index === at));
    input.setAttribute("aria-activedescendant", entries[at]?.id ?? "");
    entries[at]?.scrollIntoView({ block: "nearest" });
  }

  /** Follow the arrows and Enter; returns whether the key was for the list. */
  function onKey(event, input, list) {
    const entries = $$("li", list);
    const at = entries.findIndex((one) => one.ariaSelected === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && entries.length) mark(input, list, (at + step + entries.length) % entries.length);
    else if (event.key === "Enter" && at >= 0) entries[at].click();
    else return false;
    event.preventDefault();
    return true;
  }

  // The palette: pages, queues, saved views, jobs by id, and what can be done with the selection.

  const palette = { input: $("#palette input"), list: $("#palette-list") };
  const queues = () => [...new Set(Object.keys(app.numbers).filter((key) => key.startsWith("q.")).map((key) => key.slice(2, key.lastIndexOf("."))))];
  const search = (q) => location.assign(home(`/jobs?q=${encodeURIComponent(q)}`));

  function found(text) {
    const verbs = $$(".bulk.open [data-verb]").map((button) => ({ label: button.textContent.trim(), kind: "Selected jobs", picture: "jobs", go: () => (button.closest(".menu") ? $("summary", button.closest(".menu")) : button).click() }));
    const links = $$(".nav li a").map((link) => ({ label: link.firstElementChild.nextSibling.textContent.trim(), kind: link.closest("#views") ? "View" : "Page", picture: $("use", link).getAttribute("href").slice(3), go: () => link.click() }));
    const names = queues().map((label) => ({ label, kind: "Queue", picture: "queues", go: () => location.assign(home(`/queues/${encodeURIComponent(label)}`)) }));
    const all = [...verbs, ...links, ...names].filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()));
    if (isJid(text)) all.unshift({ label: text, kind: "Job", picture: "jobs", go: () => location.assign(home(`/jobs/${text}`)) });
    if (text) all.push({ label: `Search jobs for ${text}`, kind: "Search", picture: "search", go: () => search(text) });
    return all.slice(0, MOST + 2);
  }

  function showPalette() {
    const entries = found(palette.input.value.trim()).map((one) => ({ ...one, go: () => ($("#palette").close(), one.go()) }));
    fill(palette.list, entries, "palette");
    mark(palette.input, palette.list, 0);
  }

  palette.input.addEventListener("input", showPalette);
  palette.input.addEventListener("keydown", (event) => onKey(event, palette.input, palette.list));

  // Suggestions: fields, then values of the field before the colon.

  let words; // of the filter language, and the names that this namespace has
  const load = async () => (words ??= await (await fetch(page.words)).json());

  function suggested(input) {
    const before = input.value.slice(0, input.selectionStart);
    const [whole, field, , typed] = WORD.exec(before) ?? [];
    if (whole === undefined) return [];
    const part = field ? typed.split(",").pop() : typed;
    const put = (text) => () => {
      input.setRangeText(text, before.length - part.length, before.length, "end");
      input.dispatchEvent(new Event("input"));
    };
    const matches = (text) => text.toLowerCase().includes(part.toLowerCase().replace(/^"/, "")) && text !== part;
    if (!field) return words.fields.filter(({ name }) => name.startsWith(part.toLowerCase())).map(({ name, meaning, ending }) => ({ label: name + ending, kind: meaning, picture: "search", go: put(name + ending) }));
    const values = words.values[words.synonyms[field] ?? field] ?? [];
    return values.filter(matches).map((label) => ({ label, kind: field, picture: "next", go: put(`${label} `) }));
  }

  function attach(input) {
    const list = element("ul", { class: "suggest", role: "listbox", id: `suggest-${$$(".suggest").length}`, "aria-label": "Suggestions" });
    const show = async () => {
      await load();
      const entries = document.activeElement === input ? suggested(input).slice(0, MOST) : [];
      fill(list, entries, list.id);
      mark(input, list, -1);
      list.hidden = !entries.length;
      input.setAttribute("aria-expanded", !list.hidden);
    };
    const hide = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
    };
    for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": list.id, "aria-expanded": "false" })) input.setAttribute(name, value);
    list.hidden = true;
    input.parentElement.append(list);
    input.addEventListener("input", show);
    input.addEventListener("click", show);
    input.addEventListener("blur", hide);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !list.hidden) (hide(), event.stopPropagation(), event.preventDefault());
      else if (!list.hidden) onKey(event, input, list);
      else if (event.key === "ArrowDown") show();
    });
    if (input.value) return;
    show();
  }

  // Views: filters under names, which this browser keeps.

  function saveView() {
    const q = new URLSearchParams(location.search).get("q") ?? "";
    const views = choices.list("views");
    const kept = views.filter((one) => one.q !== q);
    const keep = (list) => (choices.set("views", JSON.stringify(list)), showViews());
    if (kept.length < views.length) return void (keep(kept), toast("View removed."));
    const name = element("input", { name: "name", maxlength: "40", required: "" });
    name.value = q.slice(0, 40);
    const no = element("button", { type: "button", class: "btn", "data-close": "" }, "Close");
    const acts = element("div", { class: "acts" }, no, element("button", { class: "btn main" }, "Save"));
    const form = element("form", {}, element("h2", { id: "dialog-title" }, "Save this filter as a view"), element("label", { class: "field" }, "Name", name), element("p", {}, "This browser keeps it, and shows it in the navigation."), acts);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      keep([...kept, { name: name.value.trim() || q, q }]);
      $("#dialog").close();
    });
    $("#dialog").replaceChildren(form);
    openDialog($("#dialog"));
  }

  return { attach, saveView, showPalette };
}
