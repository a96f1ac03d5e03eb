-- One row a job. What it has to do with files is in three small functions: a candidate is called <job>-<generation>.csv.

CREATE FUNCTION candidate_name(job bigint, generation integer) RETURNS text IMMUTABLE LANGUAGE sql
    RETURN job::text || '-' || generation::text || '.csv';

-- NULL for a name that is not ours. Eighteen and nine digits always fit their types.
CREATE FUNCTION job_of(name text) RETURNS bigint IMMUTABLE LANGUAGE sql
    RETURN substring(name from '^([1-9][0-9]{0,17})-[1-9][0-9]{0,8}[.]csv$')::bigint;

CREATE FUNCTION generation_of(name text) RETURNS integer IMMUTABLE LANGUAGE sql
    RETURN substring(name from '^[1-9][0-9]{0,17}-([1-9][0-9]{0,8})[.]csv$')::integer;

CREATE TABLE job (
    id          bigint  PRIMARY KEY CHECK (id BETWEEN 1 AND 999999999999999999),
    state       text    NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'running', 'complete', 'cancelled')),
    owner       text,                                                               -- the worker's name; names repeat
    epoch       integer NOT NULL DEFAULT 0 CHECK (epoch BETWEEN 0 AND 999999999),   -- the generation; it never repeats
    lease_until integer,                                                            -- authority ends here, not the process
    candidate   text,
    sha256      text    CHECK (sha256 ~ '^[0-9a-f]{64}$'),

    CONSTRAINT ready_is_unowned CHECK
        (state <> 'ready' OR (owner IS NULL AND epoch = 0 AND lease_until IS NULL)),
    CONSTRAINT work_has_a_generation CHECK
        (state NOT IN ('running', 'complete') OR (owner IS NOT NULL AND epoch > 0 AND lease_until IS NOT NULL)),
    CONSTRAINT only_complete_names_an_artifact CHECK
        (CASE WHEN state = 'complete' THEN candidate IS NOT NULL AND sha256 IS NOT NULL
              ELSE candidate IS NULL AND sha256 IS NULL END)
);
