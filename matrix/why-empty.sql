-- Beside an empty take: was there nothing eligible, or nothing to be had at this instant? And is it worth another attempt?
SELECT count(*) AS ready,
       CASE WHEN count(*) = 0 THEN 'nothing eligible: stop'
            WHEN :attempt < :attempts THEN 'nothing available now: try again'
            ELSE 'nothing available now: give up'
       END AS answer
  FROM job
 WHERE state = 'ready'
