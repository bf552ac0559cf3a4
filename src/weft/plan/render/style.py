"""How pages and pictures of plans look: light or dark, as the reader's system is set."""

COLOURS = """
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5d6b7c;
--line:#dde3ea;--arrow:#93a1b3;--track:#e9edf2;--scan:#64748b;--slice:#0d9488;--window:#2563eb;--factor:#d97706;
--join:#7c3aed;--result:#15803d;--good:#15803d;--pick:#eef4ff}
@media(prefers-color-scheme:dark){:root{--page:#11161d;--card:#1a212b;--ink:#e6ebf2;--soft:#98a6b8;
--line:#2e3947;--arrow:#61718a;--track:#2a3442;--scan:#94a3b8;--slice:#2dd4bf;--window:#60a5fa;
--factor:#fbbf24;--join:#a78bfa;--result:#4ade80;--good:#4ade80;--pick:#1d2b44}}
"""
GRAPH_STYLE = """
.frame{fill:var(--card);stroke-width:1.6}.shared .frame{stroke-width:3.2}
.scan{--c:var(--scan)}.slice{--c:var(--slice)}.window,.group{--c:var(--window)}
.factor{--c:var(--factor)}.join{--c:var(--join)}.result{--c:var(--result)}
.frame{stroke:var(--c)}.box:hover .frame{stroke-width:4}
.factor .frame{stroke-dasharray:6 4}
.group .frame{filter:drop-shadow(3px 3px 0 var(--track)) drop-shadow(3px 3px 0 var(--line))}
.box text{fill:var(--ink)}
.name{font-size:13px;font-weight:620}
.below,.cost,.tag,.times{font-size:11px}
.box .below,.box .tag{fill:var(--soft)}
.cost,.tag{text-anchor:end}.cost{font-weight:600}
.tag{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.times{text-anchor:end;fill:var(--ink);font-weight:600;paint-order:stroke;stroke:var(--card);
stroke-width:4px}
.track{fill:var(--track)}.bar{fill:var(--c)}
.arrow{fill:none;stroke:var(--arrow)}#tip path{fill:var(--arrow)}
"""
STYLE = (
    COLOURS
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.45 system-ui,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif}
main{max-width:1560px;margin:0 auto;padding:28px 28px 40px}
h1{font-size:20px;margin:0 0 2px;font-weight:650}
h2{font-size:15px;margin:0 0 10px;font-weight:650}
p{margin:0}.soft{color:var(--soft)}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:18px 20px;
margin-top:16px}
.figures{display:flex;flex-wrap:wrap;gap:14px 44px;margin-top:18px}
.figures b{display:block;font-size:26px;font-weight:650;line-height:1.2;
font-variant-numeric:tabular-nums}
.figures .good{color:var(--good)}
.scroll{overflow:auto}.rows{max-height:32em}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:12px;font-size:12px;color:var(--soft)}
.legend i{display:inline-block;width:14px;height:10px;border-radius:3px;border:2px solid var(--c);
margin-right:6px;vertical-align:-1px}
.legend .factor{border-style:dashed}
table{border-collapse:collapse;min-width:min(100%,860px);font-variant-numeric:tabular-nums}
th{position:sticky;top:0;background:var(--card);text-align:left;font-weight:600;color:var(--soft);
font-size:12px}
th,td{padding:6px 18px 6px 8px;border-bottom:1px solid var(--line);vertical-align:top}
th.number,td.number{text-align:right;white-space:nowrap}
tr.chosen td{background:var(--pick);font-weight:600}
.meter{width:180px;min-width:90px}
.meter svg{display:block;width:100%;height:8px;margin-top:6px}.meter rect{fill:var(--window)}
ul{margin:0;padding-left:20px}
summary{cursor:pointer;font-weight:650;font-size:15px}
pre{overflow:auto;font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
margin:12px 0 0}
svg.graph{display:block;margin:0 auto;max-width:100%;height:auto;font-family:inherit}
footer{margin-top:18px;font-size:12px;color:var(--soft)}
"""
    + GRAPH_STYLE
)
