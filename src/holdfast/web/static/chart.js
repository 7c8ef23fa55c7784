// Charts over time: <hf-chart data-chart="{x: seconds, series: [{label, color, values}], unit, marks: [{x, label}]}">, drawn by uPlot.
// The data are an attribute and not a script element: an attribute that a refresh changes is noticed, and the canvas stays.

/** Define the element, with the tools of app.js. */
export function start({ element, clock, formatNumber, formatDuration }) {
  /** The width of the axis at the left, so that charts begin where the text of their card does. */
  const widest = (labels) => 10 + 6.5 * Math.max(2, ...(labels ?? []).map((label) => label.length));

  class Chart extends HTMLElement {
    static observedAttributes = ["data-chart"];

    connectedCallback() {
      this.resize = new ResizeObserver(() => this.plot?.setSize(this.box()));
      this.resize.observe(this);
      this.draw();
    }

    disconnectedCallback() {
      this.resize.disconnect();
      this.plot?.destroy();
      this.plot = null;
    }

    /** Show new values in the same drawing, so that nothing flashes and a selection stays. */
    attributeChangedCallback() {
      if (!this.isConnected) return;
      const before = this.plot && this.data.series.length;
      this.data = JSON.parse(this.dataset.chart);
      if (before === this.data.series.length) this.plot.setData(this.columns());
      else this.draw();
    }

    columns() {
      return [this.data.x, ...this.data.series.map((one) => one.values)];
    }

    box() {
      return { width: this.clientWidth, height: this.clientHeight };
    }

    draw() {
      if (!window.uPlot) return;
      this.plot?.destroy();
      this.data = JSON.parse(this.dataset.chart);
      this.plot = new uPlot(this.options(), this.columns(), this);
      this.tip = element("div", { class: "tip", hidden: "" });
      this.plot.over.append(this.tip);
    }

    options() {
      return {
        ...this.box(),
        legend: { show: false },
        padding: [12, 14, 0, 0],
        cursor: { sync: { key: this.dataset.sync }, y: false, points: { size: 7 }, drag: { x: this.dataset.sync === "range", y: false, setScale: false } },
        scales: { y: { range: (_, low, high) => [Math.min(low, 0), high > 0 ? high * (this.data.marks?.length ? 1.2 : 1.08) : 1] } },
        axes: [this.axis({ values: (_, ticks) => ticks.map((at) => this.when(at, true)), space: 70, size: 26 }), this.axis({ values: (_, ticks) => ticks.map((value) => this.format(value)), size: (_, labels) => widest(labels), space: 40 })],
        series: [{}, ...this.data.series.map((one, index) => this.line(one, index === 0))],
        hooks: { setCursor: [() => this.showTip()], setSelect: [() => this.zoom()], draw: [() => this.drawMarks()] },
      };
    }

    axis(more) {
      const grid = { stroke: this.color("line"), width: 1 };
      return { stroke: this.color("quiet"), font: `11px ${getComputedStyle(document.body).fontFamily}`, grid, ticks: { show: false }, gap: 6, ...more };
    }

    line(one, isMain) {
      const stroke = this.color(one.color);
      const fill = isMain ? stroke.replace("rgb(", "rgba(").replace(")", ", .12)") : undefined;
      return { stroke, fill, width: isMain ? 2 : 1.5, points: { show: false }, spanGaps: false };
    }

    /** Tokens that depend on the theme have a value only where they are used as a colour. */
    color(name) {
      const probe = element("i", { class: name === "line" ? "" : `c-${name}`, hidden: "" });
      this.append(probe);
      if (name === "line") probe.style.color = "var(--line)";
      const found = getComputedStyle(probe).color;
      probe.remove();
      return found;
    }

    format(value) {
      if (value == null) return "–";
      return this.data.unit === "s" ? formatDuration(value) : formatNumber(value);
    }

    /** A time of the axis: midnight is the day that begins; with the day elsewhere where the chart is longer than one. */
    when(at, isTick = false) {
      const [time, day] = [{ hour: "2-digit", minute: "2-digit" }, { day: "numeric", month: "short" }].map((parts) => clock(at * 1000, parts));
      if (isTick) return time === "00:00" ? day : time;
      return this.data.x.at(-1) - this.data.x[0] > 86_400 ? `${day}, ${time}` : time;
    }

    showTip() {
      const { idx, left } = this.plot.cursor;
      this.tip.hidden = idx == null || left < 0;
      if (this.tip.hidden) return;
      const unit = this.data.unit === "s" ? "" : (this.data.unit ?? "");
      const lines = this.data.series.map((one) => element("span", { class: `c-${one.color}` }, one.label, element("b", {}, this.format(one.values[idx]) + unit)));
      this.tip.replaceChildren(this.when(this.data.x[idx]), ...lines);
      const isRight = left > this.plot.over.clientWidth / 2;
      this.tip.style.left = `${isRight ? left - this.tip.offsetWidth - 12 : left + 12}px`;
      this.tip.style.top = "8px";
    }

    drawMarks() {
      const { ctx, bbox } = this.plot;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = this.color("quiet");
      ctx.setLineDash([4, 4]);
      ctx.font = `${11 * devicePixelRatio}px ${getComputedStyle(document.body).fontFamily}`;
      for (const [number, { x, label }] of (this.data.marks ?? []).entries()) {
        const at = this.plot.valToPos(x, "x", true);
        const isRight = at > bbox.left + bbox.width * 0.75; // there the words are left of the line, and those of neighbours below each other
        ctx.textAlign = isRight ? "right" : "left";
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
        ctx.fillText(label, at + (isRight ? -4 : 4), bbox.top + (11 + 14 * (number % 3)) * devicePixelRatio);
      }
      ctx.restore();
    }

    zoom() {
      const { left, width } = this.plot.select;
      if (width < 10) return void this.plot.setSelect({ width: 0, height: 0 }, false);
      const url = new URL(location.href);
      url.searchParams.set("range", [left, left + width].map((at) => Math.round(this.plot.posToVal(at, "x"))).join("-"));
      location.assign(url);
    }
  }

  customElements.define("hf-chart", Chart);
}
