-- Publish answered 0 rows, or did not answer: what does the record say to generation :epoch?
SELECT CASE
         WHEN state = 'complete' AND owner = :owner AND epoch = :epoch AND candidate = :candidate AND sha256 = :digest
           THEN 'already applied: report success once the file is read back'
         WHEN state = 'cancelled'
           THEN 'cancelled: report the withdrawal'
         WHEN state = 'ready'
           THEN 'never acquired: report nothing, check the number'
         WHEN owner IS DISTINCT FROM :owner OR epoch <> :epoch
           THEN 'ownership lost: report nothing, the generation in the record answers'
         WHEN state = 'running' AND candidate_name(id, epoch) <> :candidate
           THEN 'not applied: that file is of another generation, name your own'
         WHEN state = 'running' AND lease_until > :now
           THEN 'not applied: you still hold the lease, publish again'
         WHEN state = 'running'
           THEN 'not applied: your lease has run out, stop'
         ELSE 'incompatible: another file stands in your name, hand it to the operator'
       END AS answer
  FROM job
 WHERE id = :id
