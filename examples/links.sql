-- name: links
SELECT c.source, COUNT(*) AS n
FROM clink AS c [RANGE 1 HOUR SLIDE 1 MINUTE], blink AS b [RANGE 1 HOUR SLIDE 1 MINUTE]
WHERE c.source = b.source AND c.id = b.id
GROUP BY c.source
