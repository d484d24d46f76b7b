DROP TABLE public_repo_ids;
DROP TABLE upload_jobs;
DROP TABLE uploads;
