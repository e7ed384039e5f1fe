// Keys, theme, charts, live lists and copying. The pages work without it, except for what is live.
"use strict";
(() => {
  const root = document.documentElement;

  // Theme.
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const switchTheme = () => {
    root.dataset.theme = dark() ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    document.querySelectorAll("[data-chart]").forEach(draw);
  };

  // Charts: the points come from the path in data-chart, every few seconds.
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const charts = new Map();
  const clock = (seconds) => seconds == null ? "–" : new Date(seconds * 1000).toISOString().slice(11, 19);
  const shown = (value) => value == null ? "–" : value.toLocaleString("en-US", {maximumFractionDigits: 1}).replaceAll(",", "\u202f");

  async function draw(element) {
    let points;
    try {
      const answer = await fetch(element.dataset.chart, {headers: {"HX-Request": "true"}});
      if (!answer.ok) return;
      points = await answer.json();
    } catch { return; }
    charts.get(element)?.destroy();
    charts.delete(element);
    if (points.x.length < 2) {
      element.textContent = "The chart begins with the next samples, a few seconds apart.";
      return;
    }
    element.textContent = "";
    const palette = ["--chart-1", "--chart-2", "--chart-3", "--chart-4", "--chart-5", "--chart-6"].map(colour);
    const axis = {stroke: colour("--faint"), grid: {stroke: colour("--line"), width: 1}, ticks: {show: false}, font: "11px system-ui"};
    const top = Math.max(...points.series.flatMap((line) => line.y.map((value) => value ?? 0)), 0);
    const style = getComputedStyle(element);
    charts.set(element, new uPlot({
      width: Math.max(element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight), 200),
      height: 190,
      padding: [8, 30, 0, 0], // room for half of the last time
      cursor: {points: {size: 6}},
      legend: {live: true, markers: {width: 0, fill: (plot, at) => plot.series[at].stroke(plot, at)}},
      scales: {y: {range: () => [0, top > 0 ? top * 1.1 : 1]}},
      axes: [
        {...axis, size: 26, space: 80, incrs: [1, 5, 10, 15, 30, 60, 300, 600], values: (_, values) => values.map(clock)},
        {...axis, space: 24, size: (_, values) => 16 + 7 * Math.max(...(values ?? [""]).map((value) => value.length)), values: (_, values) => values.map(shown)},
      ],
      series: [{label: "UTC", value: (_, value) => clock(value)}, ...points.series.map((line, at) => ({
        label: line.label,
        stroke: palette[at % palette.length],
        width: 1.5,
        fill: points.series.length === 1 ? colour("--chart-fill") : undefined,
        points: {show: false},
        value: (_, value) => shown(value),
      }))],
    }, [points.x, ...points.series.map((line) => line.y)], element));
  }

  const drawAll = () => { if (!document.hidden && window.uPlot) document.querySelectorAll("[data-chart]").forEach(draw); };
  addEventListener("load", drawAll);
  addEventListener("resize", drawAll);
  setInterval(drawAll, 5000);

  // Lists that grow keep their newest rows.
  document.addEventListener("htmx:sseMessage", (message) => {
    const list = message.target.closest?.("[data-keep]");
    while (list && list.children.length > Number(list.dataset.keep)) {
      list.dataset.newest === "last" ? list.firstElementChild.remove() : list.lastElementChild.remove();
    }
  });

  // Streams. A browser opens only six connections to a host, for all its tabs, so a hidden tab closes its stream. A tail
  // goes on at the id of its last event, or without one at the time at which it was hidden; a search is not repeated, so
  // it goes on while it is hidden.
  const marks = new Map();
  class Stream {
    constructor(path) {
      this.address = path;
      this.path = path;
      this.readyState = EventSource.CONNECTING;
      this.listeners = [];
      this.isTail = path.startsWith("/live/records/") && new URLSearchParams(path.split("?")[1]).has("live");
      this.pauses = this.isTail || !path.startsWith("/live/records/");
      this.look = () => this.turn();
      if (this.pauses) document.addEventListener("visibilitychange", this.look);
      this.turn();
    }
    turn() {
      if (!(this.pauses && document.hidden)) {
        if (!this.source) this.open();
      } else if (this.source) {
        this.source.close();
        this.source = null;
        if (this.isTail) {
          const [path, query] = this.path.split("?");
          const parameters = new URLSearchParams(query);
          parameters.set("from", `@${new Date().toISOString()}`);
          this.path = `${path}?${parameters}`;
        }
      }
    }
    open() {
      const mark = marks.get(this.address);
      const source = new EventSource(this.isTail && mark ? `${this.path}&after=${mark}` : this.path);
      this.source = source;
      const keep = (event) => { if (event.lastEventId) marks.set(this.address, event.lastEventId); };
      if (this.isTail) ["records", "mark"].forEach((name) => source.addEventListener(name, keep));
      this.listeners.forEach(([name, listener]) => source.addEventListener(name, listener));
      source.onopen = (event) => { this.readyState = source.readyState; this.onopen?.(event); };
      source.onerror = (event) => {
        this.readyState = source.readyState;
        if (source.readyState === EventSource.CLOSED) this.forget(); // htmx makes a new one
        this.onerror?.(event);
      };
    }
    addEventListener(name, listener) {
      this.listeners.push([name, listener]);
      this.source?.addEventListener(name, listener);
    }
    removeEventListener(name, listener) {
      this.listeners = this.listeners.filter((entry) => entry[0] !== name || entry[1] !== listener);
      this.source?.removeEventListener(name, listener);
    }
    forget() { document.removeEventListener("visibilitychange", this.look); }
    close() {
      this.forget();
      this.source?.close();
      this.readyState = EventSource.CLOSED;
    }
  }
  htmx.createEventSource = (path) => new Stream(path);

  // Searches and live tails end with the button, or when the search is done. Their rows stay.
  const sources = new Map();
  const ended = (live, word) => {
    live.querySelectorAll?.("[data-stop]").forEach((button) => { button.before(word); button.remove(); });
  };
  document.addEventListener("htmx:sseOpen", (open) => {
    if (open.target.matches("[data-live]")) sources.set(open.target, open.detail.source);
  });
  document.addEventListener("htmx:sseClose", (close) => {
    sources.delete(close.target);
    ended(close.target, "");
  });

  // Times that run out: data-left has the milliseconds that were left when the element came.
  const ends = new WeakMap();
  setInterval(() => document.querySelectorAll("[data-left]").forEach((element) => {
    if (!ends.has(element)) ends.set(element, Date.now() + Number(element.dataset.left));
    const left = Math.max(ends.get(element) - Date.now(), 0) / 1000;
    element.textContent = left >= 120 ? `${Math.floor(left / 60)} min` : `${left.toFixed(1)} s`;
  }), 200);

  // Copying.
  document.addEventListener("click", async (click) => {
    const code = click.target.closest("[data-copy]");
    if (code && navigator.clipboard) {
      await navigator.clipboard.writeText(code.dataset.copy || code.textContent.trim());
      code.classList.add("copied");
      setTimeout(() => code.classList.remove("copied"), 900);
    }
    if (click.target.closest("[data-theme-switch]")) switchTheme();
    if (click.target.closest("[data-help]")) document.getElementById("keys").showModal();
    if (click.target.closest("[data-stop]")) sources.forEach((source, live) => { source.close(); ended(live, "Stopped. "); });
  });

  // Forms that only filter are sent when a choice changes.
  document.addEventListener("change", (change) => {
    const form = change.target.closest("form[data-auto]");
    if (form && change.target.matches("select, input[type=checkbox]")) form.requestSubmit();
  });

  // Keys.
  let before = "";
  const rows = () => [...document.querySelectorAll("main tbody tr")].filter((row) => row.querySelector("a"));
  const move = (step) => {
    const all = rows();
    const at = all.findIndex((row) => row.contains(document.activeElement));
    all[Math.min(Math.max(at + step, 0), all.length - 1)]?.querySelector("a").focus();
  };
  document.addEventListener("keydown", (press) => {
    if (press.ctrlKey || press.metaKey || press.altKey || press.target.closest("input, textarea, select, dialog")) {
      if (press.key === "Escape") press.target.blur?.();
      return;
    }
    const page = before === "g" && document.querySelector(`nav [data-key="${CSS.escape(press.key)}"]`);
    before = before === "g" ? "" : press.key;
    if (page) { location.href = page.href; before = ""; return; }
    if (press.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { press.preventDefault(); search.focus(); search.select(); }
    }
    if (press.key === "j") move(1);
    if (press.key === "k") move(-1);
    if (press.key === "d" ) switchTheme();
    if (press.key === "?") document.getElementById("keys").showModal();
  });
})();
