-- Two hours of readings of seven devices, one a second; the same rows whenever it is run.
SELECT
  make_timestamptz(1704067200000000 + i * 1000000) AS ts,
  'd' || (i * i % 7) AS device,
  (i * 7919 % 1000) / 10.0 AS temp
FROM range(7200) AS seconds(i)
