-- name: feature model [4 of 4]
WITH base AS (
  SELECT ts, device, temp, hum, status FROM readings WHERE device IS NOT NULL
),
w5m AS (SELECT device, window.end AS at, COUNT(*) AS n_5m, AVG(temp) AS avg_5m FROM base GROUP BY device, window(ts, '5 minutes')),
w30m AS (SELECT device, window.end AS at, SUM(temp) AS sum_30m, STDDEV(temp) AS sd_30m FROM base GROUP BY device, window(ts, '30 minutes', '5 minutes')),
w2h AS (SELECT device, window.end AS at, COUNT_IF(status = 'fail') AS fails_2h FROM base GROUP BY device, window(ts, '2 hours', '5 minutes')),
w6h AS (SELECT device, window.end AS at, MAX(hum) - MIN(hum) AS hum_6h FROM base GROUP BY device, window(ts, '6 hours', '5 minutes'))
SELECT w5m.device, w5m.at, n_5m, avg_5m, sum_30m, sd_30m, fails_2h, hum_6h
FROM w5m
LEFT JOIN w30m ON w30m.device = w5m.device AND w30m.at = w5m.at
LEFT JOIN w2h ON w2h.device = w5m.device AND w2h.at = w5m.at
LEFT JOIN w6h USING (device, at)

-- name: hop alone [1 of 1]
SELECT device, window.start, COUNT(*), SUM(temp) FROM readings GROUP BY device, window(ts, '1 hour', '10 minutes')

-- name: hop with having and order [1 of 1, ordered]
SELECT device, window.start AS ws, COUNT(*) AS n, ROUND(AVG(temp), 3) AS mean
FROM readings
GROUP BY device, window(ts, '1 hour', '15 minutes')
HAVING n > 3 AND MAX(temp) IS NOT NULL
ORDER BY n DESC, ws, device NULLS LAST
LIMIT 50

-- name: hop ordered by what is not selected [1 of 1, ordered]
SELECT COUNT(*) AS n FROM readings
GROUP BY site, window(ts, '2 hours', '1 hour')
ORDER BY window.start, site, COUNT(*)

-- name: hop with offset [1 of 1]
SELECT site, window.start ws, window.end we, MIN(temp) lo FROM readings GROUP BY site, window(ts, '3 hours', '1 hour', '20 minutes')

-- name: hop of every aggregate [1 of 1]
SELECT sym, window, COUNT(1), COUNT(qty), SUM(qty), SUM(px), AVG(qty), AVG(px), MIN(side), MAX(px), VARIANCE(px), VAR_POP(px),
       STDDEV(px), STDDEV_POP(px), STD(px), BOOL_AND(px > 100), SOME(px > 100), EVERY(side = 'B'), ANY(side = 'S'), BIT_AND(qty), BIT_OR(qty), BIT_XOR(qty),
       MIN_BY(side, px * 100000 + qty), MAX_BY(px, qty * 1000000 + px), COUNT(DISTINCT side), COUNT_IF(side = 'B'), MEAN(px), VAR_SAMP(qty), COUNT(qty, side)
FROM trades GROUP BY sym, window(t, '10 minutes', '5 minutes')

-- name: hop of aggregates that are not shared [0 of 1]
SELECT sym, window.start, percentile_approx(px, 0.5), approx_count_distinct(qty), MAX(px)
FROM trades GROUP BY sym, window(t, '10 minutes', '5 minutes')

-- name: decimals over hops [1 of 1]
SELECT user_id, window.start AS ws, SUM(revenue) AS total, AVG(revenue) AS mean, MAX(revenue) AS top, SUM(revenue) / COUNT(revenue) AS ratio, SUM(dwell_ms) AS dwell, AVG(dwell_ms) AS mean_dwell
FROM clicks GROUP BY user_id, window(event_time, '6 hours', '1 hour')

-- name: small integers and floats [1 of 1]
SELECT window.start, SUM(CAST(dwell_ms AS SMALLINT) % 7), MAX(CAST(dwell_ms % 100 AS TINYINT)), AVG(CAST(dwell_ms AS FLOAT)), SUM(CAST(dwell_ms AS FLOAT)), MIN(CAST(event_time AS DATE)), MAX(event_time)
FROM clicks WHERE dwell_ms < 30000 GROUP BY window(event_time, '12 hours', '6 hours')

-- name: two filters over one table [2 of 2]
SELECT a.device, a.ws, a.n AS oks, b.n AS fails
FROM (SELECT device, window.start AS ws, COUNT(*) AS n FROM readings WHERE status = 'ok' AND device IS NOT NULL GROUP BY device, window(ts, '1 hour')) a
JOIN (SELECT device, window.start AS ws, COUNT(*) AS n FROM readings WHERE device IS NOT NULL AND status = 'fail' GROUP BY device, window(ts, '1 hour')) b
  ON a.device = b.device AND a.ws = b.ws

-- name: filters that guard a division [2 of 2]
SELECT 'a' AS w, window.start, SUM(100 div ver) AS s FROM (SELECT ts, meta.ver AS ver FROM readings) WHERE ver <> 0 GROUP BY window(ts, '1 hour')
UNION ALL
SELECT 'b', window.start, COUNT(*) FROM (SELECT ts, meta.ver AS ver FROM readings) GROUP BY window(ts, '2 hours')

-- name: union of windows with different names [3 of 3]
SELECT '1h' AS w, device, window.start AS s, MIN(temp) AS v FROM readings GROUP BY device, window(ts, '1 hour')
UNION ALL
SELECT '6h', device, window.start, MAX(temp) FROM readings GROUP BY device, window(ts, '6 hours')
UNION
SELECT '1d', device, window.start, AVG(temp) FROM readings GROUP BY device, window(ts, '1 day')

-- name: except of windows [2 of 2]
SELECT device, window.start FROM readings GROUP BY device, window(ts, '1 hour')
EXCEPT
SELECT device, window.start FROM readings WHERE status = 'fail' GROUP BY device, window(ts, '1 hour')

-- name: case and backticks [1 of 1]
select `Device`, WINDOW.START as `the start`, Count(*) as `n rows` from READINGS group by DEVICE, Window(TS, '1 Hour', '30 MINUTES')

-- name: positions and aliases [1 of 1]
SELECT upper(device) AS d, date_format(window.end, 'yyyy-MM-dd HH:mm') AS until, COUNT(*) AS n
FROM readings GROUP BY 1, window(ts, '2 hours', '30 minutes')

-- name: alias of the window [1 of 1]
SELECT window(ts, '1 hour', '30 minutes') AS w, site, COUNT(*) AS n FROM readings GROUP BY w, site

-- name: window by position [1 of 1]
SELECT site, window(ts, '1 hour', '30 minutes').end AS until, COUNT(*) AS n FROM readings GROUP BY 1, 2

-- name: group by all [1 of 1]
SELECT site, window(ts, '1 hour', '20 minutes') AS w, COUNT(*) AS n, MAX(temp) FROM readings GROUP BY ALL

-- name: case keys and expressions over keys [1 of 1]
SELECT CASE WHEN temp > 20 THEN 'hot' WHEN temp IS NULL THEN NULL ELSE 'cold' END AS class,
       concat(CASE WHEN temp > 20 THEN 'hot' WHEN temp IS NULL THEN NULL ELSE 'cold' END, '!') AS shout,
       window.start AS ws, COUNT(*) AS n
FROM readings
GROUP BY CASE WHEN temp > 20 THEN 'hot' WHEN temp IS NULL THEN NULL ELSE 'cold' END, window(ts, '90 minutes', '30 minutes')

-- name: lateral aliases [1 of 1]
SELECT device, COUNT(*) AS n, n * 2 AS twice, SUM(temp) AS total, total / n AS mean FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes')

-- name: distinct over a hop [1 of 1]
SELECT DISTINCT site, COUNT(*) > 5 AS busy FROM readings GROUP BY site, window(ts, '1 hour', '30 minutes')

-- name: window functions over aggregates [1 of 1]
SELECT device, window.start AS ws, COUNT(*) AS n,
       SUM(COUNT(*)) OVER (PARTITION BY device ORDER BY window.start) AS running,
       RANK() OVER (PARTITION BY window.start ORDER BY COUNT(*) DESC, device) AS place,
       LAG(AVG(temp)) OVER (PARTITION BY device ORDER BY window.start) AS before
FROM readings WHERE device IS NOT NULL GROUP BY device, window(ts, '1 hour', '30 minutes')

-- name: qualify [1 of 1]
SELECT device, ws, n
FROM (SELECT device, window.start AS ws, COUNT(*) AS n FROM readings WHERE device IS NOT NULL GROUP BY device, window(ts, '1 hour', '30 minutes'))
QUALIFY ROW_NUMBER() OVER (PARTITION BY ws ORDER BY n DESC, device) = 1

-- name: named window clause [1 of 1]
SELECT device, window.start AS ws, COUNT(*) AS n, MAX(COUNT(*)) OVER w AS top
FROM readings WHERE device IS NOT NULL GROUP BY device, window(ts, '1 hour', '30 minutes')
WINDOW w AS (PARTITION BY device ORDER BY window.start ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)

-- name: dimension joined before, several windows [2 of 2]
WITH joined AS (SELECT r.ts, r.temp, d.owner, d.site FROM readings r JOIN devices d ON r.device = d.device)
SELECT h.owner, h.ws, h.mean, d.mean AS day_mean
FROM (SELECT owner, window.start AS ws, AVG(temp) AS mean FROM joined GROUP BY owner, window(ts, '1 hour')) h
LEFT JOIN (SELECT owner, window.start AS ws, AVG(temp) AS mean FROM joined GROUP BY owner, window(ts, '1 day')) d
  ON h.owner <=> d.owner AND date_trunc('DAY', h.ws) = d.ws

-- name: dimension joined after [1 of 1]
SELECT w.*, d.owner FROM (
  SELECT device, window, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 hour', '20 minutes')
) w LEFT JOIN devices d ON w.device = d.device WHERE d.owner IS NOT NULL OR w.n > 2

-- name: join of expressions in from [1 of 1]
SELECT d.owner, window.start AS ws, COUNT(*) AS n, SUM(r.temp) AS total
FROM readings AS r LEFT OUTER JOIN devices AS d ON r.device = d.device AND d.installed > DATE '2021-06-01'
GROUP BY d.owner, window(r.ts, '4 hours', '2 hours')

-- name: lateral view [1 of 1]
SELECT tag, window.start AS ws, COUNT(*) AS n FROM readings LATERAL VIEW explode(tags) x AS tag GROUP BY tag, window(ts, '4 hours', '2 hours')

-- name: outer lateral view with position [1 of 1]
SELECT pos, tag, window.end, COUNT(*) AS n FROM readings LATERAL VIEW OUTER posexplode(tags) x AS pos, tag GROUP BY pos, tag, window(ts, '4 hours', '2 hours')

-- name: rollup over a hop [1 of 1]
SELECT site, device, window.start, COUNT(*) FROM readings GROUP BY ROLLUP (site, device), window(ts, '4 hours', '2 hours')

-- name: grouping sets [1 of 1]
SELECT site, status, window.start, COUNT(*), GROUPING_ID() FROM readings GROUP BY GROUPING SETS ((site, window(ts, '4 hours')), (status, window(ts, '4 hours')))

-- name: cube of expressions, and what grouping says [1 of 1]
SELECT upper(site) AS s, status, window.start AS ws, COUNT(*) AS n, AVG(temp) AS mean,
       grouping(upper(site)) AS gs, grouping(status), grouping_id() AS g, grouping_id(upper(site), status, window(ts, '4 hours', '1 hour')) + 1
FROM readings WHERE temp IS NOT NULL
GROUP BY CUBE (upper(site), status), window(ts, '4 hours', '1 hour')
HAVING grouping(status) = 1 OR COUNT(*) > 2

-- name: rollup of a pair beside a key, in order [1 of 1, ordered]
SELECT site, status, device, window.end AS at, MAX(temp) AS hi, COUNT(device) AS known
FROM readings GROUP BY site, window(ts, '6 hours'), ROLLUP ((status, device))
ORDER BY at, site NULLS FIRST, grouping(status), status NULLS FIRST, device NULLS FIRST

-- name: grouping sets that repeat, in the order of columns that Spark numbers [1 of 1]
SELECT site, device, window, COUNT(*) AS n, grouping_id() AS g
FROM readings GROUP BY GROUPING SETS ((window(ts, '2 hours', '1 hour'), site), (window(ts, '2 hours', '1 hour'), site), (device, window(ts, '2 hours', '1 hour')))

-- name: a grouping set without the window [0 of 1]
SELECT site, window.start, COUNT(*) FROM readings GROUP BY GROUPING SETS ((site, window(ts, '1 hour')), (site))

-- name: rollup beside a block of its keys [2 of 2]
SELECT r.site, r.device, r.ws, r.n, h.mean
FROM (SELECT site, device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY ROLLUP (site, device), window(ts, '1 hour')) r
LEFT JOIN (SELECT site, device, window.start AS ws, AVG(temp) AS mean FROM readings GROUP BY site, device, window(ts, '1 hour')) h
  ON r.site <=> h.site AND r.device <=> h.device AND r.ws = h.ws

-- name: filter clauses [1 of 1]
SELECT device, window.start AS ws, SUM(temp) FILTER (WHERE status = 'ok') AS ok, AVG(temp) FILTER (WHERE status <> 'ok') AS other,
       COUNT(DISTINCT site) FILTER (WHERE temp > 15) AS sites, COUNT(*) FILTER (WHERE status IS NULL) AS unknown
FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes')

-- name: session windows of two gaps [2 of 2]
SELECT a.user_id, a.n, b.n AS wide, a.session_window.start AS since
FROM (SELECT user_id, session_window, COUNT(*) AS n FROM clicks GROUP BY user_id, session_window(event_time, '10 minutes')) a
JOIN (SELECT user_id, session_window, COUNT(*) AS n FROM clicks GROUP BY user_id, session_window(event_time, '1 hour')) b
  ON a.user_id = b.user_id AND a.session_window.start BETWEEN b.session_window.start AND b.session_window.end

-- name: a filter decides which sessions there are [2 of 3]
SELECT user_id, window.start AS since, COUNT(*) AS n FROM clicks GROUP BY user_id, window(event_time, '1 hour')
UNION ALL
SELECT user_id, session_window.start, COUNT(*) FROM clicks WHERE dwell_ms > 900 GROUP BY user_id, session_window(event_time, '10 minutes')
UNION ALL
SELECT user_id, session_window.start, MAX(dwell_ms) FROM clicks WHERE dwell_ms > 900 GROUP BY user_id, session_window(event_time, '1 hour')

-- name: session with a gap that depends on the event [0 of 1]
SELECT user_id, session_window.start, COUNT(*) FROM clicks GROUP BY user_id, session_window(event_time, CASE WHEN page = '/' THEN '5 minutes' ELSE '20 minutes' END)

-- name: windows over windows [2 of 2]
SELECT device, window(w, '1 hour', '30 minutes').start AS ws, MAX(n) AS top, SUM(n) AS n
FROM (SELECT device, window AS w, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '10 minutes', '5 minutes'))
GROUP BY device, window(w, '1 hour', '30 minutes')

-- name: window time [1 of 1]
SELECT device, window_time(window) AS at, n FROM (SELECT device, window, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 hour', '20 minutes'))

-- name: chain of tumbling windows by their ends [2 of 3]
WITH five AS (SELECT device, window.end AS at, COUNT(*) AS n, SUM(temp) AS total FROM readings GROUP BY device, window(ts, '5 minutes')),
     hour AS (SELECT device, window.start AS ws, SUM(n) AS n, SUM(total) AS total FROM five GROUP BY device, window(at, '1 hour')),
     day AS (SELECT device, window.start AS ws, SUM(n) AS n, MAX(n) AS top FROM five GROUP BY device, window(at, '1 day'))
SELECT h.device, h.ws, h.n, h.total / h.n AS mean, d.n AS day_n, d.top FROM hour h JOIN day d ON h.device = d.device AND date_trunc('day', h.ws) = d.ws

-- name: scalar subquery over windows [2 of 2, ordered]
SELECT MAX(n) AS top, (SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 day'))) AS day_top
FROM (SELECT device, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 hour'))

-- name: in and exists over windows [2 of 2]
SELECT d.device, d.owner FROM devices d
WHERE d.device IN (SELECT device FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes') HAVING COUNT(*) > 10)
  AND EXISTS (SELECT 1 FROM (SELECT site, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '1 hour', '30 minutes')) w WHERE w.site = d.site AND w.n > 5)

-- name: window filter with a subquery [1 of 1]
SELECT site, window.start, COUNT(*) AS n FROM readings
WHERE temp > (SELECT AVG(temp) FROM readings) AND device IN (SELECT device FROM devices WHERE owner IS NOT NULL)
GROUP BY site, window(ts, '4 hours', '1 hour')

-- name: nested with [1 of 1]
WITH a AS (WITH b AS (SELECT * FROM readings WHERE temp > 10) SELECT site, window, COUNT(*) AS n FROM b GROUP BY site, window(ts, '2 hours', '1 hour'))
SELECT site, window.end, n FROM a WHERE n > 1

-- name: with of the same name as the table [2 of 2]
WITH readings AS (SELECT * FROM readings WHERE status = 'ok')
SELECT x.device, x.n, y.n AS ny FROM
 (SELECT device, window.start ws, COUNT(*) n FROM readings GROUP BY device, window(ts, '1 hour')) x JOIN
 (SELECT device, window.start ws, COUNT(*) n FROM readings GROUP BY device, window(ts, '1 day')) y ON x.device = y.device AND y.ws <= x.ws

-- name: with used twice [1 of 1]
WITH hourly AS (SELECT device, window.start AS ws, AVG(temp) AS mean FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes'))
SELECT a.device, a.ws, a.mean - b.mean AS change FROM hourly a JOIN hourly b ON a.device = b.device AND a.ws = b.ws + INTERVAL 30 MINUTES

-- name: columns of a with renamed [1 of 1]
WITH hourly (dev, since, n) AS (SELECT device, window.start, COUNT(*) FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes'))
SELECT dev, since, n FROM hourly WHERE dev LIKE 'p%'

-- name: subquery with renamed columns [1 of 1]
SELECT t.a, SUM(t.c) FROM (SELECT device, window.start, COUNT(*) FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes')) AS t (a, b, c) GROUP BY t.a

-- name: names made by spark in a subquery [1 of 1]
SELECT `count(1)`, `(max(temp) - min(temp))`, `upper(device)` FROM (SELECT upper(device), COUNT(*), MAX(temp) - MIN(temp) FROM readings GROUP BY upper(device), window(ts, '1 hour', '30 minutes'))

-- name: star of a subquery with names made by spark [1 of 1]
SELECT * FROM (SELECT device, window.start, window.end, COUNT(*), AVG(temp), SUM(temp) / COUNT(temp), 1 FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes'))

-- name: insane literals [1 of 1]
SELECT 'it''s' AS a, "double" AS b, 'back\\slash' AS c, r'raw\n' AS d, '{brace}' AS e, 1e3 AS f, 1.5D AS g, 2BD AS h, 10L AS i, X'1F' AS j, window.start AS s, COUNT(*) AS n
FROM readings WHERE device <> '{x}' GROUP BY window(ts, '12 hours', '6 hours')

-- name: comments and hints [1 of 1]
/* all of it */ SELECT /*+ BROADCAST(d) */ d.owner, -- who
       window.start /* since */ AS ws, COUNT(*) AS n
FROM readings r JOIN devices d ON r.device = d.device -- known ones
GROUP BY d.owner, window(r.ts, '2 hours', '1 hour');

-- name: struct and array columns [1 of 1]
SELECT meta.fw AS fw, window.start AS ws, COUNT(*) AS n, MAX(meta.ver) AS ver, SUM(size(tags)) AS tags, MAX(get(tags, 0)) AS first_tag, COUNT_IF(array_contains(tags, 'beta')) AS beta
FROM readings GROUP BY meta.fw, window(ts, '2 hours', '1 hour')

-- name: higher order functions [1 of 1]
SELECT site, window.start AS ws, SUM(aggregate(coalesce(tags, array()), 0, (a, x) -> a + length(x))) AS letters, MAX(exists(tags, x -> x LIKE 'b%')) AS any_b
FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: min by struct [0 of 1]
SELECT sym, window.start, MIN_BY(px, struct(t, px, qty)), MAX_BY(struct(px, qty), struct(t, px, qty)), MAX(struct(t, px)) FROM trades WHERE qty IS NOT NULL GROUP BY sym, window(t, '10 minutes', '5 minutes')

-- name: text timestamps [1 of 1]
SELECT service, level, window.start AS ws, COUNT(*) AS n, MAX(latency_ms) AS worst FROM logs GROUP BY service, level, window(ts, '1 hour', '30 minutes')

-- name: json and regular expressions [0 of 1]
SELECT get_json_object(msg, '$.code') AS code, window.start AS ws, COUNT(*) AS n, SUM(TRY_CAST(regexp_extract(msg, 'after (\\d+) ms', 1) AS INT)) AS ms
FROM logs WHERE regexp_extract(msg, 'after (\\d+) ms', 1) <> '' OR msg LIKE '{%' GROUP BY 1, window(to_timestamp(ts), '2 hours', '1 hour') HAVING try_sum(latency_ms) IS NOT NULL

-- name: timestamps without zone [1 of 1]
SELECT site, window, COUNT(*) AS n FROM (SELECT CAST(ts AS TIMESTAMP_NTZ) AS at, site FROM readings) GROUP BY site, window(at, '3 hours', '1 hour')

-- name: dates as times [1 of 1]
SELECT window.start, COUNT(*) FROM (SELECT CAST(ts AS DATE) AS day FROM readings) GROUP BY window(day, '2 days', '1 day')

-- name: unpivot over windows [1 of 1]
SELECT * FROM (SELECT site, window.start AS ws, MIN(temp) AS lo, MAX(temp) AS hi FROM readings GROUP BY site, window(ts, '4 hours', '2 hours')) UNPIVOT (v FOR side IN (lo, hi))

-- name: pivot over a hop [1 of 1]
SELECT * FROM (SELECT window.start AS ws, site, status, COUNT(*) AS n FROM readings GROUP BY site, status, window(ts, '2 hours', '1 hour'))
PIVOT (SUM(n) FOR status IN ('ok' AS ok, 'warn' AS warn))

-- name: generated series joined to windows [1 of 1]
SELECT s.at, COALESCE(w.n, 0) AS n
FROM (SELECT explode(sequence(TIMESTAMP '2024-03-30 00:00:00', TIMESTAMP '2024-03-31 00:00:00', INTERVAL 1 HOUR)) AS at) s
LEFT JOIN (SELECT window.start AS ws, COUNT(*) AS n FROM readings GROUP BY window(ts, '1 hour', '30 minutes')) w ON w.ws = s.at

-- name: values and no window at all [0 of 0]
SELECT a, COUNT(*) FROM VALUES (1), (2), (2) AS t(a) GROUP BY a

-- name: no window but a group [0 of 0]
SELECT device, COUNT(*) AS n, percentile(temp, 0.5) AS med FROM readings GROUP BY device HAVING n > 3

-- name: date trunc groups [2 of 2]
SELECT 'h' AS w, date_trunc('HOUR', ts) AS at, device, COUNT(*) AS n FROM readings WHERE ts IS NOT NULL GROUP BY date_trunc('HOUR', ts), device
UNION ALL
SELECT 'd', date_trunc('DAY', ts), device, COUNT(*) FROM readings WHERE ts > TIMESTAMP '2000-01-01 00:00:00' GROUP BY 2, device

-- name: nothing random is shared [0 of 2]
SELECT a.n, b.n AS m FROM (SELECT device, COUNT(*) AS n FROM readings WHERE rand() >= 0 GROUP BY device, window(ts, '1 day')) a
JOIN (SELECT device, COUNT(*) AS n FROM readings WHERE rand() >= 0 GROUP BY device, window(ts, '2 days')) b ON a.device = b.device

-- name: max of the window [0 of 1]
SELECT device, MAX(window.end) AS until, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes')

-- name: window start as the only key of the window [1 of 1]
SELECT device, window(ts, '1 hour', '30 minutes').start AS ws, COUNT(*) AS n FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes').start

-- name: having over a key and no aggregate [1 of 1]
SELECT device FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes') HAVING device LIKE 'p%' AND window.start > TIMESTAMP '2024-03-30 00:00:00'

-- name: alias that hides a column [1 of 1]
SELECT device, COUNT(*) AS temp, MAX(temp) AS hum FROM readings GROUP BY device, window(ts, '1 hour', '30 minutes') HAVING temp > 2 AND hum > 20

-- name: key that another alias hides [1 of 1]
SELECT upper(site) AS site, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, window(ts, '1 hour', '30 minutes')

-- name: subquery in the select list [1 of 1]
SELECT device, window.start AS ws, COUNT(*) AS n, COUNT(*) / (SELECT COUNT(*) FROM readings) AS share FROM readings GROUP BY device, window(ts, '2 hours', '1 hour')

-- name: intervals and time arithmetic [1 of 1]
SELECT window.start - INTERVAL '1' HOUR AS before, window.end + INTERVAL '1 day 2 hours' AS after, window.end - window.start AS length, COUNT(*) AS n
FROM readings WHERE ts > TIMESTAMP '2024-03-29 12:00:00' - INTERVAL 1 DAY GROUP BY window(ts, '2 hours', '1 hour')

-- name: table sample and limit in a subquery [1 of 1]
SELECT window.start, COUNT(*) AS n FROM (SELECT * FROM readings ORDER BY ts, device, temp, hum LIMIT 500) GROUP BY window(ts, '2 hours', '1 hour')

-- name: keys that are expressions of several columns [1 of 1]
SELECT concat_ws('/', site, device) AS path, length(concat_ws('/', site, device)) AS len, window.start, COUNT(*) FROM readings GROUP BY concat_ws('/', site, device), window(ts, '2 hours', '1 hour')

-- name: keys of dates and decimals [1 of 1]
SELECT CAST(event_time AS DATE) AS day, revenue, window.start, COUNT(*), SUM(revenue) FROM clicks GROUP BY CAST(event_time AS DATE), revenue, window(event_time, '2 days', '1 day')

-- name: double keys [0 of 1]
SELECT temp, window.start, COUNT(*) FROM readings GROUP BY temp, window(ts, '2 hours', '1 hour')

-- name: array keys [0 of 1]
SELECT tags, window.start, COUNT(*) FROM readings GROUP BY tags, window(ts, '2 hours', '1 hour')

-- name: moments of pairs [1 of 1]
SELECT sym, window.start AS ws, corr(px, qty), covar_pop(px, qty), covar_samp(px, qty), regr_slope(px, qty), skewness(px), kurtosis(px) FROM trades GROUP BY sym, window(t, '1 hour', '30 minutes')

-- name: lists and sets [1 of 1]
SELECT sym, window.start AS ws, sort_array(collect_set(side)) AS sides, sort_array(collect_list(qty)) AS qtys, mode(side, true) FROM trades GROUP BY sym, window(t, '20 minutes', '10 minutes')

-- name: sums of distinct values [0 of 1]
SELECT sym, window.start AS ws, SUM(DISTINCT qty) AS total, AVG(DISTINCT qty) AS mean, COUNT(DISTINCT qty, side) AS pairs FROM trades GROUP BY sym, window(t, '20 minutes', '10 minutes')

-- name: intersection of keys of two grains [2 of 2]
SELECT site, device, window.start AS ws, COUNT(*) AS n FROM readings GROUP BY site, device, window(ts, '1 hour', '30 minutes')
UNION ALL
SELECT site, NULL, window.start, COUNT(*) FROM readings GROUP BY site, window(ts, '1 hour', '30 minutes')

-- name: date trunc with events that have no time [0 of 2]
SELECT date_trunc('HOUR', ts) AS at, device, COUNT(*) AS n FROM readings GROUP BY ALL
UNION ALL
SELECT date_trunc('DAY', ts), device, COUNT(*) FROM readings GROUP BY date_trunc('DAY', ts), device

-- name: date trunc of weeks and months beside windows [3 of 3]
WITH known AS (SELECT * FROM readings WHERE ts IS NOT NULL)
SELECT site, 'week' AS grain, date_trunc('week', ts) AS since, COUNT(*) AS n, AVG(temp) AS mean FROM known WHERE ts IS NOT NULL GROUP BY site, date_trunc('week', ts)
UNION ALL
SELECT site, 'month', date_trunc('MONTH', ts), COUNT(*), AVG(temp) FROM known WHERE ts IS NOT NULL GROUP BY site, date_trunc('MONTH', ts)
UNION ALL
SELECT site, 'hour', window.start, COUNT(*), AVG(temp) FROM known WHERE ts IS NOT NULL GROUP BY site, window(ts, '1 hour')

-- name: two aliases of one table [2 of 2]
SELECT 'h' AS w, a.device, window.start AS ws, MAX(a.temp) AS hi FROM readings a WHERE a.status = 'ok' GROUP BY a.device, window(a.ts, '1 hour')
UNION ALL
SELECT 'd', device, window.start, MAX(r.temp) FROM readings AS r WHERE r.status = 'ok' AND r.temp > 15 GROUP BY device, window(r.ts, '1 day')

-- name: hop of pairs and of higher moments [1 of 1]
SELECT device, window.start AS ws, CORR(temp, hum), COVAR_POP(temp, hum), COVAR_SAMP(hum, temp), REGR_AVGX(temp, hum), REGR_AVGY(temp, hum), REGR_COUNT(temp, hum),
       REGR_INTERCEPT(hum, temp), REGR_R2(temp, hum), REGR_SLOPE(hum, temp), REGR_SXX(temp, hum), REGR_SXY(temp, hum), REGR_SYY(temp, hum),
       SKEWNESS(temp), KURTOSIS(temp), CORR(temp, 0.1D), REGR_SLOPE(temp, 0.1D), REGR_R2(0.1D, temp), REGR_SLOPE(0.1D, temp), SKEWNESS(0.1D)
FROM readings GROUP BY device, window(ts, '3 hours', '20 minutes')

-- name: hop of pairs, numbers of every type [1 of 1]
SELECT user_id, window.start AS ws, CORR(dwell_ms, revenue), REGR_AVGY(revenue, dwell_ms), SKEWNESS(dwell_ms), KURTOSIS(revenue), SUM(DISTINCT revenue), AVG(DISTINCT revenue),
       SUM(DISTINCT dwell_ms % 5), AVG(DISTINCT dwell_ms % 5), SUM(DISTINCT CAST(dwell_ms % 7 AS FLOAT)), AVG(DISTINCT CAST(dwell_ms % 7 AS DOUBLE) - 3), COVAR_SAMP(dwell_ms, dwell_ms) FILTER (WHERE page <> '/')
FROM clicks GROUP BY user_id, window(event_time, '12 hours', '3 hours')

-- name: hop of what is gathered [1 of 1]
SELECT sym, window.start AS ws, SORT_ARRAY(COLLECT_LIST(qty)), SORT_ARRAY(ARRAY_AGG(side)) AS sides, SORT_ARRAY(COLLECT_SET(px)), SIZE(COLLECT_SET(qty) FILTER (WHERE side = 'B')) AS n,
       MODE(side, true), MODE() WITHIN GROUP (ORDER BY qty), LISTAGG(side, ', ') WITHIN GROUP (ORDER BY side), STRING_AGG(side) WITHIN GROUP (ORDER BY side DESC), LENGTH(LISTAGG(side))
FROM trades GROUP BY sym, window(t, '10 minutes', '2 minutes')

-- name: hop of what is gathered once [1 of 1]
SELECT sym, window.start AS ws, SORT_ARRAY(COLLECT_LIST(DISTINCT side)), SORT_ARRAY(ARRAY_AGG(DISTINCT qty)), LENGTH(LISTAGG(DISTINCT side, ' and '))
FROM trades GROUP BY sym, window(t, '10 minutes', '2 minutes')

-- name: gathered over nothing [2 of 2]
SELECT sym, window.start AS ws, COLLECT_LIST(px) AS l, COLLECT_SET(side) AS s, LISTAGG(side) AS t, MODE(side) AS m, SUM(DISTINCT qty) AS q, CORR(px, qty) AS c FROM trades WHERE px < 0 OR side = 'none' GROUP BY sym, window(t, '10 minutes')
UNION ALL
SELECT sym, window.start, SORT_ARRAY(COLLECT_LIST(px)), SORT_ARRAY(COLLECT_SET(side)), LISTAGG(side) WITHIN GROUP (ORDER BY side), MODE(side, true), SUM(DISTINCT qty), CORR(px, qty) FROM trades GROUP BY sym, window(t, '20 minutes')

-- name: hop of sketches of Spark [1 of 1]
SELECT sym, window.start AS ws, HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(qty)), HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(side, 10)), THETA_SKETCH_ESTIMATE(THETA_SKETCH_AGG(qty, 14)), THETA_SKETCH_AGG(side),
       KLL_SKETCH_GET_QUANTILE_BIGINT(KLL_SKETCH_AGG_BIGINT(qty), 0.5), KLL_SKETCH_GET_QUANTILE_DOUBLE(KLL_SKETCH_AGG_DOUBLE(px, 400), 0.9), BITMAP_COUNT(BITMAP_CONSTRUCT_AGG(BITMAP_BIT_POSITION(qty))),
       ARRAY_SORT(TRANSFORM(APPROX_TOP_K(side, 3), e -> e.count)), APPROX_TOP_K(sym), APPROX_TOP_K(sym, 1, 100)
FROM trades GROUP BY sym, window(t, '10 minutes', '5 minutes')

-- name: sketches of blocks with conditions of their own [2 of 3]
SELECT sym, window.start AS ws, HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(qty)) AS n FROM trades WHERE side = 'B' GROUP BY sym, window(t, '10 minutes')
UNION ALL
SELECT sym, window.start, HLL_SKETCH_ESTIMATE(HLL_SKETCH_AGG(qty)) FROM trades GROUP BY sym, window(t, '20 minutes')
UNION ALL
SELECT sym, window.start, SIZE(APPROX_TOP_K(side)) FROM trades WHERE px > 110 GROUP BY sym, window(t, '30 minutes')

-- name: pairs and distinct values under names [1 of 1]
SELECT sym, window.start AS ws, CORR(px, qty) AS c, COVAR_POP(px, qty) AS cp, COVAR_SAMP(px, qty) AS cs, REGR_SLOPE(px, qty) AS slope,
       REGR_INTERCEPT(px, qty) AS at, REGR_R2(px, qty) AS r2, REGR_COUNT(px, qty) AS both, REGR_AVGX(px, qty) AS ax, SKEWNESS(px) AS sk, KURTOSIS(px) AS ku,
       SUM(DISTINCT qty) AS total, AVG(DISTINCT qty) AS mean, SUM(DISTINCT px) AS prices
FROM trades GROUP BY sym, window(t, '1 hour', '30 minutes')

-- name: distinct decimals under names [1 of 1]
SELECT user_id, window.start AS ws, SUM(DISTINCT revenue) AS total, AVG(DISTINCT revenue) AS mean, KURTOSIS(revenue) AS ku, CORR(dwell_ms, revenue) AS c
FROM clicks GROUP BY user_id, window(event_time, '2 hours', '1 hour')

-- name: averages of decimals of every length [1 of 1]
SELECT cust, window.start AS ws, AVG(CAST(amount / 7 AS DECIMAL(9, 1))) AS a, AVG(CAST(big / 7 AS DECIMAL(24, 0))) AS b, AVG(CAST(big / 7 AS DECIMAL(24, 1))) AS c, AVG(CAST(big / 7 AS DECIMAL(23, 3))) AS d,
       AVG(CAST(-big / 7 AS DECIMAL(30, 4))) AS e, AVG(CAST(big / 7 AS DECIMAL(33, 9))) AS f, AVG(CAST(-amount / 7 AS DECIMAL(28, 0))) AS g, AVG(DISTINCT CAST(big / 7 AS DECIMAL(30, 4))) AS h, SUM(big) AS s
FROM orders GROUP BY cust, window(placed, '5 hours', '1 hour')

-- name: cube with an expression, after the window [1 of 1]
SELECT upper(site) AS u, temp > 20 AS hot, window.end AS we, COUNT(*) AS n, MAX(temp) AS hi FROM readings GROUP BY window(ts, '6 hours'), CUBE(upper(site), temp > 20)

-- name: fields of structs have the names of what is in them [1 of 1]
SELECT struct(window, site, COUNT(*)) AS k, to_json(struct(site, MAX(temp) AS hi)) AS j, window(ts, '2 hours', '1 hour') AS w, w.start AS ws FROM readings GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: minus, intersect, and a name that means two things [1 of 2]
WITH w AS (SELECT * FROM readings WHERE temp > 20), x AS (WITH w AS (SELECT * FROM w WHERE hum > 40) SELECT site FROM w GROUP BY site, window(ts, '2 hours', '1 hour'))
(SELECT site FROM x MINUS SELECT 'osaka') UNION DISTINCT SELECT site FROM w GROUP BY site, window(ts, '2 hours', '1 hour')

-- name: dbt model of two grains with a dimension [2 of 2]
with source as (select * from readings where device is not null),
renamed as (select ts as event_at, lower(device) as device_id, coalesce(site, 'unknown') as site_name, temp, status from source),
hourly as (select device_id, site_name, window.start as period_start, 'hour' as grain, count(*) as events, avg(temp) as avg_temp, sum(case when status = 'fail' then 1 else 0 end) as fails
  from renamed group by device_id, site_name, window(event_at, '1 hour')),
daily as (select device_id, site_name, window.start as period_start, 'day' as grain, count(*) as events, avg(temp) as avg_temp, sum(case when status = 'fail' then 1 else 0 end) as fails
  from renamed group by device_id, site_name, window(event_at, '1 day')),
final as (select * from hourly union all select * from daily)
select final.*, d.owner, round(fails / nullif(events, 0), 4) as fail_rate from final left join devices d on d.device = final.device_id where events > 0
