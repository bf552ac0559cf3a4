-- name: lows
SELECT device, System.Window().Id, MIN(temp) AS lo
FROM readings TIMESTAMP BY ts
GROUP BY device, Windows(Window('20m', TumblingWindow(minute, 20)),
                         Window('30m', TumblingWindow(minute, 30)),
                         Window('40m', TumblingWindow(minute, 40)))
