"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const look = () => {
    const axis = { gridcolor: color("--line"), zerolinecolor: color("--line"), linecolor: color("--line") };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: color("--text"), family: "system-ui, sans-serif", size: 12 },
      hoverlabel: { align: "left" }, axis,
    };
  };

  const draw = place => {
    const figure = figures[place.dataset.chart];
    const { axis, ...style } = look();
    const layout = {
      margin: { t: 16, r: 16, b: 44, l: 60 }, height: 320,
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 },
      ...style, ...figure.layout,
      xaxis: { ...axis, ...(figure.layout.xaxis || {}) }, yaxis: { ...axis, ...(figure.layout.yaxis || {}) },
    };
    if (figure.data.length > 1) {  // room for the legend, which takes several lines where the page is narrow
      const lines = Math.ceil(figure.data.length * 110 / place.clientWidth);
      layout.margin = { ...layout.margin, b: 48 + 22 * lines };
      layout.height += 22 * lines;
    }
    Plotly.react(place, figure.data, layout, { responsive: true, displaylogo: false, scrollZoom: Boolean(figure.zoom) });
    place.dataset.drawn = "yes";
  };

  const charts = [...document.querySelectorAll("[data-chart]")];
  if (charts.length) {
    const seen = new IntersectionObserver(entries => {
      for (const entry of entries) {
        if (entry.isIntersecting) { seen.unobserve(entry.target); draw(entry.target); }
      }
    }, { rootMargin: "300px" });
    charts.forEach(place => seen.observe(place));
    dark.addEventListener("change", () => charts.filter(place => place.dataset.drawn).forEach(draw));
    addEventListener("beforeprint", () => charts.filter(place => !place.dataset.drawn).forEach(draw));
  }

  const timeline = document.getElementById("chart-timeline");
  if (timeline) {
    timeline.addEventListener("keydown", event => {
      const moves = { "+": [0.25, -0.25], "=": [0.25, -0.25], "-": [-0.5, 0.5], ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2] };
      const move = moves[event.key];
      if (!timeline.dataset.drawn || (!move && event.key !== "Home")) return;
      event.preventDefault();
      const [from, to] = timeline.layout.xaxis.range.map(Number);
      const range = move ? [from + move[0] * (to - from), to + move[1] * (to - from)] : figures.timeline.layout.xaxis.range;
      Plotly.relayout(timeline, { "xaxis.range": range });
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.querySelectorAll("th")];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const body = table.tBodies[0];
      const rows = [...body.rows];
      const numeric = rows.some(row => row.cells[column].dataset.key !== undefined);
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      const value = row => numeric ? Number(row.cells[column].dataset.key) : row.cells[column].textContent;
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        return (numeric ? x - y : x.localeCompare(y)) * (down ? -1 : 1);
      });
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    }));
  }

  for (const input of document.querySelectorAll("input[type=search]")) {
    const table = document.getElementById(input.dataset.for);
    const count = document.querySelector(`[data-count="${input.dataset.for}"]`);
    const said = count.textContent;
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent + [...row.cells].map(cell => cell.title).join(" ");
        row.hidden = !text.toLowerCase().includes(wanted);
        shown += !row.hidden;
      }
      count.textContent = wanted ? `${shown} of ${table.tBodies[0].rows.length} rows. ${said}` : said;
    });
  }

  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("code").textContent;
      let done = true;
      try { await navigator.clipboard.writeText(text); } catch {
        const range = document.createRange();
        range.selectNodeContents(button.parentElement.querySelector("code"));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Select and copy";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
})();
