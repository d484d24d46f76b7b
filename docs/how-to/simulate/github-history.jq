# A page of pull requests that merged on GitHub → lines of a history.
# A pull request counts as submitted when it was approved or when its last checks began, whichever is later. Each
# earlier commit whose checks began after the approval and failed counts as a submission that failed.
.data.search.nodes[] | . as $pr
| [.reviews.nodes[].submittedAt] | min | . as $approved
| [ $pr.commits.nodes[].commit.statusCheckRollup | select(. != null)
    | . as $rollup
    | [.contexts.nodes[] | select(.startedAt != null and .completedAt != null)] | select(length > 0)
    | {
        began: (map(.startedAt) | min),
        ended: (map(.completedAt) | max),
        failed: ($rollup.state == "FAILURE" or $rollup.state == "ERROR")
      }
    | .minutes = ((.ended | fromdateiso8601) - (.began | fromdateiso8601)) / 60
  ] | sort_by(.began) | . as $tested
| ($approved // $tested[0].began // $pr.mergedAt) as $wanted
| ($tested[:-1][] | select(.failed and .began >= $wanted and .ended <= $pr.mergedAt)
    | {number: $pr.number, queuedAt: .began, endedAt: .ended, outcome: "FAILED"}
      + (if .minutes > 0 then {testMinutes: .minutes} else {} end)),
  ([$wanted, $tested[-1].began // $wanted] | max | [., $pr.mergedAt] | min
    | {number: $pr.number, queuedAt: ., endedAt: $pr.mergedAt, outcome: "MERGED"}
      + (if ($tested[-1].minutes // 0) > 0 then {testMinutes: $tested[-1].minutes} else {} end))
