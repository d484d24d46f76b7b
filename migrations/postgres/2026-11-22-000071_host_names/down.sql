-- The names as they were written are not known any more, and the lower-case ones work.
SELECT 1;
