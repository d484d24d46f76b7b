DROP TABLE heard_events;
