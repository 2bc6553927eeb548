-- report: qoder.totals
-- about: the Qoder report: totals over the latest sessions
-- params: sessions integer 40
select * from main.qoder_report($sessions);

-- report: qoder.sessions
-- about: the Qoder report: the sessions it counts, latest first
-- params: sessions integer 40
select * from main.qoder_latest($sessions);
