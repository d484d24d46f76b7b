UPDATE tokens SET compatibility = '"Lower"' WHERE compatibility = '"V1Live"';
UPDATE tokens SET compatibility = '"Upper"' WHERE compatibility = '"Specification"';
ALTER TABLE tokens RENAME COLUMN compatibility TO enum_case;
