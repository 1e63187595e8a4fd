"""The style sheet of the report: light, dark and paper, from 400 pixels to a wide screen."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1c2024; --muted: #59616b; --rule: #e4e4df; --strong-rule: #b9bcbb;
  --tint: #eef4fa; --tile: #f6f6f3; --accent: #0b5fa5; --good: #1a6b3c; --bad: #b3261e;
  --c0: #0b5fa5; --c1: #c4500b; --c2: #0b7f63; --c3: #a23b7d; --c4: #7a6200;
  --c5: #1a779e; --c6: #6a55b8; --c7: #44759f; --c8: #6b7077; --bar: #5d94c3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --ink: #e7e9eb; --muted: #a2aab3; --rule: #2b3137; --strong-rule: #565f69;
    --tint: #1a2733; --tile: #1b1f23; --accent: #7cb8ee; --good: #7fce9d; --bad: #ff9a8f;
    --c0: #6db3f2; --c1: #f2955a; --c2: #4cc3a0; --c3: #e08cc0; --c4: #cdb04a;
    --c5: #6fc7ea; --c6: #a99bf0; --c7: #8fb4d6; --c8: #9aa1a9; --bar: #3f78ab;
  }
}
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #000; --muted: #444; --rule: #ccc; --strong-rule: #888;
    --tint: #eef4fa; --tile: #fff; --accent: #0b5fa5; --good: #1a6b3c; --bad: #b3261e;
    --c0: #0b5fa5; --c1: #c4500b; --c2: #0b7f63; --c3: #a23b7d; --c4: #7a6200;
    --c5: #1a779e; --c6: #6a55b8; --c7: #44759f; --c8: #6b7077; --bar: #5d94c3;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: clamp(1.25rem, 4vw, 3.5rem) clamp(1rem, 4vw, 3rem) 5rem;
  max-width: 78rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans",
    "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans Arabic", sans-serif;
}
h1, h2, h3 { font-weight: 600; letter-spacing: -0.01em; line-height: 1.25; text-wrap: balance; }
h1 { margin: 0 0 1rem; font-size: clamp(1.5rem, 1.1rem + 1.9vw, 2.25rem); max-width: 34em; }
h2 { margin: 0 0 0.35rem; font-size: 1.3rem; scroll-margin-top: 1rem; }
h3 { margin: 0 0 0.5rem; font-size: 1rem; }
p { margin: 0 0 0.75rem; }
section { margin-top: 3.5rem; }
.eyebrow { margin: 0 0 0.5rem; color: var(--muted); font-size: 0.9rem; }
.deck { max-width: 46em; margin-bottom: 0.5rem; font-size: 1.06rem; text-wrap: pretty; }
.note { max-width: 46em; margin-bottom: 1rem; color: var(--muted); text-wrap: pretty; }
.reading { max-width: 46em; text-wrap: pretty; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.quiet { color: var(--muted); }
nav {
  display: flex; flex-wrap: wrap; gap: 0.25rem 1.1rem; margin-top: 1.25rem; font-size: 0.92rem;
}
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.6rem, 1fr)); gap: 0.75rem;
  margin: 2rem 0 0;
}
.tiles div {
  display: flex; flex-direction: column; padding: 0.7rem 0.9rem 0.85rem; border-radius: 6px;
  background: var(--tile);
}
.tiles dt { font-size: 0.88rem; line-height: 1.3; }
.tiles dd { margin: 0.15rem 0 0; color: var(--muted); font-size: 0.82rem; line-height: 1.35; }
.tiles .value {
  order: -1; margin: 0 0 0.1rem; color: var(--ink); font-size: 1.6rem; font-weight: 600;
  line-height: 1.2; font-variant-numeric: tabular-nums; letter-spacing: -0.01em;
}

.scroll { max-width: 100%; overflow-x: auto; }
.columns {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 31rem), 1fr));
  gap: 2rem 2.5rem; align-items: start;
}
.columns > * { min-width: 0; }
table {
  border-collapse: collapse; font-size: 0.92rem; line-height: 1.3;
  font-variant-numeric: tabular-nums;
}
caption { padding: 0 0 0.4rem; text-align: left; font-weight: 600; }
th, td { padding: 0.36rem 0.7rem; border-bottom: 1px solid var(--rule); text-align: left; }
th { font-weight: 400; }
thead th { color: var(--muted); font-size: 0.86rem; vertical-align: bottom; }
thead tr:last-child th, thead th[rowspan] { border-bottom-color: var(--strong-rule); }
thead .group { text-align: center; border-bottom-color: var(--rule); }
th:first-child { position: sticky; left: 0; padding-left: 0.5rem; background: var(--paper); }
thead tr + tr th:first-child { position: static; }
thead tr + tr th.open:first-child { padding-left: 1.4rem; }
.number { text-align: right; white-space: nowrap; }
.open { padding-left: 1.4rem; }
abbr { text-decoration: none; }
.columns th, .columns td { padding: 0.34rem 0.42rem; }
.columns .open { padding-left: 1rem; }
.columns .tag { display: none; }
td b { font-weight: 700; box-shadow: 0 1.5px 0 currentColor; }
tbody tr.default > * { background: var(--tint); }
tr.default > th { font-weight: 600; }
tr.total > * { border-top: 1px solid var(--strong-rule); border-bottom: 0; }
tbody.apart > tr > * {
  border-top: 1px solid var(--strong-rule); color: var(--muted); font-style: italic;
}
.tag {
  display: inline-block; margin-left: 0.5rem; padding: 0 0.4rem; border: 1px solid currentColor;
  border-radius: 99px; color: var(--accent); font-size: 0.74rem; font-weight: 400;
}
.named tbody th { min-width: 8.5rem; }
td.good, td.bad, td.quiet { white-space: nowrap; }
.examples th[scope=row] { min-width: 9rem; max-width: 26rem; overflow-wrap: anywhere; }

figure { margin: 0; }
figcaption { margin-bottom: 0.4rem; font-weight: 600; font-size: 0.95rem; }
.chart { display: block; width: 100%; max-width: 40rem; height: auto; overflow: visible; }
.chart text { fill: var(--muted); font-size: 12.5px; font-variant-numeric: tabular-nums; }
.chart path { fill: none; stroke-linejoin: round; }
.chart .grid { stroke: var(--rule); }
.chart .axis, .chart .tick { stroke: var(--strong-rule); }
.chart .reference { stroke: var(--muted); stroke-dasharray: 3 3; }
.chart .bar { fill: var(--bar); }
.chart .mark { stroke: var(--ink); stroke-dasharray: 4 3; }
.line { fill: none; stroke: var(--c); stroke-width: 1.5; }
.strong .line { stroke-width: 3; }
.marker, .chart .marker { fill: var(--c); stroke: var(--c); stroke-width: 1.2; }
.hollow, .chart .hollow { fill: var(--paper); }
.chart .lead { stroke: var(--c); stroke-width: 0.75; opacity: 0.7; }
.chart .label text { fill: var(--c); }
.chart .label.strong text { font-weight: 700; }
.style0 { --c: var(--c0); } .style1 { --c: var(--c1); } .style2 { --c: var(--c2); }
.style3 { --c: var(--c3); } .style4 { --c: var(--c4); } .style5 { --c: var(--c5); }
.style6 { --c: var(--c6); } .style7 { --c: var(--c7); } .style8 { --c: var(--c8); }
.legend {
  display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; margin: 0.6rem 0 1.2rem; padding: 0;
  list-style: none; font-size: 0.9rem;
}
.legend li { display: flex; align-items: center; gap: 0.4rem; }

@media (max-width: 34rem) { .chart text { font-size: 14.5px; } }

.facts {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr));
  gap: 1.5rem 3rem; margin: 0.75rem 0 1.75rem; font-size: 0.94rem;
}
.facts dl { margin: 0; }
.facts dl div {
  display: flex; justify-content: space-between; gap: 1rem; padding: 0.3rem 0;
  border-bottom: 1px solid var(--rule);
}
.facts dt { color: var(--muted); }
.facts dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }

@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  section { margin-top: 1.5rem; }
  h2 { break-after: avoid; }
  figure, tr, .tiles div, .facts > div { break-inside: avoid; }
  .scroll { overflow: visible; }
  .tiles div { border: 1px solid var(--rule); }
  tbody tr.default > *, .chart .bar {
    print-color-adjust: exact; -webkit-print-color-adjust: exact;
  }
}
"""
