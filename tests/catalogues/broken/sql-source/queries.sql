-- fetch --
SELECT 1;
-- name: store
SELECT 2;
