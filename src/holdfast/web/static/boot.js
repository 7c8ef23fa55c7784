// Runs before the first paint: the theme, and the policy under which HTML and URLs of scripts are accepted.
"use strict";
(() => {
  const root = document.documentElement;
  try {
    const theme = localStorage.getItem("holdfast.theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    if (localStorage.getItem("holdfast.compact") === "on") root.classList.add("compact");
  } catch {
    // Storage is switched off: the theme is that of the system.
  }
  if (new URLSearchParams(location.search).has("wall")) root.classList.add("wall");
  root.classList.add("scripted");

  // The colour of an environment is set here, because the policy of the page allows no style attribute.
  const { accent } = document.querySelector("meta[name=holdfast]").dataset;
  if (/^#[0-9a-f]{3,8}$/i.test(accent)) root.style.setProperty("--env", accent);

  // htmx parses HTML that this server sent, so HTML passes; scripts come from this origin, and never as text.
  window.trustedTypes?.createPolicy("default", {
    createHTML: (html) => html,
    createScriptURL: (url) => {
      if (new URL(url, location.href).origin !== location.origin) throw new TypeError(`not a script of this site: ${url}`);
      return url;
    },
    createScript: () => {
      throw new TypeError("text is never run as a script");
    },
  });
})();
