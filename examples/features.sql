-- name: lows
SELECT device, System.Window().Id, MIN(temp) AS lo
FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('20s', TumblingWindow(second, 20)), Window('1m', TumblingWindow(minute, 1)));

-- name: busy
SELECT device, window.start, COUNT(*) AS n, AVG(temp) AS mean
FROM readings GROUP BY device, window(ts, '1 minute', '10 seconds');
