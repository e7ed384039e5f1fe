// Sets the theme before the first paint. Without a choice it is the system's.
"use strict";
(() => {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
