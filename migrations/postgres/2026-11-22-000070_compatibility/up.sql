-- What carried lower-case enums is a compatibility profile now, which also covers statuses.
ALTER TABLE tokens RENAME COLUMN enum_case TO compatibility;
UPDATE tokens SET compatibility = '"V1Live"' WHERE compatibility = '"Lower"';
UPDATE tokens SET compatibility = '"Specification"' WHERE compatibility = '"Upper"';
