-- name: lows
SELECT device, System.Window().Id, MIN(temp) AS lo, AVG(temp) AS mean
FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('20s', TumblingWindow(second, 20)),
                         Window('1m', TumblingWindow(minute, 1)),
                         Window('5m/1m', HoppingWindow(minute, 5, 1)));
-- name: traffic
SELECT COUNT(*) AS n, APPROX_PERCENTILE(temp, 0.99) AS high
FROM readings TIMESTAMP BY ts
GROUP BY TumblingWindow(minute, 1)
