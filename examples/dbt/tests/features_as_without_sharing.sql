-- Rows that the model has and windows computed one by one do not have, or the other way round.
WITH windows(label, range_us, slide_us) AS (
  VALUES ('5m', 300000000, 300000000), ('20m', 1200000000, 1200000000),
         ('1h/5m', 3600000000, 300000000)
),
instances AS (
  SELECT r.device, w.label, b.start_us, b.start_us + w.range_us AS end_us, r.temp
  FROM {{ ref('readings') }} AS r, windows AS w,
    LATERAL (
      SELECT epoch_us(r.ts) - epoch_us(r.ts) % w.slide_us - back * w.slide_us AS start_us
      FROM range(w.range_us // w.slide_us) AS steps(back)
    ) AS b
),
wanted AS (
  SELECT device, label AS "window", make_timestamptz(start_us) AS window_start,
    make_timestamptz(end_us) AS window_end, MIN(temp) AS lo, round(AVG(temp), 6) AS mean,
    COUNT(*) AS n
  FROM instances GROUP BY ALL
),
got AS (
  SELECT device, "window", window_start, window_end, lo, round(mean, 6) AS mean, n
  FROM {{ ref('features') }}
)
(FROM got EXCEPT ALL FROM wanted) UNION ALL (FROM wanted EXCEPT ALL FROM got)
