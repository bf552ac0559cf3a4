-- Statements as people write them; the line above each counts its shared blocks. Each is run by every door.

-- name: dbt model with unions and joins [2 of 2]
with source as (
    select * from readings where device is not null
), renamed as (
    select ts as event_at, lower(device) as device_id, coalesce(site, 'unknown') as site_name, temp, status from source
), hourly as (
    select device_id, site_name, window.start as period_start, 'hour' as grain, count(*) as events, avg(temp) as avg_temp,
           sum(case when status = 'fail' then 1 else 0 end) as fails
    from renamed group by device_id, site_name, window(event_at, '1 hour')
), daily as (
    select device_id, site_name, window.start as period_start, 'day' as grain, count(*) as events, avg(temp) as avg_temp,
           sum(case when status = 'fail' then 1 else 0 end) as fails
    from renamed group by device_id, site_name, window(event_at, '1 day')
), final as (
    select * from hourly union all select * from daily
)
select final.*, d.owner, round(fails / nullif(events, 0), 4) as fail_rate
from final left join devices d on d.device = final.device_id
where events > 0

-- name: correlated scalar subquery over a block [1 of 1]
SELECT d.device, (SELECT MAX(w.n) FROM (SELECT device, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '2 hours', '1 hour')) w WHERE w.device = d.device) AS busiest FROM devices d

-- name: correlated exists inside the block [1 of 1]
SELECT r.site, window.start AS ws, COUNT(*) AS n FROM readings r WHERE EXISTS (SELECT 1 FROM devices d WHERE d.device = r.device AND d.owner IS NOT NULL) GROUP BY r.site, window(r.ts, '2 hours', '1 hour')

-- name: not in subquery and a hop [1 of 1]
SELECT device, window.end, COUNT(*) c FROM readings WHERE device NOT IN (SELECT device FROM devices WHERE owner = 'Ada') GROUP BY device, window(ts, '90 minutes', '30 minutes')

-- name: lateral view explode in blocks [2 of 2]
SELECT tag, window.start AS ws, COUNT(*) AS n, COUNT(DISTINCT device) AS devices FROM readings LATERAL VIEW explode(tags) t AS tag GROUP BY tag, window(ts, '2 hours', '1 hour')
UNION ALL
SELECT tag, window.start, COUNT(*), COUNT(DISTINCT device) FROM readings LATERAL VIEW explode(tags) t AS tag GROUP BY tag, window(ts, '1 day')

-- name: lateral view outer posexplode [1 of 1]
SELECT pos, col, window.start AS ws, COUNT(*) AS n FROM readings LATERAL VIEW OUTER posexplode(tags) p AS pos, col GROUP BY pos, col, window(ts, '3 hours', '1 hour')

-- name: lateral join subquery [1 of 1]
SELECT r.site, window.start AS ws, SUM(x.k) AS k FROM readings r, LATERAL (SELECT length(r.device) + 1 AS k) x GROUP BY r.site, window(r.ts, '2 hours', '1 hour')

-- name: pivot in the source of a block [1 of 1]
SELECT window.start AS ws, SUM(ok) AS ok, SUM(warn) AS warn FROM (SELECT ts, status, temp FROM readings) PIVOT (COUNT(temp) FOR status IN ('ok' AS ok, 'warn' AS warn)) GROUP BY window(ts, '2 hours', '1 hour')

-- name: qualify with row number over groups [1 of 1]
SELECT site, device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, device, window(ts, '2 hours', '1 hour') QUALIFY ROW_NUMBER() OVER (PARTITION BY site, ws ORDER BY n DESC, device) <= 2

-- name: lag and running sums over groups [1 of 1, ordered]
SELECT device, window.start AS ws, COUNT(*) AS n, COUNT(*) - LAG(COUNT(*)) OVER (PARTITION BY device ORDER BY window.start) AS change, SUM(COUNT(*)) OVER (PARTITION BY device ORDER BY window.start ROWS UNBOUNDED PRECEDING) AS so_far FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes') ORDER BY device NULLS FIRST, ws

-- name: named window over groups [1 of 1]
SELECT site, window.start AS ws, AVG(temp) AS m, RANK() OVER w AS r, FIRST_VALUE(AVG(temp)) OVER w AS best FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') WINDOW w AS (PARTITION BY window.start ORDER BY AVG(temp) DESC, site)

-- name: window of window time [1 of 2]
SELECT window.start AS ws, SUM(n) AS n FROM (SELECT window AS w, COUNT(*) AS n FROM readings GROUP BY window(ts, '10 minutes', '5 minutes')) GROUP BY window(window_time(w), '1 hour')

-- name: window time in the select list and having [1 of 1]
SELECT window_time(w) AS wt, n FROM (SELECT window AS w, COUNT(*) AS n FROM readings GROUP BY window(ts, '1 hour', '30 minutes')) WHERE window_time(w) > TIMESTAMP '2024-03-29 20:00:00'

-- name: unnamed window time [1 of 1]
SELECT window_time(window), site, m FROM (SELECT window, site, MAX(temp) AS m FROM readings GROUP BY site, window(ts, '1 hour', '30 minutes'))

-- name: windows of windows both shared [0 of 2]
SELECT window(window, '1 day') AS d, site, SUM(n) AS n, MAX(n) AS peak FROM (SELECT window, site, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '1 hour')) GROUP BY window(window, '1 day'), site

-- name: session windows beside hops [2 of 2]
SELECT user_id, session_window.start AS s, session_window.end AS e, COUNT(*) AS n, SUM(revenue) AS r FROM clicks GROUP BY user_id, session_window(event_time, '20 minutes')
UNION ALL
SELECT user_id, window.start, window.end, COUNT(*), SUM(revenue) FROM clicks GROUP BY user_id, window(event_time, '2 hours', '1 hour')

-- name: session with a gap by event [0 of 1]
SELECT user_id, session_window.start AS s, COUNT(*) AS n FROM clicks GROUP BY user_id, session_window(event_time, CASE WHEN page = '/' THEN '5 minutes' ELSE '20 minutes' END)

-- name: date trunc keys beside a window key [1 of 1]
SELECT date_trunc('DAY', ts) AS d, window.start AS ws, COUNT(*) AS n FROM readings WHERE ts IS NOT NULL GROUP BY date_trunc('DAY', ts), window(ts, '2 hours', '1 hour')

-- name: lateral alias chain [1 of 1]
SELECT site AS s, window.start AS ws, COUNT(*) AS n, n * 2 AS n2, n2 + 1 AS n3, concat(s, ':', CAST(n3 AS STRING)) AS label FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: positions everywhere [1 of 1, ordered]
SELECT upper(site), window(ts, '2 hours', '1 hour').start, COUNT(*) FROM readings GROUP BY 1, window(ts, '2 hours', '1 hour') ORDER BY 2, 1 NULLS LAST, 3

-- name: group by all with expressions [1 of 1]
SELECT upper(site) AS u, window(ts, '2 hours', '1 hour') AS w, COUNT(*) AS n, MAX(temp) - MIN(temp) AS span FROM readings GROUP BY ALL

-- name: order by all [1 of 1, ordered]
SELECT device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '4 hours', '2 hours') ORDER BY ALL

-- name: order by all desc limit offset [1 of 1, ordered]
SELECT device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '4 hours', '2 hours') ORDER BY ALL DESC NULLS LAST LIMIT 7 OFFSET 3

-- name: having with a subquery [1 of 1]
SELECT site, window.start AS ws, AVG(temp) AS m FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') HAVING AVG(temp) > (SELECT AVG(temp) FROM readings) AND site IN (SELECT site FROM devices)

-- name: backticks and odd names [1 of 1]
SELECT `device` AS `my device`, `window`.`start` AS `window.start`, COUNT(*) AS `n(*)`, MAX(`temp`) AS `select` FROM `readings` AS `r e` GROUP BY `device`, window(`r e`.`ts`, '2 hours', '1 hour')

-- name: case of names [1 of 1]
select DEVICE, Window.START as WS, Count(1) as N from Readings group by device, WINDOW(TS, '2 hours', '1 hour') having n > 2

-- name: except of two blocks [2 of 2]
SELECT device, window.start AS ws FROM readings GROUP BY device, window(ts, '1 hour') EXCEPT SELECT device, window.start FROM readings WHERE status = 'fail' GROUP BY device, window(ts, '1 hour')

-- name: intersect all and minus [2 of 2]
(SELECT device FROM readings GROUP BY device, window(ts, '2 hours', '1 hour') INTERSECT ALL SELECT device FROM devices) UNION SELECT site FROM (SELECT site FROM readings GROUP BY site, window(ts, '1 day', '12 hours') MINUS SELECT 'osaka')

-- name: hints of several kinds [1 of 1]
SELECT /*+ REPARTITION(3), MERGE(d) */ d.owner, window.start AS ws, COUNT(*) AS n FROM readings r JOIN devices d ON r.device = d.device GROUP BY d.owner, window(r.ts, '2 hours', '1 hour')

-- name: tablesample repeatable [1 of 1]
SELECT window.start AS ws, COUNT(*) AS n FROM readings TABLESAMPLE (100 PERCENT) REPEATABLE (7) GROUP BY window(ts, '2 hours', '1 hour')

-- name: tablesample rows [1 of 1]
SELECT window.start AS ws, COUNT(*) AS n FROM readings TABLESAMPLE (20 ROWS) GROUP BY window(ts, '2 hours', '1 hour')

-- name: values as events [1 of 1]
SELECT k, window.start AS ws, SUM(v) AS s, COUNT(*) AS n FROM VALUES ('a', TIMESTAMP '2024-01-01 00:05:00', 1), ('a', TIMESTAMP '2024-01-01 00:55:00', 2), ('b', TIMESTAMP '2024-01-01 01:00:00', NULL) AS t(k, ts, v) GROUP BY k, window(ts, '1 hour', '30 minutes')

-- name: time zone functions as time [1 of 1]
SELECT window.start AS ws, COUNT(*) AS n FROM readings GROUP BY window(from_utc_timestamp(ts, 'Asia/Tokyo'), '1 day', '12 hours', '9 hours')

-- name: negative offset and weeks [1 of 1]
SELECT window.start AS ws, window.end AS we, COUNT(*) AS n FROM readings GROUP BY window(ts, '1 week', '1 day', '-5 hours')

-- name: map and array and struct keys [1 of 1]
SELECT map('color', o.cust)['color'] AS color, items[0].sku AS sku, window.start AS ws, SUM(items[0].qty) AS q, COUNT(*) AS n FROM orders o GROUP BY map('color', o.cust)['color'], items[0].sku, window(o.placed, '2 hours', '1 hour')

-- name: map valued aggregates [0 of 1]
SELECT window.start AS ws, map_from_entries(collect_list(struct(id, amount))) AS m FROM orders WHERE id < 4 GROUP BY window(placed, '2 days', '1 day')

-- name: decimals of many kinds [1 of 1]
SELECT cust, window.start AS ws, SUM(amount), AVG(amount), MAX(amount) * 1.1, SUM(amount * qty) / SUM(qty), SUM(big), AVG(big), STDDEV(amount), MIN(amount) FILTER (WHERE qty > 2) FROM orders GROUP BY cust, window(placed, '2 hours', '1 hour')

-- name: decimals of two blocks [2 of 2]
SELECT a.cust, a.s / b.s AS share, a.s, b.m FROM (SELECT cust, window.start ws, SUM(amount) s FROM orders GROUP BY cust, window(placed, '1 hour')) a JOIN (SELECT cust, window.start ws, SUM(amount) s, AVG(amount) m FROM orders GROUP BY cust, window(placed, '1 day')) b ON a.cust = b.cust AND date_trunc('DAY', a.ws) = b.ws

-- name: filter and distinct aggregates [1 of 1]
SELECT site, window.start AS ws, COUNT(DISTINCT device) FILTER (WHERE temp > 20) AS d, COUNT(DISTINCT status) AS st, SUM(temp) FILTER (WHERE status IN ('ok', 'warn')) AS t, MAX(DISTINCT hum) AS h, COUNT(*) FILTER (WHERE hum > 50 AND NOT status = 'ok') AS f FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: count distinct of pairs [0 of 1]
SELECT window.start AS ws, COUNT(DISTINCT site, device) AS p FROM readings GROUP BY window(ts, '2 hours', '1 hour')

-- name: pipe syntax whole [0 of 0]
FROM readings |> WHERE temp > 15 |> AGGREGATE COUNT(*) AS n, AVG(temp) AS m GROUP BY site, window(ts, '2 hours', '1 hour') |> WHERE n > 2 |> SELECT site, window.start AS ws, n, m

-- name: pipe syntax after a block [0 of 0]
SELECT site, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') |> WHERE n > 3 |> ORDER BY n DESC, ws, site |> LIMIT 5

-- name: comments with quotes and semicolons [1 of 1]
SELECT site, -- it's; a comment
  window.start AS ws, /* "another; one" */ COUNT(*) AS n -- the end
FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') -- last; 'quote

-- name: cross join of two blocks and a scalar [0 of 1]
SELECT a.ws, a.n, b.n AS all_day, a.n * 100.0 / b.n AS pct FROM (SELECT window.start AS ws, COUNT(*) AS n FROM readings GROUP BY window(ts, '1 hour')) a CROSS JOIN (SELECT COUNT(*) AS n FROM readings) b WHERE a.n > 1

-- name: full outer join of blocks with using [2 of 2]
SELECT device, ws, n, f FROM (SELECT device, window.start AS ws, COUNT(*) AS n FROM readings WHERE status = 'ok' GROUP BY device, window(ts, '1 hour')) x FULL OUTER JOIN (SELECT device, window.start AS ws, COUNT(*) AS f FROM readings WHERE status = 'fail' GROUP BY device, window(ts, '1 hour')) y USING (device, ws)

-- name: semi and anti join with a block [1 of 1]
SELECT * FROM devices d LEFT SEMI JOIN (SELECT device, COUNT(*) n FROM readings GROUP BY device, window(ts, '2 hours', '1 hour')) w ON d.device = w.device AND w.n > 3

-- name: grouping sets with having and grouping id [1 of 1, ordered]
SELECT site, device, window.start AS ws, COUNT(*) AS n, GROUPING(device) AS g, GROUPING_ID() AS gid, AVG(temp) AS m FROM readings GROUP BY GROUPING SETS ((site, device, window(ts, '4 hours')), (site, window(ts, '4 hours')), (window(ts, '4 hours'))) HAVING COUNT(*) > 1 ORDER BY ws, gid, site NULLS FIRST, device NULLS FIRST

-- name: rollup over a hop joined to itself [1 of 1]
WITH r AS (SELECT site, status, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY ROLLUP(site, status), window(ts, '2 hours', '1 hour')) SELECT a.site, a.status, a.ws, a.n / b.n AS share FROM r a JOIN r b ON a.ws = b.ws AND b.site IS NULL AND b.status IS NULL

-- name: cube with expressions [1 of 1]
SELECT upper(site) AS u, temp > 20 AS hot, window.end AS we, COUNT(*) AS n, COUNT(DISTINCT device) AS d FROM readings GROUP BY window(ts, '6 hours'), CUBE(upper(site), temp > 20)

-- name: with rollup [0 of 1]
SELECT site, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '1 day') WITH ROLLUP

-- name: null keys and null safe join [2 of 2]
SELECT a.device, a.n, b.n AS m FROM (SELECT device, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 day')) a JOIN (SELECT device, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '12 hours')) b ON a.device <=> b.device

-- name: distinct over groups [1 of 1]
SELECT DISTINCT site, COUNT(*) > 5 AS busy FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: count of distinct groups in an outer query [1 of 1]
SELECT COUNT(*) AS groups, SUM(n) AS events, MAX(ws) AS last FROM (SELECT device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '2 hours', '1 hour'))

-- name: window as a column of a struct [1 of 1]
SELECT struct(window, site) AS k, named_struct('n', COUNT(*), 'm', AVG(temp)) AS v, array(MIN(temp), MAX(temp)) AS range FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: star of a block with a window [1 of 1]
SELECT * FROM (SELECT window, site, COUNT(*) AS n FROM readings GROUP BY window(ts, '2 hours', '1 hour'), site)

-- name: case expressions as keys by alias [1 of 1]
SELECT CASE WHEN temp < 20 THEN 'cold' WHEN temp < 30 THEN 'mild' ELSE 'hot' END AS band, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY band, window(ts, '2 hours', '1 hour')

-- name: alias of the window in group by [1 of 1]
SELECT window(ts, '2 hours', '1 hour') AS w, w.start AS ws, COUNT(*) AS n FROM readings GROUP BY w

-- name: alias that is a column [1 of 1]
SELECT lower(device) AS device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '2 hours', '1 hour')

-- name: nondeterministic beside a block [0 of 1]
SELECT site, window.start AS ws, COUNT(*) AS n, COUNT(*) * 0 + CAST(rand(3) * 0 AS BIGINT) AS z FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: current time in a filter [0 of 1]
SELECT site, window.start AS ws, COUNT(*) AS n FROM readings WHERE ts < current_timestamp() GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: udf in key filter and argument [1 of 1]
SELECT shout(site) AS s, window.start AS ws, MAX(shout(device)) AS d, COUNT(*) AS n FROM readings WHERE shout(status) <> 'OK!' GROUP BY shout(site), window(ts, '2 hours', '1 hour')

-- name: identifiers with dots [1 of 1]
SELECT `a.b`, window.start AS ws, SUM(`c d`) AS s FROM dotted GROUP BY `a.b`, window(dotted.`t.s`, '2 hours', '1 hour')

-- name: column named window in the table [1 of 1]
SELECT d.window AS w, COUNT(*) AS n FROM (SELECT ts AS t, site AS window FROM readings) d GROUP BY d.window, window(t, '2 hours', '1 hour')

-- name: table in catalog beside a given one [1 of 1]
SELECT r.site, c.label, window.start AS ws, COUNT(*) AS n FROM readings r JOIN kept_sites c ON r.site = c.site GROUP BY r.site, c.label, window(r.ts, '2 hours', '1 hour')

-- name: first last percentile left to spark [0 of 1]
SELECT device, window.start AS ws, percentile_approx(temp, 0.5) AS p, approx_count_distinct(site) AS a, percentile(temp, array(0.25, 0.75)) AS q, median(temp) AS med, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '2 hours', '1 hour')

-- name: try aggregates and histogram [0 of 1]
SELECT window.start AS ws, try_sum(qty) AS s, try_avg(px) AS a, any_value(sym, true) IS NOT NULL AS f, bit_count(bit_or(qty)) AS b FROM trades GROUP BY window(t, '20 minutes', '10 minutes')

-- name: interval arithmetic on the event time [1 of 1]
SELECT sym, window.start AS ws, COUNT(*) AS n, SUM(px * qty) / SUM(qty) AS vwap FROM trades WHERE qty IS NOT NULL GROUP BY sym, window(t + INTERVAL '90' SECONDS, '20 minutes', '10 minutes')

-- name: blocks in three levels of subqueries [1 of 1]
SELECT site, MAX(m) AS top FROM (SELECT site, ws, AVG(n) AS m FROM (SELECT site, device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, device, window(ts, '2 hours', '1 hour')) GROUP BY site, ws) GROUP BY site

-- name: union of blocks with order of columns and types [1 of 2]
SELECT site AS k, CAST(COUNT(*) AS DECIMAL(20, 0)) AS v FROM readings GROUP BY site, window(ts, '1 day') UNION ALL SELECT device, SUM(temp) FROM readings GROUP BY device, window(ts, '1 day', '12 hours') UNION ALL SELECT 'all', 1

-- name: union by name [1 of 2]
SELECT site, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '1 day') UNION SELECT device, COUNT(*) FROM readings GROUP BY device, window(ts, '1 day', '12 hours')

-- name: boolean literals and null arguments [0 of 1]
SELECT window.start AS ws, COUNT(NULL) AS a, SUM(NULL) AS b, MAX(NULL) AS c, COUNT(true) AS d, bool_or(NULL) AS e, COUNT(temp, hum) AS f FROM readings GROUP BY window(ts, '2 hours', '1 hour')

-- name: constants and no aggregate at all [1 of 1]
SELECT DISTINCT 1 AS one, window.end - window.start AS len FROM readings GROUP BY window(ts, '2 hours', '1 hour')

-- name: ntz times of a table [1 of 1]
SELECT cust, window.start AS ws, COUNT(*) AS n FROM orders GROUP BY cust, window(local_at, '2 hours', '1 hour')

-- name: not null columns keep their nullability [1 of 1]
SELECT id % 3 AS k, qty, window, MAX(id) AS m, SUM(qty) AS q, COLLECT_LIST(qty) AS l FROM orders GROUP BY id % 3, qty, window(placed, '2 hours', '1 hour')

-- name: two windows of different times of one table [0 of 2]
SELECT 'p' AS t, window.start AS ws, COUNT(*) AS n FROM orders GROUP BY window(placed, '1 hour') UNION ALL SELECT 'l', CAST(window.start AS TIMESTAMP), COUNT(*) FROM orders GROUP BY window(local_at, '1 hour')

-- name: two windows in one block [0 of 1]
SELECT window(placed, '1 hour') AS a, COUNT(*) AS n FROM orders GROUP BY window(placed, '1 hour'), window(placed, '1 hour')

-- name: with shadowing of names [1 of 2]
WITH w AS (SELECT * FROM readings WHERE temp > 20), x AS (WITH w AS (SELECT * FROM w WHERE hum > 40) SELECT site, COUNT(*) AS n FROM w GROUP BY site, window(ts, '2 hours', '1 hour')) SELECT 'x' AS src, site, n FROM x UNION ALL SELECT 'w', site, COUNT(*) FROM w GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: blocks that differ in comments and case only [2 of 2]
SELECT 'a' AS a, Site, window.start AS ws, count(*) AS n FROM Readings /* one */ GROUP BY SITE, window(ts, '1 hour') UNION ALL SELECT 'b', site, window.start, COUNT( * ) FROM readings r GROUP BY r.site, window(R.ts, '1 HOUR')

-- name: arithmetic of windows in group by [1 of 1]
SELECT hour(window.start) AS h, SUM(n) AS n FROM (SELECT window, COUNT(*) AS n FROM readings GROUP BY window(ts, '1 hour', '30 minutes')) GROUP BY hour(window.start)

-- name: json and variants [0 of 0]
SELECT msg:code::INT AS code, window.start AS ws, COUNT(*) AS n FROM (SELECT try_parse_json(msg) AS msg, timestamp(ts) AS at FROM logs) GROUP BY msg:code::INT, window(at, '2 hours', '1 hour')

-- name: like any and rlike filters [1 of 1]
SELECT service, window.start AS ws, COUNT(*) AS n FROM logs WHERE msg LIKE ANY ('done%', '%503%') AND NOT service RLIKE '^x' AND level IN ('WARN', 'ERROR') GROUP BY service, window(ts, '2 hours', '1 hour')

-- name: cast of window bounds to text [1 of 1]
SELECT CAST(window.start AS STRING) AS s, date_format(window.end, 'yyyy-MM-dd HH:mm') AS e, unix_timestamp(window.start) AS u, COUNT(*) AS n FROM readings GROUP BY window(ts, '2 hours', '1 hour')

-- name: collations and binary [0 of 1]
SELECT CAST(site AS BINARY) AS b, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY CAST(site AS BINARY), window(ts, '2 hours', '1 hour')

-- name: min by max by [2 of 2]
SELECT sym, window.start AS ws, MIN_BY(px, t) AS o, MAX_BY(px, t) AS c, MAX(px) AS h, MIN(px) AS l, SUM(qty) AS v FROM trades GROUP BY sym, window(t, '10 minutes') UNION ALL SELECT sym, window.start, MIN_BY(px, t), MAX_BY(px, t), MAX(px), MIN(px), SUM(qty) FROM trades GROUP BY sym, window(t, '1 hour')

-- name: sort by distribute by [0 of 1]
SELECT site, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') DISTRIBUTE BY site SORT BY n

-- name: limit all and offset [1 of 1, ordered]
SELECT site, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') ORDER BY n DESC, ws, site LIMIT ALL OFFSET 2

-- name: subquery alias without as and column list [1 of 1]
SELECT k, SUM(c) FROM (SELECT site, COUNT(*) FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')) t (k, c) GROUP BY k

-- name: order by aggregate not selected [1 of 1, ordered]
SELECT site, window.start AS ws FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') ORDER BY SUM(temp) DESC NULLS LAST, COUNT(*), ws, site LIMIT 10

-- name: order by alias of same name as a column [1 of 1, ordered]
SELECT site, window.start AS ts, -COUNT(*) AS temp FROM readings GROUP BY site, window(ts, '2 hours', '1 hour') ORDER BY temp, ts, site
