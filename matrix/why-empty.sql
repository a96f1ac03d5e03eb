-- Beside an empty take: was there nothing eligible, or nothing to be had at this instant?
SELECT count(*) AS ready,
       CASE WHEN count(*) = 0 THEN 'nothing eligible' ELSE 'nothing available now' END AS answer
  FROM job
 WHERE state = 'ready'
