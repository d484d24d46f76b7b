# A page of pull requests that merged on GitHub → lines of a history.
# A pull request counts as submitted when it was approved or when its last checks began, whichever is later. Each
# earlier commit whose checks began after the approval and failed counts as a submission that failed.
.data.search.nodes[] | select(. != null) | . as $pr
| [.reviews.nodes[].submittedAt] | min | . as $approved
| [ $pr.commits.nodes[].commit.statusCheckRollup | select(. != null)
    | [ .contexts.nodes[]
        | select(.startedAt != null and .completedAt != null and .completedAt <= $pr.mergedAt) ]
    | select(length > 0)
    | {
        began: (map(.startedAt) | min),
        ended: (map(.completedAt) | max),
        # A run that a later push cancelled has not failed.
        failed: any(.conclusion == "FAILURE" or .conclusion == "TIMED_OUT")
      }
    | .minutes = ((.ended | fromdateiso8601) - (.began | fromdateiso8601)) / 60
  ] | sort_by(.began) | . as $tested
| ($approved // $tested[0].began // $pr.mergedAt) as $wanted
| (if $pr.author.login then {author: $pr.author.login} else {} end) as $author
# What a job that ran again days later takes is not known.
| def duration: if .minutes > 0 and .minutes <= 10080 then {testMinutes: .minutes} else {} end;
  ($tested[:-1][] | select(.failed and .began >= $wanted)
    | {number: $pr.number, queuedAt: .began, endedAt: .ended, outcome: "FAILED"} + $author + duration),
  ([$wanted, $tested[-1].began // $wanted] | max | [., $pr.mergedAt] | min
    | {number: $pr.number, queuedAt: ., endedAt: $pr.mergedAt, outcome: "MERGED"}
      + $author + ($tested[-1] // {minutes: 0} | duration))
